// SPDX-License-Identifier: BSD-3-Clause
// Buffers that a port lends again and again, and which of them have the pattern of the tester frame in them.
// A buffer is known by its address and filled when it is seen for the first time: whatever the order in which
// they come, and however many there are, none is sent unfilled. Frames without pattern ask for nothing.
//
// Relies on port_lends_room(): between two loans nobody writes behind a frame's head. Created and freed on
// the control thread; used by one worker.
#pragma once

#include "tasks/tester/frame.h"
#include "ring/view.h"

struct frame_room;

// For a port with about so many buffers; twice as many are known at a time. NULL without memory.
struct frame_room *frame_room_create(unsigned buffers);
void frame_room_free(struct frame_room *room);

// Know no buffer any more: others may have written to them, or the frames are longer now.
void frame_room_forget(struct frame_room *room);

// Make n lent buffers frames of length bytes that lack only their first FRAME_STORE_BYTES, which are at
// data[]. Returns how many: it ends before a buffer without room for one, or of several pieces.
unsigned frame_room_prepare(struct frame_room *room, struct frame *frames, unsigned n, uint32_t length,
                            uint8_t **data);

// The same with a length for each frame, heads of store bytes, and the pattern in each buffer as far as it
// goes, or as a frame of longest bytes needs it.
unsigned frame_room_prepare_mixed(struct frame_room *room, struct frame *frames, unsigned n,
                                  const uint16_t *lengths, uint32_t store, uint32_t longest, uint8_t **data);
