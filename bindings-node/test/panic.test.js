'use strict'

const assert = require('node:assert/strict')
const { spawnSync } = require('node:child_process')
const { mkdtempSync, readdirSync, rmSync } = require('node:fs')
const { tmpdir } = require('node:os')
const { join } = require('node:path')
const { test } = require('node:test')

// The shipped library has no function that panics, so one that has is built beside it.
test('a panic becomes an error, and the process lives', () => {
  const folder = mkdtempSync(join(tmpdir(), 'randflake-panic-'))
  try {
    const build = spawnSync(
      join(__dirname, '..', 'node_modules', '.bin', 'napi'),
      [
        ...['build', '--platform', '--no-js', '--output-dir', folder, '--features', 'panic-test'],
        ...['--', '--locked'],
      ],
      {
        cwd: join(__dirname, '..'),
        // Where the README's debug build is made, too.
        env: { ...process.env, CARGO_TARGET_DIR: join(__dirname, '../../target/clone') },
        encoding: 'utf8',
      },
    )
    assert.equal(build.status, 0, build.stderr)
    const binary = join(
      folder,
      readdirSync(folder).find((name) => name.endsWith('.node')),
    )
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
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('the shipped library has no function that panics', () => {
  const callBuffer = new BigInt64Array(new SharedArrayBuffer(40))
  const binding = require('../binding.js')
  assert.equal(binding.panic, undefined)
  assert.equal(binding.load(Error, callBuffer).panic, undefined)
})
