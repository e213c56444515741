#include "serve/expiring.h"

#include <assert.h>

#include "base/clock.h"

/* What is closed and freed once the lock has been released. */
struct ended {
	void *close[EXPIRING_BATCH];
	size_t close_count;
	struct expiring_entry *gone; /* objects that have left the table, by `next` */
};

/* ---- With the lock ---- */

static struct expiring_entry **
slot_of(struct expiring *x, uint64_t hash)
{
	return &x->slots[hash % EXPIRING_SLOTS];
}

static void
order_remove(struct expiring *x, struct expiring_entry *e)
{
	*(e->newer ? &e->newer->older : &x->newest) = e->older;
	*(e->older ? &e->older->newer : &x->oldest) = e->newer;
}

static void
order_make_newest(struct expiring *x, struct expiring_entry *e, uint64_t now_ns)
{
	e->used_ns = now_ns;
	e->newer = NULL;
	e->older = x->newest;
	*(e->older ? &e->older->newer : &x->oldest) = e;
	x->newest = e;
}

static void
entry_use(struct expiring *x, struct expiring_entry *e, uint64_t now_ns)
{
	order_remove(x, e);
	order_make_newest(x, e, now_ns);
}

static void
entry_remove(struct expiring *x, struct expiring_entry *e, struct ended *ended)
{
	struct expiring_entry **at = slot_of(x, e->hash);

	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	order_remove(x, e);
	assert(x->count && x->bytes >= e->bytes);
	x->count--;
	x->bytes -= e->bytes;
	e->next = ended->gone;
	ended->gone = e;
}

/* Ends an idle object. True: it has left the table. */
static bool
entry_end(struct expiring *x, struct expiring_entry *e, uint64_t now_ns, struct ended *ended)
{
	void *close = NULL;
	bool leaves;

	assert(!e->taken && ended->close_count < EXPIRING_BATCH);
	e->doomed = false;
	leaves = !x->rules->end || x->rules->end(e, now_ns, &close);
	if (close)
		ended->close[ended->close_count++] = close;
	if (leaves)
		entry_remove(x, e, ended);
	return leaves;
}

static bool
entry_is_over(const struct expiring *x, const struct expiring_entry *e, uint64_t now_ns)
{
	return !e->taken && x->rules->is_over && x->rules->is_over(e, now_ns);
}

static bool
entry_is(const struct expiring *x, const struct expiring_entry *e, uint64_t hash, const void *key)
{
	return e->hash == hash && x->rules->is(e, key);
}

static struct expiring_entry *
find(struct expiring *x, uint64_t hash, const void *key)
{
	for (struct expiring_entry *e = *slot_of(x, hash); e; e = e->next)
		if (entry_is(x, e, hash, key))
			return e;
	return NULL;
}

/* The idle object that was not used for longest. NULL: there is none. */
static struct expiring_entry *
find_oldest_idle(const struct expiring *x)
{
	struct expiring_entry *e = x->oldest;

	while (e && e->taken)
		e = e->newer;
	return e;
}

static bool
has_room(const struct expiring *x, size_t bytes)
{
	return x->count < x->rules->most &&
	       (!x->rules->most_bytes || x->bytes + bytes <= x->rules->most_bytes);
}

/* ---- Ending several ---- */

/* Which objects are to end. */
struct choice {
	bool over; /* those whose time is over; otherwise those that match */
	bool (*matches)(const void *arg, const struct expiring_entry *e);
	const void *arg;
};

/* With the lock. Ends chosen objects until the batch is full: true, there may be more. */
static bool
end_chosen(struct expiring *x, const struct choice *choice, struct ended *ended)
{
	uint64_t now_ns = clock_mono_ns();
	struct expiring_entry *newer;

	for (struct expiring_entry *e = x->oldest; e; e = newer) {
		newer = e->newer;
		if (choice->over ? !entry_is_over(x, e, now_ns)
				 : choice->matches && !choice->matches(choice->arg, e))
			continue;
		if (e->taken)
			e->doomed = true;
		else
			(void)entry_end(x, e, now_ns, ended);
		if (ended->close_count == EXPIRING_BATCH)
			return true;
	}
	return false;
}

