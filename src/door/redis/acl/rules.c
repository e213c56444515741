#include "door/redis/acl/rules.h"

#include <assert.h>
#include <pthread.h>

#include "base/utf8.h"
#include "door/redis/acl/command.h"
#include "door/redis/acl/subcommand.h"

enum {
	CATEGORIES_MOST = 32,
	SELECTOR_BYTES = 64 * 1024, /* of one in several arguments */
};

const char *const acl_rule_errors[ACL_RULE_ERRORS] = {
	[ACL_RULE_OK] = "",
	[ACL_RULE_SYNTAX] = "Syntax error",
	[ACL_RULE_UNKNOWN] = "Unknown command or category name in ACL",
	[ACL_RULE_ALL_KEYS] =
		("Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and "
		 "does not have any effect. Try 'resetkeys' to start with an empty list of "
		 "patterns"),
	[ACL_RULE_ALL_CHANNELS] =
		("Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid "
		 "and does not have any effect. Try 'resetchannels' to start with an empty list "
		 "of channels"),
	[ACL_RULE_FIRST_ARG] = "Allowing first-arg of a subcommand is not supported",
	[ACL_RULE_TOO_MANY] = ("there are too many patterns (ACL_PATTERNS), selectors "
			       "(ACL_SELECTORS) or first arguments (ACL_FIRST_ARGS)"),
	[ACL_RULE_TEXT] = "rules are kept as text, so they have to be UTF-8",
	[ACL_RULE_NO_MEMORY] = "there is no memory for the rules",
};

/* ---- Categories as bits ---- */

/* Of each category the commands and subcommands in it, and what a rule about it is about. */
static uint64_t members[CATEGORIES_MOST][ACL_WORDS];
static uint64_t ruled[CATEGORIES_MOST][ACL_WORDS];

static void
bits_set(uint64_t bits[static ACL_WORDS], size_t bit, bool value)
{
	uint64_t one = UINT64_C(1) << bit % 64;

	assert(bit < ACL_COMMANDS);
	if (value)
		bits[bit / 64] |= one;
	else
		bits[bit / 64] &= ~one;
}

/* A command with all of its subcommands. */
static void
bits_set_command(uint64_t bits[static ACL_WORDS], const struct command *command, bool value)
{
	size_t count;
	const struct subcommand *sub = subcommands_of(command, &count);

	bits_set(bits, acl_bit(command, NULL), value);
	for (size_t i = 0; i < count; i++)
		bits_set(bits, acl_bit(command, &sub[i]), value);
}

static void
category_fill(size_t category)
{
	for (size_t i = 0; i < command_count; i++) {
		const struct command *command = &command_table[i];
		size_t count;
		const struct subcommand *sub = subcommands_of(command, &count);

		if (acl_is_in_category(command, category)) {
			bits_set(members[category], acl_bit(command, NULL), true);
			bits_set_command(ruled[category], command, true);
		}
		for (size_t k = 0; k < count; k++) {
			if (!acl_has_subcommand(command, &sub[k], category))
				continue;
			bits_set(members[category], acl_bit(command, &sub[k]), true);
			bits_set(ruled[category], acl_bit(command, &sub[k]), true);
		}
	}
}

static void
categories_fill(void)
{
	assert(acl_category_count <= CATEGORIES_MOST &&
	       command_count + subcommand_count <= (size_t)ACL_LATER);
	for (size_t i = 0; i < acl_category_count; i++)
		category_fill(i);
}

static void
categories_need(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, categories_fill);
}

/* acl_category_count: there is none of that name. */
static size_t
category_find(struct str name)
{
	size_t i = 0;

	while (i < acl_category_count && !str_eq_nocase(name, str_from_cstr(acl_categories[i])))
		i++;
	return i;
}

/* Allows, or denies, all that the bits name. */
static void
selector_rule_bits(struct acl_selector *s, const uint64_t bits[static ACL_WORDS], bool allowed)
{
	size_t kept = 0;

	for (size_t i = 0; i < ACL_WORDS; i++) {
		if (allowed)
			s->commands[i] |= bits[i];
		else
			s->commands[i] &= ~bits[i];
	}
	/* What is said of a command counts for each first argument. */
	for (size_t i = 0; i < s->first_arg_count; i++)
		if (!acl_has_bit(bits, s->first_args[i].command))
			s->first_args[kept++] = s->first_args[i];
	s->first_arg_count = kept;
}

