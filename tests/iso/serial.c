#include "serial.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
	MAX_PAIRS = 32,
	KEY_BYTES = SPEC_WORD_BYTES + 8,
};

struct pair {
	char key[KEY_BYTES];
	char shown[SPEC_WORD_BYTES + 1]; /* without the stamp */
	int32_t value;
};

/* A store small enough to be copied for each attempt. */
struct map {
	struct pair pairs[MAX_PAIRS]; /* in the order of their keys */
	int count;
	int stamps;
};

static void
text_set(char *to, size_t size, const char *text)
{
	size_t len = strlen(text);

	assert(len < size);
	memcpy(to, text, len + 1);
}

static struct pair *
map_find(struct map *m, const char *key)
{
	for (int i = 0; i < m->count; i++)
		if (strcmp(m->pairs[i].key, key) == 0)
			return &m->pairs[i];
	return NULL;
}

static void
map_set(struct map *m, const char *key, const char *shown, int32_t value)
{
	struct pair *p = map_find(m, key);
	int at = 0;

	if (!p && m->count < MAX_PAIRS) {
		while (at < m->count && strcmp(m->pairs[at].key, key) < 0)
			at++;
		p = &m->pairs[at];
		memmove(p + 1, p, (size_t)(m->count++ - at) * sizeof(*p));
		text_set(p->key, sizeof(p->key), key);
		text_set(p->shown, sizeof(p->shown), shown);
	}
	if (p)
		p->value = value;
}

static void
map_clear(struct map *m, const char *begin, const char *end)
{
	int kept = 0;

	for (int i = 0; i < m->count; i++)
		if (strcmp(m->pairs[i].key, begin) < 0 || strcmp(m->pairs[i].key, end) >= 0)
			m->pairs[kept++] = m->pairs[i];
	m->count = kept;
}

static void
map_show(const struct map *m, const char *begin, const char *end, char *ret, size_t size)
{
	size_t len = 0;

	ret[0] = '\0';
	for (int i = 0; i < m->count; i++) {
		const struct pair *p = &m->pairs[i];

		if (strcmp(p->key, begin) < 0 || (end && strcmp(p->key, end) >= 0) || len >= size)
			continue;
		len += (size_t)snprintf(ret + len, size - len, "%s%s=%d", len ? "," : "", p->shown,
					p->value);
	}
}

struct reader {
	char seen[SERIAL_TEXT_BYTES];
	struct map last_read;
};

static void
see(struct reader *r, const char *answer)
{
	size_t len = strlen(r->seen);

	snprintf(r->seen + len, sizeof(r->seen) - len, "%s%s", len ? " " : "", answer);
}

static void
get(struct reader *r, struct map *m, const char *key)
{
	const struct pair *p = map_find(m, key);
	char answer[SPEC_WORD_BYTES];

	snprintf(answer, sizeof(answer), p ? "%d" : "-", p ? p->value : 0);
	see(r, answer);
	map_set(&r->last_read, key, key, p ? p->value : 0);
}

static void
get_range(struct reader *r, const struct map *m, const struct spec_step *step)
{
	char pairs[SERIAL_TEXT_BYTES];
	char answer[SERIAL_TEXT_BYTES + 2];

	map_show(m, step->key, step->end, pairs, sizeof(pairs));
	snprintf(answer, sizeof(answer), "{%s}", pairs);
	see(r, answer);
}

static int32_t
value_of(struct reader *r, const struct spec_step *step)
{
	const struct pair *p = step->of[0] ? map_find(&r->last_read, step->of) : NULL;

	return step->number + (p ? p->value : 0);
}

static void
do_step(struct reader *r, struct map *m, const struct spec_step *step)
{
	char key[KEY_BYTES];
	struct pair *p;

	switch (step->op) {
	case SPEC_GET:
	case SPEC_SNAPSHOT_GET:
		get(r, m, step->key);
		break;
	case SPEC_RANGE:
	case SPEC_SNAPSHOT_RANGE:
		get_range(r, m, step);
		break;
	case SPEC_SET:
		map_set(m, step->key, step->key, value_of(r, step));
		break;
	case SPEC_ADD:
		p = map_find(m, step->key);
		map_set(m, step->key, step->key, value_of(r, step) + (p ? p->value : 0));
		break;
	case SPEC_CLEAR:
		snprintf(key, sizeof(key), "%s\x01", step->key);
		map_clear(m, step->key, key);
		break;
	case SPEC_CLEAR_RANGE:
		map_clear(m, step->key, step->end);
		break;
	case SPEC_STAMP_KEY: {
		char shown[SPEC_WORD_BYTES + 1];

		snprintf(shown, sizeof(shown), "%s*", step->key);
		snprintf(key, sizeof(key), "%s%06d", step->key, m->stamps++);
		map_set(m, key, shown, value_of(r, step));
		break;
	}
	case SPEC_READ_CONFLICT:
	case SPEC_WRITE_CONFLICT:
	case SPEC_COMMIT:
	case SPEC_ROLLBACK:
		break;
	}
}

/* Runs one session alone; false when it sees something else than it did. */
static bool
run_session(const struct spec_session *session, const struct serial_session *was, struct map *m)
{
	struct map before = *m;
	struct reader r = { .seen = "" };

	for (int i = 0; i < session->count; i++)
		do_step(&r, m, &session->steps[i]);
	if (!was->committed)
		*m = before;
	return strcmp(r.seen, was->seen) == 0;
}

/* Tries every session that may come next; `done` is a set of bits. */
static bool
explain(const struct spec *spec, const struct serial_run *run, const struct map *m, unsigned done)
{
	char stored[SERIAL_TEXT_BYTES];

	if (done == (1u << spec->session_count) - 1) {
		map_show(m, "", NULL, stored, sizeof(stored));
		return strcmp(stored, run->stored) == 0;
	}
	for (int i = 0; i < spec->session_count; i++) {
		struct map next = *m;
		bool may_be_next = !(done & 1u << i);

		for (int j = 0; j < spec->session_count; j++)
			if (!(done & 1u << j) && run->sessions[j].ended < run->sessions[i].began)
				may_be_next = false;
		if (may_be_next && run_session(&spec->sessions[i], &run->sessions[i], &next) &&
		    explain(spec, run, &next, done | 1u << i))
			return true;
	}
	return false;
}

bool
serial_explains(const struct spec *spec, const struct serial_run *run)
{
	const struct serial_session committed = { .committed = true };
	struct map m = { .count = 0 };

	run_session(&spec->setup, &committed, &m);
	return explain(spec, run, &m, 0);
}
