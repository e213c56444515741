/* What INSERT, UPDATE and DELETE write. */
#include "door/cql/run/changes.h"
#include "door/cql/run/modify.h"
#include "door/cql/run/status_row.h"

#include "cql/json.h"
#include "loop/step.h"

/* The changes that a statement makes to a row, or to the static columns of a partition. */
struct modified {
	struct changes c;
	struct modify *m;
};

static enum status
add_counter(struct modified *all, const struct schema_column *c, struct cql_value v, bool subtracts)
{
	struct table_change change = changes_of(&all->c, c, TABLE_CHANGE_ADD);
	uint64_t n;

	if (v.presence != CQL_SET)
		return request_fail(all->m->run->r, CQL_CODE_INVALID,
				    "Invalid null value for counter increment");
	n = (uint64_t)cql_int_read(v.bytes);
	change.value = (struct doc_scalar){ .kind = DOC_INT64,
					    .n = (int64_t)(subtracts ? 0 - n : n) };
	change.expiry = (struct timed_expiry){ .kind = TIMED_EXPIRY_DEFAULT };
	return changes_put(&all->c, &change);
}

/* A list [a, b] that is prepended keeps its order, so b is put in front first, and then a. */
static enum status
add_prepended(struct modified *all, const struct schema_column *c, struct str bytes)
{
	size_t from = all->c.count;

	TRY(changes_put_elements(&all->c, c, bytes));
	for (size_t i = from, j = all->c.count; i < j; i++) {
		struct table_change last = all->c.list[--j];

		all->c.list[j] = all->c.list[i];
		all->c.list[i] = last;
	}
	for (size_t i = from; i < all->c.count; i++)
		all->c.list[i].kind = TABLE_CHANGE_PREPEND;
	return STATUS_OK;
}

/* Keys of a map, members of a set. */
static enum status
add_removed(struct modified *all, const struct schema_column *c, struct str bytes)
{
	const struct cql_type *args[] = { c->type->args[0] };
	const struct cql_type *set = cql_type_of(all->m->run->q, CQL_TYPE_SET, false, args, 1);
	struct cql_elements e;
	struct cql_value key;

	if (!set)
		return STATUS_LIMIT;
	cql_elements_init(&e, set, bytes);
	while (cql_elements_next(&e, &key)) {
		struct table_change change = changes_of(&all->c, c, TABLE_CHANGE_CLEAR_ELEMENT);

		TRY(value_to_key(all->m->run->q, c->type->args[0], key.bytes, &change.element));
		TRY(changes_put(&all->c, &change));
	}
	return STATUS_OK;
}

/* ---- Lists, whose elements are found by reading them ---- */

static enum status
list_read(struct modified *all, const struct table_key *key, const struct schema_column *c,
	  const struct table_cell **ret, size_t *ret_count)
{
	struct run *run = all->m->run;
	bool is_static = c->kind == SCHEMA_STATIC;
	struct table_key partition = *key;
	struct table_row *stored = arena_zalloc(run->r->arena, sizeof(*stored));
	const struct table_wanted wanted = { .some = true, .ids = &c->stored->id, .count = 1 };
	enum status status;

	*ret_count = 0;
	*ret = NULL;
	if (!stored)
		return STATUS_LIMIT;
	if (is_static)
		partition.count = run->table->partition_count;
	status = table_read(all->m->timed, is_static ? &partition : key, is_static, &wanted,
			    run->r->arena, stored);
	if (status == STATUS_NOT_FOUND)
		return STATUS_OK;
	TRY(status);
	*ret = table_cells_of(is_static ? stored->statics : stored->cells,
			      is_static ? stored->static_count : stored->cell_count, c->stored,
			      ret_count);
	return STATUS_OK;
}

static enum status
add_list_subtracted(struct modified *all, const struct table_key *key,
		    const struct schema_column *c, struct str bytes)
{
	struct cql *q = all->m->run->q;
	const struct table_cell *cells;
	struct cql_elements e;
	struct cql_value v;
	size_t count;
	struct str have;

	TRY(list_read(all, key, c, &cells, &count));
	for (size_t i = 0; i < count; i++) {
		TRY(cql_value_of_scalar(q, c->type->args[0], &cells[i].value, &have));
		cql_elements_init(&e, c->type, bytes);
		while (cql_elements_next(&e, &v)) {
			struct table_change change = changes_of(&all->c, c,
								TABLE_CHANGE_CLEAR_ELEMENT);

			TRY(step_count(1));
			if (cql_value_compare(c->type->args[0], have, v.bytes) != 0)
				continue;
			change.element = cells[i].element;
			TRY(changes_put(&all->c, &change));
			break;
		}
	}
	return STATUS_OK;
}

