// SPDX-License-Identifier: BSD-3-Clause
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/schema.h"
#include "nf/nat44/nat44.h"
#include "tester/frame.h"

// --- Settings --------------------------------------------------------------------------------------------

enum { TIMEOUT_MAX_S = 1000000, PORT_MAX = 65535 };

// --- Values ----------------------------------------------------------------------------------------------

// An address that a host can have (RFC 1122 s3.2.1.3, RFC 1112 s4).
static bool is_unicast(uint32_t ip)
{
	return ip >> 24 != 0 && ip >> 24 != 127 && ip < UINT32_C(0xe0000000);
}

static int parse_ipv4(const char *text, uint32_t *out)
{
	struct in_addr address;

	if (inet_pton(AF_INET, text, &address) != 1)
		return -EINVAL;
	*out = ntohl(address.s_addr);
	return 0;
}

static int parse_number(const char *text, unsigned long max, unsigned long *out)
{
	size_t digits = strspn(text, "0123456789");

	if (digits == 0 || digits > 5 || text[digits] != '\0')
		return -EINVAL;
	*out = strtoul(text, NULL, 10);
	return *out <= max ? 0 : -EINVAL;
}

// "A<separator>N": an address and a number.
static int parse_pair(const json_t *value, char separator, unsigned long max, uint32_t *address,
                      unsigned long *number)
{
	const char *text = json_string_value(value);
	const char *at = text ? strchr(text, separator) : NULL;
	char head[INET_ADDRSTRLEN];

	if (!at || json_string_length(value) != strlen(text) || at - text >= (ptrdiff_t)sizeof(head))
		return -EINVAL;
	memcpy(head, text, (size_t)(at - text));
	head[at - text] = '\0';
	return parse_ipv4(head, address) || parse_number(at + 1, max, number) ? -EINVAL : 0;
}

// --- Items ----------------------------------------------------------------------------------------------

static int decode_outside(const json_t *value, void *out, const char *where, char *error)
{
	const char *text = json_string_value(value);

	if (!text || parse_ipv4(text, out) || !is_unicast(*(uint32_t *)out))
		return config_error(error, "%s: expected a unicast IPv4 address like 198.18.255.1", where);
	return 0;
}

static int decode_inside(const json_t *value, void *out, const char *where, char *error)
{
	struct nat44_prefix *prefix = out;
	unsigned long length;

	if (parse_pair(value, '/', 32, &prefix->address, &length))
		return config_error(error, "%s: expected a prefix like 10.0.0.0/8", where);
	prefix->mask = length ? UINT32_MAX << (32 - length) : 0;
	if (prefix->address & ~prefix->mask)
		return config_error(error, "%s: \"%.40s\" has bits set beyond its length", where,
		                    json_string_value(value));
	return 0;
}

static int decode_endpoint(const json_t *value, void *out, const char *where, char *error)
{
	struct nat44_endpoint *endpoint = out;
	unsigned long port;

	if (parse_pair(value, ':', PORT_MAX, &endpoint->address, &port) || port == 0 ||
	    !is_unicast(endpoint->address))
		return config_error(
		        error, "%s: expected a unicast IPv4 address and a port like 198.18.255.1:80", where);
	endpoint->port = (uint16_t)port;
	return 0;
}

static const char *const protocols[] = {[NAT44_UDP] = "udp", [NAT44_TCP] = "tcp", NULL};

static const struct field forward_fields[] = {
        {CHOICE_FIELD("protocol", struct nat44_forward, protocol, protocols), .required = true},
        {CUSTOM_FIELD("outside", struct nat44_forward, outside, decode_endpoint), .required = true},
        {CUSTOM_FIELD("inside", struct nat44_forward, inside, decode_endpoint), .required = true},
        {0},
};

#define UINT(member_, min_, max_) UINT_FIELD(#member_, struct nat44_settings, member_, min_, max_)

