#include "door/couch/view/ahead.h"

#include "base/log.h"
#include "base/quote.h"
#include "catalog/chore_pass.h"
#include "catalog/chores.h"
#include "door/couch/doc/doc_out.h"
#include "door/couch/doc/functions.h"
#include "door/couch/view/functions.h"
#include "index/view/view.h"
#include "index/view/written.h"
#include "loop/wait.h"
#include "model/revisioned/read.h"
#include "settings/live.h"

enum {
	AHEAD_PAUSE_MS = 500, /* between two looks for work */
	AHEAD_MORE_MS = 200,
	AHEAD_FAILED_MS = 5000,
	AHEAD_PAGE = 100, /* notes that one transaction reads */
	AHEAD_ARENA_BYTES = 256 * 1024 * 1024,
	AHEAD_DESIGN_BYTES = 32 * 1024 * 1024, /* of a design document's text */
	AHEAD_BEGUN_MOST = 1000,               /* the highest [ken] limit */
};

/* An update that the chore has begun. */
struct begun {
	uint64_t db_number; /* 0: none */
	uint8_t signature[VIEW_SIGNATURE_BYTES];
};

/* Static without a lock: a process has one chore of this name, whose turns never overlap. */
static struct {
	struct begun all[AHEAD_BEGUN_MOST];
	size_t next; /* the oldest of them */
} ahead;

/* What a turn needs. */
struct turn {
	struct couch *couch;
	const struct couch_settings *settings;
	struct arena *arena;
	size_t running; /* updates begun by the chore that are still running */
	uint64_t done;
	struct err *err;
};

/* The state of a note's design document and views in one transaction. */
struct look {
	const struct turn *turn;
	const struct view_written *written;
	bool failed; /* the chore built it before, and a function failed */
	bool wanted; /* it has to be built */
	struct js_design version;
	struct view_design design;
};

/* ---- Which have been begun ---- */

static struct begun *
begun_find(const struct look *l)
{
	for (size_t i = 0; i < AHEAD_BEGUN_MOST; i++)
		if (ahead.all[i].db_number == l->written->db_number &&
		    memcmp(ahead.all[i].signature, l->design.signature, VIEW_SIGNATURE_BYTES) == 0)
			return &ahead.all[i];
	return NULL;
}

static void
begun_add(const struct look *l)
{
	struct begun *b = &ahead.all[ahead.next];

	ahead.next = (ahead.next + 1) % AHEAD_BEGUN_MOST;
	b->db_number = l->written->db_number;
	memcpy(b->signature, l->design.signature, VIEW_SIGNATURE_BYTES);
}

static void
begun_remove(const struct look *l)
{
	struct begun *b = begun_find(l);

	if (b)
		b->db_number = 0;
}

/* ---- Looking at one note ---- */

/* Reads the design document. STATUS_NOT_FOUND, STATUS_DELETED, STATUS_INVALID: there is no view. */
static enum status
look_read_design(struct look *l, struct kv_tx *tx, const struct catalog_db *db)
{
	AUTO(buf_release)
	struct buf text = BUF_INIT_OF(AHEAD_DESIGN_BYTES, arena_part(l->turn->arena));
	struct arena *arena = l->turn->arena;
	struct rev_doc doc;
	struct couch_doc_out out = { .id = l->written->id, .doc = &doc };
	struct str kept;

	TRY(rev_doc_read(tx, db, l->written->id, arena, &doc));
	TRY(couch_doc_write(&out, &text));
	TRY(buf_copy(&text, arena, &kept));
	TRY(view_design_parse(kept, rev_db_is_partitioned(db), arena, &l->design, NULL));
	if (!l->design.view_count || !l->design.autoupdate ||
	    !str_eq(l->design.language, STR("javascript")))
		return STATUS_INVALID;
	return couch_function_version(db, l->written->id, kept, arena, &l->version);
}

static bool
status_is_no_view(enum status status)
{
	return status == STATUS_NOT_FOUND || status == STATUS_DELETED || status == STATUS_INVALID ||
	       status == STATUS_LIMIT;
}

static enum status
look_at_db(struct look *l, struct kv_tx *tx, const struct catalog_db *db)
{
	struct view_group group;
	enum status status;

	if (db->number != l->written->db_number)
		return STATUS_OK; /* the database was deleted; another one has its name */
	status = look_read_design(l, tx, db);
	if (status_is_no_view(status))
		return STATUS_OK;
	TRY(status);
	status = view_group_open(tx, db, &l->design, l->turn->arena, &group, kv_tx_err(tx));
	if (status != STATUS_OK && status != STATUS_NOT_FOUND)
		return status;
	l->wanted = status == STATUS_NOT_FOUND || group.phase != VIEW_PHASE_READY;
	if (l->wanted && begun_find(l))
		l->failed = view_update_has_failed(l->turn->couch->config.views,
						   l->written->db_number, l->design.signature);
	return STATUS_OK;
}

