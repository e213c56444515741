/*
 * The way of a new reader, with real data: load it, look at a document's leaves, pull it all with
 * PouchDB, push edits back, kill the server; the dump is what went in, with the edits.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import PouchDB from 'pouchdb';
import memory from 'pouchdb-adapter-memory';

import { countLeaves, writeLines } from '../demo/data.mjs';
import { Frond } from '../lib/frond.mjs';
import { request } from '../lib/http.mjs';
import { note } from '../lib/tap.mjs';
import { byBytes, canonical } from '../lib/util.mjs';
import { assertConsistent, readAll } from '../lib/workload.mjs';

PouchDB.plugin(memory);

const PACKED_BYTES = 16 * 1024; // of a document that lies in one value
const DB = 'bcd';

const lineOf = (doc) => JSON.stringify(canonical(doc));
const linesOf = (docs) => [...docs].sort((a, b) => byBytes(a._id, b._id)).map(lineOf);

/* A dump's lines, which come in the order of their ids, in the canonical form. */
function dumpLines({ code, stdout, stderr }) {
	assert.equal(code, 0, stderr);
	return stdout
		.split('\n')
		.filter((line) => line !== '')
		.map((line) => lineOf(JSON.parse(line)));
}

function assertLines(actual, expected) {
	assert.equal(actual.length, expected.length);
	actual.forEach((line, i) => assert.equal(line, expected[i]));
}

async function setup(ctx) {
	const frond = new Frond(ctx.frond, path.join(ctx.tmp, 'walk'));
	const file = path.join(ctx.tmp, 'walk.jsonl');
	await writeLines(ctx.docs, fs.createWriteStream(file));
	return {
		frond,
		file,
		expected: new Map(ctx.docs.map((doc) => [doc._id, doc])),
		pouch: new PouchDB(`walk-${process.pid}`, { adapter: 'memory' }),
	};
}

/* Runs a command on a terminal of its own. → what the terminal saw, standard error alone */
function onTerminal(command) {
	return new Promise((resolve, reject) => {
		const child = spawn('script', ['-qec', command, '/dev/null'], {
			stdio: ['ignore', 'pipe', 'inherit'],
		});
		const chunks = [];
		child.stdout.on('data', (chunk) => chunks.push(chunk));
		child.on('error', reject);
		child.on('close', (code) =>
			resolve({ code, text: Buffer.concat(chunks).toString() }),
		);
	});
}

const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;

