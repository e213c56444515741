#include "base/rand.h"
#include "door/rows/data/filter.h"
#include "door/rows/data/index.h"
#include "door/rows/data/rows.h"
#include "model/timed/tables/groups.h"
#include "net/memory.h"

enum {
	SCAN_PAIRS = 50000,            /* that one page reads at most */
	SCAN_ENTRIES = 10000,          /* rows that one page looks at most, by an index */
	SCAN_BYTES = 16 * 1024 * 1024, /* likewise, keys and values */
	SCAN_PAGE_LEAST = 64 * 1024,   /* of a page while memory is short */
	/* What the store is asked for at a time: twice a page, or so much beyond it; at least. */
	SCAN_STRETCH_BEYOND = 64 * 1024,
	SCAN_STRETCH_LEAST = 16 * 1024,
	SEED_BYTES = 8,
};

struct scanning {
	struct rows_scan asked; /* by the request */
	struct rows_scan scan;  /* that this attempt does */
	struct pick pick;
	struct filters *filters;
	struct sums *sums;
	struct groups *groups; /* NULL: the sums are of all rows of the page */
	struct rand_seq random;
	uint32_t rows;        /* that were put */
	size_t page_bytes;    /* that the rows of an answer may have, about */
	size_t stretch_bytes; /* that the store is asked for at a time */
};

/* Where rows come from: the table, or one of its indexes. */
struct source {
	struct table_scan *scan;        /* in the order of the key; or … */
	struct table_index_scan *index; /* … of the entries */
	size_t entries;                 /* rows that the index has given */
};

/* ---- The range ---- */

/* An end of the range: what is equal, and what the bound has beyond. */
static enum status
edge_make(struct rows_request *r, const struct table *t, const struct rows_scan *scan,
	  const struct rows_edge *edge, struct table_edge *ret)
{
	size_t hash = t->schema->hash_count - t->hidden, equal = scan->equal_count - hash;
	struct doc_scalar *parts = arena_alloc(r->arena, 2 * TABLE_KEY_COLUMNS * sizeof(*parts));

	if (!parts)
		return STATUS_LIMIT;
	if (scan->equal_count + edge->count > rows_table_key_columns(t))
		return rows_fail(r, ROWS_STATE_DEFINITION, "a key has %zu columns here",
				 rows_table_key_columns(t));
	TRY(rows_key_parts(r, t, hash, scan->equal + hash, equal, parts));
	TRY(rows_key_parts(r, t, hash + equal, edge->values, edge->count, parts + equal));
	*ret = (struct table_edge){ .parts = parts, .count = equal + edge->count };
	if (edge->kind != ROWS_BOUND_NONE)
		ret->kind = edge->kind == ROWS_BOUND_INCLUSIVE ? TIMED_BOUND_INCLUSIVE
							       : TIMED_BOUND_EXCLUSIVE;
	else
		ret->kind = equal ? TIMED_BOUND_INCLUSIVE : TIMED_BOUND_END;
	return STATUS_OK;
}

static enum status
range_make(struct rows_request *r, const struct table *t, const struct rows_scan *scan,
	   struct table_key *partition, struct table_scan_options *ret)
{
	size_t hash = t->schema->hash_count - t->hidden;

	if (scan->equal_count < hash) {
		if (!scan->equal_count && !scan->from.count && !scan->to.count)
			return STATUS_OK;
		return rows_fail(r, ROWS_STATE_UNSUPPORTED,
				 "only rows with equal values of all %zu hash columns lie together",
				 hash);
	}
	TRY(rows_key_make(r, t, scan->equal, hash, partition));
	ret->partition = partition;
	TRY(edge_make(r, t, scan, &scan->from, &ret->from));
	return edge_make(r, t, scan, &scan->to, &ret->to);
}

/* ---- Where rows come from ---- */

static enum status
source_open_table(struct rows_request *r, struct unit_table *t, struct scanning *s,
		  struct source *ret)
{
	struct table_scan_options options = { .reverse = s->scan.reverse,
					      .after = s->scan.place,
					      .wanted = &s->pick.wanted,
					      .statics = s->pick.statics,
					      .rows = s->scan.rows,
					      .borrows = true,
					      .pairs_most = SCAN_PAIRS,
					      .bytes_most = SCAN_BYTES };
	struct table_key partition;

