// SPDX-License-Identifier: BSD-3-Clause
// What the kernel of a VNF answers to packets that are for the VNF itself: ARP, ping, and a TTL at its end. Pure: a frame
// in, a frame out. IPv4 without options; no rate limit, which the forwarder has (punt.rate_pps).
#pragma once

#include <stdint.h>

enum vnf_answer {
	VNF_ANSWER_NONE,    // nobody answers this
	VNF_ANSWER_ARP,     // RFC 826
	VNF_ANSWER_ECHO,    // RFC 792
	VNF_ANSWER_EXPIRED, // RFC 1812 s5.3.1
	VNF_ANSWER_DAEMON, // for a routing daemon: to the VNF's address, or to routers on the link (RFC 5771 s4)
};

enum { VNF_ANSWER_MAX = 1514 };

// Return what answers a frame of length bytes, and write the answer of *out_length bytes to out (VNF_ANSWER_MAX). That of a
// daemon is the frame itself, back to who sent it. address_be: of the VNF.
enum vnf_answer vnf_answer(const uint8_t mac[6], uint32_t address_be, const uint8_t *frame, unsigned length,
                           uint8_t *out, unsigned *out_length);
