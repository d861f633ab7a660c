# SPDX-License-Identifier: BSD-3-Clause
"""The verdict of a trial from its counts and evidence (docs/design/trials.md). Pure; every limit is a constant here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from planebench.analysis.capacity import CEILING_SHARE
from planebench.analysis.ledger import describe, ledger, policy_packets, policy_words
from planebench.measure.counts import not_as_intended
from planebench.measure.updates import not_answered, not_applied
from planebench.model.chain_name import vnf_names
from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import SCHEDSTAT_MIN_NS, DirectionCounts, SwitchCycles, Trial, Verdict, VerdictKind
from planebench.model.results import CORE_MHZ, WANTED_MHZ
from planebench.model.scenarios import FRAME_SIZE_MIN_BYTES
from planebench.model.server import RANDOM
from planebench.model.time_had import Stood, has_vnfs, lost_ns, stood_in
from planebench.model.traffic import TrafficProfile
from planebench.testbed.vnfs import VNFS

LOST_CPU_SHARE = 0.02
"""Share of the trial a polling thread may wait for its CPU, or spend in poll gaps, before that is remarked."""
LOST_CPU_SHARE_LATENCY = 0.01
"""The same for latency trials, where a gap is not averaged away: p99.9 and max still show gaps below this limit."""

LOST_CPU_MIN_NS = 50_000
"""A shorter time cannot be separated from reading the counters, which takes longer than a back-to-back burst."""

SWITCH_BUSY_SHARE = 0.95
"""A switch with a lower utilization at maximum offered load was not saturated."""
STOOD_ERROR = 0.1
"""What the host took of a trial is known to within this share of it."""
RING_FULL_SHARE = 0.01
LOSS_SHARE = 0.001
"""Signs of a saturated switch beside its busy share: it refused frames, or lost them. A poller of batches may be busy
all the time at half of its capacity."""
LINE_RATE_SHARE = 0.01
"""A link that is so close to full is full."""
LINE_RATE_PACKETS = 8192
"""So many frames were in rings and NICs when the counters were cleared."""
FULL_BURSTS_SHARE = 0.5
"""A monitor that finds more of its bursts full than this may be behind: what is lost at it is lost by the tester. A
switch with large batches fills its bursts, too."""
BEHIND_SHARE = 0.01
"""The same at maximum offered load, of a switch that refuses frames: it took no more, and less than this is missing."""
OVERLOAD_SHARE = 0.001
"""A latency trial that loses more of its frames than this measures full queues."""
NOT_CARRIED_SHARE = 0.02
"""A paced trial that misses more of its intended frames has a remark."""
FOREIGN_SHARE = 0.001
"""Frames that the tester had not sent, of those forwarded, that are worth a remark: a kernel sends a few of its own."""
STRETCH_SHARE = 0.01
STRETCH_NS = 1_000_000
"""A generator that exceeds the intended duration by more than this sends slower than it reports (trex-core #442)."""
FRAME_SIZE_LIMIT_BYTES = 9728
"""Maximum frame size of planed's ports and of DPDK's virtio."""
VLAN_TAG_BYTES = 4
"""A switch may take one off, or put two on."""
CLOCK_SHARE = 0.02
"""A core whose clock differs by more from the one that was asked for is not measured at that clock."""
DRAINED_SHARE = 0.001
"""Rings that give back more than this share of the frames after the sending are remarked."""
UNSTEADY_SHARE = 0.05
"""So much of the rate may change from the first half of a saturating trial to the second, beyond what the host took."""
UNSENT_SHARE = 0.01
"""Share of the intended frames that a paced generator may miss for its own lateness."""


def judge(
    trial: Trial,
    *,
    ceiling_pps: float | None = None,
    functional: Sequence[Reason] = (),
    misdirected_packets: int = 0,
    elsewhere_packets: int = 0,
) -> Verdict:
    """Return the verdict of a trial that ran to its end: the worst kind with a reason, and the reasons of that kind.

    ``ceiling_pps``: the maximum rate of the tester without a switch, all directions together, if it is known.
    ``functional``: why rates and latencies are not representative.
    ``misdirected_packets``: intact frames of the trial that came out at a port where they do not belong.
    ``elsewhere_packets``: frames that came on several queues, where those before them may have done so unseen.
    Its own verdict is not read. Frames that network functions dropped by policy are no loss of the switch. VNFs in
    processes of their own are independent side by side; those of a chain may keep the switch from being saturated, as
    the tester may. Where the scheduler moves VNFs, their waits for a CPU are what is measured.
    """
    if misdirected_packets:
        known = [VNFS[name].misdirection_hint for name in vnf_names(trial.point.chain) if name in VNFS]
        hints = "".join(f" ({hint})" for hint in dict.fromkeys(filter(None, known)))
        text = f"{misdirected_packets} frames arrived at a wrong port{hints}"
        return Verdict(VerdictKind.INVALID, (Reason(ReasonCode.MISDIRECTED, text, {"packets": misdirected_packets}),))
    role, flat_out, duration_ns = trial.role, trial.load.pps_per_direction is None, trial.offered_duration_ns
    evidence, switch, saturating = trial.evidence, trial.switch, trial.role == "r_plus"
    policy, stand = policy_packets(trial), stood_in(trial)
    if trial.point.side_by_side and has_vnfs(evidence):
        # They may be what limits, or keep the switch from its core: its busy share tells nothing.
        switch = replace(switch, busy_cycles=None)
    directions, lost = trial.directions, sum(d.lost_packets for d in trial.directions)
    if policy > 0 and lost > 0:
        # Functions count all directions together, so each direction gets its share by its losses.
        shares = [d.lost_packets * min(policy, lost) // lost for d in directions]
        directions = tuple(
            replace(d, forwarded_packets=d.forwarded_packets + share)
            for d, share in zip(directions, shares, strict=True)
        )
    line_packets = None if trial.line_rate_pps is None else trial.line_rate_pps * duration_ns / 1e9
    # A switch without its CPU loses what a ring does not hold: that is the host's share, not what it cannot forward.
    loses = any(d.lost_packets > (LOSS_SHARE + 1 - stand.had) * d.offered_packets for d in directions)
    limited: list[Reason] = []
    if not (saturating and line_packets is not None and loses):
        # Saturated is saturated: a tester slower than the links does not matter then.
        limited += _late(directions, stand)
    if saturating or flat_out:
        limited += _not_saturated(directions, switch, stand)
    limited += _behind(saturating or flat_out, directions, [*switch.drops.items(), *trial.tester_drops.items()])
    intended_ns = trial.intended_duration_ns
    if duration_ns > (1 + STRETCH_SHARE + stand.tester) * intended_ns + STRETCH_NS:
        text = f"the generator took {duration_ns / 1e9:.3f} s for a trial of {intended_ns / 1e9:.3f} s"
        limited.append(Reason(ReasonCode.STRETCHED, text, {"duration_ns": duration_ns, "intended_ns": intended_ns}))
    if saturating and ceiling_pps is not None and duration_ns > 0:
        rate = sum(d.forwarded_packets for d in directions) * 1e9 / duration_ns
        if rate >= (1 - CEILING_SHARE) * ceiling_pps:
            text = (
                f"{rate / 1e6:.2f} Mpps is at least {1 - CEILING_SHARE:.0%} of the calibrated tester maximum "
                f"({ceiling_pps / 1e6:.2f} Mpps)"
            )
            limited.append(Reason(ReasonCode.TESTER_CEILING, text, {"pps": rate, "ceiling_pps": ceiling_pps}))
    line_rate: list[Reason] = []
    if saturating and line_packets and not loses:
        share = min(d.forwarded_packets for d in directions) / (line_packets * stand.had)
        if share >= 1 - LINE_RATE_SHARE - STOOD_ERROR * (1 - stand.had):
            text = f"line rate: the switch forwarded all that the links carry ({share:.1%} of each direction)"
            line_rate = [Reason(ReasonCode.LINE_RATE, text, {"share": share})]
    one_cpu = "switch and tester share one CPU: rates and latencies are those of its scheduler"
    shared = [Reason(ReasonCode.ONE_CPU, one_cpu)] if evidence.shared_cpu else []
    kinds: tuple[tuple[VerdictKind, Sequence[Reason]], ...] = (
        (
            VerdictKind.INVALID,
            [*_invalid(trial.directions, policy, evidence.foreign_packets, line_packets, elsewhere_packets)],
        ),
        (VerdictKind.FUNCTIONAL, (*functional, *shared)),
        (VerdictKind.LINE_RATE, line_rate),
        (VerdictKind.TESTER_LIMITED, limited),
        (VerdictKind.OVERLOAD, [*_overload(directions, stand)] if role == "latency" and not flat_out else ()),
    )
    valid = (VerdictKind.VALID, [*_remarks(flat_out, directions, evidence.foreign_packets)])
    kind, reasons = next((it for it in kinds if it[1]), valid)
    if kind in (VerdictKind.INVALID, VerdictKind.FUNCTIONAL):
        return Verdict(kind, tuple(reasons))
    return Verdict(kind, (*reasons, *_by_host(trial)))


def remarks(trial: Trial, profile: TrafficProfile) -> Iterator[Reason]:
    """Yield what is to be known of a trial beside its verdict: losses without a known cause, traffic that was not sent
    as its profile says, updates that were not applied, and its course."""
    if dropped := policy_words(trial):
        text = f"dropped by network functions, not by the switch: {dropped}"
        yield Reason(ReasonCode.DROPPED_BY_FUNCTIONS, text)
    tenths = trial.by_tenth
    if trial.role == "r_plus" and any(tenths):
        share = 1 - sum(tenths) / trial.forwarded_packets
        if share > DRAINED_SHARE:
            text = f"{share:.1%} of the forwarded frames came out of rings after the sending: not in the rate"
            yield Reason(ReasonCode.DRAINED, text, {"share": share})
        first, second = sum(tenths[2:6]), sum(tenths[6:])
        by_host = 1 - stood_in(trial).had
        if abs(second - first) > (UNSTEADY_SHARE + by_host) * max(first, second):
            text = f"the rate changed within the trial: {first} frames in one half, {second} in the next"
            yield Reason(ReasonCode.UNSTEADY, text, {"first": first, "second": second})
    account = ledger(trial)
    if account.unexplained_packets and account.counted:
        of_switch = {f"{key} (switch)": count for key, count in trial.switch.counters.items() if ":" in key and count}
        grown = {**of_switch, **trial.evidence.nic_counters}
        of_nics = f"; counters of NICs: {', '.join(f'{key} {count}' for key, count in grown.items())}" if grown else ""
        values = {"packets": account.unexplained_packets}
        yield Reason(ReasonCode.UNEXPLAINED_LOSS, describe(account) + of_nics, values)
    for sent in trial.sent:
        yield from not_as_intended(profile, sent)
    if trial.updates is not None:
        yield from not_applied(trial.updates)
    if trial.control is not None:
        yield from not_answered(trial.control)


def _invalid(
    directions: Sequence[DirectionCounts],
    policy: int,
    foreign_packets: int,
    line_packets: float | None,
    elsewhere_packets: int = 0,
) -> Iterator[Reason]:
    others = f"; {foreign_packets} frames came that are not the tester's: changed, cut, or of another sender"
    for d in directions:
        if d.lost_packets < 0:
            text = f"{d.name}: received {d.forwarded_packets} frames but sent only {d.offered_packets}"
            yield _counted(ReasonCode.RECEIVED_MORE_THAN_SENT, text, d.forwarded_packets, d.offered_packets)
        if d.unsent_packets < 0:
            text = f"{d.name}: sent {d.offered_packets} frames but intended only {d.intended_packets}"
            yield _counted(ReasonCode.SENT_MORE_THAN_INTENDED, text, d.offered_packets, d.intended_packets)
        explained = d.unsent_late_packets + d.unsent_ring_full_packets
        if d.unsent_packets != explained:
            text = f"{d.name}: {d.unsent_packets} frames were not sent, but the generator accounts only for {explained}"
            yield _counted(ReasonCode.UNSENT_NOT_ACCOUNTED, text, d.unsent_packets, explained)
        if d.untried:
            yield Reason(ReasonCode.NOTHING_SENT, f"{d.name}: the generator sent no frames")
        elif d.offered_packets == 0:
            text = f"{d.name}: none of the {d.attempted_packets} frames of the generator was taken"
            yield Reason(ReasonCode.NOTHING_FORWARDED, text)
        elif d.forwarded_packets == 0:
            what = "no frame passed the network functions" if policy else "the switch forwarded no frames"
            yield Reason(ReasonCode.NOTHING_FORWARDED, f"{d.name}: {what}{others if foreign_packets else ''}")
        for what, packets, number, least in (
            ("sent", d.offered_packets, d.offered_bytes, FRAME_SIZE_MIN_BYTES),
            ("received", d.forwarded_packets, d.forwarded_bytes, FRAME_SIZE_MIN_BYTES - VLAN_TAG_BYTES),
        ):
            if number is not None and not least * packets <= number <= FRAME_SIZE_LIMIT_BYTES * packets:
                text = f"{d.name}: {number} bytes do not match {packets} frames {what}"
                yield Reason(ReasonCode.IMPOSSIBLE_BYTES, text, {"bytes": number, "packets": packets})
        if d.offered_bytes is not None and d.forwarded_bytes is not None:
            most = d.offered_bytes + 2 * VLAN_TAG_BYTES * d.forwarded_packets
            if d.forwarded_bytes > most:
                text = f"{d.name}: received {d.forwarded_bytes} bytes but sent only {d.offered_bytes}"
                yield Reason(ReasonCode.IMPOSSIBLE_BYTES, text, {"bytes": d.forwarded_bytes, "sent": d.offered_bytes})
    if elsewhere_packets:  # duplicates may be among what was forwarded: each may hide a loss
        text = (
            f"{elsewhere_packets} frames came on several queues of a port; of earlier frames it is not known, "
            "so that the loss is not"
        )
        yield Reason(ReasonCode.ON_SEVERAL_QUEUES, text, {"packets": elsewhere_packets})
    if line_packets is None:
        return
    for d in directions:  # with more than the link carries, counters or its speed are wrong
        if d.forwarded_packets > (1 + LINE_RATE_SHARE) * line_packets + LINE_RATE_PACKETS:
            text = (
                f"{d.name}: received {d.forwarded_packets} frames, but the link carries {line_packets:.0f} in this "
                "time; if it reports a wrong speed, give --line"
            )
            yield _counted(ReasonCode.ABOVE_LINE_RATE, text, d.forwarded_packets, round(line_packets))


def _by_host(trial: Trial) -> Iterator[Reason]:
    """Yield remarks on what the host did to the pollers meanwhile."""
    evidence, duration_ns, roaming = trial.evidence, trial.offered_duration_ns, trial.point.placement == RANDOM
    limit = LOST_CPU_SHARE_LATENCY if trial.role == "latency" else LOST_CPU_SHARE
    allowed_ns = max(limit * duration_ns, LOST_CPU_MIN_NS)
    for thread in evidence.threads if duration_ns >= SCHEDSTAT_MIN_NS else ():
        waited_ns = lost_ns(thread, evidence, duration_ns)
        if waited_ns > allowed_ns and not (roaming and thread.owner == "vnf"):
            yield Reason(
                ReasonCode.CPU_WAIT,
                f"{thread.owner} thread {thread.thread} was preempted: "
                f"{_percent(waited_ns, duration_ns)} run-queue wait, "
                f"{thread.involuntary_switches} involuntary context switches",
                {"share": waited_ns / duration_ns, "involuntary_switches": thread.involuntary_switches},
            )
    if evidence.poll_gap_sum_ns > allowed_ns:
        yield Reason(
            ReasonCode.POLL_GAPS,
            f"tester poll gaps over {evidence.poll_gap_threshold_ns // 1000} us took "
            f"{_percent(evidence.poll_gap_sum_ns, duration_ns)} of the time",
            {"share": evidence.poll_gap_sum_ns / duration_ns if duration_ns else 1.0},
        )
    if evidence.steal_ns > max(limit * duration_ns, 10_000_000):
        text = f"the hypervisor took {_percent(evidence.steal_ns, duration_ns)} of the CPU time"
        yield Reason(ReasonCode.STEAL, text, {"share": evidence.steal_ns / duration_ns if duration_ns else 1.0})
    before, after = evidence.distance_before, evidence.distance_after
    if before is not None and after is not None and before.band != after.band:
        yield Reason(
            ReasonCode.DISTANCE_CHANGED,
            f"the core-to-core latency changed from {before.band} ({before.median_ns:.0f} ns) to "
            f"{after.band} ({after.median_ns:.0f} ns)",
            {"before_ns": before.median_ns, "after_ns": after.median_ns},
        )
    wanted, found = (trial.switch.counters.get(name) for name in (WANTED_MHZ, CORE_MHZ))
    if wanted and found and abs(found - wanted) > CLOCK_SHARE * wanted:
        text = f"the core of the switch ran at {found} MHz, not at {wanted}"
        yield Reason(ReasonCode.OTHER_CLOCK, text, {"found_mhz": found, "wanted_mhz": wanted})


def _late(directions: Sequence[DirectionCounts], stand: Stood) -> Iterator[Reason]:
    """Yield the directions whose generator was late beyond what the host kept it from its CPU: it is the limit."""
    for d in directions:
        if d.unsent_late_packets > (UNSENT_SHARE + stand.tester) * d.intended_packets:
            late = _percent(d.unsent_late_packets, d.intended_packets)
            text = f"{d.name}: the generator missed its schedule for {late} of frames"
            values = {"share": d.unsent_late_packets / d.intended_packets} if d.intended_packets else {}
            yield Reason(ReasonCode.GENERATOR_LATE, text, values)


def _behind(
    flat_out: bool, directions: Sequence[DirectionCounts], dropped: Sequence[tuple[str, int]]
) -> Iterator[Reason]:
    """Yield the directions whose monitor was behind, if so much was lost at the monitors that it matters.

    At most that is what is missing without what other ports ``dropped``.
    """
    ends = {d.name.rpartition("->")[2] for d in directions}
    elsewhere = sum(packets for key, packets in dropped if key.partition(":")[0] not in ends)
    at_monitors = max(0, sum(d.lost_packets for d in directions) - elsewhere)
    saturated = flat_out and all(d.ring_full_share > RING_FULL_SHARE for d in directions)
    least = (BEHIND_SHARE if saturated else LOSS_SHARE) * sum(d.offered_packets for d in directions)
    behind = [d for d in directions if d.monitor_full_bursts > FULL_BURSTS_SHARE * d.monitor_bursts]
    for d in behind if at_monitors > least else ():
        if d.lost_packets > LOSS_SHARE * d.offered_packets:
            yield Reason(
                ReasonCode.MONITOR_BEHIND,
                f"{d.name}: the monitor was behind ({_percent(d.monitor_full_bursts, d.monitor_bursts)} of its bursts "
                "were full), so frames were lost on the tester's side",
                {"share": d.monitor_full_bursts / d.monitor_bursts},
            )


def _not_saturated(directions: Sequence[DirectionCounts], switch: SwitchCycles, stand: Stood) -> Iterator[Reason]:
    """Yield why the switch was not saturated, by its busy share of the time that all pollers had.

    While the tester stood there was nothing for it to do. While it stood itself its clock went on, in the state, busy
    or idle, in which it was interrupted. That time is known to some per cent of what the host took.
    """
    busy_if_saturated = min(stand.had / (1 - stand.switch), 1 - stand.tester)
    least = (SWITCH_BUSY_SHARE - STOOD_ERROR * (1 - stand.had)) * busy_if_saturated
    if switch.busy_share is not None and switch.busy_share < least:
        text = f"the switch was busy only {switch.busy_share:.0%} of the time"
        yield Reason(ReasonCode.NOT_SATURATED, text, {"busy_share": switch.busy_share})
    elif not any(d.ring_full_share > RING_FULL_SHARE or d.loss_ratio > LOSS_SHARE for d in directions):
        yield Reason(ReasonCode.NOT_SATURATED, "the switch accepted every frame and lost none: it was not saturated")


def _overload(directions: Sequence[DirectionCounts], stand: Stood) -> Iterator[Reason]:
    """Yield the directions whose load the switch did not carry: it lost frames, or its ring took none.

    What came while the host kept pollers from their CPUs is not the switch's loss.
    """
    for d in directions:
        missing = d.missing_packets
        if missing > (OVERLOAD_SHARE + (1 - stand.had)) * d.intended_packets:
            text = f"overload: {d.name}: the switch lost {_percent(missing, d.intended_packets, 2)} of the frames"
            yield Reason(ReasonCode.OVERLOAD, text, {"loss_ratio": missing / d.intended_packets})


def _remarks(flat_out: bool, directions: Sequence[DirectionCounts], foreign_packets: int) -> Iterator[Reason]:
    """Yield remarks on the switch for a valid trial."""
    if foreign_packets > FOREIGN_SHARE * sum(d.forwarded_packets for d in directions):
        text = f"{foreign_packets} frames were received that the tester had not sent"
        yield Reason(ReasonCode.FOREIGN, text, {"packets": foreign_packets})
    for d in directions:
        if not flat_out and d.loss_ratio > NOT_CARRIED_SHARE:
            text = f"{d.name}: the switch dropped packets at this load (queues full)"
            yield Reason(ReasonCode.NOT_CARRIED, text, {"loss_ratio": d.loss_ratio})
        for count, code in (
            (d.duplicate_packets, ReasonCode.DUPLICATED),
            (d.reordered_packets, ReasonCode.REORDERED),
            (d.corrupt_packets, ReasonCode.DAMAGED),
        ):
            if count:
                yield Reason(code, f"{d.name}: {code.value} frames were received", {"packets": count})


def _counted(code: ReasonCode, text: str, packets: int, least: int) -> Reason:
    return Reason(code, text, {"packets": packets, "of_packets": least})


def _percent(part: int, whole: int, digits: int = 1) -> str:
    return f"{part / whole:.{digits}%}" if whole else "all"
