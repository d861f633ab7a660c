# SPDX-License-Identifier: BSD-3-Clause
"""Tab in bash, zsh and fish themselves, as a user presses it: each shell runs on a terminal of its own."""

from __future__ import annotations

import functools
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from builders import make_run, store_run

from planebench.host.deadlines import stretched

ANSWER_S = 20.0
READY = "shell-is-ready"
SHELLS = {
    "bash": (["bash", "--norc", "-i"], "bind 'set enable-bracketed-paste off'; source {script}"),
    "zsh": (["zsh", "-f", "-i"], "autoload -Uz compinit; compinit -u -D; source {script}"),
    "fish": (["fish", "--no-config", "--interactive"], "source {script}"),
}
"""How a shell starts without a user's settings, and how it is given the completion."""
LINES = {
    "planebench com": "planebench compare",
    "planebench run --switch sim,testp": "planebench run --switch sim,testpmd",
    "planebench report 2026": "planebench report 20261121-123356-quick",
}
_CONTROL = re.compile(r"\x1b(\[[0-9;?>=]*[a-zA-Z]|\][^\x07\x1b]*(\x07|\x1b\\)|[()][0-9A-B]|[=>78])|[\r\x00\x07\x08]")


class Terminal:
    """A shell on a pseudo terminal."""

    def __init__(self, argv: list[str], folder: Path, variables: dict[str, str]) -> None:
        self._leader, follower = pty.openpty()
        # The shell's controlling terminal, without which fish does not start.
        login = functools.partial(os.login_tty, follower)
        self._shell = subprocess.Popen(argv, cwd=folder, env=variables, pass_fds=(follower,), preexec_fn=login)
        os.close(follower)

    def type(self, text: str) -> None:
        """Type a text."""
        os.write(self._leader, text.encode())

    def shown(self, wanted: str) -> str:
        """Return what the shell shows until ``wanted`` is in it, or nothing more comes."""
        seen, deadline = b"", time.monotonic() + stretched(ANSWER_S)
        while wanted not in (text := _CONTROL.sub("", seen.decode(errors="replace"))) and time.monotonic() < deadline:
            if select.select([self._leader], [], [], 0.1)[0]:
                seen += os.read(self._leader, 1 << 16)
                if b"\x1b[c" in seen or b"\x1b[0c" in seen:  # fish asks what terminal this is, and waits
                    self.type("\x1b[?1;2c")
                    seen = seen.replace(b"\x1b[c", b"").replace(b"\x1b[0c", b"")
        return text

    def end(self) -> None:
        """End the shell."""
        self._shell.kill()
        self._shell.wait()
        os.close(self._leader)


@pytest.fixture(params=SHELLS)
def terminal(request: pytest.FixtureRequest, tmp_path: Path, own_run_folder: Path) -> Iterator[Terminal]:
    """A shell that has the completion which --show-completion prints for it, and one run."""
    argv, setup = SHELLS[request.param]
    if shutil.which(argv[0]) is None:
        pytest.skip(f"{argv[0]} is not installed")
    store_run(own_run_folder, make_run())
    program = tmp_path / "bin" / "planebench"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nPYTHONPATH={Path.cwd()} exec {sys.executable} -m planebench "$@"\n')
    program.chmod(0o755)
    variables = {**os.environ, "HOME": str(tmp_path), "TERM": "xterm", "PS1": "", "COLUMNS": "200", "NO_COLOR": "1"}
    variables |= {"PATH": f"{program.parent}:{os.environ['PATH']}"}
    told = {**variables, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run(
        [program, "--show-completion", request.param], env=told, capture_output=True, text=True, check=True
    )
    script = tmp_path / "completion"
    script.write_text(done.stdout)
    it = Terminal(argv, tmp_path, variables)
    try:
        it.type(setup.format(script=script) + f"; echo {READY[:5]}''{READY[5:]}\n")
        assert READY in it.shown(READY)
        yield it
    finally:
        it.end()


def test_tab_completes_commands_options_lists_and_runs(terminal: Terminal) -> None:
    for line, wanted in LINES.items():
        terminal.type(f"{line}\t")
        shown = terminal.shown(wanted)
        assert wanted in shown, shown
        terminal.type("\x15")  # Ctrl-U: an empty line again
