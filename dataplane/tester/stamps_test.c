// SPDX-License-Identifier: BSD-3-Clause
// The log of stamps: pages, and what comes when it is full.
#include "tester/stamps.h"
#include "test/unit.h"

static struct stamps *filled(unsigned n)
{
	struct stamps *stamps = stamps_create();

	assert_non_null(stamps);
	for (unsigned i = 0; i < n; i++) {
		struct stamp *s = stamps_next(stamps);

		if (s)
			*s = (struct stamp){.in_tsc = i, .out_tsc = i + 1, .sequence = i, .stream = 2};
	}
	return stamps;
}

static void assert_page(const struct stamps *stamps, uint32_t from, uint32_t limit, size_t count,
                        json_int_t next)
{
	json_t *page = stamps_list(stamps, from, limit);

	assert_int_equal(json_array_size(json_object_get(page, "stamps")), count);
	assert_int_equal(json_is_null(json_object_get(page, "next")), next == 0);
	assert_int_equal(json_integer_value(json_object_get(page, "next")), next);
	json_decref(page);
}

static void pages_have_all_of_it(void **state)
{
	struct stamps *stamps = filled(10);

	assert_page(stamps, 0, 4, 4, 4);
	assert_page(stamps, 8, 4, 2, 0);
	assert_page(stamps, 10, 4, 0, 0);
	assert_page(stamps, UINT32_MAX, UINT32_MAX, 0, 0);
	assert_page(stamps, 0, UINT32_MAX, 10, 0);
	assert_page(NULL, 0, 4, 0, 0);
	stamps_free(stamps);
}

static void a_full_log_counts_what_it_loses(void **state)
{
	struct stamps *stamps = filled(STAMPS_MAX + 3);

	assert_int_equal(stamps->count, STAMPS_MAX);
	assert_int_equal(stamps->lost, 3);
	assert_int_equal(stamps->log[STAMPS_MAX - 1].sequence, STAMPS_MAX - 1);
	stamps_free(stamps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(pages_have_all_of_it),
	        cmocka_unit_test(a_full_log_counts_what_it_loses),
	};

	return cmocka_run_group_tests_name("stamps", tests, NULL, NULL);
}
