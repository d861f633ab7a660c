// SPDX-License-Identifier: BSD-3-Clause
// Translation of guest addresses: to the byte, and never one beyond.
#include <errno.h>

#include "shm/guest_memory.h"
#include "test/unit.h"

static uint8_t low[256], high[64];

static struct guest_memory two_regions(void)
{
	struct guest_memory memory = {0};

	assert_int_equal(guest_memory_add(&memory, 0x1000, sizeof(low), low), 0);
	assert_int_equal(guest_memory_add(&memory, 0x9000, sizeof(high), high), 0);
	return memory;
}

static void to_the_byte(void **state)
{
	static const struct {
		uint64_t address;
		uint32_t length, follows;
		const uint8_t *host; // NULL: not the guest's
	} cases[] = {
	        {0x1000, 256, 256, low},   {0x1000, 257, 256, low},
	        {0x10ff, 1, 1, low + 255}, {0x10ff, UINT32_MAX, 1, low + 255},
	        {0x9000, 64, 64, high},    {0x903f, 2, 1, high + 63},
	        {0x1100, 1, 0, NULL},      {0xfff, 2, 0, NULL},
	        {0x8fff, 1, 0, NULL},      {0x9040, 1, 0, NULL},
	        {0, 1, 0, NULL},           {UINT64_MAX, UINT32_MAX, 0, NULL},
	};
	struct guest_memory memory = two_regions();
	unsigned last = 0;

	for (unsigned pass = 0; pass < 2; pass++) // whatever was hit before
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			uint32_t length = cases[i].length;
			const uint8_t *host = guest_memory_run(&memory, &last, cases[i].address, &length);

			assert_ptr_equal(host, cases[i].host);
			if (host)
				assert_int_equal(length, cases[i].follows);
		}
}

static void no_memory_has_no_address(void **state)
{
	struct guest_memory memory = {0};
	unsigned last = 0;
	uint32_t length = 1;

	assert_null(guest_memory_run(&memory, &last, 0, &length));
}

static void impossible_regions_are_refused(void **state)
{
	struct guest_memory memory = {0};

	assert_int_equal(guest_memory_add(&memory, 0x1000, 0, low), -EINVAL);
	assert_int_equal(guest_memory_add(&memory, UINT64_MAX - 10, 11, low), -EINVAL);
	assert_int_equal(guest_memory_add(&memory, 0, UINT64_MAX, low), -EINVAL);
	for (unsigned i = 0; i < GUEST_REGIONS_MAX; i++)
		assert_int_equal(guest_memory_add(&memory, UINT64_C(4096) * i, 16, low), 0);
	assert_int_equal(guest_memory_add(&memory, 1 << 20, 16, low), -ENOSPC);
}

static void what_it_holds(void **state)
{
	struct guest_memory memory = two_regions();

	assert_true(guest_memory_holds(&memory, low, 256));
	assert_true(guest_memory_holds(&memory, high + 63, 1));
	assert_false(guest_memory_holds(&memory, low, 257));
	assert_false(guest_memory_holds(&memory, low + 255, 2));
	assert_false(guest_memory_holds(&memory, (void *)((uintptr_t)low - 1), 2));
	assert_false(guest_memory_holds(&memory, NULL, 1));
	assert_false(guest_memory_holds(&memory, low, UINT64_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(to_the_byte),
	        cmocka_unit_test(no_memory_has_no_address),
	        cmocka_unit_test(what_it_holds),
	        cmocka_unit_test(impossible_regions_are_refused),
	};

	return cmocka_run_group_tests_name("guest_memory", tests, NULL, NULL);
}
