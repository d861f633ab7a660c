# SPDX-License-Identifier: BSD-3-Clause
"""The CPUs of a machine that is not here: an XML file of hwloc's lstopo, or hwloc's synthetic description of one."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from planebench.host.facts import HostFacts
from planebench.host.programs import find_program, run_tool
from planebench.model.cpus import NO_NODE, CoreKind, core_kinds
from planebench.model.errors import NotInstalledError, UsageError

PROGRAMS = ("lstopo-no-graphics", "lstopo")
REMEDY = "apt-get install hwloc-nox"
CORE, PU, PACKAGE = ("Core",), ("PU",), ("Package", "Socket")
"""Types of objects as hwloc 2 and hwloc 1 write them."""
CORE_SPEEDS = ("LinuxCapacity", "FrequencyMaxMHz")
"""What tells how fast a kind of core is, the better one first."""


def with_topology(facts: HostFacts, text: str) -> HostFacts:
    """Return the facts with the CPUs of another machine, all allowed and none isolated, and without NICs.

    ``text`` is the path of an XML file, made there by ``lstopo --of xml FILE.xml``, or a synthetic description as
    ``pack:2 core:8 pu:2``, or the path of a file with one; where that names no NUMA nodes (``[numa]``), each package is
    one. Raises UsageError for a text that is neither, NotInstalledError where a description needs hwloc.
    """
    content = text
    try:
        # Path.is_file() raises for a description that is longer than a name may be.
        if Path(text).suffix.lower() == ".xml" or os.path.isfile(text):  # noqa: PTH113
            content = Path(text).read_text(encoding="utf-8-sig").strip()
            if content.startswith("<") or not content:
                return _with_xml(facts, content, packages_are_nodes=False)
    except (OSError, ET.ParseError, ValueError) as error:  # UnicodeDecodeError is a ValueError
        raise UsageError(
            f'--topology {text}: cannot be read: {error}; give a file of "lstopo --of xml FILE.xml"'
        ) from None
    named = any(word in content.lower() for word in ("numa", "node"))
    program = next(filter(None, map(find_program, PROGRAMS)), None)
    if program is None:
        raise NotInstalledError(f"--topology {content}: a synthetic description needs hwloc; to install: {REMEDY}")
    done = run_tool([program, "--if", "synthetic", "--input", content, "--of", "xml", "-"])
    if not done.ok or "<topology" not in done.stdout:
        why = done.lines[0] if done.lines else "no output"
        raise UsageError(
            f'--topology "{content}" is neither a file nor a valid description: {why}. Valid: '
            'FILE.xml, or a description as "pack:2 core:8 pu:2"'
        )
    return _with_xml(facts, done.stdout, packages_are_nodes=not named)


def _with_xml(facts: HostFacts, xml: str, *, packages_are_nodes: bool) -> HostFacts:
    """Return the facts with the CPUs in an XML of hwloc. Raises ParseError, ValueError."""
    root = ET.fromstring(xml)
    cpus = tuple(sorted(_cpus(root)))
    if not cpus:
        raise ValueError("it has no PU objects")
    # The nodes of a CPU are those with its memory, also if they are not in the file, and after them those that have
    # memory only: their numbers are higher.
    nodes = {}
    for pu in _of_types(root, PU):
        bits = _bits(pu.get("complete_nodeset"))
        nodes[_cpu(pu)] = (bits & -bits).bit_length() - 1  # the lowest bit; NO_NODE without any
    if packages_are_nodes:
        nodes = {cpu: int(it.get("os_index", "")) for it in _of_types(root, PACKAGE) for cpu in _cpus(it)}
    caches = [it for it in root.iter("object") if it.get("type") == "L3Cache"]
    caches += [it for it in root.iter("object") if it.get("type") == "Cache" and it.get("depth") == "3"]
    return replace(
        facts,
        hypervisor=None,
        cpus_online=cpus,
        cpus_allowed=cpus,
        isolated_cpus=(),
        nics=(),
        siblings=_groups(_of_types(root, CORE)),
        numa_node={cpu: node for cpu, node in nodes.items() if node != NO_NODE},
        l3_group=_groups(caches),
        core_kinds=_core_kinds(root, cpus),
    )


def _core_kinds(root: ET.Element, cpus: tuple[int, ...]) -> tuple[CoreKind, ...]:
    """Return the kinds of cores, by what hwloc tells of each."""
    told: dict[str, dict[int, str]] = {}
    for kind in root.iter("cpukind"):
        bits = _bits(kind.get("cpuset"))
        for info in kind.iter("info"):
            told.setdefault(info.get("name", ""), {}).update(
                (cpu, info.get("value", "")) for cpu in cpus if bits >> cpu & 1
            )
    types: dict[str, set[int]] = {}
    for cpu, name in told.get("CoreType", {}).items():
        types.setdefault(name, set()).add(cpu)
    figures = ((name, {cpu: int(value) for cpu, value in told.get(name, {}).items()}) for name in CORE_SPEEDS)
    return core_kinds(cpus, types, figures)


def _bits(text: str | None) -> int:
    """Return a bitmap of hwloc, words of 32 bits from the highest on; one that has no end is negative."""
    bits = 0
    for word in (text or "").split(","):
        bits = -1 if word == "0xf...f" else bits << 32 | int(word or "0", 16)
    return bits


def _of_types(root: ET.Element, types: tuple[str, ...]) -> Iterator[ET.Element]:
    return (it for it in root.iter("object") if it.get("type") in types)


def _cpus(item: ET.Element) -> Iterator[int]:
    """Yield the numbers that Linux has for the CPUs inside an object."""
    return map(_cpu, _of_types(item, PU))


def _cpu(item: ET.Element) -> int:
    return int(item.get("os_index", ""))


def _groups(items: Iterable[ET.Element]) -> dict[int, frozenset[int]]:
    """Return the CPUs of the same object, by CPU."""
    groups = (frozenset(_cpus(item)) for item in items)
    return {cpu: group for group in groups for cpu in group}
