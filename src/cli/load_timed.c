#include "cli/load_timed.h"

#include "base/mem.h"
#include "cli/dump.h"
#include "cli/load_tables.h"

enum {
	HISTORY_SWEEPS = 10, /* transactions */
	LOAD_TIMED_TEXT_BYTES = LOAD_TIMED_BATCH_BYTES + INPUT_VALUE_BYTES,
};

struct timed_load {
	const struct load_request *options;
	struct load_files files;
	struct kv_store *store;
	struct arena *arena; /* of one attempt at a batch */
	struct err err;

	/* The lines of the batch, each with its end, and where each is in its file. */
	struct buf text;
	uint64_t *numbers; /* batch_lines of them */
	size_t lines;

	struct str header; /* the line that describes the database */
	bool created;
	struct timed_history_bounds history;
};

static enum status
line_read(struct timed_load *l, struct str text, struct load_line *ret)
{
	struct json_value value;

	*ret = (struct load_line){ .arena = l->arena, .err = &l->err };
	TRY(json_value_read(text, l->arena, &value, &l->err));
	return json_value_members(&value, l->arena, &ret->members, &ret->count, &l->err);
}

/* ---- The line that describes the database ---- */

/* Components of the key: {"name": …, "descending": true}. */
static enum status
key_columns_read(const struct load_line *line, const char *name, struct timed_schema *schema)
{
	struct json_value *items;
	size_t count;

	TRY(load_line_list(line, name, false, &items, &count));
	for (size_t i = 0; i < count; i++) {
		struct timed_key_column column = { 0 };
		const struct json_value *value;
		struct json_member *fields;
		size_t n;

		TRY(json_value_members(&items[i], line->arena, &fields, &n, line->err));
		value = json_value_find(fields, n, "name");
		if (!value || schema->key_count == TIMED_KEY_COLUMNS)
			return err_set(line->err, STATUS_INVALID,
				       "a component has a name, and a key %d of them at most",
				       TIMED_KEY_COLUMNS);
		column.name = value->string;
		value = json_value_find(fields, n, "descending");
		column.descending = value && value->kind == JSON_TRUE;
		schema->key[schema->key_count++] = column;
	}
	return STATUS_OK;
}

static enum status
rows_schema_read(const struct load_line *line, struct timed_schema *ret)
{
	struct json_value *items;

	*ret = (struct timed_schema){
		.key = arena_zalloc(line->arena, TIMED_KEY_COLUMNS * sizeof(*ret->key)),
	};
	if (!ret->key)
		return STATUS_LIMIT;
	TRY(key_columns_read(line, "hash", ret));
	ret->hash_count = ret->key_count;
	TRY(key_columns_read(line, "range", ret));
	TRY(load_line_list(line, "columns", false, &items, &ret->column_count));
	ret->columns = arena_zalloc(line->arena, (ret->column_count + 1) * sizeof(*ret->columns));
	if (!ret->columns)
		return STATUS_LIMIT;
	for (size_t i = 0; i < ret->column_count; i++)
		ret->columns[i] = items[i].string;
	return STATUS_OK;
}

static bool
schema_equals(const struct timed_schema *a, const struct timed_schema *b)
{
	if (a->hash_count != b->hash_count || a->key_count != b->key_count ||
	    a->column_count != b->column_count)
		return false;
	for (size_t i = 0; i < a->key_count; i++)
		if (!str_eq(a->key[i].name, b->key[i].name) ||
		    a->key[i].descending != b->key[i].descending)
			return false;
	for (size_t i = 0; i < a->column_count; i++)
		if (!str_eq(a->columns[i], b->columns[i]))
			return false;
	return true;
}

static enum status
header_check(struct timed_load *l, const struct load_line *line)
{
	const struct json_value *kind = json_value_find(line->members, line->count, "frond");
	enum catalog_space space = l->options->db.space;
	struct str wanted = space == CATALOG_SPACE_TABLE     ? STR("table")
			    : space == timed_rows_kind.space ? STR("rows")
							     : STR("redis");
	uint64_t newest = space == CATALOG_SPACE_TABLE ? DUMP_TIMED_FORMAT_STAMPED
						       : DUMP_TIMED_FORMAT;
	uint64_t format = 0;

	if (!str_eq(kind->string, wanted))
		return err_set(&l->err, STATUS_INVALID, "this is no dump of such a database as %s",
			       l->options->name);
	TRY(load_line_u64(line, "format", &format));
	if (format > newest)
		return err_set(&l->err, STATUS_NEWER, "a newer frond has written this dump");
	l->history = (struct timed_history_bounds){ 0 };
	TRY(load_line_u64(line, "history_seconds", &l->history.seconds));
	TRY(load_line_u64(line, "history_bytes", &l->history.bytes));
	return load_line_u64(line, "history_versions", &l->history.versions);
}

/* Creates the database that the line describes, or compares it with the one that is there. */
static enum status
header_body(struct kv_tx *tx, void *arg)
{
	struct timed_load *l = arg;
	const struct load_request *o = l->options;
	struct str name = str_from_cstr(o->db.name);
	struct timed_schema schema;
	struct load_line line;
	struct catalog_db *db;
	uint64_t ttl_ms = 0;
	enum status status;

	arena_clear(l->arena);
	l->created = false;
	TRY(line_read(l, l->header, &line));
	TRY(header_check(l, &line));
	if (o->db.space == CATALOG_SPACE_TABLE)
		return load_tables_header(tx, name, o->create, &line, &l->created);
	TRY(rows_schema_read(&line, &schema));
	TRY(load_line_u64(&line, "ttl_ms", &ttl_ms));
	status = catalog_open(tx, NULL, o->db.space, name, &db, &l->err);
	if (status == STATUS_NOT_FOUND && o->create) {
		l->created = true;
		return o->db.space == timed_rows_kind.space
			       ? timed_create(tx, name, &schema, ttl_ms, &l->err)
			       : timed_items_create(tx, name, &l->err);
	}
	TRY(status);
	if (o->db.space == timed_rows_kind.space && !schema_equals(&schema, timed_schema_of(db)))
		status = err_set(&l->err, STATUS_INVALID,
				 "the rows of %s look different from those of the dump", o->name);
	catalog_db_unref(db);
	return status;
}

