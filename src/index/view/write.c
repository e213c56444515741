/* A step that writes a batch: rows, the lists of documents' rows, sums, the record. */
#include "index/view/build.h"
#include "index/view/keys.h"
#include "index/view/sums.h"

#include "base/hash.h"

enum {
	BACK_WAVE = 64, /* documents whose rows are asked for together */
	CLEAR_OVERHEAD_BYTES = 200,
	SHOWN_ID_BYTES = 512, /* of an id that a refusal remembers */
};

/* The changed rows of one map. */
struct map_changes {
	struct sums_change *all;
	size_t count;
	size_t cap;
};

struct writing {
	const struct view_build *build;
	const struct view_batch *batch;
	size_t *most;
	struct arena *arena;
	struct view_step *step;

	struct kv_tx *tx;
	struct catalog_db *db;
	struct view_record record;
	struct index_work w;
	bool sums; /* they are kept; otherwise rows alone are written */
	struct map_changes changes[VIEW_VIEWS_MOST];
	struct buf key;
	struct buf value;
	struct buf place;
};

/* ---- Rows of one document ---- */

static void
doc_place(struct writing *w, struct str id, struct str component, uint64_t ordinal)
{
	struct str partition = { 0 };

	if (w->record.group.partitioned)
		partition = view_partition_of(id);
	buf_clear(&w->place);
	view_place_put(&w->place, partition, component, id, ordinal);
}

static enum status
change_add(struct writing *w, size_t map, bool came, bool went)
{
	struct map_changes *c = &w->changes[map];
	struct sums_change *change;

	w->record.group.rows[map] += (uint64_t)came - (uint64_t)went;
	if (!w->sums)
		return STATUS_OK;
	c->all = arena_grow(w->arena, c->all, c->count, &c->cap, sizeof(*c->all));
	if (!c->all)
		return STATUS_LIMIT;
	change = &c->all[c->count];
	*change = (struct sums_change){ .place = arena_dup(w->arena, buf_str(&w->place)),
					.came = came,
					.went = went };
	if (!change->place.ptr)
		return STATUS_LIMIT;
	c->count++;
	if (came) {
		unsigned level = view_place_level(w->record.group.seed, change->place);

		if (level > w->record.group.tops[map])
			w->record.group.tops[map] = level;
	}
	return STATUS_OK;
}

static enum status
row_key(struct writing *w, size_t map)
{
	view_key_level(&w->key, w->db, w->record.group.number, map, 0);
	buf_append_str(&w->key, buf_str(&w->place));
	return catalog_key_status(&w->key);
}

static enum status
chunks_clear(struct writing *w, size_t map)
{
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;

	view_key_text(&w->key, w->db, w->record.group.number, map, buf_str(&w->place), 0);
	view_key_text(&end, w->db, w->record.group.number, map, buf_str(&w->place), UINT32_MAX);
	TRY(catalog_key_status(&w->key));
	TRY(catalog_key_status(&end));
	return kv_clear_range(w->tx, buf_str(&w->key), buf_str(&end));
}

static enum status
row_clear(struct writing *w, struct str id, const struct view_back *back)
{
	doc_place(w, id, back->component, back->ordinal);
	if (back->chunks)
		TRY(chunks_clear(w, back->map));
	TRY(row_key(w, back->map));
	TRY(kv_clear(w->tx, buf_str(&w->key)));
	return change_add(w, back->map, false, true);
}

/* The texts of a large row, one behind the other, in pieces. */
static enum status
chunks_write(struct writing *w, const struct view_mapped *row, uint64_t *ret_chunks)
{
	AUTO(buf_release) struct buf text = BUF_INIT(2 * VIEW_ROW_BYTES);

	buf_append_str(&text, row->key);
	buf_append_str(&text, row->value);
	TRY(buf_status(&text));
	for (size_t at = 0; at < text.len; at += VIEW_CHUNK_BYTES) {
		size_t len = text.len - at < VIEW_CHUNK_BYTES ? text.len - at : VIEW_CHUNK_BYTES;

		view_key_text(&w->key, w->db, w->record.group.number, row->map, buf_str(&w->place),
			      (*ret_chunks)++);
		TRY(catalog_key_status(&w->key));
		TRY(kv_set(w->tx, buf_str(&w->key), str_of(text.ptr + at, len)));
	}
	return STATUS_OK;
}

/* Sets the row at w->place; `old` is what is there, or NULL. */
static enum status
row_set(struct writing *w, const struct view_mapped *row, const struct view_back *old,
	struct view_back *ret)
{
	bool chunked = row->key.len + row->value.len > VIEW_CHUNK_BYTES;

