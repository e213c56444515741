#include "doc/doc.h"

#include <assert.h>

#include "base/utf8.h"
#include "doc/doc_int.h"
#include "doc/packed.h"
#include "doc/pointer_int.h"

/* ---- Text ---- */

static size_t
pointer_count_tokens(struct str text)
{
	size_t n = 0;

	for (size_t i = 0; i < text.len; i++)
		n += text.ptr[i] == '/';
	return n;
}

/* Replaces ~0 and ~1 in `raw`; `bytes` has memory for the result. False for any other tilde. */
static bool
pointer_unescape_token(struct str raw, char *bytes, struct str *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < raw.len; i++) {
		char c = raw.ptr[i];

		if (c == '~') {
			if (++i == raw.len || (raw.ptr[i] != '0' && raw.ptr[i] != '1'))
				return false;
			c = (char)(raw.ptr[i] == '0' ? '~' : '/');
		}
		bytes[n++] = c;
	}
	*ret = str_of(bytes, n);
	return true;
}

enum status
doc_pointer_parse(struct str text, struct arena *arena, struct doc_pointer *ret, struct err *err)
{
	struct doc_pointer p = { .count = pointer_count_tokens(text) };
	struct str *tokens;
	char *bytes;

	if (text.len && text.ptr[0] != '/')
		return err_set(err, STATUS_INVALID, "a JSON Pointer must start with a slash");
	if (utf8_valid_prefix(text) < text.len)
		return err_set(err, STATUS_INVALID, "the JSON Pointer is not valid UTF-8");
	if (p.count > JSON_DEPTH_LIMIT)
		return err_set(err, STATUS_LIMIT, "the JSON Pointer has more than %d tokens",
			       JSON_DEPTH_LIMIT);
	tokens = arena_alloc(arena, p.count * sizeof(*tokens));
	bytes = arena_bytes(arena, text.len);
	if (!tokens || !bytes)
		return err_set(err, STATUS_LIMIT,
			       "the JSON Pointer exceeds the memory limit of a "
			       "request, %zu bytes",
			       arena_limit_bytes(arena));
	for (size_t i = 0; i < p.count; i++) {
		const char *end;
		struct str raw;

		text = str_skip(text, 1);
		end = text.len ? memchr(text.ptr, '/', text.len) : NULL;
		raw = str_of(text.ptr, end ? (size_t)(end - text.ptr) : text.len);
		if (!pointer_unescape_token(raw, bytes, &tokens[i]))
			return err_set(err, STATUS_INVALID,
				       "in a JSON Pointer ~ must be followed by 0 or 1");
		bytes += raw.len;
		text = str_skip(text, raw.len);
	}
	p.tokens = tokens;
	*ret = p;
	return STATUS_OK;
}

/* ---- Reading ---- */

/* The state of reading one pointer. */
struct lookup {
	struct kv_tx *tx;
	enum kv_read mode;
	struct arena *arena;
	struct buf *out;
	struct err *err;
	const struct doc_pointer *pointer;
	size_t at;              /* the first token that is not in `key` */
	size_t numbers;         /* tokens from there on that may be positions */
	struct kv_future *root; /* of the document's root value; `body` borrows its bytes */
	struct str texts;       /* see struct doc_place */
	struct doc_root body; /* what the root value says; form 0: nothing yet, or there is none */
	struct kv_future *leaf; /* the first leaf of the container at `key` */
	struct buf key;         /* prefix and encoded path, as far as it is known; then scratch */
	struct str ways[DOC_POINTER_WAYS];
	struct kv_future *futures[DOC_POINTER_WAYS];
	size_t count;
};

static enum status
lookup_fail_read(struct lookup *l, enum status status)
{
	return err_set(l->err, status, "%s", kv_tx_error(l->tx));
}

static enum status
lookup_fail_memory(struct lookup *l)
{
	return err_set(l->err, STATUS_LIMIT,
		       "the value exceeds the memory limit of a request, %zu bytes",
		       arena_limit_bytes(l->arena));
}

