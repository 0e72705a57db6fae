'use strict'

const assert = require('node:assert/strict')
const { spawnSync } = require('node:child_process')
const { copyFileSync, mkdtempSync, rmSync } = require('node:fs')
const { tmpdir } = require('node:os')
const { join } = require('node:path')
const { test } = require('node:test')

// The shipped library has no function that panics, so one that has is built beside it.
test('a panic becomes an error, and the process lives', () => {
  // Where the README's debug build is made, too.
  const CARGO_TARGET_DIR = join(__dirname, '..', '..', 'target', 'clone')
  const build = spawnSync(
    'cargo',
    ['build', '--locked', '--features', 'panic-test', '--message-format', 'json'],
    {
      cwd: join(__dirname, '..'),
      env: { ...process.env, CARGO_TARGET_DIR },
      encoding: 'utf8',
      maxBuffer: 2 ** 26,
    },
  )
  assert.equal(build.status, 0, build.stderr)
  const artifact = build.stdout
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line))
    .findLast((message) => message.target?.name === 'randflake_node')
  const folder = mkdtempSync(join(tmpdir(), 'randflake-panic-'))
  try {
    const binary = join(folder, 'panic.node')
    copyFileSync(artifact.filenames[0], binary)
    const script = `
      class RandflakeError extends Error {
        constructor(code, message) { super(message); this.code = code }
      }
      const native = require(${JSON.stringify(binary)}).load(RandflakeError)
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
  assert.equal(require('../binding.js').load(Error).panic, undefined)
})
