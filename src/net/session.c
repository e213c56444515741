#include "net/session.h"

#include <assert.h>
#include <stddef.h>

#include "base/budget_room.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metric.h"

static void net_session_count_output(struct net_session *s);

/* ---- Life ---- */

void
net_session_init(struct net_session *s, size_t output_bytes)
{
	size_t out_bytes = output_bytes + NET_SPARE_BYTES;

	*s = (struct net_session){ .output_bytes = output_bytes, .ended_most = NET_ENDED_SLICES };
	buf_init(&s->out, out_bytes);
	buf_init(&s->flying, out_bytes);
}

void
net_session_fini(struct net_session *s)
{
	assert(!s->task);
	budget_part_release(&s->part);
	budget_part_release(&s->work);
	buf_release(&s->out);
	buf_release(&s->flying);
}

void
net_session_begin(struct net_session *s, struct net_conn *c)
{
	assert(!s->conn && !s->task && s->out.len == 0 && s->flying.len == 0);
	s->conn = c;
	s->loop = c->loop;
	s->write.conn = c;
	s->limits.min_rate_bytes = c->loop->min_rate_bytes;
	s->limits.window_ms = c->loop->rate_window_ms;
	s->limits.stall_ms = c->loop->stall_timeout_ms;
	s->reading = (struct net_pace){ 0 };
	s->looked = (struct net_pace){ 0 };
	s->gave_back = false;
	budget_part_init(&s->part, c->loop->memory);
	budget_part_init(&s->work, c->loop->memory);
	event_init(&s->progress);
	event_init(&s->unwanted);
	event_init(&s->closed);
	event_init(&s->lost);
	event_init(&s->stopping);
	event_init(&s->interrupted);
	if (c->loop->stopping)
		event_set(&s->stopping);
}

static void
net_session_trim(struct buf *b)
{
	if (b->cap > NET_SPARE_BYTES)
		buf_release(b);
	else
		buf_clear(b);
}

void
net_session_end(struct net_session *s)
{
	assert(!s->task);
	net_session_trim(&s->out);
	net_session_trim(&s->flying);
	budget_part_release(&s->part);
	budget_part_release(&s->work);
	s->slices = s->ended_slices = 0;
	s->left = 0;
	s->hook.let_go = NULL;
	s->conn = NULL;
}

/*
 * While more has come than the protocol wants, nothing is read, and the peer's end would not be
 * noticed. This looks for it now and then. Afterwards the connection may be lost, or `closed` set.
 */
static void
net_session_probe(struct net_session *s)
{
	struct net_conn *c = s->conn;

	if (c->lost || c->reading || c->eof || ++s->slices % NET_PROBE_SLICES)
		return;
	switch (c->slot->io->probe(c)) {
	case NET_PEER_THERE:
		return;
	case NET_PEER_GONE:
		net_conn_abort(c);
		return;
	case NET_PEER_ENDED:
		break;
	}
	event_set(&s->closed);
}

bool
net_session_is_wanted(struct net_session *s)
{
	net_session_probe(s);
	if (s->conn->lost || net_session_is_interrupted(s))
		return false;
	if (s->conn->eof)
		event_set(&s->closed);
	return !event_is_set(&s->closed) || ++s->ended_slices <= s->ended_most;
}

static enum status
net_session_ask(void *session)
{
	return net_session_is_wanted(session) ? STATUS_OK : STATUS_CANCELLED;
}

/* That the peer has left is told by an event, to those who need not wait for it any more. */
static enum status
net_session_ask_waiting(void *session)
{
	const struct net_session *s = session;
	const struct event *given_up = s->patience.event;

	return given_up && event_is_set(given_up) ? STATUS_CANCELLED : STATUS_OK;
}

void
net_session_work(struct net_session *s)
{
	if (!s->work.used_bytes)
		budget_count(&s->work, NET_WORK_BYTES);
}

void
net_session_pause(struct net_session *s)
{
	budget_unuse(&s->work, s->work.used_bytes);
}

bool
net_session_lacks_room(const struct net_session *s)
{
	return !s->work.used_bytes && !budget_has_room(s->loop->memory);
}

