// SPDX-License-Identifier: BSD-3-Clause
// The generator on a ring-backed port, in simulated time: what is sent, counted, kept and given back.
#include <rte_cycles.h>

#include "fixture.h"
#include "frame.h"
#include "generator.h"
#include "unit.h"

enum { EPOCH = 17, PACKETS_MAX = 4096 };
#define START UINT64_C(1000000000)

static struct frame_checker checker;
static struct config_task config = {
        .name = "gen", .kind = "generator", .port_count = 1, .ports = {"p0"}, .stream = 2};

static uint64_t after_us(double us)
{
	return START + (uint64_t)(us * (double)rte_get_tsc_hz() / 1e6);
}

static struct task *create(struct fixture *f, uint32_t burst)
{
	struct task *task;

	config.burst = burst;
	task = fixture_task(f, &config);
	assert_non_null(task);
	return task;
}

static void start(struct task *task, double rate_pps, uint64_t duration_us, double probe_rate_pps)
{
	struct generator_load load = {
	        .epoch = EPOCH,
	        .start_tsc = START,
	        .duration_ns = duration_us * 1000,
	        .frame_size_bytes = 64,
	        .rate_pps = rate_pps,
	        .flat_out = rate_pps == 0,
	        .probe_rate_pps = probe_rate_pps,
	};

	assert_int_equal(generator_start(task, &load), 0);
	assert_true(generator_running(task));
}

static json_int_t number(const struct task *task, const char *key)
{
	json_t *report = fixture_report(task);
	char path[64];
	json_int_t value;

	snprintf(path, sizeof(path), "generator.%s", key);
	value = fixture_number(report, path);
	json_decref(report);
	return value;
}

static void assert_conserves(const struct task *task)
{
	assert_int_equal(number(task, "intended_packets"), number(task, "offered_packets") +
	                                                           number(task, "unsent_late_packets") +
	                                                           number(task, "unsent_ring_full_packets"));
	assert_int_equal(number(task, "attempted_packets"),
	                 number(task, "offered_packets") + number(task, "refused_packets"));
	assert_int_equal(number(task, "offered_packets"), task->counters.tx_packets);
	assert_int_equal(number(task, "probes_stamped"), number(task, "probes_sent"));
}

// Collect all, check that they are intact frames numbered from first, free them; returns how many, and the
// probes.
static unsigned collect(struct fixture *f, uint32_t first, unsigned *probes)
{
	struct rte_mbuf *m;
	struct frame_fields fields;
	unsigned n = 0;

	for (; ring_port_collect(&f->ports[0], &m, 1) == 1; n++) {
		assert_int_equal(frame_classify(&checker, m, &fields), FRAME_INTACT);
		assert_int_equal(fields.sequence, first + n);
		assert_int_equal(fields.stream, 2);
		assert_int_equal(fields.epoch, EPOCH);
		assert_true((fields.flags == 0) == (fields.tsc == 0));
		if (probes)
			*probes += fields.flags;
		rte_pktmbuf_free(m);
	}
	return n;
}

static void in_use_add(struct rte_mempool *pool, void *sum)
{
	*(unsigned *)sum += rte_mempool_in_use_count(pool);
}

static unsigned mbufs_in_use(void)
{
	unsigned sum = 0;

	rte_mempool_walk(in_use_add, &sum);
	return sum;
}

static void every_burst_is_sent_whole(void **state)
{
	struct fixture *f = *state;

	for (unsigned i = 0; i < fixture_burst_count; i++) {
		uint16_t burst = fixture_bursts[i];
		struct task *task = create(f, burst); // 0: the default

		start(task, 0, 100, 0);
		for (unsigned polls = 0; polls < 3; polls++)
			assert_int_equal(task->ops->poll(task, after_us(polls)), burst ? burst : 32);
		assert_int_equal(collect(f, 0, NULL), 3 * (burst ? burst : 32));
		assert_int_equal(task->ops->poll(task, after_us(101)), 0);
		assert_false(generator_running(task));
		assert_int_equal(number(task, "offered_packets"), 3 * (burst ? burst : 32));
		task->ops->destroy(task);
	}
}

static void paced_load_is_sent_exactly(void **state)
{
	struct fixture *f = *state;
	struct task *task = create(f, 32);
	unsigned sent = 0;

	start(task, 1e6, 3000, 0);
	assert_int_equal(task->ops->poll(task, START - 1), 0);
	for (unsigned us = 0; us <= 3010; us += 7) {
		task->ops->poll(task, after_us(us + 0.5));
		sent += collect(f, sent, NULL);
	}
	assert_int_equal(sent, 3000);
	assert_int_equal(number(task, "intended_packets"), 3000);
	assert_int_equal(number(task, "duration_ns"), 3000000);
	assert_false(generator_running(task));
	assert_conserves(task);
	task->ops->destroy(task);
}

