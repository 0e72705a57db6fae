-- Randflake @version@ for MySQL 8, MariaDB 10.6 and newer, as `randflake sql --dialect mysql` prints
-- it. What it is for, and which rights it needs:
-- https://github.com/randflake/randflake/blob/main/docs/guides/sql-mysql.md
--
-- Functions keep the sql_mode in which they were created, so this sets it. Numbers are unsigned
-- inside, where a shift drops bits and a difference that is negative is an error. Parameters and
-- results are signed, as columns are.

create database if not exists @schema@;

set @randflake_sql_mode = @@sql_mode;
set sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION';

delimiter //

-- Errors ---------------------------------------------------------------------
--
-- The code is the condition item SUBCLASS_ORIGIN. MySQL has room for 128 characters of a message.

drop procedure if exists @schema@.refuse //
create procedure @schema@.refuse(
    code varchar(32) character set ascii, message varchar(512) character set utf8mb4
)
no sql sql security invoker
comment 'Internal: ends a function with this error. Randflake @version@'
begin
    set message = left(message, 128);
    signal sqlstate '22023' set message_text = message, subclass_origin = code;
end //

-- The text form --------------------------------------------------------------

drop function if exists @schema@.encode_string //
create function @schema@.encode_string(id bigint)
returns varchar(13) character set ascii collate ascii_bin
deterministic no sql sql security invoker
comment 'The text form of an id. Randflake @version@'
return lower(conv(cast(id as unsigned), 10, 32)) //

-- The number of a text, or NULL if it is not one that encode_string writes. conv reads others, too:
-- they do not survive the way back. Compared as bytes: collations consider different texts equal.
drop function if exists @schema@.digits_value //
create function @schema@.digits_value(digits text character set utf8mb4 collate utf8mb4_bin)
returns bigint unsigned
deterministic no sql sql security invoker
comment 'Internal: the number of digits, or NULL. Randflake @version@'
begin
    declare number bigint unsigned;
    -- conv warns of other characters, which MySQL makes an error, and of more than 64 bits: the first
    -- of thirteen digits has four.
    if octet_length(digits) not between 1 and 13 or digits regexp '[^0-9a-v]'
        or (octet_length(digits) = 13 and ord(digits) > ord('f')) then
        return null;
    end if;
    set number = cast(conv(digits, 32, 10) as unsigned);
    if cast(lower(conv(number, 10, 32)) as binary) = cast(digits as binary) then
        return number;
    end if;
    return null;
end //

drop procedure if exists @schema@.refuse_text //
create procedure @schema@.refuse_text(digits text character set utf8mb4 collate utf8mb4_bin)
no sql sql security invoker
comment 'Internal: says why a text is not that of an id. Randflake @version@'
begin
    declare fault varchar(512) character set utf8mb4;
    declare unsigned_digits text character set utf8mb4 collate utf8mb4_bin
        default if(left(digits, 1) in ('+', '-'), substr(digits, 2), digits);
    declare place int default char_length(digits);
    -- Not by locate, which finds NUL everywhere.
    while place > 0 and not substr(digits, place, 1) regexp '[_:.-]' do
        set place = place - 1;
    end while;
    -- A text of spaces is equal to the empty one.
    if octet_length(digits) = 0 then
        set fault = 'an id''s text is empty; it has 1 to 13 characters';
    elseif (octet_length(unsigned_digits) < octet_length(digits) or octet_length(digits) > 13)
        and not unsigned_digits regexp '[^0-9]' then
        set fault = concat(
            'an id''s text looks like a decimal number; pass the text form, ',
            '1 to 13 of the characters 0-9 and a-v'
        );
    elseif place > 0 and @schema@.digits_value(substr(digits, place + 1)) is not null then
        set fault = concat(
            'an id''s text has only the characters 0-9 and a-v, and this one seems to have a ',
            'prefix of ', place, ' characters: remove it'
        );
    elseif char_length(digits) > 13 then
        set fault =
            concat('an id''s text has at most 13 characters, got ', char_length(digits));
    elseif octet_length(digits) > 1 and left(digits, 1) = '0' then
        set fault = 'an id''s text has no leading zero';
    else
        set place = 0;
        while place < char_length(digits)
            and not substr(digits, place + 1, 1) regexp '[^0-9a-v]' do
            set place = place + 1;
        end while;
        if place < char_length(digits) then
            set fault = concat(
                'an id''s text has only the characters 0-9 and a-v (lower case); the one at ',
                'position ', place, ' is not one of them'
            );
        else
            set fault = 'an id''s text stands for more than 64 bits';
        end if;
    end if;
    call @schema@.refuse('INVALID_ID', fault);
