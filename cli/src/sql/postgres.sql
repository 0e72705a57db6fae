-- Randflake @version@ for PostgreSQL 11 and newer, as `randflake sql --dialect postgres` prints it.
-- What it is for, and how to set the secret safely:
-- https://github.com/randflake/randflake/blob/main/docs/guides/sql.md
--
-- No function or operator of a user is ever called, whatever the search_path of the session is.
-- Functions in PL/pgSQL set their own search_path. Functions in SQL do not, so that a query can
-- inline them: there each name has its schema.

create schema if not exists @schema@;

-- The text form --------------------------------------------------------------

create or replace function @schema@.encode_string(id bigint) returns text
language plpgsql immutable strict parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    digits text := '';
begin
    loop
        digits := substr('0123456789abcdefghijklmnopqrstuv', (id & 31)::int + 1, 1) || digits;
        id := (id >> 5) & 576460752303423487; -- as an unsigned number: the other 59 bits
        exit when id = 0;
    end loop;
    return digits;
end
$$;
comment on function @schema@.encode_string(bigint) is
    'The text form of an id. Randflake @version@';

create or replace function @schema@.decode_string(text text) returns bigint
language plpgsql immutable strict parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    digits text collate "C" := text;
    id bigint := 0;
    fault text;
begin
    -- The first of thirteen digits has four bits.
    if digits ~ '^(0|[1-9a-v][0-9a-v]{0,11}|[1-9a-f][0-9a-v]{12})$' then
        for i in 1..length(digits) loop
            id := (id << 5) | strpos('0123456789abcdefghijklmnopqrstuv', substr(digits, i, 1)) - 1;
        end loop;
        return id;
    end if;
    fault := case
        when digits = '' then
            'an id''s text is empty; it has 1 to 13 characters'
        when digits ~ '^([+-][0-9]*|[0-9]{14,})$' then
            'an id''s text looks like a decimal number; pass the text form, '
            '1 to 13 of the characters 0-9 and a-v'
        when digits ~ '[_:.-](0|[1-9a-v][0-9a-v]{0,11}|[1-9a-f][0-9a-v]{12})$' then
            format(
                'an id''s text has only the characters 0-9 and a-v, and this one seems to have a '
                'prefix of %s characters: remove it, as the text form of a column does',
                length(substring(digits from '^.*[_:.-]'))
            )
        when length(digits) > 13 then
            format('an id''s text has at most 13 characters, got %s', length(digits))
        when digits ~ '^0.' then
            'an id''s text has no leading zero'
        when digits ~ '[^0-9a-v]' then
            format(
                'an id''s text has only the characters 0-9 and a-v (lower case); the one at '
                'position %s is not one of them', length(substring(digits from '^[0-9a-v]*'))
            )
        else
            'an id''s text stands for more than 64 bits'
    end;
    raise exception using errcode = 'invalid_parameter_value', message = fault,
        detail = 'INVALID_ID';
end
$$;
comment on function @schema@.decode_string(text) is
    'The id of a text, read strictly. Randflake @version@';

create or replace function @schema@.text_start(prefix text) returns text
language plpgsql immutable strict parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    if prefix collate "C" ~ '^[a-z]([a-z_]{0,61}[a-z])?$' then
        return prefix || '_';
    end if;
    raise exception using errcode = 'invalid_parameter_value', detail = 'INVALID_ARGUMENT',
        message = format(
            'a prefix has 1 to 63 of the characters a-z and _, not first and not last an '
            'underscore, got %L', left(prefix, 64)
        );
end
$$;
comment on function @schema@.text_start(text) is
    'Internal: what the text of an id with this prefix begins with. Randflake @version@';

create or replace function @schema@.encode_string(id bigint, prefix text) returns text
language plpgsql immutable strict parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return @schema@.text_start(prefix) || @schema@.encode_string(id);
end
$$;
comment on function @schema@.encode_string(bigint, text) is
    'The text form of an id, with a prefix and an underscore before it. Randflake @version@';

create or replace function @schema@.decode_string(text text, prefix text) returns bigint
language plpgsql immutable strict parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    start text := @schema@.text_start(prefix);
begin
    -- By bytes: other collations may consider different texts equal.
    if left(text, length(start)) collate "C" = start collate "C" then
        return @schema@.decode_string(substr(text, length(start) + 1));
    end if;
    raise exception using errcode = 'invalid_parameter_value', detail = 'INVALID_ID',
        message = format(
            'an id''s text must be "%s" and 1 to 13 of the characters 0-9 and a-v here', start
        );
