/* Indexes of a table: their definitions, creating and dropping them. */
#include "index/engine/build.h"
#include "index/engine/update.h"
#include "model/timed/tables/tables_int.h"

/* ---- With a description ---- */

const void *
table_extension_indexes(const void *extension)
{
	return extension ? ((const struct table_extension *)extension)->set : NULL;
}

static bool
is_live(const struct index_def *def)
{
	return def->state == INDEX_BUILDING || def->state == INDEX_READY ||
	       def->state == INDEX_FAILED;
}

/* Puts the column in its place in the ascending list, unless it is there. */
static void
used_add(uint64_t *used, size_t *count, uint64_t column)
{
	size_t at = *count;

	for (size_t i = 0; i < *count; i++)
		if (used[i] == column)
			return;
	for (; at && used[at - 1] > column; at--)
		used[at] = used[at - 1];
	used[at] = column;
	++*count;
}

/* Fills in `used`. */
static enum status
index_find_used(struct table_index *index, struct arena *arena)
{
	size_t most = index->column_count + index->carried_count + index->condition_count;
	uint64_t *used = arena_alloc(arena, (most + 1) * sizeof(*used));

	if (!used)
		return STATUS_LIMIT;
	for (size_t i = 0; i < index->column_count; i++)
		used_add(used, &index->used_count, index->columns[i].column);
	for (size_t i = 0; i < index->carried_count; i++)
		used_add(used, &index->used_count, index->carried[i]);
	for (size_t i = 0; i < index->condition_count; i++)
		used_add(used, &index->used_count, index->conditions[i].column);
	index->used = used;
	return STATUS_OK;
}

/* STATUS_CORRUPT: no index of a table has such columns. */
static enum status
index_of_def(const struct table_schema *schema, const struct index_def *def, struct arena *arena,
	     struct table_index *ret)
{
	struct table_index_column *columns = arena_alloc(arena,
							 def->column_count * sizeof(*columns) + 1);
	uint64_t *carried = arena_alloc(arena, def->carried * sizeof(*carried) + 1);
	const struct index_typed_filter *filter;
	const struct table_column *column;

	if (!columns || !carried)
		return STATUS_LIMIT;
	for (size_t i = 0; i < def->column_count; i++) {
		struct index_typed_origin origin;

		if (!index_typed_path_read(&def->columns[i], &origin))
			return STATUS_CORRUPT;
		columns[i] = (struct table_index_column){
			.column = origin.column,
			.part = origin.part,
			.descending = def->columns[i].descending,
			.steps = origin.steps,
			.step_count = origin.step_count,
		};
	}
	for (size_t i = 0; i < def->carried; i++) {
		struct index_typed_origin origin;

		if (!index_typed_path_read(&def->columns[def->column_count + i], &origin) ||
		    origin.part != INDEX_TYPED_COLUMN)
			return STATUS_CORRUPT;
		carried[i] = origin.column;
	}
	column = table_column_by_id(schema, columns[0].column);
	filter = def->opened;
	*ret = (struct table_index){
		.def = def,
		.number = def->number,
		.name = def->name,
		.spec = def->spec,
		.is_ready = index_is_readable(def),
		.is_unique = def->flags & INDEX_UNIQUE,
		.has_failed = def->state == INDEX_FAILED,
		.failure = def->failure,
		.of_statics = column && column->kind == TABLE_STATIC,
		.columns = columns,
		.column_count = def->column_count,
		.carried = carried,
		.carried_count = def->carried,
		.conditions = filter ? filter->conditions : NULL,
		.condition_count = filter ? filter->count : 0,
	};
	return index_find_used(ret, arena);
}

static enum status
load_kept(struct table_extension *x, const struct index_set *set)
{
	struct table_index *kept = arena_alloc(x->arena, (set->kept_count + 1) * sizeof(*kept));
	size_t columns = 0;
	uint64_t *used;

	if (!kept)
		return STATUS_LIMIT;
	for (size_t i = 0; i < set->kept_count; i++) {
		TRY(index_of_def(&x->schema, set->kept[i], x->arena, &kept[i]));
		columns += kept[i].used_count;
	}
	used = arena_alloc(x->arena, (columns + 1) * sizeof(*used));
	if (!used)
		return STATUS_LIMIT;
	for (size_t i = 0; i < set->kept_count; i++)
		for (size_t j = 0; j < kept[i].used_count; j++)
			used_add(used, &x->used_count, kept[i].used[j]);
	x->kept = kept;
	x->kept_count = set->kept_count;
	x->used = used;
	return STATUS_OK;
}

