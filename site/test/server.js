// A host of static files that finds pages without their ending, as code hosts do.
import { createReadStream, existsSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { extname, join, normalize } from 'node:path'

const TYPES = {
  '.css': 'text/css',
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.json': 'application/json',
  '.md': 'text/markdown',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain',
  '.wasm': 'application/wasm',
  '.woff2': 'font/woff2',
}

/** The file of a site that answers a path, if there is one. */
export function fileFor(folder, path) {
  const name = join(folder, normalize(decodeURIComponent(path)))
  const names = [name, `${name}.html`, join(name, 'index.html')]
  return names.find((file) => existsSync(file) && statSync(file).isFile())
}

/** Serves a folder at a free port. */
export function serve(folder) {
  const server = createServer((request, response) => {
    const file = fileFor(folder, new URL(request.url, 'http://site').pathname)
    response.writeHead(file ? 200 : 404, {
      'content-type': `${TYPES[extname(file ?? '.html')] ?? 'application/octet-stream'}; charset=utf-8`,
    })
    createReadStream(file ?? join(folder, '404.html')).pipe(response)
  })
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)))
}
