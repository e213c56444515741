#include "index/view/design.h"

#include <openssl/evp.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/quote.h"
#include "doc/json_value.h"
#include "kv/tuple.h"
#include "loop/sort.h"

enum {
	SIGNED_BYTES = 64 * 1024 * 1024, /* of what the signature is of */
	ROWS_VERSION = 2, /* of what rows emits become: another one builds views anew */
};

/* What the design document has, while it is read. */
struct reading {
	struct arena *arena;
	struct err *err;
	struct view_design *design;
	struct str lib; /* JSON text; empty: none */
	/* Of each view: its sources; ptr NULL: no reduce. */
	struct str *maps;
	struct str *reduces;
	enum view_collation *collations;
};

static int
view_cmp(const void *a, const void *b)
{
	const struct view_view *x = a, *y = b;

	return str_cmp(x->name, y->name);
}

const struct view_view *
view_design_find(const struct view_design *design, struct str name)
{
	const struct view_view key = { .name = name };

	if (!design->view_count)
		return NULL;
	return bsearch(&key, design->views, design->view_count, sizeof(key), view_cmp);
}

const struct view_reduce *
view_design_reduce(const struct view_design *design, const struct view_view *view)
{
	return view->reduce == VIEW_NO_REDUCE ? NULL
					      : &design->maps[view->map].reduces[view->reduce];
}

/* ---- Reduces ---- */

/* The N of _top_N, as CouchDB reads numbers: a sign and leading zeros may be there. */
static enum status
reduce_number(struct str text, unsigned *ret, struct err *err)
{
	bool negative = str_starts_with(text, STR("-"));
	unsigned n = 0;

	if (negative || str_starts_with(text, STR("+")))
		text = str_skip(text, 1);
	if (text.len == 0)
		return err_set(err, STATUS_INVALID, "invalid rank reducer");
	for (size_t i = 0; i < text.len; i++) {
		if (text.ptr[i] < '0' || text.ptr[i] > '9')
			return err_set(err, STATUS_INVALID, "invalid rank reducer");
		if (n <= VIEW_TOP_MOST)
			n = 10 * n + (unsigned)(text.ptr[i] - '0');
	}
	if (negative || n < 1 || n > VIEW_TOP_MOST)
		return err_set(err, STATUS_INVALID, "rank value must be between 1 and %d",
			       VIEW_TOP_MOST);
	*ret = n;
	return STATUS_OK;
}

enum status
view_reduce_parse(struct str source, struct view_reduce *ret, struct err *err)
{
	static const struct {
		const char *name;
		enum view_reducer kind;
	} builtin[] = {
		{ "_sum", VIEW_REDUCE_SUM },     { "_count", VIEW_REDUCE_COUNT },
		{ "_stats", VIEW_REDUCE_STATS }, { "_approx_count_distinct", VIEW_REDUCE_DISTINCT },
		{ "_first", VIEW_REDUCE_FIRST }, { "_last", VIEW_REDUCE_LAST },
		{ "_top_", VIEW_REDUCE_TOP },    { "_bottom_", VIEW_REDUCE_BOTTOM },
	};

	ret->source = source;
	ret->kind = VIEW_REDUCE_FUNCTION;
	if (!str_starts_with(source, STR("_")))
		return STATUS_OK;
	for (size_t i = 0; i < sizeof(builtin) / sizeof(builtin[0]); i++) {
		struct str name = str_from_cstr(builtin[i].name);

		if (!str_starts_with(source, name))
			continue;
		ret->kind = builtin[i].kind;
		if (ret->kind == VIEW_REDUCE_TOP || ret->kind == VIEW_REDUCE_BOTTOM)
			return reduce_number(str_skip(source, name.len), &ret->n, err);
		return STATUS_OK;
	}
	return err_set(err, STATUS_INVALID, "`%s` is not a supported reduce function.",
		       QUOTE_SHOW(source));
}

/* ---- What the document says ---- */

