// SPDX-License-Identifier: BSD-3-Clause
// VLANs in fib_offload: a tag that a frame comes with, and that of its next hop, byte by byte; what goes to a VNF and what it
// sends; and tags that are nobody's. VNF 1 has VLANs 10 and 20, VNF 2 has 20 and 30.

#include "fib/fib_offload_speaker.h"

#define VLANS_VNFS                                                                                           \
	RIG_VNF(1, "p2", ", 'vlans': [10, 20]")                                                              \
	", " RIG_VNF(2, "p3", ", 'vlans': [20, 30]")
#define VLANS(more) RIG_SETTINGS(more, VLANS_VNFS)

static const uint8_t untagged_net[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 1}, tagged_net[16] = {0x20, 0x02},
                     group_net[16] = {0x20, 0x03};

// VNF 1: 10.0.0.1 and 2001:db8::/32 without a tag, 10.0.0.5 and 2002::/16 in VLAN 20.
static struct task *open_vlans(void **state, const char *settings)
{
	struct task *task = rig_open(state, settings);

	rig_routes(task);
	rig_do(task, "next_hop_set",
	       "{'vnf': 1, 'hop': 5, 'wire': 'p1', 'vlan': 20, 'mac': '02:00:00:00:09:05'}");
	rig_do(task, "route_set", "{'vnf': 1, 'prefix': '10.0.0.5', 'hop': 5}");
	rig_do(task, "route_set", "{'vnf': 1, 'prefix': '2002::/16', 'hop': 5}");
	return task;
}

static struct rig_frame with_tag(struct rig_frame frame, unsigned tci)
{
	memmove(frame.bytes + 16, frame.bytes + 12, frame.length - 12u);
	frame.bytes[12] = 0x81;
	frame.bytes[13] = 0;
	frame.bytes[14] = (uint8_t)(tci >> 8);
	frame.bytes[15] = (uint8_t)tci;
	frame.length += 4;
	return frame;
}

static struct rig_frame packet(unsigned version, bool to_tagged)
{
	return version == 6 ? rig_ipv6(1, to_tagged ? tagged_net : untagged_net)
	                    : rig_ipv4(1, HOST_OF_WIRE, to_tagged ? 5 : 1);
}

// A hop further, from VNF 1.
static struct rig_frame forwarded(struct rig_frame frame, unsigned version, unsigned to_last)
{
	rig_mac(frame.bytes + 6, 1);
	rig_mac(frame.bytes, to_last);
	frame.bytes[4] = 9;
	if (version == 4)
		rig_change(&frame, 22, 63);
	else
		frame.bytes[21] = 63;
	return frame;
}

static void assert_came(void **state, unsigned port, const struct rig_frame *want)
{
	struct rig_frame got;

	assert_true(rig_collect(state, port, &got));
	assert_int_equal(got.length, want->length);
	assert_memory_equal(got.bytes, want->bytes, want->length);
	assert_int_equal(rig_came(state), 0);
}

// Every tag that may come, with every one that may leave: also a priority alone, and a priority with a VLAN.
static void a_frame_leaves_with_the_tag_of_its_next_hop(void **state)
{
	static const int tags[] = {-1, 10, 20, 0x6014, 0, 0xe000};
	struct task *task = open_vlans(state, VLANS(""));
	unsigned sent = 0;

	for (unsigned version = 4; version <= 6; version += 2)
		for (unsigned out = 0; out < 2; out++)
			for (unsigned i = 0; i < RTE_DIM(tags); i++, sent++) {
				struct rig_frame in = packet(version, out),
				                 want = forwarded(in, version, out ? 5 : 1);

				in = tags[i] < 0 ? in : with_tag(in, (unsigned)tags[i]);
				want = out ? with_tag(want, 20) : want;
				rig_inject(state, WIRE0, &in);
				rig_poll(task, 0);
				assert_came(state, WIRE1, &want);
			}
	assert_int_equal(rig_number(task, "fib_offload.vnfs.0.forwarded"), sent);
	assert_int_equal(task->counters.tx_packets, sent);
	rig_conserves(task);
	task_destroy(task);
}

