    -- Parameters of the guard: the first and the last second on the server's clock, and which
    -- server it must be.
    and @@autocommit = 1
    /*M! and @@in_transaction = 0 */
    and unix_timestamp() between ? and ?
    and ? = cast(
