'use strict'

const { native } = require('./native.js')
const { checkLayout, optionsOf, unixMsOf, wrongThis } = require('./arguments.js')

const { inspectRaw } = native

/** Where `inspectRaw` leaves the parts of an id. */
const parts = new Float64Array(native.callBuffer.buffer, 16, 3)

function inspectRawWith(layout, id) {
  inspectRaw(layout, id)
  const [unixMs, nodeId, sequence] = parts
  return { unixMs, nodeId, sequence, date: new Date(unixMs) }
}

/** Marks the arguments of a constructor as for a layout that is already made. */
const made = Symbol('made')

let layoutOf

/** Makes a layout, with another epoch or another initial sequence. */
function described(layout, givenOptions) {
  const { epochMs, sequence } = optionsOf(givenOptions, 'epochMs', 'sequence')
  let chosen = native.createLayout(checkLayout(layout))
  if (epochMs !== undefined) chosen = native.withEpochMs(chosen, epochMs)
  return sequence === undefined ? chosen : native.withSequence(chosen, sequence)
}

class Layout {
  #layout

  static {
    layoutOf = (self) => {
      if (typeof self !== 'object' || self === null || !(#layout in self)) {
        throw wrongThis('Layout')
      }
      return self.#layout
    }
  }

  constructor(layout, changed) {
    this.#layout = layout === made ? changed : described(layout, changed)
    Object.freeze(Object.assign(this, native.layoutProperties(this.#layout)))
  }

  inspect(id) {
    return inspectRawWith(layoutOf(this), id)
  }

  pack(time, nodeId, sequence) {
    return native.pack(layoutOf(this), unixMsOf(time), nodeId, sequence)
  }

  firstIdAt(time) {
    return native.firstIdAt(layoutOf(this), unixMsOf(time))
  }

  lastIdAt(time) {
    return native.lastIdAt(layoutOf(this), unixMsOf(time))
  }

  joinNode(datacenter, worker) {
    return native.joinNode(layoutOf(this), datacenter, worker)
  }

  splitNode(nodeId) {
    return native.splitNode(layoutOf(this), nodeId)
  }

  withEpochMs(epochMs) {
    return new Layout(made, native.withEpochMs(layoutOf(this), epochMs))
  }

  toString() {
    return native.layoutText(layoutOf(this))
  }

  withSequence(sequence) {
    return new Layout(made, native.withSequence(layoutOf(this), sequence))
  }
}

/** The ends of the layouts for which a warning was given. */
const endsWarnedOf = new Set()

function warnIfEnding(layout) {
  const warning = native.layoutWarning(layoutOf(layout))
  if (warning === null || endsWarnedOf.has(layout.endsAt)) return
  endsWarnedOf.add(layout.endsAt)
  process.emitWarning(warning, { type: 'LifetimeWarning', code: 'RANDFLAKE_LIFETIME' })
}

/** Returns the layout that options name, or else `otherwise`. */
function layoutIn(options, otherwise) {
  const { layout = otherwise } = options
  return layout === undefined || layout instanceof Layout ? layout : new Layout(layout)
}

let boundaryFlakeOf

class BoundaryFlake {
  #flake

  static {
    boundaryFlakeOf = (self) => {
      if (typeof self !== 'object' || self === null || !(#flake in self)) {
        throw wrongThis('BoundaryFlake')
      }
      return self.#flake
    }
  }

  constructor(flake) {
    this.#flake = native.readBoundaryFlake(flake)
    const { unixMs, worker, sequence } = this.#flake
    const date = new Date(Number(unixMs))
    Object.freeze(Object.assign(this, { unixMs, worker: Uint8Array.from(worker), sequence, date }))
  }

  toBytes() {
    return Uint8Array.from(boundaryFlakeOf(this).bytes)
  }

  toString() {
    return boundaryFlakeOf(this).text
  }

  toJSON() {
    return boundaryFlakeOf(this).text
  }
}

module.exports = { BoundaryFlake, Layout, inspectRawWith, layoutIn, layoutOf, warnIfEnding }