	TRY(range_make(r, t->table, &s->scan, &partition, &options));
	return table_scan_open(&t->timed, &options, &ret->scan);
}

static enum status
source_open_index(struct unit_table *t, struct scanning *s, const struct table_index *index,
		  const struct table_index_interval *interval, struct source *ret)
{
	const struct table_index_options options = { .interval = *interval,
						     .reverse = s->scan.reverse,
						     .after = s->scan.place,
						     .statics = s->pick.statics,
						     .wanted = &s->pick.wanted,
						     .of_entry = &s->pick.wanted,
						     .rows = s->scan.rows };

	return table_index_open(&t->timed, index, &options, &ret->index);
}

static void
source_close(struct source *source)
{
	table_scan_close(source->scan);
	table_index_close(source->index);
}

/* STATUS_NOT_FOUND at the end, and where the scan is to go on by another request. */
static enum status
source_next(struct source *source, struct arena *arena, struct table_row *ret, bool *ret_paused)
{
	enum status status;

	*ret_paused = false;
	if (source->scan) {
		status = table_scan_next(source->scan, arena, ret);
		if (status == STATUS_NOT_FOUND)
			*ret_paused = table_scan_paused(source->scan);
		return status;
	}
	*ret_paused = source->entries == SCAN_ENTRIES;
	if (*ret_paused)
		return STATUS_NOT_FOUND;
	source->entries++;
	return table_index_next(source->index, arena, ret);
}

static enum status
source_place(const struct source *source, struct buf *ret)
{
	return source->scan ? table_scan_place(source->scan, ret)
			    : table_index_place(source->index, ret);
}

/* ---- Rows ---- */

static bool
is_sampled(struct scanning *s)
{
	return !s->scan.sample || (uint32_t)rand_seq_next(&s->random) < s->scan.sample;
}

static enum status
scan_take_row(struct rows_request *r, const struct table *t, struct scanning *s,
	      const struct table_row *row)
{
	bool passes;

	if (!row->is_row || !is_sampled(s))
		return STATUS_OK;
	TRY(rows_filters_pass(s->filters, r, row, &passes));
	if (!passes)
		return STATUS_OK;
	s->rows++;
	if (s->groups)
		return rows_groups_add(s->groups, r, row);
	if (s->sums)
		return rows_sums_add(s->sums, r, row);
	for (size_t i = 0; i < s->pick.count; i++)
		TRY(rows_pick_put(r, t, s->pick.columns[i], row, r->out));
	return buf_status(r->out);
}

static bool
is_enough(const struct scanning *s, const struct buf *out, size_t from)
{
	return (s->scan.rows && s->rows >= s->scan.rows) || out->len - from >= s->page_bytes;
}

/* `*ret_more`: the scan goes on from its place. */
static enum status
take_rows(struct rows_request *r, const struct table *t, struct scanning *s, struct source *source,
	  bool *ret_more)
{
	struct arena_mark mark = arena_mark(r->arena);
	size_t from = r->out->len;
	struct table_row row;
	enum status status;

	do {
		arena_reset(r->arena, mark);
		status = source_next(source, r->arena, &row, ret_more);
		if (status == STATUS_NOT_FOUND)
			return STATUS_OK;
		TRY(status);
		TRY(scan_take_row(r, t, s, &row));
	} while (!is_enough(s, r->out, from));
	arena_reset(r->arena, mark);
	*ret_more = true;
	return STATUS_OK;
}

static enum status
put_place(struct rows_request *r, const struct source *source, bool more)
{
	size_t at;

	rows_put_u8(r->out, more);
	at = r->out->len;
	rows_put_u32(r->out, 0);
	if (more)
		TRY(source_place(source, r->out));
	rows_set_u32(r->out, at, (uint32_t)(r->out->len - at - 4));
	return buf_status(r->out);
}

