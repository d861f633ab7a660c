// SPDX-License-Identifier: BSD-3-Clause
// Offloads of a guest: what is passed on, segmented and completed, byte by byte (the model: test/offload_sample.h, and
// DPDK's checksums as a second one); what is refused, and by what name.
#include <rte_ip.h>

#include "virtio/device_frames.h"
#include "virtio/offload.h"
#include "test/offload_sample.h"
#include "test/pair.h"

enum {
	ALL = OFFLOAD_CSUM | OFFLOAD_TSO4 | OFFLOAD_TSO6 | OFFLOAD_ECN | OFFLOAD_USO4 | OFFLOAD_USO6,
	PLACE_BYTES = 72 << 10, // of each frame in the guest's memory
	PLACES = 14,
	HEADER = RING_HEADER,
};

static const uint64_t modern = BIT(VERSION_1) | BIT(MERGE) | OFFLOAD_FEATURES;

// A guest that sends, a receiver that catches, or another guest.
struct rig {
	struct pair guests;
	struct offload_room room;
	struct caught caught;
	struct frames_lost lost;
	unsigned placed;
	uint32_t random;
};

static struct rig rig;
static struct sample sample;

static void rig_open(uint64_t a, uint64_t b)
{
	memset(&rig, 0, sizeof(rig));
	rig.caught.room = UINT32_MAX;
	rig.random = 1;
	pair_open(&rig.guests, a, b, 256);
}

static void rig_close(void)
{
	pair_close(&rig.guests);
}

static uint32_t chance(uint32_t below)
{
	rig.random = rig.random * 1664525 + 1013904223;
	return (rig.random >> 8) % below;
}

// How a frame lies in its buffers.
enum shape { WHOLE, HEADER_APART, PAGES, CRUMBS, SHAPES };

static uint32_t run_of(enum shape shape, uint32_t done, uint32_t left)
{
	switch (shape) {
	case WHOLE:
		return left;
	case HEADER_APART:
		return done == 0 ? HEADER : left;
	case PAGES:
		return done == 0 ? HEADER + 66 : 4096;
	default: // odd ones, within the headers and behind them; then all that is left
		return done < 400 ? 1 + chance(9) * 2 : 1 + left / 3;
	}
}

// Make a frame available in A's transmit ring.
static void offer(const struct virtio_net_hdr *asked, const uint8_t *bytes, uint32_t length, enum shape shape)
{
	struct driver *d = &rig.guests.a.transmit;
	uint64_t at = driver_buffer(d, 0) + (uint64_t)(rig.placed++ % PLACES) * PLACE_BYTES;
	struct guest_range ranges[128];
	unsigned count = 0;
	uint8_t *data = guest_at(&rig.guests.a, at);

	memset(data, 0xee, HEADER);
	memcpy(data, asked, sizeof(*asked));
	memcpy(data + HEADER, bytes, length);
	for (uint32_t done = 0; done < HEADER + length;) {
		uint32_t left = HEADER + length - done, run = RTE_MIN(run_of(shape, done, left), left);

		ranges[count++] = (struct guest_range){at + done, run};
		done += run;
	}
	assert_true(driver_offer(d, ranges, count, false) >= 0);
}

static void offer_sample(const struct sample *s, enum shape shape)
{
	offer(&s->asked, s->bytes, s->length, shape);
}

// One poll: from A's ring to who catches. Returns what became of its frames.
static struct offload_sent poll_caught(struct view *view, uint8_t accepts)
{
	struct device_ring *from = &rig.guests.a.transmit.ring;
	struct offload_sent sent = {0};

	rig.caught.count = rig.caught.used = 0;
	from->debt = 0;
	if (offload_peek(from, view, BURST_FRAMES_MAX, &rig.lost, &rig.room)) {
		sent = offload_send(&rig.room, view->frames, view->count, accepts, catch_frames, &rig.caught);
		view_commit(from, view);
	}
	collect_sent(&rig.guests);
	return sent;
}

static const uint8_t *caught_bytes(unsigned i)
{
	return rig.caught.bytes + rig.caught.at[i];
}

