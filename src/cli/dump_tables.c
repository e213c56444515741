/*
 * Dumping a table. The first line describes it, with what it needs of its keyspace:
 *
 *     {"frond":"table","format":1,"keyspace":{"property":"value",…},
 *      "types":[{"name":…,"fields":[["field","type"],…]},…],
 *      "columns":[{"name":…,"type":…,"kind":"hash"},…],"properties":{…},
 *      "indexes":[…],"ttl_ms":…,"history_seconds":…[,"history_bytes":…]}
 *
 * A column's kind is "hash", "range", "static" or "regular"; one of the key may be
 * "descending":true; one outside of it has "storage" unless it holds single values. What is told of
 * an index is in tables_indexes.h. Each other line is a row, or the static columns of a partition,
 * whose key has the hash components only; or a part of one that is long:
 *
 *     {"token":…,"key":{…},"inserted":true,"written_us":…,"expires_ms":…,"cells":[
 *      {"column":…,"element":…,"value":…,"written_us":…,"expires_ms":…},…]}
 *     {"token":…,"key":{…},"more":true,"cells":[…]}
 *
 * The token need not be there: it is what tells keys of decimals apart that have other zeros at the
 * end. An element of a list has its place. An "expires_ms" of 0 means never. Without it, the
 * table's default counts. Values of types that CQL does not know, which are PostgreSQL's, are
 * the bytes that the store has.
 *
 * In a table whose clients have timestamps of their own the format is 2. Cells that have one have
 * it as "timestamp", and behind all rows are the deletions that the table remembers for such
 * clients, unless the dump is of the past: of a row or its partition's static columns, by the key;
 * that it was inserted; of a column, or an element in it; of a range of a partition's rows.
 *
 *     {"token":…,"key":{…},"deleted":"row","timestamp":…}
 *     {"token":…,"key":{…},"deleted":"inserted","timestamp":…}
 *     {"token":…,"key":{…},"deleted":"column","column":…[,"element":…],"timestamp":…}
 *     {"token":…,"key":{…},"deleted":"range","from":…,"to":…,"timestamp":…}
 */
#include "cli/dump.h"
#include "cli/tables_indexes.h"
#include "model/timed/tables/deletions.h"
#include "model/timed/tables/keyspaces.h"
#include "model/timed/tables/row.h"

enum {
	PARTITION_KEY_BYTES = 1024 * 1024, /* as JSON */
};

struct tables_dump {
	struct dump *dump;
	struct timed *t;
	const struct table_schema *schema;
	uint64_t from;        /* where the line began */
	size_t cells;         /* in the line */
	struct buf partition; /* the key of the last row's, as it is written */
};

/* ---- The first line ---- */

static void
properties_write(const struct table_property *properties, size_t count, struct buf *out)
{
	buf_append_byte(out, '{');
	for (size_t i = 0; i < count; i++) {
		if (i)
			buf_append_byte(out, ',');
		json_write_str(out, properties[i].name);
		buf_append_byte(out, ':');
		json_write_str(out, properties[i].value);
	}
	buf_append_byte(out, '}');
}

static void
type_write(const struct table_type *type, struct buf *out)
{
	buf_append_cstr(out, "{\"name\":");
	json_write_str(out, type->name);
	buf_append_cstr(out, ",\"fields\":[");
	for (size_t i = 0; i < type->field_count; i++) {
		buf_append_cstr(out, i ? ",[" : "[");
		json_write_str(out, type->fields[i].name);
		buf_append_byte(out, ',');
		json_write_str(out, type->fields[i].type);
		buf_append_byte(out, ']');
	}
	buf_append_cstr(out, "]}");
}

static void
column_write(const struct table_column *column, struct buf *out)
{
	buf_append_cstr(out, "{\"name\":");
	json_write_str(out, column->name);
	buf_append_cstr(out, ",\"type\":");
	json_write_str(out, column->type);
	buf_printf(out, ",\"kind\":\"%s\"", tables_kind_name(column->kind));
	if (column->storage != TABLE_SINGLE)
		buf_printf(out, ",\"storage\":\"%s\"", tables_storage_name(column->storage));
	buf_append_cstr(out, column->descending ? ",\"descending\":true}" : "}");
}

