// SPDX-License-Identifier: BSD-3-Clause
#include "lib/route_parse.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/schema.h"

enum { DIGITS_MAX = 9 };

#define BECAUSE(...) (snprintf(reason, ROUTE_REASON_MAX, __VA_ARGS__), -EINVAL)

// A whole number in decimal digits and nothing else; false if it is none.
static bool number(const char *text, uint32_t *out)
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
	    (text[bytes] && !number(text + bytes + 1, &length)))
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

int route_check(const struct route_list *list, const struct route *route,
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

// --- Words -----------------------------------------------------------------------------------------------

static int parse_word(struct route *route, const char *word, char **rest, char *reason)
{
	uint32_t value = 0;
	bool fresh, fine;

	if (strcmp(word, "drop") == 0) {
		fresh = !route->drop;
		fine = route->drop = true;
	} else if (strcmp(word, "port") == 0) {
		fresh = route->port == ROUTE_UNSET;
		fine = number(strtok_r(NULL, " \t", rest), &value) && value < ROUTE_UNSET;
		route->port = (uint8_t)value;
	} else if (strcmp(word, "via") == 0) {
		fresh = route->via == UINT32_MAX;
		fine = number(strtok_r(NULL, " \t", rest), &route->via);
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

int route_parse_words(const struct route_list *list, struct route *route, char *line,
                      char reason[static ROUTE_REASON_MAX])
{
	char *rest, *word = strtok_r(line, " \t", &rest);
	int status = route_parse_prefix(route, word, reason);

	while (status == 0 && (word = strtok_r(NULL, " \t", &rest)))
		status = parse_word(route, word, &rest, reason);
	return status ? status : route_check(list, route, reason);
}

// --- JSON ------------------------------------------------------------------------------------------------

static int decode_prefix(const json_t *value, void *out, const char *where, char *error)
{
	const char *text = json_string_value(value);
	char reason[ROUTE_REASON_MAX] = "expected a string";

	if (text && strlen(text) == json_string_length(value) && route_parse_prefix(out, text, reason) == 0)
		return 0;
	snprintf(error, SCHEMA_ERROR_MAX, "%s: \"%.44s\": %s", where, text ? text : "", reason);
	return -EINVAL;
}

static int decode_mac(const json_t *value, void *out, const char *where, char *error)
{
	struct route *route = out;

	route->has_mac = schema_mac(json_string_value(value), route->mac);
	if (route->has_mac)
		return 0;
	snprintf(error, SCHEMA_ERROR_MAX, "%s: expected a MAC address like 02:00:00:00:00:01", where);
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
	snprintf(error, SCHEMA_ERROR_MAX, "%s: expected the number of a port of the task, from 0", where);
	return -EINVAL;
}

static int decode(const struct route_list *list, const struct field *fields, struct route *route,
                  const json_t *object, const char *where, char *error)
{
	char reason[ROUTE_REASON_MAX];
	int status = schema_decode(object, fields, route, where, error);

	if (status == 0 && (status = route_check(list, route, reason)))
		snprintf(error, SCHEMA_ERROR_MAX, "%s: %s", where, reason);
	return status;
}

int route_parse_json(const struct route_list *list, struct route *route, const json_t *object,
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