static enum status
add_list_element(struct modified *all, const struct table_key *key, const struct schema_column *c,
		 struct cql_value index, struct cql_value v)
{
	struct table_change change = changes_of(&all->c, c,
						v.presence == CQL_SET ? TABLE_CHANGE_PUT_PLACE
								      : TABLE_CHANGE_CLEAR_ELEMENT);
	const struct table_cell *cells;
	size_t count;
	int64_t at;

	if (index.presence == CQL_UNSET && v.presence != CQL_SET)
		return STATUS_OK;
	if (index.presence != CQL_SET)
		return request_fail(all->m->run->r, CQL_CODE_INVALID,
				    "Invalid %s value for list index",
				    index.presence == CQL_UNSET ? "unset" : "null");
	at = cql_int_read(index.bytes);
	TRY(list_read(all, key, c, &cells, &count));
	if (!count)
		return request_fail(all->m->run->r, CQL_CODE_INVALID,
				    "Attempted to %s an element %s a list which is null",
				    v.presence == CQL_SET ? "set" : "delete",
				    v.presence == CQL_SET ? "on" : "from");
	if (at < 0 || (uint64_t)at >= count)
		return request_fail(all->m->run->r, CQL_CODE_INVALID,
				    "List index %lld out of bound, list has size %zu",
				    (long long)at, count);
	change.element = cells[at].element;
	if (v.presence == CQL_SET)
		TRY(cql_value_to_scalar(all->m->run->q, c->type->args[0], v.bytes, &change.value));
	return changes_put(&all->c, &change);
}

/* ---- Documents of JSON, of which a part is set ---- */

/* The document that the statement has made so far; NULL: it has said nothing of it yet. */
static struct table_change *
json_changed(const struct modified *all, const struct schema_column *c)
{
	struct table_change *found = NULL;

	for (size_t i = 0; i < all->c.count; i++)
		if (all->c.list[i].column == c->stored->id)
			found = &all->c.list[i];
	return found;
}

/* The document before. One that is not there is as one without members. */
static enum status
json_before(struct modified *all, const struct table_key *key, const struct schema_column *c,
	    const struct table_change *changed, struct str *ret)
{
	const struct table_cell *cells;
	size_t count;

	*ret = STR("{}");
	if (changed && changed->kind == TABLE_CHANGE_PUT)
		return cql_value_of_scalar(all->m->run->q, c->type, &changed->value, ret);
	if (changed)
		return STATUS_OK;
	TRY(list_read(all, key, c, &cells, &count));
	return count ? cql_value_of_scalar(all->m->run->q, c->type, &cells[0].value, ret)
		     : STATUS_OK;
}

static enum status
add_json(struct modified *all, const struct table_key *key, struct modify_change *mc,
	 struct cql_value v)
{
	struct cql *q = all->m->run->q;
	struct table_change change = changes_of(&all->c, mc->column, TABLE_CHANGE_PUT);
	struct table_change *changed = json_changed(all, mc->column);
	struct str json;

	if (v.presence != CQL_SET)
		return request_fail(all->m->run->r, CQL_CODE_INVALID,
				    "Invalid null value at a path of %.*s: JSON has a null of its "
				    "own, 'null'",
				    STR_ARG(mc->column->name));
	TRY(json_path_compute(all->m->run, &mc->path));
	TRY(json_before(all, key, mc->column, changed, &json));
	TRY(cql_jsonb_set(q, json, mc->path.keys, mc->path.count, v.bytes, &json));
	TRY(cql_value_to_scalar(q, mc->column->type, json, &change.value));
	if (!changed)
		return changes_put(&all->c, &change);
	*changed = change;
	return STATUS_OK;
}

/* ---- A change of the statement ---- */

static enum status
add_map_element(struct modified *all, const struct schema_column *c, struct cql_value key,
		struct cql_value v)
{
	struct table_change change = changes_of(&all->c, c,
						v.presence == CQL_SET ? TABLE_CHANGE_PUT_ELEMENT
								      : TABLE_CHANGE_CLEAR_ELEMENT);

	if (key.presence != CQL_SET)
		return request_fail(all->m->run->r, CQL_CODE_INVALID,
				    key.presence == CQL_UNSET ? "Invalid unset map key"
							      : "Invalid null map key");
	TRY(value_to_key(all->m->run->q, c->type->args[0], key.bytes, &change.element));
	if (v.presence == CQL_SET && c->type->kind == CQL_TYPE_MAP)
		TRY(cql_value_to_scalar(all->m->run->q, c->type->args[1], v.bytes, &change.value));
	return changes_put(&all->c, &change);
}

