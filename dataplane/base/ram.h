// SPDX-License-Identifier: BSD-3-Clause
// The memory that this process may have: the machine's without its hugepages, or that of a memory cgroup that the process
// is in (v1 or v2), whichever leaves less.
#pragma once

#include <stdint.h>

struct ram {
	uint64_t total, available; // bytes; available counts what the kernel can drop of its caches
};

// root: "", or for tests a folder that has proc and sys in it. Unknown: UINT64_MAX. Reads about ten small files.
struct ram ram_read(const char *root);
