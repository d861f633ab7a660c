// SPDX-License-Identifier: BSD-3-Clause
// Each way to lie in a ring stops it with its own fault, for good, and harms nothing else. The lie is told in
// descriptor 1, behind an honest buffer in descriptor 0.
#include "virtio/device_frames.h"
#include "test/guest.h"
#include "test/each_isa.h"

static const uint64_t kinds[] = {1ULL << VIRTIO_F_VERSION_1,
                                 1ULL << VIRTIO_F_VERSION_1 | 1ULL << VIRTIO_F_RING_PACKED};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void set16(uint8_t *at, uint16_t value)
{
	memcpy(at, &value, sizeof(value));
}

static void set32(uint8_t *at, uint32_t value)
{
	memcpy(at, &value, sizeof(value));
}

static void set64(uint8_t *at, uint64_t value)
{
	memcpy(at, &value, sizeof(value));
}

// Flags of a descriptor: split at 12, packed at 14.
static void add_flags(struct driver *d, unsigned slot, uint16_t flags)
{
	uint8_t *at = driver_descriptor(d, slot) + (d->ring.packed ? 14 : 12);
	uint16_t old;

	memcpy(&old, at, sizeof(old));
	set16(at, old ^ flags);
}

static void lie_address(struct driver *d)
{
	set64(driver_descriptor(d, 1), GUEST_ADDRESS - 1);
}

static void lie_address_of_the_host(struct driver *d)
{
	set64(driver_descriptor(d, 1), (uint64_t)(uintptr_t)d);
}

static void lie_address_end(struct driver *d)
{
	set64(driver_descriptor(d, 1), GUEST_ADDRESS + d->guest->size - 99);
}

static void lie_address_wraps(struct driver *d)
{
	set64(driver_descriptor(d, 1), UINT64_MAX - 10);
}

static void lie_length(struct driver *d)
{
	set32(driver_descriptor(d, 1) + 8, UINT32_MAX);
}

static void lie_no_length(struct driver *d)
{
	set32(driver_descriptor(d, 1) + 8, 0);
}

static void lie_direction(struct driver *d)
{
	add_flags(d, 1, VRING_DESC_F_WRITE);
}

static void lie_odd_table(struct driver *d)
{
	add_flags(d, 1, VRING_DESC_F_INDIRECT);
}

static void lie_empty_table(struct driver *d)
{
	add_flags(d, 1, VRING_DESC_F_INDIRECT);
	set32(driver_descriptor(d, 1) + 8, 0);
}

static void lie_chained_table(struct driver *d)
{
	add_flags(d, 1, VRING_DESC_F_INDIRECT | VRING_DESC_F_NEXT);
	set32(driver_descriptor(d, 1) + 8, 16);
}

static void lie_long_table(struct driver *d)
{
	add_flags(d, 1, VRING_DESC_F_INDIRECT);
	set32(driver_descriptor(d, 1) + 8, 17 * 16);
}

static void lie_table_elsewhere(struct driver *d)
{
	lie_address(d);
	add_flags(d, 1, VRING_DESC_F_INDIRECT);
	set32(driver_descriptor(d, 1) + 8, 16);
}

static void lie_head(struct driver *d)
{
	d->ring.avail->ring[1] = 16;
}

static void lie_next(struct driver *d)
{
	add_flags(d, 1, VRING_DESC_F_NEXT);
	set16(driver_descriptor(d, 1) + 14, 16);
}

static void lie_loop(struct driver *d)
{
	add_flags(d, 1, VRING_DESC_F_NEXT);
	set16(driver_descriptor(d, 1) + 14, 1);
}

static void lie_index(struct driver *d)
{
	d->ring.avail->idx = 17;
	d->ring.avail_seen = 0;
}

