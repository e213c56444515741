/*
 * Functions that want to do harm, with the real worker: each becomes an error of its own design
 * document, and calls of another database, made beside it all the time, are answered.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "common.h"

enum {
	TIMEOUT_MS = 4000,
	/*
	 * A call that takes so long has waited for an attack to end, unless the machine is so busy
	 * that a process as nice as a worker takes a tenth of that for what takes QUICK_MS. A
	 * single call may be so unlucky. If calls had to wait for the attack to end, nearly all
	 * would take so long.
	 */
	FELT_MS = 3500,
	FELT_TIMES = 10,
	QUICK_MS = 50,
	WORKERS_NICE = 5,
	GIVEN_UP = 5, /* times, until one has had its worker */
	ATTACKER = 1,
	NEIGHBOUR = 2,
	LOOKS = 10, /* at a worker in a long call */
};

/* A bit of computing in a process as nice as workers are, and how long it has taken at most. */
struct constant {
	pid_t pid;
	_Atomic uint64_t *longest_ms; /* shared with the process */
};

static uint64_t
now_ms(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / CLOCK_NS_PER_MS;
}

static _Noreturn void
constant_run(_Atomic uint64_t *longest_ms)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + WORKERS_NICE);
	for (;;) {
		uint64_t computed_ms = now_ms(CLOCK_PROCESS_CPUTIME_ID);
		uint64_t began_ms = now_ms(CLOCK_MONOTONIC);

		while (now_ms(CLOCK_PROCESS_CPUTIME_ID) < computed_ms + QUICK_MS) {
		}
		if (now_ms(CLOCK_MONOTONIC) - began_ms > *longest_ms)
			*longest_ms = now_ms(CLOCK_MONOTONIC) - began_ms;
		usleep(200 * 1000);
	}
}

