#include "doc/edit.h"

#include <assert.h>

#include "doc/doc.h"
#include "doc/doc_int.h"

/*
 * Everything below a path P is the range [P, P FF), and the leaf of a scalar or of an empty
 * container at P is the first key of it. So the first pair of a container's range tells what is
 * there: an empty container, another scalar, an object or an array, or nothing.
 */

enum {
	RANGE_END = 0xff, /* behind whatever goes on below a path */
};

/* What the first pair of a path's range tells. */
enum edit_place {
	PLACE_MISSING,
	PLACE_SCALAR, /* or a text in pieces */
	PLACE_EMPTY_OBJECT,
	PLACE_EMPTY_ARRAY,
	PLACE_OBJECT,
	PLACE_ARRAY,
};

/* An element of the path. */
struct edit_step {
	struct str parent; /* the key of the container that it is an element of */
	struct str key;
	bool is_position;
	uint64_t position;
	struct kv_future *future; /* the container's first pair, if it was asked for */
};

struct edit {
	struct kv_tx *tx;
	struct arena *arena;
	struct err *err;
	struct str path;
	struct edit_step *steps;
	size_t count;
	struct kv_future *others[2]; /* doc_unset(): what lies before and behind the place */
	struct kv_future *place;
};

/* ---- Failures ---- */

static enum status
edit_fail(struct edit *e, enum status status, const char *what)
{
	struct buf drawn = BUF_INIT(SIZE_MAX);

	doc_path_draw(e->path, &drawn);
	err_set(e->err, status, "%.*s %s", STR_ARG(buf_str(&drawn)), what);
	buf_release(&drawn);
	return status;
}

static enum status
edit_fail_limit(struct edit *e, enum status status, const char *what, int limit, const char *unit)
{
	struct buf text = BUF_INIT(SIZE_MAX);

	buf_printf(&text, "%s %d %s", what, limit, unit);
	buf_append_byte(&text, 0);
	edit_fail(e, status, buf_status(&text) == STATUS_OK ? text.ptr : what);
	buf_release(&text);
	return status;
}

static enum status
edit_fail_read(struct edit *e, enum status status)
{
	return err_set(e->err, status, "%s", kv_tx_error(e->tx));
}

static enum status
edit_fail_memory(struct edit *e)
{
	return err_set(e->err, STATUS_LIMIT, "no memory for changing the document");
}

/* ---- The path ---- */

static enum status
edit_count_steps(struct edit *e)
{
	struct tuple_reader r = tuple_reader(e->path);
	struct tuple_elem elem;

	while (r.rest.len) {
		if (tuple_next(&r, &elem) != STATUS_OK)
			return edit_fail(e, STATUS_INVALID, "is no path");
		if (elem.kind != TUPLE_STRING && (elem.kind != TUPLE_INT || elem.negative))
			return edit_fail(e, STATUS_INVALID, "is no path");
		if (!e->count && elem.kind != TUPLE_STRING)
			return edit_fail(e, STATUS_INVALID, "is no member of an object");
		e->count++;
	}
	if (!e->count)
		return edit_fail(e, STATUS_INVALID, "is the whole document");
	if (e->count > JSON_DEPTH_LIMIT)
		return edit_fail_limit(e, STATUS_JSON_DEPTH, "is nested more deeply than",
				       JSON_DEPTH_LIMIT, "containers");
	return STATUS_OK;
}

static enum status
edit_init(struct edit *e, struct str root)
{
	struct tuple_reader r = tuple_reader(e->path);
	struct tuple_elem elem;
	char *key;
	size_t len = root.len;

	TRY(edit_count_steps(e));
	/* A range's end is one byte longer. */
	if (root.len + e->path.len >= kv_key_limit(e->tx))
		return edit_fail_limit(e, STATUS_PATH_TOO_LONG, "makes a key longer than",
				       (int)kv_key_limit(e->tx), "bytes");
	e->steps = arena_zalloc(e->arena, e->count * sizeof(*e->steps));
	key = arena_bytes(e->arena, root.len + e->path.len);
	if (!e->steps || !key)
		return edit_fail_memory(e);
	memcpy(key, root.ptr, root.len);
	memcpy(key + root.len, e->path.ptr, e->path.len);
	for (size_t i = 0; i < e->count; i++) {
		struct edit_step *step = &e->steps[i];

		TRY(tuple_next_elem(&r, &elem));
		step->parent = str_of(key, len);
		len += elem.encoding.len;
		step->key = str_of(key, len);
		step->is_position = elem.kind == TUPLE_INT;
		step->position = step->is_position ? elem.magnitude : 0;
	}
	assert(len == root.len + e->path.len);
	return STATUS_OK;
}

