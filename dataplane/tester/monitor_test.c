// SPDX-License-Identifier: BSD-3-Clause
// The monitor with mbufs and in place: known frames are dropped, duplicated, reordered and damaged, and
// exactly those counted.
#include "base/clock.h"
#include "base/isa.h"
#include "tester/stamps.h"
#include "tester/monitor_rig.h"

// How many values a histogram of the report holds.
static json_int_t samples(struct bench *b, const char *path)
{
	json_int_t sum = 0, n;
	char at[96];

	for (unsigned i = 0;; i++, sum += n) {
		snprintf(at, sizeof(at), "monitor.%s.counts.%u.1", path, i);
		n = number(b, at);
		if (n < 0)
			return sum;
	}
}

static void every_burst_is_counted(void **state)
{
	for (unsigned i = 0; i < fixture_burst_count; i++) {
		struct bench b = open_bench(state, 32);
		unsigned n = fixture_bursts[i];

		for (unsigned k = 0; k < n; k++)
			put(&b, make(STREAM, EPOCH, k, 0));
		assert_int_equal(b.task->ops->poll(b.task, 0), n < 32 ? n : 32);
		assert_int_equal(b.task->ops->poll(b.task, 0), n < 32 ? 0 : n - 32);
		assert_int_equal(number(&b, "monitor.bursts"), (n + 31) / 32);
		assert_int_equal(number(&b, "monitor.full_bursts"), n / 32);
		assert_int_equal(number(&b, "monitor.streams.0.forwarded_packets"), n ? (int)n : -1);
		assert_int_equal(number(&b, "monitor.streams.0.forwarded_bytes"),
		                 n ? (int)n * FRAME_SIZE : -1);
		close_bench(&b);
	}
}

static void known_faults_are_counted_exactly(void **state)
{
	static const struct {
		const char *what;
		uint32_t numbers[10]; // of the frames in order of arrival
		unsigned count;
		int unique, duplicate, reordered;
	} table[] = {
	        {"in order", {0, 1, 2, 3}, 4, 4, 0, 0},
	        {"two dropped", {0, 3, 4}, 3, 3, 0, 0},
	        {"first dropped", {1, 2}, 2, 2, 0, 0},
	        {"one duplicated", {0, 1, 1, 2}, 4, 3, 1, 0},
	        {"duplicated later", {0, 1, 2, 0}, 4, 3, 1, 0},
	        {"two swapped", {0, 2, 1, 3}, 4, 4, 0, 1},
	        {"late by three, twice", {0, 2, 3, 4, 1, 1}, 6, 5, 1, 1},
	        {"backwards", {4, 3, 2, 1, 0}, 5, 5, 0, 4},
	        {"all at once", {0, 4, 2, 2, 5, 3, 9, 9, 8, 4}, 10, 7, 3, 3},
	};

	for (size_t i = 0; i < RTE_DIM(table); i++) {
		struct bench b = open_bench(state, 0);

		for (unsigned k = 0; k < table[i].count; k++)
			put(&b, make(STREAM, EPOCH, table[i].numbers[k], 0));
		poll_all(&b);
		print_message("  %s\n", table[i].what);
		assert_int_equal(number(&b, "monitor.streams.0.stream"), STREAM);
		assert_int_equal(number(&b, "monitor.streams.0.forwarded_packets"), table[i].unique);
		assert_int_equal(number(&b, "monitor.streams.0.duplicate_packets"), table[i].duplicate);
		assert_int_equal(number(&b, "monitor.streams.0.reordered_packets"), table[i].reordered);
		close_bench(&b);
	}
}

