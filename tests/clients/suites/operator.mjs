/* The page at /_frond/ in a real browser: an operator logs in and looks at all of it. */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import cassandra from 'cassandra-driver';
import { createClient } from 'redis';

import { openBrowser, withoutBrowser } from '../lib/browser.mjs';
import { freePort, startFrond } from '../lib/frond.mjs';
import { expectStatus } from '../lib/http.mjs';
import { eventually } from '../lib/util.mjs';

const BUSY_MS = 240000; // a browser on a busy machine
const ADMIN = { headers: { Authorization: `Basic ${btoa('root:secret')}` } };
const HOSTILE = '<img src=x onerror="document.title=1">';

async function setup(ctx) {
	const dir = fs.mkdtempSync(path.join(ctx.tmp, 'operator-'));
	const ini = path.join(dir, 'frond.ini');
	fs.writeFileSync(ini, '[frond]\nslow_request_ms = 1\n');
	const [redisPort, cqlPort] = [await freePort(), await freePort()];
	const frond = await startFrond(ctx, 'operator', [
		...['--config', ini, '--admin', 'root:secret', '--redis', `127.0.0.1:${redisPort}`],
		...['--cql', `127.0.0.1:${cqlPort}`],
	]);
	await expectStatus(201, 'PUT', `${frond.url}/_users`, undefined, ADMIN);
	const anna = { name: 'anna', password: 'apple', type: 'user', roles: ['crew'] };
	await expectStatus(201, 'PUT', `${frond.url}/_users/org.couchdb.user:anna`, anna, ADMIN);
	await expectStatus(201, 'PUT', `${frond.url}/ship`, undefined, ADMIN);
	const captain = { name: HOSTILE, crew: { mate: 'ann = (b)', 'x, "y"': [1, 2] } };
	await expectStatus(201, 'PUT', `${frond.url}/ship/captain`, captain, ADMIN);
	for (let i = 0; i < 150; i++)
		await expectStatus(201, 'PUT', `${frond.url}/ship/sailor-${i}`, { i }, ADMIN);
	const redis = createClient({ url: `redis://root:secret@127.0.0.1:${redisPort}` });
	redis.on('error', () => {});
	await redis.connect();
	await redis.hSet('ship', 'mast', 'oak');
	const cql = new cassandra.Client({
		contactPoints: ['127.0.0.1'],
		localDataCenter: 'datacenter1',
		protocolOptions: { port: cqlPort },
		credentials: { username: 'root', password: 'secret' },
	});
	await cql.connect();
	for (const statement of [
		"CREATE KEYSPACE harbour WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
		'CREATE TABLE harbour.berths (quay text, number int, ship text, PRIMARY KEY (quay, number)) WITH packed = false',
		"INSERT INTO harbour.berths (quay, number, ship) VALUES ('north', 1, 'Argo')",
		"INSERT INTO harbour.berths (quay, number, ship) VALUES ('north', 2, 'Pequod')",
	])
		await cql.execute(statement);
	await cql.shutdown();
	const context = await openBrowser(path.join(dir, 'profile'));
	const page = context.pages()[0] ?? (await context.newPage());
	page.setDefaultTimeout(BUSY_MS);
	const errors = [];
	page.on('pageerror', (error) => errors.push(error.message));
	page.on('console', (message) => message.type() === 'error' && !/status of 401/.test(message.text()) &&
		errors.push(message.text()));
	return { frond, redis, context, page, errors, dir };
}

const textOf = (page) => page.evaluate(() => document.body.innerText.replace(/\s+/g, ' '));
const shows = (page, text) => eventually(async () => (await textOf(page)).includes(text), BUSY_MS);

/* For whoever wants to look: $FROND_PICTURES names a directory for a picture of each view. */
const picture = ({ page, dir }, name) => page.screenshot({
	path: path.join(process.env.FROND_PICTURES ?? dir, `${name}.png`),
	fullPage: true,
});

