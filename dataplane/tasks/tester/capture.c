// SPDX-License-Identifier: BSD-3-Clause
#include "tasks/tester/capture.h"

#include <errno.h>
#include <pcap/pcap.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_tcp.h>
#include <rte_udp.h>
#include <stdlib.h>
#include <string.h>

#include "tasks/tester/frame.h"
#include "lib/input_file.h"
#include "lib/packet.h"
#include "lib/schema.h"

enum { FIRST_FRAMES = 1024, TAKEN = CAPTURE_SKIPS, NO_MEMORY, TOO_MANY };

static const char *const skip_names[CAPTURE_SKIPS] = {
        [CAPTURE_TRUNCATED] = "truncated",      [CAPTURE_NOT_IP] = "not_ip",
        [CAPTURE_NOT_UDP_TCP] = "not_udp_tcp",  [CAPTURE_FRAGMENT] = "fragment",
        [CAPTURE_EXTENSION] = "ipv6_extension", [CAPTURE_TOO_LONG] = "too_long",
};

static bool is_extension(uint8_t protocol)
{
	return protocol == IPPROTO_HOPOPTS || protocol == IPPROTO_ROUTING || protocol == IPPROTO_DSTOPTS ||
	       protocol == IPPROTO_AH || protocol == IPPROTO_MH;
}

// Where the headers begin that frame_locate() did not take: why.
static enum capture_skip refused(const uint8_t *data, uint32_t length)
{
	const uint8_t *ip;
	rte_be16_t type;
	uint8_t protocol;
	uint16_t l3;

	if (packet_ethernet(data, length, &l3, &type) == PACKET_RUNT && type == 0)
		return CAPTURE_TRUNCATED;
	ip = data + l3;
	length -= l3;
	if (type != RTE_BE16(RTE_ETHER_TYPE_IPV4) && type != RTE_BE16(RTE_ETHER_TYPE_IPV6))
		return CAPTURE_NOT_IP;
	if (length < (type == RTE_BE16(RTE_ETHER_TYPE_IPV4) ? sizeof(struct rte_ipv4_hdr)
	                                                    : sizeof(struct rte_ipv6_hdr)))
		return CAPTURE_TRUNCATED;
	if (type == RTE_BE16(RTE_ETHER_TYPE_IPV4)) {
		protocol = ip[offsetof(struct rte_ipv4_hdr, next_proto_id)];
		if (load16(ip + offsetof(struct rte_ipv4_hdr, fragment_offset)) & RTE_BE16(0x3fff))
			return CAPTURE_FRAGMENT;
	} else {
		protocol = ip[offsetof(struct rte_ipv6_hdr, proto)];
		if (protocol == IPPROTO_FRAGMENT)
			return CAPTURE_FRAGMENT;
		if (is_extension(protocol))
			return CAPTURE_EXTENSION;
	}
	return protocol == IPPROTO_UDP || protocol == IPPROTO_TCP ? CAPTURE_TRUNCATED : CAPTURE_NOT_UDP_TCP;
}

// The IP header without options, for a frame of f->length.
static void network_write(struct capture_frame *f, const uint8_t *data, const struct frame_layout *at)
{
	uint8_t *ip = f->head + at->l3;

	memcpy(f->head, data, at->l3);
	if (at->version == 6) {
		memcpy(ip, data + at->l3, sizeof(struct rte_ipv6_hdr));
		put_be16(ip + offsetof(struct rte_ipv6_hdr, payload_len),
		         (uint16_t)(f->length - at->l3 - sizeof(struct rte_ipv6_hdr)));
		return;
	}
	memcpy(ip, data + at->l3, sizeof(struct rte_ipv4_hdr));
	*ip = RTE_IPV4_VHL_DEF;
	put_be16(ip + offsetof(struct rte_ipv4_hdr, total_length), (uint16_t)(f->length - at->l3));
	store16(ip + offsetof(struct rte_ipv4_hdr, hdr_checksum), 0);
	store16(ip + offsetof(struct rte_ipv4_hdr, hdr_checksum),
	        (uint16_t)~checksum_fold(checksum_add_ipv4(ip)));
}