// DPDK's opinion of a checksum, where it has one: not of IPv6 with extension headers. Over one that is right it makes 0,
// which UDP calls 0xffff.
static void check_by_dpdk(const struct sample *s, const uint8_t *bytes)
{
	const void *ip = bytes + s->l3, *l4 = bytes + s->l4;
	uint16_t right = s->kind & SAMPLE_UDP ? 0xffff : 0;

	if (!(s->kind & SAMPLE_V6)) {
		assert_int_equal(rte_ipv4_udptcp_cksum(ip, l4), right);
		assert_int_equal(rte_raw_cksum(ip, s->l4 - s->l3), 0xffff);
	} else if (!(s->kind & SAMPLE_OPTIONS)) {
		assert_int_equal(rte_ipv6_udptcp_cksum(ip, l4), right);
	}
}

static void check_segments(const struct sample *s, unsigned first)
{
	static uint8_t wanted[OFFLOAD_LENGTH_MAX];

	for (unsigned k = 0; k < sample_segments(s); k++) {
		uint32_t length = sample_segment(s, k, wanted);

		assert_int_equal(rig.caught.length[first + k], length);
		assert_memory_equal(caught_bytes(first + k), wanted, length);
		check_by_dpdk(s, caught_bytes(first + k));
	}
}

static void who_accepts_what(void **state)
{
	assert_int_equal(offload_negotiated(OFFLOAD_FEATURES, false), ALL);
	assert_int_equal(offload_negotiated(OFFLOAD_FEATURES, true), ALL);
	assert_int_equal(offload_negotiated(OFFLOAD_FEATURES & ~BIT(VIRTIO_NET_F_CSUM), false), 0);
	assert_int_equal(offload_negotiated(OFFLOAD_FEATURES & ~BIT(VIRTIO_NET_F_GUEST_CSUM), true), 0);
	assert_int_equal(offload_negotiated(BIT(VIRTIO_NET_F_CSUM) | BIT(VIRTIO_NET_F_HOST_TSO6), false),
	                 OFFLOAD_CSUM | OFFLOAD_TSO6);
	assert_int_equal(
	        offload_negotiated(BIT(VIRTIO_NET_F_GUEST_CSUM) | BIT(VIRTIO_NET_F_GUEST_TSO4), true),
	        OFFLOAD_CSUM | OFFLOAD_TSO4);
}

// Every kind of frame, in every shape, to a receiver that accepts nothing: all sizes at which something changes.
static void segments_are_those_of_the_model(void **state)
{
	static const struct {
		uint32_t payload;
		uint16_t gso_size;
	} sizes[] = {{1, 1460},    {1459, 1460}, {1460, 1460}, {1461, 1460},      {4380, 1460},
	             {8948, 1448}, {8949, 1447}, {255, 1},     {64000, 1448},     {65000, 8948},
	             {65400, 536}, {300, 299},   {65007, 255}, {3000, UINT16_MAX}};
	static struct view view;

	rig_open(modern, modern);
	for (unsigned kind = 0; kind < SAMPLE_CSUM; kind++)
		for (unsigned i = 0; i < COUNT(sizes); i++)
			for (enum shape shape = 0; shape < SHAPES; shape++) {
				struct offload_sent sent;

				sample_make(&sample, kind, sizes[i].payload, sizes[i].gso_size);
				offer_sample(&sample, shape);
				sent = poll_caught(&view, 0);
				assert_int_equal(view.count, 1);
				assert_int_equal(sent.offered, sample_segments(&sample));
				assert_int_equal(sent.taken, sent.offered);
				assert_false(rig.caught.headers[0]);
				check_segments(&sample, 0);
			}
	rig_close();
}

static void a_checksum_is_completed(void **state)
{
	static struct view view;

	rig_open(modern, modern);
	for (unsigned kind = SAMPLE_CSUM; kind < SAMPLE_KINDS; kind++)
		for (uint32_t payload = 0; payload < 3000; payload += payload < 300 ? 1 : 97) {
			sample_make(&sample, kind, payload, 0);
			offer_sample(&sample, payload % SHAPES);
			assert_int_equal(poll_caught(&view, 0).taken, 1);
			check_segments(&sample, 0);
		}
	rig_close();
}

