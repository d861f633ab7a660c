# SPDX-License-Identifier: BSD-3-Clause
"""OCI archives: container images in one tar file, read and written without network or container engine.

The same content gives the same file, byte by byte. Spec: OCI image format 1.0, image-layout.md, manifest.md, layer.md
(whiteouts). An archive may be hostile: nothing is written outside its root, and no device is made.

``python -m planebench.testbed.hosting.oci FOLDER`` (``make image``) makes an archive of the static planed, offline. It
loads with `podman load -i`, or is the image of an ``exec`` VNF.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import sys
import tarfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import IO, Any

from planebench import __version__
from planebench.host.planed_program import STATIC_REMEDY, find_static_planed, planed_version
from planebench.host.process import Supervisor
from planebench.model.errors import NotInstalledError, PlanebenchError, UsageError
from planebench.testbed.hosting.bubblewrap import OWN_FOLDERS, PLANED

OciDocument = Mapping[str, Any]

LAYOUT = {"imageLayoutVersion": "1.0.0"}
INDEX_TYPE = "application/vnd.oci.image.index.v1+json"
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar"
PLATFORM = {"architecture": "amd64", "os": "linux"}
_WHITEOUT, _OPAQUE = ".wh.", ".wh..wh..opq"
_WAY_OUT = "give a directory, or an OCI archive: `podman save --format oci-archive -o FILE IMAGE`"
NOTICES = Path(__file__).parents[2] / "third-party-notices.txt"
_unpacking = threading.Lock()


def root_of(image: Path, supervisor: Supervisor) -> Path:
    """Return the root of an image: a folder itself; an archive is unpacked once per supervisor, which owns the result.

    Raises UsageError for a file that is not an OCI archive.
    """
    if image.is_dir():
        return image
    try:
        status = image.stat()
    except OSError as error:
        raise UsageError(f"image {image} cannot be read: {error.strerror}; {_WAY_OUT}") from None
    folder = supervisor.workdir("images") / f"{status.st_dev:x}-{status.st_ino:x}-{status.st_mtime_ns:x}"
    with _unpacking:
        if not folder.exists():
            unpack(image, folder)
    return folder


def unpack(archive: Path, root: Path) -> None:
    """Unpack all layers of an OCI archive into a new folder. On failure removes it and raises UsageError."""
    making = root.with_name(f"{root.name}.part")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(mode=0o700)
    try:
        with tarfile.open(archive) as file:
            # The archive's first image; of a multi-platform image that of our platform.
            manifest = json.loads(_content(file, "index.json"))
            while "layers" not in manifest:
                ours = [it for it in manifest["manifests"] if it.get("platform", PLATFORM).items() >= PLATFORM.items()]
                manifest = json.loads(_blob(file, ours[0]["digest"]))
            for layer in manifest["layers"]:
                _unpack_layer(_blob(file, layer["digest"]), making)
        making.rename(root)
    except (OSError, LookupError, ValueError, TypeError, AttributeError, tarfile.TarError) as error:
        shutil.rmtree(making, ignore_errors=True)
        raise UsageError(f"image {archive} cannot be unpacked: {error}; {_WAY_OUT}") from error


def _blob(file: tarfile.TarFile, digest: str) -> bytes:
    content = _content(file, f"blobs/{digest.replace(':', '/')}")
    if _digest(content) != digest:
        raise ValueError(f"{digest} is damaged")
    return content


def _content(file: tarfile.TarFile, name: str) -> bytes:
    try:
        member = file.getmember(name)
    except KeyError:
        member = file.getmember(f"./{name}")
    found = file.extractfile(member)
    if found is None:
        raise ValueError(f"{name} is not a file")
    return found.read()


def _unpack_layer(content: bytes, root: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:*") as layer:
        for member in layer:
            path = inside(root, member.name)
            if path == root.resolve():
                continue
            if path.name == _OPAQUE:
                for entry in path.parent.iterdir() if path.parent.is_dir() else ():
                    _clear(entry)
            elif path.name.startswith(_WHITEOUT):
                _clear(path.with_name(path.name.removeprefix(_WHITEOUT)))
            elif member.isreg() or member.isdir() or member.issym() or member.islnk():
                # What a lower layer has there goes, unless both are folders.
                if path.is_symlink() or (path.exists() and not (path.is_dir() and member.isdir())):
                    _clear(path)
                _make(path, member, layer, root)


def _make(path: Path, member: tarfile.TarInfo, layer: tarfile.TarFile, root: Path) -> None:
    """Make a file that we own and can read: the container has no other user. Devices and the like are left out."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if member.isdir():
        path.mkdir(exist_ok=True)
    elif member.issym():
        path.symlink_to(member.linkname)
    elif member.islnk():
        shutil.copy(inside(root, member.linkname), path, follow_symlinks=False)
    else:
        content = layer.extractfile(member)
        assert content is not None
        with path.open("xb") as file:
            shutil.copyfileobj(content, file)
        path.chmod(member.mode & 0o755 | 0o600)


