'use strict'

const { native } = require('./native.js')
const { checkStatus, invalidArgument, optionsOf, storeOf, warnIfWeak } = require('./arguments.js')
const { layoutIn, layoutOf } = require('./layouts.js')

async function listLeases(store, options) {
  return native.listLeases(storeOf(store), optionsOf(options, 'namespace'))
}

async function inspectLease(store, nodeId, options) {
  return native.inspectLease(storeOf(store), nodeId, optionsOf(options, 'namespace'))
}

async function fenceStore(store, options) {
  return native.fenceStore(storeOf(store), optionsOf(options, 'namespace'))
}

async function setNodeIds(store, nodeIds, options) {
  return native.setNodeIds(storeOf(store), nodeIds, optionsOf(options, 'namespace'))
}

async function repairLease(store, nodeId, options) {
  const checked = optionsOf(options, 'namespace', 'endExclusive')
  return native.repairLease(storeOf(store), nodeId, checked)
}

async function repairStore(store, options) {
  return native.repairStore(storeOf(store), optionsOf(options, 'namespace', 'floor'))
}

async function releaseLease(store, lease, options) {
  checkStatus(lease)
  return native.releaseLease(storeOf(store), lease, optionsOf(options, 'namespace'))
}

/** The options of initStore. */
const INIT = ['layout', 'namespace', 'maxTtlSeconds', 'maxSkewSeconds', 'nodeIds', 'allowWeakStore']

async function initStore(store, secret, mode, options) {
  const checked = optionsOf(options, ...INIT)
  const layout = layoutIn(checked)
  if (layout !== undefined && secret !== undefined) {
    throw invalidArgument(
      'a namespace has either a secret, for Randflake, or a layout, for Snowflake; with the option ' +
        'layout the secret must be undefined',
    )
  }
  const format = layout === undefined ? secret : layoutOf(layout)
  const made = native.initStore(storeOf(store), format, mode, checked)
  if (layout === undefined) warnIfWeak(secret)
  await made
}

async function initTickets(store, mode, options) {
  const checked = optionsOf(options, 'namespace', 'allowWeakStore')
  await native.initTickets(storeOf(store), mode, checked)
}

async function fenceTickets(store, name, above, options) {
  const checked = optionsOf(options, 'namespace', 'start', 'step', 'allowWeakStore')
  return native.fenceTickets(storeOf(store), name, above, checked)
}

async function listTickets(store, options) {
  return native.listTickets(storeOf(store), optionsOf(options, 'namespace', 'allowWeakStore'))
}

async function showTickets(store, name, options) {
  const checked = optionsOf(options, 'namespace', 'allowWeakStore')
  return native.showTickets(storeOf(store), name, checked)
}

module.exports = {
  fenceStore,
  fenceTickets,
  initStore,
  initTickets,
  inspectLease,
  listLeases,
  listTickets,
  releaseLease,
  repairLease,
  repairStore,
  setNodeIds,
  showTickets,
}
