// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/rpc.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/listen_socket.h"
#include "base/log.h"
#include "base/log_rate.h"
#include "runtime/methods.h"
#include "runtime/planed.h"
#include "runtime/rpc_device.h"

enum {
	CLIENTS_MAX = 16,
	LINE_MAX_BYTES = 1 << 20,
	REPLY_MS = 5000, // for a client to take a whole reply
	LINE_MS =
	        10000, // to send a whole line, from its first byte; not at a device, where a person may type
	AGAIN_MS = 100,
	LINES_BURST = 8, // about clients, to the log
	LINES_PER_MINUTE = 1,
};

struct client {
	int fd;     // does not block
	char *line; // what has come of the current line
	size_t used;
	char *reply; // that it has not taken yet, or NULL
	size_t reply_bytes, sent;
	int64_t deadline_ms; // of its reply, or of a line that it has begun; 0: none
	uint64_t heard;      // its turn when it was ready last
};

// At a socket; or at a device, which is one client that stays. Its fd is -1 while it cannot be opened.
struct rpc {
	struct listen_socket socket; // fd -1: at a device
	bool hung_up;                // the other end of the device: it is looked at every AGAIN_MS
	char path[CONFIG_PATH_MAX];
	struct client clients[CLIENTS_MAX];
	unsigned client_count;
	uint64_t turns; // of clients, ever
	struct log_rate lines;
};

static int add_client(struct rpc *rpc, int fd)
{
	char *line = rpc->client_count < CLIENTS_MAX ? malloc(LINE_MAX_BYTES) : NULL;

	if (line == NULL)
		return -ENOMEM;
	rpc->clients[rpc->client_count++] = (struct client){.fd = fd, .line = line, .heard = ++rpc->turns};
	return 0;
}

static int open_device(struct rpc *rpc, const char *path)
{
	int fd = rpc_device_open(path), rc = fd < 0 ? fd : add_client(rpc, fd);

	if (rc && fd >= 0)
		close(fd);
	return rc;
}

static int open_at(struct rpc *rpc, const char *path)
{
	rpc->socket.fd = -1;
	if (strlen(path) >= sizeof(rpc->path))
		return -ENAMETOOLONG;
	strcpy(rpc->path, path);
	if (rpc_is_device(path))
		return open_device(rpc, path);
	return listen_socket_open(&rpc->socket, path, SOCK_STREAM, (gid_t)-1, 0);
}

int rpc_open(const char *path, struct rpc **out)
{
	struct rpc *rpc = calloc(1, sizeof(*rpc));
	int rc = rpc ? open_at(rpc, path) : -ENOMEM;

	if (rpc)
		log_rate_init(&rpc->lines, LINES_BURST, LINES_PER_MINUTE, (uint64_t)clock_now_ms());
	if (rc) {
		LOG_ERROR("cannot listen on %s: %s", path, listen_socket_error(rc));
		free(rpc);
		return rc;
	}
	*out = rpc;
	return 0;
}

// A message may quote what a client sent, cut inside a character: that is no JSON string.
static json_t *error_object(int code, const char *message)
{
	json_t *text = json_string(message);
	char ascii[CONFIG_ERROR_MAX];

	if (text == NULL) {
		snprintf(ascii, sizeof(ascii), "%s", message);
		for (char *c = ascii; *c; c++)
			*c = (unsigned char)*c < 0x80 ? *c : '?';
		text = json_string(ascii);
	}
	return json_pack("{s:i, s:o}", "code", code, "message", text);
}

// One request to one answer; NULL for a notification.
static json_t *answer(struct planed *planed, const char *line, size_t length)
{
	char error[CONFIG_ERROR_MAX] = "";
	json_error_t where;
	json_t *request = json_loadb(line, length, JSON_REJECT_DUPLICATES, &where);
	const char *method = json_string_value(json_object_get(request, "method"));
	const char *version = json_string_value(json_object_get(request, "jsonrpc"));
	json_t *id = json_object_get(request, "id"), *result = NULL, *reply = NULL;
	int code = RPC_REFUSED;

	if (request == NULL) {
		code = RPC_PARSE_ERROR;
		snprintf(error, sizeof(error), "not JSON: %.100s", where.text);
	} else if (method == NULL || version == NULL || strcmp(version, "2.0") != 0) {
		code = RPC_INVALID_REQUEST;
		snprintf(error, sizeof(error),
		         "expected {\"jsonrpc\": \"2.0\", \"id\": n, \"method\": \"...\"}");
	} else {
		result = methods_call(planed, method, json_object_get(request, "params"), &code, error);
	}
	if (id || code == RPC_PARSE_ERROR || code == RPC_INVALID_REQUEST) {
		reply = json_pack("{s:s, s:o}", "jsonrpc", "2.0", "id", id ? json_incref(id) : json_null());
		if (result)
			json_object_set(reply, "result", result);
		else
			json_object_set_new(reply, "error", error_object(code, error));
	}
	json_decref(result);
	json_decref(request);
	return reply;
}

