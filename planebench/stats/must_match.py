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
    """A value of run.json: its table, its key, and its name."""

    where: Literal["settings", "host"]
    key: str
    title: str

    def of(self, header: RunHeader) -> str | int | float | bool | None:
        """Return the value of a run."""
        table = header.settings if self.where == "settings" else header.host
        return table.get(self.key)


MUST_MATCH = (
    Fact("settings", "wire", "wire"),
    Fact("settings", "ring_size", "ring size"),
    Fact("settings", "send_burst", "batch of VNFs (send_burst)"),
    Fact("settings", "drain_us", "drain time of VNFs (drain_us)"),
    Fact("settings", "hugepages", "hugepages"),
    Fact("settings", "hosting", "hosting"),
    Fact("settings", "trial_duration_s", "seconds of a saturating trial"),
    Fact("settings", "latency_duration_s", "seconds of a latency trial"),
    Fact("settings", "search_trial_duration_s", "seconds of a search trial"),
    Fact("settings", "search_duration_sum_s", "seconds of search trials at a load"),
    Fact("settings", "search_relative_width", "relative width of a search"),
    Fact("settings", "search_pdr_loss_ratio", "loss ratio of PDR"),
    Fact("settings", "search_max_r", "max(r) of BSwLV"),
    Fact("settings", "max_rate_pps", "highest rate of a direction"),
    Fact("settings", "line_bps", "speed of a link"),
    Fact("settings", "open_loop", "open loop"),
    Fact("settings", "warmup_s", "seconds of warm-up"),
    Fact("settings", "probe_rate_pps", "latency probes per second"),
    Fact("settings", "clock", "clock of latencies"),
    Fact("settings", "switch_cpu", "CPU of the switch"),
    Fact("settings", "more_switch_cpus", "further CPUs of the switch"),
    Fact("settings", "tester_cpus", "CPUs of the tester"),
    Fact("settings", "core_kinds", "kinds of cores of pollers"),
    Fact("host", "cpu_model", "CPU"),
    Fact("host", "cores_allowed", "cores"),
    Fact("host", "governor", "frequency governor"),
    Fact("host", "turbo", "turbo"),
    Fact("host", "cpu_mhz", "CPU MHz"),
    Fact("host", "kernel", "kernel"),
)
"""Each of these alone can move figures by more than switches differ. Versions are not here: they are what changes."""


def differing_facts(a: RunHeader, b: RunHeader) -> tuple[str, ...]:
    """Return one sentence per differing fact: ``kernel: 6.1.0 against 6.5.0``."""
    found = []
    for fact in MUST_MATCH:
        left, right = (fact.of(header) for header in (a, b))
        if left != right:
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
