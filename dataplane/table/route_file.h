// SPDX-License-Identifier: BSD-3-Clause
// Lists of routes as people write them: text, one prefix a line, or JSON (docs/network-functions.md has both formats).
// Pure; needs no EAL. Input is hostile: all of it is read before any of it is believed, and what is refused
// is refused with the place, the text, the reason and the way out.
//
// A list owns its routes: route_list_free(), also after an error. Control thread. Not covered: what a route's
// next hop is when it names none (l3fwd_control.c).
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	ROUTE_LINE_MAX = 1023, // bytes of a line without its end
	ROUTE_TEXT_MAX = 52,   // a prefix as text, with its zero byte
	ROUTE_REASON_MAX = 112,
	ROUTE_UNSET = UINT8_MAX,
	ROUTE_ERROR_MAX = 256,
	ROUTE_SOURCE_MAX = 96,
	ROUTE_FILE_BYTES_MAX = 256 << 20, // ten times a full table
};

struct route {
	uint8_t address[16]; // as on the wire; of IPv4 the first four bytes, zeros behind them
	uint8_t version;     // 4 or 6
	uint8_t length;
	uint8_t port; // of the task's ports, or ROUTE_UNSET
	bool drop, has_mac;
	uint8_t mac[6];
	uint32_t via;   // of the next hops, or UINT32_MAX
	uint32_t place; // line, from 1; in JSON the index, from 0
};

struct route_list {
	struct route *routes; // NULL of a synthetic list
	size_t count, room;
	struct route *hops; // via_count of them, without prefixes; or NULL

	// Set by the caller before anything is read.
	unsigned port_count;           // of the task
	size_t via_count;              // next hops that may be named
	char source[ROUTE_SOURCE_MAX]; // names it in messages: a path; of JSON with "routes"
	bool text;                     // else JSON; by route_list_file() itself
};

// Append what a text, or an array of objects, says. Return 0, or -errno with a sentence in error
// (ROUTE_ERROR_MAX).
int route_list_text(struct route_list *list, const char *text, size_t bytes, char *error);
int route_list_json(struct route_list *list, const json_t *array, char *error);

// The same from a file, which is JSON if its first byte that is not blank is { or [. Sets source.
int route_list_file(struct route_list *list, const char *path, char *error);

// Make an empty list one of so many host routes by a formula, which take no memory: 10.0.0.0 + i, by hop i
// modulo via_count (docs/fib-offload.md). It is sorted.
enum { ROUTE_SYNTHETIC_MAX = 1000000000 };
void route_list_synthetic(struct route_list *list, size_t count);

// Any list's route.
struct route route_list_at(const struct route_list *list, size_t i);

// Order by version, address, length: what covers a prefix comes before it. A prefix that is there twice is an
// error that names both places.
int route_list_sort(struct route_list *list, char *error);

void route_list_free(struct route_list *list);

// The prefix of a route: "192.0.2.0/24".
void route_text(const struct route *route, char out[static ROUTE_TEXT_MAX]);

// Read a prefix, or an address, which is a route to a host. Returns 0, or -EINVAL with a sentence in reason, without a
// place.
int route_parse_prefix(struct route *route, const char *text, char reason[static ROUTE_REASON_MAX]);

// Read a next hop, an object with the keys port and mac. where names it; the sentence in error (ROUTE_ERROR_MAX) is
// whole.
int route_parse_hop(const struct route_list *list, struct route *hop, const json_t *object, const char *where,
                    char *error);
