# SPDX-License-Identifier: BSD-3-Clause
"""TRex in stateless mode, by the client library of its own release: no registry has it."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from planebench.host.process import stretched
from planebench.model.errors import NotInstalledError, UsageError
from planebench.model.switch import Option, Value
from planebench.model.text import user_path
from planebench.testbed.testers.base import LINE_OPTION, Delay, ExternalTester, StreamCounts, TesterStream, TesterWatch

LIBRARY = Path("automation/trex_control_plane/interactive")
"""The folder of the client library below that of a release."""
PATH_VARIABLE = "PLANEBENCH_TREX"
FCS_BYTES = 4
"""TRex builds frames without their FCS."""
PROBES_PPS = 1000
"""Frames of a stream that have a time stamp: TRex handles each of them in software."""
LATE_S = 0.5
"""Late frames have so long to arrive."""
OVERTIME_S = 10.0
_COLORS = re.compile(r"\x1b\[[0-9;]*m")


class TrexTester(ExternalTester):
    """``trex:HOST,path=/opt/trex/v3.06``. Ports are TRex's numbers."""

    kind = "trex"
    options = (LINE_OPTION, Option("path", "path", f"folder of the TRex release (default: ${PATH_VARIABLE})"))

    def __init__(self, where: str, values: Mapping[str, Value]) -> None:
        super().__init__(where, values)
        self._client: Any = None
        self._ports: dict[str, int] = {}

    def version(self) -> str:
        """Return the version of its server."""
        return str(self._asked(self._connected().get_server_version).get("version", "unknown"))

    def connect(self, ports: Sequence[str]) -> None:
        """Take these ports, and check their links."""
        if bad := next((port for port in ports if not port.isdecimal()), None):
            raise UsageError(f'tester trex: port "{bad}" is not a number; write --wire pci:@0=NIC,@1=NIC')
        self._ports = {port: int(port) for port in ports}
        client = self._connected()
        self._asked(client.reset, ports=list(self._ports.values()))
        for name, number in self._ports.items():
            if str(self._asked(client.get_port_attr, number).get("link", "")).upper() == "DOWN":
                raise self.failed(f"port {name} has no link; are the cables as --wire says?")

    def send(
        self,
        streams: Sequence[TesterStream],
        duration_s: float,
        *,
        latency: bool = False,
        watch: TesterWatch = lambda: None,
    ) -> dict[str, StreamCounts]:
        """Send by the ports' own counters: whatever else arrives at them is counted, too."""
        client, stl = self._connected(), self._library()
        ports = list(self._ports.values())
        senders = [self._ports[stream.sender] for stream in streams]
        try:
            client.reset(ports=ports)
            for stream, port in zip(streams, senders, strict=True):
                client.add_streams(_stl_streams(stl, stream, latency=latency), ports=[port])
            client.clear_stats(ports=ports)
            client.start(ports=senders, duration=duration_s, force=True)
            watch()
            client.wait_on_traffic(ports=senders, timeout=stretched(duration_s + OVERTIME_S), rx_delay_ms=0)
            watch()
            time.sleep(LATE_S)
            stats = client.get_stats()
        except stl.STLError as error:
            self.close()
            raise self.failed(_sentence(error)) from error
        except (
            AttributeError,
            KeyError,
            TypeError,
            ValueError,
            OSError,
        ) as error:  # of its client, at what it was told
            with contextlib.suppress(Exception):
                client.stop(ports=ports)
            self.close()
            raise self.failed(_sentence(error)) from error
        except BaseException:
            with contextlib.suppress(Exception):
                client.stop(ports=ports)
            raise
        found = {}
        for stream in streams:
            try:
                sent = int(stats[self._ports[stream.sender]]["opackets"])
                received = int(stats[self._ports[stream.receiver]]["ipackets"])
                probes = stats.get("latency", {}).get(stream.number + 1, {}).get("latency", {})
            except (KeyError, TypeError, ValueError) as error:
                raise self.failed(f"reports no opackets and ipackets of its ports: {error!r}") from error
            least_us, most_us = probes.get("total_min"), probes.get("total_max")
            # Its average is that of the last moments, by a low-pass filter: no mean of the trial.
            delay = Delay(least_us * 1e3, None, most_us * 1e3) if least_us and most_us else None
            found[stream.name] = StreamCounts(sent, received, delay)
        return found

    def close(self) -> None:
        """Release the ports and disconnect."""
        client, self._client = self._client, None
        if client is not None:
            with contextlib.suppress(Exception):
                client.disconnect()

    def _connected(self) -> Any:
        """Return the connected client. Raises ExternalTesterError."""
        if self._client is None:
            client = self._library().STLClient(server=self.where)
            self._asked(client.connect)
            self._client = client
        return self._client

    def _asked(self, call: Any, *args: Any, **named: Any) -> Any:
        """Return what the client answers. Raises ExternalTesterError; the next call connects again."""
        try:
            return call(*args, **named)
        except self._library().STLError as error:
            self.close()
            raise self.failed(_sentence(error)) from error

    def _library(self) -> Any:
        """Return TRex's module of its stateless API. Raises NotInstalledError."""
        folder = str(self.values.get("path") or os.environ.get(PATH_VARIABLE, ""))
        library = user_path(folder) / LIBRARY
        if folder and str(library) not in sys.path:
            sys.path.append(str(library))
        try:
            return importlib.import_module("trex.stl.api")
        except ImportError as error:
            raise NotInstalledError(
                f"{self.name} needs the client library of TRex ({error}): unpack the release of the server here, and "
                f"name its folder: --tester trex:{self.where},path=/opt/trex/v3.06, or {PATH_VARIABLE}"
            ) from error


def _stl_streams(stl: Any, stream: TesterStream, *, latency: bool) -> list[Any]:
    """Return the stream for the client; with ``latency`` some of its frames are of a second one, with time stamps."""
    (src, dst), (src_ip, dst_ip), (src_port, dst_port) = stream.addresses
    head = stl.Ether(src=src, dst=dst) / stl.IP(src=src_ip, dst=dst_ip) / stl.UDP(sport=src_port, dport=dst_port)
    frame = stl.STLPktBuilder(pkt=head / (b"\0" * max(0, stream.frame_size_bytes - FCS_BYTES - len(head))))
    probes = min(PROBES_PPS, stream.pps // 2) if latency else 0
    found = [stl.STLStream(packet=frame, mode=stl.STLTXCont(pps=stream.pps - probes))]
    if probes:
        stamped = stl.STLFlowLatencyStats(pg_id=stream.number + 1)
        found.append(stl.STLStream(packet=frame, mode=stl.STLTXCont(pps=probes), flow_stats=stamped))
    return found


def _sentence(error: Exception) -> str:
    """Return the words of an error of the client in one line, without their colors."""
    return " ".join(_COLORS.sub("", str(error)).split()) or type(error).__name__
