/*
 * What is made of a damaged database of rows: catalog/salvage.h. Without its schema its keys mean
 * nothing, and it is lost.
 */
#ifndef FROND_MODEL_TIMED_ROWS_SALVAGE_H
#define FROND_MODEL_TIMED_ROWS_SALVAGE_H

#include "catalog/salvage.h"

extern const struct catalog_salvage_kind timed_rows_salvage;

#endif
