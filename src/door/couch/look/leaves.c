/*
 * /_frond/leaves: the pairs beneath a database, or beneath one document of it, as `frond inspect`
 * draws them. A page is read in a transaction of its own and ends after LOOK_LEAVES_BYTES; `next`
 * leads to the one behind it.
 */
#include "base/quote.h"
#include "catalog/catalog.h"
#include "catalog/draw.h"
#include "door/couch/admin/tx.h"
#include "door/couch/look/look.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/params.h"
#include "door/couch/wire/reply.h"
#include "kv/kv.h"
#include "loop/step.h"

enum {
	LEAF_BYTES = 2 * 1024 * 1024, /* of the drawing of one pair */
};

struct listing {
	struct couch_req *r;
	enum catalog_space space;
	struct str name;  /* of the database, without its prefix */
	struct str id;    /* of a document; ptr NULL: the database */
	struct str after; /* the key behind which the page begins */
	uint64_t limit;
	struct buf *out;

	/* Of an attempt. */
	struct kv_tx *tx;
	const struct catalog_db *db;
	size_t count;
	size_t begun; /* where the pairs begin in `out` */
	struct str last;
	bool more;
	bool going_on; /* the place of `after` is behind */
};

static enum status
put_leaf(struct listing *l, const struct kv_pair *pair)
{
	struct buf AUTO(buf_release) text = couch_buf(l->r, LEAF_BYTES);
	struct buf *out = l->out;
	struct catalog_place place;

	catalog_draw_pair_of(l->db, pair, &text);
	TRY(buf_status(&text));
	buf_append_cstr(out, l->count++ ? ",\n{\"space\":\"" : "{\"space\":\"");
	if (catalog_place_of(pair->key, &place))
		catalog_draw_space(l->db->kind, place, out);
	buf_printf(out, "\",\"key_bytes\":%zu,\"value_bytes\":%zu,\"text\":", pair->key.len,
		   pair->value.len);
	quote_json(out, buf_str(&text));
	buf_append_byte(out, '}');
	return buf_status(out);
}

static bool
is_full(const struct listing *l)
{
	return l->count == l->limit || l->out->len - l->begun >= LOOK_LEAVES_BYTES;
}

/*
 * Lists the pairs whose keys begin so, behind `after`. A document has several such prefixes, in any
 * order: those before the one that `after` is of were listed before.
 */
static enum status
list_prefix(void *arg, struct str prefix)
{
	struct listing *l = arg;
	struct buf AUTO(buf_release) begin = BUF_SHORT(KV_LIMIT_KEY_BYTES + 1);
	struct buf AUTO(buf_release) end = BUF_SHORT(KV_LIMIT_KEY_BYTES + 1);
	enum status status = STATUS_OK;
	struct kv_scan scan;
	struct kv_pair pair;

	if (l->more)
		return STATUS_OK;
	buf_append_str(&begin, prefix);
	if (l->after.len && !l->going_on) {
		if (!str_starts_with(l->after, prefix))
			return STATUS_OK;
		l->going_on = true;
		buf_set(&begin, l->after);
		buf_append_byte(&begin, 0);
	}
	buf_append_str(&end, prefix);
	buf_append_byte(&end, 0xff);
	TRY(buf_status(&begin));
	TRY(buf_status(&end));
	TRY(kv_scan_init(&scan, l->tx, buf_str(&begin), buf_str(&end), NULL));
	while (status == STATUS_OK) {
		status = kv_scan_next(&scan, &pair);
		if (status == STATUS_OK && is_full(l)) {
			l->more = true;
			break;
		}
		if (status == STATUS_OK)
			status = step_count_bytes(pair.value.len);
		if (status == STATUS_OK)
			status = put_leaf(l, &pair);
		if (status == STATUS_OK) {
			l->last = arena_dup(l->r->arena, pair.key);
			status = l->last.ptr ? STATUS_OK : STATUS_NOMEM;
		}
	}
	kv_scan_release(&scan);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
list_database(struct listing *l)
{
	struct couch_req *r = l->r;

	if (!l->id.ptr)
		return list_prefix(l, l->db->prefix);
	if (!l->db->kind->inspect)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "A database of the kind \"%s\" is shown as a whole.",
				      l->db->kind->name);
	TRY(l->db->kind->inspect(l->tx, l->db, l->id, r->arena, list_prefix, l));
	if (l->count == 0 && !l->after.len)
		return couch_fail_set(&r->fail, COUCH_ERROR_NOT_FOUND, "missing");
	return STATUS_OK;
}

static enum status
list_attempt(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct listing *l = arg;
	struct catalog_db *db;
	enum status status;

	buf_clear(l->out);
	l->tx = tx;
	l->count = 0;
	l->more = l->going_on = false;
	status = catalog_open(tx, NULL, l->space, l->name, &db, &r->fail.err);
	/* What is kept with it may be damaged; its pairs are what somebody looks for then. */
	if (status == STATUS_CORRUPT && !l->id.ptr)
		status = catalog_open_bare(tx, NULL, l->space, l->name, &db, &r->fail.err);
	if (status == STATUS_NOT_FOUND)
		return couch_fail_set(&r->fail, COUCH_ERROR_NOT_FOUND, "Database does not exist.");
	TRY(status);
	l->db = db;
	buf_printf(l->out, "{\"kind\":\"%s\",\"summary\":\"%s\",\"pairs\":[", db->kind->name,
		   db->kind->summary ? db->kind->summary(db) : db->kind->name);
	l->begun = l->out->len;
	status = list_database(l);
	catalog_db_unref(db);
	TRY(status);
	buf_append_byte(l->out, ']');
	if (l->more) {
		look_write_next(l->out, l->last);
	}
	buf_append_byte(l->out, '}');
	return buf_status(l->out);
}

enum status
look_leaves(struct couch_req *r)
{
	struct buf AUTO(buf_release) out = couch_buf(r, COUCH_ANSWER_BYTES);
	struct listing l = { .r = r, .limit = LOOK_LEAVES_USUAL, .out = &out };
	struct str limit;

	if (!couch_param(r, "db", &l.name))
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST, "`db` is missing.");
	l.space = catalog_space_cut(&l.name);
	(void)couch_param(r, "id", &l.id);
	TRY(look_param_next(r, &l.after));
	if (couch_param(r, "limit", &limit) &&
	    (!str_to_u64(limit, &l.limit) || l.limit < 1 || l.limit > LOOK_LEAVES))
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "`limit` must be an integer from 1 to %d.", (int)LOOK_LEAVES);
	TRY(couch_store_read(r, list_attempt, &l));
	return couch_reply(r, 200, &out);
}
