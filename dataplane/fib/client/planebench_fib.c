// SPDX-License-Identifier: BSD-3-Clause
// The window: messages 0 .. count of the queue have the sequence numbers base, base + 1, ...; the first
// `sent` have been sent in this round, the first `known` in some round: the forwarder may have those, and
// they do not change any more. planebench_fib/client.py is the same in Python.
#include "planebench_fib.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

// --- Records of messages and what the user says, one from the other -------------------------------------

static bool fib_hop_write(const struct fib_client_hop *hop, struct fib_hop_record *record)
{
	*record = (struct fib_hop_record){.op = FIB_REPLACE,
	                                  .kind = hop->kind,
	                                  .number = htons(hop->number),
	                                  .wire = hop->wire,
	                                  .vlan = htons(hop->vlan)};
	memcpy(record->destination, hop->destination, sizeof(record->destination));
	return hop->number < FIB_HOP_NUMBERS && hop->kind >= FIB_HOP_FORWARD &&
	       hop->kind <= FIB_HOP_BLACKHOLE;
}

static bool fib_route_write(enum fib_op op, const struct fib_client_route *route,
                            struct fib_route_record6 *record)
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

static void fib_refusal_read(struct fib_client_refusal *refusal, const uint8_t *record)
{
	const struct fib_route_record6 *route = (const struct fib_route_record6 *)record;
	const struct fib_hop_record *hop = (const struct fib_hop_record *)record;

	refusal->op = (enum fib_op)record[0];
	if (refusal->type == FIB_NEXT_HOP_GROUPS) {
		refusal->hop.number = ntohs(((const struct fib_group_record *)record)->number);
		refusal->hop.kind = FIB_HOP_GROUP;
		return;
	}
	if (refusal->type == FIB_NEXT_HOPS) {
		refusal->hop = (struct fib_client_hop){.number = ntohs(hop->number),
		                                       .kind = hop->kind,
		                                       .wire = hop->wire,
		                                       .vlan = ntohs(hop->vlan)};
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
	        [FIB_OK] = "done",
	        [FIB_BUSY] = "the forwarder is busy",
	        [FIB_SEQUENCE] = "the message is not the next one of its session",
	        [FIB_MALFORMED] = "malformed message",
	        [FIB_NO_SESSION] = "the forwarder does not know the session",
	        [FIB_QUOTA] = "the route quota of this VNF is exhausted",
	        [FIB_FULL] = "the table of the forwarder is full",
	        [FIB_NO_NEXT_HOP] = "this session has not announced its next hop",
	        [FIB_EXISTS] = "it already exists",
	        [FIB_ABSENT] = "it does not exist",
	        [FIB_BUSY_HOP] = "routes or groups still use this next hop",
	        [FIB_VERSION] = "the forwarder speaks another version of messages",
	};

	return (unsigned)code < FIB_CODES ? reasons[code] : "for a reason that this client does not know";
}

// --- Client --------------------------------------------------------------------------------------------------

enum {
	ETHER_BYTES = 14,
	OVERHEAD = ETHER_BYTES + sizeof(struct fib_message),
	FRAME_BYTES_MAX = 1514,
	FRAME_BYTES_MIN = 60,
};

static const uint64_t retry_ns_max = UINT64_C(1000000000);
// A session that held for so long is begun again at once. One that did not may have been ended by another speaker of this VNF:
// each HELLO ends the session of the other, so both wait, longer each time, as for an answer.
static const uint64_t held_ns = UINT64_C(10000000000);
static const uint8_t forwarder_mac[6] = {0x02, 0xf1, 0xb0, 0, 0, 0};

struct pending {
	uint8_t type, family;
	bool open; // more may be added
	uint16_t count;
	uint8_t frame[FRAME_BYTES_MAX]; // records lie where they are sent from
};

struct fib_client {
	struct fib_client_config config;
	struct pending queue[FIB_WINDOW];
	unsigned head, count, sent, known, window;
	uint32_t session, base;
	uint64_t now_ns, last_sent_ns, last_heard_ns, not_before_ns, wait_ns;
	uint64_t begun_ns, again_ns; // of the session; the wait before the next one
	bool went_back, up;
	uint8_t wires_up;
	uint64_t retransmitted, applied, refused, routes, quota;
};

static struct pending *pending_at(struct fib_client *client, unsigned place)
{
	return &client->queue[(client->head + place) % FIB_WINDOW];
}

