// SPDX-License-Identifier: BSD-3-Clause
#include "fib/fib_apply.h"

#include <errno.h>
#include <rte_byteorder.h>
#include <string.h>

enum { AHEAD = 16 }; // records whose buckets are on their way into the cache

static enum fib_code code_of(int rc)
{
	switch (rc) {
	case 0:
		return FIB_OK;
	case -EAGAIN:
		return FIB_BUSY;
	case -EDQUOT:
		return FIB_QUOTA;
	case -ENOSPC:
		return FIB_FULL;
	case -EEXIST:
		return FIB_EXISTS;
	case -EBUSY:
		return FIB_BUSY_HOP;
	default:
		return FIB_MALFORMED;
	}
}

// --- Routes ---------------------------------------------------------------------------------------------

// Both kinds of record begin alike; only the length of the address differs.
static struct fib_prefix prefix_read(const uint8_t *record, unsigned family)
{
	const struct fib_route_record6 *route = (const struct fib_route_record6 *)record;
	struct fib_prefix prefix = {.family = (uint8_t)family, .length = route->length};

	memcpy(prefix.address, route->address, family == 4 ? 4 : 16);
	return prefix;
}

static enum fib_code route_apply(const struct fib_session *session, const uint8_t *record, unsigned family)
{
	const struct fib_route_record6 *route = (const struct fib_route_record6 *)record;
	const struct fib_prefix prefix = prefix_read(record, family);
	int rc;

	switch (route->op) {
	case FIB_ADD:
	case FIB_REPLACE:
		rc = fib_route_set(session->fib, session->vnf, session->number, route->op, &prefix,
		                   rte_be_to_cpu_16(route->hop));
		return rc == -ENOENT ? FIB_NO_NEXT_HOP : code_of(rc);
	case FIB_DELETE:
		rc = fib_route_delete(session->fib, session->vnf, &prefix);
		return rc == -ENOENT ? FIB_ABSENT : code_of(rc);
	default:
		return FIB_MALFORMED;
	}
}

// Whatever the record says: a prefix that is not sound is only asked for.
static void route_prefetch(const struct fib_session *session, const uint8_t *record, unsigned family)
{
	struct fib_prefix prefix = prefix_read(record, family);

	if (prefix.length <= (family == 4 ? 32 : 128))
		fib_route_prefetch(session->fib, session->vnf, &prefix);
}

struct fib_answer fib_apply_routes(const struct fib_session *session, const struct fib_message *message,
                                   const uint8_t *records, unsigned length)
{
	unsigned family = rte_be_to_cpu_16(message->reserved), count = rte_be_to_cpu_16(message->count);
	unsigned size = family == 4 ? sizeof(struct fib_route_record4) : sizeof(struct fib_route_record6);
	struct fib_answer answer = {.code = FIB_MALFORMED};

	if ((family != 4 && family != 6) || count * size > length)
		return answer;
	for (unsigned i = 0; i < count && i < AHEAD; i++)
		route_prefetch(session, records + i * size, family);
	for (unsigned i = 0; i < count; i++) {
		if (i + AHEAD < count)
			route_prefetch(session, records + (i + AHEAD) * size, family);
		answer.code = (uint8_t)route_apply(session, records + i * size, family);
		if (answer.code != FIB_OK)
			return answer;
		answer.applied++;
	}
	answer.code = FIB_OK;
	return answer;
}

// --- Next hops ------------------------------------------------------------------------------------------

static bool is_zero(const uint8_t *bytes, unsigned n)
{
	while (n && bytes[n - 1] == 0)
		n--;
	return n == 0;
}

// A VNF speaks for itself alone: what leaves for it has its own MAC, and goes out by a wire of its own to one
// station.
static bool is_sound(const struct fib_session *session, const struct fib_hop_record *record)
{
	const uint8_t *source = record->source, *destination = record->destination;

	return record->wire < session->wires && !(destination[0] & 1) &&
	       !is_zero(destination, RTE_ETHER_ADDR_LEN) &&
	       (is_zero(source, RTE_ETHER_ADDR_LEN) || memcmp(source, session->mac, RTE_ETHER_ADDR_LEN) == 0);
}

static enum fib_code hop_apply(const struct fib_session *session, const struct fib_hop_record *record)
{
	uint16_t number = rte_be_to_cpu_16(record->number);
	struct fib_hop hop = {.kind = record->kind};
	int rc;

	if (!is_zero(record->pad, sizeof(record->pad)) || number >= FIB_HOP_NUMBERS)
		return FIB_MALFORMED;
	if (record->op == FIB_DELETE) {
		rc = fib_hop_delete(session->fib, session->vnf, session->number, number);
		return rc == -ENOENT ? FIB_ABSENT : code_of(rc);
	}
	if (record->op != FIB_REPLACE || (hop.kind == FIB_HOP_FORWARD && !is_sound(session, record)))
		return FIB_MALFORMED;
	if (hop.kind == FIB_HOP_FORWARD) {
		hop.port = session->ports[record->wire];
		memcpy(hop.macs, record->destination, RTE_ETHER_ADDR_LEN);
		memcpy(hop.macs + RTE_ETHER_ADDR_LEN, session->mac, RTE_ETHER_ADDR_LEN);
	}
	return code_of(fib_hop_set(session->fib, session->vnf, session->number, number, &hop));
}

struct fib_answer fib_apply_hops(const struct fib_session *session, const struct fib_message *message,
                                 const uint8_t *records, unsigned length)
{
	const struct fib_hop_record *hops = (const struct fib_hop_record *)records;
	unsigned count = rte_be_to_cpu_16(message->count);
	struct fib_answer answer = {.code = FIB_MALFORMED};

	if (message->reserved || count * sizeof(*hops) > length)
		return answer;
	for (unsigned i = 0; i < count; i++) {
		answer.code = (uint8_t)hop_apply(session, &hops[i]);
		if (answer.code != FIB_OK)
			return answer;
		answer.applied++;
	}
	answer.code = FIB_OK;
	return answer;
}
