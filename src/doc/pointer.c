#include "doc/doc.h"

#include "base/utf8.h"
#include "doc/doc_int.h"
#include "doc/packed.h"

/* ---- Text ---- */

static size_t
count_tokens(struct str text)
{
	size_t n = 0;

	for (size_t i = 0; i < text.len; i++)
		n += text.ptr[i] == '/';
	return n;
}

/* Undoes ~0 and ~1 in `raw`; `*ret` has room for it. False for any other tilde. */
static bool
unescape_token(struct str raw, char *bytes, struct str *ret)
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
	struct doc_pointer p = { .count = count_tokens(text) };
	char *bytes;

	if (text.len && text.ptr[0] != '/')
		return err_set(err, STATUS_INVALID, "a JSON Pointer must start with a slash");
	if (utf8_valid_prefix(text) < text.len)
		return err_set(err, STATUS_INVALID, "the JSON Pointer is not valid UTF-8");
	if (p.count > JSON_DEPTH_LIMIT)
		return err_set(err, STATUS_LIMIT, "the JSON Pointer has more than %d tokens",
			       JSON_DEPTH_LIMIT);
	p.tokens = arena_alloc(arena, p.count * sizeof(*p.tokens));
	bytes = arena_bytes(arena, text.len);
	if (!p.tokens || !bytes)
		return err_set(err, STATUS_LIMIT,
			       "the JSON Pointer exceeds the memory limit of a "
			       "request");
	for (size_t i = 0; i < p.count; i++) {
		const char *end;
		struct str raw;

		text = str_skip(text, 1);
		end = text.len ? memchr(text.ptr, '/', text.len) : NULL;
		raw = str_of(text.ptr, end ? (size_t)(end - text.ptr) : text.len);
		if (!unescape_token(raw, bytes, &p.tokens[i]))
			return err_set(err, STATUS_INVALID,
				       "in a JSON Pointer ~ must be followed by 0 or 1");
		bytes += raw.len;
		text = str_skip(text, raw.len);
	}
	*ret = p;
	return STATUS_OK;
}

/* ---- Reading ---- */

/* One read of a pointer, while it goes on. */
struct lookup {
	struct kv_tx *tx;
	enum kv_read mode;
	struct arena *arena;
	struct buf *out;
	struct err *err;
	const struct doc_pointer *pointer;
	size_t at;              /* the first token that is not in `key` */
	size_t numbers;         /* tokens from there on that may be positions */
	struct kv_future *root; /* the document's root value, until it is known what it says */
	struct str packed;      /* the body, if the root value has it; ptr NULL: it has leaves */
	struct kv_future *leaf; /* the first leaf of the container at `key` */
	struct buf key;         /* prefix and encoded path, as far as it is known; then scratch */
	struct str ways[DOC_POINTER_WAYS];
	struct kv_future *futures[DOC_POINTER_WAYS];
	size_t count;
};

bool
doc_pointer_position(struct str token, uint64_t *ret)
{
	if (!token.len || (token.ptr[0] == '0' && token.len > 1))
		return false;
	for (size_t i = 0; i < token.len; i++)
		if (token.ptr[i] < '0' || token.ptr[i] > '9')
			return false;
	return str_to_u64(token, ret) && *ret <= UINT32_MAX;
}

static enum status
fail_read(struct lookup *l, enum status status)
{
	return err_set(l->err, status, "%s", kv_tx_error(l->tx));
}

static enum status
fail_memory(struct lookup *l)
{
	return err_set(l->err, STATUS_LIMIT, "no memory for reading the value");
}

/* What starts with `key` and goes on with another element, from `behind` on; the key itself when
 * that is empty. */
static struct kv_future *
read_below(struct lookup *l, struct str key, struct str behind, size_t limit)
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

static enum status
read_root_value(struct lookup *l, struct str value)
{
	if (doc_root_read(value, &l->packed, NULL) == STATUS_OK)
		return STATUS_OK;
	return err_set(l->err, STATUS_CORRUPT, "the document's root value cannot be read");
}

/*
 * Asks for the root value. Where it is there at once and has the body, nothing else needs to be
 * asked for; otherwise it comes in one round trip with the leaves.
 */
static enum status
ask_root(struct lookup *l)
{
	struct str value;

	l->root = kv_get(l->tx, buf_str(&l->key), l->mode);
	if (!kv_future_ready(l->root) || !kv_future_value(l->root, &value))
		return STATUS_OK;
	return read_root_value(l, value);
}

/* Waits for the root value, once. It stays with the future, and the packed text with it. */
static enum status
take_root(struct lookup *l)
{
	enum status status = kv_future_wait(l->root);
	struct str value;

	if (status != STATUS_OK)
		return fail_read(l, status);
	return kv_future_value(l->root, &value) ? read_root_value(l, value) : STATUS_OK;
}

/* ---- Leaves ---- */

/*
 * Whether the container at l->key, as far as the path is resolved, is an array: its first leaf,
 * which has been asked for, tells. STATUS_NOT_FOUND if it is no container.
 */
