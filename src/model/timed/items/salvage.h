/*
 * What is made of a damaged database of items: catalog/salvage.h. Its lines are written by whoever
 * dumps it, as those of a whole one.
 */
#ifndef FROND_MODEL_TIMED_ITEMS_SALVAGE_H
#define FROND_MODEL_TIMED_ITEMS_SALVAGE_H

#include "catalog/salvage.h"

extern const struct catalog_salvage_kind timed_items_salvage;

#endif
