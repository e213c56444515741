/*
 * What operations on collections answer when a call of the store fails, when their memory ends and
 * when what they read is damaged; and by what they conflict (probe.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bson/json.h"
#include "catalog/store_format.h"
#include "index/engine/scan.h"
#include "model/plain/index.h"
#include "model/plain/plain.h"
#include "probe.h"
#include "store.h"

enum {
	TEXT_BYTES = 4 * 1024 * 1024,
	LONG_BYTES = PLAIN_WHOLE_BYTES + 10, /* of a document that lies in chunks */
	PARTS = 2,
	DOCS = 32, /* that the operations of a test are given, at most */
};

#define PACKED   "db.packed"
#define EXPLODED "db.exploded"

struct world {
	char dir[64];
	struct kv_store *store;
	struct arena *arena;        /* of documents that operations are given */
	struct plain_doc staged[2]; /* written ahead of what inserts them; of one test */
	/* Made once, in an operation's first run: in later ones its memory ends. */
	struct {
		const char *json;
		struct str doc;
	} known[DOCS];
	size_t known_count;
};

static struct str
doc_of(struct world *w, const char *json)
{
	struct buf out = BUF_INIT(TEXT_BYTES);
	struct err err;
	struct str doc;

	for (size_t i = 0; i < w->known_count; i++)
		if (w->known[i].json == json)
			return w->known[i].doc;
	if (bson_json_read(str_from_cstr(json), &out, &err) != STATUS_OK)
		fail_msg("%s: %s", json, err.text);
	doc = arena_dup(w->arena, buf_str(&out));
	buf_release(&out);
	assert_true(w->known_count < DOCS);
	w->known[w->known_count].json = json;
	w->known[w->known_count++].doc = doc;
	return doc;
}

/* ---- A collection in the transaction of a probe ---- */

typedef enum status plain_body(struct probe *p, struct plain *c);

static enum status
in_collection(struct probe *p, const char *name, plain_body *body)
{
	struct catalog_db *db = NULL;
	struct plain c;
	enum status status;

	TRY(catalog_open(p->tx, NULL, CATALOG_SPACE_MONGO, str_from_cstr(name), &db, &p->err));
	plain_init(&c, p->tx, db, 1, &p->err);
	probe_begin(p);
	status = body(p, &c);
	catalog_db_unref(db);
	return status;
}

#define IN_EACH(body)                                                                              \
	static enum status body##_packed(struct probe *p)                                          \
	{                                                                                          \
		return in_collection(p, PACKED, body);                                             \
	}                                                                                          \
	static enum status body##_exploded(struct probe *p)                                        \
	{                                                                                          \
		return in_collection(p, EXPLODED, body);                                           \
	}

static const struct bson_value id_1 = BSON_OF_INT32(1);
static const struct bson_value id_2 = BSON_OF_INT32(2);
static const struct bson_value id_9 = BSON_OF_INT32(9);
static const struct bson_value id_long = BSON_OF_INT32(5);

static void
say(struct probe *p, struct str s)
{
	buf_append_str(&p->said, s);
	buf_append_byte(&p->said, '|');
}

/* ---- Reading ---- */

static enum status
get(struct probe *p, struct plain *c)
{
	struct str doc;

	TRY(plain_get(c, &id_1, KV_READ, p->arena, &doc));
	say(p, doc);
	return STATUS_OK;
}

static enum status
get_long(struct probe *p, struct plain *c)
{
	struct str doc;

	TRY(plain_get(c, &id_long, KV_READ, p->arena, &doc));
	say(p, doc);
	return STATUS_OK;
}

static enum status
get_path(struct probe *p, struct plain *c)
{
	struct bson_value v;

	TRY(plain_get_path(c, &id_1, STR("a.1.b"), KV_READ, p->arena, &v));
	bson_json_write_value(&p->said, &v, BSON_JSON_RELAXED);
	return STATUS_OK;
}

static enum status
get_parts(struct probe *p, struct plain *c)
{
	static const struct plain_part parts[PARTS] = { { STR("a.1"), true }, { STR("t"), false } };
	bool whole;
	struct str doc;

	TRY(plain_get_parts(c, &id_1, parts, PARTS, KV_READ, p->arena, &doc, &whole));
	say(p, doc);
	return STATUS_OK;
}

