// SPDX-License-Identifier: BSD-3-Clause
#include "base/input_file.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/schema.h"

enum { FIRST_ADDRESSES = 1024, ADDRESSES_FILE_MAX = 1 << 30 };

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
	if (done >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		memset(text, ' ', 3);
	if (got < 0)
		return strerror(errno);
	return done == bytes ? NULL : "became shorter while it was read";
}

char *input_file_read(const char *path, size_t max, struct stat *stat, const char **why)
{
	int file = input_file_open(path, stat, why);
	size_t bytes = file < 0 ? 0 : (size_t)stat->st_size;
	char *text = NULL;

	if (file < 0)
		return NULL;
	if (bytes > max)
		*why = "is too long";
	else if ((text = malloc(bytes + 1)) == NULL)
		*why = "does not fit in memory";
	else
		*why = read_whole(file, text, bytes);
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
	FILE *stream = file >= 0 ? fdopen(file, "r") : NULL;

	if (stream)
		return stream;
	if (file >= 0) {
		why = strerror(errno);
		close(file);
	}
	snprintf(error, CONFIG_ERROR_MAX, "%s: %.120s: %s", where, path, why);
	return NULL;
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

// Returns NULL, or why not.
static const char *add_line(struct list *list, const struct input_line *line)
{
	const char *comment = memchr(line->text, '#', line->bytes);
	size_t bytes = comment ? (size_t)(comment - line->text) : line->bytes;
	const char *from = line->text;
	char text[INET6_ADDRSTRLEN + 1] = "";

	for (; bytes && isspace((unsigned char)*from); from++)
		bytes--;
	while (bytes && isspace((unsigned char)from[bytes - 1]))
		bytes--;
	if (bytes == 0)
		return NULL;
	if (bytes < sizeof(text) && !memchr(from, '\0', bytes))
		memcpy(text, from, bytes); // else it stays empty, which is no address
	return add(list, text);
}

static int read_lines(const char *text, size_t bytes, struct list *list, const char *path, const char *where,
                      char *error)
{
	struct input_line line = {.rest = text, .end = text + bytes};
	char shown[41];

	while (input_line_next(&line)) {
		const char *why = add_line(list, &line);

		if (why)
			return config_error(error, "%s: %.100s:%u: \"%s\" %s", where, path, line.number,
			                    input_line_show(line.text, line.bytes, shown, sizeof(shown)),
			                    why);
	}
	return list->count
	               ? 0
	               : config_error(error, "%s: %.100s: has no address; put one on each line", where, path);
}

uint8_t *input_file_addresses(const char *path, unsigned version, uint32_t max, struct stat *stat,
                              uint32_t *count, const char *where, char *error)
{
	struct list list = {.max = max, .version = version};
	const char *why;
	char *text = input_file_read(path, ADDRESSES_FILE_MAX, stat, &why);
	int rc;

	if (!text)
		return config_error_null(error, "%s: %.120s: %s", where, path, why);
	rc = read_lines(text, (size_t)stat->st_size, &list, path, where, error);
	free(text);
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
