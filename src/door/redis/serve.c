#include "door/redis/serve.h"

#include <assert.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/err_clear.h"
#include "base/log.h"
#include "base/metric.h"
#include "door/redis/acl/subcommand.h"
#include "door/redis/cmd/commands.h"
#include "door/redis/person.h"
#include "door/redis/txn/acl_log.h"
#include "door/redis/txn/effects.h"
#include "door/redis/txn/monitor.h"
#include "door/redis/txn/pubsub.h"
#include "door/redis/txn/redis_int.h"
#include "door/redis/txn/slow.h"
#include "door/redis/txn/stats.h"
#include "door/redis/wire/error.h"
#include "loop/step.h"
#include "net/memory.h"

METRIC_COUNTER(http_requests, "frond_redis_http_requests_total", METRIC_NUMBER,
	       "Connections of Redis's door that were ended because HTTP came on them.");

enum {
	BIG_BYTES = 16 * 1024,  /* of an incomplete request, from which on it has its own buffer */
	KEPT_BYTES = 64 * 1024, /* of a buffer that is kept for the next answers */
	SENT_BYTES = 64 * 1024, /* of answers, before they are given to the stream */
	FIRST_UNITS = 32,       /* for which a batch has room at first */
	IDLE_LOOK_MS = 1000,
	REST_LOOK_MS = 3600 * 1000,   /* while nothing is asked of the client, and it may be idle */
	MULTI_FREE_BYTES = 16 * 1024, /* of MULTI, that a client may keep while memory is short */
};

#define NO_MEMORY "OOM the memory of a connection is used up"

/* Commands that came one after the other, and are run together. */
struct batch {
	struct client *client;
	struct arena *arena;
	struct arena_mark mark;
	struct unit *units;
	size_t count, cap;
	bool reads; /* all of it does nothing else, so it needs no lanes */
	uint64_t lanes;
};

static struct reply
client_reply(struct client *c)
{
	return (struct reply){ .out = &c->out, .version = c->version };
}

/* ---- Output ---- */

/*
 * Tells the client why its connection ends, where there may be no memory for an answer: what was
 * not sent is dropped, and `error` does not go through the client's buffer.
 */
static void
client_end_for_memory(struct client *c, struct str error)
{
	buf_release(&c->out);
	buf_release(&c->big);
	c->end = CLIENT_ENDS;
	(void)!net_stream_write(c->stream, error);
}

static void
client_send(struct client *c)
{
	/* What an answer has asked for and not used is for others while its client reads. */
	if (c->part->asked_bytes)
		budget_settle(c->part);
	if (buf_status(&c->out) != STATUS_OK) {
		METRIC_REFUSED("memory_bytes");
		client_end_for_memory(c, STR("-ERR there is no memory for the answers, and the "
					     "connection ends (memory_bytes)\r\n"));
	} else if (c->out.len && client_write_answers(c, buf_str(&c->out)) != STATUS_OK) {
		c->end = CLIENT_ENDS;
	}
	if (c->out.cap > KEPT_BYTES)
		buf_release(&c->out);
	buf_clear(&c->out);
	if (client_flush_push(c) != STATUS_OK)
		c->end = CLIENT_ENDS;
}

/* ---- Waiting for memory ---- */

static void
client_refuse_memory(struct job *job)
{
	struct err err = { 0 };

	(void)net_memory_refuse(net_stream_session(job->client->stream), &err);
	run_refuse(job, STATUS_NOMEM, &err);
}

/*
 * Waits until units[done] of the job may have more memory than in its last attempt. The answers
 * before it were sent, and nothing is left of the attempt: a client that waits holds no memory of
 * answers that another one could wait for. False: there is none.
 */
static bool
client_await_memory(struct client *c, struct job *job)
{
	buf_release(&c->out);
	budget_settle(c->part);
	return c->big.cap <= KEPT_BYTES && !net_stream_is_leaving(c->stream) &&
	       net_memory_await_more(net_stream_session(c->stream), &job->asked_bytes) == STATUS_OK;
}

/* A job has returned before its end, so that its answers can be sent first. */
static void
client_send_before(struct client *c, struct job *job)
{
	if (!job->lacks_memory)
		job->asked_bytes = 0;
	if (job->gone) {
		c->end = CLIENT_ENDS;
		return;
	}
	client_send(c);
	if (c->end == CLIENT_GOES_ON && job->lacks_memory && !client_await_memory(c, job))
		client_refuse_memory(job);
}

/* ---- Waiting for what a key may get ---- */

static void
client_set_blocked(struct client *c, bool blocked)
{
	pthread_mutex_lock(&c->entry.lock);
	if (blocked && !c->blocked)
		atomic_fetch_add(&c->redis->blocked_count, 1);
	if (!blocked && c->blocked)
		atomic_fetch_sub(&c->redis->blocked_count, 1);
	c->blocked = blocked;
	pthread_mutex_unlock(&c->entry.lock);
}

