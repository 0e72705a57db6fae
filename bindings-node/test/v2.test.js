'use strict'

// What programs for the published 2.1 rely on.

const assert = require('node:assert/strict')
const { test } = require('node:test')
const randflake = require('../index.js')
const v2 = require('../v2.js')

const FIRST = v2.RANDFLAKE_EPOCH_OFFSET
const secret = Uint8Array.from({ length: 16 }, (_, at) => at * 37 + 11)
const throws = (work, Class) => {
  assert.throws(work, (error) => error.name === Class.name && error instanceof Class)
}

const shapes = {
  'randflake/v2': (clock, start = FIRST, endExclusive = FIRST + 100) =>
    new v2.Generator({ lease: { nodeID: 7, start, endExclusive }, secret, clock }),
  randflake: (clock, start = FIRST, endExclusive = FIRST + 100) => {
    const generator = new randflake.Generator(7, start, endExclusive - 1, secret)
    generator.timeSource = clock
    return generator
  },
}
const reader = new randflake.Inspector(secret)
const place = (id) => [reader.inspect(id).timestamp - FIRST, reader.inspect(id).sequence]

for (const [name, make] of Object.entries(shapes)) {
  test(`${name}: a second counts from zero, and a step back is refused`, () => {
    let now = FIRST + 10
    const generator = make(() => now)
    const ids = [generator.generate(), generator.generate()]
    now += 1
    ids.push(generator.generate())
    now -= 1
    throws(() => generator.generate(), v2.ErrConsistencyViolation)
    now += 1
    ids.push(randflake.decodeString(generator.generateString()))
    assert.deepEqual(ids.map(place), [
      [10, 0],
      [10, 1],
      [11, 0],
      [11, 1],
    ])
  })

  test(`${name}: a full second is refused at once, and the next one is whole`, () => {
    let now = FIRST
    const generator = make(() => now)
    const ids = new Set()
    for (let i = 0; i <= v2.RANDFLAKE_MAX_SEQUENCE; i++) ids.add(generator.generate())
    assert.equal(ids.size, v2.RANDFLAKE_MAX_SEQUENCE + 1)
    throws(() => generator.generate(), v2.ErrResourceExhausted)
    throws(() => generator.generate(), v2.ErrResourceExhausted)
    now += 1
    assert.deepEqual(place(generator.generate()), [1, 0])
  })

  test(`${name}: a clock that fails uses no number`, () => {
    let reading = FIRST
    const generator = make(() => {
      if (reading instanceof Error) throw reading
      return reading
    })
    generator.generate()
    reading = new RangeError('no time')
    assert.throws(() => generator.generate(), reading)
    for (const odd of [undefined, null, '1', 1.5, Number.NaN, 1n, true]) {
      reading = odd
      throws(() => generator.generate(), v2.ErrConsistencyViolation)
    }
    for (const outside of [FIRST - 1, FIRST + 100, -1, 2 ** 60]) {
      reading = outside
      throws(() => generator.generate(), v2.ErrInvalidLease)
    }
    reading = FIRST
    assert.deepEqual(place(generator.generate()), [0, 1])
  })
}

test('a generator keeps what it issued when its clock is changed', () => {
  const now = Math.floor(Date.now() / 1000)
  const own = Uint8Array.from(secret, (byte) => byte ^ 90)
  const generator = new randflake.Generator(7, now - 100, now + 600, own)
  assert.equal(generator.timeSource, undefined)
  const ids = Array.from({ length: 300 }, () => generator.generate())
  const [last, , sequence] = generator.inspect(ids.at(-1))
  generator.timeSource = () => last - 1
  throws(() => generator.generate(), v2.ErrConsistencyViolation)
  generator.timeSource = () => last
  ids.push(generator.generate())
  assert.deepEqual(generator.inspect(ids.at(-1)), [last, 7, sequence + 1])
  generator.timeSource = () => last + 50
  ids.push(generator.generate())
  generator.timeSource = undefined
  throws(() => generator.generate(), v2.ErrConsistencyViolation)
  assert.equal(new Set(ids).size, ids.length)
  throws(() => {
    generator.timeSource = 5
  }, v2.ErrConsistencyViolation)
})