static void
constant_begin(struct constant *c)
{
	c->longest_ms = mmap(NULL, sizeof(*c->longest_ms), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(c->longest_ms != MAP_FAILED);
	c->pid = fork();
	assert_true(c->pid >= 0);
	if (c->pid == 0)
		constant_run(c->longest_ms);
}

static uint64_t
constant_end(struct constant *c)
{
	uint64_t longest_ms = *c->longest_ms;

	kill(c->pid, SIGKILL);
	assert_int_equal(waitpid(c->pid, NULL, 0), c->pid);
	munmap(c->longest_ms, sizeof(*c->longest_ms));
	return longest_ms;
}

/* A neighbour: validates a document over and over, and counts how long that took. */
struct neighbour {
	struct constant beside;
	struct fixture own; /* its arena is its own, its pool the attacked one */
	pthread_t thread;
	atomic_bool stop;
	uint64_t calls;
	/* How many calls took so many milliseconds; the last number is of longer ones, too. */
	uint64_t took_ms[FELT_MS + 1];
};

static const char neighbours_design[] = "{\"validate_doc_update\":\"function (n, o, u, s) { if "
					"(!n.ok) throw {forbidden: 'no'} }\"}";

static void
neighbour_call(struct neighbour *n)
{
	struct js_design design = design_of(NEIGHBOUR, neighbours_design);
	struct js_call call = call_of(&n->own, &design, JS_LANE_REQUEST);
	const struct js_edit edit = { STR("{\"ok\":1}"), STR("null") };
	uint64_t began_ns = clock_mono_ns();
	struct js_verdict verdict;
	enum status status;
	uint64_t ms;

	status = js_validate(&call, STR("{}"), STR("{}"), &edit, 1, &verdict, &n->own.err);
	ms = (clock_mono_ns() - began_ns) / CLOCK_NS_PER_MS;
	/* So long it may wait for its worker at a busy processor, too. */
	if (status != STATUS_FUNCTION || !str_eq(call.error.name, STR("os_process_error")) ||
	    ms < TIMEOUT_MS) {
		assert_int_equal(status, STATUS_OK);
		assert_int_equal(verdict.kind, JS_ALLOWED);
	}
	n->took_ms[ms < FELT_MS ? ms : FELT_MS]++;
	n->calls++;
}

/* So long, or less, took one half of the calls. */
static uint64_t
neighbour_median_ms(const struct neighbour *n)
{
	uint64_t calls = 0, ms = 0;

	while (ms < FELT_MS && (calls += n->took_ms[ms]) * 2 < n->calls)
		ms++;
	return ms;
}

static void *
neighbour_run(void *arg)
{
	struct neighbour *n = arg;

	/* Once at least: an attack may be over before this thread has had a processor. */
	do {
		neighbour_call(n);
		usleep(2000);
	} while (!atomic_load(&n->stop));
	return NULL;
}

static void
neighbour_begin(struct neighbour *n, struct fixture *f)
{
	*n = (struct neighbour){ .own = { .js = f->js, .arena = arena_new(1024 * 1024) } };
	neighbour_call(n);
	n->calls = 0;
	memset(n->took_ms, 0, sizeof(n->took_ms));
	constant_begin(&n->beside);
	assert_int_equal(pthread_create(&n->thread, NULL, neighbour_run, n), 0);
}

static void
neighbour_end(struct neighbour *n, const char *attack)
{
	uint64_t allowed_ms, median_ms;

	atomic_store(&n->stop, true);
	pthread_join(n->thread, NULL);
	allowed_ms = FELT_TIMES * constant_end(&n->beside);
	median_ms = neighbour_median_ms(n);
	fprintf(stderr, "# %s: %llu calls beside it, half of them in %llu ms, allowed %llu\n",
		attack, (unsigned long long)n->calls, (unsigned long long)median_ms,
		(unsigned long long)(allowed_ms > FELT_MS ? allowed_ms : FELT_MS));
	assert_true(n->calls > 0);
	assert_true(median_ms < FELT_MS || median_ms < allowed_ms);
	arena_free(n->own.arena);
}

static void
open_for(struct fixture *f, uint64_t timeout_ms)
{
	struct js_config config = fixture_config();

	config.timeout_ms = timeout_ms;
	config.memory_bytes = 256 * 1024 * 1024;
	fixture_open(f, &config);
}

/* For what ends by itself, or by another limit. */
static void
open_attacked(struct fixture *f)
{
	open_for(f, fixture_config().timeout_ms);
}

/* Validates with a function in the lane that the neighbour uses, too. */
static struct js_error
attack_once(struct fixture *f, const char *function)
{
	struct str text = arena_printf(f->arena, "{\"validate_doc_update\":\"%s\"}", function);
	struct js_design design = design_of(ATTACKER, text.ptr);
	struct js_call call = call_of(f, &design, JS_LANE_REQUEST);
	const struct js_edit edit = { STR("{\"_id\":\"x\"}"), STR("null") };
	struct js_verdict verdict;
	enum status status = js_validate(&call, STR("{}"), STR("{}"), &edit, 1, &verdict, &f->err);

	if (status == STATUS_FUNCTION)
		return call.error;
	assert_int_equal(status, STATUS_OK);
	return verdict.error;
}

/* The attack ends in an error of that name, or whatever it is if NULL, and nobody else feels it. */
static void
attack(const char *name, const char *function, const char *error)
{
	struct neighbour neighbour;
	struct js_error got;
	struct fixture f;

	/* An error of the function's own comes in its time. */
	if (error && strcmp(error, "os_process_error") != 0)
		open_attacked(&f);
	else
		open_for(&f, TIMEOUT_MS);
	neighbour_begin(&neighbour, &f);
	got = attack_once(&f, function);
	fprintf(stderr, "# %s: %.*s %.*s\n", name, STR_ARG(got.name), STR_ARG(got.reason));
	if (error)
		assert_true(str_eq(got.name, str_from_cstr(error)));
	neighbour_end(&neighbour, name);
	fixture_close(&f);
}

static void
an_endless_loop_is_ended(void **state)
{
	(void)state;
	attack("loop", "function () { for (;;); }", "os_process_error");
}

static void
a_loop_that_catches_everything_is_ended(void **state)
{
	(void)state;
	attack("loop in catch",
	       "function f() { for (;;) { try { f() } catch (e) {} finally { continue } } }",
	       "os_process_error");
}

static void
recursion_is_an_error_of_its_document(void **state)
{
	(void)state;
	attack("recursion", "function f() { return f() + 1 }", "RangeError");
}

static void
a_string_of_4_gib_is_refused(void **state)
{
	(void)state;
	attack("string",
	       "function () { var s = 'x'.repeat(1 << 20); for (var i = 0; i < 12; i++) s += s;"
	       " return s.length + s.charCodeAt(5) }",
	       NULL);
	attack("strings",
	       "function () { var all = []; for (;;) all.push('x'.repeat(1 << 24) + all.length) }",
	       "os_process_error");
}

static void
eating_memory_ends_the_worker(void **state)
{
	(void)state;
	attack("memory",
	       "function () { var a = []; for (;;) a.push(new Array(1000).fill(a.length)) }",
	       "os_process_error");
	attack("buffers",
	       "function () { var a = []; for (;;) { var b = new Uint8Array(1 << 22); "
	       "b.fill(1); a.push(b) } }",
	       "os_process_error");
}

static void
a_catastrophic_expression_is_ended(void **state)
{
	(void)state;
	attack("expression", "function () { /^(a+)+$/.test('a'.repeat(40) + 'b') }", NULL);
}

static void
logging_without_end_is_ended(void **state)
{
	(void)state;
	attack("log", "function () { for (;;) log('x'.repeat(100000)) }", "os_process_error");
}

static void
a_promise_that_never_rests_is_ended(void **state)
{
	(void)state;
	attack("promises", "function () { function f() { Promise.resolve().then(f) } f() }", NULL);
}

static void
emitting_without_end_is_an_error_of_its_document(void **state)
{
	static const char text[] =
		"{\"views\":{\"v\":{\"map\":\"function (d) { for (;;) emit(d._id, 1) }\"},"
		"\"deaf\":{\"map\":\"function (d) { for (;;) try { emit(1) } catch (e) {} }\"},"
		"\"wide\":{\"map\":\"function (d) { for (var i = 0; i < 3; i++) emit(1, "
		"'x'.repeat(1 << 20)) }\"}}}";
	struct js_design design = design_of(ATTACKER, text);
	const char *deaf;
	struct fixture f;

	(void)state;
	open_attacked(&f);
	assert_non_null(strstr(map_one(&f, &design, "v", "{\"_id\":\"x\"}"), "[js] max_output"));
	assert_non_null(strstr(map_one(&f, &design, "wide", "{\"_id\":\"x\"}"), "[js] max_output"));
	fixture_close(&f);
	/* The errors that it catches take memory, which may reach its limit before the time. */
	open_for(&f, TIMEOUT_MS);
	deaf = map_one(&f, &design, "deaf", "{\"_id\":\"x\"}");
	assert_true(strstr(deaf, "timed out") || strstr(deaf, "[js] max_memory"));
	fixture_close(&f);
}

/* As many calls of one database as it wants do not take the workers of the others. */
static void *
attack_run(void *arg)
{
	struct fixture *f = arg;
	struct fixture own = { .js = f->js, .arena = arena_new(1024 * 1024) };

	(void)attack_once(&own, "function () { for (;;); }");
	arena_free(own.arena);
	return NULL;
}

static void
many_loops_of_one_database_delay_no_other(void **state)
{
	enum {
		LOOPS = 6
	};
	struct neighbour neighbour;
	pthread_t threads[LOOPS];
	struct fixture f;

	(void)state;
	open_for(&f, TIMEOUT_MS);
	neighbour_begin(&neighbour, &f);
	for (int i = 0; i < LOOPS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, attack_run, &f), 0);
	for (int i = 0; i < LOOPS; i++)
		pthread_join(threads[i], NULL);
	neighbour_end(&neighbour, "many loops");
	fixture_close(&f);
}

