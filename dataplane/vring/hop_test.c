// SPDX-License-Identifier: BSD-3-Clause
// Frames from one guest to another, in plain memory: every byte, every drop, each layout of buffers.
#include "guest.h"
#include "hop.h"
#include "each_isa.h"

#include <rte_common.h>
#include <sys/mman.h>

static const uint16_t bursts[] = {0, 1, 3, 4, 5, 31, 32, 33, 64};

enum {
	VERSION_1 = VIRTIO_F_VERSION_1,
	MERGE = VIRTIO_NET_F_MRG_RXBUF,
	PACKED = VIRTIO_F_RING_PACKED,
	IN_ORDER = VIRTIO_F_IN_ORDER,
};
#define BIT(n)       (1ULL << (n))
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const uint64_t layouts[] = {
        0,
        BIT(MERGE),
        BIT(VERSION_1),
        BIT(VERSION_1) | BIT(MERGE),
        BIT(VERSION_1) | BIT(PACKED),
        BIT(VERSION_1) | BIT(PACKED) | BIT(MERGE),
        BIT(VERSION_1) | BIT(MERGE) | BIT(IN_ORDER),
        BIT(VERSION_1) | BIT(PACKED) | BIT(MERGE) | BIT(IN_ORDER),
};

struct pair {
	struct guest a, b;
	uint32_t sent, came; // frames numbered
};

static void pair_open(struct pair *p, uint64_t a, uint64_t b, uint16_t size)
{
	*p = (struct pair){0};
	guest_open(&p->a, a, size, false);
	guest_open(&p->b, b, size, true);
}

static void pair_close(struct pair *p)
{
	guest_close(&p->a);
	guest_close(&p->b);
}

static uint8_t byte_of(uint32_t number, uint32_t offset)
{
	return (uint8_t)(number * 31 + offset * 7 + (offset >> 8));
}

// Frame number p->sent, behind a header full of lies that nobody must believe. shape: 0 one range, 1 header
// and frame apart, 2 pieces of 100 bytes, 3 these in a table.
static bool offer_frame(struct pair *p, uint32_t length, unsigned shape)
{
	struct driver *d = &p->a.transmit;
	unsigned header = d->ring.header_bytes, bytes = header + length, count = 0;
	uint64_t at = driver_buffer(d, driver_next_id(d));
	struct guest_range ranges[GUEST_TABLE_ENTRIES];
	uint8_t *data = guest_at(&p->a, at);

	memset(data, 0xff, header);
	for (uint32_t i = 0; i < length; i++)
		data[header + i] = byte_of(p->sent, i);
	for (unsigned done = 0; done < bytes;) {
		unsigned run = shape == 0                ? bytes
		               : shape == 1 && done == 0 ? header
		               : shape == 1              ? bytes
		                                         : 100;

		run = RTE_MIN(run, bytes - done);
		ranges[count++] = (struct guest_range){at + done, run};
		done += run;
	}
	if (driver_offer(d, ranges, count, shape == 3) < 0)
		return false;
	p->sent++;
	return true;
}

static uint16_t number_of_buffers(const struct driver *d, const uint8_t *header)
{
	uint16_t count = 1;

	for (unsigned i = 0; i < RING_HEADER_LEGACY; i++)
		assert_int_equal(header[i], 0);
	if (d->ring.header_bytes == RING_HEADER)
		memcpy(&count, header + RING_HEADER_LEGACY, sizeof(count));
	return count;
}

// Collect a frame at B and see that it is number p->came, with length bytes.
static void collect_frame(struct pair *p, uint32_t length, unsigned buffers)
{
	struct driver *d = &p->b.receive;
	uint32_t written, offset = 0;

	for (unsigned i = 0; i < buffers; i++) {
		int id = driver_collect(d, &written);
		const uint8_t *data;

		assert_true(id >= 0);
		data = guest_at(&p->b, driver_buffer(d, (unsigned)id));
		if (i == 0) {
			assert_int_equal(number_of_buffers(d, data), buffers);
			data += d->ring.header_bytes;
			written -= d->ring.header_bytes;
		}
		for (uint32_t k = 0; k < written; k++, offset++)
			if (data[k] != byte_of(p->came, offset))
				fail_msg("frame %u: byte %u of %u is wrong", p->came, offset, length);
	}
	assert_int_equal(offset, length);
	p->came++;
}

static unsigned collect_sent(struct pair *p)
{
	uint32_t written;
	unsigned n = 0;

	for (; driver_collect(&p->a.transmit, &written) >= 0; n++)
		assert_int_equal(written, 0);
	return n;
}