/*
 * Waits until the job's client is to look again; meanwhile a group may run the job. Returns the
 * signals. `*ret_served`: a group has run it, and the answer is sent.
 */
static unsigned
block_wait(struct client *c, struct job *job, uint64_t deadline, bool *ret_served)
{
	bool first = !c->blocked;
	unsigned signals = 0;

	job->out = &c->served_out;
	if (!job->reads)
		effects_offer(c, job);
	client_set_blocked(c, true);
	/* Only those who are blocked already are told of changes of rights. */
	if (!first || visit_is_current(&c->entry))
		signals = client_wait(c, false, deadline);
	*ret_served = effects_withdraw(c);
	job->out = &c->out;
	assert(!c->out.len);
	/* Whoever sees the answer no longer sees a client that waits. */
	if (*ret_served)
		client_set_blocked(c, false);
	if (*ret_served && c->served_out.len &&
	    client_write_answers(c, buf_str(&c->served_out)) != STATUS_OK)
		c->end = CLIENT_ENDS;
	buf_release(&c->served_out);
	return signals;
}

/* Runs the unit until it has something, or must not wait any longer. */
static void
block_until_done(struct client *c, struct job *job, bool looks, struct arena *arena)
{
	uint64_t deadline = c->block_ms ? client_after_ms(c->block_ms) : WAIT_FOREVER;
	unsigned signals;
	bool served;

	c->saw_other = false;
	for (;;) {
		struct reply reply = client_reply(c);

		/* The time of waiting is none of the command's. */
		job->units->began_ns = clock_mono_ns();
		if (looks)
			run_job(c->redis, job, arena);
		if (looks && job->full) {
			client_send_before(c, job);
			if (c->end == CLIENT_ENDS || job->done == job->count)
				return;
			continue;
		}
		if (looks && !job->blocked)
			return;
		if (c->saw_other)
			effects_pass_on(c);
		c->saw_other = false;
		if (clock_mono_ns() >= deadline) {
			looks = job->cannot_block = true;
			continue;
		}
		signals = block_wait(c, job, deadline, &served);
		if (served)
			return;
		if (client_flush_push(c) != STATUS_OK ||
		    visit_check_waiting(&c->entry) != STATUS_OK) {
			c->end = CLIENT_ENDS;
			return;
		}
		if (signals & CLIENT_UNBLOCKED)
			job->cannot_block = true;
		if (signals & CLIENT_UNBLOCKED_ERR) {
			reply_error(&reply, STR("UNBLOCKED client unblocked via CLIENT UNBLOCK"));
			return;
		}
		/*
		 * All who wait are woken when rights have changed or a pause has ended. Whoever
		 * looked at the key then would take what is there for the one that stands first.
		 */
		looks = job->cannot_block || signals & CLIENT_READY;
	}
}

/* A move waits for its source. What comes to its destination is for others. */
static bool
waits_for_source(const struct command *command)
{
	return strcmp(command->name, "blmove") == 0 || strcmp(command->name, "brpoplpush") == 0;
}

/* The unit of the job that comes next has found nothing, and wants to wait. */
static void
serve_blocked(struct client *c, struct unit *unit, struct arena *arena)
{
	/* Who only reads leaves what is there to others, and looks without waiting for them. */
	bool reads = unit->command->flags & COMMAND_READONLY;
	struct job job = { .client = c, .units = unit, .count = 1, .reads = reads, .out = &c->out };
	struct person_waits waits = { .client = c, .units = unit, .count = 1, .arena = arena };
	struct err err = { 0 };
	enum status status;
	size_t *places;
	bool first, others_look;
	size_t count;

	client_send(c);
	job.lane.lanes = run_lanes(unit->command, unit->argv, unit->argc, unit->db, arena);
	status = command_keys(unit->command, unit->argv, unit->argc, arena, &places, &count);
	if (status == STATUS_OK && waits_for_source(unit->command))
		count = 1;
	c->shares = unit->command->group == GROUP_STREAM;
	c->group = c->shares ? c->block_group : 0;
	if (status == STATUS_OK)
		status = effects_block(c, unit->db, unit->argv, places, count, &first);
	if (status != STATUS_OK) {
		struct reply reply = client_reply(c);

		if (status == STATUS_LIMIT)
			(void)err_set(&err, status,
				      "the clients of a process may wait for %d keys "
				      "(REDIS_WAITED_KEYS)",
				      REDIS_WAITED_KEYS);
		error_reply_status(&reply, status, &err);
		return;
	}
	unit->waited = true;
	person_wait(&waits);
	/* What others have found at a stream, or not, says nothing of what this one finds. */
	block_until_done(c, &job, first || c->shares, arena);
	visit_may(&c->entry, NULL, NULL);
	client_set_blocked(c, false);
	buf_release(&c->block_ids);
	/* More may be there, and what came while it was still in the list has woken nobody else. */
	others_look = effects_unblock(c);
	for (size_t i = 0; i < count && others_look; i++)
		effects_ready(c->redis, unit->db, unit->argv[places[i]]);
}

