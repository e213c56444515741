/*
 * Tests, one after the other, told in TAP. A suite is
 *
 *     { name, setup(ctx) → state, tests: { 'sentence': async (state, ctx) => … }, teardown(state) }
 *
 * and a test fails by throwing. A suite with `skip()` that returns a text is skipped for that reason.
 * What it has begun comes to a good end: that is the last test of each suite.
 */
const TEST_TIMEOUT_MS = 300000;
const END = 'what was begun ends well';

function diagnose(text) {
	for (const line of String(text).split('\n')) console.log(`  # ${line}`);
}

function withTimeout(promise, ms) {
	let timer;
	const late = new Promise((_, reject) => {
		timer = setTimeout(() => reject(new Error(`not done after ${ms} ms`)), ms);
	});
	return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/* Returns the number of failures. */
export async function runSuites(suites, ctx) {
	const total = suites.reduce((sum, suite) => sum + Object.keys(suite.tests).length + 1, 0);
	let number = 0;
	let failures = 0;

	console.log('TAP version 13');
	console.log(`1..${total}`);
	for (const suite of suites) {
		const limit = ctx.full ? 10 * TEST_TIMEOUT_MS : TEST_TIMEOUT_MS;
		const reason = suite.skip?.();
		if (reason) {
			for (const name of [...Object.keys(suite.tests), END])
				console.log(`ok ${++number} - ${suite.name}: ${name} # SKIP ${reason}`);
			continue;
		}
		let state, broken;
		try {
			state = await withTimeout(suite.setup(ctx), limit);
		} catch (err) {
			broken = err;
		}
		const run = async (name, test) => {
			const begin = performance.now();
			number++;
			try {
				if (broken) throw broken;
				await withTimeout(test(state, ctx), limit);
				console.log(`ok ${number} - ${suite.name}: ${name}`);
				console.log(`  # ${Math.round(performance.now() - begin)} ms`);
			} catch (err) {
				failures++;
				console.log(`not ok ${number} - ${suite.name}: ${name}`);
				diagnose(
					err === broken
						? `setup: ${err.message}`
						: (err?.stack ?? err),
				);
				if (state?.frond) diagnose(`server said: ${state.frond.logTail()}`);
			}
		};
		for (const [name, test] of Object.entries(suite.tests)) await run(name, test);
		await run(END, async () => suite.teardown?.(state, ctx));
	}
	return failures;
}

/* A figure worth reading, beside the test that is running. */
export const note = (text) => diagnose(text);
