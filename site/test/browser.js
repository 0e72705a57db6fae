// A browser: one on the PATH, or the one that a package brings for Linux, or an installed Chrome.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']
const SITE = fileURLToPath(new URL('..', import.meta.url))

/** What takes longer in a browser hangs, on any machine. */
export const HANGS_MS = 180_000

function onPath() {
  const folders = (process.env.PATH ?? '').split(delimiter)
  return folders.flatMap((folder) => NAMES.map((name) => join(folder, name))).find(existsSync)
}

/** For a system that has no fonts. Generic families are the first that is left. */
const fonts = (folder) => `<?xml version="1.0"?>
<fontconfig>
  <dir>${join(SITE, 'node_modules/dejavu-fonts-ttf/ttf')}</dir>
  <cachedir>${join(folder, 'fonts-cache')}</cachedir>
  <selectfont>
    <rejectfont><glob>*Serif*</glob></rejectfont>
    <rejectfont><glob>*TeX*</glob></rejectfont>
  </selectfont>
  <alias><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
</fontconfig>
`

/** Unpacks the package into target/, with libraries that a system may not have. */
async function fromPackage() {
  const file = join(SITE, 'node_modules/@sparticuz/chromium/package.json')
  const { version } = JSON.parse(readFileSync(file, 'utf8'))
  const folder = join(SITE, '../target/site-browser', version)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'fonts.conf'), fonts(folder))
  // The package unpacks its libraries where it believes to be in that service alone.
  Object.assign(process.env, { TMPDIR: folder, AWS_LAMBDA_JS_RUNTIME: 'nodejs22.x' })
  const { default: packed } = await import('@sparticuz/chromium')
  return {
    executablePath: await packed.executablePath(),
    env: { ...process.env, FONTCONFIG_FILE: join(folder, 'fonts.conf') },
  }
}

/** Starts a browser without a window. */
export async function startBrowser() {
  const executablePath = onPath()
  const isPacked = process.platform === 'linux' && process.arch === 'x64'
  const installed = executablePath ? { executablePath } : { channel: 'chrome' }
  const found = executablePath || !isPacked ? installed : await fromPackage()
  return chromium.launch({ ...found, args: ['--no-sandbox'], timeout: HANGS_MS })
}
