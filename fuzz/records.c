/*
 * Any bytes as a record of model/timed: a header or a member of an item, a run of elements, a leaf
 * of a document, a cell of a row and what is packed in it, a mark of a deletion, the state of a
 * history, the description of a database. What is read is written as the same bytes.
 */
#include <stdlib.h>

#include "catalog/records.h"
#include "model/timed/items/item_int.h"
#include "model/timed/items/items.h"
#include "model/timed/items/json.h"
#include "model/timed/rows/rows_int.h"
#include "model/timed/tables/packed.h"

enum {
	ARENA_BYTES = 1024 * 1024, /* of the bounds of a mark */
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool good)
{
	if (!good)
		abort();
}

static void
must_be(struct buf *written, struct str value)
{
	must(buf_status(written) == STATUS_OK && str_eq(buf_str(written), value));
	buf_clear(written);
}

/* As far as it can be read, what is packed is written as the same bytes. */
static void
check_packed(const struct timed_cell *own, struct buf *written, struct arena *arena)
{
	struct buf again = BUF_INIT(KV_LIMIT_VALUE_BYTES);
	struct table_packed p = table_packed_of(own);
	struct doc_scalar s;
	uint64_t column;
	struct str value;

	while (table_packed_next(&p, &column, &value) == STATUS_OK) {
		table_packed_put(column, value, written);
		if (table_packed_scalar(value, arena, &s) != STATUS_OK)
			continue;
		doc_scalar_put(&again, &s);
		must_be(&again, value);
	}
	buf_release(&again);
	must_be(written, str_of(own->packed.ptr, own->packed.len - p.rest.len));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf written = BUF_INIT(KV_LIMIT_VALUE_BYTES);
	struct buf scratch = BUF_INIT(KV_LIMIT_VALUE_BYTES);
	struct str value = str_of(data, size);
	struct timed_leaf_record leaf;
	struct catalog_db db = { 0 };
	struct timed_json_leaf part;
	struct history_state state;
	struct timed_header header;
	struct timed_cell cell;
	struct table_mark mark;
	struct arena *arena;
	struct timed_run run;

	timed_rows_register();
	tables_register();
	timed_items_register();
	if (catalog_description_parse(value, &db, NULL) == STATUS_OK) {
		catalog_description_put(&db, &written);
		must_be(&written, value);
	}
	if (timed_header_parse(value, &header, NULL) == STATUS_OK) {
		timed_header_put(&header, &written);
		must_be(&written, value);
	}
	if (timed_leaf_parse(value, &leaf, NULL) == STATUS_OK) {
		timed_leaf_put(&leaf, &written);
		must_be(&written, value);
	}
	must(!timed_is_run(value) || timed_leaf_parse(value, &leaf, NULL) != STATUS_OK);
	if (timed_run_parse(value, &run) == STATUS_OK) {
		timed_run_put_header(run.write_us, run.leftwards, &written);
		for (unsigned i = 0; i < run.count; i++)
			timed_run_put_value(run.values[i], &written);
		must_be(&written, value);
	}
	if (timed_json_leaf_parse(value, &scratch, &part, NULL) == STATUS_OK) {
		timed_json_leaf_put(&part, &written);
		must_be(&written, value);
	}
	arena = arena_new(ARENA_BYTES);
	must(arena != NULL);
	if (timed_cell_parse(value, &cell, NULL) == STATUS_OK) {
		timed_cell_put(&cell, &written);
		must_be(&written, value);
		check_packed(&cell, &written, arena);
	}
	if (table_mark_parse(value, &mark, NULL) == STATUS_OK) {
		table_mark_encode(&mark, false, &written);
		must_be(&written, value);
	}
	if (table_mark_parse_range(value, arena, &mark, NULL) == STATUS_OK) {
		table_mark_encode(&mark, true, &written);
		must_be(&written, value);
	}
	arena_free(arena);
	if (history_state_parse(value, &state, NULL) == STATUS_OK) {
		history_state_put(&state, &written);
		must_be(&written, value);
	}
	buf_release(&written);
	buf_release(&scratch);
	return 0;
}
