#include "doc/packed.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "doc/doc_int.h"
#include "loop/step.h"

enum {
	STRIDE_RETRY_BYTES = 64, /* gone through one by one before strides are tried again */
};

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

/* True for a failure for lack of memory or time, which says nothing about the text. */
static bool
packed_failed_for_resources(enum status status)
{
	return status == STATUS_LIMIT || status == STATUS_NOMEM || status == STATUS_CANCELLED ||
	       status == STATUS_STEPS;
}

enum status
doc_unpack(struct str packed, struct arena *arena, struct kv_pair **ret, size_t *ret_count)
{
	const struct doc_limits limits = { .doc_bytes = packed.len,
					   .path_bytes = KV_LIMIT_KEY_BYTES };
	struct doc doc;
	enum status status = doc_explode_text(packed, arena, &limits, 0, &doc, NULL);

	if (status != STATUS_OK)
		return packed_failed_for_resources(status) ? status : STATUS_CORRUPT;
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
	*ret = buf_dup(&out, arena);
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
	return status == STATUS_OK || packed_failed_for_resources(status) ? status : STATUS_CORRUPT;
}

/* ---- Parts ---- */

struct scan {
	const char *at;
	const char *end;
};

/* Inside of a string; afterwards behind its closing quote. */
static enum status
scan_to_quote(struct scan *s)
{
	uint64_t high = 0;

	for (;;) {
		s->at = json_scan_plain(s->at, s->end, &high);
		if (s->at == s->end || (uint8_t)*s->at < 0x20)
			return STATUS_CORRUPT;
		if (*s->at == '"')
			break;
		if (s->end - s->at < 2)
			return STATUS_CORRUPT;
		s->at += 2;
	}
	s->at++;
	return STATUS_OK;
}

/* At an opening quote; afterwards behind the closing one. `*ret`: what is between, as it stands. */
static enum status
scan_string(struct scan *s, struct str *ret)
{
	const char *begin = s->at + 1;

	if (s->at == s->end || *s->at != '"')
		return STATUS_CORRUPT;
	s->at++;
	TRY(scan_to_quote(s));
	*ret = str_of(begin, (size_t)(s->at - 1 - begin));
	return STATUS_OK;
}

#ifdef __SSE2__

enum {
	STRIDE_BYTES = 64,
};

/* A bit for each byte of the stride that is `c`, or, under `mask`, looks like it. */
static inline uint64_t
stride_bits(const char *at, char c, char mask)
{
	uint64_t bits = 0;

	for (int i = 0; i < 4; i++) {
		__m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(at + 16 * i));
		__m128i equal = _mm_cmpeq_epi8(_mm_or_si128(bytes, _mm_set1_epi8(mask)),
					       _mm_set1_epi8(c));

		bits |= (uint64_t)(uint16_t)_mm_movemask_epi8(equal) << 16 * i;
	}
	return bits;
}

/* Bit i: whether an odd number of the bits up to it is set. */
static inline uint64_t
parity_before(uint64_t bits)
{
	for (unsigned shift = 1; shift < 64; shift *= 2)
		bits ^= bits << shift;
	return bits;
}

/*
 * Goes through a container stride by stride, from outside of a string: to behind its end, when
 * `*depth` is 0, or to somewhere outside of a string. Stops in front of a stride with a backslash,
 * behind which a quote may be none.
 */
static enum status
skip_strides(struct scan *s, size_t *depth)
{
	uint64_t in_string = 0; /* all bits: the stride begins inside of one */

	for (; s->end - s->at >= STRIDE_BYTES; s->at += STRIDE_BYTES) {
		uint64_t strings = parity_before(stride_bits(s->at, '"', 0)) ^ in_string;
		/* Brackets and braces differ in one bit. */
		uint64_t opening = stride_bits(s->at, '{', 0x20) & ~strings;
		uint64_t closing = stride_bits(s->at, '}', 0x20) & ~strings;

		if (stride_bits(s->at, '\\', 0))
			break;
		for (uint64_t both = opening | closing; both; both &= both - 1) {
			*depth += both & -both & opening ? 1 : -(size_t)1;
			if (*depth)
				continue;
			s->at += __builtin_ctzll(both) + 1;
			return STATUS_OK;
		}
		in_string = strings >> 63 ? UINT64_MAX : 0;
	}
	return in_string ? scan_to_quote(s) : STATUS_OK;
}

#else

static enum status
skip_strides(struct scan *s, size_t *depth)
{
	(void)s;
	(void)depth;
	return STATUS_OK;
}

#endif

