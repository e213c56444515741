/*
 * The entries of all tables and logs as one stream, in the order of keys, and of one key the newest
 * first. A table is in that order by itself, whatever it has lost; those of logs are sorted. A heap
 * has the next entry of each.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kv/embedded/salvage_int.h"

/* A source of entries in their order. */
struct run {
	const struct raw_table *table; /* NULL: the logs */
	size_t block;                  /* that is walked through */
	uint8_t *bytes;                /* its entries */
	size_t bytes_cap;
	struct raw_walk walk;
	size_t at; /* of the logs: the next one */
	struct raw_entry entry;
};

/* Spans, while the stream goes through the keys. */
struct sweep {
	struct salvage_span *spans; /* by their first keys */
	size_t count;
	size_t next;
	size_t *open; /* places of those that the key is in */
	size_t open_count;
};

struct merge {
	struct salvage_files *files;
	struct raw_finder finder;
	uint8_t *packed; /* a block as it is stored */
	struct raw_entry *logged;
	size_t logged_count;
	struct run *runs;
	struct run **heap;
	size_t heap_count;
	struct salvage_spans deleted;
	struct sweep deletions;
	struct sweep losses;
	struct buf key; /* of the entry that was taken last */
	bool begun;     /* there was one */
	salvage_take *take;
	void *arg;
	struct err *err;
};

/* ---- Spans ---- */

/* Losses of which no keys are known come first. */
static int
compare_spans(const void *a, const void *b)
{
	const struct salvage_span *x = a;
	const struct salvage_span *y = b;

	if (x->has_keys != y->has_keys)
		return x->has_keys - y->has_keys;
	return str_cmp(x->begin, y->begin);
}

static enum status
sweep_init(struct sweep *s, struct salvage_spans *spans, struct arena *arena)
{
	*s = (struct sweep){ .spans = spans->all, .count = spans->count };
	if (s->count)
		qsort(s->spans, s->count, sizeof(*s->spans), compare_spans);
	s->open = arena_alloc(arena, (s->count + 1) * sizeof(*s->open));
	return s->open ? STATUS_OK : STATUS_NOMEM;
}

/* The spans that have the key are open then. Keys ascend. */
static void
sweep_to(struct sweep *s, struct str key)
{
	size_t kept = 0;

	while (s->next < s->count && str_cmp(s->spans[s->next].begin, key) <= 0)
		s->open[s->open_count++] = s->next++;
	for (size_t i = 0; i < s->open_count; i++) {
		const struct salvage_span *span = &s->spans[s->open[i]];

		if (!span->end.ptr || str_cmp(key, span->end) < 0)
			s->open[kept++] = s->open[i];
	}
	s->open_count = kept;
}

/* ---- Runs ---- */

/* Reads the next block that is still whole, and copies its entries. */
static enum status
run_load(struct merge *m, struct run *r, bool *ret)
{
	const struct raw_block *block;
	struct err why = { 0 };
	uint32_t bytes;
	size_t len;

	*ret = false;
	while (r->block < r->table->block_count && !*ret) {
		block = &r->table->blocks[r->block++];
		len = block->bytes + RAW_TRAILER_BYTES;
		if (raw_read(m->files->dir, r->table->name, block->at, m->packed, &len, &why) !=
			    STATUS_OK ||
		    !raw_block_find(&m->finder, str_of(m->packed, len), &bytes))
			continue;
		if (m->finder.walk.rest.len > r->bytes_cap) {
			mem_free(r->bytes);
			r->bytes_cap = m->finder.walk.rest.len;
			r->bytes = mem_alloc(r->bytes_cap);
			if (!r->bytes)
				return STATUS_NOMEM;
		}
		memcpy(r->bytes, m->finder.walk.rest.ptr, m->finder.walk.rest.len);
		r->walk.rest = str_of(r->bytes, m->finder.walk.rest.len);
		buf_clear(&r->walk.key);
		*ret = true;
	}
	return STATUS_OK;
}

/* Goes to the run's next entry. */
static enum status
run_next(struct merge *m, struct run *r, bool *ret)
{
	struct str key, value;

	*ret = true;
	if (!r->table) {
		*ret = r->at < m->logged_count;
		if (*ret)
			r->entry = m->logged[r->at++];
		return STATUS_OK;
	}
	for (;;) {
		while (raw_block_next(&r->walk, &key, &value))
			if (raw_entry_parse(key, value, &r->entry))
				return STATUS_OK;
		TRY(run_load(m, r, ret));
		if (!*ret)
			return STATUS_OK;
	}
}

/* ---- The heap ---- */

static int
compare_entries(const struct raw_entry *a, const struct raw_entry *b)
{
	int keys = str_cmp(a->key, b->key);

	if (keys)
		return keys;
	return (a->sequence < b->sequence) - (a->sequence > b->sequence);
}

static int
compare_logged(const void *a, const void *b)
{
	return compare_entries(a, b);
}

static void
heap_sink(struct merge *m, size_t at)
{
	for (size_t child; (child = 2 * at + 1) < m->heap_count; at = child) {
		struct run *run = m->heap[at];

		if (child + 1 < m->heap_count &&
		    compare_entries(&m->heap[child + 1]->entry, &m->heap[child]->entry) < 0)
			child++;
		if (compare_entries(&run->entry, &m->heap[child]->entry) <= 0)
			return;
		m->heap[at] = m->heap[child];
		m->heap[child] = run;
	}
}

