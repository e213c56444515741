#include "door/redis/txn/run.h"

#include <assert.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/metric.h"
#include "base/rand.h"
#include "base/steady.h"
#include "door/redis/txn/effects.h"
#include "door/redis/txn/monitor.h"
#include "door/redis/txn/redis_int.h"
#include "door/redis/txn/slow.h"
#include "door/redis/txn/stage.h"
#include "door/redis/txn/stats.h"
#include "door/redis/wire/error.h"
#include "loop/step.h"

METRIC_COUNTER(commands, "frond_redis_commands_total", METRIC_NUMBER,
	       "Commands on data that Redis's door has run.");
METRIC_COUNTER(transactions, "frond_redis_transactions_total", METRIC_NUMBER,
	       "Transactions that Redis's door has run them in.");

/* ---- Lanes ---- */

void
run_queue_init(struct run_queue *q)
{
	*q = (struct run_queue){ 0 };
	pthread_mutex_init(&q->lock, NULL);
	q->end = &q->first;
}

void
run_queue_fini(struct run_queue *q)
{
	assert(!q->first && !q->busy && !q->fences);
	pthread_mutex_destroy(&q->lock);
}

uint64_t
run_lane(unsigned db, struct str key)
{
	return UINT64_C(1) << (((hash_quick(key) >> 32) + db) % RUN_LANES);
}

uint64_t
run_lanes(const struct command *command, const struct str *argv, size_t argc, unsigned db,
	  struct arena *arena)
{
	uint64_t lanes = 0;
	size_t *places;
	size_t count;

	if (command->flags & COMMAND_ALL_KEYS)
		return UINT64_MAX;
	if (command_keys(command, argv, argc, arena, &places, &count) != STATUS_OK)
		return 0; /* it will be refused */
	for (size_t i = 0; i < count; i++)
		lanes |= run_lane(db, argv[places[i]]);
	return lanes;
}

/* ---- Those who hold lanes without being a group ---- */

struct run_fence {
	struct run_fence *next;
	uint64_t lanes; /* that it waits for */
	struct event complete;
};

/* With the lock held: the lanes are free again, but for those that a fence takes at once. */
static void
queue_give_back(struct run_queue *q, uint64_t lanes)
{
	for (struct run_fence **at = &q->fences; *at;) {
		struct run_fence *fence = *at;
		uint64_t taken = fence->lanes & lanes;

		fence->lanes &= ~taken;
		lanes &= ~taken;
		if (fence->lanes) {
			at = &fence->next;
			continue;
		}
		*at = fence->next;
		event_set(&fence->complete);
	}
	q->busy &= ~lanes;
}

void
run_hold(struct redis *r, uint64_t lanes)
{
	struct run_queue *q = &r->queue;
	struct run_fence fence;

	event_init(&fence.complete);
	pthread_mutex_lock(&q->lock);
	fence.lanes = q->busy & lanes;
	q->busy |= lanes;
	if (fence.lanes) {
		fence.next = q->fences;
		q->fences = &fence;
	}
	pthread_mutex_unlock(&q->lock);
	if (!fence.lanes)
		return;
	(void)event_wait(&fence.complete, WAIT_FOREVER);
	/* queue_give_back() holds the lock until it has left `fence` alone. */
	pthread_mutex_lock(&q->lock);
	pthread_mutex_unlock(&q->lock);
}

/* ---- The queue: its lock is held ---- */

static void
queue_remove(struct run_queue *q, struct job **at)
{
	struct job *job = *at;

	*at = job->next;
	if (q->end == &job->next)
		q->end = at;
	job->next = NULL;
	assert(q->waiting);
	q->waiting--;
}

/*
 * Adds jobs that wait to the group that begins with `job`, and takes the lanes of all of them.
 * `job` is in no queue. A job can be added if nobody else has its lanes, or waits for them longer,
 * and if it wants a lane of the group's: it would have to wait for the group. Small jobs are added
 * to a group of small ones whatever their lanes are: together they cost one transaction.
 */
static void
queue_gather(struct run_queue *q, struct job *job)
{
	struct job **end = &job->group;
	struct job **at = &q->first;
	uint64_t lanes = job->lanes;
	bool small = job->small;
	size_t count = 1;
	uint64_t taken;

	for (; *end; end = &(*end)->group) {
		lanes |= (*end)->lanes;
		small &= (*end)->small;
		count++;
	}
	taken = q->busy & ~lanes;
	while (*at && count < REDIS_GROUP_JOBS) {
		struct job *other = *at;
		bool fits = other->lanes & lanes || (small && other->small);

		if (other->lanes & taken || !fits) {
			taken |= other->lanes;
			at = &other->next;
			continue;
		}
		lanes |= other->lanes;
		small &= other->small;
		queue_remove(q, at);
		other->group = NULL;
		*end = other;
		end = &other->group;
		count++;
	}
	q->busy |= lanes;
}

