/* frond salvage SOURCE TARGET: a store of everything that can be read out of a damaged one. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "base/quote.h"
#include "catalog/catalog.h"
#include "catalog/check.h"
#include "catalog/salvage.h"
#include "catalog/verify.h"
#include "cli/cli.h"
#include "cli/dump.h"
#include "cli/finding.h"
#include "cli/input.h"
#include "cli/load.h"
#include "cli/load_plain.h"
#include "cli/load_timed.h"
#include "kv/salvage.h"
#include "kv/tuple.h"
#include "model/plain/salvage.h"
#include "model/revisioned/database.h"
#include "model/revisioned/salvage.h"
#include "model/revisioned/shape.h"
#include "model/timed/items/salvage.h"
#include "model/timed/rows/salvage.h"
#include "model/timed/tables/salvage.h"

enum {
	OPTION_LIMIT = 'n',
	OPTION_QUIET = 'q',
	LIMIT_DEFAULT = 100,
	DRAWN_BYTES = 16 * KV_LIMIT_KEY_BYTES,
	CARRY_PAIRS = 1000, /* in one transaction */
	CARRY_BYTES = 4 * 1000 * 1000,
	BYTES_TEXT = 32,
	DROP_TRANSACTIONS = 100,
};

#define DUMP_SUFFIX "/salvage.dump" /* in the new store, while it is put together */

static const struct catalog_salvage_kind *const kinds[] = {
	&rev_salvage,        &plain_salvage, &timed_items_salvage,
	&timed_rows_salvage, &table_salvage, NULL
};

struct salvage {
	const char *source;
	const char *target;
	uint64_t limit; /* lines of each database */
	bool quiet;
	const char *url; /* of the new store, where it is put together */
	char dump[PATH_MAX];
	struct kv_store *store;
	struct arena *arena;
	struct kv_salvage_sum sum;
	struct progress progress;
	uint64_t lost; /* what was told of */
	uint64_t databases;
	uint64_t mended;

	/* Of the database that is looked at. */
	struct catalog_db *db;
	char *name; /* as arguments name it */
	uint64_t told;
	uint64_t findings;
	uint64_t documents;

	/* Of pairs that go from a database to the one that takes its place. */
	struct buf from;
	struct buf until;
	struct buf next; /* where the next page begins */
	bool more;
	struct err *err;
};

static const struct argp_option argp_options[] = {
	{ "limit", OPTION_LIMIT, "N", 0,
	  "Tell of N documents of each database at most (default 100)", 0 },
	{ "quiet", OPTION_QUIET, NULL, 0, "Show no progress", 0 },
	{ 0 },
};

static const char argp_doc[] =
	"Make a new store of everything that can be read out of a damaged one.\v"
	"SOURCE and TARGET are stores (embedded:PATH). SOURCE is only read, and need not open; "
	"no process may have it open. Each block of a table and each record of a log is taken that "
	"matches its checksum. Databases from which nothing is missing come back as they are. The "
	"others are built anew of the documents, keys and rows that are whole, with their indexes "
	"and counts. There must be nothing at TARGET; it is put together in TARGET.salvaging, and "
	"is at its place only when all of it is on disk.\n"
	"\n"
	"What is lost is told on standard output, a line each. Clients can go on with the "
	"\"since\" "
	"that they have, as after \"frond restore\".\n"
	"\n"
	"Exit codes: 0 nothing is lost, 1 something is lost, or the command failed and there is no "
	"TARGET, 2 wrong usage.";

