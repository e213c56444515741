#include "base/budget.h"

#include <assert.h>

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
	budget_waiting_init(&b->reads);
	budget_waiting_init(&b->begins);
}

void
budget_fini(struct budget *b)
{
	assert(!b->reads.first && !b->begins.first && b->taken_bytes == 0);
	assert(b->parts == 0 && b->output_bytes == 0 && b->read_bytes == 0 &&
	       b->lasting_bytes == 0);
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

/* True if there is room for one more lasting part. */
static bool
budget_admits_lasting(const struct budget *b)
{
	size_t lasting = b->limit_bytes / 8 * BUDGET_LASTING_EIGHTHS;
	size_t most = b->limit_bytes - b->limit_bytes / BUDGET_SHORT_SHARE;

	/* Turns to read are given back soon, and keep nobody out. */
	return budget_read_relaxed(&b->lasting_bytes) <= lasting &&
	       budget_held(b) <= most + budget_read_relaxed(&b->read_bytes);
}

/* True if others wait for memory, and half of it is held by those that do not read it. */
static bool
budget_is_waited_for(const struct budget *b)
{
	return budget_is_wanted(b) &&
	       budget_held(b) > b->limit_bytes / 2 + budget_read_relaxed(&b->read_bytes);
}

/* True if the budget is used up, turns to read aside. */
static bool
budget_is_full(const struct budget *b)
{
	return budget_held(b) > b->limit_bytes + budget_read_relaxed(&b->read_bytes);
}

/*
 * True if parts that do not last may take `n` bytes more: if all parts together do not exceed the
 * budget by more than their share, or if they have no more than their share themselves, whatever
 * those that last have.
 */
static bool
budget_has_for_short(const struct budget *b, size_t n)
{
	size_t reads = budget_read_relaxed(&b->read_bytes);
	size_t others = budget_read_relaxed(&b->lasting_bytes) + reads;
	size_t held = budget_held(b);
	size_t share = b->limit_bytes / BUDGET_SHORT_SHARE;

	if (n <= share && held <= b->limit_bytes + reads + share - n)
		return true;
	/* The counters are read one after another: the others' may seem larger than the sum. */
	return n <= share && (held < others || held - others <= share - n);
}

bool
budget_is_short(const struct budget *b)
{
	return budget_held(b) > b->limit_bytes - b->limit_bytes / 4;
}

bool
budget_is_wanted(const struct budget *b)
{
	return budget_read_relaxed(&b->waiting) > 0;
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
 * Takes the bytes of a turn to begin. A turn that needs more than its share has beside the flat
 * amounts of the other requests gets it when nothing else is taken, or it would wait for ever.
 */
static bool
budget_take_begin_locked(struct budget *b, size_t n)
{
	if (budget_take_locked(b, n, budget_begin_share(b)))
		return true;
	if (budget_read_relaxed(&b->taken_bytes) > 0)
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

static bool
budget_take_turn_locked(struct budget *b, const struct budget_turn *turn)
{
	return turn->reads ? budget_take_read_locked(b, turn->bytes)
			   : budget_take_begin_locked(b, turn->bytes);
}

/* ---- Turns ---- */

static struct budget_waiting *
budget_queue_of(struct budget *b, const struct budget_turn *turn)
{
	return turn->reads ? &b->reads : &b->begins;
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
		w->count--;
		atomic_fetch_sub_explicit(&b->waiting, 1, memory_order_relaxed);
		assert(!turn->has_come);
		turn->has_come = true;
		/*
		 * This wakes the fiber that waits. The fiber takes the lock in budget_leave()
		 * before it frees the turn, so the turn stays valid until this function returns.
		 */
		turn->granted(turn);
	}
}

/* Turns to read come first: their memory is given back soon. */
static void
budget_grant_locked(struct budget *b)
{
	budget_grant_queue_locked(b, &b->reads);
	if (!b->reads.first)
		budget_grant_queue_locked(b, &b->begins);
}

static void
budget_remove_locked(struct budget *b, struct budget_turn *turn)
{
	struct budget_waiting *w = budget_queue_of(b, turn);
	struct budget_turn **at = &w->first;

	while (*at != turn)
		at = &(*at)->next;
	*at = turn->next;
	if (w->last == &turn->next)
		w->last = at;
	w->count--;
	atomic_fetch_sub_explicit(&b->waiting, 1, memory_order_relaxed);
}

/* Gives back `n` bytes, and ends turns to read of `reads` bytes. */
static void
budget_give_back(struct budget *b, size_t n, size_t reads)
{
	pthread_mutex_lock(&b->lock);
	assert(b->taken_bytes >= n && b->read_bytes >= reads);
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

enum budget_answer
budget_queue(struct budget *b, struct budget_turn *turn)
{
	struct budget_waiting *w = budget_queue_of(b, turn);
	enum budget_answer answer = BUDGET_QUEUED;

	turn->next = NULL;
	turn->has_come = false;
	pthread_mutex_lock(&b->lock);
	if (!b->reads.first && !w->first && budget_take_turn_locked(b, turn)) {
		answer = BUDGET_GIVEN;
	} else if (!turn->reads && w->count == BUDGET_WAITERS) {
		answer = BUDGET_FULL;
	} else {
		*w->last = turn;
		w->last = &turn->next;
		w->count++;
		atomic_fetch_add_explicit(&b->waiting, 1, memory_order_relaxed);
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
	if (budget_is_wanted(b))
		budget_give_back(b, 0, 0);
}

/* True if nothing has to be taken for a part that uses `used` bytes. */
static bool
budget_part_is_free(const struct budget_part *p, size_t used)
{
	const struct budget *b = p->budget;

	return used <= BUDGET_FREE_BYTES && !p->lasts &&
	       used * budget_read_relaxed(&b->parts) <= b->limit_bytes / BUDGET_FREE_SHARE;
}

void
budget_part_give(struct budget_part *p, const struct budget_turn *turn)
{
	p->taken_bytes += turn->bytes;
	p->asked_bytes = p->taken_bytes;
	if (turn->reads)
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

bool
budget_use(struct budget_part *p, size_t n)
{
	size_t used = p->used_bytes + n;

	if (p->budget && used > p->taken_bytes && !budget_part_is_free(p, used) &&
	    !budget_part_take(p, used - p->taken_bytes)) {
		if (used <= p->budget->limit_bytes)
			p->refused = true;
		else
			p->exceeded = true;
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
		budget_give_back(p->budget, p->taken_bytes - keep, 0);
		p->taken_bytes = keep;
	}
	budget_part_sum(p);
}

void
budget_unuse(struct budget_part *p, size_t n)
{
	assert(p->used_bytes >= n);
	p->used_bytes -= n;
	if (p->taken_bytes)
		budget_give_back_unused(p);
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

void
budget_part_end_lasting(struct budget_part *p)
{
	if (!p->lasts || p->admitted)
		return;
	if (p->lasting_bytes)
		atomic_fetch_sub_explicit(&p->budget->lasting_bytes, p->lasting_bytes,
					  memory_order_relaxed);
	p->lasting_bytes = 0;
	p->lasts = false;
}

bool
budget_admit_lasting(struct budget_part *p)
{
	if (!p->budget || p->admitted)
		return true;
	if (!budget_admits_lasting(p->budget)) {
		p->refused = true;
		return false;
	}
	p->admitted = true;
	budget_part_last(p);
	return true;
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

void
budget_part_release(struct budget_part *p)
{
	budget_count_output(p, 0);
	if (p->taken_bytes)
		budget_give_back(p->budget, p->taken_bytes, p->read_bytes);
	if (p->lasting_bytes)
		atomic_fetch_sub_explicit(&p->budget->lasting_bytes, p->lasting_bytes,
					  memory_order_relaxed);
	budget_part_exit(p);
	budget_part_init(p, p->budget);
}
