/* Lists of known words, such as the names that a protocol gives members. No state; any thread. */
#ifndef FROND_BASE_WORDS_H
#define FROND_BASE_WORDS_H

#include "base/str.h"

static inline bool
words_have(struct str word, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (str_eq(word, str_from_cstr(words[i])))
			return true;
	return false;
}

/* True if the word is one of the array `words`, by bytes. */
#define WORDS_HAVE(words, word) words_have(word, words, sizeof(words) / sizeof((words)[0]))

#endif
