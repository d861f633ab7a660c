// SPDX-License-Identifier: BSD-3-Clause
// From the object "profile" to what a worker needs: sizes and their round, addresses, tables, and the files.
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_tcp.h>
#include <rte_udp.h>
#include <stdlib.h>
#include <string.h>

#include "lib/alias.h"
#include "lib/input_file.h"
#include "tasks/tester/profile_making.h"

enum {
	FILE_ADDRESSES = 0, // of files[]
	FILE_CAPTURE,
	TTL = 64,
	TCP_WINDOW = 65535,
};

// Addresses of the benchmarking network 2001:2::/48 (RFC 5180 s8, erratum 1752); their lower 32 bits are the
// IPv4 ones.
static const uint8_t ipv6_src[12] = {0x20, 0x01, 0, 2, 0, 0, 0, 0},
                     ipv6_dst[12] = {0x20, 0x01, 0, 2, 0, 0, 0, 1};

// --- Headers ---------------------------------------------------------------------------------------------

static inline void put16(uint8_t *at, uint16_t value)
{
	value = rte_cpu_to_be_16(value);
	memcpy(at, &value, sizeof(value));
}

static void layout_set(struct making *m)
{
	struct profile *p = m->p;

	p->version = (uint8_t)m->r->ip;
	p->protocol = m->r->transport ? IPPROTO_TCP : IPPROTO_UDP;
	p->l3 = RTE_ETHER_HDR_LEN + (m->r->vlan ? FRAME_TAG_BYTES : 0);
	p->l4 = p->l3 + (p->version == 6 ? sizeof(struct rte_ipv6_hdr) : sizeof(struct rte_ipv4_hdr));
	p->own = p->l4 + (m->r->transport ? sizeof(struct rte_tcp_hdr) : sizeof(struct rte_udp_hdr));
	p->store = p->own + FRAME_OWN_BYTES <= FRAME_STORE_BYTES ? FRAME_STORE_BYTES : PROFILE_STORE_MAX;
}

static void ethernet_write(const struct making *m, uint8_t *data)
{
	memcpy(data + RTE_ETHER_ADDR_LEN, m->flow->src_mac, RTE_ETHER_ADDR_LEN);
	if (m->r->vlan) {
		put16(data + 12, RTE_ETHER_TYPE_VLAN);
		put16(data + 14, (uint16_t)m->r->vlan);
	}
	put16(data + m->p->l3 - 2, m->r->ip == 6 ? RTE_ETHER_TYPE_IPV6 : RTE_ETHER_TYPE_IPV4);
}

static void network_write(const struct making *m, uint8_t *at)
{
	if (m->r->ip == 6) {
		struct rte_ipv6_hdr *ip = (struct rte_ipv6_hdr *)at;

		ip->vtc_flow = RTE_BE32(UINT32_C(6) << 28);
		ip->proto = m->p->protocol;
		ip->hop_limits = TTL;
		memcpy(&ip->src_addr, ipv6_src, sizeof(ipv6_src));
	} else {
		struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)at;

		ip->version_ihl = RTE_IPV4_VHL_DEF;
		ip->fragment_offset = RTE_BE16(RTE_IPV4_HDR_DF_FLAG); // RFC 6864 s4: the id stays 0
		ip->time_to_live = TTL;
		ip->next_proto_id = m->p->protocol;
	}
}

static void transport_write(const struct making *m, uint8_t *at)
{
	struct rte_tcp_hdr *tcp = (struct rte_tcp_hdr *)at;

	put16(at + 2, FRAME_UDP_PORT);
	if (m->r->transport == 0)
		return;
	tcp->sent_seq = tcp->recv_ack = RTE_BE32(1);
	tcp->data_off = sizeof(*tcp) / 4 << 4;
	tcp->tcp_flags = RTE_TCP_ACK_FLAG;
	tcp->rx_win = RTE_BE16(TCP_WINDOW);
}

