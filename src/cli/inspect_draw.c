#include "cli/inspect_draw.h"

#include "base/utf8.h"
#include "kv/keyspace.h"
#include "kv/kv.h"
#include "kv/tuple.h"
#include "model/revisioned/revisioned.h"

enum {
	COUNTER_BYTES = 8,
	/* A value as text: no byte takes more than "versionstamp:" does for twelve of them. */
	DRAWN_BYTES = 16 * KV_LIMIT_VALUE_BYTES,
};

/* What a pair is in is drawn after the custom of that place. */
enum manner {
	MANNER_PLAIN,
	MANNER_BODY,     /* nested (): [], nested (()): {}, nested (double, text): the text */
	MANNER_BRANCHES, /* nested: a list of ancestors, in brackets */
};

static const char *const subspace_names[] = {
	[REV_SUBSPACE_ALL_DOCS] = "all_docs",   [REV_SUBSPACE_CHANGES] = "changes",
	[REV_SUBSPACE_REVISIONS] = "revisions", [REV_SUBSPACE_DOCUMENTS] = "documents",
	[REV_SUBSPACE_LOCAL] = "local",         [REV_SUBSPACE_ATTACHMENTS] = "attachments",
	[REV_SUBSPACE_INDEXES] = "indexes",     [REV_SUBSPACE_CONFIG] = "config",
	[REV_SUBSPACE_STATS] = "stats",         [REV_SUBSPACE_TALLIES] = "tallies",
};

static const char *
root_name(uint64_t number)
{
	switch (number) {
	case KV_ROOT_FORMAT:
		return "format";
	case KV_ROOT_DATABASES:
		return "databases";
	case KV_ROOT_NEXT_PREFIX:
		return "next_prefix";
	case KV_ROOT_DROPPED:
		return "dropped";
	case KV_ROOT_EVENTS:
		return "events";
	case KV_ROOT_INCARNATION:
		return "incarnation";
	case KV_ROOT_SETTINGS:
		return "settings";
	case KV_ROOT_UPLOADS:
		return "uploads";
	case KV_ROOT_MOVES:
		return "moves";
	case KV_ROOT_REPLICATOR:
		return "replicator";
	case KV_ROOT_TXIDS:
		return "txids";
	default:
		return NULL;
	}
}

static const char *
subspace_name(uint64_t number)
{
	return number < sizeof(subspace_names) / sizeof(subspace_names[0]) ? subspace_names[number]
									   : NULL;
}

bool
inspect_place(struct str key, struct inspect_place *ret)
{
	struct tuple_reader r = tuple_reader(key);

	return tuple_next_u64(&r, &ret->database) == STATUS_OK &&
	       tuple_next_u64(&r, &ret->subspace) == STATUS_OK;
}

void
inspect_draw_subspace(struct inspect_place place, struct buf *ret)
{
	const char *name = place.database ? subspace_name(place.subspace) : "root";

	if (name)
		buf_append_cstr(ret, name);
	else
		buf_printf(ret, "subspace %llu", (unsigned long long)place.subspace);
}

/* ---- Elements ---- */

/* tuple_draw() of one element, without the parentheses. */
static void
draw_single(struct str encoding, struct buf *ret)
{
	AUTO(buf_release) struct buf drawn = BUF_INIT(DRAWN_BYTES);

	tuple_draw(encoding, &drawn);
	if (buf_status(&drawn) != STATUS_OK || drawn.len < 2)
		ret->failed = ret->failed == STATUS_OK ? STATUS_NOMEM : ret->failed;
	else
		buf_append(ret, drawn.ptr + 1, drawn.len - 2);
}

static void
draw_string(const struct tuple_elem *e, struct buf *ret)
{
	AUTO(buf_release) struct buf text = BUF_INIT(e->raw.len + 1);
	AUTO(buf_release) struct buf cut = BUF_INIT(2 * INSPECT_TEXT_BYTES + 2);

	if (e->raw.len <= INSPECT_TEXT_BYTES) {
		draw_single(e->encoding, ret);
		return;
	}
	tuple_unescape(e, &text);
	if (buf_status(&text) != STATUS_OK) {
		ret->failed = text.failed;
		return;
	}
	if (text.len <= INSPECT_TEXT_BYTES) {
		draw_single(e->encoding, ret);
		return;
	}
	tuple_put_str(&cut,
		      str_of(text.ptr, utf8_valid_prefix(str_of(text.ptr, INSPECT_TEXT_BYTES))));
	draw_single(buf_str(&cut), ret);
	buf_printf(ret, "...(%zu bytes)", text.len);
}

static enum status draw_elements(struct tuple_reader r, enum manner manner, struct buf *ret);