/* Starts every job whose lanes are free and that nobody waits for longer. */
static void
queue_start(struct run_queue *q)
{
	uint64_t taken = q->busy;
	struct job **at = &q->first;

	while (*at) {
		struct job *job = *at;

		if (job->lanes & taken) {
			taken |= job->lanes;
			at = &job->next;
			continue;
		}
		queue_remove(q, at);
		job->group = NULL;
		queue_gather(q, job);
		job->leads = true;
		event_set(&job->woken);
		/* The lanes are other ones now, and the jobs before this one may have gone. */
		taken = q->busy;
		at = &q->first;
	}
}

void
run_release(struct redis *r, uint64_t lanes)
{
	struct run_queue *q = &r->queue;

	if (!lanes)
		return;
	pthread_mutex_lock(&q->lock);
	queue_give_back(q, lanes);
	queue_start(q);
	pthread_mutex_unlock(&q->lock);
}

/* ---- A group, on the fiber of its first job ---- */

struct group {
	struct redis *redis;
	struct job *first;
	struct arena *arena;
	struct arena_mark mark;
	struct catalog_cache *cache;
	struct txn x;
	struct err err;
	bool reads;
	uint64_t lanes;
	size_t limit;        /* units of the next transaction */
	bool serves;         /* it also runs commands of clients that wait for what it brings */
	struct job *claimed; /* jobs of those, by `next_claimed` */

	/* Of the attempt under way. */
	size_t ran;
	struct job *failed; /* its unit `failed->end` has failed */
	bool serve_failed;  /* the unit of a claimed job has failed */
	bool stopped;
	/* The link behind the last effect whose waiting clients were served. */
	struct effect **looked;
};

static bool
unit_is_data(const struct unit *u)
{
	return u->is_exec || !(u->command->flags & COMMAND_ALONE);
}

/* Whatever a script draws, and its time, are the same when it is run again. */
static void
group_fix_chance(struct unit *u)
{
	if (!(u->command->flags & COMMAND_SCRIPT) || u->script_now_ms)
		return;
	rand_bytes(&u->script_seed, sizeof(u->script_seed));
	u->script_now_ms = steady_date_ms();
}

/* MONITOR shows a command when it was run, but a script before what it calls. */
static enum status
group_show(struct group *g, const struct job *job, const struct unit *u, unsigned db)
{
	if (!monitor_is_on(g->redis) || u->waited)
		return STATUS_OK;
	return txn_shown(&g->x, job->client, db, u->command, u->argv, u->argc);
}

/* Runs one command. Its answer is dropped when it fails. */
static enum status
group_run_command(struct group *g, struct job *job, struct unit *u, unsigned *db, bool in_exec,
		  bool *ret_blocks)
{
	struct reply reply = { .out = job->out, .version = job->client->version };
	struct call call = {
		.redis = g->redis,
		.client = job->client,
		.command = u->command,
		.argv = u->argv,
		.argc = u->argc,
		.reply = &reply,
		.x = &g->x,
		.db = *db,
		.in_exec = in_exec,
		.waited = u->waited,
		.lanes = g->lanes,
		.arena = g->arena,
	};
	size_t from = job->out->len;
	enum status status;

	group_fix_chance(u);
	/* What a script writes lies somewhere else each time that it runs. */
	g->x.stages.allowed = !(u->command->flags & COMMAND_SCRIPT);
	call.script_seed = u->script_seed;
	call.script_now_ms = u->script_now_ms;
	call.script_end = u->script_end;
	if (u->command->flags & COMMAND_SCRIPT)
		TRY(group_show(g, job, u, *db));
	status = command_run(&call);
	u->script_end = call.script_end;
	job->strays |= call.strays;
	TRY(status);
	if (job->client->tracker)
		tracking_note(&call);
	u->answer = from;
	u->failed = job->out->len > from && job->out->ptr[from] == '-';
	u->told = call.told;
	*db = call.db;
	if (!(u->command->flags & COMMAND_SCRIPT))
		TRY(group_show(g, job, u, *db));
	*ret_blocks = call.blocks;
	if (buf_status(job->out) == STATUS_LIMIT && budget_has_failed(job->out->part))
		return err_set(&g->err, STATUS_NOMEM,
			       "there is no memory for the answer (memory_bytes)");
	if (buf_status(job->out) == STATUS_LIMIT)
		return err_set(&g->err, STATUS_LIMIT,
			       "the answers to what is run together may have %d bytes "
			       "(REDIS_REPLY_BYTES)",
			       REDIS_REPLY_BYTES);
	return buf_status(job->out);
}

