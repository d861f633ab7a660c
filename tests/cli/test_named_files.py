# SPDX-License-Identifier: BSD-3-Clause
"""A file that a plan names is its content: whatever its folder, and not when it has changed."""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path

import pytest

from planebench.measure.sim.runner import SimRunner

FAST = (
    *("--switch=sim", "--duration=0.02", "--repeat=2", "--restarts=0", "--loads=none"),
    *("--direction=unidirectional", "--frame-size=64"),
)
RULES = "permit ip any any\n"
OTHER = "deny ip 10.0.0.0/8 any\npermit ip any any\n"


def _options(folder: Path, kind: str) -> tuple[str, ...]:
    if kind == "rules":
        return ("--scenario=loopback", f"--chain=firewall:rules={folder}/my.rules")
    return (
        "--scenario=p2p",
        f"--traffic={folder}/a.yaml" if kind == "profile" else f"--traffic=pcap:path={folder}/web.pcap",
    )


def _write(folder: Path, kind: str, other: bool = False) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "my.rules").write_text(OTHER if other else RULES)
    (folder / "ips.txt").write_text("10.0.0.2\n" if other else "10.0.0.1\n")
    (folder / "a.yaml").write_text(f"dst_ips: {{file: {folder}/ips.txt}}\n")
    (folder / "web.pcap").write_bytes(_capture(1001 if other else 1000))
    return folder


def _capture(port: int) -> bytes:
    """Return a capture of two UDP frames of 60 bytes from a port."""
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 46, 0, 0, 64, 17, 0, bytes((10, 0, 0, 1)), bytes((10, 0, 0, 2)))
    frame = bytes(12) + b"\x08\x00" + ip + struct.pack(">HHHH", port, 9, 26, 0) + bytes(18)
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    return head + b"".join(struct.pack("<IIII", 1, us, len(frame), len(frame)) + frame for us in (0, 10))


@pytest.mark.parametrize(("kind", "file"), [("rules", "my.rules"), ("profile", "ips.txt"), ("capture", "web.pcap")])
def test_a_file_that_has_changed_under_its_path_is_named(planebench, own_run_folder, tmp_path, kind, file) -> None:
    for name in ("old", "new"):
        folder = _write(tmp_path / "files", kind, other=name == "new")
        assert planebench("run", *FAST, *_options(folder, kind), f"--name={name}", "--no-report").code == 0
    done = planebench("compare", "old", "new")
    assert done.code == 2
    contents = [(_write(tmp_path / "files", kind, other) / file).read_bytes() for other in (False, True)]
    old, new = (hashlib.sha256(content).hexdigest()[:8] for content in contents)
    assert f"not comparable: {file} has changed: digest {old} against {new}. Repeat with" in done.err
    assert planebench("compare", "old", "new", "--fail-below=0.5").code == 2
    forced = planebench("compare", "old", "new", "--force")
    assert f"although they differ: {file} has changed" in forced.err
    assert "throughput" in forced.out


@pytest.mark.parametrize("kind", ["rules", "profile", "capture"])
def test_equal_files_in_other_folders_are_the_same(planebench, own_run_folder, tmp_path, kind) -> None:
    for name in ("one", "two"):
        folder = _write(tmp_path / name, kind)
        assert planebench("run", *FAST, *_options(folder, kind), f"--name={name}", "--no-report").code == 0
    done = planebench("compare", "one", "two", "--json")
    assert done.code == 0
    assert [it["metric"] for it in json.loads(done.out)["comparisons"]] == ["throughput", "cycles_per_packet"]


def test_an_equal_file_of_another_name_is_the_same_in_a_chain(planebench, own_run_folder, tmp_path) -> None:
    folder = _write(tmp_path / "one", "rules")
    (folder / "copy.rules").write_text(RULES)
    for name in ("my", "copy"):
        options = ("--scenario=loopback", f"--chain=firewall:rules={folder}/{name}.rules")
        assert planebench("run", *FAST, *options, f"--name={name}", "--no-report").code == 0
    assert planebench("compare", "my", "copy").code == 0


@pytest.mark.parametrize("kind", ["rules", "profile", "capture"])
def test_a_run_goes_on_with_its_files_as_they_were(planebench, own_run_folder, tmp_path, monkeypatch, kind) -> None:
    run, trials = SimRunner.run, []

    def interrupted(self, request):
        if trials:
            raise KeyboardInterrupt
        trials.append(run(self, request))
        return trials[0]

    with monkeypatch.context() as patch:
        patch.setattr(SimRunner, "run", interrupted)
        planebench("run", *FAST, *_options(_write(tmp_path / "one", kind), kind), "--no-report")
    changed = planebench("run", *FAST, *_options(_write(tmp_path / "one", kind, True), kind), "--no-report", "--resume")
    assert changed.code == 2 and "has changed: digest" in changed.err
    same = _options(_write(tmp_path / "one", kind), kind)
    assert planebench("run", *FAST, *same, "--no-report", "--resume").code == 0
    (folder,) = own_run_folder.iterdir()
    points = [json.loads(line)["point"] for line in (folder / "trials.jsonl").read_text().splitlines()]
    assert len(points) == 2 and points[0] == points[1]


def test_a_changed_file_is_part_of_a_trend(planebench, own_run_folder, tmp_path) -> None:
    """The series goes on, and the step has the file among what changed; a folder is no change."""
    for number in range(10):
        folder = _write(tmp_path / str(number), "rules", other=number >= 5)
        options = (f"--switch=sim:capacity={10 if number < 5 else 8}M", *FAST[1:], *_options(folder, "rules"))
        assert planebench("run", *options, f"--name=n{number}", "--no-report").code == 0
        assert planebench("lab", "add", tmp_path / "lab", f"n{number}").code == 0
    (trend,) = json.loads(planebench("lab", "trend", tmp_path / "lab", "--json").out)["trends"]
    assert len(trend["samples"]) == 10
    (step,) = trend["steps"]
    (changed,) = [text for text in step["changed"] if not text.startswith("version of")]
    assert step["cause"] == "environment" and changed.startswith("my.rules: ")
