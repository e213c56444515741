/*
 * Documents: which form they lie in, and changing them.
 *
 * In leaves, each object and array has a pair that says how many children it has. So a change
 * writes that pair, and those of what has changed. The elements of an array are numbered without
 * gaps, and the first number may be any: taking an element off either end, or adding one there,
 * moves no other. Members have ordinals, in the order in which they came.
 */
#include "model/timed/items/json.h"

#include <assert.h>

#include "loop/step.h"
#include "model/timed/items/json_int.h"

#define PLACE_GONE INT64_MIN

/* ---- Forms ---- */

enum status
timed_json_open(struct timed_item *item, struct timed_json *ret)
{
	*ret = (struct timed_json){ .item = item };
	json_source_init(ret);
	if (item->type == TIMED_LEAF)
		return STATUS_OK;
	assert(item->type == TIMED_JSON);
	ret->leaves = item->body.len && !item->length;
	return ret->leaves ? json_read_root(ret) : json_read_text(item, &ret->root);
}

/* The document's text, in the arena. STATUS_VALUE_TOO_LARGE, explained. */
static enum status
text_make(struct timed_item *item, const struct jtree_node *root, struct str *ret)
{
	AUTO(buf_release)
	struct buf text = BUF_INIT_OF(TIMED_LENGTH_BYTES, arena_part(item->arena));

	TRY(jtree_write(root, &jtree_dense, 0, &text));
	return buf_copy(&text, item->arena, ret);
}

static enum status
store_text(struct timed_item *item, struct str text)
{
	if (text.len > TIMED_WRITE_BYTES)
		return err_set(
			item->t->err, STATUS_VALUE_TOO_LARGE,
			"a document may have %d bytes of leaves (TIMED_JSON_LEAVES_BYTES), or "
			"of text %d (TIMED_WRITE_BYTES)",
			TIMED_JSON_LEAVES_BYTES, TIMED_WRITE_BYTES);
	item->length = text.len;
	if (text.len <= TIMED_JSON_PACKED_BYTES) {
		item->value = text;
		return timed_item_store(item);
	}
	TRY(timed_body_make(item));
	TRY(timed_text_write(item, 0, text));
	return timed_item_store(item);
}

static enum status
store_leaves(struct timed_item *item, struct jtree_node *root)
{
	item->length = 0;
	TRY(timed_body_make(item));
	TRY(timed_item_touch(item));
	TRY(json_leaves_write(item, root));
	return timed_item_store(item);
}

/* What one transaction writes of leaves: where there is a history, each makes a record as well. */
static size_t
leaves_most(const struct timed_item *item)
{
	return timed_history_seconds(item->t->db) ? TIMED_JSON_LEAVES_BYTES / 2
						  : TIMED_JSON_LEAVES_BYTES;
}

enum status
timed_json_set(struct timed_item *item, struct jtree_node *root)
{
	uint64_t expires_ms = item->type == TIMED_LEAF ? 0 : item->expires_ms;
	size_t bytes = 0, way = 0;
	struct str text;

	TRY(text_make(item, root, &text));
	TRY(json_leaves_measure(root, 0, &bytes, &way));
	TRY(timed_item_renew(item, TIMED_JSON));
	item->expires_ms = expires_ms;
	if (text.len > TIMED_JSON_PACKED_BYTES && way <= TIMED_JSON_PATH_BYTES &&
	    bytes <= leaves_most(item))
		return store_leaves(item, root);
	return store_text(item, text);
}

enum status
timed_json_finish(struct timed_json *j)
{
	if (!j->changed)
		return STATUS_OK;
	assert(!j->leaves);
	j->changed = false;
	return timed_json_set(j->item, j->root);
}

enum status
timed_json_unfold(struct timed_json *j)
{
	TRY(timed_json_load(j, j->root));
	j->leaves = false;
	j->changed = true;
	return STATUS_OK;
}

enum status
timed_json_fits(struct timed_json *j, struct jtree_node *const *nodes, size_t count,
		struct str name, const struct jtree_node *value, bool *ret)
{
	size_t bytes = 0, way = 2 * name.len + JSON_STEP_MORE, all = 0;

	*ret = true;
	if (!j->leaves || !value)
		return STATUS_OK;
	TRY(json_leaves_measure(value, way, &bytes, &way));
	for (size_t i = 0; i < count && *ret; i++) {
		struct arena_mark mark = arena_mark(j->item->arena);
		struct buf key;

		TRY(json_node_key(j->item, nodes[i], 0, &key));
		all += bytes + key.len;
		*ret = key.len - j->item->body.len + way <= TIMED_JSON_PATH_BYTES &&
		       all <= leaves_most(j->item);
		arena_reset(j->item->arena, mark);
	}
	return STATUS_OK;
}

