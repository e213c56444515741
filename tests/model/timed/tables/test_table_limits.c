/*
 * Limits of tables, each at its edge and one beyond: names, types and properties, columns, fields
 * of types, keyspaces with many tables; changes of schemas and deletions out of dumps that are
 * refused.
 */
#include "limits_world.h"

#include "base/mem.h"
#include "model/timed/tables/deletions.h"
#include "model/timed/tables/index.h"
#include "model/timed/tables/keyspaces.h"
#include "model/timed/tables/tables_int.h"
#include "test_tables.h"
#include "verified.h"

enum {
	MANY_TABLES = 501, /* more than one page of a keyspace that is dropped */
	TABLES_A_TIME = 100,
	PAGE_TABLES = 1000,
};

/* ---- Schemas ---- */

/* Of a hash component, a range component and `more` columns behind them. */
static struct table_schema
schema_of(struct table_column *columns, size_t hash, size_t range, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		columns[i].id = i + 1;
		columns[i].kind = i < hash           ? TABLE_HASH
				  : i < hash + range ? TABLE_RANGE
						     : TABLE_REGULAR;
	}
	return (struct table_schema){ .columns = columns,
				      .hash_count = hash,
				      .key_count = hash + range,
				      .column_count = count };
}

static void
check(const struct table_schema *schema, const char *refusal)
{
	struct err err = { 0 };
	enum status status = table_schema_check(schema, &err);

	if (status != (refusal ? STATUS_INVALID : STATUS_OK))
		fail_msg("%s: %s", refusal ? refusal : "fine", err.text);
	if (refusal && !strstr(err.text, refusal))
		fail_msg("\"%s\" does not say \"%s\"", err.text, refusal);
}

static void
columns_have_names_and_types_of_bounded_length(void **state)
{
	struct fixture *f = *state;
	struct table_column columns[3] = { { .name = STR("h") },
					   { .name = STR("r") },
					   { .name = STR("a") } };
	struct table_schema schema = schema_of(columns, 1, 1, 3);
	static const char *const names[] = { "the name of a column has 1 to 100 bytes",
					     "TABLE_COLUMN_BYTES" };
	static const char *const types[] = { "the type of a column has 0 to 4000 bytes",
					     "TABLE_TYPE_BYTES" };

	for (size_t at = 0; at < 3; at++) {
		const struct table_column before = columns[at];

		for (size_t words = 0; words < 2; words++) {
			columns[at].name = letters(f, TABLE_COLUMN_BYTES + 1);
			check(&schema, names[words]);
			columns[at].name = STR("");
			check(&schema, names[words]);
			columns[at].name = STR("\xff");
			check(&schema, names[words]);
			columns[at].name = letters(f, TABLE_COLUMN_BYTES);
			check(&schema, NULL);
			columns[at].type = letters(f, TABLE_TYPE_BYTES + 1);
			check(&schema, types[words]);
			columns[at].type = STR("\xc3");
			check(&schema, types[words]);
			columns[at].type = letters(f, TABLE_TYPE_BYTES);
			check(&schema, NULL);
		}
		columns[at] = before;
	}
}

static void
columns_fit_into_their_places(void **state)
{
	struct table_column columns[3] = { { .name = STR("h") },
					   { .name = STR("r") },
					   { .name = STR("a") } };
	struct table_schema schema = schema_of(columns, 1, 1, 3);

	(void)state;
	check(&schema, NULL);
	columns[2].name = STR("r");
	check(&schema, "two columns are called \"r\"");
	columns[2].name = STR("a");
	columns[1].descending = true;
	check(&schema, NULL);
	columns[0].descending = true;
	check(&schema, "the column \"h\" cannot be descending");
	columns[0].descending = false;
	columns[2].descending = true;
	check(&schema, "the column \"a\" cannot be descending");
	columns[2].descending = false;
	for (enum table_storage s = TABLE_MAP; s <= TABLE_COUNTER; s++) {
		columns[0].storage = s;
		check(&schema, "a column of the key has a single value, and \"h\" has not");
		columns[0].storage = TABLE_SINGLE;
		columns[1].storage = s;
		check(&schema, "a column of the key has a single value, and \"r\" has not");
		columns[1].storage = TABLE_SINGLE;
		columns[2].storage = s;
		check(&schema, s == TABLE_COUNTER ? "counters and other columns" : NULL);
		schema.counters = true;
		check(&schema, s == TABLE_COUNTER ? NULL : "counters and other columns");
		schema.counters = false;
	}
	columns[2].storage = TABLE_SINGLE;
	columns[2].kind = TABLE_STATIC;
	check(&schema, NULL);
	columns[1].kind = TABLE_HASH;
	columns[1].descending = false;
	schema.hash_count = 2;
	check(&schema, "without range components");
	schema.hash_count = 0;
	check(&schema, "a key has one hash component at least");
}