/* ---- Escapes ---- */

/* What a map function finds out, which is its one row's key. */
static const char *
find_out(struct fixture *f, uint64_t owner, const char *function)
{
	struct str text = arena_printf(f->arena, "{\"views\":{\"v\":{\"map\":\"%s\"}}}", function);
	struct js_design design = design_of(owner, text.ptr);

	return map_one(f, &design, "v", "{}");
}

static void
nothing_of_the_system_can_be_reached(void **state)
{
	static const char *const names[] = {
		"process",  "module", "exports",  "load",        "print",
		"readline", "quit",   "fetch",    "WebAssembly", "SharedArrayBuffer",
		"prelude",  "worker", "evaluate", "native"
	};
	struct fixture f;

	(void)state;
	open_attacked(&f);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct str source = arena_printf(f.arena, "function () { emit(typeof %s) }",
						 names[i]);

		assert_string_equal(find_out(&f, ATTACKER, source.ptr), "\"undefined\"=null;");
	}
	assert_string_equal(find_out(&f, ATTACKER,
				     "function () { try { eval('1') } catch (e) { "
				     "emit(e.name) } }"),
			    "\"EvalError\"=null;");
	assert_string_equal(find_out(&f, ATTACKER,
				     "function () { try { emit.constructor('return 1')() } "
				     "catch (e) { emit(e.name) } }"),
			    "\"EvalError\"=null;");
	assert_string_equal(
		find_out(&f, ATTACKER,
			 "function () { emit(typeof emit.caller + typeof "
			 "arguments.callee.caller) }"),
		"?\"function raised exception TypeError: 'arguments', 'callee', and "
		"'caller' cannot be accessed in this context. with doc._id undefined\"");
	fixture_close(&f);
}

