// SPDX-License-Identifier: BSD-3-Clause
// A stream over several monitors of a port: what they have counted together, each number once.
#include "tester/monitor_rig.h"

enum { MONITORS = 3, FRAMES = 300 };

// What two monitors have counted of a stream, or its duplicates, over all of them.
static json_int_t sum(struct bench *b, const char *counter)
{
	json_int_t found = 0;
	char path[64];

	snprintf(path, sizeof(path), "monitor.streams.0.%s", counter);
	for (unsigned i = 0; i < MONITORS; i++)
		found += RTE_MAX(number(&b[i], path), 0);
	return found;
}

static void see(struct bench *b, uint32_t sequence)
{
	put(b, make(STREAM, EPOCH, sequence, 0));
	poll_all(b);
}

static void frames_of_several_queues_are_counted_once(void **state)
{
	struct bench b[MONITORS];

	for (unsigned i = 0; i < MONITORS; i++)
		b[i] = open_bench(state, 32);
	// By flow: each number to one of them, all but each tenth, which is lost.
	for (uint32_t k = 0; k < FRAMES; k++)
		if (k % 10)
			see(&b[k * 7 % MONITORS], k);
	assert_int_equal(sum(b, "forwarded_packets"), FRAMES - FRAMES / 10);
	assert_int_equal(sum(b, "elsewhere_packets"), 0);
	assert_int_equal(sum(b, "duplicate_packets"), 0);
	assert_int_equal(sum(b, "reordered_packets"), 0);
	// Again: one to all of them, one to another one, and one to the same.
	for (unsigned i = 0; i < MONITORS; i++)
		see(&b[i], 1);
	see(&b[(2 * 7 + 1) % MONITORS], 2);
	see(&b[3 * 7 % MONITORS], 3);
	assert_int_equal(sum(b, "elsewhere_packets"), 3);
	assert_int_equal(sum(b, "duplicate_packets"), 2);
	assert_int_equal(sum(b, "forwarded_packets") - sum(b, "elsewhere_packets"), FRAMES - FRAMES / 10);
	// A monitor that goes is none of them any more.
	close_bench(&b[1]);
	b[1] = open_bench(state, 32);
	assert_true(sum(b, "elsewhere_packets") < 3);
	for (unsigned i = 0; i < MONITORS; i++)
		close_bench(&b[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {WIRE_TEST(frames_of_several_queues_are_counted_once)};

	if (fixture_eal_init("monitor_queues") != 0)
		return 99; // for meson: could not be run
	return cmocka_run_group_tests_name("monitor_queues", tests, NULL, NULL);
}
