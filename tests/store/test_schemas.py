# SPDX-License-Identifier: BSD-3-Clause
"""The JSON Schemas say what the reader does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from builders import make_header, make_latency_trial, make_run, store_run
from jsonschema import Draft202012Validator, ValidationError

from planebench.analysis.compare import Derived
from planebench.cli.run import run_plan
from planebench.model.closed import CLOSED
from planebench.model.errors import StoreError, UsageError
from planebench.model.header import SCHEMA_VERSION, RunHeader
from planebench.model.records import Trial
from planebench.report.export import EXPORT_VERSION, to_json
from planebench.report.schemas import SCHEMAS, schema_text
from planebench.report.schemas.generate import generate
from planebench.store import codec, read_run

DOCUMENTS = {"run.json": "run", "finished.json": "finished"}
LINES = {"trials.jsonl": "trial", "conditions.jsonl": "conditions", "skipped.jsonl": "skipped"}

Document = dict[str, Any]


@cache
def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads(schema_text(name)))


def stored(folder: Path) -> Iterator[tuple[str, Document]]:
    """(schema, document) of everything in a run folder."""
    for file, name in DOCUMENTS.items():
        if (folder / file).exists():
            yield name, json.loads((folder / file).read_text())
    for file, name in LINES.items():
        if (folder / file).exists():
            yield from ((name, json.loads(line)) for line in (folder / file).read_text().splitlines())


def export_fits(folder: Path) -> None:
    """Also with every object closed: no key without a description."""
    document = json.loads(to_json(Derived(read_run(folder))))
    validator("export").validate(document)
    schema = json.loads(schema_text("export"))
    for part in (schema, *schema["$defs"].values()):
        if "properties" in part:
            part["additionalProperties"] = False
    Draft202012Validator(schema).validate(document)


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_file_is_what_the_records_say(name: str) -> None:
    assert schema_text(name) == generate(name), (
        f"{name}.json is out of date: renew it with python -m planebench.report.schemas"
    )


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_one_and_has_its_name_and_version(name: str) -> None:
    schema = json.loads(schema_text(name))
    Draft202012Validator.check_schema(schema)
    assert schema["$id"] == f"urn:planebench:schema:{name}:{schema['version']}"
    assert schema["version"] == (EXPORT_VERSION if name == "export" else SCHEMA_VERSION)
    # A record that holds itself, as the parts of a plan, is among the definitions.
    record = schema["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    assert record["description"] and schema["title"]


def test_an_unknown_schema_is_told() -> None:
    with pytest.raises(UsageError, match='unknown schema "trials", did you mean trial'):
        schema_text("trials")


def test_a_run_that_was_just_made_fits_the_schemas(own_run_folder: Path) -> None:
    overrides = {"switch": "sim:capacity=10M", "scenario": "p2p", "direction": "unidirectional", "frame_size": "64",
                 "duration": 0.02, "repeat": 1, "search": "ndr", "loads": "0.50"}  # fmt: skip
    assert run_plan("quick", overrides, calibrated=False, quiet=True) == 0
    (folder,) = own_run_folder.iterdir()
    documents = list(stored(folder))
    for name, document in documents:
        validator(name).validate(document)
    assert {"run", "trial", "finished"} <= {name for name, _ in documents}
    export_fits(folder)


def test_an_imagined_run_with_everything_fits_the_schemas(own_run_folder: Path) -> None:
    run = store_run(own_run_folder, make_run(repetitions=1, papers=("conext19",)))
    folder = own_run_folder / run.header.run_id
    assert [claim for claim in json.loads(to_json(Derived(run)))["papers"] if claim["compared"]]
    for name, document in stored(folder):
        validator(name).validate(document)
    export_fits(folder)


@pytest.mark.parametrize(
    ("record", "name", "change"),
    [
        (Trial, "trial", lambda d: d.update(colour="red")),
        (Trial, "trial", lambda d: d["evidence"].update(moon=1)),
        (Trial, "trial", lambda d: d.pop("role")),
        (Trial, "trial", lambda d: d.update(role="confirm")),
        (Trial, "trial", lambda d: d["directions"][0].update(offered_packets=1.5)),
        (Trial, "trial", lambda d: d["directions"][0].update(offered_packets="3")),
        (Trial, "trial", lambda d: d["point"].update(chain_length=2)),
        (Trial, "trial", lambda d: d["verdict"].update(kind="tester-limited")),
        (RunHeader, "run", lambda d: d.update(schema_version=SCHEMA_VERSION + 1)),
        (RunHeader, "run", lambda d: d.update(left_out=[{"what": "Fig. 7"}])),
        (RunHeader, "run", lambda d: d.update(moon=1)),
    ],
)
def test_what_the_reader_refuses_the_schema_refuses(
    record: type[Any], name: str, change: Callable[[Document], None]
) -> None:
    whole = make_latency_trial() if record is Trial else make_header()
    document = json.loads(codec.to_json(whole))
    validator(name).validate(document)
    change(document)
    with pytest.raises(ValidationError):
        validator(name).validate(document)
    data = json.dumps(document).encode()
    with pytest.raises(StoreError):
        codec.header_from_json(data, "here") if record is RunHeader else codec.from_json(record, data, "here")


def test_the_export_has_every_key_and_may_get_more() -> None:
    document = json.loads(to_json(Derived(make_run(repetitions=1))))
    document["results"][0]["later"] = 1
    document["later"] = {}
    validator("export").validate(document)
    del document["results"][0]["verdict"]
    with pytest.raises(ValidationError):
        validator("export").validate(document)


def test_describing_the_records_leaves_the_reader_as_it_is() -> None:
    before = Trial.__pydantic_config__  # type: ignore[attr-defined]
    generate("trial")
    assert Trial.__pydantic_config__ == before == CLOSED  # type: ignore[attr-defined]
