# SPDX-License-Identifier: BSD-3-Clause
"""The labels of a run: tags, testbed, and the source tree that is measured. The store of a lab finds runs by them."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from planebench.host.git import subject_in
from planebench.model.errors import UsageError
from planebench.model.header import Subject

TESTBED_VARIABLE = "PLANEBENCH_TESTBED"
SUBJECT_VARIABLE = "PLANEBENCH_SUBJECT"


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of one run, as its header has them; ``id_suffix`` is the end of its id."""

    testbed: str = ""
    subject: Subject | None = None
    tags: dict[str, str] = field(default_factory=dict)
    id_suffix: str = ""


def read_labels(testbed: str | None = None, subject: str | None = None, tags: Iterable[str] = ()) -> Labels:
    """Return the labels of a run that starts now. Raises UsageError.

    ``testbed``: default $PLANEBENCH_TESTBED, or the name of this machine. ``subject``: a folder in a git repository, as
    ``../vpp``, or ``vpp=../vpp`` where only the switch ``vpp`` is built from it; default $PLANEBENCH_SUBJECT, or none.
    ``tags``: as ``ring=new``.
    """
    subject = subject or os.environ.get(SUBJECT_VARIABLE)
    return Labels(
        testbed=testbed or os.environ.get(TESTBED_VARIABLE) or platform.node() or "unknown",
        subject=_subject(subject) if subject else None,
        tags=dict(map(_tag, tags)),
    )


def _subject(text: str) -> Subject:
    switch, equals, folder = text.partition("=")
    return subject_in(Path(folder), switch) if equals else subject_in(Path(text))


def _tag(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise UsageError(f'--tag: "{text}" is not valid. Valid: KEY=VALUE, e.g. ring=new')
    return key, value