// The whole ring is one chain.
static void lie_endless(struct driver *d)
{
	uint16_t flags =
	        VRING_DESC_F_NEXT | 1 << VRING_PACKED_DESC_F_AVAIL | (d->writable ? VRING_DESC_F_WRITE : 0);

	for (unsigned i = 0; i < 16; i++) {
		set64(driver_descriptor(d, i), driver_buffer(d, 0));
		set32(driver_descriptor(d, i) + 8, 1);
		set16(driver_descriptor(d, i) + 14, flags);
	}
}

// A table whose one entry is a table.
static void lie_nested_table(struct driver *d)
{
	uint8_t *entry = guest_at(d->guest, driver_buffer(d, 9));

	set64(entry, driver_buffer(d, 9));
	set32(entry + 8, 16);
	set16(entry + 12, VRING_DESC_F_INDIRECT);
	set64(driver_descriptor(d, 1), driver_buffer(d, 9));
	set32(driver_descriptor(d, 1) + 8, 16);
	add_flags(d, 1, VRING_DESC_F_INDIRECT);
}

enum { SPLIT = 1, PACKED = 2, BOTH = 3 };

static const struct {
	const char *name;
	void (*tell)(struct driver *d);
	int in;
	enum ring_fault fault;
	unsigned before; // honest buffers that come through
} lies[] = {
        {"an address below", lie_address, BOTH, RING_BAD_ADDRESS, 1},
        {"an address of ours", lie_address_of_the_host, BOTH, RING_BAD_ADDRESS, 1},
        {"beyond the end", lie_address_end, BOTH, RING_BAD_ADDRESS, 1},
        {"an address that wraps", lie_address_wraps, BOTH, RING_BAD_ADDRESS, 1},
        {"4 GB", lie_length, BOTH, RING_BAD_ADDRESS, 1},
        {"no bytes", lie_no_length, BOTH, RING_EMPTY_CHAIN, 1},
        {"the wrong way", lie_direction, BOTH, RING_BAD_DIRECTION, 1},
        {"a table of 100 bytes", lie_odd_table, BOTH, RING_BAD_INDIRECT, 1},
        {"an empty table", lie_empty_table, BOTH, RING_BAD_INDIRECT, 1},
        {"a table with a next", lie_chained_table, BOTH, RING_BAD_INDIRECT, 1},
        {"a table longer than the ring", lie_long_table, BOTH, RING_BAD_INDIRECT, 1},
        {"a table elsewhere", lie_table_elsewhere, BOTH, RING_BAD_ADDRESS, 1},
        {"a head beyond the table", lie_head, SPLIT, RING_BAD_HEAD, 1},
        {"a next beyond the table", lie_next, SPLIT, RING_BAD_HEAD, 1},
        {"a loop", lie_loop, SPLIT, RING_BAD_CHAIN, 1},
        {"a table in a table", lie_nested_table, SPLIT, RING_BAD_INDIRECT, 1},
        {"more than there are", lie_index, SPLIT, RING_BAD_INDEX, 0},
        {"an endless chain", lie_endless, PACKED, RING_BAD_CHAIN, 0},
};

// To warm a ring is to believe nothing and change nothing, whatever is next in it.
static void assert_warm_is_harmless(struct driver *d)
{
	uint16_t base = device_ring_base(&d->ring);
	enum ring_fault fault = d->ring.fault;
	size_t size = d->guest->size;
	void *before = malloc(size);

	assert_non_null(before);
	memcpy(before, d->guest->bytes, size);
	device_ring_warm(&d->ring);
	assert_memory_equal(d->guest->bytes, before, size);
	assert_int_equal(d->ring.fault, fault);
	assert_int_equal(device_ring_base(&d->ring), base);
	free(before);
}

