/*
 * Lanes: jobs of many fibers that would meet at the same keys take turns, in groups.
 *
 * A job names its lanes, which the hashes of its keys say. While somebody has a lane, jobs that
 * want it queue. When it is free again, the first of those that wait leads a group of all others
 * that may be in it: its fiber runs them all, in one transaction, say, while theirs wait. So jobs
 * of one process that meet do not conflict, and what many write costs one commit for all that came
 * during the last one. But for lanes that are owed, see below, they are for speed: what is right is
 * the business of transactions, and two keys may share a lane.
 *
 * A job of a few keys may name these as well (lanes_of_key()). Then other jobs that name keys may
 * have the same lanes at the same time, as long as they name other keys: two pipelines of 16 keys
 * nearly always have a lane in common, and hardly ever a key. Such jobs form groups of their own.
 * Where many come that hardly name the same keys, a group is made of half of them: while its commit
 * is written, the other half runs.
 *
 * A leader may wait before its group begins for those who were answered last and are about to come
 * again: a group that began without them would be one of two that take turns, each of which waits
 * for its own commit and for the other's.
 *
 * A group may end while nobody knows yet what becomes of its work. Its lanes are then owed: no job
 * that wants one of them begins until lanes_pay(). Such a job waits for its `patience_ms` and is
 * then refused, an impatient one also where it waits for a group. Apart from that a waiting job is
 * its fiber's, which cannot be taken out of the queue: whoever runs it looks whether it is still
 * wanted. So as many jobs wait as there are fibers that have one.
 *
 * Threading: any thread. A job belongs to its fiber, except while that is in lanes_enter(). The
 * lock of a struct lanes owns its lanes, its queue, and the jobs in the queue. It is held for a few
 * instructions at a time, and never while a group runs.
 */
#ifndef FROND_LOOP_LANES_H
#define FROND_LOOP_LANES_H

#include <pthread.h>

#include "loop/wait.h"

enum {
	LANES = 63,         /* of keys, in one struct lanes */
	LANES_KEYS = 65536, /* that jobs with keys tell apart */
	/*
	 * Groups of jobs with keys at a time: one runs while the other one is written. What comes
	 * meanwhile is the next group, and not several small ones.
	 */
	LANES_KEY_GROUPS = 2,
	/* Of jobs with keys, from which on a group leaves half of them to the other one. */
	LANES_HALVED_JOBS = 16,
	/*
	 * Jobs that share (lanes_job.shares) have a 64th lane in common as long as so many jobs
	 * come together at most.
	 */
	LANES_SHARED_JOBS = 128,
	/*
	 * A group waits for the jobs that are expected: at most this share of what the last group
	 * took, and not as long as LANES_GATHER_NS.
	 */
	LANES_GATHER_SHARE = 4,
	LANES_GATHER_NS = 5000000,
	LANES_GATHER_TURNS = 256, /* of the loop that have brought no job: then none is expected */
	/* From here on it sleeps: a loop that turns takes the processor from the clients. */
	LANES_GATHER_SLEEP_NS = 1000000,
	/* How often a job whose patience has ended looks whether a lane that is owed delays it. */
	LANES_OWED_LOOK_MS = 50,
};

struct lanes_job {
	uint64_t lanes; /* that it wants, a bit each */
	bool small;     /* it may be in one group with jobs that want other lanes */
	bool shares;    /* it is small, and may take the lane in common, too: `lanes` then has it */
	bool prompt;    /* it waits for others only where some were met at its lanes last time */
	bool impatient; /* it is refused behind `patience_ms` also where it waits for a group */
	/*
	 * The keys that its lanes are of (lanes_of_key()), of a small job that need not be alone
	 * in these; NULL: it wants its lanes for itself. They stay where they are as the job does.
	 */
	const uint16_t *keys;
	size_t key_count;
	/* How long it waits for owed lanes before it is refused; 0: until they are paid. */
	uint64_t patience_ms;
	/* Whose work it is, as the room that runs groups knows it (serve/wanted.h); or NULL. */
	void *works_for;
	bool ret_refused; /* behind lanes_enter() that was false: nobody has run it, or will */
	/* Behind lanes_enter(), of the job that leads: the next one of its group, or NULL. */
	struct lanes_job *group;

	/* Private. */
	struct lanes_job *next; /* of those that wait */
	struct event woken;
	uint64_t began_ns; /* the group of the one that leads */
	uint16_t number;   /* of the group of one that has keys, by which it holds them */
	bool leads;
	bool joined; /* a group that still gathered */
};

