# SPDX-License-Identifier: BSD-3-Clause
"""Checks of what a switch reports: its counters against the tester's, its manifest, its options."""

from __future__ import annotations

from planebench.analysis.ledger import ATTEMPTS
from planebench.conformance.model import Check, Failure, Remarks
from planebench.conformance.rig import FrameCounts, Rig, read_until, send_exact
from planebench.host.programs import NotFound
from planebench.measure.trial import cycles_of_trial
from planebench.model.conditions import FEATURE_KEYS, MANIFEST_KEYS, UNKNOWN, parse_claim
from planebench.model.errors import UsageError
from planebench.model.records import SwitchCycles
from planebench.switches.adapter import Adapter, counters_of

ROUNDS = 3
TRIES = 3
SETTLE_S = 1.0
"""Some switches bring their counters up to date only now and then."""
NO_SUCH_OPTION = "no-such-option"


def is_found(adapter: Adapter) -> Remarks:
    """Fail unless the adapter finds the switch and its version."""
    found = adapter.find()
    if isinstance(found, NotFound):
        raise Failure("the switch", f"not found: {found.remedy}")
    if not found.version.strip():
        raise Failure("a version", f"none, of {found.binary}")
    return ()


def refuses_options(adapter: Adapter) -> Remarks:
    """Fail unless an unknown option is refused with the valid ones."""
    try:
        adapter.with_options({NO_SUCH_OPTION: "1"})
    except UsageError as error:
        missing = [option.name for option in adapter.options if option.name not in str(error)]
        if NO_SUCH_OPTION not in str(error) or missing:
            raise Failure(f"a sentence with {NO_SUCH_OPTION} and all valid options", str(error)) from error
        return ()
    raise Failure(f"UsageError for option {NO_SUCH_OPTION}", "an adapter")


def states_manifest(rig: Rig) -> Remarks:
    """Fail unless every key of the fairness manifest has a value, and those of virtio features are claims."""
    settings = rig.adapter.settings(rig.live.request)
    missing = [key for key in MANIFEST_KEYS if not settings.get(key, "").strip()]
    if missing:
        raise Failure(f"a value for each of {', '.join(MANIFEST_KEYS)}", f"none for {', '.join(missing)}")
    unreadable = [f"{key}: {settings[key]}" for key in FEATURE_KEYS if parse_claim(settings[key]) is None]
    if unreadable:
        raise Failure("claims such as `wires on, VNFs off` (planebench.model.conditions)", "; ".join(unreadable))
    unknown = [key for key in MANIFEST_KEYS if settings[key] == UNKNOWN]
    return (f"manifest has unknown: {', '.join(unknown)}",) if unknown else ()


def counts_frames(rig: Rig) -> Remarks:
    """Fail unless, at a low rate, received and sent are what the tester counts, and nothing is dropped."""
    for attempt in range(TRIES):
        rig.calm()
        before = counters_of(rig.switch)
        tally = send_exact(rig, rig.ways, rounds=ROUNDS)
        counters = _counted(rig, before, rig.hops * tally.arrived)
        wrong = _wrong(counters, rig.hops, tally)
        if not wrong:
            return _unknown(counters)
        if attempt + 1 == TRIES:
            words = f"{rig.hops} x {tally.offered} frames received and sent, {tally.lost} dropped"
            raise Failure(words, "; ".join(wrong))
    return ()


def _counted(rig: Rig, before: SwitchCycles, wanted: int) -> SwitchCycles:
    """Return what the switch counted since ``before``, once that is as many as ``wanted``, or SETTLE_S later."""

    def complete(counters: SwitchCycles) -> bool:
        return all(n is None or n >= wanted for n in (counters.packets, counters.forwarded_packets))

    return read_until(lambda: cycles_of_trial(before, counters_of(rig.switch), 0), complete, SETTLE_S)


def _wrong(counters: SwitchCycles, hops: int, tally: FrameCounts) -> list[str]:
    """Return what cannot be: where no frame is lost, every count is exact."""
    most = hops * tally.offered
    found = outside(counters, hops * tally.arrived, most)
    drops = {key: n for key, n in counters.drops.items() if n and key.rpartition(":")[2] not in ATTEMPTS}
    if counters.drops and sum(drops.values()) != tally.lost:
        found.append(f"dropped {', '.join(f'{n} {key}' for key, n in drops.items()) or 'none'}")
    if counters.busy_cycles is not None and counters.busy_cycles <= 0:
        found.append(f"{counters.busy_cycles} busy cycles")
    if counters.bursts is not None and not 0 < counters.bursts <= most:
        found.append(f"{counters.bursts} bursts")
    return found


def _unknown(counters: SwitchCycles) -> Remarks:
    named = {
        "received": counters.packets,
        "sent": counters.forwarded_packets,
        "busy cycles": counters.busy_cycles,
        "batch size": counters.bursts,
        "drops": counters.drops or None,
    }
    unknown = [name for name, value in named.items() if value is None]
    return (f"does not count: {', '.join(unknown)}",) if unknown else ()


def outside(counters: SwitchCycles, least: int, most: int) -> list[str]:
    """Return a sentence for each counter of passes through the switch that is not within ``least`` to ``most``."""
    named = (("received", counters.packets), ("sent", counters.forwarded_packets))
    return [
        f"{name} {number}, which is not {most if least == most else f'within {least} to {most}'}"
        for name, number in named
        if number is not None and not least <= number <= most
    ]


ITSELF_CHECKS = (
    Check("found", "The adapter finds the switch, and tells its version.", is_found),
    Check("options", "An option that it has not got is refused with those that it has.", refuses_options),
)
CHECKS = (
    Check("settings", "Every key of the fairness manifest is stated.", states_manifest),
    Check("counters", "At a low rate, received and sent equal the tester's counts, and no drop.", counts_frames),
)
