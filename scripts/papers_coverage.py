# SPDX-License-Identifier: BSD-3-Clause
"""docs/papers-coverage.md, made from docs/papers-coverage.yaml and from what has run.

papers_coverage.py [--check | --lacking | --evidence WHAT ... [-- OPTION ...]]

Each id is an item of a source paper: a system, an experiment, a figure, a finding. Nobody writes its state: it is
derived from the kept runs (docs/results/runs) and from docs/papers-evidence.yaml. ``--evidence`` adds to the latter:
WHAT is SUITE/PART, which is run with short trials (and OPTIONs of planebench run), or a command; ``--lacking`` prints
what an item names and nothing has run, and claims of no item. A part that is changed has not run; a kept run of it
before counts for what does not need the change.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass, replace
from fnmatch import fnmatchcase
from itertools import groupby
from pathlib import Path
from typing import Any

import docs_check
from record_kept import SUITES as SUITES_KEPT
from record_kept import kept

from planebench.analysis.compare import Derived
from planebench.analysis.counting import counts
from planebench.host.facts import collect
from planebench.model.plan import SECTIONS, Plan
from planebench.model.records import POINT_KEY, Point, VerdictKind
from planebench.model.results import Result
from planebench.model.text import parse_yaml
from planebench.papers.claims import Needs, all_claims
from planebench.plan import SUITES, list_suites
from planebench.plan.expand import points_of
from planebench.plan.passes import MATRIX, group_points, latency_steps
from planebench.plan.schema import load_plan
from planebench.store import read_run
from planebench.testbed.rates import parse_bits

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "docs" / "papers-coverage.yaml"
EVIDENCE = ROOT / "docs" / "papers-evidence.yaml"
PAGE = ROOT / "docs" / "papers-coverage.md"
STATES = {
    "faithful": "it ran as in the paper; differences do not touch what the paper says of it",
    "emulated": "it ran, with another thing in place of what is not here; the note names it",
    "hardware": "built; what a figure needs of hardware or software is not here, and is named",
    "partial": "differs in something that the result rests on, or has not run as it is now",
    "missing": "not there",
}
ORDER = [*STATES]
HEADS = {"emulated": "Emulated, by", "hardware": "Hardware, lacks", "partial": "Partial, lacks", "missing": "Missing"}
KEYS = {"item", "where", "says", "run", "needs", "depends_on", "instead", "note"}
HEAD = """# SPDX-License-Identifier: BSD-3-Clause
# What ran, made by scripts/papers_coverage.py --evidence, with short trials and beside other work: that, not how fast.
# Of a part: the digest of what it measures and under which conditions, and for each switch its points in order:
# c counted, f functional (exact counts, no rates), . none.
"""
OF_TEXTS = {"name", "description", "papers", "left_out", "differs", "purpose", "parts", "seed"}
OF_COUNTS = {"duration_s", "repetitions", "repetitions_max", "restarts", "warmup_s", "starts", "probe_rate_pps"}
OF_COUNTS |= {"duration_sum_s", "burst_repetitions", "time_budget_s"}
OF_SWITCHES = {"switches", "only", "missing_switches", "missing_hostings"}
NOT_CONDITIONS = OF_TEXTS | OF_COUNTS | OF_SWITCHES
"""Keys of a plan without which two parts measure the same under the same conditions."""
OF_MATRIX = {*MATRIX, "hosting", "more_hostings", "traffic"}
"""What options of a run choose among."""
OF_HOST = {"numa_nodes", "cores_allowed", "memory_total_bytes", "hypervisor", "governor"}
OF_INSTALLED = {"switch", "hosting", "placement", "cpu_clock", "wire"}
"""What a test point names and a machine may lack."""
PASSED = re.compile(r"=+ \d+ passed[^a-z]*(, \d+ deselected[^a-z]*)?(, \d+ warnings?[^a-z]*)?in [\d.]+s")
LIMIT_S = 7200

Row = Mapping[str, Any]
Rows = Mapping[str, Row]
Lack = tuple[str, str]
"""``hardware`` or ``partial``, and what is lacking."""
NOTHING: Lack = ("", "")
RATES = "cores for the rates of its VNFs"


@dataclass(frozen=True, slots=True)
class Evidence:
    """That a command ended with 0, or what of a part ran, on a host with these facts.

    ``key``: the digest of the part as it was; ``plan``: the part itself, None of a command; ``points``: for each switch
    of it the letters of its points.
    """

    what: str
    at: str
    commit: str
    host: Mapping[str, Any]
    key: str = ""
    points: Mapping[str, str] = field(default_factory=dict)
    plan: Plan | None = None

    def cells(self, needs: Mapping[str, Any]) -> dict[str, str]:
        """Return for each switch the letters of its points that are as needed; empty where it has none."""
        found: dict[str, str] = {}
        for switch, points in by_switch(self.plan).items() if self.plan else ():
            coded = re.findall(r"(\d+)([cf.])", self.points.get(switch, f"{len(points)}."))
            each = zip(points, "".join(letter * int(n) for n, letter in coded), strict=True)
            wanted = (x for point, x in each if _as(point, needs))
            found[switch] = "".join(wanted)
        return found


# What ran


def told(record: Any) -> Any:
    """Return the fields of a record that are conditions and not as by default, all the way down."""
    if isinstance(record, tuple):
        return [told(it) for it in record]
    if not is_dataclass(record):
        return record
    found = {}
    for it in fields(record):
        value = getattr(record, it.name)
        default = it.default if it.default_factory is MISSING else it.default_factory()
        if it.name not in NOT_CONDITIONS and value != default:
            found[it.name] = told(value)
    return found


def key_of(part: Plan) -> str:
    """Return the digest of what a part measures, and under which conditions."""
    return hashlib.sha256(json.dumps(told(part), sort_keys=True).encode()).hexdigest()[:12]


def conditions(part: Plan) -> dict[str, Any]:
    """Return the conditions of a part, whatever its points are."""
    return {name: value for name, value in told(part).items() if name not in OF_MATRIX}


def by_switch(part: Plan) -> dict[str, list[Point]]:
    """Return the points of a part, by the label of their switch."""
    found: dict[str, list[Point]] = {}
    for point in points_of(part):
        found.setdefault(point.switch, []).append(point)
    return found


def letters(part: Plan, results: Mapping[Point, Result]) -> dict[str, str]:
    """Return the letters of each switch of which something ran, as ``51c2f1.``."""
    steps = [it.step for group in group_points(points_of(part)) for it in latency_steps(part, group)]
    loads: dict[Point, set[str]] = {}
    for step in steps:
        loads.setdefault(step.point, set()).add(step.load)
    found = {}
    for switch, points in by_switch(part).items():
        each = [_letter(part, results.get(point), loads.get(point, set())) for point in points]
        if set(each) != {"."}:
            found[switch] = "".join(f"{len([*same])}{letter}" for letter, same in groupby(each))
    return found


def _letter(part: Plan, result: Result | None, loads: set[str]) -> str:
    if result is None:
        return "."
    bad = (VerdictKind.INVALID, VerdictKind.FUNCTIONAL)
    taken = {it.load for it in result.latency if it.verdict.kind not in bad}
    searched = {it.method for it in result.searches}
    if counts(result) and loads <= taken and set(part.search.methods) <= searched:
        return "c"
    return "f" if result.verdict.kind is VerdictKind.FUNCTIONAL else "."


def told_host(host: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of a host that items need."""
    return {name: host[name] for name in sorted(OF_HOST) if host.get(name)}


