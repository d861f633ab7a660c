// SPDX-License-Identifier: BSD-3-Clause
#include "tester/capture.h"

#include <errno.h>
#include <pcap/pcap.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_tcp.h>
#include <rte_udp.h>
#include <stdlib.h>
#include <string.h>

#include "tester/frame.h"
#include "base/input_file.h"
#include "base/packet.h"
#include "base/schema.h"

enum { FIRST_FRAMES = 1024, TAKEN = CAPTURE_SKIPS, NO_MEMORY, TOO_MANY };

// Captures of several queues are not quite in order. A clock that goes back further was set, or another capture begins;
// one that goes on by more than an hour was set, too.
static const int64_t disorder_ns = 10000000, silence_ns = INT64_C(3600000000000);
#define SECONDS_MAX (UINT64_C(1) << 33)

// Why a record is skipped: a name for programs; and where all are, what to say and to do.
static const struct {
	const char *name, *words, *remedy;
} skips[CAPTURE_SKIPS] = {
        [CAPTURE_TRUNCATED] = {"truncated", "end within their headers",
                               "capture at least 128 bytes of each (tcpdump -s 128)"},
        [CAPTURE_NOT_IP] = {"not_ip", "are not IPv4 or IPv6 behind 0 to 2 VLAN tags (0x8100, 0x88a8)",
                            "remove other tags, or capture IP traffic"},
        [CAPTURE_NOT_UDP_TCP] = {"not_udp_tcp", "are neither UDP nor TCP", "capture UDP or TCP"},
        [CAPTURE_FRAGMENT] = {"fragment", "are fragments of IP packets", "capture whole packets"},
        [CAPTURE_EXTENSION] = {"ipv6_extension", "have IPv6 extension headers",
                               "capture UDP or TCP right behind IPv6"},
        [CAPTURE_TOO_LONG] = {"too_long", "are longer than this wire carries",
                              "capture without GRO, LRO and TSO (ethtool -K), or use a wire for longer ones"},
};