	view_row_put(&w->value, &(struct view_row_value){ .key = row->key,
							  .value = row->value,
							  .chunked = chunked,
							  .key_bytes = row->key.len,
							  .value_bytes = row->value.len });
	TRY(buf_status(&w->value));
	ret->hash = hash_seeded(w->record.group.seed, buf_str(&w->value));
	if (chunked)
		ret->hash ^= hash_seeded(w->record.group.seed, row->key) * 31 ^
			     hash_seeded(w->record.group.seed, row->value);
	ret->chunks = 0;
	if (old && old->hash == ret->hash) {
		ret->chunks = old->chunks;
		return STATUS_OK;
	}
	if (old && old->chunks)
		TRY(chunks_clear(w, row->map));
	TRY(row_key(w, row->map));
	TRY(kv_set(w->tx, buf_str(&w->key), buf_str(&w->value)));
	if (chunked)
		TRY(chunks_write(w, row, &ret->chunks));
	return change_add(w, row->map, !old, false);
}

/* ---- The list of a document's rows ---- */

static enum status
back_find(const struct view_back *backs, size_t count, const struct view_mapped *row, size_t *ret)
{
	/* Rows come in the order of the last time, mostly. */
	for (size_t i = 0; i < count; i++) {
		size_t at = (*ret + i) % count;

		if (backs[at].map != row->map || backs[at].ordinal != row->ordinal)
			continue;
		*ret = at;
		return str_eq(backs[at].component, row->component) ? STATUS_OK : STATUS_NOT_FOUND;
	}
	return STATUS_NOT_FOUND;
}

static enum status
backs_write(struct writing *w, struct str id, const struct view_back *backs, size_t count,
	    uint64_t old_chunks)
{
	AUTO(buf_release) struct buf text = BUF_INIT(2 * VIEW_DOC_BYTES);
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	uint64_t chunks = 0;

	for (size_t i = 0; i < count; i++)
		view_back_put(&text, &backs[i]);
	TRY(buf_status(&text));
	view_key_doc(&w->key, w->db, w->record.group.number, id);
	TRY(catalog_key_status(&w->key));
	if (old_chunks > 1 || !count) {
		buf_append_str(&end, buf_str(&w->key));
		buf_append_byte(&end, CATALOG_KEY_LAST);
		TRY(kv_clear_range(w->tx, buf_str(&w->key), buf_str(&end)));
	}
	if (!count)
		return STATUS_OK;
	chunks = (text.len + VIEW_CHUNK_BYTES - 1) / VIEW_CHUNK_BYTES;
	for (uint64_t n = 0; n < chunks; n++) {
		size_t at = (size_t)n * VIEW_CHUNK_BYTES;
		size_t len = text.len - at < VIEW_CHUNK_BYTES ? text.len - at : VIEW_CHUNK_BYTES;

		buf_clear(&w->value);
		if (n == 0)
			view_back_head_put(&w->value, chunks);
		buf_append_str(&w->value, str_of(text.ptr + at, len));
		view_key_doc(&w->key, w->db, w->record.group.number, id);
		if (n)
			tuple_put_u64(&w->key, n);
		TRY(buf_status(&w->value));
		TRY(catalog_key_status(&w->key));
		TRY(kv_set(w->tx, buf_str(&w->key), buf_str(&w->value)));
	}
	return STATUS_OK;
}

/* The rows that the document has now. */
struct old_rows {
	struct view_back *backs;
	size_t count;
	uint64_t chunks;
	size_t bytes;
};

static enum status
backs_append(struct writing *w, struct str id, uint64_t chunks, struct buf *text)
{
	struct kv_future *f;
	struct str value;

	for (uint64_t n = 1; n < chunks; n++) {
		view_key_doc(&w->key, w->db, w->record.group.number, id);
		tuple_put_u64(&w->key, n);
		TRY(catalog_key_status(&w->key));
		f = kv_get(w->tx, buf_str(&w->key), KV_SNAPSHOT);
		TRY(kv_future_wait(f));
		if (!kv_future_value(f, &value))
			return STATUS_CORRUPT;
		buf_append_str(text, value);
		kv_future_free(f);
	}
	return buf_status(text);
}

static enum status
backs_read(struct writing *w, struct str id, struct kv_future *f, struct old_rows *ret)
{
	AUTO(buf_release) struct buf text = BUF_INIT(2 * VIEW_DOC_BYTES);
	struct str value;

	*ret = (struct old_rows){ 0 };
	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value))
		return STATUS_OK;
	TRY(view_back_head_parse(&value, &ret->chunks, kv_tx_err(w->tx)));
	buf_append_str(&text, value);
	TRY(backs_append(w, id, ret->chunks, &text));
	value = arena_dup(w->arena, buf_str(&text));
	if (!value.ptr)
		return STATUS_LIMIT;
	ret->bytes = value.len;
	return view_backs_parse(value, w->arena, &ret->backs, &ret->count);
}

/* ---- One document ---- */

