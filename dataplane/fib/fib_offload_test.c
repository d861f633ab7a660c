// SPDX-License-Identifier: BSD-3-Clause
// What becomes of packets in fib_offload: forwarded by the FIB of the VNF they are for, punted within its
// rate, copied to groups, dropped for a reason that is counted; and what VNFs send.

#include "base/clock.h"
#include "fib/fib_offload_rig.h"

static const uint8_t global[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 1}, other[16] = {0x20, 0x02},
                     local_link[16] = {0xfe, 0x80, [15] = 1};

static void assert_macs(const struct rig_frame *frame, unsigned to_last, unsigned vnf)
{
	const uint8_t to[] = {2, 0, 0, 0, 9, (uint8_t)to_last}, from[] = {2, 0, 0, 0, 2, (uint8_t)vnf};

	assert_memory_equal(frame->bytes, to, 6);
	assert_memory_equal(frame->bytes + 6, from, 6);
}

static void the_same_address_goes_where_its_vnf_says(void **state)
{
	struct task *task = rig_open(state, RIG_PLAIN);
	struct rig_frame one = rig_ipv4(1, HOST_OF_WIRE, 1), two = rig_ipv4(2, HOST_OF_WIRE, 1), got;
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)(got.bytes + 14);

	rig_routes(task);
	rig_inject(state, WIRE0, &one);
	rig_inject(state, WIRE0, &two);
	rig_poll(task, 0);
	assert_true(rig_collect(state, WIRE1, &got));
	assert_macs(&got, 1, 1);
	assert_int_equal(ip->time_to_live, 63);
	assert_true(checksum_ipv4_is_right(got.bytes + 14));
	assert_true(rig_collect(state, WIRE0, &got));
	assert_macs(&got, 2, 2);
	assert_int_equal(got.length, 60);
	assert_int_equal(rig_came(state), 0);
	assert_int_equal(rig_number(task, "fib_offload.vnfs.0.forwarded"), 1);
	assert_int_equal(rig_number(task, "fib_offload.vnfs.1.forwarded"), 1);
	rig_conserves(task);
	task_destroy(task);
}

static void ipv6_follows_its_prefix(void **state)
{
	struct task *task = rig_open(state, RIG_PLAIN);
	struct rig_frame frame = rig_ipv6(1, global), got;

	rig_routes(task);
	rig_inject(state, WIRE0, &frame);
	rig_poll(task, 0);
	assert_true(rig_collect(state, WIRE1, &got));
	assert_macs(&got, 1, 1);
	assert_int_equal(got.bytes[14 + 7], 63);
	frame = rig_ipv6(1, other);
	assert_int_equal(rig_send(state, task, WIRE0, &frame, 0), 0);
	assert_int_equal(rig_number(task, "drops.no_route"), 1);
	rig_conserves(task);
	task_destroy(task);
}

// --- Groups of next hops ---------------------------------------------------------------------------------

// VNF 1: 10.0.0.4 and an IPv6 prefix by a group of two wires.
static struct task *open_group(void **state, const char *text)
{
	struct task *task = rig_open(state, text);

	rig_routes(task);
	rig_do(task, "next_hop_set", "{'vnf': 1, 'hop': 3, 'wire': 'p0', 'mac': '02:00:00:00:09:03'}");
	rig_do(task, "next_hop_set",
	       "{'vnf': 1, 'hop': 4, 'kind': 'group', 'members': [{'hop': 0}, {'hop': 3, 'weight': 1}]}");
	rig_do(task, "route_set", "{'vnf': 1, 'prefix': '10.0.0.4', 'hop': 4}");
	rig_do(task, "route_set", "{'vnf': 1, 'prefix': '2002::/16', 'hop': 4}");
	return task;
}

// A packet of one of 64 flows that the group has: by their source ports.
static struct rig_frame of_flow(unsigned flow, unsigned version)
{
	struct rig_frame frame = version == 4 ? rig_ipv4(1, HOST_OF_WIRE, 4) : rig_ipv6(1, other);

	frame.bytes[version == 4 ? 35 : 55] = (uint8_t)flow;
	return frame;
}