/* EXEC: what was queued, with one answer for each. */
static enum status
group_run_exec(struct group *g, struct job *job, struct unit *u)
{
	struct reply reply = { .out = job->out, .version = job->client->version };
	unsigned db = u->db;
	bool blocks;
	bool holds;

	u->failed = false;
	u->ran_queued = false;
	TRY(effects_watches_hold(g->redis, job->client, &g->x, &holds));
	if (!holds) {
		reply_null_array(&reply);
		return group_show(g, job, u, db);
	}
	reply_array(&reply, u->queued_count);
	for (size_t i = 0; i < u->queued_count; i++) {
		uint64_t began_ns = clock_mono_ns();

		step_unit();
		TRY(group_run_command(g, job, &u->queued[i], &db, true, &blocks));
		u->queued[i].ns = clock_mono_ns() - began_ns;
	}
	u->ret_db = db;
	u->ran_queued = true;
	return group_show(g, job, u, db);
}

static enum status
unit_run(struct group *g, struct job *job, struct unit *u, bool *ret_blocks)
{
	size_t from = job->out->len;

	step_unit();
	*ret_blocks = false;
	u->ret_db = u->db;
	g->x.caching = u->caching;
	if (u->is_exec) {
		TRY(group_run_exec(g, job, u));
	} else {
		unsigned db = u->db;

		TRY(group_run_command(g, job, u, &db, job->cannot_block, ret_blocks));
	}
	if (u->muted)
		job->out->len = from;
	return STATUS_OK;
}

/*
 * The group's fiber runs commands of several clients. While it runs this one, databases that are
 * created count for the client who has sent it. That client waits, so nobody else uses its claim.
 */
static enum status
group_run_unit(struct group *g, struct job *job, struct unit *u, bool *ret_blocks)
{
	struct limits_claim *before = ops_work_under(&job->client->entry.op.claim);
	enum status status = unit_run(g, job, u, ret_blocks);

	(void)ops_work_under(before);
	return status;
}

/* Counts a command, whose answer is in the buffer of the job unless it is muted. */
static void
unit_count(struct redis *r, const struct job *job, const struct unit *u, uint64_t ns, bool muted)
{
	stats_count_call(r->stats, u->command, u->argv, u->argc, ns, u->failed);
	if (u->failed && !u->told && !muted)
		stats_count_error(r->stats, str_skip(buf_str(job->out), u->answer));
}

static void
unit_settle(struct redis *r, const struct job *job, const struct unit *u, uint64_t now_ns)
{
	slow_note(r, job->client, u, now_ns);
	unit_count(r, job, u, now_ns - u->began_ns, u->muted);
	for (size_t i = 0; u->ran_queued && i < u->queued_count; i++)
		unit_count(r, job, &u->queued[i], u->queued[i].ns, u->muted);
}

/* True if another unit should wait for the next transaction. */
static bool
group_is_full(const struct group *g)
{
	return g->ran >= g->limit || kv_tx_stats(g->x.tx).size_bytes > REDIS_GROUP_BYTES ||
	       g->x.messages.count > MESSAGES_COUNT / 2;
}

/* True if the bytes are in an argument of the call, which stays where it is until the answer. */
static bool
unit_has_argument(const struct unit *u, struct str bytes)
{
	for (size_t i = 0; i < u->argc; i++)
		if (bytes.ptr >= u->argv[i].ptr &&
		    bytes.ptr + bytes.len <= u->argv[i].ptr + u->argv[i].len)
			return true;
	for (size_t i = 0; i < u->queued_count; i++)
		if (unit_has_argument(&u->queued[i], bytes))
			return true;
	return false;
}

/*
 * The unit of the job that has failed may want a value staged. What the attempt has made itself, as
 * BITOP does, is gone when it is to be staged: such a value is refused.
 */
static void
group_note_wanted(struct group *g, struct job *job)
{
	const struct timed_stages *stages = &g->x.stages;

	if (!stages->is_wanted || !unit_has_argument(&job->units[job->end], stages->wanted.bytes))
		return;
	job->wants_stage = true;
	job->wanted = stages->wanted;
	for (unsigned i = 0; i < TXN_DATABASES; i++)
		if (g->x.dbs[i] && &g->x.dbs[i]->timed == stages->wanted.t)
			job->wanted_db = i;
}

/* ---- Those who wait for what the group brings ---- */

/*
 * Takes the lanes of a job that is claimed, as far as they are free. Without the others it may
 * conflict with who has them, and the group is run again.
 */
