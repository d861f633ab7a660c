// SPDX-License-Identifier: BSD-3-Clause
// poll_bench: what one poll costs, of an honest port and of hostile ones. bench/fair_polls.py runs it under callgrind,
// which counts the instructions of poll_measured(): no clock, so it says the same on a busy machine.
//
//     poll_bench            one line "GROUP SHAPE" for each; the first of a group is the honest one
//     poll_bench GROUP SHAPE POLLS
//
// Prints one line at the end: polls, and the frames that these found.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "virtio/device_frames.h"
#include "tester/generator.h"
#include "tester/frame.h"
#include "test/nf_task.h"
#include "test/offload_sample.h"
#include "test/wire.h"

struct rig {
	unsigned (*poll)(struct rig *rig);
	struct wire *wire;
	struct task *task;
	struct guest from, to;
	struct trial_offered offered[TRIAL_STREAMS];
	struct frame_template template;
	uint8_t frame[WIRE_FRAME_MAX];
	unsigned length;
	uint32_t sequence;
	const struct guest_shape *guests; // both ends of a cross-connect
	struct fixture *fixture;          // of a network function
	const struct packet_shape *packets;
	void (*offer)(struct rig *rig); // before each poll; not measured
};

struct shape {
	const char *group, *name;
	void (*open)(struct rig *rig);
	void (*offer)(struct rig *rig);
};

enum { BURST = 32, NONCE = 0x5eed5eed };

// What callgrind counts.
static __attribute__((noinline)) unsigned poll_measured(struct rig *rig)
{
	return rig->poll(rig);
}

static unsigned poll_task(struct rig *rig)
{
	return rig->task->ops->poll(rig->task, 1);
}

// --- The monitor: frames that are ours, and that are not -------------------------------------------------

static void template_set(struct rig *rig, uint16_t frame_size, uint16_t epoch, uint64_t nonce)
{
	const struct frame_flow flow = {
	        .stream = 1, .epoch = epoch, .frame_size_bytes = frame_size, .nonce = nonce};

	frame_fill_payload(rig->frame, sizeof(rig->frame));
	frame_template_init(&rig->template, &flow);
	rig->length = frame_size - FRAME_FCS_BYTES;
}

static void monitor_open(struct rig *rig)
{
	struct config_task config = {.name = "mon", .kind = "monitor", .port_count = 1, .burst = BURST};
	const struct trial trial = {.epoch = 1, .nonce = NONCE, .offered = rig->offered};

	rig->poll = poll_task;
	rig->task = wire_task(rig->wire, &config);
	rig->offered[1].packets = UINT32_MAX;
	rig->task->ops->begin(rig->task, &trial);
	template_set(rig, FRAME_SIZE_MIN, 1, NONCE);
}

static void inject(struct rig *rig, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!wire_inject(rig->wire, rig->frame, rig->length, 0))
			abort();
}

static void offer_own(struct rig *rig)
{
	for (unsigned i = 0; i < BURST; i++) {
		frame_write(&rig->template, rig->frame, rig->sequence++);
		inject(rig, 1);
	}
}

static void offer_probes(struct rig *rig)
{
	for (unsigned i = 0; i < BURST; i++) {
		frame_write_probe(&rig->template, rig->frame, rig->sequence++, rte_rdtsc());
		inject(rig, 1);
	}
}

static void offer_stamped(struct rig *rig)
{
	for (unsigned i = 0; i < BURST; i++) {
		frame_write_timed(&rig->template, rig->frame, rig->sequence++, rte_rdtsc(),
		                  FRAME_FLAG_STAMPED);
		inject(rig, 1);
	}
}

// Backwards: each is one of ours, and none is the one that is expected.
static void offer_backwards(struct rig *rig)
{
	rig->sequence += BURST;
	for (unsigned i = 1; i <= BURST; i++) {
		frame_write(&rig->template, rig->frame, rig->sequence - i);
		inject(rig, 1);
	}
}

static void offer_same(struct rig *rig)
{
	inject(rig, BURST);
}