static void a_flow_takes_one_member_of_a_group(void **state)
{
	struct task *task = open_group(state, RIG_PLAIN);

	for (unsigned version = 4; version <= 6; version += 2) {
		unsigned counts[2] = {0};

		for (unsigned flow = 0; flow < 64; flow++) {
			struct rig_frame frame = of_flow(flow, version);
			unsigned where = rig_send(state, task, WIRE0, &frame, 0);

			frame.bytes[version == 4 ? 22 : 21]--; // another TTL: the same flow
			if (version == 4)
				rig_change(&frame, 22, 63);
			frame.bytes[59] ^= 0x55;
			assert_true(where == 100 || where == 1000);
			assert_int_equal(rig_send(state, task, WIRE0, &frame, 0), where);
			counts[where == 100]++;
		}
		assert_true(counts[0] > 16 && counts[1] > 16);
	}
	rig_conserves(task);
	task_destroy(task);
}

// --- A table that VNFs share --------------------------------------------------------------------------------------------

// A packet to VNF 2 that leaves by a wire, to a neighbour and with VNF 2's address as its source.
static void assert_leaves(void **state, struct task *task, struct rig_frame frame, unsigned wire,
                          unsigned to_last)
{
	struct rig_frame got;

	rig_inject(state, WIRE0, &frame);
	rig_poll(task, 0);
	assert_true(rig_collect(state, wire, &got));
	assert_macs(&got, to_last, 2);
	assert_int_equal(rig_came(state), 0);
}

static void a_vnf_without_a_route_has_that_of_another(void **state)
{
	struct task *task = open_group(
	        state, RIG_SETTINGS("", RIG_VNF(1, "p2", "") ", " RIG_VNF(2, "p3", ", 'routes_of': 1")));
	struct rig_frame local = rig_ipv4(2, HOST_OF_WIRE, 2), black = rig_ipv4(2, HOST_OF_WIRE, 3),
	                 none = rig_ipv4(2, HOST_OF_WIRE, 9), not_back = rig_ipv4(1, HOST_OF_WIRE, 7),
	                 grouped = rig_ipv4(2, HOST_OF_WIRE, 4), got;
	const char *source, *wire;
	json_t *answer;

	rig_do(task, "route_set", "{'vnf': 2, 'prefix': '10.0.0.7', 'hop': 0}");
	assert_leaves(state, task, rig_ipv4(2, HOST_OF_WIRE, 1), WIRE0, 2); // its own
	assert_leaves(state, task, rig_ipv6(2, global), WIRE1, 1);
	rig_do(task, "route_set", "{'vnf': 1, 'prefix': '10.0.0.8', 'hop': 0}");
	assert_leaves(state, task, rig_ipv4(2, HOST_OF_WIRE, 8), WIRE1, 1);
	assert_int_equal(rig_send(state, task, WIRE0, &local, 0), 1); // to itself, not to VNF 1
	assert_int_equal(rig_send(state, task, WIRE0, &black, 0), 0);
	assert_int_equal(rig_send(state, task, WIRE0, &none, 0), 0);
	assert_int_equal(rig_send(state, task, WIRE0, &not_back, 0), 0);
	assert_int_equal(rig_number(task, "drops.blackhole"), 1);
	assert_int_equal(rig_number(task, "drops.no_route"), 2);
	rig_inject(state, WIRE0, &grouped);
	rig_poll(task, 0);
	if (rig_collect(state, WIRE0, &got))
		assert_macs(&got, 3, 2);
	else if (rig_collect(state, WIRE1, &got))
		assert_macs(&got, 1, 2);
	else
		fail_msg("no member of the group has it");
	answer = rig_call(task, "lookup", "{'vnf': 2, 'address': '10.0.0.8'}");
	assert_int_equal(json_unpack(answer, "{s:{s:s, s:s}}", "hop", "source", &source, "wire", &wire), 0);
	assert_string_equal(source, "02:00:00:00:02:02");
	assert_string_equal(wire, "p1");
	json_decref(answer);
	assert_int_equal(rig_number(task, "fib_offload.vnfs.1.routes_of"), 1);
	rig_conserves(task);
	task_destroy(task);
}

