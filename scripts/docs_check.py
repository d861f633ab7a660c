# SPDX-License-Identifier: BSD-3-Clause
"""Run every command of README.md, docs/ and --help, in the order of the pages, each page in a folder of its own.

``docs_check.py [--from PAGE] [PAGE...]``, with the planebench that it imports. Exit code 1, and what came, where a
command fails or a link leads nowhere. What is not run, how long runs are made short, and what a page needs:
docs_check.yaml. No verdict counts: a run that ends with "no trial was accepted" (6) has run.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import docs_pages
import typer
from docs_pages import Command, command_tree

import planebench
from planebench.cli.app import app
from planebench.host.files import default_folder
from planebench.measure.machine import terminable
from planebench.model.errors import INCONCLUSIVE, NotInstalledError
from planebench.model.scenario import scenario_named
from planebench.model.text import parse_yaml
from planebench.plan import list_suites
from planebench.plan.schema import load_plan
from planebench_fib.command import parser as fib_parser
from planebench_fib.exceptions import UsageError

ROOT = Path(__file__).resolve().parent.parent
TABLE: dict[str, Any] = parse_yaml(
    (ROOT / "scripts" / "docs_check.yaml").read_text(encoding="utf-8"), "docs_check.yaml"
)
TREE: Any = typer.main.get_command(app)
HELP = "help"
"""The page of the examples at the end of every --help."""
NOTEBOOKS = tuple(str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").rglob("*.ipynb")))
OPTIONS = ROOT / "docs" / "measure.md"
"""The page with the table of the options of planebench run."""
LIMIT_S = 600
"""Of one command; hundred times what it takes, on a busy machine."""
READY_S = 30
"""Until a command that runs beside others is ready, and until it has ended."""
TAIL = 25
"""Lines of output that are shown of a command that failed."""


def examples_of(command: Any) -> list[str]:
    """Return the commands at the end of a command's help."""
    return [line for line in (command.epilog or "").split("\n\n") if line and line != "Examples:"]


def all_pages() -> dict[str, list[Command]]:
    """The commands of each page; the examples of --help are a page too."""
    found = {str(page.relative_to(ROOT)): docs_pages.commands(ROOT, page) for page in docs_pages.pages(ROOT)}
    lines = [line for command in (TREE, *dict(command_tree(TREE)).values()) for line in examples_of(command)]
    return found | {HELP: [Command(HELP, number, line) for number, line in enumerate(dict.fromkeys(lines), 1)]}


def complaint(words: list[str]) -> str:
    """What the command line has against ``planebench ...``, told by its own parser; empty if it would take it.

    The same of ``planebench-fib ...``.
    """
    if words[0] == "planebench-fib" or (words[1:2] == ["fib"] and words[2:]):
        return _fib_complaint(words[1:] if words[0] == "planebench-fib" else words[2:])
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


def _fib_complaint(words: list[str]) -> str:
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            fib_parser("planebench-fib").parse_args(words)
        except UsageError as error:
            return str(error)
        except SystemExit:  # --help, --version
            return ""
    return ""


def static_faults() -> Iterator[str]:
    """All that can be told without running anything: commands parse, links lead somewhere, tables are not stale."""
    pages = all_pages()
    for command in (command for page in pages.values() for command in page):
        if command.words[0] in ("planebench", "planebench-fib") and (problem := complaint(command.words)):
            yield f"{command.where}: {command.text}: {problem}"
    yield from docs_pages.broken_links(ROOT)
    yield from docs_pages.not_in_contents(ROOT / "docs")
    options = {option for parameter in TREE.commands["run"].params for option in parameter.opts}
    for option in docs_pages.option_table(OPTIONS):
        if option not in options:
            yield f"{OPTIONS.name}: the table of options has {option}, planebench run does not"
    texts = {command.text for page in pages.values() for command in page}
    named = (*TABLE["not_run"], *TABLE["beside"])
    yield from (f"docs_check.yaml: no page has: {text}" for text in named if text not in texts)
    gone = (name for name in TABLE["fixtures"] if name not in {*pages, "any", *NOTEBOOKS})
    yield from (f"docs_check.yaml: fixtures of {name}, which is no page" for name in gone)


def shortened(text: str) -> tuple[str, str]:
    """Return a command with what makes it short, and what that is.

    A run with a time budget stays as it is. A direction is added where suite and scenarios have it.
    """
    words = shlex.split(text)
    given = {word.partition("=")[0] for word in words}
    command = next((name for name in TABLE["shorten"] if f"planebench {name} " in text), "")
    if not command or given & {"--help", "--time-budget"}:
        return text, ""
    options: dict[str, str] = TABLE["shorten"][command]
    if options.get("--direction", "") not in _directions(words):
        given.add("--direction")
    added = " ".join(f"{option} {value}" for option, value in options.items() if option not in given)
    start = text.index(f"planebench {command}") + len(f"planebench {command}")
    return f"{text[:start]} {added}{text[start:]}" if added else text, added


