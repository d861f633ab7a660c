#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What tests/planed/test_vring_qemu.py boots: QEMU, busybox, and Debian's cloud kernel, which is only unpacked, into
# build/guest. Without it that test is skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh qemu-system-x86 busybox-static
guest=$PWD/build/guest
rm -rf "$guest" && mkdir -p "$guest"
kernel=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p' | head -1)
(cd "$guest" && apt-get -q download "$kernel" && dpkg-deb -x "$kernel"_*.deb unpacked)
mv "$guest"/unpacked/boot/vmlinuz-* "$guest/vmlinuz"
mkdir "$guest/modules"
for module in virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci failover net_failover virtio_net; do
	find "$guest/unpacked/lib/modules" -name "$module.ko" -exec mv -t "$guest/modules" {} +
done
cp "$(command -v busybox)" "$guest/busybox"
rm -rf "$guest"/unpacked "$guest"/*.deb
echo "guest: $guest has $(ls "$guest" | tr '\n' ' ')"
