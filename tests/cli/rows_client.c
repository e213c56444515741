/*
 * A client of the protocol for rows by its library, for tests in Python: a command a line, words
 * apart by tabs; lines of results, and then "ok" or "error STATE ROW TEXT".
 *
 * Values are numbers and texts by the kind of their column, hexadecimal digits behind "x:" for
 * other kinds, "\n" for null and "\a" for a column that stays.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frond_rows.h"

enum {
	WORDS = 4000,
	COLUMNS = 1000,
	ROOM_BYTES = 32,
};

struct session {
	struct frows *c;
	struct frows_table table;
	char schema[100], name[100];
	char *words[WORDS];
	size_t count, at; /* words, and those that were taken */
	uint8_t (*rooms)[ROOM_BYTES];
	size_t rooms_used;
};

static const char *const kinds[] = {
	"none", "bool",  "int2",    "int4",     "int8",   "float4",    "float8",      "numeric",
	"text", "bytes", "date",    "time",     "timetz", "timestamp", "timestamptz", "interval",
	"uuid", "inet",  "macaddr", "macaddr8", "bits",   "other",
};

static enum frows_kind
kind_named(const char *name)
{
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kinds[i], name) == 0)
			return (enum frows_kind)i;
	return (enum frows_kind)atoi(name);
}

/* ---- Words ---- */

static char *
word(struct session *s)
{
	/* Longer than any word it is compared with: gcc takes that for a mistake otherwise. */
	static char none[ROOM_BYTES];

	return s->at < s->count ? s->words[s->at++] : none;
}

static bool
ends(struct session *s)
{
	return s->at == s->count;
}

/* True, and takes it, if the next word is this one. */
static bool
word_is(struct session *s, const char *what)
{
	if (ends(s) || strcmp(s->words[s->at], what) != 0)
		return false;
	s->at++;
	return true;
}

static bool
read_words(struct session *s)
{
	static char *line;
	static size_t cap;
	ssize_t len = getline(&line, &cap, stdin);
	char *rest = line;

	if (len <= 0)
		return false;
	line[strcspn(line, "\n")] = '\0';
	s->count = s->at = s->rooms_used = 0;
	while (rest && s->count < WORDS)
		s->words[s->count++] = strsep(&rest, "\t");
	return true;
}

/* ---- Values ---- */

static const struct frows_column *
column_named(struct session *s, const char *name)
{
	for (size_t i = 0; i < s->table.count; i++)
		if (s->table.columns[i].name.len == strlen(name) &&
		    memcmp(s->table.columns[i].name.ptr, name, strlen(name)) == 0)
			return &s->table.columns[i];
	return NULL;
}

static struct frows_value
hex_value(char *digits)
{
	size_t len = strlen(digits) / 2;
	uint8_t *to = (uint8_t *)digits;
	unsigned byte;

	for (size_t i = 0; i < len; i++) {
		sscanf(digits + 2 * i, "%2x", &byte);
		to[i] = (uint8_t)byte;
	}
	return (struct frows_value){ to, (int32_t)len };
}

static struct frows_value
number_value(struct session *s, const char *text, size_t bytes)
{
	uint8_t *room = s->rooms[s->rooms_used++];

	frows_put_int(room, strtoll(text, NULL, 10), bytes);
	return (struct frows_value){ room, (int32_t)bytes };
}

static struct frows_value
value_of(struct session *s, enum frows_kind kind, char *text)
{
	uint8_t *room;

	if (strcmp(text, "\\n") == 0)
		return (struct frows_value){ NULL, FROWS_NULL };
	if (strcmp(text, "\\a") == 0)
		return (struct frows_value){ NULL, FROWS_ABSENT };
	if (strncmp(text, "x:", 2) == 0)
		return hex_value(text + 2);
	switch ((int)kind) {
	case FROWS_BOOL:
		return number_value(s, text, 1);
	case FROWS_INT2:
		return number_value(s, text, 2);
	case FROWS_INT4:
	case FROWS_DATE:
		return number_value(s, text, 4);
	case FROWS_INT8:
	case FROWS_TIME:
	case FROWS_TIMESTAMP:
	case FROWS_TIMESTAMPTZ:
		return number_value(s, text, 8);
	case FROWS_FLOAT8:
		room = s->rooms[s->rooms_used++];
		frows_put_float8(room, strtod(text, NULL));
		return (struct frows_value){ room, 8 };
	default:
		return (struct frows_value){ text, (int32_t)strlen(text) };
	}
}