// The time of the last poll that found nothing bounds the time at which a probe came.
static void a_stamp_has_the_last_empty_poll(void **state)
{
	struct bench b = open_bench(state, 32);
	const struct stamp *log;

	b.task->ops->poll(b.task, 5); // nobody asked
	b.task->stamps = stamps_create();
	for (uint32_t sequence = 0; sequence < 3; sequence++) {
		if (sequence == 1)
			assert_int_equal(b.task->ops->poll(b.task, 70), 0);
		put(&b, make(STREAM, EPOCH, sequence, rte_rdtsc()));
		assert_int_equal(b.task->ops->poll(b.task, 71 + sequence), 1);
	}
	log = b.task->stamps->log;
	assert_int_equal(b.task->stamps->count, 3);
	assert_int_equal(log[0].empty_tsc, 0);
	assert_int_equal(log[1].empty_tsc, 70);
	assert_int_equal(log[2].empty_tsc, 70);
	assert_true(log[1].in_tsc <= log[1].out_tsc);
	stamps_free(b.task->stamps);
	b.task->stamps = NULL;
	close_bench(&b);
}

// Every byte from the IP header on, and the EtherType before it.
static void every_damaged_byte_is_corrupt(void **state)
{
	struct bench b = open_bench(state, 0);
	unsigned damaged = 0;

	for (uint16_t at = 12; at < FRAME_SIZE - FRAME_FCS_BYTES; at++, damaged++) {
		struct sample m = make(STREAM, EPOCH, at, 0);

		m.data[at] ^= 0x10;
		put(&b, m);
		poll_all(&b);
		assert_int_equal(number(&b, "monitor.corrupt_packets"), damaged + 1);
	}
	assert_int_equal(number(&b, "monitor.foreign_packets"), 0);
	// The flipped stream field says 0x11 and the flipped magic (two bytes) leaves none to believe.
	assert_int_equal(number(&b, "monitor.streams.0.corrupt_packets"), damaged - 3);
	assert_int_equal(number(&b, "monitor.streams.0.forwarded_packets"), 0);
	close_bench(&b);
}

static void other_lengths_are_corrupt(void **state)
{
	struct bench b = open_bench(state, 0);
	struct sample m = make(STREAM, EPOCH, 0, 0);

	m.length -= 1;
	put(&b, m);
	m = make(STREAM, EPOCH, 1, 0);
	m.length -= 80; // 44 bytes: the magic, no stream
	put(&b, m);
	m = make(STREAM, EPOCH, 2, 0);
	m.data[m.length++] = 0;
	put(&b, m);
	m = make(STREAM, EPOCH, 3, 0);
	m.length += 4; // a device that leaves the FCS on
	put(&b, m);
	poll_all(&b);
	assert_int_equal(number(&b, "monitor.corrupt_packets"), 4);
	assert_int_equal(number(&b, "monitor.streams.0.corrupt_packets"), 3);
	close_bench(&b);
}

// --- A sampled trial --------------------------------------------------------------------------------------

enum { BURSTS = 10 * MONITOR_SAMPLED, BURST = 4 };

static struct bench open_sampled(void **state)
{
	struct bench b = open_secret(state, BURST, BURSTS * BURST);
	const struct trial trial = {.epoch = EPOCH, .nonce = NONCE, .offered = offered, .sampled = true};

	assert_int_equal(b.task->ops->begin(b.task, &trial), 0);
	return b;
}

// In each burst the third frame has another byte at this place, and another length.
static void put_bursts(struct bench *b, unsigned at, unsigned shorter)
{
	for (unsigned burst = 0; burst < BURSTS; burst++) {
		for (unsigned i = 0; i < BURST; i++) {
			struct sample s = make(STREAM, EPOCH, burst * BURST + i, 0);

			if (i == 2) {
				s.data[at] ^= 1;
				s.length -= shorter;
			}
			put(b, s);
		}
		poll_all(b);
	}
}

