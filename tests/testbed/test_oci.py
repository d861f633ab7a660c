# SPDX-License-Identifier: BSD-3-Clause
"""OCI archives: layers over layers, and hostile ones."""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from planebench.host.process import Supervisor
from planebench.model.errors import UsageError
from planebench.testbed.hosting import oci

Entry = tuple[str, bytes | str | None]
"""A name, and its bytes, None for a folder, ``->TARGET`` of a symbolic link, ``=TARGET`` of a hard one."""


def layer(*entries: Entry) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as file:
        for name, what in entries:
            member = tarfile.TarInfo(name)
            member.uid = member.gid = 1234
            if isinstance(what, str):
                member.type = tarfile.SYMTYPE if what.startswith("->") else tarfile.LNKTYPE
                member.linkname = what.removeprefix("->").removeprefix("=")
            elif what is None:
                member.type, member.mode = tarfile.DIRTYPE, 0o755
            else:
                member.size = len(what)
            file.addfile(member, io.BytesIO(what if isinstance(what, bytes) else b""))
    return buffer.getvalue()


def archive(path: Path, *layers: bytes, damage: Callable[[dict[str, bytes]], None] = lambda entries: None) -> Path:
    """As others make them: compressed layers, names with a dot before them, an index of an index."""
    entries: dict[str, bytes] = {}

    def add(blob: bytes) -> dict[str, object]:
        digest = oci._digest(blob)
        entries[f"./blobs/{digest.replace(':', '/')}"] = blob
        return {"digest": digest, "size": len(blob), "mediaType": "x"}

    manifest = add(json.dumps({"layers": [add(it) for it in layers]}).encode())
    other = {**add(b"{}"), "platform": {"architecture": "arm64", "os": "linux"}}
    index = add(json.dumps({"manifests": [other, {**manifest, "platform": oci.PLATFORM}]}).encode())
    entries["./index.json"] = json.dumps({"manifests": [index]}).encode()
    damage(entries)
    with tarfile.open(path, "w") as file:
        for name, content in entries.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            file.addfile(member, io.BytesIO(content))
    return path


def test_layers_are_laid_over_each_other(tmp_path: Path) -> None:
    first = layer(
        ("usr", None), ("usr/bin", None), ("bin", "->usr/bin"), ("usr/bin/a", b"a1"), ("usr/bin/b", b"b"),
        ("etc", None), ("etc/x", b"x"), ("etc/y", b"y"), ("var", None), ("var/z", b"z"), ("mtab", "->/proc/mounts"),
    )  # fmt: skip
    second = layer(
        ("usr/bin/a", b"a2"), ("usr/bin/.wh.b", b""), ("etc/.wh..wh..opq", b""), ("etc/w", b"w"), ("hard", "=etc/w"),
        (".wh.var", b""), ("./var", b"now a file"),
    )  # fmt: skip
    with Supervisor(Path("/tmp")) as supervisor:
        image = archive(tmp_path / "image", first, second)
        root = oci.root_of(image, supervisor)
        found = {str(path.relative_to(root)) for path in root.rglob("*")}
        assert found == {"usr", "usr/bin", "bin", "usr/bin/a", "etc", "etc/w", "hard", "var", "mtab"}
        assert (root / "bin/a").read_bytes() == b"a2" and (root / "hard").read_bytes() == b"w"
        assert str((root / "mtab").readlink()) == "/proc/mounts"
        assert (root / "etc/w").stat().st_uid == os.getuid()
        assert oci.root_of(image, supervisor) == root, "unpacked once"
        assert oci.root_of(root, supervisor) == root, "a folder is what it is"


@pytest.mark.parametrize(
    "entries",
    [
        [("../out", b"x")],
        [("/etc/../../out", b"x")],
        [("link", "->/"), ("link/out", b"x")],
        [("link", "->.."), ("link/.wh.kept", b"")],
        [("a", None), ("a/link", "->../.."), ("a/link/.wh..wh..opq", b"")],
        [("hard", "=../kept")],
        [("link", "->.."), ("hard", "=link/kept")],
    ],
    ids=["up", "middle", "by-link", "whiteout", "opaque", "hard-link", "hard-link-by-link"],
)
def test_nothing_is_touched_outside_of_the_root(tmp_path: Path, entries: list[Entry]) -> None:
    (tmp_path / "kept").write_text("kept")
    with pytest.raises(UsageError, match=r"image .* cannot be unpacked"):
        oci.unpack(archive(tmp_path / "image", layer(*entries)), tmp_path / "root")
    assert {path.name for path in tmp_path.iterdir()} == {"kept", "image"}
    assert not Path("/out").exists()


def _no_layer(entries: dict[str, bytes]) -> None:
    del entries[next(iter(entries))]


def _damaged(entries: dict[str, bytes]) -> None:
    entries[next(iter(entries))] += b"x"


def _no_json(entries: dict[str, bytes]) -> None:
    entries["./index.json"] = b"{"


def _odd_json(entries: dict[str, bytes]) -> None:
    entries["./index.json"] = b'{"manifests": [1]}'


@pytest.mark.parametrize("damage", [_no_layer, _damaged, _no_json, _odd_json])
def test_what_is_no_image_is_refused_with_the_way_to_get_one(
    tmp_path: Path, damage: Callable[[dict[str, bytes]], None]
) -> None:
    image = archive(tmp_path / "image", layer(("a", b"a")), damage=damage)
    with pytest.raises(UsageError, match=r"cannot be unpacked.*podman save --format oci-archive"):
        oci.unpack(image, tmp_path / "root")
    assert not (tmp_path / "root").exists()