static void
print_value(enum frows_kind kind, struct frows_value v)
{
	if (v.len < 0) {
		fputs("\\n", stdout);
		return;
	}
	switch ((int)kind) {
	case FROWS_BOOL:
	case FROWS_INT2:
	case FROWS_INT4:
	case FROWS_INT8:
	case FROWS_DATE:
	case FROWS_TIME:
	case FROWS_TIMESTAMP:
	case FROWS_TIMESTAMPTZ:
		printf("%" PRId64, frows_int(v));
		break;
	case FROWS_FLOAT8:
		printf("%.17g", frows_float8(v));
		break;
	case FROWS_TEXT:
	case FROWS_NUMERIC:
	case FROWS_OTHER:
		fwrite(v.ptr, 1, (size_t)v.len, stdout);
		break;
	default:
		fputs("x:", stdout);
		for (int32_t i = 0; i < v.len; i++)
			printf("%02x", ((const uint8_t *)v.ptr)[i]);
	}
}

/* Values of columns of the key from `first` on, up to the word "|" or the end. */
static size_t
key_values(struct session *s, size_t first, struct frows_value *ret)
{
	size_t n = 0;

	while (!ends(s) && !word_is(s, "|") && n < FROWS_KEY_COLUMNS) {
		enum frows_kind kind = first + n < s->table.key_count
					       ? s->table.columns[first + n].kind
					       : FROWS_TEXT;

		ret[n++] = value_of(s, kind, word(s));
	}
	return n;
}

/* ---- Tables ---- */

static bool
estimate(struct session *s)
{
	const char *schema = word(s);
	uint64_t rows;
	bool exact;

	if (!frows_estimate(s->c, schema, word(s), &rows, &exact))
		return false;
	printf("%" PRIu64 " %s\n", rows, exact ? "exactly" : "about");
	return true;
}

static bool
use(struct session *s)
{
	frows_table_free(&s->table);
	snprintf(s->schema, sizeof(s->schema), "%s", word(s));
	snprintf(s->name, sizeof(s->name), "%s", word(s));
	return frows_table(s->c, s->schema, s->name, &s->table);
}

static bool
describe(struct session *s)
{
	static const char *const roles[] = { "?", "hash", "range", "static", "regular" };

	if (!use(s))
		return false;
	for (size_t i = 0; i < s->table.count; i++) {
		const struct frows_column *c = &s->table.columns[i];

		printf("%.*s\t%s\t%s\t%s%s\t%.*s\n", (int)c->name.len, c->name.ptr, kinds[c->kind],
		       roles[c->role], c->descending ? "desc" : "", c->ordered ? "ordered" : "",
		       (int)c->type.len, c->type.ptr);
	}
	return true;
}

/* name kind role … */
static size_t
new_columns(struct session *s, struct frows_new *ret)
{
	size_t n = 0;

	while (!ends(s) && !word_is(s, "|")) {
		const char *role;

		ret[n].name = word(s);
		ret[n].kind = kind_named(word(s));
		role = word(s);
		ret[n].role = strcmp(role, "hash") == 0        ? FROWS_HASH
			      : strncmp(role, "range", 5) == 0 ? FROWS_RANGE
			      : strcmp(role, "static") == 0    ? FROWS_STATIC
							       : FROWS_REGULAR;
		ret[n++].descending = strcmp(role, "rangedesc") == 0;
	}
	return n;
}

static bool
create(struct session *s)
{
	static struct frows_new columns[COLUMNS + 10];
	const char *schema = word(s), *table = word(s);

	return frows_table_create(s->c, schema, table, columns, new_columns(s, columns), NULL);
}

