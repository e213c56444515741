#include "loop/step.h"

#include <assert.h>
#include <stddef.h>

#include "loop/wait.h"

/*
 * `step_credit` counts down. What was granted less what is left are the steps that were counted
 * since, and step_settle() adds them to the meter. On a plain thread the credit is so large that
 * it is never used up; it begins at zero, so that the first call gets there.
 */
#define STEP_CREDIT_PLAIN (INT64_MAX / 2)

/*
 * A unit that began since the last settlement began when this much credit was left, and the next
 * settlement tells the meter. Otherwise STEP_UNIT_SETTLED, which is more than any credit.
 */
#define STEP_UNIT_SETTLED INT64_MAX

_Thread_local int64_t step_credit;
_Thread_local int64_t step_unit_credit;
static _Thread_local struct step_meter *step_meter;

static void
step_settle(struct step_meter *m)
{
	m->slice_steps += (uint64_t)(m->granted - step_credit);
	if (step_unit_credit == STEP_UNIT_SETTLED) {
		m->used += (uint64_t)(m->granted - step_credit);
	} else {
		assert(step_unit_credit <= m->granted && step_unit_credit >= step_credit);
		m->used = (uint64_t)(step_unit_credit - step_credit);
		m->unit_ns = 0;
		step_unit_credit = STEP_UNIT_SETTLED;
	}
	m->granted = step_credit;
}

static void
step_grant(struct step_meter *m)
{
	assert(m->credit >= STEP_CREDIT_LEAST && m->credit <= STEP_CREDIT_MOST);
	m->granted = m->credit;
	step_credit = m->credit;
}

void
step_init(struct step_meter *m)
{
	*m = (struct step_meter){ .credit = STEP_CREDIT_FIRST };
}

void
step_enter(struct step_meter *m)
{
	assert(!step_meter && "a fiber is not entered from another one");
	step_meter = m;
	m->slice_ns = 0;
	m->slice_steps = 0;
	if (m->clocks_cpu)
		m->cpu_entered_ns = clock_cpu_ns();
	step_unit_credit = STEP_UNIT_SETTLED;
	step_grant(m);
}

void
step_leave(void)
{
	assert(step_meter);
	step_settle(step_meter);
	if (step_meter->clocks_cpu)
		step_meter->cpu_ns += clock_cpu_ns() - step_meter->cpu_entered_ns;
	step_meter = NULL;
	step_credit = 0;
}

static void
step_heat(struct step_meter *m)
{
	m->slices++;
	if (m->heat < STEP_HEAT_MOST)
		m->heat++;
}

void
step_expect_slice(void)
{
	if (!step_meter)
		return;
	step_meter->rests = 0;
	if (!step_meter->heat)
		step_meter->heat = 1;
}

/* True if the slice is used up, as of the last look at the clock. */
static bool
step_slice_is_used(const struct step_meter *m)
{
	return m->look_ns - m->slice_ns >= STEP_SLICE_NS || m->slice_steps >= STEP_SLICE_STEPS;
}

void
step_rest(struct step_meter *m, uint64_t took_ns)
{
	bool looked = m->slice_ns != 0;

	/* Little work. */
	if (!looked && took_ns < STEP_LOOK_NS) {
		if (m->rests < STEP_RESTS)
			m->rests++;
		else if (m->heat)
			m->heat--;
		return;
	}
	m->rests = 0;
	if (looked && step_slice_is_used(m))
		return; /* and was counted */
	/*
	 * A part of a slice. Parts add up: thousands of fibers that each do a part of a slice and
	 * then wait are as much in the way of others as a few that use whole ones.
	 */
	m->parts_ns += took_ns;
	if (m->parts_ns >= STEP_SLICE_NS) {
		m->parts_ns = 0;
		step_heat(m);
	}
}

struct step_meter *
step_current(void)
{
	return step_meter;
}