// Each far beyond the last.
static void offer_jumps(struct rig *rig)
{
	for (unsigned i = 0; i < BURST; i++) {
		frame_write(&rig->template, rig->frame, rig->sequence += 1u << 22);
		inject(rig, 1);
	}
}

static void monitor_zeros(struct rig *rig)
{
	monitor_open(rig);
	memset(rig->frame, 0, sizeof(rig->frame));
}

static void monitor_zeros_long(struct rig *rig)
{
	monitor_zeros(rig);
	rig->length = 1514;
}

static void monitor_forged(struct rig *rig)
{
	monitor_open(rig);
	template_set(rig, FRAME_SIZE_MIN, 1, 0);
	frame_write(&rig->template, rig->frame, 5);
}

static void monitor_forged_long(struct rig *rig)
{
	monitor_open(rig);
	template_set(rig, 1518, 1, 0);
	frame_write(&rig->template, rig->frame, 5);
}

static void monitor_beyond(struct rig *rig)
{
	monitor_open(rig);
	rig->offered[1].packets = 1000;
}

static void monitor_long(struct rig *rig)
{
	monitor_open(rig);
	template_set(rig, 1518, 1, NONCE);
}

static void monitor_replayed(struct rig *rig)
{
	monitor_open(rig);
	frame_write(&rig->template, rig->frame, 0);
}

static void monitor_stale(struct rig *rig)
{
	monitor_open(rig);
	template_set(rig, FRAME_SIZE_MIN, 0, NONCE);
	frame_write(&rig->template, rig->frame, 0);
}

static void monitor_truncated(struct rig *rig)
{
	monitor_replayed(rig);
	rig->length = 50;
}

static void monitor_corrupt(struct rig *rig)
{
	monitor_replayed(rig);
	rig->frame[FRAME_OFFSET_SEQUENCE] ^= 1;
}

static void monitor_corrupt_long(struct rig *rig)
{
	monitor_long(rig);
	frame_write(&rig->template, rig->frame, 0);
	rig->frame[FRAME_OFFSET_SEQUENCE] ^= 1;
}

// --- Network functions and the bridge: frames that make them learn, parse or remember --------------------------

// What changes from frame to frame, and how it is wrapped. Honest: a flow that is known, between stations that are.
static const struct packet_shape {
	const char *name;
	bool new_station, new_flow, new_target, any_station;
	unsigned tags;
	uint16_t fragment;   // flags and offset of IPv4
	unsigned options;    // bytes of IPv4
	unsigned extensions; // IPv6, with so many headers between it and UDP
	unsigned icmp_error; // bytes of an ICMP error about a packet that was received
	bool expired;        // its TTL
} packet_shapes[] = {
        {.name = "honest"},
        {.name = "new-stations", .new_station = true},
        {.name = "to-anybody", .any_station = true},
        {.name = "new-stations-to-anybody", .new_station = true, .any_station = true},
        {.name = "new-flows", .new_flow = true},
        {.name = "to-new-targets", .new_target = true},
        {.name = "tagged", .tags = 1},
        {.name = "tagged-twice", .tags = 2},
        {.name = "tagged-thrice", .tags = 3},
        {.name = "first-fragments", .fragment = 0x2000},
        {.name = "new-first-fragments", .fragment = 0x2000, .new_flow = true},
        {.name = "later-fragments", .fragment = 0x2001},
        {.name = "new-later-fragments", .fragment = 0x2001, .new_flow = true},
        {.name = "options", .options = 40},
        {.name = "options-new-flows", .options = 40, .new_flow = true},
        {.name = "ipv6-extensions", .extensions = 8},
        {.name = "expired", .expired = true},
        {.name = "icmp-errors", .icmp_error = 64},
        {.name = "icmp-errors-1518", .icmp_error = 1480},
        {.name = "icmp-errors-tagged", .icmp_error = 64, .tags = 2},
};

static const char *const task_groups[] = {"bridge", "nat44", "firewall", "load_balancer", "l3fwd"};

