#include "door/rows/data/filter.h"

/* ---- Values of rows ---- */

/* The value of a column, as messages have it. False: it is null. */
static enum status
row_value(struct rows_request *r, const struct table *t, const struct column *c,
	  const struct table_row *row, struct buf *scratch, bool *ret_is_there, struct str *ret)
{
	struct rows_value value;
	struct rows_in in;

	buf_clear(scratch);
	TRY(rows_pick_put(r, t, c, row, scratch));
	in = (struct rows_in){ .rest = buf_str(scratch) };
	value = rows_in_value(&in);
	*ret_is_there = value.presence == ROWS_VALUE;
	*ret = value.bytes;
	return STATUS_OK;
}

static struct buf
value_buf(const struct rows_request *r)
{
	return BUF_INIT_OF(ROWS_ORDERED_BYTES, arena_part(r->arena));
}

/* ---- Filters ---- */

struct filter {
	const struct column *column;
	enum rows_test test;
	enum rows_bound from_kind, to_kind;
	struct str from, to; /* ordered, in the arena */
};

struct filters {
	const struct table *table;
	struct filter *all;
	size_t count;
	struct buf value, ordered;
};

static enum status
bound_make(struct rows_request *r, const struct column *c, enum rows_bound kind,
	   const struct rows_value *value, struct str *ret)
{
	AUTO(buf_release) struct buf ordered = value_buf(r);

	if (kind == ROWS_BOUND_NONE)
		return STATUS_OK;
	if (!rows_value_check(c->kind, value->bytes))
		return rows_fail(r, ROWS_STATE_FORMAT, "the bytes for \"%.*s\" are no value of %s",
				 STR_ARG(c->stored->name), rows_kind_name(c->kind));
	TRY(rows_ordered_put(c->kind, value->bytes, &ordered));
	return buf_copy(&ordered, r->arena, ret);
}

static enum status
filter_make(struct rows_request *r, const struct table *t, const struct rows_filter *from,
	    struct filter *ret)
{
	ret->test = from->test;
	ret->from_kind = from->from_kind;
	ret->to_kind = from->to_kind;
	TRY(rows_table_column_find(r, t, from->column, &ret->column));
	if (from->test == ROWS_TEST_INTERVAL && !rows_kind_is_key(ret->column->kind))
		return rows_fail(r, ROWS_STATE_UNSUPPORTED, "values of %s have no order",
				 rows_kind_name(ret->column->kind));
	TRY(bound_make(r, ret->column, from->from_kind, &from->from, &ret->from));
	return bound_make(r, ret->column, from->to_kind, &from->to, &ret->to);
}

enum status
rows_filters_make(struct rows_request *r, const struct table *t, const struct rows_scan *scan,
		  struct pick *pick, struct filters **ret)
{
	struct filters *f = arena_zalloc(r->arena, sizeof(*f));

	if (!f)
		return STATUS_LIMIT;
	f->table = t;
	f->count = scan->filter_count;
	f->value = value_buf(r);
	f->ordered = value_buf(r);
	f->all = arena_zalloc(r->arena, (f->count + 1) * sizeof(*f->all));
	if (!f->all)
		return STATUS_LIMIT;
	for (size_t i = 0; i < f->count; i++) {
		TRY(filter_make(r, t, &scan->filters[i], &f->all[i]));
		rows_pick_want(pick, f->all[i].column);
	}
	*ret = f;
	return STATUS_OK;
}

void
rows_filters_free(struct filters *f)
{
	if (!f)
		return;
	buf_release(&f->value);
	buf_release(&f->ordered);
}

static bool
is_between(const struct filter *f, struct str ordered)
{
	int c;

	if (f->from_kind != ROWS_BOUND_NONE) {
		c = str_cmp(ordered, f->from);
		if (c < 0 || (c == 0 && f->from_kind == ROWS_BOUND_EXCLUSIVE))
			return false;
	}
	if (f->to_kind == ROWS_BOUND_NONE)
		return true;
	c = str_cmp(ordered, f->to);
	return c < 0 || (c == 0 && f->to_kind == ROWS_BOUND_INCLUSIVE);
}

