# SPDX-License-Identifier: BSD-3-Clause
"""The planebench command as a process, and what it leaves behind: processes, files, interfaces."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from planebench.conformance.leftovers import Leftovers
from planebench.host.process import ROOT_PREFIX, stretched
from planebench.host.procfs import command_line, processes_with
from planebench.model.errors import INCONCLUSIVE

PLANEBENCH = Path(sys.executable).parent / "planebench"
RAN = (0, INCONCLUSIVE)
"""Exit codes of a run that came to its end: a busy machine may disturb every trial, which changes no count."""
PATIENCE_S = 120.0
"""How long anything may take on a machine that is busy with something else."""
SWITCHES = ("planed", "ovs-dpdk", "testpmd")

Record = dict[str, Any]
Run = subprocess.Popen[str]

PLAN = """# SPDX-License-Identifier: BSD-3-Clause
# Short trials, none of them repeated: it is their counts that matter here.
version: 1
name: short
switches: [planed]
scenarios: [p2p]
directions: [unidirectional]
frame_sizes_bytes: [64]
throughput: {duration_s: 0.1, repetitions: 1}
latency: {loads: [], duration_s: 0.1, probe_rate_pps: 2000}
"""


@contextlib.contextmanager
def urgent() -> Iterator[None]:
    """Run this thread before all others: two pollers and a busy machine leave a test hardly any time on two cores."""
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -20)
    except PermissionError:
        yield
        return
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, 0)


def texts_of(trial: Record) -> list[str]:
    """Return the texts of the reasons of a stored trial's verdict."""
    return [reason["text"] for reason in trial["verdict"]["reasons"]]


