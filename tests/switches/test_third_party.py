# SPDX-License-Identifier: BSD-3-Clause
"""Adapters of other packages: the example of docs/adding-a-switch.md, installed, run; and entry points gone wrong."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from kernel_rig import PLACES_THREADS

REPO = Path(__file__).parents[2]
EXAMPLE = REPO / "docs/examples/planebench-tc"


def install(target: Path, name: str, points: dict[str, str], *modules: Path) -> None:
    """What pip leaves of a package: its modules, and its metadata."""
    info = target / f"{name}-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    lines = [f"{point} = {value}" for point, value in points.items()]
    (info / "entry_points.txt").write_text("\n".join(["[planebench.switches]", *lines, ""]))
    for module in modules:
        shutil.copy(module, target)


def install_example(target: Path) -> None:
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    install(target, "planebench_tc", project["entry-points"]["planebench.switches"], EXAMPLE / "planebench_tc.py")


def python(target: Path, source: str) -> subprocess.CompletedProcess[str]:
    path = f"{target}:{REPO}:{Path(__file__).parent}"
    return subprocess.run(
        [sys.executable, "-B", "-c", source],
        capture_output=True,
        text=True,
        cwd=target,
        timeout=60,
        env={**os.environ, "PYTHONPATH": path},
    )


@pytest.mark.dataplane
@PLACES_THREADS
@pytest.mark.usefixtures("needs_tester")
def test_the_example_is_found_and_forwards(tmp_path: Path) -> None:
    install_example(tmp_path)
    done = python(
        tmp_path,
        "from pathlib import Path\n"
        "from planebench.host.process import Supervisor\n"
        "from planebench.switches.base import Found\n"
        "from planebench.switches.registry import all_adapters, get_adapter\n"
        "from kernel_rig import crossed, live\n"
        "assert 'tc-redirect' in all_adapters()\n"
        "tc = get_adapter('tc-redirect:filter=u32')\n"
        "if not isinstance(tc.find(), Found): raise SystemExit('no tc here')\n"
        "with Supervisor(Path('/tmp')) as s:\n"
        "    it = live(tc, s, 'p2p')\n"
        "    crossed(it, 'bidirectional')\n"
        "    it.stop()\n"
        "print('forwarded')\n",
    )
    if "no tc here" in done.stderr:
        pytest.skip("iproute2 is not installed")
    assert done.stdout == "forwarded\n", done.stderr


def test_what_is_broken_is_told_in_a_sentence_and_takes_nothing_with_it(tmp_path: Path) -> None:
    install_example(tmp_path)
    (tmp_path / "strange.py").write_text("raise RuntimeError('half installed')\n")
    (tmp_path / "other.py").write_text(
        "from planebench_tc import TcAdapter\n"
        "class Other(TcAdapter):\n    name = 'another'\n"
        "ADAPTER, TEXT = Other(), 'x'\n"
    )
    points = {
        "raises": "strange:ADAPTER",
        "absent": "nothing_here:ADAPTER",
        "lacks": "other:MISSING",
        "text": "other:TEXT",
        "unlike": "other:ADAPTER",
        "planed": "other:ADAPTER",
    }
    install(tmp_path, "strange", points)
    install(tmp_path, "twin", {"tc-redirect": "planebench_tc:ADAPTER"})
    done = python(
        tmp_path,
        "from planebench.model.errors import UsageError\n"
        "from planebench.switches.registry import all_adapters, broken_adapters, get_adapter\n"
        "for name, why in sorted(broken_adapters().items()): print(name, why, sep='|')\n"
        "assert type(all_adapters()['planed']).__name__ == 'PlanedAdapter'\n"
        "assert get_adapter('tc-redirect').name == 'tc-redirect'\n"
        "try: get_adapter('raises')\n"
        "except UsageError as error: print('told', error, sep='|')\n",
    )
    assert done.returncode == 0, done.stderr
    told = dict(line.split("|", 1) for line in done.stdout.splitlines())
    assert told == {
        "raises": "strange:ADAPTER: half installed",
        "absent": "nothing_here:ADAPTER: No module named 'nothing_here'",
        "lacks": "other:MISSING: module 'other' has no attribute 'MISSING'",
        "text": "other:TEXT: its object is a str; derive it from planebench.switches.base.Adapter",
        "unlike": "other:ADAPTER: its name is another, not that of the entry point",
        "planed": "other:ADAPTER: a switch planed exists already; give it another name",
        "tc-redirect": "planebench_tc:ADAPTER: a switch tc-redirect exists already; give it another name",
        "told": "switch raises cannot be loaded: strange:ADAPTER: half installed",
    }
