/* Batches: documents behind a Sequence, mapped. */
#include "index/view/build.h"
#include "index/view/keys.h"
#include "index/view/order.h"

#include "base/mem.h"

enum {
	ROW_OVERHEAD_BYTES = 64, /* of a row's pairs beside its texts */
	SHORT_KEY_BYTES = 4000,  /* a component and an id that fit even if each byte is escaped */
	KEY_HEAD_BYTES = 64,     /* what stands before and behind the place in a row's keys */
};

enum status
view_batch_new(struct view_batch **ret)
{
	struct view_batch *batch = mem_zalloc(sizeof(*batch));

	if (!batch)
		return STATUS_NOMEM;
	batch->arena = arena_new(VIEW_BATCH_ARENA_BYTES);
	if (!batch->arena) {
		mem_free(batch);
		return STATUS_NOMEM;
	}
	*ret = batch;
	return STATUS_OK;
}

void
view_batch_free(struct view_batch *batch)
{
	if (!batch)
		return;
	arena_free(batch->arena);
	mem_free(batch);
}

/* ---- Reading documents ---- */

struct batch_reading {
	const struct view_build *build;
	struct view_batch *batch;
	size_t most; /* documents of the next attempt */
};

static bool
docs_have(const struct view_docs *docs, size_t from, struct str id)
{
	for (size_t i = from; i < docs->count; i++)
		if (str_eq(docs->docs[i].id, id))
			return true;
	return false;
}

/*
 * Purged documents come first, so that a step which ends early has dealt with all of them. Each
 * document is there once, since a step reads the rows of many before it writes: a change that has
 * come after the purge, or another purge, does the same to the rows.
 */
static enum status
batch_take_docs(struct view_batch *b, const struct view_docs *purged, const struct view_docs *docs)
{
	b->docs = arena_zalloc(b->arena, (purged->count + docs->count + 1) * sizeof(*b->docs));
	if (!b->docs)
		return STATUS_LIMIT;
	for (size_t i = 0; i < purged->count; i++) {
		const struct view_doc *doc = &purged->docs[i];

		if (!docs_have(purged, i + 1, doc->id) && !docs_have(docs, 0, doc->id))
			b->docs[b->count++] = (struct view_mapped_doc){ .doc = *doc,
									.purged = true };
	}
	for (size_t i = 0; i < docs->count; i++)
		b->docs[b->count++] = (struct view_mapped_doc){ .doc = docs->docs[i] };
	return STATUS_OK;
}

static enum status
batch_read_body(struct kv_tx *tx, void *arg)
{
	struct batch_reading *r = arg;
	struct view_batch *b = r->batch;
	const struct view_design *design = r->build->design;
	const struct view_docs_want want = {
		.after = b->from,
		.most = r->most,
		.most_bytes = VIEW_BATCH_BYTES,
		.include_design = design->include_design,
		.local_seq = design->local_seq,
	};
	AUTO(view_db_unref) struct catalog_db *db = NULL;
	const struct view_documents *documents;
	struct view_docs purged = { 0 }, docs = { 0 };

	/* If there is another attempt, then most likely because this one took too long. */
	if (r->most > 1)
		r->most /= 2;
	arena_clear(b->arena);
	b->count = 0;
	TRY(view_build_open_db(r->build, tx, &db, kv_tx_err(tx)));
	documents = view_documents_of(db);
	TRY(documents->purges(tx, db, &b->purges_from, VIEW_BATCH_PURGES, b->arena, &purged,
			      kv_tx_err(tx)));
	TRY(documents->changes(tx, db, &want, b->arena, &docs, kv_tx_err(tx)));
	TRY(batch_take_docs(b, &purged, &docs));
	b->purges_to = purged.last;
	b->to = docs.last;
	b->more = docs.more || purged.more;
	return b->more ? STATUS_OK : documents->newest(tx, db, &b->to);
}

/* ---- Taking rows ---- */

struct view_sink {
	struct view_batch *batch;
	const struct view_design *design;
	struct index_work *w;
	struct buf component;
	struct buf place;
	size_t *at; /* of the documents that are mapped: their numbers in the batch */
	size_t doc; /* the one that rows are taken of, in `at` */
	size_t count;
	size_t map;
	bool begun;
	uint64_t ordinal;
	enum status status; /* the first failure */
};

