#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write the notices of the libraries that planed-static has in it: their licenses as this system states them.

``third_party.py FILE`` is called by the build. On Debian and its derivatives the copyright files are those of the
packages that are linked; elsewhere only the table is written.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

DOCUMENTS = Path("/usr/share/doc")
TEXTS = Path("/usr/share/common-licenses")
LGPL = "LGPL-2.1"


class Component(NamedTuple):
    """A library: what the linker calls it (``rte_*``: all with this beginning), and the Debian package that has it."""

    title: str
    linked: tuple[str, ...]
    package: str
    license: str


COMPONENTS = (
    Component("DPDK", ("rte_*",), "libdpdk-dev", "BSD-3-Clause"),
    Component("jansson", ("jansson",), "libjansson-dev", "MIT"),
    Component("libpcap", ("pcap",), "libpcap0.8-dev", "BSD-3-Clause"),
    Component("libnuma", ("numa",), "libnuma-dev", "LGPL-2.1-only"),
    Component("libbsd", ("bsd",), "libbsd-dev", "BSD-3-Clause and similar"),
    Component("libmd", ("md",), "libmd-dev", "BSD-3-Clause and similar"),
    Component("GNU C library", ("pthread", "dl", "m"), "libc6-dev", "LGPL-2.1-or-later"),
)

HEAD = """Third-party notices of planebench

planebench, planed included, is under the license BSD-3-Clause (file LICENSE). The program planed-static has these
libraries in it:

"""
RELINKING = """
libnuma and the GNU C library are under the GNU Lesser General Public License, version 2.1, whose text is below. You may
replace them by changed versions: the source of planed, all of it under BSD-3-Clause, is that of planebench of the same
version, and `meson setup build && ninja -C build` links planed-static with the static libraries of your system. You may
modify planed-static for your own use, and reverse engineer it to debug such modifications.
"""


def notices(documents: Path = DOCUMENTS, texts: Path = TEXTS) -> str:
    """Return the table, the terms of relinking, and the copyright files and license that this system has."""
    rows = [f"- {it.title}: {it.license}\n" for it in COMPONENTS]
    parts = [HEAD, *rows, RELINKING]
    files = [(it.title, documents / it.package / "copyright") for it in COMPONENTS]
    for title, file in (*files, ("GNU Lesser General Public License 2.1", texts / LGPL)):
        if file.is_file():
            parts += [f"\n{'=' * 80}\n{title}\n{'=' * 80}\n\n", file.read_text(encoding="utf-8", errors="replace")]
    return "".join(parts)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(notices(), encoding="utf-8")
