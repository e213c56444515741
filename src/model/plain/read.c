#include <assert.h>

#include "bson/order.h"
#include "model/plain/many.h"
#include "model/plain/plain_int.h"

enum status
plain_fail_corrupt(struct plain *p, struct str key, const char *what)
{
	AUTO(buf_release) struct buf text = BUF_INIT(ERR_TEXT_BYTES);

	tuple_draw(key, &text);
	return err_set(p->err, STATUS_CORRUPT, "%s cannot be read at %.*s", what,
		       STR_ARG(buf_str(&text)));
}

/* ---- Pairs ---- */

enum status
plain_read_pairs(struct plain *p, struct str begin, struct str end, enum kv_read mode,
		 struct arena *arena, struct plain_pairs *ret)
{
	const struct kv_range_options options = { .mode = mode };
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct kv_pair pair;
	enum status status;

	*ret = (struct plain_pairs){ 0 };
	TRY(kv_scan_init(&scan, p->tx, begin, end, &options));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK)
		TRY(plain_pairs_add(ret, arena, pair.key, pair.value));
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* In place of whole keys what is behind the record's. */
static void
pairs_trim(struct plain_pairs *pairs, size_t from, size_t record_bytes)
{
	for (size_t i = from; i < pairs->count; i++)
		pairs->pairs[i].key = str_skip(pairs->pairs[i].key, record_bytes);
}

/* ---- Records ---- */

static enum status
parse_root(struct plain *p, struct str key, struct str value, struct arena *arena,
	   struct plain_root *ret)
{
	enum status status = plain_root_parse(value, arena, ret, p->err);

	return status == STATUS_CORRUPT ? plain_fail_corrupt(p, key, "a document") : status;
}

enum status
plain_get_root(struct plain *p, struct str key, enum kv_read mode, struct arena *arena,
	       struct plain_root *ret)
{
	struct kv_future *f = kv_get(p->tx, key, mode);
	struct str value;

	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value))
		return STATUS_NOT_FOUND;
	value = arena_dup(arena, value);
	kv_future_free(f);
	return value.ptr ? parse_root(p, key, value, arena, ret) : STATUS_LIMIT;
}

static enum status
read_text(struct plain *p, struct str key, const struct plain_root *root, struct arena *arena,
	  struct str *ret)
{
	AUTO(buf_release) struct buf prefix = CATALOG_KEY_INIT;
	enum status status;

	plain_key_text(p->db, root->text, &prefix);
	TRY(catalog_key_status(&prefix));
	if (root->length > BSON_DOCUMENT_BYTES)
		return plain_fail_corrupt(p, key, "a document");
	status = doc_chunks_read(p->tx, buf_str(&prefix), root->length, arena, ret);
	if (status == STATUS_CORRUPT || (status == STATUS_OK && bson_length(*ret) != root->length))
		return plain_fail_corrupt(p, key, "the text of a document");
	return status;
}

static enum status
assemble(struct plain *p, struct str key, const struct plain_root *root,
	 const struct kv_pair *pairs, size_t count, struct arena *arena, struct str *ret)
{
	enum status status = plain_assemble(root, pairs, count, arena, ret);

	if (status == STATUS_CORRUPT)
		return plain_fail_corrupt(p, key, "the leaves of a document");
	if (status == STATUS_DOC_TOO_LARGE)
		return err_set(p->err, status, "a document has grown beyond %d bytes",
			       BSON_MOST_BYTES);
	return status;
}

static enum status
read_leaves(struct plain *p, struct str key, const struct plain_root *root, enum kv_read mode,
	    struct arena *arena, struct str *ret)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct plain_pairs pairs;

	buf_append_str(&begin, key);
	buf_append_byte(&begin, CATALOG_KEY_NEXT);
	TRY(catalog_key_status(&begin));
	TRY(plain_key_end(key, &end));
	TRY(plain_read_pairs(p, buf_str(&begin), buf_str(&end), mode, arena, &pairs));
	pairs_trim(&pairs, 0, key.len);
	return assemble(p, key, root, pairs.pairs, pairs.count, arena, ret);
}

enum status
plain_read_root(struct plain *p, struct str key, const struct plain_root *root, enum kv_read mode,
		struct arena *arena, struct str *ret)
{
	switch (root->form) {
	case PLAIN_FORM_WHOLE:
		*ret = root->document;
		return STATUS_OK;
	case PLAIN_FORM_TEXT:
		return read_text(p, key, root, arena, ret);
	case PLAIN_FORM_LEAVES:
		break;
	}
	return read_leaves(p, key, root, mode, arena, ret);
}

/* ---- One document ---- */

enum status
plain_ask(struct plain *p, const struct bson_value *id, enum kv_read mode, struct arena *arena,
	  struct plain_got *ret)
{
	AUTO(buf_release) struct buf key = BUF_INIT(BSON_KEY_ROOM(PLAIN_ID_BYTES));

	TRY(plain_id_key(id, &key, p->err));
	return plain_ask_key(p, buf_str(&key), mode, arena, ret);
}

