/*
 * Entries of BSON documents. Arrays are gone through as MongoDB does: a document has an entry for
 * each element of an array that lies at a column's path, or on the way to it. Of several columns
 * only those may lead into an array that lead into the same one.
 */
#include <assert.h>
#include <openssl/sha.h>
#include <stdlib.h>

#include "catalog/format.h"
#include "catalog/keys.h"
#include "index/engine/component.h"
#include "index/engine/entry.h"

enum {
	HASHED_BYTES = 65536, /* of a value's key, whose hash stands for it */
	RAW_BYTES = BSON_KEY_ROOM(HASHED_BYTES),
	FRAMES = 2 * INDEX_PATH_NAMES + 2, /* states of all columns, inside each other */
};

/* ---- Components ---- */

/* A hash of the value's key, as a number: equal values have equal hashes. */
static enum status
hash_value(const struct index_def *def, const struct bson_value *v, struct bson_value *ret)
{
	AUTO(buf_release) struct buf raw = BUF_INIT(RAW_BYTES);
	uint8_t digest[SHA256_DIGEST_LENGTH];
	bool cut = false;

	TRY(bson_key_put(&raw, v, HASHED_BYTES, index_def_texts(def), &cut));
	SHA256((const unsigned char *)raw.ptr, raw.len, digest);
	*ret = (struct bson_value){ .type = BSON_INT64 };
	memcpy(&ret->as_n, digest, sizeof(int64_t));
	return STATUS_OK;
}

static enum status
put_component(struct buf *key, const struct index_def *def, size_t column,
	      const struct bson_value *v, struct buf *raw, bool *ret_cut)
{
	size_t share = index_component_share(def);
	struct bson_value hash;

	if (def->hashed == column + 1) {
		TRY(hash_value(def, v, &hash));
		v = &hash;
	}
	buf_clear(raw);
	/* A byte more than its share tells that it is cut. */
	TRY(bson_key_put(raw, v, share + 1, index_def_texts(def), ret_cut));
	if (def->columns[column].descending)
		doc_key_invert(raw, 0);
	index_component_wrap(key, buf_str(raw), share, ret_cut);
	return buf_status(key);
}

/* ---- Going through a document ---- */

enum place_state {
	PLACE_GOES,  /* the path goes on in what comes next; or ends at an array, if none is left */
	PLACE_FOUND, /* a position in an array has led to `value`, from where it goes on */
	PLACE_LOST,  /* a position has led nowhere */
	PLACE_ENDED, /* at `value` */
};

/* How far the path of a column has come. */
struct place {
	enum place_state state;
	uint32_t at;  /* names of the path that are behind it */
	bool missing; /* `value` is a null that stands for nothing */
	struct bson_value value;
};

struct walk {
	const struct catalog_db *db;
	const struct index_def *def;
	const struct index_source *source;
	struct index_work *w;
	struct index_pairs *pairs;
	size_t cap;
	struct index_refusal *refusal;
	struct place *frames[FRAMES]; /* by depth; NULL: not needed yet */
	struct buf key;
	struct buf value;
	struct buf raw;
};

static enum status
refuse(struct walk *walk, bool hashed, size_t a, size_t b)
{
	*walk->refusal = (struct index_refusal){ walk->def, hashed, { a, b } };
	return STATUS_UNSUPPORTED;
}

static void
put_value_head(struct walk *walk, unsigned flags)
{
	buf_clear(&walk->value);
	tuple_put_u64(&walk->value, INDEX_ENTRY_FORMAT);
	tuple_put_u64(&walk->value, flags);
}

/* The value of an entry: what the key does not tell. Values that are too long are left out. */
static enum status
make_value(struct walk *walk, const struct place *places, bool cut)
{
	unsigned flags = cut ? INDEX_ENTRY_CUT : 0u;
	struct bson_builder b;

	if (walk->def->flags & INDEX_COVERING) {
		put_value_head(walk, flags | INDEX_ENTRY_BSON);
		bson_builder_init(&b, &walk->value);
		bson_begin(&b);
		for (size_t i = 0; i < walk->def->column_count; i++)
			bson_put(&b, places[i].missing ? INDEX_MISSING : STR(""), &places[i].value);
		bson_end(&b);
		if (buf_status(&walk->value) != STATUS_LIMIT &&
		    walk->value.len <= INDEX_PAYLOAD_BYTES)
			return buf_status(&walk->value);
	}
	put_value_head(walk, flags);
	return buf_status(&walk->value);
}

