# SPDX-License-Identifier: BSD-3-Clause
"""``make image``: the static planed as an OCI archive, made offline.

    python -m planebench.hosting.make_image FOLDER

It loads with `podman load -i`, or is the image of an ``exec`` VNF.
"""

from __future__ import annotations

import sys
from pathlib import Path

from planebench import __version__
from planebench.host.planed_program import STATIC_REMEDY, find_static_planed, planed_version
from planebench.hosting import oci
from planebench.hosting.bubblewrap import OWN_FOLDERS, PLANED
from planebench.model.errors import NotInstalledError, PlanebenchError

NOTICES = Path(__file__).parents[1] / "third-party-notices.txt"


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
    own_layer = oci.layer(files, sorted(folders))
    oci.write(archive, f"planed:{__version__}", [own_layer], config)
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
