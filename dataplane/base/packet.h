// SPDX-License-Identifier: BSD-3-Clause
// Where the headers of a frame are, and whether they are what their RFCs say: what every network function
// that looks beyond Ethernet asks first. Up to two VLAN tags (802.1Q, 802.1ad), IPv4 with options, IPv6 with
// extension headers, and the ports of UDP, TCP and SCTP.
//
// Pure; reads what the frame has (struct vnf_frame) and no more. Frames are hostile. Headers have to lie in the frame's
// first piece (length), payload need not. Not covered: MPLS, PPPoE, tunnels, what is inside ESP and behind AH
// in IPv4, lengths and checksums that the transport layer has of its own, jumbograms (RFC 2675).
#pragma once

#include <netinet/in.h>
#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <stdbool.h>
#include <string.h>

#include "base/checksum.h"

// A frame without FCS, in memory that may be written. length bytes of it lie at data; if it is longer than
// that (total), the rest is elsewhere, and whatever reads beyond must do without.
struct vnf_frame {
	uint8_t *data;
	uint32_t length, total;
};

// Why a frame is no packet. The first drop reasons of every kind that uses this: its own begin at
// PACKET_FAULTS.
enum packet_fault {
	PACKET_RUNT,          // ends in the Ethernet header or in a tag
	PACKET_TAGS,          // more than two VLAN tags
	PACKET_NOT_IP,        // another EtherType
	PACKET_VERSION,       // IP version that is not its EtherType's
	PACKET_HEADER_LENGTH, // IPv4 header shorter than 20 bytes, or any IP header longer than the frame
	PACKET_LENGTH,        // the datagram is longer than the frame or shorter than its header, or its
	                      // fragment ends beyond 65535 bytes (RFC 791 s3.1, RFC 8200 s4.5)
	PACKET_CHECKSUM,      // of the IPv4 header (RFC 1812 s5.2.2)
	PACKET_EXTENSIONS, // IPv6 extension headers that do not end, are too many, or out of place (RFC 8200
	                   // s4.1): hop-by-hop options not first, two fragment headers, an AH of bad length
	PACKET_TRUNCATED,  // first fragment, or whole datagram, without a whole UDP, TCP, SCTP or ICMP header
	PACKET_FAULTS,
	PACKET_FINE = PACKET_FAULTS,
};

enum { PACKET_EXTENSIONS_MAX = 8, PACKET_TAGS_MAX = 2 };

// Step over the Ethernet header and up to PACKET_TAGS_MAX VLAN tags of length bytes. Sets *l3 to what is behind them, and
// *type_be to the EtherType there. Returns PACKET_FINE, PACKET_RUNT or PACKET_TAGS; *l3 and *type_be are those of the last
// header that is there.
static inline enum packet_fault packet_ethernet(const uint8_t *data, uint32_t length, uint16_t *l3,
                                                rte_be16_t *type_be)
{
	*l3 = RTE_ETHER_HDR_LEN;
	*type_be = 0;
	if (length < *l3)
		return PACKET_RUNT;
	*type_be = load16(data + *l3 - sizeof(*type_be));
	for (unsigned tags = 0;
	     *type_be == RTE_BE16(RTE_ETHER_TYPE_VLAN) || *type_be == RTE_BE16(RTE_ETHER_TYPE_QINQ); tags++) {
		if (tags == PACKET_TAGS_MAX)
			return PACKET_TAGS;
		if (length < *l3 + (uint32_t)RTE_VLAN_HLEN)
			return PACKET_RUNT;
		*l3 += RTE_VLAN_HLEN;
		*type_be = load16(data + *l3 - sizeof(*type_be));
	}
	return PACKET_FINE;
}

struct packet {
	uint16_t l3, l4;   // offsets in the frame. l4: behind all IP headers
	uint16_t l4_bytes; // of the datagram from l4 on, as IP counts: padding of the frame is not in it
	uint8_t version;   // 4 or 6
	uint8_t protocol;  // at l4
	bool fragment;     // not the whole datagram
	bool first;        // the transport header is here: not a fragment, or the first one
	bool has_ports;    // first, and UDP, UDP-Lite, TCP, SCTP or DCCP
	rte_be16_t src_port, dst_port; // 0 without ports
	uint16_t fragment_at;          // where this fragment is in the datagram's payload, in bytes
};

// Take a frame apart by the general way; packet_parse() is quicker where it can be. Returns PACKET_FINE, or
// why not; then *p is undefined.
enum packet_fault packet_parse_any(const struct vnf_frame *frame, struct packet *p);

// Whether it is IPv4 without tags, options and fragments, UDP or TCP, sound: nearly every packet. Then its IP
// header is at RTE_ETHER_HDR_LEN, and 20 bytes behind it the ports; packet_parse_any() would say the same.
static inline bool packet_is_plain(const struct vnf_frame *frame)
{
	const uint8_t *ip = frame->data + RTE_ETHER_HDR_LEN;
	const struct rte_ipv4_hdr *header = (const struct rte_ipv4_hdr *)ip;
	uint16_t length;

	if (unlikely(frame->length < RTE_ETHER_HDR_LEN + 40))
		return false;
	length = rte_be_to_cpu_16(header->total_length);
	return likely(load16(frame->data + 12) == RTE_BE16(RTE_ETHER_TYPE_IPV4) &&
	              header->version_ihl == RTE_IPV4_VHL_DEF &&
	              !(header->fragment_offset & RTE_BE16(0x3fff)) &&
	              length <= frame->total - RTE_ETHER_HDR_LEN &&
	              ((header->next_proto_id == IPPROTO_UDP && length >= 28) ||
	               (header->next_proto_id == IPPROTO_TCP && length >= 40)) &&
	              checksum_ipv4_is_right(ip));
}

// The same, and where everything is.
static inline bool packet_parse_plain(const struct vnf_frame *frame, struct packet *p)
{
	const uint8_t *ip = frame->data + RTE_ETHER_HDR_LEN;
	const struct rte_ipv4_hdr *header = (const struct rte_ipv4_hdr *)ip;
	uint32_t ports;

	if (unlikely(!packet_is_plain(frame)))
		return false;
	memcpy(&ports, ip + 20, sizeof(ports));
	*p = (struct packet){
	        .l3 = RTE_ETHER_HDR_LEN,
	        .l4 = RTE_ETHER_HDR_LEN + 20,
	        .l4_bytes = (uint16_t)(rte_be_to_cpu_16(header->total_length) - 20),
	        .version = 4,
	        .protocol = header->next_proto_id,
	        .first = true,
	        .has_ports = true,
	        .src_port = (rte_be16_t)ports,
	        .dst_port = (rte_be16_t)(ports >> 16),
	};
	return true;
}

static inline enum packet_fault packet_parse(const struct vnf_frame *frame, struct packet *p)
{
	return likely(packet_parse_plain(frame, p)) ? PACKET_FINE : packet_parse_any(frame, p);
}

// Take one from the TTL of an IPv4 header, whose checksum follows (RFC 1624; the TTL is the upper byte of its
// word). The TTL is not 0.
static inline void packet_ipv4_decrement_ttl(struct rte_ipv4_hdr *ip)
{
	uint32_t sum = (uint32_t)ip->hdr_checksum + RTE_BE16(0x0100);

	ip->hdr_checksum = (rte_be16_t)(sum + (sum >= 0xffff));
	ip->time_to_live--;
}
