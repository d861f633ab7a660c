// SPDX-License-Identifier: BSD-3-Clause
// patch between two ring-backed ports: the very same packets, in order, both ways; drops counted, no buffer
// lost.
#include "test/fixture.h"
#include "test/unit.h"

static struct config_task config = {
        .name = "sw", .kind = "patch", .port_count = 2, .ports = {"p0", "p1"}, .burst = 32};

static struct task *create(void **state)
{
	struct task *task = fixture_task(*state, &config);

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
	json_int_t faults = reported(task, "drops.fault"); // -1: not there

	assert_int_equal(task->counters.rx_packets,
	                 task->counters.tx_packets + task_drop_tx_full(task) + (uint64_t)RTE_MAX(faults, 0));
	assert_int_equal(reported(task, "drops.tx_full"), task_drop_tx_full(task));
}

static struct task *create_faulty(void **state, uint32_t drop_one_in)
{
	struct config_task faulty = config;
	struct task *task;
	json_t *object = json_pack("{s:{s:I}}", "fault", "drop_one_in", (json_int_t)drop_one_in);

	faulty.object = object;
	task = fixture_task(*state, &faulty);
	json_decref(object);
	assert_non_null(task);
	return task;
}

static void every_burst_goes_both_ways(void **state)
{
	struct fixture *f = *state;
	struct task *task = create(state);

	for (unsigned i = 0; i < fixture_burst_count; i++) {
		unsigned n = fixture_bursts[i], handled = 0;
		uint64_t full = task->counters.rx_full_bursts;

		assert_int_equal(fixture_inject(f, 0, n, 60), n);
		assert_int_equal(fixture_inject(f, 1, n, 1), n); // not looked at: runts pass
		for (unsigned polled; (polled = task->ops->poll(task, 0));)
			handled += polled;
		assert_int_equal(handled, 2 * n);
		assert_int_equal(task->counters.rx_full_bursts - full, 2 * (n / config.burst));
		assert_int_equal(ring_port_drain(&f->ports[0]), n);
		assert_int_equal(ring_port_drain(&f->ports[1]), n);
	}
	assert_int_equal(task_drop_tx_full(task), 0);
	assert_conserves(task);
	task_destroy(task);
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
	assert_int_equal(task->counters.rx_bursts, 1);
	assert_int_equal(ring_port_collect(&f->ports[0], out, RTE_DIM(out)), RTE_DIM(out));
	assert_memory_equal(in, out, sizeof(in));
	assert_memory_equal(rte_pktmbuf_mtod(out[19], char *), "the bytes of a frame", 20);
	rte_pktmbuf_free_bulk(out, RTE_DIM(out));
	task_destroy(task);
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
	assert_int_equal(task_drop_tx_full(task), 30);
	assert_conserves(task);
	assert_int_equal(ring_port_drain(&f->ports[1]), 15);
	task_destroy(task);
}

// 15 fit each ring: 5 are too many for p1, 3 for p0.
static void drops_are_told_by_port(void **state)
{
	struct fixture *f = *state;
	struct task *task = create(state);

	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(fixture_inject(f, 0, 10, 60), 10);
		assert_int_equal(fixture_inject(f, 1, 9, 60), 9);
		assert_int_equal(task->ops->poll(task, 0), 19);
	}
	assert_int_equal(reported(task, "drops_by_port.p1.tx_full"), 5);
	assert_int_equal(reported(task, "drops_by_port.p0.tx_full"), 3);
	assert_int_equal(reported(task, "drops.tx_full"), 8);
	assert_int_equal(reported(task, "drops.fault"), -1);
	assert_conserves(task);
	ring_port_drain(&f->ports[0]);
	ring_port_drain(&f->ports[1]);
	task_destroy(task);
}

