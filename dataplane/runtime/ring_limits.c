// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/ring_limits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_ethdev.h>

#include "base/log.h"
#include "runtime/eal.h"

enum { MEMORY_MB = 64 };

static int take_devices(struct config *config, const char *devices)
{
	for (const char *at = devices; *at; at += strcspn(at, ","), at += *at == ',') {
		size_t length = strcspn(at, ",");

		if (config->port_count == CONFIG_PORTS_MAX || length == 0 || length >= CONFIG_DEVICE_MAX)
			return -EINVAL;
		memcpy(config->ports[config->port_count++].device, at, length);
	}
	return config->port_count ? 0 : -EINVAL;
}

static void print_limits(const char *device)
{
	struct rte_eth_dev_info info;
	uint16_t id;

	if (rte_eth_dev_get_port_by_name(device, &id))
		return;
	if (rte_eth_dev_info_get(id, &info) == 0)
		printf("{\"device\": \"%s\", \"least\": %u, \"most\": %u}\n", device,
		       RTE_MAX(info.rx_desc_lim.nb_min, info.tx_desc_lim.nb_min),
		       RTE_MIN(info.rx_desc_lim.nb_max, info.tx_desc_lim.nb_max));
	rte_eth_dev_close(id);
}

int ring_limits_print(const char *devices)
{
	struct config *config = calloc(1, sizeof(*config));
	int rc = config ? take_devices(config, devices) : -ENOMEM;

	if (rc) {
		LOG_ERROR("--ring-limits %s: %s", devices,
		          rc == -EINVAL ? "expected PCI addresses, like 0000:3b:00.0,0000:3b:00.1"
		                        : strerror(-rc));
		free(config);
		return rc;
	}
	snprintf(config->name, sizeof(config->name), "rings-%d", (int)getpid());
	config->memory.size_mb = MEMORY_MB;
	rc = eal_start(config);
	for (unsigned i = 0; rc == 0 && i < config->port_count; i++)
		print_limits(config->ports[i].device);
	if (rc == 0)
		eal_stop();
	free(config);
	return rc;
}
