/* A step that writes a batch: rows, the lists of documents' rows, sums, the record. */
#include "index/view/build.h"
#include "index/view/keys.h"
#include "index/view/sums.h"

#include "base/hash.h"

enum {
	BACK_WAVE = 64, /* documents whose rows are asked for together */
	CLEAR_OVERHEAD_BYTES = 200,
	SHOWN_ID_BYTES = 512,            /* of an id that a refusal remembers */
	VIEW_ROW_BYTES_BEFORE = 1000000, /* the limits of fronds that know the first formats only */
	VIEW_DOC_BYTES_BEFORE = 4000000,
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
	struct view_step_size *size;
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
	TRY(arena_room(w->arena, &c->all, c->count, &c->cap, sizeof(*c->all)));
	change = &c->all[c->count];
	*change = (struct sums_change){ .place = buf_dup(&w->place, w->arena),
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
	buf_append_buf(&w->key, &w->place);
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

static bool
row_is_chunked(const struct view_mapped *row)
{
	return row->key.len + row->value.len > VIEW_CHUNK_BYTES;
}

/* Makes the row's value in w->value, and the hash by which it is known again. */
static enum status
row_value(struct writing *w, const struct view_mapped *row, uint64_t *ret_hash)
{
	bool chunked = row_is_chunked(row);

	view_row_put(&w->value, &(struct view_row_value){ .key = row->key,
							  .value = row->value,
							  .chunked = chunked,
							  .key_bytes = row->key.len,
							  .value_bytes = row->value.len });
	TRY(buf_status(&w->value));
	*ret_hash = hash_seeded(w->record.group.seed, buf_str(&w->value));
	if (chunked)
		*ret_hash ^= hash_seeded(w->record.group.seed, row->key) * 31 ^
			     hash_seeded(w->record.group.seed, row->value);
	return STATUS_OK;
}

/* Sets the row at w->place; `old` is what is there, or NULL. */
static enum status
row_set(struct writing *w, const struct view_mapped *row, const struct view_back *old,
	struct view_back *ret)
{
	bool chunked = row_is_chunked(row);

	TRY(row_value(w, row, &ret->hash));
	ret->chunks = 0;
	if (row->key.len + row->value.len > VIEW_ROW_BYTES_BEFORE)
		w->record.group.large = true;
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

/* Both are in the order of maps and ordinals, so the search goes on where the last one ended. */
static const struct view_back *
back_find(const struct view_back *backs, size_t count, const struct view_mapped *row, size_t *at)
{
	while (*at < count && (backs[*at].map < row->map ||
			       (backs[*at].map == row->map && backs[*at].ordinal < row->ordinal)))
		(*at)++;
	if (*at == count || backs[*at].map != row->map || backs[*at].ordinal != row->ordinal)
		return NULL;
	return str_eq(backs[*at].component, row->component) ? &backs[*at] : NULL;
}

/* The rows that the document has now. */
struct old_rows {
	bool listed;
	struct view_back_head head;
	struct view_back *backs;
	size_t count;
	struct str text; /* of the list, without the head */
};

static struct str
text_chunk(struct str text, uint64_t n)
{
	size_t at = (size_t)n * VIEW_CHUNK_BYTES;

	if (at >= text.len)
		return STR("");
	return str_of(text.ptr + at,
		      text.len - at < VIEW_CHUNK_BYTES ? text.len - at : VIEW_CHUNK_BYTES);
}

static enum status
doc_key(struct writing *w, struct str id, uint64_t n)
{
	view_key_doc(&w->key, w->db, w->record.group.number, id);
	if (n)
		tuple_put_u64(&w->key, n);
	return catalog_key_status(&w->key);
}

/* Clears the pairs of the list from the one of this number on. */
static enum status
list_clear(struct writing *w, struct str id, uint64_t from)
{
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;

	TRY(doc_key(w, id, 0));
	buf_append_buf(&end, &w->key);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&end));
	TRY(doc_key(w, id, from));
	return kv_clear_range(w->tx, buf_str(&w->key), buf_str(&end));
}

/* Writes the list of a document: the pairs that are others than before. */
static enum status
list_write(struct writing *w, struct str id, const struct view_back *backs, size_t count,
	   struct view_back_head *head, const struct old_rows *old)
{
	AUTO(buf_release) struct buf text = BUF_INIT(2 * VIEW_DOC_BYTES);
	bool wanted = count || head->half || head->lacking;

