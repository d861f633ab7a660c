# SPDX-License-Identifier: BSD-3-Clause
"""The manual page, made from the commands as they are: it cannot be stale. The build installs it too.

``python -m planebench.cli.man FILE`` writes it; nothing but typer is needed, for a build folder has no more.
click-man does not do: typer has a click of its own.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from planebench import __version__
from planebench.cli.variables import VARIABLES
from planebench.model.errors import EXIT_CODES

_DESCRIPTION = (
    "planebench benchmarks and compares software switches for network functions (NFV data planes): p2p, p2v, v2v and "
    "service chains, throughput and latency. It needs no NIC, no root privileges and no hugepages."
)
_OUTPUT = (
    "Results go to standard output, progress and notes to standard error. With --json, standard output has one JSON "
    "document and nothing else. With --quiet, only errors and warnings are printed, on standard error. An error is one "
    "line on standard error, also with --json; the exit code tells its kind."
)
_FILES = {
    "runs/ID/": "a run: its header, trials, plan, and report.html",
    "~/.config/planebench/switches.toml": "paths of switches (docs/switches.md)",
    "~/.cache/planebench/": "calibrations of the tester, used for 24 hours",
}


def show(app: typer.Typer) -> int:
    """Show the page with man on a terminal, else print its source. Returns the exit code."""
    page = roff(app)
    if sys.stdout.isatty() and shutil.which("man"):
        return subprocess.run(["man", "--local-file", "-"], input=page, text=True).returncode
    sys.stdout.write(page)
    return 0


def roff(app: typer.Typer) -> str:
    """Return planebench(1) in man macros."""
    command = typer.main.get_command(app)
    lines = [
        f'.TH PLANEBENCH 1 "" "planebench {__version__}" "User Commands"',
        *_section("NAME", [r"planebench \- benchmark and compare software switches (NFV data planes)"]),
        *_section("SYNOPSIS", [r"\fBplanebench\fR [\fIOPTIONS\fR] \fICOMMAND\fR [\fIARGUMENTS\fR]"]),
        *_section("DESCRIPTION", [_text(_DESCRIPTION)]),
        *_section("OPTIONS", _parameters(command)),
        *_section("COMMANDS", (line for path, child in commands(command) for line in _command(path, child))),
        *_section("OUTPUT", [_text(_OUTPUT)]),
        *_section("EXIT STATUS", _terms({str(code): words for code, words in EXIT_CODES.items()})),
        *_section("ENVIRONMENT", _terms(VARIABLES)),
        *_section("FILES", _terms(_FILES)),
        *_section("EXAMPLES", _examples(command)),
    ]
    return "\n".join(lines) + "\n"


def commands(command: Any, path: str = "planebench") -> Iterator[tuple[str, Any]]:
    """Yield every command that does something, with what a user types before its options: ``planebench plan show``."""
    for name, child in command.commands.items():
        if hasattr(child, "commands"):
            yield from commands(child, f"{path} {name}")
        elif not child.hidden:
            yield f"{path} {name}", child


def example_lines(command: Any) -> list[str]:
    """Return the commands at the end of a command's help."""
    return [line for line in (command.epilog or "").split("\n\n") if line and line != "Examples:"]


def _section(title: str, lines: Any) -> list[str]:
    return [f".SH {title}", *lines]


def _command(path: str, command: Any) -> Iterator[str]:
    usage = [rf"\fI{_text(name)}\fR" for name in (p.metavar or p.name.upper() for p in _arguments(command))]
    yield f".SS {_text(path)} {' '.join(usage)}".rstrip()
    yield _text(" ".join(command.help.split()))
    yield from _parameters(command)
    yield from _examples(command)


def _arguments(command: Any) -> list[Any]:
    return [p for p in command.params if p.param_type_name == "argument"]


def _parameters(command: Any) -> Iterator[str]:
    context = command.make_context("planebench", [], resilient_parsing=True)
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is None or parameter.name == "help":
            continue
        yield from (".TP", rf"\fB{_text(record[0])}\fR", _text(" ".join(record[1].split())))


def _examples(command: Any) -> Iterator[str]:
    lines = example_lines(command)
    if lines:
        yield from (".PP", "Examples:", ".PP", ".nf", ".RS")
        yield from (_text(line) for line in lines)
        yield from (".RE", ".fi")


def _terms(table: dict[str, str]) -> Iterator[str]:
    for term, words in table.items():
        yield from (".TP", rf"\fB{_text(term)}\fR", _text(words))


def _text(words: str) -> str:
    """Return a text with roff escapes."""
    escaped = words.replace("\\", r"\e").replace("-", r"\-").replace("~", r"\(ti").replace("^", r"\(ha")
    return rf"\&{escaped}" if escaped[:1] in (".", "'") else escaped


if __name__ == "__main__":
    from planebench.cli.app import app as planebench

    Path(sys.argv[1]).write_text(roff(planebench), encoding="utf-8")
