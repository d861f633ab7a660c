// SPDX-License-Identifier: BSD-3-Clause
// A file that somebody else named, whole. Control thread.
#pragma once

#include <stddef.h>

// Read a regular file of at most max bytes: a pipe would have planed wait, a device never ends. Returns its
// bytes and a zero byte behind them, to be freed; or NULL, and in *why the reason, which is valid until the
// next call into libc.
char *text_file_read(const char *path, size_t max, size_t *bytes, const char **why);
