# SPDX-License-Identifier: BSD-3-Clause
"""Shell completion. Heavy modules are not imported: a user waits for every answer.

Names are asked of the modules that know them when they are wanted.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Callable, Collection, Iterable, MutableMapping
from pathlib import Path
from typing import get_args

LISTS = ("switches", "traffic", "vnfs", "hostings", "scenarios", "suites", "runs")
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
"""Characters of planebench arguments at which bash breaks words (COMP_WORDBREAKS)."""


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
    """Return the switches of planebench and of other packages."""
    from importlib.metadata import entry_points  # takes as long as all the rest

    from planebench.switches.names import SWITCHES

    return [*SWITCHES, *(point.name for point in entry_points(group="planebench.switches"))]


def plans(incomplete: str) -> list[str]:
    """Return suites and plan files."""
    return [name for name in _stems("plans/suites") if name.startswith(incomplete)] + _files(incomplete)


def traffic(incomplete: str) -> list[str]:
    """Return traffic profiles and profile files, for a list."""
    before, comma, last = incomplete.rpartition(",")
    return listed(("plain", *_stems("traffic/profiles")))(incomplete) + [before + comma + path for path in _files(last)]


def runs(incomplete: str) -> list[str]:
    """Return ``latest``, the names of runs and their ids, newest first, in $PLANEBENCH_RUNS or ./runs."""
    folder = Path(os.environ.get("PLANEBENCH_RUNS") or "runs")
    headers = sorted(folder.glob("*/run.json"), key=lambda path: path.parent.name, reverse=True)[:RUNS_SHOWN]
    names = ("latest", *(_name(header) for header in headers), *(header.parent.name for header in headers))
    return [name for name in dict.fromkeys(names) if name and name.startswith(incomplete)]


def checks() -> list[str]:
    """Return the checks of the conformance suite."""
    from planebench.conformance import ALL_CHECKS

    return [check.name for check in ALL_CHECKS]


def cases() -> list[str]:
    """Return the topologies that switch check takes."""
    from planebench.model.scenario import SCENARIOS, scenarios_with

    chains = [f"{name}-{n}" for name in scenarios_with("chain") for n in range(1, SCENARIOS[name].vnfs_max + 1)]
    return [*scenarios_with("none"), *chains]


def metrics() -> Iterable[str]:
    """Return what comparisons are made of."""
    from planebench.model.results import Metric

    return get_args(Metric)


def wires() -> Iterable[str]:
    """Return what can stand in for a NIC."""
    from planebench.model.records import WireName

    return get_args(WireName)


def bands() -> Iterable[str]:
    """Return the bands of core distance."""
    from planebench.model.plan import Band

    return get_args(Band)


def formats() -> Iterable[str]:
    """Return the formats of an export."""
    from planebench.cli.output import FORMATS

    return FORMATS


def tables() -> Iterable[str]:
    """Return the tables of an export."""
    from planebench.library import TABLES

    return TABLES


def figures() -> Iterable[str]:
    """Return the kinds of figures."""
    from planebench.report.charts.figure import KINDS

    return KINDS


def schemas() -> Iterable[str]:
    """Return the JSON Schemas that there are."""
    from planebench.schemas import SCHEMAS

    return SCHEMAS


def scenarios() -> Iterable[str]:
    """Return the values of run --scenario."""
    from planebench.model.scenario import SCENARIOS

    return SCENARIOS


def directions() -> Iterable[str]:
    """Return the values of run --direction."""
    from planebench.scenarios.registry import DIRECTIONS

    return DIRECTIONS


def vnfs() -> Iterable[str]:
    """Return the functions of a chain."""
    from planebench.vnfs.registry import VNFS

    return VNFS


def hostings() -> Iterable[str]:
    """Return the hostings of a whole chain."""
    from planebench.model.chain_name import HOSTINGS, OWN

    return [name for name in HOSTINGS if name not in OWN]


def _stems(folder: str) -> list[str]:
    return sorted(path.stem for path in (_PACKAGE / folder).glob("*.yaml"))


def _files(incomplete: str) -> list[str]:
    """Return YAML files and folders with this prefix; hidden ones only after a typed dot."""
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