static error_t
salvage_parse_option(int key, char *text, struct argp_state *state)
{
	struct salvage *s = state->input;

	switch (key) {
	case OPTION_LIMIT:
		s->limit = cli_parse_number("limit", text, 1, UINT64_MAX, state);
		return 0;
	case OPTION_QUIET:
		s->quiet = true;
		return 0;
	case ARGP_KEY_ARG:
		if (s->target)
			argp_error(state, "what is \"%s\"?", text);
		*(s->source ? &s->target : &s->source) = cli_parse_store("store", text, state);
		return 0;
	case ARGP_KEY_END:
		if (!s->target)
			argp_error(state, "which store, and what shall the new one be?");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- Telling ---- */

static void
draw_key(struct str key, struct buf *line)
{
	if (key.len)
		tuple_draw(key, line);
	else
		buf_append_cstr(line, "the first");
}

static void
tell_file(void *arg, const struct kv_loss *loss)
{
	AUTO(buf_release) struct buf line = BUF_INIT(DRAWN_BYTES);
	struct salvage *s = arg;

	s->lost++;
	progress_hide(&s->progress);
	buf_printf(&line, "lost: %s", loss->text);
	if (loss->has_keys) {
		buf_append_cstr(&line, ", with keys from ");
		draw_key(loss->after, &line);
		buf_append_cstr(&line, " to ");
		if (loss->until.ptr)
			tuple_draw(loss->until, &line);
		else
			buf_append_cstr(&line, "the last");
	}
	if (loss->elsewhere)
		buf_printf(&line,
			   "; %llu keys between them came from other files, and may be as they "
			   "were before a later write",
			   (unsigned long long)loss->elsewhere);
	if (buf_status(&line) == STATUS_OK)
		printf("%.*s\n", STR_ARG(buf_str(&line)));
	else
		printf("lost: %s\n", loss->text);
}

static void
tell_catalog(void *arg, const char *text)
{
	struct salvage *s = arg;

	s->lost++;
	printf("lost: %s\n", text);
}

/* An entry of the database that is not whole. */
static void
tell_entry(void *arg, struct str entry, const char *why)
{
	struct salvage *s = arg;

	s->lost++;
	if (s->told++ < s->limit)
		printf("lost: database \"%s\", \"%s\": %s\n", s->name, QUOTE_SHOW(entry), why);
}

static void
count_finding(const struct catalog_finding *finding, void *arg)
{
	struct salvage *s = arg;

	/* What a newer frond has written is no damage, and cannot be built anew here. */
	if (strcmp(finding->kind, CATALOG_FINDING_NEWER) != 0)
		s->findings++;
}

/* What is still wrong with the new store: what no database has, say. */
static void
tell_finding(const struct catalog_finding *finding, void *arg)
{
	struct salvage *s = arg;

	s->lost++;
	finding_print(finding);
}

/* ---- What a document does not have ---- */

/* Copies a page of pairs to the database that has the name now. */
static enum status
carry_body(struct kv_tx *tx, void *arg)
{
	const struct kv_range_options options = { .limit = CARRY_PAIRS,
						  .limit_bytes = CARRY_BYTES };
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct salvage *s = arg;
	struct catalog_db *db;
	struct kv_range range;
	struct kv_future *f;
	enum status status = STATUS_OK;

	f = kv_get_range(tx, buf_str(&s->from), buf_str(&s->until), &options);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	TRY(catalog_open(tx, NULL, s->db->kind->space, s->db->name, &db, s->err));
	buf_set_buf(&s->next, &s->from);
	for (size_t i = 0; status == STATUS_OK && i < range.count; i++) {
		buf_set(&key, db->prefix);
		buf_append_str(&key, str_skip(range.pairs[i].key, s->db->prefix.len));
		buf_set(&s->next, range.pairs[i].key);
		buf_append_byte(&s->next, 0);
		status = catalog_key_status(&key);
		if (status == STATUS_OK)
			status = kv_set(tx, buf_str(&key), range.pairs[i].value);
	}
	s->more = range.more;
	catalog_db_unref(db);
	return status == STATUS_OK ? buf_status(&s->next) : status;
}

/* Copies a subspace of the database to the one that has its name now. */
static enum status
carry_space(struct salvage *s, uint64_t space)
{
	buf_set(&s->from, s->db->prefix);
	tuple_put_u64(&s->from, space);
	buf_set_buf(&s->until, &s->from);
	buf_append_byte(&s->until, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&s->from));
	TRY(catalog_key_status(&s->until));
	do {
		TRY(kv_run(s->store, carry_body, s, NULL, s->err));
		buf_set_buf(&s->from, &s->next);
		TRY(buf_status(&s->from));
	} while (s->more);
	return STATUS_OK;
}

/* ---- A database that is built anew ---- */

static enum status
rebuild_dump(struct salvage *s)
{
	const struct catalog_broken broken = { .tell = tell_entry, .arg = s };
	struct dump d = {
		.db = s->name, .named = cli_db_of(s->name), .revs = true, .broken = &broken
	};
	enum status status;

	TRY(output_open(&d.output, s->dump, s->err));
	progress_init(&d.progress, stderr, true, 0);
	status = dump_store(&d, s->store, s->err);
	if (status == STATUS_OK)
		return output_close(&d.output, s->err);
	output_abandon(&d.output);
	return status;
}

/* The database goes, and CouchDB's get an empty one with the same options in its place. */
static enum status
replace_body(struct kv_tx *tx, void *arg)
{
	struct salvage *s = arg;

	TRY(catalog_delete(tx, s->db->kind->space, s->db->name, s->err));
	if (s->db->kind != rev_salvage.kind)
		return STATUS_OK;
	return catalog_create(tx, s->db->kind, s->db->name, s->db->options, s->err);
}

static enum status
rebuild_load_docs(struct salvage *s, struct load_sink *sink, struct load_report *report)
{
	int fd = open(s->dump, O_RDONLY | O_CLOEXEC);
	struct input *in = fd >= 0 ? input_new(input_read_fd, &fd, INPUT_LINES, NULL) : NULL;
	enum status status = STATUS_OK;

	if (fd < 0)
		status = err_set(s->err, STATUS_IO, "cannot read %s: %s", s->dump, strerror(errno));
	else if (!in)
		status = STATUS_NOMEM;
	while (status == STATUS_OK) {
		struct input_item item;
		struct load_doc doc;

		status = input_next(in, &item, s->err);
		if (status != STATUS_OK)
			break;
		arena_clear(s->arena);
		status = load_doc_read(item.text, item.id, NULL, s->arena, &doc, s->err);
		doc.origin = (struct load_origin){ .file = s->name, .line = item.line };
		if (status == STATUS_OK)
			status = sink->put(sink, &doc, s->err);
	}
	if (status == STATUS_NOT_FOUND) {
		*s->err = (struct err){ 0 };
		status = sink->flush(sink, s->err);
	}
	input_free(in);
	if (fd >= 0)
		close(fd);
	s->documents = report->loaded;
	s->lost += report->refused;
	return status;
}

/* Loads what was dumped of a database of CouchDB's documents, through a store of its own. */
static enum status
rebuild_load_couch(struct salvage *s)
{
	struct load_report report = { 0 };
	const struct load_options options = { .db = s->name,
					      .as_stored = true,
					      .batch_docs = LOAD_BATCH_DOCS,
					      .doc_bytes = DOC_LIMIT_MAX_BYTES,
					      .report = &report };
	const struct kv_options kv = { .create = false };
	struct load_sink *sink;
	struct kv_store *store;
	enum status status;

	progress_init(&report.progress, stderr, true, 0);
	TRY(cli_open_store(s->url, &kv, &store));
	TRY(load_sink_store(store, &options, &sink, s->err));
	status = rebuild_load_docs(s, sink, &report);
	sink->free(sink);
	return status;
}

static enum status
rebuild_load_described(struct salvage *s)
{
	char *const files[] = { s->dump };
	const struct load_request request = { .store_url = s->url,
					      .name = s->name,
					      .db = cli_db_of(s->name),
					      .create = true,
					      .quiet = true,
					      .format = INPUT_LINES,
					      .batch_lines = LOAD_BATCH_DOCS,
					      .files = files,
					      .files_count = 1 };
	int code = request.db.space == CATALOG_SPACE_MONGO ? load_plain(&request)
							   : load_timed(&request);

	/* It has told why. */
	return code == CLI_OK ? STATUS_OK
			      : err_set(s->err, STATUS_IO, "%s cannot be built anew", s->name);
}

static enum status
store_open(struct salvage *s)
{
	const struct kv_options kv = { .create = false };

	return cli_open_store(s->url, &kv, &s->store);
}

/* A store is open once in a process, and loads open it themselves. */
static enum status
rebuild_load(struct salvage *s)
{
	enum status status;

	kv_close(s->store);
	s->store = NULL;
	status = s->db->kind == rev_salvage.kind ? rebuild_load_couch(s)
						 : rebuild_load_described(s);
	TRY(store_open(s));
	return status;
}

static enum status
rebuild(struct salvage *s)
{
	enum status status = rebuild_dump(s);

	if (status == STATUS_CORRUPT) {
		s->lost++;
		printf("lost: database \"%s\": %s\n", s->name,
		       s->err->text[0] ? s->err->text : status_name(status));
		*s->err = (struct err){ 0 };
		return kv_run(s->store, replace_body, s, NULL, s->err);
	}
	TRY(status);
	TRY(kv_run(s->store, replace_body, s, NULL, s->err));
	TRY(rebuild_load(s));
	if (s->db->kind == rev_salvage.kind) {
		TRY(carry_space(s, REV_SUBSPACE_CONFIG));
		TRY(carry_space(s, REV_SUBSPACE_LOCAL));
	}
	if (s->told > s->limit)
		printf("lost: database \"%s\": %llu more\n", s->name,
		       (unsigned long long)(s->told - s->limit));
	printf("mended: database \"%s\", built anew: %llu things between its keys were missing\n",
	       s->name, (unsigned long long)s->findings);
	s->mended++;
	return STATUS_OK;
}

/* ---- All databases ---- */

static enum status
open_body(struct kv_tx *tx, void *arg)
{
	struct salvage *s = arg;
	struct cli_db named = cli_db_of(s->name);

	catalog_db_unref(s->db);
	s->db = NULL;
	return catalog_open(tx, NULL, named.space, str_from_cstr(named.name), &s->db, s->err);
}

/* Looks whether anything is missing, and builds the database anew if so. */
static enum status
mend(struct salvage *s)
{
	const struct catalog_verify_options options = { .found = count_finding, .arg = s };
	struct catalog_verify_sum sum;
	enum status status;

	s->told = s->findings = s->documents = 0;
	status = kv_run_read(s->store, open_body, s, s->err);
	if (status == STATUS_OK)
		status = catalog_verify_still(s->store, s->db, &options, &sum, s->err);
	if (status == STATUS_OK && s->findings)
		status = rebuild(s);
	catalog_db_unref(s->db);
	s->db = NULL;
	s->databases++;
	return status;
}

static enum status
mend_page(struct salvage *s, const struct catalog_page *page)
{
	for (size_t i = 0; i < page->count; i++) {
		const struct catalog_db *db = &page->dbs[i];
		struct buf name AUTO(buf_release) = BUF_INIT(2 * CATALOG_NAME_BYTES);

		buf_printf(&name, "%s%.*s", catalog_space_prefix(db->kind->space),
			   STR_ARG(db->name));
		buf_append_byte(&name, '\0');
		TRY(buf_status(&name));
		s->name = name.ptr;
		TRY(mend(s));
	}
	return STATUS_OK;
}

static enum status
mend_all(struct salvage *s)
{
	struct catalog_walk walk;
	enum status status = catalog_walk_begin(&walk);

	/* One that a newer frond has written stays as it is. */
	while (status == STATUS_OK && walk.page.more) {
		status = catalog_walk_next(&walk, s->store, s->err);
		if (status == STATUS_OK)
			status = mend_page(s, &walk.page);
	}
	catalog_walk_end(&walk);
	return status;
}

/* Clears what databases that were built anew have left, which nobody else waits for. */
static enum status
clear_dropped(struct salvage *s)
{
	struct catalog_sweeping sweeping = { .store = s->store };
	bool more = true;

	while (more)
		TRY(catalog_drop_sweep(&sweeping, UINT64_MAX, DROP_TRANSACTIONS, &more, s->err));
	return STATUS_OK;
}

/* The new store is looked at as a whole once more. */
static enum status
check(struct salvage *s)
{
	const struct catalog_verify_options options = { .found = tell_finding, .arg = s };
	struct catalog_verify_sum sum;
	struct kv_tx *tx;
	enum status status = kv_begin(s->store, KV_TX_READ_ONLY, &tx);

	if (status != STATUS_OK)
		return status;
	status = catalog_verify_store(tx, &options, &sum, s->err);
	kv_tx_free(tx);
	return status;
}

static enum status
finish_open(struct salvage *s, bool has_format)
{
	uint64_t databases;

	TRY(catalog_salvage(s->store, has_format, kinds, tell_catalog, s, s->err));
	TRY(mend_all(s));
	TRY(clear_dropped(s));
	TRY(catalog_incarnations_raise(s->store, &databases, s->err));
	return check(s);
}

static enum status
finish(const char *url, bool has_format, void *arg, struct err *err)
{
	struct salvage *s = arg;
	enum status status;

	progress_hide(&s->progress);
	s->err = err;
	s->url = url;
	if (snprintf(s->dump, sizeof(s->dump), "%s%s", strchr(url, ':') + 1, DUMP_SUFFIX) >=
	    (int)sizeof(s->dump))
		return err_set(err, STATUS_INVALID, "the path of the store is too long");
	TRY(store_open(s));
	status = finish_open(s, has_format);
	kv_close(s->store);
	s->store = NULL;
	(void)unlink(s->dump);
	return status;
}

static void
tell_progress(void *arg, uint64_t bytes, uint64_t total_bytes, uint64_t keys)
{
	struct salvage *s = arg;

	s->progress.total_bytes = total_bytes;
	progress_update(&s->progress, keys, bytes);
}

static int
run_salvage(int argc, char **argv)
{
	static const struct argp argp = { .options = argp_options,
					  .parser = salvage_parse_option,
					  .args_doc = "SOURCE TARGET",
					  .doc = argp_doc };
	struct salvage s = { .limit = LIMIT_DEFAULT,
			     .from = CATALOG_KEY_INIT,
			     .until = CATALOG_KEY_INIT,
			     .next = CATALOG_KEY_INIT };
	const struct kv_salvage_how how = { .shape = &rev_store_shape,
					    .lost = tell_file,
					    .finish = finish,
					    .told = tell_progress,
					    .arg = &s };
	struct err err = { 0 };
	char bytes[BYTES_TEXT];
	enum status status;

	cli_parse(&argp, argc, argv, &s);
	progress_init(&s.progress, stderr, s.quiet, 0);
	s.arena = arena_new(LOAD_ARENA_BYTES);
	status = s.arena ? kv_salvage(s.source, s.target, &how, &s.sum, &err) : STATUS_NOMEM;
	progress_hide(&s.progress);
	arena_free(s.arena);
	buf_release(&s.from);
	buf_release(&s.until);
	buf_release(&s.next);
	if (status == STATUS_OK) {
		progress_format_bytes(s.sum.bytes, bytes, sizeof(bytes));
		printf("salvaged to %s: %llu tables, %llu logs, %llu keys, %s; %llu databases, "
		       "%llu of them built anew; %llu losses\n",
		       s.target, (unsigned long long)s.sum.tables, (unsigned long long)s.sum.logs,
		       (unsigned long long)s.sum.keys, bytes, (unsigned long long)s.databases,
		       (unsigned long long)s.mended, (unsigned long long)s.lost);
	} else {
		cli_complain("cannot salvage %s: %s", s.source,
			     err.text[0] ? err.text : status_name(status));
	}
	if (cli_finish_output() != CLI_OK)
		return CLI_FAILED;
	return status == STATUS_OK && s.lost == 0 ? CLI_OK : CLI_FAILED;
}

const struct cli_command cli_salvage = { "salvage", "make a store of what a damaged one still has",
					 run_salvage };
