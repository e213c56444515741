/* /{db} itself and what is set for it. */
#include "door/couch/couch_int.h"

struct db_call {
	struct couch_req *r;
	struct buf *out;
	uint32_t limit;
	enum rev_scheme scheme;
};

static enum status
create_body(struct kv_tx *tx, void *arg)
{
	const struct db_call *c = arg;

	return rev_db_create(tx, c->r->parts[0], c->scheme, &c->r->fail.err);
}

static enum status
parse_scheme(struct couch_req *r, struct str text, enum rev_scheme *ret)
{
	if (rev_scheme_parse(text, ret) == STATUS_OK)
		return STATUS_OK;
	return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
			      "`scheme` must be \"packed\" or \"exploded\".");
}

static enum status
check_positive(struct couch_req *r, const char *name)
{
	struct str value;
	uint64_t n;

	if (!couch_param(r, name, &value) || (str_to_u64(value, &n) && n > 0))
		return STATUS_OK;
	return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
			      "The `%s` value should be a positive integer.", name);
}

/* Every database is one that CouchDB calls not partitioned. */
static enum status
check_partitioned(struct couch_req *r)
{
	struct str value;

	if (!couch_param(r, "partitioned", &value) || str_eq(value, STR("true")) ||
	    str_eq(value, STR("false")))
		return STATUS_OK;
	return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST, "Invalid `partitioned` parameter");
}

enum status
couch_db_put(struct couch_req *r)
{
	struct db_call c = { .r = r, .scheme = r->settings->door.scheme };
	struct str name = r->parts[0];
	struct str value;
	enum status status;

	TRY(couch_require_admin(r));
	TRY(check_positive(r, "q"));
	TRY(check_positive(r, "n"));
	TRY(check_partitioned(r));
	if (couch_param(r, "scheme", &value))
		TRY(parse_scheme(r, value, &c.scheme));
	if (!rev_db_name_valid(name)) {
		if (name.len > REV_DB_NAME_BYTES)
			return couch_fail_set(&r->fail, COUCH_ERROR_DB_NAME_TOO_LONG,
					      "At least one path segment of `%.*s` is too long.",
					      STR_ARG(name));
		return couch_fail_set(&r->fail, COUCH_ERROR_ILLEGAL_DB_NAME,
				      "Name: '%.*s'. Only lowercase characters (a-z), digits "
				      "(0-9), and any of the characters _, $, (, ), +, -, and / "
				      "are allowed. Must begin with a letter.",
				      STR_ARG(name));
	}
	status = kv_run(r->couch->config.store, create_body, &c, NULL, &r->fail.err);
	if (status == STATUS_EXISTS)
		return couch_fail_set(
			&r->fail, COUCH_ERROR_FILE_EXISTS,
			"The database could not be created, the file already exists.");
	if (status != STATUS_OK)
		return status;
	couch_set_location(r, name, (struct str){ NULL, 0 }, (struct str){ NULL, 0 });
	return couch_reply_ok(r, 201);
}

static enum status
delete_body(struct kv_tx *tx, void *arg)
{
	struct couch_req *r = arg;

	return rev_db_delete(tx, r->parts[0], &r->fail.err);
}

enum status
couch_db_delete(struct couch_req *r)
{
	struct str value;
	enum status status;

	/* A client whose document id came out empty must not lose the database. */
	if (couch_param(r, "rev", &value))
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "You tried to DELETE a database with a ?=rev parameter. Did "
				      "you mean to DELETE a document instead?");
	TRY(couch_require_admin(r));
	status = kv_run(r->couch->config.store, delete_body, r, NULL, &r->fail.err);
	if (status == STATUS_NOT_FOUND)
		return couch_fail_set(&r->fail, COUCH_ERROR_NOT_FOUND, "Database does not exist.");
	if (status != STATUS_OK)
		return status;
	return couch_reply_ok(r, 200);
}

enum status
couch_db_info_write(struct kv_tx *tx, const struct rev_db *db, struct buf *out)
{
	struct rev_db_info info;
	uint64_t bytes;

	TRY(rev_db_info(tx, db, &info));
	TRY(rev_db_bytes(tx, db, &bytes));
	buf_append_cstr(out, "{\"db_name\":");
	json_write_str(out, db->name);
	buf_append_cstr(out, ",\"purge_seq\":\"");
	if (rev_seq_cmp(&info.purge_seq, &(struct rev_seq){ { 0 } }) == 0)
		buf_append_byte(out, '0');
	else
		rev_seq_write(&info.purge_seq, out);
	buf_append_cstr(out, "\",\"update_seq\":\"");
	rev_seq_write(&info.update_seq, out);
	buf_printf(out,
		   "\",\"sizes\":{\"file\":%llu,\"external\":%llu,\"active\":%llu},\"props\":{"
		   "\"scheme\":\"%s\"},"
		   "\"doc_del_count\":%llu,\"doc_count\":%llu,\"disk_format_version\":8,"
		   "\"compact_running\":false,\"cluster\":{\"q\":1,\"n\":1,\"w\":1,\"r\":1},"
		   "\"instance_start_time\":\"0\"}",
		   (unsigned long long)bytes, (unsigned long long)bytes, (unsigned long long)bytes,
		   rev_scheme_name(db->scheme), (unsigned long long)info.doc_del_count,
		   (unsigned long long)info.doc_count);
	return buf_status(out);
}