/* SCHEMA TABLE, columns to add | names to drop | names to rename */
static bool
alter(struct session *s)
{
	static struct frows_new columns[COLUMNS];
	const char *drop[COLUMNS], *rename[COLUMNS];
	const char *schema = word(s), *table = word(s);
	size_t add = new_columns(s, columns), drops = 0, renames = 0;

	while (!ends(s) && !word_is(s, "|"))
		drop[drops++] = word(s);
	while (!ends(s))
		rename[renames++] = word(s);
	return frows_table_alter(s->c, schema, table, columns, add, drop, drops, rename,
				 renames / 2);
}

static bool
print_names(struct session *s, bool done)
{
	struct frows_text name;

	while (done && frows_name_next(s->c, &name))
		printf("%.*s\n", (int)name.len, name.ptr);
	return done;
}

/* ---- Indexes ---- */

static const char *const conditions[] = { "=", "!=", "<", "<=", ">", ">=", "set" };

static const struct frows_column *
column_with_id(const struct session *s, uint32_t id)
{
	for (size_t i = 0; i < s->table.count; i++)
		if (s->table.columns[i].id == id)
			return &s->table.columns[i];
	fprintf(stderr, "an index has a column %u, which its table has not\n", (unsigned)id);
	exit(1);
}

static void
print_index(const struct session *s, const struct frows_index *x)
{
	printf("%.*s\t%s%s%s%s", (int)x->name.len, x->name.ptr, x->unique ? "unique " : "",
	       x->ready ? "ready" : "building", x->failed ? " failed" : "",
	       x->known ? "" : " unknown");
	for (size_t i = 0; i < x->count; i++) {
		struct frows_text name = column_with_id(s, x->columns[i].id)->name;

		printf("\t%.*s%s%s", (int)name.len, name.ptr,
		       x->columns[i].descending ? " desc" : "",
		       x->columns[i].ordered ? "" : " equal");
	}
	for (size_t i = 0; i < x->included_count; i++) {
		struct frows_text name = column_with_id(s, x->included[i])->name;

		printf("\tinclude %.*s", (int)name.len, name.ptr);
	}
	for (size_t i = 0; i < x->condition_count; i++) {
		const struct frows_column *c = column_with_id(s, x->conditions[i].column);

		printf("\twhere %.*s %s ", (int)c->name.len, c->name.ptr,
		       conditions[x->conditions[i].op]);
		print_value(c->kind, x->conditions[i].value);
	}
	putchar('\n');
}

static bool
list_indexes(struct session *s)
{
	struct frows_indexes all;

	if (!frows_indexes(s->c, s->schema, s->name, &all))
		return false;
	for (size_t i = 0; i < all.count; i++)
		print_index(s, &all.all[i]);
	frows_indexes_free(&all);
	return true;
}

/* NAME [unique] columns ("-a" descends) | columns included | then column op value … */
static bool
create_index(struct session *s)
{
	struct frows_index_column columns[FROWS_KEY_COLUMNS];
	struct frows_condition terms[FROWS_KEY_COLUMNS];
	uint32_t included[FROWS_KEY_COLUMNS], number = 0;
	struct frows_index x = { .columns = columns, .included = included, .conditions = terms };
	const struct frows_of of = { s->schema, s->name, s->table.id };
	bool ready = false, failed = false;
	struct frows_text why = { "", 0 };

	x.name.ptr = word(s);
	x.name.len = strlen(x.name.ptr);
	x.unique = word_is(s, "unique");
	while (!ends(s) && !word_is(s, "|")) {
		const char *name = word(s);
		bool descending = name[0] == '-';
		const struct frows_column *c = column_named(s, name + descending);

		columns[x.count++] = (struct frows_index_column){ .id = c ? c->id : 99999,
								  .descending = descending };
	}
	while (!ends(s) && !word_is(s, "|"))
		included[x.included_count++] = column_named(s, word(s))->id;
	while (!ends(s)) {
		const struct frows_column *c = column_named(s, word(s));
		const char *op = word(s);
		size_t i = 0;

		while (strcmp(conditions[i], op) != 0)
			i++;
		terms[x.condition_count++] = (struct frows_condition){
			c->id, (enum frows_condition_op)i,
			i == FROWS_CONDITION_NOT_NULL ? (struct frows_value){ NULL, FROWS_NULL }
						      : value_of(s, c->kind, word(s))
		};
	}
	if (!frows_index_create(s->c, &of, &x, NULL, &number))
		return false;
	while (!ready && !failed)
		if (!frows_index_build(s->c, &of, number, &ready, &failed))
			return false;
	(void)frows_name_next(s->c, &why);
	printf("%u\t%s\t%.*s\n", number, ready ? "ready" : "failed", (int)why.len, why.ptr);
	return true;
}

