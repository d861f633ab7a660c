// SPDX-License-Identifier: BSD-3-Clause
#include "virtio/offload.h"

#include <rte_tcp.h>
#include <rte_udp.h>

#include "base/bytes.h"
#include "base/checksum.h"
#include "base/counters.h"
#include "base/packet.h"
#include "virtio/device_frames.h"

enum {
	SUM_BYTES_MAX =
	        16384, // that checksum_add() is given at a time: its lanes hold 64 KB of ones just not
	PIECES_SPARE = PIECES_MAX + BURST_FRAMES_MAX, // that one more frame may take
	SEGMENTS_ENOUGH =
	        256, // frames of a poll that may become so many are the last: it takes a bounded time
};

_Static_assert(OFFLOAD_OUT_PIECES > 2 * PIECES_SPARE, "there is room for several frames");

// --- What a header asks for ------------------------------------------------------------------------------

// Return what a receiver must accept to get a frame of this type, or 0: no type that we know.
static uint8_t bits_of(uint8_t type, const struct packet *p)
{
	uint8_t ecn = type & VIRTIO_NET_HDR_GSO_ECN ? OFFLOAD_ECN : 0;

	switch (type & ~VIRTIO_NET_HDR_GSO_ECN) {
	case VIRTIO_NET_HDR_GSO_TCPV4:
		return OFFLOAD_CSUM | OFFLOAD_TSO4 | ecn;
	case VIRTIO_NET_HDR_GSO_TCPV6:
		return OFFLOAD_CSUM | OFFLOAD_TSO6 | ecn;
	case OFFLOAD_GSO_UDP_L4:
		return ecn ? 0 : OFFLOAD_CSUM | (p->version == 4 ? OFFLOAD_USO4 : OFFLOAD_USO6);
	default:
		return 0;
	}
}

// Whether a datagram is what its type says: whole, of this transport, with its checksum where the header says.
static bool is_of_type(const struct virtio_net_hdr *asked, const struct frame_offload *o,
                       const struct packet *p)
{
	uint8_t type = asked->gso_type & ~VIRTIO_NET_HDR_GSO_ECN;

	return !p->fragment && p->protocol == (o->udp ? IPPROTO_UDP : IPPROTO_TCP) &&
	       (o->udp || p->version == (type == VIRTIO_NET_HDR_GSO_TCPV4 ? 4 : 6)) &&
	       asked->csum_start == p->l4 && p->l4 + (uint32_t)p->l4_bytes == o->length;
}

// A frame to be segmented. head: its first head_bytes.
static enum offload_refusal check_gso(const struct virtio_net_hdr *asked, uint8_t accepts,
                                      const uint8_t *head, uint32_t head_bytes, const struct packet *p,
                                      struct frame_offload *o)
{
	uint32_t header, segments;

	o->needs = bits_of(asked->gso_type, p);
	o->udp = asked->gso_type == OFFLOAD_GSO_UDP_L4;
	if (o->needs == 0 || o->needs & ~accepts)
		return OFFLOAD_REFUSED_TYPE;
	if (!is_of_type(asked, o, p))
		return OFFLOAD_REFUSED_HEADERS;
	header = p->l4 + (o->udp ? sizeof(struct rte_udp_hdr) : (head[p->l4 + 12] >> 4) * 4u);
	if (header < p->l4 + sizeof(struct rte_udp_hdr) || header > head_bytes || header >= o->length ||
	    (o->udp ? get_be16(head + p->l4 + 4) != p->l4_bytes
	            : header < p->l4 + sizeof(struct rte_tcp_hdr)))
		return OFFLOAD_REFUSED_HEADERS;
	if (asked->gso_size == 0)
		return OFFLOAD_REFUSED_SIZE;
	segments = (o->length - header + asked->gso_size - 1) / asked->gso_size;
	if (segments > OFFLOAD_SEGMENTS_MAX)
		return OFFLOAD_REFUSED_SIZE;
	o->l3 = p->l3;
	o->segments = (uint16_t)segments;
	o->header.gso_type = asked->gso_type;
	o->header.gso_size = asked->gso_size;
	o->header.hdr_len = (uint16_t)header;
	return OFFLOAD_FINE;
}

