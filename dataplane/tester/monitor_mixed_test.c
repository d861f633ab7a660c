// SPDX-License-Identifier: BSD-3-Clause
// The monitor with streams whose frames are not alike: other addresses and lengths from frame to frame, or a time stamp
// in each; or that have other headers than plain ones. They are counted by the run, and what is wrong with one of them
// is found as in any other.
#include "tester/monitor_rig.h"
#include "tester/profile.h"

enum {
	KNOWN = 128, // frames after which the monitor has given up to learn what they look like
	BURST = 32,
};

static const uint16_t sizes[] = {64, 65, 100, FRAME_SIZE};

// Frame number k of a stream whose frames differ. flags: 0, or FRAME_FLAGS_TIMED.
static struct sample mixed(uint32_t k, uint8_t flags, uint64_t tsc)
{
	const struct frame_flow flow = {.src_ip = k * 2654435761u,
	                                .dst_ip = ~k,
	                                .stream = STREAM,
	                                .epoch = EPOCH,
	                                .frame_size_bytes = sizes[k % RTE_DIM(sizes)],
	                                .nonce = nonce};
	struct sample s = {.length = flow.frame_size_bytes - FRAME_FCS_BYTES};
	struct frame_template t;

	assert_int_equal(frame_template_init(&t, &flow), 0);
	frame_fill_payload(s.data, sizeof(s.data));
	if (flags)
		frame_write_timed(&t, s.data, k, tsc, flags);
	else
		frame_write(&t, s.data, k);
	return s;
}

static const char *const headers[] = {
        "{\"ip\": 6}",
        "{\"transport\": \"tcp\"}",
        "{\"vlan\": 5}",
        "{\"ip\": 6, \"transport\": \"tcp\", \"vlan\": 7, \"flows\": {\"count\": 1000, \"draw\": \"uniform\"}}",
};

static struct profile *profile_open(const char *text)
{
	const struct frame_flow flow = {
	        .stream = STREAM, .epoch = EPOCH, .frame_size_bytes = FRAME_SIZE, .nonce = nonce};
	json_t *source = json_loads(text, 0, NULL);
	char error[CONFIG_ERROR_MAX] = "";
	struct profile *p = profile_make(source, &flow, sizeof((struct sample){0}.data), "here", error);

	json_decref(source);
	if (!p)
		fail_msg("%s: %s", text, error);
	profile_begin(p, &flow);
	return p;
}

// Frame number k. flags: 0, or FRAME_FLAGS_TIMED.
static struct sample drawn(struct profile *p, uint32_t k, uint8_t flags, uint64_t tsc)
{
	struct sample s;
	uint8_t *data = s.data;

	frame_fill_payload(s.data, sizeof(s.data));
	profile_draw(p, k, 1);
	profile_write(p, &data, k, 1);
	if (flags)
		profile_stamp(p, data, k, tsc, flags);
	s.length = profile_drawn(p, k)->length;
	return s;
}

// Frame number k, of a profile or mixed.
static struct sample sample_of(struct profile *p, uint32_t k)
{
	return p ? drawn(p, k, 0, 0) : mixed(k, 0, 0);
}

// Frames from to end - 1, in bursts.
static void put_all(struct bench *b, struct profile *p, uint32_t from, uint32_t end)
{
	for (uint32_t k = from; k < end; k++) {
		put(b, sample_of(p, k));
		if (k % BURST == BURST - 1)
			poll_all(b);
	}
	poll_all(b);
}

// Numbers KNOWN to KNOWN + 8 in a burst: two swapped, twice one again, one lost.
static void put_faults(struct bench *b, struct profile *p)
{
	static const uint32_t order[] = {0, 1, 3, 2, 4, 4, 6, 7, 8, 1};

	for (unsigned i = 0; i < RTE_DIM(order); i++)
		put(b, sample_of(p, KNOWN + order[i]));
	poll_all(b);
}

static json_int_t forwarded(struct bench *b)
{
	return number(b, "monitor.streams.0.forwarded_packets");
}

