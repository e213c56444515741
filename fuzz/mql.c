/*
 * A document that is a filter or an update, and behind it a document that it is run on: a filter
 * that compiles runs, gives the same answer twice, and the opposite within $nor; an update makes
 * the same valid document twice, and tells whether it is another one.
 */
#include "documents.h"
#include "mql/update/update.h"

enum {
	MAX_BYTES = 1 << 24,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool
run(struct mql *q, struct str filter, struct str document, bool *ret)
{
	struct mql_match *m;
	int64_t position;

	if (mql_match_compile(q, filter, &m) != STATUS_OK ||
	    mql_match_run(m, q, document, ret, &position) != STATUS_OK)
		return false;
	must(position >= -1 && (*ret || position == -1));
	return true;
}

static void
check_filter(struct arena *arena, struct str filter, struct str document)
{
	struct err err = { 0 };
	struct mql q = { .arena = arena, .err = &err };
	struct buf opposite = BUF_INIT(MAX_BYTES);
	struct bson_builder b;
	bool matches, again, opposed;

	bson_builder_init(&b, &opposite);
	bson_begin(&b);
	bson_begin_array(&b, STR("$nor"));
	bson_put_document(&b, STR(""), filter);
	bson_end(&b);
	bson_end(&b);
	if (run(&q, filter, document, &matches)) {
		must(run(&q, filter, document, &again) && again == matches);
		/* The filter inside may be too deep where the filter alone was not. */
		if (run(&q, buf_str(&opposite), document, &opposed))
			must(opposed != matches);
	}
	buf_release(&opposite);
}

static void
check_update(struct arena *arena, struct str change, struct str document)
{
	struct err err = { 0 };
	struct mql q = { .arena = arena, .err = &err };
	const struct mql_update_on on = { .document = document };
	struct mql_update *u;
	struct mql_updated once, twice;

	if (mql_update_compile(&q, change, BSON_EMPTY, &u) != STATUS_OK ||
	    mql_update_run(u, &q, &on, &once) != STATUS_OK)
		return;
	must(mql_update_run(u, &q, &on, &twice) == STATUS_OK);
	must(bson_check(once.document, NULL) == STATUS_OK);
	must(str_eq(once.document, twice.document) && once.count == twice.count);
	must(once.changed || str_eq(once.document, document));
	must(!once.changed || once.replaced || once.count);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rest = { (const char *)data, size };
	struct str filter, document;
	struct arena *arena;

	if (!take_document(&rest, &filter) || !take_document(&rest, &document))
		return 0;
	arena = arena_new(MAX_BYTES);
	must(arena != NULL);
	check_filter(arena, filter, document);
	check_update(arena, filter, document);
	arena_free(arena);
	return 0;
}
