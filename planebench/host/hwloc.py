# SPDX-License-Identifier: BSD-3-Clause
"""The CPUs of a machine that is not here: an XML file of hwloc's lstopo, or hwloc's synthetic description of one."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from planebench.host.facts import HostFacts
from planebench.host.programs import find_program, run_tool
from planebench.model.errors import NotInstalledError, UsageError

PROGRAMS = ("lstopo-no-graphics", "lstopo")
REMEDY = "apt-get install hwloc-nox"
CORE, PU = ("Core",), ("PU",)
PACKAGE, NODE = ("Package", "Socket"), ("NUMANode", "Node")
"""Types of objects as hwloc 2 and hwloc 1 write them."""


def with_topology(facts: HostFacts, text: str) -> HostFacts:
    """Return the facts with the CPUs of another machine, all allowed and none isolated, and without NICs.

    ``text`` is the path of an XML file, made there by ``lstopo --of xml FILE.xml``, or a synthetic description as
    ``pack:2 core:8 pu:2``; where that names no NUMA nodes (``[numa]``), each package is one. Raises UsageError for a
    text that is neither, NotInstalledError where a description needs hwloc.
    """
    path = Path(text)
    if path.suffix == ".xml":
        try:
            return _with_xml(facts, path.read_text(encoding="utf-8"), packages_are_nodes=False)
        except (OSError, UnicodeDecodeError, ET.ParseError, ValueError) as error:
            raise UsageError(
                f'--topology {text}: cannot be read: {error}; give a file of "lstopo --of xml FILE.xml"'
            ) from None
    named = any(word in text.lower() for word in ("numa", "node"))
    return _with_xml(facts, _synthetic_xml(text), packages_are_nodes=not named)


def _synthetic_xml(text: str) -> str:
    """Return the XML of a synthetic description. Raises UsageError, NotInstalledError."""
    program = next(filter(None, map(find_program, PROGRAMS)), None)
    if program is None:
        raise NotInstalledError(f"--topology {text}: a synthetic description needs hwloc; to install: {REMEDY}")
    done = run_tool([program, "--if", "synthetic", "--input", text, "--of", "xml", "-"])
    if not done.ok or "<topology" not in done.stdout:
        why = done.lines[0] if done.lines else "no output"
        raise UsageError(
            f'--topology "{text}" is not valid: {why}. Valid: FILE.xml, or a description as "pack:2 core:8 pu:2"'
        )
    return done.stdout


def _with_xml(facts: HostFacts, xml: str, *, packages_are_nodes: bool) -> HostFacts:
    """Return the facts with the CPUs in an XML of hwloc. Raises ParseError, ValueError."""
    root = ET.fromstring(xml)
    parents = {child: parent for parent in root.iter() for child in parent}
    cpus = tuple(sorted(_cpus(root)))
    if not cpus:
        raise ValueError("it has no PU objects")
    nodes: dict[int, int] = {}
    for item in _of_types(root, PACKAGE if packages_are_nodes else NODE):
        # hwloc 2 has a node beside what it holds the memory for, hwloc 1 around it.
        inside = list(_cpus(item)) or list(_cpus(parents[item]))
        nodes |= dict.fromkeys(inside, int(item.get("os_index") or item.get("logical_index") or 0))
    return replace(
        facts,
        hypervisor=None,
        cpus_online=cpus,
        cpus_allowed=cpus,
        isolated_cpus=(),
        nics=(),
        siblings=_groups(_of_types(root, CORE)),
        numa_node={cpu: nodes.get(cpu, 0) for cpu in cpus},
        l3_group=_groups(it for it in root.iter("object") if _is_l3(it)),
    )


def _of_types(root: ET.Element, types: tuple[str, ...]) -> Iterator[ET.Element]:
    return (it for it in root.iter("object") if it.get("type") in types)


def _is_l3(item: ET.Element) -> bool:
    return item.get("type") == "L3Cache" or (item.get("type") == "Cache" and item.get("depth") == "3")


def _cpus(item: ET.Element) -> Iterator[int]:
    """Yield the numbers that Linux has for the CPUs inside an object."""
    return (int(it.get("os_index", "")) for it in _of_types(item, PU))


def _groups(items: Iterator[ET.Element]) -> dict[int, frozenset[int]]:
    """Return the CPUs of the same object, by CPU."""
    groups = (frozenset(_cpus(item)) for item in items)
    return {cpu: group for group in groups for cpu in group}