/*
 * Asks for the pairs whose keys are `key` and further elements, from `key` with `behind` appended
 * on. An empty `behind` includes `key` itself.
 */
static struct kv_future *
lookup_read_below(struct lookup *l, struct str key, struct str behind, size_t limit)
{
	struct kv_range_options options = { .limit = limit, .mode = l->mode };
	char *bounds = arena_bytes(l->arena, 2 * key.len + behind.len + 1);
	struct str begin;
	struct str end;

	if (!bounds)
		return NULL;
	begin = str_of(bounds, key.len + behind.len);
	end = str_of(bounds + begin.len, key.len + 1);
	if (key.len) {
		memcpy(bounds, key.ptr, key.len);
		memcpy(bounds + begin.len, key.ptr, key.len);
	}
	if (behind.len)
		memcpy(bounds + key.len, behind.ptr, behind.len);
	bounds[begin.len + key.len] = '\xff';
	return kv_get_range(l->tx, begin, end, &options);
}

/* ---- The root value ---- */

/* True if the root value is known to have the body or to name its text: there are no leaves. */
static bool
lookup_is_text(const struct lookup *l)
{
	return l->body.form == DOC_FORM_PACKED || l->body.form == DOC_FORM_CHUNKED;
}

static enum status
lookup_take_root_value(struct lookup *l, struct str value)
{
	enum status status = doc_root_read(value, &l->body, l->err);

	if (status == STATUS_OK || status == STATUS_NEWER)
		return status;
	return err_set(l->err, status, "the document's root value cannot be read");
}

/*
 * Asks for the root value. If the answer is there at once and has the packed body, nothing else
 * needs to be asked for. Otherwise it comes in one round trip with the leaves.
 */
static enum status
lookup_ask_root(struct lookup *l)
{
	struct str value;

	l->root = kv_get(l->tx, buf_str(&l->key), l->mode);
	if (!kv_future_ready(l->root) || !kv_future_value(l->root, &value))
		return STATUS_OK;
	return lookup_take_root_value(l, value);
}

/* Waits for the root value. The packed text belongs to its future, which stays until the end. */
static enum status
lookup_wait_for_root(struct lookup *l)
{
	enum status status = kv_future_wait(l->root);
	struct str value;

	if (status != STATUS_OK)
		return lookup_fail_read(l, status);
	return kv_future_value(l->root, &value) ? lookup_take_root_value(l, value) : STATUS_OK;
}

/* ---- Leaves ---- */

/*
 * Waits for the first leaf of the container at l->key, the path that is resolved so far, and finds
 * out whether the container is an array. STATUS_NOT_FOUND if there is no container.
 */
static enum status
lookup_resolve_container(struct lookup *l, bool *ret_array)
{
	struct kv_range range;
	struct tuple_reader r;
	struct tuple_elem e;
	enum status status = kv_future_wait(l->leaf);

	if (status != STATUS_OK)
		return lookup_fail_read(l, status);
	range = kv_future_range(l->leaf);
	status = STATUS_NOT_FOUND;
	if (range.count) {
		r = tuple_reader(str_skip(range.pairs[0].key, l->key.len));
		status = tuple_next(&r, &e);
		*ret_array = status == STATUS_OK && e.kind == TUPLE_INT;
		if (status == STATUS_OK && e.kind != TUPLE_INT && e.kind != TUPLE_STRING)
			status = STATUS_NOT_FOUND;
	}
	kv_future_free(l->leaf);
	l->leaf = NULL;
	return status;
}

/* A path that makes a key too long is in no document. */
static enum status
lookup_key_status(const struct lookup *l)
{
	return buf_status(&l->key) == STATUS_LIMIT ? STATUS_NOT_FOUND : buf_status(&l->key);
}

