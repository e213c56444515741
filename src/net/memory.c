#include "net/memory.h"

#include "base/budget_room.h"
#include "base/clock.h"
#include "base/metric.h"
#include "loop/turn.h"

/* ---- Of a request ---- */

static uint64_t
net_memory_deadline_ns(const struct net_session *s)
{
	return clock_after_ms(s->loop->memory_wait_ms);
}

/*
 * What ends a wait for a turn. `closed` is also set when the peer has only ended its sending side,
 * and it may still wait for the answer; then only the loss of the connection ends the wait.
 */
static struct event *
net_memory_stop(struct net_session *s)
{
	return event_is_set(&s->closed) ? &s->lost : &s->closed;
}

enum status
net_memory_reserve(struct net_session *s, size_t n)
{
	enum status status;

	net_session_pause(s);
	status = budget_ask(&s->part, n, net_memory_deadline_ns(s), &s->closed);
	net_session_work(s);
	return status;
}

enum status
net_memory_turn_to_read(struct net_session *s, size_t n)
{
	if (s->conn->lost)
		return STATUS_CANCELLED;
	/* There is a queue, and thousands may be in it. */
	if (s->part.budget && budget_is_wanted(s->part.budget))
		net_session_rest(s);
	/* What it reads with is of the turn: hundreds are granted at the same moment. */
	net_session_pause(s);
	return budget_ask_to_read(&s->part, n, net_memory_deadline_ns(s), net_memory_stop(s));
}

size_t
net_memory_page_bytes(const struct net_session *s, size_t most, size_t least)
{
	const struct budget *b = s->part.budget;
	size_t n = b ? b->limit_bytes / (2 * BUDGET_READ_SHARE) : most;

	n = n < most ? n : most;
	if (budget_is_half_held(b))
		n = budget_portion(b, n, least);
	return n > least ? n : least;
}

size_t
net_memory_stretch_bytes(const struct net_session *s)
{
	const struct budget *b = s->part.budget;
	size_t n;

	if (!b)
		return 0;
	n = b->limit_bytes / NET_MEMORY_STRETCH_SHARE /
	    (1 + atomic_load_explicit(&b->parts, memory_order_relaxed));
	if (n > NET_MEMORY_STRETCH_MOST)
		return NET_MEMORY_STRETCH_MOST;
	return n > NET_MEMORY_STRETCH_LEAST ? n : NET_MEMORY_STRETCH_LEAST;
}

enum status
net_memory_turn_to_last(struct net_session *s, size_t n)
{
	enum status status;

	if (s->conn->lost)
		return STATUS_CANCELLED;
	net_session_pause(s);
	status = budget_ask_to_last(&s->part, n, net_memory_deadline_ns(s), net_memory_stop(s));
	net_session_work(s);
	return status;
}

enum status
net_memory_await_more(struct net_session *s, size_t *asked)
{
	size_t bytes = *asked ? *asked * NET_MEMORY_GROWTH : NET_MEMORY_FIRST_BYTES;
	size_t most = s->part.budget ? budget_askable(s->part.budget, bytes) : *asked;

	budget_settle(&s->part);
	if (most <= *asked || s->conn->lost || s->loop->stopping)
		return STATUS_LIMIT;
	*asked = most;
	s->part.refused = s->part.exceeded = false;
	return net_memory_reserve(s, most);
}

bool
net_memory_should_ask(struct net_session *s)
{
	struct budget_part *p = &s->part;

	if (!p->budget || p->asked_bytes || p->used_bytes <= NET_MEMORY_UNASKED_BYTES ||
	    !budget_is_half_held(p->budget))
		return false;
	p->refused = true;
	return true;
}

enum status
net_memory_append(struct net_session *s, struct buf *b, struct str more)
{
	s->part.refused = false;
	buf_append_str(b, more);
	if (buf_status(b) == STATUS_OK || !s->part.refused || b->len > NET_MEMORY_LITTLE_BYTES)
		return buf_status(b);
	TRY(net_memory_reserve(s, 2 * (b->len + more.len))); /* the buffer grows by doubling */
	b->failed = STATUS_OK;
	buf_append_str(b, more);
	return buf_status(b);
}

enum status
net_memory_refuse(const struct net_session *s, struct err *err)
{
	if (s->part.exceeded && s->part.most_bytes) {
		METRIC_REFUSED("NET_STRANGER_BYTES");
		return err_set(err, STATUS_LIMIT,
			       "nobody has logged in, and until then a request may have no more "
			       "than %zu bytes, a quarter of the limit NET_STRANGER_BYTES",
			       s->part.most_bytes / 4);
	}
	METRIC_REFUSED("memory_bytes");
	return err_set(err, STATUS_LIMIT,
		       "there is no memory for the request or its answer: the limit for all of "
		       "them, memory_bytes, is %zu bytes",
		       s->part.budget ? s->part.budget->limit_bytes : 0);
}

