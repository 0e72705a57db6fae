'use strict'

module.exports = require('./lib/v2/index.js')
