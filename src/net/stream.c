#include "net/stream.h"

#include <assert.h>

#include "base/budget_room.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metric.h"
#include "net/memory.h"

enum {
	/*
	 * How many slices a fiber still computes when its peer has sent its end and no output has
	 * gone since: 30 ms. Other servers of these protocols drop the answers of such a client.
	 * A client here gets the answers that take little to compute, and hundreds that leave at
	 * once cost no more than some seconds.
	 */
	STREAM_ENDED_SLICES = 200,
};

struct net_stream_loop {
	struct net_stream_options options; /* with every default filled in */
};

/*
 * What a connection has from its first unserved byte until everything is answered. Bytes come into
 * `in` while the fiber is parked; it reads from `held`, which only it touches, so what it was given
 * stays where it is while it writes.
 */
struct net_stream {
	struct net_session session;
	struct net_stream_conn *conn;
	struct buf in;
	struct buf held;
	/*
	 * The memory that the two input buffers take. It is not counted in the session's part,
	 * because another thread may use that one while bytes come: a fiber that waits may have
	 * others write its output.
	 */
	struct budget_part input_part;
	size_t taken;            /* of `held`; consumed by the next peek */
	size_t wanted;           /* bytes, taken ones aside, that the fiber waits for */
	uint64_t came;           /* bytes, in all */
	struct net_pace sending; /* of the peer, while a peek waits for it */
	uint64_t waits_ns;       /* since when bytes wait for memory to be served; 0: they do not */
	bool moved;              /* bytes came, or were taken, since serve() was called */
	bool ending;             /* serve() has returned false */
	bool keeps;              /* the door keeps something that the peer has begun */
	bool looks;              /* the last rest has ended with its time, and by nothing else */
	bool unwanted;           /* and others need the memory */
};

struct net_stream_conn {
	struct net_conn net; /* first: the protocol's callbacks are given this */
	struct net_stream *stream;
};

static struct net_stream_conn *
stream_conn_of(struct net_conn *net)
{
	return (struct net_stream_conn *)net;
}

static const struct net_stream_options *
stream_options(const struct net_conn *net)
{
	return &((const struct net_stream_loop *)net->slot->context)->options;
}

/* ---- Life ---- */

static struct net_stream *
stream_new(struct net_stream_conn *c)
{
	const struct net_stream_options *o = stream_options(&c->net);
	struct net_stream *s = mem_zalloc(sizeof(*s));

	if (!s)
		return NULL;
	net_session_init(&s->session, o->output_bytes);
	s->session.ended_most = STREAM_ENDED_SLICES;
	net_session_begin(&s->session, &c->net);
	net_stream_set_stranger(s, true);
	/* Reading goes on while there is room for a byte: at most one read comes on top. */
	buf_init(&s->in, o->input_bytes + NET_READ_BYTES);
	buf_init(&s->held, o->input_bytes + NET_READ_BYTES);
	budget_part_init(&s->input_part, c->net.loop->memory);
	s->conn = c;
	c->stream = s;
	return s;
}

static void
stream_drop(struct net_stream_conn *c)
{
	struct net_stream *s = c->stream;

	if (!s)
		return;
	c->stream = NULL;
	net_session_end(&s->session);
	net_session_fini(&s->session);
	buf_release(&s->in);
	buf_release(&s->held);
	budget_part_release(&s->input_part);
	mem_free(s);
}

static void
stream_count_input(struct net_stream *s)
{
	net_memory_count_input(&s->input_part, &s->session, s->in.cap + s->held.cap);
}

/* Bytes that came and were not taken. */
static size_t
stream_unread(const struct net_stream *s)
{
	assert(s->taken <= s->held.len);
	return s->in.len + s->held.len - s->taken;
}

/* ---- Serving ---- */

static void stream_settle(struct net_stream_conn *c);

