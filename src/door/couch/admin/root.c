/* Endpoints of the server as a whole: /, /_up, /_uuids, /_all_dbs and similar ones. */
#include "base/quote.h"
#include "doc/json.h"
#include "doc/json_value.h"
#include "door/couch/admin/access.h"
#include "door/couch/admin/db.h"
#include "door/couch/admin/endpoints.h"
#include "door/couch/admin/tx.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/ids.h"
#include "door/couch/wire/reply.h"
#include "door/couch/wire/request.h"
#include "door/couch/wire/stream.h"
#include "kv/kv.h"
#include "loop/step.h"

/* The CouchDB release whose behaviour clients may expect. */
#define COUCHDB_VERSION "3.5.0"

enum {
	COUCH_UUIDS_MAX = 1000,    /* GET /_uuids?count= */
	COUCH_DBS_INFO_KEYS = 100, /* names in one POST /_dbs_info */
	ROOT_INFO_STEPS = 100,     /* what the row of one database costs (loop/step.h) */
};

enum status
couch_root_welcome(struct couch_req *r)
{
	struct buf AUTO(buf_release) out = BUF_INIT(COUCH_SMALL_BODY_BYTES);

	buf_append_cstr(&out, "{\"couchdb\":\"Welcome\",\"version\":\"" COUCHDB_VERSION
			      "\",\"git_sha\":\"frond-" FROND_VERSION "\",\"uuid\":\"");
	buf_append(&out, r->couch->uuid, sizeof(r->couch->uuid));
	buf_append_cstr(&out, "\",\"features\":[],\"vendor\":{\"name\":\"frond\",\"version\":"
			      "\"" FROND_VERSION "\"}}");
	return couch_reply(r, 200, &out);
}

static enum status
root_reach_store(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	uint64_t version;

	(void)r;
	(void)arg;
	return kv_get_read_version(tx, &version);
}

/* 200 if this server can reach the store and the store takes writes. */
enum status
couch_root_up(struct couch_req *r)
{
	enum kv_store_state state;

	TRY(couch_store_read(r, root_reach_store, NULL));
	state = kv_store_stats(r->couch->config.store).state;
	if (state == KV_STORE_FULL)
		return err_set(&r->fail.err, STATUS_UNAVAILABLE,
			       "the store's disk is full: it is read, and takes writes again when "
			       "there is room");
	if (state != KV_STORE_OPEN)
		return err_set(&r->fail.err, STATUS_UNAVAILABLE,
			       "the store is %s: it takes no writes (the log says why)",
			       kv_store_state_name(state));
	return couch_reply_str(r, 200, STR("{\"status\":\"ok\",\"seeds\":{}}\n"));
}

enum status
couch_root_membership(struct couch_req *r)
{
	TRY(couch_require_admin(r));
	return couch_reply_str(r, 200,
			       STR("{\"all_nodes\":[\"nonode@nohost\"],"
				   "\"cluster_nodes\":[\"nonode@nohost\"]}\n"));
}

enum status
couch_root_uuids(struct couch_req *r)
{
	struct buf AUTO(buf_release) out = couch_buf(r, COUCH_ANSWER_BYTES);
	struct str first = STR("none");
	struct str value;
	int64_t count = 1;

	if (couch_param(r, "count", &value) && (!str_to_i64(value, &count) || count < 0))
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "count must be a positive integer");
	if (count > COUCH_UUIDS_MAX)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "count parameter too large: the limit is %d",
				      COUCH_UUIDS_MAX);
	buf_append_cstr(&out, "{\"uuids\":[");
	for (int64_t i = 0; i < count; i++) {
		struct str uuid = couch_uuid_new(r->arena);

		if (!uuid.ptr)
			return STATUS_NOMEM;
		if (i)
			buf_append_byte(&out, ',');
		else
			first = uuid;
		json_write_str(&out, uuid);
	}
	buf_append_cstr(&out, "]}\n");
	TRY(buf_status(&out));
	couch_json_headers(r);
	couch_set_etag_of(r, first);
	http_set_header(r->x, STR("Cache-Control"), STR("no-cache"));
	http_set_header(r->x, STR("Pragma"), STR("no-cache"));
	http_set_header(r->x, STR("Expires"), STR("Mon, 01 Jan 1990 00:00:00 GMT"));
	return http_send(r->x, buf_str(&out));
}

/* ---- /_all_dbs and /_dbs_info ---- */

struct dbs_call {
	struct couch_req *r;
	struct name_range range;
	uint64_t limit;
	bool info; /* /_dbs_info */
	struct buf out;
};

static enum status
root_parse_count(struct couch_req *r, const char *name, uint64_t *ret)
{
	struct str value;
	int64_t n;

	if (!couch_param(r, name, &value))
		return STATUS_OK;
	if (!str_to_i64(value, &n))
		return couch_fail_set(&r->fail, COUCH_ERROR_QUERY_PARSE,
				      "Invalid value for integer: \"%s\"", QUOTE_SHOW(value));
	if (n < 0)
		return couch_fail_set(&r->fail, COUCH_ERROR_QUERY_PARSE,
				      "Invalid value for positive integer: \"%s\"",
				      QUOTE_SHOW(value));
	*ret = (uint64_t)n;
	return STATUS_OK;
}

