/* How a SELECT comes by rows: of the store by keys and scans, of tables that are made up. */
#include "door/cql/run/select.h"

#include <assert.h>
#include <stdio.h>

#include "base/clear.h"
#include "door/cql/run/ahead.h"
#include "door/cql/run/joint.h"
#include "door/cql/schema/system.h"
#include "loop/step.h"

enum {
	FIRST_ROWS = 100, /* that a scan is asked for where neither a page nor a limit says it */
	MOVED_BYTES = 64 * 1024, /* of rows that become the answer, and are not copied into it */
};

/* Going through the rows of a table. */
struct reading {
	struct select *s;
	struct page at;   /* where it is */
	struct buf place; /* of a scan, behind the last row */
	/* With an index: the one in front of the entry whose partition is read. */
	struct buf before;
	struct buf state; /* of the next page; empty: there is none */
	bool resumes;     /* at.token is the one of the row before */
	struct ahead ahead;
	struct timed timed; /* of the transaction: set when that has begun */
};

/* ---- Pages ---- */

/* True once the page has its rows. */
static bool
page_is_full(const struct select *s)
{
	return s->most && s->row_count >= s->most;
}

static void
page_end(struct reading *r, struct str place)
{
	struct select *s = r->s;

	r->at.token = s->row.token;
	r->at.left = s->left;
	r->at.part_left = s->part_left;
	r->at.skip = s->skip;
	r->at.at_us = r->timed.at_us;
	r->at.place = place;
	buf_clear(&r->state);
	page_put(&r->state, page_owner(s->run), &r->at);
}

static enum status
page_begin(struct reading *r, const struct params *p)
{
	struct select *s = r->s;

	if (!p->paging_state.len)
		return STATUS_OK;
	if (page_read(p->paging_state, page_owner(s->run), &r->at) != STATUS_OK)
		return request_fail(s->run->r, CQL_CODE_PROTOCOL,
				    "Invalid value for the paging state");
	s->left = r->at.left < s->left ? r->at.left : s->left;
	s->part_left = r->at.part_left < s->part_most ? r->at.part_left : s->part_most;
	s->skip = r->at.skip < s->skip ? r->at.skip : s->skip;
	r->resumes = true;
	return STATUS_OK;
}

/* ---- A row ---- */

/* True for a part of the key by which the partition is read: all of its rows have it. */
static bool
term_names_partition(const struct where_term *term)
{
	return term->relation->left == CQL_LEFT_COLUMN &&
	       term->columns[0]->kind == SCHEMA_PARTITION &&
	       (term->relation->op == CQL_OP_EQ || term->relation->op == CQL_OP_IN);
}

/*
 * Entries do not carry the documents that paths lead into. Of tables that are made up all rows come
 * by here, whichever partitions are asked for.
 */
static enum status
row_matches(const struct select *s, bool *ret)
{
	bool of_partition = s->plan.by_partitions && !s->run->table->system;

	*ret = true;
	for (size_t i = 0; i < s->where.count && *ret; i++) {
		const struct where_term *term = &s->where.terms[i];

		if (of_partition ? term_names_partition(term)
				 : s->carried && select_is_settled(s, i))
			continue;
		TRY(where_term_matches(s->run->q, term, &s->row, ret));
	}
	return STATUS_OK;
}

/*
 * Takes the row that was filled, if it matches. `*ret_more`: others are wanted, of the partition
 * too unless `*ret_skips`.
 */
static enum status
take_row(struct reading *r, bool *ret_more, bool *ret_skips)
{
	struct select *s = r->s;
	bool matches;

	*ret_more = true;
	*ret_skips = false;
	if (request_gives_way(s->run->r))
		return STATUS_LIMIT;
	TRY(row_matches(s, &matches));
	if (!matches)
		return step_count(1);
	/* PER PARTITION LIMIT counts groups where there are some (select_emit.c). */
	if (s->part_left != UINT64_MAX && (!s->groups || s->s->distinct)) {
		*ret_skips = s->part_left <= 1;
		if (!s->part_left)
			return STATUS_OK;
		s->part_left--;
	}
	return select_emit(s, ret_more);
}

/* ---- One row by its key ---- */

