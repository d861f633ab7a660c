#!/bin/busybox sh
# SPDX-License-Identifier: BSD-3-Clause
# First process of a guest (guest_image.py): its NICs go to planed, which runs /document.json. Its RPC is at the first
# virtio port, or where there is none at the second serial line. Without a document the guest says that it is up, and ends.
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev

off() {
	sleep 0.2 # for the serial line, which is behind
	poweroff -f
	sleep 60
}

echo GUEST-UP
[ -f /document.json ] || off

insmod /modules/uio.ko
insmod /modules/uio_pci_generic.ko
for device in 1041 1000; do # virtio-net, modern and transitional
	echo "1af4 $device" >/sys/bus/pci/drivers/uio_pci_generic/new_id
done
for device in /sys/bus/pci/devices/0000:00:1[2-9a-e].0; do # of the host (qemu.py: FIRST_DEVICE_SLOT)
	[ -d $device ] || continue
	echo uio_pci_generic >$device/driver_override
	echo ${device##*/} >/sys/bus/pci/drivers_probe
done
rpc=/dev/ttyS1
if grep -q -e 0x1043 -e 0x1003 /sys/bus/pci/devices/*/device; then # virtio-serial
	rpc=/dev/vport0p1
	for module in virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_console; do
		[ ! -f /modules/$module.ko ] || insmod /modules/$module.ko
	done
	for _ in $(seq 1000); do
		[ ! -c $rpc ] || break
		usleep 10000
	done
else
	stty -F $rpc raw -echo
	exec 3<>$rpc # from now on nothing that comes is lost
fi
mkdir -p /run
export RUNTIME_DIRECTORY=/run
/bin/planed --config /document.json --rpc $rpc
echo "planed has ended: $?"
off
