#include "door/couch/view/functions.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "base/mem.h"

enum {
	FUNCTIONS_WAIT_MS = 60 * 1000, /* that a request waits for a worker */
	/*
	 * That a call may take before it is a slow one. Pages with quick calls have one snapshot
	 * between them; on a cluster that lasts for five seconds.
	 */
	FUNCTIONS_QUICK_MS = 200,
};

struct couch_view_functions {
	atomic_uint refs;
	struct js *js;
	struct js_design design; /* its texts lie behind the struct */
	enum js_lane lane;
	enum js_reduce_limit limit;
	struct event *stop;
	void (*on_slow)(void *arg);
	void *slow_arg;
};

enum js_reduce_limit
couch_view_reduce_limit(const struct couch_settings *settings)
{
	const char *limit = settings->reduce_limit;

	return strcmp(limit, "true") == 0  ? JS_REDUCE_LIMIT_ON
	       : strcmp(limit, "log") == 0 ? JS_REDUCE_LIMIT_LOG
					   : JS_REDUCE_LIMIT_OFF;
}

/* ---- Life ---- */

static struct str
functions_copy(char **at, struct str text)
{
	struct str copy = { *at, text.len };

	if (text.len)
		memcpy(*at, text.ptr, text.len);
	*at += text.len;
	return copy;
}

struct couch_view_functions *
couch_view_functions_new(struct js *js, const struct js_design *design, enum js_lane lane,
			 enum js_reduce_limit limit)
{
	size_t bytes = design->name.len + design->key.len + design->language.len + design->text.len;
	struct couch_view_functions *f = mem_alloc(sizeof(*f) + bytes);
	char *at;

	if (!f)
		return NULL;
	at = (char *)(f + 1);
	*f = (struct couch_view_functions){ .js = js, .lane = lane, .limit = limit };
	atomic_init(&f->refs, 1);
	f->design = (struct js_design){
		.owner = design->owner,
		.name = functions_copy(&at, design->name),
		.key = functions_copy(&at, design->key),
		.language = functions_copy(&at, design->language),
		.text = functions_copy(&at, design->text),
	};
	return f;
}

void
couch_view_functions_release(struct couch_view_functions *f)
{
	if (f && atomic_fetch_sub(&f->refs, 1) == 1)
		mem_free(f);
}

void
couch_view_functions_set_stop(struct couch_view_functions *f, struct event *stop)
{
	f->stop = stop;
}

void
couch_view_functions_set_slow(struct couch_view_functions *f, void (*on_slow)(void *arg), void *arg)
{
	f->on_slow = on_slow;
	f->slow_arg = arg;
}

static void
functions_retain(void *arg)
{
	struct couch_view_functions *f = arg;

	(void)atomic_fetch_add(&f->refs, 1);
}

static void
functions_release(void *arg)
{
	couch_view_functions_release(arg);
}

/* ---- Calls ---- */

static struct js_call
functions_call(const struct couch_view_functions *f, struct arena *arena)
{
	return (struct js_call){
		.js = f->js,
		.design = &f->design,
		.lane = f->lane,
		.deadline_ns = f->lane == JS_LANE_REQUEST ? clock_after_ms(FUNCTIONS_WAIT_MS)
							  : WAIT_FOREVER,
		.stop = f->stop,
		.arena = arena,
		.on_slow = f->on_slow,
		.slow_arg = f->slow_arg,
		.patience_ns = f->on_slow ? clock_after_ms(FUNCTIONS_QUICK_MS) : 0,
	};
}

static struct view_error
functions_error(const struct js_error *error)
{
	return (struct view_error){ error->name, error->reason };
}

/* The rows of a document's maps. */
static void
functions_pass_rows(struct js_mapped *mapped, size_t map_count, struct view_sink *sink)
{
	struct str key;
	struct str value;
	struct str reason;

	for (size_t i = 0; i < map_count; i++) {
		view_sink_next(sink);
		if (!js_mapped_next(mapped, &reason)) {
			view_sink_failed(sink, reason);
			continue;
		}
		while (js_mapped_row(mapped, &key, &value))
			view_sink_row(sink, key, value);
	}
}

static enum status
functions_map(void *arg, const struct view_design *design, const struct str *docs, size_t count,
	      struct arena *arena, struct view_sink *sink, size_t *ret_done,
	      struct view_error *ret_error, struct err *err)
{
	const struct couch_view_functions *f = arg;
	struct js_call call = functions_call(f, arena);
	struct js_mapped mapped = { .bytes = BUF_SHORT(0) };
	struct str *names = arena_alloc(arena, (design->map_count + 1) * sizeof(*names));
	enum status status;

	if (!names)
		return STATUS_LIMIT;
	for (size_t i = 0; i < design->map_count; i++)
		names[i] = design->maps[i].name;
	status = js_map(&call, names, design->map_count, docs, count, &mapped, err);
	if (status == STATUS_FUNCTION)
		*ret_error = functions_error(&call.error);
	if (status != STATUS_OK)
		return status;
	for (size_t i = 0; i < mapped.done; i++)
		functions_pass_rows(&mapped, design->map_count, sink);
	*ret_done = mapped.done;
	js_mapped_release(&mapped);
	return STATUS_OK;
}

static enum status
functions_reduce(void *arg, const struct view_design *design, const struct str *names,
		 size_t name_count, bool rereduce, const struct view_group_input *groups,
		 size_t group_count, struct arena *arena, struct str *ret_results,
		 struct view_error *ret_errors, struct view_error *ret_error, struct err *err)
{
	const struct couch_view_functions *f = arg;
	struct js_call call = functions_call(f, arena);
	struct js_group *inputs = arena_alloc(arena, (group_count + 1) * sizeof(*inputs));
	struct js_error *errors = arena_zalloc(arena, (group_count + 1) * sizeof(*errors));
	enum status status;

	(void)design;
	if (!inputs || !errors)
		return STATUS_LIMIT;
	for (size_t i = 0; i < group_count; i++)
		inputs[i] = (struct js_group){ groups[i].keys, groups[i].values };
	status = js_reduce(&call, names, name_count, rereduce, f->limit, inputs, group_count,
			   ret_results, errors, err);
	if (status == STATUS_FUNCTION)
		*ret_error = functions_error(&call.error);
	for (size_t i = 0; status == STATUS_OK && i < group_count; i++)
		ret_errors[i] = functions_error(&errors[i]);
	return status;
}

const struct view_functions couch_view_functions = {
	.map = functions_map,
	.reduce = functions_reduce,
	.retain = functions_retain,
	.release = functions_release,
};