test('a clock that cannot be set leaves the generator as it was', (context) => {
  const now = Math.floor(Date.now() / 1000)
  const own = Uint8Array.from(secret, (byte) => byte ^ 91)
  const generator = new randflake.Generator(7, now - 100, now + 600, own)
  const ids = Array.from({ length: 3 }, () => generator.generate())
  const fill = context.mock.method(Object.getPrototypeOf(randflake.Randflake.prototype), 'fill')
  fill.mock.mockImplementationOnce(() => {
    throw new RangeError('no memory')
  })
  const setClock = () => {
    generator.timeSource = () => now
  }
  assert.throws(setClock, RangeError)
  for (let i = 0; i < 3; i++) ids.push(generator.generate())
  assert.equal(generator.timeSource, undefined)
  assert.equal(new Set(ids).size, 6)
})

test('generators of one node id on the clock of the machine repeat nothing', () => {
  const start = Math.floor(Date.now() / 1000)
  const lease = { nodeID: 9, start, endExclusive: start + 600 }
  const generators = [1, 2, 3].map(() => new v2.Generator({ lease, secret }))
  const ids = generators.flatMap((it) => Array.from({ length: 500 }, () => it.generate()))
  assert.equal(new Set(ids).size, 1500)
})

test('a generator shares the clock of the machine as soon as it is set back to that', () => {
  const clock = () => Math.floor(Date.now() / 1000)
  const own = Uint8Array.from(secret, (byte) => byte ^ 91)
  const make = () => new randflake.Generator(7, clock() - 100, clock() + 600, own)
  const [back, backInACall, again, always] = [make(), make(), make(), make()]
  const ids = [again.generate(), again.generate()]
  // What the machine's clock showed: it may be milliseconds behind JavaScript's.
  const [second] = again.inspect(ids[1])
  const shown = () => second
  back.timeSource = shown
  again.timeSource = shown
  backInACall.timeSource = () => {
    backInACall.timeSource = undefined
    return second
  }
  // Each of the two is alone here.
  const alone = [back, again].map((it) => [it.generate(), it.generate(), it.generate()])
  back.timeSource = undefined
  again.timeSource = undefined
  const made = [[], [], [], []]
  for (let k = 0; k < 100; k += 1) {
    for (const [at, it] of [back, again, backInACall, always].entries()) {
      made[at].push(it.generate())
    }
  }
  assert.equal(new Set(made.flat()).size, 400)
  assert.equal(new Set([...alone[0], ...made[0]]).size, 103)
  assert.equal(new Set([...ids, ...alone[1], ...made[1]]).size, 105)
})

test('a lease ends before its end, and can be extended', () => {
  const clock = () => FIRST + 11
  const generator = shapes['randflake/v2'](clock, FIRST, FIRST + 11)
  throws(() => generator.generate(), v2.ErrInvalidLease)
  for (const endExclusive of [FIRST + 5, FIRST + 11, FIRST + 20, FIRST + 12]) {
    generator.extendLease({ nodeID: 7, start: FIRST, endExclusive })
  }
  assert.deepEqual(generator.lease(), { nodeID: 7, start: FIRST, endExclusive: FIRST + 20 })
  assert.ok(Object.isFrozen(generator.lease()))
  const id = generator.generate()
  assert.ok(Object.isFrozen(generator.inspect(id)))
  const bad = [
    { nodeID: 8, start: FIRST, endExclusive: FIRST + 30 },
    { nodeID: 7, start: FIRST + 1, endExclusive: FIRST + 30 },
    undefined,
    5,
  ]
  for (const lease of bad) throws(() => generator.extendLease(lease), v2.ErrInvalidLease)

  const old = new randflake.Generator(7, FIRST, FIRST + 10, secret)
  const updates = [
    [FIRST, FIRST + 12],
    [FIRST, FIRST + 12],
    [FIRST, FIRST + 3],
    [FIRST + 1, FIRST + 99],
    [FIRST, v2.RANDFLAKE_MAX_TIMESTAMP + 1],
  ]
  const changed = updates.map(([from, to]) => old.updateLease(from, to))
  assert.deepEqual(changed, [true, false, false, false, false])
  assert.deepEqual(old.getLeaseInfo(), { nodeID: 7, leaseStart: FIRST, leaseEnd: FIRST + 12 })
})