static enum status
filter_pass(struct filters *f, const struct filter *one, struct rows_request *r,
	    const struct table_row *row, bool *ret)
{
	struct str value;
	bool is_there;

	TRY(row_value(r, f->table, one->column, row, &f->value, &is_there, &value));
	*ret = one->test == ROWS_TEST_NULL ? !is_there : is_there;
	if (!*ret || one->test != ROWS_TEST_INTERVAL)
		return STATUS_OK;
	buf_clear(&f->ordered);
	TRY(rows_ordered_put(one->column->kind, value, &f->ordered));
	*ret = is_between(one, buf_str(&f->ordered));
	return STATUS_OK;
}

enum status
rows_filters_pass(struct filters *f, struct rows_request *r, const struct table_row *row, bool *ret)
{
	*ret = true;
	for (size_t i = 0; i < f->count && *ret; i++)
		TRY(filter_pass(f, &f->all[i], r, row, ret));
	return STATUS_OK;
}

/* ---- Sums ---- */

struct sum {
	enum rows_sum op;
	const struct column *column;
	uint64_t count; /* of values that are not null */
	__int128 whole; /* of integers */
	double real;    /* of floats */
	struct buf best, best_ordered;
};

struct sums {
	const struct table *table;
	struct sum *all;
	size_t count;
	uint64_t rows;
	struct buf value, ordered;
};

static bool
kind_is_int(enum rows_kind kind)
{
	return kind == ROWS_INT2 || kind == ROWS_INT4 || kind == ROWS_INT8;
}

static bool
kind_is_float(enum rows_kind kind)
{
	return kind == ROWS_FLOAT4 || kind == ROWS_FLOAT8;
}

static bool
sum_is_known(const struct sum *s)
{
	switch (s->op) {
	case ROWS_SUM_COUNT:
		return true;
	case ROWS_SUM_SUM:
		return kind_is_int(s->column->kind) || kind_is_float(s->column->kind);
	case ROWS_SUM_LEAST:
	case ROWS_SUM_GREATEST:
		break;
	}
	return rows_kind_is_key(s->column->kind);
}

enum status
rows_sums_make(struct rows_request *r, const struct table *t, const struct rows_scan *scan,
	       const struct pick *pick, struct sums **ret)
{
	struct sums *s = arena_zalloc(r->arena, sizeof(*s));

	if (!s)
		return STATUS_LIMIT;
	s->table = t;
	s->count = pick->count;
	s->value = value_buf(r);
	s->ordered = value_buf(r);
	s->all = arena_zalloc(r->arena, (s->count + 1) * sizeof(*s->all));
	if (!s->all)
		return STATUS_LIMIT;
	for (size_t i = 0; i < s->count; i++) {
		s->all[i] = (struct sum){ .op = (enum rows_sum)scan->ops[i],
					  .column = pick->columns[i],
					  .best = value_buf(r),
					  .best_ordered = value_buf(r) };
		if (!sum_is_known(&s->all[i]))
			return rows_fail(r, ROWS_STATE_UNSUPPORTED, "values of %s have no such sum",
					 rows_kind_name(pick->columns[i]->kind));
	}
	*ret = s;
	return STATUS_OK;
}

void
rows_sums_free(struct sums *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->count; i++) {
		buf_release(&s->all[i].best);
		buf_release(&s->all[i].best_ordered);
	}
	buf_release(&s->value);
	buf_release(&s->ordered);
}

static int64_t
int_of(struct str value)
{
	int64_t n = (int8_t)value.ptr[0];

	for (size_t i = 1; i < value.len; i++)
		n = (int64_t)((uint64_t)n << 8 | (uint8_t)value.ptr[i]);
	return n;
}

static double
float_of(struct str value)
{
	uint64_t bits = (uint64_t)int_of(value);
	uint32_t half = (uint32_t)bits;
	double d;
	float f;

	if (value.len == sizeof(d)) {
		memcpy(&d, &bits, sizeof(d));
		return d;
	}
	memcpy(&f, &half, sizeof(f));
	return (double)f;
}

