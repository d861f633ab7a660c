# SPDX-License-Identifier: BSD-3-Clause
"""Agent, routing daemon, VNF and forwarder end at random moments under traffic: what is lost, and for how long.

    .venv/bin/python bench/fib_restart.py [-n 50] [--routes 200000] [--seed 1] [--part agent ...] [--static]

As root. The example of docs/fib-agent.md (tests/fib_example.py) with so many BGP routes; datagrams go by one of them
that stays. For each part: restarts, datagrams lost, the median and the longest outage, and those that came twice.
`kill` and `term` end the forwarder, which is started again at once; `take-over` begins another that takes over.
`--static`: an operator has set the routes; there are no daemons and no agents.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from fib_example import EXAMPLE, Example, Flow, missing

from planebench.host.process import Process, Supervisor

TO, RATE_PPS, SETTLE_S = "192.0.2.1", 1000, 2.0
PATIENCE_S = 900.0


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for so many routes as long as it takes."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {PATIENCE_S:g} s in vain until {what}")
        time.sleep(0.05)


class Restart(NamedTuple):
    """One of them."""

    part: str
    lost: int
    outage_s: float
    twice: int
    again_s: float
    """Until the VNF has announced everything again."""


class Rig:
    """The example, with many routes, converged."""

    def __init__(self, supervisor: Supervisor, routes: int, seed: int, *, static: bool) -> None:
        self.random = random.Random(seed)
        self.routes, self._static = routes, static
        folder = supervisor.workdir("example")
        self.example = Example(supervisor, snapshot=str(folder / "snapshot"), snapshot_s=1)
        if static:
            self._set_routes()
        else:
            self._learn_routes(folder)
        self.settled()
        self.flow = Flow(self.example, TO, RATE_PPS)

    def _set_routes(self) -> None:
        way = {"task": "sw0", "vnf": 2, "wire": "wire0", "mac": "02:00:00:00:01:01"}
        self.example.client.call("fib_offload.load_synthetic", way | {"routes": self.routes})
        self.example.client.call("fib_offload.next_hop_set", way | {"hop": 4095})
        self.example.client.call(
            "fib_offload.route_set", {"task": "sw0", "vnf": 2, "prefix": "192.0.2.0/24", "hop": 4095}
        )
        self.example.client.call("keep")  # nobody announces them again: what is killed before its snapshot has none

    def _learn_routes(self, folder: Path) -> None:
        many = folder / "many.conf"
        lines = [f"\troute {20 + i // 65536}.{i // 256 % 256}.{i % 256}.0/24 blackhole;" for i in range(self.routes)]
        many.write_text("protocol static many {\n\tipv4;\n" + "\n".join(lines) + "\n}\n")
        self.config = folder / "peer.conf"
        self.config.write_text((EXAMPLE / "peer.conf").read_text() + f'include "{many}";\n')
        self.example.start_bird("peer", config=self.config)
        self.daemon = self.example.start_bird("vnf", "-R")
        self.example.start_agents()

    def settled(self) -> None:
        """All routes are announced and none is stale."""
        for number in () if self._static else (1, 2):
            until(lambda n=number: self._complete(n), f"VNF {number} has announced all")  # type: ignore[misc]

    def _complete(self, number: int) -> bool:
        vnf = self.example.vnf(number)
        return vnf["session"]["state"] == "up" and vnf["stale"] == 0 and vnf["routes4"] >= self.routes

    def restart(self, part: str) -> Restart:
        """At a random moment: not more than that has passed since all was settled."""
        time.sleep(self.random.uniform(0, SETTLE_S))
        first, begin_s = self.flow.mark(), time.monotonic()
        self._parts()[part]()
        self.settled()
        again_s = time.monotonic() - begin_s
        end = self.flow.mark()
        return Restart(part, *self.flow.lost(first, end), self.flow.twice(first, end), again_s)

    def _parts(self) -> dict[str, Callable[[], None]]:
        return {
            "agent": self._agent,
            "daemon": self._daemon,
            "vnf": self._vnf,
            "take-over": self.example.take_over,
            "term": lambda: self._switch(Process.terminate),
            "kill": lambda: self._switch(self.example.kill),
        }

    def _agent(self) -> None:
        self._new_agents(lambda: None)

    def _daemon(self) -> None:
        self.example.kill(self.daemon)
        self.daemon = self.example.start_bird("vnf", "-R")
        until(lambda: "Established" in self.example.birdc("vnf", "show", "protocols", "peer"), "BGP is established")

    def _vnf(self) -> None:
        self._new_agents(self._daemon)

    def _new_agents(self, meanwhile: Callable[[], None]) -> None:
        before = {n: self.example.vnf(n)["session"]["number"] for n in (1, 2)}
        self.example.kill(*self.example.agents)
        meanwhile()
        self.example.start_agents()
        for number in (1, 2):
            until(lambda n=number: self.example.vnf(n)["session"]["number"] != before[n], "a session")  # type: ignore[misc]

    def _switch(self, end: Callable[[Process], None]) -> None:
        end(self.example.switch)
        self.example.start_switch()


PARTS = ("agent", "daemon", "vnf", "take-over", "term", "kill")


def table(found: list[Restart]) -> Iterator[str]:
    """Markdown."""
    yield "| part | restarts | lost | outage, median s | longest s | came twice | all announced again, median s |"
    yield "|---|---|---|---|---|---|---|"
    for part in dict.fromkeys(one.part for one in found):
        its = [one for one in found if one.part == part]
        outages = [one.outage_s for one in its]
        yield (
            f"| {part} | {len(its)} | {sum(one.lost for one in its)} | {statistics.median(outages):.3f} | "
            f"{max(outages):.3f} | {sum(one.twice for one in its)} | {statistics.median(i.again_s for i in its):.1f} |"
        )


def main() -> int:
    """Parse, restart, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=50, help="restarts of each part")
    parser.add_argument("--routes", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", action="append", choices=PARTS)
    parser.add_argument("--static", action="store_true")
    options = parser.parse_args()
    if reason := missing():
        print(reason, file=sys.stderr)
        return 2
    found = []
    with Supervisor(Path("/tmp")) as supervisor:
        rig = Rig(supervisor, options.routes, options.seed, static=options.static)
        try:
            for _ in range(options.n):
                for part in options.part or (PARTS[3:] if options.static else PARTS):
                    found.append(rig.restart(part))
                    print(found[-1], file=sys.stderr, flush=True)
        finally:
            rig.flow.close()
            rig.example.close()
    print("\n".join(table(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
