/*
 * Cloudant's backup tool: what it reads out of a database and writes into a new one is the database,
 * with its conflicts and tombstones; a backup that was killed goes on where it was.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import couchbackup from '@cloudant/couchbackup';

import { sample } from '../demo/data.mjs';
import { startFrond } from '../lib/frond.mjs';
import { expectStatus } from '../lib/http.mjs';
import { note } from '../lib/tap.mjs';
import { chunks } from '../lib/util.mjs';
import { assertConsistent, readAll } from '../lib/workload.mjs';

const SOURCE = 'couchbackup-source';
const DOCUMENTS = 1000;
const SMALL_BATCH = 25; // documents: many batches, so that a backup can be stopped between two

const bin = path.join(
	path.dirname(createRequire(import.meta.url).resolve('@cloudant/couchbackup')),
	'bin/couchbackup.bin.js',
);

const bulk = (db, body) => expectStatus(201, 'POST', `${db}/_bulk_docs`, body);
const hashOf = (rev) => rev.slice(rev.indexOf('-') + 1);
const hash = (i, digit) => i.toString(16).padStart(8, '0') + digit.repeat(24);

/* A revision that somebody else made of the same first one. */
const branch = (id, first, hashHere, body) => ({
	_id: id,
	_rev: `2-${hashHere}`,
	_revisions: { start: 2, ids: [hashHere, hashOf(first)] },
	...body,
});

/*
 * Of every twenty documents one is edited, one deleted, two are in conflict (one of these with a
 * deleted branch besides), and one has a deleted winner over nothing but another tombstone.
 */
async function fill(db, docs) {
	const rows = [];
	for (const some of chunks(docs, 200)) rows.push(...(await bulk(db, { docs: some })));
	const edits = [];
	const branches = [];
	rows.forEach(({ id, rev }, i) => {
		const edited = { ...docs[i], _rev: rev, edited: { at: i, tags: ['ü', {}, []] } };
		const tombstone = { _id: id, _rev: rev, _deleted: true };
		const other = () => branch(id, rev, hash(i, 'a'), { other: { at: i } });
		const gone = () => branch(id, rev, hash(i, 'b'), { _deleted: true });
		const kind = i % 20;
		if (kind === 3 || kind === 7 || kind === 11) edits.push(edited);
		if (kind === 13 || kind === 17) edits.push(tombstone);
		if (kind === 7) branches.push(other());
		if (kind === 11) branches.push(other(), gone());
		if (kind === 17) branches.push(gone());
	});
	edits.push({
		_id: '_design/notes',
		language: 'javascript',
		views: { all: { map: 'function (doc) { emit(doc._id); }' } },
	});
	for (const row of await bulk(db, { docs: edits })) assert.ok(row.ok, JSON.stringify(row));
	assert.deepEqual(await bulk(db, { docs: branches, new_edits: false }), []);
}

/* Id → every leaf revision with its history, however it ends. */
async function leavesOf(db, ids) {
	const leaves = new Map();
	for (const some of chunks(ids, 200)) {
		const { results } = await expectStatus(200, 'POST', `${db}/_bulk_get?revs=true`, {
			docs: some.map((id) => ({ id })),
		});
		for (const { id, docs } of results) {
			const found = docs.map(({ ok }) => ok);
			assert.ok(found.every(Boolean), id);
			leaves.set(
				id,
				found.sort((a, b) => (a._rev < b._rev ? -1 : 1)),
			);
		}
	}
	return leaves;
}

async function stateOf(db) {
	const all = await readAll(db);
	assertConsistent(all);
	return { ...all, leaves: await leavesOf(db, [...all.changes.keys()]) };
}

const revsOf = ({ changes }) =>
	new Map([...changes].map(([id, row]) => [id, [row.deleted, row.changes]]));

function assertSame(actual, expected) {
	assert.deepEqual(actual.docs, expected.docs);
	assert.deepEqual(revsOf(actual), revsOf(expected));
	assert.deepEqual(actual.leaves, expected.leaves);
}

/* → { total } of the documents (revisions, that is) that went through */
const finished = (start) =>
	new Promise((resolve, reject) => {
		start((err, info) => (err ? reject(err) : resolve(info)));
	});

const backup = (db, file, options) =>
	finished((done) => couchbackup.backup(db, fs.createWriteStream(file), options, done));

async function restore({ url }, file, name) {
	const db = `${url}/${name}`;
	await expectStatus(201, 'PUT', db);
	const info = await finished((done) =>
		couchbackup.restore(fs.createReadStream(file), db, { parallelism: 4 }, done),
	);
	return { ...info, state: await stateOf(db) };
}

