// SPDX-License-Identifier: BSD-3-Clause
// Messages made by hand: what is in them. fib_session_order_test.c has their order, sessions and time;
// client/fib_client_test.c a client at the other end of a link that loses and reorders.
#include <stdio.h>

#include "fib/fib_session_rig.h"

static void routes_are_applied(void **state)
{
	struct fib_ack *ack;

	hello(FIRST);
	message(FIB_NEXT_HOPS, 0);
	add_hop(1, FIB_HOP_FORWARD)->wire = 1;
	memcpy(add_hop(2, FIB_HOP_BLACKHOLE)->source, gateway, 6); // means nothing there
	answered(FIB_OK, 2, 1);
	message(FIB_ROUTES, 4);
	add_route(FIB_ADD, "10.0.0.0/8", 1);
	add_route(FIB_ADD, "10.0.0.1/32", 2);
	answered(FIB_OK, 2, 1);
	message(FIB_ROUTES, 6);
	add_route(FIB_REPLACE, "2001:db8::/32", 1);
	ack = sent();
	assert_int_equal(rte_be_to_cpu_64(ack->routes), 3);
	assert_int_equal(rte_be_to_cpu_64(ack->quota), 4);
	assert_int_equal(rte_be_to_cpu_16(ack->window), FIB_WINDOW);
	assert_int_equal(port_to("10.1.1.1"), 6);
	assert_int_equal(port_to("2001:db8::1"), 6);
	assert_int_equal(rig.s.records, 5);
	assert_int_equal(rig.s.messages, 4);
}

static void the_source_is_the_vnfs(void **state)
{
	const uint8_t address[16] = {10};
	struct fib_hop_record *record;

	hello(FIRST);
	message(FIB_NEXT_HOPS, 0);
	record = add_hop(1, FIB_HOP_FORWARD);
	memcpy(record->source, vnf_mac, 6);
	answered(FIB_OK, 1, 1);
	route_said(FIB_ADD, "10.0.0.0/32", 1, FIB_OK);
	assert_memory_equal(find(rig.s.fib, VNF, address, 4)->macs, gateway, 6);
	assert_memory_equal(find(rig.s.fib, VNF, address, 4)->macs + 6, vnf_mac, 6);
	message(FIB_NEXT_HOPS, 0);
	memcpy(add_hop(1, FIB_HOP_FORWARD)->source, gateway, 6);
	answered(FIB_MALFORMED, 0, FIB_WINDOW);
}

static void every_code_of_routes(void **state)
{
	hello(FIRST);
	hop_said(1);
	route_said(FIB_ADD, "10.0.0.0/8", 1, FIB_OK);
	route_said(FIB_ADD, "10.0.0.0/8", 1, FIB_EXISTS);
	route_said(FIB_REPLACE, "10.0.0.0/8", 2, FIB_NO_NEXT_HOP);
	route_said(FIB_DELETE, "11.0.0.0/8", 1, FIB_ABSENT);
	route_said(FIB_ADD, "11.0.0.0/8", 1, FIB_OK);
	route_said(FIB_ADD, "12.0.0.0/8", 1, FIB_OK);
	route_said(FIB_ADD, "13.0.0.0/8", 1, FIB_OK);
	route_said(FIB_ADD, "14.0.0.0/8", 1, FIB_QUOTA);
	route_said(FIB_DELETE, "13.0.0.0/8", 9999, FIB_OK); // a hop means nothing there
	for (unsigned code = FIB_EXISTS; code <= FIB_ABSENT; code++)
		assert_int_equal(rig.s.codes[code], 1);
	assert_int_equal(rig.s.codes[FIB_QUOTA], 1);
	assert_int_equal(rig.s.codes[FIB_NO_NEXT_HOP], 1);
}

static void a_full_table(void **state)
{
	unsigned said = 0;
	char text[32];

	vnf_of(rig.s.fib, VNF, 1000000, 2);
	hello(FIRST);
	hop_said(1);
	do {
		message(FIB_ROUTES, 4);
		snprintf(text, sizeof(text), "10.1.%u.%u/32", said >> 8, said & 255);
		add_route(FIB_ADD, text, 1);
		said++;
	} while (sent()->code == FIB_OK && said < 4000);
	assert_int_equal(rig.s.codes[FIB_FULL], 1);
	assert_true(said > 1000);
	assert_int_equal(stats_of(rig.s.fib, VNF).routes4, said - 1);
}

