# SPDX-License-Identifier: BSD-3-Clause
"""TRex by its client library: what the library is asked, and how server and library fail.

The library here is a stand-in with the classes and methods that are used: no registry has the real one.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from planebench.model.errors import ExternalTesterError, NotInstalledError, UsageError
from planebench.testbed.testers import TesterStream, get_tester, trex

LIBRARY = '''
"""The part of TRex's trex.stl.api that is used."""
class STLError(Exception): pass
class Header:
    def __init__(self, **fields): self.fields = [fields]
    def __truediv__(self, other):
        found = Header()
        found.fields = self.fields + (other.fields if isinstance(other, Header) else [other])
        return found
    def __len__(self): return 14 * len(self.fields)
Ether = IP = UDP = Header
class Record:
    def __init__(self, **values): self.__dict__.update(values)
STLPktBuilder = STLTXCont = STLFlowLatencyStats = STLStream = Record
class STLClient:
    server = None          # the state of the server, which outlives clients
    def __init__(self, server): self.where = server
    def connect(self):
        if STLClient.server.get("gone"): raise STLError("\\x1b[1mFailed to connect\\x1b[0m\\n*** [RPC] no answer\\n")
    def get_server_version(self): self.connect(); return {"version": "v3.06"}
    def reset(self, ports): self.streams = {}
    def get_port_attr(self, port): return {"link": STLClient.server.get("link", "UP")}
    def add_streams(self, streams, ports): self.streams[ports[0]] = streams
    def clear_stats(self, ports): pass
    def start(self, ports, duration, force): self.duration = duration
    def wait_on_traffic(self, ports, timeout, rx_delay_ms):
        if STLClient.server.get("dies"): raise STLError("connection to the server was lost")
    def stop(self, ports): pass
    def disconnect(self): pass
    def get_stats(self):
        STLClient.server["streams"] = self.streams
        found = {port: {"opackets": 0, "ipackets": 0} for port in (0, 1)}
        for port, streams in self.streams.items():
            sent = sum(int(stream.mode.pps * self.duration) for stream in streams)
            found[port]["opackets"] += sent
            found[1 - port]["ipackets"] += int(sent * STLClient.server.get("passes", 1))
        found["latency"] = {
            s.flow_stats.pg_id: {"latency": {"total_min": 5, "average": 12.5, "total_max": 80}}
            for streams in self.streams.values() for s in streams if hasattr(s, "flow_stats")
        }
        return found
'''


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trex, "LATE_S", 0.0)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Return the state of the server; the library is in the folder that PLANEBENCH_TREX names."""
    folder = tmp_path / "automation/trex_control_plane/interactive/trex/stl"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    (folder / "__init__.py").touch()
    (folder / "api.py").write_text(LIBRARY)
    monkeypatch.setenv("PLANEBENCH_TREX", str(tmp_path))
    monkeypatch.setattr(sys, "path", list(sys.path))
    sys.path.append(str(tmp_path / "automation/trex_control_plane/interactive"))
    state: dict[str, Any] = {}
    importlib.import_module("trex.stl.api").STLClient.server = state
    yield state
    for name in [name for name in sys.modules if name.partition(".")[0] == "trex"]:
        del sys.modules[name]


THERE, BACK = TesterStream("n0->n1", 0, "0", "1", 64, 10_000), TesterStream("n1->n0", 1, "1", "0", 64, 10_000)


def test_it_sends_what_it_is_asked_and_counts_it(server: dict[str, Any]) -> None:
    server["passes"] = 0.9
    tester = get_tester("trex:gen")
    tester.connect(["0", "1"])
    assert tester.version() == "v3.06"
    looks: list[str] = []
    counts = tester.send([THERE, BACK], 2.0, latency=True, watch=lambda: looks.append("look"))
    assert len(looks) == 2
    assert [(it.sent, it.received) for it in counts.values()] == [(20_000, 18_000)] * 2
    delay = counts["n1->n0"].delay
    assert delay is not None and (delay.least_ns, delay.mean_ns, delay.most_ns) == (5_000, None, 80_000)
    plain, stamped = server["streams"][1]
    assert (plain.mode.pps, stamped.mode.pps, stamped.flow_stats.pg_id) == (9_000, 1_000, 2)
    headers = plain.packet.pkt.fields
    assert headers[1] == {"src": "198.18.1.1", "dst": "198.19.1.1"}
    assert len(headers[3]) == 64 - 4 - 42
    assert tester.send([THERE], 1.0, latency=False)["n0->n1"].delay is None
    tester.close()


def test_a_server_that_is_not_there_and_comes_back(server: dict[str, Any]) -> None:
    server["gone"] = True
    tester = get_tester("trex:gen")
    with pytest.raises(ExternalTesterError, match=r"^tester trex:gen: Failed to connect \*\*\* \[RPC\] no answer$"):
        tester.check()
    server["gone"] = False
    tester.check()


def test_a_server_that_dies_in_a_trial(server: dict[str, Any]) -> None:
    tester = get_tester("trex:gen")
    tester.connect(["0", "1"])
    server["dies"] = True
    with pytest.raises(ExternalTesterError, match="connection to the server was lost"):
        tester.send([THERE], 0.1, latency=False)


def test_ports(server: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match='port "eth0" is not a number'):
        get_tester("trex:gen").connect(["eth0", "1"])
    server["link"] = "DOWN"
    with pytest.raises(ExternalTesterError, match="port 0 has no link"):
        get_tester("trex:gen").connect(["0", "1"])


def test_a_missing_library_is_said_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    with pytest.raises(NotInstalledError, match="unpack the release of the server here, and name its folder"):
        get_tester(f"trex:gen,path={tmp_path}").check()
