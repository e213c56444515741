#include "replicator/run_int.h"

#include "base/clock.h"
#include "base/mem.h"
#include "server/loop.h"

/* ---- Progress ---- */

void
run_progress_init(struct run_progress *p, pthread_mutex_t *lock)
{
	*p = (struct run_progress){ .lock = lock };
}

void
run_progress_fini(struct run_progress *p)
{
	mem_free(p->source_seq);
	mem_free(p->through_seq);
	mem_free(p->committed_seq);
}

bool
run_keep(struct str *kept, struct str text)
{
	char *copy = mem_strdup(text);

	if (!copy)
		return false;
	mem_free((char *)(uintptr_t)kept->ptr);
	*kept = str_of(copy, text.len);
	return true;
}

void
run_show(struct run *r, char **shown, struct str text)
{
	struct run_progress *p = r->config->progress;
	char *copy = mem_strdup(text);

	/* Without memory for it, what is shown is old; nothing depends on it. */
	if (!copy)
		return;
	pthread_mutex_lock(p->lock);
	mem_free(*shown);
	*shown = copy;
	p->updated_ms = clock_wall_ms();
	pthread_mutex_unlock(p->lock);
}

void
run_count(struct run *r, struct checkpoint_counts more)
{
	struct run_progress *p = r->config->progress;

	pthread_mutex_lock(p->lock);
	p->counts.revisions_checked += more.revisions_checked;
	p->counts.missing_found += more.missing_found;
	p->counts.docs_read += more.docs_read;
	p->counts.docs_written += more.docs_written;
	p->counts.write_failures += more.write_failures;
	p->counts.bulk_get_docs += more.bulk_get_docs;
	p->counts.bulk_get_attempts += more.bulk_get_attempts;
	p->updated_ms = clock_wall_ms();
	pthread_mutex_unlock(p->lock);
}

/* ---- Fibers ---- */

struct spawned {
	struct spawned *next;
	struct spawner *spawner;
	struct task *task;
	void (*fn)(void *arg);
	void *arg;
};

struct spawner {
	struct loop *loop;
	uv_idle_t idle;
	struct spawned *waiting; /* newest first */
	bool closed;
};

static void
spawned_ended(void *arg)
{
	struct spawned *s = arg;

	loop_put_task(s->spawner->loop, s->task);
	mem_free(s);
}

static void
spawned_run(void *arg)
{
	struct spawned *s = arg;

	s->fn(s->arg);
}

/* Off any fiber. */
static void
start_waiting(uv_idle_t *idle)
{
	struct spawner *spawner = idle->data;
	struct spawned *s = spawner->waiting;

	spawner->waiting = NULL;
	uv_idle_stop(idle);
	while (s) {
		struct spawned *next = s->next;

		task_start(s->task, spawned_run, spawned_ended, s);
		s = next;
	}
}

enum status
spawner_new(struct loop *loop, struct spawner **ret, struct err *err)
{
	struct spawner *s = mem_zalloc(sizeof(*s));

	if (!s || uv_idle_init(&loop->uv, &s->idle) != 0) {
		mem_free(s);
		return err_set(err, STATUS_NOMEM, "out of memory for replications");
	}
	s->loop = loop;
	s->idle.data = s;
	*ret = s;
	return STATUS_OK;
}

static void
idle_closed(uv_handle_t *handle)
{
	struct spawner *s = handle->data;

	s->closed = true;
}

void
spawner_free(struct spawner *s)
{
	if (!s)
		return;
	uv_close((uv_handle_t *)&s->idle, idle_closed);
	while (!s->closed)
		uv_run(&s->loop->uv, UV_RUN_ONCE);
	mem_free(s);
}

enum status
spawn(struct spawner *spawner, void (*fn)(void *arg), void *arg)
{
	struct spawned *s = mem_zalloc(sizeof(*s));

	if (!s)
		return STATUS_NOMEM;
	s->task = loop_take_task(spawner->loop);
	if (!s->task) {
		mem_free(s);
		return STATUS_NOMEM;
	}
	s->spawner = spawner;
	s->fn = fn;
	s->arg = arg;
	s->next = spawner->waiting;
	spawner->waiting = s;
	uv_idle_start(&spawner->idle, start_waiting);
	return STATUS_OK;
}

