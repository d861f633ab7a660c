# SPDX-License-Identifier: BSD-3-Clause
"""DPDK's own testpmd as a switch: io forwarding between pairs of ports, the least a DPDK program can do."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import Path

from planebench.host.process import Process, Supervisor, stretched, wait_ready
from planebench.host.programs import PATH_OPTION, Found, NotFound
from planebench.model.cpus import cpu_text
from planebench.model.errors import DiedError, StartError
from planebench.model.records import SwitchCycles
from planebench.model.switch import Option
from planebench.switches import common
from planebench.switches.adapter import WORKERS_OPTION, Adapter, Traits
from planebench.switches.common import dpdk_version, manifest
from planebench.testbed.request import SwitchPort, SwitchRequest

PROMPT = b"testpmd> "
FORWARDING = b"io packet forwarding - ports=%d "
"""testpmd's message once that many ports have started."""
BURST = 32
BURST_MAX = 512
MIN_MBUFS = 16384
MBUF_OVERHEAD_BYTES = 320
"""Beside the data room: struct rte_mbuf, object header, the share of the free ring, rounding."""
EAL_MB = 96
COMMAND_DEADLINE_S = 5.0

_TOTAL = re.compile(
    rb"\+ Accumulated forward statistics for all ports\+.*?RX-packets: (\d+) (?:.*?TX-packets: (\d+) )?", re.DOTALL
)
_PORT = re.compile(rb"- Forward statistics for port (\d+)  -+\r?\n(.*?)\n  -{70}", re.DOTALL)
_PORT_DROPS = {
    "rx_missed": re.compile(rb"RX-packets: \d+ +RX-dropped: (\d+) "),
    "rx_errors": re.compile(rb"RX-error: (\d+)\s"),
    "rx_nombuf": re.compile(rb"RX-nombufs: (\d+)\s"),
    "tx_full": re.compile(rb"TX-packets: \d+ +TX-dropped: (\d+) "),
}
"""The lines of errors and nombufs are there only if one of them is not zero."""
_TX_ERRORS = re.compile(rb"# NIC statistics for port (\d+) (?:(?!# NIC).)*?TX-errors: (\d+) ", re.DOTALL)
_XSTATS = re.compile(rb"NIC extended statistics for port (\d+) *\r?\n((?:\w+: \d+\r?\n)*)")
ERRORS_IN_DROPPED = (23, 3)
"""From this DPDK on, what testpmd calls dropped includes what the driver counts as an error, and net_vhost counts what
it could not send as an error since 23.11: such a frame is counted twice."""
_CYCLES = re.compile(rb"\((?:total|busy) cycles=(\d+) / total \w+ packets=\d+\)")


