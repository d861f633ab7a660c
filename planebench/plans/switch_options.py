# SPDX-License-Identifier: BSD-3-Clause
"""``--switch-option vpp.rx_ring=1024``: options put into the text of a switch, as if they had been written there."""

from __future__ import annotations

from collections.abc import Sequence

from planebench.model.choices import unknown
from planebench.model.errors import UsageError
from planebench.model.spec import parse_switch, plain


def with_switch_options(switches: Sequence[str], options: Sequence[str]) -> tuple[str, ...]:
    """Return the switches with the options put in; each goes to every switch of that label, or else of that adapter.

    UsageError for an option that is not SWITCH.KEY=VALUE, or whose switch is not there. Whether the switch has such an
    option is for its adapter to say.
    """
    found = list(switches)
    for text in options:
        label, key, value = _parse(text)
        specs = [parse_switch(switch) for switch in found]
        chosen = {n for n, spec in enumerate(specs) if spec.label == label}
        chosen = chosen or {n for n, spec in enumerate(specs) if spec.adapter == label}
        if not chosen:
            raise unknown("switch", label, tuple(dict.fromkeys(spec.label for spec in specs)))
        found = [_with_option(switch, key, value) if n in chosen else switch for n, switch in enumerate(found)]
    return tuple(found)


def _parse(text: str) -> tuple[str, str, str]:
    where, equals, value = text.partition("=")
    label, dot, key = where.rpartition(".")
    if not (label and dot and key and equals and value) or ":" in value:
        raise UsageError(f'switch option "{text}" is not SWITCH.KEY=VALUE, as in vpp.rx_ring=1024')
    return label, key, value


def _with_option(switch: str, key: str, value: str) -> str:
    """Return the switch with the option; an earlier value of the same key goes."""
    adapter, *options = plain(switch).split(":")
    return ":".join([adapter, *(it for it in options if it.partition("=")[0] != key), f"{key}={value}"])
