// SPDX-License-Identifier: BSD-3-Clause
// docs/fib-messages.md is the authority on what is read and written here.
#include "fib/fib_session.h"

#include <errno.h>
#include <rte_byteorder.h>
#include <string.h>

// --- Records of a message, applied in their order until one fails ---------------------------------------

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

static struct fib_answer fib_apply_routes(const struct fib_session *session,
                                          const struct fib_message *message, const uint8_t *records,
                                          unsigned length)
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

// A VNF speaks for itself alone: what leaves for it has its own MAC, and goes out by a wire and in a VLAN of its own to
// one station.
static bool is_sound(const struct fib_session *session, const struct fib_hop_record *record)
{
	const uint8_t *source = record->source, *destination = record->destination;

	return record->wire < session->wires && !(destination[0] & 1) &&
	       (record->vlan == 0 || vlans_have(session->vlans, rte_be_to_cpu_16(record->vlan))) &&
	       !is_zero(destination, RTE_ETHER_ADDR_LEN) &&
	       (is_zero(source, RTE_ETHER_ADDR_LEN) || memcmp(source, session->mac, RTE_ETHER_ADDR_LEN) == 0);
}

static enum fib_code hop_apply(const struct fib_session *session, const uint8_t *at)
{
	const struct fib_hop_record *record = (const struct fib_hop_record *)at;
	uint16_t number = rte_be_to_cpu_16(record->number);
	struct fib_hop hop = {.kind = record->kind};
	int rc;

	if (record->pad || number >= FIB_HOP_NUMBERS)
		return FIB_MALFORMED;
	if (record->op == FIB_DELETE) {
		rc = fib_hop_delete(session->fib, session->vnf, session->number, number);
		return rc == -ENOENT ? FIB_ABSENT : code_of(rc);
	}
	if (record->op != FIB_REPLACE || (hop.kind == FIB_HOP_FORWARD && !is_sound(session, record)))
		return FIB_MALFORMED;
	if (hop.kind == FIB_HOP_FORWARD) {
		hop.port = session->ports[record->wire];
		hop.vlan = rte_be_to_cpu_16(record->vlan);
		memcpy(hop.macs, record->destination, RTE_ETHER_ADDR_LEN);
		memcpy(hop.macs + RTE_ETHER_ADDR_LEN, session->mac, RTE_ETHER_ADDR_LEN);
	}
	return code_of(fib_hop_set(session->fib, session->vnf, session->number, number, &hop));
}

static enum fib_code group_apply(const struct fib_session *session, const uint8_t *at)
{
	const struct fib_group_record *record = (const struct fib_group_record *)at;
	struct fib_member members[FIB_MEMBERS_MAX];
	bool missing;
	int rc;

	if (record->op != FIB_REPLACE || record->count > FIB_MEMBERS_MAX ||
	    !is_zero((const uint8_t *)&record->members[record->count],
	             (FIB_MEMBERS_MAX - record->count) * (unsigned)sizeof(record->members[0])))
		return FIB_MALFORMED;
	for (unsigned i = 0; i < record->count; i++) {
		if (record->members[i].pad)
			return FIB_MALFORMED;
		members[i] = (struct fib_member){rte_be_to_cpu_16(record->members[i].number),
		                                 record->members[i].weight};
	}
	rc = fib_group_set(session->fib, session->vnf, session->number, rte_be_to_cpu_16(record->number),
	                   members, record->count, &missing);
	return missing ? FIB_NO_NEXT_HOP : code_of(rc);
}

static struct fib_answer fib_apply_hops(const struct fib_session *session, const struct fib_message *message,
                                        const uint8_t *records, unsigned length)
{
	bool groups = message->type == FIB_NEXT_HOP_GROUPS;
	unsigned count = rte_be_to_cpu_16(message->count);
	unsigned size = groups ? sizeof(struct fib_group_record) : sizeof(struct fib_hop_record);
	struct fib_answer answer = {.code = FIB_MALFORMED};

	if (message->reserved || count * size > length)
		return answer;
	for (unsigned i = 0; i < count; i++) {
		const uint8_t *at = records + i * size;

		answer.code = (uint8_t)(groups ? group_apply(session, at) : hop_apply(session, at));
		if (answer.code != FIB_OK)
			return answer;
		answer.applied++;
	}
	answer.code = FIB_OK;
	return answer;
}

// --- Messages --------------------------------------------------------------------------------------------------

enum { ETHER_BYTES = 14 };

// The least significant bits of the difference: sequence numbers wrap around, 0 is one of them.
static int32_t ahead(const struct fib_session *session, uint32_t sequence)
{
	return (int32_t)(sequence - session->expected);
}

static struct fib_answer *answer_to(struct fib_session *session, uint32_t sequence)
{
	return &session->answers[sequence % FIB_ANSWERS];
}

// The message is answered for good. After an error none of those that may be under way behind it is applied:
// their numbers, up to the end of the window, are passed over. Answers to a whole window before it are kept:
// the client may not have got them.
static struct fib_answer conclude(struct fib_session *session, struct fib_answer answer)
{
	const struct fib_answer refused = {.code = FIB_SEQUENCE};
	uint32_t sequence = session->expected;

