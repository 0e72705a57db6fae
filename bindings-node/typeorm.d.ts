// Columns of TypeORM that hold ids. For `typeorm` 0.3.20 or later.

import type { TextForm } from './text.js'

/** What {@link id} returns: a part of the options of a column. */
export interface IdColumn<Value extends string | bigint> {
  readonly type: 'bigint'
  /** What TypeORM calls between an entity and its driver. Null stays null. */
  readonly transformer: {
    /**
     * Returns the number for the database.
     *
     * @throws an error with the code `INVALID_ID`
     */
    to(value: string | bigint | null | undefined): bigint | null | undefined
    /**
     * Returns the entity's value for the number that a driver has read.
     *
     * @throws {RandflakeError} `INVALID_ID` for a number that the driver has rounded, and for what
     *   is not a signed 64-bit number.
     */
    from(value: unknown): Value | null | undefined
  }
}

/**
 * Returns options of a column that holds ids: a `BIGINT` in the database, text in the entity. Use
 * the same for primary keys, foreign keys and other columns; a foreign key needs a column with
 * these options, too.
 *
 * Conditions take text or a bigint: `{ id: Between(first, last) }`. The parameters of a query
 * builder go to the driver as they are: pass bigints, `form.decode(text)`.
 *
 * @param options `form`: how the ids look in entities; as `encodeString` writes them unless set.
 *`asBigint`: true for bigints instead. TypeORM then cannot save entities with relations ("Do not
 *   know how to serialize a BigInt"), and does not accept a bigint as a condition: `delete(5n)` and
 *   `update(5n, …)` change every row in 0.3.20, and throw in 0.3.31.
 * @throws an error with the code `INVALID_ARGUMENT`
 * @example
 * const Post = new EntitySchema({
 *   name: 'post',
 *   columns: {
 *     id: { ...id({ form: new TextForm({ prefix: 'post' }) }), primary: true },
 *     authorId: { ...id(), nullable: true },
 *   },
 * })
 */
export function id(options?: {
  readonly form?: TextForm | undefined
  readonly asBigint?: false | undefined
}): IdColumn<string>
export function id(options: {
  readonly form?: undefined
  readonly asBigint: true
}): IdColumn<bigint>

/**
 * Makes `relationLoadStrategy: 'query'` work for one-to-many relations, and for one-to-one
 * relations from the side without the key: TypeORM passes their texts to the database as they are,
 * which finds nothing. Call it once; it applies to all data sources of this copy of TypeORM.
 *
 * @param source a `DataSource`.
 * @throws an error with the code `INVALID_ARGUMENT`
 */
export function loadByQueries(source: { readonly relationIdLoader: object }): void
