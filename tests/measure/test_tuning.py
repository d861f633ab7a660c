# SPDX-License-Identifier: BSD-3-Clause
"""``doctor --fix`` changes what it says and ``--undo`` restores it, whatever happens in between."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from planebench.cli.doctor import doctor
from planebench.host.journal import ValueOutcome
from planebench.measure import tuning
from planebench.measure.tuning import apply, commands, plan, undo
from planebench.model.errors import StoreError, UsageError
from tests.sysfs_tree import Killed, kill_after

AUTOGROUP = "proc/sys/kernel/sched_autogroup_enabled"
HUGEPAGES = "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
CPU = "sys/devices/system/cpu"
DAMON = "sys/module/damon_reclaim/parameters/enabled"
BOOT = "proc/sys/kernel/random/boot_id"

UNTUNED = {
    AUTOGROUP: "1",
    HUGEPAGES: "16",
    "proc/meminfo": "MemTotal: 33554432 kB\nMemAvailable: 25165824 kB",
    BOOT: "this-boot",
    f"{CPU}/cpu0/cpufreq/scaling_governor": "powersave",
    f"{CPU}/cpu0/cpufreq/scaling_available_governors": "performance powersave",
    f"{CPU}/cpu10/cpufreq/scaling_governor": "powersave",
    f"{CPU}/intel_pstate/no_turbo": "0",
    f"{CPU}/cpu0/cpuidle/state0/disable": "0",
    f"{CPU}/cpu0/cpuidle/state0/latency": "0",
    f"{CPU}/cpu0/cpuidle/state1/disable": "0",
    f"{CPU}/cpu0/cpuidle/state1/latency": "2",
    f"{CPU}/cpu0/cpuidle/state2/disable": "0",
    f"{CPU}/cpu0/cpuidle/state2/latency": "133",
    f"{CPU}/cpu10/cpuidle/state2/disable": "0",
    f"{CPU}/cpu10/cpuidle/state2/latency": "133",
    DAMON: "Y",
}
TUNED = UNTUNED | {
    AUTOGROUP: "0",
    HUGEPAGES: "5120",
    f"{CPU}/cpu0/cpufreq/scaling_governor": "performance",
    f"{CPU}/cpu10/cpufreq/scaling_governor": "performance",
    f"{CPU}/intel_pstate/no_turbo": "1",
    f"{CPU}/cpu0/cpuidle/state2/disable": "1",
    f"{CPU}/cpu10/cpuidle/state2/disable": "1",
    DAMON: "N",
}
CHANGES = 8


class Machine:
    """A /proc and /sys of files, and a state file beside them."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self.state = folder / "state" / "undo.json"
        for path, value in UNTUNED.items():
            self.set(path, value)

    def set(self, path: str, value: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{value}\n")

    def remove(self, path: str) -> None:
        (self.root / path).unlink()

    def now(self) -> dict[str, str]:
        files = (file for file in self.root.rglob("*") if file.is_file())
        return {str(file.relative_to(self.root)): file.read_text().strip() for file in files}

    def fix(self) -> tuple[ValueOutcome, ...]:
        return apply(self.state, self.root)

    def undo(self) -> tuple[ValueOutcome, ...]:
        return undo(self.state, self.root)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def write_but(monkeypatch: pytest.MonkeyPatch, instead: Callable[[Path], bool | None]) -> None:
    """Have ``instead`` see every file that would be written in /proc or /sys; True: do not write it."""
    real = Path.write_text

    def write_text(self: Path, text: str, encoding: str | None = None) -> int:
        return 0 if instead(self) else real(self, text, encoding=encoding)

    monkeypatch.setattr(Path, "write_text", write_text)


def test_fix_and_undo(machine: Machine) -> None:
    changed = machine.fix()
    assert machine.now() == TUNED
    assert [it.kind for it in changed] == ["changed"] * CHANGES
    assert changed[0].text == "kernel.sched_autogroup_enabled: 1 -> 0"
    assert f"/{HUGEPAGES}: 16 -> 5120" in [it.text for it in changed]
    back = machine.undo()
    assert machine.now() == UNTUNED
    assert [it.path for it in back] == [it.path for it in reversed(changed)]
    assert not machine.state.exists()
    assert machine.undo() == ()
    assert not machine.state.exists()


def test_fix_twice_keeps_the_first_values(machine: Machine) -> None:
    machine.fix()
    before = machine.state.read_bytes()
    assert machine.fix() == ()
    assert machine.state.read_bytes() == before
    machine.set(AUTOGROUP, "1")
    machine.set(DAMON, "maybe")
    assert [it.path for it in machine.fix()] == [f"/{AUTOGROUP}", f"/{DAMON}"]
    machine.undo()
    assert machine.now() == UNTUNED


def test_missing_files_are_no_matter(machine: Machine) -> None:
    for path in UNTUNED.keys() - {AUTOGROUP}:
        machine.remove(path)
    assert [it.text for it in machine.fix()] == ["kernel.sched_autogroup_enabled: 1 -> 0"]


def test_a_file_that_went_away_is_told(machine: Machine) -> None:
    machine.fix()
    machine.remove(DAMON)
    left = [it for it in machine.undo() if it.kind == "left"]
    assert [(it.path, it.note) for it in left] == [(f"/{DAMON}", "it no longer exists")]
    assert not machine.state.exists()


@pytest.mark.parametrize("survivors", range(CHANGES + 1))
def test_killed_while_writing(machine: Machine, monkeypatch: pytest.MonkeyPatch, survivors: int) -> None:
    """Killed after so many writes, the first of them right after the old values were saved."""
    with monkeypatch.context() as patch:
        write_but(patch, kill_after(survivors))
        if survivors < CHANGES:
            with pytest.raises(Killed):
                machine.fix()
        else:
            machine.fix()
    changed = {path for path, value in machine.now().items() if value != UNTUNED[path]}
    assert len(changed) == survivors
    assert len(json.loads(machine.state.read_bytes())["changes"]) == CHANGES
    assert len(machine.undo()) == survivors
    assert machine.now() == UNTUNED
    assert not machine.state.exists()


def test_killed_while_undoing(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.fix()
    with monkeypatch.context() as patch:
        write_but(patch, kill_after(3))
        with pytest.raises(Killed):
            machine.undo()
    assert len(machine.undo()) == CHANGES - 3
    assert machine.now() == UNTUNED


def test_nothing_is_written_if_the_old_values_cannot_be_kept(machine: Machine) -> None:
    machine.state.parent.write_text("a file where the folder should be")
    with pytest.raises(StoreError, match="PLANEBENCH_STATE"):
        machine.fix()
    assert machine.now() == UNTUNED


def test_read_only_files_are_told_and_do_not_stop_the_rest(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(file: Path) -> None:
        if "cpuidle" in str(file):
            raise PermissionError(1, "Operation not permitted")

    with monkeypatch.context() as patch:
        write_but(patch, refuse)
        outcomes = machine.fix()
    failed = [it for it in outcomes if it.kind == "failed"]
    assert [it.path for it in failed] == [f"/{CPU}/cpu{cpu}/cpuidle/state2/disable" for cpu in (0, 10)]
    assert failed[0].text.endswith("state2/disable: 0 -> 1 failed: Operation not permitted")
    assert len(outcomes) == CHANGES
    assert len(machine.undo()) == CHANGES - 2
    assert machine.now() == UNTUNED


def test_what_cannot_be_undone_is_kept_for_another_try(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.fix()

    def refuse(file: Path) -> None:
        if file.name == "nr_hugepages":
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        write_but(patch, refuse)
        assert [it.kind for it in machine.undo()].count("failed") == 1
    assert machine.now() == UNTUNED | {HUGEPAGES: "5120"}
    assert [(it.old, it.new) for it in machine.undo()] == [("5120", "16")]
    assert not machine.state.exists()


def test_what_the_kernel_ignores_is_a_failure(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        write_but(patch, lambda file: file.name == "no_turbo")
        failed = [it for it in machine.fix() if it.kind == "failed"]
    assert [it.note for it in failed] == ["it reads 0 after writing"]


def test_what_somebody_else_changed_is_left_alone(machine: Machine) -> None:
    machine.fix()
    machine.set(HUGEPAGES, "512")
    outcomes = machine.undo()
    assert machine.now() == UNTUNED | {HUGEPAGES: "512"}
    (left,) = [it for it in outcomes if it.kind == "left"]
    assert left.path == f"/{HUGEPAGES}" and "512" in left.note and "16" in left.note
    assert machine.undo() == ()


def test_what_somebody_else_put_back_needs_no_word(machine: Machine) -> None:
    machine.fix()
    machine.set(AUTOGROUP, "1")
    assert f"/{AUTOGROUP}" not in [it.path for it in machine.undo()]
    assert machine.now() == UNTUNED


def test_fewer_hugepages_than_asked_for_are_undone_too(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel gives what it finds in one piece."""

    def give_700(file: Path) -> bool:
        if file.name == "nr_hugepages":
            file.write_bytes(b"700\n")
        return file.name == "nr_hugepages"

    with monkeypatch.context() as patch:
        write_but(patch, give_700)
        (partial,) = [it for it in machine.fix() if it.note]
    assert partial.text == f"/{HUGEPAGES}: 16 -> 700 (5120 was requested)"
    machine.undo()
    assert machine.now() == UNTUNED


@pytest.mark.parametrize(
    ("pages", "available_kib", "wanted"),
    [
        ("0", 4 * 2**20, "1024"),
        ("0", 3 * 2**20, "512"),
        ("0", 3 * 2**20 - 1, None),
        ("512", 3 * 2**20, "1024"),
        ("512", 2 * 2**20, None),
        ("4096", 8 * 2**20, None),
        ("0", 9 * 2**20, "2048"),
        ("0", 64 * 2**20, "5120"),
        ("1024", 16 * 2**20, "4608"),
        ("5120", 16 * 2**20, None),
        ("4608", 16 * 2**20, "5120"),
        ("6000", 64 * 2**20, None),
    ],
)
def test_hugepages_of_ten_switches_or_of_half_the_memory_and_never_fewer(
    machine: Machine, pages: str, available_kib: int, wanted: str | None
) -> None:
    machine.set(HUGEPAGES, pages)
    machine.set("proc/meminfo", f"MemAvailable:    {available_kib} kB")
    assert {it.path: it.new for it in plan(machine.root)}.get(f"/{HUGEPAGES}") == wanted


def test_a_governor_that_is_not_there_is_not_asked_for(machine: Machine) -> None:
    machine.set(f"{CPU}/cpu0/cpufreq/scaling_available_governors", "schedutil powersave")
    governors = [it.path for it in plan(machine.root) if it.new == "performance"]
    assert governors == [f"/{CPU}/cpu10/cpufreq/scaling_governor"]


def test_a_reboot_makes_the_saved_values_void(machine: Machine) -> None:
    machine.fix()
    machine.set(BOOT, "next-boot")
    assert machine.undo() == ()
    assert not machine.state.exists()
    assert machine.now() == TUNED | {BOOT: "next-boot"}


def test_values_of_another_boot_are_not_taken_for_old_ones(machine: Machine) -> None:
    machine.fix()
    machine.set(BOOT, "next-boot")
    machine.set(HUGEPAGES, "64")
    machine.fix()
    machine.undo()
    assert machine.now() == TUNED | {BOOT: "next-boot", HUGEPAGES: "64"}


@pytest.mark.parametrize("path", ["/etc/passwd", f"/{CPU}/cpu0/cpufreq/../../../etc", f"/{CPU}/cpu0/x/cpufreq/boost"])
def test_a_state_file_cannot_make_root_write_elsewhere(machine: Machine, path: str) -> None:
    machine.set("etc/passwd", "root")
    machine.fix()
    document = json.loads(machine.state.read_bytes())
    document["changes"] = [{"path": path, "old": "evil", "new": "root"}]
    machine.state.write_text(json.dumps(document))
    assert [it.kind for it in machine.undo()] == ["left"]
    assert machine.now() == TUNED | {"etc/passwd": "root"}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 2}', '{"version": 1, "boot_id": "this-boot"}'])
def test_a_state_file_that_cannot_be_read_stops_both(machine: Machine, text: str) -> None:
    machine.state.parent.mkdir()
    machine.state.write_text(text)
    for action in (machine.fix, machine.undo):
        with pytest.raises(StoreError, match=str(machine.state)):
            action()
    assert machine.now() == UNTUNED
    assert machine.state.read_text() == text


def test_commands_are_one_for_all_cpus_and_planning_reads_only(machine: Machine) -> None:
    told = commands(plan(machine.root))
    assert f"echo 0 | sudo tee /{AUTOGROUP}" in told
    assert f"echo performance | sudo tee /{CPU}/cpu[0-9]*/cpufreq/scaling_governor" in told
    assert len(told) == CHANGES - 2
    assert machine.now() == UNTUNED
    assert not machine.state.parent.exists()


@pytest.fixture
def command(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """The command works on the machine of files, and is run by root."""
    monkeypatch.setattr(tuning, "plan", lambda root=machine.root: plan(root))
    monkeypatch.setattr(tuning, "apply", lambda state, root=machine.root: apply(state, root))
    monkeypatch.setattr(tuning, "undo", lambda state, root=machine.root: undo(state, root))
    monkeypatch.setenv("PLANEBENCH_STATE", str(machine.state))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return machine


def test_the_command_prints_each_change(command: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor(json=False, fix=True) == 0
    assert "kernel.sched_autogroup_enabled: 1 -> 0\n" in capsys.readouterr().out
    assert doctor(json=False, undo=True) == 0
    assert "kernel.sched_autogroup_enabled: 0 -> 1\n" in capsys.readouterr().out
    assert command.now() == UNTUNED
    assert doctor(json=False, undo=True) == 0
    assert capsys.readouterr().out == "nothing to undo\n"


def test_the_command_speaks_json(
    command: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert doctor(json=True, fix=True) == 0
    changes = json.loads(capsys.readouterr().out)["changes"]
    assert len(changes) == CHANGES
    assert changes[0] == {"kind": "changed", "path": f"/{AUTOGROUP}", "old": "1", "new": "0", "note": ""}
    command.set(AUTOGROUP, "1")
    write_but(monkeypatch, lambda file: True)
    assert doctor(json=True, fix=True) == 1
    assert [it["kind"] for it in json.loads(capsys.readouterr().out)["changes"]] == ["failed"]


def test_without_root_it_names_the_commands(
    command: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert doctor(json=False, fix=True) == 1
    told = capsys.readouterr().err
    assert "sudo planebench doctor --fix" in told and f"echo 0 | sudo tee /{AUTOGROUP}" in told
    assert command.now() == UNTUNED and not command.state.exists()
    command.fix()
    assert doctor(json=False, undo=True) == 1
    assert "sudo planebench doctor --undo" in capsys.readouterr().err
    assert command.now() == TUNED


def test_fix_and_undo_together_are_refused() -> None:
    with pytest.raises(UsageError, match="one of them"):
        doctor(json=False, fix=True, undo=True)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to change a sysctl")
def test_on_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real sysctl, put back in any case; nothing else is touched."""
    file = Path("/") / AUTOGROUP
    if not file.exists():
        pytest.skip("this kernel has no autogroups")
    monkeypatch.setattr(tuning, "TUNINGS", tuple(it for it in tuning.TUNINGS if it.code == "autogroup"))
    found, state = file.read_text(), tmp_path / "undo.json"
    try:
        file.write_text("1")
        assert [it.text for it in apply(state)] == ["kernel.sched_autogroup_enabled: 1 -> 0"]
        assert file.read_text().strip() == "0"
        assert [it.text for it in undo(state)] == ["kernel.sched_autogroup_enabled: 0 -> 1"]
        assert file.read_text().strip() == "1"
    finally:
        file.write_text(found)
