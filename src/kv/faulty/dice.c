/* Draws what happens to reads, commits and watches, from a random seed; and counts it. */
#include <unistd.h>

#include "base/clock.h"
#include "kv/faulty/faulty_int.h"

enum {
	/*
	 * Long enough for answers to overtake each other and for code to park, short enough for
	 * thousands of them in a test.
	 */
	DELAY_MAX_NS = 300 * 1000,
	WATCH_DELAY_MAX_NS = 5 * 1000 * 1000,
	/* The failing read is among the first 2^0 … 2^7 of its attempt. */
	READ_DOUBLINGS = 8,
};

/*
 * After an unknown outcome faults are more frequent: the paths behind it are the rarest, and those
 * on which writes are lost or made twice.
 */
static const double AFTER_UNKNOWN_RATE = 0.3;

static _Atomic uint64_t counts[KV_FAULTY_EVENTS];

static const char *const names[KV_FAULTY_EVENTS] = {
	[KV_FAULTY_CONFLICT] = "conflict",
	[KV_FAULTY_TOO_OLD_READ] = "too_old_read",
	[KV_FAULTY_TOO_OLD_COMMIT] = "too_old_commit",
	[KV_FAULTY_UNKNOWN_APPLIED] = "unknown_applied",
	[KV_FAULTY_UNKNOWN_NOT_APPLIED] = "unknown_not_applied",
	[KV_FAULTY_UNKNOWN_THEN_RETRY] = "unknown_then_retry",
	[KV_FAULTY_UNKNOWN_TWICE] = "unknown_twice",
	[KV_FAULTY_RETRY_LIMIT] = "retry_limit",
	[KV_FAULTY_READ_DELAYED] = "read_delayed",
	[KV_FAULTY_COMMIT_DELAYED] = "commit_delayed",
	[KV_FAULTY_REORDERED] = "reordered",
	[KV_FAULTY_WATCH_LATE] = "watch_late",
	[KV_FAULTY_WATCH_SPURIOUS] = "watch_spurious",
	[KV_FAULTY_WATCH_LOST] = "watch_lost",
};

/* ---- Counting ---- */

void
faulty_count(enum kv_faulty_event event)
{
	atomic_fetch_add_explicit(&counts[event], 1, memory_order_relaxed);
}

uint64_t
kv_faulty_count(enum kv_faulty_event event)
{
	return atomic_load_explicit(&counts[event], memory_order_relaxed);
}

void
kv_faulty_report(struct buf *out)
{
	for (int i = 0; i < KV_FAULTY_EVENTS; i++)
		buf_printf(out, "%s%s=%llu", i ? " " : "", names[i],
			   (unsigned long long)kv_faulty_count((enum kv_faulty_event)i));
}

/* ---- Dice ---- */

void
faulty_dice_init(struct faulty_dice *d, const struct faulty_settings *settings)
{
	pthread_mutex_init(&d->lock, NULL);
	d->settings = *settings;
	d->rand.state = settings->seed;
	atomic_init(&d->passed, 0);
}

void
faulty_dice_fini(struct faulty_dice *d)
{
	pthread_mutex_destroy(&d->lock);
}

static uint64_t
dice_below(struct faulty_dice *d, uint64_t n)
{
	uint64_t drawn;

	pthread_mutex_lock(&d->lock);
	drawn = rand_seq_below(&d->rand, n);
	pthread_mutex_unlock(&d->lock);
	return drawn;
}

static bool
dice_hit(struct faulty_dice *d, double share)
{
	enum {
		STEPS = 1 << 30,
	};

	return share > 0 && (double)dice_below(d, STEPS) < share * STEPS;
}

static double
dice_rate(const struct faulty_dice *d, bool after_unknown)
{
	/* Above 0 whenever there was an unknown result. */
	return after_unknown && d->settings.rate < AFTER_UNKNOWN_RATE ? AFTER_UNKNOWN_RATE
								      : d->settings.rate;
}

uint32_t
faulty_dice_read(struct faulty_dice *d, bool after_unknown)
{
	if (!dice_hit(d, dice_rate(d, after_unknown)))
		return 0;
	return 1 + (uint32_t)dice_below(d, UINT64_C(1) << dice_below(d, READ_DOUBLINGS));
}

enum faulty_commit
faulty_dice_commit(struct faulty_dice *d, bool after_unknown)
{
	if (!dice_hit(d, dice_rate(d, after_unknown)))
		return FAULTY_COMMIT_WELL;
	return (enum faulty_commit)(FAULTY_COMMIT_CONFLICT +
				    dice_below(d, FAULTY_COMMIT_UNKNOWN_NOT_APPLIED));
}

enum faulty_watch
faulty_dice_watch(struct faulty_dice *d)
{
	if (!dice_hit(d, d->settings.watch))
		return FAULTY_WATCH_WELL;
	return (enum faulty_watch)(FAULTY_WATCH_LATE + dice_below(d, FAULTY_WATCH_LOST));
}

uint64_t
faulty_dice_delay(struct faulty_dice *d)
{
	return dice_hit(d, d->settings.delay) ? 1 + dice_below(d, DELAY_MAX_NS) : 0;
}

uint64_t
faulty_dice_watch_delay(struct faulty_dice *d)
{
	return 1 + dice_below(d, WATCH_DELAY_MAX_NS);
}

void
faulty_dice_pass(struct faulty_dice *d, enum faulty_exit point)
{
	if (point == d->settings.exit && atomic_fetch_add(&d->passed, 1) + 1 == d->settings.exit_on)
		_exit(KV_FAULTY_EXIT_CODE);
}
