# SPDX-License-Identifier: BSD-3-Clause
"""Set up a switch in the kernel, inside the network namespace this program is started in. Used by ``kernel.py``.

    kernel_setup.py input CPU,CPU... INTERFACE...    a kernel thread polls each, on CPUs in turn: prints both
    kernel_setup.py bridge INTERFACE,INTERFACE...    a bridge br0, br1, ... for each pair
    kernel_setup.py redirect INTERFACE,INTERFACE...  XDP: each redirects what it receives to the other
    kernel_setup.py clear INTERFACE...               remove bridges, XDP programs and filters again

By path with ``python -I``: the standard library and pyroute2. The two XDP programs are of a few instructions, so they
are assembled here and loaded with bpf(): no compiler, no library, no file in between.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import itertools
import os
import socket
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

CLONE_NEWNS = 0x20000
MS_REC, MS_PRIVATE = 0x4000, 0x40000
SIOCETHTOOL, ETHTOOL_SGRO = 0x8946, 0x2C
BPF_SYSCALL = {"x86_64": 321, "aarch64": 280, "riscv64": 280}
BPF_MAP_CREATE, BPF_MAP_UPDATE_ELEM, BPF_PROG_LOAD = 0, 2, 5
BPF_MAP_TYPE_DEVMAP, BPF_PROG_TYPE_XDP, BPF_F_XDP_HAS_FRAGS = 14, 6, 1 << 5
BPF_PSEUDO_MAP_FD, BPF_REDIRECT_MAP, XDP_PASS = 1, 51, 2
XDP_FLAGS_DRV_MODE = 1 << 2
NETFILTER = ("bridge-nf-call-iptables", "bridge-nf-call-ip6tables", "bridge-nf-call-arptables")
COMM_MAX = 15

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")
    return result


# A kernel thread for the input of each interface


def place_input(route: IPRoute, cpus: Sequence[str], interfaces: Sequence[str]) -> None:
    """Pin a kernel thread that polls each interface (threaded NAPI) to ``cpus`` in turn, and print them. Raises OSError
    or NetlinkError.

    A veth has NAPI only with GRO on its peer or with an XDP program (veth.c). GRO merges and reorders frames, so it is
    an XDP program that passes every frame.
    """
    # A sysfs that shows the interfaces of this namespace, visible to this process only.
    _checked(_libc.unshare(CLONE_NEWNS), "unshare(mount namespace)")
    _checked(_libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "mount(private)")
    _checked(_libc.mount(b"sysfs", b"/sys", b"sysfs", 0, None), "mount(sysfs)")
    for name, cpu in zip(interfaces, itertools.cycle(cpus), strict=False):
        before = _threads_of(name)
        _attach(route, _index(route, name), _PASS)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:  # GRO off: an XDP program turns it on
            value = (ctypes.c_uint32 * 2)(ETHTOOL_SGRO, 0)
            fcntl.ioctl(any_socket, SIOCETHTOOL, struct.pack("16sP16x", name.encode(), ctypes.addressof(value)))
        Path("/sys/class/net", name, "threaded").write_text("1")
        new = _threads_of(name) - before
        if len(new) != 1:
            raise OSError(f"{name} has {len(new)} new threads napi/{name}-ID, not one")
        (thread,) = new
        os.sched_setaffinity(thread, {int(cpu)})
        with contextlib.suppress(OSError):  # as every switch has it, where the system allows it
            os.setpriority(os.PRIO_PROCESS, thread, -20)
        print(name, thread, flush=True)


def _threads_of(interface: str) -> set[int]:
    """Return the threads ``napi/INTERFACE-ID`` of all namespaces. Linux before 5.17 truncates their names."""
    marks = (f"napi/{interface}-", f"napi/{interface}-"[:COMM_MAX])
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            comm = (folder / "comm").read_text().strip()
            if comm.startswith(marks[0]) or comm == marks[1]:
                found.add(int(folder.name))
    return found


# Linux bridge


def bridge(route: IPRoute, pairs: Sequence[Sequence[str]]) -> None:
    """Make a bridge for each pair, without STP, multicast snooping, netfilter and forwarding delay."""
    for name in NETFILTER:
        with contextlib.suppress(OSError):  # not there until br_netfilter is loaded
            Path("/proc/sys/net/bridge", name).write_text("0")
    for number, pair in enumerate(pairs):
        route.link("add", ifname=f"br{number}", kind="bridge", br_stp_state=0, br_mcast_snooping=0, br_forward_delay=0)
        master = _index(route, f"br{number}")
        for interface in pair:
            route.link("set", index=_index(route, interface), master=master)
        route.link("set", index=master, state="up")


def _index(route: IPRoute, name: str) -> int:
    found = route.link_lookup(ifname=name)
    if not found:
        raise OSError(f"there is no interface {name}")
    return int(found[0])


# XDP


def redirect(route: IPRoute, pairs: Sequence[Sequence[str]]) -> None:
    """Redirect frames between both interfaces of each pair.

    Their peers get a program too: the kernel drops frames that are redirected to a veth whose peer has no NAPI.
    """
    ways = [(_index(route, a), _index(route, b)) for pair in pairs for a, b in (pair, pair[::-1])]
    devmap = _bpf(BPF_MAP_CREATE, struct.pack("=5I", BPF_MAP_TYPE_DEVMAP, 4, 4, len(ways), 0), "make a devmap")
    for key, (source, target) in enumerate(ways):
        there, what = ctypes.c_uint32(key), ctypes.c_uint32(target)
        entry = struct.pack("=I4xQQQ", devmap, ctypes.addressof(there), ctypes.addressof(what), 0)
        _bpf(BPF_MAP_UPDATE_ELEM, entry, "fill the devmap")
        code = (  # return bpf_redirect_map(devmap, key, 0)
            _instruction(0x18, target=1, source=BPF_PSEUDO_MAP_FD, value=devmap),  # r1 = devmap, 64 bits
            _instruction(0),
            _instruction(0xB7, target=2, value=key),  # r2 = key
            _instruction(0xB7, target=3, value=0),  # r3 = flags: abort what has no entry
            _instruction(0x85, value=BPF_REDIRECT_MAP),  # call
            _instruction(0x95),  # exit
        )
        _attach(route, source, b"".join(code))
    for source, _ in ways:
        _attach(route, _peer(route, source), _PASS)


def _peer(route: IPRoute, index: int) -> int:
    return int(route.get_links(index)[0].get_attr("IFLA_LINK"))


def _attach(route: IPRoute, index: int, code: bytes) -> None:
    """Load an XDP program, and attach it to an interface."""
    text, licence = ctypes.create_string_buffer(code, len(code)), ctypes.create_string_buffer(b"BSD-3-Clause")
    attributes = struct.pack(
        "=IIQQIIQII16sII",
        BPF_PROG_TYPE_XDP, len(code) // 8, ctypes.addressof(text), ctypes.addressof(licence),
        0, 0, 0, 0, BPF_F_XDP_HAS_FRAGS, b"planebench", 0, 0,
    )  # fmt: skip
    fd = _bpf(BPF_PROG_LOAD, attributes, "load an XDP program")
    route.link("set", index=index, xdp={"attrs": [("IFLA_XDP_FD", fd), ("IFLA_XDP_FLAGS", XDP_FLAGS_DRV_MODE)]})
    os.close(fd)


def _instruction(code: int, target: int = 0, source: int = 0, value: int = 0) -> bytes:
    return struct.pack("=BBhi", code, source << 4 | target, 0, value)


_PASS = _instruction(0xB7, target=0, value=XDP_PASS) + _instruction(0x95)


def _bpf(command: int, attributes: bytes, what: str) -> int:
    number = BPF_SYSCALL.get(os.uname().machine)
    if number is None:
        raise OSError(f"cannot {what}: the system call number of bpf() on {os.uname().machine} is unknown")
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    return _checked(_libc.syscall(number, command, buffer, len(attributes)), f"cannot {what}")


def clear(route: IPRoute, interfaces: Sequence[str]) -> None:
    """Remove every bridge, and the programs of these interfaces and their peers."""
    for link in route.get_links(kind="bridge"):
        route.link("del", index=link["index"])
    for name in interfaces:
        index = _index(route, name)
        with contextlib.suppress(NetlinkError):  # it has none
            route.tc("del", "clsact", index=index)
        for which in (index, _peer(route, index)):
            route.link("set", index=which, xdp={"attrs": [("IFLA_XDP_FD", -1)]})


def main(action: str, arguments: list[str]) -> None:
    """Run an action. Raises OSError or NetlinkError."""
    pairs = [argument.split(",") for argument in arguments]
    with IPRoute() as route:
        if action == "bridge":
            bridge(route, pairs)
        elif action == "redirect":
            redirect(route, pairs)
        elif action == "clear":
            clear(route, arguments)
        else:
            place_input(route, pairs[0], arguments[1:])


if __name__ == "__main__":
    try:
        main(sys.argv[1], sys.argv[2:])
    except Exception as error:  # NetlinkError is none of OSError's
        sys.exit(f"{sys.argv[1]}: {error}")
