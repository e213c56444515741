/* mongoose: schemas and models over MongoDB's driver. */
import assert from 'node:assert/strict';
import mongoose from 'mongoose';

import { startMongo } from '../lib/mongo.mjs';
import { rejection } from '../lib/util.mjs';

async function setup(ctx) {
	const door = await startMongo(ctx, 'mongoose');
	const connection = await mongoose.createConnection(door.uri, { dbName: 'blog' }).asPromise();
	const author = new mongoose.Schema({ name: { type: String, required: true }, born: Number });
	const post = new mongoose.Schema(
		{
			title: String,
			tags: [String],
			author: { type: mongoose.Schema.Types.ObjectId, ref: 'Author' },
			comments: [{ by: String, votes: { type: Number, default: 0 } }],
		},
		{ timestamps: true, optimisticConcurrency: true, autoIndex: false },
	);
	return {
		...door,
		connection,
		Author: connection.model('Author', author),
		Post: connection.model('Post', post),
	};
}

const tests = {
	'documents are made, checked and read by their schema': async ({ Author }) => {
		const ann = await Author.create({ name: 'Ann', born: '1970' });
		assert.equal((await Author.findById(ann._id)).born, 1970);
		assert.match((await rejection(Author.create({}))).message, /`name` is required/);
		assert.equal((await Author.find({ name: 'Bob' })).length, 0);
	},

	'a document is changed where it was changed': async ({ Post }) => {
		const post = await Post.create({ title: 'Fronds', tags: ['a'], comments: [{ by: 'x' }] });
		post.tags.push('b');
		post.comments[0].votes += 3;
		await post.save();
		const read = await Post.findById(post._id).lean();
		assert.deepEqual(read.tags, ['a', 'b']);
		assert.equal(read.comments[0].votes, 3);
		assert.ok(read.updatedAt >= read.createdAt);
		await Post.updateOne({ _id: post._id }, { $pull: { tags: 'a' } });
		assert.deepEqual((await Post.findById(post._id)).tags.toObject(), ['b']);
	},

	'two who change the same document do not lose a change': async ({ Post }) => {
		const made = await Post.create({ title: 'one', tags: ['a'] });
		const [first, second] = [await Post.findById(made._id), await Post.findById(made._id)];
		first.title = 'two';
		await first.save();
		second.title = 'three';
		assert.equal((await rejection(second.save())).name, 'VersionError');
		assert.equal((await Post.findById(made._id)).title, 'two');
	},

	'references are filled in, and queries are chained': async ({ Author, Post }) => {
		const bob = await Author.create({ name: 'Bob' });
		await Post.insertMany(
			Array.from({ length: 20 }, (_, n) => ({ title: `t${n}`, author: bob._id })),
		);
		const posts = await Post.find({ author: bob._id })
			.where('title')
			.in(['t3', 't5', 't7'])
			.populate('author');
		assert.deepEqual(
			posts.map((post) => `${post.title} ${post.author.name}`).sort(),
			['t3 Bob', 't5 Bob', 't7 Bob'],
		);
		let seen = 0;
		for await (const post of Post.find({ author: bob._id }).cursor({ batchSize: 3 }))
			seen += post.title.startsWith('t') ? 1 : 0;
		assert.equal(seen, 20);
		assert.equal((await Post.deleteMany({ author: bob._id })).deletedCount, 20);
	},
};

async function teardown({ connection, frond }) {
	await connection.close();
	await frond.stop();
}

export default { name: 'mongoose', ownsServer: true, setup, tests, teardown };