static void
a_schema_has_bounded_columns(void **state)
{
	struct fixture *f = *state;
	struct table_column *columns = arena_zalloc(f->arena,
						    (TABLE_COLUMNS + 1) * sizeof(*columns));
	struct table_schema schema;

	assert_non_null(columns);
	for (size_t i = 0; i <= TABLE_COLUMNS; i++)
		columns[i].name = arena_printf(f->arena, "c%zu", i);
	for (size_t more = 0; more < 2; more++) {
		size_t key = TABLE_KEY_COLUMNS + more, all = TABLE_COLUMNS + more;

		schema = schema_of(columns, 1, key - 1, key);
		check(&schema, more ? "a key may have 32 components (TABLE_KEY_COLUMNS)" : NULL);
		schema = schema_of(columns, key, 0, key);
		check(&schema, more ? "a key may have 32 components (TABLE_KEY_COLUMNS)" : NULL);
		schema = schema_of(columns, 1, 1, all);
		check(&schema, more ? "a table may have 1000 columns (TABLE_COLUMNS)" : NULL);
	}
}

static void
properties_have_their_limits(void **state)
{
	struct fixture *f = *state;
	struct table_property *p = arena_zalloc(f->arena, (TABLE_PROPERTIES + 1) * sizeof(*p));
	struct err err = { 0 };

	assert_non_null(p);
	for (size_t i = 0; i <= TABLE_PROPERTIES; i++)
		p[i] = (struct table_property){ arena_printf(f->arena, "p%zu", i), STR("") };
	assert_int_equal(table_check_properties(p, TABLE_PROPERTIES, &err), STATUS_OK);
	assert_int_equal(table_check_properties(p, TABLE_PROPERTIES + 1, &err), STATUS_INVALID);
	assert_string_equal(err.text, "there may be 100 properties (TABLE_PROPERTIES)");
	for (size_t more = 0; more < 2; more++) {
		enum status wanted = more ? STATUS_INVALID : STATUS_OK;

		p[1] = (struct table_property){ letters(f, TABLE_PROPERTY_BYTES + more), STR("") };
		assert_int_equal(table_check_properties(p, 2, &err), wanted);
		/* The value has what the name leaves. */
		p[1] = (struct table_property){ STR("name"),
						letters(f, TABLE_PROPERTY_BYTES - 4 + more) };
		assert_int_equal(table_check_properties(p, 2, &err), wanted);
		p[1] = (struct table_property){ letters(f, 1 - more), STR("") };
		assert_int_equal(table_check_properties(p, 2, &err), wanted);
		p[1] = (struct table_property){ STR("n"), more ? STR("\xff") : STR("\xc3\xa4") };
		assert_int_equal(table_check_properties(p, 2, &err), wanted);
	}
}

/* ---- Creating ---- */

struct making {
	struct table_schema schema;
	uint64_t ttl_ms;
};

static enum status
make_body(struct timed *t, void *arg)
{
	const struct making *m = arg;

	TRY(table_create(t->tx, STR("ks.t"), &m->schema, m->ttl_ms, t->err));
	return STATUS_OK;
}

static enum status
drop_t_body(struct timed *t, void *arg)
{
	(void)arg;
	return table_drop(t->tx, STR("ks.t"), t->err);
}

static enum status
schema_body(struct timed *t, void *arg)
{
	struct table_schema *ret = arg;

	/* Its arrays go with the description. */
	*ret = *table_schema_of(t->db);
	return STATUS_OK;
}

static struct table_schema
schema_now(struct fixture *f, const char *table)
{
	struct table_schema schema = { 0 };

	expect(f, table, schema_body, &schema, NULL);
	return schema;
}

