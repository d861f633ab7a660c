// SPDX-License-Identifier: BSD-3-Clause
#include "test/driver_pair.h"

#include <linux/virtio_config.h>
#include <rte_common.h>

#include "test/unit.h"

bool pair_packed;
static uint8_t *whole;
static size_t whole_bytes, whole_used;

static void *carve(size_t bytes)
{
	uint8_t *at = whole + whole_used;

	whole_used += RTE_ALIGN_CEIL(bytes, DRIVER_LINE);
	assert_true(whole_used <= whole_bytes);
	return at;
}

static void end_device_reset(struct end *e, const struct guest_memory *memory)
{
	const struct device_ring_layout layout = {.desc = e->driver.desc,
	                                          .driver = e->driver.avail,
	                                          .device = e->driver.used,
	                                          .size = e->driver.size,
	                                          .features = UINT64_C(1) << VIRTIO_F_VERSION_1 |
	                                                      (uint64_t)pair_packed << VIRTIO_F_RING_PACKED,
	                                          .base = pair_packed ? 0x8000 : 0,
	                                          .writable = e->driver.receive};

	assert_int_equal(device_ring_init(&e->device, &layout, memory), 0);
}

void pair_device_reset(struct pair *p)
{
	end_device_reset(&p->receive, &p->memory);
	end_device_reset(&p->transmit, &p->memory);
}

static void end_open(struct end *e, bool receive, uint16_t size)
{
	size_t stride = shm_pool_stride(PAIR_ROOM);
	void *memory = carve(driver_ring_bytes(size));

	e->buffers = carve(size * stride);
	e->pieces = calloc(size, sizeof(*e->pieces));
	for (unsigned i = 0; i < size; i++)
		e->pieces[i].data = e->buffers + i * stride + DRIVER_LINE;
	driver_ring_init(&e->driver, receive, size, PAIR_ROOM, memory, e->pieces);
	driver_ring_reset(&e->driver, true, pair_packed);
}

void pair_open(struct pair *p, uint16_t size)
{
	*p = (struct pair){0};
	whole_bytes = 2 * (driver_ring_bytes(size) + size * shm_pool_stride(PAIR_ROOM));
	whole_used = 0;
	whole = aligned_alloc(DRIVER_LINE, whole_bytes);
	memset(whole, 0x5a, whole_bytes);
	assert_int_equal(guest_memory_add(&p->memory, (uintptr_t)whole, whole_bytes, whole), 0);
	end_open(&p->receive, true, size);
	end_open(&p->transmit, false, size);
	pair_device_reset(p);
}

void pair_close(struct pair *p)
{
	free(p->receive.pieces);
	free(p->transmit.pieces);
	free(whole);
}

static uint8_t byte_of(uint32_t number, uint32_t offset)
{
	return (uint8_t)(number * 31 + offset * 7 + (offset >> 8));
}

static uint32_t length_of(const struct pair *p, uint32_t number)
{
	return p->length ? p->length : 1 + number * 37 % PAIR_FRAME_MAX;
}

static void write_frame(const struct pair *p, uint8_t *to, uint32_t number)
{
	for (uint32_t i = 0; i < length_of(p, number); i++)
		to[i] = byte_of(number, i);
}

static void check_frame(const struct pair *p, const uint8_t *data, uint32_t length, uint32_t number)
{
	assert_int_equal(length, length_of(p, number));
	for (uint32_t i = 0; i < length; i++)
		if (data[i] != byte_of(number, i))
			fail_msg("frame %u, byte %u: %u", number, i, data[i]);
}

unsigned pair_send_reserved(struct pair *p, unsigned n)
{
	uint16_t lengths[BURST_FRAMES_MAX];
	uint8_t *data[BURST_FRAMES_MAX];

	for (unsigned i = 0; i < n; i++)
		lengths[i] = (uint16_t)length_of(p, p->sent + i);
	n = driver_ring_reserve(&p->transmit.driver, lengths, data, n);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal((uintptr_t)data[i] % DRIVER_LINE, 0);
		write_frame(p, data[i], p->sent + i);
	}
	assert_int_equal(driver_ring_publish(&p->transmit.driver, n), n);
	p->sent += n;
	return n;
}