// As in a tunnel: VXLAN in UDP, whose checksum is there; the inner one is not.
static void an_inner_checksum_is_completed(void **state)
{
	static struct sample outer, inner;
	static struct view view;
	uint8_t wanted[2000];

	rig_open(modern, modern);
	sample_make(&inner, SAMPLE_CSUM, 333, 0);
	sample_make(&outer, SAMPLE_CSUM | SAMPLE_UDP, 8 + inner.length, 0);
	memcpy(outer.bytes + outer.header + 8, inner.bytes, inner.length);
	outer.asked.csum_start = (uint16_t)(outer.header + 8 + inner.l4);
	outer.asked.csum_offset = inner.asked.csum_offset;
	offer_sample(&outer, CRUMBS);
	assert_int_equal(poll_caught(&view, 0).taken, 1);
	sample_segment(&inner, 0, wanted);
	assert_memory_equal(caught_bytes(0), outer.bytes, outer.header + 8);
	assert_memory_equal(caught_bytes(0) + outer.header + 8, wanted, inner.length);
	rig_close();
}

// To a receiver that accepts it: the frame as it is, behind a header that was checked: hdr_len is what it should be.
static void what_is_accepted_is_passed_on(void **state)
{
	static struct view view;

	rig_open(modern, modern);
	for (unsigned kind = 0; kind < SAMPLE_KINDS; kind++)
		for (enum shape shape = 0; shape < SHAPES; shape++) {
			struct virtio_net_hdr wanted;

			sample_make(&sample, kind, 40000, 1448);
			wanted = sample.asked;
			wanted.hdr_len = kind & SAMPLE_CSUM ? 0 : (uint16_t)sample.header;
			sample.asked.flags |= 0xfe; // which nobody knows, or only receivers
			offer_sample(&sample, shape);
			assert_int_equal(poll_caught(&view, ALL).taken, 1);
			assert_true(rig.caught.headers[0]);
			assert_memory_equal(&rig.caught.header[0], &wanted, sizeof(wanted));
			assert_int_equal(rig.caught.length[0], sample.length);
			assert_memory_equal(caught_bytes(0), sample.bytes, sample.length);
		}
	rig_close();
}

// As DPDK's drivers send it: the header of each segment gets its checksum, and so does that of the whole frame.
static void an_ipv4_checksum_of_0_is_completed(void **state)
{
	static struct sample zero;
	static struct view view;

	rig_open(modern, modern);
	for (unsigned kind = 0; kind < SAMPLE_CSUM; kind++) {
		if (kind & SAMPLE_V6)
			continue;
		sample_make(&sample, kind, 4000, 1000);
		zero = sample;
		put_be16(zero.bytes + zero.l3 + 10, 0);
		offer_sample(&zero, kind % SHAPES);
		assert_int_equal(poll_caught(&view, 0).taken, 4);
		check_segments(&sample, 0);
		offer_sample(&zero, kind % SHAPES);
		assert_int_equal(poll_caught(&view, ALL).taken, 1);
		assert_memory_equal(caught_bytes(0), sample.bytes, sample.length);
	}
	rig_close();
}

// One bit less than it needs, and it is segmented; bits that it does not need change nothing.
static void a_receiver_gets_what_it_accepts(void **state)
{
	static struct view view;

	rig_open(modern, modern);
	for (unsigned kind = 0; kind < SAMPLE_TAG; kind++)
		for (unsigned ecn = 0; ecn < (kind & SAMPLE_UDP ? 1 : 2); ecn++) {
			unsigned v6 = kind & SAMPLE_V6;
			uint8_t needs = OFFLOAD_CSUM | (ecn ? OFFLOAD_ECN : 0);

			if (kind & SAMPLE_UDP)
				needs |= v6 ? OFFLOAD_USO6 : OFFLOAD_USO4;
			else
				needs |= v6 ? OFFLOAD_TSO6 : OFFLOAD_TSO4;
			for (unsigned bit = 1; bit <= OFFLOAD_USO6; bit *= 2) {
				sample_make(&sample, kind, 4000, 1000);
				sample.asked.gso_type |= ecn ? VIRTIO_NET_HDR_GSO_ECN : 0;
				offer_sample(&sample, WHOLE);
				assert_int_equal(poll_caught(&view, ALL & ~bit).taken, needs & bit ? 4 : 1);
				if (needs & bit)
					check_segments(&sample, 0);
			}
		}
	rig_close();
}