// In one burst, of all kinds, with a punt and a drop between.
static void a_burst_of_all_keeps_its_order(void **state)
{
	struct task *task = open_vlans(state, VLANS(""));
	struct rig_frame frames[] = {
	        packet(4, false),
	        with_tag(packet(4, true), 10),
	        with_tag(rig_ipv4(1, HOST_OF_WIRE, 2), 10), // its own address
	        packet(6, true),
	        with_tag(rig_ipv4(1, HOST_OF_WIRE, 3), 20), // a black hole
	        with_tag(packet(6, false), 20),
	        packet(4, true),
	};
	const struct rig_frame plain[] = {packet(4, false), packet(4, true),  frames[0], packet(6, true),
	                                  frames[0],        packet(6, false), frames[6]};
	struct rig_frame want, got;

	for (unsigned i = 0; i < RTE_DIM(frames); i++)
		rig_inject(state, WIRE0, &frames[i]);
	rig_poll(task, 0);
	for (unsigned i = 0; i < RTE_DIM(frames); i++) {
		bool tagged = i == 1 || i == 3 || i == 6;

		if (i == 2 || i == 4)
			continue;
		want = forwarded(plain[i], i == 3 || i == 5 ? 6 : 4, tagged ? 5 : 1);
		want = tagged ? with_tag(want, 20) : want;
		assert_true(rig_collect(state, WIRE1, &got));
		assert_int_equal(got.length, want.length);
		assert_memory_equal(got.bytes, want.bytes, want.length);
	}
	assert_came(state, PORT1, &frames[2]);
	assert_int_equal(rig_number(task, "drops.blackhole"), 1);
	rig_conserves(task);
	task_destroy(task);
}

// As it came: the VNF's kernel has an interface for it.
static void what_is_for_the_vnf_has_its_tag(void **state)
{
	struct task *task = open_vlans(
	        state,
	        RIG_SETTINGS("", RIG_VNF(1, "p2", ", 'vlans': [10, 20], 'on_miss': 'punt'") ", " RIG_VNF(
	                                 2, "p3", "")));
	struct rig_frame last_hop = rig_ipv4(1, HOST_OF_WIRE, 1),
	                 answer = rig_ether(HOST_OF_WIRE, 1, RTE_ETHER_TYPE_ARP);
	struct rig_frame frames[] = {
	        with_tag(rig_ether(1, HOST_OF_WIRE, RTE_ETHER_TYPE_ARP), 10),
	        with_tag(rig_ipv4(1, HOST_OF_WIRE, 2), 10), // its own address
	        with_tag(rig_ipv4(1, HOST_OF_WIRE, 9), 20), // no route
	        with_tag(rig_ipv6(1, group_net), 0x2014),
	        with_tag(with_tag(packet(4, false), 7), 10), // a VLAN of its own in a VLAN
	        with_tag(rig_ether(1, HOST_OF_WIRE, RTE_ETHER_TYPE_ARP), 0x6000),
	        last_hop,
	};

	rig_change(&last_hop, 22, 1);
	frames[6] = with_tag(last_hop, 20);
	for (unsigned i = 0; i < RTE_DIM(frames); i++) {
		rig_inject(state, WIRE0, &frames[i]);
		rig_poll(task, 0);
		assert_came(state, PORT1, &frames[i]);
	}
	assert_int_equal(rig_number(task, "fib_offload.vnfs.0.punted"), RTE_DIM(frames));
	answer = with_tag(answer, 10);
	rig_inject(state, PORT1, &answer);
	rig_poll(task, 0);
	assert_came(state, WIRE0, &answer); // where it was heard
	rig_conserves(task);
	task_destroy(task);
}

// --- Tags that are nobody's ------------------------------------------------------------------------------

