// SPDX-License-Identifier: BSD-3-Clause
// fib_offload: the way of a burst through it: whose each packet is, the lookups of all, and the next hop of
// each, so that cache misses overlap. What is not a plain packet to an offloaded VNF is decided out of line.
//
// A hop that is found is not held when its burst ends, so a tick, each millisecond, is when a worker tells
// the FIB that it holds none. A worker that is parked says nothing: the records of hops that are gone wait
// until it runs again, and nobody waits for them.
#include "base/random.h"
#include "fib/fib_offload.h"

// --- Frames that are not simply forwarded ----------------------------------------------------------------

// Frames that fib_offload does not simply forward: what is for VNFs themselves, what they send, groups.

enum { MESSAGE_MIN = 60, MESSAGE_MAX = 2048, IPV4_TTL = 8, IPV6_NEXT = 6, IPV6_HOP_LIMIT = 7 };

static uint16_t ether_type(const uint8_t *frame)
{
	return (uint16_t)(frame[12] << 8 | frame[13]);
}

// --- Tags ------------------------------------------------------------------------------------------------

// A VNF has frames with the tags of its VLANs. One that is forwarded is looked at as if it began behind its tag, and leaves
// with that of its next hop; what goes to the VNF itself has the tag that it came with, for its kernel.

static inline bool has_tag(const struct vnf_frame *frame)
{
	return load16(frame->data + 2 * RTE_ETHER_ADDR_LEN) == RTE_BE16(RTE_ETHER_TYPE_VLAN) &&
	       likely(frame->length >= RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN);
}

// 0 without a tag, or with one that is only a priority.
static inline unsigned vlan_of(const struct vnf_frame *frame)
{
	return has_tag(frame) ? rte_be_to_cpu_16(load16(frame->data + RTE_ETHER_HDR_LEN)) % VLAN_IDS : 0;
}

// Whether a VNF may have it, or send it.
static inline bool is_in_vlan(const struct offload *o, const struct offload_vnf *vnf, unsigned vlan)
{
	return vlan == 0 || vlans_have(offload_vlans(o, vnf), vlan);
}

static inline void move_start(struct vnf_frame *frame, int bytes)
{
	frame->data += bytes;
	frame->length -= (uint32_t)bytes;
	frame->total -= (uint32_t)bytes;
}

// Behind up to two tags.
static bool is_message(const struct vnf_frame *frame)
{
	rte_be16_t type_be;
	uint16_t at;

	packet_ethernet(frame->data, frame->length, &at, &type_be);
	return type_be == RTE_BE16(FIB_ETHER_TYPE);
}

static uint64_t mac_load(const uint8_t *mac)
{
	uint64_t word = 0;

	memcpy(&word, mac, RTE_ETHER_ADDR_LEN);
	return word;
}

// --- To a VNF itself -------------------------------------------------------------------------------------

// By which wire a neighbour talks to a VNF: what the VNF answers leaves by the same.
static void learn(struct offload *o, const struct offload_vnf *to, unsigned wire,
                  const struct vnf_frame *frame, uint64_t now_tsc)
{
	uint64_t mac = mac_load(frame->data + RTE_ETHER_ADDR_LEN), key = mac_key(mac, to->number);

	if (wire != OFFLOAD_NONE && !mac_is_group(mac) && mac)
		mac_table_learn(o->fib->neighbours, mac_table_bucket(o->fib->neighbours, key), key, wire,
		                now_tsc, &o->neighbour_counts);
}

// To the VNF itself, within its rate. Returns the verdict.
static __rte_noinline uint8_t offload_punt(struct offload *o, struct offload_vnf *to, unsigned wire,
                                           const struct vnf_frame *frame, uint64_t now_tsc)
{
	if (!bucket_take(&to->punts, now_tsc)) {
		to->limited++;
		return VNF_DROP | OFFLOAD_PUNT_LIMITED;
	}
	to->punted++;
	learn(o, to, wire, frame, now_tsc);
	return to->port;
}

// Whether a rule says that a packet is control.
static __rte_noinline bool offload_is_control(const struct offload *o, const struct packet *p)
{
	for (unsigned i = 0; i < o->settings.rule_count; i++) {
		const struct offload_rule *rule = &o->settings.rules[i];

		if (rule->protocol == p->protocol &&
		    (rule->port == 0 ||
		     (p->has_ports && (rule->port == p->src_port || rule->port == p->dst_port))))
			return true;
	}
	return false;
}

