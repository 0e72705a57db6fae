// The WebAssembly of the inspector, without a page: what it shows is what the vectors say.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { idsOf, inspectorOf, partsOf, randomSecret } from '../components/inspector.js'

const ROOT = new URL('../../', import.meta.url)
const FILE = readFileSync(new URL('target/site-parts/inspector.wasm', ROOT))
const vectors = (name) => JSON.parse(readFileSync(new URL(`tests/vectors/${name}`, ROOT)))

const MODULE = new WebAssembly.Module(FILE)
const NOW = String(Date.UTC(2026, 10, 21))
const refuses = (call, code) => assert.throws(call, (error) => error.code === code)

test('it asks for nothing, and is small', () => {
  assert.deepEqual(WebAssembly.Module.imports(MODULE), [])
  assert.ok(FILE.length < 150_000, `${FILE.length} bytes`)
})

test('encrypted ids', () => {
  const call = inspectorOf(MODULE)
  const { cases } = vectors('ids.json')
  assert.ok(cases.length > 100)
  for (const { name, secret, timestamp, node_id, sequence, raw, id, text } of cases) {
    for (const [form, written] of [
      ['number', id],
      ['text', text],
    ]) {
      const parts = partsOf(call('inspect', secret, form, written, NOW))
      const { fields, utc, plausible, ...rest } = parts
      assert.deepEqual(
        rest,
        {
          number: id,
          text,
          raw,
          unix_ms: `${timestamp}000`,
          tick_ms: '1000',
          node: String(node_id),
          sequence: String(sequence),
        },
        name,
      )
      assert.equal(Date.parse(utc), timestamp * 1000, name)
      assert.equal(plausible, String(timestamp * 1000 - Number(NOW) <= 3_600_000), name)
      const values = fields.map((field) => [field.name, field.bits.length, Number(field.value)])
      const seconds = timestamp - 1_730_000_000
      const expected = [
        ['time', 30, seconds],
        ['node', 17, node_id],
        ['sequence', 17, sequence],
      ]
      assert.deepEqual(values, expected, name)
      assert.equal(BigInt(`0b${fields.map((field) => field.bits).join('')}`), BigInt(raw), name)
    }
  }
})

test('ids of every layout with a name', () => {
  const call = inspectorOf(MODULE)
  const { layouts, cases } = vectors('layouts.json')
  const names = call('layouts').map(([, name]) => name)
  const of = cases.filter(({ layout }) => names.includes(layout))
  // Baidu's, which has ended, has no cases of its own.
  assert.equal(new Set(of.map(({ layout }) => layout)).size, names.length - 1)
  for (const { name, layout, id, unix_ms, node_id, sequence, node_parts } of of) {
    const parts = partsOf(call('read', layout, id, NOW))
    const { fields, node_split } = layouts[layout]
    const used = parts.fields.filter((field) => field.name !== 'unused')
    assert.deepEqual(
      used.map((field) => [field.name, field.bits.length]),
      fields,
      name,
    )
    assert.equal(parts.fields.map(({ bits }) => bits).join('').length, 64, name)
    assert.equal(parts.unix_ms, String(unix_ms), name)
    assert.equal(parts.sequence, String(sequence), name)
    assert.equal(parts.node, node_id === null ? undefined : String(node_id), name)
    assert.equal(parts.node_parts, node_split && node_parts.join(' '), name)
  }
})

test('what is no id, no secret or no layout', () => {
  const call = inspectorOf(MODULE)
  const secret = '0'.repeat(32)
  const { invalid } = vectors('text.json')
  for (const { text } of invalid.filter(({ text }) => !text.includes('\n'))) {
    refuses(() => call('inspect', secret, 'text', text, NOW), 'INVALID_ID')
  }
  for (const text of ['', '1.5', '9223372036854775808', 'null']) {
    refuses(() => call('inspect', secret, 'number', text, NOW), 'INVALID_ID')
  }
  // 12 is 12 as a number, and 34 as text.
  refuses(() => call('inspect', secret, 'auto', '12', NOW), 'INVALID_ID')
  assert.equal(partsOf(call('inspect', secret, 'text', '12', NOW)).number, '34')
  refuses(() => call('inspect', 'abc', 'auto', '3vgoe12ccb8gh', NOW), 'INVALID_SECRET')
  refuses(() => call('read', 'twitter', '9223372036854775808', NOW), 'INVALID_ID')
  refuses(() => call('read', 'discord', '18446744073709551616', NOW), 'INVALID_ID')
  assert.equal(partsOf(call('read', 'discord', '-1', NOW)).number, '18446744073709551615')
  refuses(() => call('read', 'none', '1', NOW), 'INVALID_ARGUMENT')
  refuses(() => call('none'), 'INVALID_ARGUMENT')
})

test('ids that are made', () => {
  const call = inspectorOf(MODULE)
  const secret = randomSecret()
  const make = (node, count, now = NOW, of = secret) => idsOf(call('make', of, node, count, now))
  // One generator for each secret and node id: to come back to one repeats nothing.
  const other = make('5', '3', NOW, randomSecret())
  const ids = [...make('7', '3'), ...make('8', '3'), ...make('7', '1000'), ...other]
  assert.equal(new Set(ids.map(({ number }) => number)).size, 1009)
  ids.slice(0, 1006).forEach(({ number, text }, index) => {
    const parts = partsOf(call('inspect', secret, 'text', text, NOW))
    assert.equal(parts.number, number)
    assert.equal(parts.unix_ms, NOW)
    assert.equal(parts.node, 2 < index && index < 6 ? '8' : '7')
    assert.equal(parts.sequence, String(index < 3 ? index : index - 3))
  })
  refuses(() => make('131072', '1'), 'INVALID_NODE')
  refuses(() => make('x', '1'), 'INVALID_ARGUMENT')
  refuses(() => make('7', '1001'), 'INVALID_ARGUMENT')
  refuses(() => make('7', '1', String(Number(NOW) - 60_000)), 'CLOCK_MOVED_BACK')
  refuses(() => make('9', '1', '0'), 'CLOCK_BEFORE_EPOCH')
  assert.match(secret, /^[0-9a-f]{32}$/)
})