test('bad leases, nodes, secrets and clocks have their errors', () => {
  const lease = { nodeID: 1, start: FIRST, endExclusive: FIRST + 1 }
  const last = v2.RANDFLAKE_MAX_TIMESTAMP
  const made = (change) => () => new v2.Generator({ lease, secret, ...change })
  for (const nodeID of [-1, 131_072, 1.5, '1', null, 1n, true]) {
    throws(made({ lease: { ...lease, nodeID } }), v2.ErrInvalidNode)
  }
  const spans = [
    [FIRST - 1, FIRST],
    [FIRST, FIRST],
    [FIRST + 1, FIRST],
    [FIRST, last + 2],
    [null, FIRST],
    [FIRST, 1.5e9 + 0.5],
  ]
  for (const [start, endExclusive] of spans) {
    throws(made({ lease: { nodeID: 1, start, endExclusive } }), v2.ErrInvalidLease)
  }
  for (const wrong of [undefined, null, 5]) {
    throws(made({ lease: wrong }), v2.ErrInvalidLease)
    throws(() => new v2.Generator(wrong), v2.ErrInvalidLease)
  }
  for (const wrong of [undefined, new Uint8Array(15), new Uint8Array(17), '0'.repeat(16), []]) {
    throws(made({ secret: wrong }), v2.ErrInvalidSecret)
  }
  throws(made({ clock: 5 }), v2.ErrConsistencyViolation)
  throws(() => new randflake.Generator(1, FIRST, last + 1, secret), v2.ErrRandflakeDead)
  throws(() => new randflake.Generator(1, FIRST, FIRST - 1, secret), v2.ErrInvalidLease)
})

test('a secret is copied, from shared memory as well', () => {
  const shared = new Uint8Array(new SharedArrayBuffer(16))
  shared.set(secret)
  const lease = { nodeID: 7, start: FIRST, endExclusive: FIRST + 100 }
  const generator = new v2.Generator({ lease, secret: shared, clock: () => FIRST })
  shared.fill(0)
  assert.deepEqual(place(generator.generate()), [0, 0])
})

test('texts are strict, and those of the old names are not', () => {
  const digits = randflake.decodeString('1234567890123')
  for (const id of [0n, 1n, -1n, digits, 2n ** 63n - 1n, -(2n ** 63n)]) {
    assert.equal(v2.decodeString(v2.encodeString(id)), id)
  }
  for (const text of ['', '00', '01', 'A', '1=', 'w', 'g000000000000', '0'.repeat(14), ' 1', 5]) {
    throws(() => v2.decodeString(text), v2.ErrInvalidID)
  }
  for (const id of [2n ** 63n, -(2n ** 63n) - 1n, 1, '1', undefined]) {
    throws(() => v2.encodeString(id), v2.ErrInvalidID)
  }
  const { inspectString } = randflake.Generator.prototype
  const read = inspectString.bind(new randflake.Generator(7, FIRST, FIRST + 9, secret))
  for (const same of ['3VGOE12ccB8GH', '003vgoe12ccb8gh=', '3vgoe12ccb8gh==!', 'g3vgoe12ccb8gh']) {
    assert.deepEqual(read(same), read('3vgoe12ccb8gh'))
  }
  assert.deepEqual(read(''), read('0'))
  for (const text of ['_', '3_4', ' 3', '+3', 'w', '\u0663', 5, undefined]) {
    throws(() => read(text), v2.ErrInvalidID)
  }
})

test('errors take no arguments and are those of randflake', async () => {
  for (const [name, Class] of Object.entries(v2).filter(([name]) => name.startsWith('Err'))) {
    const error = new Class()
    assert.ok(error instanceof randflake.RandflakeError)
    assert.equal(error.name, name)
    assert.equal(randflake[name], Class)
    assert.ok(error.message.length > 0 && error.code.length > 0)
  }
  const own = new randflake.RandflakeError('mine')
  assert.deepEqual([own.message, own.code], ['mine', 'INTERNAL'])
  const byName = await import('randflake/v2')
  for (const name of Object.keys(v2)) assert.equal(byName[name], v2[name])
})

test('what 2.1 did not know passes through', () => {
  const start = Math.floor(Date.now() / 1000)
  new randflake.Randflake([30, 31], secret)
  const lease = { nodeID: 30, start, endExclusive: start + 600 }
  const generator = new v2.Generator({ lease, secret })
  assert.throws(() => generator.generate(), { code: 'NODE_IN_USE', name: 'RandflakeError' })
})
