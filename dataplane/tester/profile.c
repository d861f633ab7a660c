// SPDX-License-Identifier: BSD-3-Clause
// From the object "profile" to what a worker needs: sizes and their round, addresses, tables, and the files.
#include "tester/profile.h"

#include <errno.h>
#include <netinet/in.h>
#include <rte_byteorder.h>
#include <rte_common.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_tcp.h>
#include <rte_udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/input_file.h"
#include "base/schema.h"
#include "tester/frame.h"

#define RATE_MAX_PPS 1e9

// Purposes of random numbers.
enum {
	KEY_FLOW = 1, // purposes of random numbers
	KEY_PLACE,
	KEY_ROUND,
	KEY_ARRIVAL,
};

struct making {
	struct profile *p;
	struct profile_request *r;
	const struct frame_flow *flow;
	uint32_t room;
	const char *where;
	char *error;
};

static inline int profile_no_memory(const struct making *m, const char *what)
{
	snprintf(m->error, CONFIG_ERROR_MAX, "%s: no memory for its %s", m->where, what);
	return -ENOMEM;
}

static inline uint64_t profile_key(const struct making *m, unsigned purpose)
{
	return draw_key(m->r->seed, purpose, m->flow->stream);
}

// --- The object ------------------------------------------------------------------------------------------

static bool whole_within(const json_t *value, json_int_t min, json_int_t max)
{
	return json_is_integer(value) && json_integer_value(value) >= min && json_integer_value(value) <= max;
}

static int decode_sizes(const json_t *value, void *out, const char *where, char *error)
{
	struct profile_sizes *sizes = out;
	size_t n = json_array_size(value);

	if (!json_is_array(value) || n == 0 || n > PROFILE_SIZES_MAX)
		return config_error(error,
		                    "%s: expected an array of 1 to %d pairs [frame_size_bytes, weight]",
		                    where, PROFILE_SIZES_MAX);
	for (size_t i = 0; i < n; i++) {
		const json_t *pair = json_array_get(value, i);
		const json_t *size = json_array_get(pair, 0), *weight = json_array_get(pair, 1);

		if (json_array_size(pair) != 2 || !whole_within(size, FRAME_SIZE_MIN, FRAME_SIZE_MAX) ||
		    !whole_within(weight, 1, 1000000))
			return config_error(
			        error,
			        "%s[%zu]: expected [frame_size_bytes, weight], whole numbers from %d to %d "
			        "and from 1 to 1000000",
			        where, i, FRAME_SIZE_MIN, FRAME_SIZE_MAX);
		sizes->of[i].frame_size_bytes = (uint16_t)json_integer_value(size);
		sizes->of[i].weight = (uint32_t)json_integer_value(weight);
	}
	sizes->count = (unsigned)n;
	return 0;
}

static int decode_ip(const json_t *value, void *out, const char *where, char *error)
{
	if (!whole_within(value, 4, 4) && !whole_within(value, 6, 6))
		return config_error(error, "%s: expected 4 or 6", where);
	*(uint32_t *)out = (uint32_t)json_integer_value(value);
	return 0;
}

static const char *const transports[] = {"udp", "tcp", NULL};
static const char *const flow_draws[] = {"round_robin", "uniform", "zipf", NULL};
static const char *const processes[] = {"constant", "poisson", "on_off", NULL};
static const char *const timings[] = {"rate", "recorded", NULL};

#define MEMBER(type_, member_) FIELD(type_, struct profile_request, member_)

