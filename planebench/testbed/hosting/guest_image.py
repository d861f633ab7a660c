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
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from planebench.host.files import default_folder, keep
from planebench.host.planed_program import STATIC_REMEDY, find_static_planed
from planebench.host.programs import run_tool
from planebench.model.errors import StartError, UsageError

FETCH_DEADLINE_S = 300.0
"""Enough for 30 MB over a slow line."""
ASK_DEADLINE_S = 30.0
PROGRAMS = ("apt-get", "apt-cache", "dpkg-deb")
WAY_OUT = (
    "this needs network access and Debian's package lists once (run `apt-get update` as root); downloads are cached"
)


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


def missing_program() -> str | None:
    """Return the first of Debian's programs that is not installed, or None."""
    return next((name for name in PROGRAMS if shutil.which(name) is None), None)


def files_of(package: str, wanted: Callable[[str], bool]) -> dict[str, bytes]:
    """Download a package and return the files whose paths (``./boot/vmlinuz-...``) are wanted. Raises StartError."""
    with tempfile.TemporaryDirectory(prefix="planebench-deb-") as folder:
        what = f"download the Debian package {package}"
        _run(["apt-get", "-q", "download", package], what, FETCH_DEADLINE_S, Path(folder))
        fetched = next(Path(folder).glob("*.deb"), None)
        if fetched is None:
            raise StartError(f"cannot {what}: apt-get downloaded no file; {WAY_OUT}")
        found = {}
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(fetched)], stdout=subprocess.PIPE) as unpacking:
            assert unpacking.stdout is not None
            try:
                with tarfile.open(fileobj=unpacking.stdout, mode="r|") as contents:
                    for member in contents:
                        data = contents.extractfile(member) if member.isfile() and wanted(member.name) else None
                        if data is not None:
                            found[member.name] = data.read()
            except tarfile.TarError as error:
                raise StartError(f"cannot read {fetched.name}: {error}; {WAY_OUT}") from error
            finally:
                unpacking.kill()
        return found


def _run(argv: list[str], what: str, deadline_s: float, folder: Path | None = None) -> str:
    """Return the output of a program. Raises StartError with its last line if it fails."""
    done = run_tool(argv, deadline_s, cwd=folder)
    if done.code is None:
        raise StartError(f"cannot {what}: {done.stderr}; {WAY_OUT}")
    if done.code:
        words = (done.stderr or done.stdout).strip().splitlines()
        raise StartError(f"cannot {what}: {words[-1] if words else f'{argv[0]} failed'}; {WAY_OUT}")
    return done.stdout


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
        files = {"dev/": b"", "proc/": b"", "sys/": b"", "tmp/": b""}
        files |= {"init": _INIT.read_bytes(), "bin/busybox": busybox(folder), "bin/planed": program.read_bytes()}
        modules = [kernel / f"{name}.ko" for name in MODULES]
        files |= {f"modules/{module.name}": module.read_bytes() for module in modules if module.exists()}
        made = archive(files)
        path = folder / f"image-{hashlib.sha256(made).hexdigest()[:16]}.cpio"
        if not path.exists():
            for old in folder.glob("image-*.cpio"):
                if time.time() - old.stat().st_mtime > SPARED_S:
                    old.unlink()
            keep(path, made)
        os.utime(path)
    return GuestImage(kernel / "vmlinuz", path, kernel.name.partition("linux-image-")[2], kernel)


def kept_kernel() -> Path | None:
    """Return the kernel of guests, if one of them has needed it already; downloads nothing."""
    with suppress(UsageError):  # who has no home has none
        if folder := _kept_kernel(_folder(), _GUEST_MODULES):
            return folder / "vmlinuz"
    return None


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
    made = bytearray()
    for number, (name, (mode, data)) in enumerate(entries.items(), start=1):
        stored = name.encode() + b"\0"
        fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(stored), 0)
        head = b"070701" + b"".join(b"%08x" % field for field in fields) + stored
        made += head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4)
    return bytes(made)


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
    said = _run(["apt-cache", "depends", meta_package], f"find the Debian package {meta_package}", ASK_DEADLINE_S)
    names = [line.rpartition("Depends:")[2].strip() for line in said.splitlines() if "Depends:" in line]
    package = next((name for name in names if name.startswith("linux-image-")), None)
    if package is None:
        raise StartError(f"the Debian package {meta_package} has no dependency linux-image-*: {WAY_OUT}")
    found = files_of(
        package, lambda name: "/boot/vmlinuz-" in name or PurePosixPath(name).name.partition(".ko")[0] in modules
    )
    with tempfile.TemporaryDirectory(prefix=".new-", dir=folder) as new:
        made = Path(new) / "kernel"
        made.mkdir()
        for path, data in found.items():
            name = PurePosixPath(path).name
            if name.startswith("vmlinuz-"):
                name = "vmlinuz"
            elif name.endswith(".ko.xz"):  # busybox needs modules that are not compressed
                name, data = name.removesuffix(".xz"), lzma.decompress(data)
            (made / name).write_bytes(data)
        if not (made / "vmlinuz").exists():
            raise StartError(f"the Debian package {package} has no kernel in /boot")
        return made.rename(folder / f"{_kernel_prefix(modules)}{package}")


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
