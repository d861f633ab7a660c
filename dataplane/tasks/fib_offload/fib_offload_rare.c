// SPDX-License-Identifier: BSD-3-Clause
// Frames that fib_offload does not simply forward: what is for VNFs themselves, what they send, groups.
#include "tasks/fib_offload/fib_offload.h"

enum { MESSAGE_MIN = 60, MESSAGE_MAX = 2048, IPV4_TTL = 8, IPV6_NEXT = 6, IPV6_HOP_LIMIT = 7 };

static uint16_t ether_type(const uint8_t *frame)
{
	return (uint16_t)(frame[12] << 8 | frame[13]);
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
		mac_table_learn(o->neighbours, mac_table_bucket(o->neighbours, key), key, wire, now_tsc,
		                &o->neighbour_counts);
}

uint8_t offload_punt(struct offload *o, struct offload_vnf *to, unsigned wire, const struct vnf_frame *frame,
                     uint64_t now_tsc)
{
	if (!limiter_take(&o->meter, &to->punts.credit, &to->punts.seen_tsc, 0, now_tsc)) {
		to->limited++;
		return VNF_DROP | OFFLOAD_PUNT_LIMITED;
	}
	to->punted++;
	learn(o, to, wire, frame, now_tsc);
	return to->port;
}

bool offload_is_control(const struct offload *o, const struct packet *p)
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

uint8_t offload_classify(struct offload *o, struct offload_vnf *to, unsigned wire,
                         const struct vnf_frame *frame, uint64_t now_tsc, struct packet *p)
{
	uint16_t type = ether_type(frame->data);
	enum packet_fault fault;

	if (type == FIB_ETHER_TYPE) // an answer that the VNF could believe
		return VNF_DROP | OFFLOAD_FOREIGN_MESSAGE;
	if (type != RTE_ETHER_TYPE_IPV4 && type != RTE_ETHER_TYPE_IPV6)
		return offload_punt(o, to, wire, frame, now_tsc);
	fault = packet_parse_any(frame, p);
	if (fault != PACKET_FINE)
		return (uint8_t)(VNF_DROP | fault);
	if (must_be_seen(p, frame->data + p->l3) || offload_is_control(o, p))
		return offload_punt(o, to, wire, frame, now_tsc);
	return OFFLOAD_LOOK_UP;
}

// --- Groups ----------------------------------------------------------------------------------------------

static bool send_copy(const struct port *port, uint16_t queue, const struct vnf_frame *frame)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(port->rx_pool);
	char *room = m ? rte_pktmbuf_append(m, (uint16_t)frame->length) : NULL;

	if (room)
		memcpy(room, frame->data, frame->length);
	if (room && port_send(port, queue, &m, 1) == 1)
		return true;
	rte_pktmbuf_free(m);
	return false;
}

// A frame that goes on to another port as well. A long one that is not in one piece stays out.
static void copy_to(struct offload *o, unsigned out, const struct vnf_frame *frame)
{
	const struct port *port = o->vnf.task.ports[out];
	uint16_t queue = o->vnf.task.queue;
	const struct ring_piece piece = {frame->data, frame->length};
	const struct frame whole = {{&piece, 0}, frame->length};
	bool left = false;

	if (frame->length == frame->total && frame->length <= UINT16_MAX)
		left = port_in_place(port) ? port_deliver(port, queue, &whole, 1) == 1
		                           : send_copy(port, queue, frame);
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

		if (to == from || !(to->wires & wires))
			continue;
		if (to->offload && offload_punt(o, to, wire, frame, now_tsc) & VNF_DROP)
			*limited = true;
		else
			also_to(o, last, to->port, frame);
	}
}

static uint8_t spread_verdict(unsigned last, bool limited)
{
	if (last != OFFLOAD_NONE)
		return (uint8_t)last;
	return VNF_DROP | (limited ? OFFLOAD_PUNT_LIMITED : OFFLOAD_NO_LISTENER);
}

uint8_t offload_stray(struct offload *o, unsigned wire, const struct vnf_frame *frame, uint64_t now_tsc)
{
	unsigned last = OFFLOAD_NONE;
	bool limited = false;

	if (!(frame->data[0] & 1))
		return VNF_DROP | OFFLOAD_UNKNOWN_MAC;
	if (ether_type(frame->data) == FIB_ETHER_TYPE)
		return VNF_DROP | OFFLOAD_FOREIGN_MESSAGE;
	to_listeners(o, NULL, (uint8_t)(1u << wire), wire, frame, now_tsc, &last, &limited);
	return spread_verdict(last, limited);
}

// --- From a VNF ------------------------------------------------------------------------------------------

// What the other end of a port of ours may write to while it is read is copied first, and the answer back.
static unsigned answer(struct offload *o, const struct offload_vnf *from, const struct vnf_frame *frame,
                       uint64_t now_tsc)
{
	struct fib_session *session = &from->session->fib_session;
	uint8_t copy[MESSAGE_MAX];
	unsigned length;

	if (!o->vnf.in_place[from->port])
		return fib_session_handle(session, frame->data, frame->length, now_tsc);
	memcpy(copy, frame->data, frame->length);
	length = fib_session_handle(session, copy, frame->length, now_tsc);
	memcpy(frame->data, copy, length);
	return length;
}

// A message goes back as its answer, as long as it was: what is behind the answer is padding.
static uint8_t message(struct offload *o, const struct offload_vnf *from, const struct vnf_frame *frame,
                       uint64_t now_tsc)
{
	unsigned length;

	if (!from->session)
		return VNF_DROP | OFFLOAD_FOREIGN_MESSAGE;
	if (frame->length < MESSAGE_MIN || frame->length > MESSAGE_MAX || frame->length != frame->total)
		return VNF_DROP | OFFLOAD_BAD_MESSAGE;
	if (!rte_spinlock_trylock(&from->session->lock))
		return VNF_DROP | OFFLOAD_BUSY_MESSAGE;
	length = answer(o, from, frame, now_tsc);
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
	return spread_verdict(last, limited);
}

// By the wire where its destination was last heard, or by the VNF's own.
static uint8_t to_neighbour(struct offload *o, const struct offload_vnf *from, const uint8_t *data,
                            uint64_t now_tsc)
{
	uint64_t key = mac_key(mac_load(data), from->number);
	unsigned wire = mac_table_lookup(o->neighbours, mac_table_bucket(o->neighbours, key), key, now_tsc,
	                                 &o->neighbour_counts);

	return wire < o->settings.fib.wire_count ? o->wire_ports[wire] : from->out;
}

uint8_t offload_from_vnf(struct offload *o, struct offload_vnf *from, const struct vnf_frame *frame,
                         uint64_t now_tsc, unsigned *to)
{
	unsigned index;

	if (frame->length < RTE_ETHER_HDR_LEN)
		return VNF_DROP | PACKET_RUNT;
	if (ether_type(frame->data) == FIB_ETHER_TYPE)
		return message(o, from, frame, now_tsc);
	if (memcmp(frame->data + RTE_ETHER_ADDR_LEN, from->mac, RTE_ETHER_ADDR_LEN) != 0)
		return VNF_DROP | OFFLOAD_SPOOFED;
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
