// SPDX-License-Identifier: BSD-3-Clause
// Boundaries, overflow, order and merging of the latency histogram.
#include "tester/histogram.h"
#include "test/unit.h"

// HdrHistogram 1..10^10 with 3 digits: value, index, lowest value of the bucket. Taken from the definition at
// hdrhistogram.org: sub-buckets of 2048, indices continue by 1024 for each doubling.
static const struct {
	uint64_t value_ns;
	uint32_t index;
	uint64_t lowest_ns;
} table[] = {
        {0, 0, 0},
        {1, 1, 1},
        {2047, 2047, 2047},
        {2048, 2048, 2048},
        {2049, 2048, 2048},
        {2050, 2049, 2050},
        {4095, 3071, 4094},
        {4096, 3072, 4096},
        {4099, 3072, 4096},
        {8192, 4096, 8192},
        {1000000, 9 * 1024 + 1953, 999936},
        {HISTOGRAM_HIGHEST_NS, 23 * 1024 + 1192, UINT64_C(1192) << 23},
};

static void boundaries_are_hdr_histograms(void **state)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		assert_int_equal(histogram_index(table[i].value_ns), table[i].index);
		assert_int_equal(histogram_value_ns(table[i].index), table[i].lowest_ns);
	}
	assert_int_equal(HISTOGRAM_BUCKETS, 25600); // counts_array_length of HdrHistogram for this range
}

static void buckets_are_contiguous_and_precise(void **state)
{
	for (uint32_t i = 1; i <= histogram_index(HISTOGRAM_HIGHEST_NS); i++) {
		uint64_t lowest = histogram_value_ns(i);

		assert_int_equal(histogram_index(lowest), i);
		assert_int_equal(histogram_index(lowest - 1), i - 1);
		if (i > 1) // three digits
			assert_true((lowest - histogram_value_ns(i - 1)) * 1000 <= lowest || lowest <= 2048);
	}
}

static void overflow_is_counted_apart(void **state)
{
	struct histogram *h = histogram_create();
	uint32_t index = 0;
	uint64_t value, count;

	histogram_record(h, HISTOGRAM_HIGHEST_NS);
	histogram_record(h, HISTOGRAM_HIGHEST_NS + 1);
	histogram_record(h, UINT64_MAX);
	assert_int_equal(h->total, 1);
	assert_int_equal(h->overflow, 2);
	assert_true(histogram_next(h, &index, &value, &count));
	assert_int_equal(histogram_index(value), histogram_index(HISTOGRAM_HIGHEST_NS));
	assert_false(histogram_next(h, &index, &value, &count));
	assert_false(histogram_next(h, &index, &value, &count)); // the end stays the end
	free(h);
}

static void reset_is_empty(void **state)
{
	struct histogram *empty = histogram_create(), *h = histogram_create();

	for (uint64_t i = 0; i < 10000; i++)
		histogram_record(h, i * i * 107 + 1); // beyond the highest at the end
	assert_true(h->overflow > 0);
	histogram_reset(h);
	assert_memory_equal(h, empty, sizeof(*h));
	free(empty);
	free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(boundaries_are_hdr_histograms),
	        cmocka_unit_test(buckets_are_contiguous_and_precise),
	        cmocka_unit_test(overflow_is_counted_apart),
	        cmocka_unit_test(reset_is_empty),
	};

	return cmocka_run_group_tests_name("histogram", tests, NULL, NULL);
}
