// SPDX-License-Identifier: BSD-3-Clause
// The tester frame against DPDK's own checksum functions, and its check against every kind of damage.
#include <rte_ip.h>
#include <rte_udp.h>

#include "tester/frame.h"
#include "tester/frame_run.h"
#include "test/unit.h"

static const struct frame_flow flow = {
        .src_mac = {2, 0, 0, 0, 0, 3},
        .dst_mac = {2, 0, 0, 0, 1, 3},
        .src_ip = RTE_IPV4(198, 18, 3, 1),
        .dst_ip = RTE_IPV4(198, 19, 3, 1),
        .stream = 3,
        .epoch = 0xabcd,
};

struct sample {
	struct frame_template template;
	uint32_t length;
	uint8_t data[FRAME_SIZE_MAX + 64];
};

static void sample_make(struct sample *s, uint16_t frame_size, uint32_t sequence, uint64_t tsc)
{
	struct frame_flow f = flow;

	memset(s->data, 0xee, sizeof(s->data));
	f.frame_size_bytes = frame_size;
	assert_int_equal(frame_template_init(&s->template, &f), 0);
	frame_fill_payload(s->data, frame_size - FRAME_FCS_BYTES);
	if (tsc)
		frame_write_probe(&s->template, s->data, sequence, tsc);
	else
		frame_write(&s->template, s->data, sequence);
	s->length = s->template.length;
}

static enum frame_class sample_classify(const struct sample *s)
{
	struct frame_fields fields;

	return frame_classify(s->data, s->length, &fields);
}

static void assert_checksums(struct sample *s)
{
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(s->data + FRAME_OFFSET_IP);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(s->data + FRAME_OFFSET_UDP);
	const uint16_t checksum = udp->dgram_cksum;

	assert_int_equal(rte_be_to_cpu_16(ip->total_length), s->length - FRAME_OFFSET_IP);
	assert_int_equal(rte_raw_cksum(ip, sizeof(*ip)), 0xffff);
	assert_int_not_equal(checksum, 0);
	udp->dgram_cksum = 0;
	assert_int_equal(rte_ipv4_udptcp_cksum(ip, udp), checksum);
	udp->dgram_cksum = checksum;
	assert_int_equal(sample_classify(s), FRAME_INTACT);
}

static void checksums_agree_with_dpdk(void **state)
{
	struct sample s;

	for (uint16_t size = 64; size <= 1518; size++) {
		sample_make(&s, size, size * 2654435761u, 0);
		assert_checksums(&s);
		sample_make(&s, size, size * 2654435761u, size * UINT64_C(0x9e3779b97f4a7c15));
		assert_checksums(&s);
	}
	sample_make(&s, FRAME_SIZE_MAX, 7, 1);
	assert_checksums(&s);
}

// Over all values of a 16-bit word the sum takes every value: one of them makes the checksum 0.
static void checksum_is_never_zero(void **state)
{
	unsigned full = 0;
	struct sample s;

	sample_make(&s, 64, 0, 0);
	for (uint32_t sequence = 0; sequence < 0x10000; sequence++) {
		frame_write(&s.template, s.data, sequence);
		assert_checksums(&s);
		if (s.data[40] != 0xff || s.data[41] != 0xff)
			continue;
		full++;
		s.data[40] = s.data[41] = 0; // the same sum, but it says that nobody has checked
		assert_int_equal(sample_classify(&s), FRAME_CORRUPT);
	}
	assert_int_equal(full, 1);
}

static void layout_is_the_documents(void **state)
{
	static const uint8_t tail[18] = {0x70, 0x62, 3,    1,    0xab, 0xcd, 0x01, 0x02, 0x03,
	                                 0x04, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88};
	struct frame_fields fields;
	struct sample s;

	sample_make(&s, 64, 0x01020304, UINT64_C(0x1122334455667788));
	assert_memory_equal(s.data + 42, tail, sizeof(tail));
	assert_int_equal(s.data[36] << 8 | s.data[37], 0x7062);
	assert_int_equal(frame_classify(s.data, s.length, &fields), FRAME_INTACT);
	assert_int_equal(fields.stream, 3);
	assert_int_equal(fields.flags, FRAME_FLAG_PROBE);
	assert_int_equal(fields.epoch, 0xabcd);
	assert_int_equal(fields.sequence, 0x01020304);
	assert_int_equal(fields.stamp, UINT64_C(0x1122334455667788));
}

static void ptp_sample_make(struct sample *s, uint16_t frame_size)
{
	struct frame_flow f = flow;

	f.frame_size_bytes = frame_size;
	f.nonce = UINT64_C(0xfedcba9876543210);
	assert_int_equal(frame_template_init_ptp(&s->template, &f), 0);
	s->length = s->template.length;
	frame_fill_payload(s->data, s->length);
	frame_write_probe(&s->template, s->data, 0x01020304, UINT64_C(0x1122334455667788));
}

