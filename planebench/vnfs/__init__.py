# SPDX-License-Identifier: BSD-3-Clause
"""The network functions of planed that a chain is made of: what there is, and what a user writes. No processes."""

from planebench.vnfs.chain import ChainVnf, parse_chain, resolve_chain
from planebench.vnfs.registry import VNFS, VnfKind
from planebench.vnfs.topology import build_chain

__all__ = [
    "VNFS",
    "ChainVnf",
    "VnfKind",
    "build_chain",
    "parse_chain",
    "resolve_chain",
]
