/*
 * Attachments through the clients that people use: nano's API, and PouchDB replicating documents
 * with attachments both ways, through conflicts and deletions.
 */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { PassThrough } from 'node:stream';
import Nano from 'nano';
import PouchDB from 'pouchdb';
import memory from 'pouchdb-adapter-memory';

import { startFrond } from '../lib/frond.mjs';
import { request } from '../lib/http.mjs';
import { note } from '../lib/tap.mjs';
import { eventually, rejection } from '../lib/util.mjs';

PouchDB.plugin(memory);

const LARGE_BYTES = 12 * 1024 * 1024 + 7;
const LIVE_MS = 5000;

const TEXT = 'Ein Text, der sich zusammendrücken lässt. '.repeat(50);
const IMAGE = randomBytes(70000);

async function setup(ctx) {
	const frond = ctx.url ? undefined : await startFrond(ctx, 'attachments');
	const url = ctx.url ?? frond.url;
	return { frond, url, server: Nano(url), run: process.pid, databases: 0 };
}

const withDb = (test) => async (state) => {
	const name = `att-${++state.databases}-${state.run}`;
	await state.server.db.create(name);
	try {
		await test(state.server.use(name), `${state.url}/${name}`, state);
	} finally {
		await state.server.db.destroy(name);
	}
};

const withPair = (test) => async (state) => {
	const name = `att-${++state.databases}-${state.run}`;
	const here = new PouchDB(`local-${name}`, { adapter: 'memory' });
	const there = new PouchDB(`${state.url}/${name}`);
	try {
		await test(here, there, state);
	} finally {
		await here.destroy();
		await there.destroy();
	}
};

const inline = (type, data) => ({ content_type: type, data: Buffer.from(data).toString('base64') });

/* name → content, of a revision; what comes back is compared with what every copy says of it. */
async function contents(db, id, rev) {
	const doc = await db.get(id, { attachments: true, binary: true, ...(rev && { rev }) });
	const all = {};
	for (const [name, att] of Object.entries(doc._attachments ?? {})) {
		const data = Buffer.from(att.data);
		all[name] = `${att.content_type} ${data.length} ${createHash('md5').update(data).digest('hex')}`;
		const alone = await db.getAttachment(id, name, { rev: doc._rev });
		assert.deepEqual(Buffer.from(alone), data, `${id}/${name}`);
	}
	return all;
}

async function assertSame(here, there, id) {
	const options = { conflicts: true, revs: true };
	const [mine, theirs] = [await here.get(id, options), await there.get(id, options)];
	assert.equal(theirs._rev, mine._rev);
	assert.deepEqual(theirs._revisions, mine._revisions);
	assert.deepEqual(theirs._conflicts?.sort(), mine._conflicts?.sort());
	for (const rev of [mine._rev, ...(mine._conflicts ?? [])])
		assert.deepEqual(await contents(there, id, rev), await contents(here, id, rev), rev);
}

