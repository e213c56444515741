/* The server dies by SIGKILL at random times; what was acknowledged is there when it comes back. */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { writeLines } from '../demo/data.mjs';
import { Frond, startFrond } from '../lib/frond.mjs';
import { expectStatus } from '../lib/http.mjs';
import { note } from '../lib/tap.mjs';
import { byBytes, canonical, chunks, random } from '../lib/util.mjs';
import { Follower, Workload, assertConsistent, readAll } from '../lib/workload.mjs';

const WRITERS = 8;
const ROUNDS = 8,
	ROUNDS_FULL = 60;
const SHORTEST_MS = 100,
	LONGEST_MS = 1200;
const LOAD_DOCS = 1500,
	LOAD_ROUNDS = 4;

/* Small ones, so that there are many commits to interrupt, and a few that take many leaves. */
const ballastOf = (docs) =>
	[
		...docs.filter((doc) => JSON.stringify(doc).length < 3000).slice(0, 200),
		...docs.filter((doc) => JSON.stringify(doc).length > 20000).slice(0, 4),
	].map(({ _id, ...body }) => body);

async function setup(ctx) {
	const frond = await startFrond(ctx, 'crash');
	const load = new Workload({
		url: frond.url,
		seed: ctx.seed,
		writers: WRITERS,
		docs: ballastOf(ctx.docs),
	});
	await load.create();
	return { frond, load, follower: new Follower(frond.url), rand: random(ctx.seed + 1) };
}

/* One round: work for a while, end the server by `end`, start it again, look at everything. */
async function round({ frond, load, follower, rand }, end) {
	const work = load.run();
	const following = follower.follow();
	await Promise.race([work, sleep(SHORTEST_MS + rand() * (LONGEST_MS - SHORTEST_MS))]);
	await end(frond);
	load.stop();
	await work;
	await following;
	await frond.start();
	const state = await load.verify();
	await follower.verify(state);
}

function documentsOf({ code, stdout, stderr }) {
	assert.equal(code, 0, stderr);
	return stdout
		.split('\n')
		.filter((line) => line !== '')
		.map((line) => JSON.parse(line));
}

/* A database is asked for its documents in every way, the replicator's first. */
async function assertHolds(db, docs) {
	const { results } = await expectStatus(200, 'GET', `${db}/_changes`);
	assert.equal(results.length, docs.length);
	const known = Object.fromEntries(results.map((row) => [row.id, [row.changes[0].rev]]));
	assert.deepEqual(await expectStatus(200, 'POST', `${db}/_revs_diff`, known), {});
	const { results: got } = await expectStatus(200, 'POST', `${db}/_bulk_get?revs=true`, {
		docs: results.map((row) => ({ id: row.id, rev: row.changes[0].rev })),
	});
	const missing = got.filter((row) => !row.docs[0].ok);
	assert.equal(
		missing.length,
		0,
		`${missing.length} are gone: ${JSON.stringify(missing[0])}`,
	);
	const written = await expectStatus(201, 'POST', `${db}/_bulk_docs`, { docs });
	const accepted = written.filter((row) => row.error !== 'conflict');
	assert.deepEqual(accepted, [], 'documents that are there were written as new');
	const all = await readAll(db);
	assertConsistent(all);
	for (const doc of docs) {
		const { _rev, ...body } = all.docs.get(doc._id);
		assert.deepEqual(body, doc);
	}
}