def of_run(run: Derived, name: str, sections: Iterable[Plan] = ()) -> Iterator[Evidence]:
    """Yield the evidence of a run of a suite for each part of its plan, or for ``sections`` of the suite as it is."""
    header, results = run.run.header, {it.point: it for it in run.results}
    for part in sections or header.plan.sections:
        if points := letters(part, results):
            what, at = f"{name}/{part.name}", header.started_at[:10]
            yield Evidence(what, at, header.run_id, told_host(header.host), key_of(part), points, part)


def stored(parts: Mapping[str, Plan]) -> list[Evidence]:
    """Return the evidence that was made by ``--evidence``, but of parts that have been changed since."""
    if not EVIDENCE.is_file():
        return []
    rows = [Evidence(**row) for row in parse_yaml(EVIDENCE.read_text(encoding="utf-8"), str(EVIDENCE)) or []]
    now = [replace(it, plan=parts.get(it.what)) for it in rows]
    return [it for it in now if not it.key or (it.plan and key_of(it.plan) == it.key)]


def every(parts: Mapping[str, Plan]) -> list[Evidence]:
    """Return the evidence of the kept runs of the suites, and what is stored."""
    runs = kept()
    return [*(it for name in SUITES_KEPT if name in runs for it in of_run(runs[name], name)), *stored(parts)]


