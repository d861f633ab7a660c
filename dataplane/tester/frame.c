// SPDX-License-Identifier: BSD-3-Clause
// Template, pattern and check of the tester frame. The check is two one's complement sums (IPv4 header, RFC
// 791; UDP with pseudo header, RFC 768) over unaligned little-endian words: the sum does not depend on byte
// order (RFC 1071 s2B).
#include "tester/frame.h"

#include <errno.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>
#include <string.h>

#include "base/packet.h"
#include "tester/frame_run.h"

// --- Runs ------------------------------------------------------------------------------------------------

ISA_DECLARE(unsigned, frame_run_check,
            (const struct frame_signature *look, const struct vnf_frame *frames, unsigned n,
             uint32_t sequence));
ISA_DECLARE(void, frame_run_write,
            (const struct frame_template *t, uint8_t *const *data, unsigned n, uint32_t sequence));

static const struct frame_run runs[ISA_COUNT] = {
        [ISA_SCALAR] = {frame_run_check_scalar, frame_run_write_scalar},
#ifdef ISA_X86
        [ISA_AVX2] = {frame_run_check_avx2, frame_run_write_avx2},
        [ISA_AVX512] = {frame_run_check_avx512, frame_run_write_avx512},
#endif
};

const struct frame_run *frame_run_of(enum isa isa)
{
	return &runs[isa];
}

const struct frame_run *frame_run_current(void)
{
	return &runs[isa_current()];
}

enum {
	OFFSET_ETHER_TYPE = 12,
	OFFSET_IP_LENGTH = 16,
	OFFSET_IP_FRAGMENT = 20,
	OFFSET_IP_PROTO = 23,
	OFFSET_IP_SRC = 26,
	OFFSET_UDP_DPORT = 36,
	OFFSET_UDP_LENGTH = 38,
	UDP_SRC_PORT = 49152, // first of the dynamic ports (RFC 6335), plus the stream
	TTL = 64,
	FRAGMENT_BITS = 0x3fff, // more fragments, or an offset
};

// Fields of a PTP message (IEEE 1588-2008, 13.3).
enum {
	PTP_VERSION = 2,
	PTP_OFFSET_VERSION = 1,
	PTP_OFFSET_LENGTH = 2,
	PTP_OWN = FRAME_OFFSET_MAGIC - RTE_ETHER_HDR_LEN, // our magic, in the place of the port number
};

static_assert(sizeof(struct rte_ether_hdr) == FRAME_OFFSET_IP, "Ethernet header");
static_assert(FRAME_OFFSET_IP + sizeof(struct rte_ipv4_hdr) == FRAME_OFFSET_UDP,
              "IPv4 header without options");
static_assert(FRAME_OFFSET_UDP + sizeof(struct rte_udp_hdr) == FRAME_OFFSET_MAGIC, "UDP header");
static_assert(FRAME_SIZE_MIN - FRAME_FCS_BYTES == FRAME_HEADER_BYTES, "the smallest frame has no pattern");

#define ETHER_TYPE_BE RTE_BE16(RTE_ETHER_TYPE_IPV4)
#define PORT_BE       RTE_BE16(FRAME_UDP_PORT)
#define MAGIC_BE      RTE_BE16(FRAME_MAGIC)

// What the UDP checksum covers: addresses (the pseudo header lies right before the UDP header), protocol, UDP
// length once more, header and payload. The 34 bytes that every frame has are added without a loop.
static inline uint64_t udp_sum(const uint8_t *data, uint32_t length)
{
	const uint8_t *p = data + OFFSET_IP_SRC;
	uint64_t sum = load16(p + 32) + (uint64_t)(IPPROTO_UDP << 8) + load16(data + OFFSET_UDP_LENGTH);

	if (length > FRAME_HEADER_BYTES)
		sum += checksum_add(data + FRAME_HEADER_BYTES, length - FRAME_HEADER_BYTES);
	sum = checksum_carry(checksum_carry(sum, load64(p)), load64(p + 8));
	return checksum_carry(checksum_carry(sum, load64(p + 16)), load64(p + 24));
}

