// SPDX-License-Identifier: BSD-3-Clause
#include "planebench_fib.h"

const char *fib_client_reason(enum fib_code code)
{
	static const char *const reasons[FIB_CODES] = {
	        [FIB_OK] = "it is done",
	        [FIB_BUSY] = "the forwarder is busy",
	        [FIB_SEQUENCE] = "it was not the next message",
	        [FIB_MALFORMED] = "the forwarder takes it for malformed",
	        [FIB_NO_SESSION] = "the forwarder knows nothing of the session",
	        [FIB_QUOTA] = "the quota of this VNF is used up",
	        [FIB_FULL] = "the forwarder's table has no room",
	        [FIB_NO_NEXT_HOP] = "this session has not announced its next hop",
	        [FIB_EXISTS] = "it is there already",
	        [FIB_ABSENT] = "it is not there",
	        [FIB_BUSY_HOP] = "routes still lead there",
	        [FIB_VERSION] = "the forwarder speaks another version of messages",
	};

	return (unsigned)code < FIB_CODES ? reasons[code] : "for a reason that this client does not know";
}
