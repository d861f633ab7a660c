// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fib/fib_offload.h"
#include "base/schema.h"

enum {
	ROUTES4_DEFAULT = 1000000,
	HOPS_DEFAULT = 256,
	PUNT_PPS_DEFAULT = 1000,
	PUNT_BURST_DEFAULT = 64,
	GRACE_S_DEFAULT = 30,
	HOLD_S_DEFAULT = 3,
	SNAPSHOT_S_DEFAULT = 60,
	SECONDS_MAX = 86400,
	WHERE_MAX = 48,
};
#define ROUTES_MAX     (double)(UINT64_C(1) << 33)
#define PUNT_PPS_MAX   1e9
#define PUNT_BURST_MAX 1e6

// A VNF as it is written.
struct vnf_document {
	uint32_t vnf, routes_of;
	char port[CONFIG_NAME_MAX], out[CONFIG_NAME_MAX];
	uint8_t mac[RTE_ETHER_ADDR_LEN], reflect[RTE_ETHER_ADDR_LEN];
	unsigned wire_count;
	char wires[OFFLOAD_WIRES_MAX][CONFIG_NAME_MAX];
	bool offload;
	int on_miss;
	uint64_t quota_routes, vlans[VLAN_WORDS];
	uint32_t quota_hops, grace_s, hold_s;
};

// --- What is punted --------------------------------------------------------------------------------------

struct rule_document {
	uint8_t protocol;
	uint32_t port;
};

static int decode_protocol(const json_t *value, void *out, const char *where, char *error)
{
	const char *text = json_string_value(value);
	json_int_t number = json_integer_value(value);

	if (text && strcmp(text, "tcp") == 0)
		number = IPPROTO_TCP;
	else if (text && strcmp(text, "udp") == 0)
		number = IPPROTO_UDP;
	if (number < 1 || number > 255)
		return config_error(error, "%s: expected \"tcp\", \"udp\" or a protocol number from 1 to 255",
		                    where);
	*(uint8_t *)out = (uint8_t)number;
	return 0;
}

static int decode_rule(const json_t *value, void *out, const char *where, char *error)
{
	static const struct field fields[] = {
	        {CUSTOM_FIELD("protocol", struct rule_document, protocol, decode_protocol), .required = true},
	        {UINT_FIELD("port", struct rule_document, port, 1, UINT16_MAX)},
	        {0},
	};
	struct rule_document document = {0};
	struct offload_rule *rule = out;

	if (schema_decode(value, fields, &document, where, error))
		return -EINVAL;
	if (document.port && document.protocol != IPPROTO_TCP && document.protocol != IPPROTO_UDP)
		return config_error(error, "%s.port: protocol %u has no ports here; leave \"port\" out",
		                    where, document.protocol);
	rule->protocol = document.protocol;
	rule->port = rte_cpu_to_be_16((uint16_t)document.port);
	return 0;
}

static const struct field punt_fields[] = {
        {UINT_FIELD("rate_pps", struct offload_settings, punt_pps, 1, PUNT_PPS_MAX)},
        {UINT_FIELD("burst", struct offload_settings, punt_burst, 1, PUNT_BURST_MAX)},
        {ARRAY_FIELD("also", FIELD_CUSTOM, struct offload_settings, rules, rule_count, 0, OFFLOAD_RULES_MAX),
         .decode = decode_rule},
        {0},
};

static int decode_mtu(const json_t *value, void *out, const char *where, char *error)
{
	static const struct field fields[] = {
	        {.key = "wire", FIELD(FIELD_NAME, struct offload_mtu, wire), .required = true},
	        {UINT_FIELD("mtu", struct offload_mtu, mtu, RTE_ETHER_MIN_MTU, UINT16_MAX), .required = true},
	        {0},
	};

	return schema_decode(value, fields, out, where, error);
}

// --- The whole object ------------------------------------------------------------------------------------

static const char *const pages_names[] = {"best", "1G", "2M", "thp", "4K", NULL}; // as enum pages
_Static_assert(sizeof(pages_names) / sizeof(pages_names[0]) == PAGES_COUNT + 1, "as enum pages");
static const char *const miss_names[] = {"drop", "punt", NULL};

