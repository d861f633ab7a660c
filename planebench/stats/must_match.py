# SPDX-License-Identifier: BSD-3-Clause
"""The facts that must be equal in two runs for their figures to be comparable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from planebench.model.header import RunHeader
from planebench.model.named_files import named_digests, without_folders


@dataclass(frozen=True, slots=True)
class Fact:
    """A value of run.json: its table, its key, and its name.

    ``newer``: old runs do not have the key, and a run without it differs from none.
    """

    where: Literal["settings", "host"]
    key: str
    title: str
    newer: bool = False
    before: str | int | float | None = None
    """What runs without the key had, where that is known: then they are compared, too."""

    def of(self, header: RunHeader) -> str | int | float | bool | None:
        """Return the value of a run."""
        table = header.settings if self.where == "settings" else header.host
        return table.get(self.key, self.before)


MUST_MATCH = (
    Fact("settings", "wire", "wire"),
    Fact("settings", "ring_size", "ring size"),
    Fact("settings", "send_burst", "batch of VNFs (send_burst)", before=0),
    Fact("settings", "drain_us", "drain time of VNFs (drain_us)", before=0),
    Fact("settings", "hugepages", "hugepages"),
    Fact("settings", "hosting", "hosting"),
    Fact("settings", "trial_duration_s", "seconds of a saturating trial"),
    Fact("settings", "latency_duration_s", "seconds of a latency trial"),
    Fact("settings", "search_trial_duration_s", "seconds of a search trial"),
    Fact("settings", "search_duration_sum_s", "seconds of search trials at a load", newer=True),
    Fact("settings", "search_relative_width", "relative width of a search", newer=True),
    Fact("settings", "search_pdr_loss_ratio", "loss ratio of PDR", newer=True),
    Fact("settings", "search_max_r", "max(r) of BSwLV", newer=True),
    Fact("settings", "max_rate_pps", "highest rate of a direction"),
    Fact("settings", "line_bps", "speed of a link", newer=True),
    Fact("settings", "open_loop", "open loop", newer=True),
    Fact("settings", "warmup_s", "seconds of warm-up", newer=True),
    Fact("settings", "probe_rate_pps", "latency probes per second", newer=True),
    Fact("settings", "clock", "clock of latencies", newer=True),
    Fact("settings", "switch_cpu", "CPU of the switch", newer=True),
    Fact("settings", "more_switch_cpus", "further CPUs of the switch", newer=True),
    Fact("settings", "tester_cpus", "CPUs of the tester", newer=True),
    Fact("settings", "core_kinds", "kinds of cores of pollers", newer=True),
    Fact("host", "cpu_model", "CPU"),
    Fact("host", "cores_allowed", "cores"),
    Fact("host", "governor", "frequency governor"),
    Fact("host", "turbo", "turbo"),
    Fact("host", "cpu_mhz", "CPU MHz", newer=True),
    Fact("host", "kernel", "kernel"),
)
"""Each of these alone can move figures by more than switches differ. Versions are not here: they are what changes."""


def differing_facts(a: RunHeader, b: RunHeader) -> tuple[str, ...]:
    """Return one sentence per differing fact: ``kernel: 6.1.0 against 6.5.0``.

    A fact that one side does not state is not compared.

    Not stated on both sides is equal.
    """
    found = []
    for fact in MUST_MATCH:
        left, right = (fact.of(header) for header in (a, b))
        unknown = fact.newer and any(fact.key not in getattr(header, fact.where) for header in (a, b))
        if left != right and not unknown:
            found.append(f"{fact.title}: {_words(left)} against {_words(right)}")
    return (*found, *_changed_files(a, b), *_unlike_traffic(a, b))


def _changed_files(a: RunHeader, b: RunHeader) -> Iterator[str]:
    """Yield a sentence for each file that has another content in the other run."""
    others = named_digests(b.settings)
    for name, digest in named_digests(a.settings).items():
        if others.get(name, digest) != digest:
            yield f"{name} has changed: digest {digest[:8]} against {others[name][:8]}"


def _unlike_traffic(a: RunHeader, b: RunHeader) -> Iterator[str]:
    """Yield a sentence for each setting of a profile that differs in the other run, unless its capture has changed."""
    others = {profile.name: profile for profile in b.traffic}
    same_files = not any(_changed_files(a, b))
    for profile in a.traffic:
        other = others.get(profile.name, profile)
        for key in dict.fromkeys((*profile.settings, *other.settings)):
            if key == "pcap" and not same_files:
                continue
            mine, theirs = (
                without_folders(each.settings.get(key, ""), header.settings)
                for each, header in ((profile, a), (other, b))
            )
            if mine != theirs:
                yield f"{key} of traffic {profile.name}: {mine or 'none'} against {theirs or 'none'}"


def _words(value: str | int | float | bool | None) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "not stated"
    return f"{value:g}" if isinstance(value, float) else str(value)
