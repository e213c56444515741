/* Changes of stored documents: those in one piece as a whole, leaves one by one. */
#include <assert.h>

#include "model/plain/path.h"
#include "model/plain/plain_int.h"

enum {
	/* More than an element takes beside its name and its value. */
	ELEMENT_BYTES = 16,
};

/* A document in leaves that is being changed. */
struct changing {
	struct plain *p;
	const struct bson_value *id;
	struct str record;
	struct plain_root root;
	bool root_changed;
	bool changed;
	struct arena *arena;
};

/* A container on the way: the document, or what is at a path. */
struct place {
	struct buf key; /* of the container */
	bool is_root;
	struct plain_leaf leaf; /* of the container; its `next` counts for the document, too */
};

/* ---- The document as a whole ---- */

static enum status
update_whole(struct changing *c, const struct plain_change *changes, size_t count)
{
	struct str before, after;
	struct plain_doc doc;

	TRY(plain_read_root(c->p, c->record, &c->root, KV_READ, c->arena, &before));
	TRY(plain_apply(before, changes, count, c->arena, &after, c->p->err));
	c->changed = !str_eq(before, after);
	if (!c->changed)
		return STATUS_OK;
	if (plain_has_indexes(c->p))
		TRY(plain_index_change(c->p, c->id, before, after, c->arena));
	doc = plain_doc_of(after);
	TRY(plain_clear_record(c->p, c->record, &c->root));
	return plain_put_record(c->p, c->record, &doc, c->arena);
}

/* ---- Leaves ---- */

static enum status
leaf_get(struct changing *c, const struct buf *key, struct plain_leaf *ret)
{
	struct kv_future *f = kv_get(c->p->tx, buf_str(key), KV_READ);
	struct str value;
	enum status status;

	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value))
		return STATUS_NOT_FOUND;
	status = plain_leaf_parse(value, c->arena, ret);
	kv_future_free(f);
	if (status == STATUS_CORRUPT)
		return plain_fail_corrupt(c->p, buf_str(key), "a leaf");
	return status;
}

static enum status
leaf_set(struct changing *c, const struct buf *key, const struct plain_leaf *leaf)
{
	AUTO(buf_release) struct buf value = BUF_INIT(KV_LIMIT_VALUE_BYTES);

	assert(str_starts_with(buf_str(key), c->record));
	TRY(plain_leaf_put(leaf, &value));
	return kv_set(c->p->tx, buf_str(key), buf_str(&value));
}

/* The container has had another member. */
static enum status
place_grow(struct changing *c, struct place *at, uint64_t next)
{
	at->leaf.next = next;
	if (!at->is_root)
		return leaf_set(c, &at->key, &at->leaf);
	c->root.next = next;
	c->root_changed = true;
	return STATUS_OK;
}

/* The size of the document is bounded from above, so that growth needs no reading of it. */
static void
bound_grow(struct changing *c, size_t bytes)
{
	c->root.length += bytes;
	c->root_changed = true;
}

static void
child_key(const struct place *at, struct str step, uint32_t position, struct buf *ret)
{
	buf_clear(ret);
	buf_append_buf(ret, &at->key);
	if (at->leaf.value.type == BSON_ARRAY)
		tuple_put_u64(ret, position);
	else
		tuple_put_str(ret, step);
}

/* Writes nulls in front of a new element. */
static enum status
pad_array(struct changing *c, struct place *at, uint32_t position)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	for (uint64_t i = at->leaf.next; i < position; i++) {
		const struct plain_leaf null = { .ordinal = i, .value = BSON_OF_NULL };

		child_key(at, STR(""), (uint32_t)i, &key);
		TRY(catalog_key_status(&key));
		TRY(leaf_set(c, &key, &null));
		bound_grow(c, ELEMENT_BYTES);
	}
	return STATUS_OK;
}

/* The ordinal of a member that is new in the container. */
static enum status
new_member(struct changing *c, struct place *at, struct str step, uint32_t position,
	   uint64_t *ret_ordinal)
{
	bool array = at->leaf.value.type == BSON_ARRAY;

	if (array)
		TRY(pad_array(c, at, position));
	*ret_ordinal = array ? position : at->leaf.next;
	bound_grow(c, ELEMENT_BYTES + step.len);
	return place_grow(c, at, *ret_ordinal + 1);
}