static enum status
read_one(struct reading *r, uint64_t number, bool *ret_more)
{
	struct select *s = r->s;
	struct table_row stored;
	enum status status;
	bool skips;

	*ret_more = true;
	/* Also where there is no row: a statement may name 10,000 of them. */
	TRY(step_count(1));
	status = ahead_read_row(&r->ahead, s, &r->timed, number, &stored);
	if (status == STATUS_NOT_FOUND || (status == STATUS_OK && !stored.is_row))
		return STATUS_OK;
	TRY(status);
	TRY(row_fill(s->run->q, &stored, &s->row));
	return take_row(r, ret_more, &skips);
}

/* ---- Scans ---- */

static size_t
rows_wanted(const struct select *s)
{
	if (s->groups || s->where.count > s->run->table->partition_count + 8)
		return 0;
	if (s->skip)
		return 0;
	if (s->left != UINT64_MAX && (!s->most || s->left < s->most))
		return (size_t)s->left;
	return s->most ? s->most - s->row_count : FIRST_ROWS;
}

/* True if a row of the scan begins another partition than the one before. */
static bool
is_other_partition(const struct select *s, const struct cql_value *last)
{
	for (size_t i = 0; i < s->run->table->partition_count; i++)
		if (last[i].presence != CQL_SET || !str_eq(last[i].bytes, s->row.values[i].bytes))
			return true;
	return false;
}

/* Keeps the partition's key, above which the arena is reset. */
static enum status
keep_partition(struct select *s, struct cql_value *last)
{
	struct arena *arena = s->run->r->arena;

	/* A partition's key is kept as long as the request; rows are not. */
	for (size_t i = 0; i < s->run->table->partition_count; i++) {
		last[i] = s->row.values[i];
		TRY(arena_copy(arena, s->row.values[i].bytes, &last[i].bytes));
	}
	s->mark = arena_mark(arena);
	return STATUS_OK;
}

/* Where rows come from. */
struct source {
	struct table_scan *scan;        /* or NULL, and … */
	struct table_index_scan *index; /* … rows of an index; or both, and the scan … */
	struct str before;              /* … is of a partition behind this place of the index */
};

static enum status
source_next(const struct source *source, struct arena *arena, struct table_row *ret)
{
	return source->scan ? table_scan_next(source->scan, arena, ret)
			    : table_index_next(source->index, arena, ret);
}

/* Where the next page begins. */
static enum status
source_place(const struct source *source, struct buf *ret)
{
	AUTO(buf_release) struct buf place = BUF_SHORT(TABLE_PLACE_BYTES);

	buf_clear(ret);
	if (!source->index)
		return table_scan_place(source->scan, ret);
	if (!source->scan)
		TRY(table_index_place(source->index, &place));
	else
		TRY(table_scan_place(source->scan, &place));
	if (source->scan)
		page_put_places(ret, source->before, buf_str(&place));
	else
		page_put_places(ret, buf_str(&place), STR(""));
	return buf_status(ret);
}

/* Goes through rows. `*ret_more` is false if no more rows are wanted: of this page, or at all. */
static enum status
go_through(struct reading *r, const struct source *source, bool *ret_more)
{
	struct select *s = r->s;
	struct arena *arena = s->run->r->arena;
	bool counts = s->part_most != UINT64_MAX && !s->plan.by_partitions, skips;
	struct cql_value *last = NULL;
	struct table_row stored;

	*ret_more = true;
	if (counts) {
		last = arena_zalloc(arena, s->run->table->partition_count * sizeof(*last));
		if (!last)
			return STATUS_LIMIT;
		s->mark = arena_mark(arena);
	}
	for (;;) {
		enum status status = source_next(source, arena, &stored);

		if (status == STATUS_NOT_FOUND)
			return STATUS_OK;
		TRY(status);
		s->carried = !source->scan && table_index_is_carried(source->index);
		TRY(row_fill(s->run->q, &stored, &s->row));
		if (counts && is_other_partition(s, last)) {
			if (!r->resumes || s->row.token != r->at.token)
				s->part_left = s->part_most;
			r->resumes = false;
			TRY(keep_partition(s, last));
		}
		TRY(take_row(r, ret_more, &skips));
		arena_reset(arena, s->mark);
		if (*ret_more && page_is_full(s)) {
			TRY(source_place(source, &r->place));
			page_end(r, buf_str(&r->place));
			*ret_more = false;
		}
		if (!*ret_more)
			return STATUS_OK;
		if (skips && source->scan)
			TRY(table_scan_skip_partition(source->scan));
	}
}

