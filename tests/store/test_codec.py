# SPDX-License-Identifier: BSD-3-Clause
import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from builders import make_header, make_latency_trial, make_trial
from hypothesis import given, settings

from planebench.model.errors import StoreError
from planebench.model.header import SCHEMA_VERSION, Finished, RunHeader
from planebench.model.records import Anatomy, AnatomyPart, TrafficSent, Trial
from planebench.store.codec import from_json, header_from_json, to_json

sys.path.insert(0, str(Path(__file__).parent))
import strategies as some


@given(some.trials)
@settings(max_examples=60, deadline=None)
def test_trial_round_trip(trial: Trial) -> None:
    line = to_json(trial)
    assert b"\n" not in line
    assert from_json(Trial, line, "here") == trial


@given(some.headers)
@settings(max_examples=60, deadline=None)
def test_header_round_trip(header: RunHeader) -> None:
    assert header_from_json(to_json(header, indent=2), "here") == header


@given(some.endings)
@settings(max_examples=20, deadline=None)
def test_finished_round_trip(finished: Finished) -> None:
    assert from_json(Finished, to_json(finished), "here") == finished


def test_a_flag_of_the_host_stays_a_flag_and_a_float_a_float() -> None:
    header = make_header(host={"flag": True, "one": 1, "real": 1.0, "none": None, "text": "1"})
    back = header_from_json(to_json(header), "here").host
    assert [type(v) for v in back.values()] == [bool, int, float, type(None), str]


def _edited(change: Any) -> bytes:
    document = json.loads(to_json(make_latency_trial()))
    change(document)
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.update(colour="red"), "unknown key colour"),
        (lambda d: d["evidence"].update(moon=1), "unknown key evidence.moon"),
        (lambda d: d["directions"][0].update(lost=1), "unknown key directions.0.lost"),
        (lambda d: d.pop("role"), "missing key role"),
        (lambda d: d["directions"][0].update(offered_packets=1.5), "directions.0.offered_packets"),
        (lambda d: d["directions"][0].update(offered_packets="3"), "directions.0.offered_packets"),
        (
            lambda d: d.update(role="confirm"),
            "role: input should be 'warmup', 'r_plus', 'search', 'latency' or 'outage', got 'confirm'",
        ),
        (lambda d: d["point"].update(chain_length=2), "chain_length 2 does not fit scenario p2p"),
        (lambda d: d["verdict"].update(kind="tester-limited"), "verdict tester-limited needs a reason"),
        (lambda d: d["load"].update(pps_per_direction=float("nan")), "load.pps_per_direction"),
    ],
)
def test_the_schema_is_closed_and_strict(change: Any, said: str) -> None:
    with pytest.raises(StoreError) as caught:
        from_json(Trial, _edited(change), "trials.jsonl, line 7")
    assert str(caught.value).startswith("trials.jsonl, line 7: ")
    assert said in str(caught.value)


@pytest.mark.parametrize("version", [SCHEMA_VERSION - 1, SCHEMA_VERSION + 1, None, "1", True])
def test_another_schema_version_is_told_before_anything_else(version: Any) -> None:
    document = json.loads(to_json(make_header())) | {"schema_version": version, "new_key": 1}
    words = f"schema_version is {version!r}, this planebench reads {SCHEMA_VERSION}. Read the run with the planebench"
    with pytest.raises(StoreError, match=words):
        header_from_json(json.dumps(document).encode(), "run.json")


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"\xff\xfe", b"null"])
def test_a_header_that_is_no_object(data: bytes) -> None:
    with pytest.raises(StoreError, match=r"^run\.json: "):
        header_from_json(data, "run.json")


def test_text_that_is_no_unicode_is_stored_readably() -> None:
    tail = b"log \xff\x80 tail".decode("utf-8", "surrogateescape")
    trial = make_trial(verdict="invalid", reasons=(tail, "line\u2028separator\x00\x1b[31m"))
    back = from_json(Trial, to_json(trial), "here")
    assert back.verdict.texts == ("log ?? tail", "line\u2028separator\x00\x1b[31m")


def test_nan_cannot_be_stored() -> None:
    trial = dataclasses.replace(
        make_trial(), load=dataclasses.replace(make_trial().load, pps_per_direction=float("nan"))
    )
    with pytest.raises(StoreError, match="cannot store Trial"):
        to_json(trial)


def test_what_was_sent_and_the_anatomy_come_back_as_they_went() -> None:
    sent = TrafficSent("n0->n1", 3, 192, ((64, 3),), 2, (2, 1), None, 9, 7, 5, 1, 0, {"not_ip": 4})
    part = AnatomyPart("hop 1", "switch", 1.5, 1.0, 2.0, "", 1.0, 1.5)
    anatomy = Anatomy("n0->n1", 3, {"did not reach vnf0": 1}, (part,), None, "no probe")
    trial = make_trial(sent=(sent,), anatomy=(anatomy,))
    assert from_json(Trial, to_json(trial), "line 1") == trial