# The state of an item


@dataclass(frozen=True, slots=True)
class Judge:
    """What ran, and the parts as they are now."""

    evidence: Sequence[Evidence]
    parts: Mapping[str, Plan]

    def lacks(self, row: Row) -> tuple[list[Lack], bool]:
        """Return what an item needs and has not, and whether anything of it ran."""
        needs = dict(row.get("needs", {}))
        since = str(needs.pop("since", ""))
        of_host = {name: needs.pop(name) for name in [*needs] if name in Needs.model_fields}
        names = [it for it in row.get("run", ()) if it in self.parts]
        commands = [it for it in row.get("run", ()) if it not in self.parts]
        proofs = [[it for it in self.evidence if it.what == text and not it.key] for text in commands]
        lacking: list[Lack] = [
            ("partial", f"a run of `{text}`") for text, found in zip(commands, proofs, strict=True) if not found
        ]
        used = [it for found in proofs for it in found]
        known = {claim.id for claim in all_claims()}
        lacking += [("partial", f"claim {it}") for it in needs.pop("claims", ()) if it not in known]
        for name in ("hardware", "software", "method"):
            if name in needs:
                lacking.append(("partial" if name == "method" else "hardware", needs.pop(name)))
        of_plan = {name: needs.pop(name) for name in [*needs] if name not in (*POINT_KEY, "switch")}
        found = [[*self._of_part(name, of_plan, needs, since, used)] for name in names]
        lacking += [it for lacks in found for it in lacks if it != NOTHING]
        if names and all(NOTHING in lacks for lacks in found):
            points = [point for name in names for point in points_of(self.parts[name])]
            name = next(it for it in needs if it != "switch" and not any(_as(p, {it: needs[it]}) for p in points))
            lacking.append(_point_lack({name: needs[name]}))
        if of_host and all(Needs(**of_host).unmet(it.host) for it in used):
            lacking.append(("hardware", re.sub(r" \(this host: \w+\)", "", Needs(**of_host).unmet({}))))
        return [*dict.fromkeys(lacking)], bool(used)

    def _of_part(self, name: str, of_plan: Row, needs: Row, since: str, used: list[Evidence]) -> Iterator[Lack]:
        """Yield what a part lacks, NOTHING where it has no such points; add the evidence that has some to ``used``."""
        rows = [it for it in self.evidence if it.what == name and it.key and it.at >= since]
        used += rows
        of_point = {key: wanted for key, wanted in needs.items() if key != "switch"}
        there = any(_as(point, of_point) for point in points_of(self.parts[name]))
        if not rows and there:
            yield _point_lack(of_point) if OF_INSTALLED & of_point.keys() else ("partial", f"a run of {name}")
        for key, wanted in of_plan.items():
            if rows and not (rows := [it for it in rows if it.plan and _has(it.plan, key, wanted)]):
                yield "partial", f"{key} {_text(wanted)}"
        if not there:
            yield NOTHING
        if not there or not rows:
            return
        cells = [it.cells(of_point) for it in rows]
        said = {switch: [it[switch] for it in cells if it.get(switch)] for switch in by_switch(self.parts[name])}
        switches = [it for it in needs.get("switch", said) if it in said]
        if not switches:
            yield NOTHING
        elif not any(set(it) - {"."} for found in said.values() for it in found):
            yield _point_lack(of_point)
        elif "switch" in needs:
            if lost := [it for it in switches if all("." in found for found in said[it])]:
                yield "hardware", f"{', '.join(lost)} in {name}"
            if any(_only_functional(said[it]) for it in switches):
                yield "hardware", RATES
        elif not (whole := [found for found in said.values() if not all("." in it for it in found)]):
            yield "hardware" if OF_INSTALLED & of_point.keys() else "partial", f"all points of {name}"
        elif all(map(_only_functional, whole)):
            yield "hardware", RATES


