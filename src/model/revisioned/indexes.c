/* What indexes and design documents need when the winner of a document changes. */
#include "model/revisioned/revisioned_int.h"

/* What is called when a design document changes; set before any other thread runs. */
static rev_design_changed *design_changed;

void
rev_design_hook(rev_design_changed *changed)
{
	design_changed = changed;
}
