    as char)
