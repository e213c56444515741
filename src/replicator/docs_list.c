/* What _scheduler/docs shows: for each document its job, or how its job ended. */
#include "replicator/doc_state.h"
#include "replicator/job.h"
#include "replicator/job_lease.h"

#include <stdio.h>

#include "base/mem.h"
#include "doc/json_value.h"
#include "model/revisioned/revisioned.h"

enum {
	LIST_PAGE = 100,
};

struct docs_listing {
	struct replicator *replicator;
	const struct replicator_docs_query *query;
	struct arena *arena;
	struct buf *out;
	uint64_t total;
	uint64_t passed;
	uint64_t written;
};

/* ---- Of a document whose job is over, or has not begun ---- */

static struct str
docs_list_string(const struct json_member *members, size_t count, const char *name)
{
	const struct json_value *value = json_value_find(members, count, name);

	return value && value->kind == JSON_STRING ? value->string : (struct str){ NULL, 0 };
}

/* The source or target of a document, without credentials. */
static struct str
docs_list_end_name(const struct json_member *members, size_t count, const char *which,
		   struct arena *arena)
{
	const struct json_value *value = json_value_find(members, count, which);
	struct json_member *inner;
	struct str text = { NULL, 0 };
	struct net_url url;
	size_t n;

	if (value && value->kind == JSON_STRING)
		text = value->string;
	else if (value && value->kind == JSON_OBJECT_BEGIN &&
		 json_value_members(value, arena, &inner, &n, NULL) == STATUS_OK)
		text = docs_list_string(inner, n, "url");
	if (text.ptr && net_url_parse(text, arena, &url, NULL) == STATUS_OK)
		text = url.bare;
	return text;
}

static void
docs_list_write_ended(const struct json_member *members, size_t count, struct str id,
		      const char *node, struct arena *arena, struct buf *out)
{
	struct doc_state said = doc_state_of(members, count);
	bool failed = str_eq(said.state, STR("failed"));

	job_write_doc_head(out, id);
	buf_append_cstr(out, ",\"id\":null");
	job_write_text(out, "node", str_from_cstr(node));
	job_write_text(out, "source", docs_list_end_name(members, count, "source", arena));
	job_write_text(out, "target", docs_list_end_name(members, count, "target", arena));
	job_write_text(out, "state", said.state.ptr ? said.state : STR("initializing"));
	buf_append_cstr(out, ",\"info\":");
	if (failed) {
		buf_append_cstr(out, "{\"error\":");
		json_write_str(out, said.reason.ptr ? said.reason : STR("unknown"));
		buf_append_byte(out, '}');
	} else if (said.stats.ptr) {
		buf_append_str(out, said.stats);
	} else {
		buf_append_cstr(out, "null");
	}
	buf_printf(out, ",\"error_count\":%d", failed ? 1 : 0);
	job_write_text(out, "last_updated", said.time);
	job_write_text(out, "start_time", said.time);
	buf_append_byte(out, '}');
}

/* ---- Documents ---- */

static enum status
docs_list_read_members(struct kv_tx *tx, const struct catalog_db *db, struct str id,
		       struct arena *arena, struct json_member **ret, size_t *ret_count)
{
	struct rev_doc doc;
	struct json_value object;
	struct str text;

	TRY(rev_doc_read(tx, db, id, arena, &doc));
	TRY(doc_text_of(&doc, arena, &text));
	TRY(json_value_read(text, arena, &object, NULL));
	return json_value_members(&object, arena, ret, ret_count, NULL);
}

static bool
docs_list_wants_state(const struct replicator_docs_query *q, struct str state)
{
	struct str rest = q->states;
	struct str wanted;

	if (!rest.len)
		return true;
	while (str_list_next(&rest, &wanted))
		if (str_eq_nocase(wanted, state))
			return true;
	return false;
}

/* The state in a text that another process has written with job_write_doc(). */
static struct str
docs_list_state_in(struct str text)
{
	const char *const states[] = { job_state_name(JOB_PENDING), job_state_name(JOB_RUNNING),
				       job_state_name(JOB_CRASHING), JOB_DOC_ERROR };
	char member[32];

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		const char *name = states[i];
		int n = snprintf(member, sizeof(member), "\"state\":\"%s\"", name);

		if (memmem(text.ptr, text.len, member, (size_t)n))
			return str_from_cstr(name);
	}
	return STR("running");
}

