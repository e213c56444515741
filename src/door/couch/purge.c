/* POST /{db}/_purge, and /{db}/_purged_infos_limit. */
#include "door/couch/couch_int.h"

enum {
	PURGED_INFOS_LIMIT = 1000, /* CouchDB's default */
};

#define PURGED_INFOS_LIMIT_NAME STR("purged_infos_limit")

struct purge_call {
	struct couch_req *r;
	struct rev_purge_query *queries;
	size_t count;
	struct buf out;

	/* The transaction under way. */
	size_t begin;
	size_t end;
	struct arena_mark mark;
	struct rev_purge_result results[REV_PURGE_DOCS];
};

/* ---- Reading the request ---- */

static enum status
read_query(struct purge_call *c, const struct json_member *member)
{
	struct couch_req *r = c->r;
	struct rev_purge_query *query = &c->queries[c->count++];
	struct json_value *items;
	struct rev_id *revs;

	query->id = member->name;
	if (member->value.kind != JSON_ARRAY_BEGIN)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "Invalid list of revisions");
	TRY(json_value_items(&member->value, r->arena, &items, &query->count, &r->fail.err));
	revs = arena_alloc(r->arena, (query->count + 1) * sizeof(*revs));
	if (!revs)
		return STATUS_LIMIT;
	for (size_t i = 0; i < query->count; i++) {
		if (items[i].kind != JSON_STRING)
			return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
					      "Invalid rev format");
		TRY(couch_rev_parse(items[i].string, r->arena, &revs[i], &r->fail));
	}
	query->revs = revs;
	return STATUS_OK;
}

static enum status
read_queries(struct purge_call *c)
{
	struct couch_req *r = c->r;
	struct json_member *members;
	size_t count;

	TRY(couch_read_object(r, r->settings->door.body_bytes, &members, &count));
	c->queries = arena_alloc(r->arena, (count + 1) * sizeof(*c->queries));
	if (!c->queries)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++)
		TRY(read_query(c, &members[i]));
	return STATUS_OK;
}

/* ---- Purging ---- */

static enum status
purge_body(struct kv_tx *tx, void *arg)
{
	struct purge_call *c = arg;
	struct couch_req *r = c->r;

	arena_reset(r->arena, c->mark);
	TRY(couch_db_open(r, tx, COUCH_ACCESS_ADMIN));
	return rev_purge(tx, r->db, c->queries + c->begin, c->end - c->begin, r->arena, c->results,
			 &r->fail.err);
}

static void
write_result(struct purge_call *c, size_t i)
{
	const struct rev_purge_result *result = &c->results[i - c->begin];

	if (i)
		buf_append_byte(&c->out, ',');
	json_write_str(&c->out, c->queries[i].id);
	buf_append_cstr(&c->out, ":[");
	for (size_t j = 0; j < result->count; j++) {
		if (j)
			buf_append_byte(&c->out, ',');
		couch_rev_write(result->revs[j], &c->out);
	}
	buf_append_byte(&c->out, ']');
}

/* A document that is named twice starts another transaction. */
static bool
is_in_batch(const struct purge_call *c, struct str id)
{
	for (size_t i = c->begin; i < c->end; i++)
		if (str_eq(c->queries[i].id, id))
			return true;
	return false;
}

static enum status
purge_all(struct purge_call *c)
{
	struct couch_req *r = c->r;

	c->mark = arena_mark(r->arena);
	/* An empty request still is about a database that has to be there. */
	do {
		c->begin = c->end;
		while (c->end < c->count && c->end - c->begin < REV_PURGE_DOCS &&
		       !is_in_batch(c, c->queries[c->end].id))
			c->end++;
		TRY(kv_run(r->couch->config.store, purge_body, c, NULL, &r->fail.err));
		for (size_t i = c->begin; i < c->end; i++)
			write_result(c, i);
	} while (c->end < c->count);
	return buf_status(&c->out);
}

enum status
couch_purge(struct couch_req *r)
{
	struct purge_call *c;
	enum status status;

	TRY(couch_require_admin(r));
	TRY(couch_db_require_json(r));
	c = arena_zalloc(r->arena, sizeof(*c));
	if (!c)
		return STATUS_NOMEM;
	c->r = r;
	TRY(read_queries(c));
	c->out = couch_buf(r, COUCH_ANSWER_BYTES);
	/* CouchDB's purge_seq has been null since a database has many shards. */
	buf_append_cstr(&c->out, "{\"purge_seq\":null,\"purged\":{");
	status = purge_all(c);
	buf_append_cstr(&c->out, "}}");
	if (status == STATUS_OK)
		status = couch_reply(r, 201, &c->out);
	buf_release(&c->out);
	return status;
}

/* ---- /{db}/_purged_infos_limit ---- */

/*
 * How many purges CouchDB remembers for its own replicas and indexes. There are none to be told
 * here; the number is kept for whoever sets it.
 */
struct limit_call {
	struct couch_req *r;
	uint64_t limit;
};

static enum status
limit_get_body(struct kv_tx *tx, void *arg)
{
	struct limit_call *c = arg;
	struct str text;
	enum status status;

	TRY(couch_db_open(c->r, tx, COUCH_ACCESS_MEMBER));
	c->limit = PURGED_INFOS_LIMIT;
	status = rev_config_get(tx, c->r->db, PURGED_INFOS_LIMIT_NAME, c->r->arena, &text);
	if (status == STATUS_NOT_FOUND)
		return STATUS_OK;
	TRY(status);
	return str_to_u64(text, &c->limit) ? STATUS_OK : STATUS_CORRUPT;
}

enum status
couch_purged_infos_limit_get(struct couch_req *r)
{
	struct buf AUTO(buf_release) out = BUF_INIT(64);
	struct limit_call c = { .r = r };

	TRY(couch_require_admin(r));
	TRY(kv_run_read(r->couch->config.store, limit_get_body, &c, &r->fail.err));
	buf_append_u64(&out, c.limit);
	return couch_reply(r, 200, &out);
}

static enum status
limit_put_body(struct kv_tx *tx, void *arg)
{
	struct limit_call *c = arg;
	struct buf AUTO(buf_release) text = BUF_INIT(64);

	TRY(couch_db_open(c->r, tx, COUCH_ACCESS_ADMIN));
	buf_append_u64(&text, c->limit);
	TRY(buf_status(&text));
	return rev_config_set(tx, c->r->db, PURGED_INFOS_LIMIT_NAME, buf_str(&text),
			      &c->r->fail.err);
}

enum status
couch_purged_infos_limit_put(struct couch_req *r)
{
	struct limit_call c = { .r = r };
	struct json_value value;
	struct str body;

	TRY(couch_require_admin(r));
	TRY(couch_read_body(r, COUCH_SMALL_BODY_BYTES, &body));
	TRY(json_value_read(body, r->arena, &value, &r->fail.err));
	if (value.kind != JSON_NUMBER || !value.is_integer || !str_to_u64(value.text, &c.limit) ||
	    c.limit < 1)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "`purged_infos_limit` must be positive integer");
	TRY(kv_run(r->couch->config.store, limit_put_body, &c, NULL, &r->fail.err));
	return couch_reply_ok(r, 200);
}