static void damage_is_found_in_one_burst_of_each_group(void **state)
{
	struct bench b = open_sampled(state);

	put_bursts(&b, FRAME_SIZE / 2, 0);
	assert_int_equal(number(&b, "monitor.received_packets"), BURSTS * BURST);
	assert_int_equal(number(&b, "monitor.corrupt_packets"), BURSTS / MONITOR_SAMPLED);
	assert_int_equal(number(&b, "monitor.streams.0.forwarded_packets"),
	                 BURSTS * BURST - BURSTS / MONITOR_SAMPLED);
	assert_int_equal(number(&b, "monitor.streams.0.unchecked_packets"),
	                 (BURSTS - BURSTS / MONITOR_SAMPLED) * BURST);
	close_secret(&b);
}

// The place of the checked burst in a group is not always the same: else each of 10 groups had it in the same slots of a ring.
static void the_checked_burst_is_drawn(void **state)
{
	uint32_t places = 0;
	json_int_t corrupt = 0;
	struct bench b = open_sampled(state);

	for (unsigned burst = 0; burst < BURSTS; burst++) {
		struct sample s = make(STREAM, EPOCH, burst, 0);

		s.data[FRAME_SIZE / 2] ^= burst != 0;
		put(&b, s);
		poll_all(&b);
		if (number(&b, "monitor.corrupt_packets") > corrupt)
			places |= UINT32_C(1) << burst % MONITOR_SAMPLED;
		corrupt = number(&b, "monitor.corrupt_packets");
	}
	assert_int_equal(corrupt, BURSTS / MONITOR_SAMPLED - 1);
	assert_true(__builtin_popcount(places) > 2);
	close_secret(&b);
}

static void another_length_is_found_in_every_burst(void **state)
{
	struct bench b = open_sampled(state);

	put_bursts(&b, FRAME_SIZE / 2, 4);
	assert_int_equal(number(&b, "monitor.corrupt_packets"), BURSTS);
	assert_int_equal(number(&b, "monitor.streams.0.forwarded_packets"), BURSTS * (BURST - 1));
	close_secret(&b);
}

static void with_a_second_stream_all_bursts_are_checked(void **state)
{
	struct bench b = open_sampled(state);

	put(&b, make(STREAM + 1, EPOCH, 0, 0));
	put_bursts(&b, FRAME_SIZE / 2, 0);
	assert_int_equal(number(&b, "monitor.corrupt_packets"), BURSTS);
	assert_int_equal(number(&b, "monitor.streams.0.unchecked_packets"), 0);
	close_secret(&b);
}

static void streams_epochs_and_strangers_are_told_apart(void **state)
{
	struct bench b = open_bench(state, 0);
	const struct sample zeros = {.length = 60}, zero = {.length = 1};

	put(&b, make(0, EPOCH, 0, 0));
	put(&b, make(7, EPOCH, 0, 0));
	put(&b, make(7, EPOCH, 1, 0));
	put(&b, make(7, EPOCH - 1, 2, 0)); // the trial before
	put(&b, make(8, EPOCH, 0, 0));     // no such stream
	put(&b, zeros);
	put(&b, zero);
	poll_all(&b);
	assert_int_equal(number(&b, "monitor.stale_packets"), 1);
	assert_int_equal(number(&b, "monitor.foreign_packets"), 3);
	assert_int_equal(number(&b, "monitor.streams.0.forwarded_packets"), 1);
	assert_int_equal(number(&b, "monitor.streams.1.stream"), 7);
	assert_int_equal(number(&b, "monitor.streams.1.forwarded_packets"), 2);
	assert_int_equal(number(&b, "monitor.streams.2.stream"), -1);
	assert_conserves(&b);
	monitor_start(b.task, EPOCH + 1, 0);
	b.task->counters.rx_packets = 0;
	assert_int_equal(number(&b, "monitor.received_packets"), 0);
	assert_int_equal(number(&b, "monitor.streams.0.stream"), -1);
	put(&b, make(7, EPOCH, 2, 0));
	put(&b, make(7, EPOCH + 1, 0, 0));
	poll_all(&b);
	assert_int_equal(number(&b, "monitor.stale_packets"), 1);
	assert_int_equal(number(&b, "monitor.streams.0.forwarded_packets"), 1);
	close_bench(&b);
}