// A bridge puts a tag before the headers, or takes one away: what points behind it moves.
static void a_tag_moves_what_the_header_points_to(void **state)
{
	static struct sample tagged;
	static struct view view;

	rig_open(modern, modern);
	for (unsigned how = 0; how < 4; how++) {
		unsigned adds = how & 1, udp = how & 2 ? SAMPLE_UDP : 0;
		struct piece pieces[8];
		struct scatter at;
		struct frame frame;
		uint8_t head[16];

		sample_make(&sample, udp | (adds ? 0 : SAMPLE_TAG), 5000, 1400);
		sample_make(&tagged, udp | (adds ? SAMPLE_TAG : 0), 5000, 1400);
		memcpy(head, tagged.bytes, sizeof(head));
		for (uint8_t accepts = 0;; accepts = ALL) {
			offer_sample(&sample, WHOLE);
			rig.caught.count = rig.caught.used = 0;
			assert_int_equal(
			        offload_peek(&rig.guests.a.transmit.ring, &view, 1, &rig.lost, &rig.room), 1);
			at = scatter_skip(view.frames[0].at.piece, adds ? 12 : 16);
			pieces[0] = (struct piece){head, adds ? 16 : 12};
			pieces[1] = (struct piece){at.piece->data + at.offset, at.piece->length - at.offset};
			pieces[2] = at.piece[1];
			frame = (struct frame){{pieces, 0}, tagged.length, view.frames[0].offload};
			offload_send(&rig.room, &frame, 1, accepts, catch_frames, &rig.caught);
			view_commit(&rig.guests.a.transmit.ring, &view);
			collect_sent(&rig.guests);
			if (accepts)
				break;
			assert_int_equal(rig.caught.count, 4);
			check_segments(&tagged, 0);
		}
		assert_int_equal(rig.caught.count, 1);
		assert_int_equal(rig.caught.header[0].csum_start, tagged.l4);
		assert_int_equal(rig.caught.header[0].hdr_len, tagged.header);
		assert_memory_equal(caught_bytes(0), tagged.bytes, tagged.length);
	}
	rig_close();
}

// --- What is refused -------------------------------------------------------------------------------------

#define LIE(name, reason_, kind_, ...)                                                                       \
	static void name(struct sample *s)                                                                   \
	{                                                                                                    \
		__VA_ARGS__;                                                                                 \
	}

