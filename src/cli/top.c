/* frond top: what a server does, on a screen that is drawn again and again. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/quote.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/remote.h"
#include "cli/top_sample.h"
#include "doc/json_value.h"

enum {
	OPTION_URL = 'u',
	OPTION_INTERVAL = 'i',
	OPTION_ONCE = '1',

	INTERVAL_S = 2,
	INTERVAL_MOST_S = 3600,
	TOP_CLASSES = 256,   /* that a screen can have; a server has fewer */
	TOP_ROWS = 16,       /* of them that are shown where there is no terminal */
	TOP_OTHER_ROWS = 25, /* of a terminal, for all else */
	TOP_TASKS = 5,
	TOP_RUNNING = 5, /* operations that are shown, the oldest ones */
	TASKS_ARENA_BYTES = 16 * 1024 * 1024,
	BYTES_TEXT = 32,
	PREFIX_BYTES = 256,
	ANSWER_BYTES = 16 * 1024 * 1024,
};

#define TOP_URL      "http://127.0.0.1:5984"
#define METRICS_PATH "/_node/_local/_prometheus"
#define TASKS_PATH   "/_active_tasks"
#define RUNNING_PATH "/_frond/operations"
#define TIME_NAME    "frond_operation_duration_seconds" /* serve/ops.h */

struct top_args {
	const char *url;
	unsigned interval_s;
	bool once;
};

/* A row of the table of operations. */
struct top_class {
	char door[TOP_NAME_BYTES];
	char name[TOP_NAME_BYTES];
	double count; /* since the sample before */
	double seconds;
};

struct top {
	struct remote *remote;
	struct arena *arena;
	struct top_sample before;
	struct top_sample now;
	struct buf tasks;
	struct buf running;
	double elapsed_s;
};

static const struct argp_option argp_options[] = {
	{ "url", OPTION_URL, "URL", 0,
	  "The server, http://[NAME:PASSWORD@]HOST:PORT; as an administrator (default " TOP_URL ")",
	  0 },
	{ "interval", OPTION_INTERVAL, "SECONDS", 0, "Time between two screens (default 2)", 0 },
	{ "once", OPTION_ONCE, NULL, 0, "Print one screen, of one interval, and end", 0 },
	{ 0 },
};

static const char argp_doc[] =
	"Show what a server does: operations by door and class, which were slow, what is built, "
	"what "
	"waits for the disk, memory.\v"
	"Rates and times are those of the last interval. Where standard output is no terminal, the "
	"screens follow each other with an empty line between them. Ctrl-C ends it.\n"
	"\n" CLI_EXIT_TEXT;

