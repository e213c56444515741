/*
 * What operations on tables answer when a call of the store fails, when their memory ends and when
 * what they read is damaged; by what they conflict; and what a check finds (probe.h). How damage
 * is named.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "catalog/store_format.h"
#include "kv/keyspace.h"
#include "model/timed/tables/index.h"
#include "model/timed/tables/keyspaces.h"
#include "model/timed/tables/tables_int.h"
#include "probe.h"
#include "store.h"
#include "../sweep_probe.h"
#include "test_tables.h"

enum {
	START_MS = 1000 * 1000,
	LATER_MS = START_MS + 5000,       /* when operations run */
	DUE_MS = START_MS + 100000,       /* when all has expired that does */
	GRACE_MS = 11 * 24 * 3600 * 1000, /* after which no mark of a deletion is kept */
	TTL_MS = 60000,
	STAMP_US = 1000,
	LONG_BYTES = 250 * 1000, /* of a value in pieces */
};

#define PLAIN   "ks.plain" /* with an index and a default lifetime */
#define STAMPED "ks.stamped"
#define PACKED  "ks.packed"
#define HITS    "ks.hits"  /* counters */
#define WHOLE   "ks.whole" /* packed, and each row is a single pair */

struct world {
	char dir[64];
	struct kv_store *store;
	struct timed_clock clock;
	uint64_t now_ms;
};

static uint64_t
world_now(void *arg)
{
	return ((const struct world *)arg)->now_ms;
}

/* ---- Tables in the transaction of a probe ---- */

typedef enum status table_body(struct probe *p, struct timed *t);

static enum status
in_table(struct probe *p, const char *name, table_body *body)
{
	struct world *w = p->world;
	struct catalog_db *db = NULL;
	enum status status;
	struct timed t;

	TRY(catalog_open(p->tx, NULL, CATALOG_SPACE_TABLE, str_from_cstr(name), &db, &p->err));
	timed_init(&t, p->tx, db, &w->clock, &p->err);
	probe_begin(p);
	status = body(p, &t);
	catalog_db_unref(db);
	return status;
}

#define IN(table, label, body)                                                                     \
	static enum status body##_in_##label(struct probe *p)                                      \
	{                                                                                          \
		return in_table(p, table, body);                                                   \
	}

static const struct timed_expiry by_default = { TIMED_EXPIRY_DEFAULT, 0 };
static const struct timed_expiry never = { TIMED_EXPIRY_NEVER, 0 };
static const struct timed_expiry later = { TIMED_EXPIRY_AFTER, 9000 };

/* `id` -1: of the partition. */
static struct table_key
key_of(const char *user, int64_t id, struct doc_scalar parts[2])
{
	parts[0] = text(user);
	parts[1] = number(id);
	return (struct table_key){ .token = (int8_t)user[0],
				   .parts = parts,
				   .count = id < 0 ? 1 : 2 };
}

