# SPDX-License-Identifier: BSD-3-Clause
# Runs commands in a guest of the lab (lab_rig.py): each is a line, base64, from the virtio port "lab"; the answer is a
# line "EXIT-CODE BYTES" and the output.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C
mount -t tmpfs tmpfs /run
mkdir -p /dev/shm /dev/pts /dev/hugepages /run/lab
mount -t tmpfs tmpfs /dev/shm
mount -t devpts devpts /dev/pts
mount -t hugetlbfs hugetlbfs /dev/hugepages
hostname lab
ip link set lo up
for name in /sys/class/virtio-ports/*/name; do
	[ "$(cat "$name")" != lab ] || port=/dev/$(basename "$(dirname "$name")")
done
exec 3<>"$port"
echo "LAB-UP $(cut -d' ' -f1 /proc/uptime) s"
while :; do
	# The port is at its end until the other side is open.
	IFS= read -r line <&3 || { sleep 0.05; continue; }
	echo "$line" | base64 -d >/run/lab/command
	setsid sh /run/lab/command >/run/lab/output 2>&1 </dev/null 3>&-
	echo "$? $(stat -c %s /run/lab/output)" >&3
	cat /run/lab/output >&3
done
