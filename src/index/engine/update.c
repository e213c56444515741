/* Keeps entries in the transaction that changes a document; fills and clears indexes. */
#include "index/engine/update.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "catalog/keys.h"

enum {
	/*
	 * Memory for the entries of one document, which also counts as the request's: a filter
	 * looks at all leaves of a document, of which the largest has four million.
	 */
	WORK_BYTES = 512 * 1024 * 1024,
	CLEAR_STRETCH_BYTES = 256 * 1024,
	KEPT_BYTES = 8 * 1024 * 1024, /* entries of a build that are sorted together */
};

/* ---- What a batch shares ---- */

void
index_writer_init(struct index_writer *writer, struct kv_tx *tx, const struct catalog_db *db,
		  struct catalog_counts *counts, size_t list, struct arena *arena)
{
	*writer = (struct index_writer){
		.tx = tx,
		.db = db,
		.set = index_set_of(db),
		.counts = counts,
		.list = list,
		.part = arena_part(arena),
		.key = CATALOG_KEY_INIT,
	};
}

void
index_writer_release(struct index_writer *writer)
{
	arena_free(writer->work.arena);
	arena_free(writer->kept_arena);
	writer->work.arena = NULL;
	writer->kept_arena = NULL;
	buf_release(&writer->key);
}

/* The arena is the writer's own, since it is emptied after each document. */
static enum status
writer_begin(struct index_writer *writer)
{
	if (writer->work.arena) {
		arena_clear(writer->work.arena);
		return STATUS_OK;
	}
	writer->work.arena = arena_new(WORK_BYTES);
	if (!writer->work.arena)
		return STATUS_NOMEM;
	arena_set_part(writer->work.arena, writer->part);
	return STATUS_OK;
}

/* Notes that an entry comes (+1) or goes (-1). */
static enum status
writer_count(struct index_writer *writer, struct str key, int64_t change)
{
	/* What follows (P, ENTRIES); the number of the subspace takes two bytes. */
	struct str tail = str_skip(key, writer->db->prefix.len + 2);

	writer->entries_delta += change;
	return catalog_counts_add(writer->counts, writer->list, tail, change);
}

static enum status
writer_set(struct index_writer *writer, const struct kv_pair *pair, bool is_new)
{
	TRY(kv_set(writer->tx, pair->key, pair->value));
	return is_new ? writer_count(writer, pair->key, 1) : STATUS_OK;
}

/* ---- The entries of a build, sorted ---- */

static int
kept_compare(const void *a, const void *b)
{
	return str_cmp(((const struct kv_pair *)a)->key, ((const struct kv_pair *)b)->key);
}

/*
 * Writes the kept entries in key order. Neighbouring keys cost the store less than keys from all
 * over the index.
 */
static enum status
kept_write(struct index_writer *writer)
{
	if (writer->kept_count == 0)
		return STATUS_OK;
	qsort(writer->kept, writer->kept_count, sizeof(*writer->kept), kept_compare);
	for (size_t i = 0; i < writer->kept_count; i++) {
		TRY(step_count(1));
		TRY(writer_set(writer, &writer->kept[i], true));
	}
	writer->kept = NULL;
	writer->kept_count = writer->kept_cap = 0;
	arena_clear(writer->kept_arena);
	return STATUS_OK;
}

/* False if there is no room for one more entry. */
static bool
kept_add(struct index_writer *writer, const struct kv_pair *pair)
{
	struct kv_pair copy;

	if (arena_room(writer->kept_arena, &writer->kept, writer->kept_count, &writer->kept_cap,
		       sizeof(copy)) != STATUS_OK)
		return false;
	copy.key = arena_dup(writer->kept_arena, pair->key);
	copy.value = arena_dup(writer->kept_arena, pair->value);
	if (!copy.key.ptr || !copy.value.ptr)
		return false;
	writer->kept[writer->kept_count++] = copy;
	return true;
}

/*
 * Keeps a new entry to be written later with others, or writes it now if it is too large to keep.
 */
static enum status
kept_take(struct index_writer *writer, const struct kv_pair *pair)
{
	if (!writer->kept_arena) {
		writer->kept_arena = arena_new(KEPT_BYTES);
		if (!writer->kept_arena)
			return STATUS_NOMEM;
		arena_set_part(writer->kept_arena, writer->part);
	}
	if (kept_add(writer, pair))
		return STATUS_OK;
	TRY(kept_write(writer));
	return kept_add(writer, pair) ? STATUS_OK : writer_set(writer, pair, true);
}

