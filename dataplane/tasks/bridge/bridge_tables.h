// SPDX-License-Identifier: BSD-3-Clause
// The tables of bridges, by name. Bridges with the same name, settings and ports have the same table: those
// of one document, and those that take the place of another in config.apply, which thus go on with what was
// learned. A table without a name has one user. Control thread only; a table lives as long as it has users.
#pragma once

#include "lib/mac_table.h"
#include "tasks/task.h"

// The table for a bridge on these ports: an existing one, or a new one. NULL without memory.
struct mac_table *bridge_tables_get(const struct config_task *config, struct port *const *ports);

// One user less.
void bridge_tables_put(struct mac_table *table);
