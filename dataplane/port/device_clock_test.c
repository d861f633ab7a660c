// SPDX-License-Identifier: BSD-3-Clause
// Stamps of a device, from the generator's log to the monitor's, with a device whose clock the test sets: the functions of
// DPDK that read it are replaced below.
#include "port/device_clock.h"

#include <errno.h>
#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_mbuf_dyn.h>

#include "tester/stamps.h"
#include "tester/generator.h"
#include "tester/monitor.h"
#include "tester/frame.h"
#include "test/fixture.h"
#include "test/unit.h"

static struct device {
	bool absent;
	bool has_sent, has_received; // a stamp, in the register
	struct timespec sent, received;
	unsigned received_reads;
} device;

int rte_eth_timesync_enable(uint16_t port_id)
{
	return device.absent ? -ENOTSUP : 0;
}

int rte_eth_timesync_disable(uint16_t port_id)
{
	return 0;
}

int rte_eth_timesync_read_tx_timestamp(uint16_t port_id, struct timespec *time)
{
	if (!device.has_sent)
		return -EINVAL;
	device.has_sent = false;
	*time = device.sent;
	return 0;
}

int rte_eth_timesync_read_rx_timestamp(uint16_t port_id, struct timespec *time, uint32_t flags)
{
	device.received_reads++;
	if (!device.has_received)
		return -EINVAL;
	device.has_received = false;
	*time = device.received;
	return 0;
}

int rte_eth_timesync_read_time(uint16_t port_id, struct timespec *time)
{
	*time = (struct timespec){9, device.received_reads++};
	return device.absent ? -ENOTSUP : 0;
}

#define START UINT64_C(1000000000)

struct bench {
	struct fixture *fixture;
	struct task *generator, *monitor;
};

static struct task *create(struct fixture *f, unsigned port, const char *kind)
{
	struct config_task config = {.port_count = 1};
	struct port *ports[] = {&f->ports[port].port};
	struct task *task = NULL;

	snprintf(config.name, sizeof(config.name), "%s", kind);
	snprintf(config.kind, sizeof(config.kind), "%s", kind);
	assert_int_equal(task_create(task_ops_find(kind), &config, ports, &task), 0);
	task->stamps = stamps_create();
	return task;
}

// Frames of which each is a probe, unless the port refuses it.
static struct bench open_bench(void **state, bool ptp_probes)
{
	struct bench b = {.fixture = *state};
	const struct generator_load load = {.epoch = 5,
	                                    .start_tsc = START,
	                                    .duration_ns = 1000000000,
	                                    .frame_size_bytes = 64,
	                                    .rate_pps = 1000,
	                                    .probe_rate_pps = 1e6,
	                                    .ptp_probes = ptp_probes};

	device = (struct device){0};
	for (unsigned i = 0; i < 2; i++) {
		struct port *port = &b.fixture->ports[i].port;
		struct rte_eth_dev_info info = {0};
		struct rte_eth_conf conf = {0};

		port->config.clock = PORT_CLOCK_HARDWARE;
		device_clock_configure(port, &info, &conf);
		assert_int_equal(device_clock_open(port), 0);
		assert_int_equal(port->clock, PORT_CLOCK_HARDWARE);
	}
	b.generator = create(b.fixture, 0, "generator");
	b.monitor = create(b.fixture, 1, "monitor");
	assert_int_equal(generator_start(b.generator, &load), 0);
	monitor_start(b.monitor, 5, 0);
	return b;
}

static void close_bench(struct bench *b)
{
	stamps_free(b->generator->stamps);
	stamps_free(b->monitor->stamps);
	task_destroy(b->generator);
	task_destroy(b->monitor);
}

// Poll the generator just after the n-th frame is due; returns the frame.
static struct rte_mbuf *sent(struct bench *b, unsigned n)
{
	uint64_t now = START + (uint64_t)((n * 1e3 + 2) * (double)clock_hz() / 1e6);
	struct rte_mbuf *m;

	b->generator->ops->poll(b->generator, now);
	assert_int_equal(ring_port_collect(&b->fixture->ports[0], &m, 1), 1);
	return m;
}

