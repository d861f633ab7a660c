# SPDX-License-Identifier: BSD-3-Clause
"""Linux's virtio-net in a QEMU guest: it sleeps until it is called, where DPDK's drivers poll.

One guest has both ends of each patch, each end in a network namespace of its own, so all that goes between them goes
through planed. A patch for each layout of rings. No KVM is needed.
"""

from __future__ import annotations

import re

import pytest
from guest_rig import boot, card, image, until_said
from planed_rig import CPU, Planed, often, task, until
from vring_rig import device, ports

from planebench.host.process import Supervisor

pytestmark = [pytest.mark.dataplane, pytest.mark.slow, pytest.mark.all]

LAYOUTS = [f"packed={packed},mrg_rxbuf={merge}" for packed in ("off", "on") for merge in ("on", "off")]
MODULES = "virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci failover net_failover virtio_net"
"""In the order in which they need each other."""
FAST = often(300, 1000)

INIT = f"""#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
for module in {MODULES}; do insmod /modules/$module.ko; done
end() {{ # network card and address: an end of a patch, in the place that $place then is
	unshare -n sleep 1000 &
	place=$!
	until [ "$(readlink /proc/$place/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do usleep 1000; done
	ip link set $1 netns $place
	nsenter -t $place -n ip addr add $2/24 dev $1
	nsenter -t $place -n ip link set $1 up
}}
cat >/pings <<-END
	ping -c 10 -i 0.3 10.0.0.2
	ping -c 10 -i 0.1 -s 1472 10.0.0.2
	ping -A -c {FAST} 10.0.0.2
END
pings=
for patch in {" ".join(map(str, range(len(LAYOUTS))))}; do
	end eth$((2 * patch + 1)) 10.0.0.2
	end eth$((2 * patch)) 10.0.0.1
	nsenter -t $place -n sh /pings >/said.$patch 2>&1 &
	pings="$pings $!"
done
wait $pings
cat /said.*
echo GUEST-DONE
sleep 1000
"""


def test_a_linux_guest_that_sleeps(planed: Planed, supervisor: Supervisor) -> None:
    """Every ping is answered: each way, a few bytes or a full frame, from idle and one after the other."""
    modules = image().modules
    names = [f"{end}{number}" for number in range(len(LAYOUTS)) for end in "ab"]
    planed.wires = tuple(device(name, planed.workdir / f"{name}.sock") for name in names)
    patches = [task(f"sw{n}", "patch", f"a{n}", f"b{n}") for n in range(len(LAYOUTS))]
    planed.apply(planed.wires, patches, cpu=CPU)
    files = {f"modules/{name}.ko": (modules / f"{name}.ko").read_bytes() for name in MODULES.split()}
    cards = [part for n, wire in enumerate(planed.wires) for part in card(wire, n, LAYOUTS[n // 2])]
    guest = boot(supervisor, "guest", {**files, "init": INIT.encode()}, cards)
    words = until_said(guest, "GUEST-DONE")
    answers = [[int(it) for it in re.findall(r"seq=(\d+)", ping)] for ping in words.split("PING ")[1:]]
    assert answers == [[*range(10)], [*range(10)], [*range(FAST)]] * len(LAYOUTS), words
    for switch in planed.tasks().values():
        assert switch["rx_packets"] == switch["tx_packets"] + switch["drops"]["tx_full"] >= 2 * (20 + FAST)
    negotiated = {port["name"]: set(port["virtio"]["features"]) for port in planed.call("ports.get")["ports"]}
    for name, features in negotiated.items():
        layout = LAYOUTS[int(name[1])]
        assert ("packed" in features, "mrg_rxbuf" in features) == ("packed=on" in layout, "mrg_rxbuf=on" in layout)
    guest.terminate()
    until(lambda: not any(port["link_up"] for port in ports(planed).values()), "the switch sees it go")
