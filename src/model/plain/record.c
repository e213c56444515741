#include "base/buf.h"
#include "bson/scalar.h"
#include "model/plain/plain_int.h"

enum {
	TEXT_FORMAT = 1,
	EVENT_FORMAT_SESSION = 3, /* with the session and the number of its transaction */
	EVENT_FORMAT = 2,
	EVENT_FORMAT_BARE = 1, /* without the length of the detail */
	EVENT_KINDS = PLAIN_EVENT_DELETE,
	SCRATCH_BYTES = 2 * KV_LIMIT_VALUE_BYTES,
	TYPED_ROOM = 128, /* for a value that is mostly short */
};

/* ---- Values with their types, as bytes ---- */

static enum status
typed_write(struct buf *bytes, const struct bson_value *v)
{
	buf_append_byte(bytes, (uint8_t)v->type);
	bson_value_write(bytes, v);
	return buf_status(bytes);
}

static void
typed_put(struct buf *value, const struct bson_value *v)
{
	AUTO(buf_release) struct buf bytes = BUF_INIT(SCRATCH_BYTES);
	char room[TYPED_ROOM];
	struct buf small = { .ptr = room, .cap = sizeof(room), .max_bytes = sizeof(room) };

	if (typed_write(&small, v) == STATUS_OK)
		tuple_put_bytes(value, buf_str(&small));
	else if (typed_write(&bytes, v) == STATUS_OK)
		tuple_put_bytes(value, buf_str(&bytes));
	else if (value->failed == STATUS_OK)
		value->failed = buf_status(&bytes);
}

static enum status
typed_next(struct tuple_reader *r, struct arena *arena, struct bson_value *ret)
{
	struct str bytes;
	size_t len;

	TRY(catalog_next_text(r, TUPLE_BYTES, arena, true, &bytes));
	if (!bytes.len || !bson_value_read((uint8_t)bytes.ptr[0], str_skip(bytes, 1), ret, &len) ||
	    len != bytes.len - 1)
		return STATUS_CORRUPT;
	return STATUS_OK;
}

static enum status
newer(uint64_t format, const char *what, struct err *err)
{
	return err_set(err, STATUS_NEWER, "%s was written by a newer frond, in format %llu", what,
		       (unsigned long long)format);
}

/* ---- Roots ---- */

void
plain_root_put(const struct plain_root *root, struct buf *value)
{
	tuple_put_u64(value, root->form);
	switch (root->form) {
	case PLAIN_FORM_WHOLE:
		buf_append_str(value, root->document);
		return;
	case PLAIN_FORM_TEXT:
		tuple_put_uuid(value, root->text);
		tuple_put_u64(value, root->length);
		return;
	case PLAIN_FORM_LEAVES:
		tuple_put_u64(value, root->next);
		tuple_put_u64(value, root->length);
		typed_put(value, &root->id);
		return;
	}
}

static enum status
root_parse_text(struct tuple_reader *r, struct plain_root *ret)
{
	struct tuple_elem e;

	TRY(tuple_next_elem(r, &e));
	if (e.kind != TUPLE_UUID)
		return STATUS_CORRUPT;
	memcpy(ret->text, e.raw.ptr, sizeof(ret->text));
	TRY(tuple_next_u64(r, &ret->length));
	return r->rest.len ? STATUS_CORRUPT : STATUS_OK;
}

static enum status
root_parse_leaves(struct tuple_reader *r, struct arena *arena, struct plain_root *ret)
{
	TRY(tuple_next_u64(r, &ret->next));
	TRY(tuple_next_u64(r, &ret->length));
	TRY(typed_next(r, arena, &ret->id));
	return r->rest.len ? STATUS_CORRUPT : STATUS_OK;
}

enum status
plain_root_parse(struct str value, struct arena *arena, struct plain_root *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	enum status status;
	uint64_t form;

	*ret = (struct plain_root){ 0 };
	TRY(tuple_next_u64(&r, &form));
	ret->form = (enum plain_form)form;
	switch (form) {
	case PLAIN_FORM_WHOLE:
		ret->document = r.rest;
		return bson_length(r.rest) == r.rest.len && r.rest.len ? STATUS_OK : STATUS_CORRUPT;
	case PLAIN_FORM_TEXT:
		status = root_parse_text(&r, ret);
		break;
	case PLAIN_FORM_LEAVES:
		status = root_parse_leaves(&r, arena, ret);
		break;
	default:
		return newer(form, "the document", err);
	}
	return status == STATUS_NOT_FOUND ? STATUS_CORRUPT : status;
}

/* ---- Leaves ---- */

enum status
plain_leaf_put(const struct plain_leaf *leaf, struct buf *value)
{
	struct doc_scalar s;

	bson_to_scalar(&leaf->value, &s);
	tuple_put_u64(value, leaf->ordinal);
	doc_scalar_put(value, &s);
	if (bson_is_container(&leaf->value))
		tuple_put_u64(value, leaf->next);
	return buf_status(value);
}

/* Texts of the scalar are copied, since the scratch buffer is the function's own. */
static enum status
leaf_copy(struct arena *arena, struct bson_value *v)
{
	struct str *texts[] = { &v->as_text, &v->as_more };
	bool two = v->type == BSON_REGEX || v->type == BSON_DB_POINTER ||
		   v->type == BSON_CODE_SCOPE;
	bool one = two || v->type == BSON_STRING || v->type == BSON_BINARY ||
		   v->type == BSON_OBJECT_ID || v->type == BSON_CODE || v->type == BSON_SYMBOL;

	for (int i = 0; i < one + two; i++) {
		*texts[i] = arena_dup(arena, *texts[i]);
		if (!texts[i]->ptr)
			return STATUS_LIMIT;
	}
	return STATUS_OK;
}

