// SPDX-License-Identifier: BSD-3-Clause
// Packets that are not plain, and those that do not leave: why, and which ICMP error their senders are owed.
#include "tasks/l3fwd/l3fwd.h"

enum {
	DF = 0x4000,
	OPTION_END = 0, // RFC 791 s3.1
	OPTION_NOP = 1,
	OPTION_LSRR = 131,
	OPTION_SSRR = 137,
};

// --- Addresses -------------------------------------------------------------------------------------------

enum scope { SCOPE_FINE, SCOPE_MARTIAN, SCOPE_LINK };

// RFC 1812 s5.3.7, s4.2.2.11; RFC 3927 s2.7 for what is on one link. 240/4 has the broadcast address in it.
static enum scope scope4(rte_be32_t address)
{
	uint32_t a = rte_be_to_cpu_32(address);

	if (a >> 24 == 0 || a >> 24 == 127 || a >> 24 >= 224)
		return SCOPE_MARTIAN;
	return a >> 16 == 0xa9fe ? SCOPE_LINK : SCOPE_FINE;
}

// RFC 4291 s2.5.2 (::), s2.5.3 (::1), s2.7 (ff00::/8), s2.5.6 (fe80::/10).
static enum scope scope6(const uint8_t address[16])
{
	static const uint8_t zeros[15];

	if (address[0] == 0xff || (memcmp(address, zeros, sizeof(zeros)) == 0 && address[15] <= 1))
		return SCOPE_MARTIAN;
	return address[0] == 0xfe && (address[1] & 0xc0) == 0x80 ? SCOPE_LINK : SCOPE_FINE;
}

// --- ICMP ------------------------------------------------------------------------------------------------

// RFC 1812 s4.3.2.7, RFC 4443 s2.4 (e): none for an error, nor for a later fragment of IPv4. Of a later
// fragment of ICMPv6 it is not known what it is.
static bool must_be_silent(const struct packet *p, const uint8_t *frame)
{
	bool icmp = p->protocol == (p->version == 4 ? IPPROTO_ICMP : IPPROTO_ICMPV6);
	uint8_t type = icmp && p->first ? frame[p->l4] : 0; // packet_parse() has seen to it that it is there

	if (p->version == 6)
		return icmp && (type < 128 || type == 137);
	return !p->first || (icmp && (type == 3 || type == 4 || type == 5 || type == 11 || type == 12));
}

static void owe(struct l3fwd *l, enum l3fwd_icmp what, const struct packet *p, const uint8_t *frame)
{
	l->icmp[must_be_silent(p, frame) ? L3FWD_SUPPRESSED : what]++;
}

// --- What is not plain -----------------------------------------------------------------------------------

// RFC 7126 s4.3, s4.4: source routes are not followed. Returns 0 or a reason.
static uint8_t options_fault(const uint8_t *ip)
{
	unsigned end = (ip[0] & 0xfu) * 4, at = sizeof(struct rte_ipv4_hdr);

	while (at < end && ip[at] != OPTION_END) {
		if (ip[at] == OPTION_LSRR || ip[at] == OPTION_SSRR)
			return L3FWD_SOURCE_ROUTE;
		if (ip[at] == OPTION_NOP) {
			at++;
			continue;
		}
		if (at + 1 >= end || ip[at + 1] < 2 || at + ip[at + 1] > end)
			return L3FWD_BAD_OPTIONS;
		at += ip[at + 1];
	}
	return 0;
}

// Whether a packet may be forwarded from where and to where it goes: 0 or a reason.
static uint8_t addresses_fault(struct l3fwd *l, const struct packet *p, const uint8_t *frame)
{
	const uint8_t *ip = frame + p->l3;
	enum scope from, to;

	if (p->version == 4) {
		from = scope4(((const struct rte_ipv4_hdr *)ip)->src_addr);
		to = scope4(((const struct rte_ipv4_hdr *)ip)->dst_addr);
	} else {
		from = scope6(ip + offsetof(struct rte_ipv6_hdr, src_addr));
		to = scope6(ip + offsetof(struct rte_ipv6_hdr, dst_addr));
	}
	if (from == SCOPE_MARTIAN)
		return L3FWD_MARTIAN_SOURCE;
	if (to == SCOPE_MARTIAN)
		return L3FWD_MARTIAN_DESTINATION;
	if (p->version == 6 && from == SCOPE_LINK && to == SCOPE_FINE)
		owe(l, L3FWD_BEYOND_SCOPE, p, frame); // RFC 4443 s3.1, code 2
	return from == SCOPE_LINK || to == SCOPE_LINK ? L3FWD_LINK_LOCAL : 0;
}

uint8_t l3fwd_classify(struct l3fwd *l, unsigned in, const struct vnf_frame *frame, struct packet *p)
{
	enum packet_fault parsed = packet_parse(frame, p);
	uint8_t fault;

	if (parsed != PACKET_FINE)
		return (uint8_t)(VNF_DROP | parsed);
	if (frame->data[0] & 1)
		return VNF_DROP | L3FWD_L2_GROUP;
	if ((l3fwd_mac(frame->data) ^ l->own[in]) & l->own_mask)
		return VNF_DROP | L3FWD_L2_OTHER;
	fault = addresses_fault(l, p, frame->data);
	if (fault == 0 && p->version == 4)
		fault = options_fault(frame->data + p->l3);
	if (fault == L3FWD_BAD_OPTIONS)
		owe(l, L3FWD_PARAMETER_PROBLEM, p, frame->data);
	return fault ? VNF_DROP | fault : L3FWD_FINE;
}

uint8_t l3fwd_refuse(struct l3fwd *l, const struct vnf_frame *frame, uint8_t verdict)
{
	struct packet p;
	enum packet_fault fault = packet_parse(frame, &p); // once more: fine, unless a peer writes meanwhile
	const uint8_t *ip;

	if (fault != PACKET_FINE)
		return (uint8_t)(VNF_DROP | fault);
	ip = frame->data + p.l3;
	if (verdict == (VNF_DROP | L3FWD_NO_ROUTE))
		owe(l, L3FWD_NET_UNREACHABLE, &p, frame->data);
	if (verdict & VNF_DROP)
		return verdict;
	if (ip[p.version == 4 ? 8 : 7] <= 1) {
		owe(l, L3FWD_TIME_EXCEEDED, &p, frame->data);
		return VNF_DROP | L3FWD_TTL_EXPIRED;
	}
	if (p.version == 6) {
		owe(l, L3FWD_PACKET_TOO_BIG, &p, frame->data);
		return VNF_DROP | L3FWD_TOO_BIG;
	}
	if (!(((const struct rte_ipv4_hdr *)ip)->fragment_offset & RTE_BE16(DF)))
		return VNF_DROP | L3FWD_UNFRAGMENTED;
	owe(l, L3FWD_FRAGMENTATION_NEEDED, &p, frame->data);
	return VNF_DROP | L3FWD_TOO_BIG;
}
