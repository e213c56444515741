// Mends Fauxton 1.2.6 for people who are no administrators: `node scripts/mend-fauxton.js DIR`.
//
// Fauxton takes whoever logs in for an administrator. Where the server refuses its requests, as CouchDB
// does, too, the list of databases loads for ever, and the page for one's password stays blank. Each change
// replaces a text that must be there once: with another version of Fauxton this ends with an error.
'use strict';

const fs = require('fs');
const path = require('path');

const changes = [
	// The list of databases is empty, and the reason is shown. "Database name" still leads to any.
	['r&&this.setLimit(r),Ot().then((function(e){var o=St(e,n,r);',
		'r&&this.setLimit(r),Ot().catch((function(e){return ie.addNotification({msg:e.message,'
		+ 'type:"error",clear:!0}),[]})).then((function(e){var o=St(e,n,r);'],
	['E(r).then((function(e){var n=e.map(',
		'E(r).then((function(e){var n=(Array.isArray(e)?e:[]).map('],
	['E(t).then((function(t){e({type:FT,options:{databases:t}})}))',
		'E(t).then((function(t){e({type:FT,options:{databases:Array.isArray(t)?t:[]}})}))'],
	// The list of nodes is for administrators, whose passwords are settings of a node.
	['checkNodesForPasswordChange:function(){OE.navigateToNodeBasedOnNodeCount("/changePassword/")}',
		'checkNodesForPasswordChange:function(){ie.session.user().isAdmin?'
		+ 'OE.navigateToNodeBasedOnNodeCount("/changePassword/"):ie.navigate("/changePassword/_local")}'],
	['changePassword:function(){return OE.fetchNodes(),',
		'changePassword:function(){return ie.session.user().isAdmin&&OE.fetchNodes(),'],
	// Everybody else's is in their document of _users. A new password ends the session: log in again.
	['lw={createAdmin:function(e){',
		'lw={changeOwnPassword:function(e,t){var n=R.getServerUrl("/_users/org.couchdb.user:"+'
		+ 'encodeURIComponent(e)),r=function(e){if(e.error)throw new Error(e.reason||e.error);return e};'
		+ 'return E(n).then(r).then((function(e){return e.password=t,S(n,e)})).then(r).then((function(){'
		+ 'return lw.login({name:e,password:t})}))},createAdmin:function(e){'],
	['lw.createAdmin({name:e,password:t,node:r[0].node}).then((function(){ie.addNotification(',
		'(ie.session.user().isAdmin?lw.createAdmin({name:e,password:t,node:r[0].node}):'
		+ 'lw.changeOwnPassword(e,t)).then((function(){ie.addNotification('],
];

const directory = path.join(process.argv[2], 'dashboard.assets', 'js');
const name = fs.readdirSync(directory).find((file) => /^bundle\..*\.js$/.test(file));
const file = path.join(directory, name);
let text = fs.readFileSync(file, 'utf8');

for (const [before, after] of changes) {
	const count = text.split(before).length - 1;

	if (count !== 1) {
		console.error(`${file}: ${count} times, and not once: ${before}`);
		process.exit(1);
	}
	text = text.replace(before, () => after);
}
fs.writeFileSync(file, '/* Changed by scripts/mend-fauxton.js of frond, for who is no administrator. */\n' + text);
