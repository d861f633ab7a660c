// SPDX-License-Identifier: BSD-3-Clause
// A vhost-user message as the protocol document defines it ("Message Specification"), and which of them a port
// accepts. Pure but for a look at the descriptors that came along. A request that is not listed here is refused:
// so are post-copy, in-flight recovery and dirty logging, which no port offers.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Requests, and their numbers: "Front-end message types".
#define VHOST_USER_REQUESTS(DO)                                                                              \
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
#define VHOST_USER_NUMBER(name, number) VHOST_USER_##name = (number),

enum vhost_user_request { VHOST_USER_REQUESTS(VHOST_USER_NUMBER) };

enum {
	VHOST_MESSAGE_HEADER = 12,
	VHOST_MESSAGE_FDS = 8, // regions of a memory table, at most
	VHOST_MESSAGE_PAYLOAD = 8 + 32 * VHOST_MESSAGE_FDS,
	VHOST_MESSAGE_VERSION = 1,
	VHOST_MESSAGE_REPLY = 1 << 2,
	VHOST_MESSAGE_NEED_REPLY = 1 << 3,
};

// What is offered of the protocol: several queues (bit 0), answers on request (3), device status (16).
#define VHOST_PROTOCOL_FEATURES (1ULL << 0 | 1ULL << 3 | 1ULL << 16)

struct __attribute__((packed, aligned(4))) vhost_message {
	uint32_t request, flags, size; // the header, as on the wire
	union {
		struct {
			uint32_t index, number;
		};
		uint64_t value;
		uint8_t payload[VHOST_MESSAGE_PAYLOAD];
	};
	int fds[VHOST_MESSAGE_FDS];
	unsigned fd_count;
};

// Return NULL if a port accepts this header, else a sentence that says why not.
const char *vhost_message_bad_header(const struct vhost_message *message);

// Return NULL if a port accepts the whole message, else a sentence that says why not. rings: how many there may
// be of them.
const char *vhost_message_refused(const struct vhost_message *message, unsigned rings);