// The checksum may be of an inner header (of a tunnel), but neither before nor in the network header, and of the
// transport header itself only where that has it. A bridge moves and writes what is before that, the tags.
static bool checksum_is_placed(const struct virtio_net_hdr *asked, const uint8_t *head, uint32_t head_bytes,
                               bool is_ip, const struct packet *p)
{
	uint32_t start = asked->csum_start, offset = asked->csum_offset;
	rte_be16_t type;
	uint16_t l3;

	packet_ethernet(head, head_bytes, &l3, &type);
	if (start < l3 || start + offset + sizeof(uint16_t) > head_bytes)
		return false;
	if (!is_ip || start > p->l4)
		return true;
	return start == p->l4 &&
	       (p->protocol != IPPROTO_TCP || offset == offsetof(struct rte_tcp_hdr, cksum)) &&
	       (p->protocol != IPPROTO_UDP || offset == offsetof(struct rte_udp_hdr, dgram_cksum));
}

// An IPv4 checksum of 0 in a frame to be segmented: DPDK's drivers leave it to the device, which makes one for each segment.
static void complete_ipv4(uint8_t *head, uint32_t head_bytes)
{
	uint8_t *ip;
	uint32_t bytes;
	uint16_t l3;
	rte_be16_t type;

	if (packet_ethernet(head, head_bytes, &l3, &type) != PACKET_FINE ||
	    type != RTE_BE16(RTE_ETHER_TYPE_IPV4) || head_bytes < l3 + sizeof(struct rte_ipv4_hdr))
		return;
	ip = head + l3;
	bytes = (ip[0] & 0xfu) * 4;
	if (load16(ip + 10) == 0 && bytes >= sizeof(struct rte_ipv4_hdr) && l3 + bytes <= head_bytes)
		store16(ip + 10, (uint16_t)~checksum_fold(checksum_add(ip, bytes)));
}

// s5.1.6.2. Flags that nobody knows are ignored, and so is DATA_VALID, which is for receivers.
static enum offload_refusal check(const struct virtio_net_hdr *asked, uint8_t accepts, uint8_t *head,
                                  uint32_t head_bytes, struct frame_offload *o)
{
	const struct vnf_frame frame = {head, head_bytes, o->length};
	struct packet p = {0};
	bool is_ip;

	if (!(asked->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM))
		return OFFLOAD_REFUSED_TYPE; // a type, or we would not be here
	if (asked->gso_type != VIRTIO_NET_HDR_GSO_NONE)
		complete_ipv4(head, head_bytes);
	is_ip = packet_parse(&frame, &p) == PACKET_FINE;
	if (!checksum_is_placed(asked, head, head_bytes, is_ip, &p))
		return OFFLOAD_REFUSED_CHECKSUM;
	o->header = (struct virtio_net_hdr){.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
	                                    .csum_start = asked->csum_start,
	                                    .csum_offset = asked->csum_offset};
	o->needs = OFFLOAD_CSUM;
	o->segments = 0;
	if (asked->gso_type == VIRTIO_NET_HDR_GSO_NONE)
		return OFFLOAD_FINE;
	if (!is_ip)
		return OFFLOAD_REFUSED_HEADERS;
	return check_gso(asked, accepts, head, head_bytes, &p, o);
}

// --- Frames of a sender ----------------------------------------------------------------------------------

// The frame gets its head from our memory. Returns whether there is a frame.
static bool take_offload(struct device_ring *from, struct frame *frame, const struct virtio_net_hdr *asked,
                         struct offload_room *room, unsigned *piece_count)
{
	struct frame_offload *o = &room->offloads[room->used];
	uint8_t *head = room->heads[room->used];
	uint32_t head_bytes = RTE_MIN(frame->length, (uint32_t)OFFLOAD_HEAD_BYTES);
	const struct piece whole = {head, head_bytes};
	struct scatter to = {&whole, 0}, at = frame->at;
	struct piece *pieces = &room->pieces[*piece_count];
	enum offload_refusal why;

