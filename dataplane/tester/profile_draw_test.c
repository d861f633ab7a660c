// SPDX-License-Identifier: BSD-3-Clause
// What a profile draws: sizes in exact proportions, flows, addresses in turn, and the frequencies of the
// theory; the same whatever the order in which the numbers are asked for.
#include <math.h>

#include "base/random.h"
#include "tester/profile_rig.h"

static void proportions_are_exact_over_each_round(void **state)
{
	struct profile *p = make("{\"sizes\": [[64, 700], [594, 400], [1518, 100]], \"seed\": 9}");
	unsigned in_order = 0;
	uint8_t before = 0;

	assert_int_equal(p->round_length, 12);
	assert_true(fabs(p->mean_frame_bytes - (7 * 64 + 4 * 594 + 1518) / 12.0) < 1e-9);
	for (uint64_t k = 0; k < 12000; k += 12) {
		unsigned seen[3] = {0};

		profile_draw(p, k, 12);
		for (unsigned i = 0; i < 12; i++) {
			seen[profile_drawn(p, k + i)->size]++;
			in_order += profile_drawn(p, k + i)->size >= before;
			before = profile_drawn(p, k + i)->size;
		}
		assert_int_equal(seen[0], 7);
		assert_int_equal(seen[1], 4);
		assert_int_equal(seen[2], 1);
	}
	assert_true(in_order < 11000); // shuffled
	profile_free(p);
}

static void draws_repeat_by_number(void **state)
{
	static const char *const texts[] = {
	        "{\"sizes\": [[64, 3], [70, 2]], \"seed\": 1, \"dst_mac_count\": 7, \"flows\": {\"count\": "
	        "1000003, \"draw\": \"uniform\"}}",
	        "{\"seed\": 1, \"ip\": 6, \"flows\": {\"count\": 12345, \"draw\": \"zipf\"}}",
	};

	for (unsigned i = 0; i < RTE_DIM(texts); i++) {
		struct profile *a = make(texts[i]), *b = make(texts[i]);
		uint8_t one[ROOM], other[ROOM];
		uint64_t x = 1;

		for (unsigned n = 0; n < 2000; n++) {
			uint64_t k = n ? x % 100000 : UINT64_C(1) << 33;
			uint64_t first = k - k % BURST;
			uint32_t length = frame_of(a, k, 0, one);

			profile_draw(b, first, BURST); // amid a burst, in another order
			frame_fill_payload(other, ROOM);
			profile_write(b, (uint8_t *[]){other}, k, 1);
			assert_memory_equal(one, other, length);
			x = x * 6364136223846793005u + 1442695040888963407u;
		}
		profile_free(a);
		profile_free(b);
	}
}

static void seeds_and_streams_differ(void **state)
{
	struct profile *a = make("{\"seed\": 1, \"flows\": {\"count\": 16777216, \"draw\": \"uniform\"}}"),
	               *b = make("{\"seed\": 2, \"flows\": {\"count\": 16777216, \"draw\": \"uniform\"}}");
	unsigned same = 0;

	for (uint64_t k = 0; k < 6400; k += BURST) {
		profile_draw(a, k, BURST);
		profile_draw(b, k, BURST);
		for (unsigned i = 0; i < BURST; i++)
			same += profile_drawn(a, k + i)->flow == profile_drawn(b, k + i)->flow;
	}
	assert_true(same < 3);
	profile_free(a);
	profile_free(b);
}

