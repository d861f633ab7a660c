// SPDX-License-Identifier: BSD-3-Clause
// How a generator's frames get to the port: in buffers that the port lends, or by one copy. Chosen
// by the port when the task is created. For generator.c and the ways.
//
// A way sends the frames that are next and says how many the port took; the next call begins with the first
// that it refused. Frames that nobody took have no state outside the way.
#pragma once

#include <rte_cycles.h>
#include <stdatomic.h>

#include "port/port.h"
#include "shm/frames.h"
#include "tester/generator.h"
#include "tester/pacer.h"
#include "base/clock.h"
#include "base/random.h"
#include "tester/stamps.h"
#include "task/task.h"
#include "tester/frame.h"
#include "tester/frame_run.h"
#include "tester/profile.h"

enum { PROBE_NONE = -1, STAMP_WAITS_PER_S = 100 };

enum generator_state { STATE_IDLE, STATE_RUNNING, STATE_DONE };

struct generator;

struct generator_tx {
	// Control thread. open, begin: 0, or -errno after logging one line. begin: a new load, the template
	// or the profile is there.
	int (*open)(struct generator *g);
	void (*close)(struct generator *g);
	int (*begin)(struct generator *g);

	// Worker: send up to n frames, 1 .. burst; returns how many, and moves next_sequence on. Counts
	// attempted, refused, probes and no_mbuf.
	uint16_t (*send)(struct generator *g, uint16_t n, uint64_t now_tsc);

	// The same of frames of g->profile.
	uint16_t (*send_profile)(struct generator *g, uint16_t n, uint64_t now_tsc);
};

extern const struct generator_tx generator_tx_in_place, generator_tx_copy;

struct generator {
	struct task task;

	// Read or written at every poll.
	_Atomic int state; // written by the worker only to go from running to done
	uint16_t burst;
	int16_t probe_index;    // of the frames that are next: which becomes a probe, or PROBE_NONE
	uint32_t next_sequence; // of the first frame that no port has taken
	const struct generator_tx *way;
	uint16_t (*send)(struct generator *g, uint16_t n, uint64_t now_tsc); // of the way, for this load
	void *own;                                                           // the way's
	void (*write)(const struct frame_template *t, uint8_t *const *data, unsigned n, uint32_t sequence);
	struct pacer pacer;
	uint64_t probe_interval_tsc; // 0 = no probes
	uint64_t probe_slot_tsc;     // where the interval of the next probe begins
	uint64_t probe_due_tsc;      // of the next probe, anywhere in its interval
	uint64_t probe_tsc;          // in the one that was stamped last
	bool stamp_all;              // frames, probes or not
	bool marks;                  // probes, for the port's device to stamp
	struct stamp *marked;        // the entry of the probe whose stamp the device still owes, or NULL
	uint64_t marked_until_tsc;   // how long it is waited for
	struct trial_offered *told;  // where the monitors read what is offered, or nobody
	uint64_t offered, attempted, refused, ring_full, no_mbuf, probes;
	struct frame_template template;
	struct frame_template marked_template; // of the probes that the device shall stamp
	struct profile *profile;               // of this load, or NULL
	uint64_t burst_end_tsc;                // on and off: of the period that is counted

	// Control thread.
	struct profile *kept, *next; // the one made last; that of the next load, which may be the same
	struct frame_flow flow;
	uint64_t duration_tsc; // of the sending, as far as it came
	uint64_t last_poll_tsc;
	struct generator_load load; // the next one
	struct trial_offered nobody;
};

// A probe in each interval, at a random time of it: what the switch or its machine does periodically must not always
// meet a probe, or never (RFC 3432 section 4.1).
static inline void probe_schedule(struct generator *g)
{
	uint64_t hash = draw_hash(g->flow.stream, g->probe_slot_tsc);

	g->probe_due_tsc =
	        g->probe_slot_tsc + (uint64_t)((unsigned __int128)hash * g->probe_interval_tsc >> 64);
}

// Choose which of the n frames that are next becomes a probe, if one is due: its place in the burst rotates,
// since the first frame of every burst would not be a fair sample. Due times that went by unused are not
// caught up.
static inline void probe_choose(struct generator *g, uint16_t n, uint64_t now_tsc)
{
	if (g->probe_interval_tsc == 0 || now_tsc < g->probe_due_tsc)
		return;
	g->probe_slot_tsc += g->probe_interval_tsc;
	if (g->probe_slot_tsc + g->probe_interval_tsc <= now_tsc)
		g->probe_slot_tsc = now_tsc;
	probe_schedule(g);
	if (g->probe_index == PROBE_NONE)
		g->probe_index = (int16_t)(g->probes % n);
}

// The device stamps one frame at a time. A stamp that came when nobody waited for it any more is of another frame.
// Returns the template of the probe.
static __attribute__((noinline, cold)) const struct frame_template *probe_mark(struct generator *g)
{
	const struct port *port = g->task.ports[0];
	uint64_t late_ns;

	if (g->marked)
		return &g->template;
	port->ops->stamp_sent(port, &late_ns);
	port->ops->stamp_next(port, g->task.queue, (unsigned)g->probe_index);
	return &g->marked_template;
}

