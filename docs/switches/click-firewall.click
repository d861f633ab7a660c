// SPDX-License-Identifier: BSD-3-Clause
// ClickOS' firewall as a VNF: IPFilter with the ten rules of planed's firewall, but one of link-local addresses in place
// of the one of IPv6. What no rule allows is dropped.
//   click --dpdk {eal_main} -- click-firewall.click
elementclass Filter { $in, $out |
	FromDPDKDevice($in, N_QUEUES 1, MODE none, BURST 32)
		-> type :: Classifier(12/0800, -)
		-> CheckIPHeader(OFFSET 14)
		-> IPFilter(deny src net 127.0.0.0/8,
		            deny src net 224.0.0.0/4,
		            deny dst net 240.0.0.0/4,
		            deny src net 169.254.0.0/16,
		            deny dst tcp port >= 135 and dst tcp port <= 139,
		            deny dst udp port 19,
		            allow icmp and dst net 198.18.0.0/15,
		            allow src tcp port >= 1024 and dst net 192.0.2.0/24 and dst tcp port 80,
		            allow src net 198.18.0.0/15 and src udp port >= 1024
		                  and dst net 198.18.0.0/15 and dst udp port 28770,
		            allow src net 198.18.0.0/15)
		-> ToDPDKDevice($out, N_QUEUES 1, BLOCKING false);
	type[1] -> Discard;
}

DPDKInfo(NB_MBUF 16383);
Filter(0, 1);
Filter(1, 0);