static enum status
scan(struct reading *r, struct table_scan *opened, bool *ret_more)
{
	const struct source source = { .scan = opened };
	enum status status = go_through(r, &source, ret_more);

	table_scan_close(opened);
	return status;
}

static enum status
scan_range(struct reading *r, uint64_t number, bool *ret_more)
{
	struct table_scan *opened;

	TRY(ahead_open_scan(&r->ahead, r->s, &r->timed, number, r->at.place, rows_wanted(r->s),
			    &opened));
	return scan(r, opened, ret_more);
}

/* The rows of each partition that the statement names. */
static enum status
read_partitions(struct reading *r)
{
	struct select *s = r->s;
	const struct where_plan *plan = &s->plan;
	bool more = true;

	for (; r->at.partition < plan->partition_count; r->at.partition++) {
		for (; r->at.range < plan->range_count; r->at.range++) {
			uint64_t number = r->at.partition * plan->range_count + r->at.range;
			size_t at = s->reverse ? plan->range_count - 1 - (size_t)r->at.range
					       : (size_t)r->at.range;

			/* A page that ended with its last range has no place in the next. */
			if (page_is_full(s)) {
				page_end(r, STR(""));
				return STATUS_OK;
			}
			if (!s->part_left)
				break;
			if (plan->ranges[at].is_row)
				TRY(read_one(r, number, &more));
			else
				TRY(scan_range(r, number, &more));
			arena_reset(s->run->r->arena, s->mark);
			r->at.place = STR("");
			if (!more)
				return STATUS_OK;
		}
		/* A page may have ended with the last row that is wanted of the partition. */
		r->at.place = STR("");
		r->at.range = 0;
		s->part_left = s->part_most;
	}
	return STATUS_OK;
}

/* The rows of a range of tokens, or of the whole table. */
static enum status
read_tokens(struct reading *r)
{
	struct select *s = r->s;
	bool statics = s->run->table->static_count > 0, more;
	const struct table_scan_options options = {
		.from_token = s->plan.from_token,
		.to_token = s->plan.to_token,
		.after = r->at.place,
		.statics = statics,
		.static_alone = statics,
		.wanted = &s->wanted,
		.rows = rows_wanted(s),
		.borrows = true,
	};
	struct table_scan *opened;

	TRY(table_scan_open(&r->timed, &options, &opened));
	return scan(r, opened, &more);
}

/*
 * The moment that AS OF names, as the table's time has it. One that is still to come is refused,
 * since what it shows would change; of the millisecond of now, what has passed can be read.
 */
static enum status
moment_of(struct reading *r, uint64_t *ret_us)
{
	const struct run *run = r->s->run;
	struct timed now;
	int64_t us;

	timed_init(&now, run->tx, run->table->db, NULL, &run->r->err);
	TRY(timed_now(&now));
	us = (int64_t)r->s->at_us + timed_ahead_ms(&now) * 1000;
	*ret_us = us > 0 ? (uint64_t)us : 1;
	if (*ret_us / 1000 > now.now_us / 1000)
		return request_fail(run->r, CQL_CODE_INVALID,
				    "AS OF has a moment that is still to come");
	if (*ret_us > now.now_us)
		*ret_us = now.now_us;
	return STATUS_OK;
}

/* Fixes the moment that is read: the present, or with AS OF one that all pages have in common. */
static enum status
moment_fix(struct reading *r)
{
	const struct run *run = r->s->run;
	uint64_t us = r->at.at_us;

	if (r->s->at_us && !us)
		TRY(moment_of(r, &us));
	if (run->joint)
		return joint_timed(run->joint, run, &r->timed);
	timed_init(&r->timed, run->tx, run->table->db, NULL, &run->r->err);
	if (r->s->at_us)
		timed_at_us(&r->timed, us);
	return timed_now(&r->timed);
}

/* ---- Through an index ---- */

