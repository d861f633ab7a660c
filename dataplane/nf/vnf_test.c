// SPDX-License-Identifier: BSD-3-Clause
// What is common to network functions, with one that does as the first byte of a frame says: verdicts, order
// by port, conservation, partial sends, stamps of probes, methods.
#include <math.h>

#include "base/clock.h"
#include "test/fixture.h"
#include "tester/frame.h"
#include "tester/stamps.h"
#include "test/unit.h"
#include "nf/vnf.h"

enum { ODD, EVEN, PORTS = 3 };

static const struct counter drops[] = {VNF_DROP_COUNTER(ODD, "odd"), VNF_DROP_COUNTER(EVEN, "even"), {0}};
static unsigned ticks;

// 0x80 and above: the verdict. Below: all leave by out[in].
static bool obey(struct vnf *vnf, unsigned in, struct vnf_frame *frames, unsigned n, uint64_t now_tsc,
                 uint8_t *verdicts)
{
	bool plain = true;

	for (unsigned i = 0; i < n; i++)
		plain = plain && frames[i].data[0] == 0xff;
	for (unsigned i = 0; !plain && i < n; i++)
		verdicts[i] = frames[i].data[0] == 0xff ? vnf->out[in] : frames[i].data[0];
	return plain;
}

static void count_tick(struct vnf *vnf, uint64_t now_tsc)
{
	ticks++;
}

static json_t *answer(struct task *task, const void *params, uint64_t now_tsc, char *error)
{
	return json_pack("{s:I}", "now", (json_int_t)now_tsc);
}

static const struct task_method methods[] = {{.name = "ask", .call = answer}, {0}};

static const struct vnf_ops obedient = {.size = sizeof(struct vnf), .process = obey, .tick = count_tick};

static const struct task_ops ops = {
        VNF_TASK_OPS("obedient", &obedient, drops, vnf_keys_macs, struct vnf_settings), .ports_min = 1,
        .ports_max = PORTS, .methods = methods};

static int two_are_slow(struct vnf *vnf, const struct config_task *config)
{
	vnf_side_slow(vnf, 0);
	vnf_side_slow(vnf, 2);
	return 0;
}

static const struct vnf_ops calm = {.size = sizeof(struct vnf), .process = obey, .open = two_are_slow};

static const struct task_ops calm_ops = {
        VNF_TASK_OPS("calm", &calm, drops, vnf_keys_macs, struct vnf_settings), .ports_min = 1,
        .ports_max = PORTS};

static struct task *create_from(struct fixture *f, const struct task_ops *of, unsigned ports,
                                const json_t *object)
{
	struct config_task config = {
	        .name = "vnf", .kind = "obedient", .ops = of, .port_count = ports, .object = object};
	struct port *list[] = {&f->ports[0].port, &f->ports[1].port, &f->ports[2].port};
	struct task *task;

	assert_int_equal(task_create(of, &config, list, &task), 0);
	return task;
}

static struct task *create_of(struct fixture *f, const struct task_ops *of, unsigned ports)
{
	return create_from(f, of, ports, NULL);
}

static struct task *create(struct fixture *f, unsigned ports)
{
	return create_of(f, &ops, ports);
}

// n frames of 60 bytes on port 0, the first byte of each as text says, the second its number.
static void inject(struct fixture *f, const uint8_t *first, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const uint8_t data[60] = {first[i], (uint8_t)i};
		struct rte_mbuf *m = fixture_packet(f, data, sizeof(data));

		assert_int_equal(ring_port_inject(&f->ports[0], &m, 1), 1);
	}
}

// Each frame is as much work as two.
static bool charge(struct vnf *vnf, unsigned in, struct vnf_frame *frames, unsigned n, uint64_t now_tsc,
                   uint8_t *verdicts)
{
	vnf->task.charge += frames[0].data[0] == 0xff ? n : 0;
	return true;
}

static const struct vnf_ops charging = {.size = sizeof(struct vnf), .process = charge};

static const struct task_ops charging_ops = {
        VNF_TASK_OPS("charging", &charging, drops, vnf_keys_macs, struct vnf_settings), .ports_min = 1,
        .ports_max = PORTS};

