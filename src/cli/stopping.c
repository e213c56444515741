#include "cli/stopping.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "base/timespec.h"
#include "cli/cli.h"
#include "cli/manager.h"
#include "http/server.h"
#include "loop/wait.h"
#include "loop/watchdog.h"
#include "replicator/replicator.h"

static struct {
	_Atomic(struct server *) server; /* NULL: it does not run any more */
	struct replicator *replicator;
	uint64_t timeout_ms;
	_Atomic unsigned asks;
	_Atomic int number;      /* of the last one */
	_Atomic uint64_t end_ns; /* when the process has to have ended */
	sem_t asked;             /* posted by signals, and when a step of the stop is done */
	pthread_t thread;
} stopping;

/*
 * The process ends at that moment. The watchdog does it and tells why. If it cannot, because
 * another thread holds what it needs, SIGALRM does, two seconds later.
 */
static void
stopping_end_by(uint64_t now_ns, uint64_t ms)
{
	watchdog_end_by(now_ns + ms * CLOCK_NS_PER_MS, CLI_OVERDUE);
	alarm((unsigned)(ms / 1000) + 2);
}

/* True if nobody has asked before. Also on a signal. */
static bool
stopping_ask_first(uint64_t now_ns)
{
	if (atomic_fetch_add(&stopping.asks, 1) != 0)
		return false;
	atomic_store(&stopping.end_ns, now_ns + stopping.timeout_ms * CLOCK_NS_PER_MS);
	stopping_end_by(now_ns, stopping.timeout_ms);
	sem_post(&stopping.asked);
	return true;
}

void
stopping_ask(void)
{
	(void)stopping_ask_first(clock_mono_ns());
}

/* The first one is for stopping_run(), others give up waiting. */
static void
stopping_on_signal(int number)
{
	struct server *server = atomic_load(&stopping.server);
	uint64_t now = clock_mono_ns();

	atomic_store(&stopping.number, number);
	if (stopping_ask_first(now))
		return;
	stopping_end_by(now, STOPPING_HASTE_MS);
	if (server)
		server_stop(server);
	sem_post(&stopping.asked);
}

static void
stopping_catch_signals(void)
{
	struct sigaction action = { .sa_handler = stopping_on_signal };
	struct sigaction hangup;

	sigemptyset(&action.sa_mask);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	/* nohup has the process ignore that its terminal is gone. */
	if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &action, NULL);
	action.sa_handler = SIG_IGN;
	sigaction(SIGPIPE, &action, NULL);
}

static void *
stopping_stop_replicator(void *arg)
{
	(void)arg;
	replicator_stop(stopping.replicator);
	sem_post(&stopping.asked);
	return NULL;
}

/* Waits for a post, until that moment at most. */
static void
stopping_wait(uint64_t until_ns)
{
	const struct timespec until = timespec_of_ns(until_ns);

	if (until_ns == WAIT_FOREVER) {
		while (sem_wait(&stopping.asked) != 0)
			;
	} else {
		(void)sem_clockwait(&stopping.asked, CLOCK_MONOTONIC, &until);
	}
}

/*
 * Replications first: their checkpoints at databases of this server need it to serve. They have
 * half of the time.
 */
static void *
stopping_run(void *arg)
{
	struct server *server = arg;
	pthread_t replicator;
	bool apart;
	uint64_t end_ns;

	thread_set_name("stopping");
	stopping_wait(WAIT_FOREVER);
	manager_tell(MANAGER_STOPPING);
	end_ns = atomic_load(&stopping.end_ns);
	watchdog_set_stage("replications");
	apart = pthread_create(&replicator, NULL, stopping_stop_replicator, NULL) == 0;
	if (apart)
		stopping_wait(end_ns - stopping.timeout_ms / 2 * CLOCK_NS_PER_MS);
	else
		replicator_stop(stopping.replicator);
	watchdog_set_stage("connections");
	server_stop_by(server, end_ns);
	if (apart)
		pthread_join(replicator, NULL);
	return NULL;
}

void
stopping_prepare(uint64_t timeout_ms)
{
	stopping.timeout_ms = timeout_ms;
	atomic_store(&stopping.end_ns, WAIT_FOREVER);
	sem_init(&stopping.asked, 0, 0);
}

enum status
stopping_begin(struct server *server, struct replicator *replicator, struct err *err)
{
	stopping.replicator = replicator;
	if (pthread_create(&stopping.thread, NULL, stopping_run, server) != 0)
		return err_set(err, STATUS_LIMIT, "cannot start a thread");
	atomic_store(&stopping.server, server);
	stopping_catch_signals();
	return STATUS_OK;
}

void
stopping_end(void)
{
	atomic_store(&stopping.server, NULL);
	sem_post(&stopping.asked);
	pthread_join(stopping.thread, NULL);
}

int
stopping_signal(void)
{
	return atomic_load(&stopping.number);
}
