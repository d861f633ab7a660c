#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Debian packages that planebench is built and run with. Installs the missing ones, as root or through sudo.
# Where all are there it does nothing and needs neither root nor the network. Arguments are more packages to have.
set -euo pipefail

needed=(
	build-essential pkg-config meson ninja-build  # the build
	python3-venv                                  # the harness
	libdpdk-dev libjansson-dev libpcap-dev        # planed
	"$@"
)
useful=(
	dpdk dpdk-dev                                 # dpdk-testpmd, a switch to compare with
	openvswitch-switch-dpdk                       # and another
	bubblewrap                                    # README's VNF that is a command (exec:), VNFs in containers
	iproute2 socat                                # veth wires, tc-redirect; a human at the RPC socket
	openssh-client                                # run --switch-host
	hwloc-nox                                     # plan show --topology "pack:2 core:8 pu:2"
)

if ! command -v apt-get >/dev/null; then
	echo "setup: no apt here, so nothing is installed; planebench needs what Debian calls: ${needed[*]} ${useful[*]}" >&2
	exit 0
fi

# Print which of the packages are not installed.
absent() {
	local here package
	here=$(dpkg-query --show --showformat='${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true)
	for package in "$@"; do
		grep -qx "installed $package" <<<"$here" || echo "$package"
	done
}
mapfile -t needed < <(absent "${needed[@]}")
mapfile -t useful < <(absent "${useful[@]}")
missing=("${needed[@]}" "${useful[@]}")
[ ${#missing[@]} -gt 0 ] || exit 0

# Where somebody can type a password, sudo may ask for it; elsewhere, and for what is only useful, it has to work without.
may_sudo() {
	command -v sudo >/dev/null || return 1
	if [ -t 0 ] && [ ${#needed[@]} -gt 0 ]; then sudo -v; else sudo -n true 2>/dev/null; fi
}

as_root=()
if [ "$(id -u)" -ne 0 ]; then
	as_root=(sudo)
	may_sudo || {
		install="apt-get update && apt-get install --no-install-recommends -y"
		if [ ${#needed[@]} -eq 0 ]; then
			echo "setup: going on without ${useful[*]}; to have them, run as root: $install ${useful[*]}" >&2
			exit 0
		fi
		echo "setup: these Debian packages are missing: ${missing[*]}" >&2
		echo "setup: installing them needs root, and sudo does not give it here. As root, run this and start again:" >&2
		echo "  $install ${missing[*]}" >&2
		[ $# -gt 0 ] || echo "setup: where nobody is root, use a wheel that another machine has built: it needs only Python (docs/install.md)" >&2
		exit 1
	}
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
