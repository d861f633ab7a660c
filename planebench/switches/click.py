# SPDX-License-Identifier: BSD-3-Clause
"""Click at user level, as ClickOS has it: ``FromDevice -> Queue -> ToDevice`` each way on kernel interfaces.

One thread, which sleeps in poll() when no frame comes: ``interrupt`` is part of its model. Frames come through libpcap
(METHOD PCAP, Click's default), whose memory-mapped ring keeps VLAN tags; METHOD LINUX is a recv() for each frame.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from planebench.host.process import Process, Supervisor
from planebench.host.programs import PATH_OPTION, Found, NotFound
from planebench.model.claims import FeatureClaim, everywhere
from planebench.model.manifest import DEFAULT
from planebench.model.option import Option
from planebench.model.records import SwitchCycles
from planebench.switches import common
from planebench.switches.click_common import RunningClick, cross_connects, find_click, total
from planebench.switches.manifest import manifest
from planebench.wiring.adapter import Adapter, Traits
from planebench.wiring.request import SwitchPort, SwitchRequest, VnfInterface

PLACES = (
    "/usr/local/bin/click",
    "/opt/click/bin/click",
    "/opt/click/userlevel/click",
    "/usr/src/click*/userlevel/click",
    "~/click*/userlevel/click",
)
BURST = 32
QUEUE = 1000
"""Queue's own default."""
PCAP, LINUX = "pcap", "linux"
SNAPLEN_STANDARD, SNAPLEN_JUMBO = 2046, 9216
OPTIONS: tuple[Option, ...] = (
    PATH_OPTION,
    Option("burst", "whole", "maximum number of frames received or sent at once", str(BURST), least=1, most=1024),
    Option("queue", "whole", "maximum number of frames queued for a port", str(QUEUE), least=1, most=1 << 20),
    Option("method", "text", "method of receiving frames from the kernel", PCAP, choices=(PCAP, LINUX)),
)


class ClickAdapter(Adapter):
    """``click``: user-level Click."""

    name = "click"
    title = "Click"
    remedy = (
        "build Click (https://github.com/kohler/click: ./configure --disable-linuxmodule, with libpcap) "
        "and set PLANEBENCH_CLICK to its folder; Debian's package click is another program"
    )
    wires = frozenset({"veth"})
    vnf_interface: VnfInterface = "veth"
    options = OPTIONS
    traits = Traits(
        "modular", "structured", ("rtc", "interrupt"), "none (veth here)", "low", ("C++",), "modular router"
    )

    def find(self) -> Found | NotFound:
        found = find_click(self.installation(), "Click", PLACES)
        return Found(found[1], found[0]) if found else NotFound(self.remedy)

    def settings(self, request: SwitchRequest) -> dict[str, str]:
        method = self.value("method", PCAP)
        return manifest(
            request,
            function="patch: FromDevice -> Queue -> ToDevice each way",
            nic_driver=f"the kernel's packet socket ({'libpcap' if method == PCAP else 'recv'})",
            vnf_interface="veth (the kernel's)",
            ring_size=DEFAULT,
            burst=str(self.value("burst", BURST)),
            checksum_offload=everywhere("off", "packet sockets carry frames as they are"),
            segmentation_offload=everywhere("off", "packet sockets carry frames as they are"),
            mergeable_buffers=FeatureClaim(None, None),
            memory="4 KiB pages (it uses no hugepages)",
            buffers="from the heap, unlimited",
            queue=f"{self.value('queue', QUEUE)} frames in software per port",
        )

    def start(self, request: SwitchRequest, supervisor: Supervisor) -> RunningUserClick:
        common.check_frame_size(request)
        ports = common.paired_ports(request)
        control, graph = request.workdir / "click.ctl", request.workdir / "click.click"
        text = self.graph(request, ports, control)
        binary = common.require(self).binary
        graph.write_text(text)
        control.unlink(missing_ok=True)  # of one that was killed: it would not start
        cpus = frozenset({request.cpu})  # everything is done by one thread
        process = self.spawn([str(binary), str(graph)], request, supervisor, cpus=cpus)
        switch = RunningUserClick(process, control, [port.name for port in ports], self.value("method", PCAP))
        switch.wait_ready()
        return switch

    def graph(self, request: SwitchRequest, ports: Sequence[SwitchPort], control: Path) -> str:
        """Return the router configuration."""
        burst, method = self.value("burst", BURST), self.value("method", PCAP).upper()
        snaplen = SNAPLEN_JUMBO if common.is_jumbo(request) else SNAPLEN_STANDARD
        lines = []
        for port in ports:
            interface = common.interface_name(port)
            lines += [
                f"{port.name}_in :: FromDevice({interface}, PROMISC true, SNAPLEN {snaplen}, METHOD {method}, "
                f"BURST {burst});",
                f"{port.name}_out :: ToDevice({interface}, BURST {burst});",
            ]
        between = f"-> {{}}_queue :: Queue({self.value('queue', QUEUE)}) ->"
        return "\n".join([*lines, *cross_connects(request, between), f"ControlSocket(UNIX, {control});", ""])


class RunningUserClick(RunningClick):
    """A Click that forwards. Counters come from its control socket."""

    def __init__(self, process: Process, control: Path, ports: Sequence[str], method: str) -> None:
        super().__init__("Click", process, control)
        self._ports = tuple(ports)
        self._method = method
        self._missed: Counter[str] = Counter()

    def counters(self) -> SwitchCycles:
        """Return counters of the elements. ToDevice does not count the frames it sends."""
        numbers = self.read(
            f"{port}_{it}" for port in self._ports for it in ("in.count", "in.kernel_drops", "queue.drops")
        )
        missed = {
            port: number for port in self._ports if (number := numbers.get(f"{port}_in.kernel_drops")) is not None
        }
        if self._method == LINUX:  # the kernel's count begins anew when it is read
            self._missed.update(missed)
            missed = {port: self._missed[port] for port in missed}
        full = {port: number for port in self._ports if (number := numbers.get(f"{port}_queue.drops")) is not None}
        return SwitchCycles(
            packets=total(numbers, (f"{port}_in.count" for port in self._ports)),
            drops={f"{port}:rx_missed": number for port, number in missed.items()}
            | {f"{port}:queue_full": number for port, number in full.items()},
        )


ADAPTER = ClickAdapter()
