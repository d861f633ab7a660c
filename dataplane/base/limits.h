// SPDX-License-Identifier: BSD-3-Clause
// Limits of a configuration document (docs/design/planed-protocol.md) that more than one part has to know.
#pragma once

enum {
	CONFIG_NAME_MAX = 32,
	CONFIG_PATH_MAX = 108,  // sockaddr_un
	CONFIG_QUEUES_MAX = 16, // queue pairs of a port
	CONFIG_CONNECTIONS_MAX =
	        4, // of a vhost-user port: one that has it, one that comes next, and two to spare
	CONFIG_DRIVER_MEMORY_MB_MAX =
	        256 << 10,      // of a driver: a few sparse files could else use up all addresses
	CONFIG_ERROR_MAX = 256, // bytes of a sentence that refuses something, with its zero byte
};