/* ---- Batches ---- */

static enum status
batch_lines(struct timed_load *l, struct timed *t, struct copy_table *c)
{
	struct str rest = buf_str(&l->text);
	struct timed_item last;
	bool has_last = false;

	for (size_t i = 0; i < l->lines; i++) {
		struct str text = str_cut(&rest, '\n');
		struct load_line line;

		l->files.line = l->numbers[i];
		TRY(line_read(l, text, &line));
		if (c)
			TRY(load_tables_line(t, c, &line));
		else if (l->options->db.space == timed_rows_kind.space)
			TRY(load_rows_line(t, &line));
		else
			TRY(load_items_line(t, &line, &last, &has_last));
	}
	return STATUS_OK;
}

static enum status
batch_apply(struct timed_load *l, struct timed *t, struct catalog_db *db)
{
	struct copy_table *c;
	enum status status;

	if (db->kind != &table_kind)
		return batch_lines(l, t, NULL);
	TRY(copy_table_open(t->tx, db, rows_type_has, l->arena, &l->err, &c));
	status = batch_lines(l, t, c);
	copy_table_close(c);
	return status;
}

static enum status
batch_body(struct kv_tx *tx, void *arg)
{
	struct timed_load *l = arg;
	const struct cli_db *named = &l->options->db;
	struct catalog_db *db;
	struct timed t;
	enum status status;

	arena_clear(l->arena);
	status = catalog_open(tx, NULL, named->space, str_from_cstr(named->name), &db, &l->err);
	if (status == STATUS_NOT_FOUND)
		return err_set(&l->err, status,
			       "there is no database %s, and no line before that describes it",
			       l->options->name);
	TRY(status);
	timed_init(&t, tx, db, NULL, &l->err);
	status = batch_apply(l, &t, db);
	catalog_db_unref(db);
	return status;
}

static enum status
batch_flush(void *arg)
{
	struct timed_load *l = arg;

	if (!l->lines)
		return STATUS_OK;
	TRY(kv_run(l->store, batch_body, l, NULL, &l->err));
	l->files.loaded += l->lines;
	l->lines = 0;
	l->files.first_line = 0;
	buf_clear(&l->text);
	return STATUS_OK;
}

static enum status
line_take(void *arg, const struct input_item *item)
{
	struct timed_load *l = arg;

	if (load_is_header(item->text)) {
		TRY(batch_flush(l));
		l->files.first_line = item->line;
		l->files.line = item->line;
		l->header = item->text;
		return kv_run(l->store, header_body, l, NULL, &l->err);
	}
	if (!l->lines) {
		l->files.first_line = item->line;
		l->files.line = item->line;
	}
	buf_append_str(&l->text, item->text);
	buf_append_byte(&l->text, '\n');
	TRY(buf_status(&l->text));
	l->numbers[l->lines++] = item->line;
	if (l->lines < l->options->batch_lines && l->text.len < LOAD_TIMED_BATCH_BYTES)
		return STATUS_OK;
	return batch_flush(l);
}

/* ---- The whole ---- */

static enum status
history_body(struct kv_tx *tx, void *arg)
{
	struct timed_load *l = arg;
	const struct cli_db *named = &l->options->db;
	struct catalog_db *db;
	struct timed t;
	enum status status;

	TRY(catalog_open(tx, NULL, named->space, str_from_cstr(named->name), &db, &l->err));
	timed_init(&t, tx, db, NULL, &l->err);
	status = timed_history_set(&t, l->history);
	catalog_db_unref(db);
	return status;
}

/* A database that was created keeps a history as the dumped one did, from now on. */
static enum status
history_begin(struct timed_load *l)
{
	enum status status;
	uint64_t done;
	bool more;

	if (!l->created || !l->history.seconds)
		return STATUS_OK;
	status = kv_run(l->store, history_body, l, NULL, &l->err);
	if (status == STATUS_OK)
		status = timed_sweep(l->store, NULL, HISTORY_SWEEPS, &done, &more, &l->err);
	if (status != STATUS_OK)
		cli_complain("cannot begin the history of %s: %s", l->options->name,
			     l->err.text[0] ? l->err.text : status_name(status));
	return status;
}

int
load_timed(const struct load_request *request)
{
	struct kv_options kv = { .create = request->create };
	struct timed_load l = {
		.options = request,
		.files = { .request = request, .take = line_take, .flush = batch_flush },
		.text = BUF_INIT(LOAD_TIMED_TEXT_BYTES),
		.numbers = mem_alloc(request->batch_lines * sizeof(*l.numbers)),
		.arena = arena_new(LOAD_ARENA_BYTES),
	};
	enum status status = l.arena && l.numbers ? STATUS_OK : STATUS_NOMEM;

	l.files.arg = &l;
	l.files.err = &l.err;
	if (status == STATUS_OK)
		status = cli_open_store(request->store_url, &kv, &l.store);
	if (status == STATUS_OK)
		status = load_files_run(&l.files);
	if (status == STATUS_OK)
		status = history_begin(&l);
	kv_close(l.store);
	arena_free(l.arena);
	mem_free(l.numbers);
	buf_release(&l.text);
	return status == STATUS_OK ? CLI_OK : CLI_FAILED;
}