static enum status
read_view_options(struct reading *r, const struct json_value *options, enum view_collation *ret)
{
	const struct json_value *value;
	struct json_member *members;
	size_t count;

	*ret = VIEW_COLLATION_DEFAULT;
	if (!options || options->kind != JSON_OBJECT_BEGIN)
		return STATUS_OK;
	TRY(json_value_members(options, r->arena, &members, &count, r->err));
	value = json_value_find(members, count, "collation");
	if (!value || (value->kind == JSON_STRING && str_eq(value->string, STR("default"))))
		return STATUS_OK;
	*ret = VIEW_COLLATION_RAW;
	if (value->kind == JSON_STRING && str_eq(value->string, STR("raw")))
		return STATUS_OK;
	return err_set(r->err, STATUS_INVALID,
		       "`options.collation` of a view is \"default\" or \"raw\".");
}

static enum status
read_view(struct reading *r, const struct json_member *member)
{
	struct view_design *d = r->design;
	struct json_member *members;
	const struct json_value *map, *reduce;
	size_t count;

	if (str_eq(member->name, STR("lib"))) {
		r->lib = member->value.text;
		return STATUS_OK;
	}
	if (member->value.kind != JSON_OBJECT_BEGIN)
		return STATUS_OK;
	TRY(json_value_members(&member->value, r->arena, &members, &count, r->err));
	map = json_value_find(members, count, "map");
	reduce = json_value_find(members, count, "reduce");
	if (!map || map->kind != JSON_STRING)
		return STATUS_OK;
	if (d->view_count == VIEW_VIEWS_MOST)
		return err_set(r->err, STATUS_LIMIT, "A design document has more than %d views.",
			       VIEW_VIEWS_MOST);
	d->views[d->view_count] = (struct view_view){ member->name, 0, VIEW_NO_REDUCE };
	TRY(read_view_options(r, json_value_find(members, count, "options"),
			      &r->collations[d->view_count]));
	r->maps[d->view_count] = map->string;
	r->reduces[d->view_count] = reduce && reduce->kind == JSON_STRING ? reduce->string
									  : (struct str){ 0 };
	/* The sources go along when the views are sorted: their place is noted here. */
	d->views[d->view_count].map = d->view_count;
	d->view_count++;
	return STATUS_OK;
}

static bool
member_is_true(const struct json_member *members, size_t count, const char *name)
{
	const struct json_value *value = json_value_find(members, count, name);

	return value && value->kind == JSON_TRUE;
}

static enum status
read_options(struct reading *r, const struct json_value *options, bool partitioned_db)
{
	struct view_design *d = r->design;
	const struct json_value *value;
	struct json_member *members;
	size_t count;

	d->partitioned = partitioned_db;
	if (!options || options->kind != JSON_OBJECT_BEGIN)
		return STATUS_OK;
	TRY(json_value_members(options, r->arena, &members, &count, r->err));
	d->include_design = member_is_true(members, count, "include_design");
	d->local_seq = member_is_true(members, count, "local_seq");
	value = json_value_find(members, count, "partitioned");
	if (value && value->kind == JSON_FALSE)
		d->partitioned = false;
	value = json_value_find(members, count, "collation");
	if (!value || (value->kind == JSON_STRING && str_eq(value->string, STR("default"))))
		return STATUS_OK;
	return err_set(r->err, STATUS_INVALID,
		       "`collation` is an option of a view, and not of a design document.");
}

/* ---- Equal maps are one ---- */

static enum status
map_add_reduce(struct reading *r, struct view_map *map, struct view_view *view, struct str source)
{
	struct view_reduce *reduce = &map->reduces[map->reduce_count];

	for (size_t i = 0; i < map->reduce_count; i++) {
		if (!str_eq(map->reduces[i].source, source))
			continue;
		view->reduce = (int)i;
		return STATUS_OK;
	}
	*reduce = (struct view_reduce){ .name = view->name };
	TRY(view_reduce_parse(source, reduce, r->err));
	view->reduce = (int)map->reduce_count++;
	return STATUS_OK;
}

