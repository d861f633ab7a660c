# SPDX-License-Identifier: BSD-3-Clause
"""What guests boot: made once, of what Debian has, and anew when planed is another one. With a Debian of our own."""

from __future__ import annotations

import io
import lzma
import os
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from planebench.model.errors import StartError
from planebench.testbed.hosting import guest_image as made_of
from planebench.testbed.hosting.guest_image import GuestImage, archive, guest_image

STATIC = b"\x7fELF static"
DYNAMIC = b"\x7fELF /lib64/ld-linux-x86-64.so.2"


class Debian:
    """A PATH with nothing on it but programs that give away packages of ours; each fetching is noted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self._program("apt-cache", 'echo "  Depends: linux-image-9.9-cloud-amd64"')
        self._program("apt-get", f"echo $3 >> {folder}/fetched; : > $3_1.deb")
        self._program("dpkg-deb", f"name=$(basename $2 _1.deb); exec /bin/cat {folder}/$name.tar")
        self._program("busybox", "", STATIC)
        self.package("linux-image-9.9-cloud-amd64", {"./boot/vmlinuz-9.9": b"kernel", **modules()})
        self.package("busybox-static", {"./bin/busybox": STATIC})

    def _program(self, name: str, script: str, data: bytes = b"") -> None:
        path = self.folder / name
        path.write_bytes(data or f"#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n".encode())
        path.chmod(0o755)

    def package(self, name: str, files: dict[str, bytes]) -> None:
        with tarfile.open(self.folder / f"{name}.tar", "w") as contents:
            for path, data in files.items():
                entry = tarfile.TarInfo(path)
                entry.size = len(data)
                contents.addfile(entry, io.BytesIO(data))

    def fails(self, name: str, words: str) -> None:
        self._program(name, f"echo '{words}' >&2; exit 100")

    @property
    def fetched(self) -> list[str]:
        notes = self.folder / "fetched"
        return notes.read_text().split() if notes.exists() else []


def modules() -> dict[str, bytes]:
    """One as Debian 13 has them, one that the kernel has built in, and one that nobody wants."""
    names = set(made_of.MODULES + made_of.NETWORK_MODULES) - {"virtio_ring"}
    found = {f"./lib/modules/9.9/kernel/{name}.ko": name.encode() for name in sorted(names | {"ext4"})}
    del found["./lib/modules/9.9/kernel/uio.ko"]
    return {**found, "./lib/modules/9.9/kernel/uio.ko.xz": lzma.compress(b"uio")}


@pytest.fixture
def debian(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Debian:
    it = Debian(tmp_path / "bin")
    monkeypatch.setenv("PATH", str(it.folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return it


@pytest.fixture
def planed(tmp_path: Path) -> Path:
    """The program; beside it is the static one."""
    (tmp_path / "planed-static").write_bytes(b"planed one")
    (tmp_path / "planed-static").chmod(0o755)
    return tmp_path / "planed"


def contents(data: bytes) -> dict[str, tuple[int, bytes]]:
    """Mode and data of all that is in archives (cpio, "newc") that follow each other, as the kernel unpacks them."""
    found: dict[str, tuple[int, bytes]] = {}
    at = 0
    while at < len(data):
        assert data[at : at + 6] == b"070701" and at % 4 == 0
        fields = [int(data[at + 6 + 8 * n : at + 14 + 8 * n], 16) for n in range(13)]
        mode, size, name_size = fields[1], fields[6], fields[11]
        name = data[at + 110 : at + 109 + name_size].decode()
        begin = (at + 110 + name_size + 3) // 4 * 4
        if name != "TRAILER!!!":
            assert Path(name).parent == Path() or str(Path(name).parent) in found, f"{name} comes before its folder"
            found[name] = (mode, data[begin : begin + size])
        at = (begin + size + 3) // 4 * 4
    return found


def test_an_archive_has_folders_before_files_and_another_may_follow() -> None:
    first = archive({"/a/b/c": b"12345", "d": b"", "e/": b""})
    both = contents(first + archive({"a/b/c": b"6", "/a/b/x": b"7"}))
    folder, file = 0o040755, 0o100755
    assert both == {
        **dict.fromkeys(("a", "a/b", "e"), (folder, b"")),
        "a/b/c": (file, b"6"),
        "a/b/x": (file, b"7"),
        "d": (file, b""),
    }
    assert set(contents(first)) == {"a", "a/b", "a/b/c", "d", "e"}


def test_an_image_has_what_a_guest_needs(debian: Debian, planed: Path) -> None:
    image = guest_image(planed)
    assert image.version == "9.9-cloud-amd64"
    assert image.kernel.read_bytes() == b"kernel"
    inside = {name: data for name, (_, data) in contents(image.initramfs.read_bytes()).items()}
    assert inside["bin/planed"] == b"planed one"
    assert inside["bin/busybox"] == STATIC
    assert inside["init"].startswith(b"#!/bin/busybox sh\n")
    assert inside["modules/uio.ko"] == b"uio"
    assert {name for name in inside if name.startswith("modules/")} == {
        f"modules/{name}.ko" for name in made_of.MODULES if name != "virtio_ring"
    }
    assert {"dev", "proc", "sys"} <= set(inside)
    assert (image.modules / "virtio_net.ko").read_bytes() == b"virtio_net"
    assert not list(image.modules.glob("ext4*"))


def test_it_is_fetched_once_and_made_anew_for_another_planed(debian: Debian, planed: Path) -> None:
    first = guest_image(planed)
    assert guest_image(planed) == first
    planed.with_name("planed-static").write_bytes(b"planed two")
    second = guest_image(planed)
    assert second.initramfs != first.initramfs and second.kernel == first.kernel
    assert first.initramfs.exists(), "another planebench may be about to boot it"
    assert debian.fetched == ["linux-image-9.9-cloud-amd64"]
    for path in (first.initramfs, second.initramfs):
        os.utime(path, (0, 0))
    planed.with_name("planed-static").write_bytes(b"planed three")
    third = guest_image(planed)
    assert list(first.initramfs.parent.glob("image-*")) == [third.initramfs], "nobody has used the others for long"


def test_many_at_once_get_one(debian: Debian, planed: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        images: list[GuestImage] = list(pool.map(guest_image, [planed] * 8))
    assert len(set(images)) == 1
    assert debian.fetched == ["linux-image-9.9-cloud-amd64"]
    assert not list(images[0].initramfs.parent.glob(".*")), "nothing half made is left"


def test_a_busybox_with_libraries_is_not_taken(debian: Debian, planed: Path) -> None:
    (debian.folder / "busybox").write_bytes(DYNAMIC)
    inside = contents(guest_image(planed).initramfs.read_bytes())
    assert inside["bin/busybox"][1] == STATIC
    assert debian.fetched == ["linux-image-9.9-cloud-amd64", "busybox-static"]


@pytest.mark.parametrize("program", ["apt-get", "apt-cache"])
def test_without_a_network_it_says_what_is_missing(debian: Debian, planed: Path, program: str) -> None:
    debian.fails(program, "E: no such host")
    with pytest.raises(StartError, match=r"linux-image-.*: E: no such host; this needs network .*`apt-get update`"):
        guest_image(planed)
    assert not list(made_of.default_folder().glob("guest/kernel-*"))


def test_what_is_kept_needs_no_debian(debian: Debian, planed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANEBENCH_PLANED_STATIC", str(planed.with_name("planed-static")))
    for name in ("apt-get", "apt-cache", "dpkg-deb"):
        debian.folder.joinpath(name).rename(debian.folder / f"{name}.away")
    assert "apt-get is needed" in str(made_of.remedy())
    with pytest.raises(StartError, match="apt-cache"):
        guest_image(planed)
    for name in ("apt-get", "apt-cache", "dpkg-deb"):
        debian.folder.joinpath(f"{name}.away").rename(debian.folder / name)
    kept = guest_image(planed)
    (debian.folder / "apt-get").unlink()
    assert made_of.remedy() is None and guest_image(planed) == kept


def test_without_a_static_planed_it_says_so(debian: Debian, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANEBENCH_PLANED_STATIC", str(tmp_path / "nowhere"))
    with pytest.raises(StartError, match="build planed-static"):
        guest_image(tmp_path / "planed")
    assert "planed-static" in str(made_of.remedy())
    assert debian.fetched == []
