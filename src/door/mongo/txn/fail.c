#include "door/mongo/txn/fail.h"

#include <stdio.h>

#include "base/clock.h"
#include "door/mongo/txn/client.h"
#include "loop/asking.h"

enum {
	NS_BYTES = 256, /* of what a command works on */
};

#define ARGS_FAIL_POINT(ARG) ARG(FAIL_DATA, "data", ARG_OBJECT)
ARGS_DEFINE(args_fail_point, ARGS_FAIL_POINT);

static const char *const fail_names[FAIL_KINDS] = {
	[FAIL_COMMAND] = "failCommand",
	[FAIL_RETRYABLE_WRITE] = "onPrimaryTransactionalWrite",
	[FAIL_MAX_TIME] = "maxTimeAlwaysTimeOut",
	[FAIL_NO_TIME] = "maxTimeNeverTimeOut",
	[FAIL_GET_MORE] = "failGetMoreAfterCursorCheckout",
};

void
fail_points_init(struct fail_points *f)
{
	for (int i = 0; i < FAIL_KINDS; i++)
		f->points[i] = (struct fail_point){ .data = BUF_SHORT(FAIL_DATA_BYTES) };
	pthread_mutex_init(&f->lock, NULL);
}

void
fail_points_fini(struct fail_points *f)
{
	for (int i = 0; i < FAIL_KINDS; i++)
		buf_release(&f->points[i].data);
	pthread_mutex_destroy(&f->lock);
}

/* ---- Which commands it hits ---- */

static bool
text_is(struct str data, const char *name, struct str text)
{
	struct bson_value v;

	return !bson_find(data, str_from_cstr(name), &v) ||
	       (v.type == BSON_STRING && str_eq(bson_text(&v), text));
}

static bool
names_command(struct str data, const struct call *c)
{
	struct bson_value commands;
	struct bson_element e;
	struct bson_iter i;

	if (!bson_find(data, STR("failCommands"), &commands) || commands.type != BSON_ARRAY)
		return false;
	for (bson_iter_begin(&i, bson_text(&commands)); bson_iter_read(&i, &e);)
		if (e.value.type == BSON_STRING &&
		    mongo_command_find(bson_text(&e.value)) == c->command)
			return true;
	return false;
}

/* The name of the client's program. Fail points apply also to the first hello, which brings it. */
static struct str
app_of(const struct call *c)
{
	struct bson_value name;

	if (!c->client->greeted && bson_find_path(c->body, STR("client.application.name"), &name) &&
	    name.type == BSON_STRING)
		return bson_text(&name);
	return buf_str(&c->client->entry.name);
}

static bool
is_hit(enum fail_kind kind, struct str data, const struct call *c)
{
	char ns[NS_BYTES];
	int len = snprintf(ns, sizeof(ns), "%.*s.%.*s", STR_ARG(c->db), STR_ARG(c->collection));

	if (kind == FAIL_GET_MORE)
		return text_is(data, "appName", app_of(c));
	return kind != FAIL_COMMAND ||
	       (c->command->run != mongo_run_fail_point && names_command(data, c) &&
		text_is(data, "appName", app_of(c)) &&
		(len < 0 || (size_t)len >= sizeof(ns) ||
		 text_is(data, "namespace", str_of(ns, (size_t)len))));
}

/* Copies the data into the call's arena if the command is hit; else it is empty. */
static enum status
take_hit(struct call *c, enum fail_kind kind, struct str *ret)
{
	struct fail_points *all = &c->mongo->fail;
	struct fail_point *f = &all->points[kind];
	enum status status = STATUS_OK;

	*ret = STR("");
	pthread_mutex_lock(&all->lock);
	if (f->on && is_hit(kind, buf_str(&f->data), c)) {
		if (f->skips) {
			f->skips--;
		} else if (f->times) {
			f->times -= f->times > 0;
			f->entered++;
			*ret = buf_dup(&f->data, c->arena);
			status = ret->ptr ? STATUS_OK : STATUS_LIMIT;
		}
	}
	pthread_mutex_unlock(&all->lock);
	return status;
}

/* ---- What it does to them ---- */

static int64_t
number_of(struct str data, const char *name)
{
	struct bson_value v;
	int64_t n = 0;

	if (!bson_find(data, str_from_cstr(name), &v) || !bson_is_number(&v) ||
	    !bson_to_int64(&v, &n))
		return 0;
	return n;
}

static enum status
block(struct call *c, int64_t ms)
{
	struct event *closed = net_stream_closed_event(c->client->stream);
	struct event *stopping = net_stream_stopping_event(c->client->stream);
	struct event *const events[] = { closed, stopping };
	size_t which;

	if (ms > FAIL_BLOCK_MS)
		ms = FAIL_BLOCK_MS;
	return ms > 0 ? wait_asking(events, 2, clock_after_ms((uint64_t)ms), &which) : STATUS_OK;
}

/* A command that has a time limit ends as if the time were over, or has none. */
static enum status
fail_time(struct call *c)
{
	struct str data;

	if (!c->max_ns)
		return STATUS_OK;
	TRY(take_hit(c, FAIL_NO_TIME, &data));
	if (data.len) {
		c->max_ns = 0;
		return STATUS_OK;
	}
	TRY(take_hit(c, FAIL_MAX_TIME, &data));
	return data.len ? call_fail(c, MONGO_MAX_TIME_EXPIRED, "operation exceeded time limit")
			: STATUS_OK;
}