static void every_burst_between_all_layouts(void **state)
{
	for (unsigned la = 0; la < COUNT(layouts); la++)
		for (unsigned lb = 0; lb < COUNT(layouts); lb++) {
			struct pair p;

			pair_open(&p, layouts[la], layouts[lb], 256);
			for (unsigned i = 0; i < 60; i++) {
				unsigned n = bursts[i % COUNT(bursts)], length = 1 + (i * 97) % 1600;
				struct hop_counts done;

				for (unsigned k = 0; k < n; k++)
					assert_true(offer_frame(&p, length, 0));
				assert_int_equal(driver_offer_own(&p.b.receive, n, 2048), n);
				done = hop(&p.a.transmit.ring, &p.b.receive.ring, RING_BATCH_MAX);
				assert_int_equal(done.received, n);
				assert_int_equal(done.forwarded, n);
				assert_true(done.lost.bad + done.lost.oversize + done.too_long == 0);
				assert_int_equal(collect_sent(&p), n);
				for (unsigned k = 0; k < n; k++)
					collect_frame(&p, length, 1);
			}
			pair_close(&p);
		}
}

static void frames_in_pieces_arrive_whole(void **state)
{
	for (unsigned l = 0; l < COUNT(layouts); l++)
		for (unsigned shape = 0; shape < 4; shape++) {
			struct pair p;

			pair_open(&p, layouts[l], layouts[l], 64);
			for (unsigned length = 1; length < 1600; length += 53) {
				assert_true(offer_frame(&p, length, shape));
				assert_int_equal(driver_offer_own(&p.b.receive, 1, 1612), 1);
				assert_int_equal(hop(&p.a.transmit.ring, &p.b.receive.ring, 32).forwarded, 1);
				assert_int_equal(collect_sent(&p), 1);
				collect_frame(&p, length, 1);
			}
			pair_close(&p);
		}
}

// Receive buffers of 100 bytes: a frame takes as many as it needs, and the header says how many.
static void a_frame_takes_several_buffers(void **state)
{
	for (unsigned l = 0; l < COUNT(layouts); l++) {
		struct pair p;

		if (!(layouts[l] & BIT(MERGE)))
			continue;
		pair_open(&p, layouts[l], layouts[l], 256);
		for (unsigned round = 0; round < 50; round++) {
			unsigned lengths[] = {88, 89, 60, 1488, 1, 187, 188, 189};
			struct hop_counts done;

			for (unsigned i = 0; i < COUNT(lengths); i++)
				assert_true(offer_frame(&p, lengths[i], i % 4));
			driver_offer_own(&p.b.receive, 40, 100);
			done = hop(&p.a.transmit.ring, &p.b.receive.ring, 32);
			assert_int_equal(done.forwarded, COUNT(lengths));
			for (unsigned i = 0; i < COUNT(lengths); i++)
				collect_frame(&p, lengths[i], (12 + lengths[i] + 99) / 100);
			collect_sent(&p);
			for (struct ring_batch batch; ring_peek(&p.b.receive.ring, &batch, 64);) {
				uint32_t written; // give back what is left, for the next round

				for (unsigned i = 0; i < batch.count; i++)
					batch.buffers[i].written = 0;
				ring_commit(&p.b.receive.ring, &batch, batch.count);
				while (driver_collect(&p.b.receive, &written) >= 0)
					;
			}
		}
		pair_close(&p);
	}
}

// 20 frames, 12 buffers: 8 are dropped, none stays in A's ring.
static void what_does_not_fit_is_dropped(void **state)
{
	for (unsigned l = 0; l < COUNT(layouts); l++) {
		struct hop_counts done;
		struct pair p;

		pair_open(&p, layouts[l], layouts[l], 64);
		for (unsigned i = 0; i < 20; i++)
			assert_true(offer_frame(&p, 60, 0));
		driver_offer_own(&p.b.receive, 12, 2048);
		done = hop(&p.a.transmit.ring, &p.b.receive.ring, 32);
		assert_int_equal(done.received, 20);
		assert_int_equal(done.forwarded, 12);
		assert_int_equal(collect_sent(&p), 20);
		for (unsigned i = 0; i < 12; i++)
			collect_frame(&p, 60, 1);
		assert_int_equal(driver_collect(&p.b.receive, &(uint32_t){0}), -1);
		pair_close(&p);
	}
}