enum status
index_writer_finish(struct index_writer *writer)
{
	const struct catalog_tally_list *list = &writer->db->kind->lists[writer->list];

	TRY(kept_write(writer));
	if (writer->entries_delta == 0)
		return STATUS_OK;
	buf_set(&writer->key, writer->db->prefix);
	tuple_put_u64(&writer->key, list->totals);
	tuple_put_str(&writer->key, STR(INDEX_STAT_ENTRIES));
	TRY(catalog_key_status(&writer->key));
	return catalog_counter_add(writer->tx, &writer->key, writer->entries_delta);
}

/* ---- The change of one index ---- */

struct index_diff {
	const struct index_def *def;
	struct index_pairs before;
	struct index_pairs after;
	/* By entry of `before`: asks whether it is there; NULL: all of them are. */
	struct kv_future **there;
	/* By entry of `after`: the first entries of its values; NULL: anybody may have them. */
	struct kv_future **taken;
};

/*
 * True if both bodies have the same values in all columns, so that their entries are the same and
 * no key has to be made. A filter may look at anything else.
 */
static enum status
change_keeps_values(struct index_writer *writer, const struct index_def *def,
		    const struct index_change *change, bool *ret)
{
	*ret = false;
	if (!change->before || !change->after || def->filter.ptr)
		return STATUS_OK;
	return def->form->has_same_columns(def, change->before, change->after, &writer->work, ret);
}

/* True if only the store knows whether the entries of `before` are there. */
static bool
change_meets_build(const struct index_def *def, const struct index_change *change)
{
	return def->state == INDEX_BUILDING && change->before &&
	       (!def->form->has_revisions || index_build_wants(def, &change->before_seq));
}

/* Asks for the first two entries with these values: one may be the document's own. */
static enum status
diff_ask_taken(struct index_writer *writer, const struct index_def *def, struct str key,
	       struct kv_future **ret)
{
	const struct kv_range_options options = { .limit = 2, .mode = KV_READ };
	struct tuple_reader r;
	struct tuple_elem e;
	size_t components = def->column_count + (def->flags & INDEX_PARTITIONED ? 1 : 0);
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct str values;

	index_key_entries(&writer->key, writer->db, def->number);
	TRY(catalog_key_status(&writer->key));
	r = tuple_reader(str_skip(key, writer->key.len));
	for (size_t i = 0; i < components; i++)
		TRY(tuple_next_elem(&r, &e));
	values = str_of(key.ptr, key.len - r.rest.len);
	buf_append_str(&end, values);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&end));
	*ret = kv_get_range(writer->tx, values, buf_str(&end), &options);
	return STATUS_OK;
}

static enum status
diff_make(struct index_writer *writer, const struct index_def *def,
	  const struct index_source *source, struct index_pairs *ret)
{
	enum status status = index_entries_make(writer->db, def, source, &writer->work, ret);

	if (status == STATUS_UNSUPPORTED)
		writer->refusal = ret->refusal;
	return status;
}

/* Asks for each of the entries whether it is there. */
static enum status
pairs_ask(struct index_writer *writer, const struct index_pairs *pairs, struct kv_future ***ret)
{
	*ret = arena_alloc(writer->work.arena, pairs->count * sizeof(**ret));
	if (!*ret)
		return STATUS_LIMIT;
	for (size_t i = 0; i < pairs->count; i++)
		(*ret)[i] = kv_get(writer->tx, pairs->pairs[i].key, KV_READ);
	return STATUS_OK;
}

/* Makes the entries of both sides, and asks for what has to be known of those in the store. */
static enum status
diff_begin(struct index_writer *writer, const struct index_change *change, struct index_diff *diff)
{
	if (change->before)
		TRY(diff_make(writer, diff->def, change->before, &diff->before));
	if (change->after)
		TRY(diff_make(writer, diff->def, change->after, &diff->after));
	if (change_meets_build(diff->def, change))
		TRY(pairs_ask(writer, &diff->before, &diff->there));
	if (!(diff->def->flags & INDEX_UNIQUE))
		return STATUS_OK;
	diff->taken = arena_alloc(writer->work.arena,
				  (diff->after.count + 1) * sizeof(struct kv_future *));
	if (!diff->taken)
		return STATUS_LIMIT;
	for (size_t i = 0; i < diff->after.count; i++)
		TRY(diff_ask_taken(writer, diff->def, diff->after.pairs[i].key, &diff->taken[i]));
	return STATUS_OK;
}

