// SPDX-License-Identifier: BSD-3-Clause
// The parser of packets: one fault at a time, pieces of frames, and that the quick way and the general one
// never differ. Frames end at a page that nobody may read. tests/nf/test_firewall.py compares it with a
// model.
#include <sys/mman.h>
#include <unistd.h>

#include "base/packet.h"
#include "test/unit.h"

enum { ROOM = 4096, RANDOM_FRAMES = 200000 };

static uint8_t *guarded; // ROOM bytes; behind them is nothing

static int guard_map(void **state)
{
	uint8_t *pages = mmap(NULL, 2 * ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(pages != MAP_FAILED && sysconf(_SC_PAGESIZE) == ROOM);
	assert_int_equal(mprotect(pages + ROOM, ROOM, PROT_NONE), 0);
	guarded = pages;
	return 0;
}

static int guard_unmap(void **state)
{
	return munmap(guarded, 2 * ROOM);
}

// A frame whose first piece has length bytes, of total.
static struct vnf_frame piece(const uint8_t *data, uint32_t length, uint32_t total)
{
	uint8_t *at = guarded + ROOM - length;

	memcpy(at, data, length);
	return (struct vnf_frame){at, length, total};
}

static void checksum_set(uint8_t *ip)
{
	uint32_t sum = 0;

	ip[10] = ip[11] = 0;
	for (unsigned i = 0; i < (ip[0] & 0xfu) * 4; i += 2)
		sum += (uint32_t)(ip[i] << 8 | ip[i + 1]);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	ip[10] = (uint8_t)(~sum >> 8);
	ip[11] = (uint8_t)~sum;
}

// 60 bytes: UDP or TCP over IPv4, 198.18.0.1:49152 to 198.19.0.1:28770.
static void ipv4_make(uint8_t *frame, uint8_t protocol)
{
	static const uint8_t header[] = {0x45, 0,  0, 46, 0,   0,  0x40, 0, 64,   0, 0,    0,
	                                 198,  18, 0, 1,  198, 19, 0,    1, 0xc0, 0, 0x70, 0x62};

	memset(frame, 0, 60);
	frame[12] = 0x08;
	memcpy(frame + 14, header, sizeof(header));
	frame[23] = protocol;
	checksum_set(frame + 14);
}

static enum packet_fault parse(const uint8_t *data, uint32_t length, uint32_t total, struct packet *p)
{
	struct vnf_frame frame = piece(data, length, total);

	return packet_parse(&frame, p);
}

static void a_plain_packet_is_all_there(void **state)
{
	uint8_t data[60];
	struct packet p;

	ipv4_make(data, IPPROTO_TCP);
	assert_int_equal(parse(data, 60, 60, &p), PACKET_FINE);
	assert_int_equal(p.l3, 14);
	assert_int_equal(p.l4, 34);
	assert_int_equal(p.l4_bytes, 26);
	assert_int_equal(p.version, 4);
	assert_int_equal(p.protocol, IPPROTO_TCP);
	assert_true(p.first && p.has_ports && !p.fragment && p.fragment_at == 0);
	assert_int_equal(p.src_port, RTE_BE16(49152));
	assert_int_equal(p.dst_port, RTE_BE16(28770));
}

// One change to the plain packet, and what it is then.
static const struct {
	uint8_t at, value;
	bool sum; // make the checksum right again
	enum packet_fault fault;
} changes[] = {
        {12, 0x86, true, PACKET_NOT_IP},
        {13, 0x06, true, PACKET_NOT_IP}, // ARP
        {14, 0x55, true, PACKET_VERSION},
        {14, 0x65, true, PACKET_VERSION},
        {14, 0x44, true, PACKET_HEADER_LENGTH},
        {14, 0x4f, true, PACKET_HEADER_LENGTH}, // 60 bytes of header, and 46 are left
        {14, 0x4b, true, PACKET_CHECKSUM},
        {17, 19, true, PACKET_LENGTH},
        {17, 20, true, PACKET_TRUNCATED},
        {17, 27, true, PACKET_TRUNCATED},
        {17, 28, true, PACKET_FINE},
        {17, 47, true, PACKET_LENGTH},
        {16, 1, true, PACKET_LENGTH},
        {22, 63, false, PACKET_CHECKSUM},
        {22, 0, true, PACKET_FINE}, // TTL 0 is a router's affair
        {20, 0x80, true, PACKET_FINE},
        {20, 0x20, true, PACKET_FINE},
        {20, 0x1f, true, PACKET_FINE},
        {23, IPPROTO_TCP, true, PACKET_FINE},
        {23, IPPROTO_ICMP, true, PACKET_FINE},
        {23, 255, true, PACKET_FINE},
};

static void one_change_is_one_fault(void **state)
{
	for (unsigned i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		uint8_t data[60];
		struct packet p;

		ipv4_make(data, IPPROTO_UDP);
		data[changes[i].at] = changes[i].value;
		if (changes[i].sum && changes[i].at != 14)
			checksum_set(data + 14);
		if (parse(data, 60, 60, &p) != changes[i].fault)
			fail_msg("change %u: byte %u = 0x%02x: fault %u", i, changes[i].at, changes[i].value,
			         parse(data, 60, 60, &p));
	}
}

// RFC 791 s3.1: at most 65535 bytes, header included.
static void a_fragment_beyond_the_largest_datagram_is_refused(void **state)
{
	uint8_t data[60];
	struct packet p;

	ipv4_make(data, IPPROTO_UDP);
	data[20] = 0x1f;
	data[21] = 0xfa; // 8186 * 8 + 46 = 65534
	checksum_set(data + 14);
	assert_int_equal(parse(data, 60, 60, &p), PACKET_FINE);
	assert_int_equal(p.fragment_at, 8186 * 8);
	assert_true(p.fragment && !p.first && !p.has_ports && p.src_port == 0);
	data[21] = 0xfb;
	checksum_set(data + 14);
	assert_int_equal(parse(data, 60, 60, &p), PACKET_LENGTH);
}

// Headers have to be in the first piece; payload need not.
static void the_rest_of_a_frame_may_be_elsewhere(void **state)
{
	uint8_t data[60];
	struct packet p;

	ipv4_make(data, IPPROTO_TCP);
	data[16] = 5; // 1326 bytes
	checksum_set(data + 14);
	assert_int_equal(parse(data, 60, 1340, &p), PACKET_FINE);
	assert_int_equal(p.l4_bytes, 1306);
	assert_int_equal(parse(data, 60, 1339, &p), PACKET_LENGTH);
	assert_int_equal(parse(data, 54, 1340, &p), PACKET_FINE);
	assert_int_equal(parse(data, 53, 1340, &p), PACKET_TRUNCATED);
	assert_int_equal(parse(data, 34, 1340, &p), PACKET_TRUNCATED);
	assert_int_equal(parse(data, 33, 1340, &p), PACKET_HEADER_LENGTH);
	assert_int_equal(parse(data, 14, 1340, &p), PACKET_HEADER_LENGTH);
	assert_int_equal(parse(data, 13, 1340, &p), PACKET_RUNT);
	assert_int_equal(parse(data, 0, 1340, &p), PACKET_RUNT);
}

static void two_tags_are_stepped_over_and_three_are_not(void **state)
{
	uint8_t plain[60], data[80];
	struct packet p;

	ipv4_make(plain, IPPROTO_UDP);
	for (unsigned tags = 0; tags <= 3; tags++) {
		memcpy(data, plain, 12);
		for (unsigned i = 0; i < tags; i++)
			memcpy(data + 12 + 4 * i, i ? "\x81\x00\x00\x07" : "\x88\xa8\x00\x07", 4);
		memcpy(data + 12 + 4 * tags, plain + 12, 48);
		assert_int_equal(parse(data, 60 + 4 * tags, 60 + 4 * tags, &p),
		                 tags == 3 ? PACKET_TAGS : PACKET_FINE);
		if (tags < 3)
			assert_int_equal(p.l3, 14 + 4 * tags);
	}
	assert_int_equal(parse(data, 17, 17, &p), PACKET_RUNT);
}

// --- IPv6 ------------------------------------------------------------------------------------------------

// The kinds of headers that follow IPv6's, 8 bytes each, then UDP; first is the first of them.
static uint32_t ipv6_make(uint8_t *frame, const uint8_t *kinds, unsigned count)
{
	uint32_t at = 54;

	memset(frame, 0, 256);
	memcpy(frame + 12, "\x86\xdd\x60", 3);
	frame[20] = count ? kinds[0] : IPPROTO_UDP;
	for (unsigned i = 0; i < count; i++, at += 8)
		frame[at] = i + 1 < count ? kinds[i + 1] : IPPROTO_UDP;
	frame[19] = (uint8_t)(8 * count + 8);
	memcpy(frame + at, "\xc0\x00\x70\x62", 4);
	return at + 8;
}

static enum packet_fault parse6(const uint8_t *kinds, unsigned count, struct packet *p)
{
	uint8_t data[256];
	uint32_t length = ipv6_make(data, kinds, count);

	return parse(data, length, length, p);
}

static void extension_headers_are_stepped_over(void **state)
{
	static const uint8_t many[9] = {60, 60, 60, 60, 60, 60, 60, 60, 60};
	struct packet p;

	assert_int_equal(parse6(NULL, 0, &p), PACKET_FINE);
	assert_true(p.version == 6 && p.l4 == 54 && p.dst_port == RTE_BE16(28770));
	assert_int_equal(parse6((const uint8_t[]){0, 43, 60}, 3, &p), PACKET_FINE);
	assert_true(p.protocol == IPPROTO_UDP && p.l4 == 78 && p.l4_bytes == 8 && !p.fragment);
	assert_int_equal(parse6(many, 8, &p), PACKET_FINE);
	assert_int_equal(parse6(many, 9, &p), PACKET_EXTENSIONS);
	assert_int_equal(parse6((const uint8_t[]){60, 0}, 2, &p), PACKET_EXTENSIONS); // RFC 8200 s4.1
	assert_int_equal(parse6((const uint8_t[]){51}, 1, &p), PACKET_EXTENSIONS);    // AH of 8 bytes
	assert_int_equal(parse6((const uint8_t[]){44, 44}, 2, &p), PACKET_EXTENSIONS);
}

static void fragments_of_ipv6_say_where_they_are(void **state)
{
	uint8_t data[256];
	uint32_t length = ipv6_make(data, (const uint8_t[]){60, 44}, 2);
	struct packet p;

	assert_int_equal(parse(data, length, length, &p), PACKET_FINE);
	assert_true(!p.fragment && p.first && p.has_ports); // an atomic one, RFC 6946
	data[65] = 1;                                       // more to come
	assert_int_equal(parse(data, length, length, &p), PACKET_FINE);
	assert_true(p.fragment && p.first && p.has_ports);
	data[65] = 8;
	assert_int_equal(parse(data, length, length, &p), PACKET_FINE);
	assert_true(p.fragment && !p.first && !p.has_ports && p.fragment_at == 8 && p.l4 == 70);
	data[64] = 0xff;
	data[65] = 0xe8; // 8 of options + 65512 + 8: 65528
	assert_int_equal(parse(data, length, length, &p), PACKET_FINE);
	data[65] = 0xf0; // 65536
	assert_int_equal(parse(data, length, length, &p), PACKET_LENGTH);
}

static void ipv6_is_cut_at_every_byte(void **state)
{
	uint8_t data[256];
	uint32_t length = ipv6_make(data, (const uint8_t[]){60, 44}, 2);

	for (uint32_t cut = 0; cut < length; cut++) {
		enum packet_fault expected = cut < 14   ? PACKET_RUNT
		                             : cut < 54 ? PACKET_HEADER_LENGTH
		                             : cut < 70 ? PACKET_EXTENSIONS
		                                        : PACKET_TRUNCATED;
		struct packet p;

		assert_int_equal(parse(data, cut, length, &p), expected);
		assert_int_equal(parse(data, cut, cut, &p), cut < 54 ? expected : PACKET_LENGTH);
	}
}

// --- Both ways -------------------------------------------------------------------------------------------

static uint32_t random_next(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)(*seed >> 33);
}

