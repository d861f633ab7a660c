# SPDX-License-Identifier: BSD-3-Clause
"""What the shell offers after a Tab. Nothing heavy is imported here: a user waits for every answer.

Names that only heavy modules know are repeated here; tests/cli/test_complete.py holds them against those modules.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Callable, Collection, Iterable, MutableMapping
from pathlib import Path

SWITCHES = (
    "planed",
    "ovs-dpdk",
    "testpmd",
    "vpp",
    "bess",
    "fastclick",
    "click",
    "snabb",
    "t4p4s",
    "linux-bridge",
    "xdp",
    "vale",
    "ovs-netdev",
    "sim",
)
CHECKS = (
    "found",
    "options",
    "starts",
    "settings",
    "cores",
    "forwards",
    "wiring",
    "intact",
    "order",
    "counters",
    "overload",
    "bad-frames",
    "pause",
    "vnf-restart",
    "vnf-killed",
    "restart",
    "death",
    "leftovers",
)
METRICS = ("throughput", "ndr", "pdr", "cycles_per_packet", "latency_p50", "latency_p99", "outage")
WIRES = ("virtio", "memif", "veth")
BANDS = ("near", "far")
CASES = ("p2p", "p2v", "v2v", *(f"loopback-{n}" for n in range(1, 6)))
LISTS = ("switches", "traffic", "vnfs", "hostings", "scenarios", "suites", "runs")
FORMATS = ("csv", "json", "parquet")
TABLES = (
    "results",
    "trials",
    "latency",
    "searches",
    "curve",
    "ledger",
    "comparisons",
    "conditions",
    "evidence",
    "threads",
    "anatomy",
    "outages",
    "skipped",
    "runs",
)
FIGURES = (
    "throughput",
    "chain",
    "vnfs",
    "loss",
    "latency",
    "load",
    "jitter",
    "sizes",
    "jitter-sizes",
    "tradeoff",
    "deviation",
    "percentiles",
    "anatomy",
    "parts",
    "papers",
    "overview",
)
"""Kinds of figures, as planebench.report.figure has them, which would import charts."""
SCHEMAS = ("run", "trial", "conditions", "skipped", "finished", "plan", "export")
RUNS_SHOWN = 50
"""The newest; older ones are typed, or found with list runs."""

Completer = Callable[[str], list[str]]
Names = Collection[str] | Callable[[], Iterable[str]]

_PACKAGE = Path(__file__).resolve().parent.parent
_YAML = (".yaml", ".yml")
VARIABLE = "_PLANEBENCH_COMPLETE"
"""Set by the shell that asks, to ``complete_bash``, ``source_zsh``, ..."""
_BASH = "complete_bash"
_BREAKS = frozenset(":=")
"""Where bash breaks words (COMP_WORDBREAKS), of what a user of planebench types."""


def one_of(names: Names) -> Completer:
    """Complete a single value."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in _all(names) if name.startswith(incomplete)]

    return complete


def listed(names: Names) -> Completer:
    """Complete the last item of a list with commas; those that are there are not offered again."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        there = set(before.split(","))
        return [before + comma + name for name in _all(names) if name.startswith(last) and name not in there]

    return complete


def _all(names: Names) -> Iterable[str]:
    return names() if callable(names) else names


def switches() -> list[str]:
    """Ours, and the names of those that other packages bring."""
    from importlib.metadata import entry_points  # takes as long as all the rest

    return [*SWITCHES, *(point.name for point in entry_points(group="planebench.switches"))]


def plans(incomplete: str) -> list[str]:
    """Suites, and plan files."""
    return [name for name in _stems("plans/suites") if name.startswith(incomplete)] + _files(incomplete)


def traffic(incomplete: str) -> list[str]:
    """Profiles, and files of profiles, in a list."""
    before, comma, last = incomplete.rpartition(",")
    return listed(("plain", *_stems("traffic/profiles")))(incomplete) + [before + comma + path for path in _files(last)]


def runs(incomplete: str) -> list[str]:
    """``latest``, the names of runs and their ids, newest first, of $PLANEBENCH_RUNS or ./runs."""
    folder = Path(os.environ.get("PLANEBENCH_RUNS") or "runs")
    headers = sorted(folder.glob("*/run.json"), key=lambda path: path.parent.name, reverse=True)[:RUNS_SHOWN]
    names = ("latest", *(_name(header) for header in headers), *(header.parent.name for header in headers))
    return [name for name in dict.fromkeys(names) if name and name.startswith(incomplete)]


def scenarios() -> Iterable[str]:
    """As run --scenario takes them."""
    from planebench.scenarios import SCENARIOS

    return SCENARIOS


def directions() -> Iterable[str]:
    """As run --direction takes them."""
    from planebench.scenarios import DIRECTIONS

    return DIRECTIONS


def vnfs() -> Iterable[str]:
    """What a chain is made of."""
    from planebench.vnfs.registry import VNFS

    return VNFS


def hostings() -> Iterable[str]:
    """What a whole chain may run in."""
    from planebench.model.chain_name import HOSTINGS, OWN

    return [name for name in HOSTINGS if name not in OWN]


def _stems(folder: str) -> list[str]:
    return sorted(path.stem for path in (_PACKAGE / folder).glob("*.yaml"))


def _files(incomplete: str) -> list[str]:
    """YAML files and folders that begin so; hidden ones where the user has typed the dot."""
    folder, slash, start = incomplete.rpartition("/")
    try:
        there = sorted(Path(folder + slash or ".").iterdir())
    except OSError:
        return []
    fit = [
        path
        for path in there
        if path.name.startswith(start) and (start.startswith(".") or not path.name.startswith("."))
    ]
    return [folder + slash + path.name + "/" * path.is_dir() for path in fit if path.suffix in _YAML or path.is_dir()]


def _name(header: Path) -> str:
    try:
        return str(json.loads(header.read_bytes())["name"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def answer(app: Callable[[], object], variables: MutableMapping[str, str] = os.environ) -> None:
    """Have the completion of typer answer the shell; for bash, mend what it does to words with ``:`` and ``=``."""
    if variables[VARIABLE] != _BASH:
        app()
        return
    known = _join_words(variables)
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.suppress(SystemExit):
        app()
    sys.stdout.writelines(line.removeprefix(known) + "\n" for line in text.getvalue().splitlines())


def _join_words(variables: MutableMapping[str, str]) -> str:
    """Join in ``variables`` the words that bash has broken at ``:`` and ``=``.

    Returns what bash has of the current value already, and must not get again: ``sim:`` of ``sim:cap``.
    """
    program, *words = variables["COMP_WORDS"].split("\n")
    joined = [program]
    gluing = False
    for word in words[: int(variables["COMP_CWORD"])]:
        is_break = bool(word) and set(word) <= _BREAKS
        if (is_break or gluing) and len(joined) > 1:
            joined[-1] += word
        else:
            joined.append(word)
        gluing = is_break
    variables["COMP_WORDS"], variables["COMP_CWORD"] = "\n".join(joined), str(len(joined) - 1)
    value = joined[-1].partition("=")[2] if joined[-1].startswith("-") else joined[-1]
    return value[: max(value.rfind(sign) for sign in _BREAKS) + 1]
