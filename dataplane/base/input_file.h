// SPDX-License-Identifier: BSD-3-Clause
// Files whose path came from outside planed. Only a regular file is opened: opening a FIFO would block planed, and a
// device has no end. Control thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

// Open a regular file for reading. Returns its descriptor and fills *stat; or -errno and sets *why to the reason, valid
// until the next call into libc.
int input_file_open(const char *path, struct stat *stat, const char **why);

// Read a regular file of at most max bytes. Returns its bytes (stat->st_size) followed by a zero byte, to be freed; or
// NULL and *why as above. A byte-order mark becomes blanks.
char *input_file_read(const char *path, size_t max, struct stat *stat, const char **why);

// Open a regular file as a stream. Returns NULL with a sentence in error (CONFIG_ERROR_MAX).
FILE *input_file_stream(const char *path, struct stat *stat, const char *where, char *error);

// Read IP addresses of a version (4 or 6), one a line, at most max; comments (#) and empty lines are ignored. Returns
// the addresses, 4 or 16 bytes each, to be freed, and their number in *count; or NULL with a sentence in error that
// names file and line.
uint8_t *input_file_addresses(const char *path, unsigned version, uint32_t max, struct stat *stat,
                              uint32_t *count, const char *where, char *error);

// Lines of a text in memory. Set rest and end to the text's begin and end, the others to 0.
struct input_line {
	const char *rest, *end; // what is left of the text
	const char *text;       // this line, without its end (\n or \r\n)
	size_t bytes;
	uint32_t number; // from 1
};

// Step to the next line. Returns false at the end of the text.
bool input_line_next(struct input_line *line);

// Copy a line to out (size bytes) for a message: what neither a terminal nor JSON could mind, the rest as '?'. Returns
// out.
const char *input_line_show(const char *text, size_t bytes, char *out, size_t size);
