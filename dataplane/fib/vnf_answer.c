// SPDX-License-Identifier: BSD-3-Clause
#include "fib/vnf_answer.h"

#include <netinet/in.h>
#include <rte_ether.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checksum.h"

enum {
	IPV4 = RTE_ETHER_HDR_LEN,
	IPV4_BYTES = 20,
	IPV4_LENGTH = IPV4 + 2,
	IPV4_FRAGMENT = IPV4 + 6,
	IPV4_TTL = IPV4 + 8,
	IPV4_PROTOCOL = IPV4 + 9,
	IPV4_CHECKSUM = IPV4 + 10,
	IPV4_SOURCE = IPV4 + 12,
	IPV4_DESTINATION = IPV4 + 16,
	ICMP = IPV4 + IPV4_BYTES,
	ICMP_BYTES = 8,
	ICMP_ECHO_REPLY = 0,
	ICMP_ECHO_REQUEST = 8,
	ICMP_TIME_EXCEEDED = 11,
	QUOTED = IPV4_BYTES + 8, // RFC 792: the header and 64 bits of what is behind
	TTL = 64,
	ARP = RTE_ETHER_HDR_LEN,
	ARP_BYTES = 28,
	ARP_OPERATION = ARP + 6,
	ARP_SENDER = ARP + 8,
	ARP_SENDER_IP = ARP + 14,
	ARP_TARGET = ARP + 18,
	ARP_TARGET_IP = ARP + 24,
};

// IPv4 addresses to MAC addresses.
static const uint8_t arp_request[8] = {0, 1, 8, 0, 6, 4, 0, 1};

static void to_sender(const uint8_t *mac, const uint8_t *frame, uint8_t *out)
{
	memcpy(out, frame + RTE_ETHER_ADDR_LEN, RTE_ETHER_ADDR_LEN);
	memcpy(out + RTE_ETHER_ADDR_LEN, mac, RTE_ETHER_ADDR_LEN);
}

static unsigned arp_answer(const uint8_t *mac, uint32_t address_be, uint8_t *out)
{
	out[ARP_OPERATION + 1] = 2;
	memcpy(out + ARP_TARGET, out + ARP_SENDER, ARP_TARGET - ARP_SENDER);
	memcpy(out + ARP_SENDER, mac, RTE_ETHER_ADDR_LEN);
	store32(out + ARP_SENDER_IP, address_be);
	return ARP + ARP_BYTES;
}

static void ip_header(uint8_t *out, uint32_t address_be, uint32_t to_be)
{
	out[IPV4_TTL] = TTL;
	store32(out + IPV4_SOURCE, address_be);
	store32(out + IPV4_DESTINATION, to_be);
	store16(out + IPV4_CHECKSUM, 0);
	store16(out + IPV4_CHECKSUM, (uint16_t)~checksum_fold(checksum_add_ipv4(out + IPV4)));
}

static void icmp_header(uint8_t *out, uint8_t type, unsigned bytes)
{
	out[ICMP] = type;
	store16(out + ICMP + 2, 0);
	store16(out + ICMP + 2, (uint16_t)~checksum_fold(checksum_add(out + ICMP, bytes)));
}

static unsigned expired(uint32_t address_be, const uint8_t *frame, unsigned bytes, uint8_t *out)
{
	unsigned quoted = bytes < QUOTED ? bytes : QUOTED;

	memset(out + IPV4, 0, IPV4_BYTES + ICMP_BYTES);
	memcpy(out + ICMP + ICMP_BYTES, frame + IPV4, quoted);
	out[IPV4] = 0x45;
	out[IPV4_FRAGMENT] = 0x40; // RFC 6864 s4: the id stays 0
	out[IPV4_PROTOCOL] = IPPROTO_ICMP;
	put_be16(out + IPV4_LENGTH, (uint16_t)(IPV4_BYTES + ICMP_BYTES + quoted));
	ip_header(out, address_be, load32(frame + IPV4_SOURCE));
	icmp_header(out, ICMP_TIME_EXCEEDED, ICMP_BYTES + quoted);
	return ICMP + ICMP_BYTES + quoted;
}

// Whether an IPv4 packet is whole, without options, from one host, and no later fragment: such a one is answered.
static bool is_answered(const uint8_t *frame, unsigned length)
{
	unsigned bytes = (unsigned)(frame[IPV4_LENGTH] << 8 | frame[IPV4_LENGTH + 1]);

	return length >= IPV4 + IPV4_BYTES && frame[IPV4] == 0x45 && bytes >= IPV4_BYTES &&
	       bytes <= length - IPV4 && (uint8_t)(frame[IPV4_SOURCE] - 1) < 223 &&
	       !((frame[IPV4_FRAGMENT] & 0x3f) | frame[IPV4_FRAGMENT + 1]);
}

static enum vnf_answer ipv4_answer(uint32_t address_be, const uint8_t *frame, unsigned length, uint8_t *out,
                                   unsigned *out_length)
{
	static const uint8_t routers[3] = {224, 0, 0};
	bool own = load32(frame + IPV4_DESTINATION) == address_be,
	     icmp = frame[IPV4_PROTOCOL] == IPPROTO_ICMP;
	unsigned bytes = (unsigned)(frame[IPV4_LENGTH] << 8 | frame[IPV4_LENGTH + 1]);

	if (icmp && (bytes < IPV4_BYTES + ICMP_BYTES || frame[ICMP] != ICMP_ECHO_REQUEST))
		return VNF_ANSWER_NONE; // no error about an error (RFC 1812 s4.3.2.7)
	if (own && icmp) {
		ip_header(out, address_be, load32(frame + IPV4_SOURCE));
		icmp_header(out, ICMP_ECHO_REPLY, bytes - IPV4_BYTES);
		return VNF_ANSWER_ECHO;
	}
	if (own || memcmp(frame + IPV4_DESTINATION, routers, sizeof(routers)) == 0)
		return VNF_ANSWER_DAEMON;
	if (frame[IPV4_TTL] > 1)
		return VNF_ANSWER_NONE;
	*out_length = expired(address_be, frame, bytes, out);
	return VNF_ANSWER_EXPIRED;
}

enum vnf_answer vnf_answer(const uint8_t mac[6], uint32_t address_be, const uint8_t *frame, unsigned length,
                           uint8_t *out, unsigned *out_length)
{
	if (length < ARP + ARP_BYTES || length > VNF_ANSWER_MAX ||
	    (!(frame[0] & 1) && memcmp(frame, mac, RTE_ETHER_ADDR_LEN) != 0))
		return VNF_ANSWER_NONE;
	memcpy(out, frame, length);
	to_sender(mac, frame, out);
	*out_length = length;
	if (frame[12] == 8 && frame[13] == 6) {
		if (memcmp(frame + ARP, arp_request, sizeof(arp_request)) != 0 ||
		    load32(frame + ARP_TARGET_IP) != address_be)
			return VNF_ANSWER_NONE;
		*out_length = arp_answer(mac, address_be, out);
		return VNF_ANSWER_ARP;
	}
	if ((frame[0] & 1) || frame[12] != 8 || frame[13] != 0 || !is_answered(frame, length))
		return VNF_ANSWER_NONE;
	return ipv4_answer(address_be, frame, length, out, out_length);
}
