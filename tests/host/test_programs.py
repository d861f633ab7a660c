# SPDX-License-Identifier: BSD-3-Clause
"""Where a switch is looked for, and in which order; what is said of a path that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from planebench.host import programs as finding
from planebench.host.files import default_folder
from planebench.host.planed_program import BROKEN_REMEDY, PLANED_ENV, find_planed, require_planed
from planebench.host.programs import Installation, find_program, installation, required
from planebench.measure.doctor import switch_finding
from planebench.model.errors import NotInstalledError, UsageError
from planebench.switches import planed


@pytest.fixture(autouse=True)
def nothing_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing in the environment names a switch."""
    for name in ("PLANEBENCH_VPP", "PLANEBENCH_OVS_DPDK"):
        monkeypatch.delenv(name, raising=False)


def program(path: Path, mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return path


LOADER = "planed: error while loading shared libraries: librte_fib.so.23: cannot open shared object file: No such file"


def test_a_planed_that_does_not_load_says_which_library_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = program(tmp_path / "planed")
    broken.write_text(f'#!/bin/sh\necho "{LOADER}" >&2\nexit 127\n')
    monkeypatch.setenv(PLANED_ENV, str(broken))
    for ask in (require_planed, lambda: required(planed.ADAPTER.title, planed.ADAPTER.find())):
        with pytest.raises(NotInstalledError, match=r"does not start: .* librte_fib\.so\.23: cannot open") as e:
            ask()
        assert "not installed" not in str(e.value) and BROKEN_REMEDY in str(e.value)


def test_the_static_planed_stands_in_for_one_that_lacks_a_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(PLANED_ENV, raising=False)
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    broken, static = program(tmp_path / "planed"), program(tmp_path / "planed-static")
    broken.write_text(f'#!/bin/sh\necho "{LOADER}" >&2\nexit 127\n')
    static.write_text("#!/bin/sh\necho planed 0.1.0\n")
    assert require_planed() == static
    with pytest.raises(NotInstalledError, match=rf"NICs and AF_XDP need .* {broken}, which .*: librte_fib\.so\.23: c"):
        require_planed(drivers=True)
    found = planed.ADAPTER.find()
    assert isinstance(found, finding.Found) and found.binary == static
    judged = switch_finding("planed", found)
    assert judged.level == "warning" and "librte_fib.so.23" in judged.text and judged.remedy == BROKEN_REMEDY

    static.unlink()
    assert find_planed() == broken, "its complaint is what the user needs to know"
    static = program(tmp_path / "planed-static")
    broken.write_text("#!/bin/sh\nexit 1\n")
    assert find_planed() == broken, "it loads, so that another fault must be seen"
    monkeypatch.setenv(PLANED_ENV, str(broken))
    broken.write_text(f'#!/bin/sh\necho "{LOADER}" >&2\nexit 127\n')
    assert find_planed() == broken, "the user named it"


def test_a_planed_that_is_not_there_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PLANED_ENV, "/nowhere/planed")
    with pytest.raises(NotInstalledError, match="is not installed; to install: build it with `make setup`"):
        require_planed()


def test_nobody_says_anything() -> None:
    assert installation("vpp") == Installation()


def test_the_option_counts_before_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = {name: program(tmp_path / name / "vpp").parent for name in ("option", "variable")}
    monkeypatch.setenv("PLANEBENCH_VPP", str(here["variable"]))
    assert installation("vpp").path == here["variable"]
    found = installation("vpp", str(here["option"]))
    assert (found.path, found.said_by) == (here["option"], "switch vpp: path")
    assert installation("bess") == Installation(), "another switch has nothing of it"


def test_a_name_with_a_dash_has_a_variable_with_an_underscore(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANEBENCH_OVS_DPDK", str(tmp_path))
    assert installation("ovs-dpdk").path == tmp_path


def test_an_empty_variable_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANEBENCH_VPP", "")
    assert installation("vpp").path is None


def test_home_and_relative_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "vpp").mkdir()
    assert installation("vpp", "~/vpp").path == tmp_path / "vpp"
    assert installation("vpp", "vpp").path == tmp_path / "vpp"


def test_a_path_that_does_not_exist_names_who_said_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match='switch vpp: path "/nope" does not exist; give the program or its directory'):
        installation("vpp", "/nope")
    monkeypatch.setenv("PLANEBENCH_VPP", "/nope")
    with pytest.raises(UsageError, match='PLANEBENCH_VPP "/nope" does not exist'):
        installation("vpp")


def test_without_a_path_it_is_on_path_then_in_the_usual_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = (str(tmp_path / "opt-*/bin/thing"),)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert Installation().program("thing", places) is None
    old, new = (program(tmp_path / f"opt-{number}/bin/thing") for number in (1, 2))
    assert Installation().program("thing", places) == new, "of several the last by name: the newest version"
    there = program(tmp_path / "bin/thing")
    assert Installation().programs("thing", places) == [there, new, old]


def test_what_cannot_be_run_is_not_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    program(tmp_path / "bin/thing", 0o644)
    (tmp_path / "opt/thing").mkdir(parents=True)
    assert Installation().program("thing", (str(tmp_path / "opt/thing"),)) is None


def test_system_folders_are_looked_in_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nope")
    assert find_program("sh") in (Path("/usr/bin/sh"), Path("/bin/sh"))
    assert find_program("no-such-program-here") is None


@pytest.mark.parametrize(
    ("said", "where"),
    [
        ("vpp", "vpp"),  # the program itself
        ("vpp-new", "vpp-new"),  # a second build beside it
        (".", "vpp"),  # the folder
        (".", "bin/vpp"),  # the folder that it was installed in
        (".", "opt/vpp/bin/vpp"),  # a whole installation, as DESTDIR has it
        (".", "install/bin/vpp"),  # a build: the end of a usual place
    ],
)
def test_a_path_is_a_program_or_a_folder(tmp_path: Path, said: str, where: str) -> None:
    there = program(tmp_path / where)
    program(tmp_path / "other")
    found = Installation(tmp_path / said, said_by="you")
    assert found.program("vpp", ("/opt/vpp/bin/vpp", "/src/build-root/install/bin/vpp")) == there


def test_a_file_that_is_named_is_not_its_neighbour(tmp_path: Path) -> None:
    old, new = program(tmp_path / "vpp"), program(tmp_path / "vpp-new")
    assert Installation(new).program("vpp") == new and Installation(old).program("vpp") == old
    there = program(tmp_path / "job[1]" / "vpp")
    assert Installation(there).program("vpp") == Installation(there.parent).program("vpp") == there, "no pattern"


def test_a_home_that_is_nobodys_does_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match='path "~nobody9/vpp" does not exist'):
        installation("vpp", "~nobody9/vpp")
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda _: {}[0])
    with pytest.raises(UsageError, match="no home folder; set HOME or XDG_CACHE_HOME"):
        default_folder()
    assert Installation().program("no-such-program-here", ("~/vpp",)) is None


def test_a_path_of_the_users_is_the_only_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "bin/vpp")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r'PLANEBENCH_VPP ".*/empty" contains no program vpp'):
        Installation(tmp_path / "empty", said_by="PLANEBENCH_VPP").program("vpp", (str(tmp_path / "bin/vpp"),))


def test_every_switch_has_the_option_path() -> None:
    assert (finding.PATH_OPTION.name, finding.PATH_OPTION.kind) == ("path", "text")
