/* Cells as `frond inspect` shows them: (0x1f03, 'user1', 10), msg_column_id, 2026-… -> 'hello' */
#include "catalog/draw.h"
#include "model/timed/rows/rows_int.h"

enum {
	DRAW_ARENA_BYTES = 1024 * 1024,
};

static enum status
draw_value(const struct timed_cell *cell, struct arena *arena, struct buf *ret)
{
	struct doc_scalar s;

	switch (cell->type) {
	case TIMED_INSERTED:
		buf_append_cstr(ret, "[NULL]");
		return STATUS_OK;
	case TIMED_HASH:
		buf_append_cstr(ret, "[Redis-Hash-Type]");
		return STATUS_OK;
	case TIMED_SET:
		buf_append_cstr(ret, "[Redis-Set-Type]");
		return STATUS_OK;
	case TIMED_LEAF:
	case TIMED_VALUE:
	case TIMED_ZSET:
	case TIMED_LIST:
	case TIMED_STREAM:
	case TIMED_JSON:
	case TIMED_TYPES:
		break;
	}
	TRY(timed_cell_scalar(cell, arena, &s));
	timed_draw_scalar(&s, ret);
	return STATUS_OK;
}

static enum status
draw_cell(const struct catalog_db *db, struct str tail, struct str value, struct arena *arena,
	  struct buf *ret)
{
	const struct timed_schema *schema = timed_schema_of(db);
	struct timed_place place;
	struct timed_cell cell;

	TRY(timed_place_parse(schema, tail, arena, &place));
	TRY(timed_cell_parse(value, &cell, NULL));
	timed_draw_place(schema, &place, ret);
	timed_draw_written(db, &cell, ret);
	return draw_value(&cell, arena, ret);
}

enum status
timed_rows_draw_key(const struct catalog_db *db, uint64_t space, struct str tail,
		    struct arena *arena, struct buf *ret)
{
	struct timed_place place;

	if (space != TIMED_SPACE_ROWS)
		return STATUS_NOT_FOUND;
	TRY(timed_place_parse(timed_schema_of(db), tail, arena, &place));
	timed_draw_place(timed_schema_of(db), &place, ret);
	return STATUS_OK;
}

bool
timed_rows_draw_pair(const struct catalog_db *db, uint64_t space, struct str tail, struct str value,
		     struct buf *ret)
{
	struct arena *arena;
	enum status status = STATUS_NOT_FOUND;
	size_t len = ret->len;

	if (space != TIMED_SPACE_ROWS)
		return timed_draw_pair(db, space, tail, value, ret);
	arena = db->extension ? catalog_draw_arena(DRAW_ARENA_BYTES, ret) : NULL;
	if (arena)
		status = draw_cell(db, tail, value, arena, ret);
	arena_free(arena);
	if (status != STATUS_OK)
		ret->len = len;
	return status == STATUS_OK;
}

/* ---- One row ---- */

static bool
rows_descend(const struct catalog_db *db, size_t at)
{
	return timed_schema_of(db)->key[at].descending;
}

static enum status
rows_parse(const struct catalog_db *db, struct str tail, struct arena *arena,
	   const struct doc_scalar **ret, size_t *ret_count)
{
	struct timed_place place;

	TRY(timed_place_parse(timed_schema_of(db), tail, arena, &place));
	*ret = place.key;
	*ret_count = timed_schema_of(db)->key_count;
	return STATUS_OK;
}

enum status
timed_rows_inspect(struct kv_tx *tx, const struct catalog_db *db, struct str id,
		   struct arena *arena, catalog_draw_prefix *draw, void *arg)
{
	const struct timed_schema *schema = timed_schema_of(db);
	const struct timed_row_form form = { TIMED_SPACE_ROWS, schema->hash_count,
					     schema->key_count, rows_descend, rows_parse };

	(void)arena;
	return timed_inspect_row(tx, db, &form, id, draw, arg);
}