static size_t
value_bytes(const struct bson_value *v)
{
	return bson_text(v).len + (bson_is_of(v, BSON_KINDS_MORE) ? bson_more(v).len : 0);
}

/* True if a value has bytes of its own, whose length depends on it. */
static bool
has_text(const struct bson_value *v)
{
	switch ((int)v->type) {
	case BSON_STRING:
	case BSON_DOCUMENT:
	case BSON_ARRAY:
	case BSON_BINARY:
	case BSON_REGEX:
	case BSON_DB_POINTER:
	case BSON_CODE:
	case BSON_SYMBOL:
	case BSON_CODE_SCOPE:
		return true;
	default:
		return false;
	}
}

/* What a value takes, roughly from above. */
static size_t
size_of(const struct bson_value *v)
{
	return has_text(v) ? value_bytes(v) + ELEMENT_BYTES : ELEMENT_BYTES;
}

/* What a value takes at least; of a scalar that is no text, exactly that. */
static size_t
size_least(const struct bson_value *v)
{
	switch ((int)v->type) {
	case BSON_BOOL:
		return 1;
	case BSON_INT32:
		return 4;
	case BSON_DOUBLE:
	case BSON_DATE:
	case BSON_TIMESTAMP:
	case BSON_INT64:
		return 8;
	case BSON_DECIMAL:
		return BSON_DECIMAL_BYTES;
	case BSON_OBJECT_ID:
		return BSON_OBJECT_ID_BYTES;
	case BSON_NULL:
	case BSON_UNDEFINED:
	case BSON_MIN_KEY:
	case BSON_MAX_KEY:
	case BSON_DOCUMENT: /* its leaf does not have its bytes */
	case BSON_ARRAY:
		return 0;
	default:
		return value_bytes(v);
	}
}

/* How much longer the document becomes at most. Numbers of one type cost no change of the root. */
static size_t
growth_of(const struct bson_value *before, const struct bson_value *after)
{
	bool exact = !bson_is_container(after) && (before->type == after->type || !has_text(after));
	size_t most = exact ? size_least(after) : size_of(after);
	size_t least = size_least(before);

	return most > least ? most - least : 0;
}

/* Whether a value is there already, byte for byte. */
static enum status
compare_value(struct changing *c, const struct buf *key, const struct plain_leaf *old,
	      const struct bson_value *v, bool *ret_same)
{
	AUTO(buf_release) struct buf before = BUF_INIT(BSON_MOST_BYTES);
	AUTO(buf_release) struct buf after = BUF_INIT(BSON_MOST_BYTES);
	struct bson_value whole = old->value;

	*ret_same = false;
	if (old->value.type != v->type)
		return STATUS_OK;
	if (bson_is_container(v))
		TRY(plain_read_value(c->p, buf_str(key), c->record.len, KV_READ, c->arena, &whole));
	bson_value_write(&before, &whole);
	bson_value_write(&after, v);
	TRY(buf_status(&before));
	TRY(buf_status(&after));
	*ret_same = str_eq(buf_str(&before), buf_str(&after));
	return STATUS_OK;
}

/* Clears a value with what is in it. */
static enum status
clear_value(struct changing *c, const struct buf *key, const struct plain_leaf *leaf)
{
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;

	if (!bson_is_container(&leaf->value))
		return kv_clear(c->p->tx, buf_str(key));
	TRY(plain_key_end(buf_str(key), &end));
	return kv_clear_range(c->p->tx, buf_str(key), buf_str(&end));
}

/* Writes a value, whatever it is, at a key where nothing is. */
static enum status
write_value(struct changing *c, const struct buf *key, uint64_t ordinal, const struct bson_value *v)
{
	AUTO(buf_release) struct buf leaf = CATALOG_KEY_INIT;
	struct plain_pairs pairs;

	TRY(plain_explode_value(v, ordinal, str_skip(buf_str(key), c->record.len), c->record.len,
				c->arena, &pairs));
	for (size_t i = 0; i < pairs.count; i++) {
		buf_clear(&leaf);
		buf_append_str(&leaf, c->record);
		buf_append_str(&leaf, pairs.pairs[i].key);
		TRY(catalog_key_status(&leaf));
		TRY(kv_set(c->p->tx, buf_str(&leaf), pairs.pairs[i].value));
	}
	return STATUS_OK;
}