static enum status
header_write(struct tables_dump *d, struct arena *arena)
{
	struct buf *out = output_buf(&d->dump->output);
	struct table_needs needs;

	TRY(table_needs_read(d->t->tx, d->t->db, arena, &needs, d->t->err));
	buf_printf(out, "{\"frond\":\"table\",\"format\":%d,\"keyspace\":",
		   d->schema->stamped ? DUMP_TIMED_FORMAT_STAMPED : DUMP_TIMED_FORMAT);
	properties_write(needs.keyspace.properties, needs.keyspace.property_count, out);
	buf_append_cstr(out, ",\"types\":[");
	for (size_t i = 0; i < needs.type_count; i++) {
		if (i)
			buf_append_byte(out, ',');
		type_write(&needs.types[i], out);
	}
	buf_append_cstr(out, "],\"columns\":[");
	for (size_t i = 0; i < d->schema->column_count; i++) {
		if (i)
			buf_append_byte(out, ',');
		column_write(&d->schema->columns[i], out);
	}
	buf_append_cstr(out, "],\"properties\":");
	properties_write(d->schema->properties, d->schema->property_count, out);
	buf_append_cstr(out, ",\"indexes\":");
	tables_indexes_write(d->t->db, out);
	buf_printf(out, ",\"ttl_ms\":%llu", (unsigned long long)timed_ttl_ms(d->t->db));
	TRY(dump_timed_history(d->t, out));
	buf_append_cstr(out, "}\n");
	return output_ready(&d->dump->output, d->t->err);
}

/* ---- Rows ---- */

static void
times_write(uint64_t write_us, const int64_t *stamp, uint64_t expires_ms, bool by_default,
	    struct buf *out)
{
	buf_printf(out, ",\"written_us\":%llu", (unsigned long long)write_us);
	if (stamp)
		buf_printf(out, ",\"timestamp\":%lld", (long long)*stamp);
	if (!by_default)
		buf_printf(out, ",\"expires_ms\":%llu", (unsigned long long)expires_ms);
}

static void
key_write(const struct tables_dump *d, const struct doc_scalar *key, size_t count, struct buf *out)
{
	buf_append_byte(out, '{');
	for (size_t i = 0; i < count; i++) {
		if (i)
			buf_append_byte(out, ',');
		json_write_str(out, d->schema->columns[i].name);
		buf_append_byte(out, ':');
		tables_scalar_write(&key[i], out);
	}
	buf_append_byte(out, '}');
}

/* `count`: of the key's components; those of a partition for its static columns. */
static void
line_begin(struct tables_dump *d, const struct table_row *row, size_t count, bool more)
{
	struct buf *out = output_buf(&d->dump->output);

	d->from = output_position(&d->dump->output);
	d->cells = 0;
	buf_printf(out, "{\"token\":%lld,\"key\":", (long long)row->token);
	key_write(d, row->key, count, out);
	if (more) {
		buf_append_cstr(out, ",\"more\":true");
	} else if (count == row->key_count && row->is_row && row->inserted) {
		buf_append_cstr(out, ",\"inserted\":true");
		times_write(row->write_us, row->has_stamp ? &row->stamp : NULL, row->expires_ms,
			    row->by_default, out);
	}
	buf_append_cstr(out, ",\"cells\":[");
}

static enum status
line_end(struct tables_dump *d)
{
	buf_append_cstr(output_buf(&d->dump->output), "]}");
	return dump_end_line(d->dump, d->from, d->t->err);
}

static void
cell_write(const struct table_cell *cell, struct buf *out)
{
	enum table_storage storage = cell->column->storage;

	buf_append_cstr(out, "{\"column\":");
	json_write_str(out, cell->column->name);
	if (storage != TABLE_SINGLE && storage != TABLE_COUNTER) {
		buf_append_cstr(out, ",\"element\":");
		tables_scalar_write(&cell->element, out);
	}
	if (storage != TABLE_SET) {
		buf_append_cstr(out, ",\"value\":");
		tables_scalar_write(&cell->value, out);
	}
	if (storage != TABLE_COUNTER)
		times_write(cell->write_us, cell->has_stamp ? &cell->stamp : NULL, cell->expires_ms,
			    cell->by_default, out);
	buf_append_byte(out, '}');
}

static enum status
cells_write(struct tables_dump *d, const struct table_row *row, size_t key_count,
	    const struct table_cell *cells, size_t count)
{
	struct buf *out = output_buf(&d->dump->output);

	line_begin(d, row, key_count, false);
	for (size_t i = 0; i < count; i++) {
		if (d->cells == DUMP_LINE_ENTRIES ||
		    output_position(&d->dump->output) - d->from > DUMP_LINE_BYTES) {
			TRY(line_end(d));
			line_begin(d, row, key_count, true);
		}
		if (d->cells++)
			buf_append_byte(out, ',');
		cell_write(&cells[i], out);
		TRY(buf_status(out));
	}
	return line_end(d);
}

