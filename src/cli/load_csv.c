#include "cli/table_csv.h"

#include "base/mem.h"
#include "cli/csv.h"
#include "cli/load.h"
#include "cli/load_timed.h"

enum {
	LOAD_CSV_TEXT_BYTES = LOAD_TIMED_BATCH_BYTES + INPUT_VALUE_BYTES,
};

struct record {
	size_t from, len; /* in the text of the batch */
	uint64_t line;
};

struct csv_load {
	const struct load_request *request;
	struct load_files files;
	struct kv_store *store;
	struct arena *arena; /* of one attempt at a batch */
	struct err err;

	struct buf names; /* a record of the columns' names; empty: all columns */
	bool header_next; /* the next record is a header */

	struct buf text; /* the records of the batch */
	struct record *records;
	size_t count;
};

/* ---- Batches ---- */

enum status
csv_columns(struct copy_table *c, struct str names, struct arena *arena, const size_t **ret,
	    size_t *ret_count, struct err *err)
{
	struct csv_field *fields;
	struct str *list;
	size_t count;

	if (!names.len)
		return copy_columns(c, NULL, 0, ret, ret_count);
	TRY(csv_read(names, arena, &fields, &count, err));
	list = arena_alloc(arena, count * sizeof(*list));
	if (!list)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++)
		list[i] = fields[i].text;
	return copy_columns(c, list, count, ret, ret_count);
}

static enum status
record_write(struct csv_load *l, struct timed *t, struct copy_table *c, const size_t *columns,
	     size_t column_count, const struct record *record)
{
	struct csv_field *fields;
	struct copy_text *texts;
	size_t count;

	TRY(csv_read(str_of(l->text.ptr + record->from, record->len), l->arena, &fields, &count,
		     &l->err));
	if (count != column_count)
		return err_set(&l->err, STATUS_INVALID, "%zu values for %zu columns", count,
			       column_count);
	texts = arena_alloc(l->arena, count * sizeof(*texts));
	if (!texts)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++)
		texts[i] = (struct copy_text){ .text = fields[i].text,
					       .is_null = csv_is_null(&fields[i]) };
	return copy_row_write(c, t, columns, texts, count);
}

static enum status
batch_write(struct csv_load *l, struct timed *t, struct copy_table *c)
{
	const size_t *columns;
	size_t column_count;

	TRY(csv_columns(c, buf_str(&l->names), l->arena, &columns, &column_count, &l->err));
	for (size_t i = 0; i < l->count; i++) {
		l->files.line = l->records[i].line;
		TRY(record_write(l, t, c, columns, column_count, &l->records[i]));
	}
	return STATUS_OK;
}

static enum status
batch_body(struct kv_tx *tx, void *arg)
{
	struct csv_load *l = arg;
	const struct cli_db *named = &l->request->db;
	struct copy_table *c;
	struct catalog_db *db;
	struct timed t;
	enum status status;

	arena_clear(l->arena);
	status = catalog_open(tx, NULL, named->space, str_from_cstr(named->name), &db, &l->err);
	if (status == STATUS_NOT_FOUND)
		return err_set(&l->err, status,
			       "there is no table %s; CSV does not tell what it is like",
			       l->request->name);
	TRY(status);
	timed_init(&t, tx, db, NULL, &l->err);
	status = copy_table_open(tx, db, rows_type_has, l->arena, &l->err, &c);
	if (status == STATUS_OK) {
		status = batch_write(l, &t, c);
		copy_table_close(c);
	}
	catalog_db_unref(db);
	return status;
}

static enum status
batch_flush(void *arg)
{
	struct csv_load *l = arg;

	if (!l->count)
		return STATUS_OK;
	TRY(kv_run(l->store, batch_body, l, NULL, &l->err));
	l->files.loaded += l->count;
	l->files.first_line = 0;
	l->count = 0;
	buf_clear(&l->text);
	return STATUS_OK;
}

/* ---- Files ---- */

static enum status
file_begin(void *arg)
{
	struct csv_load *l = arg;

	l->header_next = l->request->header;
	return STATUS_OK;
}

/* The header names the columns of its file, unless the command has named them. */
static enum status
header_take(struct csv_load *l, const struct input_item *item)
{
	l->header_next = false;
	if (l->request->columns)
		return STATUS_OK;
	l->files.line = item->line;
	buf_set(&l->names, item->text);
	TRY(buf_status(&l->names));
	return kv_run(l->store, batch_body, l, NULL, &l->err);
}

static enum status
record_take(void *arg, const struct input_item *item)
{
	struct csv_load *l = arg;

	if (l->header_next)
		return header_take(l, item);
	l->files.line = item->line;
	if (!l->count)
		l->files.first_line = item->line;
	l->records[l->count] = (struct record){ .from = l->text.len,
						.len = item->text.len,
						.line = item->line };
	buf_append_str(&l->text, item->text);
	TRY(buf_status(&l->text));
	l->count++;
	if (l->count < l->request->batch_lines && l->text.len < LOAD_TIMED_BATCH_BYTES)
		return STATUS_OK;
	return batch_flush(l);
}

/* The table and the columns that the command names are looked at before a file is opened. */
static enum status
columns_check(struct csv_load *l)
{
	enum status status;

	if (l->request->columns)
		buf_append_cstr(&l->names, l->request->columns);
	TRY(buf_status(&l->names));
	status = kv_run(l->store, batch_body, l, NULL, &l->err);
	if (status != STATUS_OK)
		cli_complain("%s", l->err.text[0] ? l->err.text : status_name(status));
	return status;
}

int
load_csv(const struct load_request *request)
{
	struct kv_options kv = { 0 };
	struct csv_load l = {
		.request = request,
		.files = { .request = request,
			   .begin = file_begin,
			   .take = record_take,
			   .flush = batch_flush },
		.names = BUF_INIT(INPUT_VALUE_BYTES),
		.text = BUF_INIT(LOAD_CSV_TEXT_BYTES),
		.arena = arena_new(LOAD_ARENA_BYTES),
		.records = mem_alloc(request->batch_lines * sizeof(*l.records)),
	};
	enum status status = l.arena && l.records ? STATUS_OK : STATUS_NOMEM;

	l.files.arg = &l;
	l.files.err = &l.err;
	if (status == STATUS_OK)
		status = cli_open_store(request->store_url, &kv, &l.store);
	if (status == STATUS_OK)
		status = columns_check(&l);
	if (status == STATUS_OK)
		status = load_files_run(&l.files);
	kv_close(l.store);
	mem_free(l.records);
	arena_free(l.arena);
	buf_release(&l.text);
	buf_release(&l.names);
	return status == STATUS_OK ? CLI_OK : CLI_FAILED;
}
