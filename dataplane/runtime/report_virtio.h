// SPDX-License-Identifier: BSD-3-Clause
// What the two ends of a virtio port have negotiated, by name, as ports.get says it.
#pragma once

#include <jansson.h>

struct port;

// {"features": [NAME, ...], "ring_sizes": [n, ...]} of a port whose other end is there; JSON null where there
// is none, or where it cannot be known: DPDK's virtio-user driver does not say. Control thread.
json_t *report_virtio(const struct port *port);
