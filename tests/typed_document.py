# SPDX-License-Identifier: BSD-3-Clause
"""The typed document of a document as planed takes it, for what is given one: tests write them as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from planebench.planed.document import Document, Memory, Port, Task, Worker

DEFAULT_MEMORY = {"hugepages": False, "size_mb": 256, "mbuf_count": 16383, "mbuf_data_bytes": 2176}


def typed(document: dict[str, Any]) -> Document:
    """Return the document whose JSON is ``document``."""
    return Document(
        document["name"],
        Memory(**{**DEFAULT_MEMORY, **document.get("memory", {})}),
        tuple(_port(port) for port in document["ports"]),
        tuple(_task(task) for task in document["tasks"]),
        tuple(Worker(**{**worker, "tasks": tuple(worker["tasks"])}) for worker in document["workers"]),
        document.get("nice"),
    )


def _port(port: dict[str, Any]) -> Port:
    return Port(**{**port, **({"path": Path(port["path"])} if "path" in port else {})})


def _task(task: dict[str, Any]) -> Task:
    lists = {key: tuple(task[key]) for key in ("ports", "peer_macs") if key in task}
    return Task(**{**task, **lists})
