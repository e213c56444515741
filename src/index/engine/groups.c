#include "index/engine/groups.h"

#include "base/mem.h"
#include "catalog/keys.h"
#include "catalog/stretches.h"
#include "index/engine/component.h"
#include "index/engine/scan.h"
#include "kv/few.h"

enum {
	GROUPS_READ_BYTES = 16 * 1024, /* of entries that are asked for at a time */
	GROUPS_READ_FIRST = 8,         /* entries, where counters tell of most */
	/* The counters are read once a group has so many entries: fewer are sooner read. */
	GROUPS_COUNTERS_FROM = 500,
	GROUPS_COUNTERS_BYTES = 16 * 1024 * 1024, /* of the counters; more of them are not used */
	GROUPS_SPACE_BYTES = 2, /* of the number of the subspace behind the database's prefix */
};

struct entry_copy {
	struct buf key; /* empty: there is none */
	struct buf value;
};

#define ENTRY_COPY_INIT                                                                            \
	{                                                                                          \
		.key = CATALOG_KEY_INIT, .value = BUF_INIT(KV_LIMIT_VALUE_BYTES)                   \
	}

static void
entry_copy_release(struct entry_copy *e)
{
	buf_release(&e->key);
	buf_release(&e->value);
}

struct index_groups {
	struct kv_tx *tx;
	const struct catalog_db *db;
	const struct index_def *def;
	size_t columns, most;
	size_t list_len;  /* of (P, ENTRIES), behind which stretches are told */
	size_t index_len; /* of (P, ENTRIES, number) */
	struct kv_scan scan;
	bool is_open, is_done, is_paused;
	size_t read;         /* entries */
	struct kv_pair pair; /* that comes next, if there is one */
	bool has_pair;
	struct entry_copy found; /* the first one behind the group, if that was looked for */
	struct entry_copy next;  /* `pair`, if it was found so */
	struct buf from;         /* where the scan begins when it is opened again */
	struct buf range_end;
	struct buf group_end; /* behind all entries of the group */
	struct buf place;     /* behind what was counted, without (P, ENTRIES, number) */
	struct buf id;

	struct arena *arena; /* of the stretches; NULL: they were not asked for */
	struct catalog_stretch *stretches;
	size_t stretch_count;
	size_t stretch; /* the first one that begins behind the last entry */
};

/* ---- Beginning ---- */

static enum status
scan_from(struct index_groups *g, struct str begin)
{
	const struct kv_range_options how = { .limit_bytes = GROUPS_READ_BYTES, .mode = KV_READ };

	if (g->is_open)
		kv_scan_release(&g->scan);
	g->is_open = false;
	/* Behind a stretch, often the first entry of the next group is all that is read. */
	TRY(kv_scan_init_few(&g->scan, g->tx, begin, buf_str(&g->range_end), &how,
			     g->arena ? GROUPS_READ_FIRST : 0));
	g->is_open = true;
	return STATUS_OK;
}

/* The scan goes on from there, once an entry is read by it. */
static enum status
scan_later(struct index_groups *g, struct str begin)
{
	if (g->is_open)
		kv_scan_release(&g->scan);
	g->is_open = false;
	buf_set(&g->from, begin);
	return buf_status(&g->from);
}

static enum status
groups_begin(struct index_groups *g, const struct index_range *range, struct str after)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;

	index_key_entries(&begin, g->db, g->def->number);
	g->index_len = begin.len;
	g->list_len = g->db->prefix.len + GROUPS_SPACE_BYTES;
	if (after.len) {
		buf_append_str(&begin, after);
		buf_append_byte(&begin, CATALOG_KEY_NEXT);
	}
	TRY(catalog_key_status(&begin));
	if (str_cmp(buf_str(&begin), range->begin) < 0)
		buf_set(&begin, range->begin);
	buf_set(&g->range_end,
		str_cmp(range->end, buf_str(&begin)) < 0 ? buf_str(&begin) : range->end);
	TRY(buf_status(&begin));
	TRY(buf_status(&g->range_end));
	return scan_from(g, buf_str(&begin));
}

enum status
index_groups_open(struct kv_tx *tx, const struct catalog_db *db, const struct index_def *def,
		  const struct index_range *range, const struct index_groups_options *options,
		  struct index_groups **ret)
{
	struct index_groups *g = mem_zalloc(sizeof(*g));
	enum status status;

	if (!g)
		return STATUS_NOMEM;
	*g = (struct index_groups){ .tx = tx,
				    .db = db,
				    .def = def,
				    .columns = options->columns,
				    .most = options->most,
				    .found = ENTRY_COPY_INIT,
				    .next = ENTRY_COPY_INIT,
				    .from = CATALOG_KEY_INIT,
				    .range_end = CATALOG_KEY_INIT,
				    .group_end = CATALOG_KEY_INIT,
				    .place = CATALOG_KEY_INIT,
				    .id = CATALOG_KEY_INIT };
	status = groups_begin(g, range, options->after);
	if (status == STATUS_OK)
		*ret = g;
	else
		index_groups_close(g);
	return status;
}

