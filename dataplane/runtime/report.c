// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/report.h"

#include <jansson.h>
#include <rte_cycles.h>
#include <rte_ether.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/counters.h"
#include "base/schema.h"
#include "port/device_clock.h"
#include "port/port.h"
#include "runtime/planed.h"
#include "runtime/traffic.h"
#include "runtime/worker.h"
#include "task/task.h"

// --- Virtio ----------------------------------------------------------------------------------------------

enum { FEATURE_BITS = 64 };

// virtio 1.2 s5.1.3 and s6, in lower case and without their prefix; 30 is vhost-user's own.
static const char *const feature_names[FEATURE_BITS] = {
        [0] = "csum",
        [1] = "guest_csum",
        [2] = "ctrl_guest_offloads",
        [3] = "mtu",
        [5] = "mac",
        [6] = "gso",
        [7] = "guest_tso4",
        [8] = "guest_tso6",
        [9] = "guest_ecn",
        [10] = "guest_ufo",
        [11] = "host_tso4",
        [12] = "host_tso6",
        [13] = "host_ecn",
        [14] = "host_ufo",
        [15] = "mrg_rxbuf",
        [16] = "status",
        [17] = "ctrl_vq",
        [18] = "ctrl_rx",
        [19] = "ctrl_vlan",
        [20] = "ctrl_rx_extra",
        [21] = "guest_announce",
        [22] = "mq",
        [23] = "ctrl_mac_addr",
        [24] = "notify_on_empty",
        [26] = "log_all",
        [27] = "any_layout",
        [28] = "indirect_desc",
        [29] = "event_idx",
        [30] = "protocol_features",
        [32] = "version_1",
        [33] = "access_platform",
        [34] = "packed",
        [35] = "in_order",
        [36] = "order_platform",
        [37] = "sr_iov",
        [38] = "notification_data",
        [OFFLOAD_F_GUEST_USO4] = "guest_uso4",
        [OFFLOAD_F_GUEST_USO6] = "guest_uso6",
        [OFFLOAD_F_HOST_USO] = "host_uso",
};

static json_t *feature_list(uint64_t features)
{
	json_t *list = json_array();

	for (unsigned bit = 0; bit < FEATURE_BITS; bit++) {
		char number[8];

		if (!(features >> bit & 1))
			continue;
		snprintf(number, sizeof(number), "bit_%u", bit);
		json_array_append_new(list, json_string(feature_names[bit] ? feature_names[bit] : number));
	}
	return list;
}

// {"features": [NAME, ...], "ring_sizes": [n, ...]} of a port whose other end is there; JSON null where there
// is none, or where it cannot be known: DPDK's virtio-user driver does not say. Control thread.
static json_t *report_virtio(const struct port *port)
{
	struct negotiated found;
	json_t *sizes;

	if (!port_negotiated(port, &found))
		return json_null();
	sizes = json_array();
	for (unsigned i = 0; i < found.rings; i++)
		json_array_append_new(sizes, json_integer(found.sizes[i]));
	return json_pack("{s:o, s:o}", "features", feature_list(found.features), "ring_sizes", sizes);
}

static json_t *count(uint64_t value)
{
	return json_integer((json_int_t)value);
}

// [tsc, ns, width_tsc] of the clock of the device; null without one.
static json_t *report_reading(const struct port *port)
{
	struct clock_reading reading;

	if (!device_clock_read(port, &reading))
		return json_null();
	return json_pack("[I, I, I]", (json_int_t)reading.tsc, (json_int_t)reading.ns,
	                 (json_int_t)reading.width_tsc);
}

// {NAME: n} of the extended statistics of an ethdev that are not 0, since it was opened. Control thread.
static json_t *report_xstats(const struct port *port)
{
	json_t *object = json_object();
	int n = port->port_id == RTE_MAX_ETHPORTS ? 0 : rte_eth_xstats_get(port->port_id, NULL, 0);
	unsigned room = n > 0 ? (unsigned)n : 0;
	struct rte_eth_xstat_name *names = calloc(room + 1, sizeof(*names));
	struct rte_eth_xstat *values = calloc(room + 1, sizeof(*values));
	bool named = room && names && values && rte_eth_xstats_get_names(port->port_id, names, room) == n;

	n = named ? rte_eth_xstats_get(port->port_id, values, room) : 0;
	for (int i = 0; i < n && i < (int)room; i++)
		if (values[i].value && values[i].id < room)
			json_object_set_new(object, names[values[i].id].name, count(values[i].value));
	free(names);
	free(values);
	return object;
}

