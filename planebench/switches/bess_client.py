# SPDX-License-Identifier: BSD-3-Clause
"""BESS's gRPC interface, spoken from the .proto files of the BESS that is there: they fit its version, whatever it is.

Needs grpcio-tools (the extra ``planebench[bess]``).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from planebench.host.deadlines import stretched
from planebench.model.errors import PlanebenchError

EXTRA_MODULES = ("grpc", "grpc_tools", "google.protobuf")
SERVICE = "bess.pb.BESSControl"
_TIMEOUT_S = 10.0


def missing_modules() -> tuple[str, ...]:
    """Return the required Python modules that are not installed."""
    return tuple(name for name in EXTRA_MODULES if not _is_there(name))


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


class BessClient:
    """A gRPC connection to a bessd on a unix socket. Use it from one thread."""

    def __init__(self, protos: Path, socket: Path, workdir: Path) -> None:
        """Read the .proto files in ``protos``; do not connect yet. Raises PlanebenchError if that fails."""
        import grpc
        from google.protobuf import descriptor_pool

        self._pool = descriptor_pool.DescriptorPool()
        for file in _compile(protos, workdir / "bess.protoset"):
            self._pool.Add(file)
        self._service = self._pool.FindServiceByName(SERVICE)
        self._channel = grpc.insecure_channel(f"unix:{socket}", options=[("grpc.enable_http_proxy", 0)])

    def ready(self) -> bool:
        """Return whether bessd answers."""
        try:
            self.call("GetVersion")
        except PlanebenchError:
            return False
        return True

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
        """Close the connection. Safe to call twice."""
        self._channel.close()


def error_of(reply: Any) -> str:
    """Return the error in a reply; empty if there is none: bessd sends errors with status OK."""
    if "error" not in reply.DESCRIPTOR.fields_by_name or reply.error.code == 0:
        return ""
    return f"{reply.error.errmsg} (code {reply.error.code})"


def _compile(protos: Path, target: Path) -> list[Any]:
    """Return the descriptors of every .proto file, imported files first."""
    import grpc_tools
    from google.protobuf import descriptor_pb2
    from grpc_tools import protoc

    common = Path(grpc_tools.__file__).parent / "_proto"
    files = [str(path) for folder in (protos, protos / "ports") for path in sorted(folder.glob("*.proto"))]
    options = [f"-I{protos}", f"-I{common}", "--include_imports", f"--descriptor_set_out={target}"]
    if not files or protoc.main(["protoc", *options, *files]) != 0:
        raise PlanebenchError(f"the .proto files of BESS in {protos} cannot be read")
    return list(descriptor_pb2.FileDescriptorSet.FromString(target.read_bytes()).file)
