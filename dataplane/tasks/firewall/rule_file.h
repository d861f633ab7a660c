// SPDX-License-Identifier: BSD-3-Clause
// Lists of filter rules: from a file, text or JSON, or from a JSON array of a configuration. Pure; needs no
// EAL. What is read is hostile. A list is loaded whole or refused whole: after an error it is empty.
//
// The list owns its rules; rule_list_free() ends it. Control thread only.
#pragma once

#include <jansson.h>

#include "tasks/firewall/rule.h"

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
