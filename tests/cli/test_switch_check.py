# SPDX-License-Identifier: BSD-3-Clause
"""``planebench switch check``: what it refuses before anything is started."""

from __future__ import annotations

import pytest

from planebench.host.programs import Found
from planebench.switches.registry import ADAPTERS


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nothing",), 'unknown switch "nothing"'),
        (("sim",), "nothing to check"),
        (("planed", "--scenario", "p2q"), "did you mean p2v?"),
        (
            ("planed:workers=2", "--wire", "veth"),
            "several need --wire memif, vhost, virtio. Valid: virtio, memif, vhost, all",
        ),
        (("planed", "--check", "ordre"), "did you mean order?"),
        (("planed", "--wire", "string"), "Valid: virtio, memif, vhost, veth"),
        (("testpmd:path=/nowhere/testpmd",), "/nowhere/testpmd"),
    ],
)
def test_bad_input(planebench, arguments: tuple[str, ...], words: str) -> None:
    if arguments[0].startswith("planed") and not isinstance(ADAPTERS["planed"].find(), Found):
        pytest.skip("planed is not here")
    done = planebench("switch", "check", *arguments)
    assert done.code == 2, done
    assert words in done.err and not done.out


def test_a_switch_that_is_not_here(planebench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANEBENCH_PLANED", "/nowhere/planed")
    done = planebench("switch", "check", "planed")
    assert done.code == 3
    assert "is not installed; to install:" in done.err