/* ---- Batches ---- */

/* True if CLIENT PAUSE WRITE is about the unit: what it is, and what its script says of itself. */
static bool
unit_pauses(struct client *c, const struct unit *u, struct arena *arena)
{
	return command_pauses(u->command) &&
	       !(u->command->flags & COMMAND_SCRIPT &&
		 script_says_no_writes(c->redis, u->command, u->argv, u->argc, arena));
}

/* Asked while there is such a pause only, since what a function says lies in the store. */
static bool
batch_pauses(const struct batch *b)
{
	for (size_t i = 0; i < b->count; i++) {
		const struct unit *u = &b->units[i];

		for (size_t j = 0; u->is_exec && j < u->queued_count; j++)
			if (unit_pauses(b->client, &u->queued[j], b->arena))
				return true;
		if (!u->is_exec && unit_pauses(b->client, u, b->arena))
			return true;
	}
	return false;
}

/*
 * CLIENT PAUSE: waits until it is over, and counts among those that are blocked, before these units
 * run. `b` NULL: before a command that runs alone, which a pause of writes is about.
 */
static void
client_wait_pause(struct client *c, const struct unit *units, size_t count, const struct batch *b)
{
	struct person_waits waits;
	struct redis *r = c->redis;
	bool counted = false, asked = !b, pauses = true;

	while (c->end == CLIENT_GOES_ON) {
		uint64_t until = atomic_load(&r->paused_until_ns);
		uint64_t look;

		if (!until || clock_mono_ns() >= until)
			break;
		if (atomic_load(&r->paused_writes_only)) {
			if (!asked)
				pauses = batch_pauses(b);
			asked = true;
			if (!pauses)
				break;
		}
		if (!counted) {
			atomic_fetch_add(&r->blocked_count, 1);
			waits = (struct person_waits){ .client = c,
						       .units = units,
						       .count = count,
						       .arena = net_stream_arena(c->stream) };
			person_wait(&waits);
		}
		counted = true;
		client_send(c);
		look = clock_after_ms(IDLE_LOOK_MS);
		(void)client_wait(c, false, until < look ? until : look);
		if (visit_check_waiting(&c->entry) != STATUS_OK)
			c->end = CLIENT_ENDS;
	}
	if (!counted)
		return;
	visit_may(&c->entry, NULL, NULL);
	atomic_fetch_sub(&r->blocked_count, 1);
}

/* Others see the first command of what a client has sent together. */
static void
client_begin_op(struct client *c, const struct unit *unit)
{
	clients_op_begin(&c->entry, &redis_ops, unit->command->name, STR(""), unit->began_ns,
			 STR(""), STR(""));
}

static void
batch_run_units(struct batch *b)
{
	struct client *c = b->client;
	struct job job = { .client = c,
			   .units = b->units,
			   .count = b->count,
			   .reads = b->reads,
			   .lane = { .lanes = b->lanes },
			   .out = &c->out };

	client_begin_op(c, b->units);
	client_wait_pause(c, b->units, b->count, b);
	while (job.done < job.count && c->end == CLIENT_GOES_ON) {
		if (net_session_is_given_up(net_stream_session(c->stream)) ||
		    (job.done && client_is_stopping(c))) {
			c->end = CLIENT_ENDS;
			break;
		}
		run_job(c->redis, &job, b->arena);
		if (job.full)
			client_send_before(c, &job);
		if (!job.blocked)
			continue;
		serve_blocked(c, &b->units[job.done], b->arena);
		job.done++;
		job.blocked = false;
	}
	visit_op_end(&c->entry, &c->entry.op, NULL);
	b->count = 0;
	b->lanes = 0;
	b->reads = true;
	if (c->out.len > SENT_BYTES)
		client_send(c);
}

/* A job is large, and mostly there is nothing to be run: it is not even made then. */
static inline void
batch_run(struct batch *b)
{
	if (b->count)
		batch_run_units(b);
}

static enum status
batch_add(struct batch *b, const struct unit *unit, bool reads, uint64_t lanes)
{
	struct unit *units;

	if (b->count == REDIS_PIPELINE_UNITS)
		batch_run(b);
	/* Most batches are short: room for the longest would be more than a block of the arena. */
	if (!b->cap) {
		b->units = arena_alloc(b->arena, FIRST_UNITS * sizeof(*units));
		b->cap = b->units ? FIRST_UNITS : 0;
	}
	units = arena_grow(b->arena, b->units, b->count, &b->cap, sizeof(*units));
	if (!units)
		return STATUS_LIMIT;
	b->units = units;
	b->units[b->count++] = *unit;
	b->reads &= reads;
	b->lanes |= lanes;
	return STATUS_OK;
}