enum status
plain_place_of(struct plain *p, struct str id_key, struct buf *ret)
{
	plain_key_space(ret, p->db, PLAIN_SPACE_RECORDS);
	tuple_put_bytes(ret, id_key);
	return catalog_key_status(ret);
}

/* Sets the keys of the records. */
static enum status
ask_place(struct plain *p, const struct str *id_keys, size_t count, struct arena *arena,
	  struct plain_got *ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	size_t space;

	plain_key_space(&key, p->db, PLAIN_SPACE_RECORDS);
	space = key.len;
	for (size_t i = 0; i < count; i++) {
		key.len = space;
		tuple_put_bytes(&key, id_keys[i]);
		TRY(catalog_key_status(&key));
		ret[i].key = buf_dup(&key, arena);
		if (!ret[i].key.ptr)
			return STATUS_LIMIT;
	}
	return STATUS_OK;
}

/* Of an exploded collection the root and the leaves are one range; of a packed one, one key. */
enum status
plain_ask_keys(struct plain *p, const struct str *id_keys, size_t count, enum kv_read mode,
	       struct arena *arena, struct plain_got *ret)
{
	const struct kv_range_options options = { .mode = mode };
	struct kv_future *futures[KV_MANY];
	struct str keys[KV_MANY];

	assert(count <= KV_MANY);
	TRY(ask_place(p, id_keys, count, arena, ret));
	for (size_t i = 0; i < count; i++)
		keys[i] = ret[i].key;
	if (plain_scheme_of(p->db) == PLAIN_PACKED)
		kv_get_many(p->tx, keys, count, mode, futures);
	for (size_t i = 0; i < count && plain_scheme_of(p->db) != PLAIN_PACKED; i++) {
		AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;

		TRY(plain_key_end(keys[i], &end));
		futures[i] = kv_get_range(p->tx, keys[i], buf_str(&end), &options);
	}
	for (size_t i = 0; i < count; i++)
		ret[i].future = futures[i];
	return STATUS_OK;
}

enum status
plain_ask_key(struct plain *p, struct str id_key, enum kv_read mode, struct arena *arena,
	      struct plain_got *ret)
{
	return plain_ask_keys(p, &id_key, 1, mode, arena, ret);
}

/* What the first stretch of a range has left. */
static enum status
read_rest(struct plain *p, struct str key, enum kv_read mode, struct arena *arena,
	  struct plain_pairs *pairs)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct plain_pairs rest;

	buf_append_str(&begin, key);
	buf_append_str(&begin, pairs->pairs[pairs->count - 1].key);
	buf_append_byte(&begin, CATALOG_KEY_NEXT);
	TRY(catalog_key_status(&begin));
	TRY(plain_key_end(key, &end));
	TRY(plain_read_pairs(p, buf_str(&begin), buf_str(&end), mode, arena, &rest));
	for (size_t i = 0; i < rest.count; i++)
		TRY(plain_pairs_add(pairs, arena, str_skip(rest.pairs[i].key, key.len),
				    rest.pairs[i].value));
	return STATUS_OK;
}

static enum status
wait_range(struct plain *p, struct plain_got *got, enum kv_read mode, struct arena *arena,
	   struct str *ret)
{
	struct kv_range range = kv_future_range(got->future);
	struct plain_pairs pairs = { 0 };
	struct plain_root root;
	struct str value;

	if (!range.count || !str_eq(range.pairs[0].key, got->key))
		return STATUS_NOT_FOUND;
	value = arena_dup(arena, range.pairs[0].value);
	if (!value.ptr)
		return STATUS_LIMIT;
	TRY(parse_root(p, got->key, value, arena, &root));
	if (root.form != PLAIN_FORM_LEAVES)
		return plain_read_root(p, got->key, &root, mode, arena, ret);
	for (size_t i = 1; i < range.count; i++)
		TRY(plain_pairs_add(&pairs, arena, str_skip(range.pairs[i].key, got->key.len),
				    range.pairs[i].value));
	if (range.more && !pairs.count)
		return read_leaves(p, got->key, &root, mode, arena, ret);
	if (range.more)
		TRY(read_rest(p, got->key, mode, arena, &pairs));
	return assemble(p, got->key, &root, pairs.pairs, pairs.count, arena, ret);
}

enum status
plain_wait(struct plain *p, struct plain_got *got, enum kv_read mode, struct arena *arena,
	   struct str *ret)
{
	struct plain_root root;
	enum status status;
	struct str value;

	got->whole = false;
	TRY(kv_future_wait(got->future));
	if (plain_scheme_of(p->db) != PLAIN_PACKED) {
		status = wait_range(p, got, mode, arena, ret);
	} else if (!kv_future_value(got->future, &value)) {
		status = STATUS_NOT_FOUND;
	} else {
		value = arena_dup(arena, value);
		status = value.ptr ? parse_root(p, got->key, value, arena, &root) : STATUS_LIMIT;
		got->whole = status == STATUS_OK && root.form == PLAIN_FORM_WHOLE;
		if (status == STATUS_OK)
			status = plain_read_root(p, got->key, &root, mode, arena, ret);
	}
	kv_future_free(got->future);
	got->future = NULL;
	return status;
}

