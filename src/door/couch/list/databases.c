/*
 * /_all_dbs and /_dbs_info: the databases of this server, for administrators.
 *
 * A listing reads a page of names, and what it tells of those databases, in a transaction of its
 * own. It sends the page and forgets it before it reads the next. So it holds no snapshot and one
 * page at most while the client does not read, and it may show what was created meanwhile.
 */
#include "catalog/catalog.h"
#include "doc/json.h"
#include "doc/json_value.h"
#include "door/couch/admin/access.h"
#include "door/couch/admin/db.h"
#include "door/couch/admin/tx.h"
#include "door/couch/list/endpoints.h"
#include "door/couch/list/view_args.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/reply.h"
#include "door/couch/wire/request.h"
#include "door/couch/wire/stream.h"
#include "loop/step.h"

enum {
	COUCH_DBS_INFO_KEYS = 100,  /* names in one POST /_dbs_info */
	DATABASES_INFO_STEPS = 100, /* what the row of one database costs (loop/step.h) */
	DATABASES_INFO_PAGE = 50,   /* databases that are looked at in one transaction */
};

static enum status
databases_write_info(struct couch_req *r, struct kv_tx *tx, struct str name, struct buf *out)
{
	struct catalog_db *db;
	enum status status;

	TRY(rev_db_open(tx, r->loop->cache, name, &db, NULL));
	buf_append_cstr(out, "{\"key\":");
	json_write_str(out, name);
	buf_append_cstr(out, ",\"info\":");
	status = couch_db_info_write(tx, db, out);
	buf_append_byte(out, '}');
	catalog_db_unref(db);
	return status;
}

/* ---- Lists ---- */

struct databases {
	struct couch_req *r;
	struct couch_view_args args;
	bool info; /* /_dbs_info */
	struct couch_stream stream;
	struct name_range range;
	uint64_t left; /* of the limit */
	bool any_row;
	struct name_page page;
	size_t before; /* the length of the output before the page */
};

/* Writes a page. An attempt that follows a failed one writes it again at the same place. */
static enum status
databases_page_attempt(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct databases *l = arg;
	struct buf *out = &l->stream.out;

	couch_stream_cut(&l->stream, l->before);
	TRY(catalog_list(tx, CATALOG_SPACE_COUCH, &l->range, r->arena, &l->page));
	for (size_t i = 0; i < l->page.count; i++) {
		step_unit();
		TRY(step_count(l->info ? DATABASES_INFO_STEPS : 1));
		if (i || l->any_row)
			buf_append_byte(out, ',');
		if (l->info)
			TRY(databases_write_info(r, tx, l->page.names[i], out));
		else
			json_write_str(out, l->page.names[i]);
	}
	return buf_status(out);
}

/* Keeps the last name of the page, which the next page begins after. The arena is started over. */
static enum status
databases_pass_page(struct databases *l, struct arena_mark mark, struct buf *last)
{
	if (l->page.count == 0)
		return STATUS_OK;
	buf_set(last, l->page.names[l->page.count - 1]);
	arena_reset(l->r->arena, mark);
	l->any_row = true;
	l->left -= l->page.count;
	l->range.begin = buf_str(last);
	l->range.has_begin = true;
	l->range.exclusive_begin = true;
	l->range.skip = 0;
	return buf_status(last);
}

static enum status
databases_send_pages(struct databases *l)
{
	struct buf AUTO(buf_release) last = BUF_SHORT(CATALOG_NAME_BYTES);
	struct arena_mark mark = arena_mark(l->r->arena);
	size_t most = l->info ? DATABASES_INFO_PAGE : COUCH_PAGE_ROWS;

	l->page.more = true;
	while (l->page.more && l->left) {
		l->range.limit = l->left < most ? (size_t)l->left : most;
		l->before = l->stream.out.len;
		TRY(couch_store_read(l->r, databases_page_attempt, l));
		if (l->page.count == 0)
			break;
		TRY(databases_pass_page(l, mark, &last));
		TRY(couch_stream_push(&l->stream, false));
	}
	return STATUS_OK;
}

