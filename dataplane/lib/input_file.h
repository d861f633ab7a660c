// SPDX-License-Identifier: BSD-3-Clause
// A file that somebody else named. Control thread.
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

// Open a regular file for reading: a pipe would have planed wait. NULL with a sentence in error
// (SCHEMA_ERROR_MAX).
FILE *input_open(const char *path, struct stat *stat, const char *where, char *error);

// Read IP addresses of a version (4 or 6), one a line, at most max; what follows a # and empty lines do not
// count. Returns them, 4 or 16 bytes each, to be freed, and how many in *count; NULL with a sentence in
// error, with file and line.
uint8_t *input_addresses(const char *path, unsigned version, uint32_t max, struct stat *stat, uint32_t *count,
                         const char *where, char *error);
