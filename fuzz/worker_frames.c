/*
 * Any bytes as what a server sends to its worker: frames are handled, or refused, and whatever is
 * answered is what the server's side takes for an answer. The engine is one that echoes.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "js/answer.h"
#include "js/worker/handler.h"

enum {
	ANSWER_BYTES = 1 << 20,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct engine_context {
	const struct engine_host *host;
};

static struct engine_context *
echo_load(struct str design, enum engine_environment environment, const struct engine_host *host,
	  struct buf *answer)
{
	struct engine_context *c;

	(void)environment;
	if (design.len == 0) {
		buf_append_cstr(answer, "-empty\n\"no design document\"");
		return NULL;
	}
	c = mem_alloc(sizeof(*c));
	if (c)
		c->host = host;
	return c;
}

static void
echo_unload(struct engine_context *c)
{
	mem_free(c);
}

/* The first text is the answer, so that all forms of answers are met. */
static void
echo_call(struct engine_context *c, enum engine_op op, const struct str *args, size_t count,
	  struct buf *answer)
{
	buf_clear(answer);
	for (size_t i = 0; i < count; i++)
		if (args[i].ptr[args[i].len] != '\0')
			abort();
	if (op == ENGINE_UPDATE || count == 0 || args[0].len == 0)
		buf_append_cstr(answer, "+\n");
	else
		buf_append_str(answer, args[0]);
	if (answer->ptr[0] == 'l')
		c->host->log(c->host->arg, args[0]);
}

static const struct engine echo = { echo_load, echo_unload, echo_call };

static bool
be_ready(void *arg)
{
	(void)arg;
	return true;
}

/* What the worker has sent must be frames of its own. */
static void
check_sent(struct str sent)
{
	struct wire_head head;

	while (sent.len > 0) {
		struct str name;
		struct str reason;

		if (wire_read_head(sent, &head) != STATUS_OK ||
		    head.bytes > sent.len - WIRE_HEAD_BYTES)
			abort();
		sent = str_skip(sent, WIRE_HEAD_BYTES);
		if (head.kind == WIRE_ERROR)
			(void)answer_read_error(str_of(sent.ptr, head.bytes), &name, &reason);
		sent = str_skip(sent, head.bytes);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct handler *h = handler_new(&echo, be_ready, NULL);
	struct buf out = BUF_INIT(ANSWER_BYTES);
	struct str rest = str_of(data, size);
	struct wire_head head;

	while (h && wire_read_head(rest, &head) == STATUS_OK &&
	       head.bytes <= rest.len - WIRE_HEAD_BYTES) {
		bool good = handler_handle(h, &head, str_of(rest.ptr + WIRE_HEAD_BYTES, head.bytes),
					   &out);

		if (!good)
			break;
		check_sent(buf_str(&out));
		buf_clear(&out);
		rest = str_skip(rest, WIRE_HEAD_BYTES + (size_t)head.bytes);
	}
	buf_release(&out);
	handler_free(h);
	return 0;
}
