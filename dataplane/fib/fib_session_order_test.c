// SPDX-License-Identifier: BSD-3-Clause
// Messages made by hand: sequence numbers, sessions, graceful restart, time.
#include "fib/fib_session_rig.h"

// --- Sessions and sequence ------------------------------------------------------------------------------

static void sessions_begin_with_hello(void **state)
{
	rig.number = FIRST;
	rig.sequence = 1;
	message(FIB_KEEPALIVE, 0);
	answered(FIB_NO_SESSION, 0, 0);
	message(FIB_HELLO, 0);
	header()->session = 0;
	answered(FIB_MALFORMED, 0, 0);
	message(FIB_HELLO, 0);
	header()->sequence = rte_cpu_to_be_32(2);
	assert_int_equal(sent()->code, FIB_MALFORMED);
	hello(FIRST);
	message(FIB_KEEPALIVE, 0);
	header()->version = 1;
	assert_int_equal(sent()->code, FIB_VERSION);
	message(FIB_KEEPALIVE, 0);
	header()->session = 0;
	assert_int_equal(sent()->code, FIB_NO_SESSION);
	rig.frame[0] = 1; // sent to a group: the answer comes from a station
	message(FIB_KEEPALIVE, 0);
	memset(rig.frame, 0xff, 6);
	sent();
	assert_false(rig.frame[6] & 1);
}

static void repeated_messages(void **state)
{
	uint32_t failed;

	hello(FIRST);
	hop_said(1);
	route_said(FIB_ADD, "10.0.0.0/8", 1, FIB_OK);
	rig.sequence--;
	message(FIB_ROUTES, 4);
	add_route(FIB_ADD, "10.0.0.0/8", 1);
	answered(FIB_OK, 0 + 1, 1); // not applied again: it would be FIB_EXISTS
	failed = rig.sequence;
	route_said(FIB_ADD, "10.0.0.0/8", 1, FIB_EXISTS);
	for (unsigned behind = 1; behind < FIB_WINDOW; behind++) { // what was under way behind it
		rig.sequence = failed + behind;
		message(FIB_ROUTES, 4);
		add_route(FIB_DELETE, "10.0.0.0/8", 1);
		answered(FIB_SEQUENCE, 0, (int)(FIB_WINDOW - behind));
	}
	rig.sequence = failed;
	message(FIB_ROUTES, 4);
	answered(FIB_EXISTS, 0, FIB_WINDOW);
	assert_int_equal(port_to("10.1.1.1"), 5);
	rig.sequence = failed - 1; // its answer may have got lost
	message(FIB_KEEPALIVE, 0);
	answered(FIB_OK, 1, FIB_WINDOW + 1);
	rig.sequence -= FIB_ANSWERS + 1; // too long ago
	message(FIB_KEEPALIVE, 0);
	answered(FIB_SEQUENCE, 0, FIB_ANSWERS + 1);
	rig.sequence = 1;
	message(FIB_HELLO, 0);
	assert_int_equal(sent()->code, FIB_OK);
	assert_int_equal(port_to("10.1.1.1"), 5);
	assert_int_equal(stats_of(rig.s.fib, VNF).stale, 0);
}

static void out_of_order(void **state)
{
	hello(FIRST);
	rig.sequence++;
	message(FIB_NEXT_HOPS, 0);
	add_hop(1, FIB_HOP_LOCAL);
	answered(FIB_SEQUENCE, 0, -1);
	assert_int_equal(stats_of(rig.s.fib, VNF).hops, 0);
	hop_said(1);
	assert_int_equal(stats_of(rig.s.fib, VNF).hops, 1);
}

static void sequence_wraps_around(void **state)
{
	hello(FIRST);
	rig.s.expected = rig.sequence = UINT32_MAX - 1;
	for (unsigned i = 0; i < 4; i++) {
		message(FIB_KEEPALIVE, 0);
		answered(FIB_OK, 0, 1);
	}
	assert_int_equal(rig.s.expected, 2);
	rig.sequence = UINT32_MAX;
	message(FIB_KEEPALIVE, 0);
	answered(FIB_OK, 0, 3);
}

static void busy(void **state)
{
	hello(FIRST);
	assert_true(fib_trylock(rig.s.fib));
	message(FIB_NEXT_HOPS, 0);
	add_hop(1, FIB_HOP_FORWARD);
	answered(FIB_BUSY, 0, 0);
	rig.number++;
	rig.sequence = 1;
	message(FIB_HELLO, 0);
	answered(FIB_BUSY, 0, 0);
	rig.number--;
	rig.sequence = 2;
	fib_unlock(rig.s.fib);
	hop_said(1);
}

