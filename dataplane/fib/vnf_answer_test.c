// SPDX-License-Identifier: BSD-3-Clause
// What a VNF answers itself, byte by byte, and to whom it says nothing.
#include <arpa/inet.h>

#include "base/checksum.h"
#include "fib/vnf_answer.h"
#include "test/unit.h"

static const uint8_t mac[6] = {2, 0, 0, 0, 2, 1}, peer[6] = {2, 0, 0, 0, 9, 9};
static uint8_t out[VNF_ANSWER_MAX];
static unsigned out_length;

static enum vnf_answer ask(const uint8_t *frame, unsigned length)
{
	return vnf_answer(mac, inet_addr("198.18.0.1"), frame, length, out, &out_length);
}

// An IPv4 packet of the peer to an address.
static unsigned ip(uint8_t *frame, const char *to, uint8_t ttl, uint8_t protocol, unsigned payload)
{
	const uint32_t from_be = inet_addr("198.18.0.9"), to_be = inet_addr(to);

	memset(frame, 0, 14 + 20 + payload);
	memcpy(frame, mac, 6);
	memcpy(frame + 6, peer, 6);
	frame[12] = 8;
	frame[14] = 0x45;
	frame[17] = (uint8_t)(20 + payload);
	frame[22] = ttl;
	frame[23] = protocol;
	memcpy(frame + 26, &from_be, 4);
	memcpy(frame + 30, &to_be, 4);
	for (unsigned i = 0; i < payload; i++)
		frame[34 + i] = (uint8_t)i;
	return 14 + 20 + payload;
}

static void assert_to_peer(uint8_t protocol)
{
	assert_memory_equal(out, peer, 6);
	assert_memory_equal(out + 6, mac, 6);
	assert_int_equal(checksum_fold(checksum_add_ipv4(out + 14)), 0xffff);
	assert_int_equal(out[23], protocol);
	assert_int_equal(load32(out + 26), inet_addr("198.18.0.1"));
	assert_int_equal(load32(out + 30), inet_addr("198.18.0.9"));
}

static void arp_has_the_address(void **state)
{
	static const uint8_t request[28] = {0,   1,  8, 0, 6, 4, 0, 1, 2, 0, 0,   0,  9, 9,
	                                    198, 18, 0, 9, 0, 0, 0, 0, 0, 0, 198, 18, 0, 1};
	static const uint8_t reply[28] = {0,   1,  8, 0, 6, 4, 0, 2, 2, 0, 0,   0,  2, 1,
	                                  198, 18, 0, 1, 2, 0, 0, 0, 9, 9, 198, 18, 0, 9};
	uint8_t frame[60] = {255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 9, 9, 8, 6};

	memcpy(frame + 14, request, sizeof(request));
	assert_int_equal(ask(frame, sizeof(frame)), VNF_ANSWER_ARP);
	assert_memory_equal(out, peer, 6);
	assert_memory_equal(out + 14, reply, sizeof(reply));
	frame[14 + 27] = 2; // another's
	assert_int_equal(ask(frame, sizeof(frame)), VNF_ANSWER_NONE);
	frame[14 + 27] = 1;
	frame[14 + 7] = 2; // a reply
	assert_int_equal(ask(frame, sizeof(frame)), VNF_ANSWER_NONE);
}

static void a_ping_comes_back(void **state)
{
	uint8_t frame[128];
	unsigned length = ip(frame, "198.18.0.1", 64, IPPROTO_ICMP, 40);

	frame[34] = 8;
	assert_int_equal(ask(frame, length), VNF_ANSWER_ECHO);
	assert_int_equal(out_length, length);
	assert_to_peer(IPPROTO_ICMP);
	assert_int_equal(out[34], 0);
	assert_memory_equal(out + 38, frame + 38, 36);
	assert_int_equal(checksum_fold(checksum_add(out + 34, 40)), 0xffff);
	frame[34] = 3; // an error
	assert_int_equal(ask(frame, length), VNF_ANSWER_NONE);
}

static void an_expired_packet_has_an_error_that_quotes_it(void **state)
{
	uint8_t frame[128];
	unsigned length = ip(frame, "10.0.0.7", 1, IPPROTO_UDP, 40);

	assert_int_equal(ask(frame, length), VNF_ANSWER_EXPIRED);
	assert_int_equal(out_length, 14 + 20 + 8 + 28);
	assert_to_peer(IPPROTO_ICMP);
	assert_int_equal(out[17], 20 + 8 + 28);
	assert_int_equal(out[34], 11);
	assert_memory_equal(out + 42, frame + 14, 28);
	assert_int_equal(checksum_fold(checksum_add(out + 34, 36)), 0xffff);
	ip(frame, "10.0.0.7", 2, IPPROTO_UDP, 40);
	assert_int_equal(ask(frame, length), VNF_ANSWER_NONE);
	ip(frame, "10.0.0.7", 1, IPPROTO_ICMP, 40); // an echo reply: no request
	assert_int_equal(ask(frame, length), VNF_ANSWER_NONE);
	ip(frame, "10.0.0.7", 1, IPPROTO_UDP, 40);
	frame[21] = 1; // a later fragment
	assert_int_equal(ask(frame, length), VNF_ANSWER_NONE);
}

static void daemons_have_their_packets(void **state)
{
	uint8_t frame[128];

	assert_int_equal(ask(frame, ip(frame, "198.18.0.1", 1, IPPROTO_TCP, 40)), VNF_ANSWER_DAEMON);
	assert_int_equal(ask(frame, ip(frame, "224.0.0.5", 1, 89, 40)), VNF_ANSWER_DAEMON);
}

static void what_is_cut_or_anothers_has_none(void **state)
{
	uint8_t frame[128];
	unsigned length = ip(frame, "198.18.0.1", 1, IPPROTO_TCP, 40);

	for (unsigned n = 0; n < length; n++)
		assert_int_equal(ask(frame, n), VNF_ANSWER_NONE);
	frame[5] = 2;
	assert_int_equal(ask(frame, length), VNF_ANSWER_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(arp_has_the_address),
	        cmocka_unit_test(a_ping_comes_back),
	        cmocka_unit_test(an_expired_packet_has_an_error_that_quotes_it),
	        cmocka_unit_test(daemons_have_their_packets),
	        cmocka_unit_test(what_is_cut_or_anothers_has_none),
	};

	return cmocka_run_group_tests_name("vnf_answer", tests, NULL, NULL);
}
