#include "index/engine/draw.h"

#include "bson/json.h"
#include "catalog/draw.h"
#include "doc/json.h"

enum {
	DRAW_ARENA_BYTES = 1024 * 1024, /* of a definition */
};

/* ---- Definitions ---- */

const char *
index_state_name(enum index_state state)
{
	switch (state) {
	case INDEX_BUILDING:
		return "building";
	case INDEX_READY:
		return "ready";
	case INDEX_FAILED:
		return "failed";
	case INDEX_DROPPED:
		return "dropped";
	case INDEX_STALE:
		return "stale";
	}
	return "unknown";
}

static void
draw_flags(uint32_t flags, struct buf *ret)
{
	static const struct {
		uint32_t flag;
		const char *name;
	} names[] = {
		{ INDEX_MULTIKEY, "multikey" },       { INDEX_UNIQUE, "unique" },
		{ INDEX_SPARSE, "sparse" },           { INDEX_COVERING, "covering" },
		{ INDEX_PARTITIONED, "partitioned" }, { INDEX_BSON, "BSON" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (flags & names[i].flag)
			buf_printf(ret, ", %s", names[i].name);
	}
}

static void
draw_column(const struct index_column *column, struct buf *ret)
{
	for (size_t k = 0; k < column->path_count; k++) {
		buf_append_cstr(ret, k ? " " : "");
		json_write_str(ret, column->path[k]);
	}
}

static void
draw_columns(const struct index_def *def, struct buf *ret)
{
	buf_append_cstr(ret, ", on [");
	for (size_t i = 0; i < def->column_count; i++) {
		buf_append_cstr(ret, i ? ", " : "");
		buf_append_cstr(ret, def->columns[i].descending ? "desc " : "");
		buf_append_cstr(ret, def->hashed == i + 1 ? "hashed " : "");
		draw_column(&def->columns[i], ret);
	}
	buf_append_byte(ret, ']');
}

/* The columns of which documents are known to have something, a bit for each. */
static void
draw_some_columns(const struct index_def *def, const char *what, uint32_t columns, struct buf *ret)
{
	const char *between = "";

	if (!columns)
		return;
	buf_printf(ret, ", %s [", what);
	for (size_t i = 0; i < def->column_count; i++) {
		if (!(columns & (1u << i)))
			continue;
		buf_append_cstr(ret, between);
		draw_column(&def->columns[i], ret);
		between = ", ";
	}
	buf_append_byte(ret, ']');
}

static void
draw_text(const char *name, struct str text, struct buf *ret)
{
	if (!text.len)
		return;
	buf_printf(ret, ", %s ", name);
	json_write_str(ret, text);
}

static void
draw_def(const struct index_def *def, struct buf *ret)
{
	buf_printf(ret, "(%u, %s, ", index_def_format(def), index_state_name(def->state));
	json_write_str(ret, def->name);
	if (def->owner.len) {
		buf_append_cstr(ret, " of ");
		json_write_str(ret, def->owner);
	}
	draw_columns(def, ret);
	draw_flags(def->flags, ret);
	draw_some_columns(def, "arrays at", index_def_arrays(def), ret);
	draw_some_columns(def, "cut values at", index_def_cuts(def), ret);
	if (def->filter.ptr) {
		buf_append_cstr(ret, ", where ");
		if (def->flags & INDEX_BSON)
			bson_json_write(ret, def->filter, BSON_JSON_RELAXED);
		else
			buf_append_str(ret, def->filter);
	}
	if (def->collation.len) {
		buf_append_cstr(ret, ", collation ");
		bson_json_write(ret, def->collation, BSON_JSON_RELAXED);
	}
	draw_text("ordered by", def->collator, ret);
	if (!(def->flags & INDEX_BSON)) {
		buf_append_cstr(ret, ", created ");
		buf_append_hex(ret, str_of(def->created.bytes, sizeof(def->created.bytes)));
	}
	draw_text("failed with", def->failure, ret);
	buf_append_byte(ret, ')');
}

bool
index_draw_def(struct str value, struct buf *ret)
{
	struct arena *arena = arena_new(DRAW_ARENA_BYTES);
	struct index_def def = { 0 };
	bool drawn = arena && index_def_parse(value, arena, &def, NULL) == STATUS_OK;

	if (drawn)
		draw_def(&def, ret);
	arena_free(arena);
	return drawn;
}

/* ---- Entries ---- */

/* The texts of the columns, each a string in the record and JSON as it is. */
static bool
draw_entry_texts(struct tuple_reader *r, struct buf *ret)
{
	struct tuple_elem e;
	enum status status;

	while ((status = tuple_next(r, &e)) == STATUS_OK) {
		if (e.kind == TUPLE_STRING) {
			buf_append_cstr(ret, ", ");
			buf_append_str(ret, e.raw);
		} else if (e.kind == TUPLE_NULL) {
			buf_append_cstr(ret, ", missing");
		} else {
			return false;
		}
	}
	return status == STATUS_NOT_FOUND;
}

bool
index_draw_entry(struct str value, struct buf *ret)
{
	struct tuple_reader r = tuple_reader(value);
	size_t at = ret->len;
	uint64_t format, flags;
	struct tuple_elem id;

	if (tuple_next_u64(&r, &format) != STATUS_OK || format != INDEX_ENTRY_FORMAT ||
	    tuple_next_u64(&r, &flags) != STATUS_OK || flags & ~(uint64_t)INDEX_ENTRY_FLAGS)
		return false;
	if (flags & INDEX_ENTRY_LONG_ID &&
	    (tuple_next(&r, &id) != STATUS_OK || id.kind != TUPLE_STRING))
		return false;
	buf_printf(ret, "(%d%s", INDEX_ENTRY_FORMAT, flags & INDEX_ENTRY_CUT ? ", cut" : "");
	if (!draw_entry_texts(&r, ret)) {
		ret->len = at;
		return false;
	}
	if (flags & INDEX_ENTRY_LONG_ID) {
		buf_append_cstr(ret, ", of ");
		json_write_str(ret, id.raw);
	}
	buf_append_byte(ret, ')');
	return true;
}

/* Draws a partition as text; in the key it is stored as bytes. */
static void
draw_partition(const struct tuple_elem *e, struct buf *ret)
{
	AUTO(buf_release) struct buf text = BUF_INIT(DRAW_ARENA_BYTES);

	tuple_unescape(e, &text);
	json_write_str(ret, buf_str(&text));
}

/*
 * Reads the texts of the columns from the value of an entry whose key ends in the id. False if it
 * has none.
 */
static bool
entry_read_texts(struct str value, struct str texts[INDEX_COLUMNS], size_t *ret_count)
{
	struct tuple_reader r = tuple_reader(value);
	uint64_t format, flags;
	struct tuple_elem e;

	*ret_count = 0;
	if (tuple_next_u64(&r, &format) != STATUS_OK || format != INDEX_ENTRY_FORMAT ||
	    tuple_next_u64(&r, &flags) != STATUS_OK || flags != INDEX_ENTRY_TEXTS)
		return false;
	while (tuple_next(&r, &e) == STATUS_OK) {
		if (*ret_count == INDEX_COLUMNS || (e.kind != TUPLE_STRING && e.kind != TUPLE_NULL))
			return false;
		texts[(*ret_count)++] = e.kind == TUPLE_STRING ? e.raw : STR("missing");
	}
	return *ret_count > 0;
}

bool
index_draw_entry_key(struct str tail, struct str value, struct buf *ret)
{
	struct str texts[INDEX_COLUMNS];
	struct tuple_elem elements[INDEX_COLUMNS + 2]; /* a partition, components, the id */
	struct tuple_reader r = tuple_reader(tail);
	size_t count, found = 0, partitions;
	uint64_t number;

	if (!entry_read_texts(value, texts, &count) || tuple_next_u64(&r, &number) != STATUS_OK)
		return false;
	while (found < count + 2 && tuple_next(&r, &elements[found]) == STATUS_OK)
		found++;
	if (r.rest.len || found <= count || elements[found - 1].kind != TUPLE_STRING)
		return false;
	partitions = found - count - 1;
	buf_printf(ret, "(%llu", (unsigned long long)number);
	if (partitions) {
		buf_append_cstr(ret, ", ");
		draw_partition(&elements[0], ret);
	}
	for (size_t i = 0; i < count; i++) {
		buf_append_cstr(ret, ", ");
		buf_append_str(ret, texts[i]);
	}
	buf_append_cstr(ret, ", ");
	catalog_draw_string(&elements[found - 1], ret);
	buf_append_byte(ret, ')');
	return true;
}
