# SPDX-License-Identifier: BSD-3-Clause
"""The notices of the libraries in planed-static: none is forgotten."""

from __future__ import annotations

import re
import sys
from fnmatch import fnmatch
from pathlib import Path

from packaging_rig import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

import third_party


def test_every_library_that_is_linked_has_its_line() -> None:
    build = (ROOT / "dataplane" / "meson.build").read_text()
    words = re.search(r"^static_args \+= \[('-ljansson'.*)\]", build, re.MULTILINE)
    assert words is not None
    linked = {"rte_eal", *re.findall(r"'-l(\w+)'", words[1])}
    known = {name for component in third_party.COMPONENTS for name in component.linked}
    assert all(any(fnmatch(name, pattern) for pattern in known) for name in linked)
    assert known - {"rte_*"} <= linked, "none is listed that is not linked"


def test_the_texts_are_those_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "libnuma-dev").mkdir()
    (tmp_path / "libnuma-dev" / "copyright").write_text("Copyright of libnuma\n")
    (tmp_path / third_party.LGPL).write_text("GNU LESSER GENERAL PUBLIC LICENSE\n")
    text = third_party.notices(tmp_path, tmp_path)
    assert "- libnuma: LGPL-2.1-only\n" in text and "Copyright of libnuma" in text and "GNU LESSER" in text
    assert "- jansson: MIT\n" in third_party.notices(tmp_path / "none", tmp_path / "none")