static bool has_records(uint8_t type)
{
	return type == FIB_ROUTES || type == FIB_NEXT_HOPS || type == FIB_NEXT_HOP_GROUPS;
}

static unsigned record_bytes(const struct pending *pending)
{
	if (pending->type == FIB_NEXT_HOPS)
		return sizeof(struct fib_hop_record);
	if (pending->type == FIB_NEXT_HOP_GROUPS)
		return sizeof(struct fib_group_record);
	return pending->family == 4 ? sizeof(struct fib_route_record4) : sizeof(struct fib_route_record6);
}

static uint8_t *record_at(struct pending *pending, unsigned i)
{
	return pending->frame + OVERHEAD + i * record_bytes(pending);
}

// --- Sending --------------------------------------------------------------------------------------------

static void frame_send(struct fib_client *client, unsigned place)
{
	struct pending *pending = pending_at(client, place);
	unsigned records = has_records(pending->type) ? pending->count * record_bytes(pending) : 0;
	unsigned length = OVERHEAD + records;
	const struct fib_message header = {
	        .magic = htons(FIB_MAGIC),
	        .version = FIB_MESSAGE_VERSION,
	        .type = pending->type,
	        .session = htonl(client->session),
	        .sequence = htonl(client->base + place),
	        .count = htons(pending->count),
	        .reserved = htons(pending->family),
	};

	memcpy(pending->frame, forwarder_mac, sizeof(forwarder_mac));
	memcpy(pending->frame + 6, client->config.mac, sizeof(client->config.mac));
	pending->frame[12] = FIB_ETHER_TYPE >> 8;
	pending->frame[13] = FIB_ETHER_TYPE & 0xff;
	memcpy(pending->frame + ETHER_BYTES, &header, sizeof(header));
	if (length < FRAME_BYTES_MIN) {
		memset(pending->frame + length, 0, FRAME_BYTES_MIN - length);
		length = FRAME_BYTES_MIN;
	}
	client->config.send(client->config.context, pending->frame, length);
}

// What the window has room for; a message that may grow only if everything is to go.
static void send_queue(struct fib_client *client, bool everything)
{
	if (client->now_ns < client->not_before_ns)
		return;
	while (client->sent < client->count && client->sent < client->window) {
		struct pending *pending = pending_at(client, client->sent);

		if (pending->open && !everything)
			return;
		pending->open = false;
		frame_send(client, client->sent);
		client->last_sent_ns = client->now_ns;
		client->retransmitted += client->sent < client->known;
		if (++client->sent > client->known)
			client->known = client->sent;
	}
}

static void go_back(struct fib_client *client)
{
	client->sent = 0;
	send_queue(client, true);
}

// --- Collecting -----------------------------------------------------------------------------------------

static struct pending *message_add(struct fib_client *client, uint8_t type, uint8_t family)
{
	struct pending *pending = pending_at(client, client->count);

	if (client->count == FIB_WINDOW)
		return NULL;
	client->count++;
	pending->type = type;
	pending->family = family;
	pending->open = has_records(type);
	pending->count = 0;
	return pending;
}

static int record_add(struct fib_client *client, uint8_t type, uint8_t family, const void *record)
{
	struct pending *last = client->count ? pending_at(client, client->count - 1) : NULL;

	if (last == NULL || !last->open || last->type != type || last->family != family)
		last = message_add(client, type, family);
	if (last == NULL)
		return -EAGAIN;
	memcpy(record_at(last, last->count), record, record_bytes(last));
	last->count++;
	if (OVERHEAD + (last->count + 1) * record_bytes(last) > client->config.frame_bytes) {
		last->open = false;
		send_queue(client, false);
	}
	return 0;
}

int fib_client_set_hop(struct fib_client *client, const struct fib_client_hop *hop)
{
	struct fib_hop_record record;

	return fib_hop_write(hop, &record) ? record_add(client, FIB_NEXT_HOPS, 0, &record) : -EINVAL;
}

int fib_client_set_group(struct fib_client *client, uint16_t number, const struct fib_client_member *members,
                         unsigned count)
{
	struct fib_group_record record = {
	        .op = FIB_REPLACE, .count = (uint8_t)count, .number = htons(number)};

	if (number >= FIB_HOP_NUMBERS || count == 0 || count > FIB_MEMBERS_MAX)
		return -EINVAL;
	for (unsigned i = 0; i < count; i++) {
		if (members[i].number >= FIB_HOP_NUMBERS || members[i].weight == 0)
			return -EINVAL;
		record.members[i].number = htons(members[i].number);
		record.members[i].weight = members[i].weight;
	}
	return record_add(client, FIB_NEXT_HOP_GROUPS, 0, &record);
}

