// SPDX-License-Identifier: BSD-3-Clause
// Settings of load_balancer, and the tables that are made of them. Control thread.
#include <errno.h>
#include <rte_jhash.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/schema.h"
#include "nf/load_balancer/load_balancer.h"
#include "tester/frame.h"

// --- Maglev ----------------------------------------------------------------------------------------------

static bool maglev_is_prime(uint32_t n)
{
	for (uint32_t i = 2; (uint64_t)i * i <= n; i++)
		if (n % i == 0)
			return false;
	return n >= 2;
}

// The permutation of a name in a table of so many entries (prime). Weight is left alone.
static void maglev_permute(struct maglev_backend *backend, const char *name, uint32_t size)
{
	alignas(uint32_t) char key[CONFIG_NAME_MAX]; // the hash reads words
	uint32_t length = (uint32_t)strnlen(name, sizeof(key));

	memcpy(key, name, length);
	backend->offset = rte_jhash(key, length, 0) % size;
	backend->skip = rte_jhash(key, length, 1) % (size - 1) + 1;
}

// The next entry of its permutation that is still free. There is one.
static uint32_t entry_next(const uint16_t *table, uint32_t size, struct maglev_backend *backend)
{
	uint32_t entry;

	do {
		entry = backend->at;
		backend->at += backend->skip;
		if (backend->at >= size)
			backend->at -= size;
	} while (table[entry] != MAGLEV_NONE);
	return entry;
}

// Share the table out among n backends (MAGLEV_BACKENDS_MAX at most), in turns, in their order: entries are
// numbers of backends, or MAGLEV_NONE if all are out.
static void maglev_fill(uint16_t *table, uint32_t size, struct maglev_backend *backends, unsigned n)
{
	uint16_t in[MAGLEV_BACKENDS_MAX]; // those that take turns: of 4096 it may be one
	uint32_t filled = 0;
	unsigned count = 0;

	memset(table, 0xff, size * sizeof(*table)); // MAGLEV_NONE
	for (unsigned i = 0; i < n; i++) {
		backends[i].at = backends[i].offset;
		if (backends[i].weight)
			in[count++] = (uint16_t)i;
	}
	while (count && filled < size)
		for (unsigned k = 0; k < count; k++)
			for (uint32_t turn = 0; turn < backends[in[k]].weight && filled < size;
			     turn++, filled++)
				table[entry_next(table, size, &backends[in[k]])] = in[k];
}

// --- Settings --------------------------------------------------------------------------------------------

enum {
	TABLE_SIZE_DEFAULT = 65537, // the paper's (s5.3): small, fast to make
	ENTRIES_PER_BACKEND = 100,  // the paper's (s3.4): shares differ by 1 % at most
	ENTRIES_MAX = 1 << 26,      // of all tables: 128 MB
	CONNECTIONS_DEFAULT = 65536,
	TIMEOUT_S_DEFAULT = 60,
	WEIGHT_MAX = 100,
	DEFAULT_PORT = 28770, // the tester's: 0x7062
	DEFAULT_BACKENDS = 4,
};

static_assert(LB_BUCKETS == 1 << (64 - 54), "lb_bucket() gives so many");

// --- A backend -------------------------------------------------------------------------------------------

static const struct field backend_fields[] = {
        {.key = "name", FIELD(FIELD_NAME, struct lb_backend, name), .required = true},
        {.key = "mac", FIELD(FIELD_MAC, struct lb_backend, mac), .required = true},
        {UINT_FIELD("weight", struct lb_backend, weight, 1, WEIGHT_MAX)},
        {.key = "up", FIELD(FIELD_BOOL, struct lb_backend, up)},
        {0},
};

static int backend_decode(const json_t *value, struct lb_backend *backend, const char *where, char *error)
{
	*backend = (struct lb_backend){.weight = 1, .up = true};
	if (schema_decode(value, backend_fields, backend, where, error) != 0)
		return -EINVAL;
	if (backend->mac[0] & 1)
		return config_error(error, "%s.mac: a group address; a backend is one station", where);
	return 0;
}