// Round robin meets each flow once, and no two have address and port in common.
static void flows_are_distinct(void **state)
{
	enum { FLOWS = 100000 };
	struct profile *p = make("{\"flows\": {\"count\": 100000}}");
	uint8_t *seen = calloc(1024 * 16384 / 8, 1), data[ROOM];
	json_t *report;

	for (uint64_t k = 0; k < FLOWS; k++) {
		uint32_t length = frame_of(p, k, 0, data), at;

		assert_true(length > 0);
		at = (uint32_t)((data[28] << 8 | data[29]) - (3 << 8 | 1)) * 16384 +
		     (uint32_t)((data[34] << 8 | data[35]) - 49152);
		assert_true(at < 1024 * 16384);
		assert_false(seen[at / 8] & 1 << at % 8);
		seen[at / 8] |= (uint8_t)(1 << at % 8);
		profile_count(p, k, 1);
	}
	report = profile_report(p, true);
	assert_int_equal(json_integer_value(json_object_get(report, "flows_sent")), FLOWS);
	assert_int_equal(json_integer_value(json_object_get(report, "bytes")), FLOWS * 128);
	json_decref(report);
	free(seen);
	profile_free(p);
}

// Chi-squared of 100 classes, 99 degrees of freedom: the 99.99th percentile is 161.
static void assert_fits(const unsigned *seen, const double *share, unsigned n, double draws)
{
	double chi = 0;

	for (unsigned i = 0; i < n; i++)
		chi += (seen[i] - share[i] * draws) * (seen[i] - share[i] * draws) / (share[i] * draws);
	assert_true(chi < 161);
	assert_true(chi > 50); // and not better than chance
}

static void frequencies_are_the_theory_s(void **state)
{
	static const double exponents[] = {0, 0.1, 0.7, 1, 1.3, 4};
	enum { FLOWS = 100, DRAWS = 2000000 };

	for (unsigned i = 0; i < RTE_DIM(exponents); i++) {
		unsigned seen[FLOWS] = {0}, count = exponents[i] == 4 ? 20 : FLOWS;
		double share[FLOWS], sum = 0;
		struct profile *p;
		char text[160];

		if (exponents[i] == 0)
			snprintf(text, sizeof(text),
			         "{\"seed\": 5, \"flows\": {\"count\": %u, \"draw\": \"uniform\"}}", count);
		else
			snprintf(text, sizeof(text),
			         "{\"seed\": 5, \"flows\": {\"count\": %u, \"draw\": \"zipf\", \"exponent\": "
			         "%.1f}}",
			         count, exponents[i]);
		p = make(text);
		for (uint64_t k = 0; k < DRAWS; k += BURST) {
			profile_draw(p, k, BURST);
			for (unsigned at = 0; at < BURST; at++)
				seen[profile_drawn(p, k + at)->flow]++;
		}
		for (unsigned at = 0; at < count; at++)
			sum += share[at] = pow(at + 1, -exponents[i]);
		for (unsigned at = 0; at < count; at++)
			share[at] /= sum;
		if (count == FLOWS)
			assert_fits(seen, share, count, DRAWS);
		else
			for (unsigned at = 0; at < count; at++)
				assert_true(fabs(seen[at] - share[at] * DRAWS) <
				            5 * sqrt(share[at] * DRAWS) + 1);
		profile_free(p);
	}
}

// Summed over all rows, each gets just its part: exact, without draws.
static void alias_tables_conserve(void **state)
{
	static const uint32_t counts[] = {1, 2, 3, 10, 1000, 1 << 20};

	for (unsigned i = 0; i < RTE_DIM(counts); i++)
		for (double exponent = 0.1; exponent < 4; exponent += 0.6) {
			struct alias *table = alias_make_zipf(counts[i], exponent);
			double *part = calloc(counts[i], sizeof(*part)), sum = 0;

			for (uint32_t row = 0; row < counts[i]; row++) {
				part[row] += table[row].share / 0x1p32;
				part[table[row].other] += 1 - table[row].share / 0x1p32;
				sum += pow(row + 1.0, -exponent);
			}
			for (uint32_t row = 0; row < counts[i]; row++)
				assert_true(fabs(part[row] / counts[i] - pow(row + 1.0, -exponent) / sum) <
				            1e-9);
			free(part);
			free(table);
		}
}