static void
group_add_lanes(struct group *g, uint64_t lanes)
{
	struct run_queue *q = &g->redis->queue;

	pthread_mutex_lock(&q->lock);
	lanes &= ~q->busy;
	q->busy |= lanes;
	g->lanes |= lanes;
	pthread_mutex_unlock(&q->lock);
}

/*
 * Runs the unit of a job that the group has claimed, in the attempt under way. If that succeeds,
 * the job waits still (`waits`), or has its answer (`end` is 1).
 */
static enum status
group_serve(struct group *g, struct job *job)
{
	enum status status;

	if (!job->claimed) {
		job->claimed = true;
		job->next_claimed = g->claimed;
		g->claimed = job;
		group_add_lanes(g, job->lanes);
	}
	job->units->began_ns = clock_mono_ns();
	budget_forgive(job->out->part);
	job->client->saw_other = false;
	g->x.stages = (struct timed_stages){ 0 };
	status = group_run_unit(g, job, job->units, &job->waits);
	g->serve_failed = status != STATUS_OK;
	if (status == STATUS_OK && !job->waits)
		job->end = 1;
	return status;
}

static enum status
group_serve_key(struct group *g, struct effect *e)
{
	struct effects_empty empty = { .count = 0 };
	struct blocked *at = NULL;

	while (g->ran < g->limit && !group_is_full(g)) {
		struct job *job;

		if (txn_lacks(&g->x, e->db, e->key)) {
			e->served = true;
			e->served_ticket = UINT64_MAX;
			return STATUS_OK;
		}
		job = effects_claim(g->redis, e, g, &empty, &at);
		if (!job)
			return STATUS_OK;
		TRY(group_serve(g, job));
		if (job->waits && job->client->group && empty.count < EFFECTS_EMPTY)
			empty.groups[empty.count++] = job->client->group;
		g->ran++;
	}
	return STATUS_OK;
}

/*
 * Runs the commands of clients that wait for what the last unit has brought, in the order in which
 * they came; then of those that wait for what these have brought. Whoever sees what the unit has
 * done sees what these have done.
 */
static enum status
group_serve_waiting(struct group *g)
{
	if (!g->serves || !atomic_load_explicit(&g->redis->ticket_count, memory_order_acquire)) {
		g->looked = g->x.effects_end;
		return STATUS_OK;
	}
	for (; *g->looked; g->looked = &(*g->looked)->next)
		if (effects_brings(*g->looked))
			TRY(group_serve_key(g, *g->looked));
	return STATUS_OK;
}

/* True if the unit must see what is stored, and the transaction has written something already. */
static bool
group_is_stale_for(const struct group *g, const struct unit *u)
{
	struct kv_tx_stats stats = kv_tx_stats(g->x.tx);

	return u->command->flags & COMMAND_FRESH && (stats.sets || stats.clears);
}

static enum status
group_run_job(struct group *g, struct job *job)
{
	while (job->end < job->count && !g->stopped) {
		bool blocks;
		enum status status;

		/* One that reads them more slowly than they come holds no more than this. */
		if (job->end > job->begun && job->out->len > job->most_bytes) {
			job->fills = true;
			return STATUS_OK;
		}
		if (g->ran && (group_is_full(g) || group_is_stale_for(g, &job->units[job->end]))) {
			g->stopped = true;
			return STATUS_OK;
		}
		g->x.stages = (struct timed_stages){ .first = stage_first(job) };
		status = group_run_unit(g, job, &job->units[job->end], &blocks);
		if (status != STATUS_OK) {
			g->failed = job;
			group_note_wanted(g, job);
			return status;
		}
		g->ran++;
		if (blocks) {
			job->waits = true;
			return STATUS_OK;
		}
		job->end++;
		TRY(group_serve_waiting(g));
	}
	return STATUS_OK;
}

/* Nothing of the attempt under way has happened. */
static void
group_begin(struct group *g)
{
	g->ran = 0;
	g->failed = NULL;
	g->serve_failed = g->stopped = false;
	g->looked = &g->x.effects;
	effects_claim_anew(g->redis, g->claimed);
	for (struct job *j = g->claimed; j; j = j->next_claimed) {
		if (j->done == j->count)
			continue;
		j->end = 0;
		buf_clear(j->out);
	}
	for (struct job *j = g->first; j; j = j->group) {
		j->end = j->done;
		j->waits = j->fills = false;
		if (!j->blocked)
			j->strays = j->wants_stage = false;
		j->out->len = j->out_len;
		j->out->failed = STATUS_OK;
	}
}