// The first fragment has ports, the others have not: all of a datagram go by one way.
static void fragments_of_a_datagram_stay_together(void **state)
{
	struct task *task = open_group(state, RIG_PLAIN);
	unsigned first_way = 0;

	for (unsigned flow = 0; flow < 16; flow++) {
		struct rig_frame first = of_flow(flow, 4), last = first;
		unsigned way;

		rig_change(&first, 20, 0x20); // more fragments
		rig_change(&last, 21, 8);
		way = rig_send(state, task, WIRE0, &first, 0);
		first_way = first_way ? first_way : way;
		assert_true(way == 100 || way == 1000);
		assert_int_equal(way, first_way);
		assert_int_equal(rig_send(state, task, WIRE0, &last, 0), way);
	}
	rig_conserves(task);
	task_destroy(task);
}

// --- Wires that are down ---------------------------------------------------------------------------------

// The second wire, and time for a look at each.
static void wire1_is(struct task *task, bool up, uint64_t *now_tsc)
{
	uint16_t port_id = task->ports[WIRE1]->port_id;

	assert_int_equal(up ? rte_eth_dev_set_link_up(port_id) : rte_eth_dev_set_link_down(port_id), 0);
	for (unsigned i = 0; i < 3; i++)
		rig_poll(task, *now_tsc += clock_hz() / 500);
}

static void nothing_is_sent_by_a_wire_that_is_down(void **state)
{
	struct task *task = open_group(state, RIG_PLAIN);
	struct rig_frame four = rig_ipv4(1, HOST_OF_WIRE, 1), six = rig_ipv6(1, global);
	unsigned before[2][64];
	uint64_t now_tsc = 1;

	for (unsigned flow = 0; flow < 128; flow++) {
		struct rig_frame frame = of_flow(flow % 64, flow < 64 ? 4 : 6);

		before[flow / 64][flow % 64] = rig_send(state, task, WIRE0, &frame, now_tsc);
	}
	for (unsigned round = 0; round < 2; round++) {
		wire1_is(task, false, &now_tsc);
		assert_int_equal(rig_send(state, task, WIRE0, &four, now_tsc), 0);
		assert_int_equal(rig_send(state, task, WIRE0, &six, now_tsc), 0);
		assert_int_equal(rig_number(task, "drops.wire_down"), 2 * (round + 1));
		for (unsigned flow = 0; flow < 128; flow++) { // groups have another wire
			struct rig_frame frame = of_flow(flow % 64, flow < 64 ? 4 : 6);

			assert_int_equal(rig_send(state, task, WIRE0, &frame, now_tsc), 1000);
		}
		wire1_is(task, true, &now_tsc);
		assert_int_equal(rig_send(state, task, WIRE0, &four, now_tsc), 100);
		for (unsigned flow = 0; flow < 128; flow++) { // flows return
			struct rig_frame frame = of_flow(flow % 64, flow < 64 ? 4 : 6);

			assert_int_equal(rig_send(state, task, WIRE0, &frame, now_tsc),
			                 before[flow / 64][flow % 64]);
		}
	}
	rig_conserves(task);
	task_destroy(task);
}

static void a_vnf_that_has_misses_has_what_a_wire_cannot_take(void **state)
{
	struct task *task = rig_open(
	        state, RIG_SETTINGS("", RIG_VNF(1, "p2", ", 'on_miss': 'punt'") ", " RIG_VNF(2, "p3", "")));
	struct rig_frame four = rig_ipv4(1, HOST_OF_WIRE, 1), six = rig_ipv6(1, global), got;
	uint64_t now_tsc = 1;

	rig_routes(task);
	wire1_is(task, false, &now_tsc);
	assert_int_equal(rig_send(state, task, WIRE0, &six, now_tsc), 10);
	rig_inject(state, WIRE0, &four);
	rig_poll(task, now_tsc);
	assert_true(rig_collect(state, PORT1, &got));
	assert_memory_equal(got.bytes, four.bytes, four.length); // as it came
	assert_int_equal(rig_number(task, "fib_offload.vnfs.0.punted"), 2);
	assert_int_equal(rig_number(task, "fib_offload.vnfs.0.no_route"), 0);
	wire1_is(task, true, &now_tsc);
	rig_conserves(task);
	task_destroy(task);
}

// --- MTU -------------------------------------------------------------------------------------------------