enum { TASK_MEMORY_MB = 256 };

static void station(uint8_t mac[6], uint32_t number)
{
	const uint32_t be = rte_cpu_to_be_32(number);

	mac[0] = 2;
	mac[1] = 0;
	memcpy(mac + 2, &be, sizeof(be));
}

// UDP in IPv6, behind xconnect-by-xconnect and destination options of 8 bytes (RFC 8200 s4.2: PadN). Returns its length.
static unsigned make_ipv6(uint8_t *at, unsigned extensions)
{
	static const uint8_t from[] = {0x20, 1, 0x0d, 0xb8, [15] = 1}, to[] = {0x20, 1, 0x0d, 0xb8, [15] = 2};
	unsigned length = sizeof(struct rte_ipv6_hdr), payload = extensions * 8 + 8;

	memset(at, 0, length);
	at[0] = 0x60;
	at[5] = (uint8_t)payload;
	at[6] = extensions ? IPPROTO_HOPOPTS : IPPROTO_UDP;
	at[7] = 64;
	memcpy(at + 8, from, sizeof(from));
	memcpy(at + 24, to, sizeof(to));
	for (unsigned i = 0; i < extensions; i++, length += 8) {
		memcpy(at + length, "\0\0\1\4\0\0\0", 8);
		at[length] = i + 1 < extensions ? IPPROTO_DSTOPTS : IPPROTO_UDP;
	}
	memcpy(at + length, "\xc0\0\xc0\1\0\x8\0", 8);
	return length + 8;
}

// An ICMP error of so many bytes, about a UDP datagram that its sender has received. Returns its length.
static unsigned make_icmp_error(uint8_t *at, const struct rte_ipv4_hdr *outer, unsigned bytes)
{
	struct rte_ipv4_hdr ip = *outer, inner = *outer;
	uint8_t *icmp = at + sizeof(ip);
	uint16_t sum;

	inner.src_addr = outer->dst_addr;
	inner.dst_addr = outer->src_addr;
	inner.hdr_checksum = 0;
	inner.hdr_checksum = rte_ipv4_cksum(&inner);
	ip.next_proto_id = IPPROTO_ICMP;
	ip.total_length = rte_cpu_to_be_16((uint16_t)(sizeof(ip) + bytes));
	ip.hdr_checksum = 0;
	ip.hdr_checksum = rte_ipv4_cksum(&ip);
	memcpy(at, &ip, sizeof(ip));
	memset(icmp, 0, bytes);
	memcpy(icmp, "\3\3", 2);
	memcpy(icmp + 8, &inner, sizeof(inner));
	memcpy(icmp + 8 + sizeof(inner), "\x70\x62\xc0\0", 4);
	sum = (uint16_t)~rte_raw_cksum(icmp, bytes);
	memcpy(icmp + 2, &sum, sizeof(sum));
	return (unsigned)sizeof(ip) + bytes;
}

