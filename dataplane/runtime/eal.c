// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/eal.h"

#include <errno.h>
#include <limits.h>
#include <regex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_interrupts.h>
#include <rte_mbuf.h>

#include "base/clock.h"
#include "base/log.h"
#include "runtime/worker.h"

enum { POOL_CACHE = 512 };

static bool is_on_node(unsigned cpu, int node)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/node%d", cpu, node);
	return access(path, F_OK) == 0;
}

static int file_number(const char *path)
{
	FILE *file = fopen(path, "re");
	int number = -1;

	if (file == NULL)
		return -1;
	if (fscanf(file, "%d", &number) != 1)
		number = -1;
	fclose(file);
	return number;
}

static int node_of_cpu(unsigned cpu)
{
	for (int node = 0; node < RTE_MAX_NUMA_NODES; node++)
		if (is_on_node(cpu, node))
			return node;
	return -1;
}

static bool is_pci_address(const char *device)
{
	regex_t pattern;
	bool found;

	if (regcomp(&pattern, "^([0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\\.[0-7]",
	            REG_EXTENDED | REG_NOSUB))
		return false;
	found = regexec(&pattern, device, 0, NULL, 0) == 0;
	regfree(&pattern);
	return found;
}

static bool is_pci_port(const struct config_port *port)
{
	return is_pci_address(port->device);
}

// The node that memory should be on: that of the first PCI port, else that of the first worker, else -1.
static int memory_node(const struct config *config)
{
	for (unsigned i = 0; i < config->port_count; i++) {
		const struct config_port *port = &config->ports[i];
		char path[PATH_MAX];

		if (!is_pci_port(port))
			continue;
		snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s%.*s/numa_node",
		         strcspn(port->device, ":") == 2 ? "0000:" : "", (int)strcspn(port->device, ","),
		         port->device);
		return file_number(path);
	}
	return config->worker_count ? node_of_cpu(config->workers[0].cpu) : -1;
}

// The main lcore may run wherever this process may, on the node of its memory if that can be: "0@(0,1,5)". With
// --no-huge pages fall on the node of the thread that touches them first, and the pool is made on its node.
static void lcores_text(char *out, size_t size, int node)
{
	cpu_set_t cpus, near;
	size_t used = (size_t)snprintf(out, size, "0@(");

	sched_getaffinity(0, sizeof(cpus), &cpus);
	CPU_ZERO(&near);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &cpus) && is_on_node(cpu, node))
			CPU_SET(cpu, &near);
	if (CPU_COUNT(&near) == 0) // the node is unknown, or this process may not run there
		near = cpus;
	for (int cpu = 0; cpu < CPU_SETSIZE && used < size; cpu++)
		if (CPU_ISSET(cpu, &near))
			used += (size_t)snprintf(out + used, size - used, "%d,", cpu);
	out[used - 1] = ')';
}

static void add(struct eal_arguments *arguments, const char *text)
{
	arguments->argv[arguments->argc++] = (char *)text;
}

void eal_arguments(const struct config *config, struct eal_arguments *arguments)
{
	bool pci = false;

	arguments->argc = 0;
	lcores_text(arguments->lcores, sizeof(arguments->lcores), memory_node(config));
	snprintf(arguments->prefix, sizeof(arguments->prefix), "--file-prefix=%s", config->name);
	snprintf(arguments->memory, sizeof(arguments->memory), "%u", config->memory.size_mb);
	add(arguments, "planed");
	add(arguments, "--lcores");
	add(arguments, arguments->lcores);
	add(arguments, arguments->prefix);
	add(arguments, "-m");
	add(arguments, arguments->memory);
	// One segment, or a vhost back end refuses our memory: too many regions (DESIGN section 4).
	add(arguments, "--single-file-segments");
	add(arguments, "--no-telemetry");
	add(arguments, "--log-level=*:warning");
	add(arguments, config->memory.hugepages ? "--in-memory" : "--no-huge");
	if (!config->memory.hugepages)
		add(arguments, "--no-shconf");
	// Without an allow-list DPDK would take every device that is bound to vfio, those of other processes
	// among them, and would probe NICs that the kernel uses (bifurcated drivers).
	for (unsigned i = 0; i < config->port_count; i++) {
		if (!is_pci_port(&config->ports[i]))
			continue;
		pci = true;
		add(arguments, "--allow");
		add(arguments, config->ports[i].device);
	}
	if (!pci)
		add(arguments, "--no-pci");
}

int eal_start(const struct config *config)
{
	struct eal_arguments arguments;

	eal_arguments(config, &arguments);
	if (rte_eal_init(arguments.argc, arguments.argv) < 0) {
		LOG_ERROR("DPDK does not start: %s; memory.size_mb is %u, memory.hugepages is %s%s",
		          rte_strerror(rte_errno), config->memory.size_mb,
		          config->memory.hugepages ? "true" : "false",
		          config->memory.hugepages ? " (are that many free? see /proc/meminfo)" : "");
		return -(rte_errno ? rte_errno : EIO);
	}
	clock_start();
	return 0;
}

void eal_stop(void)
{
	char directory[PATH_MAX];

	snprintf(directory, sizeof(directory), "%s", rte_eal_get_runtime_dir());
	rte_eal_cleanup();
	rmdir(directory); // made even with --no-shconf; if somebody put something there, it stays
}

struct rte_mempool *eal_pool_create(const struct config_memory *memory)
{
	unsigned cache = memory->mbuf_count / 2 < POOL_CACHE ? memory->mbuf_count / 2 : POOL_CACHE;
	struct rte_mempool *pool =
	        rte_pktmbuf_pool_create("receive", memory->mbuf_count, cache, 0,
	                                (uint16_t)memory->mbuf_data_bytes, (int)rte_socket_id());

	if (pool == NULL)
		LOG_ERROR("no room for %u mbufs of %u bytes: %s; raise memory.size_mb (%u)",
		          memory->mbuf_count, memory->mbuf_data_bytes, rte_strerror(rte_errno),
		          memory->size_mb);
	return pool;
}