// The clock is real, so only bounds that cannot fail: the probe was stamped in the past, or in the future.
static void probes_are_recorded_once(void **state)
{
	struct bench b = open_bench(state, 0);

	put(&b, make(STREAM, EPOCH, 0, rte_rdtsc()));
	put(&b, make(STREAM, EPOCH, 1, 0));
	put(&b, make(STREAM, EPOCH, 0, rte_rdtsc()));                     // duplicate: no latency
	put(&b, make(STREAM, EPOCH, 2, rte_rdtsc() + 1000 * clock_hz())); // impossible
	poll_all(&b);
	assert_int_equal(number(&b, "monitor.streams.0.probes_received"), 2);
	assert_int_equal(number(&b, "monitor.streams.0.latency.overflow"), 1);
	assert_int_equal(number(&b, "monitor.streams.0.latency.counts.0.1"), 1);
	assert_true(number(&b, "monitor.streams.0.latency.counts.0.0") > 0);
	assert_int_equal(number(&b, "monitor.streams.0.latency.significant_digits"), 3);
	close_bench(&b);
}

// Two probes and a plain frame, then none, then two probes of which one is reordered and one comes twice. The clock is
// real, so only how many differences there are is known.
static void jitter_of_probes_is_counted_per_pair(void **state)
{
	struct bench b = open_bench(state, 32);
	uint64_t ago = rte_rdtsc() - 1000;

	put(&b, make(STREAM, EPOCH, 0, ago));
	put(&b, make(STREAM, EPOCH, 1, 0));
	put(&b, make(STREAM, EPOCH, 8, ago));
	put(&b, make(5, EPOCH, 0, ago)); // alone in its stream
	poll_all(&b);
	put(&b, make(STREAM, EPOCH, 2, 0));
	poll_all(&b);
	put(&b, make(STREAM, EPOCH, 4, ago)); // after 8
	put(&b, make(STREAM, EPOCH, 9, ago));
	put(&b, make(STREAM, EPOCH, 9, ago));
	poll_all(&b);
	assert_int_equal(number(&b, "monitor.streams.0.probes_received"), 4);
	assert_int_equal(number(&b, "monitor.streams.0.stamped_packets"), 0);
	assert_int_equal(samples(&b, "streams.0.latency"), 4);
	assert_int_equal(samples(&b, "streams.0.ipdv"), 2); // 0-8, 8-9
	assert_int_equal(samples(&b, "streams.1.ipdv"), 0);
	assert_int_equal(number(&b, "monitor.streams.0.ipdv.overflow"), 0);
	assert_int_equal(number(&b, "monitor.streams.0.burst_rises.overflow"),
	                 -1); // a burst of one probe says nothing
	monitor_start(b.task, EPOCH, 0);
	b.task->counters.rx_packets = 0;
	put(&b, make(STREAM, EPOCH, 0, ago));
	poll_all(&b);
	assert_int_equal(samples(&b, "streams.0.latency"), 1);
	assert_int_equal(samples(&b, "streams.0.ipdv"), 0);
	close_bench(&b);
}

static uint64_t lowest_ns(struct bench *b, const char *histogram)
{
	char at[96];

	snprintf(at, sizeof(at), "monitor.streams.0.%s.counts.0.0", histogram);
	return (uint64_t)number(b, at);
}

