-- Which server, in which line of its history, and after a space how it keeps what it acknowledges.
-- A promoted replica is another server; and so is one that has since followed another, such as an
-- old primary that is promoted again: the transactions that it has from others show this, and they
-- stay the same while it follows none. `/*! */` is for MySQL, `/*M! */` for MariaDB. MySQL 9.6 has
-- no `md5`. In a session whose character set is binary, `lower` leaves what `hex` returns as it is.
concat(
    /*!80000
    @@server_uuid, '/',
    left(sha2(regexp_replace(
        convert(@@global.gtid_executed using utf8mb4),
        convert(concat(@@server_uuid, '[^,]*') using utf8mb4),
        convert('' using utf8mb4)
    ), 256), 12),
    */
    /*M!
    @@global.server_id, '/', lower(convert(hex(@@hostname) using utf8mb4)), ':', @@port, '/',
    left(sha2(@@global.gtid_slave_pos, 256), 12),
    */
    '/', lower(convert(hex(database()) using utf8mb4)), ' ',
    @@innodb_flush_log_at_trx_commit, ',', @@innodb_doublewrite, ',',
    @@log_bin, ',', @@sync_binlog
)
