# SPDX-License-Identifier: BSD-3-Clause
"""The source papers: their figures, what they claim, and whether a run here confirms it (docs/papers.md)."""

from planebench.papers.claims import Claim, PaperInfo, all_claims, all_papers
from planebench.papers.data import PaperFigure, paper_facts, paper_figures
from planebench.papers.judge import judge, judge_all, shown
from planebench.papers.told import Compared, Judgement, Outcome

__all__ = [
    "Claim",
    "Compared",
    "Judgement",
    "Outcome",
    "PaperFigure",
    "PaperInfo",
    "all_claims",
    "all_papers",
    "judge",
    "judge_all",
    "paper_facts",
    "paper_figures",
    "shown",
]
