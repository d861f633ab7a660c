// SPDX-License-Identifier: BSD-3-Clause
#include "virtio/vhost_listener.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/listen_socket.h"
#include "base/log.h"
#include "base/random.h"
#include "shm/doorbell.h"
#include "shm/guest_fault.h"
#include "virtio/vhost_link.h"

enum {
	LINKS_MAX = CONFIG_CONNECTIONS_MAX,
	MESSAGE_MS = 5000, // for all bytes of a message
	CLOSE_MS = 2000,   // for what the other end may make slow
	CHECK_MS = 100,    // of descriptors that must not block, and of memory that must stay
	// A port whose driver has made one of them block, or has taken memory away, or is at the limit of what we make of it.
	BARRED_MS = 60000,
	// Memory that goes away and comes back costs who uses it a page fault each time. As many of a process between two
	// checks, times the pages of 4 KB of each, as take about a hundredth of a core; and how often that is.
	FAULTS_DEAR = 1000,
	FAULTS_PER_HUGEPAGE = 100,
	STRIKES = 3,
	STRIKE_CHECKS = 20, // after which one is forgotten
	EVENTS_MAX = 64,

	// Messages to a port; a ring that a worker has to let go counts as one more: it interrupts all workers for a moment.
	MESSAGES_BURST = 4096,
	MESSAGES_PER_S = 2000,
};

// What epoll tells of. listener NULL: wake_fd; link NULL: the listening socket.
struct source {
	struct vhost_listener *listener;
	struct link *link;
	int fd;
	bool watched;
};

// What is done by the port's own thread: the drivers that are called, and what is closed.
struct deferred {
	unsigned call_count, fd_count, memory_count;
	int calls[VHOST_RINGS_MAX];
	int fds[1 + PEER_FILES_MAX];
	struct peer_memory memory[2]; // of the connection, and a table that was replaced
};

struct link {
	struct source source;
	bool open;
	bool full;                // deferred is to be fetched
	bool closed;              // no deferred of it is being closed, either
	uint64_t deadline_ms;     // of a message that has begun
	uint64_t heard;           // its turn when something of it came last: see struct vhost_listener
	unsigned strikes, checks; // memory taken away; checks since the last time
	struct vhost_link in;
	struct vhost_device device;
	struct deferred deferred;
};

struct vhost_listener {
	struct vhost_listener_config config;
	struct listen_socket socket;
	struct source listener; // of it
	uint64_t check_ms, faults_seen, turns;
	struct bucket messages;
	struct guest_charge charge;
	struct peer_refusals refusals;
	struct link links[LINKS_MAX];
	pthread_t closer;
	pthread_cond_t work, done;
	int calling;                   // the descriptor that the closer writes to, and may stand in; or -1
	bool ending, ended, abandoned; // of the closer
	int64_t until_ms;              // ending: when it is left behind
	struct vhost_listener *next;
};

// lock: everything here, and all listeners. changed: that a source which epoll told of may be gone.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static _Atomic(unsigned) callers;
static struct vhost_listener *listeners;
static pthread_t thread;
static int epoll_fd = -1;
static struct source wake = {.fd = -1};
static bool running, ending, changed;

// Anybody but the thread, which takes the lock again and again and would keep it to itself.
static void enter(void)
{
	atomic_fetch_add(&callers, 1);
	pthread_mutex_lock(&lock);
	atomic_fetch_sub(&callers, 1);
	pthread_cond_signal(&turn); // whether the lock is left, or given up to wait for something
}

static void leave(void)
{
	pthread_mutex_unlock(&lock);
}

static void thread_enter(void)
{
	pthread_mutex_lock(&lock);
	while (atomic_load(&callers))
		pthread_cond_wait(&turn, &lock);
}

static void watch(struct source *source, bool on)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = source};

	if (source->watched != on &&
	    epoll_ctl(epoll_fd, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, source->fd, &event) == 0)
		source->watched = on;
}

