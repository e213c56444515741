/*
 * $sort: documents are kept in memory, and sorted there. When the memory is full, what is there
 * goes to a file as one sorted run, and the runs are merged at the end. Of a sort with a limit, no
 * more than twice that many documents are kept.
 */
#include "base/mem.h"
#include "mql/sort_values.h"
#include "mql/stage/spool.h"

enum {
	SORT_RUNS = 256, /* that are merged */
};

struct sort_stage {
	struct mql_sort_by *by;
	int64_t limit; /* 0: none */
};

struct sort_item {
	struct str doc;
	struct mql_sort_key *key;
};

/* A sorted run in the file, and its next document. */
struct sort_run {
	uint64_t at, end;
	struct mql_spool_reader reader;
	struct arena *arena;
	struct sort_item item;
	bool done;
};

struct sort_state {
	struct arena *keep[2]; /* one is in use; the other one takes the best of it */
	const struct sort_item **items;
	size_t count;
	size_t cap;
	size_t next;
	int64_t given;
	struct mql_spool spool;
	bool has_spool;
	struct sort_run *runs;
	size_t run_count;
	bool read;
};

/* ---- In memory ---- */

struct sort_order {
	const struct mql_sort_by *by;
	const struct bson_texts *texts;
};

static int
sort_compare(const void *a, const void *b, const void *arg)
{
	const struct sort_order *o = arg;
	const struct sort_item *left = a, *right = b;

	return mql_sort_key_compare(o->by, left->key, right->key, o->texts);
}

/* STATUS_LIMIT: the memory is full. */
static enum status
sort_keep(struct mql_stage_run *r, struct arena *arena, struct str doc)
{
	const struct sort_stage *stage = r->stage->more;
	struct sort_state *s = r->state;
	struct sort_item *item = arena_alloc(arena, sizeof(*item));
	const struct sort_item **items = arena_grow(arena, s->items, s->count, &s->cap,
						    sizeof(*items));

	if (!items || !item)
		return STATUS_LIMIT;
	s->items = items;
	item->doc = arena_dup(arena, doc);
	if (!item->doc.ptr)
		return STATUS_LIMIT;
	r->run->q.arena = arena;
	TRY(mql_sort_key_of(stage->by, &r->run->q, item->doc, &item->key));
	items[s->count++] = item;
	return STATUS_OK;
}

static enum status
sort_items(struct mql_stage_run *r)
{
	const struct sort_stage *stage = r->stage->more;
	struct sort_state *s = r->state;
	struct sort_order order = { stage->by, r->run->q.texts };

	return mql_sort(mql_stage_begin(r), (const void **)s->items, s->count, sort_compare,
			&order);
}

/* Keeps the first documents only, in the other arena. */
static enum status
sort_cut(struct mql_stage_run *r)
{
	const struct sort_stage *stage = r->stage->more;
	struct sort_state *s = r->state;
	const struct sort_item **old = s->items;
	struct arena *swap = s->keep[0];
	size_t count = s->count < (uint64_t)stage->limit ? s->count : (size_t)stage->limit;

	/* What is in a run cannot be cut any more, nor compared with what is cut here. */
	assert(stage->limit > 0 && !s->run_count);
	TRY(sort_items(r));
	s->items = NULL;
	s->count = s->cap = 0;
	s->keep[0] = s->keep[1];
	s->keep[1] = swap;
	for (size_t i = 0; i < count; i++)
		TRY(sort_keep(r, s->keep[0], old[i]->doc));
	/* Only now: `old`, and the documents that were copied, lie there. */
	assert(s->count == count);
	arena_clear(s->keep[1]);
	return STATUS_OK;
}

/* ---- Runs ---- */

/* Puts what is in memory into the file. */
static enum status
sort_spill(struct mql_stage_run *r)
{
	struct sort_state *s = r->state;
	struct sort_run *run;

	if (!r->run->options.disk || !s->count)
		return mql_stage_no_disk(r, s->keep[0]);
	if (!s->has_spool)
		mql_spool_init(&s->spool, r);
	s->has_spool = true;
	if (s->run_count == SORT_RUNS)
		return mql_fail(&r->run->q, MQL_MEMORY_LIMIT,
				"$sort would merge more than %d runs (SORT_RUNS); sort less at "
				"once",
				SORT_RUNS);
	if (!s->runs)
		s->runs = mem_zalloc(SORT_RUNS * sizeof(*s->runs));
	if (!s->runs)
		return STATUS_NOMEM;
	TRY(sort_items(r));
	run = &s->runs[s->run_count++];
	run->at = mql_spool_end(&s->spool);
	for (size_t i = 0; i < s->count; i++)
		TRY(mql_spool_put(&s->spool, r, s->items[i]->doc));
	run->end = mql_spool_end(&s->spool);
	s->items = NULL;
	s->count = s->cap = 0;
	arena_clear(s->keep[0]);
	return STATUS_OK;
}

static enum status
run_advance(struct mql_stage_run *r, struct sort_run *run)
{
	const struct sort_stage *stage = r->stage->more;
	enum status status;

	assert(!run->done);
	status = mql_spool_next(&run->reader, r, &run->item.doc);

	run->done = status == STATUS_NOT_FOUND;
	if (status != STATUS_OK)
		return run->done ? STATUS_OK : status;
	arena_clear(run->arena);
	r->run->q.arena = run->arena;
	return mql_sort_key_of(stage->by, &r->run->q, run->item.doc, &run->item.key);
}

