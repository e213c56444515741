/* Lists of known words, such as the names that a protocol gives members. No state; any thread. */
#ifndef FROND_BASE_WORDS_H
#define FROND_BASE_WORDS_H

#include "base/str.h"

/* The number of the word among `words`, some of which may be NULL; `count` if it is none. */
static inline size_t
words_find(struct str word, const char *const *words, size_t count)
{
	size_t i = 0;

	while (i < count && !(words[i] && str_eq(word, str_from_cstr(words[i]))))
		i++;
	return i;
}

static inline bool
words_have(struct str word, const char *const *words, size_t count)
{
	return words_find(word, words, count) < count;
}

/* True if the word is one of the array `words`, by bytes. */
#define WORDS_HAVE(words, word) words_have(word, words, WORDS_COUNT(words))
/* Its number; WORDS_COUNT(words) if it is none. */
#define WORDS_FIND(words, word) words_find(word, words, WORDS_COUNT(words))
#define WORDS_COUNT(words)      (sizeof(words) / sizeof((words)[0]))

#endif