static void headers_write(uint8_t *data, const struct frame_flow *flow, uint16_t length)
{
	struct rte_ether_hdr *ether = (struct rte_ether_hdr *)data;
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(data + FRAME_OFFSET_IP);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(data + FRAME_OFFSET_UDP);

	memcpy(&ether->dst_addr, flow->dst_mac, sizeof(flow->dst_mac));
	memcpy(&ether->src_addr, flow->src_mac, sizeof(flow->src_mac));
	ether->ether_type = ETHER_TYPE_BE;
	ip->version_ihl = RTE_IPV4_VHL_DEF;
	ip->total_length = rte_cpu_to_be_16(length - FRAME_OFFSET_IP);
	// An atomic datagram: its id stays 0 (RFC 6864 s4).
	ip->fragment_offset = RTE_BE16(RTE_IPV4_HDR_DF_FLAG);
	ip->time_to_live = TTL;
	ip->next_proto_id = IPPROTO_UDP;
	ip->src_addr = rte_cpu_to_be_32(flow->src_ip);
	ip->dst_addr = rte_cpu_to_be_32(flow->dst_ip);
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	udp->src_port = rte_cpu_to_be_16(UDP_SRC_PORT + flow->stream);
	udp->dst_port = PORT_BE;
	udp->dgram_len = rte_cpu_to_be_16(length - FRAME_OFFSET_UDP);
}

static int template_begin(struct frame_template *t, const struct frame_flow *flow,
                          uint8_t image[static FRAME_SIZE_MAX])
{
	uint16_t epoch_be = rte_cpu_to_be_16(flow->epoch), magic_be = MAGIC_BE;
	uint64_t nonce_be = rte_cpu_to_be_64(flow->nonce);

	if (flow->frame_size_bytes < FRAME_SIZE_MIN || flow->frame_size_bytes > FRAME_SIZE_MAX)
		return -EINVAL;
	t->length = flow->frame_size_bytes - FRAME_FCS_BYTES;
	frame_fill_payload(image, FRAME_SIZE_MAX);
	memset(image, 0, FRAME_HEADER_BYTES);
	headers_write(image, flow, t->length);
	memcpy(image + FRAME_OFFSET_MAGIC, &magic_be, sizeof(magic_be));
	image[FRAME_OFFSET_STREAM] = flow->stream;
	memcpy(image + FRAME_OFFSET_EPOCH, &epoch_be, sizeof(epoch_be));
	memcpy(image + FRAME_OFFSET_TSC, &nonce_be, sizeof(nonce_be));
	return 0;
}

int frame_template_init(struct frame_template *t, const struct frame_flow *flow)
{
	uint8_t image[FRAME_SIZE_MAX];

	if (template_begin(t, flow, image) != 0)
		return -EINVAL;
	t->udp_sum = checksum_fold(udp_sum(image, t->length));
	memcpy(t->words, image, sizeof(t->words));
	return 0;
}

int frame_template_init_ptp(struct frame_template *t, const struct frame_flow *flow)
{
	uint8_t image[FRAME_SIZE_MAX];
	rte_be16_t type_be = RTE_BE16(RTE_ETHER_TYPE_1588), length_be;

	if (template_begin(t, flow, image) != 0)
		return -EINVAL;
	length_be = rte_cpu_to_be_16(t->length - RTE_ETHER_HDR_LEN);
	memset(image + RTE_ETHER_HDR_LEN, 0, OFFSET_UDP_DPORT - RTE_ETHER_HDR_LEN); // a Sync message
	memset(image + OFFSET_UDP_LENGTH, 0, FRAME_OFFSET_MAGIC - OFFSET_UDP_LENGTH);
	memcpy(image + OFFSET_ETHER_TYPE, &type_be, sizeof(type_be));
	image[RTE_ETHER_HDR_LEN + PTP_OFFSET_VERSION] = PTP_VERSION;
	memcpy(image + RTE_ETHER_HDR_LEN + PTP_OFFSET_LENGTH, &length_be, sizeof(length_be));
	t->udp_sum = checksum_fold(checksum_add(image + RTE_ETHER_HDR_LEN, t->length - RTE_ETHER_HDR_LEN));
	memcpy(t->words, image, sizeof(t->words));
	return 0;
}