static void macs_take_turns(void **state)
{
	struct profile *p = make("{\"dst_mac_count\": 300}");
	uint8_t data[ROOM];

	for (uint64_t k = 0; k < 900; k++) {
		unsigned last = (STREAM + k % 300);

		frame_of(p, k, 0, data);
		assert_int_equal(data[5], last & 0xff);
		assert_int_equal(data[4], 1 + (last >> 8));
		profile_count(p, k, 1);
	}
	for (unsigned i = 0; i < 300; i++)
		assert_int_equal(p->ledger.macs[i], 3);
	profile_free(p);
	p = make("{\"dst_macs\": [\"02:aa:00:00:00:01\", \"02:bb:00:00:00:02\"]}");
	frame_of(p, 1, 0, data);
	assert_memory_equal(data, ((uint8_t[]){2, 0xbb, 0, 0, 0, 2}), 6);
	profile_free(p);
}

static json_int_t number_of(struct profile *p, const char *key)
{
	json_t *report = profile_report(p, true);
	json_int_t number = json_integer_value(json_object_get(report, key));

	json_decref(report);
	return number;
}

// Every address of every MAC is met as often as the others, and what was met is counted by its pair.
static void a_range_is_met_evenly_and_counted(void **state)
{
	enum { COUNT = 50, MACS = 2, DRAWS = 200000 };
	struct profile *p =
	        make("{\"seed\": 5, \"dst_mac_count\": 2, \"dst_ips\": {\"first\": \"10.255.255.250\", "
	             "\"count\": 50, \"of_each_mac\": true}}");
	unsigned seen[MACS * COUNT] = {0};
	double share[MACS * COUNT];
	json_int_t distinct = 0;
	uint8_t data[ROOM];

	for (uint64_t k = 700; k < 700 + DRAWS; k++) {
		uint32_t address, at;

		frame_of(p, k, 0, data);
		memcpy(&address, data + 30, sizeof(address));
		at = rte_be_to_cpu_32(address) - RTE_IPV4(10, 255, 255, 250);
		assert_true(at < COUNT);
		at += (uint32_t)(k % MACS) * COUNT;
		distinct += seen[at]++ == 0;
		profile_count(p, k, 1);
		if (k < 760)
			assert_int_equal(number_of(p, "entries_touched"), distinct);
	}
	for (unsigned at = 0; at < MACS * COUNT; at++)
		share[at] = 1.0 / (MACS * COUNT);
	assert_fits(seen, share, MACS * COUNT, DRAWS);
	assert_int_equal(number_of(p, "entries_touched"), distinct);
	assert_int_equal(number_of(p, "entries"), MACS * COUNT);
	profile_clear(p);
	assert_int_equal(number_of(p, "entries_touched"), 0);
	profile_free(p);
}

// Of 32 bits of a hash two would become one in three addresses, and one each of the others.
static void billions_are_met_evenly(void **state)
{
	struct profile *p =
	        make("{\"seed\": 5, \"dst_ips\": {\"first\": \"0.0.0.0\", \"count\": 3221225472}}");
	enum { DRAWS = 320000 };
	unsigned seen[3] = {0};

	for (uint64_t k = 0; k < DRAWS; k += BURST) {
		profile_draw(p, k, BURST);
		for (unsigned i = 0; i < BURST; i++)
			seen[profile_drawn(p, k + i)->place % 3]++;
	}
	for (unsigned i = 0; i < 3; i++)
		assert_in_range(seen[i], DRAWS / 3 - 1400, DRAWS / 3 + 1400); // 5 deviations
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(proportions_are_exact_over_each_round),
	        cmocka_unit_test(draws_repeat_by_number),
	        cmocka_unit_test(seeds_and_streams_differ),
	        cmocka_unit_test(flows_are_distinct),
	        cmocka_unit_test(frequencies_are_the_theory_s),
	        cmocka_unit_test(alias_tables_conserve),
	        cmocka_unit_test(macs_take_turns),
	        cmocka_unit_test(a_range_is_met_evenly_and_counted),
	        cmocka_unit_test(billions_are_met_evenly),
	};

	return cmocka_run_group_tests_name("profile_draw", tests, NULL, NULL);
}
