// SPDX-License-Identifier: BSD-3-Clause
// ICMP through the NAT (RFC 5508): queries by their identifier, and errors by the packet that they are about,
// which is translated back (RFC 3022 s4.3), with every checksum in it. An error neither refreshes a session
// nor ends one (REQ-6). What is rewritten is rare, so checksums of ICMP are made from scratch.
#include <arpa/inet.h>
#include <rte_tcp.h>
#include <rte_udp.h>

#include "tasks/nat44/nat44.h"

enum {
	ECHO_REPLY = 0,
	UNREACHABLE = 3,
	ECHO_REQUEST = 8,
	TIME_EXCEEDED = 11,
	PARAMETER_PROBLEM = 12,
	TIMESTAMP_REQUEST = 13,
	TIMESTAMP_REPLY = 14,
	ICMP_HEADER = 8,
	OFFSET_CHECKSUM = 2,
	OFFSET_ID = 4,
	OFFSET_MASK = 0x1fff,
};

static bool is_error(uint8_t type)
{
	return type == UNREACHABLE || type == TIME_EXCEEDED || type == PARAMETER_PROBLEM;
}

static bool is_request(uint8_t type)
{
	return type == ECHO_REQUEST || type == TIMESTAMP_REQUEST;
}

static bool is_reply(uint8_t type)
{
	return type == ECHO_REPLY || type == TIMESTAMP_REPLY;
}

static uint16_t load(const uint8_t *at)
{
	uint16_t v;

	memcpy(&v, at, sizeof(v));
	return v;
}

static void store(uint8_t *at, uint16_t v)
{
	memcpy(at, &v, sizeof(v));
}

static struct rte_ipv4_hdr *ip_of(const struct vnf_frame *frame, const struct packet *p)
{
	return (struct rte_ipv4_hdr *)(frame->data + p->l3);
}

// --- Queries ---------------------------------------------------------------------------------------------

static bool is_whole(const struct vnf_frame *frame, const struct packet *p)
{
	return frame->length >= (uint32_t)p->l4 + p->l4_bytes;
}

// One that was wrong stays as wrong as it was, for who receives it to see.
static void id_write(const struct vnf_frame *frame, const struct packet *p, rte_be16_t id)
{
	uint8_t *icmp = frame->data + p->l4;
	bool right = is_whole(frame, p) && rte_raw_cksum(icmp, p->l4_bytes) == 0xffff;
	uint16_t changed = packet_checksum_change(load(icmp + OFFSET_CHECKSUM), load(icmp + OFFSET_ID), id);

	store(icmp + OFFSET_ID, id);
	store(icmp + OFFSET_CHECKSUM, right ? 0 : changed);
	if (right)
		store(icmp + OFFSET_CHECKSUM, (uint16_t)~rte_raw_cksum(icmp, p->l4_bytes));
}

static uint8_t query_out(struct nat44 *nat, const struct vnf_frame *frame, const struct packet *p,
                         uint64_t now_tsc)
{
	struct rte_ipv4_hdr *ip = ip_of(frame, p);
	uint64_t key = nat44_key(ip->src_addr, load(frame->data + p->l4 + OFFSET_ID), NAT44_ICMP);
	struct nat44_session *s = nat44_find_inside(nat, &nat->buckets[nat44_hash(nat, key)], key, now_tsc);
	enum nat44_drop drop;

	if (nat44_address_find(nat, ip->dst_addr) >= 0)
		return VNF_DROP | NAT44_NO_MAPPING; // nobody there answers
	if (!s)
		s = nat44_create(nat, key, now_tsc, &drop);
	if (!s)
		return VNF_DROP | (uint8_t)drop;
	nat44_refresh(nat, s, now_tsc);
	ip->src_addr = s->outside_ip;
	ip->hdr_checksum = nat44_checksum(ip->hdr_checksum, s->l3_out);
	id_write(frame, p, s->outside_port);
	return NAT44_OUTSIDE;
}

static uint8_t query_in(struct nat44 *nat, const struct vnf_frame *frame, const struct packet *p,
                        unsigned address, uint64_t now_tsc)
{
	struct rte_ipv4_hdr *ip = ip_of(frame, p);
	const struct nat44_ports *ports = &nat->addresses[address].ports[NAT44_ICMP];
	struct nat44_session *s =
	        nat44_find_outside(nat, &ports->session[load(frame->data + p->l4 + OFFSET_ID)], now_tsc);

	if (!s)
		return VNF_DROP | NAT44_NO_MAPPING;
	ip->dst_addr = nat44_key_ip(s->key);
	ip->hdr_checksum = nat44_checksum(ip->hdr_checksum, s->l3_in);
	id_write(frame, p, nat44_key_port(s->key));
	return NAT44_INSIDE;
}