/* Values of columns of the index of that number, up to "|". */
static size_t
index_values(struct session *s, uint32_t number, size_t first, struct frows_value *ret)
{
	struct frows_indexes all;
	size_t n = 0;

	if (!frows_indexes(s->c, s->schema, s->name, &all))
		return 0;
	for (size_t i = 0; i < all.count; i++)
		while (all.all[i].number == number && !ends(s) && !word_is(s, "|")) {
			const struct frows_column *c = NULL;

			if (first + n < all.all[i].count)
				c = column_with_id(s, all.all[i].columns[first + n].id);
			ret[n++] = value_of(s, c ? c->kind : FROWS_TEXT, word(s));
		}
	frows_indexes_free(&all);
	return n;
}

/* ---- Rows ---- */

/* Names up to "|". False: there is no such column; its id is then one that no column has. */
static size_t
columns_of(struct session *s, uint32_t *ids, enum frows_kind *their_kinds)
{
	size_t n = 0;

	while (!ends(s) && !word_is(s, "|")) {
		const struct frows_column *c = column_named(s, word(s));

		ids[n] = c ? c->id : 99999;
		their_kinds[n++] = c ? c->kind : FROWS_TEXT;
	}
	return n;
}

/* OP columns | key | values, and again behind "|" */
static bool
write_rows(struct session *s, const char *how)
{
	static struct frows_value values[COLUMNS];
	static enum frows_kind their_kinds[COLUMNS];
	static uint32_t ids[COLUMNS];
	const struct frows_of of = { s->schema, s->name, s->table.id };
	enum frows_op op = (enum frows_op)atoi(word(s));
	size_t count = columns_of(s, ids, their_kinds);
	struct frows_value key[FROWS_KEY_COLUMNS];
	bool done;

	frows_write(s->c, &of, ids, count);
	while (!ends(s)) {
		size_t n = key_values(s, 0, key);

		for (size_t i = 0; i < count && op < FROWS_DELETE; i++)
			values[i] = value_of(s, their_kinds[i], word(s));
		(void)word_is(s, "|");
		frows_write_row(s->c, op, key, n, values);
	}
	if (strcmp(how, "write_later") == 0)
		return frows_write_later(s->c);
	if (strcmp(how, "write_send") == 0)
		return frows_write_send(s->c);
	if (!frows_write_run(s->c))
		return false;
	while (frows_write_done(s->c, &done))
		printf("%d\n", done);
	return true;
}

static void
print_row(size_t count, const enum frows_kind *their_kinds, const struct frows_value *values)
{
	for (size_t i = 0; i < count; i++) {
		if (i)
			putchar('\t');
		print_value(their_kinds[i], values[i]);
	}
	putchar('\n');
}

/* columns | key | key … */
static bool
get_rows(struct session *s)
{
	static struct frows_value values[COLUMNS];
	static enum frows_kind their_kinds[COLUMNS];
	static uint32_t ids[COLUMNS];
	const struct frows_of of = { s->schema, s->name, s->table.id };
	size_t count = columns_of(s, ids, their_kinds);
	struct frows_value key[FROWS_KEY_COLUMNS];
	bool found;

	frows_get(s->c, &of, ids, count);
	while (!ends(s)) {
		size_t n = key_values(s, 0, key);

		frows_get_key(s->c, key, n);
	}
	if (!frows_get_run(s->c))
		return false;
	while (frows_get_row(s->c, &found, values)) {
		if (found)
			print_row(count, their_kinds, values);
		else
			puts("-");
	}
	return true;
}

