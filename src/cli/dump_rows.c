/*
 * Dumping a database of rows. The first line describes the database:
 *
 *     {"frond":"rows","format":1,"hash":[{"name":"a"}],"range":[{"name":"b","descending":true}],
 *      "columns":[…],"ttl_ms":…,"history_seconds":…[,"history_bytes":…]}
 *
 * and each other line is a row, or a part of one that is long:
 *
 *     {"key":{…},"type":"inserted","written_us":…,"expires_ms":…,"leaves":[
 *      {"path":[…],"value":…,"written_us":…,"expires_ms":…},…]}
 *     {"key":{…},"type":…,"more":true,"leaves":[…]}
 *
 * An "expires_ms" of 0 means never. Without it, the default of the database counts.
 */
#include "cli/dump.h"
#include "cli/rows.h"

struct rows_dump {
	struct dump *dump;
	struct timed *t;
	const struct timed_schema *schema;
	uint64_t from;        /* where the line began */
	size_t leaves;        /* in the line */
	bool open;            /* a line has begun */
	enum timed_type type; /* of the row */
};

/* ---- The first line ---- */

static void
header_names(const struct timed_key_column *key, size_t count, struct buf *out)
{
	buf_append_byte(out, '[');
	for (size_t i = 0; i < count; i++) {
		if (i)
			buf_append_byte(out, ',');
		buf_append_byte(out, '{');
		buf_append_cstr(out, "\"name\":");
		json_write_str(out, key[i].name);
		buf_append_cstr(out, key[i].descending ? ",\"descending\":true}" : "}");
	}
	buf_append_byte(out, ']');
}

enum status
dump_timed_history(struct timed *t, struct buf *out)
{
	struct timed_history_bounds bounds;

	TRY(timed_history_bounds_get(t, &bounds));
	buf_printf(out, ",\"history_seconds\":%llu", (unsigned long long)bounds.seconds);
	if (bounds.bytes)
		buf_printf(out, ",\"history_bytes\":%llu", (unsigned long long)bounds.bytes);
	if (bounds.versions)
		buf_printf(out, ",\"history_versions\":%llu", (unsigned long long)bounds.versions);
	return STATUS_OK;
}

static enum status
header_write(struct rows_dump *r)
{
	struct buf *out = output_buf(&r->dump->output);
	const struct timed_schema *s = r->schema;

	buf_printf(out, "{\"frond\":\"rows\",\"format\":%d,\"hash\":", DUMP_TIMED_FORMAT);
	header_names(s->key, s->hash_count, out);
	buf_append_cstr(out, ",\"range\":");
	header_names(s->key + s->hash_count, s->key_count - s->hash_count, out);
	buf_append_cstr(out, ",\"columns\":[");
	for (size_t i = 0; i < s->column_count; i++) {
		if (i)
			buf_append_byte(out, ',');
		json_write_str(out, s->columns[i]);
	}
	buf_printf(out, "],\"ttl_ms\":%llu", (unsigned long long)timed_ttl_ms(r->t->db));
	TRY(dump_timed_history(r->t, out));
	buf_append_cstr(out, "}\n");
	return output_ready(&r->dump->output, r->t->err);
}

/* ---- Rows ---- */

static void
times_write(uint64_t write_us, struct timed_expiry expiry, bool is_default, struct buf *out)
{
	buf_printf(out, ",\"written_us\":%llu", (unsigned long long)write_us);
	if (expiry.kind == TIMED_EXPIRY_DEFAULT || is_default)
		return;
	buf_printf(out, ",\"expires_ms\":%llu",
		   (unsigned long long)(expiry.kind == TIMED_EXPIRY_AT ? expiry.ms : 0));
}

static enum status
line_end(struct rows_dump *r)
{
	if (!r->open)
		return STATUS_OK;
	r->open = false;
	buf_append_cstr(output_buf(&r->dump->output), "]}");
	return dump_end_line(r->dump, r->from, r->t->err);
}

/* Begins a line of the row. If the cell is the row's own, the line has what it says. */
static void
line_begin(struct rows_dump *r, const struct timed_cell_seen *cell, bool more)
{
	struct buf *out = output_buf(&r->dump->output);

	r->from = output_position(&r->dump->output);
	r->open = true;
	r->leaves = 0;
	buf_append_cstr(out, "{\"key\":");
	rows_key_write(r->schema, cell->key.parts, out);
	buf_printf(out, ",\"type\":\"%s\"", rows_type_name(r->type));
	if (more)
		buf_append_cstr(out, ",\"more\":true");
	if (!cell->path.count) {
		if (cell->type == TIMED_VALUE) {
			buf_append_cstr(out, ",\"value\":");
			rows_scalar_write(&cell->value, out);
		}
		times_write(cell->write_us, cell->expiry, false, out);
	}
	buf_append_cstr(out, ",\"leaves\":[");
}

static enum status
leaf_write(struct rows_dump *r, const struct timed_cell_seen *cell)
{
	struct buf *out;

	if (r->leaves == DUMP_LINE_ENTRIES ||
	    output_position(&r->dump->output) - r->from > DUMP_LINE_BYTES) {
		TRY(line_end(r));
		line_begin(r, cell, true);
	}
	out = output_buf(&r->dump->output);
	if (r->leaves++)
		buf_append_byte(out, ',');
	buf_append_cstr(out, "{\"path\":");
	rows_path_write(r->schema, &cell->path, out);
	buf_append_cstr(out, ",\"value\":");
	rows_scalar_write(&cell->value, out);
	/* The members of a collection never expire by themselves. */
	times_write(cell->write_us, cell->expiry, r->schema->column_count == 0, out);
	buf_append_byte(out, '}');
	return buf_status(out);
}

static enum status
row_take_cell(void *arg, const struct timed_cell_seen *cell)
{
	struct rows_dump *r = arg;

	if (cell->begins) {
		TRY(line_end(r));
		r->type = cell->type;
		line_begin(r, cell, false);
	}
	return cell->path.count ? leaf_write(r, cell) : buf_status(output_buf(&r->dump->output));
}

enum status
dump_timed_rows(struct dump *d, struct timed *t)
{
	struct rows_dump r = { .dump = d, .t = t, .schema = timed_schema_of(t->db) };
	struct arena *arena = arena_new(DUMP_ARENA_BYTES);
	enum status status = arena ? header_write(&r) : STATUS_NOMEM;

	if (status == STATUS_OK)
		status = timed_cells(t, arena, row_take_cell, &r);
	if (status == STATUS_OK)
		status = line_end(&r);
	arena_free(arena);
	return status;
}