static void
a_table_that_is_made_has_what_was_given(void **state)
{
	static const struct table_property packs[] = { { TEXT(TABLE_PROPERTY_PACKED),
							 TEXT("true") } };
	struct fixture *f = *state;
	struct table_column columns[3] = { { .name = STR("h") },
					   { .name = STR("r") },
					   { .name = STR("a") } };
	struct making m = { .schema = schema_of(columns, 1, 1, 3) };
	static const struct {
		bool counts, packs, is_static, is_map, is_counter;
		uint64_t ttl_ms;
		const char *refusal;
		bool counted, packed, whole;
	} cases[] = {
		{ .counts = false },
		{ .counts = true, .counted = true },
		{ .counts = true, .ttl_ms = 1 },
		{ .counts = true, .is_static = true },
		{ .counts = true, .is_counter = true },
		{ .counts = true, .packs = true, .counted = true, .packed = true, .whole = true },
		{ .packs = true, .packed = true, .whole = true },
		{ .packs = true, .is_static = true, .packed = true },
		{ .packs = true, .is_map = true, .packed = true },
		{ .packs = true, .is_counter = true },
		{ .packs = true, .ttl_ms = 1, .packed = true, .whole = true },
		{ .is_counter = true, .ttl_ms = 1, .refusal = "counters do not expire" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct table_schema made;

		columns[2].kind = cases[i].is_static ? TABLE_STATIC : TABLE_REGULAR;
		columns[2].storage = cases[i].is_map       ? TABLE_MAP
				     : cases[i].is_counter ? TABLE_COUNTER
							   : TABLE_SINGLE;
		m.schema.counts = cases[i].counts;
		m.schema.properties = packs;
		m.schema.property_count = cases[i].packs;
		m.ttl_ms = cases[i].ttl_ms;
		expect(f, NULL, make_body, &m, cases[i].refusal);
		if (cases[i].refusal)
			continue;
		made = schema_now(f, "ks.t");
		if (made.counted != cases[i].counted || made.counts != cases[i].counted ||
		    made.packed != cases[i].packed || made.packs != cases[i].packed ||
		    made.whole != cases[i].whole || made.counters != cases[i].is_counter ||
		    made.static_count != cases[i].is_static)
			fail_msg("table %zu is another one", i);
		expect(f, NULL, drop_t_body, NULL, NULL);
	}
	m.schema.column_count = TABLE_COLUMNS + 1;
	expect(f, NULL, make_body, &m, "a table may have 1000 columns (TABLE_COLUMNS)");
}

/* A schema is one value of the store's, however few its columns are. */
static void
a_schema_has_bounded_bytes(void **state)
{
	enum {
		LONG_TYPES = 26, /* of 4000 bytes */
	};
	struct fixture *f = *state;
	struct table_column columns[LONG_TYPES];
	struct making m = { .ttl_ms = 0 };

	for (size_t i = 0; i < LONG_TYPES; i++)
		columns[i] = (struct table_column){ .name = arena_printf(f->arena, "c%zu", i),
						    .type = letters(f, TABLE_TYPE_BYTES) };
	m.schema = schema_of(columns, 1, 0, LONG_TYPES);
	expect(f, NULL, make_body, &m,
	       "the schema of a table may have 100000 bytes (KV_LIMIT_VALUE_BYTES)");
	m.schema = schema_of(columns, 1, 0, LONG_TYPES - 2);
	expect(f, NULL, make_body, &m, NULL);
}

/* ---- Values ---- */

/* As it is encoded: a scalar takes up to 16 bytes beside its text, and each zero in that two. */
static void
a_value_is_long_beyond_what_one_pair_has(void **state)
{
	static char bytes[TIMED_VALUE_BYTES - 16 + 1];
	struct table_change change = { .kind = TABLE_CHANGE_PUT, .value = { .kind = DOC_BYTES } };

	(void)state;
	for (size_t zeros = 0; zeros < 3; zeros++) {
		size_t most = TIMED_VALUE_BYTES - 16 - zeros;

		memset(bytes, 'x', sizeof(bytes));
		memset(bytes, 0, zeros);
		for (size_t more = 0; more < 2; more++) {
			change.value.text = str_of(bytes, most + more);
			assert_int_equal(table_change_is_long(&change), more);
		}
	}
}

/* ---- Altering ---- */

static enum status
alter_body(struct timed *t, void *arg)
{
	return table_alter(t, arg);
}

static enum status
index_body(struct timed *t, void *arg)
{
	const uint64_t *column = arg;
	const struct table_index_column columns[] = { { .column = *column } };
	const struct table_index terms = { .name = STR("i"),
					   .columns = columns,
					   .column_count = 1 };
	uint64_t number;

	return table_index_create(t, &terms, &number);
}

static enum status
unindex_body(struct timed *t, void *arg)
{
	(void)arg;
	return table_index_drop(t, table_index_named(t->db, STR("i")));
}

static void
an_alteration_that_cannot_be_is_refused(void **state)
{
	struct fixture *f = *state;
	const struct table_column added[] = {
		{ .name = STR("h2"), .kind = TABLE_HASH },
		{ .name = STR("r2"), .kind = TABLE_RANGE },
		{ .name = STR("msg"), .kind = TABLE_REGULAR },
		{ .name = STR("s2"), .kind = TABLE_STATIC },
		{ .name = STR("a2"), .kind = TABLE_REGULAR },
	};
	static const char *const refusals[] = { "the column \"h2\" cannot join the key of a table",
						"the column \"r2\" cannot join the key of a table",
						"two columns are called \"msg\"", NULL, NULL };
	const struct table_rename renames[] = { { STR("none"), STR("x") },
						{ STR("msg"), STR("x") },
						{ STR("msg_id"), STR("tags") },
						{ STR("msg_id"), STR("user_id") },
						{ STR("msg_id"), STR("id") } };
	static const char *const not_renamed[] = {
		"there is no column \"none\"",
		"only a column of the key can be renamed, and \"msg\" is none",
		"there is a column \"tags\" already", "there is a column \"user_id\" already", NULL
	};
	const struct str drops[] = { STR("none"), STR("user_id"), STR("id"), STR("owner"),
				     STR("tags") };
	static const char *const not_dropped[] = {
		"there is no column \"none\"",
		"the column \"user_id\" of the key cannot be dropped",
		"the column \"id\" of the key cannot be dropped", NULL, NULL
	};
	uint64_t msg = MSG;
	struct table_alteration a;
	struct str dropped = STR("msg");

	for (size_t i = 0; i < COUNT(added); i++) {
		a = (struct table_alteration){ .add = &added[i], .add_count = 1 };
		expect(f, "ks.msgs", alter_body, &a, refusals[i]);
	}
	assert_int_equal(schema_now(f, "ks.msgs").static_count, 2);
	for (size_t i = 0; i < COUNT(renames); i++) {
		a = (struct table_alteration){ .rename = &renames[i], .rename_count = 1 };
		expect(f, "ks.msgs", alter_body, &a, not_renamed[i]);
	}
	for (size_t i = 0; i < COUNT(drops); i++) {
		a = (struct table_alteration){ .drop = &drops[i], .drop_count = 1 };
		expect(f, "ks.msgs", alter_body, &a, not_dropped[i]);
	}
	assert_int_equal(schema_now(f, "ks.msgs").static_count, 1);
	expect(f, "ks.msgs", index_body, &msg, NULL);
	a = (struct table_alteration){ .drop = &dropped, .drop_count = 1 };
	expect(f, "ks.msgs", alter_body, &a,
	       "Cannot drop column msg because it has dependent secondary indexes (i)");
	expect(f, "ks.msgs", unindex_body, NULL, NULL);
	expect(f, "ks.msgs", alter_body, &a, NULL);
	verified_none(f->store);
}

/* A column is added where there is room for it, and what was dropped makes room. */
static void
columns_are_added_up_to_the_limit(void **state)
{
	struct fixture *f = *state;
	struct table_column *columns = arena_zalloc(f->arena,
						    (TABLE_COLUMNS + 1) * sizeof(*columns));
	struct str *names = arena_zalloc(f->arena, (TABLE_COLUMNS + 1) * sizeof(*names));
	struct table_alteration a = { .add = columns };
	struct table_schema now;

	assert_true(columns && names);
	for (size_t i = 0; i <= TABLE_COLUMNS; i++) {
		names[i] = arena_printf(f->arena, "c%zu", i);
		columns[i] = (struct table_column){ .name = names[i], .kind = TABLE_REGULAR };
	}
	a.add_count = TABLE_COLUMNS + 1;
	expect(f, "ks.msgs", alter_body, &a, "a table may have 1000 columns (TABLE_COLUMNS)");
	a.add_count = TABLE_COLUMNS; /* beside six */
	expect(f, "ks.msgs", alter_body, &a, "a table may have 1000 columns (TABLE_COLUMNS)");
	a.add_count = TABLE_COLUMNS - 6;
	expect(f, "ks.msgs", alter_body, &a, NULL);
	a = (struct table_alteration){ .add = &columns[TABLE_COLUMNS], .add_count = 1 };
	expect(f, "ks.msgs", alter_body, &a, "a table may have 1000 columns (TABLE_COLUMNS)");
	/* The latest of what was dropped are remembered. */
	a = (struct table_alteration){ .drop = names, .drop_count = TABLE_DROPPED };
	expect(f, "ks.msgs", alter_body, &a, NULL);
	now = schema_now(f, "ks.msgs");
	assert_int_equal(now.dropped_count, TABLE_DROPPED);
	assert_int_equal(now.column_count, TABLE_COLUMNS - TABLE_DROPPED);
	a = (struct table_alteration){ .drop = names + TABLE_DROPPED, .drop_count = 1 };
	expect(f, "ks.msgs", alter_body, &a, NULL);
	assert_int_equal(schema_now(f, "ks.msgs").dropped_count, TABLE_DROPPED);
	verified_none(f->store);
}

static enum status
dropped_body(struct timed *t, void *arg)
{
	const struct table_schema *s = table_schema_of(t->db);
	struct str *names = arg;

	names[0] = s->dropped[0].column.name;
	names[1] = s->dropped[s->dropped_count - 1].column.name;
	assert_true(str_eq(names[0], STR("c1")));
	assert_true(str_eq(names[1], STR("c200")));
	return STATUS_OK;
}

static void
the_oldest_dropped_columns_are_forgotten(void **state)
{
	struct fixture *f = *state;
	struct table_column columns[TABLE_DROPPED + 1];
	struct str names[TABLE_DROPPED + 1], ends[2];
	struct table_alteration add = { .add = columns, .add_count = TABLE_DROPPED + 1 };
	struct table_alteration drop = { .drop = names, .drop_count = TABLE_DROPPED + 1 };

	for (size_t i = 0; i <= TABLE_DROPPED; i++) {
		names[i] = arena_printf(f->arena, "c%zu", i);
		columns[i] = (struct table_column){ .name = names[i], .kind = TABLE_REGULAR };
	}
	expect(f, "ks.msgs", alter_body, &add, NULL);
	expect(f, "ks.msgs", alter_body, &drop, NULL);
	expect(f, "ks.msgs", dropped_body, ends, NULL);
}

static void
what_an_alteration_says_of_expiry_and_packing_holds(void **state)
{
	static const struct table_property on[] = { { TEXT(TABLE_PROPERTY_PACKED), TEXT("true") } };
	static const struct table_property off[] = { { TEXT(TABLE_PROPERTY_PACKED),
						       TEXT("false") } };
	struct fixture *f = *state;
	struct table_column columns[3] = { { .name = STR("h") },
					   { .name = STR("r") },
					   { .name = STR("a") } };
	struct making m = { .schema = schema_of(columns, 1, 1, 3) };
	struct table_alteration a = { .sets_ttl = true, .ttl_ms = 0 };
	struct table_schema now;

	expect(f, "ks.hits", alter_body, &a, NULL);
	a.ttl_ms = 1;
	expect(f, "ks.hits", alter_body, &a, "counters do not expire");
	m.schema.counts = true;
	expect(f, NULL, make_body, &m, NULL);
	a.sets_ttl = false;
	expect(f, "ks.t", alter_body, &a, NULL);
	assert_true(schema_now(f, "ks.t").counted);
	a = (struct table_alteration){ .sets_ttl = true, .ttl_ms = 0 };
	expect(f, "ks.t", alter_body, &a, NULL);
	assert_true(schema_now(f, "ks.t").counted);
	a.ttl_ms = 1;
	expect(f, "ks.t", alter_body, &a, NULL);
	now = schema_now(f, "ks.t");
	assert_true(now.counts && !now.counted && !now.packed);
	a = (struct table_alteration){ .properties = on, .property_count = 1 };
	expect(f, "ks.t", alter_body, &a, NULL);
	now = schema_now(f, "ks.t");
	assert_true(now.packed && now.packs && !now.whole);
	a.properties = off;
	expect(f, "ks.t", alter_body, &a, NULL);
	now = schema_now(f, "ks.t");
	assert_true(now.packed && !now.packs);
	verified_none(f->store);
}

/* ---- Keyspaces and types ---- */

static enum status
keyspace_create_body(struct timed *t, void *arg)
{
	return table_keyspace_create(t->tx, arg, t->err);
}

static enum status
keyspace_alter_body(struct timed *t, void *arg)
{
	return table_keyspace_alter(t->tx, arg, t->err);
}

struct reading {
	struct fixture *f;
	struct table_keyspace keyspace;
};

static enum status
keyspace_read_body(struct timed *t, void *arg)
{
	struct reading *r = arg;

	return table_keyspace_read(t->tx, r->keyspace.name, r->f->arena, &r->keyspace, t->err);
}

static void
keyspaces_have_their_limits(void **state)
{
	enum {
		LONG_ONES = 13, /* of 8000 bytes: with one less they fit into a value */
	};
	struct fixture *f = *state;
	struct table_property p[LONG_ONES];
	struct table_keyspace ks = { .name = STR("more"), .properties = p };
	struct table_property few[] = { { STR("b"), STR("1") }, { STR("a"), STR("2") } };
	struct reading r = { f, { .name = STR("more") } };

	for (size_t i = 0; i < LONG_ONES; i++)
		p[i] = (struct table_property){ arena_printf(f->arena, "p%02zu", i),
						letters(f, TABLE_PROPERTY_BYTES - 3) };
	ks.property_count = LONG_ONES;
	expect(f, NULL, keyspace_create_body, &ks,
	       "what a keyspace or a type has may take 100000 bytes (KV_LIMIT_VALUE_BYTES)");
	assert_int_equal(run(f, NULL, keyspace_read_body, &r), STATUS_NOT_FOUND);
	assert_string_equal(f->err.text, "there is no keyspace \"more\"");
	assert_int_equal(run(f, NULL, keyspace_alter_body, &ks), STATUS_NOT_FOUND);
	ks.property_count = LONG_ONES - 1;
	expect(f, NULL, keyspace_create_body, &ks, NULL);
	assert_int_equal(run(f, NULL, keyspace_create_body, &ks), STATUS_EXISTS);
	assert_string_equal(f->err.text, "there is a keyspace \"more\" already");
	/* Properties are set by their names, and are in the order of these. */
	ks = (struct table_keyspace){ .name = STR("ks"), .properties = few, .property_count = 2 };
	expect(f, NULL, keyspace_alter_body, &ks, NULL);
	few[0] = (struct table_property){ STR("c"), STR("3") };
	few[1] = (struct table_property){ STR("b"), STR("4") };
	expect(f, NULL, keyspace_alter_body, &ks, NULL);
	r.keyspace.name = STR("ks");
	expect(f, NULL, keyspace_read_body, &r, NULL);
	assert_int_equal(r.keyspace.property_count, 3);
	assert_true(str_eq(r.keyspace.properties[0].name, STR("a")) &&
		    str_eq(r.keyspace.properties[0].value, STR("2")) &&
		    str_eq(r.keyspace.properties[1].value, STR("4")) &&
		    str_eq(r.keyspace.properties[2].name, STR("c")));
	few[0].name = STR("");
	expect(f, NULL, keyspace_alter_body, &ks, "the name of a property has 1 to 8000 bytes");
	ks.name = STR("k-s");
	expect(f, NULL, keyspace_create_body, &ks, "the name of a keyspace has 1 to 48 letters");
	r.keyspace.name = STR("k-s");
	expect(f, NULL, keyspace_read_body, &r, "the name of a keyspace has 1 to 48 letters");
}

struct type_put {
	struct table_type type;
	bool replaces;
};

static enum status
type_put_body(struct timed *t, void *arg)
{
	const struct type_put *p = arg;

	return table_type_put(t->tx, &p->type, p->replaces, t->err);
}

static enum status
type_drop_body(struct timed *t, void *arg)
{
	const struct type_put *p = arg;

	return table_type_drop(t->tx, p->type.keyspace, p->type.name, t->err);
}

static void
types_have_their_limits(void **state)
{
	struct fixture *f = *state;
	struct table_field fields[TABLE_TYPE_FIELDS + 1];
	struct type_put p = { .type = { STR("ks"), STR("ty"), fields, 0 } };
	static const char *const count = "a type has 1 to 500 fields (TABLE_TYPE_FIELDS)";

	for (size_t i = 0; i <= TABLE_TYPE_FIELDS; i++)
		fields[i] = (struct table_field){ arena_printf(f->arena, "f%zu", i), STR("") };
	expect(f, NULL, type_put_body, &p, count);
	p.type.field_count = TABLE_TYPE_FIELDS + 1;
	expect(f, NULL, type_put_body, &p, count);
	p.replaces = true;
	p.type.field_count = 1;
	assert_int_equal(run(f, NULL, type_put_body, &p), STATUS_NOT_FOUND);
	assert_string_equal(f->err.text, "there is no type \"ks.ty\"");
	assert_int_equal(run(f, NULL, type_drop_body, &p), STATUS_NOT_FOUND);
	p.replaces = false;
	expect(f, NULL, type_put_body, &p, NULL);
	assert_int_equal(run(f, NULL, type_put_body, &p), STATUS_EXISTS);
	assert_string_equal(f->err.text, "there is a type \"ks.ty\" already");
	p.replaces = true;
	p.type.field_count = TABLE_TYPE_FIELDS;
	expect(f, NULL, type_put_body, &p, NULL);
	for (size_t more = 0; more < 2; more++) {
		fields[1].name = letters(f, TABLE_COLUMN_BYTES + more);
		expect(f, NULL, type_put_body, &p,
		       more ? "the name of a field has 1 to 100 bytes" : NULL);
		fields[1].name = letters(f, 1 - more);
		expect(f, NULL, type_put_body, &p,
		       more ? "the name of a field has 1 to 100 bytes" : NULL);
		fields[1].name = STR("g");
		fields[1].type = letters(f, TABLE_TYPE_BYTES + more);
		expect(f, NULL, type_put_body, &p,
		       more ? "the type of a field has 0 to 4000 bytes" : NULL);
		fields[1].type = STR("");
	}
	fields[TABLE_TYPE_FIELDS - 1].name = STR("f0");
	expect(f, NULL, type_put_body, &p, "two fields are called \"f0\"");
	p.type.field_count--;
	p.type.name = STR("t-y");
	expect(f, NULL, type_put_body, &p, "the name of a type has 1 to 48 letters");
	expect(f, NULL, type_drop_body, &p, "the name of a type has 1 to 48 letters");
	p.type.name = STR("ty");
	p.type.keyspace = STR("none");
	assert_int_equal(run(f, NULL, type_put_body, &p), STATUS_NOT_FOUND);
	assert_int_equal(run(f, NULL, type_drop_body, &p), STATUS_NOT_FOUND);
	p.type.keyspace = STR("ks");
	expect(f, NULL, type_drop_body, &p, NULL);
	assert_int_equal(run(f, NULL, type_drop_body, &p), STATUS_NOT_FOUND);
	verified_none(f->store);
}

static enum status
neighbours_body(struct timed *t, void *arg)
{
	static const char *const keyspaces[] = { "k", "ks0", "ks_" };
	static const struct table_field field = { TEXT("x"), TEXT("int") };
	const struct table_schema keys = { .columns = hits_columns, .column_count = 2 };
	struct fixture *f = arg;
	struct table_types types;
	struct name_page page;

	for (size_t i = 0; i < COUNT(keyspaces); i++) {
		const struct str name = str_from_cstr(keyspaces[i]);
		const struct table_keyspace ks = { .name = name };
		const struct table_type type = { name, STR("ty"), &field, 1 };

		TRY(table_keyspace_create(t->tx, &ks, t->err));
		TRY(table_type_put(t->tx, &type, false, t->err));
		TRY(table_create(t->tx, arena_printf(f->arena, "%.*s.t", STR_ARG(name)), &keys, 0,
				 t->err));
	}
	TRY(table_list(t->tx, STR("ks"), STR(""), PAGE_TABLES, f->arena, &page));
	assert_int_equal(page.count, 2);
	assert_true(str_eq(page.names[0], STR("ks.hits")) && str_eq(page.names[1], STR("ks.msgs")));
	TRY(table_list(t->tx, STR(""), STR(""), PAGE_TABLES, f->arena, &page));
	assert_int_equal(page.count, 5);
	TRY(table_list(t->tx, STR(""), STR("ks.hits"), PAGE_TABLES, f->arena, &page));
	assert_int_equal(page.count, 3);
	assert_true(str_eq(page.names[0], STR("ks.msgs")));
	TRY(table_type_list(t->tx, STR("ks"), f->arena, &types, t->err));
	assert_int_equal(types.count, 0);
	TRY(table_type_list(t->tx, STR(""), f->arena, &types, t->err));
	assert_int_equal(types.count, 3);
	return STATUS_OK;
}

static void
a_keyspace_has_nothing_of_its_neighbours(void **state)
{
	struct fixture *f = *state;

	expect(f, NULL, neighbours_body, f, NULL);
}

struct many {
	struct fixture *f;
	size_t from;
};

static enum status
many_body(struct timed *t, void *arg)
{
	const struct table_schema keys = { .columns = hits_columns, .column_count = 2 };
	const struct many *m = arg;

	for (size_t i = m->from; i < MANY_TABLES && i < m->from + TABLES_A_TIME; i++)
		TRY(table_create(t->tx, arena_printf(m->f->arena, "ks.t%zu", i), &keys, 0, t->err));
	return STATUS_OK;
}

static enum status
drop_keyspace_body(struct timed *t, void *arg)
{
	(void)arg;
	return table_keyspace_drop(t->tx, STR("ks"), t->err);
}

static enum status
none_body(struct timed *t, void *arg)
{
	struct fixture *f = arg;
	struct name_page page;

	TRY(table_list(t->tx, STR(""), STR(""), PAGE_TABLES, f->arena, &page));
	assert_int_equal(page.count, 0);
	return STATUS_OK;
}

static void
a_keyspace_goes_with_all_its_tables(void **state)
{
	struct fixture *f = *state;
	struct many m = { .f = f };

	for (; m.from < MANY_TABLES; m.from += TABLES_A_TIME)
		expect(f, NULL, many_body, &m, NULL);
	expect(f, NULL, drop_keyspace_body, NULL, NULL);
	expect(f, NULL, none_body, f, NULL);
}

/* ---- Deletions out of dumps ---- */

static enum status
restore_body(struct timed *t, void *arg)
{
	return table_deletion_restore(t, arg);
}

static enum status
past_body(struct timed *t, void *arg)
{
	struct table_deletions *d;

	(void)arg;
	timed_at_us(t, 1);
	return table_deletions_open(t, &d);
}

static void
a_deletion_fits_the_table(void **state)
{
	static const char *const unfit = "nothing like that can be deleted in this table";
	static const struct doc_scalar bytes[] = {
		{ .kind = DOC_BYTES, .text = { "0123456789abcdef", 16 } },
		{ .kind = DOC_BYTES, .text = { "0123456789abcde", 15 } },
		{ .kind = DOC_TEXT, .text = { "0123456789abcdef", 16 } },
	};
	struct fixture *f = *state;
	const struct doc_scalar key[] = { text("a"), number(1) };
	const struct table_key row = { 97, key, 2 }, partition = { 97, key, 1 };
	const struct {
		struct table_deletion deletion;
		const char *refusal;
	} cases[] = {
		{ { .kind = TABLE_DELETION_ROW, .key = row }, NULL },
		{ { .kind = TABLE_DELETION_ROW, .key = partition }, NULL },
		{ { .kind = TABLE_DELETION_ROW, .key = { 97, key, 0 } }, unfit },
		{ { .kind = TABLE_DELETION_INSERTED, .key = row }, NULL },
		{ { .kind = TABLE_DELETION_INSERTED, .key = partition }, unfit },
		{ { .kind = TABLE_DELETION_COLUMN, .key = row, .column = MSG }, NULL },
		{ { .kind = TABLE_DELETION_COLUMN, .key = row, .column = OWNER }, unfit },
		{ { .kind = TABLE_DELETION_COLUMN, .key = row, .column = MSG_ID }, unfit },
		{ { .kind = TABLE_DELETION_COLUMN, .key = row, .column = 99 }, unfit },
		{ { .kind = TABLE_DELETION_COLUMN, .key = row }, unfit },
		{ { .kind = TABLE_DELETION_COLUMN, .key = partition, .column = OWNER }, NULL },
		{ { .kind = TABLE_DELETION_COLUMN, .key = partition, .column = MSG }, unfit },
		{ { .kind = TABLE_DELETION_COLUMN, .key = { 97, key, 0 }, .column = MSG }, unfit },
		{ { .kind = TABLE_DELETION_COLUMN, .key = row, .column = MSG_PROPS }, NULL },
		{ { .kind = TABLE_DELETION_COLUMN,
		    .key = row,
		    .column = MSG_PROPS,
		    .has_element = true,
		    .element = text("k") },
		  NULL },
		{ { .kind = TABLE_DELETION_COLUMN,
		    .key = row,
		    .column = MSG,
		    .has_element = true,
		    .element = text("k") },
		  unfit },
		{ { .kind = TABLE_DELETION_COLUMN,
		    .key = row,
		    .column = TAGS,
		    .has_element = true,
		    .element = bytes[0] },
		  NULL },
		{ { .kind = TABLE_DELETION_COLUMN,
		    .key = row,
		    .column = TAGS,
		    .has_element = true,
		    .element = bytes[1] },
		  unfit },
		{ { .kind = TABLE_DELETION_COLUMN,
		    .key = row,
		    .column = TAGS,
		    .has_element = true,
		    .element = bytes[2] },
		  unfit },
		{ { .kind = TABLE_DELETION_RANGE,
		    .key = partition,
		    .from = STR("\1a"),
		    .to = STR("\1b") },
		  NULL },
		{ { .kind = TABLE_DELETION_RANGE,
		    .key = partition,
		    .from = STR("\1a"),
		    .to = STR("\1a") },
		  unfit },
		{ { .kind = TABLE_DELETION_RANGE,
		    .key = partition,
		    .from = STR("\1b"),
		    .to = STR("\1a") },
		  unfit },
		{ { .kind = TABLE_DELETION_RANGE,
		    .key = row,
		    .from = STR("\1a"),
		    .to = STR("\1b") },
		  unfit },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct table_deletion d = cases[i].deletion;

		d.stamp = (int64_t)i;
		expect(f, "ks.msgs", restore_body, &d, cases[i].refusal);
	}
	expect(f, "ks.msgs", past_body, NULL, "the past has no deletions of its own");
	expect(f, "ks.hits", restore_body,
	       &(struct table_deletion){ .kind = TABLE_DELETION_ROW, .key = row },
	       "counters have no stamps");
	expect(f, "ks.msgs", restore_body,
	       &(struct table_deletion){
		       .kind = TABLE_DELETION_ROW, .key = row, .stamp = INT64_MIN },
	       "Out of bound timestamp");
	expect(f, "ks.msgs", restore_body,
	       &(struct table_deletion){
		       .kind = TABLE_DELETION_ROW, .key = row, .stamp = INT64_MIN + 1 },
	       NULL);
}

struct shortage {
	uint64_t nth;
	bool failed; /* there were so many allocations */
	bool opened;
};

static enum status
short_body(struct timed *t, void *arg)
{
	struct table_deletions *d = NULL;
	struct shortage *s = arg;
	enum status status;

	(void)mem_fail_only(s->nth);
	status = table_deletions_open(t, &d);
	s->failed = mem_fail_only(0) >= s->nth;
	s->opened = d;
	if (d)
		table_deletions_close(d);
	return status;
}

static void
deletions_are_not_read_without_memory(void **state)
{
	struct fixture *f = *state;
	struct shortage s = { .failed = true };

	while (s.failed) {
		enum status status;

		s.nth++;
		status = run(f, "ks.msgs", short_body, &s);
		if (status != STATUS_OK && status != STATUS_NOMEM && status != STATUS_LIMIT)
			fail_msg("%s: %s", status_name(status), f->err.text);
		assert_int_equal(s.opened, status == STATUS_OK);
	}
	assert_true(s.opened);
	assert_true(s.nth > 1);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		TEST(columns_have_names_and_types_of_bounded_length),
		TEST(columns_fit_into_their_places),
		TEST(a_schema_has_bounded_columns),
		TEST(properties_have_their_limits),
		TEST(a_table_that_is_made_has_what_was_given),
		TEST(a_schema_has_bounded_bytes),
		TEST(a_value_is_long_beyond_what_one_pair_has),
		TEST(an_alteration_that_cannot_be_is_refused),
		TEST(columns_are_added_up_to_the_limit),
		TEST(the_oldest_dropped_columns_are_forgotten),
		TEST(what_an_alteration_says_of_expiry_and_packing_holds),
		TEST(keyspaces_have_their_limits),
		TEST(types_have_their_limits),
		TEST(a_keyspace_has_nothing_of_its_neighbours),
		TEST(a_keyspace_goes_with_all_its_tables),
		TEST(a_deletion_fits_the_table),
		TEST(deletions_are_not_read_without_memory),
	};

	return cmocka_run_group_tests_name("table_limits", tests, NULL, NULL);
}