const struct field offload_fields[] = {
        {ARRAY_FIELD("wires", FIELD_NAME, struct offload_settings, fib.wires, fib.wire_count, 1,
                     OFFLOAD_WIRES_MAX),
         .required = true},
        {.key = "fib", FIELD(FIELD_NAME, struct offload_settings, fib.name)},
        {UINT_FIELD("routes4", struct offload_settings, fib.routes4, 0, ROUTES_MAX)},
        {UINT_FIELD("routes6", struct offload_settings, fib.routes6, 0, ROUTES_MAX)},
        {CHOICE_FIELD("pages", struct offload_settings, fib.pages, pages_names)},
        {.key = "snapshot", FIELD(FIELD_STRING, struct offload_settings, fib.snapshot)},
        {UINT_FIELD("snapshot_s", struct offload_settings, snapshot_s, 0, SECONDS_MAX)},
        {.key = "punt", .type = FIELD_OBJECT, .fields = punt_fields},
        {ARRAY_FIELD("mtus", FIELD_CUSTOM, struct offload_settings, mtus, mtu_count, 0, OFFLOAD_WIRES_MAX),
         .decode = decode_mtu},
        {.key = "vnfs", .type = FIELD_ANY, .required = true},
        {0},
};

const struct offload_settings offload_defaults = {
        .fib.routes4 = ROUTES4_DEFAULT,
        .punt_pps = PUNT_PPS_DEFAULT,
        .punt_burst = PUNT_BURST_DEFAULT,
        .snapshot_s = SNAPSHOT_S_DEFAULT,
};

static int decode_vlans(const json_t *value, void *out, const char *where, char *error)
{
	return schema_decode_vlans(value, out, where, error);
}

static const struct field vnf_fields[] = {
        {UINT_FIELD("vnf", struct vnf_document, vnf, 1, FIB_VNFS_MAX - 1), .required = true},
        {.key = "port", FIELD(FIELD_NAME, struct vnf_document, port), .required = true},
        {.key = "mac", FIELD(FIELD_MAC, struct vnf_document, mac), .required = true},
        {ARRAY_FIELD("wires", FIELD_NAME, struct vnf_document, wires, wire_count, 1, OFFLOAD_WIRES_MAX)},
        {.key = "out", FIELD(FIELD_NAME, struct vnf_document, out)},
        {CUSTOM_FIELD("vlans", struct vnf_document, vlans, decode_vlans)},
        {.key = "offload", FIELD(FIELD_BOOL, struct vnf_document, offload)},
        {.key = "reflect", FIELD(FIELD_MAC, struct vnf_document, reflect)},
        {UINT_FIELD("routes_of", struct vnf_document, routes_of, 1, FIB_VNFS_MAX - 1)},
        {UINT_FIELD("quota_routes", struct vnf_document, quota_routes, 0, ROUTES_MAX)},
        {UINT_FIELD("quota_next_hops", struct vnf_document, quota_hops, 0, FIB_VNF_HOPS_MAX)},
        {CHOICE_FIELD("on_miss", struct vnf_document, on_miss, miss_names)},
        {UINT_FIELD("grace_s", struct vnf_document, grace_s, 0, SECONDS_MAX)},
        {UINT_FIELD("hold_s", struct vnf_document, hold_s, 1, SECONDS_MAX)},
        {0},
};

// --- One VNF ---------------------------------------------------------------------------------------------

