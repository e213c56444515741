#include "loop/libuv.h"

#include <assert.h>
#include <sched.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/process.h"
#include "loop/fiber.h"
#include "loop/pool.h"

#ifdef __SANITIZE_THREAD__
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

struct loop_uv {
	uv_loop_t uv;
	uv_async_t async;
	uv_prepare_t prepare;
	uv_check_t check;
	uv_idle_t
		idle; /* active while letters are ready: an active one keeps libuv from sleeping */
	uv_timer_t clock;
	bool begun; /* `uv` is to be closed */
};

static struct loop_uv *
uv_of(struct loop *l)
{
	assert(l->ops == &loop_uv_ops);
	return l->driver;
}

uv_loop_t *
loop_uv(struct loop *l)
{
	return &uv_of(l)->uv;
}

#ifdef __SANITIZE_THREAD__
/* ---- What ThreadSanitizer has to see ---- */

enum {
	SYSCALL_ARGS = 6
};

static long (*libc_syscall)(long, ...);

static void
libc_find_syscall(void)
{
	*(void **)&libc_syscall = dlsym(RTLD_NEXT, "syscall");
}

/*
 * Takes the place of libc's function. libuv closes descriptors through it, which ThreadSanitizer
 * does not watch: the next thread that is given the same number would be reported for a race with
 * the socket that had it before. close() is watched.
 */
__attribute__((visibility("default"))) long
syscall(long number, ...)
{
	static pthread_once_t found = PTHREAD_ONCE_INIT;
	long args[SYSCALL_ARGS];
	va_list list;

	va_start(list, number);
	for (size_t i = 0; i < SYSCALL_ARGS; i++)
		args[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_close)
		return close((int)args[0]);
	pthread_once(&found, libc_find_syscall);
	return libc_syscall(number, args[0], args[1], args[2], args[3], args[4], args[5]);
}
#endif

/* ---- What libuv calls ---- */

static void
uv_on_async(uv_async_t *async)
{
	loop_take_mail(async->data);
}

static void
uv_on_prepare(uv_prepare_t *prepare)
{
	loop_run_ready(prepare->data);
	loop_run_later(prepare->data);
}

static void
uv_on_check(uv_check_t *check)
{
	loop_run_ready(check->data);
}

static void
uv_on_idle(uv_idle_t *idle)
{
	(void)idle;
}

static void
uv_on_clock(uv_timer_t *clock)
{
	loop_fire_timers(clock->data);
}

/* ---- What the loop calls ---- */

static void
uv_ring(struct loop *l)
{
	uv_async_send(&uv_of(l)->async);
}

static void
uv_set_clock(struct loop *l, uint64_t at_ns)
{
	struct loop_uv *u = uv_of(l);
	uint64_t now = clock_mono_ns();

	/*
	 * libuv counts in milliseconds from its last look at the clock: both are rounded up. So a
	 * nap of 0.45 ms between two slices takes 1 to 2 ms, and fibers that compute for long have
	 * about 10 % of the time beside others, and not the LOOP_LATER_PERCENT that they may have.
	 * A finer clock would be a descriptor of its own and two more system calls for each nap,
	 * to the cost of those others.
	 */
	uv_update_time(&u->uv);
	uv_timer_start(&u->clock, uv_on_clock,
		       at_ns > now ? (at_ns - now) / CLOCK_NS_PER_MS + 1 : 0, 0);
}

static void
uv_stay_awake(struct loop *l, bool awake)
{
	if (awake)
		uv_idle_start(&uv_of(l)->idle, uv_on_idle);
	else
		uv_idle_stop(&uv_of(l)->idle);
}

static bool
uv_processors_are_short(struct loop *l)
{
	(void)l;
	return process_processors_are_short();
}

static void
uv_give_way(struct loop *l)
{
	(void)l;
	sched_yield();
}

static void
uv_begin_work(struct loop *l, struct wait_work *work)
{
	pool_begin(l->pool, work);
}

static void
uv_run_loop(struct loop *l)
{
	uv_run(&uv_of(l)->uv, UV_RUN_DEFAULT);
}

static void
uv_stop_loop(struct loop *l)
{
	uv_stop(&uv_of(l)->uv);
}

/* ---- Life ---- */

static enum status
uv_init_loop(struct loop *l, struct err *err)
{
	struct loop_uv *u = mem_zalloc(sizeof(*u));

	if (!u)
		return err_set(err, STATUS_NOMEM, "out of memory for an event loop");
	l->driver = u;
	if (uv_loop_init(&u->uv) != 0)
		return err_set(err, STATUS_IO, "cannot make an event loop");
	u->begun = true;
	if (uv_async_init(&u->uv, &u->async, uv_on_async) != 0)
		return err_set(err, STATUS_IO, "cannot make an event loop's signal");
	uv_prepare_init(&u->uv, &u->prepare);
	uv_check_init(&u->uv, &u->check);
	uv_idle_init(&u->uv, &u->idle);
	uv_timer_init(&u->uv, &u->clock);
	u->async.data = u->prepare.data = u->check.data = u->clock.data = l;
	uv_prepare_start(&u->prepare, uv_on_prepare);
	uv_check_start(&u->check, uv_on_check);
	return STATUS_OK;
}

static void
uv_close_handle(uv_handle_t *handle, void *arg)
{
	(void)arg;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

static void
uv_fini_loop(struct loop *l)
{
	struct loop_uv *u = uv_of(l);

	if (u && u->begun) {
		uv_walk(&u->uv, uv_close_handle, NULL);
		uv_run(&u->uv, UV_RUN_DEFAULT);
		uv_loop_close(&u->uv);
	}
	mem_free(u);
}

const struct loop_ops loop_uv_ops = {
	.init = uv_init_loop,
	.fini = uv_fini_loop,
	.run = uv_run_loop,
	.stop = uv_stop_loop,
	.ring = uv_ring,
	.set_clock = uv_set_clock,
	.stay_awake = uv_stay_awake,
	.processors_are_short = uv_processors_are_short,
	.give_way = uv_give_way,
	.uses_pool = true,
	.begin_work = uv_begin_work,
};
