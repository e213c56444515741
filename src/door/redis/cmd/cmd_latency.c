/* LATENCY: what took long, and how long commands take. */
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "door/redis/cmd/commands.h"
#include "door/redis/txn/latency.h"
#include "door/redis/txn/redis_int.h"
#include "door/redis/txn/stats.h"

#define LATENCY_ADVICE                                                                             \
	"frond keeps what took latency-monitor-threshold milliseconds or longer, as the events "   \
	"command and fast-command: LATENCY HISTORY and GRAPH show them, SLOWLOG and the page at "  \
	"/_frond/ name the calls, and LATENCY HISTOGRAM tells how long calls take."

enum {
	GRAPH_COLUMNS = 80,
	GRAPH_ROWS = 4,
	GRAPH_LABEL = 5, /* characters of an age, such as "12s", one below the other */
	GRAPH_BYTES = 4096,
};

static void
answer_latest(struct call *c)
{
	struct latency_sample samples[LATENCY_SAMPLES];
	size_t place = reply_later(c->reply);
	size_t events = 0;

	for (enum latency_event e = 0; e < LATENCY_EVENTS; e++) {
		uint64_t most_ms;
		size_t count = latency_read(c->redis->latency, e, samples, &most_ms);

		if (!count)
			continue;
		reply_array(c->reply, 4);
		reply_bulk_cstr(c->reply, latency_name(e));
		reply_int(c->reply, (int64_t)samples[count - 1].time_s);
		reply_int(c->reply, (int64_t)samples[count - 1].ms);
		reply_int(c->reply, (int64_t)most_ms);
		events++;
	}
	reply_later_end(c->reply, place, '*', events);
}

static void
answer_history(struct call *c, struct str name)
{
	struct latency_sample samples[LATENCY_SAMPLES];
	enum latency_event event = latency_find(name);
	uint64_t most_ms;
	size_t count = 0;

	if (event != LATENCY_EVENTS)
		count = latency_read(c->redis->latency, event, samples, &most_ms);
	reply_array(c->reply, count);
	for (size_t i = 0; i < count; i++) {
		reply_array(c->reply, 2);
		reply_int(c->reply, (int64_t)samples[i].time_s);
		reply_int(c->reply, (int64_t)samples[i].ms);
	}
}

static void
answer_reset(struct call *c)
{
	int64_t had = 0;

	for (enum latency_event e = 0; c->argc == 2 && e < LATENCY_EVENTS; e++)
		had += latency_reset(c->redis->latency, e);
	for (size_t i = 2; i < c->argc; i++) {
		enum latency_event event = latency_find(c->argv[i]);

		had += event != LATENCY_EVENTS && latency_reset(c->redis->latency, event);
	}
	reply_int(c->reply, had);
}

/* ---- GRAPH ---- */

/* "12s", "3m", "1h", "2d": how long ago a sample was. */
static void
write_age(char ret[GRAPH_LABEL + 1], uint64_t seconds)
{
	static const struct {
		uint64_t seconds;
		char unit;
	} units[] = { { 86400, 'd' }, { 3600, 'h' }, { 60, 'm' } };

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (seconds >= units[i].seconds) {
			(void)snprintf(ret, GRAPH_LABEL + 1, "%" PRIu64 "%c",
				       seconds / units[i].seconds % 1000, units[i].unit);
			return;
		}
	(void)snprintf(ret, GRAPH_LABEL + 1, "%" PRIu64 "s", seconds);
}

/* What a column shows in a row, the lowest of which is 0. A row has three steps. */
static char
mark_at(size_t height, size_t row)
{
	static const char steps[] = " _o#";
	size_t above = height > 3 * row ? height - 3 * row : 0;

	return steps[above < 3 ? above : 3];
}