static enum status
resolve_container(struct lookup *l, bool *ret_array)
{
	struct kv_range range;
	struct tuple_reader r;
	struct tuple_elem e;
	enum status status = kv_future_wait(l->leaf);

	if (status != STATUS_OK)
		return fail_read(l, status);
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

/* No key can be longer. */
static enum status
key_status(const struct lookup *l)
{
	return buf_status(&l->key) == STATUS_LIMIT ? STATUS_NOT_FOUND : buf_status(&l->key);
}

/*
 * Goes on with the leading tokens as long as more than DOC_POINTER_NUMBERS numeric ones are left:
 * up to the next of them, whose container is asked for. l->leaf stays NULL when the rest can be
 * tried in every way.
 */
static enum status
resolve_next(struct lookup *l)
{
	const struct doc_pointer *p = l->pointer;
	uint64_t position;

	while (l->numbers > DOC_POINTER_NUMBERS) {
		if (doc_pointer_position(p->tokens[l->at], &position)) {
			l->leaf = read_below(l, buf_str(&l->key), STR("\0"), 1);
			return l->leaf ? STATUS_OK : fail_memory(l);
		}
		tuple_put_str(&l->key, p->tokens[l->at++]);
		TRY(key_status(l));
	}
	return STATUS_OK;
}

/* Takes the token that resolve_next() has stopped at. */
static enum status
resolve_token(struct lookup *l)
{
	struct str token = l->pointer->tokens[l->at++];
	uint64_t position;
	bool array = false;

	TRY(resolve_container(l, &array));
	l->numbers--;
	if (array && doc_pointer_position(token, &position))
		tuple_put_u64(&l->key, position);
	else
		tuple_put_str(&l->key, token);
	return key_status(l);
}

/* Every way to encode the tokens from l->at on behind l->key; those that make no possible key are
 * left out. */
static enum status
list_ways(struct lookup *l)
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
			struct str copy = arena_dup(l->arena, buf_str(&l->key));

			if (!copy.ptr)
				return fail_memory(l);
			l->ways[l->count++] = copy;
		} else if (buf_status(&l->key) != STATUS_LIMIT) {
			return fail_memory(l);
		}
		l->key.failed = STATUS_OK;
	} while (++way >> numbers == 0);
	return STATUS_OK;
}

/* Feeds the leaves under `way` to the assembler; *f holds the first of them and is replaced. */
static enum status
assemble_way(struct lookup *l, struct doc_assembler *a, struct str way, struct kv_future **f,
	     bool whole)
{
	struct kv_range range = kv_future_range(*f);
	size_t i = whole ? 1 : 0;

	for (;;) {
		struct str behind;

		for (; i < range.count; i++) {
			struct str path = str_skip(range.pairs[i].key, way.len);

			/* Below a document's root, null leads to what is not of its body. */
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
		*f = read_below(l, way, behind, 0);
		if (!*f)
			return STATUS_LIMIT;
		TRY(kv_future_wait(*f));
		range = kv_future_range(*f);
		i = 0;
	}
}

/* The value out of the packed body. */
static enum status
write_packed(struct lookup *l)
{
	enum status status;
	struct str text;

	status = doc_packed_find(l->packed, l->pointer, &text);
	if (status == STATUS_CORRUPT)
		return err_set(l->err, status, "the packed document is damaged");
	TRY(status);
	buf_append_str(l->out, text);
	status = buf_status(l->out);
	if (status == STATUS_LIMIT)
		return err_set(l->err, status, "the value is larger than %zu bytes",
			       l->out->max_bytes);
	return status;
}

static enum status
write_way(struct lookup *l, size_t way, bool whole)
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
	status = assemble_way(l, &a, l->ways[way], &l->futures[way], whole);
	doc_assemble_release(&a);
	if (status == STATUS_OK)
		return STATUS_OK;
	l->out->len = begin;
	if (status == STATUS_CORRUPT)
		return err_set(l->err, status, "the stored leaves do not make a JSON value");
	if (status == STATUS_LIMIT)
		return err_set(l->err, status, "the value is larger than %zu bytes",
			       l->out->max_bytes);
	return fail_read(l, status);
}

static enum status
ask_ways(struct lookup *l)
{
	for (size_t i = 0; i < l->count; i++) {
		l->futures[i] = read_below(l, l->ways[i], STR(""), 0);
		if (!l->futures[i])
			return fail_memory(l);
	}
	return STATUS_OK;
}

/* At most one way has leaves. */
static enum status
take_ways(struct lookup *l)
{
	bool whole = !l->pointer->count;

	for (size_t i = 0; i < l->count; i++) {
		enum status status = kv_future_wait(l->futures[i]);
		struct kv_range range;

		if (status != STATUS_OK)
			return fail_read(l, status);
		range = kv_future_range(l->futures[i]);
		if (!range.count)
			continue;
		/* A document without its root key is none. */
		if (whole && range.pairs[0].key.len != l->ways[i].len)
			break;
		if (whole)
			TRY(read_root_value(l, range.pairs[0].value));
		return l->packed.ptr ? write_packed(l) : write_way(l, i, whole);
	}
	return STATUS_NOT_FOUND;
}

