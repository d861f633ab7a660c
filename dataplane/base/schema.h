// SPDX-License-Identifier: BSD-3-Clause
// Closed JSON objects into C structs, driven by a table of fields. Pure; needs no EAL. An unknown key, a
// wrong type or a value out of range is an error that names the key, the value and what is valid.
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"

enum field_type {
	FIELD_STRING, // char[size]
	FIELD_NAME,   // char[size], [a-z0-9_-]+
	FIELD_UINT,   // uint16_t, uint32_t or uint64_t by size
	FIELD_INT,    // int
	FIELD_REAL,   // double
	FIELD_BOOL,   // bool
	FIELD_CHOICE, // enum (int): index into choices
	FIELD_MAC,    // uint8_t[6]
	FIELD_IPV4,   // uint32_t, host byte order
	FIELD_ARRAY, // array of at most max items, each as the type item says; their count goes to count_offset
	FIELD_OBJECT, // struct with a table of its own: fields
	FIELD_CUSTOM, // by a function of its own: decode
	FIELD_ANY,    // left to the caller
};

struct field {
	const char *key;
	enum field_type type;
	size_t offset, size;
	bool required;
	double min, max;            // numbers: valid range; arrays: number of items
	enum field_type item;       // of an array
	size_t count_offset;        // of an unsigned
	const char *const *choices; // NULL-terminated
	const struct field *fields; // offsets in the inner struct

	// As schema_decode(), of any value, which where names (79 characters at most).
	int (*decode)(const json_t *value, void *out, const char *where, char *error);
};

#define FIELD(type_, struct_, member_)                                                                       \
	.type = (type_), .offset = offsetof(struct_, member_), .size = sizeof(((struct_ *)0)->member_)

// The same with the key, and what a type needs besides.
#define UINT_FIELD(key_, struct_, member_, min_, max_)                                                       \
	.key = (key_), FIELD(FIELD_UINT, struct_, member_), .min = (min_), .max = (max_)
#define REAL_FIELD(key_, struct_, member_, min_, max_)                                                       \
	.key = (key_), FIELD(FIELD_REAL, struct_, member_), .min = (min_), .max = (max_)
#define CHOICE_FIELD(key_, struct_, member_, choices_)                                                       \
	.key = (key_), FIELD(FIELD_CHOICE, struct_, member_), .choices = (choices_)
#define CUSTOM_FIELD(key_, struct_, member_, decode_)                                                        \
	.key = (key_), FIELD(FIELD_CUSTOM, struct_, member_), .decode = (decode_)
#define ARRAY_FIELD(key_, item_, struct_, member_, count_, min_, max_)                                       \
	.key = (key_), FIELD(FIELD_ARRAY, struct_, member_), .item = (item_), .min = (min_), .max = (max_),  \
	.count_offset = offsetof(struct_, count_)

// Decode object by fields[] (ends with a NULL key) into out; keys that are absent leave out as it is. where
// names the object in messages ("ports[2]", 47 characters at most). Returns 0, or -EINVAL with a sentence in
// error.
int schema_decode(const json_t *object, const struct field *fields, void *out, const char *where,
                  char error[static CONFIG_ERROR_MAX]);

// The same, but for keys that are in others[], which somebody else decodes; SCHEMA_ANY: whatever is not in fields[].
#define SCHEMA_ANY ((const struct field *)1)
int schema_decode_beside(const json_t *object, const struct field *fields, const struct field *others,
                         void *out, const char *where, char error[static CONFIG_ERROR_MAX]);

// A set of VLANs: an array of numbers, or "all". A bit for each; that of VLAN 0, which is none, says that the set has some.
enum { VLAN_IDS = 4096, VLAN_ID_MAX = 4094, VLAN_WORDS = VLAN_IDS / 64 };
int schema_decode_vlans(const json_t *value, uint64_t bits[static VLAN_WORDS], const char *where,
                        char *error);

static inline bool vlans_have(const uint64_t bits[static VLAN_WORDS], unsigned vlan)
{
	return vlan < VLAN_IDS && bits[vlan / 64] >> vlan % 64 & 1;
}

// Write a sentence of at most CONFIG_ERROR_MAX bytes to error and return -EINVAL: the way in which everything that
// reads what users wrote refuses it.
int config_error(char *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define config_error_null(...) (config_error(__VA_ARGS__), NULL)

// Read a MAC address like 02:00:00:00:00:01. NULL is none. Returns whether it was one.
bool schema_mac(const char *text, uint8_t mac[static 6]);

// Return a MAC address as the text that schema_mac() reads.
json_t *schema_mac_json(const uint8_t mac[static 6]);
