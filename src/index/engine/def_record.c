/* The record of a definition, put and parsed. */
#include "catalog/format.h"
#include "catalog/keys.h"
#include "index/engine/entry.h"

/* Older fronds, whose form knew no longer paths, are not to take them for damage. */
static bool
has_longer_paths(const struct index_def *def)
{
	size_t most = def->form->path_names;

	for (size_t i = 0; most && i < def->column_count; i++)
		if (def->columns[i].path_count > most)
			return true;
	return false;
}

unsigned
index_def_format(const struct index_def *def)
{
	if (def->carried)
		return INDEX_FORMAT;
	if (has_longer_paths(def))
		return INDEX_FORMAT_PATHS;
	return def->collation.len ? INDEX_FORMAT_ORDERED : def->form->format;
}

size_t
index_def_put(struct buf *value, const struct index_def *def)
{
	size_t offset;

	tuple_put_u64(value, index_def_format(def));
	tuple_put_u64(value, def->state);
	tuple_put_u64(value, def->flags);
	tuple_put_u64(value, def->order);
	tuple_put_str(value, def->name);
	tuple_put_str(value, def->owner);
	tuple_put_str(value, def->collator);
	tuple_put_u64(value, def->created.bytes[0]);
	offset = tuple_put_versionstamp(value, def->created.bytes + 1);
	tuple_open(value);
	for (size_t i = 0; i < def->column_count + def->carried; i++) {
		const struct index_column *column = &def->columns[i];

		tuple_open(value);
		tuple_put_bool(value, column->descending);
		for (size_t j = 0; j < column->path_count; j++)
			tuple_put_str(value, column->path[j]);
		tuple_close(value);
	}
	tuple_close(value);
	if (def->filter.ptr)
		tuple_put_str(value, def->filter);
	else
		tuple_put_null(value);
	tuple_put_str(value, def->failure);
	if (index_def_format(def) != INDEX_FORMAT_LEAST) {
		tuple_put_str(value, def->spec);
		tuple_put_u64(value, def->hashed);
		tuple_put_u64(value, def->many);
		if (def->collation.len)
			tuple_put_bytes(value, def->collation);
		if (def->carried)
			tuple_put_u64(value, def->carried);
	}
	return offset;
}

static enum status
def_parse_column(struct tuple_reader r, struct arena *arena, struct index_column *ret)
{
	struct tuple_reader count = r;
	struct tuple_elem e;
	struct str *path;
	size_t names = 0;
	enum status status;

	TRY(tuple_next_bool(&r, &ret->descending));
	TRY(tuple_next_bool(&count, &ret->descending));
	while ((status = tuple_next(&count, &e)) == STATUS_OK)
		names++;
	if (status != STATUS_NOT_FOUND || names == 0 || names > INDEX_PATH_NAMES)
		return STATUS_CORRUPT;
	path = arena_alloc(arena, names * sizeof(*path));
	if (!path)
		return STATUS_LIMIT;
	for (size_t i = 0; i < names; i++)
		TRY(catalog_next_text(&r, TUPLE_STRING, arena, true, &path[i]));
	ret->path = path;
	ret->path_count = names;
	return STATUS_OK;
}

static enum status
def_parse_columns(struct tuple_reader r, struct arena *arena, struct index_def *ret)
{
	struct index_column *columns = NULL;
	size_t count = 0, cap = 0;

	while (r.rest.len) {
		struct tuple_reader column;

		TRY(tuple_next_nested(&r, &column));
		if (count == INDEX_COLUMNS)
			return STATUS_CORRUPT;
		TRY(catalog_array_grow(arena, (void **)&columns, sizeof(*columns), count, &cap));
		TRY(def_parse_column(column, arena, &columns[count]));
		count++;
	}
	if (count == 0)
		return STATUS_CORRUPT;
	ret->columns = columns;
	ret->column_count = count;
	return STATUS_OK;
}

static enum status
def_parse_stamp(struct tuple_reader *r, struct catalog_seq *ret)
{
	const uint8_t *stamp;
	uint64_t incarnation;

	TRY(tuple_next_u64(r, &incarnation));
	TRY(tuple_next_versionstamp(r, &stamp));
	if (incarnation > UINT8_MAX)
		return STATUS_CORRUPT;
	ret->bytes[0] = (uint8_t)incarnation;
	memcpy(ret->bytes + 1, stamp, KV_VERSIONSTAMP_BYTES);
	return STATUS_OK;
}