/* A container without members, or a number whose text matters: see doc/doc.h. */
static bool
draw_body_nested(const struct tuple_elem *e, struct buf *ret)
{
	struct tuple_reader r = tuple_reader_nested(e);
	struct tuple_elem first;
	struct tuple_elem second;
	enum status status = tuple_next(&r, &first);

	if (status == STATUS_NOT_FOUND) {
		buf_append_cstr(ret, "[]");
		return true;
	}
	if (status == STATUS_OK && first.kind == TUPLE_NESTED && first.raw.len == 0) {
		buf_append_cstr(ret, "{}");
		return true;
	}
	if (status == STATUS_OK && first.kind == TUPLE_DOUBLE &&
	    tuple_next(&r, &second) == STATUS_OK && second.kind == TUPLE_STRING) {
		buf_append_str(ret, second.raw);
		return true;
	}
	return false;
}

/* An Incarnation and the versionstamp behind it: a Sequence. */
static bool
draw_sequence(const struct tuple_elem *e, struct tuple_reader *r, struct buf *ret)
{
	struct tuple_reader ahead = *r;
	struct tuple_elem stamp;
	char incarnation;

	if (e->kind != TUPLE_INT || e->negative || e->magnitude > UINT8_MAX ||
	    tuple_next(&ahead, &stamp) != STATUS_OK || stamp.kind != TUPLE_VERSIONSTAMP)
		return false;
	incarnation = (char)(uint8_t)e->magnitude;
	buf_append_hex(ret, str_of(&incarnation, 1));
	buf_append_hex(ret, stamp.raw);
	*r = ahead;
	return true;
}

static enum status
draw_nested(const struct tuple_elem *e, enum manner manner, struct buf *ret)
{
	struct tuple_reader r = tuple_reader_nested(e);
	struct tuple_elem first;
	size_t at = ret->len;

	if (tuple_next(&r, &first) == STATUS_OK && draw_sequence(&first, &r, ret))
		return STATUS_OK;
	if (manner == MANNER_BODY && draw_body_nested(e, ret))
		return STATUS_OK;
	TRY(draw_elements(tuple_reader_nested(e), manner, ret));
	if (manner == MANNER_BRANCHES && ret->failed == STATUS_OK) {
		ret->ptr[at] = '[';
		ret->ptr[ret->len - 1] = ']';
	}
	return STATUS_OK;
}

static enum status
draw_element(const struct tuple_elem *e, enum manner manner, struct buf *ret)
{
	AUTO(buf_release) struct buf bytes = BUF_INIT(KV_LIMIT_VALUE_BYTES);

	if (e->kind == TUPLE_NESTED)
		return draw_nested(e, manner, ret);
	if (e->kind == TUPLE_NULL) {
		buf_append_cstr(ret, "null");
	} else if (e->kind == TUPLE_STRING) {
		draw_string(e, ret);
	} else if (e->kind == TUPLE_BYTES) {
		tuple_unescape(e, &bytes);
		if (buf_status(&bytes) == STATUS_OK && bytes.len == REV_HASH_BYTES) {
			buf_append_cstr(ret, "\\x");
			buf_append_hex(ret, buf_str(&bytes));
		} else {
			draw_single(e->encoding, ret);
		}
	} else {
		draw_single(e->encoding, ret);
	}
	return STATUS_OK;
}

