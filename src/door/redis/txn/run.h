/*
 * Running commands in transactions, together with those of other connections.
 *
 * A connection gives a job: commands that came one after the other. Jobs that only read run at
 * once, or share transactions in a cluster's store (job_read_in_turn()). Others take their lanes
 * first, which their keys' hashes say: while a job has a lane, those that want the same wait, and
 * are then run together, in one transaction with one fsync. The fiber of the first of them runs the
 * group for all. So commands of one process never conflict with each other, and a key that
 * everybody writes costs one commit for all that came during the last one. Single commands of a few
 * clients share a lane, too, whatever their keys are, and so a commit. Small commands, each of one
 * key, also name their keys, so that pipelines of different keys do not wait for each other.
 *
 * A unit is a command, or an EXEC with what it runs: all of it is in one transaction. A unit that
 * fails undoes no other one.
 */
#ifndef FROND_DOOR_REDIS_TXN_RUN_H
#define FROND_DOOR_REDIS_TXN_RUN_H

#include "door/redis/acl/command.h"
#include "loop/lanes.h"
#include "model/timed/items/item.h"

enum {
	RUN_ASK_AHEAD = 512, /* items that are asked for together in a store that others use, too */
	RUN_READ_LANES = 4,  /* transactions under way at once that such commands share */
	RUN_READ_LANES_ALL = (1 << RUN_READ_LANES) - 1,
	RUN_READ_PATIENCE_MS = 250, /* for which one waits for them, before it reads alone */
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
	bool has_key; /* it is about one key alone, */
	uint16_t key; /* which this names for its lane (run_key()) */
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
	struct lanes_job lane; /* first; `lanes` is its maker's */
	struct client *client;
	struct unit *units;
	size_t count;
	size_t done;        /* units that were answered */
	bool blocked;       /* units[done] wants to wait */
	bool reads;         /* none of them writes */
	bool cannot_block;  /* a unit that would wait answers as after its timeout */
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
	bool claimed;
	struct job *next_claimed; /* of the group that runs it while its fiber waits */
	size_t begun;             /* units that were answered when run_job() was called */
	size_t most_bytes;        /* of answers, from which on it is full */
	size_t end;               /* of the attempt under way */
	bool waits;               /* in that attempt */
	bool fills;               /* likewise: it is going to be full */
	size_t out_len;
};

/* The lanes of a call: those of its keys. All of them where that is not known. */
uint64_t run_lanes(const struct command *command, const struct str *argv, size_t argc, unsigned db,
		   struct arena *arena);

/* The same of a unit. Notes its key in it, if that is the only one. */
uint64_t run_unit_lanes(struct unit *u, struct arena *arena);

/* The lane of a key. */
uint64_t run_lane(unsigned db, struct str key);

/*
 * Runs a job, and returns when all of its units are answered, when one wants to wait, or when the
 * answers are to be sent before it goes on. Failures of the store are answers, too. On the
 * connection's fiber, whose arena is used.
 */
void run_job(struct redis *r, struct job *job, struct arena *arena);

/*
 * lanes_hold() and lanes_release() (loop/lanes.h) for lanes of keys: of a group that has ended and
 * has told what it has done. Any thread.
 */
void run_hold(struct redis *r, uint64_t lanes);
void run_release(struct redis *r, uint64_t lanes);

/* Behind the last job; the door's lanes may be owed. */
void run_lanes_fini(struct redis *r);

/* Answers that the unit that comes next in the job has failed. */
void run_refuse(struct job *job, enum status status, const struct err *err);

#endif
