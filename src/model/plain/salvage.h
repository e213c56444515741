/* What is made of a damaged collection: catalog/salvage.h. */
#ifndef FROND_MODEL_PLAIN_SALVAGE_H
#define FROND_MODEL_PLAIN_SALVAGE_H

#include "catalog/salvage.h"

extern const struct catalog_salvage_kind plain_salvage;

#endif