static void
stream_serve(void *arg)
{
	struct net_stream *s = arg;
	const struct net_stream_options *o = stream_options(&s->conn->net);

	task_set_doing(STR("stream"), str_from_cstr(s->conn->net.peer));
	/*
	 * Bytes that come while the fiber is at work begin no other one, so it asks again before it
	 * ends. If serve() took nothing and nothing came, it wants more than there is: the fiber
	 * ends, and the next bytes begin one.
	 */
	do {
		s->moved = false;
		s->ending = !o->serve(s, o->arg);
		arena_clear(s->session.task->arena);
	} while (!s->ending && s->moved && stream_unread(s) && !s->session.conn->lost);
	net_session_send(&s->session);
}

/* On the loop again, with the fiber idle. */
static void
stream_served(void *arg)
{
	struct net_stream *s = arg;
	struct net_stream_conn *c = s->conn;

	net_session_returned(&s->session);
	if (!c->net.lost)
		net_conn_set_timer(&c->net, net_session_watch(&s->session));
	stream_settle(c);
}

/* The memory is exceeded: bytes that have come wait, without a fiber, until others have ended. */
static void
stream_wait_to_run(struct net_stream_conn *c)
{
	struct net_stream *s = c->stream;
	uint64_t now_ns = clock_mono_ns();

	if (!s->waits_ns)
		s->waits_ns = now_ns;
	if (now_ns - s->waits_ns < c->net.loop->memory_wait_ms * CLOCK_NS_PER_MS) {
		net_conn_set_timer(&c->net, clock_after_ms(NET_BEGIN_AGAIN_MS));
		return;
	}
	METRIC_REFUSED("memory_bytes");
	net_conn_abort(&c->net);
}

static void
stream_run(struct net_stream_conn *c)
{
	if (net_session_lacks_room(&c->stream->session)) {
		stream_wait_to_run(c);
		return;
	}
	c->stream->waits_ns = 0;
	net_conn_set_timer(&c->net, WAIT_FOREVER); /* the fiber's waits have their own deadlines */
	if (!net_session_run(&c->stream->session, false, stream_serve, stream_served, c->stream))
		net_conn_abort(&c->net);
}

/* Everything written is sent: closes in such a way that the peer can read it. */
static void
stream_finish(struct net_stream_conn *c)
{
	stream_drop(c);
	(void)net_conn_linger(&c->net);
}

/* No fiber is at work: decides what becomes of the connection. */
static void
stream_settle(struct net_stream_conn *c)
{
	struct net_stream *s = c->stream;

	if (!s || s->session.task)
		return;
	if (c->net.lost) {
		if (c->net.gone) {
			stream_drop(c);
			net_conn_free(&c->net);
		}
		return;
	}
	if (net_session_unsent(&s->session) > 0)
		return; /* stream_written() comes back here */
	if (s->waits_ns && !c->net.loop->stopping)
		return; /* stream_timed_out() has it served, also if the peer has sent its end */
	if (s->ending || c->net.eof || c->net.loop->stopping) {
		stream_finish(c);
		return;
	}
	if (stream_unread(s) == 0)
		stream_drop(c);
	net_conn_set_timer(&c->net, clock_after_ms(c->net.loop->idle_timeout_ms));
	net_conn_update_reading(&c->net);
}

/* ---- The connection's callbacks ---- */

static void
stream_opened(struct net_conn *net)
{
	const struct net_stream_options *o = stream_options(net);
	struct net_stream_conn *c = stream_conn_of(net);

	net_conn_set_timer(net, clock_after_ms(net->loop->idle_timeout_ms));
	if (!net->refused)
		return;
	if (!stream_new(c)) {
		net_conn_close(net);
		return;
	}
	c->stream->ending = true;
	buf_append_str(&c->stream->session.out, o->refusal);
	net_session_send(&c->stream->session);
	net_conn_set_timer(net, net_session_watch(&c->stream->session));
	stream_settle(c);
}

static void
stream_input(struct net_conn *net, struct str data)
{
	struct net_stream_conn *c = stream_conn_of(net);
	struct net_stream *s = c->stream ? c->stream : stream_new(c);

	if (!s) {
		net_conn_abort(net);
		return;
	}
	if (s->ending)
		return; /* nobody is going to ask for it */
	s->came += data.len;
	buf_append_str(&s->in, data);
	if (buf_status(&s->in) != STATUS_OK) {
		net_conn_abort(net);
		return;
	}
	stream_count_input(s);
	s->moved = true;
	if (s->session.task)
		net_session_progress(&s->session);
	else
		stream_run(c);
}

