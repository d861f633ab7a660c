// SPDX-License-Identifier: BSD-3-Clause
// The Internet checksum (RFC 1071): sum the bytes, fold the sum to 16 bits, change a checksum when a word changes (RFC
// 1624). Sums are of words as they lie in memory: a one's complement sum does not depend on the byte order (RFC 1071
// s2B), so its folded value is written as it is. All but the sum over many bytes is inlined.
#pragma once

#include <stdbool.h>

#include "base/bytes.h"

// --- Sum -------------------------------------------------------------------------------------------------

// One's complement addition: the carry comes back in at the bottom.
static inline uint64_t checksum_carry(uint64_t a, uint64_t b)
{
	a += b;
	return a + (a < b);
}

// Return the one's complement sum of length bytes, as a sum of words as they lie in memory, not folded.
uint64_t checksum_add(const uint8_t *data, uint32_t length);

// Return the sum of an IPv4 header without options, not folded.
static inline uint64_t checksum_add_ipv4(const uint8_t *ip)
{
	return checksum_carry(checksum_carry(load64(ip), load64(ip + 8)), load32(ip + 16));
}

// Return the sum of the pseudo header of a transport protocol with this many bytes, not folded.
static inline uint64_t checksum_add_pseudo(const uint8_t *ip, uint8_t version, uint8_t protocol,
                                           uint16_t bytes)
{
	uint64_t sum = (uint64_t)(protocol << 8) + rte_cpu_to_be_16(bytes);

	return sum + (version == 6 ? checksum_add(ip + 8, 32) : checksum_add(ip + 12, 8));
}

// --- Fold ------------------------------------------------------------------------------------------------

// Fold a sum of 64 bits to 16: itself plus itself turned by half has hi + lo and their carry in its upper half. A sum
// that is right gives 0xffff, for only a sum of zeros gives 0.
static inline uint16_t checksum_fold(uint64_t sum)
{
	uint32_t half = (uint32_t)((sum + (sum >> 32 | sum << 32)) >> 32);

	return (uint16_t)((half + (half >> 16 | half << 16)) >> 16);
}

// Fold a sum of 32 bits to 16.
static inline uint32_t checksum_fold32(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

// Return the checksum to write for a sum. RFC 768: a UDP checksum of 0 would mean that there is none; TCP knows no
// such thing.
static inline uint16_t checksum_of(uint32_t sum, bool udp)
{
	uint16_t checksum = (uint16_t)~checksum_fold32(sum);

	return checksum == 0 && udp ? 0xffff : checksum;
}

// Check the sum of length bytes, their checksum among them.
static inline bool checksum_is_right(const uint8_t *data, uint32_t length)
{
	return checksum_fold(checksum_add(data, length)) == 0xffff;
}

// The same of an IPv4 header without options.
static inline bool checksum_ipv4_is_right(const uint8_t *ip)
{
	return checksum_fold(checksum_add_ipv4(ip)) == 0xffff;
}

// --- Change ----------------------------------------------------------------------------------------------

// Return a checksum after a change that adds delta to what it covers (RFC 1624 eqn. 3). With a delta that is not 0 (it
// may be 0xffff) the result is never 0xffff, as one that is made from scratch.
static inline rte_be16_t checksum_change(rte_be16_t checksum, uint16_t delta)
{
	uint32_t sum = (uint32_t)(uint16_t)~checksum + delta;

	return (rte_be16_t) ~((sum & 0xffff) + (sum >> 16));
}

// Return a checksum after one word that it covers was replaced by another (RFC 1624 eqn. 3).
static inline rte_be16_t checksum_replace(rte_be16_t checksum, uint16_t was, uint16_t is)
{
	uint32_t sum = (uint32_t)(uint16_t)~checksum + (uint16_t)~was + is;

	sum = (sum & 0xffff) + (sum >> 16);
	return (rte_be16_t) ~((sum & 0xffff) + (sum >> 16));
}
