// SPDX-License-Identifier: BSD-3-Clause
// The pacer in simulated time, polled at jittery moments: rate, conservation, late slots, ends.
#include <math.h>

#include "pacer.h"
#include "unit.h"

#define HZ        UINT64_C(2596143000) // a real TSC's: no power of ten divides it
#define SECOND_NS UINT64_C(1000000000)
#define START     UINT64_C(987654321987)

static uint64_t us_tsc(double us)
{
	return (uint64_t)(us * HZ / 1e6);
}

static struct pacer start(double rate_pps, uint64_t duration_ns, uint16_t burst)
{
	struct pacer p;
	struct pacer_load load = {
	        .start_tsc = START, .duration_ns = duration_ns, .rate_pps = rate_pps, .burst = burst};

	assert_int_equal(pacer_start(&p, &load, HZ), 0);
	return p;
}

// Poll until done, every 0.5 to 1.5 mean intervals; returns what was handed out.
static uint64_t run(struct pacer *p, double poll_us)
{
	uint64_t now = START, sent = 0, x = 88172645463325252;

	while (!pacer_done(p, now)) {
		uint16_t n = pacer_poll(p, now);

		assert_true(n <= p->burst);
		sent += n;
		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		now += us_tsc(poll_us * (0.5 + (double)(x % 1024) / 1024));
	}
	return sent;
}

static void rate_is_met_at_jittery_polls(void **state)
{
	static const struct {
		double rate_pps, poll_us;
	} table[] = {{1e3, 5}, {1e5, 5}, {1e6, 5}, {1e6, 20}, {1e7, 2}, {1488095.238, 3}, {333.333, 30}};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct pacer p = start(table[i].rate_pps, SECOND_NS, 64);
		uint64_t sent = run(&p, table[i].poll_us);

		assert_int_equal(p.intended, (uint64_t)table[i].rate_pps);
		assert_int_equal(p.intended, sent + p.late);
		assert_true(fabs((double)sent / table[i].rate_pps - 1) < 0.005);
		assert_int_equal(p.late, 0);
	}
}

// Slot k is due at start + k / rate, to the tick, after an hour too.
static void slots_do_not_drift(void **state)
{
	static const double rates[] = {1, 7, 1e3, 1e6 / 3, 14880952};

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		struct pacer p = start(rates[i], 4000 * SECOND_NS, 1);
		uint64_t k = (uint64_t)(3600 * rates[i]);
		uint64_t due = START + (uint64_t)ceill((long double)k * HZ / rates[i]);

		p.next = k; // as if all before were handed out
		assert_int_equal(pacer_poll(&p, due - 2), 0);
		assert_int_equal(pacer_poll(&p, due + 1), 1);
	}
}

static void late_slots_are_skipped_not_caught_up(void **state)
{
	struct pacer p = start(1e6, SECOND_NS, 32);
	uint64_t limit_us = PACER_LATE_LIMIT_NS / 1000, sent;

	assert_int_equal(pacer_poll(&p, START), 1);
	sent = pacer_poll(&p, START + us_tsc(10000.5)); // a stall of 10 ms
	assert_int_equal(sent, 32);
	assert_int_equal(p.late, 10000 - limit_us);
	sent += pacer_poll(&p, START + us_tsc(10000.5)); // those within the limit are still good
	assert_int_equal(sent, limit_us);
	assert_int_equal(pacer_poll(&p, START + us_tsc(10000.5)), 0);
	assert_int_equal(pacer_poll(&p, START + us_tsc(10001.5)), 1); // and the schedule goes on where it is
	assert_int_equal(p.next, 10002);
}

static void conservation_holds_with_stalls_and_at_overload(void **state)
{
	static const double rates[] = {1, 999.5, 1e5, 1e6, 2e7, 1e8};

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		struct pacer slow = start(rates[i], SECOND_NS / 10, 32),
		             stalled = start(rates[i], SECOND_NS, 32);

		assert_int_equal(run(&slow, 10) + slow.late, (uint64_t)(rates[i] / 10));
		assert_int_equal(run(&stalled, 70000) + stalled.late, (uint64_t)rates[i]);
	}
}

static void ends_by_time(void **state)
{
	struct pacer p = start(1e3, SECOND_NS, 32);
	uint64_t end = START + HZ;

	assert_int_equal(pacer_poll(&p, START - 1), 0); // not before the start either
	assert_false(pacer_done(&p, START - 1));
	assert_int_equal(pacer_poll(&p, end - 1), 0);
	assert_false(pacer_done(&p, end - 1));
	assert_true(pacer_done(&p, end));
	assert_int_equal(p.late, 1000);
	assert_int_equal(pacer_poll(&p, end + HZ), 0);
}

static void last_slots_may_be_as_late_as_any(void **state)
{
	struct pacer p = start(1e6, SECOND_NS / 1000, 64);

	p.next = 990;
	assert_int_equal(pacer_poll(&p, START + us_tsc(1010)), 10);
	assert_true(pacer_done(&p, START + us_tsc(1010)));
	assert_int_equal(p.late, 0);
}

static void flat_out_is_a_burst_each_time(void **state)
{
	struct pacer p = start(0, SECOND_NS, 32);

	assert_int_equal(pacer_poll(&p, START - 1), 0);
	assert_int_equal(pacer_poll(&p, START), 32);
	assert_int_equal(pacer_poll(&p, START + HZ - 1), 32);
	assert_false(pacer_done(&p, START + HZ - 1));
	assert_int_equal(pacer_poll(&p, START + HZ), 0);
	assert_true(pacer_done(&p, START + HZ));
}

static void cut_ends_at_what_was_handed_out(void **state)
{
	struct pacer p = start(1e6, SECOND_NS, 32);
	uint64_t sent = pacer_poll(&p, START + us_tsc(10));

	pacer_cut(&p);
	assert_int_equal(p.intended, sent + p.late);
	assert_int_equal(pacer_poll(&p, START + us_tsc(50)), 0);
}

static void impossible_loads_are_refused(void **state)
{
	static const struct pacer_load loads[] = {
	        {.duration_ns = 1, .rate_pps = -1, .burst = 1},
	        {.duration_ns = 1, .rate_pps = NAN, .burst = 1},
	        {.duration_ns = 1, .rate_pps = INFINITY, .burst = 1},
	        {.duration_ns = 1, .rate_pps = (double)HZ, .burst = 1},
	        {.duration_ns = 1, .rate_pps = 1e-30, .burst = 1},
	        {.duration_ns = 0, .rate_pps = 1, .burst = 1},
	        {.duration_ns = 1, .rate_pps = 1, .burst = 0},
	};
	struct pacer p;

	for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++)
		assert_true(pacer_start(&p, &loads[i], HZ) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(rate_is_met_at_jittery_polls),
	        cmocka_unit_test(slots_do_not_drift),
	        cmocka_unit_test(late_slots_are_skipped_not_caught_up),
	        cmocka_unit_test(conservation_holds_with_stalls_and_at_overload),
	        cmocka_unit_test(ends_by_time),
	        cmocka_unit_test(last_slots_may_be_as_late_as_any),
	        cmocka_unit_test(flat_out_is_a_burst_each_time),
	        cmocka_unit_test(cut_ends_at_what_was_handed_out),
	        cmocka_unit_test(impossible_loads_are_refused),
	};

	return cmocka_run_group_tests_name("pacer", tests, NULL, NULL);
}
