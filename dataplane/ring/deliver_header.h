// SPDX-License-Identifier: BSD-3-Clause
// The virtio-net header that we write before each frame: no offload, one buffer (virtio 1.2 s5.1.6.4).
#pragma once

#include <stdint.h>
#include <string.h>

#include <linux/virtio_net.h>

#include "ring/ring.h"

_Static_assert(sizeof(struct virtio_net_hdr_mrg_rxbuf) == RING_HEADER, "virtio 1.2 s5.1.6");
_Static_assert(sizeof(struct virtio_net_hdr) == RING_HEADER_LEGACY, "virtio 1.2 s5.1.6.1");

// header_bytes: RING_HEADER or RING_HEADER_LEGACY. Two stores.
static inline void header_write(uint8_t *at, uint32_t header_bytes)
{
	const uint64_t zero = 0;
	const uint32_t one_buffer = 1 << 16; // behind the last two bytes of the legacy header

	memcpy(at, &zero, sizeof(zero));
	if (header_bytes == RING_HEADER)
		memcpy(at + sizeof(zero), &one_buffer, sizeof(one_buffer));
	else
		memcpy(at + sizeof(zero), &zero, RING_HEADER_LEGACY - sizeof(zero));
}