static enum frows_bound
edge_of(struct session *s, struct frows_value *room, uint32_t index, size_t first,
	struct frows_edge *ret)
{
	ret->kind = word_is(s, ">=") || word_is(s, "<=") ? FROWS_INCLUSIVE : FROWS_EXCLUSIVE;
	if (ret->kind == FROWS_EXCLUSIVE)
		(void)word(s);
	ret->count = index ? index_values(s, index, first, room) : key_values(s, first, room);
	ret->values = room;
	return ret->kind;
}

static void
filter_of(struct session *s, struct frows_filter *f)
{
	const struct frows_column *c = column_named(s, word(s));
	const char *how = word(s);

	*f = (struct frows_filter){ .column = c ? c->id : 99999 };
	if (strcmp(how, "null") == 0)
		f->test = FROWS_IS_NULL;
	else if (strcmp(how, "not") == 0)
		f->test = FROWS_IS_NOT_NULL;
	if (f->test)
		return;
	if (how[0] != '<') {
		f->from_kind = how[0] == '>' && !how[1] ? FROWS_EXCLUSIVE : FROWS_INCLUSIVE;
		f->from = value_of(s, c ? c->kind : FROWS_TEXT, word(s));
	}
	if (how[0] == '<') {
		f->to_kind = how[1] ? FROWS_INCLUSIVE : FROWS_EXCLUSIVE;
		f->to = value_of(s, c ? c->kind : FROWS_TEXT, word(s));
	} else if (how[0] == '=') {
		f->to_kind = FROWS_INCLUSIVE;
		f->to = f->from;
	}
}

/* What sums of columns of these kinds are. */
static void
kinds_of_sums(const struct frows_scan *scan, enum frows_kind *sum_kinds)
{
	for (size_t i = 0; scan->sums && i < scan->column_count; i++)
		if (scan->sums[i] == FROWS_COUNT)
			sum_kinds[i] = FROWS_INT8;
		else if (scan->sums[i] == FROWS_SUM && sum_kinds[i] != FROWS_FLOAT8)
			sum_kinds[i] = FROWS_NUMERIC;
}

/* The kinds of the first columns of the index of that number. */
static void
kinds_of_index(struct session *s, uint32_t number, size_t count, enum frows_kind *ret)
{
	struct frows_indexes all;

	if (!frows_indexes(s->c, s->schema, s->name, &all))
		return;
	for (size_t i = 0; i < all.count; i++)
		for (size_t j = 0; all.all[i].number == number && j < count; j++)
			if (j < all.all[i].count)
				ret[j] = column_with_id(s, all.all[i].columns[j].id)->kind;
	frows_indexes_free(&all);
}

/* What a page of groups has: columns of the key or of the index, the number of rows, sums. */
static size_t
kinds_of_groups(struct session *s, const struct frows_scan *scan, const enum frows_kind *sums,
		enum frows_kind *ret)
{
	size_t count = 0;

	for (size_t i = 0; i < scan->groups; i++)
		ret[count++] = i < s->table.count ? s->table.columns[i].kind : FROWS_NONE;
	if (scan->index)
		kinds_of_index(s, scan->index, scan->groups, ret);
	ret[count++] = FROWS_INT8;
	for (size_t i = 0; i < scan->column_count; i++)
		ret[count++] = sums[i];
	return count;
}

static bool
print_pages(struct session *s, struct frows_scan *scan, enum frows_kind *their_kinds,
	    unsigned pages)
{
	static enum frows_kind group_kinds[2 * COLUMNS];
	static struct frows_value values[2 * COLUMNS];
	size_t count = scan->column_count;
	unsigned n = 0;

	kinds_of_sums(scan, their_kinds);
	if (scan->groups) {
		count = kinds_of_groups(s, scan, their_kinds, group_kinds);
		their_kinds = group_kinds;
	}
	do {
		if (!frows_scan_page(s->c, scan, n > 0))
			return false;
		if ((scan->sums || scan->only_count) && !scan->groups) {
			printf("%" PRIu64 "\t", frows_scan_sums(s->c, values));
			print_row(count, their_kinds, values);
		}
		while (frows_scan_row(s->c, values))
			print_row(count, their_kinds, values);
		n++;
	} while (frows_has_more(s->c) && n != pages);
	printf("pages %u%s\n", n, frows_has_more(s->c) ? " more" : "");
	return true;
}

