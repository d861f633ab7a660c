// SPDX-License-Identifier: BSD-3-Clause
// A light TCP state machine, after RFC 6146 s3.5.2.2 and RFC 7857 s2. A session is that of an inside endpoint
// and holds the state of one connection, to the remote endpoint that it began with; only segments to and
// from this one move it. When the endpoint opens a second connection beside it, none of the two can be told
// to be the last, and the session lives until it has been idle for the established timeout. Pure.
#include <rte_tcp.h>

#include "tasks/nat44/nat44.h"

enum { FIN_OUT = 1, FIN_IN = 2, FIN_BOTH = 3 };

bool nat44_tcp_opens(const struct nat44 *nat, uint8_t flags)
{
	if (flags & RTE_TCP_RST_FLAG)
		return false;
	return flags & RTE_TCP_SYN_FLAG || (nat->tcp_loose && !(flags & RTE_TCP_FIN_FLAG));
}

void nat44_tcp_begin(struct nat44_session *s, rte_be32_t remote_ip, rte_be16_t remote_port)
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

void nat44_tcp_out(struct nat44 *nat, struct nat44_session *s, uint8_t flags, rte_be32_t remote_ip,
                   rte_be16_t remote_port, uint64_t now_tsc)
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

void nat44_tcp_in(struct nat44 *nat, struct nat44_session *s, uint8_t flags, rte_be32_t remote_ip,
                  rte_be16_t remote_port, uint64_t now_tsc)
{
	if (s->state != NAT44_STATIC && s->state != NAT44_SHARED && is_remote(s, remote_ip, remote_port))
		segment(nat, s, flags, FIN_IN, now_tsc);
}