/* All paths have ended: an entry. */
static enum status
make_entry(struct walk *walk, const struct place *places, size_t missing)
{
	const struct index_def *def = walk->def;
	struct kv_pair *pair;
	bool cut = false;

	if ((def->flags & INDEX_SPARSE) && missing == def->column_count)
		return STATUS_OK;
	index_key_entries(&walk->key, walk->db, def->number);
	for (size_t i = 0; i < def->column_count; i++) {
		bool one_cut = false;

		TRY(put_component(&walk->key, def, i, &places[i].value, &walk->raw, &one_cut));
		if (one_cut)
			walk->pairs->many |= UINT64_C(1) << (INDEX_CUTS_SHIFT + i);
		cut = cut || one_cut;
	}
	tuple_put_bytes(&walk->key, walk->source->id);
	TRY(catalog_key_status(&walk->key));
	TRY(make_value(walk, places, cut));
	TRY(catalog_array_grow(walk->w->arena, (void **)&walk->pairs->pairs, sizeof(*pair),
			       walk->pairs->count, &walk->cap));
	pair = &walk->pairs->pairs[walk->pairs->count];
	pair->key = arena_dup(walk->w->arena, buf_str(&walk->key));
	pair->value = arena_dup(walk->w->arena, buf_str(&walk->value));
	if (!pair->key.ptr || !pair->value.ptr)
		return STATUS_LIMIT;
	walk->pairs->count++;
	return STATUS_OK;
}

/*
 * Follows the path from an object on, or from an array whose element the next name counts, until
 * an array or the end. False: there is nothing.
 */
static bool
place_follow(const struct index_column *column, struct place *place, struct str object,
	     struct bson_value *ret)
{
	while (place->at < column->path_count) {
		if (!bson_find(object, column->path[place->at], ret))
			return false;
		place->at++;
		if (place->at == column->path_count || ret->type == BSON_ARRAY)
			return true;
		if (ret->type != BSON_DOCUMENT)
			return false;
		object = bson_text(ret);
	}
	return false;
}

/* Moves one column on in an object. False: there is nothing. */
static bool
place_move(const struct index_column *column, struct place *place, struct str object,
	   struct bson_value *ret)
{
	enum place_state state = place->state;

	place->state = PLACE_GOES;
	*ret = place->value;
	if (state != PLACE_GOES)
		return state == PLACE_FOUND;
	return place_follow(column, place, object, ret);
}

/*
 * Moves all columns on in an object. `*ret_columns` are those (by bits) that have come to an array,
 * which is `*ret_array`.
 */
static enum status
walk_object(struct walk *walk, struct str object, struct place *places, size_t *missing,
	    uint32_t *ret_columns, struct bson_value *ret_array)
{
	size_t first = 0;

	*ret_columns = 0;
	for (size_t i = 0; i < walk->def->column_count; i++) {
		struct place *place = &places[i];
		struct bson_value v;

		if (place->state == PLACE_ENDED)
			continue;
		if (!place_move(&walk->def->columns[i], place, object, &v)) {
			*place = (struct place){ .state = PLACE_ENDED,
						 .missing = true,
						 .value = BSON_OF_NULL };
			++*missing;
		} else if (v.type != BSON_ARRAY) {
			place->state = PLACE_ENDED;
			place->value = v;
		} else if (*ret_columns && bson_text(&v).ptr != bson_text(ret_array).ptr) {
			return refuse(walk, false, i, first);
		} else {
			if (!*ret_columns)
				first = i;
			*ret_columns |= 1u << i;
			*ret_array = v;
		}
	}
	walk->pairs->many |= *ret_columns;
	if (walk->def->hashed && (*ret_columns & (1u << (walk->def->hashed - 1))))
		return refuse(walk, true, walk->def->hashed - 1, 0);
	return STATUS_OK;
}

/* Columns whose next name counts an element of the array go on there, whatever the element. */
static void
place_by_position(struct walk *walk, struct str array, uint32_t columns, struct place *places)
{
	for (size_t i = 0; i < walk->def->column_count; i++) {
		const struct index_column *column = &walk->def->columns[i];
		struct place *place = &places[i];

		if ((columns & (1u << i)) && place->at < column->path_count &&
		    bson_find(array, column->path[place->at], NULL))
			place->state = place_follow(column, place, array, &place->value)
					       ? PLACE_FOUND
					       : PLACE_LOST;
	}
}

