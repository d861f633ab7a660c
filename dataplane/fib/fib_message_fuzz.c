// SPDX-License-Identifier: BSD-3-Clause
// A malicious VNF: frames of EtherType 0x88B5, whole ones as the input has them and damaged ones from parts,
// with time and sweeps between them. test/fuzz.h says how it is run. Each frame lies at the end of memory of
// its own.
//
// Checked: an answer is 60 bytes of an ACK to the sender; another VNF's and the operator's routes are
// untouched; counts are those of the table, within the quotas; what lookups find leaves by the VNF's own
// wires and in its own VLAN, with its own MAC; and all of it can be flushed and swept.
#include <rte_byteorder.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fib/fib_session.h"
#include "test/fuzz.h"

enum {
	VNF = 1,
	OTHER = 2,
	QUOTA = 24,
	QUOTA_HOPS = 3,
	FRAME_MAX = 512,
	ETHER = 14,
	PAGE = 64,
	OURS = 9,
	VLAN = 10
};

static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
static unsigned long frames, codes[FIB_CODES], records, no_messages;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	return 0;
}

static void must(bool is, const char *what)
{
	if (is)
		return;
	fprintf(stderr, "fib_message_fuzz: not so: %s\n", what);
	abort();
}

// --- The FIB, with routes that are none of this VNF's business ------------------------------------------

static void other_put(struct fib *fib, uint16_t vnf, uint8_t last)
{
	const struct fib_prefix prefix = {.family = 4, .length = 32, .address = {192, 0, 2, last}};
	const struct fib_hop hop = {.kind = FIB_HOP_FORWARD, .port = OURS};

	must(fib_hop_set(fib, vnf, FIB_OPERATOR, 1, &hop) == 0 &&
	             fib_route_set(fib, vnf, FIB_OPERATOR, FIB_ADD, &prefix, 1) == 0,
	     "there is room for the operator");
}

static struct fib *fib_open(void)
{
	const struct fib_config config = {.routes4 = 16, .routes6 = 64, .seed = 1, .pages = PAGES_4K};
	struct fib *fib;

	must(fib_create(&config, &fib) == 0 && fib_trylock(fib), "a FIB");
	for (uint16_t vnf = VNF; vnf <= OTHER; vnf++) {
		const struct fib_vnf_config of = {
		        .vnf = vnf, .quota_routes = QUOTA, .quota_hops = QUOTA_HOPS};

		must(fib_vnf_set(fib, &of) == 0, "a VNF");
	}
	other_put(fib, OTHER, 1);
	other_put(fib, OTHER, 2);
	fib_unlock(fib);
	return fib;
}

// Every input finds the same FIB: what it leaves is flushed, and checked to be gone.
static struct fib_session session_open(void)
{
	static struct fib *fib;
	struct fib_session session = {
	        .vnf = VNF, .wires = 2, .ports = {5, 6}, .grace_tsc = 1000, .hold_tsc = 100};

	if (fib == NULL)
		fib = fib_open();
	session.fib = fib;
	session.vlans[0] = UINT64_C(1) << VLAN;
	memcpy(session.mac, mac, sizeof(mac));
	return session;
}

static void other_untouched(const struct fib *fib)
{
	const struct fib_query4 queries[] = {{OTHER, 0xc0000201}, {OTHER, 0xc0000202}, {OTHER, 0xc0000203}};
	const struct fib_hop *hops[3];
	struct fib_vnf_stats stats;

	fib_find4(fib, queries, 3, hops);
	must(hops[0]->port == OURS && hops[1]->port == OURS && hops[2]->kind == FIB_HOP_NONE,
	     "another VNF's routes are untouched");
	must(fib_vnf_read(fib, OTHER, &stats) && stats.routes4 == 2 && stats.routes6 == 0 && stats.hops == 1,
	     "another VNF's counts are");
}

// --- What must be so ------------------------------------------------------------------------------------

// A lookup of a listed route finds it, or a longer prefix.
static void route_is_sound(const struct fib *fib, const struct fib_route *route)
{
	struct fib_query4 four = {.vnf = VNF};
	struct fib_query6 six = {.vnf = VNF};
	const struct fib_hop *hop;

	memcpy(&four.address, route->prefix.address, sizeof(four.address));
	four.address = rte_be_to_cpu_32(four.address);
	memcpy(six.address, route->prefix.address, sizeof(six.address));
	if (route->prefix.family == 4)
		fib_find4(fib, &four, 1, &hop);
	else
		fib_find6(fib, &six, 1, &hop);
	must(hop->kind != FIB_HOP_NONE, "what is listed is found");
	if (hop->kind == FIB_HOP_GROUP)
		hop = fib_hop_of_flow(fib, hop, (uint32_t)frames, (uint32_t)frames & 0x60);
	must(hop->kind != FIB_HOP_NONE && hop->kind != FIB_HOP_GROUP, "a group leads to a next hop");
	must(hop->kind != FIB_HOP_FORWARD ||
	             ((hop->port == 5 || hop->port == 6) && (hop->vlan == 0 || hop->vlan == VLAN) &&
	              memcmp(hop->macs + 6, mac, sizeof(mac)) == 0 && !(hop->macs[0] & 1)),
	     "it leaves by the VNF's wires, in its VLAN, with its MAC, to a station");
}