void frame_fill_payload(uint8_t *data, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++)
		data[i] = (uint8_t)(i * 7 + (i >> 8) * 13 + 1);
}

static alignas(64) uint8_t pattern[FRAME_SIZE_MAX];

static __attribute__((constructor)) void pattern_make(void)
{
	frame_fill_payload(pattern, sizeof(pattern));
}

const uint8_t *frame_pattern(void)
{
	return pattern;
}

// The fields by which a frame is ours and whole, compared without a branch: all zero is right.
static inline uint32_t header_mismatch(const uint8_t *data, uint32_t length)
{
	uint32_t type_vhl = load32(data + OFFSET_ETHER_TYPE) & 0xffffff;
	uint32_t wrong = type_vhl ^ (ETHER_TYPE_BE | RTE_IPV4_VHL_DEF << 16);

	wrong |= (load32(data + FRAME_OFFSET_UDP_CHECKSUM) >> 16) ^ MAGIC_BE;
	wrong |= load16(data + OFFSET_UDP_DPORT) ^ PORT_BE;
	wrong |= data[OFFSET_IP_PROTO] ^ IPPROTO_UDP;
	wrong |= load16(data + OFFSET_IP_FRAGMENT) & RTE_BE16(FRAGMENT_BITS);
	wrong |= get_be16(data + OFFSET_IP_LENGTH) ^ (length - FRAME_OFFSET_IP);
	wrong |= get_be16(data + OFFSET_UDP_LENGTH) ^ (length - FRAME_OFFSET_UDP);
	return wrong | (load16(data + FRAME_OFFSET_UDP_CHECKSUM) == 0);
}

static inline bool is_plain_length(uint32_t length)
{
	return length >= FRAME_HEADER_BYTES && length <= FRAME_SIZE_MAX - FRAME_FCS_BYTES;
}

// Both sums, without a branch between them: all zero is right.
static inline uint32_t sums_mismatch(const uint8_t *data, uint32_t length)
{
	return (checksum_fold(checksum_add_ipv4(data + FRAME_OFFSET_IP)) ^ 0xffff) |
	       (checksum_fold(udp_sum(data, length)) ^ 0xffff);
}

enum frame_class frame_classify(const uint8_t *data, uint32_t length, struct frame_fields *fields)
{
	if (unlikely(!is_plain_length(length)))
		return frame_classify_any(data, length, fields);
	if (header_mismatch(data, length)) // a stranger's frame is not summed up
		return frame_classify_any(data, length, fields);
	if (sums_mismatch(data, length)) {
		fields->stream = data[FRAME_OFFSET_STREAM];
		return FRAME_CORRUPT;
	}
	frame_fields_read(data + FRAME_OFFSET_MAGIC, fields);
	return FRAME_INTACT;
}

// Put zeros where frames of a stream differ, and return the sum of what is left, as the template has it.
static uint32_t look_strip(uint8_t *image, uint32_t length)
{
	memset(image + FRAME_OFFSET_UDP_CHECKSUM, 0, sizeof(uint16_t));
	image[FRAME_OFFSET_FLAGS] = 0;
	memset(image + FRAME_OFFSET_SEQUENCE, 0, sizeof(uint32_t));
	return checksum_fold(checksum_fold(udp_sum(image, FRAME_HEADER_BYTES)) +
	                     checksum_add(pattern + FRAME_HEADER_BYTES, length - FRAME_HEADER_BYTES));
}