def _clear(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def inside(root: Path, name: str) -> Path:
    """Return a path of an archive below the root, its last part not followed. Raises ValueError if it leads outside."""
    parts = [part for part in PurePosixPath(name.lstrip("/")).parts if part != "."]
    path = root.resolve()
    if parts:
        path = path.joinpath(*parts[:-1]).resolve() / parts[-1]
    if ".." in parts or not path.is_relative_to(root.resolve()):
        raise ValueError(f"{name} points outside the image")
    return path


def write(archive: Path, name: str, layers: Sequence[bytes | Path], config: OciDocument) -> None:
    """Write an image of these layers, tar files, lowest first: whole or not at all.

    ``config``: Entrypoint, Labels, ... ``name`` is that of the image after loading, such as ``planed:0.1.0``.
    """
    described_layers = [_described(layer, LAYER_TYPE) for layer in layers]
    rootfs = {"type": "layers", "diff_ids": [layer["digest"] for layer in described_layers]}
    image = _json({**PLATFORM, "config": config, "rootfs": rootfs})
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": _described(image, CONFIG_TYPE),
            "layers": described_layers,
        }
    )
    annotations = {"org.opencontainers.image.ref.name": name}
    described = {**_described(manifest, MANIFEST_TYPE), "platform": PLATFORM, "annotations": annotations}
    index = _json({"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": [described]})
    blobs = {f"blobs/{_digest(blob).replace(':', '/')}": blob for blob in (*layers, image, manifest)}
    making = archive.with_name(f".{archive.name}.part")
    with making.open("wb") as file:
        _tar({"oci-layout": _json(LAYOUT), "index.json": index, **blobs}, file)
    making.replace(archive)


def layer(files: Mapping[str, bytes], folders: Sequence[str]) -> bytes:
    """Return a layer with these programs (mode 0755, by absolute path) and empty folders."""
    buffer = io.BytesIO()
    entries = {name.lstrip("/"): content for name, content in files.items()}
    _tar({**dict.fromkeys(name.lstrip("/") for name in folders), **entries}, buffer)
    return buffer.getvalue()


def _tar(entries: Mapping[str, bytes | Path | None], out: IO[bytes]) -> None:
    """Write a tar file without times and names of this machine; None is a folder."""
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as file:
        for name, content in entries.items():
            member = tarfile.TarInfo(name)
            member.type = tarfile.DIRTYPE if content is None else tarfile.REGTYPE
            member.mode, member.size = 0o755, 0 if content is None else _size(content)
            with _opened(content or b"") as source:
                file.addfile(member, source)


def _described(blob: bytes | Path, media_type: str) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": _digest(blob), "size": _size(blob)}


def _digest(blob: bytes | Path) -> str:
    with _opened(blob) as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"  # type: ignore[arg-type]


def _size(blob: bytes | Path) -> int:
    return blob.stat().st_size if isinstance(blob, Path) else len(blob)


def _opened(blob: bytes | Path) -> IO[bytes]:
    return blob.open("rb") if isinstance(blob, Path) else io.BytesIO(blob)


def _json(document: OciDocument) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def write_image(planed: Path, folder: Path) -> Path:
    """Write ``planed-VERSION.oci.tar`` to the folder, which is created."""
    labels = {
        "org.opencontainers.image.title": "planed",
        "org.opencontainers.image.version": planed_version(planed) or __version__,
        "org.opencontainers.image.licenses": "BSD-3-Clause",
    }
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / f"planed-{__version__}.oci.tar"
    config = {"Entrypoint": [PLANED], "Env": ["RUNTIME_DIRECTORY=/run"], "Labels": labels}
    files, folders = {PLANED: planed.read_bytes()}, {*OWN_FOLDERS}
    if NOTICES.is_file():  # made by the build, as planed-static is
        files[f"/licenses/{NOTICES.name}"] = NOTICES.read_bytes()
        folders.add("licenses")
    own_layer = layer(files, sorted(folders))
    write(archive, f"planed:{__version__}", [own_layer], config)
    return archive


def main(folder: str) -> int:
    """Write the image and print its path; return 0 or the exit code of the error."""
    try:
        planed = find_static_planed()
        if planed is None:
            raise NotInstalledError(f"planed-static not found; {STATIC_REMEDY}")
        archive = write_image(planed, Path(folder))
    except PlanebenchError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(f"{archive} ({archive.stat().st_size / 2**20:.1f} MiB)")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