static void tell(struct driver *d, unsigned lie)
{
	struct ring_batch batch;
	uint32_t written;

	assert_int_equal(driver_offer_own(d, 3, 100), 3);
	lies[lie].tell(d);
	assert_warm_is_harmless(d);
	assert_int_equal(device_ring_peek(&d->ring, &batch, 64), lies[lie].before);
	for (unsigned i = 0; i < batch.count; i++)
		batch.buffers[i].written = 0;
	device_ring_commit(&d->ring, &batch, batch.count);
	assert_warm_is_harmless(d);      // of what stopped it
	for (unsigned i = 0; i < 3; i++) // for good
		assert_int_equal(device_ring_peek(&d->ring, &batch, 64), 0);
	if (d->ring.fault != lies[lie].fault)
		fail_msg("%s (%s): %s", lies[lie].name, d->ring.packed ? "packed" : "split",
		         ring_fault_text(d->ring.fault));
	if (lies[lie].before)
		assert_int_equal(driver_collect(d, &written), 0);
	assert_int_equal(driver_collect(d, &written), -1);
}

static void assert_honest(struct driver *d)
{
	struct ring_batch batch;

	assert_int_equal(driver_offer_own(d, 16, 60), 16);
	assert_int_equal(device_ring_peek(&d->ring, &batch, 64), 16);
	assert_int_equal(d->ring.fault, RING_OK);
}

static void every_lie_stops_its_ring_and_no_other(void **state)
{
	for (unsigned kind = 0; kind < COUNT(kinds); kind++)
		for (unsigned lie = 0; lie < COUNT(lies); lie++) {
			struct guest g;

			if (!(lies[lie].in & (kind ? PACKED : SPLIT)))
				continue;
			for (unsigned receive = 0; receive < 2; receive++) {
				guest_open(&g, kinds[kind], 16, false);
				tell(receive ? &g.receive : &g.transmit, lie);
				assert_honest(receive ? &g.transmit : &g.receive);
				guest_close(&g);
			}
		}
}

static void every_fault_has_its_words(void **state)
{
	for (unsigned i = 0; i < RING_FAULTS; i++)
		for (unsigned k = 0; k < i; k++)
			assert_string_not_equal(ring_fault_text(i), ring_fault_text(k));
}

// Offer count buffers, each a table of empty descriptors with one at the end that holds a frame.
static void offer_mostly_empty(struct driver *d, unsigned count)
{
	struct guest_range ranges[GUEST_TABLE_ENTRIES] = {0};

	for (unsigned i = 0; i < count; i++) {
		uint64_t at = driver_buffer(d, driver_next_id(d));

		for (unsigned k = 0; k < GUEST_TABLE_ENTRIES; k++)
			ranges[k] = (struct guest_range){at, k + 1 < GUEST_TABLE_ENTRIES ? 0 : 2048};
		assert_true(driver_offer(d, ranges, GUEST_TABLE_ENTRIES, true) >= 0);
	}
}

// Each descriptor counts against the bound of a poll, also one without a byte: 64 buffers of 64 descriptors are
// not read at once. What is left is read by the polls that follow.
static void empty_descriptors_are_bounded(void **state)
{
	for (unsigned k = 0; k < COUNT(kinds); k++) {
		const unsigned a_batch = PIECES_MAX / GUEST_TABLE_ENTRIES;
		struct ring_batch batch;
		struct guest guest;

		guest_open(&guest, kinds[k], 64, false);
		offer_mostly_empty(&guest.transmit, 64);
		for (unsigned i = 0; i < 64 / a_batch; i++) {
			assert_int_equal(device_ring_peek(&guest.transmit.ring, &batch, 64), a_batch);
			assert_int_equal(batch.descriptor_count, PIECES_MAX);
			device_ring_commit(&guest.transmit.ring, &batch, a_batch);
		}
		assert_int_equal(device_ring_peek(&guest.transmit.ring, &batch, 64), 0);
		assert_int_equal(guest.transmit.ring.fault, RING_OK);
		guest_close(&guest);
	}
}