// TTL or hop limit at its end (the VNF owes an ICMP error), options that a router must look at (RFC 791,
// RFC 8200 s4.3), and IPv6 to what is on the link only (neighbour discovery).
static bool must_be_seen(const struct packet *p, const uint8_t *ip)
{
	if (p->version == 4)
		return ip[IPV4_TTL] <= 1 || (ip[0] & 0xf) > 5;
	return ip[IPV6_HOP_LIMIT] <= 1 || ip[IPV6_NEXT] == IPPROTO_HOPOPTS || ip[24] == 0xff ||
	       (ip[24] == 0xfe && (ip[25] & 0xc0) == 0x80);
}

// What becomes of a frame for a VNF that is offloaded and whose packet is not plain: OFFLOAD_LOOK_UP with *p,
// OFFLOAD_PUNT, or a drop.
static uint8_t offload_classify(const struct offload *o, const struct vnf_frame *frame, struct packet *p)
{
	uint16_t type = ether_type(frame->data);
	enum packet_fault fault;

	if (type != RTE_ETHER_TYPE_IPV4 && type != RTE_ETHER_TYPE_IPV6)
		return is_message(frame)
		               ? VNF_DROP | OFFLOAD_FOREIGN_MESSAGE // an answer that the VNF could believe
		               : OFFLOAD_PUNT;
	fault = packet_parse_any(frame, p);
	if (fault != PACKET_FINE)
		return (uint8_t)(VNF_DROP | fault);
	return must_be_seen(p, frame->data + p->l3) || offload_is_control(o, p) ? OFFLOAD_PUNT
	                                                                        : OFFLOAD_LOOK_UP;
}

// --- Groups ----------------------------------------------------------------------------------------------

// A frame that goes on to another port as well. A long one that is not in one piece stays out.
static void copy_to(struct offload *o, unsigned out, const struct vnf_frame *frame)
{
	const struct piece piece = {frame->data, frame->length};
	const struct frame whole = {{&piece, 0}, frame->length, 0};
	bool left = frame->length == frame->total &&
	            port_deliver_polled(o->vnf.task.ports[out], o->vnf.task.queue, &whole, 1) == 1;

	o->copies += left;
	o->copies_lost += !left;
}

// The last of its ports is a frame's verdict, and those before it have copies.
static void also_to(struct offload *o, unsigned *last, unsigned out, const struct vnf_frame *frame)
{
	if (*last != OFFLOAD_NONE)
		copy_to(o, *last, frame);
	*last = out;
}

// To every VNF on these wires but its sender; wire: by which it came.
static void to_listeners(struct offload *o, const struct offload_vnf *from, uint8_t wires, unsigned wire,
                         const struct vnf_frame *frame, uint64_t now_tsc, unsigned *last, bool *limited)
{
	for (unsigned i = 0; i < o->vnf_count; i++) {
		struct offload_vnf *to = &o->vnfs[i];

		if (to == from || !(to->wires & wires) || !is_in_vlan(o, to, vlan_of(frame)))
			continue;
		if (to->offload && offload_punt(o, to, wire, frame, now_tsc) & VNF_DROP)
			*limited = true;
		else
			also_to(o, last, to->port, frame);
		if (!to->direct)
			learn(o, to, wire, frame, now_tsc);
	}
}

static uint8_t spread_verdict(unsigned last, bool limited, const struct vnf_frame *frame)
{
	if (last != OFFLOAD_NONE)
		return (uint8_t)last;
	if (limited)
		return VNF_DROP | OFFLOAD_PUNT_LIMITED;
	return VNF_DROP | (vlan_of(frame) ? OFFLOAD_FOREIGN_VLAN : OFFLOAD_NO_LISTENER);
}

// To a VNF that is not offloaded and has several wires, or to nobody.
static uint8_t to_learner(struct offload *o, unsigned wire, const struct vnf_frame *frame, uint64_t now_tsc)
{
	unsigned index = offload_vnf_of_mac(o, frame->data);

	if (index == OFFLOAD_NONE || !(o->vnfs[index].wires >> wire & 1))
		return VNF_DROP | OFFLOAD_UNKNOWN_MAC;
	if (!is_in_vlan(o, &o->vnfs[index], vlan_of(frame)))
		return VNF_DROP | OFFLOAD_FOREIGN_VLAN;
	learn(o, &o->vnfs[index], wire, frame, now_tsc);
	return o->vnfs[index].port;
}

// A frame with a destination that is no VNF's, by a wire, or that of a VNF which learns.
static __rte_noinline uint8_t offload_stray(struct offload *o, unsigned wire, const struct vnf_frame *frame,
                                            uint64_t now_tsc)
{
	unsigned last = OFFLOAD_NONE;
	bool limited = false;

	if (!(frame->data[0] & 1))
		return to_learner(o, wire, frame, now_tsc);
	if (is_message(frame))
		return VNF_DROP | OFFLOAD_FOREIGN_MESSAGE;
	to_listeners(o, NULL, (uint8_t)(1u << wire), wire, frame, now_tsc, &last, &limited);
	return spread_verdict(last, limited, frame);
}