const struct field nat44_fields[] = {
        {ARRAY_FIELD("outside", FIELD_CUSTOM, struct nat44_settings, outside.addresses, outside.count, 1,
                     NAT44_OUTSIDE_MAX),
         .decode = decode_outside},
        {ARRAY_FIELD("inside", FIELD_CUSTOM, struct nat44_settings, inside.prefixes, inside.count, 1,
                     NAT44_INSIDE_MAX),
         .decode = decode_inside},
        {ARRAY_FIELD("forward", FIELD_OBJECT, struct nat44_settings, forward.items, forward.count, 0,
                     NAT44_FORWARD_MAX),
         .fields = forward_fields},
        {UINT(port_min, 1, PORT_MAX)},
        {UINT(port_max, 1, PORT_MAX)},
        {UINT(sessions_max, 1, NAT44_SESSIONS_MAX)},
        {UINT(sessions_per_host, 0, NAT44_SESSIONS_MAX)},
        {UINT(udp_s, 1, TIMEOUT_MAX_S)},
        {UINT(tcp_established_s, 1, TIMEOUT_MAX_S)},
        {UINT(tcp_transitory_s, 1, TIMEOUT_MAX_S)},
        {UINT(icmp_s, 1, TIMEOUT_MAX_S)},
        {.key = "hairpin", FIELD(FIELD_BOOL, struct nat44_settings, hairpin)},
        {.key = "tcp_loose", FIELD(FIELD_BOOL, struct nat44_settings, tcp_loose)},
        {0},
};

// --- Defaults --------------------------------------------------------------------------------------------

// The tester's odd streams come from outside, to 198.19.STREAM.1:28770 (tester/generator.c, frame.c). They go
// to 198.19.STREAM.2 and keep their port, by which the monitor knows them; and back to .1 in a second nat44
// of a chain.
static void forward_tester(struct nat44_forwards *forwards)
{
	enum { PORT = 28770 };

	for (uint32_t stream = 1; stream < FRAME_STREAMS; stream += 2) {
		uint32_t net = UINT32_C(0xc6130000) | stream << 8;

		for (uint32_t host = 1; host <= 2; host++)
			for (unsigned protocol = NAT44_UDP; protocol <= NAT44_TCP; protocol++)
				forwards->items[forwards->count++] = (struct nat44_forward){
				        protocol, {net | host, PORT}, {net | (3 - host), PORT}};
	}
}

const struct nat44_settings nat44_defaults = {
        .outside = {1, {UINT32_C(0xc612ff01)}}, // 198.18.255.1
        .inside = {1, {{0, 0}}},
        .port_min = 1024, // RFC 4787 REQ-3
        .port_max = PORT_MAX,
        .sessions_max = 65536,
        .udp_s = 300,              // RFC 4787 REQ-5
        .tcp_established_s = 7440, // RFC 5382 REQ-5
        .tcp_transitory_s = 240,   // RFC 5382 REQ-5
        .icmp_s = 60,              // RFC 5508 REQ-2
        .hairpin = true,
        .tcp_loose = true,
};

// --- Together --------------------------------------------------------------------------------------------

static bool same(const struct nat44_endpoint *a, const struct nat44_endpoint *b)
{
	return a->address == b->address && a->port == b->port;
}

static int check_forwards(const struct nat44_forwards *forwards, const char *where, char *error)
{
	for (unsigned i = 0; i < forwards->count; i++)
		for (unsigned j = 0; j < i; j++) {
			const struct nat44_forward *a = &forwards->items[i], *b = &forwards->items[j];

			if (a->protocol == b->protocol &&
			    (same(&a->outside, &b->outside) || same(&a->inside, &b->inside)))
				return config_error(
				        error,
				        "%s.forward[%u]: its %s is that of forward[%u]; an endpoint is "
				        "forwarded once",
				        where, i, same(&a->outside, &b->outside) ? "outside" : "inside", j);
		}
	return 0;
}

static bool is_among(const struct nat44_outside *outside, unsigned count, uint32_t address)
{
	for (unsigned i = 0; i < count; i++)
		if (outside->addresses[i] == address)
			return true;
	return false;
}

static int check_outside(const struct nat44_outside *outside, const char *where, char *error)
{
	for (unsigned i = 0; i < outside->count; i++)
		if (is_among(outside, i, outside->addresses[i]))
			return config_error(error, "%s.outside[%u]: %u.%u.%u.%u is there twice; name it once",
			                    where, i, outside->addresses[i] >> 24,
			                    outside->addresses[i] >> 16 & 255,
			                    outside->addresses[i] >> 8 & 255, outside->addresses[i] & 255);
	return 0;
}

