// SPDX-License-Identifier: BSD-3-Clause
// Time stamps of probes by the kernel (docs/design/latency.md): a packet socket beside the data path of a port with a
// kernel interface. A filter lets probes through, of what leaves or of what arrives, and the kernel writes them to a ring
// with the time at which it stamped them: just before the driver sends, and as soon as the interface has received.
// Nobody reads the ring before the trial is over, so it costs the workers nothing.
//
// Control thread only.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tester/stamps.h"

struct probe_tap;

// Look on at an interface: at what leaves it, or at what arrives. epoch: of the probes. NULL, and errno, after logging
// one line.
struct probe_tap *probe_tap_open(const char *interface, bool sent, uint16_t epoch);
void probe_tap_close(struct probe_tap *tap); // NULL is none

// Write the stamps of the kernel to the entries of the log that are of the same probes. Once: what is in the ring is
// taken out. Both are in the order of the interface.
void probe_tap_collect(struct probe_tap *tap, struct stamps *stamps);
