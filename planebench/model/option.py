# SPDX-License-Identifier: BSD-3-Clause
"""An option of a switch or a network function: from ``name=value`` that a user writes to a checked value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from planebench.model.choices import unknown
from planebench.model.errors import UsageError
from planebench.model.quantity import SHARES, parse_number, parse_whole

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
            return self._whole(text, what)
        if self.kind in _NUMBERS:
            return self._number(text, what)
        if self.kind == "flag":
            return self._flag(text, what)
        if self.choices and text not in self.choices:
            raise self._refusal(text, what, ", ".join(self.choices))
        return text.split(LIST_SEPARATOR) if self.kind == "list" else text

    def resolved(self, text: str, what: str, base: Path) -> str:
        """Return the text as it is kept: of a file or folder, its absolute path.

        UsageError for a value that is not valid, or not there.

        A relative path is one from ``base``.
        """
        self.value(text, what)
        if self.kind == "path" and (base / Path(text).expanduser()).is_dir():
            return str((base / Path(text).expanduser()).resolve())
        return str(existing_file(text, f"{what}: {self.name}", base)) if self.kind in ("file", "path") else text

    def _whole(self, text: str, what: str) -> int:
        number = parse_whole(text)
        if number is None or number < self.least or (self.most is not None and number > self.most):
            raise self._refusal(text, what, self._range())
        return number

    def _number(self, text: str, what: str) -> float:
        valid, fits = _NUMBERS[self.kind]
        number = parse_number(text, SHARES)
        if number is None or not fits(number):
            raise self._refusal(text, what, valid)
        return number

    def _range(self) -> str:
        if self.most is not None:
            return f"{self.least}..{self.most}"
        return "a whole number, e.g. 1500, 64k or 10G" + (f", from {self.least}" if self.least else "")

    def _flag(self, text: str, what: str) -> bool:
        if text not in _FLAGS:
            raise self._refusal(text, what, "true, false")
        return _FLAGS[text]

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
    path = (base / Path(text).expanduser()).resolve()
    try:
        with path.open("rb") as file:
            file.read(1)
    except OSError as error:
        raise UsageError(f'{what} "{path}" cannot be read: {error.strerror}; give a readable file') from None
    return path
