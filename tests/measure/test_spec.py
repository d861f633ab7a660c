# SPDX-License-Identifier: BSD-3-Clause
"""The text of a simulated switch."""

from __future__ import annotations

import dataclasses
import math
import re
from pathlib import Path

import pytest
from builders import sim_spec
from hypothesis import given
from hypothesis import strategies as st

from planebench.measure.sim.runner import SIM_KEYS, SimSpec
from planebench.model.errors import UsageError

PAGE = Path(__file__).parents[2] / "docs" / "simulator.md"


def test_defaults():
    spec = sim_spec("sim")
    assert spec == SimSpec()
    assert (spec.name, spec.capacity, spec.noise, spec.max_rate) == ("sim", 10e6, 0.0, math.inf)


def test_every_key_is_a_field_and_every_field_a_key():
    assert ("name", *SIM_KEYS) == tuple(f.name for f in dataclasses.fields(SimSpec))


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("capacity=10M", "capacity", 10e6),
        ("capacity=1.5G", "capacity", 1.5e9),
        ("capacity=500k", "capacity", 500e3),
        ("capacity=2e6", "capacity", 2e6),
        ("noise=1%", "noise", 0.01),
        ("noise=.25", "noise", 0.25),
        ("modes=50%", "modes", 0.5),
        ("ring=1k", "ring", 1000),
        ("drop_one_in=1000", "drop_one_in", 1000),
        ("latency_us=2.5", "latency_us", 2.5),
        ("name=slow", "name", "slow"),
    ],
)
def test_values(text, key, value):
    spec = sim_spec(f"sim:{text}")
    assert spec == dataclasses.replace(SimSpec(), **{key: value})
    assert type(getattr(spec, key)) is type(value)


@given(st.dictionaries(st.sampled_from([k for k, v in SIM_KEYS.items() if v.kind == "share"]), st.floats(0, 1)))
def test_any_share_is_read_as_written(shares):
    text = ":".join(["sim", *(f"{key}={value!r}" for key, value in shares.items())])
    assert sim_spec(text) == dataclasses.replace(SimSpec(), **shares)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sim:capacty=1M", r'unknown option of switch sim "capacty", did you mean capacity\? Valid: capacity, noise, '),
        ("sim:capacity=0", r'switch sim: capacity "0" is not valid. Valid: a number above 0, e.g. 500k, 10M'),
        ("sim:capacity=-5", r'capacity "-5" is not valid'),
        ("sim:capacity=10Mpps", r'capacity "10Mpps" is not valid'),
        ("sim:capacity=1e999", r'capacity "1e999" is not valid'),
        ("sim:capacity=nan", r'capacity "nan" is not valid'),
        ("sim:noise=2", r'noise "2" is not valid. Valid: 0 to 1, or 0% to 100%'),
        ("sim:ring=1.5", r'ring "1.5" is not valid. Valid: a whole number'),
        ("sim:stretch=0", r'stretch "0" is not valid'),
        ("sim:noise", r'option "noise" is not key=value'),
        ("sim:noise=0:noise=1", r"option noise is given twice"),
        ("sim:name=a b", r'name "a b" is not valid'),
    ],
)
def test_bad_text_names_key_value_and_way_out(text, said):
    with pytest.raises(UsageError, match=said):
        sim_spec(text)


def test_the_page_has_every_key_with_its_text_and_its_examples_are_valid():
    page = PAGE.read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| [^|]* \| (.*) \|$", page, re.MULTILINE))
    assert rows.pop("name")
    assert rows == {key: about.help for key, about in SIM_KEYS.items()}
    examples = re.findall(r"`(sim:[^`]*)`", page) + re.findall(
        r"(sim:\S+)", "".join(re.findall(r"^    .*$", page, re.M))
    )
    assert len(examples) >= 4
    for example in examples:
        for one in example.split(","):
            assert sim_spec(one)