static void without_a_receiver_all_is_dropped(void **state)
{
	struct hop_counts done;
	struct pair p;

	pair_open(&p, layouts[3], layouts[3], 64);
	for (unsigned i = 0; i < 5; i++)
		assert_true(offer_frame(&p, 60, 0));
	done = hop(&p.a.transmit.ring, NULL, 32);
	assert_int_equal(done.received, 5);
	assert_int_equal(done.forwarded, 0);
	assert_int_equal(collect_sent(&p), 5);
	pair_close(&p);
}

// One that can never fit is lost; the one behind it is not.
static void a_frame_too_long_for_any_buffer_blocks_nothing(void **state)
{
	for (unsigned l = 0; l < COUNT(layouts); l++) {
		struct hop_counts done;
		struct pair p;

		pair_open(&p, layouts[l], layouts[l], 16);
		assert_true(offer_frame(&p, 1500, 0));
		assert_true(offer_frame(&p, 20, 0));
		driver_offer_own(&p.b.receive, 16, 80); // 16 * 80 < 1512
		done = hop(&p.a.transmit.ring, &p.b.receive.ring, 32);
		assert_int_equal(done.received, 2);
		assert_int_equal(done.forwarded, 2);
		assert_int_equal(done.too_long, 1);
		p.came = 1;
		collect_frame(&p, 20, 1);
		pair_close(&p);
	}
}

// Nothing behind the header, or more than a frame can be: freed and counted, not passed on.
static void buffers_without_a_frame_are_counted(void **state)
{
	for (unsigned l = 0; l < COUNT(layouts); l++) {
		struct guest_range many[GUEST_TABLE_ENTRIES];
		struct hop_counts done;
		struct driver *d;
		struct pair p;

		pair_open(&p, layouts[l], layouts[l], 64);
		d = &p.a.transmit;
		driver_offer_own(d, 1, d->ring.header_bytes);
		driver_offer_own(d, 1, 1);
		for (unsigned i = 0; i < 20; i++)
			many[i] = (struct guest_range){driver_buffer(d, 20), GUEST_BUFFER_BYTES};
		assert_true(driver_offer(d, many, 20, true) >= 0);
		assert_true(offer_frame(&p, 60, 0));
		driver_offer_own(&p.b.receive, 64, 2048);
		done = hop(&p.a.transmit.ring, &p.b.receive.ring, 32);
		assert_int_equal(done.lost.bad, 2);
		assert_int_equal(done.lost.oversize, 1);
		assert_int_equal(done.received, 1);
		assert_int_equal(done.forwarded, 1);
		assert_int_equal(collect_sent(&p), 4);
		collect_frame(&p, 60, 1);
		pair_close(&p);
	}
}

// A lies and stops; what it sent before arrives. B lies and stops; A's frames are dropped.
static void a_liar_harms_itself_only(void **state)
{
	struct hop_counts done;
	struct pair p;

	pair_open(&p, layouts[2], layouts[2], 64);
	assert_true(offer_frame(&p, 60, 0) && offer_frame(&p, 60, 0));
	p.a.transmit.ring.desc[1].addr = 0;
	driver_offer_own(&p.b.receive, 2, 2048);
	assert_int_equal(hop(&p.a.transmit.ring, &p.b.receive.ring, 32).forwarded, 1);
	assert_int_equal(hop(&p.a.transmit.ring, &p.b.receive.ring, 32).received, 0);
	assert_int_equal(p.a.transmit.ring.fault, RING_BAD_ADDRESS);
	assert_int_equal(p.b.receive.ring.fault, RING_OK);
	pair_close(&p);

	pair_open(&p, layouts[2], layouts[2], 64);
	assert_true(offer_frame(&p, 60, 0));
	p.b.receive.ring.avail->idx = 65;
	done = hop(&p.a.transmit.ring, &p.b.receive.ring, 32);
	assert_true(done.received == 1 && done.forwarded == 0);
	assert_int_equal(p.b.receive.ring.fault, RING_BAD_INDEX);
	assert_int_equal(p.a.transmit.ring.fault, RING_OK);
	pair_close(&p);
}

// A region of one page before one that must not be touched.
struct guarded {
	uint8_t *bytes;
	uint64_t address;
};

enum { PAGE = 4096, GUARDED_ADDRESS = 0x10000000 };

static void guarded_open(struct guarded *g, struct guest *guest)
{
	g->bytes = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(g->bytes != MAP_FAILED);
	assert_int_equal(mprotect(g->bytes + PAGE, PAGE, PROT_NONE), 0);
	g->address = GUARDED_ADDRESS;
	assert_int_equal(guest_memory_add(&guest->memory, g->address, PAGE, g->bytes), 0);
}