/* ---- Batches ---- */

static struct batch *
batch_new(void)
{
	struct arena *arena = arena_new(RUN_BATCH_BYTES);
	struct batch *b = arena ? arena_zalloc(arena, sizeof(*b)) : NULL;

	if (!b) {
		arena_free(arena);
		return NULL;
	}
	b->arena = arena;
	return b;
}

static void
batch_free(struct batch *b)
{
	if (b)
		arena_free(b->arena);
}

/* The failure that counts is the first; the others only follow from it. */
static void
run_fail(struct run *r, enum status status, const struct err *err)
{
	if (r->failed == STATUS_OK && !r->scope->cancelled) {
		r->failed = status;
		r->err = *err;
	}
	net_scope_cancel(r->scope);
}

static bool
run_is_over(const struct run *r)
{
	return r->scope->cancelled || (r->read_all && !r->first);
}

/* Forgets the batches at the front that are copied: the run has got through them. */
static void
batches_settle(struct run *r)
{
	struct run_progress *p = r->config->progress;

	while (r->first && r->first->done) {
		struct batch *b = r->first;

		if (run_keep(&r->through, b->seq)) {
			r->changed = true;
			run_show(r, &p->through_seq, b->seq);
			pthread_mutex_lock(p->lock);
			p->pending_known = b->has_pending;
			p->pending = b->pending;
			pthread_mutex_unlock(p->lock);
		}
		r->first = b->next;
		if (!r->first)
			r->last = NULL;
		r->batches--;
		batch_free(b);
	}
}

static struct batch *
batch_take(struct run *r)
{
	for (struct batch *b = r->first; b; b = b->next) {
		if (!b->taken) {
			b->taken = true;
			return b;
		}
	}
	return NULL;
}

static void
work(void *arg)
{
	struct run *r = arg;

	while (!run_is_over(r)) {
		struct batch *b = batch_take(r);
		struct err err = { 0 };
		enum status status;

		if (!b) {
			net_bell_wait(&r->scope->bell, WAIT_FOREVER);
			continue;
		}
		status = batch_copy(r, b, &err);
		if (status != STATUS_OK) {
			run_fail(r, status, &err);
			break;
		}
		b->done = true;
		batches_settle(r);
		net_bell_ring(&r->scope->bell);
	}
	r->fibers--;
	net_bell_ring(&r->scope->bell);
}

