// Takes ids in batches from `randflake serve`. It needs no secret, and no WebAssembly.

import { encodeString } from '../text.js'
import {
  describe,
  invalidArgument,
  mustBe,
  onlyWithNew,
  optionsOf,
  RandflakeError,
} from './core.mjs'

const OPTIONS = ['token', 'batch', 'timeoutMs', 'fetch']
const MOST_IDS = 100_000
/** The longest time that timers have. */
const LONGEST_MS = 2 ** 31 - 1
/** How many batches are remembered. */
const MOST_BATCHES = 10_000
/** How long nothing is fetched ahead after a failure that does not say how long. */
const AGAIN_MS = 1000
/** As much of a message as a log can bear. */
const LONGEST_MESSAGE = 300

/** The errors of a service that gives no id, and of what is none. */
const unavailable = (message, cause) =>
  new RandflakeError('STORE_UNAVAILABLE', message, undefined, cause && { cause })

/** Returns where a service makes ids. */
function addressOf(url) {
  const refused = (why) => invalidArgument(`the url of a service ${why}`)
  let address
  try {
    address = new URL(url)
  } catch {
    throw refused(`must be a URL such as 'https://ids.internal', got ${describe(url)}`)
  }
  if (!/^https?:$/.test(address.protocol)) throw refused('begins with http:// or https://')
  if (address.username || address.password) throw refused('has no user and password; pass token')
  if (/[?#]/.test(address.href)) throw refused('has no query and no fragment')
  address.pathname = address.pathname.replace(/\/*$/, '/v1/ids')
  return address
}

function whole(name, value, most) {
  if (Number.isInteger(value) && value >= 1 && value <= most) return value
  throw mustBe(name, `a whole number, 1 to ${most}`, value)
}

/** Reads the ids of an answer, and refuses one that has others than were asked for. */
function idsOf(text, count) {
  let ids
  try {
    ;({ ids } = JSON.parse(text))
  } catch {
    throw unavailable('the answer of the service is not JSON; is this the url of randflake serve?')
  }
  const isId = (id) => typeof id === 'string' && /^(0|-?[1-9][0-9]{0,19})$/.test(id)
  if (!Array.isArray(ids) || !ids.every(isId)) {
    throw unavailable('the answer of the service has no list of ids')
  }
  if (ids.length !== count) {
    throw unavailable(`the service answered ${ids.length} ids instead of ${count}`)
  }
  const numbers = ids.map(BigInt)
  const fits = (id) => BigInt.asIntN(64, id) === id || BigInt.asUintN(64, id) === id
  if (!numbers.every(fits)) throw unavailable('the service answered a number of more than 64 bits')
  return numbers
}

/** Returns the error that an answer is. */
function errorOf(status, retryAfter, text, token) {
  let code
  let message
  try {
    ;({ code, message } = JSON.parse(text))
  } catch {
    // Of a proxy before the service, perhaps.
  }
  if (!/^[A-Z_]{1,40}$/.test(code) || typeof message !== 'string') {
    return unavailable(`the service answered with status ${status}, without an error of its own`)
  }
  const retryAfterMs = /^[0-9]{1,6}$/.test(retryAfter) ? Number(retryAfter) * 1000 : undefined
  // First of all of it: half a token would stay.
  if (token !== undefined) message = message.replaceAll(token, '[token]')
  return new RandflakeError(code, message.slice(0, LONGEST_MESSAGE), retryAfterMs)
}

const hidden = new WeakMap()

function partsOf(self) {
  const parts = hidden.get(self)
  if (parts !== undefined) return parts
  throw invalidArgument('a method of ServedGenerator needs its object; call it as object.method()')
}

/** Takes the options of a call. */
function signalOf(options) {
  const { signal } = optionsOf(options, 'signal')
  const isSignal = ['throwIfAborted', 'addEventListener', 'removeEventListener'].every(
    (name) => typeof signal?.[name] === 'function',
  )
  if (signal === undefined || isSignal) return signal
  throw mustBe('signal', 'an AbortSignal', signal)
}

/** The ids of one generator, and who waits for some. */
class Supply {
  /** Those that are left of the last batch, the next one last. */
  #ids = []
  /** All of the last batch, and the first id of each before it: a cache could answer one twice. */
  #last = new Set()
  #firsts = new Set()
  /** Who waits, in the order of their calls. */
  #waiting = new Set()
  #isFetching = false
  /** When the next batch may be fetched ahead, in unix milliseconds. */
  #aheadFrom = 0
  #settings

  constructor(settings) {
    this.#settings = settings
  }

  /** Returns so many ids; each leaves the batch once, whoever asks. */
  take(count, signal) {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted()
      const waiter = { missing: count, ids: [], resolve, reject }
      waiter.leave = () => signal?.removeEventListener('abort', waiter.abort)
      waiter.abort = () => this.#end(waiter, () => reject(signal.reason))
      signal?.addEventListener('abort', waiter.abort)
      this.#waiting.add(waiter)
      this.#serve()
    })
  }

  #end(waiter, settle) {
    this.#waiting.delete(waiter)
    waiter.leave()
    settle()
  }

  /** Gives out what there is, and fetches what will be needed. */
  #serve() {
    for (const waiter of this.#waiting) {
      while (waiter.missing > 0 && this.#ids.length > 0) {
        waiter.ids.push(this.#ids.pop())
        waiter.missing--
      }
      if (waiter.missing > 0) break
      this.#end(waiter, () => waiter.resolve(waiter.ids))
    }
    if (this.#isFetching) return
    const { batch } = this.#settings
    // One that is used up by a single id would be old when it is needed.
    const isLow = batch > 1 && 2 * this.#ids.length <= batch && Date.now() >= this.#aheadFrom
    if (this.#waiting.size > 0 || isLow) this.#fetch()
  }

  async #fetch() {
    this.#isFetching = true
    try {
      const fetched = await this.#batch()
      const isOld = this.#firsts.has(fetched[0]) || fetched.some((id) => this.#last.has(id))
      if (isOld || new Set(fetched).size < fetched.length) {
        throw unavailable('the service answered an id twice; does something cache its answers?')
      }
      this.#last = new Set(fetched)
      this.#firsts.add(fetched[0])
      if (this.#firsts.size > MOST_BATCHES) {
        const [oldest] = this.#firsts
        this.#firsts.delete(oldest)
      }
      // The older ones first.
      this.#ids.unshift(...fetched.reverse())
      this.#aheadFrom = 0
    } catch (error) {
      this.#aheadFrom = Date.now() + (error.retryAfterMs ?? AGAIN_MS)
      for (const waiter of this.#waiting) this.#end(waiter, () => waiter.reject(error))
    } finally {
      this.#isFetching = false
    }
    this.#serve()
  }

  /** Asks once more if the connection broke: whatever was made for the first request is lost. */
  async #batch() {
    const { timeoutMs } = this.#settings
    const stop = new AbortController()
    const { signal } = stop
    const timer = setTimeout(() => stop.abort(), timeoutMs)
    // A fetch that does not know signals would never end.
    const late = new Promise((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason))
    })
    late.catch(() => undefined)
    const again = (error) => {
      if (error instanceof RandflakeError || signal.aborted) throw error
      return this.#ask(signal)
    }
    try {
      return await Promise.race([this.#ask(signal).catch(again), late])
    } catch (error) {
      if (error instanceof RandflakeError) throw error
      const isLate = `the service did not answer within ${timeoutMs} ms`
      throw unavailable(signal.aborted ? isLate : 'the service cannot be reached', error)
    } finally {
      clearTimeout(timer)
      stop.abort() // a body that nobody reads
    }
  }

  async #ask(signal) {
    const { address, batch, token, fetch } = this.#settings
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
    const url = `${address}?count=${batch}&format=number`
    // A redirect could take the token elsewhere.
    const response = await fetch(url, { method: 'POST', headers, redirect: 'manual', signal })
    const { status, type } = response
    if (type === 'opaqueredirect' || (status >= 300 && status < 400)) {
      throw unavailable('the service answered with a redirect, which is not followed; pass its url')
    }
    // Whole, or not at all.
    const text = await response.text()
    if (status === 200) return idsOf(text, batch)
    throw errorOf(status, response.headers.get('retry-after'), text, token)
  }
}

export const ServedGenerator = onlyWithNew(
  class ServedGenerator {
    constructor(url, options) {
      const given = optionsOf(options, ...OPTIONS)
      const { token, batch = 1000, timeoutMs = 10_000 } = given
      if (token !== undefined && (typeof token !== 'string' || !/^[!-~]+$/.test(token))) {
        throw invalidArgument('token must be a string of visible ASCII characters')
      }
      // Looked up with each request, and called on what it belongs to.
      const { fetch = (...request) => globalThis.fetch(...request) } = given
      if (typeof fetch !== 'function') throw mustBe('fetch', 'a function', fetch)
      const settings = {
        address: addressOf(url),
        batch: whole('batch', batch, MOST_IDS),
        timeoutMs: whole('timeoutMs', timeoutMs, LONGEST_MS),
        token,
        fetch,
      }
      hidden.set(this, new Supply(settings))
    }

    async generate(options) {
      const [id] = await partsOf(this).take(1, signalOf(options))
      return id
    }

    async generateString(options) {
      return encodeString(BigInt.asIntN(64, await this.generate(options)))
    }

    async generateMany(count, options) {
      const supply = partsOf(this)
      const signal = signalOf(options)
      if (!Number.isSafeInteger(count) || count < 0) {
        throw mustBe('the number of ids', 'an integer, at least 0', count)
      }
      return count === 0 ? [] : supply.take(count, signal)
    }
  },
)
