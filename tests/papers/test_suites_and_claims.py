# SPDX-License-Identifier: BSD-3-Clause
"""What the claims of ic16 compare is what its suite measures: a cut of the suite does not make a claim undecidable."""

from __future__ import annotations

import pytest

from planebench.papers.claims import Claim, all_claims
from planebench.papers.measured import _paper_name, counterpart, expanded, fits
from planebench.plans.expand import expand, switch_labels
from planebench.plans.latency_steps import _loads
from planebench.plans.load import load_plan

PLAN = load_plan("ic16")
NAMES = {label.label: _paper_name(label.adapter) for label in switch_labels(PLAN.switches)}
POINTS = expand(PLAN)
LOADS = {pair for part in PLAN.parts for pair in _loads(part)}
COMPARING = [claim for claim in all_claims() if claim.paper == "ic16" and claim.compare is not None]


@pytest.mark.parametrize("claim", COMPARING, ids=lambda claim: claim.id)
def test_the_suite_has_both_sides_of_every_comparison(claim: Claim) -> None:
    shape = claim.compare
    assert shape is not None
    for a, b in expanded(shape.each, shape.a, shape.b):
        wanted, others = a.switches or claim.switches, b.switches
        mine = [p for p in POINTS if fits(p, a) and (not wanted or NAMES[p.switch] in wanted)]
        pairs = [
            (point, counterpart(point, b, label))
            for point in mine
            for label in ([key for key, name in NAMES.items() if name in others] if others else [point.switch])
        ]
        there = [(one, other) for one, other in pairs if other in POINTS]
        if shape.metric in ("latency", "jitter"):
            there = [
                (one, other) for one, other in there if (one, a.load) in LOADS and (other, b.load or a.load) in LOADS
            ]
        assert there, f"{a} against {b}"
        if others:
            assert len(there) == len(pairs), "every frame size of the one side is there on the other"