/* Keeps the value if it is the least, or the greatest, so far. */
static enum status
sum_best(struct sums *s, struct sum *one, struct str value)
{
	int c;

	buf_clear(&s->ordered);
	TRY(rows_ordered_put(one->column->kind, value, &s->ordered));
	c = str_cmp(buf_str(&s->ordered), buf_str(&one->best_ordered));
	if (one->count > 1 && (one->op == ROWS_SUM_LEAST ? c >= 0 : c <= 0))
		return STATUS_OK;
	buf_set(&one->best, value);
	buf_set_buf(&one->best_ordered, &s->ordered);
	TRY(buf_status(&one->best));
	return buf_status(&one->best_ordered);
}

static enum status
sum_add(struct sums *s, struct sum *one, struct rows_request *r, const struct table_row *row)
{
	struct str value;
	bool is_there;

	TRY(row_value(r, s->table, one->column, row, &s->value, &is_there, &value));
	if (!is_there)
		return STATUS_OK;
	one->count++;
	if (one->op == ROWS_SUM_COUNT)
		return STATUS_OK;
	if (one->op != ROWS_SUM_SUM)
		return sum_best(s, one, value);
	if (kind_is_int(one->column->kind))
		one->whole += int_of(value);
	else
		one->real += float_of(value);
	return STATUS_OK;
}

enum status
rows_sums_add(struct sums *s, struct rows_request *r, const struct table_row *row)
{
	s->rows++;
	for (size_t i = 0; i < s->count; i++)
		TRY(sum_add(s, &s->all[i], r, row));
	return STATUS_OK;
}

/* As a numeric. */
static void
put_whole(__int128 n, struct buf *out)
{
	char digits[48];
	size_t at = sizeof(digits);
	unsigned __int128 left = n < 0 ? -(unsigned __int128)n : (unsigned __int128)n;

	do {
		digits[--at] = (char)('0' + (int)(left % 10));
		left /= 10;
	} while (left);
	if (n < 0)
		digits[--at] = '-';
	rows_put_value(out, str_of(digits + at, sizeof(digits) - at));
}

static void
put_sum(const struct sum *s, struct buf *out)
{
	uint64_t bits;

	if (s->op == ROWS_SUM_COUNT) {
		rows_put_u32(out, sizeof(s->count));
		rows_put_u64(out, s->count);
	} else if (!s->count) {
		rows_put_null(out);
	} else if (s->op != ROWS_SUM_SUM) {
		rows_put_value(out, buf_str(&s->best));
	} else if (kind_is_int(s->column->kind)) {
		put_whole(s->whole, out);
	} else {
		memcpy(&bits, &s->real, sizeof(bits));
		rows_put_u32(out, sizeof(bits));
		rows_put_u64(out, bits);
	}
}

void
rows_sums_put(const struct sums *s, struct buf *out)
{
	rows_put_u64(out, s->rows);
	for (size_t i = 0; i < s->count; i++)
		put_sum(&s->all[i], out);
}

static void
sums_clear(struct sums *s)
{
	s->rows = 0;
	for (size_t i = 0; i < s->count; i++) {
		struct sum *one = &s->all[i];

		one->count = 0;
		one->whole = 0;
		one->real = 0;
		buf_clear(&one->best);
		buf_clear(&one->best_ordered);
	}
}

/* ---- Groups ---- */

struct groups {
	const struct table *table;
	struct sums *sums;
	const struct column **columns;
	size_t column_count;
	struct buf key, row; /* what these are in the group, and in a row, as messages have them */
	bool is_open;        /* the group has rows */
	uint32_t count;      /* of groups that were appended */
};

