#include "door/couch/query/find_aggregate.h"

#include <assert.h>

#include "base/hash.h"
#include "base/metric.h"
#include "doc/json.h"
#include "door/couch/query/exact_sum.h"
#include "door/couch/wire/error.h"
#include "index/collate.h"
#include "index/json/component.h"
#include "loop/sort.h"
#include "model/revisioned/list.h"

enum {
	GROUP_TABLE_LEAST = 64,  /* slots of the table of groups at first */
	GROUP_WRITE_BATCH = 100, /* groups between two looks at whether to send */
};

/* ---- Groups ---- */

/* The least or the greatest value so far. */
struct best {
	char *text; /* as JSON, in the arena of the groups */
	size_t len;
	size_t cap;
	bool is_number; /* `number` is the same: an integer of 64 bits, or a double */
	struct leaf_number number;
};

struct function_state {
	struct exact_sum sum;
	struct best best;
};

struct group {
	uint64_t hash;
	struct str key;   /* sorts and compares as the values do */
	struct str shown; /* the values, as a JSON object */
	uint64_t docs;
	struct function_state *states; /* of each function */
};

struct find_groups {
	struct find *f;
	const struct aggregate *spec;
	bool streamed;
	struct find_members members;
	struct index_def key_def; /* what makes keys of the values */
	struct buf key;
	struct buf text;
	struct arena *arena;   /* of the groups */
	struct group *current; /* streamed */
	struct group **slots;  /* gathered: open addressing; NULL where there is none */
	size_t slots_count;
	size_t count;   /* of groups, in the table */
	uint64_t limit; /* of the answer */

	size_t end;      /* the function whose value is read from an end of an index */
	bool end_is_cut; /* that index does not tell which value is the first */
};

/* There is no room in the groups' arena. */
static enum status
groups_refuse_bytes(const struct find_groups *g)
{
	if (!arena_is_full(g->arena))
		return STATUS_NOMEM;
	METRIC_REFUSED("sort_bytes");
	return couch_fail_set(
		&g->f->r->fail, COUCH_ERROR_NO_USABLE_INDEX,
		"The groups take more memory than [mango] sort_bytes, %zu, allows. An "
		"index that begins with the fields of `group_by` has them in order.",
		arena_limit_bytes(g->arena));
}

static enum status
groups_refuse_count(const struct find_groups *g)
{
	METRIC_REFUSED("aggregate_groups");
	return couch_fail_set(
		&g->f->r->fail, COUCH_ERROR_NO_USABLE_INDEX,
		"The documents are in more groups than [mango] aggregate_groups, %llu, "
		"allows. An index that begins with the fields of `group_by` has them "
		"in order, and needs no such limit.",
		(unsigned long long)g->f->r->settings->aggregate_groups);
}

/* Makes the key of a document's group. `*ret_found` is false if it lacks one of the fields. */
static enum status
groups_make_key(struct find_groups *g, const struct selector_doc *doc, struct leaf_value *values,
		struct index_work *w, bool *ret_found)
{
	bool cut = false;

	*ret_found = true;
	buf_clear(&g->key);
	for (size_t i = 0; i < g->spec->group_count; i++) {
		struct index_value value = { .found = true };

		TRY(find_doc_value(doc, &g->spec->paths[i], &values[i], ret_found));
		if (!*ret_found)
			return STATUS_OK;
		value.leaf = values[i];
		TRY(index_json_component_put(&g->key, &g->key_def, i, &value, w, &cut));
	}
	if (cut)
		return couch_fail_set(
			&g->f->r->fail, COUCH_ERROR_INVALID_AGGREGATE,
			"A value of `group_by` is too long to tell groups apart: all of "
			"them together have %d bytes as a key",
			INDEX_COMPONENTS_BYTES);
	return buf_status(&g->key);
}

