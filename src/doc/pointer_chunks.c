/* Values at pointers in a text that lies in chunks: one pass for all of them, in bounded memory. */
#include "doc/pointer_int.h"
#include "loop/step.h"

enum {
	SEARCH_BYTES_A_STEP = 64,
};

void
doc_search_init(struct doc_search *s, const struct doc_pointer *pointer)
{
	*s = (struct doc_search){ .value = BUF_INIT(SIZE_MAX) };
	doc_finder_init(&s->finder, pointer, &s->value);
}

void
doc_search_release(struct doc_search *s)
{
	doc_finder_release(&s->finder);
	buf_release(&s->value);
}

/* Gives a piece of the text to all that still search; `*ret_left`: how many want another one. */
static enum status
feed_all(struct doc_search *searches, size_t count, struct str piece, size_t max_bytes,
	 size_t *ret_left)
{
	size_t bytes = 0;

	*ret_left = 0;
	for (size_t i = 0; i < count; i++) {
		struct doc_search *s = &searches[i];
		enum status status = STATUS_OK;

		if (!s->missing && !s->finder.done) {
			TRY(step_count((uint32_t)(piece.len / SEARCH_BYTES_A_STEP)));
			status = doc_finder_feed(&s->finder, piece);
		}
		if (status == STATUS_NOT_FOUND)
			s->missing = true;
		else
			TRY(status);
		*ret_left += !s->missing && !s->finder.done;
		bytes += s->value.len;
	}
	return bytes <= max_bytes ? STATUS_OK : STATUS_LIMIT;
}

enum status
doc_search_chunks(struct kv_tx *tx, struct str texts, const struct doc_root *root,
		  struct doc_search *searches, size_t count, size_t max_bytes)
{
	AUTO(doc_chunks_close) struct doc_chunks_reader r = { .next = 0 };
	AUTO(buf_release) struct buf prefix = BUF_INIT(KV_LIMIT_KEY_BYTES);
	struct str piece;
	size_t left = 0;

	for (size_t i = 0; i < count; i++)
		left += !searches[i].missing;
	doc_text_prefix(&prefix, texts, root->text_id);
	TRY(buf_status(&prefix));
	TRY(doc_chunks_open(&r, tx, buf_str(&prefix), root->text_bytes));
	while (left) {
		enum status status = doc_chunks_next(&r, &piece);

		/* The text has ended in the middle of a value. */
		if (status == STATUS_NOT_FOUND)
			return STATUS_CORRUPT;
		TRY(status);
		TRY(feed_all(searches, count, piece, max_bytes, &left));
	}
	return STATUS_OK;
}