/* At an opening bracket; afterwards behind the one that closes it. */
static enum status
skip_container(struct scan *s)
{
	const char *stride = s->at + 1;
	struct str string;
	size_t depth = 0;

	while (s->at < s->end) {
		if (s->at >= stride && depth) {
			TRY(skip_strides(s, &depth));
			if (!depth)
				return STATUS_OK;
			stride = s->at + STRIDE_RETRY_BYTES;
			continue;
		}
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

/* ---- The leaves of some members ---- */

enum {
	MEMBER_STEP_BYTES = 512, /* of a packed text that are passed over in one step */
};

enum status
doc_member_init(struct str name, struct arena *arena, struct doc_member *ret)
{
	AUTO(buf_release) struct buf out = BUF_INIT(SIZE_MAX);

	json_write_chars(&out, name);
	TRY(buf_status(&out));
	ret->written = buf_dup(&out, arena);
	buf_clear(&out);
	tuple_put_str(&out, name);
	TRY(buf_status(&out));
	ret->path = buf_dup(&out, arena);
	return ret->written.ptr && ret->path.ptr ? STATUS_OK : STATUS_LIMIT;
}

/* Leaves that are being collected, in an array that is grown in the arena. */
struct member_leaves {
	struct arena *arena;
	struct kv_pair *pairs;
	size_t count;
	size_t cap;
};

static enum status
member_leaves_add(struct member_leaves *l, struct str path, struct str value)
{
	struct kv_pair *grown = arena_grow(l->arena, l->pairs, l->count, &l->cap, sizeof(*grown));

	if (!grown || !path.ptr || !value.ptr)
		return STATUS_LIMIT;
	l->pairs = grown;
	l->pairs[l->count++] = (struct kv_pair){ path, value };
	return STATUS_OK;
}

/*
 * Reads a text that is a literal, a number, or a string without escapes; false for any other. The
 * scalar borrows `text`, `number` and `magnitude`.
 */
static bool
member_read_scalar(struct str text, struct json_number *number,
		   uint8_t magnitude[TUPLE_INT_MAX_BYTES], struct doc_scalar *ret)
{
	bool is_integer;

	if (text.ptr[0] == '"') {
		*ret = (struct doc_scalar){
			.kind = DOC_TEXT,
			.text = str_of(text.ptr + 1, text.len - 2),
		};
		return text.len <= DOC_STRING_PIECE_BYTES / 2 && !memchr(text.ptr, '\\', text.len);
	}
	*ret = (struct doc_scalar){ .kind = DOC_NULL };
	if (str_eq(text, STR("null")))
		return true;
	*ret = (struct doc_scalar){ .kind = DOC_BOOL, .truth = text.ptr[0] == 't' };
	if (str_eq(text, STR("true")) || str_eq(text, STR("false")))
		return true;
	if (json_number_len(text, &is_integer) != text.len)
		return false;
	json_number_read(text, is_integer, number);
	json_number_scalar(number, magnitude, ret);
	return true;
}

/* Takes a value of any kind apart by the reader that documents have. */
static enum status
member_take_apart(struct member_leaves *l, const struct doc_member *m, struct str text)
{
	const struct doc_limits limits = { .doc_bytes = text.len,
					   .path_bytes = KV_LIMIT_KEY_BYTES };
	struct doc doc;
	enum status status = doc_explode_value_text(text, l->arena, &limits, &doc, NULL);

	if (status != STATUS_OK)
		return packed_failed_for_resources(status) ? status : STATUS_CORRUPT;
	if (doc.count == 0) { /* {}: there is no leaf for it unless it is a member */
		struct doc_scalar scalar = { .kind = DOC_EMPTY_OBJECT };
		AUTO(buf_release) struct buf value = BUF_INIT(SIZE_MAX);

		doc_scalar_put(&value, &scalar);
		TRY(buf_status(&value));
		return member_leaves_add(l, m->path, buf_dup(&value, l->arena));
	}
	for (size_t i = 0; i < doc.count; i++) {
		struct str below = doc.leaves[i].key;
		char *path = arena_bytes(l->arena, m->path.len + below.len);

		if (!path)
			return STATUS_LIMIT;
		memcpy(path, m->path.ptr, m->path.len);
		if (below.len)
			memcpy(path + m->path.len, below.ptr, below.len);
		TRY(member_leaves_add(l, str_of(path, m->path.len + below.len),
				      doc.leaves[i].value));
	}
	return STATUS_OK;
}

static enum status
member_take(struct member_leaves *l, const struct doc_member *m, struct str text)
{
	struct buf encoded = { .max_bytes = text.len + TUPLE_INT_MAX_BYTES };
	uint8_t magnitude[TUPLE_INT_MAX_BYTES];
	struct json_number number;
	struct doc_scalar scalar;

	if (!member_read_scalar(text, &number, magnitude, &scalar))
		return member_take_apart(l, m, text);
	/* An encoded scalar is shorter than its text and the double beside it. */
	encoded.cap = encoded.max_bytes;
	encoded.ptr = arena_bytes(l->arena, encoded.cap);
	if (!encoded.ptr)
		return STATUS_LIMIT;
	doc_scalar_put(&encoded, &scalar);
	TRY(buf_status(&encoded));
	return member_leaves_add(l, m->path, buf_str(&encoded));
}

/* True if no name that follows `name` in the text can be `last`: names are in the order of keys. */
static bool
member_is_behind(struct str name, struct str last)
{
	return str_cmp(name, last) > 0 && !memchr(name.ptr, '\\', name.len) &&
	       !(last.len && memchr(last.ptr, '\\', last.len));
}

enum status
doc_packed_leaves(struct str packed, const struct doc_member *members, size_t members_count,
		  struct arena *arena, struct kv_pair **ret, size_t *ret_count)
{
	struct member_leaves l = { .arena = arena };
	struct scan s = { packed.ptr + 1, packed.ptr + packed.len };
	size_t left = members_count;
	enum status status = packed.len < 2 ? STATUS_CORRUPT : STATUS_OK;

	if (packed.len == 2)
		left = 0;
	while (left && status == STATUS_OK) {
		const char *begin;
		struct str name;

		TRY(scan_string(&s, &name));
		if (s.at == s.end || *s.at++ != ':')
			return STATUS_CORRUPT;
		if (member_is_behind(name, members[members_count - 1].written))
			break;
		begin = s.at;
		TRY(skip_value(&s));
		for (size_t i = members_count - left; i < members_count; i++) {
			if (!str_eq(members[i].written, name))
				continue;
			TRY(member_take(&l, &members[i], str_of(begin, (size_t)(s.at - begin))));
			left = members_count - i - 1;
			break;
		}
		status = next_value(&s);
	}
	if (status != STATUS_OK && status != STATUS_NOT_FOUND)
		return status;
	*ret = l.pairs;
	*ret_count = l.count;
	return step_count(1 + (uint32_t)((size_t)(s.at - packed.ptr) / MEMBER_STEP_BYTES));
}
