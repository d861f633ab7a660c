// SPDX-License-Identifier: BSD-3-Clause
// EAL, ring-backed ports and the leak check of the tests. Nothing here depends on a test framework: the bench
// uses it too.
#include <errno.h>
#include <rte_cycles.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/fixture.h"

const uint16_t fixture_bursts[] = {0, 1, 3, 4, 5, 31, 32, 33};
const unsigned fixture_burst_count = RTE_DIM(fixture_bursts);

int fixture_eal_init(const char *name)
{
	return fixture_eal_init_sized(name, 256);
}

int fixture_eal_init_sized(const char *name, unsigned size_mb)
{
	char prefix[64], memory[16];
	char *args[] = {
	        "test",           "--no-huge",     "-m",   memory,        "--no-pci",      "--no-shconf",
	        "--no-telemetry", "--file-prefix", prefix, "--log-level", "lib.eal:error", NULL};
	cpu_set_t cpus;
	int status;

	snprintf(memory, sizeof(memory), "%u", size_mb);
	snprintf(prefix, sizeof(prefix), "test-%s-%d", name, getpid());
	sched_getaffinity(0, sizeof(cpus), &cpus);
	status = rte_eal_init(RTE_DIM(args) - 1, args);
	sched_setaffinity(0, sizeof(cpus), &cpus); // EAL has pinned us, beside whatever else runs on that CPU
	if (status < 0)
		return -rte_errno;
	rmdir(rte_eal_get_runtime_dir()); // made whatever the options, and not used with these
	return 0;
}

int fixture_device_start(struct port *port)
{
	const struct rte_eth_conf conf = {0};
	uint16_t id = port->port_id;
	int status = rte_eth_dev_configure(id, 1, 1, &conf);

	port->ops = &ethdev_port_ops;
	if (status == 0)
		status = rte_eth_rx_queue_setup(id, 0, 256, SOCKET_ID_ANY, NULL, port->rx_pool);
	if (status == 0)
		status = rte_eth_tx_queue_setup(id, 0, 256, SOCKET_ID_ANY, NULL);
	return status == 0 ? rte_eth_dev_start(id) : status;
}

int ring_port_open(struct ring_port *rp, const char *name, unsigned slots, struct rte_mempool *pool)
{
	char ring_name[RTE_RING_NAMESIZE];
	int id;

	memset(rp, 0, sizeof(*rp));
	snprintf(ring_name, sizeof(ring_name), "%s-to", name);
	rp->to_dut = rte_ring_create(ring_name, slots, SOCKET_ID_ANY, 0);
	snprintf(ring_name, sizeof(ring_name), "%s-from", name);
	rp->from_dut = rte_ring_create(ring_name, slots, SOCKET_ID_ANY, 0);
	if (!rp->to_dut || !rp->from_dut)
		return -ENOMEM;
	id = rte_eth_from_rings(name, &rp->to_dut, 1, &rp->from_dut, 1, 0);
	if (id < 0)
		return -rte_errno;
	rp->port.port_id = (uint16_t)id;
	rp->port.rx_pool = pool;
	rp->port.config.ring_size = slots;
	rp->port.config.line_rate_bps = UINT64_C(10000000000);
	snprintf(rp->port.config.name, sizeof(rp->port.config.name), "%s", name);
	return fixture_device_start(&rp->port);
}

void ring_port_close(struct ring_port *rp)
{
	struct rte_eth_dev_info info;

	rte_eth_dev_stop(rp->port.port_id);
	int rc = rte_eth_dev_info_get(rp->port.port_id, &info);

	rte_eth_dev_close(rp->port.port_id);
	if (rc == 0)
		rte_dev_remove(info.device);
	rte_ring_free(rp->to_dut);
	rte_ring_free(rp->from_dut);
}

unsigned ring_port_inject(struct ring_port *rp, struct rte_mbuf **pkts, unsigned n)
{
	return rte_ring_enqueue_bulk(rp->to_dut, (void **)pkts, n, NULL);
}

unsigned ring_port_collect(struct ring_port *rp, struct rte_mbuf **pkts, unsigned n)
{
	return rte_ring_dequeue_burst(rp->from_dut, (void **)pkts, n, NULL);
}