static void
edit_release(struct edit *e)
{
	for (size_t i = 0; e->steps && i < e->count; i++)
		kv_future_free(e->steps[i].future);
	kv_future_free(e->others[0]);
	kv_future_free(e->others[1]);
	kv_future_free(e->place);
}

/* The step to the place itself. */
static struct edit_step *
edit_last_step(struct edit *e)
{
	return &e->steps[e->count - 1];
}

/* ---- Reading ---- */

/* `key` and, behind it, what ends its range. ptr is NULL when the arena is full. */
static struct str
edit_range_end(struct edit *e, struct str key)
{
	char *end = arena_bytes(e->arena, key.len + 1);

	if (!end)
		return (struct str){ NULL, 0 };
	memcpy(end, key.ptr, key.len);
	end[key.len] = (char)RANGE_END;
	return str_of(end, key.len + 1);
}

/* Asks for the first pair from `begin` to the end of `key`'s range. */
static enum status
edit_ask_first(struct edit *e, struct str begin, struct str key, struct kv_future **ret)
{
	const struct kv_range_options options = { .limit = 1 };
	struct str end = edit_range_end(e, key);

	if (!end.ptr)
		return edit_fail_memory(e);
	*ret = kv_get_range(e->tx, begin, end, &options);
	return STATUS_OK;
}

/* Waits for the answer; `*ret` has no pair or one. */
static enum status
edit_wait_for_first(struct edit *e, struct kv_future *f, struct kv_range *ret)
{
	enum status status = kv_future_wait(f);

	if (status != STATUS_OK)
		return edit_fail_read(e, status);
	*ret = kv_future_range(f);
	return STATUS_OK;
}

/* What the leaf of a value says that has no children. */
static enum status
edit_place_of_leaf(struct edit *e, struct str value, enum edit_place *ret)
{
	AUTO(buf_release) struct buf scratch = BUF_INIT(SIZE_MAX);
	struct doc_scalar s;

	if (doc_scalar_read(value, &scratch, &s) != STATUS_OK)
		return edit_fail(e, STATUS_CORRUPT, "has a container whose leaf cannot be read");
	*ret = PLACE_SCALAR;
	if (s.kind == DOC_EMPTY_OBJECT)
		*ret = PLACE_EMPTY_OBJECT;
	else if (s.kind == DOC_EMPTY_ARRAY)
		*ret = PLACE_EMPTY_ARRAY;
	return STATUS_OK;
}

/* What is at `key`, of whose range `found` has the first pair, if there is one. */
static enum status
edit_place_of(struct edit *e, struct str key, const struct kv_range *found, enum edit_place *ret)
{
	struct tuple_reader r;
	struct tuple_elem elem;

	*ret = PLACE_MISSING;
	if (!found->count)
		return STATUS_OK;
	r = tuple_reader(str_skip(found->pairs[0].key, key.len));
	if (!r.rest.len)
		return edit_place_of_leaf(e, found->pairs[0].value, ret);
	if (tuple_next(&r, &elem) != STATUS_OK)
		return edit_fail(e, STATUS_CORRUPT, "has a container whose keys cannot be read");
	*ret = elem.kind == TUPLE_STRING ? PLACE_OBJECT
	       : elem.kind == TUPLE_INT  ? PLACE_ARRAY
					 : PLACE_SCALAR;
	return STATUS_OK;
}

/* ---- Setting ---- */

/*
 * Asks for what tells whether the step can be made: for an element that is not the first one the
 * element before it, for all others what the container is.
 */
static enum status
edit_ask_probe(struct edit *e, struct edit_step *step)
{
	AUTO(buf_release) struct buf key = BUF_INIT(KV_LIMIT_KEY_BYTES);
	struct str before;

	if (!step->position)
		return edit_ask_first(e, step->parent, step->parent, &step->future);
	buf_append_str(&key, step->parent);
	tuple_put_u64(&key, step->position - 1);
	if (buf_copy(&key, e->arena, &before) != STATUS_OK)
		return edit_fail_memory(e);
	return edit_ask_first(e, before, before, &step->future);
}

/*
 * Waits for it. `*ret_missing`: there is no container yet; `*ret_empty` becomes its key if it is
 * there and has no children. STATUS_INVALID if what is there is no such container.
 */
static enum status
edit_wait_for_probe(struct edit *e, struct edit_step *step, bool *ret_missing,
		    struct str *ret_empty)
{
	enum edit_place place;
	struct kv_range found;

