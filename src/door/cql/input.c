#include "door/cql/input.h"

#include <assert.h>

#include "base/clock.h"
#include "door/cql/wire/segment.h"
#include "net/memory.h"
#include "serve/settle.h"

enum {
	IDLE_LOOK_MS = 60 * 60 * 1000,
	OLD_HEADER_BYTES = 8, /* of versions 1 and 2, whose streams have one byte */
};

static bool
lacks_memory(struct cql_client *c)
{
	return budget_has_failed(c->in.part) || net_stream_is_unwanted(c->stream);
}

/* The connection ends, unless it is memory that is missing. */
static enum input_result
result_of(struct cql_client *c, enum status status)
{
	switch ((int)status) {
	case STATUS_LIMIT:
	case STATUS_NOMEM:
		return INPUT_MEMORY;
	case STATUS_CORRUPT:
	case STATUS_INVALID:
		return INPUT_CORRUPT;
	default:
		return net_stream_is_unwanted(c->stream) ? INPUT_MEMORY : INPUT_ENDED;
	}
}

/* Waits until something comes, and sends the events that come first. */
static enum status
wait_for_bytes(struct cql_client *c)
{
	struct event *wake;
	struct str in;

	for (;;) {
		TRY(visit_follow(&c->entry));
		TRY(cql_client_send_events(c));
		TRY(net_stream_next(c->stream, &in));
		if (in.len)
			return STATUS_OK;
		wake = clients_wait_begin(&c->entry);
		if (wake)
			net_stream_rest(c->stream, NET_REST_IDLE, wake,
					clock_after_ms(IDLE_LOOK_MS));
		(void)clients_wait_end(&c->entry);
	}
}

/* Drops `c->skips` bytes as they come. */
static enum status
skip_bytes(struct cql_client *c)
{
	struct str in;
	size_t n;

	while (c->skips) {
		TRY(net_stream_peek(c->stream, 1, &in));
		n = in.len < c->skips ? in.len : c->skips;
		net_stream_take(c->stream, n);
		c->skips -= n;
	}
	return STATUS_OK;
}

/* Checks what a header says. INPUT_FRAME: the body may be read. */
static enum input_result
check_header(struct cql_client *c, struct input_frame *f)
{
	const struct frame_header *h = &f->header;

	if (h->is_answer || h->version < FRAME_VERSION_LEAST || h->version > FRAME_VERSION_MOST)
		return INPUT_VERSION;
	if (c->version && h->version != c->version)
		return INPUT_MIXED;
	c->version = h->version;
	if (h->length > FRAME_PROTOCOL_BYTES)
		return INPUT_CORRUPT;
	return h->length > FRAME_BYTES ? INPUT_LENGTH : INPUT_FRAME;
}

/* ---- Frames one after the other ---- */

static enum input_result
next_frame(struct cql_client *c, struct input_frame *ret)
{
	enum input_result result;
	enum status status;
	struct str in;
	size_t header = FRAME_HEADER_BYTES;

	status = net_stream_peek(c->stream, 2, &in);
	if (status != STATUS_OK)
		return result_of(c, status);
	/* A frame of the first versions may have no body, and then no ninth byte. */
	if (((uint8_t)in.ptr[0] & ~(unsigned)FRAME_ANSWER) < FRAME_VERSION_LEAST) {
		ret->header = (struct frame_header){ .version = (uint8_t)in.ptr[0],
						     .stream = (int8_t)in.ptr[1] };
		(void)!net_stream_peek(c->stream, OLD_HEADER_BYTES, &in);
		return INPUT_VERSION;
	}
	status = net_stream_peek(c->stream, header, &in);
	if (status != STATUS_OK)
		return result_of(c, status);
	ret->header = frame_header_read(in);
	result = check_header(c, ret);
	if (result == INPUT_LENGTH)
		c->skips = ret->header.length;
	if (result != INPUT_FRAME && result != INPUT_LENGTH)
		return result;
	net_stream_take(c->stream, header);
	if (result == INPUT_LENGTH)
		return result;
	buf_clear(&c->in);
	/* Buffers grow by doubling. */
	status = net_stream_read(c->stream, ret->header.length, 2 * ret->header.length, &c->in);
	if (status != STATUS_OK)
		return result_of(c, status);
	ret->body = buf_str(&c->in);
	c->at = c->in.len;
	return INPUT_FRAME;
}

/* ---- Frames in segments ---- */

static enum status
read_segment(struct cql_client *c)
{
	bool compressed = c->compressor == CQL_COMPRESSOR_LZ4;
	size_t n = segment_header_bytes(compressed);
	struct segment_header h;
	enum status status;
	struct str in;

	TRY(net_stream_peek(c->stream, n, &in));
	TRY(segment_header_read(in, compressed, &h));
	net_stream_take(c->stream, n);
	buf_clear(&c->raw);
	n = h.length + SEGMENT_TRAILER_BYTES;
	TRY(net_stream_read(c->stream, n, n, &c->raw));
	status = segment_payload_read(&h, buf_str(&c->raw), &c->in);
	return status;
}

/* Drops what has come of a frame that is skipped. */
static void
skip_in_segments(struct cql_client *c)
{
	size_t n = c->in.len - c->at < c->skips ? c->in.len - c->at : c->skips;

	c->at += n;
	c->skips -= n;
}

/*
 * The segment that has come was the last for which there was memory. Whatever it was a part of
 * cannot be told from what follows: the connection ends.
 */
static enum input_result
segment_failed(struct cql_client *c, enum status status)
{
	enum input_result result = result_of(c, status);

	c->ends = true;
	return result;
}