// Dead entries that the sweep has not taken out yet.
static void busy_until_swept(void **state)
{
	static const char *const texts[] = {"10.0.0.0/32", "10.0.0.1/32", "10.0.0.2/32", "10.0.0.3/32",
	                                    "10.0.1.0/32", "10.0.1.1/32", "10.0.1.2/32", "10.0.1.3/32"};

	hello(FIRST);
	for (unsigned i = 0; i < 8; i++) {
		if (i % 4 == 0) {
			message(FIB_FLUSH, 0);
			answered(FIB_OK, 0, 1);
			hop_said(1);
		}
		route_said(FIB_ADD, texts[i], 1, FIB_OK);
	}
	message(FIB_FLUSH, 0);
	answered(FIB_OK, 0, 1);
	hop_said(1);
	message(FIB_ROUTES, 4);
	add_route(FIB_ADD, "10.0.0.0/32", 1);
	add_route(FIB_ADD, "10.0.2.0/32", 1);
	answered(FIB_BUSY, 1, FIB_WINDOW);
	assert_int_equal(sweep_all(rig.s.fib), 7);
	route_said(FIB_ADD, "10.0.2.0/32", 1, FIB_OK);
	assert_int_equal(stats_of(rig.s.fib, VNF).routes4, 2);
}

// --- Graceful restart, time -----------------------------------------------------------------------------

static void graceful_restart(void **state)
{
	hello(FIRST);
	hop_said(1);
	route_said(FIB_ADD, "10.0.0.1/32", 1, FIB_OK);
	route_said(FIB_ADD, "10.0.0.2/32", 1, FIB_OK);
	hello(FIRST + 1);
	assert_int_equal(stats_of(rig.s.fib, VNF).stale, 2);
	assert_int_equal(port_to("10.0.0.1"), 5);
	route_said(FIB_ADD, "10.0.0.1/32", 1, FIB_NO_NEXT_HOP); // hops of older sessions cannot be named
	hop_said(1);
	route_said(FIB_ADD, "10.0.0.1/32", 1, FIB_OK);
	message(FIB_END_OF_RIB, 0);
	answered(FIB_OK, 0, 1);
	assert_int_equal(port_to("10.0.0.1"), 5);
	assert_int_equal(port_to("10.0.0.2"), 0);
	rig.number = FIRST;
	message(FIB_KEEPALIVE, 0);
	assert_int_equal(sent()->code, FIB_NO_SESSION);
}

static void silence(void **state)
{
	hello(FIRST);
	hop_said(1);
	route_said(FIB_ADD, "10.0.0.1/32", 1, FIB_OK);
	fib_session_tick(&rig.s, true, rig.now + HOLD);
	assert_int_equal(rig.s.state, FIB_SESSION_UP);
	fib_session_tick(&rig.s, true, rig.now + HOLD + 1);
	assert_int_equal(rig.s.state, FIB_SESSION_STALE);
	rig.now += HOLD + 2;
	message(FIB_KEEPALIVE, 0); // it was silent, not gone
	answered(FIB_OK, 0, 1);
	assert_int_equal(rig.s.state, FIB_SESSION_UP);
	fib_session_tick(&rig.s, false, rig.now);
	assert_int_equal(rig.s.state, FIB_SESSION_STALE);
	assert_int_equal(rig.s.lost_peers, 2);
	fib_session_tick(&rig.s, false, rig.now + GRACE);
	assert_int_equal(port_to("10.0.0.1"), 5);
	assert_true(fib_trylock(rig.s.fib));
	fib_session_tick(&rig.s, false, rig.now + GRACE + 1); // somebody has the lock: next time
	assert_int_equal(port_to("10.0.0.1"), 5);
	fib_unlock(rig.s.fib);
	fib_session_tick(&rig.s, false, rig.now + GRACE + 2);
	assert_int_equal(port_to("10.0.0.1"), 0);
	assert_int_equal(rig.s.state, FIB_SESSION_NONE);
	assert_int_equal(rig.s.flushed, 1);
	message(FIB_KEEPALIVE, 0);
	assert_int_equal(sent()->code, FIB_NO_SESSION);
	hello(FIRST); // the number is free again
}

// So long that its routes would be gone without a word from it.
static void keep_alive(uint64_t cycles)
{
	for (uint64_t at = 0; at < cycles; at += HOLD) {
		rig.now += HOLD;
		message(FIB_KEEPALIVE, 0);
		answered(FIB_OK, 0, 1);
		fib_session_tick(&rig.s, true, rig.now);
	}
}