/* Releases the lock, and closes and frees what has ended. */
static void
unlock(struct expiring *x, struct ended *ended)
{
	pthread_mutex_unlock(&x->lock);
	while (ended->close_count)
		x->rules->close(ended->close[--ended->close_count]);
	while (ended->gone) {
		struct expiring_entry *e = ended->gone;

		ended->gone = e->next;
		x->rules->free(e);
	}
}

static void
end_all(struct expiring *x, const struct choice *choice)
{
	struct ended ended = { .close_count = 0 };
	bool more;

	do {
		pthread_mutex_lock(&x->lock);
		more = end_chosen(x, choice, &ended);
		unlock(x, &ended);
	} while (more);
}

void
expiring_end_all(struct expiring *x,
		 bool (*matches)(const void *arg, const struct expiring_entry *e), const void *arg)
{
	end_all(x, &(struct choice){ .matches = matches, .arg = arg });
}

void
expiring_sweep(struct expiring *x)
{
	end_all(x, &(struct choice){ .over = true });
}

/* ---- Its life ---- */

void
expiring_init(struct expiring *x, const struct expiring_rules *rules)
{
	assert(rules->most && rules->is && rules->free && !rules->end == !rules->close);
	*x = (struct expiring){ .rules = rules };
	pthread_mutex_init(&x->lock, NULL);
}

void
expiring_fini(struct expiring *x)
{
	/* Objects that stay when they end are dropped, as by whoever had taken them. */
	while (x->newest) {
		x->newest->taken = true;
		expiring_drop(x, x->newest);
	}
	assert(!x->count && !x->bytes);
	pthread_mutex_destroy(&x->lock);
}

/* ---- One object ---- */

/* With the lock. Adds it if room for it can be made. */
static enum status
add(struct expiring *x, uint64_t hash, struct expiring_entry *e, size_t bytes, struct ended *ended)
{
	struct expiring_entry **slot = slot_of(x, hash);
	struct expiring_entry *oldest;

	if (!has_room(x, bytes))
		(void)end_chosen(x, &(struct choice){ .over = true }, ended);
	while (!has_room(x, bytes)) {
		oldest = x->rules->replaces && ended->close_count < EXPIRING_BATCH
				 ? find_oldest_idle(x)
				 : NULL;
		if (!oldest || !entry_end(x, oldest, clock_mono_ns(), ended))
			return STATUS_LIMIT;
	}
	*e = (struct expiring_entry){ .next = *slot, .hash = hash, .bytes = bytes, .taken = true };
	*slot = e;
	order_make_newest(x, e, clock_mono_ns());
	x->count++;
	x->bytes += bytes;
	return STATUS_OK;
}

enum status
expiring_add(struct expiring *x, uint64_t hash, const void *key, struct expiring_entry *e,
	     size_t bytes)
{
	struct ended ended = { .close_count = 0 };
	enum status status = STATUS_EXISTS;

	pthread_mutex_lock(&x->lock);
	if (x->rules->alike || !find(x, hash, key))
		status = add(x, hash, e, bytes, &ended);
	unlock(x, &ended);
	return status;
}

enum status
expiring_put(struct expiring *x, uint64_t hash, const void *key, struct expiring_entry *e,
	     size_t bytes, bool (*may)(const void *arg, const struct expiring_entry *old),
	     const void *arg)
{
	struct ended ended = { .close_count = 0 };
	enum status status = STATUS_EXISTS;
	struct expiring_entry *old;

	assert(!x->rules->end && !x->rules->alike);
	pthread_mutex_lock(&x->lock);
	old = find(x, hash, key);
	if (!old || (!old->taken && (!may || may(arg, old)))) {
		if (old)
			entry_remove(x, old, &ended);
		status = add(x, hash, e, bytes, &ended);
		if (status == STATUS_OK)
			e->taken = false;
	}
	unlock(x, &ended);
	return status;
}