static enum status
add_part(struct modified *all, const struct table_key *key, struct modify_change *mc,
	 struct cql_value v)
{
	const struct schema_column *c = mc->column;
	bool is_list = c->type->kind == CQL_TYPE_LIST;
	struct cql_value k = CQL_VALUE_NULL;

	if (mc->kind == CQL_ASSIGN_JSON)
		return add_json(all, key, mc, v);
	if (mc->kind == CQL_ASSIGN_FIELD)
		return changes_put_field(&all->c, c, mc->field, v);
	if (mc->kind == CQL_ASSIGN_ELEMENT) {
		TRY(run_value(all->m->run, mc->key, &k));
		return is_list ? add_list_element(all, key, c, k, v)
			       : add_map_element(all, c, k, v);
	}
	if (v.presence != CQL_SET)
		return STATUS_OK;
	if (mc->kind == CQL_ASSIGN_ADD)
		return changes_put_elements(&all->c, c, v.bytes);
	if (mc->kind == CQL_ASSIGN_PREPEND)
		return add_prepended(all, c, v.bytes);
	return is_list ? add_list_subtracted(all, key, c, v.bytes) : add_removed(all, c, v.bytes);
}

static enum status
add_change(struct modified *all, const struct table_key *key, struct modify_change *mc)
{
	struct cql_value v = mc->json;

	if (!mc->is_json && mc->value)
		TRY(run_value(all->m->run, mc->value, &v));
	if (v.presence == CQL_UNSET)
		return STATUS_OK;
	if (mc->column->type->kind == CQL_TYPE_COUNTER && mc->value)
		return add_counter(all, mc->column, v, mc->kind == CQL_ASSIGN_SUBTRACT);
	if (mc->kind == CQL_ASSIGN_SET)
		return changes_put_value(&all->c, mc->column, v, mc->is_json || mc->value);
	return add_part(all, key, mc, v);
}

/* ---- Rows ---- */

static enum status
add_in_turn(struct modified *all, const struct table_key *key, size_t at)
{
	struct modify_change *changes = all->m->changes;

	all->c.earlier = 0;
	for (size_t i = 0; i < at; i++)
		if (changes[i].column == changes[at].column)
			all->c.earlier = all->c.count;
	return add_change(all, key, &changes[at]);
}

static enum status
make_write(struct modify *m, const struct table_key *key, bool of_statics, bool inserts,
	   struct table_write *ret)
{
	struct modified all = { .c = { .q = m->run->q, .expiry = m->expiry }, .m = m };

	*ret = (struct table_write){ .key = *key, .inserts = inserts, .expiry = m->expiry };
	for (size_t i = 0; i < m->change_count; i++)
		if ((m->changes[i].column->kind == SCHEMA_STATIC) == of_statics)
			TRY(add_in_turn(&all, key, i));
	ret->changes = all.c.list;
	ret->change_count = all.c.count;
	return STATUS_OK;
}

static enum status
write_changes(struct modify *m, const struct table_key *key, bool of_statics, bool inserts)
{
	struct table_write write;

	if (m->is_made && !of_statics)
		return table_write(m->timed, &m->write);
	TRY(make_write(m, key, of_statics, inserts, &write));
	if (!write.change_count && !inserts)
		return STATUS_OK;
	return table_write(m->timed, &write);
}

static bool
has_statics(const struct modify *m)
{
	for (size_t i = 0; i < m->change_count; i++)
		if (m->changes[i].column->kind == SCHEMA_STATIC)
			return true;
	return false;
}

/* Writes what the statement says to a row and its partition. */
static enum status
write_row(struct modify *m, const struct table_key *key, bool inserts)
{
	struct table_key partition = *key;

	partition.count = m->run->table->partition_count;
	if (has_statics(m))
		TRY(write_changes(m, &partition, true, false));
	if (m->of_statics)
		return STATUS_OK;
	/* A row of a compact table is there by its columns alone, if it can have some. */
	if (m->run->table->compact && m->run->table->count > m->run->table->key_count)
		inserts = false;
	return write_changes(m, key, false, inserts);
}

static enum status
delete_range(struct modify *m, const struct table_key *partition, const struct where_range *range)
{
	bool more = false;

	if (range->from.kind == TIMED_BOUND_END && range->to.kind == TIMED_BOUND_END)
		TRY(table_clear_partition(m->timed, partition, &more));
	else
		TRY(table_clear_range(m->timed, partition, &range->from, &range->to, &more));
	if (more)
		return request_fail(m->run->r, CQL_CODE_INVALID,
				    "one statement deletes %d cells of a table with a history or "
				    "an index, or by a timestamp, at most (TIMED_CLEAR_KEYS): "
				    "delete narrower ranges",
				    TIMED_CLEAR_KEYS);
	return STATUS_OK;
}

