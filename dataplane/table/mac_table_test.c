// SPDX-License-Identifier: BSD-3-Clause
// The table of stations against a plain list of what must be in it, under random operations; full buckets;
// two workers at once. Time is a number here: 1000 cycles a second.
#include <pthread.h>

#include "table/mac_table.h"
#include "test/unit.h"

enum { HZ = 1000, REFRESH = HZ / MAC_TABLE_REFRESH_HZ, STATIONS = 300 };

static uint64_t random_state = 7;

static unsigned random_below(unsigned n)
{
	random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (unsigned)(random_state >> 33) % n;
}

static struct mac_bucket *bucket_of(const struct mac_table *table, uint64_t key)
{
	return mac_table_bucket(table, key);
}

static unsigned lookup(const struct mac_table *t, uint64_t key, uint64_t now, struct mac_counts *c)
{
	return mac_table_lookup(t, bucket_of(t, key), key, now, c);
}

static void learn(const struct mac_table *t, uint64_t key, unsigned port, uint64_t now, struct mac_counts *c)
{
	mac_table_learn(t, bucket_of(t, key), key, port, now, c);
}

// Station n: some differ only in the address, some only in the VLAN.
static uint64_t station_key(unsigned n)
{
	return mac_key(UINT64_C(0x0100a0000002) + ((uint64_t)(n / 3) << 24),
	               (uint16_t)(n % 3 ? 4094 - n % 3 : 0));
}

struct station {
	bool known;
	unsigned port;
	uint64_t seen;
};

static void model_learn(struct station *s, unsigned port, uint64_t now, uint64_t ageing, struct mac_counts *c)
{
	bool old = s->known && ageing && now - s->seen >= ageing;

	c->aged += old;
	c->learned += old || !s->known;
	c->moved += s->known && !old && s->port != port;
	if (!s->known || s->port != port || now - s->seen >= REFRESH)
		s->seen = now;
	s->known = true;
	s->port = port;
}

static unsigned model_lookup(struct station *s, uint64_t now, uint64_t ageing, struct mac_counts *c)
{
	if (s->known && ageing && now - s->seen >= ageing) {
		s->known = false;
		c->aged++;
	}
	return s->known ? s->port : MAC_TABLE_NONE;
}

static void assert_counts(const struct mac_counts *got, const struct mac_counts *wanted)
{
	assert_int_equal(got->learned, wanted->learned);
	assert_int_equal(got->moved, wanted->moved);
	assert_int_equal(got->aged, wanted->aged);
	assert_int_equal(got->replaced, wanted->replaced);
}

static void assert_list(const struct mac_table *table, const struct station *stations, uint64_t now,
                        uint64_t ageing)
{
	unsigned wanted = 0, listed = 0, bucket = 0, n;
	struct mac_entry entries[8];

	for (unsigned i = 0; i < STATIONS; i++)
		wanted += stations[i].known && !(ageing && now - stations[i].seen >= ageing);
	while ((n = mac_table_list(table, &bucket, entries, 8, now)) || bucket < table->bucket_count)
		for (unsigned i = 0; i < n; i++, listed++) {
			uint64_t mac = 0;
			unsigned s = 0;

			memcpy(&mac, entries[i].mac, 6);
			while (station_key(s) != mac_key(mac, entries[i].vlan))
				s++;
			assert_true(s < STATIONS && stations[s].known);
			assert_int_equal(entries[i].port, stations[s].port);
			assert_int_equal(entries[i].age_cycles, now - stations[s].seen);
		}
	assert_int_equal(listed, wanted);
	assert_int_equal(mac_table_count(table, now), wanted);
}