// X(name, reason, kind of the sample, what is changed in it)
#define FOR_EACH_LIE(X)                                                                                      \
	X(no_such_type, TYPE, 0, s->asked.gso_type = 2)                                                      \
	X(type_beyond, TYPE, 0, s->asked.gso_type = 0x7f)                                                    \
	X(fragmented_udp, TYPE, SAMPLE_UDP, s->asked.gso_type = VIRTIO_NET_HDR_GSO_UDP)                      \
	X(ecn_alone, TYPE, SAMPLE_CSUM, s->asked.gso_type = VIRTIO_NET_HDR_GSO_ECN)                          \
	X(ecn_of_udp, TYPE, SAMPLE_UDP, s->asked.gso_type |= VIRTIO_NET_HDR_GSO_ECN)                         \
	X(segments_without_checksum, TYPE, 0, s->asked.flags = 0)                                            \
	X(segments_with_other_flags, TYPE, 0, s->asked.flags = 0xfe)                                         \
	X(start_in_ethernet, CHECKSUM, SAMPLE_CSUM, s->asked.csum_start = 13)                                \
	X(start_in_ip, CHECKSUM, SAMPLE_CSUM, s->asked.csum_start = (uint16_t)(s->l4 - 2))                   \
	X(start_in_a_tag, CHECKSUM, SAMPLE_CSUM | SAMPLE_TAG2, put_be16(s->bytes + s->l3 - 2, 0x0806),       \
	  s->asked.csum_start = 14, s->asked.csum_offset = 0)                                                \
	X(start_in_the_type, CHECKSUM, SAMPLE_CSUM | SAMPLE_TAG2, put_be16(s->bytes + s->l3 - 2, 0x0806),    \
	  s->asked.csum_start = (uint16_t)(s->l3 - 2), s->asked.csum_offset = 0)                             \
	X(start_at_end, CHECKSUM, SAMPLE_CSUM, s->asked.csum_start = (uint16_t)s->length)                    \
	X(start_far, CHECKSUM, SAMPLE_CSUM, s->asked.csum_start = UINT16_MAX)                                \
	X(field_half_outside, CHECKSUM, SAMPLE_CSUM | SAMPLE_UDP, s->length = s->l4 + 8,                     \
	  s->asked.csum_start = (uint16_t)(s->l4 + 1))                                                       \
	X(offset_far, CHECKSUM, SAMPLE_CSUM, s->asked.csum_offset = UINT16_MAX)                              \
	X(both_wrap, CHECKSUM, SAMPLE_CSUM, s->asked.csum_start = 0xfff0, s->asked.csum_offset = 0x20)       \
	X(field_of_udp_in_tcp, CHECKSUM, SAMPLE_CSUM, s->asked.csum_offset = 6)                              \
	X(field_of_tcp_in_udp, CHECKSUM, SAMPLE_UDP, s->asked.csum_offset = 16)                              \
	X(field_beyond_what_is_read, CHECKSUM, SAMPLE_CSUM, s->asked.csum_start = 255)                       \
	X(v6_called_v4, HEADERS, SAMPLE_V6, s->asked.gso_type = VIRTIO_NET_HDR_GSO_TCPV4)                    \
	X(v4_called_v6, HEADERS, 0, s->asked.gso_type = VIRTIO_NET_HDR_GSO_TCPV6)                            \
	X(udp_called_tcp, HEADERS, SAMPLE_UDP, s->asked.gso_type = VIRTIO_NET_HDR_GSO_TCPV4)                 \
	X(tcp_called_udp, HEADERS, 0, s->asked.gso_type = OFFLOAD_GSO_UDP_L4)                                \
	X(no_ip, HEADERS, 0, put_be16(s->bytes + 12, 0x0806))                                                \
	X(three_tags, HEADERS, SAMPLE_TAG2, put_be16(s->bytes + 20, 0x8100))                                 \
	X(inner_segments, HEADERS, 0, s->asked.csum_start += 4)                                              \
	X(a_fragment, HEADERS, 0, s->bytes[s->l3 + 6] = 0x20, sample_ip_lengths(s, s->bytes, s->length))     \
	X(a_wrong_ip_checksum, HEADERS, 0, s->bytes[s->l3 + 8]++)                                            \
	X(datagram_ends_early, HEADERS, 0, sample_ip_lengths(s, s->bytes, s->length - 1))                    \
	X(datagram_ends_late, HEADERS, 0, sample_ip_lengths(s, s->bytes, s->length + 1))                     \
	X(udp_ends_early, HEADERS, SAMPLE_UDP, s->bytes[s->l4 + 5]--)                                        \
	X(short_tcp_header, HEADERS, 0, s->bytes[s->l4 + 12] = 0x40)                                         \
	X(no_tcp_header, HEADERS, 0, s->bytes[s->l4 + 12] = 0)                                               \
	X(tcp_header_beyond, HEADERS, 0, s->length = s->header + 10, s->bytes[s->l4 + 12] = 0xf0,            \
	  sample_ip_lengths(s, s->bytes, s->length))                                                         \
	X(no_payload, HEADERS, 0, s->length = s->header, sample_ip_lengths(s, s->bytes, s->length))          \
	X(no_size, SIZE, 0, s->asked.gso_size = 0)                                                           \
	X(too_many_segments, SIZE, 0, s->asked.gso_size = 3000 / 257)

FOR_EACH_LIE(LIE)

#define LIE_ENTRY(name_, reason_, kind_, ...) {#name_, OFFLOAD_REFUSED_##reason_, kind_, name_},

static const struct {
	const char *name;
	enum offload_refusal reason;
	unsigned kind;
	void (*tell)(struct sample *s);
} lies[] = {FOR_EACH_LIE(LIE_ENTRY)};