// A silence that is over, or a first HELLO, long before a restart takes nothing from its grace period.
static void a_restart_has_all_of_its_grace(void **state)
{
	for (unsigned silent = 0; silent < 2; silent++) {
		hello(FIRST + silent);
		hop_said(1);
		route_said(FIB_REPLACE, "10.0.0.1/32", 1, FIB_OK);
		if (silent) {
			message(FIB_END_OF_RIB, 0);
			answered(FIB_OK, 0, 1);
			rig.now += HOLD + 1;
			fib_session_tick(&rig.s, true, rig.now);
			assert_int_equal(rig.s.state, FIB_SESSION_STALE);
		}
		keep_alive(GRACE - HOLD);
		hello(FIRST + 10 + silent);
		keep_alive(GRACE);
		assert_int_equal(port_to("10.0.0.1"), 5);
		keep_alive(HOLD);
		assert_int_equal(port_to("10.0.0.1"), 0);
	}
}

// 10.0.0.1 is of one that has been replaced, 10.0.0.2 of the present one.
static void route_of_each_of_two_sessions(void)
{
	hello(FIRST);
	hop_said(1);
	route_said(FIB_ADD, "10.0.0.1/32", 1, FIB_OK);
	hello(FIRST + 1);
	hop_said(1);
	route_said(FIB_ADD, "10.0.0.2/32", 1, FIB_OK);
}

// What was stale before a silence has no more time than that.
static void a_silence_keeps_nothing_that_is_older(void **state)
{
	route_of_each_of_two_sessions();
	rig.now += HOLD + 1;
	fib_session_tick(&rig.s, true, rig.now);
	keep_alive(GRACE);
	assert_int_equal(port_to("10.0.0.1"), 5);
	keep_alive(HOLD);
	assert_int_equal(port_to("10.0.0.1"), 0);
	assert_int_equal(port_to("10.0.0.2"), 5);
}

// One that never says END_OF_RIB does not keep old routes for ever.
static void grace_without_end_of_rib(void **state)
{
	route_of_each_of_two_sessions();
	for (uint64_t at = 0; at <= GRACE; at += HOLD) {
		rig.now += HOLD;
		message(FIB_KEEPALIVE, 0);
		answered(FIB_OK, 0, 1);
		fib_session_tick(&rig.s, true, rig.now);
	}
	assert_int_equal(port_to("10.0.0.1"), 0);
	assert_int_equal(port_to("10.0.0.2"), 5);
	assert_int_equal(rig.s.state, FIB_SESSION_UP);
}

// Routes of a snapshot: nobody has spoken for them since this process began.
static void routes_that_nobody_speaks_for(void **state)
{
	struct fib *fib = rig.s.fib;

	assert_int_equal(fib_begin(fib, VNF, 5), 0);
	hop_put(fib, VNF, 5, 1, 5);
	assert_int_equal(route_put(fib, VNF, 5, "10.0.0.1/32", 1), 0);
	assert_int_equal(fib_begin(fib, VNF, 6), 0);
	fib_session_tick(&rig.s, true, 50);
	assert_int_equal(port_to("10.0.0.1"), 5);
	fib_session_tick(&rig.s, true, 50 + GRACE);
	assert_int_equal(port_to("10.0.0.1"), 5);
	fib_session_tick(&rig.s, true, 51 + GRACE);
	assert_int_equal(port_to("10.0.0.1"), 0);
}

static void the_operators_stay(void **state)
{
	struct fib *fib = rig.s.fib;

	hop_put(fib, VNF, FIB_OPERATOR, 1, 42);
	assert_int_equal(route_put(fib, VNF, FIB_OPERATOR, "10.0.0.1/32", 1), 0);
	hello(FIRST);
	message(FIB_FLUSH, 0);
	answered(FIB_OK, 0, 1);
	message(FIB_END_OF_RIB, 0);
	answered(FIB_OK, 0, 1);
	fib_session_tick(&rig.s, false, 2);
	fib_session_tick(&rig.s, false, 3 + GRACE);
	assert_int_equal(port_to("10.0.0.1"), 42);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(sessions_begin_with_hello),
	        TEST(repeated_messages),
	        TEST(out_of_order),
	        TEST(sequence_wraps_around),
	        TEST(busy),
	        TEST(busy_until_swept),
	        TEST(graceful_restart),
	        TEST(silence),
	        TEST(grace_without_end_of_rib),
	        TEST(a_restart_has_all_of_its_grace),
	        TEST(a_silence_keeps_nothing_that_is_older),
	        TEST(routes_that_nobody_speaks_for),
	        TEST(the_operators_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
