/* frond rows DB [FILE...]: makes a database of rows, and runs statements on it. */
#include "cli/rows.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/input.h"
#include "cli/output.h"

enum {
	OPTION_STORE = 's',
	OPTION_HASH = 256,
	OPTION_RANGE,
	OPTION_COLUMNS,
	OPTION_TTL,

	ROWS_ARENA_BYTES = 256 * 1024 * 1024, /* for one statement and its answer */
	MS_PER_SECOND = 1000,
	TTL_MOST_SECONDS = 1000 * 1000 * 1000,
	HISTORY_SWEEPS = 10, /* transactions */
};

struct rows {
	const char *store_url;
	const char *db_name; /* as it was given */
	struct cli_db db;
	const char *hash; /* NULL: the database is there */
	const char *range;
	const char *columns;
	uint64_t ttl_seconds;
	char **files;
	int files_count;

	struct kv_store *store;
	struct arena *schema_arena;
	struct arena *arena; /* of one attempt at a statement */
	struct output output;
	struct err err;
};

static const struct argp_option argp_options[] = {
	{ "store", OPTION_STORE, "URL", 0, "The store (default " CLI_STORE ")", 0 },
	{ "hash", OPTION_HASH, "NAMES", 0,
	  "Create the database; its keys begin with these components, which are hashed", 0 },
	{ "range", OPTION_RANGE, "NAMES", 0,
	  "With --hash: further components, in whose order rows lie; \"NAME desc\" is descending",
	  0 },
	{ "columns", OPTION_COLUMNS, "NAMES", 0,
	  "With --hash: the columns of a table. Without any, a row is a value or a collection", 0 },
	{ "ttl", OPTION_TTL, "SECONDS", 0,
	  "With --hash: how long after its write expires what has no expiry of its own", 0 },
	{ 0 },
};

static const char argp_doc[] =
	"Run statements on the database of rows DB.\v"
	"FILE is read from standard input when it is \"-\". Each line is a statement, a JSON "
	"object, and a transaction:\n"
	"\n"
	"  {\"insert\": {COLUMN: VALUE, ...}, \"ttl\": SECONDS}    a row, there without columns\n"
	"  {\"update\": {COLUMN: VALUE, ...}, \"ttl\": SECONDS}    columns of it\n"
	"  {\"add\": {COLUMN: MAP, ...}, \"ttl\": SECONDS}         members of maps\n"
	"  {\"delete\": {KEY...}, \"path\": [COLUMN, KEY...]}     a row, or what is at the path\n"
	"  {\"get\": {KEY...}, \"path\": [COLUMN, KEY...]}        writes it out\n"
	"  {\"scan\": {HASH...}}, {\"scan\": null}               writes rows out\n"
	"  {\"delete_rows\": {HASH...}}                       clears them\n"
	"  {\"set\": {KEY...}, \"value\": VALUE}                  without columns, as all below\n"
	"  {\"hset\": {KEY...}, \"members\": MAP}\n"
	"  {\"sadd\": {KEY...}, \"members\": [VALUE, ...]}\n"
	"  {\"history\": SECONDS}                             how long the past can be read\n"
	"  {\"default_ttl\": SECONDS}                         changes what --ttl has set\n"
	"  {\"add_columns\": [COLUMN, ...]}                  further columns of a table\n"
	"\n"
	"A VALUE is a JSON value, a map {\"key\": VALUE}, {\"$map\": [[KEY, VALUE], ...]}, or "
	"{\"$type\": ...} with one of $int8 $int16 $int32 $varint $decimal $float $double $blob "
	"$uuid $timeuuid $timestamp $date $time $inet. ttl 0: it never expires. \"from\" or "
	"\"after\", \"to\" or \"before\": [RANGE, ...] bound a scan or delete_rows of hash "
	"components, in the order in which rows lie. redis:NUMBER in place of DB takes "
	"{\"history\"} alone. A get or scan with \"at\": MOMENT reads the past: " CLI_MOMENT_TEXT
	".\n"
	"\n" CLI_EXIT_TEXT;

