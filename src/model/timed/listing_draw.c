/* The line of a deletion: (0x1f03, 'user1', 10), msg_props_column_id, 2026-… -> [DELETE] */
#include "catalog/draw.h"
#include "model/timed/timed_int.h"

enum {
	DRAW_ARENA_BYTES = 1024 * 1024,
};

static enum status
draw_deleted_key(const struct catalog_db *db, struct str key, struct arena *arena, struct buf *ret)
{
	struct tuple_reader r = tuple_reader(str_skip(key, db->prefix.len));
	uint64_t space;

	TRY(tuple_next_u64(&r, &space));
	return timed_kind_of(db)->draw_key(db, space, r.rest, arena, ret);
}

bool
timed_draw_deletion(const struct catalog_db *db, const struct timed_line *line, struct buf *ret)
{
	struct arena *arena = catalog_draw_arena(DRAW_ARENA_BYTES, ret);
	enum status status = STATUS_NOMEM;
	size_t len = ret->len;

	if (arena)
		status = draw_deleted_key(db, line->pair.key, arena, ret);
	arena_free(arena);
	if (status != STATUS_OK) {
		ret->len = len;
		return false;
	}
	buf_append_cstr(ret, ", ");
	timed_draw_time(line->deleted_us, ret);
	buf_append_cstr(ret, " -> [DELETE]");
	return true;
}