const tests = {
	'nobody sees anything before logging in': async ({ frond, page, errors }) => {
		await page.goto(`${frond.url}/_frond`);
		await shows(page, 'What a server does is for its administrators.');
		assert.equal(new URL(page.url()).pathname, '/_frond/');
		assert.equal(await page.locator('main table').count(), 0);
		await page.fill('#name', 'anna');
		await page.fill('#password', 'apple');
		await page.click('#login button');
		// An ordinary user is logged in, and is shown no more.
		await shows(page, 'anna Log out');
		assert.equal(await page.locator('main table').count(), 0);
		await page.fill('#name', 'root');
		await page.fill('#password', 'wrong');
		await page.click('#login button');
		await shows(page, 'Name or password is wrong.');
		assert.deepEqual(errors, []);
	},

	'an administrator sees what the server does': async (state) => {
		const { page, redis, errors } = state;
		await page.fill('#name', 'root');
		await page.fill('#password', 'secret');
		await page.click('#login button');
		await shows(page, 'commands of Redis');
		await redis.hGet('ship', 'mast');
		await eventually(async () => (await page.locator('main svg').count()) > 1, BUSY_MS);
		await shows(page, 'redis hash');
		assert.match(await textOf(page), /\d+\.\d+\.\d+ version ok state/);
		await picture(state, 'overview');
		assert.deepEqual(errors, []);
	},

	'what waits at another door is shown, and ended': async (state) => {
		const { page, redis, errors } = state;
		const waiting = redis.duplicate({ socket: { reconnectStrategy: false } });
		waiting.on('error', () => {});
		await waiting.connect();
		const ended = assert.rejects(waiting.blPop('queue', 0));
		await page.click('nav a[href="#running"]');
		await shows(page, 'redis blpop root');
		await picture(state, 'running');
		await page.locator('tr', { hasText: 'blpop' }).getByText('End').click();
		await ended;
		await eventually(async () => !(await textOf(page)).includes('blpop'), BUSY_MS);
		assert.deepEqual(errors, []);
	},

	'what was slow is shown': async (state) => {
		await state.page.click('nav a[href="#slow"]');
		await shows(state.page, 'http');
		await picture(state, 'slow');
		assert.deepEqual(state.errors, []);
	},

	'databases of every kind lead to their leaves': async (state) => {
		const { page, errors } = state;
		await page.click('nav a[href="#databases"]');
		await shows(page, 'redis:0');
		await picture(state, 'databases');
		await page.getByText('redis:0').click();
		await shows(page, "'mast'");
		const cells = await page.locator('tr', { hasText: "'mast'" }).first().locator('td').allInnerTexts();
		assert.match(cells[2], /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
		assert.match(cells[3], /oak/);
		await picture(state, 'redis');
		assert.deepEqual(errors, []);
	},

	'a row is found by its key as it is drawn': async (state) => {
		const { page, errors, frond } = state;
		await page.goto(`${frond.url}/_frond/#leaves?db=table:harbour.berths`);
		await shows(page, 'Argo');
		const key = (await textOf(page)).match(/\(0x[0-9a-f]{4}, 'north', 2\)/)[0];
		await page.fill('[name=id]', key);
		await page.click('main form button');
		await eventually(async () => !(await textOf(page)).includes('Argo'), BUSY_MS);
		const row = page.locator('tr', { hasText: 'ship_column_id' });
		const cells = await row.locator('td').allInnerTexts();
		assert.ok(cells[1].startsWith(`${key}, ship_column_id`), cells[1]);
		assert.match(cells[2], /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
		assert.match(cells[3], /Pequod/);
		await picture(state, 'row');
		assert.deepEqual(errors, []);
	},

	'a document is shown as its leaves, and its texts do nothing': async (state) => {
		const { page, errors } = state;
		await page.fill('[name=db]', 'ship');
		await page.fill('[name=id]', 'captain');
		await page.click('main form button');
		await shows(page, 'onerror');
		assert.match(await textOf(page), /As frond inspect prints them/);
		assert.equal(await page.title(), 'frond');
		assert.equal(await page.locator('main img').count(), 0);
		await picture(state, 'document');
		await page.fill('[name=id]', 'nobody');
		await page.click('main form button');
		await shows(page, '404');
		assert.deepEqual(errors.filter((text) => !/status of 404/.test(text)), []);
		errors.length = 0;
	},

	'long lists are shown page by page': async (state) => {
		const { page, errors, frond } = state;
		await page.goto(`${frond.url}/_frond/#leaves?db=ship`);
		const seen = new Set();
		for (let pages = 1; ; pages++) {
			await eventually(async () => (await page.locator('pre').count()) === 1, BUSY_MS);
			for (const line of (await page.locator('pre').innerText()).split('\n')) {
				if (!line.startsWith('  ')) continue;
				assert.ok(!seen.has(line), line);
				seen.add(line);
			}
			const more = page.getByText('More', { exact: true });
			if (!(await more.count())) {
				assert.ok(pages > 3, `${pages} pages`);
				break;
			}
			const before = await page.locator('pre').innerText();
			await more.click();
			await eventually(async () => (await page.locator('pre').innerText()) !== before, BUSY_MS);
		}
		for (let i = 0; i < 150; i++)
			assert.ok([...seen].some((line) => line.includes(`"sailor-${i}"`)), `sailor-${i}`);
		assert.deepEqual(errors, []);
	},

	'people are shown, and the session ends': async (state) => {
		const { page, errors } = state;
		await page.click('nav a[href="#people"]');
		await shows(page, 'anna crew');
		await shows(page, 'root administrator of the configuration');
		await picture(state, 'people');
		await page.click('#who button');
		await shows(page, 'What a server does is for its administrators.');
		assert.deepEqual(errors, []);
	},
};

async function teardown({ frond, redis, context }) {
	await redis.quit().catch(() => {});
	await context.close();
	await frond.stop();
}

export default { name: 'operator', ownsServer: true, skip: withoutBrowser, setup, tests, teardown };
