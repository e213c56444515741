/*
 * Checks views: each sum against what it covers of the level below (verify_view_values.c compares
 * the results of reduces), the counters of a group against its rows, and the lists of documents'
 * rows against the rows, both ways. Only the functions know whether the rows are what they make of
 * the documents.
 */
#include "index/view/keys.h"
#include "index/view/record.h"
#include "model/revisioned/verify_int.h"

/* A group, while its keys are gone through. */
struct verify_group {
	struct catalog_verify *v;
	struct view_record record;
	struct verify_view_values values;
	uint64_t rows[VIEW_VIEWS_MOST];
	uint64_t listed[VIEW_VIEWS_MOST]; /* in the lists of documents */
};

/* ---- Sums ---- */

/* A sum that is being compared with what it covers. */
struct verify_sum {
	struct catalog_verify_cursor cursor; /* over the sums of a level */
	uint64_t rows;                       /* that the present one should have */
	bool any;
};

static enum status
sum_compare(struct verify_group *g, struct verify_sum *s)
{
	struct err err = { 0 };
	uint64_t rows = 0;
	enum status status;

	if (s->cursor.done) {
		catalog_verify_found(g->v, REV_FINDING_VIEW, buf_str(&g->v->key),
				     "the sums over this level end before it does");
		return STATUS_OK;
	}
	status = view_sum_rows(s->cursor.pair.value, &rows, &err);
	if (status != STATUS_OK)
		catalog_verify_unreadable(g->v, status, &err, s->cursor.pair.key, "not a sum");
	else if (rows != s->rows)
		catalog_verify_found(g->v, REV_FINDING_VIEW, s->cursor.pair.key,
				     "a sum over %llu rows says that there are %llu",
				     (unsigned long long)s->rows, (unsigned long long)rows);
	else
		TRY(verify_view_values_compare(&g->values, s->cursor.pair.key,
					       s->cursor.pair.value));
	return catalog_verify_cursor_next(g->v, &s->cursor);
}

/* A pair of the level below: it belongs to the present sum, or begins the next one. */
static enum status
sum_take(struct verify_group *g, struct verify_sum *s, size_t map, unsigned level,
	 const struct catalog_verify_cursor *below)
{
	struct err err = { 0 };
	uint64_t rows = 1;

	if (below->tail.len && view_place_level(g->record.group.seed, below->tail) >= level) {
		TRY(sum_compare(g, s));
		s->rows = 0;
		verify_view_values_begin(&g->values, map);
		if (s->cursor.done || !str_eq(s->cursor.tail, below->tail))
			catalog_verify_found(g->v, REV_FINDING_VIEW, below->pair.key,
					     "level %u has no sum that begins here", level);
	}
	if (level > 1 && view_sum_rows(below->pair.value, &rows, &err) != STATUS_OK)
		rows = 0; /* told when the level below was compared */
	s->rows += rows;
	return verify_view_values_take(&g->values, map, level, below->tail, below->pair.value);
}

static enum status
verify_level(struct verify_group *g, size_t map, unsigned level)
{
	struct catalog_verify *v = g->v;
	struct catalog_verify_cursor below = { 0 };
	struct verify_sum s = { 0 };
	enum status status;

	verify_view_values_begin(&g->values, map);
	view_key_level(&v->key, v->db, g->record.group.number, map, level);
	status = catalog_verify_cursor_open_at(v, &s.cursor);
	view_key_level(&v->key, v->db, g->record.group.number, map, level - 1);
	if (status == STATUS_OK)
		status = catalog_verify_cursor_open_at(v, &below);
	while (status == STATUS_OK && !below.done) {
		status = sum_take(g, &s, map, level, &below);
		g->rows[map] += level == 1;
		if (status == STATUS_OK)
			status = catalog_verify_cursor_next(v, &below);
	}
	/* A map that never had rows has no sums; one that has no rows any more has empty ones. */
	if (status == STATUS_OK && (s.rows || !s.cursor.done))
		status = sum_compare(g, &s);
	if (status == STATUS_OK && !s.cursor.done)
		catalog_verify_found(v, REV_FINDING_VIEW, s.cursor.pair.key,
				     "a sum begins where no row does");
	catalog_verify_cursor_close(&below);
	catalog_verify_cursor_close(&s.cursor);
	return status;
}

/* ---- The lists of documents' rows ---- */

static enum status
verify_back(struct verify_group *g, struct str id, const struct view_back *back,
	    struct str list_key)
{
	AUTO(buf_release) struct buf place = CATALOG_KEY_INIT;
	struct catalog_verify *v = g->v;
	struct str partition = { 0 };
	struct kv_future *f;
	struct str value;

	if (back->map >= g->record.group.map_count) {
		catalog_verify_found(v, REV_FINDING_VIEW, list_key, "a row of map %zu is listed",
				     back->map);
		return STATUS_OK;
	}
	g->listed[back->map]++;
	if (g->record.group.partitioned)
		partition = view_partition_of(id);
	view_place_put(&place, partition, back->component, id, back->ordinal);
	view_key_level(&v->key, v->db, g->record.group.number, back->map, 0);
	buf_append_buf(&v->key, &place);
	TRY(buf_status(&place));
	TRY(catalog_key_status(&v->key));
	TRY(catalog_verify_get(v, buf_str(&v->key), &f));
	if (!kv_future_value(f, &value))
		catalog_verify_found(v, REV_FINDING_VIEW, buf_str(&v->key),
				     "a document's list has this row, which is not there");
	kv_future_free(f);
	return STATUS_OK;
}

