# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

from planebench.model.reasons import Reason, ReasonCode


def test_a_doubt_is_marked_and_equal_reasons_are_counted() -> None:
    assert str(Reason(ReasonCode.STEAL, "the hypervisor took 3 %")) == "the hypervisor took 3 %"
    lost = Reason(ReasonCode.UNEXPLAINED_LOSS, "7 frames are missing", {"packets": 7, "trials": 2})
    assert str(lost) == "suspect: 7 frames are missing (x2)"