unsigned ring_port_drain(struct ring_port *rp)
{
	struct rte_mbuf *m;
	unsigned n = 0;

	for (; ring_port_collect(rp, &m, 1) == 1; n++)
		rte_pktmbuf_free(m);
	return n;
}

static int setup(void **state, unsigned slots)
{
	struct fixture *f = calloc(1, sizeof(*f));

	*state = f;
	if (!f)
		return -1;
	f->pool = rte_pktmbuf_pool_create("fixture", FIXTURE_MBUFS, 0, 0, FIXTURE_DATA_BYTES, SOCKET_ID_ANY);
	if (!f->pool)
		return -1;
	for (unsigned i = 0; i < FIXTURE_PORTS; i++) {
		const char name[] = {'p', (char)('0' + i), '\0'};

		if (ring_port_open(&f->ports[i], name, slots, f->pool) != 0)
			return -1;
	}
	return 0;
}

int fixture_setup(void **state)
{
	return setup(state, FIXTURE_SLOTS);
}

int fixture_setup_small(void **state)
{
	return setup(state, 16);
}

static void pool_check(struct rte_mempool *pool, void *leaks)
{
	unsigned missing = rte_mempool_in_use_count(pool);

	if (missing == 0 && strcmp(pool->name, "fixture") == 0)
		return;
	fprintf(stderr, "pool %s: %u mbufs missing at the end of the test\n", pool->name, missing);
	++*(unsigned *)leaks;
}

int fixture_teardown(void **state)
{
	struct fixture *f = *state;
	unsigned leaks = 0;

	rte_mempool_walk(pool_check, &leaks);
	for (unsigned i = 0; i < FIXTURE_PORTS; i++)
		ring_port_close(&f->ports[i]);
	rte_mempool_free(f->pool);
	free(f);
	return leaks ? -1 : 0;
}

struct rte_mbuf *fixture_packet(struct fixture *f, const void *data, uint16_t length)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(f->pool);

	if (m)
		memcpy(rte_pktmbuf_append(m, length), data, length);
	return m;
}

unsigned fixture_inject(struct fixture *f, unsigned port, unsigned n, uint16_t length)
{
	uint8_t data[FIXTURE_DATA_BYTES] = {0};
	unsigned done = 0;

	for (; done < n; done++) {
		struct rte_mbuf *m;

		data[0] = (uint8_t)done;
		m = fixture_packet(f, data, length);
		if (!m || ring_port_inject(&f->ports[port], &m, 1) == 0) {
			rte_pktmbuf_free(m);
			break;
		}
	}
	return done;
}

struct task *fixture_task(struct fixture *f, struct config_task *config)
{
	struct port *ports[CONFIG_TASK_PORTS_MAX];
	const struct task_ops *ops = task_ops_find(config->kind);
	struct task *task;

	for (unsigned i = 0; i < CONFIG_TASK_PORTS_MAX; i++)
		ports[i] = &f->ports[i % FIXTURE_PORTS].port;
	return ops && task_create(ops, config, ports, &task) == 0 ? task : NULL;
}

json_t *fixture_report(const struct task *task)
{
	json_t *object = json_object();

	task_report(task, object, rte_rdtsc(), true);
	return object;
}

json_int_t fixture_number(const json_t *report, const char *path)
{
	char copy[128], *rest = copy;

	snprintf(copy, sizeof(copy), "%s", path);
	for (char *key; report && (key = strsep(&rest, "."));)
		report = json_is_array(report) ? json_array_get(report, (size_t)atoi(key))
		                               : json_object_get(report, key);
	return json_is_integer(report) ? json_integer_value(report) : -1;
}

bool fixture_empty_pool(struct fixture *f, struct task *task)
{
	struct rte_mbuf *hoard[FIXTURE_MBUFS];
	bool fine = rte_pktmbuf_alloc_bulk(f->pool, hoard, FIXTURE_MBUFS - 1) == 0;

	for (unsigned i = 0; i < 3 && fine; i++)
		fine = fixture_inject(f, 0, 2, 60) == 1 && task->ops->poll(task, 0) == 1 &&
		       ring_port_drain(&f->ports[1]) == 1;
	rte_pktmbuf_free_bulk(hoard, FIXTURE_MBUFS - 1);
	return fine;
}