// Offsets of these are in the whole request: out of an inner object is its base.
static const struct field flow_fields[] = {
        {.key = "count", MEMBER(FIELD_UINT, flows.count), .min = 1, .max = PROFILE_FLOWS_MAX},
        {.key = "draw", MEMBER(FIELD_CHOICE, flows.draw), .choices = flow_draws},
        {.key = "exponent", MEMBER(FIELD_REAL, flows.exponent), .min = 0.1, .max = 4},
        {0},
};
static const struct field arrival_fields[] = {
        {.key = "process", MEMBER(FIELD_CHOICE, arrival.process), .choices = processes, .required = true},
        {.key = "on_ns", MEMBER(FIELD_UINT, arrival.on_ns), .min = 100, .max = 3600e9},
        {.key = "off_ns", MEMBER(FIELD_UINT, arrival.off_ns), .min = 100, .max = 3600e9},
        {0},
};
static const struct field pcap_fields[] = {
        {.key = "path", MEMBER(FIELD_STRING, pcap.path), .required = true},
        {.key = "timing", MEMBER(FIELD_CHOICE, pcap.timing), .choices = timings},
        {.key = "time_scale", MEMBER(FIELD_REAL, pcap.time_scale), .min = 1e-6, .max = 1e6},
        {.key = "rate_pps", MEMBER(FIELD_REAL, pcap.rate_pps), .min = 0.01, .max = RATE_MAX_PPS},
        {.key = "frame_bytes_max",
         MEMBER(FIELD_UINT, pcap.frame_bytes_max),
         .min = FRAME_SIZE_MIN,
         .max = FRAME_SIZE_MAX},
        {0},
};
static const struct field range_fields[] = {
        {.key = "first", MEMBER(FIELD_IPV4, range.first), .required = true},
        {.key = "count", MEMBER(FIELD_UINT, range.count), .min = 1, .max = 0x1p32, .required = true},
        {.key = "of_each_mac", MEMBER(FIELD_BOOL, range.of_each_mac)},
        {0},
};
static const struct field fields[] = {
        {.key = "sizes", MEMBER(FIELD_CUSTOM, sizes), .decode = decode_sizes},
        {.key = "ip", MEMBER(FIELD_CUSTOM, ip), .decode = decode_ip},
        {.key = "transport", MEMBER(FIELD_CHOICE, transport), .choices = transports},
        {.key = "vlan", MEMBER(FIELD_UINT, vlan), .min = 1, .max = 4094},
        {.key = "ttl", MEMBER(FIELD_UINT, ttl), .min = 1, .max = UINT8_MAX},
        {.key = "flows", .type = FIELD_OBJECT, .fields = flow_fields},
        {ARRAY_FIELD("dst_macs", FIELD_MAC, struct profile_request, macs.of, macs.count, 1,
                     PROFILE_MACS_MAX)},
        {.key = "dst_mac_count", MEMBER(FIELD_UINT, mac_count), .min = 1, .max = PROFILE_MACS_MAX},
        {.key = "dst_ips_file", MEMBER(FIELD_STRING, addresses_path)},
        {.key = "dst_ips", .type = FIELD_OBJECT, .fields = range_fields},
        {.key = "arrival", .type = FIELD_OBJECT, .fields = arrival_fields},
        {.key = "pcap", .type = FIELD_OBJECT, .fields = pcap_fields},
        {.key = "seed", MEMBER(FIELD_UINT, seed), .max = 9007199254740991.0},
        {0},
};

static int check_pcap(const json_t *source, const struct profile_request *r, const char *where, char *error)
{
	static const char *const own[] = {"sizes", "ip",    "transport",    "vlan",
	                                  "ttl",   "flows", "dst_ips_file", "dst_ips"};
	static const char *const scales[] = {"time_scale", "rate_pps"};
	const json_t *pcap = json_object_get(source, "pcap");

	if (!pcap)
		return 0;
	for (size_t i = 0; i < RTE_DIM(own); i++)
		if (json_object_get(source, own[i]))
			return config_error(error, "%s.%s: a capture has its own; take it out, or \"pcap\"",
			                    where, own[i]);
	if (r->pcap.timing == PROFILE_TIMING_RECORDED && r->arrival.process != PACER_CONSTANT)
		return config_error(
		        error, "%s.arrival: recorded times are the arrivals; take one of them out", where);
	for (size_t i = 0; i < RTE_DIM(scales); i++)
		if (r->pcap.timing != PROFILE_TIMING_RECORDED && json_object_get(pcap, scales[i]))
			return config_error(error, "%s.pcap.%s: is for \"timing\": \"recorded\" only", where,
			                    scales[i]);
	if (json_object_get(pcap, scales[0]) && json_object_get(pcap, scales[1]))
		return config_error(error, "%s.pcap: give time_scale or rate_pps, not both", where);
	return 0;
}