// --- Calling a driver, and closing what came from it: the port's thread -----------------------------------

// With the lock, but not while it writes: the driver can make that block.
static void call_drivers(struct vhost_listener *listener, const struct deferred *deferred)
{
	for (unsigned i = 0; i < deferred->call_count; i++) {
		const struct doorbell bell = {.fd = listener->ending ? -1 : deferred->calls[i]};

		listener->calling = bell.fd;
		leave();
		doorbell_ring(&bell);
		enter();
		listener->calling = -1;
		close(deferred->calls[i]);
	}
}

static void deferred_close(struct deferred *deferred)
{
	for (unsigned i = 0; i < deferred->fd_count; i++)
		close(deferred->fds[i]);
	for (unsigned i = 0; i < deferred->memory_count; i++)
		peer_memory_close(&deferred->memory[i]);
}

// The link may end and close its own meanwhile.
static void defer_calls(struct link *link)
{
	struct vhost_device *device = &link->device;

	for (unsigned i = 0; i < VHOST_RINGS_MAX; i++) {
		int fd = device->to_call >> i & 1 ? fcntl(device->rings[i].call_fd, F_DUPFD_CLOEXEC, 0) : -1;

		if (fd >= 0)
			link->deferred.calls[link->deferred.call_count++] = fd;
	}
	device->to_call = 0;
}

static void defer_fd(struct link *link, int fd)
{
	link->deferred.fds[link->deferred.fd_count++] = fd;
}

static void defer_memory(struct link *link, struct peer_memory *memory)
{
	if (memory->guest.count)
		link->deferred.memory[link->deferred.memory_count++] = *memory;
	*memory = (struct peer_memory){0};
}

static void deferred_settle(struct link *link)
{
	const struct deferred *deferred = &link->deferred;

	if (deferred->call_count + deferred->fd_count + deferred->memory_count == 0)
		return;
	link->full = true;
	link->closed = false;
	pthread_cond_signal(&link->source.listener->work);
}

static struct link *next_full(struct vhost_listener *listener)
{
	for (unsigned i = 0; i < LINKS_MAX; i++)
		if (listener->links[i].full)
			return &listener->links[i];
	return NULL;
}

static void listener_free(struct vhost_listener *listener)
{
	guest_charge_close(&listener->charge);
	pthread_cond_destroy(&listener->work);
	pthread_cond_destroy(&listener->done);
	free(listener);
}

static void *closer_main(void *argument)
{
	struct vhost_listener *listener = argument;
	bool abandoned;

	enter();
	for (;;) {
		struct link *link = next_full(listener);
		struct deferred deferred;

		if (link) {
			deferred = link->deferred;
			link->deferred.call_count = link->deferred.fd_count = link->deferred.memory_count = 0;
			link->full = false;
			call_drivers(listener, &deferred);
			leave();
			deferred_close(&deferred);
			enter();
			link->closed = !link->full;
			if (!listener->ending)
				eventfd_write(wake.fd, 1);
		} else if (listener->ending) {
			break;
		} else {
			pthread_cond_wait(&listener->work, &lock);
		}
	}
	listener->ended = true;
	abandoned = listener->abandoned;
	pthread_cond_signal(&listener->done);
	leave();
	if (abandoned)
		listener_free(listener);
	return NULL;
}

// --- One connection --------------------------------------------------------------------------------------

static void link_end(struct link *link)
{
	vhost_device_end(&link->device);
	watch(&link->source, false);
	shutdown(link->in.fd, SHUT_RDWR); // the other end sees it now, whatever closing takes
	defer_fd(link, link->in.fd);
	for (unsigned i = 0; i < link->in.files.count; i++)
		defer_fd(link, link->in.files.fds[i]);
	defer_memory(link, &link->device.memory);
	link->open = false;
	deferred_settle(link);
}

