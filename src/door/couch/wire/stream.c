/* Answers that are sent while they are made. */
#include <assert.h>

#include "door/couch/wire/holes.h"
#include "door/couch/wire/reply.h"
#include "door/couch/wire/request.h"
#include "door/couch/wire/stream.h"
#include "loop/wait.h"

enum {
	/* What a piece takes at most that ends with a row of usual length: its buffer doubles. */
	PIECE_KEEP_BYTES = 2 * COUCH_PIECE_BYTES,
};

static size_t
stream_piece_bytes(const struct couch_req *r)
{
	const struct budget *b = http_memory(r->x)->budget;

	return b ? budget_portion(b, COUCH_PIECE_BYTES, COUCH_PIECE_LEAST_BYTES)
		 : COUCH_PIECE_BYTES;
}

void
couch_stream_init(struct couch_stream *s, struct couch_req *r)
{
	*s = (struct couch_stream){
		.r = r,
		.out = couch_buf(r, COUCH_ROW_BYTES),
		.holes = COUCH_HOLES_INIT(r),
		.piece_bytes = stream_piece_bytes(r),
	};
}

void
couch_stream_release(struct couch_stream *s)
{
	buf_release(&s->out);
	couch_holes_release(&s->holes);
}

void
couch_stream_cut(struct couch_stream *s, size_t len)
{
	s->out.len = len;
	s->out.failed = STATUS_OK; /* what failed is cut off, too */
	couch_holes_cut(&s->holes, len);
}

/*
 * True if the memory of a piece that was sent is more than the next pieces should take: a long row
 * was in it, or so much memory is in use by now that pieces have become short.
 */
static bool
stream_holds_much(const struct couch_stream *s)
{
	return s->out.cap > PIECE_KEEP_BYTES || s->out.cap / 4 > s->piece_bytes;
}

static enum status
stream_send_out(struct couch_stream *s)
{
	enum status status = STATUS_OK;

	if (s->out.len && !s->r->head)
		status = couch_holes_send(&s->holes, s->r, s->fill, s->fill_arg, buf_str(&s->out));
	s->piece_bytes = stream_piece_bytes(s->r);
	if (stream_holds_much(s))
		buf_release(&s->out);
	else
		buf_clear(&s->out);
	couch_holes_cut(&s->holes, 0);
	return status;
}

static enum status
stream_start(struct couch_stream *s)
{
	if (s->content_type)
		http_set_header(s->r->x, STR("Content-Type"), str_from_cstr(s->content_type));
	else
		couch_json_headers(s->r);
	/* This is the whole of a small answer, or a stream whose pieces must not wait. */
	if (s->out.len < HTTP_GZIP_LEAST_BYTES)
		http_allow_gzip(s->r->x, 0);
	s->started = true;
	return http_start(s->r->x, HTTP_LENGTH_UNKNOWN);
}

enum status
couch_stream_push(struct couch_stream *s, bool now)
{
	TRY(buf_status(&s->out));
	if (!now && s->out.len < s->piece_bytes && !couch_holes_any(&s->holes))
		return STATUS_OK;
	if (!s->started)
		TRY(stream_start(s));
	TRY(stream_send_out(s));
	if (now)
		http_flush(s->r->x);
	/*
	 * With a fast reader this fiber would never wait, and the loop's other connections would
	 * starve.
	 */
	wait_yield();
	return STATUS_OK;
}

void
couch_stream_rest(struct couch_stream *s)
{
	if (!s->out.len)
		buf_release(&s->out);
	http_rest(s->r->x);
}

enum status
couch_stream_end(struct couch_stream *s)
{
	TRY(buf_status(&s->out));
	if (!s->started)
		TRY(stream_start(s));
	TRY(stream_send_out(s));
	return http_finish(s->r->x);
}

enum status
couch_stream_end_json(struct couch_stream *s, int code)
{
	assert(!couch_holes_any(&s->holes) && !s->content_type);
	if (!s->started)
		return couch_reply(s->r, code, &s->out);
	buf_append_byte(&s->out, '\n');
	return couch_stream_end(s);
}
