// With the copy of zod that a module imports, so that a bundle has it once.

import * as z from 'zod'
import idWith from './lib/zod-id.js'

export const id = idWith(z)