// Addresses of forwards that are not in "outside".
static unsigned own_addresses(const struct nat44_settings *settings)
{
	const struct nat44_forwards *forwards = &settings->forward;
	unsigned own = 0;

	for (unsigned i = 0; i < forwards->count; i++) {
		unsigned j = 0;

		while (forwards->items[j].outside.address != forwards->items[i].outside.address)
			j++;
		own += i == j && !is_among(&settings->outside, settings->outside.count,
		                           forwards->items[i].outside.address);
	}
	return own;
}

int nat44_settings_check(const struct config_task *config, const json_t *object, void *out, const char *where,
                         char *error)
{
	struct nat44_settings *settings = out;

	if (strcmp(config->ports[0], config->ports[1]) == 0)
		return config_error(
		        error,
		        "task %s: port %s is named twice; kind nat44 takes an inside and an outside "
		        "port",
		        config->name, config->ports[0]);
	if (!json_object_get(object, "forward") && !json_object_get(object, "outside"))
		forward_tester(&settings->forward);
	if (settings->port_min > settings->port_max)
		return config_error(error, "%s: port_min %u is above port_max %u", where, settings->port_min,
		                    settings->port_max);
	if (own_addresses(settings) > NAT44_FORWARD_ADDRESSES_MAX)
		return config_error(error, "%s.forward: %u addresses that are not in \"outside\"; at most %d",
		                    where, own_addresses(settings), NAT44_FORWARD_ADDRESSES_MAX);
	if (check_outside(&settings->outside, where, error))
		return -EINVAL;
	return check_forwards(&settings->forward, where, error);
}

// --- Report and methods ----------------------------------------------------------------------------------

// What is seen of the NAT and done to it by hand: counters, nat44.sessions, nat44.flush, and the sessions of
// a task that is replaced. Control thread; the worker is parked.

enum { LIMIT_DEFAULT = 1000, LIMIT_MAX = 10000, SCAN_MAX = 1 << 18, ENDPOINT_MAX = INET_ADDRSTRLEN + 6 };

static const char *const protocol_names[] = {"udp", "tcp", "icmp"};
static const char *const state_names[NAT44_STATES] = {
        [NAT44_OPENING] = "opening", [NAT44_ESTABLISHED] = "established", [NAT44_CLOSING] = "closing",
        [NAT44_RESET] = "reset",     [NAT44_SHARED] = "shared",           [NAT44_STATIC] = "static",
};

static const char *endpoint(rte_be32_t ip, rte_be16_t port, char text[static ENDPOINT_MAX])
{
	inet_ntop(AF_INET, &ip, text, INET_ADDRSTRLEN);
	snprintf(text + strlen(text), 7, ":%u", ntohs(port));
	return text;
}

// --- Counters --------------------------------------------------------------------------------------------

const struct counter nat44_counters[] = {
        COUNTER("created", struct nat44, created),
        COUNTER("expired", struct nat44, expired),
        COUNTER("hairpinned", struct nat44, hairpinned),
        {0},
};

// What there is now.
static const struct counter gauges[] = {
        COUNTER("sessions_max", struct nat44, settings.sessions_max),
        COUNTER("forwards", struct nat44, settings.forward.count),
        COUNTER("by_protocol.udp", struct nat44, live[NAT44_UDP]),
        COUNTER("by_protocol.tcp", struct nat44, live[NAT44_TCP]),
        COUNTER("by_protocol.icmp", struct nat44, live[NAT44_ICMP]),
        COUNTER("memory_bytes", struct nat44, memory_bytes),
        {0},
};

static json_t *address_report(const struct nat44 *nat, const struct nat44_address *address)
{
	char text[INET_ADDRSTRLEN];
	json_t *ports = json_object();

	inet_ntop(AF_INET, &address->ip, text, sizeof(text));
	for (unsigned i = 0; i < NAT44_PROTOCOLS; i++)
		json_object_set_new(
		        ports, protocol_names[i],
		        json_integer((json_int_t)address->ports[i].in_use[0] + address->ports[i].in_use[1]));
	return json_pack("{s:s, s:o}", "address", text, "ports", ports);
}

void nat44_report(const struct task *task, json_t *object, uint64_t now_tsc)
{
	const struct nat44 *nat = (const struct nat44 *)task;
	json_t *addresses = json_array();
	uint64_t sessions = 0;

	for (unsigned i = 0; i < NAT44_PROTOCOLS; i++)
		sessions += nat->live[i];
	for (unsigned i = 0; i < nat->address_count; i++)
		json_array_append_new(addresses, address_report(nat, &nat->addresses[i]));
	counters_report(gauges, nat, NULL, object);
	json_object_set_new(object, "sessions", json_integer((json_int_t)sessions));
	json_object_set_new(object, "addresses", addresses);
}