// A UDP frame of the tester's first stream, as an odd one of 60 bytes; returns its length.
static unsigned make_packet(uint8_t *data, const struct packet_shape *shape, uint32_t number)
{
	uint32_t changed = number * 2654435761u; // spread, all different
	struct rte_ipv4_hdr ip = {.version_ihl = (uint8_t)(RTE_IPV4_VHL_DEF + shape->options / 4),
	                          .total_length = rte_cpu_to_be_16((uint16_t)(46 + shape->options)),
	                          .fragment_offset = rte_cpu_to_be_16(shape->fragment),
	                          .packet_id = rte_cpu_to_be_16((uint16_t)number),
	                          .time_to_live = shape->expired ? 1 : 64,
	                          .next_proto_id = IPPROTO_UDP,
	                          .src_addr = RTE_BE32(0xc6120001),
	                          .dst_addr = RTE_BE32(0xc6130001)};
	struct rte_udp_hdr udp = {RTE_BE16(49152), RTE_BE16(FRAME_UDP_PORT), RTE_BE16(26), RTE_BE16(0x1234)};
	unsigned at = 12;

	memset(data, 0, WIRE_FRAME_MAX);
	station(data, shape->any_station ? changed : 2);
	station(data + 6, shape->new_station ? changed | 1 : 1);
	for (unsigned i = 0; i < shape->tags; i++, at += 4)
		memcpy(data + at, "\x81\x00\x00\x05", 4);
	memcpy(data + at, "\x08\x00", 2);
	if (shape->new_flow) {
		ip.src_addr = rte_cpu_to_be_32(0xc6120000 | (changed & 0xffff));
		udp.src_port = rte_cpu_to_be_16((uint16_t)(1024 + (changed >> 16) % 60000));
	}
	if (shape->new_target)
		ip.dst_addr = rte_cpu_to_be_32(changed);
	at += 2;
	if (shape->extensions) {
		memcpy(data + at - 2, "\x86\xdd", 2);
		return at + make_ipv6(data + at, shape->extensions);
	}
	if (shape->icmp_error)
		return at + make_icmp_error(data + at, &ip, shape->icmp_error);
	memcpy(data + at, &ip, sizeof(ip));
	memset(data + at + sizeof(ip), 1, shape->options); // no operation
	((struct rte_ipv4_hdr *)(data + at))->hdr_checksum =
	        (uint16_t)~rte_raw_cksum(data + at, sizeof(ip) + shape->options);
	memcpy(data + at + sizeof(ip) + shape->options, &udp, sizeof(udp));
	return at + 46 + shape->options;
}

// As far as there is room.
static void inject_packet(struct rig *rig, unsigned port, const uint8_t *data, unsigned length)
{
	struct rte_mbuf *m = fixture_packet(rig->fixture, data, (uint16_t)length);

	if (m && ring_port_inject(&rig->fixture->ports[port], &m, 1) != 1)
		rte_pktmbuf_free(m);
}

static void collect_packets(struct rig *rig)
{
	for (unsigned i = 0; i < FIXTURE_PORTS; i++)
		for (struct rte_mbuf *m; ring_port_collect(&rig->fixture->ports[i], &m, 1) == 1;)
			rte_pktmbuf_free(m);
}

static void offer_packets(struct rig *rig)
{
	collect_packets(rig);
	for (unsigned i = 0; i < BURST; i++) {
		unsigned length = make_packet(rig->frame, rig->packets, rig->sequence++);

		inject_packet(rig, 0, rig->frame, length);
	}
}

static unsigned poll_now(struct rig *rig)
{
	return rig->task->ops->poll(rig->task, rte_rdtsc());
}

// The other station has been heard, as has the honest one.
static void introduce(struct rig *rig)
{
	uint8_t other[6];
	unsigned length = make_packet(rig->frame, &packet_shapes[0], 0);

	inject_packet(rig, 0, rig->frame, length);
	memcpy(other, rig->frame, sizeof(other));
	memcpy(rig->frame, rig->frame + 6, sizeof(other));
	memcpy(rig->frame + 6, other, sizeof(other));
	inject_packet(rig, 1, rig->frame, length);
	for (unsigned i = 0; i < FIXTURE_PORTS; i++)
		poll_now(rig);
}

static bool open_packets(struct rig *rig, const char *group, const char *name)
{
	unsigned ports = strcmp(group, "bridge") == 0 ? FIXTURE_PORTS : 2;
	char error[CONFIG_ERROR_MAX] = "";
	json_t *object;

	for (unsigned g = 0; g < RTE_DIM(task_groups); g++)
		for (unsigned i = 0; i < RTE_DIM(packet_shapes); i++) {
			if (strcmp(task_groups[g], group) != 0 || strcmp(packet_shapes[i].name, name) != 0)
				continue;
			rig->fixture = nf_fixture("poll_bench", TASK_MEMORY_MB);
			object = json_pack("{s:s, s:i, s:i}", "kind", group, "ports", ports, "burst", BURST);
			rig->task = rig->fixture ? (struct task *)nf_task(rig->fixture, object, error) : NULL;
			json_decref(object);
			if (rig->task == NULL) {
				fprintf(stderr, "%s: %s\n", group, error);
				return false;
			}
			rig->packets = &packet_shapes[i];
			rig->poll = poll_now;
			rig->offer = offer_packets;
			introduce(rig);
			return true;
		}
	return false;
}

