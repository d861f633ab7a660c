// SPDX-License-Identifier: BSD-3-Clause
// The parts of fib_bench: a table that is full as asked for, perhaps DPDK's rte_hash with the same keys
// beside it, and the cases that are measured in turn.
#pragma once

#include "table/cuckoo_any.h"

enum {
	BLOCK = 4096, // keys that are made before the clock runs
	AHEAD = 16,   // keys that an update's buckets are prefetched ahead
};

struct rte_hash;

struct bench_options {
	uint64_t entries;
	enum cuckoo_width width;
	enum pages pages;
	unsigned rounds;
	double seconds; // of a case in each round
	bool rte_hash;
	const char *snapshot; // file, or NULL
};

struct bench {
	struct any any;
	uint64_t entries;
	uint64_t lines; // of the table: 64 bytes each
	const void *memory;
	struct rte_hash *hash; // NULL: not compared
	double tsc_hz;
	uint64_t random, sum;
	// The block that is next.
	uint64_t ns[BLOCK], keys[BLOCK], at[BLOCK];
	struct cuckoo_wide_key wide[BLOCK];
	uint16_t values[BLOCK];
};

// Handle the block: returns how many operations it was. Ends the program where a result is wrong.
typedef uint64_t (*bench_run)(struct bench *bench);

struct bench_case {
	const char *name;
	bool absent;   // the keys of the block are not in the table
	bool rte_hash; // of rte_hash
	bench_run run;
};

extern const struct bench_case bench_cases[], bench_rte_cases[];
extern const unsigned bench_case_count, bench_rte_case_count;

uint64_t bench_cycles(void);
_Noreturn void bench_die(const char *format, ...);

// Put all entries; a JSON line with the rate of all and of the last tenth.
void bench_build(struct bench *bench);
void bench_snapshot(struct bench *bench, const char *path); // the same for saving and loading
void bench_rte_build(struct bench *bench);

static inline uint16_t bench_value(uint64_t n)
{
	return (uint16_t)(n % UINT16_MAX + 1);
}
