# SPDX-License-Identifier: BSD-3-Clause
"""The virtual functions of a NIC as values that the journal changes and puts back.

The attributes of a VF (``ip link set PF vf N ...``) and whether an interface is up are values of paths that no file
has: the program ``ip`` reads and writes them.
"""

from __future__ import annotations

import errno
import json
import re
from pathlib import Path
from typing import Any, Literal

from planebench.host.journal import Setting, at
from planebench.host.procfs import entries, read_text
from planebench.host.programs import run_tool

IP_TIMEOUT_S = 10.0
Attribute = Literal["mac", "trust", "spoofchk"]
_KEYS = {"mac": "address", "trust": "trust", "spoofchk": "spoofchk"}
"""The name that ``ip -j link show`` has for each attribute."""
_ATTRIBUTE = re.compile(r"/sys/bus/pci/devices/[^/]+/vf(\d+)_(mac|trust|spoofchk)")
_MAC_OR_TRUST = re.compile(r"on|off|(?:[0-9a-f]{2}:){5}[0-9a-f]{2}")


def number_path(address: str) -> str:
    """Return the path of the number of VFs of a NIC."""
    return f"/sys/bus/pci/devices/{address}/sriov_numvfs"


def attribute_path(address: str, number: int, attribute: Attribute) -> str:
    """Return the path of an attribute of a VF in the journal."""
    return f"/sys/bus/pci/devices/{address}/vf{number}_{attribute}"


def up_path(address: str) -> str:
    """Return the path in the journal of whether the interface of a NIC is up: ``on`` or ``off``."""
    return f"/sys/bus/pci/devices/{address}/up"


def write_number(root: Path, path: str, value: str) -> None:
    """Set the number of VFs, which the kernel takes from 0 only. Raises OSError."""
    file = at(root, path)
    if value != "0" and read_text(file) != "0":
        file.write_text("0", encoding="ascii")
    file.write_text(value, encoding="ascii")


def read_attribute(root: Path, path: str) -> str | None:
    """Return an attribute of a VF; None if the VF or its NIC is gone, or the driver does not tell."""
    match, interface = _ATTRIBUTE.fullmatch(path), _interface(root, path)
    if match is None or interface is None:
        return None
    functions = _shown(interface).get("vfinfo_list", [])
    mine: dict[str, Any] = next((function for function in functions if function.get("vf") == int(match[1])), {})
    value = mine.get(_KEYS[match[2]])
    return ("on" if value else "off") if isinstance(value, bool) else value


def write_attribute(root: Path, path: str, value: str) -> None:
    """Set an attribute of a VF. Raises OSError."""
    match, interface = _ATTRIBUTE.fullmatch(path), _interface(root, path)
    if match is None or interface is None or _MAC_OR_TRUST.fullmatch(value) is None:
        raise OSError(errno.ENODEV, "its NIC has no interface")
    _ip("link", "set", "dev", interface, "vf", match[1], match[2], value)


def read_up(root: Path, path: str) -> str | None:
    """Return whether the interface of a NIC is up, ``on`` or ``off``; None if it has none."""
    interface = _interface(root, path)
    flags = read_text(root / "sys/class/net" / interface / "flags") if interface else None
    return None if flags is None else ("on" if int(flags, 16) & 1 else "off")


def write_up(root: Path, path: str, value: str) -> None:
    """Bring the interface of a NIC up or down. Raises OSError."""
    interface = _interface(root, path)
    if interface is None:
        raise OSError(errno.ENODEV, "its NIC has no interface")
    _ip("link", "set", "dev", interface, "up" if value == "on" else "down")


def _interface(root: Path, path: str) -> str | None:
    names = [entry.name for entry in entries(at(root, path).parent / "net")]
    return names[0] if names else None


def _shown(interface: str) -> dict[str, Any]:
    """Return what ``ip`` tells of an interface; empty where it tells nothing."""
    try:
        (found,) = json.loads(run_tool(["ip", "-j", "-d", "link", "show", "dev", interface], IP_TIMEOUT_S).stdout)
    except ValueError:
        return {}
    return dict(found)


def _ip(*words: str) -> None:
    done = run_tool(["ip", *words], IP_TIMEOUT_S)
    if not done.ok:
        said = done.stderr.strip().splitlines()
        raise OSError(errno.EIO, f"`ip {' '.join(words)}` said: {said[-1] if said else 'nothing'}")


_DEVICE = "/sys/bus/pci/devices/????:??:??.?"
NUMBER = Setting((f"{_DEVICE}/sriov_numvfs",), write=write_number)
UP = Setting((f"{_DEVICE}/up",), read_up, write_up)
ATTRIBUTES = Setting(tuple(f"{_DEVICE}/vf*_{attribute}" for attribute in _KEYS), read_attribute, write_attribute)
