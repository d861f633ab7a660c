// SPDX-License-Identifier: BSD-3-Clause
// The longest silence of each stream, what came in each tenth of the sending time, and what probes met on their way, at
// times that the test chooses.
#include "base/clock.h"
#include "tester/stamps.h"
#include "tester/monitor_rig.h"

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

// --- What probes met -----------------------------------------------------------------------------------------

enum { GAP_S = 10 }; // a turn that is longer is a gap: this test may stand for a while

static uint64_t test_now; // about that of the clock: a probe is received when it is looked at

// Begin a turn so many seconds ago and poll, as a worker does; then there is nothing more.
static void turn(struct bench *b, unsigned seconds_ago)
{
	poll_turn = (struct poll_turn){test_now - seconds_ago * clock_hz(), GAP_S * clock_hz()};
	for (unsigned idle = 0; idle < 16; idle++)
		if (b->task->ops->poll(b->task, poll_turn.begin_tsc))
			idle = 0;
}

// n frames of STREAM, that many seconds ago.
static void frames(struct bench *b, unsigned *sequence, unsigned n, unsigned seconds_ago)
{
	for (unsigned i = 0; i < n; i++)
		put(b, make(STREAM, EPOCH, (*sequence)++, 0));
	turn(b, seconds_ago);
}

// Probes that were sent so many seconds ago come now.
static void probes(struct bench *b, unsigned *sequence, const unsigned *seconds_ago, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		put(b, make(STREAM, EPOCH, (*sequence)++, test_now - seconds_ago[i] * clock_hz()));
	turn(b, 0);
}

static void forget_gaps(void)
{
	for (unsigned i = 0; i < POLL_GAPS; i++)
		poll_gap_note(0, 0);
	poll_gap_end_tsc = 0;
}

static struct bench open_now(void **state)
{
	test_now = rte_rdtsc();
	forget_gaps();
	return open_bench(state, 0);
}

// How many probes a histogram of the report has: those above 10 s are in no bucket.
static json_int_t of_histogram(struct bench *b, const char *name)
{
	char path[64];
	json_int_t n = 0, sum;

	snprintf(path, sizeof(path), "monitor.streams.0.%s.overflow", name);
	sum = RTE_MAX(number(b, path), 0);
	for (unsigned i = 0; n >= 0; i++, sum += RTE_MAX(n, 0)) {
		snprintf(path, sizeof(path), "monitor.streams.0.%s.counts.%u.1", name, i);
		n = number(b, path);
	}
	return sum;
}

static void assert_met(struct bench *b, json_int_t nothing, json_int_t gap, json_int_t stall)
{
	assert_int_equal(of_histogram(b, "latency"), nothing);
	assert_int_equal(of_histogram(b, "latency_gap"), gap);
	assert_int_equal(of_histogram(b, "latency_stall"), stall);
	assert_int_equal(number(b, "monitor.streams.0.probes_received"), nothing + gap + stall);
	poll_turn = (struct poll_turn){0};
	forget_gaps();
	close_bench(b);
}

static void gap(unsigned from_seconds_ago, unsigned until_seconds_ago)
{
	poll_gap_note(test_now - from_seconds_ago * clock_hz(), test_now - until_seconds_ago * clock_hz());
}

// A gap that ended three seconds ago: who was sent after it did not meet it.
static void a_probe_meets_a_gap_that_ended_since_it_was_sent(void **state)
{
	struct bench b = open_now(state);
	unsigned sequence = 0;

	gap(7, 3);
	gap(6, 5); // of another worker: it is told later, and ended before
	probes(&b, &sequence, (const unsigned[]){8, 4, 2, 1}, 4);
	assert_met(&b, 2, 2, 0);
}

// Whoever looks late has all that came met, also what was sent a moment ago.
static void a_probe_meets_the_gap_of_this_turn(void **state)
{
	struct bench b = open_now(state);

	put(&b, make(STREAM, EPOCH, 0, rte_rdtsc()));
	turn(&b, GAP_S + 1);
	put(&b, make(STREAM, EPOCH, 1, rte_rdtsc()));
	turn(&b, 0);
	assert_met(&b, 1, 1, 0);
}