// Of the second wire; what is longer is the VNF's to answer, within its rate.
static void what_is_too_long_for_its_wire_is_punted_as_it_came(void **state)
{
	struct task *task = open_group(
	        state,
	        RIG_SETTINGS(", 'mtus': [{'wire': 'p1', 'mtu': 100}], 'punt': {'rate_pps': 1, 'burst': 66}",
	                     RIG_VNF(1, "p2", "") ", " RIG_VNF(2, "p3", "")));
	struct rig_frame four = rig_ipv4(1, HOST_OF_WIRE, 1), six = rig_ipv6(1, global), got;
	unsigned counts[3] = {0};

	four.length = six.length = 114;
	rig_change(&four, 17, 100);
	six.bytes[19] = 60;
	assert_int_equal(rig_send(state, task, WIRE0, &four, 0), 100);
	assert_int_equal(rig_send(state, task, WIRE0, &six, 0), 100);
	four.length = six.length = 115;
	rig_change(&four, 17, 101);
	six.bytes[19] = 61;
	assert_int_equal(rig_send(state, task, WIRE0, &six, 0), 10);
	rig_inject(state, WIRE0, &four);
	rig_poll(task, 0);
	assert_true(rig_collect(state, PORT1, &got));
	assert_int_equal(got.length, 115);
	assert_memory_equal(got.bytes, four.bytes, four.length);
	assert_int_equal(rig_number(task, "fib_offload.vnfs.0.too_long"), 2);
	for (unsigned flow = 0; flow < 64; flow++) { // by the wire that a flow of a group takes
		struct rig_frame frame = of_flow(flow, 4);
		unsigned where;

		frame.length = 115;
		rig_change(&frame, 17, 101);
		where = rig_send(state, task, WIRE0, &frame, 0);
		counts[where == 10 ? 0 : where == 1000 ? 1 : 2]++;
	}
	assert_true(counts[0] && counts[1] && !counts[2]);
	assert_int_equal(rig_number(task, "fib_offload.vnfs.0.too_long"), 2 + counts[0]);
	for (unsigned i = 0; i < 70; i++)
		rig_send(state, task, WIRE0, &four, 0);
	assert_int_equal(rig_number(task, "drops.punt_limited"), 6 + counts[0]);
	rig_conserves(task);
	task_destroy(task);
}

// --- Neighbours ------------------------------------------------------------------------------------------

// A station that was not heard for 300 s may be anywhere: by the VNF's own wire, until it is heard again.
static void neighbours_age(void **state)
{
	struct task *task = rig_open(state, RIG_PLAIN);
	struct rig_frame hello = rig_ether(1, HOST_OF_WIRE, RTE_ETHER_TYPE_ARP);
	struct rig_frame answer = rig_ether(HOST_OF_WIRE, 1, RTE_ETHER_TYPE_ARP);
	uint64_t s = clock_hz();

	assert_int_equal(rig_send(state, task, WIRE0, &hello, s), 10);
	assert_int_equal(rig_send(state, task, PORT1, &answer, 300 * s), 1000);
	assert_int_equal(rig_send(state, task, WIRE0, &hello, 300 * s), 10); // it talks: younger
	assert_int_equal(rig_send(state, task, PORT1, &answer, 599 * s), 1000);
	assert_int_equal(rig_send(state, task, PORT1, &answer, 602 * s), 100);
	assert_int_equal(rig_send(state, task, WIRE0, &hello, 602 * s), 10);
	assert_int_equal(rig_send(state, task, PORT1, &answer, 602 * s), 1000);
	rig_conserves(task);
	task_destroy(task);
}

static void every_burst_is_forwarded_in_order(void **state)
{
	struct task *task = rig_open(state, RIG_PLAIN);
	struct rig_frame got;

	rig_routes(task);
	for (unsigned b = 0; b < fixture_burst_count; b++) {
		for (unsigned i = 0; i < fixture_bursts[b]; i++) {
			struct rig_frame frame = rig_ipv4(1 + i % 2, HOST_OF_WIRE, 1);

			frame.bytes[59] = (uint8_t)i;
			rig_inject(state, WIRE0, &frame);
		}
		rig_poll(task, 0);
		for (unsigned i = 0; i < fixture_bursts[b]; i++) {
			assert_true(rig_collect(state, i % 2 ? WIRE0 : WIRE1, &got));
			assert_int_equal(got.bytes[59], i);
		}
		assert_int_equal(rig_came(state), 0);
	}
	rig_conserves(task);
	task_destroy(task);
}

// --- Punts -----------------------------------------------------------------------------------------------