/* How much may have come and not been taken. */
static size_t
stream_input_limit(const struct net_conn *net)
{
	return net_memory_input_bytes(net->loop, stream_options(net)->input_bytes);
}

static bool
stream_wants_input(const struct net_conn *net)
{
	const struct net_stream *s = ((const struct net_stream_conn *)net)->stream;
	size_t unread;

	if (!s || s->ending)
		return true;
	unread = stream_unread(s);
	/* A peek has to get what it waits for, however short the memory is. */
	return unread < s->wanted || unread < stream_input_limit(net);
}

static void
stream_ended(struct net_conn *net)
{
	struct net_stream_conn *c = stream_conn_of(net);

	if (!c->stream) {
		(void)net_conn_linger(net);
		return;
	}
	/* It may have shut down its side only: what it asked before is answered. */
	event_set(&c->stream->session.closed);
	net_session_progress(&c->stream->session);
	stream_settle(c);
}

static void
stream_written(struct net_conn *net)
{
	struct net_stream_conn *c = stream_conn_of(net);
	struct net_session *session = &c->stream->session;

	net_session_written(session);
	if (net->lost)
		return;
	net_session_send(session);
	net_session_progress(session);
	if (!session->task)
		net_conn_set_timer(net, net_session_look(session, 0));
	stream_settle(c);
}

static void
stream_timed_out(struct net_conn *net)
{
	struct net_stream_conn *c = stream_conn_of(net);

	if (c->stream && c->stream->waits_ns)
		stream_run(c);
	else if (!c->stream || net_session_unsent(&c->stream->session) == 0)
		net_conn_close(net); /* idle, or in the middle of a request that serve() left */
	else
		net_conn_set_timer(net, net_session_look(&c->stream->session, 0));
}

static void
stream_stop(struct net_conn *net)
{
	struct net_stream_conn *c = stream_conn_of(net);

	if (!c->stream) {
		net_conn_close(net);
		return;
	}
	net_session_stop(&c->stream->session);
	stream_settle(c);
}

static void
stream_lost(struct net_conn *net)
{
	struct net_stream_conn *c = stream_conn_of(net);

	if (c->stream)
		net_session_lost(&c->stream->session);
}

static bool
stream_closed(struct net_conn *net)
{
	struct net_stream_conn *c = stream_conn_of(net);

	/* A fiber at work frees the connection when it returns: stream_settle(). */
	if (c->stream && c->stream->session.task)
		return false;
	stream_drop(c);
	return true;
}

/* ---- What the door calls, on the fiber ---- */

/* Moves what came to what the fiber reads from. */
static enum status
stream_fetch(struct net_stream *s)
{
	buf_consume(&s->held, s->taken);
	s->taken = 0;
	if (s->held.len == 0) {
		struct buf empty = s->held;

		s->held = s->in;
		s->in = empty;
	} else {
		buf_append_buf(&s->held, &s->in);
	}
	/* An empty buffer is kept for what comes next, unless its memory may be needed. */
	if (budget_is_half_held(s->conn->net.loop->memory))
		buf_release(&s->in);
	else
		buf_clear(&s->in);
	stream_count_input(s);
	return buf_status(&s->held);
}

/* The rest of a request does not come, and others need the memory. */
static void
stream_tell_unwanted(struct net_stream *s)
{
	METRIC_REFUSED("memory_bytes");
	log_event(LOG_LEVEL_INFO, "slow_body", "peer=%s limit=memory_bytes", s->conn->net.peer);
	s->unwanted = true;
}

/* Waits for bytes of the peer. */
static enum net_verdict
stream_wait(struct net_stream *s)
{
	enum net_verdict verdict = net_memory_wait_for_request(&s->session, &s->sending, &s->came);

	/* The rest of a request may take its time. */
	if (s->session.part.lasts)
		budget_part_last(&s->input_part);
	if (verdict == NET_STALLS &&
	    net_session_stall_of(&s->session, &s->sending) == NET_STALL_MEMORY)
		stream_tell_unwanted(s);
	return verdict;
}