static int check(const json_t *source, const struct profile_request *r, const char *where, char *error)
{
	bool on_off = r->arrival.process == PACER_ON_OFF;

	if (r->macs.count && r->mac_count)
		return config_error(error, "%s: give dst_macs or dst_mac_count, not both", where);
	if (r->range.count && (r->ip != 4 || r->addresses_path[0]))
		return config_error(error, "%s.dst_ips: is for \"ip\": 4, without \"dst_ips_file\"", where);
	if (r->range.first + r->range.count > UINT64_C(1) << 32)
		return config_error(error, "%s.dst_ips: ends behind 255.255.255.255; give less for count",
		                    where);
	if (on_off && (r->arrival.on_ns == 0 || r->arrival.off_ns == 0))
		return config_error(error, "%s.arrival: on_off needs on_ns and off_ns", where);
	if (!on_off && (r->arrival.on_ns || r->arrival.off_ns))
		return config_error(
		        error, "%s.arrival: on_ns and off_ns are for \"process\": \"on_off\" only", where);
	if (json_object_get(json_object_get(source, "flows"), "exponent") && r->flows.draw != PROFILE_ZIPF)
		return config_error(error, "%s.flows.exponent: is for \"draw\": \"zipf\" only", where);
	return check_pcap(source, r, where, error);
}

int profile_request_decode(const json_t *source, struct profile_request *out, const char *where, char *error)
{
	*out = (struct profile_request){.ip = 4,
	                                .ttl = 64,
	                                .flows = {.count = 1, .exponent = 1},
	                                .pcap = {.time_scale = 1, .frame_bytes_max = FRAME_SIZE_MAX}};
	if (schema_decode(source, fields, out, where, error) != 0)
		return -EINVAL;
	return check(source, out, where, error);
}

// --- Sizes -----------------------------------------------------------------------------------------------

enum { ROUND_MAX = 1 << 24 };

static int size_check(const struct making *m, uint32_t size)
{
	uint32_t least = m->p->own + FRAME_OWN_BYTES + FRAME_FCS_BYTES;
	uint32_t most = RTE_MIN(m->room + FRAME_FCS_BYTES, (uint32_t)FRAME_SIZE_MAX);

	if (size >= least && size <= most)
		return 0;
	snprintf(m->error, CONFIG_ERROR_MAX,
	         "%s.sizes: a frame of %u bytes: IPv%u and %s%s take frames of at least %u, and the buffers "
	         "of "
	         "memory.mbuf_data_bytes hold at most %u",
	         m->where, size, m->r->ip, m->r->transport ? "TCP" : "UDP",
	         m->r->vlan ? " with a VLAN tag" : "", least, most);
	return -EINVAL;
}

// Lengths in the headers, and what they and the pattern add to the sums.
static struct profile_size size_make(const struct profile *p, uint16_t frame_size)
{
	uint16_t length = frame_size - FRAME_FCS_BYTES, head = p->own + FRAME_OWN_BYTES;
	struct profile_size size = {
	        .length = length,
	        .ip_bytes_be = rte_cpu_to_be_16(length - (p->version == 6 ? p->l4 : p->l3)),
	        .l4_bytes_be = rte_cpu_to_be_16(length - p->l4),
	};

	size.ip_sum = size.ip_bytes_be;
	size.l4_sum = checksum_fold(checksum_add(frame_pattern() + head, length - head) +
	                            (p->protocol == IPPROTO_UDP ? 2u : 1u) * size.l4_bytes_be);
	return size;
}

static uint32_t gcd(uint32_t a, uint32_t b)
{
	return b ? gcd(b, a % b) : a;
}

// Each size as often as its weight says, over the greatest common divisor of all, then shuffled (Fisher and
// Yates): the proportions are exact over each round.
static int round_make(const struct making *m, const struct profile_sizes *sizes)
{
	uint64_t length = 0, random = profile_key(m, KEY_ROUND);
	struct profile *p = m->p;
	uint32_t divisor = 0;

	for (unsigned i = 0; i < sizes->count; i++) {
		divisor = gcd(divisor, sizes->of[i].weight);
		length += sizes->of[i].weight;
	}
	length /= divisor;
	if (length > ROUND_MAX) {
		snprintf(m->error, CONFIG_ERROR_MAX,
		         "%s.sizes: the weights, without their common divisor, add up to %llu; at most %d",
		         m->where, (unsigned long long)length, ROUND_MAX);
		return -EINVAL;
	}
	p->round_length = (uint32_t)length;
	p->round = malloc(length);
	if (!p->round)
		return profile_no_memory(m, "sizes");
	for (uint32_t i = 0, at = 0; i < sizes->count; at += sizes->of[i++].weight / divisor)
		memset(p->round + at, (int)i, sizes->of[i].weight / divisor);
	for (uint32_t i = p->round_length - 1; i > 0; i--) {
		uint32_t other = draw_below(draw_hash(random, i), i + 1);
		uint8_t size = p->round[i];

		p->round[i] = p->round[other];
		p->round[other] = size;
	}
	return 0;
}

