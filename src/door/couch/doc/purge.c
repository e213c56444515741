/* POST /{db}/_purge, and /{db}/_purged_infos_limit. */
#include <assert.h>

#include "doc/json.h"
#include "doc/json_value.h"
#include "door/couch/admin/access.h"
#include "door/couch/admin/tx.h"
#include "door/couch/doc/endpoints.h"
#include "door/couch/doc/rev_lists.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/ids.h"
#include "door/couch/wire/reply.h"
#include "door/couch/wire/request.h"
#include "door/couch/wire/stream.h"
#include "kv/kv.h"
#include "loop/step.h"

enum {
	PURGED_INFOS_LIMIT = 1000, /* CouchDB's default */

	/* Of one transaction. A head takes about eight times its document's id. */
	PURGE_PORTION_REVS = 1000,
	PURGE_PORTION_BYTES = 500 * 1000,
};

#define PURGED_INFOS_LIMIT_NAME STR("purged_infos_limit")

struct purge_call {
	struct couch_req *r;
	struct couch_rev_lists lists;
	struct couch_stream stream;
	bool any;     /* document in the answer */
	bool any_rev; /* of the document */

	/* The portion, which is a transaction. */
	struct rev_purge_query queries[REV_PURGE_DOCS];
	struct rev_purge_result results[REV_PURGE_DOCS];
	size_t count;
};

/* ---- Purging ---- */

static enum status
purge_attempt(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct purge_call *c = arg;

	return rev_purge(tx, r->db, c->queries, c->count, r->arena, c->results, &r->fail.err);
}

/* Writes what has gone of one list, or of the part of it that the portion has. */
static enum status
purge_write_list(struct purge_call *c, const struct couch_rev_list *list,
		 const struct rev_purge_result *result)
{
	struct buf *out = &c->stream.out;

	if (!list->continues) {
		if (c->any)
			buf_append_byte(out, ',');
		c->any = true;
		json_write_str(out, list->id);
		buf_append_cstr(out, ":[");
		c->any_rev = false;
	}
	for (size_t i = 0; i < result->count; i++) {
		if (c->any_rev)
			buf_append_byte(out, ',');
		c->any_rev = true;
		couch_rev_write(result->revs[i], out);
		TRY(step_count(1));
	}
	if (!list->goes_on)
		buf_append_byte(out, ']');
	return couch_stream_push(&c->stream, false);
}

static enum status
purge_portion(struct purge_call *c, const struct couch_rev_list *lists, size_t count)
{
	assert(count <= REV_PURGE_DOCS);
	c->count = count;
	for (size_t i = 0; i < count; i++)
		c->queries[i] = (struct rev_purge_query){ lists[i].id, lists[i].revs,
							  lists[i].count };
	TRY(couch_db_write(c->r, COUCH_ACCESS_ADMIN, purge_attempt, c));
	for (size_t i = 0; i < count; i++)
		TRY(purge_write_list(c, &lists[i], &c->results[i]));
	return STATUS_OK;
}

static enum status
purge_all(struct purge_call *c)
{
	struct couch_req *r = c->r;
	struct couch_rev_list *lists;
	bool first = true;
	size_t count;

	TRY(couch_rev_lists_begin(&c->lists, r));
	/* purge_seq is null, as in CouchDB since its databases have shards. */
	buf_append_cstr(&c->stream.out, "{\"purge_seq\":null,\"purged\":{");
	http_set_status(r->x, 201);
	for (;;) {
		struct arena_mark mark = arena_mark(r->arena);

		TRY(couch_rev_lists_next(&c->lists, &lists, &count));
		/* A request without documents still fails if there is no such database. */
		if (count == 0 && !first)
			break;
		first = false;
		TRY(purge_portion(c, lists, count));
		arena_reset(r->arena, mark);
		if (count == 0)
			break;
	}
	buf_append_cstr(&c->stream.out, "}}");
	return couch_stream_end_json(&c->stream, 201);
}

/*
 * Each portion of the request is purged in its own transaction, and what it has removed is told
 * as the answer goes on.
 */
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
	c->lists.most_lists = REV_PURGE_DOCS;
	c->lists.most_revs = PURGE_PORTION_REVS;
	c->lists.most_bytes = PURGE_PORTION_BYTES;
	c->lists.cuts = true;
	couch_stream_init(&c->stream, r);
	status = purge_all(c);
	couch_rev_lists_release(&c->lists);
	couch_stream_release(&c->stream);
	return status;
}

/* ---- /{db}/_purged_infos_limit ---- */

/*
 * CouchDB keeps a list of purges for its replicas and indexes, as long as this says. This server
 * has no such list. It stores the number only to return it.
 */
struct limit_call {
	struct couch_req *r;
	uint64_t limit;
};

static enum status
purged_limit_read(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct limit_call *c = arg;
	struct str text;
	enum status status;

	c->limit = PURGED_INFOS_LIMIT;
	status = rev_config_get(tx, r->db, PURGED_INFOS_LIMIT_NAME, r->arena, &text);
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
	TRY(couch_db_read(r, COUCH_ACCESS_MEMBER, purged_limit_read, &c));
	buf_append_u64(&out, c.limit);
	return couch_reply(r, 200, &out);
}

static enum status
purged_limit_write(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct limit_call *c = arg;
	struct buf AUTO(buf_release) text = BUF_INIT(64);

	buf_append_u64(&text, c->limit);
	TRY(buf_status(&text));
	return rev_config_set(tx, r->db, PURGED_INFOS_LIMIT_NAME, buf_str(&text), &r->fail.err);
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
	TRY(couch_db_write(r, COUCH_ACCESS_ADMIN, purged_limit_write, &c));
	return couch_reply_ok(r, 200);
}