static void
built_in_objects_are_frozen(void **state)
{
	static const char *const sources[] = {
		"Object.prototype.evil = 1; emit(({}).evil === undefined)",
		"Array.prototype.push = null; emit([].push !== null)",
		"JSON.stringify = null; emit(JSON.stringify !== null)",
		"emit.evil = 1; emit(emit.evil === undefined)",
		"Object.prototype.toString = null; emit(({}).toString !== null)",
		"(function* () {}).constructor.prototype.x = 1; emit((function* () {}).x === "
		"undefined)",
		"try { Object.setPrototypeOf(Array.prototype, null); emit(false) } catch (e) { "
		"emit(true) }",
		"function F() {} F.prototype.toString = function () { return 'f' }; "
		"emit(String(new F()) === 'f')",
		"var e = new Error('a'); e.name = 'n'; emit(e.name === 'n' && e.message === 'a')",
	};
	struct fixture f;

	(void)state;
	open_attacked(&f);
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		struct str source = arena_printf(f.arena, "function () { %s }", sources[i]);

		assert_string_equal(find_out(&f, ATTACKER, source.ptr), "true=null;");
	}
	fixture_close(&f);
}

static void
globals_stay_in_their_design_document(void **state)
{
	struct js_config config = fixture_config();
	struct fixture f;

	(void)state;
	config.workers = 2; /* one for each lane: both design documents share it */
	fixture_open(&f, &config);
	assert_string_equal(find_out(&f, ATTACKER,
				     "function () { JSON = emit = isArray = null; leak = "
				     "'secret'; sum([1]) }"),
			    "");
	assert_string_equal(find_out(&f, NEIGHBOUR,
				     "function () { emit(typeof leak, JSON.stringify([]) "
				     "+ isArray([])) }"),
			    "\"undefined\"=\"[]true\";");
	fixture_close(&f);
}

static void
tricks_with_what_is_emitted_stay_json(void **state)
{
	static const struct {
		const char *source;
		const char *rows;
	} tricks[] = {
		{ "emit({toJSON: function () { return 'a\\\\n\\\\u0001b' }})",
		  "\"a\\n\\u0001b\"=null;" },
		{ "emit({toJSON: function () { emit('inner'); return 1 }})",
		  "1=null;\"inner\"=null;" },
		{ "emit('\\\\ud800')", "\"\\ud800\"=null;" },
		{ "emit('\\\\u2028\\\\u0000')", "\"\xe2\x80\xa8\\u0000\"=null;" },
		{ "var a = []; a[0] = a; try { emit(a) } catch (e) {}",
		  "?\"function raised exception TypeError: JSON.stringify cannot serialize cyclic "
		  "structures. with doc._id undefined\"" },
		{ "emit(10n)",
		  "?\"function raised exception TypeError: JSON.stringify cannot serialize "
		  "BigInt. with doc._id undefined\"" },
		{ "throw {toString: function () { throw 1 }}",
		  "?\"function raised exception an error that has no text with doc._id "
		  "undefined\"" },
		{ "throw {get name() { throw 1 }, get stack() { throw 1 }}",
		  "?\"function raised exception [object Object] with doc._id undefined\"" },
		{ "throw null", "?\"function raised exception null with doc._id undefined\"" },
	};
	struct fixture f;

	(void)state;
	open_attacked(&f);
	for (size_t i = 0; i < sizeof(tricks) / sizeof(tricks[0]); i++) {
		struct str source = arena_printf(f.arena, "function () { %s }", tricks[i].source);

		assert_string_equal(find_out(&f, ATTACKER, source.ptr), tricks[i].rows);
	}
	fixture_close(&f);
}

/* ---- What happens to workers ---- */

static void *
kill_soon(void *arg)
{
	struct fixture *f = arg;
	long pids[8];
	size_t n = 0;

	for (int i = 0; i < 20 * 1000 && n == 0; i++) {
		usleep(1000);
		n = js_workers(f->js, pids, 8);
	}
	usleep(500 * 1000); /* it is ready, or busy; the outcome is the same */
	for (size_t i = 0; i < n; i++)
		kill((pid_t)pids[i], SIGKILL);
	return NULL;
}

