/* frond inspect [DB [DOCID]]: the key-value pairs beneath a document, a database or the store. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/rows.h"
#include "catalog/draw.h"
#include "cli/output.h"
#include "cli/written.h"
#include "kv/keyspace.h"
#include "kv/tuple.h"
#include "model/timed/items/items.h"
#include "model/timed/tables/tables.h"
#include "catalog/catalog.h"

enum {
	OPTION_STORE = 's',
	OPTION_LIMIT = 'n',
	OPTION_RAW = 'r',
	OPTION_AT = 256,
	OPTION_AFTER,
	INSPECT_ARENA_BYTES = 64 * 1024 * 1024,
	NAMES_PAGE = 1000,
};

struct inspect {
	const char *store;
	struct cli_db db; /* name NULL: the whole store */
	const char *id;
	uint64_t limit; /* pairs to draw; 0: all */
	bool raw;
	uint64_t at_us; /* the moment of the past; 0: the present */
	uint64_t after; /* only what commits after this version have written; 0: everything */
	bool has_after;

	struct output output;
	struct kv_tx *tx;
	struct arena *arena;
	struct err err;
	struct catalog_place place; /* of the last heading */
	bool has_place;
	uint64_t keys;
	uint64_t bytes;
	bool cut; /* the limit ended it */
};

static const struct argp_option argp_options[] = {
	{ "store", OPTION_STORE, "URL", 0, "The store to look into (default " CLI_STORE ")", 0 },
	{ "limit", OPTION_LIMIT, "N", 0, "Show N pairs at most", 0 },
	{ "at", OPTION_AT, "TIME", 0,
	  "Show a database of rows or of Redis's clients as it was, and what had been overwritten "
	  "by "
	  "then: " CLI_MOMENT_TEXT,
	  0 },
	{ "after", OPTION_AFTER, "VERSION", 0,
	  "Show what commits after this version of the store have written, as far back as its log "
	  "is kept",
	  0 },
	{ "raw", OPTION_RAW, NULL, 0, "Show bytes, without any interpretation", 0 },
	{ 0 },
};

static const char argp_doc[] =
	"Show the key-value pairs beneath a document, a database or the whole store.\v"
	"The store is opened for reading only, and shows what it held at that moment. A pair is "
	"drawn as (\"subspace\", key...) = (value...): the database's number is left out, a "
	"revision's hash is \\x and its digits, a Sequence its 26 digits. DOCID is a document's "
	"id, "
	"a key of Redis's, an _id, or what is drawn of a row's key, from its beginning.\n"
	"\n" CLI_EXIT_TEXT;