static enum status
load_all(struct table_extension *x, const struct index_set *set)
{
	struct table_index *indexes = arena_alloc(x->arena, (set->count + 1) * sizeof(*indexes));

	if (!indexes)
		return STATUS_LIMIT;
	for (size_t i = 0; i < set->count; i++)
		if (is_live(&set->defs[i]))
			TRY(index_of_def(&x->schema, &set->defs[i], x->arena,
					 &indexes[x->index_count++]));
	x->indexes = indexes;
	return load_kept(x, set);
}

enum status
table_indexes_load(struct kv_tx *tx, const struct catalog_db *db, struct table_extension *x,
		   struct err *err)
{
	enum status status;

	TRY(index_set_load(tx, db, &x->set, err));
	if (!x->set)
		return STATUS_OK;
	status = load_all(x, x->set);
	if (status == STATUS_CORRUPT)
		return err_set(err, status, "an index of the table cannot be read");
	return status;
}

const struct table_index *
table_indexes_of(const struct catalog_db *db, size_t *ret_count)
{
	const struct table_extension *x = db->extension;

	*ret_count = x->index_count;
	return x->indexes;
}

const struct table_index *
table_index_named(const struct catalog_db *db, struct str name)
{
	const struct table_extension *x = db->extension;

	for (size_t i = 0; i < x->index_count; i++)
		if (str_eq(x->indexes[i].name, name))
			return &x->indexes[i];
	return NULL;
}

bool
table_index_looks_at(const struct table_index *index, uint64_t column)
{
	for (size_t i = 0; i < index->used_count; i++)
		if (index->used[i] == column)
			return true;
	return false;
}

/* ---- Creating ---- */

static struct index_typed_origin
origin_of(const struct table_index_column *c)
{
	return (struct index_typed_origin){ c->column, c->part, c->steps, c->step_count };
}

static bool
part_fits(enum index_typed_part part, enum table_storage storage)
{
	switch (part) {
	case INDEX_TYPED_COLUMN:
	case INDEX_TYPED_JSON:
	case INDEX_TYPED_JSON_TEXT:
	case INDEX_TYPED_ORDER:
		return storage == TABLE_SINGLE;
	case INDEX_TYPED_KEYS:
		return storage == TABLE_MAP || storage == TABLE_SET;
	case INDEX_TYPED_VALUES:
		return storage == TABLE_MAP || storage == TABLE_LIST;
	case INDEX_TYPED_ENTRIES:
		return storage == TABLE_MAP;
	}
	return false;
}

static enum status
check_column(struct timed *t, const struct table_index *terms, size_t at)
{
	const struct table_index_column *c = &terms->columns[at];
	const struct table_column *column = table_column_by_id(table_schema_of(t->db), c->column);
	bool alone = terms->column_count == 1;

	if (!column)
		return err_set(t->err, STATUS_INVALID, "no column of the table has the id %llu",
			       (unsigned long long)c->column);
	if (!part_fits(c->part, column->storage) ||
	    !index_typed_steps_fit(c->part, c->steps, c->step_count))
		return err_set(t->err, STATUS_INVALID,
			       "the column \"%.*s\" cannot be indexed in this way",
			       STR_ARG(column->name));
	if (terms->is_unique && !index_typed_is_single(c->part))
		return err_set(t->err, STATUS_INVALID,
			       "an index of parts of the column \"%.*s\" cannot be unique",
			       STR_ARG(column->name));
	if (!alone && (!index_typed_is_single(c->part) || column->kind == TABLE_STATIC))
		return err_set(t->err, STATUS_INVALID,
			       "the column \"%.*s\" cannot be in an index of several columns",
			       STR_ARG(column->name));
	for (size_t i = 0; i < at; i++) {
		const struct index_typed_origin a = origin_of(&terms->columns[i]), b = origin_of(c);

		if (index_typed_same_origin(&a, &b))
			return err_set(t->err, STATUS_INVALID,
				       "the column \"%.*s\" is in the index twice",
				       STR_ARG(column->name));
	}
	return STATUS_OK;
}

