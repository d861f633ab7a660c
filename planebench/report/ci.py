# SPDX-License-Identifier: BSD-3-Clause
"""A gate as CI systems read it: JUnit XML, and a summary in Markdown. docs/ci.md."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence

from planebench.analysis.gate import GateResult, JudgementKind
from planebench.model.results import Comparison
from planebench.model.words import METRICS, load_words, printable
from planebench.report.comparison import undecided_words

NOTHING = "no rate was compared"

_MARKS: dict[JudgementKind, str] = {"passes": "✅", "fails": "❌", "inconclusive": "❓"}


def state_of(judgements: Sequence[GateResult]) -> JudgementKind:
    """Return the result of a gate, whose exit code is 0, 1 or 6; without a judgement it is inconclusive."""
    kinds = {judgement.kind for judgement in judgements} or {"inconclusive"}
    return "fails" if "fails" in kinds else "inconclusive" if "inconclusive" in kinds else "passes"


def judgement_words(judgement: GateResult) -> str:
    """Return a judgement in words: ``p2p → 64 B: throughput b / a x 0.910 (limit 0.97)``."""
    j, title = judgement, METRICS[judgement.metric]
    why = f": {j.why}" if j.why else ""
    if j.ratio is None:
        return f"{j.point}: {title} {f'{j.b} / {j.a}' if j.b else f'of {j.a}'}{why}"
    return f"{j.point}: {title} {j.b} / {j.a} x {j.ratio:.3f} (limit {j.limit:g}){why}"


def to_junit(judgements: Sequence[GateResult]) -> bytes:
    """Return a test case for each judgement; one that is inconclusive is an error, because the gate is not passed."""
    judgements = judgements or [GateResult("inconclusive", "throughput", "", "", "gate", 0.0, why=NOTHING)]
    kinds = [judgement.kind for judgement in judgements]
    counts = {"tests": len(kinds), "failures": kinds.count("fails"), "errors": kinds.count("inconclusive")}
    numbers = {"name": "planebench", **{key: str(value) for key, value in counts.items()}}
    root = ET.Element("testsuites", numbers)
    suite = ET.SubElement(root, "testsuite", {**numbers, "skipped": "0"})
    for it in judgements:
        about = {"classname": f"planebench.{it.point}", "name": f"{METRICS[it.metric]} of {it.b or it.a}", "time": "0"}
        case = ET.SubElement(suite, "testcase", {key: printable(value) for key, value in about.items()})
        words = printable(judgement_words(it))
        if it.kind == "passes":
            ET.SubElement(case, "system-out").text = words
        else:
            found = ET.SubElement(case, "failure" if it.kind == "fails" else "error", type=it.kind, message=words)
            found.text = words
    ET.indent(root)
    data: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return data + b"\n"


def to_markdown(
    title: str, comparisons: Sequence[Comparison], judgements: Sequence[GateResult] | None, notes: Iterable[str]
) -> bytes:
    """Return the summary of a job: the gate, None if there is none, and the table of the comparisons."""
    lines = [f"## {_cell(title)}", ""]
    if judgements is not None:
        lines += [f"**The gate {'is ' * (state_of(judgements) == 'inconclusive')}{state_of(judgements)}.**", ""]
        lines += [f"- {_MARKS[it.kind]} {it.kind}: {_cell(judgement_words(it))}" for it in judgements] or [NOTHING]
        lines.append("")
    if comparisons:
        lines += ["| test point | metric | a | b | b / a | interval | answer |", "|---|---|---|---|---:|---:|---|"]
        for c in comparisons:
            metric = METRICS[c.metric] + (f" at {load_words(c.load)}" if c.load else "")
            ends = "–".join("" if end is None else f"{end:.3f}" for end in (c.low, c.high))
            answer = "different" if c.distinguishable else undecided_words(c)
            row = (c.point, metric, c.a, c.b, f"{c.ratio:.3f}", ends, answer)
            lines.append(f"| {' | '.join(map(_cell, row))} |")
        lines.append("")
    lines += [f"> {_cell(note)}" for note in notes]
    return ("\n".join(lines).rstrip() + "\n\n").encode("utf-8", errors="replace")


def _cell(text: str) -> str:
    """Return a text that Markdown shows as it is: no end of a cell, no markup, no HTML."""
    shown = printable(" ".join(text.split())).replace("&", "&amp;").replace("<", "&lt;")
    return "".join(f"\\{c}" if c in "\\|`*_[]#" else c for c in shown)