// Four such buffers are what one deliver() reads, however many frames wait; then the ring rests.
static void a_deliver_reads_a_bounded_number_of_descriptors(void **state)
{
	static uint8_t bytes[60];
	const struct piece piece = {bytes, sizeof(bytes)};
	struct frame frames[BURST_FRAMES_MAX];

	for (unsigned i = 0; i < COUNT(frames); i++)
		frames[i] = (struct frame){{&piece, 0}, sizeof(bytes), 0};
	for (unsigned k = 0; k < COUNT(kinds); k++) {
		uint64_t too_long = 0;
		struct guest guest;

		guest_open(&guest, kinds[k], 64, false);
		offer_mostly_empty(&guest.receive, 64);
		for (unsigned i = 0; i < 16; i++) {
			assert_int_equal(deliver(&guest.receive.ring, frames, 64, &too_long), 4);
			assert_int_equal(guest.receive.ring.debt, 14); // (256 - 64 - 64 * 60 / 256) / 12
			for (unsigned rest = 0; rest < 14; rest++)
				assert_int_equal(deliver(&guest.receive.ring, frames, 64, &too_long), 0);
		}
		assert_int_equal(deliver(&guest.receive.ring, frames, 64, &too_long), 0);
		assert_int_equal(too_long, 0);
		guest_close(&guest);
	}
}

// A sender pays what its descriptors cost beyond an honest one's in polls that read nothing, in a view and in a cross-connect.
static void a_sender_of_many_descriptors_rests(void **state)
{
	for (unsigned k = 0; k < COUNT(kinds); k++) {
		struct frames_lost lost = {0};
		struct guest from, to;
		struct view view;

		guest_open(&from, kinds[k], 64, false);
		guest_open(&to, kinds[k], 64, false);
		offer_mostly_empty(&from.transmit, 64);
		driver_offer_own(&to.receive, 64, GUEST_BUFFER_BYTES);
		for (unsigned i = 0; i < 8; i++) {
			assert_int_equal(view_peek(&from.transmit.ring, &view, 64, &lost), 4);
			assert_int_equal(from.transmit.ring.debt, 18); // (256 - 2 * 4 - 4 * 2048 / 256) / 12
			view_commit(&from.transmit.ring, &view);
			for (unsigned rest = 0; rest < 18; rest++)
				assert_int_equal(view_peek(&from.transmit.ring, &view, 64, &lost), 0);
			assert_int_equal(xconnect(&from.transmit.ring, &to.receive.ring, 64).forwarded, 4);
			for (unsigned rest = 0; rest < 18; rest++)
				assert_int_equal(xconnect(&from.transmit.ring, &to.receive.ring, 64).received,
				                 0);
		}
		assert_int_equal(from.transmit.ring.fault, RING_OK);
		guest_close(&from);
		guest_close(&to);
	}
}

// A receiver that rests is one without buffers: the sender's frames do not wait for it.
static void a_receiver_of_many_descriptors_rests(void **state)
{
	for (unsigned k = 0; k < COUNT(kinds); k++) {
		struct xconnect_counts counts;
		struct guest from, to;
		unsigned rest;

		guest_open(&from, kinds[k], 64, false);
		guest_open(&to, kinds[k], 64, false);
		offer_mostly_empty(&to.receive, 64);
		driver_offer_own(&from.transmit, 64, 100);
		counts = xconnect(&from.transmit.ring, &to.receive.ring, 16);
		assert_int_equal(counts.received, 16);
		assert_int_equal(counts.forwarded, 4);
		rest = to.receive.ring.debt;
		assert_int_equal(rest, 19); // (256 - 16 - 16 * 88 / 256) / 12
		counts = xconnect(&from.transmit.ring, &to.receive.ring, 16);
		assert_int_equal(counts.received, 16);
		assert_int_equal(counts.forwarded, 0);
		assert_int_equal(to.receive.ring.debt, rest - 1);
		guest_close(&from);
		guest_close(&to);
	}
}