/* Clears the note if nothing has to be built. */
static enum status
look_body(struct kv_tx *tx, void *arg)
{
	struct look *l = arg;
	struct catalog_db *db = NULL;
	enum status status;

	l->wanted = l->failed = false;
	TRY(view_written_guard(tx, l->written));
	status = catalog_open(tx, NULL, l->written->space, l->written->db_name, &db, kv_tx_err(tx));
	if (status == STATUS_OK)
		status = look_at_db(l, tx, db);
	else if (status == STATUS_NOT_FOUND)
		status = STATUS_OK;
	catalog_db_unref(db);
	TRY(status);
	return l->wanted && !l->failed ? STATUS_OK : view_written_clear(tx, l->written);
}

/* Begins an update, which continues without the chore. */
static enum status
look_begin(struct look *l)
{
	const struct couch_config *config = &l->turn->couch->config;
	struct view_target target = {
		.space = l->written->space,
		.db_name = l->written->db_name,
		.db_number = l->written->db_number,
		.name = l->written->id,
		.design = &l->design,
		.functions = &couch_view_functions,
	};
	struct view_error error = { 0 };
	struct couch_view_functions *functions;
	enum status status;

	functions = couch_view_functions_new(config->js, &l->version, JS_LANE_INDEX,
					     couch_view_reduce_limit(l->turn->settings));
	if (!functions)
		return STATUS_NOMEM;
	target.arg = functions;
	status = view_update(config->views, &target, NULL, WAIT_FOREVER, NULL, l->turn->arena,
			     &error, l->turn->err);
	couch_view_functions_release(functions);
	return status;
}

static enum status
turn_take(struct turn *t, const struct view_written *written)
{
	struct look l = { .turn = t, .written = written };
	struct view_activity activity;

	TRY(kv_run(t->couch->config.store, look_body, &l, NULL, t->err));
	if (!l.wanted || l.failed) {
		begun_remove(&l);
		t->done++;
		if (l.failed)
			log_event(LOG_LEVEL_WARN, "view_build_failed", "design=\"%s/%s\"",
				  QUOTE_VALUE(written->db_name), QUOTE_VALUE(written->id));
		return STATUS_OK;
	}
	view_activity_get(t->couch->config.views, written->db_number, l.design.signature,
			  &activity);
	if (!activity.updating && t->running < t->settings->ken_limit) {
		if (!begun_find(&l))
			begun_add(&l);
		TRY(look_begin(&l));
	}
	t->running++;
	return STATUS_OK;
}

/* ---- Turns ---- */

struct listing {
	const struct view_written *after;
	struct arena *arena;
	struct view_written *all;
	size_t count;
};

static enum status
list_body(struct kv_tx *tx, void *arg)
{
	struct listing *l = arg;

	return view_written_list(tx, l->after, AHEAD_PAGE, l->arena, &l->all, &l->count);
}

static enum status
turn_run(struct turn *t)
{
	struct listing l = { .arena = t->arena };
	enum status status;

	do {
		TRY(kv_run_read(t->couch->config.store, list_body, &l, t->err));
		for (size_t i = 0; i < l.count && t->running < t->settings->ken_limit; i++) {
			struct arena_mark mark = arena_mark(t->arena);

			status = turn_take(t, &l.all[i]);
			if (status != STATUS_OK)
				TRY(chore_pass_over(VIEW_CHORE_BUILD, l.all[i].id, status, t->err));
			arena_reset(t->arena, mark);
		}
		l.after = l.count ? &l.all[l.count - 1] : NULL;
	} while (l.count == AHEAD_PAGE && t->running < t->settings->ken_limit);
	return STATUS_OK;
}

static enum status
ahead_run(void *arg, struct chore_turn *turn, struct err *err)
{
	struct couch *couch = arg;
	struct settings_held *held = settings_live_hold(couch->config.live);
	struct turn t = { .couch = couch,
			  .settings = settings_of(held->settings, &couch_setting_group),
			  .err = err };
	enum status status = STATUS_OK;

	if (t.settings->ken_limit && js_check(couch->config.js, err) == STATUS_OK) {
		t.arena = arena_new(AHEAD_ARENA_BYTES);
		status = t.arena ? turn_run(&t) : STATUS_NOMEM;
		arena_free(t.arena);
	}
	settings_held_unref(held);
	turn->more = t.running > 0;
	turn->done = t.done;
	return status;
}

void
couch_view_chores_add(struct couch *couch, struct chores *chores)
{
	if (!couch->config.js || !couch->config.views)
		return;
	chores_add(chores, &(struct chore){
				   .name = VIEW_CHORE_BUILD,
				   .run = ahead_run,
				   .arg = couch,
				   .leased = true,
				   .pause_ms = AHEAD_PAUSE_MS,
				   .more_ms = AHEAD_MORE_MS,
				   .failed_ms = AHEAD_FAILED_MS,
			   });
}
