// SPDX-License-Identifier: BSD-3-Clause
// The generator's mbufs: an empty pool, and who gives them back. All else: generator_test.
#include "tester/generator_rig.h"

static void frames_that_were_refused_are_given_back(void **state)
{
	struct wire *w = *state;
	struct task *task = create(w, 32);

	start(task, 0, 1000, 0);
	task->ops->poll(task, START);
	assert_int_equal(collect(w, 0, NULL), 15);
	assert_int_equal(mbufs_in_use(), 0);
	task_destroy(task);
}

static void empty_pool_is_counted(void **state)
{
	struct wire *w = *state;
	struct task *task = create(w, 64);
	struct rte_mempool *pool = NULL;
	struct rte_mbuf *hoard[PACKETS_MAX], *m;
	unsigned hoarded = 0;

	start(task, 1e6, 1000, 0);
	assert_int_equal(task->ops->poll(task, START), 1);
	assert_int_equal(ring_port_collect(&w->fixture->ports[0], &m, 1), 1);
	pool = m->pool; // the generator's own
	rte_pktmbuf_free(m);
	while ((m = rte_pktmbuf_alloc(pool)))
		hoard[hoarded++] = m;
	assert_int_equal(task->ops->poll(task, after_us(10.5)), 0);
	assert_int_equal(number(task, "no_mbuf"), 10);
	rte_pktmbuf_free_bulk(&hoard[--hoarded], 1);
	rte_pktmbuf_free_bulk(&hoard[--hoarded], 1);
	assert_int_equal(task->ops->poll(task, after_us(20.5)), 2); // what there is
	assert_int_equal(number(task, "no_mbuf"), 18);
	assert_int_equal(number(task, "unsent_ring_full_packets"), 18);
	rte_pktmbuf_free_bulk(hoard, hoarded);
	generator_stop(task);
	assert_conserves(task);
	assert_int_equal(collect(w, 1, NULL), 2);
	task_destroy(task);
}

// A device, or another task, still holds frames when the generator goes: the pool must outlive them.
static void frames_outlive_their_generator(void **state)
{
	struct wire *w = *state;
	struct task *task = create(w, 32);

	start(task, 0, 1000, 0);
	task->ops->poll(task, START);
	task_destroy(task);
	assert_int_equal(collect(w, 0, NULL), 32);
	task = create(w, 32);
	start(task, 0, 1000, 0); // frees what is full again
	task_destroy(task);
}

#define TEST(name)       cmocka_unit_test_setup_teardown(name, wire_setup_mbufs, wire_teardown)
#define TEST_SMALL(name) cmocka_unit_test_setup_teardown(name, wire_setup_mbufs_small, wire_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST_SMALL(frames_that_were_refused_are_given_back),
	        TEST(empty_pool_is_counted),
	        TEST(frames_outlive_their_generator),
	};

	if (fixture_eal_init("generator_mbufs") != 0)
		return 99; // for meson: could not be run
	return cmocka_run_group_tests_name("generator_mbufs", tests, NULL, NULL);
}