static void line_share_is_layer_1(void **state)
{
	struct fixture *f = *state;
	struct task *task = create(f, 32);
	struct generator_load load = {
	        .start_tsc = START, .duration_ns = 1000000000, .frame_size_bytes = 64, .line_share = 1};

	assert_int_equal(generator_start(task, &load), 0);
	assert_int_equal(number(task, "intended_packets"), 14880952); // 10 Gb/s of 64 B, METHODOLOGY.md s1
	generator_stop(task);
	task->ops->destroy(task);
}

// 16 slots hold 15 packets: 32 are handed over, 15 go, and the sequence goes on where they end.
static void partial_send_leaves_no_gap_flat_out(void **state)
{
	struct fixture *f = *state;
	struct task *task = create(f, 32);
	unsigned sent = 0, probes = 0;

	start(task, 0, 1000, 1e6);
	for (unsigned us = 0; us < 100; us++) {
		task->ops->poll(task, after_us(us));
		assert_int_equal(task->ops->poll(task, after_us(us)), 0); // still full
		sent += collect(f, sent, &probes);
	}
	assert_int_equal(sent, 1500);
	assert_true(probes > 30);
	assert_int_equal(number(task, "probes_sent"), probes);
	assert_int_equal(number(task, "offered_packets"), 1500);
	assert_int_equal(number(task, "refused_packets"), 100 * (17 + 32));
	assert_int_equal(number(task, "attempted_packets"), 100 * 64);
	assert_int_equal(number(task, "unsent_ring_full_packets"), 0); // nothing was intended
	task->ops->poll(task, after_us(100));
	sent += collect(f, sent, &probes); // the port has room, and frames wait
	assert_int_not_equal(mbufs_in_use(), 0);
	task->ops->poll(task, after_us(1001));
	assert_int_equal(mbufs_in_use(), 0); // the end gives them back
	task->ops->destroy(task);
}

static void frames_that_wait_are_given_back(void **state)
{
	struct fixture *f = *state;
	struct task *task = create(f, 32);

	start(task, 0, 1000, 0);
	task->ops->poll(task, START);
	assert_int_equal(collect(f, 0, NULL), 15);
	assert_int_equal(mbufs_in_use(), 17);
	task->ops->destroy(task);
}

static void partial_send_paced_counts_ring_full(void **state)
{
	struct fixture *f = *state;
	struct task *task = create(f, 32);
	unsigned sent = 0;

	start(task, 1e6, 1000, 1e4);
	for (unsigned us = 0; us <= 1100; us += 20) {
		task->ops->poll(task, after_us(us + 0.5));
		sent += collect(f, sent, NULL);
	}
	assert_false(generator_running(task));
	assert_int_equal(number(task, "unsent_ring_full_packets"), 1000 - sent);
	assert_int_equal(number(task, "unsent_late_packets"), 0);
	assert_true(sent > 700 && sent < 800); // 15 of 20 each time
	assert_conserves(task);
	task->ops->destroy(task);
}

static void empty_pool_is_counted(void **state)
{
	struct fixture *f = *state;
	struct task *task = create(f, 64);
	struct rte_mempool *pool = NULL;
	struct rte_mbuf *hoard[PACKETS_MAX], *m;
	unsigned hoarded = 0;

	start(task, 1e6, 1000, 0);
	assert_int_equal(task->ops->poll(task, START), 1);
	assert_int_equal(ring_port_collect(&f->ports[0], &m, 1), 1);
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
	assert_int_equal(collect(f, 1, NULL), 2);
	task->ops->destroy(task);
}

static void probes_keep_their_own_schedule(void **state)
{
	struct fixture *f = *state;
	struct task *task = create(f, 32);
	unsigned probes = 0, sent = 0;

	start(task, 1e6, 1000, 1e5); // every 10 us
	for (unsigned us = 0; us <= 400; us++, sent += collect(f, sent, &probes))
		task->ops->poll(task, after_us(us + 0.5));
	assert_in_range(probes, 40, 41);
	task->ops->poll(task, after_us(440.5)); // four due at once: one is sent
	task->ops->poll(task, after_us(441.5));
	sent += collect(f, sent, &probes);
	assert_in_range(probes, 41, 42);
	assert_int_equal(number(task, "probes_sent"), probes);
	generator_stop(task);
	assert_conserves(task);
	task->ops->destroy(task);
}

