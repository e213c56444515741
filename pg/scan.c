/*
 * Scans. Rows come in pages, each of them one request; a page is copied, since other scans use the
 * same connection between two of them. A whole key is got, everything else is scanned.
 *
 * frond's transaction sees its own writes, and a query must not see those that came after it began.
 * So before rows are sent, the scans of the table that are open read what they have left.
 */
#include "frond_pg.h"
#include "frond_sums.h"
#include "frond_lock.h"
#include "frond_own.h"
#include "frond_push.h"

#include "nodes/makefuncs.h"
#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "commands/explain.h"
#include "executor/executor.h"
#include "foreign/fdwapi.h"
#include "lib/ilist.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "storage/itemptr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"

enum {
	FIRST_PAGE_BYTES = 64 * 1024, /* a query may want no more; later pages are as frond likes */
	ROWS_FIRST = 64,
	GET_KEYS = 1000,                /* of one request */
	ROW_BITS = 16,                  /* of a hidden key, which a ctid has as its offset */
	KEPT_BYTES = 256 * 1024 * 1024, /* of pages that are read early, of one scan */
};

/* A test, and its value in this execution. */
struct scan_test {
	enum frond_place place;
	enum frond_op op;
	const struct frond_column *column;
	struct frond_column value_column; /* of the type that the operator takes */
	const Const *constant;            /* its value is this one; NULL: that of `expression` */
	ExprState *expression;            /* NULL: none */
	struct frows_value value;
	/* The operator in this execution: all values are on this side of one that the column
	 * cannot have, so that only null fails. */
	enum frond_op now;
};

struct scan {
	dlist_node open; /* of those that are open, while `is_open` */
	bool is_open;
	MemoryContextCallback gone;
	const struct frond_table *table;
	const struct frond_index *index; /* by which rows are found; NULL: by the key */
	int level;                       /* of the subtransaction that it began in */
	Oid user;
	struct scan_test *tests;
	int test_count;
	int *attnums;
	uint32 *columns; /* the ids of these */
	int column_count;
	bool reverse, is_whole_key;
	bool is_alone;             /* one request is all that its transaction asks */
	LOCKMODE lock;             /* of the keys that are known, before they are asked for */
	struct frond_marks *marks; /* of rows that are locked later; NULL: none */
	int first_rows;            /* of the first page; 0: as many as fit */
	struct frond_sums *sums;   /* in place of rows; NULL: none */
	bool is_grouped;           /* … one for each group: a page has groups as its rows */

	MemoryContext memory; /* of what is below, reset at each beginning */
	bool is_begun, is_empty;
	struct frows_scan request;
	struct frows_value equal[FROWS_KEY_COLUMNS], from, to;
	struct frows_value *choices; /* of a column that may have several values */
	int choice_count, choice, choice_key;

	MemoryContext group_memory; /* of the group that was given last; NULL: there are none */
	MemoryContext page_memory;
	struct frows_value *page; /* rows * columns */
	int rows, room, at;
	struct frows_value place;
	bool has_more; /* pages are behind this one */
	int pages;
};

static dlist_head open_scans = DLIST_STATIC_INIT(open_scans);

/* ---- Beginning ---- */

static void
tests_init(struct scan *s, ForeignScanState *node, List *tests, List *values)
{
	int next = 0;

	s->test_count = list_length(tests);
	s->tests = palloc0((s->test_count + 1) * sizeof(*s->tests));
	for (int i = 0; i < s->test_count; i++) {
		struct scan_test *test = &s->tests[i];
		List *from = list_nth(tests, i);
		Expr *value;

		test->place = linitial_int(from);
		test->op = test->now = lsecond_int(from);
		test->column = &s->table->columns[lthird_int(from) - 1];
		test->value = (struct frows_value){ NULL, FROWS_NULL };
		if (test->op == FROND_NULL || test->op == FROND_NOT_NULL)
			continue;
		value = list_nth(values, next++);
		if (IsA(value, Const))
			test->constant = (const Const *)value;
		else
			test->expression = ExecInitExpr(value, &node->ss.ps);
		/* Mostly the operator takes what the column has, which is known. */
		if ((Oid)lfourth_int(from) == test->column->type &&
		    test->column->kind != FROWS_OTHER)
			test->value_column = *test->column;
		else
			frond_column_set_type(&test->value_column, (Oid)lfourth_int(from), -1);
	}
}

