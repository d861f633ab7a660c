# SPDX-License-Identifier: BSD-3-Clause
"""Have planed check the settings and files of chains before anything is started."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from planebench.host.planed_program import complaint
from planebench.host.programs import run_tool
from planebench.model.errors import UsageError
from planebench.model.traffic import TrafficProfile
from planebench.placement import Cpus, place_vnfs
from planebench.traffic.routes import draw_addresses, router_settings
from planebench.vnfs.chain import parse_chain
from planebench.vnfs.topology import build_chain
from planebench.wiring.links import LinkSettings
from planebench.wiring.tasks import assign_tasks
from planebench.wiring.tester_config import full_stage

CHECK_DEADLINE_S = 120.0
"""For a table of millions of lines."""


def check_chains(chains: Iterable[str], planed: Path) -> None:
    """Raise UsageError with the message of planed for the first chain that planed rejects."""
    for chain in chains:
        _check(chain, planed)


def _check(chain: str, planed: Path) -> None:
    """Check a document of the tester with all functions of the chain, so that its memory is checked, too."""
    built = build_chain("loopback", len(parse_chain(chain)), chain=chain)
    topology = replace(built, vnfs=tuple(replace(vnf, hosting="process") if vnf.kind else vnf for vnf in built.vnfs))
    placement = place_vnfs(Cpus(tuple(sorted(os.sched_getaffinity(0)))), topology.cores_of_vnfs)
    with tempfile.TemporaryDirectory(prefix="planebench-") as folder:
        links = LinkSettings(workdir=Path(folder), name="check", queues=topology.vnf_cores)
        path = Path(folder) / "tester.json"
        full_stage(topology, assign_tasks(placement, topology, links.queues), links).write(path)
        said = run_tool([planed, "--check", path], CHECK_DEADLINE_S, env={"RUNTIME_DIRECTORY": folder})
    if not said.ok:
        raise UsageError(f'chain "{chain}": {complaint(said).replace(f"{path}: ", "")}')


def check_draws(profiles: Iterable[TrafficProfile], chains: Sequence[str]) -> None:
    """Raise UsageError if the first router of a chain has no routes that a profile's addresses can be drawn from."""
    given = [settings for settings in map(router_settings, chains) if {"routes", "routes_file"} & settings.keys()]
    for profile in profiles:
        wanted = profile.dst_ips
        if wanted is not None and wanted.fib is not None and not wanted.path:
            for settings in given:
                draw_addresses(settings, profile.ip, wanted.fib, profile.seed)
