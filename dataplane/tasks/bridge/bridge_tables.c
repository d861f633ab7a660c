// SPDX-License-Identifier: BSD-3-Clause
#include "tasks/bridge/bridge_tables.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <rte_cycles.h>

struct shared {
	struct shared *next;
	struct mac_table *table;
	unsigned users;
	struct config_bridge config;
	unsigned port_count;
	struct port *ports[CONFIG_BRIDGE_PORTS_MAX]; // an entry names a port by its place here
};

static struct shared *all;

static bool is_same(const struct shared *shared, const struct config_task *config, struct port *const *ports)
{
	return config->bridge.table[0] != '\0' &&
	       memcmp(&shared->config, &config->bridge, sizeof(config->bridge)) == 0 &&
	       shared->port_count == config->port_count &&
	       memcmp(shared->ports, ports, config->port_count * sizeof(ports[0])) == 0;
}

static struct shared *create(const struct config_task *config, struct port *const *ports)
{
	struct shared *shared = calloc(1, sizeof(*shared));
	uint64_t hz = rte_get_tsc_hz(), seed = rte_rdtsc();

	if (shared == NULL)
		return NULL;
	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
		seed ^= (uintptr_t)shared; // early in the life of a machine
	shared->table = mac_table_create(config->bridge.table_size, config->bridge.ageing_s * hz, hz, seed);
	if (shared->table == NULL) {
		free(shared);
		return NULL;
	}
	shared->config = config->bridge;
	shared->port_count = config->port_count;
	memcpy(shared->ports, ports, config->port_count * sizeof(ports[0]));
	shared->next = all;
	all = shared;
	return shared;
}

struct mac_table *bridge_tables_get(const struct config_task *config, struct port *const *ports)
{
	struct shared *shared = all;

	while (shared && !is_same(shared, config, ports))
		shared = shared->next;
	if (shared == NULL)
		shared = create(config, ports);
	if (shared == NULL)
		return NULL;
	shared->users++;
	return shared->table;
}

void bridge_tables_put(struct mac_table *table)
{
	struct shared **at = &all, *shared;

	while ((*at)->table != table)
		at = &(*at)->next;
	shared = *at;
	if (--shared->users > 0)
		return;
	*at = shared->next;
	mac_table_destroy(shared->table);
	free(shared);
}