def _only_functional(found: list[str]) -> bool:
    """Return whether points of a switch all ran, but some without a rate."""
    return any("." not in it for it in found) and not any(set(it) == {"c"} for it in found)


def _point_lack(needs: Row) -> Lack:
    """Return that no points like these ran: hardware where a machine may lack what they are of."""
    installed = {name: wanted for name, wanted in needs.items() if name in OF_INSTALLED}
    said = ", ".join(f"{name} {_text(wanted)}" for name, wanted in (installed or needs).items())
    return "hardware" if installed else "partial", said


def _as(point: Point, needs: Row) -> bool:
    return all(_like(getattr(point, name), wanted) for name, wanted in needs.items())


def _has(part: Plan, name: str, wanted: Any) -> bool:
    """Return whether a part has this value of a key, of its own or of a section."""
    places = [part, *(getattr(part, it) for it in SECTIONS)]
    value = next(getattr(it, name) for it in places if hasattr(it, name))
    there = value if isinstance(value, tuple) else (value,)
    texts = wanted if isinstance(wanted, list) else [wanted]
    return {parse_bits(it) if name.endswith("_bps") else it for it in texts} <= {*there}


def _like(value: object, wanted: object) -> bool:
    return any(fnmatchcase(str(value), str(it)) for it in (wanted if isinstance(wanted, list) else [wanted]))


def _text(wanted: object) -> str:
    return ", ".join(map(str, wanted)) if isinstance(wanted, list) else str(wanted)


def states(source: Mapping[str, Rows], judge: Judge) -> dict[str, tuple[str, list[str]]]:
    """Return the state of each item, and what stands in for what it lacks, or what that is."""
    rows = {key: row for found in source.values() for key, row in found.items()}
    found: dict[str, tuple[str, list[str]]] = {}

    def of(key: str) -> str:
        if key not in found:
            row = rows[key]
            lacking, ran = judge.lacks(row)
            own = _state(row, lacking, ran)
            below = [it for it in row.get("depends_on", ()) if ORDER.index(of(it)) > ORDER.index(own)]
            worst = max([own, *(of(it) for it in below)], key=ORDER.index)
            differs = [text for kind, text in lacking if kind == own]
            instead = [row["instead"]] if own == "emulated" else differs or [text for _, text in lacking]
            found[key] = worst, [*instead, *(f"as {it}" for it in below)]
        return found[key][0]

    for key in rows:
        of(key)
    return found


def _state(row: Row, lacking: Sequence[Lack], ran: bool) -> str:
    if not row.get("run") and not row.get("depends_on"):
        return "missing"
    if any(kind == "partial" for kind, _ in lacking):
        return "partial"
    if row.get("instead") and (ran or not lacking):
        return "emulated"
    return "hardware" if lacking else "faithful"


# The page


