// SPDX-License-Identifier: BSD-3-Clause
// Profiles without a port: every frame of every header stack is right by DPDK's own checksum functions, and
// every flipped bit is found. What cannot be is refused, with a sentence.
#include <unistd.h>

#include "tester/profile_rig.h"

// By rte_ip.h, which is not ours.
static void assert_checksums(uint8_t *data, uint32_t length)
{
	struct frame_layout at;
	uint16_t checksum;
	uint8_t *place;

	assert_true(frame_locate(data, length, &at));
	place = data + at.l4 + (at.protocol == IPPROTO_UDP ? 6 : 16);
	memcpy(&checksum, place, sizeof(checksum));
	memset(place, 0, sizeof(checksum));
	if (at.version == 4) {
		struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(data + at.l3);

		assert_int_equal(rte_be_to_cpu_16(ip->total_length), length - at.l3);
		assert_int_equal(rte_raw_cksum(ip, sizeof(*ip)), 0xffff);
		assert_int_equal(rte_ipv4_udptcp_cksum(ip, data + at.l4), checksum);
	} else {
		struct rte_ipv6_hdr *ip = (struct rte_ipv6_hdr *)(data + at.l3);

		assert_int_equal(rte_be_to_cpu_16(ip->payload_len), length - at.l4);
		assert_int_equal(rte_ipv6_udptcp_cksum(ip, data + at.l4), checksum);
	}
	memcpy(place, &checksum, sizeof(checksum));
}

static void assert_ours(uint8_t *data, uint32_t length, uint64_t k, uint64_t tsc)
{
	struct frame_fields fields;
	struct frame_layout at;

	assert_int_equal(frame_classify(data, length, &fields), FRAME_INTACT);
	assert_int_equal(fields.stream, STREAM);
	assert_int_equal(fields.epoch, EPOCH);
	assert_int_equal(fields.sequence, (uint32_t)k);
	assert_int_equal(fields.stamp, tsc);
	assert_int_equal(fields.flags, tsc ? FRAME_FLAG_PROBE : 0);
	assert_int_equal(frame_is_probe(data, length, &fields), tsc != 0);
	assert_true(frame_locate(data, length, &at));
	assert_memory_equal(data + at.own + FRAME_OWN_BYTES, frame_pattern() + at.own + FRAME_OWN_BYTES,
	                    length - at.own - FRAME_OWN_BYTES);
	assert_checksums(data, length);
}

static const struct {
	const char *headers;
	unsigned least; // frame size
} stacks[] = {
        {"", 64},
        {"\"vlan\": 7", 68},
        {"\"transport\": \"tcp\"", 76},
        {"\"transport\": \"tcp\", \"vlan\": 4094", 80},
        {"\"ip\": 6", 84},
        {"\"ip\": 6, \"vlan\": 7", 88},
        {"\"ip\": 6, \"transport\": \"tcp\"", 96},
        {"\"ip\": 6, \"transport\": \"tcp\", \"vlan\": 7", 100},
};

static struct profile *make_stack(unsigned i, unsigned size, const char *more)
{
	char text[256];

	snprintf(text, sizeof(text), "{\"sizes\": [[%u, 1]]%s%s%s}", size, *stacks[i].headers ? ", " : "",
	         stacks[i].headers, more);
	return make(text);
}

static void each_stack_is_intact(void **state)
{
	uint8_t data[ROOM];

	for (unsigned i = 0; i < RTE_DIM(stacks); i++)
		for (unsigned size = stacks[i].least; size < 1600; size += size < 140 ? 1 : 97) {
			struct profile *p = make_stack(
			        i, size, ", \"flows\": {\"count\": 16777216, \"draw\": \"uniform\"}");

			for (uint64_t k = 0; k < 40; k++) {
				uint64_t number = k * UINT64_C(0x123456789), tsc = k % 3 ? 0 : number + 1;
				uint32_t length = frame_of(p, number, tsc, data);

				assert_int_equal(length + FRAME_FCS_BYTES, size);
				assert_ours(data, length, number, tsc);
			}
			profile_free(p);
		}
}

// Over all values of a 16-bit word each checksum comes up, so 0 too: UDP writes 0xffff (RFC 768).
static void checksums_that_are_zero(void **state)
{
	uint8_t data[ROOM];

	for (unsigned i = 0; i < RTE_DIM(stacks); i++) {
		struct profile *p = make_stack(i, stacks[i].least, "");

		for (uint64_t k = 0; k < 0x10000; k++) {
			uint32_t length = frame_of(p, k, 0, data);

			assert_checksums(data, length);
			length = frame_of(p, 5, k + 1, data);
			assert_checksums(data, length);
		}
		profile_free(p);
	}
}