enum status
expiring_take(struct expiring *x, uint64_t hash, const void *key, struct expiring_entry **ret)
{
	enum status status = STATUS_NOT_FOUND;
	uint64_t now_ns;

	pthread_mutex_lock(&x->lock);
	/* With the lock: no object was used later than that. */
	now_ns = clock_mono_ns();
	for (struct expiring_entry *e = *slot_of(x, hash); e && status != STATUS_OK; e = e->next) {
		if (!entry_is(x, e, hash, key) || entry_is_over(x, e, now_ns))
			continue;
		status = e->taken ? STATUS_BUSY : STATUS_OK;
		if (status == STATUS_OK) {
			e->taken = true;
			*ret = e;
		}
	}
	pthread_mutex_unlock(&x->lock);
	return status;
}

struct expiring_entry *
expiring_look(struct expiring *x, uint64_t hash, const void *key,
	      enum expiring_look (*look)(void *arg, struct expiring_entry *e), void *arg)
{
	struct ended ended = { .close_count = 0 };
	enum expiring_look what = EXPIRING_LEAVE;
	struct expiring_entry *e;

	pthread_mutex_lock(&x->lock);
	e = find(x, hash, key);
	if (e)
		what = look(arg, e);
	assert(!e || !e->taken || (what != EXPIRING_TAKE && what != EXPIRING_END));
	if (what != EXPIRING_LEAVE)
		entry_use(x, e, clock_mono_ns());
	if (what == EXPIRING_TAKE)
		e->taken = true;
	else if (what == EXPIRING_END)
		(void)entry_end(x, e, e->used_ns, &ended);
	unlock(x, &ended);
	return what == EXPIRING_TAKE ? e : NULL;
}

void
expiring_give(struct expiring *x, struct expiring_entry *e)
{
	struct ended ended = { .close_count = 0 };
	uint64_t now_ns;

	pthread_mutex_lock(&x->lock);
	now_ns = clock_mono_ns();
	assert(e->taken);
	e->taken = false;
	entry_use(x, e, now_ns);
	if (e->doomed)
		(void)entry_end(x, e, now_ns, &ended);
	unlock(x, &ended);
}

void
expiring_drop(struct expiring *x, struct expiring_entry *e)
{
	struct ended ended = { .close_count = 0 };

	pthread_mutex_lock(&x->lock);
	assert(e->taken);
	e->taken = false;
	if (!entry_end(x, e, clock_mono_ns(), &ended))
		entry_remove(x, e, &ended);
	unlock(x, &ended);
}

bool
expiring_end(struct expiring *x, uint64_t hash, const void *key)
{
	struct ended ended = { .close_count = 0 };
	struct expiring_entry *e;
	bool found;

	pthread_mutex_lock(&x->lock);
	e = find(x, hash, key);
	found = e && !e->doomed;
	if (found && e->taken)
		e->doomed = true;
	else if (found)
		(void)entry_end(x, e, clock_mono_ns(), &ended);
	unlock(x, &ended);
	return found;
}

/* ---- All of them ---- */

void
expiring_each(struct expiring *x, void (*see)(void *arg, const struct expiring_entry *e), void *arg)
{
	pthread_mutex_lock(&x->lock);
	for (const struct expiring_entry *e = x->newest; e; e = e->older)
		see(arg, e);
	pthread_mutex_unlock(&x->lock);
}

size_t
expiring_count(struct expiring *x)
{
	size_t count;

	pthread_mutex_lock(&x->lock);
	count = x->count;
	pthread_mutex_unlock(&x->lock);
	return count;
}

size_t
expiring_bytes(struct expiring *x)
{
	size_t bytes;

	pthread_mutex_lock(&x->lock);
	bytes = x->bytes;
	pthread_mutex_unlock(&x->lock);
	return bytes;
}