// Sizes, their round and their mean, once the layout is known. Returns 0, or -errno with a sentence in error.
static int sizes_make(struct making *m)
{
	struct profile_sizes *sizes = &m->r->sizes;
	double sum = 0, weights = 0;
	struct profile *p = m->p;

	if (sizes->count == 0) {
		sizes->count = 1;
		sizes->of[0].frame_size_bytes = m->flow->frame_size_bytes;
		sizes->of[0].weight = 1;
	}
	p->size_count = sizes->count;
	p->sizes = calloc(sizes->count, sizeof(*p->sizes));
	if (!p->sizes)
		return profile_no_memory(m, "sizes");
	for (unsigned i = 0; i < sizes->count; i++) {
		if (size_check(m, sizes->of[i].frame_size_bytes) != 0)
			return -EINVAL;
		p->sizes[i] = size_make(p, sizes->of[i].frame_size_bytes);
		p->longest = RTE_MAX(p->longest, p->sizes[i].length);
		sum += (double)sizes->of[i].weight * sizes->of[i].frame_size_bytes;
		weights += sizes->of[i].weight;
	}
	p->mean_frame_bytes = sum / weights;
	return round_make(m, sizes);
}

enum {
	FILE_ADDRESSES = 0, // of files[]
	FILE_CAPTURE,
	TCP_WINDOW = 65535,
};

// Addresses of the benchmarking network 2001:2::/48 (RFC 5180 s8, erratum 1752); their lower 32 bits are the
// IPv4 ones.
static const uint8_t ipv6_src[12] = {0x20, 0x01, 0, 2, 0, 0, 0, 0},
                     ipv6_dst[12] = {0x20, 0x01, 0, 2, 0, 0, 0, 1};

// --- Headers ---------------------------------------------------------------------------------------------

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
		put_be16(data + 12, RTE_ETHER_TYPE_VLAN);
		put_be16(data + 14, (uint16_t)m->r->vlan);
	}
	put_be16(data + m->p->l3 - 2, m->r->ip == 6 ? RTE_ETHER_TYPE_IPV6 : RTE_ETHER_TYPE_IPV4);
}

static void network_write(const struct making *m, uint8_t *at)
{
	if (m->r->ip == 6) {
		struct rte_ipv6_hdr *ip = (struct rte_ipv6_hdr *)at;

		ip->vtc_flow = RTE_BE32(UINT32_C(6) << 28);
		ip->proto = m->p->protocol;
		ip->hop_limits = (uint8_t)m->r->ttl;
		memcpy(&ip->src_addr, ipv6_src, sizeof(ipv6_src));
	} else {
		struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)at;

		ip->version_ihl = RTE_IPV4_VHL_DEF;
		ip->fragment_offset = RTE_BE16(RTE_IPV4_HDR_DF_FLAG); // RFC 6864 s4: the id stays 0
		ip->time_to_live = (uint8_t)m->r->ttl;
		ip->next_proto_id = m->p->protocol;
	}
}