static void plain_frames_are_the_plain_ones(void **state)
{
	struct frame_template t;
	uint8_t data[ROOM], wanted[ROOM];
	struct profile *p = make("{}");

	assert_int_equal(frame_template_init(&t, &flow), 0);
	frame_fill_payload(wanted, sizeof(wanted));
	for (uint32_t k = 0; k < 1000; k++) {
		uint32_t length = frame_of(p, k, k % 2, data);

		if (k % 2)
			frame_write_probe(&t, wanted, k, k % 2);
		else
			frame_write(&t, wanted, k);
		assert_int_equal(length, t.length);
		assert_memory_equal(data, wanted, length);
	}
	profile_free(p);
}

// No checksum covers these: Ethernet addresses, a tag's number, IPv6's first word and hop limit.
static bool is_free(const struct frame_layout *at, uint32_t byte, uint32_t bit)
{
	if (byte < 12 || (at->l3 > 14 && byte >= 14 && byte < 16))
		return true;
	if (at->version == 4)
		return false;
	return (byte == at->l3 && bit < 4) || (byte > at->l3 && byte < at->l3 + 4u) || byte == at->l3 + 7u;
}

static void each_flipped_bit_is_found(void **state)
{
	struct frame_fields fields;
	struct frame_layout at;
	uint8_t data[ROOM];

	for (unsigned i = 0; i < RTE_DIM(stacks); i++)
		for (unsigned more = 0; more < 12; more += 5) {
			struct profile *p = make_stack(i, stacks[i].least + more, "");
			uint32_t length = frame_of(p, 77, more, data);

			assert_true(frame_locate(data, length, &at));
			for (uint32_t bit = 0; bit < length * 8; bit++) {
				bool counts = !is_free(&at, bit / 8, bit % 8);

				data[bit / 8] ^= (uint8_t)(1 << bit % 8);
				assert_int_equal(frame_classify(data, length, &fields),
				                 counts ? FRAME_CORRUPT : FRAME_INTACT);
				data[bit / 8] ^= (uint8_t)(1 << bit % 8);
			}
			for (uint32_t other = 60; other < length + 20; other++)
				assert_int_equal(frame_classify(data, other, &fields) == FRAME_INTACT,
				                 other == length);
			profile_free(p);
		}
}

static void tags_come_and_go(void **state)
{
	static const uint8_t tags[8] = {0x88, 0xa8, 0x20, 5, 0x81, 0, 0, 9};
	struct frame_fields fields;
	uint8_t data[ROOM], tagged[ROOM];

	for (unsigned i = 0; i < RTE_DIM(stacks); i++) {
		struct profile *p = make_stack(i, 300, "");
		uint32_t length = frame_of(p, 9, 1234, data);

		for (unsigned bytes = 4; bytes <= 8; bytes += 4) {
			memcpy(tagged, data, 12);
			memcpy(tagged + 12, tags + 8 - bytes, bytes);
			memcpy(tagged + 12 + bytes, data + 12, length - 12);
			assert_int_equal(frame_classify(tagged, length + bytes, &fields) == FRAME_INTACT,
			                 p->l3 + bytes <= 22); // two tags
			assert_int_equal(frame_is_probe(tagged, length + bytes, &fields),
			                 p->l3 + bytes <= 22);
		}
		if (p->l3 > 14) {
			memmove(data + 12, data + 16, length - 16);
			assert_int_equal(frame_classify(data, length - 4, &fields), FRAME_INTACT);
			assert_true(frame_is_probe(data, length - 4, &fields));
		}
		profile_free(p);
	}
}

static const char *file_make(const char *text)
{
	static char path[] = "/tmp/profile_test_addresses";
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	return path;
}

static void addresses_are_of_the_file(void **state)
{
	uint8_t data[ROOM];
	struct profile *p;
	char text[160];

	snprintf(text, sizeof(text), "{\"dst_ips_file\": \"%s\"}",
	         file_make("# some\n10.0.0.1\n\n10.0.0.2 # two\n10.0.0.3\n"));
	p = make(text);
	assert_int_equal(p->place_count, 3);
	for (uint64_t k = 0; k < 300; k++) {
		uint32_t length = frame_of(p, k, 0, data);

		assert_ours(data, length, k, 0);
		assert_memory_equal(data + 30, ((uint8_t[]){10, 0, 0}), 3);
		assert_in_range(data[33], 1, 3);
		profile_count(p, k, 1);
	}
	assert_true(profile_is(p, p->source, 128));
	file_make("10.0.0.1\n");
	assert_false(profile_is(p, p->source, 128));
	assert_false(profile_is(p, p->source, 64));
	profile_free(p);
	snprintf(text, sizeof(text), "{\"ip\": 6, \"dst_ips_file\": \"%s\"}",
	         file_make("2001:db8::1\n2001:db8::2\n"));
	p = make(text);
	for (uint64_t k = 0; k < 100; k++)
		assert_ours(data, frame_of(p, k, 0, data), k, 0);
	profile_free(p);
	unlink(file_make(""));
}