enum status
net_stream_peek(struct net_stream *s, size_t n, struct str *ret)
{
	const struct net_conn *net = &s->conn->net;
	enum status status = STATUS_OK;

	*ret = (struct str){ 0 };
	if (n > stream_options(net)->input_bytes)
		return STATUS_LIMIT;
	/* What was taken goes when more comes: not all of the rest is moved for each request. */
	if (!s->in.len && s->held.len - s->taken >= n) {
		*ret = buf_str(&s->held);
		if (s->taken)
			*ret = str_skip(*ret, s->taken);
		return STATUS_OK;
	}
	TRY(stream_fetch(s));
	if (s->held.len < n)
		net_session_send(&s->session); /* the peer may wait for it before it says more */
	s->wanted = n;
	while (s->held.len < n && status == STATUS_OK) {
		net_conn_update_reading(&s->conn->net);
		if (net->lost)
			status = STATUS_CANCELLED;
		else if (net->eof)
			status = STATUS_NOT_FOUND;
		else if (stream_wait(s) != NET_KEEPS_UP)
			status = STATUS_TIMEOUT;
		/* Also at the end: the last bytes may have come together with it. */
		TRY(stream_fetch(s));
	}
	s->wanted = 0;
	if (s->held.len >= n)
		status = STATUS_OK;
	*ret = buf_str(&s->held);
	return status;
}

enum status
net_stream_next(struct net_stream *s, struct str *ret)
{
	*ret = (struct str){ 0 };
	if (event_is_set(&s->session.stopping))
		return STATUS_CANCELLED;
	TRY(net_stream_peek(s, 0, ret));
	if (ret->len)
		net_session_begin_request(&s->session);
	return !ret->len && event_is_set(&s->session.closed) ? STATUS_CANCELLED : STATUS_OK;
}

/*
 * A new request on a fiber that is not at work any more begins when there is room for one more.
 * Those at work end by themselves.
 */
static void
stream_wait_for_room(struct net_stream *s)
{
	struct net_session *session = &s->session;
	struct event *events[] = { &session->stopping, &session->interrupted };
	uint64_t until_ns = 0;

	while (!s->conn->net.lost && net_session_lacks_room(session)) {
		if (!until_ns)
			until_ns = clock_after_ms(session->loop->memory_wait_ms);
		if (clock_mono_ns() >= until_ns) {
			METRIC_REFUSED("memory_bytes");
			net_conn_abort(&s->conn->net);
			break;
		}
		if (event_wait_any(events, 2, clock_after_ms(NET_BEGIN_AGAIN_MS)) < 2)
			break;
	}
	net_session_work(session);
}

static enum status
stream_reserve(struct net_stream *s, size_t bytes)
{
	struct budget_part *part = &s->session.part;

	if (bytes <= BUDGET_FREE_BYTES)
		return STATUS_OK;
	part->exceeded = part->budget && bytes > part->budget->limit_bytes;
	return part->exceeded ? STATUS_LIMIT : net_memory_reserve(&s->session, bytes);
}

enum status
net_stream_read(struct net_stream *s, size_t n, size_t cost, struct buf *ret)
{
	enum status status;
	struct str in;

	stream_wait_for_room(s);
	/* A new request, which is expected to be short. */
	budget_part_end_lasting(&s->session.part);
	s->session.gave_back = false;
	status = stream_reserve(s, cost);
	for (size_t left = n; left;) {
		TRY(net_stream_peek(s, 1, &in));
		if (in.len > left)
			in.len = left;
		if (status == STATUS_OK)
			status = net_memory_append(&s->session, ret, in);
		if (status != STATUS_OK) {
			buf_release(ret);
			budget_settle(&s->session.part);
		}
		net_stream_take(s, in.len);
		left -= in.len;
	}
	net_session_work(&s->session); /* it may have waited for long */
	return status == STATUS_OK ? net_memory_reserve_again(&s->session, cost) : status;
}

