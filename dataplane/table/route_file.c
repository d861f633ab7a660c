// SPDX-License-Identifier: BSD-3-Clause
#include "table/route_file.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/input_file.h"
#include "base/schema.h"

// --- Lists -----------------------------------------------------------------------------------------------

enum { ROOM_FIRST = 64 };

// Room for one more route at the end of the list, unset but for its place; NULL without memory.
static struct route *list_next(struct route_list *list)
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

// "FILE:12", or "FILE: routes[12]" of JSON: where a route was read.
static void route_place(const struct route_list *list, const struct route *route, char *out, size_t size)
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

// Compare the prefixes of two routes; 0 if they are the same.
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

enum { DIGITS_MAX = 9 };

#define BECAUSE(...) (snprintf(reason, ROUTE_REASON_MAX, __VA_ARGS__), -EINVAL)

// A whole number in decimal digits and nothing else; false if it is none.
static bool read_number(const char *text, uint32_t *out)
{
	size_t digits = text ? strspn(text, "0123456789") : 0;

	if (digits == 0 || digits > DIGITS_MAX || text[digits])
		return false;
	*out = (uint32_t)strtoul(text, NULL, 10);
	return true;
}

// --- A prefix --------------------------------------------------------------------------------------------

// Clear what is behind the length. Whether anything was set there.
static bool cut(uint8_t address[16], unsigned length)
{
	bool any = false;

	for (unsigned i = length / 8; i < 16; i++) {
		uint8_t keep = i == length / 8 ? (uint8_t)(0xff00 >> length % 8) : 0;

		any = any || (address[i] & ~keep);
		address[i] &= keep;
	}
	return any;
}

int route_parse_prefix(struct route *route, const char *text, char reason[static ROUTE_REASON_MAX])
{
	size_t bytes = strcspn(text, "/");
	char address[INET6_ADDRSTRLEN], whole[ROUTE_TEXT_MAX];
	uint32_t length;
	unsigned max;

	if (bytes >= sizeof(address))
		return BECAUSE("no IPv4 or IPv6 prefix, like 192.0.2.0/24 or 2001:db8::/32");
	memcpy(address, text, bytes);
	address[bytes] = '\0';
	route->version = strchr(address, ':') ? 6 : 4;
	max = route->version == 4 ? 32 : 128;
	length = max;
	if (inet_pton(route->version == 4 ? AF_INET : AF_INET6, address, route->address) != 1 ||
	    (text[bytes] && !read_number(text + bytes + 1, &length)))
		return BECAUSE("no IPv4 or IPv6 prefix, like 192.0.2.0/24 or 2001:db8::/32");
	if (length > max)
		return BECAUSE("the length of an IPv%u prefix is 0 to %u", route->version, max);
	route->length = (uint8_t)length;
	if (!cut(route->address, length))
		return 0;
	route_text(route, whole);
	return BECAUSE("bits are set behind its length; write %s", whole);
}

// --- What belongs together -------------------------------------------------------------------------------

static bool mac_is_fit(const uint8_t mac[6])
{
	static const uint8_t none[6];

	return !(mac[0] & 1) && memcmp(mac, none, sizeof(none)) != 0;
}

static int route_check(const struct route_list *list, const struct route *route,
                       char reason[static ROUTE_REASON_MAX])
{
	bool named = route->port != ROUTE_UNSET || route->has_mac;

	if (route->drop && (named || route->via != UINT32_MAX))
		return BECAUSE("a route that drops has no next hop; leave out drop, or the rest");
	if (route->via != UINT32_MAX && named)
		return BECAUSE("via names a port and a MAC already; leave it out, or the others");
	if (route->via != UINT32_MAX && route->via >= list->via_count)
		return BECAUSE("there is no next hop %u: \"next_hops\" has %zu, from 0", route->via,
		               list->via_count);
	if (route->port != ROUTE_UNSET && route->port >= list->port_count)
		return BECAUSE("there is no port %u: the task has ports 0 to %u", route->port,
		               list->port_count - 1);
	if (route->has_mac && !mac_is_fit(route->mac))
		return BECAUSE("the MAC of a next hop is not zero, and not of a group");
	return 0;
}