// Bursts of frames that are all stamped, each so many milliseconds before one time: means 20, 50 and 30. The clock goes
// on between the bursts, so a rise is larger than that, and a fall smaller. Its two probes say something else.
static void all_frames_of_a_burst_make_its_mean(void **state)
{
	static const struct {
		uint64_t ms;
		uint8_t flags;
	} bursts[3][4] = {
	        {{10, FRAME_FLAG_STAMPED}, {20, FRAME_FLAGS_TIMED}, {30, FRAME_FLAG_STAMPED}},
	        {{50, FRAME_FLAG_STAMPED}},
	        {{10, FRAME_FLAG_STAMPED},
	         {50, FRAME_FLAG_STAMPED},
	         {40, FRAME_FLAG_STAMPED},
	         {20, FRAME_FLAGS_TIMED}},
	};
	struct bench b = open_bench(state, 32);
	uint64_t base = rte_rdtsc(), ms = clock_hz() / 1000;
	uint32_t sequence = 0;

	for (unsigned i = 0; i < RTE_DIM(bursts); i++) {
		for (unsigned k = 0; k < 4 && bursts[i][k].ms; k++)
			put(&b, make_timed(STREAM, EPOCH, sequence++, base - bursts[i][k].ms * ms,
			                   bursts[i][k].flags));
		poll_all(&b);
	}
	assert_int_equal(number(&b, "monitor.streams.0.forwarded_packets"), 8);
	assert_int_equal(number(&b, "monitor.streams.0.stamped_packets"), 8);
	assert_int_equal(number(&b, "monitor.streams.0.probes_received"), 2);
	assert_int_equal(samples(&b, "streams.0.latency"), 2);
	assert_int_equal(samples(&b, "streams.0.ipdv"), 1);
	assert_int_equal(samples(&b, "streams.0.burst_rises"), 1);
	assert_true(lowest_ns(&b, "burst_rises") > 29900000); // buckets of three digits
	assert_int_equal(samples(&b, "streams.0.burst_falls") + samples(&b, "streams.0.burst_rises"), 2);
	assert_true(lowest_ns(&b, "burst_falls") <= 20000000);
	monitor_start(b.task, EPOCH, 0);
	b.task->counters.rx_packets = 0;
	put(&b, make(STREAM, EPOCH, 0, 0));
	poll_all(&b);
	assert_int_equal(number(&b, "monitor.streams.0.stamped_packets"), 0);
	close_bench(&b);
}

// Many more packets than pool and rings have.
static void many_rounds_lose_nothing(void **state)
{
	struct bench b = open_bench(state, 0);
	unsigned sent = 0;

	for (unsigned rounds = 0; rounds < 5; rounds++) {
		for (unsigned n = 0; n < 255; n++, sent++)
			put(&b, make(STREAM, EPOCH, sent, 0));
		poll_all(&b);
	}
	assert_int_equal(number(&b, "monitor.streams.0.forwarded_packets"), 5 * 255);
	close_bench(&b);
}

// Frames in pieces of every size, among others: first and last of a burst, and damaged ones.
static void pieces_are_put_together(void **state)
{
	struct bench b = open_bench(state, 0);
	unsigned sent = 0, damaged = 0;

	for (unsigned run = 2; run < FRAME_SIZE; run++) {
		struct sample s = make(STREAM, EPOCH, sent++, 0);

		assert_true(wire_inject(b.w, s.data, s.length, run));
		put(&b, make(STREAM, EPOCH, sent++, 0));
		s = make(STREAM, EPOCH, sent++, run % 2 ? rte_rdtsc() : 0);
		assert_true(wire_inject(b.w, s.data, s.length, run));
		s.data[46 + run % (s.length - 46)] ^= 1; // not its stream
		assert_true(wire_inject(b.w, s.data, s.length, run));
		damaged++;
		poll_all(&b);
		assert_int_equal(number(&b, "monitor.streams.0.forwarded_packets"), sent);
		assert_int_equal(number(&b, "monitor.corrupt_packets"), damaged);
	}
	assert_int_equal(number(&b, "monitor.streams.0.reordered_packets"), 0);
	close_bench(&b);
}

