// SPDX-License-Identifier: BSD-3-Clause
// A list of routes: growing, ordering, naming. Reading is in route_file.c, one route in route_parse.c.
#include "lib/route_parse.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
		snprintf(error, ROUTE_ERROR_MAX, "%s: %s is there already, in %s%u%s; keep one of them",
		         place, text, list->text ? "line " : "routes[", first->place, list->text ? "" : "]");
		return -EINVAL;
	}
	return 0;
}
