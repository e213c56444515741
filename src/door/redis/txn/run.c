#include "door/redis/txn/run.h"

#include <assert.h>

#include "base/clear.h"
#include "base/clock.h"
#include "base/err_clear.h"
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
#include "kv/fate.h"
#include "loop/step.h"
#include "serve/wanted.h"

METRIC_COUNTER(commands, "frond_redis_commands_total", METRIC_NUMBER,
	       "Commands on data that Redis's door has run.");
METRIC_COUNTER(transactions, "frond_redis_transactions_total", METRIC_NUMBER,
	       "Transactions that Redis's door has run them in.");

/* ---- Lanes ---- */

/* What names a key among those of jobs (lanes_of_key()). */
static uint16_t
run_key(unsigned db, struct str key)
{
	return (uint16_t)((hash_quick(key) >> 48) + db);
}

uint64_t
run_lane(unsigned db, struct str key)
{
	return lanes_of_key(run_key(db, key));
}

/* The lanes of a call; how many keys it names, and the last of these. */
static uint64_t
call_lanes(const struct command *command, const struct str *argv, size_t argc, unsigned db,
	   struct arena *arena, size_t *ret_count, uint16_t *ret_key)
{
	uint64_t lanes = 0;
	size_t *places;
	size_t count;

	*ret_count = 0;
	*ret_key = 0;
	if (command->flags & COMMAND_ALL_KEYS)
		return UINT64_MAX;
	if (command_has_one_key(command, argc)) {
		*ret_key = run_key(db, argv[command->first_key]);
		*ret_count = 1;
		return lanes_of_key(*ret_key);
	}
	if (command_keys(command, argv, argc, arena, &places, &count) != STATUS_OK)
		return 0; /* it will be refused */
	for (size_t i = 0; i < count; i++) {
		*ret_key = run_key(db, argv[places[i]]);
		lanes |= lanes_of_key(*ret_key);
	}
	*ret_count = count;
	return lanes;
}

uint64_t
run_lanes(const struct command *command, const struct str *argv, size_t argc, unsigned db,
	  struct arena *arena)
{
	uint16_t key;
	size_t count;

	return call_lanes(command, argv, argc, db, arena, &count, &key);
}

uint64_t
run_unit_lanes(struct unit *u, struct arena *arena)
{
	size_t count;
	uint64_t lanes = call_lanes(u->command, u->argv, u->argc, u->db, arena, &count, &u->key);

	u->has_key = count == 1;
	return lanes;
}

void
run_hold(struct redis *r, uint64_t lanes)
{
	lanes_hold(&r->queue, lanes);
}

void
run_release(struct redis *r, uint64_t lanes)
{
	lanes_release(&r->queue, lanes);
}

void
run_lanes_fini(struct redis *r)
{
	kv_lanes_forget(r->config.store, &r->queue);
	lanes_fini(&r->queue);
	lanes_fini(&r->readers);
}

/* ---- A group, on the fiber of its first job ---- */

static struct job *
job_of(struct lanes_job *lane)
{
	return (struct job *)lane;
}

/* The next job of the group; NULL: it is the last one. */
static struct job *
group_next(const struct job *job)
{
	return job_of(job->lane.group);
}

struct group {
	struct redis *redis;
	struct job *first;
	struct arena *arena;
	struct arena_mark mark;
	struct catalog_cache *cache;
	bool reads;
	struct kv_lanes lanes;
	size_t limit;        /* units of the next transaction */
	bool serves;         /* it also runs commands of clients that wait for what it brings */
	bool has_txn;        /* `x` is one: an attempt has begun */
	struct job *claimed; /* jobs of those, by `next_claimed` */

	/* Of the attempt under way. */
	size_t ran;
	size_t asked;       /* how many of the next commands have had their items asked for */
	struct job *failed; /* its unit `failed->end` has failed */
	bool serve_failed;  /* the unit of a claimed job has failed */
	bool stopped;
	/* The link behind the last effect whose waiting clients were served. */
	struct effect **looked;

	/* Two kilobytes, which group_init() leaves to the attempts. `x`: if has_txn. */
	struct err err;
	struct txn x;
};