static void transport_write(struct capture_frame *f, const uint8_t *from, uint16_t l4, uint16_t bytes)
{
	uint8_t *to = f->head + l4;

	memcpy(to, from, f->own - l4);
	if (f->udp) {
		put_be16(to + offsetof(struct rte_udp_hdr, dgram_len), bytes);
		f->checksum = (uint8_t)(l4 + offsetof(struct rte_udp_hdr, dgram_cksum));
	} else {
		to[offsetof(struct rte_tcp_hdr, data_off)] =
		        (uint8_t)((to[offsetof(struct rte_tcp_hdr, data_off)] & 15) |
		                  sizeof(struct rte_tcp_hdr) / 4 << 4);
		f->checksum = (uint8_t)(l4 + offsetof(struct rte_tcp_hdr, cksum));
	}
	store16(f->head + f->checksum, 0);
}

static uint32_t transport_sum(const struct capture_frame *f, const struct frame_layout *at, uint16_t l4)
{
	uint32_t tail = f->own + FRAME_OWN_BYTES;
	uint64_t sum =
	        checksum_add_pseudo(f->head + at->l3, at->version, at->protocol, (uint16_t)(f->length - l4));

	sum += checksum_add(f->head + l4, f->own - l4);
	return checksum_fold(sum + checksum_add(frame_pattern() + tail, f->length - tail));
}

// Whether a record's headers are all there.
static bool is_whole(const uint8_t *data, uint32_t length, const struct frame_layout *at)
{
	return (at->protocol == IPPROTO_UDP || at->protocol == IPPROTO_TCP) && length >= at->own &&
	       (at->version == 6 || at->l4 >= at->l3 + sizeof(struct rte_ipv4_hdr));
}

// Make a frame of wire_length bytes out of a record that has length of them.
static unsigned frame_make(struct capture *c, const uint8_t *data, uint32_t length, uint32_t wire_length,
                           uint32_t room, struct capture_frame *f)
{
	struct frame_layout at;
	uint32_t least, options;
	uint16_t l4;

	if (!frame_locate(data, length, &at) || !is_whole(data, length, &at))
		return refused(data, length);
	if (wire_length > room)
		return CAPTURE_TOO_LONG;
	l4 = at.version == 6 ? at.l4 : (uint16_t)(at.l3 + sizeof(struct rte_ipv4_hdr));
	memset(f, 0, sizeof(*f));
	f->udp = at.protocol == IPPROTO_UDP;
	f->own = (uint8_t)(l4 + (f->udp ? sizeof(struct rte_udp_hdr) : sizeof(struct rte_tcp_hdr)));
	options = at.own - f->own;
	least = f->own + FRAME_OWN_BYTES;
	f->length = (uint16_t)RTE_MAX(wire_length, least);
	network_write(f, data, &at);
	transport_write(f, data + at.l4, l4, (uint16_t)(f->length - l4));
	f->l4_sum = transport_sum(f, &at, l4);
	c->enlarged += wire_length < least;
	c->options_removed += options != 0;
	return TAKEN;
}

static int grow(struct capture *c, uint32_t *room)
{
	uint32_t more = *room ? 2 * *room : FIRST_FRAMES;
	struct capture_frame *frames = realloc(c->frames, more * sizeof(*frames));
	uint64_t *times;

	if (!frames)
		return -ENOMEM;
	c->frames = frames;
	times = realloc(c->times_ns, more * sizeof(*times));
	if (!times)
		return -ENOMEM;
	c->times_ns = times;
	*room = more;
	return 0;
}

// libpcap's field for us holds ns here. Times that fall, as those of several captures in one file, are as
// late as the one before.
static void take(struct capture *c, const struct pcap_pkthdr *header, uint64_t *first_ns)
{
	uint64_t ns = (uint64_t)header->ts.tv_sec * 1000000000 + (uint64_t)header->ts.tv_usec;
	const struct capture_frame *f = &c->frames[c->count];

	if (c->count == 0)
		*first_ns = ns;
	ns = ns > *first_ns ? ns - *first_ns : 0;
	c->times_ns[c->count] = c->count ? RTE_MAX(ns, c->times_ns[c->count - 1]) : 0;
	c->bytes += f->length + FRAME_FCS_BYTES;
	c->longest = RTE_MAX(c->longest, f->length);
	c->count++;
}

