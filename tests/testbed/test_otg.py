# SPDX-License-Identifier: BSD-3-Clause
"""A tester behind the Open Traffic Generator API: what it is asked, what it reports, and how it fails."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from otg_server import OtgServer, served

from planebench.model.errors import ExternalTesterError, UsageError
from planebench.testbed.testers import ExternalTester, TesterStream, get_tester, otg

THERE = TesterStream("n0->n1", 0, "eth1", "card;1/2", 64, 10_000)
BACK = TesterStream("n1->n0", 1, "card;1/2", "eth1", 64, 10_000)
SENDING_S = 0.05


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otg, "LOOK_S", 0.01)
    monkeypatch.setattr(otg, "SETTLED_S", 0.04)
    monkeypatch.setattr(otg, "OVERTIME_S", 0.05)
    monkeypatch.setattr(otg, "START_S", 0.02)


@pytest.fixture
def server() -> OtgServer:
    return OtgServer()


@pytest.fixture
def tester(server: OtgServer) -> Iterator[ExternalTester]:
    with served(server) as url:
        tester = get_tester(f"otg:{url}")
        tester.connect(["eth1", "card;1/2"])
        yield tester
        tester.close()


def test_it_sends_what_it_is_asked_and_counts_it(server: OtgServer, tester: ExternalTester) -> None:
    counts = tester.send([THERE, BACK], SENDING_S, latency=True)
    assert {name: (it.sent, it.received) for name, it in counts.items()} == {
        "n0->n1": (500, 500),
        "n1->n0": (500, 500),
    }
    delay = counts["n0->n1"].delay
    assert delay is not None and (delay.least_ns, delay.mean_ns, delay.most_ns) == server.delay_ns
    assert server.config["ports"] == [
        {"name": "port0", "location": "eth1"},
        {"name": "port1", "location": "card;1/2"},
    ]
    flow = server.config["flows"][1]
    assert flow["tx_rx"]["port"] == {"tx_name": "port1", "rx_names": ["port0"]}
    assert flow["packet"][0]["ethernet"]["src"]["value"] == "02:00:00:00:00:01"
    assert (flow["size"]["fixed"], flow["rate"]["pps"]) == (64, 10_000)
    assert tester.version() == "mock-1 (OTG 1.62.0)"


def test_the_watch_sees_the_sending_alone(server: OtgServer, tester: ExternalTester) -> None:
    """What the kernel counts is compared with the time of the trial: late frames are waited for afterwards."""
    server.capacity_pps = 4000
    calls: list[int] = []
    tester.send([THERE], SENDING_S, watch=lambda: calls.append(len(server.calls)))
    begun, ended = calls
    assert server.calls[begun - 1] == "/control/state"
    assert begun < ended < len(server.calls)


def test_counters_of_protobuf_are_text(server: OtgServer, tester: ExternalTester) -> None:
    server.answers_text = True
    assert tester.send([THERE], SENDING_S, latency=False)["n0->n1"].received == 500


def test_a_loss_is_waited_for_and_counted(server: OtgServer, tester: ExternalTester) -> None:
    server.capacity_pps = 4000
    counts = tester.send([THERE], SENDING_S, latency=False)["n0->n1"]
    assert (counts.sent, counts.received, counts.delay) == (500, 200, None)


def test_a_latency_that_is_not_measured_is_missing(server: OtgServer, tester: ExternalTester) -> None:
    server.delay_ns = None
    assert tester.send([THERE], SENDING_S, latency=True)["n0->n1"].delay is None
    server.delay_ns = (0.0, 0.0, 0.0)
    assert tester.send([THERE], SENDING_S, latency=True)["n0->n1"].delay is None


def test_a_stream_without_a_state_ends_with_its_time(server: OtgServer, tester: ExternalTester) -> None:
    server.without = {"transmit"}
    assert tester.send([THERE], SENDING_S, latency=False)["n0->n1"].sent == 500


@pytest.mark.parametrize("late_s", [0.9 * SENDING_S, 2.5 * SENDING_S])
def test_counters_of_before_the_end_are_not_those_of_the_end(
    server: OtgServer, tester: ExternalTester, late_s: float
) -> None:
    """However late they come: a tester that was asked in time is not one that still sends."""
    server.without, server.late_s = {"transmit"}, late_s
    assert tester.send([THERE], SENDING_S, latency=False)["n0->n1"].sent == 500


def test_a_tester_that_gives_its_ports_back_has_no_configuration(server: OtgServer, tester: ExternalTester) -> None:
    tester.close()
    assert server.config == {}


@pytest.mark.parametrize(
    ("fault", "value", "words"),
    [
        ("refuses", "size 64 is below 68", r"refuses POST /config: size 64 is below 68$"),
        ("babbles", True, r"cannot be reached \(POST /config\): SSH-2"),
        ("mute", True, r"cannot be reached \(POST /config\)"),
        ("goes_back", True, r"frames_tx of n0->n1 went back from \d+ to 0: it was restarted"),
        ("never_stops", True, r"still sends \d+ s after the end of the trial"),
        ("without", {"frames_rx"}, r"reports no frames_tx and frames_rx of flow n0->n1"),
    ],
)
def test_a_fault_is_one_sentence(
    server: OtgServer, tester: ExternalTester, fault: str, value: object, words: str
) -> None:
    setattr(server, fault, value)
    with pytest.raises(ExternalTesterError, match=words) as found:
        tester.send([THERE, BACK], SENDING_S, latency=False)
    assert "\n" not in str(found.value)
    if fault == "never_stops":
        assert server.calls[-1] == "/control/state"


def test_a_slow_answer_is_not_waited_for(server: OtgServer) -> None:
    server.slow_s = 0.2
    with served(server) as url, pytest.raises(ExternalTesterError, match=r"did not answer GET /\S+ within 0.05 s"):
        get_tester(f"otg:{url},timeout=0.05").check()


def test_a_port_without_a_link_is_named(server: OtgServer) -> None:
    server.down = {"eth2"}
    with served(server) as url, pytest.raises(ExternalTesterError, match="port eth2 has no link"):
        get_tester(f"otg:{url}").connect(["eth1", "eth2"])


def test_nobody_there() -> None:
    with served(OtgServer()) as url:
        pass
    with pytest.raises(ExternalTesterError, match=r"cannot be reached \(GET /capabilities/version\): .*refused"):
        get_tester(f"otg:{url}").check()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("otg:gen:8443", "is not a URL; write otg:https://HOST:PORT"),
        ("otg:", "does not say where it is"),
        ("ixia:gen", 'unknown tester "ixia:gen"'),
        ("otg:https://gen,10G", 'option "10G" is not key=value, e.g. line=10G'),
        ("otg:https://gen,line=10G,line=40G", "option line is given twice"),
        ("otg:https://gen,speed=10G", 'unknown option of tester otg "speed"'),
        ("otg:https://gen,line=fast", "line"),
    ],
)
def test_a_bad_tester_is_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        get_tester(text)