static error_t
rows_parse_option(int key, char *text, struct argp_state *state)
{
	struct rows *r = state->input;

	switch (key) {
	case OPTION_STORE:
		r->store_url = cli_parse_store("store", text, state);
		return 0;
	case OPTION_HASH:
		r->hash = text;
		return 0;
	case OPTION_RANGE:
		r->range = text;
		return 0;
	case OPTION_COLUMNS:
		r->columns = text;
		return 0;
	case OPTION_TTL:
		r->ttl_seconds = cli_parse_number("ttl", text, 1, TTL_MOST_SECONDS, state);
		return 0;
	case ARGP_KEY_ARG:
		if (r->db_name)
			return ARGP_ERR_UNKNOWN; /* the files: ARGP_KEY_ARGS */
		r->db_name = text;
		return 0;
	case ARGP_KEY_ARGS:
		r->files = state->argv + state->next;
		r->files_count = state->argc - state->next;
		return 0;
	case ARGP_KEY_END:
		if (!r->db_name)
			argp_error(state, "which database?");
		r->db = cli_db_of(r->db_name ? r->db_name : "");
		if (r->db.space == CATALOG_SPACE_COUCH)
			r->db.space = CATALOG_SPACE_ROWS;
		if (r->db.space == CATALOG_SPACE_MONGO)
			argp_error(state, "\"%s\" has no rows", r->db_name);
		if (r->hash && r->db.space != CATALOG_SPACE_ROWS)
			argp_error(state, "--hash makes a database of rows");
		if (!r->hash && (r->range || r->columns || r->ttl_seconds))
			argp_error(state, "--range, --columns and --ttl go with --hash");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- Creating ---- */

static enum status
schema_add_key(struct rows *r, const char *names, bool range, struct timed_schema *schema,
	       size_t *cap)
{
	struct str rest = str_from_cstr(names ? names : "");
	struct str name;

	while (str_list_next(&rest, &name)) {
		struct str direction = name;
		struct timed_key_column column = { .name = str_cut(&direction, ' ') };

		direction = str_trim(direction);
		column.descending = range && str_eq_nocase(direction, STR("desc"));
		if (direction.len && !column.descending &&
		    !(range && str_eq_nocase(direction, STR("asc"))))
			return err_set(&r->err, STATUS_INVALID, "what is \"%.*s\" in \"%.*s\"?",
				       STR_ARG(direction), STR_ARG(name));
		schema->key = arena_grow(r->schema_arena, schema->key, schema->key_count, cap,
					 sizeof(*schema->key));
		if (!schema->key)
			return STATUS_LIMIT;
		schema->key[schema->key_count++] = column;
	}
	return STATUS_OK;
}

static enum status
schema_make(struct rows *r, struct timed_schema *ret)
{
	struct str rest = str_from_cstr(r->columns ? r->columns : "");
	struct timed_schema schema = { 0 };
	size_t key_cap = 0, cap = 0;
	struct str name;

	TRY(schema_add_key(r, r->hash, false, &schema, &key_cap));
	schema.hash_count = schema.key_count;
	TRY(schema_add_key(r, r->range, true, &schema, &key_cap));
	while (str_list_next(&rest, &name)) {
		schema.columns = arena_grow(r->schema_arena, schema.columns, schema.column_count,
					    &cap, sizeof(*schema.columns));
		if (!schema.columns)
			return STATUS_LIMIT;
		schema.columns[schema.column_count++] = name;
	}
	*ret = schema;
	return STATUS_OK;
}

static enum status
create_table_body(struct kv_tx *tx, void *arg)
{
	struct rows *r = arg;
	struct timed_schema schema;

	TRY(schema_make(r, &schema));
	return timed_create(tx, str_from_cstr(r->db.name), &schema, r->ttl_seconds * MS_PER_SECOND,
			    &r->err);
}

/* ---- Answers ---- */

static void
write_leaf(const struct timed_schema *schema, const struct timed_leaf *leaf, struct buf *out)
{
	buf_append_cstr(out, "{\"path\":");
	rows_path_write(schema, &leaf->path, out);
	buf_append_cstr(out, ",\"value\":");
	rows_scalar_write(&leaf->value, out);
	buf_printf(out, ",\"written_us\":%llu", (unsigned long long)leaf->write_us);
	if (leaf->expires_ms)
		buf_printf(out, ",\"expires_ms\":%llu", (unsigned long long)leaf->expires_ms);
	buf_append_byte(out, '}');
}

/* What the row's own cell says. */
static void
write_own(const struct timed_row *row, struct buf *out)
{
	buf_printf(out, ",\"type\":\"%s\"", rows_type_name(row->type));
	if (row->type == TIMED_VALUE) {
		buf_append_cstr(out, ",\"value\":");
		rows_scalar_write(&row->value, out);
	}
	if (row->type != TIMED_LEAF)
		buf_printf(out, ",\"written_us\":%llu", (unsigned long long)row->write_us);
	if (row->expires_ms)
		buf_printf(out, ",\"expires_ms\":%llu", (unsigned long long)row->expires_ms);
}

static void
write_row(const struct timed_schema *schema, const struct timed_row *row, bool whole,
	  struct buf *out)
{
	buf_append_cstr(out, "{\"key\":");
	rows_key_write(schema, row->key, out);
	if (whole)
		write_own(row, out);
	buf_append_cstr(out, ",\"leaves\":[");
	for (size_t i = 0; i < row->leaf_count; i++) {
		if (i)
			buf_append_byte(out, ',');
		write_leaf(schema, &row->leaves[i], out);
	}
	buf_append_cstr(out, "]}\n");
}

/* ---- Statements ---- */

/* One statement, in one transaction. */
struct statement {
	struct rows *rows;
	struct str text;
	struct buf *out; /* its answer; starts over with each attempt */

	struct timed t;
	const struct timed_schema *schema;
	const char *verb;
	struct json_member *members; /* of the statement */
	size_t member_count;
	struct json_member *fields; /* of its object: components of the key, and columns */
	size_t field_count;
	struct timed_key key;
	struct timed_expiry expiry;
	bool history; /* it has changed for how long the past can be read */
	bool more;    /* it is to be run again: rows are left to delete */
};

static const struct timed_path no_path;

/* The components of the key that the statement's object has, up to the first that it has not. */
static enum status
statement_read_key(struct statement *s, size_t least)
{
	struct rows *r = s->rows;

	TRY(rows_key_read(s->schema, s->fields, s->field_count, r->arena, &s->key, &r->err));
	return rows_key_check(s->schema, &s->key, least, &r->err);
}

static bool
is_key_column(const struct timed_schema *schema, struct str name)
{
	for (size_t i = 0; i < schema->key_count; i++)
		if (str_eq(schema->key[i].name, name))
			return true;
	return false;
}

static enum status
statement_read_path(struct statement *s, struct timed_path *ret)
{
	const struct json_value *list = json_value_find(s->members, s->member_count, "path");

	return rows_path_read(s->schema, list, s->rows->arena, ret, &s->rows->err);
}

static enum status
statement_read_ttl(struct statement *s)
{
	const struct json_value *ttl = json_value_find(s->members, s->member_count, "ttl");
	uint64_t seconds;

	s->expiry = (struct timed_expiry){ .kind = TIMED_EXPIRY_DEFAULT };
	if (!ttl)
		return STATUS_OK;
	if (!str_to_u64(ttl->text, &seconds) || seconds > TTL_MOST_SECONDS)
		return err_set(&s->rows->err, STATUS_INVALID,
			       "ttl is a whole number of seconds, at most %d", TTL_MOST_SECONDS);
	s->expiry.kind = seconds ? TIMED_EXPIRY_AFTER : TIMED_EXPIRY_NEVER;
	s->expiry.ms = seconds * MS_PER_SECOND;
	return STATUS_OK;
}

/* One column: replaced, or for null cleared; of an add, each leaf by itself. */
static enum status
write_column(struct statement *s, const struct json_member *field, bool add)
{
	struct rows_values leaves = { 0 };
	struct rows *r = s->rows;
	struct timed_step step;
	struct timed_path path;

	TRY(rows_column_read(s->schema, field->name, &step, &r->err));
	path = rows_path_below(&no_path, step, r->arena);
	if (!path.steps)
		return STATUS_LIMIT;
	if (field->value.kind == JSON_NULL)
		return timed_clear(&s->t, &s->key, &path);
	TRY(rows_values_read(&field->value, add ? &path : &no_path, r->arena, &leaves, &r->err));
	if (!add)
		return timed_put(&s->t, &s->key, &path, leaves.values, leaves.count, s->expiry);
	for (size_t i = 0; i < leaves.count; i++) {
		struct timed_value value = { .value = leaves.values[i].value };

		TRY(timed_put(&s->t, &s->key, &leaves.values[i].path, &value, 1, s->expiry));
	}
	return STATUS_OK;
}

static enum status
run_write_columns(struct statement *s, bool add)
{
	for (size_t i = 0; i < s->field_count; i++)
		if (!is_key_column(s->schema, s->fields[i].name))
			TRY(write_column(s, &s->fields[i], add));
	return STATUS_OK;
}

static enum status
run_insert(struct statement *s)
{
	TRY(timed_insert(&s->t, &s->key, s->expiry));
	return run_write_columns(s, false);
}

static enum status
run_update(struct statement *s)
{
	return run_write_columns(s, false);
}

static enum status
run_add(struct statement *s)
{
	return run_write_columns(s, true);
}

static enum status
run_delete(struct statement *s)
{
	struct timed_path path;

	TRY(statement_read_path(s, &path));
	return timed_clear(&s->t, &s->key, &path);
}

static enum status
run_get(struct statement *s)
{
	struct timed_path path;
	struct timed_row row;
	enum status status;

	TRY(statement_read_path(s, &path));
	status = timed_read(&s->t, &s->key, &path, s->rows->arena, &row);
	if (status == STATUS_NOT_FOUND) {
		buf_append_cstr(s->out, "null\n");
		return buf_status(s->out);
	}
	TRY(status);
	write_row(s->schema, &row, path.count == 0, s->out);
	return buf_status(s->out);
}

/* An end of a range of rows: `inclusive` and `exclusive` are its names. */
static enum status
statement_read_edge(struct statement *s, const char *inclusive, const char *exclusive,
		    struct timed_edge *ret)
{
	const struct json_value *in = json_value_find(s->members, s->member_count, inclusive);
	const struct json_value *ex = json_value_find(s->members, s->member_count, exclusive);
	struct rows *r = s->rows;
	struct json_value *items;
	struct doc_scalar *parts;

	*ret = (struct timed_edge){ .kind = TIMED_BOUND_END };
	if (!in && !ex)
		return STATUS_OK;
	if (in && ex)
		return err_set(&r->err, STATUS_INVALID, "\"%s\" and \"%s\" exclude each other",
			       inclusive, exclusive);
	if (!s->field_count)
		return err_set(&r->err, STATUS_INVALID, "\"%s\" goes with hash components",
			       in ? inclusive : exclusive);
	ret->kind = in ? TIMED_BOUND_INCLUSIVE : TIMED_BOUND_EXCLUSIVE;
	TRY(json_value_items(in ? in : ex, r->arena, &items, &ret->count, &r->err));
	parts = arena_zalloc(r->arena, (ret->count + 1) * sizeof(*parts));
	if (!parts)
		return STATUS_LIMIT;
	for (size_t i = 0; i < ret->count; i++)
		TRY(rows_scalar_read(&items[i], r->arena, &parts[i], &r->err));
	ret->parts = parts;
	return STATUS_OK;
}

static enum status
statement_read_rows(struct statement *s, struct timed_rows *ret)
{
	ret->hash = &s->key;
	TRY(statement_read_edge(s, "from", "after", &ret->from));
	return statement_read_edge(s, "to", "before", &ret->to);
}

static enum status
run_delete_rows(struct statement *s)
{
	struct timed_rows rows;

	if (!s->field_count)
		return err_set(&s->rows->err, STATUS_INVALID,
			       "delete_rows needs the hash components");
	TRY(statement_read_rows(s, &rows));
	return timed_clear_rows(&s->t, &rows, &s->more);
}

static enum status
run_scan(struct statement *s)
{
	struct timed_rows rows;
	struct timed_scan scan;
	struct timed_row row;
	enum status status;

	TRY(statement_read_rows(s, &rows));
	status = s->field_count ? timed_scan_open_rows(&scan, &s->t, &rows)
				: timed_scan_open(&scan, &s->t, NULL);
	while (status == STATUS_OK) {
		struct arena_mark mark = arena_mark(s->rows->arena);

		status = timed_scan_next(&scan, s->rows->arena, &row);
		if (status == STATUS_OK) {
			write_row(s->schema, &row, true, s->out);
			status = buf_status(s->out);
		}
		arena_reset(s->rows->arena, mark);
	}
	timed_scan_close(&scan);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
run_set(struct statement *s)
{
	const struct json_value *value = json_value_find(s->members, s->member_count, "value");
	struct doc_scalar scalar;

	if (!value)
		return err_set(&s->rows->err, STATUS_INVALID, "\"value\" is missing");
	TRY(rows_scalar_read(value, s->rows->arena, &scalar, &s->rows->err));
	return timed_set(&s->t, &s->key, &scalar, s->expiry);
}

/* The statement's "members", which has to be there. */
static enum status
statement_find_members(struct statement *s, const struct json_value **ret)
{
	*ret = json_value_find(s->members, s->member_count, "members");
	return *ret ? STATUS_OK : err_set(&s->rows->err, STATUS_INVALID, "\"members\" is missing");
}

static enum status
run_hset(struct statement *s)
{
	struct rows_values members = { 0 };
	const struct json_value *value;

	TRY(statement_find_members(s, &value));
	TRY(rows_values_read(value, &no_path, s->rows->arena, &members, &s->rows->err));
	for (size_t i = 0; i < members.count; i++)
		if (members.values[i].path.count != 1)
			return err_set(&s->rows->err, STATUS_INVALID,
				       "the members of a hash are single values");
	return timed_add(&s->t, &s->key, TIMED_HASH, members.values, members.count, s->expiry);
}

static enum status
run_sadd(struct statement *s)
{
	struct rows *r = s->rows;
	const struct json_value *value;
	struct timed_value *members;
	struct json_value *items;
	size_t count;

	TRY(statement_find_members(s, &value));
	TRY(json_value_items(value, r->arena, &items, &count, &r->err));
	members = arena_zalloc(r->arena, (count + 1) * sizeof(*members));
	if (!members)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		struct timed_step step = { 0 };

		TRY(rows_scalar_read(&items[i], r->arena, &step.key, &r->err));
		members[i].path = rows_path_below(&no_path, step, r->arena);
		if (!members[i].path.steps)
			return STATUS_LIMIT;
		members[i].value.kind = DOC_NULL;
	}
	return timed_add(&s->t, &s->key, TIMED_SET, members, count, s->expiry);
}

static const struct {
	const char *verb;
	enum status (*run)(struct statement *s);
	bool columns; /* its object may have columns, beside the key */
	bool hash;    /* the hash components alone are enough, or none at all */
} verbs[] = {
	{ "insert", run_insert, true, false }, { "update", run_update, true, false },
	{ "add", run_add, true, false },       { "delete", run_delete, false, false },
	{ "get", run_get, false, false },      { "scan", run_scan, false, true },
	{ "set", run_set, false, false },      { "hset", run_hset, false, false },
	{ "sadd", run_sadd, false, false },    { "delete_rows", run_delete_rows, false, true },
};

enum {
	VERBS = sizeof(verbs) / sizeof(verbs[0]),
};

static enum status
statement_run_verb(struct statement *s, size_t verb, const struct json_value *object)
{
	struct rows *r = s->rows;

	if (object->kind != JSON_NULL || !verbs[verb].hash)
		TRY(json_value_members(object, r->arena, &s->fields, &s->field_count, &r->err));
	for (size_t i = 0; !verbs[verb].columns && i < s->field_count; i++)
		if (!is_key_column(s->schema, s->fields[i].name))
			return err_set(&r->err, STATUS_INVALID,
				       "\"%.*s\" is no component of the key",
				       STR_ARG(s->fields[i].name));
	if (!verbs[verb].hash)
		TRY(statement_read_key(s, s->schema->key_count));
	else if (s->field_count)
		TRY(statement_read_key(s, s->schema->hash_count));
	TRY(statement_read_ttl(s));
	return verbs[verb].run(s);
}

/* The moment of the past that the statement is about, if it names one. */
static enum status
statement_read_at(struct statement *s)
{
	const struct json_value *at = json_value_find(s->members, s->member_count, "at");
	uint64_t us;

	if (!at)
		return STATUS_OK;
	if (!cli_parse_moment(at->kind == JSON_STRING ? at->string : at->text, &us))
		return err_set(&s->rows->err, STATUS_INVALID, "at is no moment: " CLI_MOMENT_TEXT);
	timed_at_date_us(&s->t, us);
	return STATUS_OK;
}

static enum status
run_history(struct statement *s, const struct json_value *seconds)
{
	const struct json_value *bytes = json_value_find(s->members, s->member_count, "bytes");
	const struct json_value *versions = json_value_find(s->members, s->member_count,
							    "versions");
	struct timed_history_bounds bounds = { 0 };

	if (!str_to_u64(seconds->text, &bounds.seconds))
		return err_set(&s->rows->err, STATUS_INVALID,
			       "history is a whole number of seconds");
	if (bytes && !str_to_u64(bytes->text, &bounds.bytes))
		return err_set(&s->rows->err, STATUS_INVALID,
			       "bytes is a whole number of bytes of the history");
	if (versions && !str_to_u64(versions->text, &bounds.versions))
		return err_set(&s->rows->err, STATUS_INVALID,
			       "versions is a whole number of versions of each key");
	s->history = true;
	return timed_history_set(&s->t, bounds);
}

static enum status
run_default_ttl(struct statement *s, const struct json_value *seconds)
{
	uint64_t n;

	if (!str_to_u64(seconds->text, &n) || n > TTL_MOST_SECONDS)
		return err_set(&s->rows->err, STATUS_INVALID,
			       "default_ttl is a whole number of seconds, at most %d",
			       TTL_MOST_SECONDS);
	return timed_ttl_set(&s->t, n * MS_PER_SECOND);
}

static enum status
run_add_columns(struct statement *s, const struct json_value *list)
{
	struct rows *r = s->rows;
	struct json_value *items;
	struct str *names;
	size_t count;

	TRY(json_value_items(list, r->arena, &items, &count, &r->err));
	names = arena_alloc(r->arena, (count + 1) * sizeof(*names));
	if (!names)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++)
		names[i] = items[i].string;
	return timed_columns_add(&s->t, names, count);
}

/* Statements about the database as a whole. */
static const struct {
	const char *name;
	enum status (*run)(struct statement *s, const struct json_value *value);
	bool redis; /* also of one of Redis's clients */
} wholes[] = {
	{ "history", run_history, true },
	{ "default_ttl", run_default_ttl, false },
	{ "add_columns", run_add_columns, false },
};

enum {
	WHOLES = sizeof(wholes) / sizeof(wholes[0]),
};

static enum status
statement_run(struct statement *s)
{
	struct json_value value;
	struct rows *r = s->rows;
	/* Items and tables, which have commands of their own. */
	bool others = r->db.space != CATALOG_SPACE_ROWS;

	TRY(json_value_read(s->text, r->arena, &value, &r->err));
	TRY(json_value_members(&value, r->arena, &s->members, &s->member_count, &r->err));
	TRY(statement_read_at(s));
	for (size_t i = 0; i < WHOLES; i++) {
		const struct json_value *whole = json_value_find(s->members, s->member_count,
								 wholes[i].name);

		if (whole && (wholes[i].redis || !others))
			return wholes[i].run(s, whole);
	}
	for (size_t i = 0; i < VERBS && !others; i++) {
		const struct json_value *object = json_value_find(s->members, s->member_count,
								  verbs[i].verb);

		if (object)
			return statement_run_verb(s, i, object);
	}
	return err_set(&r->err, STATUS_INVALID,
		       others ? "such a database takes only {\"history\": SECONDS}"
			      : "there is no such statement");
}

static enum status
statement_body(struct kv_tx *tx, void *arg)
{
	struct statement *s = arg;
	struct rows *r = s->rows;
	struct catalog_db *db;
	enum status status;

	arena_clear(r->arena);
	buf_clear(s->out);
	s->field_count = 0;
	status = catalog_open(tx, NULL, r->db.space, str_from_cstr(r->db.name), &db, &r->err);
	if (status == STATUS_NOT_FOUND && r->db.space != CATALOG_SPACE_ROWS)
		return err_set(&r->err, status, "there is no database \"%s\"", r->db_name);
	if (status == STATUS_NOT_FOUND)
		return err_set(&r->err, status,
			       "there is no database of rows \"%s\"; --hash creates one",
			       r->db_name);
	TRY(status);
	timed_init(&s->t, tx, db, NULL, &r->err);
	s->schema = timed_schema_of(db);
	status = statement_run(s);
	catalog_db_unref(db);
	return status;
}

/* ---- Files ---- */

static enum status
run_line(struct rows *r, struct str text)
{
	AUTO(buf_release) struct buf out = BUF_INIT(ROWS_ARENA_BYTES);
	struct statement s = { .rows = r, .text = text, .out = &out };
	uint64_t done;
	bool more;

	do {
		s.more = false;
		TRY(kv_run(r->store, statement_body, &s, NULL, &r->err));
	} while (s.more);
	/* The past begins with a sweep, which a server would make by itself. */
	if (s.history)
		TRY(timed_sweep(r->store, NULL, HISTORY_SWEEPS, &done, &more, &r->err));
	buf_append_buf(output_buf(&r->output), &out);
	return output_ready(&r->output, &r->err);
}

static enum status
run_file(struct rows *r, const char *name)
{
	bool standard = strcmp(name, "-") == 0;
	int fd = standard ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC);
	struct input *in = fd < 0 ? NULL : input_new(input_read_fd, &fd, INPUT_LINES, NULL);
	enum status status = in ? STATUS_OK : STATUS_NOMEM;
	struct input_item item = { 0 };

	if (fd < 0)
		return err_set(&r->err, STATUS_IO, "cannot read %s: %s", name, strerror(errno));
	while (status == STATUS_OK) {
		status = input_next(in, &item, &r->err);
		if (status == STATUS_NOT_FOUND) {
			r->err = (struct err){ 0 };
			status = STATUS_OK;
			break;
		}
		if (status == STATUS_OK)
			status = item.too_large
					 ? err_set(&r->err, STATUS_LIMIT, "the line is too long")
					 : run_line(r, item.text);
		if (status != STATUS_OK && !r->output.reader_left)
			cli_complain("%s:%llu: %s", standard ? "-" : name,
				     (unsigned long long)item.line,
				     r->err.text[0] ? r->err.text : status_name(status));
	}
	input_free(in);
	if (!standard)
		close(fd);
	return status;
}