/* Names the limit that has ended a command, unless whatever met it has done so. */
static enum status
group_explain(struct group *g, enum status status)
{
	if (g->err.status == status)
		return status;
	if (status == STATUS_STEPS)
		return err_set(&g->err, status,
			       "the command needs more computing than one may take: the limit, "
			       "request_steps, is %llu steps",
			       (unsigned long long)step_limit());
	if (status == STATUS_LIMIT)
		return err_set(&g->err, status,
			       "the command needs more memory than there is for it "
			       "(request_bytes, memory_bytes)");
	return status;
}

/* Asks for the headers of what the unit is about, `*left` at most. False: no more can be. */
static bool
group_ask_unit(struct group *g, const struct job *job, const struct unit *u, size_t *left)
{
	struct call call = {
		.redis = g->redis,
		.client = job->client,
		.command = u->command,
		.argv = u->argv,
		.argc = u->argc,
		.x = &g->x,
		.db = u->db,
		.arena = g->arena,
	};
	size_t *places;
	size_t count;

	if (u->is_exec || !(u->command->flags & (COMMAND_FAST | COMMAND_SMALL)) ||
	    command_keys(u->command, u->argv, u->argc, g->arena, &places, &count) != STATUS_OK)
		return true;
	for (size_t i = 0; i < count; i++) {
		struct str key = u->argv[places[i]];

		if (!*left)
			return false;
		if (key.len > TIMED_ITEM_KEY_BYTES)
			continue;
		if (txn_ask(&call, u->db, key) != STATUS_OK)
			return false;
		--*left;
	}
	return true;
}

/*
 * Where the store is others', too, a read is a round trip. So what the commands of the group will
 * want first is asked for together, and each of them waits for what has mostly come. Whatever fails
 * here is asked for again by the command, which is then told why.
 */
static void
group_ask_ahead(struct group *g)
{
	size_t left = RUN_ASK_AHEAD;
	bool more = kv_is_shared(g->redis->config.store);

	for (const struct job *j = g->first; j && more; j = j->group)
		for (size_t i = j->done; more && i < j->count && !j->blocked && !j->full; i++)
			more = group_ask_unit(g, j, &j->units[i], &left);
	g->err = (struct err){ 0 };
}

static enum status
group_body(struct kv_tx *tx, void *arg)
{
	struct group *g = arg;
	enum status status = STATUS_OK;

	txn_fini(&g->x);
	arena_reset(g->arena, g->mark);
	txn_init(&g->x, g->redis, tx, g->cache, g->arena, &g->err);
	/* A transaction that writes is others', too, and ends without waiting for any of them. */
	if (g->reads)
		kv_tx_set_memory(tx, g->first->client->part, 0);
	group_begin(g);
	if (!g->reads)
		TRY(txn_ask_tracked(&g->x));
	group_ask_ahead(g);
	for (struct job *j = g->first; j && !g->stopped && status == STATUS_OK; j = j->group)
		if (!j->blocked && !j->full)
			status = group_run_job(g, j);
	if (status == STATUS_OK)
		status = txn_tell_tracked(&g->x);
	return group_explain(g, status);
}

/* The unit that comes next in the job has failed for good. */
static void
group_refuse(struct job *job, enum status status, const struct err *err)
{
	struct reply reply = { .out = job->out, .version = job->client->version };
	struct unit *u = &job->units[job->done];

	job->out->len = job->out_len;
	job->out->failed = STATUS_OK;
	u->answer = job->out->len;
	u->failed = true;
	u->told = u->ran_queued = false;
	if (!u->muted)
		error_reply_status(&reply, status, err);
	unit_settle(job->client->redis, job, u, clock_mono_ns());
	u->ret_db = u->db;
	job->done++;
	job->out_len = job->out->len;
}

static void
job_settle(struct group *g, struct job *j, uint64_t now_ns)
{
	for (size_t i = j->done; i < j->end; i++)
		unit_settle(g->redis, j, &j->units[i], now_ns);
	metric_add(&commands, j->end - j->done);
	j->done = j->end;
}

/* The transaction took place: what was run in it is answered. */
static void
group_settle(struct group *g)
{
	uint64_t now_ns = clock_mono_ns();

	for (struct job *j = g->claimed; j; j = j->next_claimed)
		job_settle(g, j, now_ns);
	for (struct job *j = g->first; j; j = j->group) {
		job_settle(g, j, now_ns);
		j->blocked |= j->waits;
		j->full |= j->fills;
		j->out_len = j->out->len;
	}
	effects_happen(g->redis, &g->x);
}

/*
 * The job, which only reads, leaves its group without having failed: its client has gone, or there
 * was no memory for an answer, which serve.c waits for when the others are sent.
 */
