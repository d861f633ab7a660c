# SPDX-License-Identifier: BSD-3-Clause
"""The client of the forwarder that holds the routes of a VNF: sessions, windows, go-back-N (docs/fib-messages.md).

    with FibClient(PacketTransport("eth0")) as fib:
        fib.hop(1, destination="02:00:00:00:01:01", wire=0)
        fib.add("198.51.100.0/24", 1)
        fib.end_of_rib()
        fib.drain()
        while True:
            fib.poll(1.0)  # what keeps the session alive

Updates are collected into messages and sent by poll(), drain(), and whenever a message is full. What the forwarder
refuses is an exception of the next call that looks at answers. One thread.
"""

from __future__ import annotations

import secrets
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from planebench_fib.errors import FibError, FibSessionLost, FibTimeout, FibUpdateError
from planebench_fib.exceptions import UsageError
from planebench_fib.messages import (
    FRAME_BYTES_MAX,
    HOP_NUMBERS,
    MEMBERS_MAX,
    OVERHEAD_BYTES,
    RECORDED,
    VLAN_MAX,
    WINDOW,
    Ack,
    Code,
    GroupRecord,
    HopKind,
    HopRecord,
    MessageError,
    MessageType,
    Op,
    Prefix,
    PrefixLike,
    VersionError,
    decode_ack,
    decode_record,
    encode_frame,
    encode_route,
    mac_of,
    prefix_of,
    record_bytes,
)
from planebench_fib.transport import FrameTooLongError, Transport

_SEQUENCES = 1 << 32
_RETRY_S_MAX = 1.0
_HELD_S = 10.0
"""A session that held for so long is begun again at once. One that did not may have been ended by another speaker of
this VNF: each HELLO ends the session of the other, so both wait, longer each time, as for an answer."""


@dataclass(slots=True)
class _Pending:
    """An unanswered message. ``open``: records may be added."""

    type: MessageType
    family: int = 0
    records: list[bytes] = field(default_factory=list)
    open: bool = True
    records_max: int = 0


