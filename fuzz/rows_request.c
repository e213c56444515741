/*
 * Any bytes as bodies of requests for rows: what is read of them lies inside, and what they have
 * many of is as many as they say.
 */
#include <stdlib.h>

#include "door/rows/wire/request.h"
#include "look.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	MOST_BYTES = 1024 * 1024,
};

static void
expect_values(const struct rows_value *values, size_t count, struct str body)
{
	for (size_t i = 0; i < count; i++) {
		expect_inside(values[i].bytes, body);
		if (values[i].presence != ROWS_VALUE && values[i].bytes.len)
			abort();
	}
}

static void
expect_table(const struct rows_table *t, struct str body)
{
	expect_inside(t->schema, body);
	expect_inside(t->name, body);
	expect_inside(t->id, body);
	if (t->id.len && t->id.len != ROWS_ID_BYTES)
		abort();
}

static void
read_schemas(struct str body, struct arena *arena, struct err *err)
{
	struct rows_create create;
	struct rows_alter alter;
	struct str a, b;

	if (rows_create_read(body, arena, &create, err) == STATUS_OK) {
		if (create.count > ROWS_COLUMNS)
			abort();
		for (size_t i = 0; i < create.count; i++)
			expect_inside(create.columns[i].name, body);
	}
	if (rows_alter_read(body, arena, &alter, err) == STATUS_OK) {
		expect_table(&alter.table, body);
		for (size_t i = 0; i < alter.drop_count; i++)
			expect_inside(alter.drop[i], body);
		for (size_t i = 0; i < alter.rename_count; i++)
			expect_inside(alter.rename[i].to, body);
	}
	if (rows_names_read(body, &a, &b, err) == STATUS_OK) {
		expect_inside(a, body);
		expect_inside(b, body);
	}
}

static void
read_indexes(struct str body, struct arena *arena, struct err *err)
{
	struct rows_index_create create;
	struct rows_table table;
	uint32_t number;

	if (rows_index_create_read(body, arena, &create, err) == STATUS_OK) {
		expect_table(&create.table, body);
		expect_inside(create.name, body);
		expect_inside(create.spec, body);
		if (create.count > ROWS_KEY_COLUMNS || create.included_count > ROWS_KEY_COLUMNS)
			abort();
		for (size_t i = 0; i < create.condition_count; i++) {
			expect_values(&create.conditions[i].value, 1, body);
			if ((create.conditions[i].op == ROWS_CONDITION_NOT_NULL) !=
			    (create.conditions[i].value.presence == ROWS_NULL))
				abort();
		}
	}
	if (rows_index_build_read(body, &table, &number, err) == STATUS_OK)
		expect_table(&table, body);
}

static void
read_scan(struct str body, struct arena *arena, struct err *err)
{
	struct rows_scan scan;

	if (rows_scan_read(body, arena, &scan, err) != STATUS_OK)
		return;
	expect_table(&scan.table, body);
	expect_values(scan.equal, scan.equal_count, body);
	expect_values(scan.from.values, scan.from.count, body);
	expect_values(scan.to.values, scan.to.count, body);
	for (size_t i = 0; i < scan.filter_count; i++) {
		expect_values(&scan.filters[i].from, 1, body);
		expect_values(&scan.filters[i].to, 1, body);
	}
	expect_inside(scan.place, body);
	if (scan.groups > ROWS_KEY_COLUMNS || (scan.groups && !scan.sums))
		abort();
}

static void
read_many(struct str body, struct arena *arena, struct err *err)
{
	struct rows_value values[ROWS_COLUMNS];
	struct rows_write write;
	struct rows_key key;
	struct rows_get get;
	enum rows_op op;

	if (rows_get_read(body, arena, &get, err) == STATUS_OK) {
		for (uint32_t i = 0; i < get.key_count; i++) {
			rows_key_next(&get.keys, &key);
			expect_values(key.values, key.count, body);
		}
		if (get.keys.bad || get.keys.rest.len)
			abort();
	}
	if (rows_write_read(body, arena, &write, err) == STATUS_OK) {
		for (uint32_t i = 0; i < write.count; i++) {
			rows_write_next(&write.ops, write.column_count, &op, &key, values);
			expect_values(key.values, key.count, body);
			if (rows_op_has_values(op))
				expect_values(values, write.column_count, body);
		}
		if (write.ops.bad || write.ops.rest.len)
			abort();
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *arena = arena_new(MOST_BYTES);
	struct str body = str_of(data, size);
	struct err err = { 0 };

	if (!arena)
		return 0;
	read_schemas(body, arena, &err);
	read_indexes(body, arena, &err);
	read_scan(body, arena, &err);
	read_many(body, arena, &err);
	arena_free(arena);
	return 0;
}
