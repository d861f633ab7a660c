// SPDX-License-Identifier: BSD-3-Clause
// The pacer in simulated time, polled at jittery moments: rate, conservation, late slots, ends.
#include <math.h>

#include "tester/pacer.h"
#include "test/unit.h"

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

static struct pacer start_arrival(struct pacer_arrival arrival, double rate_pps, uint64_t duration_ns)
{
	struct pacer_load load = {.start_tsc = START,
	                          .duration_ns = duration_ns,
	                          .rate_pps = rate_pps,
	                          .burst = 32,
	                          .arrival = arrival};
	struct pacer p;

	assert_int_equal(pacer_start(&p, &load, HZ), 0);
	return p;
}

static const struct pacer_arrival poisson = {.process = PACER_POISSON, .seed = 7},
                                  on_off = {.process = PACER_ON_OFF, .on_ns = 30000, .off_ns = 70000};

static void all_arrivals_conserve(void **state)
{
	static const uint64_t times[] = {0, 1000, 1000, 5000, 90000};
	const struct pacer_arrival recorded = {.process = PACER_RECORDED,
	                                       .times_ns = times,
	                                       .time_count = 5,
	                                       .period_ns = 112500,
	                                       .time_scale = 0.5};
	const struct pacer_arrival arrivals[] = {poisson, on_off, recorded};
	static const double polls_us[] = {3, 20, 300, 70000};

	for (size_t i = 0; i < 3; i++)
		for (size_t k = 0; k < 4; k++) {
			struct pacer p = start_arrival(arrivals[i], 1e6, SECOND_NS / 5);
			uint64_t sent = run(&p, polls_us[k]);

			assert_int_equal(p.intended, sent + p.late);
			assert_true(p.intended == p.next && p.intended > 0);
			assert_int_equal(k < 1 ? p.late : 0, 0);
			assert_true(k < 2 || p.late > 0);
			if (i == 1)
				assert_in_range(p.intended, 200000, 200002); // its period is whole ticks
			if (i == 2) // 200 ms are 888 rounds of 225 us, and all of the next one
				assert_int_equal(p.intended, 889 * 5);
		}
}

// The same slots, however often the pacer is asked; and as many as the rate says.
static void poisson_is_exponential(void **state)
{
	struct pacer p = start_arrival(poisson, 1e5, 10 * SECOND_NS), q = p;
	double mean_tsc = (double)HZ / 1e5, before = 0, sum = 0, squares = 0;
	unsigned above = 0, n = 0;

	for (; p.due_tsc < (double)p.duration_tsc; n++) {
		double gap = (p.due_tsc - before) / mean_tsc;

		before = p.due_tsc;
		sum += gap;
		squares += gap * gap;
		above += gap > 1;
		assert_int_equal(pacer_poll(&p, START + (uint64_t)p.due_tsc + 1) > 0, 1);
	}
	assert_int_equal(p.next, p.intended);
	assert_true(fabs(n / 1e6 - 1) < 0.005);
	assert_true(fabs(sum / n - 1) < 0.005);
	assert_true(fabs(squares / n - 2) < 0.02); // the second moment
	assert_true(fabs(above / (double)n - exp(-1)) < 0.005);
	run(&q, 150);
	assert_int_equal(q.intended, p.intended);
}

// All slots are in the first 30 of each 100 us, at 3.33 times the rate.
static void on_off_is_quiet_while_off(void **state)
{
	struct pacer p = start_arrival(on_off, 1e6, SECOND_NS / 100);
	uint64_t in_period = 0, all = 0;

	for (unsigned us = 0; us < 10000; us++) {
		uint16_t n = pacer_poll(&p, START + us_tsc(us + 0.5));

		in_period = us % 100 == 0 ? 0 : in_period;
		if (us % 100 > 30)
			assert_int_equal(n, 0);
		in_period += n;
		all += n;
		if (us % 100 == 30)
			assert_in_range(in_period, 99, 101);
	}
	assert_int_equal(all, 10000);
	assert_int_equal(p.late, 0);
}

