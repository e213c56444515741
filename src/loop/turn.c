#include "loop/turn.h"

#include "base/clock.h"
#include "loop/step.h"

/* A place in the budget's queue and the event that tells its fiber that the turn has come. */
struct turn_wait {
	struct budget_turn turn;
	struct event come;
};

/* On the thread that gave memory back, with the budget's lock held. */
static void
turn_granted(struct budget_turn *turn)
{
	/*
	 * The struct is on the stack of the fiber that waits. It cannot go away under this call:
	 * the fiber passes through budget_leave(), and with it through the budget's lock, before it
	 * leaves the function that owns the struct.
	 */
	event_set(&((struct turn_wait *)turn)->come);
}

/*
 * Parks until the turn has come, the deadline or the stop, or nobody may have it any more, and has
 * those who stall make room.
 */
static enum status
turn_park(struct budget *b, struct turn_wait *w, uint64_t deadline_ns, struct event *stop)
{
	struct event *events[] = { &w->come, stop };
	size_t count = stop ? 2 : 1;
	uint64_t look_ns;

	for (;;) {
		budget_make_room(b);
		look_ns = clock_after_ms(BUDGET_LOOK_MS);
		if (look_ns > deadline_ns)
			look_ns = deadline_ns;
		if (event_wait_any(events, count, look_ns) < count || look_ns == deadline_ns)
			return STATUS_OK;
		TRY(step_ask_waiting());
	}
}

static enum status
turn_ask(struct budget_part *p, struct turn_wait *w, uint64_t deadline_ns, struct event *stop)
{
	enum status status = STATUS_OK;
	enum budget_answer answer;

	w->turn.granted = turn_granted;
	event_init(&w->come); /* first: the turn may come as soon as it is in the queue */
	answer = budget_queue(p->budget, &w->turn);
	if (answer == BUDGET_QUEUED) {
		/* Hundreds of turns may come at one moment, and each fiber then reads a page. */
		if (w->turn.kind == BUDGET_TO_READ)
			step_expect_slice();
		status = turn_park(p->budget, w, deadline_ns, stop);
		if (budget_leave(p->budget, &w->turn))
			return STATUS_OK;
	}
	if (answer == BUDGET_GIVEN)
		return STATUS_OK;
	TRY(status);
	if (stop && event_is_set(stop))
		return STATUS_CANCELLED;
	p->refused = true;
	return STATUS_LIMIT;
}

enum status
budget_ask(struct budget_part *p, size_t n, uint64_t deadline_ns, struct event *stop)
{
	struct turn_wait w = { .turn.kind = BUDGET_TO_BEGIN };

	if (p->most_bytes && n > p->most_bytes / 2) {
		p->exceeded = true;
		return STATUS_LIMIT;
	}
	if (!p->budget)
		return STATUS_OK;
	w.turn.bytes = budget_askable(p->budget, n);
	TRY(turn_ask(p, &w, deadline_ns, stop));
	budget_part_give(p, &w.turn);
	return STATUS_OK;
}

enum status
budget_ask_to_read(struct budget_part *p, size_t n, uint64_t deadline_ns, struct event *stop)
{
	struct turn_wait w = { .turn.kind = BUDGET_TO_READ };

	w.turn.bytes = p->budget ? budget_part_lacks(p, n) : 0;
	if (!w.turn.bytes)
		return STATUS_OK;
	TRY(turn_ask(p, &w, deadline_ns, stop));
	budget_part_give(p, &w.turn);
	return STATUS_OK;
}

enum status
budget_ask_to_last(struct budget_part *p, size_t n, uint64_t deadline_ns, struct event *stop)
{
	struct turn_wait w = { .turn = { .kind = BUDGET_TO_LAST, .bytes = n } };

	if (!p->budget || p->admitted) {
		budget_count(p, n);
		return STATUS_OK;
	}
	/* What it holds while it waits is counted apart from what those hold that last. */
	budget_part_end_lasting(p);
	w.turn.held_bytes = budget_part_held(p);
	TRY(turn_ask(p, &w, deadline_ns, stop));
	budget_part_admit(p, &w.turn);
	return STATUS_OK;
}
