# SPDX-License-Identifier: BSD-3-Clause
"""The command planebench with one more search: what a line in planebench/analysis/search/__init__.py comes to."""

import sys
from pathlib import Path

from planebench.analysis.search import register

sys.path.insert(0, str(Path(__file__).parent))

from steps import STEPS  # the folder is no package of planebench

register(STEPS)

if __name__ == "__main__":
    from planebench.cli import main

    main()
