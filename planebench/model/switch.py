# SPDX-License-Identifier: BSD-3-Clause
"""A switch as a user names it, and its options: from ``name=value`` to a checked value."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from planebench.model.errors import UsageError, unknown
from planebench.model.text import SHARES, parse_number, parse_whole, user_path

OptionKind = Literal["whole", "rate", "ratio", "share", "amount", "flag", "text", "list", "file", "path"]
Value = int | float | bool | str | list[str]

LIST_SEPARATOR = "+"
_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_NUMBERS: Mapping[OptionKind, tuple[str, Callable[[float], bool]]] = {
    "rate": ("a number above 0, e.g. 500k, 10M or 1.5G", lambda value: value >= 1),
    "ratio": ("a number above 0, e.g. 0.5 or 50%", lambda value: value > 0),
    "share": ("0 to 1, or 0% to 100%", lambda value: value <= 1),
    "amount": ("a number from 0, e.g. 5 or 2.5", lambda value: True),
}


@dataclass(frozen=True, slots=True)
class Option:
    """An option ``name=value`` of the given ``kind``. ``default`` is for people.

    ``whole``: a number from ``least`` to ``most``, 64k and 10G too. ``rate``, ``ratio``, ``share``, ``amount``: numbers
    that need not be whole, 1.5G and 50% too. ``list``: texts with + between them. ``file``: the path of a file.
    ``path``: the path of a file or folder. ``choices``: the valid texts.
    """

    name: str
    kind: OptionKind
    help: str
    default: str = ""
    choices: tuple[str, ...] = ()
    least: int = 0
    most: int | None = None
    setting: str = ""
    """The name of the value in the settings of a task, if it is not that of the option."""

    @property
    def key(self) -> str:
        """Return the name of the value among the settings."""
        return self.setting or self.name

    def value(self, text: str, what: str) -> Value:
        """Return the value of the settings. UsageError: what has it, option, value, and what is valid."""
        if self.kind == "whole":
            number = parse_whole(text)
            if number is None or number < self.least or (self.most is not None and number > self.most):
                valid = f"{self.least}..{self.most}"
                if self.most is None:
                    least = f", from {self.least}" if self.least else ""
                    valid = f"a whole number, e.g. 1500, 64k or 10G{least}"
                raise self._refusal(text, what, valid)
            return number
        if self.kind in _NUMBERS:
            valid, fits = _NUMBERS[self.kind]
            share = parse_number(text, SHARES)
            if share is None or not fits(share):
                raise self._refusal(text, what, valid)
            return share
        if self.kind == "flag":
            if text not in _FLAGS:
                raise self._refusal(text, what, "true, false")
            return _FLAGS[text]
        if self.choices and text not in self.choices:
            raise self._refusal(text, what, ", ".join(self.choices))
        return text.split(LIST_SEPARATOR) if self.kind == "list" else text

    def resolved(self, text: str, what: str, base: Path) -> str:
        """Return the text as it is kept: of a file or folder, its absolute path.

        UsageError for a value that is not valid, or not there.

        A relative path is one from ``base``.
        """
        self.value(text, what)
        if self.kind == "path" and (base / user_path(text)).is_dir():
            return str((base / user_path(text)).resolve())
        return str(existing_file(text, f"{what}: {self.name}", base)) if self.kind in ("file", "path") else text

    def _refusal(self, text: str, what: str, valid: str) -> UsageError:
        return UsageError(f'{what}: {self.name} "{text}" is not valid. Valid: {valid}')


def parse_values(what: str, options: tuple[Option, ...], texts: Mapping[str, str]) -> dict[str, Value]:
    """Return the values of the options that were given, by key.

    UsageError: ``what`` has no such option, or a bad value.
    """
    valid = {option.name: option for option in options}
    for name in texts:
        if name not in valid:
            raise (
                unknown(f"option of {what}", name, tuple(valid))
                if valid
                else UsageError(f'{what} has no options; remove "{name}"')
            )
    return {valid[name].key: valid[name].value(text, what) for name, text in texts.items()}


def existing_file(text: str, what: str, base: Path) -> Path:
    """Return the absolute path of a readable file. Raises UsageError if it is not."""
    path = (base / user_path(text)).resolve()
    try:
        with path.open("rb") as file:
            file.read(1)
    except OSError as error:
        raise UsageError(f'{what} "{path}" cannot be read: {error.strerror}; give a readable file') from None
    return path


# A switch as a user names it: ``planed``, ``sim:capacity=10M:noise=1%``, ``faulty=planed:drop_one_in=1000``.

LABEL_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}"
_NEXT_OPTION = re.compile(r",[a-z_]+=")


@dataclass(frozen=True, slots=True)
class SwitchSpec:
    """``adapter`` and its ``options``; ``label`` is the option ``name``, or the adapter's own name."""

    adapter: str
    label: str
    options: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SwitchCost:
    """The time that a switch adds to a run, as measured on the two-core development VM."""

    start_s: float = 1.5
    """Tester and switch up and connected, and down again: once for each switch and topology."""
    trial_overhead_s: float = 0.085
    """What a trial takes beside its sending: two core-distance probes, clearing, waiting for stragglers, reading."""
    offloads: bool = False
    """It forwards in the place of VNFs side by side, which are then no processes that forward."""


USUAL_COST = SwitchCost()


def parse_options(what: str, parts: Iterable[str], example: str, files: Collection[str] = ()) -> dict[str, str]:
    """Parse ``key=value`` texts, which colons separated. ``files``: keys of paths, in which there may be colons.

    Raises UsageError that begins with ``what`` for a text without ``=`` or a repeated key.
    """
    options: dict[str, str] = {}
    for part in parts:
        if "=" not in part and (last := next(reversed(options), None)) in files:
            options[str(last)] += f":{part}"
            continue
        key, equals, value = part.partition("=")
        if not (key and equals and value):
            raise UsageError(f'{what}: option "{part}" is not key=value, e.g. {example}')
        if key in options:
            raise UsageError(f"{what}: option {key} is given twice; give it once")
        options[key] = value
    return options


def plain(text: str) -> str:
    """Return ``planed:name=faulty:...`` for ``faulty=planed:...``, which is the same; any other text as it is."""
    head, colon, rest = text.partition(":")
    label, equals, adapter = head.partition("=")
    return f"{adapter}:name={label}{colon}{rest}" if equals else text


ALIASES = {
    **dict.fromkeys(("ovs", "openvswitch", "open-vswitch"), "ovs-dpdk"),
    **dict.fromkeys(("dpdk-testpmd", "test-pmd"), "testpmd"),
    **dict.fromkeys(("bridge", "linuxbridge"), "linux-bridge"),
}
"""Other names of switches."""


def parse_switch(text: str) -> SwitchSpec:
    """Take the text of a switch apart. UsageError for an option without ``=``, named twice, or a bad label.

    Its name may be in capitals, or another one that it is known by.
    """
    adapter, *parts = plain(text).split(":")
    adapter = ALIASES.get(adapter.lower(), adapter.lower())
    if any(_NEXT_OPTION.search(part) for part in parts):
        raise UsageError(f'switch "{text}": options are joined by ":", not by ",", which begins the next switch')
    options = parse_options(f'switch "{text}"', parts, f"{adapter}:name=other")
    label = options.pop("name", adapter)
    if label != adapter and not re.fullmatch(LABEL_PATTERN, label):
        raise UsageError(
            f'switch "{text}": name "{label}" is not valid. Valid: letters, digits, ".", "_" and "-", 32 at most'
        )
    return SwitchSpec(adapter, label, options)
