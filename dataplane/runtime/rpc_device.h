// SPDX-License-Identifier: BSD-3-Clause
// Character devices that are an RPC connection: a guest's virtio port or serial line, at whose other end the
// host is.
#pragma once

#include <stdbool.h>

bool rpc_is_device(const char *path);

// Open it, not blocking; a terminal as what passes every byte as it is. Returns the descriptor, or -errno.
int rpc_device_open(const char *path);
