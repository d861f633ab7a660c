// SPDX-License-Identifier: BSD-3-Clause
// nat44: source NAT with ports and expiry (docs/network-functions.md). ports[0] is inside, ports[1] outside. It is a
// bump in the wire between the two: no routing, so the TTL stays and the MAC addresses are those of the
// ports.
//
// A burst is looked at three times: take apart and prefetch buckets, prefetch sessions, translate.
#include "nf/nat44/nat44.h"

#include <arpa/inet.h>
#include <errno.h>
#include <rte_tcp.h>
#include <rte_udp.h>

#include "base/log.h"

// --- TCP -------------------------------------------------------------------------------------------------

// A light TCP state machine, after RFC 6146 s3.5.2.2 and RFC 7857 s2. A session is that of an inside endpoint
// and holds the state of one connection, to the remote endpoint that it began with; only segments to and
// from this one move it. When the endpoint opens a second connection beside it, none of the two can be told
// to be the last, and the session lives until it has been idle for the established timeout. Pure.

enum { FIN_OUT = 1, FIN_IN = 2, FIN_BOTH = 3 };

static __rte_noinline bool nat44_tcp_opens(const struct nat44 *nat, uint8_t flags)
{
	if (flags & RTE_TCP_RST_FLAG)
		return false;
	return flags & RTE_TCP_SYN_FLAG || (nat->tcp_loose && !(flags & RTE_TCP_FIN_FLAG));
}

static __rte_noinline void nat44_tcp_begin(struct nat44_session *s, rte_be32_t remote_ip,
                                           rte_be16_t remote_port)
{
	s->state = NAT44_OPENING;
	s->fins = 0;
	s->remote_ip = remote_ip;
	s->remote_port = remote_port;
}

static void become(struct nat44 *nat, struct nat44_session *s, enum nat44_state state, uint64_t now_tsc)
{
	bool established = state == NAT44_ESTABLISHED || state == NAT44_SHARED;

	s->state = (uint8_t)state;
	nat44_relist(nat, s, established ? NAT44_CLASS_ESTABLISHED : NAT44_CLASS_TRANSITORY, now_tsc);
}

static bool is_closed(const struct nat44_session *s)
{
	return s->state == NAT44_CLOSING || s->state == NAT44_RESET;
}

static bool is_remote(const struct nat44_session *s, rte_be32_t ip, rte_be16_t port)
{
	return s->remote_ip == ip && s->remote_port == port;
}

// What both directions have in common: a segment of the connection that the state is of, which is not SHARED.
static void segment(struct nat44 *nat, struct nat44_session *s, uint8_t flags, uint8_t fin, uint64_t now_tsc)
{
	if (s->state == NAT44_CLOSING)
		return;
	if (flags & RTE_TCP_RST_FLAG) {
		if (s->state != NAT44_RESET)
			become(nat, s, NAT44_RESET, now_tsc);
		return;
	}
	if (s->state == NAT44_RESET || (s->state == NAT44_OPENING && fin == FIN_IN))
		become(nat, s, NAT44_ESTABLISHED, now_tsc);
	if (flags & RTE_TCP_FIN_FLAG)
		s->fins |= fin;
	if (s->fins == FIN_BOTH)
		become(nat, s, NAT44_CLOSING, now_tsc);
}

static __rte_noinline void nat44_tcp_out(struct nat44 *nat, struct nat44_session *s, uint8_t flags,
                                         rte_be32_t remote_ip, rte_be16_t remote_port, uint64_t now_tsc)
{
	bool syn = (flags & (RTE_TCP_SYN_FLAG | RTE_TCP_RST_FLAG)) == RTE_TCP_SYN_FLAG;

	if (s->state == NAT44_STATIC || s->state == NAT44_SHARED)
		return;
	if (syn && is_closed(s)) {
		nat44_tcp_begin(s, remote_ip, remote_port);
		nat44_relist(nat, s, NAT44_CLASS_TRANSITORY, now_tsc);
	}
	if (is_remote(s, remote_ip, remote_port))
		segment(nat, s, flags, FIN_OUT, now_tsc);
	else if (syn)
		become(nat, s, NAT44_SHARED, now_tsc);
}