static void refuse(struct link *link, enum peer_refusal why)
{
	const struct vhost_link *in = &link->in;
	uint32_t request = in->have >= sizeof(request) ? in->message.request : 0;
	char whom[64] = "its driver", charged[GUEST_CHARGE_TEXT_BYTES];

	if (in->have)
		snprintf(whom, sizeof(whom), "its driver's message %u (%s)", request,
		         vhost_request_text(request));
	peer_refusals_add(&link->source.listener->refusals, why, whom,
	                  why == PEER_REFUSED_CHARGED
	                          ? guest_charge_text(&link->source.listener->charge, charged)
	                          : NULL);
	link_end(link);
}

// The driver has held up a worker, or tried to: it must not pay to try again, nor by another connection that it has.
static void bar(struct vhost_listener *listener, enum peer_refusal why)
{
	listen_socket_rest(&listener->socket, clock_now_ms(), BARRED_MS);
	for (unsigned i = 0; i < LINKS_MAX; i++)
		if (listener->links[i].open)
			refuse(&listener->links[i], why);
}

// Who has the port may have hung up and not been heard yet, behind this one or waiting for the rate of messages: then it
// ends here.
static bool end_of_the_last(struct vhost_listener *listener)
{
	for (unsigned i = 0; i < LINKS_MAX; i++) {
		struct link *link = &listener->links[i];

		if (link->open && link->device.drives && socket_hung_up(link->in.fd)) {
			link_end(link);
			return true;
		}
	}
	return false;
}

// The device has what it needs. Returns false if another one has the port.
static bool may_drive(struct link *link)
{
	struct vhost_device *device = &link->device;

	if (device->shut_out && end_of_the_last(link->source.listener))
		device->ops->settled(device);
	return !device->shut_out;
}

static void handle(struct link *link)
{
	struct vhost_device *device = &link->device;
	unsigned taken = device->taken;
	struct vhost_message reply;
	enum peer_refusal why = vhost_device_handle(device, &link->in.message, &link->in.files, &reply);

	bucket_charge(&link->source.listener->messages, 1 + device->taken - taken);
	defer_memory(link, &device->replaced);
	if (why == PEER_ACCEPTED && !may_drive(link))
		why = PEER_REFUSED_TAKEN;
	if (why == PEER_ACCEPTED && reply.flags && !vhost_link_reply(&link->in, &reply))
		why = PEER_REFUSED_UNREAD;
	defer_calls(link);
	if (device->blocked && device->drives) {
		bar(link->source.listener, PEER_REFUSED_BLOCKING);
		return;
	}
	if (device->blocked)
		why = PEER_REFUSED_BLOCKING;
	if (why) {
		refuse(link, why);
		return;
	}
	vhost_link_next(&link->in);
	deferred_settle(link);
}

static void read_driver(struct link *link)
{
	enum peer_refusal why;

	link->heard = ++link->source.listener->turns;
	if (link->in.have == 0)
		link->deadline_ms = clock_now_ms() + MESSAGE_MS;
	switch (vhost_link_read(&link->in, link->device.protocol_features, &why)) {
	case VHOST_READ_PART:
		break;
	case VHOST_READ_WHOLE:
		handle(link);
		break;
	case VHOST_READ_GONE:
		link_end(link);
		break;
	case VHOST_READ_REFUSED:
		refuse(link, why);
	}
}

// --- The thread ------------------------------------------------------------------------------------------

static struct link *free_link(struct vhost_listener *listener)
{
	for (unsigned i = 0; i < listener->config.connections; i++)
		if (!listener->links[i].open && listener->links[i].closed)
			return &listener->links[i];
	return NULL;
}

// Who makes room if all connections are in use: of those that do not have the port, the one that was silent longest.
static struct link *idle_link(struct vhost_listener *listener)
{
	struct link *idle = NULL;

	for (unsigned i = 0; i < listener->config.connections; i++) {
		struct link *link = &listener->links[i];

		if (!link->open)
			return NULL;
		if (!link->device.drives && (idle == NULL || link->heard < idle->heard))
			idle = link;
	}
	return idle;
}

