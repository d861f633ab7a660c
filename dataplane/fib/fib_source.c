// SPDX-License-Identifier: BSD-3-Clause
// fib_source: the control plane of a VNF whose forwarding is offloaded. Keeps a
// session with the forwarder by the client library (fib/client/planebench_fib.h) on its one port, and changes
// routes of the VNF's synthetic FIB (docs/fib-offload.md) one after the other, at a rate or as fast as
// they are acknowledged.
//
// With an address it answers ARP, pings and expired TTLs as a kernel does (fib/vnf_answer.h). A packet to its routing
// daemon, which without an address is any other that the forwarder punts, has a reply, the frame with its MAC addresses
// exchanged, and the change of one route.
//
// Every route leads to the same place by two next hops, and an update replaces the one by the other: what is
// forwarded does not change, so a trial with updates is one without but for their cost.
//
// Threads as in task.h.
#include <errno.h>
#include <rte_byteorder.h>
#include <rte_cycles.h>
#include <rte_ether.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "fib/client/planebench_fib.h"
#include "fib/vnf_answer.h"
#include "base/schema.h"
#include "port/port.h"
#include "task/task.h"

enum {
	ROUTES_MAX = 1 << 24,
	WIRES_MAX = 8,
	FIRST_ADDRESS = 10 << 24, // route i is that of this address + i
	HOPS = 2,
	LOCAL_HOP = HOPS,
	AT_ONCE = 1024, // routes changed in one poll: the other tasks of the worker wait meanwhile
	TICKS_PER_S = 1000,
	FRAME_MAX = 1514,
};

struct settings {
	uint32_t routes, wire;
	uint32_t address; // of the VNF, host byte order; 0: none
	uint8_t mac[RTE_ETHER_ADDR_LEN];
};

struct fib_source {
	struct task task;
	uint16_t burst;
	struct settings settings;
	struct fib_client *client;
	bool announced; // next hops of this session
	bool flat_out;
	double rate;  // updates a second
	double ahead; // of the first update: the share of the time between two that has passed
	uint64_t rate_tsc, cleared_tsc, tick_due_tsc, tick_tsc;
	uint64_t at_rate; // changed since rate_tsc
	uint64_t next;    // route that is changed next, counted on and on
	uint64_t sent;    // records in all, next hops too
	uint64_t owed;    // changes for control packets that the window had no room for
	uint64_t control_received, control_answered, arp_answered, echo_answered, expired_answered;
	uint8_t mac[RTE_ETHER_ADDR_LEN];
	struct fib_client_status cleared; // of the client, when counters were cleared
	uint64_t lost_sessions;
	double ns_per_tick;
};

static struct fib_source *source_of(struct task *task)
{
	return (struct fib_source *)task;
}

static uint64_t ns_of(const struct fib_source *s, uint64_t tsc)
{
	return (uint64_t)((double)tsc * s->ns_per_tick);
}

// --- The client's callbacks ------------------------------------------------------------------------------

static bool send_frame(struct task *task, const uint8_t *frame, unsigned length)
{
	const struct piece piece = {(uint8_t *)(uintptr_t)frame, length};
	const struct frame whole = {{&piece, 0}, length, 0};
	bool accepted = port_deliver_polled(task->ports[0], task->queue, &whole, 1) == 1;

	counter_add(&task->counters.tx_packets, accepted);
	counter_add(&task->counters.drop_tx_full[0], !accepted);
	return accepted;
}

static void frame_send(void *context, const uint8_t *frame, unsigned length)
{
	struct fib_source *s = context;

	send_frame(&s->task, frame, length); // the client sends what was not accepted again
}

static void session_lost(void *context)
{
	struct fib_source *s = context;
	struct fib_client_status status;

	fib_client_read(s->client, &status);
	s->sent = status.applied + status.refused; // what was not answered is forgotten
	s->announced = false;
	s->lost_sessions++;
}

