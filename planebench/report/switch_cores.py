# SPDX-License-Identifier: BSD-3-Clause
"""How many cores a switch of a run forwards on."""

from __future__ import annotations

import re

from planebench.model.run import Run

_CPUS = re.compile(r"\d+(,\d+)*")


def switch_cores(run: Run, label: str) -> int:
    """By its adapter (condition ``cores``: CPU numbers); else by the setting of the run; else one."""
    for switch in run.header.switches:
        cpus = switch.settings.get("cores", "")
        if switch.label == label and _CPUS.fullmatch(cpus):
            return cpus.count(",") + 1
    wanted = run.header.settings.get("switch_cores")
    return wanted if isinstance(wanted, int) and wanted > 0 else 1


def cores_sentence(run: Run) -> str:
    """``Each switch has one core.``; where they differ, how many each has."""
    cores = {label: switch_cores(run, label) for label in run.switch_labels}
    if len(set(cores.values())) == 1:
        return f"Each switch has {cores_words(next(iter(cores.values())))}."
    return f"Cores: {', '.join(f'{label} {number}' for label, number in cores.items())}." if cores else ""


def cores_words(cores: int) -> str:
    """``one core``, ``2 cores``."""
    return "one core" if cores == 1 else f"{cores} cores"