end //

drop function if exists @schema@.decode_string //
create function @schema@.decode_string(digits text character set utf8mb4 collate utf8mb4_bin)
returns bigint
deterministic no sql sql security invoker
comment 'The id of a text, read strictly. Randflake @version@'
begin
    declare number bigint unsigned default @schema@.digits_value(digits);
    if number is null and digits is not null then
        call @schema@.refuse_text(digits);
    end if;
    return cast(number as signed);
end //

drop function if exists @schema@.text_start //
create function @schema@.text_start(prefix text character set utf8mb4 collate utf8mb4_bin)
returns varchar(64) character set ascii collate ascii_bin
deterministic no sql sql security invoker
comment 'Internal: what the text of an id with this prefix begins with. Randflake @version@'
begin
    -- Not by one pattern: `$` ignores a line end behind the last letter.
    if octet_length(prefix) not between 1 and 63 or prefix regexp '[^a-z_]'
        or left(prefix, 1) = '_' or right(prefix, 1) = '_' then
        call @schema@.refuse('INVALID_ARGUMENT', concat(
            'a prefix has 1 to 63 of the characters a-z and _, not first and not last an ',
            'underscore, got ', quote(left(prefix, 32))
        ));
    end if;
    return concat(prefix, '_');
end //

drop function if exists @schema@.encode_prefixed //
create function @schema@.encode_prefixed(
    id bigint, prefix text character set utf8mb4 collate utf8mb4_bin
)
returns varchar(77) character set ascii collate ascii_bin
deterministic no sql sql security invoker
comment 'The text form of an id, with a prefix and an underscore before it. Randflake @version@'
begin
    if id is null then
        return null;
    end if;
    return concat(@schema@.text_start(prefix), @schema@.encode_string(id));
end //

drop function if exists @schema@.decode_prefixed //
create function @schema@.decode_prefixed(
    digits text character set utf8mb4 collate utf8mb4_bin,
    prefix text character set utf8mb4 collate utf8mb4_bin
)
returns bigint
deterministic no sql sql security invoker
comment 'The id of a text with exactly this prefix, read strictly. Randflake @version@'
begin
    declare start varchar(64) character set utf8mb4 collate utf8mb4_bin;
    if digits is null or prefix is null then
        return null;
    end if;
    set start = @schema@.text_start(prefix);
    if cast(left(digits, char_length(start)) as binary) <> cast(start as binary) then
        call @schema@.refuse('INVALID_ID', concat(
            'an id''s text must be "', start, '" and 1 to 13 of the characters 0-9 and a-v here'
        ));
    end if;
    return @schema@.decode_string(substr(digits, char_length(start) + 1));
end //

-- Layouts --------------------------------------------------------------------