/* ---- One command ---- */

struct request_call {
	struct batch *batch;
	struct client *client;
	const struct command *command;
	struct str *argv;
	size_t argc;
};

/* Refuses the command: in MULTI, EXEC will then be refused, too. */
static void
serve_refuse(struct request_call *q, const char *text)
{
	struct client *c = q->client;
	struct reply reply = client_reply(c);

	batch_run(q->batch);
	if (c->multi)
		c->multi_failed = true;
	if (q->command)
		stats_count_refused(c->redis->stats, q->command, q->argv, q->argc);
	stats_count_error(c->redis->stats, str_from_cstr(text));
	reply_error(&reply, str_from_cstr(text));
}

/*
 * What browsers and other clients of HTTP send to this port: a page can have a browser send a body
 * whose lines would be commands.
 */
static bool
is_http(struct str word)
{
	return str_eq_nocase(word, STR("post")) || str_eq_nocase(word, STR("host:"));
}

static void
end_http(struct request_call *q)
{
	static struct log_limit limit;
	uint64_t before;

	batch_run(q->batch);
	metric_add(&http_requests, 1);
	if (log_limit_pass(&limit, &before))
		log_event(LOG_LEVEL_WARN, "redis_http_request", "from=%s before=%llu",
			  q->client->entry.peer, (unsigned long long)before);
	q->client->end = CLIENT_ENDS;
}

/* Who asks, as of now; the address or the person may ask too often, or for too much ([limits]). */
static bool
check_admitted(struct request_call *q)
{
	const struct visit_command asked = {
		.name = q->argv[0],
		.is_open = q->command && q->command->flags & COMMAND_NO_AUTH,
	};
	char text[ERR_TEXT_BYTES + sizeof("ERR max requests: ")];
	struct err err; /* written by a refusal */
	enum status status;

	status = visit_admit(&q->client->entry, &asked, &err);
	if (status == STATUS_OK)
		return true;
	if (status == STATUS_UNAUTHORIZED) {
		serve_refuse(q, "NOAUTH Authentication required.");
		return false;
	}
	if (status == STATUS_CANCELLED) { /* the person has gone, or the process stops */
		batch_run(q->batch);
		q->client->end = CLIENT_ENDS;
		return false;
	}
	(void)snprintf(text, sizeof(text), "ERR max requests: %s", err.text);
	serve_refuse(q, text);
	return false;
}

static void
refuse_unknown(struct request_call *q)
{
	char text[3 * CALL_SHOWN_BYTES + 100];
	size_t shown = 0;
	int len = snprintf(text, sizeof(text),
			   "ERR unknown command '%.*s', with args beginning with: ",
			   STR_ARG(call_shown(q->argv[0])));

	for (size_t i = 1; i < q->argc && shown < CALL_SHOWN_BYTES; i++) {
		size_t n = q->argv[i].len < CALL_SHOWN_BYTES - shown ? q->argv[i].len
								     : CALL_SHOWN_BYTES - shown;

		len += snprintf(text + len, sizeof(text) - (size_t)len, "'%.*s' ", (int)n,
				q->argv[i].ptr);
		shown += n + 3;
	}
	serve_refuse(q, text);
}

/* A subcommand that is not there fails where it is queued by MULTI, and not in EXEC. */
static bool
check_subcommand(struct request_call *q)
{
	const struct command *command = q->command;
	char text[2 * CALL_SHOWN_BYTES + 100];
	char name[COMMAND_NAME_BYTES];

	if (!(command->flags & COMMAND_CONTAINER) || q->argc < 2 || command_is_refused(command) ||
	    subcommand_find(command, q->argv[1]))
		return true;
	command_upper_name(command, name);
	snprintf(text, sizeof(text), "ERR unknown subcommand '%.*s'. Try %s HELP.",
		 STR_ARG(call_shown(q->argv[1])), name);
	serve_refuse(q, text);
	return false;
}

/* The command is named with its subcommand, between the two parts of the text. */
static void
refuse_named(struct request_call *q, const char *before, const char *after)
{
	char name[SUBCOMMAND_NAME_BYTES];
	char text[SUBCOMMAND_NAME_BYTES + 100];

	subcommand_name_call(q->command, q->argv, q->argc, name);
	snprintf(text, sizeof(text), "%s'%s'%s", before, name, after);
	serve_refuse(q, text);
}

