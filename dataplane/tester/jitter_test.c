// SPDX-License-Identifier: BSD-3-Clause
// Known delays in, exact histograms out.
#include <rte_common.h>
#include <stdlib.h>

#include "tester/histogram.h"
#include "test/unit.h"

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
	for (unsigned i = 0; i < count; i++)
		jitter_probe(j, probes[i].sequence, probes[i].delay_ns);
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

	FEED(j, {7, 100});
	ASSERT_HOLDS(j->ipdv, {0, 0});
}

static void ipdv_is_the_size_of_each_difference(void **state)
{
	struct jitter *j = *state;

	FEED(j, {0, 1000}, {5, 1300}, {9, 1000}, {10, 1000}, {900, 500});
	ASSERT_HOLDS(j->ipdv, {0, 1}, {300, 2}, {500, 1}, {0, 0});
}

// 20 comes after 30: it is in no pair, and 30 and 40 make one.
static void a_reordered_probe_is_in_no_pair(void **state)
{
	struct jitter *j = *state;

	FEED(j, {10, 100}, {30, 110}, {20, 900}, {40, 130});
	ASSERT_HOLDS(j->ipdv, {10, 1}, {20, 1}, {0, 0});
}

static void numbers_wrap(void **state)
{
	struct jitter *j = *state;

	FEED(j, {UINT32_MAX - 1, 100}, {1, 103}, {UINT32_MAX - 7, 1}, {2, 108});
	ASSERT_HOLDS(j->ipdv, {3, 1}, {5, 1}, {0, 0});
}

// Means 200, 150 (of 100, 100 and 250), 150, 190: a burst without stamped frames between them changes nothing. Each
// difference is in one of the two by its sign.
static void burst_jitter_is_between_the_means(void **state)
{
	static const uint64_t bursts[][4] = {{200}, {100, 100, 250}, {0}, {150}, {190, 190}};
	struct jitter *j = *state;

	for (unsigned i = 0; i < RTE_DIM(bursts); i++) {
		for (unsigned k = 0; bursts[i][k]; k++)
			jitter_frame(j, bursts[i][k]);
		jitter_burst_end(j);
	}
	ASSERT_HOLDS(j->rises, {0, 1}, {40, 1}, {0, 0});
	ASSERT_HOLDS(j->falls, {50, 1}, {0, 0});
	ASSERT_HOLDS(j->ipdv, {0, 0});
}

// What the generator of ic16 does with a receive burst: the mean of all its frames, and the signed difference to the
// mean before.
static int64_t model_mean(const uint64_t *delays, unsigned n)
{
	unsigned __int128 sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += delays[i];
	return (int64_t)(sum / n);
}

enum { MODEL_BURSTS = 4000, MODEL_BURST_MAX = 64 };

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

// The histogram holds these values: by buckets, since it resolves three digits.
static void assert_buckets(const struct histogram *h, uint64_t *values, unsigned n)
{
	uint64_t value_ns, count;
	uint32_t index = 0;

	qsort(values, n, sizeof(*values), compare);
	assert_int_equal(h->total, n);
	for (unsigned at = 0; at < n; at += (unsigned)count) {
		assert_int_equal(histogram_next(h, &index, &value_ns, &count), 1);
		for (unsigned i = at; i < at + count; i++)
			assert_int_equal(histogram_index(values[i]), index - 1);
	}
}

static void bursts_agree_with_the_model(void **state)
{
	static uint64_t rises[MODEL_BURSTS], falls[MODEL_BURSTS];
	struct jitter *j = *state;

	for (unsigned seed = 1; seed <= 8; seed++) {
		unsigned up = 0, down = 0, frames = 0;
		int64_t before = -1, signed_sum = 0, first = 0;

		jitter_reset(j);
		srandom(seed);
		for (unsigned b = 0; b < MODEL_BURSTS; b++) {
			uint64_t delays[MODEL_BURST_MAX];
			unsigned n = 1 + (unsigned)random() % MODEL_BURST_MAX;
			int64_t mean;

			for (unsigned i = 0; i < n; i++, frames++) {
				delays[i] = (uint64_t)random() >> (random() % 31);
				jitter_frame(j, delays[i]);
			}
			jitter_burst_end(j);
			mean = model_mean(delays, n);
			if (before < 0) {
				first = mean;
			} else {
				signed_sum += mean - before;
				if (mean < before)
					falls[down++] = (uint64_t)(before - mean);
				else
					rises[up++] = (uint64_t)(mean - before);
			}
			before = mean;
		}
		assert_buckets(j->rises, rises, up);
		assert_buckets(j->falls, falls, down);
		assert_int_equal(up + down, MODEL_BURSTS - 1);
		assert_int_equal(signed_sum,
		                 before - first); // signed differences add up to the way of the mean
		assert_true(frames > MODEL_BURSTS);
	}
}

static void an_impossible_delay_is_left_out(void **state)
{
	struct jitter *j = *state;

	static const uint64_t delays[] = {100, UINT64_MAX, HISTOGRAM_HIGHEST_NS + 1, 104};

	FEED(j, {0, 100}, {1, UINT64_MAX}, {2, HISTOGRAM_HIGHEST_NS + 1}, {3, 104});
	ASSERT_HOLDS(j->ipdv, {4, 1}, {0, 0});
	for (unsigned i = 0; i < RTE_DIM(delays); i++) {
		jitter_frame(j, delays[i]);
		jitter_burst_end(j);
	}
	ASSERT_HOLDS(j->rises, {4, 1}, {0, 0});
}

static void reset_forgets_counts_and_probes(void **state)
{
	struct jitter *j = *state;

	FEED(j, {0, 100}, {1, 200}, {2, 300});
	jitter_frame(j, 100);
	jitter_burst_end(j);
	jitter_frame(j, 200);
	jitter_reset(j);
	ASSERT_HOLDS(j->ipdv, {0, 0});
	jitter_burst_end(j);
	for (uint64_t delay_ns = 900; delay_ns < 902; delay_ns++) {
		FEED(j, {(uint32_t)delay_ns, delay_ns});
		jitter_frame(j, delay_ns);
		jitter_burst_end(j);
	}
	ASSERT_HOLDS(j->ipdv, {1, 1}, {0, 0});
	ASSERT_HOLDS(j->rises, {1, 1}, {0, 0});
	ASSERT_HOLDS(j->falls, {0, 0});
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(one_probe_has_no_jitter),           TEST(ipdv_is_the_size_of_each_difference),
	        TEST(a_reordered_probe_is_in_no_pair),   TEST(numbers_wrap),
	        TEST(burst_jitter_is_between_the_means), TEST(bursts_agree_with_the_model),
	        TEST(an_impossible_delay_is_left_out),   TEST(reset_forgets_counts_and_probes),
	};

	return cmocka_run_group_tests_name("jitter", tests, NULL, NULL);
}
