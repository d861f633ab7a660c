# SPDX-License-Identifier: BSD-3-Clause
"""scripts/setup.sh for a user without root: what is needed stops the set-up, what is only useful does not.

And scripts/in_use.sh: nothing is installed under a planebench that runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SETUP = Path(__file__).resolve().parents[1] / "scripts" / "setup.sh"
IN_USE = SETUP.with_name("in_use.sh")
NO_SUDO = "echo 'sudo: a password is required' >&2; exit 1"


def _setup(folder: Path, installed: str, *more: str, sudo: str = NO_SUDO) -> tuple[int, str, str]:
    """Return exit code, apt-get's commands and the messages of setup.sh, where ``installed`` matches the packages."""
    stubs = {
        "id": "echo 1000",
        "sudo": sudo,
        "apt-get": f'echo "$*" >> {folder}/apt',
        "apt-cache": "exit 0",
        "dpkg-query": f'for word; do case $word in --*) ;; {installed}) echo "installed $word" ;; esac; done',
    }
    for name, text in stubs.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    done = subprocess.run(
        [SETUP, *more],
        env={**os.environ, "PATH": f"{folder}:/usr/bin:/bin"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=20,
    )
    ran = folder / "apt"
    return done.returncode, ran.read_text() if ran.exists() else "", done.stderr


def test_nothing_is_said_or_done_where_all_is_there(tmp_path: Path) -> None:
    assert _setup(tmp_path, "*") == (0, "", "")


def test_it_goes_on_without_a_second_switch(tmp_path: Path) -> None:
    code, ran, said = _setup(tmp_path, "[a-np-z]*")
    assert (code, ran) == (0, "")
    assert said.startswith("setup: going on without openvswitch-switch-dpdk openssh-client;")
    assert "install --no-install-recommends -y openvswitch-switch-dpdk openssh-client" in said


@pytest.mark.parametrize("more", [(), ("qemu-system-x86",)])
def test_what_is_needed_stops_it_with_the_command_for_root(tmp_path: Path, more: tuple[str, ...]) -> None:
    code, ran, said = _setup(tmp_path, "[abd-km-pr-z]*" if more else "[a-km-z]*", *more)
    assert (code, ran) == (1, "")
    assert "missing: libdpdk-dev libjansson-dev libpcap-dev" + "".join(f" {name}" for name in more) in said
    assert ("docs/install.md" in said) == (not more), "the wheel is no way to more packages for the tests"


def test_sudo_without_a_password_installs_all_that_is_missing(tmp_path: Path) -> None:
    sudo = '[ "$1" = -n ] || exec "$@"'
    code, ran, said = _setup(tmp_path, "[a-np-z]*", sudo=sudo)
    assert (code, said) == (0, "")
    assert ran.splitlines()[-1].endswith("install --no-install-recommends -y openvswitch-switch-dpdk openssh-client")


def test_nothing_is_installed_under_a_run(tmp_path: Path) -> None:
    bin_folder = tmp_path / "venv" / "bin"
    bin_folder.mkdir(parents=True)
    (bin_folder / "python").symlink_to(sys.executable)
    (bin_folder / "planebench").write_text("import sys; sys.stdin.read()")

    def check() -> subprocess.CompletedProcess[str]:
        return subprocess.run([IN_USE, "venv"], cwd=tmp_path, capture_output=True, text=True, timeout=60)

    assert check().returncode == 0
    command = [bin_folder / "python", bin_folder / "planebench", "run", "quick"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as running:
        found = check()
        assert running.stdin is not None
        running.stdin.close()
    assert found.returncode == 1
    assert f"process {running.pid}: " in found.stderr
    assert "planebench run quick), and a new installation would take its programs away." in found.stderr
    assert check().returncode == 0