// --- A route in words -----------------------------------------------------------------------------------------------

static int parse_word(struct route *route, const char *word, char **rest, char *reason)
{
	uint32_t value = 0;
	bool fresh, fine;

	if (strcmp(word, "drop") == 0) {
		fresh = !route->drop;
		fine = route->drop = true;
	} else if (strcmp(word, "port") == 0) {
		fresh = route->port == ROUTE_UNSET;
		fine = read_number(strtok_r(NULL, " \t", rest), &value) && value < ROUTE_UNSET;
		route->port = (uint8_t)value;
	} else if (strcmp(word, "via") == 0) {
		fresh = route->via == UINT32_MAX;
		fine = read_number(strtok_r(NULL, " \t", rest), &route->via);
	} else if (strcmp(word, "mac") == 0) {
		fresh = !route->has_mac;
		fine = route->has_mac = schema_mac(strtok_r(NULL, " \t", rest), route->mac);
	} else {
		return BECAUSE("no word of a route; there are drop, port N, mac AA:BB:CC:DD:EE:FF and via N");
	}
	if (!fresh)
		return BECAUSE("%s is there twice; keep one of them", word);
	return fine ? 0
	            : BECAUSE("%s needs %s behind it", word,
	                      *word == 'm' ? "a MAC address like 02:00:00:00:00:01" : "a number, from 0");
}

// Read the words of a line, which is changed: PREFIX [drop | via N | [port N] [mac AA:BB:CC:DD:EE:FF]].
static int parse_words(const struct route_list *list, struct route *route, char *line,
                       char reason[static ROUTE_REASON_MAX])
{
	char *rest, *word = strtok_r(line, " \t", &rest);
	int status = route_parse_prefix(route, word, reason);

	while (status == 0 && (word = strtok_r(NULL, " \t", &rest)))
		status = parse_word(route, word, &rest, reason);
	return status ? status : route_check(list, route, reason);
}

// --- A route in JSON ------------------------------------------------------------------------------------------------

static int decode_prefix(const json_t *value, void *out, const char *where, char *error)
{
	const char *text = json_string_value(value);
	char reason[ROUTE_REASON_MAX] = "expected a string";

	if (text && strlen(text) == json_string_length(value) && route_parse_prefix(out, text, reason) == 0)
		return 0;
	snprintf(error, CONFIG_ERROR_MAX, "%s: \"%.44s\": %s", where, text ? text : "", reason);
	return -EINVAL;
}

static int decode_mac(const json_t *value, void *out, const char *where, char *error)
{
	struct route *route = out;

	route->has_mac = schema_mac(json_string_value(value), route->mac);
	if (route->has_mac)
		return 0;
	snprintf(error, CONFIG_ERROR_MAX, "%s: expected a MAC address like 02:00:00:00:00:01", where);
	return -EINVAL;
}

static int decode_port(const json_t *value, void *out, const char *where, char *error)
{
	struct route *route = out;
	json_int_t port = json_integer_value(value);

	if (json_is_integer(value) && port >= 0 && port < ROUTE_UNSET) {
		route->port = (uint8_t)port;
		return 0;
	}
	snprintf(error, CONFIG_ERROR_MAX, "%s: expected the number of a port of the task, from 0", where);
	return -EINVAL;
}

static int decode(const struct route_list *list, const struct field *fields, struct route *route,
                  const json_t *object, const char *where, char *error)
{
	char reason[ROUTE_REASON_MAX];
	int status = schema_decode(object, fields, route, where, error);

	if (status == 0 && (status = route_check(list, route, reason)))
		snprintf(error, CONFIG_ERROR_MAX, "%s: %s", where, reason);
	return status;
}

