# SPDX-License-Identifier: BSD-3-Clause
"""A server of the Open Traffic Generator API with a switch behind it, and faults of both."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class OtgServer:
    """The tester as a program. Its attributes are what it can do, and its faults; a test changes them at any time."""

    def __init__(self) -> None:
        self.capacity_pps = 1e9
        """The capacity of the switch in each direction."""
        self.generator_pps = 1e9
        self.delay_ns: tuple[float, float, float] | None = (1200.0, 5000.0, 91000.0)
        self.refuses = ""
        """Why a configuration with flows is refused."""
        self.down: set[str] = set()
        """Locations of ports without a link."""
        self.slow_s = 0.0
        self.late_s = 0.0
        """How long counters are on their way."""
        self.mute = False
        """Closes each connection without an answer."""
        self.babbles = False
        """Speaks another protocol than HTTP."""
        self.goes_back = False
        self.answers_text = False
        self.never_stops = False
        self.without: set[str] = set()
        """Keys of flow metrics that it does not report."""
        self.config: dict[str, Any] = {}
        self.calls: list[str] = []
        self._started = 0.0
        self._looks = 0

    def answer(self, path: str, document: Any) -> tuple[int, Any]:
        self.calls.append(path)
        if path == "/capabilities/version":
            return 200, {"api_spec_version": "1.62.0", "sdk_version": "1.62.0", "app_version": "mock-1"}
        if path == "/config":
            if self.refuses and document.get("flows"):
                return 400, {"code": 400, "kind": "validation", "errors": [self.refuses]}
            self.config, self._started, self._looks = document, 0.0, 0
            return 200, {"warnings": []}
        if path == "/control/state":
            state = document["traffic"]["flow_transmit"]["state"]
            self._started = time.monotonic() if state == "start" else self._started
            return 200, {"warnings": []}
        if document["choice"] == "port":
            ports = self.config.get("ports", [])
            links = [{"name": p["name"], "link": "down" if p["location"] in self.down else "up"} for p in ports]
            return 200, {"choice": "port_metrics", "port_metrics": links}
        self._looks += 1
        return 200, {"choice": "flow_metrics", "flow_metrics": [self._metric(flow) for flow in self.config["flows"]]}

    def _metric(self, flow: dict[str, Any]) -> dict[str, Any]:
        wanted_s = flow["duration"]["fixed_seconds"]["seconds"]
        passed_s = min(time.monotonic() - self._started, wanted_s) if self._started else 0.0
        stopped = passed_s >= wanted_s and not self.never_stops and not (self.goes_back and self._looks < 2)
        sent = round(min(flow["rate"]["pps"], self.generator_pps) * passed_s)
        received = min(sent, round(self.capacity_pps * passed_s))
        if self.goes_back and self._looks > 1:
            sent = received = 0
        metric = {
            "name": flow["name"],
            "transmit": "stopped" if stopped or not self._started else "started",
            "frames_tx": str(sent) if self.answers_text else sent,
            "frames_rx": str(received) if self.answers_text else received,
        }
        if flow["metrics"]["latency"]["enable"] and self.delay_ns is not None:
            names = ("minimum_ns", "average_ns", "maximum_ns")
            metric["latency"] = dict(zip(names, self.delay_ns, strict=True))
        return {key: value for key, value in metric.items() if key not in self.without}


@contextmanager
def served(server: OtgServer) -> Iterator[str]:
    """Serve on a port of this machine; yield the URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            self._answer(json.loads(self.rfile.read(length) or b"{}"))

        def do_GET(self) -> None:
            self._answer(None)

        def _answer(self, document: Any) -> None:
            time.sleep(server.slow_s)
            if server.babbles:
                self.wfile.write(b"SSH-2.0-OpenSSH_9.2\r\n")
            if server.mute or server.babbles:
                return
            status, told = server.answer(self.path, document)
            body = json.dumps(told).encode()
            time.sleep(server.late_s if self.path == "/monitor/metrics" else 0)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with suppress(OSError):  # who asked may have gone
                self.wfile.write(body)

        def log_message(self, *args: Any) -> None: ...

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{httpd.server_address[1]}"
    finally:
        httpd.shutdown()
        thread.join()
        httpd.server_close()
