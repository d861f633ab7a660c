# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import pytest

from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import Verdict, VerdictKind
from planebench.store.codec import from_json


def test_a_doubt_is_marked_and_equal_reasons_are_counted() -> None:
    assert str(Reason(ReasonCode.STEAL, "the hypervisor took 3 %")) == "the hypervisor took 3 %"
    lost = Reason(ReasonCode.UNEXPLAINED_LOSS, "7 frames are missing", {"packets": 7, "trials": 2})
    assert str(lost) == "suspect: 7 frames are missing (x2)"


@pytest.mark.parametrize("kind", ["disturbed", "unstable"])
def test_what_the_host_did_rejects_no_stored_trial(kind: str) -> None:
    reason = '{"code": "steal", "text": "the hypervisor took 3 %", "values": {}}'
    verdict = from_json(Verdict, f'{{"kind": "{kind}", "reasons": [{reason}]}}'.encode(), "a line")
    assert (verdict.kind, verdict.codes) == (VerdictKind.VALID, ("steal",))
