// SPDX-License-Identifier: BSD-3-Clause
// The parts of fib_bench_prefixes: a table of prefixes as routers of the Internet have it, and those that look it up.
#pragma once

#include "fib/fib.h"

enum {
	BLOCK = 4096,  // addresses that are drawn before the clock runs
	UPDATES = 256, // routes: an update may take long
	HOPS = 128,    // values 1 .. HOPS
};

struct bench_route {
	struct fib_prefix prefix;
	uint16_t value;
};

struct bench {
	unsigned family; // 4 or 6
	uint32_t count;
	struct bench_route *routes;
	uint32_t *shorter, shorter_count; // of routes: those of few bits, whose change could concern many
	bool only_fib;                    // and the rounds, which say what is right
	bool rte_lpm;                     // as well
	uint16_t vnfs;                    // that have this table each; the others have it once
	uint64_t random;
	double tsc_hz;
	// The block that is next: addresses, and the value of the longest prefix of each; or routes.
	struct fib_query4 four[BLOCK];
	struct fib_query6 six[BLOCK];
	uint8_t bytes[BLOCK][16];
	uint32_t words[BLOCK];
	uint16_t values[BLOCK];
	const struct bench_route *updated[UPDATES];
};

// One of those that are compared. put: add it, or give it another value; it returns whether it was done.
struct bench_table {
	const char *name;
	unsigned family;                         // 0: either
	void (*open)(const struct bench *bench); // empty
	bool (*put)(const struct bench *bench, const struct bench_route *route, uint16_t value);
	void (*drop)(const struct bench *bench, const struct bench_route *route);
	void (*find)(const struct bench *bench, uint16_t *values); // of the block
	uint64_t (*bytes)(const struct bench *bench);              // that it takes
};

extern const struct bench_table bench_fib, bench_rounds;            // ours: the FIB, and what it did before
extern const struct bench_table bench_dir24, bench_lpm, bench_fib6; // DPDK's

_Noreturn void bench_die(const char *format, ...);