// What has come out of a port: exactly these numbers in this order.
static void assert_came(struct fixture *f, unsigned port, const uint8_t *numbers, unsigned n)
{
	struct rte_mbuf *m;

	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(ring_port_collect(&f->ports[port], &m, 1), 1);
		assert_int_equal(rte_pktmbuf_mtod(m, uint8_t *)[1], numbers[i]);
		rte_pktmbuf_free(m);
	}
	assert_int_equal(ring_port_drain(&f->ports[port]), 0);
}

// A burst of work is paid by a poll without; less than a burst by none. The other side is polled all the time, and no frame
// is lost.
static void who_makes_work_is_polled_less_often(void **state)
{
	static const uint8_t dear[32] = {[0 ... 31] = 0xff}, cheap[32];
	static const struct {
		const uint8_t *frames;
		unsigned n, rests;
	} cases[] = {{dear, 32, 1}, {dear, 31, 0}, {cheap, 32, 0}, {dear, 32, 1}};
	struct fixture *f = *state;
	struct task *task = create_of(f, &charging_ops, 2);

	for (unsigned i = 0; i < RTE_DIM(cases); i++) {
		struct rte_mbuf *m = fixture_packet(f, cheap, sizeof(cheap));

		inject(f, cases[i].frames, cases[i].n);
		assert_int_equal(task->ops->poll(task, 0), cases[i].n);
		inject(f, cheap, 1);
		assert_int_equal(ring_port_inject(&f->ports[1], &m, 1), 1);
		assert_int_equal(task->ops->poll(task, 0), cases[i].rests ? 1 : 2);
		assert_int_equal(task->ops->poll(task, 0), cases[i].rests);
		assert_int_equal(ring_port_drain(&f->ports[1]), cases[i].n + 1);
		assert_int_equal(ring_port_drain(&f->ports[0]), 1);
	}
	task_destroy(task);
}

static const struct vnf_ops dear = {.size = sizeof(struct vnf), .process = charge, .cost_is_process = true};

static const struct task_ops dear_ops = {
        VNF_TASK_OPS("dear", &dear, drops, vnf_keys_macs, struct vnf_settings), .ports_min = 1,
        .ports_max = PORTS};

// The other port has room for 15: of the 5 that it does not take all are counted, and the next ones wait where they are until
// it takes some. With a third port, or where a frame costs little, nobody waits.
static void who_sends_to_a_full_port_sends_less(void **state)
{
	static const struct {
		const struct task_ops *ops;
		unsigned ports;
	} cases[] = {{&dear_ops, 2}, {&dear_ops, 3}, {&charging_ops, 2}};
	static const uint8_t first[10];
	struct fixture *f = *state;

	for (unsigned i = 0; i < RTE_DIM(cases); i++) {
		struct task *task = create_of(f, cases[i].ops, cases[i].ports);
		bool waits = i == 0;

		inject(f, first, 10);
		assert_int_equal(task->ops->poll(task, 0), 10);
		inject(f, first, 10);
		assert_int_equal(task->ops->poll(task, 0), 10);
		assert_int_equal(task->counters.drop_tx_full[1], 5);
		inject(f, first, 10); // 5 were taken: the next burst is 11
		assert_int_equal(task->ops->poll(task, 0), 10);
		inject(f, first, 10);
		assert_int_equal(task->ops->poll(task, 0), waits ? 1 : 10);
		assert_int_equal(ring_port_drain(&f->ports[1]), 15);
		assert_int_equal(task->ops->poll(task, 0), waits ? 1 : 0);
		assert_int_equal(task->ops->poll(task, 0), waits ? 8 : 0);
		assert_int_equal(ring_port_drain(&f->ports[1]), waits ? 9 : 0);
		assert_int_equal(task->counters.rx_packets,
		                 task->counters.tx_packets + task_drop_tx_full(task));
		task_destroy(task);
	}
}

static json_int_t reported(const struct task *task, const char *path)
{
	json_t *report = fixture_report(task);
	json_int_t n = fixture_number(report, path);

	json_decref(report);
	return n;
}

