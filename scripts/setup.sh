#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Debian packages that planebench is built and run with. Installs the missing ones, as root or through sudo.
# Where all are there it does nothing and needs neither root nor the network. Arguments are more packages to have.
set -euo pipefail

packages=(
	build-essential pkg-config meson ninja-build  # the build
	python3-venv                                  # the harness
	libdpdk-dev dpdk libjansson-dev libpcap-dev   # planed
	libcmocka-dev                                 # its tests
	dpdk-dev                                      # dpdk-testpmd, a switch to compare with
	openvswitch-switch-dpdk                       # and another
	iproute2 clang-format socat                   # veth wires, tc-redirect; make lint; a human at the RPC socket
	openssh-client                                # run --switch-host
	hwloc-nox                                     # plan show --topology "pack:2 core:8 pu:2"
	"$@"
)

if ! command -v apt-get >/dev/null; then
	echo "setup: no apt here, so nothing is installed; planebench needs what Debian calls: ${packages[*]}" >&2
	exit 0
fi

here=$(dpkg-query --show --showformat='${db:Status-Status} ${Package}\n' "${packages[@]}" 2>/dev/null || true)
missing=()
for package in "${packages[@]}"; do
	grep -qx "installed $package" <<<"$here" || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
	# Where somebody can type a password sudo may ask for it; elsewhere it has to work without.
	if [ -t 0 ]; then may_sudo=(sudo -v); else may_sudo=(sudo -n true); fi
	if ! command -v sudo >/dev/null || ! "${may_sudo[@]}"; then
		echo "setup: these Debian packages are missing: ${missing[*]}" >&2
		echo "setup: installing them needs root, and sudo does not give it here. As root, run this and start again:" >&2
		echo "  apt-get update && apt-get install --no-install-recommends -y ${missing[*]}" >&2
		exit 1
	fi
	as_root=(sudo)
fi

apt() {
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@"
}

echo "setup: installing ${missing[*]}"
# The lists may be empty (a fresh container), or older than the mirror: only then are they fetched.
apt-cache show "${missing[@]}" >/dev/null 2>&1 || apt update
if ! apt install --no-install-recommends -y "${missing[@]}"; then
	echo "setup: once more, with fresh package lists"
	apt update
	apt install --no-install-recommends -y "${missing[@]}"
fi
