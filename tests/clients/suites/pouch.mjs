/*
 * PouchDB replicating with the server: in, out, both ways, live; what each side holds is compared
 * document by document, with revisions and their histories.
 */
import assert from 'node:assert/strict';
import PouchDB from 'pouchdb';
import memory from 'pouchdb-adapter-memory';

import { startFrond } from '../lib/frond.mjs';
import { expectStatus } from '../lib/http.mjs';
import { note } from '../lib/tap.mjs';
import { chunks, eventually, reaches } from '../lib/util.mjs';

PouchDB.plugin(memory);

const PAGE = 500;
const LIVE_MS = 5000; // a busy machine's "at once"; the time that it took is told
const MANY = 10000;
const STALLED_MS = 120000; // without any progress

async function setup(ctx) {
	const frond = ctx.url ? undefined : await startFrond(ctx, 'pouch');
	return { frond, url: ctx.url ?? frond.url, run: process.pid, databases: 0 };
}

const local = (state) =>
	new PouchDB(`local-${state.run}-${++state.databases}`, { adapter: 'memory' });
const remote = (state, name) => new PouchDB(`${state.url}/pouch-${name}-${state.run}`);

/* A pair for one test, gone afterwards. */
const withPair = (name, test) => async (state, ctx) => {
	const here = local(state);
	const there = remote(state, name);
	try {
		await test(here, there, state, ctx);
	} finally {
		await here.destroy();
		await there.destroy();
	}
};

/* id → every open revision with its body and history, deleted ones too. */
async function everything(db) {
	const { results } = await db.changes({ style: 'all_docs', return_docs: true });
	const docs = new Map();
	for (const some of chunks(results, PAGE)) {
		const asked = some.flatMap(({ id, changes }) =>
			changes.map(({ rev }) => ({ id, rev })),
		);
		const answer = await db.bulkGet({ docs: asked, revs: true });
		for (const { id, docs: leaves } of answer.results)
			for (const { ok, error } of leaves) {
				assert.ok(ok, `${id}: ${JSON.stringify(error)}`);
				docs.set(`${id} ${ok._rev}`, ok);
			}
	}
	return docs;
}

async function winners(db) {
	const { rows } = await db.allDocs({ include_docs: true, conflicts: true });
	return rows
		.map(({ doc }) =>
			doc._conflicts ? { ...doc, _conflicts: doc._conflicts.sort() } : doc,
		)
		.sort((a, b) => (a._id < b._id ? -1 : 1));
}

async function assertSame(a, b) {
	const [left, right] = [await everything(a), await everything(b)];
	assert.deepEqual([...left.keys()].sort(), [...right.keys()].sort());
	for (const [key, doc] of left) assert.deepEqual(right.get(key), doc, key);
	const [mine, theirs] = [await winners(a), await winners(b)];
	assert.equal(mine.length, theirs.length);
	mine.forEach((doc, i) => assert.deepEqual(theirs[i], doc, doc._id));
}

async function fill(db, docs) {
	for (const some of chunks(docs, PAGE))
		for (const row of await db.bulkDocs(structuredClone(some)))
			assert.ok(row.ok, JSON.stringify(row));
}

function assertMoved(result, count) {
	assert.equal(result.ok, true);
	assert.deepEqual(result.errors, []);
	assert.equal(result.doc_write_failures, 0);
	assert.equal(result.docs_written, count);
}

const branch = (id, pos, hash, ancestors, body) => ({
	_id: id,
	_rev: `${pos}-${hash}`,
	...body,
	_revisions: { start: pos, ids: [hash, ...ancestors] },
});
const hash = (digit) => digit.repeat(32);

/* One of many: some have attachments. */
const manyDoc = (i) => ({
	_id: `many-${String(i).padStart(6, '0')}`,
	n: i,
	list: [i % 7, { name: `number ${i}` }],
	...(i % 100 === 7 && {
		_attachments: {
			a: {
				content_type: 'image/png', // text would have another digest here than there
				data: Buffer.from(`attached to ${i}`).toString('base64'),
			},
		},
	}),
});

