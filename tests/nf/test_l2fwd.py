# SPDX-License-Identifier: BSD-3-Clause
"""l2fwd against its definition (METHODOLOGY section 4): the addresses are rewritten, nothing else is touched."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from nf_rig import FrameIn, FrameOut, RefusedError, nf_run

pytestmark = pytest.mark.dataplane

PEERS = ("02:00:00:00:aa:00", "02:00:00:00:aa:01")
RUNT = 0


def test_only_addresses_change_and_runts_are_dropped(tmp_path: Path) -> None:
    rng = random.Random(5)
    frames = [FrameIn(rng.randbytes(rng.choice((0, 1, 13, 14, 60, 1514))), rng.randrange(2)) for _ in range(100_000)]
    results, report = nf_run({"kind": "l2fwd", "peer_macs": list(PEERS)}, frames, tmp_path)
    runts = 0
    for given, got in zip(frames, results, strict=True):
        assert isinstance(got, FrameOut)
        if len(given.data) < 14:
            runts += 1
            assert (got.drop, got.data) == (RUNT, given.data)
            continue
        assert got.port == 1 - given.port
        assert got.data[:6] == bytes.fromhex(PEERS[got.port].replace(":", ""))
        assert got.data[12:] == given.data[12:]
    assert report["drops"] == {"tx_full": 0, "runt": runts}
    assert report["rx_packets"] == report["tx_packets"] + runts == len(frames)


def test_settings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match='task nf: kind l2fwd has no "settings"; leave it out'):
        nf_run({"kind": "l2fwd", "settings": {}}, [], tmp_path)
