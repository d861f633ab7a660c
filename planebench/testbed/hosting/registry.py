# SPDX-License-Identifier: BSD-3-Clause
"""Every hosting there is, by name. ``process``, a task of the tester, needs no entry."""

from __future__ import annotations

from collections.abc import Mapping

from planebench.testbed.hosting.base import Hosting
from planebench.testbed.hosting.container import ContainerHosting
from planebench.testbed.hosting.exec import ExecHosting
from planebench.testbed.hosting.image import ImageHosting
from planebench.testbed.hosting.separate import SeparateHosting
from planebench.testbed.hosting.vm import VmHosting

_ALL: tuple[Hosting, ...] = (SeparateHosting(), ContainerHosting(), VmHosting(), ImageHosting(), ExecHosting())
HOSTINGS: Mapping[str, Hosting] = {hosting.name: hosting for hosting in _ALL}
"""The hostings by name, in the order in which they are listed."""
