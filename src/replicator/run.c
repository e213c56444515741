/* One run: the reader, the workers, and how they end together. */
#include "replicator/run_int.h"

#include <assert.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metric.h"
#include "http/escape.h"
#include "loop/step.h"
#include "loop/task.h"

METRIC_COUNTER(runs_too_large, "frond_replication_memory_limits_total", METRIC_NUMBER,
	       "Runs of replications that ended because they needed more than job_memory.");

/* ---- Batches ---- */

static struct copy_batch *
copy_batch_new(struct repl_run *r)
{
	struct arena *arena = run_arena_new(r, RUN_BATCH_BYTES);
	struct copy_batch *b = arena ? arena_zalloc(arena, sizeof(*b)) : NULL;

	if (!b) {
		arena_free(arena);
		return NULL;
	}
	b->arena = arena;
	return b;
}

static void
copy_batch_free(struct copy_batch *b)
{
	if (b)
		arena_free(b->arena);
}

/* Keeps the first failure, since the others only follow from it, and stops the run. */
static void
run_fail(struct repl_run *r, enum status status, const struct err *err)
{
	if (r->failed == STATUS_OK && !r->scope->cancelled) {
		r->failed = status;
		r->err = *err;
	}
	net_scope_cancel(r->scope);
}

static bool
run_is_over(const struct repl_run *r)
{
	return r->scope->cancelled || (r->read_all && !r->first);
}

/* Removes the copied batches at the front of the list: the run has got through them. */
static void
copy_batches_settle(struct repl_run *r)
{
	struct run_progress *p = r->config->progress;

	while (r->first && r->first->done) {
		struct copy_batch *b = r->first;

		/* A filter leaves pages without changes, and such a run has changed nothing. */
		r->changed = r->changed || b->count > 0;
		if (run_keep_text(&r->through, b->seq)) {
			run_publish(r, &p->through_seq, b->seq);
			pthread_mutex_lock(p->lock);
			p->pending_known = b->has_pending;
			p->pending = b->pending;
			pthread_mutex_unlock(p->lock);
		}
		r->first = b->next;
		if (!r->first)
			r->last = NULL;
		assert(r->batches > 0);
		r->batches--;
		copy_batch_free(b);
	}
}

static struct copy_batch *
copy_batch_claim(struct repl_run *r)
{
	for (struct copy_batch *b = r->first; b; b = b->next) {
		if (!b->taken) {
			b->taken = true;
			return b;
		}
	}
	return NULL;
}

/* Asked while a batch is computed with, such as a document that is parsed (loop/step.h). */
static enum status
run_ask(void *arg)
{
	const struct repl_run *r = arg;

	return r->scope->cancelled ? STATUS_CANCELLED : STATUS_OK;
}

static void
run_copy_batches(void *arg)
{
	struct repl_run *r = arg;

	(void)step_set_owner((struct step_owner){ .ask = run_ask, .arg = r });
	while (!run_is_over(r)) {
		struct copy_batch *b = copy_batch_claim(r);
		struct err err = { 0 };
		enum status status;

		if (!b) {
			/* The reader pushes a batch, or the run ends: both ring the bell. */
			net_bell_wait(&r->scope->bell, WAIT_FOREVER);
			continue;
		}
		status = copy_batch_copy(r, b, &err);
		if (status != STATUS_OK) {
			run_fail(r, status, &err);
			break;
		}
		b->done = true;
		copy_batches_settle(r);
		net_bell_ring(&r->scope->bell);
	}
	r->fibers--;
	net_bell_ring(&r->scope->bell);
}

static void
run_keep_checkpoints(void *arg)
{
	struct repl_run *r = arg;

	while (!run_is_over(r)) {
		uint64_t until = clock_after_ms(r->spec->options.checkpoint_ms);
		struct err err = { 0 };
		enum status status;

		while (!run_is_over(r) && clock_mono_ns() < until)
			net_bell_wait(&r->scope->bell, until);
		if (run_is_over(r))
			break;
		status = run_checkpoint(r, &err);
		if (status != STATUS_OK)
			run_fail(r, status, &err);
	}
	r->fibers--;
	net_bell_ring(&r->scope->bell);
}

