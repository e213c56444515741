/* POST /_replicate, and the replication jobs that _scheduler and _active_tasks list. */
#include "base/quote.h"
#include "catalog/chores.h"
#include "doc/json.h"
#include "door/couch/admin/access.h"
#include "door/couch/admin/endpoints.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/params.h"
#include "door/couch/wire/reply.h"
#include "door/couch/wire/request.h"
#include "index/engine/build.h"
#include "index/view/view.h"
#include "loop/wait.h"
#include "replicator/replicator.h"

enum {
	REPLICATE_BODY_BYTES = 8 << 20,
	REPLICATE_JOBS_LIMIT = 100, /* of one answer, unless the query asks for more */
	ACTIVE_BUILDS = 100,        /* of indexes, that _active_tasks lists */
	ACTIVE_BUILDS_PID = 1000,   /* where their numbers begin, behind those of chores */
	ACTIVE_VIEWS = 100,         /* updates of views, likewise */
	ACTIVE_VIEWS_PID = 2000,
};

static enum status
replicate_require_replicator(struct couch_req *r)
{
	if (r->couch->config.replicator)
		return STATUS_OK;
	return couch_fail_set(&r->fail, COUCH_ERROR_NOT_IMPLEMENTED,
			      "%s: the replicator of this server is switched off.",
			      QUOTE_SHOW(r->parts[0]));
}

/* ---- POST /_replicate ---- */

/* Splits a text such as "db_not_found: could not open …" into CouchDB's error and its reason. */
static void
replicate_split_reason(struct str text, struct str *ret_word, struct str *ret_reason)
{
	size_t n = 0;

	while (n < text.len && ((text.ptr[n] >= 'a' && text.ptr[n] <= 'z') || text.ptr[n] == '_'))
		n++;
	*ret_word = STR("replication_failed");
	*ret_reason = text;
	if (n && n + 2 < text.len && memcmp(text.ptr + n, ": ", 2) == 0) {
		*ret_word = str_of(text.ptr, n);
		*ret_reason = str_skip(text, n + 2);
	}
}

static enum status
replicate_reply_failure(struct couch_req *r, const struct replicator_wait *w)
{
	struct buf AUTO(buf_release) out = couch_buf(r, COUCH_ANSWER_BYTES);
	struct str word;
	struct str reason;
	int code = 500;

	replicate_split_reason(str_from_cstr(w->err.text), &word, &reason);
	buf_append_cstr(&out, "{\"error\":");
	json_write_str(&out, word);
	buf_append_cstr(&out, ",\"reason\":");
	json_write_str(&out, reason);
	buf_append_byte(&out, '}');
	if (w->status == STATUS_UNAUTHORIZED || w->status == STATUS_FORBIDDEN)
		code = 401;
	/* A filter that is not there. A database that is not there is `db_not_found`, and 500. */
	if (w->status == STATUS_NOT_FOUND && str_eq(word, STR("not_found")))
		code = 404;
	return couch_reply(r, code, &out);
}

static enum status
replicate_reply_result(struct couch_req *r, const struct replicator_wait *w)
{
	struct buf AUTO(buf_release) out = couch_buf(r, COUCH_ANSWER_BYTES);

	if (w->status != STATUS_OK)
		return replicate_reply_failure(r, w);
	buf_append_cstr(&out, "{\"ok\":true");
	if (w->answer.len) {
		buf_append_byte(&out, ',');
		buf_append_buf(&out, &w->answer);
	}
	buf_append_byte(&out, '}');
	return couch_reply(r, 200, &out);
}

static enum status
replicate_reply_job(struct couch_req *r, int code, struct str id)
{
	struct buf AUTO(buf_release) out = couch_buf(r, COUCH_ANSWER_BYTES);

	buf_append_cstr(&out, "{\"ok\":true,\"_local_id\":");
	json_write_str(&out, id);
	buf_append_byte(&out, '}');
	return couch_reply(r, code, &out);
}

/* Waits for the job. If the client goes away, the job runs on. */
static enum status
replicate_await(struct couch_req *r, struct replicator_wait *w)
{
	struct event *const events[] = { &w->done, http_closed_event(r->x) };

	return event_wait_any(events, 2, WAIT_FOREVER) == 0 ? STATUS_OK : STATUS_CANCELLED;
}