static void
columns_init(struct scan *s, List *attnums)
{
	s->column_count = list_length(attnums);
	s->attnums = palloc((s->column_count + 1) * sizeof(*s->attnums));
	s->columns = palloc((s->column_count + 1) * sizeof(*s->columns));
	for (int i = 0; i < s->column_count; i++) {
		s->attnums[i] = list_nth_int(attnums, i);
		s->columns[i] = s->attnums[i] ? s->table->columns[s->attnums[i] - 1].id
					      : s->table->hidden.id;
	}
}

static void
sums_init(struct scan *s, const ForeignScan *plan, MemoryContext parent)
{
	s->sums = frond_sums_new(list_nth(plan->fdw_private, FROND_PRIVATE_SUMS),
				 list_nth(plan->fdw_private, FROND_PRIVATE_GROUPS), s->table,
				 s->index);
	s->is_grouped = frond_sums_group_values(s->sums) > 0;
	if (!s->is_grouped)
		return;
	s->column_count = frond_sums_group_values(s->sums);
	s->group_memory = AllocSetContextCreate(parent, "a group of frond's", ALLOCSET_SMALL_SIZES);
}

/* An abort frees the executor's memory, this with it, before it says that it aborts. */
static void
scan_unlink(void *arg)
{
	struct scan *s = arg;

	if (s->is_open)
		dlist_delete(&s->open);
	s->is_open = false;
}

/* The plan's index, which others may have dropped in frond since. */
static const struct frond_index *
index_of(const struct frond_table *t, uint32 number)
{
	const struct frond_index *index = frond_index_numbered(t, number);

	if (!index || !index->is_usable)
		ereport(ERROR, errcode(ERRCODE_UNDEFINED_OBJECT),
			errmsg("an index of \"%s\" was dropped while it was used", t->table));
	return index;
}

void
frond_scan_begin(ForeignScanState *node, int eflags)
{
	ForeignScan *plan = (ForeignScan *)node->ss.ps.plan;
	EState *estate = node->ss.ps.state;
	/* A scan of sums is of no relation's rows, but of one relation. */
	RangeTblEntry *rte = exec_rt_fetch(bms_singleton_member(plan->fs_relids), estate);
	List *how = list_nth(plan->fdw_private, FROND_PRIVATE_SCAN);
	struct scan *s;

	if (eflags & EXEC_FLAG_EXPLAIN_ONLY)
		return;
	s = MemoryContextAllocZero(estate->es_query_cxt, sizeof(*s));
	s->user = frond_user_of(rte);
	s->table = frond_table_get(rte->relid, s->user);
	s->reverse = linitial_int(how);
	s->first_rows = lsecond_int(how);
	if (lthird_int(how))
		s->index = index_of(s->table, (uint32)lthird_int(how));
	s->is_whole_key = lfourth_int(how);
	tests_init(s, node, list_nth(plan->fdw_private, FROND_PRIVATE_TESTS), plan->fdw_exprs);
	columns_init(s, list_nth(plan->fdw_private, FROND_PRIVATE_COLUMNS));
	s->lock = frond_lock_beforehand(estate, plan->scan.scanrelid);
	s->marks = frond_marks_new(estate, plan->scan.scanrelid, s->table, s->user, s->attnums,
				   s->column_count);
	if (list_length(plan->fdw_private) > FROND_PRIVATE_SUMS)
		sums_init(s, plan, estate->es_query_cxt);
	s->memory = AllocSetContextCreate(estate->es_query_cxt, "a scan of frond's",
					  ALLOCSET_DEFAULT_SIZES);
	s->page_memory = AllocSetContextCreate(estate->es_query_cxt, "a page of frond's",
					       ALLOCSET_DEFAULT_SIZES);
	s->level = GetCurrentTransactionNestLevel();
	dlist_push_head(&open_scans, &s->open);
	s->is_open = true;
	s->gone = (MemoryContextCallback){ .func = scan_unlink, .arg = s };
	MemoryContextRegisterResetCallback(estate->es_query_cxt, &s->gone);
	node->fdw_state = s;
}

