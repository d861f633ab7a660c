# SPDX-License-Identifier: BSD-3-Clause
"""Hypothesis strategies for whole records: anything the dataclasses allow."""

from __future__ import annotations

from datetime import UTC, datetime

from builders import make_plan
from hypothesis import strategies as st

from planebench.model import records as r
from planebench.model.header import (
    SCHEMA_VERSION,
    Calibration,
    Ceiling,
    Finished,
    LatencyFloor,
    RunHeader,
    SwitchInfo,
)
from planebench.model.plan import Skipped
from planebench.model.text import utc_text

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
moments = st.datetimes(datetime(1971, 1, 1), datetime(2999, 1, 1)).map(lambda it: utc_text(it.replace(tzinfo=UTC)))
count = st.integers(0, 2**63)
real = st.floats(allow_nan=False, allow_infinity=False)
share = st.floats(0, 1)

reasons = st.builds(
    r.Reason,
    st.sampled_from(r.ReasonCode),
    text,
    st.dictionaries(st.sampled_from(["share", "packets"]), real, max_size=2),
)
verdicts = st.one_of(
    st.just(r.Verdict(r.VerdictKind.VALID)),
    st.builds(r.Verdict, st.sampled_from(r.VerdictKind), st.lists(reasons, min_size=1, max_size=3).map(tuple)),
)
flat_points = st.builds(
    r.Point,
    switch=text,
    scenario=st.sampled_from(["p2p", "p2v", "v2v"]),
    direction=st.sampled_from(["unidirectional", "bidirectional", "reversed"]),
    chain_length=st.just(0),
    frame_size_bytes=st.integers(64, 9000),
    wire=st.sampled_from(["virtio", "veth"]),
)
chain_points = st.builds(
    r.Point,
    switch=text,
    scenario=st.just("loopback"),
    direction=st.sampled_from(["unidirectional", "bidirectional"]),
    chain_length=st.integers(1, 5),
    frame_size_bytes=st.integers(64, 9000),
)
directions = st.builds(r.DirectionCounts, text, *[count] * 12)
distances = st.none() | st.builds(r.CoreDistance, real, st.sampled_from(["near", "far", "same"]))
threads = st.builds(
    r.ThreadEvidence, st.sampled_from(["switch", "tester"]), text, st.integers(0, 511), count, count, count
)
evidence = st.builds(
    r.Evidence,
    threads=st.lists(threads, max_size=3).map(tuple),
    poll_gaps=count,
    steal_ns=count,
    distance_before=distances,
    distance_after=distances,
    tester_busy_share=st.none() | share,
    shared_cpu=st.booleans(),
)
cycles = st.builds(
    r.SwitchCycles,
    busy_cycles=st.none() | count,
    idle_cycles=st.none() | count,
    packets=st.none() | count,
    drops=st.dictionaries(text, count, max_size=3),
)
trials = st.builds(
    r.Trial,
    index=count,
    point=flat_points | chain_points,
    role=st.sampled_from(["warmup", "r_plus", "search", "latency"]),
    load=st.builds(r.Load, text, st.none() | real),
    intended_duration_ns=count,
    offered_duration_ns=count,
    started_at=moments,
    directions=st.lists(directions, max_size=2).map(tuple),
    verdict=verdicts,
    evidence=evidence,
    switch=cycles,
    latency=st.none()
    | st.builds(
        r.LatencyRecord, count, count, text, count, count, st.sampled_from(["software", "hardware"]), text, text
    ),
    repetition=st.integers(0, 1000),
    start=count,
    search=text,
    tester_drops=st.dictionaries(text, count, max_size=3),
)
ends = st.sampled_from(["wire", "vnf"])
calibrations = st.builds(
    Calibration,
    measured_at=moments,
    planed_version=text,
    cpu_model=text,
    kernel=text,
    wire=text,
    ring_size=count,
    hugepages=st.booleans(),
    tester_cpus=count,
    duration_s=real,
    ceilings=st.lists(st.builds(Ceiling, count, ends, ends, real, st.booleans()), max_size=2).map(tuple),
    set_points=st.lists(st.dictionaries(st.text(max_size=9), real), max_size=2).map(tuple),
    floors=st.lists(st.builds(LatencyFloor, count, real, count, count, real, real, text), max_size=2).map(tuple),
)
scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | real | text
headers = st.builds(
    RunHeader,
    run_id=st.just("20261121-123356-quick"),
    name=text,
    started_at=moments,
    command=st.lists(text, max_size=4).map(tuple),
    seed=st.integers(0, 10**18 - 1),
    planebench_version=text,
    host=st.dictionaries(text, scalars, max_size=4),
    settings=st.dictionaries(text, scalars, max_size=4),
    switches=st.lists(st.builds(SwitchInfo, text, text, text, st.dictionaries(text, text, max_size=2)), max_size=3).map(
        tuple
    ),
    skipped=st.lists(st.builds(Skipped, text, text), max_size=2).map(tuple),
    warnings=st.lists(text, max_size=2).map(tuple),
    calibration=st.none() | calibrations,
    papers=st.lists(text, max_size=2).map(tuple),
    left_out=st.lists(st.builds(Skipped, text, text), max_size=2).map(tuple),
    environment=st.dictionaries(text, text, max_size=2),
    schema_version=st.just(SCHEMA_VERSION),
    plan=st.just(make_plan()),
)
endings = st.builds(Finished, st.sampled_from(["complete", "interrupted"]), moments, text)
