// SPDX-License-Identifier: BSD-3-Clause
// What is seen of the NAT and done to it by hand: counters, nat44.sessions, nat44.flush, and the sessions of
// a task that is replaced. Control thread; the worker is parked.
#include <arpa/inet.h>
#include <rte_cycles.h>
#include <stdio.h>

#include "tasks/nat44/nat44.h"
#include "lib/schema.h"

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

void nat44_clear(struct vnf *vnf)
{
	struct nat44 *nat = (struct nat44 *)vnf;

	nat->created = nat->expired = nat->hairpinned = 0;
}

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

void nat44_report(const struct vnf *vnf, json_t *object)
{
	const struct nat44 *nat = (const struct nat44 *)vnf;
	json_t *by_protocol = json_object(), *addresses = json_array();
	uint64_t sessions = 0;

	for (unsigned i = 0; i < NAT44_PROTOCOLS; i++) {
		json_object_set_new(by_protocol, protocol_names[i], json_integer((json_int_t)nat->live[i]));
		sessions += nat->live[i];
	}
	for (unsigned i = 0; i < nat->address_count; i++)
		json_array_append_new(addresses, address_report(nat, &nat->addresses[i]));
	json_object_set_new(object, "sessions", json_integer((json_int_t)sessions));
	json_object_set_new(object, "sessions_max", json_integer(nat->settings.sessions_max));
	json_object_set_new(object, "forwards", json_integer(nat->settings.forward.count));
	json_object_set_new(object, "by_protocol", by_protocol);
	json_object_set_new(object, "created", json_integer((json_int_t)nat->created));
	json_object_set_new(object, "expired", json_integer((json_int_t)nat->expired));
	json_object_set_new(object, "hairpinned", json_integer((json_int_t)nat->hairpinned));
	json_object_set_new(object, "memory_bytes", json_integer((json_int_t)nat->memory_bytes));
	json_object_set_new(object, "addresses", addresses);
}

// --- Methods ---------------------------------------------------------------------------------------------

static json_t *session_report(const struct nat44 *nat, const struct nat44_session *s, uint64_t now_tsc)
{
	char inside[ENDPOINT_MAX + 1], outside[ENDPOINT_MAX + 1];
	enum nat44_protocol protocol = nat44_key_protocol(s->key);
	double hz = (double)rte_get_tsc_hz();
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

struct page {
	uint32_t from, limit;
};

static const struct field page_fields[] = {
        {.key = "task", .type = FIELD_ANY},
        {.key = "from", FIELD(FIELD_UINT, struct page, from), .max = UINT32_MAX},
        {.key = "limit", FIELD(FIELD_UINT, struct page, limit), .min = 1, .max = LIMIT_MAX},
        {0},
};

// A bounded part of the table: the worker is parked. "next" is where to go on, null at the end.
static json_t *call_sessions(struct vnf *vnf, const json_t *params, uint64_t now_tsc, char *error)
{
	const struct nat44 *nat = (const struct nat44 *)vnf;
	uint32_t end = nat->settings.sessions_max + nat->settings.forward.count + 1;
	struct page page = {0, LIMIT_DEFAULT};
	json_t *sessions;
	uint32_t at;

	if (params && schema_decode(params, page_fields, &page, "params", error))
		return NULL;
	sessions = json_array();
	for (at = page.from; at < end && at - page.from < SCAN_MAX; at++) {
		const struct nat44_session *s = &nat->sessions[at];

		if (!s->key || nat44_is_over(nat, s, now_tsc))
			continue;
		if (json_array_size(sessions) == page.limit)
			break;
		json_array_append_new(sessions, session_report(nat, s, now_tsc));
	}
	return json_pack("{s:o, s:o}", "sessions", sessions, "next",
	                 at < end ? json_integer(at) : json_null());
}

static const struct field flush_fields[] = {{.key = "task", .type = FIELD_ANY}, {0}};

static json_t *call_flush(struct vnf *vnf, const json_t *params, uint64_t now_tsc, char *error)
{
	struct nat44 *nat = (struct nat44 *)vnf;
	json_int_t flushed = 0;
	char nothing;

	if (params && schema_decode(params, flush_fields, &nothing, "params", error))
		return NULL;
	for (unsigned class = 0; class < NAT44_CLASSES; class ++)
		for (; nat->lists[class].oldest; flushed++)
			nat44_remove(nat, &nat->sessions[nat->lists[class].oldest]);
	return json_pack("{s:I}", "flushed", flushed);
}

const struct vnf_method nat44_methods[] = {
        {"sessions", call_sessions},
        {"flush", call_flush},
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
void nat44_adopt(struct vnf *vnf, struct vnf *old_vnf)
{
	struct nat44 *nat = (struct nat44 *)vnf;
	const struct nat44 *old = (const struct nat44 *)old_vnf;
	const struct nat44_session *s;
	uint32_t next[NAT44_CLASSES];

	for (unsigned class = 0; class < NAT44_CLASSES; class ++)
		next[class] = old->lists[class].newest;
	while ((s = newest_next(old, next)))
		nat44_take_over(nat, s);
}