bool frame_signature_learn(struct frame_signature *look, const uint8_t *data, uint32_t length)
{
	look->length = 0;
	if (!is_plain_length(length))
		return false;
	memcpy(look->image, data, FRAME_HEADER_BYTES);
	memcpy(look->image + FRAME_HEADER_BYTES, pattern + FRAME_HEADER_BYTES,
	       FRAME_STORE_BYTES - FRAME_HEADER_BYTES);
	if (header_mismatch(look->image, length) |
	    (checksum_fold(checksum_add_ipv4(look->image + FRAME_OFFSET_IP)) ^ 0xffff))
		return false;
	if (memcmp(data + FRAME_HEADER_BYTES, pattern + FRAME_HEADER_BYTES, length - FRAME_HEADER_BYTES) != 0)
		return false;
	look->udp_sum = look_strip(look->image, length);
	look->length = length;
	return true;
}

// Whether port and magic are where a plain frame has them, behind its headers; of the latter no length and no sum is checked.
static inline bool is_plain(const uint8_t *data, uint32_t length)
{
	if (length < FRAME_OFFSET_STREAM || load16(data + FRAME_OFFSET_MAGIC) != MAGIC_BE ||
	    load16(data + OFFSET_UDP_DPORT) != PORT_BE)
		return false;
	const bool ipv4 =
	        (load32(data + OFFSET_ETHER_TYPE) & 0xffffff) == (ETHER_TYPE_BE | RTE_IPV4_VHL_DEF << 16);
	const bool whole = (load16(data + OFFSET_IP_FRAGMENT) & RTE_BE16(FRAGMENT_BITS)) == 0;
	const bool udp = data[OFFSET_IP_PROTO] == IPPROTO_UDP;

	return ipv4 & whole & udp; // one branch for the three
}

// --- Any frame -------------------------------------------------------------------------------------------

// Tester frames with any headers: IPv4 or IPv6, UDP or TCP, up to two VLAN tags. A frame is intact if its
// lengths say what its length is, if the IPv4 header and the transport's sum are right (RFC 791, 768, 9293,
// 8200 s8.1) and if the magic is where the payload begins; the ports may be anybody's, so that a NAT, or a
// replayed capture, may have others.
//
// No checksum covers a VLAN tag's priority and number, nor the traffic class, flow label and hop limit of
// IPv6: who rewrites these does no damage.

enum {
	PTP = 0, // in place of IP's version
	UDP_BYTES = 8,
	TCP_BYTES = 20,
	IPV6_BYTES = 40,
	PORTS_BYTES = 4,
};

void frame_fields_read(const uint8_t *own, struct frame_fields *fields)
{
	fields->stream = own[FRAME_OWN_STREAM];
	fields->flags = own[FRAME_OWN_FLAGS];
	fields->epoch = get_be16(own + FRAME_OWN_EPOCH);
	fields->sequence = rte_be_to_cpu_32(load32(own + FRAME_OWN_SEQUENCE));
	fields->stamp = rte_be_to_cpu_64(load64(own + FRAME_OWN_TSC));
}

static bool locate_ipv4(const uint8_t *ip, uint32_t length, struct frame_layout *at)
{
	uint8_t vhl;

	if (length < sizeof(struct rte_ipv4_hdr))
		return false;
	vhl = ip[0];
	at->version = 4;
	at->protocol = ip[offsetof(struct rte_ipv4_hdr, next_proto_id)];
	at->l4 = (uint16_t)(at->l3 + (vhl & 15) * 4);
	return vhl >> 4 == 4 && (vhl & 15) >= 5 &&
	       !(load16(ip + offsetof(struct rte_ipv4_hdr, fragment_offset)) & RTE_BE16(FRAGMENT_BITS));
}

static bool locate_ipv6(const uint8_t *ip, uint32_t length, struct frame_layout *at)
{
	if (length < IPV6_BYTES)
		return false;
	at->version = 6;
	at->protocol = ip[offsetof(struct rte_ipv6_hdr, proto)];
	at->l4 = at->l3 + IPV6_BYTES;
	return ip[0] >> 4 == 6;
}