static void every_code_of_hops(void **state)
{
	hello(FIRST);
	hop_said(1);
	route_said(FIB_ADD, "10.0.0.0/8", 1, FIB_OK);
	message(FIB_NEXT_HOPS, 0);
	add_hop(1, 0)->op = FIB_DELETE;
	answered(FIB_BUSY_HOP, 0, FIB_WINDOW);
	message(FIB_NEXT_HOPS, 0);
	add_hop(2, 0)->op = FIB_DELETE;
	answered(FIB_ABSENT, 0, FIB_WINDOW);
	hop_said(2);
	message(FIB_NEXT_HOPS, 0);
	add_hop(3, FIB_HOP_LOCAL);
	answered(FIB_QUOTA, 0, FIB_WINDOW);
	message(FIB_NEXT_HOPS, 0);
	add_hop(2, 0)->op = FIB_DELETE;
	answered(FIB_OK, 1, 1);
}

static void malformed_routes(void **state)
{
	static const struct {
		const char *text;
		uint8_t op, length;
	} records[] = {
	        {"10.0.0.0/8", 0, 8},
	        {"10.0.0.0/8", 4, 8},
	        {"10.0.0.0/8", FIB_ADD, 33},
	        {"10.0.0.1/32", FIB_ADD, 31},
	        {"10.0.0.1/32", FIB_DELETE, 8},
	        {"2001:db8::/32", FIB_ADD, 129},
	        {"2001:db8::1/128", FIB_ADD, 127},
	        {"10.0.0.0/8", FIB_ADD, 255},
	};

	hello(FIRST);
	hop_said(1);
	for (unsigned i = 0; i < RTE_DIM(records); i++) {
		bool six = strchr(records[i].text, ':');

		message(FIB_ROUTES, six ? 6 : 4);
		add_route(FIB_REPLACE, six ? "::/0" : "0.0.0.0/0", 1); // the one before it is applied
		add_route(records[i].op, records[i].text, 1);
		rig.frame[rig.length - (six ? 20 : 8) + 1] = records[i].length;
		add_route(FIB_REPLACE, six ? "1::/16" : "1.0.0.0/8", 1); // the one behind it is not
		answered(FIB_MALFORMED, 1, FIB_WINDOW);
	}
	assert_int_equal(stats_of(rig.s.fib, VNF).routes4 + stats_of(rig.s.fib, VNF).routes6, 2);
	assert_int_equal(rig.s.codes[FIB_MALFORMED], RTE_DIM(records));
}

static void malformed_hops(void **state)
{
	hello(FIRST);
	for (unsigned what = 0; what < 9; what++) {
		struct fib_hop_record *record;

		message(FIB_NEXT_HOPS, 0);
		record = add_hop(1, FIB_HOP_FORWARD);
		switch (what) {
		case 0:
			record->op = FIB_ADD;
			break;
		case 1:
			record->kind = FIB_HOP_NONE;
			break;
		case 2:
			record->kind = FIB_HOP_BLACKHOLE + 1;
			break;
		case 3:
			record->wire = 2;
			break;
		case 4:
			record->pad = 1;
			break;
		case 5:
			record->destination[0] |= 1; // a group
			break;
		case 6:
			memset(record->destination, 0, 6);
			break;
		case 7:
			record->number = rte_cpu_to_be_16(4096);
			break;
		default:
			record->op = 0;
		}
		answered(FIB_MALFORMED, 0, FIB_WINDOW);
	}
	assert_int_equal(stats_of(rig.s.fib, VNF).hops, 0);
}

// A group of these next hops, as it is written.
static struct fib_group_record *add_group(uint16_t number, uint16_t first, uint16_t second)
{
	struct fib_group_record *record = record_room(sizeof(*record));

	record->op = FIB_REPLACE;
	record->count = 2;
	record->number = rte_cpu_to_be_16(number);
	record->members[0].number = rte_cpu_to_be_16(first);
	record->members[1].number = rte_cpu_to_be_16(second);
	record->members[0].weight = record->members[1].weight = 1;
	return record;
}

