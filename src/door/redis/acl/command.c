#include "door/redis/acl/command.h"

#include <assert.h>
#include <stdio.h>

#include "door/redis/acl/subcommand.h"
#include "door/redis/wire/number.h"

const char *const command_groups[COMMAND_GROUPS] = {
#define GROUP_NAME(group, name, category) name,
	COMMAND_GROUPS_ALL(GROUP_NAME)
};

/* ---- Finding ---- */

static char
to_lower(char ch)
{
	return (char)(ch >= 'A' && ch <= 'Z' ? ch | 0x20 : ch);
}

bool
command_is_named(const struct command *command, struct str name)
{
	return str_eq_nocase(name, str_from_cstr(command->name));
}

void
command_upper_name(const struct command *command, char ret[static COMMAND_NAME_BYTES])
{
	size_t len = strlen(command->name);

	assert(len < COMMAND_NAME_BYTES);
	for (size_t i = 0; i <= len; i++) {
		char ch = command->name[i];

		ret[i] = (char)(ch >= 'a' && ch <= 'z' ? ch & ~0x20 : ch);
	}
}

const struct command *
command_find(struct str name)
{
	size_t lo = 0, hi = command_count;
	char lower[COMMAND_NAME_BYTES];

	if (name.len >= sizeof(lower))
		return NULL;
	for (size_t i = 0; i < name.len; i++)
		lower[i] = to_lower(name.ptr[i]);
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		int order = str_cmp(str_of(lower, name.len),
				    str_from_cstr(command_table[mid].name));

		if (order == 0)
			return &command_table[mid];
		if (order < 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	return NULL;
}

/* ---- Keys ---- */

struct keys {
	size_t *places;
	size_t count;
};

static void
keys_add(struct keys *k, size_t from, size_t to, size_t step)
{
	for (size_t i = from; i < to; i += step)
		k->places[k->count++] = i;
}

/* A number of keys at `at`, and then the keys. */
static bool
keys_add_counted(struct keys *k, const struct str *argv, size_t argc, size_t at)
{
	int64_t n;

	if (at >= argc || !number_read_i64(argv[at], &n) || n < 0 || (uint64_t)n > argc - at - 1)
		return false;
	keys_add(k, at + 1, at + 1 + (size_t)n, 1);
	return true;
}

/* SORT key … STORE destination: the last STORE counts. */
static void
keys_add_store(struct keys *k, const struct str *argv, size_t argc)
{
	size_t found = 0;

	for (size_t i = 2; i + 1 < argc; i++) {
		if (str_eq_nocase(argv[i], STR("limit")))
			i += 2;
		else if (str_eq_nocase(argv[i], STR("by")) || str_eq_nocase(argv[i], STR("get")))
			i++;
		else if (str_eq_nocase(argv[i], STR("store")))
			found = ++i;
	}
	if (found)
		keys_add(k, found, found + 1, 1);
}

/*
 * GEORADIUS key … STORE and STOREDIST destination: Redis tells of the first of each, whatever
 * comes behind it. The last one of all counts.
 */
static void
keys_add_geo_store(struct keys *k, const struct str *argv, size_t argc, size_t from)
{
	const struct str words[] = { STR("store"), STR("storedist") };
	size_t found = 0;

	for (size_t w = 0; w < 2; w++) {
		size_t i = from;

		while (i + 1 < argc && !str_eq_nocase(argv[i], words[w]))
			i++;
		if (i + 1 < argc)
			keys_add(k, i + 1, i + 2, 1);
	}
	for (size_t i = from; i + 1 < argc; i++)
		if (str_eq_nocase(argv[i], words[0]) || str_eq_nocase(argv[i], words[1]))
			found = ++i;
	for (size_t i = 0; i < k->count; i++)
		if (k->places[i] == found)
			return;
	if (found)
		keys_add(k, found, found + 1, 1);
}

/* MIGRATE … "" … KEYS key …: of several keys, whose first place is empty. */
static void
keys_add_migrated(struct keys *k, const struct str *argv, size_t argc)
{
	for (size_t i = 6; i < argc; i++) {
		if (str_eq_nocase(argv[i], STR("auth"))) {
			i++;
		} else if (str_eq_nocase(argv[i], STR("auth2"))) {
			i += 2;
		} else if (str_eq_nocase(argv[i], STR("keys")) && !argv[3].len) {
			k->count = 0;
			keys_add(k, i + 1, argc, 1);
			return;
		}
	}
}

/* XREAD … STREAMS key … id …: as many keys as ids. */
static bool
keys_add_streams(struct keys *k, const struct str *argv, size_t argc, size_t at)
{
	while (at < argc && !str_eq_nocase(argv[at], STR("streams")))
		at += str_eq_nocase(argv[at], STR("count")) || str_eq_nocase(argv[at], STR("block"))
			      ? 2
			      : 1;
	if (at >= argc || (argc - at - 1) % 2)
		return false;
	keys_add(k, at + 1, at + 1 + (argc - at - 1) / 2, 1);
	return true;
}

static bool keys_find(struct keys *k, const struct command *command, const struct str *argv,
		      size_t argc);

/* FROND.AT: the keys of the command that it runs. */
static bool
keys_add_inner(struct keys *k, const struct command *command, const struct str *argv, size_t argc)
{
	const struct command *inner = argc > 2 ? command_find(argv[2]) : NULL;

	/* What cannot be run will be refused. */
	if (!inner || inner == command || !command_takes(inner, argc - 2))
		return true;
	if (!keys_find(k, inner, argv + 2, argc - 2))
		return false;
	for (size_t i = 0; i < k->count; i++)
		k->places[i] += 2;
	return true;
}

static bool
keys_find_movable(struct keys *k, const struct command *command, const struct str *argv,
		  size_t argc)
{
	if (command->numkeys)
		return keys_add_counted(k, argv, argc, (size_t)command->numkeys);
	if (strcmp(command->name, "xread") == 0)
		return keys_add_streams(k, argv, argc, 1);
	if (strcmp(command->name, "xreadgroup") == 0)
		return keys_add_streams(k, argv, argc, 4);
	if (strcmp(command->name, "json.debug") == 0) {
		keys_add(k, 2, argc < 3 ? 2 : 3, 1);
		return true;
	}
	if (strcmp(command->name, "frond.at") == 0)
		return keys_add_inner(k, command, argv, argc);
	if (strcmp(command->name, "sort") == 0)
		keys_add_store(k, argv, argc);
	if (strcmp(command->name, "migrate") == 0)
		keys_add_migrated(k, argv, argc);
	if (strcmp(command->name, "georadius") == 0)
		keys_add_geo_store(k, argv, argc, 6);
	if (strcmp(command->name, "georadiusbymember") == 0)
		keys_add_geo_store(k, argv, argc, 5);
	return true;
}

/* OBJECT … key, MEMORY USAGE key. */
static void
keys_add_subcommand(struct keys *k, const struct command *command, const struct str *argv,
		    size_t argc)
{
	const struct subcommand *sub = subcommand_called(command, argv, argc);

	if (sub && sub->key && (size_t)sub->key < argc)
		keys_add(k, (size_t)sub->key, (size_t)sub->key + 1, 1);
}

static bool
keys_find(struct keys *k, const struct command *command, const struct str *argv, size_t argc)
{
	if (command->flags & COMMAND_CONTAINER)
		keys_add_subcommand(k, command, argv, argc);
	/* What follows SSUBSCRIBE are channels. */
	if (command->first_key > 0 && !(command->flags & COMMAND_PUBSUB)) {
		int64_t last = command->last_key < 0 ? (int64_t)argc + command->last_key
						     : command->last_key;

		if (last >= (int64_t)argc)
			return false;
		keys_add(k, (size_t)command->first_key, (size_t)(last + 1), (size_t)command->step);
	}
	return !(command->flags & COMMAND_MOVABLE_KEYS) ||
	       keys_find_movable(k, command, argv, argc);
}

enum status
command_keys(const struct command *command, const struct str *argv, size_t argc,
	     struct arena *arena, size_t **ret, size_t *ret_count)
{
	struct keys k = { .places = arena_alloc(arena, (argc + 1) * sizeof(*k.places)) };

	if (!k.places)
		return STATUS_LIMIT;
	if (!keys_find(&k, command, argv, argc))
		return STATUS_INVALID;
	*ret = k.places;
	*ret_count = k.count;
	return STATUS_OK;
}

/* ---- Answers ---- */

enum status
call_unknown_subcommand(struct call *c)
{
	char upper[COMMAND_NAME_BYTES];

	command_upper_name(c->command, upper);
	return call_errorf(
		c, "ERR unknown subcommand or wrong number of arguments for '%.*s'. Try %s HELP.",
		STR_ARG(call_shown(c->argv[1])), upper);
}

enum status
call_int(struct call *c, size_t i, int64_t *ret)
{
	return number_read_i64(c->argv[i], ret) ? STATUS_OK : call_not_integer(c);
}

enum status
call_count(struct call *c, size_t i, int64_t most, int64_t *ret)
{
	TRY(call_int(c, i, ret));
	if (*ret == INT64_MIN)
		return call_error(c, STR("ERR value is out of range, value must between "
					 "-9223372036854775807 and 9223372036854775807"));
	if (*ret < -most || *ret > most)
		return call_error(c, STR("ERR value is out of range"));
	return STATUS_OK;
}

enum status
call_int_range(struct call *c, size_t i, int64_t least, int64_t most, const char *text,
	       int64_t *ret)
{
	if (number_read_i64(c->argv[i], ret) && *ret >= least && *ret <= most)
		return STATUS_OK;
	return call_errorf(c, "ERR %s", text);
}

enum status
call_double(struct call *c, size_t i, double *ret)
{
	return number_read_double(c->argv[i], ret) ? STATUS_OK : call_not_float(c);
}

enum status
call_help(struct call *c, const char *const *lines, size_t count)
{
	char first[COMMAND_NAME_BYTES + 80];
	char upper[COMMAND_NAME_BYTES];

	command_upper_name(c->command, upper);
	snprintf(first, sizeof(first),
		 "%s <subcommand> [<arg> [value] [opt] ...]. Subcommands are:", upper);
	reply_array(c->reply, count + 3);
	reply_simple(c->reply, first);
	for (size_t i = 0; i < count; i++)
		reply_simple(c->reply, lines[i]);
	reply_simple(c->reply, "HELP");
	reply_simple(c->reply, "    Prints this help.");
	return STATUS_OK;
}
