# SPDX-License-Identifier: BSD-3-Clause
"""The document of a matrix: one run for each combination of its options on each of its testbeds (docs/jobs.md)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from planebench.lab.job import JobPlace, safe_name
from planebench.model.closed import ClosedModel
from planebench.model.errors import UsageError, unknown
from planebench.model.text import fault_words, is_yaml_file, parse_yaml, place_in, read_text

ENTRY_NAME = r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,59}$"
EntryName = Annotated[str, Field(pattern=ENTRY_NAME)]
Kinds = Mapping[str, Any]
"""The options of a run by name, as ``frame-size``, each with the type of its value."""

_AS_TYPED = ConfigDict(coerce_numbers_to_str=True)
"""``frame-size: 64`` is what --frame-size 64 is."""


class TestbedModel(ClosedModel):
    """A testbed: ``slurm`` has options of sbatch, ``switch`` those for the node of the switch, if that is apart."""

    __test__ = False  # not for pytest

    slurm: str
    switch: str | None = None
    options: dict[str, Any] = Field(default_factory=dict)


class Matrix(ClosedModel):
    """The document of a matrix."""

    version: Literal[1]
    name: EntryName
    plan: str
    options: dict[str, Any] = Field(default_factory=dict)
    matrix: dict[str, Annotated[list[Any], Field(min_length=1)]] = Field(default_factory=dict)
    testbeds: Annotated[dict[EntryName, TestbedModel], Field(min_length=1)]
    repeat: Annotated[int, Field(ge=1, le=1000)] = 1
    time: str | int | float | None = None
    store: str | None = None
    tags: dict[str, str] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Combination:
    """A run of a matrix, before it is checked: its name, options and testbed."""

    name: str
    options: Mapping[str, Any]
    place: JobPlace


def read_matrix(path: Path, kinds: Kinds) -> tuple[Matrix, tuple[Combination, ...]]:
    """Read a matrix, whose relative paths begin in its folder, and return it with all its combinations.

    Raises UsageError, which names file, line and column, the key, and what is valid.
    """
    text = read_text(path, f"matrix {path}", "give a readable YAML file")
    document = parse_yaml(text, str(path))
    if not isinstance(document, dict):
        raise UsageError(f"{path}: a matrix is a mapping of keys: {', '.join(Matrix.model_fields)}")
    try:
        matrix, folder = Matrix.model_validate(document), path.resolve().parent
        plan = str(folder / matrix.plan) if is_yaml_file(matrix.plan) else matrix.plan
        store = None if matrix.store is None else str(folder / matrix.store)
        return matrix.model_copy(update={"plan": plan, "store": store}), tuple(_combinations(matrix, kinds))
    except ValidationError as error:
        found = min(error.errors(include_url=False), key=lambda it: it["type"] != "extra_forbidden")
        keys = [key for key in found["loc"] if key != "[key]"]
        valid = tuple((TestbedModel if keys[0] == "testbeds" else Matrix).model_fields)
        words = unknown("key", keys[-1], valid) if found["type"] == "extra_forbidden" else fault_words(found)
        raise UsageError(f"{path}{place_in(text, keys)}: {words}") from None
    except _OptionError as error:
        raise UsageError(f"{path}{place_in(text, error.keys)}: {error}") from None


class _OptionError(Exception):
    """An option that is not valid, at these keys of the document."""

    def __init__(self, keys: Sequence[int | str], text: str) -> None:
        super().__init__(text)
        self.keys = keys


def _combinations(model: Matrix, kinds: Kinds) -> list[Combination]:
    common = _options(model.options, kinds, ("options",))
    axes = [
        [(value, _options({name: value}, kinds, ("matrix",), number)) for number, value in enumerate(values)]
        for name, values in model.matrix.items()
    ]
    places = [JobPlace(name, it.slurm, it.switch) for name, it in model.testbeds.items()]
    runs = []
    for place, chosen, number in itertools.product(places, itertools.product(*axes), range(1, model.repeat + 1)):
        own = _options(model.testbeds[place.name].options, kinds, ("testbeds", place.name, "options"))
        options = {**common, **own}
        for _, more in chosen:
            options |= more
        words = [*(str(value) for value, _ in chosen), place.name, *([str(number)] if model.repeat > 1 else [])]
        runs.append(Combination(safe_name("-".join(words)), options, place))
    names = [run.name for run in runs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise _OptionError(("matrix",), f'two runs have the same name "{twice}"; give options that differ')
    return runs


def _options(given: Mapping[str, Any], kinds: Kinds, keys: Sequence[str], item: int | None = None) -> dict[str, Any]:
    """Return options with values as the command line has them. Raises _OptionError."""
    found = {}
    for name, value in given.items():
        where: list[int | str] = [*keys, name, *([] if item is None else [item])]
        if name not in kinds:
            raise _OptionError(where, str(unknown("option of a run", name, tuple(kinds))))
        many = list[str] in (kinds[name], *get_args(kinds[name]))
        try:
            if isinstance(value, list) and not many:  # as the command line has it
                value = ",".join(map(str, value))
            found[name] = TypeAdapter(kinds[name], config=_AS_TYPED).validate_python(value)
        except ValidationError as error:
            found_wrong = {**error.errors(include_url=False)[0], "loc": (name,), "input": value}
            raise _OptionError(where, fault_words(found_wrong)) from None
    return found
