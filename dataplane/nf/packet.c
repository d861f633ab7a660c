// SPDX-License-Identifier: BSD-3-Clause
#include "packet.h"

#include <rte_icmp.h>
#include <rte_tcp.h>
#include <rte_udp.h>

enum { TAGS_MAX = 2, TYPE_OFFSET = 12, IPV6_MIN_EXTENSION = 8 };

static uint16_t word(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static bool is_tag(uint16_t type)
{
	return type == RTE_ETHER_TYPE_VLAN || type == RTE_ETHER_TYPE_QINQ;
}

// Ethernet and its tags. *type is the EtherType behind them.
static enum packet_fault parse_ethernet(const struct vnf_frame *frame, struct packet *p, uint16_t *type)
{
	unsigned tags = 0;

	p->l3 = RTE_ETHER_HDR_LEN;
	if (frame->length < p->l3)
		return PACKET_RUNT;
	*type = word(frame->data + TYPE_OFFSET);
	for (; is_tag(*type); tags++) {
		if (tags == TAGS_MAX)
			return PACKET_TAGS;
		p->l3 += RTE_VLAN_HLEN;
		if (frame->length < p->l3)
			return PACKET_RUNT;
		*type = word(frame->data + p->l3 - 2);
	}
	return PACKET_FINE;
}

static bool checksum_is_right(const uint8_t *ip, unsigned bytes)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < bytes; i += 2)
		sum += word(ip + i);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16) == 0xffff;
}

// RFC 1812 s5.2.2: these five tests, in this order.
static enum packet_fault parse_ipv4(const struct vnf_frame *frame, struct packet *p)
{
	const uint8_t *ip = frame->data + p->l3;
	unsigned header, total, left = frame->length - p->l3;

	if (left < sizeof(struct rte_ipv4_hdr))
		return PACKET_HEADER_LENGTH;
	header = (ip[0] & 0xfu) * 4;
	total = word(ip + 2);
	if (ip[0] >> 4 != 4)
		return PACKET_VERSION;
	if (header < sizeof(struct rte_ipv4_hdr) || header > left)
		return PACKET_HEADER_LENGTH;
	if (total < header || total > frame->total - p->l3)
		return PACKET_LENGTH;
	if (!checksum_is_right(ip, header))
		return PACKET_CHECKSUM;
	p->version = 4;
	p->protocol = ip[9];
	p->fragment = word(ip + 6) & 0x3fff;
	p->first = (word(ip + 6) & 0x1fff) == 0;
	p->l4 = (uint16_t)(p->l3 + header);
	p->l4_bytes = (uint16_t)(total - header);
	return PACKET_FINE;
}

static bool is_extension(uint8_t next)
{
	return next == IPPROTO_HOPOPTS || next == IPPROTO_ROUTING || next == IPPROTO_FRAGMENT ||
	       next == IPPROTO_DSTOPTS || next == IPPROTO_AH || next == IPPROTO_MH;
}

// Length of the extension header at e: RFC 8200 s4; AH counts in words, less two (RFC 4302 s2.2).
static unsigned extension_bytes(uint8_t kind, const uint8_t *e)
{
	if (kind == IPPROTO_FRAGMENT)
		return IPV6_MIN_EXTENSION;
	return kind == IPPROTO_AH ? (e[1] + 2u) * 4 : (e[1] + 1u) * 8;
}

// Step over extension headers, up to the transport header or to what is cut off by fragmenting.
static enum packet_fault skip_extensions(const struct vnf_frame *frame, struct packet *p)
{
	for (unsigned i = 0; p->first && is_extension(p->protocol); i++) {
		const uint8_t *e = frame->data + p->l4;
		unsigned bytes;

		if (i == PACKET_EXTENSIONS_MAX || (p->protocol == IPPROTO_HOPOPTS && i > 0) ||
		    p->l4_bytes < IPV6_MIN_EXTENSION || frame->length < p->l4 + (unsigned)IPV6_MIN_EXTENSION)
			return PACKET_EXTENSIONS;
		bytes = extension_bytes(p->protocol, e);
		if (bytes > p->l4_bytes || frame->length < p->l4 + bytes)
			return PACKET_EXTENSIONS;
		if (p->protocol == IPPROTO_FRAGMENT) {
			p->fragment = word(e + 2) & 0xfff9; // offset or more to come
			p->first = (word(e + 2) & 0xfff8) == 0;
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
	payload = word(ip +
	               4); // jumbograms (RFC 2675) have 0 here, and are no longer than a frame: not forwarded
	if (payload > frame->total - p->l3 - sizeof(struct rte_ipv6_hdr))
		return PACKET_LENGTH;
	p->version = 6;
	p->protocol = ip[6];
	p->fragment = false;
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
	enum packet_fault fault;
	uint16_t type;

	fault = parse_ethernet(frame, p, &type);
	if (fault != PACKET_FINE)
		return fault;
	if (type == RTE_ETHER_TYPE_IPV4)
		fault = parse_ipv4(frame, p);
	else if (type == RTE_ETHER_TYPE_IPV6)
		fault = parse_ipv6(frame, p);
	else
		return PACKET_NOT_IP;
	return fault == PACKET_FINE ? parse_transport(frame, p) : fault;
}