static void control_goes_to_the_vnf(void **state)
{
	struct task *task = rig_open(
	        state, RIG_SETTINGS(", 'punt': {'also': [{'protocol': 'tcp', 'port': 179}, {'protocol': 89}, "
	                            "{'protocol': 'udp', 'port': 2001}]}",
	                            RIG_VNF(1, "p2", ", 'on_miss': 'punt'") ", " RIG_VNF(2, "p3", "")));
	struct rig_frame arp = rig_ether(1, HOST_OF_WIRE, RTE_ETHER_TYPE_ARP);
	struct rig_frame vlan = rig_ether(1, HOST_OF_WIRE, RTE_ETHER_TYPE_VLAN);
	struct rig_frame own = rig_ipv4(1, HOST_OF_WIRE, 2), miss = rig_ipv4(1, HOST_OF_WIRE, 9);
	struct rig_frame last_hop = rig_ipv4(1, HOST_OF_WIRE, 1), ospf = last_hop, bgp = last_hop;
	struct rig_frame options = last_hop, data = last_hop, udp = last_hop,
	                 neighbour = rig_ipv6(1, local_link);
	const struct rig_frame *punted[] = {&arp,  &vlan, &own,     &miss, &last_hop,
	                                    &ospf, &bgp,  &options, &udp,  &neighbour};

	rig_routes(task);
	rig_change(&last_hop, 22, 1);
	rig_change(&ospf, 23, 89);
	bgp.bytes[34] = 0;
	bgp.bytes[35] = 179; // source port: the VNF called
	bgp.bytes[46] = 0x50;
	rig_change(&bgp, 23, IPPROTO_TCP);
	udp.bytes[36] = 2001 >> 8;
	udp.bytes[37] = 2001 & 0xff;
	memset(options.bytes + 34, 1, 4); // no operation
	rig_change(&options, 14, 0x46);
	for (unsigned i = 0; i < RTE_DIM(punted); i++)
		if (rig_send(state, task, WIRE0, punted[i], 0) != 10)
			fail_msg("frame %u is not punted", i);
	assert_int_equal(rig_send(state, task, WIRE0, &data, 0), 100); // none of these
	assert_int_equal(rig_number(task, "fib_offload.vnfs.0.punted"), RTE_DIM(punted));
	assert_int_equal(rig_number(task, "fib_offload.vnfs.0.no_route"), 1);
	rig_conserves(task);
	task_destroy(task);
}

static void punts_are_limited_for_each_vnf(void **state)
{
	struct task *task = rig_open(state, RIG_SETTINGS(", 'punt': {'rate_pps': 10, 'burst': 3}",
	                                                 RIG_VNF(1, "p2", "") ", " RIG_VNF(2, "p3", "")));
	struct rig_frame one = rig_ether(1, HOST_OF_WIRE, RTE_ETHER_TYPE_ARP);
	struct rig_frame two = rig_ether(2, HOST_OF_WIRE, RTE_ETHER_TYPE_ARP);
	struct rig_frame all = rig_ether(GROUP, HOST_OF_WIRE, RTE_ETHER_TYPE_ARP);
	uint64_t tenth = clock_hz() / 10 + 1;

	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(rig_send(state, task, WIRE0, &one, 0), i < 3 ? 10 : 0);
	assert_int_equal(rig_send(state, task, WIRE0, &two, 0), 1);
	assert_int_equal(rig_send(state, task, WIRE0, &all, 0), 1); // not to VNF 1
	assert_int_equal(rig_send(state, task, WIRE0, &one, tenth), 10);
	assert_int_equal(rig_send(state, task, WIRE0, &one, tenth), 0);
	assert_int_equal(rig_number(task, "drops.punt_limited"), 3);
	assert_int_equal(rig_number(task, "fib_offload.vnfs.0.punt_limited"), 4);
	assert_int_equal(rig_number(task, "fib_offload.vnfs.0.punted"), 4);
	rig_conserves(task);
	task_destroy(task);
}

// --- Groups ----------------------------------------------------------------------------------------------

