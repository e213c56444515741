/*
 * The keys of one row, or of those that begin alike, by what inspect draws of them:
 * "(0xda40, 'user1', 10)", or the beginning of that. The number in front is what the key of a
 * partition begins with, so it leads to few of them, whatever the types of the components are.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <stdlib.h>

#include "kv/tuple.h"
#include "loop/step.h"
#include "model/timed/timed_int.h"

enum {
	PARTITION_STEPS = 100, /* that a look at one costs */
	DRAWN_BYTES = 4 * TIMED_KEY_BYTES,
	SEARCH_BYTES = 16 * 1024 * 1024,
};

/* What was asked for. */
struct wanted {
	char hash[TIMED_HASH_BYTES];
	struct str *parts; /* as they are drawn */
	size_t count;
};

struct search {
	struct kv_tx *tx;
	const struct catalog_db *db;
	const struct timed_row_form *form;
	struct arena *arena;
	struct wanted wanted;
	catalog_draw_prefix *draw;
	void *arg;
};

/* ---- The text ---- */

/* The length of the component that the text begins with; 0: it begins with none. */
static size_t
part_len(struct str text)
{
	size_t at = 0;

	if (text.len && text.ptr[0] == '\'') {
		for (at = 1; at < text.len; at++) {
			if (text.ptr[at] != '\'')
				continue;
			if (at + 1 == text.len || text.ptr[at + 1] != '\'')
				return at + 1;
			at++;
		}
		return 0;
	}
	while (at < text.len && text.ptr[at] != ',' && text.ptr[at] != ')')
		at++;
	return at;
}

/* False: no row is drawn like that. */
static bool
wanted_parse(struct str text, size_t most, struct wanted *w)
{
	static const struct str begin = { "(0x", 3 };
	struct str digits;

	if (!str_starts_with(text, begin) || text.len < begin.len + 2 * TIMED_HASH_BYTES)
		return false;
	digits = str_of(text.ptr + begin.len, 2 * TIMED_HASH_BYTES);
	if (!str_from_hex(digits, w->hash))
		return false;
	text = str_skip(text, begin.len + digits.len);
	w->count = 0;
	while (text.len > 2 && text.ptr[0] == ',' && text.ptr[1] == ' ' && w->count < most) {
		size_t len = part_len(str_skip(text, 2));

		if (!len)
			return false;
		w->parts[w->count++] = str_of(text.ptr + 2, len);
		text = str_skip(text, 2 + len);
	}
	return !text.len || str_eq(text, STR(")"));
}

static bool
text_read(struct str part, struct arena *arena, struct str *ret)
{
	char *copy = arena_alloc(arena, part.len);
	size_t len = 0;

	if (!copy)
		return false;
	for (size_t i = 1; i + 1 < part.len; i++) {
		copy[len++] = part.ptr[i];
		i += part.ptr[i] == '\'';
	}
	*ret = str_of(copy, len);
	return true;
}

/* Hexadecimal digits, among which dashes do not count. */
static bool
bytes_read(struct str part, struct arena *arena, struct str *ret)
{
	char *digits = arena_alloc(arena, part.len + 1), *bytes;
	size_t len = 0;

	for (size_t i = 0; digits && i < part.len; i++)
		if (part.ptr[i] != '-')
			digits[len++] = part.ptr[i];
	bytes = arena_alloc(arena, len / 2 + 1);
	if (!digits || !bytes || len % 2 || !str_from_hex(str_of(digits, len), bytes))
		return false;
	*ret = str_of(bytes, len / 2);
	return true;
}

static bool
inet_read(const char *text, struct arena *arena, struct str *ret)
{
	char bytes[DOC_INET6_BYTES];

	if (inet_pton(AF_INET, text, bytes) == 1)
		*ret = arena_dup(arena, str_of(bytes, DOC_INET4_BYTES));
	else if (inet_pton(AF_INET6, text, bytes) == 1)
		*ret = arena_dup(arena, str_of(bytes, DOC_INET6_BYTES));
	else
		return false;
	return ret->ptr != NULL;
}

