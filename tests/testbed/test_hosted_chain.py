# SPDX-License-Identifier: BSD-3-Clause
"""What the functions of a chain run in, as users write it: prefixes, options beside options, quotes, one text."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planebench.model.chain_name import OWN, chain_label, chain_slug, quote, split, unquote, vnf_name
from planebench.model.dimensions import HostingName
from planebench.model.errors import UsageError
from planebench.model.scenarios import build
from planebench.testbed.chain import build_chain, hosted_chain, parse_chain, resolve_chain
from planebench.testbed.hosting.registry import HOSTINGS

COMMAND = 'dpdk-testpmd {eal} -- --forward-mode=io --eth-peer="0,02:00:00:00:00:01"'


def test_prefixes_and_options_of_both() -> None:
    firewall, l3fwd, l2fwd = parse_chain("container:firewall:memory_mb=99:default=permit, separate:l3fwd,l2fwd")
    assert (firewall.kind.name, firewall.hosting, l3fwd.hosting, l2fwd.hosting) == (
        *("firewall", "container", "separate", None),
    )
    assert (firewall.settings(), firewall.hosting_values()) == ({"default": "permit"}, {"memory_mb": 99})
    assert firewall.text == "container:firewall:default=permit:memory_mb=99"


def test_a_command_is_quoted_once_and_comes_back_whole() -> None:
    text = f"exec:{quote(COMMAND)}:memory_mb=99,l2fwd"
    own, _ = parse_chain(text)
    assert (own.own, own.subject, own.kind.kind) == (True, COMMAND, "")
    assert own.hosting_values() == {"command": COMMAND, "memory_mb": 99}
    assert resolve_chain(text, Path("/")) == text == resolve_chain(resolve_chain(text, Path("/")), Path("/"))
    (bare,) = parse_chain("exec:my-vnf {eal} -- --quiet")  # as a shell leaves it
    assert (bare.subject, bare.text) == ("my-vnf {eal} -- --quiet", "exec:my-vnf {eal} -- --quiet")


@given(st.lists(st.text(max_size=12), min_size=1, max_size=5))
def test_what_is_quoted_is_split_nowhere_else(texts: list[str]) -> None:
    assert [unquote(part) for part in split(",".join(map(quote, texts)), ",")] == texts


def test_paths_of_a_hosting_become_absolute(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    resolved = resolve_chain("exec:true:image=root", tmp_path)
    assert resolved == f"exec:true:image={tmp_path}/root"
    with pytest.raises(UsageError, match=r'exec: image "/gone" cannot be read'):
        resolve_chain("exec:true:image=/gone", tmp_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("container", ["container stands before what runs in it", '"container:l2fwd"']),
        ("exec:", ['"exec:COMMAND"']),
        ("container:frewall", ["unknown network function", "did you mean firewall?"]),
        ("separate:l2fwd:memory_mb=1", ["unknown option of l2fwd", "idle"]),
        ("l2fwd:memory_mb=1", ["unknown option of l2fwd", "send_burst"]),
        ("container:l2fwd:idle=never", ['idle "never" is not valid', "poll, sleep"]),
        ("container:firewall:memory=1", ["unknown option of firewall", "did you mean memory_mb?"]),
        ('exec:"my-vnf,l2fwd', ["unbalanced double quote"]),
        ("docker:l2fwd", ["unknown network function", "docker"]),
    ],
)
def test_what_is_wrong_is_told(text: str, words: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        parse_chain(text)
    assert [word for word in words if word not in str(caught.value)] == [], str(caught.value)


@pytest.mark.parametrize(
    ("chain", "length", "usual", "one"),
    [
        ("", 2, "process", ("", "process")),
        ("", 2, "container", ("", "container")),
        ("container:l2fwd,container:l2fwd", 2, "process", ("", "container")),
        ("container:firewall,l3fwd", 2, "container", ("firewall,l3fwd", "container")),
        ("container:firewall,l3fwd", 2, "separate", ("container:firewall,separate:l3fwd", "process")),
        ("container:firewall,process:l3fwd", 2, "separate", ("container:firewall,l3fwd", "process")),
        ("container:l2fwd:memory_mb=99", 1, "process", ("container:l2fwd:memory_mb=99", "container")),
        ("container:l2fwd:memory_mb=99,l3fwd", 2, "container", ("container:l2fwd:memory_mb=99,l3fwd", "container")),
        ("exec:true", 1, "separate", ("exec:true", "exec")),
    ],
)
def test_one_chain_has_one_text_and_hosting(
    chain: str, length: int, usual: HostingName, one: tuple[str, HostingName]
) -> None:
    assert hosted_chain(chain, length, usual) == one
    assert hosted_chain(one[0], length, one[1]) == one


def test_names_for_people() -> None:
    chain = f"container:firewall:rules=/r/my.rules,exec:{quote('/opt/vnf/bin/my-vnf ' + 40 * 'x')}"
    assert chain_label(chain, 2).startswith("container:firewall:rules=my.rules,exec:my-vnf xxx")
    assert chain_label(chain, 2).endswith("…")
    assert (vnf_name(chain, 0), vnf_name(chain, 1)) == ("firewall", "exec")
    assert chain_slug(chain, 2) != chain_slug(chain.replace("/r/", "/s/"), 2)


def test_every_hosting_has_a_name_that_chains_know_and_an_own_vnf_its_subject() -> None:
    assert set(HOSTINGS) <= set(get_args(HostingName)) - {"process"}
    assert all(HOSTINGS[name].options for name in set(OWN) & set(HOSTINGS))


def test_a_topology_knows_who_is_no_task_of_the_tester() -> None:
    mixed = build_chain("loopback", 3, chain="separate:firewall,l2fwd,exec:true", hosting="process")
    assert [vnf.name for vnf in mixed.hosted_vnfs] == ["vnf0", "vnf2"]
    assert ([vnf.name for vnf in mixed.chained_vnfs], mixed.hosted_numbers) == (["vnf1"], (0, 2))
    assert mixed.hosted_ports == {"v0", "v1", "v4", "v5"}
    assert mixed.vnfs[2].hosting_values == {"command": "true"}
    whole = build_chain("loopback", 2, hosting="container")
    assert [vnf.hosting for vnf in whole.vnfs] == ["container"] * 2
    assert not build("v2v", echo=True).hosted_vnfs
    with pytest.raises(UsageError, match="side by side must be functions of planed"):
        build_chain("parallel", 2, chain="exec:true")
