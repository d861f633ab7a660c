# SPDX-License-Identifier: BSD-3-Clause
"""The command planebench with one more search: what an entry in planebench/analysis/search/methods.py comes to."""

import sys
from pathlib import Path

from planebench.analysis.search.methods import METHODS

sys.path.insert(0, str(Path(__file__).parent))

from steps import STEPS  # the folder is no package of planebench

METHODS[STEPS.name] = STEPS

if __name__ == "__main__":
    from planebench.cli import main

    main()