static enum status
write_row(struct timed *t, const char *user, int64_t id, bool inserts, struct timed_expiry expiry,
	  const struct table_change *changes, size_t count)
{
	struct doc_scalar parts[2];
	const struct table_write write = { .key = key_of(user, id, parts),
					   .inserts = inserts,
					   .expiry = expiry,
					   .changes = changes,
					   .change_count = count };

	return table_write(t, &write);
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define WRITE(t, user, id, inserts, expiry, ...)                                                   \
	write_row(t, user, id, inserts, expiry, (const struct table_change[]){ __VA_ARGS__ },      \
		  COUNT(((const struct table_change[]){ __VA_ARGS__ })))

static struct table_change
change(enum table_change_kind kind, uint64_t column, struct doc_scalar element,
       struct doc_scalar value, struct timed_expiry expiry)
{
	return (struct table_change){
		.kind = kind, .column = column, .element = element, .value = value, .expiry = expiry
	};
}

static struct table_change
put(uint64_t column, const char *value, struct timed_expiry expiry)
{
	return change(TABLE_CHANGE_PUT, column, text(""), text(value), expiry);
}

static struct table_change
element(const char *key, const char *value, struct timed_expiry expiry)
{
	return change(TABLE_CHANGE_PUT_ELEMENT, MSG_PROPS, text(key), text(value), expiry);
}

static struct table_change
clear(uint64_t column)
{
	return (struct table_change){ .kind = TABLE_CHANGE_CLEAR, .column = column };
}

/* ---- Writing ---- */

static enum status
insert(struct probe *p, struct timed *t)
{
	(void)p;
	return WRITE(t, "new", 1, true, later, put(MSG, "m", later), element("k", "v", never));
}

static enum status
update(struct probe *p, struct timed *t)
{
	(void)p;
	TRY(WRITE(t, "a", -1, false, by_default, put(OWNER, "other", never)));
	return WRITE(t, "a", 1, false, by_default, put(MSG, "other", by_default),
		     change(TABLE_CHANGE_APPEND, TAGS, text(""), text("last"), by_default),
		     change(TABLE_CHANGE_PREPEND, TAGS, text(""), text("first"), by_default));
}

static enum status
clear_cells(struct probe *p, struct timed *t)
{
	(void)p;
	return WRITE(
		t, "a", 1, false, by_default, clear(MSG), clear(TAGS),
		change(TABLE_CHANGE_CLEAR_ELEMENT, MSG_PROPS, text("k"), text(""), by_default));
}

static enum status
clear_row(struct probe *p, struct timed *t)
{
	struct doc_scalar parts[2];
	const struct table_key key = key_of("a", 1, parts);

	(void)p;
	return table_clear_row(t, &key);
}

static enum status
clear_range(struct probe *p, struct timed *t)
{
	const struct doc_scalar from = number(1), to = number(2);
	const struct table_edge after = { TIMED_BOUND_EXCLUSIVE, &from, 1 };
	const struct table_edge until = { TIMED_BOUND_INCLUSIVE, &to, 1 };
	struct doc_scalar parts[2];
	const struct table_key key = key_of("a", -1, parts);
	bool more;

	TRY(table_clear_range(t, &key, &after, &until, &more));
	buf_printf(&p->said, "%d", more);
	return STATUS_OK;
}

static enum status
clear_partition(struct probe *p, struct timed *t)
{
	struct doc_scalar parts[2];
	const struct table_key key = key_of("a", -1, parts);
	bool more;

	TRY(table_clear_partition(t, &key, &more));
	buf_printf(&p->said, "%d", more);
	return STATUS_OK;
}

static enum status
write_stamped(struct probe *p, struct timed *t)
{
	(void)p;
	TRY(table_stamp_set(t, STAMP_US + 2));
	return WRITE(t, "a", 1, true, never, put(MSG, "stamped", never),
		     element("gone", "again", never));
}

static enum status
clear_stamped(struct probe *p, struct timed *t)
{
	TRY(table_stamp_set(t, STAMP_US + 2));
	TRY(clear_row(p, t));
	return clear_range(p, t);
}

/* The marks of the row go, too. */
static enum status
put_back(struct probe *p, struct timed *t)
{
	table_restore_begin(t);
	return clear_row(p, t);
}

static enum status
add(struct probe *p, struct timed *t)
{
	(void)p;
	return WRITE(t, "a", 1, false, never,
		     change(TABLE_CHANGE_ADD, HITS_N, text(""), number(3), never));
}

/* A new row behind the others; then one that is there, of which the first read does not tell. */
static enum status
look_for_new(struct probe *p, struct timed *t)
{
	struct doc_scalar parts[2];
	struct table_key key = key_of("a", 9, parts);
	enum status status;
	struct table_gap g;
	bool is_new;

	table_gap_init(&g);
	status = table_gap_begin(&g, t, &key);
	for (int64_t id = 5; status == STATUS_OK && id > 0; id -= 4) {
		key = key_of("a", id, parts);
		status = table_gap_look(&g, t, &key, &is_new);
		buf_printf(&p->said, "%d", is_new);
	}
	table_gap_release(&g);
	return status;
}

IN(PLAIN, plain, insert)
IN(PLAIN, plain, look_for_new)
IN(PLAIN, plain, update)
IN(PLAIN, plain, clear_cells)
IN(PLAIN, plain, clear_row)
IN(PLAIN, plain, clear_range)
IN(PLAIN, plain, clear_partition)
IN(PACKED, packed, insert)
IN(PACKED, packed, update)
IN(PACKED, packed, clear_row)
IN(STAMPED, stamped, write_stamped)
IN(STAMPED, stamped, clear_stamped)
IN(STAMPED, stamped, put_back)
IN(STAMPED, stamped, update)
IN(HITS, hits, add)

static const struct probe_op writing[] = {
	{ "insert", insert_in_plain, "ok, conflicts 2 0+0; 1: C/O 2: C/CNCOCOC" },
	{ "look for new rows", look_for_new_in_plain, "ok, conflicts 0 1+0; 1: O/O" },
	{ "update", update_in_plain, "ok, conflicts 2 0+0; 1: C/O 2-3: C/CNCOC" },
	{ "clear cells", clear_cells_in_plain, "ok, conflicts 2 0+0; 1: C/CNCOC" },
	{ "clear a row", clear_row_in_plain, "ok, conflicts 2 0+0; 1: C/CNCOC" },
	{ "clear a range", clear_range_in_plain, "ok, conflicts 3 0+0; 1-4: O/O 5: C/CNCOC" },
	{ "clear a partition", clear_partition_in_plain,
	  "ok, conflicts 5 0+0; 1-9: O/O 10-11: C/CNCOC" },
	{ "insert a packed row", insert_in_packed, "ok, conflicts 1 0+0; 1: C/O" },
	{ "update a packed row", update_in_packed, "ok, conflicts 0 0+0; 1: C/O" },
	{ "clear a packed row", clear_row_in_packed, "ok, conflicts 0 0+0" },
	{ "write with a stamp", write_stamped_in_stamped,
	  "ok, conflicts 9 0+0; 1: C/O 2: C/CNCOCO 3: C/CNCOCOCOCOC 4-5: C/CNCOCO" },
	{ "clear with a stamp", clear_stamped_in_stamped,
	  "ok, conflicts 4 0+0; 1: C/O 2: C/CNCOCO 3: C/CNCOCOCOCOC 4: C/CNCOCO "
	  "5: CO/CNCOCO 6: CO/CNCOCOCO 7: CO/CNCOCO" },
	{ "put a row back", put_back_in_stamped, "ok, conflicts 1 0+0; 1: C/O 2: C/CNCOCOCOCOC" },
	{ "update without a stamp", update_in_stamped, "ok, conflicts 1 0+0; 1: C/O" },
	{ "add to a counter", add_in_hits, "ok, conflicts 0 0+0; 1: C/O" },
};

/* ---- Reading ---- */

static void
say_times(struct probe *p, uint64_t write_us, uint64_t expires_ms, int64_t stamp)
{
	buf_printf(&p->said, "@%llu-%llu-%lld", (unsigned long long)write_us,
		   (unsigned long long)expires_ms, (long long)stamp);
}

static void
say_row(struct probe *p, const struct table_row *row)
{
	draw_row(row, &p->said);
	say_times(p, row->write_us, row->expires_ms, row->stamp);
	for (size_t i = 0; i < row->cell_count; i++)
		say_times(p, row->cells[i].write_us, row->cells[i].expires_ms, row->cells[i].stamp);
}

static enum status
read_row(struct probe *p, struct timed *t)
{
	const struct table_wanted all = { .some = false };
	struct doc_scalar parts[2];
	const struct table_key key = key_of("a", 1, parts);
	struct table_row row;

	TRY(table_read(t, &key, true, &all, p->arena, &row));
	say_row(p, &row);
	return STATUS_OK;
}

static enum status
scan(struct probe *p, struct timed *t, const struct table_scan_options *options)
{
	struct table_scan *rows;
	struct table_row row;
	enum status status;

	TRY(table_scan_open(t, options, &rows));
	while ((status = table_scan_next(rows, p->arena, &row)) == STATUS_OK)
		say_row(p, &row);
	table_scan_close(rows);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
scan_all(struct probe *p, struct timed *t)
{
	const struct table_scan_options options = { .statics = true, .static_alone = true };

	return scan(p, t, &options);
}

static enum status
scan_partition(struct probe *p, struct timed *t)
{
	struct doc_scalar parts[2];
	const struct table_key key = key_of("a", -1, parts);
	const struct table_scan_options options = { .partition = &key, .reverse = true };

	return scan(p, t, &options);
}

static enum status
scan_index(struct probe *p, struct timed *t)
{
	const struct table_index *index = table_index_named(t->db, STR("i"));
	const struct table_index_options options = { .rows = 0 };
	struct table_index_scan *rows;
	struct table_row row;
	enum status status;

	TRY(table_index_open(t, index, &options, &rows));
	while ((status = table_index_next(rows, p->arena, &row)) == STATUS_OK)
		say_row(p, &row);
	table_index_close(rows);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
list_keyspaces(struct probe *p, struct timed *t)
{
	struct table_keyspaces all;

	TRY(table_keyspace_list(t->tx, p->arena, &all, &p->err));
	for (size_t i = 0; i < all.count; i++)
		buf_append_str(&p->said, all.keyspaces[i].name);
	return STATUS_OK;
}

static enum status
list_types(struct probe *p, struct timed *t)
{
	struct table_types all;

	TRY(table_type_list(t->tx, STR("ks"), p->arena, &all, &p->err));
	for (size_t i = 0; i < all.count; i++)
		buf_append_str(&p->said, all.types[i].name);
	return STATUS_OK;
}

static enum status
alter_keyspace(struct probe *p, struct timed *t)
{
	const struct table_property properties[] = { { STR("durable_writes"), STR("true") } };
	const struct table_keyspace ks = { .name = STR("ks"),
					   .properties = properties,
					   .property_count = 1 };

	return table_keyspace_alter(t->tx, &ks, &p->err);
}

static enum status
alter_table(struct probe *p, struct timed *t)
{
	const struct table_property properties[] = { { STR("comment"), STR("'other'") } };

	(void)p;
	return table_alter(
		t, &(struct table_alteration){ .properties = properties, .property_count = 1 });
}

static enum status
create_table(struct probe *p, struct timed *t)
{
	const struct table_schema schema = { .columns = hits_columns,
					     .column_count = COUNT(hits_columns) };

	return table_create(t->tx, STR("ks.new"), &schema, 0, &p->err);
}

static enum status
read_needs(struct probe *p, struct timed *t)
{
	struct table_needs needs;

	TRY(table_needs_read(t->tx, t->db, p->arena, &needs, &p->err));
	buf_append_str(&p->said, needs.keyspace.name);
	for (size_t i = 0; i < needs.type_count; i++)
		buf_append_str(&p->said, needs.types[i].name);
	return STATUS_OK;
}

IN(PLAIN, plain, alter_keyspace)
IN(PLAIN, plain, create_table)
IN(PLAIN, plain, read_needs)
IN(PLAIN, plain, alter_table)
IN(PLAIN, plain, list_keyspaces)
IN(PLAIN, plain, list_types)
IN(PLAIN, plain, read_row)
IN(PLAIN, plain, scan_all)
IN(PLAIN, plain, scan_partition)
IN(PLAIN, plain, scan_index)
IN(PACKED, packed, read_row)
IN(PACKED, packed, scan_all)
IN(STAMPED, stamped, scan_all)
IN(HITS, hits, scan_all)

static const struct probe_op reading[] = {
	{ "list keyspaces", list_keyspaces_in_plain, "ok, conflicts 0 0+0; 1: C/CNCOCOC 2: O/O" },
	{ "alter a keyspace", alter_keyspace_in_plain, "ok, conflicts 1 0+0; 1: C/CNCICIC" },
	{ "create a table", create_table_in_plain,
	  "ok, conflicts 6 0+0; 1: O/O 2: C/CN 3: C/CNCNCOCOCOC" },
	{ "read what a table needs", read_needs_in_plain,
	  "ok, conflicts 1 0+0; 1: C/CNCOCOC 2: O/O 3: C/CNCOCOC" },
	{ "alter a table", alter_table_in_plain,
	  "ok, conflicts 1 0+0; 1: C/O 2: C/CNCOCOCICICICICICICIC" },
	{ "list types", list_types_in_plain, "ok, conflicts 0 0+0; 1: O/O 2: C/CNCOCOC" },
	{ "read a row", read_row_in_plain,
	  "ok, conflicts 2 0+0; 1: C/O~ 2-3: C/CNC~C 4: C/CNC~C~C 5: C/CNC~C 6: "
	  "C/CNCOC" },
	{ "scan a table", scan_all_in_plain,
	  "ok, conflicts 1 0+0; 1: C/O~ 2: C/CNCOC 3-4: C/CNC~C 5: C/CNC~C~C 6-8: "
	  "C/CNC~C 9: C/CNC~C~C 10-11: C/CNC~C" },
	{ "scan a partition", scan_partition_in_plain,
	  "ok, conflicts 1 0+0; 1: C/O~ 2: C/CNC~C 3: C/CNC~C~C 4-6: C/CNC~C 7: "
	  "C/CNC~C~C 8-9: C/CNC~C 10: O/O" },
	{ "scan an index", scan_index_in_plain,
	  "ok, conflicts 4 0+0; 1: C/O~ 2-4: C/CNC 5-6: C/CNC~C 7: C/CNC~C~C "
	  "8-10: C/CNC~C 11: C/CNC~C~C 12-13: C/CNC~C" },
	{ "read a packed row", read_row_in_packed,
	  "ok, conflicts 2 0+0; 1: C/O~ 2-3: C/CNC~C~C 4: C/CNC~C 5: C/CNCOC" },
	{ "scan packed rows", scan_all_in_packed,
	  "ok, conflicts 1 0+0; 1: C/O~ 2: C/CNCOC 3-4: C/CNC~C~C 5: C/CNC~C 6-7: "
	  "C/CNC~C~C 8-9: C/CNC~C" },
	{ "scan rows with stamps", scan_all_in_stamped,
	  "ok, conflicts 1 0+0; 1: C/O~ 2: C/CNCOCOC 3: C/CNC~C~ 4: C/CNC~C~C 5: "
	  "C/CNC~C~C~C 6-7: C/CNC~C~C" },
	{ "scan counters", scan_all_in_hits, "ok, conflicts 1 0+0; 1: C/O 2-3: C/~" },
};

/* ---- The check ---- */

static const struct probe_op checks[] = {
	{ "verify", probe_verify,
	  "ok, conflicts 20 0+0; 1: ~/~O 2-5: ~/~O~O~ 6: ~/~O 7: ~/O 8-11: ~/~O~O 12: ~/O "
	  "13-14: ~/~O~O~ 15-24: ~O~/~O~O~O 25: ~/~O~O~O~O~O~O~O~O~ 26-27: ~/O 28: O/O 29: "
	  "~/~N~N~O~O~O~ 30: O/O 31: ~O/O 32-33: ~/O 34: ~/~O~O~O~O~O~O~O~O~O~ 35-42: ~/~O~ "
	  "43-46: O/ 47: O/O 48: ~/~N~N~O~O~O~ 49: O/O 50: ~O/O 51-52: ~/O 53: "
	  "~/~O~O~O~O~O~O~O~O~O~ 54: ~/~O~O~O~ 55-64: ~/~O~ 65-76: O/ 77: ~/~O 78: ~/~O~O~O~O~ "
	  "79: ~/~O~O~O~O~O~O~O~O~O~ 80: ~/~O~O~O~ 81-95: O/O 96: ~/~ 97-100: O/O 101: ~/~ "
	  "102: O/O 103: ~/~ 104-106: O/O 107: ~/~ 108: ~/O 109: O/O 110: O/~ 111-113: O/O 114: "
	  "~/~N~N~O~O~O~O~ 115: O/O 116: ~O/O 117-118: ~/O 119: ~/~O~O~O~O~O~O~O~O~O~ 120: "
	  "~/~O~O~ 121: ~/~O~O 122-125: ~/~O~O~ 126: O/O 127-129: O/O~O 130: O/ 131: O/O~O "
	  "132-133: O/ 134: O/O 135-137: ~/~O~ 138: ~/~O~O~O~ 139-146: O/ 147: ~/~N~N~O~O~O~ "
	  "148: O/O 149: ~O/O 150-151: ~/O 152-157: O/O" },
};

/* ---- Sweeping ---- */

IN(PLAIN, plain, sweep_dues)
IN(STAMPED, stamped, sweep_dues)
IN(PACKED, packed, sweep_dues)

static const struct probe_op sweeping[] = {
	{ "sweep a table", sweep_dues_in_plain,
	  "ok, conflicts 10 0+0; 1: C/O 2-7: O/ 8-9: CO/CNCOC~O 10: C/CNC~OC 11: "
	  "CO/CNC~OCO 12: C/CNCOC" },
	{ "sweep what has stamps", sweep_dues_in_stamped,
	  "ok, conflicts 2 0+0; 1: C/O 2-3: O/ 4: CO/CNCOC~CO" },
	{ "sweep packed rows", sweep_dues_in_packed,
	  "ok, conflicts 2 0+0; 1: C/O 2-3: O/ 4-5: CO/CNCOC~O" },
};

IN(STAMPED, stamped, sweep_left)

static const struct probe_op clearing[] = {
	{ "clear marks of deletions", sweep_left_in_stamped,
	  "ok, conflicts 6 0+0; 1: C/O 2-5: O/ 6-8: C/CNCOCO 9: CO/CNCOCO" },
};

/* ---- The world ---- */

static enum status
create_body(struct kv_tx *tx, void *arg)
{
	const struct table_property properties[] = { { STR("replication"), STR("{}") } };
	const struct table_keyspace ks = { .name = STR("ks"),
					   .properties = properties,
					   .property_count = 1 };
	const struct table_field fields[] = { { .name = STR("x"), .type = STR("int") } };
	const struct table_type point = {
		.keyspace = STR("ks"), .name = STR("point"), .fields = fields, .field_count = 1
	};
	const struct table_property packs[] = { { STR(TABLE_PROPERTY_PACKED), STR("true") } };
	const struct table_schema msgs = { .columns = msgs_columns,
					   .column_count = COUNT(msgs_columns) };
	const struct table_schema packed = { .columns = msgs_columns,
					     .column_count = COUNT(msgs_columns),
					     .properties = packs,
					     .property_count = 1 };
	const struct table_schema hits = { .columns = hits_columns,
					   .column_count = COUNT(hits_columns) };

	(void)arg;
	TRY(table_keyspace_create(tx, &ks, NULL));
	TRY(table_type_put(tx, &point, false, NULL));
	TRY(table_create(tx, STR(PLAIN), &msgs, TTL_MS, NULL));
	TRY(table_create(tx, STR(STAMPED), &msgs, 0, NULL));
	TRY(table_create(tx, STR(PACKED), &packed, 0, NULL));
	return table_create(tx, STR(HITS), &hits, 0, NULL);
}

static enum status
make_index(struct probe *p, struct timed *t)
{
	static const struct table_index_column column = { .column = MSG };
	const struct table_index terms = {
		.name = STR("i"), .spec = STR("(msg)"), .columns = &column, .column_count = 1
	};
	uint64_t ignored;

	(void)p;
	return table_index_create(t, &terms, &ignored);
}

static enum status
fill(struct probe *p, struct timed *t)
{
	(void)p;
	TRY(WRITE(t, "a", -1, false, never, put(OWNER, "me", never)));
	for (int64_t id = 1; id <= 2; id++)
		TRY(WRITE(t, "a", id, true, by_default, put(MSG, "text", by_default),
			  element("k", "v", later),
			  change(TABLE_CHANGE_APPEND, TAGS, text(""), text("tag"), never)));
	return WRITE(t, "b", 1, false, never, put(MSG, "updated", never));
}

/* Cells with stamps, and a mark of each kind of deletion. */
static enum status
fill_stamped(struct probe *p, struct timed *t)
{
	const struct doc_scalar from = number(5), to = number(7);
	const struct table_edge begin = { TIMED_BOUND_INCLUSIVE, &from, 1 };
	const struct table_edge end = { TIMED_BOUND_EXCLUSIVE, &to, 1 };
	struct doc_scalar parts[2];
	const struct table_key partition = key_of("a", -1, parts);
	bool more;

	TRY(table_stamp_set(t, STAMP_US));
	TRY(fill(p, t));
	TRY(WRITE(t, "a", 1, false, never, clear(MSG),
		  change(TABLE_CHANGE_CLEAR_ELEMENT, MSG_PROPS, text("gone"), text(""), never)));
	TRY(table_clear_range(t, &partition, &begin, &end, &more));
	return clear_row(p, t);
}

static enum status
fill_counters(struct probe *p, struct timed *t)
{
	TRY(add(p, t));
	return WRITE(t, "a", 2, false, never,
		     change(TABLE_CHANGE_ADD, HITS_N, text(""), number(-1), never));
}

/* A value that lies in several pieces. */
static enum status
fill_long(struct probe *p, struct timed *t)
{
	static char bytes[LONG_BYTES + 1];

	(void)p;
	memset(bytes, 'x', LONG_BYTES);
	return WRITE(t, "a", 2, false, never, put(MSG, bytes, never));
}

struct filling {
	struct world *w;
	const char *table;
	table_body *body;
};

static enum status
fill_body(struct kv_tx *tx, void *arg)
{
	struct filling *g = arg;
	struct catalog_db *db = NULL;
	struct err err = { 0 };
	enum status status;
	struct timed t;

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_TABLE, str_from_cstr(g->table), &db, NULL));
	timed_init(&t, tx, db, &g->w->clock, &err);
	status = g->body(NULL, &t);
	catalog_db_unref(db);
	return status;
}

static void
fill_with(struct world *w, const char *table, table_body *body)
{
	struct filling g = { w, table, body };
	struct err err = { 0 };

	if (kv_run(w->store, fill_body, &g, NULL, &err) != STATUS_OK)
		fail_msg("%s", err.text);
}

static int
setup(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct world *w = calloc(1, sizeof(*w));
	struct err err = { 0 };
	char url[256];

	assert_non_null(w);
	test_show_failures();
	tables_register();
	test_make_dir("probe", w->dir, sizeof(w->dir));
	probe_store_url(w->dir, url, sizeof(url));
	assert_int_equal(catalog_store_open(url, &options, &w->store, &err), STATUS_OK);
	w->clock = (struct timed_clock){ .now_ms = world_now, .arg = w };
	w->now_ms = START_MS;
	assert_int_equal(kv_run(w->store, create_body, NULL, NULL, &err), STATUS_OK);
	fill_with(w, PLAIN, make_index);
	fill_with(w, PLAIN, fill);
	fill_with(w, STAMPED, fill_stamped);
	fill_with(w, PACKED, fill);
	fill_with(w, HITS, fill_counters);
	w->now_ms = LATER_MS;
	*state = w;
	return 0;
}

static int
setup_long(void **state)
{
	int failed = setup(state);

	if (!failed)
		fill_with(*state, STAMPED, fill_long);
	return failed;
}

static int
teardown(void **state)
{
	struct world *w = *state;

	kv_close(w->store);
	test_remove_tree(w->dir);
	free(w);
	return 0;
}

static void
writers_hand_failures_on(void **state)
{
	struct world *w = *state;

	probe_each(w->store, w, writing, COUNT(writing));
}

static void
the_sweep_hands_failures_on(void **state)
{
	struct world *w = *state;

	w->now_ms = DUE_MS;
	probe_each(w->store, w, sweeping, COUNT(sweeping));
}

static void
clearing_marks_hands_failures_on(void **state)
{
	struct world *w = *state;

	w->now_ms = START_MS + GRACE_MS;
	probe_each(w->store, w, clearing, COUNT(clearing));
}

static void
readers_hand_failures_on(void **state)
{
	struct world *w = *state;

	probe_each_throughout(w->store, w, reading, COUNT(reading));
}

static void
checks_find_what_is_damaged(void **state)
{
	struct world *w = *state;

	probe_each_throughout(w->store, w, checks, COUNT(checks));
}

/* Of a pair that is lost some are missed: what nothing refers to, and what may be there or not. */
static void
checks_find_what_is_lost_or_foreign(void **state)
{
	struct world *w = *state;

	probe_pairs(w->store, w, &checks[0],
		    "1: O 2-6: ~ 7-12: O 13: ~ 14-27: O 28-31: ~ 32-33: O 34: ~ 35-37: O "
		    "38: ~ 39-40: O 41-47: ~ 48-49: O 50-51: ~ 52-54: O 55-58: ~ 59-62: O "
		    "63: ~ 64-69: O 70-74: ~ 75-82: O 83-84: ~ 85-86: O 87: ~ 88-91: O "
		    "92: ~",
		    "1-41: ~ 42-47: O 48-61: ~ 62-63: O 64-82: ~ 83-84: O 85-92: ~");
}

/* ---- What cannot be read, or has no memory ---- */

struct schema_damage {
	struct buf key;
	struct str value; /* in place of the schema */
};

static enum status
schema_damage_body(struct kv_tx *tx, void *arg)
{
	struct schema_damage *d = arg;
	struct catalog_db *db;
	enum status status;

	/* Once it is damaged the table cannot be opened any more. */
	if (!d->key.len) {
		TRY(catalog_open(tx, NULL, CATALOG_SPACE_TABLE, STR(PLAIN), &db, NULL));
		status = table_schema_key(db, &d->key);
		catalog_db_unref(db);
		TRY(status);
	}
	return kv_set(tx, buf_str(&d->key), d->value);
}

static enum status
open_body(struct kv_tx *tx, void *arg)
{
	struct catalog_db *db;

	/* In a transaction that has written, so that the table is not one that is known. */
	TRY(kv_set(tx, STR("t/written"), STR("")));
	TRY(catalog_open(tx, NULL, CATALOG_SPACE_TABLE, STR(PLAIN), &db, arg));
	catalog_db_unref(db);
	return STATUS_OK;
}

static void
a_schema_that_cannot_be_read_is_named(void **state)
{
	struct schema_damage d = { BUF_INIT(TIMED_SCHEMA_KEY_BYTES), STR("damaged") };
	AUTO(buf_release) struct buf newer = BUF_INIT(16);
	struct world *w = *state;
	struct err err = { 0 };

	assert_int_equal(kv_run(w->store, schema_damage_body, &d, NULL, &err), STATUS_OK);
	assert_int_equal(kv_run(w->store, open_body, &err, NULL, &err), STATUS_CORRUPT);
	assert_string_equal(err.text, "the schema of the table cannot be read");
	tuple_put_u64(&newer, 99);
	d.value = buf_str(&newer);
	assert_int_equal(kv_run(w->store, schema_damage_body, &d, NULL, &err), STATUS_OK);
	assert_int_equal(kv_run(w->store, open_body, &err, NULL, &err), STATUS_NEWER);
	buf_release(&d.key);
	assert_null(strstr(err.text, "cannot be read"));
}

static enum status
keyspace_damage_body(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf key = BUF_INIT(100);

	(void)arg;
	tuple_put_u64(&key, KV_ROOT);
	tuple_put_u64(&key, KV_ROOT_KEYSPACES);
	tuple_put_str(&key, STR("ks"));
	TRY(buf_status(&key));
	return kv_set(tx, buf_str(&key), STR("damaged"));
}

static enum status
keyspace_read_body(struct kv_tx *tx, void *arg)
{
	struct arena *arena = arena_new(1024 * 1024);
	struct table_keyspace ks;
	enum status status;

	assert_non_null(arena);
	status = table_keyspace_read(tx, STR("ks"), arena, &ks, arg);
	arena_free(arena);
	return status;
}

static void
a_keyspace_that_cannot_be_read_is_named(void **state)
{
	struct world *w = *state;
	struct err err = { 0 };

	assert_int_equal(kv_run(w->store, keyspace_damage_body, NULL, NULL, &err), STATUS_OK);
	assert_int_equal(kv_run(w->store, keyspace_read_body, &err, NULL, &err), STATUS_CORRUPT);
	assert_string_equal(err.text, "the keyspace \"ks\" cannot be read");
}

static enum status
alter_failing_body(struct kv_tx *tx, void *arg)
{
	const struct table_property properties[] = { { STR("durable_writes"), STR("false") } };
	const struct table_keyspace ks = { .name = STR("ks"),
					   .properties = properties,
					   .property_count = 1 };
	uint64_t *failing = arg;
	struct table_keyspace is;
	bool altered = false;
	struct arena *arena;
	enum status status;

	(void)mem_fail_only(*failing);
	status = table_keyspace_alter(tx, &ks, NULL);
	if (mem_fail_only(0) < *failing)
		*failing = 0;
	if (status == STATUS_NOMEM || status == STATUS_LIMIT)
		return STATUS_OK;
	assert_int_equal(status, STATUS_OK);
	arena = arena_new(1024 * 1024);
	assert_non_null(arena);
	status = table_keyspace_read(tx, STR("ks"), arena, &is, NULL);
	for (size_t i = 0; status == STATUS_OK && i < is.property_count; i++)
		altered |= str_eq(is.properties[i].name, STR("durable_writes")) &&
			   str_eq(is.properties[i].value, STR("false"));
	assert_true(altered);
	arena_free(arena);
	/* It stays as it was for the next attempt. */
	return status == STATUS_OK ? STATUS_EXISTS : status;
}

static void
a_keyspace_is_altered_or_memory_has_ended(void **state)
{
	struct world *w = *state;
	struct err err = { 0 };
	uint64_t failing = 0;

	do {
		uint64_t nth = ++failing;
		enum status status = kv_run(w->store, alter_failing_body, &nth, NULL, &err);

		if (!nth) {
			assert_int_equal(status, STATUS_EXISTS);
			break;
		}
	} while (failing < 1000);
	assert_in_range(failing, 3, 999);
}

/* ---- Whole rows ---- */

enum { /* ids of columns of WHOLE, whose key is `k` */
	WHOLE_A = 2,
	WHOLE_B,
};

static enum status
create_whole_body(struct kv_tx *tx, void *arg)
{
	static const struct table_column columns[] = {
		{ .name = TEXT("k"), .kind = TABLE_HASH },
		{ .name = TEXT("a"), .kind = TABLE_REGULAR },
		{ .name = TEXT("b"), .kind = TABLE_REGULAR },
	};
	const struct table_property packs[] = { { STR(TABLE_PROPERTY_PACKED), STR("true") } };
	const struct table_schema whole = { .columns = columns,
					    .column_count = COUNT(columns),
					    .properties = packs,
					    .property_count = 1 };

	(void)arg;
	return table_create(tx, STR(WHOLE), &whole, 0, NULL);
}

static enum status
whole_insert_one(struct timed *t, int64_t n)
{
	const struct doc_scalar k = number(n);
	const struct table_change changes[] = { put(WHOLE_A, "a", never),
						put(WHOLE_B, "b", never) };
	const struct table_write write = { .key = { 1, &k, 1 },
					   .inserts = true,
					   .expiry = never,
					   .changes = changes,
					   .change_count = COUNT(changes) };

	return table_write(t, &write);
}

static enum status
fill_whole(struct probe *p, struct timed *t)
{
	(void)p;
	assert_true(table_schema_of(t->db)->whole);
	for (int64_t n = 1; n <= 3; n++)
		TRY(whole_insert_one(t, n));
	return STATUS_OK;
}

static int
setup_whole(void **state)
{
	int failed = setup(state);
	struct world *w = *state;
	struct err err = { 0 };

	assert_int_equal(kv_run(w->store, create_whole_body, NULL, NULL, &err), STATUS_OK);
	fill_with(w, WHOLE, fill_whole);
	return failed;
}

static enum status
whole_insert(struct probe *p, struct timed *t)
{
	(void)p;
	return whole_insert_one(t, 4);
}

static enum status
whole_clear(struct probe *p, struct timed *t)
{
	const struct doc_scalar k = number(1);
	const struct table_key key = { 1, &k, 1 };

	(void)p;
	return table_clear_row(t, &key);
}

/* `some`: of these columns alone. */
static enum status
whole_read(struct probe *p, struct timed *t, int64_t n, bool some, uint64_t *ids, size_t count)
{
	const struct table_wanted wanted = { .some = some, .ids = ids, .count = count };
	const struct doc_scalar k = number(n);
	const struct table_key key = { 1, &k, 1 };
	struct table_row row;

	TRY(table_read(t, &key, false, &wanted, p->arena, &row));
	say_row(p, &row);
	return STATUS_OK;
}

static enum status
whole_read_all(struct probe *p, struct timed *t)
{
	return whole_read(p, t, 1, false, NULL, 0);
}

static enum status
whole_read_some(struct probe *p, struct timed *t)
{
	uint64_t ids[] = { WHOLE_B };

	return whole_read(p, t, 2, true, ids, COUNT(ids));
}

static enum status
whole_is_there(struct probe *p, struct timed *t)
{
	return whole_read(p, t, 3, true, NULL, 0);
}

static enum status
whole_is_none(struct probe *p, struct timed *t)
{
	return whole_read(p, t, 5, true, NULL, 0);
}

static enum status
whole_scan(struct probe *p, struct timed *t)
{
	const struct table_scan_options options = { .reverse = false };

	return scan(p, t, &options);
}

IN(WHOLE, whole, whole_insert)
IN(WHOLE, whole, whole_clear)
IN(WHOLE, whole, whole_read_all)
IN(WHOLE, whole, whole_read_some)
IN(WHOLE, whole, whole_is_there)
IN(WHOLE, whole, whole_is_none)
IN(WHOLE, whole, whole_scan)

static const struct probe_op whole[] = {
	{ "insert a whole row", whole_insert_in_whole, "ok, conflicts 0 0+0; 1: C/O" },
	{ "clear a whole row", whole_clear_in_whole, "ok, conflicts 0 0+0" },
	{ "read a whole row", whole_read_all_in_whole,
	  "ok, conflicts 1 0+0; 1: C/O 2: C~C/CNC~C~C" },
	{ "read a column of a whole row", whole_read_some_in_whole,
	  "ok, conflicts 1 0+0; 1: C/O 2: C~C/CNC~COC~C" },
	{ "ask for a whole row", whole_is_there_in_whole,
	  "ok, conflicts 1 0+0; 1: C/O 2: CO/CNC~CO" },
	{ "ask for a whole row in vain", whole_is_none_in_whole,
	  "not_found, conflicts 1 0+0; 1: C/O" },
	{ "scan whole rows", whole_scan_in_whole, "ok, conflicts 1 0+0; 1: C/O 2-4: C~C/CNC~C~C" },
};

static void
whole_rows_hand_failures_on(void **state)
{
	struct world *w = *state;

	probe_each_throughout(w->store, w, whole, COUNT(whole));
}

static void
a_row_has_elements_of_bytes(void **state)
{
	static const struct table_schema schema = {
		.columns = msgs_columns, .column_count = 1, .key_count = 1, .hash_count = 1
	};
	struct doc_scalar k = number(1);
	const struct table_place beside = { .key = &k, .key_count = 1 };
	AUTO(buf_release) struct buf tail = BUF_INIT(64);
	struct arena *arena = arena_new(4096);
	struct table_place place;
	size_t len;

	(void)state;
	tuple_put_u64(&tail, 3);
	tuple_put_u64(&tail, 3);
	assert_int_equal(table_place_row(&schema, buf_str(&tail), arena, &place, &len),
			 STATUS_CORRUPT);
	assert_int_equal(table_place_row_beside(&schema, &beside, buf_str(&tail), arena, &place),
			 STATUS_CORRUPT);
	arena_free(arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_row_has_elements_of_bytes),
		cmocka_unit_test_setup_teardown(a_keyspace_that_cannot_be_read_is_named, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_schema_that_cannot_be_read_is_named, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_keyspace_is_altered_or_memory_has_ended, setup,
						teardown),
		cmocka_unit_test_setup_teardown(writers_hand_failures_on, setup, teardown),
		cmocka_unit_test_setup_teardown(the_sweep_hands_failures_on, setup, teardown),
		cmocka_unit_test_setup_teardown(clearing_marks_hands_failures_on, setup, teardown),
		cmocka_unit_test_setup_teardown(readers_hand_failures_on, setup, teardown),
		cmocka_unit_test_setup_teardown(whole_rows_hand_failures_on, setup_whole, teardown),
		cmocka_unit_test_setup_teardown(checks_find_what_is_damaged, setup, teardown),
		cmocka_unit_test_setup_teardown(checks_find_what_is_lost_or_foreign, setup_long,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
