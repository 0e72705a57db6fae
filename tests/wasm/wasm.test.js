// Compiles the core for WebAssembly with nothing below it, and runs it in Node.js.

const assert = require('node:assert/strict')
const { spawnSync } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')
const { test } = require('node:test')

const ROOT = path.resolve(__dirname, '../..')
const TARGET = 'wasm32-unknown-unknown'
// A folder of its own, so that nothing else that cargo builds waits for it.
const FOLDER = path.join(ROOT, 'target/wasm')

const added = spawnSync('rustup', ['target', 'add', TARGET], { cwd: ROOT })
const skip = added.status === 0 ? false : `rustup cannot add ${TARGET}`
if (skip) console.error(`SKIPPED: ${skip}`)
assert.ok(!(skip && process.env.CI), skip)

function compiled() {
  const build = ['build', '--locked', '--quiet', '-p', 'randflake-wasm-tests', '--target', TARGET]
  const cargo = spawnSync('cargo', [...build, '--target-dir', FOLDER], { cwd: ROOT })
  assert.equal(cargo.status, 0, String(cargo.stderr))
  const file = path.join(FOLDER, TARGET, 'debug/randflake_wasm_tests.wasm')
  return new WebAssembly.Module(fs.readFileSync(file))
}

const CLAIMS = [
  'making_a_generator_without_a_clock_is_an_error',
  'the_clock_of_the_machine_is_an_error',
  'a_generator_with_a_clock_of_its_own_works',
  'a_full_tick_is_an_error_with_the_time_to_wait',
  'ids_are_read_without_a_clock',
]

test('the core on a platform without a clock', { skip }, async (t) => {
  const module = compiled()
  // No clock, no random numbers: nothing at all comes from outside.
  assert.deepEqual(WebAssembly.Module.imports(module), [])
  const exported = WebAssembly.Module.exports(module).map(({ name }) => name)
  const others = /^(memory|message|message_length|keep_messages|__.*)$/
  assert.deepEqual(exported.filter((name) => !others.test(name)).sort(), CLAIMS.toSorted())

  for (const claim of CLAIMS) {
    await t.test(claim.replaceAll('_', ' '), () => {
      const { memory, ...functions } = new WebAssembly.Instance(module).exports
      functions.keep_messages()
      try {
        functions[claim]()
      } catch (trap) {
        const bytes = new Uint8Array(memory.buffer)
        const start = functions.message()
        const message = bytes.subarray(start, start + functions.message_length())
        assert.fail(`${trap}: ${new TextDecoder().decode(message)}`)
      }
    })
  }
})
