/*
 * Entries of BSON documents. Arrays are gone through as MongoDB does: a document has an entry for
 * each element of an array that lies at a column's path, or on the way to it. Of several columns
 * only those may lead into an array that lead into the same one.
 */
#include <assert.h>
#include <openssl/sha.h>

#include "index/bson/entry.h"
#include "index/bson/form.h"
#include "index/engine/component.h"

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

	/* What is cut off does not count: values that differ only there share a hash. */
	TRY(bson_key_put(&raw, v, HASHED_BYTES, index_bson_texts(def), &cut));
	SHA256((const unsigned char *)raw.ptr, raw.len, digest);
	*ret = (struct bson_value){ .type = BSON_INT64 };
	memcpy(&ret->as_n, digest, sizeof(int64_t));
	return STATUS_OK;
}

static enum status
put_component(struct buf *key, const struct index_def *def, size_t column,
	      const struct bson_value *v, struct buf *raw, bool *ret_cut)
{
	struct bson_value hash;

	if (def->hashed == column + 1) {
		TRY(hash_value(def, v, &hash));
		v = &hash;
	}
	buf_clear(raw);
	/* A byte more than its share tells that it is cut. */
	TRY(bson_key_put(raw, v, index_component_share(def) + 1, index_bson_texts(def), ret_cut));
	return index_component_finish(key, def, column, raw, ret_cut);
}

enum status
index_bson_component_put(struct buf *key, const struct index_def *def, size_t column,
			 const void *value, struct index_work *w, bool *ret_cut)
{
	AUTO(buf_release) struct buf raw = BUF_INIT(RAW_BYTES);

	(void)w;
	return put_component(key, def, column, value, &raw, ret_cut);
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
	struct index_making *m;
	const struct index_def *def;
	struct place *frames[FRAMES]; /* by depth; NULL: not needed yet */
	struct buf raw;
};

static enum status
walk_refuse(struct walk *walk, bool hashed, size_t a, size_t b)
{
	walk->m->pairs->refusal = (struct index_refusal){ walk->def, hashed, { a, b } };
	return STATUS_UNSUPPORTED;
}

/* The value of an entry: what the key does not tell. Values that are too long are left out. */
static void
make_value(struct index_making *m, const struct place *places, bool cut)
{
	unsigned flags = cut ? INDEX_ENTRY_CUT : 0u;
	struct bson_builder b;

	if (m->def->flags & INDEX_COVERING) {
		index_making_flags(m, flags | INDEX_ENTRY_BSON);
		bson_builder_init(&b, &m->value);
		bson_begin(&b);
		for (size_t i = 0; i < m->def->column_count; i++)
			bson_put(&b, places[i].missing ? INDEX_MISSING : STR(""), &places[i].value);
		bson_end(&b);
		if (buf_status(&m->value) != STATUS_LIMIT && m->value.len <= INDEX_PAYLOAD_BYTES)
			return;
	}
	index_making_flags(m, flags);
}

/* All paths have ended: an entry. */
static enum status
make_entry(struct walk *walk, const struct place *places, size_t missing)
{
	const struct index_def *def = walk->def;
	struct index_making *m = walk->m;
	bool cut = false;

	if ((def->flags & INDEX_SPARSE) && missing == def->column_count)
		return STATUS_OK;
	index_key_entries(&m->key, m->db, def->number);
	for (size_t i = 0; i < def->column_count; i++) {
		bool one_cut = false;

		TRY(put_component(&m->key, def, i, &places[i].value, &walk->raw, &one_cut));
		if (one_cut)
			m->pairs->many |= UINT64_C(1) << (INDEX_CUTS_SHIFT + i);
		cut = cut || one_cut;
	}
	(void)index_key_put_id(&m->key, def->form, m->source->id);
	make_value(m, places, cut);
	return index_making_add(m);
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

		/* It has its value already, from an array or an object further out. */
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
			return walk_refuse(walk, false, i, first);
		} else {
			if (!*ret_columns)
				first = i;
			*ret_columns |= 1u << i;
			*ret_array = v;
		}
	}
	walk->m->pairs->many |= *ret_columns;
	if (walk->def->hashed && (*ret_columns & (1u << (walk->def->hashed - 1))))
		return walk_refuse(walk, true, walk->def->hashed - 1, 0);
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
		walk->frames[depth] = arena_alloc(walk->m->w->arena, bytes);
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
	/* `from` is the frame above: each element begins with what held before the array. */
	assert(columns && places != from);
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
	TRY(index_count(walk->m->w, 1));
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

static enum status
filter_matches(const struct index_making *m, bool *ret)
{
	const struct index_bson *opened = m->def->opened;
	struct mql q = { .arena = m->w->arena, .texts = index_bson_texts(m->def) };

	*ret = true;
	if (!opened || !opened->match)
		return STATUS_OK;
	return mql_match_run(opened->match, &q, m->source->body, ret, NULL);
}

enum status
index_bson_entries(struct index_making *m)
{
	struct place places[INDEX_COLUMNS] = { 0 };
	struct walk walk = { .m = m, .def = m->def, .raw = BUF_INIT(RAW_BYTES) };
	enum status status;
	bool matches;

	assert(m->source->body.ptr && m->def->column_count <= INDEX_COLUMNS);
	TRY(index_count_bytes(m->w, m->source->body.len));
	TRY(filter_matches(m, &matches));
	if (!matches)
		return STATUS_OK;
	status = walk_columns(&walk, m->source->body, places, 0, 0);
	buf_release(&walk.raw);
	return status;
}

/* ---- Reading ---- */

/* True if the bytes are as long as the document that they begin with says. */
static bool
is_document(struct str bytes)
{
	return bytes.len && bson_length(bytes) == bytes.len;
}

enum status
index_bson_parse_values(const struct index_def *def, struct tuple_reader *r, uint64_t flags,
			struct arena *arena, struct index_entry *ret)
{
	(void)def;
	(void)arena;
	if (flags & INDEX_ENTRY_BSON ? !is_document(r->rest) : r->rest.len > 0)
		return STATUS_CORRUPT;
	ret->has_texts = false;
	ret->values = r->rest;
	return STATUS_OK;
}

bool
index_bson_values(struct str value, struct str *ret)
{
	struct tuple_reader r = tuple_reader(value);
	uint64_t format, flags;

	*ret = STR("");
	if (tuple_next_u64(&r, &format) != STATUS_OK || format != INDEX_ENTRY_FORMAT ||
	    tuple_next_u64(&r, &flags) != STATUS_OK || !(flags & INDEX_ENTRY_BSON) ||
	    !is_document(r.rest))
		return false;
	*ret = r.rest;
	return true;
}
