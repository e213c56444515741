/*
 * Two documents behind each other: a schema that compiles, run on the other one, gives the same
 * answer twice, and the opposite within `not`.
 */
#include "documents.h"
#include "mql/schema/schema.h"

enum {
	MAX_BYTES = 1 << 24,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_schema(struct arena *arena, struct str schema, struct str document)
{
	const struct bson_value v = BSON_OF_DOCUMENT(schema), on = BSON_OF_DOCUMENT(document);
	struct err err = { 0 };
	struct mql q = { .arena = arena, .err = &err };
	struct buf opposite = BUF_INIT(MAX_BYTES);
	struct bson_builder b;
	struct mql_schema *s;
	bool holds, again;

	if (mql_schema_compile(&q, &v, 2, &s) != STATUS_OK ||
	    mql_schema_run(s, &q, &on, &holds) != STATUS_OK)
		return;
	if (mql_schema_run(s, &q, &on, &again) != STATUS_OK)
		return; /* the arena is full */
	must(again == holds);
	bson_builder_init(&b, &opposite);
	bson_begin(&b);
	bson_put_document(&b, STR("not"), schema);
	bson_end(&b);
	if (buf_status(&opposite) == STATUS_OK) {
		const struct bson_value other = BSON_OF_DOCUMENT(buf_str(&opposite));

		if (mql_schema_compile(&q, &other, 1, &s) == STATUS_OK &&
		    mql_schema_run(s, &q, &on, &again) == STATUS_OK)
			must(again != holds);
	}
	buf_release(&opposite);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *arena = arena_new(MAX_BYTES);
	struct str rest = str_of(data, size), schema, document;

	if (arena && take_document(&rest, &schema) && take_document(&rest, &document))
		check_schema(arena, schema, document);
	arena_free(arena);
	return 0;
}
