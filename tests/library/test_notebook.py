# SPDX-License-Identifier: BSD-3-Clause
"""The notebooks and the page of the library do what they say, on a small simulated run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import nbformat
import pytest
from builders import make_run, store_run
from nbclient import NotebookClient

import planebench
from planebench.analysis.tables import TABLES
from planebench.cli import main

DOCS = Path(__file__).parents[2] / "docs"
NOTEBOOK = DOCS / "examples" / "analysis.ipynb"
TUTORIAL = DOCS / "examples" / "tutorial.ipynb"
PAGE = DOCS / "library.md"


@pytest.fixture
def simulated(own_run_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The run that the notebook says one can make."""
    text = nbformat.read(NOTEBOOK, as_version=4).cells[0].source
    (command,) = re.findall(r"^    (planebench run --.*)$", text, re.MULTILINE)
    monkeypatch.setattr("sys.argv", [*shlex.split(command), "--quiet"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    return own_run_folder


def executed(path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Run a notebook in a folder, without a word on standard error. Returns what its cells show, as HTML."""
    monkeypatch.setenv("PYTHONPATH", str(Path(planebench.__file__).parents[1]))
    for variable in ("IPYTHONDIR", "JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(variable, str(folder / variable.lower()))
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert all(cell.outputs == [] for cell in notebook.cells if cell.cell_type == "code"), "strip the outputs"
    NotebookClient(notebook, timeout=60, resources={"metadata": {"path": str(folder)}}).execute()
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in shown if output.output_type == "stream" and output.name == "stderr"]
    return [output.data.get("text/html", "") for output in shown if "data" in output]


def test_the_notebook_runs(simulated: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    html = executed(NOTEBOOK, tmp_path, monkeypatch)
    (chart,) = (text for text in html if "vegaEmbed" in text)
    assert '"switch": "sim"' in chart and '"switch": "sim#2"' in chart
    assert '"verdict": "valid"' in chart
    assert sum("<table" in text for text in html) == 3


def test_the_tutorial_runs(own_run_folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It reads the run that is kept with it, and measures one of its own."""
    (tmp_path / "docs").symlink_to(DOCS)
    html = executed(TUTORIAL, tmp_path, monkeypatch)
    (chart,) = (text for text in html if "vegaEmbed" in text)
    assert all(f'"switch": "{name}"' in chart for name in ("planed", "ovs-dpdk", "testpmd"))
    assert len(list(own_run_folder.glob("*/trials.jsonl"))) == 1


def test_the_examples_of_the_page_run(own_run_folder: Path) -> None:
    store_run(own_run_folder, make_run(("planed", "testpmd"), sizes=(64,), repetitions=1))
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert examples
    for example in examples:
        exec(compile(example, str(PAGE), "exec"), {})


def test_the_page_has_every_table() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert rows == {name: table.what for name, table in TABLES.items()}
