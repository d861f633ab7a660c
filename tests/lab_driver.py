# SPDX-License-Identifier: BSD-3-Clause
"""DPDK's driver of igb with time stamps of PTP frames, which Debian's build leaves out (RTE_LIBRTE_IEEE1588).

Debian's source of the installed DPDK is downloaded once, and its driver alone is compiled against the installed
libraries. Nothing is installed: a guest of the lab has the result in the place of the other one.
"""

from __future__ import annotations

import re
import shutil
import tarfile
import tempfile
from pathlib import Path

from planebench.host.files import default_folder
from planebench.host.programs import run_tool
from planebench.model.errors import StartError

LIBRARIES = ("bus_pci", "eal", "ethdev", "kvargs", "mbuf", "mempool", "net", "pci", "ring", "telemetry")
INTERNAL = ("lib/ethdev", "lib/eal/include", "lib/net", "lib/pci", "drivers/bus/pci", "drivers/bus/pci/linux")
"""Folders of headers that are not installed."""
MACROS = (
    "RTE_LIBRTE_IEEE1588",
    *("ALLOW_INTERNAL_API", "ALLOW_EXPERIMENTAL_API", "RTE_LOG_DEFAULT_LOGTYPE=pmd.net.e1000"),
)
READS = "E1000_READ_REG(hw, E1000_RXSTMPL)"
"""QEMU's model takes the next stamp when RXSATRH was read, which DPDK does not read: it reads the stamp only."""
DEADLINE_S = 300.0
PARTS = ("/drivers/net/e1000/", "/drivers/bus/pci/", "/lib/")


def installed() -> Path:
    """Return the driver that planed loads. Raises StartError."""
    found = sorted(Path("/usr/lib").glob("*/dpdk/pmds-*/librte_net_e1000.so.*.*"))
    if not found:
        raise StartError("DPDK is not Debian's: its driver of igb is not where Debian has it")
    return found[-1].resolve()


def with_stamps() -> Path:
    """Return the driver with time stamps, made if it is not there. Raises StartError."""
    driver = installed()
    version = _said(["dpkg-query", "-W", "-f", "${source:Version}", "libdpdk-dev"], "find DPDK's headers")
    kept = default_folder() / "guest" / f"{driver.name}-{re.sub('[^0-9.]+', '-', version)}-stamps"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=kept.parent) as new:
            _build(_source(Path(new), version), Path(new) / "driver", driver.name)
            (Path(new) / "driver").rename(kept)
    return kept


def _source(folder: Path, version: str) -> Path:
    """Download Debian's source and unpack what is needed of it; return its folder."""
    codename = _said(["sh", "-c", ". /etc/os-release && echo $VERSION_CODENAME"], "find the release of Debian")
    keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
    source = f"deb-src [signed-by={keyring}] http://deb.debian.org/debian {codename} main\n"
    (folder / "sources.list").write_text(source)
    (folder / "lists/partial").mkdir(parents=True)
    own = {"Dir::Etc::sourcelist": "sources.list", "Dir::Etc::sourceparts": "none", "Dir::State::lists": "lists"}
    apt = ["apt-get", "-q", "-o", "APT::Sandbox::User=root"]  # another user cannot write to this folder
    apt += [word for key, value in own.items() for word in ("-o", f"{key}={folder / value}")]
    what = "download Debian's source of DPDK"
    _said([*apt, "update"], what)
    _said([*apt, "source", "--download-only", f"dpdk={version}"], what, folder)
    archive = next(folder.glob("dpdk_*.orig.tar.*z"), None)
    if archive is None:
        raise StartError(f"cannot {what}: there is no archive in it")
    with tarfile.open(archive) as members:
        wanted = [it for it in members if any(part in it.name for part in PARTS) and it.name.endswith((".c", ".h"))]
        members.extractall(folder / "source", wanted)
    return next((folder / "source").iterdir())


def _build(source: Path, to: Path, soname: str) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        raise StartError("a C compiler is needed to build DPDK's driver of igb with time stamps")
    folder = source / "drivers/net/e1000"
    file = folder / "igb_ethdev.c"
    file.write_text(file.read_text().replace(READS, f"(E1000_READ_REG(hw, E1000_RXSATRH), {READS})"))
    flags = _said(["pkg-config", "--cflags", "libdpdk"], "find DPDK's headers").split()
    flags += [*(f"-D{name}" for name in MACROS), "-O2", "-w", "-fPIC", "-shared"]
    flags += [f"-I{folder}", f"-I{folder / 'base'}", *(f"-I{source / name}" for name in INTERNAL)]
    files = [str(file) for file in (*sorted(folder.glob("*.c")), *sorted(folder.glob("base/*.c")))]
    libraries = [f"-lrte_{name}" for name in LIBRARIES]
    _said([compiler, *flags, f"-Wl,-soname,{soname}", *files, *libraries, "-o", str(to)], "build DPDK's driver of igb")


def _said(argv: list[str], what: str, folder: Path | None = None) -> str:
    done = run_tool(argv, DEADLINE_S, cwd=folder)
    if done.code != 0:
        raise StartError(f"cannot {what}: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout.strip()
