# SPDX-License-Identifier: BSD-3-Clause
"""One network function of planed on its own: frames in, frames and verdicts out (dataplane/nf/nf_run.c).

What a function does is compared with a model that is written from its RFCs or papers in Python, knows nothing of the C
code, and sees the same frames at the same times.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_RECORD = struct.Struct("<BBHIQ")
_DROP = 0x80


@dataclass(frozen=True, slots=True)
class FrameIn:
    """A frame without FCS that comes in by a port. Frames that follow each other with one port and time are a burst."""

    data: bytes
    port: int = 0
    now_tsc: int = 0


@dataclass(frozen=True, slots=True)
class Tick:
    """Time passes without a frame."""

    now_tsc: int


@dataclass(frozen=True, slots=True)
class Call:
    """A method of the kind; its answer comes back as :class:`Answer`."""

    method: str
    params: dict[str, Any]
    now_tsc: int = 0


@dataclass(frozen=True, slots=True)
class Replace:
    """A new task object, whose task adopts what the old one knows."""

    task: dict[str, Any]


@dataclass(frozen=True, slots=True)
class FrameOut:
    """The frame as the function left it. ``drop`` is None for one that leaves by ``port``, or the number of the reason:
    its place in the kind's list, as in the ``drops`` of its report."""

    data: bytes
    port: int | None
    drop: int | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call or a replacement came to; ``{"error": text}`` if it was refused."""

    value: dict[str, Any]


Record = FrameIn | Tick | Call | Replace
Result = FrameOut | Answer


class RefusedError(Exception):
    """The task was refused; the text is planed's sentence."""


def program(name: str) -> Path:
    """A test program of the meson build that the tests use: beside PLANEBENCH_PLANED, or in build/."""
    beside = os.environ.get("PLANEBENCH_PLANED")
    folders = [Path(beside).parent] if beside else []
    for folder in (*folders, ROOT / "build" / "dataplane"):
        if (folder / name).is_file():
            return folder / name
    raise FileNotFoundError(f"{name} is not built: meson setup build && ninja -C build")


def encode(records: Iterable[Record]) -> bytes:
    """The records as nf_run and nf_bench read them."""
    return b"".join(_encode(record) for record in records)


def _encode(record: Record) -> bytes:
    match record:
        case FrameIn(data, port, now):
            return _RECORD.pack(ord("F"), port, 0, len(data), now) + data
        case Tick(now):
            return _RECORD.pack(ord("T"), 0, 0, 0, now)
        case Call(method, params, now):
            text = json.dumps({"method": method, "params": params}).encode()
            return _RECORD.pack(ord("J"), 0, 0, len(text), now) + text
        case Replace(task):
            text = json.dumps(task).encode()
            return _RECORD.pack(ord("A"), 0, 0, len(text), 0) + text


def _decode(data: bytes) -> Iterator[tuple[str, int, bytes]]:
    at = 0
    while at < len(data):
        kind, port, _, length, _ = _RECORD.unpack_from(data, at)
        at += _RECORD.size
        yield chr(kind), port, data[at : at + length]
        at += length


def nf_run(
    task: dict[str, Any], records: Iterable[Record], folder: Path, *, size_mb: int = 256
) -> tuple[list[Result], dict[str, Any]]:
    """Run a task object (kind, ports as a number, settings, burst, peer_macs) over records.

    Returns one result for each frame, call and replacement, in their order, and the task's report. RefusedError for a
    task that planed would refuse.
    """
    config = folder / "task.json"
    config.write_text(json.dumps(task))
    done = subprocess.run(
        [program("nf_run"), config, str(size_mb)], input=encode(records), capture_output=True, timeout=600
    )
    if done.returncode == 2:
        raise RefusedError(done.stderr.decode().strip())
    assert done.returncode == 0, done.stderr.decode()
    results: list[Result] = []
    report: dict[str, Any] = {}
    for kind, port, data in _decode(done.stdout):
        if kind == "F":
            dropped = bool(port & _DROP)
            results.append(FrameOut(data, None if dropped else port, port & ~_DROP if dropped else None))
        elif kind == "R":
            report = json.loads(data)
        else:
            results.append(Answer(json.loads(data)))
    return results, report


def nf_bench(
    task: dict[str, Any], frames: Sequence[FrameIn], folder: Path, *, seconds: float = 1.6, size_mb: int = 256
) -> dict[str, Any]:
    """How fast a task object is over frames: process_cycles a packet, pps."""
    config, file = folder / "task.json", folder / "frames.bin"
    config.write_text(json.dumps(task))
    file.write_bytes(encode(frames))
    done = subprocess.run(
        [program("nf_bench"), config, file, str(seconds), str(size_mb)], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result
