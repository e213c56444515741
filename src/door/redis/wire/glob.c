#include "door/redis/wire/glob.h"

static unsigned char
fold(char c, bool nocase)
{
	return (unsigned char)(nocase && c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

/* Behind the '[' at p.ptr[at]: whether `c` is in the class; `*at` is then behind it. */
static bool
class_has(struct str p, size_t *at, char c, bool nocase)
{
	unsigned char wanted = fold(c, nocase);
	size_t i = *at + 1;
	bool negated = i < p.len && p.ptr[i] == '^';
	bool found = false;

	if (negated)
		i++;
	for (; i < p.len && p.ptr[i] != ']'; i++) {
		if (p.ptr[i] == '\\' && i + 1 < p.len) {
			i++;
			found |= fold(p.ptr[i], nocase) == wanted;
		} else if (i + 2 < p.len && p.ptr[i + 1] == '-') {
			unsigned char lo = fold(p.ptr[i], nocase);
			unsigned char hi = fold(p.ptr[i + 2], nocase);

			found |= lo <= hi ? wanted >= lo && wanted <= hi
					  : wanted >= hi && wanted <= lo;
			i += 2;
		} else {
			found |= fold(p.ptr[i], nocase) == wanted;
		}
	}
	*at = i < p.len ? i + 1 : i;
	return found != negated;
}

/* One character against the piece of the pattern at `*at`, which is no '*'. */
static bool
piece_matches(struct str p, size_t *at, char c, bool nocase)
{
	switch (p.ptr[*at]) {
	case '?':
		++*at;
		return true;
	case '[':
		return class_has(p, at, c, nocase);
	case '\\':
		if (*at + 1 < p.len)
			++*at;
		break;
	default:
		break;
	}
	return fold(p.ptr[(*at)++], nocase) == fold(c, nocase);
}

/*
 * A mismatch behind a '*' lets the latest one take one character more: an earlier one never has to
 * be looked at again, since what it could match the latest one can, too.
 */
bool
glob_matches(struct str p, struct str text, bool nocase)
{
	size_t star = SIZE_MAX;
	size_t taken = 0;
	size_t i = 0;
	size_t at = 0;

	while (i < text.len) {
		size_t next = at;

		if (at < p.len && p.ptr[at] == '*') {
			star = ++at;
			taken = i;
		} else if (at < p.len && piece_matches(p, &next, text.ptr[i], nocase)) {
			at = next;
			i++;
		} else if (star != SIZE_MAX) {
			at = star;
			i = ++taken;
		} else {
			return false;
		}
	}
	while (at < p.len && p.ptr[at] == '*')
		at++;
	return at == p.len;
}