/* True if the values of the entry may be those of others. */
static bool
entry_is_free(struct str value)
{
	struct tuple_reader r = tuple_reader(value);
	uint64_t format, flags;

	return tuple_next_u64(&r, &format) == STATUS_OK &&
	       tuple_next_u64(&r, &flags) == STATUS_OK && (flags & INDEX_ENTRY_FREE);
}

/* STATUS_DUPLICATE if an entry of another document has the values of one of the new entries. */
static enum status
diff_check_unique(struct index_writer *writer, const struct index_diff *diff)
{
	for (size_t i = 0; diff->taken && i < diff->after.count; i++) {
		struct kv_range range;

		if (entry_is_free(diff->after.pairs[i].value))
			continue;
		TRY(kv_future_wait(diff->taken[i]));
		range = kv_future_range(diff->taken[i]);
		for (size_t j = 0; j < range.count; j++)
			if (!str_eq(range.pairs[j].key, diff->after.pairs[i].key)) {
				writer->duplicate = diff->after.pairs[i].value;
				TRY(arena_copy(writer->work.arena, range.pairs[j].key,
					       &writer->taken));
				return STATUS_DUPLICATE;
			}
	}
	return STATUS_OK;
}

/* Leaves only those entries of `before` that are in the store. */
static enum status
diff_wait_there(struct index_diff *diff)
{
	size_t kept = 0;

	if (!diff->there)
		return STATUS_OK;
	for (size_t i = 0; i < diff->before.count; i++) {
		struct kv_pair pair = diff->before.pairs[i];

		TRY(kv_future_wait(diff->there[i]));
		if (kv_future_value(diff->there[i], &pair.value))
			diff->before.pairs[kept++] = pair;
	}
	diff->before.count = kept;
	return STATUS_OK;
}

/* What is noted beside entries: that documents have arrays, and where they have no Sequences, which
 * are written while the index is built. */
static enum status
diff_note(struct index_writer *writer, const struct index_change *change,
	  const struct index_diff *diff)
{
	const struct index_def *def = diff->def;

	if (diff->after.many & ~def->many)
		TRY(index_many_note(writer->tx, writer->db, def, diff->after.many));
	if (def->form->has_revisions || def->state != INDEX_BUILDING ||
	    (!change->before && !change->after))
		return STATUS_OK;
	index_key_mark(&writer->key, writer->db, def->number,
		       change->before ? change->before->id : change->after->id);
	TRY(catalog_key_status(&writer->key));
	return kv_set(writer->tx, buf_str(&writer->key), STR(""));
}

/* Both sides are in key order: what only one of them has goes or comes. */
static enum status
diff_write(struct index_writer *writer, const struct index_diff *diff)
{
	size_t i = 0, j = 0;

	while (i < diff->before.count || j < diff->after.count) {
		int order = i == diff->before.count ? 1 : j == diff->after.count ? -1 : 0;

		if (order == 0)
			order = str_cmp(diff->before.pairs[i].key, diff->after.pairs[j].key);
		if (order < 0) {
			TRY(kv_clear(writer->tx, diff->before.pairs[i].key));
			TRY(writer_count(writer, diff->before.pairs[i].key, -1));
		} else if (order > 0) {
			TRY(writer_set(writer, &diff->after.pairs[j], true));
		} else if (!str_eq(diff->before.pairs[i].value, diff->after.pairs[j].value)) {
			TRY(writer_set(writer, &diff->after.pairs[j], false));
		}
		i += order <= 0;
		j += order >= 0;
	}
	return STATUS_OK;
}

/* Puts every index of another collation out of use: this process cannot keep it. */
static enum status
set_retire_stale(struct index_writer *writer)
{
	for (size_t i = 0; i < writer->set->count; i++) {
		const struct index_def *def = &writer->set->defs[i];

		if (index_is_stale(def))
			TRY(index_state_set(writer->tx, writer->db, def, INDEX_STALE, STR("")));
	}
	return STATUS_OK;
}

