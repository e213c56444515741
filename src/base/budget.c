#include "base/budget.h"

#include <assert.h>

#include "base/budget_room.h"
#include "base/clock.h"

enum {
	/*
	 * So much of each part that does not last is never counted, however many parts there are:
	 * the flat amount covers it. So a request that has begun can be answered, if only by an
	 * error.
	 */
	BUDGET_FLOOR_BYTES = 4 * 1024,
};

static void
budget_waiting_init(struct budget_waiting *w)
{
	*w = (struct budget_waiting){ .last = &w->first };
}

void
budget_init(struct budget *b, size_t limit_bytes)
{
	*b = (struct budget){ .limit_bytes = limit_bytes };
	pthread_mutex_init(&b->lock, NULL);
	for (size_t i = 0; i < BUDGET_KINDS; i++)
		budget_waiting_init(&b->queues[i]);
	b->stalled.last = &b->stalled.first;
}

void
budget_fini(struct budget *b)
{
	for (size_t i = 0; i < BUDGET_KINDS; i++)
		assert(!b->queues[i].first && b->queues[i].bytes == 0);
	assert(b->taken_bytes == 0 && b->parts == 0 && b->output_bytes == 0);
	assert(b->read_bytes == 0 && b->lasting_bytes == 0 && b->hopeful_bytes == 0);
	assert(!b->stalled.first && b->unwanted_bytes == 0);
	pthread_mutex_destroy(&b->lock);
}

/* ---- How much there is ---- */

static size_t
budget_read_relaxed(const _Atomic size_t *n)
{
	return atomic_load_explicit(n, memory_order_relaxed);
}

size_t
budget_taken(struct budget *b)
{
	return budget_read_relaxed(&b->taken_bytes);
}

size_t
budget_held(const struct budget *b)
{
	return budget_read_relaxed(&b->taken_bytes) +
	       budget_read_relaxed(&b->parts) * BUDGET_PART_BYTES;
}

size_t
budget_take_peak(struct budget *b)
{
	size_t n;

	pthread_mutex_lock(&b->lock);
	n = b->peak_bytes;
	b->peak_bytes = budget_read_relaxed(&b->taken_bytes);
	pthread_mutex_unlock(&b->lock);
	return n;
}

size_t
budget_take_returned(struct budget *b)
{
	size_t n;

	pthread_mutex_lock(&b->lock);
	n = b->returned_bytes;
	b->returned_bytes = 0;
	pthread_mutex_unlock(&b->lock);
	return n;
}

/* The most that lasting parts have together before more of them are let in. */
static size_t
budget_lasting_share(const struct budget *b)
{
	return b->limit_bytes / 8 * BUDGET_LASTING_EIGHTHS;
}

/* The most that all have together before more lasting parts are let in. */
static size_t
budget_lasting_most(const struct budget *b)
{
	/* Turns to read are given back soon, and keep nobody out. */
	return b->limit_bytes - b->limit_bytes / BUDGET_SHORT_SHARE +
	       budget_read_relaxed(&b->read_bytes);
}

/* True if there is room for one more lasting part. */
static bool
budget_admits_lasting(const struct budget *b)
{
	return budget_read_relaxed(&b->lasting_bytes) <= budget_lasting_share(b) &&
	       budget_held(b) <= budget_lasting_most(b);
}

/* True if others wait for memory, and half of it is held by those that do not read it. */
static bool
budget_is_waited_for(const struct budget *b)
{
	return budget_read_relaxed(&b->waiting) > 0 &&
	       budget_held(b) > b->limit_bytes / 2 + budget_read_relaxed(&b->read_bytes);
}

/*
 * True if all parts together, with `n` bytes more, hold no more than the budget and `share`. Turns
 * to read are not counted.
 */
static bool
budget_exceeds_within(const struct budget *b, size_t n, size_t share)
{
	return n <= share &&
	       budget_held(b) <= b->limit_bytes + budget_read_relaxed(&b->read_bytes) + share - n;
}

/* True if the budget is used up. Turns to read are not counted. */
static bool
budget_is_full(const struct budget *b)
{
	return !budget_exceeds_within(b, 0, 0);
}

