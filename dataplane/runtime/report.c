// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/report.h"

#include <jansson.h>
#include <rte_cycles.h>
#include <rte_ether.h>
#include <stdio.h>

#include "port/port.h"
#include "runtime/planed.h"
#include "runtime/worker.h"
#include "tasks/task.h"

// What the two ends of a virtio port have negotiated, by name, as ports.get says it.

struct port;

// {"features": [NAME, ...], "ring_sizes": [n, ...]} of a port whose other end is there; JSON null where there
// is none, or where it cannot be known: DPDK's virtio-user driver does not say. Control thread.
json_t *report_virtio(const struct port *port);

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

json_t *report_virtio(const struct port *port)
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

static json_t *port_facts(const struct port *port)
{
	struct rte_ether_addr address = {0};
	char mac[RTE_ETHER_ADDR_FMT_SIZE];

	port_mac(port, &address);
	rte_ether_format_addr(mac, sizeof(mac), &address);
	return json_pack("{s:s, s:s, s:b, s:s, s:s, s:s, s:i, s:i, s:o}", "name", port->config.name, "kind",
	                 port->ops->kind, "link_up", port_link_up(port), "device", port->device, "driver",
	                 port_driver(port), "mac", mac, "queues", (int)port->config.queues, "ring_size",
	                 (int)port->config.ring_size, "virtio", report_virtio(port));
}

json_t *report_ports(const struct planed *planed)
{
	json_t *ports = json_array();

	for (unsigned i = 0; i < planed->port_count; i++)
		json_array_append_new(ports, port_facts(planed->ports[i]));
	return json_pack("{s:o}", "ports", ports);
}

// By queue, in their order. Only rings of our own know what they refused.
static json_t *queue_counters(const struct port *port, const struct port_counters *now)
{
	const struct port_counters *zero = &port->baseline;
	json_t *queues = json_array();

	for (unsigned i = 0; i < port->config.queues; i++) {
		json_t *queue =
		        json_pack("{s:o, s:o}", "rx_packets",
		                  count(now->queues[i].rx_packets - zero->queues[i].rx_packets), "tx_packets",
		                  count(now->queues[i].tx_packets - zero->queues[i].tx_packets));

		if (port->port_id == RTE_MAX_ETHPORTS)
			json_object_set_new(queue, "tx_full",
			                    count(now->queues[i].tx_full - zero->queues[i].tx_full));
		json_array_append_new(queues, queue);
	}
	return queues;
}

static json_t *counters_of_port(const struct port *port)
{
	const struct port_counters *zero = &port->baseline, *now;
	struct port_counters stats;
	json_t *object;

	port_read_counters(port, &stats);
	now = &stats;
	object = json_pack(
	        "{s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name", port->config.name, "link_up",
	        port_link_up(port), "rx_packets", count(now->rx_packets - zero->rx_packets), "tx_packets",
	        count(now->tx_packets - zero->tx_packets), "rx_missed",
	        count(now->rx_missed - zero->rx_missed), "rx_errors", count(now->rx_errors - zero->rx_errors),
	        "tx_errors", count(now->tx_errors - zero->tx_errors), "rx_nombuf",
	        count(now->rx_nombuf - zero->rx_nombuf), "broken_rings",
	        count(stats.broken_rings - port->baseline.broken_rings));
	if (port->config.queues > 1)
		json_object_set_new(object, "queues", queue_counters(port, &stats));
	return object;
}

static uint64_t cycles_to_ns(uint64_t cycles)
{
	return (uint64_t)((unsigned __int128)cycles * NS_PER_S / rte_get_tsc_hz());
}

static json_t *worker_stats(const struct worker *worker)
{
	const struct worker_counters *counters = &worker->counters;

	return json_pack("{s:s, s:i, s:i, s:o, s:o, s:o, s:o, s:i, s:o, s:o, s:o}", "name", worker->name,
	                 "cpu", (int)worker->cpu, "tid", (int)worker->tid, "loops", count(counters->loops),
	                 "sleeps", count(counters->sleeps), "busy_cycles", count(counters->busy_cycles),
	                 "idle_cycles", count(counters->idle_cycles), "gap_threshold_ns",
	                 WORKER_GAP_THRESHOLD_NS, "gaps", count(counters->gaps), "gap_sum_ns",
	                 count(cycles_to_ns(counters->gap_sum_cycles)), "gap_max_ns",
	                 count(cycles_to_ns(counters->gap_max_cycles)));
}

// Counters are read while the worker runs; of a kind that keeps more than counters, while it is parked. NULL with a
// sentence in error if it does not park.
static json_t *task_stats(const struct planed *planed, const struct task *task, uint64_t now_tsc, char *error)
{
	const struct task_counters *counters = &task->counters;
	json_t *object;

	if (task->ops->report_parks && planed_park_task(planed, task, error))
		return NULL;
	object = json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "name", task->name, "kind",
	                   task->ops->kind, "worker", task->worker ? task->worker : "", "polls",
	                   count(counters->polls), "busy_polls", count(counters->busy_polls), "busy_cycles",
	                   count(counters->busy_cycles), "idle_cycles", count(counters->idle_cycles),
	                   "rx_packets", count(counters->rx_packets), "tx_packets",
	                   count(counters->tx_packets));
	if (task->ops->bursts) {
		json_object_set_new(object, "rx_bursts", count(counters->rx_bursts));
		json_object_set_new(object, "rx_full_bursts", count(counters->rx_full_bursts));
	}
	task_report(task, object, now_tsc);
	if (task->ops->report_parks)
		planed_run(planed);
	return object;
}

json_t *report_stats(const struct planed *planed, char *error)
{
	json_t *ports = json_array(), *workers = json_array(), *tasks = json_array();
	struct timespec deadline = worker_park_deadline();
	uint64_t now_tsc = rte_rdtsc();

	for (unsigned i = 0; i < planed->worker_count; i++)
		worker_wait_turn(planed->workers[i], &deadline); // what was there before the call is counted
	for (unsigned i = 0; i < planed->port_count; i++)
		json_array_append_new(ports, counters_of_port(planed->ports[i]));
	for (unsigned i = 0; i < planed->worker_count; i++)
		json_array_append_new(workers, worker_stats(planed->workers[i]));
	for (unsigned i = 0; i < planed->task_count; i++) {
		json_t *task = task_stats(planed, planed->tasks[i], now_tsc, error);

		if (task == NULL) {
			json_decref(ports);
			json_decref(workers);
			json_decref(tasks);
			return NULL;
		}
		json_array_append_new(tasks, task);
	}
	return json_pack("{s:o, s:o, s:{s:o, s:o}, s:o, s:o, s:o}", "tsc_hz", count(rte_get_tsc_hz()),
	                 "now_tsc", count(rte_rdtsc()), "mbufs", "count", count(planed->rx_pool->size),
	                 "in_use", count(rte_mempool_in_use_count(planed->rx_pool)), "ports", ports,
	                 "workers", workers, "tasks", tasks);
}

void report_clear_ports(const struct planed *planed)
{
	for (unsigned i = 0; i < planed->port_count; i++)
		port_read_counters(planed->ports[i], &planed->ports[i]->baseline);
}
