// SPDX-License-Identifier: BSD-3-Clause
// Both kinds of ring against a guest in plain memory: what is offered is what is read, what is committed is
// what is collected, and each way to lie stops the ring with its own fault.
#include <errno.h>

#include "test/guest.h"
#include "test/each_isa.h"

static const uint16_t bursts[] = {0, 1, 3, 4, 5, 31, 32, 33, 64};
static const uint64_t kinds[] = {1ULL << VIRTIO_F_VERSION_1,
                                 1ULL << VIRTIO_F_VERSION_1 | 1ULL << VIRTIO_F_RING_PACKED};

#define EACH_KIND(features) for (unsigned kind = 0; features = kinds[kind % 2], kind < 2; kind++)
#define COUNT(array)        (sizeof(array) / sizeof((array)[0]))

// Read n, tell the guest other lengths for each, and see that it gets them back in order.
static void round_trip(struct driver *d, unsigned n, uint32_t length)
{
	int ids[BURST_FRAMES_MAX];
	struct ring_batch batch;
	uint32_t written;

	for (unsigned i = 0; i < n; i++) {
		struct guest_range range = {driver_buffer(d, driver_next_id(d)), length + i};

		ids[i] = driver_offer(d, &range, 1, false);
		assert_true(ids[i] >= 0);
	}
	assert_int_equal(device_ring_peek(&d->ring, &batch, BURST_FRAMES_MAX), n);
	for (unsigned i = 0; i < n; i++) {
		const struct ring_buffer *buffer = &batch.buffers[i];

		assert_int_equal(buffer->id, ids[i]);
		assert_int_equal(buffer->length, length + i);
		assert_int_equal(buffer->piece_count, 1);
		assert_ptr_equal(batch.pieces[buffer->first_piece].data,
		                 guest_at(d->guest, driver_buffer(d, (unsigned)ids[i])));
		batch.buffers[i].written = 7 * i;
	}
	assert_int_equal(driver_collect(d, &written), -1);
	device_ring_commit(&d->ring, &batch, n);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(driver_collect(d, &written), ids[i]);
		assert_int_equal(written, 7 * i);
	}
	assert_int_equal(driver_collect(d, &written), -1);
}

// 64 entries, so that bursts of 33 lie across the end in all ways; split indices wrap at 65536 too.
static void bursts_come_and_go_many_times_around(void **state)
{
	uint64_t features;

	EACH_KIND(features)
	for (unsigned reversed = 0; reversed < 2; reversed++) {
		struct guest g;

		guest_open(&g, features, 64, reversed);
		for (unsigned i = 0; i < 4000; i++) {
			round_trip(&g.transmit, bursts[i % COUNT(bursts)], 60 + i % 600);
			round_trip(&g.receive, bursts[(i + 1) % COUNT(bursts)], 1500);
		}
		assert_int_equal(g.transmit.ring.fault, RING_OK);
		guest_close(&g);
	}
}

static void a_peek_changes_nothing(void **state)
{
	uint64_t features;

	EACH_KIND(features)
	{
		struct ring_batch batch;
		struct guest g;
		uint32_t written;

		guest_open(&g, features, 16, true);
		assert_int_equal(driver_offer_own(&g.transmit, 17, 100), 16);
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(device_ring_peek(&g.transmit.ring, &batch, 64), 16);
		assert_int_equal(device_ring_peek(&g.transmit.ring, &batch, 5), 5);
		batch.buffers[0].written = batch.buffers[1].written = 0;
		device_ring_commit(&g.transmit.ring, &batch, 2);
		assert_int_equal(device_ring_peek(&g.transmit.ring, &batch, 64), 14);
		assert_int_equal(batch.buffers[0].id, 13); // 15 and 14 are gone
		assert_int_equal(driver_collect(&g.transmit, &written), 15);
		assert_int_equal(driver_collect(&g.transmit, &written), 14);
		assert_int_equal(driver_collect(&g.transmit, &written), -1);
		guest_close(&g);
	}
}