/*
 * Goes on with the leading tokens as long as more than DOC_POINTER_NUMBERS numeric ones are left.
 * It stops at the next numeric token and asks for the first leaf of its container. l->leaf stays
 * NULL if all remaining tokens can be tried both ways at once.
 */
static enum status
lookup_resolve_next(struct lookup *l)
{
	const struct doc_pointer *p = l->pointer;
	uint64_t position;

	while (l->numbers > DOC_POINTER_NUMBERS) {
		if (doc_pointer_position(p->tokens[l->at], &position)) {
			l->leaf = lookup_read_below(l, buf_str(&l->key), STR("\0"), 1);
			return l->leaf ? STATUS_OK : lookup_fail_memory(l);
		}
		tuple_put_str(&l->key, p->tokens[l->at++]);
		TRY(lookup_key_status(l));
	}
	return STATUS_OK;
}

/* Takes the token that lookup_resolve_next() has stopped at. */
static enum status
lookup_resolve_token(struct lookup *l)
{
	struct str token = l->pointer->tokens[l->at++];
	uint64_t position;
	bool array = false;

	TRY(lookup_resolve_container(l, &array));
	l->numbers--;
	if (array && doc_pointer_position(token, &position))
		tuple_put_u64(&l->key, position);
	else
		tuple_put_str(&l->key, token);
	return lookup_key_status(l);
}

/* Lists every way to encode the tokens from l->at on behind l->key, except for keys too long. */
static enum status
lookup_list_ways(struct lookup *l)
{
	const struct doc_pointer *p = l->pointer;
	size_t known = l->key.len;
	unsigned way = 0;
	unsigned numbers;

	do {
		uint64_t position;

		l->key.len = known;
		numbers = 0;
		for (size_t i = l->at; i < p->count; i++) {
			if (doc_pointer_position(p->tokens[i], &position) && way >> numbers++ & 1)
				tuple_put_u64(&l->key, position);
			else
				tuple_put_str(&l->key, p->tokens[i]);
		}
		if (buf_status(&l->key) == STATUS_OK) {
			struct str copy = buf_dup(&l->key, l->arena);

			if (!copy.ptr)
				return lookup_fail_memory(l);
			assert(l->count < DOC_POINTER_WAYS);
			l->ways[l->count++] = copy;
		} else if (buf_status(&l->key) != STATUS_LIMIT) {
			return lookup_fail_memory(l);
		}
		l->key.failed = STATUS_OK;
	} while (++way >> numbers == 0);
	return STATUS_OK;
}

/* Feeds the leaves under `way` to the assembler. *f has the first of them and is replaced. */
static enum status
lookup_assemble_way(struct lookup *l, struct doc_assembler *a, struct str way, struct kv_future **f,
		    bool whole)
{
	struct kv_range range = kv_future_range(*f);
	size_t i = whole ? 1 : 0;

	for (;;) {
		struct str behind;

		for (; i < range.count; i++) {
			struct str path = str_skip(range.pairs[i].key, way.len);

			/* Below a root key, null leads to what does not belong to the body. */
			if (whole && path.len && !path.ptr[0])
				continue;
			TRY(doc_assemble_leaf(a, path, range.pairs[i].value));
		}
		if (!range.more)
			return doc_assemble_end(a);
		/* The least key behind the last one. */
		buf_clear(&l->key);
		buf_append_str(&l->key, str_skip(range.pairs[range.count - 1].key, way.len));
		buf_append_byte(&l->key, 0);
		TRY(buf_status(&l->key));
		behind = buf_str(&l->key);
		kv_future_free(*f);
		*f = lookup_read_below(l, way, behind, 0);
		if (!*f)
			return STATUS_LIMIT;
		TRY(kv_future_wait(*f));
		range = kv_future_range(*f);
		i = 0;
	}
}

static enum status
lookup_fail_limit(struct lookup *l)
{
	return err_set(l->err, STATUS_LIMIT, "the value is larger than %zu bytes",
		       l->out->max_bytes);
}

