#include "loop/fiber.h"

#include <assert.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

/* Boost.Context's C interface; its header declares it for C++ only. */
struct transfer {
	void *from;
	void *data;
};

extern struct transfer jump_fcontext(void *to, void *data);
extern void *make_fcontext(void *stack_top, size_t size, void (*fn)(struct transfer));

struct fiber {
	void *context; /* where the fiber goes on when entered */
	void *caller;  /* where fiber_leave() goes; NULL while the fiber does not run */
	char *map;
	size_t map_bytes;
	size_t guard_bytes;
	void (*fn)(void *arg);
	void *arg;
	bool busy; /* has a function that has not returned */
#ifdef __SANITIZE_ADDRESS__
	void *fake_stack;
	const void *caller_stack;
	size_t caller_stack_bytes;
#endif
#ifdef __SANITIZE_THREAD__
	void *tsan;
	void *tsan_caller;
#endif
};

static void
fiber_switched_in(struct fiber *f, struct transfer from)
{
	f->caller = from.from;
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_finish_switch_fiber(f->fake_stack, &f->caller_stack, &f->caller_stack_bytes);
#endif
}

static void
fiber_main(struct transfer from)
{
	struct fiber *f = from.data;

	fiber_switched_in(f, from);
	for (;;) {
		f->fn(f->arg);
		f->busy = false;
		fiber_leave(f);
	}
}

struct fiber *
fiber_new(void)
{
	return fiber_new_of(FIBER_STACK_BYTES);
}

static size_t
fiber_stack_bytes(const struct fiber *f)
{
	return f->map_bytes - f->guard_bytes;
}

struct fiber *
fiber_new_of(size_t stack_bytes)
{
	struct fiber *f = mem_zalloc(sizeof(*f));

	if (!f)
		return NULL;
	f->guard_bytes = (size_t)sysconf(_SC_PAGESIZE);
	f->map_bytes = stack_bytes + f->guard_bytes;
	f->map = mmap(NULL, f->map_bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	if (f->map == MAP_FAILED) {
		mem_free(f);
		return NULL;
	}
	if (mprotect(f->map, f->guard_bytes, PROT_NONE) != 0) {
		munmap(f->map, f->map_bytes);
		mem_free(f);
		return NULL;
	}
	f->context = make_fcontext(f->map + f->map_bytes, stack_bytes, fiber_main);
#ifdef __SANITIZE_THREAD__
	f->tsan = __tsan_create_fiber(0);
#endif
	return f;
}

void
fiber_free(struct fiber *f)
{
	if (!f)
		return;
	assert(!f->busy);
#ifdef __SANITIZE_ADDRESS__
	/* The frames of the idle fiber never return; what they poisoned must not outlive them. */
	__asan_unpoison_memory_region(f->map, f->map_bytes);
#endif
#ifdef __SANITIZE_THREAD__
	__tsan_destroy_fiber(f->tsan);
#endif
	munmap(f->map, f->map_bytes);
	mem_free(f);
}

void
fiber_abandon(struct fiber *f)
{
	if (!f)
		return;
	assert(!f->caller && "it does not run");
	f->busy = false;
	fiber_free(f);
}

void
fiber_start(struct fiber *f, void (*fn)(void *arg), void *arg)
{
	assert(!f->busy);
	f->fn = fn;
	f->arg = arg;
	f->busy = true;
}

size_t
fiber_stack_left(const struct fiber *f)
{
	const char *here = __builtin_frame_address(0), *end = f->map + f->guard_bytes;

	return here < end || here >= f->map + f->map_bytes ? SIZE_MAX : (size_t)(here - end);
}

/* Gives the system back the pages further than so many bytes from where the stack begins. */
static void
fiber_give_pages(struct fiber *f, size_t keep_bytes)
{
	size_t page = f->guard_bytes; /* the guard is one page, and the map begins at a page */

	if (keep_bytes < fiber_stack_bytes(f))
		(void)madvise(f->map + f->guard_bytes,
			      (fiber_stack_bytes(f) - keep_bytes) / page * page, MADV_DONTNEED);
}

void
fiber_trim(struct fiber *f)
{
	enum {
		SPARE_BYTES = 1024, /* for the calls from here on */
	};
	size_t used = (size_t)(f->map + f->map_bytes - (char *)__builtin_frame_address(0));

	assert(f->caller && used < fiber_stack_bytes(f));
	fiber_give_pages(f, used + SPARE_BYTES);
}

void
fiber_trim_idle(struct fiber *f, size_t keep_bytes)
{
	assert(!f->busy);
#ifdef __SANITIZE_ADDRESS__
	/* Frames that were left by a jump. */
	__asan_unpoison_memory_region(f->map, f->map_bytes);
#endif
	fiber_give_pages(f, keep_bytes);
}

bool
fiber_enter(struct fiber *f)
{
	struct transfer back;

	assert(f->busy && "there is a function to run");
	assert(!f->caller && "it does not run already");
#ifdef __SANITIZE_ADDRESS__
	void *fake_stack;

	__sanitizer_start_switch_fiber(&fake_stack, f->map + f->guard_bytes, fiber_stack_bytes(f));
#endif
#ifdef __SANITIZE_THREAD__
	f->tsan_caller = __tsan_get_current_fiber();
	__tsan_switch_to_fiber(f->tsan, 0);
#endif
	back = jump_fcontext(f->context, f);
	/* Here again, on the caller's stack: the fiber has left or its function has returned. */
	f->context = back.from;
	f->caller = NULL;
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_finish_switch_fiber(fake_stack, NULL, NULL);
#endif
	return !f->busy;
}

void
fiber_leave(struct fiber *f)
{
	assert(f->caller && "only the running fiber leaves");
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_start_switch_fiber(&f->fake_stack, f->caller_stack, f->caller_stack_bytes);
#endif
#ifdef __SANITIZE_THREAD__
	__tsan_switch_to_fiber(f->tsan_caller, 0);
#endif
	fiber_switched_in(f, jump_fcontext(f->caller, f));
}