/* Rows of one map that are left out of one document are reported as one. */
static void
sink_leave_out(struct view_sink *sink, size_t map, const char *limit)
{
	struct view_batch *b = sink->batch;
	struct view_mapped_doc *doc = &b->docs[sink->at[sink->doc]];

	if (doc->left_out_count && b->left_out[b->left_out_count - 1].map == map) {
		b->left_out[b->left_out_count - 1].rows++;
		return;
	}
	b->left_out = arena_grow(b->arena, b->left_out, b->left_out_count, &b->left_out_cap,
				 sizeof(*b->left_out));
	if (!b->left_out) {
		sink->status = STATUS_LIMIT;
		return;
	}
	if (!doc->left_out_count++)
		doc->left_out_first = b->left_out_count;
	b->left_out[b->left_out_count++] = (struct view_left_out){ doc->doc.id, map, limit, 1 };
}

void
view_sink_next(struct view_sink *sink)
{
	if (!sink->begun) {
		sink->begun = true;
	} else if (++sink->map == sink->design->map_count) {
		sink->map = 0;
		sink->doc++;
	}
	sink->ordinal = 0;
	if (sink->doc < sink->count && sink->map == 0)
		sink->batch->docs[sink->at[sink->doc]].first = sink->batch->row_count;
}

void
view_sink_failed(struct view_sink *sink, struct str reason)
{
	/* The worker has logged it; the document has no rows in this view. */
	(void)sink;
	(void)reason;
}

/* All rows of the document are left out, those that follow as well. */
static void
sink_drop_doc(struct view_sink *sink, struct view_mapped_doc *doc)
{
	sink->batch->row_count = doc->first;
	sink->batch->left_out_count -= doc->left_out_count;
	doc->count = doc->left_out_count = 0;
	doc->dropped = true;
	sink_leave_out(sink, VIEW_VIEWS_MOST, "view_doc_bytes");
}

/* False if the row's key, with the id and what stands before both, is longer than any key. */
static bool
sink_key_fits(struct view_sink *sink, struct str id)
{
	struct str component = buf_str(&sink->component), partition = { 0 };

	if (component.len + id.len < SHORT_KEY_BYTES)
		return true;
	if (sink->design->partitioned)
		partition = view_partition_of(id);
	buf_clear(&sink->place);
	view_place_put(&sink->place, partition, component, id, sink->ordinal);
	return buf_status(&sink->place) == STATUS_OK &&
	       sink->place.len + KEY_HEAD_BYTES <= KV_LIMIT_KEY_BYTES;
}

static enum status
sink_add(struct view_sink *sink, struct view_mapped_doc *doc, struct str key, struct str value)
{
	struct view_batch *b = sink->batch;
	struct view_mapped *row;

	TRY(arena_room(b->arena, &b->rows, b->row_count, &b->row_cap, sizeof(*b->rows)));
	row = &b->rows[b->row_count];
	*row = (struct view_mapped){
		.map = sink->map,
		.ordinal = sink->ordinal,
		.component = buf_dup(&sink->component, b->arena),
		.key = arena_dup(b->arena, key),
		.value = arena_dup(b->arena, value),
	};
	if (!row->component.ptr || !row->key.ptr || !row->value.ptr)
		return STATUS_LIMIT;
	b->row_count++;
	doc->count++;
	return STATUS_OK;
}

void
view_sink_row(struct view_sink *sink, struct str key, struct str value)
{
	struct arena_mark mark = arena_mark(sink->w->arena);
	struct view_mapped_doc *doc;
	enum status status;

	if (sink->status != STATUS_OK || sink->doc >= sink->count)
		return;
	doc = &sink->batch->docs[sink->at[sink->doc]];
	if (doc->dropped)
		return;
	sink->ordinal++;
	buf_clear(&sink->component);
	if (key.len + value.len > VIEW_ROW_BYTES) {
		sink_leave_out(sink, sink->map, "view_row_bytes");
		return;
	}
	status = view_component(&sink->component, sink->design->maps[sink->map].collation, key,
				sink->w);
	arena_reset(sink->w->arena, mark);
	if (status == STATUS_OK && !sink_key_fits(sink, doc->doc.id))
		status = STATUS_KEY_TOO_LARGE;
	if (status == STATUS_KEY_TOO_LARGE || status == STATUS_LIMIT) {
		sink_leave_out(sink, sink->map, "view_key_bytes");
		return;
	}
	if (status == STATUS_NOMEM || status == STATUS_UNAVAILABLE || status == STATUS_CANCELLED ||
	    status == STATUS_STEPS) {
		sink->status = status;
		return;
	}
	if (status != STATUS_OK || !view_text_is_json(value)) {
		sink_leave_out(sink, sink->map, "not_json");
		return;
	}
	doc->bytes += 2 * (sink->component.len + doc->doc.id.len) + key.len + value.len +
		      ROW_OVERHEAD_BYTES;
	if (doc->bytes + doc->count * sizeof(struct view_mapped) > VIEW_DOC_BYTES)
		sink_drop_doc(sink, doc);
	else
		sink->status = sink_add(sink, doc, key, value);
}

