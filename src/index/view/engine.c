/*
 * Updates of one process: one for each group that somebody has asked for, on a thread of its own,
 * which ends with it. Requests wait in the update's list.
 *
 * == Safety == All of an engine's and its updates' fields are used under the engine's lock, but for
 * what an update's thread alone touches (its build, its arenas). A waiter is in a list exactly
 * until somebody has taken it out under the lock: its update, which then sets its event as the last
 * thing that it does with it, or the request itself.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/metric.h"
#include "base/thread.h"
#include "index/view/run.h"

enum {
	UPDATE_ARENA_BYTES = 16 * 1024 * 1024, /* of an update: the design document, errors */
	UPDATE_NICE = 5,                       /* of one that nobody waits for any more: requests
						  have the processor first */
	UPDATE_PROMPT_MS = 1000,               /* an update is begun at the priority of requests */
};

struct waiter_of_view {
	struct waiter_of_view *next;
	struct catalog_seq least;
	struct event event;
	enum status status;
	struct view_error error; /* in the request's arena */
	struct arena *arena;
	struct err err;
};

struct update {
	struct update *next;
	struct view_engine *engine;
	bool running; /* it has a thread; otherwise it waits for one of others to end */
	struct waiter_of_view *waiters;
	size_t waiting;
	struct view_progress progress;
	bool to_newest; /* somebody has asked for an update without waiting */
	struct catalog_seq least;

	/* Its thread's own. */
	uint64_t began_ns;
	bool nice;
	struct arena *arena;
	struct view_build build;
	struct view_design design;
	struct str design_name;
};

/* A group whose last update failed because of a function. */
struct failed_update {
	uint64_t db_number; /* 0: none */
	uint8_t signature[VIEW_SIGNATURE_BYTES];
};

struct view_engine {
	struct view_engine_config config;
	pthread_mutex_t lock;
	pthread_cond_t ended; /* an update has */
	struct update *updates;
	size_t running;
	size_t waiting;
	bool stopping;
	struct failed_update failed[VIEW_FAILED_KEPT];
	size_t failed_next; /* the oldest of them */
};

enum status
view_engine_new(const struct view_engine_config *config, struct view_engine **ret, struct err *err)
{
	struct view_engine *e = mem_zalloc(sizeof(*e));

	if (!e)
		return err_set(err, STATUS_NOMEM, "There is no memory for views.");
	e->config = *config;
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->ended, NULL);
	*ret = e;
	return STATUS_OK;
}

/* ---- Waiters ---- */

static void
waiter_end(struct waiter_of_view *w, enum status status, const struct view_error *error,
	   const struct err *err)
{
	w->status = status;
	if (err)
		w->err = *err;
	if (status == STATUS_FUNCTION && error) {
		w->error.name = arena_dup(w->arena, error->name);
		w->error.reason = arena_dup(w->arena, error->reason);
		if (!w->error.name.ptr || !w->error.reason.ptr)
			w->status = STATUS_LIMIT;
	}
	event_set(&w->event);
}

/* Ends those that are served by `covers` (NULL: all). With the lock. */
static void
update_serve(struct update *u, const struct catalog_seq *covers, enum status status,
	     const struct view_error *error, const struct err *err)
{
	struct waiter_of_view **at = &u->waiters;

	while (*at) {
		struct waiter_of_view *w = *at;

		if (covers && catalog_seq_cmp(&w->least, covers) > 0) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		u->waiting--;
		u->engine->waiting--;
		waiter_end(w, status, error, err);
	}
}

/* ---- Updates ---- */

static void
update_free(struct update *u)
{
	if (u->build.functions && u->build.functions->release)
		u->build.functions->release(u->build.arg);
	arena_free(u->arena);
	mem_free(u);
}

static struct update *
update_find(struct view_engine *e, uint64_t db_number, const uint8_t *signature)
{
	for (struct update *u = e->updates; u; u = u->next)
		if (u->build.db_number == db_number &&
		    memcmp(u->design.signature, signature, VIEW_SIGNATURE_BYTES) == 0)
			return u;
	return NULL;
}

static void
update_unlink(struct update *u)
{
	struct update **at = &u->engine->updates;

	while (*at != u)
		at = &(*at)->next;
	*at = u->next;
}

/* ---- Failed updates ---- */

static struct failed_update *
failed_find(struct view_engine *e, uint64_t db_number, const uint8_t *signature)
{
	for (size_t i = 0; i < VIEW_FAILED_KEPT; i++)
		if (e->failed[i].db_number == db_number &&
		    memcmp(e->failed[i].signature, signature, VIEW_SIGNATURE_BYTES) == 0)
			return &e->failed[i];
	return NULL;
}

