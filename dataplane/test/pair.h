// SPDX-License-Identifier: BSD-3-Clause
// Two guests and the frames between them, from A's transmit ring to B's receive ring: numbered, each byte
// known, in buffers of several shapes. For tests of what hops; they are cmocka's.
#pragma once

#include <rte_common.h>

#include "test/guest.h"
#include "test/unit.h"

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

static inline void pair_open(struct pair *p, uint64_t a, uint64_t b, uint16_t size)
{
	*p = (struct pair){0};
	guest_open(&p->a, a, size, false);
	guest_open(&p->b, b, size, true);
}

static inline void pair_close(struct pair *p)
{
	guest_close(&p->a);
	guest_close(&p->b);
}

static inline uint8_t byte_of(uint32_t number, uint32_t offset)
{
	return (uint8_t)(number * 31 + offset * 7 + (offset >> 8));
}

// Frame number p->sent, behind a header full of lies that nobody must believe. shape: 0 one range, 1 header
// and frame apart, 2 pieces of 100 bytes, 3 these in a table.
static inline bool offer_frame(struct pair *p, uint32_t length, unsigned shape)
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

static inline uint16_t number_of_buffers(const struct driver *d, const uint8_t *header)
{
	uint16_t count = 1;

	for (unsigned i = 0; i < RING_HEADER_LEGACY; i++)
		assert_int_equal(header[i], 0);
	if (d->ring.header_bytes == RING_HEADER)
		memcpy(&count, header + RING_HEADER_LEGACY, sizeof(count));
	return count;
}

// Collect a frame at B and see that it is number p->came, with length bytes.
static inline void collect_frame(struct pair *p, uint32_t length, unsigned buffers)
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

static inline unsigned collect_sent(struct pair *p)
{
	uint32_t written;
	unsigned n = 0;

	for (; driver_collect(&p->a.transmit, &written) >= 0; n++)
		assert_int_equal(written, 0);
	return n;
}
