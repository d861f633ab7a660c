// SPDX-License-Identifier: BSD-3-Clause
#include "fib/fib_pool.h"

#include <errno.h>
#include <stdlib.h>

int fib_pool_open(struct fib_pool *pool, uint32_t size)
{
	*pool = (struct fib_pool){.given = calloc(size, sizeof(*pool->given)), .size = size, .fresh = 1};
	return pool->given ? 0 : -ENOMEM;
}

void fib_pool_close(struct fib_pool *pool)
{
	free(pool->given);
	pool->given = NULL;
}

void fib_pool_reset(struct fib_pool *pool)
{
	pool->head = pool->count = 0;
	pool->fresh = 1;
}

// One that was used before is in the cache; those never used cost memory.
uint32_t fib_pool_take(struct fib_pool *pool, struct rte_rcu_qsbr *readers)
{
	struct fib_given *first = &pool->given[pool->head];

	if (pool->count && rte_rcu_qsbr_check(readers, first->token, false)) {
		pool->head = (pool->head + 1) % pool->size;
		pool->count--;
		return first->number;
	}
	return pool->fresh <= pool->size ? pool->fresh++ : 0;
}

void fib_pool_give(struct fib_pool *pool, struct rte_rcu_qsbr *readers, uint32_t number)
{
	pool->given[(pool->head + pool->count++) % pool->size] =
	        (struct fib_given){.token = rte_rcu_qsbr_start(readers), .number = number};
}
