// SPDX-License-Identifier: BSD-3-Clause
// DPDK's environment: started once per process, from the memory part of the configuration. Control thread
// only.
#pragma once

#include "runtime/config.h"

struct rte_mempool;

// Start the EAL with the memory, name and devices of config. The calling thread becomes the main lcore and
// may run on every CPU it may run on now; workers register as further lcores. Returns 0, or -errno after
// logging one line.
int eal_start(const struct config *config);
void eal_stop(void);

// The pool that all ports receive into. NULL after logging one line.
struct rte_mempool *eal_pool_create(const struct config_memory *memory);
