# SPDX-License-Identifier: BSD-3-Clause
"""An option of a network function: from what a user writes to a value of the settings object, checked."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from planebench.model.errors import UsageError

OptionKind = Literal["whole", "flag", "text", "list", "file"]
Value = int | bool | str | list[str]

LIST_SEPARATOR = "+"
_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_UNFIT = re.compile(r"[,:=\s]")
_SUFFIXES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}


@dataclass(frozen=True, slots=True)
class VnfOption:
    """``name=value`` of a chain becomes ``key: value`` of the settings. ``default`` is for people.

    ``whole``: a number, 64k and 10G too. ``list``: texts with + between them. ``file``: a path. ``choices``: of a text.
    """

    name: str
    key: str
    kind: OptionKind
    help: str
    default: str = ""
    choices: tuple[str, ...] = ()

    def value(self, text: str, vnf: str) -> Value:
        """The value of the settings. UsageError: function, option, value, and what is valid."""
        if self.kind == "whole":
            return self._whole(text, vnf)
        if self.kind == "flag":
            return self._flag(text, vnf)
        if self.choices and text not in self.choices:
            raise self._refusal(text, vnf, ", ".join(self.choices))
        return text.split(LIST_SEPARATOR) if self.kind == "list" else text

    def resolved(self, text: str, vnf: str, base: Path) -> str:
        """The text as it is kept: of a file, its absolute path. UsageError for a value that is not valid, or not there.

        A relative path is one from ``base``.
        """
        self.value(text, vnf)
        return str(existing_file(text, f"{vnf}: {self.name}", base)) if self.kind == "file" else text

    def _whole(self, text: str, vnf: str) -> int:
        match = re.fullmatch(r"([0-9]{1,18})([kMG]?)", text)
        if match is None:
            raise self._refusal(text, vnf, "a whole number, as 1500, 64k or 10G")
        return int(match[1]) * _SUFFIXES[match[2]]

    def _flag(self, text: str, vnf: str) -> bool:
        if text not in _FLAGS:
            raise self._refusal(text, vnf, "true, false")
        return _FLAGS[text]

    def _refusal(self, text: str, vnf: str, valid: str) -> UsageError:
        return UsageError(f'{vnf}: {self.name} "{text}" is not valid. Valid: {valid}')


def existing_file(text: str, what: str, base: Path) -> Path:
    """The absolute path of a readable file. UsageError if it is none, or if its path cannot be part of a chain."""
    path = (base / Path(text).expanduser()).resolve()
    if _UNFIT.search(str(path)):
        raise UsageError(f'{what} "{path}": a path in a chain has no comma, colon, equals sign or space; give another')
    try:
        with path.open("rb") as file:
            file.read(1)
    except OSError as error:
        raise UsageError(f'{what} "{path}" cannot be read: {error.strerror}; give a readable file') from None
    return path