	*answer_to(session, sequence) = answer;
	session->expected = answer.code == FIB_OK ? sequence + 1 : sequence + FIB_WINDOW;
	for (uint32_t passed = sequence + 1; passed != session->expected; passed++)
		*answer_to(session, passed) = refused;
	return answer;
}

// --- Messages -------------------------------------------------------------------------------------------

static bool has_older_routes(const struct fib_session *session)
{
	struct fib_vnf_stats stats;

	return fib_vnf_read(session->fib, session->vnf, &stats) && stats.stale > 0;
}

// Where nothing is stale yet, the grace period of what the new session leaves behind begins now.
static void hello_begin(struct fib_session *session, uint32_t number, uint64_t now_tsc)
{
	if (!session->has_stale || (session->state == FIB_SESSION_UP && !has_older_routes(session)))
		session->stale_tsc = now_tsc;
	session->has_stale = true;
	fib_begin(session->fib, session->vnf, number);
	session->number = number;
	session->expected = 1;
	session->state = FIB_SESSION_UP;
	session->heard_tsc = now_tsc;
	for (unsigned i = 0; i < FIB_ANSWERS; i++)
		session->answers[i] = (struct fib_answer){.code = FIB_SEQUENCE};
	conclude(session, (struct fib_answer){.code = FIB_OK});
}

// With the number of the present session it is a repetition. It needs the lock: FIB_BUSY without.
static struct fib_answer hello(struct fib_session *session, const struct fib_message *message,
                               uint64_t now_tsc)
{
	uint32_t number = rte_be_to_cpu_32(message->session);

	if (number == FIB_OPERATOR || rte_be_to_cpu_32(message->sequence) != 1 || message->count ||
	    message->reserved)
		return (struct fib_answer){.code = FIB_MALFORMED};
	if (session->state == FIB_SESSION_NONE || number != session->number) {
		if (!fib_trylock(session->fib))
			return (struct fib_answer){.code = FIB_BUSY};
		hello_begin(session, number, now_tsc);
		fib_unlock(session->fib);
	}
	return (struct fib_answer){.code = FIB_OK};
}

static void flush(struct fib_session *session, enum fib_whose whose)
{
	fib_flush(session->fib, session->vnf, whose);
	session->has_stale = false;
	session->flushed++;
}

// What the message says is done, record by record. The lock is held.
static struct fib_answer apply(struct fib_session *session, const struct fib_message *message,
                               unsigned length)
{
	const uint8_t *records = (const uint8_t *)(message + 1);

	length -= (unsigned)sizeof(*message);
	if (message->type == FIB_ROUTES)
		return fib_apply_routes(session, message, records, length);
	if (message->type == FIB_NEXT_HOPS || message->type == FIB_NEXT_HOP_GROUPS)
		return fib_apply_hops(session, message, records, length);
	if (message->count || message->reserved)
		return (struct fib_answer){.code = FIB_MALFORMED};
	switch (message->type) {
	case FIB_FLUSH:
		flush(session, FIB_FLUSH_SESSIONS);
		return (struct fib_answer){.code = FIB_OK};
	case FIB_END_OF_RIB:
		flush(session, FIB_FLUSH_STALE);
		return (struct fib_answer){.code = FIB_OK};
	case FIB_KEEPALIVE:
		return (struct fib_answer){.code = FIB_OK};
	default:
		return (struct fib_answer){.code = FIB_MALFORMED};
	}
}

static struct fib_answer expected_message(struct fib_session *session, const struct fib_message *message,
                                          unsigned length, uint64_t now_tsc)
{
	struct fib_answer answer;

	if (!fib_trylock(session->fib))
		return (struct fib_answer){.code = FIB_BUSY};
	answer = apply(session, message, length);
	fib_unlock(session->fib);
	session->records += answer.applied;
	if (answer.applied)
		session->updated_tsc = now_tsc;
	return conclude(session, answer);
}

static struct fib_answer message_handle(struct fib_session *session, const struct fib_message *message,
                                        unsigned length, uint64_t now_tsc)
{
	uint32_t sequence = rte_be_to_cpu_32(message->sequence);
	int32_t distance;

	if (message->version != FIB_MESSAGE_VERSION)
		return (struct fib_answer){.code = FIB_VERSION};
	if (message->type == FIB_HELLO)
		return hello(session, message, now_tsc);
	if (session->state == FIB_SESSION_NONE || rte_be_to_cpu_32(message->session) != session->number)
		return (struct fib_answer){.code = FIB_NO_SESSION};
	session->heard_tsc = now_tsc;
	if (session->state == FIB_SESSION_STALE) { // it was silent, not gone
		session->state = FIB_SESSION_UP;
		session->has_stale = has_older_routes(session);
	}
	distance = ahead(session, sequence);
	if (distance == 0)
		return expected_message(session, message, length, now_tsc);
	if (distance < 0 && distance >= -FIB_ANSWERS)
		return *answer_to(session, sequence);
	return (struct fib_answer){.code = FIB_SEQUENCE};
}

