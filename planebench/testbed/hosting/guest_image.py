# SPDX-License-Identifier: BSD-3-Clause
"""The guest image: Debian's cloud kernel, and an initramfs of busybox, kernel modules and the static planed.

The kernel package is downloaded once and only unpacked. The initramfs is named by its content, so a rebuilt
planed gets a new one. Both are in $XDG_CACHE_HOME/planebench/guest; several planebenches may use them at once.

A guest boots the image and one more archive (:func:`archive`), which the kernel unpacks over it. ``guest_init.sh`` runs
first; ``/document.json`` is planed's document.
"""

from __future__ import annotations

import fcntl
import hashlib
import lzma
import os
import platform
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from planebench.host.files import default_folder, keep
from planebench.host.planed_program import STATIC_REMEDY, find_static_planed
from planebench.host.programs import run_tool
from planebench.model.errors import StartError

# Files of Debian packages that are not installed: downloaded and read. Needs no root.

FETCH_DEADLINE_S = 300.0
"""Enough for 30 MB over a slow line."""
ASK_DEADLINE_S = 30.0
PROGRAMS = ("apt-get", "apt-cache", "dpkg-deb")
WAY_OUT = (
    "this needs network access and Debian's package lists once (run `apt-get update` as root); downloads are cached"
)


def missing_program() -> str | None:
    """Return the first of Debian's programs that is not installed, or None."""
    return next((name for name in PROGRAMS if shutil.which(name) is None), None)


def newest_dependency(package: str, prefix: str) -> str:
    """Return the dependency of a meta package whose name begins with ``prefix``. Raises StartError."""
    said = _run(["apt-cache", "depends", package], f"find the Debian package {package}", ASK_DEADLINE_S)
    names = [line.rpartition("Depends:")[2].strip() for line in said.splitlines() if "Depends:" in line]
    found = next((name for name in names if name.startswith(prefix)), None)
    if found is None:
        raise StartError(f"the Debian package {package} has no dependency {prefix}*: {WAY_OUT}")
    return found


def files_of(package: str, wanted: Callable[[str], bool]) -> dict[str, bytes]:
    """Download a package and return the files whose paths (``./boot/vmlinuz-...``) are wanted. Raises StartError."""
    with tempfile.TemporaryDirectory(prefix="pb-deb-") as folder:
        what = f"download the Debian package {package}"
        _run(["apt-get", "-q", "download", package], what, FETCH_DEADLINE_S, Path(folder))
        fetched = next(Path(folder).glob("*.deb"), None)
        if fetched is None:
            raise StartError(f"cannot {what}: apt-get downloaded no file; {WAY_OUT}")
        with _files_of(fetched) as contents:
            return dict(_read(contents, wanted))


@contextmanager
def _files_of(deb: Path) -> Iterator[tarfile.TarFile]:
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(deb)], stdout=subprocess.PIPE) as unpacking:
        assert unpacking.stdout is not None
        try:
            with tarfile.open(fileobj=unpacking.stdout, mode="r|") as contents:
                yield contents
        except tarfile.TarError as error:
            raise StartError(f"cannot read {deb.name}: {error}; {WAY_OUT}") from error
        finally:
            unpacking.kill()


def _read(contents: tarfile.TarFile, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    for member in contents:
        data = contents.extractfile(member) if member.isfile() and wanted(member.name) else None
        if data is not None:
            yield member.name, data.read()


def _run(argv: list[str], what: str, deadline_s: float, folder: Path | None = None) -> str:
    """Return the output of a program. Raises StartError with its last line if it fails."""
    done = run_tool(argv, deadline_s, cwd=folder)
    if done.code is None:
        raise StartError(f"cannot {what}: {done.stderr}; {WAY_OUT}")
    if done.code:
        words = (done.stderr or done.stdout).strip().splitlines()
        raise StartError(f"cannot {what}: {words[-1] if words else f'{argv[0]} failed'}; {WAY_OUT}")
    return done.stdout


KERNEL_PACKAGE = "linux-image-cloud-amd64"
BUSYBOX_PACKAGE = "busybox-static"
MODULES = (
    "uio",
    "uio_pci_generic",
    "virtio_ring",
    "virtio",
    "virtio_pci_legacy_dev",
    "virtio_pci_modern_dev",
    "virtio_pci",
    "virtio_console",
)
"""The modules of every guest, in the order of their dependencies. Built-in modules are left out."""
NETWORK_MODULES = ("failover", "net_failover", "virtio_net", "llc", "stp", "bridge")
DISK_MODULE = "virtio_blk"
"""Beside the kernel, for guests that use Linux's own drivers."""
_GUEST_MODULES = (*MODULES, *NETWORK_MODULES, DISK_MODULE)
SPARED_S = 86400.0
"""Images that are unused for this time are removed when another one is made."""
_INIT = Path(__file__).with_name("guest_init.sh")
_FILE, _FOLDER = 0o100755, 0o040755


@dataclass(frozen=True, slots=True)
class GuestImage:
    """The kernel and initramfs of a guest."""

    kernel: Path
    initramfs: Path
    version: str
    """The version of the kernel: ``6.1.0-56-cloud-amd64``."""
    modules: Path
    """The folder of the kernel modules: ``virtio_net.ko``."""


def remedy() -> str | None:
    """Return what is missing to make a guest, and how to get it; None if nothing is. Downloads nothing."""
    if platform.machine() != "x86_64":
        return f"guests are supported on x86-64 only; this machine is {platform.machine()}"
    if find_static_planed() is None:
        return STATIC_REMEDY
    program = missing_program()
    if program and _kept_kernel(_folder(), _GUEST_MODULES) is None:
        return f"{program} is needed to unpack the guest kernel from its Debian package; install it"
    return None


def guest_image(planed: Path) -> GuestImage:
    """Return kernel and initramfs with the static planed beside ``planed``. Raises StartError.

    The first call downloads and takes half a minute.
    """
    program = find_static_planed(planed)
    if program is None:
        raise StartError(f"planed-static for guests not found; {STATIC_REMEDY}")
    with _locked(_folder()) as folder:
        kernel = _kept_kernel(folder, _GUEST_MODULES) or _fetch_kernel(folder, KERNEL_PACKAGE, _GUEST_MODULES)
        made = archive(_contents(folder, kernel, program))
        path = folder / f"image-{hashlib.sha256(made).hexdigest()[:16]}.cpio"
        if not path.exists():
            _remove_old(folder)
            keep(path, made)
        os.utime(path)
    return GuestImage(kernel / "vmlinuz", path, kernel.name.partition("linux-image-")[2], kernel)


def kernel_folder(package: str, modules: Sequence[str]) -> Path:
    """Return a folder with ``vmlinuz`` and these modules (``NAME.ko``) of a meta package of Debian's kernels.

    The first call downloads it. Raises StartError.
    """
    with _locked(_folder()) as folder:
        return _kept_kernel(folder, modules) or _fetch_kernel(folder, package, modules)


def archive(files: Mapping[str, bytes]) -> bytes:
    """Return an archive that the kernel unpacks (cpio, "newc"): executable files and their folders.

    Names are relative to the root, with or without a leading slash; a name with a trailing slash is a folder.
    """
    entries: dict[str, tuple[int, bytes]] = {}
    for name, data in files.items():
        path = PurePosixPath("/", name)
        for folder in list(path.parents)[-2::-1]:
            entries.setdefault(str(folder)[1:], (_FOLDER, b""))
        entries[str(path)[1:]] = (_FOLDER if name.endswith("/") else _FILE, data)
    entries["TRAILER!!!"] = (0, b"")
    numbered = enumerate(entries.items(), start=1)
    return b"".join(_entry(number, name, mode, data) for number, (name, (mode, data)) in numbered)


def _entry(number: int, name: str, mode: int, data: bytes) -> bytes:
    path = name.encode() + b"\0"
    fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(path), 0)
    head = b"070701" + b"".join(b"%08x" % field for field in fields) + path
    return head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4)