static json_t *port_facts(const struct port *port)
{
	struct rte_ether_addr address = {0};
	uint32_t mbps = port_speed_mbps(port);

	port_mac(port, &address);
	return json_pack("{s:s, s:s, s:b, s:o, s:s, s:s, s:o, s:i, s:i, s:s, s:b, s:o, s:o, s:o}", "name",
	                 port->config.name, "kind", port->ops->kind, "link_up", port_link_up(port),
	                 "speed_mbps", mbps ? count(mbps) : json_null(), "device", port->device, "driver",
	                 port_driver(port), "mac", schema_mac_json(address.addr_bytes), "queues",
	                 (int)port->config.queues, "ring_size", (int)port->config.ring_size, "clock",
	                 port_clock_names[port->clock], "stamps_ptp_only", port->stamps_ptp_only,
	                 "clock_reading", report_reading(port), "virtio", report_virtio(port), "xstats",
	                 report_xstats(port));
}

json_t *report_ports(const struct planed *planed)
{
	json_t *ports = json_array();

	for (unsigned i = 0; i < planed->port_count; i++)
		json_array_append_new(ports, port_facts(planed->ports[i]));
	return json_pack("{s:o}", "ports", ports);
}

static const struct counter port_counters[] = {
        COUNTER("rx_packets", struct port_counters, rx_packets),
        COUNTER("tx_packets", struct port_counters, tx_packets),
        COUNTER("rx_missed", struct port_counters, rx_missed),
        COUNTER("rx_errors", struct port_counters, rx_errors),
        COUNTER("tx_errors", struct port_counters, tx_errors),
        COUNTER("rx_nombuf", struct port_counters, rx_nombuf),
        COUNTER("broken_rings", struct port_counters, broken_rings),
        {0},
};

// The last one only rings of our own know.
static const struct counter queue_counters[] = {
        COUNTER("rx_packets", struct port_queue_counters, rx_packets),
        COUNTER("tx_packets", struct port_queue_counters, tx_packets),
        {0},
};
static const struct counter refused_counters[] = {
        COUNTER("tx_full", struct port_queue_counters, tx_full),
        {0},
};

// By why; only what there was.
static json_t *refused_messages(const struct port *port, const struct port_counters *now)
{
	json_t *object = json_object();

	for (unsigned i = PEER_ACCEPTED + 1; i < PEER_REFUSALS; i++) {
		uint64_t refused = now->refused_messages[i] - port->baseline.refused_messages[i];

		if (refused)
			json_object_set_new(object, peer_refusal_key((enum peer_refusal)i), count(refused));
	}
	return object;
}

#define OFFLOAD_REFUSAL_KEY(name, key) [OFFLOAD_REFUSED_##name] = key,

// The same of frames, for what their headers ask.
static json_t *refused_offloads(const struct port *port, const struct port_counters *now)
{
	static const char *const keys[] = {FOR_EACH_OFFLOAD_REFUSAL(OFFLOAD_REFUSAL_KEY)};
	json_t *object = json_object();

	for (unsigned i = 0; i < OFFLOAD_REFUSALS; i++) {
		uint64_t refused = now->refused_offloads[i] - port->baseline.refused_offloads[i];

		if (refused)
			json_object_set_new(object, keys[i], count(refused));
	}
	return object;
}

static json_t *counters_of_port(const struct port *port)
{
	json_t *object = json_pack("{s:s, s:b}", "name", port->config.name, "link_up", port_link_up(port));
	const struct port_counters *zero = &port->baseline;
	json_t *queues = json_array();
	struct port_counters now;

	port_read_counters(port, &now);
	counters_report(port_counters, &now, zero, object);
	for (unsigned i = 0; i < port->config.queues; i++) {
		json_t *queue = json_object();

		counters_report(queue_counters, &now.queues[i], &zero->queues[i], queue);
		if (port->port_id == RTE_MAX_ETHPORTS)
			counters_report(refused_counters, &now.queues[i], &zero->queues[i], queue);
		json_array_append_new(queues, queue);
	}
	if (port->config.queues > 1)
		json_object_set(object, "queues", queues);
	json_decref(queues);
	if (port->ops->refuses)
		json_object_set_new(object, "refused_messages", refused_messages(port, &now));
	if (port_has_offloads(port))
		json_object_set_new(object, "refused_offloads", refused_offloads(port, &now));
	return object;
}

