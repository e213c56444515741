/*
 * For whoever ends what fibers do: those that compute are to see it soon. Beside others they have a
 * small part of the time (loop/README.md), of which a thousand of them would need seconds to
 * continue once each.
 */
#ifndef FROND_LOOP_HURRY_H
#define FROND_LOOP_HURRY_H

#include "loop/loop.h"

/*
 * Has all fibers that compute and wait for their turn continue among those that are ready, once,
 * each for a slice. On the loop's thread, also on a fiber of it.
 */
void loop_hurry(struct loop *l);

#endif
