// SPDX-License-Identifier: BSD-3-Clause
#include "virtio/vhost_message.h"

#include <stddef.h>

_Static_assert(offsetof(struct vhost_message, value) == VHOST_MESSAGE_HEADER, "as on the wire");
_Static_assert(sizeof(struct vhost_message) == VHOST_MESSAGE_HEADER + 8 + 32 * PEER_REGIONS_MAX,
               "without gaps");

enum { TABLE_HEADER = 8 };

// Where the number of a request's ring is, if it has one.
enum shape { NO_RING, RING_INDEX, RING_FILE, MEMORY_TABLE };

// What a device takes. needs: a protocol feature, plus one; 0: none.
static const struct rule {
	bool allowed;
	uint8_t size; // of the payload
	uint8_t shape;
	uint8_t needs;
} rules[] = {
        [VHOST_USER_GET_FEATURES] = {true, 0, NO_RING, 0},
        [VHOST_USER_SET_FEATURES] = {true, 8, NO_RING, 0},
        [VHOST_USER_SET_OWNER] = {true, 0, NO_RING, 0},
        [VHOST_USER_RESET_OWNER] = {true, 0, NO_RING, 0},
        [VHOST_USER_SET_MEM_TABLE] = {true, 0, MEMORY_TABLE, 0},
        [VHOST_USER_SET_VRING_NUM] = {true, 8, RING_INDEX, 0},
        [VHOST_USER_SET_VRING_ADDR] = {true, 40, RING_INDEX, 0},
        [VHOST_USER_SET_VRING_BASE] = {true, 8, RING_INDEX, 0},
        [VHOST_USER_GET_VRING_BASE] = {true, 8, RING_INDEX, 0},
        [VHOST_USER_SET_VRING_KICK] = {true, 8, RING_FILE, 0},
        [VHOST_USER_SET_VRING_CALL] = {true, 8, RING_FILE, 0},
        [VHOST_USER_SET_VRING_ERR] = {true, 8, RING_FILE, 0},
        [VHOST_USER_GET_PROTOCOL_FEATURES] = {true, 0, NO_RING, 0},
        [VHOST_USER_SET_PROTOCOL_FEATURES] = {true, 8, NO_RING, 0},
        [VHOST_USER_GET_QUEUE_NUM] = {true, 0, NO_RING, 0},
        [VHOST_USER_SET_VRING_ENABLE] = {true, 8, RING_INDEX, 0},
        [VHOST_USER_SET_STATUS] = {true, 8, NO_RING, VHOST_PROTOCOL_F_STATUS + 1},
        [VHOST_USER_GET_STATUS] = {true, 0, NO_RING, VHOST_PROTOCOL_F_STATUS + 1},
};

#define REQUEST_TEXT(name, number) [number] = #name,

const char *vhost_request_text(uint32_t request)
{
	static const char *const texts[] = {FOR_EACH_VHOST_REQUEST(REQUEST_TEXT)};

	return request < sizeof(texts) / sizeof(texts[0]) && texts[request] ? texts[request] : "?";
}

static const struct rule *rule_of(const struct vhost_message *message)
{
	if (message->request >= sizeof(rules) / sizeof(rules[0]) || !rules[message->request].allowed)
		return NULL;
	return &rules[message->request];
}

static unsigned most_files(const struct rule *rule)
{
	return rule->shape == MEMORY_TABLE ? PEER_REGIONS_MAX : rule->shape == RING_FILE;
}

static bool table_fits(uint32_t size)
{
	return size >= TABLE_HEADER && (size - TABLE_HEADER) % sizeof(struct peer_region) == 0 &&
	       size <= TABLE_HEADER + PEER_REGIONS_MAX * sizeof(struct peer_region);
}

enum peer_refusal vhost_message_check_header(const struct vhost_message *message, unsigned files,
                                             uint64_t protocol_features)
{
	const struct rule *rule = rule_of(message);

	if (rule == NULL)
		return PEER_REFUSED_NOT_OFFERED;
	if (rule->needs && !(protocol_features & VHOST_BIT(rule->needs - 1)))
		return PEER_REFUSED_NOT_NEGOTIATED;
	if ((message->flags & ~(uint32_t)VHOST_FLAG_NEED_REPLY) != VHOST_FLAG_VERSION)
		return PEER_REFUSED_VERSION;
	if (rule->shape == MEMORY_TABLE ? !table_fits(message->size) : message->size != rule->size)
		return PEER_REFUSED_SIZE;
	return files > most_files(rule) ? PEER_REFUSED_FILES : PEER_ACCEPTED;
}

static enum peer_refusal check_table(const struct vhost_message *message, unsigned files)
{
	if (message->memory.count > PEER_REGIONS_MAX ||
	    message->size != TABLE_HEADER + message->memory.count * sizeof(struct peer_region))
		return PEER_REFUSED_SIZE;
	return files == message->memory.count ? PEER_ACCEPTED : PEER_REFUSED_FILES;
}

enum peer_refusal vhost_message_check(const struct vhost_message *message, unsigned files, unsigned rings)
{
	unsigned ring = 0, wanted = 0;

	switch (rules[message->request].shape) {
	case MEMORY_TABLE:
		return check_table(message, files);
	case RING_INDEX:
		ring = message->ring.index;
		break;
	case RING_FILE:
		if (message->value & ~(uint64_t)(VHOST_NO_FILE | 0xff))
			return PEER_REFUSED_VALUE;
		ring = vhost_message_file_ring(message);
		wanted = (message->value & VHOST_NO_FILE) == 0;
		break;
	}
	if (ring >= rings)
		return PEER_REFUSED_RING;
	return files == wanted ? PEER_ACCEPTED : PEER_REFUSED_FILES;
}