int fib_client_delete_hop(struct fib_client *client, uint16_t number)
{
	const struct fib_hop_record record = {.op = FIB_DELETE, .number = htons(number)};

	return number < FIB_HOP_NUMBERS ? record_add(client, FIB_NEXT_HOPS, 0, &record) : -EINVAL;
}

int fib_client_set_route(struct fib_client *client, enum fib_op op, const struct fib_client_route *route)
{
	struct fib_route_record6 record;

	return fib_route_write(op, route, &record) ? record_add(client, FIB_ROUTES, route->family, &record)
	                                           : -EINVAL;
}

int fib_client_flush(struct fib_client *client)
{
	return message_add(client, FIB_FLUSH, 0) ? 0 : -EAGAIN;
}

int fib_client_end_of_rib(struct fib_client *client)
{
	return message_add(client, FIB_END_OF_RIB, 0) ? 0 : -EAGAIN;
}

// --- Answers --------------------------------------------------------------------------------------------

static void begin(struct fib_client *client, uint32_t session)
{
	client->session = session ? session : 1;
	client->base = 1;
	client->count = client->sent = client->known = 0;
	client->window = 1; // until it has said how many it takes
	client->went_back = client->up = false;
	client->wait_ns = client->config.retry_ns;
	client->begun_ns = client->last_sent_ns = client->last_heard_ns = client->now_ns;
	client->not_before_ns = client->now_ns + client->again_ns;
	message_add(client, FIB_HELLO, 0);
}