static enum status
root_parse_flag(struct couch_req *r, const char *name, bool *ret)
{
	struct str value;

	if (!couch_param(r, name, &value))
		return STATUS_OK;
	if (!str_eq_nocase(value, STR("true")) && !str_eq_nocase(value, STR("false")))
		return couch_fail_set(&r->fail, COUCH_ERROR_QUERY_PARSE,
				      "Invalid boolean parameter: \"%s\"", QUOTE_SHOW(value));
	*ret = str_eq_nocase(value, STR("true"));
	return STATUS_OK;
}

/* A bound is a JSON value. Names are strings, and every other kind of value sorts before them. */
static enum status
root_parse_bound(struct couch_req *r, const char *name, const char *alias, struct str *ret,
		 bool *ret_has)
{
	struct json_value value;
	struct str text;

	if (!couch_param(r, name, &text) && !couch_param(r, alias, &text))
		return STATUS_OK;
	TRY(json_value_read(text, r->arena, &value, &r->fail.err));
	*ret = value.kind == JSON_STRING ? value.string : (struct str){ "", 0 };
	*ret_has = true;
	return STATUS_OK;
}

static enum status
root_parse_dbs_query(struct dbs_call *c)
{
	struct couch_req *r = c->r;
	bool inclusive = true;

	c->limit = UINT64_MAX;
	TRY(root_parse_flag(r, "descending", &c->range.descending));
	TRY(root_parse_flag(r, "inclusive_end", &inclusive));
	c->range.exclusive_end = !inclusive;
	TRY(root_parse_count(r, "limit", &c->limit));
	TRY(root_parse_count(r, "skip", &c->range.skip));
	TRY(root_parse_bound(r, "startkey", "start_key", &c->range.begin, &c->range.has_begin));
	TRY(root_parse_bound(r, "endkey", "end_key", &c->range.end, &c->range.has_end));
	TRY(root_parse_bound(r, "key", "key", &c->range.begin, &c->range.has_begin));
	return root_parse_bound(r, "key", "key", &c->range.end, &c->range.has_end);
}

static enum status
root_write_db_info(struct couch_req *r, struct kv_tx *tx, struct str name, struct buf *out)
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

static enum status
root_all_dbs_attempt(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct dbs_call *c = arg;
	struct name_range range = c->range;
	struct name_page page = { .more = true };
	struct str last;
	uint64_t left = c->limit;
	bool any = false;

	buf_clear(&c->out);
	buf_append_byte(&c->out, '[');
	while (page.more && left) {
		range.limit = left < COUCH_PAGE_ROWS ? (size_t)left : COUCH_PAGE_ROWS;
		TRY(catalog_list(tx, CATALOG_SPACE_COUCH, &range, r->arena, &page));
		for (size_t i = 0; i < page.count; i++) {
			TRY(step_count(c->info ? ROOT_INFO_STEPS : 1));
			if (any)
				buf_append_byte(&c->out, ',');
			any = true;
			if (c->info)
				TRY(root_write_db_info(r, tx, page.names[i], &c->out));
			else
				json_write_str(&c->out, page.names[i]);
		}
		left -= page.count;
		if (page.count == 0)
			break;
		last = page.names[page.count - 1];
		range.begin = last;
		range.has_begin = true;
		range.exclusive_begin = true;
		range.skip = 0;
	}
	buf_append_byte(&c->out, ']');
	return buf_status(&c->out);
}

static enum status
root_answer_dbs(struct dbs_call *c, couch_tx_body *body)
{
	struct couch_req *r = c->r;
	enum status status;

	c->out = couch_buf(r, COUCH_ANSWER_BYTES);
	status = couch_store_read(r, body, c);
	if (status == STATUS_OK)
		status = couch_reply(r, 200, &c->out);
	buf_release(&c->out);
	return status;
}

enum status
couch_root_all_dbs(struct couch_req *r)
{
	struct dbs_call c = { .r = r };

	TRY(couch_require_admin(r));
	TRY(root_parse_dbs_query(&c));
	return root_answer_dbs(&c, root_all_dbs_attempt);
}

enum status
couch_root_dbs_info_get(struct couch_req *r)
{
	struct dbs_call c = { .r = r, .info = true };

	TRY(couch_require_admin(r));
	TRY(root_parse_dbs_query(&c));
	return root_answer_dbs(&c, root_all_dbs_attempt);
}

struct named_call {
	struct dbs_call dbs;
	struct json_value *keys;
	size_t count;
};

static enum status
root_named_dbs_attempt(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct named_call *c = arg;
	struct buf *out = &c->dbs.out;

	buf_clear(out);
	buf_append_byte(out, '[');
	for (size_t i = 0; i < c->count; i++) {
		enum status status = STATUS_NOT_FOUND;

		TRY(step_count(ROOT_INFO_STEPS));
		if (i)
			buf_append_byte(out, ',');
		if (c->keys[i].kind == JSON_STRING)
			status = root_write_db_info(r, tx, c->keys[i].string, out);
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
couch_root_dbs_info_post(struct couch_req *r)
{
	struct named_call c = { .dbs = { .r = r } };
	struct json_member *members;
	const struct json_value *keys;
	struct json_value *items;
	size_t count;

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
	TRY(json_value_items(keys, r->arena, &items, &c.count, &r->fail.err));
	if (c.count > COUCH_DBS_INFO_KEYS)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "too_many_keys: the limit is %d", COUCH_DBS_INFO_KEYS);
	c.keys = items;
	return root_answer_dbs(&c.dbs, root_named_dbs_attempt);
}
