# SPDX-License-Identifier: BSD-3-Clause
"""The text of a chain (``firewall:rules=/r/my.rules,l3fwd``): its parts, and how it is called in tables and files.

Pure, and open for chains of runs that came from elsewhere: what the functions are is in planebench.vnfs.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

PLAIN = "l2fwd"
"""What every function of a chain without a name is."""
SEPARATOR = ","
"""Between the functions of a chain; between a function and each of its options: a colon."""


def vnf_texts(chain: str, length: int) -> tuple[str, ...]:
    """The functions of a chain in path order, each with its options; those of a chain without a name are plain."""
    return tuple(chain.split(SEPARATOR)) if chain else (PLAIN,) * length


def join(texts: Sequence[str]) -> str:
    """The chain of these functions; no name if each of them is plain: a chain has one text, not two."""
    return "" if all(text == PLAIN for text in texts) else SEPARATOR.join(texts)


def chain_label(chain: str, length: int) -> str:
    """For people: as the text, but files by their last name: ``firewall:rules=my.rules,l3fwd``."""
    return SEPARATOR.join(re.sub(r"=/[^:]*/", "=", text) for text in vnf_texts(chain, length))


def vnf_name(chain: str, number: int) -> str:
    """What the function at a place of a chain is called, without options; plain for a place that it has not got."""
    texts = vnf_texts(chain, number + 1)
    return texts[number].partition(":")[0] if number < len(texts) else PLAIN


def chain_slug(chain: str, length: int) -> str:
    """Fit for a file name and an anchor; two chains whose labels are alike still differ."""
    label = re.sub(r"[^A-Za-z0-9._-]+", "-", chain_label(chain, length))
    if ":" not in chain:
        return label
    return f"{label[:60]}-{hashlib.sha256(chain.encode()).hexdigest()[:6]}"
