/* Each operator on values of all types, extreme ones among them: a value, or a failure. */
#include "expr_case.h"
#include "mql/expr/expr_int.h"

enum {
	ANY_ROUNDS = 150,
	ANY_ARGS = 3,
};

static const struct mql_expr_op *const any_tables[] = {
	mql_expr_bits_ops, mql_expr_convert_ops, mql_expr_date_ops,
	mql_expr_hash_ops, mql_expr_regex_ops,   mql_expr_set_ops,
	mql_expr_span_ops, mql_expr_string_ops,  mql_expr_trig_ops,
};

static const char *const any_values[] = {
	"0",
	"-1",
	"2147483647",
	"{'$numberLong':'9223372036854775807'}",
	"{'$numberLong':'-9223372036854775808'}",
	"1.5",
	"1e300",
	"{'$numberDouble':'NaN'}",
	"{'$numberDouble':'-Infinity'}",
	"{'$numberDecimal':'1E+6144'}",
	"{'$numberDecimal':'NaN'}",
	"{'$date':{'$numberLong':'9223372036854775807'}}",
	"{'$date':{'$numberLong':'-9223372036854775808'}}",
	"{'$date':'2024-03-10T07:30:00Z'}",
	"{'$timestamp':{'t':4294967295,'i':4294967295}}",
	"{'$oid':'ffffffffffffffffffffffff'}",
	"{'$binary':{'base64':'AQIDBAUGBwgJCgsMDQ4PEA==','subType':'04'}}",
	"{'$regularExpression':{'pattern':'(a)|b','options':'ix'}}",
	"''",
	"'a\xc3\xa4'",
	"'year'",
	"'month'",
	"'week'",
	"'hour'",
	"'America/New_York'",
	"'+99:99'",
	"'%Y-%m-%d'",
	"'2024-06-15'",
	"'binData'",
	"'hex'",
	"[]",
	"[1,'a',null,[1]]",
	"{}",
	"{'type':'binData','subtype':4}",
	"true",
	"null",
	"{'$minKey':1}",
	"{'$maxKey':1}",
};

static uint32_t
any_next(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

/* The document that has the values, and the expression that names them. */
static void
any_write(struct buf *document, struct buf *expression, const struct mql_expr_op *op,
	  uint32_t *state)
{
	size_t count = 0;

	buf_append_cstr(document, "{");
	buf_printf(expression, op->names ? "{'%s':{" : "{'%s':[", op->name);
	for (; op->names ? op->names[count] != NULL : count < ANY_ARGS; count++) {
		const char *value = any_values[any_next(state) % CASES(any_values)];

		if (op->names && any_next(state) % 4 == 0 && !(op->required >> count & 1))
			continue;
		if (!op->names && op->least && count >= (size_t)op->least &&
		    any_next(state) % 2 == 0)
			break;
		buf_printf(document, "%s'v%zu':%s", document->len > 1 ? "," : "", count, value);
		if (expression->ptr[expression->len - 1] == '\'')
			buf_append_cstr(expression, ",");
		if (op->names)
			buf_printf(expression, "'%s':", op->names[count]);
		buf_printf(expression, "'$v%zu'", count);
	}
	buf_append(document, "}", 2);
	buf_append(expression, op->names ? "}}" : "]}", 3);
}

static void
any_run(struct arena *arena, const struct mql_expr_op *op, uint32_t *state)
{
	struct buf document = BUF_INIT(CASE_BYTES), expression = BUF_INIT(CASE_BYTES);
	struct arena_mark mark = arena_mark(arena);
	struct mql q = case_mql(arena);
	struct bson_value v, again;
	enum status status;

	any_write(&document, &expression, op, state);
	status = case_run(&q, expression.ptr, document.ptr, &v);
	if (status != STATUS_OK && (status != STATUS_INVALID || !q.code))
		fail_msg("%s on %s: status %d, code %d", expression.ptr, document.ptr, status,
			 q.code);
	if (status == STATUS_OK) {
		const char *text = case_text(arena, &v);

		assert_int_equal(case_run(&q, expression.ptr, document.ptr, &again), STATUS_OK);
		assert_string_equal(text, case_text(arena, &again));
	}
	arena_reset(arena, mark);
	buf_release(&document);
	buf_release(&expression);
}

static void
operators_stand_any_values(void **state)
{
	uint32_t random = 1;

	for (size_t t = 0; t < CASES(any_tables); t++) {
		for (const struct mql_expr_op *op = any_tables[t]; op->name; op++) {
			for (int i = 0; i < ANY_ROUNDS; i++)
				any_run(*state, op, &random);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(operators_stand_any_values, case_setup,
						case_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
