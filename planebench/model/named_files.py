# SPDX-License-Identifier: BSD-3-Clause
"""The files that a plan names: each is its name and its content, in whatever folder it is.

Of two files with one name and different contents in one plan, the name has a part of the digest behind it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from planebench.model.chain_name import quote

FILES = ("chain_files", "traffic_files")
"""Settings of a header: path and digest of each file."""

_ENTRY = re.compile(r"(?:^|, )(.+?) ([0-9a-f]{16})(?=, |$)")


def digests_text(digests: Mapping[str, str]) -> str:
    """Return the digests of files, by path, as a setting of a header."""
    return ", ".join(f"{path} {digest}" for path, digest in digests.items())


def digests_of(settings: Mapping[str, object]) -> dict[str, str]:
    """Return the digest of every file of a run by its path; empty where the settings of its header have none."""
    texts = (str(settings.get(key) or "") for key in FILES)
    return dict(entry for text in texts for entry in _ENTRY.findall(text))


def file_names(digests: Mapping[str, str]) -> dict[str, str]:
    """Return the name of each file by its path."""
    last = {path: path.rpartition("/")[2] for path in digests}
    contents: dict[str, set[str]] = {}
    for path, digest in digests.items():
        contents.setdefault(last[path], set()).add(digest)
    return {path: name if len(contents[name]) == 1 else f"{name}@{digests[path][:8]}" for path, name in last.items()}


def named_digests(settings: Mapping[str, object]) -> dict[str, str]:
    """Return the digest of every file of a run by its name."""
    digests = digests_of(settings)
    return {name: digests[path] for path, name in file_names(digests).items()}


def renamed(text: str, names: Mapping[str, str]) -> str:
    """Return a text, as that of a chain, with other names of files."""
    forms = {form(path): form(name) for form in (str, quote) for path, name in names.items()}
    known = "|".join(map(re.escape, sorted(forms, key=len, reverse=True)))
    return re.sub(known, lambda match: forms[match[0]], text) if forms else text


def without_folders(text: str, settings: Mapping[str, object]) -> str:
    """Return a text with names in the place of the paths of the files of a run."""
    return renamed(text, file_names(digests_of(settings)))


def names_by_content(settings: Mapping[str, object], known: dict[str, str]) -> dict[str, str]:
    """Return the name of each file by its path: that of the first equal file, where no other file here has this name.

    ``known``, the names by digest, learns what is new.
    """
    digests = digests_of(settings)
    names = file_names(digests)
    first = {path: known.setdefault(digests[path], name) for path, name in names.items()}
    return {path: name if first[path] in names.values() else first[path] for path, name in names.items()}


def moved(settings: Mapping[str, object], to: Mapping[str, object]) -> dict[str, str]:
    """Return the path of each file in another run that has it elsewhere, by its path here."""
    others = {name: path for path, name in file_names(digests_of(to)).items()}
    found = {path: others.get(name, path) for path, name in file_names(digests_of(settings)).items()}
    return {path: other for path, other in found.items() if path != other}