// Send what is left of the reply, as much as the client takes now. Returns non-zero if it takes nothing any more. SIGPIPE
// is ignored by the whole program.
static int send_reply(struct client *client)
{
	while (client->sent < client->reply_bytes) {
		ssize_t sent =
		        write(client->fd, client->reply + client->sent, client->reply_bytes - client->sent);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && errno == EAGAIN)
			return 0;
		if (sent <= 0)
			return -EPIPE;
		client->sent += (size_t)sent;
	}
	free(client->reply);
	client->reply = NULL;
	client->deadline_ms = 0;
	return 0;
}

static int serve_line(struct planed *planed, struct client *client, size_t length)
{
	json_t *reply = answer(planed, client->line, length);

	if (reply == NULL)
		return 0;
	client->reply = json_dumps(reply, JSON_COMPACT);
	json_decref(reply);
	if (client->reply == NULL)
		return -ENOMEM;
	client->reply_bytes = strlen(client->reply) + 1;
	client->reply[client->reply_bytes - 1] = '\n'; // in the place of the zero byte
	client->sent = 0;
	client->deadline_ms = clock_now_ms() + REPLY_MS;
	return send_reply(client);
}

static char *end_of_line(const struct client *client)
{
	return client->reply ? NULL : memchr(client->line, '\n', client->used);
}

// The first whole line, if there is one: the others are served when all other clients had their turn.
static int serve_first_line(struct planed *planed, struct client *client)
{
	char *newline = end_of_line(client);
	size_t length;

	if (newline == NULL)
		return 0;
	length = (size_t)(newline - client->line);
	if (serve_line(planed, client, length))
		return -EPIPE;
	client->used -= length + 1;
	memmove(client->line, newline + 1, client->used);
	return 0;
}

static int read_lines(struct client *client)
{
	ssize_t got = read(client->fd, client->line + client->used, LINE_MAX_BYTES - client->used);

	if (got <= 0)
		return got < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -ECONNRESET;
	client->used += (size_t)got;
	if (client->used == LINE_MAX_BYTES && end_of_line(client) == NULL) {
		LOG_WARN("rpc: a client sent a line of over %d bytes; it is cut off", LINE_MAX_BYTES);
		return -EMSGSIZE;
	}
	return 0;
}

// Go on with a client, ready: its socket is. Non-zero: the client is to go.
static int serve_client(struct planed *planed, struct client *client, bool ready)
{
	int rc = 0;

	if (client->reply)
		rc = send_reply(client);
	else if (ready && end_of_line(client) == NULL)
		rc = read_lines(client);
	return rc ? rc : serve_first_line(planed, client);
}

// Whether a client has had its time. One that has begun a line has some, too.
static bool is_late(const struct rpc *rpc, struct client *client)
{
	bool begun = client->reply == NULL && client->used && end_of_line(client) == NULL;

	if (client->reply == NULL && (!begun || rpc->socket.fd < 0))
		client->deadline_ms = 0;
	else if (client->deadline_ms == 0)
		client->deadline_ms = clock_now_ms() + LINE_MS;
	return client->deadline_ms && clock_now_ms() >= client->deadline_ms;
}

static void drop_client(struct rpc *rpc, unsigned i)
{
	if (rpc->clients[i].fd >= 0)
		close(rpc->clients[i].fd);
	free(rpc->clients[i].line);
	free(rpc->clients[i].reply);
	rpc->clients[i] = rpc->clients[--rpc->client_count];
}

// Of the clients that have asked for nothing and wait for nothing, drop the one that was silent longest.
static void drop_idle_client(struct rpc *rpc)
{
	const struct client *idle = NULL;

	for (unsigned i = 0; i < rpc->client_count; i++) {
		const struct client *client = &rpc->clients[i];

		if (client->used == 0 && client->reply == NULL &&
		    (idle == NULL || client->heard < idle->heard))
			idle = client;
	}
	if (idle)
		drop_client(rpc, (unsigned)(idle - rpc->clients));
}

