# SPDX-License-Identifier: BSD-3-Clause
"""scripts/hwloc_trees.py: trees of our own, one of each kind, are read alike both ways; archives are not trusted."""

from __future__ import annotations

import io
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from planebench.host.hwloc import PROGRAMS
from planebench.host.programs import find_program
from tests.sysfs_tree import Tree, server, set_speeds

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

import hwloc_trees

needs_hwloc = pytest.mark.skipif(not any(map(find_program, PROGRAMS)), reason="hwloc is not installed")


def hybrid(root: Path) -> Tree:
    tree = server(root, 1, 8)
    set_speeds(tree, "cpufreq/cpuinfo_max_freq", (4, 5000000), (4, 3900000))
    return tree


def big_little(root: Path) -> Tree:
    tree = server(root, 1, 8, l3_cores=4)
    set_speeds(tree, "cpu_capacity", (2, 718), (2, 1024), (2, 731), (2, 1017))
    return tree


def memory_only(root: Path) -> Tree:
    tree = server(root, 2, 4, 2)
    tree.set("sys/devices/system/node/node2/cpulist", "")
    return tree


def zero_at_the_end(root: Path) -> Tree:
    tree = server(root, 2, 4)
    tree.set("sys/devices/system/node/node1/cpulist", "4-7\n\0")
    return tree


KINDS: dict[str, Callable[[Path], Tree]] = {
    "epyc": lambda root: server(root, 2, 8, 2, l3_cores=4),
    "hybrid": hybrid,
    "big-little": big_little,
    "memory-only": memory_only,
    "zero": zero_at_the_end,
}


def checkout(folder: Path, trees: dict[str, Callable[[Path], Tree]]) -> Path:
    """Return a folder as a checkout of hwloc has it: an archive of each tree, with bit maps as Linux has them."""
    for name, make in trees.items():
        tree = make(folder / "made" / name)
        for listing in [*tree.root.rglob("*_list"), *tree.root.rglob("cpulist")]:
            bits = sum(1 << cpu for cpu in hwloc_trees.parse_cpus(listing.read_text()))
            other = {"cpulist": "cpumap", "shared_cpu_list": "shared_cpu_map"}
            listing.with_name(other.get(listing.name, listing.name.removesuffix("_list"))).write_text(f"{bits:x}\n")
        for cpu in (tree.root / "sys/devices/system/cpu").glob("cpu[0-9]*"):
            core = hwloc_trees.parse_cpus((cpu / "topology/thread_siblings_list").read_text())[0]
            for file, value in {"topology/physical_package_id": 0, "topology/core_id": core}.items():
                (cpu / file).write_text(f"{value}\n")
            for file, text in {"type": "Unified", "size": "8192K", "coherency_line_size": "64"}.items():
                (cpu / "cache/index3" / file).write_text(f"{text}\n")
        for node in (tree.root / "sys/devices/system/node").glob("node*"):
            (node / "meminfo").write_text(f"Node {node.name[4:]} MemTotal: 1048576 kB\n")
        archive = folder / f"tests/hwloc/linux/{name}.tar.bz2"
        archive.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(archive, "w:bz2") as file:
            file.add(tree.root, name)
    return folder


def run(monkeypatch: pytest.MonkeyPatch, folder: Path) -> int:
    monkeypatch.setattr(sys, "argv", ["hwloc_trees.py", str(folder)])
    return hwloc_trees.main()


@needs_hwloc
def test_both_ways_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(monkeypatch, checkout(tmp_path, KINDS))
    assert (code, capsys.readouterr().out) == (0, f"{len(KINDS)} machines: {len(KINDS)} agree\n")


@needs_hwloc
def test_a_difference_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def favoured(root: Path) -> Tree:
        tree = server(root, 1, 4)
        set_speeds(tree, "acpi_cppc/highest_perf", (2, 64), (2, 39))
        return tree

    assert run(monkeypatch, checkout(tmp_path, {"odd": favoured})) == 1
    out = capsys.readouterr().out
    assert "linux/odd.tar.bz2: no reason is known" in out and "kind of CPUs 2-3, as of 2: 1 against 0" in out
    monkeypatch.setitem(hwloc_trees.REASONS, "linux/odd.tar.bz2", "hwloc does not read it")
    assert run(monkeypatch, tmp_path) == 0
    assert "linux/odd.tar.bz2: hwloc does not read it" in capsys.readouterr().out


def test_nothing_is_unpacked_elsewhere(tmp_path: Path) -> None:
    members = [
        ("../out", b"x", ""),
        ("/tmp/out", b"x", ""),
        ("up", b"", "../.."),
        ("in", b"", "sys"),
        ("in/file", b"x", ""),
    ]
    members += [("top/link", b"", "sys/file"), ("top/sys/file", b"1", ""), ("top/link", b"x", "")]
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for name, data, target in members:
            member = tarfile.TarInfo(name)
            member.size, member.type, member.linkname = (
                len(data),
                tarfile.SYMTYPE if target else tarfile.REGTYPE,
                target,
            )
            archive.addfile(member, io.BytesIO(data))
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    hwloc_trees.unpack(tmp_path / "a.tar", folder)
    there = {str(path.relative_to(folder)) for path in folder.rglob("*")}
    assert there == {"in", "top", "top/link", "top/sys", "top/sys/file"}
    assert (folder / "top/link").read_text() == "1" and sorted(path.name for path in tmp_path.rglob("out")) == []
