# SPDX-License-Identifier: BSD-3-Clause
"""A run as a research object: RO-Crate 1.1, a folder of files with a description in JSON-LD (docs/library.md)."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from planebench.library import tables
from planebench.library.export import write_tables
from planebench.library.tables import Source
from planebench.model.errors import unwritable
from planebench.model.header import RunHeader
from planebench.report.export import to_csv, to_json
from planebench.store import folder as names
from planebench.store.kept import RECORDS_FILE

METADATA = "ro-crate-metadata.json"
PROFILE = "https://w3id.org/ro/crate/1.1"

Entity = dict[str, Any]

_FILES = {
    names.HEADER_FILE: "header of the run: plan, machine, switches, tester",
    names.PLAN_FILE: "plan of the run",
    names.TRIALS_FILE: "raw trials, one per line",
    names.CONDITIONS_FILE: "conditions at each start of a switch",
    names.SKIPPED_FILE: "what was not measured, and why",
    names.FINISHED_FILE: "end of the run",
    RECORDS_FILE: "records of a kept run: trials, conditions, what was not measured",
    "report.html": "report",
    "results.json": "results, derived from the trials",
    "results.csv": "results as one table",
}
"""Files of the crate, beside the tables, and what they are."""

_TYPES = {".json": "application/json", ".jsonl": "application/jsonl", ".html": "text/html", ".csv": "text/csv"}
_PARQUET = "application/vnd.apache.parquet"


def write_crate(source: Source, out: Path) -> Path:
    """Write a run with its results and tables into a new folder; return its metadata file. It must not exist."""
    try:
        out.mkdir(parents=True)
        for name in _FILES:
            if (source.path / name).is_file():
                shutil.copyfile(source.path / name, out / name)
        (out / "results.json").write_bytes(to_json(source))
        (out / "results.csv").write_bytes(to_csv(source))
        list(write_tables(source, {name: out / "tables" / f"{name}.parquet" for name in tables.TABLES}))
        document = {"@context": f"{PROFILE}/context", "@graph": list(_graph(source, out))}
        (out / METADATA).write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise unwritable(str(out), error) from None
    return out / METADATA


def _graph(source: Source, out: Path) -> Iterator[Entity]:
    """Yield the entities of the crate: its description, itself, what made it, its files."""
    header = source.run.header
    files = [_file(out, path) for path in sorted(out.rglob("*")) if path.is_file()]
    software = list(_software(header))
    yield {"@id": METADATA, "@type": "CreativeWork", "conformsTo": _to(PROFILE), "about": _to("./")}
    yield {
        "@id": "./",
        "@type": "Dataset",
        "name": f"planebench run {header.run_id}",
        "description": f"Measurement of {', '.join(source.run.switch_labels)}: {' '.join(header.command)}",
        "datePublished": header.started_at,
        "hasPart": [_to(entity["@id"]) for entity in files],
        "mentions": [_to("#run")],
    }
    yield {
        "@id": "#run",
        "@type": "CreateAction",
        "name": header.name,
        "startTime": header.started_at,
        **({"endTime": source.run.finished.finished_at} if source.run.finished is not None else {}),
        "instrument": [_to(entity["@id"]) for entity in software],
        "result": [_to(names.TRIALS_FILE)],
    }
    yield from (*software, *files)


def _software(header: RunHeader) -> Iterator[Entity]:
    kind = "SoftwareApplication"
    yield {"@id": "#planebench", "@type": kind, "name": "planebench", "softwareVersion": header.planebench_version}
    for switch in header.switches:
        yield {"@id": f"#switch-{switch.label}", "@type": kind, "name": switch.label, "softwareVersion": switch.version}
    if header.subject is not None:
        it = header.subject
        yield {"@id": "#subject", "@type": "SoftwareSourceCode", "codeRepository": it.repository, "version": it.commit}


def _file(out: Path, path: Path) -> Entity:
    name = str(path.relative_to(out))
    what = _FILES.get(name) or tables.TABLES[path.stem].what
    data = path.read_bytes()
    return {
        "@id": name,
        "@type": "File",
        "name": path.name,
        "description": what,
        "encodingFormat": _TYPES.get(path.suffix, _PARQUET),
        "contentSize": str(len(data)),
        "sha256": hashlib.sha256(data).hexdigest(),
    }


def _to(name: str) -> Entity:
    return {"@id": name}