enum status
fail_begin(struct call *c)
{
	struct bson_value v;
	struct str data;
	int64_t code;

	if (!c->mongo->config.test_commands)
		return STATUS_OK;
	TRY(fail_time(c));
	TRY(take_hit(c, FAIL_COMMAND, &data));
	if (!data.len)
		return STATUS_OK;
	if (bson_find_true(data, STR("blockConnection")))
		TRY(block(c, number_of(data, "blockTimeMS")));
	if (bson_find(data, STR("errorLabels"), &v) && v.type == BSON_ARRAY)
		c->failing.labels = bson_text(&v);
	if (bson_find(data, STR("writeConcernError"), &v) && v.type == BSON_DOCUMENT)
		c->failing.concern = bson_text(&v);
	if (bson_find_true(data, STR("closeConnection"))) {
		c->failing.closes = true;
		return call_fail(c, MONGO_HOST_UNREACHABLE, "the connection is closed");
	}
	code = number_of(data, "errorCode");
	if (code > 0 && code <= INT32_MAX)
		return call_fail(c, (int)code, "Failing command via 'failCommand' failpoint");
	return STATUS_OK;
}

enum status
fail_more(struct call *c)
{
	struct str data;
	int64_t code;

	if (!c->mongo->config.test_commands)
		return STATUS_OK;
	TRY(take_hit(c, FAIL_GET_MORE, &data));
	if (!data.len)
		return STATUS_OK;
	code = number_of(data, "errorCode");
	return call_fail(c, code > 0 && code <= INT32_MAX ? (int)code : MONGO_BAD_VALUE,
			 "Hit the 'failGetMoreAfterCursorCheckout' failpoint");
}

enum status
fail_statement(struct call *c)
{
	struct bson_value v;
	struct str data;
	int64_t code;

	if (!c->mongo->config.test_commands)
		return STATUS_OK;
	TRY(take_hit(c, FAIL_RETRYABLE_WRITE, &data));
	if (!data.len)
		return STATUS_OK;
	if (!bson_find(data, STR("closeConnection"), &v) || bson_is_true(&v))
		c->failing.closes = true;
	code = number_of(data, "failBeforeCommitExceptionCode");
	if (code > 0 && code <= INT32_MAX)
		c->failing.commit = (int)code;
	return STATUS_OK;
}

enum status
fail_commit(struct call *c)
{
	int code = c->failing.commit;

	if (!code)
		return STATUS_OK;
	c->failing.commit = 0;
	return call_fail(c, code, "Failing write of transaction %lld due to failpoint",
			 (long long)c->number);
}

void
fail_put(struct call *c)
{
	if (c->failing.concern.ptr)
		bson_put_document(c->reply, STR("writeConcernError"), c->failing.concern);
	if (c->failing.labels.ptr && !bson_is_empty(c->failing.labels))
		bson_put_array(c->reply, STR("errorLabels"), c->failing.labels);
}

/* ---- configureFailPoint ---- */

struct fail_mode {
	bool on;
	int64_t skips;
	int64_t times;
};

static enum status
mode_read(struct call *c, struct fail_mode *ret)
{
	struct bson_value mode;

	*ret = (struct fail_mode){ .on = true, .times = -1 };
	if (!bson_find(c->body, STR("mode"), &mode))
		return call_fail(c, MONGO_BAD_VALUE, "Mode must be specified");
	if (mode.type == BSON_STRING && str_eq(bson_text(&mode), STR("alwaysOn")))
		return STATUS_OK;
	if (mode.type == BSON_STRING && str_eq(bson_text(&mode), STR("off"))) {
		ret->on = false;
		return STATUS_OK;
	}
	if (mode.type == BSON_DOCUMENT && bson_find(bson_text(&mode), STR("times"), NULL)) {
		ret->times = number_of(bson_text(&mode), "times");
		if (ret->times >= 0)
			return STATUS_OK;
	}
	if (mode.type == BSON_DOCUMENT && bson_find(bson_text(&mode), STR("skip"), NULL)) {
		ret->skips = number_of(bson_text(&mode), "skip");
		if (ret->skips >= 0)
			return STATUS_OK;
	}
	return call_fail(c, MONGO_BAD_VALUE,
			 "the mode of a fail point is 'off', 'alwaysOn', {times: n} or {skip: n}");
}

enum status
mongo_run_fail_point(struct call *c)
{
	struct fail_points *all = &c->mongo->fail;
	struct fail_point *f = NULL;
	struct fail_mode mode;
	enum status status;

	if (!c->mongo->config.test_commands)
		return call_fail(c, MONGO_COMMAND_NOT_FOUND,
				 "no such command: 'configureFailPoint': the server was started "
				 "without --mongo-test-commands");
	for (int i = 0; i < FAIL_KINDS; i++)
		if (c->first.type == BSON_STRING &&
		    str_eq(bson_text(&c->first), str_from_cstr(fail_names[i])))
			f = &all->points[i];
	if (!f)
		return call_fail(c, MONGO_FAIL_POINT,
				 "the fail points are '%s', '%s', '%s', '%s' and '%s'",
				 fail_names[FAIL_COMMAND], fail_names[FAIL_RETRYABLE_WRITE],
				 fail_names[FAIL_MAX_TIME], fail_names[FAIL_NO_TIME],
				 fail_names[FAIL_GET_MORE]);
	TRY(mode_read(c, &mode));
	pthread_mutex_lock(&all->lock);
	buf_clear(&f->data);
	buf_append_str(&f->data,
		       call_has(c, FAIL_DATA) ? bson_text(&c->args[FAIL_DATA].value) : BSON_EMPTY);
	status = buf_status(&f->data);
	f->on = mode.on && status == STATUS_OK;
	f->skips = mode.skips;
	f->times = mode.times;
	bson_put_int64(c->reply, STR("count"), f->entered);
	if (status != STATUS_OK)
		buf_release(&f->data);
	pthread_mutex_unlock(&all->lock);
	return status;
}
