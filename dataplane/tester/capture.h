// SPDX-License-Identifier: BSD-3-Clause
// Frames of a capture file, to be sent as tester frames: headers from Ethernet to the ports, and the length,
// are the capture's; the payload is ours, so that loss, order and damage can be told. Options of IPv4 and TCP
// give way to payload. Files are what libpcap reads: pcap of either byte order, in us or ns, and pcapng. This is the only
// reader: plans ask it too (planed --facts).
//
// Control thread; what is loaded is read by workers.
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

enum {
	CAPTURE_FRAMES_MAX = 4 << 20, // 400 MB of them
	CAPTURE_HEAD_MAX = 82,        // Ethernet, two tags, IPv6, TCP
};

enum capture_skip {
	CAPTURE_TRUNCATED, // the record ends in the headers, or they contradict themselves
	CAPTURE_NOT_IP,
	CAPTURE_NOT_UDP_TCP,
	CAPTURE_FRAGMENT,
	CAPTURE_EXTENSION, // IPv6 extension headers
	CAPTURE_TOO_LONG,
	CAPTURE_SKIPS,
};

// A frame that can be sent. Its sums are right but for our bytes.
struct capture_frame {
	uint32_t l4_sum;  // of all that the transport's checksum covers but for our bytes, folded
	uint16_t length;  // in memory
	uint8_t own;      // where the magic is: the end of the head
	uint8_t checksum; // where the transport's is
	bool udp;
	uint8_t head[CAPTURE_HEAD_MAX];
};

struct capture {
	struct capture_frame *frames;
	uint64_t *times_ns; // from the first on, never falling
	uint32_t count;
	uint32_t times_fallen, times_impossible;            // frames whose time stamp was not taken as it is
	uint64_t in_file, enlarged, options_removed, bytes; // bytes: frame sizes, with FCS
	uint64_t skipped[CAPTURE_SKIPS];
	uint16_t longest; // length in memory
};

// Load a file whose frames may be up to room bytes in memory; *stat is of the file. NULL with a sentence in error: what is
// wrong, and the way out that fits.
struct capture *capture_load(const char *path, uint32_t room, struct stat *stat, const char *where,
                             char *error);
void capture_free(struct capture *capture);

// From the first time to the first of the next round: all of them and a mean gap. 0: time does not pass.
uint64_t capture_period_ns(const struct capture *capture);

// What the file held, as an object.
json_t *capture_report(const struct capture *capture, uint64_t sent);
