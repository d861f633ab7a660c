#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Make the OCI image and the Debian package of the bench: ``bench_image.py ROOT.TAR FOLDER``.

ROOT.TAR is a root of Debian with the bench in it. The image has two layers, so that a new planebench does not bring a
new Debian: /opt/planebench is the upper one, and the package has it, too.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from planebench import __version__

LAYOUT = {"imageLayoutVersion": "1.0.0"}
INDEX_TYPE = "application/vnd.oci.image.index.v1+json"
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar"
PLATFORM = {"architecture": "amd64", "os": "linux"}

UPPER = "opt/planebench"
CONFIG = {
    # tini is process 1: it passes signals on, and collects what is left of switches.
    "Entrypoint": ["/usr/bin/tini", "--", "planebench"],
    "Cmd": ["--help"],
    "Env": [
        f"PATH=/{UPPER}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "PLANEBENCH_RUNS=/runs",
        "XDG_CACHE_HOME=/runs/.cache",  # calibrations are kept with the runs
    ],
    "WorkingDir": "/runs",
    "Volumes": {"/runs": {}},
    "Labels": {
        "org.opencontainers.image.title": "planebench",
        "org.opencontainers.image.version": __version__,
        "org.opencontainers.image.description": "Benchmark and compare software switches (NFV data planes)",
    },
}


CONTROL = """Package: planebench
Version: {version}
Architecture: amd64
Maintainer: planebench
Section: net
Priority: optional
Depends: python3 (>= 3.{minor}), python3 (<< 3.{next}), libc6 (>= 2.34)
Recommends: dpdk-dev, openvswitch-switch-dpdk, libjansson4, libpcap0.8, libbsd0, iproute2, ethtool
Description: benchmark and compare software switches (NFV data planes)
 With its own data plane, planed, and all Python packages that it needs, in /opt/planebench. Without the recommended
 packages planed-static measures.
"""


def package(upper: Path, folder: Path) -> Path:
    """Write ``planebench_VERSION_amd64.deb`` to the folder: for the Python of the Debian that the image has."""
    tree = upper.with_name("deb")
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir()
    subprocess.run(["tar", "-x", "--no-same-owner", "-C", str(tree), "-f", str(upper)], check=True)
    (library,) = (tree / UPPER / "lib").glob("python3.*")
    minor = int(library.name.removeprefix("python3."))
    (tree / "DEBIAN").mkdir()
    control = CONTROL.format(version=__version__, minor=minor, next=minor + 1)
    (tree / "DEBIAN" / "control").write_text(control)
    (tree / "usr" / "bin").mkdir(parents=True)
    (tree / "usr" / "bin" / "planebench").symlink_to(f"/{UPPER}/bin/planebench")
    made = folder / f"planebench_{__version__}_amd64.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "-z1", "--build", str(tree), str(made)], check=True)
    shutil.rmtree(tree)
    return made


def write_image(archive: Path, name: str, layers: Sequence[Path], config: Mapping[str, Any]) -> None:
    """Write an OCI archive (image format 1.0) of these layers, tar files, lowest first: whole or not at all.

    ``config``: Entrypoint, Labels, ... ``name`` is that of the image after loading.
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


def _tar(entries: Mapping[str, bytes | Path], out: IO[bytes]) -> None:
    """Write a tar file without times and names of this machine."""
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as file:
        for name, content in entries.items():
            member = tarfile.TarInfo(name)
            member.mode, member.size = 0o755, _size(content)
            with _opened(content) as source:
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


def _json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def split(root: Path, lower: Path, upper: Path) -> None:
    """Write the members of a tar file to two: those below ``UPPER``, and all others."""
    with tarfile.open(root) as whole, tarfile.open(lower, "w") as below, tarfile.open(upper, "w") as above:
        for member in whole:
            layer = above if f"{member.name.removeprefix('./')}/".startswith(f"{UPPER}/") else below
            layer.addfile(member, whole.extractfile(member) if member.isreg() else None)


def main(root: Path, folder: Path) -> None:
    """Write ``planebench-VERSION.oci.tar`` and the package to the folder and print their paths."""
    lower, upper = root.with_name("lower.tar"), root.with_name("upper.tar")
    split(root, lower, upper)
    root.unlink()
    archive = folder / f"planebench-{__version__}.oci.tar"
    write_image(archive, f"localhost/planebench:{__version__}", [lower, upper], CONFIG)
    made = package(upper, folder)
    lower.unlink()
    upper.unlink()
    for path in (archive, made):
        print(f"{path} ({path.stat().st_size / 2**20:.0f} MiB)")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
