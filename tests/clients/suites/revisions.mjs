/*
 * The same edit made in CouchDB and in frond is one revision: hashes are compared with CouchDB's
 * own and with a second implementation of its rule.
 */
import assert from 'node:assert/strict';

import { startFrond } from '../lib/frond.mjs';
import { revisionOf } from '../lib/erlang.mjs';
import { expectStatus } from '../lib/http.mjs';
import { chunks } from '../lib/util.mjs';

/* From a CouchDB: body as sent → revision. */
const VECTORS = [
	['{}', '1-967a00dff5e02add41819138abb3284d'],
	['{"foo":"bar"}', '1-4c6114c65e295552ab1019e2b046b10e'],
	['{"a":[1,2,3]}', '1-308048961a84beb0c9e99e07facf0f5f'],
	['{"a":1.0}', '1-8a159b695bf2bd957f1a435bfd6e1739'],
];
const TOMBSTONE = '2-eec205a9d413992850a6e32678485900';

async function setup(ctx) {
	const frond = await startFrond(ctx, 'revisions');
	const db = `${frond.url}/revisions`;
	await expectStatus(201, 'PUT', db);
	return { frond, db, ids: 0 };
}

async function putAll(db, docs) {
	const rows = [];
	for (const some of chunks(docs, 200))
		rows.push(...(await expectStatus(201, 'POST', `${db}/_bulk_docs`, { docs: some })));
	return rows;
}

const tests = {
	'documents get the revisions that CouchDB gives them': async (state) => {
		for (const [body, rev] of VECTORS) {
			const id = `vector-${state.ids++}`;
			const answer = await expectStatus(201, 'PUT', `${state.db}/${id}`, body);
			assert.equal(answer.rev, rev, body);
		}
	},

	'the second implementation agrees with CouchDB': () => {
		for (const [body, rev] of VECTORS.filter(([text]) => !text.includes('.')))
			assert.equal(revisionOf(JSON.parse(body)), rev, body);
		assert.equal(revisionOf({}, VECTORS[0][1], true), TOMBSTONE);
	},

	'a tombstone gets the revision that CouchDB gives it': async ({ db }) => {
		const { rev } = await expectStatus(201, 'PUT', `${db}/tomb`, '{}');
		const gone = await expectStatus(200, 'DELETE', `${db}/tomb?rev=${rev}`);
		assert.equal(gone.rev, TOMBSTONE);
	},

	'members of any kind are hashed in the order sent': async ({ db }) => {
		const bodies = [
			{ b: 1, a: 2 },
			{ a: 2, b: 1 },
			{ n: null, t: true, f: false },
			{
				i: [
					0,
					255,
					256,
					-1,
					2147483647,
					2147483648,
					-2147483648,
					-2147483649,
					2 ** 53 - 1,
				],
			},
			{ d: [0.5, -0.5, 1e-7, 123456.789] },
			{ s: ['', 'ü', '😀', 'a\u0000b'] },
			{ bytes: Array.from({ length: 256 }, (_, i) => i) },
			{ nested: [[1, 2], [], [{}], [[]]] },
			{ o: { z: { y: {}, x: [] }, a: 1 } },
			{ one: [1] },
			{ mixed: [1, 'a'] },
			{ long: Array.from({ length: 65535 }, () => 7) },
			{ longer: Array.from({ length: 65536 }, () => 7) },
		];
		const docs = bodies.map((body, i) => ({ _id: `kind-${i}`, ...body }));
		const rows = await putAll(db, docs);
		rows.forEach((row, i) =>
			assert.equal(
				row.rev,
				revisionOf(docs[i]),
				JSON.stringify(docs[i]).slice(0, 200),
			),
		);
	},

	'real documents, their edits and deletions are hashed alike': async ({ db }, { docs }) => {
		const some = docs.slice(0, 500);
		const first = await putAll(db, some);
		first.forEach((row, i) => assert.equal(row.rev, revisionOf(some[i]), row.id));
		const edited = some.map((doc, i) => ({
			...doc,
			_rev: first[i].rev,
			edited: { by: i },
		}));
		const second = await putAll(db, edited);
		second.forEach((row, i) =>
			assert.equal(row.rev, revisionOf(edited[i], first[i].rev), row.id),
		);
		const gone = await putAll(
			db,
			second.map(({ id, rev }) => ({ _id: id, _rev: rev, _deleted: true })),
		);
		gone.forEach((row, i) =>
			assert.equal(row.rev, revisionOf({}, second[i].rev, true), row.id),
		);
	},

	'the same edit made twice is one revision, not a conflict': async ({ db }) => {
		const body = { made: 'on both sides' };
		const { rev } = await expectStatus(201, 'PUT', `${db}/twice`, body);
		const copy = {
			_id: 'twice',
			...body,
			_rev: rev,
			_revisions: { start: 1, ids: [rev.split('-')[1]] },
		};
		assert.deepEqual(
			await expectStatus(201, 'POST', `${db}/_bulk_docs`, {
				new_edits: false,
				docs: [copy],
			}),
			[],
		);
		const doc = await expectStatus(200, 'GET', `${db}/twice?conflicts=true`);
		assert.deepEqual(doc, { _id: 'twice', _rev: rev, ...body });
	},
};

export default {
	name: 'revisions',
	ownsServer: true,
	setup,
	tests,
	teardown: ({ frond }) => frond.stop(),
};
