# SPDX-License-Identifier: BSD-3-Clause
"""The text of a chain (``firewall:rules=/r/my.rules,vm:l3fwd``): its parts, and how it is called in tables and files.

Pure, and open for chains of runs that came from elsewhere: what the functions are is in planebench.testbed.vnfs.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import get_args

from planebench.model.dimensions import HostingName

PLAIN = "l2fwd"
"""The function of a chain without a name."""
SEPARATOR = ","
"""Between the functions of a chain; between a function and each of its options: a colon."""
HOSTINGS: tuple[HostingName, ...] = get_args(HostingName)
"""Prefixes of a function: ``vm:l3fwd``."""
OWN: tuple[HostingName, ...] = ("image", "exec")
"""Behind these stands no function but a file, or a command, of the user's."""
WHOLE: tuple[HostingName, ...] = tuple(hosting for hosting in HOSTINGS if hosting not in OWN)
"""Hostings that a whole chain may have."""
CHAIN_LENGTH_MAX = 5
"""Functions of a chain."""
LABEL_MAX = 48
"""Characters of a command of the user's in a label."""


def split(text: str, separator: str) -> list[str]:
    """Return the parts between separators that are not in double quotes; quotes stay.

    A backslash in them quotes a quote.
    """
    parts, quoted, escaped = [""], False, False
    for char in text:
        if char == separator and not quoted:
            parts.append("")
            continue
        if char == '"' and not escaped:
            quoted = not quoted
        escaped = quoted and char == "\\" and not escaped
        parts[-1] += char
    return parts


def quote(text: str) -> str:
    """Return a text as it is, or in double quotes if it contains separators."""
    if not re.search(r'[,:"\\]', text):
        return text
    return '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'


def unquote(text: str) -> str:
    """Return the text without its quotes: those around it, or in it."""
    return re.sub(r'\\(["\\])|"', lambda match: match[1] or "", text) if '"' in text else text


def vnf_texts(chain: str, length: int) -> tuple[str, ...]:
    """Return the functions of a chain in path order, with their options; plain functions for a chain without a name."""
    return tuple(split(chain, SEPARATOR)) if chain else (PLAIN,) * length


def join(texts: Sequence[str]) -> str:
    """Return the chain of these functions; no name if each of them is plain: a chain has one text, not two."""
    return "" if all(text == PLAIN for text in texts) else SEPARATOR.join(texts)


def hosting_of(text: str, usual: HostingName) -> HostingName:
    """Return the hosting that the text of a function names; ``usual`` if it names none."""
    name = split(text, ":")[0]
    return next((hosting for hosting in HOSTINGS if hosting == name), usual)


def hostings(chain: str, length: int, usual: HostingName) -> tuple[HostingName, ...]:
    """Return the hosting of each function of a chain."""
    return tuple(hosting_of(text, usual) for text in vnf_texts(chain, length))


def chain_label(chain: str, length: int) -> str:
    """Return a chain in words, with the last part of file paths: ``firewall:rules=my.rules,l3fwd``."""
    return SEPARATOR.join(map(_label, vnf_texts(chain, length)))


def _label(text: str) -> str:
    command = hosting_of(text, "process") in OWN
    if not command:  # nor has it words with paths of their own
        text = re.sub(r'="/[^"]*/', '="', re.sub(r'=/[^:"]*/', "=", text))
    text = re.sub(r'([=:]"?)/[^:"\s]*/', r"\1", text).replace("{functions}/", "")
    long = len(text) > LABEL_MAX and command
    return f"{text[: LABEL_MAX - 1]}…" if long else text


def as_chains_of_one(text: str, usual: HostingName) -> tuple[tuple[str, HostingName], ...]:
    """Return how a function of a chain may be written as a chain of one, with what it runs in.

    The hosting is left out of the text unless options of it follow; whether they do only planebench.testbed.vnfs knows.
    """
    hosting = hosting_of(text, usual)
    first, *rest = split(text, ":")
    if first == hosting and hosting not in OWN:
        return (join((":".join(rest),)), hosting), (text, hosting)
    return ((join((text,)), hosting),)


def vnf_name(chain: str, number: int) -> str:
    """Return the name of the function at a place of a chain, without options; plain for a place beyond its end."""
    texts = vnf_texts(chain, number + 1)
    if number >= len(texts):
        return PLAIN
    first, *rest = split(texts[number], ":")
    return rest[0] if rest and first in HOSTINGS and first not in OWN else first


def vnf_names(chain: str) -> tuple[str, ...]:
    """Return what each function of a chain with a name is called, without options."""
    return tuple(vnf_name(chain, number) for number in range(len(vnf_texts(chain, 0))))


def chain_slug(chain: str, length: int) -> str:
    """Fit for a file name and an anchor; two chains whose labels are alike still differ."""
    label = re.sub(r"[^A-Za-z0-9._-]+", "-", chain_label(chain, length))
    if ":" not in chain:
        return label
    return f"{label[:60]}-{hashlib.sha256(chain.encode()).hexdigest()[:6]}"
