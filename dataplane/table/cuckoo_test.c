// SPDX-License-Identifier: BSD-3-Clause
// The table against a plain array of what must be in it, under random operations, in both widths and with
// every instruction set; how full it gets, whatever the keys; a full one stays as it was.
#include <errno.h>

#include "table/cuckoo_any.h"
#include "base/isa.h"
#include "test/unit.h"

enum { KEYS = 6000, WIDTHS = 2 };

static uint64_t random_state = 7;

static struct any make(unsigned width, unsigned kind, uint64_t entries, uint64_t seed)
{
	struct any any = {.kind = (enum any_kind)kind};

	assert_int_equal(any_create(&any, (enum cuckoo_width)width, entries, seed, PAGES_4K), 0);
	return any;
}

// Keys 0 .. n - 1 in bulks of all lengths.
static void assert_content(const struct any *any, const uint16_t *model, unsigned n)
{
	unsigned entries = 0;

	for (unsigned i = 0, length = 1; i < n; i += length, length = length % CUCKOO_BULK_MAX + 1) {
		uint16_t values[CUCKOO_BULK_MAX + 1];
		uint64_t ns[CUCKOO_BULK_MAX];

		length = length < n - i ? length : n - i;
		for (unsigned j = 0; j < length; j++)
			ns[j] = i + j;
		values[length] = 0xdead;
		any_find(any, ns, length, values);
		for (unsigned j = 0; j < length; j++) {
			assert_int_equal(values[j], model[i + j]);
			entries += model[i + j] != CUCKOO_NONE;
		}
		assert_int_equal(values[length], 0xdead);
	}
	assert_int_equal(any_stats(any).entries, entries);
}

static void change(const struct any *any, uint16_t *model, unsigned n)
{
	uint16_t value = (uint16_t)(1 + any_below(&random_state, UINT16_MAX)), old;

	if (any_below(&random_state, 4) == 0) {
		assert_int_equal(any_delete(any, n), model[n]);
		model[n] = CUCKOO_NONE;
		return;
	}
	assert_int_equal(any_put(any, n, value, &old), 0);
	assert_int_equal(old, model[n]);
	model[n] = value;
}

// Three of four operations put: most of what was asked for is there.
static void run_model(unsigned width, unsigned kind)
{
	struct any any = make(width, kind, KEYS, kind + 1);
	uint16_t model[KEYS] = {0};

	for (unsigned step = 0; step < 60000; step++) {
		change(&any, model, (unsigned)any_below(&random_state, KEYS));
		if (step % 10000 == 9999)
			assert_content(&any, model, KEYS);
	}
	cuckoo_clear(any.table);
	memset(model, 0, sizeof(model));
	assert_content(&any, model, KEYS);
	cuckoo_destroy(any.table);
}

static void it_does_what_an_array_does(void **state)
{
	for (unsigned isa = 0; isa < ISA_COUNT; isa++) {
		if (!isa_supported((enum isa)isa))
			continue;
		assert_int_equal(isa_force(isa_text((enum isa)isa)), 0);
		for (unsigned width = 0; width < WIDTHS; width++)
			for (unsigned kind = 0; kind < ANY_KINDS; kind++)
				run_model(width, kind);
	}
}

// --- How full it gets --------------------------------------------------------------------------------------

static const uint64_t least_percent[WIDTHS] = {[CUCKOO_NARROW] = 97, [CUCKOO_WIDE] = 90};

static uint16_t value_of(unsigned n)
{
	return (uint16_t)(n % UINT16_MAX + 1);
}

static unsigned fill(const struct any *any)
{
	unsigned n = 0;
	uint16_t old;

	while (any_put(any, n, value_of(n), &old) == 0)
		n++;
	return n;
}

static void assert_full(unsigned width, unsigned kind)
{
	struct any any = make(width, kind, 20000, 3 + kind);
	unsigned n = fill(&any);
	struct cuckoo_stats before = any_stats(&any), after;
	uint16_t *model = calloc(n + 1, sizeof(*model)), old = 1;

	assert_true(n * UINT64_C(100) >= least_percent[width] * before.room);
	assert_true(before.moves > 0 && before.longest_path > 0);
	assert_int_equal(any_put(&any, n, 9, &old), -ENOSPC);
	assert_int_equal(old, CUCKOO_NONE);
	after = any_stats(&any);
	assert_memory_equal(&before, &after, sizeof(before));
	for (unsigned i = 0; i < n; i++)
		model[i] = value_of(i);
	assert_content(&any, model, n + 1);
	// What is there can be replaced; a place that is given up can be had again.
	assert_int_equal(any_put(&any, 5, 77, &old), 0);
	assert_int_equal(old, 6);
	assert_int_equal(any_delete(&any, 5), 77);
	assert_int_equal(any_put(&any, 5, 78, &old), 0);
	model[5] = 78;
	assert_content(&any, model, n + 1);
	free(model);
	cuckoo_destroy(any.table);
}