/* ---- Values ---- */

static int64
int_of(Oid type, Datum d)
{
	switch (type) {
	case INT2OID:
		return DatumGetInt16(d);
	case INT4OID:
		return DatumGetInt32(d);
	default:
		return DatumGetInt64(d);
	}
}

/* An integer of another width: false if the column cannot have it, with *ret_above: it is more. */
static bool
int_fits(const struct scan_test *test, Datum d, bool *ret_above)
{
	int64 n = int_of(test->value_column.type, d), most;

	most = test->column->kind == FROWS_INT2   ? PG_INT16_MAX
	       : test->column->kind == FROWS_INT4 ? PG_INT32_MAX
						  : PG_INT64_MAX;
	*ret_above = n > most;
	return n <= most && n >= -most - 1;
}

static struct frows_value
value_of(const struct scan_test *test, Datum d)
{
	enum frows_kind kind = test->column->kind;
	uint8 *bytes;

	if (kind != FROWS_INT2 && kind != FROWS_INT4 &&
	    (kind != FROWS_INT8 || test->value_column.kind == FROWS_INT8))
		return frond_value_put(&test->value_column, d);
	bytes = palloc(sizeof(int64));
	frows_put_int(bytes, int_of(test->value_column.type, d),
		      kind == FROWS_INT2   ? 2
		      : kind == FROWS_INT4 ? 4
					   : 8);
	return (struct frows_value){ bytes, kind == FROWS_INT2 ? 2 : kind == FROWS_INT4 ? 4 : 8 };
}

static bool
is_integer(const struct scan_test *test)
{
	Oid type = test->value_column.type;

	return type == INT2OID || type == INT4OID || type == INT8OID;
}

/* The value of a comparison. False: no row can pass. */
static bool
test_set(struct scan_test *test, Datum d)
{
	bool above, all;

	test->now = test->op;
	if (!is_integer(test) || int_fits(test, d, &above)) {
		test->value = value_of(test, d);
		return true;
	}
	all = above ? test->op == FROND_LT || test->op == FROND_LE
		    : test->op == FROND_GT || test->op == FROND_GE;
	test->now = FROND_NOT_NULL;
	test->value = (struct frows_value){ NULL, FROWS_NULL };
	return all;
}

static int
compare_values(const void *a, const void *b)
{
	const struct frows_value *x = a, *y = b;
	int c = memcmp(x->ptr, y->ptr, Min(x->len, y->len));

	return c ? c : x->len - y->len;
}

/* The values of an array, each once. */
static void
choices_set(struct scan *s, const struct scan_test *test, Datum d)
{
	ArrayType *array = DatumGetArrayTypeP(d);
	Oid element = ARR_ELEMTYPE(array);
	int16 len;
	bool by_value, above;
	char align;
	Datum *all;
	bool *nulls;
	int count, kept = 0;

	get_typlenbyvalalign(element, &len, &by_value, &align);
	deconstruct_array(array, element, len, by_value, align, &all, &nulls, &count);
	s->choices = palloc((count + 1) * sizeof(*s->choices));
	s->choice_count = 0;
	for (int i = 0; i < count; i++)
		if (!nulls[i] && (!is_integer(test) || int_fits(test, all[i], &above)))
			s->choices[s->choice_count++] = value_of(test, all[i]);
	qsort(s->choices, s->choice_count, sizeof(*s->choices), compare_values);
	for (int i = 0; i < s->choice_count; i++)
		if (!i || compare_values(&s->choices[i], &s->choices[kept - 1]) != 0)
			s->choices[kept++] = s->choices[i];
	s->choice_count = kept;
}