static void a_foreign_vlan_is_dropped(void **state)
{
	struct task *task =
	        rig_open(state, RIG_SETTINGS("", RIG_VNF(1, "p2", ", 'vlans': [10, 20]") ", " RIG_VNF(
	                                                 2, "p3", ", 'offload': false")));
	struct rig_frame arp = rig_ether(1, HOST_OF_WIRE, RTE_ETHER_TYPE_ARP),
	                 all = rig_ether(GROUP, HOST_OF_WIRE, RTE_ETHER_TYPE_ARP),
	                 two = rig_ipv4(2, HOST_OF_WIRE, 1),
	                 out = rig_ether(HOST_OF_WIRE, 1, RTE_ETHER_TYPE_ARP),
	                 to_all = rig_ether(GROUP, 1, RTE_ETHER_TYPE_ARP);
	const struct {
		unsigned port;
		struct rig_frame frame;
	} cases[] = {
	        {WIRE0, with_tag(packet(4, false), 30)},
	        {WIRE0, with_tag(packet(6, true), 4095)},
	        {WIRE0, with_tag(arp, 0x6000 | 11)},
	        {WIRE0, with_tag(all, 30)},
	        {WIRE0, with_tag(two, 10)}, // VNF 2 has none
	        {PORT1, with_tag(out, 30)},
	        {PORT1, with_tag(to_all, 30)},
	        {PORT2, with_tag(rig_ether(HOST_OF_WIRE, 2, RTE_ETHER_TYPE_ARP), 10)},
	        {PORT1, with_tag(rig_ipv4(2, 1, 1), 10)}, // to VNF 2, which is not there
	};

	for (unsigned i = 0; i < RTE_DIM(cases); i++) {
		assert_int_equal(rig_send(state, task, cases[i].port, &cases[i].frame, 0), 0);
		assert_int_equal(rig_number(task, "drops.foreign_vlan"), i + 1);
	}
	assert_int_equal(rig_send(state, task, WIRE0, &two, 0), 1);
	two = with_tag(two, 0xa000); // a priority is no VLAN
	assert_int_equal(rig_send(state, task, WIRE0, &two, 0), 1);
	rig_conserves(task);
	task_destroy(task);
}

static void a_group_address_reaches_the_vnfs_of_its_vlan(void **state)
{
	static const struct {
		unsigned vlan, from_wire, from_vnf1; // where it goes: rig_came()
	} cases[] = {{0, 11, 1101}, {10, 10, 1100}, {20, 11, 1101}, {30, 1, 0}, {40, 0, 0}};
	struct task *task = open_vlans(state, VLANS(""));

	for (unsigned i = 0; i < RTE_DIM(cases); i++) {
		struct rig_frame in = rig_ether(GROUP, HOST_OF_WIRE, RTE_ETHER_TYPE_ARP),
		                 out = rig_ether(GROUP, 1, RTE_ETHER_TYPE_ARP);

		in = cases[i].vlan ? with_tag(in, cases[i].vlan) : in;
		out = cases[i].vlan ? with_tag(out, cases[i].vlan) : out;
		assert_int_equal(rig_send(state, task, WIRE0, &in, 0), cases[i].from_wire);
		assert_int_equal(rig_send(state, task, PORT1, &out, 0), cases[i].from_vnf1);
	}
	assert_int_equal(rig_number(task, "drops.foreign_vlan"), 3);
	rig_conserves(task);
	task_destroy(task);
}

// One VNF reaches another in a VLAN of both.
static void vnfs_meet_in_a_vlan(void **state)
{
	struct task *task = open_vlans(state, VLANS(""));
	struct rig_frame frame = rig_ipv4(2, 1, 1), want;

	want = forwarded(frame, 4, 2);
	rig_mac(want.bytes + 6, 2);
	frame = with_tag(frame, 20);
	rig_inject(state, PORT1, &frame);
	rig_poll(task, 0);
	assert_came(state, WIRE0, &want);
	frame = with_tag(rig_ipv4(2, 1, 1), 10);
	assert_int_equal(rig_send(state, task, PORT1, &frame, 0), 0);
	assert_int_equal(rig_number(task, "drops.foreign_vlan"), 1);
	rig_conserves(task);
	task_destroy(task);
}

// --- MTU and groups of next hops -------------------------------------------------------------------------