// By copy, of frames in two pieces each.
unsigned pair_send_delivered(struct pair *p, unsigned n)
{
	static uint8_t bytes[BURST_FRAMES_MAX][PAIR_FRAME_MAX + 1];
	struct piece pieces[2 * BURST_FRAMES_MAX];
	struct frame frames[BURST_FRAMES_MAX];
	uint64_t too_long = 0;
	unsigned taken;

	for (unsigned i = 0; i < n; i++) {
		uint32_t length = length_of(p, p->sent + i), half = length / 2;

		write_frame(p, bytes[i], p->sent + i);
		pieces[2 * i] = (struct piece){bytes[i], half ? half : length};
		pieces[2 * i + 1] = (struct piece){bytes[i] + half, length - half};
		frames[i] = (struct frame){{&pieces[2 * i], 0}, length, 0};
	}
	taken = driver_ring_deliver(&p->transmit.driver, frames, n, &too_long);
	assert_int_equal(too_long, 0);
	p->sent += taken;
	return taken;
}

// The device takes up to n and looks at each.
static unsigned take_some(struct pair *p, unsigned n)
{
	struct frame frames[BURST_FRAMES_MAX];
	struct frames_lost lost = {0};
	struct ring_batch batch;

	n = device_ring_peek(&p->transmit.device, &batch, n);
	assert_int_equal(xconnect_frames(&p->transmit.device, &batch, frames, &lost), n);
	for (unsigned i = 0; i < n; i++) {
		const uint8_t *header = batch.pieces[batch.buffers[i].first_piece].data;

		batch.buffers[i].written = 0;
		check_frame(p, scatter_start(&frames[i].at), frames[i].length, p->came + i);
		for (unsigned k = 0; k < RING_HEADER; k++)
			assert_int_equal(header[k], 0);
	}
	device_ring_commit(&p->transmit.device, &batch, n);
	p->came += n;
	return n;
}

// A poll takes only so many bytes.
unsigned pair_device_take(struct pair *p, unsigned n)
{
	unsigned taken = 0, some;

	while (taken < n && (some = take_some(p, n - taken)) > 0)
		taken += some;
	return taken;
}

unsigned pair_device_give(struct pair *p, unsigned n)
{
	static uint8_t bytes[BURST_FRAMES_MAX][PAIR_FRAME_MAX + 1];
	struct piece pieces[BURST_FRAMES_MAX];
	struct frame frames[BURST_FRAMES_MAX];
	uint64_t too_long = 0;

	for (unsigned i = 0; i < n; i++) {
		write_frame(p, bytes[i], p->sent + i);
		pieces[i] = (struct piece){bytes[i], length_of(p, p->sent + i)};
		frames[i] = (struct frame){{&pieces[i], 0}, length_of(p, p->sent + i), 0};
	}
	n = deliver(&p->receive.device, frames, n, &too_long);
	assert_int_equal(too_long, 0);
	p->sent += n;
	return n;
}

unsigned pair_look(struct pair *p, unsigned n, struct frame *frames)
{
	unsigned count, empty, buffers = driver_ring_peek(&p->receive.driver, n, frames, &count, &empty);

	assert_int_equal(buffers, count);
	assert_int_equal(empty, 0);
	for (unsigned i = 0; i < count; i++)
		check_frame(p, scatter_start(&frames[i].at), frames[i].length, p->came + i);
	return count;
}

unsigned pair_look_at_spans(struct pair *p, unsigned n)
{
	struct vnf_frame spans[BURST_FRAMES_MAX];

	n = driver_ring_peek_spans(&p->receive.driver, spans, n);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(spans[i].total, spans[i].length);
		check_frame(p, spans[i].data, spans[i].length, p->came + i);
	}
	return n;
}