static __rte_noinline void nat44_tcp_in(struct nat44 *nat, struct nat44_session *s, uint8_t flags,
                                        rte_be32_t remote_ip, rte_be16_t remote_port, uint64_t now_tsc)
{
	if (s->state != NAT44_STATIC && s->state != NAT44_SHARED && is_remote(s, remote_ip, remote_port))
		segment(nat, s, flags, FIN_IN, now_tsc);
}

// --- ICMP ------------------------------------------------------------------------------------------------

// ICMP through the NAT (RFC 5508): queries by their identifier, and errors by the packet that they are about,
// which is translated back (RFC 3022 s4.3), with every checksum in it. An error neither refreshes a session
// nor ends one (REQ-6). What is rewritten is rare, so checksums of ICMP are made from scratch.

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
	uint16_t changed = checksum_replace(load16(icmp + OFFSET_CHECKSUM), load16(icmp + OFFSET_ID), id);

	store16(icmp + OFFSET_ID, id);
	store16(icmp + OFFSET_CHECKSUM, right ? 0 : changed);
	if (right)
		store16(icmp + OFFSET_CHECKSUM, (uint16_t)~rte_raw_cksum(icmp, p->l4_bytes));
}

static uint8_t query_out(struct nat44 *nat, const struct vnf_frame *frame, const struct packet *p,
                         uint64_t now_tsc)
{
	struct rte_ipv4_hdr *ip = ip_of(frame, p);
	uint64_t key = nat44_key(ip->src_addr, load16(frame->data + p->l4 + OFFSET_ID), NAT44_ICMP);
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
	ip->hdr_checksum = checksum_change(ip->hdr_checksum, s->l3_out);
	id_write(frame, p, s->outside_port);
	return NAT44_OUTSIDE;
}

