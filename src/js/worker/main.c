/*
 * frond-js: runs functions of design documents for a frond, which starts it with a socket as
 * descriptor WORKER_SOCKET and ends it by SIGKILL, or by closing the socket.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/thread.h"
#include "js/bounds.h"
#include "js/worker/handler.h"
#include "js/worker/sandbox.h"
#include "js/worker/turns.h"

enum {
	READ_BYTES = 256 * 1024,
	KEPT_BYTES = 4 * 1024 * 1024, /* a larger buffer is given back after its call */
	TOGETHER_BYTES = 64 * 1024,   /* answers are sent together up to so much */
	/*
	 * A function may compute until its time is over. By the higher nice value it leaves most
	 * of a processor's time to the server's loops, and turns.h has them get it soon. While no
	 * other process wants the processor, neither costs the function anything.
	 */
	WORKER_NICE = 5, /* added to the server's nice value */
};

/* The engine makes what it needs of the system now: time zones, locales, its threads. */
static const char warm_up_design[] =
	"{\"_id\":\"_design/warm-up\",\"views\":{\"a\":{\"map\":\"function (doc) {"
	"var date = new Date(doc.at), list = [];"
	"for (var i = 0; i < 3000; i++) list.push({ at: i % 7, name: 'n' + i });"
	"list.sort(function (a, b) { return a.at - b.at; });"
	"emit([date.toString(), date.toLocaleString(), new Date(2020, 1, 1).getTimezoneOffset()],"
	"['\\u00e9'.normalize('NFD'), 'a'.localeCompare('b'), /(a+)+b/.test('aab'),"
	"'\\u0130'.toLocaleLowerCase('tr'), Intl.DateTimeFormat().format(date),"
	"Intl.NumberFormat('de').format(1234.5), JSON.stringify(list).length]);"
	"}\"}}}";

static void
forget_log(void *arg, struct str text)
{
	(void)arg;
	(void)text;
}

static bool
warm_up(void)
{
	const struct engine_host host = { .log = forget_log, .output_bytes = 1024 * 1024 };
	const struct str view = STR("a");
	const struct str doc = STR("{\"_id\":\"a\",\"at\":\"2020-01-01T00:00:00Z\"}");
	struct buf answer = BUF_INIT(1024 * 1024);
	struct engine_context *context = engine_jsc.load(
		str_of(warm_up_design, sizeof(warm_up_design) - 1), ENGINE_COUCH, &host, &answer);
	bool good = false;

	if (context) {
		engine_jsc.call(context, ENGINE_MAP_BEGIN, &view, 1, &answer);
		for (int i = 0; i < 20; i++)
			engine_jsc.call(context, ENGINE_MAP_DOCUMENT, &doc, 1, &answer);
		/* A function that failed is marked by \x02. */
		good = answer.len > 1 && answer.ptr[0] == '+' && answer.ptr[1] != '\x02';
		engine_jsc.unload(context);
	}
	if (!good)
		fprintf(stderr, "frond-js: the engine does not work: %.*s\n",
			STR_ARG(buf_str(&answer)));
	buf_release(&answer);
	return good;
}

static bool
give_up_rights(void *arg)
{
	struct err err = { 0 };

	(void)arg;
	if (warm_up() && sandbox_enter(&err) == STATUS_OK)
		return true;
	if (err.text[0])
		fprintf(stderr, "frond-js: %s\n", err.text);
	return false;
}

/*
 * Answers that have not been sent. Several calls are often there together, and then their answers
 * go together: each that went alone would wake the server, and the processor would go to and fro.
 * No answer waits for the end of a long call: those that are there are sent when a turn ends.
 */
struct answers {
	int fd;
	struct buf ready; /* nobody touches it while a call computes */
	size_t sent;
	bool turns_end; /* or else each is sent at once */
	bool lost;      /* the server has gone */
};

/* Also in the handler of a signal. */
static void
answers_send(struct answers *a)
{
	while (!a->lost && a->sent < a->ready.len) {
		ssize_t n = write(a->fd, a->ready.ptr + a->sent, a->ready.len - a->sent);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			a->lost = true;
		else
			a->sent += (size_t)n;
	}
}

static void
on_turn_end(void *arg)
{
	answers_send(arg);
}

