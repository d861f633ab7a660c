# SPDX-License-Identifier: BSD-3-Clause
"""``planebench-fib``: what it shows of this machine, and what it refuses before anything is sent."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Callable

import pytest

from planebench_fib import command


@pytest.fixture
def fib(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run the command; return exit code, output and errors."""

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["planebench-fib", *arguments])
        return command.main(), *capsys.readouterr()

    return run


def test_show_has_what_ip_route_has(fib) -> None:
    _, out, _ = fib("show", "--interface", "lo", "--json")
    shown = json.loads(out)
    assert (shown["interface"], shown["table"]) == ("lo", "main")
    assert all(route["does"] in ("local", "blackhole", "forward") for route in shown["routes"])
    networks = [ipaddress.ip_network(route["prefix"]) for route in shown["routes"]]
    assert not any(network.is_loopback or network.is_multicast for network in networks)
    _, lines, _ = fib("show", "-i", "lo")
    assert all(route["prefix"] in lines for route in shown["routes"][:3])


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
        (["agent", "--interface", "lo", "--wire", "an0123456789abcd=1"], 'wire "an0123456789abcd=1" is not valid'),
        (["show", "--interface", "lo", "--table", "mian"], 'table "mian" is not valid; give main, default or a number'),
        (["agent", "--interface", "lo", "--table", "0"], 'table "0" is not valid'),
        (["agent"], "the following arguments are required: -i/--interface; see planebench-fib agent --help"),
        (["agent", "--int", "lo"], "the following arguments are required: -i/--interface"),
        (["agent", "--interface", "lo", "--settle", "-1"], "argument --settle: invalid number of seconds value: '-1'"),
        (["nosuch"], "invalid choice: 'nosuch'"),
    ],
)
def test_bad_input_is_named(fib, arguments: list[str], words: str) -> None:
    code, out, said = fib(*arguments)
    assert (code, out) == (2, "")
    assert words in said
