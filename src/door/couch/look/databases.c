/*
 * /_frond/databases: databases of every kind, in the order of their name spaces. A page is read in
 * a transaction of its own; `next` leads to the one behind it.
 */
#include "base/quote.h"
#include "catalog/catalog.h"
#include "door/couch/admin/tx.h"
#include "door/couch/look/look.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/reply.h"
#include "kv/kv.h"
#include "loop/step.h"

enum {
	DATABASE_STEPS = 100, /* that the estimate of a database's bytes costs */
};

struct listing {
	struct str after; /* the key behind which the page begins */
	struct buf *out;
};

static enum status
put_database(struct kv_tx *tx, const struct catalog_db *db, bool first, struct buf *out)
{
	struct buf AUTO(buf_release) name = BUF_SHORT(2 * CATALOG_NAME_BYTES);
	uint64_t bytes;

	TRY(step_count(DATABASE_STEPS));
	TRY(catalog_db_bytes(tx, db, &bytes));
	buf_printf(&name, "%s%.*s", catalog_space_prefix(db->kind->space), STR_ARG(db->name));
	TRY(buf_status(&name));
	buf_append_cstr(out, first ? "{\"name\":" : ",\n{\"name\":");
	quote_json(out, buf_str(&name));
	buf_printf(out, ",\"kind\":\"%s\",\"number\":%llu,\"created\":%llu,\"bytes\":%llu}",
		   db->kind->name, (unsigned long long)db->number,
		   (unsigned long long)db->created_ms, (unsigned long long)bytes);
	return STATUS_OK;
}

static enum status
list_page(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct buf AUTO(buf_release) last = BUF_SHORT(KV_LIMIT_KEY_BYTES);
	struct listing *l = arg;
	struct catalog_page page;

	buf_clear(l->out);
	buf_append_str(&last, l->after);
	buf_append_cstr(l->out, "{\"databases\":[");
	TRY(catalog_all(tx, &last, LOOK_DATABASES, r->arena, &page, &r->fail.err));
	for (size_t i = 0; i < page.count; i++)
		TRY(put_database(tx, &page.dbs[i], i == 0, l->out));
	buf_append_byte(l->out, ']');
	if (page.more) {
		look_write_next(l->out, buf_str(&last));
	}
	buf_append_byte(l->out, '}');
	return buf_status(l->out);
}

enum status
look_databases(struct couch_req *r)
{
	struct buf AUTO(buf_release) out = couch_buf(r, COUCH_ANSWER_BYTES);
	struct listing l = { .out = &out };

	TRY(look_param_next(r, &l.after));
	TRY(couch_store_read(r, list_page, &l));
	return couch_reply(r, 200, &out);
}
