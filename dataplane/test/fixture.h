// SPDX-License-Identifier: BSD-3-Clause
// What the tests of tasks need: EAL without hugepages, root or files; ports made of two rings; a packet pool.
// A cmocka test uses fixture_setup and fixture_teardown and finds its struct fixture in *state. The teardown
// fails the test unless every mbuf is back in its pool and no other pool is left, so that every leak is found
// by every test.
//
// A ring holds slots - 1 packets and passes pointers: what is injected is what the task sees.
#pragma once

#include <jansson.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "runtime/config.h"
#include "port/port.h"
#include "task/task.h"

enum {
	FIXTURE_PORTS = 4, // p0 .. p3
	FIXTURE_SLOTS = 256,
	FIXTURE_MBUFS = 1023,
	FIXTURE_DATA_BYTES = RTE_PKTMBUF_HEADROOM + 2048,
};

struct ring_port {
	struct port port;
	struct rte_ring *to_dut;   // injected here, received by the task
	struct rte_ring *from_dut; // sent by the task, collected here
};

struct fixture {
	struct rte_mempool *pool;
	struct ring_port ports[FIXTURE_PORTS];
};

// Burst sizes at which loops have their edges.
extern const uint16_t fixture_bursts[];
extern const unsigned fixture_burst_count;

// EAL, once per program, before cmocka: it calls a group whose setup failed passed. name becomes part of the
// file prefix. Returns 0 or -errno.
int fixture_eal_init(const char *name);
int fixture_eal_init_sized(const char *name, unsigned size_mb);

// With rings of FIXTURE_SLOTS, or of 16 to make partial sends honest.
int fixture_setup(void **state);
int fixture_setup_small(void **state);
int fixture_teardown(void **state);

// Configure and start the device behind port->port_id with one queue each way. Returns 0 or -errno.
int fixture_device_start(struct port *port);

int ring_port_open(struct ring_port *rp, const char *name, unsigned slots, struct rte_mempool *pool);
void ring_port_close(struct ring_port *rp);

// Hand n packets to the task; all or none, returns how many.
unsigned ring_port_inject(struct ring_port *rp, struct rte_mbuf **pkts, unsigned n);

// Take up to n packets that the task sent; they are the caller's.
unsigned ring_port_collect(struct ring_port *rp, struct rte_mbuf **pkts, unsigned n);

// Collect and free everything; returns how many.
unsigned ring_port_drain(struct ring_port *rp);

// A packet of the fixture's pool with these bytes, NULL without one.
struct rte_mbuf *fixture_packet(struct fixture *f, const void *data, uint16_t length);

// Inject n frames of length bytes, zero but for their index in the first byte; returns how many.
unsigned fixture_inject(struct fixture *f, unsigned port, unsigned n, uint16_t length);

// Create a task of config->kind on the first config->port_count of the fixture's ports; of more than there
// are, each is several of the task's. NULL when refused.
struct task *fixture_task(struct fixture *f, struct config_task *config);

// Take all but one mbuf of the pool, and see that a task still moves frames from the first port to the second: the mbuf
// comes back each time. Returns whether it did.
bool fixture_empty_pool(struct fixture *f, struct task *task);

// The stats object of a task as the control socket would send it; the caller's reference.
json_t *fixture_report(const struct task *task);

// The integer at a dotted path of a report, array elements by number: "monitor.streams.0.stream"; -1 when not
// there.
json_int_t fixture_number(const json_t *report, const char *path);