static uint64_t at_most(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void session_lost(struct fib_client *client)
{
	bool held = client->now_ns - client->begun_ns >= held_ns;
	uint64_t longer_ns = client->again_ns ? 2 * client->again_ns : client->config.retry_ns;

	client->again_ns = held ? 0 : at_most(longer_ns, retry_ns_max);
	begin(client, client->session + 1);
	if (client->config.lost)
		client->config.lost(client->config.context);
}

static void refuse(struct fib_client *client, const struct fib_client_refusal *refusal)
{
	client->refused++;
	if (client->config.refused)
		client->config.refused(client->config.context, refusal);
}

static void records_drop(struct pending *pending, unsigned n)
{
	if (n > pending->count)
		n = pending->count;
	pending->count = (uint16_t)(pending->count - n);
	memmove(record_at(pending, 0), record_at(pending, n), pending->count * record_bytes(pending));
}

static void pop(struct fib_client *client)
{
	client->head = (client->head + 1) % FIB_WINDOW;
	client->count--;
	client->sent -= client->sent > 0;
	client->known -= client->known > 0;
}

// The first message, at a record: those before it are applied, and all behind it goes again under new
// numbers.
static void stopped(struct fib_client *client, const struct fib_ack *ack)
{
	struct pending *first = pending_at(client, 0);
	struct fib_client_refusal refusal = {
	        .type = first->type, .code = ack->code, .route.family = first->family};
	bool busy = ack->code == FIB_BUSY;

	client->applied += ntohs(ack->applied);
	records_drop(first, ntohs(ack->applied));
	if (!busy && first->count) {
		fib_refusal_read(&refusal, record_at(first, 0));
		records_drop(first, 1);
	}
	if (first->count == 0 && (has_records(first->type) || !busy))
		pop(client);
	if (client->base != ntohl(ack->next_sequence)) {
		client->base = ntohl(ack->next_sequence);
		client->known = 0;
	}
	client->sent = 0;
	if (busy)
		client->not_before_ns = client->now_ns + client->config.retry_ns;
	send_queue(client, false);
	if (!busy)
		refuse(client, &refusal);
}

static void done(struct fib_client *client, const struct fib_ack *ack)
{
	bool hello = pending_at(client, 0)->type == FIB_HELLO;

	client->applied += pending_at(client, 0)->count;
	pop(client);
	client->base++;
	if (hello && client->base != ntohl(ack->next_sequence)) {
		session_lost(client); // the number is in use
		return;
	}
	client->up = true;
	send_queue(client, false);
}

static void answered(struct fib_client *client, const struct fib_ack *ack)
{
	unsigned window = ntohs(ack->window);

	client->routes = be64toh(ack->routes);
	client->quota = be64toh(ack->quota);
	client->last_heard_ns = client->now_ns;
	client->wait_ns = client->config.retry_ns;
	client->window = window < 1 ? 1 : window < FIB_WINDOW ? window : FIB_WINDOW;
	client->went_back = false;
	if (ack->code == FIB_OK)
		done(client, ack);
	else
		stopped(client, ack);
}

// The forwarder expects what is behind the first message, and has not applied that: someone else may use the
// session's number. (It says FIB_SEQUENCE of the first also where that came out of order, and again in time.)
static bool is_passed_over(const struct fib_client *client, const struct fib_ack *ack)
{
	return ack->code == FIB_SEQUENCE && (int32_t)(ntohl(ack->next_sequence) - client->base) > 0;
}

// One behind the first: that, or its answer, got lost. Go back at once, but once until there is progress.
static void out_of_turn(struct fib_client *client)
{
	if (client->went_back)
		return;
	client->went_back = true;
	go_back(client);
}

void fib_client_received(struct fib_client *client, const uint8_t *frame, unsigned length, uint64_t now_ns)
{
	struct fib_message message;
	struct fib_ack ack;
	uint32_t place;

	if (length < OVERHEAD + sizeof(ack))
		return;
	memcpy(&message, frame + ETHER_BYTES, sizeof(message));
	memcpy(&ack, frame + OVERHEAD, sizeof(ack));
	if (frame[12] != FIB_ETHER_TYPE >> 8 || frame[13] != (FIB_ETHER_TYPE & 0xff) ||
	    message.magic != htons(FIB_MAGIC) || message.session != htonl(client->session) ||
	    !(message.type & FIB_ACK))
		return;
	client->now_ns = now_ns;
	if (message.version != FIB_MESSAGE_VERSION) {
		refuse(client, &(struct fib_client_refusal){.type = FIB_HELLO, .code = FIB_VERSION});
		return;
	}
	client->wires_up = ack.wires_up;
	place = ntohl(message.sequence) - client->base;
	if (place >= client->known || message.type != (pending_at(client, place)->type | FIB_ACK))
		return; // answered before
	if (ack.code == FIB_NO_SESSION || (place == 0 && is_passed_over(client, &ack)))
		session_lost(client);
	else if (place || ack.code == FIB_SEQUENCE)
		out_of_turn(client);
	else
		answered(client, &ack);
}

// --- Time -----------------------------------------------------------------------------------------------

void fib_client_tick(struct fib_client *client, uint64_t now_ns)
{
	uint64_t last_ns;

	client->now_ns = now_ns;
	if (client->count == 0 && now_ns - client->last_sent_ns >= client->config.keepalive_ns)
		message_add(client, FIB_KEEPALIVE, 0);
	send_queue(client, true);
	last_ns = client->last_sent_ns > client->last_heard_ns ? client->last_sent_ns : client->last_heard_ns;
	if (client->known == 0 || now_ns - last_ns < client->wait_ns)
		return;
	client->wait_ns = at_most(2 * client->wait_ns, retry_ns_max);
	go_back(client);
}

// --- Making it ------------------------------------------------------------------------------------------

struct fib_client *fib_client_create(const struct fib_client_config *config, uint64_t now_ns)
{
	struct fib_client *client = config->session && config->send ? calloc(1, sizeof(*client)) : NULL;

	if (client == NULL)
		return NULL;
	client->config = *config;
	client->now_ns = now_ns;
	if (config->frame_bytes < FRAME_BYTES_MIN || config->frame_bytes > FRAME_BYTES_MAX)
		client->config.frame_bytes = FRAME_BYTES_MAX;
	if (config->retry_ns == 0)
		client->config.retry_ns = UINT64_C(20000000);
	if (config->keepalive_ns == 0)
		client->config.keepalive_ns = UINT64_C(1000000000);
	begin(client, config->session);
	return client;
}

void fib_client_destroy(struct fib_client *client)
{
	free(client);
}

void fib_client_read(const struct fib_client *client, struct fib_client_status *status)
{
	*status = (struct fib_client_status){
	        .session = client->session,
	        .up = client->up,
	        .unanswered = client->count,
	        .retransmitted = client->retransmitted,
	        .applied = client->applied,
	        .refused = client->refused,
	        .routes = client->routes,
	        .quota = client->quota,
	        .wires_up = client->wires_up,
	};
}
