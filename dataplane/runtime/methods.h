// SPDX-License-Identifier: BSD-3-Clause
// The RPC methods of docs/design/planed-protocol.md. Control thread only.
#pragma once

#include <jansson.h>

#include "runtime/config.h"

struct planed;

enum {
	RPC_PARSE_ERROR = -32700,
	RPC_INVALID_REQUEST = -32600,
	RPC_UNKNOWN_METHOD = -32601,
	RPC_INVALID_PARAMS = -32602,
	RPC_REFUSED = -32000,
};

// Call a method. Returns a new result object, or NULL with *code and a sentence in error.
json_t *methods_call(struct planed *planed, const char *method, const json_t *params, int *code,
                     char error[static CONFIG_ERROR_MAX]);