static void
group_init(struct group *g, struct redis *r, struct job *first, struct arena *arena)
{
	CLEAR_BEFORE(g, err);
	g->redis = r;
	g->first = first;
	g->arena = arena;
}

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
		.lanes = g->lanes.which,
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
group_run_unit(struct group *g, struct job *job, struct unit *u, bool *ret_blocks)
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
	g->lanes.which |= lanes_take_free(&g->redis->queue, lanes);
}

/*
 * The group's fiber runs commands of several clients. While it runs those of a job, it works for
 * the client who has sent them. That client waits, so nobody else uses its operation.
 */
static struct ops_op *
group_work_for(const struct job *job)
{
	return wanted_work_for(&job->client->entry.op);
}

/*
 * Runs the unit of a job that the group has claimed, in the attempt under way. If that succeeds,
 * the job waits still (`waits`), or has its answer (`end` is 1).
 */
static enum status
group_serve(struct group *g, struct job *job)
{
	struct ops_op *before;
	enum status status;

	/* Its client's fiber is in effects_withdraw(), and waits for one command, which blocks. */
	assert(job->count == 1 && !job->reads);
	if (!job->claimed) {
		job->claimed = true;
		job->next_claimed = g->claimed;
		g->claimed = job;
		group_add_lanes(g, job->lane.lanes);
	}
	job->units->began_ns = clock_mono_ns();
	budget_forgive(job->out->part);
	job->client->saw_other = false;
	g->x.stages = (struct timed_stages){ 0 };
	before = group_work_for(job);
	status = group_run_unit(g, job, job->units, &job->waits);
	(void)wanted_work_for(before);
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

/* Headers that are asked for before the commands that read them are run. */
struct ahead {
	size_t left; /* items that may be asked for yet */
	struct txn_asking asking;
};

/* False: no more can be asked for. */
static bool
ahead_ask(struct ahead *a, struct call *c, struct str key)
{
	if (!a->left)
		return false;
	if (key.len > TIMED_ITEM_KEY_BYTES)
		return true;
	if (txn_ask_soon(c, c->db, key, &a->asking) != STATUS_OK)
		return false;
	a->left--;
	return true;
}

/* Asks for the headers of what the unit is about. False: no more can be. */
static bool
group_ask_unit(struct group *g, const struct job *job, const struct unit *u, struct ahead *a)
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

	if (u->is_exec || !(u->command->flags & (COMMAND_FAST | COMMAND_SMALL)))
		return true;
	if (command_has_one_key(u->command, u->argc))
		return ahead_ask(a, &call, u->argv[u->command->first_key]);
	if (command_keys(u->command, u->argv, u->argc, g->arena, &places, &count) != STATUS_OK)
		return true;
	for (size_t i = 0; i < count; i++)
		if (!ahead_ask(a, &call, u->argv[places[i]]))
			return false;
	return true;
}

/*
 * Asks in one go for the headers that the next commands of the group read first. In a store that
 * others use, too, each read is a round trip, and the commands then wait for one in place of many.
 * In a store of this process, looking up several keys at once takes less time. A command whose
 * header could not be asked for here asks for it again by itself, and is told why it fails.
 */
static void
group_ask_ahead(struct group *g, const struct job *job)
{
	bool is_shared = kv_is_shared(g->redis->config.store);
	struct ahead a = { .left = is_shared ? RUN_ASK_AHEAD : KV_MANY };
	size_t next = job->end;
	bool more = true;

	if (!is_shared && job->count - job->end == 1 && !group_next(job))
		return;
	for (const struct job *j = job; j && more; j = group_next(j)) {
		for (size_t i = next; more && i < j->count && !j->blocked && !j->full; i++) {
			more = group_ask_unit(g, j, &j->units[i], &a);
			g->asked += more;
		}
		next = group_next(j) ? group_next(j)->done : 0;
	}
	txn_asking_send(&a.asking);
	err_clear(&g->err);
}