static void
a_worker_that_is_killed_fails_its_call_only(void **state)
{
	struct js_config config = fixture_config();
	pthread_t thread;
	struct js_error error;
	struct fixture f;

	(void)state;
	fixture_open(&f, &config);
	/* The worker is there before, so that it is killed in the middle of the loop. */
	(void)attack_once(&f, "function () {}");
	assert_int_equal(pthread_create(&thread, NULL, kill_soon, &f), 0);
	error = attack_once(&f, "function () { for (;;); }");
	pthread_join(thread, NULL);
	assert_true(str_eq(error.name, STR("os_process_error")));
	assert_true(str_eq(error.reason, STR("\"OS process died.\"")));
	assert_true(str_eq(attack_once(&f, "function () { throw {forbidden: 1} }").name,
			   STR("forbidden")));
	fixture_close(&f);
}

static void
a_worker_that_keeps_memory_is_replaced(void **state)
{
	static const char keep[] =
		"function () { if (!globalThis.kept) kept = []; for (var i = 0; i < 10; "
		"i++) kept.push('x'.repeat(1 << 20) + i) }";
	struct fixture f;

	(void)state;
	open_attacked(&f);
	for (int i = 0; i < 30; i++) {
		struct js_error error = attack_once(&f, keep);

		assert_int_equal(error.name.len, 0); /* 10 MiB at a time are within the limit */
		usleep(50 * 1000);                   /* the keeper looks meanwhile */
	}
	fixture_close(&f);
}

/* Calls a loop without an end, and gives it up. True if its worker ends for the time it takes. */
static bool
give_up(struct fixture *f)
{
	static const char text[] = "{\"validate_doc_update\":\"function () { for (;;); }\"}";
	struct js_design design = design_of(ATTACKER, text);
	const struct js_edit edit = { STR("{}"), STR("null") };
	struct js_call call = call_of(f, &design, JS_LANE_REQUEST);
	struct js_verdict verdict;
	struct event stop;

	call.deadline_ns = clock_after_ms(100);
	assert_int_equal(js_validate(&call, STR("{}"), STR("{}"), &edit, 1, &verdict, &f->err),
			 STATUS_TIMEOUT);
	event_init(&stop);
	event_set(&stop);
	call.stop = &stop;
	call.deadline_ns = WAIT_FOREVER;
	assert_int_equal(js_validate(&call, STR("{}"), STR("{}"), &edit, 1, &verdict, &f->err),
			 STATUS_CANCELLED);
	return workers_become(f->js, 0, 5 * TIMEOUT_MS);
}

static void
a_caller_that_gives_up_leaves_its_worker_to_the_limit(void **state)
{
	struct fixture f;
	bool ended = false;

	(void)state;
	open_for(&f, TIMEOUT_MS);
	(void)attack_once(&f, "function () {}"); /* so that there is a worker */
	/* On a busy machine a caller may have gone before its worker has begun. */
	for (int i = 0; i < GIVEN_UP && !ended; i++)
		ended = give_up(&f);
	assert_true(ended);
	fixture_close(&f);
}

/* The process itself: what it has open, and what limits hold. */
static void
a_worker_has_nothing_open_but_its_socket(void **state)
{
	struct fixture f;
	char path[64];
	char line[128];
	long pid;
	bool filtered = false;
	bool no_new_privileges = false;
	FILE *file;

	(void)state;
	open_attacked(&f);
	(void)attack_once(&f, "function () {}");
	assert_int_equal(js_workers(f.js, &pid, 1), 1);
	snprintf(path, sizeof(path), "/proc/%ld/status", pid);
	file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		filtered |= strcmp(line, "Seccomp:\t2\n") == 0;
		no_new_privileges |= strcmp(line, "NoNewPrivs:\t1\n") == 0;
	}
	fclose(file);
	assert_true(filtered && no_new_privileges);
	fixture_close(&f);
}

static void
a_worker_is_nicer_than_its_server(void **state)
{
	struct fixture f;
	long pid;

	(void)state;
	open_attacked(&f);
	(void)attack_once(&f, "function () {}");
	assert_int_equal(js_workers(f.js, &pid, 1), 1);
	assert_true(getpriority(PRIO_PROCESS, (id_t)pid) > getpriority(PRIO_PROCESS, 0));
	fixture_close(&f);
}

/* A call on a thread of its own. */
struct call_beside {
	struct js *js;
	const char *function;
};

static void *
call_beside_run(void *arg)
{
	const struct call_beside *c = arg;
	struct fixture own = { .js = c->js, .arena = arena_new(1024 * 1024) };

	(void)attack_once(&own, c->function);
	arena_free(own.arena);
	return NULL;
}

