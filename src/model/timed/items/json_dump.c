/* Documents as they lie: for dumps, and for loading these. */
#include "loop/step.h"
#include "model/timed/items/json_int.h"

/* ---- Reading ---- */

static enum status
steps_parse(struct timed_item *item, struct str tail, struct timed_json_pair *ret)
{
	struct tuple_reader r = tuple_reader(tail);
	struct tuple_elem e;

	ret->steps = arena_alloc(item->arena, (JTREE_DEPTH + 1) * sizeof(*ret->steps));
	if (!ret->steps)
		return STATUS_LIMIT;
	while (r.rest.len) {
		struct timed_json_step *step = &ret->steps[ret->count];
		struct buf name;

		if (tuple_next(&r, &e) != STATUS_OK)
			return timed_item_corrupt(item);
		if (json_is_pieces(&e)) {
			ret->is_piece = true;
			return tuple_next_u64(&r, &ret->n) == STATUS_OK && !r.rest.len
				       ? STATUS_OK
				       : timed_item_corrupt(item);
		}
		if (ret->count++ == JTREE_DEPTH ||
		    (e.kind == TUPLE_INT ? e.magnitude > INT64_MAX : e.kind != TUPLE_STRING))
			return timed_item_corrupt(item);
		*step = (struct timed_json_step){ .element = e.kind == TUPLE_INT };
		if (step->element) {
			step->place = e.negative ? -(int64_t)e.magnitude : (int64_t)e.magnitude;
			continue;
		}
		name = timed_arena_buf(item->arena, e.raw.len + 1);
		tuple_unescape(&e, &name);
		TRY(buf_status(&name));
		step->name = buf_str(&name);
	}
	return STATUS_OK;
}

static enum status
pair_parse(struct timed_item *item, struct str tail, struct str value, struct timed_json_pair *ret)
{
	struct buf scratch = timed_arena_buf(item->arena, value.len + 1);
	enum status status;

	*ret = (struct timed_json_pair){ .bytes = value };
	TRY(buf_status(&scratch));
	TRY(steps_parse(item, tail, ret));
	if (ret->is_piece)
		return STATUS_OK;
	status = timed_json_leaf_parse(value, &scratch, &ret->leaf, item->t->err);
	return status == STATUS_CORRUPT ? timed_item_corrupt(item) : status;
}

enum status
timed_json_each(struct timed_item *item,
		enum status (*fn)(void *arg, const struct timed_json_pair *pair), void *arg)
{
	AUTO(timed_cursor_close) struct timed_cursor scan = { 0 };
	struct timed_json_pair pair;
	struct kv_pair at;
	enum status status;
	struct buf key;
	struct str end;

	TRY(json_root_key(item, &key));
	TRY(timed_key_with(item->arena, buf_str(&key), CATALOG_KEY_LAST, &end));
	TRY(timed_cursor_open(&scan, item->t, buf_str(&key), end, NULL));
	while ((status = timed_cursor_next(&scan, &at)) == STATUS_OK) {
		struct arena_mark mark = arena_mark(item->arena);

		TRY(pair_parse(item, str_skip(at.key, key.len), at.value, &pair));
		TRY(fn(arg, &pair));
		arena_reset(item->arena, mark);
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status
timed_json_text(struct timed_item *item, uint64_t offset, uint64_t len, struct str *ret)
{
	return timed_text_get(item, offset, len, ret);
}

/* ---- Writing ---- */

/* Makes the item a document with a body that is empty, if it is not there. */
static enum status
put_begin(struct timed_item *item)
{
	if (item->type != TIMED_LEAF)
		return timed_item_touch(item);
	TRY(timed_item_renew(item, TIMED_JSON));
	TRY(timed_body_make(item));
	TRY(timed_item_touch(item));
	return timed_item_store(item);
}

enum status
timed_json_put_pair(struct timed_item *item, const struct timed_json_pair *pair)
{
	size_t bytes = JSON_STEP_MORE;
	struct buf key, value;

	for (size_t i = 0; i < pair->count; i++)
		bytes += JSON_STEP_MORE + 2 * pair->steps[i].name.len;
	if (bytes > KV_LIMIT_KEY_BYTES - JSON_STEP_MORE || pair->count > JTREE_DEPTH)
		return err_set(item->t->err, STATUS_INVALID, "the way to a leaf is too long");
	TRY(put_begin(item));
	key = timed_arena_buf(item->arena, item->body.len + JSON_STEP_MORE + bytes);
	buf_append_str(&key, item->body);
	tuple_put_u64(&key, TIMED_PART_TREE);
	for (size_t i = 0; i < pair->count; i++) {
		if (pair->steps[i].element)
			tuple_put_i64(&key, pair->steps[i].place);
		else
			tuple_put_str(&key, pair->steps[i].name);
	}
	if (pair->is_piece) {
		json_put_pieces(&key);
		tuple_put_u64(&key, pair->n);
		TRY(buf_status(&key));
		return timed_data_set(item->t, buf_str(&key), pair->bytes);
	}
	value = timed_arena_buf(item->arena,
				JSON_LEAF_MORE + (pair->leaf.scalar.kind == JTREE_TEXT
							  ? 2 * pair->leaf.scalar.text.len
							  : 0));
	timed_json_leaf_put(&pair->leaf, &value);
	TRY(buf_status(&key));
	TRY(buf_status(&value));
	return timed_data_set(item->t, buf_str(&key), buf_str(&value));
}

enum status
timed_json_put_text(struct timed_item *item, uint64_t offset, struct str bytes)
{
	bool fine = offset || bytes.len > TIMED_JSON_PACKED_BYTES;
	uint64_t length = item->type == TIMED_LEAF ? 0 : item->length;

	if (offset != length || (offset && !item->body.len) || bytes.len > TIMED_WRITE_BYTES ||
	    offset > TIMED_WRITE_BYTES - bytes.len || !bytes.len)
		return err_set(item->t->err, STATUS_INVALID,
			       "a part of a document does not begin where the one before ends");
	if (!fine) {
		TRY(json_check_text(bytes, item->arena, &fine));
		if (!fine)
			return err_set(item->t->err, STATUS_INVALID,
				       "a document is not as it would be written");
		TRY(timed_item_renew(item, TIMED_JSON));
		item->length = bytes.len;
		TRY(arena_copy(item->arena, bytes, &item->value));
		return timed_item_store(item);
	}
	if (!offset) {
		TRY(timed_item_renew(item, TIMED_JSON));
		TRY(timed_body_make(item));
	}
	TRY(timed_text_write(item, offset, bytes));
	item->length = offset + bytes.len;
	return timed_item_store(item);
}