static enum status
group_run_units(struct group *g, struct job *job)
{
	while (job->end < job->count && !g->stopped) {
		bool blocks;
		enum status status;

		/*
		 * A client that reads answers more slowly than they come holds no more than this.
		 * And a stop of the process waits for no further commands.
		 */
		if (job->end > job->begun &&
		    (job->out->len > job->most_bytes || client_is_stopping(job->client))) {
			job->fills = true;
			return STATUS_OK;
		}
		if (g->ran && (group_is_full(g) || group_is_stale_for(g, &job->units[job->end]))) {
			g->stopped = true;
			return STATUS_OK;
		}
		if (!g->asked)
			group_ask_ahead(g, job);
		if (g->asked)
			g->asked--;
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

static enum status
group_run_job(struct group *g, struct job *job)
{
	struct ops_op *before = group_work_for(job);
	enum status status = group_run_units(g, job);

	(void)wanted_work_for(before);
	return status;
}

/* Nothing of the attempt under way has happened. */
static void
group_begin(struct group *g)
{
	g->ran = g->asked = 0;
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
	for (struct job *j = g->first; j; j = group_next(j)) {
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

static enum status
group_body(struct kv_tx *tx, void *arg)
{
	struct group *g = arg;
	enum status status = STATUS_OK;

	if (g->has_txn)
		txn_fini(&g->x);
	arena_reset(g->arena, g->mark);
	txn_init(&g->x, g->redis, tx, g->cache, g->arena, &g->err);
	g->has_txn = true;
	/* A transaction that is others', too, ends without waiting for any of them. */
	if (g->reads && !group_next(g->first))
		kv_tx_set_memory(tx, g->first->client->part, 0);
	group_begin(g);
	if (!g->reads)
		TRY(txn_ask_tracked(&g->x));
	for (struct job *j = g->first; j && !g->stopped && status == STATUS_OK; j = group_next(j))
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
	for (struct job *j = g->first; j; j = group_next(j)) {
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

/*
 * Answers that the units of the job from the next one to `end` have not been run, since it is not
 * known yet what becomes of a commit to their keys.
 */
static void
job_refuse_owed(struct job *job, size_t end)
{
	struct err err = { 0 };

	(void)err_set(&err, STATUS_UNAVAILABLE,
		      "nothing was done: the cluster has not answered an earlier commit to these "
		      "keys");
	while (job->done < end)
		group_refuse(job, STATUS_UNAVAILABLE, &err);
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
	for (struct job *j = g->first; j; j = group_next(j)) {
		/* Without any that ran, the transaction could not even begin. */
		size_t end = g->ran ? j->end + j->waits : j->count;

		while (!j->blocked && !j->full && j->done < end)
			group_refuse(j, status, &g->err);
		/* The lanes are owed: this group may run nothing more in them. */
		if (g->lanes.ret_left && !j->blocked && !j->full)
			job_refuse_owed(j, j->count);
	}
}

static bool
group_is_done(const struct group *g)
{
	for (const struct job *j = g->first; j; j = group_next(j))
		if (j->done < j->count && !j->blocked && !j->full)
			return false;
	return true;
}

static void
group_run(struct group *g)
{
	/* A client that has gone ends what it alone reads. */
	bool lasts = !g->reads || group_next(g->first);
	struct wanted_group clients;

	if (lasts)
		wanted_group_begin(&clients, &g->first->lane);
	g->cache = catalog_caches_take(&g->redis->caches);
	g->mark = arena_mark(g->arena);
	g->limit = REDIS_GROUP_UNITS;
	g->serves = !g->reads;
	while (!group_is_done(g)) {
		enum status status;

		err_clear(&g->err);
		group_begin(g);
		metric_add(&transactions, 1);
		status = g->reads ? kv_run_read(g->redis->config.store, group_body, g, &g->err)
				  : kv_run_in_lanes(g->redis->config.store, group_body, g,
						    &g->lanes, &g->err);
		if (status == STATUS_OK) {
			g->limit = REDIS_GROUP_UNITS;
			group_settle(g);
		} else {
			group_settle_failure(g, status);
		}
	}
	if (g->has_txn)
		txn_fini(&g->x);
	arena_reset(g->arena, g->mark);
	effects_release(g->redis, g->claimed);
	catalog_caches_give(&g->redis->caches, g->cache);
	if (lasts)
		wanted_group_end(&clients);
}

/* ---- A job ---- */

static void
job_lead(struct redis *r, struct job *job, struct arena *arena)
{
	struct group g;

	group_init(&g, r, job, arena);
	g.lanes = (struct kv_lanes){ .of = &r->queue, .which = lanes_of_group(&job->lane) };
	group_run(&g);
	lanes_leave(&r->queue, &job->lane, g.lanes.which);
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

/* Names the keys of the units for the job's lanes, if each has one. */
static void
job_name_keys(struct job *job, struct arena *arena)
{
	size_t count = job->count - job->done;
	uint16_t *keys = arena_alloc(arena, count * sizeof(*keys));

	for (size_t i = 0; i < count; i++) {
		const struct unit *u = &job->units[job->done + i];

		if (!keys || !u->has_key)
			return;
		keys[i] = u->key;
	}
	job->lane.keys = keys;
	job->lane.key_count = count;
}

/*
 * Single small commands share a lane, whatever their keys are, and so a commit. With pipelines two
 * groups are better: one runs while the other one is written.
 */
static void
job_run_in_turn(struct redis *r, struct job *job, struct arena *arena)
{
	job->lane.small = job_is_small(job);
	job->lane.shares = job->lane.small && job->count - job->done == 1;
	job->lane.keys = NULL;
	if (job->lane.small && r->queue.keys)
		job_name_keys(job, arena);
	job->lane.patience_ms = kv_commit_wait();
	if (lanes_enter(&r->queue, &job->lane))
		job_lead(r, job, arena);
	else if (job->lane.ret_refused)
		job_refuse_owed(job, job->count);
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
		assert(job->lane.lanes != UINT64_MAX);
		job->lane.lanes = UINT64_MAX;
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

static void
job_read(struct redis *r, struct job *job, struct arena *arena)
{
	struct group g;

	group_init(&g, r, job, arena);
	g.reads = true;
	g.lanes.which = UINT64_MAX;
	group_run(&g);
}

/*
 * Where each transaction asks a cluster for its moment to read, single small commands share
 * transactions: what comes while RUN_READ_LANES of them are under way is read together when one has
 * ended. None joins a transaction that has begun, which may not see what was written before the
 * command came. Where those under way take long, because of what one of them reads or since the
 * cluster is silent, those that wait give up soon, and read by themselves.
 */
static void
job_read_in_turn(struct redis *r, struct job *job, struct arena *arena)
{
	uint64_t of_keys = job->lane.lanes;

	job->lane.lanes = lanes_choose(&r->readers, RUN_READ_LANES_ALL);
	job->lane.small = job->lane.prompt = job->lane.impatient = true;
	job->lane.patience_ms = RUN_READ_PATIENCE_MS;
	if (lanes_enter(&r->readers, &job->lane)) {
		job_read(r, job, arena);
		lanes_leave(&r->readers, &job->lane, lanes_of_group(&job->lane));
	} else if (job->lane.ret_refused) {
		job_read(r, job, arena);
	}
	job->lane.lanes = of_keys;
	job->lane.prompt = job->lane.impatient = false;
}

static bool
job_reads_together(const struct redis *r, const struct job *job)
{
	return kv_is_shared(r->config.store) && !kv_keeps_versions(r->config.store) &&
	       job->count - job->done == 1 && job_is_small(job);
}

void
run_job(struct redis *r, struct job *job, struct arena *arena)
{
	job->lane.group = NULL;
	job->lane.works_for = &job->client->entry.op;
	job->blocked = false;
	job->strays = job->wants_stage = false;
	job->out_len = job->out->len;
	job_begin_answers(job);
	for (size_t i = job->done; i < job->count; i++)
		assert(unit_is_data(&job->units[i]));
	if (job->reads && job_reads_together(r, job)) {
		job_read_in_turn(r, job, arena);
		return;
	}
	if (job->reads) {
		job_read(r, job, arena);
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