static bool
check_arity(struct request_call *q)
{
	const struct subcommand *sub = subcommand_called(q->command, q->argv, q->argc);

	if (command_takes(q->command, q->argc) &&
	    (!sub || command_arity_takes(sub->arity, q->argc)))
		return true;
	refuse_named(q, "ERR wrong number of arguments for ", " command");
	return false;
}

/* Answers that the client may not do this, and notes it in ACL LOG. */
static void
refuse_denied(struct request_call *q, enum acl_denial denial, struct str object)
{
	struct client *c = q->client;
	char name[SUBCOMMAND_NAME_BYTES];

	if (denial == ACL_DENIED_COMMAND)
		object = subcommand_name_call(q->command, q->argv, q->argc, name);
	acl_log_add(c, &(struct acl_refusal){
			       .denial = denial,
			       .context = c->multi ? "multi" : "toplevel",
			       .object = object,
		       });
	if (denial == ACL_DENIED_COMMAND)
		refuse_named(q, "NOPERM this user has no permissions to run the ", " command");
	else if (denial == ACL_DENIED_KEY)
		serve_refuse(
			q, "NOPERM this user has no permissions to access one of the keys used as "
			   "arguments");
	else
		serve_refuse(
			q, "NOPERM this user has no permissions to access one of the channels used "
			   "as arguments");
}

static bool
check_rights(struct request_call *q)
{
	struct client *c = q->client;
	enum acl_denial denial;
	struct str object;

	if (q->command->flags & COMMAND_NO_AUTH)
		return true;
	denial = acl_check(&c->acl, q->command, q->argv, q->argc, q->batch->arena, &object);
	if (denial == ACL_ALLOWED)
		return true;
	refuse_denied(q, denial, object);
	return false;
}

static bool
is_named(const struct command *command, const char *name)
{
	return strcmp(command->name, name) == 0;
}

/* In RESP2 a subscriber gets messages in between; it may only go on with those. */
static bool
check_subscriber(struct request_call *q)
{
	static const char *const allowed[] = { "ping",         "subscribe",    "unsubscribe",
					       "psubscribe",   "punsubscribe", "ssubscribe",
					       "sunsubscribe", "quit",         "reset" };
	char text[200];

	if (!client_is_subscriber(q->client))
		return true;
	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
		if (is_named(q->command, allowed[i]))
			return true;
	snprintf(text, sizeof(text),
		 "ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / "
		 "RESET are allowed in this context",
		 q->command->name);
	serve_refuse(q, text);
	return false;
}

/* A connection that sees all commands has none of its own that are about keys. */
static bool
check_monitor(struct request_call *q)
{
	if (!atomic_load_explicit(&q->client->monitors, memory_order_relaxed) ||
	    !(q->command->flags & (COMMAND_READONLY | COMMAND_WRITE | COMMAND_SCRIPT)))
		return true;
	serve_refuse(q, "ERR Replica can't interact with the keyspace");
	return false;
}

/* ---- MULTI ---- */

/* Keeps the command until EXEC. */
static void
multi_queue(struct request_call *q)
{
	struct client *c = q->client;
	struct reply reply = client_reply(c);
	struct unit unit = { .command = q->command, .argc = q->argc };

	if (!c->multi_arena) {
		c->multi_arena = arena_new(REDIS_MULTI_BYTES);
		if (c->multi_arena)
			arena_set_part(c->multi_arena, c->part);
	}
	if (c->multi_arena) {
		struct unit *queued = arena_grow(c->multi_arena, c->queued, c->queued_count,
						 &c->queued_cap, sizeof(*queued));

		unit.argv = queued ? arena_alloc(c->multi_arena, q->argc * sizeof(*unit.argv))
				   : NULL;
		if (queued)
			c->queued = queued;
	}
	for (size_t i = 0; unit.argv && i < q->argc; i++) {
		unit.argv[i] = arena_dup(c->multi_arena, q->argv[i]);
		if (!unit.argv[i].ptr)
			unit.argv = NULL;
	}
	if (!unit.argv) {
		serve_refuse(q, budget_has_failed(c->part)
					? "OOM there is no memory for the commands of MULTI "
					  "(memory_bytes)"
					: "ERR the commands of MULTI are too long together "
					  "(REDIS_MULTI_BYTES)");
		budget_forgive(c->part);
		return;
	}
	c->queued[c->queued_count++] = unit;
	reply_simple(&reply, "QUEUED");
}

static uint64_t
exec_lanes(struct client *c, struct arena *arena)
{
	uint64_t lanes = 0;

	for (size_t i = 0; i < c->queued_count; i++) {
		const struct unit *u = &c->queued[i];

		if (is_named(u->command, "select"))
			return UINT64_MAX;
		lanes |= run_lanes(u->command, u->argv, u->argc, c->db, arena);
	}
	for (const struct watch *w = c->watches; w; w = w->next)
		lanes |= run_lane(w->db, w->key);
	return lanes;
}

