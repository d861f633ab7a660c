// SPDX-License-Identifier: BSD-3-Clause
// Doorbells of ports with rings of our own, with both ends on threads of their own: one end sends, goes on as tasks do and
// stops; the other one says that it sleeps, and looks once more behind a fence. If it has seen nothing, it must be rung. Each
// case runs until the other end has slept so often. Not on one CPU, where the two never meet.
//
// Exit code 1 if a ring was lost. Not deterministic: a run that ends well shows little, ten long ones show more; the test of
// what must happen is doorbell_test.
//
//     port_race SLEEPS [KIND]
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "port/port_rig.h"
#include "test/pin.h"

enum { SIZE = 64, BURST = 32, PATIENCE = 2000, LEAD_MAX = 2000 };

static struct rig rig;
static cpu_set_t all; // the CPUs that this process may use

// How a round goes on after what it sent. RETURNS: it sends nothing, and gives back the buffers of what came.
enum round { POLLS, WARMS, IN_PLACE, FLUSHES, RETURNS, ROUNDS };
static const char *const round_names[ROUNDS] = {"two polls", "poll, warm", "in place, warm", "flush",
                                                "buffers back"};

static _Atomic(unsigned) go, done;
static _Atomic(bool) over;
static enum round round_now;
static unsigned frames, lag;
static bool slept;

static void wait_for(const _Atomic(unsigned) *number, unsigned value)
{
	for (unsigned i = 1;
	     atomic_load_explicit(number, memory_order_acquire) != value && !atomic_load(&over); i++)
		if (i % PATIENCE == 0)
			sched_yield();
}

static void delay(unsigned turns)
{
	for (volatile unsigned i = 0; i < turns; i++)
		;
}

// What the bell of a round is of.
static struct ring_queue *queue_of_round(void)
{
	return round_now == RETURNS ? rig_source(&rig.port) : rig_sink(&rig.port);
}

// The other end: falls asleep if it sees nothing.
static void *sleeper(void *argument)
{
	pin(*(unsigned *)argument);
	for (unsigned r = 1;; r++) {
		wait_for(&go, 2 * r - 1);
		if (atomic_load(&over))
			return NULL;
		delay(lag + r * 31 % 64);
		rig_sleeps(queue_of_round(), true);
		atomic_thread_fence(memory_order_seq_cst);
		slept = (round_now == RETURNS ? rig_send(&rig.peer, RIG_ALONE, 1) : rig_take(&rig.peer, 1)) ==
		        0;
		atomic_store(&done, 2 * r - 1);
		wait_for(&go, 2 * r);
		if (round_now == RETURNS)
			while (rig_send(&rig.peer, RIG_ALONE, frames) == frames)
				;
		else
			while (rig_take(&rig.peer, BURST))
				;
		atomic_store(&done, 2 * r);
	}
}

static void act(void)
{
	switch (round_now) {
	case POLLS:
		rig_send(&rig.port, RIG_POLLED, frames);
		rig_take(&rig.port, BURST);
		rig_take(&rig.port, BURST);
		break;
	case WARMS:
		rig_send(&rig.port, RIG_POLLED, frames);
		rig_take(&rig.port, BURST);
		port_warm(&rig.port, 0);
		break;
	case IN_PLACE:
		rig_send(&rig.port, RIG_IN_PLACE, frames);
		port_warm(&rig.port, 0);
		break;
	case FLUSHES:
		rig_send(&rig.port, RIG_ALONE, frames);
		port_flush(&rig.port, 0);
		break;
	default:
		while (rig_take(&rig.port, BURST_FRAMES_MAX)) // the last one finds nothing
			;
	}
}

// Returns how many rings were lost.
static unsigned run_case(unsigned sleeps)
{
	unsigned asleep = 0, lost = 0, r, lead = 0, cpus[2], found = 0;
	struct timespec begin, end;
	pthread_t thread;

	for (unsigned i = 0; i < CPU_SETSIZE && found < 2; i++)
		if (CPU_ISSET(i, &all))
			cpus[found++] = i;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	lag = 0;
	atomic_store(&go, 0);
	atomic_store(&done, 0);
	atomic_store(&over, false);
	port_flush_all(&rig.port);
	port_flush_all(&rig.peer);
	rig_no_gap(&rig.port);
	if (round_now == RETURNS) { // nothing can be sent to us
		while (rig_send(&rig.peer, RIG_ALONE, 1) == 1)
			;
		port_flush_all(&rig.peer);
	}
	pthread_create(&thread, NULL, sleeper, &cpus[1]);
	pin(cpus[0]);
	for (r = 1; asleep < sleeps; r++) {
		struct ring_queue *queue = queue_of_round();

		rig_sleeps(queue, false);
		rig_rung(queue);
		atomic_store(&go, 2 * r - 1);
		delay(lead + r * 17 % 64);
		act();
		wait_for(&done, 2 * r - 1);
		// Towards half of them asleep: then both do it at the same time.
		if (slept && lead > 0)
			lead--;
		else if (slept)
			lag = RTE_MIN(lag + 1, (unsigned)LEAD_MAX);
		else if (lag > 0)
			lag--;
		else
			lead = RTE_MIN(lead + 1, (unsigned)LEAD_MAX);
		asleep += slept;
		lost += slept && rig_rung(queue) == 0;
		atomic_store(&go, 2 * r);
		wait_for(&done, 2 * r);
	}
	atomic_store(&over, true);
	pthread_join(thread, NULL);
	pthread_setaffinity_np(pthread_self(), sizeof(all), &all);
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%-12s %-14s %2u frames: asleep %u times in %u rounds, not rung: %u  (%ld s)\n",
	       rig.kind->kind, round_names[round_now], frames, asleep, r - 1, lost,
	       (long)(end.tv_sec - begin.tv_sec));
	return lost;
}

static unsigned run_doorbells(const struct rig_kind *kind, unsigned sleeps)
{
	static const unsigned bursts[] = {1, 8, 32};
	unsigned lost = 0;

	for (unsigned b = 0; b < RTE_DIM(bursts); b++)
		for (unsigned round = 0; round < ROUNDS; round++) {
			frames = bursts[b];
			round_now = round;
			if (round == RETURNS && strncmp(kind->kind, "memif", 5) == 0)
				continue; // nobody waits for buffers of a memif
			if (!rig_open(&rig, kind, round == RETURNS ? RTE_MAX(frames, 2u) : SIZE))
				exit(2);
			if (round == IN_PLACE && !port_lends(&rig.port)) {
				rig_close(&rig);
				continue;
			}
			lost += run_case(sleeps);
			port_flush_all(&rig.port);
			rig_close(&rig);
		}
	return lost;
}

int main(int argc, char **argv)
{
	unsigned lost = 0;

	if (argc < 2) {
		fprintf(stderr, "usage: %s SLEEPS [KIND]\n", argv[0]);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	sched_getaffinity(0, sizeof(all), &all);
	if (CPU_COUNT(&all) < 2) {
		printf("port_race: one CPU: doorbells are not tried\n");
		return 0;
	}
	rig_begin("port_race");
	for (unsigned k = 0; k < RIG_KINDS; k++)
		if (argc < 3 || strcmp(argv[2], rig_kinds[k].kind) == 0)
			lost += run_doorbells(&rig_kinds[k], (unsigned)atoi(argv[1]));
	rig_end();
	return lost != 0;
}