static enum status
doc_apply(struct writing *w, const struct view_mapped_doc *doc, const struct old_rows *old)
{
	const struct view_mapped *rows = doc->count ? w->batch->rows + doc->first : NULL;
	struct view_back *backs = arena_alloc(w->arena, (doc->count + 1) * sizeof(*backs));
	bool *kept = arena_zalloc(w->arena, old->count + 1);
	size_t at = 0;

	if (!backs || !kept)
		return STATUS_LIMIT;
	for (size_t i = 0; i < doc->count; i++) {
		const struct view_back *before = NULL;

		if (old->count && back_find(old->backs, old->count, &rows[i], &at) == STATUS_OK) {
			before = &old->backs[at];
			kept[at] = true;
		}
		backs[i] = (struct view_back){ .map = rows[i].map,
					       .component = rows[i].component,
					       .ordinal = rows[i].ordinal };
		doc_place(w, doc->doc.id, rows[i].component, rows[i].ordinal);
		TRY(buf_status(&w->place));
		TRY(row_set(w, &rows[i], before, &backs[i]));
	}
	for (size_t i = 0; i < old->count; i++)
		if (!kept[i])
			TRY(row_clear(w, doc->doc.id, &old->backs[i]));
	if (!doc->count && !old->chunks)
		return STATUS_OK;
	return backs_write(w, doc->doc.id, backs, doc->count, old->chunks);
}

/* A document that is older than the build cannot have rows yet. */
static bool
doc_is_fresh(const struct writing *w, const struct view_mapped_doc *doc)
{
	return w->record.group.phase == VIEW_PHASE_ROWS && !doc->purged &&
	       catalog_seq_cmp(&doc->doc.seq, &w->record.fresh) <= 0;
}

/* True if the document may make the transaction too large, beside what is in it. */
static bool
doc_has_no_room(struct writing *w, const struct view_mapped_doc *doc, const struct old_rows *old)
{
	size_t bytes = doc->bytes + 3 * old->bytes + old->count * CLEAR_OVERHEAD_BYTES;

	return kv_tx_stats(w->tx).size_bytes + bytes > VIEW_STEP_BYTES;
}

static enum status
docs_write(struct writing *w, size_t *ret_done)
{
	struct kv_future *futures[BACK_WAVE];
	const struct view_batch *b = w->batch;
	size_t count = b->count < *w->most ? b->count : *w->most, done = 0;

	while (done < count) {
		size_t wave = count - done < BACK_WAVE ? count - done : BACK_WAVE;

		for (size_t i = 0; i < wave; i++) {
			futures[i] = NULL;
			if (doc_is_fresh(w, &b->docs[done + i]))
				continue;
			view_key_doc(&w->key, w->db, w->record.group.number,
				     b->docs[done + i].doc.id);
			TRY(catalog_key_status(&w->key));
			futures[i] = kv_get(w->tx, buf_str(&w->key), KV_SNAPSHOT);
		}
		for (size_t i = 0; i < wave; i++, done++) {
			struct old_rows old = { 0 };

			if (futures[i])
				TRY(backs_read(w, b->docs[done].doc.id, futures[i], &old));
			*ret_done = done;
			if (done && doc_has_no_room(w, &b->docs[done], &old))
				return STATUS_OK;
			TRY(doc_apply(w, &b->docs[done], &old));
		}
	}
	*ret_done = done;
	return STATUS_OK;
}

/* ---- The step ---- */

static enum status
sums_write(struct writing *w)
{
	for (size_t map = 0; w->sums && map < w->record.group.map_count; map++) {
		const struct sums s = { .tx = w->tx,
					.db = w->db,
					.group = &w->record.group,
					.map = map,
					.w = &w->w,
					.err = kv_tx_err(w->tx) };
		const struct reduce_run run = { .design = w->build->design,
						.functions = w->build->functions,
						.arg = w->build->arg,
						.memo = w->build->memo,
						.asked = w->build->asked,
						.w = &w->w,
						.error = &w->step->error,
						.err = kv_tx_err(w->tx) };

		TRY(sums_update(&s, &w->build->design->maps[map], &run, w->changes[map].all,
				w->changes[map].count));
	}
	return STATUS_OK;
}

/* The newest of what limits have kept out, up to the last document that the step has written. */
static enum status
refusals_note(struct writing *w, size_t done)
{
	struct view_group *g = &w->record.group;
	const struct view_batch *b = w->batch;
	size_t from = 0;

	for (size_t i = 0; i < b->left_out_count; i++) {
		const struct view_left_out *out = &b->left_out[i];
		struct view_refusal *refusal;

		/* Both are in the order of the documents. */
		while (from < done && !str_eq(b->docs[from].doc.id, out->id))
			from++;
		if (from == done)
			break;
		if (g->refusal_count == VIEW_REFUSALS_SHOWN)
			memmove(g->refusals, g->refusals + 1,
				--g->refusal_count * sizeof(*g->refusals));
		refusal = &g->refusals[g->refusal_count++];
		refusal->id = str_of(out->id.ptr,
				     out->id.len < SHOWN_ID_BYTES ? out->id.len : SHOWN_ID_BYTES);
		refusal->view = out->map < VIEW_VIEWS_MOST ? w->build->design->maps[out->map].name
							   : STR("");
		refusal->limit = str_from_cstr(out->limit);
		g->refused++;
	}
	return STATUS_OK;
}