	for (size_t i = 0; i < count; i++)
		view_back_put(&text, &backs[i]);
	TRY(buf_status(&text));
	head->chunks = (text.len + VIEW_CHUNK_BYTES - 1) / VIEW_CHUNK_BYTES;
	if (!wanted)
		return old->listed ? list_clear(w, id, 0) : STATUS_OK;
	if (old->listed && old->head.chunks > head->chunks)
		TRY(list_clear(w, id, head->chunks ? head->chunks : 1));
	for (uint64_t n = 0; n == 0 || n < head->chunks; n++) {
		struct str chunk = text_chunk(buf_str(&text), n);
		bool same = old->listed && str_eq(chunk, text_chunk(old->text, n));

		buf_clear(&w->value);
		if (n == 0) {
			same = same && head->chunks == old->head.chunks &&
			       head->half == old->head.half && head->lacking == old->head.lacking;
			view_back_head_put(&w->value, head);
		}
		buf_append_str(&w->value, chunk);
		TRY(buf_status(&w->value));
		TRY(doc_key(w, id, n));
		if (!same)
			TRY(kv_set(w->tx, buf_str(&w->key), buf_str(&w->value)));
	}
	return STATUS_OK;
}

static enum status
list_append_pairs(struct writing *w, struct str id, uint64_t chunks, struct buf *text)
{
	struct kv_future *f;
	struct str value;

	for (uint64_t n = 1; n < chunks; n++) {
		TRY(doc_key(w, id, n));
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
list_read(struct writing *w, struct str id, struct kv_future *f, struct old_rows *ret)
{
	AUTO(buf_release) struct buf text = BUF_INIT(2 * VIEW_DOC_BYTES);
	struct str value;

	*ret = (struct old_rows){ 0 };
	TRY(kv_future_wait(f));
	ret->listed = kv_future_value(f, &value);
	if (!ret->listed)
		return STATUS_OK;
	TRY(view_back_head_parse(&value, &ret->head, kv_tx_err(w->tx)));
	buf_append_str(&text, value);
	TRY(list_append_pairs(w, id, ret->head.chunks, &text));
	TRY(arena_copy(w->arena, buf_str(&text), &ret->text));
	return view_backs_parse(ret->text, w->arena, &ret->backs, &ret->count);
}

/* ---- What a document lacks ---- */

/* What limits keep out of a document, by map. */
struct lacks {
	struct view_lack maps[VIEW_VIEWS_MOST];
	uint64_t bits;
};

static void
lacks_of(const struct writing *w, const struct view_mapped_doc *doc, struct lacks *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < doc->left_out_count; i++) {
		const struct view_left_out *out = &w->batch->left_out[doc->left_out_first + i];
		bool whole = out->map == VIEW_VIEWS_MOST;

		for (size_t map = 0; map < w->record.group.map_count; map++) {
			if (!whole && map != out->map)
				continue;
			if (!(ret->bits & UINT64_C(1) << map))
				ret->maps[map].limit = str_from_cstr(out->limit);
			ret->maps[map].rows += whole ? 0 : out->rows;
			ret->bits |= UINT64_C(1) << map;
		}
	}
}

/* Notes what the maps lack of the document, in place of what they have lacked so far. */
static enum status
lacks_write(struct writing *w, const struct view_mapped_doc *doc, uint64_t before,
	    uint64_t *ret_bits)
{
	struct view_group *g = &w->record.group;
	struct lacks lacks;

	lacks_of(w, doc, &lacks);
	*ret_bits = lacks.bits;
	for (size_t map = 0; (lacks.bits | before) && map < g->map_count; map++) {
		bool has = lacks.bits >> map & 1, had = before >> map & 1;

		if (!has && !had)
			continue;
		g->lacking[map] += (uint64_t)has - (uint64_t)had;
		view_key_lack(&w->key, w->db, g->number, map, doc->doc.id);
		TRY(catalog_key_status(&w->key));
		view_lack_put(&w->value, &lacks.maps[map]);
		TRY(buf_status(&w->value));
		if (has)
			TRY(kv_set(w->tx, buf_str(&w->key), buf_str(&w->value)));
		else
			TRY(kv_clear(w->tx, buf_str(&w->key)));
	}
	return STATUS_OK;
}

/* ---- One document ---- */

/* The document has all its rows: notes what it lacks, and writes the list. */
static enum status
doc_end(struct writing *w, const struct view_mapped_doc *doc, const struct view_back *backs,
	const struct old_rows *old)
{
	struct view_back_head head = { 0 };

	TRY(lacks_write(w, doc, old->head.lacking, &head.lacking));
	w->record.group.halves -= old->head.half;
	if (doc->bytes > VIEW_DOC_BYTES_BEFORE)
		w->record.group.large = true;
	return list_write(w, doc->doc.id, backs, doc->count, &head, old);
}

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
		const struct view_back *before = back_find(old->backs, old->count, &rows[i], &at);

		if (before)
			kept[at] = true;
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
	return doc_end(w, doc, backs, old);
}

/* ---- A document in parts ---- */

/*
 * A document that has or had more rows than one transaction takes is written in several. Its list
 * always has exactly the rows that are there. Each step brings the list nearer to what it is to be:
 * as far as the two begin alike it stays; what comes behind is cleared, from the end; when that is
 * done, the next step appends the others. So a step needs to know nothing of the steps before it,
 * and if the document changes in between, the next step heads for the new rows. No step both clears
 * and appends, because a place may only be changed once in a step.
 */

/* True if the step may write so many bytes more. */
static bool
part_has_room(const struct writing *w, size_t bytes)
{
	return kv_tx_stats(w->tx).size_bytes + bytes < w->size->bytes;
}

/* How many rows the list begins with that the document is to have. */
static enum status
part_same(struct writing *w, const struct view_mapped *rows, size_t count,
	  const struct old_rows *old, size_t *ret)
{
	size_t same = 0;

	for (; same < count && same < old->count; same++) {
		const struct view_back *back = &old->backs[same];
		uint64_t hash;

		if (back->map != rows[same].map || back->ordinal != rows[same].ordinal ||
		    !str_eq(back->component, rows[same].component))
			break;
		TRY(row_value(w, &rows[same], &hash));
		if (hash != back->hash)
			break;
	}
	*ret = same;
	return STATUS_OK;
}

/* Appends rows behind the `*count` ones that are there, at least one if there is one more. */
static enum status
part_append(struct writing *w, const struct view_mapped_doc *doc, struct view_back *backs,
	    size_t *count)
{
	size_t first = *count;

	while (*count < doc->count) {
		const struct view_mapped *row = &w->batch->rows[doc->first + *count];
		struct view_back *back = &backs[*count];

		if (*count > first && !part_has_room(w, row->key.len + row->value.len))
			return STATUS_OK;
		(*count)++;
		*back = (struct view_back){ .map = row->map,
					    .component = row->component,
					    .ordinal = row->ordinal };
		doc_place(w, doc->doc.id, row->component, row->ordinal);
		TRY(buf_status(&w->place));
		TRY(row_set(w, row, NULL, back));
	}
	return STATUS_OK;
}

/* Brings the document nearer to its rows. `*ret_whole`: it has all of them. */
static enum status
doc_apply_part(struct writing *w, const struct view_mapped_doc *doc, const struct old_rows *old,
	       bool *ret_whole)
{
	const struct view_mapped *rows = doc->count ? w->batch->rows + doc->first : NULL;
	size_t most = doc->count > old->count ? doc->count : old->count, same, count = old->count;
	struct view_back *backs = arena_alloc(w->arena, (most + 1) * sizeof(*backs));
	struct view_back_head head = { .half = true, .lacking = old->head.lacking };

	if (!backs)
		return STATUS_LIMIT;
	TRY(part_same(w, rows, doc->count, old, &same));
	for (size_t i = 0; i < old->count; i++)
		backs[i] = old->backs[i];
	if (count > same) {
		do
			TRY(row_clear(w, doc->doc.id, &old->backs[--count]));
		while (count > same && part_has_room(w, 0));
		*ret_whole = count == same && count == doc->count;
	} else {
		TRY(part_append(w, doc, backs, &count));
		*ret_whole = count == doc->count;
	}
	if (*ret_whole)
		return doc_end(w, doc, backs, old);
	w->record.group.halves += !old->head.half;
	w->record.group.large = true;
	return list_write(w, doc->doc.id, backs, count, &head, old);
}

/* A document that is older than the build cannot have rows yet, unless it is half written. */
static bool
doc_is_fresh(const struct writing *w, const struct view_mapped_doc *doc)
{
	return w->record.group.phase == VIEW_PHASE_ROWS && !doc->purged &&
	       !w->record.group.halves && catalog_seq_cmp(&doc->doc.seq, &w->record.fresh) <= 0;
}

/* True if the document may make the transaction too large, beside what is in it. */
static bool
doc_has_no_room(struct writing *w, const struct view_mapped_doc *doc, const struct old_rows *old)
{
	size_t bytes = doc->bytes + 3 * old->text.len + old->count * CLEAR_OVERHEAD_BYTES;

	return kv_tx_stats(w->tx).size_bytes + bytes > w->size->bytes;
}

static enum status
docs_write(struct writing *w, size_t *ret_done)
{
	struct kv_future *futures[BACK_WAVE];
	const struct view_batch *b = w->batch;
	size_t count = b->count < w->size->most ? b->count : w->size->most, done = 0;

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
			bool fits, whole = true;

			if (futures[i])
				TRY(list_read(w, b->docs[done].doc.id, futures[i], &old));
			fits = !doc_has_no_room(w, &b->docs[done], &old);
			*ret_done = done;
			if (done && !fits)
				return STATUS_OK;
			TRY(fits ? doc_apply(w, &b->docs[done], &old)
				 : doc_apply_part(w, &b->docs[done], &old, &whole));
			if (!whole)
				return STATUS_OK;
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
		const struct sums s = sums_of(w->tx, w->db, &w->record.group, map, &w->w);
		const struct reduce_run run = view_build_reduces(w->build, &w->w, &w->step->error,
								 s.err);

		TRY(sums_update(&s, &w->build->design->maps[map], &run, w->changes[map].all,
				w->changes[map].count));
	}
	return STATUS_OK;
}

