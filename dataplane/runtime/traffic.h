// SPDX-License-Identifier: BSD-3-Clause
// One burst of traffic over all generators at once: the RPC traffic.* methods. Control thread only.
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "runtime/config.h"

struct planed;
struct task;

// Clear every counter and start the generators that params name, all at one TSC. Returns {"start_tsc": n}, or
// NULL with a sentence in error; then nothing was started.
json_t *traffic_start(struct planed *planed, const json_t *params, char error[static CONFIG_ERROR_MAX]);

void traffic_stop(struct planed *planed);

bool traffic_running(const struct planed *planed);

// Every counter to zero; poll gaps count between the two TSC values.
void traffic_clear(struct planed *planed, uint64_t from_tsc, uint64_t until_tsc);

// End the log of stamps of a task, if it has one.
void traffic_stamps_free(struct task *task);