/* False: no row can pass. */
static bool
test_evaluate(struct scan *s, struct scan_test *test, ExprContext *context)
{
	bool is_null;
	Datum d;

	if (!test->constant && !test->expression)
		return true;
	is_null = test->constant && test->constant->constisnull;
	d = test->constant ? test->constant->constvalue
			   : ExecEvalExpr(test->expression, context, &is_null);
	if (is_null)
		return false;
	if (test->place != FROND_IN)
		return test_set(test, d);
	choices_set(s, test, d);
	return s->choice_count > 0;
}

/* ---- The request ---- */

static void
bound_put(struct scan *s, const struct scan_test *test, int key)
{
	bool lower = test->now != FROND_LT && test->now != FROND_LE;
	/* The order of the table begins with the greatest value of a column that descends. */
	bool is_from = lower != (s->index ? s->index->columns[key].descending
					  : s->table->key[key].descending);
	struct frows_edge *edge = is_from ? &s->request.from : &s->request.to;
	struct frows_value *value = is_from ? &s->from : &s->to;

	/* No key has null, and what has a bound already is behind null. */
	if (test->now == FROND_NOT_NULL && (!s->index || edge->kind != FROWS_NO_BOUND))
		return;
	*value = test->value;
	edge->kind = test->now == FROND_LE || test->now == FROND_GE ? FROWS_INCLUSIVE
								    : FROWS_EXCLUSIVE;
	edge->values = value;
	edge->count = 1;
}

static void
filter_put(const struct scan_test *test, struct frows_filter *f)
{
	*f = (struct frows_filter){ .column = test->column->id };
	switch (test->now) {
	case FROND_NULL:
		f->test = FROWS_IS_NULL;
		return;
	case FROND_NOT_NULL:
		f->test = FROWS_IS_NOT_NULL;
		return;
	case FROND_EQ:
		f->from_kind = f->to_kind = FROWS_INCLUSIVE;
		f->from = f->to = test->value;
		return;
	case FROND_LT:
	case FROND_LE:
		f->to_kind = test->now == FROND_LE ? FROWS_INCLUSIVE : FROWS_EXCLUSIVE;
		f->to = test->value;
		return;
	case FROND_GT:
	case FROND_GE:
		f->from_kind = test->now == FROND_GE ? FROWS_INCLUSIVE : FROWS_EXCLUSIVE;
		f->from = test->value;
		return;
	}
}

static void
request_make(struct scan *s)
{
	struct frows_filter *filters = palloc((s->test_count + 1) * sizeof(*filters));
	struct frows_scan *r = &s->request;

	memset(r, 0, sizeof(*r));
	r->of = frond_table_of(s->table);
	r->reverse = s->reverse;
	r->index = s->index ? s->index->number : 0;
	r->columns = s->columns;
	r->column_count = s->column_count;
	r->equal = s->equal;
	if (s->sums)
		frond_sums_ask(s->sums, r);
	r->filters = filters;
	s->choice_key = -1;
	for (int i = 0; i < s->test_count; i++) {
		const struct scan_test *test = &s->tests[i];

		if (test->place == FROND_IN)
			s->choice_key = (int)r->equal_count;
		if (test->place == FROND_EQUAL || test->place == FROND_IN)
			s->equal[r->equal_count++] = test->value;
		else if (test->place == FROND_BOUND)
			bound_put(s, test, (int)r->equal_count);
		else
			filter_put(test, &filters[r->filter_count++]);
	}
}