// A packet that is nearly plain: some bytes of its headers are others, mostly with the right checksum.
static uint32_t nearly_plain(uint8_t *data, uint64_t *seed)
{
	static const uint8_t at[] = {12, 13, 14, 15, 16, 17, 20, 21, 22, 23, 24, 26, 30, 34};
	uint32_t changed = random_next(seed) % 3;

	ipv4_make(data, random_next(seed) % 2 ? IPPROTO_UDP : IPPROTO_TCP);
	for (unsigned i = 0; i < changed; i++) {
		uint8_t *byte = &data[at[random_next(seed) % sizeof(at)]];

		*byte = random_next(seed) % 2 ? (uint8_t)random_next(seed)
		                              : *byte ^ 1u << random_next(seed) % 8;
	}
	if (random_next(seed) % 4 && (data[14] & 0xf) >= 5 && (data[14] & 0xf) <= 11)
		checksum_set(data + 14);
	return random_next(seed) % 4 ? 60 : random_next(seed) % 61;
}

static void same(const struct packet *a, const struct packet *b)
{
	assert_int_equal(a->l3, b->l3);
	assert_int_equal(a->l4, b->l4);
	assert_int_equal(a->l4_bytes, b->l4_bytes);
	assert_int_equal(a->version, b->version);
	assert_int_equal(a->protocol, b->protocol);
	assert_true(a->fragment == b->fragment && a->first == b->first && a->has_ports == b->has_ports);
	assert_true(a->src_port == b->src_port && a->dst_port == b->dst_port);
	assert_int_equal(a->fragment_at, b->fragment_at);
}

