// SPDX-License-Identifier: BSD-3-Clause
// What is common to network functions, with one that does as the first byte of a frame says: verdicts, order
// by port, conservation, partial sends, stamps of probes, methods.
#include "test/fixture.h"
#include "tasks/tester/frame.h"
#include "lib/stamps.h"
#include "test/unit.h"
#include "tasks/vnf/vnf.h"

enum { ODD, EVEN, PORTS = 3 };

static const struct counter drops[] = {VNF_DROP_COUNTER(ODD, "odd"), VNF_DROP_COUNTER(EVEN, "even"), {0}};
static unsigned ticks;

// 0x80 and above: the verdict. Below: all leave by out[in].
static bool obey(struct vnf *vnf, unsigned in, const struct vnf_frame *frames, unsigned n, uint64_t now_tsc,
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

static struct task *create_of(struct fixture *f, const struct task_ops *of, unsigned ports)
{
	struct config_task config = {.name = "vnf", .kind = "obedient", .port_count = ports};
	struct port *list[] = {&f->ports[0].port, &f->ports[1].port, &f->ports[2].port};
	struct task *task;

	assert_int_equal(task_create(of, &config, list, &task), 0);
	return task;
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
	assert_int_equal(task->ops->poll(task, 0), 3);
	inject_probe(f, 10, 0xff);
	assert_int_equal(task->ops->poll(task, 0), 1);
	log = task->stamps->log;
	assert_int_equal(task->stamps->count, 3);
	assert_int_equal(log[0].sequence, 8);
	assert_int_equal(log[0].stream, 3);
	assert_true(log[0].out_tsc >= log[0].in_tsc && log[0].in_tsc);
	assert_int_equal(log[1].sequence, 9);
	assert_int_equal(log[1].out_tsc, 0);
	assert_true(log[2].out_tsc >= log[2].in_tsc);
	stamps_free(task->stamps);
	ring_port_drain(&f->ports[1]);
	task_destroy(task);
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
	        TEST(a_tick_comes_once_a_millisecond),
	        TEST(probes_are_stamped_when_asked),
	        TEST(methods_are_called_by_name),
	};

	if (fixture_eal_init("vnf") != 0)
		return 99; // for meson: could not be run
	return cmocka_run_group_tests_name("vnf", tests, NULL, NULL);
}
