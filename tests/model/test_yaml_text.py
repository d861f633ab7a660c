# SPDX-License-Identifier: BSD-3-Clause
"""Text that users write: nothing of it is lost, or read as something else, without a word."""

from __future__ import annotations

from pathlib import Path

import pytest

from planebench.cli.jobs import OPTION_KINDS
from planebench.lab.matrix import read_matrix
from planebench.model.errors import UsageError
from planebench.model.text import parse_yaml, read_text
from planebench.plan.schema import load_plan
from planebench.testbed.traffic import parse_traffic

READERS = {
    "plan": load_plan,
    "profile": lambda path: parse_traffic(str(path)),
    "matrix": lambda path: read_matrix(path, OPTION_KINDS),
}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\nb: 2\na: 3\n", "line 3, column 1: key a is there twice, first in line 1; remove one of them"),
        ("a:\n  {64: 1, 0x40: 2}", "line 2, column 11: key 0x40 is there twice, first in line 2; remove one of them"),
        ("- 12:34:56", "line 1, column 3: YAML reads 12:34:56 as the number 45296; write it in quotes"),
        ("52:54:00:12:34:56: 1", "line 1, column 1: YAML reads 52:54:00:12:34:56 as the number"),
        ("a: 1:30.5", "line 1, column 4: YAML reads 1:30.5 as the number 90.5; write it in quotes"),
        ("a: 0100", "column 4: YAML reads 0100 as the number 64; write it in quotes, or without the leading 0"),
        ("a: 0x_", " is not YAML: invalid literal"),
        ("[" * 1000, " is nested too deeply; remove some levels of brackets or indentation"),
    ],
)
@pytest.mark.parametrize("kind", READERS)
def test_every_reader_says_what_would_be_lost(kind: str, text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        READERS[kind](path)
    assert words in str(caught.value)


def test_what_is_meant_is_read() -> None:
    text = """
    quoted: ["12:34:56", '0100']
    mac: 02:00:00:00:00:01
    date: 2026-11-28
    numbers: [0, -1, 0.5, 0x40, 1_000, 1e3]
    base: &base {k: 1}
    more: {<<: *base, k: 2}
    """
    assert parse_yaml(text, "x") == {
        "quoted": ["12:34:56", "0100"],
        "mac": "02:00:00:00:00:01",
        "date": "2026-11-28",
        "numbers": [0, -1, 0.5, 64, 1000, "1e3"],
        "base": {"k": 1},
        "more": {"k": 2},
    }


@pytest.mark.parametrize("kind", READERS)
def test_encodings(kind: str, tmp_path: Path) -> None:
    text = {
        "plan": "version: 1\nname: \N{MIDDLE DOT}",
        "profile": "summary: \N{MIDDLE DOT}\nvlan: 9",
        "matrix": "version: 1\nname: \N{MIDDLE DOT}",
    }[kind]
    said = set()
    for name, encoding in (("bom.yaml", "utf-8-sig"), ("none.yaml", "utf-8")):
        path = tmp_path / name
        path.write_text(text, encoding=encoding)
        try:
            said.add(str(READERS[kind](path)).replace(path.stem, ""))
        except UsageError as error:
            said.add(str(error).replace(path.stem, ""))
    assert len(said) == 1 and "\ufeff" not in said.pop()
    for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
        path.write_text(text, encoding=encoding)
        with pytest.raises(UsageError, match=r"none\.yaml cannot be read: it is UTF-16 text; save it as UTF-8"):
            READERS[kind](path)
    path.write_text(text, encoding="latin-1")
    with pytest.raises(UsageError, match="cannot be read: not UTF-8 text; give a readable YAML file"):
        READERS[kind](path)


@pytest.mark.parametrize("name", ["mine.YAML", "mine.Yml"])
def test_suffixes_in_capitals(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text("vlan: 9\n")
    assert parse_traffic(name).vlan == 9
    with pytest.raises(UsageError, match=r"^mine\.\w+: unknown key \"vlan\""):
        load_plan(name)


def test_a_text_has_no_mark(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"\xef\xbb\xbfa\r\nb")
    assert read_text(path, "x", "") == "a\r\nb"
