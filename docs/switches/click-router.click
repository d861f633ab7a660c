// SPDX-License-Identifier: BSD-3-Clause
// ClickOS' router as a VNF: StaticIPLookup with the ten IPv4 routes of planed's l3fwd, all to the other port.
//   click --dpdk {eal_main} -- click-router.click MAC0={mac0} MAC1={mac1}
define($MAC0 02:00:00:00:04:01, $MAC1 02:00:00:00:04:02);

elementclass Route { $in, $out, $own, $next_hop |
	FromDPDKDevice($in, N_QUEUES 1, MODE none, BURST 32)
		-> type :: Classifier(12/0800, -)
		-> check :: CheckIPHeader(OFFSET 14)
		-> StaticIPLookup(10.0.0.0/8 0, 172.16.0.0/12 0, 192.168.0.0/16 0,
		                  198.18.0.0/15 0, 198.18.0.0/16 0, 198.19.0.0/16 0,
		                  198.19.0.0/24 0, 198.19.1.0/24 0, 198.19.2.0/24 0, 198.19.3.0/24 0)
		-> DecIPTTL
		-> EtherRewrite($own, $next_hop)
		-> ToDPDKDevice($out, N_QUEUES 1, BLOCKING false);
	type[1] -> Discard;
}

DPDKInfo(NB_MBUF 16383);
Route(0, 1, $MAC1, 02:00:00:00:01:01);
Route(1, 0, $MAC0, 02:00:00:00:01:00);