static void frames_leave_by_their_verdicts_in_order(void **state)
{
	static const uint8_t first[] = {1,   2, VNF_DROP | ODD, 0, 2, VNF_DROP | EVEN, 1, VNF_DROP | EVEN,
	                                0xff};
	struct fixture *f = *state;
	struct task *task = create(f, PORTS);

	inject(f, first, sizeof(first));
	assert_int_equal(task->ops->poll(task, 0), sizeof(first));
	assert_came(f, 0, (uint8_t[]){3}, 1);
	assert_came(f, 1, (uint8_t[]){0, 6, 8}, 3);
	assert_came(f, 2, (uint8_t[]){1, 4}, 2);
	assert_int_equal(reported(task, "drops.odd"), 1);
	assert_int_equal(reported(task, "drops.even"), 2);
	assert_int_equal(task->counters.rx_packets, 9);
	assert_int_equal(task->counters.tx_packets, 6);
	task_clear(task);
	assert_int_equal(reported(task, "drops.even"), 0);
	task_destroy(task);
}

// Ports 0 and 2 are slow: one frame of one of them a poll.
static void slow_sides_take_turns(void **state)
{
	struct fixture *f = *state;
	struct task *task = create_of(f, &calm_ops, PORTS);

	for (unsigned port = 0; port < PORTS; port++)
		for (unsigned i = 0; i < 9; i++)
			assert_int_equal(fixture_inject(f, port, 1, 60), 1); // verdict 0
	for (unsigned poll = 1; poll <= 18; poll++) {
		assert_int_equal(task->ops->poll(task, 0), poll == 1 ? 10 : 1);
		assert_int_equal(rte_ring_count(f->ports[0].to_dut), 9 - (poll + 1) / 2);
		assert_int_equal(rte_ring_count(f->ports[1].to_dut), 0);
		assert_int_equal(rte_ring_count(f->ports[2].to_dut), 9 - poll / 2);
	}
	assert_int_equal(task->ops->poll(task, 0), 0);
	assert_int_equal(ring_port_drain(&f->ports[0]), 27);
	assert_int_equal(task->counters.rx_packets, 27);
	assert_int_equal(task->counters.tx_packets, 27);
	task_destroy(task);
}

static void what_a_full_port_does_not_take_is_counted(void **state)
{
	struct fixture *f = *state; // rings of 15
	struct task *task = create(f, 2);
	uint8_t first[15];

	memset(first, 1, sizeof(first));
	first[7] = VNF_DROP | ODD;
	for (unsigned round = 0; round < 2; round++) {
		inject(f, first, sizeof(first));
		assert_int_equal(task->ops->poll(task, 0), sizeof(first));
	}
	assert_int_equal(task->counters.drop_tx_full[1], 13);
	assert_int_equal(task->counters.rx_packets, task->counters.tx_packets + task_drop_tx_full(task) + 2);
	assert_int_equal(ring_port_drain(&f->ports[1]), 15);
	task_destroy(task);
}

static void a_tick_comes_once_a_millisecond(void **state)
{
	struct task *task = create(*state, 2);
	uint64_t ms = ((struct vnf *)task)->tick_tsc;

	ticks = 0;
	for (unsigned i = 0; i < 40; i++)
		task->ops->poll(task, i * ms / 4);
	assert_int_equal(ticks, 10);
	task_destroy(task);
}

static void inject_probe(struct fixture *f, uint32_t sequence, uint8_t first)
{
	const struct frame_flow flow = {.stream = 3, .epoch = 1, .frame_size_bytes = 64};
	uint8_t data[FRAME_STORE_BYTES];
	struct frame_template t;
	struct rte_mbuf *m;

	assert_int_equal(frame_template_init(&t, &flow), 0);
	frame_write_probe(&t, data, sequence, 5);
	data[0] = first;
	m = fixture_packet(f, data, t.length);
	assert_int_equal(ring_port_inject(&f->ports[0], &m, 1), 1);
}

