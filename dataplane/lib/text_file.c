// SPDX-License-Identifier: BSD-3-Clause
#include "lib/text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_regular(const char *path, size_t max, size_t *bytes, const char **why)
{
	int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat stat;

	*why = file < 0 || fstat(file, &stat) ? strerror(errno)
	       : !S_ISREG(stat.st_mode)       ? "no regular file"
	       : (size_t)stat.st_size > max   ? "too long"
	                                      : NULL;
	*bytes = *why ? 0 : (size_t)stat.st_size;
	return file;
}

static const char *read_whole(int file, char *text, size_t bytes)
{
	size_t done = 0;
	ssize_t got = 0;

	if (!text)
		return "no memory for it";
	while (done < bytes && (got = read(file, text + done, bytes - done)) > 0)
		done += (size_t)got;
	text[done] = '\0';
	if (got < 0)
		return strerror(errno);
	return done == bytes ? NULL : "it became shorter while it was read";
}

char *text_file_read(const char *path, size_t max, size_t *bytes, const char **why)
{
	int file = open_regular(path, max, bytes, why);
	char *text = NULL;

	if (!*why) {
		text = malloc(*bytes + 1);
		*why = read_whole(file, text, *bytes);
	}
	if (file >= 0)
		close(file);
	if (*why) {
		free(text);
		return NULL;
	}
	return text;
}