/* ---- The reader ---- */

struct change_page {
	struct repl_run *run;
	struct copy_batch *batch;
};

static enum status
page_read_change(void *arg, struct str row, struct err *err)
{
	struct change_page *page = arg;
	struct copy_batch *b = page->batch;
	struct json_value value;
	struct json_member *members;
	const struct json_value *id;
	const struct json_value *changes;
	struct json_value *items;
	struct change *change;
	size_t count;

	/* The row's text is gone when this function has returned. */
	row = arena_dup(b->arena, row);
	if (!row.ptr)
		return err_set(err, STATUS_LIMIT, "a page of changes exceeds %d bytes",
			       RUN_BATCH_BYTES);
	TRY(json_value_read(row, b->arena, &value, err));
	TRY(json_value_members(&value, b->arena, &members, &count, err));
	id = json_value_find(members, count, "id");
	changes = json_value_find(members, count, "changes");
	if (!id || id->kind != JSON_STRING || !changes)
		return err_set(err, STATUS_INVALID, "the source sent a change without an id");
	TRY(json_value_items(changes, b->arena, &items, &count, err));
	b->changes = arena_grow(b->arena, b->changes, b->count, &b->cap, sizeof(*b->changes));
	if (!b->changes)
		return err_set(err, STATUS_LIMIT, "a page of changes is too large");
	change = &b->changes[b->count];
	*change = (struct change){ .id = id->string };
	change->revs = arena_alloc(b->arena, (count + 1) * sizeof(*change->revs));
	if (!change->revs)
		return err_set(err, STATUS_LIMIT, "a page of changes is too large");
	for (size_t i = 0; i < count; i++) {
		struct json_member *rev;
		const struct json_value *text;
		size_t n;

		TRY(json_value_members(&items[i], b->arena, &rev, &n, err));
		text = json_value_find(rev, n, "rev");
		if (text && text->kind == JSON_STRING)
			change->revs[change->revs_count++] = text->string;
		if (page->run->spec->winners_only)
			break;
	}
	if (change->id.len && change->revs_count) {
		b->revs += change->revs_count;
		b->count++;
	}
	return STATUS_OK;
}

/* Reads the members behind the rows: where the page ends, and how much is left. */
static enum status
page_read_end(struct copy_batch *b, struct str rest, struct err *err)
{
	struct json_value value;
	struct json_member *members;
	const struct json_value *found;
	size_t count;

	rest = arena_dup(b->arena, rest);
	if (!rest.ptr)
		return STATUS_LIMIT;
	TRY(json_value_read(rest, b->arena, &value, err));
	TRY(json_value_members(&value, b->arena, &members, &count, err));
	found = json_value_find(members, count, "last_seq");
	if (!found)
		return err_set(err, STATUS_INVALID, "the source's changes end without a last_seq");
	if (found->text.len > RUN_SEQ_BYTES)
		return err_set(err, STATUS_INVALID, "the source's last_seq exceeds %d bytes",
			       RUN_SEQ_BYTES);
	b->seq = found->text;
	found = json_value_find(members, count, "pending");
	b->has_pending = found && found->kind == JSON_NUMBER &&
			 str_to_u64(found->text, &b->pending);
	return STATUS_OK;
}

static enum status
page_read_rows(struct repl_run *r, struct net_call *call, struct copy_batch *b, struct err *err)
{
	struct change_page page = { r, b };
	struct rows rows;
	struct str rest;
	enum status status;

	rows_init(&rows, RUN_ROW_BYTES, &r->part);
	status = peer_read_rows(&rows, call, page_read_change, &page, &rest, err);
	if (status == STATUS_OK)
		status = page_read_end(b, rest, err);
	else if (status == STATUS_JSON_SYNTAX)
		status = err_set(err, STATUS_IO, "the source's changes are cut off");
	rows_release(&rows);
	return status;
}

