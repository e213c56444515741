/*
 * Expressions on values at the edges of their types: each case has an outcome for each value of a
 * set.
 */
#ifndef FROND_TESTS_MQL_EDGES_CASE_H
#define FROND_TESTS_MQL_EDGES_CASE_H

#include <math.h>

#include "bson/decimal.h"

#include "expr_case.h"
#include "samples.h"

struct edge {
	const char *name, *value;
};

struct edge_case {
	const char *expression; /* on {a: value} */
	const char *other;      /* the outcome of all values but those that are named: */
	const char *outcomes;   /* "name:outcome" */
};

/* A code, or a type with the value where that is short; decimals are cut. */
static inline const char *
edge_outcome(struct arena *arena, const struct mql *q, enum status status,
	     const struct bson_value *v)
{
	char text[BSON_DECIMAL_TEXT_BYTES];
	const char *type;

	if (status != STATUS_OK)
		return arena_printf(arena, "%d", q->code).ptr;
	if ((int)v->type == MQL_MISSING)
		return "none";
	type = bson_type_name(v->type);
	switch ((int)v->type) {
	case BSON_INT32:
	case BSON_INT64:
	case BSON_DATE:
		return arena_printf(arena, "%s(%lld)", type, (long long)bson_integer(v)).ptr;
	case BSON_DOUBLE:
		return isnan(bson_real(v)) ? "double(NaN)"
					   : arena_printf(arena, "double(%.10g)", bson_real(v)).ptr;
	case BSON_DECIMAL:
		(void)bson_decimal_print(bson_decimal(v), text);
		return arena_printf(arena, "decimal(%.14s)", text).ptr;
	case BSON_BOOL:
		return bson_truth(v) ? "bool(true)" : "bool(false)";
	case BSON_STRING:
		for (size_t i = 0; i < bson_text(v).len; i++)
			if (bson_text(v).ptr[i] <= ' ' || bson_text(v).ptr[i] > '~')
				return arena_printf(arena, "string[%zu]", bson_text(v).len).ptr;
		return arena_printf(arena, "string(%.*s)", STR_ARG(bson_text(v))).ptr;
	case BSON_BINARY:
		return arena_printf(arena, "binData(%zu,%u)", bson_text(v).len, v->subtype).ptr;
	case BSON_ARRAY:
		return arena_printf(arena, "array(%zu)", bson_count(bson_text(v))).ptr;
	default:
		return type;
	}
}

static inline void
check_edges(const struct edge *edges, size_t edge_count, const struct edge_case *cases,
	    size_t count)
{
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < edge_count; k++) {
			struct arena *arena = arena_new(CASE_BYTES);
			struct str document = arena_printf(arena, "{'a':%s}", edges[k].value);
			const char *wanted = word_of(arena, cases[i].outcomes, edges[k].name,
						     cases[i].other);
			struct mql q = case_mql(arena);
			struct bson_value v;
			enum status status = case_run(&q, cases[i].expression, document.ptr, &v);
			const char *got = edge_outcome(arena, &q, status, &v);

			if (strcmp(got, wanted) != 0)
				fail_msg("%s on %s: %s, not %s", cases[i].expression, document.ptr,
					 got, wanted);
			arena_free(arena);
		}
	}
}

#endif
