/*
 * What the chore that builds indexes calls, made up: the clock, sleeps, threads, the log, and runs
 * of a build. A program that links this wraps what is named __wrap_… here, and tests turn by turn.
 *
 * Threading: runs are noted from any thread; everything else belongs to the thread of the test.
 */
#ifndef FROND_TESTS_MODEL_BUILDER_WORLD_H
#define FROND_TESTS_MODEL_BUILDER_WORLD_H

#include <pthread.h>
#include <stdatomic.h>

#include "catalog/chores.h"
#include "fixture.h"
#include "index/engine/build.h"

enum {
	BUILDER_RUNS_MOST = 256,
	BUILDER_NICE = 10,
};

enum running {
	RUN_REALLY,
	RUN_BUILDING, /* a run takes run_ms, and the index is not done */
	RUN_READY,    /* likewise, and it is */
	RUN_MEETING,  /* waits for all threads, and is done */
	RUN_FAILING,
};

enum threads {
	THREADS_REAL,
	THREADS_IN_TURN, /* what a thread does is done when it is created */
	THREADS_NONE,    /* none can be created */
	THREADS_SECOND,  /* every second one can */
};

struct run {
	uint64_t db_number;
	uint64_t number;
	uint64_t preferred;
	unsigned steps;
	bool claims;
};

/* All of it is the test's to set and to read. */
extern struct builder_world {
	pthread_t owner;   /* for whom the clock is this one */
	uint64_t now_ns;   /* 0: the clock is the machine's */
	uint64_t look_ms;  /* that pass when somebody looks at it */
	uint64_t slept_ns; /* in all */
	unsigned sleeps;
	enum running running;
	uint64_t run_ms;
	enum status failure;
	pthread_mutex_t lock; /* of the runs, which threads note */
	struct run runs[BUILDER_RUNS_MOST];
	unsigned run_count;
	pthread_barrier_t meeting;
	enum threads threads;
	unsigned created, joined;
	atomic_uint niced, named; /* threads may be real ones */
	unsigned building_most;   /* what the gauge has shown */
	char logged[32];          /* the last event's name */
	struct chore chore;       /* the one that was added */
} at;

/* What is not made up. */
uint64_t __real_clock_mono_ns(void);

/* Builds that are running, as the metric has it. */
int64_t builds_running(void);

/* Begins anew: the clock stands still, each thread is run when it is created, runs are real. */
void builder_world_begin(void);
/* The clock is the machine's again. */
void builder_world_end(void);

#endif