static void
scan_start(struct scan *s, ForeignScanState *node)
{
	MemoryContext old;

	MemoryContextReset(s->memory);
	old = MemoryContextSwitchTo(s->memory);
	s->is_begun = true;
	s->is_empty = false;
	s->choice = s->choice_count = 0;
	s->rows = s->at = s->pages = 0;
	s->place = (struct frows_value){ NULL, 0 };
	for (int i = 0; i < s->test_count && !s->is_empty; i++)
		s->is_empty = !test_evaluate(s, &s->tests[i], node->ss.ps.ps_ExprContext);
	if (!s->is_empty)
		request_make(s);
	s->has_more = !s->is_empty;
	s->is_alone = s->is_whole_key && !s->sums && s->choice_count <= GET_KEYS &&
		      frond_is_only_scan(node->ss.ps.state, node->ss.ps.plan);
	MemoryContextSwitchTo(old);
}

/* ---- Pages ---- */

/* Keeps the values of rows from `first` on, which are the connection's until its next request. */
static void
page_keep(struct scan *s, int first)
{
	size_t from = (size_t)first * s->column_count, count = (size_t)s->rows * s->column_count;
	size_t bytes = 0;
	char *to;

	for (size_t i = from; i < count; i++)
		bytes += s->page[i].len > 0 ? s->page[i].len : 0;
	to = MemoryContextAllocHuge(s->page_memory, bytes + 1);
	for (size_t i = from; i < count; i++) {
		if (s->page[i].len <= 0)
			continue;
		memcpy(to, s->page[i].ptr, s->page[i].len);
		s->page[i].ptr = to;
		to += s->page[i].len;
	}
}

/* Room for one more row. */
static struct frows_value *
page_row(struct scan *s)
{
	size_t size = Max(s->column_count, 1) * sizeof(*s->page);

	if (s->rows == s->room) {
		s->room = s->room ? 2 * s->room : ROWS_FIRST;
		s->page = s->page ? repalloc_huge(s->page, s->room * size)
				  : MemoryContextAllocHuge(s->page_memory, s->room * size);
	}
	return s->page + (size_t)s->rows * s->column_count;
}

static void
page_ask(struct scan *s, struct frows *c)
{
	if (s->choice_key >= 0)
		s->equal[s->choice_key] = s->choices[s->choice];
	s->request.rows = s->pages ? 0 : s->first_rows;
	s->request.bytes = s->pages ? 0 : FIRST_PAGE_BYTES;
	if (!frows_scan_page_at(c, &s->request, s->place))
		frond_fail(c);
}

/* Where the next page begins, once this one was read. */
static void
page_end(struct scan *s, struct frows *c)
{
	s->has_more = frows_has_more(c);
	if (s->has_more) {
		MemoryContext old = MemoryContextSwitchTo(s->page_memory);

		s->place = frond_value_copy(frows_scan_place(c));
		MemoryContextSwitchTo(old);
		return;
	}
	s->place = (struct frows_value){ NULL, 0 };
	s->has_more = s->choice_key >= 0 && ++s->choice < s->choice_count;
}

static void
page_scan(struct scan *s, struct frows *c)
{
	int first = s->rows;

	page_ask(s, c);
	while (frows_scan_row(c, page_row(s)))
		s->rows++;
	page_keep(s, first);
	page_end(s, c);
}

/* Which keys the next request gets; of one that may have one value only it is the first. */
static int
keys_end(const struct scan *s)
{
	return s->choice_key < 0 ? 1 : Min(s->choice_count, s->choice + GET_KEYS);
}

/* In the order of their bytes, as everybody does. True: the only one was waited for. */
static bool
keys_lock(struct scan *s)
{
	if (s->choice_key < 0)
		return frond_lock_ahead(s->table, s->user, s->equal, s->lock);
	for (int i = s->choice; i < keys_end(s); i++) {
		s->equal[s->choice_key] = s->choices[i];
		frond_lock_wait(s->table, s->user, s->equal, s->lock);
	}
	return false;
}

