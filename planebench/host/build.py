# SPDX-License-Identifier: BSD-3-Clause
"""The build of a program, as its files tell it: which they are, the compiler, and for which CPUs it made them.

A program without debug information rarely says for which CPUs it was compiled; then that is unknown, unless it is part
of a package of the distribution, which is for every CPU of the architecture.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import re
import struct
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from planebench.host.programs import run_tool
from planebench.model.header import Build, BuildLevel

DIGEST_LENGTH = 16
_HEADER, _SECTION = struct.Struct("<40xQ10xHHH"), struct.Struct("<IIQQQQIIQQ")
_COMPRESSED, _ZLIB, _COMPRESSION = 0x800, 1, struct.Struct("<IxxxxQQ")
_BUILD_ID = re.compile(rb"\x04\0\0\0.\0\0\0\x03\0\0\0GNU\0(.+)", re.DOTALL)
_COMPILER = re.compile(rb"GCC: \([^\0]*\) ([\w.]+)|clang version ([\w.]+)")
_MARCH = re.compile(rb"-m(?:arch|cpu)=([\w.+-]+)")
_LIBRARY = re.compile(r"^\s*\S+ => (/\S+) \(", re.MULTILINE)
_PLACES_OF_PACKAGES = ("/usr", "/bin", "/sbin", "/lib")
_FOR_EVERY_CPU = re.compile(r"x86-64(-v\d)?|corei7|nehalem|core2|nocona|k8|armv\d[\w.+-]*|generic")


@dataclass(frozen=True, slots=True)
class _File:
    """A file: its build-id, or else the beginning of its SHA-256, and what it says of the compiler."""

    identity: str
    compilers: frozenset[str] = frozenset()
    marches: frozenset[str] = frozenset()


def build_of(
    program: Path,
    plugins: Iterable[Path] = (),
    libraries: Sequence[str] = (),
    env: Mapping[str, str] = MappingProxyType({}),
) -> Build:
    """Return the build of a program, of ``plugins`` that are there, and of the libraries that it loads.

    ``libraries``: beginnings of the names of those that are its own; all of one beginning have one digest.
    """
    found = {path.name: _file(path) for path in (program, *plugins) if path.is_file()}
    loaded = [Path(path) for path in _LIBRARY.findall(run_tool(["ldd", program], env=env).stdout)] if libraries else []
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
    return Build(
        files=files,
        compiler=", ".join(sorted(others or compilers)),
        march=", ".join(sorted(marches)),
        level=_level(marches, package),
        package=package,
    )


def _level(marches: Collection[str], package: str) -> BuildLevel:
    """Return for which CPUs a program is. Parts for named ones, chosen at its start, do not make it native."""
    if marches and not any(_FOR_EVERY_CPU.fullmatch(march) for march in marches):
        return "native"
    return "generic" if package or marches else "unknown"


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
            contextlib.suppress(struct.error, ValueError, IndexError, zlib.error),  # it is empty, or no ELF file
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as image,
        ):
            sections = dict(_sections(image))
        build_id = _BUILD_ID.match(sections.get(".note.gnu.build-id", b""))
        identity = build_id[1].hex() if build_id else hashlib.file_digest(file, "sha256").hexdigest()
    compilers = frozenset(
        f"GCC {match[1].decode()}" if match[1] else f"clang {match[2].decode()}"
        for match in _COMPILER.finditer(sections.get(".comment", b""))
    )
    marches = {march for name in (".debug_str", ".GCC.command.line") for march in _marches(sections.get(name, b""))}
    return _File(identity[:DIGEST_LENGTH], compilers, frozenset(marches))


def _marches(texts: bytes) -> Iterator[str]:
    """Yield the CPU that each unit was compiled for: the last one that its command line names."""
    for text in {_around(texts, match.start()) for match in _MARCH.finditer(texts)}:
        if b"GNU C" in text or b"clang" in text:
            yield _MARCH.findall(text)[-1].decode()


def _around(texts: bytes, at: int) -> bytes:
    """Return the text, of several that end with a zero byte, that has the byte ``at``."""
    begin, end = texts.rfind(b"\0", 0, at) + 1, texts.find(b"\0", at)
    return texts[begin : end if end >= 0 else len(texts)]


def _sections(image: mmap.mmap) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of the sections of a 64-bit ELF file that speak of its build; none of another file."""
    if image[:6] != b"\x7fELF\x02\x01":
        return
    offset, size, count, names = _HEADER.unpack_from(image)
    table = [_SECTION.unpack_from(image, offset + number * size) for number in range(count)]
    if not table:
        return
    start = table[names][4]
    for name, _, flags, _, at, length, *_ in table:
        title = image[start + name : image.find(b"\0", start + name)].decode(errors="replace")
        if title in (".note.gnu.build-id", ".comment", ".debug_str", ".GCC.command.line"):
            content = image[at : at + length]
            if flags & _COMPRESSED:
                kind, _, _ = _COMPRESSION.unpack_from(content)
                content = zlib.decompress(content[_COMPRESSION.size :]) if kind == _ZLIB else b""
            yield title, content


def _package(program: Path) -> str:
    """Return the package of the distribution that a program is part of; empty if it is of none."""
    path = program.resolve()
    if not path.is_relative_to("/usr/local") and any(path.is_relative_to(place) for place in _PLACES_OF_PACKAGES):
        for argv in (["dpkg-query", "-S"], ["rpm", "-qf", "--qf", "%{NAME}: "]):
            done = run_tool([*argv, path])
            if done.ok and ": " in done.stdout:
                return done.stdout.partition(": ")[0].partition(":")[0]
    return ""