// Both pieces end where the memory ends, and the receiver's is of the frame's exact size: nothing before it
// or behind it is touched, of any length.
static void copies_keep_to_their_bytes(void **state)
{
	struct guarded from, to;
	struct pair p;

	pair_open(&p, layouts[3], layouts[3], 64);
	guarded_open(&from, &p.a);
	guarded_open(&to, &p.b);
	for (uint32_t length = 1; length < 1600; length += length < 300 ? 1 : 61) {
		uint32_t bytes = RING_HEADER + length, written;
		const uint8_t *frame = to.bytes + PAGE - length;

		for (uint32_t i = 0; i < length; i++)
			from.bytes[PAGE - length + i] = byte_of(length, i);
		memset(to.bytes, 0xee, PAGE);
		driver_offer(&p.a.transmit, &(struct guest_range){from.address + PAGE - bytes, bytes}, 1,
		             false);
		driver_offer(&p.b.receive, &(struct guest_range){to.address + PAGE - bytes, bytes}, 1, false);
		assert_int_equal(hop(&p.a.transmit.ring, &p.b.receive.ring, 32).forwarded, 1);
		assert_true(driver_collect(&p.b.receive, &written) >= 0 && written == bytes);
		assert_true(driver_collect(&p.a.transmit, &written) >= 0 && written == 0);
		assert_int_equal(to.bytes[PAGE - bytes - 1], 0xee);
		for (uint32_t i = 0; i < length; i++)
			assert_int_equal(frame[i], byte_of(length, i));
	}
	munmap(from.bytes, 2 * PAGE);
	munmap(to.bytes, 2 * PAGE);
	pair_close(&p);
}

// A buffer of several pieces between plain ones, at each place of a burst: order is kept, nothing is lost.
static void odd_ones_among_plain_ones(void **state)
{
	for (unsigned l = 0; l < COUNT(layouts); l++)
		for (unsigned odd = 0; odd < 9; odd++) {
			struct pair p;

			pair_open(&p, layouts[l], layouts[l], 64);
			for (unsigned i = 0; i < 9; i++)
				assert_true(offer_frame(&p, 60, i == odd ? 1 : 0));
			assert_int_equal(driver_offer_own(&p.b.receive, 9, 2048), 9);
			assert_int_equal(hop(&p.a.transmit.ring, &p.b.receive.ring, 32).forwarded, 9);
			assert_int_equal(collect_sent(&p), 9);
			for (unsigned i = 0; i < 9; i++)
				collect_frame(&p, 60, 1);
			pair_close(&p);
		}
}

// With VIRTIO_F_IN_ORDER one used entry is for all that were taken of the sender, none for more.
static void one_entry_returns_a_batch(void **state)
{
	for (unsigned l = COUNT(layouts) - 2; l < COUNT(layouts); l++) {
		const struct ring *ring;
		uint32_t written;
		struct pair p;

		pair_open(&p, layouts[l], layouts[l], 64);
		ring = &p.a.transmit.ring;
		for (unsigned i = 0; i < 40; i++)
			assert_true(offer_frame(&p, 60, 0));
		assert_int_equal(driver_offer_own(&p.b.receive, 40, 2048), 40);
		assert_int_equal(hop(&p.a.transmit.ring, &p.b.receive.ring, 32).forwarded, 32);
		if (ring->packed)
			assert_int_equal(ring->desc_packed[0].id, 31);
		else
			assert_int_equal(ring->used->ring[0].id, 31);
		for (unsigned i = 0; i < 32; i++)
			assert_int_equal(driver_collect(&p.a.transmit, &written), i);
		assert_int_equal(driver_collect(&p.a.transmit, &written), -1);
		for (unsigned i = 0; i < 32; i++)
			collect_frame(&p, 60, 1);
		pair_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(every_burst_between_all_layouts),
	        cmocka_unit_test(frames_in_pieces_arrive_whole),
	        cmocka_unit_test(a_frame_takes_several_buffers),
	        cmocka_unit_test(what_does_not_fit_is_dropped),
	        cmocka_unit_test(without_a_receiver_all_is_dropped),
	        cmocka_unit_test(a_frame_too_long_for_any_buffer_blocks_nothing),
	        cmocka_unit_test(buffers_without_a_frame_are_counted),
	        cmocka_unit_test(copies_keep_to_their_bytes),
	        cmocka_unit_test(odd_ones_among_plain_ones),
	        cmocka_unit_test(one_entry_returns_a_batch),
	        cmocka_unit_test(a_liar_harms_itself_only),
	};

	return RUN_FOR_EACH_ISA("hop", tests);
}
