#include "index/engine/draw.h"

#include <assert.h>

#include "catalog/draw.h"
#include "doc/json.h"

enum {
	DRAW_ARENA_BYTES = 1024 * 1024, /* of a definition */
};

/* ---- Definitions ---- */

const char *
index_state_name(enum index_state state)
{
	static const char *const names[] = {
		[INDEX_BUILDING] = "building", [INDEX_READY] = "ready", [INDEX_FAILED] = "failed",
		[INDEX_DROPPED] = "dropped",   [INDEX_STALE] = "stale",
	};

	assert(state >= INDEX_BUILDING && state <= INDEX_STALE);
	return names[state];
}

static void
draw_flags(uint32_t flags, struct buf *ret)
{
	static const struct {
		uint32_t flag;
		const char *name;
	} names[] = {
		{ INDEX_MULTIKEY, "multikey" },
		{ INDEX_UNIQUE, "unique" },
		{ INDEX_SPARSE, "sparse" },
		{ INDEX_COVERING, "covering" },
		{ INDEX_PARTITIONED, "partitioned" },
		{ INDEX_BSON, "BSON" },
		{ INDEX_TYPED, "typed" },
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
	for (size_t i = 0; i < def->carried; i++) {
		buf_append_cstr(ret, i ? ", " : ", with [");
		draw_column(&def->columns[def->column_count + i], ret);
	}
	if (def->carried)
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
		def->form->draw(ret, def->filter);
	}
	if (def->collation.len) {
		buf_append_cstr(ret, ", collation ");
		def->form->draw(ret, def->collation);
	}
	draw_text("ordered by", def->collator, ret);
	if (def->form->has_revisions) {
		buf_append_cstr(ret, ", created ");
		buf_append_hex(ret, str_of(def->created.bytes, sizeof(def->created.bytes)));
	}
	draw_text("failed with", def->failure, ret);
	buf_append_byte(ret, ')');
}

enum status
index_draw_def(const struct index_form *form, struct str value, struct buf *ret)
{
	struct arena *arena = catalog_draw_arena(DRAW_ARENA_BYTES, ret);
	struct index_def def = { 0 };
	enum status status = arena ? index_def_parse(form, value, arena, &def, NULL) : STATUS_NOMEM;

	if (status == STATUS_OK)
		draw_def(&def, ret);
	arena_free(arena);
	return status;
}