static void the_quick_way_says_what_the_general_one_says(void **state)
{
	unsigned plain = 0, sound = 0;
	uint64_t seed = 17;

	for (unsigned i = 0; i < RANDOM_FRAMES; i++) {
		struct packet quick, general;
		uint8_t data[60];
		uint32_t length = nearly_plain(data, &seed);
		struct vnf_frame frame =
		        piece(data, length, length + (random_next(&seed) % 8 == 0 ? 700 : 0));
		bool fine = packet_parse_any(&frame, &general) == PACKET_FINE;

		sound += fine;
		if (!packet_parse_plain(&frame, &quick))
			continue;
		plain++;
		assert_true(fine);
		same(&quick, &general);
	}
	assert_in_range(plain, RANDOM_FRAMES / 4, RANDOM_FRAMES * 9 / 10);
	assert_true(sound > plain);
}

// Sums of any value: right only where the general way finds it right.
static void the_quick_sum_is_the_sum(void **state)
{
	uint64_t seed = 4;

	for (unsigned i = 0; i < RANDOM_FRAMES; i++) {
		uint8_t ip[20];
		uint32_t sum = 0;

		for (unsigned at = 0; at < sizeof(ip); at++)
			ip[at] =
			        i % 2 ? (uint8_t)random_next(&seed) : (uint8_t)(random_next(&seed) % 2 * 255);
		for (unsigned at = 0; at < sizeof(ip); at += 2)
			sum += (uint32_t)(ip[at] | ip[at + 1] << 8);
		while (sum >> 16)
			sum = (sum & 0xffff) + (sum >> 16);
		assert_int_equal(checksum_fold(checksum_add_ipv4(ip)), sum);
	}
}