// In this order they take turns: whoever lists the same backends in another order builds the same table.
static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct lb_backend *)a)->name, ((const struct lb_backend *)b)->name);
}

static int backends_decode(const json_t *array, struct lb_settings *settings, struct lb_service *service,
                           const char *where, char *error)
{
	struct lb_backend *own;
	size_t n = json_array_size(array), limit = settings->table_size / ENTRIES_PER_BACKEND;

	if (n < 1 || n > MAGLEV_BACKENDS_MAX)
		return config_error(error, "%s.backends: expected an array of 1 to %d objects", where,
		                    MAGLEV_BACKENDS_MAX);
	if (n > limit)
		return config_error(
		        error,
		        "%s.backends: %zu are too many for a table_size of %u; it should be a prime of "
		        "%zu or "
		        "more (100 for each backend), for even shares",
		        where, n, settings->table_size, n * ENTRIES_PER_BACKEND);
	if (settings->backend_count + n > LB_BACKENDS_MAX)
		return config_error(error,
		                    "%s.backends: with those of the services before more than %d; use fewer",
		                    where, LB_BACKENDS_MAX);
	own = realloc(settings->backends, (settings->backend_count + n) * sizeof(*own));
	if (!own)
		return config_error(error, "%s.backends: no memory", where);
	settings->backends = own;
	service->first = settings->backend_count;
	service->count = (uint16_t)n;
	own += service->first;
	for (size_t i = 0; i < n; i++) {
		char which[64];

		snprintf(which, sizeof(which), "%s.backends[%zu]", where, i);
		if (backend_decode(json_array_get(array, i), &own[i], which, error) != 0)
			return -EINVAL;
	}
	settings->backend_count += (uint32_t)n;
	qsort(own, n, sizeof(*own), by_name);
	for (size_t i = 1; i < n; i++)
		if (strcmp(own[i - 1].name, own[i].name) == 0)
			return config_error(error, "%s.backends: \"%s\" is named twice", where, own[i].name);
	return 0;
}

// --- A service -------------------------------------------------------------------------------------------

struct service_document {
	char address[FLOW_ADDRESS_TEXT];
	int protocol;
	uint16_t port;
};

static const char *const protocol_names[] = {"udp", "tcp", "any", NULL};
static const uint8_t protocols[] = {[LB_UDP] = IPPROTO_UDP, [LB_TCP] = IPPROTO_TCP, [LB_ANY] = 0};

static const struct field service_fields[] = {
        {.key = "address", FIELD(FIELD_STRING, struct service_document, address), .required = true},
        {CHOICE_FIELD("protocol", struct service_document, protocol, protocol_names)},
        {UINT_FIELD("port", struct service_document, port, 0, UINT16_MAX)},
        {.key = "backends", .type = FIELD_ANY},
        {0},
};

static bool same(const struct lb_service *a, const struct lb_service *b)
{
	return a->address[0] == b->address[0] && a->address[1] == b->address[1] && a->version == b->version &&
	       a->protocol == b->protocol && a->port == b->port;
}

static int service_decode(const json_t *value, struct lb_settings *settings, const char *where, char *error)
{
	struct service_document document = {.protocol = LB_ANY};
	struct lb_service *service = &settings->services[settings->service_count];

	if (schema_decode(value, service_fields, &document, where, error) != 0)
		return -EINVAL;
	*service = (struct lb_service){
	        .version = strchr(document.address, ':') ? 6 : 4,
	        .protocol = protocols[document.protocol],
	        .port = htons(document.port),
	};
	if (inet_pton(service->version == 4 ? AF_INET : AF_INET6, document.address, service->address) != 1)
		return config_error(error, "%s.address: \"%s\" is no IPv4 or IPv6 address", where,
		                    document.address);
	for (unsigned i = 0; i < settings->service_count; i++)
		if (same(&settings->services[i], service))
			return config_error(error, "%s: the same address, protocol and port as services[%u]",
			                    where, i);
	settings->service_count++;
	return backends_decode(json_object_get(value, "backends"), settings, service, where, error);
}

