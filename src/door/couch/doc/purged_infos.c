/* /{db}/_purged_infos and /{db}/_purged_infos_limit: the record of purges, and its length. */
#include "doc/json.h"
#include "doc/json_value.h"
#include "door/couch/admin/access.h"
#include "door/couch/admin/purges.h"
#include "door/couch/admin/tx.h"
#include "door/couch/doc/endpoints.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/ids.h"
#include "door/couch/wire/reply.h"
#include "door/couch/wire/request.h"
#include "door/couch/wire/stream.h"
#include "kv/kv.h"
#include "loop/step.h"
#include "model/revisioned/purges.h"

/* ---- /{db}/_purged_infos ---- */

struct infos_call {
	struct couch_req *r;
	struct couch_stream stream;
	struct catalog_seq at; /* of the last record that was written */
	struct rev_purge_page page;
	bool any;
};

static enum status
infos_read(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct infos_call *c = arg;

	return rev_purges_page(tx, r->db, &c->at, 0, r->arena, &c->page, &r->fail.err);
}

static enum status
infos_write(struct infos_call *c, const struct rev_purge *purge)
{
	struct buf *out = &c->stream.out;

	if (c->any)
		buf_append_byte(out, ',');
	c->any = true;
	buf_append_cstr(out, "{\"id\":");
	json_write_str(out, purge->doc_id);
	buf_append_cstr(out, ",\"revs\":[");
	for (size_t i = 0; i < purge->count; i++) {
		if (i)
			buf_append_byte(out, ',');
		couch_rev_write(purge->revs[i], out);
		TRY(step_count(1));
	}
	buf_append_cstr(out, "]}");
	c->at = purge->seq;
	return couch_stream_push(&c->stream, false);
}

/* Each page is a transaction of its own: what is purged meanwhile comes behind what was read. */
static enum status
infos_write_all(struct infos_call *c)
{
	struct couch_req *r = c->r;

	buf_append_cstr(&c->stream.out, "{\"purged_infos\":[");
	do {
		struct arena_mark mark = arena_mark(r->arena);

		TRY(couch_db_read(r, COUCH_ACCESS_MEMBER, infos_read, c));
		for (size_t i = 0; i < c->page.count; i++)
			TRY(infos_write(c, &c->page.purges[i]));
		arena_reset(r->arena, mark);
	} while (c->page.count);
	buf_append_cstr(&c->stream.out, "]}");
	return couch_stream_end_json(&c->stream, 200);
}

enum status
couch_purged_infos(struct couch_req *r)
{
	struct infos_call c = { .r = r };
	enum status status;

	couch_stream_init(&c.stream, r);
	status = infos_write_all(&c);
	couch_stream_release(&c.stream);
	return status;
}

/* ---- /{db}/_purged_infos_limit ---- */

static enum status
purged_limit_read(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	return rev_purges_limit_get(tx, r->db, r->arena, arg);
}

enum status
couch_purged_infos_limit_get(struct couch_req *r)
{
	struct buf AUTO(buf_release) out = BUF_SHORT(64);
	uint64_t limit = 0;

	TRY(couch_require_admin(r));
	TRY(couch_db_read(r, COUCH_ACCESS_MEMBER, purged_limit_read, &limit));
	buf_append_u64(&out, limit);
	return couch_reply(r, 200, &out);
}

static enum status
purged_limit_write(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	const uint64_t *limit = arg;

	return rev_purges_limit_set(tx, r->db, *limit, &r->fail.err);
}

enum status
couch_purged_infos_limit_put(struct couch_req *r)
{
	struct json_value value;
	struct str body;
	uint64_t limit;

	TRY(couch_require_admin(r));
	TRY(couch_read_body(r, COUCH_SMALL_BODY_BYTES, &body));
	TRY(json_value_read(body, r->arena, &value, &r->fail.err));
	if (value.kind != JSON_NUMBER || !value.is_integer || !str_to_u64(value.text, &limit) ||
	    limit < 1)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "`purged_infos_limit` must be positive integer");
	TRY(couch_db_write(r, COUCH_ACCESS_ADMIN, purged_limit_write, &limit));
	TRY(couch_purges_trim(r));
	return couch_reply_ok(r, 200);
}
