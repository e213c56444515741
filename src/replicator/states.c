#include "replicator/states.h"

#include <assert.h>

static const struct job_step steps[JOB_STATES][JOB_EVENTS] = {
	[JOB_PENDING] = {
		[JOB_TURN] = { JOB_START, JOB_RUNNING },
		[JOB_REFUSED] = { JOB_FAIL, JOB_FAILED },
		[JOB_CANCEL] = { JOB_REMOVE, JOB_GONE },
	},
	[JOB_RUNNING] = {
		[JOB_MAKE_ROOM] = { JOB_STOP, JOB_YIELDING },
		[JOB_ENDED] = { JOB_COMPLETE, JOB_COMPLETED },
		[JOB_STOPPED] = { JOB_PUT_BACK, JOB_PENDING },
		[JOB_CRASHED] = { JOB_BACK_OFF, JOB_CRASHING },
		[JOB_REFUSED] = { JOB_FAIL, JOB_FAILED },
		[JOB_CANCEL] = { JOB_STOP, JOB_LEAVING },
	},
	[JOB_YIELDING] = {
		[JOB_MAKE_ROOM] = { JOB_NOTHING, JOB_YIELDING },
		[JOB_ENDED] = { JOB_COMPLETE, JOB_COMPLETED },
		[JOB_STOPPED] = { JOB_PUT_BACK, JOB_PENDING },
		[JOB_CRASHED] = { JOB_BACK_OFF, JOB_CRASHING },
		[JOB_REFUSED] = { JOB_FAIL, JOB_FAILED },
		[JOB_CANCEL] = { JOB_NOTHING, JOB_LEAVING },
	},
	[JOB_LEAVING] = {
		[JOB_MAKE_ROOM] = { JOB_NOTHING, JOB_LEAVING },
		[JOB_ENDED] = { JOB_REMOVE, JOB_GONE },
		[JOB_STOPPED] = { JOB_REMOVE, JOB_GONE },
		[JOB_CRASHED] = { JOB_REMOVE, JOB_GONE },
		[JOB_REFUSED] = { JOB_REMOVE, JOB_GONE },
		[JOB_CANCEL] = { JOB_NOTHING, JOB_LEAVING },
	},
	[JOB_CRASHING] = {
		[JOB_RESTED] = { JOB_NOTHING, JOB_PENDING },
		[JOB_CANCEL] = { JOB_REMOVE, JOB_GONE },
	},
	[JOB_COMPLETED] = {
		[JOB_CANCEL] = { JOB_REMOVE, JOB_GONE },
	},
	[JOB_FAILED] = {
		[JOB_CANCEL] = { JOB_REMOVE, JOB_GONE },
	},
};

struct job_step
job_step(enum job_state state, enum job_event event)
{
	assert(state < JOB_STATES && event < JOB_EVENTS);
	return steps[state][event];
}

const char *
job_state_name(enum job_state state)
{
	static const char *const names[JOB_STATES] = {
		[JOB_PENDING] = "pending",   [JOB_RUNNING] = "running",
		[JOB_YIELDING] = "running",  [JOB_LEAVING] = "running",
		[JOB_CRASHING] = "crashing", [JOB_COMPLETED] = "completed",
		[JOB_FAILED] = "failed",     [JOB_GONE] = "gone",
	};

	return names[state];
}