static enum status
groups_new(struct find_groups *g, const struct leaf_value *values, struct group **ret)
{
	const struct aggregate *spec = g->spec;
	struct group *group = arena_zalloc(g->arena, sizeof(*group));
	size_t functions = spec->count - spec->group_count;

	assert(values || !spec->group_count);
	buf_clear(&g->text);
	for (size_t i = 0; i < spec->group_count; i++) {
		buf_append_cstr(&g->text, i ? "," : "{");
		json_write_str(&g->text, spec->fields[i]);
		buf_append_byte(&g->text, ':');
		TRY(leaf_write(&values[i], &g->text));
	}
	buf_append_cstr(&g->text, spec->group_count ? "}" : "");
	TRY(buf_status(&g->text));
	if (!group)
		return groups_refuse_bytes(g);
	group->key = buf_dup(&g->key, g->arena);
	group->shown = buf_dup(&g->text, g->arena);
	group->states = arena_zalloc(g->arena, (functions + 1) * sizeof(*group->states));
	if (!group->key.ptr || !group->shown.ptr || !group->states)
		return groups_refuse_bytes(g);
	*ret = group;
	return STATUS_OK;
}

/* ---- The table of gathered groups ---- */

/* The slot of a group with this key, or the free one where it belongs. */
static struct group **
table_find(struct find_groups *g, uint64_t hash, struct str key)
{
	size_t at = (size_t)hash & (g->slots_count - 1);

	while (g->slots[at] && (g->slots[at]->hash != hash || !str_eq(g->slots[at]->key, key)))
		at = (at + 1) & (g->slots_count - 1);
	return &g->slots[at];
}

static enum status
table_grow(struct find_groups *g)
{
	struct group **old = g->slots;
	size_t old_count = g->slots_count;

	if (2 * (g->count + 1) <= old_count)
		return STATUS_OK;
	g->slots_count = old_count ? 2 * old_count : GROUP_TABLE_LEAST;
	g->slots = arena_zalloc(g->arena, g->slots_count * sizeof(struct group *));
	if (!g->slots)
		return groups_refuse_bytes(g);
	for (size_t i = 0; i < old_count; i++) {
		if (old[i])
			*table_find(g, old[i]->hash, old[i]->key) = old[i];
	}
	return STATUS_OK;
}

static enum status
table_get(struct find_groups *g, const struct leaf_value *values, struct group **ret)
{
	uint64_t hash = hash_keyed(0, buf_str(&g->key));
	struct group **slot;

	TRY(table_grow(g));
	slot = table_find(g, hash, buf_str(&g->key));
	if (!*slot) {
		if (g->count >= g->f->r->settings->aggregate_groups)
			return groups_refuse_count(g);
		TRY(groups_new(g, values, slot));
		assert(*slot);
		(*slot)->hash = hash;
		g->count++;
	}
	*ret = *slot;
	return STATUS_OK;
}

/* ---- Functions ---- */

static enum status
best_set(struct find_groups *g, struct best *b, const struct leaf_value *v)
{
	buf_clear(&g->text);
	TRY(leaf_write(v, &g->text));
	TRY(buf_status(&g->text));
	if (g->text.len > b->cap) {
		/* At least doubled, so that values which grow take twice their memory at most. */
		b->cap = 2 * b->cap > g->text.len ? 2 * b->cap : g->text.len;
		b->text = arena_bytes(g->arena, b->cap);
		if (!b->text)
			return groups_refuse_bytes(g);
	}
	memcpy(b->text, g->text.ptr, g->text.len);
	b->len = g->text.len;
	return STATUS_OK;
}

static enum status
best_take(struct find_groups *g, struct best *b, const struct leaf_value *v,
	  const struct leaf_number *number, int sign, struct index_work *w)
{
	bool is_number = number &&
			 (number->form == LEAF_NUMBER_INT || number->form == LEAF_NUMBER_DOUBLE);
	struct leaf_value old;
	int c = 1;

	if (b->len && is_number && b->is_number) {
		c = sign * leaf_number_cmp(number, &b->number);
	} else if (b->len) {
		TRY(leaf_parse(str_of(b->text, b->len), w->arena, &old, NULL));
		TRY(collate_compare(v, &old, w, &c));
		c *= sign;
	}
	if (c <= 0)
		return STATUS_OK;
	b->is_number = is_number;
	if (is_number)
		b->number = *number;
	return best_set(g, b, v);
}

