// SPDX-License-Identifier: BSD-3-Clause
// Records of one message, applied in their order until one fails. records: length bytes, hostile. The caller
// has the lock of the FIB.
#pragma once

#include "fib/fib_session.h"

struct fib_answer fib_apply_routes(const struct fib_session *session, const struct fib_message *message,
                                   const uint8_t *records, unsigned length);
struct fib_answer fib_apply_hops(const struct fib_session *session, const struct fib_message *message,
                                 const uint8_t *records, unsigned length);
