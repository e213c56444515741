/*
 * GET /_frond/follow: what a standby reads of this server's store (kv/log.h).
 *
 * With `after` and `history`, the version and the history that the standby has, it answers with
 * records of the log behind that, as many as fit KV_LOG_ANSWER_BYTES. If there are none it waits
 * for some, for `wait` milliseconds at most, and then answers without. Asking tells that all up to
 * `after` is safe with the standby.
 * Without `after` it answers with a copy of the store, which ends with an empty record of the
 * version of the copy. Each answer begins with a head: the version that was published last, and the
 * name of the history.
 *
 * GET /_frond/position: where the store is, for a first that asks whether it has been replaced.
 */
#include "base/big_endian.h"
#include "base/clock.h"
#include "door/couch/admin/access.h"
#include "door/couch/admin/again.h"
#include "door/couch/admin/endpoints.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/reply.h"
#include "door/couch/wire/request.h"
#include "kv/log.h"
#include "loop/wait.h"

enum {
	FOLLOW_LOOK_MS = 10, /* between two looks at whether something has been committed */
};

/* What runs in the pool, by wait_offload(). */
struct follow_job {
	struct couch_req *r;
	struct str name;
	struct str history; /* that the standby has */
	uint64_t after;
	struct kv_log_position position;
	struct kv_log_copy *copy;
	bool done;
	struct buf out;
	enum status status;
};

static enum status
follow_check_user(struct couch_req *r)
{
	const char *role = r->settings->follower_role;

	if (r->user.admin || (role && couch_has_role(&r->user, str_from_cstr(role))))
		return STATUS_OK;
	if (role && r->user.name.len)
		return couch_fail_set(&r->fail, COUCH_ERROR_FORBIDDEN,
				      "You may not follow this server.");
	return couch_require_admin(r);
}

/* The same for somebody who has been waiting, or to whom the copy is being sent. */
static enum status
follow_check_still(struct couch_req *r)
{
	if (couch_may_still(r, follow_check_user))
		return STATUS_OK;
	return couch_fail_set(&r->fail, COUCH_ERROR_FORBIDDEN,
			      "You may not follow this server any more.");
}

static void
follow_put_head(struct buf *out, const struct kv_log_position *position)
{
	char version[sizeof(position->version)];

	big_endian_put_64(version, position->version);
	buf_append(out, version, sizeof(version));
	buf_append(out, (const char *)position->history, sizeof(position->history));
}

/* True if `text` is the name of this store's history, in hexadecimal digits. */
static bool
follow_is_history(struct str text, const uint8_t history[KV_LOG_HISTORY_BYTES])
{
	uint8_t named[KV_LOG_HISTORY_BYTES];

	return text.len == 2 * sizeof(named) && str_from_hex(text, named) &&
	       memcmp(named, history, sizeof(named)) == 0;
}

static void
follow_do_read(void *arg)
{
	struct follow_job *job = arg;
	struct kv_store *store = job->r->couch->config.store;
	struct err *err = &job->r->fail.err;

	job->status = kv_log_position(store, &job->position, err);
	if (job->status != STATUS_OK)
		return;
	if (!follow_is_history(job->history, job->position.history)) {
		job->status = err_set(err, STATUS_DOC_CONFLICT,
				      "the standby has another history than this store, which was "
				      "restored from a backup or promoted, or of which another "
				      "standby was promoted");
		return;
	}
	follow_put_head(&job->out, &job->position);
	job->status = kv_log_read(store, job->name, job->after, KV_LOG_ANSWER_BYTES, &job->out,
				  err);
}

static void
follow_do_copy(void *arg)
{
	struct follow_job *job = arg;

	job->status = kv_log_copy_next(job->copy, KV_LOG_ANSWER_BYTES, &job->out, &job->done,
				       &job->r->fail.err);
}

/* Waits until something is published that the standby has not got. */
static enum status
follow_wait(struct follow_job *job, uint64_t wait_ms)
{
	struct couch_req *r = job->r;
	uint64_t deadline_ns = clock_after_ms(wait_ms);

	while (kv_log_published(r->couch->config.store) == job->after &&
	       clock_mono_ns() < deadline_ns && !event_is_set(http_stopping_event(r->x))) {
		if (event_wait(http_closed_event(r->x), clock_after_ms(FOLLOW_LOOK_MS)))
			return STATUS_CANCELLED;
		TRY(follow_check_still(r));
	}
	return STATUS_OK;
}

