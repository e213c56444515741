/*
 * Running commands in transactions, together with those of other connections.
 *
 * A connection gives a job: commands that came one after the other. Jobs that only read run at
 * once. Others take their lanes first, which their keys' hashes say: while a job has a lane, those
 * that want the same wait, and are then run together, in one transaction with one fsync. The fiber
 * of the first of them runs the group for all. So commands of one process never conflict with each
 * other, and a key that everybody writes costs one commit for all that came during the last one.
 * Single commands of a few clients share a lane, too, whatever their keys are, and so a commit.
 *
 * A unit is a command, or an EXEC with what it runs: all of it is in one transaction. A unit that
 * fails undoes no other one.
 */
#ifndef FROND_DOOR_REDIS_TXN_RUN_H
#define FROND_DOOR_REDIS_TXN_RUN_H

#include <pthread.h>

#include "door/redis/acl/command.h"
#include "loop/wait.h"
#include "model/timed/items/item.h"

enum {
	RUN_LANES = 63, /* of keys */
	/*
	 * Single small commands have a lane in common as long as so many clients write at most, see
	 * job_share_lane().
	 */
	RUN_SHARED_JOBS = 128,
	/*
	 * A group waits for the jobs that its queue expects: at most this share of what the last
	 * transaction took, and not as long as RUN_GATHER_NS.
	 */
	RUN_GATHER_SHARE = 4,
	RUN_GATHER_NS = 5000000,
	RUN_GATHER_TURNS = 256, /* of the loop that have brought no job: then none is expected */
	/* From here on it sleeps: a loop that turns takes the processor from the clients. */
	RUN_GATHER_SLEEP_NS = 1000000,
	RUN_ASK_AHEAD = 512, /* items of a transaction, in a store that others use, too */
	/* Of answers to a pipeline, before they are sent and it goes on: at most, at least. */
	RUN_ANSWERS_BYTES = 256 * 1024,
	RUN_ANSWERS_LEAST_BYTES = 16 * 1024,
};

struct unit {
	const struct command *command;
	struct str *argv;
	size_t argc;
	unsigned db;
	bool muted;  /* by CLIENT REPLY */
	bool waited; /* it was run before, and found nothing */
	enum caching caching;
	/* EXEC: what MULTI has queued, and what has to be unchanged since WATCH. */
	struct unit *queued;
	size_t queued_count;
	bool is_exec;
	unsigned ret_db; /* that the connection has afterwards */
	uint64_t began_ns;
	/* Of the attempt under way, for stats.h. */
	bool failed;     /* it has answered an error */
	bool told;       /* which was counted already */
	bool ran_queued; /* EXEC: what was queued was run */
	uint64_t ns;     /* that a command of EXEC took */
	size_t answer;   /* where its answer begins */
	/* Of scripts: 0 until the first attempt. */
	uint64_t script_seed;
	uint64_t script_now_ms;
	enum eval_end script_end; /* of an attempt before */
};

struct job {
	struct client *client;
	struct unit *units;
	size_t count;
	size_t done;       /* units that were answered */
	bool blocked;      /* units[done] wants to wait */
	bool reads;        /* none of them writes */
	bool cannot_block; /* a unit that would wait answers as after its timeout */
	uint64_t lanes;
	bool strays;        /* a script wants to write what is in none of its lanes */
	struct buf *out;    /* its answers */
	bool full;          /* its answers are long, and are to be sent before units[done] is run */
	bool lacks_memory;  /* likewise, so that units[done] can have the memory that it lacked */
	bool gone;          /* nobody waits for it any more */
	size_t asked_bytes; /* for units[done], of the memory of all connections: serve.c */

	/* Values that are staged: stage.c. */
	bool wants_stage; /* units[done] writes a value that is not staged yet */
	struct timed_stage wanted;
	unsigned wanted_db;
	struct staged *staged; /* stage.h; the last one first */
	size_t stage_count;

	/* run.c's */
	struct job *next;
	struct event woken;
	bool claimed;
	struct job *next_claimed; /* of the group that runs it while its fiber waits */
	bool leads;               /* it was woken to run a group, and not because it has been run */
	bool small;               /* it may be in one transaction with jobs that want other lanes */
	struct job *group;
	size_t begun;      /* units that were answered when run_job() was called */
	size_t most_bytes; /* of answers, from which on it is full */
	size_t end;        /* of the attempt under way */
	bool waits;        /* in that attempt */
	bool fills;        /* likewise: it is going to be full */
	size_t out_len;
};

/* The queue of the jobs of a process. */
struct run_queue {
	/* Owns the lanes, the queue and the jobs in it. A group runs without it. */
	pthread_mutex_t lock;
	uint64_t busy; /* lanes that groups have */
	struct job *first;
	struct job **end;
	size_t waiting; /* jobs from `first` on */
	/*
	 * Of the last group that has ended: its jobs and those that waited then, which is how many
	 * clients are likely to write; its lanes, and how long its transactions took.
	 */
	size_t crowd;
	uint64_t crowd_lanes;
	uint64_t crowd_ns;
	/* The leader that sleeps until so many more jobs have come; NULL: none does. */
	struct event *crowded;
	size_t crowd_missing;
	/* The first job of a group that has not begun to run: small ones may join it. Or NULL. */
	struct job *gathering;
	struct job **gathering_end;
	size_t gathered;
	struct run_fence *fences; /* those who wait in run_hold() */
};

void run_queue_init(struct run_queue *q);
void run_queue_fini(struct run_queue *q);

/* The lanes of a call: those of its keys. All of them where that is not known. */
uint64_t run_lanes(const struct command *command, const struct str *argv, size_t argc, unsigned db,
		   struct arena *arena);

/* The lane of a key. */
uint64_t run_lane(unsigned db, struct str key);

/*
 * Runs a job, and returns when all of its units are answered, when one wants to wait, or when the
 * answers are to be sent before it goes on. Failures of the store are answers, too. On the
 * connection's fiber, whose arena is used.
 */
void run_job(struct redis *r, struct job *job, struct arena *arena);

/*
 * run_hold() takes these lanes, each as soon as the group that has it has ended and has told what
 * it has done. run_release() gives them back. A caller that has lanes must not wait for a job,
 * which may want these lanes, nor take lanes that another caller of run_hold() may have: both would
 * wait for ever. Any thread.
 */
void run_hold(struct redis *r, uint64_t lanes);
void run_release(struct redis *r, uint64_t lanes);

/* Answers that the unit that comes next in the job has failed. */
void run_refuse(struct job *job, enum status status, const struct err *err);

#endif
