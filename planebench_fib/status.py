# SPDX-License-Identifier: BSD-3-Clause
"""What a forwarder has of its VNFs: asked on its RPC socket (docs/design/planed-protocol.md), as records, as a table of
80 columns and as metrics for Prometheus."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from planebench_fib.exceptions import Error, UsageError

_ANSWER_BYTES_MAX = 1 << 26
_NEARLY = 0.9
"""Share of a quota from which a remark tells of it."""


class ForwarderError(Error):
    """The forwarder cannot be asked, or does not answer as planed does."""


@dataclass(frozen=True, slots=True)
class Vnf:
    """A VNF. ``state``: of its session; empty if it is not offloaded. ``update_age_s``: of the last applied record."""

    vnf: int
    port: str
    state: str
    update_age_s: int | None
    routes4: int
    routes6: int
    quota_routes: int
    stale: int
    next_hops: int
    quota_next_hops: int
    forwarded: int
    punted: int
    punt_limited: int
    no_route: int
    sent: int
    answers: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a FIB: entries and how many it has room for."""

    table: str
    entries: int
    room: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Fib:
    """A FIB with its VNFs. Tasks of several workers may share it: their counters are added."""

    fib: str
    tasks: tuple[str, ...]
    tables: tuple[Table, ...]
    vnfs: tuple[Vnf, ...]


