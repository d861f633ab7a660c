# SPDX-License-Identifier: BSD-3-Clause
"""Programs on this machine: the place and the build of a switch, the output of a program, the commit of a source tree.

A switch is where the user says, by the option ``path`` or ``PLANEBENCH_VPP=/path``, on PATH, or in the usual places.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import mmap
import os
import re
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from planebench.host.process import stretched
from planebench.model.errors import NotInstalledError, UsageError
from planebench.model.header import Build, BuildLevel, Subject
from planebench.model.switch import Option
from planebench.model.text import user_path, utc_text

PATH_OPTION = Option("path", "text", "the program, or its build directory", "found")
_SYSTEM_FOLDERS = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"

DIGEST_LENGTH = 16
_HEADER, _SECTION = struct.Struct("<40xQ10xHHH"), struct.Struct("<IIQQQQIIQQ")
_BUILD_ID = re.compile(rb"\x04\0\0\0.\0\0\0\x03\0\0\0GNU\0(.+)", re.DOTALL)
_COMPILER = re.compile(rb"GCC: \([^\0]*\) ([\w.]+)|clang version ([\w.]+)")
_MARCH = re.compile(rb"-m(?:arch|cpu)=([\w.+-]+)")
_LIBRARY = re.compile(r"^\s*\S+ => (/\S+) \(", re.MULTILINE)
_PLACES_OF_PACKAGES = ("/usr", "/bin", "/sbin", "/lib")
_FOR_EVERY_CPU = re.compile(r"x86-64(-v\d)?|corei7|nehalem|core2|nocona|k8|armv\d[\w.+-]*|generic")


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


def required(what: str, found: Found | NotFound) -> Found:
    """Return what was found. Raises NotInstalledError, which names ``what``, if it was not."""
    if isinstance(found, NotFound):
        raise NotInstalledError(f"{what} {found.words}")
    return found


@dataclass(frozen=True, slots=True)
class ProgramOutput:
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
    said_by: str = ""

    def program(self, name: str, places: Sequence[str] = ()) -> Path | None:
        """Return the first of :meth:`programs`. Raises UsageError as they do."""
        return next(iter(self.programs(name, places)), None)

    def programs(self, name: str, places: Sequence[str] = ()) -> list[Path]:
        """Return programs ``name`` at the user's path, or else on PATH and in ``places``; several may have this name.

        The user's path is the program, whatever its file is called, or a folder: then ``places`` are searched in the
        folder too, without their first folders. ``places`` are globs of absolute paths; ~ is the user's home.
        Raises UsageError if the user's path has no such program.
        """
        if self.path is None:
            found = find_program(name)
            return [*([found] if found else []), *_usable(places)]
        folder = glob.escape(str(self.path))
        # For ``/opt/vpp/bin/vpp`` and folder F: ``F/opt/vpp/bin/vpp``, ``F/vpp/bin/vpp``, ``F/bin/vpp``.
        tails = [Path(place).parts[1:] for place in places]
        endings = [str(Path(folder, *tail[start:])) for tail in tails for start in range(len(tail))]
        below = [f"{folder}/{name}", f"{folder}/bin/{name}", *endings]
        for path in _usable([folder] if self.path.is_file() else below):
            return [path]
        raise UsageError(f'{self.said_by} "{self.path}" contains no program {name}; give the program or its directory')


def run_tool(
    argv: Sequence[str | Path],
    timeout_s: float = 10.0,
    *,
    env: Mapping[str, str] = MappingProxyType({}),
    cwd: Path | None = None,
    stdin: str = "",
) -> ProgramOutput:
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
        return ProgramOutput(None, "", str(error))
    return ProgramOutput(done.returncode, done.stdout, done.stderr)


def program_output(program: Path, *arguments: str, line_buffered: bool = False) -> ProgramOutput:
    """Return the output of a program that only prints, such as its version. Cached until the file changes.

    ``line_buffered``: also what it printed before a crash.
    """
    argv = (*(("stdbuf", "-oL") if line_buffered else ()), str(program), *arguments)
    try:
        return _program_output(argv, program.stat().st_mtime_ns)
    except OSError as error:
        return ProgramOutput(None, "", str(error))


def version_lines(program: Path) -> tuple[str, ...]:
    """Return the output of ``PROGRAM --version``; none if it fails."""
    output = program_output(program, "--version")
    return output.lines if output.ok else ()


@lru_cache(maxsize=32)
def _program_output(argv: tuple[str, ...], mtime_ns: int) -> ProgramOutput:
    with tempfile.TemporaryDirectory(prefix="planebench-") as runtime:  # for the files that DPDK leaves behind
        return run_tool(argv, env={"RUNTIME_DIRECTORY": runtime})


def find_program(name: str) -> Path | None:
    """Return a program on PATH or in the system folders, which the PATH of a user may lack (sbin has ovs-vswitchd)."""
    found = shutil.which(name) or shutil.which(name, path=_SYSTEM_FOLDERS)
    return Path(found) if found else None


def variable_of(name: str) -> str:
    """Return the environment variable with the path of a program."""
    return f"PLANEBENCH_{name.upper().replace('-', '_')}"


def installation(switch: str, path: Any = None) -> Installation:
    """Return where the user says a switch is; ``path``: the value of its option. UsageError for a bad path."""
    variable = variable_of(switch)
    for text, said_by in ((path, f"switch {switch}: path"), (os.environ.get(variable), variable)):
        if text:
            where = user_path(str(text))
            if not where.exists():
                raise UsageError(f'{said_by} "{where}" does not exist; give the program or its directory')
            return Installation(where.absolute(), said_by)
    return Installation()


def _usable(patterns: Sequence[str]) -> list[Path]:
    absolute = [str(user_path(pattern)).lstrip("/") for pattern in patterns]
    paths = [path for pattern in absolute for path in sorted(Path("/").glob(pattern), reverse=True)]
    return [path for path in paths if path.is_file() and os.access(path, os.X_OK)]


@dataclass(frozen=True, slots=True)
class _File:
    """A file: its build-id, or else the beginning of its SHA-256, and what it says of the compiler."""

    identity: str
    compilers: frozenset[str] = frozenset()
    marches: frozenset[str] = frozenset()


def build_of(program: Path, plugins: Iterable[Path] = (), libraries: Sequence[str] = ()) -> Build:
    """Return the build of a program, of ``plugins`` that are there, and of the libraries that it loads.

    ``libraries``: beginnings of the names of those that are its own; all of one beginning have one digest. A program
    without debug information rarely says for which CPUs it was compiled; then that is unknown, unless it is part of a
    package of the distribution, which is for every CPU of the architecture.
    """
    found = {path.name: _file(path) for path in (program, *plugins) if path.is_file()}
    loaded = [Path(path) for path in _LIBRARY.findall(run_tool(["ldd", program]).stdout)] if libraries else []
    eal = next((path for path in loaded if path.name.startswith("librte_eal.")), None)
    drivers = eal.parent.glob("dpdk/pmds-*/librte_net_*.so") if eal is not None else ()  # which it loads at its start
    files = {name: file.identity for name, file in found.items()}
    for beginning in libraries:
        own = {path.name: _file(path) for path in (*loaded, *drivers) if path.name.startswith(beginning)}
        if own:
            text = "\n".join(f"{name} {own[name].identity}" for name in sorted(own))
            files[f"{beginning}*"] = hashlib.sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]
            found |= own
    compilers = frozenset[str]().union(*(file.compilers for file in found.values()))
    marches = frozenset[str]().union(*(file.marches for file in found.values()))
    # Every program has some code of the C library's, which GCC made.
    others = {name for name in compilers if not name.startswith("GCC")}
    package = _package(program)
    level: BuildLevel = "generic" if package or marches else "unknown"
    # Parts for named CPUs, chosen at its start, do not make it native.
    if marches and not any(_FOR_EVERY_CPU.fullmatch(march) for march in marches):
        level = "native"
    return Build(
        files=files,
        compiler=", ".join(sorted(others or compilers)),
        march=", ".join(sorted(marches)),
        level=level,
        package=package,
    )


def _file(path: Path) -> _File:
    try:
        status = path.stat()
        return _read(path.resolve(), status.st_mtime_ns, status.st_size)
    except OSError:
        return _File("unreadable")


@lru_cache(maxsize=512)
def _read(path: Path, mtime_ns: int, size: int) -> _File:
    sections: dict[str, bytes] = {}
    with path.open("rb") as file:
        with (
            contextlib.suppress(struct.error, ValueError, IndexError),  # it is empty, or no ELF file
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as image,
        ):
            sections = dict(_sections(image))
        build_id = _BUILD_ID.match(sections.get(".note.gnu.build-id", b""))
        identity = build_id[1].hex() if build_id else hashlib.file_digest(file, "sha256").hexdigest()
    compilers = frozenset(
        f"GCC {match[1].decode()}" if match[1] else f"clang {match[2].decode()}"
        for match in _COMPILER.finditer(sections.get(".comment", b""))
    )
    commands = set()  # the texts with the command line of a unit, each of which ends with a zero byte
    for texts in (sections.get(name, b"") for name in (".debug_str", ".GCC.command.line")):
        for match in _MARCH.finditer(texts):
            begin, end = texts.rfind(b"\0", 0, match.start()) + 1, texts.find(b"\0", match.start())
            commands.add(texts[begin : end if end >= 0 else len(texts)])
    # The CPU that a unit was compiled for is the last one that its command line names.
    units = [text for text in commands if b"GNU C" in text or b"clang" in text]
    marches = frozenset(_MARCH.findall(text)[-1].decode() for text in units)
    return _File(identity[:DIGEST_LENGTH], compilers, marches)


def _sections(image: mmap.mmap) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of the sections of a 64-bit ELF file that speak of its build; none of another file."""
    if image[:6] != b"\x7fELF\x02\x01":
        return
    offset, size, count, names = _HEADER.unpack_from(image)
    table = [_SECTION.unpack_from(image, offset + number * size) for number in range(count)]
    if not table:
        return
    start = table[names][4]
    for name, _, _, _, at, length, *_ in table:
        title = image[start + name : image.find(b"\0", start + name)].decode(errors="replace")
        if title in (".note.gnu.build-id", ".comment", ".debug_str", ".GCC.command.line"):
            yield title, image[at : at + length]