// Read an object with the keys prefix, port, mac, via and drop.
static int parse_object(const struct route_list *list, struct route *route, const json_t *object,
                        const char *where, char *error)
{
	static const struct field fields[] = {
	        {.key = "prefix", .type = FIELD_CUSTOM, .required = true, .decode = decode_prefix},
	        {.key = "port", .type = FIELD_CUSTOM, .decode = decode_port},
	        {.key = "mac", .type = FIELD_CUSTOM, .decode = decode_mac},
	        {.key = "via", FIELD(FIELD_UINT, struct route, via), .max = UINT32_MAX - 1.0},
	        {.key = "drop", FIELD(FIELD_BOOL, struct route, drop)},
	        {0},
	};

	return decode(list, fields, route, object, where, error);
}

int route_parse_hop(const struct route_list *list, struct route *hop, const json_t *object, const char *where,
                    char *error)
{
	static const struct field fields[] = {
	        {.key = "port", .type = FIELD_CUSTOM, .decode = decode_port},
	        {.key = "mac", .type = FIELD_CUSTOM, .decode = decode_mac},
	        {0},
	};

	return decode(list, fields, hop, object, where, error);
}

// --- Reading ---------------------------------------------------------------------------------------------

enum { SHOWN_MAX = 45 }; // of a line, in a message, with its zero byte

#define ROUTES_KEY ": routes"

// --- Text ------------------------------------------------------------------------------------------------

static int parse_line(struct route_list *list, const char *text, size_t bytes, uint32_t number, char *error)
{
	char line[ROUTE_LINE_MAX + 1], reason[ROUTE_REASON_MAX], shown[SHOWN_MAX];
	struct route *route;

	memcpy(line, text, bytes);
	line[bytes] = '\0';
	line[strcspn(line, "#")] = '\0';
	if (line[strspn(line, " \t")] == '\0')
		return 0;
	route = list_next(list);
	if (!route)
		return (config_error(error, "%s:%u: no memory for so many routes", list->source, number),
		        -ENOMEM);
	route->place = number;
	if (parse_words(list, route, line, reason) == 0)
		return 0;
	input_line_show(text, bytes, shown, sizeof(shown));
	return config_error(error, "%s:%u: \"%s\": %.99s", list->source, number, shown,
	                    reason); // all of it fits
}

int route_list_text(struct route_list *list, const char *text, size_t bytes, char *error)
{
	struct input_line line = {.rest = text, .end = text + bytes};
	int status = 0;

	list->text = true;
	while (status == 0 && input_line_next(&line)) {
		if (line.bytes > ROUTE_LINE_MAX)
			return config_error(error, "%s:%u: a line of %zu bytes; a route has %d at most",
			                    list->source, line.number, line.bytes, ROUTE_LINE_MAX);
		if (memchr(line.text, '\0', line.bytes))
			return config_error(error, "%s:%u: a zero byte; expected text, one prefix a line",
			                    list->source, line.number);
		status = parse_line(list, line.text, line.bytes, line.number, error);
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
		struct route *route = list_next(list);
		char inner[ROUTE_ERROR_MAX], where[32];

		if (!route)
			return (config_error(error, "%s[%zu]: no memory for so many routes", list->source, i),
			        -ENOMEM);
		snprintf(where, sizeof(where), "[%zu]", i);
		status = parse_object(list, route, json_array_get(array, i), where, inner);
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
	struct stat stat;
	const char *why;
	char *text = input_file_read(path, ROUTE_FILE_BYTES_MAX, &stat, &why);
	size_t bytes, blank = 0;
	int status;

	set_source(list, path);
	if (!text)
		return config_error(error,
		                    "%s: %s; name a file of routes, %d MB at most, that planed may read",
		                    list->source, why, ROUTE_FILE_BYTES_MAX >> 20);
	bytes = (size_t)stat.st_size;
	while (blank < bytes && strchr(" \t\r\n", text[blank]) && text[blank])
		blank++;
	if (blank < bytes && (text[blank] == '{' || text[blank] == '['))
		status = parse_json(list, text, bytes, error);
	else
		status = route_list_text(list, text, bytes, error);
	free(text);
	return status;
}