bool
net_stream_has_input(const struct net_stream *s)
{
	return s->in.len > 0;
}

/* True if net_stream_rest() has a reason to return. */
static bool
stream_is_roused(const struct net_stream *s, bool input)
{
	const struct net_conn *net = &s->conn->net;

	return net->lost || net->eof || (input && s->in.len) || event_is_set(&s->session.stopping);
}

/* Frees what is not in use while the peer takes its time. */
static void
stream_trim(struct net_stream *s)
{
	if (!s->in.len)
		buf_release(&s->in);
	if (s->held.len == s->taken) {
		s->taken = 0;
		buf_release(&s->held);
	}
	stream_count_input(s);
	net_session_rest(&s->session);
}

/*
 * Waits while the peer, silent since `begun_ns`, owes the rest of what it has begun, unless others
 * need the memory that this takes: when it is used up, it does not wait at all. The first of the
 * `events` is set here: the one that tells that others need memory.
 */
static void
stream_wait_for_rest(struct net_stream *s, struct event **events, size_t count, uint64_t begun_ns,
		     uint64_t deadline_ns)
{
	uint64_t now_ns, look_ns;
	size_t woken;

	while ((now_ns = clock_mono_ns()) < deadline_ns) {
		if (!net_session_has_patience(&s->session, now_ns - begun_ns)) {
			stream_tell_unwanted(s);
			return; /* stalled: no more memory comes until the connection has ended */
		}
		look_ns = clock_after_ms(NET_PATIENCE_LOOK_MS);
		events[0] = net_session_unwanted_event(&s->session);
		woken = event_wait_any(events, count,
				       look_ns < deadline_ns ? look_ns : deadline_ns);
		if (woken && woken < count)
			break;
	}
	if (!s->conn->net.lost)
		net_session_unstall(&s->session);
}

/* Waits until then, or until one of them is set. True: none was. */
static bool
none_is_set_until(struct event **events, size_t count, uint64_t deadline_ns)
{
	return event_wait_any(events, count, deadline_ns) == count;
}

/*
 * Waits for input or one of the other events. Memory that is not in use meanwhile is given back
 * after a moment, or at once where the last wait has ended with its deadline: then the door has
 * only looked at something, and goes on waiting. Returns true if this wait ends so.
 */
static bool
stream_rest(struct net_stream *s, struct event *other, uint64_t deadline_ns, bool owes)
{
	struct net_session *session = &s->session;
	struct event *events[] = { NULL, &session->progress, &session->stopping, other };
	size_t count = other ? 4 : 3;
	uint64_t begun_ns = clock_mono_ns();
	uint64_t patience_ns = begun_ns + NET_STREAM_PATIENCE_MS * CLOCK_NS_PER_MS;

	if (patience_ns > deadline_ns)
		patience_ns = deadline_ns;
	/* Otherwise a connection that is woken again and again would be at work all the time. */
	if (net_session_is_pressed(session))
		net_session_pause(session);
	/* Nothing can set it between the look above and this line: see net_session_wait(). */
	event_init(&session->progress);
	net_conn_update_reading(&s->conn->net);
	if (!s->looks) {
		if (!none_is_set_until(events + 1, count - 1, patience_ns))
			return false;
		if (patience_ns == deadline_ns)
			return true;
	}
	stream_trim(s);
	if (!owes)
		return none_is_set_until(events + 1, count - 1, deadline_ns);
	stream_wait_for_rest(s, events, count, begun_ns, deadline_ns);
	return false;
}