	*ret_missing = false;
	TRY(edit_wait_for_first(e, step->future, &found));
	if (step->position)
		return found.count
			       ? STATUS_OK
			       : edit_fail(e, STATUS_NOT_FOUND, "is behind the end of its array");
	TRY(edit_place_of(e, step->parent, &found, &place));
	*ret_missing = place == PLACE_MISSING;
	if (*ret_missing || place == (step->is_position ? PLACE_ARRAY : PLACE_OBJECT))
		return STATUS_OK;
	if (place != (step->is_position ? PLACE_EMPTY_ARRAY : PLACE_EMPTY_OBJECT))
		return edit_fail(e, STATUS_INVALID,
				 step->is_position ? "is in what is no array"
						   : "is in what is no object");
	*ret_empty = step->parent;
	return STATUS_OK;
}

/*
 * Finds out whether the path can be gone; `*ret_empty` is the key of the empty container that it
 * leads through, if any. The document itself, which the first step is made in, needs no look.
 */
static enum status
edit_probe_path(struct edit *e, enum doc_set_mode mode, struct str *ret_empty)
{
	size_t last = e->count - 1;
	bool missing;

	if (!last)
		return STATUS_OK;
	TRY(edit_ask_probe(e, &e->steps[last]));
	TRY(edit_wait_for_probe(e, &e->steps[last], &missing, ret_empty));
	if (!missing)
		return STATUS_OK;
	if (mode != DOC_SET_CREATE)
		return edit_fail(e, STATUS_NOT_FOUND, "is in no container that is there");
	/* The containers above it in one wave: the lowest that is there decides. */
	for (size_t i = 1; i < last; i++)
		TRY(edit_ask_probe(e, &e->steps[i]));
	for (size_t i = last; missing && --i > 0;)
		TRY(edit_wait_for_probe(e, &e->steps[i], &missing, ret_empty));
	return STATUS_OK;
}

/* How many containers a leaf's path leads through; nothing is read where there cannot be many. */
static size_t
edit_path_depth(struct str path)
{
	struct tuple_reader r = tuple_reader(path);
	struct tuple_elem elem;
	size_t depth = 0;

	while (r.rest.len && tuple_next(&r, &elem) == STATUS_OK && elem.kind != TUPLE_NULL)
		depth++;
	return depth;
}

static enum status
edit_check_leaves(struct edit *e, const struct kv_pair *leaves, size_t count)
{
	size_t key_bytes = edit_last_step(e)->key.len;

	for (size_t i = 0; i < count; i++) {
		if (key_bytes + leaves[i].key.len > KV_LIMIT_KEY_BYTES)
			return edit_fail_limit(e, STATUS_PATH_TOO_LONG, "makes a key longer than",
					       KV_LIMIT_KEY_BYTES, "bytes");
		/* An element takes a byte at least. */
		if (e->count + leaves[i].key.len > JSON_DEPTH_LIMIT &&
		    e->count + edit_path_depth(leaves[i].key) > JSON_DEPTH_LIMIT)
			return edit_fail_limit(e, STATUS_JSON_DEPTH, "is nested more deeply than",
					       JSON_DEPTH_LIMIT, "containers");
	}
	return STATUS_OK;
}

/* The leaf of a container without children. */
static enum status
edit_write_empty(struct edit *e, struct str key, bool array)
{
	const struct doc_scalar empty = { .kind = array ? DOC_EMPTY_ARRAY : DOC_EMPTY_OBJECT };
	AUTO(buf_release) struct buf value = BUF_INIT(SIZE_MAX);

	doc_scalar_put(&value, &empty);
	TRY(buf_status(&value));
	return kv_set(e->tx, key, buf_str(&value));
}

static enum status
edit_set_value(struct edit *e, const struct kv_pair *leaves, size_t count, enum doc_set_mode mode)
{
	struct str key = edit_last_step(e)->key;
	struct str empty = { NULL, 0 };
	struct str end;

	TRY(edit_check_leaves(e, leaves, count));
	TRY(edit_probe_path(e, mode, &empty));
	end = edit_range_end(e, key);
	if (!end.ptr)
		return edit_fail_memory(e);
	TRY(kv_clear_range(e->tx, key, end));
	if (empty.ptr)
		TRY(kv_clear(e->tx, empty));
	return count ? doc_write(e->tx, key, leaves, count) : edit_write_empty(e, key, false);
}

enum status
doc_set(struct kv_tx *tx, struct str root, struct str path, const struct kv_pair *leaves,
	size_t count, enum doc_set_mode mode, struct arena *arena, struct err *err)
{
	struct edit e = { .tx = tx, .arena = arena, .err = err, .path = path };
	enum status status = edit_init(&e, root);

	if (status == STATUS_OK)
		status = edit_set_value(&e, leaves, count, mode);
	edit_release(&e);
	return status;
}