static void a_full_table_stays_as_it_was(void **state)
{
	for (unsigned width = 0; width < WIDTHS; width++)
		for (unsigned kind = 0; kind < ANY_KINDS; kind++)
			assert_full(width, kind);
}

// Whatever the size, the seed and the keys.
static void what_was_asked_for_fits(void **state)
{
	static const unsigned sizes[] = {1, 2, 3, 8, 9, 24, 50, 100, 1000, 5000};

	for (unsigned width = 0; width < WIDTHS; width++)
		for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
			for (unsigned seed = 0; seed < 40; seed++) {
				struct any any = make(width, seed % ANY_KINDS, sizes[i], seed);
				uint16_t old;

				for (unsigned n = 0; n < sizes[i]; n++)
					assert_int_equal(any_put(&any, n, 1, &old), 0);
				assert_int_equal(any_stats(&any).entries, sizes[i]);
				cuckoo_destroy(any.table);
			}
}

static void sizes_out_of_bounds_are_refused(void **state)
{
	static const uint64_t sizes[] = {0, CUCKOO_ENTRIES_MAX + 1, UINT64_MAX};

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		const struct cuckoo_config config = {CUCKOO_NARROW, sizes[i], 1, PAGES_4K};
		struct cuckoo *table = NULL;

		assert_int_equal(cuckoo_create(&config, &table), -EINVAL);
		assert_null(table);
	}
	cuckoo_destroy(NULL);
	assert_in_range(cuckoo_bytes(CUCKOO_NARROW, 1000000000), UINT64_C(8000000000), UINT64_C(1) << 33);
	assert_true(cuckoo_bytes(CUCKOO_WIDE, CUCKOO_ENTRIES_MAX) / 64 <= UINT32_MAX);
}

// --- Visiting ----------------------------------------------------------------------------------------------

struct visit {
	uint8_t seen[KEYS];
	unsigned wrong;
};

static bool keep_even(struct visit *visit, uint64_t n, uint16_t value)
{
	if (n >= KEYS || value != n + 1)
		visit->wrong++;
	else
		visit->seen[n]++;
	return value % 2 == 0;
}

static bool keep(void *context, uint64_t key, uint16_t value)
{
	return keep_even(context, key, value);
}

static bool keep_wide(void *context, const struct cuckoo_wide_key *key, uint16_t value)
{
	struct visit *visit = context;

	visit->wrong += key->high != 0 || key->owner != 0;
	return keep_even(visit, key->low, value);
}

static void sweep_odd(const struct any *any)
{
	struct visit visit = {0};
	const struct cuckoo_visitor visitor = {keep, keep_wide, &visit};
	uint64_t cursor = 0, deleted = 0, calls = 0;

	do {
		deleted += cuckoo_visit(any->table, &cursor, 100, &visitor);
		calls++;
	} while (cursor);
	assert_int_equal(deleted, KEYS / 2);
	assert_int_equal(calls, (cuckoo_bytes(any->width, KEYS) / 64 + 99) / 100);
	assert_int_equal(visit.wrong, 0);
	for (unsigned n = 0; n < KEYS; n++)
		assert_int_equal(visit.seen[n], 1);
}

static void visiting_sees_all_once_and_sweeps(void **state)
{
	for (unsigned width = 0; width < WIDTHS; width++) {
		struct any any = make(width, ANY_COUNTED, KEYS, 1);
		uint16_t model[KEYS], old;

		for (unsigned n = 0; n < KEYS; n++) {
			assert_int_equal(any_put(&any, n, (uint16_t)(n + 1), &old), 0);
			model[n] = n % 2 ? (uint16_t)(n + 1) : CUCKOO_NONE;
		}
		sweep_odd(&any);
		assert_content(&any, model, KEYS);
		cuckoo_destroy(any.table);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(it_does_what_an_array_does),
	        cmocka_unit_test(a_full_table_stays_as_it_was),
	        cmocka_unit_test(what_was_asked_for_fits),
	        cmocka_unit_test(sizes_out_of_bounds_are_refused),
	        cmocka_unit_test(visiting_sees_all_once_and_sweeps),
	};

	return cmocka_run_group_tests_name("cuckoo", tests, NULL, NULL);
}