static void
selector_rule_all(struct acl_selector *s, bool allowed)
{
	memset(s->commands, allowed ? 0xff : 0, sizeof(s->commands));
	s->first_arg_count = 0;
}

/* ---- Rules of a selector ---- */

/* How much a person's selectors have together. */
struct acl_room {
	size_t patterns;
	size_t first_args;
};

/* What a rule of a selector is read with. */
struct acl_reader {
	struct acl_selector *selector;
	struct acl_room *room;
	struct arena *arena;
};

/* Behind @. */
static enum acl_rule_error
rule_category(struct acl_selector *s, struct str name, bool allowed)
{
	size_t category = category_find(name);

	if (str_eq_nocase(name, STR("all"))) {
		selector_rule_all(s, allowed);
		return ACL_RULE_OK;
	}
	if (category == acl_category_count)
		return ACL_RULE_UNKNOWN;
	categories_need();
	selector_rule_bits(s, ruled[category], allowed);
	return ACL_RULE_OK;
}

bool
acl_is_one_word(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] == ' ' || (s.ptr[i] >= '\t' && s.ptr[i] <= '\r') || !s.ptr[i])
			return false;
	return true;
}

/* "+select|0": of a command that has no subcommands. */
static enum acl_rule_error
rule_first_arg(struct acl_reader *r, const struct command *command, struct str arg)
{
	struct acl_selector *s = r->selector;
	const struct acl_first_arg one = { acl_bit(command, NULL), arena_dup(r->arena, arg) };
	struct acl_first_arg *grown;

	if (!acl_is_one_word(arg))
		return ACL_RULE_SYNTAX;
	for (size_t i = 0; i < s->first_arg_count; i++)
		if (s->first_args[i].command == one.command &&
		    str_eq_nocase(s->first_args[i].arg, arg))
			return ACL_RULE_OK;
	if (r->room->first_args == ACL_FIRST_ARGS)
		return ACL_RULE_TOO_MANY;
	grown = arena_grow(r->arena, s->first_args, s->first_arg_count, &s->first_arg_cap,
			   sizeof(*grown));
	if (!grown || !one.arg.ptr)
		return ACL_RULE_NO_MEMORY;
	s->first_args = grown;
	s->first_args[s->first_arg_count++] = one;
	r->room->first_args++;
	return ACL_RULE_OK;
}

/* Behind + or -: a command, command|subcommand, command|first argument. */
static enum acl_rule_error
rule_command(struct acl_reader *r, struct str rule, bool allowed)
{
	uint64_t bits[ACL_WORDS] = { 0 };
	struct str rest = rule, name = str_cut(&rest, '|');
	const struct command *command = command_find(name);
	const struct subcommand *sub;
	size_t subs;

	if (!command)
		return ACL_RULE_UNKNOWN;
	if (name.len == rule.len) {
		bits_set_command(bits, command, true);
		selector_rule_bits(r->selector, bits, allowed);
		return ACL_RULE_OK;
	}
	(void)subcommands_of(command, &subs);
	if (rest.len && memchr(rest.ptr, '|', rest.len))
		return allowed && subcommand_find(command, str_cut(&rest, '|')) ? ACL_RULE_FIRST_ARG
										: ACL_RULE_UNKNOWN;
	if (!rest.len)
		return allowed ? ACL_RULE_SYNTAX : ACL_RULE_UNKNOWN;
	if (!subs)
		return allowed ? rule_first_arg(r, command, rest) : ACL_RULE_UNKNOWN;
	sub = subcommand_find(command, rest);
	if (!sub)
		return ACL_RULE_UNKNOWN;
	bits_set(bits, acl_bit(command, sub), true);
	selector_rule_bits(r->selector, bits, allowed);
	return ACL_RULE_OK;
}

/* Removes the patterns of keys, or of channels. */
static void
selector_drop_patterns(struct acl_selector *s, bool channels, struct acl_room *room)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->pattern_count; i++)
		if (s->patterns[i].channel != channels)
			s->patterns[kept++] = s->patterns[i];
	room->patterns -= s->pattern_count - kept;
	s->pattern_count = kept;
}

