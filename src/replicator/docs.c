/* Follows the documents of _replicator and makes jobs of them. */
#include "replicator/docs.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/quote.h"
#include "catalog/events.h"
#include "model/revisioned/revisioned.h"
#include "replicator/doc_state.h"
#include "replicator/verdicts.h"

/* ---- Reading a page ---- */

struct docs_row {
	struct str id;
	struct str rev;
	struct str text; /* its JSON; ptr NULL: it is deleted */
};

struct docs_page {
	struct replicator *replicator;
	struct arena *arena;
	struct catalog_seq since;
	uint64_t number; /* of the database that was read; 0: there is none */
	struct docs_row *rows;
	size_t count;
	struct catalog_seq last;
	bool more;
};

static enum status
docs_rev_text(struct rev_id rev, struct arena *arena, struct str *ret)
{
	struct buf AUTO(buf_release) text = BUF_INIT(2 * REV_HASH_LIMIT_BYTES);

	rev_id_write(rev, &text);
	TRY(buf_status(&text));
	*ret = buf_dup(&text, arena);
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

static enum status
docs_read_row(struct kv_tx *tx, const struct catalog_db *db, const struct rev_change *change,
	      struct docs_page *page)
{
	struct docs_row *row = &page->rows[page->count++];
	struct rev_doc doc;
	enum status status;

	*row = (struct docs_row){ .id = change->id };
	TRY(docs_rev_text(change->rev, page->arena, &row->rev));
	if (change->deleted)
		return STATUS_OK;
	status = rev_doc_read(tx, db, change->id, page->arena, &doc);
	if (status == STATUS_NOT_FOUND || status == STATUS_DELETED)
		return STATUS_OK;
	TRY(status);
	return doc_text_of(&doc, page->arena, &row->text);
}

static enum status
docs_read_changes(struct kv_tx *tx, const struct catalog_db *db, struct docs_page *page)
{
	struct rev_change_range range = { .since = page->since, .limit = DOCS_PAGE };
	struct rev_change_page changes;

	page->number = db->number;
	memset(range.until.bytes, 0xff, sizeof(range.until.bytes));
	TRY(rev_changes_page(tx, db, &range, page->arena, &changes));
	page->rows = arena_alloc(page->arena, (changes.count + 1) * sizeof(*page->rows));
	if (!page->rows)
		return STATUS_LIMIT;
	for (size_t i = 0; i < changes.count; i++)
		TRY(docs_read_row(tx, db, &changes.changes[i], page));
	if (changes.count)
		page->last = changes.changes[changes.count - 1].seq;
	page->more = changes.more;
	return STATUS_OK;
}

static enum status
docs_page_body(struct kv_tx *tx, void *arg)
{
	struct docs_page *page = arg;
	struct catalog_db *db;
	enum status status;

	arena_clear(page->arena);
	page->count = 0;
	page->number = 0;
	page->more = false;
	page->last = page->since;
	status = rev_db_open(tx, NULL, STR(REPLICATOR_DB), &db, NULL);
	if (status == STATUS_NOT_FOUND)
		return STATUS_OK;
	TRY(status);
	status = docs_read_changes(tx, db, page);
	catalog_db_unref(db);
	return status;
}

/* ---- From documents to jobs ---- */

/*
 * Makes a job of the spec, now or, if the document has a job already, when that one is gone. Takes
 * the spec over. Under the lock.
 */
static void
docs_add_job(struct replicator *r, struct repl_spec *spec, struct str rev)
{
	struct job *old = job_of_doc(r, spec->doc_id);
	char id[SPEC_ID_BYTES + 1];
	char full_id[SPEC_FULL_ID_BYTES];
	struct err err = { 0 };
	struct job *j;

	if (old && old->doc_rev && str_eq(str_from_cstr(old->doc_rev), rev) && !old->dropped) {
		repl_spec_free(spec);
		return;
	}
	if (old) {
		repl_spec_free(old->successor);
		mem_free(old->successor_rev);
		old->successor = spec;
		old->successor_rev = mem_strdup(rev);
		old->dropped = true;
		return;
	}
	repl_spec_id(spec, str_from_cstr(r->store_id), id, full_id);
	j = job_find(r, str_from_cstr(full_id));
	if (j) {
		struct str other = j->spec->doc_id.ptr ? j->spec->doc_id : STR("(_replicate)");

		(void)err_set(&err, STATUS_EXISTS,
			      "Replication `%s` specified by document `%s` already started, "
			      "triggered by document `%s` from db `" REPLICATOR_DB "`",
			      full_id, QUOTE_SHOW(spec->doc_id), QUOTE_SHOW(other));
		verdict_push(r, spec->doc_id, str_from_cstr(err.text), true);
		repl_spec_free(spec);
		return;
	}
	j = r->jobs_count < REPLICATOR_JOBS_MAX ? job_new(r, spec) : NULL;
	if (!j) {
		repl_spec_free(spec);
		return;
	}
	j->doc_rev = mem_strdup(rev);
	job_table_add(r, j);
}

void
docs_start_successor(struct replicator *r, struct job *j)
{
	struct repl_spec *spec = j->successor;
	struct str rev = str_from_cstr(j->successor_rev ? j->successor_rev : "");

	j->successor = NULL;
	if (spec)
		docs_add_job(r, spec, rev);
}

static void
docs_drop_job(struct replicator *r, struct str id)
{
	struct job *j = job_of_doc(r, id);

	if (!j)
		return;
	repl_spec_free(j->successor);
	j->successor = NULL;
	j->dropped = true;
}

static void
docs_take_row(struct replicator *r, const struct docs_row *row, struct arena *arena)
{
	struct repl_spec *spec = NULL;
	struct err err = { 0 };
	struct doc_state state = { 0 };
	enum status status = STATUS_NOT_FOUND;

	if (str_starts_with(row->id, STR("_design/")))
		return;
	if (row->text.ptr && doc_state_parse(row->text, arena, &state) == STATUS_OK &&
	    !doc_state_is_end(&state))
		status = repl_spec_new(row->text, state.owner, row->id, &r->config.defaults, &spec,
				       &err);
	pthread_mutex_lock(&r->lock);
	if (status == STATUS_OK) {
		docs_add_job(r, spec, row->rev);
	} else {
		docs_drop_job(r, row->id);
		if (status != STATUS_NOT_FOUND)
			verdict_push(r, row->id, str_from_cstr(err.text), true);
	}
	replicator_ring(r);
	pthread_mutex_unlock(&r->lock);
}

static void
docs_drop_all(struct replicator *r)
{
	pthread_mutex_lock(&r->lock);
	for (struct job *j = job_next(r, NULL); j; j = job_next(r, j))
		if (j->spec->doc_id.ptr)
			j->dropped = true;
	replicator_ring(r);
	pthread_mutex_unlock(&r->lock);
}

/* ---- Following the database ---- */

/* Watches that fire when the database changes, appears or goes. To be set before it is read. */
struct docs_watch {
	struct kv_future *changes;
	struct kv_future *databases;
};

static void
docs_watch_release(struct docs_watch *w)
{
	kv_future_free(w->changes);
	kv_future_free(w->databases);
	*w = (struct docs_watch){ 0 };
}

static enum status
docs_watch_set(struct kv_tx *tx, struct arena *arena, struct docs_watch *w)
{
	struct catalog_db *db = NULL;
	struct str key;
	enum status status = rev_db_open(tx, NULL, STR(REPLICATOR_DB), &db, NULL);

	if (status == STATUS_OK) {
		status = rev_db_watch_key(db, arena, &key);
		if (status == STATUS_OK)
			w->changes = kv_watch(tx, key);
		catalog_db_unref(db);
	} else if (status == STATUS_NOT_FOUND) {
		status = STATUS_OK;
	}
	TRY(status);
	return catalog_watch(tx, &w->databases);
}

static enum status
docs_watch_begin(struct replicator *r, struct arena *arena, struct docs_watch *w)
{
	struct kv_future *commit;
	struct kv_tx *tx;
	enum status status;

	TRY(kv_begin(r->config.store, KV_TX_READ_ONLY, &tx));
	status = docs_watch_set(tx, arena, w);
	if (status == STATUS_OK) {
		commit = kv_commit(tx);
		status = kv_future_wait(commit);
		kv_future_free(commit);
	}
	kv_tx_free(tx);
	if (status != STATUS_OK)
		docs_watch_release(w);
	return status;
}

/* Reads all changes since the last call, and takes them over. */
static enum status
docs_catch_up(struct replicator *r, struct docs_page *page, uint64_t *number, struct err *err)
{
	do {
		TRY(kv_run_read(r->config.store, docs_page_body, page, err));
		if (page->number != *number) {
			bool from_beginning = *number == 0;

			/* The database is gone, or another one of that name has taken its place. */
			*number = page->number;
			if (!from_beginning) {
				docs_drop_all(r);
				page->since = (struct catalog_seq){ 0 };
				page->more = true;
				continue;
			}
		}
		if (page->count)
			TRY(replicator_ensure_store_id(r, err));
		for (size_t i = 0; i < page->count; i++)
			docs_take_row(r, &page->rows[i], page->arena);
		page->since = page->last;
	} while (page->more);
	return STATUS_OK;
}

static bool
docs_is_stopping(struct replicator *r)
{
	bool stopping;

	pthread_mutex_lock(&r->lock);
	stopping = r->stopping;
	pthread_mutex_unlock(&r->lock);
	return stopping;
}

static void
docs_await_change(struct replicator *r, const struct docs_watch *w, bool failed)
{
	struct event *events[3];
	size_t n = 0;
	struct event *e;

	/* A watch that has fired already has no event: read again at once. */
	if (w->changes) {
		e = kv_future_event(w->changes);
		if (!e)
			return;
		events[n++] = e;
	}
	if (w->databases) {
		e = kv_future_event(w->databases);
		if (!e)
			return;
		events[n++] = e;
	}
	events[n++] = &r->docs_stop;
	(void)event_wait_any(events, n, failed ? clock_after_ms(DOCS_RETRY_MS) : WAIT_FOREVER);
}

void
docs_follow(void *replicator)
{
	struct replicator *r = replicator;
	struct arena *watch_arena = arena_new(DOCS_ARENA_BYTES);
	struct docs_page page = { .replicator = r, .arena = arena_new(DOCS_ARENA_BYTES) };
	uint64_t number = 0;

	while (watch_arena && page.arena && !docs_is_stopping(r)) {
		struct docs_watch watch = { 0 };
		struct err err = { 0 };
		enum status status = docs_watch_begin(r, watch_arena, &watch);

		if (status == STATUS_OK)
			status = docs_catch_up(r, &page, &number, &err);
		if (status != STATUS_OK)
			log_event(LOG_LEVEL_WARN, "replicator_db_unread", "status=%s reason=\"%s\"",
				  status_name(status), err.text);
		docs_await_change(r, &watch, status != STATUS_OK);
		docs_watch_release(&watch);
		arena_clear(watch_arena);
	}
	arena_free(watch_arena);
	arena_free(page.arena);
	replicator_fiber_ended(r);
}