// Stamp the probe, if it is one of the n frames at data[]. As late as possible: nothing but the hand-over
// comes after.
static inline void probe_stamp(struct generator *g, uint8_t *const *data, uint16_t n)
{
	const struct frame_template *template = &g->template;

	if (g->probe_index == PROBE_NONE || g->probe_index >= n)
		return;
	if (unlikely(g->marks))
		template = probe_mark(g);
	g->probe_tsc = rte_rdtsc();
	frame_write_probe(template, data[g->probe_index], g->next_sequence + (uint32_t)g->probe_index,
	                  g->probe_tsc);
}

// The flags of frame i of a burst whose frames are all stamped.
static inline uint8_t flags_of(const struct generator *g, unsigned i)
{
	return (int)i == g->probe_index ? FRAME_FLAGS_TIMED : FRAME_FLAG_STAMPED;
}

// Write n frames, each with the time of now: they are handed over together.
static __attribute__((noinline)) void frames_write_stamped(struct generator *g, uint8_t *const *data,
                                                           uint16_t n)
{
	const struct frame_template *probe = &g->template;

	if (unlikely(g->marks && g->probe_index != PROBE_NONE && g->probe_index < n))
		probe = probe_mark(g);
	g->probe_tsc = rte_rdtsc();
	for (unsigned i = 0; i < n; i++)
		frame_write_timed((int)i == g->probe_index ? probe : &g->template, data[i],
		                  g->next_sequence + i, g->probe_tsc, flags_of(g, i));
}

// Write the next n frames, the probe among them if one is due.
static inline void frames_write(struct generator *g, uint8_t *const *data, uint16_t n, uint64_t now_tsc)
{
	probe_choose(g, n, now_tsc);
	if (unlikely(g->stamp_all)) {
		frames_write_stamped(g, data, n);
		return;
	}
	g->write(&g->template, data, n, g->next_sequence);
	probe_stamp(g, data, n);
}

// The port has the probe, whose number this is.
static __attribute__((noinline)) void probe_note(struct generator *g, uint32_t sequence)
{
	struct stamp *stamp = stamps_next(g->task.stamps);

	if (stamp == NULL)
		return;
	*stamp = (struct stamp){.in_tsc = g->probe_tsc,
	                        .out_tsc = rte_rdtsc(),
	                        .sequence = sequence,
	                        .stream = g->flow.stream};
	if (g->marks && g->marked == NULL) {
		g->marked = stamp;
		g->marked_until_tsc = stamp->out_tsc + clock_hz() / STAMP_WAITS_PER_S;
	}
}

// Account for n frames, of which the port took the first `sent`.
static inline void frames_sent(struct generator *g, uint16_t n, uint16_t sent)
{
	g->attempted += n;
	g->refused += n - sent;
	g->next_sequence += sent;
	if (g->probe_index == PROBE_NONE)
		return;
	if (g->probe_index < sent) {
		if (unlikely(g->task.stamps))
			probe_note(g, g->next_sequence - sent + (uint32_t)g->probe_index);
		g->probes++;
		g->probe_index = PROBE_NONE;
	} else {
		g->probe_index -= (int16_t)sent;
	}
}

// --- Of a profile: frame k is number k, from 0 at the start and beyond 2^32. -----------------------------

// As frames_write().
static inline void profile_frames_write(struct generator *g, uint8_t *const *data, uint16_t n,
                                        uint64_t now_tsc)
{
	bool probe;

	profile_write(g->profile, data, g->offered, n);
	probe_choose(g, n, now_tsc);
	probe = g->probe_index != PROBE_NONE && g->probe_index < n;
	if (!probe && likely(!g->stamp_all))
		return;
	if (unlikely(probe && g->marks))
		probe_mark(g);
	g->probe_tsc = rte_rdtsc();
	if (!g->stamp_all)
		profile_stamp(g->profile, data[g->probe_index], g->offered + (uint64_t)g->probe_index,
		              g->probe_tsc, FRAME_FLAG_PROBE);
	for (unsigned i = 0; g->stamp_all && i < n; i++)
		profile_stamp(g->profile, data[i], g->offered + i, g->probe_tsc, flags_of(g, i));
}

// Buffers that a port lends again and again, and which of them have the pattern of the tester frame in them.
// A buffer is known by its address and filled when it is seen for the first time: whatever the order in which
// they come, and however many there are, none is sent unfilled. Frames without pattern ask for nothing.
//
// Relies on port_lend(): between two loans nobody writes behind a frame's head. Created and freed on
// the control thread; used by one worker.

struct frame_room;

// For a port with about so many buffers; twice as many are known at a time. NULL without memory.
struct frame_room *frame_room_create(unsigned buffers);
void frame_room_free(struct frame_room *room);

// Know no buffer any more: others may have written to them, or the frames are longer now.
void frame_room_forget(struct frame_room *room);

// Put the pattern of a frame of length bytes into those of n lent buffers that do not have it, behind their first
// FRAME_STORE_BYTES.
void frame_room_fill(struct frame_room *room, uint8_t *const *data, unsigned n, uint32_t length);