/* Asks for keys from `choice` on, as many as one request gets. */
static bool
keys_get(struct scan *s, struct frows *c)
{
	frows_get(c, &s->request.of, s->columns, s->column_count);
	for (int i = s->choice; i < keys_end(s); i++) {
		if (s->choice_key >= 0)
			s->equal[s->choice_key] = s->choices[i];
		frows_get_key(c, s->equal, s->request.equal_count);
	}
	return frows_get_run(c);
}

static void
page_get(struct scan *s, struct frows *c)
{
	int first = s->rows;
	bool found;

	if (!keys_get(s, c)) {
		/* The server may have closed the connection while nobody used it. */
		if (!s->is_alone || !frows_was_closed(c))
			frond_fail(c);
		c = frond_link_outside(s->table->server, s->user);
		if (!keys_get(s, c))
			frond_fail(c);
	}
	s->choice = keys_end(s);
	while (frows_get_row(c, &found, page_row(s)))
		s->rows += found;
	page_keep(s, first);
	s->has_more = s->choice_key >= 0 && s->choice < s->choice_count;
}

/* A row that the transaction has changed itself. False: frond has to be asked. */
static bool
page_get_own(struct scan *s)
{
	const struct frows_value *own = NULL;
	struct frows_value *row;

	if (s->is_whole_key && s->choice_key < 0 && !s->sums && !frond_marks_are_beside(s->marks))
		own = frond_own_find(s->table, s->user, s->equal);
	if (!own)
		return false;
	row = page_row(s);
	for (int i = 0; i < s->column_count; i++)
		row[i] = own[s->attnums[i] - 1];
	page_keep(s, s->rows++);
	s->has_more = false;
	return true;
}

/* Reads the next page behind the rows that are here. */
static void
page_read(struct scan *s)
{
	struct frows *c;
	bool waited = s->is_whole_key && s->lock != NoLock && keys_lock(s);

	if (!waited && page_get_own(s))
		return;
	if (frond_marks_are_beside(s->marks))
		c = frond_link_beside(s->table->server, s->user);
	else if (s->is_alone)
		c = frond_link_unasked(s->table->server, s->user);
	else
		c = frond_link_inside(s->table->server, s->user, false);
	if (s->is_whole_key)
		page_get(s, c);
	else
		page_scan(s, c);
	if (waited)
		frond_lock_check(s->table, s->user, s->equal);
	s->pages++;
}

/* The next page in the place of this one. */
static void
page_next(struct scan *s, ForeignScanState *node)
{
	frond_modify_flush(s->table->relid, node->ss.ps.state);
	/* The place of the last page is in the memory of that page, and is needed for this one. */
	s->place = frond_value_copy(s->place);
	MemoryContextReset(s->page_memory);
	s->page = NULL;
	s->rows = s->room = s->at = 0;
	page_read(s);
}

/* All pages, of which one row is left. */
static void
sums_read(struct scan *s, ForeignScanState *node)
{
	MemoryContext old = MemoryContextSwitchTo(s->memory);

	frond_sums_clear(s->sums);
	MemoryContextReset(s->page_memory);
	while (s->has_more) {
		struct frows *c;

		CHECK_FOR_INTERRUPTS();
		frond_modify_flush(s->table->relid, node->ss.ps.state);
		c = frond_link_inside(s->table->server, s->user, false);
		page_ask(s, c);
		frond_sums_add(s->sums, c);
		page_end(s, c);
		s->pages++;
	}
	s->rows = 1;
	MemoryContextSwitchTo(old);
}

void
frond_scan_read_all(Oid relid)
{
	dlist_iter at;

	dlist_foreach(at, &open_scans)
	{
		struct scan *s = dlist_container(struct scan, open, at.cur);

		while (s->table->relid == relid && s->is_begun && s->has_more) {
			CHECK_FOR_INTERRUPTS();
			if (MemoryContextMemAllocated(s->page_memory, true) > KEPT_BYTES)
				ereport(ERROR, errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					errmsg("a query that goes on while \"%s\" is written has "
					       "more rows than %d bytes",
					       s->table->table, KEPT_BYTES));
			page_read(s);
		}
	}
}