/* ---- Taking out ---- */

/*
 * Writes the elements from `begin` to `end` one position lower. They are all read before the range
 * is cleared, in which their new keys lie, too.
 */
static enum status
edit_move_up(struct edit *e, struct kv_scan *scan, struct str end, bool *ret_any)
{
	const struct edit_step *step = edit_last_step(e);
	struct kv_pair *pairs = NULL;
	size_t count = 0;
	size_t cap = 0;
	struct kv_pair pair;
	enum status status;

	while ((status = kv_scan_next(scan, &pair)) == STATUS_OK) {
		struct tuple_reader r = tuple_reader(str_skip(pair.key, step->parent.len));
		struct tuple_elem elem;
		struct kv_pair *grown = arena_grow(e->arena, pairs, count, &cap, sizeof(*pairs));
		struct buf key = BUF_INIT(KV_LIMIT_KEY_BYTES);

		if (!grown)
			return edit_fail_memory(e);
		pairs = grown;
		if (tuple_next(&r, &elem) != STATUS_OK || elem.kind != TUPLE_INT || elem.negative ||
		    elem.magnitude <= step->position)
			return edit_fail(e, STATUS_CORRUPT, "is in an array that cannot be read");
		tuple_put_u64(&key, elem.magnitude - 1);
		buf_append_str(&key, r.rest);
		status = buf_copy(&key, e->arena, &pairs[count].key);
		buf_release(&key);
		pairs[count].value = arena_dup(e->arena, pair.value);
		if (status != STATUS_OK || !pairs[count].value.ptr)
			return edit_fail_memory(e);
		count++;
	}
	if (status != STATUS_NOT_FOUND)
		return edit_fail_read(e, status);
	*ret_any = count > 0;
	TRY(kv_clear_range(e->tx, step->key, end));
	return doc_write(e->tx, step->parent, pairs, count);
}

/* An element of an array. Positions have no gaps, so only the first may be the only one. */
static enum status
edit_unset_element(struct edit *e, bool *ret_found)
{
	const struct edit_step *step = edit_last_step(e);
	struct str behind = edit_range_end(e, step->key);
	struct str end = edit_range_end(e, step->parent);
	struct kv_range found;
	struct kv_scan scan;
	enum status status;
	bool any = false;

	if (!behind.ptr || !end.ptr)
		return edit_fail_memory(e);
	TRY(edit_ask_first(e, step->key, step->key, &e->place));
	TRY(kv_scan_init(&scan, e->tx, behind, end, NULL));
	status = edit_wait_for_first(e, e->place, &found);
	*ret_found = status == STATUS_OK && found.count;
	if (*ret_found)
		status = edit_move_up(e, &scan, end, &any);
	kv_scan_release(&scan);
	if (status == STATUS_OK && *ret_found && !any && !step->position)
		status = edit_write_empty(e, step->parent, true);
	return status;
}

static enum status
edit_unset_member(struct edit *e, bool *ret_found)
{
	const struct kv_range_options options = { .limit = 1 };
	const struct edit_step *step = edit_last_step(e);
	struct str behind = edit_range_end(e, step->key);
	struct kv_range found, before, after;

	if (!behind.ptr)
		return edit_fail_memory(e);
	TRY(edit_ask_first(e, step->key, step->key, &e->place));
	/* Whether the document itself has other members does not matter: it has no leaf. */
	if (e->count > 1) {
		e->others[0] = kv_get_range(e->tx, step->parent, step->key, &options);
		TRY(edit_ask_first(e, behind, step->parent, &e->others[1]));
	}
	TRY(edit_wait_for_first(e, e->place, &found));
	*ret_found = found.count;
	if (!*ret_found)
		return STATUS_OK;
	if (e->count > 1) {
		TRY(edit_wait_for_first(e, e->others[0], &before));
		TRY(edit_wait_for_first(e, e->others[1], &after));
	}
	TRY(kv_clear_range(e->tx, step->key, behind));
	if (e->count == 1 || before.count || after.count)
		return STATUS_OK;
	return edit_write_empty(e, step->parent, false);
}

enum status
doc_unset(struct kv_tx *tx, struct str root, struct str path, struct arena *arena, bool *ret_found,
	  struct err *err)
{
	struct edit e = { .tx = tx, .arena = arena, .err = err, .path = path };
	enum status status = edit_init(&e, root);

	*ret_found = false;
	if (status == STATUS_OK)
		status = edit_last_step(&e)->is_position ? edit_unset_element(&e, ret_found)
							 : edit_unset_member(&e, ret_found);
	edit_release(&e);
	return status;
}