static void chains_and_tables_become_pieces(void **state)
{
	uint64_t features;

	EACH_KIND(features)
	for (unsigned indirect = 0; indirect < 2; indirect++) {
		struct ring_batch batch;
		struct guest g;
		uint32_t written;

		guest_open(&g, features, 16, true);
		for (unsigned i = 0; i < 100; i++) {
			uint64_t at = driver_buffer(&g.transmit, 3);
			struct guest_range ranges[] = {{at, 12}, {at + 100, 1}, {at + 50, 500}};
			int id = driver_offer(&g.transmit, ranges, 3, indirect);

			assert_true(id >= 0);
			assert_int_equal(driver_offer_own(&g.transmit, 1, 9), 1);
			assert_int_equal(device_ring_peek(&g.transmit.ring, &batch, 64), 2);
			assert_int_equal(batch.buffers[0].id, id);
			assert_int_equal(batch.buffers[0].length, 513);
			assert_int_equal(batch.buffers[0].piece_count, 3);
			assert_ptr_equal(batch.pieces[2].data, guest_at(&g, at + 50));
			assert_int_equal(batch.pieces[2].length, 500);
			assert_int_equal(batch.buffers[1].length, 9);
			batch.buffers[0].written = batch.buffers[1].written = 0;
			device_ring_commit(&g.transmit.ring, &batch, 2);
			assert_int_equal(driver_collect(&g.transmit, &written), id);
			assert_true(driver_collect(&g.transmit, &written) >= 0);
		}
		guest_close(&g);
	}
}

static void a_range_across_regions_becomes_two_pieces(void **state)
{
	uint64_t features;

	EACH_KIND(features)
	{
		struct ring_batch batch;
		struct guest g;
		uint64_t border;

		guest_open(&g, features, 16, false);
		border = g.memory.regions[1].address;
		driver_offer(&g.transmit, &(struct guest_range){border - 10, 30}, 1, false);
		assert_int_equal(device_ring_peek(&g.transmit.ring, &batch, 64), 1);
		assert_int_equal(batch.buffers[0].length, 30);
		assert_int_equal(batch.buffers[0].piece_count, 2);
		assert_int_equal(batch.pieces[0].length, 10);
		assert_int_equal(batch.pieces[1].length, 20);
		guest_close(&g);
	}
}

// More pieces than a batch holds: fewer buffers at a time, none lost.
static void a_batch_without_room_ends_early(void **state)
{
	uint64_t features;

	EACH_KIND(features)
	{
		struct guest_range ranges[GUEST_TABLE_ENTRIES];
		struct ring_batch batch;
		struct guest g;

		guest_open(&g, features, 16, false);
		for (unsigned i = 0; i < 16; i++)
			ranges[i] = (struct guest_range){driver_buffer(&g.transmit, i), 2};
		for (unsigned i = 0; i < 16; i++)
			ranges[16 + i] = ranges[32 + i] = ranges[48 + i] = ranges[i];
		for (unsigned i = 0; i < 6; i++) // more than 16 in a table: a lie in a ring of 16
			assert_true(driver_offer(&g.transmit, ranges, 16, true) >= 0);
		assert_int_equal(device_ring_peek(&g.transmit.ring, &batch, 64), 6);
		guest_close(&g);
		guest_open(&g, features, 64, false);
		for (unsigned i = 0; i < 6; i++)
			assert_true(driver_offer(&g.transmit, ranges, 60, true) >= 0);
		assert_int_equal(device_ring_peek(&g.transmit.ring, &batch, 64), 4);
		assert_true(batch.limited);
		for (unsigned i = 0; i < 4; i++)
			batch.buffers[i].written = 0;
		device_ring_commit(&g.transmit.ring, &batch, 4);
		assert_int_equal(device_ring_peek(&g.transmit.ring, &batch, 64), 2);
		assert_false(batch.limited);
		guest_close(&g);
	}
}

// --- Notifications, set-up, going on

static void nobody_is_notified_who_does_not_want_it(void **state)
{
	struct guest split, packed;

	guest_open(&split, kinds[0], 16, false);
	guest_open(&packed, kinds[1], 16, false);
	assert_int_equal(split.transmit.ring.used->flags, VRING_USED_F_NO_NOTIFY);
	assert_int_equal(packed.transmit.ring.device_event->flags, VRING_PACKED_EVENT_FLAG_DISABLE);
	assert_true(doorbell_asleep(&split.transmit.ring.bell));
	assert_true(doorbell_asleep(&packed.transmit.ring.bell));
	split.transmit.ring.avail->flags = VRING_AVAIL_F_NO_INTERRUPT;
	packed.transmit.ring.driver_event->flags = VRING_PACKED_EVENT_FLAG_DISABLE;
	assert_false(doorbell_asleep(&split.transmit.ring.bell));
	assert_false(doorbell_asleep(&packed.transmit.ring.bell));
	assert_true(doorbell_asleep(&split.receive.ring.bell));
	guest_close(&split);
	guest_close(&packed);
}

