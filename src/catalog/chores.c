#include "catalog/chores.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metric.h"
#include "base/thread.h"
#include "catalog/lease.h"
#include "kv/log.h"
#include "loop/wait.h"
#include "loop/watchdog.h"

enum {
	CHORES_THREADS = CHORE_ALONE + 1,
	CHORES_LEASE_LOOK_MS = 500, /* how often a chore without its lease looks for it */
	CHORES_LEASES_BYTES = 1 << 20,
};

/* A chore in the registry. */
struct chore_entry {
	struct chore chore;
	uint64_t due_ns;   /* of its thread alone */
	uint64_t least_ns; /* likewise: it is not due before */
	bool asked;        /* of the leases' thread alone: the lease, if the exchange succeeds */
	bool held;         /* under the registry's lock: its lease */
	/*
	 * Under the registry's lock: its next turn begins then at the latest. WAIT_FOREVER in a
	 * turn, until somebody hurries the chore.
	 */
	uint64_t hurried_ns;
	struct chore_state state; /* under the registry's lock */
	bool active;              /* likewise: in a turn, or with more to do */
};

struct chores_thread {
	struct chores *chores;
	enum chore_thread number;
	bool started;
	pthread_t thread;
	struct event stop;
	struct event hurry; /* set by chores_hurry(); reset with the lock held */
	struct watchdog_post post;
	struct watchdog_label label; /* the chore under way */
};

struct chores {
	pthread_mutex_t lock; /* of the states, and of what is known of leases */
	struct kv_store *store;
	struct chore_entry entries[CHORES_MAX];
	size_t count;
	struct chores_thread threads[CHORES_THREADS];
	struct leases *leases; /* NULL: every chore may run here */
	struct chores_thread leases_thread;
};

struct chores *
chores_new(struct kv_store *store)
{
	struct chores *chores = mem_zalloc(sizeof(*chores));

	if (chores && pthread_mutex_init(&chores->lock, NULL) != 0) {
		mem_free(chores);
		return NULL;
	}
	for (size_t i = 0; chores && i < CHORES_THREADS; i++)
		event_init(&chores->threads[i].hurry);
	if (chores)
		chores->store = store;
	return chores;
}

void
chores_free(struct chores *chores)
{
	if (!chores)
		return;
	for (size_t i = 0; i < CHORES_THREADS; i++)
		assert(!chores->threads[i].started);
	assert(!chores->leases);
	pthread_mutex_destroy(&chores->lock);
	mem_free(chores);
}

void
chores_add(struct chores *chores, const struct chore *chore)
{
	struct chore_entry *e = &chores->entries[chores->count];

	/* The server that a standby follows does this work for both. */
	if ((chore->leased || chore->writes) && chores->store && kv_follows(chores->store))
		return;
	assert(chores->count < CHORES_MAX);
	/* The threads go through the list without a lock. */
	for (size_t i = 0; i < CHORES_THREADS; i++)
		assert(!chores->threads[i].started);
	*e = (struct chore_entry){ .chore = *chore, .hurried_ns = WAIT_FOREVER };
	e->state.name = chore->name;
	e->state.number = (unsigned)++chores->count;
}

/* ---- Leases ---- */

static enum status
chores_ask_leases(struct lease_exchange *x, void *arg)
{
	struct chores *chores = arg;

	for (size_t i = 0; i < chores->count; i++) {
		struct chore_entry *e = &chores->entries[i];
		struct str name = str_from_cstr(e->chore.name);
		struct lease_entry *lease;

		if (!e->chore.leased)
			continue;
		lease = lease_find(x, name);
		e->asked = lease_is_free(x, lease);
		if (e->asked)
			TRY(lease_hold(x, name, lease, NULL));
	}
	return STATUS_OK;
}

static void
chores_exchange_leases(struct chores *chores, bool leave)
{
	struct err err = { 0 };
	enum status status = leases_exchange(chores->leases, leave, &err);

	if (status != STATUS_OK) {
		log_event(LOG_LEVEL_WARN, "chores_leases", "status=%s reason=\"%s\"",
			  status_name(status), err.text);
		return;
	}
	pthread_mutex_lock(&chores->lock);
	leases_adopt(chores->leases);
	for (size_t i = 0; i < chores->count; i++)
		chores->entries[i].held = chores->entries[i].asked && !leave;
	pthread_mutex_unlock(&chores->lock);
}

static void *
chores_leases_run(void *arg)
{
	struct chores_thread *t = arg;

	do
		chores_exchange_leases(t->chores, false);
	while (!event_wait(&t->stop, clock_after_ms(leases_beat_ms())));
	chores_exchange_leases(t->chores, true);
	return NULL;
}

static bool
chore_may_run(struct chores *chores, const struct chore_entry *e)
{
	bool may;

	if (!e->chore.leased || !chores->leases)
		return true;
	pthread_mutex_lock(&chores->lock);
	may = e->held && leases_are_certain(chores->leases);
	pthread_mutex_unlock(&chores->lock);
	return may;
}

/* ---- Turns ---- */

