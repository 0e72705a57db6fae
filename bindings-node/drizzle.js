'use strict'

module.exports = require('./drizzle-id.js')({
  pg: require('drizzle-orm/pg-core').customType,
  mysql: require('drizzle-orm/mysql-core').customType,
  sqlite: require('drizzle-orm/sqlite-core').customType,
})
