// SPDX-License-Identifier: BSD-3-Clause
// One line per event on stderr. Control thread only: the data path counts, it never logs.
#pragma once

#include <stdio.h>

#define LOG_ERROR(fmt, ...) fprintf(stderr, "planed: error: " fmt "\n", ##__VA_ARGS__)
#define LOG_WARN(fmt, ...)  fprintf(stderr, "planed: warning: " fmt "\n", ##__VA_ARGS__)
#define LOG_INFO(fmt, ...)  fprintf(stderr, "planed: " fmt "\n", ##__VA_ARGS__)
