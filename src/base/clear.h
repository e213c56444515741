/*
 * Clearing a struct in place but for large members, which whoever begins with it sets, or of which
 * nobody reads more than a count says.
 *
 * The member behind a large one is named, too. It is a mistake that does not compile if another
 * member has come between the two, so none is left as it was by accident, as far as the offsets
 * tell: one that fits in what the alignment leaves free there goes unnoticed. What is put in front
 * of the large member, or behind the one behind it, is cleared.
 */
#ifndef FROND_BASE_CLEAR_H
#define FROND_BASE_CLEAR_H

#include <stddef.h>
#include <string.h>

/* Clears what is in front of the member `large` of `*p`. */
#define CLEAR_BEFORE(p, large) ((void)memset((p), 0, offsetof(__typeof__(*(p)), large)))

/* Clears what is behind the member `large` of `*p`, from `next` on, which is the one behind it. */
#define CLEAR_BEHIND(p, large, next)                                                               \
	do {                                                                                       \
		CLEAR_ASSERT_NEXT(p, large, next);                                                 \
		clear_range((p), offsetof(__typeof__(*(p)), next), sizeof(*(p)));                  \
	} while (0)

/* The same up to `other`, the next large one. */
#define CLEAR_BETWEEN(p, large, next, other)                                                       \
	do {                                                                                       \
		CLEAR_ASSERT_NEXT(p, large, next);                                                 \
		_Static_assert(offsetof(__typeof__(*(p)), next) <                                  \
				       offsetof(__typeof__(*(p)), other),                          \
			       "there is nothing between the two");                                \
		clear_range((p), offsetof(__typeof__(*(p)), next),                                 \
			    offsetof(__typeof__(*(p)), other));                                    \
	} while (0)

/* ---- Private ---- */

#define CLEAR_END(p, member) (offsetof(__typeof__(*(p)), member) + sizeof((p)->member))

#define CLEAR_ALIGNED(n, align) (((n) + (align)-1) / (align) * (align))

#define CLEAR_ASSERT_NEXT(p, large, next)                                                          \
	_Static_assert(offsetof(__typeof__(*(p)), next) ==                                         \
			       CLEAR_ALIGNED(CLEAR_END(p, large), __alignof__((p)->next)),         \
		       "another member stands between the two")

static inline void
clear_range(void *p, size_t from, size_t until)
{
	memset((char *)p + from, 0, until - from);
}

#endif
