'use strict'

module.exports = require('./lib/drizzle-id.js')({
  pg: require('drizzle-orm/pg-core').customType,
  mysql: require('drizzle-orm/mysql-core').customType,
  sqlite: require('drizzle-orm/sqlite-core').customType,
})
