#include "serve/ops.h"

#include <assert.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/quote.h"
#include "net/session.h"
#include "serve/clients.h"
#include "serve/wanted.h"

/* Operations of the threads that share a shard of the metrics; on a cache line of its own. */
struct ops_list {
	_Alignas(64) pthread_mutex_t lock;
	struct ops_op *first;
	uint64_t begun;
};

static struct ops_list lists[METRIC_SHARDS] = {
	[0 ... METRIC_SHARDS - 1] = { .lock = PTHREAD_MUTEX_INITIALIZER },
};

/* The list of an operation is told by its number. */
static struct ops_list *
ops_list_of(uint64_t id)
{
	return &lists[id % METRIC_SHARDS];
}

/* ---- Limits ---- */

static _Atomic(struct limits *) limits_of_all;

void
ops_limit(struct limits *limits)
{
	atomic_store(&limits_of_all, limits);
}

enum status
ops_admit(struct ops_op *op, struct str person, struct err *err)
{
	struct limits *limits = atomic_load_explicit(&limits_of_all, memory_order_acquire);
	enum status status;

	op->asked = true;
	if (!limits || !limits_any(limits))
		return STATUS_OK;
	status = limits_enter_address(&op->claim, limits, str_from_cstr(op->peer), err);
	if (status == STATUS_OK && person.len)
		status = limits_enter_person(&op->claim, limits, person, err);
	if (status != STATUS_OK)
		op->refused = true;
	return status;
}

void
ops_admit_always(struct ops_op *op)
{
	op->asked = true;
}

/* Counts what has moved for whom the operation's claim does not count it. */
static void
ops_count_bytes(const struct ops_op *op)
{
	struct limits *limits = atomic_load_explicit(&limits_of_all, memory_order_acquire);
	const struct clients_entry *client = op->client;

	if (limits)
		limits_count_bytes(limits, &op->claim, str_from_cstr(op->peer),
				   client && client->limited ? str_from_cstr(client->user)
							     : STR(""),
				   op->moved_bytes);
}

void
ops_leave(struct ops_op *op)
{
	/* What is shown as running has not moved all of its bytes. */
	assert(!op->link);
	if (op->session)
		op->moved_bytes += net_session_take_count(op->session);
	/* What was never asked for has moved, too, such as a request too long to be read. */
	if (op->moved_bytes && !op->refused)
		ops_count_bytes(op);
	limits_leave(&op->claim, op->moved_bytes);
	op->moved_bytes = 0;
	op->asked = op->refused = false;
}

/* ---- An operation ---- */

void
ops_begin(struct ops_op *op)
{
	size_t at = metric_shard();
	struct ops_list *l = &lists[at];

	assert(!op->link);
	/* No door works for a client whom the limits were not asked about. */
	assert(op->asked);
	op->computed_before_ns = 0;
	op->computed_before_ns = ops_computed_ns(op);
	wanted_begin(op);
	pthread_mutex_lock(&l->lock);
	atomic_store_explicit(&op->id, ++l->begun * METRIC_SHARDS + at, memory_order_relaxed);
	op->next = l->first;
	op->link = &l->first;
	if (op->next)
		op->next->link = &op->next;
	l->first = op;
	pthread_mutex_unlock(&l->lock);
}

static void
ops_log_refusal(const struct ops_op *op, const struct ops_refusal *refusal)
{
	AUTO(buf_release) struct buf on = BUF_SHORT(2 * AUDIT_VALUE_BYTES);

	if (refusal->on_more.len)
		buf_printf(&on, "%.*s.%.*s", STR_ARG(refusal->on), STR_ARG(refusal->on_more));
	audit_refused(&refusal->by, op->name, on.len ? buf_str(&on) : refusal->on, refusal->status);
}

void
ops_end(struct ops_op *op, const struct ops_refusal *refusal)
{
	struct ops_list *l = ops_list_of(atomic_load_explicit(&op->id, memory_order_relaxed));

	assert(op->link);
	wanted_end(op);
	pthread_mutex_lock(&l->lock);
	*op->link = op->next;
	if (op->next)
		op->next->link = op->link;
	op->link = NULL;
	atomic_store_explicit(&op->id, 0, memory_order_relaxed);
	atomic_store_explicit(&op->killed, false, memory_order_relaxed);
	pthread_mutex_unlock(&l->lock);
	if (refusal)
		ops_log_refusal(op, refusal);
}

enum status
ops_set_user(struct ops_op *op, struct str user, bool limited, struct err *err)
{
	struct ops_list *l = ops_list_of(atomic_load_explicit(&op->id, memory_order_relaxed));
	struct limits *limits = atomic_load_explicit(&limits_of_all, memory_order_acquire);

	assert(op->link && op->asked);
	pthread_mutex_lock(&l->lock);
	op->user = user;
	pthread_mutex_unlock(&l->lock);
	return limits && limited ? limits_enter_person(&op->claim, limits, user, err) : STATUS_OK;
}

/* ---- The registry ---- */

void
ops_each(ops_look *see, void *arg)
{
	for (size_t i = 0; i < METRIC_SHARDS; i++) {
		pthread_mutex_lock(&lists[i].lock);
		for (struct ops_op *op = lists[i].first; op; op = op->next)
			(void)see(arg, op);
		pthread_mutex_unlock(&lists[i].lock);
	}
}