/* ---- Pairs of leaves ---- */

/* Says that something in the document changes. */
static enum status
change_begin(struct timed_json *j)
{
	if (j->leaves)
		return timed_item_touch(j->item);
	j->changed = true;
	return STATUS_OK;
}

/* Writes what the container's own pair says. */
static enum status
container_write(struct timed_json *j, const struct jtree_node *node)
{
	struct buf key;

	TRY(json_node_key(j->item, node, 0, &key));
	return json_leaf_write(j->item, buf_str(&key), node);
}

/* Clears what is below the node, and its own pair if it goes. */
static enum status
leaves_clear(struct timed_json *j, const struct jtree_node *node, bool itself)
{
	struct str begin, end;
	struct buf key;

	TRY(json_node_key(j->item, node, 1, &key));
	TRY(json_below(j->item, buf_str(&key), &begin, &end));
	if (itself)
		TRY(timed_data_clear(j->item->t, buf_str(&key)));
	if (!jtree_is_container(node) &&
	    (node->kind != JTREE_TEXT || node->text.len <= TIMED_JSON_PIECE_BYTES))
		return STATUS_OK;
	return timed_data_clear_range(j->item->t, begin, end);
}

/* ---- Moving elements ---- */

/* Pairs of elements that are moved. */
struct moved {
	struct kv_pair *pairs;
	size_t count, cap;
	size_t bytes;
};

static enum status
moved_add(struct timed_json *j, struct moved *m, const struct kv_pair *pair)
{
	struct arena *arena = j->item->arena;

	m->bytes += pair->key.len + pair->value.len + JSON_PAIR_MORE;
	if (m->bytes > TIMED_WRITE_BYTES)
		return err_set(j->item->t->err, STATUS_TX_TOO_LARGE,
			       "elements with more than %d bytes (TIMED_WRITE_BYTES) would have to "
			       "be moved in an array",
			       TIMED_WRITE_BYTES);
	TRY(arena_room(arena, &m->pairs, m->count, &m->cap, sizeof(*m->pairs)));
	return catalog_pair_copy(arena, pair->key, pair->value, &m->pairs[m->count++]);
}

/* Writes a pair of an element, `from` elements behind the first place, where the element goes. */
static enum status
moved_write(struct timed_json *j, const struct buf *array, int64_t first, const int64_t *places,
	    const struct kv_pair *pair)
{
	struct tuple_reader r = tuple_reader(str_skip(pair->key, array->len));
	struct arena_mark mark = arena_mark(j->item->arena);
	struct buf key;
	int64_t place;

	if (tuple_next_i64(&r, &place) != STATUS_OK)
		return timed_item_corrupt(j->item);
	if (places[place - first] == PLACE_GONE)
		return STATUS_OK;
	key = timed_arena_buf(j->item->arena, pair->key.len + JSON_STEP_MORE);
	buf_append_buf(&key, array);
	tuple_put_i64(&key, places[place - first]);
	buf_append_str(&key, r.rest);
	TRY(buf_status(&key));
	TRY(timed_data_set(j->item->t, buf_str(&key), pair->value));
	arena_reset(j->item->arena, mark);
	return STATUS_OK;
}

