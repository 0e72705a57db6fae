// Plots are wider than a phone: they scroll by themselves, also by keyboard.
const PLOTS = /(benchmarks|distribution)\.svg$/

export function plots(md) {
  const image = md.renderer.rules.image
  md.renderer.rules.image = (tokens, index, ...others) => {
    const isPlot = PLOTS.test(tokens[index].attrGet('src'))
    const html = image(tokens, index, ...others)
    return isPlot ? `<span class="plot" tabindex="0">${html}</span>` : html
  }
}