end
$$;
comment on function @schema@.decode_string(text, text) is
    'The id of a text with exactly this prefix, read strictly. Randflake @version@';

-- Keys -----------------------------------------------------------------------

create or replace function @schema@.secret() returns bytea
language plpgsql stable strict parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    -- Empty after a transaction that set it with `set local`.
    setting text := coalesce(current_setting('randflake.secret', true), '');
    fault text;
begin
    if length(setting) = 32 and ltrim(setting, '0123456789abcdefABCDEF') = '' then
        return decode(setting, 'hex');
    end if;
    -- Never includes the value of the setting: messages are logged.
    fault := case
        when setting = '' then 'the setting randflake.secret is not set'
        when length(setting) = 32 then
            'the setting randflake.secret must be 32 hex digits, got a text with other characters'
        else
            format(
                'the setting randflake.secret must be 32 hex digits, got a text of %s characters',
                length(setting)
            )
    end;
    raise exception using errcode = 'invalid_parameter_value', message = fault,
        detail = 'INVALID_SECRET',
        hint = 'Set it in the options of the connection, or by set_config with a bind parameter.';
end
$$;
comment on function @schema@.secret() is
    'Internal: the secret, of the setting randflake.secret. Randflake @version@';

-- HKDF-SHA256 of the secret, without salt, for 'randflake cloak v1' and then the label.
create or replace function @schema@.cloak_key(label text) returns bytea
language plpgsql stable strict parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    -- HMAC with a key of zeros, which means no salt.
    inner_hash bytea := sha256(decode(repeat('36', 64), 'hex') || @schema@.secret());
    extracted bytea := sha256(decode(repeat('5c', 64), 'hex') || inner_hash);
    word bigint;
    inner_pad bytea := '';
    outer_pad bytea := '';
begin
    -- HMAC with that key: xor of 32 bytes, eight at a time, and 32 bytes of padding only.
    for i in 0..3 loop
        word := ('x' || encode(substr(extracted, 8 * i + 1, 8), 'hex'))::bit(64)::bigint;
        inner_pad := inner_pad || int8send(word # 3906369333256140342); -- 3636363636363636
        outer_pad := outer_pad || int8send(word # 6655295901103053916); -- 5c5c5c5c5c5c5c5c
    end loop;
    inner_pad := inner_pad || decode(repeat('36', 32), 'hex');
    outer_pad := outer_pad || decode(repeat('5c', 32), 'hex');
    inner_hash := sha256(
        inner_pad || convert_to('randflake cloak v1' || label, 'UTF8') || decode('01', 'hex')
    );
    return substr(sha256(outer_pad || inner_hash), 1, 16);
end
$$;
comment on function @schema@.cloak_key(text) is
    'Internal: the key of the cloak with this label. Randflake @version@';

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
--       -1125895612137472   fffc0000fffc0000   the second word, shifted left by 2
--         844424930328576   0003000000030000   ... and right by 14: rotated left by 2
--              4294967295   00000000ffffffff   the left branch
--       71777214294589695   00ff00ff00ff00ff   the low byte of each word

-- Returns the 24 round keys and the last one, each a block. A step takes three round keys from two
-- states of the key, one for each branch: `a` is words 0 and 1 of both states, `b` words 2 and 3,
-- `c` words 4 and 5. Words 6 and 7 of a state are words 4 and 5 of the previous one.
create or replace function @schema@.round_keys(key bytea) returns bigint[]
language plpgsql immutable strict parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    words constant bigint := 281470681808895;
    keys bigint[] := array_fill(0::bigint, array[25]);
    a bigint;
    b bigint;
    c bigint;
    d bigint;
    x bigint;
    z bigint;
begin
    -- State 0, of big-endian words.
    x := ('x' || encode(substr(key, 1, 8), 'hex'))::bit(64)::bigint;
    a := ((x >> 48) & 65535) | ((x >> 16) & 4294901760);
    b := ((x >> 16) & 65535) | ((x & 65535) << 16);
    x := ('x' || encode(substr(key, 9, 8), 'hex'))::bit(64)::bigint;
    c := ((x >> 48) & 65535) | ((x >> 16) & 4294901760);
    d := ((x >> 16) & 65535) | (((x & 65535) + 1 & 65535) << 16);

    -- State 1, in the high halves.
    x := ((a >> 7) & 2194728288767 | ((a << 9) & 279275953520128)) + (a >> 16) & words;
    z := (((a << 2) & -1125895612137472) | ((a >> 14) & 844424930328576)) # (x << 16) # x;
    a := a | (d << 32);
    c := c | ((b + z & 65535) << 32) | (((b >> 16) + (z >> 16) & 65535) << 48);
    b := b | (z << 32);

    for step in 0..7 loop
        keys[3 * step + 1] := a;
        keys[3 * step + 2] := b;
        keys[3 * step + 3] := c;
        -- The next two states, 2 * step + 2 and 2 * step + 3, which are the counters.
        z := (a >> 32) & 4294967295;
        a := (c & words)
            | ((((c >> 16) & words) + step * 8589934594 + 12884901890 & words) << 16);
        z := z | (a << 32);
        c := (b >> 32) & 4294967295;
        x := ((z >> 7) & 2194728288767 | ((z << 9) & 279275953520128))
            + ((z >> 16) & words) & words;
        b := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576)) # (x << 16) # x;
        c := c | (b << 32);
        c := ((c & words) + (b & words) & words)
            | ((((c >> 16) & words) + ((b >> 16) & words) & words) << 16);
    end loop;
    keys[25] := (a & 4294967295) | (b << 32);
    return keys;
