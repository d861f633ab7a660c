#!/bin/busybox sh
# SPDX-License-Identifier: BSD-3-Clause
# First process of a guest of the lab (lab_rig.py). The root is that of the host, read-only, below a layer in memory that
# takes all writes, so that programs of the host run as they are. Then agent.sh takes over.
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
for module in $(cat /modules/order); do
	insmod "/modules/$module.ko" || echo "cannot load $module"
done
mkdir -p /host /layer /root
mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=loose,ro root /host
mount -t tmpfs tmpfs /layer
mkdir /layer/upper /layer/work
cp /agent.sh /layer/upper/lab-agent
mount -t overlay -o lowerdir=/host,upperdir=/layer/upper,workdir=/layer/work root /root
for folder in proc sys dev; do
	mount --move "/$folder" "/root/$folder"
done
exec switch_root /root /bin/sh /lab-agent
