# SPDX-License-Identifier: BSD-3-Clause
"""The border between the text of a chain and the topology of a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from planebench.model.errors import UsageError
from planebench.model.hosting import HostingName
from planebench.model.option import Value
from planebench.model.scenario import Scenario, ScenarioName, scenario_named
from planebench.model.topology import Topology, Vnf
from planebench.scenarios.shapes import build
from planebench.vnfs.chain import ChainVnf, parse_chain
from planebench.vnfs.registry import VNFS

ONE_PORTED = ", ".join(name for name, kind in VNFS.items() if kind.one_port)


def build_chain(
    scenario: ScenarioName,
    count: int = 0,
    *,
    chain: str = "",
    hosting: HostingName = "process",
    sending: Mapping[str, Value] | None = None,
    echo: bool = False,
) -> Topology:
    """Return the topology of a scenario whose VNFs ``chain`` names; by default they are l2fwd.

    ``hosting`` is that of VNFs whose text names none, and of ends in VNFs; ``sending``: how VNFs collect frames.
    Reads the files of settings in the chain; where only ports and flows matter, use scenarios.build.
    Raises UsageError for a chain that does not fit.
    """
    known = scenario_named(scenario)
    functions = parse_chain(chain) if chain else ()
    if known.chained and functions and len(functions) != known.parse_count(count):
        raise UsageError(f"chain {chain} has {len(functions)} functions; the scenario needs {count}")
    if known.side_by_side and functions:
        _check_one_port(chain, functions)
    vnfs = [_vnf(function, hosting) for function in functions] or _plain(known, count, hosting)
    batching = [replace(vnf, sending=sending) if sending and vnf.kind and not vnf.sending else vnf for vnf in vnfs]
    return build(scenario, count, batching, chain=chain, echo=echo, ends=hosting)


def _plain(known: Scenario, count: int, hosting: HostingName) -> list[Vnf]:
    return [Vnf(hosting=hosting)] * (count if known.chained else known.has_vnfs)


def _check_one_port(chain: str, functions: tuple[ChainVnf, ...]) -> None:
    """Raise UsageError unless a chain is one function that can be side by side with others."""
    if len(functions) != 1:
        raise UsageError(
            f"chain {chain} has {len(functions)} functions; VNFs side by side all run the same function; give one"
        )
    function = functions[0]
    if function.own:
        raise UsageError(f"{function.text}: VNFs side by side must be functions of planed. Valid: {ONE_PORTED}")
    if function.cores() > 1:
        raise UsageError(f"{function.text}: VNFs side by side have one core each; remove cores")
    if not function.kind.one_port:
        raise UsageError(f"{function.kind.name} needs two ports; VNFs side by side have one. Valid: {ONE_PORTED}")


def _vnf(function: ChainVnf, hosting: HostingName) -> Vnf:
    settings = function.settings()
    return Vnf(
        kind=function.kind.kind,
        settings=settings,
        sending=function.sending(),
        cores=function.cores(),
        memory_bytes=function.kind.memory_bytes(settings),
        hosting=function.hosting or hosting,
        hosting_values=function.hosting_values(),
        files=function.named_files(),
    )
