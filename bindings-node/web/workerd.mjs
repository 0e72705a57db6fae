// For Cloudflare Workers, which compile no WebAssembly at run time.

import { provide } from './core.mjs'
import module from './randflake.wasm'

provide(() => module)

export * from './api.mjs'