static void transport_write(const struct making *m, uint8_t *at)
{
	struct rte_tcp_hdr *tcp = (struct rte_tcp_hdr *)at;

	put_be16(at + 2, FRAME_UDP_PORT);
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

	m->p->range = m->r->range.count;
	m->p->first = m->r->range.first;
	m->p->of_each_mac = m->r->range.of_each_mac;
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
	p->capture =
	        capture_load(m->r->pcap.path, RTE_MIN(m->room, m->r->pcap.frame_bytes_max - FRAME_FCS_BYTES),
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
	double as_recorded_pps;

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
	if (arrival->period_ns == 0)
		return config_error(
		        m->error, "%s.pcap: %.100s: its time stamps do not advance; leave out recorded times",
		        m->where, m->r->pcap.path);
	as_recorded_pps = arrival->time_count * 1e9 / (double)arrival->period_ns;
	arrival->time_scale =
	        m->r->pcap.rate_pps ? m->r->pcap.rate_pps / as_recorded_pps : m->r->pcap.time_scale;
	if (m->r->pcap.rate_pps || as_recorded_pps * arrival->time_scale <= RATE_MAX_PPS)
		return 0;
	return config_error(
	        m->error,
	        "%s.pcap.time_scale: %g times the recorded %.4g frames a second are more than %g; "
	        "give a smaller one",
	        m->where, arrival->time_scale, as_recorded_pps, RATE_MAX_PPS);
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
		rc = sizes_make(m);
		rc = rc ? rc : addresses_make(m);
		rc = rc ? rc : flows_make(m);
	}
	if (rc == 0 && m->room < p->store) {
		snprintf(m->error, CONFIG_ERROR_MAX,
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

// --- Report ----------------------------------------------------------------------------------------------

// What was sent of a profile: its counts, and their end.

static size_t words(uint32_t bits)
{
	return bits / 64 + 1;
}

void profile_clear(struct profile *p)
{
	uint64_t *flows = p->ledger.flows, *places = p->ledger.places;

	if (p->ledger.packets == 0)
		return;
	memset(p->draws, 0, sizeof(p->draws));
	memset(flows, 0, words(p->flow_count) * sizeof(*flows));
	memset(places, 0, words(p->place_count) * sizeof(*places));
	memset(&p->ledger, 0, sizeof(p->ledger));
	p->ledger.flows = flows;
	p->ledger.places = places;
}

static json_int_t distinct(const uint64_t *bits, uint32_t count)
{
	json_int_t sum = 0;

	for (size_t i = 0; i < words(count); i++)
		sum += __builtin_popcountll(bits[i]);
	return sum;
}

static json_t *sizes_report(const struct profile *p)
{
	json_t *sizes = json_array();

	for (uint32_t length = 0; length <= p->longest; length++)
		if (p->ledger.lengths[length])
			json_array_append_new(sizes, json_pack("[i, I]", (int)(length + FRAME_FCS_BYTES),
			                                       (json_int_t)p->ledger.lengths[length]));
	return sizes;
}

static json_t *macs_report(const struct profile *p)
{
	json_t *macs = json_array();

	for (uint32_t i = 0; i < p->mac_count; i++)
		json_array_append_new(macs, json_integer((json_int_t)p->ledger.macs[i]));
	return macs;
}

static void entries_report(struct profile *p, bool ended, json_t *report)
{
	int64_t touched = ended ? profile_touched(p) : -1;

	json_object_set_new(report, "entries", json_integer((json_int_t)profile_entries(p)));
	if (touched >= 0)
		json_object_set_new(report, "entries_touched", json_integer(touched));
}

json_t *profile_report(struct profile *p, bool ended)
{
	const struct profile_ledger *ledger = &p->ledger;
	json_t *report = json_pack("{sI sf so}", "bytes", (json_int_t)ledger->bytes, "mean_frame_bytes",
	                           ledger->packets ? (double)ledger->bytes / (double)ledger->packets : 0.0,
	                           "sizes", sizes_report(p));

	if (!p->capture || p->macs_given)
		json_object_set_new(report, "dst_macs", macs_report(p));
	if (p->arrival.process == PACER_ON_OFF)
		json_object_set_new(report, "bursts", json_integer((json_int_t)ledger->bursts));
	if (p->capture) {
		json_object_set_new(report, "pcap", capture_report(p->capture, ledger->packets));
		return report;
	}
	json_object_set_new(report, "flows_sent", json_integer(distinct(ledger->flows, p->flow_count)));
	if (p->range)
		entries_report(p, ended, report);
	else
		json_object_set_new(report, "dst_ips_sent",
		                    json_integer(distinct(ledger->places, p->place_count)));
	return report;
}

json_t *profile_facts(const json_t *source, char *error)
{
	static const struct frame_flow flow = {.frame_size_bytes = FRAME_SIZE_MAX};
	struct profile *p = profile_make(source, &flow, FRAME_SIZE_MAX - FRAME_FCS_BYTES, "profile", error);
	json_t *facts;

	if (!p)
		return NULL;
	facts = json_pack("{sf si sI}", "mean_frame_bytes", p->mean_frame_bytes, "max_frame_bytes",
	                  p->longest + FRAME_FCS_BYTES, "dst_ips",
	                  (json_int_t)(p->capture ? 0
	                               : p->range ? p->range
	                                          : p->place_count));
	if (p->capture)
		json_object_set_new(facts, "pcap", capture_report(p->capture, 0));
	profile_free(p);
	return facts;
}