static void groups_are_copied_to_every_vnf_of_the_wire(void **state)
{
	struct task *task = rig_open(
	        state, RIG_SETTINGS("", RIG_VNF(1, "p2", "") ", " RIG_VNF(2, "p3", ", 'wires': ['p0']")));
	struct rig_frame all = rig_ether(GROUP, HOST_OF_WIRE, RTE_ETHER_TYPE_ARP), got;
	struct fixture *f = *state;
	struct rte_mbuf *hoard[FIXTURE_MBUFS];
	unsigned hoarded = 0;

	rig_inject(state, WIRE0, &all);
	rig_poll(task, 0);
	for (unsigned port = PORT1; port <= PORT2; port++) {
		assert_true(rig_collect(state, port, &got));
		assert_memory_equal(got.bytes, all.bytes, all.length);
		assert_int_equal(got.length, all.length);
	}
	assert_int_equal(rig_send(state, task, WIRE1, &all, 0), 10);
	assert_int_equal(rig_number(task, "fib_offload.copies"), 1);
	while (hoarded < FIXTURE_MBUFS - 1)
		assert_non_null(hoard[hoarded++] = rte_pktmbuf_alloc(f->pool));
	assert_int_equal(rig_send(state, task, WIRE0, &all, 0), 1); // no mbuf for the copy
	rte_pktmbuf_free_bulk(hoard, hoarded);
	assert_int_equal(rig_number(task, "fib_offload.copies_lost"), 1);
	rig_conserves(task);
	task_destroy(task);
}

// --- From VNFs -------------------------------------------------------------------------------------------

static void what_a_vnf_sends_leaves_by_the_wire_of_its_neighbour(void **state)
{
	struct task *task = rig_open(
	        state, RIG_SETTINGS("", RIG_VNF(1, "p2", "") ", " RIG_VNF(2, "p3", ", 'out': 'p0'")));
	struct rig_frame hello = rig_ether(1, HOST_OF_WIRE, RTE_ETHER_TYPE_ARP);
	struct rig_frame answer = rig_ether(HOST_OF_WIRE, 1, RTE_ETHER_TYPE_ARP);
	struct rig_frame of_two = rig_ether(HOST_OF_WIRE, 2, RTE_ETHER_TYPE_ARP);
	struct rig_frame to_all = rig_ether(GROUP, 1, RTE_ETHER_TYPE_ARP);
	struct rig_frame false_name = rig_ether(HOST_OF_WIRE, 2, RTE_ETHER_TYPE_ARP);

	rig_routes(task);
	assert_int_equal(rig_send(state, task, PORT1, &answer, 0), 100); // not heard: the last of its wires
	assert_int_equal(rig_send(state, task, WIRE0, &hello, 0), 10);
	assert_int_equal(rig_send(state, task, PORT1, &answer, 0), 1000);
	assert_int_equal(rig_send(state, task, WIRE1, &hello, 0), 10); // it has moved
	assert_int_equal(rig_send(state, task, PORT1, &answer, 0), 100);
	assert_int_equal(rig_send(state, task, PORT2, &of_two, 0), 1000); // VNF 2 has not heard it
	assert_int_equal(rig_send(state, task, PORT1, &to_all, 0), 1101); // and not back
	assert_int_equal(rig_send(state, task, PORT1, &false_name, 0), 0);
	assert_int_equal(rig_number(task, "drops.spoofed"), 1);
	assert_int_equal(rig_number(task, "fib_offload.vnfs.0.sent"), 4);
	rig_conserves(task);
	task_destroy(task);
}

static void a_vnf_reaches_another_as_a_wire_does(void **state)
{
	struct task *task = rig_open(state, RIG_PLAIN);
	struct rig_frame packet = rig_ipv4(2, 1, 1), arp = rig_ether(2, 1, RTE_ETHER_TYPE_ARP);
	struct rig_frame itself = rig_ether(1, 1, RTE_ETHER_TYPE_ARP), got;

	rig_routes(task);
	rig_inject(state, PORT1, &packet);
	rig_poll(task, 0);
	assert_true(rig_collect(state, WIRE0, &got));
	assert_macs(&got, 2, 2);
	assert_int_equal(rig_send(state, task, PORT1, &arp, 0), 1);
	assert_int_equal(rig_send(state, task, PORT1, &itself, 0), 0);
	assert_int_equal(rig_number(task, "drops.unknown_mac"), 1);
	rig_conserves(task);
	task_destroy(task);
}

