// SPDX-License-Identifier: BSD-3-Clause
// The client against the forwarder's side: what was announced is what lookups find, in whatever order frames
// go, and each refusal is told once.
#include "fib/client/fib_client_rig.h"

static void a_good_link(void **state)
{
	say_hop(1, 0);
	for (unsigned i = 0; i < ROUTES; i++)
		say_route(FIB_ADD, i, 1);
	assert_int_equal(fib_client_end_of_rib(rig.client), 0);
	settle();
	for (unsigned i = 0; i < ROUTES; i++)
		assert_int_equal(port_to(i), 1);
	assert_int_equal(status().retransmitted, 0);
	assert_int_equal(status().applied, ROUTES + 1);
	assert_int_equal(status().routes, ROUTES);
	assert_int_equal(status().quota, 2 * ROUTES);
	assert_true(rig.session.messages < ROUTES); // many in a message
	assert_int_equal(rig.session.records, ROUTES + 1);
}

// The last word on each route holds: updates are applied once and in their order.
static void updates_on(unsigned loss, unsigned repeat, unsigned delay_ns)
{
	static uint8_t last[ROUTES];

	memset(last, 0, sizeof(last));
	rig.loss = loss;
	rig.repeat = repeat;
	rig.delay_ns = delay_ns;
	for (uint16_t number = 1; number <= 4; number++)
		say_hop(number, (uint8_t)(number - 1));
	for (unsigned n = 0; n < 4 * ROUTES; n++) {
		unsigned i = draw(ROUTES);

		if (last[i] && draw(3) == 0) {
			say_route(FIB_DELETE, i, 0);
			last[i] = 0;
		} else {
			uint8_t hop = (uint8_t)(1 + draw(4));

			say_route(last[i] ? FIB_REPLACE : FIB_ADD, i, hop);
			last[i] = hop;
		}
	}
	settle();
	for (unsigned i = 0; i < ROUTES; i++)
		assert_int_equal(port_to(i), last[i]);
	assert_int_equal(status().refused, 0);
	assert_int_equal(rig.lost, 0);
	assert_int_equal(rig.session.records, 4 * ROUTES + 4);
	assert_int_equal(status().applied, 4 * ROUTES + 4);
}

static void a_link_that_loses(void **state)
{
	updates_on(10, 0, 0);
	assert_true(status().retransmitted > 0);
}

static void a_link_that_repeats(void **state)
{
	updates_on(0, 30, 0);
}

static void a_link_that_reorders(void **state)
{
	updates_on(0, 0, 5 * TICK_NS);
	assert_true(rig.session.codes[FIB_SEQUENCE] > 0);
}

static void a_bad_link(void **state)
{
	updates_on(20, 20, 5 * TICK_NS);
}

// Every 50th update fails: these alone are refused, each is told once, and the order of all others is kept.
static void refusals_keep_the_order(void **state)
{
	enum { EACH = 50 };

	rig.loss = 5;
	rig.repeat = 5;
	rig.delay_ns = 2 * TICK_NS;
	say_hop(1, 0);
	say_hop(2, 1);
	for (unsigned i = 0; i < ROUTES; i++) {
		say_route(FIB_ADD, i, 1);
		if (i % EACH == 0)
			say_route(FIB_ADD, i, 2); // is there
		if (i % EACH == 1)
			say_route(FIB_REPLACE, i, 2);
		if (i % EACH == 2)
			say_route(FIB_REPLACE, i, 3); // no such hop
		if (i % EACH == 3)
			say_route(FIB_DELETE, i, 0);
	}
	settle();
	for (unsigned i = 0; i < ROUTES; i++)
		assert_int_equal(port_to(i), i % EACH == 1 ? 2 : i % EACH == 3 ? 0 : 1);
	assert_int_equal(rig.refused[FIB_EXISTS], ROUTES / EACH);
	assert_int_equal(rig.refused[FIB_NO_NEXT_HOP], ROUTES / EACH);
	assert_int_equal(status().refused, 2 * ROUTES / EACH);
	assert_int_equal(rig.last.type, FIB_ROUTES);
	assert_int_equal(rig.last.op, FIB_REPLACE);
	assert_int_equal(rig.last.route.hop, 3);
	assert_int_equal(rig.last.route.length, 128); // route_of(): every eighth is of IPv6
	assert_int_equal(rig.last.route.address[3], (uint8_t)(ROUTES - EACH + 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(a_good_link),          TEST(a_link_that_loses), TEST(a_link_that_repeats),
	        TEST(a_link_that_reorders), TEST(a_bad_link),        TEST(refusals_keep_the_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