static struct fib_client_route route_to(uint32_t address, uint16_t hop)
{
	struct fib_client_route route = {.family = 4, .length = 32, .hop = hop};
	uint32_t address_be = rte_cpu_to_be_32(address);

	memcpy(route.address, &address_be, sizeof(address_be));
	return route;
}

// --- Updates ---------------------------------------------------------------------------------------------

// What is for the VNF itself comes to it.
static bool announce_address(struct fib_source *s)
{
	const struct fib_client_hop hop = {.number = LOCAL_HOP, .kind = FIB_HOP_LOCAL};
	const struct fib_client_route route = route_to(s->settings.address, LOCAL_HOP);

	if (fib_client_set_hop(s->client, &hop) || fib_client_set_route(s->client, FIB_REPLACE, &route))
		return false;
	s->sent += 2;
	return true;
}

// All next hops, then nothing that is left of a session before.
static void announce(struct fib_source *s)
{
	struct fib_client_hop hop = {.kind = FIB_HOP_FORWARD, .wire = (uint8_t)s->settings.wire};

	memcpy(hop.destination, s->settings.mac, sizeof(hop.destination));
	for (hop.number = 0; hop.number < HOPS; hop.number++) {
		if (fib_client_set_hop(s->client, &hop))
			return;
		s->sent++;
	}
	if (s->settings.address && !announce_address(s))
		return;
	s->announced = fib_client_end_of_rib(s->client) == 0;
}

static bool change_one(struct fib_source *s)
{
	const struct fib_client_route route =
	        route_to(FIRST_ADDRESS + (uint32_t)(s->next % s->settings.routes),
	                 (uint16_t)(s->next / s->settings.routes % HOPS));

	if (fib_client_set_route(s->client, FIB_REPLACE, &route))
		return false;
	s->next++;
	s->sent++;
	return true;
}

static unsigned due(const struct fib_source *s, uint64_t now_tsc)
{
	double ns = (double)(now_tsc - s->rate_tsc) * s->ns_per_tick,
	       wanted = s->rate ? s->rate * ns / 1e9 + s->ahead : 0;

	if (s->flat_out)
		return AT_ONCE;
	return wanted > (double)s->at_rate ? (unsigned)RTE_MIN(wanted - (double)s->at_rate, (double)AT_ONCE)
	                                   : 0;
}

static unsigned change(struct fib_source *s, uint64_t now_tsc)
{
	unsigned wanted = due(s, now_tsc), n = 0;

	while (n < wanted && change_one(s))
		n++;
	s->at_rate += n;
	for (; s->owed && change_one(s); n++)
		s->owed--;
	return n;
}

// --- Control packets --------------------------------------------------------------------------------------

static bool is_message(const struct vnf_frame *frame)
{
	return frame->length < RTE_ETHER_HDR_LEN ||
	       (frame->data[12] << 8 | frame->data[13]) == FIB_ETHER_TYPE;
}

// To this VNF alone; what goes to a group may be for others.
static void daemon_answer(struct fib_source *s, const struct vnf_frame *frame)
{
	uint8_t *to = frame->data, *from = frame->data + RTE_ETHER_ADDR_LEN;

	if (memcmp(to, s->mac, RTE_ETHER_ADDR_LEN) != 0)
		return;
	s->control_received++;
	memcpy(to, from, RTE_ETHER_ADDR_LEN);
	memcpy(from, s->mac, RTE_ETHER_ADDR_LEN);
	s->control_answered += send_frame(&s->task, frame->data, frame->length);
	s->owed++;
}

static void control_answer(struct fib_source *s, const struct vnf_frame *frame)
{
	uint64_t *const counts[] = {[VNF_ANSWER_ARP] = &s->arp_answered,
	                            [VNF_ANSWER_ECHO] = &s->echo_answered,
	                            [VNF_ANSWER_EXPIRED] = &s->expired_answered};
	enum vnf_answer answer = VNF_ANSWER_DAEMON;
	uint8_t out[VNF_ANSWER_MAX];
	unsigned length;

	if (frame->length != frame->total)
		return;
	if (s->settings.address)
		answer = vnf_answer(s->mac, rte_cpu_to_be_32(s->settings.address), frame->data, frame->length,
		                    out, &length);
	if (answer == VNF_ANSWER_DAEMON)
		daemon_answer(s, frame);
	else if (answer != VNF_ANSWER_NONE)
		*counts[answer] += send_frame(&s->task, out, length);
}

