#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The picture of the report in README.md: the top of the page of a run, as headless Chromium draws it.

    .venv/bin/python scripts/report_picture.py RUN OUT [--dark] [--width 1400] [--height 900]

RUN is a run folder or an id in runs/; OUT a PNG: docs/img/report.png. Look at it before it is committed. Needs chromium
(apt-get install chromium) and playwright (in the dev extra).
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from planebench.analysis.compare import Derived
from planebench.model.errors import PlanebenchError
from planebench.report.html import to_html
from planebench.store import find_run, read_run


def main() -> int:
    """Draw the picture; 1 with a sentence where that cannot be."""
    options = arguments()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        print("report_picture: there is no chromium here: apt-get install chromium", file=sys.stderr)
        return 1
    try:
        page = to_html(Derived(read_run(find_run(None, options.run))))
    except PlanebenchError as error:
        print(f"report_picture: {error}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        path.write_bytes(page)
        draw(path, chromium, options)
    print(f"{options.out}: {options.width} x {options.height}")
    return 0


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("run")
    parser.add_argument("out", type=Path)
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--width", type=int, default=1400)
    parser.add_argument("--height", type=int, default=900)
    return parser.parse_args()


def draw(page: Path, chromium: str, options: argparse.Namespace) -> None:
    """The top of the page as a PNG."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium)
        size = {"width": options.width, "height": options.height}
        tab = browser.new_page(viewport=size, color_scheme="dark" if options.dark else "light")
        tab.goto(page.as_uri())
        tab.screenshot(path=options.out)
        browser.close()


if __name__ == "__main__":
    sys.exit(main())