static enum status
moved_read(struct timed_json *j, struct str begin, struct str end, struct moved *ret)
{
	AUTO(timed_cursor_close) struct timed_cursor scan = { 0 };
	struct kv_pair pair;
	enum status status;

	TRY(timed_cursor_open(&scan, j->item->t, begin, end, NULL));
	while ((status = timed_cursor_next(&scan, &pair)) == STATUS_OK)
		TRY(moved_add(j, ret, &pair));
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/*
 * Moves the `count` elements that begin at the place `first` to `places`, one for each; PLACE_GONE
 * clears an element instead. No element that stays where it is has one of the new places.
 */
static enum status
elements_move(struct timed_json *j, const struct jtree_node *array, int64_t first, uint64_t count,
	      const int64_t *places)
{
	struct moved moved = { .count = 0 };
	struct buf key, begin, end;
	bool all_gone = true;

	if (!count)
		return STATUS_OK;
	TRY(json_node_key(j->item, array, 0, &key));
	TRY(json_node_key(j->item, array, JSON_STEP_MORE, &begin));
	TRY(json_node_key(j->item, array, JSON_STEP_MORE, &end));
	tuple_put_i64(&begin, first);
	tuple_put_i64(&end, first + (int64_t)count);
	TRY(buf_status(&begin));
	TRY(buf_status(&end));
	for (uint64_t i = 0; i < count; i++) {
		TRY(step_count(1));
		all_gone = all_gone && places[i] == PLACE_GONE;
	}
	if (!all_gone)
		TRY(moved_read(j, buf_str(&begin), buf_str(&end), &moved));
	TRY(timed_data_clear_range(j->item->t, buf_str(&begin), buf_str(&end)));
	for (size_t i = 0; i < moved.count; i++)
		TRY(moved_write(j, &key, first, places, &moved.pairs[i]));
	return STATUS_OK;
}

/* Sets the places of the elements in memory. */
static void
places_set(struct jtree_node *array)
{
	for (uint64_t i = 0; array->whole && i < array->count; i++)
		array->children[i]->place = array->next + (int64_t)i;
}

/* An array of `count` places, each `by` behind what it was from `first` on. */
static enum status
places_make(struct timed_json *j, int64_t first, uint64_t count, int64_t by, int64_t **ret)
{
	int64_t *places = arena_alloc(j->item->arena, ((size_t)count + 1) * sizeof(*places));

	if (!places)
		return STATUS_LIMIT;
	for (uint64_t i = 0; i < count; i++) {
		TRY(step_count(1));
		places[i] = first + (int64_t)i + by;
	}
	*ret = places;
	return STATUS_OK;
}

/* Moves `count` elements from the index `from` on. */
static enum status
elements_shift(struct timed_json *j, const struct jtree_node *array, uint64_t from, uint64_t count,
	       int64_t by)
{
	int64_t first = array->next + (int64_t)from, *places;

	TRY(places_make(j, first, count, by, &places));
	return elements_move(j, array, first, count, places);
}

/* ---- Changes ---- */

enum status
timed_json_assign(struct timed_json *j, struct jtree_node *node, struct jtree_node *value)
{
	TRY(change_begin(j));
	if (j->leaves)
		TRY(leaves_clear(j, node, false));
	jtree_assign(node, value);
	return j->leaves ? json_leaves_write(j->item, node) : STATUS_OK;
}

enum status
timed_json_add(struct timed_json *j, struct jtree_node *object, struct str name,
	       struct jtree_node *value)
{
	TRY(change_begin(j));
	value->ordinal = (uint64_t)object->next;
	object->next++;
	if (object->whole) {
		TRY(jtree_add(j->item->arena, object, name, value));
	} else {
		object->count++;
		value->parent = object;
		value->name = name;
	}
	if (!j->leaves)
		return STATUS_OK;
	TRY(json_leaves_write(j->item, value));
	return container_write(j, object);
}

/* Writes elements that were put into the array from the index on. */
static enum status
elements_write(struct timed_json *j, struct jtree_node *array, uint64_t at,
	       struct jtree_node *const *values, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		values[i]->parent = array;
		values[i]->ordinal = 0;
		values[i]->place = array->next + (int64_t)(at + i);
		TRY(json_leaves_write(j->item, values[i]));
	}
	return container_write(j, array);
}

enum status
timed_json_insert(struct timed_json *j, struct jtree_node *array, uint64_t at,
		  struct jtree_node *const *values, size_t count)
{
	uint64_t behind = array->count - at;
	bool left = at < behind;

	TRY(change_begin(j));
	if (j->leaves) {
		/* The side with fewer elements makes room. */
		if (left)
			TRY(elements_shift(j, array, 0, at, -(int64_t)count));
		else
			TRY(elements_shift(j, array, at, behind, (int64_t)count));
		array->next -= left ? (int64_t)count : 0;
	}
	if (array->whole)
		TRY(jtree_insert(j->item->arena, array, at, values, count));
	else
		array->count += count;
	places_set(array);
	return j->leaves ? elements_write(j, array, at, values, count) : STATUS_OK;
}

enum status
timed_json_cut(struct timed_json *j, struct jtree_node *array, uint64_t at, uint64_t count)
{
	uint64_t behind = array->count - at - count;
	bool left = at < behind;
	int64_t *gone;

	if (!count)
		return STATUS_OK;
	TRY(change_begin(j));
	if (j->leaves) {
		TRY(places_make(j, 0, count, 0, &gone));
		for (uint64_t i = 0; i < count; i++)
			gone[i] = PLACE_GONE;
		TRY(elements_move(j, array, array->next + (int64_t)at, count, gone));
		if (left)
			TRY(elements_shift(j, array, 0, at, (int64_t)count));
		else
			TRY(elements_shift(j, array, at + count, behind, -(int64_t)count));
		array->next += left ? (int64_t)count : 0;
	}
	if (array->whole)
		jtree_cut(array, at, count);
	else
		array->count -= count;
	places_set(array);
	return j->leaves ? container_write(j, array) : STATUS_OK;
}

