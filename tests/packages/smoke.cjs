// Uses the packages that are installed in this folder, and their command. Needs nothing else, on any
// platform.
const assert = require('node:assert')
const { execFileSync } = require('node:child_process')
const { mkdtempSync, rmSync } = require('node:fs')
const { tmpdir } = require('node:os')
const { join } = require('node:path')
const { generateSecret, Inspector, Randflake } = require('randflake')

async function main(folder) {
  const secret = generateSecret()
  const flake = new Randflake(7, secret)
  assert.equal(new Inspector(secret).inspect(flake.generate()).nodeId, 7)
  assert.equal(new Inspector(secret).inspect(flake.generateString()).nodeId, 7)

  const store = join(folder, 'ids.db')
  const leased = await Randflake.leased(store, secret)
  assert.equal(new Set(await leased.generateManyAsync(1000)).size, 1000)
  await leased.close()

  const command = join(__dirname, 'node_modules', 'randflake', 'command.js')
  const env = { ...process.env, RANDFLAKE_SECRET: secret }
  const run = (...given) => execFileSync(process.execPath, [command, ...given], { env }).toString()
  const id = run('generate', '--store', store).trim()
  assert.equal(JSON.parse(run('inspect', '--json', id)).id, id)
  console.log('used')
}

const folder = mkdtempSync(join(tmpdir(), 'randflake-'))
main(folder).finally(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