/* Appends a sequence as a parameter: the content of a string, any other value as JSON. */
static enum status
page_write_since(struct str seq, struct buf *path, struct err *err)
{
	struct arena *arena = arena_new(RUN_SEQ_BYTES * 4);
	struct json_value value;
	enum status status = arena ? json_value_read(seq, arena, &value, err) : STATUS_NOMEM;

	if (status == STATUS_OK)
		http_escape(path, value.kind == JSON_STRING ? value.string : value.text);
	arena_free(arena);
	return status;
}

static enum status
page_open(struct repl_run *r, struct str since, bool wait, struct net_call **ret, struct err *err)
{
	const struct repl_spec *spec = r->spec;
	struct buf AUTO(buf_release) path = BUF_INIT(SPEC_ARENA_BYTES);
	struct peer_request request = { 0 };
	uint64_t stall_ms = spec->options.timeout_ms;
	enum status status;
	int code;

	/* A heartbeat comes three times in the longest silence that the run bears. */
	buf_printf(&path, "_changes?feed=%s&style=%s&limit=%u&heartbeat=%llu&since=",
		   wait ? "longpoll" : "normal", spec->winners_only ? "main_only" : "all_docs",
		   spec->options.batch, (unsigned long long)(stall_ms / 3 ? stall_ms / 3 : 1));
	TRY(page_write_since(since, &path, err));
	buf_append_str(&path, r->filter_query);
	TRY(buf_status(&path));
	request.heartbeats = true;
	request.method = r->filter_body.ptr ? "POST" : "GET";
	request.path = buf_str(&path);
	request.body = r->filter_body;
	if (r->filter_query.len && !wait && stall_ms < RUN_FILTER_STALL_MS)
		request.stall_ms = RUN_FILTER_STALL_MS;
	TRY(peer_open(&r->source, &request, ret, err));
	status = net_answer(*ret, &code, err);
	r->since_refused = status == STATUS_OK && code == 400;
	if (status == STATUS_OK && code != 200)
		status = peer_refused(&r->source, &request, code, err);
	if (status != STATUS_OK) {
		net_close(*ret);
		*ret = NULL;
	}
	return status;
}

static enum status
page_read_once(struct repl_run *r, struct str since, bool wait, struct copy_batch **ret,
	       struct err *err)
{
	struct copy_batch *b = copy_batch_new(r);
	struct net_call *call = NULL;
	enum status status = b ? page_open(r, since, wait, &call, err) : STATUS_NOMEM;

	if (status == STATUS_OK)
		status = page_read_rows(r, call, b, err);
	net_close(call);
	if (status != STATUS_OK) {
		copy_batch_free(b);
		return status;
	}
	*ret = b;
	return STATUS_OK;
}

static enum status
page_read(struct repl_run *r, struct str since, bool wait, struct copy_batch **ret, struct err *err)
{
	struct peer_tries tries = peer_tries(&r->source);

	for (;;) {
		enum status status = page_read_once(r, since, wait, ret, err);

		if (status == STATUS_OK)
			return STATUS_OK;
		TRY(peer_try_again(&r->source, &tries, status, err));
	}
}

static void
copy_batch_push(struct repl_run *r, struct copy_batch *b)
{
	assert(b->seq.ptr && !b->next && (r->first != NULL) == (r->last != NULL));
	if (r->last)
		r->last->next = b;
	else
		r->first = b;
	r->last = b;
	r->batches++;
	/* An empty page, on which a filter left nothing, needs no worker and still counts. */
	b->taken = b->done = b->count == 0;
	run_publish(r, &r->config->progress->source_seq, b->seq);
	copy_batches_settle(r);
	net_bell_ring(&r->scope->bell);
}

