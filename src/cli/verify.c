/* frond verify [DB...]: checks a store, or databases of it, and says what is wrong where. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/compare.h"
#include "cli/doors.h"
#include "cli/finding.h"
#include "cli/progress.h"
#include "cli/settings.h"
#include "catalog/catalog.h"
#include "catalog/check.h"
#include "catalog/verify.h"
#include "door/couch/couch.h"
#include "door/door.h"
#include "js/js.h"
#include "js/settings.h"
#include "kv/damage.h"
#include "kv/keyspace.h"
#include "kv/tuple.h"
#include "settings/settings.h"

enum {
	OPTION_STORE = 's',
	OPTION_LIMIT = 'n',
	OPTION_QUIET = 'q',
	OPTION_STILL = 'w',
	OPTION_AGAINST = 'a',
	OPTION_RANGES = 'r',
	OPTION_RATE = 'b',
	LIMIT_DEFAULT = 20,
	FINDING_KINDS = 64, /* more than all models have: others are not counted apart */
	NAMES_PAGE = 1000,
	NAMES_SHOWN = 20,
	NAMES_ARENA_BYTES = 16 * 1024 * 1024,
	NAMES_BYTES = 64 * 1024,
	SHOWN_KEY_BYTES = 16 * KV_LIMIT_KEY_BYTES,
};

struct verify {
	const char *store;
	const char *against; /* another store, to compare with; NULL: none */
	char **names;        /* of databases; none: the whole store */
	size_t names_count;
	uint64_t limit; /* findings of a kind to tell of */
	bool quiet;
	bool still;
	bool ranges;
	uint64_t rate_bytes; /* 0: no limit */

	struct settings *settings; /* what workers begin with, as of a server without a file */
	struct js *js;
	struct catalog_verify_lender lender; /* zeroed: there is no worker */

	struct progress progress;
	struct catalog_verify_sum before; /* of the databases that are done */
	/* Of each kind of finding that there was. */
	struct {
		const char *kind;
		uint64_t count;
	} found[FINDING_KINDS];
};

static const struct argp_option argp_options[] = {
	{ "store", OPTION_STORE, "URL", 0, "The store to check (default " CLI_STORE ")", 0 },
	{ "limit", OPTION_LIMIT, "N", 0, "Tell of N findings of each kind at most (default 20)",
	  0 },
	{ "against", OPTION_AGAINST, "URL", 0,
	  "Compare the store with another one, such as its standby, pair by pair, and check "
	  "nothing "
	  "else; both must have the same version",
	  0 },
	{ "quiet", OPTION_QUIET, NULL, 0, "Show no progress", 0 },
	{ "still", OPTION_STILL, NULL, 0,
	  "Nobody writes meanwhile: read at several moments, as large databases of a cluster need",
	  0 },
	{ "ranges", OPTION_RANGES, NULL, 0,
	  "Others write meanwhile: read each range of documents at a moment of its own", 0 },
	{ "rate", OPTION_RATE, "BYTES", 0,
	  "With --ranges: read so many bytes a second at most, on average", 0 },
	{ 0 },
};

static const char argp_doc[] =
	"Check everything that has to hold between the keys of a store, or of the databases DB.\v"
	"The store is opened for reading only, next to a server that may be writing, and is "
	"checked as it is at that moment. Each finding is a line on standard output: its kind, the "
	"database, the part of it, the key, and what is wrong; the last line is the sum. A finding "
	"is damage: restore a backup, or dump what can still be read.\n"
	"\n"
	"Exit codes: 0 nothing found, 1 something found, or the check failed, 2 wrong usage.";