/* True if all parts that do not last, with `n` bytes more, hold no more than `share` together. */
static bool
budget_short_within(const struct budget *b, size_t n, size_t share)
{
	size_t others = budget_read_relaxed(&b->lasting_bytes) +
			budget_read_relaxed(&b->read_bytes) +
			budget_read_relaxed(&b->hopeful_bytes);
	size_t held = budget_held(b);

	/* The counters are read one after another: the others' may seem larger than the sum. */
	return n <= share && (held < others || held - others <= share - n);
}

/* True if parts that do not last may take `n` bytes more, whatever others have that last. */
static bool
budget_has_for_short(const struct budget *b, size_t n)
{
	size_t share = b->limit_bytes / BUDGET_SHORT_SHARE;

	return budget_exceeds_within(b, n, share) || budget_short_within(b, n, share);
}

/* ---- Room for one more ---- */

static size_t
budget_room_share(const struct budget *b)
{
	return b->limit_bytes / BUDGET_SHORT_SHARE / 2;
}

static bool
budget_late_is_over(const struct budget *b, uint64_t now_ns)
{
	uint64_t since_ns = atomic_load_explicit(&b->late_ns, memory_order_relaxed);

	return now_ns - since_ns >= BUDGET_LATE_MS * CLOCK_NS_PER_MS;
}

/*
 * True if one more part may begin late. Without this limit thousands could begin at once: a part
 * that waits for its client lasts, so each of them would find that no short part holds anything.
 */
static bool
budget_late_within(const struct budget *b)
{
	return budget_read_relaxed(&b->late_parts) * BUDGET_PART_BYTES <= budget_room_share(b) ||
	       budget_late_is_over(b, clock_mono_ns());
}

/* A part has just begun: counts it among the late ones if it is one of them. */
static void
budget_count_late(struct budget_part *p)
{
	struct budget *b = p->budget;
	uint64_t now_ns;

	if (!budget_is_full(b))
		return;
	now_ns = clock_mono_ns();
	pthread_mutex_lock(&b->lock);
	if (budget_late_is_over(b, now_ns)) {
		atomic_store_explicit(&b->late_ns, now_ns, memory_order_relaxed);
		atomic_store_explicit(&b->late_parts, 0, memory_order_relaxed);
	}
	atomic_fetch_add_explicit(&b->late_parts, 1, memory_order_relaxed);
	p->late_ns = b->late_ns;
	pthread_mutex_unlock(&b->lock);
}

static void
budget_uncount_late(struct budget_part *p)
{
	struct budget *b = p->budget;

	if (!p->late_ns)
		return;
	pthread_mutex_lock(&b->lock);
	if (b->late_ns == p->late_ns)
		atomic_fetch_sub_explicit(&b->late_parts, 1, memory_order_relaxed);
	pthread_mutex_unlock(&b->lock);
}

bool
budget_has_room(const struct budget *b)
{
	return !b || !budget_is_full(b) ||
	       (budget_short_within(b, 0, budget_room_share(b)) && budget_late_within(b));
}

bool
budget_is_half_held(const struct budget *b)
{
	return b && budget_held(b) > b->limit_bytes / 2;
}

bool
budget_is_short(const struct budget *b)
{
	return budget_held(b) > b->limit_bytes - b->limit_bytes / 4;
}

bool
budget_is_wanted(const struct budget *b)
{
	size_t hopeful = budget_read_relaxed(&b->hopeful);

	return budget_read_relaxed(&b->waiting) > hopeful;
}

/* `most` while none of `room` is used, nothing when all of it is, but never less than `least`. */
static size_t
budget_shrink(size_t most, size_t least, size_t used, size_t room)
{
	size_t n = used < room ? (size_t)((double)most * (double)(room - used) / (double)room) : 0;

	return n > least ? n : least < most ? least : most;
}

size_t
budget_portion(const struct budget *b, size_t most, size_t least)
{
	return budget_shrink(most, least, budget_held(b), b->limit_bytes);
}

static size_t
budget_read_share(const struct budget *b)
{
	return b->limit_bytes / BUDGET_READ_SHARE;
}

size_t
budget_read_portion(const struct budget *b, size_t most, size_t least)
{
	return budget_shrink(most, least, budget_read_relaxed(&b->read_bytes),
			     budget_read_share(b));
}

size_t
budget_output_portion(const struct budget *b, size_t most, size_t least)
{
	return budget_shrink(most, least, budget_read_relaxed(&b->output_bytes),
			     b->limit_bytes / BUDGET_OUTPUT_SHARE);
}

