#include "door/redis/txn/stats.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "door/redis/acl/subcommand.h"
#include "door/redis/txn/redis_int.h"

enum {
	CODE_BYTES = 32,           /* of the first word of an error */
	SPANS = 32,                /* of times: span n ends at SPAN_NS << n */
	SPAN_POWER = 10,           /* of two, which is SPAN_NS */
	SPAN_NS = 1 << SPAN_POWER, /* as Redis's spans do */
	NS_PER_US = 1000,
};

/* A command, or one of its subcommands. */
struct stats_row {
	const struct command *command;
	const struct subcommand *sub; /* NULL: the command itself */
	_Atomic uint64_t calls;
	_Atomic uint64_t ns;
	_Atomic uint64_t refused;
	_Atomic uint64_t failed;
	_Atomic uint64_t spans[SPANS];
};

struct stats_code {
	char text[CODE_BYTES];
	uint64_t count;
};

struct stats {
	struct stats_row *rows;
	size_t count;
	size_t *first; /* of each command of the table: its own row; its subcommands follow */
	_Atomic uint64_t errors;

	/* Owns the codes. Calls are counted without it. */
	pthread_mutex_t lock;
	struct stats_code codes[STATS_ERRORS];
	size_t code_count;
};

/* ---- Making ---- */

static void
stats_rows_fill(struct stats *s)
{
	struct stats_row *row = s->rows;

	for (size_t i = 0; i < command_count; i++) {
		size_t count;
		const struct subcommand *sub = subcommands_of(&command_table[i], &count);

		s->first[i] = (size_t)(row - s->rows);
		row++->command = &command_table[i];
		for (size_t k = 0; k < count; k++) {
			row->command = &command_table[i];
			row++->sub = &sub[k];
		}
	}
}

struct stats *
stats_new(void)
{
	struct stats *s = mem_zalloc(sizeof(*s));

	if (!s)
		return NULL;
	pthread_mutex_init(&s->lock, NULL);
	s->count = command_count + subcommand_count;
	s->rows = mem_zalloc(s->count * sizeof(*s->rows));
	s->first = mem_zalloc(command_count * sizeof(*s->first));
	if (!s->rows || !s->first) {
		stats_free(s);
		return NULL;
	}
	stats_rows_fill(s);
	return s;
}

void
stats_free(struct stats *s)
{
	if (!s)
		return;
	pthread_mutex_destroy(&s->lock);
	mem_free(s->rows);
	mem_free(s->first);
	mem_free(s);
}

void
stats_clear(struct stats *s)
{
	for (size_t i = 0; i < s->count; i++) {
		struct stats_row *row = &s->rows[i];

		row->calls = row->ns = row->refused = row->failed = 0;
		for (size_t n = 0; n < SPANS; n++)
			row->spans[n] = 0;
	}
	pthread_mutex_lock(&s->lock);
	s->code_count = 0;
	s->errors = 0;
	pthread_mutex_unlock(&s->lock);
}

/* ---- Counting ---- */

static void
add(_Atomic uint64_t *n, uint64_t by)
{
	atomic_fetch_add_explicit(n, by, memory_order_relaxed);
}

static uint64_t
get(const _Atomic uint64_t *n)
{
	return atomic_load_explicit(n, memory_order_relaxed);
}

static struct stats_row *
row_of(struct stats *s, const struct command *command, const struct str *argv, size_t argc)
{
	struct stats_row *row = &s->rows[s->first[command - command_table]];

	if (!(command->flags & COMMAND_CONTAINER) || argc < 2)
		return row;
	for (struct stats_row *one = row + 1; one < s->rows + s->count && one->command == command;
	     one++)
		if (str_eq_nocase(argv[1], str_from_cstr(one->sub->name)))
			return one;
	return row;
}

static size_t
span_of(uint64_t ns)
{
	/* The least power of two that is not below the time. */
	size_t power = ns <= SPAN_NS ? SPAN_POWER : 64 - (size_t)__builtin_clzll(ns - 1);

	return power - SPAN_POWER < SPANS ? power - SPAN_POWER : SPANS - 1;
}

void
stats_count_call(struct stats *s, const struct command *command, const struct str *argv,
		 size_t argc, uint64_t ns, bool failed)
{
	struct stats_row *row = row_of(s, command, argv, argc);

	ops_count(&redis_ops, command->group, ns);
	add(&row->calls, 1);
	add(&row->ns, ns);
	add(&row->spans[span_of(ns)], 1);
	if (failed)
		add(&row->failed, 1);
}

void
stats_count_refused(struct stats *s, const struct command *command, const struct str *argv,
		    size_t argc)
{
	add(&row_of(s, command, argv, argc)->refused, 1);
}

