// SPDX-License-Identifier: BSD-3-Clause
// Numbers 1 .. size of things that readers may still look at when they are given back: taken again only after
// every reader has passed a quiescent state since. First in, first out: the first is the one to ask about.
//
// The writer of the FIB.
#pragma once

#include <rte_rcu_qsbr.h>
#include <stdbool.h>
#include <stdint.h>

struct fib_pool {
	struct fib_given {
		uint64_t token;
		uint32_t number;
	} * given;            // a ring of size
	uint32_t head, count; // of it
	uint32_t size, fresh; // numbers from fresh on were never taken
};

int fib_pool_open(struct fib_pool *pool, uint32_t size); // -ENOMEM
void fib_pool_close(struct fib_pool *pool);
void fib_pool_reset(struct fib_pool *pool); // all are free; no reader holds any

// 0: there is none. fib_pool_is_waiting(): there will be, when readers have let go.
uint32_t fib_pool_take(struct fib_pool *pool, struct rte_rcu_qsbr *readers);
void fib_pool_give(struct fib_pool *pool, struct rte_rcu_qsbr *readers, uint32_t number);

static inline bool fib_pool_is_waiting(const struct fib_pool *pool)
{
	return pool->count > 0;
}
