/* frond with MongoDB's door, for its drivers. */
import { freePort, startFrond } from './frond.mjs';

/* → { frond, uri } */
export async function startMongo(ctx, name) {
	const port = await freePort();
	const options = ['--mongo', `127.0.0.1:${port}`, '--mongo-test-commands'];
	const frond = await startFrond(ctx, name, options);
	return { frond, uri: `mongodb://127.0.0.1:${port}/` };
}