static void counts_add_up(struct fib *fib)
{
	struct fib_route routes[PAGE];
	struct fib_vnf_stats stats;
	uint64_t cursor = 0, counts[2] = {0}, stale = 0;

	do {
		unsigned n = fib_list(fib, VNF, &cursor, PAGE, routes, PAGE);

		for (unsigned i = 0; i < n; i++) {
			route_is_sound(fib, &routes[i]);
			counts[routes[i].prefix.family == 6]++;
			stale += routes[i].stale;
		}
	} while (cursor);
	must(fib_vnf_read(fib, VNF, &stats) && stats.routes4 == counts[0] && stats.routes6 == counts[1] &&
	             stats.stale == stale,
	     "counts are those of the table");
	must(counts[0] + counts[1] <= QUOTA && stats.hops <= 3 * QUOTA_HOPS, "quotas hold");
}

static void answer_is_sound(const uint8_t *frame, const uint8_t *before, unsigned length)
{
	const struct fib_message *message = (const struct fib_message *)(frame + ETHER);
	const struct fib_ack *ack = (const struct fib_ack *)(message + 1);

	must(length == 60, "an answer has 60 bytes");
	must(memcmp(frame, before + 6, 6) == 0 && !(frame[6] & 1), "it goes to the sender, from a station");
	must(message->type == (before[17] | FIB_ACK) && memcmp(before + 18, frame + 18, 8) == 0,
	     "it is an ACK of that message");
	must(ack->code < FIB_CODES && rte_be_to_cpu_64(ack->routes) <= QUOTA, "its code is known");
	codes[ack->code]++;
}

// --- Frames ---------------------------------------------------------------------------------------------

// Mostly the message that is expected; the numbers of sessions are few.
static void header_make(uint8_t *frame, const struct fib_session *session, struct input *in, unsigned count)
{
	static const uint8_t types[] = {FIB_ROUTES,    FIB_ROUTES, FIB_NEXT_HOPS,  FIB_NEXT_HOP_GROUPS,
	                                FIB_NEXT_HOPS, FIB_FLUSH,  FIB_END_OF_RIB, FIB_HELLO};
	uint8_t how = input_byte(in), type = types[how & 7];
	bool is_hello = type == FIB_HELLO, has_records = (how & 7) < 5;
	struct fib_message message = {
	        .magic = rte_cpu_to_be_16(FIB_MAGIC),
	        .version = FIB_MESSAGE_VERSION,
	        .type = type,
	        .session = rte_cpu_to_be_32(is_hello ? 1u + (how >> 6) : session->number),
	        .sequence = rte_cpu_to_be_32(is_hello ? 1 : session->expected),
	        .count = rte_cpu_to_be_16((uint16_t)(has_records ? count : 0)),
	        .reserved = rte_cpu_to_be_16(type != FIB_ROUTES ? 0
	                                     : how & 8          ? 6
	                                                        : 4),
	};

	if (how >> 4 == 15)
		message.type = input_byte(in);
	if (how >> 4 == 14)
		message.sequence = rte_cpu_to_be_32(session->expected + input_byte(in) - 128u);
	memcpy(frame + ETHER, &message, sizeof(message));
}

static void hop_make(uint8_t *record, uint8_t how)
{
	record[1] = (uint8_t)(1 + (how >> 5) % 3);
	record[4] = how >> 7;
	record[7] = (uint8_t)(how & 0x10 ? VLAN + (how >> 7) : 0); // one of them is not the VNF's
	record[9] = 2;
}

static void group_make(uint8_t *record, struct input *in)
{
	record[0] = FIB_REPLACE;
	record[1] = 1 + input_byte(in) % 3;
	for (unsigned i = 0; i < record[1]; i++) {
		uint8_t how = input_byte(in);

		record[4 + 4 * i + 1] = how & 3;
		record[4 + 4 * i + 2] = 1 + (how >> 2);
	}
}

static void route_make(uint8_t *record, unsigned bits, struct input *in)
{
	record[1] = input_byte(in) % (bits + 1);
	if (record[1] >= 8)
		record[4] = input_byte(in) & 3;
	if (record[1] == bits)
		record[3 + bits / 8] = input_byte(in) & 7;
}