/* Notes the outcome of an update; called with the lock held. */
static void
failed_note(struct update *u, enum status status)
{
	struct view_engine *e = u->engine;
	struct failed_update *f = failed_find(e, u->build.db_number, u->design.signature);

	if (status != STATUS_FUNCTION) {
		if (f)
			f->db_number = 0;
		return;
	}
	if (!f) {
		f = &e->failed[e->failed_next];
		e->failed_next = (e->failed_next + 1) % VIEW_FAILED_KEPT;
	}
	f->db_number = u->build.db_number;
	memcpy(f->signature, u->design.signature, VIEW_SIGNATURE_BYTES);
}

bool
view_update_has_failed(struct view_engine *e, uint64_t db_number,
		       const uint8_t signature[VIEW_SIGNATURE_BYTES])
{
	bool failed;

	pthread_mutex_lock(&e->lock);
	failed = failed_find(e, db_number, signature) != NULL;
	pthread_mutex_unlock(&e->lock);
	return failed;
}

/* ---- Running ---- */

static bool
update_stepped(void *arg, const struct view_step *step, struct catalog_seq *ret_least)
{
	struct update *u = arg;
	bool stopping;

	pthread_mutex_lock(&u->engine->lock);
	u->progress.done = step->done;
	u->progress.total = step->total;
	u->progress.summing = step->phase == VIEW_PHASE_SUMS;
	u->progress.updated_ms = clock_wall_ms();
	if (!u->nice && !u->waiters &&
	    clock_mono_ns() - u->began_ns >= UPDATE_PROMPT_MS * CLOCK_NS_PER_MS) {
		/* For good: the thread ends with the update. */
		u->nice = true;
		thread_set_nice(UPDATE_NICE);
	}
	if (step->phase == VIEW_PHASE_READY)
		update_serve(u, &step->covers, STATUS_OK, NULL, NULL);
	for (const struct waiter_of_view *w = u->waiters; w; w = w->next)
		if (catalog_seq_cmp(&w->least, &u->least) > 0)
			u->least = w->least;
	*ret_least = u->least;
	stopping = u->engine->stopping;
	pthread_mutex_unlock(&u->engine->lock);
	return !stopping;
}

static const char *const left_out_limits[] = { "view_key_bytes", "view_row_bytes", "view_doc_bytes",
					       "not_json" };

METRIC_COUNTERS(
	rows_left_out, "frond_view_rows_left_out_total", METRIC_NUMBER,
	"Rows that a limit has kept out of a view, by limit; under view_doc_bytes documents "
	"with all their rows. Answers of the view and its _info name the documents.",
	"limit", left_out_limits);

static size_t
left_out_limit(const char *limit)
{
	size_t i = 0;

	while (i + 1 < METRIC_COUNT_OF(left_out_limits) && strcmp(left_out_limits[i], limit) != 0)
		i++;
	return i;
}

static void
update_left_out(void *arg, const struct view_left_out *out)
{
	struct update *u = arg;
	struct view_refusal refusal = { .id = out->id,
					.limit = str_from_cstr(out->limit),
					.rows = out->rows };

	metric_add_at(&rows_left_out, left_out_limit(out->limit), out->rows);
	if (!u->engine->config.refused)
		return;
	refusal.view = out->map < VIEW_VIEWS_MOST ? u->design.maps[out->map].name : STR("");
	u->engine->config.refused(u->engine->config.arg, u->build.db_name, u->design_name,
				  &refusal);
}

struct newest_reading {
	const struct view_build *build;
	struct catalog_seq newest;
};

static enum status
newest_body(struct kv_tx *tx, void *arg)
{
	struct newest_reading *n = arg;
	AUTO(view_db_unref) struct catalog_db *db = NULL;

	TRY(view_build_open_db(n->build, tx, &db, kv_tx_err(tx)));
	return view_documents_of(db)->newest(tx, db, &n->newest);
}

static enum status
update_run(struct update *u, struct view_error *error, struct err *err)
{
	const struct view_run_hooks hooks = { .stepped = update_stepped,
					      .left_out = update_left_out,
					      .arg = u };
	struct newest_reading newest = { .build = &u->build };
	struct catalog_seq least;
	bool to_newest;

	pthread_mutex_lock(&u->engine->lock);
	to_newest = u->to_newest;
	u->to_newest = false;
	pthread_mutex_unlock(&u->engine->lock);
	if (to_newest)
		TRY(kv_run_read(u->build.store, newest_body, &newest, err));
	/* Kept in the update, which tells after each step how far to go. */
	pthread_mutex_lock(&u->engine->lock);
	if (catalog_seq_cmp(&newest.newest, &u->least) > 0)
		u->least = newest.newest;
	least = u->least;
	pthread_mutex_unlock(&u->engine->lock);
	return view_run(&u->build, &least, &hooks, u->arena, error, err);
}