static bool
writes_in_exec(const struct client *c, const struct command *command)
{
	return command_may_write(command) || (command->flags & COMMAND_PUBLISH && c->redis->others);
}

static void
exec_run(struct request_call *q)
{
	struct client *c = q->client;
	struct reply reply = client_reply(c);
	bool reads = !c->watches;
	struct unit unit = { .command = q->command,
			     .argv = q->argv,
			     .argc = q->argc,
			     .db = c->db,
			     .is_exec = true,
			     .queued = c->queued,
			     .queued_count = c->queued_count,
			     .caching = c->caching,
			     .began_ns = clock_mono_ns() };

	if (!c->multi) {
		serve_refuse(q, "ERR EXEC without MULTI");
		return;
	}
	batch_run(q->batch);
	if (c->multi_failed) {
		const struct str text = STR(
			"EXECABORT Transaction discarded because of previous errors.");

		monitor_show(c->redis, c, c->db, q->command, q->argv, q->argc);
		stats_count_call(c->redis->stats, q->command, q->argv, q->argc, 0, true);
		stats_count_error(c->redis->stats, text);
		reply_error(&reply, text);
	} else {
		for (size_t i = 0; i < c->queued_count; i++)
			reads &= !writes_in_exec(c, c->queued[i].command);
		unit.muted = c->reply_off || c->reply_skip;
		if (batch_add(q->batch, &unit, reads, exec_lanes(c, q->batch->arena)) ==
		    STATUS_OK) {
			batch_run(q->batch);
			c->db = q->batch->units[0].ret_db;
		} else {
			serve_refuse(q, NO_MEMORY);
		}
	}
	client_forget_multi(c);
	effects_unwatch_all(c);
	c->caching = CACHING_UNSAID;
}

/* ---- Dispatching ---- */

/* What a subscription is answered with is a message, which CLIENT REPLY does not mute. */
static bool
answers_by_message(const struct command *command)
{
	return command->flags & COMMAND_PUBSUB && strstr(command->name, "subscribe");
}

static void
count_alone(struct client *c, const struct unit *u, size_t from)
{
	uint64_t now_ns = clock_mono_ns();
	bool failed = c->out.len > from && c->out.ptr[from] == '-';

	slow_note(c->redis, c, u, now_ns);
	monitor_show(c->redis, c, c->db, u->command, u->argv, u->argc);
	stats_count_call(c->redis->stats, u->command, u->argv, u->argc, now_ns - u->began_ns,
			 failed);
	if (failed)
		stats_count_error(c->redis->stats, str_skip(buf_str(&c->out), from));
}

/* What works on the connection, or needs no transaction. */
static void
run_alone(struct request_call *q)
{
	struct client *c = q->client;
	struct reply reply = client_reply(c);
	struct call call = { .redis = c->redis,
			     .client = c,
			     .command = q->command,
			     .argv = q->argv,
			     .argc = q->argc,
			     .reply = &reply,
			     .db = c->db,
			     .arena = q->batch->arena };
	struct unit unit = {
		.command = q->command, .argv = q->argv, .argc = q->argc, .began_ns = clock_mono_ns()
	};
	size_t from;
	enum status status;

	batch_run(q->batch);
	if (c->end == CLIENT_ENDS)
		return;
	client_begin_op(c, &unit);
	if (q->command->flags & COMMAND_PAUSES)
		client_wait_pause(c, &unit, 1, NULL);
	if (c->end == CLIENT_ENDS) {
		visit_op_end(&c->entry, &c->entry.op, NULL);
		return;
	}
	from = c->out.len;
	status = command_run(&call);
	visit_op_end(&c->entry, &c->entry.op, NULL);
	/* What CLIENT CACHING says is of the next command but CLIENT, or of all of MULTI. */
	if (!c->multi && !is_named(q->command, "client"))
		c->caching = CACHING_UNSAID;
	c->db = call.db;
	if (status != STATUS_OK) {
		c->out.len = from;
		error_reply_status(&reply, status, NULL);
	}
	if ((c->reply_off || c->reply_skip) && !answers_by_message(q->command))
		c->out.len = from;
	count_alone(c, &unit, from);
}

static void
run_data(struct request_call *q)
{
	struct client *c = q->client;
	struct unit unit = { .command = q->command,
			     .argv = q->argv,
			     .argc = q->argc,
			     .db = c->db,
			     .muted = c->reply_off || c->reply_skip,
			     .caching = c->caching,
			     .began_ns = atomic_load_explicit(&c->last_ns, memory_order_relaxed) };
	bool reads = q->command->flags & COMMAND_READONLY;
	uint64_t lanes = run_unit_lanes(&unit, q->batch->arena);

	/* Who publish to one channel share a transaction, as those that write one key do. */
	if (q->command->flags & COMMAND_PUBLISH)
		lanes |= run_lane(0, q->argv[1]);
	if (batch_add(q->batch, &unit, reads, lanes) != STATUS_OK)
		serve_refuse(q, NO_MEMORY);
	c->caching = CACHING_UNSAID;
}