static bool is_marked(const struct rte_mbuf *m)
{
	return m->ol_flags & RTE_MBUF_F_TX_IEEE1588_TMST;
}

static void received(struct bench *b, struct rte_mbuf *m, uint64_t flags)
{
	m->ol_flags = flags;
	assert_int_equal(ring_port_inject(&b->fixture->ports[1], &m, 1), 1);
	b->monitor->ops->poll(b->monitor, 0);
}

static void a_sent_probe_gets_the_stamp_that_the_device_has_later(void **state)
{
	struct bench b = open_bench(state, false);
	struct rte_mbuf *m = sent(&b, 0);
	const struct stamp *log = b.generator->stamps->log;

	assert_true(is_marked(m));
	assert_int_equal(log[0].port_ns, 0);
	device.has_sent = true;
	device.sent = (struct timespec){3, 999999999};
	rte_pktmbuf_free(m);
	rte_pktmbuf_free(sent(&b, 1));
	assert_int_equal(log[0].port_ns, UINT64_C(3999999999));
	close_bench(&b);
}

// One at a time: while a stamp is owed, the next probe is not marked, and has none.
static void a_probe_is_not_marked_while_a_stamp_is_owed(void **state)
{
	struct bench b = open_bench(state, false);
	const struct stamp *log = b.generator->stamps->log;

	for (unsigned i = 0; i < 3; i++) {
		struct rte_mbuf *m = sent(&b, i);

		assert_int_equal(is_marked(m), i == 0);
		rte_pktmbuf_free(m);
	}
	device.has_sent = true;
	device.sent = (struct timespec){1, 7};
	rte_pktmbuf_free(sent(&b, 3));
	assert_int_equal(log[0].port_ns, 1000000007);
	for (unsigned i = 1; i < 4; i++)
		assert_int_equal(log[i].port_ns, 0);
	close_bench(&b);
}

static bool is_ptp(const struct rte_mbuf *m)
{
	const uint8_t *data = rte_pktmbuf_mtod(m, const uint8_t *);

	return data[12] == 0x88 && data[13] == 0xf7;
}

// Where a device stamps PTP messages only: one that is not to be stamped must not take the register of the receiver.
static void a_probe_is_a_ptp_message_while_it_is_marked(void **state)
{
	struct bench b = open_bench(state, true);
	struct rte_mbuf *m = sent(&b, 0);
	json_t *report;

	assert_true(is_marked(m) && is_ptp(m));
	device.has_received = true;
	device.received = (struct timespec){4, 5};
	received(&b, m, RTE_MBUF_F_RX_IEEE1588_PTP | RTE_MBUF_F_RX_IEEE1588_TMST);
	m = sent(&b, 1);
	assert_false(is_marked(m) || is_ptp(m));
	received(&b, m, 0);
	device.has_sent = true;
	device.sent = (struct timespec){4, 1};
	m = sent(&b, 2);
	assert_true(is_marked(m) && is_ptp(m));
	received(&b, m, 0);
	assert_int_equal(b.monitor->stamps->count, 3);
	assert_int_equal(b.generator->stamps->log[0].port_ns, UINT64_C(4000000001));
	assert_int_equal(b.monitor->stamps->log[0].port_ns, UINT64_C(4000000005));
	report = fixture_report(b.monitor);
	assert_int_equal(fixture_number(report, "monitor.streams.0.forwarded_packets"), 3);
	json_decref(report);
	close_bench(&b);
}