def replaced(text: str) -> tuple[str, str]:
    """Return a command with smaller values in place of some of its own, and what was replaced."""
    said = []
    for option, values in TABLE["replace"].items():
        for value, smaller in values.items():
            pattern = rf"{option} {re.escape(value)}(?=\s|$)"
            if re.search(pattern, text):
                text = re.sub(pattern, f"{option} {smaller}", text)
                said.append(f"{option} {smaller} in place of {value}")
    return text, ", ".join(said)


def _directions(words: list[str]) -> set[str]:
    """Return the directions that a run may have: those of its suite or plan, and of the scenarios that it names."""
    plans = (word for word in words if word in list_suites() or (word.endswith(".yaml") and (ROOT / word).is_file()))
    name = next(plans, "quick")
    plan = load_plan(name if name in list_suites() else str(ROOT / name))
    found: set[str] = {direction for part in (plan, *plan.parts) for direction in part.directions}
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
    beside: list[tuple[str, str, subprocess.Popen[str]]] = field(default_factory=list)
    """Commands of this page that run until it ends: where, text, process."""

    def page(self, name: str, commands: list[Command]) -> None:
        """All commands of a page, after what it needs."""
        begun = time.monotonic()
        folder = self.scratch / re.sub(r"\W", "_", name)
        if not all(command.text in TABLE["not_run"] for command in commands):
            self._prepare(folder, name)
        try:
            for command in commands:
                print(f"{command.where}: {command.text}", flush=True)
                if reason := self._reason(command.text):
                    self._leave_out(command.where, command.text, reason)
                elif self.measured.get(command.text, name + ":").partition(":")[0] != name:
                    print(f"    ran as {self.measured[command.text]}", flush=True)
                elif command.text in TABLE["beside"]:
                    self._begin(folder, command.where, command.text)
                else:
                    self.run(folder, command.where, command.text)
        finally:
            self._end_beside()
        print(f"{name}: {time.monotonic() - begun:.0f} s", flush=True)

    def run(self, folder: Path, where: str, text: str) -> None:
        """One command; says what came of it."""
        smaller, changed = replaced(text)
        short, added = shortened(smaller)
        if added or changed:
            print(f"    {'; '.join(filter(None, (changed, added and f'added: {added}')))}", flush=True)
        begun = time.monotonic()
        code, output = self._execute(short, folder)
        asks = any(f"planebench {question}" in text for question in TABLE["questions"])
        refused = text.startswith("rpc ") and '"error"' in output
        if code == NotInstalledError.exit_code:
            self._leave_out(where, text, output.strip().splitlines()[-1])
        elif not refused and (code in (0, INCONCLUSIVE) or (code == 1 and asks)):
            self.ran += 1
            if any(f"planebench {command}" in text for command in TABLE["once"]):
                self.measured[text] = where
            print(f"    exit code {code}, {time.monotonic() - begun:.1f} s", flush=True)
        else:
            self._fail(where, text, f"exit code {code}, ran as: {short}", output)

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

    def _reason(self, text: str) -> str:
        """Return why a command is not run, or nothing."""
        if text in TABLE["not_run"]:
            return str(TABLE["not_run"][text])
        return "needs root" if text.startswith("sudo ") and os.geteuid() != 0 else ""

    def _leave_out(self, where: str, text: str, reason: str) -> None:
        self.left_out.append(f"{where}: {text}: {reason}")
        print(f"    not run: {reason}", flush=True)

    def _fail(self, where: str, text: str, how: str, output: str) -> None:
        self.failed.append(f"{where}: {text}")
        tail = "\n    | ".join(output.splitlines()[-TAIL:])
        print(f"    FAILED, {how}\n    | {tail}", flush=True)

    def _begin(self, folder: Path, where: str, text: str) -> None:
        """Start a command that runs until the page ends, and wait for the file that says that it is ready."""
        process = self._start(text, folder)
        self.beside.append((where, text, process))
        until = time.monotonic() + READY_S
        while not Path(TABLE["beside"][text]).exists() and process.poll() is None and time.monotonic() < until:
            time.sleep(0.02)

    def _end_beside(self) -> None:
        """End what runs beside the commands of a page: it must still run, and end with 0 on SIGTERM."""
        for where, text, process in self.beside:
            ended = process.poll() is not None
            code, output = _end(process)
            if ended or code != 0:
                self._fail(where, text, f"exit code {code}, {'before' if ended else 'at'} the end of its page", output)
            else:
                self.ran += 1
        self.beside.clear()

    def _prepare(self, folder: Path, name: str) -> None:
        """Make the folder of a page with what it needs. What several pages need is made once, and copied."""
        needs = TABLE["fixtures"].get(name, TABLE["fixtures"]["any"])
        commands = tuple(needs.get("commands", ()))
        blocks = needs.get("blocks", {}).items()
        files = needs.get("files", {}) | {
            file: docs_pages.block_of(ROOT / page, start) for file, (page, start) in blocks
        }
        made = self.scratch / f"made-{abs(hash((commands, *files.items())))}"
        if not made.exists():
            self._make(made, name, files, commands)
        shutil.copytree(made, folder, symlinks=True)

    def _make(self, folder: Path, name: str, files: dict[str, str], commands: Sequence[str]) -> None:
        folder.mkdir()
        for linked in ("bench", "docs"):
            (folder / linked).symlink_to(ROOT / linked)
        for file, text in files.items():
            (folder / file).write_text(text, encoding="utf-8")
        for command in commands:
            code, output = self._execute(shortened(command)[0], folder)
            if code not in (0, INCONCLUSIVE):
                self.failed.append(f"{name}: fixture: {command}")
                print(f"{name}: fixture failed: {command}\n{output}", flush=True)

    def _execute(self, text: str, folder: Path) -> tuple[int, str]:
        """Exit code and all output. A command that takes too long is ended with all that it started."""
        process = self._start(text, folder)
        try:
            output, _ = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            return 124, f"{_end(process)[1]}\nended after {LIMIT_S} s"
        except BaseException:
            _end(process)
            raise
        return process.returncode, output

    def _start(self, text: str, folder: Path) -> subprocess.Popen[str]:
        path = f"{self.scratch / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        cache = self.scratch / "cache"
        own = {"PLANEBENCH_RUNS": "runs", "XDG_CACHE_HOME": str(cache), "NO_COLOR": "1", "COLUMNS": "120", "PATH": path}
        own |= {"PLANEBENCH_SHARE_CPUS": "1", "PLANEBENCH_PATIENCE": "3"}  # the machine may be busy: no figure matters
        return subprocess.Popen(
            ["bash", "-o", "pipefail", "-c", text],
            cwd=folder,
            env={**os.environ, **own, "BASH_ENV": str(self.scratch / "bin" / "functions.sh")},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )


