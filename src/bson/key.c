#include <assert.h>
#include <endian.h>

#include "bson/order.h"
#include "bson/scalar.h"
#include "doc/key.h"

/* A key while it is made. Behind `most` bytes nothing matters, so making it stops there. */
struct key_writer {
	struct buf *key;
	size_t from;
	size_t most;
	const struct bson_texts *texts;
	struct buf scratch; /* keys of texts in a collation, and of a scope */
	size_t depth;
	struct bson_iter levels[BSON_DEPTH];
	bool named[BSON_DEPTH];
};

static bool
key_is_enough(const struct key_writer *w)
{
	return w->key->len - w->from > w->most;
}

/* Bytes behind the first `most` cannot be in the key: escaping does not make a text shorter. */
static struct str
key_cut_text(const struct key_writer *w, struct str text)
{
	return text.len > w->most ? str_of(text.ptr, w->most + 1) : text;
}

/* In place of a text a key of it in the collation, in the scratch buffer. */
static enum status
key_collate(struct key_writer *w, struct str *text)
{
	if (!w->texts)
		return STATUS_OK;
	buf_clear(&w->scratch);
	TRY(w->texts->put_key(w->texts->of, *text, &w->scratch));
	*text = buf_str(&w->scratch);
	return buf_status(&w->scratch);
}

/*
 * A component that begins with the length of a text: the text that is put may be cut, but the
 * length has to be the whole text's.
 */
static enum status
key_put_counted(struct key_writer *w, struct doc_scalar *s)
{
	uint32_t len = htobe32((uint32_t)s->text.len);
	size_t at = w->key->len + 1;

	s->text = key_cut_text(w, s->text);
	TRY(doc_key_put(w->key, DOC_KEY_BSON, s));
	memcpy(w->key->ptr + at, &len, sizeof(len));
	return STATUS_OK;
}

/* Scopes are compared as documents: in place of a scope's bytes stands its key. */
static enum status
key_put_code_scope(struct key_writer *w, struct doc_scalar *s)
{
	AUTO(buf_release) struct buf scope = BUF_INIT(BSON_KEY_ROOM(w->most));
	bool cut = false;

	TRY(bson_key_put(&scope, &BSON_OF_DOCUMENT(s->more), w->most, w->texts, &cut));
	s->text = key_cut_text(w, s->text);
	s->more = buf_str(&scope);
	/* A cut key of the scope makes this one longer than `most` as well. */
	return doc_key_put(w->key, DOC_KEY_BSON, s);
}

static enum status
key_put_scalar(struct key_writer *w, const struct bson_value *v)
{
	struct doc_scalar s;

	bson_to_scalar(v, &s);
	switch ((int)v->type) {
	case BSON_BINARY:
	case BSON_DB_POINTER:
		return key_put_counted(w, &s);
	case BSON_CODE_SCOPE:
		return key_put_code_scope(w, &s);
	case BSON_STRING:
	case BSON_SYMBOL:
		TRY(key_collate(w, &s.text));
		break;
	default:
		break;
	}
	if (v->type == BSON_STRING || v->type == BSON_SYMBOL || v->type == BSON_CODE ||
	    v->type == BSON_REGEX) {
		s.text = key_cut_text(w, s.text);
		s.more = key_cut_text(w, s.more);
	}
	return doc_key_put(w->key, DOC_KEY_BSON, &s);
}

static enum status
key_put_value(struct key_writer *w, const struct bson_value *v)
{
	bool named = v->type == BSON_DOCUMENT;

	if (!bson_is_container(v))
		return key_put_scalar(w, v);
	if (w->depth == BSON_DEPTH)
		return STATUS_LIMIT; /* bson_check() lets none through */
	doc_key_begin(w->key, DOC_KEY_BSON, named ? DOC_OBJECT : DOC_ARRAY);
	w->named[w->depth] = named;
	bson_iter_begin(&w->levels[w->depth++], bson_text(v));
	return buf_status(w->key);
}

static enum status
key_put_element(struct key_writer *w, const struct bson_element *e)
{
	struct doc_scalar s;

	if (w->named[w->depth - 1]) {
		bson_to_scalar(&e->value, &s);
		doc_key_member(w->key, DOC_KEY_BSON, key_cut_text(w, e->name), s.kind);
		TRY(buf_status(w->key));
		if (key_is_enough(w))
			return STATUS_OK;
	}
	return key_put_value(w, &e->value);
}

static enum status
key_put_all(struct key_writer *w, const struct bson_value *v)
{
	struct bson_element e;

	TRY(key_put_value(w, v));
	while (w->depth && !key_is_enough(w)) {
		if (bson_iter_read(&w->levels[w->depth - 1], &e)) {
			TRY(key_put_element(w, &e));
		} else {
			doc_key_end(w->key);
			w->depth--;
		}
	}
	return buf_status(w->key);
}

enum status
bson_key_put(struct buf *key, const struct bson_value *v, size_t most,
	     const struct bson_texts *texts, bool *ret_cut)
{
	struct key_writer w;
	enum status status;

	w.key = key;
	w.from = key->len;
	w.most = most;
	w.texts = texts;
	w.scratch = BUF_INIT(BSON_KEY_TEXT_BYTES);
	w.depth = 0;
	status = key_put_all(&w, v);
	buf_release(&w.scratch);
	if (status == STATUS_OK && key_is_enough(&w)) {
		key->len = w.from + most;
		*ret_cut = true;
	}
	return status;
}