const tests = {
	'real documents go in, come out elsewhere and are the same': async (state, { docs }) => {
		const source = local(state),
			copy = local(state);
		const there = remote(state, 'real');
		try {
			await fill(source, docs);
			let begin = performance.now();
			assertMoved(await source.replicate.to(there), docs.length);
			const pushed = performance.now() - begin;
			begin = performance.now();
			assertMoved(await copy.replicate.from(there), docs.length);
			const pulled = performance.now() - begin;
			note(
				`${docs.length} documents: push ${Math.round(pushed)} ms, ` +
					`pull ${Math.round(pulled)} ms`,
			);
			await assertSame(source, there);
			await assertSame(source, copy);
			assert.equal((await there.info()).doc_count, docs.length);
			for (const doc of docs) {
				const { _rev, ...rest } = await copy.get(doc._id);
				assert.deepEqual(rest, doc);
			}
		} finally {
			await Promise.all([source, copy, there].map((db) => db.destroy()));
		}
	},

	'ten thousand documents stay in step live, through a kill': async (state, ctx) => {
		const source = local(state),
			copy = local(state),
			there = remote(state, 'many');
		const docs = Array.from({ length: MANY }, (_, i) => manyDoc(i));
		const info = async (db) => (await db.info()).doc_count;
		const live = { live: true, retry: true, batch_size: PAGE, back_off_function: () => 100 };
		await fill(source, docs);
		await source.bulkDocs(
			docs
				.filter((_, i) => i % 100 === 1)
				.map(({ _id }) => branch(_id, 1, hash('f'), [], { other: true })),
			{ new_edits: false },
		);
		process.on('unhandledRejection', forgiveRefusal);
		const syncs = [source.sync(there, live), copy.sync(there, live)];
		const ended = syncs.map(
			(sync) =>
				new Promise((resolve) =>
					sync.on('complete', resolve).on('error', resolve),
				),
		);
		try {
			const begin = performance.now();
			await reaches(MANY, () => info(copy), STALLED_MS);
			note(`${MANY} documents went through in ${Math.round(performance.now() - begin)} ms`);
			if (state.frond) await state.frond.kill();
			for (let i = 0; i < 20; i++) {
				await source.put({ ...(await source.get(docs[20 + i]._id)), edited: i });
				await copy.put({ _id: `new-${i}`, i });
			}
			if (state.frond) await state.frond.start();
			await reaches(MANY + 20, () => info(source), STALLED_MS);
			await reaches(19, async () => (await copy.get(docs[39]._id)).edited, STALLED_MS);
		} finally {
			for (const sync of syncs) sync.cancel();
			await Promise.all(ended);
			process.off('unhandledRejection', forgiveRefusal);
		}
		await source.replicate.to(there);
		await copy.sync(there);
		await assertSame(source, copy);
		assert.equal((await there.get(docs[101]._id, { conflicts: true }))._conflicts.length, 1);
		for (const i of [7, 107, 9907])
			assert.equal((await copy.getAttachment(docs[i]._id, 'a')).toString(), `attached to ${i}`);
		await Promise.all([source, copy, there].map((db) => db.destroy()));
	},

	'a second replication starts at the checkpoint': withPair(
		'mark',
		async (here, there, state, { docs }) => {
			const some = docs.slice(0, 300);
			await fill(here, some);
			assertMoved(await here.replicate.to(there), some.length);
			const again = await here.replicate.to(there);
			assertMoved(again, 0);
			assert.equal(again.docs_read, 0);
			for (const doc of some.slice(0, 10))
				await here.put({ ...(await here.get(doc._id)), edited: true });
			const third = await here.replicate.to(there);
			assertMoved(third, 10);
			assert.equal(third.docs_read, 10);

			const copy = local(state);
			assertMoved(await copy.replicate.from(there), some.length);
			assert.equal((await copy.replicate.from(there)).docs_read, 0);
			await there.put({ _id: 'one more' });
			assert.equal((await copy.replicate.from(there)).docs_read, 1);
			await assertSame(copy, there);
			await copy.destroy();
		},
	),

	'edits on both sides meet, and both sides choose the same winners': withPair(
		'both',
		async (here, there, state, { docs }) => {
			const some = docs.slice(0, 60);
			await fill(here, some);
			await here.sync(there);
			for (const [i, { _id }] of some.entries()) {
				const mine = await here.get(_id),
					theirs = await there.get(_id);
				assert.deepEqual(mine, theirs);
				if (i % 5 === 0)
					// a conflict of two edits
					await Promise.all([
						here.put({ ...mine, side: 'here' }),
						there.put({ ...theirs, side: 'there' }),
					]);
				else if (i % 5 === 1)
					// an edit against a deletion
					await Promise.all([
						here.remove(mine),
						there.put({ ...theirs, side: 'there' }),
					]);
				else if (i % 5 === 2)
					// a longer branch against a shorter one
					await Promise.all([
						here
							.put({ ...mine, side: 'here' })
							.then(({ rev }) =>
								here.put({
									...mine,
									_rev: rev,
									side: 'here, twice',
								}),
							),
						there.put({ ...theirs, side: 'there' }),
					]);
				else if (i % 5 === 3)
					// deleted on both sides
					await Promise.all([
						here.remove(mine),
						there.remove(theirs),
					]);
			}
			const result = await here.sync(there);
			assert.deepEqual([result.push.errors, result.pull.errors], [[], []]);
			await assertSame(here, there);
			const list = await winners(there);
			assert.equal(list.filter((doc) => doc._conflicts).length, 24);
			assert.equal(list.length, 48);

			for (const { _id, _conflicts } of list.filter((doc) => doc._conflicts))
				for (const rev of _conflicts) await there.remove(_id, rev);
			await here.sync(there);
			await assertSame(here, there);
			assert.equal(
				(await winners(here)).filter((doc) => doc._conflicts).length,
				0,
			);
		},
	),

	'trees of revisions with many branches travel whole': withPair(
		'trees',
		async (here, there) => {
			const root = hash('1');
			await here.bulkDocs(
				[
					...['a', 'b', 'c', 'd', 'e'].map((d) =>
						branch('wide', 2, hash(d), [root], { d }),
					),
					branch(
						'deep',
						6,
						hash('6'),
						['5', '4', '3', '2', '1'].map(hash),
						{ deep: true },
					),
					branch('deep', 4, hash('f'), ['3', '2', '1'].map(hash), {
						deep: false,
					}),
					branch('gone', 3, hash('9'), [hash('8'), root], {
						_deleted: true,
					}),
					branch('gone', 2, hash('7'), [root], { alive: true }),
					branch('dead', 2, hash('5'), [root], {
						_deleted: true,
						why: 'with a body',
					}),
					branch('roots', 1, hash('2'), [], { n: 2 }),
					branch('roots', 1, hash('3'), [], { n: 3 }),
				],
				{ new_edits: false },
			);
			await here.replicate.to(there);
			await assertSame(here, there);
			const wide = await there.get('wide', { conflicts: true });
			assert.equal(wide._rev, `2-${hash('e')}`);
			assert.equal(wide._conflicts.length, 4);
			assert.equal((await there.get('gone')).alive, true);
		},
	),

	'deletions travel both ways': withPair('deleted', async (here, there, state, { docs }) => {
		const some = docs.slice(0, 40);
		await fill(here, some);
		await here.sync(there);
		for (const [i, { _id }] of some.entries()) {
			const db = i % 2 ? here : there;
			if (i < 20) await db.remove(await db.get(_id));
		}
		await here.sync(there);
		for (const db of [here, there]) {
			assert.equal((await db.info()).doc_count, 20);
			await assert.rejects(db.get(some[0]._id), {
				status: 404,
				reason: 'deleted',
			});
			await assert.rejects(db.get(some[1]._id), {
				status: 404,
				reason: 'deleted',
			});
		}
		await here.put({ _id: some[0]._id, back: true });
		await here.sync(there);
		assert.equal((await there.get(some[0]._id)).back, true);
		await assertSame(here, there);
	}),

	'a live sync carries a change to the other side at once': withPair(
		'live',
		async (here, there) => {
			await there.put({ _id: 'first' });
			const sync = here.sync(there, { live: true });
			const ended = new Promise((resolve, reject) =>
				sync.on('complete', resolve).on('error', reject),
			);
			try {
				await eventually(
					() => here.get('first').catch(() => false),
					LIVE_MS,
				);
				const times = { push: [], pull: [] };
				for (let i = 0; i < 5; i++)
					for (const [way, from, to] of [
						['push', here, there],
						['pull', there, here],
					]) {
						const begin = performance.now();
						const { rev } = await from.put({
							_id: `${way}-${i}`,
							i,
						});
						await eventually(
							() =>
								to.get(`${way}-${i}`).then(
									(doc) => doc._rev === rev,
									() => false,
								),
							LIVE_MS,
							5,
						);
						times[way].push(
							Math.round(performance.now() - begin),
						);
					}
				note(`milliseconds until there: ${JSON.stringify(times)}`);
				const doc = await there.get('push-0');
				await there.remove(doc);
				await eventually(
					() =>
						here.get('push-0').then(
							() => false,
							(err) => err.reason === 'deleted',
						),
					LIVE_MS,
				);
			} finally {
				sync.cancel();
				await ended;
			}
			await assertSame(here, there);
		},
	),

	'a live listener hears each change once and in order': withPair(
		'listen',
		async (here, there) => {
			await there.put({ _id: 'before' });
			const heard = [];
			const feed = there.changes({
				live: true,
				since: 'now',
				include_docs: true,
			});
			const ended = new Promise((resolve, reject) =>
				feed.on('complete', resolve).on('error', reject),
			);
			feed.on('change', (change) => heard.push(change));
			try {
				await there.put({ _id: 'marker' });
				await eventually(
					async () => {
						if (heard.length > 0) return true;
						const { _rev } = await there.get('marker'); // `since: now` takes its time to begin
						await there.put({ _id: 'marker', _rev });
						return false;
					},
					LIVE_MS,
					200,
				);
				for (let i = 0; i < 40; i++)
					await there.put({ _id: `live-${i}`, i });
				const mine = () => heard.filter(({ id }) => id.startsWith('live-'));
				await eventually(() => mine().length >= 40, LIVE_MS);
				assert.deepEqual(
					mine().map(({ doc }) => doc.i),
					Array.from({ length: 40 }, (_, i) => i),
				);
				assert.equal(heard.filter(({ id }) => id === 'before').length, 0);
			} finally {
				feed.cancel();
				await ended;
			}
		},
	),

	'chosen documents are replicated alone': withPair(
		'chosen',
		async (here, there, state, { docs }) => {
			const some = docs.slice(0, 100);
			await fill(there, some);
			const ids = some.filter((_, i) => i % 9 === 0).map((doc) => doc._id);
			assertMoved(await here.replicate.from(there, { doc_ids: ids }), ids.length);
			assert.deepEqual(
				(await here.allDocs()).rows.map((row) => row.id).sort(),
				ids.sort(),
			);
		},
	),

	'small batches arrive as whole as large ones': withPair(
		'batches',
		async (here, there, state, { docs }) => {
			const some = docs.slice(0, 130);
			await fill(here, some);
			assertMoved(
				await here.replicate.to(there, { batch_size: 7, batches_limit: 2 }),
				some.length,
			);
			const copy = local(state);
			assertMoved(
				await copy.replicate.from(there, {
					batch_size: 11,
					batches_limit: 3,
				}),
				some.length,
			);
			await assertSame(copy, there);
			await copy.destroy();
		},
	),

	'a replication carries on behind a restart': async (state, ctx) => {
		if (ctx.url) return;
		const here = local(state),
			there = remote(state, 'restart');
		await fill(here, ctx.docs.slice(0, 100));
		assertMoved(await here.replicate.to(there), 100);
		await state.frond.stop();
		await state.frond.start();
		assert.equal((await here.replicate.to(there)).docs_read, 0);
		const sync = here.sync(there, {
			live: true,
			retry: true,
			back_off_function: () => 100,
		});
		const ended = new Promise((resolve) =>
			sync.on('complete', resolve).on('error', resolve),
		);
		process.on('unhandledRejection', forgiveRefusal);
		try {
			await here.put({ _id: 'before the fall' });
			await eventually(
				() => there.get('before the fall').catch(() => false),
				LIVE_MS,
			);
			await state.frond.kill();
			await here.put({ _id: 'while down' });
			await state.frond.start();
			await eventually(
				() => there.get('while down').catch(() => false),
				4 * LIVE_MS,
			);
			const url = `${state.url}/pouch-restart-${state.run}/from-there`;
			await expectStatus(201, 'PUT', url, {});
			await eventually(
				() => here.get('from-there').catch(() => false),
				4 * LIVE_MS,
			);
		} finally {
			sync.cancel();
			await ended;
			process.off('unhandledRejection', forgiveRefusal);
		}
		await assertSame(here, there);
		await Promise.all([here.destroy(), there.destroy()]);
	},
};

/* PouchDB drops a promise now and then when a server goes away under a live replication. */
function forgiveRefusal(err) {
	if (err?.name !== 'FetchError') throw err;
}

export default {
	name: 'pouch',
	setup,
	tests,
	teardown: ({ frond }) => frond?.stop(),
};
