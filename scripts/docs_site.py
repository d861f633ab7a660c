# SPDX-License-Identifier: BSD-3-Clause
"""Hooks of mkdocs (mkdocs.yml): make the site from pages that are written for GitHub.

The navigation is the table of contents in docs/README.md, README.md is a page too, and anchors are those of GitHub. A
list may follow a line of text. Links to files of the repository that are not pages become text.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))

import docs_pages

ROOT = Path(__file__).resolve().parent.parent
FIRST_STEPS = "first-steps.md"
"""README.md, as a page of the site."""
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
_FENCE = re.compile(r"\s*(```|~~~)")
_ITEM = re.compile(r"([-*]|\d+\.) |\|")
"""The start of a list or of a table."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Set the navigation and the anchors."""
    sections = docs_pages.contents(Path(config.docs_dir))
    nav: list[Any] = [{"Documentation": "README.md"}, {"First steps": FIRST_STEPS}]
    for title, pages in sections.items():
        nav.append({title: [{name: path} for name, path in pages if path.endswith(".md")]})
    config.nav = nav
    config.mdx_configs["toc"]["slugify"] = lambda text, separator: docs_pages.anchor(text)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add README.md, whose links begin in the root of the repository."""
    text = (ROOT / "README.md").read_text(encoding="utf-8").replace("](docs/", "](")
    files.append(File.generated(config, FIRST_STEPS, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return the text of a page as Python-Markdown and mkdocs need it."""
    folder = page.file.src_uri.rpartition("/")[0]

    def link(match: re.Match[str]) -> str:
        image, text, target, anchor = match[1], match[2], match[3], match[4] or ""
        if "://" in target:
            return match[0]
        path = os.path.normpath(f"{folder}/{target}" if folder else target)
        if path == "../README.md":
            return f"[{text}]({os.path.relpath(FIRST_STEPS, folder or '.')}{anchor})"
        return match[0] if image or files.get_file_from_path(path) else text

    lines: list[str] = []
    fence = False
    for line in markdown.splitlines():
        mark = bool(_FENCE.match(line))
        if not fence and not mark and not line.startswith("    "):
            line = _LINK.sub(link, line)
            if _ITEM.match(line) and lines and lines[-1].strip() and not _continues(lines):
                lines.append("")
        fence ^= mark
        lines.append(line)
    return "\n".join(lines)


def _continues(lines: list[str]) -> bool:
    """Return whether the last lines are of a list or a table, which a further item continues."""
    for line in reversed(lines):
        if _ITEM.match(line):
            return True
        if not line.startswith("  "):
            return False
    return False