// The payload begins behind the UDP header, or where TCP says.
static bool locate_payload(const uint8_t *data, uint32_t length, struct frame_layout *at)
{
	unsigned words;

	if (length < (uint32_t)at->l4 + PORTS_BYTES)
		return false;
	at->own = at->l4 + UDP_BYTES;
	if (at->protocol == IPPROTO_UDP)
		return true;
	words = length > at->l4 + 12u ? data[at->l4 + 12] >> 4 : TCP_BYTES / 4;
	at->own = (uint16_t)(at->l4 + words * 4);
	return at->protocol == IPPROTO_TCP && words >= TCP_BYTES / 4;
}

bool frame_locate(const uint8_t *data, uint32_t length, struct frame_layout *at)
{
	rte_be16_t type_be;

	if (packet_ethernet(data, length, &at->l3, &type_be) != PACKET_FINE)
		return false;
	if (type_be == RTE_BE16(RTE_ETHER_TYPE_IPV4))
		return locate_ipv4(data + at->l3, length - at->l3, at) && locate_payload(data, length, at);
	return type_be == RTE_BE16(RTE_ETHER_TYPE_IPV6) && locate_ipv6(data + at->l3, length - at->l3, at) &&
	       locate_payload(data, length, at);
}

// The same of a PTP message.
static bool locate_ptp(const uint8_t *data, uint32_t length, struct frame_layout *at)
{
	rte_be16_t type_be;

	if (packet_ethernet(data, length, &at->l3, &type_be) != PACKET_FINE ||
	    type_be != RTE_BE16(RTE_ETHER_TYPE_1588) || length < (uint32_t)at->l3 + PTP_OWN)
		return false;
	at->version = PTP;
	at->own = at->l3 + PTP_OWN;
	at->l4 = at->own - UDP_BYTES;
	return true;
}

static bool locate_any(const uint8_t *data, uint32_t length, struct frame_layout *at)
{
	return frame_locate(data, length, at) || locate_ptp(data, length, at);
}

static bool network_fits(const uint8_t *data, uint32_t length, const struct frame_layout *at)
{
	const uint8_t *ip = data + at->l3;

	if (at->version == PTP)
		return get_be16(ip + PTP_OFFSET_LENGTH) == length - at->l3;
	if (at->version == 6)
		return get_be16(ip + offsetof(struct rte_ipv6_hdr, payload_len)) == length - at->l4;
	return get_be16(ip + offsetof(struct rte_ipv4_hdr, total_length)) == length - at->l3 &&
	       checksum_is_right(ip, at->l4 - at->l3);
}

// The sum of the transport layer with its pseudo header. RFC 768: a checksum of 0 says that there is none.
static bool transport_fits(const uint8_t *data, uint32_t length, const struct frame_layout *at)
{
	const uint8_t *l4 = data + at->l4;
	uint32_t bytes = length - at->l4;
	uint64_t sum;

	if (at->version == PTP)
		return checksum_is_right(data + at->l3, length - at->l3);
	sum = checksum_add_pseudo(data + at->l3, at->version, at->protocol, (uint16_t)bytes);
	if (at->protocol == IPPROTO_UDP && (get_be16(l4 + 4) != bytes || load16(l4 + 6) == 0))
		return false;
	return checksum_fold(sum + checksum_add(l4, bytes)) == 0xffff;
}

static inline bool headers_fit(const uint8_t *data, uint32_t length, const struct frame_layout *at)
{
	return network_fits(data, length, at) && transport_fits(data, length, at);
}

// Whether a frame is as long as its headers and our own bytes, and no longer than any of ours.
static inline bool has_own(uint32_t length, const struct frame_layout *at)
{
	return length >= (uint32_t)at->own + FRAME_OWN_BYTES && length <= FRAME_TAGGED_MAX;
}

// A port at which our magic would follow, whatever is said before it: the payload begins at own.
static bool port_before(const uint8_t *data, uint32_t own)
{
	return load16(data + own - UDP_BYTES + 2) == PORT_BE || load16(data + own - TCP_BYTES + 2) == PORT_BE;
}

