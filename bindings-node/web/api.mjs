// What `randflake/web` exports, whichever way the WebAssembly is loaded.

export { decodeString, encodeString, TextForm } from '../text.js'
export { Codes } from './codes.mjs'
export { RandflakeError } from './core.mjs'
export { Cloak, Inspector } from './ids.mjs'
export { Layout } from './layout.mjs'
export { ServedGenerator } from './served.mjs'
