/*
 * A budget limits the memory that all requests of a server may take together.
 *
 * Each request has a part of the budget. What a request holds is counted in its part in three ways:
 *
 * - A flat amount, BUDGET_PART_BYTES, from budget_enter() on: a stack, an arena's first block and
 *   what else a request needs before it does anything.
 * - What it uses without asking: budget_use() gives it at once or not at all, so such a request
 *   never waits. budget_count() counts memory that is there already and cannot be refused.
 * - What it has asked for before it began something large (budget_ask() in loop/turn.h). Such a
 *   request waits for its turn, oldest request first.
 *
 * == Why no two requests can wait for each other ==
 *
 * There are two kinds of turns. A turn to begin something (a large body, say) may only take the
 * budget up to three quarters, and its holder may hold other memory and wait for its client. A turn
 * to read (a page of a long answer) may take an eighth more than the budget has, which neither a
 * turn to begin nor budget_use() gets; all turns to read together take no more than an eighth of
 * the budget, or one of them what it needs. Their holders give the memory back before they wait for
 * anything but the store, so turns to read always come to an end. They have a queue of their own,
 * which is served first. So a request that waits for a turn to read may hold any other memory: it
 * waits only for requests that do not wait for it.
 *
 * == Why those who stay keep nobody out ==
 *
 * A part lasts from the moment when its request begins something that takes as long as its client
 * likes: budget_ask_to_last() in loop/turn.h, or budget_part_last() where nobody could know before.
 * Lasting parts are let in only up to five eighths of the budget, and while an eighth is free; a
 * request for which there is no room waits for its turn to last. What they leave is for short
 * requests, which end by themselves: some for turns to begin, and the last eighth for small ones.
 * Even if the budget is full beyond that, small ones may exceed it by an eighth. A part that lasts
 * and was not let in is unwelcome while there is no room for such parts: whoever waits for its
 * client has little patience then (budget_is_unwelcome()).
 *
 * What waits for a turn to last holds little: all such requests together no more than an eighth of
 * the budget, or they are refused at once. So lasting requests and those that wait to become such
 * ones leave an eighth free, and no two of the latter can wait for each other.
 *
 * == How those who stall make room ==
 *
 * A part stalls while its client is waited for: to read what it has asked for, or to send what it
 * has begun (budget_stall()). Stalled parts are in the order in which they stalled. While a turn
 * waits, the parts that have stalled for BUDGET_STALL_MS are told to end, the longest stalled one
 * first, until as much is going to be free as the turns lack (budget_make_room()). A part that
 * waits for anything else, such as a feed without changes, does not stall.
 *
 * == How requests shrink when there are many ==
 *
 * budget_read_portion() says how large a turn to read should be: the more of their share is taken,
 * the smaller, down to a least size. budget_output_portion() says the same of output that is
 * waiting for its client: all of that together grows to an eighth of the budget and, once it is
 * larger than that, only by the least size for each connection. What a request may use before
 * anything is taken for it shrinks, too: see BUDGET_FREE_BYTES.
 *
 * The budget is thread-safe; a part belongs to one thread at a time. The budget allocates nothing:
 * the caller that waits owns the memory of its place in the queue.
 */
#ifndef FROND_BASE_BUDGET_H
#define FROND_BASE_BUDGET_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum {
	/*
	 * A part that uses no more than this takes nothing of the budget, so small requests never
	 * touch the lock. All parts together may use no more than one BUDGET_FREE_SHARE-th of the
	 * budget in this way: with many requests, each may use less.
	 */
	BUDGET_FREE_BYTES = 64 * 1024,
	BUDGET_FREE_SHARE = 8,
	BUDGET_LITTLE_SHARE = 8, /* beside less than such a part a request is as good as alone */
	BUDGET_READ_SHARE = 8,   /* one such part of the budget is what turns to read may take */
	BUDGET_EXCESS_SHARE = 8, /* turns to read may exceed it by such a part */
	BUDGET_OUTPUT_SHARE = 8, /* the part up to which output grows */
	/* What lasting requests leave free, and by which small ones may exceed the budget. */
	BUDGET_SHORT_SHARE = 8,
	BUDGET_SMALL_BYTES = 256 * 1024, /* of a part that may exceed it */
	BUDGET_LASTING_EIGHTHS = 5,      /* that lasting requests may take */
	/*
	 * What a request takes in any case, measured: the pages of a stack that it has touched, the
	 * first block of its arena, and the structs of the exchange.
	 */
	BUDGET_PART_BYTES = 20 * 1024,
	/* The longest queue of turns to begin; a further request is refused at once. */
	BUDGET_WAITERS = 1024,
	/* One such part of the budget is what requests that wait for a turn to last may hold. */
	BUDGET_HOPEFUL_SHARE = 8,
	/* For so long a part may have stalled before it has to make room for turns that wait. */
	BUDGET_STALL_MS = 5000,
	/* How often a request that waits for its turn looks for such parts. */
	BUDGET_LOOK_MS = 250,
	/* The longest time for which a part counts as late: budget_has_room(). */
	BUDGET_LATE_MS = 1000,
};