// Returns TAKEN at the end of the file, or what went wrong: NO_MEMORY, TOO_MANY, or a negative one of
// libpcap's.
static int read_all(struct capture *c, pcap_t *pcap, uint32_t frame_room)
{
	const u_char *data;
	struct pcap_pkthdr *header;
	uint64_t first_ns = 0;
	uint32_t room = 0;
	int rc;

	while ((rc = pcap_next_ex(pcap, &header, &data)) == 1) {
		unsigned became;

		if (c->count == CAPTURE_FRAMES_MAX)
			return TOO_MANY;
		if (c->count == room && grow(c, &room) != 0)
			return NO_MEMORY;
		c->in_file++;
		became = frame_make(c, data, RTE_MIN(header->caplen, header->len), header->len, frame_room,
		                    &c->frames[c->count]);
		if (became == TAKEN)
			take(c, header, &first_ns);
		else
			c->skipped[became]++;
	}
	return rc == PCAP_ERROR_BREAK ? TAKEN : rc;
}

static int load(struct capture *c, pcap_t *pcap, uint32_t room, const char *path, const char *where,
                char *error)
{
	int link = pcap_datalink(pcap), rc;

	if (link != DLT_EN10MB)
		return config_error(error, "%s: %.100s: link type %d is not Ethernet", where, path, link);
	rc = read_all(c, pcap, room);
	if (rc == TAKEN && c->count)
		return 0;
	if (rc == TAKEN)
		return config_error(
		        error,
		        "%s: %.100s: none of %llu frames is IPv4 or IPv6 with UDP or TCP, whole and at most "
		        "%u bytes",
		        where, path, (unsigned long long)c->in_file, room + FRAME_FCS_BYTES);
	if (rc == TOO_MANY)
		return config_error(error, "%s: %.100s: more than %d frames; cut it (editcap)", where, path,
		                    CAPTURE_FRAMES_MAX);
	return config_error(error, "%s: %.100s: %.80s", where, path,
	                    rc == NO_MEMORY ? "no memory for its frames" : pcap_geterr(pcap));
}

struct capture *capture_load(const char *path, uint32_t room, struct stat *stat, const char *where,
                             char *error)
{
	FILE *file = input_file_stream(path, stat, where, error);
	char why[PCAP_ERRBUF_SIZE];
	struct capture *c;
	pcap_t *pcap;
	int rc = -ENOMEM;

	if (!file)
		return NULL;
	pcap = pcap_fopen_offline_with_tstamp_precision(file, PCAP_TSTAMP_PRECISION_NANO, why);
	if (!pcap) {
		snprintf(error, CONFIG_ERROR_MAX, "%s: %.100s: %.100s", where, path, why);
		fclose(file);
		return NULL;
	}
	c = calloc(1, sizeof(*c));
	if (c)
		rc = load(c, pcap, room, path, where, error);
	else
		snprintf(error, CONFIG_ERROR_MAX, "%s: no memory", where);
	pcap_close(pcap); // and the file
	if (rc == 0)
		return c;
	capture_free(c);
	return NULL;
}

void capture_free(struct capture *capture)
{
	if (!capture)
		return;
	free(capture->frames);
	free(capture->times_ns);
	free(capture);
}

uint64_t capture_period_ns(const struct capture *capture)
{
	uint64_t last = capture->times_ns[capture->count - 1];

	return capture->count > 1 ? last + last / (capture->count - 1) : 0;
}

json_t *capture_report(const struct capture *capture, uint64_t sent)
{
	json_t *skipped = json_object();

	for (unsigned i = 0; i < CAPTURE_SKIPS; i++)
		json_object_set_new(skipped, skip_names[i], json_integer((json_int_t)capture->skipped[i]));
	return json_pack("{sI sI so sI sI sI}", "frames_in_file", (json_int_t)capture->in_file, "frames",
	                 (json_int_t)capture->count, "skipped", skipped, "enlarged",
	                 (json_int_t)capture->enlarged, "options_removed",
	                 (json_int_t)capture->options_removed, "loops", (json_int_t)(sent / capture->count));
}
