'use strict'

// Ids of Boundary's flake: the vectors, the forms, and what is refused.

const assert = require('node:assert/strict')
const { readFileSync } = require('node:fs')
const { join } = require('node:path')
const { suite, test } = require('node:test')
const { BoundaryFlake, RandflakeError } = require('..')

const file = join(__dirname, '../../tests/vectors/boundary.json')
const { cases, invalid } = JSON.parse(readFileSync(file, 'utf8'))

suite('boundary.json', () => {
  for (const expected of cases) {
    test(expected.name, () => {
      const bytes = Buffer.from(expected.bytes, 'hex')
      for (const form of [expected.text, bytes, new Uint8Array(bytes)]) {
        const flake = new BoundaryFlake(form)
        const { unixMs, worker, sequence, date } = flake
        assert.equal(unixMs, BigInt(expected.unix_ms))
        assert.deepEqual(worker, Uint8Array.from(Buffer.from(expected.worker, 'hex')))
        assert.equal(sequence, expected.sequence)
        assert.equal(String(date), String(new Date(Number(unixMs))))
        assert.deepEqual(flake.toBytes(), Uint8Array.from(bytes))
        assert.equal(`${flake}`, expected.text)
        assert.equal(JSON.stringify([flake]), JSON.stringify([expected.text]))
      }
    })
  }

  for (const { name, text } of invalid) {
    test(`refuses ${name}`, () => {
      assert.throws(() => new BoundaryFlake(text), { code: 'INVALID_ID' })
    })
  }
})

suite('Boundary flake', () => {
  test('knows dates as far as these go', () => {
    const of = (unixMs) => {
      const bytes = Buffer.alloc(16)
      bytes.writeBigUInt64BE(unixMs)
      return new BoundaryFlake(bytes)
    }
    assert.equal(of(8640000000000000n).date.getTime(), 8640000000000000)
    assert(Number.isNaN(of(8640000000000001n).date.getTime()))
    assert.equal(of(2n ** 64n - 1n).unixMs, 2n ** 64n - 1n)
  })

  test('refuses what is neither text nor 16 bytes', () => {
    const others = [undefined, null, 5, 5n, {}, [], new Uint8Array(15), new Uint8Array(17)]
    for (const other of [...others, new Uint16Array(8), new ArrayBuffer(16), '\ud800']) {
      assert.throws(
        () => new BoundaryFlake(other),
        (error) => error instanceof RandflakeError && error.code === 'INVALID_ID',
      )
    }
    assert.throws(() => new BoundaryFlake(new Uint8Array(15)), /16 bytes, got 15 bytes/)
  })

  test('is frozen, and hands out bytes of its own', () => {
    const flake = new BoundaryFlake('8HFaR8qWtRlGDHnO57')
    assert.throws(() => {
      flake.sequence = 6
    }, TypeError)
    flake.toBytes().fill(0)
    assert.equal(flake.toBytes()[15], 5)
  })

  test('is a class, with methods of its own objects', () => {
    assert.throws(() => BoundaryFlake('0'), { code: 'INVALID_ARGUMENT' })
    const { toBytes } = BoundaryFlake.prototype
    for (const self of [undefined, {}, 5]) {
      assert.throws(() => toBytes.call(self), { code: 'INVALID_ARGUMENT' })
    }
  })
})