/* A copy of the states, in a frame of that depth. NULL: the arena is full. */
static struct place *
frame_copy(struct walk *walk, size_t depth, const struct place *from)
{
	size_t bytes = walk->def->column_count * sizeof(*from);

	assert(depth < FRAMES);
	if (!walk->frames[depth])
		walk->frames[depth] = arena_alloc(walk->w->arena, bytes);
	if (walk->frames[depth])
		memcpy(walk->frames[depth], from, bytes);
	return walk->frames[depth];
}

static enum status walk_columns(struct walk *walk, struct str object, const struct place *from,
				size_t missing, size_t depth);

/* Goes on in an element, or with undefined in place of the elements of an empty array. */
static enum status
walk_element(struct walk *walk, const struct bson_value *element, uint32_t columns,
	     const struct place *from, size_t missing, size_t depth)
{
	struct place *places = frame_copy(walk, depth, from);

	if (!places)
		return STATUS_LIMIT;
	for (size_t i = 0; i < walk->def->column_count; i++) {
		if (!(columns & (1u << i)) || places[i].state != PLACE_GOES ||
		    places[i].at < walk->def->columns[i].path_count)
			continue;
		places[i].state = PLACE_ENDED;
		places[i].value = *element;
	}
	return walk_columns(walk, element->type == BSON_DOCUMENT ? bson_text(element) : BSON_EMPTY,
			    places, missing, depth + 1);
}

/* Calls itself as often as paths have names, at most: each array takes one. */
static enum status
walk_columns(struct walk *walk, struct str object, const struct place *from, size_t missing,
	     size_t depth)
{
	struct place *places = frame_copy(walk, depth, from);
	struct bson_value array;
	struct bson_element e;
	struct bson_iter i;
	uint32_t columns;

	if (!places)
		return STATUS_LIMIT;
	TRY(index_count(walk->w, 1));
	TRY(walk_object(walk, object, places, &missing, &columns, &array));
	if (!columns)
		return make_entry(walk, places, missing);
	if (bson_is_empty(bson_text(&array)))
		return walk_element(walk, &(struct bson_value){ .type = BSON_UNDEFINED }, columns,
				    places, missing, depth + 1);
	place_by_position(walk, bson_text(&array), columns, places);
	for (bson_iter_begin(&i, bson_text(&array)); bson_iter_read(&i, &e);)
		TRY(walk_element(walk, &e.value, columns, places, missing, depth + 1));
	return STATUS_OK;
}

static int
compare_pairs(const void *a, const void *b)
{
	const struct kv_pair *x = a, *y = b;
	int order = str_cmp(x->key, y->key);

	return order ? order : str_cmp(x->value, y->value);
}

/* In key order, each key once: 1 and 1.0 in one array are one entry. */
static void
sort_pairs(struct index_pairs *pairs)
{
	size_t kept = 0;

	if (pairs->count < 2)
		return;
	qsort(pairs->pairs, pairs->count, sizeof(*pairs->pairs), compare_pairs);
	for (size_t i = 0; i < pairs->count; i++)
		if (i == 0 || !str_eq(pairs->pairs[i].key, pairs->pairs[kept - 1].key))
			pairs->pairs[kept++] = pairs->pairs[i];
	pairs->count = kept;
}

enum status
index_bson_entries_make(const struct catalog_db *db, const struct index_def *def,
			const struct index_source *source, struct index_work *w,
			struct index_pairs *ret, struct index_refusal *ret_refusal)
{
	struct place places[INDEX_COLUMNS] = { 0 };
	struct walk walk = {
		.db = db,
		.def = def,
		.source = source,
		.w = w,
		.pairs = ret,
		.refusal = ret_refusal,
	};
	enum status status;
	bool matches;

	assert(source->bson.ptr && def->column_count <= INDEX_COLUMNS);
	*ret = (struct index_pairs){ 0 };
	TRY(index_count_bytes(w, source->bson.len));
	TRY(index_source_matches(source, def, w, &matches));
	if (!matches)
		return STATUS_OK;
	walk.key = CATALOG_KEY_INIT;
	walk.value = BUF_INIT(KV_LIMIT_VALUE_BYTES);
	walk.raw = BUF_INIT(RAW_BYTES);
	status = walk_columns(&walk, source->bson, places, 0, 0);
	buf_release(&walk.key);
	buf_release(&walk.value);
	buf_release(&walk.raw);
	sort_pairs(ret);
	return status;
}

/* ---- Reading ---- */