bool
ops_end_one(uint64_t id, ops_look *may, void *arg)
{
	struct ops_list *l = ops_list_of(id);
	struct ops_op *op;
	bool ended;

	pthread_mutex_lock(&l->lock);
	op = l->first;
	while (op && atomic_load_explicit(&op->id, memory_order_relaxed) != id)
		op = op->next;
	ended = op && may(arg, op);
	if (ended) {
		atomic_store_explicit(&op->killed, true, memory_order_relaxed);
		op->door->end(op);
	}
	pthread_mutex_unlock(&l->lock);
	return ended;
}

/* ---- What was slow ---- */

/* Owns which doors have had slow operations. */
static pthread_mutex_t slow_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ops_door *slow_doors;

static void
slow_list_door(struct ops_door *door)
{
	pthread_mutex_lock(&slow_lock);
	if (!door->listed) {
		door->listed = true;
		door->next_slow = slow_doors;
		slow_doors = door;
	}
	pthread_mutex_unlock(&slow_lock);
}

/* What it worked on, in quotes; nothing if the door does not tell. */
static void
slow_write_on(const struct ops_op *op, struct str rest, struct buf *out)
{
	if (!op->on.len)
		return;
	buf_append_cstr(out, " on=\"");
	quote_word(out, op->on, OPS_NAME_BYTES);
	if (op->on_more.len) {
		buf_append_byte(out, '.');
		quote_word(out, op->on_more, OPS_NAME_BYTES);
	}
	buf_append_str(out, rest);
	buf_append_byte(out, '"');
}

static void
slow_write_line(const struct ops_op *op, const struct ops_slow *slow, struct buf *out)
{
	buf_append_cstr(out, "door=");
	buf_append_cstr(out, op->door->name);
	buf_append_cstr(out, " name=");
	quote_word(out, op->name, OPS_NAME_BYTES);
	slow_write_on(op, slow->on_rest, out);
	buf_append_cstr(out, " took_ms=");
	buf_append_u64(out, slow->took_ns / CLOCK_NS_PER_MS);
	buf_append_byte(out, ' ');
	buf_append_str(out, slow->more);
	buf_append_cstr(out, " user=\"");
	quote_word(out, slow->user, OPS_NAME_BYTES);
	buf_append_cstr(out, "\" client=");
	buf_append_cstr(out, op->peer);
}

/* Copies a text behind an entry. */
static struct str
slow_copy(char **at, struct str text)
{
	struct str copy = str_of(*at, text.len);

	if (text.len)
		memcpy(*at, text.ptr, text.len);
	*at += text.len;
	return copy;
}

static void
slow_keep(const struct ops_op *op, const struct ops_slow *slow, struct str line, uint64_t now_ms)
{
	struct str peer = str_from_cstr(op->peer);
	struct ops_slow_entry *e = mem_zalloc(sizeof(*e) + peer.len + slow->client.len +
					      slow->args.len + line.len);
	char *at = (char *)(e + 1);

	if (!e)
		return;
	e->door = op->door;
	e->time_ms = now_ms;
	e->took_ns = slow->took_ns;
	e->peer = slow_copy(&at, peer);
	e->client = slow_copy(&at, slow->client);
	e->args = slow_copy(&at, slow->args);
	e->line = slow_copy(&at, line);
	recent_add(&op->door->slow, &e->entry, slow->keep, NULL, 0);
	slow_list_door(op->door);
}

bool
ops_count_slow(struct ops_door *door)
{
	metric_add(door->slow_count, 1);
	if (log_rate_allows(&door->noted, OPS_SLOW_NOTED_PER_S))
		return true;
	metric_add(door->slow_left_out, 1);
	return false;
}

/* How many operations of the door were slow and not logged since its last line. */
static uint64_t
slow_left_out(struct ops_door *door)
{
	return log_rate_left_out(&door->rate) + log_rate_left_out(&door->noted);
}

/* OPS_SLOW_NOTED_PER_S times a second, so only what is logged is formatted by printf(). */
void
ops_note_slow(const struct ops_op *op, const struct ops_slow *slow)
{
	char room[OPS_LINE_BYTES];
	struct buf line = { .ptr = room, .cap = sizeof(room), .max_bytes = sizeof(room) };
	struct ops_door *door = op->door;
	uint64_t now_ms = clock_wall_ms();
	size_t from;

	buf_append_cstr(&line, "time_ms=");
	buf_append_u64(&line, now_ms);
	buf_append_cstr(&line, " event=slow_operation ");
	from = line.len;
	slow_write_line(op, slow, &line);
	if (buf_status(&line) != STATUS_OK)
		return;
	if (log_rate_allows(&door->rate, OPS_SLOW_LINES_PER_S))
		log_event(door->level, "slow_operation", "%.*s left_out=%llu",
			  STR_ARG(str_skip(buf_str(&line), from)),
			  (unsigned long long)slow_left_out(door));
	if (slow->keep)
		slow_keep(op, slow, buf_str(&line), now_ms);
}

static void
slow_count_ignored(void *arg, size_t count)
{
	(void)arg;
	(void)count;
}

void
ops_each_slow(void (*see)(void *arg, const struct recent_entry *e), void *arg)
{
	struct ops_door *door;

	pthread_mutex_lock(&slow_lock);
	door = slow_doors;
	pthread_mutex_unlock(&slow_lock);
	/* A door that is listed stays so, and what follows it is not changed any more. */
	for (; door; door = door->next_slow)
		recent_show(&door->slow, UINT64_MAX, slow_count_ignored, see, arg);
}
