// What the page of the inspector does, without a page: what it shows is what the vectors say.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { Layout } from '../../bindings-node/web/index.mjs'
import { inspect, LAYOUTS, make, randomSecret, read } from '../components/inspector.js'

const ROOT = new URL('../../', import.meta.url)
const vectors = (name) => JSON.parse(readFileSync(new URL(`tests/vectors/${name}`, ROOT)))

const NOW = Date.UTC(2026, 10, 21)
const refuses = (call, code) => assert.throws(call, (error) => error.code === code)

test('encrypted ids', () => {
  const { cases } = vectors('ids.json')
  assert.ok(cases.length > 100)
  for (const { name, secret, timestamp, node_id, sequence, raw, id, text } of cases) {
    for (const [form, written] of [
      ['number', id],
      ['text', text],
    ]) {
      const { fields, utc, isPlausible, ...rest } = inspect(secret, form, written, NOW)
      const unixMs = timestamp * 1000
      const expected = { number: id, text, raw, unixMs, tickMs: 1000, node: node_id, sequence }
      assert.deepEqual(rest, expected, name)
      assert.equal(Date.parse(utc), unixMs, name)
      assert.equal(isPlausible, unixMs - NOW <= 3_600_000, name)
      const values = fields.map((field) => [field.name, field.bits.length, Number(field.value)])
      const seconds = timestamp - 1_730_000_000
      const drawn = [
        ['time', 30, seconds],
        ['node', 17, node_id],
        ['sequence', 17, sequence],
      ]
      assert.deepEqual(values, drawn, name)
      assert.equal(BigInt(`0b${fields.map((field) => field.bits).join('')}`), BigInt(raw), name)
    }
  }
})

test('ids of every layout with a name', () => {
  const { layouts, cases } = vectors('layouts.json')
  // The error about a name that is none lists those that there are.
  const listed = `there are ${LAYOUTS.join(', ')}, and others`
  assert.throws(
    () => new Layout('none'),
    ({ message }) => message.includes(listed),
  )
  const of = cases.filter(({ layout }) => LAYOUTS.includes(layout))
  // Baidu's, which has ended, has no cases of its own.
  assert.equal(new Set(of.map(({ layout }) => layout)).size, LAYOUTS.length - 1)
  for (const { name, layout, id, unix_ms, node_id, sequence, node_parts } of of) {
    const parts = read(layout, id, NOW)
    const { fields, node_split } = layouts[layout]
    const used = parts.fields.filter((field) => field.name !== 'unused')
    assert.deepEqual(
      used.map((field) => [field.name, field.bits.length]),
      fields,
      name,
    )
    assert.equal(parts.fields.map(({ bits }) => bits).join('').length, 64, name)
    assert.equal(parts.unixMs, unix_ms, name)
    assert.equal(parts.sequence, sequence, name)
    assert.equal(parts.node, node_id === null ? undefined : node_id, name)
    assert.deepEqual(parts.nodeParts, node_split ? node_parts : undefined, name)
  }
})

test('what is no id, no secret or no layout', () => {
  const secret = '0'.repeat(32)
  const { invalid } = vectors('text.json')
  for (const { text } of invalid) {
    refuses(() => inspect(secret, 'text', text, NOW), 'INVALID_ID')
  }
  for (const text of ['', '1.5', '9223372036854775808', 'null']) {
    refuses(() => inspect(secret, 'number', text, NOW), 'INVALID_ID')
  }
  // 12 is 12 as a number, and 34 as text.
  refuses(() => inspect(secret, 'auto', '12', NOW), 'INVALID_ID')
  assert.equal(inspect(secret, 'text', '12', NOW).number, '34')
  assert.equal(inspect(secret, 'auto', '-12', NOW).number, '-12')
  assert.equal(inspect(secret, 'auto', '7', NOW).number, '7')
  for (const text of ['9223372036854775808', '123456789012345678901', '-', '']) {
    refuses(() => inspect(secret, 'auto', text, NOW), 'INVALID_ID')
  }
  refuses(() => inspect('abc', 'auto', '3vgoe12ccb8gh', NOW), 'INVALID_SECRET')
  refuses(() => read('twitter', '9223372036854775808', NOW), 'INVALID_ID')
  refuses(() => read('discord', '18446744073709551616', NOW), 'INVALID_ID')
  refuses(() => read('discord', '', NOW), 'INVALID_ID')
  refuses(() => read('discord', 'x', NOW), 'INVALID_ID')
  assert.equal(read('discord', '-1', NOW).number, '18446744073709551615')
  refuses(() => read('none', '1', NOW), 'INVALID_ARGUMENT')
})

test('ids that are made', () => {
  const secret = randomSecret()
  const by = (node, count, now = NOW, of = secret) => make(of, node, count, now)
  // The ids of each node id go on: to come back to one repeats nothing.
  const other = by(5, 3, NOW, randomSecret())
  const ids = [...by(7, 3), ...by(8, 3), ...by(7, 1000), ...other]
  assert.equal(new Set(ids.map(({ number }) => number)).size, 1009)
  ids.slice(0, 1006).forEach(({ number, text }, index) => {
    const parts = inspect(secret, 'text', text, NOW)
    assert.equal(parts.number, number)
    assert.equal(parts.unixMs, NOW)
    assert.equal(parts.node, 2 < index && index < 6 ? 8 : 7)
    assert.equal(parts.sequence, index < 3 ? index : index - 3)
  })
  const [next] = by(7, 1, NOW + 1999)
  const { unixMs, sequence } = inspect(secret, 'text', next.text, NOW)
  assert.deepEqual([unixMs, sequence], [NOW + 1000, 0])
  refuses(() => by(131072, 1), 'INVALID_NODE')
  refuses(() => by(Number('x'), 1), 'INVALID_NODE')
  refuses(() => by(7, 1001), 'INVALID_ARGUMENT')
  refuses(() => by(7, 1, NOW - 60_000), 'CLOCK_MOVED_BACK')
  refuses(() => by(9, 1, 0), 'CLOCK_BEFORE_EPOCH')
  // No second has more than its sequences.
  for (let count = 0; count < 131_000; count += 1000) by(6, 1000)
  assert.equal(by(6, 72).length, 72)
  refuses(() => by(6, 1), 'SEQUENCE_EXHAUSTED')
  assert.match(secret, /^[0-9a-f]{32}$/)
})
