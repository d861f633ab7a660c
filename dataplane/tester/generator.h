// SPDX-License-Identifier: BSD-3-Clause
// Generator task: sends the tester frames of one stream on one port, paced or flat out, for a given time.
//
// A packet costs a write of 64 bytes whatever its size, and what the port asks for: mbufs, which come from a
// pool of the task's own, to devices of DPDK; nothing where the port lends its buffers; one
// copy into a guest's (generator_tx.h).
// Everything here is for the control thread; all but generator_running() with the worker parked.
//
// Conservation, paced, when done: intended == offered + unsent late + unsent ring full. Offered frames carry
// the sequence numbers 0 .. offered - 1 without a gap: a frame that the port refused keeps its number and
// goes first next time.
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct task;
struct trial_offered;

struct generator_load {
	uint16_t epoch;
	uint64_t start_tsc;
	uint64_t duration_ns;
	uint16_t frame_size_bytes; // with FCS; 0 where the profile has sizes
	double rate_pps;           // exactly one of rate_pps, line_share and flat_out is set, none with
	                           // recorded times
	double line_share;         // of the port's line rate, counted on layer 1, of frames of the mean size
	bool flat_out;
	double probe_rate_pps;         // 0 = no probes
	bool stamp_all;                // every frame has a time stamp, probes or not
	bool ptp_probes;               // those that the port's device shall stamp are PTP messages
	uint64_t nonce;                // of the frames, or 0
	struct trial_offered *offered; // of each stream; or NULL
};

// Make ready the profile of the next generator_start(), or none: NULL. One that is the same as the last, with
// files that nobody touched, is not read again. The worker may run. Returns 0, or -EINVAL with a sentence in
// error (CONFIG_ERROR_MAX); where names the load.
int generator_prepare(struct task *task, const json_t *profile, const struct generator_load *load,
                      const char *where, char *error);

// Begin to send at start_tsc. Counters start at 0. Returns 0, or -EINVAL after logging what does not fit.
int generator_start(struct task *task, const struct generator_load *load);

// End now. Slots still to come are no longer intended.
void generator_stop(struct task *task);

// From generator_start() until the last slot of the duration is dealt with. Safe while the worker runs.
bool generator_running(const struct task *task);