// --- From a VNF ------------------------------------------------------------------------------------------

// A copy is what is read and checked: the other end of a port of ours may write to the frame meanwhile.
static unsigned answer(const struct offload_vnf *from, const struct vnf_frame *frame, uint64_t now_tsc)
{
	uint8_t copy[MESSAGE_MAX];
	unsigned length;

	memcpy(copy, frame->data, frame->length);
	length = fib_session_handle(&from->session->fib_session, copy, frame->length, now_tsc);
	memcpy(frame->data, copy, length);
	return length;
}

// A message goes back as its answer, as long as it was: what is behind the answer is padding.
static uint8_t message(const struct offload_vnf *from, const struct vnf_frame *frame, uint64_t now_tsc)
{
	unsigned length;

	if (!from->session)
		return VNF_DROP | OFFLOAD_FOREIGN_MESSAGE;
	if (frame->length < MESSAGE_MIN || frame->length > MESSAGE_MAX || frame->length != frame->total)
		return VNF_DROP | OFFLOAD_BAD_MESSAGE;
	if (!rte_spinlock_trylock(&from->session->lock))
		return VNF_DROP | OFFLOAD_BUSY_MESSAGE;
	length = answer(from, frame, now_tsc);
	rte_spinlock_unlock(&from->session->lock);
	return length ? from->port : VNF_DROP | OFFLOAD_BAD_MESSAGE;
}

static uint8_t to_wires(struct offload *o, const struct offload_vnf *from, const struct vnf_frame *frame,
                        uint64_t now_tsc)
{
	unsigned last = OFFLOAD_NONE;
	bool limited = false;

	to_listeners(o, from, from->wires, OFFLOAD_NONE, frame, now_tsc, &last, &limited);
	for (unsigned i = 0; i < o->settings.fib.wire_count; i++)
		if (from->wires >> i & 1)
			also_to(o, &last, o->wire_ports[i], frame);
	return spread_verdict(last, limited, frame);
}

// By the wire where its destination was last heard, or by the VNF's own.
static uint8_t to_neighbour(struct offload *o, const struct offload_vnf *from, const uint8_t *data,
                            uint64_t now_tsc)
{
	uint64_t key = mac_key(mac_load(data), from->number);
	unsigned wire = mac_table_lookup(o->fib->neighbours, mac_table_bucket(o->fib->neighbours, key), key,
	                                 now_tsc, &o->neighbour_counts);

	return wire < o->settings.fib.wire_count && from->wires >> wire & 1 ? o->wire_ports[wire] : from->out;
}

// A frame from a VNF's port: a verdict, or the other VNF that it is for in *to.
static __rte_noinline uint8_t offload_from_vnf(struct offload *o, struct offload_vnf *from,
                                               const struct vnf_frame *frame, uint64_t now_tsc, unsigned *to)
{
	unsigned index;

	if (frame->length < RTE_ETHER_HDR_LEN)
		return VNF_DROP | PACKET_RUNT;
	if (ether_type(frame->data) == FIB_ETHER_TYPE)
		return message(from, frame, now_tsc);
	if (is_message(frame))
		return VNF_DROP | OFFLOAD_BAD_MESSAGE;
	if (memcmp(frame->data + RTE_ETHER_ADDR_LEN, from->mac, RTE_ETHER_ADDR_LEN) != 0)
		return VNF_DROP | OFFLOAD_SPOOFED;
	if (!is_in_vlan(o, from, vlan_of(frame)))
		return VNF_DROP | OFFLOAD_FOREIGN_VLAN;
	from->sent++;
	if (frame->data[0] & 1)
		return to_wires(o, from, frame, now_tsc);
	index = offload_vnf_of_mac(o, frame->data);
	if (index == OFFLOAD_NONE || !(o->vnfs[index].wires & from->wires))
		return to_neighbour(o, from, frame->data, now_tsc);
	if (&o->vnfs[index] == from)
		return VNF_DROP | OFFLOAD_UNKNOWN_MAC;
	*to = index;
	return OFFLOAD_LOOK_UP;
}

enum {
	PREFETCH_AHEAD = 4,
	// Of a tick: some microseconds where nothing is dead, and 0.2 to 0.5 for each prefix that is taken out.
	SWEEP_BUCKETS = 256,
	SWEEP_AT_ONCE = 4, // buckets
	SWEEP_REMOVED = 128,
	SESSIONS_A_TICK = 8,
};
_Static_assert((int)CONFIG_BURST_MAX <= (int)CUCKOO_BULK_MAX, "a burst is one lookup");

