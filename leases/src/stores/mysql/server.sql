-- Which server, in which line of its history, and behind a space how it keeps what it acknowledges. A promoted
-- replica is another server. `/*! */` is for MySQL, `/*M! */` for MariaDB.
concat(
    /*!80000 @@server_uuid, */ /*M! @@server_id, '/', lower(hex(@@hostname)), ':', @@port, */
    '/', lower(hex(database())), ' ',
    @@innodb_flush_log_at_trx_commit, ',', @@innodb_doublewrite, ',',
    @@log_bin, ',', @@sync_binlog
)
