#include "door/couch/doc/seen.h"

#include "door/couch/doc/att_out.h"
#include "door/couch/wire/ids.h"
#include "door/couch/wire/reply.h"

static const struct {
	const char *name;
	unsigned bit;
} seen_members[] = {
	{ "_id", COUCH_SEEN_ID },
	{ "_rev", COUCH_SEEN_REV },
	{ "_deleted", COUCH_SEEN_DELETED },
	{ "_attachments", COUCH_SEEN_ATTACHMENTS },
	{ "_conflicts", COUCH_SEEN_CONFLICTS },
};

unsigned
couch_seen_member(struct str name)
{
	for (size_t i = 0; i < sizeof(seen_members) / sizeof(seen_members[0]); i++) {
		if (str_eq(name, str_from_cstr(seen_members[i].name)))
			return seen_members[i].bit;
	}
	return 0;
}

static struct leaf_value *
seen_add(struct couch_seen *seen, const char *name)
{
	seen->specials[seen->count].name = str_from_cstr(name);
	return &seen->specials[seen->count++].value;
}

static enum status
seen_read_rev(struct couch_req *r, struct rev_id id, struct leaf_value *ret)
{
	char text[REV_HASH_LIMIT_BYTES + 32];
	struct buf rev = { .ptr = text, .cap = sizeof(text), .max_bytes = sizeof(text) };

	rev_id_write(id, &rev);
	TRY(buf_status(&rev));
	return leaf_of_string(buf_str(&rev), r->arena, ret);
}

static enum status
seen_read_attachments(struct couch_req *r, const struct couch_doc_out *d, struct leaf_value *ret)
{
	const struct str before = STR(",\"_attachments\":");
	struct buf AUTO(buf_release) text = couch_buf(r, COUCH_ROW_BYTES);

	TRY(couch_atts_write(d, &text));
	return leaf_parse(str_skip(buf_str(&text), before.len), r->arena, ret, &r->fail.err);
}

/* Makes an array of the revisions of the other live branches; nothing if there is none. */
static enum status
seen_read_conflicts(struct couch_req *r, const struct couch_doc_out *d, struct couch_seen *seen)
{
	struct buf AUTO(buf_release) text = couch_buf(r, COUCH_ROW_BYTES);

	for (size_t i = 1; i < d->tree->count; i++) {
		if (d->tree->branches[i].deleted)
			continue;
		buf_append_byte(&text, text.len ? ',' : '[');
		couch_rev_write(d->tree->branches[i].rev, &text);
	}
	if (!text.len)
		return buf_status(&text);
	buf_append_byte(&text, ']');
	TRY(buf_status(&text));
	return leaf_parse(buf_str(&text), r->arena, seen_add(seen, "_conflicts"), &r->fail.err);
}

enum status
couch_seen_read(struct couch_req *r, const struct couch_doc_out *d, unsigned wanted,
		struct couch_seen *ret)
{
	ret->count = 0;
	if (wanted & COUCH_SEEN_ID)
		TRY(leaf_of_string(d->id, r->arena, seen_add(ret, "_id")));
	if (wanted & COUCH_SEEN_REV)
		TRY(seen_read_rev(r, d->doc->rev, seen_add(ret, "_rev")));
	if (wanted & COUCH_SEEN_DELETED && d->doc->deleted)
		TRY(leaf_of_bool(true, r->arena, seen_add(ret, "_deleted")));
	if (wanted & COUCH_SEEN_ATTACHMENTS && d->doc->atts_count)
		TRY(seen_read_attachments(r, d, seen_add(ret, "_attachments")));
	if (wanted & COUCH_SEEN_CONFLICTS && d->tree)
		TRY(seen_read_conflicts(r, d, ret));
	return STATUS_OK;
}
