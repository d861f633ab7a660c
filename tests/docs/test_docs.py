# SPDX-License-Identifier: BSD-3-Clause
"""What can be told of the docs without running them: make docs-check does the rest."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import docs_check  # noqa: E402
import docs_pages  # noqa: E402
import worked_examples  # noqa: E402

PAGE = """# A title, with `code` and [a link](x.md)
    planebench run quick --runs "a # b"     # comment
    planebench run \\
        --switch sim
    text that is no command

## A title, with `code` and [a link](x.md)

```sh
$ ls | head    # all lines
```

```
planebench run of-no-shell
```

    PLANEBENCH_VPP=/opt/vpp sudo .venv/bin/planebench doctor > out && ls
    planed --version                        what it says
[one](#a-title-with-code-and-a-link-1) [two](other.md#no) [three](gone.md) [web](https://example.org/x)
"""


def test_everything_documented_parses_and_every_link_leads_somewhere() -> None:
    assert list(docs_check.static_faults()) == []


def test_the_pages_are_few_and_short() -> None:
    readme, *pages = docs_pages.pages(ROOT)
    words = (word for page in pages for word in page.read_text(encoding="utf-8").split())
    assert len(pages) <= 50
    assert sum(any(sign.isalnum() for sign in word) for word in words) <= 60_000
    assert len(readme.read_text(encoding="utf-8").splitlines()) <= 105


def test_commands_of_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    found = docs_pages.commands(tmp_path, page)
    assert [(it.where, it.text) for it in found] == [
        ("page.md:2", 'planebench run quick --runs "a # b"'),
        ("page.md:3", "planebench run --switch sim"),
        ("page.md:10", "ls | head"),
        ("page.md:17", "PLANEBENCH_VPP=/opt/vpp sudo .venv/bin/planebench doctor > out && ls"),
        ("page.md:18", "planed --version"),
    ]
    assert found[3].words == ["planebench", "doctor"]
    assert found[2].words == ["ls"]


def test_links_and_anchors(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text(PAGE)
    (tmp_path / "other.md").write_text("# Yes\n")
    faults = docs_pages.broken_links(tmp_path)
    assert faults == [
        "README.md:1: link to x.md leads nowhere",
        "README.md:7: link to x.md leads nowhere",
        "README.md:19: link to other.md#no leads nowhere",
        "README.md:19: link to gone.md leads nowhere",
    ]
    assert docs_pages.anchors(tmp_path / "README.md") == {
        "a-title-with-code-and-a-link",
        "a-title-with-code-and-a-link-1",
    }


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("planebench run quick --frame-size 64", ""),
        ("planebench --version", ""),
        ("planebench list runs", ""),
        ("planebench run --help", ""),
        ("planebench run --frame-sizes 64", "No such option --frame-sizes"),
        ("planebench plan sho", "planebench plan has no command sho"),
        ("planebench list runs --no-such", "No such option --no-such"),
    ],
)
def test_the_parser_of_the_command_is_asked(command: str, complaint: str) -> None:
    said = docs_check.complaint(shlex.split(command))
    assert re.sub("[:'.]", "", said) == complaint  # Typer's punctuation changed with its version


def test_runs_are_made_short_only_where_the_command_does_not_say() -> None:
    text, added = docs_check.shortened("planebench run quick --duration=3 --loads none > x")
    assert "--duration" not in added and "--loads" not in added and "--repeat 1" in added
    assert text == f"planebench run {added} quick --duration=3 --loads none > x"
    assert docs_check.shortened("planebench list runs") == ("planebench list runs", "")


@pytest.mark.parametrize(
    ("command", "added"),
    [("run quick", True), ("run can17", False), ("run --scenario parallel", False), ("run --scenario p2p,bare", True)],
)
def test_runs_are_made_bidirectional_only_if_something_is_left(command: str, added: bool) -> None:
    """No part of can17 is bidirectional, and parallel cannot be: nothing would be left to measure."""
    assert ("--direction" in docs_check.shortened(f"planebench {command}")[1]) == added


def test_a_time_budget_chooses_the_durations() -> None:
    budget = "planebench run --switch planed,ovs-dpdk --time-budget 1m"
    assert docs_check.shortened(budget) == (budget, "")


def test_a_run_without_an_accepted_trial_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are too short for a busy machine: exit code 6 says so, of a command and of what a page needs before it."""
    monkeypatch.setitem(docs_check.TABLE["fixtures"], "page.md", {"commands": ["exit 6", "exit 2"]})
    checker = docs_check.Checker(tmp_path)
    checker.page("page.md", [docs_pages.Command("page.md", 1, "exit 6"), docs_pages.Command("page.md", 2, "exit 1")])
    assert (checker.ran, checker.failed) == (1, ["page.md: fixture: exit 2", "page.md:2: exit 1"])


def test_values_of_a_command_are_made_smaller_but_where_they_are_what_it_is_about() -> None:
    assert docs_check.replaced("planebench run ic16 --vnfs 63") == (
        "planebench run ic16 --vnfs 8",
        "--vnfs 8 in place of 63",
    )
    kept = "planebench run --scenario parallel --vnfs 1,8,63"
    assert docs_check.replaced(kept) == (kept, "")


def test_a_plan_of_a_page_has_its_own_directions() -> None:
    assert "--direction" not in docs_check.shortened("planebench run docs/examples/firewall-chain.yaml")[1]
    assert docs_check.shortened("planebench outage --restart vnf0")[0] == (
        "planebench outage --repetitions 1 --restart vnf0"
    )


def test_a_command_that_runs_until_its_page_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands after it find it ready. It has to live until the end of the page, and to end with 0."""
    ready = tmp_path / "ready"
    serves = f"trap 'exit 0' TERM; touch {ready}; while :; do sleep 0.02; done"
    dies = f"touch {ready}; exit 0"
    monkeypatch.setitem(docs_check.TABLE, "beside", {serves: str(ready), dies: str(ready)})
    monkeypatch.setitem(docs_check.TABLE["fixtures"], "any", {})
    checker = docs_check.Checker(tmp_path)
    asks = docs_pages.Command("one.md", 2, f"rm {ready}")
    checker.page("one.md", [docs_pages.Command("one.md", 1, serves), asks])
    assert (checker.ran, checker.failed, checker.beside) == (2, [], [])
    checker.page("two.md", [docs_pages.Command("two.md", 1, dies), docs_pages.Command("two.md", 2, "sleep 0.1")])
    assert checker.failed == [f"two.md:1: {dies}"]


def test_what_several_pages_need_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(docs_check.TABLE["fixtures"], "any", {"commands": [f"echo made >> {tmp_path}/count; touch it"]})
    checker = docs_check.Checker(tmp_path)
    for name in ("one.md", "two.md"):
        checker.page(name, [docs_pages.Command(name, 1, "rm it")])
    assert (checker.ran, checker.failed, (tmp_path / "count").read_text()) == (2, [], "made\n")


def test_a_loop_of_the_shell_is_a_command(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("    for i in 1 2; do planebench run quick --name $i; done    # twice\n")
    (found,) = docs_pages.commands(tmp_path, page)
    assert found.text == "for i in 1 2; do planebench run quick --name $i; done"
    assert "do planebench run --duration" in docs_check.shortened(found.text)[0]


def test_the_table_of_contents_has_every_page_once(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(
        "# Docs\n## Tasks\n- [One](one.md): first\n- [Again](one.md)\n- [Part](two.md#x)\n"
    )
    (tmp_path / "one.md").write_text("# One\n")
    (tmp_path / "two.md").write_text("# Two\n")
    assert docs_pages.contents(tmp_path) == {"Tasks": [("One", "one.md"), ("Again", "one.md")]}
    assert [line.partition(": ")[2] for line in docs_pages.not_in_contents(tmp_path)] == [
        "one.md is in the table of contents 2 times, not once",
        "two.md is in the table of contents 0 times, not once",
    ]


def test_figures_of_the_worked_examples_are_those_of_their_runs() -> None:
    """Each table is what scripts/worked_examples.py computes from the stored run."""
    pages = sorted(worked_examples.EXAMPLES.glob("*.md"))
    assert pages
    for page in pages:
        assert worked_examples.written(page) == page.read_text(encoding="utf-8"), page.name


def test_a_run_that_is_kept_names_no_folder_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    for name in worked_examples.KEPT:
        (tmp_path / "run" / name).write_text(f"{worked_examples.EXAMPLES}/office.rules {ROOT}/docs {ROOT}")
    worked_examples.keep(tmp_path / "run", tmp_path / "kept")
    kept = {path.name: path.read_text() for path in (tmp_path / "kept").iterdir()}
    assert kept == dict.fromkeys(worked_examples.KEPT, "office.rules docs .")


def test_commands_in_the_text_parse() -> None:
    spans = [
        (page.name, span)
        for page in docs_pages.pages(ROOT)
        for span in re.findall(r"`(?:sudo )?(?:\.venv/bin/)?(planebench [a-z][^`]*)`", page.read_text(encoding="utf-8"))
    ]
    assert len(spans) > 10
    problems = [(*it, docs_check.complaint(shlex.split(it[1]))) for it in spans]
    assert [it for it in problems if it[2] and "MissingParameter" not in it[2]] == []


def command_line_rows() -> dict[str, str]:
    """The rows of the table of variables, and of that of exit codes."""
    text = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^\| `?([0-9A-Z_]+)`? \| (.*) \|$", text, flags=re.MULTILINE))


def test_every_variable_is_documented() -> None:
    """Those with the name of a switch are one row."""
    from planebench.switches.registry import ADAPTERS

    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "planebench").rglob("*.py"))
    read = set(re.findall(r"\b(?:PLANEBENCH|XDG)_[A-Z0-9_]*[A-Z0-9]\b", sources))
    of_switches = {f"PLANEBENCH_{name.upper().replace('-', '_')}" for name in ADAPTERS}
    ours = {name for name in command_line_rows() if name.startswith(("PLANEBENCH_", "XDG_"))} - {"PLANEBENCH_SWITCH"}
    assert read - of_switches - {"PLANEBENCH_NAME"} == ours - of_switches
