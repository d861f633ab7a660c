# SPDX-License-Identifier: BSD-3-Clause
"""Click at user level, as ClickOS has it: ``FromDevice -> Queue -> ToDevice`` each way on kernel interfaces.

One thread, which sleeps in poll() when no frame comes: ``interrupt`` is part of its model. Frames come through libpcap
(METHOD PCAP, Click's default), whose memory-mapped ring keeps VLAN tags; METHOD LINUX is a recv() for each frame.

FastClick shares finding the program, the control socket, and cross-connects of elements. Three programs have the name
``click``: Click, FastClick, and a package tool of Debian. The first line of ``--version`` says which one it is: ``click
(FastClick) 2.1``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType

from planebench.host.process import Process, Supervisor, wait_ready
from planebench.host.programs import PATH_OPTION, Found, Installation, NotFound, program_output
from planebench.model.conditions import DEFAULT, FeatureClaim, everywhere
from planebench.model.errors import PlanebenchError, StartError, UsageError
from planebench.model.records import SwitchCycles
from planebench.model.switch import Option
from planebench.switches import common
from planebench.switches.adapter import Adapter, Traits
from planebench.switches.common import manifest
from planebench.testbed.request import SwitchPort, SwitchRequest, VnfInterface

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
CONTROL_TIMEOUT_S = 5.0
COMPLAINTS = 12
_COMPLAINT = re.compile(r"rror|ail|annot|nvalid|nknown")
_GREETING = re.compile(rb"Click::ControlSocket/\d+\.\d+\r\n")
_LINE = re.compile(rb"(\d{3})([ -])([^\r\n]*)\r\n")
_DATA = re.compile(rb"DATA (\d+)\r\n")
_VERSION = re.compile(r"^click \((\w+)\) (\S+)$", re.MULTILINE)


def find_click(where: Installation, product: str, places: Sequence[str]) -> tuple[Path, str] | None:
    """Return program and version of ``product`` (``FastClick``, ``Click``). UsageError if the user names another
    one."""
    for binary in where.programs("click", places):
        # FastClick aborts after --version, with its output still in its buffer.
        match = _VERSION.search(program_output(binary, "--version", line_buffered=True).stdout)
        if match and match[1] == product:
            return binary, match[2]
        if where.path is not None:
            says = match[0] if match else "no version of Click"
            raise UsageError(f'{where.said_by} "{binary}" is not {product}: --version says {says}; name another one')
    return None


def cross_connects(request: SwitchRequest, between: str = "->") -> list[str]:
    """Return ``n0_in -> v0_out;`` for both directions of every pair; ``between`` may have elements, {} is the
    output."""
    ways = [way for pair in request.cross_connects for way in (pair, pair[::-1])]
    return [f"{source}_in {between.format(sink)} {sink}_out;" for source, sink in ways]


class RunningClick(common.ProcessGroup):
    """A click program with one router thread and a control socket."""

    def __init__(self, title: str, process: Process, control: Path) -> None:
        super().__init__(title, [process])
        self.control = control

    def wait_ready(self) -> None:
        """Wait until the router runs. Otherwise stop it and raise StartError with its error messages."""
        version = partial(ask, self.control, ["version"], timeout_s=1.0)  # it is served when the router runs
        try:
            with self.stopped_on_failure():
                wait_ready(self.title, lambda: common.answers(version), self.processes)
        except StartError as error:
            log = self.process.log_path.read_text(errors="replace").splitlines()
            lines = [line.rstrip() for line in log if _COMPLAINT.search(line)][:COMPLAINTS]
            raise StartError(f"{error}\nIts error messages:\n" + "\n".join(lines)) from error

    def read(self, handlers: Iterable[str], threads: Mapping[str, int] = MappingProxyType({})) -> dict[str, int]:
        """Return the values of read handlers that exist and are numbers. Raises DiedError.

        Of a handler in ``threads``, which has a number for each of so many threads, it is their sum.
        """
        with self.answering():
            texts = ask(self.control, list(handlers))
        numbers = {name: sum_of(text, threads.get(name, 1)) for name, text in texts.items()}
        return {name: number for name, number in numbers.items() if number is not None}


def sum_of(text: str, count: int) -> int | None:
    """Return the sum of the numbers in a text; None unless there are ``count`` of them and nothing else."""
    words = text.split()
    whole = len(words) == count and all(re.fullmatch(r"[0-9]+", word) for word in words)
    return sum(map(int, words)) if whole else None


def ask(path: Path, handlers: Sequence[str], timeout_s: float = CONTROL_TIMEOUT_S) -> dict[str, str]:
    """Return the answers of read handlers by name, without handlers that the router does not have.

    All handlers are read between two bursts, so the counters are of one moment. Raises PlanebenchError without an
    answer.
    """
    request = "".join(f"READ {name}\r\n" for name in handlers) + "QUIT\r\n"
    try:
        received = common.answer_on(path, request.encode(), timeout_s)
    except OSError as error:
        raise PlanebenchError(f"the control socket {path} does not answer: {error}") from error
    return parse_answers(received, handlers)


def parse_answers(received: bytes, handlers: Sequence[str]) -> dict[str, str]:
    """Return the answers of a control socket to READs of ``handlers``, in this order, up to the first that is
    incomplete or unexpected."""
    answers: dict[str, str] = {}
    greeting = _GREETING.match(received)
    at = greeting.end() if greeting else len(received)
    for name in handlers:
        while (line := _LINE.match(received, at)) and line[2] == b"-":
            at = line.end()
        if line is None:
            break
        at = line.end()
        if line[1] != b"200":
            continue
        data = _DATA.match(received, at)
        if line[3] != f"Read handler '{name}' OK".encode() or data is None or data.end() + int(data[1]) > len(received):
            break
        at = data.end() + int(data[1])
        answers[name] = received[data.end() : at].decode(errors="replace").strip()
    return answers


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
            packets=common.total(numbers.get(f"{port}_in.count") for port in self._ports),
            drops={f"{port}:rx_missed": number for port, number in missed.items()}
            | {f"{port}:queue_full": number for port, number in full.items()},
        )


ADAPTER = ClickAdapter()
