// SPDX-License-Identifier: BSD-3-Clause
// tester_pcap OUT.pcap FRAME_SIZE COUNT [PROBE_EVERY]: let the generator write COUNT frames into a capture
// file, for a decoder that is not ours to look at. Stream 5, epoch 4660, one frame a microsecond of simulated
// time, the same bytes each run; with PROBE_EVERY each such frame is a probe, and its TSC is the real one.
// The times of the records are net_pcap's.
#include <errno.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "test/fixture.h"
#include "tester/generator.h"

enum { STREAM = 5, EPOCH = 4660 };

static struct config_task config = {.name = "pcap", .kind = "generator", .port_count = 1, .burst = 1};

// Poll at the middle of each microsecond, at which one slot is due.
static void run(struct task *task, uint32_t count)
{
	for (uint64_t us = 0; us <= count; us++)
		task->ops->poll(task, (2 * us + 1) * clock_hz() / 2000000);
}

static int write_frames(struct port *port, uint16_t frame_size, uint32_t count, double probe_every)
{
	struct generator_load load = {
	        .epoch = EPOCH,
	        .duration_ns = (uint64_t)count * 1000,
	        .frame_size_bytes = frame_size,
	        .rate_pps = 1e6,
	        .probe_rate_pps = probe_every ? 1e6 / probe_every : 0,
	};
	struct task *task;
	json_t *object = json_pack("{s:i}", "stream", STREAM);
	int status;

	config.object = object;
	status = task_create(task_ops_find("generator"), &config, &port, &task);
	json_decref(object);
	if (status != 0)
		return status;
	status = generator_start(task, &load);
	if (status == 0)
		run(task, count);
	if (status == 0 && task->counters.tx_packets != count)
		status = -EIO;
	task_destroy(task);
	return status;
}

static int port_open_pcap(struct port *port, const char *path)
{
	char args[512];

	snprintf(args, sizeof(args), "tx_pcap=%s", path);
	port->config.ring_size = 256;
	port->rx_pool = rte_pktmbuf_pool_create("rx", 255, 0, 0, UINT16_MAX & ~63, SOCKET_ID_ANY);
	if (!port->rx_pool || rte_eal_hotplug_add("vdev", "net_pcap0", args) != 0 ||
	    rte_eth_dev_get_port_by_name("net_pcap0", &port->port_id) != 0)
		return -ENODEV;
	return fixture_device_start(port);
}

int main(int argc, char **argv)
{
	struct port port = {0};
	int status;

	if (argc < 4 || argc > 5) {
		fprintf(stderr, "usage: %s OUT.pcap FRAME_SIZE COUNT [PROBE_EVERY]\n", argv[0]);
		return 2;
	}
	status = fixture_eal_init("pcap");
	if (status == 0)
		status = port_open_pcap(&port, argv[1]);
	if (status == 0)
		status = write_frames(&port, (uint16_t)atoi(argv[2]), (uint32_t)atoi(argv[3]),
		                      argc > 4 ? atof(argv[4]) : 0);
	if (status == 0)
		status = rte_eth_dev_stop(port.port_id); // flushes the file
	if (status != 0)
		fprintf(stderr, "%s: %s: %s\n", argv[0], argv[1], strerror(-status));
	rte_eal_cleanup();
	return status != 0;
}
