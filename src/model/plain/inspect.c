/* Records as the text of the Document Layer prints them: 0x150b:1:name -> Eric */
#include "bson/json.h"
#include "bson/scalar.h"
#include "catalog/draw.h"
#include "doc/key_read.h"
#include "index/bson/form.h"
#include "index/engine/draw.h"
#include "model/plain/plain_int.h"

enum {
	DRAW_ARENA_BYTES = 64 * 1024 * 1024,
	DRAW_TEXT_BYTES = 1000, /* longer ones are cut, and their length is told */
};

const char *
plain_space_name(uint64_t space)
{
	switch (space) {
	case PLAIN_SPACE_OPTIONS:
		return "options";
	case PLAIN_SPACE_RECORDS:
		return "records";
	case PLAIN_SPACE_TEXTS:
		return "texts";
	case PLAIN_SPACE_LOG:
		return "log";
	case PLAIN_SPACE_IMAGES:
		return "images";
	case PLAIN_SPACE_COUNT:
		return "count";
	case PLAIN_SPACE_CHANGED:
		return "changed";
	case PLAIN_SPACE_STATS:
		return "stats";
	case PLAIN_SPACE_TALLIES:
		return "tallies";
	case INDEX_SPACE_DEFS:
		return "indexes";
	case INDEX_SPACE_ENTRIES:
		return "entries";
	case PLAIN_SPACE_STAGED:
		return "texts written ahead";
	default:
		return NULL;
	}
}

/* ---- Values ---- */

/* A text without quotes; what no terminal should see is escaped. */
static void
draw_text(struct str s, struct buf *ret)
{
	size_t shown = s.len < DRAW_TEXT_BYTES ? s.len : DRAW_TEXT_BYTES;

	for (size_t i = 0; i < shown; i++) {
		if ((uint8_t)s.ptr[i] < ' ' || s.ptr[i] == 0x7f)
			buf_printf(ret, "\\x%02x", (unsigned)(uint8_t)s.ptr[i]);
		else
			buf_append_byte(ret, (uint8_t)s.ptr[i]);
	}
	if (shown < s.len)
		buf_printf(ret, "… (%zu bytes)", s.len);
}

/* A string as it is, anything else as relaxed Extended JSON. */
static void
draw_value(const struct bson_value *v, struct buf *ret)
{
	AUTO(buf_release) struct buf json = BUF_INIT_OF(2 * BSON_MOST_BYTES, ret->part);

	if (v->type == BSON_STRING) {
		draw_text(bson_text(v), ret);
		return;
	}
	bson_json_write_value(&json, v, BSON_JSON_RELAXED);
	draw_text(buf_str(&json), ret);
}

/* ---- Keys ---- */

/* The `_id` by its key alone: the type of a number, and what is behind a cut, are not in it. */
static enum status
draw_id_key(struct str key, struct arena *arena, struct buf *ret)
{
	struct doc_scalar s;
	struct bson_value v;
	size_t len;

	if (doc_key_read(key, false, arena, &s, &len) == STATUS_OK && len == key.len) {
		if (s.kind == DOC_INTEGER || s.kind == DOC_DECIMAL)
			s.kind = DOC_UNDEFINED; /* drawn as bytes */
		if (bson_of_scalar(&s, &v) == STATUS_OK && v.type != BSON_UNDEFINED) {
			draw_value(&v, ret);
			return STATUS_OK;
		}
	}
	buf_append_hex(ret, key);
	return STATUS_OK;
}

static enum status
draw_path(struct tuple_reader *r, struct arena *arena, struct buf *ret)
{
	while (r->rest.len) {
		struct tuple_reader number = *r;
		struct str name;
		uint64_t position;

		buf_append_byte(ret, ':');
		if (tuple_next_u64(&number, &position) == STATUS_OK) {
			buf_printf(ret, "%llu", (unsigned long long)position);
			*r = number;
			continue;
		}
		TRY(catalog_next_text(r, TUPLE_STRING, arena, true, &name));
		draw_text(name, ret);
	}
	return STATUS_OK;
}

/* ---- Pairs ---- */

static enum status
draw_root(struct str value, struct arena *arena, struct buf *ret)
{
	struct plain_root root;

	TRY(plain_root_parse(value, arena, &root, NULL));
	switch (root.form) {
	case PLAIN_FORM_WHOLE:
		draw_value(&BSON_OF_DOCUMENT(root.document), ret);
		return STATUS_OK;
	case PLAIN_FORM_TEXT:
		buf_append_cstr(ret, "text ");
		buf_append_hex(ret, str_of(root.text, sizeof(root.text)));
		buf_printf(ret, " of %llu bytes", (unsigned long long)root.length);
		return STATUS_OK;
	case PLAIN_FORM_LEAVES:
		break;
	}
	buf_append_cstr(ret, "_id ");
	draw_value(&root.id, ret);
	return STATUS_OK;
}

static enum status
draw_leaf(struct str value, struct arena *arena, struct buf *ret)
{
	struct plain_leaf leaf;

	TRY(plain_leaf_parse(value, arena, &leaf));
	if (leaf.value.type == BSON_ARRAY)
		buf_append_cstr(ret, "[]");
	else
		draw_value(&leaf.value, ret);
	return STATUS_OK;
}

static enum status
draw_record(const struct catalog_db *db, struct str tail, struct str value, struct arena *arena,
	    struct buf *ret)
{
	struct tuple_reader r = tuple_reader(tail);
	struct str id;
	bool root;

	TRY(catalog_next_text(&r, TUPLE_BYTES, arena, true, &id));
	root = !r.rest.len;
	buf_printf(ret, "0x%04llx:", (unsigned long long)db->number);
	TRY(draw_id_key(id, arena, ret));
	TRY(draw_path(&r, arena, ret));
	buf_append_cstr(ret, " -> ");
	return root ? draw_root(value, arena, ret) : draw_leaf(value, arena, ret);
}