/* How far the group is behind the first `done` documents of the batch. */
static enum status
record_advance(struct writing *w, size_t done)
{
	const struct view_documents *documents = view_documents_of(w->db);
	const struct view_batch *b = w->batch;
	struct view_group *g = &w->record.group;
	bool whole = done == b->count, purged;
	struct str reader;

	w->step->whole = whole;
	TRY(refusals_note(w, done));
	if (whole)
		g->covers = b->to;
	else if (done && !b->docs[done - 1].purged)
		g->covers = b->docs[done - 1].doc.seq;
	purged = whole || (done && !b->docs[done].purged);
	if (purged && catalog_seq_cmp(&b->purges_to, &g->purge_seq) > 0) {
		g->purge_seq = b->purges_to;
		TRY(view_purge_reader(g->number, w->arena, &reader));
		TRY(documents->purge_reader_advance(w->tx, w->db, reader, &g->purge_seq,
						    kv_tx_err(w->tx)));
	}
	w->record.done += done;
	if (w->record.total < w->record.done)
		w->record.total = w->record.done;
	if (g->phase == VIEW_PHASE_ROWS && w->sums) {
		g->phase = VIEW_PHASE_READY;
	} else if (g->phase == VIEW_PHASE_ROWS && whole && !b->more) {
		g->phase = VIEW_PHASE_SUMS;
		w->record.done = w->record.total = 0;
		for (size_t i = 0; i < g->map_count; i++)
			w->record.total += g->rows[i];
	}
	return STATUS_OK;
}

static enum status
write_all(struct writing *w)
{
	static const struct catalog_seq beginning;
	const struct view_batch *b = w->batch;
	struct view_group *g = &w->record.group;
	enum status status;
	size_t done = 0;

	TRY(view_build_open_db(w->build, w->tx, &w->db, kv_tx_err(w->tx)));
	TRY(catalog_db_check_writable(w->db, kv_tx_err(w->tx)));
	status = view_build_read(w->tx, w->db, w->build->design, KV_READ, w->arena, &w->record,
				 kv_tx_err(w->tx));
	if (status == STATUS_NOT_FOUND)
		return STATUS_BUSY;
	TRY(status);
	if (g->number != b->number || g->phase == VIEW_PHASE_SUMS ||
	    catalog_seq_cmp(&g->covers, &b->from) ||
	    catalog_seq_cmp(&g->purge_seq, &b->purges_from))
		return STATUS_BUSY;
	/* What is small is summed up at once. */
	w->sums = g->phase == VIEW_PHASE_READY ||
		  (!b->more && b->count <= *w->most && !catalog_seq_cmp(&g->covers, &beginning));
	TRY(docs_write(w, &done));
	if (w->sums && g->phase == VIEW_PHASE_ROWS && done < b->count) {
		w->sums = false; /* it is not: the sums come when all rows are there */
		memset(g->tops, 0, sizeof(g->tops));
	}
	TRY(sums_write(w));
	TRY(record_advance(w, done));
	return view_build_write(w->tx, w->db, &w->record);
}

static enum status
write_body(struct kv_tx *tx, void *arg)
{
	struct writing *w = arg;

	w->tx = tx;
	TRY(write_all(w));
	return w->build->asked->count ? STATUS_BUSY : STATUS_OK;
}

enum status
view_step_write(const struct view_build *build, const struct view_batch *batch, size_t *most,
		struct arena *arena, struct view_step *ret, struct err *err)
{
	struct writing *w = arena_zalloc(arena, sizeof(*w));
	enum status status;

	*ret = (struct view_step){ 0 };
	if (!w)
		return STATUS_LIMIT;
	w->build = build;
	w->batch = batch;
	w->most = most;
	w->arena = arena;
	w->step = ret;
	w->w.arena = arena;
	w->key = w->place = CATALOG_KEY_INIT;
	w->value = BUF_INIT(KV_LIMIT_VALUE_BYTES);
	status = view_step_run(build->store, write_body, w, most, err);
	ret->covers = w->record.group.covers;
	ret->phase = w->record.group.phase;
	ret->done = w->record.done;
	ret->total = w->record.total;
	buf_release(&w->key);
	buf_release(&w->place);
	buf_release(&w->value);
	catalog_db_unref(w->db);
	return status;
}