static void update_start_next(struct view_engine *e);

static void *
update_main(void *arg)
{
	struct update *u = arg;
	struct view_engine *e = u->engine;

	/* A client waits, or has been told that the view follows at once. */
	thread_clear_turn();
	thread_set_name("view build");
	u->began_ns = clock_mono_ns();
	for (;;) {
		struct view_error error = { 0 };
		struct err err = { 0 };
		enum status status = update_run(u, &error, &err);

		pthread_mutex_lock(&e->lock);
		if (status == STATUS_OK && (u->waiters || u->to_newest) && !e->stopping) {
			/* Somebody has asked since the last step, and wants more. */
			for (const struct waiter_of_view *w = u->waiters; w; w = w->next)
				if (catalog_seq_cmp(&w->least, &u->least) > 0)
					u->least = w->least;
			pthread_mutex_unlock(&e->lock);
			continue;
		}
		failed_note(u, status);
		update_serve(u, NULL, status == STATUS_OK ? STATUS_CANCELLED : status, &error,
			     &err);
		break;
	}
	update_unlink(u);
	update_free(u);
	e->running--;
	update_start_next(e);
	pthread_cond_broadcast(&e->ended);
	pthread_mutex_unlock(&e->lock);
	return NULL;
}

/* Gives a thread to an update that waits for one. With the lock. */
static void
update_start_next(struct view_engine *e)
{
	pthread_attr_t attr;

	if (e->stopping || e->running >= VIEW_UPDATERS_MOST)
		return;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	for (struct update *u = e->updates, *next; u; u = next) {
		pthread_t thread;

		next = u->next;
		if (u->running || e->running >= VIEW_UPDATERS_MOST)
			continue;
		u->running = true;
		if (pthread_create(&thread, &attr, update_main, u) == 0) {
			e->running++;
			continue;
		}
		update_serve(u, NULL, STATUS_NOMEM, NULL, NULL);
		update_unlink(u);
		update_free(u);
	}
	pthread_attr_destroy(&attr);
}

void
view_engine_free(struct view_engine *e)
{
	if (!e)
		return;
	pthread_mutex_lock(&e->lock);
	e->stopping = true;
	for (struct update *u = e->updates, *next; u; u = next) {
		next = u->next;
		if (u->running)
			continue;
		update_serve(u, NULL, STATUS_CANCELLED, NULL, NULL);
		update_unlink(u);
		update_free(u);
	}
	while (e->running)
		pthread_cond_wait(&e->ended, &e->lock);
	pthread_mutex_unlock(&e->lock);
	pthread_cond_destroy(&e->ended);
	pthread_mutex_destroy(&e->lock);
	mem_free(e);
}

/* Copies what the update needs of the target beyond the call. */
static enum status
update_new(struct view_engine *e, const struct view_target *t, struct update **ret, struct err *err)
{
	struct update *u = mem_zalloc(sizeof(*u));
	struct str text;
	enum status status;

	if (!u)
		return STATUS_NOMEM;
	u->engine = e;
	u->arena = arena_new(UPDATE_ARENA_BYTES);
	if (!u->arena) {
		mem_free(u);
		return STATUS_NOMEM;
	}
	text = arena_dup(u->arena, t->design->text);
	u->build = (struct view_build){
		.store = e->config.store,
		.space = t->space,
		.db_name = arena_dup(u->arena, t->db_name),
		.db_number = t->db_number,
		.design = &u->design,
	};
	u->design_name = arena_dup(u->arena, t->name);
	u->progress.started_ms = u->progress.updated_ms = clock_wall_ms();
	status = text.ptr && u->build.db_name.ptr && u->design_name.ptr
			 ? view_design_parse(text, t->design->partitioned, u->arena, &u->design,
					     err)
			 : STATUS_LIMIT;
	if (status != STATUS_OK) {
		update_free(u);
		return status;
	}
	u->build.functions = t->functions;
	u->build.arg = t->arg;
	if (t->functions->retain)
		t->functions->retain(t->arg);
	*ret = u;
	return STATUS_OK;
}

/* ---- Asking for an update ---- */

struct covered_reading {
	const struct view_target *target;
	const struct catalog_seq *least;
	struct arena *arena;
	bool covered;
};