static const struct counter drops[] = {
        VNF_PACKET_DROPS,
        VNF_DROP_COUNTER(OFFLOAD_UNKNOWN_MAC, "unknown_mac"),
        VNF_DROP_COUNTER(OFFLOAD_NO_LISTENER, "no_listener"),
        VNF_DROP_COUNTER(OFFLOAD_NO_ROUTE, "no_route"),
        VNF_DROP_COUNTER(OFFLOAD_BLACKHOLE, "blackhole"),
        VNF_DROP_COUNTER(OFFLOAD_PUNT_LIMITED, "punt_limited"),
        VNF_DROP_COUNTER(OFFLOAD_SPOOFED, "spoofed"),
        VNF_DROP_COUNTER(OFFLOAD_FOREIGN_MESSAGE, "foreign_message"),
        VNF_DROP_COUNTER(OFFLOAD_BAD_MESSAGE, "bad_message"),
        VNF_DROP_COUNTER(OFFLOAD_BUSY_MESSAGE, "busy_message"),
        VNF_DROP_COUNTER(OFFLOAD_WIRE_DOWN, "wire_down"),
        VNF_DROP_COUNTER(OFFLOAD_FOREIGN_VLAN, "foreign_vlan"),
        {0},
};

// --- A burst: whose each packet is -----------------------------------------------------------------------

// The packets of a burst that are looked up.
struct lookups {
	unsigned n4, n6;
	uint64_t tagged; // a bit for each frame of the burst that begins behind its tag now
	uint8_t frame4[CONFIG_BURST_MAX], frame6[CONFIG_BURST_MAX]; // in the burst
	uint8_t vnf4[CONFIG_BURST_MAX], vnf6[CONFIG_BURST_MAX];     // of vnfs[]
	struct fib_query4 to4[CONFIG_BURST_MAX];
	struct fib_query6 to6[CONFIG_BURST_MAX];
};

static inline struct rte_ipv4_hdr *ipv4(const struct vnf_frame *frame)
{
	return (struct rte_ipv4_hdr *)(frame->data + RTE_ETHER_HDR_LEN);
}

static inline struct rte_ipv6_hdr *ipv6(const struct vnf_frame *frame)
{
	return (struct rte_ipv6_hdr *)(frame->data + RTE_ETHER_HDR_LEN);
}

static inline void add4(struct lookups *l, unsigned i, unsigned vnf, uint16_t number,
                        const struct vnf_frame *frame)
{
	l->frame4[l->n4] = (uint8_t)i;
	l->vnf4[l->n4] = (uint8_t)vnf;
	l->to4[l->n4++] = (struct fib_query4){number, rte_be_to_cpu_32(ipv4(frame)->dst_addr)};
}

static inline void add6(struct lookups *l, unsigned i, unsigned vnf, uint16_t number,
                        const struct vnf_frame *frame)
{
	l->frame6[l->n6] = (uint8_t)i;
	l->vnf6[l->n6] = (uint8_t)vnf;
	l->to6[l->n6].vnf = number;
	memcpy(l->to6[l->n6++].address, &ipv6(frame)->dst_addr, sizeof(l->to6[0].address));
}

// Whether no rule can say that a plain packet is control: by one byte of each port.
static inline bool no_doubt(const struct offload *o, const struct vnf_frame *frame)
{
	const uint8_t *ports = frame->data + RTE_ETHER_HDR_LEN + sizeof(struct rte_ipv4_hdr);
	uint8_t bit = ipv4(frame)->next_proto_id == IPPROTO_TCP ? 1 : 2;

	return !((o->doubt[ports[1]] | o->doubt[ports[3]]) & bit);
}

// L2: what a VNF that exchanges MAC addresses would send (Fig. 11 of ic16).
static inline uint8_t reflect(struct offload_vnf *to, const struct vnf_frame *frame)
{
	memcpy(frame->data, to->macs, sizeof(to->macs));
	to->forwarded++;
	return to->out;
}

// Whether a frame is simply forwarded: then it is among the lookups.
static __rte_always_inline bool add_plain(const struct offload *o, const struct vnf_frame *frame, unsigned i,
                                          unsigned index, struct lookups *l)
{
	if (unlikely(!packet_is_plain(frame) || ipv4(frame)->time_to_live <= 1 || !no_doubt(o, frame)))
		return false;
	add4(l, i, index, o->vnfs[index].number, frame);
	return true;
}

