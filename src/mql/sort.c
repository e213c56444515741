#include "mql/sort.h"

#include <math.h>

#include "mql/field_path.h"
#include "mql/mql_int.h"

struct sort_path {
	struct str path;
	bool descending;
};

struct mql_sort_by {
	size_t count;
	struct sort_path paths[];
};

struct mql_sort_key {
	struct bson_value values[1]; /* as many as there are paths */
};

/* ---- Compilation ---- */

static enum status
compile_direction(struct mql *q, const struct bson_element *e, bool *ret_descending)
{
	double d;

	if (e->value.type == BSON_DOCUMENT) {
		if (bson_find(bson_text(&e->value), STR("$meta"), NULL))
			return mql_refuse(q, STR("sorting by $meta"));
		return mql_fail(q, 17312,
				"$meta is the only expression supported by $sort right now");
	}
	if (!bson_is_number(&e->value))
		return mql_fail(q, 15974, "Illegal key in $sort specification: %s",
				mql_text(q, e->name, &e->value));
	d = trunc(bson_to_double(&e->value));
	if (d != 1 && d != -1)
		return mql_fail(q, 15975,
				"$sort key ordering must be 1 (for ascending) or -1 (for "
				"descending)");
	*ret_descending = d < 0;
	return STATUS_OK;
}

static enum status
compile_add(struct mql *q, struct mql_sort_by *s, const struct bson_element *e)
{
	struct sort_path *p = &s->paths[s->count];

	TRY(compile_direction(q, e, &p->descending));
	TRY(mql_field_path_check(q, e->name));
	for (size_t i = 0; i < s->count; i++)
		if (str_eq(s->paths[i].path, e->name))
			return mql_fail(q, 7472500,
					"$sort key must not contain duplicate keys (duplicate: "
					"'%.*s')",
					STR_ARG(e->name));
	p->path = e->name;
	s->count++;
	return STATUS_OK;
}

enum status
mql_sort_by_compile(struct mql *q, struct str spec, struct mql_sort_by **ret)
{
	size_t count = bson_count(spec);
	struct mql_sort_by *s;
	struct bson_element e;
	struct bson_iter i;

	if (!count)
		return mql_fail(q, 15976, "$sort stage must have at least one sort key");
	if (count > MQL_SORT_PATHS)
		return mql_fail(q, 13103, "too many compound keys");
	s = arena_alloc(q->arena, sizeof(*s) + count * sizeof(s->paths[0]));
	if (!s)
		return mql_full(q);
	s->count = 0;
	for (bson_iter_begin(&i, spec); bson_iter_read(&i, &e);)
		TRY(compile_add(q, s, &e));
	*ret = s;
	return STATUS_OK;
}

size_t
mql_sort_by_count(const struct mql_sort_by *s)
{
	return s->count;
}

struct str
mql_sort_by_path(const struct mql_sort_by *s, size_t i, bool *ret_descending)
{
	*ret_descending = s->paths[i].descending;
	return s->paths[i].path;
}

/* ---- Keys ---- */

/* Where the paths have got to: each either has its value, or goes on. */
struct walk {
	const struct mql_sort_by *by;
	struct mql *q;
	struct mql_sort_key *best;
	bool any; /* `best` is set */
};

struct walk_path {
	struct str rest; /* not yet gone; ptr NULL: the value is known */
	struct bson_value value;
	bool in_array; /* `value` is the array that the path has come to */
};

static int
compare_value(const struct mql_sort_by *s, size_t i, const struct bson_value *a,
	      const struct bson_value *b, const struct bson_texts *texts)
{
	int order = bson_compare_values(a, b, texts);

	return s->paths[i].descending ? -order : order;
}

/* The element of an array that a name counts. */
static bool
array_element(struct str array, struct str name, struct bson_value *ret)
{
	uint32_t position;

	return mql_is_position(name, &position) && bson_find(array, name, ret);
}

/* Goes along names until the path ends, its value is missing, or it comes to an array. */
static enum status
walk_path(struct walk_path *p, struct str document)
{
	struct bson_value v = BSON_OF_DOCUMENT(document);

	p->in_array = false;
	for (;;) {
		struct str rest = p->rest, name = str_cut(&rest, '.');
		bool last = !rest.len;

		TRY(step_count_bytes(bson_text(&v).len));
		if (v.type == BSON_ARRAY ? !array_element(bson_text(&v), name, &v)
					 : !bson_find(bson_text(&v), name, &v)) {
			if (v.type == BSON_ARRAY) {
				p->value = v;
				p->in_array = true;
				return STATUS_OK;
			}
			v = BSON_OF_NULL;
			last = true;
		}
		p->rest = last ? (struct str){ NULL, 0 } : rest;
		if (!last && !bson_is_container(&v)) {
			v = BSON_OF_NULL;
			p->rest = (struct str){ NULL, 0 };
		}
		if (!p->rest.ptr) {
			p->value = v;
			p->in_array = v.type == BSON_ARRAY;
			return STATUS_OK;
		}
	}
}

