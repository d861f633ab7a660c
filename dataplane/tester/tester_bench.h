// SPDX-License-Identifier: BSD-3-Clause
// What the two halves of tester_bench share: a loop of one port, and what is measured on it. One thread.
#pragma once

#include <rte_cycles.h>

#include "test/fixture.h"
#include "tester/frame.h"
#include "tester/generator.h"
#include "base/isa.h"

enum { BENCH_BURST = 32, BENCH_CHUNK = 256 };

struct bench {
	struct port port;
	struct task *generator, *monitor;
	uint16_t length; // of bare frames
	struct bench_guest *guest;
};

struct bench_kind {
	const char *name;
	unsigned (*turn)(struct bench *b); // one burst, measured
	void (*after)(struct bench *b);    // a chunk of them, not measured; or NULL
	bool once;                         // the same in every instruction set
};

unsigned bench_generate(struct bench *b);
unsigned bench_monitor(struct bench *b);

// Make the port a guest in plain memory; pool: for the sizes of its buffers.
void bench_guest_open(struct bench *b, struct rte_mempool *pool);
extern const struct bench_kind bench_guest_kinds[];
extern const unsigned bench_guest_kind_count;