static const char *const chore_outcomes[] = { "done", "failed" };

METRIC_COUNTERS(chore_turns, "frond_chore_turns_total", METRIC_NUMBER,
		"Turns of background work, by outcome. The log names those that failed.", "outcome",
		chore_outcomes);
METRIC_HISTOGRAM(chore_time, "frond_chore_turn_duration_seconds", METRIC_SECONDS,
		 "Time that a turn of background work took.", METRIC_TIME_LEAST,
		 METRIC_TIME_BUCKETS);

static void
chore_begin_turn(struct chores *chores, struct chore_entry *e)
{
	pthread_mutex_lock(&chores->lock);
	assert(!e->state.running);
	if (!e->active) {
		e->state.started_ms = clock_wall_ms();
		e->state.done = 0;
	}
	e->active = true;
	e->state.running = true;
	pthread_mutex_unlock(&chores->lock);
}

static void
chore_end_turn(struct chores *chores, struct chore_entry *e, const struct chore_turn *turn)
{
	uint64_t done;

	pthread_mutex_lock(&chores->lock);
	assert(e->active && e->state.running);
	e->active = turn->more;
	e->state.running = false;
	e->state.updated_ms = clock_wall_ms();
	e->state.done += turn->done;
	done = turn->more ? 0 : e->state.done;
	pthread_mutex_unlock(&chores->lock);
	if (done && e->chore.thread != CHORE_QUICK)
		log_event(LOG_LEVEL_INFO, "chore_done", "chore=%s count=%llu", e->chore.name,
			  (unsigned long long)done);
}

static void
chore_take_turn(struct chores_thread *t, struct chore_entry *e)
{
	struct chores *chores = t->chores;
	const struct chore *chore = &e->chore;
	struct chore_turn turn = { .budget = chore->budget };
	uint64_t pause_ms = chore->pause_ms;
	uint64_t began_ns = clock_mono_ns();
	struct err err = { 0 };
	enum status status;

	chore_begin_turn(chores, e);
	watchdog_label_set(&t->label, STR("chore"), str_from_cstr(chore->name));
	watchdog_begin(&t->post, &t->label);
	status = chore->run(chore->arg, &turn, &err);
	metric_observe(&chore_time, clock_mono_ns() - began_ns);
	metric_add_at(&chore_turns, status != STATUS_OK, 1);
	watchdog_end(&t->post);
	chore_end_turn(chores, e, &turn);
	if (status != STATUS_OK) {
		log_event(LOG_LEVEL_WARN, "chore_failed", "chore=%s status=%s reason=\"%s\"",
			  chore->name, status_name(status), err.text);
		pause_ms = chore->failed_ms ? chore->failed_ms : chore->pause_ms;
	} else if (turn.more) {
		pause_ms = chore->more_ms;
	} else if (turn.soon_ms && turn.soon_ms < pause_ms) {
		pause_ms = turn.soon_ms > chore->least_ms ? turn.soon_ms : chore->least_ms;
	}
	e->least_ns = clock_after_ms(chore->least_ms);
	e->due_ns = clock_after_ms(pause_ms);
}

/* Another process has the lease, and does what this one had left to do. */
static void
chore_await_lease(struct chores *chores, struct chore_entry *e)
{
	pthread_mutex_lock(&chores->lock);
	assert(!e->state.running); /* only its own thread runs it */
	e->active = false;
	pthread_mutex_unlock(&chores->lock);
	e->due_ns = clock_after_ms(CHORES_LEASE_LOOK_MS);
}

/* With the lock held: the chore is due when it is planned, or when somebody has hurried it. */
static void
chore_plan(struct chore_entry *e)
{
	if (e->hurried_ns < e->due_ns)
		e->due_ns = e->hurried_ns > e->least_ns ? e->hurried_ns : e->least_ns;
	e->hurried_ns = e->due_ns;
	assert(e->due_ns != WAIT_FOREVER); /* or it would never run again */
}

/* Makes the chores due for which chores_hurry() was called since the last look. */
static void
chores_take_hurries(struct chores_thread *t)
{
	struct chores *chores = t->chores;

	pthread_mutex_lock(&chores->lock);
	event_init(&t->hurry);
	for (size_t i = 0; i < chores->count; i++)
		if (chores->entries[i].chore.thread == t->number)
			chore_plan(&chores->entries[i]);
	pthread_mutex_unlock(&chores->lock);
}

/* The chore is due: has its turn, if this process may, and plans the next one. */
static void
chore_run_due(struct chores_thread *t, struct chore_entry *e)
{
	struct chores *chores = t->chores;

	/* Whoever hurries the chore from here on may have work that this turn does not see. */
	pthread_mutex_lock(&chores->lock);
	e->hurried_ns = WAIT_FOREVER;
	pthread_mutex_unlock(&chores->lock);
	if (chore_may_run(chores, e))
		chore_take_turn(t, e);
	else
		chore_await_lease(chores, e);
	pthread_mutex_lock(&chores->lock);
	chore_plan(e);
	pthread_mutex_unlock(&chores->lock);
}

