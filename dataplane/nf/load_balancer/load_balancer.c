// SPDX-License-Identifier: BSD-3-Clause
// load_balancer: Maglev (Eisenbud et al., NSDI 2016) with direct server return on layer 2. A packet from
// ports[0], the clients' side, to a service leaves by ports[1] with the MAC address of one of its backends;
// above Ethernet nothing changes. The backend is that of its connection (s3.3), or of the hash of its 5-tuple
// (s3.4). What comes from ports[1] is forwarded; answers of backends do not come by here.
//
// A fragment has no ports or, the first one, must not use them: its service is found by address and protocol
// alone, and must be the only one; its backend is that of the hash of the 3-tuple. So all of a datagram get
// to one place. The paper (s4.3) has a table of first fragments instead, which loses what comes before them.
#include "nf/load_balancer/load_balancer.h"

#include <errno.h>

#include "nf/forward.h"
#include "base/clock.h"
#include "base/log.h"

enum { DROP_FRAGMENT = PACKET_FAULTS, DROP_NO_BACKEND, DROP_OTHER };
static const struct counter drops[] = {
        VNF_PACKET_DROPS,
        VNF_DROP_COUNTER(DROP_FRAGMENT, "fragment"),
        VNF_DROP_COUNTER(DROP_NO_BACKEND, "no_backend"),
        VNF_DROP_COUNTER(DROP_OTHER, "other"),
        {0},
};

// --- Made and ended --------------------------------------------------------------------------------------

static void gone(void *owner, const struct flow *flow)
{
	struct lb *lb = owner;

	if (flow->value[0])
		lb->settings.backends[flow->value[0] - 1].connections--;
}

static int lb_open(struct vnf *vnf, const struct config_task *config)
{
	struct lb *lb = (struct lb *)vnf;

	lb->settings = *(const struct lb_settings *)config->settings;
	if (lb_build(lb) != 0 || (lb->settings.connections &&
	                          flow_table_open(&lb->connections, lb->settings.connections,
	                                          lb->settings.connection_timeout_s * clock_hz()) != 0)) {
		LOG_ERROR("task %s: no memory for its tables", config->name);
		return -ENOMEM;
	}
	lb->connections.gone = gone;
	lb->connections.owner = lb;
	return 0;
}

static void lb_close(struct vnf *vnf)
{
	struct lb *lb = (struct lb *)vnf;

	flow_table_close(&lb->connections);
}

// --- What a frame is -------------------------------------------------------------------------------------

enum kind { KIND_FLOW, KIND_FRAGMENT, KIND_OTHER, KIND_DROP };

struct look {
	struct flow_key key;
	uint32_t hash;
	uint16_t service;
	uint8_t kind;
	uint8_t drop;
};

// The only service that has this address and protocol; LB_NONE if there is none. Returns false for several.
static bool find_for_fragment(const struct lb *lb, const struct look *look, uint8_t protocol, uint8_t version,
                              uint16_t *found)
{
	const uint64_t *address = &look->key.words[2];
	unsigned count = 0;

	for (unsigned i = lb->buckets[lb_bucket(address[0], address[1])]; i != LB_NONE;
	     i = lb->settings.services[i].next) {
		const struct lb_service *service = &lb->settings.services[i];

		if (service->address[0] == address[0] && service->address[1] == address[1] &&
		    service->version == version && (!service->protocol || service->protocol == protocol)) {
			*found = (uint16_t)i;
			count++;
		}
	}
	return count <= 1;
}

static __attribute__((noinline)) void look_at_fragment(const struct lb *lb, const struct vnf_frame *frame,
                                                       struct packet *p, struct look *look)
{
	p->protocol = lb_fragment_protocol(frame->data, p);
	p->src_port = p->dst_port = 0;
	flow_key_of(&look->key, frame->data, p);
	look->service = LB_NONE;
	if (!find_for_fragment(lb, look, p->protocol, p->version, &look->service)) {
		look->kind = KIND_DROP;
		look->drop = DROP_FRAGMENT;
		return;
	}
	look->kind = look->service == LB_NONE ? KIND_OTHER : KIND_FRAGMENT;
	look->drop = DROP_OTHER;
}

static inline void look_at(const struct lb *lb, const struct vnf_frame *frame, struct look *look)
{
	struct packet p;
	enum packet_fault fault = packet_parse(frame, &p);

	if (unlikely(fault != PACKET_FINE)) {
		look->kind = fault == PACKET_NOT_IP ? KIND_OTHER : KIND_DROP;
		look->drop = (uint8_t)fault;
		return;
	}
	if (unlikely(p.fragment)) {
		look_at_fragment(lb, frame, &p, look);
		return;
	}
	flow_key_of(&look->key, frame->data, &p);
	look->service = (uint16_t)lb_find(lb, &look->key);
	look->kind = look->service == LB_NONE ? KIND_OTHER : KIND_FLOW;
	look->drop = DROP_OTHER;
	if (look->kind == KIND_FLOW && lb->connections.capacity) {
		look->hash = flow_table_hash(&lb->connections, &look->key);
		flow_table_prefetch_slot(&lb->connections, look->hash);
	}
}

// --- Where it goes ---------------------------------------------------------------------------------------

// By the hash alone. The service is live. Returns the number in lb->settings.backends.
static inline uint32_t backend_by_hash(const struct lb *lb, const struct look *look)
{
	const struct lb_service *service = &lb->settings.services[look->service];

	return service->first + service->table[maglev_hash(&look->key) % lb->settings.table_size];
}

