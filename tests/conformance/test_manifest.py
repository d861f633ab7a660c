# SPDX-License-Identifier: BSD-3-Clause
"""The check of the fairness manifest, without a switch."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from planebench.conformance.checks import states_manifest
from planebench.conformance.model import Failure
from planebench.model.conditions import FEATURE_KEYS, MANIFEST_KEYS


def bed_of(**settings: str) -> Any:
    """Return a rig whose adapter states these settings, and a value for every other key."""
    stated = {**dict.fromkeys(MANIFEST_KEYS, "default"), **settings}
    return SimpleNamespace(adapter=SimpleNamespace(settings=lambda request: stated), live=SimpleNamespace(request=None))


@pytest.mark.parametrize("key", FEATURE_KEYS)
@pytest.mark.parametrize("claim", ["as the driver likes", "one of both", "on VNFs", "on, off", "-5", "onwards"])
def test_a_claim_that_cannot_be_read_fails(key: str, claim: str) -> None:
    with pytest.raises(Failure, match=claim):
        states_manifest(bed_of(**{key: claim}))


@pytest.mark.parametrize("claim", ["off", "wires on, VNFs off", "offered: the tester decides", "no virtio port", "-"])
def test_a_claim_passes(claim: str) -> None:
    assert states_manifest(bed_of(mergeable_buffers=claim)) == ()


def test_a_key_without_a_value_fails() -> None:
    with pytest.raises(Failure, match="buffers"):
        states_manifest(bed_of(buffers=" "))
