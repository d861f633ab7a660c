// SPDX-License-Identifier: BSD-3-Clause
// What the tests of fib_offload share: a switch of ring ports from settings in a string, frames, what came
// out. p0 and p1 are wires, p2 and p3 belong to VNFs 1 and 2, whose addresses end in their numbers.
#pragma once

#include <rte_ip.h>
#include <rte_udp.h>
#include <stdio.h>

#include "fib/fib_offload.h"
#include "test/fixture.h"
#include "test/unit.h"

enum { WIRE0, WIRE1, PORT1, PORT2, RIG_PORTS };

#define RIG_VNF(n, port, more)                                                                               \
	"{'vnf': " #n ", 'port': '" port "', 'mac': '02:00:00:00:02:0" #n "', 'grace_s': 5" more "}"
#define RIG_SETTINGS(more, vnfs)                                                                             \
	"{'wires': ['p0', 'p1'], 'routes4': 1000, 'routes6': 1000, 'pages': '4K'" more ", 'vnfs': [" vnfs "]}"
#define RIG_PLAIN RIG_SETTINGS("", RIG_VNF(1, "p2", "") ", " RIG_VNF(2, "p3", ""))

// JSON with ' for ".
static inline json_t *rig_json(const char *text)
{
	char copy[2048];
	json_t *value;

	snprintf(copy, sizeof(copy), "%s", text);
	for (char *c = copy; *c; c++)
		if (*c == '\'')
			*c = '"';
	value = json_loads(copy, 0, NULL);
	assert_non_null(value);
	return value;
}

static inline struct config_task rig_config(json_t *settings)
{
	static json_t *objects[2]; // of the last two, until the next but one
	static unsigned next;

	next = !next;
	json_decref(objects[next]);
	objects[next] = json_pack("{s:O}", "settings", settings);
	return (struct config_task){.name = "sw",
	                            .kind = "fib_offload",
	                            .port_count = RIG_PORTS,
	                            .ports = {"p0", "p1", "p2", "p3"},
	                            .object = objects[next]};
}

static inline struct task *rig_open(void **state, const char *text)
{
	json_t *settings = rig_json(text);
	struct config_task config = rig_config(settings);
	char error[CONFIG_ERROR_MAX] = "";
	struct task *task;

	if (task_settings_parse(task_ops_find("fib_offload"), &config, "task", error) != 0)
		fail_msg("%s", error);
	task = fixture_task(*state, &config);
	assert_non_null(task);
	json_decref(settings);
	return task;
}

static inline json_t *rig_call(struct task *task, const char *method, const char *params)
{
	json_t *given = rig_json(params), *answer;
	char error[CONFIG_ERROR_MAX] = "";

	answer = task_call(task, method, given, 0, error);
	if (!answer)
		print_message("%s: %s\n", method, error);
	json_decref(given);
	return answer;
}

static inline void rig_do(struct task *task, const char *method, const char *params)
{
	json_t *answer = rig_call(task, method, params);

	assert_non_null(answer);
	json_decref(answer);
}

// VNF 1: 10.0.0.1 by wire 1, 10.0.0.2 is its own, 10.0.0.3 a black hole. VNF 2: the same address elsewhere.
static inline void rig_routes(struct task *task)
{
	rig_do(task, "next_hop_set", "{'vnf': 1, 'hop': 0, 'wire': 'p1', 'mac': '02:00:00:00:09:01'}");
	rig_do(task, "next_hop_set", "{'vnf': 1, 'hop': 1, 'kind': 'local'}");
	rig_do(task, "next_hop_set", "{'vnf': 1, 'hop': 2, 'kind': 'blackhole'}");
	rig_do(task, "route_set", "{'vnf': 1, 'prefix': '10.0.0.1/32', 'hop': 0}");
	rig_do(task, "route_set", "{'vnf': 1, 'prefix': '10.0.0.2', 'hop': 1}");
	rig_do(task, "route_set", "{'vnf': 1, 'prefix': '10.0.0.3', 'hop': 2}");
	rig_do(task, "route_set", "{'vnf': 1, 'prefix': '2001:db8::/32', 'hop': 0}");
	rig_do(task, "next_hop_set", "{'vnf': 2, 'hop': 0, 'wire': 'p0', 'mac': '02:00:00:00:09:02'}");
	rig_do(task, "route_set", "{'vnf': 2, 'prefix': '10.0.0.1/32', 'hop': 0}");
}

static inline json_int_t rig_number(const struct task *task, const char *path)
{
	json_t *report = fixture_report(task);
	json_int_t n = fixture_number(report, path);

	json_decref(report);
	return n;
}

// rx == tx + drops.
static inline void rig_conserves(const struct task *task)
{
	json_t *report = fixture_report(task), *value;
	json_int_t drops = 0;
	const char *reason;

	json_object_foreach (json_object_get(report, "drops"), reason, value)
		drops += json_integer_value(value);
	assert_int_equal(task->counters.rx_packets, task->counters.tx_packets + (uint64_t)drops);
	json_decref(report);
}

