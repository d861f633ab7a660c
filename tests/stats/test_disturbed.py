# SPDX-License-Identifier: BSD-3-Clause
"""What disturbs one switch only is reported as its property; what disturbs all alike is not."""

from builders import make_header, make_point, make_trial

from planebench.model.run import Run
from planebench.stats.disturbed import DisturbedSwitch, disturbed_switches


def _run(**disturbed: int) -> Run:
    """Twenty trials of each switch, of which so many are disturbed."""
    trials = [
        make_trial(0, make_point(label), verdict="disturbed" if i < n else "valid")
        for label, n in disturbed.items()
        for i in range(20)
    ]
    return Run(make_header(tuple(disturbed)), tuple(trials))


def test_a_disturbance_that_goes_with_one_switch_is_named() -> None:
    assert disturbed_switches(_run(a=1, b=12, c=1)) == (DisturbedSwitch("b", 0.6, 0.05),)


def test_a_busy_machine_disturbs_all_alike() -> None:
    assert disturbed_switches(_run(a=8, b=10, c=6)) == ()
    assert disturbed_switches(_run(a=15)) == disturbed_switches(_run()) == ()