bool
net_session_run(struct net_session *s, bool soon, void (*fn)(void *arg), void (*done)(void *arg),
		void *arg)
{
	assert(!s->task);
	s->task = task_take(&s->loop->loop);
	if (!s->task)
		return false;
	arena_set_part(s->task->arena, &s->part);
	budget_enter(&s->part);
	net_session_work(s);
	s->task->steps.limit = s->loop->request_steps;
	s->task->steps.owner = (struct step_owner){ net_session_ask, net_session_ask_waiting, s };
	net_conn_note_request(s->conn);
	if (soon)
		task_start_soon(s->task, fn, done, arg);
	else
		task_start(s->task, fn, done, arg);
	return true;
}

void
net_session_returned(struct net_session *s)
{
	task_put(s->task);
	s->task = NULL;
	net_session_pause(s);
	s->hook.let_go = NULL;
	/* The rest of the output may take its time. */
	if (net_session_unsent(s)) {
		net_session_count_output(s);
		budget_part_last(&s->part);
	}
	budget_settle(&s->part);
}

/* ---- Waiting ---- */

/* The budget tells that this session is to make room for others. Its lock is held. */
static void
net_session_told(struct budget_part *p)
{
	/*
	 * Any thread. The session cannot go away under this call: before that its part is released,
	 * which takes the lock.
	 */
	event_set(&((struct net_session *)((char *)p - offsetof(struct net_session, part)))
			   ->unwanted);
}

/* The peer is waited for now, or still is: then it has stalled since the first such call. */
static void
net_session_stall(struct net_session *s)
{
	/* A part that does not last has asked for what it holds, and has that for itself. */
	if (!s->part.lasts || s->part.stalls)
		return;
	event_init(&s->unwanted); /* first: the budget may tell as soon as the part stalls */
	budget_stall(&s->part, net_session_told);
}

struct event *
net_session_unwanted_event(struct net_session *s)
{
	net_session_stall(s);
	return &s->unwanted;
}

/* The peer has moved something, or is not waited for any more. */
void
net_session_unstall(struct net_session *s)
{
	if (!s->part.stalls)
		return;
	budget_unstall(&s->part);
	event_init(&s->unwanted);
}

/* What a peer that is waited for has to keep now: its limits, or little patience. */
static struct net_pace_limits
net_session_limits(const struct net_session *s)
{
	struct net_pace_limits limits = s->limits;
	bool full;

	if (s->loop->stopping && limits.stall_ms > NET_STOP_STALL_MS)
		limits.stall_ms = NET_STOP_STALL_MS;
	if (budget_is_unwanted(&s->part)) {
		limits.stall_ms = 1;
		return limits;
	}
	if (!budget_is_unwelcome(&s->part, &full)) {
		/* The rest of a request for which others wait with theirs. */
		full = false;
		if (!s->gave_back ||
		    !atomic_load_explicit(&s->part.budget->waiting, memory_order_relaxed))
			return limits;
	}
	if (full)
		limits.stall_ms = 1;
	else if (limits.stall_ms > NET_UNWELCOME_MS)
		limits.stall_ms = NET_UNWELCOME_MS;
	return limits;
}

bool
net_session_has_patience(const struct net_session *s, uint64_t silent_ns)
{
	struct net_pace_limits limits = net_session_limits(s);

	return limits.stall_ms == s->limits.stall_ms ||
	       silent_ns < limits.stall_ms * CLOCK_NS_PER_MS;
}

enum net_verdict
net_session_judge(struct net_session *s, struct net_pace *pace, uint64_t waited_ns, uint64_t bytes)
{
	struct net_pace_limits limits = net_session_limits(s);
	enum net_verdict verdict = net_pace_count(pace, &limits, waited_ns, bytes);

	if (!pace->silent_ns)
		net_session_unstall(s);
	return verdict;
}

enum net_stall
net_session_stall_of(const struct net_session *s, const struct net_pace *pace)
{
	if (pace->silent_ns >= s->limits.stall_ms * CLOCK_NS_PER_MS)
		return NET_STALL_SETTING;
	if (s->loop->stopping && pace->silent_ns >= NET_STOP_STALL_MS * CLOCK_NS_PER_MS)
		return NET_STALL_STOP;
	return NET_STALL_MEMORY;
}

void
net_session_progress(struct net_session *s)
{
	event_set(&s->progress);
}