/*
 * Reads the first page. A source that was restored from a backup, or loaded into another store, may
 * refuse the checkpoint's Sequence, because it has not given out any that high. Then the run begins
 * at the beginning: what the target has already is compared, and not copied again.
 */
static enum status
page_read_first(struct repl_run *r, struct buf *since, struct copy_batch **ret, struct err *err)
{
	enum status status = page_read(r, buf_str(since), false, ret, err);

	if (status != STATUS_INVALID || !r->since_refused || r->spec->since.ptr ||
	    str_eq(buf_str(since), STR("0")))
		return status;
	log_event(LOG_LEVEL_WARN, "replication_from_beginning", "source=\"%.*s\" since=%.*s",
		  STR_ARG(r->source.end->name), STR_ARG(buf_str(since)));
	buf_clear(since);
	buf_append_str(since, STR("0"));
	TRY(buf_status(since));
	return page_read(r, buf_str(since), false, ret, err);
}

/* Reads pages until there are no more or, if the run is continuous, until it is stopped. */
static enum status
run_read_changes(struct repl_run *r, struct err *err)
{
	struct buf AUTO(buf_release) since = BUF_INIT(RUN_SEQ_BYTES);
	bool caught_up = false;
	bool first = true;

	buf_append_str(&since, r->through);
	while (!r->scope->cancelled) {
		struct copy_batch *b;
		bool stands;
		bool empty;

		TRY(buf_status(&since));
		if (first)
			TRY(page_read_first(r, &since, &b, err));
		else
			TRY(page_read(r, buf_str(&since), caught_up, &b, err));
		first = false;
		empty = b->count == 0;
		stands = str_eq(b->seq, buf_str(&since));
		caught_up = (empty && (stands || !b->has_pending)) ||
			    (b->has_pending && b->pending == 0);
		if (empty && stands) {
			copy_batch_free(b);
		} else {
			buf_clear(&since);
			buf_append_str(&since, b->seq);
			copy_batch_push(r, b);
		}
		if (caught_up && !r->spec->continuous)
			break;
		while (r->batches >= r->batches_max && !r->scope->cancelled)
			net_bell_wait(&r->scope->bell, WAIT_FOREVER);
	}
	return r->scope->cancelled ? STATUS_CANCELLED : STATUS_OK;
}

/* ---- The run ---- */

static enum status
run_start_fibers(struct repl_run *r)
{
	const struct repl_defaults *o = &r->spec->options;
	/* The reader and the checkpoints need a connection each, a worker one at either end. */
	unsigned most = o->connections > 4 ? (o->connections - 2) / 2 : 1;
	unsigned workers = o->workers < most ? o->workers : most;

	r->batches_max = workers * RUN_BATCHES_A_WORKER;
	for (unsigned i = 0; i < workers; i++) {
		TRY(task_spawn(r->config->loop, run_copy_batches, r));
		r->fibers++;
	}
	TRY(task_spawn(r->config->loop, run_keep_checkpoints, r));
	r->fibers++;
	return STATUS_OK;
}

static void
run_join_fibers(struct repl_run *r)
{
	/* The run lives on this fiber's stack: the others must have ended before it goes on. */
	while (r->fibers)
		net_bell_wait(&r->scope->bell, WAIT_FOREVER);
	while (r->first) {
		struct copy_batch *b = r->first;

		r->first = b->next;
		copy_batch_free(b);
	}
}

/*
 * A run that ends early leaves a checkpoint as well, if the ends still answer soon. The run's own
 * scope is cancelled by then, so these requests belong to another one.
 */
static void
run_checkpoint_hastily(struct repl_run *r)
{
	struct net_scope *settling = r->config->settling;
	struct err err = { 0 };

	assert(r->scope->cancelled && r->fibers == 0);
	r->scope = r->source.scope = r->target.scope = settling;
	r->source.hasty = r->target.hasty = true;
	(void)!run_checkpoint(r, &err);
}