enum budget_kind {
	BUDGET_TO_BEGIN, /* something large, such as a body */
	BUDGET_TO_READ,  /* a page of a long answer */
	BUDGET_TO_LAST,  /* for as long as the client likes */
	BUDGET_KINDS,
};

/*
 * A place in the queue for memory. The caller owns it and must not move it while it is queued, that
 * is, until the caller has ended the turn with budget_leave().
 */
struct budget_turn {
	size_t bytes; /* that are taken when it is granted */
	enum budget_kind kind;
	size_t held_bytes; /* of a turn to last: what its request holds while it waits */
	/*
	 * The budget calls this once, on any thread and with its lock held, when it grants the
	 * turn.
	 */
	void (*granted)(struct budget_turn *turn);
	struct budget_turn *next;
	bool has_come;
};

enum budget_answer {
	BUDGET_GIVEN,  /* the bytes are taken */
	BUDGET_QUEUED, /* the turn is in the queue; the caller ends it with budget_leave() */
	BUDGET_FULL,   /* the queue is full; nothing is taken */
};

/* Turns that wait, oldest first. */
struct budget_waiting {
	struct budget_turn *first;
	struct budget_turn **last;
	size_t count;
	size_t bytes; /* of all of them */
};

struct budget_part;

/* Parts that stall, the longest stalled one first. */
struct budget_stalled {
	struct budget_part *first;
	struct budget_part **last;
};

struct budget {
	pthread_mutex_t lock; /* guards what is below, except the atomic members */
	size_t limit_bytes;   /* never changes */
	/* Changed with the lock held; may be read without it. The flat amounts are not in it. */
	_Atomic size_t taken_bytes;
	size_t peak_bytes; /* the largest taken_bytes since budget_take_peak() was last called */
	size_t returned_bytes; /* since budget_take_returned() was last called */
	struct budget_waiting queues[BUDGET_KINDS];
	struct budget_stalled stalled;
	size_t unwanted_bytes;        /* of parts that were told to end and have not */
	_Atomic size_t hopeful_bytes; /* that requests which wait for a turn to last hold */
	_Atomic size_t waiting;       /* turns in all queues */
	_Atomic size_t hopeful;       /* turns to last */
	_Atomic size_t parts;         /* between budget_enter() and budget_part_release() */
	_Atomic size_t output_bytes;  /* that budget_count_output() has counted */
	_Atomic size_t read_bytes;    /* of turns to read; changed with the lock held */
	/* Of lasting parts: their flat amounts, and what they have taken without asking for it. */
	_Atomic size_t lasting_bytes;
	/*
	 * The late parts that have begun since `late_ns` and have not ended: budget_has_room().
	 * Both are changed with the lock held.
	 */
	_Atomic uint64_t late_ns;
	_Atomic size_t late_parts;
};

struct budget_part {
	struct budget *budget; /* NULL: memory is not limited */
	size_t asked_bytes;    /* bytes that budget_ask() has got for this part */
	size_t used_bytes;
	size_t taken_bytes;   /* bytes of the budget that this part holds */
	size_t read_bytes;    /* of taken_bytes: a turn to read, until budget_settle() */
	size_t output_bytes;  /* of used_bytes: output */
	size_t lasting_bytes; /* counted in the budget's `lasting_bytes` */
	size_t most_bytes;    /* that it may use; at most half of it by budget_ask(); 0: any */
	uint64_t late_ns;     /* the budget's, when it has begun late; 0: it was not late */
	bool entered;         /* counted in the budget's `parts` */
	bool lasts;           /* it may take as long as its client likes; nothing is free for it */
	bool admitted;        /* there was room for it to last: budget_ask_to_last() */
	/* A use failed because other parts held too much memory; trying again later may help. */
	bool refused;
	/*
	 * A use failed although others held little, or because the part would need more than the
	 * budget or than `most_bytes`: trying again later does not help.
	 */
	bool exceeded;

	/*
	 * While it stalls: its place among those that do, and what it held at that time. The
	 * budget's lock, but `stalls`, which is of the part's thread.
	 */
	struct budget_part *stalled_next;
	struct budget_part **stalled_link; /* NULL: it was told to end */
	uint64_t stalled_ns;               /* since when */
	size_t stalled_bytes;
	void (*told)(struct budget_part *p);
	bool stalls;
	_Atomic bool unwanted; /* it was told to end */
};

/* A use failed, for either reason, since budget_forgive(). */
static inline bool
budget_has_failed(const struct budget_part *p)
{
	return p->refused || p->exceeded;
}

/* Something new begins, which is to know of its own failures only. */
static inline void
budget_forgive(struct budget_part *p)
{
	p->refused = p->exceeded = false;
}

void budget_init(struct budget *b, size_t limit_bytes);
void budget_fini(struct budget *b); /* The caller has released every part before. */

/*
 * budget_taken() returns the bytes that are taken now, the flat amounts aside. budget_take_peak()
 * returns the largest number of bytes that was taken since its last call, and
 * budget_take_returned() how many came back since its own.
 */
size_t budget_taken(struct budget *b);
size_t budget_take_peak(struct budget *b);
size_t budget_take_returned(struct budget *b);