static error_t
inspect_parse_option(int key, char *text, struct argp_state *state)
{
	struct inspect *i = state->input;

	switch (key) {
	case OPTION_STORE:
		i->store = cli_parse_store("store", text, state);
		return 0;
	case OPTION_LIMIT:
		i->limit = cli_parse_number("limit", text, 1, UINT64_MAX, state);
		return 0;
	case OPTION_RAW:
		i->raw = true;
		return 0;
	case OPTION_AT:
		if (!cli_parse_moment(str_from_cstr(text), &i->at_us))
			argp_error(state, "what time is \"%s\"?", text);
		return 0;
	case OPTION_AFTER:
		i->after = cli_parse_number("after", text, 0, UINT64_MAX, state);
		i->has_after = true;
		return 0;
	case ARGP_KEY_ARG:
		if (!i->db.name)
			i->db = cli_parse_db(text, state);
		else if (!i->id)
			i->id = text;
		else
			argp_error(state, "one document at a time; what is \"%s\"?", text);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- Drawing ---- */

/* What a heading says of a database behind its number. */
static const char *
summary(const struct catalog_db *db)
{
	return db->kind->summary ? db->kind->summary(db) : db->kind->name;
}

/* The heading of a database, and that of a subspace, where one begins. */
static enum status
draw_headings(struct inspect *i, struct str key, const struct catalog_db *db)
{
	struct buf *out = output_buf(&i->output);
	struct catalog_place place;

	if (!catalog_place_of(key, &place))
		return STATUS_OK;
	if (!i->has_place || place.database != i->place.database) {
		if (i->has_place)
			buf_append_byte(out, '\n');
		if (db)
			buf_printf(out, "database \"%s%.*s\", prefix (%llu), %s\n",
				   catalog_space_prefix(db->kind->space), STR_ARG(db->name),
				   (unsigned long long)db->number, summary(db));
		else if (place.database)
			buf_printf(out, "no database, prefix (%llu)\n",
				   (unsigned long long)place.database);
		else
			buf_append_cstr(out, "the store as a whole\n");
	}
	if (!i->has_place || place.database != i->place.database ||
	    (place.database && place.subspace != i->place.subspace)) {
		buf_append_cstr(out, "\n");
		catalog_draw_space(catalog_draw_kind(db), place, out);
		buf_append_cstr(out, "\n");
	}
	i->place = place;
	i->has_place = true;
	return output_ready(&i->output, &i->err);
}

static enum status
draw_pair(struct inspect *i, const struct kv_pair *pair, const struct catalog_db *db, bool struck)
{
	struct buf *out = output_buf(&i->output);

	TRY(draw_headings(i, pair->key, db));
	buf_append_cstr(out, struck ? "  <s>" : "  ");
	if (i->raw)
		catalog_draw_raw(pair->key, pair->value, out);
	else
		catalog_draw_pair_of(db, pair, out);
	buf_append_cstr(out, struck ? "</s>\n" : "\n");
	i->keys++;
	i->bytes += pair->key.len + pair->value.len;
	return output_ready(&i->output, &i->err);
}

/* Draws the pairs with begin <= key < end. */
static enum status
draw_range(struct inspect *i, struct str begin, struct str end, const struct catalog_db *db)
{
	enum status status = STATUS_OK;
	struct kv_scan scan;
	struct kv_pair pair;

	if (i->cut)
		return STATUS_OK;
	TRY(kv_scan_init(&scan, i->tx, begin, end, NULL));
	while (status == STATUS_OK) {
		status = kv_scan_next(&scan, &pair);
		if (status == STATUS_OK && i->limit && i->keys == i->limit) {
			i->cut = true;
			break;
		}
		if (status == STATUS_OK)
			status = draw_pair(i, &pair, db, false);
	}
	kv_scan_release(&scan);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* Everything that begins with `prefix`, which is a whole tuple. */
static enum status
draw_prefix(struct inspect *i, struct str prefix, const struct catalog_db *db)
{
	AUTO(buf_release) struct buf end = BUF_INIT(KV_LIMIT_KEY_BYTES + 1);

	/* Not tuple_prefix_end(): a string that goes on after a NUL has 00 FF there. */
	buf_append_str(&end, prefix);
	buf_append_byte(&end, 0xff);
	TRY(buf_status(&end));
	return draw_range(i, prefix, buf_str(&end), db);
}

/* ---- What is asked for ---- */

/*
 * Opens a database of which every pair is drawn. What is kept with it opened, such as definitions
 * of indexes, may be damaged: its pairs are what somebody looks for then, and need none of that.
 */
static enum status
open_to_draw(struct inspect *i, enum catalog_space space, struct str name, struct catalog_db **ret)
{
	enum status status = catalog_open(i->tx, NULL, space, name, ret, &i->err);

	if (status != STATUS_CORRUPT)
		return status;
	i->err = (struct err){ 0 };
	return catalog_open_bare(i->tx, NULL, space, name, ret, &i->err);
}

static enum status
open_database(struct inspect *i, struct cli_db named, struct catalog_db **ret)
{
	struct str name = str_from_cstr(named.name);
	enum status status = i->at_us || i->id
				     ? catalog_open(i->tx, NULL, named.space, name, ret, &i->err)
				     : open_to_draw(i, named.space, name, ret);

	if (status == STATUS_NOT_FOUND)
		return err_set(&i->err, status, "there is no database \"%s\"", named.name);
	return status;
}

/* The database that a prefix of rev_inspect() and its like belongs to. */
struct entry_draw {
	struct inspect *i;
	const struct catalog_db *db;
};

static enum status
draw_entry_prefix(void *arg, struct str prefix)
{
	struct entry_draw *e = arg;

	return draw_prefix(e->i, prefix, e->db);
}

static enum status
inspect_document(struct inspect *i, const struct catalog_db *db)
{
	struct entry_draw entry = { i, db };

	if (!db->kind->inspect)
		return err_set(&i->err, STATUS_UNSUPPORTED,
			       "a database of the kind \"%s\" has no documents to inspect",
			       db->kind->name);
	TRY(db->kind->inspect(i->tx, db, str_from_cstr(i->id), i->arena, draw_entry_prefix,
			      &entry));
	if (i->keys == 0)
		return err_set(&i->err, STATUS_NOT_FOUND,
			       "there is no document \"%s\" in the database \"%s\"", i->id,
			       i->db.name);
	return STATUS_OK;
}

static enum status
draw_past_line(void *arg, const struct timed_line *line)
{
	struct entry_draw *e = arg;
	struct buf *out = output_buf(&e->i->output);

	if (e->i->limit && e->i->keys == e->i->limit) {
		e->i->cut = true;
		return STATUS_OK;
	}
	if (line->kind != TIMED_LISTED_DELETION)
		return draw_pair(e->i, &line->pair, e->db, line->kind == TIMED_LISTED_STRUCK);
	TRY(draw_headings(e->i, line->pair.key, e->db));
	buf_append_cstr(out, "  ");
	if (timed_draw_deletion(e->db, line, out))
		buf_append_byte(out, '\n');
	else
		out->len -= 2; /* of a part that no reader sees, such as a count */
	return output_ready(&e->i->output, &e->i->err);
}

/* The database as it was at a moment of the past, and what had been there before. */
static enum status
inspect_past(struct inspect *i, const struct catalog_db *db)
{
	struct entry_draw entry = { i, db };
	struct timed t;

	if (db->kind != &timed_rows_kind && db->kind != &timed_redis_kind &&
	    db->kind != &table_kind)
		return err_set(&i->err, STATUS_UNSUPPORTED,
			       "a database of the kind \"%s\" keeps no past", db->kind->name);
	timed_init(&t, i->tx, db, NULL, &i->err);
	timed_at_date_us(&t, i->at_us);
	return timed_list(&t, draw_past_line, &entry);
}

static enum status
inspect_database(struct inspect *i)
{
	struct catalog_db *db;
	enum status status;

	TRY(open_database(i, i->db, &db));
	if (i->at_us)
		status = inspect_past(i, db);
	else
		status = i->id ? inspect_document(i, db) : draw_prefix(i, db->prefix, db);
	catalog_db_unref(db);
	return status;
}

/* Opens the database of that number; NULL if there is none any more. */
static enum status
find_database(struct inspect *i, uint64_t number, struct catalog_db **ret)
{
	AUTO(buf_release) struct buf last = BUF_INIT(KV_LIMIT_KEY_BYTES);
	struct catalog_page page;

	*ret = NULL;
	do {
		TRY(catalog_all(i->tx, &last, NAMES_PAGE, i->arena, &page, &i->err));
		for (size_t n = 0; n < page.count; n++)
			if (page.dbs[n].number == number)
				return open_to_draw(i, page.dbs[n].kind->space, page.dbs[n].name,
						    ret);
	} while (page.more);
	return STATUS_OK;
}

/* The first element of the first key in the range, if it is a number. */
static enum status
first_number(struct inspect *i, struct str begin, uint64_t *ret)
{
	struct kv_range_options options = { .limit = 1 };
	struct kv_future *f = kv_get_range(i->tx, begin, STR("\xff"), &options);
	enum status status = kv_future_wait(f);
	struct kv_range range;

	if (status == STATUS_OK) {
		range = kv_future_range(f);
		status = STATUS_NOT_FOUND;
		if (range.count) {
			struct tuple_reader r = tuple_reader(range.pairs[0].key);

			status = tuple_next_u64(&r, ret);
		}
	}
	kv_future_free(f);
	return status;
}

static void
unref_database(struct catalog_db **db)
{
	catalog_db_unref(*db);
}

/* Database by database, each under its name. */
static enum status
inspect_store(struct inspect *i)
{
	AUTO(buf_release) struct buf begin = BUF_INIT(KV_LIMIT_KEY_BYTES);
	AUTO(buf_release) struct buf end = BUF_INIT(KV_LIMIT_KEY_BYTES);
	AUTO(unref_database) struct catalog_db *db = NULL;
	uint64_t number;
	enum status status;

	while (!i->cut) {
		status = first_number(i, buf_str(&begin), &number);
		if (status == STATUS_NOT_FOUND)
			return STATUS_OK;
		if (status == STATUS_CORRUPT) /* not of this layout: everything that is left */
			return draw_range(i, buf_str(&begin), STR("\xff"), NULL);
		TRY(status);
		arena_clear(i->arena);
		TRY(number == KV_ROOT ? STATUS_OK : find_database(i, number, &db));
		buf_clear(&end);
		tuple_put_u64(&end, number);
		buf_append_byte(&end, 0xff);
		TRY(buf_status(&end));
		status = draw_range(i, buf_str(&begin), buf_str(&end), db);
		catalog_db_unref(db);
		db = NULL;
		TRY(status);
		buf_clear(&begin);
		buf_append_buf(&begin, &end);
		TRY(buf_status(&begin));
	}
	return STATUS_OK;
}

/* ---- What was written lately ---- */

/* What is there now of a key that was written, or that it was cleared. */
static enum status
draw_written(struct inspect *i, const struct written_key *written, const struct catalog_db *db)
{
	struct buf *out = output_buf(&i->output);
	struct kv_pair pair = { .key = written->key };
	struct kv_future *f;
	bool there = false;

	if (!written->end.ptr) {
		enum status status;

		f = kv_get(i->tx, written->key, KV_SNAPSHOT);
		status = kv_future_wait(f);
		there = status == STATUS_OK && kv_future_value(f, &pair.value);
		if (there)
			status = draw_pair(i, &pair, db, false);
		kv_future_free(f);
		if (status != STATUS_OK || there)
			return status;
	}
	TRY(draw_headings(i, written->key, db));
	buf_append_cstr(out, "  cleared: ");
	tuple_draw(written->key, out);
	if (written->end.ptr) {
		buf_append_cstr(out, " up to ");
		tuple_draw(written->end, out);
	}
	buf_append_byte(out, '\n');
	i->keys++;
	i->bytes += written->key.len;
	return output_ready(&i->output, &i->err);
}

static enum status
draw_all_written(struct inspect *i, const struct written_key *keys, size_t count)
{
	AUTO(unref_database) struct catalog_db *db = NULL;
	struct catalog_place place = { 0 };
	uint64_t number = KV_ROOT;

	for (size_t n = 0; n < count && !i->cut; n++) {
		if (catalog_place_of(keys[n].key, &place) && place.database != number) {
			catalog_db_unref(db);
			db = NULL;
			number = place.database;
			arena_clear(i->arena);
			TRY(number == KV_ROOT ? STATUS_OK : find_database(i, number, &db));
		}
		i->cut = i->limit && i->keys == i->limit;
		if (!i->cut)
			TRY(draw_written(i, &keys[n], db));
	}
	return STATUS_OK;
}

static enum status
inspect_written(struct inspect *i, struct kv_store *store)
{
	struct arena *arena = arena_new(WRITTEN_BYTES);
	struct written_key *keys;
	size_t count;
	enum status status;

	if (!arena)
		return err_set(&i->err, STATUS_NOMEM, "out of memory");
	status = written_read(store, i->after, arena, &keys, &count, &i->err);
	if (status == STATUS_OK)
		status = draw_all_written(i, keys, count);
	arena_free(arena);
	return status;
}

static enum status
inspect(struct inspect *i, struct kv_store *store)
{
	struct buf *out = output_buf(&i->output);
	enum status status = kv_begin(store, KV_TX_READ_ONLY, &i->tx);

	if (status == STATUS_OK)
		status = i->has_after ? inspect_written(i, store)
			 : i->db.name ? inspect_database(i)
				      : inspect_store(i);
	if (status == STATUS_OK) {
		if (i->cut)
			buf_printf(out, "\nthe first %llu keys, %llu bytes; there are more\n",
				   (unsigned long long)i->keys, (unsigned long long)i->bytes);
		else
			buf_printf(out, "\n%llu keys, %llu bytes\n", (unsigned long long)i->keys,
				   (unsigned long long)i->bytes);
	} else if (!i->err.text[0] && !i->output.reader_left) {
		status = err_set(&i->err, status, "cannot read the store: %s",
				 i->tx && kv_tx_error(i->tx)[0] ? kv_tx_error(i->tx)
								: status_name(status));
	}
	kv_tx_free(i->tx);
	return status;
}

static int
run_inspect(int argc, char **argv)
{
	static const struct argp argp = { .options = argp_options,
					  .parser = inspect_parse_option,
					  .args_doc = "[DB [DOCID]]",
					  .doc = argp_doc };
	struct kv_options options = { .read_only = true };
	struct inspect i = { .store = CLI_STORE };
	struct kv_store *store;
	enum status status;

	cli_parse(&argp, argc, argv, &i);
	if (i.at_us && (!i.db.name || i.id)) {
		cli_complain("--at goes with rows:NAME and redis:NUMBER");
		return CLI_USAGE;
	}
	if (i.has_after && i.db.name) {
		cli_complain("--after goes with a whole store");
		return CLI_USAGE;
	}
	i.arena = arena_new(INSPECT_ARENA_BYTES);
	if (!i.arena) {
		cli_complain("out of memory");
		return CLI_FAILED;
	}
	status = cli_open_store(i.store, &options, &store);
	if (status == STATUS_OK) {
		status = output_open(&i.output, NULL, &i.err);
		if (status == STATUS_OK)
			status = inspect(&i, store);
		if (status == STATUS_OK)
			status = output_close(&i.output, &i.err);
		else
			output_abandon(&i.output);
		kv_close(store);
	}
	arena_free(i.arena);
	if (status != STATUS_OK && i.err.text[0])
		cli_complain("%s", i.err.text);
	return status == STATUS_OK || i.output.reader_left ? CLI_OK : CLI_FAILED;
}

const struct cli_command cli_inspect = { "inspect", "show the key-value pairs beneath documents",
					 run_inspect };