// --- What is changed -------------------------------------------------------------------------------------

static void checksums_follow_what_is_changed(void **state)
{
	uint64_t seed = 9;

	for (unsigned i = 0; i < RANDOM_FRAMES; i++) {
		uint8_t data[60];
		struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(data + 14);
		uint16_t was, is = (uint16_t)random_next(&seed);

		ipv4_make(data, IPPROTO_UDP);
		ip->time_to_live = (uint8_t)(1 + random_next(&seed) % 255);
		ip->packet_id = (uint16_t)random_next(&seed);
		checksum_set(data + 14);
		packet_ipv4_decrement_ttl(ip);
		assert_true(checksum_ipv4_is_right(data + 14));
		was = ip->packet_id;
		ip->packet_id = is;
		ip->hdr_checksum = checksum_replace(ip->hdr_checksum, was, is);
		assert_true(checksum_ipv4_is_right(data + 14));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_plain_packet_is_all_there),
	        cmocka_unit_test(one_change_is_one_fault),
	        cmocka_unit_test(a_fragment_beyond_the_largest_datagram_is_refused),
	        cmocka_unit_test(the_rest_of_a_frame_may_be_elsewhere),
	        cmocka_unit_test(two_tags_are_stepped_over_and_three_are_not),
	        cmocka_unit_test(extension_headers_are_stepped_over),
	        cmocka_unit_test(fragments_of_ipv6_say_where_they_are),
	        cmocka_unit_test(ipv6_is_cut_at_every_byte),
	        cmocka_unit_test(the_quick_way_says_what_the_general_one_says),
	        cmocka_unit_test(the_quick_sum_is_the_sum),
	        cmocka_unit_test(checksums_follow_what_is_changed),
	};

	return cmocka_run_group_tests(tests, guard_map, guard_unmap);
}
