/* What the tests of mql/ share: documents as Extended JSON, in an arena a test. */
#ifndef FROND_TESTS_MQL_MQL_CASE_H
#define FROND_TESTS_MQL_MQL_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/mem.h"
#include "bson/json.h"
#include "loop/fiber.h"
#include "loop/task.h"
#include "mql/mql.h"

enum {
	CASE_BYTES = 1 << 22,
};

#define CASES(array) (sizeof(array) / sizeof((array)[0]))

static struct err case_err;

static inline int
case_setup(void **state)
{
	*state = arena_new(CASE_BYTES);
	return *state ? 0 : -1;
}

static inline int
case_teardown(void **state)
{
	arena_free(*state);
	return 0;
}

static inline struct mql
case_mql(struct arena *arena)
{
	case_err = (struct err){ 0 };
	return (struct mql){ .arena = arena, .err = &case_err, .now_ms = 1700000000123 };
}

/* What a case does and says, in memory of its own: nothing that it is given lies in `q->arena`. */
typedef enum status case_again(struct mql *q, const void *arg, struct buf *said);

struct case_outcome {
	enum status status;
	int code;
	struct buf said;
};

/* A case that runs on a fiber, since only what a fiber counts has a limit. */
struct case_on_fiber {
	case_again *run;
	const void *arg;
	struct arena *arena;
	struct case_outcome got;
};

static inline struct case_outcome
case_outcome(struct arena *arena, case_again *run, const void *arg)
{
	struct case_outcome o = { .said = BUF_INIT(CASE_BYTES) };
	struct mql q = case_mql(arena);

	o.status = run(&q, arg, &o.said);
	o.code = q.code;
	return o;
}

/* What was said before an error may have had no room. */
static inline bool
case_is_as_wanted(const struct case_outcome *got, const struct case_outcome *wanted)
{
	return got->status == wanted->status && got->code == wanted->code &&
	       (buf_status(&got->said) != STATUS_OK ||
		str_eq(buf_str(&got->said), buf_str(&wanted->said)));
}

/*
 * Runs it with an arena of each size, up to one that is enough: where the arena was full, the
 * outcome is STATUS_LIMIT, or still the same, since only the words of an error had no room.
 */
static inline void
case_memory_of_arena(case_again *run, const void *arg, const struct case_outcome *wanted,
		     const char *name)
{
	bool full = true;

	for (size_t bytes = 0; full; bytes += 8 + bytes / 32) {
		struct arena *arena = arena_new(bytes);
		struct case_outcome got = case_outcome(arena, run, arg);

		full = arena_is_full(arena);
		if (full && got.status != STATUS_LIMIT && !case_is_as_wanted(&got, wanted))
			fail_msg("%s with %zu bytes: %s", name, bytes, status_name(got.status));
		buf_release(&got.said);
		arena_free(arena);
	}
}

/*
 * Runs it with one allocation failing, of the arena's and of all others: every one of the first
 * sixteen, then at growing distances. The outcome is that there is no memory, or still the same.
 */
static inline void
case_memory_of_system(case_again *run, const void *arg, const struct case_outcome *wanted,
		      const char *name)
{
	bool failed = true;

	for (uint64_t nth = 1; failed; nth += 1 + nth / 16) {
		struct arena *arena = arena_new(CASE_BYTES);
		struct case_outcome got;

		(void)mem_fail_only(nth);
		got = case_outcome(arena, run, arg);
		failed = mem_fail_only(0) >= nth;
		if (got.status != STATUS_NOMEM && got.status != STATUS_LIMIT &&
		    !case_is_as_wanted(&got, wanted))
			fail_msg("%s without its allocation %llu: %s %d %s", name,
				 (unsigned long long)nth, status_name(got.status), got.code,
				 case_err.text);
		buf_release(&got.said);
		arena_free(arena);
	}
}

static inline void
case_on_fiber(void *arg)
{
	struct case_on_fiber *c = arg;

	c->got = case_outcome(c->arena, c->run, c->arg);
}

/*
 * Runs it with a limit of steps, which it meets at one count after the other: every one of the
 * first sixteen, then at growing distances. The outcome is that there are too few steps, or still
 * the same, where what met the limit cannot fail and nothing was counted behind it.
 */
static inline void
case_steps(case_again *run, const void *arg, const struct case_outcome *wanted, const char *name)
{
	struct task task = { .fiber = fiber_new() };
	struct case_on_fiber c = { .run = run, .arg = arg };
	bool met = true;

	assert_non_null(task.fiber);
	for (int64_t nth = 1; met && nth < STEP_SLICE_STEPS; nth += 1 + nth / 16) {
		c.arena = arena_new(CASE_BYTES);
		step_init(&task.steps);
		task.steps.limit = task.steps.used = 1;
		step_enter(&task.steps);
		task.steps.granted = nth;
		step_credit = nth;
		fiber_start(task.fiber, case_on_fiber, &c);
		assert_true(fiber_enter(task.fiber));
		met = task.steps.used > task.steps.limit;
		step_leave();
		if (c.got.status != STATUS_STEPS && !case_is_as_wanted(&c.got, wanted))
			fail_msg("%s with %lld steps: %s %d %s", name, (long long)nth,
				 status_name(c.got.status), c.got.code, case_err.text);
		buf_release(&c.got.said);
		arena_free(c.arena);
	}
	fiber_free(task.fiber);
}

/* Runs it with too little memory of each kind, and with too few steps. */
static inline void
case_memory(case_again *run, const void *arg, const char *name)
{
	struct arena *enough = arena_new(CASE_BYTES);
	struct case_outcome wanted = case_outcome(enough, run, arg);

	case_memory_of_arena(run, arg, &wanted, name);
	case_memory_of_system(run, arg, &wanted, name);
	case_steps(run, arg, &wanted, name);
	buf_release(&wanted.said);
	arena_free(enough);
}

/* The document of a text in which ' stands for ". */
static inline struct str
case_bson(struct arena *arena, const char *text)
{
	struct buf out = BUF_INIT(CASE_BYTES);
	char *json = arena_bytes(arena, strlen(text) + 1);
	struct str kept;
	struct err err = { 0 };

	memcpy(json, text, strlen(text) + 1);
	for (char *c = json; *c; c++) {
		if (*c == '\'')
			*c = '"';
	}
	if (bson_json_read(str_from_cstr(json), &out, &err) != STATUS_OK)
		fail_msg("%s: %s", text, err.text);
	kept = arena_dup(arena, buf_str(&out));
	buf_release(&out);
	return kept;
}

/* Canonical text, with ' for ". */
static inline const char *
case_json(struct arena *arena, struct str document)
{
	struct buf out = BUF_INIT(CASE_BYTES);
	char *text;

	bson_json_write(&out, document, BSON_JSON_RELAXED);
	text = arena_bytes(arena, out.len + 1);
	memcpy(text, out.ptr, out.len);
	text[out.len] = '\0';
	buf_release(&out);
	for (char *c = text; *c; c++) {
		if (*c == '"')
			*c = '\'';
	}
	return text;
}

#endif
