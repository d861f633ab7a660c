# SPDX-License-Identifier: BSD-3-Clause
"""The scenarios (METHODOLOGY sections 1 and 6) as abstract topologies: ports, cross-connects, VNFs. No I/O.

Each module of this package that calls ``register`` is a scenario; all are found by being here.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