static enum status
heap_advance(struct merge *m)
{
	bool more;

	TRY(run_next(m, m->heap[0], &more));
	if (!more)
		m->heap[0] = m->heap[--m->heap_count];
	heap_sink(m, 0);
	return STATUS_OK;
}

/* ---- The stream ---- */

/* True if a range with the key was deleted after the entry was written. */
static bool
entry_is_deleted(const struct merge *m, const struct raw_entry *e)
{
	if (e->type != RAW_PUT)
		return true;
	for (size_t i = 0; i < m->deletions.open_count; i++)
		if (m->deletions.spans[m->deletions.open[i]].sequence > e->sequence)
			return true;
	return false;
}

/* Takes an entry. Only the first one of each key, the newest, says what the key has. */
static enum status
merge_entry(struct merge *m, const struct raw_entry *e)
{
	if (m->begun && str_eq(buf_str(&m->key), e->key))
		return STATUS_OK;
	m->begun = true;
	buf_set(&m->key, e->key);
	TRY(buf_status(&m->key));
	sweep_to(&m->deletions, e->key);
	sweep_to(&m->losses, e->key);
	for (size_t i = 0; i < m->losses.open_count; i++)
		m->losses.spans[m->losses.open[i]].keys++;
	return entry_is_deleted(m, e) ? STATUS_OK : m->take(m->arg, e->key, e->value, m->err);
}

static enum status
deleted_add(struct merge *m, const struct raw_entry *e)
{
	const struct salvage_span span = { .begin = e->key,
					   .end = e->value,
					   .sequence = e->sequence };

	return salvage_spans_add(&m->deleted, m->files->arena, &span);
}

/* Collects the deletions of ranges, and the other entries of logs. */
static enum status
merge_collect(struct merge *m)
{
	const struct salvage_files *f = m->files;
	size_t cap = 0;

	for (size_t i = 0; i < f->table_count; i++)
		for (size_t j = 0; j < f->tables[i].raw.range_count; j++)
			TRY(deleted_add(m, &f->tables[i].raw.ranges[j]));
	for (size_t i = 0; i < f->log_count; i++)
		for (size_t j = 0; j < f->logs[i].count; j++) {
			const struct raw_entry *e = &f->logs[i].entries[j];

			if (e->type == RAW_DELETE_RANGE) {
				TRY(deleted_add(m, e));
				continue;
			}
			TRY(arena_room(f->arena, &m->logged, m->logged_count, &cap,
				       sizeof(*m->logged)));
			m->logged[m->logged_count++] = *e;
		}
	if (m->logged_count)
		qsort(m->logged, m->logged_count, sizeof(*m->logged), compare_logged);
	return STATUS_OK;
}

static enum status
merge_begin(struct merge *m, struct salvage_spans *losses)
{
	const struct salvage_files *f = m->files;

	TRY(raw_finder_init(&m->finder));
	m->packed = mem_alloc(RAW_BLOCK_BYTES + RAW_TRAILER_BYTES);
	m->runs = mem_zalloc((f->table_count + 1) * sizeof(*m->runs));
	m->heap = mem_zalloc((f->table_count + 1) * sizeof(struct run *));
	if (!m->packed || !m->runs || !m->heap)
		return STATUS_NOMEM;
	TRY(merge_collect(m));
	TRY(sweep_init(&m->deletions, &m->deleted, f->arena));
	TRY(sweep_init(&m->losses, losses, f->arena));
	/* They count no keys. */
	while (m->losses.next < m->losses.count && !m->losses.spans[m->losses.next].has_keys)
		m->losses.next++;
	for (size_t i = 0; i <= f->table_count; i++) {
		struct run *r = &m->runs[i];
		bool more;

		r->walk = (struct raw_walk)RAW_WALK_INIT;
		r->table = i < f->table_count ? &f->tables[i].raw : NULL;
		TRY(run_next(m, r, &more));
		if (more)
			m->heap[m->heap_count++] = r;
	}
	for (size_t i = m->heap_count / 2; i-- > 0;)
		heap_sink(m, i);
	return STATUS_OK;
}

static enum status
merge_run(struct merge *m)
{
	while (m->heap_count) {
		TRY(merge_entry(m, &m->heap[0]->entry));
		TRY(heap_advance(m));
	}
	return STATUS_OK;
}

static void
merge_end(struct merge *m)
{
	for (size_t i = 0; m->runs && i <= m->files->table_count; i++) {
		mem_free(m->runs[i].bytes);
		buf_release(&m->runs[i].walk.key);
	}
	raw_finder_fini(&m->finder);
	mem_free(m->packed);
	mem_free(m->runs);
	mem_free(m->heap);
	buf_release(&m->key);
}

enum status
salvage_merge(struct salvage_files *files, struct salvage_spans *losses, salvage_take *take,
	      void *arg, struct err *err)
{
	struct merge m = { .files = files,
			   .key = BUF_INIT(RAW_BLOCK_BYTES),
			   .take = take,
			   .arg = arg,
			   .err = err };
	enum status status = merge_begin(&m, losses);

	if (status == STATUS_OK)
		status = merge_run(&m);
	merge_end(&m);
	return status;
}