static void probes_are_stamped_when_asked(void **state)
{
	static const uint8_t plain = 1;
	struct fixture *f = *state;
	struct task *task = create(f, 2);
	const struct stamp *log;

	inject_probe(f, 7, 1);
	assert_int_equal(task->ops->poll(task, 0), 1); // not asked
	task->stamps = stamps_create();
	inject_probe(f, 8, 1);
	inject(f, &plain, 1);
	inject_probe(f, 9, VNF_DROP | ODD);
	assert_int_equal(task->ops->poll(task, 70), 3); // the other side was empty: not where probes come
	assert_int_equal(task->ops->poll(task, 71), 0);
	inject_probe(f, 10, 0xff);
	assert_int_equal(task->ops->poll(task, 72), 1);
	log = task->stamps->log;
	assert_int_equal(task->stamps->count, 3);
	assert_int_equal(log[0].sequence, 8);
	assert_int_equal(log[0].stream, 3);
	assert_true(log[0].out_tsc >= log[0].in_tsc && log[0].in_tsc);
	assert_int_equal(log[1].sequence, 9);
	assert_int_equal(log[1].out_tsc, 0);
	assert_true(log[2].out_tsc >= log[2].in_tsc);
	assert_int_equal(log[0].empty_tsc, 0); // no poll was empty since there are stamps
	assert_int_equal(log[2].empty_tsc, 71);
	stamps_free(task->stamps);
	ring_port_drain(&f->ports[1]);
	task_destroy(task);
}

// A task that sends as DPDK's l2fwd does. drain_us below 0: the default.
static struct task *create_waiting(struct fixture *f, unsigned ports, int send_burst, int drain_us)
{
	json_t *object = json_pack("{s:i}", "send_burst", send_burst);
	struct task *task;

	if (drain_us >= 0)
		json_object_set_new(object, "drain_us", json_integer(drain_us));
	task = create_from(f, &ops, ports, object);
	json_decref(object);
	return task;
}

static void frames_wait_until_there_are_enough(void **state)
{
	static const uint8_t first[] = {1, 2, 1, VNF_DROP | ODD, 1, 1, 2};
	struct fixture *f = *state;
	struct task *task = create_waiting(f, PORTS, 3, 1000);
	uint64_t now_tsc = rte_rdtsc();

	task->ops->poll(task, now_tsc); // the first poll drains
	inject(f, first, 3);
	assert_int_equal(task->ops->poll(task, now_tsc + 1), 3);
	assert_came(f, 1, NULL, 0);
	assert_int_equal(task->counters.tx_packets, 0);
	inject(f, first + 3, 4);
	assert_int_equal(task->ops->poll(task, now_tsc + 2), 4);
	assert_came(f, 1, (uint8_t[]){0, 2, 1}, 3); // numbers begin anew in each inject()
	assert_came(f, 2, NULL, 0);
	assert_int_equal(task->counters.rx_packets, 7);
	assert_int_equal(task->counters.tx_packets, 3);
	assert_int_equal(reported(task, "drops.odd"), 1);
	task_destroy(task); // with three that wait
}

static void frames_that_wait_leave_each_drain_time(void **state)
{
	static const uint8_t first[] = {1, 0xff};
	struct fixture *f = *state;
	struct task *task = create_waiting(f, 2, 32, -1);
	uint64_t drain_tsc = clock_hz() / 1000000 * 100, now_tsc = 7 * drain_tsc;

	task->ops->poll(task, now_tsc);
	inject(f, first, 2); // whole burst by one port, and then by verdicts
	assert_int_equal(task->ops->poll(task, now_tsc + drain_tsc - 2), 2);
	assert_int_equal(task->ops->poll(task, now_tsc + drain_tsc - 1), 0);
	assert_came(f, 1, NULL, 0);
	assert_int_equal(task->ops->poll(task, now_tsc + drain_tsc), 2);
	assert_came(f, 1, (uint8_t[]){0, 1}, 2);
	inject(f, first + 1, 1); // a drain is not put off by a frame that has just come
	assert_int_equal(task->ops->poll(task, now_tsc + 2 * drain_tsc - 1), 1);
	assert_int_equal(task->ops->poll(task, now_tsc + 2 * drain_tsc), 1);
	assert_came(f, 1, (uint8_t[]){0}, 1);
	assert_int_equal(task->counters.rx_packets, task->counters.tx_packets);
	task_destroy(task);
}

