'use strict'

exports.id = require('./zod-id.js')(require('zod'))
