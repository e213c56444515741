/*
 * A line with a type, and bytes: of a value of that type, then of the texts of one. Values that
 * were checked have one form, which compares as equal to them; as keys and scalars they come back,
 * and keys compare as the values do. What is printed as JSON, or for a file of COPY, reads as the
 * same value.
 */
#include <stdlib.h>

#include "cql/copy.h"
#include "cql/json.h"
#include "doc/key.h"
#include "look.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	ARENA_BYTES = 16 * 1024 * 1024,
};

static int
sign(int n)
{
	return (n > 0) - (n < 0);
}

static void
check_scalar(struct cql *q, const struct cql_type *type, struct str bytes)
{
	struct buf leaf = BUF_INIT(ARENA_BYTES);
	struct doc_scalar s;
	struct str back;

	must(cql_value_to_scalar(q, type, bytes, &s) == STATUS_OK);
	doc_scalar_put(&leaf, &s);
	must(cql_value_of_scalar(q, type, &s, &back) == STATUS_OK);
	must(str_eq(back, bytes));
	buf_release(&leaf);
}

/* The keys of two values are as the values are, and are read back. */
static void
check_keys(struct cql *q, const struct cql_type *type, struct str a, struct str b)
{
	struct buf keys[2] = { BUF_INIT(ARENA_BYTES), BUF_INIT(ARENA_BYTES) };
	struct str back;
	size_t len;

	if (cql_type_key_use(type) == CQL_KEY_NEVER)
		return;
	if (cql_value_put_key(q, &keys[0], type, a) == STATUS_OK &&
	    cql_value_put_key(q, &keys[1], type, b) == STATUS_OK) {
		must(sign(str_cmp(buf_str(&keys[0]), buf_str(&keys[1]))) ==
		     sign(cql_value_compare(type, a, b)));
		must(cql_value_of_key(q, type, buf_str(&keys[0]), false, &back, &len) == STATUS_OK);
		must(len == keys[0].len && cql_value_compare(type, back, a) == 0);
		must(cql_type_key_use(type) == CQL_KEY_VALUE || type->count || str_eq(back, a));
	}
	buf_release(&keys[0]);
	buf_release(&keys[1]);
}

static void
check_json(struct cql *q, const struct cql_type *type, struct str bytes)
{
	struct buf json = BUF_INIT(ARENA_BYTES);
	struct cql_value v;

	cql_json_print(&json, type, CQL_VALUE(bytes));
	/* NaN and infinities are null, and "" is not empty everywhere: both may be refused. */
	if (buf_status(&json) == STATUS_OK &&
	    cql_json_read(q, type, buf_str(&json), &v) == STATUS_OK && v.presence == CQL_SET &&
	    type->kind < CQL_NATIVE_COUNT && type->kind != CQL_TYPE_FLOAT)
		must(cql_value_compare(type, v.bytes, bytes) == 0);
	buf_release(&json);
}

/* Numbers of more digits than CQL_DIGITS are written, and not read. */
static void
check_copy(struct cql *q, const struct cql_type *type, struct str bytes)
{
	struct buf texts[2] = { BUF_INIT(ARENA_BYTES), BUF_INIT(ARENA_BYTES) };
	struct str back;

	cql_copy_print(&texts[0], type, bytes);
	if (buf_status(&texts[0]) == STATUS_OK && texts[0].len < CQL_DIGITS &&
	    !arena_is_full(q->arena)) {
		enum status status = cql_copy_read(q, type, buf_str(&texts[0]), &back);

		must(status == STATUS_OK || status == STATUS_LIMIT);
		if (status == STATUS_OK) {
			cql_copy_print(&texts[1], type, back);
			must(str_eq(buf_str(&texts[0]), buf_str(&texts[1])));
			must(type->kind >= CQL_NATIVE_COUNT || str_eq(back, bytes));
		}
	}
	buf_release(&texts[0]);
	buf_release(&texts[1]);
}

/* A value and what follows it as another one. */
static void
check_bytes(struct cql *q, const struct cql_type *type, struct str bytes)
{
	struct str half = { bytes.ptr, bytes.len / 2 }, a, b, again;
	struct buf out = BUF_INIT(ARENA_BYTES);

	(void)cql_value_compare(type, half, bytes);
	if (cql_value_check(q, type, bytes) != STATUS_OK)
		goto done;
	must(cql_value_normalize(q, type, bytes, &a) == STATUS_OK);
	must(cql_value_check(q, type, a) == STATUS_OK);
	must(cql_value_normalize(q, type, a, &again) == STATUS_OK && str_eq(again, a));
	must(cql_value_compare(type, a, a) == 0);
	if (type->kind < CQL_NATIVE_COUNT)
		must(type->kind == CQL_TYPE_JSONB || type->kind == CQL_TYPE_BOOLEAN ||
		     type->kind == CQL_TYPE_DURATION || cql_value_compare(type, a, bytes) == 0);
	cql_value_print(&out, type, CQL_VALUE(a), CQL_FORM_LITERAL);
	check_scalar(q, type, a);
	check_json(q, type, a);
	check_copy(q, type, a);
	b = a;
	if (cql_value_check(q, type, half) == STATUS_OK)
		must(cql_value_normalize(q, type, half, &b) == STATUS_OK);
	check_keys(q, type, a, b);
	check_keys(q, type, b, a);
done:
	buf_release(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rest = { (const char *)data, size }, line = str_cut(&rest, '\n'), bytes;
	struct arena *arena = arena_new(ARENA_BYTES);
	struct err err = { 0 };
	struct cql q = { .arena = arena, .err = &err };
	const struct cql_type *type;
	struct cql_value v;
	size_t len;

	if (cql_type_parse(&q, line, &type) == STATUS_OK && type->resolved &&
	    cql_type_check(&q, type) == STATUS_OK) {
		check_bytes(&q, type, rest);
		if (type->kind < CQL_NATIVE_COUNT &&
		    cql_value_from_text(&q, type, rest, &bytes) == STATUS_OK)
			check_bytes(&q, type, bytes);
		if (cql_json_read(&q, type, rest, &v) == STATUS_OK && v.presence == CQL_SET)
			check_bytes(&q, type, v.bytes);
		if (cql_copy_read(&q, type, rest, &bytes) == STATUS_OK)
			check_bytes(&q, type, bytes);
		if (cql_value_of_key(&q, type, rest, false, &bytes, &len) == STATUS_OK)
			must(len <= rest.len);
	}
	arena_free(arena);
	return 0;
}
