# SPDX-License-Identifier: BSD-3-Clause
"""Offloads with the drivers of others: Linux's virtio-net, and DPDK's virtio-user.

TCP between network stacks of Linux that leave checksums and segments to planed: every byte arrives. One guest has both
ends of each patch, each end in a network namespace of its own (as in ``test_vring_qemu.py``). Of some patches both ends
have offloads, of others one: planed does the work for the other. No KVM is needed.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from guest_rig import boot, card, image, until_said
from offload_rig import ALL, TCP4, Guest, tcp_frame
from planed_rig import CPU, OTHER_CPU, Document, Planed, task, until
from vring_rig import device, ports

from planebench.host.process import Supervisor

pytestmark = pytest.mark.dataplane

MODULES = "virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci failover net_failover virtio_net"
SEGMENTS = [f"{end}_{what}" for end in ("guest", "host") for what in ("tso4", "tso6", "ecn", "ufo")]
OFF = ",".join(f"{name}=off" for name in ("csum", "guest_csum", "gso", *SEGMENTS))
ENDS = [
    ("packed=off,mrg_rxbuf=on", "packed=off,mrg_rxbuf=on"),
    ("packed=on,mrg_rxbuf=off", "packed=on,mrg_rxbuf=off"),
    ("packed=off,mrg_rxbuf=on", f"packed=off,mrg_rxbuf=on,{OFF}"),
    (f"packed=on,mrg_rxbuf=off,{OFF}", "packed=off,mrg_rxbuf=off"),
]
"""Of each patch: its first end, and its second, which listens."""
BYTES = 2_000_000

INIT = f"""#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
for module in {MODULES}; do insmod /modules/$module.ko; done
end() {{ # network card, number: an end of a patch, in the place that $place then is
	unshare -n sleep 1000 &
	place=$!
	until [ "$(readlink /proc/$place/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do usleep 1000; done
	ip link set $1 netns $place
	nsenter -t $place -n sh -c "echo 0 >/proc/sys/net/ipv6/conf/$1/accept_dad"
	nsenter -t $place -n ip addr add 10.0.0.$2/24 dev $1
	nsenter -t $place -n ip addr add fd00::$2/64 dev $1
	nsenter -t $place -n ip link set $1 up
}}
head -c {BYTES} /dev/urandom >/tmp/up
head -c {BYTES} /dev/urandom >/tmp/down
mkfifo /tmp/silence # a standard input without an end: busybox's nc ends with either of its directions
cat >/tmp/calls <<-END
	exec 3<>/tmp/silence
	for to in 10.0.0.2 fd00::2; do
		until nc \\$to 5000 </tmp/up >/dev/null; do usleep 100000; done &
		until nc \\$to 5001 <&3 >/tmp/down.\\$1; do usleep 100000; done
		wait
		cmp /tmp/down /tmp/down.\\$1 && echo patch \\$1 down \\$to whole
	done
END
cat >/tmp/answers <<-END
	exec 3<>/tmp/silence
	for from in 10.0.0.1 fd00::1; do
		nc -l -p 5001 </tmp/down >/dev/null &
		nc -l -p 5000 <&3 >/tmp/up.\\$1
		wait
		cmp /tmp/up /tmp/up.\\$1 && echo patch \\$1 up \\$from whole
	done
END
waits=
for patch in {" ".join(map(str, range(len(ENDS))))}; do
	end eth$((2 * patch + 1)) 2
	nsenter -t $place -n sh /tmp/answers $patch &
	waits="$waits $!"
	end eth$((2 * patch)) 1
	nsenter -t $place -n sh /tmp/calls $patch &
	waits="$waits $!"
done
wait $waits
echo GUEST-DONE
sleep 1000
"""


@pytest.mark.lab
def test_tcp_of_linux_arrives_whole(planed: Planed, supervisor: Supervisor) -> None:
    """Both ways at once, over IPv4 and IPv6: long frames where both ends take them, segments where one does not."""
    modules = image().modules
    names = [f"{end}{number}" for number in range(len(ENDS)) for end in "ab"]
    planed.wires = tuple({**device(name, planed.workdir / f"{name}.sock"), "offloads": True} for name in names)
    patches = [task(f"sw{n}", "patch", f"a{n}", f"b{n}") for n in range(len(ENDS))]
    planed.apply(planed.wires, patches, cpu=CPU)
    files = {f"modules/{name}.ko": (modules / f"{name}.ko").read_bytes() for name in MODULES.split()}
    cards = [part for n, wire in enumerate(planed.wires) for part in card(wire, n, ENDS[n // 2][n % 2])]
    guest = boot(supervisor, "guest", {**files, "init": INIT.encode()}, cards)
    words = until_said(guest, "GUEST-DONE")
    whole = set(re.findall(r"patch (\d) (up|down) \S+ whole", words))
    assert words.count("whole") == 4 * len(ENDS), words
    assert whole == {(str(n), way) for n in range(len(ENDS)) for way in ("up", "down")}
    for n, (a, b) in enumerate(ENDS):
        check(planed, n, both=OFF not in a + b)
    guest.terminate()


def check(planed: Planed, number: int, *, both: bool) -> None:
    """What a patch did: with offloads at both ends fewer frames than segments; with one, it made them. Nothing lied."""
    switch, found = planed.tasks()[f"sw{number}"], ports(planed)
    sides: list[Document] = [found[f"{end}{number}"] for end in "ab"]
    assert [side["refused_offloads"] for side in sides] == [{}, {}]
    assert [(side["rx_errors"], side["tx_errors"]) for side in sides] == [(0, 0)] * 2
    added = switch["patch"]["segments_added"]
    assert switch["rx_packets"] + added == switch["tx_packets"] + switch["drops"]["tx_full"]
    assert (added == 0) == both, added
    if both:
        segments = 4 * BYTES / 1448
        assert switch["rx_packets"] < segments + segments / 2  # and what acknowledges every other one


COMMANDS = """\
port stop 1
csum set tcp hw 1
tso set 1000 1
csum mac-swap off 0
csum mac-swap off 1
port start 1
start
"""
RECEIVES, SENDS = 0x1C, 0x802C
"""DPDK's offloads: checksums of UDP and TCP, and long frames as they came; checksums, TSO, several buffers."""


def test_dpdk_takes_long_frames_and_asks_for_segments(planed: Planed, supervisor: Supervisor) -> None:
    """A frame of a guest through testpmd, which forwards it with offloads of its own, to another guest: every byte."""
    if shutil.which("dpdk-testpmd") is None:
        pytest.skip("dpdk-testpmd is not here: apt-get install dpdk")
    planed.wires = tuple({**device(name, planed.workdir / f"{name}.sock"), "offloads": True} for name in "abcd")
    planed.apply(planed.wires, [task("in", "patch", "a", "b"), task("out", "patch", "c", "d")], cpu=CPU)
    sockets = [Path(wire["path"]) for wire in planed.wires]
    commands = planed.workdir / "testpmd.commands"
    commands.write_text(COMMANDS)
    eal = ["--no-huge", "-m", "128", "--no-pci", "--file-prefix", planed.workdir.name, "-l", f"{OTHER_CPU},{CPU}"]
    for number, path in enumerate(sockets[1:3]):
        eal += ["--vdev", f"net_virtio_user{number},path={path},mrg_rxbuf=1"]
    how = [
        "-i",
        "--forward-mode=csum",
        f"--rx-offloads={RECEIVES:#x}",
        f"--tx-offloads={SENDS:#x}",
        "--total-num-mbufs=2048",
        "--no-flush-rx",  # it says that it forwards before it drops what came until then
    ]
    command = ["stdbuf", "-oL", "dpdk-testpmd", *eal, "--", *how, f"--cmdline-file={commands}"]
    cpus = frozenset({CPU, OTHER_CPU})
    testpmd = supervisor.spawn("testpmd", command, cpus=cpus, workdir=planed.workdir, pipe_stdin=True)
    until(lambda: b"packet forwarding - ports=2" in testpmd.log_path.read_bytes(), "testpmd forwards")
    sender, receiver = Guest(sockets[0], ALL), Guest(sockets[3], ALL)
    planed.links_up()
    features = {port["name"]: set(port["virtio"]["features"]) for port in planed.call("ports.get")["ports"]}
    assert {"guest_tso4", "mrg_rxbuf"} <= features["b"]
    assert {"csum", "host_tso4", "host_tso6"} <= features["c"]
    sender.send(frame := tcp_frame(2, 1), TCP4)
    assert receiver.received(1) == [((1, 1, 54, 1000, 34, 16, 1), frame)]
    assert [port["refused_offloads"] for port in ports(planed).values()] == [{}] * 4
    for guest in (sender, receiver):
        guest.driver.close()
    testpmd.terminate()
