#include "cli/top_sample.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static int
top_compare(const void *a, const void *b)
{
	const struct top_series *x = a, *y = b;

	return str_cmp(x->key, y->key);
}

/* Takes one line apart; false if it has no series. */
static bool
top_read_line(struct str line, struct top_series *ret)
{
	const char *space = line.len && line.ptr[0] != '#' ? memrchr(line.ptr, ' ', line.len)
							   : NULL;
	char number[TOP_NAME_BYTES];

	if (!space)
		return false;
	ret->key = str_of(line.ptr, (size_t)(space - line.ptr));
	(void)snprintf(number, sizeof(number), "%.*s", (int)(line.len - ret->key.len - 1),
		       space + 1);
	ret->value = strtod(number, NULL);
	return true;
}

enum status
top_sample_read(struct top_sample *s, struct buf *text, uint64_t at_ns, struct err *err)
{
	struct str rest;

	top_sample_free(s);
	s->text = *text;
	*text = (struct buf)BUF_INIT(0);
	s->at_ns = at_ns;
	s->series = mem_alloc(TOP_SERIES * sizeof(*s->series));
	if (!s->series)
		return err_set(err, STATUS_NOMEM, "out of memory");
	for (rest = buf_str(&s->text); rest.len > 0;) {
		const char *end = memchr(rest.ptr, '\n', rest.len);
		size_t len = end ? (size_t)(end - rest.ptr) : rest.len;

		if (s->count == TOP_SERIES)
			return err_set(err, STATUS_INVALID,
				       "the server has more than %d series of metrics", TOP_SERIES);
		if (top_read_line(str_of(rest.ptr, len), &s->series[s->count]))
			s->count++;
		rest = str_of(rest.ptr + len + (end ? 1 : 0), rest.len - len - (end ? 1 : 0));
	}
	qsort(s->series, s->count, sizeof(*s->series), top_compare);
	return STATUS_OK;
}

void
top_sample_free(struct top_sample *s)
{
	buf_release(&s->text);
	mem_free(s->series);
	*s = (struct top_sample){ 0 };
}

static const struct top_series *
top_series_of(const struct top_sample *s, struct str key)
{
	const struct top_series wanted = { .key = key };

	return s->count ? bsearch(&wanted, s->series, s->count, sizeof(wanted), top_compare) : NULL;
}

double
top_value(const struct top_sample *s, const char *key)
{
	const struct top_series *found = top_series_of(s, str_from_cstr(key));

	return found ? found->value : 0;
}

/* A server that was started again counts from 0. */
static double
top_growth_of(const struct top_sample *before, const struct top_series *now)
{
	const struct top_series *then = before ? top_series_of(before, now->key) : NULL;

	return then && then->value <= now->value ? now->value - then->value : now->value;
}

double
top_growth(const struct top_sample *before, const struct top_sample *now, const char *key)
{
	const struct top_series *found = top_series_of(now, str_from_cstr(key));

	return found ? top_growth_of(before, found) : 0;
}

size_t
top_find(const struct top_sample *s, const char *prefix, size_t *ret_count)
{
	const struct str wanted = str_from_cstr(prefix);
	size_t first = 0, count = 0;

	while (first < s->count && !str_starts_with(s->series[first].key, wanted))
		first++;
	while (first + count < s->count && str_starts_with(s->series[first + count].key, wanted))
		count++;
	*ret_count = count;
	return first;
}

bool
top_label(struct str key, const char *label, char ret[TOP_NAME_BYTES])
{
	char name[TOP_NAME_BYTES];
	const char *at, *end;
	size_t len;

	len = (size_t)snprintf(name, sizeof(name), "%s=\"", label);
	assert(len < sizeof(name));
	at = memmem(key.ptr, key.len, name, len);
	if (!at)
		return false;
	at += len;
	end = memchr(at, '"', (size_t)(key.ptr + key.len - at));
	if (!end)
		return false;
	(void)snprintf(ret, TOP_NAME_BYTES, "%.*s", (int)(end - at), at);
	return true;
}

double
top_quantile(const struct top_sample *before, const struct top_sample *now, const char *prefix)
{
	double total = 0, found = 0, wanted;
	size_t count;
	size_t first = top_find(now, prefix, &count);

	for (size_t i = first; i < first + count; i++) {
		double grown = top_growth_of(before, &now->series[i]);

		total = grown > total ? grown : total; /* that of the last bucket */
	}
	wanted = total * TOP_PERCENT / 100;
	for (size_t i = first; i < first + count; i++) {
		char text[TOP_NAME_BYTES];
		double end;

		if (total <= 0 || top_growth_of(before, &now->series[i]) < wanted ||
		    !top_label(now->series[i].key, "le", text))
			continue;
		end = strtod(text, NULL);
		if (found <= 0 || end < found)
			found = end;
	}
	return found;
}
