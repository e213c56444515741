#include "lua/script.h"

#include "base/clock.h"
#include "loop/fiber.h"
#include "loop/step.h"
#include "lua/image.h"

enum {
	SLICE_STEPS = SCRIPT_SLICE_INSTRUCTIONS / 8, /* that a slice costs */
};

/* A slice that took longer is too long for others; the next one has half of its instructions. */
#define SLICE_NS (STEP_SLICE_NS / 2)

/* On the script's stack. False: it has failed. */
static bool
script_prepare(struct script *s)
{
	if (s->owner->prepare && lua_cpcall(s->lua, s->owner->prepare, s) != 0)
		return false;
	if (!s->is_over)
		script_memory_note(s);
	return true;
}

/* On the script's stack. */
static void
script_main(void *arg)
{
	struct script *s = arg;
	bool prepared, failed;

	s->lua = script_memory_open(s, &prepared);
	failed = !s->lua || (!prepared && !script_prepare(s));
	if (!failed && !s->is_over)
		failed = lua_cpcall(s->lua, s->owner->body, s) != 0;
	if (failed)
		s->owner->failed(s);
}

/*
 * True if the script has used up its time: that is what the processor has done for it and for its
 * calls, so that it makes no difference what else the machine does. The clock on the wall is the
 * cheaper one, and never behind.
 */
static bool
script_took_long(struct script *s)
{
	uint64_t limit_ns = s->limit_ms * CLOCK_NS_PER_MS, now, used;

	if (!s->limit_ms)
		return false;
	now = clock_mono_ns();
	if (now <= s->look_ns)
		return false;
	used = step_cpu_ns();
	if (used > limit_ns)
		return true;
	s->look_ns = now + (limit_ns - used);
	return false;
}

enum script_end
script_must_end(struct script *s)
{
	if (s->lacks_memory)
		return SCRIPT_LACKS_MEMORY;
	if (atomic_load_explicit(&s->killed, memory_order_relaxed))
		return SCRIPT_KILLED;
	return script_took_long(s) ? SCRIPT_TOOK_LONG : SCRIPT_GOES_ON;
}

/* Others have their turn. STATUS_CANCELLED: nobody waits for the script any more. */
static enum status
script_pause(void)
{
	step_pause(SLICE_STEPS);
	return step_ask();
}

/*
 * What an instruction costs is only known afterwards, such as one that looks for a string among
 * others of the same hash: so slices get shorter where they take long.
 */
static void
script_adapt(struct script *s, uint64_t took_ns)
{
	if (took_ns > SLICE_NS)
		s->slice = s->slice > 1 ? s->slice / 2 : 1;
	else if (took_ns < SLICE_NS / 4)
		s->slice = 2 * s->slice < SCRIPT_SLICE_INSTRUCTIONS ? 2 * s->slice
								    : SCRIPT_SLICE_INSTRUCTIONS;
}

static enum status
script_drive(struct script *s)
{
	uint64_t entered_ns = clock_mono_ns();

	while (!fiber_enter(s->fiber)) {
		TRY(s->owner->look(s));
		if (s->wants == SCRIPT_WANTS_CALL) {
			TRY(s->owner->call(s));
		} else {
			script_adapt(s, clock_mono_ns() - entered_ns);
			TRY(script_pause());
		}
		entered_ns = clock_mono_ns();
	}
	return STATUS_OK;
}

static void
script_init(struct script *s, const struct script_owner *owner)
{
	s->owner = owner;
	s->json = (struct script_json){ .sparse_ratio = 2,
					.sparse_safe = 10,
					.encode_depth = SCRIPT_JSON_DEPTH,
					.decode_depth = SCRIPT_JSON_DEPTH,
					.precision = 14,
					.decode_invalid = true };
	s->slice = SCRIPT_SLICE_INSTRUCTIONS;
	s->began_ns = clock_mono_ns();
	s->look_ns = s->began_ns + s->limit_ms * CLOCK_NS_PER_MS;
	s->scratch = BUF_INIT_OF(SCRIPT_MEMORY_BYTES, s->part);
}

static struct fiber *
script_take_fiber(struct script *s)
{
	struct fiber *kept = s->image ? s->image->fiber : NULL;

	if (!kept)
		return fiber_new_of(SCRIPT_STACK_BYTES);
	s->image->fiber = NULL;
	return kept;
}

/* The image keeps it for the next script if this one has come to its end. */
static void
script_leave_fiber(struct script *s, bool ended)
{
	if (!ended || !s->image || !s->image->copy) {
		fiber_abandon(s->fiber);
		return;
	}
	fiber_trim_idle(s->fiber, SCRIPT_IMAGE_STACK_BYTES);
	s->image->fiber = s->fiber;
}

enum status
script_run(struct script *s, const struct script_owner *owner)
{
	enum status status;

	script_init(s, owner);
	script_memory_begin(s);
	s->fiber = script_take_fiber(s);
	if (!s->fiber) {
		script_memory_free(s);
		return STATUS_NOMEM;
	}
	fiber_start(s->fiber, script_main, s);
	step_cpu_begin();
	status = script_drive(s);
	step_cpu_end();
	script_leave_fiber(s, status == STATUS_OK);
	script_memory_free(s);
	buf_release(&s->scratch);
	return status;
}
