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
#include "model/plain/plain_int.h"
#include "model/plain/salvage.h"
#include "probe.h"
#include "store.h"

enum {
	TEXT_BYTES = 4 * 1024 * 1024,
	LONG_BYTES = PLAIN_WHOLE_BYTES + 10, /* of a document that lies in chunks */
	PARTS = 2,
	DOCS = 40, /* that the operations of a test are given, at most */
};

#define PACKED   "db.packed"
#define EXPLODED "db.exploded"

struct world {
	char dir[64];
	struct kv_store *store;
	struct arena *arena;        /* of documents that operations are given */
	struct plain_doc staged[2]; /* written ahead of what inserts them; of one test */
	struct str ahead;           /* the document that is */
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
	{ "read an index", entries_read_packed, "ok, conflicts 1 0+0; 1-3: C/CNCO" },
	{ "read an index, exploded", entries_read_exploded, "ok, conflicts 1 0+0; 1-3: C/CNCO" },
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

/* ---- What builds, dumps and sweeps do ---- */

static enum status
say_source(void *arg, const struct index_source *source)
{
	struct probe *p = arg;

	say(p, source->id);
	say(p, source->body);
	return STATUS_OK;
}

static enum status
visit_stretch(struct probe *p, struct plain *c, const struct index_stretch *stretch)
{
	struct index_passed passed;

	TRY(plain_indexed_documents.visit(p->tx, c->db, &index_set_of(c->db)->defs[0], stretch,
					  p->arena, say_source, p, &passed));
	say(p, passed.last);
	buf_printf(&p->said, "%llu %d", (unsigned long long)passed.count, passed.more);
	return STATUS_OK;
}

static enum status
visit(struct probe *p, struct plain *c)
{
	return visit_stretch(p, c, &(struct index_stretch){ .limit = 100 });
}

static enum status
visit_part(struct probe *p, struct plain *c)
{
	AUTO(buf_release) struct buf after = BUF_INIT(100);
	AUTO(buf_release) struct buf end = BUF_INIT(100);

	TRY(plain_index_id(&id_1, &after, &p->err));
	TRY(plain_index_id(&id_long, &end, &p->err));
	return visit_stretch(p, c,
			     &(struct index_stretch){
				     .after = buf_str(&after), .end = buf_str(&end), .limit = 2 });
}

static enum status
cut(struct probe *p, struct plain *c)
{
	const struct str *ids;
	uint64_t documents;
	size_t n;

	TRY(plain_indexed_documents.cut(p->tx, c->db, 3, p->arena, &ids, &n, &documents));
	for (size_t i = 0; i < n; i++)
		say(p, ids[i]);
	buf_printf(&p->said, "%llu", (unsigned long long)documents);
	return STATUS_OK;
}

/* Why an index has failed that names document 1, which it could have by now. */
static enum status
failure_is_over(struct probe *p, struct plain *c)
{
	AUTO(buf_release) struct buf id = BUF_INIT(100);
	AUTO(buf_release) struct buf failure = BUF_INIT(100);
	struct index_def def = index_set_of(c->db)->defs[0];

	TRY(plain_index_id(&id_1, &id, &p->err));
	buf_append_byte(&failure, '"');
	buf_append_hex(&failure, buf_str(&id));
	buf_append_byte(&failure, '"');
	TRY(buf_status(&failure));
	def.failure = buf_str(&failure);
	return plain_index_failure(c, &def, p->arena);
}

static enum status
scan_backwards(struct probe *p, struct plain *c)
{
	const struct plain_range range = {
		.from = &id_1, .from_open = true, .to = &id_long, .reverse = true, .mode = KV_READ
	};
	struct plain_scan s = { 0 };
	enum status status = plain_scan_open(&s, c, &range);
	struct str doc;

	while (status == STATUS_OK) {
		status = plain_scan_next(&s, p->arena, &doc);
		if (status == STATUS_OK) {
			say(p, doc);
			say(p, plain_scan_place(&s));
		}
	}
	plain_scan_close(&s);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
update_in_leaves(struct probe *p, struct plain *c)
{
	static const struct bson_value three = BSON_OF_INT32(3);
	const struct plain_change changes[] = { { STR("a.0"), &three }, { STR("x.y"), &three } };
	bool changed = false;
	enum status status = plain_update_leaves(c, &id_1, changes, 2, STR(""), p->arena, &changed);

	buf_printf(&p->said, "%d", changed);
	return status;
}

static enum status
replace_known(struct probe *p, struct plain *c)
{
	const struct plain_doc doc = plain_doc_of(doc_of(p->world, "{\"_id\":2,\"a\":9}"));
	struct plain_got got;
	struct str before;

	TRY(plain_ask(c, &id_2, KV_READ, p->arena, &got));
	TRY(plain_wait(c, &got, KV_READ, p->arena, &before));
	if (!got.whole)
		return plain_replace(c, &doc, false, PLAIN_EVENT_UPDATE, STR(""), p->arena);
	return plain_replace_whole(c, &doc, before, PLAIN_EVENT_UPDATE, STR(""), p->arena);
}

static enum status
line_ready(void *arg, struct err *err)
{
	(void)arg, (void)err;
	return STATUS_OK;
}

static enum status
line_end(void *arg, struct err *err)
{
	struct probe *p = arg;

	(void)err;
	buf_append_byte(&p->said, '\n');
	return STATUS_OK;
}

static void
line_warn(void *arg, const char *text)
{
	struct probe *p = arg;

	buf_append_cstr(&p->said, text);
}

static void
line_broken(void *arg, struct str entry, const char *why)
{
	struct probe *p = arg;

	say(p, entry);
	buf_append_cstr(&p->said, why);
}

static enum status
dump_by(struct probe *p, const char *name, bool salvages)
{
	const struct catalog_broken broken = { line_broken, p };
	struct catalog_dump dump = {
		.tx = p->tx,
		.out = &p->said,
		.ready = line_ready,
		.end_line = line_end,
		.warn = line_warn,
		.arg = p,
		.err = &p->err,
	};
	enum status status;

	TRY(catalog_open(p->tx, NULL, CATALOG_SPACE_MONGO, str_from_cstr(name), &dump.db, &p->err));
	probe_begin(p);
	status = salvages ? plain_salvage.dump(&dump, &broken) : dump.db->kind->dump(&dump);
	catalog_db_unref(dump.db);
	return status;
}

static enum status
dump_packed(struct probe *p)
{
	return dump_by(p, PACKED, false);
}

static enum status
dump_exploded(struct probe *p)
{
	return dump_by(p, EXPLODED, false);
}

static enum status
dump_what_is_left_packed(struct probe *p)
{
	return dump_by(p, PACKED, true);
}

static enum status
dump_what_is_left_exploded(struct probe *p)
{
	return dump_by(p, EXPLODED, true);
}

static enum status
dump_create(struct probe *p)
{
	AUTO(buf_release) struct buf room = BUF_INIT(TEXT_BYTES);
	struct plain_dump_header header;

	probe_begin(p);
	TRY(plain_dump_header_read(
		STR("{\"frond\":\"collection\",\"format\":2,\"scheme\":\"exploded\",\"options\":{},"
		    "\"indexes\":[{\"name\":\"x\",\"key\":{\"x\":1}},"
		    "{\"name\":\"y\",\"key\":{\"y\":\"hashed\"}}]}"),
		&room, &header, &p->err));
	return plain_dump_create(p->tx, STR("db.new"), &header, p->arena, &p->err);
}

static enum status
show_prefix(void *arg, struct str prefix)
{
	say(arg, prefix);
	return STATUS_OK;
}

static enum status
inspect(struct probe *p, struct plain *c)
{
	return c->db->kind->inspect(p->tx, c->db, STR("1"), p->arena, show_prefix, p);
}

IN_EACH(visit)
IN_EACH(visit_part)
IN_EACH(cut)
IN_EACH(failure_is_over)
IN_EACH(scan_backwards)
IN_EACH(update_in_leaves)
IN_EACH(replace_known)
IN_EACH(inspect)

static const struct probe_op lent[] = {
	{ "visit", visit_packed,
	  "ok, conflicts 0 1+0; 1-2: C/CNC~ 3: C/CNC 4: C/CNC~ 5: C/C~ 6: C/~" },
	{ "visit, exploded", visit_exploded,
	  "ok, conflicts 0 1+0; 1: C/CNCOCOC~C 2: C/C 3: C/C~C 4: C/CO 5: C/C~C 6: C/C 7: "
	  "C/CNCOCOC~C 8-9: C/C 10: C/CNCOCOC~C 11: C/C 12: C/CNCOCOC~C" },
	{ "visit a part", visit_part_packed,
	  "ok, conflicts 0 1+0; 1: C/CNC~ 2: C/CNC 3: O/O 4: C/C~ 5: C/~" },
	{ "visit a part, exploded", visit_part_exploded,
	  "ok, conflicts 0 1+0; 1: C/CNCOCOC~C 2-3: C/C 4: C/CNCOCOC~C 5: C/C 6-7: O/O" },
	{ "cut", cut_packed, "ok, conflicts 0 0+0; 1-12: O/O" },
	{ "cut, exploded", cut_exploded, "ok, conflicts 0 0+0; 1-12: O/O" },
	{ "a failure that is over", failure_is_over_packed,
	  "not_found, conflicts 0 0+0; 1: C/CNCO 2-3: O/O" },
	{ "a failure that is over, exploded", failure_is_over_exploded,
	  "not_found, conflicts 0 0+0; 1: C/CNCOCOCOC 2: C/C 3: C/COC 4: C/CO 5: C/COC 6: C/C 7-8: "
	  "O/O" },
	{ "scan backwards", scan_backwards_packed,
	  "ok, conflicts 1 0+0; 1: C/CNC 2: C/CNC~ 3: C/C~ 4: C/~" },
	{ "scan backwards, exploded", scan_backwards_exploded,
	  "ok, conflicts 1 0+0; 1: C/C 2: C/CNCOCOC~C 3-4: C/C 5: C/CNCOCOC~C" },
	{ "update in leaves", update_in_leaves_packed,
	  "doc_too_large, conflicts 1 0+0; 1: C/CNCO" },
	{ "update in leaves, exploded", update_in_leaves_exploded,
	  "ok, conflicts 10 0+0; 1: C/CNCOCOCOC 2: C/COC 3: C/CO 4: C/C 5: C/COC 6: C/CO 7: C/COC "
	  "8-9: O/O 10: C/CO 11: C/COC" },
	{ "replace what is known", replace_known_packed, "ok, conflicts 1 0+0; 1: C/CNCO" },
	{ "replace what is known, exploded", replace_known_exploded,
	  "ok, conflicts 6 0+1; 1: C/CNCOCOCOC 2-3: C/C 4: C/CNCOCOCOC 5-6: C/COC 7-8: C/C" },
	{ "dump", dump_packed,
	  "ok, conflicts 0 0+0; 1: C/CNC~O~O~O 2: C/CNC~O 3: C/CNC 4: C/CNC~O 5: C/C~ 6: C/~O" },
	{ "dump, exploded", dump_exploded,
	  "ok, conflicts 0 0+0; 1: C/CNCOCOC~C 2: C/C 3: C/C~C 4: C/CO 5: C/C~C 6: C/C 7: "
	  "C/CNCOCOC~C 8-9: C/C 10: C/CNCOCOC~C 11: C/C 12: C/CNCOCOC~C" },
	{ "dump what is left", dump_what_is_left_packed,
	  "ok, conflicts 0 0+0; 1: ~/~O~O~O 2: ~/~O 3: ~/~ 4: ~/~O 5: ~/~ 6: ~/~O" },
	{ "dump what is left, exploded", dump_what_is_left_exploded,
	  "ok, conflicts 0 0+0; 1: ~/~O~O~ 2-3: ~/~ 4: ~/~O 5-6: ~/~ 7: ~/~O~O~ 8-9: ~/~ 10: "
	  "~/~O~O~ 11: ~/~ 12: ~/~O~O~" },
	{ "inspect", inspect_packed, "ok, conflicts 0 0+0" },
	{ "inspect, exploded", inspect_exploded, "ok, conflicts 0 0+0" },
	{ "create from a dump", dump_create,
	  "ok, conflicts 12 0+0; despite allocation 54=ok; 1: C/CN 2: CO/CN 3: C/CNCNCOCOCOC 4: "
	  "C/CO" },
};

/* A time long after all that is written here. */
#define SWEPT_MS (UINT64_MAX / 4)

/* With transactions of its own. */
static enum status
sweep(struct probe *p)
{
	AUTO(buf_release) struct buf place = CATALOG_KEY_INIT;
	const struct world *w = p->world;
	enum status status;
	bool more = true;

	probe_begin(p);
	do
		status = plain_sweep(w->store, SWEPT_MS, &place, &more, &p->err);
	while (status == STATUS_OK && more);
	return status;
}

static const struct probe_op sweeping[] = {
	{ "sweep", sweep, "ok, conflicts 6 0+0" },
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

	if (!w->ahead.ptr) {
		buf_append_cstr(&text, "{\"_id\":9,\"a\":\"");
		for (size_t i = 0; i <= PLAIN_AHEAD_BYTES; i++)
			buf_append_byte(&text, 'x');
		buf_append_cstr(&text, "\"}");
		buf_append_byte(&text, '\0');
		w->ahead = doc_of(w, text.ptr);
		buf_release(&text);
	}
	return plain_stage(w->store, c->db, w->ahead,
			   &w->staged[plain_scheme_of(c->db) != PLAIN_PACKED], &p->err);
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
what_is_lent_hands_failures_on(void **state)
{
	struct world *w = *state;

	probe_each(w->store, w, lent, COUNT(lent));
}

static enum status
stage_image(struct probe *p, struct plain *c)
{
	struct world *w = p->world;
	struct plain_doc image;

	return plain_stage_image(w->store, c->db, doc_of(w, "{\"_id\":1}"), &image, &p->err);
}

/* An image that nothing refers to, and events. */
static void
leave_behind(void *world)
{
	fill(world, fill_body, stage_image);
	fill(world, fill_body, replace);
}

static void
sweeps_hand_failures_on(void **state)
{
	struct world *w = *state;

	probe_each_alone_undamaged(w->store, w, leave_behind, sweeping, COUNT(sweeping));
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
		cmocka_unit_test_setup_teardown(what_is_lent_hands_failures_on, setup, teardown),
		cmocka_unit_test_setup_teardown(sweeps_hand_failures_on, setup, teardown),
		cmocka_unit_test_setup_teardown(checks_find_what_is_damaged, setup, teardown),
		cmocka_unit_test_setup_teardown(checks_find_what_is_lost_or_foreign, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