drop function if exists @schema@.inspect_field //
create function @schema@.inspect_field(
    id bigint, layout text character set utf8mb4 collate utf8mb4_bin,
    field varchar(8) character set ascii
)
returns bigint
deterministic no sql sql security invoker
comment 'Internal: a field of an id of a layout: ms, node or sequence. Randflake @version@'
begin
    declare raw bigint unsigned default cast(id as unsigned);
    declare name varchar(512) character set utf8mb4 collate utf8mb4_bin
        default left(substring_index(layout, ',', 1), 512);
    declare options varchar(512) character set utf8mb4 collate utf8mb4_bin
        default left(substr(layout, char_length(name) + 1), 512);
    declare bits, time_shift, sequence_bits int;
    declare node_shift, node_bits, sequence_shift int default 0;
    declare tick_ms int default 1;
    declare epoch_ms bigint unsigned;
    if id is null or layout is null then
        return null;
    end if;
    set bits = 63;
    -- As bytes: a collation ignores spaces at the end.
    case cast(name as binary)
        when 'randflake' then
            set time_shift = 34, node_shift = 17, node_bits = 17, sequence_bits = 17, bits = 64,
                tick_ms = 1000, epoch_ms = 1730000000000;
        when 'twitter' then
            set time_shift = 22, node_shift = 12, node_bits = 10, sequence_bits = 12,
                epoch_ms = 1288834974657;
        when 'leaf' then
            set time_shift = 22, node_shift = 12, node_bits = 10, sequence_bits = 12,
                epoch_ms = 1288834974657;
        when 'discord' then
            set time_shift = 22, node_shift = 12, node_bits = 10, sequence_bits = 12, bits = 64,
                epoch_ms = 1420070400000;
        when 'baidu' then
            set time_shift = 35, node_shift = 13, node_bits = 22, sequence_bits = 13,
                tick_ms = 1000, epoch_ms = 1463673600000;
        when 'sonyflake' then
            set time_shift = 24, node_bits = 16, sequence_shift = 16, sequence_bits = 8,
                tick_ms = 10, epoch_ms = 1409529600000;
        when 'sonyflake2' then
            set time_shift = 24, node_bits = 16, sequence_shift = 16, sequence_bits = 8,
                tick_ms = 10, epoch_ms = 1735689600000;
        when 'instagram' then
            set time_shift = 23, node_shift = 10, node_bits = 13, sequence_bits = 10, bits = 64,
                epoch_ms = 1314220021721;
        when 'simpleflake' then
            set time_shift = 23, sequence_bits = 23, bits = 64, epoch_ms = 946702800000;
        else
            call @schema@.refuse('INVALID_ARGUMENT', concat(
                'there is no layout ', quote(left(name, 32)), '; there are randflake, twitter, ',
                'discord, leaf, baidu, sonyflake, sonyflake2, instagram, simpleflake'
            ));
    end case;
    if octet_length(options) > 0 then
        if left(options, 10) <> ',epoch_ms=' or substr(options, 11) regexp '[^0-9]'
            or octet_length(options) not between 11 and 23
            or cast(substr(options, 11) as unsigned) > 9223372036854 then
            call @schema@.refuse('INVALID_ARGUMENT', concat(
                'the layout has ', quote(left(substr(options, 2), 32)), ': here only whole unix ',
                'milliseconds may follow the name, as ,epoch_ms=1577836800000'
            ));
        end if;
        set epoch_ms = cast(substr(options, 11) as unsigned);
    end if;
    if bits = 63 and id < 0 then
        call @schema@.refuse('INVALID_ID', concat(
            'an id of the layout ', name, ' has 63 bits, got ', raw, ': an encrypted or hidden ',
            'id, or one of another layout?'
        ));
    end if;
    return case field
        when 'ms' then epoch_ms + (raw >> time_shift) * tick_ms
        when 'node' then (raw >> node_shift) & ((1 << node_bits) - 1)
        else (raw >> sequence_shift) & ((1 << sequence_bits) - 1)
    end;
end //

drop function if exists @schema@.inspect_ms //
create function @schema@.inspect_ms(
    id bigint, layout text character set utf8mb4 collate utf8mb4_bin
)
returns bigint
deterministic no sql sql security invoker
comment 'The time of an id of a layout, in unix milliseconds. Randflake @version@'
return @schema@.inspect_field(id, layout, 'ms') //

drop function if exists @schema@.inspect_time //
create function @schema@.inspect_time(
    id bigint, layout text character set utf8mb4 collate utf8mb4_bin
)
returns datetime(3)
deterministic no sql sql security invoker
comment 'The time of an id of a layout, in UTC. Randflake @version@'
return timestamp '1970-01-01 00:00:00'
    + interval (@schema@.inspect_field(id, layout, 'ms') * 1000) microsecond //

drop function if exists @schema@.inspect_node //
create function @schema@.inspect_node(
    id bigint, layout text character set utf8mb4 collate utf8mb4_bin
)
returns int
deterministic no sql sql security invoker
comment 'The node id of an id of a layout. Randflake @version@'
return @schema@.inspect_field(id, layout, 'node') //

