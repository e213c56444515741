/* What belongs to the server as a whole: /, /_up, /_uuids, /_all_dbs and their like. */
#include "door/couch/couch_int.h"

/* The CouchDB release whose behaviour clients may expect. */
#define COUCHDB_VERSION "3.5.0"

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
reach_store(struct kv_tx *tx, void *arg)
{
	uint64_t version;

	(void)arg;
	return kv_get_read_version(tx, &version);
}

/* Up is who can reach the store and write to it. */
enum status
couch_root_up(struct couch_req *r)
{
	TRY(kv_run_read(r->couch->config.store, reach_store, NULL, &r->fail.err));
	if (kv_store_stats(r->couch->config.store).refuses_writes)
		return err_set(&r->fail.err, STATUS_UNAVAILABLE,
			       "a write to the disk has failed: free room, then restart");
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
				      "count parameter too large");
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
	struct rev_name_range range;
	uint64_t limit;
	bool info; /* /_dbs_info */
	struct arena_mark mark;
	struct buf out;
};

static enum status
parse_count(struct couch_req *r, const char *name, uint64_t *ret)
{
	struct str value;
	int64_t n;

	if (!couch_param(r, name, &value))
		return STATUS_OK;
	if (!str_to_i64(value, &n))
		return couch_fail_set(&r->fail, COUCH_ERROR_QUERY_PARSE,
				      "Invalid value for integer: \"%.*s\"", STR_ARG(value));
	if (n < 0)
		return couch_fail_set(&r->fail, COUCH_ERROR_QUERY_PARSE,
				      "Invalid value for positive integer: \"%.*s\"",
				      STR_ARG(value));
	*ret = (uint64_t)n;
	return STATUS_OK;
}

static enum status
parse_flag(struct couch_req *r, const char *name, bool *ret)
{
	struct str value;

	if (!couch_param(r, name, &value))
		return STATUS_OK;
	if (!str_eq_nocase(value, STR("true")) && !str_eq_nocase(value, STR("false")))
		return couch_fail_set(&r->fail, COUCH_ERROR_QUERY_PARSE,
				      "Invalid boolean parameter: \"%.*s\"", STR_ARG(value));
	*ret = str_eq_nocase(value, STR("true"));
	return STATUS_OK;
}

/* A bound is JSON; names are strings, and every other kind of value sorts before them. */
static enum status
parse_bound(struct couch_req *r, const char *name, const char *alias, struct str *ret,
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
parse_dbs_query(struct dbs_call *c)
{
	struct couch_req *r = c->r;
	bool inclusive = true;

	c->limit = UINT64_MAX;
	TRY(parse_flag(r, "descending", &c->range.descending));
	TRY(parse_flag(r, "inclusive_end", &inclusive));
	c->range.exclusive_end = !inclusive;
	TRY(parse_count(r, "limit", &c->limit));
	TRY(parse_count(r, "skip", &c->range.skip));
	TRY(parse_bound(r, "startkey", "start_key", &c->range.begin, &c->range.has_begin));
	TRY(parse_bound(r, "endkey", "end_key", &c->range.end, &c->range.has_end));
	TRY(parse_bound(r, "key", "key", &c->range.begin, &c->range.has_begin));
	return parse_bound(r, "key", "key", &c->range.end, &c->range.has_end);
}

static enum status
write_db_info(struct dbs_call *c, struct kv_tx *tx, struct str name)
{
	struct rev_db *db;
	enum status status;

	TRY(rev_db_open(tx, c->r->loop->cache, name, &db, NULL));
	buf_append_cstr(&c->out, "{\"key\":");
	json_write_str(&c->out, name);
	buf_append_cstr(&c->out, ",\"info\":");
	status = couch_db_info_write(tx, db, &c->out);
	buf_append_byte(&c->out, '}');
	rev_db_unref(db);
	return status;
}

static enum status
all_dbs_body(struct kv_tx *tx, void *arg)
{
	struct dbs_call *c = arg;
	struct rev_name_range range = c->range;
	struct rev_name_page page = { .more = true };
	struct str last;
	uint64_t left = c->limit;
	bool any = false;

	arena_reset(c->r->arena, c->mark);
	buf_clear(&c->out);
	buf_append_byte(&c->out, '[');
	while (page.more && left) {
		range.limit = left < COUCH_PAGE_ROWS ? (size_t)left : COUCH_PAGE_ROWS;
		TRY(rev_db_list(tx, &range, c->r->arena, &page));
		for (size_t i = 0; i < page.count; i++) {
			if (any)
				buf_append_byte(&c->out, ',');
			any = true;
			if (c->info)
				TRY(write_db_info(c, tx, page.names[i]));
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
run_dbs(struct dbs_call *c, kv_body *body)
{
	struct couch_req *r = c->r;
	enum status status;

	c->mark = arena_mark(r->arena);
	c->out = couch_buf(r, COUCH_ANSWER_BYTES);
	status = kv_run_read(r->couch->config.store, body, c, &r->fail.err);
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
	TRY(parse_dbs_query(&c));
	return run_dbs(&c, all_dbs_body);
}

enum status
couch_root_dbs_info_get(struct couch_req *r)
{
	struct dbs_call c = { .r = r, .info = true };

	TRY(couch_require_admin(r));
	TRY(parse_dbs_query(&c));
	return run_dbs(&c, all_dbs_body);
}

struct named_call {
	struct dbs_call dbs;
	struct json_value *keys;
	size_t count;
};

static enum status
named_body(struct kv_tx *tx, void *arg)
{
	struct named_call *c = arg;
	struct buf *out = &c->dbs.out;

	arena_reset(c->dbs.r->arena, c->dbs.mark);
	buf_clear(out);
	buf_append_byte(out, '[');
	for (size_t i = 0; i < c->count; i++) {
		enum status status = STATUS_NOT_FOUND;

		if (i)
			buf_append_byte(out, ',');
		if (c->keys[i].kind == JSON_STRING)
			status = write_db_info(&c->dbs, tx, c->keys[i].string);
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
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST, "too_many_keys");
	c.keys = items;
	return run_dbs(&c.dbs, named_body);
}