static enum status
put_page(struct rows_request *r, const struct table *t, struct scanning *s, struct source *source)
{
	bool is_list = !s->sums || s->groups;
	size_t at = r->out->len;
	bool more;

	if (is_list)
		rows_put_u32(r->out, 0);
	TRY(take_rows(r, t, s, source, &more));
	if (is_list)
		rows_set_u32(r->out, at, s->groups ? rows_groups_end(s->groups, r->out) : s->rows);
	else
		rows_sums_put(s->sums, r->out);
	return put_place(r, source, more);
}

/* ---- The number of all rows ---- */

static bool
counts_all_rows(const struct rows_scan *s)
{
	return s->sums && !s->column_count && !s->groups && !s->index && !s->equal_count &&
	       s->from.kind == ROWS_BOUND_NONE && s->to.kind == ROWS_BOUND_NONE &&
	       !s->filter_count && !s->rows && !s->sample && !s->place.len;
}

/* The answer of a page of sums, if the table knows how many rows it has. */
static enum status
put_count(struct rows_request *r, struct unit_table *t, bool *ret_done)
{
	uint64_t rows;

	TRY(table_count_read(&t->timed, KV_READ, &rows, ret_done));
	if (!*ret_done)
		return STATUS_OK;
	rows_put_u64(r->out, rows);
	rows_put_u8(r->out, false);
	rows_put_u32(r->out, 0);
	return buf_status(r->out);
}

/* ---- Rows that are counted by their entries ---- */

static bool
counts_entries(const struct scanning *s, const struct unit_table *t,
	       const struct table_index *index)
{
	const struct rows_scan *asked = &s->asked;

	return index && s->sums && !asked->column_count && !asked->filter_count && !asked->rows &&
	       !asked->sample && !asked->reverse && table_index_stands_for_rows(&t->timed, index);
}

