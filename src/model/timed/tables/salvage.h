/*
 * What is made of a damaged table: catalog/salvage.h. Without its schema its keys mean nothing, and
 * it is lost; a keyspace that is lost is made anew, without its properties.
 */
#ifndef FROND_MODEL_TIMED_TABLES_SALVAGE_H
#define FROND_MODEL_TIMED_TABLES_SALVAGE_H

#include "catalog/salvage.h"

extern const struct catalog_salvage_kind table_salvage;

#endif
