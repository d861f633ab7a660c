# SPDX-License-Identifier: BSD-3-Clause
"""A token bucket in exact fractions (RFC 2697 section 3, the committed bucket alone), and the limiter around it."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from fractions import Fraction

from nf.packet_model import FaultError, parse

FCS_BYTES = 4


@dataclass
class Bucket:
    """``tokens`` of units (bits or packets) at ``at_s``. It is full when it is made."""

    rate: Fraction
    burst: Fraction
    tokens: Fraction
    at_s: Fraction

    def conforms(self, now_s: Fraction, units: int) -> bool:
        """Whether a frame of so many units passes; then it is paid for."""
        self.tokens = min(self.burst, self.tokens + self.rate * (now_s - self.at_s))
        self.at_s = now_s
        if self.tokens < units:
            return False
        self.tokens -= units
        return True


@dataclass
class Limiter:
    """``per``: all, direction, source or destination. Units are bits unless ``packets``."""

    rate: int
    burst: int
    tsc_hz: int
    per: str = "all"
    packets: bool = False
    buckets_max: int = 65536
    limited: tuple[int, ...] = (0, 1)
    shared: dict[int, Bucket] = field(default_factory=dict)
    buckets: OrderedDict[bytes, Bucket] = field(default_factory=OrderedDict)
    overflow: int = 0
    no_address: int = 0

    def frame(self, data: bytes, side: int, now_tsc: int) -> str | None:
        """The reason for which a frame is dropped, or None."""
        if len(data) < 14:
            return "runt"
        if side not in self.limited:
            return None
        now_s = Fraction(now_tsc, self.tsc_hz)
        units = 1 if self.packets else 8 * (len(data) + FCS_BYTES)
        return None if self._bucket(data, side, now_s).conforms(now_s, units) else "rate"

    def _bucket(self, data: bytes, side: int, now_s: Fraction) -> Bucket:
        if self.per == "all":
            return self._shared(0, now_s)
        if self.per == "direction":
            return self._shared(side, now_s)
        try:
            packet = parse(data)
        except FaultError:
            self.no_address += 1
            return self._shared(0, now_s)
        address = packet.source if self.per == "source" else packet.destination
        self._age(now_s)
        if address not in self.buckets:
            if len(self.buckets) == self.buckets_max:
                self.overflow += 1
                return self._shared(0, now_s)
            self.buckets[address] = self._full(now_s)
        self.buckets.move_to_end(address)
        return self.buckets[address]

    def _shared(self, number: int, now_s: Fraction) -> Bucket:
        return self.shared.setdefault(number, self._full(now_s))

    def _full(self, now_s: Fraction) -> Bucket:
        burst = Fraction(self.burst if self.packets else 8 * self.burst)
        return Bucket(Fraction(self.rate), burst, burst, now_s)

    def _age(self, now_s: Fraction) -> None:
        """A bucket that any rate would have filled up by now, had it been empty, is forgotten."""
        while self.buckets:
            oldest = next(iter(self.buckets.values()))
            if (now_s - oldest.at_s) * oldest.rate < oldest.burst:
                return
            self.buckets.popitem(last=False)
