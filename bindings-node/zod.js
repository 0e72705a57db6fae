'use strict'

exports.id = require('./lib/zod-id.js')(require('zod'))