static void recorded_times_are_kept(void **state)
{
	static const uint64_t times[] = {0, 10000, 15000, 15000, 40000};
	const struct pacer_arrival arrival = {.process = PACER_RECORDED,
	                                      .times_ns = times,
	                                      .time_count = 5,
	                                      .period_ns = 50000,
	                                      .time_scale = 2};
	struct pacer p = start_arrival(arrival, 0, 60000);

	assert_int_equal(pacer_poll(&p, START), 1);
	assert_int_equal(pacer_poll(&p, START + us_tsc(4.9)), 0);
	assert_int_equal(pacer_poll(&p, START + us_tsc(5.1)), 1);
	assert_int_equal(pacer_poll(&p, START + us_tsc(7.6)), 2);
	assert_int_equal(pacer_poll(&p, START + us_tsc(20.1)), 1);
	assert_int_equal(pacer_poll(&p, START + us_tsc(24.9)), 0);
	assert_int_equal(pacer_poll(&p, START + us_tsc(25.1)), 1); // again
	assert_int_equal(pacer_poll(&p, START + us_tsc(59)), 8);
	assert_false(pacer_done(&p, START + us_tsc(59)));
	assert_int_equal(pacer_poll(&p, START + us_tsc(61)), 0);
	assert_true(pacer_done(&p, START + us_tsc(61)));
	assert_int_equal(p.intended, 14);
}

static void a_stall_is_not_caught_up(void **state)
{
	struct pacer p = start_arrival(poisson, 1e6, SECOND_NS);
	uint64_t now = START + us_tsc(100000), sent = 0;

	for (unsigned i = 0; i < 1000; i++)
		sent += pacer_poll(&p, now);
	assert_true(sent > 20 && sent < 90); // 50 us of it
	assert_true(p.late > 98000 && p.late < 102000);
	assert_int_equal(p.next, sent + p.late);
	pacer_cut(&p);
	assert_true(pacer_done(&p, START + 2 * HZ));
	assert_int_equal(p.intended, sent + p.late);
}

// Slots that come faster than they can be drawn: the trial is not longer for it, and all of them are counted.
static void rates_that_cannot_be_drawn_end_in_time(void **state)
{
	static const uint64_t times[] = {0, 1, 3};
	const struct pacer_arrival recorded = {.process = PACER_RECORDED,
	                                       .times_ns = times,
	                                       .time_count = 3,
	                                       .period_ns = 4,
	                                       .time_scale = 0.5};
	const struct pacer_arrival arrivals[] = {poisson, recorded};

	for (size_t i = 0; i < 2; i++) {
		struct pacer p = start_arrival(arrivals[i], 375e6, SECOND_NS);
		uint64_t now = START, sent = 0;

		for (; now < START + HZ + us_tsc(100); now += us_tsc(20))
			sent += pacer_poll(&p, now);
		assert_true(pacer_done(&p, now));
		assert_int_equal(p.intended, sent + p.late);
		assert_true(fabs((double)p.intended / 375e6 - 1) < 1e-4);
		assert_true(p.late > p.intended / 2);
		if (i == 1)
			assert_int_equal(p.intended, 375000000);
	}
}

static void impossible_arrivals_are_refused(void **state)
{
	static const uint64_t times[] = {0, 1};
	static const struct pacer_arrival arrivals[] = {
	        {.process = PACER_ON_OFF, .on_ns = 0, .off_ns = 5},
	        {.process = PACER_ON_OFF, .on_ns = 1000, .off_ns = 100000000}, // above tsc_hz while on
	        {.process = PACER_RECORDED,
	         .times_ns = times,
	         .time_count = 0,
	         .period_ns = 5,
	         .time_scale = 1},
	        {.process = PACER_RECORDED,
	         .times_ns = times,
	         .time_count = 2,
	         .period_ns = 0,
	         .time_scale = 1},
	        {.process = PACER_RECORDED,
	         .times_ns = times,
	         .time_count = 2,
	         .period_ns = 2,
	         .time_scale = 0},
	        {.process = PACER_RECORDED, // 10^15 a second
	         .times_ns = times,
	         .time_count = 2,
	         .period_ns = 2,
	         .time_scale = 1e6},
	};
	struct pacer p;

	for (size_t i = 0; i < sizeof(arrivals) / sizeof(arrivals[0]); i++) {
		const struct pacer_load load = {
		        .duration_ns = 1000, .rate_pps = 1e6, .burst = 1, .arrival = arrivals[i]};

		assert_true(pacer_start(&p, &load, HZ) < 0);
	}
	assert_true(pacer_start(&p, &(struct pacer_load){.duration_ns = 1000, .burst = 1, .arrival = poisson},
	                        HZ) < 0); // without a rate
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
	        cmocka_unit_test(all_arrivals_conserve),
	        cmocka_unit_test(poisson_is_exponential),
	        cmocka_unit_test(on_off_is_quiet_while_off),
	        cmocka_unit_test(recorded_times_are_kept),
	        cmocka_unit_test(rates_that_cannot_be_drawn_end_in_time),
	        cmocka_unit_test(a_stall_is_not_caught_up),
	        cmocka_unit_test(impossible_arrivals_are_refused),
	};

	return cmocka_run_group_tests_name("pacer", tests, NULL, NULL);
}
