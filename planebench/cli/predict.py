# SPDX-License-Identifier: BSD-3-Clause
"""``planebench predict``: the throughput of chains, predicted from single hops and from chains of other lengths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from planebench.cli.show import complain, plain_table, print_json
from planebench.model.errors import INCONCLUSIVE, UsageError
from planebench.model.words import NOTHING, interval, mpps, percent, point_words, printable
from planebench.plans.items import items
from planebench.stats.chain_prediction import Prediction, Way, mean_error, predictions
from planebench.stats.counting import counts
from planebench.stats.derived import Derived
from planebench.store import find_run, read_run

_WAYS: dict[Way, str] = {"hops": "p2v, v2v, reversed p2v", "first": "loopback-1 and v2v", "lengths": "other lengths"}
_PARTS = ("p2v", "v2v", "loopback")
LENGTH_MAX = 1000


def predict(run: str, runs_dir: Path | None, *, length: str, json: bool) -> int:
    """Print the predictions of every chain of a run, and of further lengths; return the exit code.

    It is INCONCLUSIVE if there is none for want of accepted trials. Raises UsageError for a bad length, and for a run
    whose plan has nothing to predict a chain from.
    """
    lengths = [_length(text) for text in items("--length", length)] if length else []
    stored = read_run(find_run(runs_dir, run))
    derived = Derived(stored)
    found = predictions(derived, lengths)
    if json:
        errors = {way: mean_error(found, way) for way in _WAYS}
        print_json({"run": stored.header.run_id, "predictions": [_plain(it) for it in found], "mean_error": errors})
        return 0
    if not found:
        return _nothing(derived)
    Console(highlight=False).print(_table(found))
    print("\n".join(_errors(found)))
    return 0


def _nothing(derived: Derived) -> int:
    """Return INCONCLUSIVE, and say so, where hops or chains were measured but have no accepted trial."""
    run = derived.run.header.run_id
    takes = "it takes p2v, v2v and reversed p2v, or a chain of one and v2v, or chains of three lengths"
    rejected = [it.point for it in derived.results if it.point.scenario in _PARTS and not counts(it)]
    if not rejected:
        raise UsageError(f"run {run} has nothing to predict a chain from; {takes}")
    complain(
        f"run {run} predicts no chain: {takes}, and {point_words(rejected[0])} of {rejected[0].switch} has no accepted "
        f"trial{' (+ more)' * (len(rejected) > 1)}"
    )
    return INCONCLUSIVE


def _length(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= LENGTH_MAX:
        raise UsageError(f'--length: "{text}" is not valid. Valid: a number of VNFs, 1 to {LENGTH_MAX}')
    return int(text)


def _plain(it: Prediction) -> dict[str, Any]:
    low, high = it.estimate.interval() if it.estimate else (None, None)
    return {
        "switch": it.point.switch,
        "point": it.point.point_id,
        "chain_length": it.point.chain_length,
        "way": it.way,
        "predicted_pps": it.pps,
        "low_pps": low,
        "high_pps": None if it.is_bound else high,
        "is_bound": it.is_bound,
        "measured_pps": it.measured_pps,
        "error": it.error,
        "answer": it.against.answer if it.against else None,
    }


def _table(found: Sequence[Prediction]) -> Any:
    table = plain_table("chain", "switch", "predicted from", "Mpps", "interval", "measured", "error")
    for it in found:
        low, high = it.estimate.interval() if it.estimate else (None, None)
        cells = (
            point_words(it.point),
            printable(it.point.switch),
            _WAYS[it.way],
            ("≥" if it.is_bound else "") + mpps(it.pps),
            "" if it.is_bound else interval(low, high, mpps),
            mpps(it.measured_pps),
            NOTHING if it.error is None or it.is_bound else f"{it.error * 100:+.1f} %",
        )
        table.add_row(*map(Text, cells))
    return table


def _errors(found: Sequence[Prediction]) -> Iterator[str]:
    for way, words in _WAYS.items():
        error = mean_error(found, way)
        if error is not None:
            yield f"mean error from {words}: {percent(error)}"
