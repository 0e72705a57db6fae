'use strict'

const { native } = require('./native.js')
const { onlyWithNew, warnIfWeak, wrongThis } = require('./arguments.js')
const { mustBeDone } = require('./bulk.js')

let cloakOf

class Cloak {
  #cloak

  static {
    cloakOf = (self) => {
      if (typeof self !== 'object' || self === null || !(#cloak in self)) throw wrongThis('Cloak')
      return self.#cloak
    }
  }

  constructor(secret, label) {
    this.#cloak = native.createCloak(secret, label)
    warnIfWeak(secret)
  }

  hide(number) {
    return native.hide(cloakOf(this), number)
  }

  hideString(number) {
    return native.hideString(cloakOf(this), number)
  }

  hideInPlace(numbers) {
    mustBeDone(native.hideInPlace(cloakOf(this), numbers))
  }

  reveal(hidden) {
    return native.reveal(cloakOf(this), hidden)
  }

  revealInPlace(hidden) {
    mustBeDone(native.revealInPlace(cloakOf(this), hidden))
  }
}

module.exports.Cloak = onlyWithNew(Cloak)