/* True if others hold so little, `n` bytes, that a request beside them is as good as alone. */
static bool
budget_is_little(const struct budget *b, size_t n)
{
	return n < b->limit_bytes / BUDGET_LITTLE_SHARE;
}

/* The most that turns to begin may take. */
static size_t
budget_begin_share(const struct budget *b)
{
	return b->limit_bytes - b->limit_bytes / 4;
}

/* ---- Taking ---- */

static void
budget_add_locked(struct budget *b, size_t n)
{
	size_t taken = budget_read_relaxed(&b->taken_bytes) + n;

	atomic_store_explicit(&b->taken_bytes, taken, memory_order_relaxed);
	if (taken > b->peak_bytes)
		b->peak_bytes = taken;
}

/* `n` bytes, if no more than `most` are taken then. */
static bool
budget_take_locked(struct budget *b, size_t n, size_t most)
{
	if (n > most || budget_held(b) > most - n)
		return false;
	budget_add_locked(b, n);
	return true;
}

/*
 * Takes the bytes of a turn to begin. One that is too large for what its share has left gets them
 * nevertheless when little else is taken, the flat amounts aside. It cannot wait until nothing is
 * taken: the first bytes of its own request are, and connections at rest may hold something for
 * ever.
 */
static bool
budget_take_begin_locked(struct budget *b, size_t n)
{
	if (budget_take_locked(b, n, budget_begin_share(b)))
		return true;
	if (!budget_is_little(b, budget_read_relaxed(&b->taken_bytes)))
		return false;
	budget_add_locked(b, n);
	return true;
}

/*
 * Takes the bytes of a turn to read. With no other turn to read under way it gets them in any case:
 * otherwise nobody could promise that it ever will.
 */
static bool
budget_take_read_locked(struct budget *b, size_t n)
{
	size_t reads = budget_read_relaxed(&b->read_bytes);
	size_t most = b->limit_bytes + b->limit_bytes / BUDGET_EXCESS_SHARE;

	if (reads > 0 && (reads + n > budget_read_share(b) || budget_held(b) + n > most))
		return false;
	budget_add_locked(b, n);
	atomic_store_explicit(&b->read_bytes, reads + n, memory_order_relaxed);
	return true;
}

/*
 * Takes the bytes of a turn to last, and counts the part as a lasting one at once: many are granted
 * before the first of them runs.
 */
static bool
budget_take_last_locked(struct budget *b, size_t n)
{
	if (!budget_admits_lasting(b))
		return false;
	budget_add_locked(b, n);
	atomic_fetch_add_explicit(&b->lasting_bytes, n + BUDGET_PART_BYTES, memory_order_relaxed);
	return true;
}

static bool
budget_take_turn_locked(struct budget *b, const struct budget_turn *turn)
{
	switch (turn->kind) {
	case BUDGET_TO_READ:
		return budget_take_read_locked(b, turn->bytes);
	case BUDGET_TO_LAST:
		return budget_take_last_locked(b, turn->bytes);
	case BUDGET_TO_BEGIN:
	case BUDGET_KINDS:
		break;
	}
	return budget_take_begin_locked(b, turn->bytes);
}

/* ---- Turns ---- */

/* A turn joins those that wait, or, if `joins` is false, is no longer among them. */
static void
budget_count_turn_locked(struct budget *b, const struct budget_turn *turn, bool joins)
{
	struct budget_waiting *w = &b->queues[turn->kind];
	size_t one = joins ? 1 : (size_t)-1;

	w->count += one;
	w->bytes += joins ? turn->bytes : -turn->bytes;
	atomic_fetch_add_explicit(&b->hopeful_bytes, joins ? turn->held_bytes : -turn->held_bytes,
				  memory_order_relaxed);
	atomic_fetch_add_explicit(&b->waiting, one, memory_order_relaxed);
	if (turn->kind == BUDGET_TO_LAST)
		atomic_fetch_add_explicit(&b->hopeful, one, memory_order_relaxed);
}

/*
 * Grants turns in the order of the queue, so that small turns cannot overtake a large turn at its
 * head for ever. The caller holds the lock, so a turn that is granted here cannot leave the queue
 * at the same time.
 */
static void
budget_grant_queue_locked(struct budget *b, struct budget_waiting *w)
{
	while (w->first && budget_take_turn_locked(b, w->first)) {
		struct budget_turn *turn = w->first;

		w->first = turn->next;
		if (!w->first)
			w->last = &w->first;
		budget_count_turn_locked(b, turn, false);
		assert(!turn->has_come);
		turn->has_come = true;
		/*
		 * This wakes the fiber that waits. The fiber takes the lock in budget_leave()
		 * before it frees the turn, so the turn stays valid until this function returns.
		 */
		turn->granted(turn);
	}
}