static enum status
follow_parse(struct couch_req *r, struct follow_job *job, uint64_t *ret_wait_ms)
{
	struct str text = STR("0");

	(void)couch_param(r, "wait", &text);
	if (!str_to_u64(text, ret_wait_ms) || *ret_wait_ms > KV_LOG_WAIT_MOST_MS)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "`wait` must be an integer from 0 to %d.",
				      (int)KV_LOG_WAIT_MOST_MS);
	text = STR("");
	(void)couch_param(r, "after", &text);
	if (!str_to_u64(text, &job->after))
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "`after` must be a version.");
	job->history = STR("");
	(void)couch_param(r, "history", &job->history);
	job->name = STR("standby");
	(void)couch_param(r, "name", &job->name);
	return STATUS_OK;
}

static void
follow_set_headers(struct couch_req *r)
{
	http_set_header(r->x, STR("Content-Type"), STR("application/octet-stream"));
	http_set_header(r->x, STR("Cache-Control"), STR("no-store"));
}

static enum status
follow_log(struct couch_req *r, struct follow_job *job)
{
	uint64_t wait_ms;

	TRY(follow_parse(r, job, &wait_ms));
	TRY(follow_wait(job, wait_ms));
	wait_offload(follow_do_read, job);
	TRY(job->status);
	TRY(buf_status(&job->out));
	follow_set_headers(r);
	return http_send(r->x, buf_str(&job->out));
}

static enum status
follow_send_copy(struct couch_req *r, struct follow_job *job)
{
	follow_put_head(&job->out, &job->position);
	follow_set_headers(r);
	TRY(http_start(r->x, HTTP_LENGTH_UNKNOWN));
	while (!job->done) {
		TRY(http_write(r->x, buf_str(&job->out)));
		buf_clear(&job->out);
		TRY(follow_check_still(r));
		wait_offload(follow_do_copy, job);
		TRY(job->status);
	}
	kv_log_copy_put_end(job->copy, &job->out);
	TRY(http_write(r->x, buf_str(&job->out)));
	return http_finish(r->x);
}

static void
follow_do_begin_copy(void *arg)
{
	struct follow_job *job = arg;
	struct kv_store *store = job->r->couch->config.store;

	job->status = kv_log_position(store, &job->position, &job->r->fail.err);
	if (job->status == STATUS_OK)
		job->status = kv_log_copy_begin(store, &job->copy, &job->r->fail.err);
}

static enum status
follow_copy(struct couch_req *r, struct follow_job *job)
{
	enum status status;

	TRY(http_ask_to_last(r->x, 2 * KV_LOG_ANSWER_BYTES));
	wait_offload(follow_do_begin_copy, job);
	TRY(job->status);
	status = follow_send_copy(r, job);
	kv_log_copy_end(job->copy);
	return status;
}

enum status
couch_follow(struct couch_req *r)
{
	struct follow_job job = { .r = r };
	enum status status;
	struct str after;

	TRY(follow_check_user(r));
	job.out = couch_buf(r, KV_LOG_RECORD_BYTES + 2 * KV_LOG_ANSWER_BYTES);
	status = couch_param(r, "after", &after) ? follow_log(r, &job) : follow_copy(r, &job);
	buf_release(&job.out);
	return status;
}

/* ---- The position ---- */

static void
position_do_read(void *arg)
{
	struct follow_job *job = arg;

	job->status = kv_log_position(job->r->couch->config.store, &job->position,
				      &job->r->fail.err);
}

static void
position_put_history(struct buf *out, const uint8_t history[KV_LOG_HISTORY_BYTES])
{
	buf_append_byte(out, '"');
	buf_append_hex(out, str_of((const char *)history, KV_LOG_HISTORY_BYTES));
	buf_append_byte(out, '"');
}

/*
 * {"version":12,"history":"…","before":"…","promoted_at":7,"follows":true}; the last but one and
 * what is in front of it if it was promoted, the last if it is a standby.
 */
enum status
couch_position(struct couch_req *r)
{
	struct buf AUTO(buf_release) out = BUF_SHORT(COUCH_SMALL_BODY_BYTES);
	struct follow_job job = { .r = r };

	TRY(follow_check_user(r));
	wait_offload(position_do_read, &job);
	TRY(job.status);
	buf_printf(&out,
		   "{\"version\":%llu,\"history\":", (unsigned long long)job.position.version);
	position_put_history(&out, job.position.history);
	if (job.position.promoted_at) {
		buf_append_cstr(&out, ",\"before\":");
		position_put_history(&out, job.position.before);
		buf_printf(&out, ",\"promoted_at\":%llu",
			   (unsigned long long)job.position.promoted_at);
	}
	buf_append_cstr(&out, job.position.follows ? ",\"follows\":true}" : "}");
	return couch_reply(r, 200, &out);
}
