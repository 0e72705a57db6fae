// Reads ids, and hides numbers.

import { encodeString } from '../text.js'
import {
  idOf,
  idsInPlace,
  idsOf,
  rawOf,
  rawOrSigned,
  rawsOf,
  unicode,
  warnIfWeak,
  withSecret,
} from './arguments.mjs'
import { call, changed, handlesOf, onlyWithNew } from './core.mjs'

const unsigned = (number) => BigInt.asUintN(64, number)

function changeInPlace(name, handle, numbers) {
  numbers.set(new BigInt64Array(changed(name, handle, numbers)))
}

const inspectors = handlesOf('Inspector')

export const Inspector = onlyWithNew(
  class Inspector {
    constructor(secret) {
      inspectors.set(this, call('make_inspector', ...withSecret(secret, () => [])))
      warnIfWeak()
    }

    inspect(id) {
      const handle = inspectors.of(this)
      call('inspect', handle, idOf(id))
      const timestamp = call('part_time')
      return {
        timestamp,
        nodeId: call('part_node') >>> 0,
        sequence: call('part_sequence') >>> 0,
        date: new Date(timestamp * 1000),
      }
    }

    inspectMany(ids) {
      const { length } = idsInPlace(ids)
      const columns = changed('inspect_numbers', inspectors.of(this), ids, 16)
      return {
        timestamp: new BigInt64Array(columns.slice(0, 8 * length)),
        nodeId: new Uint32Array(columns.slice(8 * length, 12 * length)),
        sequence: new Uint32Array(columns.slice(12 * length)),
      }
    }

    encrypt(raw) {
      return call('encrypt', inspectors.of(this), rawOf(raw))
    }

    decrypt(id) {
      return unsigned(call('decrypt', inspectors.of(this), idOf(id)))
    }

    encryptMany(raws) {
      const handle = inspectors.of(this)
      return new BigInt64Array(changed('encrypt_numbers', handle, rawsOf(raws)))
    }

    decryptMany(ids) {
      const handle = inspectors.of(this)
      return new BigUint64Array(changed('decrypt_numbers', handle, idsOf(ids)))
    }

    encryptInPlace(raws) {
      changeInPlace('encrypt_numbers', inspectors.of(this), idsInPlace(raws))
    }

    decryptInPlace(ids) {
      changeInPlace('decrypt_numbers', inspectors.of(this), idsInPlace(ids))
    }
  },
)

const cloaks = handlesOf('Cloak')

export const Cloak = onlyWithNew(
  class Cloak {
    constructor(secret, label) {
      const [length, isText, labelLength] = withSecret(secret, () => [unicode('the label', label)])
      cloaks.set(this, call('make_cloak', length, isText, labelLength))
      warnIfWeak()
    }

    hide(number) {
      return call('hide', cloaks.of(this), rawOrSigned(number))
    }

    hideString(number) {
      return encodeString(this.hide(number))
    }

    hideInPlace(numbers) {
      changeInPlace('hide_numbers', cloaks.of(this), idsInPlace(numbers))
    }

    reveal(hidden) {
      return unsigned(call('reveal', cloaks.of(this), idOf(hidden)))
    }

    revealInPlace(hidden) {
      changeInPlace('reveal_numbers', cloaks.of(this), idsInPlace(hidden))
    }
  },
)
