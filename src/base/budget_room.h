/*
 * How much room a budget has, for those who can do with less or can wait: whether a request should
 * take less than it could use, and whether one more should begin, or wait while it holds nothing: a
 * connection that has no stack yet, or whose fiber rests.
 */
#ifndef FROND_BASE_BUDGET_ROOM_H
#define FROND_BASE_BUDGET_ROOM_H

#include "base/budget.h"

/*
 * True if the budget is not exceeded, or if half of what is for short requests is free however much
 * others have that last. The other half is for what those that have begun turn out to need, and for
 * requests that cannot wait outside. True for NULL, where memory is not limited. Takes no lock.
 *
 * A part that begins while the budget is exceeded is late. It may last a moment later, and is none
 * of the short ones then. So no more late parts than that half holds may have begun within
 * BUDGET_LATE_MS and not have ended; in that time those that came before them and are unwelcome go
 * (budget_is_unwelcome()).
 */
bool budget_has_room(const struct budget *b);

/*
 * True if more than half of all is held. From there on whoever can take less of something does:
 * reads ahead, pages, buffers that are kept. The other half is then for what nobody can do without.
 * False for NULL, where memory is not limited. Takes no lock.
 */
bool budget_is_half_held(const struct budget *b);

#endif
