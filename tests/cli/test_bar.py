# SPDX-License-Identifier: BSD-3-Clause
"""The progress bar off a terminal: a line a step, and what went wrong in any case."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
from builders import make_point, make_trial

from planebench.cli.bar import FAILED_IN_A_ROW, Bar, RunBar
from planebench.measure.ahead import Pace


@pytest.mark.parametrize(("quiet", "said"), [(False, ["[1/2] a step", "it failed"]), (True, ["it failed"])])
def test_quiet_keeps_what_went_wrong(capsys: pytest.CaptureFixture[str], quiet: bool, said: list[str]) -> None:
    with Bar(2, quiet=quiet) as bar:
        bar.working_on("a step")
        bar.advance()
        bar.line(f"[{bar.done}/{bar.steps}] a step")
        bar.tell("it failed")
    out, err = capsys.readouterr()
    assert (out, err.splitlines()) == ("", said)


def test_an_invalid_trial_says_why_and_many_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    """What the host did is no failure; after a trial that took place those that did not are counted anew."""
    pace = cast(Pace, SimpleNamespace(steps=384))
    kinds = ("invalid", "disturbed", *["invalid"] * FAILED_IN_A_ROW)
    with RunBar(pace, trial_s=0.2) as bar:
        for kind in kinds:
            bar.trial_done(make_trial(0, make_point("testpmd"), verdict=kind))
    lines = capsys.readouterr().err.splitlines()
    told = "testpmd p2p unidirectional 64 B saturating:"
    assert lines[:2] == [f"[1/384] {told} invalid: it was invalid", f"[1/384] {told} 10.00 Mpps valid"]
    assert len(lines) == len(kinds) + 1 and "`planebench switch check NAME` tests a switch" in lines[-1]
