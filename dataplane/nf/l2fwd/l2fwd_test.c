// SPDX-License-Identifier: BSD-3-Clause
// l2fwd between two ring-backed ports: addresses, order, runts, partial sends, no buffer lost.
#include "test/fixture.h"
#include "test/unit.h"

static struct config_task config = {.name = "vnf", .kind = "l2fwd", .port_count = 2, .ports = {"p0", "p1"}};

static struct task *create(void **state, unsigned port_count)
{
	struct task *task;

	config.port_count = port_count;
	task = fixture_task(*state, &config);
	assert_non_null(task);
	return task;
}

static json_int_t reported(const struct task *task, const char *path)
{
	json_t *report = fixture_report(task);
	json_int_t n = fixture_number(report, path);

	json_decref(report);
	return n;
}

static void assert_conserves(const struct task *task)
{
	assert_int_equal(task->counters.rx_packets, task->counters.tx_packets + task_drop_tx_full(task) +
	                                                    (uint64_t)reported(task, "drops.runt"));
}

static void every_burst_goes_both_ways(void **state)
{
	struct fixture *f = *state;
	struct task *task = create(state, 2);

	for (unsigned i = 0; i < fixture_burst_count; i++) {
		unsigned n = fixture_bursts[i], handled = 0;

		assert_int_equal(fixture_inject(f, 0, n, 60), n);
		assert_int_equal(fixture_inject(f, 1, n, 60), n);
		for (unsigned polled; (polled = task->ops->poll(task, 0));)
			handled += polled;
		assert_int_equal(handled, 2 * n);
		assert_int_equal(ring_port_drain(&f->ports[0]), n);
		assert_int_equal(ring_port_drain(&f->ports[1]), n);
	}
	assert_conserves(task);
	task_destroy(task);
}

static void addresses_are_rewritten(void **state)
{
	static const uint8_t peers[2][6] = {{2, 0, 0, 0, 1, 0}, {2, 0xaa, 0xbb, 0xcc, 0xdd, 0xee}};
	struct fixture *f = *state;
	struct rte_ether_addr own;
	struct task *task;
	json_t *object;

	// All zero is the default.
	object = json_pack("{s:[s, s]}", "peer_macs", "00:00:00:00:00:00", "02:aa:bb:cc:dd:ee");
	config.object = object;
	task = create(state, 2);
	json_decref(object);
	config.object = NULL;
	for (unsigned in = 0; in < 2; in++) {
		struct rte_mbuf *m;
		const uint8_t *data;

		assert_int_equal(fixture_inject(f, in, 1, 100), 1);
		assert_int_equal(task->ops->poll(task, 0), 1);
		assert_int_equal(ring_port_collect(&f->ports[1 - in], &m, 1), 1);
		data = rte_pktmbuf_mtod(m, uint8_t *);
		rte_eth_macaddr_get(f->ports[1 - in].port.port_id, &own);
		assert_memory_equal(data, peers[1 - in], 6);
		assert_memory_equal(data + 6, own.addr_bytes, 6);
		assert_int_equal(data[12] | data[13], 0); // and nothing else
		assert_int_equal(m->pkt_len, 100);
		rte_pktmbuf_free(m);
	}
	task_destroy(task);
}

static void echo_sends_back(void **state)
{
	struct fixture *f = *state;
	struct port *same[2] = {&f->ports[0].port, &f->ports[0].port};

	for (unsigned port_count = 1; port_count <= 2; port_count++) {
		struct task *task;

		config.port_count = port_count;
		assert_int_equal(task_create(task_ops_find("l2fwd"), &config, same, &task), 0);
		assert_int_equal(fixture_inject(f, 0, 40, 60), 40);
		assert_int_equal(task->ops->poll(task, 0),
		                 32); // one burst, not one for each mention of the port
		assert_int_equal(task->ops->poll(task, 0), 8);
		assert_int_equal(ring_port_drain(&f->ports[0]), 40);
		assert_conserves(task);
		task_destroy(task);
	}
}

