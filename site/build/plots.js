// Plots of the repository are pictures, whose text is small on a phone. The site draws bars as text and
// boxes of the width that is there; other plots scroll by themselves, also by keyboard.
import { posix } from 'node:path'
import { pathOf } from './links.js'
import { read } from './pages.js'

const BARS = /(^|\/)benchmarks\.svg$/
const PLOTS = /(^|\/)distribution\.svg$/

export function plots(md) {
  const image = md.renderer.rules.image
  md.renderer.rules.image = (tokens, index, options, env, self) => {
    const source = tokens[index].attrGet('src')
    const svg = source.endsWith('.svg') && read(posix.join(posix.dirname(pathOf(env)), source))
    if (BARS.test(source)) return bars(svg)
    // So that its place is kept until it is there.
    const size = /viewBox="0 0 (?<width>\d+) (?<height>\d+)"/.exec(svg)?.groups ?? {}
    for (const [name, value] of Object.entries(size)) tokens[index].attrSet(name, value)
    const html = image(tokens, index, options, env, self)
    return PLOTS.test(source) ? `<span class="plot" tabindex="0">${html}</span>` : html
  }
}

/** The bars of a picture of bench/plot.py: their languages, names, lengths and values. */
function bars(svg) {
  const row =
    /<text class="title"[^>]*>(?<title>[^<]+)|<text class="(?<kind>\w+)"[^>]* text-anchor="end">(?<label>[^<]*)<\/text><rect[^>]* width="(?<length>[\d.]+)"[^>]*><text[^>]*>(?<value>[^<]+)/g
  const rows = [...svg.matchAll(row)].map(({ groups }) => groups)
  const longest = Math.max(...rows.map(({ length }) => Number(length ?? 0)))
  // A paragraph is around it.
  const html = rows.map(({ title, kind, label, length, value }) =>
    title
      ? `<span class="bars-title">${title}</span>`
      : `<span class="bar ${kind}"><span class="bar-name">${label}</span><span class="bar-box"><span style="width: ${((100 * length) / longest).toFixed(1)}%"></span></span><span class="bar-value">${value}</span></span>`,
  )
  const unit = 'ns per id, on a logarithmic scale: less is faster'
  return `<span class="bars"><span class="bars-unit">${unit}</span>${html.join('')}</span>`
}