static enum status
scan_all(struct probe *p, struct plain *c)
{
	const struct plain_range range = { .mode = KV_READ };
	struct plain_scan s = { 0 };
	enum status status = plain_scan_open(&s, c, &range);
	struct str doc;

	while (status == STATUS_OK) {
		status = plain_scan_next(&s, p->arena, &doc);
		if (status == STATUS_OK)
			say(p, doc);
	}
	plain_scan_close(&s);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
count(struct probe *p, struct plain *c)
{
	uint64_t n;

	TRY(plain_count(c, &n));
	buf_printf(&p->said, "%llu", (unsigned long long)n);
	return STATUS_OK;
}

static enum status
find_new(struct probe *p, struct plain *c)
{
	const struct bson_value ids[] = { id_1, id_9, id_2 };
	bool new[3];

	TRY(plain_find_new(c, ids, 3, p->arena, new));
	buf_printf(&p->said, "%d%d%d", new[0], new[1], new[2]);
	return STATUS_OK;
}

static enum status
log_read(struct probe *p, struct plain *c)
{
	const struct catalog_seq beginning = { { 0 } };
	struct plain_event *events;
	size_t n;

	TRY(plain_log_read(c, &beginning, 100, p->arena, &events, &n));
	for (size_t i = 0; i < n; i++) {
		bson_json_write_value(&p->said, &events[i].id, BSON_JSON_RELAXED);
		buf_printf(&p->said, "%d %llu %lld", events[i].kind,
			   (unsigned long long)events[i].ms, (long long)events[i].number);
		say(p, events[i].detail);
		say(p, events[i].session);
	}
	return STATUS_OK;
}

static enum status
log_last(struct probe *p, struct plain *c)
{
	struct catalog_seq seq;

	TRY(plain_log_last(c, &seq));
	say(p, str_of(seq.bytes, sizeof(seq.bytes)));
	return STATUS_OK;
}

static enum status
image_read(struct probe *p, struct plain *c)
{
	struct catalog_seq seq;
	struct str doc;

	TRY(plain_log_last(c, &seq));
	for (int after = 0; after < 2; after++) {
		TRY(plain_image_read(c, &seq, after, p->arena, &doc));
		say(p, doc);
	}
	return STATUS_OK;
}

static enum status
open_only(struct probe *p)
{
	struct catalog_db *db = NULL;

	probe_begin(p);
	TRY(catalog_open(p->tx, NULL, CATALOG_SPACE_MONGO, STR(PACKED), &db, &p->err));
	buf_printf(&p->said, "%llu %d %zu", (unsigned long long)db->number, plain_scheme_of(db),
		   index_set_of(db) ? index_set_of(db)->count : 0);
	say(p, plain_options_of(db));
	catalog_db_unref(db);
	return STATUS_OK;
}

IN_EACH(get)
IN_EACH(get_long)
IN_EACH(get_path)
IN_EACH(get_parts)
IN_EACH(scan_all)
IN_EACH(count)
IN_EACH(find_new)
IN_EACH(log_read)
IN_EACH(log_last)
IN_EACH(image_read)

static const struct probe_op reading[] = {
	{ "open", open_only,
	  "ok, conflicts 2 0+0; 1: C/CNCNC~COCOC 2-3: O/O 4: C/CNCOCOCOCOCOCOCO" },
	{ "get", get_packed, "ok, conflicts 1 0+0; 1: C/CNC~" },
	{ "get, exploded", get_exploded,
	  "ok, conflicts 1 0+0; 1: C/CNCOCOC~C 2: C/C 3: C/C~C 4: C/CO 5: C/C~C 6: C/C" },
	{ "get in chunks", get_long_packed, "ok, conflicts 1 0+0; 1: C/CNC 2: C/C~ 3: C/~" },
	{ "get in chunks, exploded", get_long_exploded,
	  "ok, conflicts 1 0+0; 1: C/CNCOCOC~C 2: C/C" },
	{ "get a path", get_path_packed, "ok, conflicts 1 0+0; 1: C/CNC0O0O0O0O0~0O" },
	{ "get a path, exploded", get_path_exploded, "ok, conflicts 2 0+0; 1: C/CO 2: C/C~C" },
	{ "get parts", get_parts_packed, "ok, conflicts 1 0+0; 1: C/CNC~" },
	{ "get parts, exploded", get_parts_exploded,
	  "ok, conflicts 6 0+0; 1: C/CNCOCOC~C 2: C/COC 3: C/CO 4: C/C~CO 5-6: C/COCO 7: "
	  "C/C~C" },
	{ "scan", scan_all_packed,
	  "ok, conflicts 1 0+0; 1-2: C/CNC~ 3: C/CNC 4: C/CNC~ 5: C/C~ 6: C/~" },
	{ "scan, exploded", scan_all_exploded,
	  "ok, conflicts 1 0+0; 1: C/CNCOCOC~C 2: C/C 3: C/C~C 4: C/CO 5: C/C~C 6: C/C 7: "
	  "C/CNCOCOC~C 8-9: C/C 10: C/CNCOCOC~C 11: C/C 12: C/CNCOCOC~C" },
	{ "count", count_packed, "ok, conflicts 0 0+0; 1: C/~" },
	{ "count, exploded", count_exploded, "ok, conflicts 0 0+0; 1: C/~" },
	{ "find new ones", find_new_packed, "ok, conflicts 3 0+0; 1-3: O/O" },
	{ "find new ones, exploded", find_new_exploded, "ok, conflicts 3 0+0; 1-3: O/O" },
	{ "read the log", log_read_packed,
	  "ok, conflicts 0 0+0; 1-3: C/CNC~C~C~C~C~ 4: C/CNC~C~C~C~C 5: C/CNC~C~C~C~C~" },
	{ "read the log, exploded", log_read_exploded,
	  "ok, conflicts 0 0+0; 1-3: C/CNC~C~C~C~C~ 4: C/CNC~C~C~C~C 5: C/CNC~C~C~C~C~" },
	{ "the last of the log", log_last_packed, "ok, conflicts 0 0+0; 1: O/O" },
	{ "the last of the log, exploded", log_last_exploded, "ok, conflicts 0 0+0; 1: O/O" },
	{ "images", image_read_packed, "ok, conflicts 0 0+0; 1: O/O 2-3: 0C/C~" },
	{ "images, exploded", image_read_exploded, "ok, conflicts 0 0+0; 1: O/O 2-3: 0C/C~" },
};

/* ---- Writing ---- */

static enum status
insert(struct probe *p, struct plain *c)
{
	const struct plain_doc doc = plain_doc_of(
		doc_of(p->world, "{\"_id\":9,\"a\":[1,{\"b\":2}],\"t\":\"t\"}"));

	return plain_insert(c, &doc, p->arena);
}

static enum status
insert_staged(struct probe *p, struct plain *c)
{
	const struct world *w = p->world;

	return plain_insert(c, &w->staged[plain_scheme_of(c->db) != PLAIN_PACKED], p->arena);
}

static enum status
insert_twice(struct probe *p, struct plain *c)
{
	const struct plain_doc doc = plain_doc_of(doc_of(p->world, "{\"_id\":1}"));

	return plain_insert(c, &doc, p->arena);
}

static enum status
replace(struct probe *p, struct plain *c)
{
	const struct plain_doc doc = plain_doc_of(doc_of(p->world, "{\"_id\":1,\"a\":7}"));

	return plain_replace(c, &doc, false, PLAIN_EVENT_REPLACE, STR(""), p->arena);
}

static enum status
upsert(struct probe *p, struct plain *c)
{
	const struct plain_doc doc = plain_doc_of(doc_of(p->world, "{\"_id\":9,\"a\":7}"));

	return plain_replace(c, &doc, true, PLAIN_EVENT_REPLACE, STR(""), p->arena);
}

static enum status
replace_long(struct probe *p, struct plain *c)
{
	const struct plain_doc doc = plain_doc_of(doc_of(p->world, "{\"_id\":5,\"a\":7}"));

	return plain_replace(c, &doc, false, PLAIN_EVENT_REPLACE, STR(""), p->arena);
}

static enum status delete (struct probe *p, struct plain *c) {
	return plain_delete(c, &id_1, doc_of(p->world, "{\"d\":1}"), p->arena);
}

static enum status
update(struct probe *p, struct plain *c)
{
	static const struct bson_value three = BSON_OF_INT32(3);
	const struct plain_change changes[] = { { STR("a.1.b"), &three },
						{ STR("t"), NULL },
						{ STR("n.m"), &three } };
	bool changed;

	TRY(plain_update(c, &id_1, changes, 3, STR(""), p->arena, &changed));
	buf_printf(&p->said, "%d", changed);
	return STATUS_OK;
}

static enum status
log_clear(struct probe *p, struct plain *c)
{
	bool more;

	TRY(plain_log_clear(c, 2, &more));
	buf_printf(&p->said, "%d", more);
	return STATUS_OK;
}

static enum status
with_images(struct probe *p, struct plain *c)
{
	const struct plain_doc doc = plain_doc_of(doc_of(p->world, "{\"_id\":1,\"a\":8}"));

	c->before = plain_doc_of(doc_of(p->world, "{\"_id\":1,\"a\":7}"));
	c->after = doc;
	return plain_replace(c, &doc, false, PLAIN_EVENT_REPLACE, STR(""), p->arena);
}

static enum status
options_set(struct probe *p, struct plain *c)
{
	return plain_options_set(p->tx, c->db, doc_of(p->world, "{\"o\":1}"), &p->err);
}

IN_EACH(insert)
IN_EACH(insert_staged)
IN_EACH(insert_twice)
IN_EACH(replace)
IN_EACH(upsert)
IN_EACH(replace_long)
IN_EACH(delete)
IN_EACH(update)
IN_EACH(log_clear)
IN_EACH(with_images)
IN_EACH(options_set)

static const struct probe_op writing[] = {
	{ "insert", insert_packed, "ok, conflicts 3 0+0" },
	{ "insert, exploded", insert_exploded, "ok, conflicts 3 0+1" },
	{ "insert what is there", insert_twice_packed, "exists, conflicts 1 0+0; 1: O/O" },
	{ "insert what is there, exploded", insert_twice_exploded,
	  "exists, conflicts 1 0+0; 1: O/O" },
	{ "replace", replace_packed, "ok, conflicts 1 0+0; 1: C/CNCO" },
	{ "replace, exploded", replace_exploded,
	  "ok, conflicts 4 0+1; 1: C/CNCOCOCOC 2: C/COC 3: C/CO 4: C/C 5: C/COC 6: C/CO "
	  "7: C/COC" },
	{ "upsert", upsert_packed, "ok, conflicts 2 0+0" },
	{ "upsert, exploded", upsert_exploded, "ok, conflicts 2 0+1" },
	{ "replace chunks", replace_long_packed, "ok, conflicts 1 0+0; 1: C/CNC 2: C/CO 3: C/O" },
	{ "replace chunks, exploded", replace_long_exploded,
	  "ok, conflicts 3 0+1; 1: C/CNCOCOCOC 2: C/C" },
	{ "delete", delete_packed, "ok, conflicts 1 0+0; 1: C/CNCO" },
	{ "delete, exploded", delete_exploded,
	  "ok, conflicts 4 0+0; 1: C/CNCOCOCOC 2: C/COC 3: C/CO 4: C/C 5: C/COC 6: C/CO "
	  "7: C/COC" },
	{ "update", update_packed, "ok, conflicts 2 0+0; 1: C/CNCIO" },
	{ "update, exploded", update_exploded,
	  "ok, conflicts 11 0+0; 1: C/CNCOCOCOC 2: C/COC 3: C/CO 4: C/C 5: C/COC 6: C/CO "
	  "7: C/COC 8: C/CO 9: C/COCO 10-11: C/COC" },
	{ "clear the log", log_clear_packed, "ok, conflicts 0 0+0; 1-5: O/O" },
	{ "clear the log, exploded", log_clear_exploded, "ok, conflicts 0 0+0; 1-5: O/O" },
	{ "replace with images", with_images_packed, "ok, conflicts 1 0+0; 1: C/CNCO" },
	{ "replace with images, exploded", with_images_exploded,
	  "ok, conflicts 4 0+1; 1: C/CNCOCOCOC 2: C/COC 3: C/CO 4: C/C 5: C/COC 6: C/CO "
	  "7: C/COC" },
	{ "set options", options_set_packed, "ok, conflicts 1 0+0; 1: C/CNCNC0COCOC" },
	{ "set options, exploded", options_set_exploded, "ok, conflicts 1 0+0; 1: C/CNCNC0COCOC" },
};

static const struct probe_op staged[] = {
	{ "insert what was written ahead", insert_staged_packed,
	  "ok, conflicts 2 0+0; 1: C/CNCOC" },
	{ "insert what was written ahead, exploded", insert_staged_exploded,
	  "ok, conflicts 2 0+0; 1: C/CNCOC" },
};

/* ---- Collections, indexes, notices ---- */

static enum status
create(struct probe *p)
{
	probe_begin(p);
	return plain_create(p->tx, STR("db.new"), PLAIN_PACKED, doc_of(p->world, "{\"o\":1}"),
			    &p->err);
}

static enum status
create_again(struct probe *p)
{
	probe_begin(p);
	return plain_create(p->tx, STR(PACKED), PLAIN_PACKED, BSON_EMPTY, &p->err);
}

static enum status
rename_one(struct probe *p)
{
	probe_begin(p);
	return plain_rename(p->tx, STR(PACKED), STR("db.other"), &p->err);
}

static enum status
index_make(struct probe *p, struct plain *c)
{
	uint64_t number;

	return plain_index_create(
		p->tx, c->db,
		doc_of(p->world, "{\"name\":\"x\",\"key\":{\"x\":1},\"unique\":true}"), p->arena,
		&number, &p->err);
}

static enum status
index_remove(struct probe *p, struct plain *c)
{
	return index_drop(p->tx, c->db, &index_set_of(c->db)->defs[0]);
}

static enum status
entries_read(struct probe *p, struct plain *c)
{
	const struct index_def *def = &index_set_of(c->db)->defs[0];
	const struct index_scan_options options = { .mode = KV_READ };
	struct index_work w = { .arena = p->arena };
	const struct index_interval all = { .equal_count = 0 };
	struct index_range range = { 0 };
	struct index_scan scan = { 0 };
	struct index_entry entry;
	enum status status;

	TRY(index_range_make(c->db, def, &all, &w, &range));
	status = index_scan_init(&scan, p->tx, c->db, def, &range, &options);
	while (status == STATUS_OK) {
		status = index_scan_next(&scan, &w, &entry);
		if (status == STATUS_OK)
			say(p, entry.id);
	}
	index_scan_release(&scan);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
entries_count(struct probe *p, struct plain *c)
{
	const struct index_def *def = &index_set_of(c->db)->defs[0];
	const struct index_interval all = { .equal_count = 0 };
	struct index_work w = { .arena = p->arena };
	struct index_range range = { 0 };
	uint64_t exact, total;

	TRY(index_range_make(c->db, def, &all, &w, &range));
	TRY(index_range_count_exactly(p->tx, c->db, &range, &exact));
	TRY(index_total_count(p->tx, c->db, &total));
	buf_printf(&p->said, "%llu %llu", (unsigned long long)exact, (unsigned long long)total);
	return STATUS_OK;
}

static enum status
entries_count_of_ranges(struct probe *p, struct plain *c)
{
	const struct index_def *def = &index_set_of(c->db)->defs[0];
	const struct index_interval all = { .equal_count = 0 };
	struct index_work w = { .arena = p->arena };
	struct index_range ranges[2] = { 0 };
	uint64_t few, exact;

	for (size_t i = 0; i < 2; i++)
		TRY(index_range_make(c->db, def, &all, &w, &ranges[i]));
	TRY(index_ranges_count(p->tx, c->db, ranges, 2, 10, &few));
	TRY(index_ranges_count_exactly(p->tx, c->db, ranges, 2, 1, &exact));
	buf_printf(&p->said, "%llu %llu", (unsigned long long)few, (unsigned long long)exact);
	return STATUS_OK;
}

static enum status
notice_put(struct probe *p, struct plain *c)
{
	unsigned events = 0;

	return plain_notice_put(p->tx, c->db, PLAIN_NOTICE_RENAMED, STR(PACKED), STR("db.other"),
				doc_of(p->world, "{\"o\":1}"), &events, &p->err);
}

static bool
any_notice(void *arg, const struct plain_notice *notice)
{
	(void)arg;
	return notice->kind != PLAIN_NOTICE_CREATED;
}

static void
say_notice(struct probe *p, const struct plain_notice *n)
{
	buf_printf(&p->said, "%d %llu", n->kind, (unsigned long long)n->number);
	say(p, n->name);
	say(p, n->to);
	say(p, n->detail);
}

static enum status
notices_read(struct probe *p)
{
	const struct catalog_seq beginning = { { 0 } };
	struct plain_notice *notices, first;
	size_t n;

	probe_begin(p);
	TRY(plain_notices_read(p->tx, &beginning, 10, any_notice, NULL, p->arena, &notices, &n,
			       &p->err));
	for (size_t i = 0; i < n; i++)
		say_notice(p, &notices[i]);
	TRY(plain_notices_first(p->tx, p->arena, &first, &p->err));
	say_notice(p, &first);
	return STATUS_OK;
}

static enum status
notices_clear(struct probe *p)
{
	bool more;

	probe_begin(p);
	return plain_notices_clear(p->tx, UINT64_MAX, &more, &p->err);
}

static enum status
index_make_exploded(struct probe *p)
{
	return in_collection(p, EXPLODED, index_make);
}

static enum status
index_remove_exploded(struct probe *p)
{
	return in_collection(p, EXPLODED, index_remove);
}

IN_EACH(entries_read)
IN_EACH(entries_count)
IN_EACH(entries_count_of_ranges)

static enum status
notice_put_one(struct probe *p)
{
	return in_collection(p, PACKED, notice_put);
}

static const struct probe_op around[] = {
	{ "create", create, "ok, conflicts 6 0+0; 1: C/CN 2: CO/CN" },
	{ "create what is there", create_again, "exists, conflicts 1 0+0; 1: C/CNCNCOCOCOC" },
	{ "rename", rename_one, "ok, conflicts 3 0+0; 1: C/CNCNCOCOCOC" },
	{ "create an index", index_make_exploded, "ok, conflicts 2 0+0; 1: O/O 2: C/CO" },
	{ "drop an index", index_remove_exploded, "ok, conflicts 0 0+0" },
	{ "read an index", entries_read_packed, "ok, conflicts 1 0+0; 1-3: COC/CNCO" },
	{ "read an index, exploded", entries_read_exploded, "ok, conflicts 1 0+0; 1-3: COC/CNCO" },
	{ "count entries", entries_count_packed, "ok, conflicts 0 0+0; 1-4: C/O 5-7: O/O 8: C/~" },
	{ "count entries, exploded", entries_count_exploded,
	  "ok, conflicts 0 0+0; 1-4: C/O 5-7: O/O 8: C/~" },
	{ "count entries of ranges", entries_count_of_ranges_packed,
	  "ok, conflicts 0 0+0; 1-10: O/O 11-12: C/O" },
	{ "count entries of ranges, exploded", entries_count_of_ranges_exploded,
	  "ok, conflicts 0 0+0; 1-10: O/O 11-12: C/O" },
	{ "put a notice", notice_put_one, "ok, conflicts 1 0+0" },
	{ "read notices", notices_read, "ok, conflicts 0 0+0; 1-2: C/CNCOC~COC~C~C~" },
	{ "clear notices", notices_clear, "ok, conflicts 0 0+0; 1: O/O" },
};

static const struct probe_op checks[] = {
	{ "verify", probe_verify,
	  "ok, conflicts 4 0+0; 1: ~/~O 2-3: ~/~O~O~ 4: ~/~O 5: ~/O 6-7: ~/~O~O 8: ~/O "
	  "9: ~/~O~O~O~O~O~O 10-15: ~O~/~O~O~O 16: ~/~O~O~O~O~O~O~O 17: ~/~O~O~ 18: ~/~"
	  " 19: ~/~O~ 20: ~/~O 21: ~/~O~ 22: ~/~ 23: ~/~O~O~ 24-25: ~/~ 26: ~/~O~O~ 27:"
	  " ~/~ 28: ~/~O~O~ 29: ~/~O 30: ~/~O~O~O~O~O~O~O~ 31-32: ~/~O~O~O~O~O~ 33: "
	  "~/~O~O~O~O~ 34: ~/~O~O~O~O~O~ 35-36: O/O 37: ~/~O 38: ~/~O~O~O~O~O~O~O 39: "
	  "~/~O~O~ 40-56: O/O 57: O/O~O 58: O/O 59-60: ~/~ 61-63: O/O 64: ~/~ 65-71: "
	  "O/O 72: ~/~ 73: ~/O 74: O/O 75: O/~ 76-78: O/O 79: ~/O 80: ~/~ 81: "
	  "~/~O~O~O~O~O~O~O 82: ~/~O~O~ 83-84: ~/~ 85: ~/~O~ 86-87: ~/~ 88-89: ~/O 90: "
	  "~/~O 91: ~/~O~O~O~O~O~O~O~ 92-93: ~/~O~O~O~O~O~ 94: ~/~O~O~O~O~ 95: "
	  "~/~O~O~O~O~O~ 96-97: O/O 98: ~/~O 99: ~/~O~O~O~O~O~O~O 100: ~/~O~O~ 101-104:"
	  " O/O 105: O/O~O~O 106-107: ~/~ 108: O/O 109: ~/~ 110-116: O/O 117: ~/~ 118: "
	  "~/O 119: O/O 120: O/~ 121-123: O/O 124: ~/O 125: ~/~ 126-128: O/O" },
};

/* ---- Tests ---- */

static enum status
fill_one(struct probe *p, struct plain *c)
{
	struct world *w = p->world;
	struct buf text = BUF_INIT(TEXT_BYTES);
	struct plain_doc docs[4] = {
		plain_doc_of(doc_of(w, "{\"_id\":1,\"a\":[1,{\"b\":2}],\"t\":\"text\"}")),
		plain_doc_of(doc_of(w, "{\"_id\":2,\"a\":[],\"t\":{}}")),
		plain_doc_of(doc_of(w, "{\"_id\":\"three\",\"x\":{\"$numberLong\":\"7\"}}")),
	};

	buf_append_cstr(&text, "{\"_id\":5,\"a\":\"");
	for (size_t i = 0; i < LONG_BYTES; i++)
		buf_append_byte(&text, (char)('a' + i % 26));
	buf_append_cstr(&text, "\"}");
	buf_append_byte(&text, '\0');
	docs[3] = plain_doc_of(doc_of(w, text.ptr));
	buf_release(&text);
	c->session = STR("0123456789abcdef");
	c->number = 4;
	for (size_t i = 0; i < 4; i++)
		TRY(plain_insert(c, &docs[i], p->arena));
	c->before = docs[0];
	c->after = docs[1];
	return plain_replace(c, &docs[1], false, PLAIN_EVENT_UPDATE, STR(""), p->arena);
}

static enum status
first_index(struct probe *p, struct plain *c)
{
	uint64_t number;

	return plain_index_create(p->tx, c->db,
				  doc_of(p->world, "{\"name\":\"t\",\"key\":{\"t\":1,\"a.b\":-1},"
						   "\"unique\":true,\"sparse\":true}"),
				  p->arena, &number, &p->err);
}

struct filling {
	struct probe p;
	plain_body *body;
};

static enum status
fill_body(struct kv_tx *tx, void *arg)
{
	struct filling *g = arg;

	g->p.tx = tx;
	TRY(in_collection(&g->p, PACKED, g->body));
	return in_collection(&g->p, EXPLODED, g->body);
}

static enum status
create_body(struct kv_tx *tx, void *arg)
{
	(void)arg;
	TRY(plain_create(tx, STR(PACKED), PLAIN_PACKED, BSON_EMPTY, NULL));
	return plain_create(tx, STR(EXPLODED), PLAIN_EXPLODED, BSON_EMPTY, NULL);
}

static enum status
notice_body(struct kv_tx *tx, void *arg)
{
	struct filling *g = arg;

	g->p.tx = tx;
	TRY(notice_put_one(&g->p));
	return notice_put_one(&g->p);
}

static void
fill(struct world *w, kv_body *body, plain_body *each)
{
	struct filling g = { .p = { .store = w->store, .world = w, .arena = w->arena },
			     .body = each };
	struct err err = { 0 };
	enum status status = kv_run(w->store, body, &g, NULL, &err);

	if (status != STATUS_OK)
		fail_msg("%s: %s %s", status_name(status), err.text, g.p.err.text);
}

static int
setup(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct world *w = calloc(1, sizeof(*w));
	struct err err = { 0 };
	char url[256];

	test_show_failures();
	plain_register();
	test_make_dir("probe", w->dir, sizeof(w->dir));
	probe_store_url(w->dir, url, sizeof(url));
	assert_int_equal(catalog_store_open(url, &options, &w->store, &err), STATUS_OK);
	w->arena = arena_new(SIZE_MAX);
	fill(w, create_body, NULL);
	fill(w, fill_body, first_index);
	fill(w, fill_body, fill_one);
	fill(w, notice_body, NULL);
	*state = w;
	return 0;
}

static int
teardown(void **state)
{
	struct world *w = *state;

	arena_free(w->arena);
	kv_close(w->store);
	test_remove_tree(w->dir);
	free(w);
	return 0;
}

#define COUNT(ops) (sizeof(ops) / sizeof((ops)[0]))

static void
readers_hand_failures_on(void **state)
{
	struct world *w = *state;

	probe_each(w->store, w, reading, COUNT(reading));
}

static void
writers_hand_failures_on(void **state)
{
	struct world *w = *state;

	probe_each(w->store, w, writing, COUNT(writing));
}

static enum status
stage(struct probe *p, struct plain *c)
{
	struct world *w = p->world;
	struct buf text = BUF_INIT(TEXT_BYTES);
	struct str doc;

	buf_append_cstr(&text, "{\"_id\":9,\"a\":\"");
	for (size_t i = 0; i <= PLAIN_AHEAD_BYTES; i++)
		buf_append_byte(&text, 'x');
	buf_append_cstr(&text, "\"}");
	buf_append_byte(&text, '\0');
	doc = doc_of(w, text.ptr);
	buf_release(&text);
	return plain_stage(w->store, c->db, doc, &w->staged[plain_scheme_of(c->db) != PLAIN_PACKED],
			   &p->err);
}

static void
what_was_written_ahead_hands_failures_on(void **state)
{
	struct world *w = *state;

	fill(w, fill_body, stage);
	probe_each(w->store, w, staged, COUNT(staged));
}

static void
what_is_around_hands_failures_on(void **state)
{
	struct world *w = *state;

	probe_each(w->store, w, around, COUNT(around));
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
		    "1: O 2-4: ~ 5-16: O 17-27: ~ 28-32: O 33: ~ 34: O 35: ~ 36-39: O 40-50: ~ "
		    "51: O 52-53: ~ 54: O 55: ~ 56-61: O 62: ~ 63: O 64: ~ 65-67: O",
		    "1-67: ~");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(readers_hand_failures_on, setup, teardown),
		cmocka_unit_test_setup_teardown(writers_hand_failures_on, setup, teardown),
		cmocka_unit_test_setup_teardown(what_was_written_ahead_hands_failures_on, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_is_around_hands_failures_on, setup, teardown),
		cmocka_unit_test_setup_teardown(checks_find_what_is_damaged, setup, teardown),
		cmocka_unit_test_setup_teardown(checks_find_what_is_lost_or_foreign, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