// Who has begun a request, or has a reply to read, has time for that: LINE_MS, REPLY_MS.
static void accept_client(struct rpc *rpc)
{
	char unsaid[LOG_UNSAID_BYTES];
	int fd = listen_socket_accept(&rpc->socket, (uint64_t)clock_now_ms());

	if (fd < 0)
		return;
	if (rpc->client_count == CLIENTS_MAX)
		drop_idle_client(rpc);
	if (add_client(rpc, fd) == 0)
		return;
	close(fd);
	if (log_rate_take(&rpc->lines, (uint64_t)clock_now_ms(), unsaid))
		LOG_WARN("rpc: %u clients are served, and none is idle; one is turned away%s",
		         rpc->client_count, unsaid);
}

// The next one does not end what this one has begun to say.
static void lose_client(struct rpc *rpc, unsigned i)
{
	if (rpc->socket.fd >= 0) {
		drop_client(rpc, i);
		return;
	}
	free(rpc->clients[i].reply);
	rpc->clients[i] = (struct client){.fd = rpc->clients[i].fd, .line = rpc->clients[i].line};
	rpc->hung_up = true;
}

// Whoever comes back to a virtio port finds it as it was; a terminal that has hung up is dead (POLLERR) and
// is opened anew.
static void look_again(struct rpc *rpc)
{
	struct client *client = &rpc->clients[0];
	struct pollfd now = {.fd = client->fd, .events = POLLIN};

	if (poll(&now, 1, 0) == 1 && now.revents & POLLERR) {
		close(client->fd);
		client->fd = -1;
	}
	if (client->fd < 0)
		client->fd = rpc_device_open(rpc->path);
	rpc->hung_up = client->fd < 0 || now.revents & POLLHUP;
}

static void serve_ready(struct rpc *rpc, struct planed *planed, const struct pollfd *fds)
{
	// From the last to the first: drop_client() moves the last one down.
	for (unsigned i = rpc->client_count; i-- > 0;) {
		if (fds[2 + i].revents)
			rpc->clients[i].heard = ++rpc->turns;
		if (serve_client(planed, &rpc->clients[i], fds[2 + i].revents) ||
		    is_late(rpc, &rpc->clients[i]))
			lose_client(rpc, i);
	}
	if (fds[1].revents)
		accept_client(rpc);
}

// Whether so many have come that the next one has to wait.
static bool is_crowded(struct rpc *rpc)
{
	return rpc->socket.fd >= 0 && listen_socket_wait_ms(&rpc->socket, (uint64_t)clock_now_ms());
}

// What to wait for besides signals; poll() passes over a descriptor of -1. Returns how many.
static nfds_t wait_for(struct rpc *rpc, struct pollfd *fds)
{
	nfds_t count = 0;

	fds[count++] = (struct pollfd){.fd = is_crowded(rpc) ? -1 : rpc->socket.fd, .events = POLLIN};
	for (unsigned i = 0; i < rpc->client_count; i++)
		fds[count++] = (struct pollfd){.fd = rpc->hung_up ? -1 : rpc->clients[i].fd,
		                               .events = rpc->clients[i].reply ? POLLOUT : POLLIN};
	return count;
}

// How long nothing may be to do but at the descriptors; -1: for ever.
static int idle_ms(struct rpc *rpc, const struct planed *planed)
{
	int ms = planed_look_after_workers(planed), keep_ms = planed_keep(planed, false);

	if (keep_ms >= 0 && (ms < 0 || keep_ms < ms))
		ms = keep_ms;
	if (rpc && (rpc->hung_up || is_crowded(rpc)))
		ms = AGAIN_MS;
	for (unsigned i = 0; rpc && i < rpc->client_count; i++) {
		if (end_of_line(&rpc->clients[i]))
			return 0;
		if (rpc->clients[i].deadline_ms)
			ms = AGAIN_MS;
	}
	return ms;
}

void rpc_serve(struct rpc *rpc, struct planed *planed, int signal_fd)
{
	struct pollfd fds[2 + CLIENTS_MAX];

	fds[0] = (struct pollfd){.fd = signal_fd, .events = POLLIN};
	while (!planed->ending) {
		nfds_t count = 1 + (rpc ? wait_for(rpc, fds + 1) : 0);

		if (poll(fds, count, idle_ms(rpc, planed)) < 0)
			continue;
		if (fds[0].revents)
			break;
		if (rpc && rpc->hung_up)
			look_again(rpc);
		else if (rpc)
			serve_ready(rpc, planed, fds);
	}
}

void rpc_close(struct rpc *rpc)
{
	if (rpc == NULL)
		return;
	while (rpc->client_count > 0)
		drop_client(rpc, 0);
	listen_socket_close(&rpc->socket);
	free(rpc);
}