/* After a search of the text in chunks. */
static enum status
lookup_fail_search(struct lookup *l, enum status status)
{
	if (status == STATUS_CORRUPT)
		return err_set(l->err, status, "the text of the document is damaged");
	return status == STATUS_LIMIT ? lookup_fail_limit(l) : lookup_fail_read(l, status);
}

/* Writes the value out of the text in chunks. */
static enum status
lookup_write_from_chunks(struct lookup *l)
{
	AUTO(doc_search_release) struct doc_search search;
	enum status status;

	doc_search_init(&search, l->pointer);
	status = doc_search_chunks(l->tx, l->texts, &l->body, &search, 1,
				   l->out->max_bytes - l->out->len);
	if (status != STATUS_OK)
		return lookup_fail_search(l, status);
	if (search.missing)
		return STATUS_NOT_FOUND;
	buf_append_buf(l->out, &search.value);
	return buf_status(l->out);
}

/* Writes the value out of the packed body. */
static enum status
lookup_write_packed(struct lookup *l)
{
	enum status status;
	struct str text;

	status = doc_packed_find(l->body.packed, l->pointer, &text);
	if (status == STATUS_CORRUPT)
		return err_set(l->err, status, "the packed document is damaged");
	TRY(status);
	buf_append_str(l->out, text);
	status = buf_status(l->out);
	return status == STATUS_LIMIT ? lookup_fail_limit(l) : status;
}

/* Writes the value out of a text, wherever that lies. */
static enum status
lookup_write_from_text(struct lookup *l)
{
	return l->body.form == DOC_FORM_PACKED ? lookup_write_packed(l)
					       : lookup_write_from_chunks(l);
}

static enum status
lookup_write_way(struct lookup *l, size_t way, bool whole)
{
	struct doc_assembler a;
	size_t begin = l->out->len;
	enum status status;

	if (whole) {
		buf_append_byte(l->out, '{');
		doc_assemble_init_object(&a, l->out, false);
	} else {
		doc_assemble_init(&a, l->out);
	}
	status = lookup_assemble_way(l, &a, l->ways[way], &l->futures[way], whole);
	doc_assemble_release(&a);
	if (status == STATUS_OK)
		return STATUS_OK;
	l->out->len = begin;
	if (status == STATUS_CORRUPT)
		return err_set(l->err, status, "the stored leaves do not make a JSON value");
	return status == STATUS_LIMIT ? lookup_fail_limit(l) : lookup_fail_read(l, status);
}

static enum status
lookup_ask_ways(struct lookup *l)
{
	for (size_t i = 0; i < l->count; i++) {
		l->futures[i] = lookup_read_below(l, l->ways[i], STR(""), 0);
		if (!l->futures[i])
			return lookup_fail_memory(l);
	}
	return STATUS_OK;
}

/* At most one way has leaves. */
static enum status
lookup_wait_for_ways(struct lookup *l)
{
	bool whole = !l->pointer->count;

	for (size_t i = 0; i < l->count; i++) {
		enum status status = kv_future_wait(l->futures[i]);
		struct kv_range range;

		if (status != STATUS_OK)
			return lookup_fail_read(l, status);
		range = kv_future_range(l->futures[i]);
		if (!range.count)
			continue;
		/* Leaves without a root key are not a document. */
		if (whole && range.pairs[0].key.len != l->ways[i].len)
			break;
		if (whole)
			TRY(lookup_take_root_value(l, range.pairs[0].value));
		return lookup_is_text(l) ? lookup_write_from_text(l)
					 : lookup_write_way(l, i, whole);
	}
	return STATUS_NOT_FOUND;
}

