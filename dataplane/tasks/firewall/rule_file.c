// SPDX-License-Identifier: BSD-3-Clause
#include "tasks/firewall/rule_file.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/schema.h"
#include "lib/input_file.h"

enum { LINE_MAX_BYTES = 255, SHOWN_MAX = 48, WHERE_MAX = 40, PLACE_MAX = WHERE_MAX + 24, ROOM_FIRST = 64 };

#define REFUSE(...) (snprintf(error, RULE_ERROR_MAX, __VA_ARGS__), -EINVAL)

void rule_list_free(struct rule_list *list)
{
	free(list->rules);
	*list = (struct rule_list){0};
}

static struct rule *rule_add(struct rule_list *list, const char *where, char *error)
{
	if (list->count == RULE_LIST_MAX) {
		(void)REFUSE("%s: more than %d rules; use fewer", where, RULE_LIST_MAX);
		return NULL;
	}
	if (list->count == list->room) {
		unsigned room = list->room ? 2 * list->room : ROOM_FIRST;
		struct rule *rules = realloc(list->rules, room * sizeof(*rules));

		if (!rules) {
			(void)REFUSE("%s: no memory for %u rules", where, room);
			return NULL;
		}
		list->rules = rules;
		list->room = room;
	}
	rule_default(&list->rules[list->count]);
	return &list->rules[list->count++];
}

// --- Text ------------------------------------------------------------------------------------------------

// What of a line is in a message: no byte that a terminal or JSON could mind.
static const char *shown(const char *line, size_t length, char *out)
{
	size_t kept = length < SHOWN_MAX - 1 ? length : SHOWN_MAX - 1;

	for (size_t i = 0; i < kept; i++)
		out[i] = isascii(line[i]) && isprint(line[i]) && line[i] != '"' ? line[i] : '?';
	out[kept] = '\0';
	return out;
}

static bool is_odd(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!isascii(text[i]) || (iscntrl(text[i]) && text[i] != '\t' && text[i] != '\r'))
			return true;
	return false;
}

// place: where the line is, for messages; number: what its rule is told to be at.
static int line_add(struct rule_list *list, const char *line, size_t length, uint32_t number,
                    const char *place, char *error)
{
	char text[LINE_MAX_BYTES + 1], text_shown[SHOWN_MAX], reason[RULE_REASON_MAX] = "";
	const char *comment = memchr(line, '#', length);
	size_t used = comment ? (size_t)(comment - line) : length;
	struct rule *rule;

	while (used && isspace((unsigned char)line[used - 1]))
		used--;
	if (used == 0)
		return 0;
	shown(line, used, text_shown);
	if (used > LINE_MAX_BYTES)
		return REFUSE("%s: \"%s...\": longer than %d bytes; is it a rule?", place, text_shown,
		              LINE_MAX_BYTES);
	if (is_odd(line, used))
		return REFUSE("%s: \"%s\": not plain text; write ASCII", place, text_shown);
	rule = rule_add(list, place, error);
	if (!rule)
		return -EINVAL;
	memcpy(text, line, used);
	text[used] = '\0';
	if (rule_parse_line(text, rule, reason) != 0)
		return REFUSE("%s: \"%s\": %s", place, text_shown, reason);
	rule->line = number;
	return 0;
}

static int text_parse(struct rule_list *list, const char *data, size_t length, const char *where, char *error)
{
	const char *end = data + length;
	uint32_t number = 1;
	int status = 0;

	list->in_lines = true;
	for (const char *line = data; line < end && status == 0; number++) {
		const char *stop = memchr(line, '\n', (size_t)(end - line));
		char place[PLACE_MAX];

		stop = stop ? stop : end;
		snprintf(place, sizeof(place), "%.*s:%u", WHERE_MAX - 1, where, number);
		status = line_add(list, line, (size_t)(stop - line), number, place, error);
		line = stop + 1;
	}
	return status;
}

// --- JSON ------------------------------------------------------------------------------------------------

// What a setter says, after where: schema.h's errors are RULE_ERROR_MAX.
static int told(int status, const char *where, const char *reason, char *error)
{
	return status == 0 ? 0 : REFUSE("%s: %s", where, reason);
}

