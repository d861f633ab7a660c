// SPDX-License-Identifier: BSD-3-Clause
// Memory is zeroed, writable to its last byte, aligned for what it is, and what cannot be had is refused.
// Large pages that the machine has not got are skipped, not taken for granted.
#include <errno.h>
#include <stdio.h>

#include "base/hugepages.h"
#include "test/unit.h"

static void names_go_both_ways(void **state)
{
	for (unsigned i = 0; i < PAGES_COUNT; i++) {
		enum pages pages = PAGES_COUNT;

		assert_int_equal(hugepages_from_name(hugepages_name((enum pages)i), &pages), 0);
		assert_int_equal(pages, i);
	}
	for (unsigned i = 0; i < 2; i++) {
		static const char *const wrong[] = {"", "4k"};
		enum pages pages;

		assert_int_equal(hugepages_from_name(wrong[i], &pages), -EINVAL);
	}
}

static void check(struct hugepages *memory, size_t bytes)
{
	static const size_t sizes[PAGES_COUNT] = {0, 1 << 30, 2 << 20, 2 << 20, 4096};
	unsigned char *base = memory->base;
	size_t page = sizes[memory->pages];

	assert_non_null(base);
	assert_int_equal(memory->bytes, bytes);
	assert_int_equal(memory->mapped, (bytes + page - 1) / page * page);
	assert_int_equal((uintptr_t)base % page, 0);
	for (size_t i = 0; i < memory->mapped; i += 509)
		assert_int_equal(base[i], 0);
	base[0] = base[memory->mapped - 1] = 1;
	hugepages_unmap(memory);
	assert_null(memory->base);
	hugepages_unmap(memory);
}

static void each_kind_or_none(void **state)
{
	static const size_t sizes[] = {1, 4096, 4097, (4 << 20) + 64};

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		for (unsigned pages = PAGES_2M; pages < PAGES_COUNT; pages++) {
			struct hugepages memory;
			int rc = hugepages_map(&memory, sizes[i], (enum pages)pages);

			if (rc == 0) {
				assert_int_equal(memory.pages, pages);
				check(&memory, sizes[i]);
				continue;
			}
			assert_int_equal(rc, -ENOMEM);
			assert_null(memory.base);
			assert_int_not_equal(pages, PAGES_4K); // these are always there
			print_message("no %s pages for %zu bytes\n", hugepages_name((enum pages)pages),
			              sizes[i]);
		}
}

static void best_wastes_no_large_page(void **state)
{
	struct hugepages memory;

	assert_int_equal(hugepages_map(&memory, 1, PAGES_BEST), 0);
	assert_int_equal(memory.pages, PAGES_4K);
	check(&memory, 1);
	assert_int_equal(hugepages_map(&memory, 10000, PAGES_BEST), 0);
	assert_int_equal(memory.pages, PAGES_4K);
	check(&memory, 10000);
	assert_int_equal(hugepages_map(&memory, 8 << 20, PAGES_BEST), 0);
	assert_true(memory.pages >= PAGES_2M);
	check(&memory, 8 << 20);
}

static void too_much_is_refused(void **state)
{
	static const size_t sizes[] = {0, SIZE_MAX, SIZE_MAX / 2, (size_t)1 << 45};

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct hugepages memory;

		assert_int_equal(hugepages_map(&memory, sizes[i], PAGES_BEST), -ENOMEM);
		assert_null(memory.base);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(names_go_both_ways),
	        cmocka_unit_test(each_kind_or_none),
	        cmocka_unit_test(best_wastes_no_large_page),
	        cmocka_unit_test(too_much_is_refused),
	};

	return cmocka_run_group_tests_name("pages", tests, NULL, NULL);
}
