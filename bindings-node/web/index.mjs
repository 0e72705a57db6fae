// For browsers, Deno, Bun and Node.js: the WebAssembly is in the code, so that nothing has to be
// fetched and waited for.

import { provide } from './core.mjs'
import { base64 } from './inlined.mjs'

provide(() => {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
  return new WebAssembly.Module(bytes)
})

export * from './api.mjs'