static error_t
top_parse_option(int key, char *text, struct argp_state *state)
{
	struct top_args *args = state->input;

	switch (key) {
	case OPTION_URL:
		args->url = text;
		return 0;
	case OPTION_INTERVAL:
		args->interval_s = (unsigned)cli_parse_number("interval", text, 1, INTERVAL_MOST_S,
							      state);
		return 0;
	case OPTION_ONCE:
		args->once = true;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "what is \"%s\"? The server is named by --url", text);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- Asking ---- */

static enum status
top_get(struct top *t, struct str path, struct buf *ret, struct err *err)
{
	int code = 0;

	TRY(remote_request(t->remote, "GET", path, (struct str){ NULL, 0 }, &code, ret, err));
	return code == 200 ? STATUS_OK : remote_refused(t->remote, path, code, buf_str(ret), err);
}

static enum status
top_ask(struct top *t, struct err *err)
{
	AUTO(buf_release) struct buf text = BUF_INIT(ANSWER_BYTES);
	struct top_sample old = t->before;

	TRY(top_get(t, STR(METRICS_PATH), &text, err));
	TRY(top_get(t, STR(TASKS_PATH), &t->tasks, err));
	TRY(top_get(t, STR(RUNNING_PATH), &t->running, err));
	t->before = t->now;
	t->now = old;
	TRY(top_sample_read(&t->now, &text, clock_mono_ns(), err));
	t->elapsed_s = (double)(t->now.at_ns - t->before.at_ns) / (1000.0 * CLOCK_NS_PER_MS);
	return STATUS_OK;
}

static double
top_rate(const struct top *t, const char *key)
{
	return top_growth(&t->before, &t->now, key) / t->elapsed_s;
}

static const char *
top_bytes(double bytes, char ret[BYTES_TEXT])
{
	progress_format_bytes(bytes > 0 ? (uint64_t)bytes : 0, ret, BYTES_TEXT);
	return ret;
}

/* ---- The server ---- */

static const char *
top_state(const struct top *t)
{
	static char ret[TOP_NAME_BYTES];
	size_t count;
	size_t first = top_find(&t->now, "frond_store_state{", &count);

	for (size_t i = first; i < first + count; i++)
		if (t->now.series[i].value > 0 && top_label(t->now.series[i].key, "state", ret))
			return ret;
	return "of a cluster";
}

static void
top_print_server(const struct top *t)
{
	char version[TOP_NAME_BYTES] = "", resident[BYTES_TEXT];
	size_t count;
	size_t first = top_find(&t->now, "frond_build_info{", &count);
	double up_s = (double)clock_wall_ms() / 1000 -
		      top_value(&t->now, "process_start_time_seconds");

	if (count)
		(void)top_label(t->now.series[first].key, "version", version);
	printf("frond %s at %s, up %.0f s, store %s\n", version, remote_name(t->remote),
	       up_s > 0 ? up_s : 0, top_state(t));
	printf("cpu %.0f %%, loops %.0f %%, resident %s, connections %.0f, open files %.0f of "
	       "%.0f\n",
	       100 * top_rate(t, "process_cpu_seconds_total"),
	       100 * top_rate(t, "frond_loops_cpu_seconds_total") /
		       (top_value(&t->now, "frond_loops") > 0 ? top_value(&t->now, "frond_loops")
							      : 1),
	       top_bytes(top_value(&t->now, "process_resident_memory_bytes"), resident),
	       top_value(&t->now, "frond_net_connections"), top_value(&t->now, "process_open_fds"),
	       top_value(&t->now, "process_max_fds"));
}

/* ---- Operations ---- */

static int
top_compare_classes(const void *a, const void *b)
{
	const struct top_class *x = a, *y = b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return strcmp(x->door, y->door) ? strcmp(x->door, y->door) : strcmp(x->name, y->name);
}

/* The key of one of a class's series, or the beginning of it. */
static void
top_time_key(const char *part, const struct top_class *c, const char *end, char ret[PREFIX_BYTES])
{
	(void)snprintf(ret, PREFIX_BYTES, TIME_NAME "_%s{door=\"%.*s\",class=\"%.*s\"%s", part,
		       TOP_NAME_BYTES, c->door, TOP_NAME_BYTES, c->name, end);
}

static size_t
top_read_classes(const struct top *t, struct top_class ret[TOP_CLASSES])
{
	size_t count, found = 0;
	size_t first = top_find(&t->now, TIME_NAME "_count{", &count);

	for (size_t i = first; i < first + count && found < TOP_CLASSES; i++) {
		struct top_class *c = &ret[found];
		char key[PREFIX_BYTES];

		if (!top_label(t->now.series[i].key, "door", c->door) ||
		    !top_label(t->now.series[i].key, "class", c->name))
			continue;
		(void)snprintf(key, sizeof(key), "%.*s", STR_ARG(t->now.series[i].key));
		c->count = top_growth(&t->before, &t->now, key);
		top_time_key("sum", c, "}", key);
		c->seconds = top_growth(&t->before, &t->now, key);
		found += c->count > 0;
	}
	qsort(ret, found, sizeof(*ret), top_compare_classes);
	return found;
}

static void
top_print_classes(const struct top *t, size_t rows)
{
	static struct top_class classes[TOP_CLASSES];
	size_t count = top_read_classes(t, classes);

	printf("\n%-7s %-22s %12s %10s %10s\n", "door", "class", "a second", "mean ms", "99 % ms");
	for (size_t i = 0; i < count && i < rows; i++) {
		const struct top_class *c = &classes[i];
		char prefix[PREFIX_BYTES];

		top_time_key("bucket", c, ",le=\"", prefix);
		printf("%-7s %-22s %12.1f %10.2f %10.2f\n", c->door, c->name,
		       c->count / t->elapsed_s, 1000 * c->seconds / c->count,
		       1000 * top_quantile(&t->before, &t->now, prefix));
	}
	if (count > rows)
		printf("and %zu more\n", count - rows);
	if (count == 0)
		printf("nothing has ended in this time\n");
}

/* Of a counter with one label: what has grown since the sample before, as "value number". */
static void
top_print_grown(const struct top *t, const char *title, const char *prefix, const char *label)
{
	const char *before = " ";
	size_t count;
	size_t first = top_find(&t->now, prefix, &count);

	printf("%s:", title);
	for (size_t i = first; i < first + count; i++) {
		char name[TOP_NAME_BYTES], key[PREFIX_BYTES];
		double grown;

		(void)snprintf(key, sizeof(key), "%.*s", STR_ARG(t->now.series[i].key));
		grown = top_growth(&t->before, &t->now, key);
		if (grown <= 0 || !top_label(t->now.series[i].key, label, name))
			continue;
		printf("%s%s %.0f", before, name, grown);
		before = ", ";
	}
	printf("%s\n", *before == ' ' ? " none" : "");
}

/* ---- What runs ---- */

/* Of an operation; texts are the answer's. */
struct top_op {
	struct str door;
	struct str name;
	struct str on;
	struct str more; /* of MongoDB's: the collection */
	struct str user;
	struct str peer;
	double ms;
};

static struct str
top_text(const struct json_member *members, size_t count, const char *name)
{
	const struct json_value *value = json_value_find(members, count, name);

	return value && value->kind == JSON_STRING ? value->string : STR("");
}

static bool
top_read_op(const struct json_value *value, struct arena *arena, struct top_op *ret)
{
	const struct json_value *ms;
	struct json_member *members;
	struct err err = { 0 };
	size_t count;

	if (json_value_members(value, arena, &members, &count, &err) != STATUS_OK)
		return false;
	ms = json_value_find(members, count, "ms");
	*ret = (struct top_op){ .door = top_text(members, count, "door"),
				.name = top_text(members, count, "name"),
				.on = top_text(members, count, "on"),
				.more = top_text(members, count, "more"),
				.user = top_text(members, count, "user"),
				.peer = top_text(members, count, "peer"),
				.ms = ms && ms->kind == JSON_NUMBER ? strtod(ms->text.ptr, NULL)
								    : 0 };
	return true;
}

static int
top_compare_ops(const void *a, const void *b)
{
	const struct top_op *x = a, *y = b;

	return x->ms == y->ms ? 0 : x->ms < y->ms ? 1 : -1;
}

/* The operations but the one that asks, the oldest first. NULL: they cannot be read. */
static struct top_op *
top_read_running(const struct top *t, size_t *ret_count)
{
	const struct json_value *list;
	struct json_value all, *items;
	struct json_member *members;
	struct err err = { 0 };
	struct top_op *ops;
	size_t count;

	*ret_count = 0;
	if (json_value_read(buf_str(&t->running), t->arena, &all, &err) != STATUS_OK ||
	    json_value_members(&all, t->arena, &members, &count, &err) != STATUS_OK)
		return NULL;
	list = json_value_find(members, count, "operations");
	if (!list || json_value_items(list, t->arena, &items, &count, &err) != STATUS_OK)
		return NULL;
	ops = arena_alloc(t->arena, (count + 1) * sizeof(*ops));
	for (size_t i = 0; ops && i < count; i++)
		if (top_read_op(&items[i], t->arena, &ops[*ret_count]) &&
		    !str_eq(ops[*ret_count].on, STR(RUNNING_PATH)))
			++*ret_count;
	if (ops)
		qsort(ops, *ret_count, sizeof(*ops), top_compare_ops);
	return ops;
}

static void
top_print_running(const struct top *t)
{
	struct top_op *ops;
	size_t count;

	arena_clear(t->arena);
	ops = top_read_running(t, &count);
	printf("\nrunning: %zu\n", count);
	for (size_t i = 0; ops && i < count && i < TOP_RUNNING; i++) {
		const struct top_op *op = &ops[i];

		printf("  %-6s %10.1f ms  %s", QUOTE_SHOW(op->door), op->ms, QUOTE_SHOW(op->name));
		if (op->on.len)
			printf(" %s", QUOTE_SHOW(op->on));
		if (op->more.len)
			printf(".%s", QUOTE_SHOW(op->more));
		if (op->user.len)
			printf(", %s", QUOTE_SHOW(op->user));
		printf(", from %s\n", QUOTE_SHOW(op->peer));
	}
	if (count > TOP_RUNNING)
		printf("  and %zu more\n", count - TOP_RUNNING);
}

/* ---- What is built ---- */

static void
top_print_task(const struct json_value *task, struct arena *arena, struct err *err)
{
	const struct json_value *type, *db, *progress;
	struct json_member *members;
	size_t count;

	if (json_value_members(task, arena, &members, &count, err) != STATUS_OK)
		return;
	type = json_value_find(members, count, "type");
	db = json_value_find(members, count, "database");
	progress = json_value_find(members, count, "progress");
	printf("  %s", type && type->kind == JSON_STRING ? QUOTE_SHOW(type->string) : "?");
	if (db && db->kind == JSON_STRING)
		printf(" %s", QUOTE_SHOW(db->string));
	if (progress && progress->kind == JSON_NUMBER)
		printf(" %.*s %%", STR_ARG(progress->text));
	printf("\n");
}

static void
top_print_tasks(const struct top *t)
{
	struct json_value all, *items;
	struct err err = { 0 };
	size_t count = 0;

	arena_clear(t->arena);
	if (json_value_read(buf_str(&t->tasks), t->arena, &all, &err) != STATUS_OK ||
	    json_value_items(&all, t->arena, &items, &count, &err) != STATUS_OK)
		return;
	for (size_t i = 0; i < count && i < TOP_TASKS; i++)
		top_print_task(&items[i], t->arena, &err);
	if (count > TOP_TASKS)
		printf("  and %zu more\n", count - TOP_TASKS);
}

static void
top_print_built(const struct top *t)
{
	printf("\nbuilt: %.0f indexes, %.0f documents a second; by functions %.0f documents a "
	       "second, "
	       "%.0f calls wait\n",
	       top_value(&t->now, "frond_index_builds_running"),
	       top_rate(t, "frond_index_documents_built_total"),
	       top_rate(t, "frond_js_documents_total"),
	       top_value(&t->now, "frond_js_calls_waiting{lane=\"request\"}") +
		       top_value(&t->now, "frond_js_calls_waiting{lane=\"index\"}"));
	top_print_tasks(t);
}

/* ---- The disk, memory ---- */

static void
top_print_disk(const struct top *t)
{
	char queued[BYTES_TEXT], pending[BYTES_TEXT], room[BYTES_TEXT];

	printf("disk: %.0f transactions wait, %s; %.0f commits a second, 99 %% in %.2f ms, a write "
	       "in "
	       "%.2f ms\n",
	       top_value(&t->now, "frond_store_commit_queue_length"),
	       top_bytes(top_value(&t->now, "frond_store_commit_queue_bytes"), queued),
	       top_rate(t, "frond_kv_commits_total"),
	       1000 * top_quantile(&t->before, &t->now,
				   "frond_kv_commit_duration_seconds_bucket{le=\""),
	       1000 * top_quantile(&t->before, &t->now,
				   "frond_store_batch_write_duration_seconds_bucket{le=\""));
	printf("      %.0f flushes, %.0f compactions, %s to compact, %s free%s\n",
	       top_value(&t->now, "frond_store_flushes_running"),
	       top_value(&t->now, "frond_store_compactions_running"),
	       top_bytes(top_value(&t->now, "frond_store_pending_compaction_bytes"), pending),
	       top_bytes(top_value(&t->now, "frond_store_disk_free_bytes"), room),
	       top_value(&t->now, "frond_store_writes_stopped") > 0 ? ", WRITES ARE STOPPED" : "");
}

static void
top_print_memory(const struct top *t)
{
	char used[BYTES_TEXT], limit[BYTES_TEXT], reading[BYTES_TEXT], output[BYTES_TEXT];
	char cache[BYTES_TEXT], tables[BYTES_TEXT];

	printf("memory: %s of %s for %.0f requests, %.0f wait; pages %s, unread output %s\n",
	       top_bytes(top_value(&t->now, "frond_memory_requests_bytes"), used),
	       top_bytes(top_value(&t->now, "frond_memory_requests_limit_bytes"), limit),
	       top_value(&t->now, "frond_memory_requests"),
	       top_value(&t->now, "frond_memory_requests_waiting"),
	       top_bytes(top_value(&t->now, "frond_memory_requests_reading_bytes"), reading),
	       top_bytes(top_value(&t->now, "frond_memory_requests_output_bytes"), output));
	printf("        store: cache %s, not in tables yet %s\n",
	       top_bytes(top_value(&t->now, "frond_store_memory_bytes{kind=\"block_cache\"}"),
			 cache),
	       top_bytes(top_value(&t->now, "frond_store_memory_bytes{kind=\"memtables\"}"),
			 tables));
}

/* ---- Screens ---- */

static size_t
top_rows(bool terminal)
{
	struct winsize size;

	if (!terminal || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 ||
	    size.ws_row <= TOP_OTHER_ROWS)
		return TOP_ROWS;
	return size.ws_row - TOP_OTHER_ROWS;
}

static void
top_draw(const struct top *t, bool terminal)
{
	if (terminal)
		printf("\x1b[H\x1b[2J");
	top_print_server(t);
	top_print_classes(t, top_rows(terminal));
	top_print_grown(t, "\nslow", "frond_slow_operations_total{", "door");
	top_print_grown(t, "refused", "frond_refusals_total{", "limit");
	top_print_running(t);
	top_print_built(t);
	top_print_disk(t);
	top_print_memory(t);
}

static void
top_wait(unsigned seconds)
{
	struct timespec left = { .tv_sec = seconds };

	while (nanosleep(&left, &left) != 0 && errno == EINTR)
		;
}

static enum status
top_show(struct top *t, const struct top_args *args, struct err *err)
{
	bool terminal = !args->once && isatty(STDOUT_FILENO);

	TRY(top_ask(t, err));
	for (;;) {
		top_wait(args->interval_s);
		TRY(top_ask(t, err));
		top_draw(t, terminal);
		if (args->once || fflush(stdout) != 0)
			return STATUS_OK;
		if (!terminal)
			printf("\n");
	}
}

static int
run_top(int argc, char **argv)
{
	static const struct argp argp = { .options = argp_options,
					  .parser = top_parse_option,
					  .doc = argp_doc };
	struct top_args args = { .url = TOP_URL, .interval_s = INTERVAL_S };
	struct top t = { .tasks = BUF_INIT(ANSWER_BYTES), .running = BUF_INIT(ANSWER_BYTES) };
	struct err err = { 0 };
	enum status status;

	cli_parse(&argp, argc, argv, &args);
	t.arena = arena_new(TASKS_ARENA_BYTES);
	status = t.arena ? remote_new(args.url, &t.remote, &err) : STATUS_NOMEM;
	if (status == STATUS_OK)
		status = top_show(&t, &args, &err);
	remote_free(t.remote);
	arena_free(t.arena);
	top_sample_free(&t.before);
	top_sample_free(&t.now);
	buf_release(&t.tasks);
	buf_release(&t.running);
	if (status != STATUS_OK) {
		cli_complain("%s", err.text[0] ? err.text : status_name(status));
		return CLI_FAILED;
	}
	return cli_finish_output();
}

const struct cli_command cli_top = { "top", "show what a server does", run_top };