// Records that are right, most of them.
static unsigned records_make(uint8_t *frame, struct input *in, unsigned count)
{
	const struct fib_message *message = (const struct fib_message *)(frame + ETHER);
	unsigned at = ETHER + sizeof(*message), size = message->reserved == rte_cpu_to_be_16(4) ? 8 : 20;

	if (message->type == FIB_NEXT_HOP_GROUPS)
		size = sizeof(struct fib_group_record);
	for (; count && at + size <= FRAME_MAX; count--, at += size) {
		uint8_t how = input_byte(in);

		memset(frame + at, 0, size);
		frame[at] = 1 + how % 3;
		frame[at + 3] = how >> 2 & 3;
		if (message->type == FIB_NEXT_HOPS)
			hop_make(frame + at, how);
		else if (message->type == FIB_NEXT_HOP_GROUPS)
			group_make(frame + at, in);
		else
			route_make(frame + at, size == 8 ? 32 : 128, in);
		if (how >= 0xfc)
			frame[at + input_byte(in) % size] = input_byte(in);
	}
	return at;
}

// The lowest bits of the first byte: how many records. Of the highest: a frame as the input has it, a lie of
// lengths, a byte that is changed.
static unsigned frame_make(uint8_t *frame, const struct fib_session *session, struct input *in)
{
	uint8_t how = input_byte(in);
	unsigned length;

	memset(frame, 2, ETHER);
	frame[12] = 0x88;
	frame[13] = 0xb5;
	if (how >> 4 == 15) {
		length = ETHER + input_byte(in);
		for (unsigned i = ETHER; i < length; i++)
			frame[i] = input_byte(in);
		return length;
	}
	header_make(frame, session, in, how & 15);
	length = records_make(frame, in, how & 15);
	if (how >> 4 == 14)
		length = input_byte(in);
	if (how >> 4 == 13)
		frame[input_byte(in) % 30] = input_byte(in);
	return length;
}

static void frame_run(struct fib_session *session, struct input *in, uint64_t now_tsc)
{
	uint8_t data[FRAME_MAX] = {0}, *memory;
	unsigned length = frame_make(data, session, in), room = length < 60 ? 60 : length, answer;

	memory = malloc(room);
	must(memory != NULL, "memory");
	memcpy(memory, data, room);
	answer = fib_session_handle(session, memory, length, now_tsc);
	frames++;
	if (answer)
		answer_is_sound(memory, data, answer);
	else
		must(memcmp(memory, data, room) == 0, "what is no message is left alone");
	free(memory);
}

// Nothing else does anything before: no input need find that out.
static void hello_say(struct fib_session *session)
{
	uint8_t how = 7, data[FRAME_MAX] = {0};
	struct input in = {&how, 1};

	memset(data, 2, ETHER);
	data[12] = 0x88;
	data[13] = 0xb5;
	header_make(data, session, &in, 0);
	must(fib_session_handle(session, data, 60, 1) == 60 && session->number == 1, "a session begins");
}

static void time_passes(struct fib_session *session, struct input *in, uint64_t *now_tsc)
{
	uint8_t how = input_byte(in);

	*now_tsc += (uint64_t)(how & 0x3f) << (how & 0x40 ? 5 : 0);
	fib_session_tick(session, how & 0x80, *now_tsc);
	must(fib_trylock(session->fib), "the lock is free");
	fib_sweep(session->fib, how & 7);
	fib_unlock(session->fib);
}

static void finish(struct fib_session *session)
{
	struct fib_vnf_stats stats;

	must(fib_trylock(session->fib), "the lock is free");
	counts_add_up(session->fib);
	fib_flush(session->fib, VNF, FIB_FLUSH_ALL);
	for (unsigned i = 0; i < 100000 && fib_is_dirty(session->fib); i++)
		fib_sweep(session->fib, 16);
	must(!fib_is_dirty(session->fib), "all can be swept");
	must(fib_vnf_read(session->fib, VNF, &stats) && stats.routes4 + stats.routes6 + stats.hops == 0,
	     "nothing is left");
	other_untouched(session->fib);
	fib_unlock(session->fib);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	struct fib_session opened = session_open(), *session = &opened;
	uint64_t now_tsc = 1;

	hello_say(session);
	while (in.left) {
		if (input_byte(&in) % 8 == 0)
			time_passes(session, &in, &now_tsc);
		else
			frame_run(session, &in, now_tsc);
		counts_add_up(session->fib);
		other_untouched(session->fib);
	}
	finish(session);
	records += session->records;
	no_messages += session->malformed;
	return 0;
}

void fuzz_report(void)
{
	printf("%lu frames, %lu no messages, %lu records applied; answers by code:", frames, no_messages,
	       records);
	for (unsigned code = 0; code < FIB_CODES; code++)
		printf(" %lu", codes[code]);
	printf("\n");
}