enum status
index_update(struct index_writer *writer, const struct index_change *change,
	     const struct index_def **ret_def)
{
	const struct index_set *set = writer->set;
	struct index_diff *diffs;
	size_t count = 0;

	if (!set || (!change->before && !change->after))
		return STATUS_OK;
	if (set->any_stale && !writer->retired) {
		TRY(set_retire_stale(writer));
		writer->retired = true;
	}
	TRY(writer_begin(writer));
	diffs = arena_zalloc(writer->work.arena, (set->kept_count + 1) * sizeof(*diffs));
	if (!diffs)
		return STATUS_LIMIT;
	for (size_t i = 0; i < set->kept_count; i++) {
		struct index_diff *diff = &diffs[count];
		bool same = false;

		if (change->untouched && change->untouched[i])
			continue;
		diff->def = set->kept[i];
		/* Without Sequences, a build makes the same entries of both bodies. */
		if (!change_meets_build(diff->def, change) || !diff->def->form->has_revisions)
			TRY(change_keeps_values(writer, diff->def, change, &same));
		if (same)
			continue;
		TRY(diff_begin(writer, change, diff));
		count++;
	}
	/* Nothing is written before all of them are known to be possible. */
	for (size_t i = 0; set->any_unique && i < count; i++) {
		enum status status = diff_check_unique(writer, &diffs[i]);

		if (status == STATUS_DUPLICATE)
			*ret_def = diffs[i].def;
		TRY(status);
	}
	for (size_t i = 0; i < count; i++) {
		TRY(diff_wait_there(&diffs[i]));
		TRY(diff_write(writer, &diffs[i]));
		TRY(diff_note(writer, change, &diffs[i]));
	}
	return STATUS_OK;
}

/* ---- Writers without a model's batch ---- */

enum status
index_writer_run(struct kv_tx *tx, const struct catalog_db *db, size_t list, struct arena *arena,
		 struct arena *lasting, index_writing *body, void *arg)
{
	AUTO(catalog_counts_release) struct catalog_counts counts;
	AUTO(index_writer_release) struct index_writer writer;

	catalog_counts_init(&counts, db, lasting);
	index_writer_init(&writer, tx, db, &counts, list, arena);
	TRY(body(&writer, arg));
	TRY(index_writer_finish(&writer));
	return catalog_counts_finish(&counts, tx, &writer.key);
}

/* ---- Building and clearing ---- */

enum status
index_build_document(struct index_writer *writer, const struct index_def *def,
		     const struct index_source *source, bool fresh)
{
	const struct index_change change = { .after = source };
	struct index_diff diff = { .def = def };
	struct kv_future **there = NULL;

	assert(def->state == INDEX_BUILDING);
	TRY(writer_begin(writer));
	TRY(diff_begin(writer, &change, &diff));
	if (!fresh)
		TRY(pairs_ask(writer, &diff.after, &there));
	TRY(diff_check_unique(writer, &diff));
	if (diff.after.many & ~def->many)
		TRY(index_many_note(writer->tx, writer->db, def, diff.after.many));
	for (size_t i = 0; i < diff.after.count; i++) {
		const struct kv_pair *pair = &diff.after.pairs[i];
		bool is_new = true;
		struct str value;

		if (there) {
			TRY(kv_future_wait(there[i]));
			is_new = !kv_future_value(there[i], &value);
		}
		/*
		 * The next document of a UNIQUE index must find this entry in the store, so it is
		 * not kept.
		 */
		if (fresh && !(def->flags & INDEX_UNIQUE))
			TRY(kept_take(writer, pair));
		else
			TRY(writer_set(writer, pair, is_new));
	}
	return STATUS_OK;
}

enum status
index_clear(struct index_writer *writer, const struct index_def *def, size_t limit, bool *ret_more)
{
	const struct kv_range_options options = { .limit = limit,
						  .limit_bytes = CLEAR_STRETCH_BYTES,
						  .mode = KV_READ };
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct kv_future *f;
	struct kv_range range;

	assert(def->state == INDEX_DROPPED || def->state == INDEX_FAILED);
	index_key_entries(&writer->key, writer->db, def->number);
	buf_append_buf(&end, &writer->key);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&writer->key));
	TRY(catalog_key_status(&end));
	f = kv_get_range(writer->tx, buf_str(&writer->key), buf_str(&end), &options);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	*ret_more = range.more;
	for (size_t i = 0; i < range.count; i++) {
		TRY(writer_count(writer, range.pairs[i].key, -1));
		TRY(step_count(1));
	}
	if (range.count == 0)
		return STATUS_OK;
	buf_set(&end, range.pairs[range.count - 1].key);
	buf_append_byte(&end, CATALOG_KEY_NEXT);
	TRY(catalog_key_status(&end));
	return kv_clear_range(writer->tx, range.pairs[0].key, buf_str(&end));
}