// What 82576 and 82599 ask of a frame that they stamp: EtherType, message type and version.
static void a_ptp_message_has_the_fields_of_a_probe(void **state)
{
	struct frame_fields fields;
	struct sample s;

	for (uint16_t size = 64; size <= 1518; size++) {
		ptp_sample_make(&s, size);
		assert_int_equal(s.data[12] << 8 | s.data[13], 0x88f7);
		assert_int_equal(s.data[14], 0);
		assert_int_equal(s.data[15], 2);
		assert_int_equal(s.data[16] << 8 | s.data[17], size - 4 - 14);
		assert_int_equal(frame_classify(s.data, s.length, &fields), FRAME_INTACT);
		assert_int_equal(fields.stream, 3);
		assert_int_equal(fields.epoch, 0xabcd);
		assert_int_equal(fields.sequence, 0x01020304);
		assert_true(frame_stamp(UINT64_C(0xfedcba9876543210), fields.stamp) ==
		            UINT64_C(0x1122334455667788));
		assert_true(frame_is_probe(s.data, s.length, &fields));
	}
}

static void every_flipped_byte_of_a_ptp_message_is_found(void **state)
{
	static const uint8_t flips[] = {0x01, 0x80, 0xff};
	struct sample s;

	for (uint16_t size = 64; size <= 66; size++) {
		ptp_sample_make(&s, size);
		for (uint32_t at = 12; at < s.length; at++)
			for (size_t k = 0; k < RTE_DIM(flips); k++) {
				s.data[at] ^= flips[k];
				assert_int_equal(sample_classify(&s), FRAME_CORRUPT);
				s.data[at] ^= flips[k];
			}
	}
}

static void a_ptp_message_of_others_is_foreign(void **state)
{
	struct sample s = {.length = 60};

	s.data[12] = 0x88;
	s.data[13] = 0xf7;
	s.data[15] = 2;
	for (s.length = 14; s.length < 64; s.length++)
		assert_int_equal(sample_classify(&s), FRAME_FOREIGN);
}

static void pattern_depends_on_the_offset_only(void **state)
{
	struct sample small, large;

	sample_make(&small, 65, 1, 0);
	sample_make(&large, 1518, 1, 0);
	assert_memory_equal(small.data + 60, large.data + 60, 1);
	sample_make(&small, 1000, 1, 0);
	assert_memory_equal(small.data + 60, large.data + 60, 996 - 60);
}

static void every_flipped_byte_is_found(void **state)
{
	static const uint16_t sizes[] = {64, 65, 67, 80, 128, 129, 1518, 9018};
	static const uint8_t flips[] = {0x01, 0x80, 0xff};
	struct sample s;

	for (size_t i = 0; i < RTE_DIM(sizes); i++) {
		sample_make(&s, sizes[i], 12345, i % 2 ? 0 : 99);
		for (uint32_t at = 12; at < s.length; at++)
			for (size_t k = 0; k < RTE_DIM(flips); k++) {
				s.data[at] ^= flips[k];
				assert_int_equal(sample_classify(&s), FRAME_CORRUPT);
				s.data[at] ^= flips[k];
			}
		assert_int_equal(sample_classify(&s), FRAME_INTACT);
	}
}

static void every_other_length_is_found(void **state)
{
	struct sample s;

	sample_make(&s, 128, 1, 0);
	for (uint16_t length = 38; length < 200; length++) {
		s.length = length;
		assert_int_equal(sample_classify(&s), length == 124 ? FRAME_INTACT : FRAME_CORRUPT);
	}
	for (uint16_t length = 0; length < 38; length++) { // neither port nor magic is there
		s.length = length;
		assert_int_equal(sample_classify(&s), FRAME_FOREIGN);
	}
	s.length = FRAME_SIZE_MAX + 1;
	assert_int_equal(sample_classify(&s), FRAME_CORRUPT);
}

static void foreign_frames_are_foreign(void **state)
{
	struct sample s;

	sample_make(&s, 128, 1, 0);
	s.data[FRAME_OFFSET_MAGIC] ^= 1;
	s.data[37] ^= 1;
	assert_int_equal(sample_classify(&s), FRAME_FOREIGN);
	memset(s.data, 0, sizeof(s.data)); // what net_null sends
	assert_int_equal(sample_classify(&s), FRAME_FOREIGN);
}

// frame_classify() and the general way say the same of a fragment whose sums are right.
static void a_fragment_is_corrupt(void **state)
{
	struct rte_ipv4_hdr *ip;
	struct sample s;

	sample_make(&s, 128, 1, 0);
	ip = (struct rte_ipv4_hdr *)(s.data + FRAME_OFFSET_IP);
	ip->fragment_offset = RTE_BE16(RTE_IPV4_HDR_MF_FLAG);
	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	assert_int_equal(sample_classify(&s), FRAME_CORRUPT);
}

// How many of this frame, three times, are foreign at first sight.
static unsigned foreign_of_three(const uint8_t *data, uint32_t length, uint64_t nonce)
{
	const struct vnf_frame one = {(uint8_t *)(uintptr_t)data, length, length}, none = {one.data, 0, 0};
	const struct vnf_frame frames[3 + FRAME_AHEAD] = {one, one, one, none, none};

	return frame_run_foreign(frames, 3, nonce);
}

