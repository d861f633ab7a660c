// SPDX-License-Identifier: BSD-3-Clause
// A worker that ends leaves no mbuf in the caches of its thread: they would be out of reach.
#include <rte_mbuf.h>
#include <sched.h>
#include <stdlib.h>

#include "runtime/worker.h"
#include "test/fixture.h"
#include "test/unit.h"

enum { MBUFS = 255, CACHE = 64 };

struct filler {
	struct task task;
	struct rte_mempool *pool;
	_Atomic bool done;
};

// Take mbufs and free them, so that the cache of this thread is full.
static unsigned filler_poll(struct task *task, uint64_t now_tsc)
{
	struct filler *filler = (struct filler *)task;
	struct rte_mbuf *mbufs[CACHE];

	if (filler->done || rte_pktmbuf_alloc_bulk(filler->pool, mbufs, CACHE))
		return 0;
	rte_pktmbuf_free_bulk(mbufs, CACHE);
	filler->done = true;
	return CACHE;
}

static uint32_t some_cpu(void)
{
	cpu_set_t cpus;
	uint32_t cpu = 0;

	sched_getaffinity(0, sizeof(cpus), &cpus);
	while (!CPU_ISSET(cpu, &cpus))
		cpu++;
	return cpu;
}

static void caches_are_empty_at_the_end(void **state)
{
	const struct task_ops ops = {.poll = filler_poll};
	struct rte_mempool *pool = rte_pktmbuf_pool_create("worker_test", MBUFS, CACHE, 0,
	                                                   RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	struct filler filler = {.task = {.ops = &ops}, .pool = pool};
	const struct config_worker config = {.name = "w", .cpu = some_cpu(), .task_count = 1};
	struct task *tasks[] = {&filler.task};
	struct rte_mbuf *mbufs[MBUFS];
	struct worker *worker;

	assert_non_null(pool);
	assert_int_equal(worker_create(&config, tasks, CONFIG_NICE_UNSET, &worker), 0);
	worker_run(worker);
	while (!filler.done)
		sched_yield();
	worker_destroy(worker);
	assert_int_equal(rte_pktmbuf_alloc_bulk(pool, mbufs, MBUFS), 0);
	rte_pktmbuf_free_bulk(mbufs, MBUFS);
	rte_mempool_free(pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(caches_are_empty_at_the_end)};

	return fixture_eal_init("worker") ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
