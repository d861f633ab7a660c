# SPDX-License-Identifier: BSD-3-Clause
"""A tester behind the Open Traffic Generator API (OTG models 1.x) over HTTP and JSON, such as ixia-c.

Four calls are all that a trial needs, so there is no client library between (docs/two-hosts.md says why).
"""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any

from planebench.host.process import stretched
from planebench.model.errors import ExternalTesterError, UsageError
from planebench.model.switch import Option, Value
from planebench.testbed.testers.base import LINE_OPTION, Delay, ExternalTester, StreamCounts, TesterStream, TesterWatch

CALL_DEADLINE_S = 30.0
"""A chassis takes its time to load a configuration."""
LOOK_S = 0.25
"""Between two looks at the counters, which a controller refreshes a few times a second."""
START_S = 1.0
"""Counters may be so old: a stream of which none was sent by then has not been started."""
SETTLED_S = 2.0
"""Late frames have so long to arrive (RFC 2544, section 23)."""
OVERTIME_S = 5.0
"""A stream that still sends so long after its time will not stop by itself."""
ANSWER_MAX_BYTES = 1 << 24

OtgJson = Any
OtgMetric = Mapping[str, Any]


class OtgTester(ExternalTester):
    """``otg:https://HOST:PORT``. Ports are locations in the sense of the API: what its documentation calls so."""

    kind = "otg"
    options = (
        LINE_OPTION,
        Option("verify", "flag", "check the certificate of the server", "yes"),
        Option("timeout", "amount", "seconds that an answer may take", f"{CALL_DEADLINE_S:g}"),
    )

    def __init__(self, where: str, values: Mapping[str, Value]) -> None:
        super().__init__(where, values)
        if not where.startswith(("https://", "http://")):
            raise UsageError(f'tester "otg:{where}" is not a URL; write otg:https://HOST:PORT')
        self._url = where.rstrip("/")
        self._deadline_s = float(values.get("timeout", CALL_DEADLINE_S)) or CALL_DEADLINE_S  # type: ignore[arg-type]
        context = None
        if where.startswith("https:"):
            context = ssl.create_default_context()
            if values.get("verify") is False:
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self._opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context))
        self._names: dict[str, str] = {}
        """Of the ports: locations have characters that names must not have."""

    def version(self) -> str:
        """Return the versions of its program and of the API."""
        told = self._call("GET", "/capabilities/version")
        return f"{told.get('app_version') or 'unknown'} (OTG {told.get('api_spec_version') or 'unknown'})"

    def connect(self, ports: Sequence[str]) -> None:
        """Take these ports, without streams yet, and check their links."""
        self._names = {port: f"port{number}" for number, port in enumerate(ports)}
        self._load([])
        told = self._call("POST", "/monitor/metrics", {"choice": "port", "port": {}})
        links = {metric.get("name"): metric.get("link") for metric in self._metrics(told, "port_metrics")}
        if down := [port for port in ports if links.get(self._names[port]) == "down"]:
            raise self.failed(f"port {', '.join(down)} has no link; are the cables as --wire says?")

    def send(
        self,
        streams: Sequence[TesterStream],
        duration_s: float,
        *,
        latency: bool = False,
        watch: TesterWatch = lambda: None,
    ) -> dict[str, StreamCounts]:
        """Load the streams, start them, and look at their counters until they have stopped and stay as they are."""
        flows = [self._flow(stream, duration_s, latency=latency) for stream in streams]
        self._load(flows)
        looks = _Looks(self, [stream.name for stream in streams])
        self._transmit("start")
        try:
            watch()
            begun, passed_s = time.monotonic(), 0.0
            while True:
                time.sleep(max(min(LOOK_S, duration_s - passed_s), LOOK_S / 5))  # the end is seen soon
                asked_s = time.monotonic() - begun  # the counters are of then or later, however long the answer takes
                looks.take(self._flow_metrics())
                passed_s = time.monotonic() - begun
                if looks.stopped(asked_s > duration_s, asked_s > duration_s + START_S):
                    break
                if asked_s > duration_s + stretched(OVERTIME_S):
                    raise self.failed(f"still sends {asked_s - duration_s:.0f} s after the end of the trial")
            watch()
            deadline = time.monotonic() + SETTLED_S
            while looks.missing and time.monotonic() < deadline:  # every frame arrives, or has its time to
                time.sleep(min(LOOK_S, SETTLED_S / 4))
                looks.take(self._flow_metrics())
            return looks.counts()
        except BaseException:
            with contextlib.suppress(ExternalTesterError):
                self._transmit("stop")
            raise

    def close(self) -> None:
        """Take its configuration away, so that others may have the ports."""
        if self._names:
            self._names = {}
            with contextlib.suppress(ExternalTesterError):
                self._call("POST", "/config", {})

    def _load(self, flows: Sequence[OtgJson]) -> None:
        ports = [{"name": name, "location": port} for port, name in self._names.items()]
        self._call("POST", "/config", {"ports": ports, "flows": flows} if flows else {"ports": ports})

    def _flow(self, stream: TesterStream, duration_s: float, *, latency: bool) -> OtgJson:
        """Return a stream as a flow of the API: sent for a time, so that a generator that is too slow sends less."""
        (src, dst), (src_ip, dst_ip), (src_port, dst_port) = stream.addresses
        ports = {"tx_name": self._names[stream.sender], "rx_names": [self._names[stream.receiver]]}
        return {
            "name": stream.name,
            "tx_rx": {"choice": "port", "port": ports},
            "packet": [
                {"choice": "ethernet", "ethernet": {"src": _value(src), "dst": _value(dst)}},
                {"choice": "ipv4", "ipv4": {"src": _value(src_ip), "dst": _value(dst_ip)}},
                {"choice": "udp", "udp": {"src_port": _value(src_port), "dst_port": _value(dst_port)}},
            ],
            "size": {"choice": "fixed", "fixed": stream.frame_size_bytes},
            "rate": {"choice": "pps", "pps": stream.pps},
            "duration": {"choice": "fixed_seconds", "fixed_seconds": {"seconds": duration_s}},
            "metrics": {"enable": True, "latency": {"enable": latency, "mode": "store_forward"}},
        }

    def _transmit(self, state: str) -> None:
        flows = {"choice": "flow_transmit", "flow_transmit": {"state": state}}
        self._call("POST", "/control/state", {"choice": "traffic", "traffic": flows})

    def _flow_metrics(self) -> Sequence[OtgMetric]:
        return self._metrics(self._call("POST", "/monitor/metrics", {"choice": "flow", "flow": {}}), "flow_metrics")

    def _metrics(self, told: Mapping[str, Any], name: str) -> Sequence[OtgMetric]:
        found = told.get(name) or []
        if not (isinstance(found, list) and all(isinstance(metric, dict) for metric in found)):
            raise self.failed(f"answered with {name} that are no list of objects")
        return found

    def _call(self, method: str, path: str, document: OtgJson = None) -> dict[str, Any]:
        """Return the answer to a call. Raises ExternalTesterError."""
        data = None if document is None else json.dumps(document).encode()
        request = urllib.request.Request(self._url + path, data, {"Content-Type": "application/json"}, method=method)
        limit_s = stretched(self._deadline_s)
        try:
            with self._opener.open(request, timeout=stretched(self._deadline_s)) as answer:
                told = json.loads(answer.read(ANSWER_MAX_BYTES) or b"{}")
        except urllib.error.HTTPError as error:
            words = f"{error.code} {error.reason}"
            with contextlib.suppress(OSError, ValueError, AttributeError):
                if errors := json.loads(error.read(ANSWER_MAX_BYTES)).get("errors"):  # those of the API
                    words = "; ".join(map(str, errors))
            raise self.failed(f"refuses {method} {path}: {words}") from error
        except (OSError, ValueError, http.client.HTTPException) as error:
            if isinstance(reason := getattr(error, "reason", error), TimeoutError):
                raise self.failed(f"did not answer {method} {path} within {limit_s:g} s") from error
            raise self.failed(f"cannot be reached ({method} {path}): {' '.join(str(reason).split())}") from error
        if not isinstance(told, dict):
            raise self.failed(f"answered {method} {path} with what is no object of JSON")
        return told