static void faults_among_mixed_frames_are_counted_exactly(void **state)
{
	struct bench b = open_secret(state, BURST, 1000);
	char path[64];

	put_all(&b, NULL, 0, KNOWN);
	put_faults(&b, NULL);
	put_all(&b, NULL, KNOWN + 9, 1000);
	assert_int_equal(forwarded(&b), 999);
	assert_int_equal(number(&b, "monitor.streams.0.duplicate_packets"), 2);
	assert_int_equal(number(&b, "monitor.streams.0.reordered_packets"), 1);
	assert_int_equal(number(&b, "monitor.streams.0.forwarded_bytes"),
	                 250 * (64 + 65 + 100 + FRAME_SIZE) - sizes[(KNOWN + 5) % RTE_DIM(sizes)]);
	for (unsigned i = 0; i < RTE_DIM(sizes); i++) {
		snprintf(path, sizeof(path), "monitor.streams.0.sizes.%u.1", i);
		assert_int_equal(number(&b, path), 250 - (i == (KNOWN + 5) % RTE_DIM(sizes)));
	}
	close_secret(&b);
}

// In the middle of a burst, whose other frames count. Every byte from the EtherType on.
static void every_damaged_byte_of_a_mixed_frame_is_found(void **state)
{
	struct bench b = open_secret(state, BURST, 10000);
	uint32_t next = KNOWN, lost = 0;

	put_all(&b, NULL, 0, KNOWN);
	for (uint16_t at = 12; at < FRAME_SIZE - FRAME_FCS_BYTES; at++)
		for (unsigned i = 0; i < 5; i++, next++) {
			struct sample s = mixed(next, 0, 0);

			if (i == 2 && at < s.length) {
				s.data[at] ^= 0x10;
				lost++;
			}
			put(&b, s);
			if (i == 4)
				poll_all(&b);
		}
	assert_true(lost > FRAME_SIZE / 2);
	assert_int_equal(forwarded(&b), next - lost);
	assert_int_equal(number(&b, "monitor.corrupt_packets") + number(&b, "monitor.foreign_packets"), lost);
	assert_int_equal(number(&b, "monitor.streams.0.reordered_packets"), 0);
	close_secret(&b);
}

static void mixed_frames_without_the_nonce_are_foreign(void **state)
{
	struct bench b = open_secret(state, BURST, 1000);

	put_all(&b, NULL, 0, KNOWN);
	for (unsigned guess = 0; guess < 3; guess++) {
		nonce = (uint64_t[]){0, NONCE ^ UINT64_C(1) << 63, UINT64_MAX}[guess];
		for (uint32_t k = KNOWN; k < KNOWN + 7; k++)
			put(&b, mixed(k, 0, 0));
	}
	nonce = NONCE;
	put_all(&b, NULL, KNOWN, 1000);
	assert_int_equal(number(&b, "monitor.foreign_packets"), 3 * 7);
	assert_int_equal(forwarded(&b), 1000);
	close_secret(&b);
}

static void mixed_frames_that_were_not_offered_are_foreign(void **state)
{
	struct bench b = open_secret(state, BURST, 500);

	put_all(&b, NULL, 0, 480);
	for (uint32_t k = 480; k < 480 + BURST; k++) // past the last one that was
		put(&b, mixed(k, 0, 0));
	poll_all(&b);
	assert_int_equal(forwarded(&b), 500);
	assert_int_equal(number(&b, "monitor.foreign_packets"), 12);
	offered[STREAM].packets = 501;
	put_all(&b, NULL, 500, 501);
	assert_int_equal(forwarded(&b), 501);
	close_secret(&b);
}

// Each of a load that stamps all, a probe among them, and one with another nonce.
static void stamped_frames_that_differ_are_recorded(void **state)
{
	struct bench b = open_secret(state, BURST, 1000);
	uint64_t now = rte_rdtsc();

	for (uint32_t k = 0; k < 40; k++)
		put(&b, mixed(k, k == 11 ? FRAME_FLAGS_TIMED : FRAME_FLAG_STAMPED, now));
	nonce = NONCE ^ UINT64_C(1) << 63;
	put(&b, mixed(40, FRAME_FLAG_STAMPED, now));
	nonce = NONCE;
	put(&b, mixed(40, FRAME_FLAG_STAMPED, now));
	poll_all(&b);
	assert_int_equal(forwarded(&b), 41);
	assert_int_equal(number(&b, "monitor.streams.0.stamped_packets"), 41);
	assert_int_equal(number(&b, "monitor.streams.0.probes_received"), 1);
	assert_int_equal(number(&b, "monitor.foreign_packets"), 1);
	close_secret(&b);
}

// --- Other headers ----------------------------------------------------------------------------------------