void
net_stream_rest(struct net_stream *s, enum net_rest rest, struct event *other, uint64_t deadline_ns)
{
	bool input = rest != NET_REST_WAITING;
	bool owes = input && s->keeps;

	net_session_send(&s->session);
	/*
	 * What is left of a request has no part in what is for short ones, although its pieces may
	 * come one right after the other.
	 */
	if (owes) {
		budget_part_last(&s->session.part);
		budget_part_last(&s->input_part);
	}
	if (stream_is_roused(s, input)) {
		s->looks = false;
	} else {
		/* A client that asks for nothing keeps no other one from being alone. */
		task_rest();
		/* The door may have left the beginning of a request, and needs more of it. */
		if (input && stream_unread(s) < stream_options(&s->conn->net)->input_bytes)
			s->wanted = stream_unread(s) + 1;
		s->looks = stream_rest(s, other, deadline_ns, owes);
		s->wanted = 0;
		task_rouse();
	}
	if (!input || !s->in.len) {
		if (rest != NET_REST_IDLE)
			net_session_work(&s->session);
		return;
	}
	stream_wait_for_room(s);
	net_conn_note_request(&s->conn->net);
	/* More of the same is nothing new: piece by piece, it would have no bound. */
	if (!owes)
		budget_part_end_lasting(&s->session.part);
}

void
net_stream_keep(struct net_stream *s, bool keeps)
{
	s->keeps = keeps;
}

bool
net_stream_is_unwanted(const struct net_stream *s)
{
	return s->unwanted;
}

void
net_stream_take(struct net_stream *s, size_t n)
{
	assert(n <= s->held.len - s->taken);
	s->taken += n;
	s->session.taken_bytes += n;
	s->moved |= n > 0;
}

enum status
net_stream_write(struct net_stream *s, struct str data)
{
	return net_session_put(&s->session, data);
}

void
net_stream_give_up_on(struct net_stream *s, struct net_patience patience)
{
	net_session_give_up_on(&s->session, patience);
}

void
net_stream_flush(struct net_stream *s)
{
	net_session_send(&s->session);
}

bool
net_stream_is_lost(const struct net_stream *s)
{
	return s->conn->net.lost;
}

void
net_stream_set_stranger(struct net_stream *s, bool is_stranger)
{
	s->session.part.most_bytes = is_stranger ? NET_STRANGER_BYTES : 0;
}

struct str
net_stream_peer(const struct net_stream *s)
{
	return str_from_cstr(s->conn->net.peer);
}

bool
net_stream_is_secure(const struct net_stream *s)
{
	return net_conn_is_secure(&s->conn->net);
}

void
net_stream_local(const struct net_stream *s, char ret[static NET_PEER_BYTES])
{
	const struct net_conn *c = &s->conn->net;

	*ret = '\0';
	if (c->slot->io->local)
		c->slot->io->local(c, ret);
}

struct net_session *
net_stream_session(struct net_stream *s)
{
	return &s->session;
}

struct arena *
net_stream_arena(struct net_stream *s)
{
	return s->session.task->arena;
}

struct event *
net_stream_closed_event(struct net_stream *s)
{
	return &s->session.closed;
}

bool
net_stream_is_leaving(const struct net_stream *s)
{
	return net_session_is_leaving(&s->session);
}

struct event *
net_stream_stopping_event(struct net_stream *s)
{
	return &s->session.stopping;
}

/* ---- Loops ---- */

#define DEFAULT(field, value)                                                                      \
	do {                                                                                       \
		if (!(field))                                                                      \
			(field) = (value);                                                         \
	} while (0)

static void *
stream_loop_new(struct net_loop *net, void *options)
{
	struct net_stream_loop *l = mem_zalloc(sizeof(*l));

	(void)net;
	if (!l)
		return NULL;
	l->options = *(const struct net_stream_options *)options;
	DEFAULT(l->options.input_bytes, NET_STREAM_INPUT_BYTES);
	DEFAULT(l->options.output_bytes, NET_STREAM_OUTPUT_BYTES);
	return l;
}

const struct net_protocol net_stream_protocol = {
	.name = "stream",
	.conn_bytes = sizeof(struct net_stream_conn),
	.loop_new = stream_loop_new,
	.loop_free = mem_free,
	.opened = stream_opened,
	.input = stream_input,
	.wants_input = stream_wants_input,
	.ended = stream_ended,
	.written = stream_written,
	.timed_out = stream_timed_out,
	.stop = stream_stop,
	.lost = stream_lost,
	.closed = stream_closed,
};
