# SPDX-License-Identifier: BSD-3-Clause
"""The network functions of planed that a chain is made of: what there is, and what a user writes. No processes.

Lists, parsing, placement and docs use them. Adding one = a file in dataplane/nf/KIND/ and an entry in ``_KINDS``.
Defaults are planed's: nothing that a user leaves out is sent.

How much memory a function needs is an upper bound by its settings, in bytes of memory.size_mb, beside what ports need
(planebench.testbed.request). A function that finds too little says so when the document is checked, or applied; so an
estimate that is too small is a clear error, not a wrong figure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planebench.model.scenarios import QUEUES_MAX
from planebench.model.switch import Option

VnfSettings = Mapping[str, Any]

FIREWALL_BYTES = 64 << 20
FIREWALL_RULE_BYTES = 64 << 10

SENDING_OPTIONS = (
    Option(
        "send_burst",
        "whole",
        "frames that wait for each other before they are sent; 0: none wait",
        "the plan's",
        least=0,
        most=64,
    ),
    Option("drain_us", "whole", "interval in which all that wait are sent, in us", "the plan's", least=0, most=1000),
)
"""The batching of DPDK's l2fwd (send_burst=32:drain_us=100), of every function."""
CORES_OPTION = Option(
    "cores", "whole", "number of its cores, each with a queue pair of its ports", "1", least=1, most=QUEUES_MAX
)
"""The cores of every function (can17's two virtual NICs and two vCPUs)."""


def firewall(settings: VnfSettings) -> int:
    """Return the memory of rte_acl's tries: a rule's share depends on all others; a build takes up to half of it.

    An upper bound of the rules are the lines of a text, or the objects of a JSON file; planed tells of a file that is
    gone.
    """
    path = settings.get("rules_file")
    content = Path(path).read_bytes() if path and Path(path).is_file() else b""
    return FIREWALL_BYTES + FIREWALL_RULE_BYTES * max(content.count(b"\n"), content.count(b"{"))


@dataclass(frozen=True, slots=True)
class VnfKind:
    """A network function: ``name`` in a chain, ``kind`` of its task in planed. Without options it has no settings.

    ``memory_bytes``: upper bound of its share of memory.size_mb; 0 if its tables are elsewhere. ``ip_versions``: what
    it forwards at all. ``one_port``: it may have one port, by which everything leaves again.
    """

    name: str
    kind: str
    summary: str
    options: tuple[Option, ...] = ()
    memory_bytes: Callable[[VnfSettings], int] = lambda settings: 0
    ip_versions: tuple[int, ...] = (4, 6)
    one_port: bool = False
    router: bool = False
    """It forwards by its options ``routes`` and ``synthetic``, so traffic is drawn from them."""
    misdirection_hint: str = ""
    """Why it may send frames by another port than expected, and how to prevent that."""

    @property
    def all_options(self) -> tuple[Option, ...]:
        """Return its options and those of every function."""
        return (*self.options, *((*SENDING_OPTIONS, CORES_OPTION) if self.kind else ()))


_KINDS = (
    VnfKind("l2fwd", "l2fwd", "forwards to the other port and rewrites the MAC addresses", one_port=True),
    VnfKind(
        "l3fwd",
        "l3fwd",
        "routes IPv4 and IPv6 by longest prefix: TTL, checksum, next hop's MAC",
        (
            Option(
                "routes",
                "file",
                "file of routes: one prefix per line, or JSON",
                "10 routes, 1 of IPv6",
                setting="routes_file",
            ),
            Option(
                "fib", "text", "lookup of host routes: longest prefix match or cuckoo hash", "lpm", ("lpm", "cuckoo")
            ),
            Option("synthetic", "whole", "instead of routes: number of host routes from 10.0.0.0 on"),
            Option("mtu", "whole", "maximum IP packet size on output, in bytes", "none"),
            Option("own_mac_only", "flag", "drop frames to other MAC addresses", "false"),
        ),
        one_port=True,
        router=True,
    ),
    VnfKind(
        "firewall",
        "firewall",
        "permits or drops packets by 5-tuple rules with prefixes and port ranges; the first match wins",
        (
            Option("rules", "file", "file of rules: one per line, or JSON", "10 rules", setting="rules_file"),
            Option("default", "text", "action for packets that match no rule", "drop", ("drop", "permit")),
            Option("not_ip", "text", "action for other protocols, e.g. ARP", "drop", ("drop", "permit")),
            Option("fragments", "text", "non-first fragments", "match", ("match", "drop")),
        ),
        firewall,
    ),
    VnfKind(
        "nat44",
        "nat44",
        "translates source addresses and ports (NAPT); the first port is inside",
        (
            Option("outside", "list", "outside addresses", "one, with a port forward for the bench"),
            Option("inside", "list", "inside prefixes to translate", "all"),
            Option("port_min", "whole", "lowest outside port", "1024"),
            Option("port_max", "whole", "highest outside port", "65535"),
            Option("sessions_max", "whole", "maximum number of sessions", "65536"),
            Option("sessions_per_host", "whole", "maximum number of sessions per inside host", "none"),
            Option("udp_s", "whole", "timeout of an idle UDP session in seconds", "300"),
            Option("tcp_established_s", "whole", "timeout of an established TCP connection in seconds", "7440"),
            Option("tcp_transitory_s", "whole", "timeout of an opening or closing TCP connection in seconds", "240"),
            Option("icmp_s", "whole", "timeout of an idle ICMP session in seconds", "60"),
            Option("hairpin", "flag", "let inside hosts reach each other by an outside address", "true"),
        ),
        ip_versions=(4,),
        misdirection_hint=(
            "nat44 sends packets for its own outside addresses back (hairpinning); use nat44:hairpin=false to drop them"
        ),
    ),
    VnfKind(
        "load_balancer",
        "load_balancer",
        "spreads connections over backends by Maglev hashing; direct server return",
        (
            Option("table_size", "whole", "size of the lookup table (a prime number)", "65537"),
            Option("connections", "whole", "number of connections that are kept on their backend (0: none)"),
            Option("connection_timeout_s", "whole", "timeout of an idle connection in seconds"),
            Option("other", "text", "action for traffic to no service", "forward", ("forward", "drop")),
        ),
    ),
)

VNFS: Mapping[str, VnfKind] = {kind.name: kind for kind in _KINDS}
"""By name in a chain, in the order in which they are listed."""