// Longer than any frame of ours, in one piece and in several: whose it is can be told, and that it is not
// whole.
static void longer_than_any_is_corrupt(void **state)
{
	static uint8_t data[4000];
	struct bench b = open_bench(state, 0);
	struct sample s = make(STREAM, EPOCH, 0, 0);

	memcpy(data, s.data, s.length);
	assert_true(wire_inject(b.w, data, 2000, 0));
	assert_true(wire_inject(b.w, data, sizeof(data), 1500));
	poll_all(&b);
	assert_int_equal(number(&b, "monitor.corrupt_packets"), 2);
	assert_int_equal(number(&b, "monitor.streams.0.corrupt_packets"), 2);
	close_bench(&b);
}

// --- Frames that nobody offered ---------------------------------------------------------------------------

// As the bursts of a guest that never saw a frame: right but for the nonce, plain or as probes, in order or not.
static void frames_without_the_nonce_are_foreign(void **state)
{
	struct bench b = open_secret(state, 0, 1000);
	uint64_t now = rte_rdtsc();

	for (unsigned i = 0; i < 10; i++)
		put(&b, make(STREAM, EPOCH, i, i % 2 ? 0 : now));
	for (unsigned guess = 0; guess < 4; guess++) {
		nonce = (uint64_t[]){0, NONCE ^ 1, NONCE ^ UINT64_C(1) << 63, UINT64_MAX}[guess];
		for (unsigned i = 10; i < 20; i++)
			put(&b, make(STREAM, EPOCH, i, 0));
		put(&b, make(STREAM, EPOCH - 1, 20, 0));
	}
	nonce = NONCE ^ UINT64_C(1) << 63;
	put(&b, make(STREAM, EPOCH, 10, now));
	nonce = NONCE;
	put(&b, make(STREAM, EPOCH, 10, 0));
	poll_all(&b);
	assert_int_equal(number(&b, "monitor.foreign_packets"), 4 * 11 + 1);
	assert_int_equal(number(&b, "monitor.streams.0.forwarded_packets"), 11);
	assert_int_equal(number(&b, "monitor.streams.0.probes_received"), 5);
	assert_int_equal(number(&b, "monitor.streams.0.latency.overflow"), 0);
	assert_int_equal(number(&b, "monitor.stale_packets"), 0);
	close_secret(&b);
}

static void stamped_frames_have_the_nonce(void **state)
{
	struct bench b = open_secret(state, 0, 1000);
	uint64_t now = rte_rdtsc();

	put(&b, make_timed(STREAM, EPOCH, 0, now, FRAME_FLAG_STAMPED));
	nonce = NONCE ^ UINT64_C(1) << 63;
	put(&b, make_timed(STREAM, EPOCH, 1, now, FRAME_FLAG_STAMPED));
	nonce = NONCE;
	put(&b, make_timed(STREAM, EPOCH, 1, now, FRAME_FLAGS_TIMED));
	poll_all(&b);
	assert_int_equal(number(&b, "monitor.foreign_packets"), 1);
	assert_int_equal(number(&b, "monitor.streams.0.stamped_packets"), 2);
	assert_int_equal(number(&b, "monitor.streams.0.probes_received"), 1);
	close_secret(&b);
}