static bool is_used(const struct vhost_listener *listener)
{
	for (unsigned i = 0; i < LINKS_MAX; i++)
		if (listener->links[i].open || !listener->links[i].closed)
			return true;
	return false;
}

static void accept_driver(struct vhost_listener *listener)
{
	struct link *link = free_link(listener), *idle = idle_link(listener);
	int fd;

	if (idle)
		refuse(idle, PEER_REFUSED_IDLE); // who comes has its place as soon as it is closed
	if (link == NULL)
		return;
	fd = listen_socket_accept(&listener->socket, clock_now_ms());
	if (fd < 0)
		return;
	link->heard = ++listener->turns;
	guest_charge_begin(&listener->charge, !is_used(listener));
	link->source = (struct source){listener, link, fd, false};
	link->in = (struct vhost_link){.fd = fd};
	link->open = true;
	link->strikes = 0;
	vhost_device_begin(&link->device, listener->config.ops, listener->config.owner,
	                   listener->config.pairs, listener->config.features);
	link->device.memory_max = listener->config.memory_max;
	link->device.charge = &listener->charge;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

// Deadlines, and who may be heard. Returns when to look again, in milliseconds from now.
static uint64_t look_after_link(struct link *link, uint64_t now_ms, uint64_t wait_ms)
{
	if (!link->open)
		return UINT64_MAX;
	// Later than a look can be: this process was stopped, and nobody can keep a deadline.
	if (link->in.have && now_ms > link->deadline_ms + CHECK_MS)
		link->deadline_ms = now_ms + MESSAGE_MS;
	if (link->in.have && now_ms >= link->deadline_ms) {
		refuse(link, PEER_REFUSED_LATE);
		return UINT64_MAX;
	}
	switch (peer_memory_fault(&link->device.memory)) {
	case PEER_ACCEPTED:
		break;
	case PEER_REFUSED_CHARGED:
		bar(link->source.listener, PEER_REFUSED_CHARGED);
		return UINT64_MAX;
	default:
		refuse(link, PEER_REFUSED_MEMORY_GONE);
		return UINT64_MAX;
	}
	watch(&link->source, wait_ms == 0 && link->closed);
	return earlier(wait_ms ? wait_ms : UINT64_MAX,
	               link->in.have ? link->deadline_ms - now_ms : UINT64_MAX);
}

// Minor page faults of the whole process, with those that we end ourselves.
static uint64_t faults_now(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_SELF, &usage) ? 0 : (uint64_t)usage.ru_minflt + guest_fault_pages();
}

// Whether a driver takes its memory away, again and again, while somebody here uses it and waits for the pages. Which
// memory that is, the kernel does not say: faults are the process's, so there must be many, and the file must have lost
// pages that had just come back.
static bool check_holes(struct link *link, uint64_t faults)
{
	uint32_t page = peer_memory_measure(&link->device.memory);

	if (page && faults * (page > 4096 ? FAULTS_PER_HUGEPAGE : 1) >= FAULTS_DEAR) {
		link->checks = 0;
		return ++link->strikes >= STRIKES;
	}
	if (++link->checks >= STRIKE_CHECKS)
		link->strikes = link->checks = 0;
	return false;
}

// Who has the port comes first: its eventfds may be those of another connection, too, and only the first look at one sees
// that it blocks.
static void unblock_all(struct vhost_listener *listener)
{
	for (unsigned pass = 0; pass < 2; pass++)
		for (unsigned i = 0; i < LINKS_MAX; i++)
			if (listener->links[i].open && listener->links[i].device.drives == (pass == 0))
				vhost_device_unblock(&listener->links[i].device);
}