static void frames_that_waited_for_a_full_port_are_counted(void **state)
{
	struct fixture *f = *state; // rings of 15
	struct task *task = create_waiting(f, 2, 4, 1000);
	uint64_t now_tsc = rte_rdtsc();
	uint8_t first[15];

	memset(first, 1, sizeof(first));
	for (unsigned round = 0; round < 2; round++) {
		inject(f, first, sizeof(first));
		task->ops->poll(task, now_tsc + round);
	}
	assert_int_equal(task->ops->poll(task, now_tsc + clock_hz() / 100), 2);
	assert_int_equal(ring_port_drain(&f->ports[1]), 15);
	assert_int_equal(task->counters.tx_packets, 15);
	assert_int_equal(task->counters.drop_tx_full[1], 15);
	task_destroy(task);
}

static void a_probe_that_waits_is_stamped_when_it_leaves(void **state)
{
	static const uint8_t plain = 1;
	struct fixture *f = *state;
	struct task *task = create_waiting(f, 2, 3, 1000);
	uint64_t now_tsc = rte_rdtsc(), before_tsc;
	struct stamps *first = stamps_create();

	task->ops->poll(task, now_tsc);
	task->stamps = first;
	inject_probe(f, 8, 1);
	inject_probe(f, 9, VNF_DROP | ODD);
	task->ops->poll(task, now_tsc + 1);
	assert_int_equal(first->count, 2);
	assert_int_equal(first->log[0].out_tsc, 0);
	before_tsc = rte_rdtsc();
	inject(f, &plain, 1);
	task->ops->poll(task, now_tsc + 2);
	assert_int_equal(first->log[0].out_tsc, 0);
	inject_probe(f, 10, 1);
	task->ops->poll(task, now_tsc + 3);
	assert_true(first->log[0].out_tsc >= before_tsc);
	assert_int_equal(first->log[1].out_tsc, 0); // dropped
	assert_true(first->log[2].out_tsc >= first->log[2].in_tsc);
	inject_probe(f, 11, 1); // the next trial begins while it waits
	task->ops->poll(task, now_tsc + 4);
	task->stamps = stamps_create();
	stamps_free(first);
	task->ops->poll(task, now_tsc + clock_hz());
	assert_int_equal(task->stamps->count, 0);
	assert_int_equal(ring_port_drain(&f->ports[1]), 4);
	stamps_free(task->stamps);
	task_destroy(task);
}

// Mean waiting time in us of frames that come each gap_us, polled each 0.1 us of a clock of the test.
static double mean_wait_us(struct fixture *f, int send_burst, int drain_us, double gap_us)
{
	enum { FRAMES = 3000, STEPS_PER_US = 10 };
	static const uint8_t first = 0xff;
	struct task *task = create_waiting(f, 2, send_burst, drain_us);
	uint64_t step_tsc = clock_hz() / 1000000 / STEPS_PER_US;
	double came_us[FRAMES], wait_us = 0;
	unsigned came = 0, left = 0;

	for (uint64_t step = 1; left < FRAMES; step++) {
		double now_us = (double)step / STEPS_PER_US;

		if (came < FRAMES && now_us >= came * gap_us) {
			inject(f, &first, 1);
			came_us[came++] = now_us;
		}
		task->ops->poll(task, step * step_tsc);
		for (unsigned n = ring_port_drain(&f->ports[1]); n > 0; n--)
			wait_us += now_us - came_us[left++];
	}
	task_destroy(task);
	return wait_us / FRAMES;
}

// In each drain time, some bursts fill up, and what has come after the last of them waits for the drain.
static double expected_wait_us(int send_burst, int drain_us, double gap_us)
{
	double frames = drain_us / gap_us, in_bursts = floor(frames / send_burst) * send_burst;
	double rest = frames - in_bursts;

	return gap_us / 2 * (in_bursts * (send_burst - 1) + rest * rest) / frames;
}

