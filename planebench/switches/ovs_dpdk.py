# SPDX-License-Identifier: BSD-3-Clause
"""Open vSwitch with DPDK: a PMD thread for each worker polls every port (planebench.switches.ovs has the rest).

Without hugepages OvS needs ``--legacy-mem`` in ``dpdk-extra``: it adds ``--in-memory`` by itself otherwise, which EAL
refuses together with ``--no-huge``.
"""

from __future__ import annotations

from planebench.host.programs import PATH_OPTION
from planebench.switches import common, ovs
from planebench.switches.adapter import STANDARD_FRAME_BYTES, WORKERS_OPTION, Situation, Traits
from planebench.switches.common import manifest
from planebench.testbed.request import SwitchPort, SwitchRequest

EAL_MB = 128
VHOST_DESCRIPTORS = 2048
"""The descriptors that OvS assumes for a vhost-user port, independent of the ring of the VNF."""
MBUFS_PER_PORT = 16384 + 32
"""MIN_NB_MBUF and a burst, on top of the descriptors of a port (dpdk_calculate_mbufs)."""
SHARED_MBUFS = 262144
"""MAX_NB_MBUF: of the one pool of all ports, OvS's default. With many VNFs a pool for each would take GiBs."""
MBUF_OVERHEAD_BYTES = 1024
"""Headroom, struct dp_packet, object header, rounding."""
RING_MAX = 4096


class OvsDpdkAdapter(ovs.OvsAdapter):
    """``ovs-dpdk``: ``ovs-vswitchd`` built with DPDK, userspace datapath, everything not named here at its default."""

    name = "ovs-dpdk"
    title = "Open vSwitch with DPDK"
    start_s = 2.0  # a database to fill
    remedy = "install Open vSwitch with DPDK: `apt-get install openvswitch-switch-dpdk` (Debian, Ubuntu)"
    programs = (
        ("ovs-vswitchd-dpdk", "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk"),  # Debian's
        ("ovs-vswitchd", "/usr/local/sbin/ovs-vswitchd"),
    )
    unfit = "has no DPDK"
    wires = frozenset({"virtio", "vhost", "memif", "veth", "pci", "af_xdp"})
    queued_wires = frozenset({"virtio", "vhost"})  # on memif a thread sends on a queue of its own, whatever it received
    stations = True
    takes_updates = True
    functions = True
    memif_send_queue = 1
    """Queue 0 is that of its main thread (one queue for each thread, the main thread's first)."""
    options = (PATH_OPTION, WORKERS_OPTION)
    traits = Traits(
        "self-contained", "match/action", ("rtc",), "vhost-user", "medium", ("C",), "SDN switch", "conext19"
    )

    def refusal(self, situation: Situation) -> str:
        if situation.layout.bare and situation.chain:
            return "its flows by MAC are L2 functions; in the place of other VNFs it has none"
        if situation.layout.wired and situation.wire == "veth" and situation.max_frame_bytes > STANDARD_FRAME_BYTES:
            why = "DPDK's af_packet driver refuses an MTU over 1500"
            return f"ovs-dpdk carries frames up to 1518 bytes on the veth wire ({why}); use the virtio wire"
        return super().refusal(situation)

    def version(self, lines: tuple[str, ...]) -> str | None:
        """Return e.g. ``3.1.0 (DPDK 22.11.11)``; None without DPDK."""
        dpdk = next((line for line in lines if line.startswith("DPDK ")), None)
        return f"{lines[0].rpartition(' ')[2]} ({dpdk})" if dpdk else None

    def settings(self, request: SwitchRequest) -> dict[str, str]:
        flows = "one in_port flow each way"
        if request.bare is not None:
            flows = f"{len(request.macs)} dl_dst flows that send frames straight back, in the place of L2 VNFs"
        elif request.stations:
            flows = f"{len(request.stations)} dl_dst flows to VNFs, one to the monitor"
        return manifest(
            request,
            function=f"match/action: {flows}, userspace datapath (netdev)",
            nic_driver=common.nic_driver(request, vhost="vhost-user (dpdkvhostuser)"),
            vnf_interface="vhost-user (dpdkvhostuser)",
            burst=str(ovs.BURST),
            buffers=f"a pool of {SHARED_MBUFS} mbufs"
            if request.stations
            else "one pool of mbufs per port (per-port-memory)",
            caches=ovs.CACHES,
            **common.offloads(request, mergeable_wires=True),
        )

    def vswitchd_options(self, request: SwitchRequest, prefix: str) -> list[str]:
        eal = [*common.allow_list(request.ports), "--no-telemetry", f"--file-prefix={prefix}"]
        memory = ["--in-memory", "--single-file-segments"]
        if not request.hugepages:
            memory = ["--legacy-mem", *common.eal_memory_arguments(hugepages=False, size_mb=_memory_mb(request))]
        return [
            "dpdk-init=true",
            f"dpdk-extra={' '.join([*eal, *memory])}",
            f"dpdk-lcore-mask={ovs.mask(min(request.control_cpus))}",
            "vhost-sock-dir=.",
            f"per-port-memory={str(not request.stations).lower()}",
        ]

    def port_settings(self, number: int, port: SwitchPort, request: SwitchRequest) -> list[str]:
        mtu = [f"mtu_request={common.mtu_bytes(request)}"] if common.is_jumbo(request) else []
        if port.kind == "vhost-user":
            return ["type=dpdkvhostuser", *mtu]
        rings = [f"options:n_{way}q_desc={port.ring_size}" for way in ("rx", "tx")]
        queues = [f"options:n_rxq={request.queues}"] if request.queues > 1 else []  # of a vhost-user port: the VNF's
        device = common.pci_address(port) if port.kind == "pci" else common.dpdk_vdev(number, port, request)
        return ["type=dpdk", f"options:dpdk-devargs={device}", *queues, *rings, *mtu]


def _memory_mb(request: SwitchRequest) -> int:
    """Return twice the size of a pool of mbufs per port, as OvS sizes them: OvS makes a new pool before it frees the
    old one.

    Unused pages cost nothing without hugepages; with hugepages EAL allocates on demand. OvS's default, one pool of
    262144 mbufs for all ports, takes 800 MB. If that does not fit, OvS halves it only for ENOMEM, but DPDK may return
    ENOBUFS.
    """
    data_bytes = -(-(common.mtu_bytes(request) + 26) // 1024) * 1024
    if request.stations:
        return EAL_MB + 2 * -(-SHARED_MBUFS * (data_bytes + MBUF_OVERHEAD_BYTES) // 2**20)
    total = 0
    for port in request.ports:
        descriptors = max(VHOST_DESCRIPTORS if port.kind == "vhost-user" else port.ring_size, RING_MAX)
        total += (MBUFS_PER_PORT + 3 * descriptors * request.queues) * (data_bytes + MBUF_OVERHEAD_BYTES)
    return EAL_MB + 2 * -(-total // 2**20)


ADAPTER = OvsDpdkAdapter()
