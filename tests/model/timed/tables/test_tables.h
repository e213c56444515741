/* The tables that the tests of tables have, values for them, and how rows are told as texts. */
#ifndef FROND_TESTS_MODEL_TIMED_TABLES_TEST_TABLES_H
#define FROND_TESTS_MODEL_TIMED_TABLES_TEST_TABLES_H

#include "model/timed/tables/row.h"

/* A literal as an initializer. */
#define TEXT(literal)                                                                              \
	{                                                                                          \
		"" literal, sizeof(literal) - 1                                                    \
	}

static const struct table_column msgs_columns[] = {
	{ .name = TEXT("msg_id"), .type = TEXT("int"), .kind = TABLE_RANGE },
	{ .name = TEXT("user_id"), .type = TEXT("text"), .kind = TABLE_HASH },
	{ .name = TEXT("msg"), .type = TEXT("text"), .kind = TABLE_REGULAR },
	{ .name = TEXT("msg_props"),
	  .type = TEXT("map<text, text>"),
	  .kind = TABLE_REGULAR,
	  .storage = TABLE_MAP },
	{ .name = TEXT("owner"), .type = TEXT("text"), .kind = TABLE_STATIC },
	{ .name = TEXT("tags"),
	  .type = TEXT("list<text>"),
	  .kind = TABLE_REGULAR,
	  .storage = TABLE_LIST },
};

static const struct table_column hits_columns[] = {
	{ .name = TEXT("page"), .type = TEXT("text"), .kind = TABLE_HASH },
	{ .name = TEXT("day"), .type = TEXT("int"), .kind = TABLE_RANGE, .descending = true },
	{ .name = TEXT("n"),
	  .type = TEXT("counter"),
	  .kind = TABLE_REGULAR,
	  .storage = TABLE_COUNTER },
};

enum { /* ids as they are given: the key first */
	USER_ID = 1,
	MSG_ID,
	MSG,
	MSG_PROPS,
	OWNER,
	TAGS,

	HITS_N = 3,
};

static inline struct doc_scalar
text(const char *s)
{
	return (struct doc_scalar){ .kind = DOC_TEXT, .text = str_from_cstr(s) };
}

static inline struct doc_scalar
number(int64_t n)
{
	return (struct doc_scalar){ .kind = DOC_INT64, .n = n };
}

/* Draws "value" of each cell of a row, in order: column=value, column[element]=value. */
static inline void
draw_scalar(const struct doc_scalar *s, struct buf *ret)
{
	if (s->kind == DOC_TEXT)
		buf_append_str(ret, s->text);
	else if (s->kind == DOC_NULL)
		buf_append_cstr(ret, "null");
	else
		buf_printf(ret, "%lld", (long long)s->n);
}

static inline void
draw_cells(const struct table_cell *cells, size_t count, struct buf *ret)
{
	for (size_t i = 0; i < count; i++) {
		buf_printf(ret, " %.*s", STR_ARG(cells[i].column->name));
		if (cells[i].column->storage == TABLE_MAP) {
			buf_append_byte(ret, '[');
			draw_scalar(&cells[i].element, ret);
			buf_append_byte(ret, ']');
		}
		buf_append_byte(ret, '=');
		draw_scalar(&cells[i].value, ret);
	}
}

static inline void
draw_row(const struct table_row *row, struct buf *ret)
{
	for (size_t i = 0; i < row->key_count; i++) {
		buf_append_byte(ret, i ? '/' : '(');
		draw_scalar(&row->key[i], ret);
	}
	buf_append_cstr(ret, row->inserted ? "*" : "");
	draw_cells(row->cells, row->cell_count, ret);
	draw_cells(row->statics, row->static_count, ret);
	buf_append_byte(ret, ')');
}

#endif