static void
lookup_init(struct lookup *l, struct doc_place place, const struct doc_pointer *pointer)
{
	uint64_t position;

	l->pointer = pointer;
	l->texts = place.texts;
	for (size_t i = 0; i < pointer->count; i++)
		l->numbers += doc_pointer_position(pointer->tokens[i], &position);
	/* A range's end is one byte longer. */
	buf_init(&l->key, KV_LIMIT_KEY_BYTES - 1);
	buf_append_str(&l->key, place.key);
}

static void
lookup_release(struct lookup *l)
{
	kv_future_free(l->root);
	kv_future_free(l->leaf);
	for (size_t i = 0; i < l->count; i++)
		kv_future_free(l->futures[i]);
	buf_release(&l->key);
}

/* Reads the whole document. The first pair of its range is its root value. */
static enum status
lookup_whole(struct lookup *l)
{
	TRY(lookup_list_ways(l));
	TRY(lookup_ask_ways(l));
	return lookup_wait_for_ways(l);
}

static enum status
lookup_one(struct lookup *l)
{
	TRY(lookup_key_status(l));
	if (!l->pointer->count)
		return lookup_whole(l);
	TRY(lookup_ask_root(l));
	while (!lookup_is_text(l)) {
		TRY(lookup_resolve_next(l));
		if (!l->leaf)
			break;
		TRY(lookup_wait_for_root(l));
		if (!lookup_is_text(l))
			TRY(lookup_resolve_token(l));
	}
	if (!lookup_is_text(l)) {
		TRY(lookup_list_ways(l));
		TRY(lookup_ask_ways(l));
	}
	TRY(lookup_wait_for_root(l));
	return lookup_is_text(l) ? lookup_write_from_text(l) : lookup_wait_for_ways(l);
}

enum status
doc_read_pointer(struct kv_tx *tx, struct doc_place place, const struct doc_pointer *pointer,
		 enum kv_read mode, struct arena *arena, struct buf *ret, struct err *err)
{
	struct lookup l = { .tx = tx, .mode = mode, .arena = arena, .out = ret, .err = err };
	enum status status;

	lookup_init(&l, place, pointer);
	status = lookup_one(&l);
	if (status == STATUS_NOT_FOUND)
		err_set(err, status, "there is nothing at that path");
	lookup_release(&l);
	return status;
}

/* ---- Several at once ---- */

struct lookups {
	struct lookup *all;
	bool *missing;
	size_t count;
};

/* Notes STATUS_NOT_FOUND for one lookup, so that the others go on. */
static enum status
lookups_note_missing(struct lookups *s, size_t i, enum status status)
{
	if (status != STATUS_NOT_FOUND)
		return status;
	s->missing[i] = true;
	return STATUS_OK;
}

/*
 * Resolves one token, in each wave, of every pointer that still has too many numeric ones. Only the
 * first pointer asks for the root value; as soon as that has the packed body, this stops.
 */
static enum status
lookups_resolve(struct lookups *s)
{
	bool asked = true;

	while (asked && !lookup_is_text(&s->all[0])) {
		asked = false;
		for (size_t i = 0; i < s->count; i++) {
			if (s->missing[i])
				continue;
			TRY(lookups_note_missing(s, i, lookup_resolve_next(&s->all[i])));
			asked = asked || s->all[i].leaf;
		}
		if (asked)
			TRY(lookup_wait_for_root(&s->all[0]));
		for (size_t i = 0; i < s->count; i++)
			if (s->all[i].leaf && !lookup_is_text(&s->all[0]))
				TRY(lookups_note_missing(s, i, lookup_resolve_token(&s->all[i])));
	}
	return STATUS_OK;
}

/* What the searches have found, in the arena. */
static enum status
lookups_take_searches(struct lookups *s, const struct doc_search *searches, struct arena *arena,
		      struct doc_pointer_value *ret_values)
{
	for (size_t i = 0; i < s->count; i++) {
		const struct doc_search *search = &searches[i];

		ret_values[i] = (struct doc_pointer_value){ .found = !search->missing };
		if (search->missing)
			continue;
		ret_values[i].text = buf_dup(&search->value, arena);
		if (!ret_values[i].text.ptr)
			return lookup_fail_memory(&s->all[i]);
	}
	return STATUS_OK;
}

