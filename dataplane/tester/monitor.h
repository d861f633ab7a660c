// SPDX-License-Identifier: BSD-3-Clause
// Monitor task: receives on one port, checks every byte of every frame, and counts per stream what came once,
// twice, late, damaged, or from another trial. Latency of probes goes into a histogram per stream, stamped
// when the probe is looked at. So do both kinds of jitter (tester/histogram.h): of one stream at one port.
//
// Probes are kept apart by what they met between being sent and being looked at: a stall of their stream, that is a silence as
// long as ten of its frames take as a rule, in which all workers of this process polled for longer than a gap; a gap, in
// which one did not poll; or neither. Of a stall and a gap in it, what was more of the silence counts. They are in one histogram each, of which probes_received is the sum. Both
// kinds of jitter are of all probes. What a stall was spent on is not known here: switch and VNFs are other processes.
//
// received == foreign + stale + corrupt + sum over streams of (forwarded + duplicate); reordered is part of
// forwarded. forwarded_bytes counts frame sizes, with FCS. A stream's corrupt frames are those whose stream
// field can be believed.
//
// forwarded_by_tenth: frames counted within each tenth of the sending time that is over, by the polls that began in it. What
// rings give back after the sending is in none.
//
// A trial may be sampled: of MONITOR_SAMPLED bursts in turn one is looked into, drawn anew each time, for one at a fixed
// place would always be of the same slots of a ring. Of the others number and length of the frames are known, and no byte:
// they count as forwarded, in unchecked_packets too, if they have the length of the only stream that has come so far.
// Duplicates, order, damage, and frames that are not ours, are then those of the checked bursts alone. Bursts with
// another length in them, of a second stream, or of a stream whose frames are not alike, are all looked into.
//
// The longest silence of a stream: between two bursts that had frames of it, by the times at which the
// monitor was polled for them, so a turn of its worker is how fine that is. No reading of a clock is spent on
// it, and no work for a frame.
#pragma once

#include <stdint.h>

struct task;

enum { MONITOR_SAMPLED = 16 };

// Clear all counts and expect frames of this epoch, numbered from 0; others count as stale. Silences are
// told from start_tsc on. Control thread, worker parked.
void monitor_start(struct task *task, uint16_t epoch, uint64_t start_tsc);