	scatter_copy(&to, &at, head_bytes);
	o->length = frame->length;
	why = check(asked, from->offloads, head, head_bytes, o);
	if (why != OFFLOAD_FINE) {
		room->refused[why]++;
		return false;
	}
	pieces[0] = whole;
	*piece_count += 1 + scatter_describe(&pieces[1], &at, frame->length - head_bytes);
	*frame = (struct frame){{pieces, 0}, frame->length, ++room->used};
	return true;
}

// Once: what the guest makes of it later is not seen.
static struct virtio_net_hdr read_header(const struct piece *pieces)
{
	struct virtio_net_hdr header;
	const struct piece piece = {(uint8_t *)&header, sizeof(header)};
	struct scatter to = {&piece, 0}, from = {pieces, 0};

	if (likely(pieces->length >= sizeof(header)))
		memcpy(&header, pieces->data, sizeof(header));
	else
		scatter_copy(&to, &from, sizeof(header));
	rte_compiler_barrier(); // the copy is what is looked at
	return header;
}

// One buffer. Returns whether it is a frame; segments: those that it may become are added.
static bool take(struct device_ring *from, const struct ring_batch *batch, unsigned i, struct frame *frame,
                 struct frames_lost *lost, struct offload_room *room, unsigned *piece_count,
                 unsigned *segments)
{
	const struct ring_buffer *buffer = &batch->buffers[i];
	const struct piece *pieces = &batch->pieces[buffer->first_piece];
	struct virtio_net_hdr asked;
	uint32_t longest = FRAME_LENGTH_MAX;

	if (unlikely(buffer->length <= from->header_bytes)) {
		counter_add(&lost->bad, 1);
		return false;
	}
	asked = read_header(pieces);
	*frame = (struct frame){scatter_skip(pieces, from->header_bytes), buffer->length - from->header_bytes,
	                        0};
	if (asked.gso_type != VIRTIO_NET_HDR_GSO_NONE)
		longest = OFFLOAD_LENGTH_MAX;
	if (unlikely(frame->length > longest)) {
		counter_add(&lost->oversize, 1);
		return false;
	}
	if (!(asked.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) && asked.gso_type == VIRTIO_NET_HDR_GSO_NONE)
		return true;
	if (!take_offload(from, frame, &asked, room, piece_count))
		return false;
	*segments += room->offloads[room->used - 1].segments;
	return true;
}

unsigned offload_peek(struct device_ring *from, struct view *view, unsigned n, struct frames_lost *lost,
                      struct offload_room *room)
{
	struct ring_batch *batch = &view->batch;
	unsigned piece_count = 0, segments = 0, i;
	uint64_t bytes = 0;

	room->used = 0;
	if (from->offloads == 0) // its headers say nothing
		return view_peek(from, view, n, lost);
	view->count = 0;
	view->held = VIEW_IN_PIECES;
	if (device_ring_skips_poll(from) || device_ring_peek(from, batch, n) == 0)
		return 0;
	for (i = 0; i < batch->count && segments < SEGMENTS_ENOUGH; i++) {
		batch->buffers[i].written = 0;
		bytes += batch->buffers[i].length;
		view->count +=
		        take(from, batch, i, &view->frames[view->count], lost, room, &piece_count, &segments);
	}
	// Each segment is paid, also of a frame that is passed on whole: that many bytes take as long.
	device_ring_charge(from, batch->descriptor_count, i, bytes);
	from->debt += (uint8_t)(segments / RING_DEBT_EACH);
	return batch->count = i;
}

// --- Frames of a receiver --------------------------------------------------------------------------------

// A sending in progress.
struct sending {
	struct offload_out *out;
	offload_sink *sink;
	void *to;
	bool full; // it has not taken all: the rest is only counted
	struct offload_sent sent;
};

