# SPDX-License-Identifier: BSD-3-Clause
"""The place of a switch: given by the user, on PATH, or in the usual places.

The user gives the option ``path``, ``PLANEBENCH_VPP=/path``, or an entry in ``switches.toml``, which is read from
$PLANEBENCH_SWITCHES, or planebench/switches.toml in $XDG_CONFIG_HOME (~/.config):

    [vpp]
    path = "/opt/vpp/bin/vpp"                    # the program, or its build directory
    env = {LD_LIBRARY_PATH = "/opt/vpp/lib"}     # added to the environment of everything of this switch
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from planebench.host.deadlines import stretched
from planebench.model.errors import UsageError
from planebench.model.option import Option

PATH_OPTION = Option("path", "text", "the program, or its build directory", "found")
SWITCHES_FILE_VARIABLE = "PLANEBENCH_SWITCHES"
_SYSTEM_FOLDERS = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True, slots=True)
class Found:
    """A program that was found."""

    version: str
    binary: Path


@dataclass(frozen=True, slots=True)
class NotFound:
    """A program that is missing or does not start, and the remedy: ``apt-get install dpdk``."""

    remedy: str
    problem: str = "is not installed"

    @property
    def words(self) -> str:
        """Return the problem and the remedy, to follow the name of the program."""
        return f"{self.problem}; {'to install: ' if self == NotFound(self.remedy) else ''}{self.remedy}"


@dataclass(frozen=True, slots=True)
class Output:
    """The end of a short-lived program. ``code``: its exit code; None if it did not start or took too long."""

    code: int | None
    stdout: str
    stderr: str
    """Without an exit code, the reason."""

    @property
    def ok(self) -> bool:
        """Return whether it ended with 0."""
        return self.code == 0

    @property
    def lines(self) -> tuple[str, ...]:
        """Return the lines of its standard output, or else of its standard error."""
        return tuple((self.stdout or self.stderr).strip().splitlines())


@dataclass(frozen=True, slots=True)
class Installation:
    """The place of a switch according to the user. ``said_by`` names the setting, for errors."""

    path: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    said_by: str = ""

    def program(self, name: str, places: Sequence[str] = ()) -> Path | None:
        """Return the first of :meth:`programs`. Raises UsageError as they do."""
        return next(iter(self.programs(name, places)), None)

    def programs(self, name: str, places: Sequence[str] = ()) -> list[Path]:
        """Return programs ``name`` at the user's path, or else on PATH and in ``places``; several may have this name.

        The user's path is the program ``name`` itself, a program beside it, or a folder: then ``places`` are searched
        in the folder too, without their first folders. ``places`` are globs of absolute paths; ~ is the user's home.
        Raises UsageError if the user's path has no such program.
        """
        if self.path is None:
            found = find_program(name)
            return [*([found] if found else []), *_usable(places)]
        folder = self.path if self.path.is_dir() else self.path.parent
        below = [str(folder / name), str(folder / "bin" / name), *_endings(folder, places)]
        candidates = [str(self.path)] if self.path.is_file() and self.path.name == name else below
        for path in _usable(candidates):
            return [path]
        raise UsageError(f'{self.said_by} "{self.path}" contains no program {name}; give the program or its directory')


def run_tool(
    argv: Sequence[str | Path],
    timeout_s: float = 10.0,
    *,
    env: Mapping[str, str] = MappingProxyType({}),
    cwd: Path | None = None,
    stdin: str = "",
) -> Output:
    """Run a short-lived program with ``env`` added to our environment, and return its output."""
    try:
        done = subprocess.run(
            [str(word) for word in argv],
            input=stdin,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=stretched(timeout_s),
            cwd=cwd,
            env={**os.environ, **env, "LC_ALL": "C"},
        )
    except (OSError, subprocess.SubprocessError) as error:
        return Output(None, "", str(error))
    return Output(done.returncode, done.stdout, done.stderr)


def program_output(
    program: Path, *arguments: str, env: Mapping[str, str] = MappingProxyType({}), line_buffered: bool = False
) -> Output:
    """Return the output of a program that only prints, such as its version. Cached until the file changes.

    ``line_buffered``: also what it printed before a crash.
    """
    argv = (*(("stdbuf", "-oL") if line_buffered else ()), str(program), *arguments)
    try:
        return _program_output(argv, program.stat().st_mtime_ns, tuple(sorted(env.items())))
    except OSError as error:
        return Output(None, "", str(error))


def version_lines(program: Path) -> tuple[str, ...]:
    """Return the output of ``PROGRAM --version``; none if it fails."""
    output = program_output(program, "--version")
    return output.lines if output.ok else ()


@lru_cache(maxsize=32)
def _program_output(argv: tuple[str, ...], mtime_ns: int, env: tuple[tuple[str, str], ...]) -> Output:
    with tempfile.TemporaryDirectory(prefix="planebench-") as runtime:  # for the files that DPDK leaves behind
        return run_tool(argv, env={**dict(env), "RUNTIME_DIRECTORY": runtime})


def find_program(name: str) -> Path | None:
    """Return a program on PATH or in the system folders, which the PATH of a user may lack (sbin has ovs-vswitchd)."""
    found = shutil.which(name) or shutil.which(name, path=_SYSTEM_FOLDERS)
    return Path(found) if found else None


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    path: str | None = None
    env: dict[str, str] = {}


def installation(switch: str, path: Any = None) -> Installation:
    """Return where the user says a switch is; ``path``: the value of its option. UsageError for a bad file or path."""
    entry, file = _entries(), switches_file()
    known = entry.get(switch, _Entry())
    variable = f"PLANEBENCH_{switch.upper().replace('-', '_')}"
    for text, said_by in (
        (path, f"switch {switch}: path"),
        (os.environ.get(variable), variable),
        (known.path, f"{file}: {switch}.path"),
    ):
        if text:
            where = Path(str(text)).expanduser()
            if not where.exists():
                raise UsageError(f'{said_by} "{where}" does not exist; give the program or its directory')
            return Installation(where.absolute(), known.env, said_by)
    return Installation(None, known.env)


def switches_file() -> Path:
    """Return the path of switches.toml, which may not exist."""
    named = os.environ.get(SWITCHES_FILE_VARIABLE)
    if named:
        return Path(named).expanduser()
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "planebench" / "switches.toml"


def _entries() -> dict[str, _Entry]:
    file = switches_file()
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
        return TypeAdapter(dict[str, _Entry]).validate_python(document)
    except FileNotFoundError:
        if os.environ.get(SWITCHES_FILE_VARIABLE):
            raise UsageError(f'{SWITCHES_FILE_VARIABLE} "{file}" does not exist; give a file, or unset it') from None
        return {}
    except PermissionError as error:  # of a process that kept the HOME of another user
        if os.environ.get(SWITCHES_FILE_VARIABLE):
            raise UsageError(f"{file} cannot be read: {error}") from None
        return {}
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        raise UsageError(f"{file}: {key}: {first['msg']}. Valid: [SWITCH] with path and env") from None
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{file} cannot be read: {error}") from None


def _usable(patterns: Sequence[str]) -> list[Path]:
    absolute = [str(Path(pattern).expanduser()).lstrip("/") for pattern in patterns]
    paths = [path for pattern in absolute for path in sorted(Path("/").glob(pattern), reverse=True)]
    return [path for path in paths if path.is_file() and os.access(path, os.X_OK)]


def _endings(folder: Path, places: Sequence[str]) -> list[str]:
    """Return for ``/opt/vpp/bin/vpp`` and folder F: ``F/opt/vpp/bin/vpp``, ``F/vpp/bin/vpp``, ``F/bin/vpp``."""
    tails = [Path(place).parts[1:] for place in places]
    return [str(Path(folder, *tail[start:])) for tail in tails for start in range(len(tail))]