// Whatever the receiver accepts; what is before and behind it arrives.
static void a_lie_is_dropped_by_its_name(void **state)
{
	static struct sample honest;
	static struct view view;

	sample_make(&honest, 0, 2000, 1000);
	for (unsigned i = 0; i < COUNT(lies); i++)
		for (unsigned accepts = 0; accepts < 2; accepts++) {
			rig_open(modern, modern);
			offer_sample(&honest, WHOLE);
			sample_make(&sample, lies[i].kind, 3000, 1000);
			lies[i].tell(&sample);
			offer_sample(&sample, i % SHAPES);
			offer_sample(&honest, WHOLE);
			if (poll_caught(&view, accepts ? ALL : 0).taken != (accepts ? 2 : 4))
				fail_msg("%s is passed on", lies[i].name);
			assert_int_equal(view.count, 2);
			for (unsigned reason = 0; reason < OFFLOAD_REFUSALS; reason++)
				if (rig.room.refused[reason] != (reason == lies[i].reason))
					fail_msg("%s: reason %u: %u", lies[i].name, reason,
					         (unsigned)rig.room.refused[reason]);
			rig_close();
		}
}

// What was not negotiated is refused; of a sender that has negotiated nothing the header says nothing.
static void what_was_not_negotiated_is_refused(void **state)
{
	static const struct {
		uint64_t without;
		unsigned kind;
	} cases[] = {{BIT(VIRTIO_NET_F_HOST_TSO4), 0},
	             {BIT(VIRTIO_NET_F_HOST_TSO6), SAMPLE_V6},
	             {BIT(OFFLOAD_F_HOST_USO), SAMPLE_UDP},
	             {BIT(OFFLOAD_F_HOST_USO), SAMPLE_UDP | SAMPLE_V6}};
	static struct view view;

	for (unsigned i = 0; i < COUNT(cases); i++) {
		rig_open(modern & ~cases[i].without, modern);
		sample_make(&sample, cases[i].kind, 3000, 1000);
		offer_sample(&sample, WHOLE);
		assert_int_equal(poll_caught(&view, ALL).offered, 0);
		assert_int_equal(rig.room.refused[OFFLOAD_REFUSED_TYPE], 1);
		rig_close();
	}
	rig_open(modern & ~BIT(VIRTIO_NET_F_HOST_ECN), modern);
	sample_make(&sample, 0, 3000, 1000);
	sample.asked.gso_type |= VIRTIO_NET_HDR_GSO_ECN;
	offer_sample(&sample, WHOLE);
	assert_int_equal(poll_caught(&view, ALL).offered, 0);
	rig_close();
	rig_open(modern & ~BIT(VIRTIO_NET_F_CSUM), modern);
	offer_sample(&sample, WHOLE);
	assert_int_equal(poll_caught(&view, ALL).taken, 1);
	assert_int_equal(rig.room.used, 0);
	assert_memory_equal(&rig.caught.header[0], &(struct virtio_net_hdr){0},
	                    sizeof(struct virtio_net_hdr));
	rig_close();
}

// --- Bounds ----------------------------------------------------------------------------------------------

static void a_frame_may_be_as_long_as_a_datagram(void **state)
{
	static struct view view;

	rig_open(modern, modern);
	sample_make(&sample, SAMPLE_TAG2, 65535 - 40, 1400);
	assert_int_equal(sample.length, OFFLOAD_LENGTH_MAX);
	offer_sample(&sample, PAGES);
	assert_int_equal(poll_caught(&view, 0).taken, sample_segments(&sample));
	check_segments(&sample, 0);
	sample.length++;
	offer_sample(&sample, PAGES);
	assert_int_equal(poll_caught(&view, 0).offered, 0);
	assert_int_equal(rig.lost.oversize, 1);
	sample_make(&sample, SAMPLE_TAG2 | SAMPLE_CSUM, 65535 - 40,
	            0); // not to be segmented: 65535 with all headers
	offer_sample(&sample, PAGES);
	assert_int_equal(poll_caught(&view, 0).offered, 0);
	assert_int_equal(rig.lost.oversize, 2);
	rig_close();
}

// Segments of a byte: a poll makes 511 at most, and the sender pays for them.
static void tiny_segments_are_paid(void **state)
{
	struct device_ring *from = &rig.guests.a.transmit.ring;
	static struct view view;
	unsigned offered = 0, polls = 0;

	rig_open(modern, modern);
	sample_make(&sample, 0, 255, 1);
	for (unsigned i = 0; i < 12; i++)
		offer_sample(&sample, WHOLE);
	for (; offered < 12 * 255; polls++) {
		struct offload_sent sent = poll_caught(&view, 0);

		assert_true(sent.offered == 510);
		assert_true(from->debt > 30);
		offered += sent.offered;
	}
	assert_int_equal(polls, 6);
	sample_make(&sample, 0, 64000, 1448);
	offer_sample(&sample, PAGES);
	poll_caught(&view, 0);
	assert_int_equal(from->debt, 45 / RING_DEBT_EACH); // an honest one
	rig_close();
}

