# SPDX-License-Identifier: BSD-3-Clause
"""Run every command of README.md, docs/ and --help, in the order of the pages, each page in a folder of its own.

``docs_check.py [PAGE...]``, with the planebench that it imports. Exit code 1, and what came, where a command fails or a
link leads nowhere. What is not run, what is added to make long runs short, and what a page needs: docs_check.yaml.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import docs_pages
import typer
import yaml
from docs_pages import Command

import planebench
from planebench.cli.app import app
from planebench.cli.man import commands as command_tree
from planebench.cli.man import example_lines
from planebench.model.errors import INCONCLUSIVE, NotInstalledError
from planebench.model.scenario import scenario_named
from planebench.plans.load import list_suites, load_plan

ROOT = Path(__file__).resolve().parent.parent
TABLE: dict[str, Any] = yaml.safe_load((ROOT / "scripts" / "docs_check.yaml").read_text(encoding="utf-8"))
TREE: Any = typer.main.get_command(app)
HELP = "help"
"""The page of the examples at the end of every --help."""
NOTEBOOKS = tuple(str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").rglob("*.ipynb")))
OPTIONS = ROOT / "docs" / "measure.md"
"""The page with the table of the options of planebench run."""
LIMIT_S = 600
"""Of one command; hundred times what it takes, on a busy machine."""
TAIL = 25
"""Lines of output that are shown of a command that failed."""


def all_pages() -> dict[str, list[Command]]:
    """The commands of each page; the examples of --help are a page too."""
    found = {str(page.relative_to(ROOT)): docs_pages.commands(ROOT, page) for page in docs_pages.pages(ROOT)}
    lines = [line for command in (TREE, *dict(command_tree(TREE)).values()) for line in example_lines(command)]
    return found | {HELP: [Command(HELP, number, line) for number, line in enumerate(dict.fromkeys(lines), 1)]}


def complaint(words: list[str]) -> str:
    """What the command line has against ``planebench ...``, told by its own parser; empty if it would take it."""
    command, path = TREE, words[:1]
    words = words[1:]
    while hasattr(command, "commands"):
        flags = [option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)]
        flags += ["-h", "--help", "--install-completion", "--show-completion"]
        if not words or words[0] in flags:
            return complaint([*path, *words[1:]]) if words[1:] else ""
        if words[0] not in command.commands:
            return f"{' '.join(path)} has no command {words[0]}"
        command, path, words = command.commands[words[0]], [*path, words[0]], words[1:]
    try:
        command.make_context(" ".join(path), list(words))
    except typer.Exit:
        return ""
    except Exception as error:  # of the click in or beside typer: its base has no public name
        return " ".join(str(getattr(error, "message", error)).split()) or type(error).__name__
    return ""


def static_faults() -> Iterator[str]:
    """All that can be told without running anything: commands parse, links lead somewhere, tables are not stale."""
    pages = all_pages()
    for command in (command for page in pages.values() for command in page):
        if command.words[0] == "planebench" and (problem := complaint(command.words)):
            yield f"{command.where}: {command.text}: {problem}"
    yield from docs_pages.broken_links(ROOT)
    yield from docs_pages.not_in_contents(ROOT / "docs")
    options = {option for parameter in TREE.commands["run"].params for option in parameter.opts}
    for option in docs_pages.option_table(OPTIONS):
        if option not in options:
            yield f"{OPTIONS.name}: the table of options has {option}, planebench run does not"
    texts = {command.text for page in pages.values() for command in page}
    yield from (f"docs_check.yaml: no page has: {text}" for text in TABLE["not_run"] if text not in texts)
    gone = (name for name in TABLE["fixtures"] if name not in {*pages, "any", *NOTEBOOKS})
    yield from (f"docs_check.yaml: fixtures of {name}, which is no page" for name in gone)


def shortened(text: str) -> tuple[str, str]:
    """Return a command with what makes its runs short, and what that is.

    A command with a time budget runs as it is. A direction is added where suite and scenarios have it.
    """
    words = shlex.split(text)
    given = {word.partition("=")[0] for word in words}
    if "planebench run" not in text or given & {"--help", "--time-budget"}:
        return text, ""
    if TABLE["shorten"]["--direction"] not in _directions(words):
        given.add("--direction")
    added = " ".join(f"{option} {value}" for option, value in TABLE["shorten"].items() if option not in given)
    start = text.index("planebench run") + len("planebench run")
    return f"{text[:start]} {added}{text[start:]}", added


def _directions(words: list[str]) -> set[str]:
    """Return the directions that a run may have: those of its suite, and of the scenarios that it names."""
    plan = load_plan(next((word for word in words if word in list_suites()), "quick"))
    found = {direction for part in (plan, *plan.parts) for direction in part.directions}
    if "--scenario" in words:
        names = words[words.index("--scenario") + 1].split(",")
        found &= {direction for name in names for direction in scenario_named(name).directions}
    return found


@dataclass
class Checker:
    """Runs commands in ``scratch`` and keeps account."""

    scratch: Path
    ran: int = 0
    left_out: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    measured: dict[str, str] = field(default_factory=dict)
    """Commands that measure, and where they were run: once is enough, but for one that a page has twice."""

    def page(self, name: str, commands: list[Command]) -> None:
        """All commands of a page, after what it needs."""
        folder = self.scratch / re.sub(r"\W", "_", name)
        if not all(command.text in TABLE["not_run"] for command in commands):
            self._prepare(folder, name)
        for command in commands:
            print(f"{command.where}: {command.text}", flush=True)
            if command.text in TABLE["not_run"]:
                self._leave_out(command.where, command.text, TABLE["not_run"][command.text])
            elif self.measured.get(command.text, name + ":").partition(":")[0] != name:
                print(f"    ran as {self.measured[command.text]}", flush=True)
            else:
                self.run(folder, command.where, command.text)

    def run(self, folder: Path, where: str, text: str) -> None:
        """One command; says what came of it."""
        short, added = shortened(text)
        if added:
            print(f"    added: {added}", flush=True)
        begun = time.monotonic()
        code, output = self._execute(short, folder)
        asks = any(f"planebench {question}" in text for question in TABLE["questions"])
        if code == NotInstalledError.exit_code:
            self._leave_out(where, text, output.strip().splitlines()[-1])
        elif code in (0, INCONCLUSIVE) or (code == 1 and asks):
            self.ran += 1
            if "planebench run" in text or "planebench switch check" in text:
                self.measured[text] = where
            print(f"    exit code {code}, {time.monotonic() - begun:.1f} s", flush=True)
        else:
            self.failed.append(f"{where}: {text}")
            tail = "\n    | ".join(output.splitlines()[-TAIL:])
            print(f"    FAILED, exit code {code}, ran as: {short}\n    | {tail}", flush=True)

    def notebook(self, name: str) -> None:
        """Run a notebook from its first cell to its last, after what it needs."""
        print(f"{name}: all cells", flush=True)
        if importlib.util.find_spec("nbclient") is None:
            self._leave_out(name, "all cells", "nbclient is not installed: pip install nbclient ipykernel")
            return
        folder = self.scratch / re.sub(r"\W", "_", name)
        self._prepare(folder, name)
        code = "import nbformat, nbclient, sys; nbclient.NotebookClient(nbformat.read(sys.argv[1], 4)).execute()"
        self.run(folder, name, shlex.join(["python", "-c", code, str(ROOT / name)]))

    def _leave_out(self, where: str, text: str, reason: str) -> None:
        self.left_out.append(f"{where}: {text}: {reason}")
        print(f"    not run: {reason}", flush=True)

    def _prepare(self, folder: Path, name: str) -> None:
        folder.mkdir()
        for linked in ("bench", "docs"):
            (folder / linked).symlink_to(ROOT / linked)
        needs = TABLE["fixtures"].get(name, TABLE["fixtures"]["any"])
        for file, text in needs.get("files", {}).items():
            (folder / file).write_text(text, encoding="utf-8")
        for file, start in needs.get("blocks", {}).items():
            (folder / file).write_text(docs_pages.block_of(ROOT / name, start), encoding="utf-8")
        for command in needs.get("commands", []):
            code, output = self._execute(shortened(command)[0], folder)
            if code not in (0, INCONCLUSIVE):
                self.failed.append(f"{name}: fixture: {command}")
                print(f"{name}: fixture failed: {command}\n{output}", flush=True)

    def _execute(self, text: str, folder: Path) -> tuple[int, str]:
        """Exit code and all output. A command that takes too long is ended with all that it started."""
        path = f"{self.scratch / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        cache = self.scratch / "cache"
        own = {"PLANEBENCH_RUNS": "runs", "XDG_CACHE_HOME": str(cache), "NO_COLOR": "1", "COLUMNS": "120", "PATH": path}
        process = subprocess.Popen(
            ["bash", "-o", "pipefail", "-c", text],
            cwd=folder,
            env={**os.environ, **own},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGTERM)
            output, _ = process.communicate()
            return 124, f"{output}\nended after {LIMIT_S} s"
        return process.returncode, output


def main() -> int:
    """Check what can be told without running, then run. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="*", help="README.md, docs/chains.md, help, ... (default: all)")
    options = parser.parse_args()
    faults = list(static_faults())
    for fault in faults:
        print(fault)
    with tempfile.TemporaryDirectory(prefix="docs-check-", ignore_cleanup_errors=True) as scratch:
        checker = Checker(Path(scratch))
        _make_program(Path(scratch) / "bin")
        for name, commands in all_pages().items():
            if commands and (not options.pages or name in options.pages):
                checker.page(name, commands)
        for name in NOTEBOOKS:
            if not options.pages or name in options.pages:
                checker.notebook(name)
    print(f"\n{checker.ran} commands ran, {len(checker.left_out)} were not run, {len(checker.failed)} failed")
    for failure in (*faults, *checker.failed):
        print(f"failed: {failure}")
    return int(bool(faults or checker.failed))


def _make_program(folder: Path) -> None:
    """The planebench that is imported here, be it installed or of a source tree, as a command."""
    folder.mkdir()
    program = folder / "planebench"
    place = shlex.quote(str(Path(planebench.__file__).parents[1]))
    program.write_text(f'#!/bin/sh\nPYTHONPATH={place} exec {shlex.quote(sys.executable)} -m planebench "$@"\n')
    program.chmod(0o755)


if __name__ == "__main__":
    sys.exit(main())