/* Entries carry the values of rows, whose parts and static columns they do not have. */
static enum status
check_carried(struct timed *t, const struct table_index *terms)
{
	const struct table_schema *schema = table_schema_of(t->db);

	if (terms->carried_count > TABLE_INDEX_CARRIED)
		return err_set(t->err, STATUS_INVALID,
			       "an index includes %d columns at most (TABLE_INDEX_CARRIED)",
			       TABLE_INDEX_CARRIED);
	for (size_t i = 0; terms->carried_count && i < terms->column_count; i++) {
		const struct table_index_column *c = &terms->columns[i];

		if (!index_typed_is_single(c->part) ||
		    table_column_by_id(schema, c->column)->kind == TABLE_STATIC)
			return err_set(t->err, STATUS_INVALID,
				       "an index of parts of collections or of a static column "
				       "includes no columns");
	}
	for (size_t i = 0; i < terms->carried_count; i++) {
		const struct table_column *column = table_column_by_id(schema, terms->carried[i]);
		bool twice = false;

		if (!column || column->kind != TABLE_REGULAR || column->storage != TABLE_SINGLE)
			return err_set(
				t->err, STATUS_INVALID,
				"an index includes single values in the row, behind its key");
		for (size_t j = 0; j < i; j++)
			twice = twice || terms->carried[j] == column->id;
		for (size_t j = 0; j < terms->column_count; j++)
			twice = twice || (terms->columns[j].column == column->id &&
					  terms->columns[j].part == INDEX_TYPED_COLUMN);
		if (twice)
			return err_set(t->err, STATUS_INVALID,
				       "the column \"%.*s\" is in the index twice",
				       STR_ARG(column->name));
	}
	return STATUS_OK;
}

static enum status
check_conditions(struct timed *t, const struct table_index *terms)
{
	const struct table_schema *schema = table_schema_of(t->db);
	const struct table_column *first = table_column_by_id(schema, terms->columns[0].column);

	if (terms->condition_count > INDEX_TYPED_CONDITIONS)
		return err_set(t->err, STATUS_INVALID,
			       "an index has %d conditions at most (INDEX_TYPED_CONDITIONS)",
			       INDEX_TYPED_CONDITIONS);
	for (size_t i = 0; i < terms->condition_count; i++) {
		const struct table_column *c = table_column_by_id(schema,
								  terms->conditions[i].column);

		if (!c || c->storage != TABLE_SINGLE || c->kind == TABLE_STATIC ||
		    first->kind == TABLE_STATIC)
			return err_set(t->err, STATUS_INVALID,
				       "rows of an index are chosen by single values in the row");
	}
	return STATUS_OK;
}

static enum status
check_terms(struct timed *t, const struct table_index *terms)
{
	bool has_room;

	TRY(table_check_text("the name of an index", terms->name, 1, TABLE_COLUMN_BYTES,
			     "TABLE_COLUMN_BYTES", t->err));
	if (table_index_named(t->db, terms->name))
		return err_set(t->err, STATUS_INVALID, "there is an index \"%.*s\" already",
			       STR_ARG(terms->name));
	TRY(index_set_has_room(t->tx, t->db, TABLE_INDEXES, &has_room, t->err));
	if (!has_room)
		return err_set(t->err, STATUS_LIMIT, "a table may have %d indexes (TABLE_INDEXES)",
			       TABLE_INDEXES);
	if (!terms->column_count || terms->column_count > TABLE_INDEX_COLUMNS)
		return err_set(t->err, STATUS_INVALID,
			       "an index has 1 to %d columns (TABLE_INDEX_COLUMNS)",
			       TABLE_INDEX_COLUMNS);
	if (table_schema_of(t->db)->counters)
		return err_set(t->err, STATUS_INVALID, "counters cannot be indexed");
	for (size_t i = 0; i < terms->column_count; i++)
		TRY(check_column(t, terms, i));
	TRY(check_carried(t, terms));
	return check_conditions(t, terms);
}

/* True if the table has no rows, which the transaction then conflicts with. */
static enum status
is_empty(struct timed *t, bool *ret)
{
	const struct kv_range_options options = { .limit = 1, .mode = KV_READ };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct kv_future *f;

	timed_key_space(&begin, t->db, TIMED_SPACE_ROWS);
	timed_key_space(&end, t->db, TIMED_SPACE_ROWS);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&begin));
	TRY(catalog_key_status(&end));
	f = kv_get_range(t->tx, buf_str(&begin), buf_str(&end), &options);
	TRY(kv_future_wait(f));
	*ret = !kv_future_range(f).count;
	return STATUS_OK;
}

