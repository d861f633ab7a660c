# SPDX-License-Identifier: BSD-3-Clause
"""Reasons: what is shown of them, and the codes of sentences that runs before schema 8 have."""

from __future__ import annotations

import json

import pytest

from planebench.model.reasons import Reason, ReasonCode, reason_of
from planebench.model.records import Verdict, VerdictKind
from planebench.store.codec import from_json, to_json


def test_a_doubt_is_marked_and_equal_reasons_are_counted() -> None:
    assert str(Reason(ReasonCode.STEAL, "the hypervisor took 3 %")) == "the hypervisor took 3 %"
    lost = Reason(ReasonCode.UNEXPLAINED_LOSS, "7 frames are missing", {"packets": 7, "trials": 2})
    assert str(lost) == "suspect: 7 frames are missing (x2)"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("tester thread w0 waited for its CPU 2.6% of the time (10 involuntary switches)", ReasonCode.CPU_WAIT),
        ("tester poll gaps over 100 us took 2.8% of the time", ReasonCode.POLL_GAPS),
        ("the switch was busy only 40% of the time", ReasonCode.NOT_SATURATED),
        ("n0->n1: the generator sent nothing", ReasonCode.NOTHING_SENT),
        ("suspect: 60000 FIB updates a second were applied, not 64000", ReasonCode.UPDATES_MISSING),
        ("suspect: 3 frames unexplained", ReasonCode.UNEXPLAINED_LOSS),
        ("switch (pid 7) was killed by SIGKILL", ReasonCode.TEXT),
    ],
)
def test_a_sentence_of_an_earlier_version_is_read(text: str, code: ReasonCode) -> None:
    verdict = from_json(Verdict, json.dumps({"kind": "disturbed", "reasons": [text]}).encode(), "a line")
    assert (verdict.reasons[0], verdict.texts) == (reason_of(text), (text,))
    assert (verdict.kind, verdict.codes) == (VerdictKind.VALID, (code.value,)), "what the host did rejects no trial"
    assert from_json(Verdict, to_json(verdict), "a line") == verdict