def _end(process: subprocess.Popen[str]) -> tuple[int, str]:
    """End a command and all that it started; return its exit code and the rest of its output."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
    try:
        output, _ = process.communicate(timeout=READY_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
    return process.returncode, output


def main() -> int:
    """Check what can be told without running, then run. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="*", help="README.md, docs/chains.md, help, ... (default: all)")
    parser.add_argument("--from", dest="first", metavar="PAGE", help="begin with this page, after a failure")
    options = parser.parse_args()
    found = all_pages()
    names = [*(name for name, commands in found.items() if commands), *NOTEBOOKS]
    for unknown in {*options.pages, options.first or names[0]} - {*names}:
        parser.error(f"{unknown} is no page with commands; give {', '.join(names)}")
    faults = list(static_faults())
    for fault in faults:
        print(fault)
    chosen = [name for name in names[names.index(options.first or names[0]) :] if name in (options.pages or names)]
    with terminable(), tempfile.TemporaryDirectory(prefix="docs-check-", ignore_cleanup_errors=True) as scratch:
        checker = Checker(Path(scratch))
        _make_programs(Path(scratch) / "bin")
        _make_cache(Path(scratch) / "cache" / "planebench")
        for name in chosen:
            if name in NOTEBOOKS:
                checker.notebook(name)
            else:
                checker.page(name, found[name])
    print(f"\n{checker.ran} commands ran, {len(checker.left_out)} were not run, {len(checker.failed)} failed")
    for failure in (*faults, *checker.failed):
        print(f"failed: {failure}")
    return int(bool(faults or checker.failed))


def _make_programs(folder: Path) -> None:
    """Make the planebench that is imported here, be it installed or of a source tree, a command; and what pages use.

    sudo, for root, needs no sudo and keeps the path. rpc is the function of the shell that docs/planed.md defines.
    """
    folder.mkdir()
    place = shlex.quote(str(Path(planebench.__file__).parents[1]))
    programs = {"planebench": f'PYTHONPATH={place} exec {shlex.quote(sys.executable)} -m planebench "$@"'}
    if os.geteuid() == 0:
        programs["sudo"] = 'exec "$@"'
    for name, text in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    function, _, _ = docs_pages.block_of(ROOT / "docs" / "planed.md", "rpc()").partition("\n")
    (folder / "functions.sh").write_text(f"{function}\n")


def _make_cache(folder: Path) -> None:
    """Copy the calibrations of this user, which commands replace, and link the kernels and images of guests."""
    folder.mkdir(parents=True)
    for calibration in default_folder().glob("*.json"):
        shutil.copy(calibration, folder)
    if (guests := default_folder() / "guest").exists():
        (folder / "guest").symlink_to(guests)


if __name__ == "__main__":
    sys.exit(main())