static enum status
function_take(struct find_groups *g, enum aggregate_kind kind, struct function_state *s,
	      const struct leaf_value *v, struct index_work *w)
{
	struct leaf_number number;
	enum leaf_kind value_kind;
	bool is_number;

	TRY(leaf_kind(v, &value_kind));
	is_number = value_kind == LEAF_NUMBER;
	if (is_number)
		TRY(leaf_number(v, &number));
	switch (kind) {
	case AGGREGATE_SUM:
	case AGGREGATE_AVG:
		return is_number ? exact_sum_add(&s->sum, &number, g->arena, w) : STATUS_OK;
	case AGGREGATE_MIN:
	case AGGREGATE_MAX:
		return best_take(g, &s->best, v, is_number ? &number : NULL,
				 kind == AGGREGATE_MAX ? 1 : -1, w);
	case AGGREGATE_KINDS:
		break;
	}
	return STATUS_OK;
}

static enum status
function_write(const struct find_groups *g, enum aggregate_kind kind,
	       const struct function_state *s, struct buf *out)
{
	struct arena *arena = g->f->r->arena;

	switch (kind) {
	case AGGREGATE_SUM:
		return exact_sum_write(&s->sum, arena, out);
	case AGGREGATE_AVG:
		return exact_sum_write_mean(&s->sum, arena, out);
	case AGGREGATE_MIN:
	case AGGREGATE_MAX:
	case AGGREGATE_KINDS:
		break;
	}
	buf_append_str(out, s->best.len ? str_of(s->best.text, s->best.len) : STR("null"));
	return buf_status(out);
}

/* ---- Writing groups ---- */

static enum status
group_write_functions(const struct find_groups *g, const struct group *group, bool any,
		      struct buf *out)
{
	const struct aggregate *spec = g->spec;

	for (size_t i = spec->group_count; i < spec->count; i++) {
		bool first = i == spec->group_count || spec->kinds[i] != spec->kinds[i - 1];

		if (first)
			buf_printf(out, "%s\"%s\":{", any ? "," : "",
				   aggregate_kind_name(spec->kinds[i]));
		buf_append_cstr(out, first ? "" : ",");
		json_write_str(out, spec->fields[i]);
		buf_append_byte(out, ':');
		TRY(function_write(g, spec->kinds[i], &group->states[i - spec->group_count], out));
		if (i + 1 == spec->count || spec->kinds[i + 1] != spec->kinds[i])
			buf_append_byte(out, '}');
		any = true;
	}
	return STATUS_OK;
}

/* Skips the group, or appends it to the answer, as far as the answer's limit allows. */
static enum status
group_write(struct find_groups *g, const struct group *group)
{
	struct find *f = g->f;
	struct buf *out = &f->stream.out;
	struct arena_mark mark = arena_mark(f->r->arena);
	bool any = g->spec->group_count > 0;

	if (!g->limit)
		return STATUS_OK;
	if (f->skip) {
		f->skip--;
		return STATUS_OK;
	}
	buf_append_cstr(out, f->any_row ? ",\r\n{" : "\r\n{");
	if (any) {
		buf_append_cstr(out, "\"group\":");
		buf_append_str(out, group->shown);
	}
	if (g->spec->counts) {
		buf_printf(out, "%s\"count\":%llu", any ? "," : "",
			   (unsigned long long)group->docs);
		any = true;
	}
	TRY(group_write_functions(g, group, any, out));
	buf_append_byte(out, '}');
	TRY(buf_status(out));
	arena_reset(f->r->arena, mark);
	f->any_row = true;
	f->results++;
	g->limit--;
	return STATUS_OK;
}

/* Writes the group whose last document has come, if there is one. */
static enum status
groups_flush(struct find_groups *g)
{
	if (!g->current)
		return STATUS_OK;
	TRY(group_write(g, g->current));
	g->current = NULL;
	arena_clear(g->arena);
	/* Nobody has to read on when the answer is full. */
	if (!g->limit)
		g->f->limit = 0;
	return STATUS_OK;
}

/* ---- One document ---- */

static enum status
groups_get(struct find_groups *g, const struct leaf_value *values, struct group **ret)
{
	if (!g->streamed)
		return table_get(g, values, ret);
	if (!g->current || !str_eq(g->current->key, buf_str(&g->key))) {
		TRY(groups_flush(g));
		if (!g->limit)
			return STATUS_OK;
		TRY(groups_new(g, values, &g->current));
	}
	*ret = g->current;
	return STATUS_OK;
}