static enum acl_rule_error
rule_pattern(struct acl_reader *r, struct acl_pattern pattern)
{
	struct acl_selector *s = r->selector;
	struct acl_pattern *grown;

	if (pattern.channel ? s->all_channels : s->all_keys)
		return pattern.channel ? ACL_RULE_ALL_CHANNELS : ACL_RULE_ALL_KEYS;
	if (!acl_is_one_word(pattern.glob))
		return ACL_RULE_SYNTAX;
	for (size_t i = 0; i < s->pattern_count; i++) {
		struct acl_pattern *p = &s->patterns[i];

		if (p->channel != pattern.channel || !str_eq(p->glob, pattern.glob))
			continue;
		p->read |= pattern.read;
		p->write |= pattern.write;
		return ACL_RULE_OK;
	}
	if (r->room->patterns == ACL_PATTERNS)
		return ACL_RULE_TOO_MANY;
	pattern.glob = arena_dup(r->arena, pattern.glob);
	grown = arena_grow(r->arena, s->patterns, s->pattern_count, &s->pattern_cap,
			   sizeof(*grown));
	if (!grown || !pattern.glob.ptr)
		return ACL_RULE_NO_MEMORY;
	s->patterns = grown;
	s->patterns[s->pattern_count++] = pattern;
	r->room->patterns++;
	return ACL_RULE_OK;
}

/* "%RW~glob" */
static enum acl_rule_error
rule_split(struct acl_reader *r, struct str rule)
{
	struct acl_pattern pattern = { 0 };
	size_t i = 1;

	/* Redis looks at this first. */
	if (r->selector->all_keys)
		return ACL_RULE_ALL_KEYS;
	for (; i < rule.len && rule.ptr[i] != '~'; i++) {
		if ((rule.ptr[i] == 'R' || rule.ptr[i] == 'r') && !pattern.read)
			pattern.read = true;
		else if ((rule.ptr[i] == 'W' || rule.ptr[i] == 'w') && !pattern.write)
			pattern.write = true;
		else
			return ACL_RULE_SYNTAX;
	}
	if (i == rule.len || (!pattern.read && !pattern.write))
		return ACL_RULE_SYNTAX;
	pattern.glob = str_skip(rule, i + 1);
	return rule_pattern(r, pattern);
}

/* Rules that are one word. False: it is none of them. */
static bool
rule_word(struct acl_reader *r, struct str rule)
{
	static const struct {
		const char *words[2];
		bool channels, all;
	} lists[] = {
		{ { "allkeys", "~*" }, false, true },
		{ { "resetkeys", "resetkeys" }, false, false },
		{ { "allchannels", "&*" }, true, true },
		{ { "resetchannels", "resetchannels" }, true, false },
	};

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		if (!str_eq_nocase(rule, str_from_cstr(lists[i].words[0])) &&
		    !str_eq_nocase(rule, str_from_cstr(lists[i].words[1])))
			continue;
		selector_drop_patterns(r->selector, lists[i].channels, r->room);
		if (lists[i].channels)
			r->selector->all_channels = lists[i].all;
		else
			r->selector->all_keys = lists[i].all;
		return true;
	}
	if (!str_eq_nocase(rule, STR("allcommands")) && !str_eq_nocase(rule, STR("nocommands")))
		return false;
	selector_rule_all(r->selector, str_eq_nocase(rule, STR("allcommands")));
	return true;
}

static enum acl_rule_error
rule_of_selector(struct acl_reader *r, struct str rule)
{
	struct str rest = rule.len ? str_skip(rule, 1) : rule;
	bool allowed;

	if (rule_word(r, rule))
		return ACL_RULE_OK;
	if (utf8_valid_prefix(rule) != rule.len)
		return ACL_RULE_TEXT;
	switch (rule.len ? rule.ptr[0] : '\0') {
	case '+':
	case '-':
		allowed = rule.ptr[0] == '+';
		if (rest.len && rest.ptr[0] == '@')
			return rule_category(r->selector, str_skip(rest, 1), allowed);
		return rule_command(r, rest, allowed);
	case '~':
		return rule_pattern(
			r, (struct acl_pattern){ .glob = rest, .read = true, .write = true });
	case '&':
		return rule_pattern(
			r, (struct acl_pattern){
				   .glob = rest, .channel = true, .read = true, .write = true });
	case '%':
		return rule_split(r, rule);
	default:
		return ACL_RULE_SYNTAX;
	}
}