static void flush(struct sending *s)
{
	struct offload_out *out = s->out;
	unsigned taken = 0;

	if (out->count && !s->full)
		taken = s->sink(s->to, out->frames, out->headers_needed ? out->headers : NULL, out->count);
	s->full = s->full || taken < out->count;
	s->sent.offered += out->count;
	s->sent.taken += taken;
	out->count = out->piece_count = 0;
	out->headers_needed = false;
}

// Begin a frame; pieces and length are the caller's. Returns its place.
static unsigned begin(struct sending *s)
{
	struct offload_out *out = s->out;

	if (out->count == BURST_FRAMES_MAX || out->piece_count > OFFLOAD_OUT_PIECES - PIECES_SPARE)
		flush(s);
	out->headers[out->count] = (struct virtio_net_hdr){0};
	return out->count++;
}

static void send_as_it_is(struct sending *s, const struct frame *frame, const struct frame_offload *o)
{
	struct offload_out *out = s->out;
	unsigned i = begin(s);
	uint16_t moved;

	out->frames[i] = *frame;
	if (o == NULL)
		return;
	moved = (uint16_t)(frame->length - o->length);
	out->headers_needed = true;
	out->headers[i] = o->header;
	out->headers[i].csum_start += moved;
	if (o->segments)
		out->headers[i].hdr_len += moved;
}

// Return the sum of length bytes, folded.
static uint16_t sum_scattered(struct scatter at, uint32_t length)
{
	uint64_t sum = 0;
	bool odd = false;

	while (length) {
		uint32_t run = RTE_MIN(length, at.piece->length - at.offset);
		uint16_t part;

		run = RTE_MIN(run, (uint32_t)SUM_BYTES_MAX);
		part = checksum_fold(checksum_add(scatter_start(&at), run));
		sum += odd ? rte_bswap16(part) : part;
		odd ^= run & 1;
		scatter_move_on(&at, run);
		length -= run;
	}
	return checksum_fold(sum);
}

// A frame of our own: a copy of the first head_bytes of another, which are returned, and length bytes of it from at on.
static uint8_t *compose(struct sending *s, const struct frame *frame, uint32_t head_bytes, struct scatter *at,
                        uint32_t length)
{
	struct offload_out *out = s->out;
	unsigned i = begin(s);
	struct piece *pieces = &out->pieces[out->piece_count];
	struct scatter to = {pieces, 0}, from = frame->at;

	pieces[0] = (struct piece){out->heads[i], head_bytes};
	scatter_copy(&to, &from, head_bytes);
	out->frames[i] = (struct frame){{pieces, 0}, head_bytes + length, 0};
	out->piece_count += 1 + scatter_describe(&pieces[1], at, length);
	return out->heads[i];
}

static struct scatter behind(const struct frame *frame, uint32_t bytes)
{
	return scatter_skip(frame->at.piece, frame->at.offset + bytes);
}

// Complete a checksum, whose field has the sum of the pseudo header. A sum of 0 is sent as 0xffff: the same to TCP, and to
// UDP what says that there is a checksum.
static void send_completed(struct sending *s, const struct frame *frame, const struct frame_offload *o)
{
	uint32_t start = o->header.csum_start + frame->length - o->length, at = start + o->header.csum_offset;
	uint32_t head_bytes = at + sizeof(uint16_t), left = frame->length - head_bytes;
	uint16_t sum = (uint16_t)~sum_scattered(behind(frame, start), frame->length - start);
	struct scatter rest = left ? behind(frame, head_bytes) : frame->at;

	store16(compose(s, frame, head_bytes, &rest, left) + at, sum ? sum : 0xffff);
}