// What it sends leaves by the wire where its neighbour was heard, in a packet of its own or in one to all.
static void a_vnf_that_is_not_offloaded_has_neighbours(void **state)
{
	struct task *task = rig_open(
	        state, RIG_SETTINGS("", RIG_VNF(1, "p2", ", 'offload': false, 'wires': ['p1']") ", " RIG_VNF(
	                                        2, "p3", ", 'offload': false")));
	struct rig_frame packet = rig_ipv4(2, HOST_OF_WIRE, 1), back = rig_ipv4(HOST_OF_WIRE, 2, 1);
	struct rig_frame all = rig_ether(GROUP, 0xed, RTE_ETHER_TYPE_ARP);
	struct rig_frame answer = rig_ether(0xed, 2, RTE_ETHER_TYPE_ARP),
	                 of_one = rig_ipv4(HOST_OF_WIRE, 1, 1);
	struct rig_frame to_one = rig_ipv4(1, HOST_OF_WIRE, 1);
	struct offload *o = (struct offload *)task;

	assert_int_equal(rig_send(state, task, PORT2, &back, 1), 100);
	assert_int_equal(rig_send(state, task, WIRE0, &packet, 1), 1);
	assert_int_equal(rig_send(state, task, PORT2, &back, 1), 1000);
	assert_int_equal(rig_send(state, task, WIRE1, &packet, 1), 1);
	assert_int_equal(rig_send(state, task, PORT2, &back, 1), 100);
	assert_int_equal(rig_send(state, task, WIRE0, &all, 1), 1);
	assert_int_equal(rig_send(state, task, PORT2, &answer, 1), 1000);
	assert_int_equal(o->neighbour_counts.learned, 2);
	assert_int_equal(rig_send(state, task, WIRE1, &to_one, 1), 10); // one wire: nothing to know
	assert_int_equal(rig_send(state, task, PORT1, &of_one, 1), 100);
	assert_int_equal(o->neighbour_counts.learned, 2);
	rig_conserves(task);
	task_destroy(task);
}

static void a_vnf_that_is_not_offloaded_has_everything(void **state)
{
	struct task *task = rig_open(
	        state, RIG_SETTINGS(", 'punt': {'rate_pps': 1, 'burst': 1}",
	                            RIG_VNF(1, "p2", "") ", " RIG_VNF(2, "p3", ", 'offload': false")));
	struct rig_frame packet = rig_ipv4(2, HOST_OF_WIRE, 1), got;
	struct rig_frame all = rig_ether(GROUP, HOST_OF_WIRE, RTE_ETHER_TYPE_ARP);
	struct rig_frame back = rig_ipv4(HOST_OF_WIRE, 2, 1);

	for (unsigned i = 0; i < 40; i++)
		rig_inject(state, WIRE0, &packet);
	rig_poll(task, 0);
	for (unsigned i = 0; i < 40; i++) {
		assert_true(rig_collect(state, PORT2, &got));
		assert_memory_equal(got.bytes, packet.bytes, packet.length);
	}
	assert_int_equal(rig_send(state, task, WIRE0, &all, 0), 11);
	assert_int_equal(rig_send(state, task, WIRE0, &all, 0), 1);
	assert_int_equal(rig_send(state, task, PORT2, &back, 0), 1000);
	assert_int_equal(((struct vnf *)task)->fast_count, 3);
	assert_int_equal(((struct vnf *)task)->slow_count, 1);
	rig_conserves(task);
	task_destroy(task);
}

// --- Drops -----------------------------------------------------------------------------------------------

