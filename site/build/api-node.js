// Writes the pages of the site about the Node.js package, from its declarations.
//
//     node site/build/api-node.js FOLDER
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Application } from 'typedoc'

const PACKAGE = fileURLToPath(new URL('../../bindings-node/', import.meta.url))
const out = resolve(process.argv[2])
// What a reader wants first, and the subject of a file whose name does not say it.
const FIRST = ['generators', 'ids', 'layouts', 'stores', 'tickets']
const SUBJECTS = { published: 'names of version 2' }

const { exports } = JSON.parse(readFileSync(join(PACKAGE, 'package.json'), 'utf8'))
const declarations = Object.values(exports)
  .map((entry) => entry.import?.types ?? entry.types)
  .filter(Boolean)
// The package itself is too long for one page: each file that it exports has one.
const [main, ...others] = declarations
const files = readFileSync(join(PACKAGE, main), 'utf8').matchAll(/from '\.\/(.+)\.js'/g)
const entries = [...files].map(([, file]) => `./${file}.d.ts`)

const app = await Application.bootstrapWithPlugins({
  plugin: ['typedoc-plugin-markdown'],
  entryPoints: [...entries, ...others].map((file) => join(PACKAGE, file)),
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
  flattenOutputFiles: true,
  hidePageHeader: true,
  hideBreadcrumbs: true,
  hideGroupHeadings: true,
  useCodeBlocks: true,
  // With their types, in the signature.
  expandParameters: true,
  parametersFormat: 'list',
  // Links lead to these: the headings of parameters and members may be equal.
  useHTMLAnchors: true,
  anchorPrefix: 'api-',
})
const project = await app.convert()
if (!project) process.exit(1)
rmSync(out, { recursive: true, force: true })
await app.generateOutputs(project)

// A list of the modules, which is replaced by that of the package.
rmSync(join(out, 'README.md'), { force: true })
const index = [
  '# Node.js: randflake',
  '',
  'What `randflake` exports, on a page for each subject:',
  '',
]
const written = readdirSync(out)
  .sort()
  .map((file) => /^types\.(.+)\.md$|^(.+)\.md$/.exec(file))
const place = ([, part]) => (FIRST.includes(part) ? FIRST.indexOf(part) : FIRST.length)
for (const [file, part, module] of written.sort((a, b) => place(a) - place(b))) {
  const page = readFileSync(join(out, file), 'utf8')
    .replaceAll('](types.', '](')
    // As a program writes them.
    .replace(/(\\?\[)(dispose|asyncDispose)(?=\\?\]\()/g, '$1Symbol.$2')
    .replace(/(\[`\[)(dispose|asyncDispose)(?=\]`\])/g, '$1Symbol.$2')
  rmSync(join(out, file))
  const subject = SUBJECTS[part] ?? part
  const title = `Node.js: ${part ? `randflake, ${subject}` : `randflake/${module}`}`
  write(`${part ?? module}.md`, page.replace(/^# .*$/m, `# ${title}`))
  const names = [...page.matchAll(/^## ([\w\\]+)/gm)].map(
    ([, name]) => `\`${name.replaceAll('\\', '')}\``,
  )
  if (part) index.push(`- [${subject}](${part}.md): ${names.join(', ')}`)
}
write('index.md', index.join('\n'))

function write(name, page) {
  writeFileSync(join(out, name), `---\neditLink: false\noutline: 2\n---\n\n${page}\n`)
}
