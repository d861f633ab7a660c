// SPDX-License-Identifier: BSD-3-Clause
// The sequence tracker against a model that remembers every number, over random drop, duplication and
// reordering.
#include <stdbool.h>

#include "tester/sequence.h"
#include "test/unit.h"

enum { COUNT = 3 * SEQUENCE_WINDOW, RUNS = 3 };

// What RFC 4737 says, with memory for everything: at_next is the next expected position.
struct model {
	bool seen[COUNT];
	uint64_t at_next, unique, duplicate, reordered;
};

static void model_track(struct model *m, uint64_t at)
{
	if (at < m->at_next && (m->seen[at] || m->at_next - at > SEQUENCE_WINDOW)) {
		m->duplicate++;
		return;
	}
	m->seen[at] = true;
	m->unique++;
	if (at < m->at_next)
		m->reordered++;
	else
		m->at_next = at + 1;
}

// xorshift64: seeded, the same everywhere.
static uint64_t random_next(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

static void both_track(struct sequence *s, struct model *m, uint32_t first, uint64_t at)
{
	sequence_track(s, (uint32_t)(first + at));
	model_track(m, at);
}

static void assert_same(const struct sequence *s, const struct model *m)
{
	assert_int_equal(s->unique, m->unique);
	assert_int_equal(s->duplicate, m->duplicate);
	assert_int_equal(s->reordered, m->reordered);
}

// One run: now and then a gap, a repetition or a number from near or far behind.
static void run(struct sequence *s, struct model *m, uint32_t first, uint64_t seed)
{
	uint64_t x = seed * 0x9e3779b97f4a7c15 + 1;

	memset(m, 0, sizeof(*m));
	sequence_reset(s, first);
	for (uint64_t at = 0; at < COUNT; at++) {
		uint64_t dice = random_next(&x) % 64, reach = dice % 2 ? 100 : 2 * SEQUENCE_WINDOW;

		if (dice < 4)
			continue;
		if (dice == 4)
			at += random_next(&x) % 300;
		if (dice == 5 && random_next(&x) % (1 << 16) == 0)
			at += random_next(&x) % (3 * SEQUENCE_WINDOW / 2);
		if (at >= COUNT)
			break;
		both_track(s, m, first, at);
		if (dice > 60)
			both_track(s, m, first, at - random_next(&x) % (at < reach ? at + 1 : reach));
	}
}

static void random_runs_agree_with_the_model(void **state)
{
	struct sequence *s = malloc(sizeof(*s));
	struct model *m = malloc(sizeof(*m));

	for (uint64_t seed = 1; seed <= RUNS; seed++) {
		run(s, m, seed % 2 ? 0 : (uint32_t)(seed * 0x9e3779b9), seed);
		assert_same(s, m);
		assert_true(m->duplicate > 0 && m->reordered > 0);
	}
	free(s);
	free(m);
}

static void wraps_at_32_bits(void **state)
{
	struct sequence *s = malloc(sizeof(*s));
	struct model *m = malloc(sizeof(*m));

	run(s, m, UINT32_MAX - COUNT / 2, 99);
	assert_same(s, m);
	assert_true(s->next > UINT64_C(2) << 32);
	free(s);
	free(m);
}

static void every_step_has_its_verdict(void **state)
{
	static const struct {
		uint32_t number;
		enum sequence_verdict verdict;
	} steps[] = {
	        {0, SEQUENCE_IN_ORDER},  {1, SEQUENCE_IN_ORDER},           {1, SEQUENCE_DUPLICATE},
	        {4, SEQUENCE_IN_ORDER},  {3, SEQUENCE_REORDERED},          {3, SEQUENCE_DUPLICATE},
	        {4, SEQUENCE_DUPLICATE}, {2, SEQUENCE_REORDERED},          {5, SEQUENCE_IN_ORDER},
	        {0, SEQUENCE_DUPLICATE}, {UINT32_MAX, SEQUENCE_REORDERED}, // a number before the first one
	};
	struct sequence *s = malloc(sizeof(*s));

	sequence_reset(s, 0);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		assert_int_equal(sequence_track(s, steps[i].number), steps[i].verdict);
	free(s);
}

static void window_has_sharp_edges(void **state)
{
	struct sequence *s = malloc(sizeof(*s));

	sequence_reset(s, 0);
	assert_int_equal(sequence_track(s, SEQUENCE_WINDOW), SEQUENCE_IN_ORDER);
	assert_int_equal(sequence_track(s, 1), SEQUENCE_REORDERED); // the oldest that is remembered
	assert_int_equal(sequence_track(s, 0), SEQUENCE_DUPLICATE); // cannot be told: never flatter
	assert_int_equal(sequence_track(s, 1), SEQUENCE_DUPLICATE);
	assert_int_equal(sequence_track(s, 5 * SEQUENCE_WINDOW), SEQUENCE_IN_ORDER); // all forgotten
	assert_int_equal(sequence_track(s, 4 * SEQUENCE_WINDOW + 1), SEQUENCE_REORDERED);
	assert_int_equal(s->unique, 4);
	assert_int_equal(s->reordered, 2);
	assert_int_equal(s->duplicate, 2);
	free(s);
}

// A gap forgets its own numbers only: those at the far edge of the window stay known.
static void gap_forgets_no_neighbours(void **state)
{
	struct sequence *s = malloc(sizeof(*s));

	sequence_reset(s, 0);
	for (uint32_t number = 0; number < SEQUENCE_WINDOW; number++)
		sequence_track(s, number);
	for (uint32_t end = 3; end < 200; end += 3) {
		assert_int_equal(sequence_track(s, SEQUENCE_WINDOW + end - 1), SEQUENCE_IN_ORDER);
		for (uint32_t number = end; number < end + 64; number++)
			assert_int_equal(sequence_track(s, number), SEQUENCE_DUPLICATE);
		assert_int_equal(sequence_track(s, SEQUENCE_WINDOW + end - 2), SEQUENCE_REORDERED);
	}
	free(s);
}

// Runs of every length at every place of a word, after a gap and before a repetition, leave what single
// numbers do.
static void runs_are_single_numbers(void **state)
{
	struct sequence *one = malloc(sizeof(*one)), *run = malloc(sizeof(*run));

	sequence_reset(one, UINT32_MAX - 5000);
	sequence_reset(run, UINT32_MAX - 5000);
	for (unsigned i = 0; i < 64 * 65 * 100; i++) {
		unsigned n = i % 65;

		for (unsigned k = 0; k < n; k++)
			sequence_track(one, (uint32_t)one->next);
		sequence_track_run(run, n);
		if (i % 4097 == 0) {
			sequence_track(one, (uint32_t)one->next + i % 200);
			sequence_track(run, (uint32_t)run->next + i % 200);
		}
		if (i % 4001 == 0)
			assert_memory_equal(one, run, sizeof(*one));
	}
	free(one);
	free(run);
}

// Three trackers of one stream, each with its own gaps: what two of them have, by their windows, one number at a time.
static uint64_t shared_by_model(const struct model *m, unsigned n, const struct sequence *const *s,
                                uint32_t first)
{
	uint64_t shared = 0;

	for (uint64_t at = 0; at < COUNT; at++) {
		bool there[3] = {false};

		for (unsigned i = 0; i < n; i++)
			there[i] =
			        m[i].seen[at] && SEQUENCE_FIRST + first + at + SEQUENCE_WINDOW >= s[i]->next;
		shared += there[0] && (there[1] || there[2]);
	}
	return shared;
}

static void numbers_of_several_trackers_are_found(void **state)
{
	enum { TRACKERS = 3 };
	static const uint32_t firsts[] = {13, UINT32_MAX - 1000};
	struct sequence *s = calloc(TRACKERS, sizeof(*s));
	struct model *m = calloc(TRACKERS, sizeof(*m));
	const struct sequence *all[TRACKERS] = {&s[0], &s[1], &s[2]};

	(void)state;
	for (unsigned run = 0; run < sizeof(firsts) / sizeof(*firsts); run++) {
		uint64_t x = run + 1;

		memset(m, 0, TRACKERS * sizeof(*m));
		for (unsigned i = 0; i < TRACKERS; i++)
			sequence_reset(&s[i], firsts[run]);
		assert_int_equal(sequence_shared(&s[0], &all[1], 2), 0);
		for (uint64_t at = 0; at < COUNT - run * 12345; at++) {
			uint64_t r = random_next(&x);

			both_track(&s[r % TRACKERS], &m[r % TRACKERS], firsts[run], at);
			if (r >> 32 & 1) // one in two comes twice, now and then to the same
				both_track(&s[r >> 40 & 1], &m[r >> 40 & 1], firsts[run], at);
		}
		assert_int_equal(sequence_shared(&s[0], &all[1], 2),
		                 shared_by_model(m, TRACKERS, all, firsts[run]));
		assert_true(sequence_shared(&s[0], &all[1], 2) > SEQUENCE_WINDOW / 10);
		assert_int_equal(sequence_shared(&s[0], &all[1], 0), 0);
		assert_int_equal(sequence_shared(&s[1], &all[2], 1), sequence_shared(&s[2], &all[1], 1));
	}
	// One that stays behind by more than its window knows none of the numbers of the other.
	sequence_reset(&s[0], 0);
	sequence_reset(&s[1], 0);
	for (uint32_t at = 0; at < 100; at++)
		sequence_track(&s[0], at);
	sequence_track(&s[1], 7);
	assert_int_equal(sequence_shared(&s[1], all, 1), 1);
	sequence_track(&s[1], 7 + SEQUENCE_WINDOW);
	assert_int_equal(sequence_shared(&s[1], all, 1), 0);
	assert_int_equal(sequence_shared(&s[0], &all[1], 1), 0);
	free(s);
	free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(every_step_has_its_verdict),
	        cmocka_unit_test(window_has_sharp_edges),
	        cmocka_unit_test(gap_forgets_no_neighbours),
	        cmocka_unit_test(random_runs_agree_with_the_model),
	        cmocka_unit_test(wraps_at_32_bits),
	        cmocka_unit_test(runs_are_single_numbers),
	        cmocka_unit_test(numbers_of_several_trackers_are_found),
	};

	return cmocka_run_group_tests_name("sequence", tests, NULL, NULL);
}
