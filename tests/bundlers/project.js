// Projects in which randflake is installed as npm does it, and the tools that work on them.

const assert = require('node:assert/strict')
const { spawnSync } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')
const { after } = require('node:test')

const BINDING = path.resolve(__dirname, '../../bindings-node')
const BIN = path.join(__dirname, 'node_modules/.bin')
// Below the tools, so that what is built there finds them. Another run has another one.
fs.mkdirSync(path.join(__dirname, 'build'), { recursive: true })
const BUILD = fs.mkdtempSync(path.join(__dirname, 'build/'))
after(() => fs.rmSync(BUILD, { recursive: true, maxRetries: 20 }))

/** Makes an empty project, in which randflake is installed as npm does it. */
function project(name, files) {
  const folder = path.join(BUILD, name)
  const installed = path.join(folder, 'node_modules/randflake')
  fs.mkdirSync(installed, { recursive: true })
  const natives = fs.readdirSync(BINDING).filter((file) => file.endsWith('.node'))
  assert.ok(natives.length > 0, 'make node-for-tests builds it')
  const { files: published } = require(`${BINDING}/package.json`)
  const named = published.filter((file) => !file.includes('*'))
  for (const file of ['package.json', ...named, ...natives]) {
    fs.cpSync(path.join(BINDING, file), path.join(installed, file), { recursive: true })
  }
  const given = { 'package.json': '{"dependencies":{"randflake":"*"}}', ...files }
  for (const [file, text] of Object.entries(given)) {
    fs.mkdirSync(path.dirname(path.join(folder, file)), { recursive: true })
    fs.writeFileSync(path.join(folder, file), text)
  }
  return folder
}

/** Without what a service would have in its environment. */
function environment(variables = {}) {
  const env = { ...process.env, NEXT_TELEMETRY_DISABLED: '1', DO_NOT_TRACK: '1', NO_COLOR: '1' }
  delete env.RANDFLAKE_STORE
  delete env.RANDFLAKE_SECRET
  return { ...env, DENO_NO_UPDATE_CHECK: '1', DENO_NO_PROMPT: '1', ...variables }
}

/** Runs a line in a folder, by the tools that are installed here. */
function run(folder, line, variables) {
  const [tool, ...rest] = line.split(' ')
  const program = tool === 'node' ? process.execPath : path.join(BIN, tool)
  const options = { cwd: folder, env: environment(variables), encoding: 'utf8', timeout: 900_000 }
  return spawnSync(program, rest, options)
}

module.exports = { BIN, BINDING, environment, project, run }