/* Takes a document that matches into its group. */
static enum status
groups_take(struct find *f, const struct find_doc *d)
{
	struct find_groups *g = f->groups;
	const struct aggregate *spec = g->spec;
	struct index_work w = { .arena = f->r->arena };
	struct leaf_value values[AGGREGATE_GROUP_FIELDS];
	struct group *group = NULL;
	struct selector_doc doc;
	struct couch_seen seen;
	bool found;

	TRY(find_check_limits(f));
	TRY(find_doc_see(f, d, &g->members, &seen, &doc));
	TRY(groups_make_key(g, &doc, values, &w, &found));
	if (!found)
		return STATUS_OK;
	TRY(groups_get(g, values, &group));
	if (!group)
		return STATUS_OK;
	for (size_t i = spec->group_count; i < spec->count; i++) {
		struct leaf_value value;
		enum status status;

		TRY(find_doc_value(&doc, &spec->paths[i], &value, &found));
		if (!found)
			continue;
		status = function_take(g, spec->kinds[i], &group->states[i - spec->group_count],
				       &value, &w);
		if (status == STATUS_LIMIT && arena_is_full(g->arena))
			return groups_refuse_bytes(g);
		TRY(status);
	}
	group->docs++;
	return STATUS_OK;
}

/* ---- Counting ---- */

/* Ids in front of `id`. */
static enum status
count_ids_before(struct couch_req *r, struct kv_tx *tx, struct str id, uint64_t *ret)
{
	const struct name_range range = { .has_begin = true, .begin = id };

	return rev_all_docs_offset(tx, r->db, &range, ret);
}

/* All documents but those that queries do not see, or those of a partition, which has no others. */
static enum status
count_docs(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct find *f = arg;
	struct str end = STR("\xff");
	struct str design = STR("_design/"), behind = STR("_design0");
	uint64_t low = 0, high, low_design, high_design;
	struct name_range range;

	if (f->args.partition.ptr) {
		TRY(rev_partition_range(f->args.partition, r->arena, &range));
		end = range.end;
		TRY(count_ids_before(r, tx, range.begin, &low));
	}
	TRY(count_ids_before(r, tx, end, &high));
	f->counted = high - low;
	if (f->args.partition.ptr)
		return STATUS_OK;
	TRY(count_ids_before(r, tx, design, &low_design));
	TRY(count_ids_before(r, tx, behind, &high_design));
	f->counted -= high_design - low_design;
	return STATUS_OK;
}

static enum status
count_take(struct find *f, const struct find_doc *d)
{
	(void)d;
	f->counted++;
	return find_check_limits(f);
}

/* The number of documents, if it is asked for. */
static enum status
groups_count(struct find_groups *g, struct group *all)
{
	struct find *f = g->f;

	if (!g->spec->counts)
		return STATUS_OK;
	f->take = count_take;
	if (f->plan.chosen->ddoc.ptr)
		TRY(find_count_indexed(f));
	else
		TRY(couch_snapshot_run(&f->snapshot, count_docs, f));
	all->docs = f->counted;
	return STATUS_OK;
}

/* ---- The ends of an index ---- */

/* Takes the first document that has the field, and ends the reading. */
static enum status
end_take(struct find *f, const struct find_doc *d)
{
	struct find_groups *g = f->groups;
	struct index_work w = { .arena = f->r->arena };
	struct selector_doc doc;
	struct couch_seen seen;
	struct leaf_value value;
	bool found;

	TRY(find_check_limits(f));
	TRY(find_doc_see(f, d, &g->members, &seen, &doc));
	TRY(find_doc_value(&doc, &g->spec->paths[g->end], &value, &found));
	if (!found)
		return STATUS_OK;
	/* Entries whose values were cut are not in the order of these. */
	g->end_is_cut = f->entry_is_cut;
	f->limit = 0;
	return function_take(g, g->spec->kinds[g->end], &g->current->states[g->end], &value, &w);
}

/* Reads the least or the greatest value of a field from the end of an index. */
static enum status
groups_take_end(struct find_groups *g, size_t function)
{
	struct find *f = g->f;
	struct plan whole = f->plan;
	enum status status;

	g->end = function;
	f->plan = f->ends[function];
	f->args.sort.descending = g->spec->kinds[function] == AGGREGATE_MAX;
	f->limit = 1;
	f->take = end_take;
	status = find_indexed(f);
	f->plan = whole;
	f->args.sort.descending = false;
	return status;
}