/* The tool as a process. → { child, done: Promise of { code, signal, stderr } } */
function runTool(url, ...args) {
	const child = spawn(
		process.execPath,
		[bin, '--url', url, '--db', SOURCE, '--buffer-size', String(SMALL_BATCH), ...args],
		{ stdio: ['ignore', 'ignore', 'pipe'] },
	);
	let stderr = '';
	child.stderr.on('data', (chunk) => (stderr += chunk));
	const done = new Promise((resolve, reject) => {
		child.on('error', reject);
		child.on('close', (code, signal) => resolve({ code, signal, stderr }));
	});
	return { child, done };
}

/* Batches that a log says are to do, or done. */
const batchesIn = (log, letter) =>
	fs.existsSync(log)
		? new Set(
				fs
					.readFileSync(log, 'utf8')
					.split('\n')
					.filter((line) => line.startsWith(`:${letter} `))
					.map((line) => line.split(' ')[1]),
			)
		: new Set();

async function setup(ctx) {
	const frond = await startFrond(ctx, 'couchbackup');
	const db = `${frond.url}/${SOURCE}`;
	await expectStatus(201, 'PUT', db);
	await fill(db, sample(ctx.docs, DOCUMENTS));
	const source = await stateOf(db);
	return { frond, url: frond.url, db, source };
}

const tests = {
	'the database has conflicts and tombstones to lose': ({ source }) => {
		const leaves = [...source.leaves.values()];
		const conflicts = leaves.filter(
			(some) => some.filter((doc) => !doc._deleted).length > 1,
		);
		assert.ok(source.docs.size >= 0.8 * DOCUMENTS);
		assert.ok(conflicts.length >= DOCUMENTS / 20);
		assert.ok(source.info.doc_del_count >= DOCUMENTS / 20);
		for (const [id, row] of source.changes)
			assert.deepEqual(
				row.changes.map(({ rev }) => rev).sort(),
				source.leaves.get(id).map((doc) => doc._rev),
				id,
			);
	},

	'a backup restored is the database, conflicts and tombstones too': async (
		state,
		{ tmp },
	) => {
		const file = path.join(tmp, 'full.backup');
		const begin = performance.now();
		const { total } = await backup(state.db, file, { parallelism: 4 });
		const between = performance.now();
		const copy = await restore(state, file, 'couchbackup-full');
		note(
			`${total} revisions backed up in ${Math.round(between - begin)} ms, ` +
				`restored in ${Math.round(performance.now() - between)} ms`,
		);
		const leaves = [...state.source.leaves.values()].flat().length;
		assert.equal(total, leaves);
		assert.equal(copy.total, leaves);
		assertSame(copy.state, state.source);
	},

	'a shallow backup restored has the winners': async (state, { tmp }) => {
		const file = path.join(tmp, 'shallow.backup');
		const { total } = await backup(state.db, file, {
			mode: 'shallow',
			bufferSize: 100,
		});
		assert.equal(total, state.source.docs.size);
		const copy = await restore(state, file, 'couchbackup-shallow');
		assert.deepEqual(copy.state.docs, state.source.docs);
		assert.equal(copy.state.info.doc_del_count, 0);
	},

	'a backup that was killed goes on where it was': async (state, { tmp }) => {
		const file = path.join(tmp, 'killed.backup');
		const log = path.join(tmp, 'killed.log');
		const to = ['--output', file, '--log', log];
		const first = runTool(state.url, ...to, '--parallelism', '1');
		while (batchesIn(log, 'd').size === 0 && first.child.exitCode === null)
			await sleep(5);
		first.child.kill('SIGKILL');
		const { signal, stderr } = await first.done;
		assert.equal(signal, 'SIGKILL', stderr);
		const before = batchesIn(log, 'd').size;
		const all = batchesIn(log, 't').size;
		note(`killed after ${before} of ${all} batches`);
		assert.ok(before < all);
		const second = await runTool(state.url, ...to, '--resume', 'true').done;
		assert.equal(second.code, 0, second.stderr);
		assert.equal(batchesIn(log, 'd').size, all);
		const copy = await restore(state, file, 'couchbackup-killed');
		assertSame(copy.state, state.source);
	},
};

export default {
	name: 'couchbackup',
	ownsServer: true,
	setup,
	tests,
	teardown: ({ frond }) => frond.stop(),
};