end
$$;
comment on function @schema@.round_keys(bytea) is
    'Internal: the round keys of the cipher, for a key of 16 bytes. Randflake @version@';

create or replace function @schema@.encrypt_block(block bigint, keys bigint[]) returns bigint
language plpgsql immutable strict parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    words constant bigint := 281470681808895;
    z bigint;
    x bigint;
begin
    -- Each word is big-endian.
    z := ((block & 71777214294589695) << 8) | ((block >> 8) & 71777214294589695);
    for step in 0..7 loop
        for i in 3 * step + 1 .. 3 * step + 3 loop
            z := z # keys[i];
            x := (((z >> 7) & 2194728288767) | ((z << 9) & 279275953520128))
                + ((z >> 16) & words) & words;
            z := (((z << 2) & -1125895612137472) | ((z >> 14) & 844424930328576)) # (x << 16) # x;
        end loop;
        -- The left branch, mixed, is added to the right one, and they swap places.
        x := z # (z >> 16);
        x := (((x & 255) << 8) | ((x >> 8) & 255)) * 65537;
        z := (((z >> 32) # z # x) & 4294967295) | (z << 32);
    end loop;
    z := z # keys[25];
    return ((z & 71777214294589695) << 8) | ((z >> 8) & 71777214294589695);
end
$$;
comment on function @schema@.encrypt_block(bigint, bigint[]) is
    'Internal: a block, encrypted with these round keys. Randflake @version@';

create or replace function @schema@.decrypt_block(block bigint, keys bigint[]) returns bigint
language plpgsql immutable strict parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    words constant bigint := 281470681808895;
    z bigint;
    x bigint;
    y bigint;
begin
    -- encrypt_block backwards.
    z := ((block & 71777214294589695) << 8) | ((block >> 8) & 71777214294589695);
    z := z # keys[25];
    for step in reverse 7..0 loop
        x := (z >> 32) # (z >> 48);
        x := (((x & 255) << 8) | ((x >> 8) & 255)) * 65537;
        z := ((z >> 32) & 4294967295) | (((z >> 32) # z # x) << 32);
        for i in reverse 3 * step + 3 .. 3 * step + 1 loop
            y := z # (z >> 16);
            y := ((y >> 2) & 70364449226751) | ((y << 14) & 211106232582144);
            -- Each difference borrows from its own bit.
            x := ((z & words) | 281474976776192) - y;
            z := (((x << 7) & 280925220962176) | ((x >> 9) & 545460846719)) # (y << 16) # keys[i];
        end loop;
    end loop;
    return ((z & 71777214294589695) << 8) | ((z >> 8) & 71777214294589695);
end
$$;
comment on function @schema@.decrypt_block(bigint, bigint[]) is
    'Internal: a block, decrypted with these round keys. Randflake @version@';

-- Ids of Randflake ------------------------------------------------------------
--
-- They depend on a setting of the session, so they are stable, not immutable: PostgreSQL refuses
-- them in indexes and generated columns.

create or replace function @schema@.encrypt(raw bigint) returns bigint
language sql stable strict parallel safe
as $$ select @schema@.encrypt_block(raw, @schema@.round_keys(@schema@.secret())) $$;
comment on function @schema@.encrypt(bigint) is
    'The id of a sortable form; undoes decrypt. Randflake @version@';

create or replace function @schema@.decrypt(id bigint) returns bigint
language sql stable strict parallel safe
as $$ select @schema@.decrypt_block(id, @schema@.round_keys(@schema@.secret())) $$;
comment on function @schema@.decrypt(bigint) is
    'The sortable form of an id: time, node id and sequence. Randflake @version@';

create or replace function @schema@.encrypt_many(raws bigint[]) returns bigint[]
language plpgsql stable strict parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    keys constant bigint[] := @schema@.round_keys(@schema@.secret());
begin
    return array(select @schema@.encrypt_block(raw, keys) from unnest(raws) as raw);
end
$$;
comment on function @schema@.encrypt_many(bigint[]) is
    'The ids of many sortable forms, each as encrypt returns it. Randflake @version@';

create or replace function @schema@.decrypt_many(ids bigint[]) returns bigint[]
language plpgsql stable strict parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    keys constant bigint[] := @schema@.round_keys(@schema@.secret());
begin
    return array(select @schema@.decrypt_block(id, keys) from unnest(ids) as id);
end
$$;
comment on function @schema@.decrypt_many(bigint[]) is
    'The sortable forms of many ids, each as decrypt returns it. Randflake @version@';

-- In `from`, a query computes the round keys once for all of its rows.
create or replace function @schema@.inspect(id bigint)
returns table ("time" timestamptz, node_id integer, sequence integer)
language sql stable parallel safe rows 1
as $$
    select
        pg_catalog.to_timestamp(
            1730000000 operator(pg_catalog.+) (
                raw operator(pg_catalog.>>) 34 operator(pg_catalog.&) 1073741823
            )
        ),
        (raw operator(pg_catalog.>>) 17 operator(pg_catalog.&) 131071)::pg_catalog.int4,
        (raw operator(pg_catalog.&) 131071)::pg_catalog.int4
    from (
        select @schema@.decrypt_block(
            id, (select @schema@.round_keys(@schema@.secret()))
        ) as raw
        offset 0
    ) as decrypted
$$;
comment on function @schema@.inspect(bigint) is
    'The time, the node id and the sequence of an id. Randflake @version@';

-- Layouts --------------------------------------------------------------------

-- Of ids that are not encrypted, such as those of next_id, so it needs no secret. It has a row for
-- NULL, so that a query that inspects a column loses none.
create or replace function @schema@.inspect_raw(raw bigint, layout text)
returns table ("time" timestamptz, node_id integer, sequence integer)
language plpgsql immutable parallel safe rows 1
set search_path = pg_catalog, pg_temp
as $$
declare
    name text collate "C" := split_part(layout, ',', 1);
    options text collate "C" := substr(layout, length(name) + 1);
    time_shift integer;
    node_shift integer := 0;
    node_bits integer := 0;
    sequence_shift integer := 0;
    sequence_bits integer;
    bits integer := 63;
    tick_ms bigint := 1;
    epoch_ms bigint;
    stamp bigint;
begin
    if raw is null or layout is null then
        return next;
        return;
    end if;
    case name
        when 'randflake' then
            time_shift := 34; node_shift := 17; node_bits := 17; sequence_bits := 17;
            bits := 64; tick_ms := 1000; epoch_ms := 1730000000000;
        when 'twitter', 'leaf' then
            time_shift := 22; node_shift := 12; node_bits := 10; sequence_bits := 12;
            epoch_ms := 1288834974657;
        when 'discord' then
            time_shift := 22; node_shift := 12; node_bits := 10; sequence_bits := 12;
            bits := 64; epoch_ms := 1420070400000;
        when 'baidu' then
            time_shift := 35; node_shift := 13; node_bits := 22; sequence_bits := 13;
            tick_ms := 1000; epoch_ms := 1463673600000;
        when 'sonyflake', 'sonyflake2' then
            time_shift := 24; node_bits := 16; sequence_shift := 16; sequence_bits := 8;
            tick_ms := 10;
            epoch_ms := case name when 'sonyflake' then 1409529600000 else 1735689600000 end;
        when 'instagram' then
            time_shift := 23; node_shift := 10; node_bits := 13; sequence_bits := 10;
            bits := 64; epoch_ms := 1314220021721;
        when 'simpleflake' then
            time_shift := 23; sequence_bits := 23;
            bits := 64; epoch_ms := 946702800000;
        else
            raise exception using errcode = 'invalid_parameter_value', detail = 'INVALID_ARGUMENT',
                message = format(
                    'there is no layout %L; there are randflake, twitter, discord, leaf, baidu, '
                    'sonyflake, sonyflake2, instagram, simpleflake', left(name, 32)
                );
    end case;
    if options ~ '^,epoch_ms=[0-9]{1,13}$' and substr(options, 11)::bigint <= 9223372036854 then
        epoch_ms := substr(options, 11);
    elsif options <> '' then
        raise exception using errcode = 'invalid_parameter_value', detail = 'INVALID_ARGUMENT',
            message = format(
                'the layout has %L: here it is a name, which may be followed by whole unix '
                'milliseconds, as %s,epoch_ms=1577836800000', left(substr(options, 2), 32), name
            );
    end if;
    if bits = 63 and raw < 0 then
        raise exception using errcode = 'invalid_parameter_value', detail = 'INVALID_ID',
            message = format(
                'an id of the layout %s has 63 bits, got %s: an encrypted or hidden id, or one of '
                'another layout?', name, raw + 18446744073709551616
            );
    end if;
    -- As an unsigned number: without the copies of the sign.
    stamp := (raw >> time_shift) & ((1::bigint << (bits - time_shift)) - 1);
    -- Whole seconds and milliseconds apart: a floating-point number would round some of them.
    stamp := epoch_ms + stamp * tick_ms;
    "time" := to_timestamp(stamp / 1000) + make_interval(secs => (stamp % 1000) / 1000.0);
    node_id := (raw >> node_shift) & ((1::bigint << node_bits) - 1);
    sequence := (raw >> sequence_shift) & ((1::bigint << sequence_bits) - 1);
    return next;
end
$$;
comment on function @schema@.inspect_raw(bigint, text) is
    'The time, the node id and the sequence of an id of a layout. Randflake @version@';

create or replace function @schema@.shard_of(id bigint) returns integer
language sql immutable strict parallel safe
as $$
    select (id operator(pg_catalog.>>) 10 operator(pg_catalog.&) 8191)::pg_catalog.int4
$$;
comment on function @schema@.shard_of(bigint) is
    'The shard of an id of next_id. Randflake @version@';

-- Generation -----------------------------------------------------------------
--
-- next_id generates ids of the layout instagram: 41 bits of milliseconds, 13 of the shard, 10 of a
-- sequence. Instagram's own function takes the last from nextval modulo 1024. It can repeat an id if
-- the clock steps back, or if more than 1024 ids have the same millisecond.
-- Here the sequence of the database holds the time, too. Its value is that of the last id without
-- the shard, milliseconds * 1024 + sequence, and the next one is
--
--     the larger one of: value + 1, milliseconds of the clock * 1024
--
-- So each value is larger than all before it, whatever the clock does: when it steps back, or when
-- there are more than 1024 ids in a millisecond, the ids run ahead of it, by at most five seconds.
--
-- Two ids of a sequence can only be equal if
--   * the value of the sequence was lowered: by setval, by `restart`, by restoring an older backup,
--     or by promoting a standby that had not received it (one that replicates asynchronously), and
--   * besides, the clock then is not past the last id that was made before. That takes a clock that
--     is at least as wrong as the time that has passed since then, less the five seconds: after a
--     loss, wait for five seconds, on a server whose clock is right.
-- After a crash the server replays its log up to the last transaction that was committed, and the
-- value with it. What PostgreSQL skips then does no harm.
--
-- Two ids of two sequences, or of two servers, differ if their shards differ. So a shard number
-- belongs to one sequence of one server that accepts writes. The old primary must be off before
-- another server with its numbers is promoted.
--
-- The lock is needed since setval may lower a value: without it, the slower one of two sessions
-- would undo what the faster one did. nextval must not be called for this sequence.

create or replace function @schema@.next_id_at(shard integer, sequence regclass, unix_ms bigint)
returns bigint
language plpgsql volatile parallel unsafe
set search_path = pg_catalog, pg_temp
as $$
declare
    tick bigint;
    value bigint;
begin
    if shard is null or sequence is null then
        return null;
    end if;
    if shard not between 0 and 8191 then
        raise exception using errcode = 'invalid_parameter_value', detail = 'INVALID_NODE',
            message = format(
                'a node id of the layout instagram must be an integer between 0 and 8191, got %s',
                shard
            );
    end if;
    begin
        perform pg_advisory_xact_lock(1919313510, sequence::oid::integer); -- 'rfnf'
        -- Read with the lock: waiting for it may take long.
        tick := coalesce(
            unix_ms,
            round(extract(epoch from date_trunc('milliseconds', clock_timestamp())) * 1000)::bigint
        ) - 1314220021721;
        if tick < 0 then
            raise exception using errcode = 'object_not_in_prerequisite_state',
                detail = 'CLOCK_BEFORE_EPOCH',
                message = format(
                    'the clock shows the unix millisecond %s, and ids begin at 1314220021721; '
                    'correct the clock', tick + 1314220021721
                );
        elsif tick > 2199023255551 then
            raise exception using errcode = 'object_not_in_prerequisite_state',
                detail = 'LIFETIME_OVER',
                message = 'the unix millisecond 3513243277273 is the first time that ids of the '
                    'layout instagram cannot carry; new ids need another layout';
        end if;
        value := greatest(coalesce(pg_sequence_last_value(sequence), 0) + 1, tick << 10);
        if value >> 10 > tick + 5000 then
            raise exception using errcode = 'object_not_in_prerequisite_state',
                detail = 'CLOCK_MOVED_BACK',
                message = format(
                    'the clock is %s ms behind the last id; try again then, or correct the clock',
                    (value >> 10) - tick
                );
        end if;
        perform setval(sequence, value);
        -- Ends the lock now and not with the transaction, also if a statement is cancelled here.
        -- What setval did is not rolled back.
        raise exception using errcode = 'RF000', message = 'release the lock';
    exception
        when sqlstate 'RF000' then
            null;
    end;
    return (value >> 10 << 23) | (shard << 10) | (value & 1023);
end
$$;
comment on function @schema@.next_id_at(integer, regclass, bigint) is
    'Internal: next_id, for the time given, or now. Randflake @version@';

create or replace function @schema@.next_id(shard integer, sequence regclass) returns bigint
language sql volatile strict parallel unsafe
as $$ select @schema@.next_id_at(shard, sequence, null) $$;
comment on function @schema@.next_id(integer, regclass) is
    'A new id of the layout instagram, by a sequence that only it uses. Randflake @version@';

-- Cloaks ---------------------------------------------------------------------
--
-- A column may hide a sequence: default @schema@.hide(nextval('orders_seq'), 'orders.id'). The
-- sessions that insert then need the setting randflake.secret. Never write the secret into the
-- default itself, or into the settings of a function, a role or a database: the catalogue shows
-- these to every user of the server, and a dump has them.

create or replace function @schema@.hide(number bigint, label text) returns bigint
language sql stable strict parallel safe
as $$ select @schema@.encrypt_block(number, @schema@.round_keys(@schema@.cloak_key(label))) $$;
comment on function @schema@.hide(bigint, text) is
    'A number, hidden by the cloak with this label. Randflake @version@';

create or replace function @schema@.reveal(hidden bigint, label text) returns bigint
language sql stable strict parallel safe
as $$ select @schema@.decrypt_block(hidden, @schema@.round_keys(@schema@.cloak_key(label))) $$;
comment on function @schema@.reveal(bigint, text) is
    'The number that the cloak with this label has hidden. Randflake @version@';

create or replace function @schema@.hide_many(numbers bigint[], label text) returns bigint[]
language plpgsql stable strict parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    keys constant bigint[] := @schema@.round_keys(@schema@.cloak_key(label));
begin
    return array(select @schema@.encrypt_block(number, keys) from unnest(numbers) as number);
end
$$;
comment on function @schema@.hide_many(bigint[], text) is
    'Many numbers, hidden by the cloak with this label. Randflake @version@';

create or replace function @schema@.reveal_many(hidden bigint[], label text) returns bigint[]
language plpgsql stable strict parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    keys constant bigint[] := @schema@.round_keys(@schema@.cloak_key(label));
begin
    return array(select @schema@.decrypt_block(number, keys) from unnest(hidden) as number);
end
$$;
comment on function @schema@.reveal_many(bigint[], text) is
    'The numbers that the cloak with this label has hidden. Randflake @version@';