static enum status
runs_open(struct mql_stage_run *r)
{
	struct sort_state *s = r->state;

	for (size_t i = 0; i < s->run_count; i++) {
		struct sort_run *run = &s->runs[i];

		mql_spool_read(&run->reader, &s->spool, r, run->at, run->end);
		run->arena = mql_run_arena(r->run, MQL_SCRATCH_BYTES);
		if (!run->arena)
			return STATUS_NOMEM;
		TRY(run_advance(r, run));
	}
	return STATUS_OK;
}

/* The first of all runs; of equal ones, the one that was written first, so the order is stable. */
static enum status
runs_next(struct mql_stage_run *r, struct str *ret)
{
	const struct sort_stage *stage = r->stage->more;
	struct sort_state *s = r->state;
	struct sort_run *best = NULL;

	for (size_t i = 0; i < s->run_count; i++) {
		struct sort_run *run = &s->runs[i];

		if (run->done)
			continue;
		if (!best || mql_sort_key_compare(stage->by, run->item.key, best->item.key,
						  r->run->q.texts) < 0)
			best = run;
	}
	TRY(step_count((uint32_t)s->run_count));
	if (!best)
		return STATUS_NOT_FOUND;
	/* A copy: advancing the run moves the window that the document lies in. */
	arena_clear(r->scratch);
	*ret = arena_dup(r->scratch, best->item.doc);
	if (!ret->ptr)
		return mql_full(mql_stage_mql(r));
	return run_advance(r, best);
}

/* ---- The stage ---- */

static enum status
sort_add(struct mql_stage_run *r, struct str doc)
{
	const struct sort_stage *stage = r->stage->more;
	struct sort_state *s = r->state;
	enum status status;

	if (stage->limit && !s->run_count && stage->limit < INT32_MAX &&
	    s->count >= 2 * (uint64_t)stage->limit + 64)
		TRY(sort_cut(r));
	status = sort_keep(r, s->keep[0], doc);
	if (status != STATUS_LIMIT)
		return status;
	TRY(sort_spill(r));
	status = sort_keep(r, s->keep[0], doc);
	return status == STATUS_LIMIT ? mql_full(&r->run->q) : status;
}

static enum status
sort_read(struct mql_stage_run *r)
{
	struct sort_state *s = r->state;
	enum status status;
	struct str doc;

	assert(!s->keep[0] && !s->count);
	for (int i = 0; i < 2; i++) {
		s->keep[i] = mql_run_arena(r->run, r->run->options.stage_bytes);
		if (!s->keep[i])
			return STATUS_NOMEM;
	}
	while ((status = r->from->next(r->from, &doc)) == STATUS_OK) {
		TRY(step_count_bytes(doc.len));
		TRY(sort_add(r, doc));
	}
	if (status != STATUS_NOT_FOUND)
		return status;
	if (!s->run_count)
		return sort_items(r);
	if (s->count)
		TRY(sort_spill(r));
	return runs_open(r);
}

static enum status
sort_next(struct mql_stage_run *r, struct str *ret)
{
	const struct sort_stage *stage = r->stage->more;
	struct sort_state *s = r->state;

	if (!s->read)
		TRY(sort_read(r));
	s->read = true;
	if (stage->limit && s->given == stage->limit)
		return STATUS_NOT_FOUND;
	s->given++;
	if (s->run_count)
		return runs_next(r, ret);
	assert(s->next <= s->count);
	if (s->next == s->count)
		return STATUS_NOT_FOUND;
	*ret = s->items[s->next++]->doc;
	return STATUS_OK;
}

static void
sort_fini(struct mql_stage_run *r)
{
	struct sort_state *s = r->state;

	for (size_t i = 0; i < s->run_count; i++) {
		mql_spool_reader_fini(&s->runs[i].reader);
		arena_free(s->runs[i].arena);
	}
	mem_free(s->runs);
	if (s->has_spool)
		mql_spool_fini(&s->spool);
	arena_free(s->keep[0]);
	arena_free(s->keep[1]);
}

const struct mql_stage_ops mql_sort_ops = { .next = sort_next,
					    .fini = sort_fini,
					    .state_bytes = sizeof(struct sort_state) };

MQL_STAGE_COMPILE(sort)
{
	struct sort_stage *s = mql_stage_alloc(c, sizeof(*s));

	if (!s)
		return mql_full(c->q);
	if (v->type != BSON_DOCUMENT)
		return mql_fail(c->q, 15973, "the $sort key specification must be an object");
	TRY(mql_sort_by_compile(c->q, bson_text(v), &s->by));
	return mql_stage_add(c, stage, v, &mql_sort_ops, s);
}

void
mql_sort_stage_limit(struct mql_stage *s, int64_t limit)
{
	/* While the pipeline is compiled, nobody else has the stage. */
	struct sort_stage *sort = (struct sort_stage *)(uintptr_t)s->more;

	if (!sort->limit || limit < sort->limit)
		sort->limit = limit;
}
