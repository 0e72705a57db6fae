// Writes the pages of the site about the Node.js package, from its declarations.
//
//     node site/build/api-node.js FOLDER
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Application } from 'typedoc'

const PACKAGE = fileURLToPath(new URL('../../bindings-node/', import.meta.url))
const out = resolve(process.argv[2])

const { exports } = JSON.parse(readFileSync(join(PACKAGE, 'package.json'), 'utf8'))
const declarations = Object.values(exports)
  .map((entry) => entry.import?.types ?? entry.types)
  .filter(Boolean)

const app = await Application.bootstrapWithPlugins({
  plugin: ['typedoc-plugin-markdown'],
  entryPoints: declarations.map((file) => join(PACKAGE, file)),
  tsconfig: fileURLToPath(new URL('tsconfig.json', import.meta.url)),
  outputs: [{ name: 'markdown', path: out }],
  // Those of packages that need not be installed here.
  skipErrorChecking: true,
  validation: false,
  logLevel: 'Warn',
  readme: 'none',
  disableSources: true,
  excludeExternals: true,
  router: 'module',
  hidePageHeader: true,
  hideBreadcrumbs: true,
  hideGroupHeadings: true,
  useCodeBlocks: true,
  parametersFormat: 'list',
  // Links lead to these: the headings of parameters and members may be equal.
  useHTMLAnchors: true,
  anchorPrefix: 'api-',
})
const project = await app.convert()
if (!project) process.exit(1)
rmSync(out, { recursive: true, force: true })
await app.generateOutputs(project)

// A list of the modules, which the sidebar shows.
rmSync(join(out, 'README.md'))
for (const name of readdirSync(out)) {
  const page = readFileSync(join(out, name), 'utf8')
  const title = name === 'index.md' ? 'Node.js: randflake' : `randflake/${name.replace('.md', '')}`
  const head = '---\neditLink: false\noutline: 2\n---\n\n'
  writeFileSync(join(out, name), head + page.replace(/^# .*$/m, `# ${title}`))
}
