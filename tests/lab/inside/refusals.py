# SPDX-License-Identifier: BSD-3-Clause
"""Run in the lab: name NICs that must not be taken to a command, and print what it says and what it changed.

    refusals.py TESTER=SWITCH OTHER [CASE ...]

OTHER is a NIC of another speed, in no cable. The command is `switch check` in this process. Prints a line of JSON per
case: exit code, standard error output, and whether drivers and interfaces are as they were.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from planebench import cli
from planebench.host import pci
from planebench.host.device_settings import device_journal
from planebench.host.pci_binding import bind, bound
from planebench.host.process import stretched

(TESTER, SWITCH), OTHER = sys.argv[1].split("="), sys.argv[2]
NO_NIC = "0000:00:02.0"
"""The file system of the guest (lab_rig.py)."""
CLIENT, OWN = "192.0.2.2", "192.0.2.1/24"


def sh(command: str) -> None:
    subprocess.run(["sh", "-c", command], check=True)


def interface(nic: str = SWITCH) -> str:
    return pci.nic(nic).interfaces[0]


@contextlib.contextmanager
def as_it_is() -> Iterator[None]:
    yield


@contextlib.contextmanager
def with_address(route: str = "") -> Iterator[None]:
    name = interface()
    sh(f"ip link set {name} up && ip address add {OWN} dev {name} {route}")
    yield
    sh(f"ip address flush dev {name} && ip link set {name} down")


@contextlib.contextmanager
def reached_by_ssh() -> Iterator[None]:
    os.environ["SSH_CONNECTION"] = f"{CLIENT} 40000 192.0.2.1 22"
    with with_address():
        yield
    del os.environ["SSH_CONNECTION"]


@contextlib.contextmanager
def open_elsewhere() -> Iterator[None]:
    """A program that is not of planebench has the vfio group open."""
    with bound([SWITCH]), subprocess.Popen(["sleep", "1000"], stdin=group()) as user:
        yield
        user.kill()


def group() -> io.FileIO:
    return io.FileIO(f"/dev/vfio/{pci.nic(SWITCH).iommu_group}", "r")


@contextlib.contextmanager
def of_another_run() -> Iterator[None]:
    pid = os.fork()
    if pid == 0:
        bind([SWITCH])
        signal.pause()
    while pci.nic(SWITCH).driver != pci.VFIO:
        time.sleep(0.05)
    yield
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    device_journal().undo_abandoned()


@contextlib.contextmanager
def of_uio() -> Iterator[None]:
    device, driver = Path("/") / pci.DEVICES / SWITCH, pci.nic(SWITCH).driver
    swap(device, "uio_pci_generic")
    yield
    swap(device, str(driver))


def swap(device: Path, driver: str) -> None:
    (device / "driver/unbind").write_text(device.name)
    (device / "driver_override").write_text(driver)
    Path("/sys/bus/pci/drivers_probe").write_text(device.name)
    (device / "driver_override").write_text("\n")
    assert pci.nic(device.name).driver == driver


@contextlib.contextmanager
def up() -> Iterator[None]:
    """The interface is up and nothing uses it: the kernel knows whether it has a link."""
    name = interface()
    sh(f"ip link set {name} up")
    time.sleep(2)
    yield
    sh(f"ip link set {name} down")


@contextlib.contextmanager
def two_speeds() -> Iterator[None]:
    """The interfaces are up and nothing uses them: the kernel knows their speeds."""
    names = [interface(TESTER), interface(OTHER)]
    for name in names:
        sh(f"ip link set {name} up")
    deadline = time.monotonic() + stretched(10.0)
    while not all(pci.nic(nic).link for nic in (TESTER, OTHER)) and time.monotonic() < deadline:
        time.sleep(0.1)
    yield
    for name in names:
        sh(f"ip link set {name} down")


CASES = {
    "no NIC": (as_it_is, NO_NIC),
    "absent": (as_it_is, "0000:7f:00.0"),
    "twice": (as_it_is, TESTER),
    "default route": (lambda: with_address(f"&& ip route add default via {CLIENT}"), SWITCH),
    "ssh": (reached_by_ssh, SWITCH),
    "address": (with_address, SWITCH),
    "open": (open_elsewhere, SWITCH),
    "another run": (of_another_run, SWITCH),
    "uio": (of_uio, SWITCH),
    "another speed": (two_speeds, OTHER),
    "no link": (up, SWITCH),
    "as it is": (as_it_is, SWITCH),
}


def state() -> list[object]:
    """Return drivers, interfaces and addresses; those of IPv6 come by themselves when a link comes up."""
    addresses = subprocess.run(["ip", "-o", "-4", "address"], capture_output=True, check=True).stdout
    return [[(nic.address, nic.driver, nic.interfaces) for nic in pci.nics()], addresses]


def refused(switch: str) -> dict[str, object]:
    wire = f"pci:{TESTER}={switch}"
    sys.argv = ["planebench", "switch", "check", "planed", "--scenario", "p2v", "--check", "forwards", "--wire", wire]
    before, said = state(), io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        try:
            cli.main()
        except SystemExit as end:
            code = end.code
    return {"code": code, "said": said.getvalue(), "same": state() == before}


for case in sys.argv[3:] or [name for name in CASES if name not in ("open", "no link", "as it is")]:
    prepared, switch = CASES[case]
    with prepared():
        print(json.dumps({"case": case, **refused(switch)}), flush=True)