class TestpmdAdapter(Adapter):
    __test__ = False  # not a test class, whatever pytest thinks of its name
    name = "testpmd"
    title = "DPDK testpmd"
    remedy = "install DPDK's tools: `apt-get install dpdk` (Debian, Ubuntu) or `dnf install dpdk-tools` (Fedora)"
    wires = frozenset({"virtio", "vhost", "memif", "veth", "pci", "af_xdp"})
    options: tuple[Option, ...] = (
        PATH_OPTION,
        WORKERS_OPTION,
        Option("burst", "whole", "maximum number of frames received at once", str(BURST), least=1, most=BURST_MAX),
    )
    traits = Traits("self-contained", "structured", ("rtc",), "vhost-user", "low", ("C",), "DPDK's test of drivers")

    def find(self) -> Found | NotFound:
        binary = self.installation().program("dpdk-testpmd")
        if binary is None:
            return NotFound(self.remedy)
        version = dpdk_version(binary)
        if version is None:
            return NotFound(f"{binary} does not start: `{binary} --no-huge --no-pci -m 8` prints the reason")
        return Found(version, binary)

    def settings(self, request: SwitchRequest) -> dict[str, str]:
        return manifest(
            request,
            function="patch: io forwarding between pairs of ports",
            nic_driver=common.nic_driver(request),
            vnf_interface="vhost-user (DPDK net_vhost)",
            burst=str(self.value("burst", BURST)),
            **common.offloads(request, mergeable_wires=True),
            buffers=f"{_mbuf_count(request)} mbufs, one pool",
            tx_retry="off (default)",
        )

    def start(self, request: SwitchRequest, supervisor: Supervisor) -> RunningTestpmd:
        found, ports = common.prepared(self, request)
        prefix = f"{supervisor.root.name}-testpmd"
        arguments = _arguments(found.binary, request, ports, prefix, self.value("burst", BURST))
        process = self.spawn(["stdbuf", "-oL", *arguments], request, supervisor, pipe_stdin=True)
        nics = any(port.kind == "pci" for port in ports)
        names = [port.name for port in common.dpdk_order(ports)]
        switch = RunningTestpmd(process, names, found.version, nics=nics)
        with switch.stopped_on_failure():
            wait_ready("testpmd", lambda: process.log_path.read_bytes().endswith(PROMPT), [process])
            wait_ready("testpmd's vhost ports", lambda: common.sockets_exist(ports), [process])
            if FORWARDING % len(ports) not in process.log_path.read_bytes():
                log = process.log_path.read_text(errors="replace").splitlines()
                lines = [line for line in log if re.search(r"rror|ail|annot|nvalid|Not all", line)][-12:]
                complaints = "\n".join(lines)
                raise StartError(f"testpmd does not forward on every port; its last log lines:\n{complaints}")
            common.check_workers("testpmd", switch.polling_threads(), request, process)
        return switch


class RunningTestpmd(common.ProcessGroup):
    thread_marks = common.DPDK_WORKER_NAMES

    def __init__(self, process: Process, ports: Sequence[str], version: str, *, nics: bool = False) -> None:
        super().__init__("testpmd", [process])
        self._errors_in_dropped = common.release(version) >= ERRORS_IN_DROPPED
        self._ports = tuple(ports)
        self._nics = nics

    def counters(self) -> SwitchCycles:
        """Return the counters. Raises DiedError also if testpmd does not answer within 5 s.

        Busy cycles are TSC cycles of receive and send calls with packets (``--record-core-cycles``), without empty
        polls, of all workers.
        """
        output = self._ask("show fwd stats all")
        packets, cycles = _TOTAL.search(output), _CYCLES.search(output)
        if packets is None:
            raise DiedError(f"testpmd printed no statistics but:\n{output.decode(errors='replace')[-500:]}")
        if self._errors_in_dropped:
            output += self._ask("show port stats all")
        drops = parse_drops(output, self._ports, errors_in_dropped=self._errors_in_dropped)
        sent = int(packets[2]) if packets[2] else None
        extended = common.nic_counters(
            parse_xstats(self._ask("show port xstats all"), self._ports) if self._nics else {}
        )
        drops |= common.nic_drops(extended)
        return SwitchCycles(
            busy_cycles=int(cycles[1]) if cycles else 0,  # no line before the first packet
            packets=int(packets[1]),
            drops=drops,
            forwarded_packets=sent,
            counters=extended,
        )

    def _ask(self, command: str) -> bytes:
        self.check()
        log, stdin = self.process.log_path, self.process.stdin
        before = log.stat().st_size
        deadline = time.monotonic() + stretched(COMMAND_DEADLINE_S)
        try:
            assert stdin is not None
            stdin.write(command.encode() + b"\n")
            stdin.flush()
        except OSError as error:
            raise self.died(f"testpmd accepts no commands ({error})") from error
        with log.open("rb") as file:
            file.seek(before)
            output = file.read()
            while not output.endswith(b"\n" + PROMPT):
                self.check()
                if time.monotonic() > deadline:
                    raise self.died(f"no answer to {command!r} in {COMMAND_DEADLINE_S:g} s")
                time.sleep(0.0005)
                output += file.read()
        return output