// What holds a worker up, and all that it serves: a descriptor that blocks, memory that is not there. A connection that
// has not got the port holds up nobody, so it alone is ended. Returns whether to look again.
static bool check_drivers(struct vhost_listener *listener)
{
	uint64_t faults = faults_now(), since = faults - listener->faults_seen;

	listener->faults_seen = faults;
	unblock_all(listener);
	for (unsigned i = 0; i < LINKS_MAX; i++) {
		struct link *link = &listener->links[i];

		if (!link->open)
			continue;
		if (link->device.blocked && !link->device.drives)
			refuse(link, PEER_REFUSED_BLOCKING);
		else if (link->device.blocked)
			bar(listener, PEER_REFUSED_BLOCKING);
		else if (link->device.drives && check_holes(link, since))
			bar(listener, PEER_REFUSED_HOLES);
	}
	if (doorbell_unblock(listener->calling)) // of a connection that has ended meanwhile
		bar(listener, PEER_REFUSED_BLOCKING);
	return is_used(listener);
}

static uint64_t look_after(struct vhost_listener *listener, uint64_t now_ms)
{
	uint64_t messages_ms = bucket_wait(&listener->messages, now_ms);
	uint64_t due_ms = UINT64_MAX, rest_ms;

	// By chance: who knew the moment could let go just before, again and again.
	if (now_ms >= listener->check_ms)
		listener->check_ms = check_drivers(listener) ? now_ms + random_within(CHECK_MS) : 0;
	rest_ms = listen_socket_wait_ms(&listener->socket, now_ms);
	if (listener->check_ms)
		due_ms = listener->check_ms - now_ms;
	for (unsigned i = 0; i < LINKS_MAX; i++)
		due_ms = earlier(due_ms, look_after_link(&listener->links[i], now_ms, messages_ms));
	watch(&listener->listener, rest_ms == 0 && (free_link(listener) || idle_link(listener)));
	return earlier(due_ms, rest_ms ? rest_ms : UINT64_MAX);
}

// A source that has said something. It may be another connection's by now, or nobody's: then nothing is there.
static void hear(const struct source *source)
{
	eventfd_t ignored;

	if (source->listener == NULL)
		eventfd_read(source->fd, &ignored);
	else if (!source->watched)
		return;
	else if (source->link)
		read_driver(source->link);
	else
		accept_driver(source->listener);
}