/*
 * Turns to read come first: their memory is given back soon. Turns to last wait for none of the
 * others, because idle feeds may keep them waiting for long.
 */
static void
budget_grant_locked(struct budget *b)
{
	budget_grant_queue_locked(b, &b->queues[BUDGET_TO_READ]);
	budget_grant_queue_locked(b, &b->queues[BUDGET_TO_LAST]);
	if (!b->queues[BUDGET_TO_READ].first)
		budget_grant_queue_locked(b, &b->queues[BUDGET_TO_BEGIN]);
}

static void
budget_remove_locked(struct budget *b, struct budget_turn *turn)
{
	struct budget_waiting *w = &b->queues[turn->kind];
	struct budget_turn **at = &w->first;

	while (*at != turn)
		at = &(*at)->next;
	*at = turn->next;
	if (w->last == &turn->next)
		w->last = at;
	budget_count_turn_locked(b, turn, false);
}

/* Gives back `n` bytes, and ends turns to read of `reads` bytes. */
static void
budget_give_back(struct budget *b, size_t n, size_t reads)
{
	pthread_mutex_lock(&b->lock);
	assert(b->taken_bytes >= n && b->read_bytes >= reads);
	b->returned_bytes += n;
	atomic_store_explicit(&b->taken_bytes, budget_read_relaxed(&b->taken_bytes) - n,
			      memory_order_relaxed);
	atomic_store_explicit(&b->read_bytes, budget_read_relaxed(&b->read_bytes) - reads,
			      memory_order_relaxed);
	budget_grant_locked(b);
	pthread_mutex_unlock(&b->lock);
}

size_t
budget_askable(const struct budget *b, size_t n)
{
	size_t most = budget_begin_share(b);

	return n < most ? n : most;
}

/* True if the turn has to wait behind others, whether or not there is memory for it. */
static bool
budget_is_behind_locked(const struct budget *b, const struct budget_turn *turn)
{
	if (turn->kind == BUDGET_TO_BEGIN && b->queues[BUDGET_TO_READ].first)
		return true;
	return b->queues[turn->kind].first;
}

/* True if one more turn of its kind may wait. */
static bool
budget_may_wait_locked(const struct budget *b, const struct budget_turn *turn)
{
	switch (turn->kind) {
	case BUDGET_TO_BEGIN:
		return b->queues[turn->kind].count < BUDGET_WAITERS;
	case BUDGET_TO_LAST:
		return budget_read_relaxed(&b->hopeful_bytes) + turn->held_bytes <=
		       b->limit_bytes / BUDGET_HOPEFUL_SHARE;
	case BUDGET_TO_READ:
	case BUDGET_KINDS:
		break;
	}
	return true;
}

enum budget_answer
budget_queue(struct budget *b, struct budget_turn *turn)
{
	struct budget_waiting *w = &b->queues[turn->kind];
	enum budget_answer answer = BUDGET_QUEUED;

	turn->next = NULL;
	turn->has_come = false;
	pthread_mutex_lock(&b->lock);
	if (!budget_is_behind_locked(b, turn) && budget_take_turn_locked(b, turn)) {
		answer = BUDGET_GIVEN;
	} else if (!budget_may_wait_locked(b, turn)) {
		answer = BUDGET_FULL;
	} else {
		*w->last = turn;
		w->last = &turn->next;
		budget_count_turn_locked(b, turn, true);
	}
	pthread_mutex_unlock(&b->lock);
	return answer;
}

bool
budget_leave(struct budget *b, struct budget_turn *turn)
{
	bool has_come;

	/*
	 * The budget may grant the turn at the moment when the caller gives up. Under the lock the
	 * turn is in one of two states: it is still in the queue, or it is granted and its bytes
	 * are taken.
	 */
	pthread_mutex_lock(&b->lock);
	has_come = turn->has_come;
	if (!has_come) {
		budget_remove_locked(b, turn);
		budget_grant_locked(b); /* There may be enough memory for the next, smaller turn. */
	}
	pthread_mutex_unlock(&b->lock);
	return has_come;
}

/* ---- Parts ---- */

