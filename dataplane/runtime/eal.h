// SPDX-License-Identifier: BSD-3-Clause
// DPDK's environment: started once per process, from the memory part of the configuration. Control thread
// only.
#pragma once

#include "runtime/config.h"

struct rte_mempool;

// The command line of the EAL. argv points into the configuration and into this struct.
struct eal_arguments {
	int argc;
	char *argv[16 + 2 * CONFIG_PORTS_MAX];
	char lcores[4096], prefix[64], memory[16];
};

// Write the command line for config. Only PCI devices that config names are allowed; without one the PCI bus is
// left alone. The main lcore is on the node of the first PCI port, else of the first worker, if this process may
// run there.
void eal_arguments(const struct config *config, struct eal_arguments *arguments);

// Start the EAL with the memory, name and devices of config. The calling thread becomes the main lcore; workers
// register as further lcores. Returns 0, or -errno after logging one line.
int eal_start(const struct config *config);
void eal_stop(void);

// The pool that all ports receive into. NULL after logging one line.
struct rte_mempool *eal_pool_create(const struct config_memory *memory);
