# SPDX-License-Identifier: BSD-3-Clause
"""The units of systemd: they are valid, name commands that exist, and leave planed and the agent what they need."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from planed_rig import CPU, PATIENCE_S, document, ethdev, planed_binary, task, until

import planebench_fib
from planebench.host.process import Supervisor
from planebench.planed.client import PlanedClient
from planebench_fib.command import parser

UNITS = sorted((Path(planebench_fib.__file__).parent / "system").glob("*.service"))


ROOT = Path(__file__).resolve().parents[2]


def alerts() -> list[dict[str, str]]:
    (group,) = yaml.safe_load((UNITS[0].parent / "alerts.yml").read_text(encoding="utf-8"))["groups"]
    return list(group["rules"])


class _Unit(configparser.RawConfigParser):
    def optionxform(self, optionstr: str) -> str:
        return optionstr


def service(path: Path) -> dict[str, str]:
    unit = _Unit(strict=False)
    unit.read_string(path.read_text(encoding="utf-8"))
    return dict(unit["Service"])


def test_there_are_units_for_each_part() -> None:
    assert [path.name for path in UNITS] == [
        "planebench-fib-agent@.service",
        "planebench-fib-metrics.service",
        "planed.service",
    ]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze: apt-get install systemd")
def test_systemd_finds_nothing_wrong(tmp_path: Path) -> None:
    """Their programs, which may not be installed here, are /bin/true."""
    for path in UNITS:
        text = path.read_text(encoding="utf-8")
        for program in ("planed", "planebench-fib"):
            text = text.replace(f"/usr/local/bin/{program} ", "/bin/true ")
        (tmp_path / path.name.replace("@", "@vnf0")).write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *map(str, sorted(tmp_path.iterdir()))],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env={**os.environ, "SYSTEMD_UNIT_PATH": f"{tmp_path}:"},
    )
    ours = [line for line in done.stderr.splitlines() if str(tmp_path) in line or "planed" in line or "fib" in line]
    assert (done.returncode, ours) == (0, [])


def test_the_commands_of_the_units_parse() -> None:
    for path in UNITS:
        program, *words = shlex.split(service(path)["ExecStart"])
        if program.endswith("/planebench-fib"):
            given = [word for word in words if word != "$OPTIONS"] + ["--wire", "vnf0=0"] * ("$OPTIONS" in words)
            parser("planebench-fib").parse_args(given)
        else:
            assert words == ["--config", "/etc/planed/planed.json", "--rpc", "/run/planed/rpc.sock"]


def test_a_table_that_fills_is_told_of_before_it_is_full() -> None:
    """At 88 % (IPv6) and 93.5 % of its room (docs/fib.md)."""
    (rule,) = [rule for rule in alerts() if rule["alert"] == "FibTableNearlyFull"]
    assert 0.5 < float(rule["expr"].split("> ")[1].split(" * ")[0]) <= 0.8


def test_the_example_keeps_routes_for_less_than_the_grace_period() -> None:
    """grace_s of docs/fib-offload.md: then they go, settled or not."""
    for path in (UNITS[0], ROOT / "docs" / "fib-agent.md"):
        text = path.read_text(encoding="utf-8")
        assert [int(word) for word in re.findall(r"--settle (\d+)", text)] == [20]
    assert "`grace_s`, `hold_s` | 30, 3 |" in (ROOT / "docs" / "fib-offload.md").read_text(encoding="utf-8")


@pytest.mark.dataplane
@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: capabilities, veth")
def test_planed_needs_no_more_capabilities_than_its_unit_has(tmp_path: Path) -> None:
    """A port on a kernel interface, and a vhost-user socket for a group."""
    unit = service(next(path for path in UNITS if path.name == "planed.service"))
    capabilities = ",".join(f"+{name.removeprefix('CAP_').lower()}" for name in unit["CapabilityBoundingSet"].split())
    ports = [
        ethdev("wire0", "net_af_packet_wire0,iface=lo,blocksz=16384,framesz=2048,framecnt=512"),
        {"name": "vnf1", "kind": "vhost-user", "path": str(tmp_path / "vnf1"), "group": "daemon"},
    ]
    settings = {"wires": ["wire0"], "routes4": 1000, "vnfs": [{"vnf": 1, "port": "vnf1", "mac": "02:00:00:00:02:01"}]}
    made = document("unit", ports, [task("sw0", "fib_offload", "wire0", "vnf1", settings=settings)], cpu=CPU)
    (tmp_path / "planed.json").write_text(json.dumps(made))
    with Supervisor(Path("/tmp")) as supervisor:
        process = supervisor.spawn(
            "planed",
            [
                *("setpriv", f"--bounding-set=-all,{capabilities}", "--inh-caps=-all", "--no-new-privs"),
                *(planed_binary(), "--config", str(tmp_path / "planed.json"), "--rpc", str(tmp_path / "rpc")),
            ],
            cpus=frozenset(os.sched_getaffinity(0)),
            high_priority=False,
            env={"RUNTIME_DIRECTORY": str(tmp_path)},
        )
        until(lambda: (tmp_path / "rpc").exists() or not process.alive(), "planed has its socket")
        assert process.alive(), process.log_tail()
        with PlanedClient(tmp_path / "rpc", timeout_s=PATIENCE_S) as client:
            assert client.call("stats.get")["tasks"][0]["kind"] == "fib_offload"
        group = (tmp_path / "vnf1").stat().st_gid
        assert group != 0