/* False: the worker has to end. */
static bool
answers_finish(struct answers *a)
{
	answers_send(a);
	if (a->ready.cap > KEPT_BYTES)
		buf_release(&a->ready);
	buf_clear(&a->ready);
	a->sent = 0;
	return !a->lost;
}

/* Takes what a call has answered, and sends it if there is much. False: the worker has to end. */
static bool
answers_add(struct answers *a, struct buf *out)
{
	if (a->ready.len + out->len > TOGETHER_BYTES && !answers_finish(a))
		return false;
	if (a->ready.len) {
		buf_append_buf(&a->ready, out);
		buf_clear(out);
	} else {
		struct buf empty = a->ready;

		a->ready = *out;
		*out = empty;
	}
	if (buf_status(&a->ready) != STATUS_OK)
		return false;
	return (a->turns_end && a->ready.len <= TOGETHER_BYTES) || answers_finish(a);
}

/* Handles the frames that are whole; false if the worker has to end. */
static bool
handle_frames(struct handler *h, struct answers *a, struct buf *in, struct buf *out)
{
	struct wire_head head;
	size_t begin = 0;
	enum status status;

	while ((status = wire_read_head(str_skip(buf_str(in), begin), &head)) == STATUS_OK &&
	       in->len - begin - WIRE_HEAD_BYTES >= head.bytes) {
		struct str payload = str_of(in->ptr + begin + WIRE_HEAD_BYTES, head.bytes);
		bool good;

		/* A start gives no turn away: it is short, and a client waits until it is over. */
		if (head.kind != WIRE_HELLO)
			turns_begin();
		good = handler_handle(h, &head, payload, out);
		turns_end();
		if (!good || !answers_add(a, out))
			return false;
		begin += WIRE_HEAD_BYTES + head.bytes;
	}
	buf_consume(in, begin);
	if (in->len == 0 && in->cap > KEPT_BYTES)
		buf_release(in);
	return answers_finish(a) && status != STATUS_CORRUPT;
}

static void
serve(struct handler *h, struct answers *a)
{
	struct buf in = BUF_INIT((size_t)WIRE_PAYLOAD_BYTES * 2);
	struct buf out = BUF_INIT((size_t)WIRE_PAYLOAD_BYTES * 2);
	ssize_t n;

	do {
		if (!buf_reserve(&in, READ_BYTES))
			break;
		n = read(a->fd, in.ptr + in.len, READ_BYTES);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		in.len += (size_t)n;
	} while (handle_frames(h, a, &in, &out));
	buf_release(&in);
	buf_release(&out);
	buf_release(&a->ready);
}

/* Of the system's processes this one is to go first when memory is short. */
static void
offer_to_end_first(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, "1000", 4) != 4)
		fprintf(stderr, "frond-js: cannot set oom_score_adj\n");
	close(fd);
}

int
main(void)
{
	static struct answers answers = {
		.fd = JS_WORKER_SOCKET,
		.ready = BUF_INIT((size_t)WIRE_PAYLOAD_BYTES * 2),
	};
	struct err err = { 0 };
	struct handler *h;
	int type;

	if (getsockopt(JS_WORKER_SOCKET, SOL_SOCKET, SO_TYPE, &type,
		       &(socklen_t){ sizeof(type) }) != 0) {
		fprintf(stderr, "frond-js is started by frond, for the functions of design "
				"documents\n");
		return 64;
	}
	/* A worker that computes would not notice that its server has gone. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	offer_to_end_first();
	/* The engine's threads inherit the nice value and the turns: it starts them later. */
	thread_set_nice(getpriority(PRIO_PROCESS, 0) + WORKER_NICE);
	answers.turns_end = turns_prepare(on_turn_end, &answers);
	setenv("JSC_useSharedArrayBuffer", "false", 1);
	setenv("JSC_numberOfGCMarkers", "1", 1);
	if (sandbox_close_files(JS_WORKER_SOCKET, &err) != STATUS_OK) {
		fprintf(stderr, "frond-js: %s\n", err.text);
		return 1;
	}
	h = handler_new(&engine_jsc, give_up_rights, NULL);
	if (h)
		serve(h, &answers);
	/* The memory goes with the process; the engine's threads may still run. */
	_exit(0);
}
