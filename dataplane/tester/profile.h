// SPDX-License-Identifier: BSD-3-Clause
// A traffic profile (docs/traffic.md): frames of several sizes, flows, addresses and headers, or of a
// capture. Frame number k of a stream is a function of profile, seed, stream and k: a frame that the port
// refused is made again the same, and a run can be repeated.
//
// Made on the control thread (profile.c) from a JSON object and the files that it names. A worker then
// draws frames, writes them and counts those that the port took (profile_draw.c); nothing of
// this allocates or fails. What was sent is counted frame by frame, not worked out from the plan.
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "tester/pacer.h"
#include "tester/capture.h"
#include "tester/frame.h"

// The object "profile" of traffic.start, decoded and checked, but for the files that it names. Control
// thread.

enum {
	PROFILE_SIZES_MAX = 256,
	PROFILE_MACS_MAX = 4096,
	PROFILE_FLOWS_MAX = 1 << 24,
	PROFILE_ADDRESSES_MAX = 1 << 24,
	PROFILE_PATH_MAX = 1024,
};

enum profile_flow_draw { PROFILE_ROUND_ROBIN, PROFILE_UNIFORM, PROFILE_ZIPF };
enum profile_timing { PROFILE_TIMING_RATE, PROFILE_TIMING_RECORDED };

struct profile_sizes {
	unsigned count; // 0: not given
	struct {
		uint16_t frame_size_bytes;
		uint32_t weight;
	} of[PROFILE_SIZES_MAX];
};

struct profile_macs {
	unsigned count; // 0: not given
	uint8_t of[PROFILE_MACS_MAX][6];
};

struct profile_request {
	struct profile_sizes sizes;
	uint32_t ip, vlan; // vlan 0: no tag
	uint32_t ttl;      // or hop limit
	int transport;     // 0 UDP, 1 TCP
	struct {
		uint32_t count;
		int draw;
		double exponent;
	} flows;
	struct profile_macs macs;
	uint32_t mac_count; // 0: not given
	char addresses_path[PROFILE_PATH_MAX];
	struct {
		uint32_t first;
		uint64_t count; // 0: not given
		bool of_each_mac;
	} range;
	struct {
		int process;
		uint64_t on_ns, off_ns;
	} arrival;
	struct {
		char path[PROFILE_PATH_MAX];
		int timing;
		double time_scale, rate_pps; // of recorded times: one of them; rate_pps 0: not given
		uint32_t frame_bytes_max;    // longer frames are skipped
	} pcap;
	uint64_t seed;
};

// Decode source into *out. Returns 0, or -EINVAL with a sentence in error (CONFIG_ERROR_MAX).
int profile_request_decode(const json_t *source, struct profile_request *out, const char *where, char *error);

enum {
	PROFILE_STORE_MAX =
	        128,        // what writing a frame touches; or FRAME_STORE_BYTES where heads are that short
	PROFILE_DRAWS = 64, // frames that are drawn and not yet taken
	PROFILE_FLOW_HOSTS = 1024,
	PROFILE_FLOW_PORTS = 16384,
	PROFILE_REDRAWN_MAX = 1 << 27,
};
#define PROFILE_COUNTED_MAX (UINT64_C(1) << 33) // a bit each: 1 GiB

struct alias;

// Sums are over words as they lie in memory, folded.
struct profile_size {
	uint16_t length; // in memory
	uint16_t ip_bytes_be, l4_bytes_be;
	uint32_t ip_sum, l4_sum; // what lengths and pattern add
};

// What a frame is.
struct profile_draw {
	uint32_t flow;
	uint32_t place; // of the address, or of the frame in the capture; of a range the address itself
	uint16_t mac, length;
	uint8_t size;
};

// What the port took. By length in memory.
struct profile_ledger {
	uint64_t first;          // number of the first frame
	uint64_t packets, bytes; // frame sizes, with FCS
	uint64_t bursts;         // on and off: periods in which something was sent
	uint64_t lengths[FRAME_SIZE_MAX];
	uint64_t macs[PROFILE_MACS_MAX];
	uint64_t *flows, *places; // bitmaps of what was drawn
};

