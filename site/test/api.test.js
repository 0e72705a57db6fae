// The pages that are made from the sources name all that the packages export.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'

const ROOT = new URL('../../', import.meta.url)
const read = (path) => readFileSync(new URL(path, ROOT), 'utf8')
const headings = (page) => {
  const html = read(`target/site/api/${page}.html`)
  return [...html.matchAll(/<h([23]) id="[^"]*"[^>]*>([^<]+)</g)].map(([, , text]) => text.trim())
}

/** What is listed in an expression that names begin and end. */
const listed = (path, between) => between.exec(read(path))[1].match(/\b[A-Za-z]\w*/g)

test('Python', () => {
  const names = listed('bindings-python/python/randflake/__init__.py', /__all__ = \[([^\]]+)\]/)
  const found = headings('python/index')
  assert.ok(names.length > 30)
  for (const name of names) assert.ok(found.includes(name), name)
  for (const name of [
    'Randflake.leased',
    'Randflake.generate_many',
    'Cloak.hide',
    'Tickets.fill',
  ]) {
    assert.ok(found.includes(name), name)
  }
  assert.ok(headings('python/testing').includes('FakeRandflake.fail_next'))
})

test('Node.js', () => {
  for (const file of ['generators', 'ids', 'layouts', 'stores', 'tickets']) {
    const text = read(`bindings-node/types/${file}.d.ts`)
    const names = [
      ...text.matchAll(/^export (?:declare )?(?:class|interface|function|type) (\w+)/gm),
    ]
    assert.ok(names.length > 2, file)
    const found = headings(`node/${file}`)
    for (const [, name] of names) {
      assert.ok(found.includes(name) || found.includes(`${name}()`), `${file}: ${name}`)
    }
  }
})

test('Rust', () => {
  const found = [...headings('rust/index'), ...headings('rust/randflake.layout')]
  const names = listed('core/src/lib.rs', /^pub use crate::\{([^;]+)\};/m)
  const items = names.filter((name) => /^[A-Z]/.test(name))
  assert.ok(items.length > 20)
  for (const name of items) assert.ok(found.includes(name), name)
  assert.ok(headings('rust/index').includes('Generator::generate'))
  assert.ok(headings('rust/randflake_leases').includes('Leased'))
  assert.ok(headings('rust/randflake_tickets').includes('Tickets::generate'))
})
