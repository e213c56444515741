/*
 * An application in a real browser (app/): people sign up by themselves, log in, and each syncs a
 * database of their own, which [couch_peruser] makes, by TLS and from a page of another origin.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import https from 'node:https';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { makeCertificate, openBrowser, withoutBrowser } from '../lib/browser.mjs';
import { freePort, startFrond } from '../lib/frond.mjs';
import { expectStatus } from '../lib/http.mjs';
import { eventually } from '../lib/util.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const FILES = {
	'/': ['text/html', '../app/index.html'],
	'/app.js': ['text/javascript', '../app/app.js'],
	'/pouchdb.min.js': ['text/javascript', '../node_modules/pouchdb/dist/pouchdb.min.js'],
};
const BUSY_MS = 240000; // a browser on a busy machine
const ADMIN = { headers: { Authorization: `Basic ${btoa('root:secret')}` } };

/* The application's own server, which has nothing to do with the database. */
function servePages({ cert, key }) {
	const server = https.createServer(
		{ cert: fs.readFileSync(cert), key: fs.readFileSync(key) },
		(req, res) => {
			const file = FILES[new URL(req.url, 'https://localhost').pathname];
			if (!file) return res.writeHead(404).end();
			res.writeHead(200, { 'Content-Type': `${file[0]}; charset=utf-8` });
			return res.end(fs.readFileSync(path.join(here, file[1])));
		},
	);
	return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}

async function setup(ctx) {
	const dir = fs.mkdtempSync(path.join(ctx.tmp, 'browser-'));
	const certificate = makeCertificate(dir);
	const pages = await servePages(certificate);
	const origin = `https://localhost:${pages.address().port}`;
	const port = await freePort();
	const ini = path.join(dir, 'frond.ini');
	fs.writeFileSync(
		ini,
		`[ssl]\ncert_file = ${certificate.cert}\nkey_file = ${certificate.key}\n` +
			'[chttpd]\nenable_cors = true\n' +
			`[cors]\norigins = ${origin}\ncredentials = true\n` +
			'[couchdb]\nusers_db_security_editable = true\n[couch_peruser]\nenable = true\n',
	);
	const frond = await startFrond(ctx, 'browser', [
		...['--config', ini, '--https', `127.0.0.1:${port}`, '--admin', 'root:secret'],
	]);
	await expectStatus(201, 'PUT', `${frond.url}/_users`, undefined, ADMIN);
	await expectStatus(200, 'PUT', `${frond.url}/_users/_security`, {}, ADMIN);
	const server = `https://localhost:${port}`;
	return { frond, pages, certificate, dir, server, page: `${origin}/?server=${server}` };
}

async function teardown({ frond, pages }) {
	pages.closeAllConnections();
	pages.close();
	await frond.stop();
}

const nameOf = (user) => `userdb-${Buffer.from(user).toString('hex')}`;

/* A browser that has nothing yet, with the application in it; gone after the test. */
const withApp = (name, test) => async (state) => {
	const browser = await openBrowser(path.join(state.dir, name), state.certificate);
	const said = [];
	try {
		const page = await open(browser, state, said);
		await test(page, { ...state, browser, reopen: () => open(browser, state, said) });
	} catch (err) {
		err.message += `\nthe browser said: ${said.join('\n')}`;
		throw err;
	} finally {
		await browser.close();
	}
};

async function open(browser, state, said) {
	const page = await browser.newPage();
	page.on('console', (message) => said.push(message.text()));
	page.on('pageerror', (err) => said.push(err.message));
	await page.goto(state.page);
	await page.waitForSelector('body[data-ready]');
	return page;
}

async function enter(page, button, name, password) {
	await page.fill('#name', name);
	await page.fill('#password', password);
	await page.click(`#${button}`);
}

const text = (page, id) => page.textContent(`#${id}`);
const shows = (page, id, what) =>
	eventually(async () => (await text(page, id)) === what, BUSY_MS).catch(async (err) => {
		err.message += `: #${id} is “${await text(page, id)}”, error “${await text(page, 'error')}”`;
		throw err;
	});

async function add(page, what) {
	await page.fill('#text', what);
	await page.click('#add');
}

