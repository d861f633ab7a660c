// SPDX-License-Identifier: BSD-3-Clause
#include "planebench_fib_record.h"

#include <arpa/inet.h>
#include <string.h>

bool fib_hop_write(const struct fib_client_hop *hop, struct fib_hop_record *record)
{
	*record = (struct fib_hop_record){
	        .op = FIB_REPLACE, .kind = hop->kind, .number = htons(hop->number), .wire = hop->wire};
	memcpy(record->destination, hop->destination, sizeof(record->destination));
	return hop->number < FIB_HOP_NUMBERS && hop->kind >= FIB_HOP_FORWARD &&
	       hop->kind <= FIB_HOP_BLACKHOLE;
}

bool fib_route_write(enum fib_op op, const struct fib_client_route *route, struct fib_route_record6 *record)
{
	unsigned bits = route->family == 4 ? 32 : 128;

	*record = (struct fib_route_record6){
	        .op = (uint8_t)op,
	        .length = route->length,
	        .hop = op == FIB_DELETE ? 0 : htons(route->hop),
	};
	memcpy(record->address, route->address, bits / 8);
	return (route->family == 4 || route->family == 6) && route->length <= bits &&
	       route->hop < FIB_HOP_NUMBERS && op >= FIB_ADD && op <= FIB_DELETE;
}

void fib_refusal_read(struct fib_client_refusal *refusal, const uint8_t *record)
{
	const struct fib_route_record6 *route = (const struct fib_route_record6 *)record;
	const struct fib_hop_record *hop = (const struct fib_hop_record *)record;

	refusal->op = (enum fib_op)record[0];
	if (refusal->type == FIB_NEXT_HOPS) {
		refusal->hop = (struct fib_client_hop){
		        .number = ntohs(hop->number), .kind = hop->kind, .wire = hop->wire};
		memcpy(refusal->hop.destination, hop->destination, sizeof(hop->destination));
		return;
	}
	refusal->route.length = route->length;
	refusal->route.hop = ntohs(route->hop);
	memcpy(refusal->route.address, route->address, refusal->route.family == 4 ? 4 : 16);
}

const char *fib_client_reason(enum fib_code code)
{
	static const char *const reasons[FIB_CODES] = {
	        [FIB_OK] = "it is done",
	        [FIB_BUSY] = "the forwarder is busy",
	        [FIB_SEQUENCE] = "it was not the next message",
	        [FIB_MALFORMED] = "the forwarder takes it for malformed",
	        [FIB_NO_SESSION] = "the forwarder knows nothing of the session",
	        [FIB_QUOTA] = "the quota of this VNF is used up",
	        [FIB_FULL] = "the forwarder's table has no room",
	        [FIB_NO_NEXT_HOP] = "this session has not announced its next hop",
	        [FIB_EXISTS] = "it is there already",
	        [FIB_ABSENT] = "it is not there",
	        [FIB_BUSY_HOP] = "routes still lead there",
	        [FIB_VERSION] = "the forwarder speaks another version of messages",
	};

	return (unsigned)code < FIB_CODES ? reasons[code] : "for a reason that this client does not know";
}
