'use strict'

const assert = require('node:assert/strict')
const { spawnSync } = require('node:child_process')
const { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } = require('node:fs')
const { tmpdir } = require('node:os')
const { join } = require('node:path')
const { test } = require('node:test')
const { inspect } = require('node:util')
const randflake = require('../index.js')

const root = join(__dirname, '..')
const read = (file) => readFileSync(join(root, 'types', file), 'utf8')
const declarations = readdirSync(join(root, 'types')).map(read).join('\n')
const names = (pattern, text) => Array.from(text.matchAll(pattern), (match) => match[1]).sort()

test('import and require give the same things under the same names', async () => {
  const module = await import('randflake')
  assert.equal(require('randflake'), randflake)
  const { default: whole, 'module.exports': _newer, ...named } = module
  assert.equal(whole, randflake)
  assert.deepEqual({ ...named }, { ...randflake })
})

test('what is not loaded with the package has a name of its own', () => {
  assert.equal(require('randflake/prometheus'), require('../prometheus.js'))
  assert.deepEqual(Object.keys(require('../prometheus.js')), ['collect'])
  assert.equal(require('randflake/typeorm'), require('../typeorm.js'))
  assert.deepEqual(Object.keys(require('../typeorm.js')), ['id', 'loadByQueries'])
  const loads = "require('randflake'); console.log(Object.keys(require.cache).join())"
  const { stdout } = spawnSync(process.execPath, ['--eval', loads], { cwd: root, encoding: 'utf8' })
  assert.match(stdout, /index\.js/)
  assert.doesNotMatch(
    stdout,
    /prom-client|prometheus\.js|testing\.js|\/(text|form|zod|drizzle|typeorm)(-id)?\.js/,
  )
})

test('the declarations name exactly what is exported', () => {
  const index = readFileSync(join(root, 'index.d.ts'), 'utf8')
  const files = names(/^export \* from '.\/types\/(\w+).js'$/gm, index)
  assert.deepEqual(
    files.map((file) => `${file}.d.ts`),
    readdirSync(join(root, 'types')).sort(),
  )
  const declared = names(/^export (?:declare )?(?:class|function|const) (\w+)/gm, declarations)
  const [, published] = declarations.match(/^export {([^}]*)} from '..\/v2.js'/m)
  declared.push(...names(/(\w+)/g, published))
  assert.deepEqual(declared.sort(), Object.keys(randflake).sort())
})

test('the declarations name exactly the methods of each class', () => {
  const classes = [
    'Randflake',
    'Inspector',
    'Layout',
    'Snowflake',
    'Tickets',
    'Cloak',
    'Codes',
    'BoundaryFlake',
  ]
  for (const name of classes) {
    const bodyOf = (type) => declarations.match(new RegExp(`^[\\w ]*class ${type} .*?^}`, 'ms'))[0]
    const body = bodyOf(name)
    const bodies = [body]
    const prototypes = [randflake[name].prototype]
    for (;;) {
      const [, parent] = / extends (\w+)/.exec(bodies.at(-1).split('\n', 1)[0]) ?? []
      const inherited = Object.getPrototypeOf(prototypes.at(-1))
      assert.equal(inherited === Object.prototype, parent === undefined)
      if (parent === undefined) break
      assert.equal(inherited.constructor.name, parent)
      bodies.push(bodyOf(parent))
      prototypes.push(inherited)
    }
    const method = /^ {2}(?:protected )?(?:get )?(\[?[\w.]+\]?)\(/gm
    const all = bodies.flatMap((text) => names(method, text))
    const declared = [...new Set(all)].sort()
    const symbols = new Map([
      [Symbol.dispose, '[Symbol.dispose]'],
      [Symbol.asyncDispose, '[Symbol.asyncDispose]'],
    ])
    const keys = prototypes.flatMap(Reflect.ownKeys)
    const shown = [...new Set(keys)]
      .filter((key) => key !== inspect.custom)
      .map((key) => symbols.get(key) ?? key)
      .sort()
    assert.deepEqual(declared, shown, name)
    const own = Object.getOwnPropertyNames(randflake[name])
    const statics = own.filter((key) => !['length', 'name', 'prototype'].includes(key))
    const overloads = names(/^ {2}static (\w+)\(/gm, body)
    assert.deepEqual([...new Set(overloads)], statics.sort(), name)
  }
})

test('the examples in the declarations give what they say', () => {
  const claim = /^(\w.*) \/\/ (.*\d.*)$/gm
  const examples = Array.from(
    declarations.matchAll(/@example\n((?: *\* .*\n)+?) *\*\//g),
    (match) => match[1].replace(/^ *\* /gm, ''),
  ).filter((code) => code.search(claim) >= 0 && !/^const .*\/\/|await/m.test(code))
  for (const code of examples) {
    const checked = code.replace(claim, 'assert.deepEqual($1, $2)')
    new Function('assert', ...Object.keys(randflake), checked)(assert, ...Object.values(randflake))
  }
  assert.equal(examples.length, 9)
})

test('the declarations name exactly the codes that all languages share', () => {
  const vectors = readFileSync(join(root, '../tests/vectors/errors.json'), 'utf8')
  const [, union] = read('errors.d.ts').split('export type RandflakeErrorCode =')
  const declared = names(/^ {2}\| '(\w+)'/gm, union)
  assert.deepEqual(declared, JSON.parse(vectors).codes.sort())
})

test('without a native half the error begins with its cause', () => {
  const folder = mkdtempSync(join(tmpdir(), 'randflake-loader-'))
  try {
    for (const file of ['index.js', 'lib', 'binding.js'])
      cpSync(join(root, file), join(folder, file), { recursive: true })
    const script = "try { require('./index.js') } catch (error) { console.log(error.message) }"
    const options = { cwd: folder, encoding: 'utf8' }
    const done = spawnSync(process.execPath, ['--eval', script], options)
    assert.match(done.stdout, /^Cannot find module '@randflake\/native-[^']+': the native half/)
    assert.match(done.stdout, /optional dependency/)
  } finally {
    rmSync(folder, { recursive: true })
  }
})