def _package(program: Path) -> str:
    """Return the package of the distribution that a program is part of; empty if it is of none."""
    path = program.resolve()
    if not path.is_relative_to("/usr/local") and any(path.is_relative_to(place) for place in _PLACES_OF_PACKAGES):
        for argv in (["dpkg-query", "-S"], ["rpm", "-qf", "--qf", "%{NAME}: "]):
            done = run_tool([*argv, path])
            if done.ok and ": " in done.stdout:
                return done.stdout.partition(": ")[0].partition(":")[0]
    return ""


def git(folder: Path, *arguments: str) -> str:
    """Return what git prints in a folder. Raises UsageError with its words where it fails.

    Variables that name another repository are removed: git sets them for its hooks.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_DIR")}
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, errors="replace", env=environment
        )
    except FileNotFoundError:
        raise NotInstalledError("git is not installed, and source trees need it: apt-get install git") from None
    if done.returncode:
        words = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
        raise UsageError(f"git {arguments[0]} in {folder}: {words}")
    return done.stdout.strip()


def subject_in(folder: Path, switch: str = "") -> Subject:
    """Return what is checked out in a folder, by the URL of its remote, or its path without one. Raises UsageError."""
    commit, committed_at = git(folder, "show", "--no-patch", "--format=%H %ct", "HEAD").split()
    moment = utc_text(datetime.fromtimestamp(int(committed_at), UTC))
    remote = git(folder, "config", "--default", "", "--get", "remote.origin.url")
    dirty = bool(git(folder, "status", "--porcelain", "--untracked-files=no"))
    remote = re.sub(r"^(\w+://)[^/@]*@", r"\1", remote)  # a token in it would be in every run and report
    return Subject(remote or str(folder.resolve()), commit, moment, dirty, switch)