def _folder() -> Path:
    return default_folder() / "guest"


@contextmanager
def _locked(folder: Path) -> Iterator[Path]:
    """Yield the folder to one thread of one process at a time."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("w")
    except OSError as error:
        raise StartError(
            f"cannot write the guest image to {folder}: {error.strerror}. Set XDG_CACHE_HOME to a writable directory"
        ) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def _kernel_prefix(modules: Sequence[str]) -> str:
    """Return the prefix of folders with these modules; an older planebench kept other modules."""
    return f"kernel-{hashlib.sha256(' '.join(modules).encode()).hexdigest()[:8]}-"


def _kept_kernel(folder: Path, modules: Sequence[str]) -> Path | None:
    kept = sorted(folder.glob(f"{_kernel_prefix(modules)}*/"), key=lambda path: path.stat().st_mtime)
    return kept[-1] if kept else None


def _fetch_kernel(folder: Path, meta_package: str, modules: Sequence[str]) -> Path:
    package = newest_dependency(meta_package, "linux-image-")
    found = files_of(
        package, lambda name: "/boot/vmlinuz-" in name or PurePosixPath(name).name.partition(".ko")[0] in modules
    )
    with tempfile.TemporaryDirectory(prefix=".new-", dir=folder) as new:
        made = Path(new) / "kernel"
        made.mkdir()
        for name, data in found.items():
            _keep(made, PurePosixPath(name).name, data)
        if not (made / "vmlinuz").exists():
            raise StartError(f"the Debian package {package} has no kernel in /boot")
        return made.rename(folder / f"{_kernel_prefix(modules)}{package}")


def _keep(folder: Path, name: str, data: bytes) -> None:
    """Write the kernel as ``vmlinuz``, and a module uncompressed, which busybox needs."""
    if name.startswith("vmlinuz-"):
        name = "vmlinuz"
    elif name.endswith(".ko.xz"):
        name, data = name.removesuffix(".xz"), lzma.decompress(data)
    (folder / name).write_bytes(data)


def _contents(folder: Path, kernel: Path, planed: Path) -> dict[str, bytes]:
    files = {"dev/": b"", "proc/": b"", "sys/": b"", "tmp/": b""}
    files |= {"init": _INIT.read_bytes(), "bin/busybox": busybox(folder), "bin/planed": planed.read_bytes()}
    modules = [kernel / f"{name}.ko" for name in MODULES]
    return files | {f"modules/{module.name}": module.read_bytes() for module in modules if module.exists()}


def busybox(folder: Path) -> bytes:
    """Return the machine's own busybox if it is static, else that of Debian's package, kept in the folder."""
    own, kept = shutil.which("busybox"), folder / "busybox"
    data = Path(own).read_bytes() if own else b""
    if data and b"/ld-linux" not in data[:4096]:  # the name of its loader, which a static program has not got
        return data
    if not kept.exists():
        found = files_of(BUSYBOX_PACKAGE, lambda name: name.endswith("/bin/busybox"))
        if not found:
            raise StartError(f"the Debian package {BUSYBOX_PACKAGE} has no busybox")
        keep(kept, next(iter(found.values())))
    return kept.read_bytes()


def _remove_old(folder: Path) -> None:
    for path in folder.glob("image-*.cpio"):
        if time.time() - path.stat().st_mtime > SPARED_S:
            path.unlink()
