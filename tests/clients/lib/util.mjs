import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

/* Numbers in [0, 1) that depend on the seed alone (mulberry32). */
export function random(seed) {
	let state = seed >>> 0;
	return () => {
		state = (state + 0x6d2b79f5) >>> 0;
		let t = state;
		t = Math.imul(t ^ (t >>> 15), t | 1);
		t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
		return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
	};
}

export const pick = (rand, list) => list[Math.floor(rand() * list.length)];

/* Order of ids in _all_docs: that of their bytes. */
export const byBytes = (a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b));

/* The document with object members in order of their names, at every depth. */
export function canonical(v) {
	if (Array.isArray(v)) return v.map(canonical);
	if (v === null || typeof v !== 'object') return v;
	return Object.fromEntries(
		Object.keys(v)
			.sort()
			.map((name) => [name, canonical(v[name])]),
	);
}

export function without(doc, ...members) {
	return Object.fromEntries(Object.entries(doc).filter(([name]) => !members.includes(name)));
}

/* Asks until the answer is truthy. */
export async function eventually(ask, timeoutMs = 10000, everyMs = 20) {
	const deadline = Date.now() + timeoutMs;
	for (;;) {
		const answer = await ask();
		if (answer) return answer;
		if (Date.now() > deadline)
			throw new Error(`still not so after ${timeoutMs} ms: ${ask}`);
		await sleep(everyMs);
	}
}

/* Asks for a number until it is `goal`; only without any progress for so long it has failed. */
export async function reaches(goal, ask, stalledMs, everyMs = 50) {
	let last;
	let deadline = Date.now() + stalledMs;
	for (;;) {
		const answer = await ask();
		if (answer === goal) return;
		if (answer !== last) deadline = Date.now() + stalledMs;
		last = answer;
		if (Date.now() > deadline)
			throw new Error(`${answer} for ${stalledMs} ms, not ${goal}: ${ask}`);
		await sleep(everyMs);
	}
}

/* The rejection of a promise that must not be fulfilled. */
export async function rejection(promise) {
	try {
		await promise;
	} catch (err) {
		return err;
	}
	return assert.fail('this should have been refused');
}

export const generation = (rev) => Number.parseInt(rev, 10);

export const chunks = (list, size) =>
	Array.from({ length: Math.ceil(list.length / size) }, (_, i) =>
		list.slice(i * size, (i + 1) * size),
	);
