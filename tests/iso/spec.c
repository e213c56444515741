#include "spec.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MAX_WORDS = SPEC_ORDER_STEPS + 1,
};

/* What follows the name of an operation. */
enum operands {
	NO_OPERAND,
	ONE_KEY,
	TWO_KEYS,
	KEY_AND_VALUE,
};

static const struct {
	const char *name;
	enum spec_op op;
	enum operands operands;
} operations[] = {
	{ "get", SPEC_GET, ONE_KEY },
	{ "sget", SPEC_SNAPSHOT_GET, ONE_KEY },
	{ "range", SPEC_RANGE, TWO_KEYS },
	{ "srange", SPEC_SNAPSHOT_RANGE, TWO_KEYS },
	{ "set", SPEC_SET, KEY_AND_VALUE },
	{ "add", SPEC_ADD, KEY_AND_VALUE },
	{ "clear", SPEC_CLEAR, ONE_KEY },
	{ "clear-range", SPEC_CLEAR_RANGE, TWO_KEYS },
	{ "stamp-key", SPEC_STAMP_KEY, KEY_AND_VALUE },
	{ "read-conflict", SPEC_READ_CONFLICT, TWO_KEYS },
	{ "write-conflict", SPEC_WRITE_CONFLICT, TWO_KEYS },
	{ "commit", SPEC_COMMIT, NO_OPERAND },
	{ "rollback", SPEC_ROLLBACK, NO_OPERAND },
};

/* Cuts the line into words. */
static int
split(char *line, char *ret[MAX_WORDS])
{
	char *rest = line;
	int count = 0;
	char *word;

	while (count < MAX_WORDS && (word = strtok_r(rest, " \t\n", &rest)))
		ret[count++] = word;
	return count;
}

static bool
copy_word(char ret[SPEC_WORD_BYTES], const char *word)
{
	size_t len = strlen(word);

	if (len >= SPEC_WORD_BYTES)
		return false;
	memcpy(ret, word, len + 1);
	return true;
}

/* 7, -7, x+1 or x-1 */
static bool
parse_value(const char *word, struct spec_step *ret)
{
	size_t key = isalpha((unsigned char)word[0]) ? strcspn(word, "+-") : 0;
	char *end;

	if (key >= SPEC_WORD_BYTES)
		return false;
	memcpy(ret->of, word, key);
	ret->of[key] = '\0';
	ret->number = (int32_t)strtol(word + key, &end, 10);
	return *end == '\0' && end != word + key;
}

static bool
parse_step(char *text, struct spec_session *session)
{
	struct spec_step *step = &session->steps[session->count];
	char *words[MAX_WORDS];
	int count = split(text, words);

	if (session->count == SPEC_STEPS || count == 0)
		return false;
	session->count++;
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
		if (strcmp(words[0], operations[i].name) != 0)
			continue;
		step->op = operations[i].op;
		switch (operations[i].operands) {
		case NO_OPERAND:
			return count == 1;
		case ONE_KEY:
			return count == 2 && copy_word(step->key, words[1]);
		case TWO_KEYS:
			return count == 3 && copy_word(step->key, words[1]) &&
			       copy_word(step->end, words[2]);
		case KEY_AND_VALUE:
			return count == 3 && copy_word(step->key, words[1]) &&
			       parse_value(words[2], step);
		}
	}
	return false;
}

static int
find_session(const struct spec *spec, const char *name)
{
	for (int i = 0; i < spec->session_count; i++)
		if (strcmp(spec->sessions[i].name, name) == 0)
			return i;
	return -1;
}

static bool
parse_session(struct spec *spec, const char *name, char *text)
{
	int i = find_session(spec, name);

	if (i < 0 && spec->session_count < SPEC_SESSIONS) {
		i = spec->session_count++;
		if (!copy_word(spec->sessions[i].name, name))
			return false;
	}
	return i >= 0 && parse_step(text, &spec->sessions[i]);
}

static bool
parse_order(struct spec *spec, char *names, const char *expected)
{
	struct spec_order *order = &spec->orders[spec->order_count];
	char *words[MAX_WORDS];
	int count = split(names, words);
	int turns[SPEC_SESSIONS] = { 0 };

	if (spec->order_count == SPEC_ORDERS || count > SPEC_ORDER_STEPS)
		return false;
	spec->order_count++;
	for (int i = 0; i < count; i++) {
		int session = find_session(spec, words[i]);

		if (session < 0)
			return false;
		turns[session]++;
		order->sessions[order->count++] = session;
	}
	for (int i = 0; i < spec->session_count; i++)
		if (turns[i] != spec->sessions[i].count)
			return false;
	snprintf(order->expected, sizeof(order->expected), "%s", expected);
	return true;
}

static bool
parse_every(struct spec *spec, const char *text)
{
	spec->has_every = true;
	return sscanf(text, "%d interleavings, %d refused, %d anomalies", &spec->interleavings,
		      &spec->refused, &spec->anomalies) == 3;
}

static bool
parse_line(struct spec *spec, char *line)
{
	static const char order[] = "order ";
	char *text = strchr(line, ':');

	if (!text)
		return false;
	*text++ = '\0';
	while (isspace((unsigned char)*text))
		text++;
	if (strcmp(line, "setup") == 0)
		return parse_step(text, &spec->setup);
	if (strcmp(line, "every") == 0)
		return parse_every(spec, text);
	if (strncmp(line, order, strlen(order)) == 0)
		return parse_order(spec, line + strlen(order), text);
	return parse_session(spec, line, text);
}

/* Each session ends once, and at its end. */
static bool
sessions_end(const struct spec *spec)
{
	for (int i = 0; i < spec->session_count; i++) {
		const struct spec_session *s = &spec->sessions[i];

		for (int j = 0; j < s->count; j++)
			if ((s->steps[j].op >= SPEC_COMMIT) != (j == s->count - 1))
				return false;
	}
	return spec->session_count > 0;
}

const char *
spec_read(const char *path, struct spec *ret)
{
	static char wrong[SPEC_LINE_BYTES + 100];
	FILE *f = fopen(path, "r");
	char line[SPEC_LINE_BYTES];
	char copy[SPEC_LINE_BYTES];
	bool ok = true;

	*ret = (struct spec){ 0 };
	if (!f)
		return "the file cannot be opened";
	while (ok && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		memcpy(copy, line, sizeof(copy));
		if (line[0] != '#' && line[strspn(line, " \t")])
			ok = parse_line(ret, line);
	}
	fclose(f);
	if (!ok)
		snprintf(wrong, sizeof(wrong), "not understood: %s", copy);
	else if (!sessions_end(ret))
		snprintf(wrong, sizeof(wrong),
			 "each session needs a commit or rollback at its end");
	else if (!ret->has_every || !ret->order_count)
		snprintf(wrong, sizeof(wrong), "it needs 'every' and an 'order'");
	else
		return NULL;
	return wrong;
}