// Files that libpcap does not read, by how they begin.
static const struct {
	const char *begin, *what, *remedy;
} formats[] = {
        {"\x1f\x8b", "is compressed by gzip", "unpack it: gunzip"},
        {"\x28\xb5\x2f\xfd", "is compressed by zstd", "unpack it: unzstd"},
        {"\xfd"
         "7zXZ",
         "is compressed by xz", "unpack it: unxz"},
        {"\x04\x22\x4d\x18", "is compressed by lz4", "unpack it: unlz4"},
        {"BZh", "is compressed by bzip2", "unpack it: bunzip2"},
        {"PK\x03\x04", "is a zip archive", "unpack it: unzip"},
        {"snoop", "is in snoop format", "convert it: editcap -F pcap IN OUT"},
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

// Time stamps as they become: never falling, a step of the clock no time at all.
struct clock {
	uint64_t last_ns, base_ns; // of the file's frame before; of its clock where ours is 0, modulo 2^64
};

// libpcap's field for us holds ns here. Seconds are 32 bits without sign in a pcap file, with sign in libpcap.
static bool stamp_ns(const struct pcap_pkthdr *header, uint64_t *ns)
{
	int64_t seconds = header->ts.tv_sec, part = header->ts.tv_usec;

	seconds += seconds < 0 ? INT64_C(1) << 32 : 0;
	if (part < 0 || part >= 1000000000 || seconds < 0 || (uint64_t)seconds > SECONDS_MAX)
		return false;
	*ns = (uint64_t)seconds * 1000000000 + (uint64_t)part;
	return true;
}

static uint64_t time_of(struct capture *c, const struct pcap_pkthdr *header, struct clock *clock)
{
	uint64_t before = c->count ? c->times_ns[c->count - 1] : 0, ns = clock->last_ns;
	int64_t gap;

	c->times_impossible += !stamp_ns(header, &ns);
	if (c->count == 0)
		clock->base_ns = ns;
	clock->last_ns = ns;
	gap = (int64_t)(ns - clock->base_ns - before);
	c->times_fallen += gap < 0;
	c->times_impossible += gap > silence_ns;
	if (gap < -disorder_ns || gap > silence_ns)
		clock->base_ns = ns - before;
	return gap < 0 || gap > silence_ns ? before : before + (uint64_t)gap;
}

static void take(struct capture *c, const struct pcap_pkthdr *header, struct clock *clock)
{
	const struct capture_frame *f = &c->frames[c->count];

	c->times_ns[c->count] = time_of(c, header, clock);
	c->bytes += f->length + FRAME_FCS_BYTES;
	c->longest = RTE_MAX(c->longest, f->length);
	c->count++;
}

// What the link type says of an FCS behind each frame.
static uint32_t fcs_bytes(pcap_t *pcap)
{
	uint32_t more = (uint32_t)pcap_datalink_ext(pcap);

	return LT_FCS_LENGTH_PRESENT(more) ? 2 * LT_FCS_LENGTH(more) : 0;
}

// Returns TAKEN at the end of the file, or what went wrong: NO_MEMORY, TOO_MANY, or a negative one of
// libpcap's.
static int read_all(struct capture *c, pcap_t *pcap, uint32_t frame_room)
{
	const u_char *data;
	struct pcap_pkthdr *header;
	struct clock clock = {0};
	uint32_t room = 0, fcs = fcs_bytes(pcap);
	int rc;

	while ((rc = pcap_next_ex(pcap, &header, &data)) == 1) {
		uint32_t length = header->len - RTE_MIN(header->len, fcs);
		unsigned became;

		if (c->count == CAPTURE_FRAMES_MAX)
			return TOO_MANY;
		if (c->count == room && grow(c, &room) != 0)
			return NO_MEMORY;
		c->in_file++;
		became = frame_make(c, data, RTE_MIN(header->caplen, length), length, frame_room,
		                    &c->frames[c->count]);
		if (became == TAKEN)
			take(c, header, &clock);
		else
			c->skipped[became]++;
	}
	return rc == PCAP_ERROR_BREAK ? TAKEN : rc;
}

// By what most of its records are.
static int refuse_all(const struct capture *c, const char *path, const char *where, char *error)
{
	unsigned most = 0;

	if (c->in_file == 0)
		return config_error(error, "%s: %.100s: has no frame; give another capture", where, path);
	for (unsigned i = 1; i < CAPTURE_SKIPS; i++)
		if (c->skipped[i] > c->skipped[most])
			most = i;
	return config_error(error, "%s: %.60s: none of %llu frames can be sent: %llu %s; %s", where, path,
	                    (unsigned long long)c->in_file, (unsigned long long)c->skipped[most],
	                    skips[most].words, skips[most].remedy);
}

static int load(struct capture *c, pcap_t *pcap, uint32_t room, const char *path, const char *where,
                char *error)
{
	int link = pcap_datalink(pcap), rc;

	if (link != DLT_EN10MB)
		return config_error(
		        error, "%s: %.100s: link type %d is not Ethernet; capture on an Ethernet interface",
		        where, path, link);
	rc = read_all(c, pcap, room);
	if (rc == TAKEN)
		return c->count ? 0 : refuse_all(c, path, where, error);
	if (rc == TOO_MANY)
		return config_error(error, "%s: %.100s: more than %d frames; cut it (editcap)", where, path,
		                    CAPTURE_FRAMES_MAX);
	if (rc == NO_MEMORY)
		return config_error(error, "%s: %.100s: no memory for its frames; cut it (editcap)", where,
		                    path);
	return config_error(error, "%s: %.80s: after %llu frames: %.80s; repair it (editcap IN OUT)", where,
	                    path, (unsigned long long)c->in_file, pcap_geterr(pcap));
}

// Refuse a file that libpcap does not take at all; why: libpcap's words.
static void refuse_format(FILE *file, const char *path, const char *why, const char *where, char *error)
{
	char begin[8] = "";
	size_t bytes;

	rewind(file);
	bytes = fread(begin, 1, sizeof(begin), file);
	for (size_t i = 0; i < RTE_DIM(formats); i++) {
		size_t length = strlen(formats[i].begin);

		if (bytes < length || memcmp(begin, formats[i].begin, length) != 0)
			continue;
		config_error(error, "%s: %.100s: %s; %s", where, path, formats[i].what, formats[i].remedy);
		return;
	}
	if (bytes == 0)
		config_error(error, "%s: %.100s: is empty; give a capture", where, path);
	else
		config_error(error, "%s: %.100s: is no capture (%.60s); convert it: editcap -F pcap IN OUT",
		             where, path, why);
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
		refuse_format(file, path, why, where, error);
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
		json_object_set_new(skipped, skips[i].name, json_integer((json_int_t)capture->skipped[i]));
	return json_pack("{sI sI so sI sI sI sI sI sI}", "frames_in_file", (json_int_t)capture->in_file,
	                 "frames", (json_int_t)capture->count, "skipped", skipped, "enlarged",
	                 (json_int_t)capture->enlarged, "options_removed",
	                 (json_int_t)capture->options_removed, "period_ns",
	                 (json_int_t)capture_period_ns(capture), "times_fallen",
	                 (json_int_t)capture->times_fallen, "times_impossible",
	                 (json_int_t)capture->times_impossible, "loops", (json_int_t)(sent / capture->count));
}
