// SPDX-License-Identifier: BSD-3-Clause
#include "lib/input_file.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/schema.h"

enum { LINE_MAX_BYTES = 1024, FIRST_ADDRESSES = 1024 };

FILE *input_open(const char *path, struct stat *stat, const char *where, char *error)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	FILE *file;

	if (fd < 0 || fstat(fd, stat) != 0) {
		snprintf(error, SCHEMA_ERROR_MAX, "%s: %.120s: %s", where, path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	file = S_ISREG(stat->st_mode) ? fdopen(fd, "r") : NULL;
	if (!file) {
		snprintf(error, SCHEMA_ERROR_MAX, "%s: %.120s: is not a regular file", where, path);
		close(fd);
	}
	return file;
}

// The text of a line without comment and white space.
static char *strip(char *line)
{
	char *end;

	line[strcspn(line, "#")] = '\0';
	line += strspn(line, " \t\r\n");
	end = line + strlen(line);
	while (end > line && strchr(" \t\r\n", end[-1]))
		*--end = '\0';
	return line;
}

struct list {
	uint8_t *bytes;
	uint32_t count, room, max;
	unsigned version;
};

static unsigned address_bytes(const struct list *list)
{
	return list->version == 6 ? sizeof(struct in6_addr) : sizeof(struct in_addr);
}

// Returns NULL, or why not.
static const char *add(struct list *list, const char *text)
{
	unsigned bytes = address_bytes(list);
	uint8_t address[sizeof(struct in6_addr)];

	if (inet_pton(list->version == 6 ? AF_INET6 : AF_INET, text, address) != 1)
		return list->version == 6 ? "is not an IPv6 address" : "is not an IPv4 address";
	if (list->count == list->max)
		return "is one address too many";
	if (list->count == list->room) {
		uint32_t room = list->room ? 2 * list->room : FIRST_ADDRESSES;
		uint8_t *larger = realloc(list->bytes, (size_t)room * bytes);

		if (!larger)
			return "found no memory";
		list->bytes = larger;
		list->room = room;
	}
	memcpy(list->bytes + (size_t)list->count++ * bytes, address, bytes);
	return NULL;
}

// Returns NULL, or why not. *text is what of the line counts.
static const char *read_line(struct list *list, char *line, bool is_last, char **text)
{
	bool is_whole = is_last || strchr(line, '\n');

	*text = strip(line);
	if (!is_whole)
		return "is longer than 1022 bytes, or has a zero byte in it";
	return **text ? add(list, *text) : NULL;
}

static int read_lines(FILE *file, struct list *list, const char *path, const char *where, char *error)
{
	char line[LINE_MAX_BYTES], *text;

	for (unsigned long number = 1; fgets(line, sizeof(line), file); number++) {
		const char *why = read_line(list, line, feof(file), &text);

		if (!why)
			continue;
		snprintf(error, SCHEMA_ERROR_MAX, "%s: %.100s:%lu: \"%.40s\" %s", where, path, number, text,
		         why);
		return -EINVAL;
	}
	if (!ferror(file) && list->count)
		return 0;
	snprintf(error, SCHEMA_ERROR_MAX, "%s: %.100s: %s", where, path,
	         ferror(file) ? strerror(errno) : "has no address; put one on each line");
	return -EINVAL;
}

uint8_t *input_addresses(const char *path, unsigned version, uint32_t max, struct stat *stat, uint32_t *count,
                         const char *where, char *error)
{
	FILE *file = input_open(path, stat, where, error);
	struct list list = {.max = max, .version = version};
	int rc;

	if (!file)
		return NULL;
	rc = read_lines(file, &list, path, where, error);
	fclose(file);
	if (rc != 0) {
		free(list.bytes);
		return NULL;
	}
	*count = list.count;
	return list.bytes;
}
