/* MongoDB's driver for Node, as programs use it. */
import assert from 'node:assert/strict';
import { Binary, Decimal128, Long, MongoClient, ObjectId } from 'mongodb';

import { startMongo } from '../lib/mongo.mjs';
import { rejection } from '../lib/util.mjs';

const DOCUMENTS = 1500;

async function setup(ctx) {
	const door = await startMongo(ctx, 'mongodb');
	const client = new MongoClient(door.uri);
	await client.connect();
	return { ...door, client, db: client.db('shop') };
}

const tests = {
	'values of each type come back as they were': async ({ db }) => {
		const doc = {
			_id: new ObjectId(),
			text: 'grüße \u0000',
			n: 1,
			long: Long.fromString('9007199254740993'),
			d: 0.5,
			decimal: Decimal128.fromString('1.50'),
			date: new Date(0),
			bytes: new Binary(Buffer.from([0, 255]), 128),
			list: [[], {}, [null]],
			deep: { 1: { a: /^a/i } },
		};
		const types = db.collection('types', { promoteLongs: false });
		await types.insertOne(doc);
		assert.deepEqual(await types.findOne({ _id: doc._id }), doc);
	},

	'documents are found by filters, and come in batches': async ({ db }) => {
		const books = db.collection('books');
		const made = await books.insertMany(
			Array.from({ length: DOCUMENTS }, (_, n) => ({
				_id: n,
				tags: [n % 3, 'all'],
				by: { name: `author ${n % 7}` },
			})),
		);
		assert.equal(made.insertedCount, DOCUMENTS);
		assert.equal((await books.find({}).batchSize(100).toArray()).length, DOCUMENTS);
		const found = await books
			.find({ tags: 2, 'by.name': { $in: ['author 1', /2$/] }, _id: { $gt: 10 } })
			.toArray();
		assert.deepEqual(
			found.map((book) => book._id).sort((a, b) => a - b),
			Array.from({ length: DOCUMENTS }, (_, n) => n).filter(
				(n) => n > 10 && n % 3 === 2 && (n % 7 === 1 || n % 7 === 2),
			),
		);
		const last = await books.find({}).sort({ _id: -1 }).skip(1).limit(2).toArray();
		assert.deepEqual(
			last.map((book) => book._id),
			[DOCUMENTS - 2, DOCUMENTS - 3],
		);
	},

	'updates change what they name': async ({ db }) => {
		const stock = db.collection('stock');
		await stock.insertMany([
			{ _id: 1, n: 1, sizes: [{ s: 'a', n: 1 }, { s: 'b', n: 2 }] },
			{ _id: 2, n: 1 },
		]);
		const one = await stock.updateOne(
			{ _id: 1, 'sizes.s': 'b' },
			{ $inc: { n: 4, 'sizes.$.n': 10 }, $push: { log: 'x' } },
		);
		assert.deepEqual([one.matchedCount, one.modifiedCount], [1, 1]);
		assert.deepEqual(await stock.findOne({ _id: 1 }), {
			_id: 1,
			n: 5,
			sizes: [{ s: 'a', n: 1 }, { s: 'b', n: 12 }],
			log: ['x'],
		});
		assert.equal((await stock.updateMany({}, { $set: { seen: true } })).modifiedCount, 2);
		const upserted = await stock.updateOne({ _id: 3 }, { $set: { n: 9 } }, { upsert: true });
		assert.equal(upserted.upsertedId, 3);
		assert.equal((await stock.replaceOne({ _id: 3 }, { m: 1 })).modifiedCount, 1);
		assert.equal((await stock.deleteMany({ seen: true })).deletedCount, 2);
		assert.deepEqual(await stock.find().toArray(), [{ _id: 3, m: 1 }]);
	},

	'a batch of many writes tells what each did': async ({ db }) => {
		const mixed = db.collection('mixed');
		const result = await mixed.bulkWrite([
			{ insertOne: { document: { _id: 1 } } },
			{ insertOne: { document: { _id: 2 } } },
			{ updateOne: { filter: { _id: 1 }, update: { $set: { a: 1 } } } },
			{ deleteOne: { filter: { _id: 2 } } },
		]);
		assert.deepEqual(
			[result.insertedCount, result.modifiedCount, result.deletedCount],
			[2, 1, 1],
		);
		const error = await rejection(
			mixed.insertMany([{ _id: 3 }, { _id: 1 }, { _id: 4 }], { ordered: false }),
		);
		assert.equal(error.code, 11000);
		assert.equal(await mixed.estimatedDocumentCount(), 3);
	},

	'a write whose answer is lost is sent again and done once': async ({ client, db }) => {
		const fail = (data) =>
			client.db('admin').command({
				configureFailPoint: 'failCommand',
				mode: { times: 1 },
				data,
			});
		const retried = db.collection('retried');
		await retried.insertOne({ _id: 1, n: 0 });
		await fail({ failCommands: ['update'], closeConnection: true });
		await retried.updateOne({ _id: 1 }, { $inc: { n: 1 } });
		await fail({ failCommands: ['update'], errorCode: 10107, errorLabels: ['RetryableWriteError'] });
		await retried.updateOne({ _id: 1 }, { $inc: { n: 1 } });
		await fail({ failCommands: ['find'], closeConnection: true });
		assert.deepEqual(await retried.findOne({ _id: 1 }), { _id: 1, n: 2 });
	},

	'a client goes on after the server was killed': async ({ frond, db }) => {
		const kept = db.collection('kept');
		await kept.insertOne({ _id: 1 });
		await frond.kill();
		await frond.start();
		assert.deepEqual(await kept.find().toArray(), [{ _id: 1 }]);
		await kept.insertOne({ _id: 2 });
	},
};

async function teardown({ client, frond }) {
	await client.close();
	await frond.stop();
}

export default { name: 'mongodb', ownsServer: true, setup, tests, teardown };
