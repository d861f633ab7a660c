# SPDX-License-Identifier: BSD-3-Clause
import re
import struct
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from builders import make_header, make_point, make_trial

from planebench.analysis.compare import Derived
from planebench.model.errors import UsageError
from planebench.model.header import Run
from planebench.report.images import FORMATS, write_figures
from planebench.report.svg import FONT


def _run() -> Run:
    points = (make_point("planed"), make_point("testpmd"), make_point("planed", "v2v"), make_point("testpmd", "v2v"))
    return Run(make_header(), tuple(make_trial(i, p, 8.0 + i) for i, p in enumerate(points)))


def _page_mm(pdf: bytes) -> tuple[float, float]:
    found = re.search(rb"/MediaBox\s*\[\s*0 0 ([\d.]+) ([\d.]+)", pdf)
    assert found
    return float(found[1]) / 72 * 25.4, float(found[2]) / 72 * 25.4


def test_every_figure_is_written_in_every_format(tmp_path: Path) -> None:
    written = write_figures(Derived(_run()), tmp_path / "figures")
    keys = ["overview"]
    assert [path.name for path in written] == [f"{key}.{name}" for key in keys for name in FORMATS]
    assert set(written) == set((tmp_path / "figures").iterdir())
    png = (tmp_path / "figures/overview.png").read_bytes()
    svg = (tmp_path / "figures/overview.svg").read_text()
    assert png.startswith(b"\x89PNG")
    assert 'fill="white"' in svg
    root = ET.fromstring(svg)
    assert [child.tag.rpartition("}")[2] for child in root][:2] == ["title", "desc"]
    assert root.get("role") == "img" and "data-about" not in svg
    assert root.get("font-family") == FONT, "fonts that are everywhere"
    width_px = float(re.search(r'width="([\d.]+)"', svg)[1])  # type: ignore[index]
    assert struct.unpack(">I", png[16:20])[0] == pytest.approx(width_px / 96 * 300, abs=2)


@pytest.mark.parametrize("width_mm", [84, 178])
def test_a_width_is_kept_and_text_keeps_its_size(tmp_path: Path, width_mm: float) -> None:
    for path in write_figures(Derived(_run()), tmp_path, width_mm=width_mm):
        data = path.read_bytes()
        if path.suffix == ".pdf":
            assert _page_mm(data)[0] == pytest.approx(width_mm, abs=0.2)
            assert data.count(b"/FontDescriptor ") == data.count(b"/FontFile") > 0, "all fonts are embedded"
        if path.suffix == ".svg":
            drawn, shown = re.search(r'width="([\d.]+)" .*?viewBox="0 0 ([\d.]+) ', data.decode()).groups()  # type: ignore[union-attr]
            assert float(drawn) == float(shown) == pytest.approx(width_mm / 25.4 * 96, abs=0.1)


def test_kinds_and_formats_are_chosen(tmp_path: Path) -> None:
    written = write_figures(Derived(_run()), tmp_path, ("svg",), ("overview",))
    assert [path.name for path in written] == ["overview.svg"]
    assert write_figures(Derived(_run()), tmp_path, ("svg",), ("loss",)) == ()
    for wrong, words in (
        ({"formats": ("gif",)}, "svg, pdf, png"),
        ({"only": ("bars",)}, "throughput"),
        ({"width_mm": 8.4}, "40 to 1000"),
        ({"width_mm": float("nan")}, "40 to 1000"),
    ):
        with pytest.raises(UsageError, match=words):
            write_figures(Derived(_run()), tmp_path, **wrong)  # type: ignore[arg-type]
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot write figures"):
        write_figures(Derived(_run()), tmp_path / "file")
