'use strict'

// The option `form` of what goes into frameworks.

const { TextForm } = require('./text.js')

const PLAIN = new TextForm()

/** Returns the form that the options name, or else the plain one. */
function formOf(options = {}) {
  const isObject = typeof options === 'object' && options !== null
  const { form = PLAIN, ...others } = isObject ? options : { options }
  if (form instanceof TextForm && Object.keys(others).length === 0) return form
  // An option that nobody reads would let numbers out that a cloak has to hide.
  const message = 'the options can only have the name form, a TextForm'
  throw Object.assign(new Error(message), { code: 'INVALID_ARGUMENT' })
}

/** Returns how a text of a form looks. */
function exampleOf({ pattern }) {
  return `${pattern.slice(1, pattern.indexOf('('))}3vgoe12ccb8gh`
}

module.exports = { exampleOf, formOf }