static enum status
replicate_cancel(struct couch_req *r, const struct repl_spec *spec)
{
	struct replicator *replicator = r->couch->config.replicator;
	char id_text[SPEC_FULL_ID_BYTES];
	struct replicator_wait *w;
	struct str id = spec->given_id;
	enum status status;

	if (!id.ptr) {
		TRY(replicator_id(replicator, spec, id_text, &r->fail.err));
		id = str_from_cstr(id_text);
	}
	status = replicator_cancel(replicator, id, r->user.name, r->user.admin, &w, &r->fail.err);
	if (status == STATUS_NOT_FOUND)
		return couch_fail_set(&r->fail, COUCH_ERROR_NOT_FOUND, "missing");
	TRY(status);
	status = replicate_await(r, w);
	if (status == STATUS_OK)
		status = replicate_reply_job(r, 200, id);
	replicator_wait_unref(w);
	return status;
}

static enum status
replicate_and_wait(struct couch_req *r, struct repl_spec *spec)
{
	bool continuous = spec->continuous;
	char id[SPEC_FULL_ID_BYTES];
	struct replicator_wait *w;
	enum status status;

	TRY(replicator_add(r->couch->config.replicator, spec, id, &w, &r->fail.err));
	status = replicate_await(r, w);
	if (status == STATUS_OK)
		status = continuous && w->status == STATUS_OK
				 ? replicate_reply_job(r, 202, str_from_cstr(id))
				 : replicate_reply_result(r, w);
	replicator_wait_unref(w);
	return status;
}

enum status
couch_replicate(struct couch_req *r)
{
	struct repl_spec *spec;
	struct str body;
	enum status status;

	if (couch_starts_no_replication(&r->user))
		return couch_fail_set(&r->fail, COUCH_ERROR_FORBIDDEN, COUCH_NO_REPLICATION);
	/*
	 * A replication makes the server connect to other servers, so only administrators may start
	 * one.
	 */
	if (!r->user.admin && r->user.name.len == 0)
		return couch_fail_set(&r->fail, COUCH_ERROR_UNAUTHORIZED,
				      "You are not authorized to replicate.");
	TRY(replicate_require_replicator(r));
	TRY(couch_require_json(r));
	TRY(couch_read_body(r, REPLICATE_BODY_BYTES, &body));
	TRY(repl_spec_new(body, r->user.name, (struct str){ NULL, 0 },
			  replicator_defaults(r->couch->config.replicator), &spec, &r->fail.err));
	if (!spec->cancel)
		return replicate_and_wait(r, spec);
	status = replicate_cancel(r, spec);
	repl_spec_free(spec);
	return status;
}

/* ---- _active_tasks and _scheduler ---- */

/* Background work as CouchDB shows the tasks of its own. */
static void
active_tasks_write_chores(struct chores *chores, struct str node, struct buf *out)
{
	struct chore_state states[CHORES_MAX];
	size_t count = chores_list(chores, CHORES_SHOWN_MS, states, CHORES_MAX);

	for (size_t i = 0; i < count; i++) {
		const struct chore_state *s = &states[i];

		if (out->len > 1)
			buf_append_byte(out, ',');
		buf_printf(out, "{\"type\":\"background\",\"task\":\"%s\",\"node\":", s->name);
		json_write_str(out, node);
		buf_printf(out,
			   ","
			   "\"pid\":\"<0.%u.0>\","
			   "\"started_on\":%llu,\"updated_on\":%llu,\"changes_done\":%llu}",
			   s->number, (unsigned long long)(s->started_ms / 1000),
			   (unsigned long long)((s->updated_ms > s->started_ms ? s->updated_ms
									       : s->started_ms) /
						1000),
			   (unsigned long long)s->done);
	}
}

struct builds {
	struct arena *arena;
	struct arena_mark mark; /* what an attempt has taken goes back */
	struct index_progress *list;
	size_t count;
};

static enum status
active_tasks_read_builds(struct kv_tx *tx, void *arg)
{
	struct builds *b = arg;

	arena_reset(b->arena, b->mark);
	return index_progress_list(tx, ACTIVE_BUILDS, b->arena, &b->list, &b->count);
}

/* A row in the shape of CouchDB's indexer. */
struct indexer {
	struct str database;
	struct str design;
	struct str index; /* ptr NULL: of all views */
	struct str phase; /* ptr NULL: there is one */
	size_t pid;
	uint64_t done;
	uint64_t total;
	uint64_t started_ms;
	uint64_t updated_ms;
};

