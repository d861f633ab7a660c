// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/eal.h"

#include <errno.h>
#include <limits.h>
#include <regex.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>

#include "lib/log.h"

enum { ARGUMENTS_MAX = 24, CPUS_TEXT_MAX = 4096, POOL_CACHE = 512 };

// The main lcore may run wherever this process may: "0@(0,1,5)".
static void lcores_text(char *out, size_t size)
{
	cpu_set_t cpus;
	size_t used = (size_t)snprintf(out, size, "0@(");

	sched_getaffinity(0, sizeof(cpus), &cpus);
	for (int cpu = 0; cpu < CPU_SETSIZE && used < size; cpu++)
		if (CPU_ISSET(cpu, &cpus))
			used += (size_t)snprintf(out + used, size - used, "%d,", cpu);
	out[used - 1] = ')';
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

static bool wants_pci(const struct config *config)
{
	for (unsigned i = 0; i < config->port_count; i++)
		if (config->ports[i].kind == PORT_ETHDEV && is_pci_address(config->ports[i].device))
			return true;
	return false;
}

int eal_start(const struct config *config)
{
	char lcores[CPUS_TEXT_MAX], prefix[64], memory[16];
	char *arguments[ARGUMENTS_MAX];
	int count = 0;

	lcores_text(lcores, sizeof(lcores));
	snprintf(prefix, sizeof(prefix), "--file-prefix=%s", config->name);
	snprintf(memory, sizeof(memory), "%u", config->memory.size_mb);
	arguments[count++] = (char *)"planed";
	arguments[count++] = (char *)"--lcores";
	arguments[count++] = lcores;
	arguments[count++] = prefix;
	arguments[count++] = (char *)"-m";
	arguments[count++] = memory;
	// One segment, or a vhost back end refuses our memory: too many regions (DESIGN section 4).
	arguments[count++] = (char *)"--single-file-segments";
	arguments[count++] = (char *)"--no-telemetry";
	arguments[count++] = (char *)"--log-level=*:warning";
	arguments[count++] = (char *)(config->memory.hugepages ? "--in-memory" : "--no-huge");
	if (!config->memory.hugepages)
		arguments[count++] = (char *)"--no-shconf";
	if (!wants_pci(config))
		arguments[count++] = (char *)"--no-pci";
	if (rte_eal_init(count, arguments) < 0) {
		LOG_ERROR("DPDK does not start: %s; memory.size_mb is %u, memory.hugepages is %s%s",
		          rte_strerror(rte_errno), config->memory.size_mb,
		          config->memory.hugepages ? "true" : "false",
		          config->memory.hugepages ? " (are that many free? see /proc/meminfo)" : "");
		return -(rte_errno ? rte_errno : EIO);
	}
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
