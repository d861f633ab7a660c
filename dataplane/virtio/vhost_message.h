// SPDX-License-Identifier: BSD-3-Clause
// The vhost-user protocol as its document defines it ("Message Specification"): messages, and which of them a port
// takes. Both of our ends use the numbers and layouts: the device (vhost_device.c) and the driver (frontend.c).
//
// A request that is not listed here is refused before its payload is read: so are post-copy, in-flight recovery and
// dirty logging, which no port offers.
#pragma once

#include <stdbool.h>
#include <stdint.h>

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
	PEER_REGIONS_MAX = 8, // VHOST_MEMORY_BASELINE_NREGIONS of most devices
	PEER_FILES_MAX = PEER_REGIONS_MAX,

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

struct peer_region {
	uint64_t guest_address, bytes, user_address, offset;
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

// Descriptors that came with a message and have no other owner yet.
struct peer_files {
	unsigned count;
	int fds[PEER_FILES_MAX];
};

// Why a message ended its connection. Name, as it is counted, and a sentence about the message.
#define FOR_EACH_PEER_REFUSAL(DO)                                                                            \
	DO(NOT_OFFERED, "not_offered", "the request is not offered")                                         \
	DO(NOT_NEGOTIATED, "not_negotiated", "the request was not negotiated")                               \
	DO(VERSION, "version", "it is of another version of the protocol")                                   \
	DO(SIZE, "size", "its size is not that of the request")                                              \
	DO(FILES, "descriptors", "it came with descriptors that do not belong to it, or without its own")    \
	DO(RING, "ring", "it names a ring that no port can have")                                            \
	DO(VALUE, "value", "it has a value that is not allowed")                                             \
	DO(FEATURES, "features", "it sets features that are not offered")                                    \
	DO(NO_EVENTFD, "no_eventfd", "the descriptor of a ring is no eventfd")                               \
	DO(MEMORY_FILE, "memory_file", "a region is not a memfd or a file of tmpfs or hugetlbfs")            \
	DO(MEMORY_END, "memory_end", "a region is empty or longer than its file")                            \
	DO(MEMORY_OVERLAP, "memory_overlap", "regions overlap, or run past the end of all addresses")        \
	DO(MEMORY_LIMIT, "memory_limit", "it is more memory than a driver may share")                        \
	DO(MEMORY_MAP, "memory_map", "a region cannot be mapped")                                            \
	DO(LATE, "late", "its end has not come within 5 s")                                                  \
	DO(UNREAD, "unread", "the driver does not read its replies")                                         \
	DO(BLOCKING, "blocking_eventfd", "the driver has made its eventfd block again")                      \
	DO(HOLES, "holes_punched", "pages of its memory go away again and again while they are used")        \
	DO(MEMORY_GONE, "memory_gone", "a file of its memory was truncated, or has no page left")
#define PEER_REFUSAL_NAME(name, key, text) PEER_REFUSED_##name,

enum peer_refusal { PEER_ACCEPTED, FOR_EACH_PEER_REFUSAL(PEER_REFUSAL_NAME) PEER_REFUSALS };

// Return the name of a request, or "?".
const char *vhost_request_text(uint32_t request);

// Return the key under which a refusal is counted, and its sentence.
const char *peer_refusal_key(enum peer_refusal refusal);
const char *peer_refusal_text(enum peer_refusal refusal);

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
