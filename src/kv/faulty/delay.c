/*
 * The delayer: one thread that completes futures late. It keeps a list of futures, those that are
 * due soon first, and goes through it whenever an inner future has its answer, a future is due, or
 * the list has changed.
 *
 * == Who may free a future ==
 *
 * The thread waits without the lock, for events that lie inside inner futures (`awaited`). So an
 * inner future must not be freed while the thread waits for it. faulty_delayer_remove() leaves a
 * note in `removed`, wakes the thread, and waits until the thread has gone through the list once
 * more: that drops every event, and takes the noted futures out of the list. A future that the
 * thread does not wait for is taken out at once. Completing a future also happens under the lock,
 * so a future is either linked, or the thread will never look at it again.
 */
#include <assert.h>

#include "base/clock.h"
#include "base/mem.h"
#include "kv/faulty/faulty_int.h"

enum {
	/*
	 * So many inner futures are waited for at a time; others are looked at every LOOK_EVERY_MS.
	 */
	EVENTS_MAX = 64,
	LOOK_EVERY_MS = 1,
};

struct faulty_delayer {
	struct faulty_dice *dice;
	pthread_t thread;
	pthread_mutex_t lock;
	uint64_t refs;    /* the store's, and one a watch */
	uint64_t numbers; /* the last one given */
	struct faulty_future *first;
	struct faulty_future *last;
	bool waiting; /* the thread waits, without the lock */
	bool stopping;
	struct event wake; /* of the thread, while it waits */
};

/* ---- With the lock held ---- */

/*
 * Puts the future before those that are due later. So answers overtake each other however late the
 * thread comes to them.
 */
static void
delayer_link(struct faulty_delayer *d, struct faulty_future *f)
{
	struct faulty_future *at = d->last;

	while (at && f->due_ns && f->due_ns < at->due_ns)
		at = at->earlier;
	f->linked = true;
	f->earlier = at;
	f->later = at ? at->later : d->first;
	if (f->earlier)
		f->earlier->later = f;
	else
		d->first = f;
	if (f->later)
		f->later->earlier = f;
	else
		d->last = f;
}

static void
delayer_unlink(struct faulty_delayer *d, struct faulty_future *f)
{
	assert(f->linked && (f->earlier ? f->earlier->later == f : d->first == f));
	f->linked = false;
	if (f->earlier)
		f->earlier->later = f->later;
	else
		d->first = f->later;
	if (f->later)
		f->later->earlier = f->earlier;
	else
		d->last = f->earlier;
}

static void
delayer_wake(struct faulty_delayer *d)
{
	if (d->waiting)
		event_set(&d->wake);
}

static bool
future_inner_is_ready(const struct faulty_future *f)
{
	return !f->inner || kv_future_ready(f->inner);
}

static enum status
future_inner_status(const struct faulty_future *f)
{
	return f->inner ? f->inner->status : STATUS_OK;
}

/* True if the watch completes at a moment of its own, whether or not the inner one ever does. */
static bool
watch_is_disturbed(const struct faulty_future *f)
{
	return f->watch == FAULTY_WATCH_SPURIOUS || f->watch == FAULTY_WATCH_LOST;
}

/*
 * True if the future can be completed now; otherwise `*ret_until_ns` is the moment at which to look
 * again, at the latest. Whether the inner future is `answered` may change at any time. The caller
 * asks for it once, since it goes on to wait for the future if it was not.
 */
static bool
future_is_due(struct faulty_future *f, bool answered, uint64_t now_ns, uint64_t *ret_until_ns)
{
	*ret_until_ns = WAIT_FOREVER;
	if (watch_is_disturbed(f)) {
		if (answered || (f->due_ns && f->due_ns <= now_ns))
			return true;
		if (f->due_ns)
			*ret_until_ns = f->due_ns;
		return false;
	}
	if (!answered)
		return false;
	if (f->delay_ns == 0 || (f->base.kind != KV_FUTURE_WATCH && atomic_load(&f->tx->cancelled)))
		return true;
	if (f->due_ns == 0)
		f->due_ns = now_ns + f->delay_ns;
	*ret_until_ns = f->due_ns;
	return f->due_ns <= now_ns;
}