struct profile {
	// Bytes of every frame; those that differ are 0 in the image and not in the sums.
	alignas(64) uint8_t image[PROFILE_STORE_MAX];
	uint32_t ip_sum, l4_sum;
	uint32_t src_low; // of the flow's source address: the lower 32 bits, host byte order
	uint16_t store;
	uint8_t l3, l4, own, version, protocol, stream;
	struct profile_size *sizes;
	uint8_t (*macs)[8];      // destination addresses, each in 8 bytes
	uint8_t (*addresses)[4]; // destinations, one behind the other; of 16 bytes each with IPv6
	uint64_t range;          // or so many consecutive ones, and no list: first and those that follow
	uint32_t first;
	bool of_each_mac;                         // each MAC has its own
	struct profile_draw draws[PROFILE_DRAWS]; // of frame k: k modulo PROFILE_DRAWS

	// How they are drawn.
	uint32_t size_count, round_length, mac_count, flow_count, place_count;
	uint8_t *round; // sizes, in the order of a round
	enum profile_flow_draw flow_draw;
	struct alias *alias; // Zipf
	uint64_t flow_key, place_key;
	struct capture *capture; // frames are these, or NULL
	bool macs_given;

	struct profile_ledger ledger;

	// Control thread.
	struct {
		uint64_t first, packets; // of the ledger, when they were counted
		int64_t count;
	} touched;
	struct pacer_arrival arrival;
	double mean_frame_bytes; // of the plan
	uint16_t longest;        // length in memory
	json_t *source;          // what it was made of
	uint16_t frame_size_bytes;
	struct stat files[2];
};

// Make a profile of an object "profile" for the frames of a flow that hold up to room bytes in memory.
// frame_size_bytes of the flow counts where the profile has no sizes. where names the object. NULL with a
// sentence in error (CONFIG_ERROR_MAX).
struct profile *profile_make(const json_t *source, const struct frame_flow *flow, uint32_t room,
                             const char *where, char *error);
void profile_free(struct profile *p);

// Whether it is what profile_make() would make of this now: the same object, and files not touched since.
bool profile_is(const struct profile *p, const json_t *source, uint16_t frame_size_bytes);

// Begin a trial: frames of this epoch, counts at 0.
void profile_begin(struct profile *p, const struct frame_flow *flow);
void profile_clear(struct profile *p);

// Worker. Draw frames k .. k + n - 1; no more than PROFILE_DRAWS may be drawn and not taken.
void profile_draw(struct profile *p, uint64_t k, unsigned n);

static inline const struct profile_draw *profile_drawn(const struct profile *p, uint64_t k)
{
	return &p->draws[k % PROFILE_DRAWS];
}

// Write n frames that are drawn; data[] have room for p->store bytes and the pattern from there on.
void profile_write(const struct profile *p, uint8_t *const *data, uint64_t k, unsigned n);

// Put a time stamp and FRAME_FLAGS_TIMED into frame k, which is written.
void profile_stamp(const struct profile *p, uint8_t *data, uint64_t k, uint64_t tsc, uint8_t flags);

// Destinations that can be drawn from a range: addresses, of each MAC if these have their own.
static inline uint64_t profile_entries(const struct profile *p)
{
	return p->range * (p->of_each_mac ? p->mac_count : 1);
}

// Return how many of them the port took frames to: of the first PROFILE_REDRAWN_MAX frames. -1: more than
// PROFILE_COUNTED_MAX entries, or no memory for a bit of each. Not for workers: it takes a second or two.
int64_t profile_touched(struct profile *p);

// The port took frames k .. k + n - 1.
void profile_count(struct profile *p, uint64_t k, unsigned n);

// What an object "profile" would send, without a task: for plans. NULL with a sentence in error.
json_t *profile_facts(const json_t *source, char *error);

// What was sent, as the object "profile" of a report. What takes its time is left out until it has ended.
json_t *profile_report(struct profile *p, bool ended);