drop function if exists @schema@.inspect_sequence //
create function @schema@.inspect_sequence(
    id bigint, layout text character set utf8mb4 collate utf8mb4_bin
)
returns int
deterministic no sql sql security invoker
comment 'The sequence of an id of a layout. Randflake @version@'
return @schema@.inspect_field(id, layout, 'sequence') //

drop function if exists @schema@.shard_of //
create function @schema@.shard_of(id bigint)
returns int
deterministic no sql sql security invoker
comment 'The shard of an id of next_id. Randflake @version@'
return (id >> 10) & 8191 //

-- Generation -----------------------------------------------------------------
--
-- next_id generates ids of the layout instagram: 41 bits of milliseconds, 13 of the shard, 10 of a
-- sequence. A row has the last id of a sequence without the shard, milliseconds * 1024 + sequence,
-- and the next one is
--
--     the larger one of: value + 1, milliseconds of the clock * 1024
--
-- So each value is larger than all before it, whatever the clock does: when it steps back, or when
-- there are more than 1024 ids in a millisecond, the ids run ahead of it, by at most five seconds.
--
-- Two ids of a sequence can only be equal if
--   * the value of its row was lowered: by hand, by the rollback of the transaction that made the
--     first one, by restoring an older backup, or by promoting a replica that had not received it,
--     and
--   * besides, the clock then is not past the last id that was made before. That takes a clock that
--     is at least as wrong as the time that has passed since then, less the five seconds: after a
--     loss, wait for five seconds, on a server whose clock is right. An id of a transaction that is
--     rolled back may come again at once: use an id only after its transaction is committed.
--
-- Two ids of two sequences, or of two servers, differ if their shards differ. So a shard number
-- belongs to one sequence of one server that accepts writes. The old primary must be off before
-- another server with its numbers is promoted.
--
-- The row is locked until the transaction ends. A SEQUENCE of MariaDB would not be, but its setval
-- takes only a literal number, so it cannot hold the time. MySQL has none.

create table if not exists @schema@.last_id (
    sequence varchar(64) character set ascii collate ascii_bin not null primary key,
    value bigint unsigned not null
) engine = InnoDB comment 'What next_id has made. Randflake' //

-- By a UUID of version 1, which has the clock in UTC. now() and utc_timestamp() stand still while a
-- statement runs, which may take long. sysdate() is in the time zone of the session, where an hour
-- may come twice.
drop function if exists @schema@.clock_ms //
create function @schema@.clock_ms()
returns bigint
not deterministic no sql sql security invoker
comment 'Internal: the clock, in unix milliseconds. Randflake @version@'
begin
    declare made char(36) character set ascii default uuid();
    -- Tenths of microseconds since 1582-10-15: the third part has the highest bits.
    return cast(conv(concat(substr(made, 16, 3), substr(made, 10, 4), left(made, 8)), 16, 10)
        as unsigned) div 10000 - 12219292800000;
end //

-- With the rights of whoever loads this, so that those who call it need none on the table.
drop function if exists @schema@.next_id_at //
create function @schema@.next_id_at(
    shard int, sequence_name varchar(64) character set ascii, unix_ms bigint
)
returns bigint
not deterministic modifies sql data sql security definer
comment 'Internal: next_id, for the time given, or now. Randflake @version@'
begin
    declare tick bigint;
    declare next bigint unsigned;
    if shard is null or sequence_name is null then
        return null;
    end if;
    if shard not between 0 and 8191 then
        call @schema@.refuse('INVALID_NODE', concat(
            'a node id of the layout instagram must be an integer between 0 and 8191, got ', shard
        ));
    end if;
    -- Locks the row, and makes it if there is none. If a select for update came first, two of them
    -- would lock the gap, and wait for each other.
    insert into @schema@.last_id (sequence, value) values (sequence_name, 0)
        on duplicate key update value = value;
    -- Read with the lock: waiting for it may take long.
    set tick = coalesce(unix_ms, @schema@.clock_ms()) - 1314220021721;
    if tick < 0 then
        call @schema@.refuse('CLOCK_BEFORE_EPOCH', concat(
            'the clock shows the unix millisecond ', tick + 1314220021721,
            ', and ids begin at 1314220021721; correct the clock'
        ));
    elseif tick > 2199023255551 then
        call @schema@.refuse('LIFETIME_OVER', concat(
            'the unix millisecond 3513243277273 is the first time that ids of the layout ',
            'instagram cannot carry; new ids need another layout'
        ));
    end if;
    -- For update, too: otherwise this would read what there was when the transaction began.
    select greatest(value + 1, tick << 10) into next
        from @schema@.last_id where sequence = sequence_name for update;
    if next >> 10 > tick + 5000 then
        call @schema@.refuse('CLOCK_MOVED_BACK', concat(
            'the clock is ', (next >> 10) - tick,
            ' ms behind the last id; try again then, or correct the clock'
        ));
    end if;
    update @schema@.last_id set value = next where sequence = sequence_name;
    return cast(((next >> 10) << 23) | (shard << 10) | (next & 1023) as signed);