static void
active_tasks_write_indexer(struct couch_req *r, const struct indexer *task, struct buf *out)
{
	uint64_t percent = task->total ? task->done * 100 / task->total : 0;

	buf_append_cstr(out, out->len > 1 ? ",{" : "{");
	buf_append_cstr(out, "\"type\":\"indexer\",\"database\":");
	json_write_str(out, task->database);
	buf_append_cstr(out, ",\"design_document\":");
	json_write_str(out, task->design);
	if (task->index.ptr) {
		buf_append_cstr(out, ",\"index\":");
		json_write_str(out, task->index);
	}
	if (task->phase.ptr) {
		buf_append_cstr(out, ",\"phase\":");
		json_write_str(out, task->phase);
	}
	buf_append_cstr(out, ",\"node\":");
	json_write_str(out, str_from_cstr(r->settings->node_name));
	buf_printf(out,
		   ",\"pid\":\"<0.%zu.0>\",\"started_on\":%llu,\"updated_on\":%llu,"
		   "\"changes_done\":%llu,\"total_changes\":%llu,\"progress\":%llu}",
		   task->pid, (unsigned long long)(task->started_ms / 1000),
		   (unsigned long long)(task->updated_ms / 1000), (unsigned long long)task->done,
		   (unsigned long long)task->total,
		   (unsigned long long)(percent > 100 ? 100 : percent));
}

/* Indexes that are being built. */
static enum status
active_tasks_write_builds(struct couch_req *r, struct buf *out)
{
	struct builds b = { .arena = r->arena, .mark = arena_mark(r->arena) };

	TRY(kv_run_read(r->couch->config.store, active_tasks_read_builds, &b, &r->fail.err));
	for (size_t i = 0; i < b.count; i++) {
		const struct index_progress *p = &b.list[i];
		const struct indexer task = {
			.database = p->db_name,
			.design = p->owner,
			.index = p->name,
			.pid = ACTIVE_BUILDS_PID + i,
			.done = p->done,
			.total = p->total,
			.started_ms = p->started_ms,
			.updated_ms = p->updated_ms,
		};

		active_tasks_write_indexer(r, &task, out);
	}
	return STATUS_OK;
}

/* Views that this process is bringing up to date, in the same shape. */
static enum status
active_tasks_write_views(struct couch_req *r, struct buf *out)
{
	struct view_progress *list;
	size_t count;

	if (!r->couch->config.views)
		return STATUS_OK;
	list = arena_alloc(r->arena, ACTIVE_VIEWS * sizeof(*list));
	if (!list)
		return STATUS_LIMIT;
	count = view_progress_list(r->couch->config.views, ACTIVE_VIEWS, r->arena, list);
	for (size_t i = 0; i < count; i++) {
		const struct indexer task = {
			.database = list[i].db_name,
			.design = list[i].design,
			.phase = list[i].summing ? STR("reductions") : STR("rows"),
			.pid = ACTIVE_VIEWS_PID + i,
			.done = list[i].done,
			.total = list[i].total,
			.started_ms = list[i].started_ms,
			.updated_ms = list[i].updated_ms,
		};

		active_tasks_write_indexer(r, &task, out);
	}
	return STATUS_OK;
}

enum status
couch_active_tasks(struct couch_req *r)
{
	struct buf AUTO(buf_release) out = couch_buf(r, COUCH_ANSWER_BYTES);
	uint64_t total;

	TRY(couch_require_admin(r));
	buf_append_byte(&out, '[');
	if (r->couch->config.replicator)
		TRY(replicator_list(r->couch->config.replicator, REPLICATOR_VIEW_TASKS, 0,
				    UINT64_MAX, &out, &total));
	if (r->couch->config.chores)
		active_tasks_write_chores(r->couch->config.chores,
					  str_from_cstr(r->settings->node_name), &out);
	TRY(active_tasks_write_builds(r, &out));
	TRY(active_tasks_write_views(r, &out));
	buf_append_byte(&out, ']');
	return couch_reply(r, 200, &out);
}

static enum status
scheduler_read_count(struct couch_req *r, const char *name, uint64_t *ret)
{
	struct str value;

	return couch_param(r, name, &value) ? couch_count_parse(r, value, ret) : STATUS_OK;
}