static __attribute__((noinline)) uint32_t connection_begin(struct lb *lb, struct flow *flow,
                                                           const struct look *look)
{
	uint32_t backend = backend_by_hash(lb, look);

	if (flow->value[0]) {
		lb->settings.backends[flow->value[0] - 1].connections--;
		lb->counts.moved++;
	} else {
		lb->counts.new_connections++;
	}
	lb->settings.backends[backend].connections++;
	flow->value[0] = backend + 1;
	return backend;
}

// By its connection, as long as that backend is up.
static inline uint32_t backend_by_connection(struct lb *lb, const struct look *look, uint64_t now_tsc)
{
	struct flow_table *table = &lb->connections;
	struct flow *flow;
	uint32_t index;

	if (!table->capacity)
		return backend_by_hash(lb, look);
	index = flow_table_get(table, &look->key, look->hash, now_tsc);
	if (unlikely(index == FLOW_NONE)) {
		lb->counts.untracked++;
		return backend_by_hash(lb, look);
	}
	flow = &table->flows[index];
	flow_table_touch(table, index, now_tsc);
	if (likely(flow->value[0] && lb->settings.backends[flow->value[0] - 1].up))
		return (uint32_t)flow->value[0] - 1;
	return connection_begin(lb, flow, look);
}

static inline uint8_t balance(struct lb *lb, unsigned in, const struct vnf_frame *frame,
                              const struct look *look, uint64_t now_tsc)
{
	struct lb_backend *backend;
	uint32_t number;

	if (unlikely(!lb->settings.services[look->service].live))
		return VNF_DROP | DROP_NO_BACKEND;
	if (likely(look->kind == KIND_FLOW)) {
		number = backend_by_connection(lb, look, now_tsc);
	} else {
		number = backend_by_hash(lb, look);
		lb->counts.fragments++;
	}
	backend = &lb->settings.backends[number];
	backend->packets++;
	backend->bytes += frame->total + RTE_ETHER_CRC_LEN;
	vnf_write_macs(&lb->vnf, lb->vnf.out[in], frame->data);
	memcpy(frame->data, backend->mac, sizeof(backend->mac));
	return lb->vnf.out[in];
}

static inline uint8_t decide(struct lb *lb, unsigned in, const struct vnf_frame *frame,
                             const struct look *look, uint64_t now_tsc)
{
	if (likely(look->kind <= KIND_FRAGMENT))
		return balance(lb, in, frame, look, now_tsc);
	if (look->kind == KIND_DROP || lb->settings.other)
		return VNF_DROP | look->drop;
	lb->counts.other++;
	vnf_write_macs(&lb->vnf, lb->vnf.out[in], frame->data);
	return lb->vnf.out[in];
}

static bool lb_process(struct vnf *vnf, unsigned in, struct vnf_frame *frames, unsigned n, uint64_t now_tsc,
                       uint8_t *verdicts)
{
	struct lb *lb = (struct lb *)vnf;
	struct look looks[CONFIG_BURST_MAX];
	unsigned left = 0;

	lb->connections.now_tsc = now_tsc;
	if (in != 0)
		return forward_burst(vnf, in, frames, n, PACKET_RUNT, verdicts);
	for (unsigned i = 0; i < n; i++) {
		if (i + FORWARD_AHEAD < n)
			__builtin_prefetch(frames[i + FORWARD_AHEAD].data, 1);
		look_at(lb, &frames[i], &looks[i]);
	}
	if (lb->connections.capacity)
		for (unsigned i = 0; i < n; i++)
			if (looks[i].kind == KIND_FLOW)
				flow_table_prefetch_flow(&lb->connections, looks[i].hash);
	for (unsigned i = 0; i < n; i++) {
		verdicts[i] = decide(lb, in, &frames[i], &looks[i], now_tsc);
		left += !(verdicts[i] & VNF_DROP);
	}
	return left == n;
}

static void lb_tick(struct vnf *vnf, uint64_t now_tsc)
{
	struct lb *lb = (struct lb *)vnf;

	flow_table_expire(&lb->connections, now_tsc, FLOW_TICK_MAX);
}

// Connections stay.
static void lb_clear(struct task *task)
{
	struct lb *lb = (struct lb *)task;

	for (uint32_t i = 0; i < lb->settings.backend_count; i++)
		lb->settings.backends[i].packets = lb->settings.backends[i].bytes = 0;
}

static const struct vnf_ops load_balancer_vnf = {
        .size = sizeof(struct lb),
        .cost_is_process = true,
        .settings_fields = lb_fields,
        .settings_check = lb_settings_check,
        .open = lb_open,
        .close = lb_close,
        .process = lb_process,
        .tick = lb_tick,
};

static const struct task_ops load_balancer_ops = {
        VNF_TASK_OPS("load_balancer", &load_balancer_vnf, drops, vnf_keys, struct lb_settings),
        .settings_defaults = &lb_defaults,
        .settings_free = lb_settings_free,
        .counters = lb_counters,
        .clear = lb_clear,
        .report = lb_report,
        .report_parks = true, // it forgets what is idle
        .methods = lb_methods,
        .ports_min = 2,
        .ports_max = 2,
};
TASK_KIND(load_balancer_ops)