// --- Methods ---------------------------------------------------------------------------------------------

static json_t *session_report(const struct nat44 *nat, const struct nat44_session *s, uint64_t now_tsc)
{
	char inside[ENDPOINT_MAX + 1], outside[ENDPOINT_MAX + 1];
	enum nat44_protocol protocol = nat44_key_protocol(s->key);
	double hz = (double)clock_hz();
	uint64_t end_tsc = s->used_tsc + nat->timeout_tsc[s->class];
	json_t *object = json_pack("{s:s, s:s, s:s}", "protocol", protocol_names[protocol], "inside",
	                           endpoint(nat44_key_ip(s->key), nat44_key_port(s->key), inside), "outside",
	                           endpoint(s->outside_ip, s->outside_port, outside));

	if (s->class == NAT44_CLASS_STATIC || protocol == NAT44_TCP)
		json_object_set_new(object, "state", json_string(state_names[s->state]));
	if (s->class != NAT44_CLASS_STATIC) {
		json_object_set_new(object, "idle_s", json_real((double)(now_tsc - s->used_tsc) / hz));
		json_object_set_new(object, "expires_in_s", json_real((double)(end_tsc - now_tsc) / hz));
	}
	return object;
}

static const struct task_page page_defaults = {.limit = LIMIT_DEFAULT};
static const struct field page_fields[] = {TASK_PAGE_FIELDS(1, LIMIT_MAX), {0}};

// A bounded part of the table: the worker is parked. "next" is where to go on, null at the end.
static json_t *call_sessions(struct task *task, const void *params, uint64_t now_tsc, char *error)
{
	const struct nat44 *nat = (const struct nat44 *)task;
	uint32_t end = nat->settings.sessions_max + nat->settings.forward.count + 1;
	const struct task_page *page = params;
	json_t *sessions = json_array();
	uint64_t at;

	for (at = page->from; at < end && at - page->from < SCAN_MAX; at++) {
		const struct nat44_session *s = &nat->sessions[at];

		if (!s->key || nat44_is_over(nat, s, now_tsc))
			continue;
		if (json_array_size(sessions) == page->limit)
			break;
		json_array_append_new(sessions, session_report(nat, s, now_tsc));
	}
	return task_page("sessions", sessions, at < end, at);
}

static json_t *call_flush(struct task *task, const void *params, uint64_t now_tsc, char *error)
{
	struct nat44 *nat = (struct nat44 *)task;
	json_int_t flushed = 0;

	for (unsigned class = 0; class < NAT44_CLASSES; class ++)
		for (; nat->lists[class].oldest; flushed++)
			nat44_remove(nat, &nat->sessions[nat->lists[class].oldest]);
	return json_pack("{s:I}", "flushed", flushed);
}

const struct task_method nat44_methods[] = {
        {.name = "sessions", .call = call_sessions, .fields = page_fields, TASK_DEFAULTS(page_defaults)},
        {.name = "flush", .call = call_flush},
        {0},
};

// --- Replaced --------------------------------------------------------------------------------------------

// The session that was used last of those that are next in each list; NULL at the end. Steps over it.
static const struct nat44_session *newest_next(const struct nat44 *nat, uint32_t next[NAT44_CLASSES])
{
	const struct nat44_session *newest = NULL;

	for (unsigned class = 0; class < NAT44_CLASSES; class ++) {
		const struct nat44_session *s = &nat->sessions[next[class]];

		if (next[class] && (!newest || s->listed_tsc > newest->listed_tsc))
			newest = s;
	}
	if (newest)
		next[newest->class] = newest->older;
	return newest;
}

// From the newest on: what there is no room for is what was idle longest.
void nat44_adopt(struct task *task, struct task *old_vnf)
{
	struct nat44 *nat = (struct nat44 *)task;
	const struct nat44 *old = (const struct nat44 *)old_vnf;
	const struct nat44_session *s;
	uint32_t next[NAT44_CLASSES];

	for (unsigned class = 0; class < NAT44_CLASSES; class ++)
		next[class] = old->lists[class].newest;
	while ((s = newest_next(old, next)))
		nat44_take_over(nat, s);
}
