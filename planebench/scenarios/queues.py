# SPDX-License-Identifier: BSD-3-Clause
"""Several queue pairs on every port of a topology: what a task of each queue is called, and the stream that it sends.

Queue 0 is as if there were no other. The switch chooses the queue by which a frame leaves: it belongs to the port.
"""

from __future__ import annotations

QUEUES_MAX = 4
"""The tester has eight streams, and a topology two ends."""
_ENDS = 2


def queue_name(name: str, queue: int) -> str:
    """Return the name of a task or port on a queue: ``gen-n0``, ``gen-n0-q1``."""
    return f"{name}-q{queue}" if queue else name


def queue_stream(stream: int, queue: int) -> int:
    """Return the number of an end's stream on a queue."""
    return stream + _ENDS * queue