void
frond_scan_forget(int level)
{
	dlist_mutable_iter at;

	dlist_foreach_modify(at, &open_scans)
	{
		struct scan *s = dlist_container(struct scan, open, at.cur);

		if (s->level >= level)
			scan_unlink(s);
	}
}

void
frond_scan_rise(int level)
{
	dlist_iter at;

	dlist_foreach(at, &open_scans)
	{
		struct scan *s = dlist_container(struct scan, open, at.cur);

		s->level = Min(s->level, level - 1);
	}
}

/* ---- Rows ---- */

static void
row_store(struct scan *s, const struct frows_value *values, TupleTableSlot *slot)
{
	memset(slot->tts_isnull, true, slot->tts_tupleDescriptor->natts);
	for (int i = 0; i < s->column_count; i++) {
		int attnum = s->attnums[i];

		if (!attnum) {
			uint64 row = (uint64)frows_int(values[i]);

			ItemPointerSet(&slot->tts_tid, (BlockNumber)(row >> ROW_BITS),
				       (OffsetNumber)(row & PG_UINT16_MAX));
			continue;
		}
		if (values[i].len < 0)
			continue;
		slot->tts_values[attnum - 1] = frond_value_get(&s->table->columns[attnum - 1],
							       values[i]);
		slot->tts_isnull[attnum - 1] = false;
	}
	if (s->marks)
		frond_marks_give(s->marks, values, slot);
	ExecStoreVirtualTuple(slot);
}

/* Reads pages until a row is here that was not given. False: there are no more. */
static bool
row_find(struct scan *s, ForeignScanState *node)
{
	while (s->at == s->rows) {
		CHECK_FOR_INTERRUPTS();
		if (!s->has_more)
			return false;
		page_next(s, node);
	}
	return true;
}

static const struct frows_value *
row_values(const struct scan *s)
{
	return s->page + (size_t)s->at * s->column_count;
}

/* One group, which may have parts in several pages. */
static void
group_next(struct scan *s, ForeignScanState *node, TupleTableSlot *slot)
{
	MemoryContext old = MemoryContextSwitchTo(s->group_memory);
	bool is_begun = false;

	MemoryContextReset(s->group_memory);
	while (row_find(s, node)) {
		if (!is_begun)
			frond_sums_begin_group(s->sums, row_values(s));
		else if (!frond_sums_is_group(s->sums, row_values(s)))
			break;
		is_begun = true;
		frond_sums_add_group(s->sums, row_values(s));
		s->at++;
	}
	if (is_begun)
		frond_sums_store(s->sums, slot);
	MemoryContextSwitchTo(old);
}

TupleTableSlot *
frond_scan_next(ForeignScanState *node)
{
	TupleTableSlot *slot = node->ss.ss_ScanTupleSlot;
	struct scan *s = node->fdw_state;

	ExecClearTuple(slot);
	if (!s->is_begun) {
		scan_start(s, node);
		if (s->sums && !s->is_grouped)
			sums_read(s, node);
	}
	if (s->is_grouped) {
		group_next(s, node, slot);
		return slot;
	}
	if (!row_find(s, node))
		return slot;
	if (s->sums)
		frond_sums_store(s->sums, slot);
	else
		row_store(s, row_values(s), slot);
	s->at++;
	return slot;
}

void
frond_scan_again(ForeignScanState *node)
{
	struct scan *s = node->fdw_state;

	if (!s || !s->is_begun)
		return;
	/* All that there is, is here, unless it is another question. */
	if (!node->ss.ps.chgParam && !s->has_more && ((s->sums && !s->is_grouped) || s->pages <= 1))
		s->at = 0;
	else
		s->is_begun = false;
}

void
frond_scan_end(ForeignScanState *node)
{
	struct scan *s = node->fdw_state;

	if (!s)
		return;
	scan_unlink(s);
	MemoryContextDelete(s->memory);
	MemoryContextDelete(s->page_memory);
	if (s->group_memory)
		MemoryContextDelete(s->group_memory);
}

