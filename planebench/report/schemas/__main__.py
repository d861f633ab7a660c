# SPDX-License-Identifier: BSD-3-Clause
"""``python -m planebench.report.schemas``: write every schema anew, from the records."""

from planebench.report.schemas import SCHEMAS
from planebench.report.schemas.generate import generate

for name, info in SCHEMAS.items():
    info.path.write_text(generate(name), encoding="utf-8")
    print(info.path)