/* The list of a document: the pair with the head, and those behind it. */
static enum status
verify_list(struct verify_group *g, struct catalog_verify_cursor *c)
{
	AUTO(buf_release) struct buf text = BUF_INIT(4 * VIEW_DOC_BYTES);
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct arena *arena = arena_new(16 * (size_t)VIEW_DOC_BYTES);
	struct tuple_reader r = tuple_reader(c->tail);
	struct str value = c->pair.value, id = { 0 };
	struct view_back *backs = NULL;
	struct err err = { 0 };
	struct view_back_head head = { 0 };
	enum status status = arena ? STATUS_OK : STATUS_NOMEM;
	size_t count = 0;

	if (status == STATUS_OK)
		status = catalog_next_text(&r, TUPLE_STRING, arena, true, &id);
	if (status == STATUS_OK)
		status = view_back_head_parse(&value, &head, &err);
	buf_append_str(&key, c->pair.key);
	buf_append_str(&text, value);
	for (uint64_t n = 1; status == STATUS_OK && n < head.chunks; n++) {
		status = catalog_verify_cursor_next(g->v, c);
		if (status == STATUS_OK && c->done)
			status = STATUS_CORRUPT;
		else if (status == STATUS_OK)
			buf_append_str(&text, c->pair.value);
	}
	if (status == STATUS_OK)
		status = catalog_key_status(&key);
	if (status == STATUS_OK) /* no document has more rows than there is room for */
		status = buf_status(&text) == STATUS_LIMIT ? STATUS_CORRUPT : buf_status(&text);
	if (status == STATUS_OK)
		status = view_backs_parse(buf_str(&text), arena, &backs, &count);
	if (status == STATUS_CORRUPT || status == STATUS_NEWER) {
		catalog_verify_unreadable(g->v, status, &err, buf_str(&key),
					  "not the list of a document's rows");
		status = STATUS_OK;
	}
	for (size_t i = 0; status == STATUS_OK && i < count; i++)
		status = verify_back(g, id, &backs[i], buf_str(&key));
	arena_free(arena);
	if (status != STATUS_OK || c->done)
		return status;
	return catalog_verify_cursor_next(g->v, c);
}

static enum status
verify_lists(struct verify_group *g)
{
	struct catalog_verify *v = g->v;
	struct catalog_verify_cursor c = { 0 };
	enum status status;

	view_key_group(&v->key, v->db, VIEW_KEYS_DOCS, g->record.group.number);
	status = catalog_verify_cursor_open_at(v, &c);
	while (status == STATUS_OK && !c.done)
		status = verify_list(g, &c);
	catalog_verify_cursor_close(&c);
	return status;
}

/* ---- Groups ---- */

static enum status
verify_levels(struct verify_group *g)
{
	const struct view_group *group = &g->record.group;
	enum status status = verify_view_values_open(g->v, group, &g->values);

	for (size_t map = 0; status == STATUS_OK && map < group->map_count; map++)
		for (unsigned level = 1; status == STATUS_OK && level <= VIEW_LEVELS; level++)
			status = verify_level(g, map, level);
	verify_view_values_close(&g->values);
	return status;
}

static enum status
verify_group_parts(struct verify_group *g, struct str key)
{
	const struct view_group *group = &g->record.group;

	TRY(verify_levels(g));
	TRY(verify_lists(g));
	for (size_t map = 0; map < group->map_count; map++) {
		if (g->rows[map] != group->rows[map])
			catalog_verify_found(g->v, REV_FINDING_VIEW, key,
					     "map %zu has %llu rows, and the record says %llu", map,
					     (unsigned long long)g->rows[map],
					     (unsigned long long)group->rows[map]);
		/* Each listed row is there, so equal numbers mean that each row is listed. */
		if (g->rows[map] != g->listed[map])
			catalog_verify_found(g->v, REV_FINDING_VIEW, key,
					     "map %zu has %llu rows, and %llu are in the lists of "
					     "documents",
					     map, (unsigned long long)g->rows[map],
					     (unsigned long long)g->listed[map]);
	}
	return STATUS_OK;
}

static enum status
verify_record(struct verify_group *g, const struct kv_pair *pair, struct arena *arena)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct str value = arena_dup(arena, pair->value);
	struct err err = { 0 };
	enum status status;

	buf_append_str(&key, pair->key);
	TRY(catalog_key_status(&key));
	if (!value.ptr)
		return STATUS_LIMIT;
	status = view_record_parse(value, arena, &g->record, &err);
	if (status == STATUS_CORRUPT || status == STATUS_NEWER) {
		catalog_verify_unreadable(g->v, status, &err, buf_str(&key),
					  "not the record of a group of views");
		return STATUS_OK;
	}
	TRY(status);
	if (g->record.group.phase != VIEW_PHASE_READY)
		return STATUS_OK;
	return verify_group_parts(g, buf_str(&key));
}

static enum status
verify_one_group(struct catalog_verify *v, const struct catalog_verify_cursor *c)
{
	struct arena *arena = arena_new(KV_LIMIT_VALUE_BYTES * 4 + sizeof(struct verify_group));
	struct verify_group *g = arena ? arena_zalloc(arena, sizeof(*g)) : NULL;
	enum status status = STATUS_NOMEM;

	if (g) {
		g->v = v;
		status = verify_record(g, &c->pair, arena);
	}
	arena_free(arena);
	return status;
}

enum status
verify_views(struct catalog_verify *v)
{
	struct catalog_verify_cursor c = { 0 };
	enum status status;

	view_key_kind(&v->key, v->db, VIEW_KEYS_GROUPS);
	status = catalog_verify_cursor_open_at(v, &c);
	while (status == STATUS_OK && !c.done) {
		status = verify_one_group(v, &c);
		if (status == STATUS_OK)
			status = catalog_verify_cursor_next(v, &c);
	}
	catalog_verify_cursor_close(&c);
	return status;
}
