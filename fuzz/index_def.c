/*
 * Any bytes as a definition of an index: what is read is written as the same bytes. And as what an
 * entry of rows carries: its values come to an end.
 */
#include <stdlib.h>

#include "index/bson/form.h"
#include "index/json/form.h"
#include "index/typed/form.h"

enum {
	MAX_BYTES = 1 << 20,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
read_as(const struct index_form *form, struct str value)
{
	struct arena *arena = arena_new(MAX_BYTES);
	struct buf again = BUF_INIT(MAX_BYTES);
	struct index_def def;

	if (!arena)
		abort();
	if (index_def_parse(form, value, arena, &def, NULL) == STATUS_OK) {
		(void)index_def_put(&again, &def);
		if (!str_eq(buf_str(&again), value))
			abort();
	}
	buf_release(&again);
	arena_free(arena);
}

static void
read_carried(struct str values)
{
	uint64_t column;
	struct str scalar;
	size_t left;

	do {
		left = values.len;
		if (index_typed_carried_next(&values, &column, &scalar) != STATUS_OK)
			return;
	} while (values.len < left);
	abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_as(&index_json_form, str_of(data, size));
	read_as(&index_bson_form, str_of(data, size));
	read_as(&index_typed_form, str_of(data, size));
	read_carried(str_of(data, size));
	return 0;
}
