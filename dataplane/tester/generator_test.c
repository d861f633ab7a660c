// SPDX-License-Identifier: BSD-3-Clause
// The generator in simulated time: what is sent, counted, kept and given back, with mbufs and by one copy
// into a guest. Where the port lends its buffers: frame_room_test.
#include "tester/generator_rig.h"

static void every_burst_is_sent_whole(void **state)
{
	struct wire *w = *state;

	for (unsigned i = 0; i < fixture_burst_count; i++) {
		uint16_t burst = fixture_bursts[i];
		struct task *task = create(w, burst); // 0: the default

		start(task, 0, 100, 0);
		for (unsigned polls = 0; polls < 3; polls++)
			assert_int_equal(task->ops->poll(task, after_us(polls)), burst ? burst : 64);
		assert_int_equal(collect(w, 0, NULL), 3 * (burst ? burst : 64));
		assert_int_equal(task->ops->poll(task, after_us(101)), 0);
		assert_false(generator_running(task));
		assert_int_equal(number(task, "offered_packets"), 3 * (burst ? burst : 64));
		task_destroy(task);
	}
}

static void paced_load_is_sent_exactly(void **state)
{
	struct wire *w = *state;
	struct task *task = create(w, 32);
	unsigned sent = 0;

	start(task, 1e6, 3000, 0);
	assert_int_equal(task->ops->poll(task, START - 1), 0);
	for (unsigned us = 0; us <= 3010; us += 7) {
		task->ops->poll(task, after_us(us + 0.5));
		sent += collect(w, sent, NULL);
	}
	assert_int_equal(sent, 3000);
	assert_int_equal(number(task, "intended_packets"), 3000);
	assert_int_equal(number(task, "duration_ns"), 3000000);
	assert_false(generator_running(task));
	assert_conserves(task);
	task_destroy(task);
}

// Around every edge at which heads, pieces and pattern meet; flat out, more frames than the port has room
// for.
static void every_size_is_sent_whole(void **state)
{
	static const uint16_t sizes[] = {64, 65, 67, 68, 69, 96, 100, 128, 129, 256, 1024, 1518, 2052};
	struct wire *w = *state;
	struct task *task = create(w, 32);

	for (size_t i = 0; i < RTE_DIM(sizes); i++) {
		struct generator_load load = {.epoch = EPOCH,
		                              .start_tsc = START,
		                              .duration_ns = 1000000,
		                              .frame_size_bytes = sizes[i],
		                              .flat_out = true,
		                              .probe_rate_pps = 1e5};
		unsigned sent = 0, probes = 0;

		assert_int_equal(generator_start(task, &load), 0);
		for (unsigned us = 0; us < 40; us++)
			sent += task->ops->poll(task, after_us(us));
		assert_int_equal(sent, 255);
		assert_int_equal(collect(w, 0, &probes), 255);
		assert_in_range(probes, 1, 4);
		generator_stop(task);
	}
	task_destroy(task);
}

static void line_share_is_layer_1(void **state)
{
	struct wire *w = *state;
	struct task *task = create(w, 32);
	struct generator_load load = {
	        .start_tsc = START, .duration_ns = 1000000000, .frame_size_bytes = 64, .line_share = 1};

	assert_int_equal(generator_start(task, &load), 0);
	assert_int_equal(number(task, "intended_packets"), 14880952); // 10 Gb/s of 64 B, METHODOLOGY.md s1
	generator_stop(task);
	task_destroy(task);
}

// 16 slots hold 15 packets: 32 are handed over, 15 go, and the sequence goes on where they end.
static void partial_send_leaves_no_gap_flat_out(void **state)
{
	struct wire *w = *state;
	struct task *task = create(w, 32);
	unsigned sent = 0, probes = 0;

	start(task, 0, 1000, 1e6);
	for (unsigned us = 0; us < 100; us++) {
		task->ops->poll(task, after_us(us));
		assert_int_equal(task->ops->poll(task, after_us(us)), 0); // still full
		sent += collect(w, sent, &probes);
	}
	assert_int_equal(sent, 1500);
	assert_true(probes > 30);
	assert_int_equal(number(task, "probes_sent"), probes);
	assert_int_equal(number(task, "offered_packets"), 1500);
	assert_int_equal(number(task, "refused_packets"), 100 * (17 + 32));
	assert_int_equal(number(task, "attempted_packets"), 100 * 64);
	assert_int_equal(number(task, "unsent_ring_full_packets"), 0); // nothing was intended
	task->ops->poll(task, after_us(100));
	sent += collect(w, sent, &probes);
	assert_int_equal(mbufs_in_use(), 0); // no refused frame is kept
	task->ops->poll(task, after_us(1001));
	task_destroy(task);
}

static void partial_send_paced_counts_ring_full(void **state)
{
	struct wire *w = *state;
	struct task *task = create(w, 32);
	unsigned sent = 0;

	start(task, 1e6, 1000, 1e4);
	for (unsigned us = 0; us <= 1100; us += 20) {
		task->ops->poll(task, after_us(us + 0.5));
		sent += collect(w, sent, NULL);
	}
	assert_false(generator_running(task));
	assert_int_equal(number(task, "unsent_ring_full_packets"), 1000 - sent);
	assert_int_equal(number(task, "unsent_late_packets"), 0);
	assert_true(sent > 700 && sent < 800); // 15 of 20 each time
	assert_conserves(task);
	task_destroy(task);
}

