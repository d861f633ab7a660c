#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The network of docs/fib-agent.md: namespaces, and veth pairs from the switch to the others. As root.
#
#   network.sh up     fib-peer, fib-other, fib-vnf, fib-switch, fib-host
#   network.sh down   all of it is gone
#   network.sh configure PEER OTHER VNF SWITCH HOST
#                     the same in namespaces that are there: paths as /proc/PID/ns/net
set -euo pipefail

names=(fib-peer fib-other fib-vnf fib-switch fib-host)

inside() { nsenter --net="$1" "${@:2}"; }

# pair NAMESPACE INTERFACE MAC SWITCH PORT: an interface whose other end is a port of the switch. Its checksums are
# computed by the kernel that sends: a switch in between takes frames as they are.
pair() {
	inside "$4" ip link add "$5" type veth peer name "$2" netns "$1"
	inside "$4" sysctl -qw "net.ipv6.conf.$5.disable_ipv6=1"
	inside "$4" ip link set "$5" up
	inside "$1" sysctl -qw "net.ipv6.conf.$2.accept_dad=0"
	inside "$1" ip link set "$2" address "$3"
	inside "$1" ip link set "$2" up
	inside "$1" ethtool -K "$2" tx off >/dev/null
}

configure() {
	local peer=$1 other=$2 vnf=$3 switch=$4 host=$5 netns

	for netns in "$@"; do inside "$netns" ip link set lo up; done
	pair "$peer" eth0 02:00:00:00:01:01 "$switch" wire0
	pair "$host" eth0 02:00:00:00:09:02 "$switch" wire1
	pair "$vnf" vnf0 02:00:00:00:02:01 "$switch" vnf0
	pair "$vnf" vnf1 02:00:00:00:02:02 "$switch" vnf1

	# A neighbour of the VNF, with the networks that it announces; and a second router beside it, which has one of them.
	inside "$peer" ip address add 10.0.0.1/24 dev eth0
	inside "$peer" ip address add 2001:db8::1/64 dev eth0
	inside "$peer" ip address add 192.0.2.1/32 dev lo
	inside "$peer" ip address add 198.51.100.1/32 dev lo
	inside "$peer" ip address add 2001:db8:1::1/128 dev lo
	inside "$peer" ip link add link eth0 name eth1 address 02:00:00:00:01:03 netns "$other" type macvlan mode bridge
	inside "$other" ethtool -K eth1 tx off >/dev/null
	inside "$other" ip link set eth1 up
	inside "$other" ip address add 10.0.0.3/24 dev eth1
	inside "$other" ip address add 192.0.2.1/32 dev lo
	inside "$other" ip route add default via 10.0.0.2

	# The VNF is a router with an interface on each side; each answers for its own addresses only.
	inside "$vnf" sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv4.conf.all.arp_ignore=1
	inside "$vnf" ip address add 10.0.0.2/24 dev vnf0
	inside "$vnf" ip address add 2001:db8::2/64 dev vnf0
	inside "$vnf" ip address add 10.0.9.1/24 dev vnf1
	inside "$vnf" ip address add 2001:db8:9::1/64 dev vnf1

	inside "$host" ip address add 10.0.9.2/24 dev eth0
	inside "$host" ip address add 2001:db8:9::2/64 dev eth0
	inside "$host" ip route add default via 10.0.9.1
	inside "$host" ip route add default via 2001:db8:9::1
}

case "${1:-}" in
up)
	for name in "${names[@]}"; do ip netns add "$name"; done
	configure "${names[@]/#//run/netns/}"
	;;
down)
	for name in "${names[@]}"; do ip netns delete "$name" 2>/dev/null || true; done
	;;
configure)
	configure "${@:2:5}"
	;;
*)
	sed -n 's/^# \{0,1\}//; 3,8p' "$0" >&2
	exit 2
	;;
esac