/* Every value out of the text in chunks, in one pass. */
static enum status
lookups_search(struct lookups *s, size_t max_bytes, struct arena *arena,
	       struct doc_pointer_value *ret_values)
{
	struct lookup *first = &s->all[0];
	struct doc_search *searches = arena_alloc(arena, s->count * sizeof(*searches));
	enum status status;

	if (!searches)
		return lookup_fail_memory(first);
	for (size_t i = 0; i < s->count; i++) {
		doc_search_init(&searches[i], s->all[i].pointer);
		searches[i].missing = s->missing[i];
	}
	status = doc_search_chunks(first->tx, first->texts, &first->body, searches, s->count,
				   max_bytes);
	status = status == STATUS_OK ? lookups_take_searches(s, searches, arena, ret_values)
				     : lookup_fail_search(first, status);
	for (size_t i = 0; i < s->count; i++)
		doc_search_release(&searches[i]);
	return status;
}

static enum status
lookups_run(struct lookups *s, struct buf *out, struct arena *arena,
	    struct doc_pointer_value *ret_values)
{
	for (size_t i = 0; i < s->count; i++)
		TRY(lookups_note_missing(s, i, lookup_key_status(&s->all[i])));
	TRY(lookup_ask_root(&s->all[0]));
	TRY(lookups_resolve(s));
	for (size_t i = 0; i < s->count && !lookup_is_text(&s->all[0]); i++) {
		if (s->missing[i])
			continue;
		TRY(lookup_list_ways(&s->all[i]));
		TRY(lookup_ask_ways(&s->all[i]));
	}
	TRY(lookup_wait_for_root(&s->all[0]));
	if (s->all[0].body.form == DOC_FORM_CHUNKED)
		return lookups_search(s, out->max_bytes, arena, ret_values);
	for (size_t i = 0; i < s->count; i++) {
		struct lookup *l = &s->all[i];
		size_t begin = out->len;

		l->body = s->all[0].body;
		if (!s->missing[i])
			TRY(lookups_note_missing(s, i,
						 lookup_is_text(l) ? lookup_write_packed(l)
								   : lookup_wait_for_ways(l)));
		ret_values[i] = (struct doc_pointer_value){ .found = !s->missing[i] };
		if (s->missing[i])
			continue;
		ret_values[i].text = arena_dup(arena, str_skip(buf_str(out), begin));
		if (!ret_values[i].text.ptr)
			return lookup_fail_memory(&s->all[i]);
	}
	return STATUS_OK;
}

enum status
doc_read_pointers(struct kv_tx *tx, struct doc_place place, const struct doc_pointer *pointers,
		  size_t count, enum kv_read mode, size_t max_bytes, struct arena *arena,
		  struct doc_pointer_value *ret_values, struct err *err)
{
	AUTO(buf_release) struct buf out = BUF_INIT(max_bytes);
	struct lookups s = {
		.all = arena_alloc(arena, count * sizeof(*s.all)),
		.missing = arena_zalloc(arena, count * sizeof(*s.missing)),
		.count = count,
	};
	enum status status;

	if (!s.all || !s.missing)
		return err_set(err, STATUS_LIMIT,
			       "the values exceed the memory limit of a request, %zu bytes",
			       arena_limit_bytes(arena));
	for (size_t i = 0; i < count; i++) {
		s.all[i] = (struct lookup){
			.tx = tx, .mode = mode, .arena = arena, .out = &out, .err = err
		};
		lookup_init(&s.all[i], place, &pointers[i]);
	}
	status = count ? lookups_run(&s, &out, arena, ret_values) : STATUS_OK;
	for (size_t i = 0; i < count; i++)
		lookup_release(&s.all[i]);
	return status;
}
