// SPDX-License-Identifier: BSD-3-Clause
// The vhost-user protocol as its document defines it ("Message Specification"): messages, and which of them a port
// takes. Both of our ends use the numbers and layouts: the device (vhost_device.c) and the driver (frontend.c).
//
// A request that is not listed here is refused before its payload is read: so are post-copy, in-flight recovery and
// dirty logging, which no port offers.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "shm/peer.h"

// Name, number.
#define FOR_EACH_VHOST_REQUEST(DO)                                                                           \
	DO(GET_FEATURES, 1)                                                                                  \
	DO(SET_FEATURES, 2)                                                                                  \
	DO(SET_OWNER, 3)                                                                                     \
	DO(RESET_OWNER, 4)                                                                                   \
	DO(SET_MEM_TABLE, 5)                                                                                 \
	DO(SET_VRING_NUM, 8)                                                                                 \
	DO(SET_VRING_ADDR, 9)                                                                                \
	DO(SET_VRING_BASE, 10)                                                                               \
	DO(GET_VRING_BASE, 11)                                                                               \
	DO(SET_VRING_KICK, 12)                                                                               \
	DO(SET_VRING_CALL, 13)                                                                               \
	DO(SET_VRING_ERR, 14)                                                                                \
	DO(GET_PROTOCOL_FEATURES, 15)                                                                        \
	DO(SET_PROTOCOL_FEATURES, 16)                                                                        \
	DO(GET_QUEUE_NUM, 17)                                                                                \
	DO(SET_VRING_ENABLE, 18)                                                                             \
	DO(SET_STATUS, 39)                                                                                   \
	DO(GET_STATUS, 40)
#define VHOST_REQUEST_NUMBER(name, number) VHOST_USER_##name = number,

enum vhost_request { FOR_EACH_VHOST_REQUEST(VHOST_REQUEST_NUMBER) };

#define VHOST_BIT(n) (UINT64_C(1) << (n))

enum {
	VHOST_MESSAGE_HEADER = 12,

	VHOST_FLAG_VERSION = 1, // "Header"
	VHOST_FLAG_VERSION_MASK = 3,
	VHOST_FLAG_REPLY = 1 << 2,
	VHOST_FLAG_NEED_REPLY = 1 << 3,

	VHOST_F_PROTOCOL_FEATURES = 30, // a feature
	VHOST_PROTOCOL_F_MQ = 0,
	VHOST_PROTOCOL_F_REPLY_ACK = 3,
	VHOST_PROTOCOL_F_STATUS = 16,

	VHOST_NO_FILE = 1 << 8, // in the number of a ring, "vring descriptor index"
	VHOST_ADDRESS_LOG = 1,  // in the flags of a ring's addresses
};

// As on the wire. The members of the union are named by what they are in the document.
struct __attribute__((packed, aligned(4))) vhost_message {
	uint32_t request, flags, size;
	union {
		uint64_t value;
		struct {
			uint32_t index, number;
		} ring;
		struct __attribute__((packed)) {
			uint32_t index, flags;
			uint64_t desc, used, avail, log;
		} address;
		struct __attribute__((packed)) {
			uint32_t count, padding;
			struct peer_region regions[PEER_REGIONS_MAX];
		} memory;
	};
};

// Return the name of a request, or "?".
const char *vhost_request_text(uint32_t request);

// Whether a device takes a message with this header, of which so many descriptors have come with the header.
enum peer_refusal vhost_message_check_header(const struct vhost_message *message, unsigned files,
                                             uint64_t protocol_features);

// Whether it takes the whole message: all that can be said without a look at the descriptors. rings: how many there
// may be of them.
enum peer_refusal vhost_message_check(const struct vhost_message *message, unsigned files, unsigned rings);

// Return the ring that a message with a descriptor (SET_VRING_KICK, CALL, ERR) is of.
static inline unsigned vhost_message_file_ring(const struct vhost_message *message)
{
	return message->value & 0xff;
}
