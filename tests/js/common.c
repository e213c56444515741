#include "common.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"

enum {
	ARENA_BYTES = 256 * 1024 * 1024,
	PIDS = 16,
	AWAIT_MS = 30 * 1000,
};

struct js_config
fixture_config(void)
{
	return (struct js_config){
		.worker = getenv("FROND_JS_WORKER"),
		.workers = 8,
		.timeout_ms = 60 * 1000, /* workers let all others of a busy machine go first */
		.idle_ms = 60 * 1000,
		.memory_bytes = 512 * 1024 * 1024,
		.output_bytes = 1024 * 1024,
		.slow_ms = 60 * 1000,
	};
}

void
fixture_open(struct fixture *f, const struct js_config *config)
{
	*f = (struct fixture){ .config = *config, .arena = arena_new(ARENA_BYTES) };
	assert_non_null(f->arena);
	assert_int_equal(js_new(config, &f->js, &f->err), STATUS_OK);
}

void
fixture_close(struct fixture *f)
{
	js_free(f->js);
	arena_free(f->arena);
}

struct js_design
design_of(uint64_t owner, const char *text)
{
	return (struct js_design){
		.owner = owner,
		.name = STR("db/_design/test"),
		.key = str_from_cstr(text),
		.language = STR("javascript"),
		.text = str_from_cstr(text),
	};
}

struct js_call
call_of(struct fixture *f, const struct js_design *design, enum js_lane lane)
{
	return (struct js_call){
		.js = f->js,
		.design = design,
		.lane = lane,
		.deadline_ns = WAIT_FOREVER,
		.arena = f->arena,
	};
}

static const char *
describe_rows(struct fixture *f, struct js_mapped *m)
{
	struct buf out = BUF_INIT(ARENA_BYTES);
	struct str key;
	struct str value;
	struct str text;

	if (!js_mapped_next(m, &text)) {
		buf_append_byte(&out, '?');
		buf_append_str(&out, text);
	}
	while (js_mapped_row(m, &key, &value)) {
		buf_append_str(&out, key);
		buf_append_byte(&out, '=');
		buf_append_str(&out, value);
		buf_append_byte(&out, ';');
	}
	text = arena_dup(f->arena, buf_str(&out));
	assert_non_null(text.ptr);
	buf_release(&out);
	return text.ptr;
}

const char *
map_one(struct fixture *f, const struct js_design *design, const char *view, const char *doc)
{
	struct js_call call = call_of(f, design, JS_LANE_INDEX);
	const struct str name = str_from_cstr(view);
	const struct str text = str_from_cstr(doc);
	struct js_mapped m = { 0 };
	enum status status = js_map(&call, &name, 1, &text, 1, &m, &f->err);
	const char *rows;

	if (status == STATUS_FUNCTION)
		return arena_printf(f->arena, "!%.*s %.*s", STR_ARG(call.error.name),
				    STR_ARG(call.error.reason))
			.ptr;
	if (status != STATUS_OK)
		return arena_printf(f->arena, "!!%s", f->err.text).ptr;
	rows = describe_rows(f, &m);
	js_mapped_release(&m);
	return rows;
}

bool
workers_become(struct js *js, size_t n, uint64_t ms)
{
	uint64_t end_ns = clock_after_ms(ms);
	long pids[PIDS];

	while (js_workers(js, pids, PIDS) != n) {
		if (clock_mono_ns() >= end_ns)
			return false;
		usleep(1000);
	}
	return true;
}

void
await_workers(struct js *js, size_t n)
{
	assert_true(workers_become(js, n, AWAIT_MS));
}