void
index_groups_close(struct index_groups *g)
{
	if (!g)
		return;
	if (g->is_open)
		kv_scan_release(&g->scan);
	entry_copy_release(&g->found);
	entry_copy_release(&g->next);
	buf_release(&g->from);
	buf_release(&g->range_end);
	buf_release(&g->group_end);
	buf_release(&g->place);
	buf_release(&g->id);
	arena_free(g->arena);
	mem_free(g);
}

/* ---- Stretches ---- */

static enum status
stretches_read(struct index_groups *g)
{
	enum status status = STATUS_UNSUPPORTED;

	g->arena = arena_new(GROUPS_COUNTERS_BYTES);
	if (!g->arena)
		return STATUS_NOMEM;
	for (size_t i = 0; i < g->db->kind->lists_count; i++)
		if (g->db->kind->lists[i].space == INDEX_SPACE_ENTRIES)
			status = catalog_tally_stretches(g->tx, g->db, i, g->arena, &g->stretches,
							 &g->stretch_count);
	if (status != STATUS_LIMIT && status != STATUS_CORRUPT)
		return status;
	/* Without them all entries are read. */
	g->stretch_count = 0;
	return STATUS_OK;
}

/* Passes over the stretches that begin in front of a place, or at it. */
static void
stretches_pass(struct index_groups *g, struct str at)
{
	while (g->stretch < g->stretch_count && str_cmp(g->stretches[g->stretch].lo, at) <= 0)
		g->stretch++;
}

/*
 * A stretch that begins within the group may end behind it, and have no entry of another group all
 * the same: where ranges were cut between two groups, it ends at the shortest place that separates
 * their entries. So this looks for the first entry behind the group, which is behind the stretch
 * then, and found to be the next one.
 */
static enum status
stretch_ends_group(struct index_groups *g, struct str stretch_end, bool *ret)
{
	const struct kv_range_options options = { .limit = 1, .mode = KV_READ };
	struct str end = buf_str(&g->range_end);
	struct kv_range range;
	struct kv_future *f;

	if (str_cmp(stretch_end, end) > 0)
		end = stretch_end;
	f = kv_get_range(g->tx, buf_str(&g->group_end), end, &options);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	buf_clear(&g->found.key);
	if (range.count) {
		buf_set(&g->found.key, range.pairs[0].key);
		buf_set(&g->found.value, range.pairs[0].value);
	}
	*ret = !range.count || str_cmp(range.pairs[0].key, stretch_end) >= 0;
	TRY(buf_status(&g->found.key));
	return buf_status(&g->found.value);
}

/* The entry that was found behind the group is the next one, if the range has it. */
static enum status
found_take(struct index_groups *g)
{
	AUTO(buf_release) struct buf behind = CATALOG_KEY_INIT;
	const struct entry_copy found = g->found;

	/* `pair` may lie in `next`. */
	g->found = g->next;
	g->next = found;
	g->is_done = !found.key.len || str_cmp(buf_str(&found.key), buf_str(&g->range_end)) >= 0;
	g->has_pair = !g->is_done;
	if (g->is_done)
		return STATUS_OK;
	g->pair = (struct kv_pair){ buf_str(&found.key), buf_str(&found.value) };
	buf_set_buf(&behind, &found.key);
	buf_append_byte(&behind, CATALOG_KEY_NEXT);
	TRY(catalog_key_status(&behind));
	return scan_later(g, buf_str(&behind));
}

/* Where a stretch begins or ends, as a key. */
static enum status
stretch_key(const struct index_groups *g, struct str tail, struct buf *ret)
{
	buf_set(ret, str_of(g->pair.key.ptr, g->list_len));
	buf_append_str(ret, tail);
	return catalog_key_status(ret);
}

/* Nobody changes what the stretches have, and the next entry is behind them. */
static enum status
stretches_end(struct index_groups *g, struct str begin, struct str end, bool is_found)
{
	if (str_cmp(end, buf_str(&g->range_end)) > 0)
		end = buf_str(&g->range_end);
	TRY(kv_add_read_conflict_range(g->tx, begin, end));
	if (is_found)
		return found_take(g);
	g->has_pair = false;
	return scan_later(g, end);
}

/*
 * Adds stretches that begin between the last entry and this one, and have entries of the group
 * alone, and goes on behind them.
 */