/* ---- Mapping ---- */

/* The bytes of the rows that have been mapped. */
static size_t
batch_row_bytes(const struct view_batch *b)
{
	size_t bytes = 0;

	for (size_t i = 0; i < b->count; i++)
		bytes += b->docs[i].bytes;
	return bytes;
}

/*
 * Ends the batch before a document that has not been mapped. Purged documents come before all that
 * are mapped, so the batch ends behind a change.
 */
static void
batch_cut(struct view_batch *b, size_t count)
{
	if (count == b->count)
		return;
	b->count = count;
	b->to = b->docs[count - 1].doc.seq;
	b->more = true;
}

/*
 * Maps the documents of the batch that are there, in as many calls as it takes. When the rows are
 * as many as a step writes, the batch ends there: it would be mapped again behind them.
 */
static enum status
batch_map(const struct view_build *build, struct view_batch *b, struct view_sink *sink,
	  struct arena *scratch, struct err *err)
{
	struct str *texts = arena_alloc(b->arena, (b->count + 1) * sizeof(*texts));
	size_t total = 0;

	sink->at = arena_alloc(b->arena, (b->count + 1) * sizeof(*sink->at));
	if (!texts || !sink->at)
		return STATUS_LIMIT;
	for (size_t i = 0; i < b->count; i++) {
		if (b->docs[i].doc.gone)
			continue;
		sink->at[total] = i;
		texts[total++] = b->docs[i].doc.json;
	}
	while (total) {
		struct view_error error = { 0 };
		size_t done = 0;
		enum status status;

		sink->doc = sink->map = 0;
		sink->begun = false;
		sink->count = total;
		arena_clear(scratch);
		status = build->functions->map(build->arg, build->design, texts, total, scratch,
					       sink, &done, &error, err);
		if (status == STATUS_FUNCTION) {
			b->error.name = arena_dup(b->arena, error.name);
			b->error.reason = arena_dup(b->arena, error.reason);
		}
		TRY(status);
		TRY(sink->status);
		if (done == 0 || done > total)
			return STATUS_CORRUPT;
		texts += done;
		sink->at += done;
		total -= done;
		if (total && batch_row_bytes(b) >= VIEW_STEP_BYTES) {
			batch_cut(b, sink->at[0]);
			break;
		}
	}
	return STATUS_OK;
}

static enum status
batch_order(struct view_batch *b, struct arena *scratch)
{
	for (size_t i = 0; i < b->count; i++) {
		if (b->docs[i].count < 2)
			continue;
		arena_clear(scratch);
		TRY(view_rows_order(b->rows + b->docs[i].first, b->docs[i].count, scratch));
	}
	return STATUS_OK;
}

enum status
view_batch_make(const struct view_build *build, uint64_t number, const struct catalog_seq *from,
		const struct catalog_seq *purges_from, struct view_batch *batch, struct err *err)
{
	struct batch_reading reading = { build, batch, VIEW_BATCH_DOCS };
	struct arena *scratch = NULL, *component = NULL;
	struct index_work w = { 0 };
	struct view_sink sink = { .batch = batch, .design = build->design, .w = &w };
	struct arena *arena = batch->arena;
	enum status status;

	*batch = (struct view_batch){ .arena = arena,
				      .number = number,
				      .from = *from,
				      .purges_from = *purges_from,
				      .to = *from,
				      .purges_to = *purges_from };
	TRY(kv_run_read(build->store, batch_read_body, &reading, err));
	if (build->design->map_count == 0)
		return STATUS_OK;
	scratch = arena_new(VIEW_BATCH_ARENA_BYTES);
	component = arena_new(VIEW_BATCH_ARENA_BYTES);
	w.arena = component;
	buf_init(&sink.component, 2 * VIEW_KEY_BYTES);
	buf_init(&sink.place, 4 * KV_LIMIT_KEY_BYTES);
	status = scratch && component ? batch_map(build, batch, &sink, scratch, err) : STATUS_NOMEM;
	if (status == STATUS_OK)
		status = batch_order(batch, scratch);
	buf_release(&sink.component);
	buf_release(&sink.place);
	arena_free(scratch);
	arena_free(component);
	return status;
}