static json_t *worker_stats(const struct worker *worker)
{
	static const struct counter table[] = {
	        COUNTER("loops", struct worker_counters, loops),
	        COUNTER("sleeps", struct worker_counters, sleeps),
	        COUNTER("busy_cycles", struct worker_counters, busy_cycles),
	        COUNTER("idle_cycles", struct worker_counters, idle_cycles),
	        COUNTER("gaps", struct worker_counters, gaps),
	        {0},
	};
	const struct worker_counters *counters = &worker->counters;
	json_t *object =
	        json_pack("{s:s, s:i, s:i, s:i, s:o, s:o}", "name", worker->name, "cpu", (int)worker->cpu,
	                  "tid", (int)worker->tid, "gap_threshold_ns", (int)worker->gap_threshold_ns,
	                  "gap_sum_ns", count(clock_ns(counter_read(&counters->gap_sum_cycles))),
	                  "gap_max_ns", count(clock_ns(counter_read(&counters->gap_max_cycles))));

	counters_report(table, counters, NULL, object);
	return object;
}

// Counters are read while the workers run; of a kind that keeps more than counters, while they are parked. While traffic runs they
// are not, and what is more than counters is left out: a worker may have a generator, too, and what comes meanwhile is lost. NULL
// with a sentence in error if one does not park.
static json_t *task_stats(const struct planed *planed, const struct task *task, uint64_t now_tsc, char *error)
{
	const bool whole = !task->ops->report_parks || !traffic_running(planed);
	const bool parks = task->ops->report_parks && whole;
	json_t *object;

	if (parks && planed_park(planed, error))
		return NULL;
	object = json_pack("{s:s, s:s, s:s}", "name", task->name, "kind", task->ops->kind, "worker",
	                   task->worker ? task->worker : "");
	task_report(task, object, now_tsc, whole);
	if (parks)
		planed_run(planed);
	return object;
}

json_t *report_stats(const struct planed *planed, char *error)
{
	json_t *ports = json_array(), *workers = json_array(), *tasks = json_array();
	uint64_t now_tsc = rte_rdtsc();

	clock_measure();
	if (planed_wait_turn(planed, error)) // what was there before the call is counted
		goto err;
	for (unsigned i = 0; i < planed->port_count; i++)
		json_array_append_new(ports, counters_of_port(planed->ports[i]));
	for (unsigned i = 0; i < planed->worker_count; i++)
		json_array_append_new(workers, worker_stats(planed->workers[i]));
	for (unsigned i = 0; i < planed->task_count; i++) {
		json_t *task = task_stats(planed, planed->tasks[i], now_tsc, error);

		if (task == NULL)
			goto err;
		json_array_append_new(tasks, task);
	}
	return json_pack("{s:o, s:o, s:o, s:{s:o, s:o}, s:o, s:o, s:o}", "tsc_hz", count(clock_hz()),
	                 "tsc_nominal_hz", count(clock_nominal_hz()), "now_tsc", count(rte_rdtsc()), "mbufs",
	                 "count", count(planed->rx_pool->size), "in_use",
	                 count(rte_mempool_in_use_count(planed->rx_pool)), "ports", ports, "workers", workers,
	                 "tasks", tasks);

err:
	json_decref(ports);
	json_decref(workers);
	json_decref(tasks);
	return NULL;
}

json_t *report_facts(const json_t *asked, char *error)
{
	const char *kind = json_object_iter_key(json_object_iter((json_t *)(uintptr_t)asked));
	const struct task_ops *ops = kind ? task_ops_find(kind) : NULL;

	if (!ops || !ops->facts || json_object_size(asked) != 1)
		return config_error_null(
		        error, "expected an object with one kind of task that has facts: generator or "
		               "l3fwd");
	return ops->facts(json_object_get(asked, kind), error);
}