static enum status
draw_event(struct str tail, struct str value, struct arena *arena, struct buf *ret)
{
	static const char *const kinds[] = {
		[PLAIN_EVENT_INSERT] = "insert",
		[PLAIN_EVENT_UPDATE] = "update",
		[PLAIN_EVENT_REPLACE] = "replace",
		[PLAIN_EVENT_DELETE] = "delete",
	};
	struct plain_event event = { 0 };

	TRY(plain_seq_parse(tail, &event.seq));
	TRY(plain_event_parse(value, arena, &event, NULL));
	catalog_seq_write(&event.seq, ret);
	buf_printf(ret, " %s ", kinds[event.kind]);
	draw_value(&event.id, ret);
	if (event.session.ptr)
		buf_printf(ret, " in transaction %lld", (long long)event.number);
	if (event.detail.len) {
		buf_append_byte(ret, ' ');
		draw_value(&BSON_OF_DOCUMENT(event.detail), ret);
	}
	return STATUS_OK;
}

/* The header of a text; its chunks are not drawn. */
static enum status
draw_text_pair(struct str tail, struct str value, struct arena *arena, struct buf *ret)
{
	struct tuple_reader r = tuple_reader(tail);
	struct plain_text text;
	struct tuple_elem e;
	uint64_t n;

	TRY(tuple_next_elem(&r, &e));
	buf_append_cstr(ret, "text ");
	buf_append_hex(ret, e.raw);
	if (r.rest.len) {
		TRY(tuple_next_u64(&r, &n));
		buf_printf(ret, ", chunk %llu of %zu bytes", (unsigned long long)n, value.len);
		return STATUS_OK;
	}
	TRY(plain_text_parse(value, arena, &text, NULL));
	buf_printf(ret, " of %llu bytes%s", (unsigned long long)text.length,
		   text.staged_ms ? ", written ahead" : "");
	return STATUS_OK;
}

/*
 * A definition; what a build notes of itself is drawn as any other pair. A damaged one is drawn as
 * the elements that it has.
 */
static enum status
draw_index(struct str tail, struct str value, struct buf *ret)
{
	static const struct catalog_draw_manner elements = { 0 };
	struct tuple_reader r = tuple_reader(tail);
	enum status status;
	uint64_t number;

	TRY(tuple_next_u64(&r, &number));
	if (r.rest.len)
		return STATUS_NOT_FOUND;
	buf_printf(ret, "(\"indexes\", %llu) = ", (unsigned long long)number);
	status = index_draw_def(&index_bson_form, value, ret);
	if (status != STATUS_CORRUPT)
		return status;
	buf_append_cstr(ret, "damaged: ");
	catalog_draw_tuple(value, &elements, ret);
	return STATUS_OK;
}

bool
plain_draw_pair(const struct catalog_db *db, uint64_t space, struct str tail, struct str value,
		struct buf *ret)
{
	struct arena *arena = catalog_draw_arena(DRAW_ARENA_BYTES, ret);
	enum status status = STATUS_NOT_FOUND;
	size_t len = ret->len;

	if (arena && space == PLAIN_SPACE_RECORDS)
		status = draw_record(db, tail, value, arena, ret);
	else if (arena && space == PLAIN_SPACE_LOG)
		status = draw_event(tail, value, arena, ret);
	else if (arena && space == PLAIN_SPACE_TEXTS)
		status = draw_text_pair(tail, value, arena, ret);
	else if (space == INDEX_SPACE_DEFS)
		status = draw_index(tail, value, ret);
	else if (space == PLAIN_SPACE_COUNT && catalog_draw_counter(value, ret))
		status = STATUS_OK;
	else if (space == PLAIN_SPACE_CHANGED && catalog_draw_stamp(value, ret))
		status = STATUS_OK;
	arena_free(arena);
	if (status != STATUS_OK)
		ret->len = len;
	return status == STATUS_OK;
}

/* What the text is in Extended JSON, if it is one value there; else it is a string. */
static enum status
inspect_read_id(struct str text, struct buf *document, struct bson_value *ret)
{
	struct buf AUTO(buf_release) json = BUF_INIT(DRAW_ARENA_BYTES);
	struct bson_element first, second;
	struct err err = { 0 };
	struct bson_iter i;
	enum status status;

	buf_append_cstr(&json, "{\"_id\":");
	buf_append_str(&json, text);
	buf_append_byte(&json, '}');
	TRY(buf_status(&json));
	*ret = (struct bson_value){ .type = BSON_STRING, .as_text = text };
	status = bson_json_read(buf_str(&json), document, &err);
	if (status != STATUS_OK)
		return status == STATUS_NOMEM ? status : STATUS_OK;
	bson_iter_begin(&i, buf_str(document));
	if (bson_iter_read(&i, &first) && !bson_iter_read(&i, &second))
		*ret = first.value;
	return STATUS_OK;
}

enum status
plain_inspect(struct kv_tx *tx, const struct catalog_db *db, struct str id, struct arena *arena,
	      catalog_draw_prefix *draw, void *arg)
{
	struct buf AUTO(buf_release) document = BUF_INIT(DRAW_ARENA_BYTES);
	struct buf AUTO(buf_release) key = CATALOG_KEY_INIT;
	struct err err = { 0 };
	struct bson_value value;
	enum status status;

	(void)tx;
	(void)arena;
	TRY(inspect_read_id(id, &document, &value));
	status = plain_key_record(db, &value, &key, &err);
	if (status != STATUS_OK) /* no document has such an `_id`, unless there is no memory */
		return status == STATUS_NOMEM ? status : STATUS_OK;
	return draw(arg, buf_str(&key));
}
