# SPDX-License-Identifier: BSD-3-Clause
"""``python -m planebench.schemas``: write every schema anew, from the records."""

from planebench.schemas import SCHEMAS
from planebench.schemas.generate import generate

for name, info in SCHEMAS.items():
    info.path.write_text(generate(name), encoding="utf-8")
    print(info.path)