static bool
part_read(struct str part, enum doc_kind kind, struct arena *arena, struct doc_scalar *ret)
{
	struct str copy = arena_printf(arena, "%.*s", STR_ARG(part)); /* ends with a NUL */

	*ret = (struct doc_scalar){ .kind = kind };
	if (!copy.ptr)
		return false;
	switch ((int)kind) {
	case DOC_TEXT:
		return text_read(part, arena, &ret->text);
	case DOC_BOOL:
		ret->truth = str_eq(part, STR("true"));
		return true;
	case DOC_BYTES:
		return str_starts_with(part, STR("0x")) &&
		       bytes_read(str_skip(part, 2), arena, &ret->text);
	case DOC_UUID:
	case DOC_TIMEUUID:
		return bytes_read(part, arena, &ret->text) && ret->text.len == DOC_UUID_BYTES;
	case DOC_INET:
		return inet_read(copy.ptr, arena, &ret->text);
	case DOC_DOUBLE:
		ret->d = strtod(copy.ptr, NULL);
		return true;
	case DOC_FLOAT:
		ret->f = strtof(copy.ptr, NULL);
		return true;
	case DOC_INT8:
	case DOC_INT16:
	case DOC_INT32:
	case DOC_INT64:
	case DOC_DATE:
	case DOC_DAY:
	case DOC_TIME:
		ret->n = strtoll(copy.ptr, NULL, 10);
		return true;
	default:
		return false;
	}
}

static bool
is_drawn_as(const struct doc_scalar *s, struct str part)
{
	AUTO(buf_release) struct buf drawn = BUF_INIT(DRAWN_BYTES);

	timed_draw_scalar(s, &drawn);
	return buf_status(&drawn) == STATUS_OK && str_eq(buf_str(&drawn), part);
}

/* ---- Rows ---- */

/* The first key of the range; STATUS_NOT_FOUND. `ret` lies in the arena. */
static enum status
first_key(struct search *s, struct str begin, struct str end, struct str *ret)
{
	const struct kv_range_options options = { .limit = 1 };
	struct kv_future *f = kv_get_range(s->tx, begin, end, &options);
	enum status status = kv_future_wait(f);

	if (status == STATUS_OK && !kv_future_range(f).count)
		status = STATUS_NOT_FOUND;
	if (status == STATUS_OK) {
		*ret = arena_dup(s->arena, kv_future_range(f).pairs[0].key);
		status = ret->ptr ? STATUS_OK : STATUS_LIMIT;
	}
	kv_future_free(f);
	return status;
}

static enum status
row_parse(struct search *s, struct str key, const struct doc_scalar **ret, size_t *ret_count)
{
	struct str tail = str_skip(key, s->db->prefix.len + TIMED_SPACE_BYTES);

	return s->form->parse(s->db, tail, s->arena, ret, ret_count);
}

/*
 * Appends the range components that were asked for to the key of a partition. `like`: those of one
 * of its rows, whose types tell how to read them. STATUS_NOT_FOUND: no row can have them.
 */
static enum status
put_range(struct search *s, const struct doc_scalar *like, struct buf *key)
{
	AUTO(buf_release) struct buf components = BUF_INIT(TIMED_KEY_BYTES);
	struct timed t;

	timed_init(&t, s->tx, s->db, NULL, kv_tx_err(s->tx));
	for (size_t i = s->form->hash_count; i < s->wanted.count; i++) {
		struct str part = s->wanted.parts[i];
		bool quoted = part.ptr[0] == '\'';
		enum doc_kind kind = quoted                     ? DOC_TEXT
				     : like[i].kind == DOC_TEXT ? DOC_INT64
								: like[i].kind;
		struct doc_scalar scalar;

		if (!part_read(part, kind, s->arena, &scalar) || !is_drawn_as(&scalar, part))
			return STATUS_NOT_FOUND;
		TRY(timed_key_component(&t, &scalar, s->form->descends(s->db, i), &components));
	}
	tuple_put_bytes(key, buf_str(&components));
	TRY(catalog_key_status(key));
	if (s->wanted.count < s->form->key_count)
		timed_key_element_open(key);
	return STATUS_OK;
}

