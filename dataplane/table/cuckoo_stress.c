// SPDX-License-Identifier: BSD-3-Clause
// Readers look up while a writer inserts, deletes, replaces and moves entries in a nearly full table. A key
// that is there throughout must be found, with a value that it had meanwhile; one that comes and goes has its
// own value or none. Both widths, all instruction sets in turn. The same program is built with
// ThreadSanitizer, too (meson.build).
//
//     cuckoo_stress [OPERATIONS [READERS [SEED]]]     OPERATIONS of the writer for each width; 1 if one was
//     wrong
#include <pthread.h>
#include <stdio.h>

#include "table/cuckoo_any.h"
#include "base/isa.h"

enum {
	ENTRIES = 4096, // so few that reader and writer meet
	STEADY = ENTRIES / 3,
	REPLACED = 2 * ENTRIES / 3, // from STEADY on: replaced again and again
	KEYS = 2 * ENTRIES,         // from REPLACED on: come and go
	VALUES = UINT16_MAX,
	WIDTHS = 2,
	READERS_MAX = 16,
};

#if defined(__SANITIZE_THREAD__)
enum { ISAS = 1 }; // all are the scalar code: cuckoo_find.c
#else
enum { ISAS = ISA_COUNT };
#endif

struct stress {
	struct any any;
	// How often a key has been replaced for certain, and perhaps. Its value says how
	// often.
	_Atomic uint64_t done[KEYS], begun[KEYS];
	_Atomic bool over;
	bool there[KEYS]; // the writer's
	uint64_t puts, deletes, replaced;
};

struct reader {
	pthread_t thread;
	struct stress *stress;
	uint64_t random;
	_Atomic uint64_t lookups; // the writer goes on until all have looked up enough
	uint64_t steady, replaced, found, absent, wrong;
};

static uint16_t value_of(uint64_t n)
{
	return (uint16_t)(n % VALUES + 1);
}

// --- Readers -----------------------------------------------------------------------------------------------

// value lies between how often the key had been replaced before and perhaps after the lookup.
static bool was_meanwhile(uint16_t value, uint64_t before, uint64_t after)
{
	return value != CUCKOO_NONE && (value - 1u + VALUES - before % VALUES) % VALUES <= after - before;
}

static void judge(struct reader *reader, uint64_t n, uint16_t value, uint64_t before)
{
	bool right;

	if (n < STEADY) {
		right = value == value_of(n);
		reader->steady++;
	} else if (n < REPLACED) {
		right = was_meanwhile(value, before,
		                      atomic_load_explicit(&reader->stress->begun[n], memory_order_acquire));
		reader->replaced++;
	} else {
		right = value == CUCKOO_NONE || value == value_of(n);
		reader->found += value != CUCKOO_NONE;
		reader->absent += value == CUCKOO_NONE;
	}
	reader->wrong += !right;
}

static void look_up_some(struct reader *reader)
{
	struct stress *stress = reader->stress;
	uint64_t ns[CUCKOO_BULK_MAX], before[CUCKOO_BULK_MAX];
	uint16_t values[CUCKOO_BULK_MAX];
	unsigned length = 1 + (unsigned)any_below(&reader->random, CUCKOO_BULK_MAX);

	for (unsigned i = 0; i < length; i++) {
		ns[i] = any_below(&reader->random, KEYS);
		before[i] = atomic_load_explicit(&stress->done[ns[i]], memory_order_acquire);
	}
	any_find(&stress->any, ns, length, values);
	for (unsigned i = 0; i < length; i++)
		judge(reader, ns[i], values[i], before[i]);
	// A reader that had its CPU while the writer had none counts from when it has met each kind of key.
	if (reader->steady && reader->replaced && reader->found && reader->absent)
		atomic_store_explicit(&reader->lookups,
		                      atomic_load_explicit(&reader->lookups, memory_order_relaxed) + length,
		                      memory_order_relaxed);
}

static void *read_on(void *argument)
{
	struct reader *reader = argument;

	while (!atomic_load_explicit(&reader->stress->over, memory_order_relaxed))
		look_up_some(reader);
	return NULL;
}

// --- The writer --------------------------------------------------------------------------------------------

static void check(bool right, const char *what)
{
	if (!right) {
		printf("the writer: %s\n", what);
		exit(1);
	}
}

static void replace(struct stress *stress, uint64_t n)
{
	uint64_t times = stress->done[n] + 1;
	uint16_t old;

	atomic_store_explicit(&stress->begun[n], times, memory_order_release);
	check(any_put(&stress->any, n, value_of(times), &old) == 0, "a key could not be replaced");
	check(old == value_of(times - 1), "a key had not the value that it was given");
	atomic_store_explicit(&stress->done[n], times, memory_order_release);
	stress->replaced++;
}