static int services_decode(const json_t *array, struct lb_settings *settings, char *error)
{
	size_t n = json_array_size(array);

	if (!json_is_array(array) || n < 1 || n > LB_SERVICES_MAX)
		return config_error(error, "settings.services: expected an array of 1 to %d objects",
		                    LB_SERVICES_MAX);
	if (n * settings->table_size > ENTRIES_MAX)
		return config_error(error,
		                    "settings.table_size: %zu tables of %u entries are more than %d in all",
		                    n, settings->table_size, ENTRIES_MAX);
	settings->services = calloc(n, sizeof(*settings->services));
	if (!settings->services)
		return config_error(error, "settings.services: no memory");
	for (size_t i = 0; i < n; i++) {
		char where[48];

		snprintf(where, sizeof(where), "settings.services[%zu]", i);
		if (service_decode(json_array_get(array, i), settings, where, error) != 0)
			return -EINVAL;
	}
	return 0;
}

// --- The whole -------------------------------------------------------------------------------------------

static const char *const other_names[] = {"forward", "drop", NULL};

const struct lb_settings lb_defaults = {
        .table_size = TABLE_SIZE_DEFAULT,
        .connections = CONNECTIONS_DEFAULT,
        .connection_timeout_s = TIMEOUT_S_DEFAULT,
};

const struct field lb_fields[] = {
        {.key = "services", .type = FIELD_ANY},
        {UINT_FIELD("table_size", struct lb_settings, table_size, MAGLEV_SIZE_MIN, MAGLEV_SIZE_MAX)},
        {UINT_FIELD("connections", struct lb_settings, connections, 0, FLOW_TABLE_MAX)},
        {UINT_FIELD("connection_timeout_s", struct lb_settings, connection_timeout_s, 1, 1e6)},
        {CHOICE_FIELD("other", struct lb_settings, other, other_names)},
        {0},
};

// What the tester sends by default: a service for each of its streams.
static json_t *services_default(void)
{
	json_t *services = json_array();

	for (unsigned stream = 0; stream < FRAME_STREAMS; stream++) {
		json_t *backends = json_array();

		for (unsigned i = 0; i < DEFAULT_BACKENDS; i++)
			json_array_append_new(backends,
			                      json_pack("{s:o, s:o}", "name", json_sprintf("backend-%u", i),
			                                "mac", json_sprintf("02:00:00:00:02:%02x", i)));
		json_array_append_new(services, json_pack("{s:o, s:s, s:i, s:o}", "address",
		                                          json_sprintf("198.19.%u.1", stream), "protocol",
		                                          "udp", "port", DEFAULT_PORT, "backends", backends));
	}
	return services;
}

int lb_settings_check(const struct config_task *config, const json_t *object, void *out, const char *where,
                      char *error)
{
	struct lb_settings *settings = out;
	json_t *given = json_object_get(object, "services"),
	       *services = given ? json_incref(given) : services_default();
	char text[CONFIG_ERROR_MAX];
	int status = 0;

	if (!maglev_is_prime(settings->table_size))
		status = config_error(error, "%s.table_size: %u is no prime; try 65537 or 655373", where,
		                      settings->table_size);
	else if (services_decode(services, settings, text))
		status = config_error(error, "task %s: %.200s", config->name, text);
	json_decref(services);
	return status;
}

void lb_settings_free(void *out)
{
	struct lb_settings *settings = out;

	for (unsigned i = 0; i < settings->service_count; i++)
		free(settings->services[i].table);
	free(settings->services);
	free(settings->backends);
	*settings = (struct lb_settings){0};
}

// --- Tables ----------------------------------------------------------------------------------------------

// Its table anew, by what is up.
static void lb_fill(struct lb *lb, struct lb_service *service)
{
	struct lb_backend *own = &lb->settings.backends[service->first];
	struct maglev_backend maglev[MAGLEV_BACKENDS_MAX];

	service->live = false;
	for (unsigned i = 0; i < service->count; i++) {
		maglev[i] = own[i].maglev;
		maglev[i].weight = own[i].up ? own[i].weight : 0;
		service->live = service->live || own[i].up;
		own[i].slots = 0;
	}
	maglev_fill(service->table, lb->settings.table_size, maglev, service->count);
	for (uint32_t i = 0; service->live && i < lb->settings.table_size; i++)
		own[service->table[i]].slots++;
}