/* The rows of a partition that begin as was asked for. `partition` is what its keys begin with. */
static enum status
draw_rows(struct search *s, struct str partition)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	const struct doc_scalar *parts;
	enum status status;
	struct str key;
	size_t count;

	if (s->wanted.count <= s->form->hash_count)
		return s->draw(s->arg, partition);
	buf_append_str(&begin, partition);
	TRY(tuple_prefix_end(partition, &end));
	TRY(first_key(s, buf_str(&begin), buf_str(&end), &key));
	TRY(row_parse(s, key, &parts, &count));
	if (count < s->form->key_count) {
		/* What a partition has once lies before its rows. */
		size_t len;

		TRY(timed_key_row_bytes(s->db, key, &len));
		buf_clear(&begin);
		TRY(tuple_prefix_end(str_of(key.ptr, len), &begin));
		status = first_key(s, buf_str(&begin), buf_str(&end), &key);
		if (status == STATUS_OK)
			status = row_parse(s, key, &parts, &count);
		if (status != STATUS_OK)
			return status == STATUS_NOT_FOUND ? STATUS_OK : status;
		assert(count == s->form->key_count);
	}
	buf_set(&begin, partition);
	status = put_range(s, parts, &begin);
	if (status == STATUS_NOT_FOUND)
		return STATUS_OK;
	TRY(status);
	return s->draw(s->arg, buf_str(&begin));
}

/* The partitions whose keys begin with the hash, and have the components that were asked for. */
static enum status
draw_partitions(struct search *s)
{
	size_t hash_count = s->form->hash_count;
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	const struct arena_mark mark = arena_mark(s->arena);
	enum status status;
	struct str key;

	timed_key_space(&begin, s->db, s->form->space);
	tuple_put_bytes(&begin, str_of(s->wanted.hash, sizeof(s->wanted.hash)));
	TRY(catalog_key_status(&begin));
	timed_key_element_open(&begin);
	TRY(tuple_prefix_end(buf_str(&begin), &end));
	while ((status = first_key(s, buf_str(&begin), buf_str(&end), &key)) == STATUS_OK) {
		size_t at = s->db->prefix.len + TIMED_SPACE_BYTES, count;
		size_t len = tuple_skip(key, at, TUPLE_SKIP_TEXT);
		const struct doc_scalar *parts;
		bool same = true;

		if (!len)
			return STATUS_CORRUPT;
		TRY(step_count(PARTITION_STEPS));
		TRY(row_parse(s, key, &parts, &count));
		for (size_t i = 0; i < hash_count && i < s->wanted.count && same; i++)
			same = is_drawn_as(&parts[i], s->wanted.parts[i]);
		if (same)
			TRY(draw_rows(s, str_of(key.ptr, len)));
		buf_clear(&begin);
		TRY(tuple_prefix_end(str_of(key.ptr, len), &begin));
		arena_reset(s->arena, mark);
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status
timed_inspect_row(struct kv_tx *tx, const struct catalog_db *db, const struct timed_row_form *form,
		  struct str id, catalog_draw_prefix *draw, void *arg)
{
	struct search s = { tx, db, form, arena_new(SEARCH_BYTES), { .count = 0 }, draw, arg };
	enum status status = STATUS_NOMEM;

	if (s.arena)
		s.wanted.parts = arena_alloc(s.arena, form->key_count * sizeof(*s.wanted.parts));
	/* What nothing is drawn like is not there. */
	if (s.wanted.parts)
		status = wanted_parse(id, form->key_count, &s.wanted) ? draw_partitions(&s)
								      : STATUS_OK;
	arena_free(s.arena);
	return status;
}