// --- Two guests: what one sends is copied into the buffers of the other ------------------------------------

enum { RING = 256, FRAME_BYTES = 60, LONG_BYTES = 1514, TABLE = GUEST_TABLE_ENTRIES };

// As a patch does it, and as tasks that look at frames.
static unsigned poll_hop(struct rig *rig)
{
	return xconnect(&rig->from.transmit.ring, &rig->to.receive.ring, BURST).received;
}

static unsigned poll_view(struct rig *rig)
{
	struct device_ring *from = &rig->from.transmit.ring;
	struct frames_lost lost = {0};
	uint64_t too_long = 0;
	struct view view;

	if (view_peek(from, &view, BURST, &lost) == 0)
		return 0;
	deliver(&rig->to.receive.ring, view.frames, view.count, &too_long);
	view_commit(from, &view);
	return view.count;
}

static void guests_open(struct rig *rig, bool packed)
{
	const uint64_t features = UINT64_C(1) << VIRTIO_F_VERSION_1 | UINT64_C(1) << VIRTIO_NET_F_MRG_RXBUF |
	                          (packed ? UINT64_C(1) << VIRTIO_F_RING_PACKED : 0);

	guest_open(&rig->from, features, RING, false);
	guest_open(&rig->to, features, RING, false);
}

static void collect(struct driver *driver)
{
	uint32_t written;

	while (driver_collect(driver, &written) >= 0)
		;
}

// Keep a ring full of buffers of count ranges.
static void offer_ranges(struct driver *driver, unsigned count, uint32_t each, uint32_t length)
{
	struct guest_range ranges[TABLE];

	collect(driver);
	do {
		uint64_t at = driver_buffer(driver, driver_next_id(driver));

		for (unsigned i = 0; i < count; i++)
			ranges[i] = (struct guest_range){at, i + 1 < count ? each : length};
	} while (driver_offer(driver, ranges, count, count > 2) >= 0);
}

// Buffers of count ranges: of each bytes, but for the last.
struct buffers {
	unsigned count;
	uint32_t each, last;
};

#define FRAME(bytes) (RING_HEADER + (bytes))
#define PLAIN_RECEIVE                                                                                        \
	{                                                                                                    \
		1, 0, 2048                                                                                   \
	}
#define PLAIN_SEND                                                                                           \
	{                                                                                                    \
		1, 0, FRAME(FRAME_BYTES)                                                                     \
	}