/* How long to wait for the rest of a request until the next look at the memory that it holds. */
static uint64_t
net_memory_look_after_ns(const struct net_session *s)
{
	uint64_t look_ns = NET_MEMORY_LOOK_MS * CLOCK_NS_PER_MS;

	/* What is on its way arrives at once; what waits for longer lasts. */
	if (!s->part.asked_bytes)
		return s->part.lasts ? UINT64_MAX : NET_PATIENCE_MS * CLOCK_NS_PER_MS;
	return look_ns > s->looked.waited_ns ? look_ns - s->looked.waited_ns : 1;
}

static void
net_memory_give_back(struct net_session *s, uint64_t waited_ns, uint64_t came)
{
	uint64_t look_ns = NET_MEMORY_LOOK_MS * CLOCK_NS_PER_MS;
	uint64_t passed_ns;

	if (!s->part.asked_bytes)
		return;
	s->looked.waited_ns += waited_ns;
	s->looked.bytes += came;
	passed_ns = s->looked.waited_ns;
	if (passed_ns < look_ns)
		return;
	if (s->looked.bytes * look_ns < NET_MEMORY_LOOK_BYTES * passed_ns &&
	    atomic_load_explicit(&s->part.budget->waiting, memory_order_relaxed) > 0) {
		budget_settle(&s->part);
		s->gave_back = true;
	}
	s->looked = (struct net_pace){ 0 };
}

enum net_verdict
net_memory_wait_for_request(struct net_session *s, struct net_pace *sending, const uint64_t *came)
{
	uint64_t before = *came;
	uint64_t waited_ns;

	if (sending->silent_ns) {
		/* What has been asked for is a turn to begin, and has a share of its own. */
		if (!s->part.asked_bytes)
			budget_part_last(&s->part);
		net_session_pause(s);
		wait_trim();
	}
	waited_ns = net_session_wait(s, sending, net_memory_look_after_ns(s));
	net_memory_give_back(s, waited_ns, *came - before);
	return net_session_judge(s, sending, waited_ns, *came - before);
}

enum status
net_memory_reserve_again(struct net_session *s, size_t n)
{
	size_t want = s->gave_back ? budget_askable(s->part.budget, n) : 0;

	s->gave_back = false;
	if (want <= s->part.taken_bytes)
		return STATUS_OK;
	return net_memory_reserve(s, want - s->part.taken_bytes);
}

/* ---- Input ---- */

void
net_memory_count_input(struct budget_part *input, const struct net_session *s, size_t bytes)
{
	budget_count_all(input, bytes);
	if (!bytes)
		budget_part_end_lasting(input);
	else if (s->part.lasts)
		budget_part_last(input);
}

size_t
net_memory_input_bytes(const struct net_loop *l, size_t most)
{
	size_t least = most < NET_MEMORY_INPUT_LEAST_BYTES ? most : NET_MEMORY_INPUT_LEAST_BYTES;

	return budget_is_half_held(l->memory) ? budget_portion(l->memory, most, least) : most;
}

/* ---- Parts of their own ---- */

void
net_memory_part_init(struct budget_part *p, const struct budget_part *of, bool works)
{
	budget_part_init(p, of ? of->budget : NULL);
	if (works)
		budget_enter(p);
}

void
net_memory_part_keep(struct budget_part *p)
{
	budget_part_last(p);
}

void
net_memory_part_unkeep(struct budget_part *p)
{
	budget_part_end_lasting(p);
}

bool
net_memory_part_resize(struct budget_part *p, size_t bytes)
{
	bool full = false;

	budget_count_all(p, bytes);
	return !budget_is_unwelcome(p, &full) || (!full && bytes <= BUDGET_FREE_BYTES);
}

enum status
net_memory_part_admit(struct budget_part *p, struct net_session *s)
{
	if (!budget_may_last(p))
		return budget_ask_to_last(p, 0, net_memory_deadline_ns(s), net_memory_stop(s));
	budget_part_last(p);
	return STATUS_OK;
}

bool
net_memory_part_use(struct budget_part *p, size_t n, bool insists)
{
	return insists ? budget_use_reserve(p, n) : budget_use(p, n);
}

/* The owner looks by itself, with budget_is_unwanted(). */
static void
net_memory_part_told(struct budget_part *p)
{
	(void)p;
}

void
net_memory_part_rest(struct budget_part *p)
{
	if (p->lasts)
		budget_stall(p, net_memory_part_told);
}

void
net_memory_part_rouse(struct budget_part *p)
{
	budget_unstall(p);
}
