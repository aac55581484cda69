// Takes etcd3 of npm through what test/clients asks of each client.
const fs = require('fs');
const { Etcd3 } = require('etcd3');

const connect = password => new Etcd3({
  hosts: 'https://' + process.env.ENDPOINT,
  credentials: { rootCertificate: fs.readFileSync(process.env.CA) },
  auth: { username: 'app', password },
});

function check(condition, what) {
  if (!condition) throw new Error(what);
}

async function main() {
  const client = connect('apw');
  await client.put('app/node').value('1');
  check(await client.get('app/node').string() === '1', 'put');
  console.log('ok put');

  for (const want of [true, false]) {
    const done = await client.if('app/node', 'Value', '==', '1').then(client.put('app/node').value('2')).commit();
    check(done.succeeded === want, 'txn');
  }
  console.log('ok txn');

  const watcher = await client.watch().key('app/node').create();
  const event = new Promise(resolve => watcher.on('put', resolve));
  await client.put('app/node').value('3');
  check((await event).value.toString() === '3', 'watch');
  await watcher.cancel();
  console.log('ok watch');

  const lease = client.lease(30);
  await lease.put('app/leased').value('1');
  await lease.keepaliveOnce();
  await lease.revoke();
  check(await client.get('app/leased').string() === null, 'lease: key after the end');
  console.log('ok lease');

  let held = false;
  await client.lock('app/lock').ttl(10).do(async () => { held = true; });
  check(held, 'lock');
  console.log('ok lock');

  let refused = '';
  await client.put('other').value('1').catch(error => { refused = error.message; });
  check(refused.includes('permission denied'), 'auth: a key that is not permitted: ' + refused);
  refused = '';
  const wrong = connect('wrong');
  await wrong.get('app/node').catch(error => { refused = error.message; });
  check(refused.includes('authentication failed'), 'auth: a wrong password: ' + refused);
  wrong.close();
  console.log('ok auth');
  console.log('ok tls');
  client.close();
}

main().then(() => process.exit(0), error => {
  console.error('failed:', error.message);
  process.exit(1);
});
