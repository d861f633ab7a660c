# SPDX-License-Identifier: BSD-3-Clause
"""Run in the first domain of Xen: a chain of domains that run ClickOS, joined by bridges of Linux.

    chain_of_xen.py TOOLS CLICKOS FUNCTION...

A tester (planed) is at both ends, t0 and t1: t0 - b0 - FUNCTION - b1 - FUNCTION - b2 - t1. A function is the name of a
configuration of docs/switches. Prints a line of JSON: what came of what each direction sent, what each domain counted
in that time, and the same of frames of which the firewall allows none.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from planed_rig import Planed, ethdev, load, stream, task, until

from planebench.host.process import Supervisor
from planebench.testbed.request import af_packet_devargs

FRAMES, REFUSED, PPS = 200, 50, 200
PAGES = Path(__file__).parents[3] / "docs" / "switches"
RUN = Path("/run/xen")
HOTPLUG = '#!/bin/sh\n[ "$1" != online ] || exec xenstore-write "$XENBUS_PATH/hotplug-status" connected\n'
"""In the place of Debian's script, which is slow here."""
ELEMENTS = {
    r"FromDPDKDevice\((\w+)[^)]*\)": r"FromDevice(\1) -> from :: Counter",
    r"ToDPDKDevice\((\w+)[^)]*\)": r"to :: Counter -> ToDevice(\1)",
    r"EtherRewrite\(([^,]+), ([^)]+)\)": r"StoreEtherAddress(\1, src) -> StoreEtherAddress(\2, dst)",
}
"""Elements of FastClick, and those of ClickOS that do the same."""
BYTES_OF_A_NODE = 900


def main(tools: Path, clickos: str, functions: Sequence[str]) -> None:
    _start_daemons(tools)
    with Supervisor() as supervisor, _chain(clickos, functions) as domains:
        tester = Planed(supervisor, "tester")
        ends = [ethdev(end, f"net_af_packet_{end},{af_packet_devargs(end, 512, 1518)}") for end in ("t0", "t1")]
        tasks = [task(f"mon{way}", "monitor", f"t{way}") for way in (0, 1)]
        tester.apply(ends, [*tasks, *(task(f"gen{way}", "generator", f"t{way}", stream=way) for way in (0, 1))])
        until(lambda: all(_sent_and_came(tester, way, 5)[1] for way in (0, 1)), "frames cross the chain")
        before = _counted(domains)
        ways = [_sent_and_came(tester, way, FRAMES) for way in (0, 1)]
        between = _counted(domains)
        print(json.dumps({"ways": ways, "domains": _more(between, before)}))
        tester.call("stats.clear")
        _send_refused()
        came = tester.settled()["mon1"]["rx_packets"]
        print(json.dumps({"refused": REFUSED, "came": came, "domains": _more(_counted(domains), between)}))


def _start_daemons(tools: Path) -> None:
    libraries = {str(path.parent) for path in tools.glob("usr/lib/x86_64-linux-gnu/*.so.*")}
    os.environ["LD_LIBRARY_PATH"] = ":".join([*libraries, *map(str, tools.glob("usr/lib/xen-*/lib/x86_64-linux-gnu"))])
    os.environ["PATH"] = f"{next(tools.glob('usr/lib/xen-*/bin'))}:{tools}/usr/bin:{os.environ['PATH']}"
    if RUN.exists():
        return
    for folder in (
        RUN,
        Path("/run/xenstored"),
        Path("/var/lib/xen"),
        Path("/var/log/xen/console"),
        Path("/var/lib/xenstored"),
    ):
        folder.mkdir(parents=True, exist_ok=True)
    _run("mount", "-t", "xenfs", "xenfs", "/proc/xen")
    _run("xenstored", "--pid-file", "/run/xenstored.pid")
    until(Path("/run/xenstored/socket").exists, "xenstored listens")
    _run("xen-init-dom0")
    _run("xenconsoled", "--pid-file=/run/xenconsoled.pid", "--log=guest")
    (RUN / "hotplug").write_text(HOTPLUG)
    (RUN / "hotplug").chmod(0o755)


@contextmanager
def _chain(clickos: str, functions: Sequence[str]) -> Iterator[list[int]]:
    """Yield the numbers of the domains, all of which forward, joined by bridges that do not learn."""
    with ExitStack() as stack:
        for number in range(len(functions) + 1):
            _run("ip", "link", "add", f"b{number}", "type", "bridge", "mcast_snooping", "0")
            stack.callback(_run, "ip", "link", "del", f"b{number}")
        for end, bridge in (("t0", "b0"), ("t1", f"b{len(functions)}")):
            _run("ip", "link", "add", end, "type", "veth", "peer", f"{end}-b")
            stack.callback(_run, "ip", "link", "del", end)
            _join(f"{end}-b", bridge)
            _up(end)
        domains = []
        for number, function in enumerate(functions):
            stack.callback(_destroy, f"vnf{number}")
            domains.append(_start_domain(number, clickos, function))
        yield domains


