/*
 * Whatever bytes arrive on a connection, and however they are cut: the same requests come out, and
 * the same refusal ends them. The first byte decides the cuts.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/rand.h"
#include "http/parser.h"

enum {
	HEADER_BYTES = 512, /* small, so that the limits are met */
	OUT_BYTES = 1 << 22,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool
take_body(void *arg, struct str data)
{
	buf_append_str(arg, data);
	return true;
}

static void
describe(struct buf *out, const struct parser *p, const struct buf *body)
{
	struct str method = parser_method(p);
	struct str target = parser_target(p);

	buf_printf(out, "%.*s %.*s %u %d %d %d\n", STR_ARG(method), STR_ARG(target),
		   parser_minor_version(p), p->keep_alive, p->chunked, p->expect_continue);
	for (size_t i = 0; i < p->span_count; i++) {
		struct http_header h = parser_header(p, i);

		buf_append_hex(out, h.name);
		buf_append_byte(out, '=');
		buf_append_hex(out, h.value);
		buf_append_byte(out, '\n');
	}
	buf_append_str(out, buf_str(body));
}

static void
parse_all(struct str stream, struct rand_seq *cuts, struct buf *out)
{
	struct buf body = BUF_INIT(OUT_BYTES);
	struct parser p;

	parser_init(&p, HEADER_BYTES, take_body, &body);
	while (stream.len) {
		size_t n = cuts ? 1 + rand_seq_below(cuts, 24) : stream.len;
		enum parser_result result;
		size_t used;

		result = parser_feed(&p, str_of(stream.ptr, n < stream.len ? n : stream.len),
				     &used);
		stream = str_skip(stream, used);
		if (result == PARSER_RESULT_BAD) {
			buf_printf(out, "refused %d\n", p.refusal);
			break;
		}
		if (result == PARSER_RESULT_DONE) {
			describe(out, &p, &body);
			buf_clear(&body);
			parser_clear(&p);
		}
	}
	parser_release(&p);
	buf_release(&body);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf whole = BUF_INIT(OUT_BYTES);
	struct buf cut = BUF_INIT(OUT_BYTES);
	struct rand_seq cuts;

	if (size < 1)
		return 0;
	cuts.state = data[0];
	parse_all(str_of(data + 1, size - 1), NULL, &whole);
	parse_all(str_of(data + 1, size - 1), &cuts, &cut);
	if (!str_eq(buf_str(&whole), buf_str(&cut))) {
		fprintf(stderr, "whole:\n%.*s\ncut:\n%.*s\n", STR_ARG(whole), STR_ARG(cut));
		abort();
	}
	buf_release(&whole);
	buf_release(&cut);
	return 0;
}