// Every frame has the time of its burst; the probes are among them, as often as without.
static void all_frames_are_stamped(void **state)
{
	struct wire *w = *state;
	struct task *task = create(w, 16);
	struct generator_load load = {.epoch = EPOCH,
	                              .start_tsc = START,
	                              .duration_ns = 1000000,
	                              .frame_size_bytes = 100,
	                              .flat_out = true,
	                              .probe_rate_pps = 1e5,
	                              .stamp_all = true};
	unsigned sent = 0, probes = 0;
	struct frame_fields fields;

	assert_int_equal(generator_start(task, &load), 0);
	for (unsigned us = 0; us < 200; us++) {
		uint64_t before = rte_rdtsc(), burst_tsc = 0;
		unsigned n = task->ops->poll(task, after_us(us));

		assert_int_equal(n, 16);
		for (unsigned i = 0; i < n; i++, sent++) {
			assert_true(collect_one(w, sent, &fields));
			assert_true(fields.flags & FRAME_FLAG_STAMPED);
			probes += fields.flags & FRAME_FLAG_PROBE;
			assert_true(fields.stamp >= before && fields.stamp <= rte_rdtsc());
			assert_true(i == 0 || fields.stamp == burst_tsc);
			burst_tsc = fields.stamp;
		}
	}
	assert_in_range(probes, 15, 21); // one in 10 us
	assert_int_equal(number(task, "probes_sent"), probes);
	generator_stop(task);
	load.stamp_all = false;
	assert_int_equal(generator_start(task, &load), 0);
	assert_int_equal(task->ops->poll(task, after_us(0)), 16);
	for (unsigned i = 0; i < 16; i++) {
		assert_true(collect_one(w, i, &fields));
		assert_false(fields.flags & FRAME_FLAG_STAMPED);
	}
	generator_stop(task);
	task_destroy(task);
}

static void probes_keep_their_own_schedule(void **state)
{
	struct wire *w = *state;
	struct task *task = create(w, 32);
	unsigned probes = 0, sent = 0, phases = 0;

	start(task, 1e6, 1000, 1e5); // one in 10 us, at any of them
	for (unsigned us = 0; us <= 400; us++) {
		unsigned before = probes;

		task->ops->poll(task, after_us(us + 0.5));
		sent += collect(w, sent, &probes);
		phases |= (unsigned)(probes > before) << us % 10;
	}
	assert_in_range(probes, 40, 41);
	assert_true(__builtin_popcount(phases) >= 8);
	task->ops->poll(task, after_us(440.5)); // four due at once: one is sent
	task->ops->poll(task, after_us(441.5));
	sent += collect(w, sent, &probes);
	assert_in_range(probes, 41, 42);
	assert_int_equal(number(task, "probes_sent"), probes);
	generator_stop(task);
	assert_conserves(task);
	task_destroy(task);
}

// Flat out, the place of the probe in its burst goes through all of them.
static void probes_rotate_through_the_burst(void **state)
{
	struct wire *w = *state;
	struct task *task = create(w, 4);
	struct frame_fields fields;

	start(task, 0, 1000, 1e6);
	for (unsigned i = 0; i < 8; i++)
		task->ops->poll(task, after_us(2 * i + 2)); // one is due each time
	for (unsigned i = 0; i < 32; i++) {
		assert_true(collect_one(w, i, &fields));
		assert_int_equal(fields.flags, i % 4 == i / 4 % 4);
	}
	generator_stop(task);
	task_destroy(task);
}

static void stop_ends_and_start_begins_anew(void **state)
{
	struct wire *w = *state;
	struct task *task = create(w, 32);

	start(task, 1e6, 1000, 0);
	task->ops->poll(task, after_us(9.5));
	generator_stop(task);
	assert_false(generator_running(task));
	assert_int_equal(task->ops->poll(task, after_us(20)), 0);
	assert_int_equal(number(task, "intended_packets"), 10);
	assert_int_equal(number(task, "duration_ns"), (after_us(9.5) - START) * 1000000000 / clock_hz());
	assert_conserves(task);
	assert_int_equal(collect(w, 0, NULL), 10);
	start(task, 1e6, 1000, 0);
	task->counters.tx_packets = 0;
	task->ops->poll(task, after_us(4.5));
	assert_int_equal(collect(w, 0, NULL), 5); // numbered from 0 again
	generator_stop(task);
	task_clear(task);
	assert_int_equal(number(task, "offered_packets"), 0);
	task_destroy(task);
}

static void stop_before_the_first_frame_is_due(void **state)
{
	struct task *task = create(*state, 32);

	start(task, 1e6, 1000, 0);
	task->ops->poll(task, START - 1000);
	generator_stop(task);
	assert_int_equal(number(task, "duration_ns"), 0);
	task_destroy(task);
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
	task_destroy(task);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        WIRE_TEST(every_burst_is_sent_whole),
	        WIRE_TEST(paced_load_is_sent_exactly),
	        WIRE_TEST(every_size_is_sent_whole),
	        WIRE_TEST(line_share_is_layer_1),
	        WIRE_TEST_SMALL(partial_send_leaves_no_gap_flat_out),
	        WIRE_TEST_SMALL(partial_send_paced_counts_ring_full),
	        WIRE_TEST(all_frames_are_stamped),
	        WIRE_TEST(probes_keep_their_own_schedule),
	        WIRE_TEST(probes_rotate_through_the_burst),
	        WIRE_TEST(stop_ends_and_start_begins_anew),
	        WIRE_TEST(stop_before_the_first_frame_is_due),
	        WIRE_TEST(impossible_loads_are_refused),
	};

	if (fixture_eal_init("generator") != 0)
		return 99; // for meson: could not be run
	return cmocka_run_group_tests_name("generator", tests, NULL, NULL);
}