static enum status
stretches_take(struct index_groups *g, struct index_group *group, bool *ret_taken)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct str at = str_skip(g->pair.key, g->list_len);
	struct str group_end = str_skip(buf_str(&g->group_end), g->list_len);
	size_t first = g->stretch, next = first;
	bool is_last = false;

	*ret_taken = false;
	if (first == g->stretch_count || str_cmp(g->stretches[first].lo, at) > 0)
		return STATUS_OK;
	for (; next < g->stretch_count && str_cmp(g->stretches[next].hi, group_end) <= 0; next++)
		group->entries += g->stretches[next].keys;
	if (next < g->stretch_count && str_cmp(g->stretches[next].lo, group_end) < 0) {
		TRY(stretch_key(g, g->stretches[next].hi, &end));
		TRY(stretch_ends_group(g, buf_str(&end), &is_last));
		if (is_last)
			group->entries += g->stretches[next++].keys;
	}
	if (next == first) {
		stretches_pass(g, at);
		return STATUS_OK;
	}
	TRY(stretch_key(g, g->stretches[first].lo, &begin));
	TRY(stretch_key(g, g->stretches[next - 1].hi, &end));
	g->stretch = next;
	*ret_taken = true;
	return stretches_end(g, buf_str(&begin), buf_str(&end), is_last);
}

/* From the first large group on no entry is taken without a look at the stretches. */
static enum status
stretches_look(struct index_groups *g, struct index_group *group, bool *ret_taken)
{
	*ret_taken = false;
	if (g->arena)
		return stretches_take(g, group, ret_taken);
	if (group->entries < GROUPS_COUNTERS_FROM)
		return STATUS_OK;
	TRY(stretches_read(g));
	stretches_pass(g, str_skip(g->pair.key, g->list_len));
	return STATUS_OK;
}

/* ---- Groups ---- */

/* Keeps where the group of an entry ends. */
static enum status
group_begin(struct index_groups *g, struct index_work *w, struct index_group *ret)
{
	size_t share = index_component_share(g->def);
	struct str tail = str_skip(g->pair.key, g->index_len);
	struct tuple_reader r = tuple_reader(tail);
	struct index_entry entry;
	struct tuple_elem e;

	TRY(index_entry_parse(g->def, tail, g->pair.value, w->arena, &entry));
	buf_set(&g->id, entry.id);
	TRY(buf_status(&g->id));
	*ret = (struct index_group){ .id = buf_str(&g->id) };
	for (size_t i = 0; i < g->columns; i++) {
		size_t left = r.rest.len;

		TRY(tuple_next_elem(&r, &e));
		/* As long as one that was cut. */
		if (left - r.rest.len >= share)
			return STATUS_UNSUPPORTED;
	}
	buf_set_buf(&g->group_end, &g->range_end);
	if (!g->columns)
		return buf_status(&g->group_end);
	buf_set(&g->group_end, str_of(g->pair.key.ptr, g->pair.key.len - r.rest.len));
	buf_append_byte(&g->group_end, CATALOG_KEY_LAST);
	/* Of a group that the range ends in. */
	if (str_cmp(buf_str(&g->group_end), buf_str(&g->range_end)) > 0)
		buf_set_buf(&g->group_end, &g->range_end);
	return catalog_key_status(&g->group_end);
}

/* The next entry, in g->pair. */
static enum status
entry_next(struct index_groups *g)
{
	enum status status;

	if (g->has_pair)
		return STATUS_OK;
	if (g->is_done)
		return STATUS_NOT_FOUND;
	if (!g->is_open)
		TRY(scan_from(g, buf_str(&g->from)));
	status = kv_scan_next(&g->scan, &g->pair);
	g->is_done = status == STATUS_NOT_FOUND;
	g->has_pair = status == STATUS_OK;
	return status;
}

/* Takes the entry, or what the counters tell of it and those behind it. */
static enum status
entry_take(struct index_groups *g, struct index_work *w, struct index_group *group)
{
	bool is_taken;

	TRY(stretches_look(g, group, &is_taken));
	if (is_taken)
		return STATUS_OK;
	g->has_pair = false;
	group->entries++;
	TRY(index_count(w, 1));
	g->is_paused = ++g->read >= g->most;
	if (g->is_paused)
		buf_set(&g->place, str_skip(g->pair.key, g->index_len));
	return buf_status(&g->place);
}

enum status
index_groups_next(struct index_groups *g, struct index_work *w, struct index_group *ret)
{
	enum status status;

	if (g->is_done || g->is_paused)
		return STATUS_NOT_FOUND;
	TRY(entry_next(g));
	TRY(group_begin(g, w, ret));
	do {
		TRY(entry_take(g, w, ret));
		if (g->is_paused)
			return STATUS_OK;
		status = entry_next(g);
	} while (status == STATUS_OK && str_cmp(g->pair.key, buf_str(&g->group_end)) < 0);
	buf_set(&g->place, str_skip(buf_str(&g->group_end), g->index_len));
	TRY(buf_status(&g->place));
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

bool
index_groups_paused(const struct index_groups *g)
{
	return !g->is_done;
}

enum status
index_groups_place(const struct index_groups *g, struct buf *ret)
{
	buf_append_buf(ret, &g->place);
	return buf_status(ret);
}
