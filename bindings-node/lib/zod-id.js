'use strict'

// Ids in schemas of zod: text outside, bigint inside.

const { formOf, lookOf } = require('./form.js')

/** Returns `id` with a copy of zod: its module, or what `require` returns. */
module.exports = (z) =>
  function id(options) {
    if (z.codec === undefined) {
      const message =
        'randflake/zod needs zod 4.1 or later, which has codecs; npm install zod@latest'
      throw Object.assign(new Error(message), { code: 'INVALID_ARGUMENT' })
    }
    const form = formOf(options)
    const expected = `Invalid id: expected text ${lookOf(form)}`
    const error = ({ input }) =>
      typeof input === 'number' ? `${expected}; a number may have been rounded` : expected
    const text = z.string({ error }).regex(new RegExp(form.pattern), { error })
    const number = z.int64()
    // Otherwise a schema of the output throws "BigInt cannot be represented in JSON Schema". In
    // JSON an id is its text.
    number._zod.toJSONSchema = () => ({ type: 'string', pattern: form.pattern })
    return z.codec(text, number, {
      decode(given, context) {
        try {
          return form.decode(given)
        } catch {
          // A code whose check is wrong; the pattern has refused all else.
          context.issues.push({ code: 'custom', message: expected, input: given })
          return z.NEVER
        }
      },
      encode(given, context) {
        try {
          return form.encode(given)
        } catch {
          context.issues.push({
            code: 'custom',
            message: 'Invalid id: it has no code',
            input: given,
          })
          return z.NEVER
        }
      },
    })
  }
