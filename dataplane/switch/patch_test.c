// SPDX-License-Identifier: BSD-3-Clause
// patch between two ring-backed ports: the very same packets, in order, both ways; drops counted, no buffer
// lost.
#include "fixture.h"
#include "unit.h"

static const struct config_task config = {
        .name = "sw", .kind = "patch", .port_count = 2, .ports = {"p0", "p1"}};

static struct task *create(void **state)
{
	struct task *task = fixture_task(*state, &config);

	assert_non_null(task);
	return task;
}

static void assert_conserves(const struct task *task)
{
	assert_int_equal(task->counters.rx_packets, task->counters.tx_packets + task->counters.drop_tx_full);
}

static void every_burst_goes_both_ways(void **state)
{
	struct fixture *f = *state;
	struct task *task = create(state);

	for (unsigned i = 0; i < fixture_burst_count; i++) {
		unsigned n = fixture_bursts[i], handled = 0;

		assert_int_equal(fixture_inject(f, 0, n, 60), n);
		assert_int_equal(fixture_inject(f, 1, n, 1), n); // not looked at: runts pass
		for (unsigned polled; (polled = task->ops->poll(task, 0));)
			handled += polled;
		assert_int_equal(handled, 2 * n);
		assert_int_equal(ring_port_drain(&f->ports[0]), n);
		assert_int_equal(ring_port_drain(&f->ports[1]), n);
	}
	assert_int_equal(task->counters.drop_tx_full, 0);
	assert_conserves(task);
	task->ops->destroy(task);
}

static void packets_are_passed_unchanged_and_in_order(void **state)
{
	struct fixture *f = *state;
	struct task *task = create(state);
	struct rte_mbuf *in[20], *out[20];

	for (unsigned i = 0; i < RTE_DIM(in); i++)
		in[i] = fixture_packet(f, "the bytes of a frame", 20);
	assert_int_equal(ring_port_inject(&f->ports[1], in, RTE_DIM(in)), RTE_DIM(in));
	assert_int_equal(task->ops->poll(task, 0), RTE_DIM(in));
	assert_int_equal(ring_port_collect(&f->ports[0], out, RTE_DIM(out)), RTE_DIM(out));
	assert_memory_equal(in, out, sizeof(in));
	assert_memory_equal(rte_pktmbuf_mtod(out[19], char *), "the bytes of a frame", 20);
	rte_pktmbuf_free_bulk(out, RTE_DIM(out));
	task->ops->destroy(task);
}

static void full_ring_drops_are_counted(void **state)
{
	struct fixture *f = *state;
	struct task *task = create(state);

	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(fixture_inject(f, 0, 15, 60), 15);
		assert_int_equal(task->ops->poll(task, 0), 15);
	}
	assert_int_equal(task->counters.tx_packets, 15);
	assert_int_equal(task->counters.drop_tx_full, 30);
	assert_conserves(task);
	assert_int_equal(ring_port_drain(&f->ports[1]), 15);
	task->ops->destroy(task);
}

static void empty_pool_is_survived(void **state)
{
	struct fixture *f = *state;
	struct task *task = create(state);
	struct rte_mbuf *hoard[FIXTURE_MBUFS];
	unsigned hoarded = 0;

	while (hoarded < FIXTURE_MBUFS - 1)
		assert_non_null(hoard[hoarded++] = rte_pktmbuf_alloc(f->pool));
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(fixture_inject(f, 0, 2, 60), 1);
		assert_int_equal(task->ops->poll(task, 0), 1);
		assert_int_equal(ring_port_drain(&f->ports[1]), 1);
	}
	rte_pktmbuf_free_bulk(hoard, hoarded);
	assert_conserves(task);
	task->ops->destroy(task);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(every_burst_goes_both_ways),
	        TEST(packets_are_passed_unchanged_and_in_order),
	        cmocka_unit_test_setup_teardown(full_ring_drops_are_counted, fixture_setup_small,
	                                        fixture_teardown),
	        TEST(empty_pool_is_survived),
	};

	if (fixture_eal_init("patch") != 0)
		return 99; // for meson: could not be run
	return cmocka_run_group_tests_name("patch", tests, NULL, NULL);
}