// What the two guests offer. count 0: nothing.
static const struct guest_shape {
	const char *name;
	struct buffers receive, send;
} guest_shapes[] = {
        {"honest", PLAIN_RECEIVE, PLAIN_SEND},
        {"honest-1518", PLAIN_RECEIVE, {1, 0, FRAME(LONG_BYTES)}},
        {"honest-header-apart", PLAIN_RECEIVE, {2, RING_HEADER, FRAME_BYTES}},
        {"honest-9018", PLAIN_RECEIVE, {5, 1802, 1802}},
        {"send-3-descriptors", PLAIN_RECEIVE, {3, RING_HEADER, FRAME_BYTES - RING_HEADER}},
        {"send-4-descriptors", PLAIN_RECEIVE, {4, RING_HEADER, FRAME_BYTES - 2 * RING_HEADER}},
        {"send-8-descriptors", PLAIN_RECEIVE, {8, 8, FRAME(FRAME_BYTES) - 7 * 8}},
        {"send-empty-descriptors", PLAIN_RECEIVE, {TABLE, 0, FRAME(FRAME_BYTES)}},
        {"send-1-byte-descriptors", PLAIN_RECEIVE, {TABLE, 1, FRAME(FRAME_BYTES)}},
        {"send-no-frames", PLAIN_RECEIVE, {1, 0, RING_HEADER}},
        {"send-empty-tables", PLAIN_RECEIVE, {TABLE, 0, RING_HEADER}}, // no frame in them, either
        {"send-64KB", PLAIN_RECEIVE, {16, 4096, 4096 - RING_HEADER}},
        {"send-too-long", {1, 0, 200}, {16, 4096, 4096 - RING_HEADER}}, // for all that the receiver has
        {"receive-nothing", {0, 0, 0}, PLAIN_SEND},
        {"receive-2-descriptors", {2, RING_HEADER, 2048}, PLAIN_SEND},
        {"receive-empty-descriptors", {TABLE, 0, 2048}, PLAIN_SEND},
        {"receive-1-byte-descriptors", {TABLE, 1, 2048}, PLAIN_SEND},
        {"receive-1-byte-buffers", {1, 0, 1}, PLAIN_SEND}, // a frame takes more than are read ahead
        {"receive-2-byte-buffers", {1, 0, 2}, PLAIN_SEND},
        {"receive-8-byte-buffers", {1, 0, 8}, PLAIN_SEND},
        {"receive-24-byte-buffers", {1, 0, 24}, PLAIN_SEND},
        {"receive-36-byte-buffers", {1, 0, 36}, PLAIN_SEND},
        {"both-1-byte-descriptors", {TABLE, 1, 2048}, {TABLE, 1, FRAME(FRAME_BYTES)}},
};

static void offer_buffers(struct driver *driver, const struct buffers *buffers)
{
	if (buffers->count)
		offer_ranges(driver, buffers->count, buffers->each, buffers->last);
}

static void offer_both(struct rig *rig)
{
	offer_buffers(&rig->to.receive, &rig->guests->receive);
	offer_buffers(&rig->from.transmit, &rig->guests->send);
}

// Each with all shapes of guests.
static const struct guest_group {
	const char *name;
	bool packed;
	unsigned (*poll)(struct rig *rig);
} guest_groups[] = {
        {"xconnect", false, poll_hop},
        {"xconnect-packed", true, poll_hop},
        {"view", false, poll_view},
};

// --- Two guests with offloads: what the receiver does not accept is done for it ---------------------------

static const struct offload_shape {
	const char *name;
	unsigned kind;
	uint32_t payload;
	uint16_t gso_size;
	bool asks, accepts; // of the sender, and of the receiver
} offload_shapes[] = {
        {"plain", SAMPLE_UDP | SAMPLE_CSUM, 18, 0, false, false},
        {"plain-1518", SAMPLE_CSUM, 1460, 0, false, false},
        {"checksum", SAMPLE_UDP | SAMPLE_CSUM, 18, 0, true, false},
        {"checksum-1518", SAMPLE_CSUM, 1460, 0, true, false},
        {"checksum-1518-passed", SAMPLE_CSUM, 1460, 0, true, true},
        {"tcp-64KB", 0, 65160, 1448, true, false},
        {"tcp-64KB-passed", 0, 65160, 1448, true, true},
        {"tcp-9000", 0, 8948, 8948, true, false},
        {"segments-of-1-byte", 0, 255, 1, true, false},
        {"segments-of-16-bytes", SAMPLE_V6, 4096, 16, true, false},
        {"segments-of-100-bytes", 0, 25600, 100, true, false},
        {"segments-of-256-bytes", 0, 65280, 256, true, false},
        {"lies", SAMPLE_UDP, 18, 0, true, false}, // gso_size 0
};

static const struct offload_shape *offload_shape;
static struct sample offload_sample;
static struct offload_room offload_room;

static unsigned into_guest(void *to, const struct frame *frames, const struct virtio_net_hdr *headers,
                           unsigned n)
{
	struct rig *rig = to;
	uint64_t too_long = 0;

	return headers ? deliver_offloads(&rig->to.receive.ring, frames, headers, n, &too_long)
	               : deliver(&rig->to.receive.ring, frames, n, &too_long);
}

