// SPDX-License-Identifier: BSD-3-Clause
// One route, from words or from a JSON object: what route_file.c reads lists with. Pure. Reasons are
// sentences without a place, which the caller puts before them.
#pragma once

#include "tasks/l3fwd/route_file.h"

enum { ROUTE_REASON_MAX = 112 };

// Room for one more route at the end of the list, unset but for its place; NULL without memory.
struct route *route_list_next(struct route_list *list);

// A prefix, or an address, which is a route to a host. Returns 0, or -EINVAL with the reason.
int route_parse_prefix(struct route *route, const char *text, char reason[static ROUTE_REASON_MAX]);

// The words of a line, which is changed: PREFIX [drop | via N | [port N] [mac AA:BB:CC:DD:EE:FF]].
int route_parse_words(const struct route_list *list, struct route *route, char *line,
                      char reason[static ROUTE_REASON_MAX]);

// An object with the keys prefix, port, mac, via and drop. where names it; error (ROUTE_ERROR_MAX) is whole.
int route_parse_json(const struct route_list *list, struct route *route, const json_t *object,
                     const char *where, char *error);

// A next hop: the same without a prefix, with the keys port and mac.
int route_parse_hop(const struct route_list *list, struct route *hop, const json_t *object, const char *where,
                    char *error);

// Whether what a route names goes together and is there.
int route_check(const struct route_list *list, const struct route *route,
                char reason[static ROUTE_REASON_MAX]);