static enum status
databases_serve(struct databases *l)
{
	bool some;

	if (l->args.partition.ptr)
		return couch_fail_set(&l->r->fail, COUCH_ERROR_QUERY_PARSE,
				      "`partition` is no parameter of a list of databases.");
	TRY(couch_view_args_range(&l->args, NULL, l->r->arena, &l->range, &some));
	l->left = l->r->head ? 0 : l->args.limit;
	buf_append_byte(&l->stream.out, '[');
	if (some)
		TRY(databases_send_pages(l));
	buf_append_byte(&l->stream.out, ']');
	/* The length of an answer to HEAD would have to be that of the answer to GET. */
	return l->r->head ? couch_stream_end(&l->stream) : couch_stream_end_json(&l->stream, 200);
}

static enum status
databases_list(struct couch_req *r, bool info)
{
	struct databases l = { .r = r, .info = info };
	enum status status;

	if (r->settings->admin_all_dbs)
		TRY(couch_require_admin(r));
	couch_view_args_init(&l.args);
	TRY(couch_view_args_query(r, &l.args));
	if (l.args.has_keys)
		return couch_fail_set(&r->fail, COUCH_ERROR_QUERY_PARSE,
				      "`keys` is not supported here: POST /_dbs_info takes names.");
	TRY(couch_view_args_check_use(r, COUCH_VIEW_IDS, &l.args));
	couch_stream_init(&l.stream, r);
	status = databases_serve(&l);
	couch_stream_release(&l.stream);
	return status;
}

enum status
couch_all_dbs(struct couch_req *r)
{
	return databases_list(r, false);
}

enum status
couch_dbs_info_get(struct couch_req *r)
{
	return databases_list(r, true);
}

/* ---- POST /_dbs_info ---- */

struct named_call {
	struct json_value *keys;
	size_t count;
	struct buf out;
};

static enum status
databases_named_attempt(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct named_call *c = arg;
	struct buf *out = &c->out;

	buf_clear(out);
	buf_append_byte(out, '[');
	for (size_t i = 0; i < c->count; i++) {
		enum status status = STATUS_NOT_FOUND;

		TRY(step_count(DATABASES_INFO_STEPS));
		if (i)
			buf_append_byte(out, ',');
		if (c->keys[i].kind == JSON_STRING)
			status = databases_write_info(r, tx, c->keys[i].string, out);
		if (status == STATUS_NOT_FOUND) {
			buf_append_cstr(out, "{\"key\":");
			buf_append_str(out, c->keys[i].text);
			buf_append_cstr(out, ",\"error\":\"not_found\"}");
		} else if (status != STATUS_OK) {
			return status;
		}
	}
	buf_append_byte(out, ']');
	return buf_status(out);
}

enum status
couch_dbs_info_post(struct couch_req *r)
{
	struct named_call c = { .count = 0 };
	struct json_member *members;
	const struct json_value *keys;
	enum status status;
	size_t count;

	if (r->settings->admin_all_dbs)
		TRY(couch_require_admin(r));
	TRY(couch_require_json(r));
	TRY(couch_read_object(r, COUCH_SMALL_BODY_BYTES, &members, &count));
	keys = json_value_find(members, count, "keys");
	if (!keys)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "`keys` member must exist.");
	if (keys->kind != JSON_ARRAY_BEGIN)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "`keys` member must be an array.");
	TRY(json_value_items(keys, r->arena, &c.keys, &c.count, &r->fail.err));
	if (c.count > COUCH_DBS_INFO_KEYS)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "too_many_keys: the limit is %d", COUCH_DBS_INFO_KEYS);
	c.out = couch_buf(r, COUCH_ANSWER_BYTES);
	status = couch_store_read(r, databases_named_attempt, &c);
	if (status == STATUS_OK)
		status = couch_reply(r, 200, &c.out);
	buf_release(&c.out);
	return status;
}
