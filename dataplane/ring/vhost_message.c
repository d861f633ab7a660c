// SPDX-License-Identifier: BSD-3-Clause
#include "ring/vhost_message.h"

#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

_Static_assert(offsetof(struct vhost_message, payload) == VHOST_MESSAGE_HEADER, "as on the wire");

// Fields of a memory table: u32 regions, u32 padding, then of each region four u64.
enum { TABLE_HEADER = 8, REGION_BYTES = 32 };

// What the number of a request's ring is in, if any: its first four bytes, or the lowest byte of eight.
enum shape { NO_RING, RING_INDEX, RING_FILE };

// Payload size, and how many descriptors come along; both are of the memory table: by its regions.
static const struct rule {
	uint16_t size;
	uint8_t shape;
	bool allowed;
} rules[] = {
        [VHOST_USER_GET_FEATURES] = {0, NO_RING, true},
        [VHOST_USER_SET_FEATURES] = {8, NO_RING, true},
        [VHOST_USER_SET_OWNER] = {0, NO_RING, true},
        [VHOST_USER_RESET_OWNER] = {0, NO_RING, true},
        [VHOST_USER_SET_MEM_TABLE] = {0, NO_RING, true},
        [VHOST_USER_SET_VRING_NUM] = {8, RING_INDEX, true},
        [VHOST_USER_SET_VRING_ADDR] = {40, RING_INDEX, true},
        [VHOST_USER_SET_VRING_BASE] = {8, RING_INDEX, true},
        [VHOST_USER_GET_VRING_BASE] = {8, RING_INDEX, true},
        [VHOST_USER_SET_VRING_KICK] = {8, RING_FILE, true},
        [VHOST_USER_SET_VRING_CALL] = {8, RING_FILE, true},
        [VHOST_USER_SET_VRING_ERR] = {8, RING_FILE, true},
        [VHOST_USER_GET_PROTOCOL_FEATURES] = {0, NO_RING, true},
        [VHOST_USER_SET_PROTOCOL_FEATURES] = {8, NO_RING, true},
        [VHOST_USER_GET_QUEUE_NUM] = {0, NO_RING, true},
        [VHOST_USER_SET_VRING_ENABLE] = {8, RING_INDEX, true},
        [VHOST_USER_SET_STATUS] = {8, NO_RING, true},
        [VHOST_USER_GET_STATUS] = {0, NO_RING, true},
};

static const struct rule *rule_of(const struct vhost_message *message)
{
	if (message->request >= sizeof(rules) / sizeof(rules[0]) || !rules[message->request].allowed)
		return NULL;
	return &rules[message->request];
}

const char *vhost_message_bad_header(const struct vhost_message *message)
{
	const struct rule *rule = rule_of(message);

	if (rule == NULL)
		return "the request is not offered";
	if ((message->flags & ~(uint32_t)VHOST_MESSAGE_NEED_REPLY) != VHOST_MESSAGE_VERSION)
		return "it is of another version of the protocol";
	if (message->request == VHOST_USER_SET_MEM_TABLE) {
		if (message->size < TABLE_HEADER || message->size > sizeof(message->payload))
			return "its memory table has more than 8 regions, or is cut short";
	} else if (message->size != rule->size) {
		return "its size is not that of the request";
	}
	return NULL;
}

// A region is a regular file, and ends within it: the end of a mapping that is not cannot be read.
static const char *bad_region(const uint8_t *at, int fd)
{
	uint64_t region[4]; // guest address, size, driver's address, offset in the file
	struct stat file;

	memcpy(region, at, sizeof(region));
	if (fstat(fd, &file) || !S_ISREG(file.st_mode))
		return "a region of its memory is no file";
	if (region[1] == 0 || region[3] > (uint64_t)file.st_size ||
	    region[1] > (uint64_t)file.st_size - region[3])
		return "a region of its memory is empty or longer than its file";
	return NULL;
}

static const char *bad_memory(const struct vhost_message *message)
{
	const char *why = NULL;

	if (message->index > VHOST_MESSAGE_FDS || message->index != message->fd_count ||
	    message->size != TABLE_HEADER + message->index * REGION_BYTES)
		return "its memory table and the files that came with it do not match";
	for (unsigned i = 0; i < message->index && why == NULL; i++)
		why = bad_region(message->payload + TABLE_HEADER + (size_t)i * REGION_BYTES, message->fds[i]);
	return why;
}

const char *vhost_message_refused(const struct vhost_message *message, unsigned rings)
{
	const char *why = vhost_message_bad_header(message);
	unsigned files = 0, ring = 0;

	if (why)
		return why;
	if (message->request == VHOST_USER_SET_MEM_TABLE)
		return bad_memory(message);
	switch (rules[message->request].shape) {
	case RING_INDEX:
		ring = message->index;
		break;
	case RING_FILE: // bit 8: there is none
		ring = message->value & 0xff;
		files = (message->value & 0x100) == 0;
		break;
	}
	if (ring >= rings)
		return "it names a ring that no port can have";
	if (message->fd_count != files)
		return files ? "the descriptor of a ring is missing"
		             : "descriptors came that nobody asked for";
	if (message->request == VHOST_USER_SET_PROTOCOL_FEATURES &&
	    message->value & ~(uint64_t)VHOST_PROTOCOL_FEATURES)
		return "it sets protocol features that are not offered";
	return NULL;
}