/* ---- Setting ---- */

/* The end of the path. */
static enum status
set_here(struct changing *c, struct place *at, const struct plain_path *path,
	 const struct bson_value *v)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct str step = path->steps[path->count - 1];
	struct plain_leaf old;
	uint64_t ordinal;
	uint32_t position = 0;
	enum status status;

	assert(bson_is_container(&at->leaf.value));
	if (at->leaf.value.type == BSON_ARRAY)
		TRY(plain_path_check_position(path, path->count - 1, at->leaf.next, &position,
					      c->p->err));
	child_key(at, step, position, &key);
	TRY(catalog_key_status(&key));
	status = leaf_get(c, &key, &old);
	if (status == STATUS_OK) {
		size_t growth;
		bool same;

		TRY(compare_value(c, &key, &old, v, &same));
		if (same)
			return STATUS_OK;
		if (bson_is_container(&old.value))
			TRY(clear_value(c, &key, &old));
		growth = growth_of(&old.value, v);
		if (growth)
			bound_grow(c, growth);
		ordinal = old.ordinal;
	} else if (status == STATUS_NOT_FOUND) {
		TRY(new_member(c, at, step, position, &ordinal));
		bound_grow(c, size_of(v));
	} else {
		return status;
	}
	c->changed = true;
	return write_value(c, &key, ordinal, v);
}

/* Goes one step on; what is not there is made. */
static enum status
set_step(struct changing *c, struct place *at, const struct plain_path *path, size_t step)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct plain_leaf leaf;
	uint32_t position = 0;
	enum status status;

	assert(step + 1 < path->count && bson_is_container(&at->leaf.value));
	if (at->leaf.value.type == BSON_ARRAY)
		TRY(plain_path_check_position(path, step, at->leaf.next, &position, c->p->err));
	child_key(at, path->steps[step], position, &key);
	TRY(catalog_key_status(&key));
	status = leaf_get(c, &key, &leaf);
	if (status == STATUS_NOT_FOUND) {
		leaf = (struct plain_leaf){ .value = BSON_OF_DOCUMENT(BSON_EMPTY) };
		TRY(new_member(c, at, path->steps[step], position, &leaf.ordinal));
		TRY(leaf_set(c, &key, &leaf));
		c->changed = true;
	} else {
		TRY(status);
	}
	if (!bson_is_container(&leaf.value))
		return plain_path_fail_scalar(path, step + 1, c->p->err);
	buf_clear(&at->key);
	buf_append_buf(&at->key, &key);
	at->is_root = false;
	at->leaf = leaf;
	return buf_status(&at->key);
}

/* ---- Taking out ---- */

/* STATUS_NOT_FOUND: there is nothing to be taken out. */
static enum status
unset_step(struct changing *c, struct place *at, struct str step, struct buf *key,
	   struct plain_leaf *ret)
{
	uint32_t position = 0;

	if (!bson_is_container(&at->leaf.value) ||
	    (at->leaf.value.type == BSON_ARRAY && !plain_step_is_position(step, &position)))
		return STATUS_NOT_FOUND;
	child_key(at, step, position, key);
	TRY(catalog_key_status(key));
	return leaf_get(c, key, ret);
}

static enum status
unset(struct changing *c, struct place *at, const struct plain_path *path)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct plain_leaf null = { .value = BSON_OF_NULL };
	struct plain_leaf leaf;

	for (size_t i = 0;; i++) {
		TRY(unset_step(c, at, path->steps[i], &key, &leaf));
		if (i + 1 == path->count)
			break;
		buf_clear(&at->key);
		buf_append_buf(&at->key, &key);
		TRY(buf_status(&at->key));
		at->leaf = leaf;
	}
	null.ordinal = leaf.ordinal;
	if (at->leaf.value.type == BSON_ARRAY && leaf.value.type == BSON_NULL)
		return STATUS_OK;
	c->changed = true;
	TRY(clear_value(c, &key, &leaf));
	return at->leaf.value.type == BSON_ARRAY ? leaf_set(c, &key, &null) : STATUS_OK;
}

/* ---- All changes ---- */

