#include "doc/packed.h"

#include "doc/doc_int.h"

/* ---- Root values ---- */

/*
 * A packed text has no NUL in it, which JSON escapes, so that the tuple's encoding of it is the
 * text itself between a type code and a NUL.
 */
void
doc_root_put(struct buf *value, struct str packed, bool more)
{
	tuple_put_u64(value, packed.ptr ? DOC_FORM_PACKED : DOC_FORM_EXPLODED);
	if (packed.ptr)
		tuple_put_str(value, packed);
	if (packed.ptr && more)
		tuple_put_bool(value, true);
}

enum status
doc_root_form(struct tuple_reader *r, enum doc_form *ret)
{
	uint64_t form;

	if (tuple_next_u64(r, &form) != STATUS_OK ||
	    (form != DOC_FORM_EXPLODED && form != DOC_FORM_PACKED))
		return STATUS_CORRUPT;
	*ret = (enum doc_form)form;
	return STATUS_OK;
}

enum status
doc_root_end(struct tuple_reader *r, enum doc_form form, struct str *ret_packed, bool *ret_more)
{
	struct tuple_elem e;
	bool more = form == DOC_FORM_EXPLODED;

	*ret_packed = (struct str){ NULL, 0 };
	if (ret_more)
		*ret_more = more;
	if (form == DOC_FORM_EXPLODED)
		return r->rest.len ? STATUS_CORRUPT : STATUS_OK;
	if (tuple_next(r, &e) != STATUS_OK)
		return STATUS_CORRUPT;
	if (r->rest.len && (tuple_next_bool(r, &more) != STATUS_OK || !more || r->rest.len))
		return STATUS_CORRUPT;
	if (e.kind != TUPLE_STRING || e.escaped || e.raw.len < 2 || e.raw.ptr[0] != '{' ||
	    e.raw.ptr[e.raw.len - 1] != '}')
		return STATUS_CORRUPT;
	*ret_packed = e.raw;
	if (ret_more)
		*ret_more = more;
	return STATUS_OK;
}

enum status
doc_root_read(struct str value, struct str *ret_packed, bool *ret_more)
{
	struct tuple_reader r = tuple_reader(value);
	enum doc_form form;

	TRY(doc_root_form(&r, &form));
	return doc_root_end(&r, form, ret_packed, ret_more);
}

/* ---- The whole ---- */

bool
doc_is_empty(const struct doc *doc)
{
	return doc->packed.ptr ? doc->packed.len == 2 : doc->count == 0;
}

enum status
doc_packed_write(struct str packed, bool has_members, struct buf *out)
{
	if (has_members && packed.len > 2)
		buf_append_byte(out, ',');
	buf_append(out, packed.ptr + 1, packed.len - 1);
	return buf_status(out);
}

enum status
doc_unpack(struct str packed, struct arena *arena, struct kv_pair **ret, size_t *ret_count)
{
	const struct doc_limits limits = { .doc_bytes = packed.len,
					   .path_bytes = KV_LIMIT_KEY_BYTES };
	struct doc doc;
	enum status status = doc_explode_text(packed, arena, &limits, 0, &doc, NULL);

	if (status != STATUS_OK)
		return status == STATUS_LIMIT || status == STATUS_NOMEM ? status : STATUS_CORRUPT;
	*ret = doc.leaves;
	*ret_count = doc.count;
	return STATUS_OK;
}

static enum status
assemble(const struct kv_pair *leaves, size_t count, struct buf *out)
{
	struct doc_assembler assembler;
	enum status status = STATUS_OK;

	buf_append_byte(out, '{');
	doc_assemble_init_object(&assembler, out, false);
	for (size_t i = 0; i < count && status == STATUS_OK; i++)
		status = doc_assemble_leaf(&assembler, leaves[i].key, leaves[i].value);
	if (status == STATUS_OK)
		status = doc_assemble_end(&assembler);
	doc_assemble_release(&assembler);
	return status == STATUS_OK ? buf_status(out) : status;
}

enum status
doc_pack(const struct kv_pair *leaves, size_t count, size_t max_bytes, struct arena *arena,
	 struct str *ret)
{
	AUTO(buf_release) struct buf out = BUF_INIT(max_bytes);
	enum status status = assemble(leaves, count, &out);