static enum status
run_to_end(struct repl_run *r, struct err *err)
{
	enum status status = run_open_ends(r, err);

	TRY(status);
	status = run_start_fibers(r);
	if (status == STATUS_OK)
		status = run_read_changes(r, err);
	if (status == STATUS_OK) {
		r->read_all = true;
		net_bell_ring(&r->scope->bell);
	} else {
		run_fail(r, status, err);
	}
	run_join_fibers(r);
	/* As in CouchDB, a run that has found nothing new ends without another checkpoint. */
	if (r->failed == STATUS_OK && !r->scope->cancelled)
		return r->changed || r->recorded_ms ? run_checkpoint(r, err) : STATUS_OK;
	if (r->failed != STATUS_OK)
		*err = r->err;
	run_checkpoint_hastily(r);
	return r->failed != STATUS_OK ? r->failed
				      : err_set(err, STATUS_CANCELLED, "it was stopped");
}

/* Appends the newest checkpoint's members, or the old one's if nothing has changed since. */
static void
run_write_answer(const struct repl_run *r, struct buf *out)
{
	if (!r->spec->options.use_checkpoints) {
		buf_append_cstr(out, "\"use_checkpoints\":false");
	} else if (r->changed || r->recorded_ms) {
		/* The answer has the time of the checkpoint, which a later run answers with. */
		checkpoint_write(&r->session, r->through,
				 r->recorded_ms ? r->recorded_ms : clock_wall_ms(),
				 &r->config->progress->counts, &r->found, out);
	} else {
		struct str old = str_trim(r->old_log);

		buf_append_cstr(out, "\"no_changes\":true");
		if (old.len > 2) {
			buf_append_byte(out, ',');
			buf_append(out, old.ptr + 1, old.len - 2);
		}
	}
}

static void
run_free_text(struct str s)
{
	mem_free((char *)(uintptr_t)s.ptr);
}

enum status
run_replication(const struct run_config *config, struct buf *ret_answer, struct err *err)
{
	struct repl_run r = { .config = config, .spec = config->spec, .scope = config->scope };
	enum status status;

	budget_init(&r.budget, config->env->job_bytes);
	budget_part_init(&r.part, &r.budget);
	r.arena = run_arena_new(&r, PEER_ANSWER_BYTES);
	status = r.arena ? peer_init(&r.source, config->env, &r.spec->source, r.spec, r.scope,
				     &r.part, err)
			 : err_set(err, STATUS_NOMEM, "out of memory for a replication");
	if (status == STATUS_OK)
		status = peer_init(&r.target, config->env, &r.spec->target, r.spec, r.scope,
				   &r.part, err);
	if (status == STATUS_OK)
		status = config->looks_only ? run_find_filter(&r, err) : run_to_end(&r, err);
	if (status == STATUS_OK && !config->looks_only) {
		run_write_answer(&r, ret_answer);
		status = buf_status(ret_answer);
	}
	peer_fini(&r.source);
	peer_fini(&r.target);
	run_free_text(r.through);
	run_free_text(r.committed);
	run_free_text(r.source_log_rev);
	run_free_text(r.target_log_rev);
	run_free_text(r.source_start);
	run_free_text(r.target_start);
	arena_free(r.arena);
	if (status == STATUS_LIMIT && (r.part.exceeded || r.part.refused)) {
		metric_add(&runs_too_large, 1);
		err_set(err, status,
			"the replication needs more memory than its limit, job_memory, of %zu "
			"bytes",
			config->env->job_bytes);
	} else if (status == STATUS_LIMIT && !err->text[0]) {
		err_set(err, status, "an answer is larger than a replication may hold");
	}
	budget_part_release(&r.part);
	budget_fini(&r.budget);
	return status;
}