static bool
group_leave(struct group *g, enum status status)
{
	struct job *job = g->failed;
	const struct budget_part *part = job ? job->client->part : NULL;

	if (!g->reads || !job || g->ran)
		return false;
	job->gone = status == STATUS_CANCELLED;
	job->lacks_memory = part->refused && (status == STATUS_LIMIT || status == STATUS_NOMEM);
	if (!job->gone && !job->lacks_memory)
		return false;
	job->out->len = job->out_len;
	job->out->failed = STATUS_OK;
	job->full = true;
	return true;
}

/* It did not. The unit at fault, or all that were run, are told why; others are run again. */
static void
group_settle_failure(struct group *g, enum status status)
{
	if (group_leave(g, status))
		return;
	/* Whoever waits runs its command itself, and is told why that fails. */
	if (g->serve_failed) {
		g->serves = false;
		return;
	}
	if (g->failed && g->ran == 0 && (g->failed->strays || g->failed->wants_stage)) {
		/* It leaves the group, and run_job() runs it again. */
		g->failed->out->len = g->failed->out_len;
		g->failed->out->failed = STATUS_OK;
		g->failed->blocked = true;
		g->limit = REDIS_GROUP_UNITS;
		return;
	}
	if (g->failed && g->ran == 0) {
		group_refuse(g->failed, status, &g->err);
		g->limit = REDIS_GROUP_UNITS;
		return;
	}
	if (g->failed || (status == STATUS_TX_TOO_LARGE && g->ran > 1)) {
		/* What came before it goes first; it then is the first of the next one. */
		g->limit = g->failed ? g->ran : 1;
		return;
	}
	/* Nobody knows whether it has taken place: what clients keep may be wrong. */
	if (g->ran && !g->reads)
		tracking_doubt(g->redis);
	for (struct job *j = g->first; j; j = j->group) {
		/* Without any that ran, the transaction could not even begin. */
		size_t end = g->ran ? j->end + j->waits : j->count;

		while (!j->blocked && !j->full && j->done < end)
			group_refuse(j, status, &g->err);
	}
}

static bool
group_is_done(const struct group *g)
{
	for (const struct job *j = g->first; j; j = j->group)
		if (j->done < j->count && !j->blocked && !j->full)
			return false;
	return true;
}

/*
 * For step_set_ask(). The leader's client may go while its fiber runs the commands of others, which
 * go on. But a stop of the process ends in time: once it has given up on the leader, the group ends
 * unless another of its clients is still there.
 */
static enum status
group_goes_on(void *arg)
{
	const struct group *g = arg;

	if (!client_is_given_up(g->first->client))
		return STATUS_OK;
	for (const struct job *j = g->first->group; j; j = j->group)
		if (!event_is_set(net_stream_closed_event(j->client->stream)))
			return STATUS_OK;
	return STATUS_CANCELLED;
}

static void
group_run(struct group *g)
{
	struct step_meter *steps = step_current();
	enum status (*ask)(void *) = steps ? steps->ask : NULL;
	void *ask_arg = steps ? steps->ask_arg : NULL;

	/* A client that has gone ends what only reads. */
	if (!g->reads)
		step_set_ask(group_goes_on, g);
	g->cache = catalog_caches_take(&g->redis->caches);
	g->mark = arena_mark(g->arena);
	g->limit = REDIS_GROUP_UNITS;
	g->serves = !g->reads;
	while (!group_is_done(g)) {
		enum status status;

		g->err = (struct err){ 0 };
		group_begin(g);
		metric_add(&transactions, 1);
		status = g->reads ? kv_run_read(g->redis->config.store, group_body, g, &g->err)
				  : kv_run(g->redis->config.store, group_body, g, NULL, &g->err);
		if (status == STATUS_OK) {
			g->limit = REDIS_GROUP_UNITS;
			group_settle(g);
		} else {
			group_settle_failure(g, status);
		}
	}
	txn_fini(&g->x);
	arena_reset(g->arena, g->mark);
	effects_release(g->redis, g->claimed);
	catalog_caches_give(&g->redis->caches, g->cache);
	step_set_ask(ask, ask_arg);
}

/* ---- A job ---- */

/* What the leader of a group that has not begun yet sees of the queue. */
struct gathering {
	size_t there;         /* jobs that the group would have, or nearly so */
	size_t expected;      /* jobs that it may come to have; 0: nobody knows */
	uint64_t patience_ns; /* how long it may wait for those */
};

/* With the lock held. */
static void
queue_look_locked(const struct run_queue *q, const struct job *job, struct gathering *ret)
{
	*ret = (struct gathering){ .there = q->waiting };
	for (const struct job *j = job; j; j = j->group)
		ret->there++;
	if (q->crowd_lanes & job->lanes)
		ret->expected = q->crowd < REDIS_GROUP_JOBS ? q->crowd : REDIS_GROUP_JOBS;
	ret->patience_ns = q->crowd_ns / RUN_GATHER_SHARE;
	if (ret->patience_ns > RUN_GATHER_NS)
		ret->patience_ns = RUN_GATHER_NS;
}

