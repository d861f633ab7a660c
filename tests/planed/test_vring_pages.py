# SPDX-License-Identifier: BSD-3-Clause
"""Memory of a guest that is not there until frames are written to it or read from it."""

from __future__ import annotations

import mmap
import os
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

import pytest
from planed.test_vring_hostile import HERE, four_ports, link_up, traffic_beside
from planed_rig import Planed, until
from vhost_driver import (
    GUEST_ADDRESS,
    MEMORY_BYTES,
    RECEIVEQ,
    RING_SIZE,
    TRANSMITQ,
    WRITABLE,
    VhostDriver,
)
from vring_rig import ports

from planebench.host.process import Supervisor

pytestmark = pytest.mark.dataplane

PAGE = 4096
MB = 1 << 20
SPARSE_BYTES = 1 << 32
SHORT_BYTES, LONG_BYTES = 72, 16 * PAGE - 1024
"""Of frames with their headers: of a page, and of sixteen."""
ROOM_BYTES = 16 * PAGE
WAYS = {"written": (RECEIVEQ, PAGE), "read": (TRANSMITQ, 16 * PAGE)}
"""How memory is touched: by which ring, and how much of it by a frame."""


def become_sparse(guest: VhostDriver) -> None:
    """Share a file of which only the first MiB is the guest's own."""
    os.ftruncate(guest.memory_file, SPARSE_BYTES)
    guest.share_memory(SPARSE_BYTES)
    guest.settle()


def exist_bytes(file: int) -> int:
    return os.fstat(file).st_blocks * 512


def untouched(step: int, count_bytes: int, first: int = MEMORY_BYTES) -> Iterator[tuple[int, ...]]:
    """Guest addresses of pages that the guest has never touched, a ring of them at a time."""
    places = iter(range(GUEST_ADDRESS + first, GUEST_ADDRESS + first + count_bytes, step))
    while batch := tuple(islice(places, RING_SIZE)):
        yield batch


def cross(guest: VhostDriver, mate: VhostDriver, ring: int, places: Sequence[int]) -> bool:
    """Have a frame written to, or read from, each place of the guest; False if it is cut off meanwhile."""
    sender, receiver = (mate, guest) if ring == RECEIVEQ else (guest, mate)
    length = SHORT_BYTES if ring == RECEIVEQ else LONG_BYTES
    due = (receiver.used(RECEIVEQ) + len(places)) & 0xFFFF
    for slot, place in enumerate(places):
        receiver.offer(RECEIVEQ, slot, place if receiver is guest else HERE, ROOM_BYTES, WRITABLE)
    for slot, place in enumerate(places):
        sender.offer(TRANSMITQ, slot, place if sender is guest else HERE, length)
    until(lambda: receiver.used(RECEIVEQ) == due or guest.is_gone(), "the frames cross, or the guest is cut off")
    return not guest.is_gone()


@pytest.mark.parametrize("way", WAYS)
def test_pages_that_frames_make_have_a_limit(planed: Planed, other: Planed, way: str) -> None:
    """The connection ends at the limit, with a sentence; no page more is made, and the pair beside loses no frame.

    The kernel charges a page to who touches it first: to planed, in a peer's memory that is sparse.
    """
    (ring, step), (a, b) = WAYS[way], four_ports(planed, other, max_charged_mb=2)
    with traffic_beside(planed, other, 1), VhostDriver(b) as mate, VhostDriver(a) as guest:
        become_sparse(guest)
        until(lambda: link_up(planed, "a"), "the guest is connected")
        before = exist_bytes(guest.memory_file)
        assert not all(cross(guest, mate, ring, places) for places in untouched(step, 4 * MB))
        assert exist_bytes(guest.memory_file) - before <= 2 * MB + MEMORY_BYTES
        assert ports(planed)["a"]["refused_messages"] == {"memory_charged": 1}
        said = [line for line in planed.process.log_tail().splitlines() if "max_charged_mb" in line][-1]
        assert "port a:" in said
        assert "2 MB" in said
        assert "the connection is ended" in said


def test_memory_that_the_guest_has_touched_itself_is_its_own(planed: Planed, other: Planed) -> None:
    """As that of a QEMU guest: far more than the limit, in a file that is mostly holes."""
    a, b = four_ports(planed, other, max_charged_mb=1)
    with VhostDriver(b) as mate, VhostDriver(a) as guest:
        become_sparse(guest)
        until(lambda: link_up(planed, "a"), "the guest is connected")
        with mmap.mmap(guest.memory_file, 8 * MB) as memory:
            memory[MEMORY_BYTES:] = bytes(8 * MB - MEMORY_BYTES)
        for ring, step in WAYS.values():
            assert all(cross(guest, mate, ring, places) for places in untouched(step, 3 * MB)), step
        assert exist_bytes(guest.memory_file) >= 7 * MB
        assert not ports(planed)["a"]["refused_messages"]


