# SPDX-License-Identifier: BSD-3-Clause
"""Prolog and epilog of Slurm's nodes, with programs that stand for planebench and scontrol."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import planebench.lab

SCRIPTS = Path(planebench.lab.__file__).parent / "slurm_node"


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """Programs that note how they are called; planebench exits with what the file ``code`` says for its last words."""
    (tmp_path / "planebench").write_text(
        f'#!/bin/sh\necho "planebench $*" >> {tmp_path}/calls\n'
        f'code=$(sed -n "s/^$*=//p" {tmp_path}/codes)\n'
        '[ -z "$code" ] || echo "planebench: problem: only CPU 0 is allowed -> give it 3" >&2\nexit "${code:-0}"\n'
    )
    (tmp_path / "scontrol").write_text(f'#!/bin/sh\necho "scontrol $*" >> {tmp_path}/calls\n')
    (tmp_path / "runuser").write_text('#!/bin/sh\nshift 3\nexec "$@"\n')
    for name in ("planebench", "scontrol", "runuser"):
        (tmp_path / name).chmod(0o755)
    (tmp_path / "codes").touch()
    (tmp_path / "testbed").write_text(f'PLANEBENCH={tmp_path}/planebench NICS="0000:3b:00.0 0000:3b:00.1"\n')
    return tmp_path


def call(node: Path, script: str) -> tuple[int, list[str]]:
    environment = {
        "PATH": f"{node}:{os.environ['PATH']}",
        "PLANEBENCH_TESTBED_FILE": str(node / "testbed"),
        "SLURMD_NODENAME": "rack1",
        "SLURM_JOB_USER": "ada",
    }
    done = subprocess.run(["sh", SCRIPTS / script], env=environment, capture_output=True, text=True, check=False)
    assert not done.stderr
    return done.returncode, (node / "calls").read_text().splitlines()


BIND = "doctor --fix --quiet --bind 0000:3b:00.0 --bind 0000:3b:00.1 --user ada"
DRAIN = "scontrol update NodeName=rack1 State=DRAIN Reason=planebench: only CPU 0 is allowed -> give it 3"


@pytest.mark.parametrize(
    ("codes", "code", "calls"),
    [
        ("", 0, [BIND, "doctor --quiet"]),
        (f"{BIND}=1", 0, [BIND, "doctor --quiet"]),  # a setting that a container refuses
        (f"{BIND}=2", 1, [BIND, "doctor --undo --quiet", DRAIN]),
        ("doctor --quiet=1", 1, [BIND, "doctor --quiet", "doctor --undo --quiet", DRAIN]),
    ],
)
def test_a_node_that_is_not_fit_is_drained_with_the_sentence_of_doctor(
    node: Path, codes: str, code: int, calls: list[str]
) -> None:
    (node / "codes").write_text(codes + "\n")
    wanted = [it if it.startswith("scontrol") else f"planebench {it}" for it in calls]
    assert call(node, "prolog.sh") == (code, wanted)


def test_the_epilog_undoes_for_the_user_and_for_root(node: Path) -> None:
    assert call(node, "epilog.sh") == (0, ["planebench doctor --undo --quiet"] * 2)
    (node / "codes").write_text("doctor --undo --quiet=1\n")
    assert call(node, "epilog.sh")[1][-1].startswith("scontrol update NodeName=rack1 State=DRAIN Reason=planebench: ")
