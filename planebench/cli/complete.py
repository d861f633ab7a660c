# SPDX-License-Identifier: BSD-3-Clause
"""Shell completion. Heavy modules are not imported: a user waits for every answer.

Names are read from the modules that know them when they are wanted.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import pkgutil
import sys
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from pathlib import Path
from typing import Any, get_args

RUNS_SHOWN = 50
"""The newest; older ones are typed, or found with list runs."""

Completer = Callable[[str], list[str]]
Names = str | Sequence[str]
"""Names, or the place in planebench that has them: ``model.wire:WIRES``."""

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
        return [name for name in names_in(names) if name.startswith(incomplete)]

    return complete


def listed(names: Names) -> Completer:
    """Complete the last item of a list with commas; names that the list has already are not offered again."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        there = set(before.split(","))
        return [before + comma + name for name in names_in(names) if name.startswith(last) and name not in there]

    return complete


def names_in(names: Names) -> Iterable[str]:
    """Return ``names``; of a place, the keys of a table, the values of a Literal, or the result of a function."""
    if not isinstance(names, str):
        return names
    found: Any = pkgutil.resolve_name(f"planebench.{names}")
    return get_args(found) or (found() if callable(found) else found)


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