// The same as to_vnf() of any other frame for a VNF that is offloaded. A tag that is only a priority is for the VNF's kernel
// where no VLANs are.
static __rte_noinline uint8_t to_vnf_any(struct offload *o, unsigned wire, struct vnf_frame *frame,
                                         unsigned i, unsigned index, struct lookups *l, uint64_t now_tsc)
{
	struct offload_vnf *to = &o->vnfs[index];
	bool tagged = false;
	struct packet p;
	uint8_t verdict;

	if (unlikely(has_tag(frame))) {
		tagged = vlans_have(offload_vlans(o, to), vlan_of(frame));
		if (!tagged && vlan_of(frame))
			return VNF_DROP | OFFLOAD_FOREIGN_VLAN;
		move_start(frame, tagged ? RTE_VLAN_HLEN : 0);
		l->tagged |= (uint64_t)tagged << i;
		if (likely(add_plain(o, frame, i, index, l)))
			return OFFLOAD_LOOK_UP;
	}
	verdict = offload_classify(o, frame, &p);
	if (verdict == OFFLOAD_LOOK_UP && p.version == 4)
		add4(l, i, index, to->number, frame);
	else if (verdict == OFFLOAD_LOOK_UP)
		add6(l, i, index, to->number, frame);
	if (verdict != OFFLOAD_PUNT)
		return verdict;
	if (tagged)
		move_start(frame, -RTE_VLAN_HLEN);
	return offload_punt(o, to, wire, frame, now_tsc);
}

// A frame for a VNF, by a wire or from another VNF (OFFLOAD_NONE).
static __rte_always_inline uint8_t to_vnf(struct offload *o, unsigned wire, struct vnf_frame *frame,
                                          unsigned i, unsigned index, struct lookups *l, uint64_t now_tsc)
{
	struct offload_vnf *to = &o->vnfs[index];

	if (!to->offload) {
		if (unlikely(!is_in_vlan(o, to, vlan_of(frame))))
			return VNF_DROP | OFFLOAD_FOREIGN_VLAN;
		return to->reflects ? reflect(to, frame) : to->port;
	}
	if (likely(add_plain(o, frame, i, index, l)))
		return OFFLOAD_LOOK_UP;
	return to_vnf_any(o, wire, frame, i, index, l, now_tsc);
}

static inline uint8_t by_wire(struct offload *o, unsigned wire, struct vnf_frame *frame, unsigned i,
                              struct lookups *l, uint64_t now_tsc)
{
	unsigned index;

	if (unlikely(frame->length < RTE_ETHER_HDR_LEN))
		return VNF_DROP | PACKET_RUNT;
	index = offload_vnf_of_mac(o, frame->data);
	if (likely(index != OFFLOAD_NONE && o->vnfs[index].direct >> wire & 1))
		return to_vnf(o, wire, frame, i, index, l, now_tsc);
	return offload_stray(o, wire, frame, now_tsc);
}

static __rte_noinline uint8_t by_vnf(struct offload *o, struct offload_vnf *from, struct vnf_frame *frame,
                                     unsigned i, struct lookups *l, uint64_t now_tsc)
{
	unsigned to = OFFLOAD_NONE;
	uint8_t verdict = offload_from_vnf(o, from, frame, now_tsc, &to);

	return to == OFFLOAD_NONE ? verdict : to_vnf(o, OFFLOAD_NONE, frame, i, to, l, now_tsc);
}

// --- The next hop of each --------------------------------------------------------------------------------

// The same for all packets of a flow, and for all fragments of a datagram: by addresses, protocol and ports, of which
// fragments have only the addresses. By the VNF, too: one behind another sees other parts of the flows in its groups.
static uint32_t flow_of(const struct vnf_frame *frame, unsigned version, uint16_t vnf)
{
	unsigned at = RTE_ETHER_HDR_LEN + (version == 4 ? 12 : 8), bytes = version == 4 ? 8 : 32;
	uint64_t hash = vnf, word;
	struct packet p;

	for (unsigned i = 0; i < bytes; i += sizeof(word)) {
		memcpy(&word, frame->data + at + i, sizeof(word));
		hash = random_mix(hash ^ word);
	}
	if (packet_parse(frame, &p) == PACKET_FINE && !p.fragment)
		hash = random_mix(hash ^
		                  ((uint64_t)p.protocol << 32 | (uint32_t)p.src_port << 16 | p.dst_port));
	return (uint32_t)(hash >> 32);
}

static __rte_noinline const struct fib_hop *member4(const struct offload *o, const struct fib_hop *hop,
                                                    const struct fib_query4 *to,
                                                    const struct vnf_frame *frame)
{
	return fib_of_flow4(o->fib->fib, hop, to, flow_of(frame, 4, to->vnf), o->wires_down);
}

static __rte_noinline const struct fib_hop *member6(const struct offload *o, const struct fib_hop *hop,
                                                    const struct fib_query6 *to,
                                                    const struct vnf_frame *frame)
{
	return fib_of_flow6(o->fib->fib, hop, to, flow_of(frame, 6, to->vnf), o->wires_down);
}