def problems(source: Mapping[str, Rows], parts: Mapping[str, Plan]) -> Iterator[str]:
    """Yield what is wrong with the entries, by id. A state that somebody wrote is an unknown key."""
    keys = {key for rows in source.values() for key in rows}
    known = {*(it.name for kind in (Plan, *SECTIONS.values()) for it in fields(kind)), *POINT_KEY, *Needs.model_fields}
    known |= {"switch", "since", "claims", "hardware", "software", "method"}
    for rows in source.values():
        for key, row in rows.items():
            yield from (f"{key}: unknown key {name}" for name in sorted(row.keys() - KEYS))
            yield from (f"{key}: no {name}" for name in ("item", "where", "says") if not row.get(name))
            yield from (f"{key}: no such need: {it}" for it in row.get("needs", {}) if it not in known)
            yield from (f"{key}: no such item: {it}" for it in row.get("depends_on", ()) if it not in keys)
            for it in row.get("run", ()):
                if it.partition("/")[0] in list_suites() and it not in parts:
                    yield f"{key}: no such part: {it}"


def lines(source: Mapping[str, Rows], found: Mapping[str, tuple[str, list[str]]]) -> Iterator[str]:
    """Yield the lines of the page."""
    count = Counter(state for state, _ in found.values())
    yield "# What is here of each paper"
    yield ""
    yield f"{len(found)} systems, experiments, figures and findings of the four [papers](papers.md). For each,"
    yield "[papers-coverage.yaml](papers-coverage.yaml) has where it stands, what it says, and what covers it here."
    yield "`scripts/papers_coverage.py` derives the states from kept runs and from"
    yield "[papers-evidence.yaml](papers-evidence.yaml), and makes this page. A state says that it ran, perhaps in one"
    yield "short trial; what came out is in [claims.csv](results/data/claims.csv)."
    yield ""
    yield "| state | items | meaning |"
    yield "|---|---|---|"
    yield from (f"| {state} | {count[state]} | {text} |" for state, text in STATES.items())
    for paper, rows in source.items():
        yield from ("", f"## {paper}")
        for state in STATES:
            items = [key for key in rows if found[key][0] == state]
            if items and state == ORDER[0]:
                yield from ("", f"Faithful: {', '.join(items)}.")
            elif items:
                yield from ("", f"{HEADS[state]}:", "")
                resting = {key: found[key][1] for key in items if all(it.startswith("as ") for it in found[key][1])}
                yield from (_line(key, rows[key], found[key][1]) for key in items if key not in resting)
                if resting:
                    on = (f"{key} ({', '.join(it[3:] for it in said)})" for key, said in resting.items())
                    yield f"- What rests on such: {', '.join(on)}"


def _line(key: str, row: Row, said: list[str]) -> str:
    return f"- **{key}** {row['item']}" + f": {'; '.join(said)}" * bool(said)


# Evidence made


def short_plan(part: str) -> dict[str, Any]:
    """Return the document of a suite with short trials, of which one part has switches: conditions are of all parts."""
    suite, _, name = part.partition("/")
    document: dict[str, Any] = parse_yaml((SUITES / f"{suite}.yaml").read_text(encoding="utf-8"), suite)
    for it in document["parts"]:
        if it["name"] != name:
            it["only"] = ["none"]
        elif it.get("hosting") == "vm":
            document.pop("missing_hostings", None)  # VMs that are emulated count frames, too
    document.pop("time_budget_s", None)
    document["throughput"] = {
        **{key: value for key, value in document["throughput"].items() if key not in OF_COUNTS},
        **{"duration_s": 0.1, "warmup_s": 0.02, "repetitions": 1},
    }
    for section in (document["latency"], *(it["latency"] for it in document["parts"] if "latency" in it)):
        section |= {"duration_s": 0.1, "repetitions": 1}
    if "search" in document:
        document["search"] |= {"duration_s": 0.05, "starts": 1}
    return document


def make(what: str, options: Sequence[str]) -> list[Evidence]:
    """Run a part or a command shortly; return its evidence, none where it failed."""
    with tempfile.TemporaryDirectory(prefix="papers-evidence-") as folder:
        (Path(folder) / "docs").symlink_to(ROOT / "docs")
        return (_ran_part if what.partition("/")[0] in list_suites() else _ran_command)(what, options, Path(folder))