// In memory of just its length: of no frame may more be read.
static unsigned foreign_with_mark_at(uint32_t length, uint32_t at)
{
	uint8_t *data = calloc(1, length ? length : 1);
	unsigned count;

	if (at + 2 <= length) {
		data[at] = FRAME_MAGIC >> 8;
		data[at + 1] = FRAME_MAGIC & 0xff;
	}
	count = foreign_of_three(data, length, 5);
	free(data);
	return count;
}

static void frames_without_marks_are_foreign_at_first_sight(void **state)
{
	for (uint32_t length = 0; length < 200; length++)
		assert_int_equal(foreign_with_mark_at(length, length), 3);
	for (uint32_t at = 36; at < 144; at += 2)
		for (uint32_t length = at + 2; length < at + 40; length++)
			assert_int_equal(foreign_with_mark_at(length, at), 0);
	assert_int_equal(foreign_with_mark_at(200, 144), 3); // no headers are so long
}

static void frames_with_another_nonce_are_foreign_at_first_sight(void **state)
{
	struct sample s;

	sample_make(&s, 128, 1, 0); // nonce 0
	assert_int_equal(foreign_of_three(s.data, s.length, 0), 0);
	assert_int_equal(foreign_of_three(s.data, s.length, UINT64_C(0xff) << 16), 0); // damage of a byte
	assert_int_equal(foreign_of_three(s.data, s.length, UINT64_C(0x1ff) << 16), 3);
	assert_int_equal(foreign_of_three(s.data, 59, UINT64_MAX), 0); // has no nonce
	s.data[FRAME_OFFSET_FLAGS] |= FRAME_FLAG_PROBE;                // its stamp is a time
	assert_int_equal(foreign_of_three(s.data, s.length, UINT64_MAX), 0);
}

static void rewritten_addresses_stay_intact(void **state)
{
	struct rte_ipv4_hdr *ip;
	struct rte_udp_hdr *udp;
	struct sample s;

	sample_make(&s, 256, 1, 0);
	ip = (struct rte_ipv4_hdr *)(s.data + FRAME_OFFSET_IP);
	udp = (struct rte_udp_hdr *)(s.data + FRAME_OFFSET_UDP);
	memset(s.data, 0x42, 12);  // l2fwd
	ip->time_to_live--;        // a router
	ip->src_addr = 0x01020304; // NAT
	udp->src_port = 0x1234;
	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	udp->dgram_cksum = 0;
	udp->dgram_cksum = rte_ipv4_udptcp_cksum(ip, udp);
	assert_int_equal(sample_classify(&s), FRAME_INTACT);
}

// All lengths of frames, random bytes among runs of ones, each at another alignment.
static void sum_agrees_with_the_plain_one(void **state)
{
	static uint8_t data[FRAME_SIZE_MAX + 64];
	uint64_t sums[2] = {0, 0}; // of even and odd places

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = i / 500 % 3 ? (uint8_t)(i * 2654435761u >> 13) : 0xff;
	for (uint32_t from = 0; from < 64; from++) {
		sums[0] = sums[1] = 0;
		for (uint32_t length = 0; length <= FRAME_SIZE_MAX; length++) {
			if (length % 7 == from % 7)
				assert_int_equal(checksum_add(data + from, length) % 0xffff,
				                 (sums[0] + (sums[1] << 8)) % 0xffff);
			sums[length % 2] += data[from + length];
		}
	}
}

static void sizes_that_do_not_exist_are_refused(void **state)
{
	struct frame_flow f = flow;
	struct frame_template t;

	f.frame_size_bytes = FRAME_SIZE_MIN - 1;
	assert_true(frame_template_init(&t, &f) < 0);
	f.frame_size_bytes = FRAME_SIZE_MAX + 1;
	assert_true(frame_template_init(&t, &f) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(checksums_agree_with_dpdk),
	        cmocka_unit_test(checksum_is_never_zero),
	        cmocka_unit_test(layout_is_the_documents),
	        cmocka_unit_test(a_ptp_message_has_the_fields_of_a_probe),
	        cmocka_unit_test(every_flipped_byte_of_a_ptp_message_is_found),
	        cmocka_unit_test(a_ptp_message_of_others_is_foreign),
	        cmocka_unit_test(pattern_depends_on_the_offset_only),
	        cmocka_unit_test(every_flipped_byte_is_found),
	        cmocka_unit_test(every_other_length_is_found),
	        cmocka_unit_test(foreign_frames_are_foreign),
	        cmocka_unit_test(a_fragment_is_corrupt),
	        cmocka_unit_test(frames_without_marks_are_foreign_at_first_sight),
	        cmocka_unit_test(frames_with_another_nonce_are_foreign_at_first_sight),
	        cmocka_unit_test(rewritten_addresses_stay_intact),
	        cmocka_unit_test(sum_agrees_with_the_plain_one),
	        cmocka_unit_test(sizes_that_do_not_exist_are_refused),
	};

	return cmocka_run_group_tests_name("frame", tests, NULL, NULL);
}
