# SPDX-License-Identifier: BSD-3-Clause
"""``python -m planebench``: the command, from a source tree too."""

from planebench.cli import main

if __name__ == "__main__":
    main()
