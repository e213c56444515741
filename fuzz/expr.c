/*
 * A document whose first member is an expression, and behind it a document that it is run on: an
 * expression that compiles and runs gives a valid value, the same one twice, and a constant gives
 * what was computed at compilation.
 */
#include "documents.h"
#include "mql/expr/expr.h"

enum {
	/* So little that loops inside each other end soon: a plain thread counts no steps. */
	ARENA_BYTES = 1 << 17,
	MAX_BYTES = 1 << 20,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The document with the value as its only member; it was deep enough to be checked as one. */
static void
put_value(const struct bson_value *v, struct buf *out)
{
	struct bson_builder b;

	bson_builder_init(&b, out);
	bson_begin(&b);
	if ((int)v->type != MQL_MISSING)
		bson_put(&b, STR("v"), v);
	bson_end(&b);
}

static void
check_value(const struct bson_value *v, const struct bson_value *again)
{
	struct buf one = BUF_INIT(2 * MAX_BYTES), two = BUF_INIT(2 * MAX_BYTES);
	struct str bytes;

	put_value(v, &one);
	put_value(again, &two);
	must(buf_status(&one) == STATUS_OK && str_eq(buf_str(&one), buf_str(&two)));
	bytes = buf_str(&one);
	/* A container of the greatest depth is too deep inside another one. */
	if (bson_is_container(v))
		bytes = v->type == BSON_DOCUMENT ? bson_text(v) : STR("");
	must(!bytes.len || bson_check(bytes, NULL) == STATUS_OK);
	buf_release(&one);
	buf_release(&two);
}

static void
check(struct mql *q, const struct bson_value *v, struct str document)
{
	const struct mql_env env = { .root = document };
	struct bson_value value, again;
	struct mql_expr *e;

	if (mql_expr_compile(q, v, NULL, &e) != STATUS_OK) {
		must(q->depth == 0);
		return;
	}
	must(q->depth == 0);
	if (mql_expr_run(e, q, &env, &value) != STATUS_OK)
		return;
	if (mql_expr_run(e, q, &env, &again) != STATUS_OK)
		return; /* the arena is full */
	check_value(&value, &again);
	if (mql_expr_constant(e, &again))
		check_value(&value, &again);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rest = { (const char *)data, size };
	struct str expression, document;
	struct err err = { 0 };
	struct bson_element e;
	struct bson_iter i;
	struct arena *arena;
	struct mql q;

	if (!take_document(&rest, &expression) || !take_document(&rest, &document) ||
	    memmem(data, size, "$rand", 5))
		return 0;
	bson_iter_begin(&i, expression);
	if (!bson_iter_read(&i, &e))
		return 0;
	arena = arena_new(ARENA_BYTES);
	must(arena != NULL);
	q = (struct mql){ .arena = arena, .err = &err, .now_ms = 1700000000123 };
	check(&q, &e.value, document);
	arena_free(arena);
	return 0;
}
