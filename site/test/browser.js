// A browser: one on the PATH, or else the one that a package brings.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']

function onPath() {
  const folders = (process.env.PATH ?? '').split(delimiter)
  return folders.flatMap((folder) => NAMES.map((name) => join(folder, name))).find(existsSync)
}

const folderOf = (name) => dirname(createRequire(import.meta.url).resolve(name))

/** Where a system has no fonts, and so that those of a test do not depend on the system. */
const fonts = (folder) => `<?xml version="1.0"?>
<fontconfig>
  <dir>${join(folderOf('dejavu-fonts-ttf/package.json'), 'ttf')}</dir>
  <cachedir>${join(folder, 'fonts-cache')}</cachedir>
  <selectfont>
    <rejectfont><glob>*Serif*</glob></rejectfont>
    <rejectfont><glob>*TeX*</glob></rejectfont>
  </selectfont>
  <alias><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
</fontconfig>
`

/** Unpacks the package into a folder, with libraries that a system may not have. */
async function fromPackage(folder) {
  process.env.TMPDIR = folder
  const { default: packed, inflate } = await import('@sparticuz/chromium')
  const bin = join(folderOf('@sparticuz/chromium'), '../../bin')
  const libraries = join(await inflate(join(bin, 'al2023.tar.br')), 'lib')
  writeFileSync(join(folder, 'fonts.conf'), fonts(folder))
  return {
    executablePath: await packed.executablePath(),
    env: {
      ...process.env,
      LD_LIBRARY_PATH: libraries,
      FONTCONFIG_FILE: join(folder, 'fonts.conf'),
    },
  }
}

/** Starts a browser without a window. What it is made of stays in target/, for the next time. */
export async function startBrowser() {
  const folder = fileURLToPath(new URL('../../target/site-browser', import.meta.url))
  mkdirSync(folder, { recursive: true })
  const executablePath = onPath()
  const found = executablePath ? { executablePath } : await fromPackage(folder)
  return chromium.launch({ ...found, args: ['--no-sandbox'] })
}
