// SPDX-License-Identifier: BSD-3-Clause
#include "base/packet.h"

#include <rte_icmp.h>
#include <rte_tcp.h>
#include <rte_udp.h>

enum {
	IPV6_MIN_EXTENSION = 8,
	PROTOCOL_HIP = 139, // not in netinet/in.h
	PROTOCOL_SHIM6 = 140,
};

// Whether a fragment ends beyond what a datagram can be, header included: no end host could put it together.
static bool is_beyond(unsigned header, unsigned at, unsigned bytes)
{
	return header + at + bytes > UINT16_MAX;
}

// The tests of RFC 1812 s5.2.2. The checksum comes last, not second: the version and the header's length say
// what it covers.
static enum packet_fault parse_ipv4(const struct vnf_frame *frame, struct packet *p)
{
	const uint8_t *ip = frame->data + p->l3;
	unsigned header, total, fragment, left = frame->length - p->l3;

	if (left < sizeof(struct rte_ipv4_hdr))
		return PACKET_HEADER_LENGTH;
	header = (ip[0] & 0xfu) * 4;
	total = get_be16(ip + 2);
	if (ip[0] >> 4 != 4)
		return PACKET_VERSION;
	if (header < sizeof(struct rte_ipv4_hdr) || header > left)
		return PACKET_HEADER_LENGTH;
	if (total < header || total > frame->total - p->l3)
		return PACKET_LENGTH;
	if (!checksum_is_right(ip, header))
		return PACKET_CHECKSUM;
	fragment = get_be16(ip + 6) & 0x3fff;
	p->version = 4;
	p->protocol = ip[9];
	p->fragment = fragment != 0;
	p->fragment_at = (uint16_t)((fragment & 0x1fff) * 8);
	p->first = p->fragment_at == 0;
	if (is_beyond(header, p->fragment_at, total - header))
		return PACKET_LENGTH;
	p->l4 = (uint16_t)(p->l3 + header);
	p->l4_bytes = (uint16_t)(total - header);
	return PACKET_FINE;
}

// RFC 8200 s4.1, RFC 6275, RFC 7401, RFC 5533: what IANA lists as extension headers and is not encrypted.
static bool is_extension(uint8_t next)
{
	return next == IPPROTO_HOPOPTS || next == IPPROTO_ROUTING || next == IPPROTO_FRAGMENT ||
	       next == IPPROTO_DSTOPTS || next == IPPROTO_AH || next == IPPROTO_MH || next == PROTOCOL_HIP ||
	       next == PROTOCOL_SHIM6;
}

// Length of the extension header at e: RFC 8200 s4. AH counts in words, less two, has 12 bytes at least, and
// is padded to eights in IPv6 (RFC 4302 s2.2, s2.6); 0 for another.
static unsigned extension_bytes(uint8_t kind, const uint8_t *e)
{
	if (kind == IPPROTO_FRAGMENT)
		return IPV6_MIN_EXTENSION;
	if (kind == IPPROTO_AH)
		return e[1] >= 2 && e[1] % 2 == 0 ? (e[1] + 2u) * 4 : 0;
	return (e[1] + 1u) * 8;
}

// What a fragment header says; false if its datagram would be too long. What is before the fragment header is
// in every fragment and counts (RFC 8200 s4.5).
static bool fragment_is_sound(const uint8_t *e, struct packet *p)
{
	unsigned before = p->l4 - p->l3 - (unsigned)sizeof(struct rte_ipv6_hdr);

	p->fragment = get_be16(e + 2) & 0xfff9; // offset or more to come; neither: an atomic one (RFC 6946)
	p->fragment_at = get_be16(e + 2) & 0xfff8;
	p->first = p->fragment_at == 0;
	return !is_beyond(before, p->fragment_at, p->l4_bytes - (unsigned)IPV6_MIN_EXTENSION);
}

// Step over extension headers, up to the transport header or to what is cut off by fragmenting.
static enum packet_fault skip_extensions(const struct vnf_frame *frame, struct packet *p)
{
	bool fragment_header = false;