static enum status
draw_elements(struct tuple_reader r, enum manner manner, struct buf *ret)
{
	struct tuple_elem e;
	enum status status;
	bool first = true;

	buf_append_byte(ret, '(');
	while ((status = tuple_next(&r, &e)) == STATUS_OK) {
		if (!first)
			buf_append_cstr(ret, ", ");
		first = false;
		if (!draw_sequence(&e, &r, ret))
			TRY(draw_element(&e, manner, ret));
	}
	buf_append_byte(ret, ')');
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/*
 * A root value that has the packed document, with the JSON as it is: (2, {"a":1}). False for any
 * other value. A local document's has its revision in front of the text.
 */
static bool
draw_packed(struct str value, bool local, struct buf *ret)
{
	struct tuple_reader r = tuple_reader(value);
	enum doc_form form;
	struct str text;
	uint64_t n = 0;
	bool more;

	if (doc_root_form(&r, &form) != STATUS_OK || form != DOC_FORM_PACKED ||
	    (local && tuple_next_u64(&r, &n) != STATUS_OK) ||
	    doc_root_end(&r, form, &text, &more) != STATUS_OK)
		return false;
	buf_printf(ret, "(%d, ", (int)form);
	if (local)
		buf_printf(ret, "%llu, ", (unsigned long long)n);
	if (text.len <= INSPECT_TEXT_BYTES) {
		buf_append_str(ret, text);
	} else {
		buf_append(ret, text.ptr, utf8_valid_prefix(str_of(text.ptr, INSPECT_TEXT_BYTES)));
		buf_printf(ret, "...(%zu bytes)", text.len);
	}
	buf_append_cstr(ret, more ? ", true)" : ")");
	return true;
}

/* ---- Pairs ---- */

static void
draw_bytes(struct str s, struct buf *ret)
{
	for (size_t i = 0; i < s.len; i++) {
		char c = s.ptr[i];

		if (c == '\\')
			buf_append_cstr(ret, "\\\\");
		else if (c >= ' ' && c <= '~')
			buf_append_byte(ret, (uint8_t)c);
		else
			buf_printf(ret, "\\x%02x", (unsigned)(uint8_t)c);
	}
}

/* The list that a counter of a range is about: a subspace. NULL, and nothing taken, for others. */
static const char *
take_list(struct tuple_reader *r)
{
	struct tuple_reader at = *r;
	const char *name;
	uint64_t number;

	if (tuple_next_u64(&at, &number) != STATUS_OK)
		return NULL;
	name = subspace_name(number);
	if (name)
		*r = at;
	return name;
}

static enum status
draw_key(struct str key, struct inspect_place place, struct buf *ret)
{
	AUTO(buf_release) struct buf rest = BUF_INIT(DRAWN_BYTES);
	const char *name = place.database ? NULL : root_name(place.subspace);
	const char *list = NULL;
	struct tuple_reader r = tuple_reader(key);
	uint64_t skipped;

	TRY(tuple_next_u64(&r, &skipped));
	TRY(tuple_next_u64(&r, &skipped));
	if (place.database && place.subspace == REV_SUBSPACE_TALLIES)
		list = take_list(&r);
	TRY(draw_elements(r, MANNER_PLAIN, &rest));
	TRY(buf_status(&rest));
	buf_append_cstr(ret, "(\"");
	inspect_draw_subspace(place, ret);
	buf_append_byte(ret, '"');
	if (name || list)
		buf_printf(ret, ", \"%s\"", name ? name : list);
	else if (!place.database)
		buf_printf(ret, ", %llu", (unsigned long long)place.subspace);
	if (rest.len > 2)
		buf_append_cstr(ret, ", ");
	buf_append(ret, rest.ptr + 1, rest.len - 1);
	return STATUS_OK;
}

/* (P, ATTACHMENTS, "refs", id) */
static bool
is_att_counter(struct str key)
{
	struct tuple_reader r = tuple_reader(key);
	struct tuple_elem e;
	uint64_t skipped;

	return tuple_next_u64(&r, &skipped) == STATUS_OK &&
	       tuple_next_u64(&r, &skipped) == STATUS_OK && tuple_next(&r, &e) == STATUS_OK &&
	       e.kind == TUPLE_STRING && str_eq(e.raw, STR("refs"));
}

static void
draw_value(struct str key, struct str value, struct inspect_place place, struct buf *ret)
{
	bool attachments = place.database && place.subspace == REV_SUBSPACE_ATTACHMENTS;
	bool counter = place.database && (place.subspace == REV_SUBSPACE_STATS ||
					  place.subspace == REV_SUBSPACE_TALLIES ||
					  (attachments && is_att_counter(key)));
	/* What the feed of all databases watches is below (ROOT, EVENTS) itself. */
	bool watched = counter || (!place.database && place.subspace == KV_ROOT_EVENTS);
	enum manner manner = MANNER_PLAIN;
	size_t at = ret->len;
	uint64_t n = 0;

	if (counter && value.len == COUNTER_BYTES) {
		for (size_t i = 0; i < COUNTER_BYTES; i++)
			n |= (uint64_t)(uint8_t)value.ptr[i] << (8 * i);
		/* One of several counters of a range may be below zero. */
		buf_printf(ret, "%lld", (long long)n);
		return;
	}
	if (watched && value.len == KV_VERSIONSTAMP_BYTES) {
		buf_append_cstr(ret, "versionstamp:");
		buf_append_hex(ret, value);
		return;
	}
	if (attachments) {
		/* Somebody's bytes, of any kind. */
		buf_printf(ret, "(%zu bytes)", value.len);
		return;
	}
	if (place.database &&
	    (place.subspace == REV_SUBSPACE_DOCUMENTS || place.subspace == REV_SUBSPACE_LOCAL))
		manner = MANNER_BODY;
	else if (place.database && place.subspace == REV_SUBSPACE_REVISIONS)
		manner = MANNER_BRANCHES;
	if (manner == MANNER_BODY && draw_packed(value, place.subspace == REV_SUBSPACE_LOCAL, ret))
		return;
	if (draw_elements(tuple_reader(value), manner, ret) != STATUS_OK &&
	    ret->failed == STATUS_OK) {
		ret->len = at;
		buf_append_byte(ret, '\'');
		draw_bytes(value, ret);
		buf_append_byte(ret, '\'');
	}
}

void
inspect_draw_raw(struct str key, struct str value, struct buf *ret)
{
	draw_bytes(key, ret);
	buf_append_cstr(ret, " = ");
	draw_bytes(value, ret);
}

void
inspect_draw_pair(struct str key, struct str value, struct buf *ret)
{
	struct inspect_place place;
	size_t at = ret->len;

	if (!inspect_place(key, &place)) {
		inspect_draw_raw(key, value, ret);
		return;
	}
	if (draw_key(key, place, ret) != STATUS_OK) {
		if (ret->failed == STATUS_OK)
			ret->len = at;
		inspect_draw_raw(key, value, ret);
		return;
	}
	buf_append_cstr(ret, " = ");
	draw_value(key, value, place, ret);
}
