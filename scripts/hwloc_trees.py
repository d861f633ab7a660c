#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Read the machines of hwloc's own test set both ways, and say where the two ways do not agree.

``hwloc_trees.py CHECKOUT`` takes a checkout of hwloc (https://github.com/open-mpi/hwloc), of which nothing is kept:

- a tree of /proc and /sys: as this machine would be read, against the XML that lstopo makes of it, and against the XML
  that hwloc ships for it;
- a dump of CPUID: the XML that lstopo makes of it against the one that hwloc ships for it;
- an XML alone: against what lstopo makes of it in the format of hwloc 1.

Exit code 1 where they disagree without a reason in REASONS. The archives are data of others: only plain files, folders
and links that stay inside are unpacked.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from planebench.host.facts import HostFacts, collect
from planebench.host.hwloc import PROGRAMS, REMEDY, with_topology
from planebench.model.cpus import node_of, parse_cpus, range_text

MAX_BYTES = 8 << 20
"""The largest file of an archive has 1.3 MB."""
BULLDOZER = "the halves of a Bulldozer module, which share an FPU: threads of a core to Linux, two cores to hwloc"
HWLOC_3 = "the XML is that of hwloc 3, which knows these CPUs better than an older lstopo here"
REASONS = {
    "linux/40intel64-4n10c+pci-conflicts.tar.bz2": "damaged on purpose: CPUs with the same L3 cache contradict each "
    "other. planebench believes each CPU, hwloc drops the cache",
    "linux/64amd64-4s2n4ca2co.tar.bz2": BULLDOZER,
    "linux/64fake-4n2s2ca2c2t.tar.bz2": "made by hand: lists of an L3 cache contradict the bit maps, which hwloc reads",
    "linux/8ia64-2s2c2t.tar.bz2": "an L3 cache of no CPU: unknown to planebench, one of each core to hwloc",
    "linux/fakeheterocpunuma.tar.bz2": "made by hand: nodes overlap. planebench takes the lowest, hwloc drops them, "
    "but for its own test, whose XML agrees",
    "x86/AMD-1Ah-Zen5StrixPoint-RyzenAI9HX370.tar.bz2": HWLOC_3,
    "x86/Hygon-Dhyana-32cores.tar.bz2": HWLOC_3,
    "x86/Intel-ArrowLake-CoreUltra5-225U.tar.bz2": HWLOC_3,
    "x86+linux/5intel64-hybrid-lakefield.tar.bz2": "hwloc does not read acpi_cppc/highest_perf (28 and 43), and the "
    "frequencies differ by 7 %; by CPUID it agrees",
    "x86+linux/64amd64-4p2n4ca2co.tar.bz2": BULLDOZER,
}
"""Why the two ways disagree, by machine."""
OLD_FORMAT = "the format of hwloc 1"
"""Has no kinds of cores."""
Way = tuple[str, HostFacts]
"""How a machine was read, and what came of it."""


def main() -> int:
    """Compare all machines of a checkout."""
    if len(sys.argv) != 2 or not (tests := Path(sys.argv[1]) / "tests/hwloc").is_dir():
        print("usage: hwloc_trees.py CHECKOUT, a folder with tests/hwloc", file=sys.stderr)
        return 2
    lstopo = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if lstopo is None:
        print(f"hwloc_trees: lstopo is not installed: {REMEDY}", file=sys.stderr)
        return 2
    found = Counter[str]()
    for path in sorted((*tests.rglob("*.tar.*"), *tests.rglob("*.xml"))):
        with tempfile.TemporaryDirectory() as folder:
            ways = list((xml_ways if path.suffix == ".xml" else archive_ways)(lstopo, path, Path(folder)))
        if len(ways) < 2:
            continue
        name = f"{path.parent.name}/{path.name}"
        (first, facts), *others = ways
        differences = [
            f"{first} against {way}: {text}"
            for way, other in others
            for text in unlike(facts, other, kinds=way != OLD_FORMAT)
        ]
        verdict = "agree"
        if differences:
            verdict = "disagree with a reason" if name in REASONS else "DISAGREE"
            print(f"{name}: {REASONS.get(name, 'no reason is known')}")
            print("".join(f"  {text}\n" for text in differences), end="")
        found[verdict] += 1
    print(f"{found.total()} machines: {', '.join(f'{number} {verdict}' for verdict, number in sorted(found.items()))}")
    return 1 if found["DISAGREE"] else 0


def archive_ways(lstopo: str, archive: Path, folder: Path) -> Iterator[Way]:
    """Read a tree of /proc and /sys, or a dump of CPUID, in every way that there is."""
    unpack(archive, folder)
    top = next(folder.iterdir())
    root, cpuid = top / "fsroot" if (top / "fsroot").is_dir() else top, top / "cpuid"
    of_linux = (root / "sys/devices/system/cpu").is_dir()
    if of_linux:
        complete(root / "sys/devices/system")
        yield "the tree", read_tree(root)
        yield "lstopo", made(lstopo, folder, {"HWLOC_FSROOT": str(root), "HWLOC_COMPONENTS": "linux,stop"})
    if not of_linux or cpuid.is_dir():
        environment = {"HWLOC_CPUID_PATH": str(cpuid if cpuid.is_dir() else top), "HWLOC_THISSYSTEM": "0"}
        components = {"HWLOC_FSROOT": str(root), "HWLOC_COMPONENTS": "x86,linux,stop" if of_linux else "x86,stop"}
        yield "lstopo by CPUID", made(lstopo, folder, environment | components)
    for test in sorted(archive.parent.glob("*.test")):
        told = dict(line.split(":", 1) for line in test.read_text().splitlines() if ":" in line and line[0] != "#")
        target = told.get("target", "").strip()
        if told.get("source", "").strip() == archive.name and target.endswith(".xml"):
            yield f"{target} of hwloc", with_topology(HostFacts(), str(archive.parent / target))


def xml_ways(lstopo: str, file: Path, folder: Path) -> Iterator[Way]:
    """Read an XML, and what lstopo makes of it in the format of hwloc 1."""
    yield "the XML", with_topology(HostFacts(), str(file))
    # hwloc 2 refuses the number of version 3, and takes its contents.
    copy = folder / "in.xml"
    copy.write_text(file.read_text(encoding="utf-8").replace('<topology version="3.0">', '<topology version="2.0">'))
    yield OLD_FORMAT, made(lstopo, folder, {}, "--input", str(copy), "--export-xml-flags", "v1")


def made(lstopo: str, folder: Path, environment: dict[str, str], *options: str) -> HostFacts:
    """Read the XML that lstopo makes."""
    file = folder / "out.xml"
    file.unlink(missing_ok=True)
    subprocess.run(
        [lstopo, *options, str(file)],
        check=True,
        timeout=120,
        env={**os.environ, "HWLOC_HIDE_ERRORS": "2", **environment},
        stderr=subprocess.DEVNULL,
    )
    return with_topology(HostFacts(), str(file))


def read_tree(root: Path) -> HostFacts:
    """Read the files of a machine as this machine is read."""
    online = frozenset(parse_cpus((root / "sys/devices/system/cpu/online").read_text()))
    return collect(root, online, lambda cpus: cpus)


def complete(system: Path) -> None:
    """Add the files that newer kernels have beside those of the oldest trees: lists of CPUs beside bit maps."""
    for name in ("thread_siblings", "cpumap", "shared_cpu_map"):
        for file in system.glob(f"*/*/**/{name}" if name != "cpumap" else "node/*/cpumap"):
            beside = file.with_name(
                {"cpumap": "cpulist", "shared_cpu_map": "shared_cpu_list"}.get(name, f"{name}_list")
            )
            if not beside.exists():
                bits = int("".join(word.zfill(8) for word in file.read_text().strip().split(",")), 16)
                beside.write_text(range_text(cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1))
    if not (system / "cpu/online").exists():
        folders = [folder for folder in (system / "cpu").glob("cpu[0-9]*") if folder.is_dir()]
        on = [it for it in folders if not (it / "online").exists() or (it / "online").read_text().strip() != "0"]
        (system / "cpu/online").write_text(range_text(int(folder.name.removeprefix("cpu")) for folder in on))


def unlike(a: HostFacts, b: HostFacts, *, kinds: bool) -> Iterator[str]:
    """Yield what two readings tell differently of the CPUs that both have: an XML lacks those of
    other control groups."""
    cpus = sorted(set(a.cpus_online) & set(b.cpus_online))
    if not set(b.cpus_online) <= set(a.cpus_online) or not cpus:
        yield f"CPUs {range_text(a.cpus_online)} against {range_text(b.cpus_online)}"
    for title, *both in (
        ("core", *(groups(it.siblings, cpus) for it in (a, b))),
        ("node", *({cpu: node_of(it.numa_node, cpu) for cpu in cpus} for it in (a, b))),
        ("L3", *(groups(it.l3_group, cpus) for it in (a, b))),
        ("kind", *({cpu: kind_of(it, cpu) if kinds else 0 for cpu in cpus} for it in (a, b))),
    ):
        odd = [cpu for cpu in cpus if both[0][cpu] != both[1][cpu]]
        if odd:
            yield f"{title} of CPUs {range_text(odd)}, as of {odd[0]}: {both[0][odd[0]]} against {both[1][odd[0]]}"


def groups(found: object, cpus: Sequence[int]) -> dict[int, str]:
    """Return the group of each CPU, without the CPUs that only one reading has; itself where there is none."""
    assert isinstance(found, dict)
    return {cpu: range_text(found.get(cpu, frozenset()) & set(cpus) | {cpu}) for cpu in cpus}


def kind_of(facts: HostFacts, cpu: int) -> int:
    """Return the number of the kind of a core, the fastest is 0."""
    return next((number for number, kind in enumerate(facts.core_kinds) if cpu in kind.cpus), 0)


def unpack(archive: Path, folder: Path) -> None:
    """Write the plain files of an archive, and the links that stay inside ``folder``."""
    folder = folder.resolve()
    with tarfile.open(archive) as members:
        for member in members:
            path = Path(os.path.normpath(folder / member.name))
            leads_to = Path(os.path.normpath(path.parent / member.linkname))
            if folder not in path.parents or any(it.is_symlink() for it in (path, *path.parents)):
                continue
            if member.isreg() and member.size <= MAX_BYTES and (file := members.extractfile(member)) is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(file.read())
            elif member.issym() and folder in leads_to.parents:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.symlink_to(member.linkname)


if __name__ == "__main__":
    sys.exit(main())
