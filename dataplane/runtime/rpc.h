// SPDX-License-Identifier: BSD-3-Clause
// JSON-RPC 2.0 over a unix stream socket, one object a line, mode 0600; or over a character device, with one
// client at its other end, who may hang up and come back. Clients are hostile input: lines are bounded, a
// client that does not read is cut off. Control thread only.
#pragma once

struct planed;
struct rpc;

// Listen on path, or open the device that is there; a socket that nobody listens on any more is replaced.
// Returns 0 and *out, or -errno after logging one line.
int rpc_open(const char *path, struct rpc **out);

// Serve until a signal can be read from signal_fd (-1: none), or the method shutdown. Without rpc, just wait.
void rpc_serve(struct rpc *rpc, struct planed *planed, int signal_fd);

// Close every connection and remove the socket; a device stays. NULL is allowed.
void rpc_close(struct rpc *rpc);