// What a VNF has no route for, among the routes of the VNF that it shares.
static __rte_noinline void ask_shared4(const struct offload *o, struct lookups *l,
                                       const struct fib_hop **hops)
{
	const struct fib_hop *found[CONFIG_BURST_MAX];
	struct fib_query4 queries[CONFIG_BURST_MAX];
	uint8_t of[CONFIG_BURST_MAX];
	unsigned n = 0;

	for (unsigned k = 0; k < l->n4; k++) {
		uint16_t routes_of = o->vnfs[l->vnf4[k]].routes_of;

		if (routes_of == 0 || hops[k]->kind != FIB_HOP_NONE)
			continue;
		l->to4[k].vnf = routes_of;
		queries[n] = l->to4[k];
		of[n++] = (uint8_t)k;
	}
	if (n)
		fib_find4(o->fib->fib, queries, n, found);
	for (unsigned i = 0; i < n; i++)
		hops[of[i]] = found[i];
}

static __rte_noinline void ask_shared6(const struct offload *o, struct lookups *l,
                                       const struct fib_hop **hops)
{
	const struct fib_hop *found[CONFIG_BURST_MAX];
	struct fib_query6 queries[CONFIG_BURST_MAX];
	uint8_t of[CONFIG_BURST_MAX];
	unsigned n = 0;

	for (unsigned k = 0; k < l->n6; k++) {
		uint16_t routes_of = o->vnfs[l->vnf6[k]].routes_of;

		if (routes_of == 0 || hops[k]->kind != FIB_HOP_NONE)
			continue;
		l->to6[k].vnf = routes_of;
		queries[n] = l->to6[k];
		of[n++] = (uint8_t)k;
	}
	if (n)
		fib_find6(o->fib->fib, queries, n, found);
	for (unsigned i = 0; i < n; i++)
		hops[of[i]] = found[i];
}

// Kinds that a hop has for a packet, beside those of the FIB.
enum { HOP_WIRE_DOWN = FIB_HOP_GROUP + 1, HOP_TOO_LONG };

// Where a wire is down, or has an MTU: each hop as it is for its packet, groups and all. Elsewhere this is no cost.
static __rte_noinline void be_careful(const struct offload *o, const struct vnf_frame *frames,
                                      unsigned version, const struct lookups *l, const struct fib_hop **hops)
{
	static const struct fib_hop wire_down = {.kind = HOP_WIRE_DOWN}, too_long = {.kind = HOP_TOO_LONG};

	for (unsigned k = 0; k < (version == 4 ? l->n4 : l->n6); k++) {
		const struct vnf_frame *frame = &frames[version == 4 ? l->frame4[k] : l->frame6[k]];
		const struct fib_hop *hop = hops[k];

		if (hop->kind == FIB_HOP_GROUP)
			hop = version == 4 ? member4(o, hop, &l->to4[k], frame)
			                   : member6(o, hop, &l->to6[k], frame);
		if (hop->kind == FIB_HOP_FORWARD && o->wires_down >> hop->port % OFFLOAD_WIRES_MAX & 1)
			hop = &wire_down;
		else if (hop->kind == FIB_HOP_FORWARD &&
		         frame->total > o->frame_max[hop->port % OFFLOAD_WIRES_MAX])
			hop = &too_long;
		hops[k] = hop;
	}
}

// What is not forwarded.
static __attribute__((noinline)) uint8_t no_way(struct offload *o, struct offload_vnf *to, unsigned wire,
                                                const struct fib_hop *hop, const struct vnf_frame *frame,
                                                uint64_t now_tsc)
{
	if (hop->kind == FIB_HOP_LOCAL)
		return offload_punt(o, to, wire, frame, now_tsc);
	if (hop->kind == FIB_HOP_BLACKHOLE)
		return VNF_DROP | OFFLOAD_BLACKHOLE;
	if ((unsigned)hop->kind == HOP_TOO_LONG) { // RFC 1191 s4, RFC 8201: the VNF says so, or fragments
		to->too_long++;
		return offload_punt(o, to, wire, frame, now_tsc);
	}
	if ((unsigned)hop->kind == HOP_WIRE_DOWN)
		return to->punts_misses ? offload_punt(o, to, wire, frame, now_tsc)
		                        : VNF_DROP | OFFLOAD_WIRE_DOWN;
	to->no_route++;
	return to->punts_misses ? offload_punt(o, to, wire, frame, now_tsc) : VNF_DROP | OFFLOAD_NO_ROUTE;
}

