'use strict'

// The option `form` of the adapters for frameworks.

const { TextForm } = require('../text.js')

const PLAIN = new TextForm()

/** Returns the form in the options, or else the plain one. */
function formOf(options = {}) {
  // An option that nobody reads, or a Cloak in place of options, would expose the numbers that it
  // should hide. As in text.js, Object is not asked.
  const { form = PLAIN, ...others } = options?.constructor === {}.constructor ? options : [options]
  if (form instanceof TextForm && Object.keys(others).length === 0) return form
  const message = 'the options can only have the name form, a TextForm'
  throw Object.assign(new Error(message), { code: 'INVALID_ARGUMENT' })
}

/** Says how a text of a form looks. No code is shown, since it would be somebody's. */
function lookOf({ pattern }) {
  const start = pattern.indexOf('(')
  return start < 0 ? `that matches ${pattern}` : `such as ${pattern.slice(1, start)}3vgoe12ccb8gh`
}

module.exports = { formOf, lookOf }