// The device forgot one: the generator gives up. Its stamp comes after all, and is nobody's.
static void a_late_stamp_is_not_given_to_the_next_probe(void **state)
{
	struct bench b = open_bench(state, false);
	const struct stamp *log = b.generator->stamps->log;
	struct rte_mbuf *m;

	rte_pktmbuf_free(sent(&b, 0));
	b.generator->ops->poll(b.generator, UINT64_MAX); // long after: given up; and the end of the load
	assert_false(generator_running(b.generator));
	assert_int_equal(generator_start(b.generator, &(struct generator_load){.epoch = 5,
	                                                                       .start_tsc = START,
	                                                                       .duration_ns = 1000000000,
	                                                                       .frame_size_bytes = 64,
	                                                                       .rate_pps = 1000,
	                                                                       .probe_rate_pps = 1e6}),
	                 0);
	device.has_sent = true;
	device.sent = (struct timespec){1, 1};
	m = sent(&b, 0);
	assert_true(is_marked(m));
	rte_pktmbuf_free(m);
	rte_pktmbuf_free(sent(&b, 1));
	assert_int_equal(log[1].port_ns, 0); // nothing yet: that of before is gone
	device.has_sent = true;
	device.sent = (struct timespec){2, 2};
	rte_pktmbuf_free(sent(&b, 2));
	assert_int_equal(log[1].port_ns, 2000000002);
	close_bench(&b);
}

static void a_received_probe_has_the_stamp_of_its_register(void **state)
{
	struct bench b = open_bench(state, false);
	struct rte_mbuf *m = sent(&b, 0);

	device.has_received = true;
	device.received = (struct timespec){4, 4};
	received(&b, m, RTE_MBUF_F_RX_IEEE1588_PTP | RTE_MBUF_F_RX_IEEE1588_TMST);
	assert_int_equal(b.monitor->stamps->log[0].port_ns, UINT64_C(4000000004));
	close_bench(&b);
}

// The register is of a frame that never came: it is emptied, and this probe has no stamp.
static void a_register_of_another_frame_is_emptied(void **state)
{
	struct bench b = open_bench(state, false);
	struct rte_mbuf *m = sent(&b, 0);

	device.has_received = true;
	received(&b, m, RTE_MBUF_F_RX_IEEE1588_PTP);
	assert_int_equal(b.monitor->stamps->count, 1);
	assert_int_equal(b.monitor->stamps->log[0].port_ns, 0);
	assert_false(device.has_received);
	received(&b, sent(&b, 1), 0); // no PTP frame to the device: nothing is read
	assert_int_equal(device.received_reads, 1);
	close_bench(&b);
}

// Stamps in the mbufs: that of each frame is its own, in one burst with one that has none.
static void a_burst_has_a_stamp_for_each_frame(void **state)
{
	struct bench b = open_bench(state, false);
	struct rte_mbuf *pkts[] = {sent(&b, 0), sent(&b, 1), sent(&b, 2)};
	uint64_t flag;
	int offset;

	assert_int_equal(rte_mbuf_dyn_rx_timestamp_register(&offset, &flag), 0);
	for (unsigned i = 0; i < 3; i++) {
		pkts[i]->ol_flags = i == 1 ? 0 : flag;
		*RTE_MBUF_DYNFIELD(pkts[i], offset, rte_mbuf_timestamp_t *) = UINT64_MAX - 2 + i;
	}
	assert_int_equal(ring_port_inject(&b.fixture->ports[1], pkts, 3), 3);
	b.monitor->ops->poll(b.monitor, 0);
	assert_int_equal(b.monitor->stamps->count, 3);
	assert_true(b.monitor->stamps->log[0].port_ns == UINT64_MAX - 2);
	assert_true(b.monitor->stamps->log[1].port_ns == 0);
	assert_true(b.monitor->stamps->log[2].port_ns == UINT64_MAX);
	close_bench(&b);
}

static void a_clock_that_is_not_there_is_refused(void **state)
{
	struct port *port = &((struct fixture *)*state)->ports[0].port;

	device = (struct device){.absent = true};
	port->config.clock = PORT_CLOCK_HARDWARE;
	assert_int_equal(device_clock_open(port), -ENOTSUP);
	port->config.clock = PORT_CLOCK_KERNEL;
	assert_int_equal(device_clock_open(port), -ENOTSUP);
	port->config.clock = PORT_CLOCK_SOFTWARE;
	assert_int_equal(device_clock_open(port), 0);
	assert_int_equal(port->clock, PORT_CLOCK_SOFTWARE);
}

