// SPDX-License-Identifier: BSD-3-Clause
// What makes a decoded document valid as a whole: names that exist and differ, keys that fit the kind, and
// one user for each queue. For config.c only; pure.
#pragma once

#include "runtime/config.h"

// The words of enum config_port_kind.
extern const char *const config_port_kinds[];

// Returns 0, or -EINVAL with a sentence in error.
int config_check(const struct config *config, char error[static CONFIG_ERROR_MAX]);
