#include "door/couch/admin/scrape.h"

#include "base/clock.h"
#include "base/metric.h"
#include "door/couch/admin/node.h"
#include "loop/wait.h"

#define SCRAPE_TYPE "text/plain; version=0.0.4; charset=utf-8"

struct scrape {
	couch_scrape_write *write;
	struct buf *out;
};

/* On a thread of the pool. */
static void
scrape_run(void *arg)
{
	struct scrape *s = arg;
	bool all = metric_hold_within(SCRAPE_WAIT_MS);

	s->write(s->out, all);
	if (all)
		metric_release();
}

enum status
couch_scrape(couch_scrape_write *write, struct buf *out)
{
	struct scrape s = { .write = write, .out = out };
	struct wait_work work;

	/* Collectors ask RocksDB, which takes its lock, and read /proc. */
	if (!wait_begin(&work, scrape_run, &s)) {
		scrape_run(&s);
		return buf_status(out);
	}
	(void)event_wait(&work.done, clock_after_ms(SCRAPE_WAIT_MS));
	/* If no thread has begun it by now, all of them are busy with what blocks. */
	if (!wait_end(&work))
		write(out, false);
	return buf_status(out);
}

static void
scrape_write_metrics(struct buf *out, bool all)
{
	if (all)
		metric_write(out);
	else
		metric_write_counted(out);
}

/* An answer to `x` with all metrics as Prometheus reads them. Checks neither path nor user. */
static enum status
couch_scrape_answer(struct http_exchange *x)
{
	struct buf AUTO(buf_release) out = BUF_INIT_OF(SCRAPE_BYTES, http_memory(x));

	TRY(couch_scrape(scrape_write_metrics, &out));
	http_set_header(x, STR("Content-Type"), STR(SCRAPE_TYPE));
	return http_send(x, buf_str(&out));
}

enum status
couch_node_prometheus(struct couch_req *r)
{
	return couch_scrape_answer(r->x);
}

static enum status
scrape_refuse(struct http_exchange *x, int status, struct str body)
{
	http_set_status(x, status);
	http_set_header(x, STR("Content-Type"), STR("application/json"));
	if (status == 405)
		http_set_header(x, STR("Allow"), STR("GET,HEAD"));
	return http_send(x, body);
}

enum status
couch_scrape_apart(struct http_exchange *x)
{
	enum status status;

	if (!str_eq(http_path(x), STR("/_node/_local/_prometheus")) &&
	    !str_eq(http_path(x), STR("/_node/" COUCH_NODE_NAME "/_prometheus")))
		return scrape_refuse(x, 404,
				     STR("{\"error\":\"not_found\",\"reason\":\"missing\"}\n"));
	if (!str_eq(http_method(x), STR("GET")) && !str_eq(http_method(x), STR("HEAD")))
		return scrape_refuse(x, 405,
				     STR("{\"error\":\"method_not_allowed\",\"reason\":"
					 "\"Only GET,HEAD allowed\"}\n"));
	status = couch_scrape_answer(x);
	if (status == STATUS_NOMEM && !http_started(x))
		return scrape_refuse(x, 503,
				     STR("{\"error\":\"service_unavailable\",\"reason\":"
					 "\"Out of memory.\"}\n"));
	return status;
}