static void
walk_keep(struct walk *w, const struct walk_path *paths)
{
	if (w->any) {
		int order = 0;

		for (size_t i = 0; i < w->by->count && !order; i++)
			order = compare_value(w->by, i, &paths[i].value, &w->best->values[i],
					      w->q->texts);
		if (order >= 0)
			return;
	}
	w->any = true;
	for (size_t i = 0; i < w->by->count; i++)
		w->best->values[i] = paths[i].value;
}

static enum status walk_document(struct walk *w, struct walk_path *paths, uint32_t open,
				 struct str document);

/* Takes one element of the array that the paths of `in` have come to. */
static enum status
walk_element(struct walk *w, const struct walk_path *from, uint32_t in, const struct bson_value *v)
{
	struct walk_path *paths = arena_alloc(w->q->arena, w->by->count * sizeof(*paths));
	uint32_t open = 0;

	assert(in);
	if (!paths)
		return mql_full(w->q);
	memcpy(paths, from, w->by->count * sizeof(*paths));
	for (size_t i = 0; i < w->by->count; i++) {
		if (!(in >> i & 1))
			continue;
		if (!paths[i].rest.ptr)
			paths[i].value = *v;
		else
			open |= UINT32_C(1) << i;
	}
	return walk_document(w, paths, open, v->type == BSON_DOCUMENT ? bson_text(v) : BSON_EMPTY);
}

/* All paths of `open` go on in the document. */
static enum status
walk_document(struct walk *w, struct walk_path *paths, uint32_t open, struct str document)
{
	struct arena_mark mark = arena_mark(w->q->arena);
	const struct bson_value undefined = { .type = BSON_UNDEFINED };
	const char *array = NULL;
	struct str elements = BSON_EMPTY;
	struct bson_element e;
	struct bson_iter it;
	uint32_t in = 0;

	for (size_t i = 0; i < w->by->count; i++) {
		if (!(open >> i & 1))
			continue;
		TRY(walk_path(&paths[i], document));
		if (!paths[i].in_array)
			continue;
		if (array && array != bson_text(&paths[i].value).ptr)
			return mql_fail(w->q, MQL_BAD_VALUE,
					"cannot sort with keys that are parallel arrays");
		array = bson_text(&paths[i].value).ptr;
		elements = bson_text(&paths[i].value);
		in |= UINT32_C(1) << i;
	}
	if (!array) {
		walk_keep(w, paths);
		return STATUS_OK;
	}
	if (bson_is_empty(elements))
		return walk_element(w, paths, in, &undefined);
	for (bson_iter_begin(&it, elements); bson_iter_read(&it, &e);) {
		TRY(step_count(1));
		TRY(walk_element(w, paths, in, &e.value));
		arena_reset(w->q->arena, mark);
	}
	return STATUS_OK;
}

enum status
mql_sort_key_of(const struct mql_sort_by *s, struct mql *q, struct str doc,
		struct mql_sort_key **ret)
{
	struct walk w = { .by = s, .q = q };
	struct walk_path paths[MQL_SORT_PATHS];

	assert(s->count > 0 && s->count <= MQL_SORT_PATHS);
	w.best = arena_alloc(q->arena, s->count * sizeof(w.best->values[0]));
	if (!w.best)
		return mql_full(q);
	for (size_t i = 0; i < s->count; i++)
		paths[i] = (struct walk_path){ .rest = s->paths[i].path };
	TRY(walk_document(&w, paths, UINT32_MAX, doc));
	/* Also a document without any of the paths has a key, of nulls. */
	assert(w.any);
	*ret = w.best;
	return STATUS_OK;
}

int
mql_sort_key_compare(const struct mql_sort_by *s, const struct mql_sort_key *a,
		     const struct mql_sort_key *b, const struct bson_texts *texts)
{
	for (size_t i = 0; i < s->count; i++) {
		int order = compare_value(s, i, &a->values[i], &b->values[i], texts);

		if (order)
			return order;
	}
	return 0;
}

const struct bson_value *
mql_sort_key_value(const struct mql_sort_key *key, size_t i)
{
	return &key->values[i];
}