static void
queue_look(struct run_queue *q, const struct job *job, struct gathering *ret)
{
	pthread_mutex_lock(&q->lock);
	queue_look_locked(q, job, ret);
	pthread_mutex_unlock(&q->lock);
}

/* Sleeps until as many jobs are there as are expected, or the patience has come to its end. */
static void
queue_sleep(struct run_queue *q, const struct job *job)
{
	uint64_t begin_ns = clock_mono_ns();
	struct event crowded;
	struct gathering g;
	bool sleeps;

	event_init(&crowded);
	pthread_mutex_lock(&q->lock);
	queue_look_locked(q, job, &g);
	sleeps = !q->crowded && g.there < g.expected;
	if (sleeps) {
		q->crowded = &crowded;
		q->crowd_missing = g.expected - g.there;
	}
	pthread_mutex_unlock(&q->lock);
	if (!sleeps)
		return;
	(void)event_wait(&crowded, begin_ns + g.patience_ns);
	pthread_mutex_lock(&q->lock);
	if (q->crowded == &crowded)
		q->crowded = NULL;
	pthread_mutex_unlock(&q->lock);
}

/* With the lock held: one more job has come. */
static void
queue_note_arrival(struct run_queue *q)
{
	if (!q->crowded || --q->crowd_missing)
		return;
	event_set(q->crowded);
	q->crowded = NULL;
}

/*
 * Waits for the clients that have just been answered, and are about to send their next commands. A
 * group that began without them would make them wait for its fsync, and then for their own: 50
 * clients at one key would be two groups for ever, which take turns.
 */
static void
job_await_crowd(struct run_queue *q, const struct job *job)
{
	uint64_t begin_ns = clock_mono_ns();
	unsigned turns = 0;
	struct gathering g;

	queue_look(q, job, &g);
	if (g.there < g.expected && g.patience_ns >= RUN_GATHER_SLEEP_NS) {
		queue_sleep(q, job);
		return;
	}
	while (g.there < g.expected && turns < RUN_GATHER_TURNS &&
	       clock_mono_ns() - begin_ns < g.patience_ns) {
		size_t before = g.there;

		wait_yield();
		queue_look(q, job, &g);
		turns = g.there > before ? 0 : turns + 1;
	}
}

/*
 * A job that leads a group does not run at once. It lets the fibers of its loop go on that are
 * ready, too, so that what has come with it is in the group, and not in the next one, which would
 * have to wait for this one's fsync.
 */
static void
job_gather(struct run_queue *q, struct job *job)
{
	if (!wait_is_alone()) {
		wait_yield();
		job_await_crowd(q, job);
	}
	pthread_mutex_lock(&q->lock);
	if (q->gathering == job)
		q->gathering = NULL;
	queue_gather(q, job);
	pthread_mutex_unlock(&q->lock);
}

/* With the lock held, after the group has ended: notes what the next one may expect. */
static void
queue_note_crowd(struct run_queue *q, const struct group *g, uint64_t took_ns)
{
	q->crowd = q->waiting;
	for (const struct job *j = g->first; j; j = j->group)
		q->crowd++;
	q->crowd_lanes = g->lanes;
	q->crowd_ns = took_ns;
}

static void
job_lead(struct redis *r, struct job *job, struct arena *arena)
{
	struct run_queue *q = &r->queue;
	struct group g = { .redis = r, .first = job, .arena = arena };
	uint64_t begin_ns;

	job_gather(q, job);
	for (struct job *j = job; j; j = j->group)
		g.lanes |= j->lanes;
	begin_ns = clock_mono_ns();
	group_run(&g);
	pthread_mutex_lock(&q->lock);
	queue_note_crowd(q, &g, clock_mono_ns() - begin_ns);
	queue_give_back(q, g.lanes);
	queue_start(q);
	pthread_mutex_unlock(&q->lock);
	for (struct job *j = job->group; j;) {
		struct job *next = j->group;

		event_set(&j->woken); /* from here on it is its own fiber's again */
		j = next;
	}
}

/* With the lock held: the job joins the group that gathers, if it may. */
static bool
queue_join(struct run_queue *q, struct job *job)
{
	if (!q->gathering || !job->small || q->gathered == REDIS_GROUP_JOBS)
		return false;
	job->group = NULL;
	*q->gathering_end = job;
	q->gathering_end = &job->group;
	q->gathered++;
	return true;
}

