#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The bench as an OCI image, dist/planebench-VERSION.oci.tar: a layer of Debian packages, and one of the wheel with what
# it needs. Root is not needed: mmdebstrap takes a user namespace. Downloads stay in build/image, and OFFLINE=1 makes the
# image of these alone, without a network. PYTHON: the one that the bench is installed for.
set -euo pipefail
cd "$(dirname "$0")/.."

# What the wheel does not bring: DPDK, whose libraries planed loads; the switches; and tools of the harness.
packages=(
	python3-venv tini
	dpdk-dev openvswitch-switch-dpdk libjansson4 libpcap0.8 libbsd0
	iproute2 ethtool kmod pciutils procps hwloc-nox bubblewrap git
)
suite=$(. /etc/os-release && echo "$VERSION_CODENAME") # the libraries have to be those that planed was linked with
python=${PYTHON:-.venv/bin/python}
mirror=${MIRROR:-}                                     # empty: mmdebstrap takes that of Debian, and its security updates
work=$PWD/build/image
debs=$work/debs wheels=$work/wheels
mkdir -p "$debs" "$wheels" dist

wheel=$(ls -t dist/planebench-*.whl | head -n 1)
rm -f "$wheels"/planebench-*.whl
if [ -n "${OFFLINE:-}" ]; then
	(cd "$debs" && dpkg-scanpackages --multiversion . >Packages 2>/dev/null)
	mirror="deb [trusted=yes] copy:$debs ./"
	cp "$wheel" "$wheels"
	keep=()
else
	keep=(--customize-hook="sync-out /var/cache/apt/archives $debs")
	rm -f "$debs/Packages"
	"$python" -m pip wheel --quiet --wheel-dir "$wheels" "$wheel"
fi

echo "image: Debian $suite with ${#packages[@]} packages and what they need, and $(basename "$wheel")"
inside='env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin'
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) mmdebstrap --quiet --variant=minbase \
	--include="$(IFS=,; echo "${packages[*]}")" \
	--dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
	--dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
	--skip=essential/unlink \
	--setup-hook='mkdir -p "$1/var/cache/apt/archives"' \
	--setup-hook="sync-in $debs /var/cache/apt/archives" \
	"${keep[@]}" \
	--customize-hook='mkdir "$1/wheels" "$1/runs"' --customize-hook="sync-in $wheels /wheels" \
	--customize-hook="chroot \"\$1\" $inside python3 -m venv /opt/planebench" \
	--customize-hook="chroot \"\$1\" $inside /opt/planebench/bin/pip install --quiet --no-index --find-links /wheels planebench" \
	--customize-hook='rm -r "$1/wheels"' \
	"$suite" "$work/root.tar" ${mirror:+"$mirror"}
"$python" scripts/bench_image.py "$work/root.tar" dist