static enum status
info_body(struct kv_tx *tx, void *arg)
{
	struct db_call *c = arg;

	buf_clear(c->out);
	TRY(couch_db_open(c->r, tx, COUCH_ACCESS_MEMBER));
	return couch_db_info_write(tx, c->r->db, c->out);
}

enum status
couch_db_get(struct couch_req *r)
{
	struct buf AUTO(buf_release) out = couch_buf(r, COUCH_ANSWER_BYTES);
	struct db_call c = { .r = r, .out = &out };

	TRY(kv_run_read(r->couch->config.store, info_body, &c, &r->fail.err));
	return couch_reply(r, 200, &out);
}

static enum status
open_body(struct kv_tx *tx, void *arg)
{
	return couch_db_open(arg, tx, COUCH_ACCESS_MEMBER);
}

enum status
couch_ensure_full_commit(struct couch_req *r)
{
	TRY(couch_db_require_json(r));
	TRY(kv_run_read(r->couch->config.store, open_body, r, &r->fail.err));
	return couch_reply_str(r, 201, STR("{\"ok\":true,\"instance_start_time\":\"0\"}\n"));
}

/* The indexes of a design document are compacted, which has to be there. */
static enum status
compact_body(struct kv_tx *tx, void *arg)
{
	struct couch_req *r = arg;
	struct rev_id rev;
	struct str id;

	TRY(couch_db_open(r, tx, COUCH_ACCESS_ADMIN));
	if (r->parts_count < 3)
		return STATUS_OK;
	id = arena_printf(r->arena, "_design/%.*s", STR_ARG(r->parts[2]));
	if (!id.ptr)
		return STATUS_NOMEM;
	TRY(couch_docid_check(id, &r->fail));
	return rev_winner_read(tx, r->db, id, r->arena, &rev);
}

/* The store compacts by itself: there is nothing to start, and nothing that could fail. */
enum status
couch_compact(struct couch_req *r)
{
	if (str_eq(r->parts[1], STR("_compact")))
		TRY(couch_db_require_json(r));
	TRY(kv_run_read(r->couch->config.store, compact_body, r, &r->fail.err));
	return couch_reply_ok(r, 202);
}

enum status
couch_revs_limit_get(struct couch_req *r)
{
	struct buf AUTO(buf_release) out = BUF_INIT(64);

	TRY(kv_run_read(r->couch->config.store, open_body, r, &r->fail.err));
	buf_append_u64(&out, r->db->revs_limit);
	return couch_reply(r, 200, &out);
}

static enum status
limit_body(struct kv_tx *tx, void *arg)
{
	struct db_call *c = arg;

	TRY(couch_db_open(c->r, tx, COUCH_ACCESS_ADMIN));
	return rev_limit_set(tx, c->r->db, c->limit, &c->r->fail.err);
}

enum status
couch_revs_limit_put(struct couch_req *r)
{
	struct db_call c = { .r = r };
	struct json_value value;
	struct str body;
	uint64_t limit;

	TRY(couch_read_body(r, COUCH_SMALL_BODY_BYTES, &body));
	TRY(json_value_read(body, r->arena, &value, &r->fail.err));
	if (value.kind != JSON_NUMBER || !value.is_integer || !str_to_u64(value.text, &limit) ||
	    limit < 1 || limit > REV_LIMIT_MAX)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "`revs_limit` must be an integer from 1 to %d.",
				      REV_LIMIT_MAX);
	c.limit = (uint32_t)limit;
	TRY(kv_run(r->couch->config.store, limit_body, &c, NULL, &r->fail.err));
	return couch_reply_ok(r, 200);
}

enum status
couch_scheme_get(struct couch_req *r)
{
	struct buf AUTO(buf_release) out = BUF_INIT(64);

	TRY(kv_run_read(r->couch->config.store, open_body, r, &r->fail.err));
	json_write_str(&out, str_from_cstr(rev_scheme_name(r->db->scheme)));
	return couch_reply(r, 200, &out);
}

static enum status
scheme_body(struct kv_tx *tx, void *arg)
{
	struct db_call *c = arg;

	TRY(couch_db_open(c->r, tx, COUCH_ACCESS_ADMIN));
	return rev_scheme_set(tx, c->r->db, c->scheme, &c->r->fail.err);
}

enum status
couch_scheme_put(struct couch_req *r)
{
	struct db_call c = { .r = r };
	struct json_value value;
	struct str body;

	TRY(couch_read_body(r, COUCH_SMALL_BODY_BYTES, &body));
	TRY(json_value_read(body, r->arena, &value, &r->fail.err));
	TRY(parse_scheme(r, value.kind == JSON_STRING ? value.string : STR(""), &c.scheme));
	TRY(kv_run(r->couch->config.store, scheme_body, &c, NULL, &r->fail.err));
	return couch_reply_ok(r, 200);
}
