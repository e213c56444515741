/* Dumping from a store: everything from one read-only transaction, by the database's kind. */
#include "catalog/catalog.h"
#include "cli/dump.h"
#include "model/plain/salvage.h"
#include "model/revisioned/salvage.h"
#include "model/timed/items/items.h"
#include "model/timed/rows/rows.h"
#include "model/timed/tables/tables.h"

/* Where a line of the dump begins, so that its length is known when it ends. */
struct line {
	struct dump *dump;
	uint64_t from;
};

static enum status
line_ready(void *arg, struct err *err)
{
	struct line *line = arg;

	return output_ready(&line->dump->output, err);
}

static enum status
line_end(void *arg, struct err *err)
{
	struct line *line = arg;

	TRY(dump_end_line(line->dump, line->from, err));
	line->from = output_position(&line->dump->output);
	return STATUS_OK;
}

static void
line_warn(void *arg, const char *text)
{
	const struct line *line = arg;

	dump_warn(line->dump, text);
}

static enum status
dump_timed(struct dump *d, const struct catalog_dump *dump)
{
	struct timed t;

	if (!dump->db->extension)
		return err_set(dump->err, STATUS_CORRUPT, "its schema is lost");
	timed_init(&t, dump->tx, dump->db, NULL, dump->err);
	if (d->at_us)
		timed_at_date_us(&t, d->at_us);
	if (dump->db->kind == &table_kind)
		return d->csv ? dump_timed_csv(d, &t, dump->db) : dump_timed_tables(d, &t);
	return dump->db->kind == &timed_rows_kind ? dump_timed_rows(d, &t)
						  : dump_timed_items(d, &t);
}

/* Of a damaged database, what can be read. */
static enum status
dump_broken(struct dump *d, const struct catalog_dump *dump)
{
	return dump->db->kind == rev_salvage.kind ? rev_salvage.dump(dump, d->broken)
						  : plain_salvage.dump(dump, d->broken);
}

static enum status
dump_database(struct dump *d, struct kv_tx *tx, struct err *err)
{
	struct line line = { d, output_position(&d->output) };
	struct catalog_dump dump = {
		.tx = tx,
		.revs = d->revs,
		.out = output_buf(&d->output),
		.ready = line_ready,
		.end_line = line_end,
		.warn = line_warn,
		.arg = &line,
		.err = err,
	};
	enum status status;

	status = catalog_open(tx, NULL, d->named.space, str_from_cstr(d->named.name), &dump.db,
			      err);
	if (status == STATUS_NOT_FOUND)
		return err_set(err, status, "there is no database \"%s\"", d->db);
	TRY(status);
	if (dump.db->kind == &timed_rows_kind || dump.db->kind == &timed_redis_kind ||
	    dump.db->kind == &table_kind)
		status = dump_timed(d, &dump);
	else if (d->broken && dump.db->kind->dump)
		status = dump_broken(d, &dump);
	else if (dump.db->kind->dump)
		status = dump.db->kind->dump(&dump);
	else
		status = err_set(err, STATUS_UNSUPPORTED,
				 "a database of the kind \"%s\" cannot be dumped",
				 dump.db->kind->name);
	catalog_db_unref(dump.db);
	return status;
}

enum status
dump_store(struct dump *d, struct kv_store *store, struct err *err)
{
	struct kv_tx *tx = NULL;
	enum status status = kv_begin(store, KV_TX_READ_ONLY, &tx);

	if (status == STATUS_OK)
		status = dump_database(d, tx, err);
	if (status == STATUS_TX_TOO_OLD)
		status = err_set(
			err, status,
			"the dump takes longer than the store keeps one moment to read; dump "
			"the database through a server, with --from");
	if (status != STATUS_OK && !err->text[0])
		status = err_set(err, status, "cannot read the database: %s%s%s",
				 status_name(status), tx ? ": " : "", tx ? kv_tx_error(tx) : "");
	kv_tx_free(tx);
	return status;
}