end //

drop function if exists @schema@.next_id //
create function @schema@.next_id(shard int, sequence_name varchar(64) character set ascii)
returns bigint
not deterministic modifies sql data sql security definer
comment 'A new id of the layout instagram, of this sequence. Randflake @version@'
return @schema@.next_id_at(shard, sequence_name, null) //

-- Keys -----------------------------------------------------------------------

-- Never includes the value of the variable: messages are logged.
drop function if exists @schema@.secret //
create function @schema@.secret()
returns binary(16)
not deterministic no sql sql security invoker
comment 'Internal: the secret, of the variable @randflake_secret. Randflake @version@'
begin
    declare setting text character set utf8mb4 default coalesce(@randflake_secret, '');
    if octet_length(setting) = 32 and not setting regexp '[^0-9a-fA-F]' then
        return unhex(setting);
    end if;
    call @schema@.refuse('INVALID_SECRET', case
        when octet_length(setting) = 0 then 'the variable @randflake_secret is not set'
        when octet_length(setting) = 32 then concat(
            'the variable @randflake_secret must be 32 hex digits, got a text with other characters'
        )
        else concat(
            'the variable @randflake_secret must be 32 hex digits, got a text of ',
            char_length(setting), ' characters'
        )
    end);
    return null;
end //

-- The key is xored eight bytes at a time; the other 32 bytes of a block are padding only.
drop function if exists @schema@.hmac //
create function @schema@.hmac(hmac_key varbinary(32), message blob)
returns varbinary(32)
deterministic no sql sql security invoker
comment 'Internal: HMAC-SHA256 with a key of 32 bytes. Randflake @version@'
begin
    declare inner_pad, outer_pad varchar(128) character set ascii default '';
    declare word bigint unsigned;
    declare i int default 0;
    while i < 4 do
        set word = cast(conv(hex(substr(hmac_key, 8 * i + 1, 8)), 16, 10) as unsigned);
        -- 3636363636363636 and 5c5c5c5c5c5c5c5c
        set inner_pad = concat(inner_pad, lpad(hex(word ^ 3906369333256140342), 16, '0'));
        set outer_pad = concat(outer_pad, lpad(hex(word ^ 6655295901103053916), 16, '0'));
        set i = i + 1;
    end while;
    set inner_pad = concat(inner_pad, repeat('36', 32));
    set outer_pad = concat(outer_pad, repeat('5c', 32));
    return unhex(sha2(concat(unhex(outer_pad),
        unhex(sha2(concat(unhex(inner_pad), message), 256))), 256));
end //

-- HKDF-SHA256 of the secret, without salt, for 'randflake cloak v1' and then the label.
drop function if exists @schema@.cloak_key //
create function @schema@.cloak_key(label text character set utf8mb4 collate utf8mb4_bin)
returns binary(16)
not deterministic no sql sql security invoker
comment 'Internal: the key of the cloak with this label. Randflake @version@'
return left(@schema@.hmac(
    -- A key of zeros means no salt.
    @schema@.hmac(unhex(repeat('00', 32)), @schema@.secret()),
    concat(cast('randflake cloak v1' as binary), cast(label as binary), unhex('01'))
), 16) //

