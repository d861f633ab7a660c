# SPDX-License-Identifier: BSD-3-Clause
"""The network functions of planed that a chain is made of: what there is, and what a user writes. No processes."""

from planebench.vnfs.chain import CHAIN_LENGTH_MAX, ChainVnf, parse_chain, resolve_chain
from planebench.vnfs.registry import VNFS, VnfKind

__all__ = [
    "CHAIN_LENGTH_MAX",
    "VNFS",
    "ChainVnf",
    "VnfKind",
    "parse_chain",
    "resolve_chain",
]