static void
lookup_init(struct lookup *l, struct str prefix, const struct doc_pointer *pointer)
{
	uint64_t position;

	l->pointer = pointer;
	for (size_t i = 0; i < pointer->count; i++)
		l->numbers += doc_pointer_position(pointer->tokens[i], &position);
	/* A range's end is one byte longer. */
	buf_init(&l->key, KV_LIMIT_KEY_BYTES - 1);
	buf_append_str(&l->key, prefix);
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

/* The whole document's root value is the first pair of its range. */
static enum status
look_up_whole(struct lookup *l)
{
	TRY(list_ways(l));
	TRY(ask_ways(l));
	return take_ways(l);
}

static enum status
look_up(struct lookup *l)
{
	TRY(key_status(l));
	if (!l->pointer->count)
		return look_up_whole(l);
	TRY(ask_root(l));
	while (!l->packed.ptr) {
		TRY(resolve_next(l));
		if (!l->leaf)
			break;
		TRY(take_root(l));
		if (!l->packed.ptr)
			TRY(resolve_token(l));
	}
	if (!l->packed.ptr) {
		TRY(list_ways(l));
		TRY(ask_ways(l));
	}
	TRY(take_root(l));
	return l->packed.ptr ? write_packed(l) : take_ways(l);
}

enum status
doc_read_pointer(struct kv_tx *tx, struct str prefix, const struct doc_pointer *pointer,
		 enum kv_read mode, struct arena *arena, struct buf *ret, struct err *err)
{
	struct lookup l = { .tx = tx, .mode = mode, .arena = arena, .out = ret, .err = err };
	enum status status;

	lookup_init(&l, prefix, pointer);
	status = look_up(&l);
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

/* STATUS_NOT_FOUND is one lookup's end and not that of the others. */
static enum status
step(struct lookups *s, size_t i, enum status status)
{
	if (status != STATUS_NOT_FOUND)
		return status;
	s->missing[i] = true;
	return STATUS_OK;
}

/*
 * Each wave resolves one token of every pointer that still has too many, until the root value,
 * which the first one has asked for, turns out to have the body.
 */
static enum status
resolve_all(struct lookups *s)
{
	bool asked = true;

	while (asked && !s->all[0].packed.ptr) {
		asked = false;
		for (size_t i = 0; i < s->count; i++) {
			if (s->missing[i])
				continue;
			TRY(step(s, i, resolve_next(&s->all[i])));
			asked = asked || s->all[i].leaf;
		}
		if (asked)
			TRY(take_root(&s->all[0]));
		for (size_t i = 0; i < s->count; i++)
			if (s->all[i].leaf && !s->all[0].packed.ptr)
				TRY(step(s, i, resolve_token(&s->all[i])));
	}
	return STATUS_OK;
}

static enum status
look_up_all(struct lookups *s, struct buf *out, struct arena *arena,
	    struct doc_pointer_value *ret_values)
{
	for (size_t i = 0; i < s->count; i++)
		TRY(step(s, i, key_status(&s->all[i])));
	TRY(ask_root(&s->all[0]));
	TRY(resolve_all(s));
	for (size_t i = 0; i < s->count && !s->all[0].packed.ptr; i++) {
		if (s->missing[i])
			continue;
		TRY(list_ways(&s->all[i]));
		TRY(ask_ways(&s->all[i]));
	}
	TRY(take_root(&s->all[0]));
	for (size_t i = 0; i < s->count; i++) {
		struct lookup *l = &s->all[i];
		size_t begin = out->len;

		l->packed = s->all[0].packed;
		if (!s->missing[i])
			TRY(step(s, i, l->packed.ptr ? write_packed(l) : take_ways(l)));
		ret_values[i] = (struct doc_pointer_value){ .found = !s->missing[i] };
		if (s->missing[i])
			continue;
		ret_values[i].text = arena_dup(arena, str_skip(buf_str(out), begin));
		if (!ret_values[i].text.ptr)
			return fail_memory(&s->all[i]);
	}
	return STATUS_OK;
}

enum status
doc_read_pointers(struct kv_tx *tx, struct str prefix, const struct doc_pointer *pointers,
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
		return err_set(err, STATUS_LIMIT, "no memory for reading the values");
	for (size_t i = 0; i < count; i++) {
		s.all[i] = (struct lookup){
			.tx = tx, .mode = mode, .arena = arena, .out = &out, .err = err
		};
		lookup_init(&s.all[i], prefix, &pointers[i]);
	}
	status = count ? look_up_all(&s, &out, arena, ret_values) : STATUS_OK;
	for (size_t i = 0; i < count; i++)
		lookup_release(&s.all[i]);
	return status;
}