// What the receiver does not take is counted as it would have been sent; nothing behind it is.
static void a_full_receiver_ends_it(void **state)
{
	static struct view view;

	rig_open(modern, modern);
	for (unsigned room = 0; room < 203; room++) {
		struct offload_sent sent;

		sample_make(&sample, SAMPLE_CSUM, 100, 0);
		offer_sample(&sample, WHOLE);
		sample_make(&sample, 0, 10000, 100);
		offer_sample(&sample, WHOLE);
		offer_sample(&sample, PAGES);
		rig.caught.room = room;
		sent = poll_caught(&view, 0);
		assert_int_equal(sent.offered, 201);
		assert_int_equal(sent.taken, RTE_MIN(room, 201u));
		if (sent.taken == 201)
			check_segments(&sample, 101);
	}
	rig_close();
}

// --- Into a guest ----------------------------------------------------------------------------------------

static unsigned into_b(void *to, const struct frame *frames, const struct virtio_net_hdr *headers, unsigned n)
{
	uint64_t *too_long = to;
	struct device_ring *ring = &rig.guests.b.receive.ring;

	ring->debt = 0;
	return headers ? deliver_offloads(ring, frames, headers, n, too_long)
	               : deliver(ring, frames, n, too_long);
}

// Poll A, and deliver to B as it accepts.
static struct offload_sent poll_b(void)
{
	struct device_ring *from = &rig.guests.a.transmit.ring;
	uint64_t too_long = 0;
	struct offload_sent sent = {0};
	static struct view view;

	from->debt = 0;
	if (offload_peek(from, &view, BURST_FRAMES_MAX, &rig.lost, &rig.room)) {
		sent = offload_send(&rig.room, view.frames, view.count, rig.guests.b.receive.ring.offloads,
		                    into_b, &too_long);
		view_commit(from, &view);
	}
	assert_int_equal(too_long, 0);
	collect_sent(&rig.guests);
	return sent;
}

// Collect one frame of B, of any number of buffers, and compare.
static void collect_b(const struct virtio_net_hdr *header, const uint8_t *bytes, uint32_t length)
{
	struct driver *d = &rig.guests.b.receive;
	struct virtio_net_hdr_mrg_rxbuf got;
	uint32_t written, done = 0;
	unsigned buffers = 1;

	for (unsigned i = 0; i < buffers; i++) {
		int id = driver_collect(d, &written);
		const uint8_t *data;

		assert_true(id >= 0);
		data = guest_at(&rig.guests.b, driver_buffer(d, (unsigned)id));
		if (i == 0) {
			memcpy(&got, data, sizeof(got));
			assert_memory_equal(&got.hdr, header, sizeof(*header));
			buffers = got.num_buffers;
			data += sizeof(got);
			written -= (uint32_t)sizeof(got);
		}
		assert_true(done + written <= length);
		assert_memory_equal(data, bytes + done, written);
		done += written;
	}
	assert_int_equal(done, length);
}

// From a guest with offloads to one with, over mergeable buffers of a page and less, split and packed: 64 KB and 9000 B.
static void long_frames_between_guests(void **state)
{
	static const uint32_t payloads[] = {8948, 64000, 30000, 1, 65000};
	static const uint32_t buffers[] = {4096, 1526, 2048};

	for (unsigned packed = 0; packed < 2; packed++)
		for (unsigned kind = 0; kind < SAMPLE_KINDS; kind++) {
			uint64_t features = modern | (packed ? BIT(PACKED) : 0);

			rig_open(features, features);
			for (unsigned i = 0; i < COUNT(payloads); i++) {
				struct virtio_net_hdr wanted;
				static struct ring_batch batch;

				sample_make(&sample, kind, payloads[i], 1448);
				wanted = sample.asked;
				wanted.hdr_len = kind & SAMPLE_CSUM ? 0 : (uint16_t)sample.header;
				offer_sample(&sample, PAGES);
				driver_offer_own(&rig.guests.b.receive, 60, buffers[i % COUNT(buffers)]);
				assert_int_equal(poll_b().taken, 1);
				collect_b(&wanted, sample.bytes, sample.length);
				while (device_ring_peek(&rig.guests.b.receive.ring, &batch,
				                        BURST_FRAMES_MAX)) {
					for (unsigned k = 0; k < batch.count; k++)
						batch.buffers[k].written = 0;
					device_ring_commit(&rig.guests.b.receive.ring, &batch, batch.count);
				}
				while (driver_collect(&rig.guests.b.receive, &(uint32_t){0}) >= 0)
					;
			}
			rig_close();
		}
}