/* True for the first row of each partition. */
static enum status
partition_begins(struct tables_dump *d, const struct table_row *row, bool *ret)
{
	AUTO(buf_release) struct buf key = BUF_INIT(PARTITION_KEY_BYTES);

	key_write(d, row->key, d->schema->hash_count, &key);
	TRY(buf_status(&key));
	*ret = !str_eq(buf_str(&key), buf_str(&d->partition));
	buf_set_buf(&d->partition, &key);
	return buf_status(&d->partition);
}

static enum status
row_write(struct tables_dump *d, const struct table_row *row)
{
	bool begins;

	if (d->schema->static_count) {
		TRY(partition_begins(d, row, &begins));
		if (begins && row->static_count)
			TRY(cells_write(d, row, d->schema->hash_count, row->statics,
					row->static_count));
	}
	if (!row->is_row)
		return STATUS_OK;
	return cells_write(d, row, row->key_count, row->cells, row->cell_count);
}

static enum status
rows_write(struct tables_dump *d, struct arena *arena)
{
	const struct table_scan_options options = {
		.from_token.kind = TIMED_BOUND_END,
		.to_token.kind = TIMED_BOUND_END,
		.statics = d->schema->static_count > 0,
		.static_alone = d->schema->static_count > 0,
		.borrows = true,
	};
	struct table_scan *scan;
	enum status status;

	TRY(table_scan_open(d->t, &options, &scan));
	do {
		struct table_row row;

		arena_clear(arena);
		status = table_scan_next(scan, arena, &row);
		if (status == STATUS_LIMIT)
			status = err_set(d->t->err, status,
					 "a row is larger than %d bytes (DUMP_ARENA_BYTES)",
					 DUMP_ARENA_BYTES);
		if (status == STATUS_OK)
			status = row_write(d, &row);
	} while (status == STATUS_OK);
	table_scan_close(scan);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- Deletions ---- */

static enum status
deletion_write(struct tables_dump *d, const struct table_deletion *deletion)
{
	const struct table_column *column = table_column_by_id(d->schema, deletion->column);
	struct buf *out = output_buf(&d->dump->output);

	d->from = output_position(&d->dump->output);
	buf_printf(out, "{\"token\":%lld,\"key\":", (long long)deletion->key.token);
	key_write(d, deletion->key.parts, deletion->key.count, out);
	buf_printf(out, ",\"deleted\":\"%s\"", tables_deletion_name(deletion->kind));
	if (column) {
		buf_append_cstr(out, ",\"column\":");
		json_write_str(out, column->name);
	}
	if (deletion->has_element) {
		buf_append_cstr(out, ",\"element\":");
		tables_scalar_write(&deletion->element, out);
	}
	if (deletion->kind == TABLE_DELETION_RANGE) {
		const struct doc_scalar from = { .kind = DOC_BYTES, .text = deletion->from };
		const struct doc_scalar to = { .kind = DOC_BYTES, .text = deletion->to };

		buf_append_cstr(out, ",\"from\":");
		tables_scalar_write(&from, out);
		buf_append_cstr(out, ",\"to\":");
		tables_scalar_write(&to, out);
	}
	buf_printf(out, ",\"timestamp\":%lld}", (long long)deletion->stamp);
	return dump_end_line(d->dump, d->from, d->t->err);
}

static enum status
deletions_write(struct tables_dump *d, struct arena *arena)
{
	struct table_deletions *deletions;
	enum status status;

	if (!d->schema->stamped || d->t->at_us)
		return STATUS_OK;
	TRY(table_deletions_open(d->t, &deletions));
	do {
		struct table_deletion deletion;

		arena_clear(arena);
		status = table_deletions_next(deletions, arena, &deletion);
		if (status == STATUS_OK)
			status = deletion_write(d, &deletion);
	} while (status == STATUS_OK);
	table_deletions_close(deletions);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status
dump_timed_tables(struct dump *d, struct timed *t)
{
	struct tables_dump tables = { .dump = d,
				      .t = t,
				      .schema = table_schema_of(t->db),
				      .partition = BUF_INIT(PARTITION_KEY_BYTES) };
	struct arena *arena = arena_new(DUMP_ARENA_BYTES);
	enum status status = arena ? header_write(&tables, arena) : STATUS_NOMEM;

	if (status == STATUS_OK)
		status = rows_write(&tables, arena);
	if (status == STATUS_OK)
		status = deletions_write(&tables, arena);
	buf_release(&tables.partition);
	arena_free(arena);
	return status;
}
