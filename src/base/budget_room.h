/*
 * How much room a budget has, for those who can do with less or can wait: whether a request should
 * take less than it could use, and whether one more should begin, or wait while it holds nothing: a
 * connection that has no stack yet, or whose fiber rests.
 */
#ifndef FROND_BASE_BUDGET_ROOM_H
#define FROND_BASE_BUDGET_ROOM_H

#include "base/budget.h"

/*
 * True if the budget is not used up, or if short requests have no more than half of their share,
 * BUDGET_SHORT_SHARE, whatever is held by those that last. The other half of that share is for what
 * requests turn out to need after they have begun, and for those that cannot wait before they
 * begin. True for NULL, where memory is not limited. Takes no lock.
 *
 * A part that begins while the budget is used up is late. It counts as short only until it lasts,
 * which may be a moment later. So the number of late parts is limited as well: those that have
 * begun within BUDGET_LATE_MS and have not ended may be as many as have room in that half. By the
 * end of that time older parts that are unwelcome have ended (budget_is_unwelcome()).
 */
bool budget_has_room(const struct budget *b);

/*
 * True if more than half of all is held. From there on whoever can take less of something does:
 * reads ahead, pages, buffers that are kept. The other half is then for what nobody can do without.
 * False for NULL, where memory is not limited. Takes no lock.
 */
bool budget_is_half_held(const struct budget *b);

#endif
