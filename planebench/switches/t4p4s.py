# SPDX-License-Identifier: BSD-3-Clause
"""t4p4s: a program that its compiler and p4c made of a P4 program, which sends from port 2i to port 2i+1 and back.

There is one program for each P4 program, under any name, so it is never looked for: the user says where it is
(docs/switches has two P4 programs). What it does with a frame is fixed when it is compiled; nothing fills tables.
Burst, rings and buffers are compiled in too. Its counters are those of DPDK's telemetry: it has none of its own.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

from planebench.host.process import Process, Supervisor, stretched, wait_ready
from planebench.host.programs import PATH_OPTION, Found, NotFound
from planebench.model.errors import PlanebenchError, StartError, UsageError
from planebench.model.records import SwitchCycles
from planebench.switches import common
from planebench.switches.adapter import STANDARD_FRAME_BYTES, WORKERS_OPTION, Adapter, Situation, Traits
from planebench.switches.common import dpdk_version, manifest
from planebench.testbed.request import SwitchPort, SwitchRequest

BURST = 32
LOG_LINES = 32
MEMORY_MB = 256
"""The pools take 90: 8192 buffers for frames, and those for headers and clones, which are never used here."""
TABLE = b"ingress.dmac"
"""The table of destination MACs of an l2fwd, as a program with it names it."""
READY = "dev_started"
"""The state of a port that receives and sends; no port is started before all are set up."""

# DPDK's telemetry, which reports the port counters of any DPDK program. The protocol is described in the guide of
# DPDK's telemetry library: a SOCK_SEQPACKET unix socket greets with its limits, takes ``/command,argument`` and answers
# with one JSON object, ``{"/command": value}``.

GREETING_BYTES = 1024
"""The maximum length of DPDK's greeting."""
OUTPUT_BYTES_MAX = 1 << 20
TELEMETRY_TIMEOUT_S = 5.0


def ask(path: Path, *commands: str) -> list[Any]:
    """Return the answer to each command, such as ``/ethdev/stats,0``; None for an unknown command or port.

    Raises PlanebenchError if nobody listens or the answers do not follow the protocol.
    """
    answers = []
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.settimeout(stretched(TELEMETRY_TIMEOUT_S))
            connection.connect(str(path))
            connection.recv(GREETING_BYTES)
            for command in commands:
                connection.sendall(command.encode())
                answers.append(json.loads(connection.recv(OUTPUT_BYTES_MAX))[command.partition(",")[0]])
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise PlanebenchError(f"DPDK telemetry on {path} does not answer {', '.join(commands)}: {error}") from error
    return answers


def port_counters(answer: Any) -> dict[str, int]:
    """Return the counters of an answer by name, without values that are not whole numbers."""
    if not isinstance(answer, dict):
        return {}
    return {name: value for name, value in answer.items() if type(value) is int and value >= 0}


class T4p4sAdapter(Adapter):
    name = "t4p4s"
    title = "T4P4S"
    remedy = (
        "compile a P4 program that joins ports 0-1, 2-3, ... with t4p4s and p4c (docs/switches/t4p4s.md) "
        "and set PLANEBENCH_T4P4S to the resulting program"
    )
    wires = frozenset({"virtio", "vhost", "memif", "veth", "pci"})
    max_frame_bytes = STANDARD_FRAME_BYTES
    options = (PATH_OPTION, WORKERS_OPTION)
    sends_on_one_queue = True  # that of its lcore, and it frees what the ring has no room for
    traits = Traits(
        "self-contained", "match/action", ("rtc",), "vhost-user", "medium", ("C", "Python"), "P4 switch", "conext19"
    )

    def find(self) -> Found | NotFound:
        where = self.installation()
        if where.path is None:
            return NotFound(self.remedy)
        if not (where.path.is_file() and os.access(where.path, os.X_OK)):
            raise UsageError(f'{where.said_by} "{where.path}" is not a program; give the one that t4p4s made')
        version = dpdk_version(where.path, says="T4P4S")
        if version is None:
            raise UsageError(
                f'{where.said_by} "{where.path}" is not a t4p4s binary or does not start: '
                f"`{where.path} --no-huge --no-pci -m 8 -- --help` prints the reason"
            )
        return Found(f"{where.path.name} on {version}", where.path)

    def refusal(self, situation: Situation) -> str:
        if situation.wire == "pci" and situation.chain_length:
            return "t4p4s joins ports 0-1, 2-3, ..., but DPDK numbers both NICs before the interfaces of VNFs"
        return super().refusal(situation)

    def settings(self, request: SwitchRequest) -> dict[str, str]:
        # What the program does before it sends a frame: its tables are compiled in.
        path, lookup = self.installation().path, "parses Ethernet, has no table of MACs"
        if path is not None and path.is_file() and TABLE in path.read_bytes():
            lookup = "looks the destination MAC up in a table"
        return manifest(
            request,
            function=f"match/action: P4, {lookup} and sets the egress port",
            nic_driver=common.nic_driver(request),
            vnf_interface="vhost-user (DPDK net_vhost)",
            burst=f"{BURST} (compiled in)",
            **common.offloads(request, mergeable_wires=True),
            buffers="8192 mbufs, one pool (compiled in)",
            ndesc="128 receive, 512 send (compiled in); vhost, memif and af_packet rings ignore it",
            tx_retry="off (default)",
            tx_drain=f"{BURST} frames, or after 100 us (compiled in)",
        )

    def start(self, request: SwitchRequest, supervisor: Supervisor) -> RunningT4p4s:
        found, ports = common.prepared(self, request)
        prefix = f"t4p4s-{crc32(bytes(request.workdir)):08x}"  # several run at once; a socket's path has to be short
        argv = [str(found.binary), *arguments(request, ports, prefix)]
        process = self.spawn(argv, request, supervisor, env={"RUNTIME_DIRECTORY": str(supervisor.root)})
        telemetry = supervisor.root / "dpdk" / prefix / "dpdk_telemetry.v2"
        switch = RunningT4p4s(process, common.dpdk_order(ports), telemetry)
        try:
            with switch.stopped_on_failure():
                wait_ready("t4p4s", lambda: common.answers(switch.forwards), [process])
        except StartError as error:  # EAL tries every port, so the first complaint is not among the last
            lines = process.log_tail(LOG_LINES)
            raise StartError(f"t4p4s did not start; its last log lines:\n{lines}") from error
        return switch


