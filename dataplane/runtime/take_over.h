// SPDX-License-Identifier: BSD-3-Clause
// One planed takes over from another that runs, by its control socket (planed --take-over). Control thread, before it serves.
#pragma once

#include <stdbool.h>

#include "runtime/config.h"

struct take_over {
	const char *path; // of the other's socket
	int fd, pidfd;    // connected to it; its process
};

// Connect to the planed that listens on path. Returns 0, or -errno after logging one line.
int take_over_begin(struct take_over *old, const char *path);

// Whether all ports can be opened while the other has them: those of our own that listen, and packet sockets. Then both
// run for a moment, and frames of packet sockets that come in it are forwarded twice rather than not at all. Else the other
// has to end first.
bool take_over_overlaps(const struct config *config);

// Have the other write its snapshots; it forwards on. Returns 0, or -errno after logging one line.
int take_over_keep(const struct take_over *old);

// Have it end, and wait until it has. Returns 0, or -errno after logging one line: it runs on.
int take_over_end(const struct take_over *old);

void take_over_close(struct take_over *old);