/* When the fiber gives up on its peer, as far as the clock tells. */
static uint64_t
net_session_patience_ns(const struct net_session *s)
{
	return s->patience.until_ns ? s->patience.until_ns(s->patience.arg) : UINT64_MAX;
}

/* When a wait of `most_ns` that begins now ends: in time to ask until_ns() again. */
static uint64_t
net_session_wait_until_ns(const struct net_session *s, uint64_t begun_ns, uint64_t most_ns)
{
	uint64_t patience_ns = net_session_patience_ns(s);
	uint64_t look_ns = NET_PATIENCE_LOOK_MS * CLOCK_NS_PER_MS;
	uint64_t until_ns;

	/* The memory may become short meanwhile, too. */
	if ((s->patience.until_ns || (s->part.lasts && !s->part.admitted)) && most_ns > look_ns)
		most_ns = look_ns;
	until_ns = begun_ns + most_ns;
	return until_ns < patience_ns ? until_ns : patience_ns;
}

uint64_t
net_session_wait(struct net_session *s, const struct net_pace *pace, uint64_t most_ns)
{
	struct net_pace_limits limits = net_session_limits(s);
	uint64_t left_ns = net_pace_left_ns(pace, &limits);
	struct event *given_up = s->patience.event;
	struct event *events[] = { &s->progress, &s->unwanted, &s->interrupted, given_up };
	uint64_t begun_ns = clock_mono_ns();
	uint64_t until_ns = net_session_wait_until_ns(s, begun_ns,
						      left_ns < most_ns ? left_ns : most_ns);
	uint64_t now_ns;

	/*
	 * Nothing can set the event between the caller's look at the connection and this line: the
	 * callbacks that set it run on this thread, and only while the fiber is parked.
	 */
	event_init(&s->progress);
	net_session_stall(s);
	(void)event_wait_any(events, given_up ? 4 : 3, until_ns);
	now_ns = clock_mono_ns();
	if ((given_up && event_is_set(given_up)) || net_session_is_interrupted(s) ||
	    now_ns >= net_session_patience_ns(s))
		net_conn_abort(s->conn);
	return now_ns - begun_ns;
}

void
net_session_give_up_on(struct net_session *s, struct net_patience patience)
{
	s->patience = patience;
}

void
net_session_interrupt(struct net_session *s)
{
	/* First, so that a fiber that the other event wakes knows why. */
	event_set(&s->interrupted);
	event_set(&s->closed);
}

void
net_session_lost(struct net_session *s)
{
	event_set(&s->lost);
	event_set(&s->closed);
	net_session_progress(s);
}

/* ---- Output ---- */

/* Counts the memory of the output in the session's budget part. */
static void
net_session_count_output(struct net_session *s)
{
	const struct net_io *io = s->conn->slot->io;
	size_t carried = io->output_bytes ? io->output_bytes(s->conn) : 0;

	budget_count_output(&s->part, s->out.cap + s->flying.cap + carried);
}

size_t
net_session_unsent(const struct net_session *s)
{
	size_t flying = 0;

	/* Even when all is written, the buffer is in use until net_session_written(). */
	if (s->flying.len) {
		flying = s->conn->slot->io->unwritten(s->conn);
		if (!flying)
			flying = 1;
	}
	return s->out.len + flying;
}

void
net_session_written(struct net_session *s)
{
	buf_clear(&s->flying);
}

/* Bytes of the output that the peer's side has not got, as far as that is known. */
static size_t
net_session_left(const struct net_session *s)
{
	const struct net_io *io = s->conn->slot->io;

	return net_session_unsent(s) + (io->unconfirmed ? io->unconfirmed(s->conn) : 0);
}

size_t
net_session_moved(struct net_session *s)
{
	size_t before = s->left;

	s->left = net_session_left(s);
	return before > s->left ? before - s->left : 0;
}

void
net_session_cut(struct net_session *s, enum net_verdict verdict)
{
	const char *limit = "body_timeout_ms";

	assert(verdict != NET_KEEPS_UP);
	if (verdict == NET_IS_SLOW) {
		METRIC_REFUSED("min_rate_bytes");
		limit = "min_rate_bytes";
	} else {
		switch (net_session_stall_of(s, &s->reading)) {
		case NET_STALL_SETTING:
			METRIC_REFUSED("body_timeout_ms");
			break;
		case NET_STALL_STOP:
			METRIC_REFUSED("drain_timeout_ms");
			limit = "drain_timeout_ms";
			break;
		case NET_STALL_MEMORY:
			METRIC_REFUSED("memory_bytes");
			limit = "memory_bytes";
			break;
		}
	}
	log_event(LOG_LEVEL_INFO, "slow_reader", "peer=%s limit=%s", s->conn->peer, limit);
	net_conn_abort(s->conn);
}