struct lanes {
	pthread_mutex_t lock;
	size_t group_jobs; /* of a group, at most */
	uint64_t busy;     /* lanes that groups have */
	uint64_t owed;     /* lanes whose group has ended, and that no job gets until lanes_pay() */
	struct lanes_keys *keys; /* that groups have; NULL: jobs with keys are not served */
	uint64_t shared;         /* lanes in which they have some */
	unsigned key_groups;     /* that have them */
	size_t in_groups;        /* jobs that are not in the queue, and not done */
	struct lanes_job *first;
	struct lanes_job **end;
	size_t waiting;  /* jobs from `first` on */
	unsigned chosen; /* by lanes_choose(), so far */
	/*
	 * Of the last group that has ended: its jobs and those that waited then, which is how many
	 * are likely to come; its lanes, and how long it took.
	 */
	size_t crowd;
	size_t crowd_all; /* the same with the jobs of all groups that ran then */
	bool spread;      /* most of its keys were named once */
	uint64_t crowd_lanes;
	uint64_t crowd_ns;
	/* The leader that sleeps until so many more jobs have come; NULL: none does. */
	struct event *crowded;
	size_t crowd_missing;
	/* The first job of a group that has not begun to run: small ones may join it. Or NULL. */
	struct lanes_job *gathering;
	struct lanes_job **gathering_end;
	size_t gathered;
	struct lanes_fence *fences; /* those who wait in lanes_hold() */
};

void lanes_init(struct lanes *q, size_t group_jobs);
/*
 * After lanes_init(): allows jobs to name keys, for which it makes a table of LANES_KEYS numbers.
 * False when out of memory: no job may name any.
 */
bool lanes_take_keys(struct lanes *q);
/* Nobody has a lane, or waits for one. Lanes may be owed, and are not paid any more. */
void lanes_fini(struct lanes *q);

/* The lane of a key, by its hash. */
static inline uint64_t
lanes_of(uint64_t hash)
{
	return UINT64_C(1) << (hash % LANES);
}

/* The lane of one of the keys of a job. */
static inline uint64_t
lanes_of_key(uint16_t key)
{
	return lanes_of(key);
}

/*
 * Takes the job's lanes, or waits for its turn. True: it leads its group, by `group`, and the
 * caller runs all of them and calls lanes_leave(). False: another fiber has run it, or it was
 * refused (`ret_refused`). `lanes`, `small`, `shares`, `prompt`, `impatient` and `patience_ms` are
 * set; the job stays where it is until this returns.
 */
bool lanes_enter(struct lanes *q, struct lanes_job *job);

/*
 * One of the lanes, for a job that may have any of them: the first that is free or, if groups have
 * all of them, each in its turn. Another job may be quicker.
 */
uint64_t lanes_choose(struct lanes *q, uint64_t lanes);

/*
 * The lanes of all jobs of the group that this one leads, which the group has for itself: not those
 * of jobs with keys.
 */
uint64_t lanes_of_group(const struct lanes_job *leader);

/* Takes those of the lanes that are free, for a group that runs, and returns which these are. */
uint64_t lanes_take_free(struct lanes *q, uint64_t lanes);

/*
 * The group has ended: gives back `lanes`, which are those of lanes_of_group() and those that
 * lanes_take_free() has taken. The fibers of the group's other jobs go on, and own their jobs
 * again.
 */
void lanes_leave(struct lanes *q, struct lanes_job *leader, uint64_t lanes);

/*
 * Of a group that runs: when it has left its lanes, no job begins in them before lanes_pay() with
 * the same lanes. The lane in common is not owed, since it says nothing about keys. Any thread.
 */
void lanes_owe(struct lanes *q, uint64_t lanes);
void lanes_pay(struct lanes *q, uint64_t lanes);

/*
 * For those who have lanes without being a group. lanes_hold() takes these, each as soon as the
 * group that has it has ended; lanes_release() gives them back. A caller that has lanes must not
 * wait for a job: the job may be waiting for these lanes. Nor may it call lanes_hold() again: two
 * callers, each waiting for a lane that the other one has, would wait for ever. Lanes that are owed
 * are not waited for.
 */
void lanes_hold(struct lanes *q, uint64_t lanes);
void lanes_release(struct lanes *q, uint64_t lanes);

#endif