// Flat out, the place of the probe in its burst goes through all of them.
static void probes_rotate_through_the_burst(void **state)
{
	struct fixture *f = *state;
	struct task *task = create(f, 4);
	struct frame_fields fields;
	struct rte_mbuf *m;

	start(task, 0, 1000, 1e6);
	for (unsigned i = 0; i < 8; i++)
		task->ops->poll(task, after_us(2 * i));
	for (unsigned i = 0; i < 32; i++) {
		assert_int_equal(ring_port_collect(&f->ports[0], &m, 1), 1);
		assert_int_equal(frame_classify(&checker, m, &fields), FRAME_INTACT);
		assert_int_equal(fields.flags, i % 4 == i / 4 % 4);
		rte_pktmbuf_free(m);
	}
	generator_stop(task);
	task->ops->destroy(task);
}

static void stop_ends_and_start_begins_anew(void **state)
{
	struct fixture *f = *state;
	struct task *task = create(f, 32);

	start(task, 1e6, 1000, 0);
	task->ops->poll(task, after_us(9.5));
	generator_stop(task);
	assert_false(generator_running(task));
	assert_int_equal(task->ops->poll(task, after_us(20)), 0);
	assert_int_equal(number(task, "intended_packets"), 10);
	assert_in_range(number(task, "duration_ns"), 9490, 9510);
	assert_conserves(task);
	assert_int_equal(collect(f, 0, NULL), 10);
	start(task, 1e6, 1000, 0);
	task->counters.tx_packets = 0;
	task->ops->poll(task, after_us(4.5));
	assert_int_equal(collect(f, 0, NULL), 5); // numbered from 0 again
	generator_stop(task);
	task->ops->clear(task);
	assert_int_equal(number(task, "offered_packets"), 0);
	task->ops->destroy(task);
}

// A device, or another task, still holds frames when the generator goes: the pool must outlive them.
static void frames_outlive_their_generator(void **state)
{
	struct fixture *f = *state;
	struct task *task = create(f, 32);

	start(task, 0, 1000, 0);
	task->ops->poll(task, START);
	task->ops->destroy(task);
	assert_int_equal(collect(f, 0, NULL), 32);
	task = create(f, 32); // frees what is full again
	task->ops->destroy(task);
}

static void impossible_loads_are_refused(void **state)
{
	static const struct generator_load loads[] = {
	        {.duration_ns = 1, .frame_size_bytes = 63, .flat_out = true},
	        {.duration_ns = 1,
	         .frame_size_bytes = 2048 + FRAME_FCS_BYTES + 1,
	         .flat_out = true}, // buffer
	        {.duration_ns = 1, .frame_size_bytes = 64},
	        {.duration_ns = 1, .frame_size_bytes = 64, .flat_out = true, .rate_pps = 1},
	        {.duration_ns = 1, .frame_size_bytes = 64, .rate_pps = 1, .line_share = 0.5},
	        {.duration_ns = 1, .frame_size_bytes = 64, .line_share = 1.01},
	        {.duration_ns = 1, .frame_size_bytes = 64, .line_share = -0.1},
	        {.duration_ns = 1, .frame_size_bytes = 64, .rate_pps = 1e12},
	        {.duration_ns = 1, .frame_size_bytes = 64, .rate_pps = 1e-40},
	        {.duration_ns = 1, .frame_size_bytes = 64, .flat_out = true, .probe_rate_pps = -1},
	        {.duration_ns = 0, .frame_size_bytes = 64, .flat_out = true},
	};
	struct task *task = create(*state, 32);

	for (size_t i = 0; i < RTE_DIM(loads); i++) {
		assert_int_equal(generator_start(task, &loads[i]), -EINVAL);
		assert_false(generator_running(task));
	}
	task->ops->destroy(task);
}

#define TEST(name)       cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
#define TEST_SMALL(name) cmocka_unit_test_setup_teardown(name, fixture_setup_small, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(every_burst_is_sent_whole),
	        TEST(paced_load_is_sent_exactly),
	        TEST(line_share_is_layer_1),
	        TEST_SMALL(partial_send_leaves_no_gap_flat_out),
	        TEST_SMALL(frames_that_wait_are_given_back),
	        TEST_SMALL(partial_send_paced_counts_ring_full),
	        TEST(empty_pool_is_counted),
	        TEST(probes_keep_their_own_schedule),
	        TEST(probes_rotate_through_the_burst),
	        TEST(stop_ends_and_start_begins_anew),
	        TEST(frames_outlive_their_generator),
	        TEST(impossible_loads_are_refused),
	};

	if (fixture_eal_init("generator") != 0)
		return 99; // for meson: could not be run
	return cmocka_run_group_tests_name("generator", tests, NULL, NULL);
}
