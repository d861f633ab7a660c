// SPDX-License-Identifier: BSD-3-Clause
#include "nf/send_buffer.h"

#include <rte_cycles.h>
#include <stdlib.h>

#include "tester/stamps.h"
#include "port/port.h"
#include "tester/frame.h"

enum { NO_STAMP = STAMPS_MAX };

struct send_buffer {
	unsigned burst, count;
	uint32_t room;
	uint32_t stamps[SEND_BURST_MAX]; // entry of the log of each frame, or NO_STAMP
	struct piece pieces[SEND_BURST_MAX];
	struct frame frames[SEND_BURST_MAX];
	uint8_t bytes[]; // burst times room
};

struct send_buffer *send_buffer_create(unsigned burst, uint32_t room)
{
	struct send_buffer *buffer = malloc(sizeof(*buffer) + (size_t)burst * room);

	if (!buffer)
		return NULL;
	buffer->burst = burst;
	buffer->count = 0;
	buffer->room = room;
	for (unsigned i = 0; i < burst; i++) {
		buffer->pieces[i] = (struct piece){.data = buffer->bytes + (size_t)i * room};
		buffer->frames[i] = (struct frame){.at = {.piece = &buffer->pieces[i]}};
	}
	return buffer;
}

void send_buffer_free(struct send_buffer *buffer)
{
	free(buffer);
}

unsigned send_buffer_count(const struct send_buffer *buffer)
{
	return buffer->count;
}

bool send_buffer_full(const struct send_buffer *buffer)
{
	return buffer->count == buffer->burst;
}

// The entry of a probe that was found in this poll: among the last ones of the log.
static uint32_t entry_of(const struct stamps *stamps, const uint8_t *data, uint32_t length)
{
	struct frame_fields fields;
	uint32_t oldest;

	if (!frame_is_probe(data, length, &fields))
		return NO_STAMP;
	oldest = stamps->count > BURST_FRAMES_MAX ? stamps->count - BURST_FRAMES_MAX : 0;
	for (uint32_t i = stamps->count; i-- > oldest;)
		if (stamps->log[i].sequence == fields.sequence && stamps->log[i].stream == fields.stream)
			return i;
	return NO_STAMP; // the log is full
}

bool send_buffer_add(struct send_buffer *buffer, const struct view *view, unsigned i,
                     const struct stamps *stamps)
{
	unsigned at = buffer->count;
	uint32_t length = view_span(view, i).total;

	if (length > buffer->room)
		return false;
	buffer->pieces[at].length = buffer->frames[at].length =
	        view_copy(view, i, buffer->pieces[at].data, length);
	buffer->stamps[at] = stamps ? entry_of(stamps, buffer->pieces[at].data, length) : NO_STAMP;
	buffer->count++;
	return true;
}

// Stamps may have begun anew since a frame was added: then its number is another's, or nobody's.
static void note_leaving(const struct send_buffer *buffer, unsigned sent, struct stamps *stamps)
{
	uint64_t now_tsc = rte_rdtsc();
	struct frame_fields fields;

	for (unsigned i = 0; i < sent; i++) {
		uint32_t entry = buffer->stamps[i];

		if (entry >= stamps->count ||
		    !frame_is_probe(buffer->pieces[i].data, buffer->pieces[i].length, &fields))
			continue;
		if (stamps->log[entry].sequence == fields.sequence && stamps->log[entry].out_tsc == 0)
			stamps->log[entry].out_tsc = now_tsc;
	}
}

unsigned send_buffer_flush(struct send_buffer *buffer, const struct port *to, uint16_t queue,
                           struct stamps *stamps)
{
	unsigned count = buffer->count, sent;

	if (count == 0)
		return 0;
	sent = port_deliver_polled(to, queue, buffer->frames, count);
	if (stamps)
		note_leaving(buffer, sent, stamps);
	buffer->count = 0;
	return sent;
}
