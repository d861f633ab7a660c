# SPDX-License-Identifier: BSD-3-Clause
"""The firewall in the micro-benchmark of network functions: its default ten rules, and seeded sets that mix prefixes
and port ranges. Packets are spread over all rules and the default, so that no branch and no cache line is always the
same.
"""

from __future__ import annotations

import ipaddress
import random
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nf_case import Case, FrameIn

_FRAMES = 4096
_PREFIXES = (8, 16, 16, 20, 24, 24, 24, 28, 32, 32)
_UDP = 17


@dataclass(frozen=True, slots=True)
class _Rule:
    """UDP or any protocol, from and to: network and inclusive range of ports, None for any."""

    source: ipaddress.IPv4Network
    target: ipaddress.IPv4Network
    source_ports: tuple[int, int] | None
    target_ports: tuple[int, int] | None

    def text(self) -> str:
        """As in a rule file."""
        ends = (("from", self.source, self.source_ports), ("to", self.target, self.target_ports))
        named = (f"{word} {net}{f' port {ports[0]}-{ports[1]}' if ports else ''}" for word, net, ports in ends)
        return f"permit udp {' '.join(named)}"


def _network(rng: random.Random) -> ipaddress.IPv4Network:
    return ipaddress.IPv4Network((rng.getrandbits(32), rng.choice(_PREFIXES)), strict=False)


def _ports(rng: random.Random) -> tuple[int, int] | None:
    match rng.randrange(4):
        case 0:
            return None
        case 1:
            port = rng.randrange(65536)
            return port, port
        case 2:
            return 1024, 65535
        case _:
            low = rng.randrange(65536)
            return low, min(low + rng.randrange(1000), 65535)


def _rules(rng: random.Random, count: int) -> list[_Rule]:
    return [
        _Rule(_network(rng), _network(rng), None if rng.random() < 0.5 else _ports(rng), _ports(rng))
        for _ in range(count)
    ]


def _frame(source: int, target: int, source_port: int, target_port: int) -> FrameIn:
    """64 bytes with FCS: Ethernet, IPv4, UDP."""
    ip = struct.pack(">BBHHHBBHII", 0x45, 0, 46, 0, 0x4000, 64, _UDP, 0, source, target)
    total = sum(struct.unpack(">10H", ip))
    total = (total & 0xFFFF) + (total >> 16)
    checksum = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    ip = ip[:10] + struct.pack(">H", checksum) + ip[12:]
    udp = struct.pack(">HHHH", source_port, target_port, 26, 0)
    return FrameIn(bytes(12) + b"\x08\x00" + ip + udp + bytes(18))


def _hit(rng: random.Random, rule: _Rule) -> FrameIn:
    return _frame(
        int(rule.source.network_address) + rng.randrange(rule.source.num_addresses),
        int(rule.target.network_address) + rng.randrange(rule.target.num_addresses),
        rng.randint(*(rule.source_ports or (0, 65535))),
        rng.randint(*(rule.target_ports or (0, 65535))),
    )


def _any(rng: random.Random) -> FrameIn:
    return _frame(rng.getrandbits(32), rng.getrandbits(32), rng.getrandbits(16), rng.getrandbits(16))


def _settings(folder: Path, rules: list[_Rule], default: str) -> dict[str, Any]:
    path = folder / f"{len(rules)}.rules"
    path.write_text("\n".join(rule.text() for rule in rules))
    return {"rules_file": str(path), "default": default}


def _case(folder: Path, count: int, bar_pps: float | None, size_mb: int = 256) -> Case:
    """Every frame leaves: to permit is what costs more. A twentieth by the default, the others by any rule."""
    rng = random.Random(count)
    rules = _rules(rng, count)
    frames = [_any(rng) if rng.random() < 0.05 else _hit(rng, rng.choice(rules)) for _ in range(_FRAMES)]
    task = {"kind": "firewall", "settings": _settings(folder, rules, "permit")}
    return Case(f"firewall, {count} rules, all permitted", task, frames, bar_pps, size_mb)


def _tester(rng: random.Random) -> FrameIn:
    stream = rng.randrange(8)
    return _frame(0xC6120001 | stream << 8, 0xC6130001 | stream << 8, 49152 + stream, 28770)


def _tester6(rng: random.Random) -> FrameIn:
    """The same over IPv6, in its benchmark net (RFC 5180): the shortest that there is."""
    stream = rng.randrange(8)
    ends = (0x20010002 << 96 | stream << 8 | host for host in (1, 2))
    ip = struct.pack(">IHBB", 6 << 28, 8, _UDP, 64) + b"".join(end.to_bytes(16, "big") for end in ends)
    return FrameIn(bytes(12) + b"\x86\xdd" + ip + struct.pack(">HHHH", 49152 + stream, 28770, 8, 0))


def cases(folder: Path) -> list[Case]:
    """The cases; files that they need go to ``folder``."""
    rng = random.Random(17)
    tester = [_tester(rng) for _ in range(_FRAMES)]
    mixed = [_any(rng) if rng.random() < 0.5 else frame for frame in tester]
    default = {"kind": "firewall"}
    return [
        Case("firewall, default rules, the tester's frames", default, tester, 12e6),
        Case("firewall, default rules, half dropped", default, mixed, 12e6, may_drop=True),
        Case("firewall, default rules, IPv6", default, [_tester6(rng) for _ in range(_FRAMES)]),
        _case(folder, 10, 12e6),
        _case(folder, 1000, 6e6),
        _case(folder, 10000, None, size_mb=512),
    ]
