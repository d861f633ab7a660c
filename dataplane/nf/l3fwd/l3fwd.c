// SPDX-License-Identifier: BSD-3-Clause
// l3fwd: a router of IPv4 and IPv6 between 1 to 8 ports, by longest-prefix match (docs/network-functions.md).
//
// A burst is handled in three passes, so that its cache misses overlap: what each frame is, the lookups of
// all, and the next hop of each. What nearly every packet is (packet_parse_plain, and the same of IPv6) is
// decided inline, the rest in functions of its own.
//
// Not covered: sending ICMP, fragmenting, addresses of its own (so no ARP, no ND, no echo), multicast.
#include "nf/l3fwd/l3fwd.h"

#include <errno.h>

#include "base/log.h"
#include "base/packet.h"

// --- Packets that are not plain --------------------------------------------------------------------------

// Packets that are not plain, and those that do not leave: why, and which ICMP error their senders are owed.

enum {
	DF = 0x4000,
	OPTION_END = 0, // RFC 791 s3.1
	OPTION_NOP = 1,
	OPTION_LSRR = 131,
	OPTION_SSRR = 137,
	CHARGE_CLASSIFY = 1, // see task_charge()
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

// RFC 7126 s4.3, s4.4: source routes are not followed. end: of the header, as it was when it was parsed; a peer may write
// meanwhile. Returns 0 or a reason.
static uint8_t options_fault(const uint8_t *ip, unsigned end)
{
	unsigned at = sizeof(struct rte_ipv4_hdr);

	while (at < end && ip[at] != OPTION_END) {
		unsigned length;

		if (ip[at] == OPTION_LSRR || ip[at] == OPTION_SSRR)
			return L3FWD_SOURCE_ROUTE;
		if (ip[at] == OPTION_NOP) {
			at++;
			continue;
		}
		length = at + 1 < end ? ip[at + 1] : 0;
		if (length < 2 || at + length > end)
			return L3FWD_BAD_OPTIONS;
		at += length;
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

// Any frame from ports[in]: L3FWD_FINE, then *p is what it is; or its verdict.
static __rte_noinline uint8_t l3fwd_classify(struct l3fwd *l, unsigned in, const struct vnf_frame *frame,
                                             struct packet *p)
{
	enum packet_fault parsed = vnf_parse(&l->vnf, frame, p);
	uint8_t fault;

	l->vnf.task.charge += CHARGE_CLASSIFY;
	if (parsed != PACKET_FINE)
		return (uint8_t)(VNF_DROP | parsed);
	if (frame->data[0] & 1)
		return VNF_DROP | L3FWD_L2_GROUP;
	if ((l3fwd_mac(frame->data) ^ l->own[in]) & l->own_mask)
		return VNF_DROP | L3FWD_L2_OTHER;
	fault = addresses_fault(l, p, frame->data);
	if (fault == 0 && p->version == 4)
		fault = options_fault(frame->data + p->l3, p->l4 - p->l3);
	if (fault == L3FWD_BAD_OPTIONS)
		owe(l, L3FWD_PARAMETER_PROBLEM, p, frame->data);
	return fault ? VNF_DROP | fault : L3FWD_FINE;
}

// The verdict of a packet that was looked up and does not leave. Its route said verdict.
static __rte_noinline uint8_t l3fwd_refuse(struct l3fwd *l, const struct vnf_frame *frame, uint8_t verdict)
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

static const struct counter drops[] = {
        VNF_PACKET_DROPS,
        VNF_DROP_COUNTER(L3FWD_L2_GROUP, "l2_group"),
        VNF_DROP_COUNTER(L3FWD_L2_OTHER, "l2_other"),
        VNF_DROP_COUNTER(L3FWD_MARTIAN_SOURCE, "martian_source"),
        VNF_DROP_COUNTER(L3FWD_MARTIAN_DESTINATION, "martian_destination"),
        VNF_DROP_COUNTER(L3FWD_LINK_LOCAL, "link_local"),
        VNF_DROP_COUNTER(L3FWD_BAD_OPTIONS, "bad_options"),
        VNF_DROP_COUNTER(L3FWD_SOURCE_ROUTE, "source_route"),
        VNF_DROP_COUNTER(L3FWD_NO_ROUTE, "no_route"),
        VNF_DROP_COUNTER(L3FWD_BLACKHOLE, "blackhole"),
        VNF_DROP_COUNTER(L3FWD_TTL_EXPIRED, "ttl_expired"),
        VNF_DROP_COUNTER(L3FWD_TOO_BIG, "too_big"),
        VNF_DROP_COUNTER(L3FWD_UNFRAGMENTED, "unfragmented"),
        {0},
};

enum {
	PREFETCH_AHEAD = 4,
	PLAIN_BYTES = RTE_ETHER_HDR_LEN + 40, // what is read of a plain packet
	IPV6_HEADER_BYTES = sizeof(struct rte_ipv6_hdr),
};

// The packets of a burst that are looked up.
struct lookups {
	unsigned n;
	uint8_t frame[CONFIG_BURST_MAX]; // in the burst
	uint8_t l3[CONFIG_BURST_MAX];    // where its IP header is
	uint64_t entry[CONFIG_BURST_MAX];
	union {
		uint32_t v4[CONFIG_BURST_MAX]; // host byte order
		uint8_t v6[CONFIG_BURST_MAX][16];
	} to;
};

static inline struct rte_ipv4_hdr *ipv4(uint8_t *ip)
{
	return (struct rte_ipv4_hdr *)ip;
}

static inline struct rte_ipv6_hdr *ipv6(uint8_t *ip)
{
	return (struct rte_ipv6_hdr *)ip;
}

static inline void add4(const struct route_table *table, struct lookups *to, unsigned frame, unsigned l3,
                        uint8_t *ip)
{
	uint32_t address = rte_be_to_cpu_32(ipv4(ip)->dst_addr);

	route_table_prefetch4(table, address);
	to->frame[to->n] = (uint8_t)frame;
	to->l3[to->n] = (uint8_t)l3;
	to->to.v4[to->n++] = address;
}

static inline void add6(const struct route_table *table, struct lookups *to, unsigned frame, unsigned l3,
                        uint8_t *ip)
{
	route_table_prefetch6(table, (const uint8_t *)&ipv6(ip)->dst_addr);
	to->frame[to->n] = (uint8_t)frame;
	to->l3[to->n] = (uint8_t)l3;
	memcpy(to->to.v6[to->n++], &ipv6(ip)->dst_addr, 16);
}

// By the first byte: 0 if all such addresses may be forwarded from and to.
static const uint8_t ipv4_doubt[256] = {[0] = 1, [127] = 1, [169] = 1, [224 ... 255] = 1};
static const uint8_t ipv6_doubt[256] = {[0] = 1, [0xfe] = 1, [0xff] = 1};

// --- First pass: what each frame is ----------------------------------------------------------------------

static inline bool mac_is_fine(const struct l3fwd *l, unsigned in, const uint8_t *frame)
{
	uint64_t mac;

	memcpy(&mac, frame, sizeof(mac)); // and two bytes that the mask leaves out
	return !(((mac ^ l->own[in]) & l->own_mask) | (mac & 1));
}

static inline bool is_plain4(const struct l3fwd *l, unsigned in, const struct vnf_frame *frame)
{
	const struct rte_ipv4_hdr *ip = ipv4(frame->data + RTE_ETHER_HDR_LEN);
	struct packet p;

	return packet_parse_plain(frame, &p) && mac_is_fine(l, in, frame->data) &&
	       !(ipv4_doubt[ip->src_addr & 0xff] | ipv4_doubt[ip->dst_addr & 0xff]);
}

// As packet_parse_plain(): IPv6 with UDP or TCP right behind it.
static inline bool is_plain6(const struct l3fwd *l, unsigned in, const struct vnf_frame *frame)
{
	const struct rte_ipv6_hdr *ip = ipv6(frame->data + RTE_ETHER_HDR_LEN);
	unsigned payload, least;
	uint16_t type;

	if (frame->length < PLAIN_BYTES)
		return false;
	memcpy(&type, frame->data + 12, sizeof(type));
	payload = rte_be_to_cpu_16(ip->payload_len);
	least = ip->proto == IPPROTO_UDP ? 8 : ip->proto == IPPROTO_TCP ? 20 : UINT16_MAX + 1u;
	return type == RTE_BE16(RTE_ETHER_TYPE_IPV6) && *(const uint8_t *)ip >> 4 == 6 && payload >= least &&
	       PLAIN_BYTES + least <= frame->length && PLAIN_BYTES + payload <= frame->total &&
	       mac_is_fine(l, in, frame->data) &&
	       !(ipv6_doubt[*(const uint8_t *)&ip->src_addr] | ipv6_doubt[*(const uint8_t *)&ip->dst_addr]);
}

static inline void sort_out(struct l3fwd *l, unsigned in, const struct vnf_frame *frames, unsigned i,
                            struct lookups *v4, struct lookups *v6, uint8_t *verdicts)
{
	const struct vnf_frame *frame = &frames[i];
	struct packet p;

	if (likely(is_plain4(l, in, frame))) {
		add4(&l->table, v4, i, RTE_ETHER_HDR_LEN, frame->data + RTE_ETHER_HDR_LEN);
	} else if (is_plain6(l, in, frame)) {
		add6(&l->table, v6, i, RTE_ETHER_HDR_LEN, frame->data + RTE_ETHER_HDR_LEN);
	} else {
		verdicts[i] = l3fwd_classify(l, in, frame, &p);
		if (verdicts[i] == L3FWD_FINE && p.version == 4)
			add4(&l->table, v4, i, p.l3, frame->data + p.l3);
		else if (verdicts[i] == L3FWD_FINE)
			add6(&l->table, v6, i, p.l3, frame->data + p.l3);
	}
}

// --- Last pass: the next hops ----------------------------------------------------------------------------

static inline void entries_prefetch(const struct route_table *table, const struct lookups *found)
{
	for (unsigned k = 0; k < found->n; k++)
		__builtin_prefetch(&table->entries[found->entry[k]], 1);
}

static inline void write_macs(const struct vnf *vnf, const struct route_entry *entry, unsigned out,
                              uint8_t *data)
{
	const uint8_t *macs = vnf->macs[out];

	memcpy(data, entry->has_mac ? entry->mac : macs, RTE_ETHER_ADDR_LEN);
	memcpy(data + RTE_ETHER_ADDR_LEN, macs + RTE_ETHER_ADDR_LEN, RTE_ETHER_ADDR_LEN);
}

static inline void forward4(struct l3fwd *l, unsigned in, const struct vnf_frame *frames,
                            const struct lookups *found, uint8_t *verdicts)
{
	for (unsigned k = 0; k < found->n; k++) {
		const struct vnf_frame *frame = &frames[found->frame[k]];
		struct route_entry *entry = &l->table.entries[found->entry[k]];
		struct rte_ipv4_hdr *ip = ipv4(frame->data + found->l3[k]);
		uint8_t verdict = l->verdicts[in][entry->out];

		entry->packets++;
		if (unlikely((verdict & VNF_DROP) || ip->time_to_live <= 1 ||
		             rte_be_to_cpu_16(ip->total_length) > l->mtu)) {
			verdicts[found->frame[k]] = l3fwd_refuse(l, frame, verdict);
			continue;
		}
		verdicts[found->frame[k]] = verdict;
		packet_ipv4_decrement_ttl(ip);
		write_macs(&l->vnf, entry, verdict, frame->data);
	}
}

static inline void forward6(struct l3fwd *l, unsigned in, const struct vnf_frame *frames,
                            const struct lookups *found, uint8_t *verdicts)
{
	for (unsigned k = 0; k < found->n; k++) {
		const struct vnf_frame *frame = &frames[found->frame[k]];
		struct route_entry *entry = &l->table.entries[found->entry[k]];
		struct rte_ipv6_hdr *ip = ipv6(frame->data + found->l3[k]);
		uint8_t verdict = l->verdicts[in][entry->out];

		entry->packets++;
		if (unlikely((verdict & VNF_DROP) || ip->hop_limits <= 1 ||
		             IPV6_HEADER_BYTES + (uint32_t)rte_be_to_cpu_16(ip->payload_len) > l->mtu)) {
			verdicts[found->frame[k]] = l3fwd_refuse(l, frame, verdict);
			continue;
		}
		verdicts[found->frame[k]] = verdict;
		ip->hop_limits--;
		write_macs(&l->vnf, entry, verdict, frame->data);
	}
}

static bool l3fwd_process(struct vnf *vnf, unsigned in, struct vnf_frame *frames, unsigned n,
                          uint64_t now_tsc, uint8_t *verdicts)
{
	struct l3fwd *l = (struct l3fwd *)vnf;
	struct lookups v4, v6;

	v4.n = v6.n = 0;
	for (unsigned i = 0; i < n; i++) {
		if (i + PREFETCH_AHEAD < n)
			__builtin_prefetch(frames[i + PREFETCH_AHEAD].data, 1);
		sort_out(l, in, frames, i, &v4, &v6, verdicts);
	}
	if (v4.n) {
		route_table_find4(&l->table, v4.to.v4, v4.entry, v4.n);
		entries_prefetch(&l->table, &v4);
	}
	if (v6.n) {
		route_table_find6(&l->table, v6.to.v6, v6.entry, v6.n);
		entries_prefetch(&l->table, &v6);
	}
	forward4(l, in, frames, &v4, verdicts);
	forward6(l, in, frames, &v6, verdicts);
	return false;
}

// --- Made and ended --------------------------------------------------------------------------------------

static void verdicts_set(struct l3fwd *l, unsigned in)
{
	uint8_t *verdicts = l->verdicts[in];

	for (unsigned out = 0; out < ROUTE_OUTS; out++)
		verdicts[out] = out < l->vnf.side_count ? (uint8_t)out : VNF_DROP | L3FWD_NO_ROUTE;
	verdicts[ROUTE_OUT_OTHER] = l->vnf.out[in];
	verdicts[ROUTE_OUT_DROP] = VNF_DROP | L3FWD_BLACKHOLE;
}

static int l3fwd_open(struct vnf *vnf, const struct config_task *config)
{
	struct l3fwd *l = (struct l3fwd *)vnf;
	struct l3fwd_settings *settings = config->settings;
	struct route_list list = settings->list;

	settings->list = (struct route_list){0}; // it is the table's
	if (config->check && settings->synthetic)
		route_list_synthetic(&list, 1);
	l->mtu = settings->mtu;
	l->own_mask = settings->own_mac_only ? UINT64_C(0xffffffffffff) : 0;
	for (unsigned in = 0; in < vnf->side_count; in++) {
		l->own[in] = l3fwd_mac(vnf->macs[in] + RTE_ETHER_ADDR_LEN);
		verdicts_set(l, in);
	}
	return route_table_open(&l->table, &list, settings->fib == L3FWD_CUCKOO, config->name);
}

static void l3fwd_close(struct vnf *vnf)
{
	route_table_close(&((struct l3fwd *)vnf)->table);
}

static void l3fwd_clear(struct task *task)
{
	const struct route_table *table = &((struct l3fwd *)task)->table;

	for (size_t i = 0; i < route_table_entries(table); i++)
		table->entries[i].packets = 0;
}

static const struct vnf_ops l3fwd_vnf = {
        .size = sizeof(struct l3fwd),
        .cost_is_process = true,
        .settings_fields = l3fwd_fields,
        .settings_check = l3fwd_settings_check,
        .open = l3fwd_open,
        .close = l3fwd_close,
        .process = l3fwd_process,
};

static const struct task_ops l3fwd_ops = {
        VNF_TASK_OPS("l3fwd", &l3fwd_vnf, drops, vnf_keys, struct l3fwd_settings),
        .settings_defaults = &l3fwd_defaults,
        .settings_free = l3fwd_settings_free,
        .facts = l3fwd_facts,
        .counters = l3fwd_counters,
        .clear = l3fwd_clear,
        .report = l3fwd_report,
        .methods = l3fwd_methods,
        .ports_min = 1,
        .ports_max = L3FWD_PORTS_MAX,
};
TASK_KIND(l3fwd_ops)
