// SPDX-License-Identifier: BSD-3-Clause
// What stats.get and ports.get answer. Control thread only, while workers run.
#pragma once

#include <jansson.h>

struct planed;

json_t *report_ports(const struct planed *planed); // {"ports": [...]}

// What a kind of task would make of an object without being one: asked is {KIND: OBJECT}. NULL with a sentence in error
// (CONFIG_ERROR_MAX).
json_t *report_facts(const json_t *asked, char *error);

// NULL with a sentence in error (CONFIG_ERROR_MAX) if a worker stands or does not park.
json_t *report_stats(const struct planed *planed, char *error);