/* The states that are wanted, in any case. An unknown one is refused. */
static enum status
scheduler_read_states(struct couch_req *r, struct str *ret)
{
	static const char *const known[] = { "initializing", "error",     "pending", "running",
					     "crashing",     "completed", "failed" };
	struct str rest;

	if (!couch_param(r, "states", &rest))
		return STATUS_OK;
	*ret = rest;
	while (rest.len) {
		struct str state = str_cut(&rest, ',');
		bool is_known = state.len == 0;

		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
			is_known = is_known || str_eq_nocase(state, str_from_cstr(known[i]));
		if (!is_known)
			return couch_fail_set(&r->fail, COUCH_ERROR_QUERY_PARSE,
					      "States must be one or more of [initializing,error,"
					      "pending,running,crashing,completed,failed]");
	}
	return STATUS_OK;
}

/* CouchDB reads the query as that of a view, and refuses flags that are none. */
static enum status
scheduler_check_flags(struct couch_req *r)
{
	static const char *const flags[] = { "descending", "include_docs", "inclusive_end",
					     "conflicts",  "update_seq",   "reduce",
					     "group",      "attachments",  "att_encoding_info",
					     "sorted" };
	struct str value;
	bool ignored;

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (couch_param(r, flags[i], &value))
			TRY(couch_flag_parse(r, value, &ignored));
	return STATUS_OK;
}

static enum status
scheduler_jobs(struct couch_req *r)
{
	struct buf AUTO(buf_release) out = couch_buf(r, COUCH_ANSWER_BYTES);
	struct buf AUTO(buf_release) jobs = couch_buf(r, COUCH_ANSWER_BYTES);
	uint64_t limit = REPLICATE_JOBS_LIMIT;
	uint64_t skip = 0;
	uint64_t total = 0;

	if (r->parts_count == 3) {
		enum status status = replicator_show(r->couch->config.replicator, r->parts[2],
						     &out);

		if (status == STATUS_NOT_FOUND)
			return couch_fail_set(&r->fail, COUCH_ERROR_NOT_FOUND, "missing");
		TRY(status);
		return couch_reply(r, 200, &out);
	}
	TRY(scheduler_read_count(r, "limit", &limit));
	TRY(scheduler_read_count(r, "skip", &skip));
	TRY(replicator_list(r->couch->config.replicator, REPLICATOR_VIEW_JOBS, skip, limit, &jobs,
			    &total));
	buf_printf(&out, "{\"total_rows\":%llu,\"offset\":%llu,\"jobs\":[",
		   (unsigned long long)total, (unsigned long long)(skip < total ? skip : total));
	buf_append_buf(&out, &jobs);
	buf_append_cstr(&out, "]}");
	return couch_reply(r, 200, &out);
}

static enum status
scheduler_docs(struct couch_req *r)
{
	struct buf AUTO(buf_release) out = couch_buf(r, COUCH_ANSWER_BYTES);
	struct buf AUTO(buf_release) docs = couch_buf(r, COUCH_ANSWER_BYTES);
	struct replicator_docs_query query = { .limit = REPLICATE_JOBS_LIMIT };
	uint64_t total = 0;

	if (r->parts_count > 2 && !str_eq(r->parts[2], STR("_replicator")))
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST, "Invalid path");
	if (r->parts_count == 4) {
		TRY(replicator_show_doc(r->couch->config.replicator, r->parts[3], &out,
					&r->fail.err));
		return couch_reply(r, 200, &out);
	}
	TRY(scheduler_read_count(r, "limit", &query.limit));
	TRY(scheduler_read_count(r, "skip", &query.skip));
	TRY(scheduler_check_flags(r));
	TRY(scheduler_read_states(r, &query.states));
	TRY(replicator_list_docs(r->couch->config.replicator, &query, &docs, &total, &r->fail.err));
	buf_printf(&out, "{\"total_rows\":%llu,\"offset\":%llu,\"docs\":[",
		   (unsigned long long)total,
		   (unsigned long long)(query.skip < total ? query.skip : total));
	buf_append_buf(&out, &docs);
	buf_append_cstr(&out, "]}");
	return couch_reply(r, 200, &out);
}

enum status
couch_scheduler(struct couch_req *r)
{
	TRY(couch_require_admin(r));
	TRY(replicate_require_replicator(r));
	if (r->parts_count >= 2 && str_eq(r->parts[1], STR("jobs")) && r->parts_count <= 3)
		return scheduler_jobs(r);
	if (r->parts_count >= 2 && str_eq(r->parts[1], STR("docs")) && r->parts_count <= 4)
		return scheduler_docs(r);
	return couch_reply_str(r, 404, STR("{\"error\":\"not found\"}\n"));
}
