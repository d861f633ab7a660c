# SPDX-License-Identifier: BSD-3-Clause
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from builders import make_header, make_point, make_trial

from planebench.analysis.compare import Derived
from planebench.model.errors import UsageError
from planebench.model.header import Run
from planebench.report.images import write_figures
from planebench.report.svg import FONT


def _run() -> Run:
    points = (make_point("planed"), make_point("testpmd"), make_point("planed", "v2v"), make_point("testpmd", "v2v"))
    return Run(make_header(), tuple(make_trial(i, p, 8.0 + i) for i, p in enumerate(points)))


def test_every_figure_is_written(tmp_path: Path) -> None:
    written = write_figures(Derived(_run()), tmp_path / "figures")
    assert [path.name for path in written] == ["overview.svg"]
    assert set(written) == set((tmp_path / "figures").iterdir())
    svg = (tmp_path / "figures/overview.svg").read_text()
    assert 'fill="white"' in svg
    root = ET.fromstring(svg)
    assert [child.tag.rpartition("}")[2] for child in root][:2] == ["title", "desc"]
    assert root.get("role") == "img" and "data-about" not in svg
    assert root.get("font-family") == FONT, "fonts that are everywhere"


@pytest.mark.parametrize("width_mm", [84, 178])
def test_a_width_is_kept_and_text_keeps_its_size(tmp_path: Path, width_mm: float) -> None:
    for path in write_figures(Derived(_run()), tmp_path, width_mm=width_mm):
        drawn, shown = re.search(r'width="([\d.]+)" .*?viewBox="0 0 ([\d.]+) ', path.read_text()).groups()  # type: ignore[union-attr]
        assert float(drawn) == float(shown) == pytest.approx(width_mm / 25.4 * 96, abs=0.1)


def test_kinds_are_chosen(tmp_path: Path) -> None:
    written = write_figures(Derived(_run()), tmp_path, ("overview",))
    assert [path.name for path in written] == ["overview.svg"]
    assert write_figures(Derived(_run()), tmp_path, ("vnfs",)) == ()
    for wrong, words in (
        ({"only": ("bars",)}, "throughput"),
        ({"width_mm": 8.4}, "40 to 1000"),
        ({"width_mm": float("nan")}, "40 to 1000"),
    ):
        with pytest.raises(UsageError, match=words):
            write_figures(Derived(_run()), tmp_path, **wrong)  # type: ignore[arg-type]
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot write figures"):
        write_figures(Derived(_run()), tmp_path / "file")