// A string, or a number that is meant as one. NULL for anything else.
static const char *text_of(const json_t *value, char number[static 24])
{
	if (json_is_integer(value)) {
		snprintf(number, 24, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		return number;
	}
	// Not one that ends before its end.
	return json_is_string(value) && strlen(json_string_value(value)) == json_string_length(value)
	               ? json_string_value(value)
	               : NULL;
}

static int decode_by(const json_t *value, void *out, int (*set)(void *, const char *, char *),
                     const char *where, char *error)
{
	char number[24], reason[RULE_REASON_MAX] = "";
	const char *text = text_of(value, number);

	if (!text)
		return REFUSE("%s: expected a string", where);
	return told(set(out, text, reason), where, reason, error);
}

#define DECODER(name_, type_)                                                                                \
	static int set_##name_(void *out, const char *text, char *error)                                     \
	{                                                                                                    \
		return rule_set_##name_((type_ *)out, text, error);                                          \
	}                                                                                                    \
	static int decode_##name_(const json_t *value, void *out, const char *where, char *error)            \
	{                                                                                                    \
		return decode_by(value, out, set_##name_, where, error);                                     \
	}

DECODER(action, struct rule)
DECODER(protocol, struct rule)
DECODER(name, struct rule)
DECODER(address, struct rule_end)
DECODER(ports, struct rule_end)

static const struct field rule_fields[] = {
        {.key = "action", .type = FIELD_CUSTOM, .decode = decode_action, .required = true},
        {.key = "protocol", .type = FIELD_CUSTOM, .decode = decode_protocol},
        {.key = "from", FIELD(FIELD_CUSTOM, struct rule, from), .decode = decode_address},
        {.key = "from_port", FIELD(FIELD_CUSTOM, struct rule, from), .decode = decode_ports},
        {.key = "to", FIELD(FIELD_CUSTOM, struct rule, to), .decode = decode_address},
        {.key = "to_port", FIELD(FIELD_CUSTOM, struct rule, to), .decode = decode_ports},
        {.key = "name", .type = FIELD_CUSTOM, .decode = decode_name},
        {0},
};

static int decode_object(struct rule_list *list, const json_t *object, const char *where, char *error)
{
	struct rule *rule = rule_add(list, where, error);
	char reason[RULE_REASON_MAX] = "";

	if (!rule || schema_decode(object, rule_fields, rule, where, error) != 0)
		return -EINVAL;
	rule->line = list->count;
	return told(rule_check(rule, reason), where, reason, error);
}

static int decode_item(struct rule_list *list, const json_t *item, const char *where, char *error)
{
	unsigned before = list->count;

	if (!json_is_string(item))
		return decode_object(list, item, where, error);
	if (line_add(list, json_string_value(item), json_string_length(item), before + 1, where, error) != 0)
		return -EINVAL;
	return list->count > before ? 0 : REFUSE("%s: an empty rule; leave it out", where);
}

static int array_decode(struct rule_list *list, const json_t *array, const char *where, char *error)
{
	if (!json_is_array(array))
		return REFUSE("%s: expected an array of rules", where);
	for (size_t i = 0; i < json_array_size(array); i++) {
		char which[PLACE_MAX];

		snprintf(which, sizeof(which), "%.*s[%zu]", WHERE_MAX - 1, where, i);
		if (decode_item(list, json_array_get(array, i), which, error) != 0)
			return -EINVAL;
	}
	return 0;
}

static int json_parse(struct rule_list *list, const char *data, size_t length, const char *where, char *error)
{
	json_error_t fault;
	json_t *document = json_loadb(data, length, JSON_REJECT_DUPLICATES, &fault);
	const json_t *rules = NULL;
	const struct field fields[] = {{.key = "rules", .type = FIELD_ANY, .required = true}, {0}};
	char nothing;
	int status = 0;

	if (!document)
		return REFUSE("%s:%d: %.120s; it begins like JSON", where, fault.line, fault.text);
	rules = document;
	if (json_is_object(document)) {
		status = schema_decode(document, fields, &nothing, where, error);
		rules = json_object_get(document, "rules");
	}
	if (status == 0)
		status = array_decode(list, rules, where, error);
	json_decref(document);
	return status;
}

// --- Lists -----------------------------------------------------------------------------------------------

static int settled(struct rule_list *list, int status)
{
	if (status != 0)
		rule_list_free(list);
	return status;
}

int rule_list_decode(struct rule_list *list, const json_t *array, const char *where, char *error)
{
	*list = (struct rule_list){0};
	return settled(list, array_decode(list, array, where, error));
}

int rule_list_parse(struct rule_list *list, const char *data, size_t length, const char *where, char *error)
{
	size_t blank = 0;
	bool json;

	*list = (struct rule_list){0};
	while (blank < length && isspace((unsigned char)data[blank]))
		blank++;
	json = blank < length && (data[blank] == '[' || data[blank] == '{');
	return settled(list, json ? json_parse(list, data, length, where, error)
	                          : text_parse(list, data, length, where, error));
}

int rule_list_load(struct rule_list *list, const char *path, char *error)
{
	size_t length = 0, characters = strlen(path);
	const char *where =
	        path + (characters < WHERE_MAX ? 0 : characters - WHERE_MAX + 1); // its end tells more
	const char *why;
	char *data = input_file_read(path, RULE_FILE_BYTES_MAX, &length, &why);
	int status;

	*list = (struct rule_list){0};
	if (!data)
		return REFUSE("%s: %s; name a file of rules, %d MB at most, that planed may read", where, why,
		              RULE_FILE_BYTES_MAX >> 20);
	status = rule_list_parse(list, data, length, where, error);
	free(data);
	return status;
}
