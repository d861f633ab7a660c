// SPDX-License-Identifier: BSD-3-Clause
// Monitor task: receives on one port, checks every byte of every frame, and counts per stream what came once,
// twice, late, damaged, or from another trial. Latency of probes goes into a histogram per stream, stamped
// when the probe is looked at. So do both kinds of jitter (jitter.h): of one stream at one port.
//
// received == foreign + stale + corrupt + sum over streams of (forwarded + duplicate); reordered is part of
// forwarded. forwarded_bytes counts frame sizes, with FCS. A stream's corrupt frames are those whose stream
// field can be believed.
#pragma once

#include <stdint.h>

struct task;

// Clear all counts and expect frames of this epoch, numbered from 0; others count as stale. Control thread,
// worker parked.
void monitor_start(struct task *task, uint16_t epoch);
