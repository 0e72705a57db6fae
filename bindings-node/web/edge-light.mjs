// For the edge runtime of Vercel and Next.js, which compiles no WebAssembly at run time.

import { provide } from './core.mjs'
import module from './randflake.wasm?module'

provide(() => module)

export * from './api.mjs'