// Something in the headers is damaged, so they do not say where the magic is. Returns where it is, at one of
// the places at which we send it, or 0. Behind any but plain headers the port has to be there too: two bytes
// alone are found in foreign frames.
static uint32_t own_guess(const uint8_t *data, uint32_t length)
{
	// Behind Ethernet, IPv4 or IPv6, UDP or TCP: 42, 54, 62 or 74, and up to two tags.
	static const uint8_t places[] = {42, 46, 50, 54, 58, 62, 66, 70, 74, 78, 82};

	if (length >= FRAME_OFFSET_STREAM && load16(data + FRAME_OFFSET_MAGIC) == MAGIC_BE)
		return FRAME_OFFSET_MAGIC;
	for (unsigned i = 0; i < sizeof(places) && length >= places[i] + (uint32_t)FRAME_OWN_STREAM; i++)
		if (load16(data + places[i]) == MAGIC_BE && port_before(data, places[i]))
			return places[i];
	return 0;
}

// Slower than the check it follows, and only for what that check refused.
static __attribute__((noinline, cold)) enum frame_class
refused(const uint8_t *data, uint32_t length, const struct frame_layout *at, struct frame_fields *fields)
{
	bool port = at && load16(data + at->l4 + 2) == PORT_BE;
	uint32_t own = 0;

	if (at && length >= (uint32_t)at->own + FRAME_OWN_STREAM && load16(data + at->own) == MAGIC_BE)
		own = at->own;
	if (own == 0)
		own = own_guess(data, length);
	fields->stream =
	        own && length > own + FRAME_OWN_STREAM ? data[own + FRAME_OWN_STREAM] : FRAME_STREAM_NONE;
	return own || port ? FRAME_CORRUPT : FRAME_FOREIGN;
}

enum frame_class frame_classify_any(const uint8_t *data, uint32_t length, struct frame_fields *fields)
{
	struct frame_layout at = {.l4 = FRAME_OFFSET_UDP, .own = FRAME_OFFSET_MAGIC};

	if (length < FRAME_HEADER_BYTES && is_plain(data, length)) // cut off
		return refused(data, length, &at, fields);
	if (!locate_any(data, length, &at))
		return refused(data, length, NULL, fields);
	if (!has_own(length, &at) || load16(data + at.own) != MAGIC_BE || !headers_fit(data, length, &at))
		return refused(data, length, &at, fields);
	frame_fields_read(data + at.own, fields);
	return FRAME_INTACT;
}

struct frame_own frame_own_make(uint8_t stream, uint8_t flags, uint16_t epoch, uint64_t nonce,
                                uint64_t now_tsc)
{
	uint64_t words = MAGIC_BE | (uint64_t)stream << 16 | (uint64_t)flags << 24;

	return (struct frame_own){.words = words | (uint64_t)rte_cpu_to_be_16(epoch) << 32,
	                          .nonce = nonce,
	                          .now_tsc = now_tsc,
	                          .stamped = flags & FRAME_FLAG_STAMPED};
}

// Whether what begins with a magic is our own, and this number. *stamp: its field of the TSC.
static inline bool is_next(const struct frame_own *own, const uint8_t *magic, uint32_t sequence,
                           uint64_t *stamp)
{
	*stamp = rte_be_to_cpu_64(load64(magic + FRAME_OWN_TSC));
	return load64(magic - sizeof(uint16_t)) >> 16 == own->words &&
	       load32(magic + FRAME_OWN_SEQUENCE) == rte_cpu_to_be_32(sequence) &&
	       frame_has_nonce(own->nonce, *stamp, own->stamped, own->now_tsc);
}

static inline bool plain_is_next(const struct frame_own *own, const uint8_t *data, uint32_t length,
                                 uint32_t sequence, uint64_t *stamp)
{
	return is_plain_length(length) && is_next(own, data + FRAME_OFFSET_MAGIC, sequence, stamp) &&
	       !header_mismatch(data, length) && !sums_mismatch(data, length);
}

