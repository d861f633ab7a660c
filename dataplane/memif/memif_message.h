// SPDX-License-Identifier: BSD-3-Clause
// Memif 2.0 as libmemif, VPP and DPDK's driver speak it: messages of a SOCK_SEQPACKET connection, and the rings in memory
// that both ends map. The client makes the memory, and tells the server where rings and buffers are:
//
//   server: HELLO; client: INIT, one ADD_REGION for each file, one ADD_RING for each ring, CONNECT, each after the answer
//   (ACK) to the one before; server: CONNECTED. Either: DISCONNECT.
#pragma once

#include <stdint.h>

enum {
	MEMIF_VERSION = 2 << 8,
	MEMIF_COOKIE = 0x3E31F20, // of a ring
	MEMIF_NAME_BYTES = 32,
	MEMIF_SECRET_BYTES = 24,
	MEMIF_REASON_BYTES = 96,
	MEMIF_LOG2_SIZE_MAX = 14, // of a ring: what all speakers take
	MEMIF_MODE_ETHERNET = 0,
	MEMIF_RING_TO_SERVER = 1, // in the flags of ADD_RING: the client sends
	MEMIF_MASK_DOORBELL = 1,  // in those of a ring, by who receives: do not ring
	MEMIF_NEXT = 1,           // in those of a descriptor: the frame goes on in the next
};

enum memif_type {
	MEMIF_NONE,
	MEMIF_ACK,
	MEMIF_HELLO,
	MEMIF_INIT,
	MEMIF_ADD_REGION,
	MEMIF_ADD_RING,
	MEMIF_CONNECT,
	MEMIF_CONNECTED,
	MEMIF_DISCONNECT,
};

// As on the wire: always all of it.
struct __attribute__((packed, aligned(2))) memif_message {
	uint16_t type;
	union {
		struct __attribute__((packed)) {
			char name[MEMIF_NAME_BYTES];
			uint16_t version_min, version_max;
			uint16_t region_max, ring_to_client_max, ring_to_server_max; // the highest index
			uint8_t log2_size_max;
		} hello;
		struct __attribute__((packed)) {
			uint16_t version;
			uint32_t id;
			uint8_t mode;
			char secret[MEMIF_SECRET_BYTES], name[MEMIF_NAME_BYTES];
		} init;
		struct __attribute__((packed)) {
			uint16_t index;
			uint64_t bytes;
		} region;
		struct __attribute__((packed)) {
			uint16_t flags, index, region;
			uint32_t offset;
			uint8_t log2_size;
			uint16_t private_bytes;
		} ring;
		char interface[MEMIF_NAME_BYTES]; // CONNECT, CONNECTED
		struct __attribute__((packed)) {
			uint32_t code;
			char reason[MEMIF_REASON_BYTES];
		} disconnect;
		uint8_t bytes[126];
	};
};
_Static_assert(sizeof(struct memif_message) == 128, "all speakers send so many bytes");

// length: of the frame, or of the buffer that it may fill. Offsets begin with the region.
struct memif_descriptor {
	uint16_t flags, region;
	uint32_t length, offset, metadata;
};
_Static_assert(sizeof(struct memif_descriptor) == 16, "memif 2.0");

// head: the client's index, tail: the server's. Who sends to the server makes frames visible by head and gets buffers back
// by tail; who sends to the client has buffers by head and makes frames visible by tail.
struct memif_shared {
	uint32_t cookie;
	uint16_t flags, head;
	uint8_t line0[56];
	uint16_t tail;
	uint8_t line1[62];
	struct memif_descriptor descriptors[];
};
_Static_assert(sizeof(struct memif_shared) == 128, "memif 2.0");