const tests = {
	'nano: one by itself': withDb(async (db) => {
		const made = await db.attachment.insert('doc', 'a b/c.png', IMAGE, 'image/png');
		assert.equal(made.ok, true);
		assert.deepEqual(await db.attachment.get('doc', 'a b/c.png'), IMAGE);
		const again = await db.attachment.insert('doc', 't.txt', TEXT, 'text/plain', {
			rev: made.rev,
		});
		assert.equal((await db.attachment.get('doc', 't.txt')).toString(), TEXT);
		const { _attachments: atts } = await db.get('doc');
		assert.equal(atts['t.txt'].length, Buffer.byteLength(TEXT));
		assert.equal(atts['a b/c.png'].revpos, 1);
		assert.equal(
			atts['a b/c.png'].digest,
			`md5-${createHash('md5').update(IMAGE).digest('base64')}`,
		);
		const stale = await rejection(
			db.attachment.insert('doc', 'x', 'y', 'text/plain', { rev: made.rev }),
		);
		assert.equal(stale.statusCode, 409);
		const gone = await db.attachment.destroy('doc', 't.txt', { rev: again.rev });
		assert.equal(gone.ok, true);
		assert.equal((await rejection(db.attachment.get('doc', 't.txt'))).statusCode, 404);
	}),

	'nano: a stream in, a stream out': withDb(async (db) => {
		const bytes = randomBytes(LARGE_BYTES);
		const source = new PassThrough();
		const put = db.attachment.insertAsStream
			? db.attachment.insertAsStream('doc', 'large', source, 'video/mp4')
			: db.attachment.insert('doc', 'large', source, 'video/mp4');
		source.end(bytes);
		assert.equal((await put).ok, true);
		const digest = createHash('md5');
		let length = 0;
		for await (const piece of db.attachment.getAsStream('doc', 'large')) {
			digest.update(piece);
			length += piece.length;
		}
		assert.equal(length, LARGE_BYTES);
		assert.equal(digest.digest('hex'), createHash('md5').update(bytes).digest('hex'));
	}),

	'nano: a document and its files as parts': withDb(async (db) => {
		const files = [
			{ name: 'image.png', data: IMAGE, content_type: 'image/png' },
			{ name: 'text.txt', data: TEXT, content_type: 'text/plain' },
			{ name: 'empty', data: '', content_type: 'a/b' },
		];
		const made = await db.multipart.insert({ n: 1 }, files, 'doc');
		assert.equal(made.ok, true);
		for (const { name, data } of files)
			assert.deepEqual(await db.attachment.get('doc', name), Buffer.from(data), name);
		const doc = await db.get('doc');
		await db.insert({ ...doc, n: 2 });
		assert.equal((await db.attachment.get('doc', 'text.txt')).toString(), TEXT);
		const parts = await db.multipart.get('doc', { attachments: true });
		/* nano makes a string of it, which the image does not survive. */
		assert.match(String(parts), /"follows":true/);
		assert.match(String(parts), /filename="image.png"/);
	}),

	'PouchDB over HTTP: put, get, remove': withPair(async (here, there) => {
		const made = await there.putAttachment('doc', 'f.txt', Buffer.from(TEXT), 'text/plain');
		assert.equal((await there.getAttachment('doc', 'f.txt')).toString(), TEXT);
		const doc = await there.get('doc');
		doc._attachments.g = inline('image/png', IMAGE);
		const next = await there.put(doc);
		assert.deepEqual(Buffer.from(await there.getAttachment('doc', 'g')), IMAGE);
		const missing = await there.get('doc');
		missing._attachments.none = { stub: true, content_type: 'a/b', length: 1, digest: 'md5-x' };
		const err = await rejection(there.put(missing));
		assert.equal(err.status, 412);
		await there.removeAttachment('doc', 'f.txt', next.rev);
		assert.deepEqual(Object.keys((await there.get('doc'))._attachments), ['g']);
		assert.ok(made.rev);
		assert.deepEqual(await contents(there, 'doc'), {
			g: `image/png ${IMAGE.length} ${createHash('md5').update(IMAGE).digest('hex')}`,
		});
	}),

	'PouchDB replicates both ways': withPair(async (here, there) => {
		await here.put({ _id: 'mine', _attachments: { t: inline('text/plain', TEXT) } });
		await there.put({ _id: 'yours', _attachments: { i: inline('image/png', IMAGE) } });
		await there.put({ _id: 'bare' });
		await here.sync(there);
		for (const id of ['mine', 'yours', 'bare']) await assertSame(here, there, id);
		/* Each side goes on with what the other has made, and keeps what it does not name. */
		const mine = await there.get('mine');
		await there.put({ ...mine, n: 2 });
		const yours = await here.get('yours');
		yours._attachments.more = inline('text/css', 'a{}');
		await here.put(yours);
		await here.sync(there);
		for (const id of ['mine', 'yours']) await assertSame(here, there, id);
		assert.deepEqual(Object.keys(await contents(there, 'yours')).sort(), ['i', 'more']);
		assert.equal((await there.get('mine'))._attachments.t.revpos, 1);
	}),

	'PouchDB: each branch of a conflict has its own': withPair(async (here, there) => {
		await here.put({ _id: 'c', _attachments: { f: inline('text/plain', 'first') } });
		await here.sync(there);
		for (const [db, text] of [
			[here, 'left'],
			[there, 'right'],
		]) {
			const doc = await db.get('c');
			doc._attachments[text] = inline('image/png', text.repeat(30000));
			doc.from = text;
			await db.put(doc);
		}
		await here.sync(there);
		await assertSame(here, there, 'c');
		const { _rev, _conflicts } = await there.get('c', { conflicts: true });
		assert.equal(_conflicts.length, 1);
		const [a, b] = [await contents(there, 'c', _rev), await contents(there, 'c', _conflicts[0])];
		assert.deepEqual(Object.keys({ ...a, ...b }).sort(), ['f', 'left', 'right']);
		assert.ok(a.f && b.f);
		/* Solved on one side; the other branch's attachments go with it. */
		await there.remove('c', _conflicts[0]);
		await here.sync(there);
		await assertSame(here, there, 'c');
		assert.deepEqual(await contents(here, 'c'), a);
		assert.equal((await here.get('c', { conflicts: true }))._conflicts, undefined);
	}),

	'PouchDB: a deleted document and one that comes back': withPair(async (here, there) => {
		await here.put({ _id: 'd', _attachments: { f: inline('a/b', IMAGE) } });
		await here.sync(there);
		await there.remove(await there.get('d'));
		await here.sync(there);
		assert.equal((await rejection(here.get('d'))).status, 404);
		await here.put({ _id: 'd', _attachments: { g: inline('a/b', 'again') } });
		await here.sync(there);
		await assertSame(here, there, 'd');
		assert.deepEqual(Object.keys(await contents(there, 'd')), ['g']);
	}),

	'PouchDB: live, with many and large ones': withPair(async (here, there) => {
		const live = here.sync(there, { live: true, retry: true });
		try {
			const atts = {};
			for (let i = 0; i < 30; i++) atts[`f${i}`] = inline('text/plain', `${i} ${TEXT}`);
			atts.large = inline('video/mp4', randomBytes(3 << 20));
			await here.put({ _id: 'many', _attachments: atts });
			const begun = Date.now();
			const doc = await eventually(
				() => there.get('many').catch(() => undefined),
				LIVE_MS,
			);
			assert.equal(Object.keys(doc._attachments).length, 31);
			note(`31 attachments, ${Date.now() - begun} ms`);
			await assertSame(here, there, 'many');
		} finally {
			live.cancel();
			await live.catch(() => {});
		}
	}),

	'a feed brings attachments along': withPair(async (here, there, { url }) => {
		await there.put({ _id: 'x', _attachments: { f: inline('a/b', 'hello') } });
		const { results } = await there.changes({ include_docs: true, attachments: true });
		assert.equal(results[0].doc._attachments.f.data, 'aGVsbG8=');
		const { rows } = await there.allDocs({ include_docs: true, attachments: true });
		assert.equal(rows[0].doc._attachments.f.data, 'aGVsbG8=');
		const { json } = await request('GET', `${url}/${there.name.split('/').pop()}/x`);
		assert.equal(json._attachments.f.stub, true);
	}),
};

export default {
	name: 'attachments',
	setup,
	tests,
	teardown: ({ frond }) => frond?.stop(),
};