static void every_drop_has_its_reason(void **state)
{
	struct task *task =
	        rig_open(state, RIG_SETTINGS("", RIG_VNF(1, "p2", ", 'wires': ['p0']") ", " RIG_VNF(
	                                                 2, "p3", ", 'wires': ['p0'], 'offload': false")));
	struct rig_frame runt = {.length = 13}, nobody = rig_ipv4(7, HOST_OF_WIRE, 1);
	struct rig_frame all = rig_ether(GROUP, HOST_OF_WIRE, RTE_ETHER_TYPE_ARP);
	struct rig_frame route = rig_ipv4(1, HOST_OF_WIRE, 9), hole = rig_ipv4(1, HOST_OF_WIRE, 3);
	struct rig_frame sum = rig_ipv4(1, HOST_OF_WIRE, 1), length = sum, version = sum, header = sum;
	struct rig_frame message = rig_ether(1, HOST_OF_WIRE, FIB_ETHER_TYPE);
	struct rig_frame to_all = rig_ether(GROUP, HOST_OF_WIRE, FIB_ETHER_TYPE);
	struct rig_frame of_two = rig_ether(HOST_OF_WIRE, 2, FIB_ETHER_TYPE);
	struct rig_frame of_one = rig_ether(HOST_OF_WIRE, 1, FIB_ETHER_TYPE), cut = of_one;
	const struct {
		const char *reason;
		unsigned port;
		const struct rig_frame *frame;
	} cases[] = {
	        {"runt", WIRE0, &runt},
	        {"runt", PORT1, &runt},
	        {"unknown_mac", WIRE0, &nobody},
	        {"unknown_mac", WIRE1, &route}, // the VNF is not on this wire
	        {"no_listener", WIRE1, &all},
	        {"no_route", WIRE0, &route},
	        {"blackhole", WIRE0, &hole},
	        {"checksum", WIRE0, &sum},
	        {"length", WIRE0, &length},
	        {"version", WIRE0, &version},
	        {"header_length", WIRE0, &header},
	        {"foreign_message", WIRE0, &message},
	        {"foreign_message", WIRE0, &to_all},
	        {"foreign_message", PORT2, &of_two},
	        {"bad_message", PORT1, &of_one},
	        {"bad_message", PORT1, &cut},
	};

	rig_do(task, "next_hop_set", "{'vnf': 1, 'hop': 2, 'kind': 'blackhole'}");
	rig_do(task, "route_set", "{'vnf': 1, 'prefix': '10.0.0.3', 'hop': 2}");
	sum.bytes[24] ^= 1;
	rig_change(&length, 17, 200);
	rig_change(&version, 14, 0x65);
	rig_change(&header, 14, 0x44);
	cut.length = 59;
	for (unsigned i = 0; i < RTE_DIM(cases); i++) {
		char path[64];
		json_int_t before;

		snprintf(path, sizeof(path), "drops.%s", cases[i].reason);
		before = rig_number(task, path);
		assert_int_equal(rig_send(state, task, cases[i].port, cases[i].frame, 0), 0);
		if (rig_number(task, path) != before + 1)
			fail_msg("case %u is not dropped as %s", i, cases[i].reason);
		rig_conserves(task);
	}
	task_clear(task);
	assert_int_equal(rig_number(task, "drops.unknown_mac"), 0);
	task_destroy(task);
}

static void a_full_port_is_counted(void **state)
{
	struct task *task = rig_open(state, RIG_PLAIN); // rings of 15
	struct rig_frame frame = rig_ipv4(1, HOST_OF_WIRE, 1);

	rig_routes(task);
	for (unsigned i = 0; i < 20; i++) {
		rig_inject(state, WIRE0, &frame);
		rig_poll(task, 0);
	}
	assert_int_equal(rig_number(task, "drops_by_port.p1.tx_full"), 5);
	rig_conserves(task);
	rig_came(state);
	task_destroy(task);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(the_same_address_goes_where_its_vnf_says),
	        TEST(ipv6_follows_its_prefix),
	        TEST(a_flow_takes_one_member_of_a_group),
	        TEST(a_vnf_without_a_route_has_that_of_another),
	        TEST(fragments_of_a_datagram_stay_together),
	        TEST(nothing_is_sent_by_a_wire_that_is_down),
	        TEST(a_vnf_that_has_misses_has_what_a_wire_cannot_take),
	        TEST(what_is_too_long_for_its_wire_is_punted_as_it_came),
	        TEST(neighbours_age),
	        TEST(every_burst_is_forwarded_in_order),
	        TEST(control_goes_to_the_vnf),
	        TEST(punts_are_limited_for_each_vnf),
	        TEST(groups_are_copied_to_every_vnf_of_the_wire),
	        TEST(what_a_vnf_sends_leaves_by_the_wire_of_its_neighbour),
	        TEST(a_vnf_reaches_another_as_a_wire_does),
	        TEST(a_vnf_that_is_not_offloaded_has_everything),
	        TEST(a_vnf_that_is_not_offloaded_has_neighbours),
	        TEST(every_drop_has_its_reason),
	        cmocka_unit_test_setup_teardown(a_full_port_is_counted, fixture_setup_small,
	                                        fixture_teardown),
	};

	if (fixture_eal_init("fib_offload") != 0)
		return 99; // for meson: could not be run
	return cmocka_run_group_tests_name("fib_offload", tests, NULL, NULL);
}
