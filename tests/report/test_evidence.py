# SPDX-License-Identifier: BSD-3-Clause
import dataclasses

from builders import make_point, make_trial

from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import (
    Trial,
    Verdict,
    VerdictKind,
)
from planebench.report.trials import causes


def test_a_remark_is_no_cause() -> None:
    dropped = Reason(ReasonCode.DROPPED_BY_FUNCTIONS, "dropped by network functions: rule (vnf0 firewall)")
    died = Reason(ReasonCode.ERROR, "the switch died")
    trial = dataclasses.replace(make_trial(), verdict=Verdict(VerdictKind.INVALID, (died, dropped)))
    (found,) = causes([trial])
    assert found.text == died.text


def _invalid(number: int, switch: str, *reasons: Reason) -> Trial:
    return dataclasses.replace(make_trial(number, make_point(switch)), verdict=Verdict(VerdictKind.INVALID, reasons))


def test_trials_that_did_not_take_place_are_grouped_by_cause_and_an_error_by_its_words() -> None:
    def more(frames: int) -> Reason:
        return Reason(ReasonCode.RECEIVED_MORE_THAN_SENT, f"{frames} frames came, only 7 were sent")

    trials = (
        _invalid(1, "planed", Reason(ReasonCode.ERROR, "planed (pid 7) died")),
        _invalid(2, "ovs-dpdk", more(8), more(9)),
        _invalid(3, "planed", more(10)),
        _invalid(4, "planed", Reason(ReasonCode.ERROR, "planed (pid 8) died")),
        _invalid(5, "planed", more(9)),
        _invalid(6, "planed", Reason(ReasonCode.ERROR, "port N is gone")),
    )
    assert [(c.kind, c.text, c.trials, c.switches) for c in causes(trials)] == [
        (VerdictKind.INVALID, "e.g. 9 frames came, only 7 were sent", 3, (("planed", 2), ("ovs-dpdk", 1))),
        (VerdictKind.INVALID, "e.g. planed (pid 7) died", 2, (("planed", 2),)),
        (VerdictKind.INVALID, "port N is gone", 1, (("planed", 1),)),
    ]
