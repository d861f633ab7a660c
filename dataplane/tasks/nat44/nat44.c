// SPDX-License-Identifier: BSD-3-Clause
// nat44: source NAT with ports and expiry (docs/nf/nat44.md). ports[0] is inside, ports[1] outside. It is a
// bump in the wire between the two: no routing, so the TTL stays and the MAC addresses are those of the
// ports.
//
// A burst is looked at three times: take apart and prefetch buckets, prefetch sessions, translate.
#include <errno.h>
#include <rte_tcp.h>
#include <rte_udp.h>

#include "lib/log.h"
#include "tasks/nat44/nat44.h"

enum { PREFETCH_AHEAD = 4, TCP_FLAGS = 13, TICK_LOOKS = 64 };

static const char *const drops[] = {
        PACKET_DROPS,
        [NAT44_IPV6] = "ipv6",
        [NAT44_FRAGMENT] = "fragment",
        [NAT44_PROTOCOL] = "protocol",
        [NAT44_NOT_INSIDE] = "not_inside",
        [NAT44_NOT_OURS] = "not_ours",
        [NAT44_ICMP_TYPE] = "icmp_type",
        [NAT44_ICMP_ERROR] = "icmp_error",
        [NAT44_NO_SESSION] = "no_session",
        [NAT44_NO_MAPPING] = "no_mapping",
        [NAT44_HAIRPIN] = "hairpin",
        [NAT44_TABLE_FULL] = "table_full",
        [NAT44_HOST_FULL] = "host_full",
        [NAT44_NO_PORT] = "no_port",
        [NAT44_DROPS] = NULL,
};

// A packet between the first look at its burst and the last.
struct work {
	struct packet packet;
	uint64_t key;         // of the inside endpoint, of a packet from there
	const uint32_t *cell; // where its session is found: a bucket, or an outside port
};

static struct rte_ipv4_hdr *ip_of(const struct vnf_frame *frame, const struct packet *p)
{
	return (struct rte_ipv4_hdr *)(frame->data + p->l3);
}

// --- What is written -------------------------------------------------------------------------------------

static inline void l4_write(const struct packet *p, uint8_t *l4, uint16_t delta)
{
	if (p->protocol == IPPROTO_UDP) {
		struct rte_udp_hdr *udp = (struct rte_udp_hdr *)l4;
		rte_be16_t sum = nat44_checksum(udp->dgram_cksum, delta);

		if (udp->dgram_cksum) // 0: there is none (RFC 768)
			udp->dgram_cksum = sum ? sum : 0xffff;
	} else {
		struct rte_tcp_hdr *tcp = (struct rte_tcp_hdr *)l4;

		tcp->cksum = nat44_checksum(tcp->cksum, delta);
	}
}

static inline void source_write(const struct vnf_frame *frame, const struct packet *p,
                                const struct nat44_session *s)
{
	struct rte_ipv4_hdr *ip = ip_of(frame, p);
	uint8_t *l4 = frame->data + p->l4;

	ip->src_addr = s->outside_ip;
	ip->hdr_checksum = nat44_checksum(ip->hdr_checksum, s->l3_out);
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
	ip->hdr_checksum = nat44_checksum(ip->hdr_checksum, s->l3_in);
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
	enum packet_fault fault = packet_parse(frame, &w->packet);
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

static bool nat44_process(struct vnf *vnf, unsigned in, const struct vnf_frame *frames, unsigned n,
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

static int nat44_check(const struct config_task *config, char *error)
{
	struct nat44_settings settings;

	return nat44_settings_decode(config, &settings, error);
}

static int nat44_open(struct vnf *vnf, const struct config_task *config)
{
	struct nat44 *nat = (struct nat44 *)vnf;
	char error[CONFIG_ERROR_MAX];
	int status = nat44_settings_decode(config, &nat->settings, error);

	if (status != 0) {
		LOG_ERROR("%s", error);
		return status;
	}
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
        .drops = drops,
        .check = nat44_check,
        .open = nat44_open,
        .close = nat44_close,
        .adopt = nat44_adopt,
        .process = nat44_process,
        .tick = nat44_tick,
        .clear = nat44_clear,
        .report = nat44_report,
        .methods = nat44_methods,
};

const struct task_ops nat44_ops = {
        VNF_TASK_OPS("nat44", &nat44_vnf),
        .ports_min = 2,
        .ports_max = 2,
};
