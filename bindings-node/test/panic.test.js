'use strict'

const assert = require('node:assert/strict')
const { spawnSync } = require('node:child_process')
const { existsSync, readdirSync } = require('node:fs')
const { join } = require('node:path')
const { test } = require('node:test')

// The shipped library has no function that panics, so one that does is built as well. It shares its
// place in cargo's build output with the shipped one, so `make node-for-tests` builds one after the
// other, and this test builds it only if that did not.
const FOLDER = join(__dirname, '../../target/panic')

function build() {
  const done = spawnSync(
    join(__dirname, '..', 'node_modules', '.bin', 'napi'),
    [
      ...['build', '--platform', '--no-js', '--output-dir', FOLDER, '--features', 'panic-test'],
      ...['--', '--locked'],
    ],
    { cwd: join(__dirname, '..'), encoding: 'utf8' },
  )
  assert.equal(done.status, 0, done.stderr)
}

test('a panic becomes an error, and the process lives', () => {
  const built = () => existsSync(FOLDER) && readdirSync(FOLDER).find((it) => it.endsWith('.node'))
  if (!built()) build()
  const binary = join(FOLDER, built())
  const script = `
    class RandflakeError extends Error {
      constructor(code, message) { super(message); this.code = code }
    }
    const callBuffer = new BigInt64Array(new SharedArrayBuffer(40))
    const binding = require(${JSON.stringify(binary)})
    const native = { ...binding, ...binding.load(RandflakeError, callBuffer) }
    for (let round = 0; round < 2; round++) {
      try { native.panic() } catch (error) {
        console.log(error instanceof RandflakeError, error.code, error.message)
      }
    }
    console.log(native.encodeString(-1n))`
  const done = spawnSync(process.execPath, ['--eval', script], { encoding: 'utf8' })
  const error = 'true INTERNAL a defect of randflake, please report it: as asked\n'
  assert.equal(done.stdout, `${error}${error}fvvvvvvvvvvvv\n`, done.stderr)
})

test('the shipped library has no function that panics', () => {
  const callBuffer = new BigInt64Array(new SharedArrayBuffer(40))
  const binding = require('../binding.js')
  assert.equal(binding.panic, undefined)
  assert.equal(binding.load(Error, callBuffer).panic, undefined)
})
