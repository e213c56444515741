/*
 * An application as PouchDB's users write them: what is to be done is kept in the browser, and synced
 * with the database that the server has made for whoever is logged in. The page comes from elsewhere
 * than the server, whose address is in `?server=`, so that all of this is CORS with a cookie.
 */
/* global PouchDB */
const SERVER = new URL(location.href).searchParams.get('server');
const WAIT_MS = 50;

const $ = (id) => document.getElementById(id);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const hex = (name) =>
	[...new TextEncoder().encode(name)].map((byte) => byte.toString(16).padStart(2, '0')).join('');

let local, sync, feed;

async function ask(method, path, body) {
	const answer = await fetch(SERVER + path, {
		method,
		credentials: 'include',
		headers: body && { 'Content-Type': 'application/json' },
		body: body && JSON.stringify(body),
	});
	const json = await answer.json();
	if (!answer.ok) throw new Error(`${answer.status} ${json.error}: ${json.reason}`);
	return json;
}

async function show() {
	const { rows } = await local.allDocs({ include_docs: true });
	$('list').replaceChildren(
		...rows.map(({ doc }) => {
			const item = document.createElement('li');
			item.textContent = doc.text;
			return item;
		}),
	);
}

/* The server makes the database of a new user a moment after the user. */
async function own(name) {
	const remote = new PouchDB(`${SERVER}/userdb-${hex(name)}`, { skip_setup: true });
	while ((await remote.info()).error) await sleep(WAIT_MS);
	return remote;
}

async function begin(name) {
	local = new PouchDB(`to-do-${hex(name)}`);
	feed = local.changes({ live: true, since: 'now' }).on('change', show);
	await show();
	$('who').textContent = name;
	$('sync').textContent = 'waiting';
	sync = local
		.sync(await own(name), { live: true, retry: true })
		.on('active', () => ($('sync').textContent = 'active'))
		.on('paused', (err) => ($('sync').textContent = err ? 'offline' : 'in step'))
		.on('denied', (err) => ($('error').textContent = err.message))
		.on('error', (err) => {
			$('sync').textContent = 'ended';
			$('error').textContent = err.message;
		});
}

async function end() {
	feed?.cancel();
	sync?.cancel();
	await local?.close();
	local = sync = feed = undefined;
	$('list').replaceChildren();
	$('who').textContent = $('sync').textContent = '';
}

async function logIn() {
	const name = $('name').value;
	await ask('POST', '/_session', { name, password: $('password').value });
	await begin(name);
}

const actions = {
	'sign-up': async () => {
		const name = $('name').value;
		await ask('PUT', `/_users/org.couchdb.user:${encodeURIComponent(name)}`, {
			type: 'user',
			name,
			password: $('password').value,
			roles: [],
		});
		await logIn();
	},
	'log-in': logIn,
	'log-out': async () => {
		await ask('DELETE', '/_session');
		await end();
	},
	add: async () => {
		await local.put({ _id: new Date().toISOString() + Math.random(), text: $('text').value });
		$('text').value = '';
	},
};

for (const [id, action] of Object.entries(actions))
	$(id).addEventListener('click', async () => {
		$('error').textContent = '';
		try {
			await action();
		} catch (err) {
			$('error').textContent = err.message;
		}
	});

/* Who has logged in before stays so, as long as the cookie lasts. */
ask('GET', '/_session')
	.then(({ userCtx }) => userCtx.name && begin(userCtx.name))
	.catch((err) => ($('error').textContent = err.message))
	.finally(() => (document.body.dataset.ready = 'yes'));