/* A transaction has committed: its disturbed watches become due some time from now. */
static void
delayer_arm_watches(struct faulty_delayer *d, const struct faulty_tx *tx, uint64_t now_ns)
{
	for (struct faulty_future *f = d->first; f; f = f->later)
		if (f->base.kind == KV_FUTURE_WATCH && f->tx == tx && watch_is_disturbed(f)) {
			f->due_ns = now_ns + f->delay_ns;
			delayer_wake(d);
		}
}

static void
future_settle_read(struct faulty_future *f)
{
	enum status status = future_inner_status(f);

	if (atomic_load(&f->tx->cancelled))
		f->base.status = STATUS_CANCELLED;
	else if (f->verdict != STATUS_OK && status == STATUS_OK)
		f->base.status = f->verdict;
	else
		f->base.status = status;
	f->base.present = f->inner->present;
	f->base.value = f->inner->value;
	f->base.range = f->inner->range;
}

static void
future_settle_commit(struct faulty_delayer *d, struct faulty_future *f, uint64_t now_ns)
{
	struct faulty_tx *tx = f->tx;
	enum status status = future_inner_status(f);

	f->base.status = status;
	if (status != STATUS_OK)
		tx->base.err = tx->inner->err;
	else if (f->verdict != STATUS_OK)
		f->base.status = f->verdict;
	if (f->base.status == STATUS_TX_UNKNOWN && f->inner)
		faulty_count(KV_FAULTY_UNKNOWN_APPLIED);
	if (f->inner && status == STATUS_OK && tx->wrote)
		faulty_dice_pass(d->dice, FAULTY_EXIT_AFTER_COMMIT);
	if (f->base.status == STATUS_OK)
		delayer_arm_watches(d, tx, now_ns);
}

static void
future_settle_watch(struct faulty_future *f)
{
	if (future_inner_is_ready(f)) {
		f->base.status = f->inner->status;
		if (f->watch == FAULTY_WATCH_LATE && f->base.status == STATUS_OK)
			faulty_count(KV_FAULTY_WATCH_LATE);
		return;
	}
	f->base.status = f->watch == FAULTY_WATCH_LOST ? STATUS_UNAVAILABLE : STATUS_OK;
	faulty_count(f->watch == FAULTY_WATCH_LOST ? KV_FAULTY_WATCH_LOST
						   : KV_FAULTY_WATCH_SPURIOUS);
}

static void
future_count_overtaken(struct faulty_future *f)
{
	if (f->number < f->tx->newest_answered)
		faulty_count(KV_FAULTY_REORDERED);
	else
		f->tx->newest_answered = f->number;
}

/* Puts status and answer into the future; its event is not set yet. */
static void
future_settle(struct faulty_delayer *d, struct faulty_future *f, uint64_t now_ns)
{
	if (f->base.kind != KV_FUTURE_WATCH)
		future_count_overtaken(f);
	switch (f->base.kind) {
	case KV_FUTURE_VALUE:
	case KV_FUTURE_RANGE:
		future_settle_read(f);
		break;
	case KV_FUTURE_COMMIT:
		future_settle_commit(d, f, now_ns);
		break;
	case KV_FUTURE_WATCH:
		future_settle_watch(f);
		break;
	}
}

static void
delayer_complete(struct faulty_delayer *d, struct faulty_future *f, uint64_t now_ns)
{
	future_settle(d, f, now_ns);
	delayer_unlink(d, f);
	/* Under the lock, see above: its owner may free it as soon as the lock is released. */
	event_set(&f->base.event);
}

/* ---- The thread ---- */

struct round {
	struct event *events[EVENTS_MAX + 1]; /* the first is the delayer's own */
	size_t count;
	uint64_t until_ns;
};

/* Completes what is due, lets go of what is to be removed, and collects what to wait for. */
static void
delayer_go_round(struct faulty_delayer *d, struct round *r)
{
	uint64_t now_ns = clock_mono_ns();
	struct faulty_future *later;

	event_init(&d->wake);
	r->events[0] = &d->wake;
	r->count = 1;
	r->until_ns = WAIT_FOREVER;
	for (struct faulty_future *f = d->first; f; f = later) {
		bool answered = future_inner_is_ready(f);
		uint64_t until_ns;

		later = f->later;
		f->awaited = false;
		if (f->removed) {
			delayer_unlink(d, f);
			event_set(f->removed);
			continue;
		}
		if (future_is_due(f, answered, now_ns, &until_ns)) {
			delayer_complete(d, f, now_ns);
			continue;
		}
		if (!answered) {
			if (r->count <= EVENTS_MAX) {
				f->awaited = true;
				r->events[r->count++] = &f->inner->event;
			} else if (until_ns > now_ns + LOOK_EVERY_MS * CLOCK_NS_PER_MS) {
				until_ns = now_ns + LOOK_EVERY_MS * CLOCK_NS_PER_MS;
			}
		}
		if (until_ns < r->until_ns)
			r->until_ns = until_ns;
	}
}

