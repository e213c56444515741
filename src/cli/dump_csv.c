/*
 * Dumping the rows of a table as CSV, as cqlsh's COPY writes them (csv.h, door/cql/copy/rows.h): a
 * record a row, with the static columns of its partition. Static columns without a row are a record
 * whose clustering columns are null.
 */
#include "cli/csv.h"
#include "cli/dump.h"
#include "cli/table_csv.h"

struct csv_dump {
	struct dump *dump;
	struct timed *t;
	struct catalog_db *db; /* of `t` */
	struct arena *arena;
	struct copy_table *c;
	const size_t *columns;
	size_t column_count;
	struct buf text; /* of a value */
};

static enum status
header_write(struct csv_dump *d)
{
	struct buf *out = output_buf(&d->dump->output);

	for (size_t i = 0; i < d->column_count; i++) {
		if (i)
			buf_append_byte(out, ',');
		csv_put(out, copy_column_name(d->c, d->columns[i]));
	}
	buf_append_cstr(out, CSV_END);
	return output_ready(&d->dump->output, d->t->err);
}

static enum status
row_write(struct csv_dump *d, const struct table_row *stored)
{
	uint64_t from = output_position(&d->dump->output);
	struct buf *out = output_buf(&d->dump->output);
	struct copy_row *row;

	TRY(copy_row_read(d->c, stored, &row));
	for (size_t i = 0; i < d->column_count; i++) {
		if (i)
			buf_append_byte(out, ',');
		buf_clear(&d->text);
		if (copy_row_print(row, d->columns[i], &d->text))
			csv_put(out, buf_str(&d->text));
		TRY(buf_status(&d->text));
	}
	buf_append_byte(out, '\r'); /* the line's end makes CSV_END of it */
	return dump_end_line(d->dump, from, d->t->err);
}

static enum status
rows_write(struct csv_dump *d)
{
	bool statics = table_schema_of(d->t->db)->static_count > 0;
	const struct table_scan_options options = {
		.from_token.kind = TIMED_BOUND_END,
		.to_token.kind = TIMED_BOUND_END,
		.statics = statics,
		.static_alone = statics,
		.borrows = true,
	};
	struct arena_mark mark = arena_mark(d->arena);
	struct table_scan *scan;
	enum status status;

	TRY(table_scan_open(d->t, &options, &scan));
	do {
		struct table_row row;

		arena_reset(d->arena, mark);
		status = table_scan_next(scan, d->arena, &row);
		if (status == STATUS_OK)
			status = row_write(d, &row);
		if (status == STATUS_LIMIT)
			status = err_set(d->t->err, status,
					 "a row takes more than %d bytes (DUMP_ARENA_BYTES)",
					 DUMP_ARENA_BYTES);
	} while (status == STATUS_OK);
	table_scan_close(scan);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
table_write_all(struct csv_dump *d)
{
	struct str names = d->dump->columns ? str_from_cstr(d->dump->columns) : STR("");
	enum status status;

	TRY(copy_table_open(d->t->tx, d->db, rows_type_has, d->arena, d->t->err, &d->c));
	status = csv_columns(d->c, names, d->arena, &d->columns, &d->column_count, d->t->err);
	if (status == STATUS_OK && d->dump->header)
		status = header_write(d);
	if (status == STATUS_OK)
		status = rows_write(d);
	copy_table_close(d->c);
	return status;
}

enum status
dump_timed_csv(struct dump *dump, struct timed *t, struct catalog_db *db)
{
	struct csv_dump d = { .dump = dump,
			      .t = t,
			      .db = db,
			      .arena = arena_new(DUMP_ARENA_BYTES),
			      .text = BUF_INIT(DUMP_ARENA_BYTES) };
	enum status status = d.arena ? table_write_all(&d) : STATUS_NOMEM;

	buf_release(&d.text);
	arena_free(d.arena);
	return status;
}