/* Groups, or with none of them how many rows there are. */
static enum status
take_counts(struct rows_request *r, struct scanning *s, struct table_index_groups *from,
	    uint64_t *ret_rows)
{
	struct arena_mark mark = arena_mark(r->arena);
	size_t begin = r->out->len;
	enum status status;
	uint64_t rows;

	*ret_rows = 0;
	do {
		struct table_row row;

		arena_reset(r->arena, mark);
		status = table_index_groups_next(from, r->arena, &row, &rows);
		if (status == STATUS_OK && s->groups)
			status = rows_groups_put(s->groups, r, &row, rows);
		*ret_rows += rows;
	} while (status == STATUS_OK && r->out->len - begin < s->page_bytes);
	arena_reset(r->arena, mark);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
put_counts(struct rows_request *r, struct scanning *s, struct table_index_groups *from)
{
	bool more;
	size_t at = r->out->len;
	uint64_t rows;

	if (s->groups)
		rows_put_u32(r->out, 0);
	TRY(take_counts(r, s, from, &rows));
	if (s->groups)
		rows_set_u32(r->out, at, rows_groups_end(s->groups, r->out));
	else
		rows_put_u64(r->out, rows);
	more = table_index_groups_paused(from);
	rows_put_u8(r->out, more);
	at = r->out->len;
	rows_put_u32(r->out, 0);
	if (more)
		TRY(table_index_groups_place(from, r->out));
	rows_set_u32(r->out, at, (uint32_t)(r->out->len - at - 4));
	return buf_status(r->out);
}

/* `*ret_done`: false where rows have to be looked at all the same. */
static enum status
scan_counts(struct rows_request *r, struct unit_table *t, struct scanning *s,
	    const struct table_index *index, const struct table_index_interval *interval,
	    bool *ret_done)
{
	const struct table_index_groups_options options = { .interval = *interval,
							    .columns = s->scan.groups,
							    .after = s->scan.place,
							    .wanted = &s->pick.wanted,
							    .most = SCAN_PAIRS };
	struct table_index_groups *from;
	enum status status = table_index_groups_open(&t->timed, index, &options, &from);

	*ret_done = status != STATUS_UNSUPPORTED;
	if (!*ret_done)
		return STATUS_OK;
	TRY(status);
	status = put_counts(r, s, from);
	table_index_groups_close(from);
	return status;
}

/* ---- The request ---- */

static enum status
scan_prepare(struct rows_request *r, const struct table *t, const struct table_index *index,
	     struct scanning *s)
{
	TRY(rows_table_check_key(r, t));
	TRY(rows_pick_make(r, t, s->scan.columns, s->scan.column_count,
			   s->scan.filter_count + s->scan.groups, &s->pick));
	TRY(rows_filters_make(r, t, &s->scan, &s->pick, &s->filters));
	if (s->scan.sums)
		TRY(rows_sums_make(r, t, &s->scan, &s->pick, &s->sums));
	if (s->scan.groups)
		TRY(rows_groups_make(r, t, index, s->scan.groups, &s->pick, s->sums, &s->groups));
	rows_pick_end(&s->pick);
	return STATUS_OK;
}

static enum status
scan_rows(struct unit *u, struct scanning *s)
{
	struct table_index_interval interval;
	const struct table_index *index = NULL;
	struct rows_request *r = u->r;
	struct source source = { 0 };
	struct unit_table *t;
	enum status status;
	bool is_counted;

	TRY(rows_unit_table_open(u, &s->scan.table, &t));
	if (counts_all_rows(&s->scan)) {
		TRY(put_count(r, t, &is_counted));
		if (is_counted)
			return STATUS_OK;
	}
	if (s->scan.index)
		TRY(rows_index_scan_make(r, t->table, &s->scan, &index, &interval, &s->scan.filters,
					 &s->scan.filter_count));
	TRY(scan_prepare(r, t->table, index, s));
	if (counts_entries(s, t, index)) {
		TRY(scan_counts(r, t, s, index, &interval, &is_counted));
		if (is_counted)
			return STATUS_OK;
	}
	status = index ? source_open_index(t, s, index, &interval, &source)
		       : source_open_table(r, t, s, &source);
	if (status == STATUS_OK)
		status = put_page(r, t->table, s, &source);
	source_close(&source);
	return status;
}

static enum status
scan_body(struct unit *u, void *arg)
{
	struct scanning *s = arg;
	enum status status;

	s->scan = s->asked;
	s->filters = NULL;
	s->sums = NULL;
	s->groups = NULL;
	s->rows = 0;
	/* The scan has had its turn for so much. In a transaction nothing else counts it. */
	kv_tx_set_memory(u->tx, u->txn ? NULL : arena_part(u->r->arena), s->stretch_bytes);
	status = scan_rows(u, s);
	rows_filters_free(s->filters);
	rows_sums_free(s->sums);
	rows_groups_free(s->groups);
	return status;
}

/* Thousands of small pages wait for turns to read: none takes much more than it needs. */
static size_t
stretch_for(size_t page_bytes)
{
	size_t beyond = page_bytes < SCAN_STRETCH_BEYOND ? page_bytes : SCAN_STRETCH_BEYOND;
	size_t stretch = page_bytes + beyond;

	return stretch > SCAN_STRETCH_LEAST ? stretch : SCAN_STRETCH_LEAST;
}

enum status
rows_serve_scan(struct rows_request *r)
{
	struct scanning s = { 0 };
	uint64_t seed;

	TRY(rows_scan_read(r->body, r->arena, &s.asked, &r->err));
	r->schema = s.asked.table.schema;
	r->table = s.asked.table.name;
	TRY(rows_request_allow(r, GRANT_SELECT, r->schema, r->table));
	s.page_bytes = s.asked.bytes ? s.asked.bytes : ROWS_PAGE_BYTES;
	if (s.page_bytes > ROWS_PAGE_MOST_BYTES)
		s.page_bytes = ROWS_PAGE_MOST_BYTES;
	s.page_bytes = net_memory_page_bytes(net_stream_session(r->client->stream), s.page_bytes,
					     SCAN_PAGE_LEAST < s.page_bytes ? SCAN_PAGE_LEAST
									    : s.page_bytes);
	s.stretch_bytes = stretch_for(s.page_bytes);
	/* The rows as the store has them, twice, and what is made of them. */
	TRY(net_memory_turn_to_read(net_stream_session(r->client->stream),
				    s.page_bytes + 2 * s.stretch_bytes));
	rand_bytes(&seed, SEED_BYTES);
	s.random.state = seed;
	return rows_unit_run(r, scan_body, &s, false);
}
