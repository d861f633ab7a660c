// SPDX-License-Identifier: BSD-3-Clause
// A filter rule on the 5-tuple (docs/network-functions.md has the grammar). Pure; needs no EAL.
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RULE_NAME_MAX = 32, RULE_ADDRESS_BYTES = 16 };

// Addresses of one end: the first bits of address[], in network order. IPv4 has 4 bytes there.
struct rule_end {
	uint8_t family; // 4, 6, or 0: any address of either
	uint8_t prefix; // bits
	uint8_t address[RULE_ADDRESS_BYTES];
	bool names_ports;
	uint16_t port_low, port_high; // host order; all of them if none are named
};

struct rule {
	bool permit;
	bool any_protocol;
	uint8_t protocol;
	struct rule_end from, to;
	uint32_t line; // in its file, or its place in the array: from 1
	char name[RULE_NAME_MAX];
};

// Return the family of both ends: 4 or 6, or 0 for a rule of both families.
uint8_t rule_family(const struct rule *rule);

static inline bool rule_names_ports(const struct rule *rule)
{
	return rule->from.names_ports || rule->to.names_ports;
}

// Lists of filter rules: from a file, text or JSON, or from a JSON array of a configuration. Pure; needs no
// EAL. What is read is hostile. A list is loaded whole or refused whole: after an error it is empty.
//
// The list owns its rules; rule_list_free() ends it. Control thread only.

enum { RULE_LIST_MAX = 16384, RULE_ERROR_MAX = 256, RULE_FILE_BYTES_MAX = 8 << 20 };

struct rule_list {
	struct rule *rules; // in the order in which they are asked
	unsigned count, room;
	bool in_lines; // of a text file: rules[].line is a line
};

// All set *list, which need not be initialised, and return 0; or -EINVAL or -errno with a sentence in error
// (RULE_ERROR_MAX) that has the place, the text, the reason and a way out. where names the origin in it.

// JSON if the first byte that is not blank is [ or {, else text.
int rule_list_load(struct rule_list *list, const char *path, char *error);
int rule_list_parse(struct rule_list *list, const char *data, size_t length, const char *where, char *error);

// An array of objects, or of strings that are lines.
int rule_list_decode(struct rule_list *list, const json_t *array, const char *where, char *error);

void rule_list_free(struct rule_list *list);