/* Opening and drawing a definition take its filter, spec and collation for checked ones. */
static enum status
def_check_stored(const struct index_form *form, struct str stored)
{
	return !form->is_whole || form->is_whole(stored) ? STATUS_OK : STATUS_CORRUPT;
}

static enum status
def_parse_filter(struct tuple_reader *r, struct arena *arena, struct index_def *ret)
{
	struct tuple_reader peek = *r;
	struct tuple_elem e;

	TRY(tuple_next_elem(&peek, &e));
	if (e.kind == TUPLE_NULL) {
		*r = peek;
		return STATUS_OK;
	}
	TRY(catalog_next_text(r, TUPLE_STRING, arena, true, &ret->filter));
	return def_check_stored(ret->form, ret->filter);
}

static enum status
def_parse_collation(struct tuple_reader *r, struct arena *arena, struct index_def *ret)
{
	TRY(catalog_next_text(r, TUPLE_BYTES, arena, true, &ret->collation));
	if (!ret->collation.len || ret->collation.len > ret->form->collation_bytes)
		return STATUS_CORRUPT;
	return def_check_stored(ret->form, ret->collation);
}

/* The last columns are carried, and one at least is not. */
static enum status
def_parse_carried(struct tuple_reader *r, struct index_def *ret)
{
	uint64_t carried;

	TRY(tuple_next_u64(r, &carried));
	if (!(ret->form->entry_flags & INDEX_ENTRY_CARRIES) || carried >= ret->column_count)
		return STATUS_CORRUPT;
	ret->column_count -= carried;
	ret->carried = (uint32_t)carried;
	return STATUS_OK;
}

/* What INDEX_FORMAT_LEAST does not have. */
static enum status
def_parse_more(struct tuple_reader *r, struct arena *arena, uint64_t format, struct index_def *ret)
{
	uint64_t hashed, many;

	TRY(catalog_next_text(r, TUPLE_STRING, arena, true, &ret->spec));
	if (ret->spec.len)
		TRY(def_check_stored(ret->form, ret->spec));
	TRY(tuple_next_u64(r, &hashed));
	TRY(tuple_next_u64(r, &many));
	if (hashed > ret->column_count)
		return STATUS_CORRUPT;
	ret->hashed = (uint32_t)hashed;
	ret->many = many;
	if (format == INDEX_FORMAT_ORDERED)
		return def_parse_collation(r, arena, ret);
	return format == INDEX_FORMAT ? def_parse_carried(r, ret) : STATUS_OK;
}

enum status
index_def_parse(const struct index_form *form, struct str value, struct arena *arena,
		struct index_def *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	struct index_def def = { .form = form };
	struct tuple_reader columns;
	uint64_t format, state, flags, order;

	TRY(catalog_format_next(&r, "definition of an index", INDEX_FORMAT, &format, err));
	if (tuple_next_u64(&r, &state) != STATUS_OK || state < INDEX_BUILDING ||
	    state > INDEX_STALE || tuple_next_u64(&r, &flags) != STATUS_OK ||
	    (flags & ~(uint64_t)INDEX_FLAGS) || (flags & INDEX_FORMS) != form->flag ||
	    tuple_next_u64(&r, &order) != STATUS_OK || order > DOC_KEY_TYPED)
		return STATUS_CORRUPT;
	def.state = (enum index_state)state;
	def.flags = (uint32_t)flags;
	def.order = (enum doc_key_order)order;
	TRY(catalog_next_text(&r, TUPLE_STRING, arena, true, &def.name));
	TRY(catalog_next_text(&r, TUPLE_STRING, arena, true, &def.owner));
	TRY(catalog_next_text(&r, TUPLE_STRING, arena, true, &def.collator));
	TRY(def_parse_stamp(&r, &def.created));
	TRY(tuple_next_nested(&r, &columns));
	TRY(def_parse_columns(columns, arena, &def));
	TRY(def_parse_filter(&r, arena, &def));
	TRY(catalog_next_text(&r, TUPLE_STRING, arena, true, &def.failure));
	if (format != INDEX_FORMAT_LEAST)
		TRY(def_parse_more(&r, arena, format, &def));
	if (r.rest.len || format != index_def_format(&def))
		return STATUS_CORRUPT;
	*ret = def;
	return STATUS_OK;
}