static enum status
run_all(struct rows *r)
{
	enum status status = STATUS_OK;

	if (r->hash) {
		status = kv_run(r->store, create_table_body, r, NULL, &r->err);
		if (status != STATUS_OK) {
			cli_complain("cannot create \"%s\": %s", r->db_name,
				     r->err.text[0] ? r->err.text : status_name(status));
			return status;
		}
	}
	for (int i = 0; status == STATUS_OK && i < r->files_count; i++)
		status = run_file(r, r->files[i]);
	return status;
}

static int
run_rows(int argc, char **argv)
{
	static const struct argp argp = { .options = argp_options,
					  .parser = rows_parse_option,
					  .args_doc = "DB [FILE...]",
					  .doc = argp_doc };
	struct kv_options options = { .create = true };
	struct rows r = { .store_url = CLI_STORE };
	enum status status;

	cli_parse(&argp, argc, argv, &r);
	r.schema_arena = arena_new(ROWS_ARENA_BYTES);
	r.arena = arena_new(ROWS_ARENA_BYTES);
	status = r.schema_arena && r.arena ? STATUS_OK : STATUS_NOMEM;
	if (status == STATUS_OK)
		status = cli_open_store(r.store_url, &options, &r.store);
	if (status == STATUS_OK) {
		status = output_open(&r.output, NULL, &r.err);
		if (status == STATUS_OK)
			status = run_all(&r);
		/* What was answered before a failure was true. */
		if (output_close(&r.output, &r.err) != STATUS_OK && status == STATUS_OK)
			status = STATUS_IO;
		kv_close(r.store);
	}
	arena_free(r.arena);
	arena_free(r.schema_arena);
	return status == STATUS_OK || r.output.reader_left ? CLI_OK : CLI_FAILED;
}

const struct cli_command cli_rows = { "rows", "run statements on a database of rows", run_rows };