/* When to look after the peer next: no fiber waits for what the budget tells. */
static uint64_t
net_session_look_at_ns(const struct net_session *s, uint64_t now_ns)
{
	struct net_pace_limits limits = net_session_limits(s);
	uint64_t left_ns = net_pace_left_ns(&s->reading, &limits);
	uint64_t look_ns = NET_PATIENCE_LOOK_MS * CLOCK_NS_PER_MS;

	return now_ns + (s->part.lasts && left_ns > look_ns ? look_ns : left_ns);
}

uint64_t
net_session_watch(struct net_session *s)
{
	s->reading = (struct net_pace){ 0 };
	s->left = net_session_unsent(s) ? net_session_left(s) : 0; /* mostly all is sent */
	s->look_ns = clock_mono_ns();
	net_session_unstall(s);
	net_session_stall(s);
	return net_session_look_at_ns(s, s->look_ns);
}

uint64_t
net_session_look(struct net_session *s, uint64_t came_bytes)
{
	uint64_t now_ns = clock_mono_ns();
	enum net_verdict verdict = net_session_judge(s, &s->reading, now_ns - s->look_ns,
						     net_session_moved(s) + came_bytes);

	s->look_ns = now_ns;
	if (verdict == NET_KEEPS_UP) {
		net_session_stall(s);
		return net_session_look_at_ns(s, now_ns);
	}
	net_session_cut(s, verdict);
	return WAIT_FOREVER;
}

void
net_session_stop(struct net_session *s)
{
	event_set(&s->stopping);
	/* Who waits for the peer judges it anew. */
	net_session_progress(s);
	if (!s->task && net_session_unsent(s))
		net_conn_set_timer(s->conn, net_session_look(s, 0));
}

METRIC_COUNTER(sent, "frond_net_sent_bytes_total", METRIC_BYTES,
	       "Bytes of answers that were given to the system.");

/* Sends `out` and of `data` what goes right behind it. Returns how much of `data`. */
static size_t
net_session_send_both(struct net_session *s, struct str data)
{
	struct net_conn *c = s->conn;
	const struct net_io *io = c->slot->io;
	struct str pieces[2];
	struct buf spare;
	size_t count = 0;
	size_t went;
	ssize_t n;

	if (c->lost || s->flying.len || s->out.len + data.len == 0)
		return 0;
	if (data.len > INT32_MAX)
		data.len = INT32_MAX;
	if (s->out.len)
		pieces[count++] = buf_str(&s->out);
	if (data.len)
		pieces[count++] = data;
	n = io->try_write(c, pieces, count);
	if (n < 0) {
		net_conn_abort(c);
		return 0;
	}
	went = (size_t)n;
	/* A peer that has left answers these bytes with a reset; nothing else needs to find out. */
	if (went)
		s->ended_slices = 0;
	metric_add(&sent, went);
	assert(went <= s->out.len + data.len);
	if (went >= s->out.len) {
		went -= s->out.len;
		buf_clear(&s->out);
		return went;
	}
	/*
	 * The two buffers change places: what is left flies, and the fiber gathers into the other
	 * one. The write refers to `flying` until net_session_written(), so it is not touched
	 * before; the check at the top sees to that.
	 */
	spare = s->flying;
	s->flying = s->out;
	s->out = spare;
	buf_clear(&s->out);
	metric_add(&sent, s->flying.len - went);
	if (!io->write(c, &s->write, str_skip(buf_str(&s->flying), went)))
		net_conn_abort(c);
	return 0;
}

void
net_session_send(struct net_session *s)
{
	(void)net_session_send_both(s, (struct str){ 0 });
}

size_t
net_session_output_limit(const struct net_session *s)
{
	size_t least = s->output_bytes < NET_OUTPUT_LEAST_BYTES ? s->output_bytes
								: NET_OUTPUT_LEAST_BYTES;

	if (!s->part.budget)
		return s->output_bytes;
	return budget_output_portion(s->part.budget, s->output_bytes, least);
}