/* columns | then any of: index NUMBER, reverse, rows N, bytes N, sample N, pages N, count,
 * sums OP…, groups N, eq key |, from >= key |, to < key |, where column op value */
static bool
scan_rows(struct session *s)
{
	static enum frows_kind their_kinds[COLUMNS];
	static enum frows_sum sums[COLUMNS];
	static uint32_t ids[COLUMNS];
	static struct frows_filter filters[200];
	struct frows_value equal[FROWS_KEY_COLUMNS], from[FROWS_KEY_COLUMNS], to[FROWS_KEY_COLUMNS];
	struct frows_scan scan = { .of = { s->schema, s->name, s->table.id },
				   .columns = ids,
				   .equal = equal,
				   .filters = filters };
	unsigned pages = 0;

	scan.column_count = columns_of(s, ids, their_kinds);
	while (!ends(s)) {
		if (word_is(s, "reverse"))
			scan.reverse = true;
		else if (word_is(s, "rows"))
			scan.rows = (uint32_t)atoi(word(s));
		else if (word_is(s, "bytes"))
			scan.bytes = (uint32_t)atoi(word(s));
		else if (word_is(s, "sample"))
			scan.sample = (uint32_t)strtoul(word(s), NULL, 10);
		else if (word_is(s, "pages"))
			pages = (unsigned)atoi(word(s));
		else if (word_is(s, "count"))
			scan.only_count = true;
		else if (word_is(s, "groups"))
			scan.groups = (size_t)atoi(word(s));
		else if (word_is(s, "sums"))
			for (size_t i = 0; i < scan.column_count; i++)
				sums[i] = (enum frows_sum)atoi(word(s)), scan.sums = sums;
		else if (word_is(s, "eq"))
			scan.equal_count = scan.index ? index_values(s, scan.index, 0, equal)
						      : key_values(s, 0, equal);
		else if (word_is(s, "index"))
			scan.index = (uint32_t)atoi(word(s));
		else if (word_is(s, "from"))
			(void)edge_of(s, from, scan.index, scan.equal_count, &scan.from);
		else if (word_is(s, "to"))
			(void)edge_of(s, to, scan.index, scan.equal_count, &scan.to);
		else if (word_is(s, "where"))
			filter_of(s, &filters[scan.filter_count++]);
		else
			(void)word(s);
	}
	return print_pages(s, &scan, their_kinds, pages);
}

/* ---- Commands ---- */

/* HOST PORT [user password [ca file]] */
static bool
open_session(struct session *s)
{
	struct frows_where where = { .host = word(s), .port = word(s), .timeout_ms = 60000 };

	if (!ends(s)) {
		where.user = word(s);
		where.password = word(s);
	}
	if (where.user && !where.user[0])
		where.user = NULL;
	where.tls = !ends(s);
	if (where.tls)
		where.ca_file = word(s);
	frows_close(s->c);
	return frows_open(&where, &s->c);
}

static bool
savepoint(struct session *s)
{
	uint32_t number = 0;
	bool done = frows_savepoint(s->c, &number);

	if (done)
		printf("%u\n", number);
	return done;
}

static bool
commit(struct session *s)
{
	uint8_t stamp[FROWS_STAMP_BYTES];
	bool done = frows_commit(s->c, stamp);

	for (size_t i = 0; done && i < sizeof(stamp); i++)
		printf("%02x%s", stamp[i], i + 1 == sizeof(stamp) ? "\n" : "");
	return done;
}

