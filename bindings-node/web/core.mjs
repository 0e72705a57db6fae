// Calls the WebAssembly, and holds what all of its callers need. Texts and many numbers go through
// its memory, which may move with each call.

/** Makes the module; each way of loading it sets this. */
let load

/** How to get the module; it is not made before the first use. */
export function provide(loader) {
  load = loader
}

let exports
let isDead = false

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

/**
 * Does something in the core. What it left half done when it failed stays so: from then on, all calls
 * fail. Another core would know none of the objects.
 */
function inCore(work) {
  if (isDead) {
    throw new RandflakeError(
      'INTERNAL',
      'the core failed before, by too much at a time; load it anew',
    )
  }
  const core = wasm()
  try {
    return work(core)
  } catch (error) {
    // A trap: no memory, or a defect of ours.
    isDead = true
    const message = `the core failed: ${error.message}; pass less at a time`
    throw new RandflakeError('INTERNAL', message, undefined, { cause: error })
  }
}

/** Calls a function of the core, and throws the error that it leaves. */
export function call(name, ...given) {
  const [made, hasFailed] = inCore((core) => [core[name](...given), core.has_failed()])
  if (!hasFailed) return made
  const answer = answered()
  const end = answer.indexOf('\n')
  throw new RandflakeError(answer.slice(0, end), answer.slice(end + 1))
}

/** The most characters of a text that go to the core: labels, codes and layouts are shorter. */
const LONGEST_TEXT = 65_536
/** The most numbers at a time: a gigabyte, with what is made of them. */
const MOST_NUMBERS = 2 ** 24

const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** Returns the text of an answer. */
export function answered() {
  const { memory, text_start, text_length } = wasm()
  return decoder.decode(new Uint8Array(memory.buffer, text_start(), text_length()))
}

/** Writes texts, or bytes, for the next call, one after the other, and returns their lengths. */
export function write(...texts) {
  // As much as shows that it is too long, so that the memory stays small.
  const short = texts.map((text) => text.slice(0, LONGEST_TEXT))
  // One character of UTF-16 is at most three bytes of UTF-8.
  const room = short.reduce((sum, text) => sum + 3 * text.length, 0)
  const start = inCore(({ text_room }) => text_room(room))
  let free = new Uint8Array(wasm().memory.buffer, start, room)
  return short.map((text) => {
    let length = text.length
    if (typeof text === 'string') length = encoder.encodeInto(text, free).written
    else free.set(text)
    free = free.subarray(length)
    return length
  })
}

/** Erases what was written for a call that is not made. */
export function forgetTexts() {
  inCore(({ text_room }) => text_room(0))
}

/** Has the core change a copy of 64-bit numbers, and returns what it made: so many bytes of each. */
export function changed(name, object, numbers, size = 8) {
  const { memory, number_room, number_start } = wasm()
  // Once: it could be a getter.
  const count = numbers.length
  if (!(count <= MOST_NUMBERS)) {
    throw invalidArgument(`at most ${MOST_NUMBERS} at a time, got ${count}`)
  }
  const start = inCore(() => number_room(count))
  new BigInt64Array(memory.buffer, start, count).set(numbers)
  call(name, object)
  const made = number_start()
  const copy = memory.buffer.slice(made, made + size * count)
  inCore(() => number_room(0)) // there may have been many
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
const gone = globalThis.FinalizationRegistry && new FinalizationRegistry(forget)

/** Frees an object of the core. Nobody could take an error. */
export function forget(handle) {
  if (!isDead) wasm().forget(handle)
}

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
