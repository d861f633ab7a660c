// SPDX-License-Identifier: BSD-3-Clause
// The longest silence of each stream and what came in each tenth of the sending time, at times that the test chooses.
#include "lib/clock.h"
#include "tasks/monitor/monitor_rig.h"

// Ticks are not whole nanoseconds.
static void assert_near(struct bench *b, const char *path, json_int_t expected_ns)
{
	json_int_t ns = number(b, path);

	assert_in_range(ns + 10000, expected_ns + 9900, expected_ns + 10100);
}

// In ticks, by what the report says in ns. A duplicate, a stale frame and one of another stream end nothing.
static void the_longest_silence_is_told_of_each_stream(void **state)
{
	static const struct {
		unsigned ms; // after the start
		uint8_t stream;
		uint16_t epoch;
		uint32_t number;
	} bursts[] = {{1, STREAM, EPOCH, 0},  {2, STREAM, EPOCH, 2},      {3, 5, EPOCH, 0},
	              {9, STREAM, EPOCH, 2},  {10, STREAM, EPOCH - 1, 9}, {11, 5, EPOCH, 1},
	              {12, STREAM, EPOCH, 1}, {14, STREAM, EPOCH, 3},     {15, 6, EPOCH, 0}};
	const uint64_t ms = clock_hz() / 1000, start = 7 * clock_hz();
	struct bench b = open_bench(state, 0);

	monitor_start(b.task, EPOCH, start);
	for (size_t i = 0; i < RTE_DIM(bursts); i++) {
		put(&b, make(bursts[i].stream, bursts[i].epoch, bursts[i].number, 0));
		assert_int_equal(b.task->ops->poll(b.task, start + bursts[i].ms * ms), 1);
		assert_int_equal(b.task->ops->poll(b.task, start + bursts[i].ms * ms + ms / 2), 0);
	}
	assert_near(&b, "monitor.streams.0.longest_silence_ns", 10000000);
	assert_near(&b, "monitor.streams.0.longest_silence_begin_ns", 2000000);
	assert_near(&b, "monitor.streams.0.longest_silence_end_ns", 12000000);
	assert_near(&b, "monitor.streams.0.first_ns", 1000000);
	assert_near(&b, "monitor.streams.0.last_ns", 14000000);
	assert_near(&b, "monitor.streams.1.longest_silence_ns", 8000000);
	assert_near(&b, "monitor.streams.1.longest_silence_begin_ns", 3000000);
	assert_near(&b, "monitor.streams.2.longest_silence_ns", 0); // one burst of it: no silence between two
	assert_int_equal(number(&b, "monitor.streams.2.longest_silence_begin_ns"), -1);
	assert_near(&b, "monitor.streams.2.last_ns", 15000000);
	close_bench(&b);
}

// 10 ms of sending: a tenth is 1 ms. What comes later is forwarded, too, but in no tenth.
static void frames_are_counted_by_tenths_of_the_sending(void **state)
{
	static const unsigned us[] = {100, 900, 1100, 5500, 9999, 10001, 12000};
	const uint64_t ticks = clock_hz() / 1000000;
	const struct trial trial = {.epoch = EPOCH, .start_tsc = 7 * clock_hz(), .duration_ns = 10000000};
	static const unsigned expected[] = {2, 1, 0, 0, 0, 1, 0, 0, 0, 1};
	struct bench b = open_bench(state, 0);
	char path[64];

	assert_int_equal(b.task->ops->begin(b.task, &trial), 0);
	for (unsigned i = 0; i < RTE_DIM(us); i++) {
		put(&b, make(STREAM, EPOCH, i, 0));
		assert_int_equal(b.task->ops->poll(b.task, trial.start_tsc + us[i] * ticks), 1);
	}
	assert_int_equal(number(&b, "monitor.streams.0.forwarded_packets"), RTE_DIM(us));
	for (unsigned i = 0; i < RTE_DIM(expected); i++) {
		snprintf(path, sizeof(path), "monitor.streams.0.forwarded_by_tenth.%u", i);
		assert_int_equal(number(&b, path), expected[i]);
	}
	assert_int_equal(number(&b, "monitor.streams.0.forwarded_by_tenth.10"), -1);
	close_bench(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        WIRE_TEST(the_longest_silence_is_told_of_each_stream),
	        WIRE_TEST(frames_are_counted_by_tenths_of_the_sending),
	};

	if (fixture_eal_init("monitor_silence") != 0)
		return 99; // for meson: could not be run
	return cmocka_run_group_tests_name("monitor_silence", tests, NULL, NULL);
}
