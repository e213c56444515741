/*
 * The watchdog: a thread that sees when another one does not come back.
 *
 * Each loop, and each thread of a pool, has a post. It begins a spell of work there (a fiber is
 * entered, a piece of work is taken) and ends it. The watchdog looks at all posts every
 * WATCHDOG_LOOK_MS: a loop that has been in the same spell for WATCHDOG_HELD_MS holds up every
 * other fiber of that loop, and is logged with what the fiber is doing:
 *
 *     event=loop_held ms=75 doing="GET /db/_changes"        when it has been seen,
 *     event=loop_released ms=1312 doing="GET /db/_changes"  and when it is over.
 *
 * There is one line in WATCHDOG_LOG_MS, so that of many holds the first is told, and any that
 * lasts.
 *
 * The watchdog also ends a process that does not stop in time: watchdog_end_by().
 *
 * A process has one watchdog. Its functions may be called from any thread. A post belongs to the
 * thread that works there; its cells are atomic, so that the watchdog may read them at any time.
 */
#ifndef FROND_LOOP_WATCHDOG_H
#define FROND_LOOP_WATCHDOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/str.h"

enum {
	WATCHDOG_LOOK_MS = 25,
	WATCHDOG_HELD_MS = 50,
	WATCHDOG_LOG_MS = 10 * 1000, /* between two holds that are logged */
	WATCHDOG_LABEL_WORDS = 12,
	WATCHDOG_LABEL_BYTES = WATCHDOG_LABEL_WORDS * 8, /* a longer text is cut */
};

/* What a fiber does, for people. Read while it is written, it may be a mixture of two texts. */
struct watchdog_label {
	_Atomic uint64_t words[WATCHDOG_LABEL_WORDS];
	struct watchdog_label *next; /* of its owner's spare ones */
};

struct watchdog_post {
	const char *kind; /* "loop" */
	bool may_block;   /* long spells are normal, and are not logged */
	_Atomic uint64_t spell;
	/* NULL: no work is under way. The label exists until the post is removed. */
	_Atomic(const struct watchdog_label *) label;
	_Atomic bool seen; /* the watchdog wants to know when this spell ends */
	_Atomic uint64_t ended_ns;

	/* The watchdog's. */
	struct watchdog_post *next;
	uint64_t looked_spell;
	uint64_t looked_ns;               /* when that spell was seen first */
	bool held;                        /* that spell has held up others, and is counted */
	bool logged;                      /* and it was told */
	char doing[WATCHDOG_LABEL_BYTES]; /* of the hold that was seen */
};

void watchdog_add(struct watchdog_post *p, const char *kind, bool may_block);
void watchdog_remove(struct watchdog_post *p); /* fine if it was not added */

/* "VERB OBJECT", without the quotes. */
void watchdog_label_set(struct watchdog_label *label, struct str verb, struct str object);

void watchdog_label_copy(struct watchdog_label *to, const struct watchdog_label *from);

/* A spell ends that the watchdog has seen. */
void watchdog_note_end(struct watchdog_post *p);

static inline void
watchdog_begin(struct watchdog_post *p, const struct watchdog_label *label)
{
	uint64_t spell = atomic_load_explicit(&p->spell, memory_order_relaxed);

	atomic_store_explicit(&p->spell, spell + 1, memory_order_relaxed);
	/* Release: the watchdog that sees the pointer sees the label's memory as it was made. */
	atomic_store_explicit(&p->label, label, memory_order_release);
}

static inline void
watchdog_end(struct watchdog_post *p)
{
	atomic_store_explicit(&p->label, NULL, memory_order_relaxed);
	if (__builtin_expect(atomic_load_explicit(&p->seen, memory_order_relaxed), 0))
		watchdog_note_end(p);
}

/* Starts the thread. STATUS_LIMIT when there can be none. */
MUST_USE enum status watchdog_start(struct err *err);
/* Ends it. Fine if it was not started. */
void watchdog_stop(void);

/*
 * At that moment of the monotonic clock the watchdog logs `event=stop_overdue` with what is under
 * way, and ends the process with _exit(code). An earlier moment wins. Also from signal handlers.
 */
void watchdog_end_by(uint64_t at_ns, int code);

/* What the process waits for while it stops, for that log line. `stage` is a literal. */
void watchdog_set_stage(const char *stage);

#endif