static void *thread_main(void *argument)
{
	struct epoll_event events[EVENTS_MAX];

	thread_enter();
	while (!ending) {
		uint64_t now_ms = clock_now_ms(), due_ms = UINT64_MAX;
		int count;

		for (struct vhost_listener *listener = listeners; listener; listener = listener->next)
			due_ms = earlier(due_ms, look_after(listener, now_ms));
		changed = false;
		pthread_mutex_unlock(&lock);
		count = epoll_wait(epoll_fd, events, EVENTS_MAX, due_ms > INT32_MAX ? -1 : (int)due_ms);
		thread_enter();
		for (int i = 0; i < count && !changed; i++)
			hear(events[i].data.ptr);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

// Blocked signals and scheduling are those of the control thread.
static int thread_start(void)
{
	int rc = -ENOMEM;

	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	wake = (struct source){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
	ending = false;
	if (epoll_fd >= 0 && wake.fd >= 0) {
		watch(&wake, true);
		guest_fault_catch(wake.fd);
		rc = -pthread_create(&thread, NULL, thread_main, NULL);
	} else {
		rc = -errno;
	}
	running = rc == 0;
	if (rc) {
		guest_fault_catch(-1);
		close(wake.fd);
		close(epoll_fd);
	}
	return rc;
}

static void thread_stop(void)
{
	enter();
	ending = true;
	eventfd_write(wake.fd, 1);
	leave();
	pthread_join(thread, NULL);
	guest_fault_catch(-1);
	close(wake.fd);
	close(epoll_fd);
	running = false;
}

// --- Beginning and ending: the control thread ------------------------------------------------------------

static struct vhost_listener *listener_create(const struct vhost_listener_config *config)
{
	struct vhost_listener *listener = calloc(1, sizeof(*listener));
	uint64_t now_ms = clock_now_ms();

	if (listener == NULL)
		return NULL;
	listener->config = *config;
	listener->messages = bucket_full(MESSAGES_BURST, MESSAGES_PER_S, MS_PER_S, now_ms);
	peer_refusals_begin(&listener->refusals, listener->config.name);
	for (unsigned i = 0; i < LINKS_MAX; i++) {
		listener->links[i].source.listener = listener;
		listener->links[i].closed = true;
	}
	listener->calling = -1;
	guest_charge_open(&listener->charge, config->charged_max_mb, -1);
	pthread_cond_init(&listener->work, NULL);
	pthread_cond_init(&listener->done, NULL);
	return listener;
}

int vhost_listener_open(const struct vhost_listener_config *config, struct vhost_listener **out)
{
	struct vhost_listener *listener = listener_create(config);
	bool first = !running; // only this thread changes it
	int rc = -ENOMEM;

	if (listener == NULL)
		return rc;
	rc = first ? thread_start() : 0;
	if (rc)
		goto err_free;
	rc = -pthread_create(&listener->closer, NULL, closer_main, listener);
	if (rc)
		goto err_thread;
	rc = listen_socket_open(&listener->socket, config->path, SOCK_STREAM, config->group,
	                        config->connections_per_s);
	if (rc)
		goto err_closer;
	listener->listener = (struct source){.listener = listener, .fd = listener->socket.fd};
	enter();
	listener->next = listeners;
	listeners = listener;
	eventfd_write(wake.fd, 1);
	leave();
	*out = listener;
	return 0;

err_closer:
	enter();
	listener->ending = true;
	pthread_cond_signal(&listener->work);
	leave();
	pthread_join(listener->closer, NULL);
err_thread:
	if (first)
		thread_stop();
err_free:
	listener_free(listener);
	return rc;
}

// With the lock.
static void remove_from_doors(struct vhost_listener *listener)
{
	for (struct vhost_listener **at = &listeners; *at; at = &(*at)->next)
		if (*at == listener) {
			*at = listener->next;
			break;
		}
	changed = true;
}

void vhost_listener_stop(struct vhost_listener *listener)
{
	enter();
	watch(&listener->listener, false);
	for (unsigned i = 0; i < LINKS_MAX; i++)
		if (listener->links[i].open)
			link_end(&listener->links[i]);
	remove_from_doors(listener);
	listen_socket_close(&listener->socket);
	listener->until_ms = clock_now_ms() + CLOSE_MS;
	listener->ending = true;
	pthread_cond_signal(&listener->work);
	leave();
}

// With the lock. Returns whether it has ended in time; if not, it ends when it can, and frees the listener.
static bool closer_end(struct vhost_listener *listener)
{
	while (!listener->ended && clock_now_ms() < listener->until_ms) {
		int64_t next_ms = clock_now_ms() + CHECK_MS;
		const struct timespec next = {next_ms / MS_PER_S, next_ms % MS_PER_S * 1000000};

		doorbell_unblock(listener->calling);
		pthread_cond_clockwait(&listener->done, &lock, CLOCK_MONOTONIC, &next);
	}
	listener->abandoned = !listener->ended;
	return listener->ended;
}

void vhost_listener_close(struct vhost_listener *listener)
{
	bool ended;

	if (listener == NULL)
		return;
	if (!listener->ending)
		vhost_listener_stop(listener);
	enter();
	ended = closer_end(listener);
	if (!ended) {
		LOG_WARN("port %s: descriptors of its driver cannot be closed; it is left behind",
		         listener->config.name);
		pthread_detach(listener->closer); // behind the lock it may free the listener
	}
	leave();
	if (ended) {
		pthread_join(listener->closer, NULL);
		listener_free(listener);
	}
	if (listeners == NULL && running)
		thread_stop();
}

void vhost_listeners_unblock(void)
{
	for (struct vhost_listener *listener = listeners; listener; listener = listener->next)
		unblock_all(listener);
}

uint64_t vhost_listener_refused(const struct vhost_listener *listener, enum peer_refusal refusal)
{
	return atomic_load(&listener->refusals.counts[refusal]);
}