static error_t
verify_parse_option(int key, char *text, struct argp_state *state)
{
	struct verify *v = state->input;

	switch (key) {
	case OPTION_STORE:
		v->store = cli_parse_store("store", text, state);
		return 0;
	case OPTION_AGAINST:
		v->against = cli_parse_store("against", text, state);
		return 0;
	case OPTION_LIMIT:
		v->limit = cli_parse_number("limit", text, 1, UINT64_MAX, state);
		return 0;
	case OPTION_QUIET:
		v->quiet = true;
		return 0;
	case OPTION_STILL:
		v->still = true;
		return 0;
	case OPTION_RANGES:
		v->ranges = true;
		return 0;
	case OPTION_RATE:
		v->rate_bytes = cli_parse_number("rate", text, 1, UINT64_MAX, state);
		return 0;
	case ARGP_KEY_END:
		if (v->against && (v->names_count || v->still || v->ranges))
			argp_error(state, "--against compares whole stores, and nothing else");
		if (v->ranges && v->still)
			argp_error(state, "--still and --ranges exclude each other");
		if (v->rate_bytes && !v->ranges)
			argp_error(state, "--rate needs --ranges");
		return 0;
	case ARGP_KEY_ARGS:
		v->names = state->argv + state->next;
		v->names_count = (size_t)(state->argc - state->next);
		for (size_t i = 0; i < v->names_count; i++)
			(void)cli_parse_db(v->names[i], state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- Telling ---- */

static void
tell(const struct catalog_finding *finding, void *arg)
{
	struct verify *v = arg;

	size_t at = 0;

	while (at < FINDING_KINDS - 1 && v->found[at].kind &&
	       strcmp(v->found[at].kind, finding->kind) != 0)
		at++;
	v->found[at].kind = finding->kind;
	if (++v->found[at].count > v->limit)
		return;
	progress_hide(&v->progress);
	finding_print(finding);
}

static void
show_progress(const struct catalog_verify_sum *sum, void *arg)
{
	struct verify *v = arg;

	progress_update(&v->progress, v->before.documents + sum->documents,
			v->before.bytes + sum->bytes);
}

static void
add(struct catalog_verify_sum *sum, const struct catalog_verify_sum *more)
{
	sum->databases += more->databases;
	sum->documents += more->documents;
	sum->leaves += more->leaves;
	sum->packed += more->packed;
	sum->keys += more->keys;
	sum->bytes += more->bytes;
	sum->functions += more->functions;
	sum->findings += more->findings;
	sum->unchecked += more->unchecked;
}

static void
tell_sum(const struct verify *v)
{
	const struct catalog_verify_sum *sum = &v->before;

	for (size_t i = 0; i < FINDING_KINDS; i++)
		if (v->found[i].count > v->limit)
			printf("%s: %llu more\n", v->found[i].kind,
			       (unsigned long long)(v->found[i].count - v->limit));
	if (sum->functions)
		printf("%llu reduces of views are functions that could not be called: their stored "
		       "results were not all compared\n",
		       (unsigned long long)sum->functions);
	printf("%llu databases, %llu documents, %llu leaves, %llu packed, %llu findings\n",
	       (unsigned long long)sum->databases, (unsigned long long)sum->documents,
	       (unsigned long long)sum->leaves, (unsigned long long)sum->packed,
	       (unsigned long long)sum->findings);
}

/* ---- Checking ---- */

static enum status
check(struct verify *v, struct kv_tx *tx, const char *name, struct err *err)
{
	struct catalog_verify_options options = { .found = tell,
						  .progress = show_progress,
						  .arg = v,
						  .lender = v->lender.functions ? &v->lender : NULL,
						  .still = v->still,
						  .ranges = v->ranges,
						  .rate_bytes = v->rate_bytes };
	struct catalog_verify_sum sum;
	struct cli_db db;
	enum status status;

	if (name) {
		db = cli_db_of(name);
		status = catalog_verify_db(tx, db.space, str_from_cstr(db.name), &options, &sum,
					   err);
	} else {
		status = catalog_verify_store(tx, &options, &sum, err);
	}
	add(&v->before, &sum);
	if (name && status == STATUS_NOT_FOUND)
		return err_set(err, status, "there is no database \"%s\"", name);
	return status;
}

/* What calls functions, if there is a worker. None is started before there is one to call. */
static enum status
make_functions(struct verify *v, struct err *err)
{
	struct js_config config;

	v->settings = cli_settings_new();
	if (!v->settings)
		return err_set(err, STATUS_NOMEM, "out of memory");
	js_config_set(&config, settings_of(v->settings, &js_setting_group));
	TRY(js_new(&config, &v->js, err));
	if (js_check(v->js, NULL) == STATUS_OK)
		v->lender = couch_verify_lender(v->js);
	return STATUS_OK;
}

/* ---- Doors ---- */

static void
tell_door(const struct catalog_finding *finding, void *arg)
{
	struct verify *v = arg;

	v->before.findings++;
	tell(finding, v);
}

/* What doors keep in databases of their own. */
static enum status
check_doors(struct verify *v, struct kv_tx *tx, struct err *err)
{
	for (size_t i = 0; i < cli_doors_count; i++)
		if (cli_doors[i]->verify)
			TRY(cli_doors[i]->verify(tx, tell_door, v, err));
	return STATUS_OK;
}

/* ---- Files ---- */

/* The number that the key begins with, which is that of a database, or `otherwise`. */
static uint64_t
number_of(struct str key, uint64_t otherwise)
{
	struct tuple_reader r = tuple_reader(key);
	uint64_t number;

	return tuple_next_u64(&r, &number) == STATUS_OK ? number : otherwise;
}

struct naming {
	uint64_t first; /* numbers of databases */
	uint64_t last;
	struct arena *arena;
	struct buf names;
	size_t count;
	size_t more;
};

/* The names of all doors' databases in a range, as arguments name them. */
static enum status
names_body(struct kv_tx *tx, void *arg)
{
	struct naming *n = arg;
	AUTO(buf_release) struct buf last = BUF_INIT(2 * KV_LIMIT_KEY_BYTES);
	struct catalog_page page = { .more = true };

	buf_clear(&n->names);
	n->count = n->more = 0;
	do {
		enum status status;

		arena_clear(n->arena);
		status = catalog_all(tx, &last, NAMES_PAGE, n->arena, &page, NULL);
		if (status == STATUS_NEWER)
			continue; /* `last` is the one that cannot be read */
		TRY(status);
		for (size_t i = 0; i < page.count; i++) {
			const struct catalog_db *db = &page.dbs[i];

			if (db->number < n->first || db->number > n->last)
				continue;
			if (n->count++ >= NAMES_SHOWN) {
				n->more++;
				continue;
			}
			buf_printf(&n->names, "%s\"%s%.*s\"", n->count > 1 ? ", " : "",
				   catalog_space_prefix(db->kind->space), STR_ARG(db->name));
		}
	} while (page.more);
	return buf_status(&n->names);
}

struct file_telling {
	struct verify *v;
	struct kv_store *store;
};

static void
tell_file(void *arg, const struct kv_damaged_file *file)
{
	const struct file_telling *t = arg;
	AUTO(buf_release) struct buf first = BUF_INIT(SHOWN_KEY_BYTES);
	AUTO(buf_release) struct buf last = BUF_INIT(SHOWN_KEY_BYTES);
	AUTO(buf_release) struct buf before = BUF_INIT(SHOWN_KEY_BYTES);
	struct naming n = { .first = number_of(file->first, KV_ROOT),
			    .last = number_of(file->last, UINT64_MAX),
			    .arena = arena_new(NAMES_ARENA_BYTES),
			    .names = BUF_INIT(NAMES_BYTES) };

	if (!n.arena || kv_run_read(t->store, names_body, &n, NULL) != STATUS_OK)
		n.count = 0;
	tuple_draw(file->first, &first);
	tuple_draw(file->last, &last);
	tuple_draw(file->before, &before);
	t->v->before.findings++;
	progress_hide(&t->v->progress);
	printf("%s: file %s, ", CATALOG_FINDING_DAMAGE, file->file);
	if (n.first <= KV_ROOT)
		printf("keys of the store itself, ");
	if (n.count)
		printf("databases %.*s, ", STR_ARG(buf_str(&n.names)));
	if (n.more)
		printf("%zu more, ", n.more);
	printf("keys from %.*s to %.*s, damaged behind %.*s: %s\n", STR_ARG(buf_str(&first)),
	       STR_ARG(buf_str(&last)), STR_ARG(buf_str(&before)), file->text);
	buf_release(&n.names);
	arena_free(n.arena);
}

/* Every file of the store, when the whole store is checked. */
static enum status
check_files(struct verify *v, struct kv_store *store, struct err *err)
{
	struct file_telling t = { v, store };

	return v->names_count ? STATUS_OK : kv_files_check(store, tell_file, &t, err);
}

static enum status
check_all(struct verify *v, struct kv_store *store, struct err *err)
{
	struct err file_err = { 0 };
	struct kv_tx *tx;
	enum status status, files;

	TRY(make_functions(v, err));
	status = kv_begin(store, KV_TX_READ_ONLY, &tx);
	if (status != STATUS_OK)
		return err_set(err, status, "cannot read the store: %s", status_name(status));
	if (v->names_count == 0)
		status = check(v, tx, NULL, err);
	if (v->ranges && status == STATUS_OK)
		kv_tx_reset(tx); /* it has become old */
	if (v->names_count == 0 && status == STATUS_OK)
		status = check_doors(v, tx, err);
	for (size_t i = 0; i < v->names_count && status == STATUS_OK; i++)
		status = check(v, tx, v->names[i], err);
	kv_tx_free(tx);
	files = check_files(v, store, &file_err);
	if (status == STATUS_OK && files != STATUS_OK)
		return err_set(err, files, "%s", file_err.text);
	if (status == STATUS_TX_TOO_OLD && !v->still && !v->ranges)
		return err_set(
			err, status,
			"the check takes longer than the store keeps one moment to read; it reads "
			"at several with --ranges, and with --still, while nobody writes");
	return status;
}

/* Compares the whole store with another one. */
static int
verify_against(struct verify *v)
{
	struct compare_sum sum = { .limit = v->limit };
	struct err err = { 0 };
	enum status status;

	progress_init(&v->progress, stderr, v->quiet, 0);
	status = compare_stores(v->store, v->against, &v->progress, &sum, &err);
	progress_hide(&v->progress);
	if (status == STATUS_OK)
		printf("%llu pairs, %llu bytes, version %llu, %llu differences\n",
		       (unsigned long long)sum.pairs, (unsigned long long)sum.bytes,
		       (unsigned long long)sum.version, (unsigned long long)sum.differences);
	else
		cli_complain("%s", err.text[0] ? err.text : status_name(status));
	if (cli_finish_output() != CLI_OK)
		status = STATUS_IO;
	return status == STATUS_OK && sum.differences == 0 ? CLI_OK : CLI_FAILED;
}

static int
run_verify(int argc, char **argv)
{
	static const struct argp argp = { .options = argp_options,
					  .parser = verify_parse_option,
					  .args_doc = "[DB...]",
					  .doc = argp_doc };
	struct kv_options options = { .read_only = true };
	struct verify v = { .store = CLI_STORE, .limit = LIMIT_DEFAULT };
	struct kv_store *store;
	struct err err = { 0 };
	enum status status;

	cli_parse(&argp, argc, argv, &v);
	if (v.against)
		return verify_against(&v);
	if (cli_open_store(v.store, &options, &store) != STATUS_OK)
		return CLI_FAILED;
	progress_init(&v.progress, stderr, v.quiet, 0);
	status = check_all(&v, store, &err);
	progress_hide(&v.progress);
	js_free(v.js);
	settings_free(v.settings);
	kv_close(store);
	if (status == STATUS_OK)
		tell_sum(&v);
	else
		cli_complain("%s", err.text);
	if (cli_finish_output() != CLI_OK)
		status = STATUS_IO;
	return status == STATUS_OK && v.before.findings == 0 ? CLI_OK : CLI_FAILED;
}

const struct cli_command cli_verify = { "verify", "check that nothing in a store is damaged",
					run_verify };