// A peer that has seen the nonce can number frames freely: what was not offered does not count, nor makes others late.
static void numbers_that_were_not_offered_are_foreign(void **state)
{
	struct bench b = open_secret(state, 0, 100);

	for (unsigned i = 0; i < 90; i++)
		put(&b, make(STREAM, EPOCH, i, 0));
	for (uint64_t jump = 100; jump < UINT64_C(1) << 31; jump *= 3)
		put(&b, make(STREAM, EPOCH, (uint32_t)jump, jump % 8 == 4 ? rte_rdtsc() : 0));
	for (unsigned i = 90; i < 164; i++) // runs past the last one that was
		put(&b, make(STREAM, EPOCH, i, 0));
	poll_all(&b);
	assert_int_equal(number(&b, "monitor.streams.0.forwarded_packets"), 100);
	assert_int_equal(number(&b, "monitor.streams.0.reordered_packets"), 0);
	assert_int_equal(number(&b, "monitor.foreign_packets"), 16 + 64);
	offered[STREAM].packets = 102;
	for (unsigned i = 100; i < 103; i++)
		put(&b, make(STREAM, EPOCH, i, 0));
	poll_all(&b);
	assert_int_equal(number(&b, "monitor.streams.0.forwarded_packets"), 102);
	for (unsigned i = 0; i < 102; i++) // again
		put(&b, make(STREAM, EPOCH, i, 0));
	put(&b, make(STREAM + 1, EPOCH, 7, 0)); // of a generator elsewhere
	poll_all(&b);
	assert_int_equal(number(&b, "monitor.streams.0.forwarded_packets"), 102);
	assert_int_equal(number(&b, "monitor.streams.0.duplicate_packets"), 102);
	assert_int_equal(number(&b, "monitor.streams.1.forwarded_packets"), 1);
	close_secret(&b);
}

// A stream of which a trial saw nothing but numbers from before its beginning counts them as duplicates, once.
static void old_numbers_are_of_one_trial(void **state)
{
	struct bench b = open_bench(state, 32);

	put(&b, make(STREAM, EPOCH, UINT32_C(1) << 31, 0));
	poll_all(&b);
	assert_int_equal(number(&b, "monitor.streams.0.duplicate_packets"), 1);
	task_clear(b.task);
	put(&b, make(STREAM, EPOCH, 0, 0));
	poll_all(&b);
	assert_int_equal(number(&b, "monitor.streams.0.duplicate_packets"), 0);
	assert_int_equal(number(&b, "monitor.streams.0.forwarded_packets"), 1);
	close_bench(&b);
}

static void truncated_frames_are_never_forwarded(void **state)
{
	struct bench b = open_secret(state, 0, 1000);
	struct sample whole = make(STREAM, EPOCH, 0, 0);

	for (unsigned length = 1; length < whole.length; length++) {
		struct sample cut = whole;

		cut.length = length;
		put(&b, cut);
		poll_all(&b);
	}
	assert_int_equal(number(&b, "monitor.received_packets"), whole.length - 1);
	assert_true(number(&b, "monitor.streams.0.forwarded_packets") <= 0);
	close_secret(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        WIRE_TEST(every_burst_is_counted),
	        WIRE_TEST(known_faults_are_counted_exactly),
	        WIRE_TEST(a_stamp_has_the_last_empty_poll),
	        WIRE_TEST(every_damaged_byte_is_corrupt),
	        WIRE_TEST(other_lengths_are_corrupt),
	        WIRE_TEST(damage_is_found_in_one_burst_of_each_group),
	        WIRE_TEST(the_checked_burst_is_drawn),
	        WIRE_TEST(another_length_is_found_in_every_burst),
	        WIRE_TEST(with_a_second_stream_all_bursts_are_checked),
	        WIRE_TEST(streams_epochs_and_strangers_are_told_apart),
	        WIRE_TEST(probes_are_recorded_once),
	        WIRE_TEST(jitter_of_probes_is_counted_per_pair),
	        WIRE_TEST(all_frames_of_a_burst_make_its_mean),
	        WIRE_TEST(stamped_frames_have_the_nonce),
	        WIRE_TEST(many_rounds_lose_nothing),
	        WIRE_TEST(pieces_are_put_together),
	        WIRE_TEST(longer_than_any_is_corrupt),
	        WIRE_TEST(frames_without_the_nonce_are_foreign),
	        WIRE_TEST(numbers_that_were_not_offered_are_foreign),
	        WIRE_TEST(old_numbers_are_of_one_trial),
	        WIRE_TEST(truncated_frames_are_never_forwarded),
	};

	if (fixture_eal_init("monitor") != 0)
		return 99; // for meson: could not be run
	return cmocka_run_group_tests_name("monitor", tests, NULL, NULL);
}