// conext19 and can17 explain their latency at low load by this.
static void waiting_has_a_closed_form(void **state)
{
	static const struct {
		int send_burst, drain_us;
		double gap_us;
	} cases[] = {{32, 100, 50.3}, {32, 100, 7.1}, {32, 100, 2.07},
	             {8, 100, 5.3},   {64, 10, 1.7},  {1, 100, 3}};

	for (unsigned i = 0; i < RTE_DIM(cases); i++) {
		double expected = expected_wait_us(cases[i].send_burst, cases[i].drain_us, cases[i].gap_us);
		double found = mean_wait_us(*state, cases[i].send_burst, cases[i].drain_us, cases[i].gap_us);

		if (fabs(found - expected) > 0.05 * expected + 0.1)
			fail_msg("send_burst %d, drain_us %d, a frame each %.2f us: %.2f us, not %.2f us",
			         cases[i].send_burst, cases[i].drain_us, cases[i].gap_us, found, expected);
	}
}

// Table 4 of conext19 is measured at 1 Mpps.
static void a_batch_of_32_waits_for_15_us_at_1_mpps_and_for_its_timer_at_100_kpps(void **state)
{
	// 96 of 100 frames leave in batches, after 31 / 2 us; four more leave by the timer.
	assert_in_range(lround(10 * mean_wait_us(*state, 32, 100, 1)), 145, 160);
	assert_in_range(lround(10 * mean_wait_us(*state, 32, 100, 10.03)), 490, 510);
	assert_int_equal(lround(10 * mean_wait_us(*state, 0, -1, 1)), 0);
}

static void a_drain_time_without_a_burst_is_refused(void **state)
{
	struct config_task config = {.name = "vnf", .kind = "obedient", .ops = &ops, .port_count = 2};
	char error[CONFIG_ERROR_MAX] = "";

	config.object = json_pack("{s:i}", "drain_us", 10);
	assert_int_equal(task_settings_parse(&ops, &config, "tasks[0]", error), -EINVAL);
	assert_string_equal(error, "task vnf: drain_us without send_burst; give both");
	json_decref((json_t *)config.object);
}

static void methods_are_called_by_name(void **state)
{
	struct task *task = create(*state, 2);
	char error[CONFIG_ERROR_MAX] = "";
	json_t *result = task_call(task, "ask", NULL, 42, error);

	assert_int_equal(fixture_number(result, "now"), 42);
	json_decref(result);
	assert_null(task_call(task, "tell", NULL, 42, error));
	assert_string_equal(error, "kind obedient has no method \"tell\"; valid: ask");
	task_destroy(task);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(frames_leave_by_their_verdicts_in_order),
	        cmocka_unit_test_setup_teardown(what_a_full_port_does_not_take_is_counted,
	                                        fixture_setup_small, fixture_teardown),
	        TEST(slow_sides_take_turns),
	        TEST(who_makes_work_is_polled_less_often),
	        cmocka_unit_test_setup_teardown(who_sends_to_a_full_port_sends_less, fixture_setup_small,
	                                        fixture_teardown),
	        TEST(a_tick_comes_once_a_millisecond),
	        TEST(probes_are_stamped_when_asked),
	        TEST(frames_wait_until_there_are_enough),
	        TEST(frames_that_wait_leave_each_drain_time),
	        cmocka_unit_test_setup_teardown(frames_that_waited_for_a_full_port_are_counted,
	                                        fixture_setup_small, fixture_teardown),
	        TEST(a_probe_that_waits_is_stamped_when_it_leaves),
	        TEST(waiting_has_a_closed_form),
	        TEST(a_batch_of_32_waits_for_15_us_at_1_mpps_and_for_its_timer_at_100_kpps),
	        TEST(a_drain_time_without_a_burst_is_refused),
	        TEST(methods_are_called_by_name),
	};

	if (fixture_eal_init("vnf") != 0)
		return 99; // for meson: could not be run
	return cmocka_run_group_tests_name("vnf", tests, NULL, NULL);
}