def test_who_comes_back_goes_on_where_it_ended(planed: Planed, other: Planed) -> None:
    """Another memory table begins no new account: the old pages may still be there."""
    a, b = four_ports(planed, other, max_charged_mb=1)
    with VhostDriver(b) as mate, VhostDriver(a) as guest:
        until(lambda: link_up(planed, "a"), "the guest is connected")
        for number in range(4):
            with suppress(ConnectionError, struct.error):  # the last frame may have been its end
                become_sparse(guest)
            if not all(cross(guest, mate, TRANSMITQ, it) for it in untouched(16 * PAGE, MB // 2, (1 + number) * MB)):
                break
        assert guest.is_gone()
        assert exist_bytes(guest.memory_file) <= MB + MEMORY_BYTES


V1, V2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
PLANED_MB = 512


def _controller() -> tuple[Path, str, str] | None:
    """Where groups can be made, and how their limit and what they have taken are named."""
    if (V1 / "memory.limit_in_bytes").exists():
        return V1, "memory.limit_in_bytes", "memory.usage_in_bytes"
    own = V2 / "cgroup.subtree_control"
    return (V2, "memory.max", "memory.current") if own.exists() and "memory" in own.read_text() else None


@contextmanager
def memory_group(name: str, limit_mb: int) -> Iterator[tuple[Path, Path]]:
    """A memory cgroup: its list of processes, and the file with what it has taken. Skips where none can be made."""
    found = _controller()
    if found is None:
        pytest.skip("no memory cgroups here")
    root, limit, used = found
    folder = root / f"planebench-{name}-{os.getpid()}"
    try:
        folder.mkdir()
        (folder / limit).write_text(str(limit_mb * MB))
    except OSError as error:
        pytest.skip(f"no memory cgroup can be made: {error}")
    try:
        yield folder / "cgroup.procs", folder / used
    finally:
        for process in (folder / "cgroup.procs").read_text().split():
            (root / "cgroup.procs").write_text(process)
        folder.rmdir()


def test_a_peer_takes_no_memory_of_planeds_cgroup(supervisor: Supervisor, other: Planed) -> None:
    """Without a limit in the document: planed's own cgroup gives one, and its peer takes no more by its touch."""
    with memory_group("planed", PLANED_MB) as (planed_group, taken):
        switch = Planed(supervisor, "grouped")
        planed_group.write_text(str(switch.process.pid))
        a, b = four_ports(switch, other)
        share = PLANED_MB * MB // 4 // 4
        with traffic_beside(switch, other, 1), VhostDriver(b) as mate, VhostDriver(a) as guest:
            become_sparse(guest)
            until(lambda: link_up(switch, "a"), "the guest is connected")
            before = int(taken.read_text())
            assert not all(cross(guest, mate, TRANSMITQ, places) for places in untouched(16 * PAGE, 2 * share))
            assert int(taken.read_text()) - before < 2 * share
            assert exist_bytes(guest.memory_file) <= share + MEMORY_BYTES
        assert switch.process.alive()
        switch.process.terminate()


def test_who_hangs_up_and_keeps_its_file_has_no_more(supervisor: Supervisor, other: Planed) -> None:
    """Where less than half of the memory is available, who connects again goes on with the account of the port."""
    limit_mb, first_mb = 60, 52
    with memory_group("reconnects", 96) as (planed_group, _):
        switch = Planed(supervisor, "reconnects")
        planed_group.write_text(str(switch.process.pid))
        a, b = four_ports(switch, other, max_charged_mb=limit_mb)
        with VhostDriver(b) as mate, VhostDriver(a) as first:
            become_sparse(first)
            until(lambda: link_up(switch, "a"), "the guest is connected")
            assert all(cross(first, mate, TRANSMITQ, places) for places in untouched(16 * PAGE, first_mb * MB))
            first.hang_up()
            until(lambda: not link_up(switch, "a"), "the switch sees it go")
            time.sleep(1.1)  # within a second no port begins a new account
            with VhostDriver(a) as second:
                become_sparse(second)
                until(lambda: link_up(switch, "a"), "it is connected again")
                assert not all(cross(second, mate, TRANSMITQ, places) for places in untouched(16 * PAGE, 20 * MB))
                kept = exist_bytes(first.memory_file) + exist_bytes(second.memory_file)
                assert kept <= limit_mb * MB + 2 * MEMORY_BYTES
        assert switch.process.alive()
        switch.process.terminate()
