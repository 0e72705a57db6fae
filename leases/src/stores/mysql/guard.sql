    -- Parameters of the guard: from when to when on the server's clock, and which server it must be.
    and @@autocommit = 1
    /*M! and @@in_transaction = 0 */
    and unix_timestamp() between ? and ?
    and ? = cast(
