// SPDX-License-Identifier: BSD-3-Clause
// Frames as a guest with offloads sends them, and what segmentation makes of them, byte by byte and plainly: the model of
// virtio/offload.c for its test and its fuzzer.
#pragma once

#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"
#include "virtio/offload.h"

enum sample_kind {
	SAMPLE_V6 = 1 << 0,
	SAMPLE_UDP = 1 << 1,
	SAMPLE_TAG = 1 << 2,     // of a VLAN
	SAMPLE_TAG2 = 1 << 3,    // two
	SAMPLE_OPTIONS = 1 << 4, // of IP (v6: a xconnect-by-xconnect header) and of TCP
	SAMPLE_CSUM = 1 << 5,    // no segmentation, only a checksum
	SAMPLE_KINDS = 1 << 6,
};

struct sample {
	unsigned kind;
	uint32_t l3, l4, header, length;
	struct virtio_net_hdr asked;
	uint8_t bytes[OFFLOAD_LENGTH_MAX + 64];
};

// RFC 1071, as it is written there.
static inline uint32_t sample_sum(const uint8_t *data, uint32_t length, uint32_t sum)
{
	for (uint32_t i = 0; i < length; i++)
		sum += i & 1 ? data[i] : (uint32_t)data[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static inline uint32_t sample_pseudo(const struct sample *s, const uint8_t *bytes, uint32_t l4_bytes)
{
	const uint8_t *ip = bytes + s->l3;
	uint32_t sum = (s->kind & SAMPLE_UDP ? 17 : 6) + l4_bytes;

	return s->kind & SAMPLE_V6 ? sample_sum(ip + 8, 32, sum) : sample_sum(ip + 12, 8, sum);
}

static inline void sample_ip_lengths(const struct sample *s, uint8_t *bytes, uint32_t length)
{
	uint8_t *ip = bytes + s->l3;

	if (s->kind & SAMPLE_V6) {
		put_be16(ip + 4, (uint16_t)(length - s->l3 - 40));
		return;
	}
	put_be16(ip + 2, (uint16_t)(length - s->l3));
	put_be16(ip + 10, 0);
	put_be16(ip + 10, (uint16_t)~sample_sum(ip, s->l4 - s->l3, 0));
}

static inline void sample_ip(unsigned kind, uint8_t *ip)
{
	bool udp = kind & SAMPLE_UDP, options = kind & SAMPLE_OPTIONS;

	if (kind & SAMPLE_V6) {
		ip[0] = 0x60;
		ip[6] = options ? 0 : udp ? 17 : 6;
		ip[7] = 64;
		if (options)
			memcpy(ip + 40, (uint8_t[]){udp ? 17 : 6, 0, 1, 4, 0, 0, 0, 0}, 8);
		return;
	}
	ip[0] = options ? 0x47 : 0x45;
	put_be16(ip + 4, 0xfffe); // its successors wrap
	ip[6] = 0x40;
	ip[8] = 64;
	ip[9] = udp ? 17 : 6;
	if (options)
		memset(ip + 20, 1, 8);
}

static inline void sample_l4(unsigned kind, uint8_t *l4, uint32_t payload)
{
	put_be16(l4, 1000);
	put_be16(l4 + 2, 2000);
	if (kind & SAMPLE_UDP) {
		put_be16(l4 + 4, (uint16_t)(8 + payload));
		return;
	}
	memset(l4 + 4, 0xff, 3); // its successors wrap
	l4[7] = 0xf0;
	l4[12] = kind & SAMPLE_OPTIONS ? 0x80 : 0x50;
	l4[13] = 0x80 | 0x10 | 0x08 | 0x01; // CWR, ACK, PSH, FIN
	if (kind & SAMPLE_OPTIONS)
		memset(l4 + 20, 1, 12);
}

// payload: bytes behind all headers.
static inline void sample_make(struct sample *s, unsigned kind, uint32_t payload, uint16_t gso_size)
{
	static const uint8_t addresses[12] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2};
	bool v6 = kind & SAMPLE_V6, udp = kind & SAMPLE_UDP, options = kind & SAMPLE_OPTIONS;
	unsigned tags = kind & SAMPLE_TAG2 ? 2 : kind & SAMPLE_TAG ? 1 : 0;
	uint8_t *ip, *l4;

	memset(s, 0, offsetof(struct sample, bytes));
	memset(s->bytes, 0, 256);
	s->kind = kind;
	memcpy(s->bytes, addresses, sizeof(addresses));
	for (unsigned i = 0; i < tags; i++) {
		put_be16(s->bytes + 12 + 4 * i, tags == 2 && i == 0 ? 0x88a8 : 0x8100);
		put_be16(s->bytes + 14 + 4 * i, (uint16_t)(100 + i));
	}
	s->l3 = 14 + 4 * tags;
	put_be16(s->bytes + s->l3 - 2, v6 ? 0x86dd : 0x0800);
	s->l4 = s->l3 + (v6 ? 40 : 20) + (options ? 8 : 0);
	s->header = s->l4 + (udp ? 8 : options ? 32 : 20);
	s->length = s->header + payload;
	ip = s->bytes + s->l3;
	l4 = s->bytes + s->l4;
	for (unsigned i = 0; i < 32; i++)
		ip[(v6 ? 8 : 12) + i % (v6 ? 32 : 8)] = (uint8_t)(0x11 * i + 3);
	sample_ip(kind, ip);
	sample_l4(kind, l4, payload);
	for (uint32_t i = 0; i < payload; i++)
		s->bytes[s->header + i] = (uint8_t)(i * 7 + (i >> 8) + 1);
	sample_ip_lengths(s, s->bytes, s->length);
	s->asked = (struct virtio_net_hdr){.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
	                                   .csum_start = (uint16_t)s->l4,
	                                   .csum_offset = udp ? 6 : 16,
	                                   .hdr_len = (uint16_t)(s->header + 20)}; // a hint, and wrong
	put_be16(l4 + s->asked.csum_offset, (uint16_t)sample_pseudo(s, s->bytes, s->length - s->l4));
	if (!(kind & SAMPLE_CSUM)) {
		s->asked.gso_type =
		        udp ? OFFLOAD_GSO_UDP_L4 : (v6 ? VIRTIO_NET_HDR_GSO_TCPV6 : VIRTIO_NET_HDR_GSO_TCPV4);
		s->asked.gso_size = gso_size;
	}
}

static inline unsigned sample_segments(const struct sample *s)
{
	uint32_t payload = s->length - s->header;

	return s->kind & SAMPLE_CSUM ? 1 : (payload + s->asked.gso_size - 1) / s->asked.gso_size;
}

// Segment k, with its checksum; of a sample that needs only that, the whole. Returns its length.
static inline uint32_t sample_segment(const struct sample *s, unsigned k, uint8_t *out)
{
	bool udp = s->kind & SAMPLE_UDP, whole = s->kind & SAMPLE_CSUM;
	uint32_t size = whole ? s->length - s->header : s->asked.gso_size, at = s->header + k * size;
	uint32_t payload = RTE_MIN(size, s->length - at), length = s->header + payload;
	uint8_t *ip = out + s->l3, *l4 = out + s->l4, *checksum = l4 + s->asked.csum_offset;
	uint16_t sum;

	memcpy(out, s->bytes, s->header);
	memcpy(out + s->header, s->bytes + at, payload);
	if (!(s->kind & SAMPLE_V6))
		put_be16(ip + 4, (uint16_t)(get_be16(ip + 4) + k));
	sample_ip_lengths(s, out, length);
	if (udp) {
		put_be16(l4 + 4, (uint16_t)(8 + payload));
	} else {
		store32(l4 + 4, rte_cpu_to_be_32(rte_be_to_cpu_32(load32(l4 + 4)) + k * size));
		if (k + 1 < sample_segments(s))
			l4[13] &= (uint8_t) ~(0x08 | 0x01);
		if (k)
			l4[13] &= 0x7f;
	}
	put_be16(checksum, 0);
	sum = (uint16_t)~sample_sum(l4, length - s->l4, sample_pseudo(s, out, length - s->l4));
	put_be16(checksum, sum == 0 && (udp || whole) ? 0xffff : sum);
	return length;
}

// What a receiver got.
struct caught {
	unsigned count, room; // room: frames that are taken in all
	uint8_t accepts;
	bool headers[1024];
	struct virtio_net_hdr header[1024];
	uint32_t at[1024], length[1024], used;
	uint8_t bytes[1 << 20];
};

static inline unsigned catch_frames(void *to, const struct frame *frames,
                                    const struct virtio_net_hdr *headers, unsigned n)
{
	struct caught *c = to;
	unsigned i;

	for (i = 0; i < n && c->count < c->room && c->count < RTE_DIM(c->at); i++) {
		const struct piece room = {c->bytes + c->used, frames[i].length};
		struct scatter piece = {&room, 0}, from = frames[i].at;

		if (frames[i].length > sizeof(c->bytes) - c->used)
			break;
		scatter_copy(&piece, &from, frames[i].length);
		c->headers[c->count] = headers != NULL;
		c->header[c->count] = headers ? headers[i] : (struct virtio_net_hdr){0};
		c->at[c->count] = c->used;
		c->length[c->count++] = frames[i].length;
		c->used += frames[i].length;
	}
	return i;
}