// From a guest with offloads to one without: segments, behind headers that say nothing, and plain frames among them.
static void to_a_guest_without_offloads(void **state)
{
	static const struct virtio_net_hdr nothing;
	static uint8_t wanted[OFFLOAD_LENGTH_MAX], plain[100] = {1, 2, 3};

	rig_open(modern, BIT(VERSION_1));
	for (unsigned kind = 0; kind < SAMPLE_KINDS; kind++) {
		unsigned segments;

		sample_make(&sample, kind, kind & SAMPLE_CSUM ? 1000 : 20000, 1448);
		segments = sample_segments(&sample);
		offer(&nothing, plain, sizeof(plain), WHOLE);
		offer_sample(&sample, kind % SHAPES);
		offer(&nothing, plain, sizeof(plain), HEADER_APART);
		assert_int_equal(driver_offer_own(&rig.guests.b.receive, segments + 2, 2048), segments + 2);
		assert_int_equal(poll_b().taken, segments + 2);
		collect_b(&nothing, plain, sizeof(plain));
		for (unsigned k = 0; k < segments; k++)
			collect_b(&nothing, wanted, sample_segment(&sample, k, wanted));
		collect_b(&nothing, plain, sizeof(plain));
	}
	rig_close();
}

// Linux without mergeable buffers: each is 19 descriptors. A whole burst of short frames is taken, and no poll is missed for it.
static void buffers_of_pages(void **state)
{
	enum { FRAMES = 12, DESCRIPTORS = 19 };
	static const struct virtio_net_hdr nothing;
	static uint8_t plain[100] = {1, 2, 3};
	struct driver *d = &rig.guests.b.receive;

	rig_open(modern, modern & ~BIT(MERGE));
	for (unsigned i = 0; i < FRAMES; i++) {
		struct guest_range ranges[DESCRIPTORS];
		uint64_t at = driver_buffer(d, 0) + i * 80000;

		ranges[0] = (struct guest_range){at, HEADER};
		for (unsigned k = 1; k < DESCRIPTORS; k++)
			ranges[k] = (struct guest_range){at + k * 4096, 4096};
		assert_true(driver_offer(d, ranges, DESCRIPTORS, false) >= 0);
		offer(&nothing, plain, sizeof(plain), WHOLE);
	}
	assert_int_equal(poll_b().taken, FRAMES);
	assert_int_equal(d->ring.debt, 0);
	rig_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(who_accepts_what),
	        cmocka_unit_test(segments_are_those_of_the_model),
	        cmocka_unit_test(a_checksum_is_completed),
	        cmocka_unit_test(an_inner_checksum_is_completed),
	        cmocka_unit_test(what_is_accepted_is_passed_on),
	        cmocka_unit_test(an_ipv4_checksum_of_0_is_completed),
	        cmocka_unit_test(a_receiver_gets_what_it_accepts),
	        cmocka_unit_test(a_tag_moves_what_the_header_points_to),
	        cmocka_unit_test(a_lie_is_dropped_by_its_name),
	        cmocka_unit_test(what_was_not_negotiated_is_refused),
	        cmocka_unit_test(a_frame_may_be_as_long_as_a_datagram),
	        cmocka_unit_test(tiny_segments_are_paid),
	        cmocka_unit_test(a_full_receiver_ends_it),
	        cmocka_unit_test(long_frames_between_guests),
	        cmocka_unit_test(to_a_guest_without_offloads),
	        cmocka_unit_test(buffers_of_pages),
	};

	return cmocka_run_group_tests_name("offload", tests, NULL, NULL);
}