/* ---- EXPLAIN ---- */

static void
explain_clauses(const char *label, List *clauses, List *context, bool prefix, ExplainState *es)
{
	if (clauses)
		ExplainPropertyText(label,
				    deparse_expression((Node *)make_ands_explicit(clauses), context,
						       prefix, false),
				    es);
}

/* The aggregates, and the table, which PostgreSQL does not name itself then. */
static void
explain_sums(const ForeignScan *plan, const RangeTblEntry *rte, List *context, ExplainState *es)
{
	List *sums = NIL, *groups = NIL;
	ListCell *cell;

	foreach (cell, plan->fdw_scan_tlist) {
		Node *e = (Node *)((TargetEntry *)lfirst(cell))->expr;
		char *text = deparse_expression(e, context, false, false);

		if (IsA(e, Aggref))
			sums = lappend(sums, text);
		else
			groups = lappend(groups, text);
	}
	ExplainPropertyText("Frond Table", get_rel_name(rte->relid), es);
	if (groups)
		ExplainPropertyList("Frond Groups", groups, es);
	if (sums)
		ExplainPropertyList("Frond Sums", sums, es);
}

/* The condition of each test, from where the plan has it (FROND_TEST_CLAUSE). */
static List *
clauses_of_tests(const ForeignScan *plan, List *tests)
{
	List *clauses = NIL;
	ListCell *cell;

	if (plan->fdw_recheck_quals)
		return plan->fdw_recheck_quals;
	foreach (cell, tests)
		clauses = lappend(clauses, list_nth(plan->scan.plan.qual,
						    list_nth_int(lfirst(cell), FROND_TEST_CLAUSE)));
	return clauses;
}

void
frond_scan_explain(ForeignScanState *node, ExplainState *es)
{
	ForeignScan *plan = (ForeignScan *)node->ss.ps.plan;
	List *tests = list_nth(plan->fdw_private, FROND_PRIVATE_TESTS);
	List *how = list_nth(plan->fdw_private, FROND_PRIVATE_SCAN);
	List *context = set_deparse_context_plan(es->deparse_cxt, &plan->scan.plan, NIL);
	List *key = NIL, *filters = NIL, *clauses;
	bool prefix = list_length(es->rtable) > 1 || es->verbose;
	const RangeTblEntry *rte = exec_rt_fetch(bms_singleton_member(plan->fs_relids),
						 node->ss.ps.state);
	ListCell *test, *clause;

	if (list_length(plan->fdw_private) > FROND_PRIVATE_SUMS) {
		explain_sums(plan, rte, context, es);
		clauses = list_nth(plan->fdw_private, FROND_PRIVATE_CLAUSES);
		context = deparse_context_for(get_rel_name(rte->relid), rte->relid);
		prefix = false;
	} else {
		clauses = clauses_of_tests(plan, tests);
	}
	forboth(test, tests, clause, clauses)
	{
		if (linitial_int(lfirst(test)) == FROND_FILTER)
			filters = lappend(filters, lfirst(clause));
		else
			key = lappend(key, lfirst(clause));
	}
	if (lthird_int(how)) {
		const struct frond_index *index = frond_index_numbered(
			frond_table_get(rte->relid, frond_user_of(rte)), (uint32)lthird_int(how));

		ExplainPropertyText("Frond Index", index ? index->name : "dropped", es);
	}
	explain_clauses("Frond Key", key, context, prefix, es);
	explain_clauses("Frond Filter", filters, context, prefix, es);
	if (linitial_int(how))
		ExplainPropertyText("Frond Order", "backward", es);
	if (lsecond_int(how))
		ExplainPropertyInteger("Frond Rows", NULL, lsecond_int(how), es);
	if (es->analyze && node->fdw_state)
		ExplainPropertyInteger("Frond Pages", NULL, ((struct scan *)node->fdw_state)->pages,
				       es);
}