	*ret = (struct str){ NULL, 0 };
	if (status == STATUS_LIMIT)
		return STATUS_OK;
	TRY(status);
	*ret = arena_dup(arena, buf_str(&out));
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

/* Packing what is packed changes nothing. */
enum status
doc_packed_check(struct str packed, struct arena *arena)
{
	const struct doc_limits limits = { .doc_bytes = packed.len,
					   .path_bytes = KV_LIMIT_KEY_BYTES,
					   .packed_bytes = packed.len };
	struct arena_mark mark = arena_mark(arena);
	struct doc doc;
	enum status status = doc_explode_text(packed, arena, &limits, 0, &doc, NULL);

	if (status == STATUS_OK && (doc.specials_count || !str_eq(doc.packed, packed)))
		status = STATUS_CORRUPT;
	arena_reset(arena, mark);
	return status == STATUS_OK || status == STATUS_LIMIT || status == STATUS_NOMEM
		       ? status
		       : STATUS_CORRUPT;
}

/* ---- Parts ---- */

struct scan {
	const char *at;
	const char *end;
};

/* At an opening quote; afterwards behind the closing one. `*ret`: what is between, as it stands. */
static enum status
scan_string(struct scan *s, struct str *ret)
{
	const char *begin = s->at + 1;
	const char *at = begin;
	uint64_t high = 0;

	if (s->at == s->end || *s->at != '"')
		return STATUS_CORRUPT;
	for (;;) {
		at = json_scan_plain(at, s->end, &high);
		if (at == s->end || (uint8_t)*at < 0x20)
			return STATUS_CORRUPT;
		if (*at == '"')
			break;
		if (s->end - at < 2)
			return STATUS_CORRUPT;
		at += 2;
	}
	*ret = str_of(begin, (size_t)(at - begin));
	s->at = at + 1;
	return STATUS_OK;
}

/* At an opening bracket; afterwards behind the one that closes it. */
static enum status
skip_container(struct scan *s)
{
	struct str string;
	size_t depth = 0;

	while (s->at < s->end) {
		switch (*s->at) {
		case '"':
			TRY(scan_string(s, &string));
			continue;
		case '{':
		case '[':
			depth++;
			break;
		case '}':
		case ']':
			depth--;
			break;
		default:
			break;
		}
		s->at++;
		if (!depth)
			return STATUS_OK;
	}
	return STATUS_CORRUPT;
}

static enum status
skip_value(struct scan *s)
{
	const char *begin = s->at;
	struct str string;

	if (s->at == s->end)
		return STATUS_CORRUPT;
	if (*s->at == '"')
		return scan_string(s, &string);
	if (*s->at == '{' || *s->at == '[')
		return skip_container(s);
	while (s->at < s->end && *s->at != ',' && *s->at != '}' && *s->at != ']')
		s->at++;
	return s->at > begin ? STATUS_OK : STATUS_CORRUPT;
}

/* Behind a value: a comma, which is passed, or the container's end, which is STATUS_NOT_FOUND. */
static enum status
next_value(struct scan *s)
{
	if (s->at == s->end)
		return STATUS_CORRUPT;
	return *s->at++ == ',' ? STATUS_OK : STATUS_NOT_FOUND;
}

/* Behind an object's brace: goes to the value of the member whose name is written so. */
static enum status
find_member(struct scan *s, struct str written)
{
	struct str name;

	if (s->at < s->end && *s->at == '}')
		return STATUS_NOT_FOUND;
	for (;;) {
		TRY(scan_string(s, &name));
		if (s->at == s->end || *s->at++ != ':')
			return STATUS_CORRUPT;
		if (str_eq(name, written))
			return STATUS_OK;
		TRY(skip_value(s));
		TRY(next_value(s));
	}
}

/* Behind an array's bracket: goes to the element at `position`. */
static enum status
find_element(struct scan *s, uint64_t position)
{
	if (s->at < s->end && *s->at == ']')
		return STATUS_NOT_FOUND;
	for (; position; position--) {
		TRY(skip_value(s));
		TRY(next_value(s));
	}
	return STATUS_OK;
}

/* From a value to the one that `token` names in it. */
static enum status
descend(struct scan *s, struct str token, struct buf *scratch)
{
	uint64_t position;

	if (s->at == s->end)
		return STATUS_CORRUPT;
	if (*s->at == '{') {
		s->at++;
		buf_clear(scratch);
		json_write_chars(scratch, token);
		TRY(buf_status(scratch));
		return find_member(s, buf_str(scratch));
	}
	if (*s->at != '[' || !doc_pointer_position(token, &position))
		return STATUS_NOT_FOUND;
	s->at++;
	return find_element(s, position);
}

enum status
doc_packed_find(struct str packed, const struct doc_pointer *pointer, struct str *ret)
{
	/* A name that is longer than the text is not in it. */
	AUTO(buf_release) struct buf scratch = BUF_INIT(packed.len);
	struct scan s = { packed.ptr, packed.ptr + packed.len };
	const char *begin;

	for (size_t i = 0; i < pointer->count; i++) {
		enum status status = descend(&s, pointer->tokens[i], &scratch);

		if (status != STATUS_OK)
			return status == STATUS_LIMIT ? STATUS_NOT_FOUND : status;
	}
	begin = s.at;
	TRY(skip_value(&s));
	*ret = str_of(begin, (size_t)(s.at - begin));
	return STATUS_OK;
}