// With headers of any kind.
static __attribute__((noinline)) bool any_is_next(const struct frame_own *own, const uint8_t *data,
                                                  uint32_t length, uint32_t sequence, uint64_t *stamp)
{
	struct frame_layout at;

	return locate_any(data, length, &at) && has_own(length, &at) &&
	       is_next(own, data + at.own, sequence, stamp) && headers_fit(data, length, &at);
}

unsigned frame_run_sums(const struct frame_own *own, const struct vnf_frame *frames, unsigned n,
                        uint32_t sequence, uint64_t *stamps)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		const uint8_t *data = frames[i].data;
		uint32_t length = frames[i].length;

		frame_prefetch(&frames[i + FRAME_AHEAD]);
		if (unlikely(!plain_is_next(own, data, length, sequence + i, &stamps[i])) &&
		    !any_is_next(own, data, length, sequence + i, &stamps[i]))
			break;
	}
	return i;
}

// From the port behind plain headers to the magic behind the longest: two tags, IPv4 and TCP with all options.
enum { MARKS_BEGIN = OFFSET_UDP_DPORT, MARKS_END = 14 + 8 + 60 + 60 + 2 };

_Static_assert(FRAME_MAGIC == FRAME_UDP_PORT, "one comparison finds both");
_Static_assert(MARKS_BEGIN % 2 == 0, "both are at even offsets");

// Whether neither magic nor port is anywhere where they could be.
static inline bool is_strange(const uint8_t *data, uint32_t length)
{
	uint32_t end = RTE_MIN(length & ~1u, (uint32_t)MARKS_END), at = MARKS_BEGIN;

	if (length < MARKS_BEGIN + sizeof(uint16_t))
		return true;
#ifdef ISA_X86
	const __m128i mark = _mm_set1_epi16((short)MAGIC_BE);
	// In a short frame this looks before the first place, too: at worst it is found to be no stranger.
	__m128i found = _mm_cmpeq_epi16(_mm_loadu_si128((const __m128i *)(data + end - 16)), mark);

	for (; at + 16 < end; at += 16)
		found = _mm_or_si128(found,
		                     _mm_cmpeq_epi16(_mm_loadu_si128((const __m128i *)(data + at)), mark));
	return _mm_movemask_epi8(found) == 0;
#else
	while (at < end && load16(data + at) != MAGIC_BE)
		at += 2;
	return at >= end;
#endif
}

// More bits of the stamp are wrong than a damaged byte has. Of a plain frame.
static inline bool is_forged(const uint8_t *data, uint32_t length, uint64_t nonce)
{
	uint64_t stamp;

	if (nonce == 0 || length < FRAME_HEADER_BYTES || data[FRAME_OFFSET_FLAGS] & FRAME_FLAGS_TIMED)
		return false;
	stamp = rte_be_to_cpu_64(load64(data + FRAME_OFFSET_TSC));
	return __builtin_popcountll(frame_stamp(nonce, stamp)) > 8;
}

unsigned frame_run_foreign(const struct vnf_frame *frames, unsigned n, uint64_t nonce)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		const uint8_t *data = frames[i].data;
		uint32_t length = frames[i].length;

		rte_prefetch0(frames[i + FRAME_AHEAD].data);
		if (!(is_plain(data, length) ? is_forged(data, length, nonce) : is_strange(data, length)))
			break;
	}
	return i;
}

bool frame_find(const uint8_t *data, uint32_t length, struct frame_fields *fields)
{
	struct frame_layout at = {.own = FRAME_OFFSET_MAGIC};

	if (!is_plain(data, length) && !locate_any(data, length, &at))
		return false;
	if (length < (uint32_t)at.own + FRAME_OWN_BYTES || load16(data + at.own) != MAGIC_BE)
		return false;
	frame_fields_read(data + at.own, fields);
	return true;
}

bool frame_is_probe(const uint8_t *data, uint32_t length, struct frame_fields *fields)
{
	return frame_find(data, length, fields) && (fields->flags & FRAME_FLAG_PROBE);
}