/* What an administrator sees in somebody's database. */
async function there({ frond }, user) {
	const { rows } = await expectStatus(
		200,
		'GET',
		`${frond.url}/${nameOf(user)}/_all_docs?include_docs=true`,
		undefined,
		ADMIN,
	);
	return rows.map(({ doc }) => doc.text);
}

/* A request that the page itself makes, with its cookie: → status. */
const statusOf = (page, url) =>
	page.evaluate(async (to) => (await fetch(to, { credentials: 'include' })).status, url);

const tests = {
	'somebody signs up, and what is written is synced both ways over TLS': withApp(
		'sync',
		async (page, state) => {
			await enter(page, 'sign-up', 'jan', 'a password');
			await shows(page, 'sync', 'in step');
			await add(page, 'buy milk');
			await eventually(
				async () => (await there(state, 'jan')).includes('buy milk'),
				BUSY_MS,
			);
			await expectStatus(
				201,
				'PUT',
				`${state.frond.url}/${nameOf('jan')}/zzz`,
				{ text: 'from elsewhere' },
				ADMIN,
			);
			await shows(page, 'list', 'buy milkfrom elsewhere');
			assert.equal(await text(page, 'error'), '');
		},
	),

	'the cookie is for TLS and no script, and lasts over a new page': withApp(
		'cookie',
		async (page, state) => {
			await enter(page, 'sign-up', 'Kaša', 'päßwörd');
			await shows(page, 'sync', 'in step');
			const [cookie] = await state.browser.cookies(state.server);
			assert.equal(cookie.name, 'AuthSession');
			assert.ok(cookie.secure && cookie.httpOnly, JSON.stringify(cookie));
			assert.equal(await page.evaluate(() => document.cookie), '');
			await add(page, 'stay');
			await shows(page, 'list', 'stay');
			await page.close();
			const again = await state.reopen();
			await shows(again, 'who', 'Kaša');
			await shows(again, 'sync', 'in step');
			await shows(again, 'list', 'stay');
		},
	),

	'two people share nothing, and one without a login sees nothing': withApp(
		'apart',
		async (page, state) => {
			const own = `${state.server}/${nameOf('eva')}`;
			await enter(page, 'sign-up', 'eva', 'one');
			await shows(page, 'sync', 'in step');
			await add(page, 'a secret');
			await eventually(async () => (await there(state, 'eva')).length === 1, BUSY_MS);
			assert.equal(await statusOf(page, own), 200);
			await page.click('#log-out');
			await shows(page, 'who', '');
			assert.equal(await statusOf(page, own), 401);

			await enter(page, 'log-in', 'eva', 'two');
			await eventually(async () => (await text(page, 'error')).startsWith('401'));
			await enter(page, 'sign-up', 'eva', 'two'); // the name is taken
			await eventually(async () => /^40[139]/.test(await text(page, 'error')));
			await enter(page, 'sign-up', 'adam', 'two');
			await shows(page, 'sync', 'in step');
			assert.equal(await text(page, 'list'), '');
			assert.equal(await statusOf(page, own), 403);
			assert.equal(await statusOf(page, `${own}/_changes`), 403);
			await page.click('#log-out');
			await shows(page, 'who', '');
			await enter(page, 'log-in', 'eva', 'one');
			await shows(page, 'list', 'a secret');
		},
	),

	'the sync of somebody who is removed ends, and what is here remains': withApp(
		'removed',
		async (page, state) => {
			await enter(page, 'sign-up', 'ute', 'three');
			await shows(page, 'sync', 'in step');
			const doc = `${state.frond.url}/_users/org.couchdb.user:ute`;
			const { _rev } = await expectStatus(200, 'GET', doc, undefined, ADMIN);
			await expectStatus(200, 'DELETE', `${doc}?rev=${_rev}`, undefined, ADMIN);
			await eventually(
				async () => /^(ended|offline)$/.test(await text(page, 'sync')),
				BUSY_MS,
			);
			await add(page, 'unseen');
			assert.equal(await statusOf(page, `${state.server}/${nameOf('ute')}`), 401);
			await shows(page, 'list', 'unseen');
			assert.deepEqual(await there(state, 'ute'), []);
		},
	),
};

export default { name: 'browser', ownsServer: true, skip: withoutBrowser, setup, tests, teardown };