static void runts_are_dropped_and_counted(void **state)
{
	static const uint16_t lengths[] = {13, 60, 0, 14, 1, 60, 13};
	struct fixture *f = *state;
	struct task *task = create(state, 2);

	for (size_t i = 0; i < RTE_DIM(lengths); i++)
		assert_int_equal(fixture_inject(f, 0, 1, lengths[i]), 1);
	assert_int_equal(task->ops->poll(task, 0), RTE_DIM(lengths));
	assert_int_equal(reported(task, "drops.runt"), 4);
	assert_int_equal(ring_port_drain(&f->ports[1]), 3);
	assert_conserves(task);
	assert_int_equal(fixture_inject(f, 0, 1, 5), 1); // nothing left to send
	assert_int_equal(task->ops->poll(task, 0), 1);
	assert_conserves(task);
	memset(&task->counters, 0, sizeof(task->counters));
	task_clear(task);
	assert_int_equal(reported(task, "drops.runt"), 0);
	task_destroy(task);
}

static void order_is_kept(void **state)
{
	struct fixture *f = *state;
	struct task *task = create(state, 2);
	struct rte_mbuf *in[32], *m;

	for (unsigned i = 0; i < 32; i++)
		in[i] = fixture_packet(f, "0123456789abcdef", i % 3 == 1 ? 4 : 16);
	assert_int_equal(ring_port_inject(&f->ports[0], in, 32), 32);
	task->ops->poll(task, 0);
	for (unsigned i = 0; i < 32; i++) {
		if (i % 3 == 1)
			continue;
		assert_int_equal(ring_port_collect(&f->ports[1], &m, 1), 1);
		assert_ptr_equal(m, in[i]);
		rte_pktmbuf_free(m);
	}
	task_destroy(task);
}

// 16 slots hold 15: of 15 a second time none go.
static void full_ring_drops_are_counted(void **state)
{
	struct fixture *f = *state;
	struct task *task = create(state, 2);

	assert_int_equal(fixture_inject(f, 0, 10, 60), 10);
	assert_int_equal(task->ops->poll(task, 0), 10);
	assert_int_equal(fixture_inject(f, 0, 15, 60), 15);
	assert_int_equal(task->ops->poll(task, 0), 15);
	assert_int_equal(reported(task, "drops_by_port.p1.tx_full"), 10);
	assert_int_equal(reported(task, "drops_by_port.p0.tx_full"), 0);
	assert_int_equal(reported(task, "drops.tx_full"), 10);
	assert_int_equal(task->counters.tx_packets, 15);
	assert_conserves(task);
	assert_int_equal(ring_port_drain(&f->ports[1]), 15);
	task_destroy(task);
}

static void an_echo_drops_on_its_one_port(void **state)
{
	struct fixture *f = *state;
	struct task *task = create(state, 1);

	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(fixture_inject(f, 0, 10, 60), 10);
		assert_int_equal(task->ops->poll(task, 0), 10);
	}
	assert_int_equal(reported(task, "drops_by_port.p0.tx_full"), 5);
	assert_int_equal(reported(task, "drops_by_port.p1.tx_full"), -1);
	assert_conserves(task);
	assert_int_equal(ring_port_drain(&f->ports[0]), 15);
	task_destroy(task);
}

static void empty_pool_is_survived(void **state)
{
	struct task *task = create(state, 2);

	assert_true(fixture_empty_pool(*state, task));
	assert_conserves(task);
	task_destroy(task);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(every_burst_goes_both_ways),
	        TEST(addresses_are_rewritten),
	        TEST(echo_sends_back),
	        TEST(runts_are_dropped_and_counted),
	        TEST(order_is_kept),
	        cmocka_unit_test_setup_teardown(full_ring_drops_are_counted, fixture_setup_small,
	                                        fixture_teardown),
	        cmocka_unit_test_setup_teardown(an_echo_drops_on_its_one_port, fixture_setup_small,
	                                        fixture_teardown),
	        TEST(empty_pool_is_survived),
	};

	if (fixture_eal_init("l2fwd") != 0)
		return 99; // for meson: could not be run
	return cmocka_run_group_tests_name("l2fwd", tests, NULL, NULL);
}
