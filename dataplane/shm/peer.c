// SPDX-License-Identifier: BSD-3-Clause
#include "shm/peer.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"

enum { LINES_BURST = 8, LINES_PER_MINUTE = 1 }; // of a port

void peer_refusals_begin(struct peer_refusals *refusals, const char *port)
{
	refusals->port = port;
	log_rate_init(&refusals->lines, LINES_BURST, LINES_PER_MINUTE, (uint64_t)clock_now_ms());
}

// One line, and how many were left out before it.
void peer_refusals_add(struct peer_refusals *refusals, enum peer_refusal why, const char *whom,
                       const char *text)
{
	char unsaid[LOG_UNSAID_BYTES];

	atomic_fetch_add(&refusals->counts[why], 1);
	if (log_rate_take(&refusals->lines, (uint64_t)clock_now_ms(), unsaid))
		LOG_WARN("port %s: %s was refused: %s; the connection is ended%s", refusals->port, whom,
		         text ? text : peer_refusal_text(why), unsaid);
}

#define REFUSAL_KEY(name, key, text)  [PEER_REFUSED_##name] = key,
#define REFUSAL_TEXT(name, key, text) [PEER_REFUSED_##name] = text,

const char *peer_refusal_key(enum peer_refusal refusal)
{
	static const char *const keys[PEER_REFUSALS] = {FOR_EACH_PEER_REFUSAL(REFUSAL_KEY)};

	return keys[refusal];
}

const char *peer_refusal_text(enum peer_refusal refusal)
{
	static const char *const texts[PEER_REFUSALS] = {FOR_EACH_PEER_REFUSAL(REFUSAL_TEXT)};

	return texts[refusal];
}

// The kernel gives no more than there is room for, and says so if it has kept some back.
bool peer_files_keep(struct peer_files *files, struct msghdr *header)
{
	bool kept = (header->msg_flags & MSG_CTRUNC) == 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		memcpy(&files->fds[files->count], CMSG_DATA(c), count * sizeof(int));
		files->count += (unsigned)count;
	}
	return kept;
}