static enum status
create(struct timed *t, const struct table_index *terms, struct arena *arena, uint64_t *ret_number)
{
	struct index_def def = { .state = INDEX_BUILDING,
				 .order = DOC_KEY_TYPED,
				 .name = terms->name,
				 .owner = STR(""),
				 .spec = terms->spec.ptr ? terms->spec : STR(""),
				 .flags = terms->is_unique ? INDEX_UNIQUE : 0u,
				 .column_count = terms->column_count,
				 .carried = (uint32_t)terms->carried_count };
	size_t count = terms->column_count + terms->carried_count;
	struct index_column *columns = arena_zalloc(arena, count * sizeof(*columns));
	AUTO(buf_release) struct buf filter = BUF_INIT(INDEX_FILTER_BYTES);
	bool empty;

	if (!columns)
		return STATUS_LIMIT;
	TRY(index_typed_filter_put(terms->conditions, terms->condition_count, &filter));
	if (terms->condition_count)
		def.filter = buf_str(&filter);
	for (size_t i = 0; i < terms->column_count; i++) {
		const struct table_index_column *c = &terms->columns[i];
		const struct index_typed_origin origin = origin_of(c);

		TRY(index_typed_path(&origin, arena, &columns[i]));
		columns[i].descending = c->descending;
		if (!index_typed_is_single(c->part))
			def.flags |= INDEX_MULTIKEY;
	}
	for (size_t i = 0; i < terms->carried_count; i++) {
		const struct index_typed_origin origin = { .column = terms->carried[i],
							   .part = INDEX_TYPED_COLUMN };

		TRY(index_typed_path(&origin, arena, &columns[terms->column_count + i]));
	}
	if (def.carried)
		def.flags |= INDEX_COVERING;
	def.columns = columns;
	TRY(is_empty(t, &empty));
	if (empty)
		def.state = INDEX_READY;
	TRY(index_create(t->tx, t->db, &def, ret_number, t->err));
	return table_schemas_touch(t->tx);
}

enum status
table_index_create(struct timed *t, const struct table_index *terms, uint64_t *ret_number)
{
	struct arena *arena;
	enum status status;

	TRY(timed_write_begin(t));
	TRY(check_terms(t, terms));
	arena = arena_new(TABLE_RECORD_ARENA_BYTES);
	if (!arena)
		return STATUS_NOMEM;
	status = create(t, terms, arena, ret_number);
	arena_free(arena);
	return status;
}

enum status
table_indexes_carry(struct kv_tx *tx, const struct catalog_db *from, const struct catalog_db *to,
		    struct err *err)
{
	const struct index_set *set = index_set_of(from);
	uint64_t number;

	for (size_t i = 0; set && i < set->count; i++) {
		struct index_def def = set->defs[i];

		if (!is_live(&def))
			continue;
		/* There are no rows: what has failed of one can be begun anew. */
		def.state = INDEX_READY;
		TRY(index_create(tx, to, &def, &number, err));
	}
	return STATUS_OK;
}

/* ---- Dropping, building ---- */

enum status
table_index_drop(struct timed *t, const struct table_index *index)
{
	TRY(timed_write_begin(t));
	TRY(index_drop(t->tx, t->db, index->def));
	return table_schemas_touch(t->tx);
}

/* The number of the table, which another one of its name does not have. */
struct numbering {
	struct str table;
	uint64_t number;
};

static enum status
number_find(struct kv_tx *tx, void *arg)
{
	struct numbering *n = arg;
	struct catalog_db *db;

	TRY(catalog_open_bare(tx, NULL, CATALOG_SPACE_TABLE, n->table, &db, kv_tx_err(tx)));
	n->number = db->number;
	catalog_db_unref(db);
	return STATUS_OK;
}

enum status
table_index_build(struct kv_store *store, struct str table, uint64_t number, unsigned steps,
		  struct err *err)
{
	struct numbering n = { .table = table };
	struct index_build_key key = {
		.space = CATALOG_SPACE_TABLE, .db_name = table, .number = number, .claims = true
	};
	enum index_state state;

	TRY(kv_run_read(store, number_find, &n, err));
	key.db_number = n.number;
	return index_build_run(store, &key, INDEX_BUILD_OF_REQUESTS, steps, &state, err);
}
