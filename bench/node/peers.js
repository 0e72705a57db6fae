// Ids of the Node peers, and what the peers make of ours; see ../peers.py.

import readline from 'node:readline'
import { DiscordSnowflake, TwitterSnowflake } from '@sapphire/snowflake'

const layouts = { twitter: TwitterSnowflake, discord: DiscordSnowflake }

function say(verb, name, id) {
  const { timestamp, workerId, processId, increment } = layouts[name].deconstruct(id)
  const node = (workerId << 5n) | processId
  console.log(verb, '@sapphire/snowflake', name, ...[id, timestamp, node, increment].map(String))
}

for (const name of Object.keys(layouts)) {
  for (let count = 0; count < 3; count++) {
    say('made', name, layouts[name].generate({ workerId: 19n, processId: 13n }))
  }
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  const [name, id] = line.split(' ')
  if (name in layouts) say('read', name, BigInt(id))
}