/* What the one group of all documents says, as far as counters and ends of indexes can tell. */
static enum status
groups_tell_functions(struct find_groups *g, struct group *all)
{
	TRY(groups_count(g, all));
	for (size_t i = 0; i < g->spec->count && !g->end_is_cut; i++)
		TRY(groups_take_end(g, i));
	return STATUS_OK;
}

/* Answers from counters and ends of indexes; `*ret_done` is false if these cannot tell. */
static enum status
groups_tell(struct find_groups *g, bool *ret_done)
{
	struct find *f = g->f;
	struct group all = {
		.states = arena_zalloc(g->arena, (g->spec->count + 1) * sizeof(*all.states)),
	};
	uint64_t skip = f->skip;
	enum status status;

	if (!all.states)
		return groups_refuse_bytes(g);
	g->current = &all;
	f->skip = 0; /* that of groups, not of documents */
	status = groups_tell_functions(g, &all);
	g->current = NULL;
	f->skip = skip;
	f->take = groups_take;
	TRY(status);
	*ret_done = !g->end_is_cut;
	return *ret_done ? group_write(g, &all) : STATUS_OK;
}

/* ---- The whole ---- */

static enum status
groups_read(struct find_groups *g, struct name_range range)
{
	struct find *f = g->f;

	if (f->plan.way == PLAN_INDEX)
		return find_indexed(f);
	return f->plan.way == PLAN_SETS ? find_by_sets(f, range) : find_by_ids(f, range);
}

static enum status
groups_compare(const void *arg, const void *a, const void *b, int *ret)
{
	(void)arg;
	return sort_compare_strs((*(struct group *const *)a)->key, (*(struct group *const *)b)->key,
				 ret);
}

/* Writes the gathered groups in the order of their values. */
static enum status
groups_write_all(struct find_groups *g)
{
	size_t kept = 0;

	for (size_t i = 0; i < g->slots_count; i++) {
		if (g->slots[i])
			g->slots[kept++] = g->slots[i];
	}
	TRY(sort_items(g->slots, kept, sizeof(struct group *), groups_compare, NULL, g->arena));
	for (size_t i = 0; i < kept && g->limit; i++) {
		TRY(group_write(g, g->slots[i]));
		if (i % GROUP_WRITE_BATCH == 0)
			TRY(couch_stream_push(&g->f->stream, false));
	}
	return STATUS_OK;
}

static enum status
groups_run(struct find_groups *g, struct name_range range, bool none)
{
	struct find *f = g->f;
	struct group *all;
	bool done = false;

	TRY(find_members_of_paths(f, g->spec->paths, g->spec->count, &g->members));
	if (!g->limit)
		return STATUS_OK;
	if (f->way == FIND_WAY_COUNTED)
		TRY(groups_tell(g, &done));
	if (done)
		return STATUS_OK;
	f->limit = UINT64_MAX; /* of documents: all that match are read */
	if (!none)
		TRY(groups_read(g, range));
	if (g->streamed)
		return groups_flush(g);
	/* Without fields of groups there is one, also of no documents. */
	buf_clear(&g->key);
	if (!g->spec->group_count)
		TRY(table_get(g, NULL, &all));
	return groups_write_all(g);
}

enum status
find_aggregate(struct find *f, struct name_range range, bool none)
{
	static const struct index_column columns[AGGREGATE_GROUP_FIELDS];
	struct find_groups g = {
		.f = f,
		.spec = f->args.aggregate,
		.streamed = f->way == FIND_WAY_STREAMED,
		.key_def = { .order = DOC_KEY_COUCH,
			     .columns = columns,
			     .column_count = f->args.aggregate->group_count },
		.key = BUF_SHORT(2 * INDEX_COMPONENTS_BYTES),
		.text = couch_buf(f->r, COUCH_ROW_BYTES),
		.arena = arena_new((size_t)f->r->settings->sort_bytes),
		.limit = f->limit,
	};
	enum status status = STATUS_NOMEM;

	f->groups = &g;
	f->take = groups_take;
	if (g.arena) {
		arena_set_part(g.arena, http_memory(f->r->x));
		status = groups_run(&g, range, none);
	}
	f->groups = NULL;
	arena_free(g.arena);
	buf_release(&g.key);
	buf_release(&g.text);
	return status;
}
