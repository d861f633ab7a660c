# SPDX-License-Identifier: BSD-3-Clause
"""Methods of every network function by RPC, with right and hostile parameters; and what ``planed --check`` says of
their settings, good and bad."""

from __future__ import annotations

import itertools
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from planed_rig import Document, Planed, document, planed_binary, ring, task

from planebench.planed.client import RpcError

pytestmark = pytest.mark.dataplane

NO_VNFS = {"generator", "monitor", "patch", "bridge", "fib_offload", "fib_source"}
KINDS = ("l2fwd", "l3fwd", "firewall", "nat44", "load_balancer")


def test_no_kind_is_left_out(tmp_path: Path) -> None:
    done = check(tmp_path, "nonsense", {})
    assert done.returncode == 2
    kinds = done.stderr.split("valid kinds: ")[-1].split()
    assert set(kinds) - NO_VNFS == set(KINDS), done.stderr


# --- Methods


FIRST_PAGES: dict[str, tuple[Document, str]] = {
    "firewall.rules": ({"limit": 3}, "rules"),
    "l3fwd.routes": ({"limit": 3}, "routes"),
    "l3fwd.lookup": ({"address": "198.19.0.1"}, "route"),
    "nat44.sessions": ({"limit": 3}, "sessions"),
    "nat44.flush": ({}, "flushed"),
    "load_balancer.backends": ({}, "services"),
    "load_balancer.backend": ({"service": 0, "backend": "backend-0", "up": True}, "up"),
}
HOSTILE: tuple[Any, ...] = (None, -1, 0, 1.5, True, 2**63, 10**30, "", "\0", "x" * 5000, "é\n", [], [[]], {}, {"a": {}})


def test_methods_answer_and_refuse(planed: Planed) -> None:
    """By the right task, by a wrong one, and with parameters of every shape: planed answers, and goes on."""
    ports = [ring(f"r{i}") for i in range(2 * len(KINDS))]
    tasks = [task(kind, kind, f"r{2 * i}", f"r{2 * i + 1}") for i, kind in enumerate(KINDS)]
    planed.apply(ports, tasks)
    for method, (params, key) in FIRST_PAGES.items():
        kind = method.partition(".")[0]
        assert key in planed.call(method, {"task": kind, **params}), method
        wrong = next(other for other in KINDS if other != kind)
        for named in ("none", wrong, "", "x" * 4000):
            with pytest.raises(RpcError, match=f"there is no task .* of kind {kind}"):
                planed.call(method, {"task": named, **params})
        with pytest.raises(RpcError, match='there is no task "" of kind'):
            planed.call(method, params)
        with pytest.raises(RpcError, match='unknown key "nonsense"'):
            planed.call(method, {"task": kind, **params, "nonsense": 1})
        for name, value in itertools.product(("task", *params), HOSTILE):
            refused_or_answered(planed, method, {"task": kind, **params, name: value})
    for method, words in (
        ("firewall.flush", 'kind firewall has no method "flush"; valid: rules'),
        ("l2fwd.rules", 'kind l2fwd has no method "rules"'),
    ):
        with pytest.raises(RpcError, match=words):
            planed.call(method, {"task": method.partition(".")[0]})
    for method in ("router.routes", "firewall", "firewall.", ".rules", "patch.rules", "generator.x"):
        with pytest.raises(RpcError):
            planed.call(method, {"task": "firewall"})
    assert set(planed.tasks()) == set(KINDS)


def refused_or_answered(planed: Planed, method: str, params: Document) -> None:
    try:
        answer = planed.call(method, params)
    except RpcError as error:
        assert str(error)
    else:
        assert isinstance(answer, dict)


# --- planed --check


def check(folder: Path, kind: str, more: Document) -> subprocess.CompletedProcess[str]:
    """What ``planed --check`` says of a task."""
    path = folder / "config.json"
    path.write_text(json.dumps(document("c", [ring("a"), ring("b")], [task("vnf", kind, "a", "b", **more)])))
    return subprocess.run([planed_binary(), "--check", str(path)], capture_output=True, text=True, timeout=60)


BAD: list[tuple[str, Any, str]] = [
    ("l2fwd", {}, 'task vnf: kind l2fwd has no "settings"; leave it out'),
    ("l3fwd", {"route": []}, 'unknown key "route"'),
    ("l3fwd", {"routes": [{"prefix": "10.0.0.1/8"}]}, "10.0.0.0/8"),
    ("l3fwd", {"routes_file": "/nowhere"}, "No such file or directory"),
    ("l3fwd", {"routes_file": "/"}, "/"),
    ("firewall", {"rule": []}, 'unknown key "rule"'),
    ("firewall", {"rules": ["permit"]}, "rules"),
    ("firewall", {"rules_file": "/nowhere"}, "No such file or directory"),
    ("firewall", {"rules_file": "/dev/zero"}, "/dev/zero"),
    ("nat44", {"ports": 3}, 'unknown key "ports"'),
    ("nat44", {"outside": ["224.0.0.1"]}, "unicast"),
    ("nat44", {"sessions_max": 10**12}, "sessions_max"),
    ("load_balancer", {"service": []}, 'unknown key "service"'),
    ("load_balancer", {"table_size": 1000}, "no prime"),
    *((kind, 7, "settings") for kind in KINDS),
]


@pytest.mark.parametrize(("kind", "settings", "words"), BAD)
def test_check_of_bad_settings(tmp_path: Path, kind: str, settings: Any, words: str) -> None:
    done = check(tmp_path, kind, {"settings": settings})
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert words in done.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_check_of_defaults(tmp_path: Path, kind: str) -> None:
    done = check(tmp_path, kind, {} if kind == "l2fwd" else {"settings": {}})
    assert done.returncode == 0, done.stderr