const tests = {
	'every acknowledged write survives kill -9 under load': async (state, { full }) => {
		const { load, follower } = state;
		for (let i = 0; i < (full ? ROUNDS_FULL : ROUNDS); i++)
			await round(state, (frond) => frond.kill());
		note(
			`${load.acknowledged} writes acknowledged, ${load.inDoubt} in doubt, ` +
				`${follower.rows} rows followed`,
		);
		assert.ok(load.acknowledged > 100, 'too few writes to show anything');
	},

	'a kill right after the start harms nothing': async (state) => {
		for (let i = 0; i < 5; i++) {
			await state.frond.kill();
			await state.frond.start();
		}
		await state.follower.verify(await state.load.verify());
	},

	'a stop under load loses no acknowledged write': async (state) => {
		await round(state, (frond) => frond.stop());
	},

	'the dump after all of it is what the server said': async ({ frond, load }) => {
		const { docs } = await load.verify();
		await frond.kill();
		const dumped = documentsOf(await frond.command('dump', 'crash'));
		await frond.start();
		const ids = [...docs.keys()].sort(byBytes);
		assert.deepEqual(
			dumped.map((doc) => doc._id),
			ids,
		);
		for (const doc of dumped) {
			const { _rev, ...said } = docs.get(doc._id);
			assert.deepEqual(doc, said);
		}
	},

	'a deleted database takes nothing of another with it': async (
		state,
		{ frond: bin, tmp, docs },
	) => {
		const frond = await new Frond(bin, path.join(tmp, 'deleted')).start();
		const [before, after] = [docs.slice(0, 300), docs.slice(300, 600)];
		const at = (db) => `${frond.url}/${db}`;
		const fill = async (db, list) => {
			await expectStatus(201, 'PUT', at(db));
			for (const some of chunks(list, 200))
				await expectStatus(201, 'POST', `${at(db)}/_bulk_docs`, {
					docs: some,
				});
		};

		await fill('before', before);
		await fill('deleted', docs);
		await fill('after', after);
		await expectStatus(200, 'DELETE', at('deleted'));
		for (const end of [() => frond.stop(), () => frond.kill()]) {
			await end();
			await frond.start();
			await assertHolds(at('before'), before);
			await assertHolds(at('after'), after);
		}
		await frond.stop();
	},

	'a load that is killed leaves whole documents, and another completes it': async (
		state,
		ctx,
	) => {
		const docs = ctx.docs.slice(0, LOAD_DOCS);
		const source = new Map(
			docs.map((doc) => [doc._id, JSON.stringify(canonical(doc))]),
		);
		const file = path.join(ctx.tmp, 'load.jsonl');
		const frond = new Frond(ctx.frond, path.join(ctx.tmp, 'load-killed'));
		const trial = new Frond(ctx.frond, path.join(ctx.tmp, 'load-trial'));
		const args = ['load', '--batch', '20', '--on-error', 'continue', 'load', file];
		let had = 0;
		let exists = false;

		await writeLines(docs, fs.createWriteStream(file));
		const begin = performance.now();
		assert.equal((await trial.command(...args)).code, 0);
		const took = performance.now() - begin;
		for (let i = 0; i < LOAD_ROUNDS; i++) {
			const { child, done } = frond.commandStart(...args);
			await Promise.race([done, sleep((0.1 + 0.3 * state.rand()) * took)]);
			child.kill('SIGKILL');
			await done;
			const dump = await frond.command('dump', 'load');
			if (!exists && dump.code !== 0) continue; // killed before there was a database
			exists = true;
			const there = documentsOf(dump);
			for (const doc of there)
				assert.equal(
					JSON.stringify(canonical(doc)),
					source.get(doc._id),
					doc._id,
				);
			assert.ok(there.length >= had, `${had} documents, then ${there.length}`);
			had = there.length;
		}
		note(
			`${took.toFixed()} ms undisturbed; ${had} of ${docs.length} documents behind ` +
				`${LOAD_ROUNDS} kills`,
		);
		const last = await frond.command(...args);
		assert.equal(last.code, had > 0 ? 1 : 0, last.stderr); // what is there is refused
		assert.equal(documentsOf(await frond.command('dump', 'load')).length, docs.length);
		await frond.start();
		const all = await readAll(`${frond.url}/load`);
		assertConsistent(all);
		assert.equal(all.docs.size, docs.length);
		await frond.stop();
	},
};

export default {
	name: 'crash',
	ownsServer: true,
	setup,
	tests,
	teardown: ({ frond }) => frond.stop(),
};
