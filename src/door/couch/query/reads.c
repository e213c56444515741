/* What would be read of an index for a selector, and how many rows that is. */
#include "door/couch/query/plan_int.h"
#include "index/plan/names.h"

enum {
	READ_FEW = 64, /* entries of a range that are counted by reading them */
};

struct planner_values {
	const struct normal_path *path;
	struct value_set set;
};

/* The values that a selector allows. Those of the whole one are remembered: many indexes ask. */
static enum status
planner_read_values(struct planner *m, const struct normal_node *n, const struct normal_path *path,
		    struct value_set *ret)
{
	if (n != m->args->normal)
		return field_values_allowed(n, path, &m->order, ret);
	for (size_t i = 0; i < m->values_count; i++) {
		if (!normal_path_eq(m->values[i].path, path))
			continue;
		*ret = m->values[i].set;
		return STATUS_OK;
	}
	TRY(field_values_allowed(n, path, &m->order, ret));
	TRY(arena_room(m->r->arena, &m->values, m->values_count, &m->values_cap,
		       sizeof(*m->values)));
	m->values[m->values_count++] = (struct planner_values){ path, *ret };
	return STATUS_OK;
}

/* The engine's definition of the index, if it has all entries. */
static const struct index_def *
planner_find_def(const struct planner *m, const struct query_index *index)
{
	const struct index_set *set = index_set_of(m->r->db);

	for (size_t i = 0; set && i < set->count; i++) {
		const struct index_def *def = &set->defs[i];

		if (index_is_readable(def) && str_eq(def->owner, index->ddoc) &&
		    str_eq(def->name, index->name) &&
		    index_is_partitioned(def) == index->partitioned)
			return def;
	}
	return NULL;
}

/* Narrows what is certain of the column that the condition is on. */
static enum status
certain_narrow(struct planner *m, const struct normal_node *n, const struct query_index *index,
	       struct value_set *certain, bool *ret_known)
{
	*ret_known = n->kind == NORMAL_ANYTHING;
	if (n->kind == NORMAL_AND) {
		*ret_known = true;
		for (const struct normal_node *i = n->first; i && *ret_known; i = i->next)
			TRY(certain_narrow(m, i, index, certain, ret_known));
		return STATUS_OK;
	}
	for (size_t i = 0; i < index->columns.count && !*ret_known; i++) {
		struct value_set one, before = certain[i];

		TRY(field_values_certain(n, &index->paths[i], &m->order, &one, ret_known));
		if (*ret_known)
			TRY(value_set_intersect(&m->order, &before, &one, &certain[i]));
	}
	return STATUS_OK;
}

/* The values with which a document matches, if the selector looks at columns alone. */
static enum status
planner_read_certain(struct planner *m, const struct normal_node *n,
		     const struct query_index *index, struct value_set *certain, bool *ret_known)
{
	for (size_t i = 0; i < index->columns.count; i++)
		TRY(value_set_all(&m->order, &certain[i]));
	return certain_narrow(m, n, index, certain, ret_known);
}

enum status
read_make(struct planner *m, const struct normal_node *n, const struct query_index *index,
	  struct plan_read *ret, bool *ret_readable)
{
	const struct index_def *def = index->ddoc.ptr ? planner_find_def(m, index) : NULL;
	struct value_set allowed[INDEX_COLUMNS], certain[INDEX_COLUMNS];
	struct key_columns columns = { .allowed = allowed, .partition = m->args->partition };
	bool known = false;

	*ret = (struct plan_read){ .index = index };
	*ret_readable = def != NULL;
	if (!def)
		return STATUS_OK;
	ret->number = def->number;
	for (size_t i = 0; i < def->column_count; i++)
		TRY(planner_read_values(m, n, &index->paths[i], &allowed[i]));
	if (m->args->aggregate)
		TRY(planner_read_certain(m, n, index, certain, &known));
	columns.certain = known ? certain : NULL;
	columns.used = key_columns_choose(def, allowed);
	return key_ranges_make(m->r->db, def, &columns, &m->order, &ret->keys);
}

/* ---- Ids ---- */

/* The condition that names ids one by one; NULL if there is none. */
static const struct normal_node *
find_id_condition(const struct normal_node *n)
{
	if (n->kind == NORMAL_FIELD)
		return !n->negated && normal_path_is(&n->path, "_id") &&
				       (n->op == NORMAL_EQ || n->op == NORMAL_IN)
			       ? n
			       : NULL;
	for (const struct normal_node *i = n->kind == NORMAL_AND ? n->first : NULL; i;
	     i = i->next) {
		const struct normal_node *found = find_id_condition(i);

		if (found)
			return found;
	}
	return NULL;
}

bool
read_names_ids(const struct normal_node *n)
{
	return find_id_condition(n) != NULL;
}

enum status
read_make_ids(struct planner *m, const struct normal_node *n, struct plan_read *ret, bool *ret_any)
{
	const struct normal_node *condition = find_id_condition(n);
	struct name_list ids = { .arena = m->r->arena };
	struct json_value one;
	struct json_value *items = &one;
	size_t count = 1;

	*ret_any = condition != NULL;
	if (!condition)
		return STATUS_OK;
	one = condition->arg;
	if (condition->op == NORMAL_IN)
		TRY(json_value_items(&condition->arg, m->r->arena, &items, &count, NULL));
	for (size_t i = 0; i < count; i++)
		if (items[i].kind == JSON_STRING && items[i].string.len)
			TRY(name_list_add(&ids, items[i].string));
	TRY(name_list_settle(&ids));
	*ret = (struct plan_read){
		.ids = ids.items, .ids_count = ids.count, .rows = ids.count, .counted = true
	};
	return STATUS_OK;
}

/* ---- Points ---- */

bool
plan_read_is_points(const struct plan_read *read)
{
	for (size_t i = 0; i < read->keys.count; i++)
		if (!read->keys.items[i].point)
			return false;
	return true;
}

bool
plan_read_is_sure(const struct plan_read *read)
{
	const struct key_ranges *keys = &read->keys;
	bool sure = keys->marked && keys->count == 0;

	for (size_t i = 0; i < keys->count; i++)
		sure = sure || keys->items[i].certain;
	return sure;
}

/* ---- Counting ---- */

uint64_t
plan_most_ids(const struct couch_req *r)
{
	return (uint64_t)r->settings->sort_bytes / PLAN_ID_BYTES;
}

enum status
read_count(struct planner *m, struct plan_read *read)
{
	if (read->counted || m->counts == PLAN_COUNTS)
		return STATUS_OK;
	m->counts++;
	TRY(choice_count_rows(&read->keys, m->tx, m->r->db, READ_FEW, &read->rows));
	read->counted = true;
	return STATUS_OK;
}
