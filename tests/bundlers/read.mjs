// What each runtime does with `randflake/web`, the vectors and a service.

/** Does everything once, and returns what came out, as texts. */
export async function read(web, vectors, url) {
  const { Cloak, Codes, Inspector, Layout, ServedGenerator, TextForm } = web
  const out = []
  const say = (...values) => out.push(values.join(' '))
  const fails = (call) => {
    try {
      call()
      say('no error')
    } catch (error) {
      say(error.name, error.code, error.message)
    }
  }
  for (const { secret, id, text, raw } of vectors.ids.cases) {
    const inspector = new Inspector(secret)
    const { timestamp, nodeId, sequence, date } = inspector.inspect(BigInt(id))
    say(timestamp, nodeId, sequence, date.toISOString(), inspector.decrypt(text))
    say(inspector.encrypt(BigInt(raw)), web.encodeString(BigInt(id)), web.decodeString(text))
    say(inspector.encryptMany([BigInt(raw)]), inspector.decryptMany([text]))
    say(Object.values(inspector.inspectMany(BigInt64Array.of(BigInt(id)))).join())
  }
  for (const { secret, label, number, hidden } of vectors.cloak.cases) {
    const cloak = new Cloak(secret, label)
    const form = new TextForm({ prefix: 'order', cloak })
    say(cloak.hide(BigInt(number)), cloak.hideString(BigInt(number)), cloak.reveal(BigInt(hidden)))
    say(form.encode(BigInt.asIntN(64, BigInt(number))))
  }
  for (const { text } of vectors.layout_texts.layouts) {
    const layout = new Layout(text)
    say(layout, JSON.stringify(layout), layout.pack(layout.epochMs, 0, 0))
  }
  for (const { secret, label, length, alphabet, check, number, code } of vectors.codes.cases) {
    const codes = new Codes(secret, label, { length, alphabet, check })
    say(codes.encode(BigInt(number)), codes.decode(code), codes.capacity, codes.pattern)
  }
  const { secret } = vectors.ids.cases[0]
  for (const { text } of vectors.layout_texts.refused) fails(() => new Layout(text))
  for (const { text } of vectors.text.invalid) fails(() => new Inspector(secret).inspect(text))
  for (const wrong of [5, 'x', null, new Uint8Array(3)]) fails(() => new Inspector(wrong))

  const flake = new ServedGenerator(url, { batch: 10, token: 'open-sesame-4711' })
  const ids = await Promise.all(Array.from({ length: 100 }, () => flake.generate()))
  say(new Set(ids).size, (await flake.generateMany(25)).length)
  const signal = AbortSignal.abort()
  await flake.generate({ signal }).catch(({ name }) => say(name))
  const moved = new ServedGenerator(`${url}/moved`)
  await moved.generate().catch(({ code, message }) => say(code, message))
  return out
}
