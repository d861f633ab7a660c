// SPDX-License-Identifier: BSD-3-Clause
// The offloads among a device's features, and what of them two ends have agreed upon.
#pragma once

#include <linux/virtio_config.h>
#include <linux/virtio_net.h>
#include <stdbool.h>
#include <stdint.h>

// USO, which the headers of older systems do not have.
enum {
	OFFLOAD_F_GUEST_USO4 = 54,
	OFFLOAD_F_GUEST_USO6 = 55,
	OFFLOAD_F_HOST_USO = 56,
	OFFLOAD_GSO_UDP_L4 = 5,
};

// What a device with offloads offers beside its other features. UFO is not among it: it makes fragments.
#define OFFLOAD_FEATURE(n) (UINT64_C(1) << (n))
#define OFFLOAD_FEATURES                                                                                     \
	(OFFLOAD_FEATURE(VIRTIO_NET_F_CSUM) | OFFLOAD_FEATURE(VIRTIO_NET_F_GUEST_CSUM) |                     \
	 OFFLOAD_FEATURE(VIRTIO_NET_F_GUEST_TSO4) | OFFLOAD_FEATURE(VIRTIO_NET_F_GUEST_TSO6) |               \
	 OFFLOAD_FEATURE(VIRTIO_NET_F_GUEST_ECN) | OFFLOAD_FEATURE(VIRTIO_NET_F_HOST_TSO4) |                 \
	 OFFLOAD_FEATURE(VIRTIO_NET_F_HOST_TSO6) | OFFLOAD_FEATURE(VIRTIO_NET_F_HOST_ECN) |                  \
	 OFFLOAD_FEATURE(OFFLOAD_F_GUEST_USO4) | OFFLOAD_FEATURE(OFFLOAD_F_GUEST_USO6) |                     \
	 OFFLOAD_FEATURE(OFFLOAD_F_HOST_USO))

// What a sender may ask for, or a receiver accepts.
enum offload_bits {
	OFFLOAD_CSUM = 1 << 0,
	OFFLOAD_TSO4 = 1 << 1,
	OFFLOAD_TSO6 = 1 << 2,
	OFFLOAD_ECN = 1 << 3,
	OFFLOAD_USO4 = 1 << 4,
	OFFLOAD_USO6 = 1 << 5,
};

// Return the bits of these features: of a receiver (writable), or a sender. Without checksums there is nothing else.
static inline uint8_t offload_negotiated(uint64_t features, bool writable)
{
	static const struct {
		uint8_t bits, host, guest;
	} of[] = {
	        {OFFLOAD_CSUM, VIRTIO_NET_F_CSUM, VIRTIO_NET_F_GUEST_CSUM},
	        {OFFLOAD_TSO4, VIRTIO_NET_F_HOST_TSO4, VIRTIO_NET_F_GUEST_TSO4},
	        {OFFLOAD_TSO6, VIRTIO_NET_F_HOST_TSO6, VIRTIO_NET_F_GUEST_TSO6},
	        {OFFLOAD_ECN, VIRTIO_NET_F_HOST_ECN, VIRTIO_NET_F_GUEST_ECN},
	        {OFFLOAD_USO4, OFFLOAD_F_HOST_USO, OFFLOAD_F_GUEST_USO4},
	        {OFFLOAD_USO6, OFFLOAD_F_HOST_USO, OFFLOAD_F_GUEST_USO6},
	};
	uint8_t bits = 0;

	for (unsigned i = 0; i < sizeof(of) / sizeof(of[0]); i++)
		if (features >> (writable ? of[i].guest : of[i].host) & 1)
			bits |= of[i].bits;
	return bits & OFFLOAD_CSUM ? bits : 0; // s5.1.3.1: all others need it
}
