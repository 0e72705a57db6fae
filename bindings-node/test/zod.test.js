'use strict'

const assert = require('node:assert/strict')
const { suite, test } = require('node:test')
const { Cloak, Codes, decodeString } = require('../index.js')
const { TextForm } = require('../text.js')
const idWith = require('../lib/zod-id.js')

const SECRET = 'dffd6021bb2bd5b0af676290809ec3a5'
const ALL_BITS = { length: 13, alphabet: 'crockford' }
const cloak = new Cloak(SECRET, 'orders.id')
const FORMS = {
  plain: undefined,
  prefix: new TextForm({ prefix: 'order' }),
  cloak: new TextForm({ prefix: 'order', cloak }),
  codes: new TextForm({ codes: new Codes(SECRET, 'orders', ALL_BITS) }),
}
const IDS = [decodeString('1234567890123'), -1n, 0n, 2n ** 63n - 1n, -(2n ** 63n)]

for (const installed of ['zod', 'zod-4-1']) {
  const z = require(installed)
  const id = idWith(z)

  suite(installed, () => {
    for (const [name, form = new TextForm()] of Object.entries(FORMS)) {
      const schema = id(name === 'plain' ? undefined : { form })

      test(`${name}: text outside, a bigint inside`, () => {
        for (const number of IDS) {
          const text = form.encode(number)
          assert.equal(schema.parse(text), number)
          assert.equal(z.decode(schema, text), number)
          assert.equal(z.encode(schema, number), text)
        }
      })

      test(`${name}: in objects, options and arrays`, () => {
        const whole = z.object({
          id: schema,
          parent: schema.nullable(),
          next: schema.optional(),
          tags: z.array(schema).describe('tags'),
          parts: z.tuple([schema, schema.describe('a part')]),
        })
        const [a, b] = IDS
        const inside = { id: a, parent: null, tags: [b, a], parts: [a, b] }
        const outside = z.encode(whole, inside)
        const [textA, textB] = [form.encode(a), form.encode(b)]
        const texts = { id: textA, parent: null, tags: [textB, textA], parts: [textA, textB] }
        assert.deepEqual(outside, texts)
        assert.deepEqual(whole.parse(JSON.parse(JSON.stringify(outside))), inside)
        assert.deepEqual(whole.parse({ ...outside, next: textB, parent: textA }), {
          ...inside,
          next: b,
          parent: a,
        })
      })

      test(`${name}: in the keys of an object as text`, () => {
        const counts = z.record(schema.in, z.number())
        const given = { [form.encode(IDS[0])]: 1, [form.encode(IDS[1])]: 2 }
        assert.deepEqual(counts.parse(given), given)
        assert.equal(counts.safeParse({ '4594531474933654033': 1 }).success, false)
      })

      test(`${name}: in a JSON schema it is the text`, () => {
        const whole = z.object({ id: schema.describe('an id'), ids: z.array(schema.optional()) })
        for (const io of ['input', 'output']) {
          const { properties } = z.toJSONSchema(whole, { io })
          const { type, pattern, description } = properties.id
          assert.deepEqual([type, pattern, description], ['string', form.pattern, 'an id'])
          assert.equal(properties.ids.items.pattern, form.pattern)
        }
        assert.equal(
          z.toJSONSchema(z.record(schema.in, z.number())).propertyNames.pattern,
          form.pattern,
        )
      })

      test(`${name}: anything else is an issue that shows what an id looks like`, () => {
        const example = form.encode(0n).startsWith('order_')
          ? 'order_3vgoe12ccb8gh'
          : '3vgoe12ccb8gh'
        const look = name === 'codes' ? `that matches ${form.pattern}` : `such as ${example}`
        const message = `Invalid id: expected text ${look}`
        const bare = form.encode(1n).replace(/^order_/, '')
        const wrong = [
          '',
          'order_',
          'user_10',
          `${bare} `,
          `0${bare}`,
          `${bare.toUpperCase()}W`,
          '-1',
        ]
        for (const given of [...wrong, '4594531474933654033', 5, 5n, null, undefined, {}, [bare]]) {
          const { success, error } = z.object({ id: schema }).safeParse({ id: given })
          assert.equal(success, false, String(given))
          assert.deepEqual(
            error.issues.map((issue) => [issue.path, issue.message]),
            [[['id'], given === 5 ? `${message}; a number may have been rounded` : message]],
          )
        }
      })

      test(`${name}: what is no id is no text`, () => {
        for (const given of [5, '10', null, undefined, 2n ** 63n, -(2n ** 63n) - 1n, {}]) {
          assert.equal(z.safeEncode(schema, given).success, false, String(given))
        }
      })
    }

    test('a code whose check is wrong is an issue, which shows no code', () => {
      const form = new TextForm({ codes: new Codes(SECRET, 'orders', { check: 3 }) })
      const message = 'Invalid id: expected text that matches ^[0-9]{8}$'
      const { success, error } = z.object({ id: id({ form }) }).safeParse({ id: '12345678' })
      assert.equal(success, false)
      assert.deepEqual(
        error.issues.map((issue) => [issue.path, issue.message]),
        [[['id'], message]],
      )
      assert.equal(id({ form }).parse(form.encode(7n)), 7n)
      for (const none of [10n ** 9n, -1n]) {
        assert.equal(z.safeEncode(id({ form }), none).success, false)
      }
    })

    test('every path of the table in the guide', () => {
      const form = FORMS.prefix
      const [plain, order] = [id(), id({ form })]
      const [a, b] = IDS
      const both = (schema, outside, inside) => {
        assert.deepEqual(schema.parse(outside), inside)
        assert.deepEqual(z.encode(schema, inside), outside)
      }
      const [ofA, ofB] = ['1234567890123', form.encode(b)]
      both(plain.nullish(), null, null)
      both(z.map(plain, order), new Map([[ofA, ofB]]), new Map([[a, b]]))
      both(z.set(plain), new Set([ofA]), new Set([a]))
      both(z.record(z.string(), order), { x: ofB }, { x: b })
      both(z.union([plain, z.boolean()]), ofA, a)
      const [cat, dog] = [z.literal('cat'), z.literal('dog')]
      const kinds = [z.object({ kind: cat, id: plain }), z.object({ kind: dog, id: order })]
      both(z.discriminatedUnion('kind', kinds), { kind: 'dog', id: ofB }, { kind: 'dog', id: b })
      both(z.object({ a: plain }).partial().extend({ b: order }), { b: ofB }, { b })
      const Node = z.object({
        id: plain,
        get inner() {
          return z.array(Node)
        },
      })
      both(
        Node,
        { id: ofA, inner: [{ id: ofA, inner: [] }] },
        { id: a, inner: [{ id: a, inner: [] }] },
      )
      both(
        plain
          .refine((number) => number === a)
          .brand('order')
          .readonly(),
        ofA,
        a,
      )
      assert.equal(plain.pipe(z.bigint().positive()).parse(ofA), a)
      assert.equal(plain.transform((number) => number + 1n).parse(ofA), a + 1n)
      assert.equal(z.preprocess((value) => value, plain).parse(ofA), a)
      assert.equal(plain.default(b).parse(undefined), b)
      assert.equal(plain.prefault(ofA).parse(undefined), a)
      assert.equal(
        z.templateLiteral(['/orders/', order.in]).parse(`/orders/${ofB}`),
        `/orders/${ofB}`,
      )

      for (const target of ['draft-7', 'draft-2020-12']) {
        for (const schema of [
          plain.nullable().unwrap(),
          plain.refine(() => true),
          plain.meta({ title: 'a' }),
        ]) {
          assert.equal(z.toJSONSchema(schema, { target }).pattern, new TextForm().pattern)
        }
      }
      const withDefault = z.toJSONSchema(z.object({ id: plain.prefault(ofA) }), { io: 'input' })
      assert.equal(withDefault.properties.id.default, ofA)
      // As the guide says: a bigint does not tell its form, bigints have no place in JSON, and keys of an object are strings.
      const either = z.union([order, plain])
      assert.equal(z.encode(either, either.parse(ofA)), form.encode(a))
      assert.throws(() => z.toJSONSchema(z.object({ id: plain.default(a) })), /BigInt/)
      assert.deepEqual(z.record(plain, z.number()).parse({ [ofA]: 1 }), { [a]: 1 })
    })

    test('other options are refused', () => {
      const wrong = [
        null,
        'order',
        5,
        [],
        cloak,
        new TextForm(),
        { from: FORMS.cloak },
        { form: null },
      ]
      for (const options of [...wrong, { form: cloak }, { form: { pattern: '' } }]) {
        assert.throws(() => id(options), { name: 'Error', code: 'INVALID_ARGUMENT' })
      }
    })
  })
}

test('a zod without codecs is named', () => {
  const message = /needs zod 4\.1 or later/
  assert.throws(() => idWith(require('zod/v3'))(), { code: 'INVALID_ARGUMENT', message })
})

test('import takes the zod that a module imports', async () => {
  const { id } = await import('randflake/zod')
  const { z } = await import('zod')
  assert.ok(id().in instanceof z.ZodString)
  assert.deepEqual(Object.keys(require('randflake/zod')), ['id'])
  const schema = z.object({ id: id().optional() })
  assert.deepEqual(schema.parse({ id: 'fvvvvvvvvvvvv' }), { id: -1n })
  assert.equal(z.toJSONSchema(schema).properties.id.type, 'string')
})