struct net_wait_hook
net_session_on_wait(struct net_session *s, struct net_wait_hook hook)
{
	struct net_wait_hook before = s->hook;

	s->hook = hook;
	return before;
}

void
net_session_rest(struct net_session *s)
{
	if (!s->out.len)
		buf_release(&s->out);
	if (!s->flying.len)
		buf_release(&s->flying);
	net_session_count_output(s);
	net_session_pause(s);
	budget_part_last(&s->part);
	arena_trim(s->task->arena);
	wait_trim();
}

bool
net_session_is_pressed(const struct net_session *s)
{
	const struct budget *b = s->part.budget;

	return b && (budget_is_wanted(b) || budget_is_half_held(b));
}

/* Lets go of what the fiber can do without. Returns true if the connection progressed meanwhile. */
static bool
net_session_let_go(struct net_session *s)
{
	event_init(&s->progress);
	if (!net_session_is_pressed(s) && event_wait(&s->progress, clock_after_ms(NET_PATIENCE_MS)))
		return true;
	/* This may park, since reads that are on their way have to end. */
	s->hook.let_go(s->hook.arg);
	budget_settle(&s->part);
	net_session_rest(s);
	return event_is_set(&s->progress) || s->conn->lost;
}

/* Parks until the peer reads, or has failed to for too long. Returns how long that took. */
static uint64_t
net_session_wait_for_peer(struct net_session *s)
{
	uint64_t begun_ns = clock_mono_ns();

	net_session_count_output(s);
	budget_part_last(&s->part);
	if (!s->hook.let_go || !net_session_let_go(s)) {
		net_session_pause(s);
		(void)net_session_wait(s, &s->reading, UINT64_MAX);
	}
	net_session_work(s);
	return clock_mono_ns() - begun_ns;
}

enum status
net_session_wait_unsent(struct net_session *s, size_t most)
{
	while (!s->conn->lost && net_session_unsent(s) > most) {
		enum net_verdict verdict;
		uint64_t waited_ns;

		net_session_send(s);
		if (s->conn->lost || net_session_unsent(s) <= most)
			break;
		(void)net_session_moved(s); /* what came through while nobody waited */
		waited_ns = net_session_wait_for_peer(s);
		if (s->conn->lost)
			break;
		verdict = net_session_judge(s, &s->reading, waited_ns, net_session_moved(s));
		if (verdict != NET_KEEPS_UP)
			net_session_cut(s, verdict);
	}
	/*
	 * The kernel may have taken enough of the output although the peer has confirmed nothing of
	 * it. Whatever the fiber waits for next, such as changes, it does not wait for the peer, so
	 * the session no longer stalls. A session whose connection is lost still counts as one that
	 * stalls, or that was told to end, until its memory is given back.
	 */
	if (!s->conn->lost)
		net_session_unstall(s);
	return s->conn->lost ? STATUS_CANCELLED : STATUS_OK;
}

size_t
net_session_put_now(struct net_session *s, struct str data)
{
	if (s->out.len + data.len < NET_FLUSH_BYTES)
		return 0;
	return net_session_send_both(s, data);
}

enum status
net_session_put(struct net_session *s, struct str data)
{
	data = str_skip(data, net_session_put_now(s, data));
	while (!s->conn->lost && data.len) {
		size_t limit = net_session_output_limit(s);
		size_t unsent = net_session_unsent(s);
		size_t room = unsent < limit ? limit - unsent : 0;
		size_t n = data.len < room ? data.len : room;

		buf_append(&s->out, data.ptr, n);
		if (buf_status(&s->out) != STATUS_OK) {
			net_conn_abort(s->conn);
			return STATUS_CANCELLED;
		}
		data = str_skip(data, n);
		if (s->out.len >= NET_FLUSH_BYTES)
			net_session_send(s);
		/* At once: otherwise thousands could each find that there is no output yet. */
		if (s->out.cap + s->flying.cap > NET_FLUSH_BYTES)
			net_session_count_output(s);
		if (data.len)
			TRY(net_session_wait_unsent(s, limit / 2));
	}
	return s->conn->lost ? STATUS_CANCELLED : STATUS_OK;
}