static void impossible_rings_are_refused(void **state)
{
	static _Alignas(64) uint8_t memory[1024]; // 16 entries fit, 32 do not
	const struct device_ring_layout good = {memory, memory + 512, memory + 768, 16, 0, 0, false};
	struct guest_memory all = {0}, less = {0};
	struct device_ring ring;

	assert_int_equal(guest_memory_add(&all, 0, sizeof(memory), memory), 0);
	assert_int_equal(device_ring_init(&ring, &good, &all), 0);
	// The used ring ends at 768 + 4 + 16 * 8.
	assert_int_equal(guest_memory_add(&less, 0, 768 + 4 + 16 * 8 - 1, memory), 0);
	assert_int_equal(device_ring_init(&ring, &good, &less), -EINVAL);
	less.regions[0].size++;
	assert_int_equal(device_ring_init(&ring, &good, &less), 0);
	for (unsigned i = 0; i < 9; i++) {
		struct device_ring_layout bad = good;

		bad.size = i == 0 ? 0 : i == 1 ? 24 : i == 2 ? 32769 : 16;
		bad.desc = i == 3 ? NULL : i == 4 ? memory + 8 : memory;
		bad.driver = i == 5 ? memory + 513 : memory + 512;
		bad.device = i == 6 ? memory + 770 : memory + 768;
		if (i >= 7) { // packed: the position must be in the ring
			bad.features = 1ULL << VIRTIO_F_RING_PACKED;
			bad.base = i == 7 ? 16 : 0x8010;
		}
		assert_int_equal(device_ring_init(&ring, &bad, &all), -EINVAL);
	}
}

// Taken away and given back anywhere: the next ring begins where the last has ended.
static void a_ring_goes_on_from_its_base(void **state)
{
	uint64_t features;

	EACH_KIND(features)
	{
		struct guest g;

		guest_open(&g, features, 32, true);
		for (unsigned i = 0; i < 100; i++) {
			struct device_ring *ring = &g.transmit.ring;
			const struct device_ring_layout layout = {
			        ring->desc, ring->avail, ring->used, 32, device_ring_base(ring),
			        features,   false};

			assert_int_equal(device_ring_init(ring, &layout, &g.memory), 0);
			round_trip(&g.transmit, bursts[i % 7], 60);
		}
		guest_close(&g);
	}
}

// The guest changes its mind between a commit without a fence and the next poll: it is called once, at that
// poll, whatever the poll finds.
static void a_call_that_is_owed_is_made_once(void **state)
{
	for (unsigned k = 0; k < COUNT(kinds); k++)
		for (unsigned moved = 0; moved < 2; moved++) {
			struct guest g;
			struct device_ring *ring = &g.transmit.ring;
			uint16_t *flags;

			guest_open(&g, kinds[k], 16, false);
			flags = ring->packed ? &ring->driver_event->flags : &ring->avail->flags;
			*flags = 1; // VRING_AVAIL_F_NO_INTERRUPT, VRING_PACKED_EVENT_FLAG_DISABLE
			assert_false(doorbell_poll(&ring->bell, false));
			assert_false(doorbell_poll(&ring->bell, true));
			*flags = 0;
			assert_true(doorbell_poll(&ring->bell, moved));
			assert_false(doorbell_poll(&ring->bell, false));
			*flags = 1;
			assert_false(doorbell_poll(&ring->bell, true));
			assert_false(doorbell_poll(&ring->bell, false));
			*flags = 0; // it has been looked at behind a fence, and has had nothing since
			assert_false(doorbell_poll(&ring->bell, false));
			guest_close(&g);
		}
}

static void the_header_is_that_of_the_features(void **state)
{
	static const struct {
		uint64_t features;
		unsigned bytes;
	} cases[] = {{0, 10},
	             {1ULL << VIRTIO_NET_F_MRG_RXBUF, 12},
	             {1ULL << VIRTIO_F_VERSION_1, 12},
	             {1ULL << VIRTIO_F_VERSION_1 | 1ULL << VIRTIO_F_RING_PACKED, 12}};

	for (unsigned i = 0; i < COUNT(cases); i++) {
		struct guest g;

		guest_open(&g, cases[i].features, 16, false);
		assert_int_equal(g.receive.ring.header_bytes, cases[i].bytes);
		guest_close(&g);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(bursts_come_and_go_many_times_around),
	        cmocka_unit_test(a_peek_changes_nothing),
	        cmocka_unit_test(chains_and_tables_become_pieces),
	        cmocka_unit_test(a_range_across_regions_becomes_two_pieces),
	        cmocka_unit_test(a_batch_without_room_ends_early),
	        cmocka_unit_test(nobody_is_notified_who_does_not_want_it),
	        cmocka_unit_test(a_call_that_is_owed_is_made_once),
	        cmocka_unit_test(impossible_rings_are_refused),
	        cmocka_unit_test(a_ring_goes_on_from_its_base),
	        cmocka_unit_test(the_header_is_that_of_the_features),
	};

	return RUN_FOR_EACH_ISA("ring", tests);
}
