# SPDX-License-Identifier: BSD-3-Clause
"""README.md and docs/ as data: the commands on each page, in their order, and its links and anchors. No processes."""

from __future__ import annotations

import re
import shlex
import string
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAMS = ("planebench", "planebench-fib", "planed", "make", "man", "for", "rpc", "git", "python", "valgrind", "flock")
PROGRAMS += ("qemu-system-x86_64", "ring_bench", "driver_bench", "fib_announce")
"""What makes a line of an indented block a command; those of the build folder are among them."""
SHELLS = ("sh", "bash", "shell", "console")
"""What makes every line of a fenced block one."""

_FENCED = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FENCE = re.compile(r"^\s*(```|~~~)\s*(\w*)")
_LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$")
_ITEM = re.compile(r"- \[([^\]]+)\]\(([^)#]+)\)")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*=\S*$")


def command_tree(command: Any, path: str = "planebench") -> Iterator[tuple[str, Any]]:
    """Yield every command that does something, with what a user types before its options: ``planebench plan show``."""
    for name, child in command.commands.items():
        if hasattr(child, "commands"):
            yield from command_tree(child, f"{path} {name}")
        elif not child.hidden:
            yield f"{path} {name}", child


@dataclass(frozen=True, slots=True)
class Command:
    """A shell line of a page: where it is, and what a user types, continuation lines joined, comment dropped."""

    page: str
    line: int
    text: str

    @property
    def where(self) -> str:
        """``README.md:27``."""
        return f"{self.page}:{self.line}"

    @property
    def words(self) -> list[str]:
        """The words of the first program, without variables and sudo before it, up to a pipe or a redirection."""
        words = shlex.split(self.text, comments=False)
        while words and (_VARIABLE.match(words[0]) or words[0] in ("sudo", "time")):
            words = words[1:]
        ends = (i for i, word in enumerate(words) if word in ("|", "||", "&&", ";", "&") or word.startswith((">", "<")))
        words = words[: next(ends, len(words))]
        return [Path(words[0]).name, *words[1:]] if words else []


def pages(root: Path) -> list[Path]:
    """README.md, then docs/ sorted."""
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


def commands(root: Path, page: Path) -> list[Command]:
    """The commands of a page, in order."""
    name = str(page.relative_to(root))
    found = []
    for number, block in _blocks(page.read_text(encoding="utf-8")):
        for offset, text in _joined(block):
            line = Command(name, number + offset, _without_comment(text))
            if line.words and (line.words[0] in PROGRAMS or block[0].startswith("\0")):
                found.append(line)
    return found


def _blocks(text: str) -> Iterator[tuple[int, list[str]]]:
    """Runs of lines that may be commands, each with the number of its first line; those of a shell fence after NUL."""
    block: list[str] = []
    fence, shell = "", False
    for number, line in enumerate(text.splitlines(), 1):
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1] == fence):
            fence, shell = ("", False) if fence else (mark[1], mark[2] in SHELLS)
            inside = ""
        elif fence:
            inside = "\0" + line if shell else ""
        else:
            inside = line if line.startswith("    ") else ""
        if inside:
            block.append(inside)
        elif block:
            yield number - len(block), block
            block = []
    if block:
        yield number + 1 - len(block), block


def _joined(block: list[str]) -> Iterator[tuple[int, str]]:
    """Commands with their offset in the block: a line that ends in a backslash goes on in the next."""
    begun, parts = 0, []
    for offset, line in enumerate(block):
        begun = begun if parts else offset
        stripped = line.lstrip("\0 ").removeprefix("$ ").rstrip()
        parts.append(stripped.removesuffix("\\"))
        if not stripped.endswith("\\"):
            yield begun, " ".join(part.strip() for part in parts)
            parts = []


def _without_comment(text: str) -> str:
    """Up to a ``#`` that the shell takes for a comment; empty for what is no shell line at all."""
    quote = ""
    for index, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif sign == "#" and (index == 0 or text[index - 1].isspace()):
            text = text[:index]
            break
    try:
        shlex.split(text)
    except ValueError:
        return ""
    return re.split(r"\s{4,}", text.strip())[0]


def block_of(page: Path, start: str) -> str:
    """The indented or fenced block of a page that begins so, without indent. Raises LookupError where there is none."""
    text = page.read_text(encoding="utf-8")
    indented = ("".join(line.removeprefix("    ") + "\n" for line in block) for _, block in _blocks(text))
    for block in (*indented, *_FENCED.findall(text)):
        if block.startswith(start):
            return str(block)
    raise LookupError(f"{page} has no block that begins with {start}")


def links(page: Path) -> list[tuple[int, str]]:
    """Targets of links to other files and anchors, with their lines; not those into the web."""
    found = []
    fence = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence ^= bool(_FENCE.match(line))
        if not fence and not line.startswith("    "):
            found += [(number, target) for target in _LINK.findall(line) if "://" not in target]
    return found


def anchor(heading: str) -> str:
    """Return the anchor of a heading, as GitHub makes it."""
    kept = set(string.ascii_lowercase + string.digits + "-_ ")
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    return "".join(sign for sign in text if sign in kept or sign.isalpha()).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page; the second of a name ends in -1."""
    found: list[str] = []
    for line in page.read_text(encoding="utf-8").splitlines():
        if heading := _HEADING.match(line):
            name = anchor(heading[1])
            found.append(f"{name}-{found.count(name)}" if name in found else name)
    return set(found)


def contents(docs: Path) -> dict[str, list[tuple[str, str]]]:
    """Return the table of contents in docs/README.md: for each heading, title and path of its links."""
    found: dict[str, list[tuple[str, str]]] = {}
    title = ""
    for line in (docs / "README.md").read_text(encoding="utf-8").splitlines():
        if heading := _HEADING.match(line):
            title = heading[1]
        elif item := _ITEM.match(line):
            found.setdefault(title, []).append((item[1], item[2]))
    return found


def not_in_contents(docs: Path) -> list[str]:
    """Return a sentence for each page that the table of contents does not have exactly once."""
    listed = [path for section in contents(docs).values() for _, path in section]
    paths = (str(page.relative_to(docs)) for page in sorted(docs.rglob("*.md")))
    return [
        f"docs/README.md: {path} is in the table of contents {listed.count(path)} times, not once"
        for path in paths
        if path != "README.md" and listed.count(path) != 1
    ]


def broken_links(root: Path) -> list[str]:
    """``page:line: target`` of each link that leads nowhere."""
    return [
        f"{page.relative_to(root)}:{number}: link to {target} leads nowhere"
        for page in pages(root)
        for number, target in links(page)
        if not _leads_somewhere(page, target)
    ]


def _leads_somewhere(page: Path, target: str) -> bool:
    path, _, anchor = target.partition("#")
    there = (page.parent / path).resolve() if path else page
    if not there.exists():
        return False
    return not anchor or there.suffix != ".md" or anchor in anchors(there)


def option_table(page: Path) -> list[str]:
    """Options in the first column of the tables of a page: ``--switch``."""
    cells = (line.split("|")[1] for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("| "))
    return [option for cell in cells for option in re.findall(r"`(--[a-z-]+)`", cell)]
