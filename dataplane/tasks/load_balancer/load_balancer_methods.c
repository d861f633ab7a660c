// SPDX-License-Identifier: BSD-3-Clause
// What is seen of load_balancer, backends up and down, and the hand-over of connections. Control thread,
// worker parked.
#include <stdlib.h>

#include "tasks/load_balancer/load_balancer.h"
#include "lib/log.h"
#include "lib/schema.h"

#define REFUSE(...) (snprintf(error, CONFIG_ERROR_MAX, __VA_ARGS__), NULL)

// --- backends --------------------------------------------------------------------------------------------

static json_t *backend_json(const struct lb_backend *backend)
{
	const uint8_t *mac = backend->mac;

	return json_pack(
	        "{s:s, s:o, s:I, s:b, s:I, s:I, s:I, s:I}", "name", backend->name, "mac",
	        json_sprintf("%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]),
	        "weight", (json_int_t)backend->weight, "up", backend->up, "packets",
	        (json_int_t)backend->packets, "bytes", (json_int_t)backend->bytes, "slots",
	        (json_int_t)backend->slots, "connections", (json_int_t)backend->connections);
}

static json_t *service_json(const struct lb *lb, const struct lb_service *service)
{
	char address[FLOW_ADDRESS_TEXT];
	json_t *backends = json_array();

	for (unsigned i = 0; i < service->count; i++)
		json_array_append_new(backends, backend_json(&lb->settings.backends[service->first + i]));
	return json_pack("{s:s, s:s, s:i, s:o}", "address",
	                 flow_address((const uint8_t *)service->address, service->version, address),
	                 "protocol",
	                 service->protocol == IPPROTO_UDP   ? "udp"
	                 : service->protocol == IPPROTO_TCP ? "tcp"
	                                                    : "any",
	                 "port", (int)ntohs(service->port), "backends", backends);
}

static const struct field backends_fields[] = {{.key = "task", .type = FIELD_ANY}, {0}};

static json_t *backends(struct vnf *vnf, const json_t *params, uint64_t now_tsc, char *error)
{
	struct lb *lb = (struct lb *)vnf;
	json_t *services;
	uint8_t nothing;

	if (schema_decode(params, backends_fields, &nothing, "params", error) != 0)
		return NULL;
	flow_table_expire(&lb->connections, now_tsc, UINT32_MAX);
	services = json_array();
	for (unsigned i = 0; i < lb->settings.service_count; i++)
		json_array_append_new(services, service_json(lb, &lb->settings.services[i]));
	return json_pack("{s:I, s:o}", "table_size", (json_int_t)lb->settings.table_size, "services",
	                 services);
}

// --- backend ---------------------------------------------------------------------------------------------

struct backend_params {
	uint32_t service;
	char backend[CONFIG_NAME_MAX];
	bool up;
};

static const struct field backend_fields[] = {
        {.key = "task", .type = FIELD_ANY},
        {.key = "service",
         FIELD(FIELD_UINT, struct backend_params, service),
         .required = true,
         .max = LB_SERVICES_MAX - 1},
        {.key = "backend", FIELD(FIELD_NAME, struct backend_params, backend), .required = true},
        {.key = "up", FIELD(FIELD_BOOL, struct backend_params, up), .required = true},
        {0},
};

static struct lb_backend *backend_find(const struct lb *lb, const struct lb_service *service,
                                       const char *name)
{
	for (unsigned i = 0; i < service->count; i++)
		if (strcmp(lb->settings.backends[service->first + i].name, name) == 0)
			return &lb->settings.backends[service->first + i];
	return NULL;
}

// Fill the table anew. Returns how many entries changed, or -1 without memory: then nothing has.
static json_int_t refill(struct lb *lb, struct lb_service *service)
{
	size_t size = lb->settings.table_size;
	uint16_t *before = malloc(size * sizeof(*before));
	json_int_t changed = 0;

	if (!before)
		return -1;
	memcpy(before, service->table, size * sizeof(*before));
	lb_fill(lb, service);
	for (size_t i = 0; i < size; i++)
		changed += before[i] != service->table[i];
	free(before);
	return changed;
}

// Connections of backends that are up stay where they are; those of this one, if it went, move as their
// packets come.
static json_t *backend_set(struct vnf *vnf, const json_t *params, uint64_t now_tsc, char *error)
{
	struct backend_params given = {0};
	struct lb *lb = (struct lb *)vnf;
	struct lb_backend *backend;
	json_int_t changed;
	bool was;

	if (schema_decode(params, backend_fields, &given, "params", error) != 0)
		return NULL;
	if (given.service >= lb->settings.service_count)
		return REFUSE("params.service: %u is not valid: there are %u, counted from 0", given.service,
		              lb->settings.service_count);
	backend = backend_find(lb, &lb->settings.services[given.service], given.backend);
	if (!backend)
		return REFUSE("params.backend: services[%u] has no \"%s\"; see load_balancer.backends",
		              given.service, given.backend);
	was = backend->up;
	backend->up = given.up;
	changed = refill(lb, &lb->settings.services[given.service]);
	if (changed < 0) {
		backend->up = was;
		return REFUSE("no memory");
	}
	return json_pack("{s:I}", "changed_slots", changed);
}

const struct vnf_method lb_methods[] = {
        {"backend", backend_set},
        {"backends", backends},
        {0},
};

// --- Hand-over -------------------------------------------------------------------------------------------

// Where a connection goes now: to the backend of that name, if its packets are still for a service that has
// it and it is up. Returns NULL if not.
static struct lb_backend *backend_now(struct lb *lb, const struct lb *old, const struct flow *flow)
{
	unsigned service = lb_find(lb, &flow->key);
	struct lb_backend *backend;

	if (flow->value[0] == 0 || service == LB_NONE)
		return NULL;
	backend = backend_find(lb, &lb->settings.services[service],
	                       old->settings.backends[flow->value[0] - 1].name);
	return backend && backend->up ? backend : NULL;
}

// From the oldest on: what does not fit is the oldest.
void lb_adopt(struct vnf *vnf, struct vnf *before)
{
	struct lb *lb = (struct lb *)vnf, *old = (struct lb *)before;
	const struct flow_table *table = &old->connections;

	if (!lb->connections.capacity || !table->capacity)
		return;
	lb->connections.now_tsc = table->now_tsc;
	for (uint32_t i = flow_table_oldest(table); i != FLOW_NONE; i = flow_table_newer(table, i)) {
		struct flow flow = table->flows[i];
		struct lb_backend *backend = backend_now(lb, old, &flow);

		if (!backend)
			continue;
		flow.value[0] = (uint64_t)(backend - lb->settings.backends) + 1;
		flow_table_put(&lb->connections, &flow);
		backend->connections++;
	}
}

// --- Report ----------------------------------------------------------------------------------------------

void lb_report(const struct vnf *vnf, json_t *object)
{
	struct lb *lb = (struct lb *)(uintptr_t)vnf;
	const struct lb_counts *counts = &lb->counts;
	uint64_t packets = 0, bytes = 0;

	flow_table_expire(&lb->connections, lb->connections.now_tsc, UINT32_MAX);
	for (uint32_t i = 0; i < lb->settings.backend_count; i++) {
		packets += lb->settings.backends[i].packets;
		bytes += lb->settings.backends[i].bytes;
	}
	json_object_set_new(object, "connections", json_integer(lb->connections.count));
	json_object_set_new(object, "balanced_packets", json_integer((json_int_t)packets));
	json_object_set_new(object, "balanced_bytes", json_integer((json_int_t)bytes));
	json_object_set_new(object, "new_connections", json_integer((json_int_t)counts->new_connections));
	json_object_set_new(object, "moved_connections", json_integer((json_int_t)counts->moved));
	json_object_set_new(object, "untracked_packets", json_integer((json_int_t)counts->untracked));
	json_object_set_new(object, "fragment_packets", json_integer((json_int_t)counts->fragments));
	json_object_set_new(object, "other_packets", json_integer((json_int_t)counts->other));
}