/* The rows of a partition, which an entry of an index of a static column has named. */
static enum status
read_named(struct reading *r, struct table_index_scan *index, const struct table_row *named,
	   struct str after, bool *ret_more)
{
	const struct table_key partition = { .token = named->token,
					     .parts = named->key,
					     .count = r->s->run->table->partition_count };
	const struct table_scan_options options = {
		.partition = &partition,
		.after = after,
		.statics = true,
		.static_alone = true,
		.wanted = &r->s->wanted,
		.rows = rows_wanted(r->s),
		.borrows = true,
	};
	struct source source = { .index = index, .before = buf_str(&r->before) };
	enum status status;

	TRY(table_scan_open(&r->timed, &options, &source.scan));
	status = go_through(r, &source, ret_more);
	table_scan_close(source.scan);
	return status;
}

/* The partitions that an index of a static column names, one after the other. */
static enum status
read_partitions_named(struct reading *r, struct table_index_scan *index, struct str after)
{
	struct select *s = r->s;
	bool more = true;

	while (more) {
		struct table_row named;
		enum status status = table_index_next(index, s->run->r->arena, &named);

		if (status == STATUS_NOT_FOUND)
			return STATUS_OK;
		TRY(status);
		/* The rows of it take what is above the mark; the key of the partition stays. */
		s->mark = arena_mark(s->run->r->arena);
		TRY(read_named(r, index, &named, after, &more));
		after = STR("");
		buf_clear(&r->before);
		TRY(table_index_place(index, &r->before));
	}
	return STATUS_OK;
}

static enum status
read_indexed(struct reading *r)
{
	struct select *s = r->s;
	const struct table_index *index = s->index.index;
	struct source source = { 0 };
	struct table_index_options options = { .interval = s->index.interval,
					       .statics = s->statics,
					       .wanted = &s->wanted,
					       .of_entry = &s->of_entry,
					       .rows = rows_wanted(s) };
	struct str inside;
	enum status status;
	bool more;

	if (page_read_places(r->at.place, &options.after, &inside) != STATUS_OK)
		return request_fail(s->run->r, CQL_CODE_PROTOCOL,
				    "Invalid value for the paging state");
	if (index->of_statics)
		options.rows = 0;
	buf_append_str(&r->before, options.after);
	TRY(buf_status(&r->before));
	r->at.index = s->index.number;
	TRY(table_index_open(&r->timed, index, &options, &source.index));
	status = index->of_statics ? read_partitions_named(r, source.index, inside)
				   : go_through(r, &source, &more);
	table_index_close(source.index);
	return status;
}

static enum status
read_stored(struct reading *r)
{
	struct select *s = r->s;

	TRY(moment_fix(r));
	s->row.now_ms = r->timed.now_us / 1000;
	if (s->plan.by_partitions)
		return read_partitions(r);
	return s->plan.index ? read_indexed(r) : read_tokens(r);
}

/* ---- Tables that are made up ---- */

/* The keyspace that the statement names, where a table's partitions are keyspaces. */
static struct str
keyspace_wanted(const struct select *s)
{
	const struct schema_column *c = &s->run->table->columns[0];

	for (size_t i = 0; i < s->where.count; i++) {
		const struct where_term *t = &s->where.terms[i];

		if (where_term_is(t, c) && t->relation->op == CQL_OP_EQ && t->value_count == 1 &&
		    str_eq(c->name, STR("keyspace_name")))
			return t->values[0].bytes;
	}
	return STR("");
}

static void
server_of(const struct cql_request *r, struct schema_server *ret)
{
	const struct cql_settings *settings = r->door->config.settings;

	*ret = (struct schema_server){ .cluster = str_from_cstr(settings->cluster),
				       .data_center = str_from_cstr(settings->data_center),
				       .rack = STR("rack1"),
				       .release_version = STR(CQL_RELEASE_VERSION),
				       .language_version = STR(CQL_LANGUAGE_VERSION),
				       .port = r->door->port,
				       .host_id = r->door->host_id,
				       .live = r->door->config.live,
				       .part = r->out->part,
				       .traces = &r->door->traces,
				       .user = r->client->entry.who.user.name,
				       .user_key = r->client->entry.who.user.key,
				       .admin = r->client->entry.who.user.admin ||
						r->client->grants.everything };
	cql_client_address(r->client, ret->address, &ret->address_len);
}