static enum status
covered_body(struct kv_tx *tx, void *arg)
{
	struct covered_reading *c = arg;
	struct view_build build = { .space = c->target->space,
				    .db_name = c->target->db_name,
				    .db_number = c->target->db_number };
	AUTO(view_db_unref) struct catalog_db *db = NULL;
	struct view_group group;
	enum status status;

	TRY(view_build_open_db(&build, tx, &db, kv_tx_err(tx)));
	status = view_group_open(tx, db, c->target->design, c->arena, &group, kv_tx_err(tx));
	c->covered = status == STATUS_OK && group.phase == VIEW_PHASE_READY && c->least &&
		     catalog_seq_cmp(&group.covers, c->least) >= 0;
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* Puts the waiter (NULL: nobody waits) into the list of the group's update, and begins that. */
static enum status
engine_ask(struct view_engine *e, const struct view_target *t, struct waiter_of_view *w,
	   struct update **ret, struct err *err)
{
	struct update *u = update_find(e, t->db_number, t->design->signature);

	if (e->stopping)
		return STATUS_CANCELLED;
	if (w && e->waiting >= VIEW_WAITERS_MOST)
		return err_set(err, STATUS_TOO_MANY, "Too many requests wait for views.");
	if (!u) {
		TRY(update_new(e, t, &u, err));
		u->next = e->updates;
		e->updates = u;
	}
	if (w) {
		w->next = u->waiters;
		u->waiters = w;
		u->waiting++;
		e->waiting++;
		if (catalog_seq_cmp(&w->least, &u->least) > 0)
			u->least = w->least;
	} else {
		/* Also of an update under way, which may be past what this one wants. */
		u->to_newest = true;
	}
	update_start_next(e);
	*ret = u;
	return STATUS_OK;
}

/* The request does not wait any longer. False: it has been served meanwhile, or is being so. */
static bool
engine_leave(struct view_engine *e, const struct view_target *t, struct waiter_of_view *w)
{
	struct update *u;
	bool left = false;

	pthread_mutex_lock(&e->lock);
	u = update_find(e, t->db_number, t->design->signature);
	for (struct waiter_of_view **at = u ? &u->waiters : NULL; at && *at; at = &(*at)->next) {
		if (*at != w)
			continue;
		*at = w->next;
		u->waiting--;
		e->waiting--;
		left = true;
		break;
	}
	pthread_mutex_unlock(&e->lock);
	return left;
}

enum status
view_update(struct view_engine *e, const struct view_target *target,
	    const struct catalog_seq *least, uint64_t deadline_ns, struct event *stop,
	    struct arena *arena, struct view_error *ret_error, struct err *err)
{
	struct covered_reading covered = { target, least, arena, false };
	struct waiter_of_view w = { .arena = arena };
	struct event *const events[] = { &w.event, stop };
	struct update *u;
	enum status status;
	size_t which;

	*ret_error = (struct view_error){ 0 };
	TRY(kv_run_read(e->config.store, covered_body, &covered, err));
	if (covered.covered)
		return STATUS_OK;
	event_init(&w.event);
	if (least)
		w.least = *least;
	pthread_mutex_lock(&e->lock);
	status = engine_ask(e, target, least ? &w : NULL, &u, err);
	pthread_mutex_unlock(&e->lock);
	if (status != STATUS_OK || !least)
		return status;
	which = event_wait_any(events, stop ? 2 : 1, deadline_ns);
	if (which != 0 && engine_leave(e, target, &w))
		return event_is_set(&w.event)       ? w.status
		       : stop && event_is_set(stop) ? STATUS_CANCELLED
						    : STATUS_TIMEOUT;
	if (which != 0)
		(void)event_wait(&w.event, WAIT_FOREVER);
	*ret_error = w.error;
	if (w.status != STATUS_OK && err)
		*err = w.err;
	return w.status;
}

/* ---- What is under way ---- */

size_t
view_progress_list(struct view_engine *e, size_t most, struct arena *arena,
		   struct view_progress *ret)
{
	size_t count = 0;

	pthread_mutex_lock(&e->lock);
	for (struct update *u = e->updates; u && count < most; u = u->next) {
		struct view_progress *p = &ret[count];

		if (!u->running)
			continue;
		*p = u->progress;
		p->db_name = arena_dup(arena, u->build.db_name);
		p->design = arena_dup(arena, u->design_name);
		if (!p->db_name.ptr || !p->design.ptr)
			break;
		count++;
	}
	pthread_mutex_unlock(&e->lock);
	return count;
}

void
view_activity_get(struct view_engine *e, uint64_t db_number,
		  const uint8_t signature[VIEW_SIGNATURE_BYTES], struct view_activity *ret)
{
	const struct update *u;

	pthread_mutex_lock(&e->lock);
	u = update_find(e, db_number, signature);
	*ret = (struct view_activity){ .updating = u && u->running, .waiting = u ? u->waiting : 0 };
	pthread_mutex_unlock(&e->lock);
}
