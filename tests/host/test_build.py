# SPDX-License-Identifier: BSD-3-Clause
"""The build of a program from its file: which it is, its compiler, and the CPUs that it was compiled for."""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from planebench.host import programs
from planebench.host.programs import build_of
from planebench.model.header import Build

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")


def compiled(folder: Path, name: str, *options: str, value: int = 0) -> Path:
    source, program = folder / f"{name}.c", folder / name
    source.write_text(f"int main(void) {{ return {value}; }}\n")
    subprocess.run(["gcc", *options, "-o", str(program), str(source)], check=True)
    return program


@needs_gcc
@pytest.mark.parametrize(
    ("options", "level", "march"),
    [
        ((), "unknown", ""),
        (("-g", "-O2"), "generic", None),
        (("-g", "-mtune=native"), "generic", None),
        (("-frecord-gcc-switches", "-s"), "generic", None),
    ],
)
def test_without_the_name_of_a_cpu_it_is_for_every_one(
    options: tuple[str, ...], level: str, march: str | None, tmp_path: Path
) -> None:
    found = build_of(compiled(tmp_path, "it", *options))
    assert (found.level, found.package) == (level, "")
    assert found.march == march if march is not None else found.march.startswith(("x86-64", "armv"))
    assert found.compiler.startswith("GCC ") and found.compiler in found.words


@needs_gcc
@pytest.mark.skipif("x86" not in platform.machine(), reason="names of x86 CPUs")
@pytest.mark.parametrize("how", [("-g",), ("-frecord-gcc-switches", "-s")])
def test_the_last_name_of_a_cpu_counts(how: tuple[str, ...], tmp_path: Path) -> None:
    native = build_of(compiled(tmp_path, "native", *how, "-march=skylake"))
    assert (native.level, native.march) == ("native", "skylake")
    assert native.words.startswith("native (-march=skylake, GCC ")
    docs = build_of(compiled(tmp_path, "docs", *how, "-march=skylake", "-march=corei7"))
    assert (docs.level, docs.march) == ("generic", "corei7")


@needs_gcc
@pytest.mark.skipif("x86" not in platform.machine(), reason="names of x86 CPUs")
def test_parts_for_a_named_cpu_do_not_make_it_native(tmp_path: Path) -> None:
    (tmp_path / "part.c").write_text("int part(void) { return 1; }\n")
    part = tmp_path / "part.o"
    subprocess.run(["gcc", "-c", "-g", "-march=skylake", "-o", str(part), str(tmp_path / "part.c")], check=True)
    found = build_of(compiled(tmp_path, "it", "-g", "-march=corei7", str(part)))
    assert (found.level, found.march) == ("generic", "corei7, skylake")


@needs_gcc
def test_a_file_is_its_build_id_or_its_digest(tmp_path: Path) -> None:
    one, other = (build_of(compiled(tmp_path, "it", "-Wl,--build-id", value=n)) for n in (1, 2))
    assert one.unlike(other) == ("it",) and not one.unlike(one)
    stripped = compiled(tmp_path, "it", "-Wl,--build-id", value=1)
    subprocess.run(["strip", str(stripped)], check=True)
    assert build_of(stripped).files == one.files, "what is stripped is the same build"
    plain = compiled(tmp_path, "it", "-Wl,--build-id=none")
    assert build_of(plain).files == {"it": hashlib.sha256(plain.read_bytes()).hexdigest()[:16]}


@needs_gcc
def test_plugins_and_own_libraries_are_part_of_the_build(tmp_path: Path) -> None:
    library = tmp_path / "libown.so"

    def built(value: int) -> Build:
        (tmp_path / "own.c").write_text(f"int own(void) {{ return {value}; }}\n")
        subprocess.run(["gcc", "-shared", "-o", str(library), str(tmp_path / "own.c")], check=True)
        (tmp_path / "it.c").write_text("int own(void); int main(void) { return own(); }\n")
        options = [f"-L{tmp_path}", "-lown", f"-Wl,-rpath,{tmp_path}"]
        subprocess.run(["gcc", "-o", str(tmp_path / "it"), str(tmp_path / "it.c"), *options], check=True)
        (tmp_path / "plugin.so").write_text("not an ELF file")
        plugins = (tmp_path / "plugin.so", tmp_path / "absent.so")
        return build_of(tmp_path / "it", plugins, ("libown", "libother"))

    first, second = built(1), built(2)
    assert list(first.files) == ["it", "plugin.so", "libown*"]
    assert second.unlike(first) == ("libown*",)


@needs_gcc
def test_a_file_that_is_cut_is_no_error(tmp_path: Path) -> None:
    whole = compiled(tmp_path, "it", "-g").read_bytes()
    for size in (0, 4, 30, 64, len(whole) // 2, len(whole) - 1):
        path = tmp_path / f"cut{size}"
        path.write_bytes(whole[:size])
        assert build_of(path).files[path.name]
    assert build_of(tmp_path / "absent") == Build()


def test_a_program_of_the_distribution_is_for_every_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "it"
    program.write_text("#!/bin/sh\n")
    monkeypatch.setattr(programs, "_package", lambda _: "it-tools")
    found = build_of(program)
    assert (found.level, found.words) == ("generic", "generic (package it-tools)")
