// Layouts of the Snowflake family.

import { isU32, rawOrSigned } from './arguments.mjs'
import {
  answered,
  call,
  describe,
  forget,
  handlesOf,
  mustBe,
  onlyWithNew,
  optionsOf,
  refuse,
  withNames,
  write,
} from './core.mjs'

const DESCRIPTION = ['fields', 'tickMs', 'epochMs', 'sequence', 'unsigned', 'nodeSplit']

const FIELDS =
  "an array of up to three pairs such as ['time', 41], from high to low, of 'time', 'node' and " +
  "'sequence' and their widths in bits"
const SEQUENCE = "'zero', 'continuing' or ['random', how many starts]"
const SPLIT = 'a pair of widths in bits: [datacenter, worker]'

const isPair = (value) => Array.isArray(value) && value.length === 2

function field(listed) {
  if (!isPair(listed)) throw mustBe('fields', FIELDS, listed)
  const [name, bits] = listed
  if (!['time', 'node', 'sequence'].includes(name)) throw mustBe('fields', FIELDS, name)
  if (!isU32(bits)) throw mustBe('fields', FIELDS, bits)
  return `${name}:${bits}`
}

/** Returns the name of an initial sequence, and its starts if it has some. */
function sequenceOf(value) {
  if (value === 'zero' || value === 'continuing') return [value]
  if (isPair(value) && value[0] === 'random' && isU32(value[1])) return value
  throw mustBe('sequence', SEQUENCE, value)
}

function wholeMs(what, value, form = 'whole unix milliseconds') {
  if (Number.isSafeInteger(value)) return value
  throw mustBe(what, form, value)
}

/** Writes a description as the text that the core reads. */
function textOf(description) {
  if (typeof description === 'string') return description
  const form = 'the text of a layout or an object'
  const given = withNames('a layout', description, DESCRIPTION, form)
  const { fields = [], tickMs, epochMs, sequence, unsigned, nodeSplit } = given
  if (!Array.isArray(fields) || fields.length > 3) throw mustBe('fields', FIELDS, fields)
  const parts = fields.map(field)
  // Without fields, a text names a preset; the core says that there has to be a time.
  if (parts.length === 0) parts.push('time:0')
  if (tickMs !== undefined) {
    const form = 'a whole number of milliseconds, at least 1'
    if (!isU32(tickMs)) throw mustBe('tickMs', form, tickMs)
    parts.push(`tick_ms=${tickMs}`)
  }
  if (epochMs !== undefined) parts.push(`epoch_ms=${wholeMs('epochMs', epochMs)}`)
  if (sequence !== undefined) parts.push(`sequence=${sequenceOf(sequence).join(':')}`)
  if (unsigned !== undefined) {
    if (typeof unsigned !== 'boolean') throw mustBe('unsigned', 'a boolean', unsigned)
    parts.push(`unsigned=${unsigned}`)
  }
  if (nodeSplit !== undefined) {
    if (!isPair(nodeSplit) || !nodeSplit.every(isU32)) throw mustBe('nodeSplit', SPLIT, nodeSplit)
    parts.push(`node_split=${nodeSplit.join(':')}`)
  }
  return parts.join()
}

const withEpoch = (handle, epochMs) =>
  call('with_epoch_ms', handle, BigInt(wholeMs('epochMs', epochMs)))

function withStarts(handle, sequence) {
  const [name, starts = -1] = sequenceOf(sequence)
  return call('with_sequence', handle, ...write(name), BigInt(starts))
}

function described(layout, options) {
  const { epochMs, sequence } = optionsOf(options, 'epochMs', 'sequence')
  const replaced = (handle, change) => {
    try {
      return change(handle)
    } finally {
      forget(handle)
    }
  }
  let handle = call('make_layout', ...write(textOf(layout)))
  if (epochMs !== undefined) handle = replaced(handle, (old) => withEpoch(old, epochMs))
  if (sequence !== undefined) handle = replaced(handle, (old) => withStarts(old, sequence))
  return handle
}

function propertiesOf(handle) {
  call('describe_layout', handle)
  const about = JSON.parse(answered())
  const bits = Object.fromEntries(about.fields)
  const { sequence } = about
  const properties = {
    name: about.name,
    timeBits: bits.time,
    nodeBits: bits.node ?? 0,
    sequenceBits: bits.sequence ?? 0,
    tickMs: about.tick_ms,
    epochMs: about.epoch_ms,
    sequence: Array.isArray(sequence) ? Object.freeze(sequence) : sequence,
    unsigned: about.unsigned,
    maxNodeId: about.max_node_id,
    maxSequence: about.max_sequence,
    endsAt: about.ends_at,
    negativeFrom: about.negative_from,
  }
  return [properties, about.layout]
}

function unixMs(time) {
  const whole = time instanceof Date ? time.getTime() : time
  return BigInt(wholeMs('a time', whole, 'a valid Date or whole unix milliseconds'))
}

function nodeOf(handle, nodeId) {
  return isU32(nodeId) ? nodeId : refuse('refuse_node', handle, describe(nodeId))
}

const unsigned = (number) => BigInt.asUintN(64, number)

const layouts = handlesOf('Layout')
const texts = new WeakMap()

/** Marks the arguments of a constructor as for a layout that is already made. */
const made = Symbol('made')

export const Layout = onlyWithNew(
  class Layout {
    constructor(layout, changed) {
      const handle = layout === made ? changed : described(layout, changed)
      layouts.set(this, handle)
      const [properties, text] = propertiesOf(handle)
      texts.set(this, text)
      Object.freeze(Object.assign(this, properties))
    }

    inspect(id) {
      call('inspect_raw', layouts.of(this), rawOrSigned(id))
      const unixMs = call('part_time')
      const nodeId = call('part_node') >>> 0
      return { unixMs, nodeId, sequence: call('part_sequence') >>> 0, date: new Date(unixMs) }
    }

    pack(time, nodeId, sequence) {
      const handle = layouts.of(this)
      if (!isU32(sequence)) refuse('refuse_sequence', handle, describe(sequence))
      return unsigned(call('pack', handle, unixMs(time), nodeOf(handle, nodeId), sequence))
    }

    firstIdAt(time) {
      return unsigned(call('first_id_at', layouts.of(this), unixMs(time)))
    }

    lastIdAt(time) {
      return unsigned(call('last_id_at', layouts.of(this), unixMs(time)))
    }

    joinNode(datacenter, worker) {
      const handle = layouts.of(this)
      return call('join_node', handle, nodeOf(handle, datacenter), nodeOf(handle, worker)) >>> 0
    }

    splitNode(nodeId) {
      const handle = layouts.of(this)
      const parts = call('split_node', handle, nodeOf(handle, nodeId))
      return parts < 0n ? null : [Number(parts >> 32n), Number(parts & 0xffffffffn)]
    }

    withEpochMs(epochMs) {
      return new Layout(made, withEpoch(layouts.of(this), epochMs))
    }

    withSequence(sequence) {
      return new Layout(made, withStarts(layouts.of(this), sequence))
    }

    toString() {
      layouts.of(this)
      return texts.get(this)
    }
  },
)
