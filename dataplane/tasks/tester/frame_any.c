// SPDX-License-Identifier: BSD-3-Clause
// Tester frames with any headers: IPv4 or IPv6, UDP or TCP, up to two VLAN tags. A frame is intact if its
// lengths say what its length is, if the IPv4 header and the transport's sum are right (RFC 791, 768, 9293,
// 8200 s8.1) and if the magic is where the payload begins; the ports may be anybody's, so that a NAT, or a
// replayed capture, may have others.
//
// No checksum covers a VLAN tag's priority and number, nor the traffic class, flow label and hop limit of
// IPv6: who rewrites these does no damage.
#include <rte_ether.h>
#include <rte_ip.h>

#include "tasks/tester/frame.h"
#include "tasks/tester/frame_load.h"

enum {
	TYPE_BYTES = 2,
	UDP_BYTES = 8,
	TCP_BYTES = 20,
	IPV6_BYTES = 40,
	PORTS_BYTES = 4,
	FRAGMENT_BITS = 0x3fff, // more fragments, or an offset
};

#define PORT_BE  RTE_BE16(FRAME_UDP_PORT)
#define MAGIC_BE RTE_BE16(FRAME_MAGIC)

void frame_fields_read(const uint8_t *own, struct frame_fields *fields)
{
	fields->stream = own[FRAME_OWN_STREAM];
	fields->flags = own[FRAME_OWN_FLAGS];
	fields->epoch = rte_be_to_cpu_16(load16(own + FRAME_OWN_EPOCH));
	fields->sequence = rte_be_to_cpu_32(load32(own + FRAME_OWN_SEQUENCE));
	fields->tsc = rte_be_to_cpu_64(load64(own + FRAME_OWN_TSC));
}

static inline bool is_tag(uint16_t type_be)
{
	return type_be == RTE_BE16(RTE_ETHER_TYPE_VLAN) || type_be == RTE_BE16(RTE_ETHER_TYPE_QINQ);
}

static bool locate_ipv4(const uint8_t *ip, uint32_t length, struct frame_layout *at)
{
	uint8_t vhl;

	if (length < sizeof(struct rte_ipv4_hdr))
		return false;
	vhl = ip[0];
	at->version = 4;
	at->protocol = ip[offsetof(struct rte_ipv4_hdr, next_proto_id)];
	at->l4 = (uint16_t)(at->l3 + (vhl & 15) * 4);
	return vhl >> 4 == 4 && (vhl & 15) >= 5 &&
	       !(load16(ip + offsetof(struct rte_ipv4_hdr, fragment_offset)) & RTE_BE16(FRAGMENT_BITS));
}

static bool locate_ipv6(const uint8_t *ip, uint32_t length, struct frame_layout *at)
{
	if (length < IPV6_BYTES)
		return false;
	at->version = 6;
	at->protocol = ip[offsetof(struct rte_ipv6_hdr, proto)];
	at->l4 = at->l3 + IPV6_BYTES;
	return ip[0] >> 4 == 6;
}

// The payload begins behind the UDP header, or where TCP says.
static bool locate_payload(const uint8_t *data, uint32_t length, struct frame_layout *at)
{
	unsigned words;

	if (length < (uint32_t)at->l4 + PORTS_BYTES)
		return false;
	at->own = at->l4 + UDP_BYTES;
	if (at->protocol == IPPROTO_UDP)
		return true;
	words = length > at->l4 + 12u ? data[at->l4 + 12] >> 4 : TCP_BYTES / 4;
	at->own = (uint16_t)(at->l4 + words * 4);
	return at->protocol == IPPROTO_TCP && words >= TCP_BYTES / 4;
}

bool frame_locate(const uint8_t *data, uint32_t length, struct frame_layout *at)
{
	uint16_t type_be;

	at->l3 = RTE_ETHER_HDR_LEN;
	if (length < at->l3)
		return false;
	type_be = load16(data + at->l3 - TYPE_BYTES);
	for (unsigned tags = 0; is_tag(type_be) && tags < FRAME_TAGS_MAX; tags++) {
		at->l3 += FRAME_TAG_BYTES;
		if (length < at->l3)
			return false;
		type_be = load16(data + at->l3 - TYPE_BYTES);
	}
	if (type_be == RTE_BE16(RTE_ETHER_TYPE_IPV4))
		return locate_ipv4(data + at->l3, length - at->l3, at) && locate_payload(data, length, at);
	return type_be == RTE_BE16(RTE_ETHER_TYPE_IPV6) && locate_ipv6(data + at->l3, length - at->l3, at) &&
	       locate_payload(data, length, at);
}

