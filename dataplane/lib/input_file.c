// SPDX-License-Identifier: BSD-3-Clause
#include "lib/input_file.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/schema.h"

enum { LINE_MAX_BYTES = 1024, FIRST_ADDRESSES = 1024 };

int input_file_open(const char *path, struct stat *stat, const char **why)
{
	int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int rc = file < 0 || fstat(file, stat) ? -errno : S_ISREG(stat->st_mode) ? 0 : -EINVAL;

	*why = NULL;
	if (rc == 0)
		return file;
	*why = rc == -EINVAL ? "is not a regular file" : strerror(-rc);
	if (file >= 0)
		close(file);
	return rc;
}

static const char *read_whole(int file, char *text, size_t bytes)
{
	size_t done = 0;
	ssize_t got = 0;

	while (done < bytes && (got = read(file, text + done, bytes - done)) > 0)
		done += (size_t)got;
	text[done] = '\0';
	if (got < 0)
		return strerror(errno);
	return done == bytes ? NULL : "became shorter while it was read";
}

char *input_file_read(const char *path, size_t max, size_t *bytes, const char **why)
{
	struct stat stat;
	int file = input_file_open(path, &stat, why);
	char *text = NULL;

	if (file < 0)
		return NULL;
	*bytes = (size_t)stat.st_size;
	if (*bytes > max)
		*why = "is too long";
	else if ((text = malloc(*bytes + 1)) == NULL)
		*why = "does not fit in memory";
	else
		*why = read_whole(file, text, *bytes);
	close(file);
	if (*why == NULL)
		return text;
	free(text);
	return NULL;
}

FILE *input_file_stream(const char *path, struct stat *stat, const char *where, char *error)
{
	const char *why = NULL;
	int file = input_file_open(path, stat, &why);

	if (file >= 0)
		return fdopen(file, "r");
	snprintf(error, CONFIG_ERROR_MAX, "%s: %.120s: %s", where, path, why);
	return NULL;
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
		snprintf(error, CONFIG_ERROR_MAX, "%s: %.100s:%lu: \"%.40s\" %s", where, path, number, text,
		         why);
		return -EINVAL;
	}
	if (!ferror(file) && list->count)
		return 0;
	snprintf(error, CONFIG_ERROR_MAX, "%s: %.100s: %s", where, path,
	         ferror(file) ? strerror(errno) : "has no address; put one on each line");
	return -EINVAL;
}

uint8_t *input_file_addresses(const char *path, unsigned version, uint32_t max, struct stat *stat,
                              uint32_t *count, const char *where, char *error)
{
	FILE *file = input_file_stream(path, stat, where, error);
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

bool input_line_next(struct input_line *line)
{
	size_t left = (size_t)(line->end - line->rest);
	const char *newline = left ? memchr(line->rest, '\n', left) : NULL;

	if (left == 0)
		return false;
	line->text = line->rest;
	line->bytes = newline ? (size_t)(newline - line->text) : left;
	line->rest = newline ? newline + 1 : line->end;
	line->number++;
	if (line->bytes && line->text[line->bytes - 1] == '\r')
		line->bytes--;
	return true;
}

const char *input_line_show(const char *text, size_t bytes, char *out, size_t size)
{
	size_t shown = bytes < size ? bytes : size - 1;

	for (size_t i = 0; i < shown; i++)
		out[i] = text[i] >= ' ' && text[i] <= '~' && text[i] != '"' ? text[i] : '?';
	out[shown] = '\0';
	return out;
}