static enum status
change_leaves(struct changing *c, const struct plain_change *change)
{
	struct place at = {
		.key = CATALOG_KEY_INIT,
		.is_root = true,
		.leaf = { .value = BSON_OF_DOCUMENT(BSON_EMPTY), .next = c->root.next },
	};
	struct plain_path path;
	enum status status;

	TRY(plain_path_parse(change->path, &path, c->p->err));
	buf_append_str(&at.key, c->record);
	status = buf_status(&at.key);
	if (status == STATUS_OK && !change->value) {
		status = unset(c, &at, &path);
		if (status == STATUS_NOT_FOUND)
			status = STATUS_OK;
	} else {
		for (size_t i = 0; status == STATUS_OK && i + 1 < path.count; i++)
			status = set_step(c, &at, &path, i);
		if (status == STATUS_OK)
			status = set_here(c, &at, &path, change->value);
	}
	buf_release(&at.key);
	return status;
}

/* Whether all of it can be done leaf by leaf; otherwise nothing was written yet. */
static enum status
can_change_leaves(struct changing *c, const struct plain_change *changes, size_t count, bool *ret)
{
	uint64_t length = c->root.length;
	size_t leaves = 0;

	*ret = false;
	for (size_t i = 0; i < count; i++) {
		/* Names may double in keys, but for the few bytes of their frames. */
		size_t path_bytes = 3 * changes[i].path.len + ELEMENT_BYTES;
		struct plain_pairs pairs;
		enum status status;

		if (!changes[i].value)
			continue;
		status = plain_explode_value(changes[i].value, 0, STR(""),
					     c->record.len + path_bytes, c->arena, &pairs);
		if (status == STATUS_UNSUPPORTED)
			return STATUS_OK;
		TRY(status);
		leaves += pairs.bytes;
		length += size_of(changes[i].value) + ELEMENT_BYTES * (1 + changes[i].path.len) +
			  changes[i].path.len;
		if (memchr(changes[i].path.ptr, '.', changes[i].path.len))
			length += (uint64_t)PLAIN_PADDING * ELEMENT_BYTES;
	}
	*ret = leaves <= PLAIN_LEAVES_BYTES && length <= BSON_DOCUMENT_BYTES;
	return STATUS_OK;
}

static enum status
update_leaves(struct changing *c, const struct plain_change *changes, size_t count)
{
	AUTO(buf_release) struct buf value = BUF_INIT(KV_LIMIT_VALUE_BYTES);

	if (plain_has_indexes(c->p))
		TRY(plain_index_update(c->p, c->id, c->record, &c->root, changes, count, c->arena));
	for (size_t i = 0; i < count; i++)
		TRY(change_leaves(c, &changes[i]));
	if (!c->root_changed)
		return STATUS_OK;
	plain_root_put(&c->root, &value);
	TRY(buf_status(&value));
	return kv_set(c->p->tx, c->record, buf_str(&value));
}

static enum status
update(struct plain *p, const struct bson_value *id, const struct plain_change *changes,
       size_t count, struct str detail, bool only_leaves, struct arena *arena, bool *ret_changed)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct changing c = { .p = p, .id = id, .arena = arena };
	bool leaves = false;

	TRY(plain_key_record(p->db, id, &key, p->err));
	c.record = buf_str(&key);
	TRY(plain_get_root(p, c.record, KV_READ, arena, &c.root));
	TRY(plain_write_begin(p, c.record));
	if (c.root.form == PLAIN_FORM_LEAVES)
		TRY(can_change_leaves(&c, changes, count, &leaves));
	if (only_leaves && !leaves)
		return STATUS_DOC_TOO_LARGE;
	TRY(leaves ? update_leaves(&c, changes, count) : update_whole(&c, changes, count));
	*ret_changed = c.changed;
	return c.changed ? plain_log(p, PLAIN_EVENT_UPDATE, id, detail) : STATUS_OK;
}

enum status
plain_update(struct plain *p, const struct bson_value *id, const struct plain_change *changes,
	     size_t count, struct str detail, struct arena *arena, bool *ret_changed)
{
	return update(p, id, changes, count, detail, false, arena, ret_changed);
}

enum status
plain_update_leaves(struct plain *p, const struct bson_value *id,
		    const struct plain_change *changes, size_t count, struct str detail,
		    struct arena *arena, bool *ret_changed)
{
	return update(p, id, changes, count, detail, true, arena, ret_changed);
}