	for (unsigned i = 0; p->first && is_extension(p->protocol); i++) {
		const uint8_t *e = frame->data + p->l4;
		unsigned bytes;

		if (i == PACKET_EXTENSIONS_MAX || (p->protocol == IPPROTO_HOPOPTS && i > 0) ||
		    p->l4_bytes < IPV6_MIN_EXTENSION || frame->length < p->l4 + (unsigned)IPV6_MIN_EXTENSION)
			return PACKET_EXTENSIONS;
		bytes = extension_bytes(p->protocol, e);
		if (bytes == 0 || bytes > p->l4_bytes || frame->length < p->l4 + bytes)
			return PACKET_EXTENSIONS;
		if (p->protocol == IPPROTO_FRAGMENT) {
			if (fragment_header)
				return PACKET_EXTENSIONS;
			if (!fragment_is_sound(e, p))
				return PACKET_LENGTH;
			fragment_header = true;
		}
		p->protocol = e[0];
		p->l4 = (uint16_t)(p->l4 + bytes);
		p->l4_bytes = (uint16_t)(p->l4_bytes - bytes);
	}
	return PACKET_FINE;
}

static enum packet_fault parse_ipv6(const struct vnf_frame *frame, struct packet *p)
{
	const uint8_t *ip = frame->data + p->l3;
	unsigned payload;

	if (frame->length - p->l3 < sizeof(struct rte_ipv6_hdr))
		return PACKET_HEADER_LENGTH;
	if (ip[0] >> 4 != 6)
		return PACKET_VERSION;
	payload = get_be16(ip + 4);
	if (payload > frame->total - p->l3 - sizeof(struct rte_ipv6_hdr))
		return PACKET_LENGTH;
	p->version = 6;
	p->protocol = ip[6];
	p->fragment = false;
	p->fragment_at = 0;
	p->first = true;
	p->l4 = (uint16_t)(p->l3 + sizeof(struct rte_ipv6_hdr));
	p->l4_bytes = (uint16_t)payload;
	return skip_extensions(frame, p);
}

// Bytes of the transport header that everything may be asked of; 0 for one that nobody looks at.
static unsigned transport_bytes(const struct packet *p)
{
	switch (p->protocol) {
	case IPPROTO_UDP:
	case IPPROTO_UDPLITE:
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		return sizeof(struct rte_udp_hdr);
	case IPPROTO_TCP:
		return sizeof(struct rte_tcp_hdr);
	case IPPROTO_SCTP:
	case IPPROTO_DCCP:
		return 12;
	default:
		return 0;
	}
}

static enum packet_fault parse_transport(const struct vnf_frame *frame, struct packet *p)
{
	unsigned bytes = transport_bytes(p);

	p->has_ports = false;
	p->src_port = p->dst_port = 0;
	if (!p->first || bytes == 0)
		return PACKET_FINE;
	if (p->l4_bytes < bytes || frame->length < p->l4 + bytes)
		return PACKET_TRUNCATED;
	p->has_ports = p->protocol != IPPROTO_ICMP && p->protocol != IPPROTO_ICMPV6;
	if (p->has_ports) {
		memcpy(&p->src_port, frame->data + p->l4, sizeof(p->src_port));
		memcpy(&p->dst_port, frame->data + p->l4 + 2, sizeof(p->dst_port));
	}
	return PACKET_FINE;
}

enum packet_fault packet_parse_any(const struct vnf_frame *frame, struct packet *p)
{
	rte_be16_t type_be;
	enum packet_fault fault = packet_ethernet(frame->data, frame->length, &p->l3, &type_be);

	if (fault != PACKET_FINE)
		return fault;
	if (type_be == RTE_BE16(RTE_ETHER_TYPE_IPV4))
		fault = parse_ipv4(frame, p);
	else if (type_be == RTE_BE16(RTE_ETHER_TYPE_IPV6))
		fault = parse_ipv6(frame, p);
	else
		return PACKET_NOT_IP;
	return fault == PACKET_FINE ? parse_transport(frame, p) : fault;
}
