# SPDX-License-Identifier: BSD-3-Clause
"""``--switch-option SWITCH.KEY=VALUE``: to which switch an option goes, and what is said of one that is none."""

from __future__ import annotations

import pytest

from planebench.model.errors import UsageError
from planebench.model.switch import parse_switch
from planebench.plan.override import with_switch_options

TWO = ("vpp", "vpp:name=big:rx_ring=4096", "bess")


def put(*options: str, switches: tuple[str, ...] = TWO) -> tuple[str, ...]:
    return with_switch_options(switches, options)


def test_no_option_changes_nothing() -> None:
    assert put() == TWO


def test_to_the_switch_of_that_label() -> None:
    assert put("big.rx_ring=512") == ("vpp", "vpp:name=big:rx_ring=512", "bess")
    assert put("bess.burst=16") == (*TWO[:2], "bess:burst=16")


def test_to_a_label_before_the_switch() -> None:
    assert put("big.rx_ring=512", switches=("big=vpp:burst=1",)) == ("vpp:name=big:burst=1:rx_ring=512",)


def test_a_label_counts_before_an_adapter() -> None:
    """vpp is the label of the first, and the adapter of both."""
    assert put("vpp.rx_ring=1024") == ("vpp:rx_ring=1024", *TWO[1:])


def test_to_every_switch_of_that_adapter_where_no_label_fits() -> None:
    switches = ("vpp:name=a", "vpp:name=b", "bess")
    assert put("vpp.rx_ring=1", switches=switches) == ("vpp:name=a:rx_ring=1", "vpp:name=b:rx_ring=1", "bess")


def test_to_all_of_one_label() -> None:
    assert put("vpp.x=1", switches=("vpp", "vpp")) == ("vpp:x=1", "vpp:x=1")


def test_the_last_word_on_a_key_counts() -> None:
    assert put("bess.burst=16", "bess.burst=8")[2] == "bess:burst=8"
    assert parse_switch(put("big.rx_ring=1", "big.rx_ring=2")[1]).options == {"rx_ring": "2"}


def test_several_keys_stay_apart() -> None:
    spec = parse_switch(put("bess.burst=16", "bess.ring=64")[2])
    assert spec.options == {"burst": "16", "ring": "64"}


def test_a_key_that_begins_as_another_is_another() -> None:
    assert put("big.rx=1")[1] == "vpp:name=big:rx_ring=4096:rx=1"


@pytest.mark.parametrize(
    ("text", "value"),
    [("bess.path=/opt/bess-1.0/bin", "/opt/bess-1.0/bin"), ("bess.args=-m 64=k", "-m 64=k"), ("bess.x=a.b", "a.b")],
)
def test_a_value_may_have_dots_and_equals_signs(text: str, value: str) -> None:
    assert parse_switch(put(text)[2]).options[text.partition(".")[2].partition("=")[0]] == value


def test_a_label_may_have_dots() -> None:
    assert put("v1.2.burst=3", switches=("vpp:name=v1.2",)) == ("vpp:name=v1.2:burst=3",)


@pytest.mark.parametrize("text", ["", "vpp", "vpp.x", "vpp=1", ".x=1", "vpp.=1", "vpp.x=", "=1", "vpp.x=1:2"])
def test_what_is_no_option_is_told_with_its_form(text: str) -> None:
    with pytest.raises(UsageError, match=r"is not SWITCH\.KEY=VALUE, as in testpmd\.burst=16"):
        put(text)


def test_a_switch_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(UsageError, match=r'"vppp".*vpp, big, bess'):
        put("vppp.rx_ring=1")