static void a_tag_is_not_part_of_the_mtu(void **state)
{
	struct task *task = open_vlans(state, VLANS(", 'mtus': [{'wire': 'p1', 'mtu': 100}]"));

	for (unsigned i = 0; i < 16; i++) {
		unsigned version = i & 1 ? 4 : 6, length = i & 8 ? 101 : 100;
		struct rig_frame in = packet(version, i & 4), want;

		in.length = (uint16_t)(14 + length);
		if (version == 4)
			rig_change(&in, 17, (uint8_t)length);
		else
			in.bytes[19] = (uint8_t)(length - 40);
		want = forwarded(in, version, i & 4 ? 5 : 1);
		want = i & 4 ? with_tag(want, 20) : want;
		in = i & 2 ? with_tag(in, 10) : in;
		rig_inject(state, WIRE0, &in);
		rig_poll(task, 0);
		assert_came(state, length == 100 ? WIRE1 : PORT1, length == 100 ? &want : &in);
	}
	assert_int_equal(rig_number(task, "fib_offload.vnfs.0.too_long"), 8);
	assert_int_equal(rig_number(task, "fib_offload.vnfs.0.forwarded"), 8);
	rig_conserves(task);
	task_destroy(task);
}

// Members without a tag, in VLAN 10 and in VLAN 20 of one wire: each flow has one, whatever tag it comes with.
static void members_of_a_group_lie_in_different_vlans(void **state)
{
	struct task *task = open_vlans(state, VLANS(""));

	rig_do(task, "next_hop_set",
	       "{'vnf': 1, 'hop': 6, 'wire': 'p1', 'vlan': 10, 'mac': '02:00:00:00:09:06'}");
	rig_do(task, "next_hop_set",
	       "{'vnf': 1, 'hop': 7, 'kind': 'group', 'members': [{'hop': 0}, {'hop': 5}, {'hop': 6}]}");
	rig_do(task, "route_set", "{'vnf': 1, 'prefix': '10.0.0.7', 'hop': 7}");
	rig_do(task, "route_set", "{'vnf': 1, 'prefix': '2003::/16', 'hop': 7}");
	for (unsigned version = 4; version <= 6; version += 2) {
		unsigned counts[3] = {0};

		for (unsigned flow = 0; flow < 64; flow++) {
			struct rig_frame in =
			        version == 4 ? rig_ipv4(1, HOST_OF_WIRE, 7) : rig_ipv6(1, group_net);
			struct rig_frame got, again;
			unsigned member;

			in.bytes[version == 4 ? 35 : 55] = (uint8_t)flow;
			rig_inject(state, WIRE0, &in);
			rig_poll(task, 0);
			assert_true(rig_collect(state, WIRE1, &got));
			member = got.bytes[5];
			assert_true(member == 1 || member == 5 || member == 6);
			again = forwarded(in, version, member);
			again = member == 1 ? again : with_tag(again, member == 5 ? 20 : 10);
			assert_int_equal(got.length, again.length);
			assert_memory_equal(got.bytes, again.bytes, got.length);
			in = with_tag(in, 20);
			rig_inject(state, WIRE0, &in);
			rig_poll(task, 0);
			assert_came(state, WIRE1, &got);
			counts[member == 1 ? 0 : member - 4]++;
		}
		assert_true(counts[0] > 8 && counts[1] > 8 && counts[2] > 8);
		assert_int_equal(counts[0] + counts[1] + counts[2], 64);
	}
	rig_conserves(task);
	task_destroy(task);
}

// --- Who says so -----------------------------------------------------------------------------------------

static unsigned tell_vlan(void **state, struct task *task, struct speaker *s, unsigned vlan)
{
	const struct fib_hop_record hop = {.op = FIB_REPLACE,
	                                   .kind = FIB_HOP_FORWARD,
	                                   .number = RTE_BE16(1),
	                                   .wire = 1,
	                                   .vlan = rte_cpu_to_be_16((uint16_t)vlan),
	                                   .destination = {2, 0, 0, 0, 9, 8}};

	return tell(state, task, s, FIB_NEXT_HOPS, &hop, 1, sizeof(hop), 0);
}