// Index of a name in an array of them, or -1.
static int index_of(const char names[][CONFIG_NAME_MAX], unsigned count, const char *name)
{
	for (unsigned i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return (int)i;
	return -1;
}

static int wires_of(const struct offload_fib_settings *fib, const struct vnf_document *document,
                    struct offload_vnf_settings *out, const char *where, char *error)
{
	int last = (int)fib->wire_count - 1, chosen;

	out->wires = document->wire_count ? 0 : (uint8_t)((1u << fib->wire_count) - 1);
	for (unsigned i = 0; i < document->wire_count; i++) {
		last = index_of(fib->wires, fib->wire_count, document->wires[i]);
		if (last < 0)
			return config_error(error, "%s.wires: \"%s\" is not one of \"wires\"", where,
			                    document->wires[i]);
		if (out->wires >> last & 1)
			return config_error(error, "%s.wires: \"%s\" is named twice", where,
			                    document->wires[i]);
		out->wires |= (uint8_t)(1u << last);
	}
	chosen = document->out[0] ? index_of(fib->wires, fib->wire_count, document->out) : last;
	if (chosen < 0 || !(out->wires >> chosen & 1))
		return config_error(error, "%s.out: \"%s\" is not one of the VNF's wires", where,
		                    document->out);
	out->out = (uint8_t)chosen;
	return 0;
}

// Refuse a port, number or address that another VNF has already.
static int check_unique(const struct offload_settings *s, const struct offload_vnf_settings *vnf,
                        const char *where, char *error)
{
	for (unsigned i = 0; i < s->vnf_count; i++) {
		const struct offload_vnf_settings *other = &s->vnfs[i];

		if (other->vnf == vnf->vnf)
			return config_error(error,
			                    "%s.vnf: %u is vnfs[%u], too; each needs a number of its own",
			                    where, vnf->vnf, i);
		if (other->port == vnf->port)
			return config_error(error,
			                    "%s.port: vnfs[%u] has the same; each needs a port of its own",
			                    where, i);
		if (memcmp(other->mac, vnf->mac, sizeof(vnf->mac)) == 0)
			return config_error(error,
			                    "%s.mac: vnfs[%u] has the same; each needs an address of its own",
			                    where, i);
	}
	return 0;
}

static int port_of(const struct config_task *config, const struct offload_fib_settings *fib, const char *name,
                   const char *where, char *error)
{
	int port = index_of(config->ports, config->port_count, name);

	if (port < 0)
		return config_error(error, "%s: \"%s\" is not one of the task's \"ports\"; add it there",
		                    where, name);
	if (fib && index_of(fib->wires, fib->wire_count, name) >= 0)
		return config_error(error, "%s: \"%s\" is a wire; a VNF needs a port of its own", where,
		                    name);
	return port;
}

// share: of the tables, that of a VNF which says nothing about it.
static int read_vnf(const struct config_task *config, const json_t *value, uint64_t share,
                    struct offload_settings *s, char *error)
{
	struct vnf_document document = {.offload = true,
	                                .quota_routes = share,
	                                .quota_hops = HOPS_DEFAULT,
	                                .grace_s = GRACE_S_DEFAULT,
	                                .hold_s = HOLD_S_DEFAULT};
	static const uint8_t zeros[RTE_ETHER_ADDR_LEN];
	struct offload_vnf_settings *out = &s->vnfs[s->vnf_count];
	char where[WHERE_MAX];
	int port;

	snprintf(where, sizeof(where), "task %.28s: vnfs[%u]", config->name, s->vnf_count);
	if (schema_decode(value, vnf_fields, &document, where, error))
		return -EINVAL;
	port = port_of(config, &s->fib, document.port, where, error);
	if (port < 0 || wires_of(&s->fib, &document, out, where, error))
		return -EINVAL;
	if (document.mac[0] & 1 || memcmp(document.mac, zeros, sizeof(zeros)) == 0)
		return config_error(error, "%s.mac: a VNF's address is a unicast one, not a group's, not 0",
		                    where);
	out->vnf = (uint16_t)document.vnf;
	out->routes_of = (uint16_t)document.routes_of;
	memcpy(out->mac, document.mac, sizeof(out->mac));
	memcpy(out->reflect, document.reflect, sizeof(out->reflect));
	memcpy(out->vlans, document.vlans, sizeof(out->vlans));
	if (document.offload && memcmp(document.reflect, zeros, sizeof(zeros)) != 0)
		return config_error(error, "%s.reflect: is L2, for \"offload\": false; leave one of them out",
		                    where);
	out->port = (uint8_t)port;
	out->offload = document.offload;
	out->punts_misses = document.on_miss == 1;
	out->quota_routes = document.quota_routes;
	out->quota_hops = document.quota_hops;
	out->grace_s = document.grace_s;
	out->hold_s = document.hold_s;
	if (check_unique(s, out, where, error))
		return -EINVAL;
	s->vnf_count++;
	return 0;
}

// --- What goes together ----------------------------------------------------------------------------------

static int read_wires(const struct config_task *config, struct offload_settings *s, const char *where,
                      char *error)
{
	for (unsigned i = 0; i < s->fib.wire_count; i++) {
		int port = port_of(config, NULL, s->fib.wires[i], where, error);

		if (port < 0)
			return -EINVAL;
		if (index_of(s->fib.wires, i, s->fib.wires[i]) >= 0)
			return config_error(error, "%s.wires: \"%s\" is named twice", where, s->fib.wires[i]);
		s->wire_ports[i] = (uint8_t)port;
	}
	for (unsigned i = 0; i < s->mtu_count; i++)
		if (index_of(s->fib.wires, s->fib.wire_count, s->mtus[i].wire) < 0)
			return config_error(error, "%s.mtus[%u].wire: \"%s\" is not one of \"wires\"", where,
			                    i, s->mtus[i].wire);
	return 0;
}

// Whose routes a VNF has, too: those of one that has only its own, and no wire that it lacks.
static int check_shared(const struct config_task *config, const struct offload_settings *s, char *error)
{
	for (unsigned i = 0; i < s->vnf_count; i++) {
		const struct offload_vnf_settings *vnf = &s->vnfs[i], *other = s->vnfs;
		const char *why = NULL;

		if (vnf->routes_of == 0)
			continue;
		while (other < s->vnfs + s->vnf_count && other->vnf != vnf->routes_of)
			other++;
		if (other == s->vnfs + s->vnf_count || !other->offload)
			why = "is not a VNF here that is offloaded";
		else if (other->routes_of)
			why = "has those of another, too; name that one";
		else if (other->wires & ~vnf->wires)
			why = "has wires that this VNF lacks";
		else if (!vnf->offload)
			why = "is for a VNF that is offloaded; leave one of them out";
		if (why)
			return config_error(error, "task %.28s: vnfs[%u].routes_of: %u %s", config->name, i,
			                    vnf->routes_of, why);
	}
	return 0;
}

// Each of the task's ports is a wire or a VNF's, once.
static int check_ports(const struct config_task *config, const struct offload_settings *s, char *error)
{
	for (unsigned i = 0; i < config->port_count; i++) {
		bool used = index_of(s->fib.wires, s->fib.wire_count, config->ports[i]) >= 0;

		if (index_of(config->ports, i, config->ports[i]) >= 0)
			return config_error(error, "task %s: port %s is named twice; a switch has it once",
			                    config->name, config->ports[i]);
		for (unsigned v = 0; v < s->vnf_count; v++)
			used = used || s->vnfs[v].port == i;
		if (!used)
			return config_error(
			        error,
			        "task %s: port %s is neither one of \"wires\" nor the \"port\" of one "
			        "of \"vnfs\"; leave it out",
			        config->name, config->ports[i]);
	}
	return 0;
}

int offload_settings_check(const struct config_task *config, const json_t *object, void *out,
                           const char *where, char *error)
{
	const json_t *vnfs = json_object_get(object, "vnfs");
	uint64_t share = 0;
	struct offload_settings *settings = out; // zeroed where nothing is written: it is compared

	if (!object)
		return config_error(
		        error, "task %s: kind fib_offload needs \"settings\" with \"wires\" and \"vnfs\"",
		        config->name);
	if (!json_is_array(vnfs) || json_array_size(vnfs) > OFFLOAD_VNFS_MAX)
		return config_error(error, "%s.vnfs: expected an array of at most %d objects", where,
		                    OFFLOAD_VNFS_MAX);
	if (!settings->fib.name[0])
		memcpy(settings->fib.name, config->name, sizeof(settings->fib.name));
	if (read_wires(config, settings, where, error))
		return -EINVAL;
	if (settings->fib.routes4 + settings->fib.routes6 == 0)
		return config_error(error,
		                    "%s: \"routes4\" and \"routes6\" are both 0; there is room for no route",
		                    where);
	if (json_array_size(vnfs))
		share = (settings->fib.routes4 + settings->fib.routes6 - 1) / json_array_size(vnfs) + 1;
	for (size_t i = 0; i < json_array_size(vnfs); i++)
		if (read_vnf(config, json_array_get(vnfs, i), share, settings, error))
			return -EINVAL;
	return check_shared(config, settings, error) ? -EINVAL : check_ports(config, settings, error);
}
