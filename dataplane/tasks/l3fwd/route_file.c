// SPDX-License-Identifier: BSD-3-Clause
#include "tasks/l3fwd/route_file.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/input_file.h"
#include "lib/route_parse.h"
#include "lib/schema.h"

// --- Lists -----------------------------------------------------------------------------------------------

// A list of routes: growing, ordering, naming. Reading is in route_file.c, one route in route_parse.c.

enum { ROOM_FIRST = 64 };

struct route *route_list_next(struct route_list *list)
{
	if (list->count == list->room) {
		size_t room = list->room ? list->room * 2 : ROOM_FIRST;
		struct route *routes = reallocarray(list->routes, room, sizeof(*routes));

		if (!routes)
			return NULL;
		list->routes = routes;
		list->room = room;
	}
	list->routes[list->count] =
	        (struct route){.port = ROUTE_UNSET, .via = UINT32_MAX, .place = (uint32_t)list->count};
	return &list->routes[list->count++];
}

void route_list_synthetic(struct route_list *list, size_t count)
{
	list->count = count;
}

static struct route synthetic(const struct route_list *list, size_t i)
{
	struct route route = {.port = ROUTE_UNSET, .via = UINT32_MAX};
	uint32_t address = htonl((10u << 24) + (uint32_t)i);

	if (list->via_count)
		route = list->hops[i % list->via_count];
	memcpy(route.address, &address, sizeof(address));
	route.version = 4;
	route.length = 32;
	return route;
}

struct route route_list_at(const struct route_list *list, size_t i)
{
	return list->routes ? list->routes[i] : synthetic(list, i);
}

void route_list_free(struct route_list *list)
{
	free(list->routes);
	free(list->hops);
	list->routes = list->hops = NULL;
	list->count = list->room = 0;
}

void route_place(const struct route_list *list, const struct route *route, char *out, size_t size)
{
	if (list->text)
		snprintf(out, size, "%s:%u", list->source, route->place);
	else
		snprintf(out, size, "%s[%u]", list->source, route->place);
}

void route_text(const struct route *route, char out[static ROUTE_TEXT_MAX])
{
	inet_ntop(route->version == 4 ? AF_INET : AF_INET6, route->address, out, ROUTE_TEXT_MAX);
	snprintf(out + strlen(out), ROUTE_TEXT_MAX - strlen(out), "/%u", route->length);
}

// Of the prefixes; 0 if they are the same.
static int compare_prefixes(const struct route *a, const struct route *b)
{
	int addresses;

	if (a->version != b->version)
		return a->version - b->version;
	addresses = memcmp(a->address, b->address, sizeof(a->address));
	return addresses ? addresses : a->length - b->length;
}

static int compare(const void *left, const void *right)
{
	const struct route *a = left, *b = right;
	int prefixes = compare_prefixes(a, b);

	return prefixes ? prefixes : (a->place > b->place) - (a->place < b->place);
}

int route_list_sort(struct route_list *list, char *error)
{
	if (list->count)
		qsort(list->routes, list->count, sizeof(*list->routes), compare);
	for (size_t i = 1; i < list->count; i++) {
		const struct route *first = &list->routes[i - 1], *again = &list->routes[i];
		char place[ROUTE_SOURCE_MAX + 24], text[ROUTE_TEXT_MAX];

		if (compare_prefixes(first, again) != 0)
			continue;
		route_place(list, again, place, sizeof(place));
		route_text(again, text);
		return config_error(error, "%s: %s is there already, in %s%u%s; keep one of them", place,
		                    text, list->text ? "line " : "routes[", first->place,
		                    list->text ? "" : "]");
	}
	return 0;
}

// --- Reading ---------------------------------------------------------------------------------------------

enum { SHOWN_MAX = 44 }; // of a line, in a message

#define ROUTES_KEY ": routes"

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
		return (config_error(error, "%s:%u: no memory for so many routes", list->source, number),
		        -ENOMEM);
	route->place = number;
	if (route_parse_words(list, route, line, reason) == 0)
		return 0;
	show(shown, text, bytes);
	return config_error(error, "%s:%u: \"%s\": %.99s", list->source, number, shown,
	                    reason); // all of it fits
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
			return config_error(error, "%s:%u: a line of %zu bytes; a route has %d at most",
			                    list->source, number, length, ROUTE_LINE_MAX);
		if (memchr(text, '\0', length))
			return config_error(error, "%s:%u: a zero byte; expected text, one prefix a line",
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
		return config_error(error, "%s: expected an array of objects {\"prefix\", ...}",
		                    list->source);
	for (size_t i = 0; i < json_array_size(array) && status == 0; i++) {
		struct route *route = route_list_next(list);
		char inner[ROUTE_ERROR_MAX], where[32];

		if (!route)
			return (config_error(error, "%s[%zu]: no memory for so many routes", list->source, i),
			        -ENOMEM);
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
		return config_error(error, "%s:%d: no JSON: %.120s", list->source, at.line, at.text);
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
		return config_error(error,
		                    "%s: %s; name a file of routes, %d MB at most, that planed may read",
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