// What is not forwarded, or with a tag: unless the VNF has its VLAN no more. Its priority is 0, as Linux has it. Returns a
// verdict, or OFFLOAD_LOOK_UP: by the hop.
static __rte_noinline uint8_t on_its_way(struct offload *o, struct offload_vnf *to, unsigned wire,
                                         const struct fib_hop *hop, struct vnf_frame *frame, bool tagged,
                                         uint64_t now_tsc)
{
	const rte_be16_t tag[] = {RTE_BE16(RTE_ETHER_TYPE_VLAN), rte_cpu_to_be_16(hop->vlan)};

	if (hop->kind != FIB_HOP_FORWARD) {
		if (tagged) // as it came
			move_start(frame, -RTE_VLAN_HLEN);
		return no_way(o, to, wire, hop, frame, now_tsc);
	}
	if (hop->vlan == 0)
		return OFFLOAD_LOOK_UP;
	if (!vlans_have(offload_vlans(o, to), hop->vlan))
		return VNF_DROP | OFFLOAD_FOREIGN_VLAN;
	move_start(frame, -RTE_VLAN_HLEN);
	memcpy(frame->data + 2 * RTE_ETHER_ADDR_LEN, tag, sizeof(tag));
	return OFFLOAD_LOOK_UP;
}

// routes: of the VNF whose they are. The source address of another's next hop is not this VNF's.
static inline uint8_t leave(struct offload *o, struct offload_vnf *to, const struct fib_hop *hop,
                            const struct vnf_frame *frame, uint16_t routes)
{
	memcpy(frame->data, hop->macs, sizeof(hop->macs));
	if (unlikely(routes != to->number))
		memcpy(frame->data + RTE_ETHER_ADDR_LEN, to->mac, RTE_ETHER_ADDR_LEN);
	to->forwarded++;
	return o->wire_ports[hop->port % OFFLOAD_WIRES_MAX];
}

static inline void hops4(struct offload *o, unsigned wire, struct vnf_frame *frames, struct lookups *l,
                         uint64_t now_tsc, uint8_t *verdicts)
{
	const struct fib_hop *hops[CONFIG_BURST_MAX];

	fib_find4(o->fib->fib, l->to4, l->n4, hops);
	if (unlikely(o->shares))
		ask_shared4(o, l, hops);
	if (unlikely(o->careful))
		be_careful(o, frames, 4, l, hops);
	for (unsigned k = 0; k < l->n4; k++) {
		struct vnf_frame *frame = &frames[l->frame4[k]];
		struct offload_vnf *to = &o->vnfs[l->vnf4[k]];
		const struct fib_hop *hop = hops[k];
		struct rte_ipv4_hdr *ip = ipv4(frame);

		if (unlikely(hop->kind != FIB_HOP_FORWARD || hop->vlan)) {
			if (hop->kind == FIB_HOP_GROUP)
				hop = member4(o, hop, &l->to4[k], frame);
			verdicts[l->frame4[k]] =
			        on_its_way(o, to, wire, hop, frame, l->tagged >> l->frame4[k] & 1, now_tsc);
			if (verdicts[l->frame4[k]] != OFFLOAD_LOOK_UP)
				continue;
		}
		packet_ipv4_decrement_ttl(ip);
		verdicts[l->frame4[k]] = leave(o, to, hop, frame, l->to4[k].vnf);
	}
}

static inline void hops6(struct offload *o, unsigned wire, struct vnf_frame *frames, struct lookups *l,
                         uint64_t now_tsc, uint8_t *verdicts)
{
	const struct fib_hop *hops[CONFIG_BURST_MAX];

	fib_find6(o->fib->fib, l->to6, l->n6, hops);
	if (unlikely(o->shares))
		ask_shared6(o, l, hops);
	if (unlikely(o->careful))
		be_careful(o, frames, 6, l, hops);
	for (unsigned k = 0; k < l->n6; k++) {
		struct vnf_frame *frame = &frames[l->frame6[k]];
		struct offload_vnf *to = &o->vnfs[l->vnf6[k]];
		const struct fib_hop *hop = hops[k];
		struct rte_ipv6_hdr *ip = ipv6(frame);

		if (unlikely(hop->kind != FIB_HOP_FORWARD || hop->vlan)) {
			if (hop->kind == FIB_HOP_GROUP)
				hop = member6(o, hop, &l->to6[k], frame);
			verdicts[l->frame6[k]] =
			        on_its_way(o, to, wire, hop, frame, l->tagged >> l->frame6[k] & 1, now_tsc);
			if (verdicts[l->frame6[k]] != OFFLOAD_LOOK_UP)
				continue;
		}
		ip->hop_limits--;
		verdicts[l->frame6[k]] = leave(o, to, hop, frame, l->to6[k].vnf);
	}
}

