# SPDX-License-Identifier: BSD-3-Clause
"""The progress bar off a terminal: a line a step, and what went wrong in any case."""

from __future__ import annotations

import pytest

from planebench.cli.bar import Bar


@pytest.mark.parametrize(("quiet", "said"), [(False, ["[1/2] a step", "it failed"]), (True, ["it failed"])])
def test_quiet_keeps_what_went_wrong(capsys: pytest.CaptureFixture[str], quiet: bool, said: list[str]) -> None:
    with Bar(2, quiet=quiet) as bar:
        bar.working_on("a step")
        bar.advance()
        bar.line(f"[{bar.done}/{bar.steps}] a step")
        bar.tell("it failed")
    out, err = capsys.readouterr()
    assert (out, err.splitlines()) == ("", said)
