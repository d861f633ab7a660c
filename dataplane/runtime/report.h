// SPDX-License-Identifier: BSD-3-Clause
// What stats.get and ports.get answer. Control thread only; stats with the workers parked.
#pragma once

#include <jansson.h>

struct planed;

json_t *report_ports(const struct planed *planed); // {"ports": [...]}
json_t *report_stats(const struct planed *planed);

// Add to the stats what takes long and needs no parked workers: the sizes of bridges' tables.
void report_tables(const struct planed *planed, json_t *stats);

// Remember the ports' counters as the new zero; ethdev counters are never reset, their drivers differ in how.
void report_clear_ports(const struct planed *planed);
