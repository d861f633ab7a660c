// SPDX-License-Identifier: BSD-3-Clause
// Messages of the vhost-user protocol, as a front end sends them, and their answers. For frontend.c only. The
// peer is not believed (frontend.h): what is wrong is in the frontend's error. Descriptors stay the caller's.
#pragma once

#include <stddef.h>

#include "ring/frontend.h"

// Messages, and their numbers: "Front-end message types".
#define FOR_EACH_REQUEST(DO)                                                                                 \
	DO(GET_FEATURES, 1)                                                                                  \
	DO(SET_FEATURES, 2)                                                                                  \
	DO(SET_OWNER, 3)                                                                                     \
	DO(SET_MEM_TABLE, 5)                                                                                 \
	DO(SET_VRING_NUM, 8)                                                                                 \
	DO(SET_VRING_ADDR, 9)                                                                                \
	DO(SET_VRING_BASE, 10)                                                                               \
	DO(GET_VRING_BASE, 11)                                                                               \
	DO(SET_VRING_KICK, 12)                                                                               \
	DO(SET_VRING_CALL, 13)                                                                               \
	DO(GET_PROTOCOL_FEATURES, 15)                                                                        \
	DO(SET_PROTOCOL_FEATURES, 16)                                                                        \
	DO(GET_QUEUE_NUM, 17)                                                                                \
	DO(SET_VRING_ENABLE, 18)
#define FRONTEND_NUMBER(name, number) name = number,

enum request { FOR_EACH_REQUEST(FRONTEND_NUMBER) };

enum {
	FLAG_VERSION = 1, // "Header"
	FLAG_REPLY = 4,
	FLAG_NEED_REPLY = 8,
	F_PROTOCOL_FEATURES = 30, // VHOST_USER_F_, a feature
	PROTOCOL_F_MQ = 0,        // VHOST_USER_PROTOCOL_F_
	PROTOCOL_F_REPLY_ACK = 3,
};
#define BIT(n) (UINT64_C(1) << (n))

struct __attribute__((packed)) message {
	uint32_t request, flags, size;
	union __attribute__((packed)) {
		uint64_t number;
		struct {
			uint32_t index, number;
		} ring;
		struct __attribute__((packed)) {
			uint32_t index, flags;
			uint64_t desc, used, avail, log;
		} address;
		struct __attribute__((packed)) {
			uint32_t count, padding;
			struct {
				uint64_t guest_address, bytes, user_address, offset;
			} regions[MEMORY_TABLE_MAX];
		} memory;
	};
};
enum { HEADER_BYTES = offsetof(struct message, number) };

// A sentence into f->error. Returns rc.
int frontend_fail(struct frontend *f, int rc, enum request request, const char *what, uint64_t value);

// What the peer does from here on it must have done in time, however it spreads its answers.
void frontend_begin(struct frontend *f);

bool frontend_negotiated(const struct frontend *f, unsigned protocol_feature);

// A message, and the answer to one: exactly size bytes into answer's payload. Both return 0 or -errno.
int frontend_send(struct frontend *f, const struct message *message, const int *fds, unsigned fd_count);
int frontend_answer(struct frontend *f, enum request request, struct message *answer, uint32_t size);

// Send a message that has no answer of its own; where the device offers REPLY_ACK, it says whether it did it.
int frontend_tell(struct frontend *f, struct message *message, const int *fds, unsigned fd_count);
int frontend_tell_number(struct frontend *f, enum request request, uint64_t number, uint32_t size);
int frontend_tell_ring(struct frontend *f, enum request request, unsigned index, uint32_t number);
int frontend_tell_fd(struct frontend *f, enum request request, unsigned index, int fd);

// Send a message whose answer is a number.
int frontend_ask(struct frontend *f, enum request request, uint64_t *number);
