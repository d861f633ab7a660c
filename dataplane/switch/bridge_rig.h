// SPDX-License-Identifier: BSD-3-Clause
// What the tests of the bridge have in common: its configurations, frames with addresses and tags, which
// ports frames came out of, and the two laws of counting. Stations are numbers.
#pragma once

#include <rte_byteorder.h>
#include <rte_cycles.h>

#include "switch/bridge_forward.h"
#include "test/fixture.h"
#include "test/unit.h"

enum { UNTAGGED = -1, LENGTH = 64, A = 1, B, C, NOBODY = 99 };

static const uint8_t broadcast[6] = {255, 255, 255, 255, 255, 255};

struct rig_config {
	struct config_task task;
	struct bridge_settings bridge;
};

static inline struct rig_config config(unsigned ports)
{
	struct rig_config c;

	memset(&c, 0, sizeof(c));
	snprintf(c.task.name, sizeof(c.task.name), "br");
	snprintf(c.task.kind, sizeof(c.task.kind), "bridge");
	c.task.port_count = ports;
	c.bridge.ageing_s = 300;
	c.bridge.table_size = 1024;
	return c;
}

static inline void allow(struct bridge_port_settings *port, unsigned vlan)
{
	port->trunk = true;
	port->tagged[vlan / 64] |= UINT64_C(1) << vlan % 64;
}

// p0: access 10. p1: access 20. p2: trunk 10 and 20. p3: trunk 10, native 20.
static inline struct rig_config config_vlan(void)
{
	struct rig_config c = config(4);

	c.bridge.vlan = true;
	c.bridge.port_count = 4;
	c.bridge.ports[0].untagged_vlan = 10;
	c.bridge.ports[1].untagged_vlan = c.bridge.ports[3].untagged_vlan = 20;
	allow(&c.bridge.ports[2], 10);
	allow(&c.bridge.ports[2], 20);
	allow(&c.bridge.ports[3], 10);
	return c;
}

static inline struct task *create(void **state, const struct rig_config *c)
{
	struct config_task of = c->task;
	struct task *task;

	of.settings = malloc(sizeof(c->bridge));
	memcpy(of.settings, &c->bridge, sizeof(c->bridge));
	task = fixture_task(*state, &of);
	assert_non_null(task);
	return task;
}

static inline json_int_t reported(const struct task *task, const char *path)
{
	json_t *report = fixture_report(task);
	json_int_t n = fixture_number(report, path);

	json_decref(report);
	return n;
}

static inline json_t *call(struct task *task, const char *method, json_t *params)
{
	char error[CONFIG_ERROR_MAX] = "";
	json_t *answer = task_call(task, method, params, rte_rdtsc(), error);

	if (!answer)
		fail_msg("%s: %s", method, error);
	json_decref(params);
	return answer;
}

// Both laws of bridge.c.
static inline void assert_conserves(const struct task *task)
{
	static const char *const drops[] = {"drops.hairpin", "drops.reserved",     "drops.runt",
	                                    "drops.vlan",    "drops.no_member",    "drops.oversize",
	                                    "drops.locked",  "drops.station_limit"};
	uint64_t frames = (uint64_t)(reported(task, "bridge.forwarded") + reported(task, "bridge.flooded"));
	uint64_t copies =
	        (uint64_t)(reported(task, "bridge.forwarded") + reported(task, "bridge.flood_copies"));

	for (unsigned i = 0; i < RTE_DIM(drops); i++)
		frames += (uint64_t)reported(task, drops[i]);
	assert_int_equal(task->counters.rx_packets, frames);
	assert_int_equal(copies, task->counters.tx_packets + task_drop_tx_full(task) +
	                                 (uint64_t)reported(task, "drops.no_mbuf") +
	                                 (uint64_t)reported(task, "drops.no_headroom"));
}

static inline void finish(struct task *task)
{
	assert_conserves(task);
	task_destroy(task);
}

static inline void station(uint8_t mac[6], unsigned n)
{
	const uint8_t bytes[6] = {2, 0, 0, 0, (uint8_t)(n >> 8), (uint8_t)n};

	memcpy(mac, bytes, 6);
}

// A frame with these addresses and tag, filled with its number. Returns its length.
static inline uint16_t make_frame(uint8_t *frame, const uint8_t to[6], const uint8_t from[6], int tci,
                                  uint8_t number)
{
	const uint16_t tag[2] = {RTE_BE16(0x8100), rte_cpu_to_be_16((uint16_t)tci)};
	unsigned head = 12;

	memcpy(frame, to, 6);
	memcpy(frame + 6, from, 6);
	if (tci != UNTAGGED) {
		memcpy(frame + head, tag, 4);
		head += 4;
	}
	memcpy(frame + head, "\x08\x00", 2);
	memset(frame + head + 2, number, LENGTH - 14);
	return (uint16_t)(head + LENGTH - 12);
}

static inline void inject_to(struct fixture *f, unsigned port, const uint8_t to[6], unsigned from, int tci,
                             uint8_t number)
{
	uint8_t frame[128], source[6];
	struct rte_mbuf *m;

	station(source, from);
	m = fixture_packet(f, frame, make_frame(frame, to, source, tci, number));
	assert_int_equal(ring_port_inject(&f->ports[port], &m, 1), 1);
}

static inline void inject(struct fixture *f, unsigned port, unsigned to, unsigned from, int tci,
                          uint8_t number)
{
	uint8_t mac[6];

	station(mac, to);
	inject_to(f, port, mac, from, tci, number);
}

static inline unsigned poll(struct task *task)
{
	return task->ops->poll(task, rte_rdtsc());
}

// Until nothing is left, whoever rests meanwhile.
static inline void poll_all(struct task *task)
{
	for (unsigned idle = 0; idle <= UINT8_MAX;)
		idle = poll(task) ? 0 : idle + 1;
}

// What came out of the ports since last time, as digits: "0110" is one frame each by p1 and p2.
static inline const char *came(struct fixture *f)
{
	static char text[FIXTURE_PORTS + 1];

	for (unsigned i = 0; i < FIXTURE_PORTS; i++)
		text[i] = (char)('0' + ring_port_drain(&f->ports[i]));
	return text;
}

// One frame and the ports it leaves by.
static inline const char *pass(void **state, struct task *task, unsigned port, unsigned to, unsigned from,
                               int tci)
{
	inject(*state, port, to, from, tci, 0);
	assert_int_equal(poll(task), 1);
	return came(*state);
}