// --- The packet in an error ------------------------------------------------------------------------------

struct embedded {
	struct rte_ipv4_hdr *ip;
	uint8_t *l4;
	unsigned l4_bytes; // that are there: 8 at least
	enum nat44_protocol protocol;
	rte_be16_t src_port, dst_port; // an ICMP query has its identifier as both
};

static bool transport_read(struct embedded *e, bool sent)
{
	e->src_port = load(e->l4);
	e->dst_port = load(e->l4 + 2);
	switch (e->ip->next_proto_id) {
	case IPPROTO_UDP:
		e->protocol = NAT44_UDP;
		return true;
	case IPPROTO_TCP:
		e->protocol = NAT44_TCP;
		return true;
	case IPPROTO_ICMP:
		e->protocol = NAT44_ICMP;
		e->src_port = e->dst_port = load(e->l4 + OFFSET_ID);
		return sent ? is_request(e->l4[0]) : is_reply(e->l4[0]);
	default:
		return false;
	}
}

// RFC 5508 REQ-3: checksums of the error and of the header in it, past options, and no other checksum. sent:
// the packet in it was sent from inside; else it was received there.
static bool embedded_read(const struct vnf_frame *frame, const struct packet *p, bool sent,
                          struct embedded *e)
{
	uint8_t *icmp = frame->data + p->l4;
	unsigned left = p->l4_bytes - ICMP_HEADER, header;

	if (!is_whole(frame, p) || rte_raw_cksum(icmp, p->l4_bytes) != 0xffff ||
	    left < sizeof(struct rte_ipv4_hdr))
		return false;
	e->ip = (struct rte_ipv4_hdr *)(icmp + ICMP_HEADER);
	header = (e->ip->version_ihl & 0xfu) * 4;
	if (e->ip->version_ihl >> 4 != 4 || header < sizeof(*e->ip) || left < header + 8 ||
	    rte_raw_cksum(e->ip, header) != 0xffff || (ntohs(e->ip->fragment_offset) & OFFSET_MASK))
		return false;
	e->l4 = (uint8_t *)e->ip + header;
	e->l4_bytes = left - header;
	return transport_read(e, sent);
}

static void udp_change(struct embedded *e, uint16_t delta)
{
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)e->l4;

	if (!udp->dgram_cksum)
		return;
	udp->dgram_cksum = nat44_checksum(udp->dgram_cksum, delta);
	if (!udp->dgram_cksum)
		udp->dgram_cksum = 0xffff;
}

static void tcp_change(struct embedded *e, uint16_t delta)
{
	enum { OFFSET_TCP_CHECKSUM = 16 };
	uint8_t *at = e->l4 + OFFSET_TCP_CHECKSUM;

	if (e->l4_bytes >= OFFSET_TCP_CHECKSUM + 2)
		store(at, nat44_checksum(load(at), delta));
}

// An endpoint of the embedded packet: what its checksums change by is known from the session. at: its port.
static void embedded_write(struct embedded *e, uint8_t *at, rte_be16_t port, uint16_t l3, uint16_t l4)
{
	e->ip->hdr_checksum = nat44_checksum(e->ip->hdr_checksum, l3);
	if (e->protocol == NAT44_ICMP) {
		store(e->l4 + OFFSET_CHECKSUM,
		      packet_checksum_change(load(e->l4 + OFFSET_CHECKSUM), load(e->l4 + OFFSET_ID), port));
		store(e->l4 + OFFSET_ID, port);
		return;
	}
	store(at, port);
	if (e->protocol == NAT44_UDP)
		udp_change(e, l4);
	else
		tcp_change(e, l4);
}

static void icmp_checksum_write(const struct vnf_frame *frame, const struct packet *p)
{
	uint8_t *icmp = frame->data + p->l4;

	store(icmp + OFFSET_CHECKSUM, 0);
	store(icmp + OFFSET_CHECKSUM, (uint16_t)~rte_raw_cksum(icmp, p->l4_bytes));
}

// --- Errors ----------------------------------------------------------------------------------------------

