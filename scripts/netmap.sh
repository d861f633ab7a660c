#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Build netmap for the kernel of the lab's guest (tests/lab/test_vale.py), with the drivers that it has patches for:
#   scripts/netmap.sh SOURCES FOLDER      clone of github.com/luigirizzo/netmap -> netmap.ko, DRIVER/DRIVER.ko, build-apps/
# Nothing is installed: headers and sources of the kernel come by apt-get download and are unpacked into FOLDER.
set -eu
sources=$(realpath "$1")
mkdir -p "$2" && cd "$2"
folder=$PWD
release=$(apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: linux-image-//p')
if [ ! -d headers ]; then
	apt-get -q download "linux-headers-$release" "linux-headers-${release%-amd64}-common" linux-kbuild-6.1 linux-source-6.1
	mkdir headers kernel
	for package in linux-headers-*.deb linux-kbuild-*.deb; do dpkg-deb -x "$package" headers; done
	sed -i "s|/usr/src/|$folder/headers/usr/src/|" "headers/usr/src/linux-headers-$release/Makefile"
	dpkg-deb --fsys-tarfile linux-source-*.deb | tar -xO ./usr/src/linux-source-6.1.tar.xz |
		tar -xJ -C kernel --strip-components=1 --wildcards 'linux-source-*/drivers/net/*'
	rm -- *.deb
fi
rm -rf netmap && git clone -q "$sources" netmap
# Linux 6.1.y has had another virtnet_poll() since netmap's patch was made: two lines before the one that it looks for.
patch=netmap/LINUX/final-patches/vanilla--virtio_net.c--50b00--60500
sed -i '/^ 	virtnet_poll_cleantx(rq);$/{N;N;s/.*/ 	if (budget)\n 		virtqueue_disable_cb(rq->vq);\n /}' $patch
netmap/LINUX/configure --kernel-dir="$folder/headers/usr/src/linux-headers-$release" --kernel-sources="$folder/kernel" \
	--drivers=e1000e,igb,vmxnet3,virtio_net.c --no-ext-drivers --no-utils --apps=vale-ctl,pkt-gen
make -j"$(nproc)"
