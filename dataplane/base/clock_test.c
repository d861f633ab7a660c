// SPDX-License-Identifier: BSD-3-Clause
// The frequency of the TSC where DPDK has it wrong by 0.3 %.
#include "base/clock.h"

#include <math.h>
#include <rte_cycles.h>

#include "test/unit.h"

static const struct timespec tenth_s = {.tv_nsec = 100000000};
static const double tolerance = 50e-6;

static uint64_t nominal_hz;

// Instead of DPDK's.
uint64_t rte_get_tsc_hz(void)
{
	return nominal_hz;
}

static double true_hz(void)
{
	struct clock_reading from = clock_read(), to;

	nanosleep(&tenth_s, NULL);
	to = clock_read();
	return (double)(to.tsc - from.tsc) * 1e9 / (double)(to.ns - from.ns);
}

static void test_between_readings(void **state)
{
	struct clock_reading from = {.tsc = 1000, .width_tsc = 100, .ns = 500};
	struct clock_reading to = {.tsc = 1000 + 2095080000, .width_tsc = 200, .ns = 500 + 1000000000};

	assert_int_equal(clock_hz_between(&from, &to), 2095080000);
	to.ns--; // rounded, not cut off
	assert_int_equal(clock_hz_between(&from, &to), 2095080002);
}

static void test_too_near_to_tell(void **state)
{
	struct clock_reading from = {.tsc = 1000, .width_tsc = 100, .ns = 500};
	struct clock_reading to = {.tsc = 1000 + 300 * 100000, .width_tsc = 200, .ns = 500 + 10000000};

	assert_int_equal(clock_hz_between(&from, &to), 3000000000);
	to.tsc--;
	assert_int_equal(clock_hz_between(&from, &to), 0);
}

static void test_clocks_that_go_back_tell_nothing(void **state)
{
	struct clock_reading early = {.tsc = 1000, .width_tsc = 1, .ns = 1000};
	struct clock_reading late = {.tsc = 3000001000, .width_tsc = 1, .ns = 1000001000};
	struct clock_reading mixed = {.tsc = early.tsc, .width_tsc = 1, .ns = late.ns + 1000000000};

	assert_int_equal(clock_hz_between(&early, &late), 3000000000);
	assert_int_equal(clock_hz_between(&late, &early), 0);
	assert_int_equal(clock_hz_between(&late, &mixed), 0); // moved to a host that was started later
	mixed = (struct clock_reading){.tsc = late.tsc + 3000000000, .width_tsc = 1, .ns = late.ns};
	assert_int_equal(clock_hz_between(&late, &mixed), 0);
}

static void test_measured_and_not_as_dpdk_has_it(void **state)
{
	double hz = true_hz();

	nominal_hz = (uint64_t)(1.003 * hz);
	clock_mark();
	clock_measure();
	assert_int_equal(clock_hz(), nominal_hz); // nobody wants it measured
	clock_start();
	assert_true(fabs((double)clock_hz() / hz - 1) < tolerance);
	assert_int_equal(clock_nominal_hz(), nominal_hz);
	assert_int_equal(clock_ticks(10000000000), (uint64_t)((unsigned __int128)clock_hz() * 10));
	assert_int_equal(clock_ns(clock_hz()), 1000000000);
}

static void test_measured_again_only_after_long_enough(void **state)
{
	double hz = true_hz();
	uint64_t known;

	clock_start();
	nanosleep(&tenth_s, NULL);
	clock_mark();
	known = clock_hz();
	clock_measure();
	assert_int_equal(clock_hz(), known);
	nanosleep(&tenth_s, NULL);
	clock_measure();
	assert_true(fabs((double)clock_hz() / hz - 1) < tolerance);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_between_readings),
	        cmocka_unit_test(test_too_near_to_tell),
	        cmocka_unit_test(test_clocks_that_go_back_tell_nothing),
	        cmocka_unit_test(test_measured_and_not_as_dpdk_has_it),
	        cmocka_unit_test(test_measured_again_only_after_long_enough),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