static unsigned poll_offload(struct rig *rig)
{
	struct device_ring *from = &rig->from.transmit.ring;
	struct frames_lost lost = {0};
	struct view view;

	if (offload_peek(from, &view, BURST, &lost, &offload_room) == 0)
		return 0;
	if (offload_room.used)
		offload_send(&offload_room, view.frames, view.count, rig->to.receive.ring.offloads,
		             into_guest, rig);
	else
		into_guest(rig, view.frames, NULL, view.count);
	view_commit(from, &view);
	return view.count;
}

// All buffers are the same memory: a header and the sample.
static void offer_samples(struct rig *rig)
{
	struct driver *driver = &rig->from.transmit;
	const struct guest_range range = {driver_buffer(driver, 0), FRAME(offload_sample.length)};

	offer_ranges(&rig->to.receive, 1, 0, 2048);
	collect(driver);
	while (driver_offer(driver, &range, 1, false) >= 0)
		;
}

static bool open_offloads(struct rig *rig, const char *group, const char *name)
{
	const uint64_t features = UINT64_C(1) << VIRTIO_F_VERSION_1 | UINT64_C(1) << VIRTIO_NET_F_MRG_RXBUF;
	uint8_t *data;

	for (unsigned i = 0; i < RTE_DIM(offload_shapes); i++)
		if (strcmp(group, "offload") == 0 && strcmp(name, offload_shapes[i].name) == 0)
			offload_shape = &offload_shapes[i];
	if (offload_shape == NULL)
		return false;
	guest_open(&rig->from, features | OFFLOAD_FEATURES, RING, false);
	guest_open(&rig->to, features | (offload_shape->accepts ? OFFLOAD_FEATURES : 0), RING, false);
	sample_make(&offload_sample, offload_shape->kind, offload_shape->payload, offload_shape->gso_size);
	data = guest_at(&rig->from, driver_buffer(&rig->from.transmit, 0));
	memset(data, 0, RING_HEADER);
	if (offload_shape->asks)
		memcpy(data, &offload_sample.asked, sizeof(offload_sample.asked));
	memcpy(data + RING_HEADER, offload_sample.bytes, offload_sample.length);
	rig->poll = poll_offload;
	rig->offer = offer_samples;
	return true;
}

// --- The generator: frames as they are, and with a time stamp in each -----------------------------------

static void generator_open(struct rig *rig, const char *profile, bool stamp_all)
{
	struct config_task config = {.name = "gen", .kind = "generator", .port_count = 1, .burst = BURST};
	struct generator_load load = {.duration_ns = 1000000000,
	                              .frame_size_bytes = FRAME_SIZE_MIN,
	                              .flat_out = true,
	                              .nonce = NONCE,
	                              .stamp_all = stamp_all};
	json_t *object = profile ? json_loads(profile, 0, NULL) : NULL;
	char error[CONFIG_ERROR_MAX] = "";

	rig->poll = poll_task;
	rig->task = wire_task(rig->wire, &config);
	if (generator_prepare(rig->task, object, &load, "load", error) != 0 ||
	    generator_start(rig->task, &load) != 0)
		abort();
	json_decref(object);
}

static void generator_plain(struct rig *rig)
{
	generator_open(rig, NULL, false);
}

static void generator_stamped(struct rig *rig)
{
	generator_open(rig, NULL, true);
}

static void generator_flows(struct rig *rig)
{
	generator_open(rig, "{\"flows\": {\"count\": 64}}", false);
}

static void generator_flows_stamped(struct rig *rig)
{
	generator_open(rig, "{\"flows\": {\"count\": 64}}", true);
}

static void take_all(struct rig *rig)
{
	while (wire_collect(rig->wire, rig->frame))
		;
}