/* Runs every chore of the thread that is due; returns when the next one is. */
static uint64_t
chores_run_due(struct chores_thread *t)
{
	struct chores *chores = t->chores;
	uint64_t next_ns = WAIT_FOREVER;

	for (size_t i = 0; i < chores->count; i++) {
		struct chore_entry *e = &chores->entries[i];

		if (e->chore.thread != t->number)
			continue;
		if (clock_mono_ns() >= e->due_ns && !event_is_set(&t->stop))
			chore_run_due(t, e);
		if (e->due_ns < next_ns)
			next_ns = e->due_ns;
	}
	return next_ns;
}

static void *
chores_thread_run(void *arg)
{
	struct chores_thread *t = arg;

	thread_set_name("chores");
	watchdog_add(&t->post, "chores", true);
	while (!event_is_set(&t->stop)) {
		struct event *const events[] = { &t->stop, &t->hurry };
		uint64_t next_ns;

		chores_take_hurries(t);
		next_ns = chores_run_due(t);
		(void)event_wait_any(events, 2, next_ns);
	}
	watchdog_remove(&t->post);
	return NULL;
}

/* ---- All of them ---- */

static bool
chores_need_leases(const struct chores *chores)
{
	bool any = false;

	for (size_t i = 0; i < chores->count; i++)
		any |= chores->entries[i].chore.leased;
	return any && chores->store && kv_is_shared(chores->store);
}

static enum status
chores_start_thread(struct chores *chores, struct chores_thread *t, void *(*run)(void *),
		    struct err *err)
{
	assert(!t->started);
	t->chores = chores;
	event_init(&t->stop);
	t->started = pthread_create(&t->thread, NULL, run, t) == 0;
	return t->started ? STATUS_OK : err_set(err, STATUS_LIMIT, "cannot start a thread");
}

static enum status
chores_start_threads(struct chores *chores, struct err *err)
{
	if (chores_need_leases(chores)) {
		chores->leases = leases_new(&(struct leases_config){
			.store = chores->store,
			.space = LEASE_CHORES,
			.known_bytes = CHORES_LEASES_BYTES,
			.ask = chores_ask_leases,
			.arg = chores,
		});
		if (!chores->leases)
			return err_set(err, STATUS_NOMEM, "out of memory for leases");
		TRY(chores_start_thread(chores, &chores->leases_thread, chores_leases_run, err));
	}
	for (size_t i = 0; i < CHORES_THREADS; i++) {
		chores->threads[i].number = (enum chore_thread)i;
		TRY(chores_start_thread(chores, &chores->threads[i], chores_thread_run, err));
	}
	return STATUS_OK;
}

enum status
chores_start(struct chores *chores, struct err *err)
{
	enum status status = chores_start_threads(chores, err);

	if (status != STATUS_OK)
		chores_stop(chores);
	return status;
}

static void
chores_join(struct chores_thread *t)
{
	if (t->started)
		pthread_join(t->thread, NULL);
	t->started = false;
}

void
chores_stop(struct chores *chores)
{
	if (!chores)
		return;
	/* All are told before any is waited for. */
	for (size_t i = 0; i < CHORES_THREADS; i++)
		if (chores->threads[i].started)
			event_set(&chores->threads[i].stop);
	for (size_t i = 0; i < CHORES_THREADS; i++)
		chores_join(&chores->threads[i]);
	/* The leases go back when no turn is under way any more. */
	if (chores->leases_thread.started)
		event_set(&chores->leases_thread.stop);
	chores_join(&chores->leases_thread);
	for (size_t i = 0; i < CHORES_THREADS; i++)
		assert(!chores->threads[i].started);
	leases_free(chores->leases);
	chores->leases = NULL;
}

static void
chores_hurry_at(struct chores *chores, const char *name, uint64_t at_ns)
{
	pthread_mutex_lock(&chores->lock);
	for (size_t i = 0; i < chores->count; i++) {
		struct chore_entry *e = &chores->entries[i];

		if (at_ns >= e->hurried_ns || strcmp(e->chore.name, name) != 0)
			continue;
		e->hurried_ns = at_ns;
		event_set(&chores->threads[e->chore.thread].hurry);
	}
	pthread_mutex_unlock(&chores->lock);
}

void
chores_hurry(struct chores *chores, const char *name)
{
	chores_hurry_at(chores, name, 0);
}

void
chores_hurry_by(struct chores *chores, const char *name, uint64_t ms)
{
	chores_hurry_at(chores, name, clock_after_ms(ms));
}

size_t
chores_list(struct chores *chores, uint64_t least_ms, struct chore_state *ret, size_t max)
{
	uint64_t now_ms = clock_wall_ms();
	size_t count = 0;

	pthread_mutex_lock(&chores->lock);
	for (size_t i = 0; i < chores->count && count < max; i++) {
		const struct chore_entry *e = &chores->entries[i];

		if (e->active && !e->chore.unlisted && e->state.started_ms + least_ms <= now_ms)
			ret[count++] = e->state;
	}
	pthread_mutex_unlock(&chores->lock);
	return count;
}
