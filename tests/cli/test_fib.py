# SPDX-License-Identifier: BSD-3-Clause
"""``planebench fib``: what it shows of this machine, and what it refuses before anything is sent."""

from __future__ import annotations

import ipaddress
import json

import pytest


def test_show_has_what_ip_route_has(planebench) -> None:
    done = planebench("fib", "show", "--interface", "lo", "--json")
    shown = json.loads(done.out)
    assert (shown["interface"], shown["table"]) == ("lo", "main")
    assert all(route["does"] in ("local", "blackhole", "forward") for route in shown["routes"])
    networks = [ipaddress.ip_network(route["prefix"]) for route in shown["routes"]]
    assert not any(network.is_loopback or network.is_multicast for network in networks)
    assert all(route["prefix"] in planebench("fib", "show", "-i", "lo").out for route in shown["routes"][:3])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["show", "--interface", "nosuch0"], 'no interface "nosuch0" in this network namespace. Valid: lo'),
        (["agent", "--interface", "nosuch0"], 'no interface "nosuch0"'),
        (
            ["agent", "--interface", "lo", "--wire", "8"],
            'wire "8" is not valid; give a number from 0 to 7, or INTERFACE=',
        ),
        (["agent", "--interface", "lo", "--wire", "=1"], 'wire "=1" is not valid'),
        (["agent", "--interface", "lo", "--wire", "nosuch0=1"], 'no interface "nosuch0"'),
        (["show", "--interface", "lo", "--table", "mian"], 'table "mian" is not valid; give main, default or a number'),
        (["agent", "--interface", "lo", "--table", "0"], 'table "0" is not valid'),
        (["agent"], "the following arguments are required: -i/--interface; see planebench fib agent --help"),
        (["agent", "--int", "lo"], "the following arguments are required: -i/--interface"),
        (["agent", "--interface", "lo", "--settle", "-1"], "argument --settle: invalid number of seconds value: '-1'"),
        (["nosuch"], "invalid choice: 'nosuch'"),
    ],
)
def test_bad_input_is_named(planebench, arguments: list[str], words: str) -> None:
    done = planebench("fib", *arguments)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
