// SPDX-License-Identifier: BSD-3-Clause
// What fib_bench measures of our own table, and of the bare memory under it.
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "fib/fib_bench.h"

// --- Bare reads: a cache line for each key, as many misses at once as the core can have -------------------

static inline uint64_t read_line(const char *line)
{
	return *(const volatile uint64_t *)(const volatile void *)line;
}

// The levels of __builtin_prefetch(): 3 is the first-level cache, 2 the second.
#define READ_LINES(name, ahead, level)                                                                       \
	static uint64_t name(struct bench *bench)                                                            \
	{                                                                                                    \
		const char *memory = bench->memory;                                                          \
		uint64_t sum = 0;                                                                            \
                                                                                                             \
		for (unsigned i = 0; i < (ahead); i++)                                                       \
			__builtin_prefetch(memory + bench->at[i], 0, level);                                 \
		for (unsigned i = 0; i < BLOCK; i++) {                                                       \
			if (i + (ahead) < BLOCK)                                                             \
				__builtin_prefetch(memory + bench->at[i + (ahead)], 0, level);               \
			sum += read_line(memory + bench->at[i]);                                             \
		}                                                                                            \
		bench->sum += sum;                                                                           \
		return BLOCK;                                                                                \
	}

READ_LINES(bare_first, 64, 3)
READ_LINES(bare_64, 64, 2)
READ_LINES(bare_128, 128, 2)

// As a lookup has to: all of a bulk prefetched, then all read.
static uint64_t bare_bulk(struct bench *bench)
{
	const char *memory = bench->memory;
	uint64_t sum = 0;

	for (unsigned i = 0; i < BLOCK; i += CUCKOO_BULK_MAX) {
		for (unsigned j = i; j < i + CUCKOO_BULK_MAX; j++)
			__builtin_prefetch(memory + bench->at[j], 0, 2);
		for (unsigned j = i; j < i + CUCKOO_BULK_MAX; j++)
			sum += read_line(memory + bench->at[j]);
	}
	bench->sum += sum;
	return BLOCK;
}

// --- Lookups -----------------------------------------------------------------------------------------------

static uint64_t find(struct bench *bench, unsigned bulk)
{
	if (bench->any.width == CUCKOO_WIDE)
		for (unsigned i = 0; i < BLOCK; i += bulk)
			cuckoo_wide_find(bench->any.table, bench->wide + i, bulk, bench->values + i);
	else
		for (unsigned i = 0; i < BLOCK; i += bulk)
			cuckoo_find(bench->any.table, bench->keys + i, bulk, bench->values + i);
	return BLOCK;
}

static uint64_t find_32(struct bench *bench)
{
	return find(bench, 32);
}

static uint64_t find_64(struct bench *bench)
{
	return find(bench, 64);
}

// --- Updates -----------------------------------------------------------------------------------------------

static uint64_t replace(struct bench *bench)
{
	for (unsigned i = 0; i < BLOCK; i++) {
		uint16_t old;

		if (i + AHEAD < BLOCK)
			any_prefetch(&bench->any, bench->ns[i + AHEAD]);
		if (any_put(&bench->any, bench->ns[i], bench_value(bench->ns[i]), &old) || old == CUCKOO_NONE)
			bench_die("key %lu could not be replaced", bench->ns[i]);
	}
	return BLOCK;
}

// All of the block go, then they come again: the table is as full as before, and nobody finds his old place
// only because it was just given up.
static uint64_t delete_put(struct bench *bench)
{
	uint64_t operations = BLOCK;
	uint16_t old;

	for (unsigned i = 0; i < BLOCK; i++) {
		if (i + AHEAD < BLOCK)
			any_prefetch(&bench->any, bench->ns[i + AHEAD]);
		if (any_delete(&bench->any, bench->ns[i]) == CUCKOO_NONE)
			operations--; // twice in the block
	}
	for (unsigned i = 0; i < BLOCK; i++) {
		if (i + AHEAD < BLOCK)
			any_prefetch(&bench->any, bench->ns[i + AHEAD]);
		if (any_put(&bench->any, bench->ns[i], bench_value(bench->ns[i]), &old))
			bench_die("no room for key %lu", bench->ns[i]);
	}
	return operations + BLOCK;
}

const struct bench_case bench_cases[] = {
        {"bare_first", false, false, bare_first}, {"bare_64", false, false, bare_64},
        {"bare_128", false, false, bare_128},     {"bare_bulk", false, false, bare_bulk},
        {"find_32", false, false, find_32},       {"find_64", false, false, find_64},
        {"absent_64", true, false, find_64},      {"replace", false, false, replace},
        {"delete_put", false, false, delete_put},
};
const unsigned bench_case_count = sizeof(bench_cases) / sizeof(*bench_cases);

// --- Building, saving, loading ---------------------------------------------------------------------------

static void put_range(struct bench *bench, uint64_t from, uint64_t to)
{
	for (uint64_t n = from; n < to; n++) {
		uint16_t old;

		any_prefetch(&bench->any, n + AHEAD);
		if (any_put(&bench->any, n, bench_value(n), &old) || old)
			bench_die("no room for key %lu", n);
	}
}

void bench_build(struct bench *bench)
{
	uint64_t begun = bench_cycles(), last_tenth = bench->entries - bench->entries / 10, late, ended;

	put_range(bench, 0, last_tenth);
	late = bench_cycles();
	put_range(bench, last_tenth, bench->entries);
	ended = bench_cycles();
	printf("{\"case\": \"build\", \"per_second\": %.0f, \"last_tenth_per_second\": %.0f}\n",
	       (double)bench->entries * bench->tsc_hz / (double)(ended - begun),
	       (double)(bench->entries - last_tenth) * bench->tsc_hz / (double)(ended - late));
	fflush(stdout);
}

static void print_seconds(const struct bench *bench, const char *name, uint64_t begun, off_t bytes)
{
	printf("{\"case\": \"%s\", \"seconds\": %.3f, \"bytes\": %lld}\n", name,
	       (double)(bench_cycles() - begun) / bench->tsc_hz, (long long)bytes);
	fflush(stdout);
}

// The file is on the disk and not in memory before it is loaded.
void bench_snapshot(struct bench *bench, const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	uint64_t entries = any_stats(&bench->any).entries, begun = bench_cycles();
	char error[256];
	off_t bytes;

	if (fd < 0)
		bench_die("%s cannot be written", path);
	if (cuckoo_save(bench->any.table, fd, error))
		bench_die("%s", error);
	if (fsync(fd))
		bench_die("%s: not written to the disk", path);
	bytes = lseek(fd, 0, SEEK_CUR);
	print_seconds(bench, "save", begun, bytes);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	lseek(fd, 0, SEEK_SET);
	begun = bench_cycles();
	if (cuckoo_load(bench->any.table, fd, error))
		bench_die("%s", error);
	print_seconds(bench, "load", begun, bytes);
	close(fd);
	unlink(path);
	if (any_stats(&bench->any).entries != entries)
		bench_die("not all entries came back");
}