// Whatever the bursts, floor(received / n) are gone, and always the n-th: the first byte of a frame is its
// number.
static void every_nth_frame_is_dropped(void **state)
{
	static const uint32_t intervals[] = {1, 2, 7, 32, 33, 1000};
	struct fixture *f = *state;

	for (unsigned k = 0; k < RTE_DIM(intervals); k++) {
		struct task *task = create_faulty(state, intervals[k]);
		unsigned n = intervals[k], received = 0, forwarded = 0;

		for (unsigned burst = 0; burst < 10; burst++) {
			assert_int_equal(fixture_inject(f, 0, 23, 60), 23);
			assert_int_equal(task->ops->poll(task, 0), 23);
			for (struct rte_mbuf *m; ring_port_collect(&f->ports[1], &m, 1) == 1; forwarded++) {
				unsigned number = *rte_pktmbuf_mtod(m, uint8_t *);

				assert_int_not_equal((received + number + 1) % n, 0);
				rte_pktmbuf_free(m);
			}
			received += 23;
		}
		assert_int_equal(forwarded, received - received / n);
		assert_int_equal(reported(task, "drops.fault"), received / n);
		assert_conserves(task);
		task_destroy(task);
	}
}

// Both ways are one count, which a clear does not touch.
static void a_clear_keeps_the_phase_of_the_fault(void **state)
{
	struct fixture *f = *state;
	struct task *task = create_faulty(state, 10);

	assert_int_equal(fixture_inject(f, 0, 4, 60), 4);
	assert_int_equal(fixture_inject(f, 1, 5, 60), 5);
	assert_int_equal(task->ops->poll(task, 0), 9);
	assert_int_equal(reported(task, "drops.fault"), 0);
	task_clear(task);
	assert_int_equal(fixture_inject(f, 1, 1, 60), 1);
	assert_int_equal(task->ops->poll(task, 0), 1);
	assert_int_equal(reported(task, "drops.fault"), 1);
	task_clear(task);
	assert_int_equal(reported(task, "drops.fault"), 0);
	assert_int_equal(ring_port_drain(&f->ports[0]), 5);
	assert_int_equal(ring_port_drain(&f->ports[1]), 4);
	task_destroy(task);
}

static void empty_pool_is_survived(void **state)
{
	struct task *task = create(state);

	assert_true(fixture_empty_pool(*state, task));
	assert_conserves(task);
	task_destroy(task);
}

static unsigned warmed;

static void count_warm(const struct port *port, uint16_t queue)
{
	warmed++;
}

// Polls so often, each in vain. Returns how many warmed a port.
static unsigned idle_polls(struct task *task, unsigned polls)
{
	unsigned before = warmed;

	for (unsigned i = 0; i < polls; i++)
		assert_int_equal(task->ops->poll(task, 0), 0);
	return warmed - before;
}

// The first poll after a frame warms, and then one of WARM_EACH: never one that has frames.
static void an_idle_task_warms_its_ports_now_and_then(void **state)
{
	struct fixture *f = *state;
	const struct port_ops *ops = f->ports[0].port.ops;
	struct port_ops counting = *ops;
	struct task *task;

	counting.warm = count_warm;
	f->ports[0].port.ops = &counting;
	task = create(state);
	assert_int_equal(idle_polls(task, 1), 1);
	assert_int_equal(idle_polls(task, WARM_EACH - 1), 0);
	assert_int_equal(idle_polls(task, 2 * WARM_EACH), 2);
	assert_int_equal(idle_polls(task, WARM_EACH / 2), 1);
	warmed = 0;
	assert_int_equal(fixture_inject(f, 1, 1, 60), 1);
	assert_int_equal(task->ops->poll(task, 0), 1);
	assert_int_equal(warmed, 0);
	assert_int_equal(idle_polls(task, 1), 1);
	task_destroy(task);
	f->ports[0].port.ops = ops;
	assert_int_equal(ring_port_drain(&f->ports[0]), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(every_burst_goes_both_ways),
	        TEST(packets_are_passed_unchanged_and_in_order),
	        cmocka_unit_test_setup_teardown(full_ring_drops_are_counted, fixture_setup_small,
	                                        fixture_teardown),
	        cmocka_unit_test_setup_teardown(drops_are_told_by_port, fixture_setup_small,
	                                        fixture_teardown),
	        TEST(every_nth_frame_is_dropped),
	        TEST(a_clear_keeps_the_phase_of_the_fault),
	        TEST(empty_pool_is_survived),
	        TEST(an_idle_task_warms_its_ports_now_and_then),
	};

	if (fixture_eal_init("patch") != 0)
		return 99; // for meson: could not be run
	return cmocka_run_group_tests_name("patch", tests, NULL, NULL);
}