void
budget_part_init(struct budget_part *p, struct budget *b)
{
	*p = (struct budget_part){ .budget = b };
}

/* Brings the sum of lasting parts up to date. Called after whatever it depends on has changed. */
static void
budget_part_sum(struct budget_part *p)
{
	size_t before = p->lasting_bytes;
	size_t n = 0;

	if (!p->lasts)
		return;
	if (p->entered)
		n += BUDGET_PART_BYTES;
	if (p->taken_bytes > p->asked_bytes)
		n += p->taken_bytes - p->asked_bytes;
	if (n == before)
		return;
	p->lasting_bytes = n;
	atomic_fetch_add_explicit(&p->budget->lasting_bytes, n - before, memory_order_relaxed);
}

void
budget_enter(struct budget_part *p)
{
	struct budget *b = p->budget;

	if (!b || p->entered)
		return;
	p->entered = true;
	atomic_fetch_add_explicit(&b->parts, 1, memory_order_relaxed);
	budget_count_late(p);
	if (budget_is_full(b) && !budget_has_for_short(b, 0))
		p->refused = true;
}

/* The flat amount may be what the first turn in a queue waits for. */
static void
budget_part_exit(struct budget_part *p)
{
	struct budget *b = p->budget;

	if (!p->entered)
		return;
	atomic_fetch_sub_explicit(&b->parts, 1, memory_order_relaxed);
	budget_uncount_late(p);
	if (budget_read_relaxed(&b->waiting))
		budget_give_back(b, 0, 0);
}

/* True if nothing has to be taken for a part that uses `used` bytes. */
static bool
budget_part_is_free(const struct budget_part *p, size_t used)
{
	const struct budget *b = p->budget;

	if (p->lasts || used > BUDGET_FREE_BYTES)
		return false;
	return used <= BUDGET_FLOOR_BYTES ||
	       used * budget_read_relaxed(&b->parts) <= b->limit_bytes / BUDGET_FREE_SHARE;
}

void
budget_part_give(struct budget_part *p, const struct budget_turn *turn)
{
	p->taken_bytes += turn->bytes;
	p->asked_bytes = p->taken_bytes;
	if (turn->kind == BUDGET_TO_READ)
		p->read_bytes += turn->bytes;
	budget_part_sum(p);
}

size_t
budget_part_lacks(const struct budget_part *p, size_t n)
{
	size_t wanted = p->used_bytes + n;

	return wanted > p->taken_bytes ? wanted - p->taken_bytes : 0;
}

static bool
budget_part_take(struct budget_part *p, size_t more)
{
	struct budget *b = p->budget;
	bool taken;

	pthread_mutex_lock(&b->lock);
	taken = budget_take_locked(b, more, b->limit_bytes);
	if (!taken && !p->lasts && p->used_bytes + more <= BUDGET_SMALL_BYTES &&
	    budget_has_for_short(b, more)) {
		budget_add_locked(b, more);
		taken = true;
	}
	pthread_mutex_unlock(&b->lock);
	if (!taken)
		return false;
	p->taken_bytes += more;
	budget_part_sum(p);
	return true;
}

/* True if all others, with their flat amounts, hold little. */
static bool
budget_part_is_alone(const struct budget_part *p)
{
	size_t held = budget_held(p->budget);
	size_t own = budget_part_held(p);

	return held < own || budget_is_little(p->budget, held - own);
}

bool
budget_use(struct budget_part *p, size_t n)
{
	size_t used = p->used_bytes + n;

	if (p->most_bytes && used > p->most_bytes) {
		p->exceeded = true;
		return false;
	}
	if (p->budget && used > p->taken_bytes && !budget_part_is_free(p, used) &&
	    !budget_part_take(p, used - p->taken_bytes)) {
		if (used > p->budget->limit_bytes || budget_part_is_alone(p))
			p->exceeded = true;
		else
			p->refused = true;
		return false;
	}
	p->used_bytes = used;
	return true;
}

bool
budget_use_reserve(struct budget_part *p, size_t n)
{
	struct budget *b = p->budget;
	bool taken;

	assert(!p->most_bytes);
	if (budget_use(p, n))
		return true;
	pthread_mutex_lock(&b->lock);
	taken = budget_take_locked(b, n,
				   b->limit_bytes + b->limit_bytes / BUDGET_SHORT_SHARE +
					   budget_read_relaxed(&b->read_bytes));
	pthread_mutex_unlock(&b->lock);
	if (!taken)
		return false;
	p->taken_bytes += n;
	p->used_bytes += n;
	budget_part_sum(p);
	return true;
}

