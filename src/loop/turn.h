/*
 * Waiting for memory of a budget (base/budget.h). A fiber parks, a thread sleeps.
 *
 * The part belongs to the caller; nothing else of it may run on another thread meanwhile.
 */
#ifndef FROND_LOOP_TURN_H
#define FROND_LOOP_TURN_H

#include "base/budget.h"
#include "loop/wait.h"

/*
 * Sets `n` bytes aside, on top of what was asked before, and waits for them until the deadline, or
 * until `stop` is set (may be NULL). More than three quarters of the budget counts as that much:
 * a request for all of it gets it alone. STATUS_LIMIT when the bytes were not free in time, or when
 * too many wait already (`p->refused` is set then); STATUS_CANCELLED when `stop` was set; what
 * whoever owns the fiber's work fails with meanwhile (step_ask_waiting()).
 */
MUST_USE enum status budget_ask(struct budget_part *p, size_t n, uint64_t deadline_ns,
				struct event *stop);

/*
 * Waits for a turn to read: for `n` bytes beside what the part uses now. The caller gives them back
 * with budget_settle() before it waits for anything but the store. Fails as budget_ask() does.
 */
MUST_USE enum status budget_ask_to_read(struct budget_part *p, size_t n, uint64_t deadline_ns,
					struct event *stop);

/*
 * Waits for a turn to last (base/budget.h), for a request that is known to take as long as its
 * client likes, before its answer begins. `n` bytes, what it is expected to take, count as used
 * until budget_unuse(). A part that has had that turn does not wait. Fails as budget_ask() does.
 */
MUST_USE enum status budget_ask_to_last(struct budget_part *p, size_t n, uint64_t deadline_ns,
					struct event *stop);

#endif