static uint8_t query_in(struct nat44 *nat, const struct vnf_frame *frame, const struct packet *p,
                        unsigned address, uint64_t now_tsc)
{
	struct rte_ipv4_hdr *ip = ip_of(frame, p);
	const struct nat44_ports *ports = &nat->addresses[address].ports[NAT44_ICMP];
	struct nat44_session *s =
	        nat44_find_outside(nat, &ports->session[load16(frame->data + p->l4 + OFFSET_ID)], now_tsc);

	if (!s)
		return VNF_DROP | NAT44_NO_MAPPING;
	ip->dst_addr = nat44_key_ip(s->key);
	ip->hdr_checksum = checksum_change(ip->hdr_checksum, s->l3_in);
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
	e->src_port = load16(e->l4);
	e->dst_port = load16(e->l4 + 2);
	switch (e->ip->next_proto_id) {
	case IPPROTO_UDP:
		e->protocol = NAT44_UDP;
		return true;
	case IPPROTO_TCP:
		e->protocol = NAT44_TCP;
		return true;
	case IPPROTO_ICMP:
		e->protocol = NAT44_ICMP;
		e->src_port = e->dst_port = load16(e->l4 + OFFSET_ID);
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
	udp->dgram_cksum = checksum_change(udp->dgram_cksum, delta);
	if (!udp->dgram_cksum)
		udp->dgram_cksum = 0xffff;
}

static void tcp_change(struct embedded *e, uint16_t delta)
{
	enum { OFFSET_TCP_CHECKSUM = 16 };
	uint8_t *at = e->l4 + OFFSET_TCP_CHECKSUM;

	if (e->l4_bytes >= OFFSET_TCP_CHECKSUM + 2)
		store16(at, checksum_change(load16(at), delta));
}

// An endpoint of the embedded packet: what its checksums change by is known from the session. at: its port.
static void embedded_write(struct embedded *e, uint8_t *at, rte_be16_t port, uint16_t l3, uint16_t l4)
{
	e->ip->hdr_checksum = checksum_change(e->ip->hdr_checksum, l3);
	if (e->protocol == NAT44_ICMP) {
		store16(e->l4 + OFFSET_CHECKSUM,
		        checksum_replace(load16(e->l4 + OFFSET_CHECKSUM), load16(e->l4 + OFFSET_ID), port));
		store16(e->l4 + OFFSET_ID, port);
		return;
	}
	store16(at, port);
	if (e->protocol == NAT44_UDP)
		udp_change(e, l4);
	else
		tcp_change(e, l4);
}

static void icmp_checksum_write(const struct vnf_frame *frame, const struct packet *p)
{
	uint8_t *icmp = frame->data + p->l4;

	store16(icmp + OFFSET_CHECKSUM, 0);
	store16(icmp + OFFSET_CHECKSUM, (uint16_t)~rte_raw_cksum(icmp, p->l4_bytes));
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
	ip->hdr_checksum = checksum_change(ip->hdr_checksum, s->l3_in);
	return NAT44_INSIDE;
}

static void source_change(struct rte_ipv4_hdr *ip, rte_be32_t source)
{
	rte_be32_t was = ip->src_addr;

	ip->hdr_checksum = checksum_replace(ip->hdr_checksum, (uint16_t)was, (uint16_t)source);
	ip->hdr_checksum =
	        checksum_replace(ip->hdr_checksum, (uint16_t)(was >> 16), (uint16_t)(source >> 16));
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

// Checksums of the whole message are made, some of them twice.
static void charge(struct nat44 *nat, const struct packet *p)
{
	enum { BYTES_A_FRAME = 192 };

	nat->vnf.task.charge += 1u + p->l4_bytes / BYTES_A_FRAME;
}

static __rte_noinline uint8_t nat44_icmp_out(struct nat44 *nat, const struct vnf_frame *frame,
                                             const struct packet *p, uint64_t now_tsc)
{
	uint8_t type = frame->data[p->l4];

	charge(nat, p);
	if (is_request(type))
		return query_out(nat, frame, p, now_tsc);
	return is_error(type) ? error_from_inside(nat, frame, p, now_tsc) : VNF_DROP | NAT44_ICMP_TYPE;
}

static __rte_noinline uint8_t nat44_icmp_in(struct nat44 *nat, const struct vnf_frame *frame,
                                            const struct packet *p, uint64_t now_tsc)
{
	int address = nat44_address_find(nat, ip_of(frame, p)->dst_addr);
	uint8_t type = frame->data[p->l4];

	charge(nat, p);
	if (address < 0)
		return VNF_DROP | NAT44_NOT_OURS;
	if (is_reply(type))
		return query_in(nat, frame, p, (unsigned)address, now_tsc);
	return is_error(type) ? error_in(nat, frame, p, (unsigned)address, now_tsc)
	                      : VNF_DROP | NAT44_ICMP_TYPE;
}

enum { PREFETCH_AHEAD = 4, TCP_FLAGS = 13, TICK_LOOKS = 64 };

static const struct counter drops[] = {
        VNF_PACKET_DROPS,
        VNF_DROP_COUNTER(NAT44_IPV6, "ipv6"),
        VNF_DROP_COUNTER(NAT44_FRAGMENT, "fragment"),
        VNF_DROP_COUNTER(NAT44_PROTOCOL, "protocol"),
        VNF_DROP_COUNTER(NAT44_NOT_INSIDE, "not_inside"),
        VNF_DROP_COUNTER(NAT44_NOT_OURS, "not_ours"),
        VNF_DROP_COUNTER(NAT44_ICMP_TYPE, "icmp_type"),
        VNF_DROP_COUNTER(NAT44_ICMP_ERROR, "icmp_error"),
        VNF_DROP_COUNTER(NAT44_NO_SESSION, "no_session"),
        VNF_DROP_COUNTER(NAT44_NO_MAPPING, "no_mapping"),
        VNF_DROP_COUNTER(NAT44_HAIRPIN, "hairpin"),
        VNF_DROP_COUNTER(NAT44_TABLE_FULL, "table_full"),
        VNF_DROP_COUNTER(NAT44_HOST_FULL, "host_full"),
        VNF_DROP_COUNTER(NAT44_NO_PORT, "no_port"),
        {0},
};

// A packet between the first look at its burst and the last.
struct work {
	struct packet packet;
	uint64_t key;         // of the inside endpoint, of a packet from there
	const uint32_t *cell; // where its session is found: a bucket, or an outside port
};

// --- What is written -------------------------------------------------------------------------------------

static inline void l4_write(const struct packet *p, uint8_t *l4, uint16_t delta)
{
	if (p->protocol == IPPROTO_UDP) {
		struct rte_udp_hdr *udp = (struct rte_udp_hdr *)l4;
		rte_be16_t sum = checksum_change(udp->dgram_cksum, delta);

		if (udp->dgram_cksum) // 0: there is none (RFC 768)
			udp->dgram_cksum = sum ? sum : 0xffff;
	} else {
		struct rte_tcp_hdr *tcp = (struct rte_tcp_hdr *)l4;

		tcp->cksum = checksum_change(tcp->cksum, delta);
	}
}

static inline void source_write(const struct vnf_frame *frame, const struct packet *p,
                                const struct nat44_session *s)
{
	struct rte_ipv4_hdr *ip = ip_of(frame, p);
	uint8_t *l4 = frame->data + p->l4;

	ip->src_addr = s->outside_ip;
	ip->hdr_checksum = checksum_change(ip->hdr_checksum, s->l3_out);
	memcpy(l4, &s->outside_port, sizeof(s->outside_port));
	l4_write(p, l4, s->l4_out);
}

static inline void destination_write(const struct vnf_frame *frame, const struct packet *p,
                                     const struct nat44_session *s)
{
	struct rte_ipv4_hdr *ip = ip_of(frame, p);
	rte_be16_t port = nat44_key_port(s->key);
	uint8_t *l4 = frame->data + p->l4;

	ip->dst_addr = nat44_key_ip(s->key);
	ip->hdr_checksum = checksum_change(ip->hdr_checksum, s->l3_in);
	memcpy(l4 + 2, &port, sizeof(port));
	l4_write(p, l4, s->l4_in);
}

// --- From inside -----------------------------------------------------------------------------------------

static enum nat44_protocol flow_protocol(const struct packet *p)
{
	return p->protocol == IPPROTO_UDP ? NAT44_UDP : NAT44_TCP;
}

// Most segments change nothing.
static bool tcp_matters(const struct nat44_session *s, uint8_t flags)
{
	return s->state != NAT44_ESTABLISHED ||
	       flags & (RTE_TCP_SYN_FLAG | RTE_TCP_FIN_FLAG | RTE_TCP_RST_FLAG);
}

static __attribute__((noinline)) struct nat44_session *begin(struct nat44 *nat, const struct vnf_frame *frame,
                                                             const struct work *w, uint64_t now_tsc,
                                                             enum nat44_drop *drop)
{
	const struct packet *p = &w->packet;
	struct nat44_session *s;

	if (p->protocol == IPPROTO_TCP && !nat44_tcp_opens(nat, frame->data[p->l4 + TCP_FLAGS])) {
		*drop = NAT44_NO_SESSION;
		return NULL;
	}
	s = nat44_create(nat, w->key, now_tsc, drop);
	if (s && p->protocol == IPPROTO_TCP)
		nat44_tcp_begin(s, ip_of(frame, p)->dst_addr, p->dst_port);
	return s;
}

// The session of a packet from inside, refreshed; NULL and the reason without.
static inline struct nat44_session *session_out(struct nat44 *nat, const struct vnf_frame *frame,
                                                const struct work *w, uint64_t now_tsc, enum nat44_drop *drop)
{
	const struct packet *p = &w->packet;
	struct nat44_session *s = nat44_find_inside(nat, w->cell, w->key, now_tsc);

	if (unlikely(!s)) {
		s = begin(nat, frame, w, now_tsc, drop);
		if (!s)
			return NULL;
	}
	if (p->protocol == IPPROTO_TCP && tcp_matters(s, frame->data[p->l4 + TCP_FLAGS]))
		nat44_tcp_out(nat, s, frame->data[p->l4 + TCP_FLAGS], ip_of(frame, p)->dst_addr, p->dst_port,
		              now_tsc);
	if (likely(s->state != NAT44_CLOSING))
		nat44_refresh(nat, s, now_tsc);
	return s;
}

static void tcp_in(struct nat44 *nat, struct nat44_session *s, const struct vnf_frame *frame,
                   const struct packet *p, rte_be32_t remote_ip, rte_be16_t remote_port, uint64_t now_tsc)
{
	if (p->protocol == IPPROTO_TCP && tcp_matters(s, frame->data[p->l4 + TCP_FLAGS]))
		nat44_tcp_in(nat, s, frame->data[p->l4 + TCP_FLAGS], remote_ip, remote_port, now_tsc);
}

// RFC 4787 REQ-9: the peer sees the outside endpoint of who sent it.
static __attribute__((noinline)) uint8_t hairpin(struct nat44 *nat, const struct vnf_frame *frame,
                                                 const struct work *w, unsigned address, uint64_t now_tsc)
{
	const struct packet *p = &w->packet;
	const struct nat44_ports *ports = &nat->addresses[address].ports[flow_protocol(p)];
	struct nat44_session *from, *to;
	enum nat44_drop drop;

	if (!nat->hairpin)
		return VNF_DROP | NAT44_HAIRPIN;
	to = nat44_find_outside(nat, &ports->session[p->dst_port], now_tsc);
	if (!to)
		return VNF_DROP | NAT44_NO_MAPPING;
	from = session_out(nat, frame, w, now_tsc, &drop);
	if (!from)
		return VNF_DROP | (uint8_t)drop;
	tcp_in(nat, to, frame, p, from->outside_ip, from->outside_port, now_tsc);
	source_write(frame, p, from);
	destination_write(frame, p, to);
	nat->hairpinned++;
	return NAT44_INSIDE;
}

static inline uint8_t flow_out(struct nat44 *nat, const struct vnf_frame *frame, const struct work *w,
                               uint64_t now_tsc)
{
	int address = nat44_address_find(nat, ip_of(frame, &w->packet)->dst_addr);
	struct nat44_session *s;
	enum nat44_drop drop;

	if (unlikely(address >= 0))
		return hairpin(nat, frame, w, (unsigned)address, now_tsc);
	s = session_out(nat, frame, w, now_tsc, &drop);
	if (unlikely(!s))
		return VNF_DROP | (uint8_t)drop;
	source_write(frame, &w->packet, s);
	return NAT44_OUTSIDE;
}

// --- From outside ----------------------------------------------------------------------------------------

static inline uint8_t flow_in(struct nat44 *nat, const struct vnf_frame *frame, const struct work *w,
                              uint64_t now_tsc)
{
	struct nat44_session *s = nat44_find_outside(nat, w->cell, now_tsc);
	const struct packet *p = &w->packet;

	if (unlikely(!s))
		return VNF_DROP | NAT44_NO_MAPPING;
	tcp_in(nat, s, frame, p, ip_of(frame, p)->src_addr, p->src_port, now_tsc);
	destination_write(frame, p, s);
	return NAT44_INSIDE;
}

// --- A burst ---------------------------------------------------------------------------------------------

enum { VERDICT_FLOW = 0x7e, VERDICT_ICMP = 0x7f }; // until the last look; no index of ports[]

// What is translated and how, or why not.
static inline uint8_t sort(const struct packet *p)
{
	if (unlikely(p->version != 4))
		return VNF_DROP | NAT44_IPV6;
	if (unlikely(p->fragment))
		return VNF_DROP | NAT44_FRAGMENT;
	if (likely(p->protocol == IPPROTO_UDP || p->protocol == IPPROTO_TCP))
		return VERDICT_FLOW;
	return p->protocol == IPPROTO_ICMP ? VERDICT_ICMP : VNF_DROP | NAT44_PROTOCOL;
}

static inline uint8_t look_out(struct nat44 *nat, const struct vnf_frame *frame, struct work *w)
{
	const struct packet *p = &w->packet;

	w->key = nat44_key(ip_of(frame, p)->src_addr, p->src_port, flow_protocol(p));
	w->cell = &nat->buckets[nat44_hash(nat, w->key)];
	return VERDICT_FLOW;
}

static inline uint8_t look_in(struct nat44 *nat, const struct vnf_frame *frame, struct work *w)
{
	const struct packet *p = &w->packet;
	int address = nat44_address_find(nat, ip_of(frame, p)->dst_addr);

	if (unlikely(address < 0))
		return VNF_DROP | NAT44_NOT_OURS;
	w->cell = &nat->addresses[address].ports[flow_protocol(p)].session[p->dst_port];
	return VERDICT_FLOW;
}

static inline uint8_t look(struct nat44 *nat, unsigned in, const struct vnf_frame *frame, struct work *w)
{
	enum packet_fault fault = vnf_parse(&nat->vnf, frame, &w->packet);
	uint8_t verdict;

	w->cell = &nat->none;
	if (unlikely(fault != PACKET_FINE))
		return VNF_DROP | (uint8_t)fault;
	verdict = sort(&w->packet);
	if (unlikely(verdict != VERDICT_FLOW))
		return verdict;
	verdict = in == NAT44_INSIDE ? look_out(nat, frame, w) : look_in(nat, frame, w);
	__builtin_prefetch(w->cell);
	return verdict;
}

static inline uint8_t translate(struct nat44 *nat, unsigned in, const struct vnf_frame *frame,
                                const struct work *w, uint8_t verdict, uint64_t now_tsc)
{
	if (likely(verdict == VERDICT_FLOW))
		verdict = in == NAT44_INSIDE ? flow_out(nat, frame, w, now_tsc)
		                             : flow_in(nat, frame, w, now_tsc);
	else if (verdict == VERDICT_ICMP)
		verdict = in == NAT44_INSIDE ? nat44_icmp_out(nat, frame, &w->packet, now_tsc)
		                             : nat44_icmp_in(nat, frame, &w->packet, now_tsc);
	if (likely(!(verdict & VNF_DROP)))
		vnf_write_macs(&nat->vnf, verdict, frame->data);
	return verdict;
}

static __attribute__((always_inline)) inline bool burst(struct nat44 *nat, unsigned in,
                                                        const struct vnf_frame *frames, unsigned n,
                                                        uint64_t now_tsc, uint8_t *verdicts)
{
	struct work work[CONFIG_BURST_MAX];
	unsigned others = 0;

	for (unsigned i = 0; i < n; i++) {
		if (i + PREFETCH_AHEAD < n)
			__builtin_prefetch(frames[i + PREFETCH_AHEAD].data, 1);
		verdicts[i] = look(nat, in, &frames[i], &work[i]);
	}
	for (unsigned i = 0; i < n; i++) {
		__builtin_prefetch(&nat->sessions[*work[i].cell], 1);
		if (in == NAT44_INSIDE && unlikely(*work[i].cell == 0) && verdicts[i] == VERDICT_FLOW)
			nat44_create_prefetch(nat, work[i].key);
	}
	for (unsigned i = 0; i < n; i++) {
		verdicts[i] = translate(nat, in, &frames[i], &work[i], verdicts[i], now_tsc);
		others |= verdicts[i] ^ (1 - in);
	}
	return others == 0;
}

static bool nat44_process(struct vnf *vnf, unsigned in, struct vnf_frame *frames, unsigned n,
                          uint64_t now_tsc, uint8_t *verdicts)
{
	struct nat44 *nat = (struct nat44 *)vnf;

	return in == NAT44_INSIDE ? burst(nat, NAT44_INSIDE, frames, n, now_tsc, verdicts)
	                          : burst(nat, NAT44_OUTSIDE, frames, n, now_tsc, verdicts);
}

static void nat44_tick(struct vnf *vnf, uint64_t now_tsc)
{
	nat44_reap((struct nat44 *)vnf, now_tsc, TICK_LOOKS);
}

// --- Made and ended --------------------------------------------------------------------------------------

static int nat44_open(struct vnf *vnf, const struct config_task *config)
{
	struct nat44 *nat = (struct nat44 *)vnf;
	int status;

	nat->settings = *(const struct nat44_settings *)config->settings;
	nat->hairpin = nat->settings.hairpin;
	nat->tcp_loose = nat->settings.tcp_loose;
	status = nat44_table_open(nat);
	if (status != 0)
		LOG_ERROR("task %s: sessions of nat44: %s", config->name, strerror(-status));
	return status;
}

static void nat44_close(struct vnf *vnf)
{
	nat44_table_close((struct nat44 *)vnf);
}

static const struct vnf_ops nat44_vnf = {
        .size = sizeof(struct nat44),
        .cost_is_process = true,
        .settings_fields = nat44_fields,
        .settings_check = nat44_settings_check,
        .open = nat44_open,
        .close = nat44_close,
        .process = nat44_process,
        .tick = nat44_tick,
};

static const struct task_ops nat44_ops = {
        VNF_TASK_OPS("nat44", &nat44_vnf, drops, vnf_keys, struct nat44_settings),
        .settings_defaults = &nat44_defaults,
        .adopt = nat44_adopt,
        .counters = nat44_counters,
        .report = nat44_report,
        .methods = nat44_methods,
        .ports_min = 2,
        .ports_max = 2,
};
TASK_KIND(nat44_ops)
