# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import pytest

from planebench.model.errors import UsageError
from planebench.model.switch import SwitchSpec, parse_switch
from planebench.plan.expand import switch_labels


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("planed", SwitchSpec("planed", "planed")),
        ("planed:name=old", SwitchSpec("planed", "old")),
        ("old=planed", SwitchSpec("planed", "old")),
        ("docs=fastclick:path=/opt/click", SwitchSpec("fastclick", "docs", {"path": "/opt/click"})),
        ("sim:capacity=10M:noise=1%", SwitchSpec("sim", "sim", {"capacity": "10M", "noise": "1%"})),
    ],
)
def test_a_switch_is_taken_apart(text: str, spec: SwitchSpec) -> None:
    assert parse_switch(text) == spec


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("planed:", 'option "" is not key=value'),
        ("planed:fast", 'option "fast" is not key=value'),
        ("planed:a=", 'option "a=" is not key=value'),
        ("planed:a=1:a=2", "option a is given twice"),
        ("planed:name=a/b", 'name "a/b" is not valid'),
        ("planed:name=" + "x" * 33, "is not valid"),
        ("a/b=planed", 'name "a/b" is not valid'),
        ("=planed", 'option "name=" is not key=value'),
        ("old=planed:name=new", "option name is given twice"),
        ("vpp:path=/opt/vpp,workers=2", 'options are joined by ":", not by ","'),
    ],
)
def test_what_cannot_be_taken_apart_is_named(text: str, problem: str) -> None:
    with pytest.raises(UsageError, match="switch .*" + problem.replace("(", r"\(")):
        parse_switch(text)


def test_labels_are_names_and_numbered_where_they_repeat() -> None:
    texts = ("planed", "planed:drop_one_in=9", "sim:name=fast", "sim", "planed", "a=sim:ring=9")
    assert [label.label for label in switch_labels(texts)] == ["planed", "planed#2", "fast", "sim", "planed#3", "a"]
    assert switch_labels(texts)[1].adapter == "planed:drop_one_in=9"
    assert switch_labels(texts)[5].adapter == "sim:name=a:ring=9", "what is stored has one form"
