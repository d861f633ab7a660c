// SPDX-License-Identifier: BSD-3-Clause
// The key "bridge" of a task (docs/design/planed-protocol.md): decoding and checking. Pure; struct
// config_bridge is in config.h. Errors are sentences that name the key, as everywhere in the document.
#pragma once

#include "runtime/config.h"

// What a bridge without the key has.
void config_bridge_default(struct config_bridge *bridge);

// Decode the value of the key over the defaults. Returns 0, or -EINVAL with a sentence in error.
int config_bridge_decode(const json_t *value, void *bridge, const char *where, char *error);

// That the task may have the key, that it fits its ports, and that tasks before it which share its table
// agree.
int config_bridge_check(const struct config *config, const struct config_task *task, char *error);
