# SPDX-License-Identifier: BSD-3-Clause
"""The interface of an external tester: what it is asked to send, and what it reports of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from planebench.model.errors import ExternalTesterError
from planebench.model.switch import Option, Value

LINE_OPTION = Option("line", "rate", "speed of its links in bits per second, e.g. 10G: saturating trials fill them")


TesterWatch = Callable[[], None]


@dataclass(frozen=True, slots=True)
class TesterStream:
    """One direction of plain frames between two ports of a tester; ``number`` makes its addresses, as planed's do."""

    name: str
    number: int
    sender: str
    receiver: str
    frame_size_bytes: int
    """With FCS."""
    pps: int

    @property
    def addresses(self) -> tuple[tuple[str, str], tuple[str, str], tuple[int, int]]:
        """Return source and destination, of each layer: MACs and UDP ports of planed's plain frames, IP addresses.

        The IP addresses are of the benchmarking network (RFC 2544, appendix C).
        """
        macs = f"02:00:00:00:00:{self.number:02x}", f"02:00:00:00:01:{self.number:02x}"
        ips = f"198.18.{self.number}.1", f"198.19.{self.number}.1"
        return macs, ips, (49152 + self.number, 28770)


@dataclass(frozen=True, slots=True)
class Delay:
    """The latency of frames of a stream, as far as testers report it: no distribution."""

    least_ns: float
    mean_ns: float | None
    """None where it reports no mean of all frames."""
    most_ns: float


@dataclass(frozen=True, slots=True)
class StreamCounts:
    """The counts of a stream. ``delay``: None where the tester measured none."""

    sent: int
    received: int
    delay: Delay | None = None


class ExternalTester(ABC):
    """A tester that is reached over a network. Every method raises ExternalTesterError, one sentence, when it fails."""

    kind: str
    options: tuple[Option, ...] = (LINE_OPTION,)

    def __init__(self, where: str, values: Mapping[str, Value]) -> None:
        self.where, self.values = where, values
        self.name = f"tester {self.kind}:{where}"
        """For messages: ``tester otg:https://gen:8443``."""
        line = values.get(LINE_OPTION.key)
        self.line_bps = None if line is None else float(str(line))
        """The speed of its links; None if the user did not give it."""

    def failed(self, words: str) -> ExternalTesterError:
        """Return the error of this tester that says so."""
        return ExternalTesterError(f"{self.name}: {words}")

    @abstractmethod
    def version(self) -> str:
        """Return its version, for the header of a run."""

    @abstractmethod
    def connect(self, ports: Sequence[str]) -> None:
        """Take these ports, and check their links."""

    @abstractmethod
    def send(
        self,
        streams: Sequence[TesterStream],
        duration_s: float,
        *,
        latency: bool = False,
        watch: TesterWatch = lambda: None,
    ) -> dict[str, StreamCounts]:
        """Send streams between the ports of :meth:`connect` for a time, wait for late frames, and return the counts.

        Counts are by name. ``latency``: measure it, too. ``watch`` is called when the sending has begun, and when it
        has ended. Interrupted, it stops the traffic.
        """

    def check(self) -> None:
        """Ask for its version: do nothing if it answers."""
        self.version()

    def close(self) -> None:  # noqa: B027 - most have nothing to give back
        """Give the ports back. Never raises; safe to call twice."""
