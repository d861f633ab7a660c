// SPDX-License-Identifier: BSD-3-Clause
// The tester frame (docs/design/planed-protocol.md): Ethernet, IPv4, UDP port 0x7062 and 18 bytes of our own,
// then a fixed pattern. That is the plain one, which is written here; those of a profile (profile.h) have
// other headers, and are recognised here too, as PTP messages are, with up to two VLAN tags that somebody put on.
// Writing costs four 16-byte stores, whatever the frame size: the pattern is put into
// the buffers once (frame_fill_payload) and the UDP checksum is carried on from a sum taken once per
// template. Checking reads every byte. Many frames at a time: frame_run.h.
//
// Pure functions on caller's memory; any thread. Not covered: IPv6 extension headers.
#pragma once

#include "base/checksum.h"
#include "base/isa.h"

#ifdef ISA_X86
#include <emmintrin.h>
#endif
#include <rte_byteorder.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
	FRAME_FCS_BYTES = 4, // counted in every frame size, never in memory
	FRAME_SIZE_MIN = 64,
	FRAME_SIZE_MAX = 9018,
	FRAME_L1_OVERHEAD_BYTES = 20, // preamble 8 and gap 12
	FRAME_UDP_PORT = 0x7062,
	FRAME_MAGIC = 0x7062,
	FRAME_HEADER_BYTES = 60, // all that is not pattern
	FRAME_STORE_BYTES = 64,  // what frame_write() touches; the last four bytes of it are pattern
	FRAME_FLAG_PROBE = 1,
	FRAME_FLAG_STAMPED = 2, // of a load whose frames all have a time stamp, probes or not
	FRAME_FLAGS_TIMED = FRAME_FLAG_PROBE | FRAME_FLAG_STAMPED,
	FRAME_STREAMS = 8, // that a tester tells apart
	FRAME_STREAM_NONE = 0xff,
	FRAME_TAGS_MAX = 2, // VLAN tags
	FRAME_TAG_BYTES = 4,
	FRAME_OWN_BYTES = 18, // magic to TSC
	FRAME_TAGGED_MAX = FRAME_SIZE_MAX - FRAME_FCS_BYTES + FRAME_TAGS_MAX * FRAME_TAG_BYTES, // in memory
};

// Offsets of the fields from the magic on, whatever the headers before it.
enum {
	FRAME_OWN_STREAM = 2,
	FRAME_OWN_FLAGS = 3,
	FRAME_OWN_EPOCH = 4,
	FRAME_OWN_SEQUENCE = 6,
	FRAME_OWN_TSC = 10,
};

// Offsets of the fields; multi-byte fields are in network byte order.
enum {
	FRAME_OFFSET_IP = 14,
	FRAME_OFFSET_UDP = 34,
	FRAME_OFFSET_UDP_CHECKSUM = 40,
	FRAME_OFFSET_MAGIC = 42,
	FRAME_OFFSET_STREAM = 44,
	FRAME_OFFSET_FLAGS = 45,
	FRAME_OFFSET_EPOCH = 46,
	FRAME_OFFSET_SEQUENCE = 48,
	FRAME_OFFSET_TSC = 52,
};

// What the frames of one generator have in common.
struct frame_flow {
	uint8_t src_mac[6], dst_mac[6];
	uint32_t src_ip, dst_ip; // host byte order
	uint8_t stream;
	uint16_t epoch;
	uint16_t frame_size_bytes; // with FCS
	uint64_t nonce;            // see frame_stamp()
};

struct frame_template {
	alignas(64) uint64_t words[FRAME_STORE_BYTES / 8]; // sequence, probe flag and UDP checksum are 0
	uint32_t udp_sum;                                  // sum of all that the UDP checksum covers, folded
	uint16_t length;                                   // bytes in memory
};

// What the monitor reads from a frame of ours.
struct frame_fields {
	uint32_t sequence;
	uint16_t epoch;
	uint8_t stream;
	uint8_t flags;
	uint64_t stamp; // frame_stamp() of it
};

// What the frames of one stream have in common, all but sequence number and UDP checksum, when they are no
// probes. Zeroed: unknown.
struct frame_signature {
	alignas(64) uint8_t image[FRAME_STORE_BYTES]; // addresses of Ethernet: any; the last four: pattern
	uint32_t length;                              // in memory; never 0 when known
	uint32_t udp_sum; // of all that the UDP checksum covers but for number and checksum, folded
};

// Where the headers of a frame are. The magic is at own, if the frame is that long.
struct frame_layout {
	uint16_t l3, l4, own;
	uint8_t version;  // of IP
	uint8_t protocol; // UDP or TCP
};

enum frame_class {
	FRAME_INTACT,  // ours, and every byte from the EtherType on is as it was sent (or consistently
	               // rewritten, NAT)
	FRAME_CORRUPT, // recognisably ours by magic or by UDP port, but something does not fit
	FRAME_FOREIGN,
};

// Prepare the template of a flow. Returns 0, or -EINVAL for a frame size that does not exist.
int frame_template_init(struct frame_template *t, const struct frame_flow *flow);

// The same of frames that are PTP messages (IEEE 1588: Sync, on Ethernet), the only ones that some devices stamp.
// Our own bytes are where a plain frame has them, and so are its port and its checksum, in PTP's clock identity. The
// checksum covers all behind the Ethernet header.
int frame_template_init_ptp(struct frame_template *t, const struct frame_flow *flow);

// Write the fixed pattern over length bytes of a frame buffer. A byte depends on its offset only, not on the
// frame size.
void frame_fill_payload(uint8_t *data, uint32_t length);