static void a_vnf_announces_next_hops_in_its_vlans_only(void **state)
{
	static const unsigned foreign[] = {30, 4095, 4096, 4096 + 10, 0x6000 | 10};
	struct task *task = open_vlans(state, VLANS(""));
	struct speaker s = announced(state, task, 1, 0, 77);
	struct rig_frame frame = rig_ipv4(1, HOST_OF_WIRE, 8), want = with_tag(forwarded(frame, 4, 8), 10);
	json_t *answer;

	assert_int_equal(tell_vlan(state, task, &s, 10), FIB_OK);
	assert_int_equal(tell_route(state, task, &s, FIB_ADD, 8, 1, 0), FIB_OK);
	rig_inject(state, WIRE0, &frame);
	rig_poll(task, 0);
	assert_came(state, WIRE1, &want);
	for (unsigned i = 0; i < RTE_DIM(foreign); i++) {
		struct speaker other = announced(state, task, 1, 0, 78 + i);

		assert_int_equal(tell_vlan(state, task, &other, foreign[i]), FIB_MALFORMED);
	}
	answer = rig_call(task, "lookup", "{'vnf': 1, 'address': '10.0.0.5'}");
	assert_int_equal(fixture_number(answer, "hop.vlan"), 20);
	json_decref(answer);
	assert_null(rig_call(task, "next_hop_set",
	                     "{'vnf': 1, 'hop': 5, 'wire': 'p1', 'vlan': 30, 'mac': '02:00:00:00:09:05'}"));
	rig_conserves(task);
	task_destroy(task);
}

// The kernel of a VNF gives a packet socket what comes with a tag, too.
static void a_message_with_a_tag_is_none(void **state)
{
	struct task *task = open_vlans(state, VLANS(""));
	const unsigned tags[] = {10, 0};

	for (unsigned i = 0; i < RTE_DIM(tags); i++) {
		struct rig_frame to = with_tag(rig_ether(1, HOST_OF_WIRE, FIB_ETHER_TYPE), tags[i]);
		struct rig_frame all = with_tag(rig_ether(GROUP, HOST_OF_WIRE, FIB_ETHER_TYPE), tags[i]);
		struct rig_frame from = with_tag(rig_ether(GROUP, 1, FIB_ETHER_TYPE), tags[i]);

		assert_int_equal(rig_send(state, task, WIRE0, &to, 0), 0);
		assert_int_equal(rig_send(state, task, WIRE0, &all, 0), 0);
		assert_int_equal(rig_send(state, task, PORT1, &from, 0), 0);
	}
	assert_int_equal(rig_number(task, "drops.foreign_message"), 4);
	assert_int_equal(rig_number(task, "drops.bad_message"), 2);
	rig_conserves(task);
	task_destroy(task);
}

// Next hops outlive settings: a VLAN that was taken away is used no more.
static void a_vlan_that_is_taken_away_is_foreign(void **state)
{
	static const char *const less[] = {
	        RIG_SETTINGS("", RIG_VNF(1, "p2", ", 'vlans': [10]") ", " RIG_VNF(2, "p3", "")), RIG_PLAIN};
	struct task *task = open_vlans(state, VLANS(""));

	for (unsigned i = 0; i < RTE_DIM(less); i++) {
		struct task *next = rig_open(state, less[i]);
		struct rig_frame four = packet(4, true), six = packet(6, true), plain = packet(4, false);

		task_destroy(task);
		task = next;
		assert_int_equal(rig_send(state, task, WIRE0, &four, 0), 0);
		assert_int_equal(rig_send(state, task, WIRE0, &six, 0), 0);
		assert_int_equal(rig_number(task, "drops.foreign_vlan"), 2);
		assert_int_equal(rig_send(state, task, WIRE0, &plain, 0), 100);
		rig_conserves(task);
	}
	task_destroy(task);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(a_frame_leaves_with_the_tag_of_its_next_hop),
	        TEST(a_burst_of_all_keeps_its_order),
	        TEST(what_is_for_the_vnf_has_its_tag),
	        TEST(a_foreign_vlan_is_dropped),
	        TEST(a_group_address_reaches_the_vnfs_of_its_vlan),
	        TEST(vnfs_meet_in_a_vlan),
	        TEST(a_tag_is_not_part_of_the_mtu),
	        TEST(members_of_a_group_lie_in_different_vlans),
	        TEST(a_vnf_announces_next_hops_in_its_vlans_only),
	        TEST(a_message_with_a_tag_is_none),
	        TEST(a_vlan_that_is_taken_away_is_foreign),
	};

	if (fixture_eal_init("fib_offload_vlan") != 0)
		return 99; // for meson: could not be run
	return cmocka_run_group_tests_name("fib_offload_vlan", tests, NULL, NULL);
}