/* Returns the bytes that are taken now, the flat amounts included. Takes no lock. */
size_t budget_held(const struct budget *b);

/* True if more than three quarters are taken. Takes no lock. */
bool budget_is_short(const struct budget *b);

/*
 * True if a turn to begin or to read waits: then those who can do without some memory give it back.
 * Turns to last do not count, because what is given back so would not be enough for one.
 */
bool budget_is_wanted(const struct budget *b);

/*
 * These return how much to take of something that is best with `most` bytes: nearly all of that
 * while little of its share of the budget is taken, and less and less afterwards, but never less
 * than `least`. The share is all of the budget, that of turns to read, or that of output which
 * waits for a client.
 */
size_t budget_portion(const struct budget *b, size_t most, size_t least);
size_t budget_read_portion(const struct budget *b, size_t most, size_t least);
size_t budget_output_portion(const struct budget *b, size_t most, size_t least);

void budget_part_init(struct budget_part *p, struct budget *b);

/*
 * Counts the flat amount of a request, until the part is released. If that is more than the budget
 * has, turns to read aside, and short requests have exceeded it by their share, it is counted all
 * the same, and `p->refused` is set: the request must end soon.
 */
void budget_enter(struct budget_part *p);

/* Returns how many bytes a request for `n` bytes gets: at most three quarters of the budget. */
size_t budget_askable(const struct budget *b, size_t n);

/* Takes `turn->bytes` of the budget at once, or puts the turn at the end of the queue. */
enum budget_answer budget_queue(struct budget *b, struct budget_turn *turn);

/*
 * Ends a turn that was queued. Returns true if the budget has granted the turn; its bytes are then
 * taken. Otherwise takes the turn out of the queue, and nothing is taken.
 */
bool budget_leave(struct budget *b, struct budget_turn *turn);

/* Adds the bytes of a turn, which the caller has taken, to what the part has asked for. */
void budget_part_give(struct budget_part *p, const struct budget_turn *turn);

/*
 * Returns how many bytes a turn must have so that the part can use `n` bytes more than it uses now;
 * 0 if it holds enough already.
 */
size_t budget_part_lacks(const struct budget_part *p, size_t n);

/* Counts `n` bytes as used. Returns false and counts nothing if the budget does not have them. */
bool budget_use(struct budget_part *p, size_t n);
/* Counts `n` bytes as used that are there already, even if that is more than the budget has. */
void budget_count(struct budget_part *p, size_t n);
void budget_unuse(struct budget_part *p, size_t n);
/* The part uses `n` bytes in all now. Counts the difference by budget_count() or budget_unuse(). */
void budget_count_all(struct budget_part *p, size_t n);

/* The part's output takes `n` bytes now. This is counted like budget_count(). */
void budget_count_output(struct budget_part *p, size_t n);

/*
 * The part lasts from now on, until it is released: all that it uses is taken of the budget, also
 * the first bytes. For a request that is going to wait for its client.
 */
void budget_part_last(struct budget_part *p);

/*
 * The opposite: its client has asked for something new, which is expected to be short, and needs a
 * turn of its own if it turns out to last.
 */
void budget_part_end_lasting(struct budget_part *p);

/*
 * Like budget_use() for a part that lasts, but may exceed the budget by the share that short
 * requests have: for what is better kept than lost.
 */
bool budget_use_reserve(struct budget_part *p, size_t n);

/*
 * Makes the part one that lasts and was let in, after its turn to last was granted. The turn's
 * bytes count as used; the caller gives them back with budget_unuse() when it uses what they are
 * for.
 */
void budget_part_admit(struct budget_part *p, const struct budget_turn *turn);

/* True if a turn to last would be granted at once, as far as can be told without the lock. */
bool budget_may_last(const struct budget_part *p);

/* The flat amount of the part, and what it has taken. */
size_t budget_part_held(const struct budget_part *p);

/*
 * The part stalls from now on, if it does not yet: its client is waited for. The budget calls
 * `told` at most once, on any thread and with its lock held, if the part is to make room: then
 * budget_is_unwanted() is true, and the part should be released soon. budget_unstall() ends it,
 * because the client has moved something, and makes the part wanted again; releasing the part does,
 * too.
 */
void budget_stall(struct budget_part *p, void (*told)(struct budget_part *p));
void budget_unstall(struct budget_part *p);
bool budget_is_unwanted(const struct budget_part *p); /* Takes no lock. */

/*
 * Tells parts that have stalled for BUDGET_STALL_MS to end, as far as the turns that wait lack
 * memory. Those who wait call it now and then.
 */
void budget_make_room(struct budget *b);

/*
 * True if the part lasts, was not let in, and there is no room for such parts. `*ret_full` says
 * whether the budget is used up, so that the part must go at once. Takes no lock.
 */
bool budget_is_unwelcome(const struct budget_part *p, bool *ret_full);

/* Gives back the bytes that the part has asked for and does not use. */
void budget_settle(struct budget_part *p);

/* Gives everything back. Allowed on a part that was never used, and more than once. */
void budget_part_release(struct budget_part *p);

#endif