/* The elements of a whole array that are marked as gone, in leaves: the others close up. */
static enum status
elements_close_up(struct timed_json *j, struct jtree_node *array)
{
	uint64_t first = 0, kept;
	int64_t *places;

	while (!array->children[first]->gone)
		first++;
	TRY(places_make(j, array->next, array->count, 0, &places));
	kept = first;
	for (uint64_t i = first; i < array->count; i++) {
		TRY(step_count(1));
		places[i] = array->children[i]->gone ? PLACE_GONE : array->next + (int64_t)kept++;
	}
	TRY(elements_move(j, array, array->next + (int64_t)first, array->count - first,
			  places + first));
	/* What lies in them and goes, too, is looked for by its new key. */
	for (uint64_t i = first; i < array->count; i++)
		if (!array->children[i]->gone)
			array->children[i]->place = places[i];
	return STATUS_OK;
}

/* Takes nodes out of leaves. Their containers know it afterwards, but have not been written. */
static enum status
leaves_remove(struct timed_json *j, struct jtree_node *const *nodes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		nodes[i]->gone = true;
	for (size_t i = 0; i < count; i++) {
		struct jtree_node *parent = nodes[i]->parent;

		if (parent->kind == JTREE_OBJECT) {
			TRY(leaves_clear(j, nodes[i], true));
		} else if (!parent->gone) {
			/* The first of its elements that go sees to all of them. */
			parent->gone = true;
			TRY(elements_close_up(j, parent));
		}
	}
	for (size_t i = 0; i < count; i++) {
		nodes[i]->parent->gone = false;
		nodes[i]->gone = false;
	}
	return STATUS_OK;
}

/* One node of a container that is not in memory. */
static enum status
remove_alone(struct timed_json *j, struct jtree_node *node)
{
	struct jtree_node *parent = node->parent;

	if (parent->kind == JTREE_ARRAY)
		return timed_json_cut(j, parent, (uint64_t)(node->place - parent->next), 1);
	TRY(leaves_clear(j, node, true));
	parent->count--;
	return container_write(j, parent);
}

enum status
timed_json_remove(struct timed_json *j, struct jtree_node *const *nodes, size_t count)
{
	struct jtree_node **parents;
	size_t parent_count = 0;

	if (!count)
		return STATUS_OK;
	TRY(change_begin(j));
	if (!nodes[0]->parent->whole) {
		assert(count == 1 && j->leaves);
		return remove_alone(j, nodes[0]);
	}
	if (!j->leaves)
		return jtree_remove(nodes, count);
	TRY(leaves_remove(j, nodes, count));
	parents = arena_alloc(j->item->arena, count * sizeof(*parents));
	if (!parents)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		if (!nodes[i]->parent->gone)
			parents[parent_count++] = nodes[i]->parent;
		nodes[i]->parent->gone = true;
	}
	for (size_t i = 0; i < parent_count; i++)
		parents[i]->gone = false;
	TRY(jtree_remove(nodes, count));
	for (size_t i = 0; i < parent_count; i++) {
		if (parents[i]->kind == JTREE_ARRAY)
			places_set(parents[i]);
		TRY(container_write(j, parents[i]));
	}
	return STATUS_OK;
}

/* ---- Merging ---- */

/* The value without its members that are null, in no tree. */
static enum status
merged_value(struct timed_json *j, const struct jtree_node *patch, struct jtree_node **ret)
{
	TRY(jtree_new(j->item->arena, JTREE_NULL, ret));
	return jtree_merge(j->item->arena, *ret, patch);
}

static enum status
merge_member(struct timed_json *j, struct jtree_node *object, const struct jtree_node *change)
{
	struct jtree_node *member, *value;
	struct str name;

	TRY(timed_json_member(j, object, change->name, &member));
	if (change->kind == JTREE_NULL)
		return member ? timed_json_remove(j, &member, 1) : STATUS_OK;
	if (member)
		return timed_json_merge(j, member, change);
	TRY(merged_value(j, change, &value));
	TRY(arena_copy(j->item->arena, change->name, &name));
	return timed_json_add(j, object, name, value);
}

enum status
timed_json_merge(struct timed_json *j, struct jtree_node *node, const struct jtree_node *patch)
{
	struct jtree_node *value;

	if (patch->kind == JTREE_OBJECT && node->kind == JTREE_OBJECT && j->leaves) {
		for (uint64_t i = 0; i < patch->count; i++)
			TRY(merge_member(j, node, patch->children[i]));
		return STATUS_OK;
	}
	TRY(change_begin(j));
	if (!j->leaves)
		return jtree_merge(j->item->arena, node, patch);
	TRY(merged_value(j, patch, &value));
	return timed_json_assign(j, node, value);
}
