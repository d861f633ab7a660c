# SPDX-License-Identifier: BSD-3-Clause
"""BESS: ``PMDPort`` and ``QueueInc -> QueueOut`` each way (conext19), set up over gRPC.

bessd chooses the arguments of DPDK's EAL itself: its packet memory is anonymous, or a file for each hugepage. A peer
that has to see it, as the tester behind an emulated NIC, takes neither; vhost-user devices, memif and kernel
interfaces copy.

gRPC is spoken from the .proto files of the BESS that is there: they fit its version, whatever it is. That needs
grpcio-tools (the extra ``planebench[bess]``).
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

from planebench.host import procfs
from planebench.host.evidence import ThreadRef
from planebench.host.memory import free_bytes, hugetlbfs_mounted
from planebench.host.process import READY_DEADLINE_S, Process, Supervisor, stretched, wait_ready
from planebench.host.programs import PATH_OPTION, Found, NotFound
from planebench.model.conditions import everywhere
from planebench.model.errors import PlanebenchError, StartError
from planebench.model.records import SwitchCycles
from planebench.model.scenarios import queue_name
from planebench.model.switch import Option
from planebench.switches import common
from planebench.switches.adapter import STANDARD_FRAME_BYTES, WORKERS_OPTION, Adapter, Situation, Traits
from planebench.switches.common import manifest
from planebench.testbed.request import SwitchRequest

BUFFERS = 32768
"""A power of two; a mbuf of BESS takes 2.5 KB."""
MEMORY_MB = 256
CLEARED_BYTES_PER_S = 200e6
"""How fast pages are cleared at least; those that a VM never had before come from its host, in 2 s per GB and more."""
BURST = 32
"""bess::PacketBatch::kMaxBurst."""
PLACES = ("/opt/bess*/core/bessd", "~/bess/core/bessd", "/opt/bess*/bin/bessd", "/usr/local/bin/bessd")
SERVE = ("queues", "hops")
"""can17 has a worker for each hop, on a core of its own, where ``--switch-cores`` gives as many."""
_PROTOS = ("protobuf", "../protobuf", "../../protobuf")
"""From the folder of bessd: in an installation, in a source tree (core/bessd)."""
_TYPE = "type.googleapis.com/bess.pb."
VERSION = re.compile(r"^bessd version (\S+)")
SERVICE = "bess.pb.BESSControl"
_TIMEOUT_S = 10.0


class BessClient:
    """A gRPC connection to a bessd on a unix socket. Use it from one thread."""

    def __init__(self, protos: Path, socket: Path, workdir: Path) -> None:
        """Read the .proto files in ``protos``; do not connect yet. Raises PlanebenchError if that fails."""
        import grpc
        import grpc_tools
        from google.protobuf import descriptor_pb2, descriptor_pool
        from grpc_tools import protoc

        target = workdir / "bess.protoset"
        folders = (protos, protos / "ports")
        files = [str(path) for folder in folders for path in sorted(folder.glob("*.proto"))]
        includes = [f"-I{protos}", f"-I{Path(grpc_tools.__file__).parent / '_proto'}", "--include_imports"]
        if not files or protoc.main(["protoc", *includes, f"--descriptor_set_out={target}", *files]) != 0:
            raise PlanebenchError(f"the .proto files of BESS in {protos} cannot be read")
        self._pool = descriptor_pool.DescriptorPool()
        for file in descriptor_pb2.FileDescriptorSet.FromString(target.read_bytes()).file:  # imported files first
            self._pool.Add(file)
        self._service = self._pool.FindServiceByName(SERVICE)
        self._channel = grpc.insecure_channel(f"unix:{socket}", options=[("grpc.enable_http_proxy", 0)])

    def call(self, method: str, request: Mapping[str, Any] | None = None) -> Any:
        """Call a method, with the request as JSON, and return the reply, a protobuf message. Raises PlanebenchError."""
        import grpc
        from google.protobuf import json_format, message_factory

        rpc = self._service.methods_by_name[method]
        message = message_factory.GetMessageClass(rpc.input_type)()
        json_format.ParseDict(dict(request or {}), message, descriptor_pool=self._pool)
        send = self._channel.unary_unary(
            f"/{SERVICE}/{method}",
            request_serializer=lambda it: it.SerializeToString(),
            response_deserializer=message_factory.GetMessageClass(rpc.output_type).FromString,
        )
        try:
            reply = send(message, timeout=stretched(_TIMEOUT_S))
        except grpc.RpcError as error:
            raise PlanebenchError(f"bessd does not answer {method}: {error.details()}") from error
        if error_of(reply):
            raise PlanebenchError(f"bessd refused {method} {dict(request or {})}: {error_of(reply)}")
        return reply

    def close(self) -> None:
        self._channel.close()


def error_of(reply: Any) -> str:
    """Return the error in a reply; empty if there is none: bessd sends errors with status OK."""
    if "error" not in reply.DESCRIPTOR.fields_by_name or reply.error.code == 0:
        return ""
    return f"{reply.error.errmsg} (code {reply.error.code})"


class BessAdapter(Adapter):
    name = "bess"
    title = "BESS"
    remedy = "build it: https://github.com/NetSys/bess (`./build.py bess`), then PLANEBENCH_BESS=/path/to/core/bessd"
    wires = frozenset({"virtio", "vhost", "memif", "veth", "pci"})
    max_frame_bytes = STANDARD_FRAME_BYTES
    traits = Traits(
        "modular",
        "structured",
        ("rtc", "pipeline"),
        "vhost-user",
        "medium",
        ("C", "Python"),
        "programmable NIC",
        "conext19",
    )
    options = (
        PATH_OPTION,
        WORKERS_OPTION,
        Option("serve", "text", "what a worker serves: queues of all ports, or hops", "queues", SERVE),
        Option("eal_env", "text", "environment variable with EAL arguments, for a modified bessd", "none"),
    )

    def find(self) -> Found | NotFound:
        found = self.found_by_version("bessd", PLACES, VERSION)
        if isinstance(found, Found) and _protos(found.binary) is None:
            return NotFound(f"BESS's folder protobuf is not beside {found.binary}; give the one of its source tree")
        if isinstance(found, Found) and importlib.util.find_spec("grpc_tools") is None:
            return NotFound("install grpcio-tools: `pip install 'planebench[bess]'`")
        return found

    def refusal(self, situation: Situation) -> str:
        if self.value("eal_env", ""):
            return super().refusal(situation)
        if situation.hugepages and not hugetlbfs_mounted():
            return (
                "bessd makes files of hugepages, and no hugetlbfs is mounted; `sudo mkdir -p /dev/hugepages && sudo "
                "mount -t hugetlbfs none /dev/hugepages`, or --no-hugepages"
            )
        if situation.wire == "virtio" and situation.layout.wired:
            return (
                "bessd cannot share its packet memory (anonymous, or one file per page) with the other side of an "
                "emulated NIC; use --wire memif, vhost or veth"
            )
        if situation.wire == "pci" and situation.layout.wired:
            return (
                "bessd probes every NIC that is bound to vfio, the tester's too, and has no option against it; use a "
                "bessd that takes EAL arguments (option eal_env)"
            )
        return super().refusal(situation)

    def settings(self, request: SwitchRequest) -> dict[str, str]:
        by_hop = self.value("serve", "queues") == "hops"
        return manifest(
            request,
            function="patch: QueueInc -> QueueOut each way",
            nic_driver=common.nic_driver(request),
            vnf_interface="vhost-user (DPDK net_vhost)",
            burst=str(BURST),
            checksum_offload=everywhere("off"),
            mergeable_buffers=everywhere("offered"),
            segmentation_offload=everywhere("off"),
            buffers=f"{BUFFERS}, one pool",
            scheduling=f"round robin over the {'hops' if by_hop else 'ports'} of a worker",
        )

    def start(self, request: SwitchRequest, supervisor: Supervisor) -> RunningBess:
        found, _ = common.prepared(self, request)
        socket = request.workdir / "bess.grpc"
        env = {"RUNTIME_DIRECTORY": str(request.workdir)}  # of DPDK
        if variable := str(self.value("eal_env", "")):
            env[variable] = " ".join(eal_arguments(request, f"{supervisor.root.name}-bess"))
        argv = [
            *(str(found.binary), "-f", "-no_crashlog"),
            *("-m", str(MEMORY_MB if request.hugepages else 0), "-buffers", str(BUFFERS)),
            *("-i", str(request.workdir / "bessd.pid"), "-grpc_url", f"unix:{socket}"),
        ]
        process = self.spawn(argv, request, supervisor, cpus=request.control_cpus, env=env)
        try:
            with ExitStack() as started:
                started.callback(process.terminate)
                deadline_s = _deadline_s(free_bytes() if request.hugepages else 0)
                client = BessClient(_protos(found.binary) or Path(), socket, request.workdir)
                started.callback(client.close)
                greets = partial(common.answers, lambda: client.call("GetVersion") is not None)
                wait_ready("bessd", greets, [process], deadline_s)
                switch = RunningBess(process, client, request, self.value("serve", "queues") == "hops")
                switch.configure()
                started.pop_all()
        except PlanebenchError as error:
            raise StartError(f"{error}\n{process.exit_report()}") from error
        return switch


def eal_arguments(request: SwitchRequest, prefix: str) -> list[str]:
    """Return what a modified bessd gets for EAL."""
    memory = common.eal_memory_arguments(hugepages=request.hugepages, size_mb=MEMORY_MB)
    return [*common.allow_list(request.ports), f"--file-prefix={prefix}", "--iova=va", *memory]


class RunningBess(common.ProcessGroup):
    def __init__(self, process: Process, client: BessClient, request: SwitchRequest, by_hop: bool = False) -> None:
        super().__init__("BESS", [process])
        self._client = client
        self._request = request
        self._by_hop = by_hop
        self._cores = request.cpus[: len(request.cross_connects)] if by_hop else request.worker_cpus

    def configure(self) -> None:
        """Create the ports, the modules, and workers that serve their queues of the ports, or their hops, in turn.

        Raises PlanebenchError.
        """
        for worker, cpu in enumerate(self._cores):
            self._client.call("AddWorker", {"wid": worker, "core": cpu})
            name = queue_name("rr", worker)
            self._client.call("AddTc", {"class": {"name": name, "policy": "round_robin", "wid": worker}})
        count = self._request.queues
        for number, port in enumerate(common.paired_ports(self._request)):
            device = {"pci": port.address}
            if port.kind != "pci":
                device = {"vdev": common.dpdk_vdev(number, port, self._request)}
            argument: dict[str, Any] = {"@type": f"{_TYPE}PMDPortArg", **device}
            ring = port.ring_size
            queues = {"num_inc_q": count, "num_out_q": count, "size_inc_q": ring, "size_out_q": ring}
            self._client.call("CreatePort", {"name": port.name, "driver": "PMDPort", **queues, "arg": argument})
            for prefix, kind in (("in_", "QueueInc"), ("out_", "QueueOut")):
                for queue in range(count):
                    module = queue_name(f"{prefix}{port.name}", queue)
                    argument = {"@type": f"{_TYPE}{kind}Arg", "port": port.name, "qid": queue}
                    self._client.call("CreateModule", {"name": module, "mclass": kind, "arg": argument})
        for hop, (a, b) in enumerate(self._request.cross_connects):
            for queue in range(count):
                parent = queue_name("rr", (hop if self._by_hop else queue) % len(self._cores))
                for first, second in ((a, b), (b, a)):
                    source, sink = queue_name(f"in_{first}", queue), queue_name(f"out_{second}", queue)
                    # Without the hook that counts batches at every gate (Track), as conext19.
                    gate = {"m1": source, "m2": sink, "ogate": 0, "igate": 0, "skip_default_hooks": True}
                    self._client.call("ConnectModules", gate)
                    leaf = {"parent": parent, "leaf_module_name": source, "leaf_module_taskid": 0, "wid": -1}
                    self._client.call("UpdateTcParent", {"class": leaf})
        self._client.call("ResumeAll")

    def polling_threads(self) -> tuple[ThreadRef, ...]:
        """Return the workers: all threads are called bessd, but only a worker is bound to one of the switch's cores."""
        pid, found = self.process.pid, []
        for tid, name in procfs.threads(pid).items():
            with suppress(OSError):  # it has ended
                cpus = os.sched_getaffinity(tid)
                if len(cpus) == 1 and cpus <= set(self._cores):
                    found.append(ThreadRef(pid, tid, name))
        return tuple(found)

    def counters(self) -> SwitchCycles:
        """Return counters of the ports.

        Cycles are unknown: those of a traffic class include empty polls, and bessd does not report which of them were
        busy.
        """
        with self.answering():
            stats = {p.name: self._client.call("GetPortStats", {"name": p.name}) for p in self._request.ports}
        return SwitchCycles(
            packets=sum(int(it.inc.packets) for it in stats.values()),
            forwarded_packets=sum(int(it.out.packets) for it in stats.values()),
            bursts=bursts([it.inc for it in stats.values()]),
            drops={f"{name}:tx_full": int(it.out.dropped) for name, it in stats.items()}
            | {f"{name}:rx_missed": int(it.inc.dropped) for name, it in stats.items()},
        )

    def stop(self) -> None:
        self._client.close()
        super().stop()


def bursts(stats: Sequence[Any]) -> int | None:
    """Return the polls that found frames, from the histograms of batch sizes; None if a port has no histogram."""
    histograms = [list(getattr(it, "actual_hist", ())) for it in stats]
    return sum(sum(map(int, hist[1:])) for hist in histograms) if all(histograms) else None


def _protos(binary: Path) -> Path | None:
    folders = ((binary.parent / name).resolve() for name in _PROTOS)
    return next((folder for folder in folders if (folder / "service.proto").is_file()), None)


def _deadline_s(free_hugepages_bytes: int) -> float:
    """Return how long bessd may take to start: DPDK 20.11 maps, and so clears, every free page before it frees most."""
    return READY_DEADLINE_S + free_hugepages_bytes / CLEARED_BYTES_PER_S


ADAPTER = BessAdapter()
