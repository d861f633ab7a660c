# SPDX-License-Identifier: BSD-3-Clause
"""The wires: each module of this package that calls ``register`` is one; all are found by being here.

docs/design/adding.md explains how to add one.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
