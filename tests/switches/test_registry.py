# SPDX-License-Identifier: BSD-3-Clause
"""Adapters of other packages: found by their entry point; one that is broken is named, and takes no other with it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

import pytest

from planebench.host.process import Supervisor
from planebench.host.programs import Found, NotFound
from planebench.model.errors import StartError, UsageError
from planebench.switches import overview, registry
from planebench.switches.adapter import Adapter, RunningSwitch, Situation, Traits
from planebench.switches.registry import ADAPTERS, all_adapters, broken_adapters, get_adapter
from planebench.testbed.request import SwitchRequest


class Foreign(Adapter):
    """A switch of another package."""

    name = "foreign"
    title = "A foreign switch"
    remedy = "buy it"
    traits = Traits("modular", "structured", ("rtc",), "none", "low", ("C",), "a test")

    def find(self) -> Found | NotFound:
        return NotFound(self.remedy)

    def settings(self, request: SwitchRequest) -> dict[str, str]:
        return {}

    def start(self, request: SwitchRequest, supervisor: Supervisor) -> RunningSwitch:
        raise StartError("never")


class Raising(Foreign):
    name = "raising"

    def find(self) -> Found | NotFound:
        raise ZeroDivisionError("its own fault")

    def refusal(self, situation: Situation) -> str:
        raise KeyError("too")


class Misled(Foreign):
    """PLANEBENCH_MISLED names what is not there."""

    name = "misled"

    def find(self) -> Found | NotFound:
        raise UsageError('PLANEBENCH_MISLED "/nope" does not exist; give the program or its directory')


@pytest.fixture(autouse=True)
def points(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, object]]:
    """Entry point name -> object of a module; a name without an object cannot be imported."""
    module = ModuleType("strangers")
    found: dict[str, object] = {}

    def entry_points(*, group: str) -> list[EntryPoint]:
        assert group == "planebench.switches"
        for name, value in found.items():
            setattr(module, f"it_{name}", value)
        there = [EntryPoint(name, f"strangers:it_{name}", group) for name in found]
        return [*there, EntryPoint("gone", "strangers:nothing", group)]

    monkeypatch.setitem(sys.modules, "strangers", module)
    monkeypatch.setattr(registry, "entry_points", entry_points)
    registry._foreign.cache_clear()
    yield found
    registry._foreign.cache_clear()


def test_an_adapter_of_another_package_is_listed_behind_ours(points: dict[str, object]) -> None:
    points["foreign"] = adapter = Foreign()
    assert list(all_adapters()) == [*ADAPTERS, "foreign"]
    assert get_adapter("foreign") is adapter


def test_its_options_are_checked_as_ours_are(points: dict[str, object]) -> None:
    points["foreign"] = Foreign()
    assert get_adapter("foreign:path=/x").name == "foreign"
    with pytest.raises(UsageError, match=r'option of switch foreign.*"speed"'):
        get_adapter("foreign:speed=1")


def test_what_cannot_be_imported_is_named_and_the_others_stay(points: dict[str, object]) -> None:
    points["foreign"] = Foreign()
    assert list(broken_adapters()) == ["gone"]
    assert "strangers:nothing" in broken_adapters()["gone"]
    assert "foreign" in all_adapters()
    with pytest.raises(UsageError, match="switch gone cannot be loaded: strangers:nothing"):
        get_adapter("gone")


@pytest.mark.parametrize(
    ("name", "what", "said"),
    [
        ("planed", Foreign(), "a switch planed exists already"),
        ("foreign", object(), "its object is a object; derive it from planebench.switches.base.Adapter"),
        ("foreign", Foreign, "its object is a class"),
        ("other", Foreign(), "its name is foreign, not that of the entry point"),
    ],
)
def test_what_is_no_adapter_is_refused(points: dict[str, object], name: str, what: object, said: str) -> None:
    points[name] = what
    assert said in broken_adapters()[name]
    assert list(all_adapters()) == list(ADAPTERS)


def test_the_overview_survives_all_of_them(points: dict[str, object]) -> None:
    points.update(foreign=Foreign(), raising=Raising(), misled=Misled())
    seen = {it.name: it for it in overview.overviews()}
    assert list(seen)[-4:] == ["foreign", "raising", "misled", "gone"]
    assert (seen["foreign"].problem, seen["foreign"].remedy) == ("", "buy it")
    assert seen["raising"].problem == "its adapter failed: ZeroDivisionError('its own fault')"
    assert not any(it.supported for it in seen["raising"].wires["virtio"].values())
    assert seen["misled"].problem.startswith('PLANEBENCH_MISLED "/nope" does not exist')
    assert seen["gone"].problem.startswith("cannot be loaded: strangers:nothing")
    assert not any(seen[name].found for name in ("foreign", "raising", "misled", "gone"))


class Picky(Foreign):
    """Refuses by wire, chain and memory."""

    name = "picky"
    wires = frozenset({"virtio", "veth"})

    def refusal(self, situation: Situation) -> str:
        if super().refusal(situation) or (situation.wire == "veth" and situation.scenario != "p2p"):
            return "its VNFs are not there"
        if situation.chain_length > 3:
            return "it has eight ports"
        return "it needs hugepages" if situation.scenario == "v2v" and not situation.hugepages else ""


def test_support_is_what_refusal_says() -> None:
    wires = overview.overview(Picky()).wires
    assert list(wires) == ["virtio", "veth"]
    virtio, veth = wires["virtio"], wires["veth"]
    assert virtio["p2p"] == overview.Support(True)
    assert virtio["v2v"] == overview.Support(True, "only with hugepages: it needs hugepages")
    assert virtio["loopback"] == overview.Support(True, "up to 3 VNFs: it has eight ports")
    assert veth["p2p"] == overview.Support(True)
    assert veth["v2v"] == veth["loopback"] == overview.Support(False, "its VNFs are not there")


def test_another_build_of_planed_is_the_switch_alone(tmp_path: Path) -> None:
    other = tmp_path / "planed"
    other.write_text("#!/bin/sh\necho planed 9.9.9\n")
    other.chmod(0o755)
    for path in (other, tmp_path):
        assert get_adapter("planed").with_options({"path": str(path)}).find() == Found("9.9.9", other)
    with pytest.raises(UsageError, match="does not exist"):
        get_adapter("planed").with_options({"path": str(tmp_path / "nowhere")}).find()