static void only_who_asks_for_stamps_pays_for_them(void **state)
{
	const struct rte_eth_dev_info info = {.rx_offload_capa = RTE_ETH_RX_OFFLOAD_TIMESTAMP,
	                                      .tx_offload_capa = RTE_ETH_TX_OFFLOAD_MULTI_SEGS};
	struct port *port = &((struct fixture *)*state)->ports[0].port;
	struct rte_eth_conf conf = {0};

	device_clock_configure(port, &info, &conf);
	assert_true(conf.rxmode.offloads == 0 && conf.txmode.offloads == 0);
	port->config.clock = PORT_CLOCK_HARDWARE;
	device_clock_configure(port, &info, &conf);
	assert_true(conf.rxmode.offloads == RTE_ETH_RX_OFFLOAD_TIMESTAMP);
	assert_true(conf.txmode.offloads == RTE_ETH_TX_OFFLOAD_MULTI_SEGS);
	assert_false(port->stamps_ptp_only);
}

static uint16_t refuse_marked(void *queue, struct rte_mbuf **pkts, uint16_t n)
{
	rte_errno = ENOTSUP;
	return pkts[0]->ol_flags & RTE_MBUF_F_TX_IEEE1588_TMST ? 0 : n;
}

// As the drivers of igb and ixgbe do that were built without stamps.
static void a_driver_that_ignores_the_mark_is_refused(void **state)
{
	struct port *port = &((struct fixture *)*state)->ports[0].port;
	struct rte_eth_fp_ops *ops = &rte_eth_fp_ops[port->port_id];
	eth_tx_prep_t was = ops->tx_pkt_prepare;

	device = (struct device){0};
	port->config.clock = PORT_CLOCK_HARDWARE;
	ops->tx_pkt_prepare = refuse_marked;
	assert_int_equal(device_clock_open(port), -ENOTSUP);
	ops->tx_pkt_prepare = was;
	assert_int_equal(device_clock_open(port), 0);
}

static void a_clock_is_read_between_two_readings_of_the_tsc(void **state)
{
	struct port *port = &((struct fixture *)*state)->ports[0].port;
	struct clock_reading reading;
	uint64_t before = rte_rdtsc();

	device = (struct device){0};
	assert_false(device_clock_read(port, &reading)); // software
	port->clock = PORT_CLOCK_HARDWARE;
	assert_true(device_clock_read(port, &reading));
	assert_in_range(reading.ns, UINT64_C(9000000000), UINT64_C(9000000007));
	assert_in_range(reading.tsc, before, rte_rdtsc());
	assert_true(reading.width_tsc <= rte_rdtsc() - before);
	device.absent = true;
	assert_false(device_clock_read(port, &reading));
}

static void an_interface_is_found_in_the_arguments_of_its_driver(void **state)
{
	struct port port = {.config.device = "net_af_packet_n0,iface=wire0,framecnt=8"};
	char name[16];

	assert_true(device_clock_interface(&port, name, sizeof(name)));
	assert_string_equal(name, "wire0");
	strcpy(port.config.device, "net_tap0,iface=wire0");
	assert_false(device_clock_interface(&port, name, sizeof(name)));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(a_sent_probe_gets_the_stamp_that_the_device_has_later),
	        TEST(a_probe_is_not_marked_while_a_stamp_is_owed),
	        TEST(a_late_stamp_is_not_given_to_the_next_probe),
	        TEST(a_received_probe_has_the_stamp_of_its_register),
	        TEST(a_register_of_another_frame_is_emptied),
	        TEST(a_burst_has_a_stamp_for_each_frame),
	        TEST(a_clock_that_is_not_there_is_refused),
	        TEST(only_who_asks_for_stamps_pays_for_them),
	        TEST(a_driver_that_ignores_the_mark_is_refused),
	        TEST(a_probe_is_a_ptp_message_while_it_is_marked),
	        TEST(a_clock_is_read_between_two_readings_of_the_tsc),
	        TEST(an_interface_is_found_in_the_arguments_of_its_driver),
	};

	if (fixture_eal_init("device_clock") != 0)
		return 99; // for meson: could not be run
	return cmocka_run_group_tests_name("device_clock", tests, NULL, NULL);
}
