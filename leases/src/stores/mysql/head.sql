-- What every answer begins with: a row with a number that binds it to this statement, the server's clock, whether
-- it is inside a transaction, and which server it is. All others are entries. The first parameter is the number.
select
    ? as name,
    concat(
        unix_timestamp(), ' ', @@autocommit = 0 /*M! or @@in_transaction = 1 */, ' ',