void
budget_count(struct budget_part *p, size_t n)
{
	p->used_bytes += n;
	if (p->budget && p->used_bytes > p->taken_bytes && !budget_part_is_free(p, p->used_bytes)) {
		pthread_mutex_lock(&p->budget->lock);
		budget_add_locked(p->budget, p->used_bytes - p->taken_bytes);
		pthread_mutex_unlock(&p->budget->lock);
		p->taken_bytes = p->used_bytes;
		budget_part_sum(p);
	}
}

static void
budget_give_back_unused(struct budget_part *p)
{
	size_t keep = p->asked_bytes;

	if (p->used_bytes > keep)
		keep = budget_part_is_free(p, p->used_bytes) ? keep : p->used_bytes;
	if (p->taken_bytes > keep) {
		size_t back = p->taken_bytes - keep;

		/* First, so that a turn to last finds that there is less of what lasts. */
		p->taken_bytes = keep;
		budget_part_sum(p);
		budget_give_back(p->budget, back, 0);
	}
	budget_part_sum(p);
}

void
budget_unuse(struct budget_part *p, size_t n)
{
	assert(p->used_bytes >= n);
	p->used_bytes -= n;
	/* What the part has asked for stays its own, and most often that is all it has taken. */
	if (p->taken_bytes > p->asked_bytes)
		budget_give_back_unused(p);
}

void
budget_count_all(struct budget_part *p, size_t n)
{
	if (n > p->used_bytes)
		budget_count(p, n - p->used_bytes);
	else if (n < p->used_bytes)
		budget_unuse(p, p->used_bytes - n);
}

void
budget_count_output(struct budget_part *p, size_t n)
{
	size_t before = p->output_bytes;

	if (n == before || !p->budget)
		return;
	p->output_bytes = n;
	atomic_fetch_add_explicit(&p->budget->output_bytes, n - before, memory_order_relaxed);
	if (n > before)
		budget_count(p, n - before);
	else
		budget_unuse(p, before - n);
}

void
budget_part_last(struct budget_part *p)
{
	if (p->lasts)
		return;
	p->lasts = true;
	if (!p->budget)
		return;
	budget_count(p, 0); /* what was free for it is taken now */
	budget_part_sum(p);
}

/* The part is none of those that last any more. */
static void
budget_part_uncount_lasting(struct budget_part *p)
{
	if (p->lasting_bytes)
		atomic_fetch_sub_explicit(&p->budget->lasting_bytes, p->lasting_bytes,
					  memory_order_relaxed);
	p->lasting_bytes = 0;
}

void
budget_part_end_lasting(struct budget_part *p)
{
	if (!p->lasts)
		return;
	budget_part_uncount_lasting(p);
	p->lasts = p->admitted = false;
	if (p->budget && budget_read_relaxed(&p->budget->waiting))
		budget_give_back(p->budget, 0, 0);
}

void
budget_part_admit(struct budget_part *p, const struct budget_turn *turn)
{
	assert(!p->admitted && turn->kind == BUDGET_TO_LAST);
	p->admitted = true;
	p->taken_bytes += turn->bytes;
	p->used_bytes += turn->bytes;
	/* The turn has counted so much already; budget_part_sum() corrects it. */
	p->lasting_bytes += turn->bytes + BUDGET_PART_BYTES;
	p->lasts = true;
	budget_count(p, 0); /* what was free for it is taken now */
	budget_part_sum(p);
}

bool
budget_may_last(const struct budget_part *p)
{
	const struct budget *b = p->budget;

	return !b || p->admitted ||
	       (budget_read_relaxed(&b->hopeful) == 0 && budget_admits_lasting(b));
}

size_t
budget_part_held(const struct budget_part *p)
{
	return p->taken_bytes + (p->entered ? BUDGET_PART_BYTES : 0);
}

bool
budget_is_unwelcome(const struct budget_part *p, bool *ret_full)
{
	if (!p->budget || !p->lasts || p->admitted)
		return false;
	if (budget_admits_lasting(p->budget) && !budget_is_waited_for(p->budget))
		return false;
	*ret_full = budget_is_full(p->budget);
	return true;
}