static void headers_write(const struct making *m)
{
	struct profile *p = m->p;

	memcpy(p->image, frame_pattern(), sizeof(p->image));
	memset(p->image, 0, p->own + FRAME_OWN_BYTES);
	ethernet_write(m, p->image);
	network_write(m, p->image + p->l3);
	transport_write(m, p->image + p->l4);
	p->src_low = m->flow->src_ip;
	p->stream = m->flow->stream;
}

// --- Addresses and flows ---------------------------------------------------------------------------------

static void mac_count_up(uint8_t *mac, uint32_t by)
{
	for (int i = 5; i >= 0 && by; i--) {
		by += mac[i];
		mac[i] = (uint8_t)by;
		by >>= 8;
	}
}

static int macs_make(struct making *m)
{
	const struct profile_macs *given = &m->r->macs;
	struct profile *p = m->p;

	p->macs_given = given->count || m->r->mac_count;
	p->mac_count = given->count ? given->count : RTE_MAX(m->r->mac_count, 1u);
	p->macs = calloc(p->mac_count, sizeof(*p->macs));
	if (!p->macs)
		return profile_no_memory(m, "MAC addresses");
	for (uint32_t i = 0; i < p->mac_count; i++) {
		memcpy(p->macs[i], given->count ? given->of[i] : m->flow->dst_mac, RTE_ETHER_ADDR_LEN);
		if (!given->count)
			mac_count_up(p->macs[i], i);
	}
	return 0;
}

// The flow's own destination, where no file is given.
static int address_make(struct making *m)
{
	uint32_t low_be = rte_cpu_to_be_32(m->flow->dst_ip);
	uint8_t *address = malloc(sizeof(ipv6_dst) + sizeof(low_be));

	if (!address)
		return profile_no_memory(m, "address");
	memcpy(address, ipv6_dst, sizeof(ipv6_dst));
	memcpy(address + (m->r->ip == 6 ? sizeof(ipv6_dst) : 0), &low_be, sizeof(low_be));
	m->p->addresses = (uint8_t(*)[4])address;
	m->p->place_count = 1;
	return 0;
}

static int addresses_make(struct making *m)
{
	char where[96];

	if (!m->r->addresses_path[0])
		return address_make(m);
	snprintf(where, sizeof(where), "%s.dst_ips_file", m->where);
	m->p->addresses = (uint8_t(*)[4])input_file_addresses(
	        m->r->addresses_path, m->r->ip, PROFILE_ADDRESSES_MAX, &m->p->files[FILE_ADDRESSES],
	        &m->p->place_count, where, m->error);
	return m->p->addresses ? 0 : -EINVAL;
}

static int flows_make(struct making *m)
{
	struct profile *p = m->p;

	p->flow_count = m->r->flows.count;
	p->flow_draw = (enum profile_flow_draw)m->r->flows.draw;
	p->flow_key = profile_key(m, KEY_FLOW);
	p->place_key = profile_key(m, KEY_PLACE);
	if (p->flow_draw == PROFILE_ZIPF)
		p->alias = alias_make_zipf(p->flow_count, m->r->flows.exponent);
	return p->flow_draw == PROFILE_ZIPF && !p->alias ? profile_no_memory(m, "flows") : 0;
}

// --- Captures and arrivals -------------------------------------------------------------------------------

static int capture_make(struct making *m)
{
	struct profile *p = m->p;
	char where[96];

	snprintf(where, sizeof(where), "%s.pcap", m->where);
	p->capture = capture_load(m->r->pcap.path, RTE_MIN(m->room, FRAME_SIZE_MAX - FRAME_FCS_BYTES + 0u),
	                          &p->files[FILE_CAPTURE], where, m->error);
	if (!p->capture)
		return -EINVAL;
	p->store = PROFILE_STORE_MAX;
	p->stream = m->flow->stream;
	p->longest = p->capture->longest;
	p->place_count = p->capture->count;
	p->flow_count = p->round_length = 1;
	p->mean_frame_bytes = (double)p->capture->bytes / p->capture->count;
	return 0;
}