static void *
delayer_main(void *arg)
{
	struct faulty_delayer *d = arg;
	struct round round;

	pthread_mutex_lock(&d->lock);
	for (;;) {
		delayer_go_round(d, &round);
		if (d->stopping)
			break;
		d->waiting = true;
		pthread_mutex_unlock(&d->lock);
		(void)event_wait_any(round.events, round.count, round.until_ns);
		pthread_mutex_lock(&d->lock);
		d->waiting = false;
	}
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

struct faulty_delayer *
faulty_delayer_start(struct faulty_dice *dice)
{
	struct faulty_delayer *d = mem_zalloc(sizeof(*d));

	if (!d)
		return NULL;
	d->dice = dice;
	d->refs = 1;
	pthread_mutex_init(&d->lock, NULL);
	if (pthread_create(&d->thread, NULL, delayer_main, d) != 0) {
		faulty_delayer_unref(d);
		return NULL;
	}
	return d;
}

void
faulty_delayer_ref(struct faulty_delayer *d)
{
	pthread_mutex_lock(&d->lock);
	d->refs++;
	pthread_mutex_unlock(&d->lock);
}

void
faulty_delayer_unref(struct faulty_delayer *d)
{
	bool last;

	pthread_mutex_lock(&d->lock);
	last = --d->refs == 0;
	pthread_mutex_unlock(&d->lock);
	if (!last)
		return;
	pthread_mutex_destroy(&d->lock);
	mem_free(d);
}

void
faulty_delayer_stop(struct faulty_delayer *d)
{
	struct faulty_future *f;

	pthread_mutex_lock(&d->lock);
	d->stopping = true;
	delayer_wake(d);
	pthread_mutex_unlock(&d->lock);
	pthread_join(d->thread, NULL);
	pthread_mutex_lock(&d->lock);
	while ((f = d->first)) {
		f->base.status = future_inner_is_ready(f) ? f->inner->status : STATUS_CANCELLED;
		delayer_unlink(d, f);
		event_set(&f->base.event);
	}
	pthread_mutex_unlock(&d->lock);
	faulty_delayer_unref(d);
}

/* ---- The calls ---- */

void
faulty_delayer_add(struct faulty_delayer *d, struct faulty_future *f)
{
	uint64_t now_ns = clock_mono_ns();
	uint64_t until_ns;

	pthread_mutex_lock(&d->lock);
	f->number = ++d->numbers;
	if (future_is_due(f, future_inner_is_ready(f), now_ns, &until_ns)) {
		future_settle(d, f, now_ns);
		f->base.done = true;
	} else {
		event_init(&f->base.event);
		delayer_link(d, f);
		delayer_wake(d);
	}
	pthread_mutex_unlock(&d->lock);
}

void
faulty_delayer_remove(struct faulty_delayer *d, struct faulty_future *f)
{
	struct event removed;
	bool wait;

	pthread_mutex_lock(&d->lock);
	wait = f->linked && f->awaited;
	if (wait) {
		event_init(&removed);
		f->removed = &removed;
		delayer_wake(d);
	} else if (f->linked) {
		delayer_unlink(d, f);
	}
	pthread_mutex_unlock(&d->lock);
	if (wait)
		(void)event_wait(&removed, WAIT_FOREVER);
}

void
faulty_delayer_hurry(struct faulty_delayer *d)
{
	pthread_mutex_lock(&d->lock);
	delayer_wake(d);
	pthread_mutex_unlock(&d->lock);
}

void
faulty_delayer_forget(struct faulty_delayer *d, const struct faulty_tx *tx)
{
	pthread_mutex_lock(&d->lock);
	for (struct faulty_future *f = d->first; f; f = f->later)
		if (f->base.kind == KV_FUTURE_WATCH && f->tx == tx)
			f->tx = NULL;
	pthread_mutex_unlock(&d->lock);
}