static void run_model(uint64_t ageing, uint64_t seed)
{
	struct mac_table *table = mac_table_create(16384, ageing, HZ, seed);
	struct station stations[STATIONS] = {0};
	struct mac_counts got = {0}, wanted = {0};
	uint64_t now = 5;

	for (unsigned step = 0; step < 20000; step++) {
		unsigned s = random_below(STATIONS), port = random_below(8) ? s % 32 : random_below(32);

		now += random_below(5);
		if (random_below(2)) {
			learn(table, station_key(s), port, now, &got);
			model_learn(&stations[s], port, now, ageing, &wanted);
		}
		s = random_below(STATIONS);
		assert_int_equal(lookup(table, station_key(s), now, &got),
		                 model_lookup(&stations[s], now, ageing, &wanted));
		if (step % 5000 == 4999) {
			assert_list(table, stations, now, ageing);
			assert_counts(&got, &wanted);
		}
	}
	assert_true(wanted.moved > 100);
	assert_true(ageing == 0 || wanted.aged > 100);
	mac_table_destroy(table);
}

// Roomy enough that no bucket is full with these seeds: else replaced would differ from the model's 0.
static void it_does_what_a_list_does(void **state)
{
	for (uint64_t seed = 1; seed <= 3; seed++) {
		run_model(0, seed);
		run_model(2 * HZ, seed);
	}
}

// Whatever is learned is there at once, nothing is twice, and who goes is the one that was silent longest.
static void a_full_bucket_replaces_its_oldest(void **state)
{
	struct mac_table *table = mac_table_create(MAC_TABLE_SIZE_MIN, 0, HZ, 1);
	struct station stations[STATIONS] = {0};
	struct mac_counts counts = {0};
	unsigned known = 0;

	for (unsigned step = 0; step < 5000; step++) {
		uint64_t now = (uint64_t)step * REFRESH, key;
		unsigned s = random_below(STATIONS), oldest = STATIONS, lost = STATIONS, before = 0;

		key = station_key(s);
		for (unsigned i = 0; i < STATIONS; i++)
			if (stations[i].known && bucket_of(table, station_key(i)) == bucket_of(table, key)) {
				before++;
				if (oldest == STATIONS || stations[i].seen < stations[oldest].seen)
					oldest = i;
			}
		learn(table, key, s % 32, now, &counts);
		if (!stations[s].known && before == MAC_TABLE_WAYS)
			lost = oldest;
		stations[s] = (struct station){true, s % 32, now};
		if (lost < STATIONS)
			stations[lost].known = false;
		for (unsigned i = 0; i < STATIONS; i++)
			assert_int_equal(lookup(table, station_key(i), now, &counts),
			                 stations[i].known ? stations[i].port : MAC_TABLE_NONE);
	}
	for (unsigned i = 0; i < STATIONS; i++)
		known += stations[i].known;
	assert_int_equal(known, MAC_TABLE_SIZE_MIN);
	assert_int_equal(counts.learned, counts.replaced + known);
	assert_int_equal(counts.aged + counts.moved, 0);
	assert_int_equal(mac_table_flush(table, 0), known);
	assert_int_equal(mac_table_count(table, 0), 0);
	mac_table_destroy(table);
}

// What is too old makes room before what is merely the oldest, and is not called replaced.
static void old_entries_make_room(void **state)
{
	struct mac_table *table = mac_table_create(MAC_TABLE_SIZE_MIN, 10 * HZ, HZ, 1);
	struct mac_counts counts = {0};

	for (unsigned i = 0; i < STATIONS; i++)
		learn(table, station_key(i), 1, 0, &counts);
	assert_int_equal(mac_table_count(table, 10 * HZ - 1), MAC_TABLE_SIZE_MIN);
	assert_int_equal(mac_table_count(table, 10 * HZ), 0);
	assert_int_equal(counts.aged, 0);
	counts = (struct mac_counts){0};
	for (unsigned i = 0; i < STATIONS && counts.learned < 3; i++)
		learn(table, station_key(i), 2, 10 * HZ, &counts);
	assert_int_equal(counts.learned, 3);
	assert_int_equal(counts.aged, 3);
	assert_int_equal(counts.replaced, 0);
	mac_table_destroy(table);
}