void
budget_settle(struct budget_part *p)
{
	size_t reads = p->read_bytes;

	p->asked_bytes = 0;
	p->read_bytes = 0;
	if (p->taken_bytes)
		budget_give_back_unused(p);
	if (reads)
		budget_give_back(p->budget, 0, reads);
}

/* ---- Those who stall ---- */

static void
budget_stalled_remove_locked(struct budget *b, struct budget_part *p)
{
	*p->stalled_link = p->stalled_next;
	if (p->stalled_next)
		p->stalled_next->stalled_link = p->stalled_link;
	else
		b->stalled.last = p->stalled_link;
	p->stalled_link = NULL;
}

void
budget_stall(struct budget_part *p, void (*told)(struct budget_part *p))
{
	struct budget *b = p->budget;

	if (!b || p->stalls)
		return;
	p->stalls = true;
	p->told = told;
	p->stalled_bytes = budget_part_held(p);
	p->stalled_next = NULL;
	p->stalled_ns = clock_mono_ns();
	pthread_mutex_lock(&b->lock);
	p->stalled_link = b->stalled.last;
	*b->stalled.last = p;
	b->stalled.last = &p->stalled_next;
	pthread_mutex_unlock(&b->lock);
}

void
budget_unstall(struct budget_part *p)
{
	struct budget *b = p->budget;

	if (!p->stalls)
		return;
	p->stalls = false;
	pthread_mutex_lock(&b->lock);
	if (p->stalled_link) {
		budget_stalled_remove_locked(b, p);
	} else {
		assert(b->unwanted_bytes >= p->stalled_bytes);
		b->unwanted_bytes -= p->stalled_bytes;
		atomic_store_explicit(&p->unwanted, false, memory_order_relaxed);
	}
	pthread_mutex_unlock(&b->lock);
}

bool
budget_is_unwanted(const struct budget_part *p)
{
	return atomic_load_explicit(&p->unwanted, memory_order_relaxed);
}

static size_t
budget_excess(size_t held, size_t most)
{
	return held > most ? held - most : 0;
}

/* How much has to be given back before all turns of a kind could be granted. */
static size_t
budget_lack_locked(const struct budget *b, enum budget_kind kind)
{
	const struct budget_waiting *w = &b->queues[kind];
	size_t held = budget_held(b);
	size_t others, lasting;

	if (!w->first)
		return 0;
	switch (kind) {
	case BUDGET_TO_BEGIN:
		return budget_excess(held + w->bytes, budget_begin_share(b));
	case BUDGET_TO_READ:
		return budget_excess(held + w->bytes,
				     b->limit_bytes + b->limit_bytes / BUDGET_EXCESS_SHARE);
	case BUDGET_TO_LAST:
	case BUDGET_KINDS:
		break;
	}
	/* The last one of them is let in on top of what the others have then. */
	others = w->bytes - w->first->bytes;
	lasting = budget_read_relaxed(&b->lasting_bytes) + (w->count - 1) * BUDGET_PART_BYTES;
	lasting = budget_excess(lasting + others, budget_lasting_share(b));
	held = budget_excess(held + others, budget_lasting_most(b));
	return lasting > held ? lasting : held;
}

void
budget_make_room(struct budget *b)
{
	uint64_t before_ns = clock_mono_ns() - BUDGET_STALL_MS * CLOCK_NS_PER_MS;
	size_t lack = 0;

	pthread_mutex_lock(&b->lock);
	for (size_t i = 0; i < BUDGET_KINDS; i++) {
		size_t n = budget_lack_locked(b, (enum budget_kind)i);

		lack = n > lack ? n : lack;
	}
	while (b->stalled.first && b->unwanted_bytes < lack &&
	       b->stalled.first->stalled_ns <= before_ns) {
		struct budget_part *p = b->stalled.first;

		budget_stalled_remove_locked(b, p);
		b->unwanted_bytes += p->stalled_bytes;
		atomic_store_explicit(&p->unwanted, true, memory_order_relaxed);
		/* The part's thread takes the lock in budget_unstall() before it is released. */
		p->told(p);
	}
	pthread_mutex_unlock(&b->lock);
}

void
budget_part_release(struct budget_part *p)
{
	budget_unstall(p);
	budget_count_output(p, 0);
	budget_part_uncount_lasting(p);
	if (p->taken_bytes)
		budget_give_back(p->budget, p->taken_bytes, p->read_bytes);
	budget_part_exit(p);
	budget_part_init(p, p->budget);
}