/* The newest of what limits have kept out of the documents that the step has written. */
static void
refusals_note(struct writing *w, size_t done)
{
	struct view_group *g = &w->record.group;
	const struct view_batch *b = w->batch;
	size_t end = 0;

	/* What is left out comes in the order of the documents. */
	for (size_t i = 0; i < done; i++)
		if (b->docs[i].left_out_count)
			end = b->docs[i].left_out_first + b->docs[i].left_out_count;
	for (size_t i = 0; i < end; i++) {
		const struct view_left_out *out = &b->left_out[i];
		struct view_refusal *refusal;

		if (g->refusal_count == VIEW_REFUSALS_SHOWN)
			memmove(g->refusals, g->refusals + 1,
				--g->refusal_count * sizeof(*g->refusals));
		refusal = &g->refusals[g->refusal_count++];
		refusal->id = str_of(out->id.ptr,
				     out->id.len < SHOWN_ID_BYTES ? out->id.len : SHOWN_ID_BYTES);
		refusal->view = out->map < VIEW_VIEWS_MOST ? w->build->design->maps[out->map].name
							   : STR("");
		refusal->limit = str_from_cstr(out->limit);
		g->refused += out->rows;
	}
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
	w->step->docs = done;
	refusals_note(w, done);
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
	/* What is small is summed up at once, unless there are rows from steps before this one. */
	w->sums = g->phase == VIEW_PHASE_READY ||
		  (!b->more && !g->halves && b->count <= w->size->most &&
		   !catalog_seq_cmp(&g->covers, &beginning));
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
view_step_write(const struct view_build *build, const struct view_batch *batch,
		struct view_step_size *size, struct arena *arena, struct view_step *ret,
		struct err *err)
{
	struct writing *w = arena_zalloc(arena, sizeof(*w));
	enum status status;

	*ret = (struct view_step){ 0 };
	if (!w)
		return STATUS_LIMIT;
	w->build = build;
	w->batch = batch;
	w->size = size;
	w->arena = arena;
	w->step = ret;
	w->w.arena = arena;
	w->key = w->place = CATALOG_KEY_INIT;
	w->value = BUF_INIT(KV_LIMIT_VALUE_BYTES);
	status = view_step_run(build->store, write_body, w, size, err);
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
