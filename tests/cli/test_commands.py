# SPDX-License-Identifier: BSD-3-Clause
"""list, plan show, doctor, export and report: what they print, on runs in every state."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from builders import make_run, store_run

from planebench import __version__
from planebench.host.planed_program import PLANED_ENV
from planebench.model.header import Finished, Run
from planebench.store import RunWriter

ISSUE_KEYS = {
    "switch",
    "version",
    "scenario",
    "direction",
    "chain_length",
    "frame_size_bytes",
    "wire",
    "hosting",
    "verdict",
    "throughput_pps",
    "throughput_l1_gbps",
    "loss_ratio",
    "latency_us",
    "switch_cycles_per_packet",
}


def rows(planebench, *command: object) -> list[dict[str, object]]:
    done = planebench(*command, "--json")
    assert (done.code, done.err) == (0, "")
    (only,) = json.loads(done.out).values()
    return only


def test_version(planebench) -> None:
    done = planebench("--version")
    assert (done.code, done.out) == (0, f"planebench {__version__}\n")


def test_list_switches(planebench) -> None:
    switches = {row["switch"]: row for row in rows(planebench, "list", "switches")}
    assert {"planed", "ovs-dpdk", "testpmd", "sim"} <= set(switches)
    assert next(iter(switches)) == "planed"
    for row in switches.values():
        assert (row["version"] == "") == (row["found"] == "no") == (row["how to install it"] != "")
        assert row["wires"]


def test_list_names_a_switch_that_is_not_here_and_how_to_get_it(planebench, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv(PLANED_ENV, str(tmp_path / "nothing"))
    (row,) = (row for row in rows(planebench, "list", "switches") if row["switch"] == "planed")
    assert row["found"] == "no"
    assert PLANED_ENV in str(row["how to install it"])
    assert PLANED_ENV in planebench("list", "switches").out


@pytest.mark.parametrize(
    ("what", "column", "values"),
    [
        ("vnfs", "vnf", {"l2fwd", "l3fwd", "firewall", "nat44", "load_balancer"}),
        ("traffic", "traffic", {"plain", "imix", "facebook", "fib", "pcap"}),
        ("scenarios", "scenario", {"p2p", "p2v", "v2v", "loopback"}),
        ("suites", "suite", {"quick", "can17"}),
    ],
)
def test_the_other_lists(planebench, what: str, column: str, values: set[str]) -> None:
    assert values <= {str(row[column]) for row in rows(planebench, "list", what)}
    done = planebench("list", what)
    assert done.code == 0
    assert all(value in done.out for value in values)


def test_list_runs(planebench, own_run_folder: Path) -> None:
    assert planebench("list", "runs").out == "no runs\n"
    store_run(own_run_folder, make_run())
    store_run(
        own_run_folder, make_run(run_id="20261122-000000-killed", started_at="2026-11-22T00:00:00Z"), finish=False
    )
    listed = rows(planebench, "list", "runs")
    assert [row["run"] for row in listed] == ["20261121-123356-quick", "20261122-000000-killed"]
    assert [row["ended"] for row in listed] == ["complete", "killed or still running"]


def test_plan_show_is_every_point_once(planebench) -> None:
    done = planebench("plan", "show", "quick", "--json")
    shown = json.loads(done.out)
    ids = [point["id"] for point in shown["points"]]
    # 3 switches x 2 sizes x (2 + 3 + 2 + 2 directions)
    assert len(ids) == len(set(ids)) == 3 * 2 * 9
    assert "planed/p2v/reversed/64/virtio/process" in ids
    assert 0 < shown["estimate_s"] <= shown["estimate_max_s"] < 300
    text = planebench("plan", "show").out
    assert all(point in text for point in ids)
    assert "18 test points of 3 switches, about" in text
    assert "if comparisons stay open" in planebench("plan", "show", "netsoft19").out


def test_plan_show_takes_the_options_of_run(planebench) -> None:
    done = planebench(
        "plan", "show", "--switch", "planed,planed", "--scenario", "p2p,loopback", "--frame-size", "64,9000",
        "--direction", "unidirectional", "--chain-length", "1,5", "--json",
    )  # fmt: skip
    points = json.loads(done.out)["points"]
    assert {point["switch"] for point in points} == {"planed", "planed#2"}
    assert {(point["scenario"], point["chain_length"]) for point in points} == {
        ("p2p", 0),
        ("loopback", 1),
        ("loopback", 5),
    }
    assert len(points) == 2 * 3 * 2


def test_plan_show_tells_what_it_leaves_out(planebench) -> None:
    done = planebench("plan", "show", "--direction", "reversed")
    assert "left out: p2p: direction reversed is not valid for p2p" in done.out


def test_plan_show_of_a_suite_has_its_parts_what_it_leaves_out_and_trials_that_fit(
    planebench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What other tests, or none, have found of this machine changes how much fits into a few minutes.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    size = ("--frame-size", "64", "--chain-length", "1")
    asked = ("plan", "show", "conext19", *size, "--wire", "memif", "--switch", "sim,snabb", "--time-budget", "4m")
    shown = json.loads(planebench(*asked, "--json").out)
    assert [part["part"] for part in shown["parts"]][:4] == ["throughput", "no-line", "table-3", "table-4"]
    assert shown["parts"][1]["conditions"]["line_bps"] == ["none"]
    assert "wire" in {entry["what"] for entry in shown["differs"]}
    (shared,) = (p for p in shown["points"] if p["id"] == "sim/p2p/bidirectional/64/memif/process")
    assert shared["parts"] == ["throughput", "fig-1"]
    in_processes = [point for point in shown["points"] if point["hosting"] == "process"]
    assert {point["switch"] for point in in_processes if point["left_out"]} == {"snabb"}
    assert any("snabb has no memif wire" in entry["reason"] for entry in shown["skipped"])
    assert shown["estimate_s"] <= 240
    text = planebench(*asked).out
    assert "VNFs send 32 packets at once, or what has come in 100 us" in text
    assert (
        "part table-3: Table 3" in text
        and "not reproduced: Table 1: " in text
        and "not as in the paper: wire: " in text
    )
    assert shown["trials"] in text
    assert "plan conext19 does not fit into 5 s" in planebench(*asked[:-1], "5s").err


def test_doctor(planebench) -> None:
    done = planebench("doctor", "--json")
    findings = json.loads(done.out)["findings"]
    assert done.err == ""
    assert "switch-planed" in {finding["code"] for finding in findings}
    for finding in findings:
        assert set(finding) == {"code", "level", "text", "remedy"}
        assert finding["level"] in ("ok", "warning", "problem")
        assert finding["text"]
        assert finding["level"] == "ok" or finding["remedy"], finding
    assert done.code == int(any(finding["level"] == "problem" for finding in findings))
    text = planebench("doctor")
    assert text.code == done.code
    assert all(finding["level"] in text.out for finding in findings)


def test_export_json(planebench, stored: Run) -> None:
    done = planebench("export", "latest", "--format", "json")
    assert (done.code, done.err) == (0, "")
    document = json.loads(done.out)
    assert set(document) == {
        "results",
        "comparisons",
        "calibration",
        "answers",
        "chains",
        "conditions",
        "drift",
        "papers",
        "export_version",
    }
    assert len(document["results"]) == len({trial.point for trial in stored.trials})
    for result in document["results"]:
        assert set(result) >= ISSUE_KEYS
    assert planebench("export").out == done.out, "json is the default, latest the default run"


def test_export_csv_has_the_same_results(planebench, stored: Run, tmp_path: Path) -> None:
    results = json.loads(planebench("export").out)["results"]
    path = tmp_path / "out.csv"
    done = planebench("export", stored.header.run_id, "-f", "csv", "--out", path)
    assert (done.code, done.out) == (0, "")
    table = list(csv.DictReader(io.StringIO(path.read_text())))
    assert len(table) == len(results)
    for row, result in zip(table, results, strict=True):
        for key in ISSUE_KEYS - {"latency_us"}:
            assert row[key] == ("" if result[key] is None else str(result[key]))


def test_report(planebench, stored: Run, own_run_folder: Path, tmp_path: Path, monkeypatch) -> None:
    done = planebench("report")
    assert (done.code, done.err) == (0, "")
    page = own_run_folder / stored.header.run_id / "report.html"
    assert f"report: {page}" in done.out
    assert page.read_bytes().lstrip().startswith(b"<!")
    for word in ("p2p", "p2v", "v2v", "loopback", "planed", "ovs-dpdk", "testpmd"):
        assert word in done.out
    assert len(done.out.splitlines()) < 31 and done.out.rstrip().endswith(" · planebench report --all")
    monkeypatch.setattr("planebench.report.html.to_html", lambda _: b"<!")  # charts take seconds
    everything = planebench("report", "--all").out
    assert "How to repeat this run" in everything and len(everything.splitlines()) > 100
    elsewhere = tmp_path / "page.html"
    assert f"report: {elsewhere}" in planebench("report", "latest", "--html", elsewhere).out
    assert elsewhere.is_file()


def test_report_of_a_run_without_trials(planebench, own_run_folder: Path) -> None:
    with RunWriter.create(own_run_folder, make_run().header):
        pass
    done = planebench("report")
    assert done.code == 0
    assert "No trial has been measured." in done.out and "· incomplete" in done.out
    document = json.loads(planebench("export").out)
    assert document.pop("conditions")["found"] == []
    nothing = {"latency": [], "throughput": []}
    nothing_else = {
        "results": [],
        "comparisons": [],
        "calibration": None,
        "answers": [],
        "drift": None,
        "papers": [],
        "export_version": 2,
    }
    assert document == {**nothing_else, "chains": nothing}
    assert planebench("export", "-f", "csv").out.startswith("run_id,switch,version,")


def test_report_of_an_interrupted_run(planebench, own_run_folder: Path) -> None:
    whole = make_run()
    finished = Finished("interrupted", "2026-11-21T12:40:00Z", "stopped by Ctrl-C or SIGTERM")
    store_run(own_run_folder, Run(whole.header, whole.trials[:5], finished))
    done = planebench("report")
    assert done.code == 0
    assert "interrupted: stopped by Ctrl-C or SIGTERM" in done.out
    assert len(json.loads(planebench("export").out)["results"]) == len({t.point for t in whole.trials[:5]})


def test_report_of_a_run_that_was_killed_in_a_line(planebench, own_run_folder: Path) -> None:
    store_run(own_run_folder, make_run(), finish=False)
    path = own_run_folder / make_run().header.run_id
    trials = path / "trials.jsonl"
    trials.write_bytes(trials.read_bytes()[:-20])
    done = planebench("report")
    assert done.code == 0
    assert "· incomplete" in done.out and "is incomplete" in done.out
    assert (path / "report.html").is_file()


def test_output_into_a_pipe_that_closes_ends_as_by_sigpipe(planebench, stored: Run, monkeypatch) -> None:
    class Closed(io.RawIOBase):
        def writable(self) -> bool:
            return True

        def write(self, _: object) -> int:
            raise BrokenPipeError

    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BufferedWriter(Closed(), 1)))
    assert planebench("export").code == 141


def test_a_simulated_run_says_that_functions_and_traffic_change_nothing(planebench, own_run_folder: Path) -> None:
    fast = ("--switch=sim:capacity=10M", "--duration=0.02", "--repeat=1", "--loads=none", "--frame-size=128")
    chains = ("--chain=nat44,l3fwd", "--chain=l3fwd", "--chain=firewall", "--direction=unidirectional")
    done = planebench("run", "quick", *fast, *chains, "--traffic=plain,imix,ipv6")
    assert done.code == 0
    assert "left out: loopback nat44,l3fwd, traffic ipv6: nat44 passes IPv4 only" in done.err
    assert "→ imix 362 B" in done.out
    (folder,) = own_run_folder.iterdir()
    notes = json.loads((folder / "run.json").read_text())["warnings"]
    assert any(it.startswith("sim: the simulator does not model network functions or traffic prof") for it in notes)
    assert len((folder / "trials.jsonl").read_text().splitlines()) == 3 * 3 - 1
    planebench("run", "quick", *fast, "--scenario=p2p", "--name=p2p")
    header = json.loads(next(own_run_folder.glob("*-p2p/run.json")).read_text())
    assert not any("simulator" in warning for warning in header["warnings"])


def test_what_is_in_the_files_of_traffic_is_kept(planebench, own_run_folder: Path, tmp_path: Path) -> None:
    """An address list may change while its path does not: --resume then refuses, by these digests."""
    addresses = tmp_path / "ips.txt"
    found = []
    for text in ("10.0.0.1\n", "10.0.0.2\n"):
        addresses.write_text(text)
        profile = tmp_path / "mine.yaml"
        profile.write_text(f"dst_ips: {{file: {addresses}}}\n")
        name = f"n{len(found)}"
        options = ("--switch=sim", "--scenario=p2p", "--duration=0.02", "--repeat=1", "--loads=none", f"--name={name}")
        assert planebench("run", *options, f"--traffic={profile}").code == 0
        settings = json.loads(next(own_run_folder.glob(f"*-{name}/run.json")).read_text())["settings"]
        found.append(settings["traffic_files"])
    assert all(text.startswith(f"{addresses} ") for text in found)
    assert found[0] != found[1]


def test_an_outage_that_a_switch_cannot_have_is_refused_before_anything_starts(planebench, tmp_path: Path) -> None:
    told = ("outage", "--chain", "separate:l2fwd", "--restart", "vnf0")
    done = planebench(*told, "--switch", "linux-bridge")
    if "is not installed" in done.err:
        pytest.skip(done.err)
    assert done.code == 2
    assert "--switch linux-bridge: not supported: linux-bridge connects VNFs by veth" in done.err
    assert "ring_size" in planebench(*told, "--ring-size", "100").err
    assert 'unknown wire "token-ring"' in planebench(*told, "--wire", "token-ring").err