static bool offload_process(struct vnf *vnf, unsigned in, struct vnf_frame *frames, unsigned n,
                            uint64_t now_tsc, uint8_t *verdicts)
{
	struct offload *o = (struct offload *)vnf;
	unsigned wire = o->wire_of[in];
	struct lookups l;

	l.n4 = l.n6 = 0;
	l.tagged = 0;
	for (unsigned i = 0; i < n; i++) {
		if (i + PREFETCH_AHEAD < n)
			__builtin_prefetch(frames[i + PREFETCH_AHEAD].data, 1);
		verdicts[i] = likely(wire != OFFLOAD_NONE)
		                      ? by_wire(o, wire, &frames[i], i, &l, now_tsc)
		                      : by_vnf(o, &o->vnfs[o->vnf_of[in]], &frames[i], i, &l, now_tsc);
	}
	if (l.n4)
		hops4(o, wire, frames, &l, now_tsc, verdicts);
	if (l.n6)
		hops6(o, wire, frames, &l, now_tsc, verdicts);
	return false;
}

// --- What time does --------------------------------------------------------------------------------------

// One wire each time: to ask a device costs a microsecond.
static void wire_look(struct offload *o)
{
	uint32_t bit = UINT32_C(1) << o->wire_next;

	if (port_link_up(o->vnf.task.ports[o->wire_ports[o->wire_next]]))
		atomic_fetch_and(&o->fib->wires_down, ~bit);
	else
		atomic_fetch_or(&o->fib->wires_down, bit);
	o->wire_next = o->wire_next + 1 < o->settings.fib.wire_count ? o->wire_next + 1 : 0;
	o->wires_down = atomic_load(&o->fib->wires_down);
	o->careful = o->wires_down || o->has_mtus;
}

// Tell the VNF which of its wires are down, if that is new.
static void wires_tell(struct offload *o, const struct offload_vnf *v)
{
	struct fib_session *session = &v->session->fib_session;
	uint8_t down = 0, data[FIB_ANSWER_BYTES];
	const struct piece piece = {data, sizeof(data)};
	const struct frame whole = {{&piece, 0}, sizeof(data), 0};

	for (unsigned i = 0; i < session->wires; i++)
		down |= (uint8_t)((o->wires_down >> session->ports[i] & 1) << i);
	if (fib_session_wires(session, down, data))
		port_deliver_polled(o->vnf.task.ports[v->port], o->vnf.task.queue, &whole, 1);
}

static void sweep_a_little(struct fib *fib)
{
	uint64_t removed = 0;

	for (unsigned i = 0; i < SWEEP_BUCKETS && removed < SWEEP_REMOVED && fib_is_dirty(fib);
	     i += SWEEP_AT_ONCE)
		removed += fib_sweep(fib, SWEEP_AT_ONCE);
}

// Sessions of a few VNFs, each of them in turn every few milliseconds; and a little of the sweep.
static void offload_tick(struct vnf *vnf, uint64_t now_tsc)
{
	struct offload *o = (struct offload *)vnf;
	struct fib *fib = o->fib->fib;

	fib_reader_quiet(fib, o->reader);
	wire_look(o);
	for (unsigned i = 0; i < RTE_MIN(o->vnf_count, (unsigned)SESSIONS_A_TICK); i++) {
		struct offload_vnf *v = &o->vnfs[o->tick_next];

		o->tick_next = o->tick_next + 1 < o->vnf_count ? o->tick_next + 1 : 0;
		if (!v->session || !rte_spinlock_trylock(&v->session->lock))
			continue;
		fib_session_tick(&v->session->fib_session, port_link_up(vnf->task.ports[v->port]), now_tsc);
		wires_tell(o, v);
		rte_spinlock_unlock(&v->session->lock);
	}
	if (fib_is_dirty(fib) && fib_trylock(fib)) {
		sweep_a_little(fib);
		fib_unlock(fib);
	}
}

// --- What the runtime calls ------------------------------------------------------------------------------

static void offload_clear(struct task *task)
{
	struct offload *o = (struct offload *)task;

	o->neighbour_counts = (struct mac_counts){0};
	for (unsigned i = 0; i < o->vnf_count; i++)
		counters_clear(offload_vnf_counters, &o->vnfs[i]);
}

static const struct vnf_ops fib_offload_vnf = {
        .size = sizeof(struct offload),
        .settings_fields = offload_fields,
        .settings_check = offload_settings_check,
        .open = offload_open,
        .close = offload_close,
        .process = offload_process,
        .tick = offload_tick,
};

static const struct task_ops fib_offload_ops = {
        VNF_TASK_OPS("fib_offload", &fib_offload_vnf, drops, vnf_keys_settings, struct offload_settings),
        .settings_defaults = &offload_defaults,
        .counters = offload_counters,
        .clear = offload_clear,
        .report = offload_report,
        .agree = offload_agree,
        .take_effect = offload_take_effect,
        .keep = offload_keep,
        .methods = offload_methods,
        .methods_beside = true,
        .ports_min = 2,
        .ports_max = CONFIG_TASK_PORTS_MAX,
};
TASK_KIND(fib_offload_ops)