def _start_domain(number: int, clickos: str, function: str) -> int:
    vifs = [f"'mac=00:16:3e:00:0{number}:0{end},script={RUN}/hotplug'" for end in (0, 1)]
    configuration = RUN / f"vnf{number}.cfg"
    configuration.write_text(
        f"name='vnf{number}'\nkernel='{clickos}'\nmemory=32\nvcpus=1\non_crash='destroy'\nvif=[{','.join(vifs)}]\n"
    )
    until(lambda: _created(configuration), "xl creates the domain")
    domain = int(_run("xl", "domid", f"vnf{number}"))
    for end in (0, 1):
        _join(f"vif{domain}.{end}", f"b{number + end}")
    root = f"/local/domain/{domain}/data/clickos"
    until(lambda: _read(root) is not None, "ClickOS is up")
    for part, text in enumerate(_parts(_for_minios((PAGES / f"{function}.click").read_text()))):
        _run("xenstore-write", f"{root}/0/config/{part}", text)
    _run("xenstore-write", f"{root}/0/status", "Running")
    return domain


def _created(configuration: Path) -> bool:
    """Whether a domain was created; where the machine is busy, a vif may take longer than the ten seconds of xl."""
    return subprocess.run(["xl", "create", str(configuration)], capture_output=True).returncode == 0


def _for_minios(text: str) -> str:
    """Return a configuration with ClickOS' elements, and one level, the only one whose counters it shows."""
    macs = dict(re.findall(r"(\$MAC\d) ([\d:]+)", text))
    found = re.search(r"elementclass (\w+) \{([^|]*)\|(.*?)\n\}", text, re.DOTALL)
    assert found is not None
    name, parameters, body = found.groups()
    made = []
    for way, values in enumerate(re.findall(rf"^{name}\((.*)\);$", text, re.MULTILINE)):
        one = body
        for parameter, value in zip(re.findall(r"\$\w+", parameters), values.split(", "), strict=True):
            one = one.replace(parameter, macs.get(value, value))
        for pattern, words in ELEMENTS.items():
            one = re.sub(pattern, words, one)
        made.append(re.sub(r"\b(from|to|type|check)( ::|\[)", rf"\g<1>{way}\2", one))
    return re.sub(r"\s+", " ", "".join(made))


def _parts(text: str) -> list[str]:
    return [text[begin : begin + BYTES_OF_A_NODE] for begin in range(0, len(text), BYTES_OF_A_NODE)]


def _counted(domains: Sequence[int]) -> list[dict[str, int]]:
    """Return what the counters of each domain say of each way: frames that came from a vif, and that went to one."""
    names = [f"{counter}{way}" for way in (0, 1) for counter in ("from", "to")]
    return [{name: _count(domain, name) for name in names} for domain in domains]


def _count(domain: int, counter: str) -> int:
    root = f"/local/domain/{domain}/data/clickos/0"
    answer = f"{root}/elements/{counter}/count"
    _run("xenstore-rm", answer, check=False)
    _run("xenstore-write", f"{root}/control/read/{counter}/count", "")
    until(lambda: _read(f"{answer}/lock") == "0", f"the count of {counter}")
    return int(_read(answer) or "")


def _more(now: list[dict[str, int]], before: list[dict[str, int]]) -> list[dict[str, int]]:
    return [{name: it[name] - was[name] for name in it} for it, was in zip(now, before, strict=True)]


def _sent_and_came(tester: Planed, way: int, frames: int) -> tuple[int, int]:
    seen = tester.send(load(f"gen{way}", rate_pps=PPS), epoch=frames, duration_s=frames / PPS)
    came = stream(seen[f"mon{1 - way}"], way)
    assert not any(came[f"{what}_packets"] for what in ("duplicate", "reordered", "corrupt")), came
    return seen[f"gen{way}"]["tx_packets"], came["forwarded_packets"]


def _send_refused() -> None:
    """Send UDP from a multicast address, which a rule of the firewall denies, and no route of the router has."""
    header = bytearray.fromhex("4500002e 00000000 40110000 e0000001 c0000201")
    total = sum(int.from_bytes(header[at : at + 2]) for at in range(0, 20, 2))
    header[10:12] = (~(total % 0xFFFF) & 0xFFFF).to_bytes(2)
    with contextlib.closing(socket.socket(socket.AF_PACKET, socket.SOCK_RAW)) as end:
        end.bind(("t0", 0))
        for _ in range(REFUSED):
            end.send(bytes.fromhex("020000000101 020000000100 0800") + header + bytes(26))


def _join(interface: str, bridge: str) -> None:
    _run("ip", "link", "set", interface, "master", bridge)
    _run("ip", "link", "set", interface, "type", "bridge_slave", "learning", "off")
    _up(interface)
    _up(bridge)


def _up(interface: str) -> None:
    Path(f"/proc/sys/net/ipv6/conf/{interface}/disable_ipv6").write_text("1")
    _run("ip", "link", "set", interface, "up")


def _read(path: str) -> str | None:
    done = subprocess.run(["xenstore-read", path], capture_output=True, text=True)
    return done.stdout.removesuffix("\n") if done.returncode == 0 else None


def _destroy(name: str) -> None:
    _run("xl", "destroy", name, check=False)


def _run(*argv: str, check: bool = True) -> str:
    done = subprocess.run(argv, capture_output=True, text=True)
    assert not check or done.returncode == 0, f"{argv}: {done.stdout} {done.stderr}"
    return done.stdout


main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