static void faults_among_other_headers_are_counted_exactly(void **state)
{
	for (size_t i = 0; i < RTE_DIM(headers); i++) {
		struct bench b = open_secret(state, BURST, 1000);
		struct profile *p = profile_open(headers[i]);

		put_all(&b, p, 0, KNOWN);
		put_faults(&b, p);
		put_all(&b, p, KNOWN + 9, 1010); // the last ten were not offered
		assert_int_equal(forwarded(&b), 999);
		assert_int_equal(number(&b, "monitor.streams.0.duplicate_packets"), 2);
		assert_int_equal(number(&b, "monitor.streams.0.reordered_packets"), 1);
		assert_int_equal(number(&b, "monitor.streams.0.forwarded_bytes"), 999 * FRAME_SIZE);
		assert_int_equal(number(&b, "monitor.foreign_packets"), 10);
		profile_free(p);
		close_secret(&b);
	}
}

// In the middle of a burst. No checksum covers a tag, nor class, label and hop limit of IPv6: there, the frame is intact.
static void a_damaged_byte_behind_other_headers_is_found(void **state)
{
	for (size_t i = 0; i < RTE_DIM(headers); i++) {
		struct bench b = open_secret(state, BURST, 10000);
		struct profile *p = profile_open(headers[i]);
		uint32_t next = KNOWN, lost = 0;
		struct frame_fields fields;

		put_all(&b, p, 0, KNOWN);
		for (uint16_t at = 12; at < FRAME_SIZE - FRAME_FCS_BYTES; at++)
			for (unsigned k = 0; k < 5; k++, next++) {
				struct sample s = drawn(p, next, 0, 0);

				if (k == 2) {
					s.data[at] ^= 0x10;
					lost += frame_classify(s.data, s.length, &fields) != FRAME_INTACT;
				}
				put(&b, s);
				if (k == 4)
					poll_all(&b);
			}
		assert_in_range(lost, FRAME_SIZE - FRAME_FCS_BYTES - 12 - 7, FRAME_SIZE);
		assert_int_equal(forwarded(&b), next - lost);
		assert_int_equal(
		        number(&b, "monitor.corrupt_packets") + number(&b, "monitor.foreign_packets"), lost);
		assert_int_equal(number(&b, "monitor.streams.0.reordered_packets"), 0);
		profile_free(p);
		close_secret(&b);
	}
}

static void stamps_and_nonces_behind_other_headers_are_read(void **state)
{
	for (size_t i = 0; i < RTE_DIM(headers); i++) {
		struct bench b = open_secret(state, BURST, 1000);
		struct profile *p = profile_open(headers[i]), *forged;
		uint64_t now = rte_rdtsc();

		nonce = NONCE ^ UINT64_C(1) << 63;
		forged = profile_open(headers[i]);
		nonce = NONCE;
		for (uint32_t k = 0; k < 40; k++)
			put(&b, drawn(p, k, k == 11 ? FRAME_FLAGS_TIMED : FRAME_FLAG_STAMPED, now));
		put(&b, drawn(forged, 40, FRAME_FLAG_STAMPED, now));
		put(&b, drawn(forged, 40, 0, 0));
		put(&b, drawn(p, 40, FRAME_FLAG_STAMPED, now));
		poll_all(&b);
		assert_int_equal(forwarded(&b), 41);
		assert_int_equal(number(&b, "monitor.streams.0.stamped_packets"), 41);
		assert_int_equal(number(&b, "monitor.streams.0.probes_received"), 1);
		assert_int_equal(number(&b, "monitor.foreign_packets"), 2);
		profile_free(forged);
		profile_free(p);
		close_secret(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        WIRE_TEST(faults_among_mixed_frames_are_counted_exactly),
	        WIRE_TEST(every_damaged_byte_of_a_mixed_frame_is_found),
	        WIRE_TEST(mixed_frames_without_the_nonce_are_foreign),
	        WIRE_TEST(mixed_frames_that_were_not_offered_are_foreign),
	        WIRE_TEST(stamped_frames_that_differ_are_recorded),
	        WIRE_TEST(faults_among_other_headers_are_counted_exactly),
	        WIRE_TEST(a_damaged_byte_behind_other_headers_is_found),
	        WIRE_TEST(stamps_and_nonces_behind_other_headers_are_read),
	};

	if (fixture_eal_init("monitor_mixed") != 0)
		return 99; // for meson: could not be run
	return cmocka_run_group_tests_name("monitor_mixed", tests, NULL, NULL);
}
