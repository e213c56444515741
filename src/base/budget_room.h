/*
 * How much room a budget has, for those who can do with less or can wait: whether a request should
 * take less than it could use, and whether one more should begin, or wait while it holds nothing: a
 * connection that has no stack yet, or whose fiber rests.
 */
#ifndef FROND_BASE_BUDGET_ROOM_H
#define FROND_BASE_BUDGET_ROOM_H

#include "base/budget.h"

/*
 * True if half of what is for short requests is free. The other half is for what those that have
 * begun turn out to need, and for requests that cannot wait outside. Takes no lock.
 */
bool budget_has_room(const struct budget *b);

/*
 * True if more than half of all is held. From there on whoever can take less of something does:
 * reads ahead, pages, buffers that are kept. The other half is then for what nobody can do without.
 * False for NULL, where memory is not limited. Takes no lock.
 */
bool budget_is_half_held(const struct budget *b);

#endif