void
step_cpu_begin(void)
{
	struct step_meter *m = step_meter;

	if (!m)
		return;
	assert(!m->clocks_cpu);
	m->clocks_cpu = true;
	m->cpu_ns = 0;
	m->cpu_entered_ns = clock_cpu_ns();
}

uint64_t
step_cpu_ns(void)
{
	const struct step_meter *m = step_meter;

	return m && m->clocks_cpu ? m->cpu_ns + (clock_cpu_ns() - m->cpu_entered_ns) : 0;
}

void
step_cpu_end(void)
{
	if (step_meter)
		step_meter->clocks_cpu = false;
}

uint64_t
step_limit(void)
{
	return step_meter ? step_meter->limit : 0;
}

struct step_owner
step_set_owner(struct step_owner owner)
{
	struct step_owner before = { 0 };

	if (!step_meter)
		return before;
	before = step_meter->owner;
	step_meter->owner = owner;
	return before;
}

enum status
step_ask(void)
{
	const struct step_owner *o = step_meter ? &step_meter->owner : NULL;

	return o && o->ask ? o->ask(o->arg) : STATUS_OK;
}

enum status
step_ask_waiting(void)
{
	const struct step_owner *o = step_meter ? &step_meter->owner : NULL;

	return o && o->ask_waiting ? o->ask_waiting(o->arg) : STATUS_OK;
}

/*
 * Moves the credit so that the clock is looked at every STEP_LOOK_NS, about: at once where steps
 * have become dearer, since others wait meanwhile, and little by little where they have become
 * cheaper.
 */
static void
step_adapt(struct step_meter *m, uint64_t took_ns)
{
	if (took_ns > 2 * STEP_LOOK_NS)
		m->credit = m->credit * (int64_t)STEP_LOOK_NS / (int64_t)took_ns;
	else if (took_ns < STEP_LOOK_NS / 2)
		m->credit *= 2;
	if (m->credit < STEP_CREDIT_LEAST)
		m->credit = STEP_CREDIT_LEAST;
	if (m->credit > STEP_CREDIT_MOST)
		m->credit = STEP_CREDIT_MOST;
}

static void
step_count_time(struct step_meter *m, uint64_t ns)
{
	m->computed_ns += ns;
	m->unit_ns += ns;
	if (m->unit_ns > m->longest_ns)
		m->longest_ns = m->unit_ns;
}

/* True if the slice is used up. */
static bool
step_slice_ends(struct step_meter *m)
{
	uint64_t now = clock_mono_ns();

	/*
	 * Entering a fiber does not read the clock, because most fibers never come here. So the
	 * slice counts from the first look, which is one credit late.
	 */
	if (m->slice_ns == 0)
		m->slice_ns = now;
	else
		step_adapt(m, now - m->look_ns);
	m->look_ns = now;
	return step_slice_is_used(m);
}

enum status
step_spend(bool may_fail)
{
	struct step_meter *m = step_meter;
	enum status status = STATUS_OK;

	if (!m) {
		step_credit = STEP_CREDIT_PLAIN;
		return STATUS_OK;
	}
	step_settle(m);
	if (step_slice_ends(m)) {
		step_count_time(m, m->look_ns - m->slice_ns);
		step_heat(m);
		wait_yield();
		/* The fiber is here again, by way of step_enter() on the same thread. */
		assert(step_meter == m);
		m->is_to_ask = true;
	}
	/* The slice may also have ended in an earlier call, which was not allowed to fail. */
	if (may_fail && m->is_to_ask) {
		m->is_to_ask = false;
		if (m->owner.ask)
			status = m->owner.ask(m->owner.arg);
	}
	step_grant(m);
	if (may_fail && status == STATUS_OK && m->limit && m->used > m->limit)
		status = STATUS_STEPS;
	/* The caller is going to explain the failure, which takes a few steps, too. */
	if (status != STATUS_OK)
		step_credit = m->granted = STEP_CREDIT_MOST;
	return status;
}