/* The hidden column is none of the key's. */
static enum status
groups_of_key(struct rows_request *r, const struct table *t, size_t count,
	      const struct column **ret)
{
	size_t hash = t->schema->hash_count - t->hidden;

	if (count > rows_table_key_columns(t))
		return rows_fail(r, ROWS_STATE_DEFINITION, "a key has %zu columns here",
				 rows_table_key_columns(t));
	if (count < hash)
		return rows_fail(r, ROWS_STATE_UNSUPPORTED,
				 "only rows with equal values of all %zu hash columns lie together",
				 hash);
	for (size_t i = 0; i < count; i++)
		ret[i] = &t->columns[t->hidden + i];
	return STATUS_OK;
}

static enum status
groups_of_index(struct rows_request *r, const struct table *t, const struct table_index *index,
		size_t count, struct pick *pick, const struct column **ret)
{
	if (count > index->column_count)
		return rows_fail(r, ROWS_STATE_DEFINITION, "the index has %zu columns",
				 index->column_count);
	if (!rows_index_has_groups(t, index))
		return rows_fail(r, ROWS_STATE_UNSUPPORTED,
				 "rows with equal values do not lie together in the index \"%.*s\"",
				 STR_ARG(index->name));
	for (size_t i = 0; i < count; i++) {
		TRY(rows_table_column_find(r, t, (uint32_t)index->columns[i].column, &ret[i]));
		rows_pick_want(pick, ret[i]);
	}
	return STATUS_OK;
}

enum status
rows_groups_make(struct rows_request *r, const struct table *t, const struct table_index *index,
		 size_t count, struct pick *pick, struct sums *sums, struct groups **ret)
{
	struct groups *g = arena_zalloc(r->arena, sizeof(*g));

	if (!g)
		return STATUS_LIMIT;
	*g = (struct groups){ .table = t,
			      .sums = sums,
			      .columns = arena_alloc(r->arena,
						     count * sizeof(const struct column *)),
			      .column_count = count,
			      .key = BUF_INIT_OF(ROWS_REPLY_BYTES, arena_part(r->arena)),
			      .row = BUF_INIT_OF(ROWS_REPLY_BYTES, arena_part(r->arena)) };
	if (!g->columns)
		return STATUS_LIMIT;
	*ret = g;
	return index ? groups_of_index(r, t, index, count, pick, g->columns)
		     : groups_of_key(r, t, count, g->columns);
}

void
rows_groups_free(struct groups *g)
{
	if (!g)
		return;
	buf_release(&g->key);
	buf_release(&g->row);
}

static void
group_put(struct groups *g, struct buf *out)
{
	buf_append_buf(out, &g->key);
	/* A value as the others are: a client reads a group as it reads a row. */
	rows_put_u32(out, sizeof(g->sums->rows));
	rows_sums_put(g->sums, out);
	sums_clear(g->sums);
	g->is_open = false;
	g->count++;
}

/* What the row has of the columns, in g->row. */
static enum status
group_key(struct groups *g, struct rows_request *r, const struct table_row *row)
{
	buf_clear(&g->row);
	for (size_t i = 0; i < g->column_count; i++)
		TRY(rows_pick_put(r, g->table, g->columns[i], row, &g->row));
	return buf_status(&g->row);
}

enum status
rows_groups_add(struct groups *g, struct rows_request *r, const struct table_row *row)
{
	TRY(group_key(g, r, row));
	if (g->is_open && !str_eq(buf_str(&g->row), buf_str(&g->key)))
		group_put(g, r->out);
	if (!g->is_open) {
		buf_set_buf(&g->key, &g->row);
		TRY(buf_status(&g->key));
		g->is_open = true;
	}
	return rows_sums_add(g->sums, r, row);
}

uint32_t
rows_groups_end(struct groups *g, struct buf *out)
{
	if (g->is_open)
		group_put(g, out);
	return g->count;
}

enum status
rows_groups_put(struct groups *g, struct rows_request *r, const struct table_row *row,
		uint64_t rows)
{
	TRY(group_key(g, r, row));
	buf_set_buf(&g->key, &g->row);
	TRY(buf_status(&g->key));
	g->sums->rows = rows;
	group_put(g, r->out);
	return buf_status(r->out);
}