class _Looks:
    """The counters of all streams, look after look; they only ever grow."""

    def __init__(self, tester: OtgTester, names: Sequence[str]) -> None:
        self._tester = tester
        self._last: dict[str, OtgMetric] = {name: {} for name in names}

    def take(self, metrics: Sequence[OtgMetric]) -> None:
        """Take the counters of one look. Raises ExternalTesterError if one of them went back."""
        for metric in metrics:
            name = str(metric.get("name"))
            if name not in self._last:
                continue
            for key in ("frames_tx", "frames_rx"):
                was, now = (_count(look, key) for look in (self._last[name], metric))
                if was is not None and now is not None and now < was:
                    raise self._tester.failed(
                        f"{key} of {name} went back from {was} to {now}: it was restarted, or its "
                        "counters were cleared in the trial"
                    )
            self._last[name] = metric

    def stopped(self, time_is_up: bool, started: bool) -> bool:
        """Return whether no stream sends; of one that does not say, whether its time is up.

        Before it is ``started``, one that has sent nothing is not stopped, but not yet started.
        """
        states = [look.get("transmit") for look in self._last.values()]
        silent = all(state == "stopped" if state else time_is_up for state in states)
        return silent and (started or all(_count(look, "frames_tx") for look in self._last.values()))

    @property
    def missing(self) -> bool:
        """Return whether a frame that was sent has not been received."""
        return any(_count(look, "frames_tx") != _count(look, "frames_rx") for look in self._last.values())

    def counts(self) -> dict[str, StreamCounts]:
        """Return the counts of the last look. Raises ExternalTesterError for a stream of which there are none."""
        found = {}
        for name, look in self._last.items():
            sent, received = _count(look, "frames_tx"), _count(look, "frames_rx")
            if sent is None or received is None:
                raise self._tester.failed(f"reports no frames_tx and frames_rx of flow {name}")
            latency = look.get("latency") or {}
            try:
                told: list[Any] = [latency.get(key) for key in ("minimum_ns", "average_ns", "maximum_ns")]
                delay = Delay(*map(float, told)) if received and all(told) else None
            except (AttributeError, TypeError, ValueError) as error:
                raise self._tester.failed(f"reports a latency of flow {name} that is no number: {error}") from error
            found[name] = StreamCounts(sent, received, delay)
        return found


def _count(metric: OtgMetric, key: str) -> int | None:
    """Return a counter, which JSON made of protobuf has as text; None where it is not reported, or is no number."""
    value = metric.get(key)
    return int(value) if isinstance(value, int) or (isinstance(value, str) and value.isdecimal()) else None


def _value(value: str | int) -> OtgJson:
    return {"choice": "value", "value": value}