// --- Frames ---------------------------------------------------------------------------------------------

static const uint8_t ours[6] = {0x02, 0xf1, 0xb0, 0, 0, 0};

// The answer, over the message. Where that was sent to a group the answer comes from an address of ours.
static void answer_write(const struct fib_session *session, uint8_t *frame, struct fib_answer answer)
{
	struct fib_message *message = (struct fib_message *)(frame + ETHER_BYTES);
	struct fib_ack *ack = (struct fib_ack *)(message + 1);
	bool is_ours =
	        session->state != FIB_SESSION_NONE && message->session == rte_cpu_to_be_32(session->number);
	struct fib_vnf_stats stats;
	uint8_t to[6];

	fib_vnf_read(session->fib, session->vnf, &stats);
	memcpy(to, frame + 6, sizeof(to));
	memcpy(frame + 6, frame[0] & 1 ? ours : frame, sizeof(ours));
	memcpy(frame, to, sizeof(to));
	message->version = FIB_MESSAGE_VERSION;
	message->type |= FIB_ACK;
	message->count = message->reserved = 0;
	*ack = (struct fib_ack){
	        .code = answer.code,
	        .wires_up = (uint8_t)(((1u << session->wires) - 1) & ~session->wires_down),
	        .applied = rte_cpu_to_be_16(answer.applied),
	        .next_sequence = rte_cpu_to_be_32(is_ours ? session->expected : 1),
	        .window = rte_cpu_to_be_16(FIB_WINDOW),
	        .routes = rte_cpu_to_be_64(stats.routes4 + stats.routes6),
	        .quota = rte_cpu_to_be_64(stats.quota_routes),
	};
}

unsigned fib_session_handle(struct fib_session *session, uint8_t *frame, unsigned length, uint64_t now_tsc)
{
	const struct fib_message *message = (const struct fib_message *)(frame + ETHER_BYTES);
	struct fib_answer answer;

	if (length < ETHER_BYTES + sizeof(*message) || frame[12] != FIB_ETHER_TYPE >> 8 ||
	    frame[13] != (FIB_ETHER_TYPE & 0xff) || message->magic != rte_cpu_to_be_16(FIB_MAGIC) ||
	    message->type & FIB_ACK) {
		session->malformed++;
		return 0;
	}
	session->messages++;
	answer = message_handle(session, message, length - ETHER_BYTES, now_tsc);
	session->codes[answer.code]++;
	answer_write(session, frame, answer);
	return FIB_ANSWER_BYTES;
}

bool fib_session_wires(struct fib_session *session, uint8_t down, uint8_t frame[FIB_ANSWER_BYTES])
{
	const struct fib_message notice = {.magic = rte_cpu_to_be_16(FIB_MAGIC),
	                                   .session = rte_cpu_to_be_32(session->number)};

	if (session->wires_down == down)
		return false;
	session->wires_down = down;
	if (session->state != FIB_SESSION_UP)
		return false;
	memcpy(frame, ours, sizeof(ours));
	memcpy(frame + 6, session->mac, sizeof(session->mac));
	frame[12] = FIB_ETHER_TYPE >> 8;
	frame[13] = FIB_ETHER_TYPE & 0xff;
	memcpy(frame + ETHER_BYTES, &notice, sizeof(notice));
	answer_write(session, frame, (struct fib_answer){.code = FIB_OK});
	session->notices++;
	return true;
}

// --- Time -----------------------------------------------------------------------------------------------

static void fall_silent(struct fib_session *session, uint64_t now_tsc)
{
	session->state = FIB_SESSION_STALE;
	session->lost_peers++;
	session->stale_tsc = now_tsc;
	session->has_stale = true;
}

// Routes that nobody has spoken for since this process began: of a snapshot.
static void look_for_stale(struct fib_session *session, uint64_t now_tsc)
{
	if (!has_older_routes(session))
		return;
	session->stale_tsc = now_tsc;
	session->has_stale = true;
}

// The grace period is over: of a session that is up what is older goes; of any other all.
static void expire(struct fib_session *session)
{
	if (!fib_trylock(session->fib))
		return; // the next tick is soon enough
	flush(session, session->state == FIB_SESSION_UP ? FIB_FLUSH_STALE : FIB_FLUSH_SESSIONS);
	fib_unlock(session->fib);
	if (session->state == FIB_SESSION_STALE)
		session->state = FIB_SESSION_NONE;
}

static bool is_past(uint64_t since_tsc, uint64_t cycles, uint64_t now_tsc)
{
	return (int64_t)(now_tsc - since_tsc) > (int64_t)cycles;
}

void fib_session_tick(struct fib_session *session, bool link_up, uint64_t now_tsc)
{
	if (session->state == FIB_SESSION_UP &&
	    (!link_up || is_past(session->heard_tsc, session->hold_tsc, now_tsc)))
		fall_silent(session, now_tsc);
	if (session->state == FIB_SESSION_NONE && !session->has_stale)
		look_for_stale(session, now_tsc);
	if (session->has_stale && is_past(session->stale_tsc, session->grace_tsc, now_tsc))
		expire(session);
}