// The headers of segment k, of bytes of payload: as in the whole frame but for lengths, numbers, flags and checksums.
static void fill_tcp(uint8_t *tcp, const struct frame_offload *o, unsigned k)
{
	struct rte_tcp_hdr *header = (struct rte_tcp_hdr *)tcp;

	header->sent_seq = rte_cpu_to_be_32(rte_be_to_cpu_32(header->sent_seq) + k * o->header.gso_size);
	if (k + 1 < o->segments)
		header->tcp_flags &= (uint8_t) ~(RTE_TCP_FIN_FLAG | RTE_TCP_PSH_FLAG);
	if (k > 0)
		header->tcp_flags &= (uint8_t)~RTE_TCP_CWR_FLAG; // RFC 3168 s6.1.2: once for all
}

static void fill_ip(uint8_t *ip, unsigned k, uint16_t header_bytes, uint16_t l4_bytes)
{
	struct rte_ipv4_hdr *v4 = (struct rte_ipv4_hdr *)ip;

	if (ip[0] >> 4 == 6) {
		put_be16(ip + 4, (uint16_t)(header_bytes - sizeof(struct rte_ipv6_hdr) + l4_bytes));
		return;
	}
	v4->total_length = rte_cpu_to_be_16((uint16_t)(header_bytes + l4_bytes));
	v4->packet_id = rte_cpu_to_be_16((uint16_t)(rte_be_to_cpu_16(v4->packet_id) + k));
	v4->hdr_checksum = 0;
	v4->hdr_checksum = (uint16_t)~checksum_fold(checksum_add(ip, header_bytes));
}

static void fill_headers(uint8_t *head, const struct frame_offload *o, int32_t moved, unsigned k,
                         uint16_t payload_sum, uint16_t payload)
{
	uint8_t *ip = head + o->l3 + moved, *l4 = head + o->header.csum_start + moved;
	uint8_t *checksum = l4 + o->header.csum_offset;
	uint16_t header_bytes = o->header.hdr_len - o->header.csum_start;
	uint16_t l4_bytes = header_bytes + payload, sum;

	fill_ip(ip, k, (uint16_t)(o->header.csum_start - o->l3), l4_bytes);
	if (o->udp)
		put_be16(l4 + 4, l4_bytes);
	else
		fill_tcp(l4, o, k);
	store16(checksum, 0);
	sum = (uint16_t)~checksum_fold(
	        checksum_add_pseudo(ip, ip[0] >> 4, o->udp ? IPPROTO_UDP : IPPROTO_TCP, l4_bytes) +
	        checksum_add(l4, header_bytes) + payload_sum);
	store16(checksum, sum == 0 && o->udp ? 0xffff : sum); // RFC 768
}

static void send_segments(struct sending *s, const struct frame *frame, const struct frame_offload *o)
{
	int32_t moved = (int32_t)(frame->length - o->length); // by a bridge's tag
	uint32_t head_bytes = (uint32_t)(o->header.hdr_len + moved);
	uint32_t left = frame->length - head_bytes;
	struct scatter at = behind(frame, head_bytes);
	unsigned k;

	for (k = 0; k < o->segments && !s->full; k++) {
		uint16_t payload = (uint16_t)RTE_MIN(left, (uint32_t)o->header.gso_size);
		uint16_t sum = sum_scattered(at, payload);

		fill_headers(compose(s, frame, head_bytes, &at, payload), o, moved, k, sum, payload);
		left -= payload;
	}
	s->sent.offered += o->segments - k;
}

struct offload_sent offload_send(struct offload_room *room, const struct frame *frames, unsigned n,
                                 uint8_t accepts, offload_sink *sink, void *to)
{
	struct sending s = {.out = &room->out, .sink = sink, .to = to};

	for (unsigned i = 0; i < n; i++) {
		const struct frame *frame = &frames[i];
		const struct frame_offload *o = frame->offload ? &room->offloads[frame->offload - 1] : NULL;
		bool as_it_is = o == NULL || (o->needs & ~accepts) == 0;

		if (s.full)
			s.sent.offered += as_it_is || o->segments == 0 ? 1 : o->segments;
		else if (as_it_is)
			send_as_it_is(&s, frame, o);
		else if (o->segments)
			send_segments(&s, frame, o);
		else
			send_completed(&s, frame, o);
	}
	flush(&s);
	return s.sent;
}