static bool network_fits(const uint8_t *data, uint32_t length, const struct frame_layout *at)
{
	const uint8_t *ip = data + at->l3;

	if (at->version == 6)
		return rte_be_to_cpu_16(load16(ip + offsetof(struct rte_ipv6_hdr, payload_len))) ==
		       length - at->l4;
	return rte_be_to_cpu_16(load16(ip + offsetof(struct rte_ipv4_hdr, total_length))) ==
	               length - at->l3 &&
	       frame_fold64(frame_sum16(ip, at->l4 - at->l3)) == 0xffff;
}

// The sum of the transport layer with its pseudo header. RFC 768: a checksum of 0 says that there is none.
static bool transport_fits(const uint8_t *data, uint32_t length, const struct frame_layout *at)
{
	const uint8_t *l4 = data + at->l4, *ip = data + at->l3;
	uint32_t bytes = length - at->l4;
	uint64_t sum = at->version == 6 ? frame_sum16(ip + offsetof(struct rte_ipv6_hdr, src_addr), 32)
	                                : frame_sum16(ip + offsetof(struct rte_ipv4_hdr, src_addr), 8);

	if (at->protocol == IPPROTO_UDP && (rte_be_to_cpu_16(load16(l4 + 4)) != bytes || load16(l4 + 6) == 0))
		return false;
	sum += (uint64_t)(at->protocol << 8) + rte_cpu_to_be_16((uint16_t)bytes);
	return frame_fold64(sum + frame_sum16(l4, bytes)) == 0xffff;
}

// A port at which our magic would follow, whatever is said before it: the payload begins at own.
static bool port_before(const uint8_t *data, uint32_t own)
{
	return load16(data + own - UDP_BYTES + 2) == PORT_BE || load16(data + own - TCP_BYTES + 2) == PORT_BE;
}

// Something in the headers is damaged, so they do not say where the magic is. Returns where it is, at one of
// the places at which we send it, or 0. Behind any but plain headers the port has to be there too: two bytes
// alone are found in foreign frames.
static uint32_t own_guess(const uint8_t *data, uint32_t length)
{
	static const uint8_t headers[] = {28, 40, 48, 60}; // IPv4 or IPv6, UDP or TCP

	if (length >= FRAME_OFFSET_STREAM && load16(data + FRAME_OFFSET_MAGIC) == MAGIC_BE)
		return FRAME_OFFSET_MAGIC;
	for (unsigned i = 0; i < 4 * (FRAME_TAGS_MAX + 1); i++) {
		uint32_t own = RTE_ETHER_HDR_LEN + headers[i % 4] + i / 4 * FRAME_TAG_BYTES;

		if (length >= own + FRAME_OWN_STREAM && load16(data + own) == MAGIC_BE &&
		    port_before(data, own))
			return own;
	}
	return 0;
}

// Slower than the check it follows, and only for what that check refused.
static __attribute__((noinline, cold)) enum frame_class
refused(const uint8_t *data, uint32_t length, const struct frame_layout *at, struct frame_fields *fields)
{
	bool port = at && load16(data + at->l4 + 2) == PORT_BE;
	uint32_t own = 0;

	if (at && length >= (uint32_t)at->own + FRAME_OWN_STREAM && load16(data + at->own) == MAGIC_BE)
		own = at->own;
	if (own == 0)
		own = own_guess(data, length);
	fields->stream =
	        own && length > own + FRAME_OWN_STREAM ? data[own + FRAME_OWN_STREAM] : FRAME_STREAM_NONE;
	return own || port ? FRAME_CORRUPT : FRAME_FOREIGN;
}

enum frame_class frame_classify_any(const uint8_t *data, uint32_t length, struct frame_fields *fields)
{
	struct frame_layout at;

	if (!frame_locate(data, length, &at))
		return refused(data, length, NULL, fields);
	if (length > FRAME_TAGGED_MAX || length < (uint32_t)at.own + FRAME_OWN_BYTES ||
	    load16(data + at.own) != MAGIC_BE || !network_fits(data, length, &at) ||
	    !transport_fits(data, length, &at))
		return refused(data, length, &at, fields);
	frame_fields_read(data + at.own, fields);
	return FRAME_INTACT;
}

bool frame_is_probe(const uint8_t *data, uint32_t length, struct frame_fields *fields)
{
	struct frame_layout at;

	if (!frame_locate(data, length, &at) || length < (uint32_t)at.own + FRAME_OWN_BYTES ||
	    load16(data + at.own) != MAGIC_BE || !(data[at.own + FRAME_OWN_FLAGS] & FRAME_FLAG_PROBE))
		return false;
	frame_fields_read(data + at.own, fields);
	return true;
}