-- The cipher, SPARX-64/128 ---------------------------------------------------
--
-- core/src/sparx.rs has it in words of 16 bits. Here a bigint holds the four words of a block, the
-- first one in the lowest bits. Its low half is the left branch, its high half the right one, and
-- one statement does the same to both. The bits that a shift has moved into another word are
-- masked:
--
--         281470681808895   0000ffff0000ffff   the first word of each branch
--           2194728288767   000001ff000001ff   ... after it was shifted right by 7
--         279275953520128   0000fe000000fe00   ... and left by 9: rotated right by 7
--    18445618178097414144   fffc0000fffc0000   the second word, shifted left by 2
--         844424930328576   0003000000030000   ... and right by 14: rotated left by 2
--              4294967295   00000000ffffffff   the left branch
--       71777214294589695   00ff00ff00ff00ff   the low byte of each word

-- Returns the 24 round keys and the last one, each 16 hex digits: there are no arrays. A step takes
-- three round keys from two states of the key, one for each branch: `a` is words 0 and 1 of both
-- states, `b` words 2 and 3, `c` words 4 and 5. Words 6 and 7 of a state are words 4 and 5 of the
-- previous one.
drop function if exists @schema@.round_keys //
create function @schema@.round_keys(cipher_key binary(16))
returns varchar(400) character set ascii collate ascii_bin
deterministic no sql sql security invoker
comment 'Internal: the round keys of the cipher, for a key of 16 bytes. Randflake @version@'
begin
    declare round_keys varchar(400) character set ascii default '';
    declare words bigint unsigned default 281470681808895;
    declare a, b, c, d, x, z bigint unsigned;
    declare step int default 0;
    -- State 0, of big-endian words.
    set x = cast(conv(hex(left(cipher_key, 8)), 16, 10) as unsigned);
    set a = (x >> 48) | ((x >> 16) & 4294901760);
    set b = ((x >> 16) & 65535) | ((x & 65535) << 16);
    set x = cast(conv(hex(substr(cipher_key, 9, 8)), 16, 10) as unsigned);
    set c = (x >> 48) | ((x >> 16) & 4294901760);
    set d = ((x >> 16) & 65535) | ((((x & 65535) + 1) & 65535) << 16);

    -- State 1, in the high halves.
    set x = ((((a >> 7) & 2194728288767) | ((a << 9) & 279275953520128)) + (a >> 16)) & words;
    set z = (((a << 2) & 18445618178097414144) | ((a >> 14) & 844424930328576)) ^ (x << 16) ^ x;
    set a = a | (d << 32);
    set c = c | (((b + z) & 65535) << 32) | ((((b >> 16) + (z >> 16)) & 65535) << 48);
    set b = b | (z << 32);

    while step < 8 do
        set round_keys = concat(
            round_keys, lpad(hex(a), 16, '0'), lpad(hex(b), 16, '0'), lpad(hex(c), 16, '0')
        );
        -- The next two states, 2 * step + 2 and 2 * step + 3, which are the counters.
        set z = a >> 32;
        set a = (c & words)
            | (((((c >> 16) & words) + step * 8589934594 + 12884901890) & words) << 16);
        set z = z | ((a << 32) & 18446744069414584320);
        set c = b >> 32;
        set x = ((((z >> 7) & 2194728288767) | ((z << 9) & 279275953520128))
            + ((z >> 16) & words)) & words;
        set b = (((z << 2) & 18445618178097414144) | ((z >> 14) & 844424930328576))
            ^ (x << 16) ^ x;
        set c = c | (b << 32);
        set c = (((c & words) + (b & words)) & words)
            | (((((c >> 16) & words) + ((b >> 16) & words)) & words) << 16);
        set step = step + 1;
    end while;
    return concat(round_keys, lpad(hex((a & 4294967295) | (b << 32)), 16, '0'));
end //