// Until nothing more comes, from slow sides either.
static inline void rig_poll(struct task *task, uint64_t now_tsc)
{
	for (unsigned idle = 0; idle < RIG_PORTS; idle++)
		while (task->ops->poll(task, now_tsc))
			idle = 0;
}

// --- Frames ----------------------------------------------------------------------------------------------

// Headers are built beside it and copied: stores by another type into a declared array may be reordered with copies of it.
struct rig_frame {
	uint8_t bytes[200];
	uint16_t length;
};

enum { HOST_OF_WIRE = 0xee, GROUP = 0xff };

// last: of 02:00:00:00:02:xx; GROUP: the broadcast address.
static inline void rig_mac(uint8_t *mac, unsigned last)
{
	const uint8_t unicast[] = {2, 0, 0, 0, 2, (uint8_t)last};

	memcpy(mac, unicast, sizeof(unicast));
	if (last == GROUP)
		memset(mac, 0xff, 6);
}

// A frame of an EtherType, 60 bytes, zeros but for the addresses.
static inline struct rig_frame rig_ether(unsigned to, unsigned from, uint16_t type)
{
	struct rig_frame frame = {.length = 60};

	rig_mac(frame.bytes, to);
	rig_mac(frame.bytes + 6, from);
	frame.bytes[12] = (uint8_t)(type >> 8);
	frame.bytes[13] = (uint8_t)type;
	return frame;
}

// UDP to 10.0.0.last from another host by a wire.
static inline struct rig_frame rig_ipv4(unsigned to, unsigned from, unsigned last)
{
	struct rig_frame frame = rig_ether(to, from, RTE_ETHER_TYPE_IPV4);
	struct rte_ipv4_hdr ip = {.version_ihl = RTE_IPV4_VHL_DEF,
	                          .total_length = RTE_BE16(46),
	                          .time_to_live = 64,
	                          .next_proto_id = IPPROTO_UDP,
	                          .src_addr = RTE_BE32(0xc0000201),
	                          .dst_addr = rte_cpu_to_be_32(0x0a000000 | last)};
	struct rte_udp_hdr udp = {RTE_BE16(1000), RTE_BE16(2000), RTE_BE16(26), 0};

	ip.hdr_checksum = rte_ipv4_cksum(&ip);
	memcpy(frame.bytes + 14, &ip, sizeof(ip));
	memcpy(frame.bytes + 34, &udp, sizeof(udp));
	return frame;
}

// Another byte, and a header checksum that is right again.
static inline void rig_change(struct rig_frame *frame, unsigned at, uint8_t value)
{
	uint8_t *ip = frame->bytes + 14;
	uint16_t sum;

	frame->bytes[at] = value;
	ip[10] = ip[11] = 0;
	sum = (uint16_t)~rte_raw_cksum(ip, (ip[0] & 15u) * 4);
	memcpy(ip + 10, &sum, sizeof(sum));
}

static inline struct rig_frame rig_ipv6(unsigned to, const uint8_t address[16])
{
	struct rig_frame frame = rig_ether(to, HOST_OF_WIRE, RTE_ETHER_TYPE_IPV6);
	struct rte_ipv6_hdr ip = {.vtc_flow = RTE_BE32(6u << 28),
	                          .payload_len = RTE_BE16(26),
	                          .proto = IPPROTO_UDP,
	                          .hop_limits = 64};
	struct rte_udp_hdr udp = {.dgram_len = RTE_BE16(26)};

	memset(&ip.src_addr, 0x20, 1);
	memcpy(&ip.dst_addr, address, 16);
	frame.length = 80;
	memcpy(frame.bytes + 14, &ip, sizeof(ip));
	memcpy(frame.bytes + 54, &udp, sizeof(udp));
	return frame;
}

static inline void rig_inject(void **state, unsigned port, const struct rig_frame *frame)
{
	struct fixture *f = *state;
	struct rte_mbuf *m = fixture_packet(f, frame->bytes, frame->length);

	assert_int_equal(ring_port_inject(&f->ports[port], &m, 1), 1);
}

// The next frame out of a port; false without one.
static inline bool rig_collect(void **state, unsigned port, struct rig_frame *frame)
{
	struct fixture *f = *state;
	struct rte_mbuf *m;

	if (ring_port_collect(&f->ports[port], &m, 1) == 0)
		return false;
	memset(frame, 0, sizeof(*frame));
	frame->length = m->pkt_len;
	memcpy(frame->bytes, rte_pktmbuf_mtod(m, void *), m->data_len);
	rte_pktmbuf_free(m);
	return true;
}

// How many frames are at each port, as a number: 0120 is one at p1 and two at p2. Takes them.
static inline unsigned rig_came(void **state)
{
	struct fixture *f = *state;
	unsigned came = 0;

	for (unsigned i = 0; i < RIG_PORTS; i++)
		came = came * 10 + ring_port_drain(&f->ports[i]);
	return came;
}

// A frame by a port; where it and its copies go, as rig_came().
static inline unsigned rig_send(void **state, struct task *task, unsigned port, const struct rig_frame *frame,
                                uint64_t now_tsc)
{
	rig_inject(state, port, frame);
	rig_poll(task, now_tsc);
	return rig_came(state);
}