class RunningT4p4s(common.ProcessGroup):
    """A t4p4s program, which forwards in its main thread, lcore 0, and its workers.

    Counters come from DPDK's telemetry.
    """

    thread_marks, main_forwards = common.DPDK_WORKER_NAMES, True

    def __init__(self, process: Process, ports: Sequence[SwitchPort], telemetry: Path) -> None:
        super().__init__("t4p4s", [process])
        self._ports = tuple(ports)
        self._telemetry = telemetry

    def forwards(self) -> bool:
        """Return whether every port has started; the lcore polls a moment later. Raises PlanebenchError."""
        if not common.sockets_exist(self._ports):
            return False
        return all(isinstance(info, dict) and info.get(READY) for info in self._ask("info"))

    def counters(self) -> SwitchCycles:
        with self.answering():
            stats = [port_counters(answer) for answer in self._ask("stats")]
        return SwitchCycles(
            packets=common.total(it.get("ipackets") for it in stats),
            forwarded_packets=common.total(it.get("opackets") for it in stats),
            drops=drops(self._ports, stats),
        )

    def _ask(self, what: str) -> list[object]:
        return ask(self._telemetry, *(f"/ethdev/{what},{n}" for n in range(len(self._ports))))


def drops(ports: Sequence[SwitchPort], stats: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Return drops by ``PORT:REASON``, without those whose counters are missing or inconsistent.

    t4p4s frees frames that a port does not accept and does not count them. Its vhost driver does (oerrors). For other
    ports ``not_sent`` is the number of frames that came for a port and did not leave it; up to 31 of them may still
    wait for 100 us.
    """
    found: dict[str, int] = {}
    for number, (port, own) in enumerate(zip(ports, stats, strict=True)):
        peer = stats[number ^ 1]
        for name, reason in (("imissed", "rx_missed"), ("ierrors", "rx_errors"), ("rx_nombuf", "rx_nombuf")):
            if name in own:
                found[f"{port.name}:{reason}"] = own[name]
        if not {"opackets", "oerrors"} <= own.keys() or "ipackets" not in peer:
            continue
        rest = peer["ipackets"] - own["opackets"] - own["oerrors"]
        if rest >= 0:
            reason = "tx_full" if port.kind == "vhost-user" else "tx_errors"
            found |= {f"{port.name}:{reason}": own["oerrors"], f"{port.name}:not_sent": rest}
    return found


def arguments(request: SwitchRequest, ports: Sequence[SwitchPort], prefix: str) -> list[str]:
    """Return the arguments of EAL, ``--``, and those of t4p4s. Port ids follow the order of the vdevs.

    Lcore n receives on queue n of every port, and sends on it.
    """
    queues = range(len(request.worker_cpus))
    return [
        # It sets up queues to send for lcores 0, 1, ... and drops what others send: so they are numbered from 0.
        "--lcores=" + ",".join(f"{lcore}@{cpu}" for lcore, cpu in enumerate(request.worker_cpus)),
        f"--file-prefix={prefix}",
        *common.eal_memory_arguments(hugepages=request.hugepages, size_mb=MEMORY_MB),
        *common.devices(ports, request),
        "--",
        *("-p", f"0x{(1 << len(ports)) - 1:x}"),
        *("--config", ",".join(f"({number},{queue},{queue})" for number in range(len(ports)) for queue in queues)),
        # Without hugepages EAL has all memory as that of node 0, whatever node it is on: a pool for another one fails.
        *(() if request.hugepages else ("--no-numa",)),
    ]


ADAPTER = T4p4sAdapter()