static unsigned receive(struct fib_source *s, uint64_t now_tsc)
{
	struct task *task = &s->task;
	uint8_t bytes[FRAME_MAX];
	struct view view;
	unsigned n = port_peek(task->ports[0], task->queue, &view, s->burst);

	for (unsigned i = 0; i < n; i++) {
		const uint32_t total = view_span(&view, i).total;
		const struct vnf_frame frame = {bytes, view_copy(&view, i, bytes, sizeof(bytes)), total};

		if (is_message(&frame))
			fib_client_received(s->client, frame.data, frame.length, ns_of(s, now_tsc));
		else
			control_answer(s, &frame);
	}
	if (n == 0)
		return 0;
	port_release(task->ports[0], task->queue, &view);
	counter_add(&task->counters.rx_packets, n);
	return n;
}

static unsigned source_poll(struct task *task, uint64_t now_tsc)
{
	struct fib_source *s = (struct fib_source *)task;
	unsigned n = receive(s, now_tsc);

	if (unlikely(!s->announced))
		announce(s);
	else
		n += change(s, now_tsc);
	if (now_tsc >= s->tick_due_tsc) {
		s->tick_due_tsc = now_tsc + s->tick_tsc;
		fib_client_tick(s->client, ns_of(s, now_tsc));
	}
	return n;
}

// --- Settings ----------------------------------------------------------------------------------------------

static const struct field settings_fields[] = {
        {UINT_FIELD("routes", struct settings, routes, 1, ROUTES_MAX), .required = true},
        {UINT_FIELD("wire", struct settings, wire, 0, WIRES_MAX - 1)},
        {.key = "mac", FIELD(FIELD_MAC, struct settings, mac), .required = true},
        {.key = "address", FIELD(FIELD_IPV4, struct settings, address)},
        {0},
};

static const struct field keys[] = {{.key = "settings", .type = FIELD_OBJECT, .fields = settings_fields},
                                    {0}};

static int source_settings_check(const struct config_task *config, void *settings, const char *where,
                                 char *error)
{
	if (json_object_get(config->object, "settings"))
		return 0;
	return config_error(error, "task %s: settings are missing: give routes and mac", config->name);
}

// A session number that this VNF has not used before.
static uint32_t fresh_session(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint32_t)((uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000) | 1;
}

static const struct task_ops fib_source_ops;

static int source_create(const struct config_task *config, struct port *const *ports, struct task **out)
{
	struct fib_source *s = task_alloc(sizeof(*s), &fib_source_ops, config, ports);
	struct fib_client_config client = {
	        .frame_bytes = FRAME_MAX, .session = fresh_session(), .context = s};
	struct rte_ether_addr own;

	if (!s)
		return -ENOMEM;
	s->settings = *(const struct settings *)config->settings;
	s->burst = (uint16_t)config->burst;
	s->ns_per_tick = 1e9 / (double)clock_hz();
	s->cleared_tsc = s->rate_tsc = rte_rdtsc();
	s->tick_tsc = clock_hz() / TICKS_PER_S;
	client.send = frame_send;
	client.lost = session_lost;
	if (port_mac(ports[0], &own) == 0) {
		memcpy(client.mac, own.addr_bytes, sizeof(client.mac));
		memcpy(s->mac, own.addr_bytes, sizeof(s->mac));
		s->client = fib_client_create(&client, ns_of(s, s->rate_tsc));
	}
	if (!s->client) {
		LOG_ERROR("task %s: no memory for its session, or no MAC address of its port", config->name);
		free(s);
		return -ENOMEM;
	}
	*out = &s->task;
	return 0;
}

