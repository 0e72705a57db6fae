'use strict'

const { native } = require('./native.js')
const { onlyWithNew, warnIfWeak, wrongThis } = require('./arguments.js')
const { decryptMany, encryptMany, mustBeDone } = require('./bulk.js')

// Taken out of `native`, where looking them up would take 5 ns.
const { inspect, encrypt, decrypt } = native

/** Where `inspect` leaves the parts of an id. */
const parts = new Float64Array(native.callBuffer.buffer, 16, 3)

function inspectWith(inspector, id) {
  inspect(inspector, id)
  const [timestamp, nodeId, sequence] = parts
  return { timestamp, nodeId, sequence, date: new Date(timestamp * 1000) }
}

let inspectorOf

class Inspector {
  #inspector

  static {
    inspectorOf = (self) => {
      if (typeof self !== 'object' || self === null || !(#inspector in self)) {
        throw wrongThis('Inspector')
      }
      return self.#inspector
    }
  }

  constructor(secret) {
    this.#inspector = native.createInspector(secret)
    warnIfWeak(secret)
  }

  inspect(id) {
    return inspectWith(inspectorOf(this), id)
  }

  inspectMany(ids) {
    return native.inspectMany(inspectorOf(this), ids)
  }

  encrypt(raw) {
    return encrypt(inspectorOf(this), raw)
  }

  decrypt(id) {
    return decrypt(inspectorOf(this), id)
  }

  encryptMany(raws) {
    return encryptMany(inspectorOf(this), raws)
  }

  decryptMany(ids) {
    return decryptMany(inspectorOf(this), ids)
  }

  encryptInPlace(raws) {
    mustBeDone(native.encryptInPlace(inspectorOf(this), raws))
  }

  decryptInPlace(ids) {
    mustBeDone(native.decryptInPlace(inspectorOf(this), ids))
  }
}

module.exports.Inspector = onlyWithNew(Inspector)
module.exports.inspectWith = inspectWith