static bool
command(struct session *s)
{
	const char *what = word(s);
	const char *schema;

	if (strcmp(what, "open") == 0)
		return open_session(s);
	if (strcmp(what, "ping") == 0)
		return frows_ping(s->c);
	if (strcmp(what, "begin") == 0)
		return frows_begin(s->c, word_is(s, "read"));
	if (strcmp(what, "commit") == 0)
		return commit(s);
	if (strcmp(what, "begin_later") == 0) {
		frows_begin_later(s->c, word_is(s, "read"));
		return true;
	}
	if (strcmp(what, "refresh") == 0) {
		bool moved;
		bool done = frows_refresh(s->c, &moved);

		if (done)
			puts(moved ? "moved" : "stays");
		return done;
	}
	if (strcmp(what, "refresh_later") == 0) {
		frows_refresh_later(s->c);
		return true;
	}
	if (strcmp(what, "rollback_later") == 0) {
		frows_rollback_later(s->c);
		return true;
	}
	if (strcmp(what, "alive") == 0)
		return frows_is_alive(s->c);
	if (strcmp(what, "rollback") == 0)
		return frows_rollback(s->c);
	if (strcmp(what, "savepoint") == 0)
		return savepoint(s);
	if (strcmp(what, "release") == 0)
		return frows_release(s->c, (uint32_t)atoi(word(s)));
	if (strcmp(what, "rollback_to") == 0)
		return frows_rollback_to(s->c, (uint32_t)atoi(word(s)));
	if (strcmp(what, "schemas") == 0)
		return print_names(s, frows_schemas(s->c));
	if (strcmp(what, "schema_create") == 0)
		return frows_schema_create(s->c, word(s));
	if (strcmp(what, "schema_drop") == 0)
		return frows_schema_drop(s->c, word(s));
	if (strcmp(what, "tables") == 0) {
		schema = word(s);
		return print_names(s, frows_tables(s->c, schema, word(s)));
	}
	if (strcmp(what, "estimate") == 0)
		return estimate(s);
	if (strcmp(what, "use") == 0)
		return use(s);
	if (strcmp(what, "describe") == 0)
		return describe(s);
	if (strcmp(what, "create") == 0)
		return create(s);
	if (strcmp(what, "alter") == 0)
		return alter(s);
	if (strcmp(what, "drop") == 0) {
		schema = word(s);
		return frows_table_drop(s->c, schema, word(s));
	}
	if (strcmp(what, "empty") == 0) {
		schema = word(s);
		return frows_table_empty(s->c, schema, word(s));
	}
	if (strcmp(what, "write") == 0 || strcmp(what, "write_later") == 0 ||
	    strcmp(what, "write_send") == 0)
		return write_rows(s, what);
	if (strcmp(what, "write_wait") == 0)
		return frows_write_wait(s->c);
	if (strcmp(what, "commit_send") == 0)
		return frows_commit_send(s->c);
	if (strcmp(what, "get") == 0)
		return get_rows(s);
	if (strcmp(what, "scan") == 0)
		return scan_rows(s);
	if (strcmp(what, "indexes") == 0)
		return list_indexes(s);
	if (strcmp(what, "index_create") == 0)
		return create_index(s);
	if (strcmp(what, "index_drop") == 0) {
		schema = word(s);
		return frows_index_drop(s->c, schema, word(s));
	}
	if (strcmp(what, "index_find") == 0) {
		schema = word(s);
		return print_names(s, frows_index_find(s->c, schema, word(s)));
	}
	fprintf(stderr, "there is no command %s\n", what);
	exit(2);
}

int
main(void)
{
	static struct session s;

	s.rooms = calloc(WORDS, sizeof(*s.rooms));
	while (read_words(&s)) {
		bool done = command(&s);
		const struct frows_failure *f = frows_failure(s.c);

		if (done)
			puts("ok");
		else
			printf("error\t%s\t%d\t%s%s%s\n", f->state, (int)f->row, f->text,
			       f->index[0] ? "\t" : "", f->index);
		fflush(stdout);
	}
	frows_table_free(&s.table);
	frows_close(s.c);
	free(s.rooms);
	return 0;
}
