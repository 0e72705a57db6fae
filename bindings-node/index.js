'use strict'

const generators = require('./lib/generators.js')
const { Cloak } = require('./lib/cloak.js')
const { Codes } = require('./lib/codes.js')
const { Inspector } = require('./lib/inspector.js')
const { BoundaryFlake, Layout } = require('./lib/layouts.js')
const { decodeStrings, encodeStrings } = require('./lib/bulk.js')
const { native } = require('./lib/native.js')
const { onlyWithNew } = require('./lib/arguments.js')
const operators = require('./lib/operators.js')
const published = require('./lib/v2/published.js')

// One by one and by name, so that `import { … }` finds them.
module.exports.Randflake = generators.Randflake
module.exports.Inspector = Inspector
module.exports.initStore = operators.initStore
module.exports.listLeases = operators.listLeases
module.exports.inspectLease = operators.inspectLease
module.exports.fenceStore = operators.fenceStore
module.exports.repairLease = operators.repairLease
module.exports.repairStore = operators.repairStore
module.exports.setNodeIds = operators.setNodeIds
module.exports.releaseLease = operators.releaseLease
module.exports.Layout = onlyWithNew(Layout)
module.exports.Snowflake = generators.Snowflake
module.exports.Tickets = generators.Tickets
module.exports.DatedTickets = generators.DatedTickets
module.exports.initTickets = operators.initTickets
module.exports.fenceTickets = operators.fenceTickets
module.exports.listTickets = operators.listTickets
module.exports.showTickets = operators.showTickets
module.exports.Cloak = Cloak
module.exports.Codes = Codes
module.exports.BoundaryFlake = onlyWithNew(BoundaryFlake)
module.exports.RandflakeError = native.RandflakeError
module.exports.encodeString = native.encodeString
module.exports.decodeString = native.decodeString
module.exports.encodeStrings = encodeStrings
module.exports.decodeStrings = decodeStrings
module.exports.generateSecret = native.generateSecret
module.exports.afterRestore = native.afterRestore
// Names of the published 2.1.
module.exports.RANDFLAKE_EPOCH_OFFSET = published.RANDFLAKE_EPOCH_OFFSET
module.exports.RANDFLAKE_MAX_NODE = published.RANDFLAKE_MAX_NODE
module.exports.RANDFLAKE_MAX_SEQUENCE = published.RANDFLAKE_MAX_SEQUENCE
module.exports.RANDFLAKE_MAX_TIMESTAMP = published.RANDFLAKE_MAX_TIMESTAMP
module.exports.RANDFLAKE_NODE_BITS = published.RANDFLAKE_NODE_BITS
module.exports.RANDFLAKE_SEQUENCE_BITS = published.RANDFLAKE_SEQUENCE_BITS
module.exports.RANDFLAKE_TIMESTAMP_BITS = published.RANDFLAKE_TIMESTAMP_BITS
module.exports.ErrConsistencyViolation = published.ErrConsistencyViolation
module.exports.ErrInvalidID = published.ErrInvalidID
module.exports.ErrInvalidLease = published.ErrInvalidLease
module.exports.ErrInvalidNode = published.ErrInvalidNode
module.exports.ErrInvalidSecret = published.ErrInvalidSecret
module.exports.ErrRandflakeDead = published.ErrRandflakeDead
module.exports.ErrResourceExhausted = published.ErrResourceExhausted
module.exports.Generator = published.Generator
