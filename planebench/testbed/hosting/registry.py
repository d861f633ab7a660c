# SPDX-License-Identifier: BSD-3-Clause
"""Every hosting there is, by name. ``process``, a task of the tester, needs no entry."""

from __future__ import annotations

from collections.abc import Mapping

from planebench.testbed.hosting import container, exec, image, separate, vm
from planebench.testbed.hosting.base import Hosting

_ALL: tuple[Hosting, ...] = (separate.HOSTING, container.HOSTING, vm.HOSTING, image.HOSTING, exec.HOSTING)
HOSTINGS: Mapping[str, Hosting] = {hosting.name: hosting for hosting in _ALL}
"""The hostings by name, in the order in which they are listed."""