/* ---- Rules of a person ---- */

static void
room_add(struct acl_room *room, const struct acl_selector *s)
{
	room->patterns += s->pattern_count;
	room->first_args += s->first_arg_count;
}

static struct acl_room
room_of(const struct acl *a)
{
	struct acl_room room = { 0 };

	room_add(&room, &a->root);
	for (size_t i = 0; i < a->other_count; i++)
		room_add(&room, &a->others[i]);
	return room;
}

/* Cuts the first word off, whatever kind of space is around it; empty: there is none. */
static struct str
word_cut(struct str *rest)
{
	struct str word;
	size_t n = 0;

	*rest = str_trim(*rest);
	while (n < rest->len && rest->ptr[n] != ' ' &&
	       !(rest->ptr[n] >= '\t' && rest->ptr[n] <= '\r'))
		n++;
	word = str_of(rest->ptr, n);
	*rest = str_skip(*rest, n);
	return word;
}

/* "(~log:* +append)", without the parentheses. */
static enum acl_rule_error
rule_parentheses(struct acl *a, struct str rest, bool pubsub, struct arena *arena)
{
	struct acl_selector made = { .all_channels = pubsub };
	struct acl_room room = room_of(a);
	struct acl_reader r = { .selector = &made, .room = &room, .arena = arena };
	struct acl_selector *grown;
	struct str word;

	if (a->other_count == ACL_SELECTORS)
		return ACL_RULE_TOO_MANY;
	while ((word = word_cut(&rest)).len) {
		/* A role that has it would end the selector there. */
		bool ends = word.ptr[word.len - 1] == ')';
		enum acl_rule_error error = ends ? ACL_RULE_SYNTAX : rule_of_selector(&r, word);

		if (error != ACL_RULE_OK)
			return error;
	}
	grown = arena_grow(arena, a->others, a->other_count, &a->other_cap, sizeof(*grown));
	if (!grown)
		return ACL_RULE_NO_MEMORY;
	a->others = grown;
	a->others[a->other_count++] = made;
	return ACL_RULE_OK;
}

enum acl_rule_error
acl_rule_apply(struct acl *a, struct str rule, bool pubsub, struct arena *arena)
{
	struct acl_room room = room_of(a);
	struct acl_reader r = { .selector = &a->root, .room = &room, .arena = arena };

	if (str_eq_nocase(rule, STR("clearselectors"))) {
		a->other_count = 0;
		return ACL_RULE_OK;
	}
	if (rule.len > 1 && rule.ptr[0] == '(' && rule.ptr[rule.len - 1] == ')')
		return rule_parentheses(a, str_of(rule.ptr + 1, rule.len - 2), pubsub, arena);
	return rule_of_selector(&r, rule);
}

static bool
selector_copy(const struct acl_selector *from, struct acl_selector *ret, struct arena *arena)
{
	size_t patterns = from->pattern_count * sizeof(*from->patterns);
	size_t args = from->first_arg_count * sizeof(*from->first_args);

	*ret = *from;
	ret->pattern_cap = from->pattern_count;
	ret->first_arg_cap = from->first_arg_count;
	ret->patterns = patterns ? arena_alloc(arena, patterns) : NULL;
	ret->first_args = args ? arena_alloc(arena, args) : NULL;
	if ((patterns && !ret->patterns) || (args && !ret->first_args))
		return false;
	if (patterns)
		memcpy(ret->patterns, from->patterns, patterns);
	if (args)
		memcpy(ret->first_args, from->first_args, args);
	return true;
}

bool
acl_copy(const struct acl *from, struct acl *ret, struct arena *arena)
{
	size_t bytes = from->other_count * sizeof(*from->others);

	*ret = *from;
	ret->other_cap = from->other_count;
	ret->others = bytes ? arena_alloc(arena, bytes) : NULL;
	if ((bytes && !ret->others) || !selector_copy(&from->root, &ret->root, arena))
		return false;
	for (size_t i = 0; i < from->other_count; i++)
		if (!selector_copy(&from->others[i], &ret->others[i], arena))
			return false;
	return true;
}