static int arrival_make(struct making *m)
{
	struct pacer_arrival *arrival = &m->p->arrival;

	*arrival = (struct pacer_arrival){.process = (enum pacer_process)m->r->arrival.process,
	                                  .on_ns = m->r->arrival.on_ns,
	                                  .off_ns = m->r->arrival.off_ns,
	                                  .seed = profile_key(m, KEY_ARRIVAL)};
	if (!m->p->capture || m->r->pcap.timing != PROFILE_TIMING_RECORDED)
		return 0;
	arrival->process = PACER_RECORDED;
	arrival->times_ns = m->p->capture->times_ns;
	arrival->time_count = m->p->capture->count;
	arrival->period_ns = capture_period_ns(m->p->capture);
	arrival->time_scale = m->r->pcap.time_scale;
	if (arrival->period_ns)
		return 0;
	snprintf(m->error, SCHEMA_ERROR_MAX,
	         "%s.pcap: %.100s: its frames all have one time; use \"timing\": \"rate\"", m->where,
	         m->r->pcap.path);
	return -EINVAL;
}

static int ledger_make(struct making *m)
{
	struct profile *p = m->p;

	p->ledger.flows = calloc(p->flow_count / 64 + 1, sizeof(uint64_t));
	p->ledger.places = calloc(p->place_count / 64 + 1, sizeof(uint64_t));
	return p->ledger.flows && p->ledger.places ? 0 : profile_no_memory(m, "counts");
}

// --- All of it -------------------------------------------------------------------------------------------

static int make(struct making *m)
{
	struct profile *p = m->p;
	int rc;

	if (m->r->pcap.path[0]) {
		rc = capture_make(m);
	} else {
		layout_set(m);
		headers_write(m);
		rc = profile_sizes_make(m);
		rc = rc ? rc : addresses_make(m);
		rc = rc ? rc : flows_make(m);
	}
	if (rc == 0 && m->room < p->store) {
		snprintf(m->error, SCHEMA_ERROR_MAX,
		         "%s: its headers need buffers of %u bytes; raise memory.mbuf_data_bytes", m->where,
		         p->store);
		return -EINVAL;
	}
	rc = rc ? rc : macs_make(m);
	rc = rc ? rc : arrival_make(m);
	return rc ? rc : ledger_make(m);
}

struct profile *profile_make(const json_t *source, const struct frame_flow *flow, uint32_t room,
                             const char *where, char *error)
{
	struct making m = {.flow = flow, .room = room, .where = where, .error = error};
	int rc;

	m.r = calloc(1, sizeof(*m.r));
	m.p = aligned_alloc(64, RTE_ALIGN_CEIL(sizeof(*m.p), 64));
	if (m.p)
		memset(m.p, 0, sizeof(*m.p));
	rc = m.r && m.p ? profile_request_decode(source, m.r, where, error)
	                : profile_no_memory(&m, "settings");
	if (rc == 0)
		rc = make(&m);
	free(m.r);
	if (rc == 0) {
		m.p->source = json_deep_copy(source);
		m.p->frame_size_bytes = flow->frame_size_bytes;
		return m.p;
	}
	profile_free(m.p);
	return NULL;
}

void profile_free(struct profile *p)
{
	if (!p)
		return;
	free(p->sizes);
	free(p->macs);
	free(p->addresses);
	free(p->round);
	free(p->alias);
	capture_free(p->capture);
	free(p->ledger.flows);
	free(p->ledger.places);
	json_decref(p->source);
	free(p);
}

// Whether a file is the one that was read.
static bool untouched(const struct stat *then, const json_t *path)
{
	struct stat now;

	if (!path)
		return true;
	return stat(json_string_value(path), &now) == 0 && now.st_dev == then->st_dev &&
	       now.st_ino == then->st_ino && now.st_size == then->st_size &&
	       now.st_mtim.tv_sec == then->st_mtim.tv_sec && now.st_mtim.tv_nsec == then->st_mtim.tv_nsec;
}

bool profile_is(const struct profile *p, const json_t *source, uint16_t frame_size_bytes)
{
	return p->frame_size_bytes == frame_size_bytes && json_equal(p->source, source) &&
	       untouched(&p->files[FILE_ADDRESSES], json_object_get(source, "dst_ips_file")) &&
	       untouched(&p->files[FILE_CAPTURE], json_object_get(json_object_get(source, "pcap"), "path"));
}