// Buffers in which no frame fits are paid, as they are read ahead for nothing.
static void a_receiver_of_tiny_buffers_rests(void **state)
{
	for (unsigned k = 0; k < COUNT(kinds); k++) {
		struct xconnect_counts counts;
		struct guest from, to;

		guest_open(&from, kinds[k] | UINT64_C(1) << VIRTIO_NET_F_MRG_RXBUF, 256, false);
		guest_open(&to, kinds[k] | UINT64_C(1) << VIRTIO_NET_F_MRG_RXBUF, 256, false);
		driver_offer_own(&to.receive, 256, 1);
		driver_offer_own(&from.transmit, 64, RING_HEADER + 60);
		counts = xconnect(&from.transmit.ring, &to.receive.ring, 32);
		assert_int_equal(counts.too_long, 32);
		assert_int_equal(to.receive.ring.debt, 4); // (32 + 64 - 32 - 32 * 60 / 256) / 12
		guest_close(&from);
		guest_close(&to);
	}
}

// No more buffers of an honest receiver are read than a frame that takes several needs, so what a sender does costs it
// nothing.
static void long_frames_do_not_tire_their_receiver(void **state)
{
	for (unsigned k = 0; k < COUNT(kinds); k++)
		for (unsigned length = 1600; length < GUEST_BUFFER_BYTES - RING_HEADER; length += 100) {
			struct guest from, to;

			guest_open(&from, kinds[k] | UINT64_C(1) << VIRTIO_NET_F_MRG_RXBUF, 64, false);
			guest_open(&to, kinds[k] | UINT64_C(1) << VIRTIO_NET_F_MRG_RXBUF, 64, false);
			driver_offer_own(&to.receive, 64, 1526);
			driver_offer_own(&from.transmit, 1, RING_HEADER + length);
			assert_int_equal(xconnect(&from.transmit.ring, &to.receive.ring, 32).forwarded, 1);
			assert_int_equal(to.receive.ring.debt, 0);
			guest_close(&from);
			guest_close(&to);
		}
}

// Bytes of a poll: 32 frames of 3 KB, whatever is asked for; plain buffers and chains, view and cross-connect. Honest drivers do not
// rest. What follows comes with the next poll.
static void bytes_of_a_poll_are_bounded(void **state)
{
	for (unsigned k = 0; k < COUNT(kinds); k++)
		for (unsigned chained = 0; chained < 2; chained++) {
			struct frames_lost lost = {0};
			struct guest from, to;
			struct view view;

			guest_open(&from, kinds[k], 256, false);
			guest_open(&to, kinds[k], 256, false);
			for (unsigned i = 0; i < 96; i++) {
				uint64_t at = driver_buffer(&from.transmit, driver_next_id(&from.transmit));
				const struct guest_range whole = {at, RING_HEADER + 3060};
				const struct guest_range apart[] = {{at, RING_HEADER},
				                                    {at + RING_HEADER, 3060}};

				assert_true(driver_offer(&from.transmit, chained ? apart : &whole,
				                         chained ? 2 : 1, false) >= 0);
			}
			driver_offer_own(&to.receive, 64, 4096);
			assert_int_equal(view_peek(&from.transmit.ring, &view, 64, &lost), 32);
			view_commit(&from.transmit.ring, &view);
			for (unsigned i = 0; i < 2; i++)
				assert_int_equal(
				        xconnect(&from.transmit.ring, &to.receive.ring, 64).forwarded, 32);
			assert_int_equal(from.transmit.ring.debt + to.receive.ring.debt, 0);
			guest_close(&from);
			guest_close(&to);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(every_lie_stops_its_ring_and_no_other),
	        cmocka_unit_test(every_fault_has_its_words),
	        cmocka_unit_test(empty_descriptors_are_bounded),
	        cmocka_unit_test(a_deliver_reads_a_bounded_number_of_descriptors),
	        cmocka_unit_test(a_sender_of_many_descriptors_rests),
	        cmocka_unit_test(a_receiver_of_many_descriptors_rests),
	        cmocka_unit_test(a_receiver_of_tiny_buffers_rests),
	        cmocka_unit_test(long_frames_do_not_tire_their_receiver),
	        cmocka_unit_test(bytes_of_a_poll_are_bounded),
	};

	return RUN_FOR_EACH_ISA("ring_lies", tests);
}