/* The first word of an answer, if it can stand in a line of INFO. */
static struct str
error_code(struct str answer)
{
	struct str rest = str_skip(answer, answer.len && answer.ptr[0] == '-');
	struct str code;

	if (!memchr(rest.ptr, ' ', rest.len))
		return STR("ERR");
	code = str_cut(&rest, ' ');
	for (size_t i = 0; i < code.len; i++)
		if (code.ptr[i] <= ' ' || code.ptr[i] == ':' || code.ptr[i] == '=' ||
		    code.ptr[i] > '~')
			return STR("ERR");
	return code.len && code.len < CODE_BYTES ? code : STR("ERR");
}

void
stats_count_error(struct stats *s, struct str answer)
{
	struct str code = error_code(answer);
	size_t i = 0;

	pthread_mutex_lock(&s->lock);
	s->errors++;
	while (i < s->code_count && !str_eq(str_from_cstr(s->codes[i].text), code))
		i++;
	if (i == s->code_count && i < STATS_ERRORS) {
		s->codes[i] = (struct stats_code){ 0 };
		memcpy(s->codes[i].text, code.ptr, code.len);
		s->code_count++;
	}
	if (i < s->code_count)
		s->codes[i].count++;
	pthread_mutex_unlock(&s->lock);
}

/* ---- Telling ---- */

uint64_t
stats_errors(struct stats *s)
{
	return get(&s->errors);
}

static struct str
row_name(const struct stats_row *row, char room[static SUBCOMMAND_NAME_BYTES])
{
	return subcommand_name(row->command, row->sub, room);
}

void
stats_write_commands(struct stats *s, struct buf *out)
{
	for (size_t i = 0; i < s->count; i++) {
		const struct stats_row *row = &s->rows[i];
		uint64_t calls = get(&row->calls), us = get(&row->ns) / NS_PER_US;
		uint64_t refused = get(&row->refused), failed = get(&row->failed);
		char name[SUBCOMMAND_NAME_BYTES];

		if (!calls && !refused && !failed)
			continue;
		buf_printf(out,
			   "cmdstat_%.*s:calls=%llu,usec=%llu,usec_per_call=%.2f,"
			   "rejected_calls=%llu,failed_calls=%llu\r\n",
			   STR_ARG(row_name(row, name)), (unsigned long long)calls,
			   (unsigned long long)us, calls ? (double)us / (double)calls : 0,
			   (unsigned long long)refused, (unsigned long long)failed);
	}
}

void
stats_write_errors(struct stats *s, struct buf *out)
{
	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < s->code_count; i++)
		buf_printf(out, "errorstat_%s:count=%llu\r\n", s->codes[i].text,
			   (unsigned long long)s->codes[i].count);
	pthread_mutex_unlock(&s->lock);
}

static bool
row_is_named(const struct stats_row *row, struct str name)
{
	char text[SUBCOMMAND_NAME_BYTES];

	return str_eq_nocase(row_name(row, text), name) ||
	       str_eq_nocase(str_from_cstr(row->command->name), name);
}

static void
row_reply(const struct stats_row *row, struct reply *reply)
{
	uint64_t calls = 0;
	char name[SUBCOMMAND_NAME_BYTES];
	size_t place, spans = 0;

	reply_bulk(reply, row_name(row, name));
	reply_map(reply, 2);
	reply_bulk_cstr(reply, "calls");
	reply_int(reply, (int64_t)get(&row->calls));
	reply_bulk_cstr(reply, "histogram_usec");
	place = reply_later(reply);
	for (size_t n = 0; n < SPANS; n++) {
		uint64_t more = get(&row->spans[n]);

		if (!more)
			continue;
		calls += more;
		reply_int(reply, (int64_t)(((uint64_t)SPAN_NS << n) / NS_PER_US));
		reply_int(reply, (int64_t)calls);
		spans++;
	}
	reply_later_end(reply, place, '%', spans);
}

enum status
stats_reply_histogram(struct stats *s, const struct str *names, size_t count, struct arena *arena,
		      struct reply *reply)
{
	const struct stats_row **rows = arena_alloc(arena, s->count * sizeof(*rows));
	size_t found = 0;

	if (!rows)
		return STATUS_LIMIT;
	for (size_t i = 0; i < s->count; i++) {
		bool wanted = !count;

		for (size_t k = 0; k < count && !wanted; k++)
			wanted = row_is_named(&s->rows[i], names[k]);
		if (wanted && get(&s->rows[i].calls))
			rows[found++] = &s->rows[i];
	}
	reply_map(reply, found);
	for (size_t i = 0; i < found; i++)
		row_reply(rows[i], reply);
	return STATUS_OK;
}
