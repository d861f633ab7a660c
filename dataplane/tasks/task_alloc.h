// SPDX-License-Identifier: BSD-3-Clause
// What every kind's create() begins with. Control thread.
#pragma once

#include <stddef.h>

#include "tasks/task.h"

// Allocate a zeroed struct of size bytes that begins with struct task, cache-line aligned, with ops, name and
// ports set. NULL without memory, after logging one line. Free with free().
void *task_alloc(size_t size, const struct task_ops *ops, const struct config_task *config,
                 struct port *const *ports);
