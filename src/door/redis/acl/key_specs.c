/* What commands do with their keys, and where these are. */
#include "door/redis/acl/key_specs.h"

#include "door/redis/acl/subcommand.h"

#define SORT_BY_NOTES                                                                              \
	"For the optional BY/GET keyword. It is marked 'unknown' because the key names derive "    \
	"from the content of the key we sort"
#define SORT_STORE_NOTES                                                                           \
	"For the optional STORE keyword. It is marked 'unknown' because the keyword can appear "   \
	"anywhere in the argument array"

/* ---- What becomes of a key ---- */

/* The flags of all keys, with '|' between them. */
static const char *
flags_of(const struct command *command, const struct subcommand *sub)
{
	if (sub && sub->key_flags)
		return sub->key_flags;
	if (command->key_flags)
		return command->key_flags;
	return (sub ? sub->flags : command->flags) & COMMAND_WRITE ? "RW update" : "RO access";
}

static bool
args_have(const struct str *argv, size_t argc, size_t from, struct str word)
{
	for (size_t i = from; i < argc; i++)
		if (str_eq_nocase(argv[i], word))
			return true;
	return false;
}

/* The flags of the keys of a call whose arguments tell them; NULL: they do not. */
static const char *
flags_by_args(const struct command *command, const struct str *argv, size_t argc)
{
	if (strcmp(command->name, "set") == 0)
		return args_have(argv, argc, 3, STR("get")) ? "RW access update" : "OW update";
	if (strcmp(command->name, "bitfield") == 0)
		return args_have(argv, argc, 2, STR("set")) ||
				       args_have(argv, argc, 2, STR("incrby"))
			       ? "RW access update"
			       : "RO access";
	return NULL;
}

struct str
key_flags_of(const struct command *command, const struct str *argv, size_t argc, size_t key)
{
	const char *text = flags_by_args(command, argv, argc);
	struct str rest, flags;

	if (!text)
		text = flags_of(command, subcommand_called(command, argv, argc));
	rest = str_from_cstr(text);
	do
		flags = str_cut(&rest, '|');
	while (key-- && rest.len);
	return flags;
}

void
key_rights_of(const struct command *command, const struct str *argv, size_t argc, size_t key,
	      bool *ret_reads, bool *ret_writes)
{
	struct str rest = key_flags_of(command, argv, argc, key);

	*ret_reads = *ret_writes = false;
	while (rest.len) {
		struct str word = str_cut(&rest, ' ');

		*ret_reads |= str_eq(word, STR("access"));
		*ret_writes |= str_eq(word, STR("insert")) || str_eq(word, STR("update")) ||
			       str_eq(word, STR("delete"));
	}
}

/* ---- Where the keys are ---- */

/*
 * Adds the keys of some commands that follow a word, or that only their values tell. Returns how
 * many specs these are.
 */
static size_t
add_special_specs(const struct command *command, struct key_spec *ret)
{
	const char *name = command->name;
	const struct key_spec by = { .flags = STR("RO access"),
				     .notes = SORT_BY_NOTES,
				     .unknown = true };
	const struct key_spec to = { .flags = STR("OW update"),
				     .notes = SORT_STORE_NOTES,
				     .unknown = true };
	const struct key_spec behind = { .flags = STR("OW update"), .step = 1 };
	bool by_member = strcmp(name, "georadiusbymember") == 0;
	bool sorts = strcmp(name, "sort") == 0;

	if (sorts || strcmp(name, "sort_ro") == 0) {
		ret[0] = by;
		ret[1] = to;
		return sorts ? 2 : 1;
	}
	if (by_member || strcmp(name, "georadius") == 0) {
		ret[0] = ret[1] = behind;
		ret[0].at = ret[1].at = by_member ? 5 : 6;
		ret[0].word = "STORE";
		ret[1].word = "STOREDIST";
		return 2;
	}
	if (strcmp(name, "migrate") == 0) {
		ret[0] = (struct key_spec){ .flags = STR("RW access delete incomplete"),
					    .word = "KEYS",
					    .at = -2,
					    .last = -1,
					    .step = 1 };
		return 1;
	}
	return 0;
}

/*
 * Adds the keys at fixed places, and takes their flags off `flags`. Each has flags of its own, up
 * to the last flags, which the keys from there on share. If `leaves_flags`, all of the fixed keys
 * share the first ones, and the others are those of keys elsewhere.
 */
static size_t
add_fixed_specs(const struct command *command, struct str *flags, bool leaves_flags,
		struct key_spec ret[static KEY_SPECS])
{
	int at = command->first_key;
	size_t count = 0;

	do {
		struct key_spec *s = &ret[count++];

		*s = (struct key_spec){ .flags = str_cut(flags, '|'), .at = at++, .step = 1 };
		if (!flags->len || leaves_flags) {
			bool from_end = command->last_key < 0;

			s->last = from_end ? command->last_key : command->last_key - s->at;
			s->step = command->step;
		}
	} while (flags->len && !leaves_flags && count < KEY_SPECS);
	return count;
}

size_t
key_specs_of(const struct command *command, const struct subcommand *sub,
	     struct key_spec ret[static KEY_SPECS])
{
	struct str flags = str_from_cstr(flags_of(command, sub));
	bool of_group = strcmp(command->name, "xreadgroup") == 0;
	size_t count = 0, special;

	if (sub) {
		ret[0] = (struct key_spec){ .flags = flags, .at = sub->key, .step = 1 };
		return sub->key > 0;
	}
	if (command->first_key > 0)
		count = add_fixed_specs(command, &flags,
					command->numkeys || strcmp(command->name, "sort") == 0 ||
						strncmp(command->name, "georadius", 9) == 0,
					ret);
	if (command->numkeys)
		ret[count++] = (struct key_spec){ .flags = str_cut(&flags, '|'),
						  .at = command->numkeys,
						  .counted = true,
						  .step = 1 };
	if (of_group || strcmp(command->name, "xread") == 0)
		ret[count++] = (struct key_spec){ .flags = STR("RO access"),
						  .word = "STREAMS",
						  .at = of_group ? 4 : 1,
						  .last = -1,
						  .step = 1,
						  .limit = 2 };
	special = add_special_specs(command, &ret[count]);
	if (count)
		ret[0].notes = command->key_notes;
	return count + special;
}