static void
keep_checkpoints(void *arg)
{
	struct run *r = arg;

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

struct page {
	struct run *run;
	struct batch *batch;
};

static enum status
read_change(void *arg, struct str row, struct err *err)
{
	struct page *page = arg;
	struct batch *b = page->batch;
	struct json_value value;
	struct json_member *members;
	const struct json_value *id;
	const struct json_value *changes;
	struct json_value *items;
	struct change *change;
	size_t count;

	/* The row's text goes with the next piece of the answer. */
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

/* What stands behind the rows. */
static enum status
read_page_end(struct batch *b, struct str rest, struct err *err)
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
	if (!found || found->text.len > RUN_SEQ_BYTES)
		return err_set(err, STATUS_INVALID, "the source's changes end without a last_seq");
	b->seq = found->text;
	found = json_value_find(members, count, "pending");
	b->has_pending = found && found->kind == JSON_NUMBER &&
			 str_to_u64(found->text, &b->pending);
	return STATUS_OK;
}

enum status
run_read_rows(struct rows *rows, struct net_call *call, run_take_row *take, void *arg,
	      struct str *ret_rest, struct err *err)
{
	struct str piece;
	struct str row;
	enum status status;

	while ((status = net_read(call, &piece, err)) == STATUS_OK) {
		while ((status = rows_next(rows, &piece, &row)) == STATUS_OK)
			TRY(take(arg, row, err));
		if (status != STATUS_NOT_FOUND)
			return status;
	}
	return status == STATUS_NOT_FOUND ? rows_end(rows, ret_rest) : status;
}

static enum status
read_rows(struct run *r, struct net_call *call, struct batch *b, struct err *err)
{
	struct page page = { r, b };
	struct rows rows;
	struct str rest;
	enum status status;

	rows_init(&rows, RUN_ROW_BYTES);
	status = run_read_rows(&rows, call, read_change, &page, &rest, err);
	if (status == STATUS_OK)
		status = read_page_end(b, rest, err);
	else if (status == STATUS_JSON_SYNTAX)
		status = err_set(err, STATUS_IO, "the source's changes are cut off");
	rows_release(&rows);
	return status;
}

/* A sequence as a parameter: the text of a string, anything else as JSON. */
static enum status
write_since(struct str seq, struct buf *path, struct err *err)
{
	struct arena *arena = arena_new(RUN_SEQ_BYTES * 4);
	struct json_value value;
	enum status status = arena ? json_value_read(seq, arena, &value, err) : STATUS_NOMEM;

	if (status == STATUS_OK)
		net_escape(path, value.kind == JSON_STRING ? value.string : value.text);
	arena_free(arena);
	return status;
}

static enum status
open_page(struct run *r, struct str since, bool wait, struct net_call **ret, struct err *err)
{
	const struct repl_spec *spec = r->spec;
	struct buf AUTO(buf_release) path = BUF_INIT(SPEC_ARENA_BYTES);
	struct peer_request request = { 0 };
	uint64_t stall_ms = spec->options.timeout_ms;
	enum status status;
	int code;

	/* CouchDB's beat: three in the time that a silent source is given. */
	buf_printf(&path, "_changes?feed=%s&style=%s&limit=%u&heartbeat=%llu&since=",
		   wait ? "longpoll" : "normal", spec->winners_only ? "main_only" : "all_docs",
		   spec->options.batch, (unsigned long long)(stall_ms / 3 ? stall_ms / 3 : 1));
	TRY(write_since(since, &path, err));
	buf_append_str(&path, r->filter_query);
	TRY(buf_status(&path));
	request.method = r->filter_body.ptr ? "POST" : "GET";
	request.path = buf_str(&path);
	request.body = r->filter_body;
	if (r->filter_query.len && !wait && stall_ms < RUN_FILTER_STALL_MS)
		request.stall_ms = RUN_FILTER_STALL_MS;
	TRY(peer_open(&r->source, &request, ret, err));
	status = net_answer(*ret, &code, err);
	if (status == STATUS_OK && code != 200)
		status = peer_refused(&r->source, &request, code, err);
	if (status != STATUS_OK) {
		net_close(*ret);
		*ret = NULL;
	}
	return status;
}

static enum status
read_page_once(struct run *r, struct str since, bool wait, struct batch **ret, struct err *err)
{
	struct batch *b = batch_new();
	struct net_call *call = NULL;
	enum status status = b ? open_page(r, since, wait, &call, err) : STATUS_NOMEM;

	if (status == STATUS_OK)
		status = read_rows(r, call, b, err);
	net_close(call);
	if (status != STATUS_OK) {
		batch_free(b);
		return status;
	}
	*ret = b;
	return STATUS_OK;
}

static enum status
read_page(struct run *r, struct str since, bool wait, struct batch **ret, struct err *err)
{
	struct peer_tries tries = peer_tries(&r->source);

	for (;;) {
		enum status status = read_page_once(r, since, wait, ret, err);

		if (status == STATUS_OK)
			return STATUS_OK;
		TRY(peer_try_again(&r->source, &tries, status, err));
	}
}

static void
batch_push(struct run *r, struct batch *b)
{
	if (r->last)
		r->last->next = b;
	else
		r->first = b;
	r->last = b;
	r->batches++;
	/* A page on which a filter left nothing still moves the run on. */
	b->taken = b->done = b->count == 0;
	run_show(r, &r->config->progress->source_seq, b->seq);
	batches_settle(r);
	net_bell_ring(&r->scope->bell);
}

/* Pages, until there are no more. */
static enum status
read_changes(struct run *r, struct err *err)
{
	struct buf AUTO(buf_release) since = BUF_INIT(RUN_SEQ_BYTES);
	bool caught_up = false;

	buf_append_str(&since, r->through);
	while (!r->scope->cancelled) {
		struct batch *b;
		bool stands;
		bool empty;

		TRY(buf_status(&since));
		TRY(read_page(r, buf_str(&since), caught_up, &b, err));
		empty = b->count == 0;
		stands = str_eq(b->seq, buf_str(&since));
		caught_up = (empty && (stands || !b->has_pending)) ||
			    (b->has_pending && b->pending == 0);
		if (empty && stands) {
			batch_free(b);
		} else {
			buf_clear(&since);
			buf_append_str(&since, b->seq);
			batch_push(r, b);
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
start_fibers(struct run *r)
{
	const struct repl_defaults *o = &r->spec->options;
	/* The reader and the checkpoints have a connection each, a worker one at either end. */
	unsigned most = o->connections > 4 ? (o->connections - 2) / 2 : 1;
	unsigned workers = o->workers < most ? o->workers : most;

	r->batches_max = workers * RUN_BATCHES_A_WORKER;
	for (unsigned i = 0; i < workers; i++) {
		TRY(spawn(r->config->spawner, work, r));
		r->fibers++;
	}
	TRY(spawn(r->config->spawner, keep_checkpoints, r));
	r->fibers++;
	return STATUS_OK;
}

static void
join_fibers(struct run *r)
{
	while (r->fibers)
		net_bell_wait(&r->scope->bell, WAIT_FOREVER);
	while (r->first) {
		struct batch *b = r->first;

		r->first = b->next;
		batch_free(b);
	}
}

/* What was copied is worth a checkpoint also where the run ends early, if the ends still answer. */
static void
checkpoint_hastily(struct run *r)
{
	struct net_scope scope = { 0 };
	struct err err = { 0 };

	r->scope = r->source.scope = r->target.scope = &scope;
	r->source.hasty = r->target.hasty = true;
	(void)!run_checkpoint(r, &err);
}

static enum status
run_whole(struct run *r, struct err *err)
{
	enum status status = run_open_ends(r, err);

	TRY(status);
	status = start_fibers(r);
	if (status == STATUS_OK)
		status = read_changes(r, err);
	if (status == STATUS_OK) {
		r->read_all = true;
		net_bell_ring(&r->scope->bell);
	} else {
		run_fail(r, status, err);
	}
	join_fibers(r);
	if (r->failed == STATUS_OK && !r->scope->cancelled)
		return run_checkpoint(r, err);
	if (r->failed != STATUS_OK)
		*err = r->err;
	checkpoint_hastily(r);
	return r->failed != STATUS_OK ? r->failed
				      : err_set(err, STATUS_CANCELLED, "it was stopped");
}

/* The members of the answer: the newest checkpoint's; or that nothing has changed since. */
static void
write_answer(const struct run *r, struct buf *out)
{
	if (!r->spec->options.use_checkpoints) {
		buf_append_cstr(out, "\"use_checkpoints\":false");
	} else if (r->changed) {
		checkpoint_write(&r->session, r->through, &r->config->progress->counts, &r->found,
				 out);
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
free_text(struct str s)
{
	mem_free((char *)(uintptr_t)s.ptr);
}

enum status
run_replication(const struct run_config *config, struct buf *ret_answer, struct err *err)
{
	struct run r = { .config = config, .spec = config->spec, .scope = config->scope };
	enum status status;

	r.arena = arena_new(PEER_ANSWER_BYTES);
	status = r.arena ? peer_init(&r.source, config->env, &r.spec->source, r.spec, r.scope, err)
			 : err_set(err, STATUS_NOMEM, "out of memory for a replication");
	if (status == STATUS_OK)
		status = peer_init(&r.target, config->env, &r.spec->target, r.spec, r.scope, err);
	if (status == STATUS_OK)
		status = run_whole(&r, err);
	if (status == STATUS_OK) {
		write_answer(&r, ret_answer);
		status = buf_status(ret_answer);
	}
	peer_fini(&r.source);
	peer_fini(&r.target);
	free_text(r.through);
	free_text(r.committed);
	free_text(r.source_log_rev);
	free_text(r.target_log_rev);
	free_text(r.source_start);
	free_text(r.target_start);
	arena_free(r.arena);
	return status;
}
