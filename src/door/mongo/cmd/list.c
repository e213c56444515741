#include "door/mongo/cmd/list.h"

#include "door/mongo/txn/cursor.h"

enum {
	LIST_BATCH_BYTES = 16 * 1024 * 1024,
};

static enum status
read_batch_size(struct call *c, const struct arg_value *cursor, uint64_t *ret)
{
	struct bson_element e;
	struct bson_iter i;
	int64_t n;

	*ret = UINT64_MAX;
	if (!cursor->given)
		return STATUS_OK;
	for (bson_iter_begin(&i, bson_text(&cursor->value)); bson_iter_read(&i, &e);) {
		if (!str_eq(e.name, STR("batchSize")))
			return call_fail(c, MONGO_FIELD_UNKNOWN,
					 "BSON field '%s.cursor.%.*s' is an unknown field.",
					 c->command->name,
					 (int)(e.name.len < 100 ? e.name.len : 100), e.name.ptr);
		if (e.value.type == BSON_NULL || e.value.type == BSON_UNDEFINED)
			continue;
		if (!bson_is_number(&e.value))
			return call_type_mismatch(c, &e.value,
						  "types '[long, int, decimal, double']",
						  "%s.cursor.batchSize", c->command->name);
		n = call_whole_number(&e.value);
		if (n < 0)
			return call_fail(
				c, MONGO_BAD_VALUE,
				"BSON field 'batchSize' value must be >= 0, actual value '%lld'",
				(long long)n);
		*ret = (uint64_t)n;
	}
	return STATUS_OK;
}

enum status
list_answer_begin(struct list_answer *l, struct call *c, const struct arg_value *cursor,
		  struct str ns)
{
	*l = (struct list_answer){ .call = c,
				   .ns = ns,
				   .rest = BUF_INIT_OF(CURSOR_ROWS_BYTES, arena_part(c->arena)) };
	TRY(read_batch_size(c, cursor, &l->want));
	bson_begin_document(c->reply, STR("cursor"));
	bson_begin_array(c->reply, STR("firstBatch"));
	l->from = c->reply->out->len;
	return STATUS_OK;
}

enum status
list_answer_put(struct list_answer *l, struct str doc)
{
	struct buf *out = l->call->reply->out;

	if (!l->more && l->count < l->want &&
	    (!l->count || out->len - l->from + doc.len < LIST_BATCH_BYTES)) {
		bson_put_document(l->call->reply, STR(""), doc);
		l->count++;
		return buf_status(out);
	}
	if (!l->more) {
		bson_builder_init(&l->b, &l->rest);
		bson_begin_outer_array(&l->b);
	}
	l->more = true;
	bson_put_document(&l->b, STR(""), doc);
	return buf_status(&l->rest);
}

static enum status
keep_rest(struct list_answer *l, int64_t *ret_id)
{
	struct call *c = l->call;
	struct cursor *cursor;

	bson_end(&l->b);
	TRY(buf_status(&l->rest));
	TRY(cursor_begin(c, l->ns, &cursor));
	cursor->lists = true;
	cursor->max_ns = call_time_left(c);
	return cursor_keep(c, cursor, cursor_set_rows(cursor, &l->rest), ret_id);
}

enum status
list_answer_end(struct list_answer *l)
{
	struct bson_builder *b = l->call->reply;
	int64_t id = 0;

	if (l->more)
		TRY(keep_rest(l, &id));
	bson_end(b);
	bson_put_int64(b, STR("id"), id);
	bson_put_string(b, STR("ns"), l->ns);
	bson_end(b);
	return STATUS_OK;
}

void
list_answer_fini(struct list_answer *l)
{
	buf_release(&l->rest);
}