// The address 0 is like no entry, and must not be found in an empty way. Time of another CPU may be ahead.
static void odd_cases(void **state)
{
	struct mac_table *table = mac_table_create(MAC_TABLE_SIZE_MIN, HZ, HZ, 1);
	struct mac_counts counts = {0};
	uint64_t widest = mac_key(MAC_BITS & ~UINT64_C(1), 4095);

	assert_int_equal(lookup(table, mac_key(0, 0), 0, &counts), MAC_TABLE_NONE);
	learn(table, widest, 31, 1000, &counts);
	assert_int_equal(lookup(table, widest, 400, &counts), 31);
	learn(table, widest, 31, 400, &counts);
	assert_int_equal(lookup(table, widest, 1999, &counts), 31);
	assert_int_equal(lookup(table, widest, 2000, &counts), MAC_TABLE_NONE);
	assert_int_equal(counts.aged, 1);
	assert_int_equal(counts.learned, 1);
	assert_int_equal(counts.moved, 0);
	mac_table_destroy(table);
}

struct worker {
	pthread_t thread;
	struct mac_table *table;
	uint64_t seed;
	unsigned wrong;
};

// Each station is always at the same port: no worker may ever see another one.
static void *work(void *argument)
{
	struct worker *w = argument;
	struct mac_counts counts = {0};
	uint64_t x = w->seed;

	for (unsigned step = 0; step < 200000; step++) {
		unsigned s, port;

		x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
		s = (unsigned)(x >> 33) % STATIONS;
		learn(w->table, station_key(s), s % 32, step, &counts);
		s = (unsigned)(x >> 20) % STATIONS;
		port = lookup(w->table, station_key(s), step, &counts);
		w->wrong += port != MAC_TABLE_NONE && port != s % 32;
	}
	return NULL;
}

static void two_workers_never_mix_entries_up(void **state)
{
	struct mac_table *table = mac_table_create(64, 100, HZ, 1);
	struct worker workers[2] = {{.table = table, .seed = 1}, {.table = table, .seed = 2}};
	struct mac_entry entries[64];
	unsigned bucket = 0, n;

	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(workers[i].thread, NULL);
	assert_int_equal(workers[0].wrong + workers[1].wrong, 0);
	n = mac_table_list(table, &bucket, entries, 64, 0);
	assert_true(n > 0);
	for (unsigned i = 0; i < n; i++)
		for (unsigned j = 0; j < i; j++)
			assert_true(entries[i].vlan != entries[j].vlan ||
			            memcmp(entries[i].mac, entries[j].mac, 6) != 0);
	mac_table_destroy(table);
}

// Addresses in a row, as a hypervisor hands them out, whatever the factors: a table that is a tenth full
// keeps nearly all of them. With random places about one seed in seventy loses one, and hardly any three.
static void addresses_in_a_row_spread(void **state)
{
	enum { IN_A_ROW = 100, SEEDS = 2000 };
	unsigned losing = 0;

	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct mac_table *table = mac_table_create(1024, 0, HZ, seed);
		struct mac_counts counts = {0};

		for (uint64_t i = 0; i < IN_A_ROW; i++)
			learn(table, mac_key(2 | i << 40, 0), 1, 1, &counts);
		losing += counts.replaced > 0;
		assert_in_range(counts.replaced, 0, 10);
		mac_table_destroy(table);
	}
	assert_in_range(losing, 1, SEEDS / 25);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(it_does_what_a_list_does),
	        cmocka_unit_test(a_full_bucket_replaces_its_oldest),
	        cmocka_unit_test(old_entries_make_room),
	        cmocka_unit_test(odd_cases),
	        cmocka_unit_test(two_workers_never_mix_entries_up),
	        cmocka_unit_test(addresses_in_a_row_spread),
	};

	return cmocka_run_group_tests_name("mac_table", tests, NULL, NULL);
}
