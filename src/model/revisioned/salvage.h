/* What is made of a damaged revisioned database: catalog/salvage.h. */
#ifndef FROND_MODEL_REVISIONED_SALVAGE_H
#define FROND_MODEL_REVISIONED_SALVAGE_H

#include "catalog/salvage.h"

extern const struct catalog_salvage_kind rev_salvage;

#endif