// The same pattern, FRAME_SIZE_MAX bytes of it, on a cache line's boundary.
const uint8_t *frame_pattern(void);

// Classify a frame of length bytes, by itself: the sums of all of it. Of a frame longer than FRAME_TAGGED_MAX
// no more than the first FRAME_TAGGED_MAX bytes are read. fields are valid for FRAME_INTACT; for
// FRAME_CORRUPT only stream is, and FRAME_STREAM_NONE unless it can be believed.
enum frame_class frame_classify(const uint8_t *data, uint32_t length, struct frame_fields *fields);

// The same for headers of any kind: what frame_classify() does with all but sound plain frames.
enum frame_class frame_classify_any(const uint8_t *data, uint32_t length, struct frame_fields *fields);

// Find the headers: up to two VLAN tags, IPv4 with options or IPv6, UDP or TCP, no fragment. False: they are
// others, or end before the ports. Checks no length but the frame's own.
bool frame_locate(const uint8_t *data, uint32_t length, struct frame_layout *at);

// Read the fields from the magic on.
void frame_fields_read(const uint8_t *own, struct frame_fields *fields);

// Read the fields of a frame that has our magic where its headers say. Nothing else is checked. False: it has not.
bool frame_find(const uint8_t *data, uint32_t length, struct frame_fields *fields);

// Whether this is a probe, by its magic and flags, and its fields. Nothing is checked: for who only looks on.
bool frame_is_probe(const uint8_t *data, uint32_t length, struct frame_fields *fields);

// Learn from an intact frame what the others of its stream look like. False: not a frame of ours with the
// pattern in it, and *look is unknown. Checks by itself what it copies: the sender may write meanwhile.
bool frame_signature_learn(struct frame_signature *look, const uint8_t *data, uint32_t length);

// What a frame has in its field of the TSC. nonce: of all frames of a run, a secret of who sends and who receives them;
// so nobody who has not seen one of them can make one. 0: none. tsc: 0 in frames without a time stamp.
static inline uint64_t frame_stamp(uint64_t nonce, uint64_t tsc)
{
	return nonce ^ tsc;
}

// A stamp that differs from now by more is nobody's: of a frame with another nonce all but 24 bits of it are wrong.
enum { FRAME_STAMP_BITS = 40 };

// Whether a frame has the nonce in its field of the TSC. timed: it has a time stamp, too, of about now_tsc.
static inline bool frame_has_nonce(uint64_t nonce, uint64_t field, bool timed, uint64_t now_tsc)
{
	uint64_t tsc = frame_stamp(nonce, field);

	if (nonce == 0)
		return true;
	if (!timed)
		return tsc == 0;
	return (now_tsc - tsc + (UINT64_C(1) << (FRAME_STAMP_BITS - 1))) >> FRAME_STAMP_BITS == 0;
}

// The sum of the four 16-bit words of a value.
static inline uint32_t frame_words(uint64_t value)
{
	return (uint32_t)((value & 0xffff) + (value >> 16 & 0xffff) + (value >> 32 & 0xffff) + (value >> 48));
}

// Store the first 64 bytes of a frame. flags and tsc come as they lie in memory, and what they add to udp_sum is in
// sum.
static inline void frame_store(const struct frame_template *t, uint8_t *data, uint32_t sequence_be,
                               uint64_t tsc_be, uint64_t flag_bits, uint32_t sum)
{
	uint64_t fifth = t->words[5] | flag_bits | checksum_of(sum, true);
	uint64_t sixth = t->words[6] ^ (tsc_be << 32 | sequence_be), seventh = t->words[7] ^ tsc_be >> 32;
#ifdef ISA_X86
	const __m128i *from = (const __m128i *)t->words;
	__m128i *to = (__m128i *)data;

	_mm_storeu_si128(&to[0], from[0]);
	_mm_storeu_si128(&to[1], from[1]);
	_mm_storeu_si128(&to[2], _mm_set_epi64x((int64_t)fifth, (int64_t)t->words[4]));
	_mm_storeu_si128(&to[3], _mm_set_epi64x((int64_t)seventh, (int64_t)sixth));
#else
	const uint64_t end[] = {t->words[4], fifth, sixth, seventh};

	memcpy(data, t->words, 32);
	memcpy(data + 32, end, sizeof(end));
#endif
}

// Write a frame: data has room for FRAME_STORE_BYTES and the pattern from there on.
static inline void frame_write(const struct frame_template *t, uint8_t *data, uint32_t sequence)
{
	uint32_t be = rte_cpu_to_be_32(sequence);

	frame_store(t, data, be, 0, 0, t->udp_sum + (be & 0xffff) + (be >> 16));
}

// The same with a time stamp and FRAME_FLAGS_TIMED.
static inline void frame_write_timed(const struct frame_template *t, uint8_t *data, uint32_t sequence,
                                     uint64_t tsc, uint8_t flags)
{
	uint32_t be = rte_cpu_to_be_32(sequence);
	uint64_t tsc_be = rte_cpu_to_be_64(tsc), nonce_be = t->words[6] >> 32 | t->words[7] << 32;
	uint32_t sum = t->udp_sum + (be & 0xffff) + (be >> 16) + ((uint32_t)flags << 8);

	sum += frame_words(nonce_be ^ tsc_be) +
	       frame_words(~nonce_be); // in the nonce's place (RFC 1624 eqn. 3)
	frame_store(t, data, be, tsc_be, (uint64_t)flags << 40, sum);
}

static inline void frame_write_probe(const struct frame_template *t, uint8_t *data, uint32_t sequence,
                                     uint64_t tsc)
{
	frame_write_timed(t, data, sequence, tsc, FRAME_FLAG_PROBE);
}