def ask(path: Path, timeout_s: float = 10.0) -> tuple[Fib, ...]:
    """Return the FIBs of the forwarder behind an RPC socket. Raises ForwarderError."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(timeout_s)
            connection.connect(str(path))
            connection.sendall(b'{"jsonrpc": "2.0", "id": 1, "method": "stats.get"}\n')
            with connection.makefile("rb") as answers:
                line = answers.readline(_ANSWER_BYTES_MAX)
    except OSError as error:
        raise ForwarderError(f"{path}: {error.strerror or error}; is planed running with --rpc {path}?") from None
    try:
        answer = json.loads(line)
        if "error" in answer:
            raise ForwarderError(f"{path}: {answer['error']['message']}")
        return fibs_of(answer["result"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ForwarderError(f"{path}: no answer to stats.get as planed gives it ({error!r:.100})") from None


def fibs_of(statistics: Mapping[str, Any]) -> tuple[Fib, ...]:
    """Return the FIBs in the result of ``stats.get``. Raises KeyError, TypeError and AttributeError."""
    found: dict[str, Fib] = {}
    for task in statistics["tasks"]:
        if task["kind"] != "fib_offload":
            continue
        report = task["fib_offload"]
        tables = (Table(name, *(report[name][key] for key in ("entries", "room", "bytes"))) for name in _TABLES)
        fib = Fib(report["fib"], (task["name"],), tuple(tables), tuple(map(_vnf_of, report["vnfs"])))
        found[fib.fib] = _joined(found[fib.fib], fib) if fib.fib in found else fib
    return tuple(found.values())


_TABLES = ("table4", "table6")
_COUNTED = ("forwarded", "punted", "punt_limited", "no_route", "sent")


def _vnf_of(report: Mapping[str, Any]) -> Vnf:
    session = report.get("session", {})
    kept = ("routes4", "routes6", "quota_routes", "stale", "next_hops", "quota_next_hops")
    return Vnf(
        vnf=report["vnf"],
        port=report["port"],
        state=session.get("state", ""),
        update_age_s=session.get("update_age_s"),
        answers=session.get("answers", {}),
        **{key: report.get(key, 0) for key in kept},
        **{key: report[key] for key in _COUNTED},
    )


def _joined(one: Fib, other: Fib) -> Fib:
    vnfs = (
        replace(a, **{key: getattr(a, key) + getattr(b, key) for key in _COUNTED})
        for a, b in zip(one.vnfs, other.vnfs, strict=True)
    )
    return replace(one, tasks=one.tasks + other.tasks, vnfs=tuple(vnfs))


# The table

_COLUMNS = ["VNF", "port", "state", "IPv4", "IPv6", "quota", "hops", "quota"]
_COLUMNS += ["stale", "punted", "limited", "noroute", "age"]
_WIDTHS = (4, 8, 5, 4, 4, 5, 4, 5, 5, 6, 7, 7, 4)
_LEFT = 3
"""Columns whose text begins at the left: the others are numbers."""


def lines(fibs: tuple[Fib, ...]) -> Iterator[str]:
    """Yield the lines of the table, each at most 80 characters, and remarks on what an operator has to look after."""
    for fib in fibs:
        fill = (
            f"{it.entries:,} of {it.room:,} {name} entries"
            for it, name in zip(fib.tables, ("IPv4", "IPv6"), strict=True)
        )
        yield f"{fib.fib}: {', '.join(fill)}"
        yield _line(_COLUMNS)
        yield from (_line(_cells(vnf)) for vnf in fib.vnfs)
        yield from (f"VNF {vnf.vnf}: {remark}" for vnf in fib.vnfs for remark in _remarks(vnf))


def _line(cells: list[str]) -> str:
    aligned = (
        f"{cell[:width]:<{width}}" if number < _LEFT else f"{cell:>{width}}"
        for number, (cell, width) in enumerate(zip(cells, _WIDTHS, strict=True))
    )
    return " ".join(aligned).rstrip()


def _cells(vnf: Vnf) -> list[str]:
    if not vnf.state:
        return [str(vnf.vnf), vnf.port, "-", *["-"] * 6, _short(vnf.punted), "-", "-", "-"]
    return [
        str(vnf.vnf),
        vnf.port,
        vnf.state,
        _short(vnf.routes4),
        _short(vnf.routes6),
        _share(vnf.routes4 + vnf.routes6, vnf.quota_routes),
        _short(vnf.next_hops),
        _share(vnf.next_hops, vnf.quota_next_hops),
        _short(vnf.stale),
        _short(vnf.punted),
        _short(vnf.punt_limited),
        _short(vnf.no_route),
        "-" if vnf.update_age_s is None else _age(vnf.update_age_s),
    ]


def _remarks(vnf: Vnf) -> Iterator[str]:
    if vnf.state == "stale":
        yield "its agent is silent; its routes are removed at the end of grace_s"
    if vnf.state == "none":
        yield "no agent has a session"
    if vnf.routes4 + vnf.routes6 > _NEARLY * vnf.quota_routes:
        yield "its routes are nearly used up: quota_routes"
    for code in ("quota", "full"):
        if count := vnf.answers.get(code, 0):
            yield f"{count} updates refused: {code}"


def _short(number: int) -> str:
    """Return a number in at most four characters, rounded down."""
    if number < 10_000:
        return str(number)
    tenths = number // 100
    for unit in "kMGTP":
        if tenths < 100:
            return f"{tenths // 10}.{tenths % 10}{unit}"
        if tenths < 10_000:
            return f"{tenths // 10}{unit}"
        tenths //= 1000
    return f"{tenths // 10}E"


def _share(part: int, whole: int) -> str:
    return f"{100 * part // whole}%" if whole else "-"


def _age(seconds: int) -> str:
    for unit, size in (("s", 60), ("m", 60), ("h", 24)):
        if seconds < 2 * size:
            return f"{seconds}{unit}"
        seconds //= size
    return f"{min(seconds, 999)}d"


# Metrics

_Value = Callable[[Vnf], int | None]
_OF_VNF: tuple[tuple[str, str, str, _Value], ...] = (
    ("session_up", "gauge", "1 while the VNF's agent has a session.", lambda v: int(v.state == "up")),
    ("routes_quota", "gauge", "Routes that the VNF may have.", lambda v: v.quota_routes),
    ("stale_routes", "gauge", "Routes of earlier sessions, or of a silent agent.", lambda v: v.stale),
    ("next_hops", "gauge", "Next hops of the VNF.", lambda v: v.next_hops),
    ("next_hops_quota", "gauge", "Next hops that the VNF may have.", lambda v: v.quota_next_hops),
    ("last_update_age_seconds", "gauge", "Time since a record was applied.", lambda v: v.update_age_s),
    ("forwarded_packets_total", "counter", "Packets forwarded for the VNF.", lambda v: v.forwarded),
    ("punted_packets_total", "counter", "Packets passed to the VNF.", lambda v: v.punted),
    ("punt_limited_packets_total", "counter", "Packets dropped above punt.rate_pps.", lambda v: v.punt_limited),
    ("no_route_packets_total", "counter", "Packets dropped without a route.", lambda v: v.no_route),
    ("sent_packets_total", "counter", "Packets that the VNF sent.", lambda v: v.sent),
)


def metrics(fibs: tuple[Fib, ...]) -> str:
    """Return the metrics in the text format of Prometheus."""
    vnfs = [(fib.fib, vnf) for fib in fibs for vnf in fib.vnfs if vnf.state]
    text = _family("up", "gauge", "1 if the forwarder answers.", [({}, 1)])
    routes = [
        ({"fib": fib, "vnf": vnf.vnf, "port": vnf.port, "family": family}, count)
        for fib, vnf in vnfs
        for family, count in (("4", vnf.routes4), ("6", vnf.routes6))
    ]
    text += _family("routes", "gauge", "Routes of the VNF.", routes)
    for name, kind, words, value in _OF_VNF:
        samples = [({"fib": fib, "vnf": vnf.vnf, "port": vnf.port}, value(vnf)) for fib, vnf in vnfs]
        text += _family(name, kind, words, [(labels, it) for labels, it in samples if it is not None])
    answers = [
        ({"fib": fib, "vnf": vnf.vnf, "code": code}, count) for fib, vnf in vnfs for code, count in vnf.answers.items()
    ]
    text += _family("answers_total", "counter", "Answers to messages of the VNF.", answers)
    for name, words in (("entries", "Entries of the table."), ("room", "Entries that it has room for.")):
        tables = [({"fib": fib.fib, "table": it.table}, getattr(it, name)) for fib in fibs for it in fib.tables]
        text += _family(f"table_{name}", "gauge", words, tables)
    return text


def _family(name: str, kind: str, words: str, samples: list[tuple[dict[str, Any], int]]) -> str:
    head = f"# HELP planed_fib_{name} {words}\n# TYPE planed_fib_{name} {kind}\n"
    return head + "".join(f"planed_fib_{name}{_labels(labels)} {value}\n" for labels, value in samples)


def _labels(labels: Mapping[str, Any]) -> str:
    pairs = (f"{name}={json.dumps(str(value), ensure_ascii=False)}" for name, value in labels.items())
    return "{" + ",".join(pairs) + "}" if labels else ""


def serve(path: Path, address: str) -> None:
    """Answer Prometheus at HOST:PORT until the process ends. Raises UsageError and OSError."""
    host, _, port = address.rpartition(":")
    if not (host and port.isdecimal() and int(port) < 1 << 16):
        raise UsageError(f'address "{address}" is not valid; give HOST:PORT, e.g. 127.0.0.1:9871')

    class Handler(BaseHTTPRequestHandler):
        timeout = 10.0

        def do_GET(self) -> None:
            try:
                text = metrics(ask(path))
            except ForwarderError:
                text = _family("up", "gauge", "1 if the forwarder answers.", [({}, 0)])
            data = text.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Nothing: a line a scrape would fill the journal."""

    class Server(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

    with Server((host.strip("[]"), int(port)), Handler) as server:
        server.serve_forever()