@dataclass
class Bench:
    """One user's machine: a folder for runs, and a private run-time folder in which every process can be found."""

    runs: Path
    base: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="e2e-", dir="/tmp")))
    prefix: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    page: bool = False
    """Whether runs write their HTML report, which takes seconds of CPU time."""

    def __post_init__(self) -> None:
        self.runs.mkdir()
        self.plan = self.base / "plan.yaml"
        self.plan.write_text(PLAN)
        self.before = Leftovers.take()
        self.groups_before = _control_groups()

    def start(self, *arguments: object) -> subprocess.Popen[str]:
        """In a session of its own: a signal to its group is what Ctrl-C in a terminal is."""
        more = ("--no-report",) if arguments[0] == "run" and not self.page else ()
        return subprocess.Popen(
            [*self.prefix, str(PLANEBENCH), *map(str, arguments), *more],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd="/",
            start_new_session=True,
            env=os.environ | {"XDG_RUNTIME_DIR": str(self.base), "PLANEBENCH_RUNS": str(self.runs)} | dict(self.env),
        )

    def run(self, *arguments: object, code: int | None = 0) -> subprocess.CompletedProcess[str]:
        """Run to the end; the exit code must be ``code``, or any if that is None, and nothing may be left."""
        process = self.start(*arguments)
        try:
            out, err = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            raise
        wanted = RAN if code == 0 and arguments[0] == "run" else (code,)
        assert code is None or process.returncode in wanted, f"exit code {process.returncode}\n{err}"
        self.assert_nothing_left()
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    @property
    def folder(self) -> Path:
        """The one run there is."""
        (folder,) = self.runs.iterdir()
        return folder

    def trials(self) -> list[Record]:
        """Whole lines of trials.jsonl; empty while there is none."""
        texts = [path.read_text() for path in self.runs.glob("*/trials.jsonl")]
        return [json.loads(line) for text in texts for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def finished(self) -> Record | None:
        path = self.folder / "finished.json"
        return json.loads(path.read_text()) if path.exists() else None

    def processes(self, *words: str) -> list[int]:
        """Pids of all processes of this bench, or of those whose command line has all of the words."""
        return [pid for pid in processes_with(str(self.base)) if all(word in command_line(pid) for word in words)]

    def wait_for(self, condition: Callable[[], object], what: str, process: subprocess.Popen[str]) -> None:
        """Until the condition is true; fails when the command ends before that."""
        end = time.monotonic() + PATIENCE_S
        while not condition():
            assert process.poll() is None, f"it ended before {what}: {process.communicate()}"
            assert time.monotonic() < end, f"waited {PATIENCE_S:g} s in vain for {what}"
            time.sleep(0.01)

    def assert_nothing_left(self, within_s: float = 20.0) -> None:
        """No process, private folder, socket, hugepage file, interface or network namespace of ours."""
        end = time.monotonic() + stretched(within_s)
        while (left := self._left()) and time.monotonic() < end:
            time.sleep(0.05)
        assert not left, f"left behind: {left}"

    def _left(self) -> list[str]:
        return [
            *(f"process {pid}: {command_line(pid)}" for pid in self.processes()),
            *(str(path) for path in self.base.iterdir() if path != self.plan),
            *(path for path in sorted(Leftovers.take().paths.keys() - self.before.paths.keys()) if _is_for_all(path)),
            *sorted(_control_groups() - self.groups_before),
        ]

    def close(self) -> None:
        """For the end of a test, passed or not."""
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue
        shutil.rmtree(self.base, ignore_errors=True)


def state(pid: int) -> str:
    """R, S, T (stopped), Z, ...; empty if it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def one_line(text: str) -> str:
    """As it was before the terminal's width broke it."""
    return " ".join(text.split())


def counts(trial: Record) -> list[Record]:
    return list(trial["directions"])


def assert_exact(trial: Record) -> None:
    """The ledger of a measured trial adds up; nothing was damaged, doubled, or came out at the wrong port."""
    assert trial["verdict"]["kind"] != "invalid", trial["verdict"]
    # By the clock as it ran meanwhile: 50 ppm from the one by which the generator was paced.
    assert math.isclose(trial["offered_duration_ns"], trial["intended_duration_ns"], rel_tol=50e-6)
    for way in counts(trial):
        unsent = way["unsent_late_packets"] + way["unsent_ring_full_packets"]
        assert way["offered_packets"] == way["intended_packets"] - unsent > 0
        assert way["attempted_packets"] == way["offered_packets"] + way["refused_packets"]
        assert 0 < way["forwarded_packets"] <= way["offered_packets"]
        odd = ("duplicate_packets", "reordered_packets", "corrupt_packets")
        assert [way[key] for key in odd] == [0, 0, 0]
    assert trial["evidence"]["foreign_packets"] == 0
    pps = trial["load"]["pps_per_direction"]
    if pps is None:
        assert all(way["unsent_late_packets"] == way["unsent_ring_full_packets"] == 0 for way in counts(trial))
    else:
        wanted = int(pps * trial["intended_duration_ns"] / 1e9)
        assert all(abs(way["intended_packets"] - wanted) <= 1 for way in counts(trial))


def _control_groups() -> set[str]:
    """Return the control groups of hosted VNFs, but for those whose harness has its folder in /tmp still."""
    found = {path for path in Path("/sys/fs/cgroup").glob(f"**/{ROOT_PREFIX}*") if path.is_dir()}
    owners = {path: "-".join(path.name.split("-")[:2]) for path in found}
    return {str(path) for path, owner in owners.items() if not _is_a_folder(owner)}


def _is_a_folder(name: str) -> bool:
    return Path("/tmp", name).exists() or any(Path("/tmp").glob(f"*/{name}"))


def _is_for_all(path: str) -> bool:
    """Hugepage files, interfaces, named network namespaces, DPDK's run-time files: of /tmp others have their share.

    Of DPDK's files another program beside has some, too: ours begin with the name of a harness's folder.
    """
    if path.startswith("/run/dpdk/"):
        name = path.removeprefix("/run/dpdk/")
        return name.startswith(ROOT_PREFIX) and not _is_a_folder("-".join(name.split("-")[:2]))
    return path.startswith(("/dev/hugepages/", "/sys/class/net/", "/run/netns/"))
