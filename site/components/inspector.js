// What the page of the inspector does with the core: it reads ids, and makes some.
import {
  decodeString,
  encodeString,
  Inspector,
  Layout,
  RandflakeError,
} from '../../bindings-node/web/index.mjs'

/** The layouts that have a name, the encrypted one first. */
export const LAYOUTS = [
  'randflake',
  'twitter',
  'discord',
  'leaf',
  'baidu',
  'sonyflake',
  'sonyflake2',
  'instagram',
  'simpleflake',
]

const RANDFLAKE = new Layout('randflake')
const MOST_IDS = 1000
/** The most by which a generator may be ahead of its clock. */
const MAX_DRIFT_MS = 3_600_000

function invalidId(message) {
  return new RandflakeError('INVALID_ID', message)
}

/** Reads a number that a person has written. */
function numberOf(text) {
  if (/^[-+]?\d{1,20}$/.test(text)) return BigInt(text.replace('+', ''))
  throw invalidId('this must be a number, an integer of 64 bits')
}

/** Reads an id that a person has written, as a number or as text. */
function idOf(form, text) {
  if (form === 'number') return numberOf(text)
  if (form === 'text') return text
  if (!/^[-+]?\d+$/.test(text)) return text
  const number = numberOf(text)
  let other = number
  try {
    other = decodeString(text)
  } catch {
    // It can only be a number.
  }
  if (number === other) return number
  if (BigInt.asIntN(64, number) !== number) return text
  throw invalidId('this is a different id as a number and in the text form; choose which it is')
}

/** Says what is in an encrypted id. */
export function inspect(secret, form, written, nowMs) {
  const id = idOf(form, written)
  const inspector = new Inspector(secret)
  const raw = inspector.decrypt(id)
  return { ...shown(inspector.encrypt(raw)), raw: String(raw), ...partsOf(RANDFLAKE, raw, nowMs) }
}

/** Says what is in a sortable id. */
export function read(name, written, nowMs) {
  const layout = new Layout(name)
  const number = numberOf(written)
  const parts = partsOf(layout, number, nowMs)
  const raw = String(BigInt.asUintN(64, number))
  return { number: raw, raw, ...parts }
}

function partsOf(layout, id, nowMs) {
  const { unixMs, nodeId, sequence, date } = layout.inspect(id)
  const parts = {
    unixMs,
    utc: date.toISOString().replace('.000Z', 'Z'),
    tickMs: layout.tickMs,
    sequence,
    isPlausible: unixMs - nowMs <= MAX_DRIFT_MS,
    fields: fieldsOf(layout, BigInt.asUintN(64, id)),
  }
  if (layout.nodeBits > 0) parts.node = nodeId
  const split = layout.splitNode(nodeId)
  if (split) parts.nodeParts = split
  return parts
}

/** The fields of an id from high to low, with their bits. */
function fieldsOf(layout, id) {
  const { epochMs, tickMs, timeBits, nodeBits, sequenceBits } = layout
  // The lowest bit of each shows where it is.
  const fields = [{ name: 'time', width: timeBits, one: layout.pack(epochMs + tickMs, 0, 0) }]
  if (nodeBits > 0) {
    fields.push({ name: 'node', width: nodeBits, one: layout.pack(epochMs, 1, 0) })
  }
  if (sequenceBits > 0) {
    fields.push({ name: 'sequence', width: sequenceBits, one: layout.pack(epochMs, 0, 1) })
  }
  fields.sort((a, b) => (a.one < b.one ? 1 : -1))
  const unused = 64 - timeBits - nodeBits - sequenceBits
  if (unused > 0) fields.unshift({ name: 'unused', width: unused })
  let rest = id.toString(2).padStart(64, '0')
  return fields.map(({ name, width }) => {
    const bits = rest.slice(0, width)
    rest = rest.slice(width)
    return { name, bits, value: String(BigInt(`0b${bits}`)) }
  })
}

/** An id as a number and as text. */
function shown(id) {
  return { number: String(id), text: encodeString(id) }
}

/** The last second and sequence of each node id that this page has made ids with. */
const made = new Map()

/** Makes encrypted ids: each as a number and as text. */
export function make(secret, nodeId, count, nowMs) {
  if (!Number.isInteger(count) || count < 0 || count > MOST_IDS) {
    throw new RandflakeError('INVALID_ARGUMENT', `at most ${MOST_IDS} ids at a time`)
  }
  const inspector = new Inspector(secret)
  const { epochMs, tickMs, maxSequence } = RANDFLAKE
  if (nowMs < epochMs) {
    throw new RandflakeError('CLOCK_BEFORE_EPOCH', 'the clock shows a time before the first id')
  }
  const tick = Math.floor(nowMs / tickMs)
  // Of all secrets: that is no more than the secrets would have to be kept for.
  const last = made.get(nodeId) ?? { tick, next: 0 }
  if (tick < last.tick) {
    throw new RandflakeError('CLOCK_MOVED_BACK', 'the clock is behind the last id')
  }
  const first = tick === last.tick ? last.next : 0
  if (first + count > maxSequence + 1) {
    throw new RandflakeError('SEQUENCE_EXHAUSTED', 'no ids are left in this second')
  }
  const ids = Array.from({ length: count }, (_, index) =>
    inspector.encrypt(RANDFLAKE.pack(tick * tickMs, nodeId, first + index)),
  )
  made.set(nodeId, { tick, next: first + count })
  return ids.map(shown)
}

/** A secret of this page's own: 16 random bytes, in hex. */
export function randomSecret() {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