enum status
plain_leaf_parse(struct str value, struct arena *arena, struct plain_leaf *ret)
{
	AUTO(buf_release) struct buf scratch = BUF_INIT(SCRATCH_BYTES);
	struct tuple_reader r = tuple_reader(value);
	struct doc_scalar s;
	struct tuple_elem e;
	enum status status;

	*ret = (struct plain_leaf){ 0 };
	TRY(tuple_next_u64(&r, &ret->ordinal));
	status = tuple_next(&r, &e);
	if (status == STATUS_OK)
		status = doc_scalar_read(e.encoding, &scratch, &s);
	if (status == STATUS_OK)
		status = bson_of_scalar(&s, &ret->value);
	if (status == STATUS_OK && bson_is_container(&ret->value))
		status = tuple_next_u64(&r, &ret->next);
	if (status == STATUS_NOT_FOUND || (status == STATUS_OK && r.rest.len))
		return STATUS_CORRUPT;
	TRY(status);
	return leaf_copy(arena, &ret->value);
}

/* ---- Texts ---- */

void
plain_text_put(const struct plain_text *text, struct buf *value)
{
	tuple_put_u64(value, TEXT_FORMAT);
	tuple_put_u64(value, text->staged_ms);
	tuple_put_u64(value, text->length);
	tuple_put_bytes(value, text->owner);
}

enum status
plain_text_parse(struct str value, struct arena *arena, struct plain_text *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	uint64_t format;

	TRY(tuple_next_u64(&r, &format));
	if (format != TEXT_FORMAT)
		return newer(format, "a text", err);
	TRY(tuple_next_u64(&r, &ret->staged_ms));
	TRY(tuple_next_u64(&r, &ret->length));
	TRY(catalog_next_text(&r, TUPLE_BYTES, arena, true, &ret->owner));
	return r.rest.len || !ret->owner.len != (ret->staged_ms != 0) ? STATUS_CORRUPT : STATUS_OK;
}

/* ---- Events ---- */

void
plain_event_put(const struct plain_event *event, struct buf *value)
{
	tuple_put_u64(value, event->session.ptr ? EVENT_FORMAT_SESSION : EVENT_FORMAT);
	tuple_put_u64(value, event->ms);
	tuple_put_u64(value, event->kind);
	tuple_put_bool(value, event->detail_is_cut);
	typed_put(value, &event->id);
	if (event->session.ptr) {
		tuple_put_bytes(value, event->session);
		tuple_put_i64(value, event->number);
	}
	/* Behind bytes, a document may begin with what would be taken for more of them. */
	tuple_put_u64(value, event->detail.len);
	buf_append_str(value, event->detail);
}

static enum status
event_session_next(struct tuple_reader *r, struct arena *arena, struct plain_event *ret)
{
	AUTO(buf_release) struct buf scratch = BUF_INIT(KV_LIMIT_VALUE_BYTES);
	struct str session;

	TRY(tuple_next_bytes(r, &scratch, &session));
	TRY(tuple_next_i64(r, &ret->number));
	if (session.len != PLAIN_SESSION_BYTES)
		return STATUS_CORRUPT;
	ret->session = arena_dup(arena, session);
	return ret->session.ptr ? STATUS_OK : STATUS_LIMIT;
}

enum status
plain_event_parse(struct str value, struct arena *arena, struct plain_event *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	uint64_t format, kind, length;

	TRY(tuple_next_u64(&r, &format));
	if (format < EVENT_FORMAT_BARE || format > EVENT_FORMAT_SESSION)
		return newer(format, "an event", err);
	TRY(tuple_next_u64(&r, &ret->ms));
	TRY(tuple_next_u64(&r, &kind));
	TRY(tuple_next_bool(&r, &ret->detail_is_cut));
	TRY(typed_next(&r, arena, &ret->id));
	if (format == EVENT_FORMAT_SESSION)
		TRY(event_session_next(&r, arena, ret));
	if (format != EVENT_FORMAT_BARE)
		TRY(tuple_next_u64(&r, &length));
	else
		length = r.rest.len;
	if (!kind || length != r.rest.len || kind > EVENT_KINDS ||
	    bson_length(r.rest) != r.rest.len)
		return STATUS_CORRUPT;
	ret->kind = (enum plain_event_kind)kind;
	ret->detail = r.rest.len ? arena_dup(arena, r.rest) : r.rest;
	return ret->detail.ptr ? STATUS_OK : STATUS_LIMIT;
}

enum status
plain_seq_parse(struct str tail, struct catalog_seq *ret)
{
	struct tuple_reader r = tuple_reader(tail);
	uint64_t incarnation;
	const uint8_t *stamp;

	TRY(tuple_next_u64(&r, &incarnation));
	TRY(tuple_next_versionstamp(&r, &stamp));
	if (incarnation > UINT8_MAX || r.rest.len)
		return STATUS_CORRUPT;
	ret->bytes[0] = (uint8_t)incarnation;
	memcpy(ret->bytes + 1, stamp, KV_VERSIONSTAMP_BYTES);
	return STATUS_OK;
}