bool
index_bson_values(struct str value, struct str *ret)
{
	struct tuple_reader r = tuple_reader(value);
	uint64_t format, flags;

	*ret = STR("");
	if (tuple_next_u64(&r, &format) != STATUS_OK || format != INDEX_ENTRY_FORMAT ||
	    tuple_next_u64(&r, &flags) != STATUS_OK || !(flags & INDEX_ENTRY_BSON) ||
	    bson_length(r.rest) != r.rest.len)
		return false;
	*ret = r.rest;
	return true;
}

/* ---- Ranges ---- */

/* As range_put_end() of range.c. */
static enum status
put_end(struct buf *key, const struct index_def *def, size_t column, const struct bson_value *bound,
	bool exclusive, bool upper, struct buf *raw, bool *ret_cut)
{
	bool cut = false;

	assert(def->hashed != column + 1);
	TRY(put_component(key, def, column, bound, raw, &cut));
	*ret_cut = *ret_cut || cut;
	if ((exclusive && !cut) != upper)
		buf_append_byte(key, CATALOG_KEY_LAST);
	return buf_status(key);
}

static enum status
range_put(const struct index_def *def, const struct index_bson_interval *interval,
	  struct buf *begin, struct buf *end, struct buf *raw, bool *ret_cut)
{
	const struct bson_value *lower = interval->low, *upper = interval->high;
	bool lower_exclusive = interval->low_exclusive, upper_exclusive = interval->high_exclusive;
	size_t column = interval->equal_count;

	for (size_t i = 0; i < column; i++)
		TRY(put_component(begin, def, i, &interval->equal[i], raw, ret_cut));
	buf_append_str(end, buf_str(begin));
	if ((lower || upper) && def->columns[column].descending) {
		lower = interval->high;
		upper = interval->low;
		lower_exclusive = interval->high_exclusive;
		upper_exclusive = interval->low_exclusive;
	}
	if (lower)
		TRY(put_end(begin, def, column, lower, lower_exclusive, false, raw, ret_cut));
	if (upper)
		return put_end(end, def, column, upper, upper_exclusive, true, raw, ret_cut);
	buf_append_byte(end, CATALOG_KEY_LAST);
	return buf_status(end);
}

enum status
index_bson_range_make(const struct catalog_db *db, const struct index_def *def,
		      const struct index_bson_interval *interval, struct index_work *w,
		      struct index_range *ret)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf raw = BUF_INIT(RAW_BYTES);
	size_t column = interval->equal_count;

	assert(def->flags & INDEX_BSON && column <= def->column_count);
	assert((!interval->low && !interval->high) || column < def->column_count);
	index_key_entries(&begin, db, def->number);
	ret->cut = false;
	TRY(range_put(def, interval, &begin, &end, &raw, &ret->cut));
	TRY(catalog_key_status(&begin));
	TRY(catalog_key_status(&end));
	ret->begin = arena_dup(w->arena, buf_str(&begin));
	ret->end = arena_dup(w->arena, buf_str(&end));
	return ret->begin.ptr && ret->end.ptr ? STATUS_OK : STATUS_LIMIT;
}

enum status
index_bson_entry_is_first(const struct catalog_db *db, const struct index_def *def,
			  const struct index_source *source, const struct index_range *ranges,
			  size_t count, bool reverse, struct str key, struct index_work *w,
			  bool *ret)
{
	AUTO(buf_release) struct buf prefix = CATALOG_KEY_INIT;
	struct index_refusal refusal;
	struct index_pairs pairs;
	size_t range = 0;

	*ret = true;
	if (!index_def_arrays(def))
		return STATUS_OK;
	index_key_entries(&prefix, db, def->number);
	TRY(catalog_key_status(&prefix));
	TRY(index_bson_entries_make(db, def, source, w, &pairs, &refusal));
	for (size_t i = 0; i < pairs.count; i++) {
		struct str at = pairs.pairs[reverse ? pairs.count - 1 - i : i].key;

		/* Ranges are in the order of their keys, whichever way they are read. */
		while (range < count) {
			const struct index_range *r = &ranges[reverse ? count - 1 - range : range];

			if (reverse ? str_cmp(at, r->begin) >= 0 : str_cmp(at, r->end) < 0)
				break;
			range++;
		}
		if (range == count)
			break;
		if (str_cmp(at, ranges[reverse ? count - 1 - range : range].begin) < 0 ||
		    str_cmp(at, ranges[reverse ? count - 1 - range : range].end) >= 0)
			continue;
		*ret = str_eq(str_skip(at, prefix.len), key);
		return STATUS_OK;
	}
	return STATUS_OK;
}