static enum status
apply_range(struct modify *m, const struct where_partition *part, const struct where_range *range)
{
	/* An UPDATE of a compact table names one row by the front of its key, too. */
	bool is_row = range->is_row || (m->run->table->compact && m->kind == CQL_UPDATE);
	struct table_key key;

	if (m->of_statics) {
		TRY(modify_key_of(m, part, NULL, &key));
		return write_row(m, &key, false);
	}
	TRY(modify_key_of(m, part, is_row ? range : NULL, &key));
	if (!is_row)
		return delete_range(m, &key, range);
	if (m->kind == CQL_DELETE && !m->change_count)
		return table_clear_row(m->timed, &key);
	return write_row(m, &key, false);
}

static enum status
apply_plan(struct modify *m)
{
	const struct where_plan *plan = &m->plan;
	size_t ranges = m->of_statics ? 1 : plan->range_count;

	if (plan->nothing)
		return STATUS_OK;
	for (size_t i = 0; i < plan->partition_count; i++)
		for (size_t j = 0; j < ranges; j++)
			TRY(apply_range(m, &plan->partitions[i], &plan->ranges[j]));
	return STATUS_OK;
}

enum status
modify_ask(struct modify *m)
{
	struct table_key key;

	if (m->kind != CQL_INSERT || m->has_stamp || m->run->table->compact ||
	    !m->run->table->schema->packed)
		return STATUS_OK;
	table_stamp_unset(m->timed);
	TRY(modify_key(m, &key));
	TRY(make_write(m, &key, false, true, &m->write));
	TRY(table_look_ask(m->timed, &m->write, m->run->r->arena, &m->look));
	m->write.look = m->look;
	m->is_made = true;
	return STATUS_OK;
}

enum status
modify_apply(struct modify *m)
{
	struct table_key key;

	m->run->r->writes = true;
	/* The statements of a batch share the transaction of a table. */
	if (m->has_stamp)
		TRY(table_stamp_set(m->timed, m->stamp));
	else
		table_stamp_unset(m->timed);
	if (m->kind != CQL_INSERT)
		return apply_plan(m);
	TRY(modify_key(m, &key));
	return write_row(m, &key, true);
}

/* ---- A statement of its own ---- */

static enum status
run_conditional(struct modify *m)
{
	struct condition_state state;
	bool applied;

	m->run->r->more.write = ERROR_WRITE_CAS;
	TRY(condition_read(m, m->condition->not_exists, &state));
	TRY(condition_holds(m, &state, &applied));
	if (applied)
		TRY(modify_apply(m));
	return condition_answer(m, &state, applied);
}

static enum status
apply_telling(struct modify *m, struct timed *timed)
{
	const struct schema_table *t = m->run->table;
	struct condition_state state;
	bool applied = true;

	TRY(modify_prepare(m, timed));
	if (modify_is_conditional(m->run->statement)) {
		TRY(condition_read(m, true, &state));
		TRY(condition_holds(m, &state, &applied));
	}
	if (applied)
		TRY(modify_apply(m));
	TRY(status_row_begin(m->run->r, t, 1));
	status_row_put(m->run->r, t, applied, (struct str){ 0 }, applied ? NULL : &state.row);
	return STATUS_OK;
}

/* RETURNS STATUS AS ROW. */
static enum status
run_telling(struct modify *m, struct timed *timed)
{
	struct cql_request *r = m->run->r;
	enum status status = apply_telling(m, timed);

	if (!status_row_tells(r, status))
		return status;
	TRY(status_row_begin(r, m->run->table, 1));
	status_row_put(r, m->run->table, false, str_from_cstr(r->err.text), NULL);
	r->answers_failure = true;
	return status;
}

const struct cql_value *
modify_partition(const struct modify *m)
{
	if (m->kind == CQL_INSERT)
		return m->key_values;
	return m->plan.partition_count == 1 ? m->plan.partitions[0].values : NULL;
}

enum status
modify_run(struct run *run, struct timed *timed)
{
	struct modify m;

	TRY(modify_begin(&m, run));
	TRY(run_bind(run));
	TRY(catalog_db_check_writable(run->table->db, &run->r->err));
	if (run->table->counters)
		run->r->more.write = ERROR_WRITE_COUNTER;
	if (status_row_asked(run->statement))
		return run_telling(&m, timed);
	TRY(modify_prepare(&m, timed));
	if (modify_is_conditional(run->statement))
		return run_conditional(&m);
	TRY(modify_apply(&m));
	frame_put_i32(run->r->out, RESULT_VOID);
	return STATUS_OK;
}