static bool
runs_within_multi(const struct command *command)
{
	static const char *const names[] = { "exec", "discard", "multi", "watch", "quit", "reset" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (is_named(command, names[i]))
			return true;
	return false;
}

/* True if the command needs no transaction. */
static bool
is_alone(const struct request_call *q)
{
	return q->command->flags & COMMAND_ALONE ||
	       (q->command->flags & COMMAND_PUBLISH && !q->client->redis->others);
}

static void
dispatch(struct request_call *q)
{
	struct client *c = q->client;

	/* Clients mostly repeat themselves, and the last command is sooner compared than found. */
	q->command = atomic_load_explicit(&c->last_command, memory_order_relaxed);
	if (!q->command || !command_is_named(q->command, q->argv[0]))
		q->command = command_find(q->argv[0]);
	/* However often it asks: a later line of a browser's might not be refused. */
	if (!q->command && is_http(q->argv[0])) {
		end_http(q);
		return;
	}
	if (!check_admitted(q))
		return;
	if (!q->command) {
		refuse_unknown(q);
		return;
	}
	client_note_command(c, q->command, q->argv, q->argc);
	atomic_fetch_add_explicit(&c->redis->commands, 1, memory_order_relaxed);
	if (!check_subcommand(q) || !check_arity(q) || !check_rights(q) || !check_subscriber(q) ||
	    !check_monitor(q))
		return;
	if (c->multi && !runs_within_multi(q->command)) {
		if (q->command->flags & COMMAND_NO_MULTI) {
			serve_refuse(q, "ERR Command not allowed inside a transaction");
			return;
		}
		multi_queue(q);
	} else if (is_named(q->command, "exec")) {
		exec_run(q);
	} else if (is_alone(q)) {
		run_alone(q);
	} else {
		run_data(q);
	}
}

static void
serve_request(struct batch *b, struct str *argv, size_t argc)
{
	struct client *c = b->client;
	struct request_call q = { .batch = b, .client = c, .argv = argv, .argc = argc };

	if (!argc)
		return;
	step_unit();
	atomic_store_explicit(&c->last_ns, clock_mono_ns(), memory_order_relaxed);
	dispatch(&q);
	c->reply_skip = c->reply_skip_next;
	c->reply_skip_next = false;
	/* Answers of commands that need no transaction. */
	if (!b->count && c->out.len > SENT_BYTES)
		client_send(c);
}

/* ---- Input ---- */

/* What came and was not served, beginning with a request. */
static enum status
client_input(struct client *c, struct str *ret)
{
	struct str fresh;

	TRY(net_stream_next(c->stream, &fresh));
	if (!c->big.len) {
		*ret = fresh;
		return STATUS_OK;
	}
	TRY(net_memory_append(net_stream_session(c->stream), &c->big, fresh));
	net_stream_take(c->stream, fresh.len);
	*ret = buf_str(&c->big);
	return STATUS_OK;
}

/* `n` bytes of `in` were served. What is left of a long request gets a buffer of its own. */
static enum status
client_consume(struct client *c, struct str in, size_t n)
{
	if (c->big.len) {
		buf_consume(&c->big, n);
		if (!c->big.len) {
			buf_release(&c->big);
			budget_settle(c->part);
		}
		return STATUS_OK;
	}
	if (in.len - n >= BIG_BYTES) { /* `in` is not empty */
		TRY(net_memory_append(net_stream_session(c->stream), &c->big, str_skip(in, n)));
		n = in.len;
	}
	net_stream_take(c->stream, n);
	return STATUS_OK;
}

/* Serves the requests that are complete, and returns how many bytes they were. */
static size_t
serve_input(struct batch *b, struct str in)
{
	struct client *c = b->client;
	struct err err;
	size_t at = 0;

	err_clear(&err);
	c->request.bulk_bytes = atomic_load_explicit(&c->redis->bulk_bytes, memory_order_relaxed);
	while (c->end == CLIENT_GOES_ON && at < in.len) {
		struct str rest = str_skip(in, at);
		struct str *argv;
		size_t need;
		enum status status;

		c->request.stranger = !c->entry.who.authenticated;
		status = request_read(&c->request, rest, b->arena, &need, &err);

		if (status == STATUS_NOT_FOUND)
			break;
		if (status == STATUS_OK)
			status = request_args(&c->request, rest, b->arena, &argv);
		if (status != STATUS_OK) {
			struct reply reply = client_reply(c);

			batch_run(b);
			reply_errorf(&reply, "ERR %s",
				     err.text[0] ? err.text : status_name(status));
			c->end = CLIENT_ENDS;
			break;
		}
		at += c->request.at;
		/*
		 * All of what it owed is there: a short answer needs no room among what lasts. But
		 * what MULTI keeps lasts, however it comes.
		 */
		if (c->owes && !c->multi)
			net_memory_part_unkeep(c->part);
		c->owes = false;
		atomic_store_explicit(&c->request_bytes, c->request.at, memory_order_relaxed);
		serve_request(b, argv, c->request.expected);
		request_clear(&c->request);
	}
	batch_run(b);
	atomic_store_explicit(&c->request_bytes, 0, memory_order_relaxed);
	return at;
}

/* When a connection that asks for nothing ends, by the setting `timeout`. */
static uint64_t
idle_deadline(struct client *c)
{
	uint64_t seconds = atomic_load_explicit(&c->redis->idle_s, memory_order_relaxed);

	if (!seconds || client_has_subscriptions(c))
		return UINT64_MAX;
	return atomic_load(&c->last_ns) + seconds * 1000 * CLOCK_NS_PER_MS;
}

/* True if the client has queued much by MULTI, whose end is yet to come. */
static bool
client_has_queued_much(const struct client *c)
{
	return c->multi_arena && arena_used_bytes(c->multi_arena) > MULTI_FREE_BYTES;
}

/*
 * Waits until a request comes (the rest of one, if `half` is true), until there is a message to
 * send, or until the connection has to end. Returns false if it has to end.
 */
static bool
serve_rest(struct client *c, bool half)
{
	uint64_t look = clock_after_ms(REST_LOOK_MS);
	uint64_t until = idle_deadline(c);
	unsigned signals;

	c->owes = half;
	net_stream_keep(c->stream, half || client_has_queued_much(c));
	signals = client_wait(c, true, look < until ? look : until);
	if (net_stream_is_unwanted(c->stream)) {
		client_end_for_memory(c,
				      STR("-ERR Protocol error: the end of a request, or EXEC, did "
					  "not come, and others need the memory "
					  "(memory_bytes)\r\n"));
		return false;
	}
	if (client_flush_push(c) != STATUS_OK || signals & CLIENT_ENDED ||
	    visit_follow(&c->entry) != STATUS_OK)
		return false;
	if (net_stream_has_input(c->stream))
		return true;
	until = idle_deadline(c);
	return until == UINT64_MAX || clock_mono_ns() < until;
}

/*
 * The connection cannot go on with its input. If that is because a request needs more memory than
 * there is for it, the client learns so; net/ then drops the rest of what it sends.
 */
static bool
serve_no_input(struct client *c)
{
	char text[ERR_TEXT_BYTES + sizeof("-ERR Protocol error: \r\n")];
	struct err err = { 0 };
	int len;

	if (buf_status(&c->big) != STATUS_OK) {
		(void)net_memory_refuse(net_stream_session(c->stream), &err);
		len = snprintf(text, sizeof(text), "-ERR Protocol error: %s\r\n", err.text);
		client_end_for_memory(c, str_of(text, (size_t)len));
	}
	return false;
}

/*
 * Serves what is there, and waits for more once there is no further request. False: the connection
 * ends.
 */
static bool
serve_turn(struct client *c)
{
	struct arena *arena = net_stream_arena(c->stream);
	struct batch b = { .client = c, .arena = arena, .mark = arena_mark(arena), .reads = true };
	bool ended = net_stream_is_leaving(c->stream);
	struct str in;
	size_t served;

	if (client_input(c, &in) != STATUS_OK)
		return serve_no_input(c);
	served = serve_input(&b, in);
	client_send(c);
	/* All was run: units refer to the arena, and to input that is consumed below. */
	assert(!b.count);
	arena_reset(arena, b.mark);
	if (c->end == CLIENT_ENDS)
		return false;
	if (client_consume(c, in, served) != STATUS_OK)
		return serve_no_input(c);
	clients_leave(&c->entry);
	/* More has come meanwhile, or what was served was the last. */
	if (served && (net_stream_has_input(c->stream) || net_stream_is_leaving(c->stream)))
		return true;
	if (ended)
		return false;
	return serve_rest(c, in.len > served);
}

bool
redis_serve(struct net_stream *s, void *redis)
{
	struct client *c = client_new(redis, s);

	if (!c) {
		(void)!net_stream_write(s, STR("-ERR out of memory\r\n"));
		return false;
	}
	while (serve_turn(c))
		;
	effects_unwatch_all(c);
	pubsub_unsubscribe_all(c);
	monitor_end(c);
	tracking_leave(c);
	client_free(c);
	return false;
}