drop function if exists @schema@.encrypt_block //
create function @schema@.encrypt_block(block bigint, round_keys varchar(400) character set ascii)
returns bigint
deterministic no sql sql security invoker
comment 'Internal: a block, encrypted with these round keys. Randflake @version@'
begin
    declare words bigint unsigned default 281470681808895;
    declare x bigint unsigned;
    -- Each word is big-endian.
    declare z bigint unsigned
        default ((block & 71777214294589695) << 8) | ((block >> 8) & 71777214294589695);
    declare i int default 0;
    while i < 24 do
        set z = z ^ cast(conv(substr(round_keys, 16 * i + 1, 16), 16, 10) as unsigned);
        set x = ((((z >> 7) & 2194728288767) | ((z << 9) & 279275953520128))
            + ((z >> 16) & words)) & words;
        set z = (((z << 2) & 18445618178097414144) | ((z >> 14) & 844424930328576))
            ^ (x << 16) ^ x;
        set i = i + 1;
        if i mod 3 = 0 then
            -- The left branch, mixed, is added to the right one, and they swap places.
            set x = z ^ (z >> 16);
            set x = (((x & 255) << 8) | ((x >> 8) & 255)) * 65537;
            set z = (((z >> 32) ^ z ^ x) & 4294967295) | (z << 32);
        end if;
    end while;
    set z = z ^ cast(conv(substr(round_keys, 385, 16), 16, 10) as unsigned);
    return cast(((z & 71777214294589695) << 8) | ((z >> 8) & 71777214294589695) as signed);
end //

drop function if exists @schema@.decrypt_block //
create function @schema@.decrypt_block(block bigint, round_keys varchar(400) character set ascii)
returns bigint
deterministic no sql sql security invoker
comment 'Internal: a block, decrypted with these round keys. Randflake @version@'
begin
    declare words bigint unsigned default 281470681808895;
    declare x, y bigint unsigned;
    -- encrypt_block backwards.
    declare z bigint unsigned
        default ((block & 71777214294589695) << 8) | ((block >> 8) & 71777214294589695);
    declare i int default 24;
    set z = z ^ cast(conv(substr(round_keys, 385, 16), 16, 10) as unsigned);
    while i > 0 do
        if i mod 3 = 0 then
            set x = (z >> 32) ^ (z >> 48);
            set x = (((x & 255) << 8) | ((x >> 8) & 255)) * 65537;
            set z = (z >> 32) | (((z >> 32) ^ z ^ x) << 32);
        end if;
        set i = i - 1;
        set y = z ^ (z >> 16);
        set y = ((y >> 2) & 70364449226751) | ((y << 14) & 211106232582144);
        -- Each difference borrows from its own bit.
        set x = ((z & words) | 281474976776192) - y;
        set z = (((x << 7) & 280925220962176) | ((x >> 9) & 545460846719)) ^ (y << 16)
            ^ cast(conv(substr(round_keys, 16 * i + 1, 16), 16, 10) as unsigned);
    end while;
    return cast(((z & 71777214294589695) << 8) | ((z >> 8) & 71777214294589695) as signed);
end //

-- Ids of Randflake, and cloaks -----------------------------------------------
--
-- A trigger may hide what a sequence counts. The sessions that insert then need the variable
-- @randflake_secret. Never write the secret into a trigger: whoever may see the trigger sees it, and
-- a dump has it.

drop function if exists @schema@.encrypt //
create function @schema@.encrypt(raw bigint)
returns bigint
not deterministic no sql sql security invoker
comment 'The id of a sortable form; undoes decrypt. Randflake @version@'
return if(raw is null, null, @schema@.encrypt_block(raw, @schema@.round_keys(@schema@.secret()))) //

drop function if exists @schema@.decrypt //
create function @schema@.decrypt(id bigint)
returns bigint
not deterministic no sql sql security invoker
comment 'The sortable form of an id: time, node id and sequence. Randflake @version@'
return if(id is null, null, @schema@.decrypt_block(id, @schema@.round_keys(@schema@.secret()))) //

drop function if exists @schema@.hide //
create function @schema@.hide(number bigint, label text character set utf8mb4)
returns bigint
not deterministic no sql sql security invoker
comment 'A number, hidden by the cloak with this label. Randflake @version@'
return if(number is null or label is null, null,
    @schema@.encrypt_block(number, @schema@.round_keys(@schema@.cloak_key(label)))) //

drop function if exists @schema@.reveal //
create function @schema@.reveal(hidden bigint, label text character set utf8mb4)
returns bigint
not deterministic no sql sql security invoker
comment 'The number that the cloak with this label has hidden. Randflake @version@'
return if(hidden is null or label is null, null,
    @schema@.decrypt_block(hidden, @schema@.round_keys(@schema@.cloak_key(label)))) //

delimiter ;

set sql_mode = @randflake_sql_mode;