static void come_or_go(struct stress *stress, uint64_t n)
{
	uint16_t old;

	if (stress->there[n]) {
		check(any_delete(&stress->any, n) == value_of(n),
		      "a key was not there, or with another value");
		stress->there[n] = false;
		stress->deletes++;
	} else if (any_put(&stress->any, n, value_of(n), &old) == 0) {
		check(old == CUCKOO_NONE, "a key was there");
		stress->there[n] = true;
		stress->puts++;
	}
}

// Nearly full: while there is room, keys come; then as many go as come.
static void change(struct stress *stress, uint64_t *random)
{
	uint64_t n = STEADY + any_below(random, KEYS - STEADY);
	struct cuckoo_stats stats = any_stats(&stress->any);
	uint64_t percent = stress->any.width == CUCKOO_WIDE ? 88 : 95;

	if (n < REPLACED)
		replace(stress, n);
	else if (stress->there[n] || stats.entries * 100 < stats.room * percent)
		come_or_go(stress, n);
}

static void fill(struct stress *stress)
{
	uint16_t old;

	for (uint64_t n = 0; n < REPLACED; n++)
		check(any_put(&stress->any, n, value_of(n < STEADY ? n : 0), &old) == 0, "no room");
}

static bool is_enough(const struct reader *readers, unsigned count, uint64_t operations)
{
	for (unsigned i = 0; i < count; i++)
		if (atomic_load_explicit(&readers[i].lookups, memory_order_relaxed) < operations)
			return false;
	return true;
}

static void write_on(struct stress *stress, const struct reader *readers, unsigned count, uint64_t operations,
                     uint64_t seed)
{
	uint64_t random = seed;

	for (uint64_t i = 0; i < operations || !is_enough(readers, count, operations); i++)
		change(stress, &random);
	atomic_store(&stress->over, true);
}

// --- Together ----------------------------------------------------------------------------------------------

// What was not tried was not shown.
static bool report(const struct stress *stress, const struct reader *readers, unsigned count)
{
	struct cuckoo_stats stats = any_stats(&stress->any);
	uint64_t wrong = 0;
	bool tried = stress->puts && stress->deletes && stress->replaced && stats.moves;

	printf("%s %s: %lu puts, %lu deletes, %lu replaced, %lu moves, longest path %u, %lu of %lu entries\n",
	       stress->any.width == CUCKOO_WIDE ? "wide" : "narrow", isa_text(isa_current()), stress->puts,
	       stress->deletes, stress->replaced, stats.moves, stats.longest_path, stats.entries, stats.room);
	for (unsigned i = 0; i < count; i++) {
		const struct reader *r = &readers[i];

		printf("  reader %u: %lu steady, %lu replaced, %lu found, %lu absent, %lu WRONG\n", i,
		       r->steady, r->replaced, r->found, r->absent, r->wrong);
		wrong += r->wrong;
		tried = tried && r->steady && r->replaced && r->found && r->absent;
	}
	if (!tried)
		printf("not everything was tried\n");
	return tried && wrong == 0;
}

static bool run(enum cuckoo_width width, uint64_t operations, unsigned count, uint64_t seed)
{
	struct reader readers[READERS_MAX] = {0};
	struct stress *stress = calloc(1, sizeof(*stress));
	bool good;

	check(stress && any_create(&stress->any, width, ENTRIES, seed, PAGES_4K) == 0, "no memory");
	stress->any.kind = ANY_OVERLAP;
	fill(stress);
	for (unsigned i = 0; i < count; i++) {
		readers[i].stress = stress;
		readers[i].random = seed * 1000 + i + 1;
		check(pthread_create(&readers[i].thread, NULL, read_on, &readers[i]) == 0, "no thread");
	}
	write_on(stress, readers, count, operations, seed);
	for (unsigned i = 0; i < count; i++)
		pthread_join(readers[i].thread, NULL);
	good = report(stress, readers, count);
	cuckoo_destroy(stress->any.table);
	free(stress);
	return good;
}

int main(int argc, char **argv)
{
	uint64_t operations = argc > 1 ? strtoull(argv[1], NULL, 0) : 1000000;
	unsigned readers = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 0) : 2;
	uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 0) : 1;
	bool good = true;

	if (operations == 0 || readers == 0 || readers > READERS_MAX || seed == 0) {
		fprintf(stderr,
		        "usage: cuckoo_stress [OPERATIONS [READERS [SEED]]], READERS 1 to %d, none 0\n",
		        READERS_MAX);
		return 2;
	}
	for (unsigned isa = 0; isa < ISAS; isa++) {
		if (!isa_supported((enum isa)isa))
			continue;
		isa_force(isa_text((enum isa)isa));
		for (unsigned width = 0; width < WIDTHS; width++)
			good = run((enum cuckoo_width)width, operations, readers, seed + isa) && good;
	}
	return good ? 0 : 1;
}
