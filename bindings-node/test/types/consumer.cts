// Compiled, never run: what a CommonJS module may do.
import randflake = require('randflake')

const { Randflake, Inspector } = randflake
const secret: string = randflake.generateSecret()
const flake: randflake.Randflake = new Randflake(1, secret)
const parts: randflake.Parts = new Inspector(secret).inspect(flake.generate())
console.log(parts.timestamp, randflake.decodeString(flake.generateString()))
const store: randflake.StoreAdapter = { run: async (text) => [[text, null]] }
const made: Promise<void> = randflake.initStore(store, secret, 'new', { maxSkewSeconds: 1 })
made.then(() => Randflake.leased(store, secret, { ttlSeconds: 60, create: true }))