class FibClient:
    """One session with the forwarder. Updates block while the window is full.

    ``refused`` is called with each FibUpdateError instead of raising it. ``frame_bytes`` is the most; a session has
    shorter frames if its transport needs that. Raises FibTimeout without any answer for ``timeout_s``.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        session: int | None = None,
        frame_bytes: int = FRAME_BYTES_MAX,
        retry_s: float = 0.02,
        keepalive_s: float = 1.0,
        timeout_s: float = 10.0,
        refused: Callable[[FibUpdateError], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.routes = 0
        """That the forwarder has of this VNF, as of the last answer."""
        self.quota = 0
        self.wires_up: int | None = None
        """A bit for each of the VNF's wires, as of the last answer: the forwarder sends one when that changes."""
        self.retransmitted = 0
        self._transport = transport
        self._frame_bytes_max = frame_bytes
        self._retry_s = retry_s
        self._keepalive_s = keepalive_s
        self._timeout_s = timeout_s
        self._clock = clock
        self._refused = refused
        self._errors: deque[FibError] = deque()
        self._again_s = 0.0  # the wait before the next session
        self._begin(session or _new_session())

    # Updates

    def hop(
        self,
        number: int,
        *,
        destination: str | bytes,
        wire: int = 0,
        vlan: int = 0,
        source: str | bytes = bytes(6),
    ) -> None:
        """Announce or change a next hop: packets leave by that wire of the VNF, in that VLAN, to that MAC."""
        record = HopRecord(Op.REPLACE, number, HopKind.FORWARD, wire, mac_of(destination), mac_of(source), vlan)
        self._hop(record)

    def hop_local(self, number: int) -> None:
        """Announce a next hop that is the VNF itself."""
        self._hop(HopRecord(Op.REPLACE, number, HopKind.LOCAL))

    def hop_blackhole(self, number: int) -> None:
        """Announce a next hop that drops packets."""
        self._hop(HopRecord(Op.REPLACE, number, HopKind.BLACKHOLE))

    def group(self, number: int, members: Iterable[tuple[int, int]]) -> None:
        """Announce or change a next hop that spreads flows over others: pairs of a number and a weight, 1 to 255."""
        record = GroupRecord(number, tuple(members))
        _check_number(number)
        if not 1 <= len(record.members) <= MEMBERS_MAX or not all(0 < weight < 256 for _, weight in record.members):
            raise UsageError(f"{record}: a group has 1 to {MEMBERS_MAX} members with weights from 1 to 255")
        self._append(MessageType.NEXT_HOP_GROUPS, 0, record.encode())

    def hop_delete(self, number: int) -> None:
        """Delete a next hop, or group, that no route or group uses any more."""
        self._hop(HopRecord(Op.DELETE, number))

    def add(self, prefix: PrefixLike, hop: int) -> None:
        """Add a route that this session has not announced yet."""
        self._route(Op.ADD, prefix, hop)

    def replace(self, prefix: PrefixLike, hop: int) -> None:
        """Add or replace a route."""
        self._route(Op.REPLACE, prefix, hop)

    def replace_all(self, routes: Iterable[tuple[Prefix, int]]) -> None:
        """Add or replace many routes at less cost. Families should not alternate: a message has one."""
        heads: dict[tuple[int, int], bytes] = {}
        for (address, length), hop in routes:
            head = heads.get((length, hop))
            if head is None:
                _check_number(hop)
                head = heads[length, hop] = encode_route(Op.REPLACE, Prefix(b"", length), hop)
            self._append(MessageType.ROUTES, 4 if len(address) == 4 else 6, head + address)

    def delete(self, prefix: PrefixLike) -> None:
        """Delete a route."""
        self._route(Op.DELETE, prefix, 0)

    def flush(self) -> None:
        """Delete all routes and next hops of this VNF."""
        self._append(MessageType.FLUSH)

    def end_of_rib(self) -> None:
        """Announce that all routes are sent: the forwarder deletes those of older sessions."""
        self._append(MessageType.END_OF_RIB)

    # Sending, and answers

    @property
    def session(self) -> int:
        """Return the number of the session."""
        return self._session

    @property
    def unanswered(self) -> int:
        """Return the number of unanswered messages."""
        return len(self._queue)

    def poll(self, timeout_s: float = 0.0) -> None:
        """Send collected updates, wait for an answer, read all answers, and retransmit lost messages."""
        self._send(everything=True)
        self._tick()
        if self._too_long:
            self._lost(self._too_long)
        frame = self._transport.receive(self._patience(timeout_s))
        while frame is not None:
            self._received(frame)
            frame = self._transport.receive(0)
        self._tick()
        if self._errors:
            raise self._errors.popleft()

    def drain(self, timeout_s: float | None = None) -> None:
        """Wait until everything is answered. Raises FibTimeout without any answer; poll() continues to send."""
        timeout_s = self._timeout_s if timeout_s is None else timeout_s
        start = self._clock()
        while self._queue or self._errors:
            self._check_patience(start, timeout_s)
            self.poll(timeout_s)

    def __enter__(self) -> Self:
        self.drain()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the transport. The forwarder keeps the routes for the grace period."""
        self._transport.close()

    # Collecting

    def _route(self, op: Op, prefix: PrefixLike, hop: int) -> None:
        to = prefix_of(prefix)
        _check_number(hop)
        self._append(MessageType.ROUTES, 4 if len(to.address) == 4 else 6, encode_route(op, to, hop))

    def _hop(self, record: HopRecord) -> None:
        _check_number(record.number)
        if not 0 <= record.wire <= 255:
            raise UsageError(f"wire {record.wire} of next hop {record.number} is not valid. Valid: 0 to 255")
        if not 0 <= record.vlan <= VLAN_MAX:
            raise UsageError(f"VLAN {record.vlan} of next hop {record.number} is not valid. Valid: 0 to {VLAN_MAX}")
        self._append(MessageType.NEXT_HOPS, 0, record.encode())

    def _append(self, kind: MessageType, family: int = 0, record: bytes | None = None) -> None:
        last = self._queue[-1] if self._queue else None
        if record is None or not (last and last.open and (last.type, last.family) == (kind, family)):
            self._wait_for_room()
            room = self._frame_bytes - OVERHEAD_BYTES
            last = _Pending(kind, family, open=record is not None, records_max=room // record_bytes(kind, family))
            self._queue.append(last)
        if record is not None:
            last.records.append(record)
            if len(last.records) >= last.records_max:
                last.open = False
                self._send(everything=False)

    def _wait_for_room(self) -> None:
        start = self._clock()
        refused: list[FibError] = []  # of the updates before this one: told by the next poll() of the caller
        while len(self._queue) >= WINDOW:
            self._check_patience(start, self._timeout_s)
            try:
                self.poll(self._retry_s)
            except FibUpdateError as error:
                refused.append(error)
        self._errors.extendleft(reversed(refused))

    def _check_patience(self, start: float, timeout_s: float) -> None:
        """Raise FibTimeout if no answer has come for ``timeout_s`` since ``start`` of waiting."""
        if self._clock() - max(start, self._last_heard) > timeout_s:
            raise FibTimeout(
                f"the forwarder did not answer {len(self._queue)} messages within {timeout_s:g} s; check that the "
                "interface is up and connected to a VNF port of fib_offload"
            )

    # The window

    def _begin(self, session: int) -> None:
        self._session = session
        longest = getattr(self._transport, "frame_bytes", None)
        self._frame_bytes = min(self._frame_bytes_max, longest()) if longest else self._frame_bytes_max
        self._too_long = ""  # why frames of this length are not sent any more
        self._queue: deque[_Pending] = deque()
        self._base = 1  # sequence number of the first in the queue; those behind it count on
        self._sent = 0  # of the queue, in this round
        self._known = 0  # of the queue, in any round: the forwarder may have them
        self._window = 1  # until it has said how many it takes
        self._went_back = False
        self._wait_s = self._retry_s
        self._begun = self._last_sent = self._last_heard = self._clock()
        self._not_before = self._begun + self._again_s
        self._append(MessageType.HELLO)

    def _send(self, *, everything: bool) -> None:
        """Send what the window has room for; a message that may still grow only with ``everything``."""
        if self._clock() < self._not_before:
            return
        while self._sent < min(len(self._queue), self._window):
            pending = self._queue[self._sent]
            if pending.open and not everything:
                return
            pending.open = False
            sequence = (self._base + self._sent) % _SEQUENCES
            frame = encode_frame(
                pending.type, self._session, sequence, pending.family, pending.records, self._transport.mac
            )
            try:
                self._transport.send(frame)
            except FrameTooLongError as error:
                self._too_long = str(error)
                return
            self._last_sent = self._clock()
            self.retransmitted += self._sent < self._known
            self._sent += 1
            self._known = max(self._known, self._sent)

    def _patience(self, timeout_s: float) -> float:
        if self._queue:
            return min(timeout_s, self._wait_s)
        return min(timeout_s, self._keepalive_s)

    def _tick(self) -> None:
        """Retransmit what is unanswered for too long; send a keepalive if there is nothing to send."""
        now = self._clock()
        if not self._queue and now - self._last_sent >= self._keepalive_s:
            self._append(MessageType.KEEPALIVE)
            self._send(everything=True)
        elif self._queue and now - max(self._last_sent, self._last_heard) >= self._wait_s:
            self._wait_s = min(2 * self._wait_s, _RETRY_S_MAX)
            self._go_back()

    def _go_back(self) -> None:
        self._sent = 0
        self._send(everything=True)

    # Answers

    def _received(self, frame: bytes) -> None:
        try:
            ack = decode_ack(frame)
        except VersionError as error:
            self._errors.append(
                FibError(f"invalid answer from the forwarder: {error}; use the client of the same release")
            )
            return
        except MessageError:
            return  # of another protocol, or damaged: as if it had got lost
        if ack.session != self._session:
            return
        self.wires_up = ack.wires_up
        place = (ack.sequence - self._base) % _SEQUENCES
        if place >= self._known or ack.type is not self._queue[place].type:
            return  # answered before
        if ack.code is Code.NO_SESSION:
            self._lost(
                "the forwarder has restarted, flushed the routes of this VNF after a timeout, or has got a HELLO of "
                "another client of this VNF"
            )
        elif place == 0 and self._is_passed_over(ack):
            self._lost("unexpected sequence number; another client may use the same VNF number")
        elif place or ack.code is Code.SEQUENCE:
            self._out_of_turn()
        else:
            self._answered(ack)

    def _is_passed_over(self, ack: Ack) -> bool:
        """Return whether the forwarder expects a later message than the first, which is not just out of order."""
        return ack.code is Code.SEQUENCE and 0 < (ack.next_sequence - self._base) % _SEQUENCES < _SEQUENCES // 2

    def _out_of_turn(self) -> None:
        """Go back at once if the first message or its answer was lost, but once until there is progress."""
        if not self._went_back:
            self._went_back = True
            self._go_back()

    def _answered(self, ack: Ack) -> None:
        """Handle the answer to the first message."""
        self.routes, self.quota = ack.routes, ack.quota
        self._last_heard = self._clock()
        self._wait_s = self._retry_s
        self._window = max(1, min(ack.window, WINDOW))
        self._went_back = False
        if ack.code is Code.OK:
            self._done(ack)
        else:
            self._stopped(ack)

    def _done(self, ack: Ack) -> None:
        hello = self._queue.popleft().type is MessageType.HELLO
        self._base = (self._base + 1) % _SEQUENCES
        self._sent = max(self._sent - 1, 0)
        self._known -= 1
        if hello and ack.next_sequence != self._base:
            self._lost("its number was already in use")
        else:
            self._send(everything=False)

    def _stopped(self, ack: Ack) -> None:
        """Handle a failed record: those before it are applied, all behind it are sent again under new numbers."""
        pending = self._queue[0]
        del pending.records[: ack.applied]
        if ack.code is not Code.BUSY:
            self._refuse(pending, ack)
        if not pending.records and (pending.type in RECORDED or ack.code is not Code.BUSY):
            self._queue.popleft()
        if self._base != ack.next_sequence:
            self._base = ack.next_sequence
            self._known = 0
        self._sent = 0
        if ack.code is Code.BUSY:  # a little later
            self._not_before = self._last_heard + self._retry_s
        self._send(everything=False)

    def _refuse(self, pending: _Pending, ack: Ack) -> None:
        record = None
        if pending.records:
            record = decode_record(pending.type, pending.records.pop(0))
        error = FibUpdateError(str(record or pending.type.name), record, ack)
        if self._refused:
            self._refused(error)
        else:
            self._errors.append(error)

    def _lost(self, why: str) -> None:
        old = self._session
        held = self._clock() - self._begun >= _HELD_S
        self._again_s = 0.0 if held else min(max(2 * self._again_s, self._retry_s), _RETRY_S_MAX)
        self._begin(_new_session())
        self._errors.append(
            FibSessionLost(
                f"session {old:#x} is lost: {why}. Session {self._session:#x} has begun; announce all next hops and "
                "routes again"
            )
        )


def _new_session() -> int:
    """Return a session number: not 0, and hardly one that was used before."""
    return secrets.randbelow(_SEQUENCES - 1) + 1


def _check_number(number: int) -> None:
    if not 0 <= number < HOP_NUMBERS:
        raise UsageError(f"next hop {number} is not valid. Valid: 0 to {HOP_NUMBERS - 1}")