def _ran_part(what: str, options: Sequence[str], folder: Path) -> list[Evidence]:
    plan = folder / "plan.yaml"
    plan.write_text(json.dumps(short_plan(what)), encoding="utf-8")
    given = ["planebench", "run", str(plan), "--runs", str(folder), "--no-report", "--quiet", *options]
    _shell(what, shlex.join(given), folder)
    suite, _, name = what.partition("/")
    part = next(it for it in load_plan(suite).parts if it.name == name)
    runs = [Derived(read_run(it.parent)) for it in folder.glob("*/finished.json")]
    alike = [it for it in runs if conditions(part) in map(conditions, it.run.header.plan.sections)]
    return [replace(it, commit=_commit(), plan=None) for run in alike for it in of_run(run, suite, [part])]


def _ran_command(what: str, options: Sequence[str], folder: Path) -> list[Evidence]:
    is_test = "pytest" in what
    short = docs_check.replaced(docs_check.shortened(what)[0])[0]
    done = _shell(what, shlex.join([*shlex.split(short), *options]), ROOT if is_test else folder)
    ran = done.returncode == 0 and (not is_test or PASSED.search(done.stdout))
    at = time.strftime("%Y-%m-%d", time.gmtime())
    return [Evidence(what, at, _commit(), told_host(collect().as_dict()))] if ran else []


def _shell(what: str, command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    print(f"{what}: {command}", flush=True)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    words = ["bash", "-c", command]
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if done.returncode:
        print(f"{what}: exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}", flush=True)
    return done


def _commit() -> str:
    words = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def write(made: Iterable[Evidence], parts: Mapping[str, Plan]) -> None:
    """Put evidence into the file, each in place of that of the same part or command; what is of no use goes."""
    old = (replace(it, plan=None) for it in stored(parts))
    found = {(it.what, *sorted(it.points)): it for it in [*old, *made]}
    rows = [{name: value for name, value in asdict(it).items() if value} for _, it in sorted(found.items())]
    EVIDENCE.write_text(HEAD + "".join(f"- {json.dumps(row, ensure_ascii=False)}\n" for row in rows), encoding="utf-8")


def main() -> int:
    """Write the page, compare it, or make evidence. Returns 1 for problems."""
    args, _, options = (list(it) for it in _split(sys.argv[1:]))
    source: Mapping[str, Rows] = parse_yaml(SOURCE.read_text(encoding="utf-8"), str(SOURCE))
    parts = {f"{name}/{part.name}": part for name in list_suites() for part in load_plan(name).parts}
    faults = list(problems(source, parts))
    if faults:
        print("\n".join(faults))
        return 1
    if args[:1] == ["--evidence"]:
        for what in args[1:]:
            write(make(what, options), parts)
    judge = Judge(every(parts), parts)
    if args[:1] == ["--lacking"]:
        rows = [row for found in source.values() for row in found.values()]
        named = {it: row.get("needs", {}).get("since", "") for row in rows for it in row.get("run", ())}
        judging = {it for row in rows for it in row.get("needs", {}).get("claims", ())}
        lone = {it: {"run": [it], "needs": {"since": since}} for it, since in named.items()}
        print("\n".join(it for it, row in lone.items() if not judge.lacks(row)[1]))
        print("\n".join(f"claim of no item: {it.id}" for it in all_claims() if it.id not in judging))
        return 0
    page = "\n".join(lines(source, states(source, judge))) + "\n"
    if args[:1] != ["--check"]:
        PAGE.write_text(page, encoding="utf-8")
    elif page != PAGE.read_text(encoding="utf-8"):
        faults.append(f"{PAGE.name} is not what {SOURCE.name} and the runs say: run scripts/papers_coverage.py")
    print("\n".join(faults) or "coverage of the papers: fine")
    return 1 if faults else 0


def _split(args: list[str]) -> tuple[list[str], list[str], list[str]]:
    at = args.index("--") if "--" in args else len(args)
    return args[:at], args[at : at + 1], args[at + 1 :]


if __name__ == "__main__":
    sys.exit(main())