static enum status
design_group(struct reading *r)
{
	struct view_design *d = r->design;

	TRY(sort_items_by(d->views, d->view_count, sizeof(*d->views), view_cmp, r->arena));
	for (size_t i = 0; i < d->view_count; i++) {
		struct view_view *view = &d->views[i];
		struct str source = r->maps[view->map], reduce = r->reduces[view->map];
		enum view_collation collation = r->collations[view->map];
		size_t at = 0;

		while (at < d->map_count &&
		       (!str_eq(d->maps[at].source, source) || d->maps[at].collation != collation))
			at++;
		view->map = at;
		if (at == d->map_count) {
			struct view_map *map = &d->maps[d->map_count++];

			*map = (struct view_map){ .name = view->name,
						  .source = source,
						  .collation = collation };
			map->reduces = arena_zalloc(r->arena,
						    d->view_count * sizeof(*map->reduces));
			if (!map->reduces)
				return STATUS_LIMIT;
		}
		if (reduce.ptr)
			TRY(map_add_reduce(r, &d->maps[at], view, reduce));
	}
	return STATUS_OK;
}

/* Each part with its length in front of it, so that no two designs have the same bytes. */
static enum status
design_sign(struct reading *r)
{
	AUTO(buf_release) struct buf text = BUF_INIT(SIGNED_BYTES);
	struct view_design *d = r->design;
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned len = 0;

	tuple_put_u64(&text, ROWS_VERSION);
	tuple_put_str(&text, d->language);
	tuple_put_str(&text, r->lib);
	tuple_put_bool(&text, d->include_design);
	tuple_put_bool(&text, d->local_seq);
	tuple_put_bool(&text, d->partitioned);
	for (size_t i = 0; i < d->view_count; i++) {
		const struct view_reduce *reduce = view_design_reduce(d, &d->views[i]);

		tuple_put_str(&text, d->views[i].name);
		tuple_put_str(&text, d->maps[d->views[i].map].source);
		/*
		 * A default collation adds nothing, so that existing groups keep their signatures.
		 */
		if (d->maps[d->views[i].map].collation != VIEW_COLLATION_DEFAULT)
			tuple_put_u64(&text, d->maps[d->views[i].map].collation);
		if (reduce)
			tuple_put_str(&text, reduce->source);
		else
			tuple_put_null(&text);
	}
	TRY(buf_status(&text));
	if (EVP_Digest(text.ptr, text.len, digest, &len, EVP_sha256(), NULL) != 1 ||
	    len < VIEW_SIGNATURE_BYTES)
		return STATUS_NOMEM;
	memcpy(d->signature, digest, VIEW_SIGNATURE_BYTES);
	return STATUS_OK;
}

static enum status
read_design(struct reading *r, struct str text, bool partitioned_db)
{
	struct view_design *d = r->design;
	const struct json_value *value;
	struct json_member *members, *views = NULL;
	size_t count, view_count = 0;

	TRY(json_read_members(text, r->arena, &members, &count, r->err));
	value = json_value_find(members, count, "language");
	d->language = value && value->kind == JSON_STRING ? value->string : STR("javascript");
	value = json_value_find(members, count, "autoupdate");
	d->autoupdate = !value || value->kind != JSON_FALSE;
	value = json_value_find(members, count, "views");
	if (value)
		TRY(json_value_members(value, r->arena, &views, &view_count, r->err));
	TRY(read_options(r, json_value_find(members, count, "options"), partitioned_db));
	d->views = arena_zalloc(r->arena, VIEW_VIEWS_MOST * sizeof(*d->views));
	d->maps = arena_zalloc(r->arena, VIEW_VIEWS_MOST * sizeof(*d->maps));
	r->maps = arena_zalloc(r->arena, VIEW_VIEWS_MOST * sizeof(*r->maps));
	r->reduces = arena_zalloc(r->arena, VIEW_VIEWS_MOST * sizeof(*r->reduces));
	r->collations = arena_zalloc(r->arena, VIEW_VIEWS_MOST * sizeof(*r->collations));
	if (!d->views || !d->maps || !r->maps || !r->reduces || !r->collations)
		return STATUS_LIMIT;
	for (size_t i = 0; i < view_count; i++)
		TRY(read_view(r, &views[i]));
	return STATUS_OK;
}

enum status
view_design_parse(struct str text, bool partitioned_db, struct arena *arena,
		  struct view_design *ret, struct err *err)
{
	struct reading r = { .arena = arena, .err = err, .design = ret };

	*ret = (struct view_design){ .text = text };
	TRY(read_design(&r, text, partitioned_db));
	TRY(design_group(&r));
	return design_sign(&r);
}