static void bad_profiles_are_refused(void **state)
{
	static const struct {
		const char *text, *why;
	} table[] = {
	        {"{\"sizes\": []}", "sizes: expected an array of 1 to 256 pairs"},
	        {"{\"sizes\": [[64, 1], [63, 1]]}", "sizes[1]: expected"},
	        {"{\"sizes\": [[64, 0]]}", "sizes[0]: expected"},
	        {"{\"sizes\": [[64, 1.5]]}", "sizes[0]: expected"},
	        {"{\"sizes\": [[64]]}", "sizes[0]: expected"},
	        {"{\"sizes\": [[83, 1]], \"ip\": 6}", "IPv6 and UDP take frames of at least 84"},
	        {"{\"sizes\": [[67, 1]], \"vlan\": 1}",
	         "IPv4 and UDP with a VLAN tag take frames of at least 68"},
	        {"{\"sizes\": [[3000, 1]]}", "hold at most 2052"},
	        {"{\"ip\": 5}", "ip: expected 4 or 6"},
	        {"{\"vlan\": 4095}", "vlan: 4095 is not valid"},
	        {"{\"transport\": \"sctp\"}", "transport: \"sctp\" is not valid"},
	        {"{\"flows\": {\"count\": 0}}", "flows.count: 0 is not valid"},
	        {"{\"flows\": {\"count\": 16777217}}", "flows.count: 16777217 is not valid"},
	        {"{\"flows\": {\"exponent\": 1.0}}", "is for \"draw\": \"zipf\" only"},
	        {"{\"flows\": {\"kount\": 1}}", "unknown key \"kount\""},
	        {"{\"dst_macs\": [\"02:00:00:00:00\"]}",
	         "dst_macs[0]: \"02:00:00:00:00\" is not valid: expected a MAC"},
	        {"{\"dst_macs\": [\"02:00:00:00:00:01\"], \"dst_mac_count\": 2}", "not both"},
	        {"{\"dst_mac_count\": 4097}", "dst_mac_count: 4097"},
	        {"{\"dst_ips_file\": \"/nonexistent\"}", "No such file"},
	        {"{\"dst_ips\": {\"first\": \"10.0.0.0\"}}", "count"},
	        {"{\"dst_ips\": {\"first\": \"255.255.255.255\", \"count\": 2}}", "ends behind"},
	        {"{\"dst_ips\": {\"first\": \"10.0.0.0\", \"count\": 2}, \"ip\": 6}", "is for"},
	        {"{\"dst_ips_file\": \"/dev/zero\"}", "is not a regular file"},
	        {"{\"arrival\": {\"process\": \"on_off\", \"on_ns\": 1000}}", "needs on_ns and off_ns"},
	        {"{\"arrival\": {\"process\": \"poisson\", \"on_ns\": 1000}}", "on_off\" only"},
	        {"{\"pcap\": {\"path\": \"/nonexistent\"}}", "No such file"},
	        {"{\"pcap\": {\"path\": \"x\"}, \"vlan\": 1}", "a capture has its own"},
	        {"{\"pcap\": {\"path\": \"x\", \"time_scale\": 2}}", "recorded\" only"},
	        {"{\"pcap\": {}}", "key \"path\" is missing"},
	        {"{\"seed\": -1}", "seed: -1 is not valid"},
	        {"{\"nonsense\": 1}", "unknown key \"nonsense\""},
	        {"[]", "expected an object"},
	};

	for (size_t i = 0; i < RTE_DIM(table); i++) {
		char error[256] = "";

		assert_null(try_make(table[i].text, error));
		if (!strstr(error, table[i].why) || !strstr(error, "generators[0].profile"))
			fail_msg("%s: %s", table[i].text, error);
	}
}

static void bad_lines_are_named(void **state)
{
	char text[160], error[256], comment[1100];

	snprintf(text, sizeof(text), "{\"dst_ips_file\": \"%s\"}", file_make("10.0.0.1\n\n10.0.0.256\n"));
	assert_null(try_make(text, error));
	assert_non_null(strstr(error, "addresses:3: \"10.0.0.256\" is not an IPv4 address"));
	file_make("# none\n");
	assert_null(try_make(text, error));
	assert_non_null(strstr(error, "has no address"));
	snprintf(comment, sizeof(comment), "#%300s\n10.0.0.1\nx\n", ""); // a line however long
	file_make(comment);
	assert_null(try_make(text, error));
	assert_non_null(strstr(error, "addresses:3: \"x\" is not an IPv4 address"));
	snprintf(comment, sizeof(comment), "10.0.0.1\n%1060sx\n", "");
	file_make(comment);
	assert_null(try_make(text, error));
	assert_non_null(strstr(error, "is not an IPv4 address"));
	unlink(file_make(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(each_stack_is_intact),
	        cmocka_unit_test(checksums_that_are_zero),
	        cmocka_unit_test(plain_frames_are_the_plain_ones),
	        cmocka_unit_test(each_flipped_bit_is_found),
	        cmocka_unit_test(tags_come_and_go),
	        cmocka_unit_test(addresses_are_of_the_file),
	        cmocka_unit_test(bad_profiles_are_refused),
	        cmocka_unit_test(bad_lines_are_named),
	};

	return cmocka_run_group_tests_name("profile", tests, NULL, NULL);
}
