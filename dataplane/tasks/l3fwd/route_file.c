// SPDX-License-Identifier: BSD-3-Clause
#include "tasks/l3fwd/route_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/route_parse.h"
#include "lib/input_file.h"

enum { SHOWN_MAX = 44 }; // of a line, in a message

#define ROUTES_KEY ": routes"

#define REFUSE(code_, ...) (snprintf(error, ROUTE_ERROR_MAX, __VA_ARGS__), -(code_))

// --- Text ------------------------------------------------------------------------------------------------

// Messages travel as JSON: what is no printable ASCII is shown as a question mark.
static void show(char *out, const char *line, size_t bytes)
{
	size_t n = bytes < SHOWN_MAX ? bytes : SHOWN_MAX;

	for (size_t i = 0; i < n; i++)
		out[i] = line[i] >= ' ' && line[i] <= '~' ? line[i] : '?';
	out[n] = '\0';
}

static int parse_line(struct route_list *list, const char *text, size_t bytes, uint32_t number, char *error)
{
	char line[ROUTE_LINE_MAX + 1], reason[ROUTE_REASON_MAX], shown[SHOWN_MAX + 1];
	struct route *route;

	memcpy(line, text, bytes);
	line[bytes] = '\0';
	line[strcspn(line, "#")] = '\0';
	if (line[strspn(line, " \t")] == '\0')
		return 0;
	route = route_list_next(list);
	if (!route)
		return REFUSE(ENOMEM, "%s:%u: no memory for so many routes", list->source, number);
	route->place = number;
	if (route_parse_words(list, route, line, reason) == 0)
		return 0;
	show(shown, text, bytes);
	return REFUSE(EINVAL, "%s:%u: \"%s\": %.99s", list->source, number, shown, reason); // all of it fits
}

int route_list_text(struct route_list *list, const char *text, size_t bytes, char *error)
{
	const char *end = text + bytes;
	uint32_t number = 1;
	int status = 0;

	list->text = true;
	for (; text < end && status == 0; number++) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		size_t length = (size_t)((newline ? newline : end) - text);

		if (length && text[length - 1] == '\r')
			length--;
		if (length > ROUTE_LINE_MAX)
			return REFUSE(EINVAL, "%s:%u: a line of %zu bytes; a route has %d at most",
			              list->source, number, length, ROUTE_LINE_MAX);
		if (memchr(text, '\0', length))
			return REFUSE(EINVAL, "%s:%u: a zero byte; expected text, one prefix a line",
			              list->source, number);
		status = parse_line(list, text, length, number, error);
		text = newline ? newline + 1 : end;
	}
	return status;
}

// --- JSON ------------------------------------------------------------------------------------------------

int route_list_json(struct route_list *list, const json_t *array, char *error)
{
	int status = 0;

	list->text = false;
	if (!json_is_array(array))
		return REFUSE(EINVAL, "%s: expected an array of objects {\"prefix\", ...}", list->source);
	for (size_t i = 0; i < json_array_size(array) && status == 0; i++) {
		struct route *route = route_list_next(list);
		char inner[ROUTE_ERROR_MAX], where[32];

		if (!route)
			return REFUSE(ENOMEM, "%s[%zu]: no memory for so many routes", list->source, i);
		snprintf(where, sizeof(where), "[%zu]", i);
		status = route_parse_json(list, route, json_array_get(array, i), where, inner);
		if (status)
			snprintf(error, ROUTE_ERROR_MAX, "%s%.155s", list->source, inner);
	}
	return status;
}

// An array, or an object that has one as "routes" and nothing else.
static int parse_json(struct route_list *list, const char *text, size_t bytes, char *error)
{
	json_error_t at;
	json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &at), *array = root;
	int status;

	if (!root)
		return REFUSE(EINVAL, "%s:%d: no JSON: %.120s", list->source, at.line, at.text);
	if (json_is_object(root))
		array = json_object_size(root) == 1 ? json_object_get(root, "routes") : NULL;
	strcat(list->source, ROUTES_KEY);
	status = route_list_json(list, array, error);
	json_decref(root);
	return status;
}

// --- Files -----------------------------------------------------------------------------------------------

// The end of a path, which says more than its beginning.
static void set_source(struct route_list *list, const char *path)
{
	size_t room = sizeof(list->source) - sizeof(ROUTES_KEY), length = strlen(path);

	if (length <= room)
		snprintf(list->source, sizeof(list->source), "%s", path);
	else
		snprintf(list->source, sizeof(list->source), "...%s", path + length - room + 3);
}

int route_list_file(struct route_list *list, const char *path, char *error)
{
	size_t bytes, blank = 0;
	const char *why;
	char *text = input_file_read(path, ROUTE_FILE_BYTES_MAX, &bytes, &why);
	int status;

	set_source(list, path);
	if (!text)
		return REFUSE(EINVAL, "%s: %s; name a file of routes, %d MB at most, that planed may read",
		              list->source, why, ROUTE_FILE_BYTES_MAX >> 20);
	while (blank < bytes && strchr(" \t\r\n", text[blank]) && text[blank])
		blank++;
	if (blank < bytes && (text[blank] == '{' || text[blank] == '['))
		status = parse_json(list, text, bytes, error);
	else
		status = route_list_text(list, text, bytes, error);
	free(text);
	return status;
}