/* Appends the entry of a document, if it passes the query. */
static enum status
docs_list_write_entry(struct docs_listing *l, struct str id, const struct json_member *members,
		      size_t count)
{
	struct replicator *r = l->replicator;
	struct buf AUTO(buf_release) entry = BUF_INIT(REPLICATOR_ANSWER_BYTES);
	struct str state = doc_state_of(members, count).state;
	const struct lease_entry *e;
	struct job *j;

	if (!state.ptr)
		state = STR("initializing");
	pthread_mutex_lock(&r->lock);
	j = job_of_doc(r, id);
	e = job_lease_elsewhere_doc(r, id);
	if (e) {
		state = docs_list_state_in(e->record.texts[JOB_LEASE_DOC]);
		buf_append_str(&entry, e->record.texts[JOB_LEASE_DOC]);
	} else if (j && !j->dropped) {
		state = str_from_cstr(job_doc_state(j));
		job_write_doc(j, &entry);
	}
	pthread_mutex_unlock(&r->lock);
	if (!entry.len)
		docs_list_write_ended(members, count, id, r->config.node_name, l->arena, &entry);
	TRY(buf_status(&entry));
	if (!docs_list_wants_state(l->query, state))
		return STATUS_OK;
	if (l->passed++ < l->query->skip || l->written >= l->query->limit)
		return STATUS_OK;
	if (l->written++)
		buf_append_byte(l->out, ',');
	buf_append_buf(l->out, &entry);
	return buf_status(l->out);
}

static enum status
docs_list_write_page(struct docs_listing *l, struct kv_tx *tx, const struct catalog_db *db,
		     const struct rev_entry_page *page)
{
	for (size_t i = 0; i < page->count; i++) {
		struct arena_mark mark = arena_mark(l->arena);
		struct json_member *members;
		size_t count;

		if (str_starts_with(page->entries[i].id, STR("_design/")))
			continue;
		l->total++;
		TRY(docs_list_read_members(tx, db, page->entries[i].id, l->arena, &members,
					   &count));
		TRY(docs_list_write_entry(l, page->entries[i].id, members, count));
		arena_reset(l->arena, mark);
	}
	return STATUS_OK;
}

static enum status
docs_list_write_db(struct docs_listing *l, struct kv_tx *tx, const struct catalog_db *db)
{
	struct name_range range = { .limit = LIST_PAGE };
	struct rev_entry_page page;

	do {
		TRY(rev_all_docs_page(tx, db, &range, l->arena, &page));
		TRY(docs_list_write_page(l, tx, db, &page));
		range.begin = page.last;
		range.has_begin = range.exclusive_begin = true;
	} while (page.more);
	return STATUS_OK;
}

static enum status
docs_list_body(struct kv_tx *tx, void *arg)
{
	struct docs_listing *l = arg;
	struct catalog_db *db;
	enum status status;

	arena_clear(l->arena);
	buf_clear(l->out);
	l->total = l->passed = l->written = 0;
	TRY(rev_db_open(tx, NULL, STR(REPLICATOR_DB), &db, NULL));
	status = docs_list_write_db(l, tx, db);
	catalog_db_unref(db);
	return status;
}

enum status
replicator_list_docs(struct replicator *r, const struct replicator_docs_query *query,
		     struct buf *out, uint64_t *ret_total, struct err *err)
{
	struct docs_listing l = {
		.replicator = r,
		.query = query,
		.arena = arena_new(DOC_TEXT_BYTES),
		.out = out,
	};
	enum status status = l.arena ? kv_run_read(r->config.store, docs_list_body, &l, err)
				     : STATUS_NOMEM;

	arena_free(l.arena);
	*ret_total = l.total;
	return status;
}

struct docs_showing {
	struct docs_listing listing;
	struct str id;
};

static enum status
docs_show_body(struct kv_tx *tx, void *arg)
{
	struct docs_showing *s = arg;
	struct json_member *members;
	struct catalog_db *db;
	size_t count;
	enum status status;

	arena_clear(s->listing.arena);
	buf_clear(s->listing.out);
	s->listing.passed = s->listing.written = 0;
	TRY(rev_db_open(tx, NULL, STR(REPLICATOR_DB), &db, NULL));
	status = docs_list_read_members(tx, db, s->id, s->listing.arena, &members, &count);
	catalog_db_unref(db);
	return status == STATUS_OK ? docs_list_write_entry(&s->listing, s->id, members, count)
				   : status;
}

enum status
replicator_show_doc(struct replicator *r, struct str id, struct buf *out, struct err *err)
{
	static const struct replicator_docs_query all = { .limit = 1 };
	struct docs_showing s = {
		.listing = { .replicator = r,
			     .query = &all,
			     .arena = arena_new(DOC_TEXT_BYTES),
			     .out = out },
		.id = id,
	};
	enum status status = s.listing.arena ? kv_run_read(r->config.store, docs_show_body, &s, err)
					     : STATUS_NOMEM;

	arena_free(s.listing.arena);
	return status;
}
