/* Places in an answer's text where the bytes of attachments go. */
#include <assert.h>

#include "door/couch/wire/holes.h"
#include "door/couch/wire/request.h"

static size_t
holes_count(const struct couch_holes *h)
{
	return h->list.len / sizeof(struct couch_hole);
}

static const struct couch_hole *
hole_at(const struct couch_holes *h, size_t i)
{
	return (const struct couch_hole *)(const void *)h->list.ptr + i;
}

void
couch_holes_add(struct couch_holes *h, enum couch_hole_kind kind, const struct rev_att *att,
		size_t at)
{
	struct couch_hole hole = { .at = at, .kind = kind, .att = *att };
	size_t count = holes_count(h);

	/* Sending relies on the order of the text. */
	assert(!count || hole_at(h, count - 1)->at <= at);
	hole.att.name = hole.att.type = (struct str){ NULL, 0 };
	buf_append(&h->list, &hole, sizeof(hole));
}

bool
couch_holes_any(const struct couch_holes *h)
{
	return h->list.len > 0;
}

void
couch_holes_release(struct couch_holes *h)
{
	buf_release(&h->list);
}

void
couch_holes_cut(struct couch_holes *h, size_t len)
{
	size_t count = holes_count(h);

	while (count && hole_at(h, count - 1)->at >= len)
		count--;
	h->list.len = count * sizeof(struct couch_hole);
}

bool
couch_holes_length(const struct couch_holes *h, uint64_t text_bytes, uint64_t *ret)
{
	*ret = text_bytes;
	for (size_t i = 0; i < holes_count(h); i++) {
		if (hole_at(h, i)->kind != COUCH_HOLE_STORED)
			return false;
		*ret += hole_at(h, i)->att.encoded_length;
	}
	return true;
}

enum status
couch_holes_append(struct couch_holes *h, const struct couch_holes *from, size_t shift)
{
	for (size_t i = 0; i < holes_count(from); i++) {
		struct couch_hole hole = *hole_at(from, i);

		hole.at += shift;
		buf_append(&h->list, &hole, sizeof(hole));
	}
	return buf_status(&h->list);
}

enum status
couch_holes_send(const struct couch_holes *h, struct couch_req *r, couch_hole_fill *fill, void *arg,
		 struct str text)
{
	size_t sent = 0;

	for (size_t i = 0; i < holes_count(h); i++) {
		const struct couch_hole *hole = hole_at(h, i);

		assert(fill && hole->at >= sent && hole->at <= text.len);
		TRY(http_write(r->x, str_of(text.ptr + sent, hole->at - sent)));
		sent = hole->at;
		TRY(fill(arg, hole));
	}
	return http_write(r->x, str_skip(text, sent));
}