static void source_destroy(struct task *task)
{
	fib_client_destroy(source_of(task)->client);
	free(task);
}

// --- What is seen of it ----------------------------------------------------------------------------------

static const struct counter counters[] = {
        COUNTER("lost_sessions", struct fib_source, lost_sessions),
        COUNTER("control_received", struct fib_source, control_received),
        COUNTER("control_answered", struct fib_source, control_answered),
        COUNTER("arp_answered", struct fib_source, arp_answered),
        COUNTER("echo_answered", struct fib_source, echo_answered),
        COUNTER("expired_answered", struct fib_source, expired_answered),
        {0},
};

static const struct counter client_counters[] = {
        COUNTER("acknowledged", struct fib_client_status, applied),
        COUNTER("refused", struct fib_client_status, refused),
        COUNTER("retransmitted", struct fib_client_status, retransmitted),
        {0},
};

static void source_clear(struct task *task)
{
	struct fib_source *s = source_of(task);

	fib_client_read(s->client, &s->cleared);
	s->cleared_tsc = rte_rdtsc();
}

static void source_report(const struct task *task, json_t *object, uint64_t now_tsc)
{
	const struct fib_source *s = (const struct fib_source *)task;
	struct fib_client_status status;

	fib_client_read(s->client, &status);
	counters_report(client_counters, &status, &s->cleared, object);
	json_object_set_new(object, "up", json_boolean(status.up && s->announced));
	json_object_set_new(object, "updates_per_s", s->flat_out ? json_null() : json_real(s->rate));
	json_object_set_new(object, "duration_ns",
	                    json_integer((json_int_t)clock_ns(rte_rdtsc() - s->cleared_tsc)));
	// What was on its way when counters were cleared is acknowledged afterwards: it counts as sent then.
	json_object_set_new(object, "sent",
	                    json_integer((json_int_t)(s->sent - s->cleared.applied - s->cleared.refused)));
	json_object_set_new(object, "routes", json_integer((json_int_t)status.routes));
}

struct rate {
	double updates_per_s, ahead; // below 0: not given
	bool flat_out;
};

static const struct field rate_fields[] = {
        {REAL_FIELD("updates_per_s", struct rate, updates_per_s, 0, 1e9)},
        {REAL_FIELD("ahead", struct rate, ahead, 0, 1)},
        {.key = "flat_out", FIELD(FIELD_BOOL, struct rate, flat_out)},
        {0},
};
static const struct rate rate_defaults = {.updates_per_s = -1};

// rate: {"task": NAME, "updates_per_s": x, "ahead": 0..1 | "flat_out": true}
static json_t *call_rate(struct task *task, const void *params, uint64_t now_tsc, char *error)
{
	struct fib_source *s = source_of(task);
	const struct rate *rate = params;

	if (rate->flat_out == (rate->updates_per_s >= 0))
		return config_error_null(error, "params: give either updates_per_s or flat_out");
	s->rate = rate->flat_out ? 0 : rate->updates_per_s;
	s->ahead = rate->ahead;
	s->flat_out = rate->flat_out;
	s->rate_tsc = now_tsc;
	s->at_rate = 0;
	return json_object();
}

static const struct task_method methods[] = {
        {.name = "rate", .call = call_rate, .fields = rate_fields, TASK_DEFAULTS(rate_defaults)}, {0}};
static const struct task_ops fib_source_ops = {
        .kind = "fib_source",
        .ports_min = 1,
        .ports_max = 1,
        .receives = true,
        .sends = true,
        .settings_keys = keys,
        .settings_size = sizeof(struct settings),
        .settings_check = source_settings_check,
        .create = source_create,
        .destroy = source_destroy,
        .poll = source_poll,
        .counters = counters,
        .clear = source_clear,
        .report = source_report,
        .report_parks = true, // the client's status
        .methods = methods,
};
TASK_KIND(fib_source_ops)