enum status
plain_get(struct plain *p, const struct bson_value *id, enum kv_read mode, struct arena *arena,
	  struct str *ret)
{
	struct plain_got got;

	TRY(plain_ask(p, id, mode, arena, &got));
	return plain_wait(p, &got, mode, arena, ret);
}

/* ---- One value ---- */

static enum status
leaf_parse_at(struct plain *p, struct str key, struct str value, struct arena *arena,
	      struct plain_leaf *ret)
{
	enum status status = plain_leaf_parse(value, arena, ret);

	return status == STATUS_CORRUPT ? plain_fail_corrupt(p, key, "a leaf") : status;
}

/*
 * Appends the steps of a path to a record's key. A step of digits is a position if it is in an
 * array, which only the container's own leaf tells.
 */
static enum status
resolve_path(struct plain *p, struct str path, enum kv_read mode, struct arena *arena,
	     size_t record_bytes, struct buf *key)
{
	bool more = true;

	while (more) {
		struct plain_leaf leaf = { .value.type = BSON_DOCUMENT };
		struct str step, value;
		uint32_t position;

		more = path.len && memchr(path.ptr, '.', path.len);
		step = str_cut(&path, '.');
		if (plain_step_is_position(step, &position) && key->len > record_bytes) {
			struct kv_future *f = kv_get(p->tx, buf_str(key), mode);

			TRY(kv_future_wait(f));
			if (!kv_future_value(f, &value))
				return STATUS_NOT_FOUND;
			TRY(leaf_parse_at(p, buf_str(key), value, arena, &leaf));
		}
		if (leaf.value.type == BSON_ARRAY)
			tuple_put_u64(key, position);
		else
			tuple_put_str(key, step);
	}
	/* No leaf has a key that is too long. */
	return catalog_key_status(key) == STATUS_KEY_TOO_LARGE ? STATUS_NOT_FOUND
							       : catalog_key_status(key);
}

/* The value at a key, if the document lies in leaves. */
enum status
plain_read_value(struct plain *p, struct str key, size_t record_bytes, enum kv_read mode,
		 struct arena *arena, struct bson_value *ret)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct kv_future *f = kv_get(p->tx, key, mode);
	struct plain_pairs pairs = { 0 };
	struct plain_leaf leaf;
	enum status status;
	struct str value;

	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value))
		return STATUS_NOT_FOUND;
	TRY(leaf_parse_at(p, key, value, arena, &leaf));
	*ret = leaf.value;
	if (!bson_is_container(ret))
		return STATUS_OK;
	buf_append_str(&begin, key);
	TRY(catalog_key_status(&begin));
	TRY(plain_key_end(key, &end));
	TRY(plain_read_pairs(p, buf_str(&begin), buf_str(&end), mode, arena, &pairs));
	pairs_trim(&pairs, 0, record_bytes);
	status = pairs.count ? plain_assemble_value(pairs.pairs, pairs.count, arena, ret)
			     : STATUS_CORRUPT;
	return status == STATUS_CORRUPT ? plain_fail_corrupt(p, key, "the leaves of a value")
					: status;
}

/* The value in a document that lies in one piece, or its `_id`. */
static enum status
get_from_root(struct plain *p, struct str key, struct str path, enum kv_read mode,
	      struct arena *arena, struct bson_value *ret)
{
	struct plain_root root;
	struct str document;

	TRY(plain_get_root(p, key, mode, arena, &root));
	if (root.form == PLAIN_FORM_LEAVES) {
		bool whole = str_eq(path, STR("_id"));

		if (!whole && !(str_starts_with(path, STR("_id.")) && bson_is_container(&root.id) &&
				bson_find_path(bson_text(&root.id), str_skip(path, 4), ret)))
			return STATUS_NOT_FOUND;
		if (whole)
			*ret = root.id;
		return STATUS_OK;
	}
	TRY(plain_read_root(p, key, &root, mode, arena, &document));
	return bson_find_path(document, path, ret) ? STATUS_OK : STATUS_NOT_FOUND;
}

enum status
plain_get_path(struct plain *p, const struct bson_value *id, struct str path, enum kv_read mode,
	       struct arena *arena, struct bson_value *ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	enum status status = STATUS_NOT_FOUND;
	struct str record;

	TRY(plain_key_record(p->db, id, &key, p->err));
	record = buf_dup(&key, arena);
	if (!record.ptr)
		return STATUS_LIMIT;
	if (plain_scheme_of(p->db) == PLAIN_EXPLODED) {
		status = resolve_path(p, path, mode, arena, key.len, &key);
		if (status == STATUS_OK)
			status = plain_read_value(p, buf_str(&key), record.len, mode, arena, ret);
	}
	/* A document that leaves were too much for is in one piece. */
	return status == STATUS_NOT_FOUND ? get_from_root(p, record, path, mode, arena, ret)
					  : status;
}