/* A column for each sample, as high as it is long, with its age below. */
static void
draw_samples(struct buf *out, const struct latency_sample *samples, size_t count, uint64_t low,
	     uint64_t high, uint64_t now_s)
{
	char ages[GRAPH_COLUMNS][GRAPH_LABEL + 1] = { 0 };

	for (size_t i = 0; i < count; i++)
		write_age(ages[i], now_s > samples[i].time_s ? now_s - samples[i].time_s : 0);
	for (size_t row = GRAPH_ROWS; row--;) {
		for (size_t i = 0; i < count; i++) {
			uint64_t more = samples[i].ms - low, most = high > low ? high - low : 1;

			/* The lowest sample has one step, the highest all of them. */
			buf_append_byte(out, mark_at(1 + more * (3 * GRAPH_ROWS - 1) / most, row));
		}
		buf_append_cstr(out, "\n");
	}
	buf_append_cstr(out, "\n");
	for (size_t row = 0; row < GRAPH_LABEL; row++) {
		for (size_t i = 0; i < count; i++)
			buf_append_byte(out, ages[i][row] ? ages[i][row] : ' ');
		buf_append_cstr(out, "\n");
	}
}

static enum status
answer_graph(struct call *c, struct str name)
{
	AUTO(buf_release) struct buf out = BUF_SHORT(GRAPH_BYTES);
	struct latency_sample samples[LATENCY_SAMPLES];
	enum latency_event event = latency_find(name);
	uint64_t most_ms = 0, low = UINT64_MAX, high = 0;
	size_t count = 0, first;

	if (event != LATENCY_EVENTS)
		count = latency_read(c->redis->latency, event, samples, &most_ms);
	if (!count)
		return call_errorf(c, "ERR No samples available for event '%.*s'", STR_ARG(name));
	first = count > GRAPH_COLUMNS ? count - GRAPH_COLUMNS : 0;
	for (size_t i = first; i < count; i++) {
		low = samples[i].ms < low ? samples[i].ms : low;
		high = samples[i].ms > high ? samples[i].ms : high;
	}
	buf_printf(&out,
		   "%s - high %" PRIu64 " ms, low %" PRIu64 " ms (all time high %" PRIu64 " ms)\n",
		   latency_name(event), high, low, most_ms);
	for (size_t i = 0; i < GRAPH_COLUMNS; i++)
		buf_append_byte(&out, '-');
	buf_append_cstr(&out, "\n");
	draw_samples(&out, samples + first, count - first, low, high, clock_wall_ms() / 1000);
	TRY(buf_status(&out));
	reply_verbatim(c->reply, buf_str(&out));
	return STATUS_OK;
}

enum status
cmd_latency(struct call *c)
{
	static const char *const help[] = {
		"DOCTOR",
		"    Tell where to look for what is slow.",
		"GRAPH <event>",
		"    Draw the latest samples of the <event>.",
		"HISTOGRAM [COMMAND ...]",
		"    Return how long calls of the commands took, or of all commands.",
		"HISTORY <event>",
		"    Return the samples of the <event>, command or fast-command.",
		"LATEST",
		"    Return the latest sample of each event.",
		"RESET [<event> ...]",
		"    Forget the samples of the events, or of all events.",
	};

	if (call_arg_is(c, 1, "help") && c->argc == 2)
		return call_help(c, help, sizeof(help) / sizeof(help[0]));
	if (call_arg_is(c, 1, "histogram"))
		return stats_reply_histogram(c->redis->stats, c->argv + 2, c->argc - 2, c->arena,
					     c->reply);
	if (call_arg_is(c, 1, "latest") && c->argc == 2)
		answer_latest(c);
	else if (call_arg_is(c, 1, "history") && c->argc == 3)
		answer_history(c, c->argv[2]);
	else if (call_arg_is(c, 1, "reset"))
		answer_reset(c);
	else if (call_arg_is(c, 1, "doctor") && c->argc == 2)
		reply_verbatim(c->reply, STR(LATENCY_ADVICE));
	else if (call_arg_is(c, 1, "graph") && c->argc == 3)
		return answer_graph(c, c->argv[2]);
	else
		return call_unknown_subcommand(c);
	return STATUS_OK;
}