// About a packet that was sent from inside: its source was one of the NAT's endpoints (RFC 5508 REQ-4).
static uint8_t error_in(struct nat44 *nat, const struct vnf_frame *frame, const struct packet *p,
                        unsigned address, uint64_t now_tsc)
{
	struct rte_ipv4_hdr *ip = ip_of(frame, p);
	struct nat44_session *s;
	struct embedded e;

	if (!embedded_read(frame, p, true, &e) || e.ip->src_addr != ip->dst_addr)
		return VNF_DROP | NAT44_ICMP_ERROR;
	s = nat44_find_outside(nat, &nat->addresses[address].ports[e.protocol].session[e.src_port], now_tsc);
	if (!s)
		return VNF_DROP | NAT44_NO_MAPPING;
	e.ip->src_addr = nat44_key_ip(s->key);
	embedded_write(&e, e.l4, nat44_key_port(s->key), s->l3_in, s->l4_in);
	icmp_checksum_write(frame, p);
	ip->dst_addr = nat44_key_ip(s->key);
	ip->hdr_checksum = nat44_checksum(ip->hdr_checksum, s->l3_in);
	return NAT44_INSIDE;
}

static void source_change(struct rte_ipv4_hdr *ip, rte_be32_t source)
{
	rte_be32_t was = ip->src_addr;

	ip->hdr_checksum = packet_checksum_change(ip->hdr_checksum, (uint16_t)was, (uint16_t)source);
	ip->hdr_checksum =
	        packet_checksum_change(ip->hdr_checksum, (uint16_t)(was >> 16), (uint16_t)(source >> 16));
	ip->src_addr = source;
}

// About a packet that was received inside, from the host that received it or from a router before it, which
// then is seen by the host's address (RFC 5508 REQ-5).
static uint8_t error_out(struct nat44 *nat, const struct vnf_frame *frame, const struct packet *p,
                         uint64_t now_tsc)
{
	struct nat44_session *s;
	struct embedded e;
	uint64_t key;

	if (!embedded_read(frame, p, false, &e))
		return VNF_DROP | NAT44_ICMP_ERROR;
	key = nat44_key(e.ip->dst_addr, e.dst_port, e.protocol);
	s = nat44_find_inside(nat, &nat->buckets[nat44_hash(nat, key)], key, now_tsc);
	if (!s)
		return VNF_DROP | NAT44_NO_SESSION;
	e.ip->dst_addr = s->outside_ip;
	embedded_write(&e, e.l4 + 2, s->outside_port, s->l3_out, s->l4_out);
	icmp_checksum_write(frame, p);
	source_change(ip_of(frame, p), s->outside_ip);
	return NAT44_OUTSIDE;
}

// To one of the NAT's addresses it is about a packet that was hairpinned (RFC 5508 REQ-7): out, and in again.
static uint8_t error_from_inside(struct nat44 *nat, const struct vnf_frame *frame, const struct packet *p,
                                 uint64_t now_tsc)
{
	int address = nat44_address_find(nat, ip_of(frame, p)->dst_addr);
	uint8_t verdict;

	if (address >= 0 && !nat->hairpin)
		return VNF_DROP | NAT44_HAIRPIN;
	verdict = error_out(nat, frame, p, now_tsc);
	if (address < 0 || verdict & VNF_DROP)
		return verdict;
	nat->hairpinned++;
	return error_in(nat, frame, p, (unsigned)address, now_tsc);
}

// --- Either ----------------------------------------------------------------------------------------------

uint8_t nat44_icmp_out(struct nat44 *nat, const struct vnf_frame *frame, const struct packet *p,
                       uint64_t now_tsc)
{
	uint8_t type = frame->data[p->l4];

	if (is_request(type))
		return query_out(nat, frame, p, now_tsc);
	return is_error(type) ? error_from_inside(nat, frame, p, now_tsc) : VNF_DROP | NAT44_ICMP_TYPE;
}

uint8_t nat44_icmp_in(struct nat44 *nat, const struct vnf_frame *frame, const struct packet *p,
                      uint64_t now_tsc)
{
	int address = nat44_address_find(nat, ip_of(frame, p)->dst_addr);
	uint8_t type = frame->data[p->l4];

	if (address < 0)
		return VNF_DROP | NAT44_NOT_OURS;
	if (is_reply(type))
		return query_in(nat, frame, p, (unsigned)address, now_tsc);
	return is_error(type) ? error_in(nat, frame, p, (unsigned)address, now_tsc)
	                      : VNF_DROP | NAT44_ICMP_TYPE;
}
