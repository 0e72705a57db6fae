// Calls the WebAssembly, and holds what all of its callers need. Texts and many numbers go through
// its memory, which may move with each call.

/** Makes the module; each way of loading it sets this. */
let load

/** How to get the module; it is not made before the first use. */
export function provide(loader) {
  load = loader
}

let exports

const wasm = () => {
  exports ??= new WebAssembly.Instance(load()).exports
  return exports
}

/** Every error of this package. */
export class RandflakeError extends Error {
  constructor(code, message, retryAfterMs, options) {
    // A single argument is the message, as in `randflake`.
    super(message ?? code, options)
    this.code = message === undefined ? 'INTERNAL' : code
    if (retryAfterMs !== undefined) this.retryAfterMs = retryAfterMs
  }

  get name() {
    return 'RandflakeError'
  }
}

/** Calls a function of the core, and throws the error that it leaves. */
export function call(name, ...given) {
  const functions = wasm()
  let made
  let hasFailed
  try {
    made = functions[name](...given)
    hasFailed = functions.has_failed()
  } catch (error) {
    // A trap: a defect of ours, or no memory.
    throw new RandflakeError('INTERNAL', `the core failed: ${error.message}`, undefined, {
      cause: error,
    })
  }
  if (!hasFailed) return made
  const answer = answered()
  const end = answer.indexOf('\n')
  throw new RandflakeError(answer.slice(0, end), answer.slice(end + 1))
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** Returns the text of an answer. */
export function answered() {
  const { memory, text_start, text_length } = wasm()
  return decoder.decode(new Uint8Array(memory.buffer, text_start(), text_length()))
}

/** Writes texts, or bytes, for the next call, one after the other, and returns their lengths. */
export function write(...texts) {
  const { memory, text_room } = wasm()
  // One character of UTF-16 is at most three bytes of UTF-8.
  const room = texts.reduce((sum, text) => sum + 3 * text.length, 0)
  const start = text_room(room)
  let free = new Uint8Array(memory.buffer, start, room)
  return texts.map((text) => {
    let length = text.length
    if (typeof text === 'string') length = encoder.encodeInto(text, free).written
    else free.set(text)
    free = free.subarray(length)
    return length
  })
}

/** Has the core change a copy of 64-bit numbers, and returns what it made: so many bytes of each. */
export function changed(name, object, numbers, size = 8) {
  const { memory, number_room, number_start } = wasm()
  const start = number_room(numbers.length)
  new BigInt64Array(memory.buffer, start, numbers.length).set(numbers)
  call(name, object)
  const made = number_start()
  const copy = memory.buffer.slice(made, made + size * numbers.length)
  number_room(0) // there may have been many
  return copy
}

const TYPES = {
  undefined: 'undefined',
  boolean: 'a boolean',
  string: 'a string',
  symbol: 'a symbol',
  function: 'a function',
  bigint: 'a bigint',
  number: 'a number',
}

export const typeName = (value) => (value === null ? 'null' : (TYPES[typeof value] ?? 'an object'))

/** Says what this is: only a number itself, since anything else may be a misplaced secret. */
export const describe = (value) => (typeof value === 'number' ? String(value) : typeName(value))

export const invalidArgument = (message) => new RandflakeError('INVALID_ARGUMENT', message)

export const mustBe = (what, form, got) =>
  invalidArgument(`${what} must be ${form}, got ${describe(got)}`)

/** Throws the core's error about a value. */
export const refuse = (name, ...given) => {
  const got = given.pop()
  call(name, ...given, ...write(got))
}

/** Makes a class throw our own error when it is called without `new`. */
export function onlyWithNew(type) {
  const checked = new Proxy(type, {
    apply() {
      throw invalidArgument(`${type.name} is a class; call it with new`)
    },
  })
  type.prototype.constructor = checked
  return checked
}

/** Returns an object that has only these names. */
export function withNames(what, value, names, form = 'an object') {
  const list = names.join(', ')
  const isObject = typeof value === 'object' && value !== null
  // A list or a Map has no names, or hides them: its contents would be silently ignored.
  const isIterable = isObject && Symbol.iterator in value
  if (!isObject || isIterable) {
    const got = isIterable ? 'an iterable' : describe(value)
    throw invalidArgument(`${what} must be ${form} with ${list}, got ${got}`)
  }
  if (!Object.keys(value).every((name) => names.includes(name))) {
    throw invalidArgument(`${what} can only have the names ${list}`)
  }
  return value
}

export const optionsOf = (options, ...names) =>
  options === undefined ? {} : withNames('the options', options, names)

/** Frees what objects held that are gone; without it, on some edge runtimes, their memory stays. */
const gone =
  globalThis.FinalizationRegistry && new FinalizationRegistry((handle) => wasm().forget(handle))

/** Keeps the objects of a class, each by the number that the core knows it by. */
export function handlesOf(name) {
  const handles = new WeakMap()
  return {
    set(self, handle) {
      handles.set(self, handle)
      gone?.register(self, handle)
    },
    of(self) {
      const handle = handles.get(self)
      if (handle !== undefined) return handle
      throw invalidArgument(`a method of ${name} needs its object; call it as object.method()`)
    },
  }
}