// A hundred frames in ten seconds, then none for forty, and all polled. The burst that ends it has probes of it, and so
// has the next; one of them was sent later. Those that came before met nothing.
static void a_probe_meets_a_stall_that_ended_since_it_was_sent(void **state)
{
	struct bench b = open_now(state);
	unsigned sequence = 0;

	frames(&b, &sequence, 50, 50);
	frames(&b, &sequence, 50, 40);
	probes(&b, &sequence, (const unsigned[]){45, 30, 20}, 3);
	assert_near(&b, "monitor.streams.0.stall_sum_ns", INT64_C(40000000000));
	assert_int_equal(number(&b, "monitor.streams.0.stalls"), 1);
	put(&b, make(STREAM, EPOCH, sequence++, test_now + 1));
	probes(&b, &sequence, (const unsigned[]){10}, 1);
	assert_met(&b, 1, 0, 4);
}

// What the workers polled of a silence is a stall: nobody knows what the switch did in a gap. Who met both has met what was
// more of it.
static void gaps_are_no_part_of_a_stall(void **state)
{
	struct bench b = open_now(state);
	unsigned sequence = 0;

	frames(&b, &sequence, 50, 50);
	frames(&b, &sequence, 50, 40);
	gap(45, 39);
	gap(30, 15);
	probes(&b, &sequence, (const unsigned[]){35, 20, 5}, 3);
	assert_near(&b, "monitor.streams.0.stall_sum_ns", INT64_C(24000000000));
	assert_met(&b, 0, 0, 3);

	b = open_now(state);
	sequence = 0;
	frames(&b, &sequence, 50, 50);
	frames(&b, &sequence, 50, 40);
	gap(35, 14);
	probes(&b, &sequence, (const unsigned[]){36, 20, 5}, 3);
	assert_near(&b, "monitor.streams.0.stall_sum_ns", INT64_C(19000000000));
	assert_met(&b, 0, 2, 1);

	b = open_now(state);
	sequence = 0;
	frames(&b, &sequence, 50, 50);
	frames(&b, &sequence, 50, 40);
	gap(39, 9);
	probes(&b, &sequence, (const unsigned[]){36, 20, 5}, 3);
	assert_int_equal(number(&b, "monitor.streams.0.stalls"), 0);
	assert_met(&b, 1, 2, 0);
}

// Four frames in thirty seconds, then none for twenty: that is no stall. Nor is a silence as short as a gap.
static void not_every_silence_is_a_stall(void **state)
{
	struct bench b = open_now(state);
	unsigned sequence = 0;

	frames(&b, &sequence, 2, 50);
	frames(&b, &sequence, 2, 20);
	probes(&b, &sequence, (const unsigned[]){5}, 1);
	assert_int_equal(number(&b, "monitor.streams.0.stalls"), 0);
	assert_met(&b, 1, 0, 0);

	b = open_now(state);
	sequence = 0;
	frames(&b, &sequence, 50, 20);
	frames(&b, &sequence, 50, GAP_S);
	probes(&b, &sequence, (const unsigned[]){5}, 1);
	assert_int_equal(number(&b, "monitor.streams.0.stalls"), 0);
	assert_met(&b, 1, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        WIRE_TEST(the_longest_silence_is_told_of_each_stream),
	        WIRE_TEST(frames_are_counted_by_tenths_of_the_sending),
	        WIRE_TEST(a_probe_meets_a_gap_that_ended_since_it_was_sent),
	        WIRE_TEST(a_probe_meets_the_gap_of_this_turn),
	        WIRE_TEST(a_probe_meets_a_stall_that_ended_since_it_was_sent),
	        WIRE_TEST(gaps_are_no_part_of_a_stall),
	        WIRE_TEST(not_every_silence_is_a_stall),
	};

	if (fixture_eal_init("monitor_silence") != 0)
		return 99; // for meson: could not be run
	return cmocka_run_group_tests_name("monitor_silence", tests, NULL, NULL);
}