/* Cuts the first rule off a text: a word, or all up to the word that ends with a parenthesis. */
static struct str
rule_cut(struct str *rest)
{
	struct str rule = word_cut(rest), word = rule;

	if (!rule.len || rule.ptr[0] != '(')
		return rule;
	while (word.len && word.ptr[word.len - 1] != ')') {
		word = word_cut(rest);
		if (word.len)
			rule.len = (size_t)(word.ptr + word.len - rule.ptr);
	}
	return rule;
}

void
acl_of_roles(struct acl *a, const struct str *roles, size_t count, struct arena *arena)
{
	*a = (struct acl){ 0 };
	for (size_t i = 0; i < count; i++) {
		struct str rest = roles[i], rule;

		if (!str_starts_with(rest, STR(ACL_ROLE)))
			continue;
		rest = str_skip(rest, sizeof(ACL_ROLE) - 1);
		while ((rule = rule_cut(&rest)).len)
			(void)!acl_rule_apply(a, rule, false, arena);
	}
}

bool
acl_rule_next(const struct str *args, size_t count, size_t *at, struct arena *arena,
	      struct str *ret)
{
	AUTO(buf_release) struct buf text = BUF_SHORT(SELECTOR_BYTES);
	struct str arg = args[(*at)++];
	bool whole = !arg.len || arg.ptr[0] != '(' || arg.ptr[arg.len - 1] == ')';

	*ret = arg;
	if (whole)
		return true;
	buf_append_str(&text, arg);
	while (!whole && *at < count) {
		arg = args[(*at)++];
		buf_append_byte(&text, ' ');
		buf_append_str(&text, arg);
		whole = arg.len && arg.ptr[arg.len - 1] == ')';
	}
	return whole && buf_copy(&text, arena, ret) == STATUS_OK;
}

/* ---- As text ---- */

/* What a pattern of keys allows. "%RW~*" is one pattern among others, which "~*" would not be. */
static const char *
describe_rights(const struct acl_pattern *p, bool for_role)
{
	if (p->read && p->write)
		return for_role && str_eq(p->glob, STR("*")) ? " %RW~" : " ~";
	return p->read ? " %R~" : " %W~";
}

static void
describe_patterns(const struct acl_selector *s, bool channel, bool for_role, struct buf *ret)
{
	if (channel ? s->all_channels : s->all_keys)
		buf_append_cstr(ret, channel ? " &*" : " ~*");
	for (size_t i = 0; i < s->pattern_count; i++) {
		const struct acl_pattern *p = &s->patterns[i];

		if (p->channel != channel)
			continue;
		buf_append_cstr(ret, channel ? " &" : describe_rights(p, for_role));
		buf_append_str(ret, p->glob);
	}
}

void
acl_describe_keys(const struct acl_selector *s, struct buf *ret)
{
	describe_patterns(s, false, false, ret);
}

void
acl_describe_channels(const struct acl_selector *s, struct buf *ret)
{
	describe_patterns(s, true, false, ret);
}

/* Commands as rules, so that those that were written so far allow `sum`. */
struct describing {
	const struct acl_selector *selector;
	bool adds; /* from nothing on; else it takes away from all */
	uint64_t sum[ACL_WORDS];
	struct buf *out;
};

static size_t
bits_common(const uint64_t a[static ACL_WORDS], const uint64_t b[static ACL_WORDS], bool inverted)
{
	size_t count = 0;

	for (size_t i = 0; i < ACL_WORDS; i++)
		count += (size_t)__builtin_popcountll(a[i] & (inverted ? ~b[i] : b[i]));
	return count;
}

/*
 * The category that says most of what is not said yet: more of its members are to be said than not,
 * and the fewest are not. acl_category_count: there is none.
 */
static size_t
best_category(const uint64_t left[static ACL_WORDS], const bool *used)
{
	size_t best = acl_category_count, least = SIZE_MAX, most = 0;

	for (size_t i = 0; i < acl_category_count; i++) {
		size_t same = bits_common(members[i], left, false);
		size_t other = bits_common(members[i], left, true);

		if (used[i] || same <= other || other > least || (other == least && same <= most))
			continue;
		best = i;
		least = other;
		most = same;
	}
	return best;
}

