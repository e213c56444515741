/*
 * /_frond/backup and /_frond/compact, for operators of a server that has its store open. CouchDB
 * has no such endpoints. They are for administrators only.
 */
#include "base/mem.h"
#include "doc/json.h"
#include "doc/json_value.h"
#include "door/couch/admin/access.h"
#include "door/couch/admin/endpoints.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/reply.h"
#include "door/couch/wire/request.h"
#include "kv/backup.h"
#include "kv/kv.h"
#include "loop/wait.h"

enum {
	TARGET_BYTES = 64, /* of a name below the directory of backups */
};

/* Work that blocks. It runs in the pool, by wait_offload(). */
struct job {
	struct kv_store *store;
	const char *dir;
	uint32_t keep; /* backups; 0: all */
	struct kv_backup backup;
	struct kv_backup *list;
	size_t count;
	uint64_t bytes_before;
	uint64_t bytes_after;
	enum status status;
	struct err err;
};

/* Runs one job at a time, because a job keeps a thread of the pool and the disk busy for long. */
static enum status
ops_run_job(struct couch_req *r, void (*fn)(void *job), struct job *job)
{
	if (atomic_exchange(&r->couch->maintained, true))
		return couch_fail_set(&r->fail, COUCH_ERROR_UNAVAILABLE,
				      "A backup or a compaction is under way.");
	job->store = r->couch->config.store;
	wait_offload(fn, job);
	atomic_store(&r->couch->maintained, false);
	if (job->status != STATUS_OK)
		r->fail.err = job->err;
	return job->status;
}

static void
ops_do_backup(void *arg)
{
	struct job *job = arg;

	job->status = kv_backup_create(job->store, job->dir, &job->backup, &job->err);
	if (job->status == STATUS_OK && job->keep)
		job->status = kv_backup_prune(job->dir, job->keep, &job->err);
}

static void
ops_do_list(void *arg)
{
	struct job *job = arg;

	job->status = kv_backup_list(job->dir, &job->list, &job->count, &job->err);
}

static void
ops_do_compact(void *arg)
{
	struct job *job = arg;

	job->bytes_before = kv_store_stats(job->store).disk_bytes;
	job->status = kv_compact(job->store, &job->err);
	job->bytes_after = kv_store_stats(job->store).disk_bytes;
}

/*
 * True for the name of a directory. A path is refused, so that nothing outside the directory of
 * backups is touched.
 */
static bool
ops_is_target(struct str s)
{
	if (s.len == 0 || s.len > TARGET_BYTES || *s.ptr == '.')
		return false;
	for (size_t i = 0; i < s.len; i++) {
		char c = s.ptr[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
		    c != '-' && c != '_' && c != '.')
			return false;
	}
	return true;
}

static enum status
ops_target_dir(struct couch_req *r, struct str target, const char **ret)
{
	struct str dir;

	if (!r->settings->backup_dir)
		return couch_fail_set(&r->fail, COUCH_ERROR_FORBIDDEN,
				      "This server makes no backups: [frond] backup_dir is not "
				      "set.");
	if (!ops_is_target(target))
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "`target` must be a name of 1 to %d letters, digits, '-', "
				      "'_' and '.', with no '.' first.",
				      (int)TARGET_BYTES);
	dir = arena_printf(r->arena, "%s/%.*s", r->settings->backup_dir, STR_ARG(target));
	if (!dir.ptr)
		return STATUS_NOMEM;
	*ret = dir.ptr;
	return STATUS_OK;
}

static void
ops_append_backup(struct buf *out, const struct kv_backup *backup)
{
	buf_printf(out, "\"id\":%u,\"time\":%llu,\"bytes\":%llu", (unsigned)backup->id,
		   (unsigned long long)backup->time_s, (unsigned long long)backup->bytes);
}

/* {"target":"name","keep":7} */
static enum status
ops_parse_request(struct couch_req *r, struct job *job)
{
	const struct json_value *target, *keep;
	struct json_member *members;
	uint64_t n = 0;
	size_t count;

	TRY(couch_read_object(r, COUCH_SMALL_BODY_BYTES, &members, &count));
	target = json_value_find(members, count, "target");
	keep = json_value_find(members, count, "keep");
	if (keep && (keep->kind != JSON_NUMBER || !keep->is_integer ||
		     !str_to_u64(keep->text, &n) || n < 1 || n > UINT32_MAX))
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "`keep` must be an integer from 1 to %u.", UINT32_MAX);
	job->keep = (uint32_t)n;
	return ops_target_dir(r, target && target->kind == JSON_STRING ? target->string : STR(""),
			      &job->dir);
}

static enum status
ops_post_backup(struct couch_req *r)
{
	struct buf AUTO(buf_release) out = BUF_SHORT(COUCH_SMALL_BODY_BYTES);
	struct job job = { 0 };

	TRY(ops_parse_request(r, &job));
	TRY(ops_run_job(r, ops_do_backup, &job));
	buf_append_cstr(&out, "{\"ok\":true,");
	ops_append_backup(&out, &job.backup);
	buf_append_byte(&out, '}');
	return couch_reply(r, 200, &out);
}

static enum status
ops_get_backup(struct couch_req *r)
{
	struct buf AUTO(buf_release) out = couch_buf(r, COUCH_ANSWER_BYTES);
	struct job job = { 0 };
	struct str target = STR("");

	(void)couch_param(r, "target", &target);
	TRY(ops_target_dir(r, target, &job.dir));
	TRY(ops_run_job(r, ops_do_list, &job));
	buf_append_cstr(&out, "{\"backups\":[");
	for (size_t i = 0; i < job.count; i++) {
		buf_append_cstr(&out, i ? ",{" : "{");
		ops_append_backup(&out, &job.list[i]);
		buf_append_byte(&out, '}');
	}
	buf_append_cstr(&out, "]}");
	mem_free(job.list);
	return couch_reply(r, 200, &out);
}

static enum status
ops_post_compact(struct couch_req *r)
{
	struct buf AUTO(buf_release) out = BUF_SHORT(COUCH_SMALL_BODY_BYTES);
	struct job job = { 0 };

	TRY(ops_run_job(r, ops_do_compact, &job));
	buf_printf(&out, "{\"ok\":true,\"bytes_before\":%llu,\"bytes_after\":%llu}",
		   (unsigned long long)job.bytes_before, (unsigned long long)job.bytes_after);
	return couch_reply(r, 200, &out);
}

enum status
couch_ops(struct couch_req *r)
{
	struct str what = r->parts_count == 2 ? r->parts[1] : STR("");
	bool post = r->method == COUCH_POST;

	if (str_eq(what, STR("follow")))
		return post ? couch_method_refused(r, "GET") : couch_follow(r);
	if (str_eq(what, STR("position")))
		return post ? couch_method_refused(r, "GET") : couch_position(r);
	TRY(couch_require_admin(r));
	if (post)
		TRY(couch_require_json(r));
	if (str_eq(what, STR("backup")))
		return post ? ops_post_backup(r) : ops_get_backup(r);
	if (!str_eq(what, STR("compact")))
		return couch_fail_set(&r->fail, COUCH_ERROR_NOT_FOUND, "missing");
	return post ? ops_post_compact(r) : couch_method_refused(r, "POST");
}