/*
 * With the lock held: decides whether the job takes the lane that single small commands have in
 * common. Without it, commands of different keys that come while a group waits for its fsync form
 * another group, which waits for that fsync and then for its own; the two take turns for ever. With
 * it they wait for the group's end, and form one group with the next commands of its clients. With
 * many clients or with pipelines two groups are better: one runs while the other one is written.
 */
static void
job_share_lane(const struct run_queue *q, struct job *job)
{
	const uint64_t shared = UINT64_C(1) << RUN_LANES;

	if (job->lanes == UINT64_MAX)
		return;
	job->lanes &= ~shared; /* of a turn before */
	if (job->small && job->count - job->done == 1 && q->crowd <= RUN_SHARED_JOBS)
		job->lanes |= shared;
}

/*
 * Takes the job's lanes, and has it lead a group or join one that gathers; or has it wait for
 * somebody who runs it, or for its turn to lead. True if it leads. Otherwise the job is others'
 * until it is woken, and its fiber reads nothing of it.
 */
static bool
job_enqueue(struct run_queue *q, struct job *job)
{
	uint64_t taken;
	bool leads;

	pthread_mutex_lock(&q->lock);
	job_share_lane(q, job);
	taken = q->busy;
	for (const struct job *j = q->first; j; j = j->next)
		taken |= j->lanes;
	if (job->lanes & taken) {
		*q->end = job;
		q->end = &job->next;
		q->waiting++;
	} else {
		q->busy |= job->lanes;
		if (!queue_join(q, job)) {
			job->leads = true;
			job->group = NULL;
		}
		if (job->leads && job->small && !q->gathering) {
			q->gathering = job;
			q->gathering_end = &job->group;
			q->gathered = 1;
		}
	}
	queue_note_arrival(q);
	leads = job->leads;
	pthread_mutex_unlock(&q->lock);
	return leads;
}

static bool
job_is_small(const struct job *job)
{
	for (size_t i = job->done; i < job->count; i++)
		if (job->units[i].is_exec ||
		    !(job->units[i].command->flags & (COMMAND_FAST | COMMAND_SMALL)))
			return false;
	return true;
}

static void
job_run_in_turn(struct redis *r, struct job *job, struct arena *arena)
{
	job->next = job->group = NULL;
	job->leads = false;
	job->small = job_is_small(job);
	event_init(&job->woken);
	if (!job_enqueue(&r->queue, job))
		(void)event_wait(&job->woken, WAIT_FOREVER);
	if (job->leads)
		job_lead(r, job, arena);
}

/*
 * The job has left its group because of what its next unit wants: a value that is staged, or, since
 * the keys of a script do not tell what it writes, that nobody else writes meanwhile. Then it is to
 * be run again. False: that unit was refused, and was the last one.
 */
static bool
job_mend(struct redis *r, struct job *job, struct arena *arena)
{
	struct err err = { 0 };
	enum status status = STATUS_OK;

	job->blocked = false;
	if (job->strays) {
		assert(job->lanes != UINT64_MAX);
		job->lanes = UINT64_MAX;
	} else {
		status = stage_value(r, job, arena, &err);
	}
	job->strays = job->wants_stage = false;
	if (status != STATUS_OK)
		group_refuse(job, status, &err);
	return job->done < job->count;
}

void
run_refuse(struct job *job, enum status status, const struct err *err)
{
	job->out_len = job->out->len;
	group_refuse(job, status, err);
}

static void
job_begin_answers(struct job *job)
{
	struct budget_part *part = job->client->part;

	job->full = job->lacks_memory = job->gone = false;
	job->begun = job->done;
	job->most_bytes = part->budget ? budget_output_portion(part->budget, RUN_ANSWERS_BYTES,
							       RUN_ANSWERS_LEAST_BYTES)
				       : RUN_ANSWERS_BYTES;
	budget_forgive(part);
}

void
run_job(struct redis *r, struct job *job, struct arena *arena)
{
	job->next = job->group = NULL;
	job->leads = false;
	job->blocked = false;
	job->strays = job->wants_stage = false;
	job->out_len = job->out->len;
	job_begin_answers(job);
	for (size_t i = job->done; i < job->count; i++)
		assert(unit_is_data(&job->units[i]));
	if (job->reads) {
		struct group g = {
			.redis = r, .first = job, .arena = arena, .reads = true, .lanes = UINT64_MAX
		};

		group_run(&g);
		return;
	}
	for (;;) {
		job_run_in_turn(r, job, arena);
		if (!job->strays && !job->wants_stage)
			break;
		if (!job_mend(r, job, arena))
			break;
	}
	stage_drop_all(r, job, arena);
}