static void
describe_categories(struct describing *d)
{
	bool used[CATEGORIES_MOST] = { false };
	uint64_t left[ACL_WORDS]; /* what is to be added, or taken away */
	size_t best;

	for (size_t i = 0; i < ACL_WORDS; i++)
		left[i] = d->adds ? d->selector->commands[i] : ~d->selector->commands[i];
	while ((best = best_category(left, used)) < acl_category_count) {
		used[best] = true;
		buf_printf(d->out, " %c@%s", d->adds ? '+' : '-', acl_categories[best]);
		for (size_t i = 0; i < ACL_WORDS; i++) {
			left[i] &= ~ruled[best][i];
			if (d->adds)
				d->sum[i] |= ruled[best][i];
			else
				d->sum[i] &= ~ruled[best][i];
		}
	}
}

/* A command and its subcommands, as far as they are other than what was said so far. */
static void
describe_command(struct describing *d, const struct command *command)
{
	const struct acl_selector *s = d->selector;
	size_t bit = acl_bit(command, NULL), count;
	const struct subcommand *sub = subcommands_of(command, &count);
	bool allowed = acl_has_bit(s->commands, bit);

	if (allowed != acl_has_bit(d->sum, bit)) {
		buf_printf(d->out, " %c%s", allowed ? '+' : '-', command->name);
		bits_set_command(d->sum, command, allowed);
	}
	for (size_t i = 0; i < count; i++) {
		bool has = acl_has_bit(s->commands, acl_bit(command, &sub[i]));

		if (has != acl_has_bit(d->sum, acl_bit(command, &sub[i])))
			buf_printf(d->out, " %c%s|%s", has ? '+' : '-', command->name, sub[i].name);
	}
	for (size_t i = 0; !allowed && i < s->first_arg_count; i++) {
		if (s->first_args[i].command != bit)
			continue;
		buf_printf(d->out, " +%s|", command->name);
		buf_append_str(d->out, s->first_args[i].arg);
	}
}

/* `begins`: with +@all or -@all, whichever it is; else with a +@all only. */
static void
describe_commands(const struct acl_selector *s, bool begins, struct buf *ret)
{
	struct describing d = { .selector = s,
				.adds = !acl_has_bit(s->commands, ACL_LATER),
				.out = ret };

	categories_need();
	memset(d.sum, d.adds ? 0 : 0xff, sizeof(d.sum));
	if (begins || !d.adds)
		buf_append_cstr(ret, d.adds ? " -@all" : " +@all");
	describe_categories(&d);
	for (size_t i = 0; i < command_count; i++)
		describe_command(&d, &command_table[i]);
}

void
acl_describe_commands(const struct acl_selector *s, struct buf *ret)
{
	describe_commands(s, true, ret);
}

/*
 * `before` stands in front of the first rule, instead of its space. For a role, what a selector
 * begins with is not said.
 */
static void
describe_selector(const struct acl_selector *s, bool for_role, char before, struct buf *ret)
{
	size_t at = ret->len;

	describe_patterns(s, false, for_role, ret);
	if (!for_role && !s->all_channels)
		buf_append_cstr(ret, " resetchannels");
	describe_patterns(s, true, for_role, ret);
	describe_commands(s, !for_role, ret);
	if (ret->len == at)
		buf_append_byte(ret, (uint8_t)before);
	else
		ret->ptr[at] = before;
}

static void
describe_selectors(const struct acl *a, bool for_role, char before, struct buf *ret)
{
	describe_selector(&a->root, for_role, before, ret);
	for (size_t i = 0; i < a->other_count; i++) {
		buf_append_byte(ret, ' ');
		describe_selector(&a->others[i], for_role, '(', ret);
		buf_append_byte(ret, ')');
	}
}

void
acl_describe(const struct acl *a, struct buf *ret)
{
	describe_selectors(a, false, ' ', ret);
}

void
acl_describe_role(const struct acl *a, struct buf *ret)
{
	const char role[] = ACL_ROLE;

	buf_append(ret, role, sizeof(role) - 2);
	describe_selectors(a, true, role[sizeof(role) - 2], ret);
}