def parse_drops(output: bytes, ports: Sequence[str], *, errors_in_dropped: bool = False) -> dict[str, int]:
    """Return drops by ``PORT:REASON`` from ``show fwd stats all``; ``ports`` are our names in testpmd's order.

    ``errors_in_dropped``: testpmd adds the driver's errors to its drops (:data:`ERRORS_IN_DROPPED`). They are
    subtracted, so ``output`` must contain ``show port stats all`` too.

    A port or a line that is missing or incomplete in the text gives no key. The accumulated figures are not used: they
    count a frame that a vhost port did not send twice, by the forwarder and by the driver.
    """
    drops: dict[str, int] = {}
    for number, block in _PORT.findall(output):
        if int(number) < len(ports):
            found = {reason: pattern.search(block) for reason, pattern in _PORT_DROPS.items()}
            drops |= {f"{ports[int(number)]}:{reason}": int(match[1]) for reason, match in found.items() if match}
    if not errors_in_dropped:
        return drops
    # A port whose errors are not in the output has no tx_full.
    errors = {f"{ports[int(n)]}:tx_full": int(count) for n, count in _TX_ERRORS.findall(output) if int(n) < len(ports)}
    kept = {key: count for key, count in drops.items() if not key.endswith(":tx_full")}
    return kept | {key: max(drops[key] - count, 0) for key, count in errors.items() if key in drops}


def parse_xstats(output: bytes, ports: Sequence[str]) -> dict[str, dict[str, int]]:
    """Return the statistics of each port by name from ``show port xstats all``; ``ports`` as in :func:`parse_drops`."""
    return {
        ports[int(number)]: {name.decode(): int(count) for name, count in re.findall(rb"(\w+): (\d+)", block)}
        for number, block in _XSTATS.findall(output)
        if int(number) < len(ports)
    }


def _mbuf_count(request: SwitchRequest) -> int:
    """Return twice the descriptors of all rings of all ports, at least 16384."""
    return max(MIN_MBUFS, 4 * sum(port.ring_size for port in request.ports) * request.queues)


def _arguments(
    binary: Path, request: SwitchRequest, ports: tuple[SwitchPort, ...], prefix: str, burst: int = BURST
) -> list[str]:
    mbuf_bytes = common.mbuf_bytes(request)
    size_mb = EAL_MB + _mbuf_count(request) * (mbuf_bytes + MBUF_OVERHEAD_BYTES) // 2**20
    ring = max(port.ring_size for port in request.ports)
    workers = ",".join(f"{lcore}@{cpu}" for lcore, cpu in enumerate(request.worker_cpus, start=1))
    queues = [f"--rxq={request.queues}", f"--txq={request.queues}"] if request.queues > 1 else []
    numbered = common.dpdk_order(ports)
    order = ",".join(str(numbered.index(port)) for port in ports)
    port_list = [f"--portlist={order}"] if numbered != tuple(ports) else []
    # Without hugepages EAL has all memory as that of node 0, whatever node it is on, and a pool for another one fails.
    one_node = [] if request.hugepages else ["--no-numa"]
    arguments = [
        str(binary),
        f"--lcores=0@({cpu_text(request.control_cpus)}),{workers}",
        "--main-lcore=0",
        "--no-telemetry",
        f"--file-prefix={prefix}",
        *common.eal_memory_arguments(hugepages=request.hugepages, size_mb=size_mb),
        *common.devices(ports, request),
        "--",
        "--interactive",
        "--auto-start",
        "--forward-mode=io",
        "--port-topology=paired",  # the first port of the list with the second, the third with the fourth, ...
        *port_list,
        *one_node,
        f"--nb-cores={len(request.worker_cpus)}",
        *queues,
        f"--burst={burst}",
        f"--rxd={ring}",
        f"--txd={ring}",
        f"--total-num-mbufs={_mbuf_count(request)}",
        f"--mbuf-size={mbuf_bytes}",
        "--record-core-cycles",
        "--no-flush-rx",
        "--disable-link-check",
        "--no-mlockall",
    ]
    # DPDK's af_packet driver refuses an MTU over 1500, yet carries any frame that fits its slots and the mbuf.
    if common.is_jumbo(request) and all(port.kind != "af_packet" for port in ports):
        arguments.append(f"--max-pkt-len={request.max_frame_bytes}")
    return arguments


ADAPTER = TestpmdAdapter()
