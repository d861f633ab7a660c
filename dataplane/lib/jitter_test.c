// SPDX-License-Identifier: BSD-3-Clause
// Known delays in, exact histograms out.
#include "lib/histogram.h"
#include "test/unit.h"

enum { END = UINT32_MAX }; // of a burst

struct probe {
	uint32_t sequence;
	uint64_t delay_ns;
};

static int setup(void **state)
{
	static struct jitter j;

	*state = &j;
	return jitter_init(&j);
}

static int teardown(void **state)
{
	jitter_release(*state);
	return 0;
}

static void feed(struct jitter *j, const struct probe *probes, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		if (probes[i].sequence == END)
			jitter_burst_end(j);
		else
			jitter_probe(j, probes[i].sequence, probes[i].delay_ns);
	}
}

// Exactly these values, each with its count; ends with a count of 0.
static void assert_holds(const struct histogram *h, const uint64_t expected[][2])
{
	uint64_t value_ns, count, total = 0;
	uint32_t index = 0;

	for (; (*expected)[1]; expected++) {
		assert_int_equal(histogram_next(h, &index, &value_ns, &count), 1);
		assert_int_equal(value_ns, (*expected)[0]);
		assert_int_equal(count, (*expected)[1]);
		total += count;
	}
	assert_int_equal(histogram_next(h, &index, &value_ns, &count), 0);
	assert_int_equal(h->total, total);
	assert_int_equal(h->overflow, 0);
}

#define FEED(j, ...)                                                                                         \
	feed(j, (const struct probe[]){__VA_ARGS__},                                                         \
	     sizeof((const struct probe[]){__VA_ARGS__}) / sizeof(struct probe))
#define ASSERT_HOLDS(h, ...) assert_holds(h, (const uint64_t[][2]){__VA_ARGS__})

static void one_probe_has_no_jitter(void **state)
{
	struct jitter *j = *state;

	FEED(j, {7, 100}, {END, 0});
	ASSERT_HOLDS(j->ipdv, {0, 0});
	ASSERT_HOLDS(j->burst, {0, 0});
}

static void ipdv_is_the_size_of_each_difference(void **state)
{
	struct jitter *j = *state;

	FEED(j, {0, 1000}, {5, 1300}, {9, 1000}, {10, 1000}, {900, 500});
	ASSERT_HOLDS(j->ipdv, {0, 1}, {300, 2}, {500, 1}, {0, 0});
	ASSERT_HOLDS(j->burst, {0, 0});
}

// 20 comes after 30: it is in no pair, and 30 and 40 make one.
static void a_reordered_probe_is_in_no_pair(void **state)
{
	struct jitter *j = *state;

	FEED(j, {10, 100}, {30, 110}, {20, 900}, {40, 130}, {END, 0});
	ASSERT_HOLDS(j->ipdv, {10, 1}, {20, 1}, {0, 0});
}

static void numbers_wrap(void **state)
{
	struct jitter *j = *state;

	FEED(j, {UINT32_MAX - 1, 100}, {1, 103}, {UINT32_MAX - 7, 1}, {2, 108});
	ASSERT_HOLDS(j->ipdv, {3, 1}, {5, 1}, {0, 0});
}

// Means 200, 150 (of 100, 100 and 250), 150: a burst without probes between them changes nothing.
static void burst_jitter_is_between_the_means(void **state)
{
	struct jitter *j = *state;

	FEED(j, {0, 200}, {END, 0}, {1, 100}, {2, 100}, {3, 250}, {END, 0}, {END, 0}, {4, 150}, {END, 0});
	ASSERT_HOLDS(j->burst, {0, 1}, {50, 1}, {0, 0});
	ASSERT_HOLDS(j->ipdv, {0, 1}, {100, 2}, {150, 1}, {0, 0});
}

static void reordered_probes_are_part_of_their_burst(void **state)
{
	struct jitter *j = *state;

	FEED(j, {9, 100}, {END, 0}, {12, 110}, {11, 130}, {END, 0});
	ASSERT_HOLDS(j->burst, {20, 1}, {0, 0});
	ASSERT_HOLDS(j->ipdv, {10, 1}, {0, 0});
}

static void an_impossible_delay_is_left_out(void **state)
{
	struct jitter *j = *state;

	FEED(j, {0, 100}, {END, 0}, {1, UINT64_MAX}, {END, 0}, {2, HISTOGRAM_HIGHEST_NS + 1}, {3, 104},
	     {END, 0});
	ASSERT_HOLDS(j->ipdv, {4, 1}, {0, 0});
	ASSERT_HOLDS(j->burst, {4, 1}, {0, 0});
}

static void reset_forgets_counts_and_probes(void **state)
{
	struct jitter *j = *state;

	FEED(j, {0, 100}, {END, 0}, {1, 200}, {END, 0}, {2, 300});
	jitter_reset(j);
	ASSERT_HOLDS(j->ipdv, {0, 0});
	ASSERT_HOLDS(j->burst, {0, 0});
	FEED(j, {0, 900}, {END, 0});
	ASSERT_HOLDS(j->ipdv, {0, 0});
	ASSERT_HOLDS(j->burst, {0, 0});
	FEED(j, {1, 901}, {END, 0});
	ASSERT_HOLDS(j->ipdv, {1, 1}, {0, 0});
	ASSERT_HOLDS(j->burst, {1, 1}, {0, 0});
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(one_probe_has_no_jitter),           TEST(ipdv_is_the_size_of_each_difference),
	        TEST(a_reordered_probe_is_in_no_pair),   TEST(numbers_wrap),
	        TEST(burst_jitter_is_between_the_means), TEST(reordered_probes_are_part_of_their_burst),
	        TEST(an_impossible_delay_is_left_out),   TEST(reset_forgets_counts_and_probes),
	};

	return cmocka_run_group_tests_name("jitter", tests, NULL, NULL);
}