static enum status
take_made_up(struct reading *r, const struct schema_rows *rows)
{
	struct select *s = r->s;
	const struct schema_table *t = s->run->table;
	char place[32];
	uint64_t from = 0;
	bool more = true, skips;

	s->mark = arena_mark(s->run->r->arena);
	if (r->at.place.len && !str_to_u64(r->at.place, &from))
		return request_fail(s->run->r, CQL_CODE_PROTOCOL,
				    "Invalid value for the paging state");
	for (size_t i = 0; i < t->count; i++)
		s->row.write_us[i] = ROW_UNWRITTEN;
	memset(s->row.expires_ms, 0, t->count * sizeof(*s->row.expires_ms));
	s->row.is_row = true;
	for (uint64_t i = from; i < rows->count && more; i++) {
		size_t n;

		if (page_is_full(s)) {
			n = (size_t)snprintf(place, sizeof(place), "%llu", (unsigned long long)i);
			page_end(r, str_of(place, n));
			return STATUS_OK;
		}
		memcpy(s->row.values, rows->values + i * t->count,
		       t->count * sizeof(*rows->values));
		TRY(take_row(r, &more, &skips));
		arena_reset(s->run->r->arena, s->mark);
	}
	return STATUS_OK;
}

static enum status
read_made_up(struct reading *r)
{
	struct select *s = r->s;
	struct schema_server server;
	struct schema_rows rows;
	enum status status;

	server_of(s->run->r, &server);
	status = schema_system_rows(s->run->q, &s->run->types, &server, s->run->table,
				    keyspace_wanted(s), &rows);
	if (status == STATUS_OK)
		status = take_made_up(r, &rows);
	/* A group's first row may still borrow from the rows. */
	if (status == STATUS_OK)
		status = select_finish(s);
	schema_rows_close(&rows);
	return status;
}

/* ---- All of it ---- */

/* Puts the rows behind what the answer has. Many rows become the answer, to be held once only. */
static void
answer_take_rows(struct buf *out, struct buf *rows)
{
	size_t head = out->len;
	struct buf before = *out;

	if (rows->len < MOVED_BYTES || buf_status(out) != STATUS_OK || !buf_reserve(rows, head)) {
		buf_append_buf(out, rows);
		return;
	}
	assert(out->part == rows->part && out->max_bytes == rows->max_bytes);
	memmove(rows->ptr + head, rows->ptr, rows->len);
	memcpy(rows->ptr, out->ptr, head);
	rows->len += head;
	*out = *rows;
	*rows = before;
}

static void
answer(struct reading *r, const struct params *p)
{
	struct select *s = r->s;
	struct cql_request *request = s->run->r;
	struct str state = r->state.len ? buf_str(&r->state) : (struct str){ 0 };

	metadata_put_rows(request->out, request->header.version, &s->result,
			  p->flags & PARAMS_SKIP_METADATA, state);
	frame_put_i32(request->out, (int32_t)s->row_count);
	answer_take_rows(request->out, &s->rows);
}

static enum status
read_all(struct reading *r, const struct params *p)
{
	struct select *s = r->s;

	TRY(select_prepare(s, p));
	TRY(page_begin(r, p));
	s->mark = arena_mark(s->run->r->arena);
	if (!s->left || s->plan.nothing)
		return select_finish(s);
	if (s->run->table->system)
		return read_made_up(r);
	TRY(read_stored(r));
	return select_finish(s);
}

enum status
select_run(struct run *run, const struct params *p)
{
	struct select s;
	struct reading r;
	enum status status = select_begin(&s, run);

	CLEAR_BEFORE(&r, timed); /* which is a kilobyte */
	r.s = &s;
	r.place = BUF_SHORT(PAGE_PLACE_BYTES);
	r.before = BUF_SHORT(TABLE_PLACE_BYTES);
	r.state = BUF_SHORT(PAGE_STATE_BYTES);
	if (status == STATUS_OK)
		status = run_bind(run);
	if (status == STATUS_OK)
		status = read_all(&r, p);
	if (status == STATUS_OK)
		status = buf_status(&s.rows);
	if (status == STATUS_OK)
		answer(&r, p);
	buf_release(&r.place);
	buf_release(&r.before);
	buf_release(&r.state);
	ahead_release(&r.ahead);
	select_release(&s);
	return status;
}