/* How nice the worker is in a long call at last, as far as this thread has come to look. */
static int
nicest_in_long_call(struct fixture *f, long worker)
{
	struct call_beside call = {
		f->js, "function () { for (var n = Date.now(); Date.now() < n + 1500;); }"
	};
	pthread_t thread;
	int nicest = -20;

	assert_int_equal(pthread_create(&thread, NULL, call_beside_run, &call), 0);
	/* Until the worker ends, which it does once it has answered. */
	for (errno = 0; errno == 0; usleep(1000)) {
		int nice;

		errno = 0;
		nice = getpriority(PRIO_PROCESS, (id_t)worker);
		if (errno == 0)
			nicest = nice > nicest ? nice : nicest;
	}
	pthread_join(thread, NULL);
	return nicest;
}

static void
a_worker_gives_way_in_a_long_call_and_is_replaced(void **state)
{
	const int own = getpriority(PRIO_PROCESS, 0);
	const int quick = own + 5;
	const int least = own < 0 ? own + 19 : 19;
	struct fixture f;
	long first, second;
	int nicest = quick;

	(void)state;
	open_attacked(&f);
	/* On a busy machine a call may be over before this thread has had a turn. */
	for (int attempt = 0; attempt < LOOKS && nicest < least; attempt++) {
		(void)attack_once(&f, "function () {}");
		assert_int_equal(js_workers(f.js, &first, 1), 1);
		assert_int_equal(getpriority(PRIO_PROCESS, (id_t)first), quick < 19 ? quick : 19);
		nicest = nicest_in_long_call(&f, first);
	}
	assert_int_equal(nicest, least);
	(void)attack_once(&f, "function () {}");
	assert_int_equal(js_workers(f.js, &second, 1), 1);
	assert_int_not_equal(first, second);
	fixture_close(&f);
}

static void
a_worker_without_a_processor_keeps_its_priority(void **state)
{
	const int quick = getpriority(PRIO_PROCESS, 0) + 5;
	struct call_beside call = { .function = "function () {}" };
	struct fixture f;
	pthread_t thread;
	long first, second;

	(void)state;
	open_attacked(&f);
	(void)attack_once(&f, "function () {}");
	assert_int_equal(js_workers(f.js, &first, 1), 1);
	call.js = f.js;
	/* It computes as little as on a machine that has no processor for it. */
	assert_int_equal(kill((pid_t)first, SIGSTOP), 0);
	assert_int_equal(pthread_create(&thread, NULL, call_beside_run, &call), 0);
	usleep(1500 * 1000);
	assert_int_equal(getpriority(PRIO_PROCESS, (id_t)first), quick < 19 ? quick : 19);
	assert_int_equal(kill((pid_t)first, SIGCONT), 0);
	pthread_join(thread, NULL);
	(void)attack_once(&f, "function () {}");
	assert_int_equal(js_workers(f.js, &second, 1), 1);
	assert_int_equal(first, second);
	fixture_close(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_endless_loop_is_ended),
		cmocka_unit_test(a_loop_that_catches_everything_is_ended),
		cmocka_unit_test(recursion_is_an_error_of_its_document),
		cmocka_unit_test(a_string_of_4_gib_is_refused),
		cmocka_unit_test(eating_memory_ends_the_worker),
		cmocka_unit_test(a_catastrophic_expression_is_ended),
		cmocka_unit_test(logging_without_end_is_ended),
		cmocka_unit_test(a_promise_that_never_rests_is_ended),
		cmocka_unit_test(emitting_without_end_is_an_error_of_its_document),
		cmocka_unit_test(many_loops_of_one_database_delay_no_other),
		cmocka_unit_test(nothing_of_the_system_can_be_reached),
		cmocka_unit_test(built_in_objects_are_frozen),
		cmocka_unit_test(globals_stay_in_their_design_document),
		cmocka_unit_test(tricks_with_what_is_emitted_stay_json),
		cmocka_unit_test(a_worker_that_is_killed_fails_its_call_only),
		cmocka_unit_test(a_worker_that_keeps_memory_is_replaced),
		cmocka_unit_test(a_caller_that_gives_up_leaves_its_worker_to_the_limit),
		cmocka_unit_test(a_worker_has_nothing_open_but_its_socket),
		cmocka_unit_test(a_worker_is_nicer_than_its_server),
		cmocka_unit_test(a_worker_gives_way_in_a_long_call_and_is_replaced),
		cmocka_unit_test(a_worker_without_a_processor_keeps_its_priority),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