const tests = {
	'a load shows its progress and puts every document in': async (
		{ frond, file },
		{ docs },
	) => {
		const begin = performance.now();
		const { code, text } = await onTerminal(
			[frond.bin, 'load', '--store', frond.store, DB, file].map(quote).join(' '),
		);
		note(
			`${docs.length} documents loaded in ${Math.round(performance.now() - begin)} ms`,
		);
		assert.equal(code, 0, text);
		assert.match(text, /\[#*-*\]/);
		assert.match(text, / %/);
		assert.match(
			text,
			new RegExp(`${docs.length} documents loaded into ${DB}, 0 refused`),
		);
	},

	'a dump is what went in': async ({ frond, expected }) => {
		assertLines(dumpLines(await frond.command('dump', DB)), linesOf(expected.values()));
	},

	'a large document is drawn leaf by leaf, a small one packed': async ({ frond, expected }) => {
		await frond.start();
		const bySize = [...expected.values()].sort(
			(a, b) => countLeaves(b) - countLeaves(a),
		);
		for (const doc of [bySize[0], bySize[20], bySize.at(-1)]) {
			const { code, stdout, stderr } = await frond.command(
				'inspect',
				DB,
				doc._id,
			);
			assert.equal(code, 0, stderr);
			const { _id, ...body } = doc;
			const packed = Buffer.byteLength(JSON.stringify(body)) <= PACKED_BYTES;
			const [member] = Object.keys(body);
			const leaves = stdout
				.split('\n')
				.filter(
					(line) =>
						line.includes(JSON.stringify(_id)) &&
						line.includes(packed ? `(2, {"${member}"` : `, "${member}"`),
				);
			assert.equal(leaves.length, packed ? 1 : countLeaves(doc), _id);
		}
	},

	'PouchDB pulls it all': async ({ frond, expected, pouch }) => {
		const begin = performance.now();
		const result = await pouch.replicate.from(`${frond.url}/${DB}`);
		const took = performance.now() - begin;
		note(
			`${result.docs_written} documents pulled in ${Math.round(took)} ms, ` +
				`${Math.round((result.docs_written / took) * 1000)} documents/s`,
		);
		assert.equal(result.docs_written, expected.size);
		assert.equal(result.doc_write_failures, 0);
		const { rows } = await pouch.allDocs({ include_docs: true });
		assertLines(
			linesOf(rows.map(({ doc: { _rev, ...doc } }) => doc)),
			linesOf(expected.values()),
		);
	},

	'PouchDB pushes edits back': async ({ frond, expected, pouch }) => {
		const { rows } = await pouch.allDocs({ include_docs: true });
		const edits = [];
		rows.forEach(({ doc }, i) => {
			if (i % 50 === 0) {
				edits.push({ _id: doc._id, _rev: doc._rev, _deleted: true });
				expected.delete(doc._id);
			} else if (i % 10 === 0) {
				const edited = { ...doc, edited: { at: i, tags: ['a', {}, []] } };
				edits.push(edited);
				const { _rev, ...rest } = edited;
				expected.set(doc._id, rest);
			}
		});
		for (let i = 0; i < 20; i++) {
			const doc = { _id: `note-${i}`, text: `über ${i}` };
			edits.push(doc);
			expected.set(doc._id, doc);
		}
		for (const row of await pouch.bulkDocs(structuredClone(edits)))
			assert.ok(row.ok, JSON.stringify(row));
		const result = await pouch.replicate.to(`${frond.url}/${DB}`);
		assert.equal(result.docs_written, edits.length);
		assert.equal(result.doc_write_failures, 0);
	},

	'the dump after a kill -9 is what went in, with the edits': async ({ frond, expected }) => {
		await frond.kill();
		assertLines(dumpLines(await frond.command('dump', DB)), linesOf(expected.values()));
	},

	'the server comes back with all of it': async ({ frond, expected, pouch }) => {
		await frond.start();
		const all = await readAll(`${frond.url}/${DB}`);
		assertConsistent(all);
		assertLines(
			linesOf([...all.docs.values()].map(({ _rev, ...doc }) => doc)),
			linesOf(expected.values()),
		);
		const again = await pouch.replicate.from(`${frond.url}/${DB}`);
		assert.equal(again.docs_written, 0);
	},

	'a dump with revisions makes a faithful copy': async ({ frond }, { frond: bin, tmp }) => {
		const copy = new Frond(bin, path.join(tmp, 'walk-copy'));
		const file = path.join(tmp, 'walk-revs.jsonl');
		const before = await readAll(`${frond.url}/${DB}`);
		await frond.stop();
		const dump = await frond.command('dump', '--revs', '--output', file, DB);
		assert.equal(dump.code, 0, dump.stderr);
		const load = await copy.command('load', '--new-edits', 'false', DB, file);
		assert.equal(load.code, 0, load.stderr);
		await copy.start();
		const after = await readAll(`${copy.url}/${DB}`);
		assertConsistent(after);
		assert.deepEqual(after.docs, before.docs);
		const revs = ({ changes }) =>
			new Map([...changes].map(([id, row]) => [id, [row.deleted, row.changes]]));
		assert.deepEqual(revs(after), revs(before));
		await copy.stop();
		await frond.start();
	},

	'a load and a dump through the server do the same': async ({ frond, file }, { docs }) => {
		const run = (...args) => frond.runStart(...args).done;
		const load = await run('load', '--to', frond.url, 'through', file);
		assert.equal(load.code, 0, load.stderr);
		assert.match(
			load.stdout,
			new RegExp(`${docs.length} documents loaded into through, 0 refused`),
		);
		const dump = await run('dump', '--from', frond.url, 'through');
		assertLines(dumpLines(dump), linesOf(docs));
	},

	'a store in use is not written by another process': async ({ frond, file }) => {
		const { code, stderr } = await frond.command('load', 'other', file);
		assert.equal(code, 1);
		assert.notEqual(stderr, '');
		assert.equal((await request('GET', `${frond.url}/other`)).status, 404);
	},
};

export default {
	name: 'walk',
	ownsServer: true,
	setup,
	tests,
	teardown: async ({ frond, pouch }) => {
		await pouch.destroy();
		await frond.stop();
	},
};