static enum input_result
next_in_segments(struct cql_client *c, struct input_frame *ret)
{
	enum input_result result;
	enum status status;
	size_t n = 0;
	bool known = false; /* the header was checked */

	for (;;) {
		/* `ret->body` of the frame before lies in `in`, which moves from here on. */
		assert(c->at <= c->in.len);
		skip_in_segments(c);
		if (c->at == c->in.len) {
			buf_clear(&c->in);
			c->at = 0;
		}
		if (!known && c->in.len - c->at >= FRAME_HEADER_BYTES) {
			ret->header = frame_header_read(str_skip(buf_str(&c->in), c->at));
			result = check_header(c, ret);
			if (result == INPUT_LENGTH) {
				c->at += FRAME_HEADER_BYTES;
				c->skips = ret->header.length;
			}
			if (result != INPUT_FRAME)
				return result;
			known = true;
			n = FRAME_HEADER_BYTES + ret->header.length;
			if (c->in.len - c->at < n) {
				buf_consume(&c->in, c->at);
				c->at = 0;
				status = net_memory_reserve(net_stream_session(c->stream), 2 * n);
				if (status != STATUS_OK)
					return segment_failed(c, status);
			}
		}
		if (known && c->in.len - c->at >= n)
			break;
		net_stream_keep(c->stream, known || c->in.len > c->at || c->skips);
		if (!known && c->in.len == c->at && !c->skips) {
			status = wait_for_bytes(c);
			if (status != STATUS_OK)
				return result_of(c, status);
		}
		status = read_segment(c);
		if (status != STATUS_OK)
			return segment_failed(c, status);
	}
	net_stream_keep(c->stream, false);
	ret->body = str_of(c->in.ptr + c->at + FRAME_HEADER_BYTES, ret->header.length);
	c->at += n;
	return INPUT_FRAME;
}

/* ---- Either ---- */

/* A body that came compressed becomes what it was; what stands in front of it is left out. */
static enum input_result
unpack_body(struct cql_client *c, struct input_frame *f)
{
	enum status status;
	size_t len;

	buf_clear(&c->plain);
	if (!(f->header.flags & FRAME_COMPRESSED))
		return INPUT_FRAME;
	if (c->compressor == CQL_COMPRESSOR_NONE || c->segmented ||
	    cql_body_length(c->compressor, f->body, &len) != STATUS_OK)
		return INPUT_CORRUPT;
	if (len > FRAME_BYTES) {
		f->header.length = len;
		return INPUT_LENGTH;
	}
	if (len > SETTLE_KEPT_BYTES &&
	    net_memory_reserve(net_stream_session(c->stream), len) != STATUS_OK)
		return INPUT_MEMORY;
	status = cql_body_unpack(c->compressor, f->body, &c->plain);
	f->body = buf_str(&c->plain);
	return status == STATUS_OK ? INPUT_FRAME : result_of(c, status);
}

enum input_result
cql_input_next(struct cql_client *c, struct input_frame *ret)
{
	enum input_result result;
	enum status status;

	*ret = (struct input_frame){ 0 };
	/* What is under way may have failed for that, and has not told yet. */
	if (!c->flights.count)
		budget_forgive(c->in.part);
	if (c->segmented) {
		result = next_in_segments(c, ret);
	} else {
		status = skip_bytes(c);
		if (status == STATUS_OK)
			status = wait_for_bytes(c);
		result = status == STATUS_OK ? next_frame(c, ret) : result_of(c, status);
	}
	if (result == INPUT_FRAME)
		result = unpack_body(c, ret);
	if (result == INPUT_ENDED && lacks_memory(c))
		result = INPUT_MEMORY;
	return result;
}

/* True if the bytes begin with a whole frame that is small. */
static bool
is_small_frame(const struct cql_client *c, struct str in)
{
	struct frame_header h;
	struct str body;
	size_t plain;

	if (in.len < FRAME_HEADER_BYTES)
		return false;
	h = frame_header_read(in);
	if (h.length > CQL_IN_FLIGHT_BYTES || in.len - FRAME_HEADER_BYTES < h.length)
		return false;
	body = str_of(in.ptr + FRAME_HEADER_BYTES, h.length);
	return !(h.flags & FRAME_COMPRESSED) ||
	       (cql_body_length(c->compressor, body, &plain) == STATUS_OK &&
		plain <= CQL_IN_FLIGHT_BYTES);
}

/* True if the bytes begin with a segment that is small and has whole frames. */
static bool
is_small_segment(const struct cql_client *c, struct str in)
{
	bool compressed = c->compressor == CQL_COMPRESSOR_LZ4;
	size_t header = segment_header_bytes(compressed);
	struct segment_header h;

	return in.len >= header &&
	       segment_header_read(str_of(in.ptr, header), compressed, &h) == STATUS_OK &&
	       h.self_contained && h.length <= CQL_IN_FLIGHT_BYTES &&
	       h.plain_length <= CQL_IN_FLIGHT_BYTES &&
	       in.len - header >= h.length + SEGMENT_TRAILER_BYTES;
}

bool
cql_input_has_next(struct cql_client *c)
{
	struct str in;

	if (!cql_input_grows(c))
		return !c->skips && is_small_frame(c, str_skip(buf_str(&c->in), c->at));
	if (net_stream_peek(c->stream, 0, &in) != STATUS_OK)
		return false;
	return c->segmented ? is_small_segment(c, in) : is_small_frame(c, in);
}

bool
cql_input_grows(const struct cql_client *c)
{
	return !c->skips && !(c->segmented && c->at < c->in.len);
}

void
cql_input_done(struct cql_client *c)
{
	assert(c->at <= c->in.len);
	if (c->at == c->in.len) {
		settle_buffer(&c->in);
		c->at = 0;
	}
	settle_buffer(&c->raw);
	settle_buffer(&c->plain);
	settle_buffer(&c->out);
	settle_buffer(&c->packed);
}