static void groups(void **state)
{
	const uint8_t address[16] = {10};
	bool seen[8] = {false};

	vnf_of(rig.s.fib, VNF, 4, 4);
	hello(FIRST);
	message(FIB_NEXT_HOPS, 0);
	add_hop(1, FIB_HOP_FORWARD);
	add_hop(2, FIB_HOP_FORWARD)->wire = 1;
	answered(FIB_OK, 2, 1);
	message(FIB_NEXT_HOP_GROUPS, 0);
	add_group(3, 1, 2);
	answered(FIB_OK, 1, 1);
	route_said(FIB_ADD, "10.0.0.0/8", 3, FIB_OK);
	for (uint32_t flow = 0; flow < 64; flow++)
		seen[fib_hop_of_flow(rig.s.fib, find(rig.s.fib, VNF, address, 4), flow, 0)->port] = true;
	assert_true(seen[5] && seen[6]);
	message(FIB_NEXT_HOP_GROUPS, 0);
	add_group(3, 2, 9);
	answered(FIB_NO_NEXT_HOP, 0, FIB_WINDOW);
	message(FIB_NEXT_HOP_GROUPS, 0);
	add_group(1, 2, 2)->count = 1; // a member itself, and what is behind the members is not 0
	answered(FIB_MALFORMED, 0, FIB_WINDOW);
	message(FIB_NEXT_HOP_GROUPS, 0);
	memset(&add_group(1, 2, 2)->members[1], 0, 4);
	((struct fib_group_record *)(header() + 1))->count = 1;
	answered(FIB_BUSY_HOP, 0, FIB_WINDOW);
	message(FIB_NEXT_HOPS, 0);
	add_hop(1, 0)->op = FIB_DELETE;
	answered(FIB_BUSY_HOP, 0, FIB_WINDOW);
	route_said(FIB_DELETE, "10.0.0.0/8", 0, FIB_OK);
	message(FIB_NEXT_HOPS, 0);
	add_hop(3, 0)->op = FIB_DELETE;
	add_hop(1, 0)->op = FIB_DELETE;
	answered(FIB_OK, 2, 1);
}

static void malformed_groups(void **state)
{
	vnf_of(rig.s.fib, VNF, 4, 4);
	hello(FIRST);
	hop_said(1);
	hop_said(2);
	message(FIB_NEXT_HOP_GROUPS, 0);
	add_group(3, 1, 2);
	answered(FIB_OK, 1, 1);
	for (unsigned what = 0; what < 9; what++) {
		struct fib_group_record *record;

		message(FIB_NEXT_HOP_GROUPS, 0);
		record = add_group(4, what == 0 ? 2 : what == 1 ? 3 : 1, 2); // named twice; a group
		if (what == 2)
			record->op = FIB_DELETE;
		else if (what == 3)
			record->count = 17;
		else if (what == 4)
			record->count = 3;
		else if (what == 5)
			record->members[1].weight = 0;
		else if (what == 6)
			record->members[0].pad = 1;
		else if (what == 7)
			record->members[15].weight = 1;
		else if (what == 8)
			record->number = rte_cpu_to_be_16(4096);
		// A count of 3 names next hop 0, which is not there.
		answered(what == 4 ? FIB_NO_NEXT_HOP : FIB_MALFORMED, 0, FIB_WINDOW);
	}
	assert_int_equal(stats_of(rig.s.fib, VNF).hops, 3);
}

static void malformed_messages(void **state)
{
	static const struct {
		uint8_t type;
		uint16_t reserved, count;
	} heads[] = {
	        {FIB_ROUTES, 0, 0},
	        {FIB_ROUTES, 5, 1},
	        {FIB_ROUTES, 4, 65535},
	        {FIB_ROUTES, 4, 1000},
	        {FIB_NEXT_HOPS, 4, 0},
	        {FIB_NEXT_HOPS, 0, 1000},
	        {FIB_FLUSH, 1, 0},
	        {FIB_FLUSH, 0, 1},
	        {FIB_END_OF_RIB, 0, 1},
	        {FIB_KEEPALIVE, 1, 0},
	        {0, 0, 0},
	        {8, 0, 0},
	        {FIB_NEXT_HOP_GROUPS, 4, 0},
	        {FIB_NEXT_HOP_GROUPS, 0, 22},
	        {0x7f, 0, 0},
	};

	hello(FIRST);
	for (unsigned i = 0; i < RTE_DIM(heads); i++) {
		message(heads[i].type, heads[i].reserved);
		header()->count = rte_cpu_to_be_16(heads[i].count);
		answered(FIB_MALFORMED, 0, FIB_WINDOW);
	}
}

static void no_messages(void **state)
{
	struct fib_session before;

	hello(FIRST);
	before = rig.s;
	for (unsigned what = 0; what < 5; what++) {
		message(FIB_KEEPALIVE, 0);
		rig.length = 60;
		if (what == 0)
			rig.length = 29;
		else if (what == 1)
			rig.frame[12] = 8;
		else if (what == 2)
			header()->magic = 0;
		else if (what == 3)
			header()->type |= FIB_ACK;
		else
			rig.length = 0;
		assert_int_equal(fib_session_handle(&rig.s, rig.frame, rig.length, rig.now), 0);
	}
	assert_int_equal(rig.s.malformed, 5);
	assert_int_equal(rig.s.messages, before.messages);
	assert_int_equal(rig.s.expected, before.expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(routes_are_applied),   TEST(the_source_is_the_vnfs),
	        TEST(every_code_of_routes), TEST(a_full_table),
	        TEST(every_code_of_hops),   TEST(malformed_routes),
	        TEST(malformed_hops),       TEST(groups),
	        TEST(malformed_groups),     TEST(malformed_messages),
	        TEST(no_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
