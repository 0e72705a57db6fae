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
        when octet_length(digits) > 13 then
            format('an id''s text has at most 13 characters, got %s', octet_length(digits))
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

-- Cloaks ---------------------------------------------------------------------

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