static const struct shape shapes[] = {
        {"monitor", "own", monitor_open, offer_own},
        {"monitor", "own-probes", monitor_open, offer_probes},
        {"monitor", "own-stamped", monitor_open, offer_stamped},
        {"monitor", "own-backwards", monitor_open, offer_backwards},
        {"monitor", "own-1518", monitor_long, offer_own},
        {"monitor", "own-stamped-1518", monitor_long, offer_stamped},
        {"monitor", "zeros", monitor_zeros, offer_same},
        {"monitor", "zeros-1518", monitor_zeros_long, offer_same},
        {"monitor", "no-nonce", monitor_forged, offer_same},
        {"monitor", "no-nonce-1518", monitor_forged_long, offer_same},
        {"monitor", "not-offered", monitor_beyond, offer_jumps},
        {"monitor", "replayed", monitor_replayed, offer_same},
        {"monitor", "stale", monitor_stale, offer_same},
        {"monitor", "truncated", monitor_truncated, offer_same},
        {"monitor", "corrupt", monitor_corrupt, offer_same},
        {"monitor", "corrupt-1518", monitor_corrupt_long, offer_same},
        {"generator", "plain", generator_plain, take_all},
        {"generator", "stamped", generator_stamped, take_all},
        {"generator", "flows", generator_flows, take_all},
        {"generator", "flows-stamped", generator_flows_stamped, take_all},
};

// --- Runs ------------------------------------------------------------------------------------------------

static bool open_guests(struct rig *rig, const char *group, const char *name)
{
	for (unsigned g = 0; g < RTE_DIM(guest_groups); g++)
		for (unsigned i = 0; i < RTE_DIM(guest_shapes); i++)
			if (strcmp(guest_groups[g].name, group) == 0 &&
			    strcmp(guest_shapes[i].name, name) == 0) {
				guests_open(rig, guest_groups[g].packed);
				rig->poll = guest_groups[g].poll;
				rig->guests = &guest_shapes[i];
				rig->offer = offer_both;
				return true;
			}
	return false;
}

static bool open_task(struct rig *rig, const char *group, const char *name)
{
	void *wire = NULL;

	for (unsigned i = 0; i < RTE_DIM(shapes); i++)
		if (strcmp(shapes[i].group, group) == 0 && strcmp(shapes[i].name, name) == 0) {
			if (fixture_eal_init("poll_bench") != 0 || wire_setup_in_place(&wire) != 0)
				return false;
			rig->wire = wire;
			rig->offer = shapes[i].offer;
			shapes[i].open(rig);
			return true;
		}
	return false;
}

static int list(void)
{
	for (unsigned g = 0; g < RTE_DIM(guest_groups); g++)
		for (unsigned i = 0; i < RTE_DIM(guest_shapes); i++)
			printf("%s %s\n", guest_groups[g].name, guest_shapes[i].name);
	for (unsigned i = 0; i < RTE_DIM(offload_shapes); i++)
		printf("offload %s\n", offload_shapes[i].name);
	for (unsigned i = 0; i < RTE_DIM(shapes); i++)
		printf("%s %s\n", shapes[i].group, shapes[i].name);
	for (unsigned g = 0; g < RTE_DIM(task_groups); g++)
		for (unsigned i = 0; i < RTE_DIM(packet_shapes); i++)
			printf("%s %s\n", task_groups[g], packet_shapes[i].name);
	return 0;
}

int main(int argc, char **argv)
{
	struct rig *rig = aligned_alloc(64, RTE_ALIGN_CEIL(sizeof(*rig), 64));
	unsigned polls, frames = 0;

	if (argc == 1)
		return list();
	if (rig == NULL)
		return 1;
	memset(rig, 0, sizeof(*rig));
	if (argc != 4 || !(open_guests(rig, argv[1], argv[2]) || open_offloads(rig, argv[1], argv[2]) ||
	                   open_task(rig, argv[1], argv[2]) || open_packets(rig, argv[1], argv[2]))) {
		fprintf(stderr, "usage: %s [GROUP SHAPE POLLS]\n", argv[0]);
		return 2;
	}
	polls = (unsigned)strtoul(argv[3], NULL, 10);
	for (unsigned i = 0; i < polls; i++) {
		rig->offer(rig);
		frames += poll_measured(rig);
	}
	printf("%u polls, %u frames\n", polls, frames);
	return 0;
}