static int service_build(struct lb *lb, struct lb_service *service)
{
	struct lb_backend *own = &lb->settings.backends[service->first];

	service->table = malloc(lb->settings.table_size * sizeof(*service->table));
	if (!service->table)
		return -ENOMEM;
	for (unsigned i = 0; i < service->count; i++)
		maglev_permute(&own[i].maglev, own[i].name, lb->settings.table_size);
	lb_fill(lb, service);
	return 0;
}

// Backwards, so that the services of a bucket are found in the order of the settings.
int lb_build(struct lb *lb)
{
	for (unsigned i = 0; i < LB_BUCKETS; i++)
		lb->buckets[i] = LB_NONE;
	for (unsigned i = lb->settings.service_count; i-- > 0;) {
		struct lb_service *service = &lb->settings.services[i];
		uint16_t *bucket = &lb->buckets[lb_bucket(service->address[0], service->address[1])];

		if (service_build(lb, service) != 0)
			return -ENOMEM;
		service->next = *bucket;
		*bucket = (uint16_t)i;
	}
	return 0;
}

// --- Report and methods ----------------------------------------------------------------------------------

// Control thread, worker parked.

// --- backends --------------------------------------------------------------------------------------------

static json_t *backend_json(const struct lb_backend *backend)
{
	return json_pack("{s:s, s:o, s:I, s:b, s:I, s:I, s:I, s:I}", "name", backend->name, "mac",
	                 schema_mac_json(backend->mac), "weight", (json_int_t)backend->weight, "up",
	                 backend->up, "packets", (json_int_t)backend->packets, "bytes",
	                 (json_int_t)backend->bytes, "slots", (json_int_t)backend->slots, "connections",
	                 (json_int_t)backend->connections);
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

static json_t *call_backends(struct task *task, const void *params, uint64_t now_tsc, char *error)
{
	struct lb *lb = (struct lb *)task;
	json_t *services = json_array();

	flow_table_expire(&lb->connections, now_tsc, UINT32_MAX);
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

static const struct field backend_params_fields[] = {
        {UINT_FIELD("service", struct backend_params, service, 0, LB_SERVICES_MAX - 1), .required = true},
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

// Connections of backends that are up stay where they are; those of this one, if it went, move as their
// packets come.
static json_t *call_backend(struct task *task, const void *params, uint64_t now_tsc, char *error)
{
	const struct backend_params *given = params;
	struct lb *lb = (struct lb *)task;
	struct lb_backend *backend;

	if (given->service >= lb->settings.service_count)
		return config_error_null(error,
		                         "params.service: %u is not valid: there are %u, counted from 0",
		                         given->service, lb->settings.service_count);
	backend = backend_find(lb, &lb->settings.services[given->service], given->backend);
	if (!backend)
		return config_error_null(
		        error, "params.backend: services[%u] has no \"%s\"; see load_balancer.backends",
		        given->service, given->backend);
	backend->up = given->up;
	lb_fill(lb, &lb->settings.services[given->service]);
	return json_pack("{s:b}", "up", backend->up);
}

const struct task_method lb_methods[] = {
        {.name = "backend", .call = call_backend, .fields = backend_params_fields},
        {.name = "backends", .call = call_backends},
        {0},
};

// --- Report ----------------------------------------------------------------------------------------------

const struct counter lb_counters[] = {
        COUNTER("new_connections", struct lb, counts.new_connections),
        COUNTER("moved_connections", struct lb, counts.moved),
        COUNTER("untracked_packets", struct lb, counts.untracked),
        COUNTER("fragment_packets", struct lb, counts.fragments),
        COUNTER("other_packets", struct lb, counts.other),
        {0},
};

void lb_report(const struct task *task, json_t *object, uint64_t now_tsc)
{
	struct lb *lb = (struct lb *)(uintptr_t)task;

	flow_table_expire(&lb->connections, lb->connections.now_tsc, UINT32_MAX);
	json_object_set_new(object, "connections", json_integer(lb->connections.count));
}
